use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::segment::{HEADER_LEN, segment_path};
use super::*;
use crate::Result;
use crate::io::{CrashModel, DataDamage, Disk, Fault, SimDisk};
use crate::manifest::Segments;
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
    let journal = Journal::new(
        Arc::clone(disk) as Arc<dyn Disk>,
        root(),
        STORE,
        replayed.segments.clone(),
        1,
    );
    (journal, replayed, rows)
}

fn append(journal: &mut Journal, first: u64, rows: u64) -> Result<()> {
    let count = u32::try_from(rows).unwrap();
    journal.append(first, count, &payload(first, rows), &mut |_| Ok(()))
}

fn read(disk: &Arc<SimDisk>) -> (Replayed, Vec<u64>) {
    read_expecting(disk, &Segments::default())
}

fn read_expecting(disk: &Arc<SimDisk>, expected: &Segments) -> (Replayed, Vec<u64>) {
    let mut rows = Vec::new();
    let replayed = replay(disk.as_ref(), &root(), STORE, expected, &mut |sequence, b| {
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
            append(&mut journal, first, 10).unwrap();
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
                    if append(&mut journal, i * 5, 5).is_err() {
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
                append(&mut journal, 1000, 2).unwrap();
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
            append(&mut journal, 0, 5).unwrap();
            disk.fail_once(disk.ops(), fault);
            if truncate_fails {
                disk.fail_once(disk.ops() + 1, Fault::Io);
            }
            assert!(append(&mut journal, 5, 5).is_err());
            append(&mut journal, 10, 5).unwrap();
            journal.append_close().unwrap();
            let (replayed, rows) = read(&disk);
            let want: Vec<u64> = (0..5).chain(10..15).collect();
            assert_eq!(rows, want, "{fault:?} {truncate_fails} {replayed:?}");
            assert!(replayed.damage.is_empty(), "{fault:?} {truncate_fails} {replayed:?}");
        }
    }
}

/// Each byte flipped, each length cut: never a panic, never a wrong row, and a record that valid
/// ones follow, or the first one, is called damage.
#[test]
fn flips_and_truncations() {
    let disk = disk();
    let (mut journal, _, _) = open(&disk);
    for i in 0..3 {
        append(&mut journal, i * 5, 5).unwrap();
    }
    let path = segment_path(&root(), 1);
    let expected = Segments { first_rows: [(1, 0)].into(), below: 2 };
    let good = disk.read_file(&path).unwrap();
    let record = (good.len() - HEADER_LEN) / 3;
    for i in 0..good.len() {
        let mut bad = good.clone();
        bad[i] ^= 0x10;
        disk.write_file(&path, &bad);
        let (replayed, rows) = read_expecting(&disk, &expected);
        assert!(rows.iter().all(|r| *r < 15));
        let in_last = i >= good.len() - record;
        assert_eq!(replayed.damage.is_empty(), in_last, "byte {i}: {replayed:?}");
        if in_last {
            assert!(replayed.torn_bytes > 0 && rows.len() == 10, "byte {i}");
        }
    }
    for len in 0..good.len() {
        disk.write_file(&path, &good[..len]);
        let (replayed, rows) = read_expecting(&disk, &expected);
        let whole = len.saturating_sub(HEADER_LEN) / record;
        assert_eq!(rows.len(), whole * 5, "length {len}: {replayed:?}");
        assert_eq!(replayed.damage.is_empty(), whole > 0, "length {len}: {replayed:?}");
    }
    disk.write_file(&path, &good);
    let mut journal =
        Journal::new(Arc::clone(&disk) as Arc<dyn Disk>, root(), STORE, read(&disk).0.segments, 1);
    append(&mut journal, 15, 1).unwrap();
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
    append(&mut journal, 0, 5).unwrap();
    journal.release(3, true, &mut |_| Ok(())).unwrap();
    assert_eq!(read(&disk).1.len(), 5, "row 4 is not in a part yet");
    journal.release(4, true, &mut |_| Ok(())).unwrap();
    assert_eq!(read(&disk).1.len(), 0);
    append(&mut journal, 5, 5).unwrap();
    assert_eq!(read(&disk).1.len(), 5);
    assert!(disk.list(Path::new("/store")).unwrap().len() == 1);
}

#[test]
fn a_missing_segment_is_damage() {
    let disk = disk();
    for i in 0..3 {
        let (mut journal, _, _) = open(&disk);
        append(&mut journal, i * 5, 5).unwrap();
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
        append(&mut journal, i * 5, 5).unwrap();
    }
    drop(journal);
    let path = segment_path(&root(), 1);
    assert!(disk.flip(&path, HEADER_LEN as u64 + 40, 1));
    let bytes = disk.read_file(&path).unwrap();
    let (mut journal, replayed, rows) = open(&disk);
    assert_eq!((replayed.damage.len(), rows.len()), (1, 10));
    append(&mut journal, 15, 1).unwrap();
    journal.release(15, true, &mut |_| Ok(())).unwrap();
    assert_eq!(disk.read_file("/store/quarantine/JOURNAL-0000000000000001").unwrap(), bytes);
    assert!(read(&disk).0.damage.is_empty());
}

/// What the manifest is told of a journal.
fn told(journal: &mut Journal, expected: &mut Segments, first: u64, rows: u64) {
    let count = u32::try_from(rows).unwrap();
    let mut begun = |segment| {
        expected.first_rows.insert(segment, first);
        expected.below = segment + 1;
        Ok(())
    };
    journal.append(first, count, &payload(first, rows), &mut begun).unwrap();
}

/// Of three segments any number is gone, or cut to any length before the end of its first record:
/// each one is named, with the most rows that it can have held.
#[test]
fn expected_segments_are_missed() {
    let disk = disk();
    let mut expected = Segments::default();
    for i in 0..3 {
        let (mut journal, ..) = open(&disk);
        told(&mut journal, &mut expected, i * 10 + 1, 5);
        told(&mut journal, &mut expected, i * 10 + 6, 5);
    }
    assert_eq!(expected.first_rows.keys().copied().collect::<Vec<_>>(), [1, 2, 3]);
    assert!(read_expecting(&disk, &expected).0.damage.is_empty());
    let first_record =
        HEADER_LEN + (disk.read_file(segment_path(&root(), 1)).unwrap().len() - HEADER_LEN) / 2;
    for gone in 1u64..8 {
        for cut in [None, Some(0), Some(HEADER_LEN - 1), Some(HEADER_LEN), Some(first_record - 1)] {
            let disk = Arc::new(disk.fork());
            let lost: Vec<u64> = (1..=3).filter(|n| gone & (1 << (n - 1)) != 0).collect();
            for segment in &lost {
                let path = segment_path(&root(), *segment);
                match cut {
                    None => disk.remove_file(&path).unwrap(),
                    Some(to) => assert!(disk.cut(&path, to as u64)),
                }
            }
            let (replayed, rows) = read_expecting(&disk, &expected);
            let what = format!("{lost:?} {cut:?}: {replayed:?}");
            let want = (1..31).filter(|n| !lost.contains(&(n / 10 + u64::from(n % 10 > 0))));
            assert_eq!(rows, want.collect::<Vec<_>>(), "{what}");
            assert!(replayed.gaps.iter().all(|gap| gap.promised), "{what}");
            for segment in lost {
                let path = segment_path(&root(), segment);
                let mut gaps = replayed.gaps.iter().filter(|gap| gap.place.path == path);
                let gap = gaps.next().unwrap_or_else(|| panic!("segment {segment} of {what}"));
                assert_eq!(gap.missing.is_some(), cut.is_none(), "{what}");
                assert!(gap.before.is_some() || segment == 3, "{what}");
                assert!(gap.rows() <= 10, "{what}");
            }
        }
    }
}

/// What could not be begun leaves nothing, whatever fails, and its number is used by the next.
#[test]
fn a_segment_that_is_not_begun_leaves_nothing() {
    for fails in 0..5 {
        let disk = disk();
        let (mut journal, ..) = open(&disk);
        if fails < 4 {
            disk.fail_once(disk.ops() + fails, Fault::Io);
        }
        let refused = journal.append(1, 5, &payload(1, 5), &mut |_| Err(crate::Error::Full));
        assert!(refused.is_err());
        assert!(disk.list(&root()).unwrap().is_empty(), "{fails}");
        append(&mut journal, 6, 5).unwrap();
        assert_eq!(read(&disk).1, (6..11).collect::<Vec<_>>(), "{fails}");
        assert!(exists(&disk, 1), "{fails}");
    }
}

fn exists(disk: &SimDisk, segment: u64) -> bool {
    disk.read_file(segment_path(&root(), segment)).is_some()
}
