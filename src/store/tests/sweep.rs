//! Every byte of every file of a store flipped, and every file cut to every length: the right
//! answer or a named damage, never a panic, a wrong row or a missing one in silence.
//!
//! CI takes a share of the places; `LOGLITH_SWEEP_ALL=1` takes them all, with three flips each.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use super::*;
use crate::io::CrashModel;
use crate::options::QueryOptions;
use crate::query::Query;

/// A row as a query gives it.
type Fields = BTreeMap<String, String>;
/// Rows by their numbers.
type Answer = BTreeMap<u64, Fields>;

/// A store of merged and flushed parts, with rows that only the journal has; all of it synced.
pub(super) fn fixture() -> SimDisk {
    let disk = Arc::new(SimDisk::new());
    let store = options(&disk, Durability::Process).seal_bytes(1 << 20).open(root()).unwrap();
    let ingest = ingest(&store);
    ingest.append_batch(batch(0..30)).unwrap();
    store.flush().unwrap();
    ingest.append_batch(batch(30..60)).unwrap();
    store.flush().unwrap();
    store.compact().unwrap();
    ingest.append_batch(batch(60..75)).unwrap();
    store.flush().unwrap();
    for n in [75, 79, 83] {
        ingest.append_batch(batch(n..n + 4)).unwrap();
        store.sync().unwrap();
    }
    disk.crash(CrashModel::KEEP_ALL, 0)
}

/// Rows of the journal's last batch: a flip in it cannot be told from a torn write, nor its loss
/// from one that was never made.
const LAST_BATCH: u64 = 83;
/// Rows that only the journal has.
const IN_JOURNAL: u64 = 75;
pub(super) const ROWS: u64 = 87;

fn ask(store: &Store, text: &str, options: &QueryOptions) -> Result<(Answer, u64, u64)> {
    let mut rows = store.query_with(&text.parse::<Query>().unwrap(), options)?;
    let mut answer = Answer::new();
    for row in rows.by_ref() {
        let row = row?;
        let present = row.fields().filter(|(_, value)| !value.is_empty());
        let fields: Fields = present.map(|(k, v)| (k.to_owned(), v.to_owned())).collect();
        assert!(answer.insert(row.get("n").parse().unwrap(), fields).is_none(), "a row twice");
    }
    let stats = rows.stats();
    Ok((answer, stats.damaged_places, stats.rows_missing))
}

const QUERIES: [&str; 4] =
    ["*", "number", "n:>20 app:=app-1", "_time:1970-01-02 _msg:\"row number\""];

struct Sweep {
    base: SimDisk,
    want: Vec<Answer>,
}

/// What a damaged store may do beside answering rightly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Allowed {
    /// Rows from this one on may be missing, if the opening or a check says that bytes are.
    tail_from: u64,
    /// Any rows may be missing from the view of a reader whose check says what is not listed.
    unlisted: bool,
    /// The tail may be missing without a word: nothing is left that could tell. Of a segment of the
    /// journal the first record is never that.
    silent: bool,
}

impl Sweep {
    fn new() -> Sweep {
        let base = fixture();
        let disk = Arc::new(base.fork());
        let store = options(&disk, Durability::Process).open_read_only(root()).unwrap();
        let all = QueryOptions::new().workers(1);
        let want: Vec<Answer> = QUERIES.map(|q| ask(&store, q, &all).unwrap().0).into();
        assert_eq!(want[0].keys().copied().collect::<Vec<_>>(), (0..ROWS).collect::<Vec<_>>());
        assert!(want.iter().all(|answer| !answer.is_empty()));
        Sweep { base, want }
    }

    /// Opens a damaged store, as a reader or for writing, and holds its answers against the right
    /// ones.
    fn judge(&self, disk: &SimDisk, reader: bool, allowed: Allowed) -> &'static str {
        let disk = Arc::new(disk.fork());
        let opened = match reader {
            true => options(&disk, Durability::Process).open_read_only(root()),
            false => options(&disk, Durability::Process).open(root()),
        };
        let store = match opened {
            Ok(store) => store,
            Err(Error::Corrupted(c)) => {
                assert!(!c.what.is_empty() && c.path.starts_with(root()), "{c:?}");
                return "refused";
            }
            Err(Error::NotAStore { .. }) => return "refused",
            Err(e) => panic!("{e}"),
        };
        let verified = store.verify(&mut |_| true).unwrap();
        let told = !verified.is_clean() || !store.open_report().is_clean();
        let (strict, lenient) = (QueryOptions::new().workers(1), QueryOptions::new().workers(1));
        let lenient = lenient.skip_damaged(true);
        let mut outcome = "right";
        for (text, want) in QUERIES.iter().zip(&self.want) {
            let may_lack = |answer: &Answer| {
                let lacks = |n: &&u64| !answer.contains_key(n);
                let mut lacking = want.keys().filter(lacks).peekable();
                let tail = lacking.peek().is_none_or(|n| **n >= allowed.tail_from);
                let noted = !store.open_report().is_clean() && !verified.is_clean();
                let unlisted = reader && allowed.unlisted && noted;
                (tail && (allowed.silent || told)) || unlisted
            };
            let right = |answer: &Answer| answer.iter().all(|(n, row)| want.get(n) == Some(row));
            match ask(&store, text, &strict) {
                Ok((answer, ..)) => {
                    assert!(right(&answer), "{text}: a wrong row");
                    assert!(
                        answer.len() == want.len() || may_lack(&answer),
                        "{text}: {} of {} rows in silence",
                        answer.len(),
                        want.len()
                    );
                }
                Err(Error::Corrupted(c)) => {
                    assert!(!c.what.is_empty() && c.path.starts_with(root()), "{c:?}");
                    outcome = "noticed";
                }
                Err(e) => panic!("{text}: {e}"),
            }
            let (answer, places, missing) = ask(&store, text, &lenient).unwrap();
            assert!(right(&answer), "{text}, skipping: a wrong row");
            let lacking = (want.len() - answer.len()) as u64;
            let counted = places > 0 && (missing == 0 || lacking <= missing);
            assert!(
                lacking == 0 || counted || may_lack(&answer),
                "{text}, skipping: {lacking} rows lacking, {missing} counted, {places} places"
            );
        }
        outcome
    }

    fn files(&self) -> Vec<(PathBuf, u64)> {
        let files = self.base.files().into_iter().filter(|f| !f.ends_with("LOCK"));
        files.map(|f| (f.clone(), self.base.read_file(&f).unwrap().len() as u64)).collect()
    }
}

fn is_kind(path: &Path, kind: &str) -> bool {
    path.file_name().unwrap().to_str().unwrap().contains(kind)
}

fn every_place() -> bool {
    std::env::var_os("LOGLITH_SWEEP_ALL").is_some()
}

/// Runs the cases of a sweep; prints how they ended.
fn run(sweep: &Sweep, cases: impl Iterator<Item = (String, SimDisk, Allowed)>) {
    let mut ended: BTreeMap<&str, u64> = BTreeMap::new();
    for (what, disk, allowed) in cases {
        for reader in [true, false] {
            let begun = Instant::now();
            let judged = catch_unwind(AssertUnwindSafe(|| sweep.judge(&disk, reader, allowed)));
            let Ok(outcome) = judged else { panic!("{what}, reader: {reader}") };
            assert!(begun.elapsed() < Duration::from_secs(20), "{what} took long");
            *ended.entry(outcome).or_default() += 1;
        }
    }
    println!("{} files, outcomes: {ended:?}", sweep.files().len());
}

const NOTHING: Allowed = Allowed { tail_from: ROWS, unlisted: false, silent: false };

#[test]
fn every_byte_flipped() {
    let sweep = Sweep::new();
    let flips: &[u8] = if every_place() { &[0x01, 0x80, 0xff] } else { &[0x10] };
    let step: u32 = if every_place() { 1 } else { 11 };
    let base = &sweep.base;
    let cases = sweep.files().into_iter().enumerate().flat_map(|(i, (path, len))| {
        let journal = is_kind(&path, "JOURNAL");
        let tail_from = if journal { LAST_BATCH } else { ROWS };
        let unlisted = is_kind(&path, "MANIFEST");
        let allowed = Allowed { tail_from, unlisted, silent: false };
        (i as u64 % u64::from(step)..len).step_by(step as usize).flat_map(move |at| {
            let path = path.clone();
            flips.iter().map(move |flip| {
                let disk = base.fork();
                assert!(disk.flip(&path, at, *flip));
                (format!("{} at {at} ^ {flip:#x}", path.display()), disk, allowed)
            })
        })
    });
    run(&sweep, cases);
}

#[test]
fn every_length() {
    let sweep = Sweep::new();
    let step: u32 = if every_place() { 1 } else { 11 };
    let base = &sweep.base;
    let cases = sweep.files().into_iter().enumerate().flat_map(|(i, (path, len))| {
        // Behind the end of a journal or a manifest nothing is left that could tell.
        let journal = is_kind(&path, "JOURNAL");
        let tail_from = if journal { IN_JOURNAL } else { ROWS };
        let unlisted = is_kind(&path, "MANIFEST");
        let first_record_end = if journal { first_record_end(base, &path) } else { len };
        (i as u64 % u64::from(step)..len).step_by(step as usize).map(move |to| {
            let allowed = Allowed { tail_from, unlisted, silent: to >= first_record_end };
            let disk = base.fork();
            assert!(disk.cut(&path, to));
            (format!("{} cut to {to} of {len}", path.display()), disk, allowed)
        })
    });
    run(&sweep, cases);
}

/// One file is missing altogether.
#[test]
fn every_file_missing() {
    let sweep = Sweep::new();
    let cases = sweep.files().into_iter().map(|(path, _)| {
        let disk = sweep.base.fork();
        disk.remove_file(&path).unwrap();
        (format!("{} missing", path.display()), disk, NOTHING)
    });
    run(&sweep, cases);
}

/// Where the first record of a segment ends.
fn first_record_end(disk: &SimDisk, path: &Path) -> u64 {
    let segment = disk.read_file(path).unwrap();
    let payload = u32::from_le_bytes(segment[56 + 8..56 + 12].try_into().unwrap());
    56 + 32 + u64::from(payload)
}
