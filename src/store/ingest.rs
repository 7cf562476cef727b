//! The handle that appends.

use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::ingest::{
    DayGate, IngestOptions, IngestReport, JsonLines, RowWriter, TARGET_BATCH_BYTES, append_batch,
    read_json_lines,
};
use crate::record::{Batch, Entry, RowBatch};
use crate::sync::Mutex;

use super::acks::Acks;
use super::append::Wait;
use super::bulk::{self, Chunk, Plan, Ticket, Turns};
use super::core::Core;
use super::handle::Store;
use super::merger::BulkGuard;

/// A read of this many bytes at once, or of a chunk, speaks of more to come: then the input goes
/// straight into part files, in chunks side by side.
const BULK_BYTES: usize = 4 << 20;

/// Appends to a store, with stream fields of its own. Cheap to make; share it between threads or
/// make one for each.
#[derive(Debug)]
pub struct Ingest {
    store: Store,
    options: Arc<IngestOptions>,
    gate: Arc<dyn DayGate>,
    /// Bytes of a chunk of a large input.
    chunk_bytes: usize,
    /// Writers at rest: they remember the names and streams they have seen.
    writers: Mutex<Vec<RowWriter>>,
}

impl Ingest {
    pub(crate) fn new(store: Store, options: IngestOptions) -> Ingest {
        let gate: Arc<dyn DayGate> = Arc::new(StoreDays::new(&store, options.limits.max_days));
        let chunk_bytes = bulk::chunk_bytes(store.core().options.memory_limit_bytes);
        let writers = Mutex::default();
        Ingest { store, options: Arc::new(options), gate, chunk_bytes, writers }
    }

    /// Chunks of other sizes.
    #[cfg(test)]
    pub(super) fn with_chunk_bytes(mut self, bytes: usize) -> Ingest {
        self.chunk_bytes = bytes;
        self
    }

    /// Appends one entry. It is visible to queries, and as durable as the store's options say,
    /// when the call returns. Blocks while the buffer is full. Gives the sequence of the row, to
    /// be compared with [`Store::durable_sequence`].
    ///
    /// # Errors
    /// [`Error::Rejected`] if the entry is over a limit, and those of the journal; the entry is
    /// not appended then. Only if the journal cannot be synced ([`Error::Io`] of a `sync`, then
    /// [`Error::Poisoned`]) the row may be there all the same.
    pub fn append(&self, entry: Entry) -> Result<u64> {
        self.append_waiting(&entry, Wait::Yes)
    }

    /// As [`append`](Ingest::append), but fails with [`Error::Full`] instead of blocking.
    ///
    /// # Errors
    /// Those of [`append`](Ingest::append), and [`Error::Full`].
    pub fn try_append(&self, entry: Entry) -> Result<u64> {
        self.append_waiting(&entry, Wait::No)
    }

    /// Appends the entries of a batch: all of them become visible together, unless the batch is
    /// above 64 MiB and had to be split. Entries over a limit are left out and counted.
    ///
    /// # Errors
    /// Those of the journal.
    pub fn append_batch(&self, batch: Batch) -> Result<IngestReport> {
        let mut report = IngestReport::default();
        let mut writer = self.writer(usize::MAX);
        let core = self.store.core();
        let mut last_sequence = 0;
        let sink = |rows: RowBatch| {
            last_sequence = core.append(rows, Wait::Yes)?;
            Ok(())
        };
        let result = append_batch(&mut writer, &batch, &mut report, sink);
        self.writers.lock().push(writer);
        report.last_sequence = last_sequence;
        result.map(|()| report)
    }

    /// Appends newline-delimited JSON: one object a line. Bad lines are counted with line number
    /// and reason and do not stop the stream.
    ///
    /// Whatever a read of `input` gives short of a full buffer is appended at once, so the lines
    /// of a pipe or a socket are acknowledged as they come. From the first full buffer (4 MiB; a
    /// sixteenth of the store's memory if that is less) on, the rest is parsed and written by
    /// several threads straight into part files, in chunks of 16 MiB (or that sixteenth). All rows
    /// are acknowledged when the call returns.
    ///
    /// # Errors
    /// Those of `input` and of the disk; rows before the failure may have been appended.
    pub fn ndjson(&self, input: impl Read) -> Result<IngestReport> {
        self.ndjson_acknowledged(input, |_| ())
    }

    /// As [`ndjson`](Ingest::ndjson), and calls `acknowledged` each time when more of the rows
    /// are acknowledged, with what became of the input so far: always of its first lines. What
    /// an acknowledged row survives is said by the store's [`Durability`](crate::Durability);
    /// those of a large input are in synced parts. The calls come one after the other, from
    /// several threads.
    ///
    /// # Errors
    /// Those of [`ndjson`](Ingest::ndjson). What was told last holds: to go on, leave out so many
    /// lines of the input. (Only if the journal cannot be synced, some of the next rows may be
    /// there as well.)
    pub fn ndjson_acknowledged(
        &self,
        input: impl Read,
        acknowledged: impl Fn(&IngestReport) + Sync,
    ) -> Result<IngestReport> {
        let acks = Acks::new(&acknowledged);
        self.lines(input, &acks)?;
        Ok(acks.into_report())
    }

    fn lines(&self, mut input: impl Read, acks: &Acks<'_>) -> Result<()> {
        let mut buffer = vec![0; BULK_BYTES.min(self.chunk_bytes)];
        let mut filled = 0;
        loop {
            let room = buffer.get_mut(filled..).unwrap_or(&mut []);
            let read = match input.read(room) {
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => continue,
                read => read.map_err(|e| Error::io("read", Path::new("the input"), e))?,
            };
            filled += read;
            if read == 0 {
                return self.small(buffer.get(..filled).unwrap_or(&[]), acks);
            }
            if filled == buffer.len() {
                return self.bulk(buffer, input, acks);
            }
            let held = buffer.get(..filled).unwrap_or(&[]);
            let end = memchr::memrchr(b'\n', held).map_or(0, |i| i + 1);
            if end > 0 {
                self.small(held.get(..end).unwrap_or(&[]), acks)?;
                buffer.copy_within(end..filled, 0);
                filled -= end;
            }
        }
    }

    fn append_waiting(&self, entry: &Entry, wait: Wait) -> Result<u64> {
        let mut report = IngestReport::default();
        let mut writer = self.writer(TARGET_BATCH_BYTES);
        let mut rows = entry.as_batch().entries();
        let row = rows.try_for_each(|row| writer.append(row, &mut report));
        let result = match row {
            Ok(()) => self.store.core().append(writer.take_batch(), wait),
            Err(r) => Err(Error::Rejected { why: format!("{}: {}", r.reason, r.detail) }),
        };
        self.writers.lock().push(writer);
        result
    }

    fn small(&self, input: &[u8], acks: &Acks<'_>) -> Result<()> {
        let mut report = IngestReport::default();
        let core = self.store.core();
        let mut lines = JsonLines::new(self.writer(TARGET_BATCH_BYTES));
        let mut sink = |rows: RowBatch, report: &mut IngestReport| {
            report.last_sequence = core.append(rows, Wait::Yes)?;
            acks.more(&std::mem::take(report));
            Ok(())
        };
        read_json_lines(input, Path::new("the input"), &mut lines, &mut report, &mut sink)?;
        // Lines behind the last row.
        acks.more(&report);
        self.writers.lock().push(lines.into_writer());
        Ok(())
    }

    pub(super) fn bulk(&self, head: Vec<u8>, input: impl Read, acks: &Acks<'_>) -> Result<()> {
        let _running = BulkGuard::new(self.store.core());
        let (reserving, listing) = (Turns::default(), Turns::default());
        let plan = Plan {
            workers: std::thread::available_parallelism().map_or(1, usize::from),
            chunk_bytes: self.chunk_bytes,
            longest: self.options.limits.max_entry_bytes,
        };
        bulk::run(input, head, plan, |chunk| {
            let tickets = (reserving.ticket(chunk.index), listing.ticket(chunk.index));
            self.bulk_chunk(chunk, tickets, acks)
        })?;
        self.writers.lock().iter_mut().for_each(RowWriter::forget_spare);
        Ok(())
    }

    /// Parses a chunk, takes its sequences when all chunks before it have taken theirs, writes
    /// its parts, and lists them when those of all chunks before it are listed: what is in the
    /// store when a chunk fails are the chunks before it.
    fn bulk_chunk(
        &self,
        chunk: Chunk,
        (reserving, listing): (Ticket<'_>, Ticket<'_>),
        acks: &Acks<'_>,
    ) -> Result<()> {
        let core = self.store.core();
        let mut report = IngestReport::default();
        let mut batches: Vec<RowBatch> = Vec::new();
        let mut lines = JsonLines::new(self.writer(self.chunk_bytes));
        let mut sink = |rows: RowBatch, _: &mut IngestReport| {
            batches.push(rows);
            Ok(())
        };
        lines.parse_chunk(chunk.bytes(), &mut report, &mut sink)?;
        lines.flush(&mut report, &mut sink)?;
        let mut writer = lines.into_writer();
        drop(chunk);
        let rows: u64 = batches.iter().map(|b| b.len() as u64).sum();
        let reserve = || (rows > 0).then(|| core.reserve_bulk(rows)).transpose();
        let Some(reserved) = reserving.pass(reserve)? else { return Ok(()) };
        let written = reserved.map(|r| core.write_bulk(r, batches)).transpose()?;
        listing.pass(|| {
            if let Some(cut) = written {
                cut.list()?.into_iter().for_each(|batch| writer.recycle(batch));
            }
            report.last_sequence = reserved.map_or(0, |reserved| reserved.hi);
            acks.more(&report);
            Ok(())
        })?;
        self.writers.lock().push(writer);
        Ok(())
    }

    /// A writer that hands batches on at about so many bytes.
    fn writer(&self, target_bytes: usize) -> RowWriter {
        let now = self.store.core().clock.now();
        let resting = self.writers.lock().pop();
        let mut writer = resting.unwrap_or_else(|| {
            RowWriter::new(Arc::clone(&self.options), now).with_gate(Arc::clone(&self.gate))
        });
        writer.set_now(now);
        writer.with_target_bytes(target_bytes)
    }
}

/// Keeps the number of days of a store within its limit: one batch with broken times must not
/// make 100,000 directories.
#[derive(Debug)]
struct StoreDays {
    days: Mutex<std::collections::BTreeSet<i32>>,
    limit: usize,
}

impl StoreDays {
    fn new(store: &Store, limit: usize) -> StoreDays {
        let days = store.core().days();
        StoreDays { days: Mutex::new(days), limit }
    }
}

impl DayGate for StoreDays {
    fn admit(&self, day: i32) -> bool {
        let mut days = self.days.lock();
        if days.contains(&day) {
            return true;
        }
        let room = days.len() < self.limit;
        if room {
            days.insert(day);
        }
        room
    }
}

impl Core {
    /// The days that hold rows.
    fn days(&self) -> std::collections::BTreeSet<i32> {
        let state = self.state.lock();
        state.version.days().map(|(day, _)| day).collect()
    }
}
