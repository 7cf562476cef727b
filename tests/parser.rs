//! The parser against every text: no panic, no overflow of the stack, no long run; and what it
//! says about texts that it refuses.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use loglith::{Query, QueryError};
use proptest::prelude::*;
use proptest::sample::{Index, select};

/// Much more than any text may take, in a build without optimisation on a busy machine.
const LONG: Duration = Duration::from_secs(20);
/// Less than the threads of most programs have.
const STACK_BYTES: usize = 1 << 20;
const LONGEST_TEXT: usize = 1 << 20;

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

/// Queries that people write, from the golden cases.
fn real_queries() -> Vec<String> {
    let text = fs::read_to_string(data("golden/cases.jsonl")).unwrap();
    let query = |line: &str| {
        let case: serde_json::Value = serde_json::from_str(line).unwrap();
        case["query"].as_str().unwrap().to_owned()
    };
    text.lines().map(query).collect()
}

/// Parses; what parses must print as text that parses to the same, what does not must say where.
fn check(text: &str) -> Result<(), TestCaseError> {
    let started = Instant::now();
    match text.parse::<Query>() {
        Ok(query) => {
            let printed = query.to_string();
            let again = printed.parse::<Query>();
            prop_assert_eq!(again.as_ref(), Ok(&query), "{} prints as {}", text, printed);
        }
        Err(error) => {
            prop_assert!(text.is_char_boundary(error.offset), "{}", text);
            prop_assert!(!error.message.is_empty());
            prop_assert!(error.to_string().len() < 2_000, "{}", error);
        }
    }
    prop_assert!(started.elapsed() < LONG, "{} took {:?}", text, started.elapsed());
    Ok(())
}

/// A change that a typing error or an attacker makes.
#[derive(Debug, Clone)]
enum Change {
    Delete(Index, usize),
    Double(Index, usize),
    Insert(Index, &'static str),
    Cut(Index),
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    let tokens = select(vec![
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        "|",
        "*",
        ",",
        ":",
        "=",
        "!",
        "~",
        "<",
        ">",
        "-",
        ";",
        "\"",
        "'",
        "`",
        "\\",
        "#",
        " ",
        "\n",
        "\0",
        "not ",
        "or ",
        "in(",
        "if (",
        "by (",
        " as ",
        "_time:",
        "5m",
        "1e999",
        "options(",
        "\u{1f600}",
        "switch(",
        "rows(",
        "limit ",
        "-9223372036854775808",
    ]);
    let change = prop_oneof![
        (any::<Index>(), 1..6usize).prop_map(|(i, n)| Change::Delete(i, n)),
        (any::<Index>(), 1..9usize).prop_map(|(i, n)| Change::Double(i, n)),
        (any::<Index>(), tokens).prop_map(|(i, t)| Change::Insert(i, t)),
        any::<Index>().prop_map(Change::Cut),
    ];
    proptest::collection::vec(change, 1..5)
}

fn changed(text: &str, changes: &[Change]) -> String {
    let mut chars: Vec<char> = text.chars().collect();
    for change in changes {
        let len = chars.len() + 1;
        match change {
            Change::Delete(at, n) => {
                let at = at.index(len);
                drop(chars.drain(at..(at + n).min(chars.len())));
            }
            Change::Double(at, n) => {
                let at = at.index(len);
                let part = chars[at..(at + n).min(chars.len())].to_vec();
                drop(chars.splice(at..at, part));
            }
            Change::Insert(at, token) => {
                let at = at.index(len);
                drop(chars.splice(at..at, token.chars()));
            }
            Change::Cut(at) => chars.truncate(at.index(len)),
        }
    }
    chars.into_iter().collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        check(&String::from_utf8_lossy(&bytes))?;
    }

    #[test]
    fn any_characters(text in "\\PC{0,80}") {
        check(&text)?;
    }

    #[test]
    fn queries_with_errors(query in select(real_queries()), changes in changes()) {
        check(&changed(&query, &changes))?;
    }

    #[test]
    fn queries_glued_together(
        a in select(real_queries()),
        b in select(real_queries()),
        glue in select(vec!["", " ", " | ", " or ", " in(", "(", "\n"]),
    ) {
        check(&format!("{a}{glue}{b}"))?;
        check(&format!("f:in({a})"))?;
        check(&format!("* | union ({a}) | filter {b}"))?;
    }
}

/// Runs `work` where the stack is small.
fn on_a_small_stack(work: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(work).unwrap();
    thread.join().unwrap();
}

#[test]
fn depth_overflows_no_stack() {
    on_a_small_stack(|| {
        for (open, close) in [
            ("(", ")"),
            ("not ", ""),
            ("!", ""),
            ("-", ""),
            ("!(", ")"),
            ("f:(", ")"),
            ("f:!(", ")"),
            ("f:in(", " | fields f)"),
            ("a | union (", ")"),
            ("a | join by (x) (", ")"),
            ("a | filter (", ")"),
            ("* | stats count() if (", ") x"),
            ("* | stats count() switch(case (", ") x)"),
            ("options(global_filter=(", ")) b"),
            ("* | math (", ") as x"),
            ("* | math -", ""),
            ("* | math a ^ ", ""),
            ("* | math max(", ", b)"),
            ("{a in (", ")}"),
            ("a or (b ", ")"),
            ("a (b or ", ")"),
            ("_stream_id:in(", " | fields _stream_id)"),
            ("~\"(", ")\""),
            ("\"", "\""),
            ("f:", ""),
        ] {
            for depth in [1, 15, 16, 118, 119, 120, 121, 1_000, 100_000] {
                let text = format!("{}a{}", open.repeat(depth), close.repeat(depth));
                if text.len() <= 2 * LONGEST_TEXT {
                    check(&text).unwrap_or_else(|e| panic!("{open} {depth}: {e}"));
                }
            }
        }
    });
}

#[test]
fn nested_expressions_overflow_no_stack() {
    on_a_small_stack(|| {
        for (open, close) in [("(", ")"), ("(?:", ")*"), ("(a|", ")"), ("[^", "]"), ("(?i", ")")] {
            for depth in [10, 300, 20_000] {
                check(&format!("~`{}a{}`", open.repeat(depth), close.repeat(depth))).unwrap();
                check(&format!("{{a=~`{}a{}`}}", open.repeat(depth), close.repeat(depth))).unwrap();
            }
        }
    });
}

#[test]
fn long_texts_are_read_or_refused_soon() {
    on_a_small_stack(|| {
        for (head, piece, tail) in [
            ("", "word ", ""),
            ("", "a or ", "b"),
            ("", "!a ", ""),
            ("f:in(", "v,", "w)"),
            ("{a=\"b\"", ",a=\"b\"", "}"),
            ("{a=\"b\"", " or a=\"b\"", "}"),
            ("", "a-", "b"),
            ("*", " | limit 5", ""),
            ("* | stats count() x", ", count() x", ""),
            ("* | fields a", ", b", ""),
            ("* | sort by (a", ", b", ")"),
            ("", "*a* ", ""),
            ("* | math a", " + a", " as x"),
            ("* | extract \"", "<a>b", "\""),
            ("", "_time:5m ", ""),
            ("* | format \"", "<q:a>", "\""),
            ("pattern_match(\"", "<N>", "\")"),
            ("", "#\n", "a"),
            ("contains_common_case(", "ABCDEFGHIJ,", "A)"),
            ("", "~\"a+b\" ", ""),
            ("\"", "\\n", "\""),
            ("seq(", "a,", "b)"),
            ("* | union rows(", "{a=1},", "{b=2})"),
            ("", "f:(a b) ", ""),
            ("* | rename a as b", ", a as b", ""),
            ("f:range(1", "0", ", 5)"),
            ("f:>1", "0", ""),
            ("_time:2024", "0", ""),
            ("_time:1", "h1", "h"),
            ("f:ipv4_range(1.", "1.", "1)"),
        ] {
            let times = (LONGEST_TEXT - head.len() - tail.len()) / piece.len();
            for times in [times, times + 10] {
                let text = format!("{head}{}{tail}", piece.repeat(times));
                let started = Instant::now();
                let parsed = text.parse::<Query>();
                if text.len() > LONGEST_TEXT {
                    assert!(parsed.is_err(), "{head}{piece}");
                }
                let taken = started.elapsed();
                assert!(taken < LONG, "{head}{piece} took {taken:?}");
            }
        }
    });
}

/// Texts that are refused. The expected messages are in `tests/data/query_errors.txt`;
/// `UPDATE_EXPECTED=1` writes them anew, to be read before they are kept.
const REFUSED: &[&str] = &[
    "foo=bar",
    "foo = bar",
    "foo==bar",
    "foo!=bar",
    "foo>5",
    "foo=~\"x\"",
    "foo ~ \"x\"",
    "foo:==bar",
    "level:error and",
    "a or",
    "not",
    "(a or b",
    "a or b)",
    "f:(a",
    "f:in(a, b",
    "f:in(a | fields *)",
    "f:in(a | limit 3)",
    "\"never closed",
    "'never closed",
    "`never closed",
    "\"bad \\q escape\"",
    "~\"(a\"",
    "~\"(?=a)\"",
    "{app=web",
    "{app web}",
    "app:{a=\"b\"}",
    "_stream:web",
    "_time:yesterday",
    "_time:5",
    "_time:[2024-01-01, 2024-02-01",
    "_time:week_range[Mon, Foo]",
    "_time:day_range[25:00, 26:00]",
    "f:>",
    "f:range(a, b)",
    "f:range(1 2)",
    "f:ipv4_range(1.2.3)",
    "f:ipv6_range(\"::1/129\")",
    "f:len_range(a, b)",
    "*foo",
    "error(abc)",
    "contians_any(a)",
    "equals_common_case(ABCDEFGHIJKLM)",
    "stats count()",
    "error || warn",
    "error | grep foo",
    "error | limt 5",
    "error | limit ten",
    "error | limit -1",
    "error |",
    "error | | limit 5",
    "error | word",
    "* | sort by a desc",
    "* | sort by (a dsc)",
    "* | sort by (a*)",
    "* | stats",
    "* | stats by (host)",
    "* | stats cuont() x",
    "* | stats count( x",
    "* | stats count() as x, sum(b) as x",
    "* | stats by (a) count() a",
    "* | stats quantile(2, a)",
    "* | stats count() switch()",
    "* | fields",
    "* | fields a b",
    "* | rename a",
    "* | uniq by a*",
    "* | top 0",
    "* | math",
    "* | math a +",
    "* | math sqr(a)",
    "* | math (a + b",
    "* | extract \"no placeholder\"",
    "* | extract \"<a><b>\"",
    "* | extract_regexp \"(a)\"",
    "* | format \"<qq:a>\"",
    "* | format <a>",
    "* | replace (a)",
    "* | join (a)",
    "* | patterns by (app, hits)",
    "* | patterns new",
    "* | patterns since 1h",
    "* | patterns new since",
    "* | patterns new since yesterday",
    "* | patterns new against error",
    "* | union a",
    "* | unroll",
    "* | split",
    "* | time_add soon",
    "* | limit 5 | stream_context before 1",
    "* | generate_sequence 0",
    "options(concurency=1) *",
    "options(time_offset=x) *",
    "options(global_filter=(a or f:in(b | fields f))) *",
    "limit=10",
    "error | limit=10",
    "error | head -n 5",
    "foo~1",
    "\"two words\"~5",
    "foo AND NOT",
    "foo AND (bar OR",
    "field:",
    "field:=",
    "field:=>5",
    "select * from logs",
    "{a=\"b\"} |= \"x\"",
    "{a=\"b\"} != \"x\"",
    "rate({a=\"b\"}[5m])",
    "sum by (host) (took)",
    "[a TO b]",
    "status:[400 TO 499]",
    "status:{400 TO 499}",
    "select(.level==\"error\")",
    "* | select(.took > 5)",
    "error | jq .msg",
    "error | wc -l",
    "/err.*/",
    "f:/err.*/",
    "fo*o",
    "f:in(a b)",
    "error; limit 5",
    "!= | limit 5",
    "a\n  b or\n    )",
    "caf\u{e9} \u{65e5}\u{672c} = x",
];

fn said(text: &str) -> String {
    match text.parse::<Query>() {
        Ok(query) => format!("reads as: {query}"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn refusals_say_where_and_why() {
    let mut have = String::new();
    for text in REFUSED {
        writeln!(have, "# {}\n{}\n", text.escape_debug(), said(text)).unwrap();
    }
    let path = data("query_errors.txt");
    if std::env::var_os("UPDATE_EXPECTED").is_some() {
        fs::write(&path, &have).unwrap();
    }
    let want = fs::read_to_string(&path).unwrap();
    for (want, have) in want.split("\n\n").zip(have.split("\n\n")) {
        assert_eq!(want, have);
    }
    assert_eq!(want, have);
}

#[test]
fn every_refusal_points_at_its_place() {
    for text in REFUSED {
        let Err(QueryError { offset, query, .. }) = text.parse::<Query>() else {
            panic!("{text} is accepted");
        };
        assert!(query == *text && text.is_char_boundary(offset), "{text}");
        let shown = text.parse::<Query>().unwrap_err().to_string();
        let lines: Vec<&str> = shown.lines().collect();
        let caret = lines.iter().position(|l| l.trim() == "^").unwrap_or_else(|| panic!("{shown}"));
        let column = lines[caret].chars().count() - 1;
        let under: String = lines[caret - 1].chars().skip(column).collect();
        assert!(text[offset..].starts_with(under.trim_end()), "{shown}");
    }
}
