//! No pipe keeps rows beyond the query's memory, or works long without asking whether it may.

use super::testing::{Layout, Row, Rows};
use crate::error::Error;
use crate::query::ast::Query;
use crate::query::context::CHECK_ROWS;

const ROWS: usize = 9_000;

/// Rows that are all different.
fn rows() -> Rows {
    let row = |n: usize| -> Row {
        let text = format!("message {n} {:032x}", (n as u128 + 1).pow(7));
        let fields = [
            ("_time", format!("2024-01-01T{:02}:{:02}:{:02}Z", n / 3_600, n / 60 % 60, n % 60)),
            ("_stream", format!("{{app=\"{}\"}}", n % 3)),
            ("_msg", text.clone()),
            ("n", n.to_string()),
            ("few", (n % 5).to_string()),
            ("list", format!("[1,\"{n}\"]")),
            ("json", format!("{{\"a\":\"{text}\"}}")),
        ];
        fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    };
    Rows::new((0..ROWS).map(row).collect())
}

fn one_batch() -> Layout {
    Layout { batch_rows: ROWS, ..Layout::default() }
}

/// Pipes that need all rows, or something of each.
const KEEPERS: &[&str] = &[
    "sort by (_msg)",
    "sort by (n desc) limit 7000",
    "sort by (_msg) partition by (few) limit 1500",
    "uniq by (_msg)",
    "uniq by (_msg, n) with hits",
    "top 20000 by (_msg)",
    "field_values _msg",
    "facets 20000 max_values_per_field 30000",
    "patterns by (n)",
    "limit 7000",
    "join by (n) (*)",
    "running_stats sum(n) as s",
    "total_stats by (few) max(n) as s",
    "stats by (_msg) count() as c",
    "stats by (few) values(_msg) as v",
    "stats uniq_values(_msg) as v",
    "stats count_uniq(_msg) as v",
    "stats quantile(0.5, _msg) as v",
    "stats median(n, _msg) as v",
    "stats json_values(_msg, n) as v",
    "stats by (n) row_max(_msg) as v",
    "filter n:in(* | fields n)",
];

#[test]
fn what_keeps_rows_stays_within_the_memory() {
    let small = rows().with_memory(200_000);
    let large = rows();
    for pipe in KEEPERS {
        let query: Query = format!("* | {pipe}").parse().unwrap();
        for workers in [1, 3] {
            let layout = Layout { workers, batch_rows: 2_000, ..Layout::default() };
            match small.try_run(&query, layout) {
                Err(Error::MemoryLimit { limit_bytes: 200_000, .. }) => {}
                other => panic!("{pipe}: {:?}", other.map(|rows| rows.len())),
            }
        }
        assert!(large.try_run(&query, one_batch()).is_ok(), "{pipe}");
    }
}

#[test]
fn a_long_literal_is_made_once() {
    let rows = rows().with_memory(4_000_000);
    let query = format!("* | format \"{}\" as x | limit 5", "y".repeat(500_000));
    let answer = rows.try_run(&query.parse().unwrap(), one_batch()).unwrap();
    assert_eq!(answer.len(), 5);
}

/// Pipes that work on each row.
const WORKERS: &[&str] = &[
    "extract \"message <a> <b>\"",
    "extract_regexp \"(?P<a>[0-9]+) \"",
    "format \"<q:_msg> <uc:_msg>\" as x",
    "replace (\"e\", \"x\")",
    "replace_regexp (\"[a-f]+\", \"x\")",
    "unpack_json from json",
    "unpack_logfmt",
    "unpack_syslog",
    "unpack_words as w",
    "unroll by (list)",
    "split \" \" as x",
    "pack_json as x",
    "pack_logfmt as x",
    "collapse_nums",
    "decolorize",
    "math n + 1 as x, x * 2 as y",
    "time_add 1h",
    "hash(_msg) as x",
    "len(_msg) as x",
    "json_array_len(list) as x",
    "json_array_concat \",\" from list as x",
    "coalesce(nosuch, _msg) as x",
    "set_stream_fields n, few",
    "join by (few) (* | uniq by (few))",
];

#[test]
fn a_join_asks_by_the_rows_that_it_makes() {
    let query: Query = "* | join by (few) (* | limit 50)".parse().unwrap();
    let (made, checks) = rows().try_run_counted(&query, one_batch()).unwrap();
    assert_eq!(made.len(), 10 * ROWS);
    assert!(checks >= (10 * ROWS / CHECK_ROWS) as u64, "{checks}");
}

#[test]
fn every_pipe_asks_whether_it_may_go_on() {
    let rows = rows();
    let mut lazy = Vec::new();
    for pipe in KEEPERS.iter().chain(WORKERS).filter(|pipe| !pipe.starts_with("limit")) {
        let query: Query = format!("* | {pipe}").parse().unwrap();
        let (_, checks) = rows.try_run_counted(&query, one_batch()).unwrap();
        // Those that do next to nothing for a row ask with each batch.
        let is_quick = ["filter", "math", "stats count_uniq"].iter().any(|p| pipe.starts_with(p));
        let least = if is_quick { 1 } else { (ROWS / CHECK_ROWS) as u64 };
        if checks < least {
            lazy.push(format!("{pipe}: {checks}"));
        }
    }
    assert!(lazy.is_empty(), "asked too seldom for {ROWS} rows:\n{}", lazy.join("\n"));
}
