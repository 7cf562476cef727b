//! Queries beside each other and beside ingestion, each as a ratio to the same work alone: eight
//! queries at once, a query for a rare word beside one that reads all messages, and queries while
//! rows arrive at half the speed at which the store takes them.
//!
//! Prints the medians of several rounds; `BENCH_ROUNDS` says of how many (default 5).

#![allow(missing_docs, unreachable_pub, dead_code, reason = "a benchmark")]
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "a benchmark ends by panicking"
)]

#[path = "support/measure.rs"]
mod measure;
#[path = "support/rows.rs"]
mod rows;

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use loglith::{IngestOptions, Store};
use measure::{answer, median, rounds};
use rows::{KINDS, STREAM_FIELDS, rows};

const ROWS_PER_KIND: usize = 50_000;
const BATCH_ROWS: usize = 1_000;
/// What is measured takes at least so long.
const LEAST: Duration = Duration::from_millis(300);

const QUERIES: [&str; 8] = [
    "* | stats by (_time:5m) count() n",
    "* | stats by (app, level) count() n",
    "* | top 10 by (remote_addr)",
    "finished | stats count() n",
    "~\"timeout (after|before) [0-9]+ms\" | stats count() n",
    "i(FAILED) | stats count() n",
    "{app=\"nginx\"} | uniq by (path) with hits | sort by (hits) desc | limit 20",
    "* | sort by (_time) desc | limit 100",
];
const RARE: &str = "DHCPREQUEST | stats count() n";
const ALL_MESSAGES: &str = "* | extract \"<word> \" | stats count_uniq(word) n";

fn run(store: &Store, query: &str) {
    black_box(answer(store, query));
}

/// Seconds that one call takes, measured over enough of them.
fn seconds(mut call: impl FnMut()) -> f64 {
    let begun = Instant::now();
    let mut calls = 0;
    while begun.elapsed() < LEAST {
        call();
        calls += 1;
    }
    begun.elapsed().as_secs_f64() / f64::from(calls)
}

/// Seconds that `call` takes while `other` runs again and again.
fn seconds_beside(other: impl Fn() + Sync, call: impl FnMut()) -> f64 {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                other();
            }
        });
        let spent = seconds(call);
        stop.store(true, Ordering::Relaxed);
        spent
    })
}

/// Seconds of all queries one after the other, and of all of them at once, a thread for each.
fn at_once(store: &Store) -> (f64, f64) {
    let one_by_one = seconds(|| QUERIES.iter().for_each(|query| run(store, query)));
    let together = seconds(|| {
        thread::scope(|scope| {
            for query in QUERIES {
                scope.spawn(move || run(store, query));
            }
        });
    });
    (one_by_one, together)
}

fn main() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let ingest = store.ingest(IngestOptions::new().stream_fields(STREAM_FIELDS)).unwrap();
    for kind in KINDS {
        ingest.ndjson(&rows(1, ROWS_PER_KIND, kind)[..]).unwrap();
    }
    store.compact().unwrap();
    let (mut queries, mut rare, mut beside_ingest) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rounds() {
        let (one_by_one, together) = at_once(&store);
        queries.push(one_by_one / together);

        let alone = seconds(|| run(&store, RARE));
        let heavy = || run(&store, ALL_MESSAGES);
        let beside = seconds_beside(heavy, || run(&store, RARE));
        rare.push(beside / alone);
    }
    // Rows that arrive make the store larger, so this comes last, in a store for each round.
    let input = rows(2, ROWS_PER_KIND, KINDS[0]);
    let lines: Vec<&[u8]> = input.split_inclusive(|b| *b == b'\n').collect();
    let batches: Vec<Vec<u8>> = lines.chunks(BATCH_ROWS).map(<[&[u8]]>::concat).collect();
    let next = AtomicUsize::new(0);
    let append = || {
        let i = next.fetch_add(1, Ordering::Relaxed) % batches.len();
        ingest.ndjson(&batches[i][..]).unwrap();
    };
    let all = || QUERIES.iter().for_each(|query| run(&store, query));
    for _ in 0..rounds() {
        let full_speed = Duration::from_secs_f64(seconds(append));
        store.compact().unwrap();
        let alone = seconds(all);
        let half_speed = || {
            let begun = Instant::now();
            append();
            thread::sleep((2 * full_speed).saturating_sub(begun.elapsed()));
        };
        let beside = seconds_beside(half_speed, all);
        beside_ingest.push(beside / alone);
    }
    println!("eight queries at once: {:.2}x the throughput of one by one", median(queries));
    println!("a rare word beside a query of all messages: {:.2}x its time", median(rare));
    println!("queries beside ingestion at half speed: {:.2}x its time", median(beside_ingest));
}
