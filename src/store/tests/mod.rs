//! Tests of whole lives of a store, most of them on the simulated disk.

mod bulk;
mod crash;
mod damage;
mod durable;
mod helpers;
mod life;
mod limits;
mod merges;
#[allow(clippy::cast_possible_truncation)]
mod model;
mod repairs;
#[cfg(loglith_shuttle)]
mod schedules;
mod sweep;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::ingest::IngestOptions;
use crate::io::{Disk, ManualClock, SimDisk};
use crate::options::{Durability, Options};
use crate::part::{ReadContext, ReadStats};
use crate::partition::Snapshot;
use crate::record::{Batch, RowBatch, Timestamp};
use crate::store::{Ingest, Store};
use crate::{Error, Result};

const DAY: i64 = 86_400_000_000_000;

fn root() -> PathBuf {
    PathBuf::from("/store")
}

fn options(disk: &Arc<SimDisk>, durability: Durability) -> Options {
    Options::new()
        .disk(Arc::clone(disk) as Arc<dyn Disk>)
        .clock(Arc::new(ManualClock::new(Timestamp::from_nanos(20_000 * DAY))))
        .durability(durability)
        .seal_bytes(2_000)
        .background(false)
}

/// A store on a clock that the test moves, which does not seal by size.
fn with_clock(disk: &Arc<SimDisk>) -> (Arc<ManualClock>, Store) {
    let clock = Arc::new(ManualClock::new(Timestamp::from_nanos(0)));
    let shared = Arc::clone(&clock) as Arc<dyn crate::io::Clock>;
    let options = options(disk, Durability::Process).seal_bytes(1 << 20).clock(shared);
    (clock, options.open(root()).unwrap())
}

fn ingest(store: &Store) -> Ingest {
    store.ingest(IngestOptions::new().stream_fields(["app"])).unwrap()
}

/// Rows `numbers`, one batch: each row says its number, over three days and four streams.
fn batch(numbers: std::ops::Range<u64>) -> Batch {
    let mut batch = Batch::new();
    for n in numbers {
        let time = i64::try_from(n % 3).unwrap() * DAY + i64::try_from(n).unwrap();
        batch
            .entry()
            .time(Timestamp::from_nanos(time))
            .field("app", format!("app-{}", n % 4).as_str())
            .field("n", n)
            .field("constant", "the same in every row")
            .message(&format!("row number {n} of the test"));
    }
    batch
}

/// The rows of [`batch`] as ingestion makes them.
fn rows(numbers: std::ops::Range<u64>) -> RowBatch {
    let options = Arc::new(IngestOptions::new().stream_fields(["app"]));
    let mut writer = crate::ingest::RowWriter::new(options, Timestamp::from_nanos(0))
        .with_target_bytes(usize::MAX);
    let mut out = None;
    let sink = |rows: RowBatch| {
        out = Some(rows);
        Ok(())
    };
    let mut report = crate::ingest::IngestReport::default();
    crate::ingest::append_batch(&mut writer, &batch(numbers), &mut report, sink).unwrap();
    out.unwrap()
}

/// The numbers of all rows that a query would see, ascending.
fn numbers(store: &Store) -> Vec<u64> {
    try_numbers(store).unwrap()
}

fn try_numbers(store: &Store) -> Result<Vec<u64>> {
    let snapshot = store.core().snapshot()?;
    try_numbers_of(&snapshot)
}

fn numbers_of(snapshot: &Snapshot) -> Vec<u64> {
    try_numbers_of(snapshot).unwrap()
}

fn try_numbers_of(snapshot: &Snapshot) -> Result<Vec<u64>> {
    let mut out = Vec::new();
    for part in snapshot.parts() {
        let reader = part.reader()?;
        let stats = ReadStats::default();
        let cx = ReadContext::new(&stats);
        let id = reader.names(&cx)?.id("n");
        let mut rows = reader.rows(&cx);
        while rows.advance()? {
            let constant = rows.constants().iter().find(|(name, _)| Some(*name) == id).cloned();
            let mut fields = Vec::new();
            rows.fields(&mut fields);
            let value = fields.iter().find(|(name, _)| Some(*name) == id).map(|(_, v)| v.to_vec());
            let value = value.or(constant.map(|(_, v)| v)).expect("every row has a number");
            out.push(std::str::from_utf8(&value).unwrap().parse().unwrap());
        }
    }
    out.sort_unstable();
    Ok(out)
}

/// What must hold of a store that was just opened, whatever happened before.
fn check_files(disk: &SimDisk, store: &Store) {
    let version = Arc::clone(&store.core().state.lock().version);
    let mut listed: Vec<PathBuf> = version.parts().map(|p| p.path()).collect();
    listed.sort();
    let mut found = Vec::new();
    for entry in disk.list(&root()).unwrap() {
        let path = root().join(&entry.name);
        if entry.is_dir && entry.name != "quarantine" {
            found.extend(disk.list(&path).unwrap().iter().map(|e| path.join(&e.name)));
        } else {
            let known = ["MANIFEST-", "JOURNAL-", "LOCK", "quarantine"];
            assert!(known.iter().any(|k| entry.name.starts_with(k)), "stray {}", entry.name);
        }
    }
    found.sort();
    assert_eq!(found, listed, "the directory holds what the manifest lists");
}

fn exists(disk: &SimDisk, path: &Path) -> bool {
    disk.read_file(path).is_some()
}
