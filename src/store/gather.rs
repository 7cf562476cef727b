//! Memory parts of a day -> fewer.
//!
//! Seals by age make a small part every second; merged in memory they cost queries less, and
//! reach the disk as one file. The merged part keeps its id until it is in a file, so that a
//! flush that is tried again writes the same files.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::merge::{Hooks, merge_parts};
use crate::part::{PartReader, Profile, ReadContext, ReadStats, WriterOptions};
use crate::partition::{PartHandle, part_entry};

use super::core::{Core, Role};
use super::state::State;

/// A day with more memory parts gets fewer at once; a flush makes them fewer anyway.
const MEMORY_PARTS: usize = 8;
/// The most parts of one merge.
const INPUTS_MAX: usize = 64;

impl Core {
    /// Makes the memory parts of days fewer that have too many, unless a flush is about to.
    pub(crate) fn gather_crowded(&self) -> Result<()> {
        let Role::Writer { flushing, .. } = &self.role else { return Err(Error::ReadOnly) };
        let crowded = groups(&self.state.lock(), u64::MAX);
        if crowded.iter().all(|group| group.len() <= MEMORY_PARTS) {
            return Ok(());
        }
        match flushing.try_lock() {
            Some(_no_flush) => self.gather(u64::MAX, MEMORY_PARTS + 1),
            None => Ok(()),
        }
    }

    /// Merges each group of at least `least` memory parts with cuts up to `through`. The caller
    /// holds the lock of flushes: nobody else takes memory parts away.
    pub(crate) fn gather(&self, through: u64, least: usize) -> Result<()> {
        let found = groups(&self.state.lock(), through);
        for group in found.iter().filter(|group| group.len() >= least) {
            self.gather_group(group)?;
        }
        Ok(())
    }

    fn gather_group(&self, group: &[Arc<PartHandle>]) -> Result<()> {
        let (Some(first), Some(last)) = (group.first(), group.last()) else { return Ok(()) };
        let readers: Vec<Arc<PartReader>> =
            group.iter().map(|p| p.reader()).collect::<Result<_>>()?;
        let inputs: Vec<&PartReader> = readers.iter().map(AsRef::as_ref).collect();
        // A flush that failed may have left files of these parts, or of what they were made of.
        let ids: Vec<u64> = group.iter().map(|p| p.info().part_id).collect();
        let mut named = ids.clone();
        for part in &inputs {
            let stats = ReadStats::default();
            named.extend(part.inputs(&ReadContext::new(&stats))?);
        }
        let (id, day) = (self.part_id()?, first.info().day);
        let cuts = (first.info().cut_lo, last.info().cut_hi);
        let options =
            WriterOptions { inputs: named, ..self.writer_options(id, day, cuts, Profile::Flush) };
        let check = || if self.is_closed() { Err(Error::Closed) } else { Ok(()) };
        let hooks = Hooks { check: Some(&check), ..Hooks::default() };
        let mut bytes = Vec::new();
        let merged = merge_parts(&inputs, &options, hooks, &mut bytes)?;
        let part = Arc::new(PartHandle::memory(part_entry(&merged.summary), bytes));
        let mut state = self.state.lock();
        state.version = Arc::new(state.version.replace(&ids, [part]));
        Ok(())
    }

    fn is_closed(&self) -> bool {
        self.state.lock().closed
    }
}

/// Memory parts of one day that nothing stands between: no other part, no hole, no cut that has
/// not landed.
fn groups(state: &State, through: u64) -> Vec<Vec<Arc<PartHandle>>> {
    let mut out: Vec<Vec<Arc<PartHandle>>> = Vec::new();
    for (day, parts) in state.version.days() {
        let mut open: Vec<Arc<PartHandle>> = Vec::new();
        for part in parts {
            let info = part.info();
            let apart = open.last().is_some_and(|before| {
                let between = |lo: u64| before.info().cut_hi < lo && lo <= info.cut_hi;
                let mut holes = state.version.holes().iter().filter(|hole| hole.day == day);
                state.in_flight.iter().any(|f| between(f.lo)) || holes.any(|h| between(h.cut_lo))
            });
            let taken = part.is_memory() && info.cut_hi <= through;
            if apart || !taken || open.len() >= INPUTS_MAX {
                out.push(std::mem::take(&mut open));
            }
            if taken {
                open.push(Arc::clone(part));
            }
        }
        out.push(open);
    }
    out.retain(|group| group.len() > 1);
    out
}
