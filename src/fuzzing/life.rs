//! Operations on a store on the simulated disk, against a plain list of rows.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use super::input::Input;
use crate::io::{Clock, CrashModel, Disk, ManualClock, SimDisk};
use crate::record::Timestamp;
use crate::{Batch, Durability, Ingest, IngestOptions, Options, Rows, Store};

const DAY: i64 = 86_400_000_000_000;
/// Operations of a life.
const STEPS_MAX: usize = 40;

/// The directory of every store.
pub(super) fn root() -> PathBuf {
    PathBuf::from("/store")
}

/// A store without threads and without a clock that moves.
pub(super) fn options(disk: &Arc<SimDisk>) -> Options {
    let clock = ManualClock::new(Timestamp::from_nanos(20_000 * DAY));
    Options::new()
        .disk(Arc::clone(disk) as Arc<dyn Disk>)
        .clock(Arc::new(clock) as Arc<dyn Clock>)
        .durability(Durability::Sync)
        .background(false)
}

/// Makes a store with two flushes and a merge, and closes it; the number of its rows.
pub(super) fn write_some_rows(disk: &Arc<SimDisk>) -> u64 {
    let mut life = Life::new(Arc::clone(disk), 1 << 20);
    let bytes = [9u8, 3, 7, 1, 12, 0, 5, 2, 200, 31, 4, 8, 77, 6, 1, 0, 13, 90, 2, 3];
    for _ in 0..2 {
        life.append_batch(&mut Input::new(&bytes));
        life.store().flush().expect("the disk is good");
    }
    life.store().compact().expect("the disk is good");
    let rows = life.rows.len() as u64;
    life.close();
    rows
}

/// A row as the model keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Plain {
    time: i64,
    fields: BTreeMap<&'static str, String>,
}

const FIELDS: [&str; 6] = ["app", "n", "level", "_msg", "same", "rare"];

impl Plain {
    /// A row that says its number: few streams, ties in time, days around midnight.
    fn new(input: &mut Input<'_>, n: usize) -> Plain {
        let (a, b) = (input.u8(), input.u8());
        let day = i64::from(a % 3) * DAY;
        let time = match a / 3 % 4 {
            0 => day,
            1 => day + DAY - 1,
            _ => day + i64::from(a / 12) * 1_000_000,
        };
        let mut fields = BTreeMap::from([("n", n.to_string())]);
        let mut put = |name, value: String| {
            if !value.is_empty() {
                fields.insert(name, value);
            }
        };
        put("app", ["", "web", "db", "a \"b\""][usize::from(b % 4)].to_owned());
        put("level", ["info", "warn", "ERROR"][usize::from(b / 4 % 3)].to_owned());
        put("_msg", format!("message {} of the life {}", b / 12, "x".repeat(usize::from(a / 4))));
        put("same", if b > 200 { String::new() } else { "the same".to_owned() });
        put("rare", ["", "", "007", "1.10", "-0", "  "][usize::from(a / 2 % 6)].to_owned());
        Plain { time, fields }
    }
}

struct Life {
    disk: Arc<SimDisk>,
    seal_bytes: usize,
    store: Option<Store>,
    ingest: Option<Ingest>,
    /// What was acknowledged, in that order: the number of a row is its place.
    rows: Vec<Plain>,
    /// Queries that were asked and not read, with the number of rows then.
    held: Vec<(Rows, usize)>,
}

/// Operations: which u8, then what it needs.
pub(super) fn run(input: &[u8]) {
    let mut input = Input::new(input);
    let seal_bytes = [1, 500, 3_000, 1 << 20][input.below(4)];
    let mut life = Life::new(Arc::new(SimDisk::new()), seal_bytes);
    for _ in 0..STEPS_MAX {
        if input.is_empty() {
            break;
        }
        life.step(&mut input);
    }
    life.check();
    life.release();
    life.close();
}

impl Life {
    fn new(disk: Arc<SimDisk>, seal_bytes: usize) -> Life {
        let (rows, held) = (Vec::new(), Vec::new());
        let mut life = Life { disk, seal_bytes, store: None, ingest: None, rows, held };
        life.open();
        life
    }

    fn open(&mut self) {
        let store = options(&self.disk).seal_bytes(self.seal_bytes).open(root());
        let store = store.expect("a store on a good disk opens");
        assert!(store.open_report().damage.is_empty(), "{}", store.open_report());
        let ingest = store.ingest(IngestOptions::new().stream_fields(["app"]));
        self.ingest = Some(ingest.expect("a store open for writing"));
        self.store = Some(store);
    }

    fn store(&self) -> &Store {
        self.store.as_ref().expect("the store is open")
    }

    fn ingest(&self) -> &Ingest {
        self.ingest.as_ref().expect("the store is open")
    }

    fn step(&mut self, input: &mut Input<'_>) {
        match input.below(12) {
            0..=2 => self.append_batch(input),
            3 => self.lines(input),
            4..=5 => drop(self.store().flush().expect("the disk is good")),
            6 => self.store().core().merge_in_background().expect("the disk is good"),
            7 => {
                let report = self.store().compact().expect("the disk is good");
                assert_eq!(report.rows_stored, self.rows.len() as u64, "rows stored");
                let verified = self.store().verify(&mut |_| true).expect("the disk is good");
                assert!(verified.is_clean(), "{verified}");
            }
            8 => self.check(),
            9 if self.held.len() < 3 => {
                let rows = self.store().query("*").expect("the query is LogsQL");
                self.held.push((rows, self.rows.len()));
            }
            9 => self.release(),
            10 => {
                self.release();
                self.close();
                self.open();
                assert_eq!(self.store().open_report().replayed_rows, 0, "a close leaves nothing");
            }
            _ => self.crash(input),
        }
    }

    fn new_rows(&mut self, input: &mut Input<'_>) -> Vec<Plain> {
        let count = 1 + input.below(9);
        let first = self.rows.len();
        let rows: Vec<Plain> = (first..first + count).map(|n| Plain::new(input, n)).collect();
        self.rows.extend(rows.iter().cloned());
        rows
    }

    fn append_batch(&mut self, input: &mut Input<'_>) {
        let mut batch = Batch::new();
        for row in self.new_rows(input) {
            let mut entry = batch.entry().time(Timestamp::from_nanos(row.time));
            for (name, value) in &row.fields {
                entry = entry.field(name, value.as_str());
            }
        }
        let count = batch.len() as u64;
        let report = self.ingest().append_batch(batch).expect("the disk is good");
        assert_eq!(report.accepted, count, "{report}");
    }

    fn lines(&mut self, input: &mut Input<'_>) {
        let line = |row: Plain| {
            let fields = row.fields.iter().map(|(k, v)| format!(",{k:?}:{v:?}"));
            let time = Timestamp::from_nanos(row.time);
            format!("{{\"_time\":\"{time}\"{}}}\n", fields.collect::<String>())
        };
        let text: String = self.new_rows(input).into_iter().map(line).collect();
        let report = self.ingest().ndjson(text.as_bytes()).expect("the disk is good");
        assert_eq!(report.rejected(), 0, "{report}");
    }

    /// Every row, and the order of appends among rows of one stream and time.
    fn check(&self) {
        let rows = self.store().query("*").expect("the query is LogsQL");
        assert!(collect(rows) == self.rows, "a row was lost or has changed");
        let rows = self.store().query("app:=web | limit 1000000").expect("the query is LogsQL");
        let mut got: Vec<(Timestamp, u64)> = Vec::new();
        for row in rows {
            let row = row.expect("the disk is good");
            let time = Timestamp::parse(row.get("_time")).expect("a time");
            got.push((time, row.get("n").parse().expect("a number")));
        }
        assert!(got.is_sorted_by(|a, b| a > b), "newest first");
        let web = |row: &&Plain| row.fields.get("app").is_some_and(|app| app == "web");
        assert_eq!(got.len(), self.rows.iter().filter(web).count(), "rows of a stream");
    }

    /// Reads the rows of queries that were asked some steps ago.
    fn release(&mut self) {
        for (rows, through) in std::mem::take(&mut self.held) {
            assert!(collect(rows) == self.rows[..through], "held rows have changed");
        }
    }

    fn close(&mut self) {
        self.ingest = None;
        let store = self.store.take().expect("the store is open");
        store.close().expect("the disk is good");
    }

    /// The machine stops; what was acknowledged is durable.
    fn crash(&mut self, input: &mut Input<'_>) {
        let models = CrashModel::all();
        let model = models[input.below(models.len())];
        let after = self.disk.crash(model, u64::from(input.u8()));
        // What the dead process held goes without touching the disk that lives on.
        self.held.clear();
        (self.ingest, self.store) = (None, None);
        self.disk = Arc::new(after);
        self.open();
        self.check();
    }
}

/// The rows of an answer by number, which they must have from 0 on.
fn collect(rows: Rows) -> Vec<Plain> {
    let mut out = BTreeMap::new();
    for row in rows {
        let row = row.expect("the disk is good");
        let time = Timestamp::parse(row.get("_time")).expect("a time").as_nanos();
        let present = FIELDS.iter().map(|f| (*f, row.get(f).to_owned()));
        let fields = present.filter(|(_, value)| !value.is_empty()).collect();
        let n: usize = row.get("n").parse().expect("a number");
        assert_eq!(out.insert(n, Plain { time, fields }), None, "row {n} is there twice");
    }
    assert!(out.keys().copied().eq(0..out.len()), "numbers of the rows");
    out.into_values().collect()
}

pub(super) fn seeds() -> Vec<Vec<u8>> {
    let steps = |seal: u8, steps: &[u8]| {
        let mut out = vec![seal];
        for (i, step) in steps.iter().enumerate() {
            out.push(*step);
            if *step < 4 {
                let count = (i as u8 * 5 + 3) % 9;
                out.push(count);
                let byte = |j: u8| j.wrapping_mul(37).wrapping_add(i as u8 * 11);
                out.extend((0..=count * 2 + 1).map(byte));
            }
            if *step == 11 {
                out.extend([i as u8, 3]);
            }
        }
        out
    };
    vec![
        steps(3, &[0, 8, 4, 1, 5, 2, 4, 6, 8, 10, 8]),
        steps(0, &[0, 9, 0, 0, 0, 7, 9, 11, 8]),
        steps(2, &[3, 0, 3, 4, 11, 0, 4, 0, 4, 7, 9, 10]),
        steps(1, &[0, 11, 1, 11, 2, 4, 11, 6, 11]),
    ]
}
