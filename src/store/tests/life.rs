use super::*;
use crate::io::OpKind;

#[test]
fn rows_are_there_from_append_to_reopening() {
    for durability in [Durability::Buffered, Durability::Process, Durability::Sync] {
        let disk = Arc::new(SimDisk::new());
        let mut want: Vec<u64> = Vec::new();
        for life in 0..3 {
            let store = options(&disk, durability).open(root()).unwrap();
            assert!(store.open_report().is_clean(), "{:?}", store.open_report());
            assert_eq!(numbers(&store), want);
            let ingest = ingest(&store);
            for i in 0..10 {
                let first = life * 1_000 + i * 20;
                ingest.append_batch(batch(first..first + 20)).unwrap();
                want.extend(first..first + 20);
                assert_eq!(numbers(&store), want);
                if i == 4 {
                    let report = store.flush().unwrap();
                    assert!(report.rows >= 100);
                    assert_eq!(numbers(&store), want);
                    assert_eq!(store.stats().memory_parts, 0);
                }
            }
            drop(ingest);
            store.close().unwrap();
        }
        let store = options(&disk, durability).open(root()).unwrap();
        assert_eq!(numbers(&store), want);
        assert_eq!(store.open_report().replayed_rows, 0, "a clean close leaves nothing behind");
        check_files(&disk, &store);
    }
}

#[test]
fn a_second_writer_is_refused_and_a_reader_is_not() {
    let disk = Arc::new(SimDisk::new());
    assert!(matches!(
        options(&disk, Durability::Process).open_read_only(root()),
        Err(Error::NotAStore { .. })
    ));
    let store = options(&disk, Durability::Process).open(root()).unwrap();
    let second = options(&disk, Durability::Process).open(root());
    assert!(matches!(second, Err(Error::Locked { .. })));
    let reader = options(&disk, Durability::Process).open_read_only(root()).unwrap();
    assert!(matches!(reader.ingest(IngestOptions::new()), Err(Error::ReadOnly)));
    assert!(matches!(reader.flush(), Err(Error::ReadOnly)));
    store.close().unwrap();
}

/// A reader in another process sees every acknowledged row at every moment, and writes nothing.
#[test]
fn a_reader_follows_the_writer() {
    let disk = Arc::new(SimDisk::new());
    let store = options(&disk, Durability::Process).open(root()).unwrap();
    let reader = options(&disk, Durability::Process).open_read_only(root()).unwrap();
    let ingest = ingest(&store);
    for i in 0..30u64 {
        ingest.append_batch(batch(i * 10..i * 10 + 10)).unwrap();
        if i % 7 == 3 {
            store.flush().unwrap();
        }
        let want: Vec<u64> = (0..i * 10 + 10).collect();
        let before = disk.trace();
        assert_eq!(numbers(&reader), want, "after batch {i}");
        let wrote = disk
            .trace()
            .into_iter()
            .skip(before.len())
            .any(|op| !matches!(op.kind, OpKind::Open | OpKind::Read | OpKind::List));
        assert!(!wrote, "a reader writes nothing");
    }
}

#[test]
fn many_producers_lose_and_double_nothing() {
    let disk = Arc::new(SimDisk::new());
    let store = options(&disk, Durability::Process)
        .memory_limit(8 << 20)
        .seal_bytes(20_000)
        .background(true)
        .open(root())
        .unwrap();
    std::thread::scope(|scope| {
        for t in 0..4u64 {
            let store = store.clone();
            scope.spawn(move || {
                let ingest = ingest(&store);
                for i in 0..40 {
                    let first = t * 100_000 + i * 50;
                    ingest.append_batch(batch(first..first + 50)).unwrap();
                    if i % 16 == t {
                        store.flush().unwrap();
                    }
                }
            });
        }
        let store = store.clone();
        scope.spawn(move || {
            let mut last = 0;
            for _ in 0..20 {
                let seen = numbers(&store);
                assert!(seen.windows(2).all(|w| w[0] < w[1]), "no row is seen twice");
                assert!(seen.len() >= last, "rows do not vanish");
                last = seen.len();
            }
        });
    });
    let want: Vec<u64> = (0..4).flat_map(|t| t * 100_000..t * 100_000 + 2_000).collect();
    assert_eq!(numbers(&store), want);
    store.close().unwrap();
    let store = options(&disk, Durability::Process).open(root()).unwrap();
    assert_eq!(numbers(&store), want);
    check_files(&disk, &store);
}

#[test]
fn the_clock_seals_and_flushes() {
    let disk = Arc::new(SimDisk::new());
    let (clock, store) = with_clock(&disk);
    ingest(&store).append_batch(batch(0..10)).unwrap();
    let mut timer = crate::store::workers::Timer::default();
    store.core().tick(&mut timer);
    assert_eq!((store.stats().buffered_rows, store.stats().memory_parts), (10, 0));
    clock.advance(Duration::from_secs(2));
    store.core().tick(&mut timer);
    assert_eq!((store.stats().buffered_rows, store.stats().memory_parts), (0, 3));
    clock.advance(Duration::from_secs(70));
    store.core().tick(&mut timer);
    assert_eq!((store.stats().memory_parts, store.stats().file_parts), (0, 3));
    assert_eq!(numbers(&store), (0..10).collect::<Vec<_>>());
}

#[test]
fn a_full_buffer_blocks_or_refuses_and_recovers() {
    let disk = Arc::new(SimDisk::new());
    let store =
        options(&disk, Durability::Process).memory_limit(0).seal_bytes(1 << 30).open(root());
    let store = store.unwrap();
    let ingest = ingest(&store);
    let share = store.core().memory_share();
    let entry = |n: u64| {
        crate::Entry::new()
            .time(Timestamp::from_nanos(n.cast_signed()))
            .field("n", n)
            .message(&"x".repeat(100_000))
    };
    let mut n = 0;
    for _ in 0..200 {
        match ingest.try_append(entry(n)) {
            Ok(_) => n += 1,
            Err(Error::Full) => break,
            Err(e) => panic!("{e}"),
        }
        assert!(store.stats().memory_bytes <= share);
    }
    for _ in 0..50 {
        ingest.append(entry(n)).unwrap();
        n += 1;
        assert!(store.stats().memory_bytes <= share, "{}", store.stats().memory_bytes);
    }
    assert_eq!(numbers(&store), (0..n).collect::<Vec<_>>());
}

/// Lines in bulk: order kept, bad lines counted, over many chunks of many days.
#[test]
fn bulk_lines_keep_every_row() {
    let disk = Arc::new(SimDisk::new());
    let store = options(&disk, Durability::Process).open(root()).unwrap();
    let mut input = Vec::new();
    let rows = 60_000u64;
    for n in 0..rows {
        let day = 1 + n * 3 / rows;
        let text = "y".repeat(50);
        let time = format!("2025-06-0{day}T00:00:00Z");
        let line = format!(r#"{{"_time":"{time}","app":"a","n":{n},"_msg":"{text}"}}"#);
        input.extend_from_slice(line.as_bytes());
        input.push(b'\n');
        if n % 20_000 == 7 {
            input.extend_from_slice(b"not json\n\n");
        }
    }
    let ingest = ingest(&store);
    let report = ingest.ndjson(input.as_slice()).unwrap();
    assert_eq!((report.accepted, report.rejected()), (rows, 3), "{report}");
    let all: Vec<u64> = (0..rows).collect();
    assert_eq!(numbers(&store), all);
    drop(ingest);
    store.close().unwrap();
    let store = options(&disk, Durability::Process).open(root()).unwrap();
    assert_eq!(numbers(&store), all);
}

/// Gives its pieces one by one, as a pipe does, and looks at the store before each.
struct Pipe<'a> {
    pieces: Vec<&'static [u8]>,
    store: &'a Store,
    seen: Vec<usize>,
}

impl std::io::Read for Pipe<'_> {
    fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
        self.seen.push(numbers(self.store).len());
        if self.pieces.is_empty() {
            return Ok(0);
        }
        let piece = self.pieces.remove(0);
        buf[..piece.len()].copy_from_slice(piece);
        Ok(piece.len())
    }
}

#[test]
fn lines_of_a_pipe_are_there_as_they_come() {
    let disk = Arc::new(SimDisk::new());
    let store = options(&disk, Durability::Process).open(root()).unwrap();
    let pieces: Vec<&'static [u8]> =
        vec![b"{\"n\":1}\n{\"n\"", b":2}", b"\n", b"bad\n{\"n\":3}\n", b"{\"n\":4}"];
    let mut pipe = Pipe { pieces, store: &store, seen: Vec::new() };
    let report = ingest(&store).ndjson(&mut pipe).unwrap();
    assert_eq!(pipe.seen, [0, 1, 1, 2, 3, 3]);
    assert_eq!((report.accepted, report.rejected()), (4, 1));
    let (_, rejected) = report.rejections().next().unwrap();
    assert_eq!(rejected.examples[0].line, 3, "lines are counted over all pieces");
    assert_eq!(numbers(&store), [1, 2, 3, 4]);
}
