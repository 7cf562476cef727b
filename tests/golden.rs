//! The golden cases: every query over every physical layout gives the recorded answer.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

#[path = "support/compare.rs"]
mod compare;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use compare::{Row, Rules, difference, row_of};
use loglith::{IngestOptions, Query, QueryOptions, Store, Timestamp};
use serde_json::Value;

struct Case {
    id: String,
    tier: u64,
    data: String,
    stream_fields: Vec<String>,
    query: String,
    now: Option<String>,
    rules: Rules,
    /// `None`: the query must be refused.
    expect: Option<Vec<Row>>,
}

/// Where the rows are when the queries run.
#[derive(Debug, Clone, Copy)]
enum Layout {
    /// Not flushed.
    Buffer,
    /// In memory parts, one for each of several appends.
    MemoryParts,
    /// In one part.
    File,
    /// In several parts of few rows.
    SmallFiles,
    /// Merged from several parts.
    Merged,
}

const LAYOUTS: [Layout; 5] =
    [Layout::Buffer, Layout::MemoryParts, Layout::File, Layout::SmallFiles, Layout::Merged];

fn data_dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/golden")
}

fn strings(value: &Value) -> Vec<String> {
    let items = value.as_array().map_or(&[][..], Vec::as_slice);
    items.iter().map(|v| v.as_str().unwrap().to_owned()).collect()
}

fn cases() -> Vec<Case> {
    let text = fs::read_to_string(data_dir().join("cases.jsonl")).unwrap();
    text.lines().map(|line| parse_case(&serde_json::from_str(line).unwrap())).collect()
}

fn parse_case(c: &Value) -> Case {
    let text = |name: &str| c[name].as_str().map(str::to_owned);
    let json = c["json"].as_object().map(|modes| {
        modes.iter().map(|(field, mode)| (field.clone(), mode.as_str().unwrap().to_owned()))
    });
    Case {
        id: text("id").unwrap(),
        tier: c["tier"].as_u64().unwrap(),
        data: text("data").unwrap(),
        stream_fields: strings(&c["stream_fields"]),
        query: text("query").unwrap(),
        now: text("now"),
        rules: Rules {
            ordered: c["ordered"].as_bool().unwrap_or(false),
            approx: strings(&c["approx"]),
            json: json.map(Iterator::collect).unwrap_or_default(),
        },
        expect: c["expect"].as_array().map(|rows| rows.iter().map(row_of).collect()),
    }
}

/// A store that holds the data set in this layout.
fn store(dir: &Path, data: &str, stream_fields: &[String], layout: Layout) -> Store {
    let seal_bytes = if matches!(layout, Layout::MemoryParts) { 1 } else { 64 << 20 };
    let options = Store::options().seal_bytes(seal_bytes).background(false);
    let store = options.open(dir).unwrap();
    let ingest = store.ingest(IngestOptions::new().stream_fields(stream_fields.to_vec())).unwrap();
    let bytes = fs::read(data_dir().join(data)).unwrap();
    let lines: Vec<&[u8]> = bytes.split_inclusive(|&b| b == b'\n').collect();
    let pieces = match layout {
        Layout::Buffer | Layout::File => 1,
        _ => 5,
    };
    let mut accepted = 0;
    for piece in lines.chunks(lines.len().div_ceil(pieces)) {
        accepted += ingest.ndjson(&piece.concat()[..]).unwrap().accepted;
        if !matches!(layout, Layout::Buffer | Layout::MemoryParts) {
            store.flush().unwrap();
        }
    }
    assert_eq!(accepted, lines.len() as u64, "{data}: every row is accepted");
    if matches!(layout, Layout::Merged) {
        store.compact().unwrap();
    }
    store
}

/// `None` if the case passes.
fn check(store: &Store, case: &Case) -> Option<String> {
    let answer = answer(store, case);
    match (&case.expect, answer) {
        (None, Err(_)) => None,
        (None, Ok(rows)) => Some(format!("want an error, got {} rows", rows.len())),
        (Some(_), Err(e)) => Some(format!("unexpected error: {e}")),
        (Some(want), Ok(have)) => difference(&case.rules, want, &have),
    }
}

fn answer(store: &Store, case: &Case) -> loglith::Result<Vec<Row>> {
    let query: Query = case.query.parse()?;
    let mut options = QueryOptions::new();
    if let Some(now) = &case.now {
        options = options.now(Timestamp::parse(now).unwrap());
    }
    let rows = store.query_with(&query, &options)?;
    rows.map(|row| {
        let row = row?;
        Ok(row.fields().map(|(n, v)| (n.to_owned(), v.to_owned())).collect())
    })
    .collect()
}

/// Runs all cases of a data set in one layout; returns the ids that fail, with the difference.
fn run_data_set(cases: &[&Case], layout: Layout) -> BTreeMap<String, String> {
    let dir = tempfile::tempdir().unwrap();
    let store = store(dir.path(), &cases[0].data, &cases[0].stream_fields, layout);
    let mut failed = BTreeMap::new();
    for case in cases {
        if let Some(why) = check(&store, case) {
            failed.insert(case.id.clone(), format!("{layout:?}: {}\n    {why}", case.query));
        }
    }
    store.close().unwrap();
    failed
}

#[test]
fn answers_are_the_recorded_ones() {
    let cases = cases();
    assert!(cases.len() > 1500);
    let mut sets: BTreeMap<(&str, &[String]), Vec<&Case>> = BTreeMap::new();
    for case in &cases {
        sets.entry((&case.data, &case.stream_fields)).or_default().push(case);
    }
    let jobs: Vec<(&Vec<&Case>, Layout)> =
        sets.values().flat_map(|set| LAYOUTS.map(|layout| (set, layout))).collect();
    let next = std::sync::atomic::AtomicUsize::new(0);
    let failed = std::sync::Mutex::new(BTreeMap::new());
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                loop {
                    let i = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    let Some((set, layout)) = jobs.get(i) else { break };
                    failed.lock().unwrap().extend(run_data_set(set, *layout));
                }
            });
        }
    });
    judge(&cases, &failed.into_inner().unwrap());
}

/// Fails on any failure that is not expected, and on any expected failure that passes.
fn judge(cases: &[Case], failed: &BTreeMap<String, String>) {
    let listed = fs::read_to_string(data_dir().join("expected_failures.txt")).unwrap_or_default();
    let expected: BTreeSet<&str> = listed.lines().filter(|l| !l.is_empty()).collect();
    let daily: Vec<&str> = cases
        .iter()
        .filter(|c| c.tier == 1 && expected.contains(c.id.as_str()))
        .map(|c| c.id.as_str())
        .collect();
    assert!(daily.is_empty(), "cases of tier 1 may not be expected to fail: {daily:?}");
    let mut report = Vec::new();
    for (id, why) in failed.iter().filter(|(id, _)| !expected.contains(id.as_str())) {
        report.push(format!("{id} {why}"));
    }
    for id in expected.iter().filter(|id| !failed.contains_key(**id)) {
        report.push(format!("{id} passes or is unknown: take it off expected_failures.txt"));
    }
    if let Ok(path) = std::env::var("GOLDEN_FAILED_IDS") {
        let ids: Vec<&str> = failed.keys().map(String::as_str).collect();
        fs::write(path, ids.join("\n") + "\n").unwrap();
    }
    let shown: Vec<&String> = report.iter().take(30).collect();
    assert!(
        report.is_empty(),
        "{} of {} cases:\n{}",
        report.len(),
        cases.len(),
        shown.iter().map(|s| s.as_str()).collect::<Vec<_>>().join("\n")
    );
}
