use std::panic::{AssertUnwindSafe, catch_unwind};

use super::*;
use crate::io::{CrashModel, Fault, Op, OpKind};

/// What a life was told before it ended.
#[derive(Debug, Default)]
struct Told {
    /// Rows whose append returned.
    acknowledged: Vec<u64>,
    /// Rows acknowledged before a flush that returned.
    flushed: Vec<u64>,
    /// Rows of an append that failed or did not return: there or not.
    unknown: Vec<u64>,
}

/// A life: appends, seals, flushes, merges with a snapshot held across them, a close; ends at
/// the first error.
fn live(disk: &Arc<SimDisk>, durability: Durability, first: u64, told: &mut Told) -> Result<()> {
    let store = options(disk, durability).open(root())?;
    let ingest = ingest(&store);
    for i in 0..8u64 {
        let range = first + i * 10..first + i * 10 + 10;
        told.unknown.extend(range.clone());
        ingest.append_batch(batch(range.clone()))?;
        told.unknown.retain(|n| !range.contains(n));
        told.acknowledged.extend(range);
        if i % 3 == 2 {
            store.flush()?;
            told.flushed = told.acknowledged.clone();
        }
        if i == 3 || i == 6 {
            let held = store.core().snapshot()?;
            store.compact()?;
            told.flushed = told.acknowledged.clone();
            drop(held);
        }
    }
    drop(ingest);
    store.close()?;
    told.flushed = told.acknowledged.clone();
    Ok(())
}

/// Opens what a crash left and checks every promise; gives the rows.
fn check(disk: &Arc<SimDisk>, durability: Durability, safe: &[u64], told: &Told) -> Vec<u64> {
    let store = options(disk, durability).open(root()).unwrap();
    let rows = numbers(&store);
    let twice = rows.windows(2).find(|w| w[0] == w[1]);
    assert!(twice.is_none(), "row {twice:?} is there twice");
    let missing = safe.iter().find(|n| rows.binary_search(n).is_err());
    assert!(missing.is_none(), "row {missing:?} is missing: {}", store.open_report());
    let known = |n: &u64| told.acknowledged.contains(n) || told.unknown.contains(n);
    let strange = rows.iter().find(|n| !known(n));
    assert!(strange.is_none(), "row {strange:?} was never appended");
    check_files(disk, &store);
    drop(store);
    let store = options(disk, durability).open(root()).unwrap();
    assert_eq!(numbers(&store), rows, "a second opening changes nothing");
    store.close().unwrap();
    rows
}

/// Whether sweeps try every operation with everything that can happen there.
pub(super) fn every_operation() -> bool {
    std::env::var_os("LOGLITH_CRASH_ALL").is_some()
}

fn sweep(durability: Durability, models: &[CrashModel], safe: impl Fn(&Told) -> Vec<u64>) {
    let whole = Arc::new(SimDisk::new());
    live(&whole, durability, 0, &mut Told::default()).unwrap();
    let ops = whole.ops();
    let all = every_operation();
    let mut crashes = 0u64;
    for (first, model) in (0..).zip(models) {
        // Each operation with one of the models, or with all of them.
        let (first, step) = if all { (0, 1) } else { (first, models.len()) };
        for (seed, at) in (first..ops).step_by(step).enumerate() {
            let disk = Arc::new(SimDisk::new());
            disk.fail_once(at, Fault::Crash);
            let mut told = Told::default();
            let ended = live(&disk, durability, 0, &mut told);
            // What is removed at the very end may stay: the next opening removes it.
            let tidying = ops_of_tidying(&whole, at);
            assert!(ended.is_err() || tidying, "the crash at {at} of {ops} went unnoticed");
            let after = Arc::new(disk.crash(*model, seed as u64));
            let context = format!("{model:?} crash at operation {at} of {ops}");
            let result = catch_unwind(AssertUnwindSafe(|| {
                let rows = check(&after, durability, &safe(&told), &told);
                let mut next = Told { acknowledged: rows, ..Told::default() };
                live(&after, durability, 1_000, &mut next).unwrap();
                let safe = next.acknowledged.clone();
                check(&after, durability, &safe, &next);
            }));
            assert!(result.is_ok(), "{context}");
            crashes += 1;
        }
    }
    // Two openings by each of two checks, and one by the life between them.
    println!("{durability:?}: {ops} operations, {crashes} crashes, {} openings", crashes * 5);
}

/// Whether every operation from this one on reads, or removes a file that nobody needs or makes
/// the removal of one durable, behind at most one edit that allows it.
fn ops_of_tidying(disk: &SimDisk, from: u64) -> bool {
    let from = usize::try_from(from).unwrap();
    let trace = disk.trace();
    let ops = || trace.iter().skip(from);
    let is_edit = |op: &Op| op.path.to_str().unwrap().contains("MANIFEST-");
    ops().filter(|op| op.kind == OpKind::Append && is_edit(op)).count() <= 1
        && ops().all(|op| match op.kind {
            OpKind::Append | OpKind::Sync => is_edit(op),
            OpKind::Remove | OpKind::SyncDir => true,
            kind => !kind.is_mutation(),
        })
}

/// The death of the process loses nothing that was acknowledged.
#[test]
fn process_death() {
    sweep(Durability::Process, &[CrashModel::KEEP_ALL], |told| told.acknowledged.clone());
}

/// Loss of power loses nothing that was acknowledged under `Sync`.
#[test]
fn power_loss_under_sync() {
    let models: Vec<_> = CrashModel::all().into_iter().step_by(3).collect();
    sweep(Durability::Sync, &models, |told| told.acknowledged.clone());
}

/// Loss of power loses nothing that was flushed.
#[test]
fn power_loss_after_flush() {
    let models: Vec<_> = CrashModel::all().into_iter().skip(1).step_by(4).collect();
    sweep(Durability::Process, &models, |told| told.flushed.clone());
    sweep(Durability::Buffered, &models, |told| told.flushed.clone());
}

/// Each operation fails once, or from then on: errors are reported, nothing acknowledged is
/// lost, and when the disk works again the store goes on.
#[test]
fn io_errors() {
    let whole = Arc::new(SimDisk::new());
    live(&whole, Durability::Process, 0, &mut Told::default()).unwrap();
    let step = if every_operation() { 1 } else { 4 };
    let faults = [Fault::Io, Fault::NoSpace, Fault::Short, Fault::Interrupted];
    for (first, fault) in (0..step.max(4)).zip(faults) {
        for at in (first % step..whole.ops()).step_by(usize::try_from(step).unwrap()) {
            for once in [true, false] {
                let disk = Arc::new(SimDisk::new());
                if once {
                    disk.fail_once(at, fault)
                } else {
                    disk.fail_from(at, fault)
                }
                let mut told = Told::default();
                let _ = live(&disk, Durability::Process, 0, &mut told);
                disk.clear_faults();
                let result = catch_unwind(AssertUnwindSafe(|| {
                    let safe = told.acknowledged.clone();
                    check(&disk, Durability::Process, &safe, &told);
                }));
                assert!(result.is_ok(), "{fault:?} at operation {at}, once: {once}");
            }
        }
    }
}

/// The newest manifest is damaged after a clean life: the store opens, says so, and either has
/// every row or refuses.
#[test]
fn a_flip_in_the_newest_manifest() {
    let base = Arc::new(SimDisk::new());
    let mut told = Told::default();
    live(&base, Durability::Process, 0, &mut told).unwrap();
    live(&base, Durability::Process, 500, &mut told).unwrap();
    let names = base.list(&root()).unwrap();
    let newest = names.iter().rfind(|e| e.name.starts_with("MANIFEST-")).unwrap();
    let path = root().join(&newest.name);
    for offset in (0..newest.len).step_by(3) {
        let disk = Arc::new(base.crash(CrashModel::KEEP_ALL, 0));
        assert!(disk.flip(&path, offset, 0x20));
        match options(&disk, Durability::Process).open(root()) {
            Err(Error::Corrupted(c)) => assert!(!c.what.is_empty()),
            Err(e) => panic!("offset {offset}: {e}"),
            Ok(store) => {
                assert!(!store.open_report().is_clean(), "offset {offset} was not noticed");
                let holes = store.core().snapshot().unwrap().holes().len();
                let rows = numbers(&store);
                let all = told.acknowledged.iter().all(|n| rows.binary_search(n).is_ok());
                assert!(all || holes > 0, "offset {offset}: rows vanished in silence");
                assert!(rows.windows(2).all(|w| w[0] < w[1]), "offset {offset}: a row twice");
            }
        }
    }
    assert!(exists(&base, &path));
}

/// A large cut over three days ends at each of its operations: its rows are all there or none is,
/// what it leaves is called no damage, and the next life has its ground to itself.
#[test]
fn a_bulk_cut_is_there_whole_or_not_at_all() {
    let durability = Durability::Process;
    let bulk = |store: &Store| {
        let reserved = store.core().reserve_bulk(9)?;
        store.core().write_bulk(reserved, vec![rows(10..19)])?.list()
    };
    let mut whole = [0, 0];
    for fault in [Fault::Crash, Fault::Io, Fault::NoSpace] {
        for at in 0.. {
            let disk = Arc::new(SimDisk::new());
            let store = options(&disk, durability).open(root()).unwrap();
            ingest(&store).append_batch(batch(0..10)).unwrap();
            store.flush().unwrap();
            let (begun, before) = (disk.ops(), numbers(&store));
            disk.fail_once(begun + at, fault);
            let done = bulk(&store);
            if disk.ops() <= begun + at {
                break;
            }
            if fault != Fault::Crash {
                // The life goes on, and so does what comes behind.
                let rows = numbers(&store);
                assert_eq!(rows.len(), if done.is_ok() { 19 } else { 10 }, "{fault:?} at {at}");
            }
            for model in [CrashModel::KEEP_ALL, CrashModel::LOSE_ALL] {
                let disk = Arc::new(disk.crash(model, 0));
                let context = format!("{fault:?} at {at}, {model:?}");
                let reader = options(&disk, durability).open_read_only(root()).unwrap();
                let verified = reader.verify(&mut |_| true).unwrap();
                assert!(verified.is_clean(), "{context}: {verified}");
                drop(reader);
                let store = options(&disk, durability).open(root()).unwrap();
                let rows = numbers(&store);
                assert!(
                    rows.len() == 19 || (rows == before && done.is_err()),
                    "{context}: {rows:?}"
                );
                whole[usize::from(rows.len() == 19)] += 1;
                check_files(&disk, &store);
                assert!(!exists(&disk, &root().join("quarantine")), "{context}");
                bulk(&store).unwrap();
                store.compact().unwrap();
                store.close().unwrap();
                let store = options(&disk, durability).open(root()).unwrap();
                assert!(store.open_report().is_clean(), "{context}: {}", store.open_report());
                assert_eq!(numbers(&store).len(), rows.len() + 9, "{context}");
            }
        }
    }
    assert!(whole.iter().all(|n| *n > 0), "{whole:?}");
}
