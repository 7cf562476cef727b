//! A store against plain vectors: random lives on the simulated disk, every kind of step.
//!
//! A run is a seed. `LOGLITH_MODEL_RUNS` says how many (default 200), `LOGLITH_MODEL_SEED` with
//! which to begin; a failure names its seed and step.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::*;
use crate::io::CrashModel;
use crate::query::Rows;
use crate::store::workers::Timer;

/// Steps of a run.
const STEPS: u64 = 30;

/// A small generator of numbers (xorshift64*).
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// A number below `n`.
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % n
    }
}

/// A row as the model keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Plain {
    time: i64,
    fields: BTreeMap<&'static str, String>,
}

const FIELDS: [&str; 6] = ["app", "n", "level", "_msg", "big", "rare"];

impl Plain {
    /// A row that says its number `n`: few streams, ties in time, days around midnight.
    fn random(random: &mut Random, n: u64) -> Plain {
        let day = random.below(3).cast_signed() * DAY;
        let time = match random.below(4) {
            0 => day,
            1 => day + DAY - 1,
            _ => day + random.below(5).cast_signed() * 1_000_000_000,
        };
        let mut fields = BTreeMap::from([("n", n.to_string())]);
        let mut put = |name, value: String| {
            if !value.is_empty() {
                fields.insert(name, value);
            }
        };
        put("app", ["", "web", "db", "a \"b\""][random.below(4) as usize].to_owned());
        put("level", ["info", "warn", "ERROR"][random.below(3) as usize].to_owned());
        put("_msg", format!("message {} of the run", random.below(7)));
        if random.below(8) == 0 {
            put("big", "x".repeat(random.below(400) as usize));
        }
        if random.below(6) == 0 {
            put("rare", ["007", "1.10", "-0", "1e3", "  "][random.below(5) as usize].to_owned());
        }
        Plain { time, fields }
    }

    fn get(&self, name: &str) -> &str {
        self.fields.get(name).map_or("", String::as_str)
    }

    fn json(&self) -> String {
        let time = Timestamp::from_nanos(self.time);
        let fields = self.fields.iter().map(|(k, v)| format!(",{k:?}:{v:?}"));
        format!("{{\"_time\":\"{time}\"{}}}\n", fields.collect::<String>())
    }
}

/// The rows that a query gives, by number.
fn collect(rows: Rows) -> BTreeMap<u64, Plain> {
    let mut out = BTreeMap::new();
    for row in rows {
        let row = row.unwrap();
        let time = Timestamp::parse(row.get("_time")).unwrap();
        let present = FIELDS.iter().map(|f| (*f, row.get(f).to_owned()));
        let fields = present.filter(|(_, value)| !value.is_empty()).collect();
        let n = row.get("n").parse().unwrap();
        let before = out.insert(n, Plain { time: time.as_nanos(), fields });
        assert!(before.is_none(), "row {n} is there twice");
    }
    out
}

/// A life, or several.
struct Run {
    random: Random,
    disk: Arc<SimDisk>,
    clock: Arc<ManualClock>,
    timer: Timer,
    store: Option<Store>,
    ingest: Option<Ingest>,
    /// What was acknowledged, in that order: the number of a row is its place.
    rows: Vec<Plain>,
    /// Queries that were asked and not read, with the number of rows then.
    held: Vec<(Rows, usize)>,
    trace: Vec<&'static str>,
}

impl Run {
    fn new(seed: u64) -> Run {
        let mut run = Run {
            random: Random::new(seed),
            disk: Arc::new(SimDisk::new()),
            clock: Arc::new(ManualClock::new(Timestamp::from_nanos(DAY))),
            timer: Timer::default(),
            store: None,
            ingest: None,
            rows: Vec::new(),
            held: Vec::new(),
            trace: Vec::new(),
        };
        run.open();
        run
    }

    fn open(&mut self) {
        let sizes = [1, 500, 3_000, 1 << 20];
        let store = options(&self.disk, Durability::Process)
            .clock(Arc::clone(&self.clock) as Arc<dyn crate::io::Clock>)
            .seal_bytes(sizes[self.random.below(4) as usize])
            .open(root())
            .unwrap();
        assert!(store.open_report().damage.is_empty(), "{}", store.open_report());
        check_files(&self.disk, &store);
        let chunk_bytes = [300, 2_000, 1 << 20][self.random.below(3) as usize];
        self.ingest = Some(ingest(&store).with_chunk_bytes(chunk_bytes));
        self.store = Some(store);
        self.timer = Timer::default();
    }

    fn store(&self) -> &Store {
        self.store.as_ref().unwrap()
    }

    fn ingest(&self) -> &Ingest {
        self.ingest.as_ref().unwrap()
    }

    fn new_rows(&mut self, most: u64) -> Vec<Plain> {
        let first = self.rows.len() as u64;
        let count = 1 + self.random.below(most);
        let rows: Vec<Plain> =
            (first..first + count).map(|n| Plain::random(&mut self.random, n)).collect();
        self.rows.extend(rows.iter().cloned());
        rows
    }

    fn step(&mut self) {
        let step = self.random.below(30);
        let name = match step {
            0..=3 => self.append(),
            4..=8 => self.append_batch(),
            9..=10 => self.ndjson(),
            11..=12 => self.bulk(),
            13..=14 => self.flush(),
            15..=17 => self.merge(),
            18 => self.compact(),
            19..=22 => self.query(),
            23..=24 => self.hold(),
            25 => self.release(),
            26..=27 => self.time_passes(),
            28 => self.close(),
            _ => self.crash(),
        };
        self.trace.push(name);
    }

    fn append(&mut self) -> &'static str {
        for row in self.new_rows(2) {
            let mut entry = crate::Entry::new().time(Timestamp::from_nanos(row.time));
            for (name, value) in &row.fields {
                entry = entry.field(name, value.as_str());
            }
            self.ingest().append(entry).unwrap();
        }
        "append"
    }

    fn append_batch(&mut self) -> &'static str {
        let mut batch = Batch::new();
        for row in self.new_rows(30) {
            let mut entry = batch.entry().time(Timestamp::from_nanos(row.time));
            for (name, value) in &row.fields {
                entry = entry.field(name, value.as_str());
            }
        }
        let count = batch.len() as u64;
        let report = self.ingest().append_batch(batch).unwrap();
        assert_eq!(report.accepted, count);
        "append_batch"
    }

    fn lines(&mut self) -> String {
        self.new_rows(40).iter().map(Plain::json).collect()
    }

    fn ndjson(&mut self) -> &'static str {
        let lines = self.lines();
        let report = self.ingest().ndjson(lines.as_bytes()).unwrap();
        assert_eq!(report.rejected(), 0, "{report}");
        "ndjson"
    }

    /// As [`ndjson`](Run::ndjson) does it with large inputs.
    fn bulk(&mut self) -> &'static str {
        let lines = self.lines();
        let tell = |_: &crate::ingest::IngestReport| ();
        let acks = crate::store::acks::Acks::new(&tell);
        self.ingest().bulk(Vec::new(), lines.as_bytes(), &acks).unwrap();
        "bulk"
    }

    fn flush(&mut self) -> &'static str {
        self.store().flush().unwrap();
        assert_eq!(self.store().stats().memory_parts, 0);
        "flush"
    }

    fn merge(&mut self) -> &'static str {
        self.store().core().merge_in_background().unwrap();
        "merge"
    }

    fn compact(&mut self) -> &'static str {
        let report = self.store().compact().unwrap();
        assert_eq!(report.rows_stored, self.rows.len() as u64);
        let days = self.store().stats().days;
        // Neighbours of cuts in flight stay apart; there are none now.
        assert_eq!(report.parts_stored, days, "small parts of a day become one");
        let verified = self.store().verify(&mut |_| true).unwrap();
        assert!(verified.is_clean(), "{verified}");
        "compact"
    }

    fn want(&self, through: usize, keep: impl Fn(&Plain) -> bool) -> BTreeMap<u64, Plain> {
        let rows = (0..).zip(&self.rows).take(through);
        rows.filter(|(_, row)| keep(row)).map(|(n, row)| (n, row.clone())).collect()
    }

    fn query(&mut self) -> &'static str {
        let through = self.rows.len();
        let level = ["info", "warn", "ERROR", "none"][self.random.below(4) as usize];
        let from = self.random.below(3).cast_signed() * DAY;
        let ask = |text: &str| self.store().query(text).unwrap();
        let got = collect(ask(&format!("level:={level}")));
        assert!(got == self.want(through, |row| row.get("level") == level), "level {level}");
        let day = Timestamp::from_nanos(from).to_string();
        let got = collect(ask(&format!("_time:{}", day.split('T').next().unwrap())));
        let inside = |row: &Plain| (from..from + DAY).contains(&row.time);
        assert!(got == self.want(through, inside), "day {day}");
        let got = collect(ask("rare:* big:\"\""));
        let wanted = |row: &Plain| !row.get("rare").is_empty() && row.get("big").is_empty();
        assert!(got == self.want(through, wanted), "rare values");
        self.check_all();
        self.check_order();
        "query"
    }

    /// Every row, and their number.
    fn check_all(&self) {
        let got = collect(self.store().query("*").unwrap());
        let want = self.want(self.rows.len(), |_| true);
        let lost: Vec<_> = want.keys().filter(|n| !got.contains_key(n)).collect();
        assert!(lost.is_empty(), "rows {lost:?} of {} are lost", want.len());
        assert!(got == want, "a row has changed");
        let mut count = self.store().query("* | stats count() as n").unwrap();
        let count = count.next().unwrap().unwrap().get("n").parse::<usize>().unwrap();
        assert_eq!(count, self.rows.len());
    }

    /// The order of appends among rows of one stream and time, newest first.
    fn check_order(&self) {
        let rows = self.store().query("app:=web | limit 1000000").unwrap();
        let mut got: Vec<(Timestamp, u64)> = Vec::new();
        for row in rows {
            let row = row.unwrap();
            let time = Timestamp::parse(row.get("_time")).unwrap();
            got.push((time, row.get("n").parse().unwrap()));
        }
        let mut want = got.clone();
        want.sort_unstable();
        want.reverse();
        assert_eq!(got, want, "newest first");
    }

    /// Asks a query whose rows are read later.
    fn hold(&mut self) -> &'static str {
        if self.held.len() < 3 {
            let rows = self.store().query("*").unwrap();
            self.held.push((rows, self.rows.len()));
        }
        "hold"
    }

    /// Reads the rows of a query that was asked some steps ago.
    fn release(&mut self) -> &'static str {
        for (rows, through) in std::mem::take(&mut self.held) {
            assert!(collect(rows) == self.want(through, |_| true), "held rows have changed");
        }
        "release"
    }

    fn time_passes(&mut self) -> &'static str {
        match self.random.below(3) {
            0 => self.clock.advance(Duration::from_millis(300)),
            1 => self.clock.advance(Duration::from_secs(70)),
            _ => {
                let day = self.random.below(4).cast_signed() * DAY;
                self.clock.jump_to(Timestamp::from_nanos(day));
                self.clock.advance(Duration::from_millis(1_100));
            }
        }
        self.store.as_ref().unwrap().core().tick(&mut self.timer);
        "time passes"
    }

    fn close(&mut self) -> &'static str {
        self.release();
        self.ingest = None;
        self.store.take().unwrap().close().unwrap();
        self.open();
        assert!(self.store().open_report().is_clean(), "{}", self.store().open_report());
        assert_eq!(self.store().open_report().replayed_rows, 0);
        self.check_all();
        "close"
    }

    /// The process dies; the disk keeps what it was given.
    fn crash(&mut self) -> &'static str {
        let after = self.disk.crash(CrashModel::KEEP_ALL, self.random.0);
        // What the dead process held goes without touching the disk that lives on.
        self.held.clear();
        (self.ingest, self.store) = (None, None);
        self.disk = Arc::new(after);
        self.open();
        self.check_all();
        "crash"
    }
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn random_lives() {
    let first = number("LOGLITH_MODEL_SEED").unwrap_or(1);
    let runs = number("LOGLITH_MODEL_RUNS").unwrap_or(200);
    for seed in first..first + runs {
        let mut run = Run::new(seed);
        for step in 0..STEPS {
            let result = catch_unwind(AssertUnwindSafe(|| run.step()));
            assert!(result.is_ok(), "LOGLITH_MODEL_SEED={seed}, step {step} after {:?}", run.trace);
        }
        run.query();
        // What the life left behind may show at the next openings only.
        for _ in 0..2 {
            run.close();
        }
        let verified = run.store().verify(&mut |_| true).unwrap();
        assert!(verified.is_clean(), "LOGLITH_MODEL_SEED={seed}: {verified}");
    }
}
