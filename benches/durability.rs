//! What durability costs: batches of 1,000 rows under each of them, in wall and processor time,
//! and producers that share the syncs of the journal.
//!
//! Prints the medians of several rounds; `BENCH_ROUNDS` says of how many (default 5).

#![allow(missing_docs, unreachable_pub, dead_code, reason = "a benchmark")]
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "a benchmark ends by panicking"
)]

#[path = "support/measure.rs"]
mod measure;
#[path = "support/rows.rs"]
mod rows;

use std::time::Instant;

use loglith::{Durability, Entry, IngestOptions, Store};
use measure::{median, rounds};
use rows::{KINDS, STREAM_FIELDS, rows};

const BATCHES: usize = 100;
const BATCH_ROWS: usize = 1_000;
const TICKS_PER_SECOND: f64 = 100.0;

/// Seconds of processor time of this process, all threads; 0 where the system does not say.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or("").split(' ').collect();
    let ticks = |i: usize| fields.get(i).and_then(|f| f.parse::<f64>().ok()).unwrap_or(0.0);
    (ticks(12) + ticks(13)) / TICKS_PER_SECOND
}

/// The lines of a batch each.
fn batches() -> Vec<Vec<u8>> {
    let input = rows(1, BATCHES * BATCH_ROWS, KINDS[0]);
    let lines: Vec<&[u8]> = input.split_inclusive(|b| *b == b'\n').collect();
    lines.chunks(BATCH_ROWS).map(<[&[u8]]>::concat).collect()
}

/// Seconds and processor seconds of appending, without the opening and the close.
fn append(durability: Durability, batches: &[Vec<u8>]) -> (f64, f64) {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::options().durability(durability).open(dir.path()).unwrap();
    let ingest = store.ingest(IngestOptions::new().stream_fields(STREAM_FIELDS)).unwrap();
    let (begun, cpu) = (Instant::now(), cpu_seconds());
    for batch in batches {
        ingest.ndjson(&batch[..]).unwrap();
    }
    let spent = (begun.elapsed().as_secs_f64(), cpu_seconds() - cpu);
    drop(ingest);
    store.close().unwrap();
    spent
}

/// Appends of one row each a second, by so many producers under `Sync`.
fn producers(count: usize) -> f64 {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::options().durability(Durability::Sync).open(dir.path()).unwrap();
    let ingest = store.ingest(IngestOptions::new().stream_fields(["app"])).unwrap();
    let rows = 400 / count.min(4);
    let begun = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..count {
            scope.spawn(|| {
                for n in 0..rows as u64 {
                    let entry = Entry::new().field("app", "a").field("n", n).message("a line");
                    ingest.append(entry).unwrap();
                }
            });
        }
    });
    (rows * count) as f64 / begun.elapsed().as_secs_f64()
}

fn main() {
    let rounds = rounds();
    let batches = batches();
    let kinds = [Durability::Buffered, Durability::Process, Durability::Sync];
    let mut spent = [const { Vec::new() }; 3];
    // In turns, so that a slow moment of the machine hits all of them.
    for _ in 0..rounds {
        for (kind, spent) in kinds.into_iter().zip(&mut spent) {
            spent.push(append(kind, &batches));
        }
    }
    println!("{BATCHES} batches of {BATCH_ROWS} rows, medians of {rounds} rounds");
    for (kind, spent) in kinds.into_iter().zip(spent) {
        let wall = median(spent.iter().map(|s| s.0).collect());
        let cpu = median(spent.iter().map(|s| s.1).collect());
        println!("{kind:?}: {wall:.3} s, {cpu:.2} s of processor time");
    }
    for count in [1, 2, 4, 8, 16] {
        let rate = median((0..rounds).map(|_| producers(count)).collect());
        println!("{count} producers under Sync: {rate:.0} appends/s");
    }
}
