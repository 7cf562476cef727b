use proptest::prelude::*;

use super::ast::*;
use super::treegen::{Vocabulary, queries};
use super::{Query, field, message};

fn parse(text: &str) -> Query {
    text.parse().unwrap_or_else(|e| panic!("{e}"))
}

fn refused(text: &str) -> crate::QueryError {
    match text.parse::<Query>() {
        Ok(query) => panic!("accepted {text:?} as {query}"),
        Err(error) => error,
    }
}

/// What is written, and how it prints.
const SPELLINGS: &[(&str, &str)] = &[
    // Words and logic.
    ("boot", "boot"),
    ("boot-time", "\"boot-time\""),
    ("/var/log/x.log 100% $HOME", "\"/var/log/x.log\" \"100%\" \"$HOME\""),
    ("a b or c !d", "a b or c !d"),
    ("a AND (b OR c) not d", "a (b or c) !d"),
    ("!!a -(b c)", "a !(b c)"),
    ("((a) ((b)))", "a b"),
    ("\"and\" 'or'", "\"and\" \"or\""),
    ("a # gone\nb", "a b"),
    ("`a\\b` 'it\\'s' \"\\u00e9\\x41\\101\"", "\"a\\\\b\" \"it's\" \u{e9}AA"),
    ("*", "*"),
    ("_msg:*", "_msg:*"),
    // Fields.
    ("f:a", "f:a"),
    ("f : a", "f:a"),
    ("f:x:y", "f:\"x:y\""),
    ("f:(a or k:b)", "f:a or f:\"k:b\""),
    ("f:!a", "!f:a"),
    ("f:(!a -b)", "!f:a !f:b"),
    ("f:* g:\"\" h:''", "f:* g:\"\" h:\"\""),
    ("k8s*:a *:b", "k8s*:a *:b"),
    ("p*:!x", "!p*:x"),
    ("fields.a:b", "fields.a:b"),
    // Predicates.
    ("err* \"a b\"* \"\"*", "err* \"a b\"* _msg:*"),
    ("*mid* f:*\"a b\"*", "*mid* f:*\"a b\"*"),
    ("=a f:!=b f:=\"\" f:=c* exact(d) exact(e*)", "=a !f:=b f:=\"\" f:=c* =d =e*"),
    ("in(a, b,) f:in() f:in(*) f:in(\"*\")", "in(a, b) f:in() f:in(*) f:in(*)"),
    ("contains_all(a) contains_any(b, \"c d\")", "contains_all(a) contains_any(b, \"c d\")"),
    ("i(A) i(B*) i(*)", "i(A) i(B*) i(\"\"*)"),
    ("seq(a, b)", "seq(a, b)"),
    ("~\"a.b\" !~x re(y)", "~\"a.b\" !~\"x\" ~\"y\""),
    ("f:>5 f:>=10KB f:<-1 f:<= x", "f:>5 f:>=10KB f:<\"-1\" f:<=x"),
    ("f:range(1, 2] f:range[-1.5,1KiB)", "f:range(1, 2] f:range[-1.5, 1KiB)"),
    ("f:string_range(a, b)", "f:string_range(a, b)"),
    ("len_range(1, inf) len_range(0x10, 1KB)", "len_range(1, inf) len_range(16, 1000)"),
    ("ip:ipv4_range(10.0.0.7/8)", "ip:ipv4_range(10.0.0.0, 10.255.255.255)"),
    ("ip:ipv6_range(2001:db8::/126)", "ip:ipv6_range(\"2001:db8::\", \"2001:db8::3\")"),
    ("a:eq_field(b) a:le_field(c) a:lt_field(d)", "a:eq_field(b) a:le_field(c) a:lt_field(d)"),
    ("pattern_match(\"id=<N>\")", "pattern_match(\"id=<N>\")"),
    ("t:json_array_contains_any(a)", "t:json_array_contains_any(a)"),
    (
        "equals_common_case(Ab) contains_common_case(Cd)",
        "equals_common_case(Ab) contains_common_case(Cd)",
    ),
    ("f:value_type(uint64)", "f:value_type(uint64)"),
    ("f:in f:seq range", "f:\"in\" f:\"seq\" \"range\""),
    // Streams and times.
    ("{a=\"b\",c!=d or e=~`f.*`}", "{a=\"b\",c!=\"d\" or e=~\"f.*\"}"),
    ("{a in (x, y), b not_in (z)}", "{a in (x, y),b not_in (z)}"),
    ("{a in (*)} _stream:{}", "{a=~\".*\"} {}"),
    ("_time:5m _time:>1d _time:<2h", "_time:5m _time:>1d _time:2h"),
    ("_time:2024-03Z offset 1h", "_time:2024-03Z offset 1h"),
    ("_time:[2024-03-01, now-1h)", "_time:[2024-03-01, now-1h)"),
    ("_time:(1709251200, 2h]", "_time:(1709251200, now-2h]"),
    ("_time:>=2024-03-05T10:00:00+02:00", "_time:>=2024-03-05T10:00:00+02:00"),
    ("_time:>now-1h _time:now+1h", "_time:>now-1h _time:now+1h"),
    ("_time:offset 8d", "_time:offset 8d"),
    ("_time:day_range(08:00, 24:00]", "_time:day_range(08:00, 24:00]"),
    (
        "_time:week_range[mon, Friday) offset 1h",
        "_time:week_range[Mon, Fri) offset 3600000000000ns",
    ),
    // Subqueries and options.
    ("f:in(a | fields g)", "f:in(a | fields g)"),
    ("f:contains_any(a | uniq by (g);)", "f:contains_any(a | uniq by (g))"),
    ("options(concurrency=2, time_offset=7d,) a", "options(concurrency=2, time_offset=7d) a"),
    ("options(global_filter=(a or b)) c;", "options(global_filter=(a or b)) c"),
    // Pipes.
    ("* | keep a, b* | rm c | DROP d", "* | fields a, b* | delete c | delete d"),
    ("* | mv a as b, c* d* | cp x y", "* | rename a as b, c* as d* | copy x as y"),
    ("* | where a | f:b | !c | \"d\"", "* | filter a | filter f:b | filter !c | filter d"),
    ("* | head | skip 1KB", "* | limit 10 | offset 1000"),
    ("* | sort by (a desc, b) desc offset 1 limit 2", "* | sort by (a, b desc) offset 1 limit 2"),
    (
        "* | order (a) partition by (b) limit 1 rank r",
        "* | sort by (a) partition by (b) limit 1 rank as r",
    ),
    (
        "* | first 2 by (a) | last by (b) rank",
        "* | sort by (a) limit 2 | sort by (b desc) limit 1 rank as \"rank\"",
    ),
    ("* | uniq a, b hits limit 5", "* | uniq by (a, b) with hits limit 5"),
    ("* | top hits rank as r", "* | top 10 by (\"hits\") hits as hitss rank as r"),
    (
        "* | by (a:1h offset 5m, _time:month, ip:/24) count()",
        "* | stats by (a:1h offset 5m, _time:month, ip:/24) count(*) as \"count(*)\"",
    ),
    (
        "* | count(a) if (b) c, quantile(0.5, d) e",
        "* | stats count(a) if (b) as c, quantile(0.5, d) as e",
    ),
    (
        "* | stats count() switch(case (a) x, default y)",
        "* | stats count(*) if (a) as x, count(*) if (!a) as y",
    ),
    (
        "* | json_values(a) sort by (b desc) limit 2 as c",
        "* | stats json_values(a) sort by (b desc) limit 2 as c",
    ),
    (
        "* | running_stats by (a) sum(b), last(c) offset 2 as d",
        "* | running_stats by (a) sum(b) as \"sum(b)\", last(c) offset 2 as d",
    ),
    ("* | total_stats count()", "* | total_stats count(*) as \"count(*)\""),
    ("* | math a + b * -2 ^ (c - 1) as d", "* | math a + b * -2 ^ (c - 1) as d"),
    ("* | eval x default 1e-5", "* | math x default \"1e-5\" as \"x default \\\"1e-5\\\"\""),
    (
        "* | math a - (b - c), max(a, 1KB) m",
        "* | math a - (b - c) as \"a - (b - c)\", max(a, 1KB) as m",
    ),
    (
        "* | extract if (a) \"x=<y> \" from b skip_empty_results",
        "* | extract if (a) \"x=<y> \" from b skip_empty_results",
    ),
    ("* | extract_regexp `(?P<a>.)`", "* | extract_regexp \"(?P<a>.)\""),
    (
        "* | format \"<q:a>\" b keep_original_fields",
        "* | format \"<q:a>\" as b keep_original_fields",
    ),
    ("* | replace (a, b) at c limit 1", "* | replace (\"a\", \"b\") at c limit 1"),
    ("* | replace_regexp (\"a+\", \"$0\")", "* | replace_regexp (\"a+\", \"$0\")"),
    (
        "* | unpack_json a fields (b, c*) result_prefix p.",
        "* | unpack_json from a fields (b, c*) result_prefix p.",
    ),
    ("* | unpack_syslog offset 1h", "* | unpack_syslog offset 1h"),
    ("* | unpack_words a as b drop_duplicates", "* | unpack_words from a as b drop_duplicates"),
    ("* | unroll (a, b)", "* | unroll by (a, b)"),
    ("* | pack_json fields (a*) as b", "* | pack_json fields (a*) as b"),
    (
        "* | len a b | hash(c) | json_array_len(d) as e",
        "* | len(a) as b | hash(c) | json_array_len(d) as e",
    ),
    ("* | facets 5 max_value_len 9", "* | facets 5 max_values_per_field 1000 max_value_len 9"),
    (
        "* | field_names filter a as n | field_values f filter b limit 2",
        "* | field_names filter \"a\" as n | field_values f filter \"b\" limit 2",
    ),
    (
        "* | join by (a) (b | fields a) inner prefix x",
        "* | join by (a) (b | fields a) inner prefix x",
    ),
    ("* | union rows({a=1, \"b c\":2} {})", "* | union rows({a=\"1\", \"b c\"=\"2\"}, {})"),
    (
        "a | stream_context before 1 time_window 1m",
        "a | stream_context before 1 after 0 time_window 1m",
    ),
    ("* | coalesce(a, b*) default x as y", "* | coalesce(a, b*) default x as y"),
    ("* | split , from a | json_array_concat | time_add -1h at t", ""),
    (
        "* | split \",\" from a | json_array_concat | time_add -1h at t",
        "* | split \",\" from a | json_array_concat \"\" | time_add -1h at t",
    ),
    (
        "* | set_stream_fields if (a) b, c* | generate_sequence 3",
        "* | set_stream_fields if (a) b, c* | generate_sequence 3",
    ),
    (
        "* | collapse_nums at a prettify | decolorize | drop_empty_fields",
        "* | collapse_nums at a prettify | decolorize _msg | drop_empty_fields",
    ),
    ("* | sample 2 | query_stats", "* | sample 2 | query_stats"),
    ("* | block_stats | blocks_count n", "* | block_stats | blocks_count as n"),
    ("patterns | patterns by (a)", "\"patterns\" | patterns by (a)"),
];

#[test]
fn spellings_print_canonically() {
    for (text, printed) in SPELLINGS {
        if printed.is_empty() {
            refused(text);
            continue;
        }
        let query = parse(text);
        assert_eq!(query.to_string(), *printed, "{text}");
        assert_eq!(parse(printed), query, "{printed}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn printed_queries_parse_to_the_same_tree(
        query in queries(&Vocabulary::new(
            &["a", "b.c", "sp ace", "by", "_msg", "we:ird", "hits", "", "q\"uote"],
            &["", "error", "*", "and", "a b", "1.5", "-5", "\u{e4}", "\"", "\\", "x:y", "#", "\n"],
        )),
    ) {
        let printed = query.to_string();
        let again: Query = printed.parse().map_err(|e| TestCaseError::fail(format!("{e}")))?;
        prop_assert_eq!(&again, &query, "{}", printed);
        prop_assert_eq!(again.to_string(), printed);
    }

    #[test]
    fn any_text_parses_or_is_refused_in_place(text in "[ -~\u{e4}\n]{0,60}") {
        if let Err(error) = text.parse::<Query>() {
            prop_assert!(error.offset <= text.len());
            let _ = error.to_string();
        }
    }

    #[test]
    fn any_shuffle_of_the_language_parses_or_is_refused(
        parts in proptest::collection::vec(proptest::sample::select(vec![
            "(", ")", "[", "]", "{", "}", "|", "*", ",", ":", "=", "!", "~", "<", ">", "-", ";",
            "in", "stats", "by", "count", "_time", "5m", "a", "\"b\"", "or", "not", "if", "switch",
            "sort", "math", "as", "offset", "options", "_stream_id", "range", " ", " ", " ",
        ]), 0..24),
    ) {
        let text = parts.concat();
        if let Ok(query) = text.parse::<Query>() {
            let printed = query.to_string();
            prop_assert_eq!(parse(&printed), query, "{} -> {}", text, printed);
        }
    }
}

#[test]
fn errors_name_the_place_and_a_way_out() {
    for (text, at, message, hint) in [
        ("foo=bar", "=bar", "in a word", "foo:=bar"),
        ("foo = bar", "= bar", "unexpected `=`", "foo:=bar"),
        ("foo>=5", ">=5", "in a word", "foo:>"),
        ("say \"hello", "\"hello", "never closed", "other quotes"),
        ("a \"\\q\"", "\\q\"", "unknown escape", "back quotes"),
        ("a | limt 5", "limt", "unknown pipe", "`limit`"),
        ("a | stats cuont() x", "cuont", "unknown stats function", "`count`"),
        ("contians_any(a)", "contians_any", "no filter function", "`contains_any`"),
        ("a | math sqr(b)", "sqr", "no function", "abs"),
        ("options(concurency=1) a", "concurency", "unknown option", "`concurrency`"),
        ("f:~\"(a\"", "(a\"", "bad regular expression: unclosed group", "[(]"),
        ("f:~\"\\u00e4\\\\d(a\"", "(a\"", "unclosed group", "[(]"),
        ("f:~`\u{e4}\\d(a`", "(a`", "unclosed group", "[(]"),
        ("f:~\"a\\tb)\"", ")\"", "unopened group", "[)]"),
        ("f:~'x\\'*+'", "+'", "a repetition of a repetition", "(a+)*"),
        ("f:~\"*x\"", "*x", "nothing to repeat", "[*]"),
        ("a | extract_regexp \"(?P<n>a)[b\"", "[b\"", "missing ]", "[[]"),
        ("{a=~\"x|(y\"}", "(y\"", "unclosed group", "[(]"),
        ("{a=~\"x)|(y\"}", ")|(y", "unopened group", "[)]"),
        ("f:~\"a(?!b)\"", "(?!b", "look-around", "!~"),
        ("f:~\"(a)\\\\1\"", "\\\\1\"", "back-references", "RE2"),
        ("f:~\"a\\\\y\"", "\\\\y\"", "unknown escape", "RE2"),
        ("f:~\"ab(c{1000}){1000}\"", "ab(c", "too large", "less often"),
        ("stats count()", "stats", "cannot start with", "* | stats"),
        ("SELECT * FROM logs", "SELECT", "SQL", "quote \"select\""),
        ("{app=\"web\"} |= \"error\"", "|=", "unexpected `|=`", "\"error\" alone"),
        ("{app=\"web\"} |~ \"err.*\"", "|~", "unexpected `|~`", "~\"err.*\""),
        ("{app=\"web\"} != \"error\"", "!=", "unexpected `!=`", "!\"error\""),
        ("{app=\"web\"} !~ \"error\"", "!~", "unexpected `!~`", "!~\"error\""),
        ("a | json", "json", "unknown pipe", "unpack_json"),
        ("a | timechart span=5m count", "timechart", "unknown pipe", "stats by (_time:5m)"),
        ("index=main error", "=main", "in a word", "index:=main"),
        ("a | stats count by host", "count", "expected a stats function", "count()"),
        ("a | stats count() by host", "host", "behind the pipe", "in front of the functions"),
        ("a | stats count() n by (host)", "by", "behind the pipe", "in front of the functions"),
        ("a | stats by host count()", "host", "expected `(`", "by (host)"),
        ("a | stats p99(took)", "p99", "unknown stats function", "quantile(0.99, took)"),
        ("a | stats quantile(took, 0.99)", "took", "not a number", "quantile(0.99, took)"),
        ("a | sort -took", "-took", "behind the pipe", "sort by (took desc)"),
        ("a | sort took desc", "took", "behind the pipe", "sort by (took desc)"),
        ("a | fields - host", "host", "behind the pipe", "delete host"),
        ("a | fields a b", "b", "behind the pipe", "commas"),
        ("a | eval x = b + c", "= b", "the name of the result", "as x"),
        ("a | where status>=500", ">=500", "in a word", "status:>=500"),
        ("status >= 500", ">= 500", "unexpected `>`", "status:>=500"),
        ("a == b", "==", "unexpected `=`", "a:=b"),
        ("f:==b", "==", "unexpected `==`", "field:=value"),
        ("a && b", "&&", "unexpected `&&`", "`and` already"),
        ("a || b", "| b", "expected a pipe", "`or`"),
        ("status:[500 TO 600]", "[", "expected a filter", "range[500, 600]"),
        ("status:range[500 TO 600]", "TO", "expected `,`", "comma"),
        ("_exists_:host", "_exists_", "no field", "host:*"),
        ("/err.*/", "/", "missing white space", "~\""),
        ("f*o", "o", "missing white space", "~\""),
        ("a, b", ", b", "missing white space", "`or`"),
        ("contains(\"x\")", "contains", "no filter function", "*text*"),
        ("count(*)", "count", "cannot start with", "* | count(...)"),
        ("{app=\"web\" and b=\"c\"}", "and", "expected `,`", "commas"),
        ("(a or b", "", "expected `)`", "byte 0"),
        ("a)", ")", "unexpected `)`", "closes no parenthesis"),
        ("_time:yesterday", "yesterday", "not a time", "now-1h"),
        ("a | time_add 1000y", "1000y", "too long", "292y"),
        ("f:in(a | limit 3)", ")", "end in one field", "fields name"),
        ("a | format \"<qq:b>\"", "\"<qq:b>\"", "unknown option `qq`", "`q`"),
    ] {
        let error = refused(text);
        let rest = &text[error.offset..];
        assert!(rest.starts_with(at), "{text}: {rest}");
        assert!(error.message.contains(message), "{text}: {}", error.message);
        let given = error.hint.unwrap_or_default();
        assert!(given.contains(hint), "{text}: {given}");
    }
}

#[test]
fn nesting_is_bounded() {
    let nest =
        |open: &str, close: &str, n: usize| format!("{}a{}", open.repeat(n), close.repeat(n));
    parse(&nest("(", ")", 100));
    parse(&nest("f:in(", " | fields f)", 15));
    refused(&nest("f:in(", " | fields f)", 16));
    parse(&format!("{}a", "!".repeat(100_000)));
    for text in [
        nest("(", ")", 200_000),
        nest("f:(", ")", 200_000),
        nest("f:in(", " | fields f)", 50_000),
        format!("* | math {}", nest("(", ")", 200_000)),
        format!("* | math {}a", "-".repeat(200_000)),
        format!("* | math a{}", " + a".repeat(200_000)),
        "(".repeat(1 << 20),
        "a | union (".repeat(50_000),
        "options(global_filter=(".repeat(40_000),
        "f:".repeat(400_000),
    ] {
        let Err(error) = text.parse::<Query>() else { continue };
        assert!(!error.message.is_empty());
    }
}

#[test]
fn big_queries_are_linear_or_refused() {
    let words = parse(&"word ".repeat(100_000));
    assert!(matches!(words.filter, Filter::And(parts) if parts.len() == 100_000));
    let list = format!("f:in({}z)", "v,".repeat(200_000));
    parse(&list);
    // Copies of a long name, and copies of copies.
    refused(&format!("{}:({})", "n".repeat(100_000), "a ".repeat(100_000)));
    let mut text = "a".to_owned();
    for _ in 0..40 {
        text = format!("f:in(* | stats count() switch(case ({text}) x, default y) | fields f)");
    }
    refused(&text);
    refused(&"a".repeat((1 << 20) + 1));
    refused(&"~\"[\\\\p{L}]{1,1000}\" ".repeat(30_000));
}

#[test]
fn default_names_are_the_functions_text() {
    for (text, name) in [
        ("* | count()", "count(*)"),
        ("* | count_uniq(a, b.c) limit 2", "count_uniq(a, b.c) limit 2"),
        ("* | count(\"sp ace\")", "count(\"sp ace\")"),
        ("* | quantile(0.5, a)", "quantile(0.5, a)"),
        ("* | count() if (level:error)", "count(*) if (level:error)"),
    ] {
        let query = parse(text);
        let Some(Pipe::Stats { items, .. }) = query.pipes.first() else { panic!("{text}") };
        assert_eq!(items[0].result, name);
    }
    for text in ["* | stats by (a) count() a", "* | count() x, sum(b) x"] {
        refused(text);
    }
}

#[test]
fn subqueries_end_in_one_field() {
    let query = parse("u:in(level:error | uniq by (user))");
    let Filter::Field { predicate: Predicate::In(ValueSet::Query { field, .. }), .. } =
        query.filter
    else {
        panic!()
    };
    assert_eq!(field, "user");
    for text in ["u:in(a | fields *)", "u:in(a | fields b, c)", "u:in(a | uniq by (b) hits)"] {
        refused(text);
    }
}

#[test]
fn builder_makes_what_the_parser_makes() {
    let built = Query::new((message().word("a") | field("f").one_of(["x"])) & !field("g").any())
        .filter(field("h").matches("^y").unwrap())
        .sort_by_desc(["f"])
        .offset(1)
        .stats(["f"], [StatsItem::sum("n").only(Filter::word("b")).named("s")])
        .top(3, ["f"])
        .uniq_by(["f"]);
    let text = "(a or f:in(x)) !g:* | filter h:~\"^y\" | sort by (f desc) | offset 1 \
                | stats by (f) sum(n) if (b) as s | top 3 by (f) hits as \"hits\" | uniq by (f)";
    assert_eq!(built.to_string(), text);
    assert_eq!(parse(text), built);
    assert!(field("f").matches("(").is_err());
}
