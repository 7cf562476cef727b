//! The handle that programs hold.

use std::path::Path;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::ingest::IngestOptions;
use crate::options::{Options, QueryOptions};
use crate::query::{Query, Rows, execute_parts};
use crate::sync::Mutex;
use crate::sync::atomic::Ordering;
use crate::sync::thread::JoinHandle;

use super::core::{Core, Role};
use super::ingest::Ingest;
use super::inspect::{Inspection, PartInspection};
use super::query::SnapshotParts;
use super::repair::{self, RepairReport};
use super::report::{CompactReport, FlushReport, OpenReport, StoreStats};
use super::verify::{VerifyProgress, VerifyReport};
use super::{merger, open, workers};

/// A store of logs in a directory: append to it, query it.
///
/// Cheap to clone; all clones are the same store. When the last one goes the store is flushed and
/// closed; [`close`](Store::close) does so too and tells whether it worked.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let dir = tempfile::tempdir()?;
/// use loglith::{Entry, IngestOptions, Store};
///
/// let store = Store::open(dir.path())?;
/// let ingest = store.ingest(IngestOptions::new().stream_fields(["app"]))?;
/// ingest.append(Entry::new().field("app", "web").message("connection refused"))?;
///
/// let mut rows = store.query("refused | stats count() as n")?;
/// let row = rows.next().ok_or("one row")??;
/// assert_eq!(row.get("n"), "1");
/// store.close()?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

/// Owns the threads; the last handle to go ends them.
#[derive(Debug)]
struct Inner {
    core: Arc<Core>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Options {
    /// Brings a damaged store back to where every query works, as far as it can:
    ///
    /// * a manifest that is lost is made anew from the footers of the parts;
    /// * rows of the journal are moved to parts;
    /// * of each damaged part, the rows that can be read go to a new part;
    /// * files that cannot be used are moved to the directory `quarantine`, never removed.
    ///
    /// Rows that are lost for good are remembered: queries over their times fail with
    /// [`Error::Corrupted`](crate::Error::Corrupted), also after the repair, until it is called
    /// with `accept_loss`. Reads every byte of the store. A second repair changes nothing.
    ///
    /// # Errors
    /// [`Error::NotAStore`](crate::Error::NotAStore), [`Error::Locked`](crate::Error::Locked) if it
    /// is open for writing, and those of the disk; it can be repeated after any of them.
    pub fn repair(self, dir: impl AsRef<Path>, accept_loss: bool) -> Result<RepairReport> {
        repair::repair(self, dir.as_ref(), accept_loss)
    }

    /// Opens the store in `dir` for writing, creating it if there is none.
    ///
    /// # Errors
    /// [`Error::Locked`](crate::Error::Locked) if it is open for writing elsewhere, and those of
    /// the disk. Damage of single parts does not fail the opening; see
    /// [`Store::open_report`].
    pub fn open(self, dir: impl AsRef<Path>) -> Result<Store> {
        Store::open_with(self, dir.as_ref())
    }

    /// Opens the store in `dir` for reading, beside a writer or not. Writes nothing.
    ///
    /// # Errors
    /// [`Error::NotAStore`](crate::Error::NotAStore) if there is none.
    pub fn open_read_only(self, dir: impl AsRef<Path>) -> Result<Store> {
        Store::open_read_only_with(self, dir.as_ref())
    }
}

impl Store {
    /// The options a store can be opened with.
    pub fn options() -> Options {
        Options::new()
    }

    /// Opens the store in `dir` for writing with the default options, creating it if there is
    /// none. See [`Options::open`].
    ///
    /// # Errors
    /// [`Error::Locked`](crate::Error::Locked) if it is open for writing elsewhere, and those of
    /// the disk.
    pub fn open(dir: impl AsRef<Path>) -> Result<Store> {
        Options::new().open(dir)
    }

    /// Opens the store in `dir` for reading; see [`Options::open_read_only`].
    ///
    /// # Errors
    /// [`Error::NotAStore`](crate::Error::NotAStore) if there is none.
    pub fn open_read_only(dir: impl AsRef<Path>) -> Result<Store> {
        Options::new().open_read_only(dir)
    }

    /// Repairs the store in `dir` with the default options; see [`Options::repair`].
    ///
    /// # Errors
    /// Those of [`Options::repair`].
    pub fn repair(dir: impl AsRef<Path>, accept_loss: bool) -> Result<RepairReport> {
        Options::new().repair(dir, accept_loss)
    }

    pub(crate) fn open_with(options: Options, dir: &Path) -> Result<Store> {
        let background = options.background;
        let core = Arc::new(open::open_writer(options, dir)?);
        let mut threads = Vec::new();
        if background {
            threads.push(workers::start(&core)?);
            threads.push(merger::start(&core)?);
        }
        Ok(Store { inner: Arc::new(Inner { core, threads: Mutex::new(threads) }) })
    }

    pub(crate) fn open_read_only_with(options: Options, dir: &Path) -> Result<Store> {
        let core = Arc::new(open::open_reader(options, dir)?);
        Ok(Store { inner: Arc::new(Inner { core, threads: Mutex::default() }) })
    }

    pub(crate) fn core(&self) -> &Core {
        &self.inner.core
    }

    /// What opening found and mended.
    pub fn open_report(&self) -> &OpenReport {
        &self.core().report
    }

    /// A handle to append with.
    ///
    /// # Errors
    /// [`Error::ReadOnly`](crate::Error::ReadOnly) on a store that is open for reading.
    pub fn ingest(&self, options: IngestOptions) -> Result<Ingest> {
        self.core().manifest()?;
        Ok(Ingest::new(self.clone(), options))
    }

    /// Runs a query with the default options; see [`query_with`](Store::query_with).
    ///
    /// # Errors
    /// [`Error::Query`](crate::Error::Query) with the position if the text is not LogsQL.
    pub fn query(&self, text: &str) -> Result<Rows> {
        self.query_with(&text.parse::<Query>()?, &QueryOptions::new())
    }

    /// Runs a query over the rows acknowledged so far. Rows appended later are not seen by it.
    ///
    /// # Errors
    /// Those of planning; errors of running come out of the iterator.
    pub fn query_with(&self, query: &Query, options: &QueryOptions) -> Result<Rows> {
        let snapshot = self.core().snapshot()?;
        let (root, cache) = (self.core().root.clone(), Arc::clone(&self.core().cache));
        let parts = SnapshotParts { snapshot, root, cache };
        Ok(execute_parts(query, Arc::new(parts), options, self.core().clock.now()))
    }

    /// Writes everything acknowledged so far into part files and makes it durable.
    ///
    /// # Errors
    /// Those of the disk; the rows stay where they are and nothing is lost.
    pub fn flush(&self) -> Result<FlushReport> {
        self.core().flush()
    }

    /// The highest sequence up to which every row survives a loss of power, whatever the
    /// [`Durability`](crate::Durability) of the store. Appends give the sequences of their rows,
    /// so a program that forwards logs may forget everything up to this one.
    ///
    /// It never falls while the store is open. It rises by itself: with every append under
    /// [`Durability::Sync`](crate::Durability::Sync), each second under
    /// [`Durability::Process`](crate::Durability::Process), with every flush under
    /// [`Durability::Buffered`](crate::Durability::Buffered); and by
    /// [`sync`](Store::sync), [`flush`](Store::flush) and the end of a bulk ingest. A bulk ingest
    /// that runs holds it below its first row. 0 for a store that is open for reading. Cost: looks
    /// at each listed part.
    pub fn durable_sequence(&self) -> u64 {
        self.core().durable_sequence()
    }

    /// Makes everything acknowledged so far survive a loss of power, and gives the
    /// [`durable_sequence`](Store::durable_sequence) then: one sync of the journal, which others
    /// share that ask meanwhile; under [`Durability::Buffered`](crate::Durability::Buffered) a
    /// flush.
    ///
    /// # Errors
    /// Those of the disk. After a failed sync of the journal the store takes no more writes.
    pub fn sync(&self) -> Result<u64> {
        self.core().sync()
    }

    /// Flushes, then merges parts until nothing is left to gain.
    ///
    /// # Errors
    /// Those of the disk.
    pub fn compact(&self) -> Result<CompactReport> {
        self.core().compact()
    }

    /// Where the bytes of the part files go.
    ///
    /// # Errors
    /// Those of reading the parts' indexes.
    pub fn inspect(&self) -> Result<Inspection> {
        self.core().inspect()
    }

    /// Where the bytes of one part go; `None` if no part has that id.
    ///
    /// # Errors
    /// Those of reading the part's index.
    pub fn inspect_part(&self, part_id: u64) -> Result<Option<PartInspection>> {
        self.core().inspect_part(part_id)
    }

    /// Reads every byte of every part file and checks it. `progress` is called after each part;
    /// returning false ends the walk early.
    ///
    /// # Errors
    /// Those of the disk; damage is not an error but a finding of the report.
    pub fn verify(
        &self,
        progress: &mut dyn FnMut(&VerifyProgress) -> bool,
    ) -> Result<VerifyReport> {
        self.core().verify(progress)
    }

    /// The last failure of a flush or a merge that the store made by itself, in words. It has been
    /// or will be tried again; nothing is lost by it.
    pub fn last_error(&self) -> Option<String> {
        self.core().state.lock().last_error.clone()
    }

    /// Counts of the store now.
    pub fn stats(&self) -> StoreStats {
        let state = self.core().state.lock();
        let parts = || state.version.parts();
        let files = || parts().filter(|p| !p.is_memory());
        StoreStats {
            days: state.version.days().count() as u64,
            file_parts: files().count() as u64,
            memory_parts: state.version.memory_len().0 as u64,
            part_rows: parts().map(|p| p.info().rows).sum(),
            buffered_rows: state.buffer.rows(),
            file_bytes: files().map(|p| p.info().length).sum(),
            memory_bytes: state.memory_bytes(),
            flushed_bytes: state.written.flushed_bytes,
            merged_bytes: state.written.merged_bytes,
            journal_bytes: state.journal.as_ref().map_or(0, |j| j.len_bytes()),
        }
    }

    /// Flushes and closes the store for all its handles; calls on them fail with
    /// [`Error::Closed`](crate::Error::Closed) from then on.
    ///
    /// # Errors
    /// Those of the flush; the store is closed all the same, and what was acknowledged is in
    /// the journal.
    pub fn close(self) -> Result<()> {
        self.inner.close(true)
    }
}

impl Inner {
    fn close(&self, flush: bool) -> Result<()> {
        // The merger gives up what it does, so that what follows has the disk for itself.
        self.core.stopping.store(true, Ordering::Release);
        self.core.changed.notify_all();
        let writer = matches!(self.core.role, Role::Writer { .. });
        let open = !self.core.state.lock().closed;
        let flushed = if flush && writer && open { self.core.flush().map(|_| ()) } else { Ok(()) };
        let debt = if flush && writer && open && flushed.is_ok() && self.core.options.background {
            self.core.pay_debt()
        } else {
            Ok(())
        };
        let mut state = self.core.state.lock();
        state.closed = true;
        let said = match &mut state.journal {
            Some(journal) if open => journal.append_close(),
            _ => Ok(()),
        };
        drop(state);
        self.core.changed.notify_all();
        for thread in self.threads.lock().drain(..) {
            let _ = thread.join();
        }
        let panicked = match self.core.state.lock().panicked.take() {
            Some(what) => Err(Error::Internal { what }),
            None => Ok(()),
        };
        flushed.and(debt).and(said).and(panicked)
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // While a panic unwinds nothing more is risked: the journal holds what was acknowledged.
        let _ = self.close(!std::thread::panicking());
    }
}
