//! What `durable_sequence` calls durable is there after any crash, and nothing waits in vain.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::*;
use crate::io::{CrashModel, Fault};
use crate::store::workers::Timer;

/// Acknowledged rows by sequence, and what was called durable.
#[derive(Debug, Default)]
struct Told {
    rows: BTreeMap<u64, u64>,
    durable: u64,
    next: u64,
}

impl Told {
    fn acknowledged(&mut self, numbers: std::ops::Range<u64>, last_sequence: u64) {
        let first = last_sequence + 1 - (numbers.end - numbers.start);
        self.rows.extend((first..).zip(numbers));
    }

    /// Asks the store; the answer never falls.
    fn ask(&mut self, store: &Store) {
        let durable = store.durable_sequence();
        assert!(durable >= self.durable, "{durable} after {}", self.durable);
        self.durable = durable;
    }

    fn must_be_there(&self) -> impl Iterator<Item = u64> + '_ {
        self.rows.range(..=self.durable).map(|(_, n)| *n)
    }
}

/// A life that asks after every step; which steps follows from `seed`.
fn live(disk: &Arc<SimDisk>, durability: Durability, seed: u64, told: &mut Told) -> Result<()> {
    let store = options(disk, durability).seal_bytes(3_000).open(root())?;
    let ingest = ingest(&store);
    let mut timer = Timer::default();
    told.ask(&store);
    for i in 0..9u64 {
        let numbers = told.next..told.next + 10;
        told.next += 10;
        match (seed + i) % 9 {
            4 => {
                // A bulk cut that lands behind a batch appended meanwhile.
                let reserved = store.core().reserve_bulk(10)?;
                let between = told.next..told.next + 10;
                told.next += 10;
                let last = ingest.append_batch(batch(between.clone()))?.last_sequence;
                told.acknowledged(between, last);
                told.ask(&store);
                assert!(store.durable_sequence() < reserved.lo);
                let hi = reserved.hi;
                store.core().write_bulk(reserved, vec![rows(numbers.clone())])?.list()?;
                told.acknowledged(numbers, hi);
            }
            _ => {
                let last = ingest.append_batch(batch(numbers.clone()))?.last_sequence;
                told.acknowledged(numbers, last);
                if durability == Durability::Sync {
                    told.ask(&store);
                    assert_eq!(told.durable, last, "an acknowledged row is durable");
                }
            }
        }
        told.ask(&store);
        match (seed * 7 + i * 5) % 11 {
            0 | 1 => {
                let through = store.sync()?;
                let last = told.rows.keys().next_back().copied().unwrap_or(0);
                assert_eq!(through, last, "everything acknowledged is durable after a sync");
            }
            2 => drop(store.flush()?),
            3 => drop(store.compact()?),
            4 => store.core().tick(&mut timer),
            _ => {}
        }
        told.ask(&store);
    }
    drop(ingest);
    store.close()
}

fn check(after: &Arc<SimDisk>, told: &Told) -> Vec<u64> {
    let store = options(after, Durability::Process).open(root()).unwrap();
    let there = numbers(&store);
    let missing = told.must_be_there().find(|n| there.binary_search(n).is_err());
    assert!(missing.is_none(), "row {missing:?} of {}: {}", told.durable, store.open_report());
    assert!(there.windows(2).all(|w| w[0] < w[1]), "a row is there twice");
    there
}

/// Each operation of a life is the last one, under one crash model after the other; half of the
/// lives follow one that a killed process left in the cache of the system.
#[test]
fn what_is_called_durable_survives_any_crash() {
    let models = CrashModel::all();
    let all = super::crash::every_operation();
    let mut tried = 0;
    for (seed, durability) in
        (0u64..).zip([Durability::Process, Durability::Sync, Durability::Buffered])
    {
        for inherit in [false, true] {
            let begin = || {
                let mut disk = Arc::new(SimDisk::new());
                let mut told = Told::default();
                if inherit {
                    // Appended and not flushed: only the cache has it.
                    let store = options(&disk, Durability::Process).seal_bytes(1 << 20);
                    let store = store.open(root()).unwrap();
                    let last = ingest(&store).append_batch(batch(0..10)).unwrap().last_sequence;
                    told.acknowledged(0..10, last);
                    told.next = 10;
                    disk = Arc::new(disk.kill());
                }
                (disk, told)
            };
            let (disk, mut told) = begin();
            let first = disk.ops();
            live(&disk, durability, seed, &mut told).unwrap();
            let ops = disk.ops();
            for (i, at) in (first..ops).enumerate() {
                let chosen: Vec<CrashModel> = if all {
                    models.clone()
                } else {
                    vec![models[(i * 5 + usize::from(inherit)) % models.len()]]
                };
                for model in chosen {
                    let (disk, mut told) = begin();
                    disk.fail_once(at, Fault::Crash);
                    let context = format!("{durability:?} {inherit} {model:?} at {at}");
                    let _ = live(&disk, durability, seed, &mut told);
                    let after = Arc::new(disk.crash(model, at));
                    let checked = catch_unwind(AssertUnwindSafe(|| check(&after, &told)));
                    assert!(checked.is_ok(), "{context}");
                    tried += 1;
                }
            }
        }
    }
    assert!(tried > 500, "{tried} crashes");
}

#[test]
fn many_producers_share_syncs() {
    let disk = Arc::new(SimDisk::new());
    let store = options(&disk, Durability::Sync).seal_bytes(1 << 20).open(root()).unwrap();
    std::thread::scope(|scope| {
        for t in 0..4u64 {
            let store = &store;
            scope.spawn(move || {
                let ingest = ingest(store);
                for i in 0..50 {
                    let n = t * 1_000 + i;
                    let last = ingest.append_batch(batch(n..n + 1)).unwrap().last_sequence;
                    assert!(store.durable_sequence() >= last);
                }
            });
        }
    });
    assert_eq!(numbers(&store).len(), 200);
    assert!(store.core().commit.syncs() <= 200);
}

/// Whoever waits when a sync fails is told, and nothing is taken after it.
#[test]
fn a_failed_sync_stops_all_promises() {
    let disk = Arc::new(SimDisk::new());
    let store = options(&disk, Durability::Sync).open(root()).unwrap();
    let first = ingest(&store);
    let last = first.append_batch(batch(0..10)).unwrap().last_sequence;
    disk.fail_next(crate::io::OpKind::Sync, "JOURNAL", Fault::Io);
    assert!(matches!(first.append_batch(batch(10..20)), Err(Error::Io { action: "sync", .. })));
    assert!(matches!(first.append_batch(batch(20..30)), Err(Error::Poisoned { .. })));
    assert!(matches!(store.sync(), Err(Error::Poisoned { .. })));
    assert_eq!(store.durable_sequence(), last);
    // Queries go on, and a flush brings what is in memory to safety.
    assert_eq!(numbers(&store), (0..20).collect::<Vec<_>>());
    store.flush().unwrap();
    assert_eq!(store.durable_sequence(), last + 10);
    let after = Arc::new(disk.crash(CrashModel::LOSE_ALL, 1));
    drop(first);
    let store = options(&after, Durability::Sync).open(root()).unwrap();
    assert_eq!(numbers(&store), (0..20).collect::<Vec<_>>());
}
