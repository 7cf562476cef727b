//! Whole queries over random parts against the naive evaluator, and how much they read.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;

use super::ast::{
    FieldPattern, Filter, GroupKey, Pipe, Predicate, Query, QueryOptions as Settings, Sort,
    SortKey, StatsFunction, StatsItem, Uniq,
};
use super::exec::execute_parts;
use super::filter::testing::{field, filter_tree};
use super::naive;
use super::rows::Rows;
use super::scan::testing::{any_filter, any_rows};
use super::testing::{TestParts, TestRow};
use crate::options::QueryOptions;
use crate::part::Profile;
use crate::record::Timestamp;
use crate::{Error, Result};

type Fields = BTreeMap<String, String>;

fn execute(parts: &Arc<TestParts>, query: &Query, options: &QueryOptions) -> Rows {
    let parts: Arc<TestParts> = parts.clone();
    execute_parts(query, parts, options, Timestamp::from_nanos(0))
}

fn collect(rows: Rows) -> Result<Vec<Fields>> {
    let fields = |row: super::answer::Row| {
        let fields =
            row.fields().filter(|(name, value)| !value.is_empty() && *name != "_stream_id");
        fields.map(|(name, value)| (name.to_owned(), value.to_owned())).collect::<Fields>()
    };
    rows.map(|row| row.map(fields)).collect()
}

fn query(filter: Filter, pipes: Vec<Pipe>) -> Query {
    Query { options: Settings::default(), filter, pipes }
}

fn item(function: StatsFunction, result: &str) -> StatsItem {
    StatsItem { function, condition: None, result: result.to_owned() }
}

fn count() -> StatsItem {
    item(StatsFunction::Count(vec![FieldPattern::all()]), "hits")
}

fn name(name: &str) -> FieldPattern {
    FieldPattern::Name(name.to_owned())
}

fn sort(key: &str, desc: bool, limit: Option<u64>, offset: Option<u64>) -> Pipe {
    Pipe::Sort(Sort {
        keys: vec![SortKey { field: key.to_owned(), desc }],
        desc: false,
        partition_by: Vec::new(),
        offset,
        limit,
        rank: None,
    })
}

fn pipe() -> impl Strategy<Value = Pipe> {
    let by = |f: &str| GroupKey { field: f.to_owned(), bucket: None };
    let stats = move |keys: Vec<&str>| Pipe::Stats {
        by: keys.into_iter().map(by).collect(),
        items: vec![
            count(),
            item(StatsFunction::Sum(vec![name("n")]), "sum"),
            item(StatsFunction::CountUniq { fields: vec!["b".to_owned()], limit: None }, "uniq"),
        ],
    };
    prop_oneof![
        (0u64..6).prop_map(Pipe::Limit),
        (0u64..6).prop_map(Pipe::Offset),
        (any::<bool>(), prop::option::of(0u64..6), prop::option::of(0u64..3))
            .prop_map(|(desc, limit, offset)| sort("_time", desc, limit, offset)),
        prop::sample::select(vec![vec![], vec!["a"], vec!["host", "n"], vec!["of_host"]])
            .prop_map(stats),
        filter_tree(&["a", "b", "n", "hits", "_stream", "missing"]).prop_map(Pipe::Filter),
        Just(Pipe::Fields(vec![name("_time"), name("a"), name("b"), name("n")])),
        Just(Pipe::Delete(vec![name("b")])),
        Just(Pipe::Uniq(Uniq { by: vec!["a".to_owned()], hits: None, limit: None })),
    ]
}

fn sorted(mut rows: Vec<Fields>) -> Vec<Fields> {
    rows.sort();
    rows
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]

    #[test]
    fn queries_equal_the_naive_evaluator(
        rows in any_rows(50),
        filter in any_filter(),
        pipes in prop::collection::vec(pipe(), 0..4),
        cuts in prop::collection::vec(1usize..30, 1..4),
        block_rows in prop::sample::select(vec![1u32, 3, 8, 65_536]),
        workers in 1usize..4,
        optimise: bool,
        prune: bool,
    ) {
        let parts = Arc::new(TestParts::write(&rows, &cuts, block_rows, Profile::Flush));
        let query = query(filter, pipes);
        let options = QueryOptions::new().workers(workers).optimise(optimise).prune(prune);
        let got = collect(execute(&parts, &query, &options)).unwrap();
        let (expected, _) = naive::run(&query, parts.rows(), naive::Scope::at(0));
        let expected: Vec<Fields> = expected.into_iter().map(|row| row.fields).collect();
        prop_assert_eq!(sorted(got), sorted(expected));
    }
}

fn many_rows(n: i64) -> Vec<TestRow> {
    let row = |i: i64| TestRow {
        time: i * 1_000,
        labels: vec![("app", if i % 3 == 0 { "web" } else { "db" }.to_owned())],
        fields: vec![("_msg", format!("request {i} done")), ("n", (i % 100).to_string())],
    };
    (0..n).map(row).collect()
}

#[test]
fn a_needle_reads_little_of_the_filters_of_many_blocks() {
    let id = |i: i64| format!("{:016x}{:016x}", i * 0x9e37_79b9_7f4a, i * 0x1656_67b1_9e37);
    let row = |i: i64| TestRow {
        time: i * 1_000,
        labels: vec![("app", "web".to_owned())],
        fields: vec![("_msg", format!("order {} is paid", id(i)))],
    };
    let rows: Vec<TestRow> = (0..30_000).map(row).collect();
    let parts = Arc::new(TestParts::write(&rows, &[40_000], 128, Profile::Merge));
    let stats = |query: &Query| {
        let mut rows = execute(&parts, query, &QueryOptions::new().workers(1));
        let found = rows.by_ref().collect::<Result<Vec<_>>>().unwrap().len();
        (found, rows.stats())
    };
    let (found, stats) = stats(&id(12_345).parse().unwrap());
    assert_eq!(found, 1);
    assert!(stats.blocks_total > 200, "{} blocks", stats.blocks_total);
    // The filters take about 30 KB; false positives read some strips.
    assert!(stats.filter_bytes <= 8 * 1_024, "{} bytes of filters", stats.filter_bytes);
    assert!(stats.strips_read < stats.strips_total / 20, "{} strips", stats.strips_read);
}

#[test]
fn days_begin_where_the_time_zone_says() {
    let parts = Arc::new(TestParts::write(&many_rows(10), &[20], 65_536, Profile::Flush));
    let run = |text: &str, zone: &str| {
        let options = QueryOptions::new().time_zone(zone).unwrap();
        collect(execute(&parts, &text.parse().unwrap(), &options)).unwrap()
    };
    // All rows lie in the first microseconds of 1970 in UTC.
    assert_eq!(run("_time:1970-01-01", "UTC").len(), 10);
    assert_eq!(run("_time:1970-01-01", "-00:30").len(), 0);
    assert_eq!(run("_time:1969-12-31", "-00:30").len(), 10);
    assert_eq!(run("_time:day_range[23:00, 23:59]", "-00:30").len(), 10);
    let day = run("* | stats by (_time:1d) count() hits", "-00:30");
    assert_eq!(day[0]["_time"], "1969-12-31T00:30:00Z");
}

#[test]
fn counts_by_headers_read_no_page() {
    let parts = Arc::new(TestParts::write(&many_rows(9_000), &[5_000], 65_536, Profile::Flush));
    let stats = Pipe::Stats { by: Vec::new(), items: vec![count()] };
    let mut rows = execute(&parts, &query(Filter::All, vec![stats]), &QueryOptions::new());
    let first = rows.next().unwrap().unwrap();
    assert_eq!(first.get("hits"), "9000");
    assert!(rows.next().is_none());
    let stats = rows.stats();
    assert_eq!((stats.pages_read, stats.strips_read, stats.rows_matched), (0, 0, 9_000));
}

#[test]
fn names_of_fields_are_counted_without_a_block() {
    let parts = Arc::new(TestParts::write(&many_rows(9_000), &[5_000], 65_536, Profile::Flush));
    let names = Pipe::FieldNames { filter: None, result: "name".to_owned() };
    let answer = |options: QueryOptions| {
        let mut rows = execute(&parts, &query(Filter::All, vec![names.clone()]), &options);
        let found: Vec<(String, String)> = rows
            .by_ref()
            .map(|row| row.unwrap())
            .map(|row| (row.get("name").to_owned(), row.get("hits").to_owned()))
            .collect();
        (found, rows.stats())
    };
    let (found, stats) = answer(QueryOptions::new());
    assert_eq!((stats.blocks_read, stats.pages_read, stats.strips_read), (0, 0, 0), "{stats:?}");
    assert!(found.contains(&("_time".to_owned(), "9000".to_owned())), "{found:?}");
    let (naive, stats) = answer(QueryOptions::new().prune(false).optimise(false));
    assert!(stats.strips_read > 0);
    assert_eq!(found, naive);
}

#[test]
fn the_newest_rows_are_found_at_the_end() {
    let parts = Arc::new(TestParts::write(&many_rows(20_000), &[5_000], 65_536, Profile::Flush));
    for pipe in [Pipe::Limit(5), sort("_time", true, Some(5), None)] {
        let mut rows = execute(&parts, &query(Filter::All, vec![pipe]), &QueryOptions::new());
        let mut times: Vec<String> =
            rows.by_ref().map(|row| row.unwrap().get("_time").to_owned()).collect();
        times.sort();
        assert_eq!(times.len(), 5);
        assert_eq!(times[4], "1970-01-01T00:00:00.019999Z");
        let stats = rows.stats();
        assert_eq!(stats.parts_read, 1, "{stats:?}");
        assert_eq!((stats.days_read, stats.days_total), (1, 1), "{stats:?}");
        assert!(stats.rows_read < 10_000, "{stats:?}");
    }
}

#[test]
fn absent_values_read_no_strip() {
    let parts = Arc::new(TestParts::write(&many_rows(5_000), &[5_000], 65_536, Profile::Flush));
    for filter in [
        field("n", Predicate::Exact("1000".to_owned())),
        field("app", Predicate::Phrase("cache".to_owned())),
        field("missing", Predicate::Any),
    ] {
        let mut rows = execute(&parts, &query(filter, Vec::new()), &QueryOptions::new());
        assert!(rows.next().is_none());
        assert_eq!(rows.stats().strips_read, 0);
    }
}

#[test]
fn absent_words_read_no_message() {
    let mut state = 7u64;
    let mut word = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        format!("w{}x", (state >> 33) % 300)
    };
    let row = |i: i64| TestRow {
        time: i,
        labels: vec![("app", "web".to_owned())],
        fields: vec![("_msg", (0..8).map(|_| word()).collect::<Vec<_>>().join(" "))],
    };
    let rows: Vec<TestRow> = (0..5_000).map(row).collect();
    let parts = Arc::new(TestParts::write(&rows, &[5_000], 65_536, Profile::Flush));
    let phrase = |text: &str| field("_msg", Predicate::Phrase(text.to_owned()));
    let strips = |filter: Filter| {
        let mut rows = execute(&parts, &query(filter, Vec::new()), &QueryOptions::new());
        let found = rows.by_ref().count();
        (found, rows.stats().strips_read)
    };
    assert_eq!(strips(phrase("zebra")), (0, 0));
    assert_eq!(strips(phrase("w7x zebra")), (0, 0));
    assert!(strips(Filter::Or(vec![phrase("zebra"), phrase("w7x")])).0 > 0);
    assert_eq!(strips(Filter::Not(Box::new(phrase("zebra")))).0, 5_000);
}

#[test]
fn a_dropped_query_ends_and_a_cancelled_one_fails() {
    let parts = Arc::new(TestParts::write(&many_rows(60_000), &[3_000], 500, Profile::Buffer));
    let all = query(Filter::All, Vec::new());
    let mut rows = execute(&parts, &all, &QueryOptions::new().workers(3));
    assert!(rows.next().is_some());
    drop(rows);
    let mut rows = execute(&parts, &all, &QueryOptions::new().workers(2));
    rows.next().unwrap().unwrap();
    rows.cancel_handle().cancel();
    let error = rows.find_map(Result::err);
    assert!(matches!(error, Some(Error::Cancelled)), "{error:?}");
    assert!(rows.next().is_none());
    let options = QueryOptions::new().deadline(std::time::Duration::ZERO);
    let error = execute(&parts, &all, &options).find_map(Result::err);
    assert!(matches!(error, Some(Error::DeadlineExceeded)), "{error:?}");
}

#[test]
fn rows_print_as_json() {
    let rows = vec![TestRow {
        time: 0,
        labels: vec![("app", "web".to_owned())],
        fields: vec![("_msg", "say \"hi\"\n".to_owned()), ("empty", String::new())],
    }];
    let parts = Arc::new(TestParts::write(&rows, &[1], 8, Profile::Buffer));
    let pipes = vec![Pipe::Delete(vec![name("_stream_id")])];
    let mut rows = execute(&parts, &query(Filter::All, pipes), &QueryOptions::new());
    let mut out = Vec::new();
    super::answer::write_json(&rows.next().unwrap().unwrap(), &mut out);
    let expected = concat!(
        r#"{"_time":"1970-01-01T00:00:00Z","_stream":"{app=\"web\"}","#,
        r#""_msg":"say \"hi\"\n","app":"web"}"#
    );
    assert_eq!(String::from_utf8(out).unwrap(), expected);
}

/// Rows that were taken are not in the columns that follow; all others are, once.
#[test]
fn columns_go_on_where_rows_ended() {
    let row = |n: i64| TestRow {
        time: n,
        labels: vec![("app", "web".to_owned())],
        fields: vec![("n", n.to_string())],
    };
    let rows: Vec<TestRow> = (0..10_000).map(row).collect();
    let parts = Arc::new(TestParts::write(&rows, &[10_000], 4_000, Profile::Buffer));
    let mut rows = execute(&parts, &query(Filter::All, Vec::new()), &QueryOptions::new());
    let mut seen: Vec<i64> = Vec::new();
    for _ in 0..3 {
        seen.push(rows.next().unwrap().unwrap().get("n").parse().unwrap());
    }
    while let Some(columns) = rows.next_columns() {
        let columns = columns.unwrap();
        let numbers = columns.column("n").unwrap();
        assert_eq!(numbers.iter().len(), columns.len());
        seen.extend(numbers.iter().map(|n| n.parse::<i64>().unwrap()));
    }
    seen.sort_unstable();
    assert_eq!(seen, (0..10_000).collect::<Vec<_>>());
}

/// Runs a query; its rows, and what it read.
fn read_by(parts: &Arc<TestParts>, text: &str) -> (Vec<Fields>, super::counters::QueryStats) {
    let query: Query = text.parse().unwrap();
    let mut rows = execute(parts, &query, &QueryOptions::new());
    let fields = |row: super::answer::Row| {
        row.fields().map(|(name, value)| (name.to_owned(), value.to_owned())).collect::<Fields>()
    };
    let got: Vec<Fields> = rows.by_ref().map(|row| fields(row.unwrap())).collect();
    let slow = QueryOptions::new().optimise(false).prune(false).workers(1);
    let naive: Vec<Fields> =
        execute(parts, &query, &slow).map(|row| fields(row.unwrap())).collect();
    assert_eq!(got, naive, "{text}");
    (got, rows.stats())
}

/// Rows of many streams; `level` is a constant of most, `n` differs from row to row.
fn streams(rows: i64) -> Vec<TestRow> {
    let row = |i: i64| TestRow {
        time: i * 1_000_000_000,
        labels: vec![("app", format!("a{}", i % 3)), ("pod", format!("p{}", i % 40))],
        fields: vec![
            ("level", if i % 40 < 39 { format!("l{}", i % 5) } else { format!("m{}", i % 7) }),
            ("n", i.to_string()),
            ("_msg", format!("took {i} ms, id {:08x}", i * 77_777)),
        ],
    };
    (0..rows).map(row).collect()
}

#[test]
fn what_streams_share_is_counted_without_a_strip() {
    let parts = Arc::new(TestParts::write(&streams(9_000), &[5_000], 65_536, Profile::Merge));
    for text in [
        "* | stats by (app) count() n",
        "* | stats by (app, pod) count() n, count_uniq(app) u",
        "* | top 3 by (pod)",
        "* | stats by (_stream) count() n",
        "{pod=\"p7\"} | stats by (level, app) count() n",
        "{app=\"a1\"} | uniq by (app) with hits",
    ] {
        let (rows, stats) = read_by(&parts, text);
        assert!(!rows.is_empty());
        assert_eq!((stats.pages_read, stats.strips_read), (0, 0), "{text}: {stats:?}");
    }
    let (_, stats) = read_by(&parts, "* | stats by (app, level) count() n");
    assert!(stats.strips_read > 0);
}

#[test]
fn times_are_decoded_only_where_buckets_meet() {
    let parts = Arc::new(TestParts::write(&streams(9_000), &[1_000], 65_536, Profile::Merge));
    for (text, read) in [
        ("* | stats by (_time:1d) count() n", false),
        ("* | stats by (_time:1w, app) count() n", false),
        ("* | stats by (_time:1000s) count() n", false),
        ("{app=\"a1\"} | stats by (_time:1000s) count() n", false),
        ("* | stats by (_time:1500s) count() n", true),
        ("* | stats by (_time:1d) min(_time) n", true),
    ] {
        let (rows, stats) = read_by(&parts, text);
        assert!(!rows.is_empty());
        assert_eq!(stats.strips_read > 0, read, "{text}: {stats:?}");
    }
    // Half of the parts lie in one bucket of 1500 s.
    let (_, some) = read_by(&parts, "* | stats by (_time:1500s) count() n");
    let (_, all) = read_by(&parts, "* | stats by (_time:7s) count() n");
    assert!(some.strips_read < all.strips_read, "{some:?} {all:?}");
}

#[test]
fn only_the_best_rows_are_made_where_a_sort_follows() {
    let parts = Arc::new(TestParts::write(&streams(3_000), &[700], 1_000, Profile::Flush));
    for text in [
        "* | uniq by (n) with hits | sort by (hits) desc limit 7",
        "* | uniq by (level) with hits | sort by (hits) desc limit 3 rank as r",
        "* | uniq by (level) with hits | sort by (hits) limit 2",
        "* | uniq by (n) | limit 5",
        "* | uniq by (pod, level) with hits | sort by (hits desc, level desc) limit 2",
        "* | uniq by (pod, level) with hits limit 9 | sort by (hits desc, level desc) limit 2",
        "* | top 9 by (pod, level) | sort by (hits desc, level desc) limit 2",
        "* | uniq by (n) | stats count() n",
        "* | uniq by (n) | filter n:1* | stats count() n",
        "* | stats by (level) count() n | sort by (n) desc limit 2",
        "* | stats by (level) count() n | sort by (n, level desc) offset 1 limit 3",
        "* | stats by (pod) max(n) m | sort by (m) limit 4",
        "* | stats by (pod, level) count() n | limit 3",
        "* | stats by (pod) count() n | limit 3",
        "* | collapse_nums | top 3 by (_msg)",
        "* | collapse_nums at _msg prettify | uniq by (_msg) with hits",
        "* | collapse_nums at app | stats by (app) count() n",
        "* | collapse_nums at missing | stats by (missing) count() n",
        "* | patterns by (app)",
        "* | patterns by (_msg) | limit 2",
    ] {
        let (rows, _) = read_by(&parts, text);
        assert!(!rows.is_empty(), "{text}");
    }
}
