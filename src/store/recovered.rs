//! Rows of the journal that no part holds.

use std::sync::Arc;
use std::time::Duration;

use crate::manifest::ManifestState;
use crate::memory::{Buffer, Cut};
use crate::record::{RowBatch, RowView};

/// Sorts replayed batches into cuts that overlap no part of their days.
///
/// A flush that a crash cut short may have left the parts of some days; they are in use again and
/// cover their days' rows of that cut. What is left of such batches must not share a cut with
/// later rows of those days, so each of them becomes a cut of its own. Bulk parts may lie between
/// two batches, or behind the last: no cut may enclose them, and the buffer must be behind
/// them, since it will grow. What no listed part lies in stays together.
#[derive(Debug, Default)]
pub(crate) struct Recovered {
    /// The cuts of listed parts and holes, of any day, that do not end before the run.
    listed: Vec<(u64, u64)>,
    cuts: Vec<Cut>,
    run: Buffer,
    now: Duration,
}

impl Recovered {
    /// Nothing yet; `now` is the monotonic time.
    pub(crate) fn new(state: &ManifestState, now: Duration) -> Recovered {
        let parts = state.parts().map(|part| (part.cut_lo, part.cut_hi));
        let holes = state.holes().map(|hole| (hole.cut_lo, hole.cut_hi));
        Recovered { listed: parts.chain(holes).collect(), now, ..Recovered::default() }
    }

    /// Adds the next batch of the journal, without the rows that `state` covers.
    pub(crate) fn push(&mut self, state: &ManifestState, sequence: u64, batch: RowBatch) {
        let covers =
            |(i, row): (usize, RowView<'_>)| state.covers(row.time.day(), sequence + i as u64);
        let covered: Vec<bool> = batch.iter().enumerate().map(covers).collect();
        let lost = covered.iter().filter(|c| **c).count();
        let hi = sequence + (covered.len() as u64).saturating_sub(1);
        let lo = self.run.lo().unwrap_or(sequence);
        self.listed.retain(|listed| listed.1 >= lo);
        if lost > 0 || self.listed.iter().any(|listed| listed.0 <= hi) {
            self.cuts.extend(self.run.cut());
        }
        if lost == 0 {
            self.run.push(sequence, Arc::new(batch), self.now);
            return;
        }
        if lost < covered.len() {
            let rest = batch.retain(|i| !covered.get(i).copied().unwrap_or(false));
            let heap_bytes = rest.heap_bytes();
            let batches = vec![(sequence, Arc::new(rest))];
            self.cuts.push(Cut { lo: sequence, hi, batches, heap_bytes });
        }
    }

    /// The number of rows so far.
    pub(crate) fn rows(&self) -> u64 {
        let cuts = self.cuts.iter().flat_map(|c| &c.batches);
        self.run.rows() + cuts.map(|(_, b)| b.len() as u64).sum::<u64>()
    }

    /// The cuts, ascending, and behind them and all parts the last run as a buffer that may grow.
    pub(crate) fn finish(mut self) -> (Vec<Cut>, Buffer) {
        if self.run.lo().is_some_and(|lo| self.listed.iter().any(|listed| listed.1 >= lo)) {
            self.cuts.extend(self.run.cut());
        }
        (self.cuts, self.run)
    }
}
