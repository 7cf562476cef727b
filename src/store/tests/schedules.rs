//! Schedules: shuttle decides at each lock which thread goes on.
//!
//! ```text
//! RUSTFLAGS="--cfg loglith_shuttle" cargo test --lib --target-dir target/shuttle schedules
//! ```
//!
//! `LOGLITH_SCHEDULES` is the number of schedules of each test, `LOGLITH_SCHEDULES_SEED` the seed
//! of the first; a failure prints both its seed and the schedule itself.

use std::collections::BTreeSet;

use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::{Config, Runner};

use super::*;
use crate::io::CrashModel;
use crate::sync::{Mutex, thread};

/// Runs `life` under so many schedules as were asked for: half of them at random, half with few
/// preemptions at places chosen at random (Burckhardt et al., ASPLOS 2010), which find what needs
/// a thread to stand still for long.
fn explore(life: impl Fn() + Send + Sync + 'static) {
    let number = |name: &str| std::env::var(name).ok().and_then(|v| v.parse().ok());
    let count = number("LOGLITH_SCHEDULES").unwrap_or(200);
    let seed = number("LOGLITH_SCHEDULES_SEED").unwrap_or_else(rand_seed);
    println!("LOGLITH_SCHEDULES_SEED={seed}");
    let half = usize::try_from(count).unwrap() / 2;
    let life = Arc::new(life);
    let config = || {
        let mut config = Config::new();
        config.stack_size = 4 << 20;
        config.max_steps = shuttle::MaxSteps::FailAfter(3_000_000);
        config
    };
    let again = Arc::clone(&life);
    Runner::new(RandomScheduler::new_from_seed(seed, half.max(1)), config()).run(move || again());
    Runner::new(PctScheduler::new_from_seed(seed, 3, half.max(1)), config()).run(move || life());
}

fn rand_seed() -> u64 {
    use std::hash::{BuildHasher, Hasher};
    std::collections::hash_map::RandomState::new().build_hasher().finish()
}

/// What producers were told is in the store: batch by batch, each of two rows.
#[derive(Default)]
struct Acked(Mutex<BTreeSet<u64>>);

impl Acked {
    fn now(&self) -> BTreeSet<u64> {
        self.0.lock().clone()
    }
}

/// A thread that appends `batches` batches of two rows, with numbers from `from` on, until the
/// store is closed.
fn produce(store: &Store, acked: &Arc<Acked>, from: u64, batches: u64) -> thread::JoinHandle<()> {
    let (store, acked) = (store.clone(), Arc::clone(acked));
    thread::spawn(move || {
        let Ok(ingest) = store.ingest(IngestOptions::new().stream_fields(["app"])) else { return };
        for i in 0..batches {
            let numbers = from + 2 * i..from + 2 * i + 2;
            match ingest.append_batch(batch(numbers.clone())) {
                Ok(_) => acked.0.lock().extend(numbers),
                Err(Error::Closed | Error::Poisoned { .. } | Error::Io { .. }) => return,
                Err(e) => panic!("{e}"),
            }
        }
    })
}

fn run(f: impl FnOnce() + Send + 'static) -> thread::JoinHandle<()> {
    thread::spawn(f)
}

/// Every row that was acknowledged before the look is there, none twice, no batch in half.
fn check_view(store: &Store, before: &BTreeSet<u64>) -> Result<()> {
    let seen = try_numbers(store)?;
    let set: BTreeSet<u64> = seen.iter().copied().collect();
    assert_eq!(set.len(), seen.len(), "rows twice: {seen:?}");
    assert!(before.is_subset(&set), "acknowledged {before:?}, seen {set:?}");
    assert!(set.iter().all(|n| set.contains(&(n ^ 1))), "half a batch: {set:?}");
    Ok(())
}

fn open(disk: &Arc<SimDisk>, durability: Durability) -> Store {
    options(disk, durability).seal_bytes(400).background(true).open(root()).unwrap()
}

/// Ends `store`, opens it anew, and finds exactly what was acknowledged, and no stray file.
fn check_end(disk: &Arc<SimDisk>, store: Store, acked: &Acked) {
    store.close().unwrap();
    let store = options(disk, Durability::Process).open(root()).unwrap();
    assert_eq!(numbers(&store), acked.now().into_iter().collect::<Vec<_>>());
    check_files(disk, &store);
}

#[test]
fn schedules_of_appends_flushes_merges_and_queries() {
    explore(|| {
        let disk = Arc::new(SimDisk::new());
        let store = open(&disk, Durability::Process);
        let acked = Arc::new(Acked::default());
        let mut threads = vec![produce(&store, &acked, 0, 3), produce(&store, &acked, 1_000, 3)];
        for compact in [false, true] {
            let store = store.clone();
            threads.push(run(move || {
                store.flush().unwrap();
                if compact {
                    store.compact().unwrap();
                }
            }));
        }
        let (reader, told) = (store.clone(), Arc::clone(&acked));
        threads.push(run(move || {
            for _ in 0..3 {
                check_view(&reader, &told.now()).unwrap();
            }
        }));
        threads.into_iter().for_each(|t| t.join().unwrap());
        check_view(&store, &acked.now()).unwrap();
        assert_eq!(acked.now().len(), 12);
        check_end(&disk, store, &acked);
    });
}

#[test]
fn schedules_of_a_close_beside_everything() {
    explore(|| {
        let disk = Arc::new(SimDisk::new());
        let store = open(&disk, Durability::Process);
        let acked = Arc::new(Acked::default());
        let may_be_closed = |r: Result<()>| assert!(matches!(r, Ok(()) | Err(Error::Closed)));
        let mut threads = vec![produce(&store, &acked, 0, 4), produce(&store, &acked, 1_000, 4)];
        let flusher = store.clone();
        threads.push(run(move || may_be_closed(flusher.flush().map(drop))));
        let merger = store.clone();
        threads.push(run(move || may_be_closed(merger.compact().map(drop))));
        let (reader, told) = (store.clone(), Arc::clone(&acked));
        threads.push(run(move || may_be_closed(check_view(&reader, &told.now()))));
        let closer = store.clone();
        threads.push(run(move || closer.close().unwrap()));
        threads.into_iter().for_each(|t| t.join().unwrap());
        check_end(&disk, store, &acked);
    });
}

#[test]
fn schedules_of_a_full_buffer() {
    explore(|| {
        let disk = Arc::new(SimDisk::new());
        let mut options = options(&disk, Durability::Process).background(true);
        // Each batch has to wait until those before it are in files.
        options.memory_limit_bytes = 4;
        let store = options.open(root()).unwrap();
        let acked = Arc::new(Acked::default());
        let threads = [produce(&store, &acked, 0, 2), produce(&store, &acked, 1_000, 2)];
        threads.into_iter().for_each(|t| t.join().unwrap());
        assert_eq!(acked.now().len(), 8);
        check_end(&disk, store, &acked);
    });
}

#[test]
fn schedules_of_synced_appends_and_a_loss_of_power() {
    explore(|| {
        let disk = Arc::new(SimDisk::new());
        let store = open(&disk, Durability::Sync);
        let acked = Arc::new(Acked::default());
        let mut threads = vec![produce(&store, &acked, 0, 3), produce(&store, &acked, 1_000, 3)];
        let flusher = store.clone();
        threads.push(run(move || drop(flusher.flush())));
        let (dying, told) = (Arc::clone(&disk), Arc::clone(&acked));
        let crash = run(move || {
            thread::yield_now();
            let promised = told.now();
            let model = CrashModel::all()[promised.len() % CrashModel::all().len()];
            let left = Arc::new(dying.crash(model, 7));
            let store = options(&left, Durability::Process).open(root()).unwrap();
            check_view(&store, &promised).unwrap();
            check_files(&left, &store);
        });
        crash.join().unwrap();
        threads.into_iter().for_each(|t| t.join().unwrap());
    });
}
