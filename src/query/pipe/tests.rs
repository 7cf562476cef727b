//! Every pipe by table, and what must hold for all of them: layout never changes an answer.

use proptest::prelude::*;

use super::testing::{Layout, Row, Rows};

/// `name=value` pairs sorted by name, blanks of values as `~`.
fn print(rows: &[Row]) -> Vec<String> {
    let pair = |(name, value): (&String, &String)| format!("{name}={}", value.replace(' ', "~"));
    rows.iter().map(|r| r.iter().map(pair).collect::<Vec<_>>().join(" ")).collect()
}

#[track_caller]
fn check(lines: &[&str], query: &str, want: &[&str]) {
    let rows = Rows::lines(lines);
    assert_eq!(print(&rows.run(query)), want, "{query}");
    for layout in [
        Layout { batch_rows: 1, forms: 1, prune: true, ..Layout::default() },
        Layout { batch_rows: 2, forms: 2, workers: 2, prune: true, ..Layout::default() },
        Layout { batch_rows: 3, forms: 3, workers: 3, ..Layout::default() },
        Layout { forms: 1, ..Layout::default() },
    ] {
        assert_eq!(print(&rows.run_as(query, layout)), want, "{query} {layout:?}");
    }
}

const ABC: [&str; 5] = ["a=1 b=x", "a=2 b=y", "a=10 b=x", "b=z c=1.5s", "a=2 c=2"];

#[test]
fn columns_move() {
    check(&ABC, "* | fields a, nosuch", &["a=1", "a=2", "a=10", "", "a=2"]);
    check(&ABC, "* | delete _time, a* | limit 2", &["c=2", "b=z c=1.5s"]);
    check(
        &ABC[..2],
        "* | rename a as b | fields *",
        &["_time=2024-03-05T00:00:00Z b=1", "_time=2024-03-05T00:00:01Z b=2"],
    );
    check(&ABC[3..4], "* | rename a as b | fields b, c", &["c=1.5s"]);
    check(&ABC[..1], "* | rename a as t, b as a, t as b | fields a, b", &["a=x b=1"]);
    check(&ABC[..1], "* | fields a, b | rename * as p.*", &["p.a=1 p.b=x"]);
    check(&ABC[..1], "* | rename _t* as * | fields ime", &["ime=2024-03-05T00:00:00Z"]);
    check(&["x1=a y1=old y2=keep"], "* | fields x*, y* | copy x* as y*", &["x1=a y1=a y2=keep"]);
    check(&["x1=a y1=old", "y1=keep"], "* | copy x* as y* | fields y1", &["y1=a", "y1=keep"]);
}

#[test]
fn rows_are_chosen() {
    check(&ABC, "* | filter a:>1 | fields a", &["a=2", "a=10", "a=2"]);
    check(&ABC, "* | fields c | drop_empty_fields", &["c=1.5s", "c=2"]);
    check(&ABC, "* | limit 2 | fields a, b", &["a=2", "b=z"]);
    check(&ABC, "* | offset 3 | fields a, b", &["a=2 b=y", "a=1 b=x"]);
    check(&ABC, "* | sort by (_time) | offset 1 | limit 2 | fields a", &["a=2", "a=10"]);
    check(&ABC, "* | limit 0", &[]);
    check(&ABC, "* | sample 1 | stats count() n", &["n=5"]);
}

#[test]
fn sorts() {
    check(
        &ABC,
        "* | sort by (a, _time desc) | fields a, b, c",
        &["b=z c=1.5s", "a=1 b=x", "a=2 c=2", "a=2 b=y", "a=10 b=x"],
    );
    check(
        &ABC,
        "* | sort by (a desc, b) limit 2 offset 1 rank as r | fields a, c, r",
        &["a=2 c=2 r=2", "a=2 r=3"],
    );
    check(
        &ABC,
        "* | sort by (a) partition by (b) limit 1 | fields a, b",
        &["b=z", "a=1 b=x", "a=2 b=y", "a=2"],
    );
    check(&ABC, "* | first 1 by (c desc) | fields c", &["c=1.5s"]);
    check(&ABC, "* | last 2 by (a) rank as r | fields a, r", &["a=10 r=1", "a=2 r=2"]);
    check(
        &["a=90s n=2", "a=1m30s n=1", "a=1m n=9"],
        "* | sort by (a, n) limit 3 | fields n",
        &["n=9", "n=1", "n=2"],
    );
    check(&["a=2 b=1", "a=1 b=9"], "* | fields a, b | sort", &["a=1 b=9", "a=2 b=1"]);
}

#[test]
fn counts_values() {
    check(
        &ABC,
        "* | uniq by (a) with hits",
        &["a=2 hits=2", "hits=1", "a=1 hits=1", "a=10 hits=1"],
    );
    check(&ABC, "* | uniq by (a, b) limit 2", &["b=z", "a=1 b=x"]);
    check(&ABC, "* | top 2 by (b) rank as r", &["b=x hits=2 r=1", "hits=1 r=2"]);
    check(&["hits=5", "hits=5"], "* | top by (hits)", &["hits=5 hitss=2"]);
    check(&ABC, "* | field_values a filter 1", &["a=1 hits=1", "a=10 hits=1"]);
    check(
        &ABC,
        "* | field_names",
        &["hits=5 name=_time", "hits=4 name=a", "hits=4 name=b", "hits=2 name=c"],
    );
    check(&ABC, "* | field_names filter c as f", &["f=c hits=2"]);
    check(
        &ABC,
        "* | fields a, b | facets 1",
        &["field_name=a field_value=2 hits=2", "field_name=b field_value=x hits=2"],
    );
    check(&["a=1 b=x", "a=1 b=y"], "* | fields a, b | facets max_values_per_field 1", &[]);
    check(
        &["a=1"],
        "* | fields a | facets keep_const_fields",
        &["field_name=a field_value=1 hits=1"],
    );
    check(
        &["_msg=user~u1~in", "_msg=user~u_22~in", "_msg=up"],
        "* | patterns | fields pattern, hits, share, example",
        &[
            "example=user~u_22~in hits=2 pattern=user~<W>~in share=0.666667",
            "example=up hits=1 pattern=up share=0.333333",
        ],
    );
}

#[test]
fn extracts() {
    let lines = ["_msg=ip=1.2.3.4~user=\"a~b\"~x k=old", "_msg=none k=old"];
    check(&lines, r#"* | extract "ip=<ip> user=<k> " | fields ip, k"#, &["ip=1.2.3.4 k=a~b", ""]);
    check(&lines, r#"* | extract "ip=<ip> user=<plain:k> " | fields k"#, &["k=\"a", ""]);
    check(&lines, r#"* | extract "=<k> " skip_empty_results | fields k"#, &["k=1.2.3.4", "k=old"]);
    check(&lines, r#"* | extract "ip=<k> " keep_original_fields | fields k"#, &["k=old", "k=old"]);
    check(&lines, r#"* | extract if (user) "<k>=" | fields k"#, &["k=ip", "k=old"]);
    check(&["_msg=a-b-c"], r#"* | extract "<x>-<y>+<z>" | fields x, y, z"#, &["x=a"]);
    check(
        &lines,
        r#"* | extract_regexp "(?P<n>\\d)\\.(?P<m>\\d)" | fields n, m"#,
        &["m=2 n=1", ""],
    );
}

#[test]
fn formats() {
    let lines = ["a=ab<c n=1500 d=1h5m30s t=1709640000 h=6869zz u=a~b&c b=aGk= i=3232235521"];
    for (pattern, want) in [
        ("x <a> <_>y", "x~ab<c~y"),
        ("<q:a> <uc:a> <lc:a>", "\"ab\\u003cc\"~AB<C~ab<c"),
        ("<time:t>", "2024-03-05T12:00:00Z"),
        ("<duration:n> <duration:a>", "1\u{b5}s500ns~ab<c"),
        ("<duration_seconds:d>", "3930"),
        ("<ipv4:i>", "192.168.0.1"),
        ("<hexencode:a> <hexdecode:h>", "61623C63~hizz"),
        ("<hexnumencode:n> <hexnumdecode:n>", "00000000000005DC~5376"),
        ("<urlencode:u> <urldecode:u>", "a+b%26c~a~b&c"),
        ("<base64encode:a> <base64decode:b> <base64decode:a>", "YWI8Yw==~hi~ab<c"),
    ] {
        check(
            &lines,
            &format!("* | format \"{pattern}\" as r | fields r"),
            &[&format!("r={want}")],
        );
    }
    check(&ABC[..2], "* | format if (a:1) \"<a>!\" as b | fields b", &["b=1!", "b=y"]);
    check(&ABC[2..4], "* | format \"<a>\" as b keep_original_fields | fields b", &["b=x", "b=z"]);
    check(&ABC[2..4], "* | format \"<a>\" as b skip_empty_results | fields b", &["b=10", "b=z"]);
}

#[test]
fn unpacks() {
    let json = r#"_msg={"a":1.50,"b":{"c":"x","d":null},"e":[1,~2],"f":""} f=old"#;
    check(&[json], "* | unpack_json | delete _msg, _time", &["a=1.50 b.c=x e=[1,2]"]);
    check(&[json], "* | unpack_json fields (b*) result_prefix p. | fields p*", &["p.b.c=x"]);
    check(
        &[json],
        "* | unpack_json fields (bar, a) result_prefix foo_ | fields foo_a",
        &["foo_a=1.50"],
    );
    check(&[json], "* | unpack_json fields (f) keep_original_fields | fields f", &["f=old"]);
    let broken = ["_msg={\"a\":1 a=old", "_msg=x a=old", "_msg={\"a\":1,\"a\":2} a=old"];
    check(&broken, "* | unpack_json fields (a) | fields a", &["", "a=old", "a=2"]);
    let line = r#"_msg=level=warn~msg="a~b"~flag~empty=~path=/a=b"#;
    check(
        &[line],
        "* | unpack_logfmt | fields level, msg, flag, path",
        &["level=warn msg=a~b path=/a=b"],
    );
    let syslog = r#"_msg=<86>1~2024-03-01T04:02:47Z~h~app~7~ID~[m~s="3\"9"]~text~here"#;
    check(
        &[syslog],
        "* | unpack_syslog | delete _msg, _time",
        &["app_name=app facility=10 facility_keyword=authpriv format=rfc5424 hostname=h \
             level=info \
         m.s=3\"9 message=text~here msg_id=ID priority=86 proc_id=7 severity=6 \
         timestamp=2024-03-01T04:02:47Z"],
    );
    check(
        &["_msg=<13>Mar~~1~04:06:22~host~cron[47]:~done"],
        "* | unpack_syslog | fields timestamp, hostname, app_name, proc_id, message",
        &["app_name=cron hostname=host message=done proc_id=47 timestamp=2024-03-01T04:06:22Z"],
    );
    check(
        &["_msg=no~header"],
        "* | unpack_syslog | fields format, message",
        &["format=rfc3164 message=no~header"],
    );
    check(&["_msg=a-b,~a_1"], "* | unpack_words as w | fields w", &[r#"w=["a","b","a_1"]"#]);
    check(
        &["_msg=a~b~a"],
        "* | unpack_words drop_duplicates | fields _msg",
        &[r#"_msg=["a","b"]"#],
    );
}

#[test]
fn unrolls_and_packs() {
    let lines = [r#"n=1 a=["x",2,{"k":~1}] b=["p"]"#, "n=2 a=no", r#"n=3 a=[] b=[null]"#];
    check(
        &lines,
        "* | unroll by (a, b) | fields n, a, b",
        &["a=x b=p n=1", "a=2 n=1", "a={\"k\":1} n=1", "n=2", "b=null n=3"],
    );
    check(&lines, "* | unroll if (n:1) by (b) | fields n, b", &["b=p n=1", "n=2", "b=[null] n=3"]);
    check(&lines, "* | unroll by (a) | limit 2 | fields n, a", &["n=3", "n=2"]);
    check(
        &["a=1 b=x~y"],
        "* | pack_json fields (a, b*, no) as j | fields j",
        &[r#"j={"a":"1","b":"x~y"}"#],
    );
    check(
        &["a=1 b=x~y c=p=q"],
        "* | pack_logfmt fields (a, b, c) as j | fields j",
        &[r#"j=a=1~b="x~y"~c=p=q"#],
    );
    check(&["a=1"], "* | pack_json fields (no) as a | fields a", &["a={}"]);
}

#[test]
fn texts_change() {
    check(&["a=oxo"], r#"* | replace ("o", "0") at a limit 1 | fields a"#, &["a=0xo"]);
    check(
        &["a=oxo", "a=xo"],
        r#"* | replace if (a:oxo) ("o", "") at a | fields a"#,
        &["a=x", "a=xo"],
    );
    check(
        &["a=k1=v1"],
        r#"* | replace_regexp ("(?P<k>\\w)(\\d)", "$2${k}$$") at a | fields a"#,
        &["a=1k$=1v$"],
    );
    check(&["a=\u{1b}[31mred\u{1b}[0m"], "* | decolorize a | fields a", &["a=red"]);
    check(
        &["a=deadbeef~0x1F~v12~temp_23~exceeded~10.2.3.4:80"],
        "* | collapse_nums at a | fields a",
        &["a=<N>~0x1F~v<N>~temp_23~ex<N>~<N>.<N>.<N>.<N>:<N>"],
    );
    check(
        &["a=2024-03-05T10:11:12.5Z~10.2.3.4~2024/01/02"],
        "* | collapse_nums at a prettify | fields a",
        &["a=<DATETIME>~<IP4>~<DATE>"],
    );
    check(&["a=h\u{e9}"], "* | len(a) as n | fields n", &["n=3"]);
    check(
        &["a=x"],
        "* | hash(a) as h | hash(no) as g | filter g:eq_field(h) | stats count() n",
        &["n=0"],
    );
    check(&["a=[1,[2],3]", "a=x"], "* | json_array_len(a) as n | fields n", &["n=3", "n=0"]);
    check(
        &[r#"a=["a",1,{"x":2}]"#, "a=x"],
        "* | json_array_concat \"-\" from a as r | fields r",
        &[r#"r=a-1-{"x":2}"#, ""],
    );
    check(&["a=a,,b,"], "* | split \",\" from a as r | fields r", &[r#"r=["a","","b",""]"#]);
    check(&["a=h\u{e9}"], "* | split \"\" from a | fields a", &["a=[\"h\",\"\u{e9}\"]"]);
    check(&["x=1"], "* | time_add -1h | fields _time", &["_time=2024-03-04T23:00:00Z"]);
    check(
        &["b1=B", "c=C", ""],
        "* | coalesce(a, b*, c) default z as r | fields r",
        &["r=B", "r=C", "r=z"],
    );
    check(
        &["a=1 b=2 _stream_id=x", "b=3 _stream_id=x"],
        "* | set_stream_fields if (a:1) b, a | fields _stream, _stream_id",
        &[r#"_stream={a="1",b="2"}"#, "_stream_id=x"],
    );
}

#[test]
fn calculates() {
    for (expr, want) in [
        ("1 + 2 * 3 ^ 2", "19"),
        ("2 ^ 3 ^ 2", "64"),
        ("7 % 0", "NaN"),
        ("-7 % 3", "-1"),
        ("1 / 0", "+Inf"),
        ("0.1 + 0.2", "0.30000000000000004"),
        ("a / 4", "2.5"),
        ("b default 7", "7"),
        ("max(a, b, 3)", "10"),
        ("min(a, 3)", "3"),
        ("round(1.25, 0.1)", "1.3"),
        ("round(-2.5)", "-3"),
        ("6 & 3 or 8 xor 1", "11"),
        ("d / 1s", "90"),
        ("abs(-a) + ceil(0.2) - floor(1.9) + ln(exp(2))", "12"),
        ("a * 0 * -1", "-0"),
    ] {
        check(
            &["a=10 d=1m30s"],
            &format!("* | math {expr} as r | fields r"),
            &[&format!("r={want}")],
        );
    }
    check(&ABC[..2], "* | math a * 2 as a, a + 1 as r | fields a, r", &["a=2 r=3", "a=4 r=5"]);
    check(&["a=1"], "* | math rand() as r | filter r:>=0 r:<1 | stats count() n", &["n=1"]);
}

#[test]
fn joins_and_unites() {
    let rows = ["k=1 a=x", "k=2 a=y", "k=1 b=z", "a=n"];
    check(
        &rows,
        "a:* | fields k, a | join by (k) (b:* | fields k, b, a)",
        &["a=x b=z k=1", "a=y k=2", "a=n"],
    );
    check(
        &rows,
        "a:* | fields k, a | join by (k) (b:* | fields k, b) inner prefix p.",
        &["a=x k=1 p.b=z"],
    );
    check(
        &rows,
        r#"a:x | fields k | join by (k) rows({k=1,v="a"},{k=1,v=b},{k=2,v=c})"#,
        &["k=1 v=a", "k=1 v=b"],
    );
    check(&rows, "a:x | fields a | union (b:z | fields b)", &["a=x", "b=z"]);
    check(&rows, r#"a:x | fields a | union rows({q="1"}) | stats count() n"#, &["n=2"]);
}

#[test]
fn follows_groups() {
    let rows = ["g=1 v=1", "g=2 v=5", "g=1 v=3", "g=1 v=x", "g=2"];
    check(
        &rows,
        "* | running_stats by (g) sum(v) s, count() n, max(v) m | fields g, s, n, m",
        &[
            "g=1 m=1 n=1 s=1",
            "g=1 m=3 n=2 s=4",
            "g=1 m=x n=3 s=4",
            "g=2 m=5 n=1 s=5",
            "g=2 m=5 n=2 s=5",
        ],
    );
    check(
        &rows,
        "* | total_stats by (g) sum(v) s, min(v) m, last(v) offset 1 l | fields g, s, m, l",
        &["g=1 l=3 m=1 s=4", "g=1 l=3 m=1 s=4", "g=1 l=3 m=1 s=4", "g=2 l=5 s=5", "g=2 l=5 s=5"],
    );
    check(
        &rows,
        "* | running_stats first(v) offset 1 f, last(v) l | fields f, l",
        &["l=1", "f=5 l=5", "f=5 l=3", "f=5 l=x", "f=5"],
    );
}

#[test]
fn reads_around_hits() {
    let rows = ["_msg=a", "_msg=b", "_msg=hit", "_msg=c", "_msg=hit~2", "_msg=d", "_msg=e"];
    check(
        &rows,
        "hit | stream_context before 1 after 1 | fields _msg",
        &["_msg=b", "_msg=hit", "_msg=c", "_msg=---", "_msg=hit~2", "_msg=d", "_msg=---"],
    );
    check(
        &rows,
        "e | stream_context before 2 | fields _msg, _time",
        &[
            "_msg=hit~2 _time=2024-03-05T00:00:04Z",
            "_msg=d _time=2024-03-05T00:00:05Z",
            "_msg=e _time=2024-03-05T00:00:06Z",
        ],
    );
    check(
        &rows,
        "a | stream_context before 1 after 9 time_window 2s | fields _msg",
        &["_msg=a", "_msg=b", "_msg=hit"],
    );
    let streams =
        ["_stream={s=\"b\"} _msg=x", "_stream={s=\"a\"} _msg=x", "_stream={s=\"b\"} _msg=y"];
    check(
        &streams,
        "x | stream_context after 1 | fields _msg, _stream",
        &[
            "_msg=x _stream={s=\"b\"}",
            "_msg=y _stream={s=\"b\"}",
            "_msg=--- _stream={s=\"b\"}",
            "_msg=x _stream={s=\"a\"}",
            "_msg=--- _stream={s=\"a\"}",
        ],
    );
}

#[test]
fn makes_rows() {
    check(&ABC, "* | generate_sequence 3", &["_msg=0", "_msg=1", "_msg=2"]);
    let rows = Rows::lines(&ABC);
    assert_eq!(print(&rows.run("* | blocks_count as n")), ["n=1"]);
    assert_eq!(print(&rows.run("* | query_stats | fields RowsFound")), ["RowsFound=0"]);
    let stats = rows.run("* | fields a | block_stats | fields field, rows");
    assert_eq!(print(&stats), ["field=a rows=5"]);
}

#[test]
fn memory_has_a_limit() {
    let wide: Vec<String> = (0..60).map(|i| format!("a={i}{}", "x".repeat(5_000))).collect();
    let lines: Vec<&str> = wide.iter().map(String::as_str).collect();
    let rows = Rows::lines(&lines).with_memory(100_000);
    for query in [
        "* | sort by (a)",
        "* | uniq by (a)",
        "* | stats values(a) v",
        "* | stats count_uniq(a) v",
        "* | running_stats count() n",
        "* | offset 1",
        "* | facets max_values_per_field 1000 max_value_len 100000",
        "* | join by (b) (* | fields a, b)",
    ] {
        let query = query.parse().unwrap();
        let result = rows.try_run(&query, Layout { batch_rows: 5, ..Layout::default() });
        assert!(matches!(result, Err(crate::Error::MemoryLimit { .. })), "{query}");
    }
    let top = "* | sort by (a desc) limit 2 | stats count() n".parse().unwrap();
    assert!(rows.try_run(&top, Layout { batch_rows: 5, ..Layout::default() }).is_ok());
}

/// Queries that between them use every pipe and function whose answer is the layout's business
/// by no excuse.
const QUERIES: [&str; 45] = [
    "* | sort by (a, b desc)",
    "* | sort by (b desc) limit 5 offset 2 rank as r",
    "* | sort by (a) partition by (g) limit 2",
    "* | sort",
    "* | limit 7",
    "* | offset 5 | limit 3 | fields a",
    "* | uniq by (g, a) with hits",
    "* | uniq by (a) limit 3",
    "* | top 3 by (b)",
    "* | facets 2 max_values_per_field 6",
    "* | field_names",
    "* | field_values b limit 4",
    "* | stats by (g) count() n, count(a) c, count_empty(a, b) e, count_uniq(a, b) u",
    "* | stats by (g, a) min(b) x, max(b, a) y, median(a) z, quantile(0.9, b) q",
    "* | stats sum(a, b) s, avg(b) a, stddev(a) d, sum_len(b) l, histogram(a) h",
    "* | stats by (g) values(a, b) v, uniq_values(b) u, values(b) limit 2 w",
    "* | stats by (g) json_values(a) v, json_values(a, b) sort by (b desc, a) limit 3 w",
    "* | stats by (g) row_any(a, b) x, row_min(b, a, b) y, row_max(a) z, any(b) t",
    "* | stats field_min(a, b) x, field_max(_time, b) y, count_uniq_hash(b) z, rate() r",
    "* | stats by (_time:5s, g) count() n, sum(a) if (b:*) s",
    "* | stats by (a:10, b:5) count() n",
    "* | stats count() switch(case (a:>3) x, case (b:*) y, default z)",
    "* | stats by (a) count() n | sort by (n desc, a) | limit 2",
    "* | unpack_json from b | stats by (k) count() n",
    "* | unpack_json if (g:1) from b fields (k) result_prefix p | fields a, pk",
    "* | extract \"<x>o<y>\" from b | uniq by (x, y)",
    "* | format \"<a>-<b>\" as a | uniq by (a)",
    "* | math a * 2 + b as m | stats by (m) count() n",
    "* | math rand() as m, rand() as o | fields m, o",
    "* | sample 3 | fields a, b",
    "* | replace (\"o\", \"0\") at b | collapse_nums at b | uniq by (b)",
    "* | rename a as b, g as a | uniq by (a, b)",
    "* | copy b* as a* | fields a, b",
    "* | rename a* as b*, b as c | fields b, c",
    "* | fields a, g | pack_json as j | uniq by (j) with hits",
    "* | pack_logfmt fields (a, g) as j | fields j",
    "* | join by (g) (* | stats by (g) count() n) | fields g, n, a",
    "* | union (* | fields a) | stats by (a) count() n",
    "* | running_stats by (g) sum(a) s, min(b) m, last(b) offset 1 l | fields g, s, m, l, a",
    "* | total_stats by (g) count(a) c, max(b) m, first(a) f | fields g, c, m, f",
    "* | coalesce(a, b) default d as a | uniq by (a) with hits",
    "* | drop_empty_fields | delete _time | len(b) as a | stats by (a) count() n",
    "a:>3 | stream_context before 1 after 1 | fields a, _msg, g",
    "* | unroll by (a, b) | limit 4",
    "* | hash(b) as h | split o from b as c | json_array_len(c) as d | uniq by (h, d)",
];

fn value() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => Just(String::new()),
        4 => (-3i32..15).prop_map(|n| n.to_string()),
        3 => prop::sample::select(vec![
            "1.0", "007", "1_000", "10KB", "1m", "90s", "1m30s", "inf", "1e3", "oxo", "Foo", "foo",
            "file10", "file2", "10.0.0.9", "2024-03-05T00:00:01Z", "[1,\"o\"]", "{\"k\":1}", "-0",
            "2024-03-05T00:00:01.50Z", "0.5", "12345678901234567890", "{\"k\":{\"l\":\"o\"}}",
        ]).prop_map(str::to_owned),
    ]
}

fn rows() -> impl Strategy<Value = Vec<Row>> {
    let row = (value(), value(), 0u8..3, 0u8..4, 0u8..2);
    prop::collection::vec(row, 1..40).prop_map(|list| {
        let row = |(i, (a, b, g, late, stream)): (usize, (String, String, u8, u8, u8))| {
            let second = i / 3 + usize::from(late);
            let mut row = Row::new();
            row.insert("_time".into(), format!("2024-03-05T00:00:{second:02}Z"));
            row.insert("_stream".into(), format!("{{s=\"{stream}\"}}"));
            for (name, value) in [("a", a), ("b", b), ("g", g.to_string())] {
                if !value.is_empty() {
                    row.insert(name.into(), value);
                }
            }
            row
        };
        list.into_iter().enumerate().map(row).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn layout_never_changes_an_answer(
        rows in rows(), batch_rows in 1usize..12, forms in 1u64..50, workers in 1usize..4,
    ) {
        let rows = Rows::new(rows);
        for query in QUERIES {
            let want = print(&rows.run(query));
            let layout = Layout { batch_rows, forms, workers, prune: true, places: true };
            let got = print(&rows.run_as(query, layout));
            prop_assert_eq!(got, want, "{}", query);
        }
    }

    #[test]
    fn forms_and_cuts_never_change_an_answer_of_rows_without_places(
        rows in rows(), batch_rows in 1usize..12, forms in 1u64..50,
    ) {
        let rows = Rows::new(rows);
        let plain = Layout { places: false, ..Layout::default() };
        for query in QUERIES.iter().filter(|q| !q.contains("stream_context")) {
            let want = print(&rows.run_as(query, plain));
            let layout = Layout { batch_rows, forms, prune: true, ..plain };
            let got = print(&rows.run_as(query, layout));
            prop_assert_eq!(got, want, "{}", query);
        }
    }
}
