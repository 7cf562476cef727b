//! A large cut on its way into part files, without journal.

use std::path::PathBuf;
use std::sync::Arc;

use crate::error::Result;
use crate::io::is_not_found;
use crate::manifest::{Bulk, Change, Edit, day_dir, part_path};
use crate::memory::{Cut, days_of};
use crate::part::{FileSink, Profile, write_part};
use crate::partition::{PartEntry, part_entry};
use crate::record::RowBatch;

use super::append::Wait;
use super::core::{Core, caught};
use super::state::InFlight;

/// The sequences of a bulk cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reserved {
    /// The first.
    pub(crate) lo: u64,
    /// The last.
    pub(crate) hi: u64,
}

/// A cut whose part files are written and not listed: nobody sees its rows. Dropping it takes
/// the files back.
#[derive(Debug)]
pub(crate) struct BulkCut<'a> {
    core: &'a Core,
    cut: Cut,
    /// The announced cut, while its files are to be removed if it ends here.
    announced: Option<Bulk>,
    begun: Vec<(i32, PathBuf)>,
    written: Vec<PartEntry>,
}

impl Core {
    /// Takes the sequences of a bulk cut of `rows` rows, behind everything appended so far.
    pub(crate) fn reserve_bulk(&self, rows: u64) -> Result<Reserved> {
        debug_assert!(rows > 0, "a cut has rows");
        let mut state = self.writable_state(0, Wait::Yes)?;
        let before = state.cut_buffer();
        let lo = self.take_sequences(&mut state, rows)?;
        let hi = lo + rows - 1;
        state.in_flight.push(InFlight { lo, hi, view: None, failed: false });
        drop(state);
        if let Some(view) = before
            && let Err(e) = self.land_in_memory(&view)
        {
            self.state.lock().land(lo);
            return Err(e);
        }
        Ok(Reserved { lo, hi })
    }

    /// Writes a large cut into part files: one for each day in it, all of them or none, also when
    /// the process dies on the way. Its rows are there once [`BulkCut::list`] has returned.
    pub(crate) fn write_bulk(
        &self,
        reserved: Reserved,
        batches: Vec<RowBatch>,
    ) -> Result<BulkCut<'_>> {
        let mut at = reserved.lo;
        let mut cut = Cut { lo: reserved.lo, hi: reserved.hi, batches: Vec::new(), heap_bytes: 0 };
        for batch in batches {
            let sequence = at;
            at += batch.len() as u64;
            cut.batches.push((sequence, Arc::new(batch)));
        }
        debug_assert!(at == reserved.hi + 1, "a bulk cut is full");
        let (begun, written) = (Vec::new(), Vec::new());
        let mut bulk = BulkCut { core: self, cut, announced: None, begun, written };
        caught("writing a bulk cut panicked", || bulk.write())?;
        Ok(bulk)
    }
}

impl BulkCut<'_> {
    fn write(&mut self) -> Result<()> {
        let core = self.core;
        let batches: Vec<&RowBatch> = self.cut.batches.iter().map(|(_, b)| b.as_ref()).collect();
        let days = days_of(&batches);
        let (cut_lo, cut_hi) = (self.cut.lo, self.cut.hi);
        let bulk = Bulk { cut_lo, cut_hi, parts: days.len() as u64 };
        core.commit(&Edit::of(Change::AddBulk(bulk)))?;
        self.announced = Some(bulk);
        for day in days {
            let id = core.part_id()?;
            let options = core.writer_options(id, day, (cut_lo, cut_hi), Profile::Flush);
            let path = part_path(&core.root, day, id);
            self.begun.push((day, path.clone()));
            let summary = core.publish_file(day, &path, |file, path| {
                write_part(&batches, &options, &mut FileSink { file, path })
            })?;
            self.written.push(part_entry(&summary));
        }
        Ok(())
    }

    /// Lists the parts: the rows are acknowledged, and seen by queries, when the call returns.
    /// The batches, in order, are given back.
    pub(crate) fn list(mut self) -> Result<Vec<RowBatch>> {
        let written = std::mem::take(&mut self.written);
        let mut edit = Edit::of(Change::DropBulk { cut_lo: self.cut.lo });
        written.iter().for_each(|entry| edit.push(Change::AddPart(entry.clone())));
        // An edit that failed may be there all the same, so the files stay.
        self.announced = None;
        self.core.commit(&edit)?;
        let bytes = written.iter().map(|entry| entry.length).sum::<u64>();
        let parts: Vec<_> = written.into_iter().map(|entry| self.core.file_handle(entry)).collect();
        let mut state = self.core.state.lock();
        state.land(self.cut.lo);
        state.written.flushed_bytes += bytes;
        state.written.events += 1;
        state.version = Arc::new(state.version.replace(&[], parts));
        drop(state);
        let batches = std::mem::take(&mut self.cut.batches).into_iter();
        Ok(batches.filter_map(|(_, batch)| Arc::into_inner(batch)).collect())
    }

    fn take_back(&self, bulk: Bulk) -> Result<()> {
        let core = self.core;
        for (day, path) in &self.begun {
            match core.disk.remove_file(path) {
                Err(e) if is_not_found(&e) => {}
                removed => removed.and_then(|()| core.disk.sync_dir(&day_dir(&core.root, *day)))?,
            }
        }
        core.commit(&Edit::of(Change::DropBulk { cut_lo: bulk.cut_lo }))
    }
}

impl Drop for BulkCut<'_> {
    fn drop(&mut self) {
        if let Some(bulk) = self.announced {
            // What cannot be taken back now is when the store is opened again.
            let _ = self.take_back(bulk);
        }
        self.core.state.lock().land(self.cut.lo);
        self.core.changed.notify_all();
    }
}
