//! Answers that engines get wrong: values re-printed, groups merged, options dropped, answers that
//! depend on where the rows happen to be. Every query runs on rows in the buffer, in several files
//! and in one merged file, with one worker and with several, and must give the same each time.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

use loglith::{IngestOptions, Query, QueryOptions, Store, Timestamp};

type Row = BTreeMap<String, String>;

/// The same rows in every layout.
struct Stores(Vec<(tempfile::TempDir, Store)>);

impl Stores {
    /// `lines` are rows as JSON; those without `_time` get that of their number in seconds.
    fn new(lines: &[String]) -> Stores {
        let lines: Vec<String> = lines
            .iter()
            .enumerate()
            .map(|(i, line)| {
                if line.contains("\"_time\"") {
                    return line.clone();
                }
                let time = Timestamp::from_nanos(i64::try_from(i).unwrap() * 1_000_000_000);
                let rest = line.strip_prefix('{').unwrap();
                let comma = if rest == "}" { "" } else { "," };
                format!("{{\"_time\":\"{time}\"{comma}{rest}")
            })
            .collect();
        Stores(["buffer", "files", "merged"].map(|layout| Self::store(&lines, layout)).into())
    }

    fn store(lines: &[String], layout: &str) -> (tempfile::TempDir, Store) {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::options().background(false).open(dir.path()).unwrap();
        let ingest = store.ingest(IngestOptions::new().stream_fields(["app"])).unwrap();
        for piece in lines.chunks(lines.len().div_ceil(4).max(1)) {
            let report = ingest.ndjson(piece.join("\n").as_bytes()).unwrap();
            assert_eq!(report.accepted, piece.len() as u64);
            if layout != "buffer" {
                store.flush().unwrap();
            }
        }
        if layout == "merged" {
            store.compact().unwrap();
        }
        (dir, store)
    }

    /// The rows of `query`, in its order if it sorts, else sorted by all their fields.
    fn rows(&self, query: &str) -> Vec<Row> {
        let parsed: Query = query.parse().unwrap_or_else(|e| panic!("{e}"));
        let printed = parsed.to_string();
        assert_eq!(printed.parse::<Query>().as_ref(), Ok(&parsed), "{query} prints as {printed}");
        let mut first: Option<Vec<Row>> = None;
        for (_, store) in &self.0 {
            for workers in [1, 3] {
                let now = Timestamp::parse("2025-01-01T00:00:00Z").unwrap();
                let options = QueryOptions::new().workers(workers).now(now);
                let rows = store.query_with(&parsed, &options).unwrap();
                let mut rows: Vec<Row> = rows
                    .map(|row| {
                        let row = row.unwrap_or_else(|e| panic!("{query}: {e}"));
                        let some = row.fields().filter(|(_, v)| !v.is_empty());
                        some.map(|(n, v)| (n.to_owned(), v.to_owned())).collect()
                    })
                    .collect();
                if !query.contains("sort") {
                    rows.sort();
                }
                match &first {
                    None => first = Some(rows),
                    Some(first) => assert_eq!(first, &rows, "{query}"),
                }
            }
        }
        first.unwrap()
    }

    /// Some fields of each row with commas between them.
    fn list(&self, query: &str, fields: &[&str]) -> Vec<String> {
        let value = |row: &Row, f: &&str| row.get(*f).cloned().unwrap_or_default();
        let line = |row: &Row| fields.iter().map(|f| value(row, f)).collect::<Vec<_>>().join(",");
        self.rows(query).iter().map(line).collect()
    }

    /// The only value of the only row.
    fn one(&self, query: &str) -> String {
        let rows = self.rows(query);
        assert_eq!(rows.len(), 1, "{query}: {rows:?}");
        rows[0].values().next().cloned().unwrap_or_default()
    }

    fn count(&self, filter: &str) -> String {
        self.one(&format!("{filter} | stats count() n"))
    }
}

fn quote(text: &str) -> String {
    serde_json::to_string(text).unwrap()
}

/// One row for each value of the field `v`.
fn values(values: &[&str]) -> Stores {
    let line = |(i, v): (usize, &&str)| format!("{{\"_msg\":\"m\",\"n\":{i},\"v\":{}}}", quote(v));
    Stores::new(&values.iter().enumerate().map(line).collect::<Vec<_>>())
}

/// Rows with `n` from 0 in the order of time, a second apart.
fn numbered(n: u32) -> Stores {
    let line = |i| format!("{{\"_msg\":\"m\",\"n\":{i}}}");
    Stores::new(&(0..n).map(line).collect::<Vec<_>>())
}

#[test]
fn values_come_back_as_written() {
    let kinds: [(&str, &[&str]); 5] = [
        (
            "17",
            &["042", "-0", "1_000", "18446744073709551616", "+1", "1e3", "-9223372036854775808"],
        ),
        ("1.25", &["1.10", "2.0", "0.3", ".5", "1.", "1e-9", "0.1000"]),
        ("10.0.0.1", &["10.0.0.01", "010.0.0.1", "::ffff:10.0.0.1", "10.0.0.256"]),
        (
            "2024-01-02T03:04:05Z",
            &[
                "2024-01-02T03:04:05.10Z",
                "2024-01-02T03:04:05+00:00",
                "2024-01-02 03:04:05",
                "2024-01-02T03:04:05.123456789123Z",
            ],
        ),
        ("5ms", &["5.0ms", "1h60m", "0x1F", "1KB", "1KiB", "NaN", "inf", " 1", "1 "]),
    ];
    for (common, odd) in kinds {
        let mut all = vec![common; 300];
        all.extend(odd);
        all.extend(vec![common; 300]);
        let stores = values(&all);
        let have = stores.list("* | sort by (_time) | fields v", &["v"]);
        assert_eq!(have, all);
        for value in odd {
            let filter = format!("v:={}", quote(value));
            assert_eq!(stores.count(&filter), "1", "{filter}");
        }
        assert_eq!(stores.count(&format!("v:={}", quote(common))), "600");
    }
}

#[test]
fn text_filters_look_at_the_text() {
    let stores = values(&["42", "42.0", "1.1", "1.10", "-1", "0.5", "10.0.0.1", "1000", "1e3"]);
    for (filter, rows) in [
        ("v:=42.0", "1"),
        ("v:=\"1.1\"", "1"),
        ("v:=1000", "1"),
        ("v:=042", "0"),
        ("v:in(42, 1.10)", "2"),
        ("v:1", "4"),
        ("v:5", "1"),
        ("v:10.0", "1"),
        ("v:~\"^-?1$\"", "1"),
        ("v:~\"\\\\b1\"", "6"),
    ] {
        assert_eq!(stores.count(filter), rows, "{filter}");
    }
}

#[test]
fn spellings_of_a_number_are_groups_of_their_own() {
    let spellings = ["10", "1_0", "1__0", "-0", "0", "1.0", "1", "1_000", "1000"];
    let stores = values(&spellings.repeat(3));
    let mut expected: Vec<String> = spellings.iter().map(|v| format!("{v},3")).collect();
    expected.sort();
    for pipe in [
        "stats by (v) count() hits",
        "uniq by (v) with hits",
        "top 100 by (v)",
        "field_values v",
        "stats by (v) count() hits | sort by (hits)",
    ] {
        let mut have = stores.list(&format!("* | {pipe}"), &["v", "hits"]);
        have.sort();
        assert_eq!(have, expected, "{pipe}");
    }
    assert_eq!(stores.one("* | stats count_uniq(v) n"), "9");
    assert_eq!(stores.one("* | stats count_uniq_hash(v) n"), "9");
    assert_eq!(stores.list("* | uniq by (v) | len(v) as l", &["v"]).len(), 9);
}

#[test]
fn a_limited_sort_keeps_what_follows() {
    let stores = numbered(40);
    let numbers = |pipes: &str| stores.list(&format!("* | {pipes}"), &["n"]).join(" ");
    assert_eq!(numbers("sort by (n) limit 10 | offset 5"), "5 6 7 8 9");
    assert_eq!(numbers("sort by (n) | limit 10 | offset 5"), "5 6 7 8 9");
    assert_eq!(numbers("sort by (n) | offset 5 | limit 3"), "5 6 7");
    assert_eq!(numbers("sort by (n) offset 5 limit 3"), "5 6 7");
    assert_eq!(numbers("sort by (n desc) limit 10 | offset 8"), "31 30");
    assert_eq!(numbers("sort by (n) | math n * 2 as m | limit 3"), "0 1 2");
    assert_eq!(numbers("sort by (n) | filter n:>5 | limit 3"), "6 7 8");
    assert_eq!(numbers("sort by (n) limit 7 | limit 5 | offset 3"), "3 4");
    assert_eq!(stores.list("* | limit 10 | offset 7", &["n"]), ["30", "31", "32"]);
}

#[test]
fn a_sort_keeps_no_more_rows_than_its_limit() {
    let line = |i: u32| format!("{{\"_msg\":\"{}\",\"n\":{}}}", "x".repeat(100), i * 7 % 20_011);
    let stores = Stores::new(&(0..20_011).map(line).collect::<Vec<_>>());
    let run = |text: &str| {
        let query: Query = text.parse().unwrap();
        let options = QueryOptions::new().memory_limit(1 << 20).workers(1);
        let rows = stores.0[2].1.query_with(&query, &options).unwrap();
        rows.map(|row| row.map(|r| r.get("n").to_owned())).collect::<loglith::Result<Vec<_>>>()
    };
    let kept = run("* | sort by (n) | pack_json as p | offset 1 | limit 2");
    assert_eq!(kept.unwrap(), ["1", "2"]);
    assert!(matches!(run("* | sort by (n)"), Err(loglith::Error::MemoryLimit { .. })));
    assert!(run("* | sort by (n) | filter n:>5 | limit 2").is_err());
}

#[test]
fn quantiles_are_exact() {
    // More than a sample holds; 7919 is prime to 20,001, so every number comes once.
    let line = |i: u32| format!("{{\"_msg\":\"m\",\"v\":{}}}", u64::from(i) * 7_919 % 20_001);
    let stores = Stores::new(&(0..20_001).map(line).collect::<Vec<_>>());
    let query = "* | stats quantile(0.5, v) a, quantile(0.99, v) b, median(v) c, \
                 quantile(0, v) d, quantile(1, v) e";
    assert_eq!(stores.list(query, &["a", "b", "c", "d", "e"]), ["10000,19800,10000,0,20000"]);
}

#[test]
fn sparse_fields_do_not_depend_on_blocks() {
    let line = |i: u32| match i {
        1_234 => "{\"_msg\":\"m\",\"app\":\"a\",\"rare\":\"5\",\"part\":\"x\"}".to_owned(),
        i => format!("{{\"_msg\":\"m\",\"app\":\"{}\",\"n\":{i}}}", i % 3),
    };
    let stores = Stores::new(&(0..3_000).map(line).collect::<Vec<_>>());
    let mut names = stores.list("* | field_names", &["name", "hits"]);
    names.sort();
    let expected = ["_msg,3000", "_stream,3000", "_stream_id,3000", "_time,3000", "app,3000"];
    assert_eq!(names, [&expected[..], &["n,2999", "part,1", "rare,1"]].concat());
    // An absent value takes part as the empty one.
    let query = "* | stats min(rare) a, max(rare) b, min(n) c, max(n) d, min(nosuch) e";
    assert_eq!(stores.list(query, &["a", "b", "c", "d", "e"]), [",5,,2999,"]);
    let query = "n:<3 or rare:* | pack_json fields (rare, n, part) as p | sort by (_time)";
    let packed = stores.list(query, &["p"]);
    assert_eq!(packed[..2], ["{\"n\":\"0\"}", "{\"n\":\"1\"}"]);
    assert_eq!(packed[3], "{\"rare\":\"5\",\"part\":\"x\"}");
    let query = "n:0 or rare:* | pack_logfmt fields (rare, n, part) as p | sort by (_time)";
    assert_eq!(stores.list(query, &["p"]), ["n=0", "rare=5 part=x"]);
    // Names and hits are those of the rows that pass, not of their blocks.
    let names = stores.list("n:=1233 | field_names", &["name", "hits"]);
    assert_eq!(names.join(" "), "_msg,1 _stream,1 _stream_id,1 _time,1 app,1 n,1");
}

#[test]
fn a_remainder_of_zero_is_no_number() {
    let stores = values(&["0", "7", "1.5", "-3", "x"]);
    assert_eq!(stores.list("* | math v % 0 as r | sort by (n)", &["r"]), ["NaN"; 5]);
    assert_eq!(stores.list("v:7 | math 7 % (v - 7) as r", &["r"]), ["NaN"]);
    assert_eq!(stores.list("v:7 | math 7 - 2 * 3 ^ 2 as r", &["r"]), ["-11"]);
}

#[test]
fn rows_of_one_moment_keep_the_order_of_appending() {
    let line = |i: u32| format!("{{\"_time\":\"2024-01-01T00:00:00Z\",\"_msg\":\"m\",\"n\":{i}}}");
    let stores = Stores::new(&(0..50).map(line).collect::<Vec<_>>());
    let order: Vec<String> = (0..50).map(|n| n.to_string()).collect();
    assert_eq!(stores.list("* | sort by (_time)", &["n"]), order);
    assert_eq!(stores.list("* | sort by (_msg)", &["n"]), order);
    assert_eq!(stores.list("* | sort by (_time) limit 7", &["n"]), order[..7]);
    let listed = stores.one("* | stats values(n) v");
    assert_eq!(serde_json::from_str::<Vec<String>>(&listed).unwrap(), order);
    // The newest are the last ones, and there are as many as asked for.
    for k in 1..=20 {
        let mut newest = stores.list(&format!("* | limit {k}"), &["n"]);
        newest.sort_by_key(|n| n.parse::<u32>().unwrap());
        assert_eq!(newest, order[50 - k..]);
    }
}

#[test]
fn the_last_rows_are_the_last_rows() {
    let line = |i: i64| {
        let time = Timestamp::from_nanos(1_700_000_000_000_000_000 + i);
        format!("{{\"_time\":\"{time}\",\"_msg\":\"m\",\"n\":{i}}}")
    };
    let stores = Stores::new(&(1..=1_000).map(line).collect::<Vec<_>>());
    for k in 1..=20 {
        let want: Vec<String> = (0..k).map(|i| (1_000 - i).to_string()).collect();
        assert_eq!(stores.list(&format!("* | sort by (_time desc) limit {k}"), &["n"]), want);
        let mut newest = stores.list(&format!("* | limit {k}"), &["n"]);
        newest.sort_by_key(|n| std::cmp::Reverse(n.parse::<u32>().unwrap()));
        assert_eq!(newest, want);
    }
}

#[test]
fn limits_work_behind_pipes_that_write_the_time() {
    let line = |i: i64| {
        let time = Timestamp::from_nanos(1_700_000_000_000_000_000 + i * 3_600_000_000_000);
        format!(
            "{{\"_time\":\"{time}\",\"_msg\":\"at 2020-01-{:02}T00:00:00Z!\",\"foo_n\":{i}}}",
            30 - i
        )
    };
    let stores = Stores::new(&(0..20).map(line).collect::<Vec<_>>());
    for pipe in [
        "math foo_n + 1 as _time",
        "replace (\"2023\", \"2033\") at _time",
        "extract \"at <_time>!\"",
        "rename foo* as *",
        "rename _time as t",
        "copy _time as t",
        "rename foo_n as _time",
        "copy foo_n as _time",
        "delete _time",
        "time_add 1h",
    ] {
        assert_eq!(stores.rows(&format!("* | {pipe} | limit 3")).len(), 3, "{pipe}");
        assert_eq!(stores.rows(&format!("* | {pipe} | sort by (_time) limit 3")).len(), 3);
    }
    let written = "* | extract \"at <_time>!\" | sort by (_time) limit 2";
    assert_eq!(stores.list(written, &["foo_n"]), ["19", "18"]);
    let written = "* | math 100 - foo_n as _time | sort by (_time desc) limit 2";
    assert_eq!(stores.list(written, &["foo_n"]), ["0", "1"]);
    let constant = "* | math \"2025-01-01T00:00:00Z\" - _time as d | sort by (d) limit 1";
    assert_eq!(stores.list(constant, &["foo_n"]), ["19"]);
    assert_eq!(stores.list("* | rename foo_* as * | sort by (n) limit 1", &["n"]), ["0"]);
}

#[test]
fn ends_of_ranges_are_what_they_say() {
    let at = |t: &str| format!("{{\"_time\":\"{t}\",\"_msg\":\"m\"}}");
    let stores = Stores::new(&[at("2024-03-01T00:00:00Z"), at("2024-03-01T00:00:00.5Z")]);
    for (filter, rows) in [
        ("_time:[1709251199, 1709251200]", "1"),
        ("_time:[1709251199, 1709251200)", "0"),
        ("_time:[1709251199, 1709251200.5)", "1"),
        ("_time:[2024-02-29T23:59:59Z, 2024-03-01T00:00:00Z]", "2"),
        ("_time:[2024-02-29T23:59:59Z, 2024-03-01T00:00:00.000000000Z]", "1"),
        ("_time:[2024-02-29T23:59:59Z, 2024-03-01T00:00:00Z)", "0"),
    ] {
        assert_eq!(stores.count(filter), rows, "{filter}");
    }
    // Now itself is not part of the last five minutes.
    let stores = Stores::new(&[at("2025-01-01T00:00:00Z"), at("2024-12-31T23:59:59.999999999Z")]);
    assert_eq!(stores.count("_time:5m"), "1");
}

#[test]
fn every_filter_gives_the_same_in_the_scan_and_in_a_pipe() {
    let line = |i: i64| {
        let time = Timestamp::from_nanos(1_700_000_000_000_000_000 + i * 17_000_000_000_000);
        let (word, ip) =
            (["error", "Warn", "no_error", ""][usize::try_from(i).unwrap() % 4], i % 250);
        format!(
            "{{\"_time\":\"{time}\",\"_msg\":\"{word} took {i}ms\",\"app\":\"a{}\",\"n\":{i},\
             \"ip\":\"10.0.0.{ip}\",\"tags\":[\"x\",\"t{}\"],\"half\":\"{}\"}}",
            i % 3,
            i % 5,
            if i % 2 == 0 { "here" } else { "" },
        )
    };
    let stores = Stores::new(&(0..400).map(line).collect::<Vec<_>>());
    for filter in [
        "error",
        "error*",
        "*rro*",
        "i(ERROR)",
        "i(ERR*)",
        "=\"error took 4ms\"",
        "~\"e.*4ms\"",
        "n:=7",
        "n:=\"1\"*",
        "n:in(1, 2, 399)",
        "n:>390",
        "n:range[5, 9]",
        "n:len_range(1, 2)",
        "n:string_range(1, 2)",
        "contains_all(took, error)",
        "contains_any(Warn, \"4ms\")",
        "seq(took, 4ms)",
        "ip:ipv4_range(10.0.0.0/29)",
        "ip:ipv6_range(\"::ffff:10.0.0.0/125\")",
        "n:eq_field(half)",
        "n:lt_field(ip)",
        "half:le_field(app)",
        "half:*",
        "half:\"\"",
        "pattern_match(\"took <N>ms\")",
        "pattern_match_full(\"<W> took <N>ms\")",
        "pattern_match_prefix(\"error\")",
        "pattern_match_suffix(\"<N>ms\")",
        "tags:json_array_contains_any(t3)",
        "contains_common_case(Error)",
        "app:equals_common_case(A1)",
        "{app=\"a1\"}",
        "{app=~\"a[12]\"}",
        "{app!=\"a0\"}",
        "_time:week_range[Sun, Sun]",
        "_time:week_range(Mon, Fri]",
        "_time:day_range[08:00, 12:00)",
        "_time:2023-11-16Z",
        "_time:>2023-12-01Z",
        "a*:a1",
        "*:error",
        "!error",
        "!(n:>5 or half:*)",
        "n:in(half:* n:<9 | fields n)",
        "_stream_id:in({app=\"a1\"} | uniq by (_stream_id))",
    ] {
        let pipe = format!("* | limit 1000 | filter {filter} | stats count() n");
        let count = stores.count(filter);
        assert_eq!(stores.one(&pipe), count, "{filter}");
        assert_eq!(stores.one(&format!("* | stats count() if ({filter}) n")), count, "{filter}");
        assert!(count != "0" || filter.contains("eq_field"), "{filter} finds nothing");
    }
}

#[test]
fn rows_outside_of_a_condition_keep_their_fields() {
    let stores = values(&["a=1", "b=2"]);
    for pipe in [
        "extract if (v:a*) \"=<n>\" from v",
        "extract_regexp if (v:a*) \"=(?P<n>.)\" from v",
        "format if (v:a*) \"1\" as n",
        "unpack_logfmt if (v:c*) from v fields (n)",
        "unpack_json if (v:c*) from v fields (n)",
        "collapse_nums if (v:c*) at n",
        "replace if (v:c*) (\"1\", \"9\") at n",
        "replace_regexp if (v:c*) (\".\", \"9\") at n",
        "unroll if (v:c*) by (n)",
    ] {
        let rows = stores.list(&format!("* | {pipe} | sort by (v)"), &["n", "v"]);
        assert_eq!(rows[1], "1,b=2", "{pipe}");
    }
    let kept = "* | extract if (v:a*) \"=<n>\" from v | fields n | sort by (n)";
    assert_eq!(stores.list(kept, &["n"]), ["1", "1"]);
}

#[test]
fn fields_behind_an_unpack_know_its_prefix() {
    let json = "{\\\"bar\\\":\\\"j\\\"}";
    let line = format!(
        "{{\"_msg\":\"m\",\"json\":\"{json}\",\"fmt\":\"bar=l\",\
         \"sys\":\"<165>1 2024-01-01T00:00:00Z h app - - - hi\"}}"
    );
    let stores = Stores::new(&[line]);
    let one = |pipes: &str| stores.one(&format!("* | {pipes}"));
    assert_eq!(one("unpack_json from json fields (bar) result_prefix foo_ | fields foo_bar"), "j");
    assert_eq!(one("unpack_logfmt from fmt fields (bar) result_prefix p. | fields p.bar"), "l");
    assert_eq!(one("unpack_syslog from sys result_prefix s_ | fields s_hostname"), "h");
    assert_eq!(
        one("unpack_json from json result_prefix foo_ | stats count() if (foo_bar:j) n"),
        "1"
    );
}

#[test]
fn rates_do_not_depend_on_how_groups_are_merged() {
    let line = |i: u32| {
        let t = Timestamp::from_nanos(i64::from(i) * 500_000_000);
        format!("{{\"_time\":\"{t}\",\"_msg\":\"m\",\"s\":\"{}\",\"n\":1}}", i % 2)
    };
    let stores = Stores::new(&(0..1_200).map(line).collect::<Vec<_>>());
    let range = "_time:[1970-01-01T00:00:00Z, 1970-01-01T00:10:00Z)";
    assert_eq!(stores.one(&format!("{range} | stats rate() r")), "2");
    assert_eq!(stores.one(&format!("{range} | stats rate_sum(n) r")), "2");
    // Over the query's range, also in a bucket of half of it.
    let rows = stores.list(&format!("{range} | stats by (_time:5m, s) rate() r"), &["r"]);
    assert_eq!(rows, ["0.5"; 4]);
}

#[test]
fn facets_are_whole_or_absent() {
    let line = |i: u32| format!("{{\"_msg\":\"m\",\"id\":{i},\"kind\":\"k{}\"}}", i % 3);
    let stores = Stores::new(&(0..60).map(line).collect::<Vec<_>>());
    let fields = ["field_name", "field_value", "hits"];
    let facets = stores.list("* | facets 10 max_values_per_field 20", &fields);
    assert_eq!(facets, ["kind,k0,20", "kind,k1,20", "kind,k2,20"]);
    let facets =
        stores.list("* | facets 1 max_values_per_field 60 | filter field_name:id", &fields);
    assert_eq!(facets.len(), 1, "{facets:?}");
    assert!(facets[0].ends_with(",1"), "{facets:?}");
}

#[test]
fn options_hold_everywhere() {
    let line = |i: i64| {
        let t = Timestamp::from_nanos(1_704_067_200_000_000_000 + i * 3_600_000_000_000);
        format!("{{\"_time\":\"{t}\",\"_msg\":\"m\",\"n\":{i}}}")
    };
    // Monday 2024-01-01T00Z and on, an hour apart.
    let stores = Stores::new(&(0..48).map(line).collect::<Vec<_>>());
    let one = stores.list("options(concurrency=1) n:>3 | stats count() n, sum(n) s", &["n", "s"]);
    assert_eq!(
        one,
        stores.list("options(concurrency=9) n:>3 | stats count() n, sum(n) s", &["n", "s"])
    );
    let shifted = "options(time_offset=24h) _time:2024-01-02Z | stats count() n, min(_time) t";
    assert_eq!(stores.list(shifted, &["n", "t"]), ["24,2024-01-02T00:00:00Z"]);
    // The time of day and the day of the week are those of the shifted rows.
    let count = |q: &str| stores.count(q);
    assert_eq!(count("options(time_offset=2h) _time:day_range[02:00, 03:00)"), "2");
    let first = "options(time_offset=2h) _time:day_range[02:00, 03:00) | stats min(n) n";
    assert_eq!(stores.one(first), "0");
    assert_eq!(count("options(time_offset=24h) _time:week_range[Tue, Tue]"), "24");
    let inner = "options(time_offset=24h) nothing | union (_time:2024-01-02Z) | stats min(n) n";
    assert_eq!(stores.one(inner), "0");
    let global = "options(global_filter=(n:<5)) n:in(n:>2 | fields n) | stats count() n";
    assert_eq!(stores.one(global), "2");
    // The time of the outer query says nothing about the inner one.
    assert_eq!(count("_time:2024-01-02Z n:in(_time:2024-01-01Z | fields n)"), "0");
    assert_eq!(count("_time:2024-01-02Z !n:in(n:<3 | fields n)"), "24");
}

#[test]
fn a_dot_is_every_character() {
    let stores = values(&["a\nb=1"]);
    assert_eq!(stores.count("v:~\"a.b\""), "1");
    let query = "* | extract_regexp \"a(?P<x>.+)=\" from v | len(x) as l";
    assert_eq!(stores.list(query, &["l"]), ["2"]);
    let query = "* | replace_regexp (\"a.b\", \"-\") at v";
    assert_eq!(stores.list(query, &["v"]), ["-=1"]);
}

#[test]
fn rows_come_in_the_same_order_every_time() {
    let line = |i: u32| format!("{{\"_msg\":\"m{i}\",\"app\":\"a{}\",\"n\":{i}}}", i * 7 % 13);
    let stores = Stores::new(&(0..500).map(line).collect::<Vec<_>>());
    for query in [
        "* | stats by (app) count() n, max(n) m",
        "* | uniq by (app)",
        "* | top 5 by (app)",
        "* | field_values app",
        "* | field_names",
        "* | facets",
    ] {
        let parsed: Query = query.parse().unwrap();
        let mut answers: Vec<Vec<String>> = Vec::new();
        for (_, store) in &stores.0 {
            for workers in 1..=4 {
                let rows =
                    store.query_with(&parsed, &QueryOptions::new().workers(workers)).unwrap();
                let text = |row: loglith::Result<loglith::Row>| {
                    let mut line = String::new();
                    for (name, value) in row.unwrap().fields() {
                        write!(line, "{name}={value} ").unwrap();
                    }
                    line
                };
                answers.push(rows.map(text).collect());
            }
        }
        assert!(answers.iter().all(|a| a == &answers[0]), "{query}");
    }
}

#[test]
fn running_stats_follow_the_time_and_not_its_text() {
    let times = ["45.99Z", "45.999324Z", "45Z", "45.9Z"];
    let line = |t: &&str| format!("{{\"_time\":\"2024-01-01T00:00:{t}\",\"_msg\":\"m\",\"n\":1}}");
    let stores = Stores::new(&times.iter().map(line).collect::<Vec<_>>());
    let sums = stores.list("* | running_stats sum(n) s | sort by (_time)", &["s"]);
    assert_eq!(sums, ["1", "2", "3", "4"]);
    let last = stores.list("* | total_stats last(_time) t | sort by (_time) limit 1", &["t"]);
    assert_eq!(last, ["2024-01-01T00:00:45.999324Z"]);
}

#[test]
fn items_of_arrays_are_decoded_first() {
    let stores = values(&["[\"pr\\u006fd\"]", "[\"prod\"]", "[[\"prod\"]]", "\"prod\"", "[1.0]"]);
    assert_eq!(stores.count("v:json_array_contains_any(prod)"), "2");
    assert_eq!(stores.count("v:json_array_contains_any(1)"), "0");
    assert_eq!(stores.count("v:json_array_contains_any(1.0)"), "1");
}

#[test]
fn odd_queries_run_and_print_as_they_were() {
    let stores = values(&[".", "-", "!", "", "a.b"]);
    for query in [
        "_msg:~\".\"",
        "=.",
        "\".\"",
        "\"-\"",
        "\"!\"",
        "v:~\"^(|a\\\\.b)$\"",
        "v:~\"(?i)A\"",
        "v:~\"[[:alpha:]]+\"",
        "v:~\"\\\\x2e\"",
        "v:~\"(?s).\"",
        "v:~\"a{0,2}\"",
        "* | math \"abs\" + 1 as x",
        "* | split \"from\" from v as w",
        "* | math \"v\" as \"max\"",
        "* | split \"as\"",
        "fields.foo:bar",
        "stats.x:y",
        "v:\"\"",
        "v:!\"\"",
        "\"and\"",
        "v:\"in\"",
        "* | sort by (\"by\")",
        "* | stats by (\"if\") count() as \"as\"",
        "*;",
        "v:in(* | fields v;)",
    ] {
        stores.rows(query);
    }
    for query in [
        "_stream_id:in",
        "\"_stream\":=\"\"",
        "\"_stream_id\":=\"\"",
        "\"_time\":foo",
        "_stream:=a",
    ] {
        if query.parse::<Query>().is_ok() {
            stores.rows(query);
        }
    }
    assert_eq!(stores.count("v:=."), "1");
    assert_eq!(stores.count("v:\"!\""), "1");
}

#[test]
fn states_without_values_merge() {
    let line = |i: u32| match i {
        0..30 => "{\"_msg\":\"m\"}".to_owned(),
        i => format!("{{\"_msg\":\"m\",\"v\":\"{}\"}}", i % 2),
    };
    let stores = Stores::new(&(0..40).map(line).collect::<Vec<_>>());
    assert_eq!(stores.one("* | stats uniq_values(v) u"), "[\"0\",\"1\"]");
    let query = "* | stats count_uniq(v) a, any(v) b, histogram(x) c, sum(x) d, row_max(x) e, \
                 field_max(x, v) f, stddev(x) g, uniq_values(x) h";
    let row = &stores.rows(query)[0];
    assert_eq!((row["a"].as_str(), row["c"].as_str(), row["d"].as_str()), ("2", "[]", "NaN"));
    assert_eq!((row["e"].as_str(), row["g"].as_str(), row["h"].as_str()), ("{}", "NaN", "[]"));
    assert!(!row.contains_key("f"));
    assert!(row["b"] == "0" || row["b"] == "1");
}

#[test]
fn numbers_compare_by_their_exact_value() {
    // Floats of 64 bits tell none of these triples apart; the columns are packed integers, times,
    // decimals of a dictionary, and texts.
    let big = |i: usize| 9_007_199_254_740_992u64 + i as u64 % 3;
    let line = |i: usize| {
        let n = i % 3;
        format!(
            "{{\"_msg\":\"m {i}\",\"n\":\"{}\",\"t\":\"2024-01-01T00:00:00.00000000{n}Z\",\
             \"d\":\"0.1000000000000000000{n}\",\"w\":\"1{n}{}\"}}",
            big(i),
            "7".repeat(60)
        )
    };
    let stores = Stores::new(&(0..300).map(line).collect::<Vec<_>>());
    let middle = [
        ("n", "9007199254740993".to_owned()),
        ("t", "\"2024-01-01T00:00:00.000000001Z\"".to_owned()),
        ("d", "0.10000000000000000001".to_owned()),
        ("w", format!("11{}", "7".repeat(60))),
    ];
    for (field, middle) in middle {
        for (sign, rows) in [(">", "100"), (">=", "200"), ("<", "100"), ("<=", "200")] {
            assert_eq!(stores.count(&format!("{field}:{sign}{middle}")), rows, "{field} {sign}");
            let piped = format!("* | filter {field}:{sign}{middle}");
            assert_eq!(stores.count(&piped), rows, "{piped}");
        }
        for (range, rows) in [("[M, M]", "100"), ("(M, M]", "0"), ("[M, inf)", "200")] {
            let range = range.replace('M', &middle);
            assert_eq!(stores.count(&format!("{field}:range{range}")), rows, "{field}: {range}");
        }
    }
    let next = "* | math n + 0 as same | format \"9007199254740993\" as m";
    assert_eq!(stores.count(&format!("{next} | filter n:lt_field(m)")), "100");
    assert_eq!(stores.count(&format!("{next} | filter n:le_field(m)")), "200");
}

#[test]
fn times_may_be_far_away() {
    let line = |time: &str| format!("{{\"_time\":\"{time}\",\"_msg\":\"m\"}}");
    let times = ["1700-01-01T00:00:00Z", "1969-12-31T23:59:59.999999999Z", "2261-01-01T00:00:00Z"];
    let stores = Stores::new(&times.map(line));
    for (filter, rows) in [
        ("_time:<1970", "2"),
        ("_time:>=1600", "3"),
        ("_time:<1600-02-03", "0"),
        ("_time:<9999", "3"),
        ("_time:>9999-12-31T10:00", "0"),
        ("_time:[0001, 1800]", "1"),
        ("_time:[1900, 9999)", "2"),
    ] {
        assert_eq!(stores.count(filter), rows, "{filter}");
    }
}

#[test]
fn rows_without_a_time_are_not_over_time() {
    let stores = numbered(3);
    let options = QueryOptions::new();
    for (_, store) in &stores.0 {
        let query = "nothing | union rows({a=1}, {a=2})".parse().unwrap();
        let hits = store.hits(&query, Duration::from_secs(1), None, &options).unwrap();
        assert_eq!(hits.series[0].total, 0);
    }
}

#[test]
fn copies_and_renames_by_prefix_leave_others_alone() {
    let line = "{\"_msg\":\"m\",\"src_a\":\"1\",\"dst_b\":\"2\"}".to_owned();
    let stores = Stores::new(&[line]);
    for pipe in ["rename src_* as dst_*", "copy src_* as dst_*"] {
        assert_eq!(stores.list(&format!("* | {pipe}"), &["dst_a", "dst_b"]), ["1,2"], "{pipe}");
    }
    assert_eq!(stores.one("* | drop_empty_fields | stats count() n"), "1");
}
