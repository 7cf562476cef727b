//! Real processes, killed at random moments: what `ingest --ack` has printed is there afterwards.
//!
//! `LOGLITH_KILLS` says how often (default 20), `LOGLITH_KILL_SEED` with which seed to begin; a
//! failure names the seed of its life. Each life has other options: durability, sizes of what is
//! written at once, memory and flush interval, lines of a pipe or a large file, or a compaction.

#![cfg(feature = "cli")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "a test fails by panicking"
)]

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use loglith::{Error, Store};

/// A store begins anew after so many lives, so that checks stay quick.
const LIVES_PER_STORE: u64 = 20;
/// 2025-06-01; rows are 10 ms apart in groups that share a time, 4,000 to a day.
const FIRST_DAY: u64 = 1_748_736_000;

/// A small generator of numbers (xorshift64*).
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % n
    }

    fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize]
    }
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Lines that say their numbers. Times rise with them, in groups of equal ones.
fn lines(numbers: Range<u64>, padding: &str) -> String {
    let mut out = String::new();
    for n in numbers {
        let (day, second) = (n / 4_000, n % 4_000 / 7);
        let time = FIRST_DAY + day * 86_400 + second;
        out.push_str(&format!(
            "{{\"_time\":{time},\"app\":\"a\",\"n\":{n},\"_msg\":\"row {n}{padding}\"}}\n"
        ));
    }
    out
}

/// What is known of a store.
#[derive(Debug, Default)]
struct Known {
    /// Rows that were there once: they must be there.
    there: BTreeSet<u64>,
    /// Numbers below this one were sent.
    sent: u64,
}

/// How a life went.
struct Life {
    started: Range<u64>,
    /// So many of the first rows of the life were acknowledged for good.
    acknowledged: u64,
}

fn start(args: &[String]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_loglith"))
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Rows as a reader beside the writer sees them: none twice, none of the safe ones missing.
fn look(reader: &Store, safe: u64) {
    let mut rows = reader.query("* | stats count() as c, count_uniq(n) as u").unwrap();
    let row = rows.next().unwrap().unwrap();
    let (count, unique): (u64, u64) =
        (row.get("c").parse().unwrap(), row.get("u").parse().unwrap());
    assert_eq!(count, unique, "a row is seen twice");
    assert!(count >= safe, "a reader sees {count} rows of {safe}");
}

/// Looks again and again until told to stop.
fn look_on(store: &Path, before: u64, acknowledged: &AtomicU64, stop: &AtomicBool) {
    let reader = loop {
        match Store::open_read_only(store) {
            Ok(reader) => break reader,
            Err(Error::NotAStore { .. }) if before == 0 => {}
            Err(e) => panic!("{e}"),
        }
        if stop.load(Ordering::Acquire) {
            return;
        }
    };
    while !stop.load(Ordering::Acquire) {
        look(&reader, before + acknowledged.load(Ordering::Acquire));
    }
}

fn ingest(random: &mut Random, store: &Path, known: &mut Known) -> Life {
    let durability = random.pick(&["process", "process", "sync", "buffered"]);
    let bulk = random.below(8) == 0;
    let mut args: Vec<String> = vec!["ingest".into(), "--ack".into()];
    args.extend(["--store".into(), store.to_str().unwrap().into()]);
    args.extend(["--stream-fields".into(), "app".into()]);
    args.extend(["--durability".into(), durability.into()]);
    let memory = random.pick(&[8 << 20, 16 << 20, 256 << 20]);
    args.extend(["--memory-limit".into(), memory.to_string()]);
    args.extend(["--flush-interval".into(), random.pick(&["1ms", "100ms", "60s"]).into()]);
    let first = known.sent;
    let padding = "x".repeat(random.pick(&[0, 20, 300]));
    let file = store.with_file_name("large.json");
    if bulk {
        known.sent += 22_000;
        let text = lines(first..known.sent, &"x".repeat(300));
        std::fs::write(&file, text).unwrap();
        args.push(file.to_str().unwrap().into());
    } else {
        args.push("-".into());
    }
    let mut child = start(&args);
    let mut input = child.stdin.take().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let (told, durable_told) = (AtomicU64::new(0), AtomicU64::new(0));
    let promised = bulk || durability != "buffered";
    let stop = AtomicBool::new(false);
    let piece = random.pick(&[1, 10, 100, 2_000]);
    let pause = random.pick(&[0, 0, 3]);
    let age = Duration::from_millis(random.pick(&[0, 5, 20, 60, 150]) + random.below(40));
    let before = known.there.len() as u64;
    let sent = AtomicU64::new(known.sent);
    std::thread::scope(|scope| {
        if !bulk {
            scope.spawn(|| {
                loop {
                    let from = sent.fetch_add(piece, Ordering::AcqRel);
                    if input.write_all(lines(from..from + piece, &padding).as_bytes()).is_err() {
                        return;
                    }
                    std::thread::sleep(Duration::from_millis(pause));
                }
            });
        }
        scope.spawn(|| {
            let mut line = String::new();
            // A line without its end was not told.
            while output.read_line(&mut line).unwrap() > 0 && line.ends_with('\n') {
                let rows: u64 = line.trim().parse().unwrap();
                assert!(told.swap(rows, Ordering::AcqRel) < rows, "acknowledgements rise");
                durable_told.store(if promised { rows } else { 0 }, Ordering::Release);
                line.clear();
            }
        });
        let looking = scope.spawn(|| look_on(store, before, &durable_told, &stop));
        let begun = Instant::now();
        while begun.elapsed() < age && !looking.is_finished() {
            std::thread::sleep(Duration::from_millis(1));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        stop.store(true, Ordering::Release);
    });
    known.sent = sent.into_inner();
    let acknowledged = if promised { told.into_inner() } else { 0 };
    assert!(first + acknowledged <= known.sent);
    Life { started: first..known.sent, acknowledged }
}

fn compact(random: &mut Random, store: &Path, known: &Known) -> Life {
    let args = ["compact", "--store", store.to_str().unwrap()].map(String::from);
    let mut child = start(&args);
    std::thread::sleep(Duration::from_millis(random.below(120)));
    child.kill().unwrap();
    child.wait().unwrap();
    Life { started: known.sent..known.sent, acknowledged: 0 }
}

/// What must hold after a kill.
fn check(store: &Path, known: &mut Known, life: &Life) {
    let reader = match Store::open_read_only(store) {
        Err(Error::NotAStore { .. }) if life.acknowledged == 0 && known.there.is_empty() => return,
        opened => opened.unwrap(),
    };
    assert!(reader.open_report().damage.is_empty(), "{}", reader.open_report());
    let rows = reader.query("* | limit 100000000 | fields n").unwrap();
    let newest_first: Vec<u64> = rows.map(|row| row.unwrap().get("n").parse().unwrap()).collect();
    let falling = newest_first.windows(2).find(|w| w[0] <= w[1]);
    assert!(falling.is_none(), "rows {falling:?} are doubled or out of order");
    let there: BTreeSet<u64> = newest_first.into_iter().collect();
    let must = known.there.iter().copied();
    let acknowledged = life.started.start..life.started.start + life.acknowledged;
    let missing = must.chain(acknowledged).find(|n| !there.contains(n));
    assert!(missing.is_none(), "row {missing:?} is missing of {:?}", life.started);
    assert!(there.last().is_none_or(|n| *n < known.sent), "a row was never sent");
    known.there = there;
}

fn verify(store: &Path) {
    if let Ok(store) = Store::open(store) {
        assert!(store.open_report().damage.is_empty(), "{}", store.open_report());
        let report = store.verify(&mut |_| true).unwrap();
        assert!(report.is_clean(), "{report}");
        store.close().unwrap();
    }
}

#[test]
fn nothing_acknowledged_is_lost_by_kills() {
    let kills = number("LOGLITH_KILLS").unwrap_or(20);
    let first = number("LOGLITH_KILL_SEED").unwrap_or(1);
    let (mut dir, mut known) = (tempfile::tempdir().unwrap(), Known::default());
    let (mut acknowledged, mut rows) = (0, 0);
    for seed in first..first + kills {
        if (seed - first).is_multiple_of(LIVES_PER_STORE) {
            rows += known.there.len();
            verify(&dir.path().join("store"));
            (dir, known) = (tempfile::tempdir().unwrap(), Known::default());
        }
        let store: PathBuf = dir.path().join("store");
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let life = if !known.there.is_empty() && random.below(8) == 0 {
                compact(&mut random, &store, &known)
            } else {
                ingest(&mut random, &store, &mut known)
            };
            check(&store, &mut known, &life);
            life.acknowledged
        }));
        match result {
            Ok(more) => acknowledged += more,
            Err(_) => {
                let kept = dir.keep();
                panic!(
                    "LOGLITH_KILL_SEED={seed}, {kills} from {first}; the store is kept in {kept:?}"
                );
            }
        }
    }
    verify(&dir.path().join("store"));
    rows += known.there.len();
    println!("{kills} kills from seed {first}: {acknowledged} rows acknowledged, {rows} there");
    assert!(acknowledged > 0 || kills < 5);
}
