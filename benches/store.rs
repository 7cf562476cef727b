//! Ingest, flush, merge and open, over made-up rows of four kinds.

#![allow(missing_docs, unreachable_pub, dead_code, reason = "a benchmark")]
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "a benchmark ends by panicking"
)]

#[path = "support/rows.rs"]
mod rows;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use loglith::{IngestOptions, Store};
use rows::{KINDS, STREAM_FIELDS, rows};

const ROWS: usize = 20_000;

fn open(dir: &std::path::Path) -> Store {
    Store::options().background(false).open(dir).unwrap()
}

fn ingest(store: &Store, input: &[u8]) {
    let ingest = store.ingest(IngestOptions::new().stream_fields(STREAM_FIELDS)).unwrap();
    let report = ingest.ndjson(input).unwrap();
    assert_eq!(report.accepted, ROWS as u64);
}

fn append(c: &mut Criterion) {
    let mut group = c.benchmark_group("ingest");
    group.sample_size(10);
    for kind in KINDS {
        let input = rows(1, ROWS, kind);
        group.throughput(Throughput::Bytes(input.len() as u64));
        group.bench_function(format!("{kind:?}"), |b| {
            b.iter_batched(
                || tempfile::tempdir().unwrap(),
                |dir| {
                    let store = open(dir.path());
                    ingest(&store, &input);
                    store.close().unwrap();
                    dir
                },
                BatchSize::PerIteration,
            );
        });
    }
    group.finish();
}

fn flush(c: &mut Criterion) {
    let mut group = c.benchmark_group("flush");
    group.sample_size(10);
    for kind in KINDS {
        // Below 4 MiB, so that the rows wait in the buffer.
        let input = rows(2, 2_000, kind);
        group.throughput(Throughput::Elements(2_000));
        group.bench_function(format!("{kind:?}"), |b| {
            b.iter_batched(
                || {
                    let dir = tempfile::tempdir().unwrap();
                    let store = open(dir.path());
                    let options = IngestOptions::new().stream_fields(STREAM_FIELDS);
                    store.ingest(options).unwrap().ndjson(&input[..]).unwrap();
                    (dir, store)
                },
                |(dir, store)| {
                    store.flush().unwrap();
                    (dir, store)
                },
                BatchSize::PerIteration,
            );
        });
    }
    group.finish();
}

/// Eight parts a day become one.
fn merge(c: &mut Criterion) {
    let mut group = c.benchmark_group("merge");
    group.sample_size(10);
    for kind in KINDS {
        let parts: Vec<Vec<u8>> = (0..8).map(|seed| rows(seed, ROWS / 8, kind)).collect();
        group.throughput(Throughput::Elements(ROWS as u64));
        group.bench_function(format!("{kind:?}"), |b| {
            b.iter_batched(
                || {
                    let dir = tempfile::tempdir().unwrap();
                    let store = open(dir.path());
                    let options = IngestOptions::new().stream_fields(STREAM_FIELDS);
                    let ingest = store.ingest(options).unwrap();
                    for part in &parts {
                        ingest.ndjson(&part[..]).unwrap();
                        store.flush().unwrap();
                    }
                    drop(ingest);
                    (dir, store)
                },
                |(dir, store)| {
                    let report = store.compact().unwrap();
                    assert!(report.merges > 0, "{report}");
                    (dir, store)
                },
                BatchSize::PerIteration,
            );
        });
    }
    group.finish();
}

fn reopen(c: &mut Criterion) {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    for kind in KINDS {
        ingest(&store, &rows(3, ROWS, kind));
    }
    store.close().unwrap();
    c.bench_function("open", |b| {
        b.iter(|| Store::open_read_only(dir.path()).unwrap());
    });
}

criterion_group!(benches, append, flush, merge, reopen);
criterion_main!(benches);
