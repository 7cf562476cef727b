//! The simulated disk loses exactly what was not made durable, and fails exactly when told to.

use std::io::ErrorKind;
use std::path::Path;

use super::*;
use crate::io::{Fsync, is_not_found, publish, read_exact_at};

fn p(name: &str) -> PathBuf {
    Path::new("/s").join(name)
}

fn disk() -> SimDisk {
    let disk = SimDisk::new();
    disk.create_dir_all(Path::new("/s")).unwrap();
    disk
}

fn model(data: DataDamage, entries: EntryDamage) -> CrashModel {
    CrashModel { data, entries }
}

/// A file with a durable name, 700 synced bytes of 1 and two appends of 600 bytes of 2 and 3.
fn half_synced() -> SimDisk {
    let disk = disk();
    let mut file = disk.create(&p("f")).unwrap();
    file.append(&[1; 700]).unwrap();
    file.sync().unwrap();
    disk.sync_dir(Path::new("/s")).unwrap();
    file.append(&[2; 600]).unwrap();
    file.append(&[3; 600]).unwrap();
    disk
}

#[test]
fn synced_bytes_survive_every_model() {
    let disk = half_synced();
    for model in CrashModel::all() {
        for seed in 0..20 {
            let bytes = disk.crash(model, seed).read_file(p("f")).unwrap();
            assert_eq!(bytes[..700], [1; 700], "{model:?}");
            match model.data {
                DataDamage::Lose => assert_eq!(bytes.len(), 700),
                DataDamage::Torn => assert!(bytes.len() >= 1300 && bytes[1299] == 2),
                DataDamage::Prefix => assert!((700..=1900).contains(&bytes.len())),
                _ => assert_eq!(bytes.len(), 1900),
            }
        }
    }
}

#[test]
fn models_reach_their_damage() {
    let disk = half_synced();
    let whole = disk.read_file(p("f")).unwrap();
    let crash = |data, seed| disk.crash(model(data, EntryDamage::Keep), seed).read_file(p("f"));
    assert_eq!(crash(DataDamage::Keep, 1).unwrap(), whole);
    for data in [DataDamage::Garbage, DataDamage::Zeros, DataDamage::Sectors] {
        assert!((0..20).any(|seed| crash(data, seed).unwrap() != whole), "{data:?}");
    }
    // A later sector can be there while an earlier one is not.
    let reordered = (0..50).any(|seed| {
        let bytes = crash(DataDamage::Sectors, seed).unwrap();
        bytes[800] == 0 && bytes[1899] == 3
    });
    assert!(reordered);
    assert_eq!(crash(DataDamage::Prefix, 7), crash(DataDamage::Prefix, 7), "repeatable");
}

#[test]
fn names_need_a_synced_directory() {
    let disk = disk();
    let mut file = disk.create(&p("a")).unwrap();
    file.append(b"x").unwrap();
    file.sync().unwrap();
    assert_eq!(disk.crash(CrashModel::LOSE_ALL, 0).files(), Vec::<PathBuf>::new());
    assert_eq!(disk.crash(CrashModel::KEEP_ALL, 0).files(), [p("a")]);
    disk.sync_dir(Path::new("/s")).unwrap();
    assert_eq!(disk.crash(CrashModel::LOSE_ALL, 0).read_file(p("a")).unwrap(), b"x");
    disk.rename(&p("a"), &p("b")).unwrap();
    assert_eq!(disk.crash(CrashModel::LOSE_ALL, 0).files(), [p("a")]);
    assert_eq!(disk.crash(CrashModel::KEEP_ALL, 0).files(), [p("b")]);
    for seed in 0..20 {
        let after = disk.crash(model(DataDamage::Keep, EntryDamage::Subset), seed);
        assert_eq!(after.files().len(), 1, "a rename in a directory is one change");
    }
    disk.remove_file(&p("b")).unwrap();
    assert_eq!(disk.crash(CrashModel::LOSE_ALL, 0).files(), [p("a")]);
    disk.sync_dir(Path::new("/s")).unwrap();
    assert_eq!(disk.crash(CrashModel::LOSE_ALL, 0).files(), Vec::<PathBuf>::new());
}

#[test]
fn rename_across_directories_can_leave_both_names() {
    let disk = disk();
    disk.create_dir_all(&p("q")).unwrap();
    disk.write_file(p("a"), b"x");
    disk.rename(&p("a"), &p("q/a")).unwrap();
    disk.sync_dir(&p("q")).unwrap();
    assert_eq!(disk.crash(CrashModel::LOSE_ALL, 0).files(), [p("a"), p("q/a")]);
    disk.sync_dir(Path::new("/s")).unwrap();
    assert_eq!(disk.crash(CrashModel::LOSE_ALL, 0).files(), [p("q/a")]);
}

#[test]
fn truncation_needs_a_sync() {
    let disk = disk();
    disk.write_file(p("f"), b"0123456789");
    let mut file = disk.open_append(&p("f")).unwrap();
    file.truncate(4).unwrap();
    file.truncate(2).unwrap();
    file.append(b"ab").unwrap();
    let lost = disk.crash(CrashModel::LOSE_ALL, 0);
    assert_eq!(lost.read_file(p("f")).unwrap(), b"0123456789");
    file.sync().unwrap();
    let lost = disk.crash(CrashModel::LOSE_ALL, 0);
    assert_eq!(lost.read_file(p("f")).unwrap(), b"01ab");
}

#[test]
fn bytes_of_a_failed_sync_are_lost_for_ever() {
    let disk = disk();
    let mut file = disk.create(&p("f")).unwrap();
    disk.sync_dir(Path::new("/s")).unwrap();
    file.append(b"good").unwrap();
    file.sync().unwrap();
    file.append(b"bad").unwrap();
    disk.fail_next(OpKind::Sync, "f", Fault::Io);
    assert!(file.sync().is_err());
    file.append(b"more").unwrap();
    file.sync().unwrap();
    let after = disk.crash(CrashModel::LOSE_ALL, 0).read_file(p("f")).unwrap();
    assert_eq!(after, b"good\0\0\0more");
}

#[test]
fn faults_strike_where_told() {
    let disk = disk();
    let mut file = disk.create(&p("f")).unwrap();
    let at = disk.ops();
    disk.fail_once(at + 1, Fault::Io);
    disk.fail_once(at + 2, Fault::Interrupted);
    disk.fail_from(at + 5, Fault::NoSpace);
    file.append(b"abcd").unwrap();
    assert!(file.append(b"x").is_err());
    // Behind a torn append nothing is written, and nothing counted.
    assert!(file.append(b"y").is_err());
    assert_eq!(disk.ops(), at + 2);
    assert_eq!(file.truncate(4).unwrap_err().kind(), ErrorKind::Interrupted);
    file.truncate(4).unwrap();
    file.append(b"z").unwrap();
    for _ in 0..2 {
        assert_eq!(file.sync().unwrap_err().kind(), ErrorKind::StorageFull);
    }
    disk.clear_faults();
    file.sync().unwrap();
    assert_eq!(disk.read_file(p("f")).unwrap(), b"abcdz");
    let last = disk.trace().pop().unwrap();
    assert_eq!(last, Op { kind: OpKind::Sync, path: p("f"), len: 0 });
}

#[test]
fn short_append_leaves_a_part_that_truncation_takes_back() {
    let disk = disk();
    let mut file = disk.create(&p("f")).unwrap();
    file.append(b"1234").unwrap();
    disk.fail_next(OpKind::Append, "f", Fault::Short);
    assert!(file.append(b"abcdef").is_err());
    assert_eq!(file.len(), 4);
    assert_eq!(disk.read_file(p("f")).unwrap(), b"1234abc");
    let len = file.len();
    file.truncate(len).unwrap();
    file.append(b"5").unwrap();
    assert_eq!(disk.read_file(p("f")).unwrap(), b"12345");
}

#[test]
fn short_and_interrupted_reads_are_repeated() {
    let disk = disk();
    disk.write_file(p("f"), b"0123456789");
    let file = disk.open_read(&p("f")).unwrap();
    let at = disk.ops();
    disk.fail_once(at, Fault::Short);
    disk.fail_once(at + 1, Fault::Interrupted);
    let mut buf = [0; 10];
    read_exact_at(file.as_ref(), 0, &mut buf).unwrap();
    assert_eq!(&buf, b"0123456789");
    assert_eq!(disk.ops(), at + 3);
    disk.fail_next(OpKind::Read, "f", Fault::Io);
    assert!(read_exact_at(file.as_ref(), 0, &mut buf).is_err());
}

#[test]
fn capacity_ends_in_a_torn_append() {
    let disk = disk();
    disk.set_capacity(10);
    let mut file = disk.create(&p("f")).unwrap();
    file.append(b"12345678").unwrap();
    assert_eq!(disk.free_space(Path::new("/s")).unwrap(), 2);
    assert_eq!(file.append(b"abc").unwrap_err().kind(), ErrorKind::StorageFull);
    assert_eq!(disk.read_file(p("f")).unwrap(), b"12345678ab");
    file.truncate(3).unwrap();
    file.append(b"abcdefg").unwrap();
    drop(file);
    disk.remove_file(&p("f")).unwrap();
    assert_eq!(disk.free_space(Path::new("/s")).unwrap(), 10);
}

#[test]
fn after_a_crash_everything_fails_and_reboot_frees_the_lock() {
    let disk = disk();
    let _guard = disk.lock(&p("LOCK")).unwrap();
    let mut file = disk.create(&p("f")).unwrap();
    disk.fail_once(disk.ops(), Fault::Crash);
    assert!(file.append(b"in flight").is_err());
    assert!(disk.is_crashed());
    assert!(file.sync().is_err());
    assert!(disk.open_read(&p("f")).is_err());
    assert!(disk.list(Path::new("/s")).is_err());
    assert_eq!(disk.crash(CrashModel::KEEP_ALL, 0).read_file(p("f")).unwrap(), b"in flight");
    let after = disk.crash(CrashModel::LOSE_ALL, 0);
    assert!(is_not_found(&after.open_read(&p("f")).unwrap_err()));
    after.lock(&p("LOCK")).unwrap();
}

#[test]
fn flips_and_cuts_are_durable() {
    let disk = disk();
    disk.write_file(p("f"), b"abc");
    assert!(disk.flip(p("f"), 1, 0x20));
    assert!(!disk.flip(p("f"), 3, 0x20));
    assert!(!disk.flip(p("g"), 0, 1));
    assert_eq!(disk.crash(CrashModel::LOSE_ALL, 0).read_file(p("f")).unwrap(), b"aBc");
    assert!(disk.cut(p("f"), 1));
    assert_eq!(disk.fork().read_file(p("f")).unwrap(), b"a");
}

#[test]
fn publish_is_old_or_new_at_every_crash() {
    let old = b"old bytes".to_vec();
    let new = vec![7u8; 2000];
    let run = |disk: &SimDisk| {
        publish(disk, &p("f"), Fsync::Now, |file| {
            new.chunks(300)
                .try_for_each(|piece| file.append(piece))
                .map_err(|e| Error::io("append", &p("f"), e))
        })
    };
    let start = || {
        let disk = disk();
        disk.write_file(p("f"), &old);
        disk
    };
    let (clean, first) = (start(), start().ops());
    run(&clean).unwrap();
    for at in first..clean.ops() {
        let disk = start();
        disk.fail_once(at, Fault::Crash);
        let finished = run(&disk).is_ok();
        for model in CrashModel::all() {
            for seed in 0..3 {
                let found = disk.crash(model, seed).read_file(p("f")).unwrap();
                assert!(found == new || (!finished && found == old), "{at} {model:?}");
            }
        }
    }
    let after = clean.crash(CrashModel::LOSE_ALL, 0);
    assert_eq!(after.read_file(p("f")).unwrap(), new);
}
