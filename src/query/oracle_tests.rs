//! The engine against the naive evaluator: random rows and random queries, over every physical
//! layout, with and without pruning and rewriting, with one worker and with several.
//!
//! `ORACLE_QUERIES` sets how many queries run (10,000 by default), `ORACLE_SEED` where they start.
//! A failure prints its seed and the smallest rows and query that were found for it.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::ast::Query;
use super::naive::{self, Scope};
use super::testgen::{self, NOW, Rng, STREAM_FIELDS, Sample, Sketch};
use crate::ingest::IngestOptions;
use crate::io::SimDisk;
use crate::options::QueryOptions;
use crate::record::{Timestamp, Zone};
use crate::store::Store;

const QUERIES: u64 = 10_000;
const QUERIES_PER_STORE: u64 = 100;

/// Where the rows are.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Layout {
    Buffer,
    MemoryParts,
    Files,
    Merged,
    /// Some merged, some in a file, some in memory parts and some in the buffer.
    Everywhere,
}

const LAYOUTS: [Layout; 5] =
    [Layout::Buffer, Layout::MemoryParts, Layout::Files, Layout::Merged, Layout::Everywhere];

/// How a query runs.
#[derive(Debug, Clone, Copy)]
struct Variation {
    prune: bool,
    optimise: bool,
    workers: usize,
}

fn store(layout: Layout, samples: &[Sample]) -> Store {
    let disk = Arc::new(SimDisk::new());
    let seal_bytes = if layout == Layout::MemoryParts { 1 } else { 64 << 20 };
    let options = Store::options().disk(disk).seal_bytes(seal_bytes).background(false);
    let store = options.open("store").unwrap();
    let ingest = store.ingest(IngestOptions::new().stream_fields(STREAM_FIELDS)).unwrap();
    let pieces = if layout == Layout::Buffer { 2 } else { 4 };
    for (i, piece) in samples.chunks(samples.len().div_ceil(pieces).max(1)).enumerate() {
        let lines: Vec<&str> = piece.iter().map(|s| s.json.as_str()).collect();
        let report = ingest.ndjson(lines.join("\n").as_bytes()).unwrap();
        assert_eq!(report.accepted, piece.len() as u64, "{report:?}");
        match layout {
            Layout::Files | Layout::Merged => drop(store.flush().unwrap()),
            Layout::Everywhere if i == 1 => drop(store.compact().unwrap()),
            Layout::Everywhere if i == 2 => drop(store.flush().unwrap()),
            _ => {}
        }
    }
    if layout == Layout::Merged {
        store.compact().unwrap();
    }
    store
}

type Fields = BTreeMap<String, String>;

fn engine(store: &Store, query: &Query, zone: Zone, how: Variation) -> crate::Result<Vec<Fields>> {
    let mut options = QueryOptions::new()
        .now(Timestamp::from_nanos(NOW))
        .prune(how.prune)
        .optimise(how.optimise)
        .workers(how.workers);
    options.zone = zone;
    let rows = store.query_with(query, &options)?;
    rows.map(|row| Ok(row?.fields().map(|(n, v)| (n.to_owned(), v.to_owned())).collect())).collect()
}

/// Rows in the form in which they are compared.
fn comparable(rows: Vec<Fields>, sketch: &Sketch) -> Vec<Fields> {
    let mut rows = rows;
    for row in &mut rows {
        row.retain(|_, value| !value.is_empty());
        for name in &sketch.approx {
            if let Some(value) = row.get_mut(name)
                && let Ok(x) = value.parse::<f64>()
                && x.is_finite()
            {
                *value = format!("{x:.9e}");
            }
        }
        for name in &sketch.json {
            row.entry(name.clone()).and_modify(|value| *value = sorted_members(value));
        }
    }
    rows.retain(|row| !row.is_empty());
    if !sketch.ordered {
        rows.sort();
    }
    rows
}

/// An object, or an array of texts of objects, with their members by name.
fn sorted_members(json: &str) -> String {
    match serde_json::from_str(json).unwrap() {
        serde_json::Value::Array(items) => {
            let texts = items.iter().map(|item| sorted_members(item.as_str().unwrap()));
            texts.collect::<Vec<_>>().join("\n")
        }
        object => object.to_string(),
    }
}

/// The query, and its rows by the naive evaluator; the reason if the text cannot be run.
fn expected(samples: &[Sample], sketch: &Sketch) -> Result<(Query, Vec<Fields>), String> {
    let query: Query = sketch.text().parse().map_err(|e| format!("refused: {e}"))?;
    let printed = query.to_string();
    match printed.parse::<Query>() {
        Ok(again) if again == query => {}
        other => return Err(format!("prints as {printed}, which reads as {other:?}")),
    }
    let rows: Vec<naive::Row> = samples.iter().map(|s| s.row.clone()).collect();
    let mut scope = Scope::at(NOW);
    scope.clock = sketch.zone().1;
    let (want, _) = naive::run(&query, &rows, scope);
    Ok((query, comparable(want.into_iter().map(|r| r.fields).collect(), sketch)))
}

/// What differs between the engine and the naive evaluator; `None` if nothing does.
fn difference(
    (query, want): &(Query, Vec<Fields>),
    sketch: &Sketch,
    store: &Store,
    how: Variation,
) -> Option<String> {
    let have = match engine(store, query, sketch.zone().0, how) {
        Ok(rows) => comparable(rows, sketch),
        Err(e) => return Some(format!("failed: {e}")),
    };
    if *want == have {
        return None;
    }
    let mut out = format!("want {} rows, got {}", want.len(), have.len());
    let at = (0..want.len().max(have.len())).find(|&i| want.get(i) != have.get(i)).unwrap();
    let _ = write!(out, "\nrow {at}: want {:?}\n     got {:?}", want.get(at), have.get(at));
    Some(out)
}

/// Drops pipes and rows for as long as the difference stays, and describes what is left.
fn shrunk(samples: Vec<Sample>, mut sketch: Sketch, layout: Layout, how: Variation) -> String {
    let differs = |samples: &[Sample], sketch: &Sketch| {
        let expected = expected(samples, sketch).ok()?;
        difference(&expected, sketch, &store(layout, samples), how)
    };
    let mut samples = samples;
    let mut why = differs(&samples, &sketch).unwrap_or_else(|| "not again".to_owned());
    let mut part = 1;
    while part < sketch.parts.len() {
        let mut smaller = sketch.clone();
        smaller.parts.remove(part);
        // Without its sort a query may no longer say in which order its rows come.
        smaller.ordered &=
            smaller.parts.iter().any(|p| p.starts_with("sort") || p.starts_with("stream_context"));
        match differs(&samples, &smaller) {
            Some(w) => (sketch, why) = (smaller, w),
            None => part += 1,
        }
    }
    let mut step = samples.len() / 2;
    while step > 0 {
        let mut at = 0;
        while at < samples.len() {
            let keep = |i: usize| i < at || i >= at + step;
            let kept = (0..samples.len()).filter(|&i| keep(i));
            let smaller: Vec<Sample> = kept.map(|i| samples[i].clone()).collect();
            match differs(&smaller, &sketch) {
                Some(w) if !smaller.is_empty() => (samples, why) = (smaller, w),
                _ => at += step,
            }
        }
        step /= 2;
    }
    let lines: Vec<&str> = samples.iter().map(|s| s.json.as_str()).collect();
    format!("query: {}\nrows:\n{}\n{why}", sketch.text(), lines.join("\n"))
}

/// One set of rows, many queries.
fn round(seed: u64, queries: u64) -> Result<(), String> {
    let mut rng = Rng::new(seed);
    let count = 1 + rng.below(120);
    let samples = testgen::rows(&mut rng, count);
    let stores: Vec<(Layout, Store)> =
        LAYOUTS.into_iter().map(|layout| (layout, store(layout, &samples))).collect();
    for i in 0..queries {
        let sketch = testgen::query(&mut rng);
        let expected = expected(&samples, &sketch)
            .map_err(|why| format!("seed {seed}: {}\n{why}", sketch.text()))?;
        for (k, (layout, store)) in stores.iter().enumerate() {
            // Every combination comes up on every layout, one of them for each query.
            let bits = i + k as u64;
            let how = Variation {
                prune: bits & 1 == 0,
                optimise: bits & 2 == 0,
                workers: if bits & 4 == 0 { 1 } else { 3 },
            };
            if difference(&expected, &sketch, store, how).is_some() {
                let small = shrunk(samples, sketch, *layout, how);
                return Err(format!("seed {seed}, {layout:?}, {how:?}\n{small}"));
            }
        }
    }
    Ok(())
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().map_or(default, |v| v.parse().expect("a number"))
}

#[test]
fn every_layout_answers_as_the_naive_evaluator() {
    let total = number("ORACLE_QUERIES", QUERIES);
    let first = number("ORACLE_SEED", 1);
    let rounds = total.div_ceil(QUERIES_PER_STORE);
    println!("{total} queries, first seed {first}");
    let next = AtomicU64::new(0);
    let failures: Vec<String> = std::thread::scope(|scope| {
        let work = || {
            loop {
                let i = next.fetch_add(1, Ordering::Relaxed);
                if i >= rounds {
                    return None;
                }
                if let Err(e) = round(first + i, QUERIES_PER_STORE.min(total)) {
                    next.store(rounds, Ordering::Relaxed);
                    return Some(e);
                }
            }
        };
        let workers = std::thread::available_parallelism().map_or(1, usize::from);
        let handles: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        handles.into_iter().filter_map(|h| h.join().unwrap()).collect()
    });
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}
