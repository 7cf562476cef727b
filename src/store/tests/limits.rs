//! What a store does at its limits: many parts, a full disk, rows of many fields from many
//! writers.

use super::*;
use crate::io::OpKind;

/// Opening reads the manifest and lists directories; no part is touched, however many there are.
#[test]
fn opening_reads_no_part() {
    let disk = Arc::new(SimDisk::new());
    let store = options(&disk, Durability::Process).seal_bytes(1 << 30).open(root()).unwrap();
    let days = 300i64;
    for round in 0..4 {
        let mut batch = Batch::new();
        for day in 0..days {
            let time = Timestamp::from_nanos(day * DAY + round);
            batch.entry().time(time).field("app", "a").field("n", round * days + day);
        }
        ingest(&store).append_batch(batch).unwrap();
        store.flush().unwrap();
    }
    store.close().unwrap();
    let parts = disk.files().iter().filter(|f| f.extension().is_some_and(|e| e == "part")).count();
    assert_eq!(parts, 1_200);
    for reader in [false, true] {
        let before = disk.trace().len();
        let opening = options(&disk, Durability::Process);
        let store =
            if reader { opening.open_read_only(root()) } else { opening.open(root()) }.unwrap();
        let ops: Vec<_> = disk.trace().into_iter().skip(before).collect();
        let of_parts = |kind| {
            let of = |op: &&crate::io::Op| op.kind == kind && op.path.extension().is_some();
            ops.iter().filter(of).count()
        };
        // A reader holds the files of its parts open, since the writer may remove them.
        assert_eq!(of_parts(OpKind::Open), if reader { parts } else { 0 });
        assert_eq!(of_parts(OpKind::Read), 0);
        let others = ops.len() - of_parts(OpKind::Open);
        assert!(others < 300 + 30, "{others} operations");
        // One day of three hundred is asked for.
        let mut rows = store.query("_time:1970-01-05 | stats count() as n").unwrap();
        assert_eq!(rows.next().unwrap().unwrap().get("n"), "4");
        assert_eq!(rows.stats().parts_read, 4);
        assert_eq!((rows.stats().days_read, rows.stats().days_total), (1, 300));
    }
}

/// While the disk is full, appends are refused when the memory is; when there is room again the
/// store goes on by itself, with everything it acknowledged.
#[test]
fn a_full_disk_refuses_and_goes_on_by_itself() {
    let disk = Arc::new(SimDisk::new());
    let store = options(&disk, Durability::Process).memory_limit(0).open(root()).unwrap();
    let first = ingest(&store);
    first.append_batch(batch(0..10)).unwrap();
    disk.set_capacity(4 << 20);
    let mut acknowledged = vec![];
    let mut refused = 0;
    for n in 10..200u64 {
        let mut rows = Batch::new();
        let mut state = n;
        let mut noise = || {
            state = state.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23);
            format!("{state:016x}")
        };
        let text: String = (0..4_000).map(|_| noise()).collect();
        rows.entry().time(Timestamp::from_nanos(n.cast_signed())).field("n", n).message(&text);
        match first.append_batch(rows) {
            Ok(_) => acknowledged.push(n),
            Err(Error::Io { source, .. }) => {
                assert_eq!(source.kind(), std::io::ErrorKind::StorageFull);
                refused += 1;
            }
            Err(e) => panic!("{e}"),
        }
    }
    assert!(refused > 50 && acknowledged.len() > 20, "{refused} of {}", acknowledged.len());
    disk.set_capacity(1 << 40);
    first.append_batch(batch(300..310)).unwrap();
    let want: Vec<u64> = (0..10).chain(acknowledged).chain(300..310).collect();
    assert_eq!(numbers(&store), want);
    drop(first);
    store.close().unwrap();
    let store = options(&disk, Durability::Process).open(root()).unwrap();
    assert_eq!(numbers(&store), want);
    assert!(store.verify(&mut |_| true).unwrap().is_clean());
}

/// 129 fields that one row in twelve has, ten rows a batch, eight writers of one stream, merges
/// beside them: every value is where it was put.
#[test]
fn sparse_fields_of_many_writers() {
    let disk = Arc::new(SimDisk::new());
    let store = options(&disk, Durability::Process)
        .seal_bytes(30_000)
        .background(true)
        .open(root())
        .unwrap();
    let value = |n: u64, field: u64| format!("{n}-{field}");
    let has = |n: u64, field: u64| (n * 31 + field * 17).is_multiple_of(12);
    std::thread::scope(|scope| {
        for writer in 0..8u64 {
            let store = &store;
            scope.spawn(move || {
                let ingest = ingest(store);
                for i in 0..12 {
                    let mut batch = Batch::new();
                    for n in (0..10).map(|row| writer * 1_000 + i * 10 + row) {
                        let mut entry = batch.entry().time(Timestamp::from_nanos(5));
                        entry = entry.field("app", "one").field("n", n);
                        for field in (0..129).filter(|f| has(n, *f)) {
                            entry = entry.field(&format!("f{field}"), value(n, field).as_str());
                        }
                    }
                    ingest.append_batch(batch).unwrap();
                    if i % 4 == 3 {
                        store.flush().unwrap();
                    }
                }
            });
        }
    });
    for merged in [false, true] {
        if merged {
            store.compact().unwrap();
        }
        let mut count = 0;
        for row in store.query("*").unwrap() {
            let row = row.unwrap();
            let n: u64 = row.get("n").parse().unwrap();
            for field in 0..129 {
                let want = if has(n, field) { value(n, field) } else { String::new() };
                assert_eq!(row.get(&format!("f{field}")), want, "row {n}, field {field}");
            }
            count += 1;
        }
        assert_eq!(count, 8 * 120);
    }
    assert!(store.verify(&mut |_| true).unwrap().is_clean());
}

/// What the threads of a store could not do is told, and done when it can be.
#[test]
fn failures_in_the_background_are_told() {
    let disk = Arc::new(SimDisk::new());
    let (clock, store) = with_clock(&disk);
    ingest(&store).append_batch(batch(0..10)).unwrap();
    let mut timer = crate::store::workers::Timer::default();
    clock.advance(Duration::from_secs(2));
    store.core().tick(&mut timer);
    assert_eq!(store.last_error(), None);
    disk.fail_next(OpKind::Rename, "part", crate::io::Fault::Io);
    clock.advance(Duration::from_secs(70));
    store.core().tick(&mut timer);
    assert!(store.last_error().is_some_and(|e| e.contains("rename")), "{:?}", store.last_error());
    assert_eq!((store.stats().file_parts, numbers(&store).len()), (0, 10));
    clock.advance(Duration::from_secs(2));
    store.core().tick(&mut timer);
    assert_eq!((store.stats().file_parts, numbers(&store).len()), (3, 10));
}

/// A clock that panics in threads of the store while it is told to.
#[derive(Debug, Default)]
struct Faulty {
    inner: crate::io::SystemClock,
    panics_in: crate::sync::Mutex<Option<&'static str>>,
}

impl crate::io::Clock for Faulty {
    fn now(&self) -> Timestamp {
        self.inner.now()
    }

    fn monotonic(&self) -> Duration {
        let wanted = *self.panics_in.lock();
        assert!(wanted.is_none() || std::thread::current().name() != wanted, "on purpose");
        self.inner.monotonic()
    }
}

/// A panic in a thread of the store is told, by `last_error` and by `close`; the thread goes on,
/// and no row is lost.
#[test]
fn panics_in_the_background_are_told() {
    let disk = Arc::new(SimDisk::new());
    let clock = Arc::new(Faulty::default());
    let open = || {
        let shared = Arc::clone(&clock) as Arc<dyn crate::io::Clock>;
        options(&disk, Durability::Process).background(true).clock(shared).open(root()).unwrap()
    };
    let store = open();
    *clock.panics_in.lock() = Some("loglith-flush");
    let begun = std::time::Instant::now();
    while store.last_error().is_none() && begun.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(5));
    }
    *clock.panics_in.lock() = None;
    assert!(store.last_error().unwrap().contains("panicked"), "{:?}", store.last_error());
    ingest(&store).append_batch(batch(0..30)).unwrap();
    let closed = store.close();
    assert!(matches!(closed, Err(Error::Internal { .. })), "{closed:?}");
    let store = open();
    assert_eq!(numbers(&store), (0..30).collect::<Vec<_>>());
    store.close().unwrap();
}
