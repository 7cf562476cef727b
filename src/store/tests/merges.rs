//! Merges of a store: unseen by queries, given up when it closes, bounded on damage.

use super::*;
use crate::io::Fault;
use crate::store::merger::BulkGuard;

fn part_files(disk: &SimDisk) -> Vec<PathBuf> {
    let days = disk.list(&root()).unwrap().into_iter().filter(|e| e.is_dir);
    let days = days.map(|e| root().join(e.name)).filter(|d| !d.ends_with("quarantine"));
    let files = days.flat_map(|d| {
        let inside = disk.list(&d).unwrap();
        inside.into_iter().map(move |e| d.join(e.name))
    });
    let mut files: Vec<PathBuf> = files.collect();
    files.sort();
    files
}

/// `n` flushes of ten rows each, from row 0 on: 3 parts each, one a day.
fn flushes(store: &Store, n: u64) {
    let ingest = ingest(store);
    for i in 0..n {
        ingest.append_batch(batch(i * 10..i * 10 + 10)).unwrap();
        store.flush().unwrap();
    }
}

#[test]
fn a_snapshot_reads_on_across_merges_and_its_files_go_with_it() {
    let disk = Arc::new(SimDisk::new());
    let store = options(&disk, Durability::Process).open(root()).unwrap();
    flushes(&store, 4);
    let before = store.core().snapshot().unwrap();
    let files = part_files(&disk);
    assert_eq!(files.len(), 12);
    let mut rows = store.query("* | sort by (n)").unwrap();
    assert_eq!(rows.next().unwrap().unwrap().get("n"), "0");
    let report = store.compact().unwrap();
    assert_eq!((report.merges, report.parts_read, report.parts_stored), (3, 12, 3));
    assert_eq!(report.merged_bytes, report.bytes_stored);
    flushes(&store, 1);
    store.compact().unwrap();
    // The inputs stay as long as the snapshot and the query do.
    assert!(files.iter().all(|f| exists(&disk, f)));
    assert_eq!(part_files(&disk).len(), 15);
    assert_eq!(numbers_of(&before), (0..40).collect::<Vec<_>>());
    assert_eq!(rows.map(|r| r.unwrap().get("n").parse::<u64>().unwrap()).max(), Some(39));
    drop(before);
    assert_eq!(part_files(&disk).len(), 3, "the last reader is gone");
    check_files(&disk, &store);
}

/// A crash while a snapshot keeps files of two generations of merges: recovery removes them all.
#[test]
fn inputs_of_inputs_are_named() {
    let disk = Arc::new(SimDisk::new());
    let store = options(&disk, Durability::Process).open(root()).unwrap();
    flushes(&store, 3);
    let held = store.core().snapshot().unwrap();
    store.compact().unwrap();
    flushes(&store, 1);
    store.compact().unwrap();
    let want = numbers(&store);
    let after = Arc::new(disk.crash(crate::io::CrashModel::KEEP_ALL, 1));
    assert_eq!(part_files(&after).len(), 12);
    drop(held);
    let store = options(&after, Durability::Process).open(root()).unwrap();
    assert!(store.open_report().is_clean(), "{}", store.open_report());
    assert_eq!(numbers(&store), want);
    assert_eq!(part_files(&after).len(), 3);
    check_files(&after, &store);
}

#[test]
fn a_flush_writes_neighbours_as_one_file() {
    let disk = Arc::new(SimDisk::new());
    let store = options(&disk, Durability::Process).seal_bytes(1).open(root()).unwrap();
    let ingest = ingest(&store);
    for i in 0..5 {
        ingest.append_batch(batch(i * 10..i * 10 + 10)).unwrap();
    }
    assert_eq!(store.stats().memory_parts, 15);
    let reserved = store.core().reserve_bulk(7).unwrap();
    for i in 6..9 {
        ingest.append_batch(batch(i * 10..i * 10 + 10)).unwrap();
    }
    // The bulk cut in flight keeps what is before it from what is behind it.
    let report = store.flush().unwrap();
    assert_eq!((report.parts, report.rows), (6, 80));
    store.core().write_bulk(reserved, vec![rows(50..57)]).unwrap().list().unwrap();
    let want: Vec<u64> = (0..57).chain(60..90).collect();
    assert_eq!(numbers(&store), want);
    store.compact().unwrap();
    assert_eq!((store.stats().file_parts, numbers(&store)), (3, want.clone()));
    let verified = store.verify(&mut |_| true).unwrap();
    assert!(verified.is_clean(), "{verified}");
}

/// Rows in the journal from before a bulk ingest that was listed: the cut that they become must
/// not enclose it.
#[test]
fn bulk_parts_between_journal_rows_survive_a_crash() {
    let disk = Arc::new(SimDisk::new());
    let store = options(&disk, Durability::Process).seal_bytes(1 << 20).open(root()).unwrap();
    let first = ingest(&store);
    first.append_batch(batch(0..10)).unwrap();
    let reserved = store.core().reserve_bulk(10).unwrap();
    store.core().write_bulk(reserved, vec![rows(10..20)]).unwrap().list().unwrap();
    let after_bulk = Arc::new(disk.crash(crate::io::CrashModel::KEEP_ALL, 1));
    first.append_batch(batch(20..30)).unwrap();
    let after_append = Arc::new(disk.crash(crate::io::CrashModel::KEEP_ALL, 1));
    for (disk, n) in [(after_bulk, 20), (after_append, 30)] {
        let store = options(&disk, Durability::Process).open(root()).unwrap();
        ingest(&store).append_batch(batch(n..40)).unwrap();
        assert_eq!(numbers(&store), (0..40).collect::<Vec<_>>());
        store.compact().unwrap();
        assert_eq!(numbers(&store), (0..40).collect::<Vec<_>>());
        assert_eq!(store.stats().file_parts, 3);
        store.close().unwrap();
    }
}

#[test]
fn damage_is_marked_and_never_tried_again() {
    let disk = Arc::new(SimDisk::new());
    let store = options(&disk, Durability::Process).open(root()).unwrap();
    flushes(&store, 4);
    store.close().unwrap();
    let damaged = part_files(&disk)[1].clone();
    assert!(disk.flip(&damaged, 60, 1));
    let store = options(&disk, Durability::Process).open(root()).unwrap();
    store.compact().unwrap();
    let mark = || {
        let state = store.core().manifest().unwrap().lock().state().clone();
        state.damage().cloned().collect::<Vec<_>>()
    };
    let marks = mark();
    assert_eq!(marks.len(), 1);
    assert!(damaged.ends_with(&marks[0].file) && exists(&disk, &damaged), "{marks:?}");
    // The parts before and behind it stay apart: 1 + damaged + 1, and one for each other day.
    assert_eq!(store.stats().file_parts, 5);
    let before = disk.ops();
    store.core().merge_by_policy().unwrap();
    store.close().unwrap();
    let store = options(&disk, Durability::Process).open(root()).unwrap();
    let again = store.compact().unwrap();
    assert_eq!((again.merges, again.parts_stored), (0, 5));
    assert!(disk.ops() - before < 40, "nobody reads the damaged part again");
    assert!(try_numbers(&store).is_err());
}

/// Waits until `done`, at most for ten seconds of this process.
fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    for _ in 0..1_000 {
        if done() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("{what} did not happen");
}

#[test]
fn the_thread_merges_after_flushes_but_not_beside_bulk_ingests() {
    let disk = Arc::new(SimDisk::new());
    let store = options(&disk, Durability::Process).background(true).open(root()).unwrap();
    flushes(&store, 4);
    wait_until("a merge", || store.stats().file_parts < 12 && store.stats().merged_bytes > 0);
    store.close().unwrap();
    let store = options(&disk, Durability::Process).open(root()).unwrap();
    store.compact().unwrap();
    let bulk = BulkGuard::new(store.core());
    flushes(&store, 5);
    let merged = store.stats().merged_bytes;
    store.core().merge_in_background().unwrap();
    assert_eq!(store.stats().merged_bytes, merged, "a bulk ingest runs");
    flushes(&store, 25);
    store.core().merge_in_background().unwrap();
    assert!(store.stats().merged_bytes > merged, "too many parts");
    assert!(store.stats().file_parts <= 24 * 3);
    drop(bulk);
    store.core().merge_in_background().unwrap();
    assert!(store.stats().file_parts < 15, "{:?}", store.stats());
}

#[test]
fn closing_pays_the_debt_of_small_parts_and_gives_up_merges() {
    let disk = Arc::new(SimDisk::new());
    let quiet = options(&disk, Durability::Process).open(root()).unwrap();
    flushes(&quiet, 20);
    quiet.core().stopping.store(true, std::sync::atomic::Ordering::Release);
    assert!(matches!(quiet.core().merge_in_background(), Err(Error::Closed)));
    assert!(matches!(quiet.compact(), Err(Error::Closed)));
    assert_eq!(quiet.stats().file_parts, 60);
    quiet.core().pay_debt().unwrap();
    assert_eq!(quiet.stats().file_parts, 15, "16 of a day became one, which is enough");
    assert_eq!(numbers(&quiet), (0..200).collect::<Vec<_>>());
}

#[test]
fn a_full_disk_leaves_everything_as_it_is() {
    let disk = Arc::new(SimDisk::new());
    let store = options(&disk, Durability::Process).open(root()).unwrap();
    flushes(&store, 4);
    let files = part_files(&disk);
    let start = disk.ops();
    store.core().merge_by_policy().unwrap();
    let ops = disk.ops() - start;
    for at in 0..ops {
        let disk = Arc::new(SimDisk::new());
        let store = options(&disk, Durability::Process).open(root()).unwrap();
        flushes(&store, 4);
        disk.fail_once(disk.ops() + at, Fault::NoSpace);
        let failed = store.core().merge_by_policy().is_err();
        let poisoned = store.core().commit(&crate::manifest::Edit::default()).is_err();
        let store = if poisoned {
            // Whether the edit is true is not known: the output stays until the next opening.
            drop(store);
            options(&disk, Durability::Process).open(root()).unwrap()
        } else {
            store
        };
        if failed {
            check_files(&disk, &store);
        }
        store.core().merge_by_policy().unwrap();
        assert_eq!(numbers(&store), (0..40).collect::<Vec<_>>(), "operation {at}");
        // A file that could not be removed goes at the next opening.
        drop(store);
        let store = options(&disk, Durability::Process).open(root()).unwrap();
        check_files(&disk, &store);
    }
    assert_eq!(files.len(), 12);
}

#[test]
fn crowds_of_memory_parts_become_fewer() {
    let disk = Arc::new(SimDisk::new());
    let (clock, store) = with_clock(&disk);
    let mut timer = crate::store::workers::Timer::default();
    let ingest = ingest(&store);
    for i in 0..30u64 {
        ingest.append_batch(batch(i * 10..i * 10 + 10)).unwrap();
        clock.advance(Duration::from_secs(1));
        store.core().tick(&mut timer);
        assert!(store.stats().memory_parts <= 3 * 8, "{:?}", store.stats());
        assert_eq!(numbers(&store), (0..i * 10 + 10).collect::<Vec<_>>());
    }
    clock.advance(Duration::from_secs(60));
    store.core().tick(&mut timer);
    assert_eq!((store.stats().memory_parts, store.stats().file_parts), (0, 3));
    let verified = store.verify(&mut |_| true).unwrap();
    assert!(verified.is_clean(), "{verified}");
}

/// The report says what was copied and what was encoded, and how often bytes were written.
#[test]
fn a_compaction_copies_full_blocks_and_says_so() {
    let disk = Arc::new(SimDisk::new());
    let store = options(&disk, Durability::Process).open(root()).unwrap();
    let ingest = ingest(&store);
    let mut first_merge = 0;
    for flush in 0..4u64 {
        let mut batch = Batch::new();
        for n in 0..50u64 {
            let time = Timestamp::from_nanos(i64::try_from(flush * 100 + n).unwrap());
            // Of a stream that fills blocks, and of a small one.
            let (app, len) = if n < 40 { ("big", 16_000) } else { ("small", 10) };
            let text = format!("{} {flush} {n}", "long ".repeat(len / 5));
            batch.entry().time(time).field("app", app).field("n", flush * 50 + n).message(&text);
        }
        ingest.append_batch(batch).unwrap();
        store.flush().unwrap();
        if flush == 2 {
            // What flushes wrote is made anew, once.
            let report = store.compact().unwrap();
            assert_eq!((report.parts_read, report.parts_stored), (3, 1), "{report}");
            assert_eq!((report.blocks_copied, report.rows_encoded), (0, 150), "{report}");
            first_merge = report.bytes_written;
        }
    }
    let report = store.compact().unwrap();
    assert_eq!((report.merges, report.parts_read, report.parts_stored), (1, 2, 1), "{report}");
    assert_eq!((report.rows_copied, report.rows_encoded), (120, 80), "{report}");
    assert!(0 < report.bytes_copied && report.bytes_copied < report.bytes_written, "{report}");
    assert_eq!(report.merged_bytes, first_merge + report.bytes_written);
    let copied = format!("copied {} blocks of 120 rows", report.blocks_copied);
    assert!(report.blocks_copied > 0 && report.to_string().contains(&copied), "{report}");
    assert!(report.to_string().contains("write amplification"), "{report}");
    assert_eq!(numbers(&store), (0..200).collect::<Vec<_>>());
    assert!(store.verify(&mut |_| true).unwrap().is_clean());
    let rows = store.query("n:=77 | fields _msg").unwrap();
    assert_eq!(rows.map(|r| r.unwrap().get("_msg").len()).collect::<Vec<_>>(), [16_005]);
}

#[test]
fn levels_of_zstd_are_chosen_by_tier() {
    // Words in an order that no template tells.
    let words = ["peer", "reset", "timeout", "refused", "by", "upstream", "retry", "cache", "miss"];
    let mut seed = 7u64;
    let mut word = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        words[usize::try_from(seed >> 33).unwrap() % words.len()]
    };
    let mut batch = Batch::new();
    for n in 0..3_000 {
        let text: Vec<&str> = (0..12).map(|_| word()).collect();
        batch.entry().time(Timestamp::from_nanos(n)).field("text", text.join(" ").as_str());
    }
    let sizes = |flush: u8, merge: u8| {
        let disk = Arc::new(SimDisk::new());
        let options = options(&disk, Durability::Process).flush_level(flush).merge_level(merge);
        let store = options.open(root()).unwrap();
        ingest(&store).append_batch(batch.clone()).unwrap();
        let report = store.compact().unwrap();
        (report.flushed.bytes, report.bytes_stored)
    };
    let (low, high) = (sizes(1, 1), sizes(19, 19));
    assert!(high.0 < low.0 && high.1 < low.1, "{low:?} {high:?}");
    assert_eq!((sizes(19, 1), sizes(1, 19)), ((high.0, low.1), (low.0, high.1)));
}
