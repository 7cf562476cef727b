//! Flips, truncations, crashes and faults at every place.

use super::*;
use crate::io::{CrashModel, Fault, OpKind};

/// Ten synced edits behind an image that holds `before`; the file's path and the edits.
fn ten_edits(disk: &SimDisk) -> (Vec<Edit>, std::path::PathBuf) {
    let mut manifest = create(disk);
    let edits: Vec<Edit> = (1..=10).map(|id| add(0, id, id, id)).collect();
    edits.iter().for_each(|edit| manifest.append(edit, Fsync::Now).unwrap());
    (edits, manifest_path(root(), manifest.generation()))
}

/// Offsets at which the records of a manifest begin, and its end.
fn boundaries(bytes: &[u8]) -> Vec<usize> {
    let mut at = super::super::log::HEADER_BYTES;
    let mut found = vec![at];
    while at < bytes.len() {
        at += Record::decode(&bytes[at..]).unwrap().len();
        found.push(at);
    }
    found
}

#[test]
fn flipped_bits_are_detected() {
    let disk = SimDisk::new();
    let (edits, path) = ten_edits(&disk);
    let bytes = disk.read_file(&path).unwrap();
    let starts = boundaries(&bytes);
    for at in 0..bytes.len() {
        for bit in 0..8 {
            disk.flip(&path, at as u64, 1 << bit);
            // Record 0 is the image, record k the k-th edit.
            let record = starts.iter().rposition(|&start| start <= at);
            let read = follow(&disk);
            match record {
                None | Some(0) => assert!(matches!(read, Err(Error::Corrupted(_))), "{at}"),
                Some(k) => {
                    let read = read.unwrap();
                    assert_eq!(read.state(), &fold(&edits[..k - 1]), "{at}");
                    let report = read.report();
                    if k < edits.len() {
                        let fallback = report.fallback.as_ref().unwrap();
                        assert_eq!(fallback.to, FallbackTo::EditsBefore);
                        assert_eq!(fallback.damage.offset, starts[k] as u64);
                        assert_eq!(fallback.damage.path, path);
                    } else {
                        // A flip in the last record cannot be told from a torn write.
                        assert_eq!(report.fallback, None);
                        assert_eq!(report.dropped_bytes, (bytes.len() - starts[k]) as u64);
                    }
                }
            }
            disk.flip(&path, at as u64, 1 << bit);
        }
    }
}

#[test]
fn truncations_leave_a_prefix_and_are_counted() {
    let disk = SimDisk::new();
    let (edits, path) = ten_edits(&disk);
    let bytes = disk.read_file(&path).unwrap();
    let starts = boundaries(&bytes);
    for len in 0..bytes.len() {
        let disk = disk.fork();
        disk.cut(&path, len as u64);
        let whole = starts.iter().filter(|&&start| start <= len).count();
        if whole < 2 {
            assert!(matches!(open(&disk), Err(Error::Corrupted(_))), "{len}");
            continue;
        }
        let (mut manifest, report) = open(&disk).unwrap();
        assert_eq!(report.fallback, None);
        assert_eq!(report.dropped_bytes, (len - starts[whole - 1]) as u64);
        let parts: Vec<_> = manifest.state().parts().cloned().collect();
        assert_eq!(parts, fold(&edits[..whole - 2]).parts().cloned().collect::<Vec<_>>());
        // What may be missing cannot be given out again.
        assert_eq!(manifest.state().ids_below() > 1 << 40, report.dropped_bytes > 0);
        manifest.append(&add(0, 99, 99, 99), Fsync::Now).unwrap();
        let (again, report) = open(&disk).unwrap();
        assert_eq!(again.state(), manifest.state());
        assert_eq!(report.dropped_bytes, 0);
    }
}

#[test]
fn damaged_newest_falls_back_reports_and_remembers() {
    let disk = SimDisk::new();
    let mut manifest = create(&disk);
    let edits: Vec<Edit> = (1..=5).map(|id| add(0, id, id, id)).collect();
    edits.iter().for_each(|edit| manifest.append(edit, Fsync::Now).unwrap());
    manifest.rewrite().unwrap();
    manifest.append(&add(0, 6, 6, 6), Fsync::Now).unwrap();
    drop(manifest);
    let newest = manifest_path(root(), 2);
    for at in [0, 20, 47, 48, 60, 100, 200] {
        let disk = disk.fork();
        assert!(disk.flip(&newest, at, 0x10));
        let follower = follow(&disk).unwrap();
        assert_eq!(follower.state(), &fold(&edits));
        let (opened, report) = open(&disk).unwrap();
        let fallback = report.fallback.unwrap();
        assert_eq!(fallback.to, FallbackTo::Previous(1));
        assert_eq!(fallback.damage.path, newest);
        assert_eq!(report.generation, 3);
        assert_eq!(opened.state().parts().count(), 5);
        let mark = opened.state().damage().next().unwrap();
        assert_eq!(mark.file, "MANIFEST-2");
        assert!(mark.id < opened.state().ids_below() && mark.id > 1 << 39);
        assert!(disk.read_file(root().join("quarantine/MANIFEST-2")).is_some());
        let (again, report) = open(&disk).unwrap();
        assert_eq!(report.fallback, None);
        assert_eq!(again.state(), opened.state());
        // With the previous one damaged as well nothing is guessed.
        let disk = disk.fork();
        disk.flip(manifest_path(root(), 3), 70, 1);
        disk.flip(manifest_path(root(), 1), 70, 1);
        match open(&disk) {
            Err(Error::Corrupted(c)) => {
                assert_eq!(c.path, manifest_path(root(), 3));
                assert!(
                    c.what.contains("MANIFEST-1") && c.what.contains("repair rebuilds"),
                    "{}",
                    c.what
                );
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn unreadable_is_not_damaged() {
    let disk = SimDisk::new();
    let (edits, _) = ten_edits(&disk);
    // Once: read again.
    disk.fail_next(OpKind::Read, "MANIFEST", Fault::Io);
    assert_eq!(follow(&disk).unwrap().state(), &fold(&edits));
    // Twice: an I/O error, and no fallback.
    disk.fail_next(OpKind::Read, "MANIFEST", Fault::Io);
    disk.fail_next(OpKind::Read, "MANIFEST", Fault::Io);
    assert!(matches!(follow(&disk), Err(Error::Io { action: "read", .. })));
}

/// What a run of the script has been told, and what it has tried.
#[derive(Default)]
struct Told {
    created: bool,
    tried: Vec<Edit>,
    /// So many of the tried edits were called true.
    acked: usize,
    /// So many were called durable.
    durable: usize,
}

/// Edits, synced and not, rewrites and an opening; ends with the first failure.
fn script(disk: &SimDisk, told: &mut Told) -> crate::Result<()> {
    let mut manifest = Manifest::create(Arc::new(disk.clone()), root(), ID)?;
    told.created = true;
    for step in 1..=14u64 {
        let mut edit = add(i32::try_from(step % 3).unwrap(), step, step * 10, step * 10 + 9);
        if step > 4 {
            edit.changes.insert(0, Change::DropPart { part_id: step - 3 });
        }
        // Longer than a sector, so that a torn one can have a hole.
        let filter = "x".repeat(usize::try_from(step % 4).unwrap() * 400);
        edit.push(Change::AddDelete(Delete { id: step, filter, cut: step }));
        let fsync = if matches!(step, 4..=6 | 10..=11) { Fsync::Later } else { Fsync::Now };
        told.tried.push(edit.clone());
        manifest.append(&edit, fsync)?;
        told.acked += 1;
        match step {
            6 => manifest.sync()?,
            3 | 8 | 12 => manifest.rewrite()?,
            9 => manifest = Manifest::open(Arc::new(disk.clone()), root())?.0,
            _ => {}
        }
        if fsync == Fsync::Now || step == 6 {
            told.durable = told.acked;
        }
    }
    Ok(())
}

/// Which prefix of the edits the state is; the jump of reservations does not count.
fn prefix_of(state: &ManifestState, edits: &[Edit]) -> Option<usize> {
    let naive = |state: &ManifestState| Naive { below: (0, 0), ..Naive::of(state) };
    (0..=edits.len()).find(|&n| naive(&fold(&edits[..n])) == naive(state))
}

#[test]
fn crashes_lose_nothing_that_was_synced() {
    let clean = SimDisk::new();
    script(&clean, &mut Told::default()).unwrap();
    let trace = clean.trace();
    let mut torn = 0;
    for (at, op) in trace.iter().enumerate().filter(|(_, op)| op.kind.is_mutation()) {
        let disk = SimDisk::new();
        disk.fail_once(at as u64, Fault::Crash);
        let mut told = Told::default();
        assert!(script(&disk, &mut told).is_err());
        for (seed, model) in (at as u64..).zip(CrashModel::all().repeat(2)) {
            let disk = disk.crash(model, seed);
            let (mut manifest, report) = match open(&disk) {
                Err(Error::NotAStore { .. }) if !told.created => continue,
                opened => opened.unwrap_or_else(|e| panic!("{at} {op:?} {model:?}: {e}")),
            };
            assert_eq!(report.fallback, None, "{at} {op:?} {model:?}");
            let found = prefix_of(manifest.state(), &told.tried).unwrap();
            assert!(found >= told.durable, "{at} {op:?} {model:?}: {found}");
            if model == CrashModel::KEEP_ALL {
                assert!(found >= told.acked, "{at} {op:?}: the death of a process");
            }
            torn += u64::from(report.dropped_bytes > 0);
            // It goes on from there, and so does a follower.
            manifest.append(&add(77, 777, 1, 2), Fsync::Now).unwrap();
            let after = disk.crash(CrashModel::LOSE_ALL, seed);
            assert_eq!(follow(&after).unwrap().state(), manifest.state());
        }
    }
    assert!(torn > 50, "the sweep tears records: {torn}");
}

#[test]
fn faults_leave_an_edit_true_or_not() {
    let clean = SimDisk::new();
    script(&clean, &mut Told::default()).unwrap();
    for fault in [Fault::Io, Fault::NoSpace, Fault::Short, Fault::Interrupted] {
        for at in 0..clean.ops() {
            for from in [false, true] {
                let disk = SimDisk::new();
                match from {
                    true => disk.fail_from(at, fault),
                    false => disk.fail_once(at, fault),
                }
                let mut told = Told::default();
                let _ = script(&disk, &mut told);
                disk.clear_faults();
                // The process goes on, dies, or loses power.
                for disk in [disk.fork(), disk.crash(CrashModel::LOSE_ALL, at)] {
                    let opened = match open(&disk) {
                        Err(Error::NotAStore { .. }) if !told.created => continue,
                        opened => opened.unwrap().0,
                    };
                    let found = prefix_of(opened.state(), &told.tried).unwrap();
                    assert!(found >= told.durable && found <= told.tried.len(), "{fault:?} {at}");
                }
            }
        }
    }
}

#[test]
fn a_failed_append_is_taken_back_and_a_failed_sync_poisons() {
    let disk = SimDisk::new();
    let mut manifest = create(&disk);
    manifest.append(&add(0, 1, 1, 1), Fsync::Now).unwrap();
    let (before, bytes) = (manifest.state().clone(), manifest.file_bytes());
    for fault in [Fault::Short, Fault::NoSpace] {
        disk.fail_next(OpKind::Append, "MANIFEST", fault);
        assert!(matches!(manifest.append(&add(0, 2, 2, 2), Fsync::Now), Err(Error::Io { .. })));
        assert_eq!((manifest.state(), manifest.file_bytes()), (&before, bytes));
    }
    manifest.append(&add(0, 2, 2, 2), Fsync::Now).unwrap();
    disk.fail_next(OpKind::Append, "MANIFEST", Fault::Short);
    disk.fail_next(OpKind::Truncate, "MANIFEST", Fault::Io);
    assert!(matches!(manifest.append(&add(0, 3, 3, 3), Fsync::Now), Err(Error::Io { .. })));
    let refused = manifest.append(&add(0, 3, 3, 3), Fsync::Now);
    assert!(matches!(refused, Err(Error::Poisoned { .. })));
    let (mut manifest, report) = open(&disk).unwrap();
    assert!(report.dropped_bytes > 0);
    disk.fail_next(OpKind::Sync, "MANIFEST", Fault::Io);
    assert!(manifest.append(&add(0, 4, 4, 4), Fsync::Now).is_err());
    assert!(manifest.state().part(4).is_none());
    assert!(matches!(manifest.sync(), Err(Error::Poisoned { .. })));
    assert_eq!(open(&disk).unwrap().0.state().parts().count(), 2);
}

#[test]
fn a_failed_rewrite_leaves_the_file_in_use() {
    for kind in [OpKind::Create, OpKind::Append, OpKind::Sync, OpKind::Rename, OpKind::SyncDir] {
        let disk = SimDisk::new();
        let mut manifest = create(&disk);
        manifest.append(&add(0, 1, 1, 1), Fsync::Now).unwrap();
        let part = if kind == OpKind::SyncDir { ROOT } else { "MANIFEST-2" };
        disk.fail_next(kind, part, Fault::NoSpace);
        assert!(manifest.rewrite().is_err(), "{kind:?}");
        manifest.append(&add(0, 2, 2, 2), Fsync::Now).unwrap();
        for model in CrashModel::all() {
            let opened = open(&disk.crash(model, 1)).unwrap().0;
            assert_eq!(opened.state(), manifest.state(), "{kind:?} {model:?}");
        }
        manifest.rewrite().unwrap();
        assert_eq!(open(&disk).unwrap().0.state(), manifest.state());
    }
}

#[test]
fn crashes_while_falling_back_keep_the_report() {
    let start = || {
        let disk = SimDisk::new();
        let (_, path) = ten_edits(&disk);
        let disk = disk.fork();
        let bytes = disk.read_file(&path).unwrap();
        disk.flip(&path, boundaries(&bytes)[5] as u64 + 50, 4);
        disk
    };
    let clean = start();
    open(&clean).unwrap();
    for at in 0..clean.ops() {
        let disk = start();
        disk.fail_once(at, Fault::Crash);
        assert!(open(&disk).is_err());
        for model in CrashModel::all() {
            let disk = disk.crash(model, at);
            let (opened, report) = open(&disk).unwrap();
            assert_eq!(opened.state().parts().count(), 4);
            assert_eq!(opened.state().damage().count(), 1, "{at} {model:?}");
            assert!(opened.state().ids_below() > 1 << 40);
            // Reported by this opening, or by the one that crashed and left its mark.
            assert!(report.fallback.is_some() || report.generation == 2);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Any damage is reported or harmless: what is read is a prefix of what was written, and
    /// less than all of it only with a report, unless the end was cut cleanly.
    #[test]
    fn random_damage_is_reported(
        cuts in prop::collection::vec((any::<u16>(), 0u16..40, 0u16..40), 1..4),
    ) {
        let disk = SimDisk::new();
        let (edits, path) = ten_edits(&disk);
        let whole = disk.read_file(&path).unwrap();
        let mut bytes = whole.clone();
        for (at, removed, copied) in cuts {
            let at = usize::from(at) % bytes.len().max(1);
            let end = (at + usize::from(removed)).min(bytes.len());
            let copy: Vec<u8> = whole.iter().rev().take(usize::from(copied)).copied().collect();
            bytes.splice(at..end, copy);
        }
        disk.write_file(&path, &bytes);
        match open(&disk) {
            Err(Error::Corrupted(_)) => {}
            Err(e) => prop_assert!(false, "{}", e),
            Ok((manifest, report)) => {
                let n = prefix_of(&{
                    let mut parts = Edit::default();
                    parts.changes.extend(manifest.state().parts().cloned().map(Change::AddPart));
                    fold(&[parts])
                }, &edits);
                let n = n.expect("a prefix");
                let reported = report.fallback.is_some() || report.dropped_bytes > 0;
                let clean_cut = whole.starts_with(&bytes);
                prop_assert!(n == edits.len() || reported || clean_cut);
            }
        }
    }
}
