//! `limit` and `offset`.
//!
//! Rows from storage are counted from the newest in canonical order; rows without places in the
//! order of arrival, after all stored ones.

use std::cmp::Ordering;

use super::{Collector, Sink, same_kind};
use crate::error::Result;
use crate::query::batch::Batch;
use crate::query::context::{ExecContext, Flow, Reservation};
use crate::query::position::RowPos;

/// Keeps or skips the first rows.
pub(crate) struct LimitCollector {
    limit: Option<usize>,
    offset: usize,
    /// Rows with places.
    stored: Vec<Batch>,
    stored_rows: usize,
    /// No row before this one can come out.
    bar: Option<RowPos>,
    /// Rows without places.
    arrived: Vec<Batch>,
    arrived_rows: usize,
    held_bytes: usize,
    memory: Reservation,
}

impl LimitCollector {
    /// `limit n`.
    pub(crate) fn limit(n: u64, ctx: &ExecContext<'_>) -> LimitCollector {
        LimitCollector::new(Some(usize::try_from(n).unwrap_or(usize::MAX)), 0, ctx)
    }

    /// `offset n`.
    pub(crate) fn offset(n: u64, ctx: &ExecContext<'_>) -> LimitCollector {
        LimitCollector::new(None, usize::try_from(n).unwrap_or(usize::MAX), ctx)
    }

    fn new(limit: Option<usize>, offset: usize, ctx: &ExecContext<'_>) -> LimitCollector {
        LimitCollector {
            limit,
            offset,
            stored: Vec::new(),
            stored_rows: 0,
            bar: None,
            arrived: Vec::new(),
            arrived_rows: 0,
            held_bytes: 0,
            memory: ctx.reservation("limit"),
        }
    }

    fn add_stored(&mut self, ctx: &ExecContext<'_>, batch: Batch) -> Result<()> {
        let batch = match self.bar {
            None => batch,
            Some(bar) => {
                let after = |p: &RowPos| ctx.cmp_positions(p, &bar) == Ordering::Greater;
                let positions = batch.positions().unwrap_or(&[]).iter();
                let rows: Vec<u32> =
                    (0..).zip(positions).filter(|(_, p)| after(p)).map(|(i, _)| i).collect();
                if rows.len() == batch.rows() { batch } else { batch.gather(&rows) }
            }
        };
        if batch.rows() == 0 {
            return Ok(());
        }
        self.stored_rows += batch.rows();
        self.held_bytes += batch.heap_bytes();
        self.stored.push(batch);
        if let Some(limit) = self.limit
            && self.stored_rows >= limit.saturating_mul(2).saturating_add(1_024)
        {
            self.cut(ctx, limit);
        }
        self.memory.resize(self.held_bytes)
    }

    /// Keeps the newest rows only.
    fn cut(&mut self, ctx: &ExecContext<'_>, limit: usize) {
        let all = Batch::concat(&self.stored);
        let mut order = newest_first(ctx, &all);
        order.truncate(limit);
        let oldest = order.last().and_then(|r| all.positions()?.get(*r as usize).copied());
        if order.len() == limit {
            self.bar = oldest;
        }
        let kept = all.gather(&order);
        self.stored_rows = kept.rows();
        self.held_bytes =
            kept.heap_bytes() + self.arrived.iter().map(Batch::heap_bytes).sum::<usize>();
        self.stored = vec![kept];
    }

    fn add_arrived(&mut self, batch: Batch) -> Result<()> {
        let batch = match self.limit {
            Some(limit) => batch.slice(0, limit.saturating_sub(self.arrived_rows)),
            None => batch,
        };
        self.arrived_rows += batch.rows();
        if batch.rows() > 0 {
            self.held_bytes += batch.heap_bytes();
            self.arrived.push(batch);
        }
        self.memory.resize(self.held_bytes)
    }

    fn add(&mut self, ctx: &ExecContext<'_>, batch: Batch) -> Result<()> {
        if batch.positions().is_some() {
            self.add_stored(ctx, batch)
        } else {
            self.add_arrived(batch)
        }
    }
}

/// The rows of a batch with places, the last in canonical order first.
fn newest_first(ctx: &ExecContext<'_>, batch: &Batch) -> Vec<u32> {
    let positions = batch.positions().unwrap_or(&[]);
    let mut order: Vec<(u32, &RowPos)> = (0..).zip(positions).collect();
    order.sort_unstable_by(|a, b| ctx.cmp_positions(b.1, a.1));
    order.into_iter().map(|(row, _)| row).collect()
}

impl Collector for LimitCollector {
    fn push(&mut self, ctx: &ExecContext<'_>, batch: Batch) -> Result<Flow> {
        ctx.check()?;
        if self.limit == Some(0) {
            return Ok(Flow::Stop);
        }
        self.add(ctx, batch)?;
        // Rows with places may still come after rows without.
        let full = self.limit.is_some_and(|limit| self.arrived_rows >= limit);
        Ok(if full && self.stored.is_empty() { Flow::Stop } else { Flow::Continue })
    }

    fn fork(&self) -> Box<dyn Collector> {
        Box::new(LimitCollector {
            limit: self.limit,
            offset: self.offset,
            stored: Vec::new(),
            stored_rows: 0,
            bar: None,
            arrived: Vec::new(),
            arrived_rows: 0,
            held_bytes: 0,
            memory: self.memory.fork(),
        })
    }

    fn absorb(&mut self, ctx: &ExecContext<'_>, other: Box<dyn Collector>) -> Result<()> {
        let Some(mut other) = same_kind::<LimitCollector>(other) else { return Ok(()) };
        other.memory.resize(0)?;
        for batch in other.stored.into_iter().chain(other.arrived) {
            self.add(ctx, batch)?;
        }
        Ok(())
    }

    fn finish(self: Box<Self>, ctx: &ExecContext<'_>, out: &mut Sink<'_>) -> Result<()> {
        let mut skip = self.offset;
        let mut left = self.limit.unwrap_or(usize::MAX);
        let mut hand = |batch: Batch| {
            let skipped = skip.min(batch.rows());
            skip -= skipped;
            let batch = batch.slice(skipped, left);
            left -= batch.rows();
            if batch.rows() == 0 { Ok(Flow::Continue) } else { super::emit(&batch, out) }
        };
        let mut flow = Flow::Continue;
        let stored = if self.stored.is_empty() { None } else { Some(Batch::concat(&self.stored)) };
        let stored = stored.map(|all| all.gather(&newest_first(ctx, &all)));
        for batch in stored.into_iter().chain(self.arrived) {
            if flow == Flow::Continue {
                flow = hand(batch)?;
            }
        }
        Ok(())
    }
}
