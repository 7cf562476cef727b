//! The way of a batch into the store.

use std::sync::Arc;
use std::time::Duration;

use crate::error::{Error, Result};
use crate::journal;
use crate::memory::{Cut, PartBytes, days_of, encode_days};
use crate::options::Durability;
use crate::part::Profile;
use crate::partition::{PartHandle, part_entry};
use crate::record::RowBatch;
use crate::sync::MutexGuard;
use crate::sync::atomic::Ordering;

use super::core::{Core, caught};
use super::state::State;
use super::view::BufferView;

/// Whether a writer waits for memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wait {
    /// Until a flush has freed some.
    Yes,
    /// Not at all: `Error::Full`.
    No,
}

/// How long a writer waits for memory before it flushes by itself.
const WAIT_STEP: Duration = Duration::from_millis(50);

impl Core {
    /// Appends a batch: visible to queries, and as durable as the options say, when it returns.
    /// Gives the sequence of its last row. Rows of an append that fails with the sync of the
    /// journal may be there all the same, now and after the next opening.
    pub(crate) fn append(&self, batch: RowBatch, wait: Wait) -> Result<u64> {
        self.manifest()?;
        if batch.is_empty() {
            return Ok(self.state.lock().sequences.peek().saturating_sub(1));
        }
        // Encoding happens before the lock: appenders meet only for the copy into the journal.
        let mut record = Vec::new();
        if self.options.durability != Durability::Buffered {
            journal::encode(&batch, &mut record);
        }
        let rows = u32::try_from(batch.len()).map_err(|_| Error::InvalidOption {
            name: "batch",
            why: "a batch holds less than 2^32 rows".to_owned(),
        })?;
        let mut state = self.writable_state(batch.heap_bytes() as u64, wait)?;
        let sequence = self.take_sequences(&mut state, u64::from(rows))?;
        let mut mark = None;
        if let Some(journal) = &mut state.journal {
            let mut begun = |segment| self.list_segment(segment, sequence);
            if let Err(e) = journal.append(sequence, rows, &record, &mut begun) {
                if let Error::Poisoned { why } = &e {
                    state.poisoned.get_or_insert_with(|| why.clone());
                }
                return Err(e);
            }
            mark = Some(journal.mark());
        }
        let now = self.clock.monotonic();
        state.buffer_view = None;
        state.buffer.push(sequence, Arc::new(batch), now);
        let full = state.buffer.heap_bytes() >= self.options.seal_bytes;
        let cut = if full { state.cut_buffer() } else { None };
        drop(state);
        // Others append while this waits for the disk, and share its sync.
        let synced = match mark {
            Some(mark) if self.options.durability == Durability::Sync => self.sync_journal(mark),
            _ => Ok(()),
        };
        // The rows are acknowledged, or may be there: what fails from here on is tried again, and
        // must not make the caller append them twice. A full buffer is refused with the next batch.
        let tidied = cut.map_or(Ok(()), |view| self.land_in_memory(&view));
        if let Err(e) = tidied.and_then(|()| self.flush_when_full()) {
            self.state.lock().last_error = Some(e.to_string());
        }
        synced.map(|()| sequence + u64::from(rows) - 1)
    }

    /// Encodes a cut into memory parts and lands it.
    pub(crate) fn land_in_memory(&self, view: &BufferView) -> Result<()> {
        let cut = view.cut();
        let parts = caught("making a part of new rows panicked", || self.encode_cut(cut));
        let mut state = self.state.lock();
        let result = match parts {
            Ok(parts) => {
                state.version = Arc::new(state.version.replace(&[], parts));
                state.land(cut.lo);
                Ok(())
            }
            Err(e) => {
                state.fail(cut.lo);
                Err(e)
            }
        };
        drop(state);
        self.changed.notify_all();
        result
    }

    fn encode_cut(&self, cut: &Cut) -> Result<Vec<Arc<PartHandle>>> {
        let batches: Vec<&RowBatch> = cut.batches.iter().map(|(_, b)| b.as_ref()).collect();
        let mut ids = Vec::new();
        for _ in days_of(&batches) {
            ids.push(self.part_id()?);
        }
        let mut ids = ids.into_iter();
        let encoded = encode_days(cut, |day| {
            let id = ids.next().unwrap_or(u64::MAX);
            self.writer_options(id, day, (cut.lo, cut.hi), Profile::Flush)
        })?;
        let handle = |p: PartBytes| Arc::new(PartHandle::memory(part_entry(&p.summary), p.bytes));
        Ok(encoded.into_iter().map(handle).collect())
    }

    /// The highest sequence up to which no row is missing after a loss of power now: all rows up
    /// to it are in durable parts or in the durable part of the journal. Never falls in the life
    /// of a store. 0 for a store that is open for reading.
    pub(crate) fn durable_sequence(&self) -> u64 {
        if self.manifest().is_err() {
            return 0;
        }
        // Asked first: what becomes durable in between only makes the answer lower.
        let journal = self.commit.durable().sequence;
        let state = self.state.lock();
        let waiting = |lo: u64, hi: u64| (hi > journal).then_some(lo.max(journal + 1));
        let flying = state.in_flight.iter().filter_map(|f| match f.view {
            Some(_) => waiting(f.lo, f.hi),
            // Nobody waits for the rows of a bulk cut, but its parts are not listed yet.
            None => Some(f.lo),
        });
        let memory = state.version.parts().filter(|p| p.is_memory());
        let memory = memory.filter_map(|p| waiting(p.info().cut_lo, p.info().cut_hi));
        let next = state.sequences.peek();
        let buffer = state.buffer.lo().and_then(|lo| waiting(lo, next.saturating_sub(1)));
        let first = flying.chain(memory).chain(buffer).min().unwrap_or(next);
        // Parts that were put together look as if all of their rows were as late as the last.
        let told = self.durable.fetch_max(first.saturating_sub(1), Ordering::AcqRel);
        told.max(first.saturating_sub(1))
    }

    /// Makes every row acknowledged so far survive a loss of power.
    pub(crate) fn sync(&self) -> Result<u64> {
        self.manifest()?;
        let mark = {
            let state = self.state.lock();
            state.check_writable()?;
            state.journal.as_ref().map(journal::Journal::mark)
        };
        match mark {
            Some(mark) => self.sync_journal(mark)?,
            None => self.flush().map(|_| ())?,
        }
        Ok(self.durable_sequence())
    }

    /// The state, when it takes writes and there is memory for `bytes` more.
    pub(super) fn writable_state(&self, bytes: u64, wait: Wait) -> Result<MutexGuard<'_, State>> {
        let share = self.memory_share();
        let mut state = self.state.lock();
        loop {
            state.check_writable()?;
            let held = state.memory_bytes();
            // A batch larger than the share passes when nothing else is held.
            if held == 0 || held + bytes <= share {
                return Ok(state);
            }
            if wait == Wait::No {
                return Err(Error::Full);
            }
            drop(state);
            self.flush()?;
            state = self.state.lock();
            if state.memory_bytes() + bytes > share && state.memory_bytes() > 0 {
                self.wait(&mut state, WAIT_STEP);
            }
        }
    }

    pub(super) fn take_sequences(&self, state: &mut State, rows: u64) -> Result<u64> {
        let manifest = self.manifest()?;
        state.sequences.take(rows, || manifest.lock().reserve_sequences())
    }

    /// Half of the share of memory starts a flush, so that appends seldom wait for one.
    fn flush_when_full(&self) -> Result<()> {
        let half = self.memory_share() / 2;
        if self.state.lock().memory_bytes() >= half { self.flush().map(|_| ()) } else { Ok(()) }
    }
}
