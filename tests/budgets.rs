//! Memory and work stay within what the options say, counted by an allocator and by the
//! counters of queries.
//!
//! The memory of zstd's contexts comes from C and is not counted here; a context has a fixed size
//! and there is one for each worker.

// The allocator of a program can only be replaced by an unsafe implementation.
#![allow(unsafe_code, reason = "counts what the system's allocator hands out")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "a test fails by panicking"
)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use loglith::{Batch, Error, IngestOptions, Query, QueryOptions, Store, Timestamp};

/// Counts bytes that are handed out now, and the most there were.
struct Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

fn taken(bytes: usize) {
    let live = LIVE.fetch_add(bytes, Ordering::Relaxed) + bytes;
    PEAK.fetch_max(live, Ordering::Relaxed);
}

// SAFETY: every call goes to the system's allocator with the same arguments; the counters are
// atomic and allocate nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract of `alloc`, which is that of the system.
        let memory = unsafe { System.alloc(layout) };
        if !memory.is_null() {
            taken(layout.size());
        }
        memory
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as for `alloc`.
        let memory = unsafe { System.alloc_zeroed(layout) };
        if !memory.is_null() {
            taken(layout.size());
        }
        memory
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: `memory` came from the system's allocator with this layout.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as for `dealloc`; the caller checks `size`.
        let moved = unsafe { System.realloc(memory, layout, size) };
        if !moved.is_null() {
            taken(size);
            LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        }
        moved
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// One test at a time: they share the counters.
fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The most bytes that were handed out while `f` ran, beyond those before it.
fn peak<T>(f: impl FnOnce() -> T) -> (usize, T) {
    let before = LIVE.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    let value = f();
    (PEAK.load(Ordering::Relaxed).saturating_sub(before), value)
}

const MIB: usize = 1 << 20;

/// Rows whose messages are not alike, in batches of `rows`.
fn batch(first: u64, rows: u64, bytes: usize) -> Batch {
    let mut batch = Batch::new();
    for n in first..first + rows {
        let mut text = String::new();
        let mut state = n | 1;
        while text.len() < bytes {
            state = state.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(17);
            text.push_str(&format!("w{state:x} "));
        }
        let time = Timestamp::from_nanos((n * 1_000_000).cast_signed());
        batch.entry().time(time).field("app", "a").field("n", n).message(&text);
    }
    batch
}

fn filled(dir: &std::path::Path, rows: u64) -> Store {
    // The least memory, so that the cache is small too.
    let store = Store::options().memory_limit(0).background(false).open(dir).unwrap();
    let ingest = store.ingest(IngestOptions::new().stream_fields(["app"])).unwrap();
    for first in (0..rows).step_by(1_000) {
        ingest.append_batch(batch(first, 1_000, 200)).unwrap();
    }
    store.flush().unwrap();
    store
}

#[test]
fn ingest_stays_within_the_memory_of_the_store() {
    let _alone = alone();
    for (limit, rows) in [(16, 8_000u64), (64, 24_000)] {
        let dir = tempfile::tempdir().unwrap();
        let (peak, ()) = peak(|| {
            let options = Store::options().memory_limit((limit * MIB) as u64).background(false);
            let store = options.open(dir.path()).unwrap();
            let ingest = store.ingest(IngestOptions::new().stream_fields(["app"])).unwrap();
            for first in (0..rows).step_by(500) {
                ingest.append_batch(batch(first, 500, 400)).unwrap();
            }
            drop(ingest);
            store.close().unwrap();
        });
        assert!(peak * 10 <= limit * MIB * 12, "{peak} bytes of {limit} MiB");
    }
}

#[test]
fn large_inputs_stay_within_the_memory_of_the_store() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let line = |n: u64| {
        let rest = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        format!(
            "{{\"_time\":{},\"app\":\"a\",\"n\":{n},\"_msg\":\"w{rest:x} {}\"}}\n",
            n + 1,
            "x".repeat(400)
        )
    };
    let input: Vec<u8> = (0..50_000).flat_map(|n| line(n).into_bytes()).collect();
    assert!(input.len() > 20 * MIB);
    let (peak, accepted) = peak(|| {
        let store = Store::options().background(false).open(dir.path()).unwrap();
        let ingest = store.ingest(IngestOptions::new().stream_fields(["app"])).unwrap();
        let accepted = ingest.ndjson(&input[..]).unwrap().accepted;
        drop(ingest);
        store.close().unwrap();
        accepted
    });
    assert_eq!(accepted, 50_000);
    assert!(peak * 10 <= 256 * MIB * 12, "{peak} bytes of 256 MiB");
}

#[test]
fn queries_stay_within_their_memory_or_say_so() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let store = filled(dir.path(), 60_000);
    let (limit, cache) = (4 * MIB, 2 * MIB);
    // A table of groups that grows is there twice until it has moved, and charged then.
    let moving = limit * 3 / 4;
    // What a scan holds itself, strips of the columns and batches on their way: less than the
    // largest column of a block.
    let scan = MIB;
    let greedy = [
        ("* | sort by (_msg)", 0),
        ("* | uniq by (_msg)", moving),
        ("* | stats by (_msg) count() as c", moving),
        ("* | stats uniq_values(_msg) as u", 0),
        ("* | stats values(_msg) as u", 0),
        ("* | top 100000 by (_msg)", moving),
    ];
    for (text, moving) in greedy {
        let query: Query = text.parse().unwrap();
        for workers in [1, 2] {
            let options = QueryOptions::new().memory_limit(limit as u64).workers(workers);
            let (peak, outcome) = peak(|| {
                let rows = store.query_with(&query, &options).unwrap();
                rows.into_iter().find_map(Result::err)
            });
            assert!(matches!(outcome, Some(Error::MemoryLimit { .. })), "{text}: {outcome:?}");
            let most = limit * 12 / 10 + cache + scan + moving;
            assert!(peak <= most, "{text}, {workers} workers: {peak} bytes of {most}");
        }
    }
    // Rows that nobody keeps need no memory that grows with them.
    let query: Query = "* | fields n".parse().unwrap();
    let (peak, rows) = peak(|| {
        let options = QueryOptions::new().memory_limit(limit as u64).workers(2);
        store.query_with(&query, &options).unwrap().map(|row| row.unwrap()).fold(0, |n, _| n + 1)
    });
    assert_eq!(rows, 60_000);
    assert!(peak <= limit + cache, "{peak} bytes");
}

/// Opening costs what the manifest says of a part, not what is in it, and names are read by
/// those who need them.
#[test]
fn an_open_store_holds_little_of_each_part() {
    let _alone = alone();
    const PARTS: u64 = 40;
    const NAMES: u64 = 2_000;
    let dir = tempfile::tempdir().unwrap();
    let store = Store::options().background(false).open(dir.path()).unwrap();
    let ingest = store.ingest(IngestOptions::new()).unwrap();
    let mut all = Batch::new();
    // A part for each day, each with names of its own.
    for day in 0..PARTS {
        for row in 0..4 {
            let time = Timestamp::from_nanos((day * 86_400_000_000_000 + row).cast_signed());
            let mut entry = all.entry().time(time);
            for n in 0..NAMES / 4 {
                entry = entry.field(&format!("name_of_a_field_{day}_{}", row * NAMES + n), n);
            }
        }
    }
    ingest.append_batch(all).unwrap();
    store.flush().unwrap();
    drop(ingest);
    store.close().unwrap();
    let (opening, store) = peak(|| Store::open_read_only(dir.path()).unwrap());
    assert_eq!(store.stats().file_parts, 0, "a reader counts when it looks");
    assert!(opening <= 3_000 * PARTS as usize + MIB, "{opening} bytes to open {PARTS} parts");
    let (looking, count) = peak(|| {
        let mut rows = store.query("* | stats count() as n").unwrap();
        rows.next().unwrap().unwrap().get("n").parse::<u64>().unwrap()
    });
    assert_eq!(count, PARTS * 4);
    // Names and index blocks of a part; 500 names of 20 bytes four times.
    let per_part = 400 * 1_024;
    assert!(looking <= per_part * PARTS as usize, "{looking} bytes for {PARTS} parts");
}

/// A query that is cancelled stops: what it has read stays a small share.
#[test]
fn a_cancelled_query_stops_reading() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    drop(filled(dir.path(), 40_000));
    let store = Store::open_read_only(dir.path()).unwrap();
    let query: Query = "_msg:~\"w[0-9a-f]+ w\" | fields _msg".parse().unwrap();
    let options = QueryOptions::new().workers(2);
    let whole = {
        let mut rows = store.query_with(&query, &options).unwrap();
        assert_eq!(rows.by_ref().count(), 40_000);
        rows.stats()
    };
    let mut rows = store.query_with(&query, &options).unwrap();
    let cancel = rows.cancel_handle();
    rows.next().unwrap().unwrap();
    cancel.cancel();
    let end = rows.by_ref().find_map(Result::err);
    assert!(matches!(end, Some(Error::Cancelled)), "{end:?}");
    let read = rows.stats();
    // A few batches wait in the queue, and each worker ends its strip.
    let most = 2_048 * (4 + 2 * 4);
    assert!(read.rows_read <= most, "{} rows of {}", read.rows_read, whole.rows_read);
    assert!(read.rows_read < whole.rows_read / 2);
}
