//! Damage as a recorded state: queries fail or skip it, the rest works, nothing forgets it.

use super::*;
use crate::io::CrashModel;
use crate::options::QueryOptions;
use crate::query::Query;

/// What a query that skips damage gives: rows, damaged places, rows possibly missing.
fn skipping(store: &Store, text: &str) -> (usize, u64, u64) {
    let options = QueryOptions::new().skip_damaged(true);
    let mut rows = store.query_with(&text.parse::<Query>().unwrap(), &options).unwrap();
    let mut count = 0;
    for row in rows.by_ref() {
        row.unwrap();
        count += 1;
    }
    let stats = rows.stats();
    assert_eq!(stats.damaged_places, rows.damage().len() as u64);
    (count, stats.damaged_places, stats.rows_missing)
}

fn strictly(store: &Store, text: &str) -> Result<usize> {
    let mut count = 0;
    for row in store.query(text)? {
        row?;
        count += 1;
    }
    Ok(count)
}

/// Twenty flushed parts of one day, each of ten rows: part `i` has hour `i`.
fn twenty_parts() -> (Arc<SimDisk>, Vec<PathBuf>) {
    let disk = Arc::new(SimDisk::new());
    let store = options(&disk, Durability::Process).open(root()).unwrap();
    let ingest = ingest(&store);
    for hour in 0..20i64 {
        let mut batch = Batch::new();
        for n in 0..10 {
            let time = Timestamp::from_nanos(hour * 3_600_000_000_000 + n);
            batch.entry().time(time).field("n", hour * 10 + n).message("a row of the test");
        }
        ingest.append_batch(batch).unwrap();
        store.flush().unwrap();
    }
    drop(ingest);
    store.close().unwrap();
    let parts = disk.files().into_iter().filter(|f| f.extension().is_some_and(|e| e == "part"));
    let parts: Vec<PathBuf> = parts.collect();
    let disk = Arc::new(disk.fork());
    (disk, parts)
}

/// Ways to damage a part, with what is left of its ten rows.
fn damage(disk: &SimDisk, path: &Path, how: &str) {
    let len = disk.read_file(path).unwrap().len() as u64;
    match how {
        "a page" => assert!(disk.flip(path, 40, 1)),
        "the footer" => assert!(disk.flip(path, len - 20, 1)),
        "length 0" => assert!(disk.cut(path, 0)),
        "shorter" => assert!(disk.cut(path, len / 2)),
        "missing" => disk.remove_file(path).unwrap(),
        _ => unreachable!(),
    }
}

#[test]
fn one_bad_part_of_twenty() {
    let (base, parts) = twenty_parts();
    for how in ["a page", "the footer", "length 0", "shorter", "missing"] {
        for reader in [false, true] {
            let disk = Arc::new(base.fork());
            damage(&disk, &parts[7], how);
            let opening = options(&disk, Durability::Process);
            let store =
                if reader { opening.open_read_only(root()) } else { opening.open(root()) }.unwrap();
            let context = format!("{how}, reader: {reader}");
            match strictly(&store, "*") {
                Err(Error::Corrupted(c)) => assert_eq!(c.path, parts[7], "{context}"),
                other => panic!("{context}: {other:?}"),
            }
            let (rows, places, missing) = skipping(&store, "*");
            assert_eq!((rows, places, missing), (190, 1, 10), "{context}");
            assert_eq!(skipping(&store, "* | stats count() as n"), (1, 1, 10), "{context}");
            // What does not touch the damage works.
            let elsewhere = "_time:[1970-01-01T08:00:00Z, 1970-01-02T00:00:00Z)";
            assert_eq!(strictly(&store, elsewhere).unwrap(), 120, "{context}");
            assert_eq!(skipping(&store, elsewhere), (120, 0, 0), "{context}");
            let verified = store.verify(&mut |_| true).unwrap();
            assert!(verified.damage.iter().any(|c| c.path == parts[7]), "{context}: {verified}");
            assert!(store.inspect().unwrap().damage.len() <= 1);
        }
    }
}

/// Damage of what only speeds up a query costs no rows; that of a strip only its rows.
#[test]
fn the_smallest_unit_is_skipped() {
    let disk = Arc::new(SimDisk::new());
    let store = options(&disk, Durability::Process).seal_bytes(64 << 20).open(root()).unwrap();
    let mut rows = Batch::new();
    for n in 0..6_000u64 {
        let time = Timestamp::from_nanos(n.cast_signed());
        // Numbers without order take bytes in every strip.
        let text = format!("word{} {}", n.wrapping_mul(0x9e37_79b9_7f4a_7c15), n % 7);
        rows.entry().time(time).field("n", n).message(&text);
    }
    ingest(&store).append_batch(rows).unwrap();
    store.flush().unwrap();
    let path = disk.files().into_iter().find(|f| f.extension().is_some()).unwrap();
    let len = disk.read_file(&path).unwrap().len() as u64;
    let mut seen = std::collections::BTreeSet::new();
    drop(store);
    for at in (24..len).step_by(97) {
        let disk = Arc::new(disk.fork());
        assert!(disk.flip(&path, at, 4));
        let store = options(&disk, Durability::Process).open_read_only(root()).unwrap();
        let (rows, places, missing) = skipping(&store, "word*");
        let told = rows as u64 + missing >= 6_000 && (places > 0 || rows == 6_000);
        assert!(told, "at {at}: {rows} rows, {places} places, {missing} missing");
        seen.insert(missing);
    }
    let strips = [2_048, 6_000 - 2 * 2_048];
    assert!(strips.iter().all(|s| seen.contains(s)), "{seen:?}");
    assert!(seen.contains(&0) && seen.contains(&6_000), "{seen:?}");
}

/// A record that was synced is damaged, and others follow it: its rows are gone, and every query
/// says so, also when a flush has moved the others to parts and the segment to quarantine.
#[test]
fn a_gap_in_the_journal_is_remembered() {
    let disk = Arc::new(SimDisk::new());
    let store = options(&disk, Durability::Process).seal_bytes(1 << 20).open(root()).unwrap();
    let ingest = ingest(&store);
    for n in [0, 10, 20] {
        ingest.append_batch(batch(n..n + 10)).unwrap();
        store.sync().unwrap();
    }
    let disk = Arc::new(disk.crash(CrashModel::KEEP_ALL, 0));
    let journal = disk.files().into_iter().find(|f| f.to_str().unwrap().contains("JOURNAL"));
    let journal = journal.unwrap();
    let second = disk.read_file(&journal).unwrap().len() as u64 / 2;
    assert!(disk.flip(&journal, second, 8));
    let check = |store: &Store| {
        match strictly(store, "*") {
            Err(Error::Corrupted(c)) => assert_eq!(c.path, journal),
            other => panic!("{other:?}"),
        }
        assert_eq!(skipping(store, "*"), (20, 1, 10));
        let known = store.inspect().unwrap().damage;
        assert_eq!((known.len(), known[0].rows, known[0].lost), (1, 10, true));
    };
    check(&options(&disk, Durability::Process).open_read_only(root()).unwrap());
    for _ in 0..3 {
        let store = options(&disk, Durability::Process).open(root()).unwrap();
        check(&store);
        store.flush().unwrap();
        check(&store);
        store.close().unwrap();
    }
    assert!(disk.list(&root().join("quarantine")).unwrap().len() == 1);
    check(&options(&disk, Durability::Process).open_read_only(root()).unwrap());
}

/// The manifest has lost its last edit at its boundary, so nothing in it is wrong. Who checks
/// is told of the part; who opens for writing has its rows again.
#[test]
fn parts_that_no_manifest_lists_are_noticed() {
    let disk = Arc::new(SimDisk::new());
    let store = options(&disk, Durability::Process).open(root()).unwrap();
    let ingest = ingest(&store);
    ingest.append_batch(batch(0..30)).unwrap();
    store.flush().unwrap();
    let manifest = disk.files().into_iter().find(|f| f.to_str().unwrap().contains("MANIFEST"));
    let manifest = manifest.unwrap();
    let before = disk.read_file(&manifest).unwrap().len() as u64;
    ingest.append_batch(batch(30..60)).unwrap();
    store.flush().unwrap();
    let disk = Arc::new(disk.fork());
    assert!(disk.cut(&manifest, before));
    let reader = options(&disk, Durability::Process).open_read_only(root()).unwrap();
    let verified = reader.verify(&mut |_| true).unwrap();
    assert_eq!(verified.damage.len(), 3, "{verified}");
    let told = reader.open_report().to_string();
    assert!(told.contains("3 part files are listed by no manifest"), "{told}");
    let store = options(&disk, Durability::Process).open(root()).unwrap();
    assert!(!store.open_report().is_clean());
    assert_eq!(numbers(&store), (0..60).collect::<Vec<_>>());
    assert!(reader.verify(&mut |_| true).unwrap().is_clean());
    assert_eq!(numbers(&reader), (0..60).collect::<Vec<_>>());
}

/// A segment is unreadable from its header to its end, which no crash can do: what was in it is
/// lost until somebody accepts that.
#[test]
fn a_segment_without_one_good_byte_is_a_loss() {
    let disk = Arc::new(SimDisk::new());
    let store = options(&disk, Durability::Process).open(root()).unwrap();
    ingest(&store).append_batch(batch(0..30)).unwrap();
    let disk = Arc::new(disk.kill());
    drop(store);
    let segment = disk.files().into_iter().find(|f| f.to_str().unwrap().contains("JOURNAL"));
    let segment = segment.unwrap();
    let len = disk.read_file(&segment).unwrap().len();
    disk.write_file(&segment, &vec![0x5a; len]);
    let reader = options(&disk, Durability::Process).open_read_only(root()).unwrap();
    assert!(strictly(&reader, "*").is_err());
    let store = options(&disk, Durability::Process).open(root()).unwrap();
    assert!(strictly(&store, "*").is_err());
    store.close().unwrap();
    let store = options(&disk, Durability::Process).open(root()).unwrap();
    assert!(strictly(&store, "*").is_err(), "it is not forgotten");
    store.close().unwrap();
    let repair = |accept| options(&disk, Durability::Process).repair(root(), accept).unwrap();
    let report = repair(false);
    assert!(!report.is_complete(), "{report}");
    let report = repair(true);
    assert!(report.is_complete(), "{report}");
}

/// The journal is gone whole, or nothing but the header of its last segment is left: every query
/// says so, until somebody accepts it, and then all is well.
#[test]
fn a_journal_that_is_gone_is_a_loss() {
    for whole in [true, false] {
        let disk = Arc::new(SimDisk::new());
        let store = options(&disk, Durability::Process).open(root()).unwrap();
        ingest(&store).append_batch(batch(0..30)).unwrap();
        store.flush().unwrap();
        ingest(&store).append_batch(batch(30..60)).unwrap();
        let disk = Arc::new(disk.kill());
        drop(store);
        let segments = disk.files().into_iter().filter(|f| f.to_str().unwrap().contains("JOURNAL"));
        for path in segments {
            match whole {
                true => disk.remove_file(&path).unwrap(),
                false => assert!(disk.cut(&path, 56)),
            }
        }
        let reader = options(&disk, Durability::Process).open_read_only(root()).unwrap();
        assert!(strictly(&reader, "*").is_err() && !reader.open_report().is_clean());
        assert!(!reader.verify(&mut |_| true).unwrap().is_clean());
        assert_eq!(skipping(&reader, "*"), (30, 1, 0));
        for _ in 0..3 {
            let store = options(&disk, Durability::Process).open(root()).unwrap();
            assert!(strictly(&store, "*").is_err(), "it is not forgotten");
            ingest(&store).append_batch(batch(60..61)).unwrap();
            store.close().unwrap();
        }
        assert!(strictly(&reader, "*").is_err());
        let report = options(&disk, Durability::Process).repair(root(), true).unwrap();
        assert!(report.is_complete(), "{report}");
        let store = options(&disk, Durability::Process).open(root()).unwrap();
        assert!(store.open_report().is_clean(), "{}", store.open_report());
        assert_eq!(strictly(&store, "*").unwrap(), 33);
        store.close().unwrap();
    }
}

/// The directory of a store that was killed, closed or only ever buffered lacks nothing, however
/// often it is opened, by a writer or a reader.
#[test]
fn a_journal_that_may_be_gone_is_no_loss() {
    for durability in [Durability::Buffered, Durability::Process, Durability::Sync] {
        let disk = Arc::new(SimDisk::new());
        let mut appended = 0;
        for life in 0..6 {
            let (reader, store) = (life % 2 == 1, options(&disk, durability).open(root()).unwrap());
            assert!(store.open_report().is_clean(), "{}", store.open_report());
            let ingest = ingest(&store);
            for flushes in [false, true, false] {
                ingest.append_batch(batch(appended..appended + 10)).unwrap();
                appended += 10;
                if flushes {
                    store.flush().unwrap();
                }
                if reader {
                    let reader = options(&disk, durability).open_read_only(root()).unwrap();
                    assert!(reader.open_report().is_clean(), "{}", reader.open_report());
                    assert!(strictly(&reader, "*").is_ok());
                }
            }
            drop(ingest);
            store.close().unwrap();
            assert!(disk.files().iter().all(|f| !f.to_str().unwrap().contains("JOURNAL")));
        }
        let store = options(&disk, Durability::Process).open_read_only(root()).unwrap();
        assert_eq!(numbers(&store), (0..appended).collect::<Vec<_>>());
    }
}

/// A write that was under way when the machine stopped is named by whoever checks; it is no
/// damage.
#[test]
fn bytes_that_were_cut_short_are_named() {
    let disk = Arc::new(SimDisk::new());
    let store = options(&disk, Durability::Process).open(root()).unwrap();
    let ingest = ingest(&store);
    ingest.append_batch(batch(0..10)).unwrap();
    ingest.append_batch(batch(10..20)).unwrap();
    let disk = Arc::new(disk.kill());
    let segment = disk.files().into_iter().find(|f| f.to_str().unwrap().contains("JOURNAL"));
    let segment = segment.unwrap();
    let len = disk.read_file(&segment).unwrap().len() as u64;
    assert!(disk.cut(&segment, len - 1));
    let reader = options(&disk, Durability::Process).open_read_only(root()).unwrap();
    let verified = reader.verify(&mut |_| true).unwrap();
    assert!(verified.is_clean(), "{verified}");
    assert!(
        verified.to_string().contains("at the end of the journal were cut short"),
        "{verified}"
    );
    assert_eq!(strictly(&reader, "*").unwrap(), 10);
}
