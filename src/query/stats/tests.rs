//! Every function by table.

use crate::query::pipe::testing::{Layout, Rows};

const LINES: [&str; 6] = [
    "g=1 v=10 d=1m t=a",
    "g=1 v=9 d=90s t=b",
    "g=2 v=1.5 d=1m30s",
    "g=2 v=x t=a n=0",
    "v=-0 t=c n=007",
    "g=1 v=10 n=7",
];

#[track_caller]
fn check(lines: &[&str], function: &str, want: &str) {
    let rows = Rows::lines(lines);
    let query = format!("* | stats {function} r");
    for layout in [
        Layout::default(),
        Layout { batch_rows: 1, forms: 1, workers: 3, prune: true, ..Layout::default() },
        Layout { batch_rows: 2, forms: 2, workers: 2, prune: true, ..Layout::default() },
        Layout { batch_rows: 4, forms: 3, prune: true, ..Layout::default() },
        Layout { forms: 5, ..Layout::default() },
    ] {
        let got = rows.run_as(&query, layout);
        let value = got[0].get("r").map_or("", String::as_str);
        assert_eq!((got.len(), value), (1, want), "{query} {layout:?}");
    }
}

#[test]
fn means_are_rounded_once() {
    // The sum, 2^53 + 1, is no float.
    let lines = ["v=9007199254740991", "v=1", "v=1"];
    check(&lines, "avg(v)", "3002399751580331");
    check(&["v=0.1", "v=0.2"], "avg(v)", "0.15");
}

#[test]
fn functions_have_their_answers() {
    for (function, want) in [
        ("count()", "6"),
        ("count(t, n)", "5"),
        ("count_empty(g)", "1"),
        ("count_empty(t, n)", "1"),
        ("count_uniq(v)", "5"),
        ("count_uniq(g, t)", "6"),
        ("count_uniq(t)", "3"),
        ("count_uniq(v) limit 2", "2"),
        ("count_uniq_hash(v)", "5"),
        ("count_uniq_hash(g, t) limit 3", "3"),
        ("sum(v)", "30.5"),
        ("sum(d)", "240000000000"),
        ("sum(t)", "NaN"),
        ("sum(_time)", "NaN"),
        ("avg(v)", "6.1"),
        ("avg(nosuch)", "NaN"),
        ("min(v)", "-0"),
        ("max(v)", "x"),
        ("min(n)", ""),
        ("max(n)", "007"),
        ("max(d)", "1m30s"),
        ("min(_time)", "2024-03-05T00:00:00Z"),
        ("max(_time, v)", "x"),
        ("max(n*)", "007"),
        ("min(n*)", "0"),
        ("median(v)", "10"),
        ("quantile(0, v)", "-0"),
        ("quantile(1, v)", "x"),
        ("quantile(0.5, g)", "1"),
        ("quantile(0.3, d, v)", "-0"),
        ("quantile(0.9, d, v)", "90s"),
        ("median(_time)", "2024-03-05T00:00:03Z"),
        ("stddev(v)", "4.409081537009721"),
        ("stddev(t)", "NaN"),
        ("sum_len(t, n)", "9"),
        ("values(t)", r#"["a","b","","a","c",""]"#),
        ("values(t, g) limit 3", r#"["a","1","b"]"#),
        ("values(n*)", r#"["0","007","7"]"#),
        ("uniq_values(v)", r#"["-0","1.5","9","10","x"]"#),
        ("uniq_values(n, g) limit 3", r#"["0","1","2"]"#),
        ("uniq_values(nosuch)", "[]"),
        ("json_values(g, n) limit 2", r#"["{\"g\":\"1\"}","{\"g\":\"1\"}"]"#),
        ("json_values(v) sort by (v desc) limit 2", r#"["{\"v\":\"x\"}","{\"v\":\"10\"}"]"#),
        ("row_any(g, t)", r#"{"g":"1","t":"a"}"#),
        ("row_min(v, v, t)", r#"{"v":"-0","t":"c"}"#),
        ("row_max(d, d)", r#"{"d":"90s"}"#),
        ("row_max(_time, v)", r#"{"v":"10"}"#),
        ("row_min(nosuch, v)", "{}"),
        ("any(n)", "0"),
        ("any(nosuch)", ""),
        ("field_min(v, t)", "c"),
        ("field_max(_time, n)", "7"),
        ("field_max(nosuch, n)", ""),
        ("rate()", "6"),
        ("rate_sum(v)", "30.5"),
        ("histogram(nosuch)", "[]"),
        ("count() if (t:a)", "2"),
        ("sum(v) if (t:zz)", "NaN"),
        ("min(v) if (t:zz)", ""),
    ] {
        check(&LINES, function, want);
    }
}

#[test]
fn rates_divide_by_the_range_of_the_query() {
    let rows = Rows::lines(&LINES).with_range(0, 3_999_999_999);
    let got = rows.run("* | stats rate() r, rate_sum(v) s");
    assert_eq!((got[0]["r"].as_str(), got[0]["s"].as_str()), ("1.5", "7.625"));
}

#[test]
fn histograms_are_open_below_and_closed_above() {
    check(
        &["v=10", "v=10.5", "v=0", "v=1", "v=-4", "v=x", "v=1"],
        "histogram(v)",
        concat!(
            r#"[{"vmrange":"0...1.000e-09","hits":1},"#,
            r#"{"vmrange":"8.799e-01...1.000e+00","hits":2},"#,
            r#"{"vmrange":"8.799e+00...1.000e+01","hits":1},"#,
            r#"{"vmrange":"1.000e+01...1.136e+01","hits":1}]"#
        ),
    );
}

#[test]
fn sums_do_not_depend_on_order() {
    let values = ["0.1", "1e17", "0.2", "-1e17", "12345678901234567890123456789.5", "0.3"];
    let forward: Vec<String> = values.iter().map(|v| format!("v={v}")).collect();
    let backward: Vec<&str> = forward.iter().rev().map(String::as_str).collect();
    let forward: Vec<&str> = forward.iter().map(String::as_str).collect();
    check(&forward, "sum(v)", "12345678901234568000000000000");
    check(&backward, "sum(v)", "12345678901234568000000000000");
    check(&["v=0.1", "v=0.2", "v=-0.3"], "sum(v)", "0");
    check(&["v=1700000000000000001", "v=1700000000000000003"], "stddev(v)", "1");
}

#[test]
fn groups_and_buckets() {
    let lines = [
        "ip=10.1.2.3 n=-7 d=1h5m f=1.25",
        "ip=10.1.9.9 n=14 d=59s f=-0.1",
        "ip=x n=1_000 d= f=10KB",
    ];
    let run = |by: &str| {
        let rows = Rows::lines(&lines);
        let query = format!("* | stats by ({by}) count() n | sort by (n desc) | rm n");
        let show = |layout| {
            let rows = rows.run_as(&query, layout);
            let text = |r: &crate::query::pipe::testing::Row| {
                r.values().cloned().collect::<Vec<_>>().join(",")
            };
            rows.iter().map(text).collect::<Vec<_>>().join(" ")
        };
        let plain = show(Layout::default());
        let other = Layout { batch_rows: 2, forms: 3, workers: 2, ..Layout::default() };
        assert_eq!(show(other), plain, "{by}");
        plain
    };
    for (by, want) in [
        ("ip:/16", "10.1.0.0 x"),
        ("d:1m", " 0 1h5m"),
        ("f:0.5", "-0.5 1 10KB"),
        ("f:2.5 offset 1", "-1.5 1 10KB"),
        ("_time:2s", "2024-03-05T00:00:00Z 2024-03-05T00:00:02Z"),
        ("_time:1d offset 2h", "2024-03-04T02:00:00Z"),
        ("_time:week", "2024-03-04T00:00:00Z"),
        ("_time:1w", "2024-02-29T00:00:00Z"),
        ("_time:month", "2024-03-01T00:00:00Z"),
        ("_time:year offset 1d", "2024-01-02T00:00:00Z"),
    ] {
        assert_eq!(run(by), want, "{by}");
    }
    let rows = Rows::lines(&lines).run("* | stats by (n:10) count() hits");
    let keys: Vec<&str> = rows.iter().map(|r| r["n"].as_str()).collect();
    assert_eq!(keys, ["-10", "10", "1000"]);
}

#[test]
fn cases_may_overlap() {
    let rows = Rows::lines(&LINES);
    let got = rows.run("* | stats count() switch(case (t:a) a, case (v:>1) b, default c)");
    let value = |name: &str| got[0][name].clone();
    assert_eq!((value("a"), value("b"), value("c")), ("2".into(), "4".into(), "1".into()));
}

#[test]
fn no_rows_give_one_row_without_keys_and_none_with() {
    let rows = Rows::lines(&LINES);
    let got = rows.run("nosuch | stats count() n, sum(v) s, values(v) v, max(v) m");
    assert_eq!(got.len(), 1);
    let value = |name: &str| got[0].get(name).map_or("", String::as_str);
    assert_eq!((value("n"), value("s"), value("v"), value("m")), ("0", "NaN", "[]", ""));
    assert!(rows.run("nosuch | stats by (g) count() n").is_empty());
}
