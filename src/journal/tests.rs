use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::segment::{HEADER_LEN, segment_path};
use super::*;
use crate::io::{CrashModel, DataDamage, Disk, Fault, SimDisk};
use crate::record::{RowBatch, RowBatchBuilder, StreamKey, Timestamp};

const STORE: u128 = 7;

fn root() -> PathBuf {
    PathBuf::from("/store")
}

fn disk() -> Arc<SimDisk> {
    let disk = SimDisk::new();
    disk.create_dir_all(&root()).unwrap();
    Arc::new(disk)
}

fn batch(first: u64, rows: u64) -> RowBatch {
    let mut b = RowBatchBuilder::new();
    let s = b.add_stream(Arc::new(StreamKey::default()));
    let id = b.name_id("_msg");
    for i in first..first + rows {
        b.push_field(id, format!("row {i:04}").as_bytes());
        b.finish_row(Timestamp::from_nanos(i.cast_signed()), s);
    }
    b.finish()
}

fn payload(first: u64, rows: u64) -> Vec<u8> {
    let mut out = Vec::new();
    encode(&batch(first, rows), &mut out);
    out
}

fn open(disk: &Arc<SimDisk>) -> (Journal, Replayed, Vec<u64>) {
    let (replayed, rows) = read(disk);
    let journal =
        Journal::new(Arc::clone(disk) as Arc<dyn Disk>, root(), STORE, replayed.segments.clone());
    (journal, replayed, rows)
}

fn read(disk: &Arc<SimDisk>) -> (Replayed, Vec<u64>) {
    let mut rows = Vec::new();
    let replayed = replay(disk.as_ref(), &root(), STORE, &mut |sequence, b| {
        for (i, row) in b.iter().enumerate() {
            assert_eq!(row.time.as_nanos().cast_unsigned(), sequence + i as u64);
            rows.push(sequence + i as u64);
        }
        Ok(())
    })
    .unwrap();
    (replayed, rows)
}

#[test]
fn replays_over_three_generations() {
    let disk = disk();
    let mut want = Vec::new();
    for generation in 0..3u64 {
        let (mut journal, replayed, rows) = open(&disk);
        assert_eq!(rows, want);
        assert!(replayed.damage.is_empty() && replayed.torn_bytes == 0);
        assert_eq!(replayed.closed, generation > 1);
        for i in 0..3 {
            let first = generation * 100 + i * 10;
            journal.append(first, 10, &payload(first, 10)).unwrap();
            want.extend(first..first + 10);
        }
        if generation > 0 {
            journal.append_close().unwrap();
        }
    }
    assert_eq!(read(&disk).1, want);
}

/// Whatever the crash leaves, replay gives whole batches, among them everything synced, and the
/// next life's appends are found behind them.
#[test]
fn crash_sweep() {
    for model in CrashModel::all() {
        for seed in 0..4 {
            for at in 0..14 {
                let disk = disk();
                let (mut journal, _, _) = open(&disk);
                disk.fail_once(disk.ops() + at, Fault::Crash);
                let (mut acked, mut synced) = (0, 0);
                for i in 0..6 {
                    if journal.append(i * 5, 5, &payload(i * 5, 5)).is_err() {
                        break;
                    }
                    acked = (i + 1) * 5;
                    if i % 2 == 1 && journal.sync().is_ok() {
                        synced = acked;
                    }
                }
                drop(journal);
                let after = Arc::new(disk.crash(model, seed));
                let (mut journal, replayed, rows) = open(&after);
                let n = rows.len() as u64;
                let what = format!("{model:?} seed {seed} op {at}: {replayed:?}");
                assert!(rows.is_sorted() && rows.iter().all(|r| *r < acked + 5), "{what}");
                assert!(rows.chunks(5).all(|c| c.len() == 5 && c[0] % 5 == 0), "{what}");
                assert_eq!(rows.iter().filter(|r| **r < synced).count() as u64, synced, "{what}");
                // Only a loss of power that reorders writes leaves a gap before a good record.
                assert!(replayed.damage.is_empty() || model.data == DataDamage::Sectors, "{what}");
                journal.append(1000, 2, &payload(1000, 2)).unwrap();
                journal.append_close().unwrap();
                let (again, rows) = read(&after);
                assert_eq!(rows.len() as u64, n + 2, "{what} {again:?}");
                assert_eq!(again.damage.len(), replayed.damage.len(), "{what}");
            }
        }
    }
}

#[test]
fn nothing_is_appended_behind_a_failed_append() {
    for fault in [Fault::Io, Fault::NoSpace, Fault::Short, Fault::Interrupted] {
        for truncate_fails in [false, true] {
            let disk = disk();
            let (mut journal, _, _) = open(&disk);
            journal.append(0, 5, &payload(0, 5)).unwrap();
            disk.fail_once(disk.ops(), fault);
            if truncate_fails {
                disk.fail_once(disk.ops() + 1, Fault::Io);
            }
            assert!(journal.append(5, 5, &payload(5, 5)).is_err());
            journal.append(10, 5, &payload(10, 5)).unwrap();
            journal.append_close().unwrap();
            let (replayed, rows) = read(&disk);
            let want: Vec<u64> = (0..5).chain(10..15).collect();
            assert_eq!(rows, want, "{fault:?} {truncate_fails} {replayed:?}");
            assert!(replayed.damage.is_empty(), "{fault:?} {truncate_fails} {replayed:?}");
        }
    }
}

/// Each byte flipped, each length cut: never a panic, never a wrong row, and a record that valid
/// ones follow is called damage.
#[test]
fn flips_and_truncations() {
    let disk = disk();
    let (mut journal, _, _) = open(&disk);
    for i in 0..3 {
        journal.append(i * 5, 5, &payload(i * 5, 5)).unwrap();
    }
    let path = segment_path(&root(), 1);
    let good = disk.read_file(&path).unwrap();
    let record = (good.len() - HEADER_LEN) / 3;
    for i in 0..good.len() {
        let mut bad = good.clone();
        bad[i] ^= 0x10;
        disk.write_file(&path, &bad);
        let (replayed, rows) = read(&disk);
        assert!(rows.iter().all(|r| *r < 15));
        let in_last = i >= good.len() - record;
        assert_eq!(replayed.damage.is_empty(), in_last, "byte {i}: {replayed:?}");
        if in_last {
            assert!(replayed.torn_bytes > 0 && rows.len() == 10, "byte {i}");
        }
    }
    for len in 0..good.len() {
        disk.write_file(&path, &good[..len]);
        let (replayed, rows) = read(&disk);
        let whole = len.saturating_sub(HEADER_LEN) / record;
        assert_eq!(rows.len(), whole * 5, "length {len}: {replayed:?}");
        assert!(replayed.damage.is_empty());
    }
    disk.write_file(&path, &good);
    let mut journal =
        Journal::new(Arc::clone(&disk) as Arc<dyn Disk>, root(), STORE, read(&disk).0.segments);
    journal.append(15, 1, &payload(15, 1)).unwrap();
    journal.append_close().unwrap();
    let mut bad = good.clone();
    let end = bad.len() - 1;
    bad[end] ^= 1;
    disk.write_file(&path, &bad);
    assert_eq!(read(&disk).0.damage.len(), 1, "a sealed segment has no torn tail");
}

#[test]
fn released_segments_go() {
    let disk = disk();
    let (mut journal, _, _) = open(&disk);
    journal.append(0, 5, &payload(0, 5)).unwrap();
    journal.release(3, true).unwrap();
    assert_eq!(read(&disk).1.len(), 5, "row 4 is not in a part yet");
    journal.release(4, true).unwrap();
    assert_eq!(read(&disk).1.len(), 0);
    journal.append(5, 5, &payload(5, 5)).unwrap();
    assert_eq!(read(&disk).1.len(), 5);
    assert!(disk.list(Path::new("/store")).unwrap().len() == 1);
}

#[test]
fn a_missing_segment_is_damage() {
    let disk = disk();
    for i in 0..3 {
        let (mut journal, _, _) = open(&disk);
        journal.append(i * 5, 5, &payload(i * 5, 5)).unwrap();
        journal.append_close().unwrap();
    }
    disk.remove_file(&segment_path(&root(), 2)).unwrap();
    let (replayed, rows) = read(&disk);
    assert_eq!(rows.len(), 10);
    assert_eq!(replayed.damage.len(), 1);
}

/// A damaged segment is the only witness of its rows: it is set aside, never removed.
#[test]
fn a_damaged_segment_goes_to_quarantine() {
    let disk = disk();
    let (mut journal, _, _) = open(&disk);
    for i in 0..3 {
        journal.append(i * 5, 5, &payload(i * 5, 5)).unwrap();
    }
    drop(journal);
    let path = segment_path(&root(), 1);
    assert!(disk.flip(&path, HEADER_LEN as u64 + 40, 1));
    let bytes = disk.read_file(&path).unwrap();
    let (mut journal, replayed, rows) = open(&disk);
    assert_eq!((replayed.damage.len(), rows.len()), (1, 10));
    journal.append(15, 1, &payload(15, 1)).unwrap();
    journal.release(15, true).unwrap();
    assert_eq!(disk.read_file("/store/quarantine/JOURNAL-0000000000000001").unwrap(), bytes);
    assert!(read(&disk).0.damage.is_empty());
}
