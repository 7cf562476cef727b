//! Pipes that make rows or take them at random: `sample`, `generate_sequence`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::columns::pass;
use super::{Collector, RowPipe, Sink, same_kind};
use crate::codec::Bitmap;
use crate::error::Result;
use crate::query::batch::{Batch, MAX_BATCH_ROWS};
use crate::query::column::Column;
use crate::query::context::{ExecContext, Flow};
use crate::query::position::RowPos;

/// Gives rows numbers that look random: from a seed and the place of the row, or its arrival
/// where it has none. Values play no part, so that unread columns change nothing.
#[derive(Debug, Default)]
pub(crate) struct RowDice {
    arrived: AtomicU64,
}

impl RowDice {
    /// The number of rows that arrived before this batch; call it once for each.
    pub(crate) fn arrive(&self, batch: &Batch) -> u64 {
        self.arrived.fetch_add(batch.rows() as u64, Ordering::Relaxed)
    }
}

/// A number for each row of a batch, `arrived` rows having come before it.
pub(crate) fn roll(batch: &Batch, arrived: u64, seed: u64) -> Vec<u64> {
    let mix = |x: u64| {
        let x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        x ^ (x >> 31)
    };
    let number = |n: u64| mix(n ^ mix(seed.wrapping_add(0x9E37_79B9_7F4A_7C15)));
    match batch.positions() {
        Some(positions) => {
            let place =
                |p: &RowPos| mix(p.time.cast_unsigned() ^ mix(p.order ^ mix(u64::from(p.sub))));
            positions.iter().map(|p| number(place(p))).collect()
        }
        None => {
            let rows = batch.rows() as u64;
            (arrived..arrived.wrapping_add(rows)).map(|n| number(mix(n))).collect()
        }
    }
}

/// `sample`: one row in so many.
pub(crate) struct SamplePipe {
    one_in: u64,
    dice: RowDice,
}

impl SamplePipe {
    /// One row in `one_in`.
    pub(crate) fn new(one_in: u64) -> SamplePipe {
        SamplePipe { one_in: one_in.max(1), dice: RowDice::default() }
    }
}

impl RowPipe for SamplePipe {
    fn apply(&self, ctx: &ExecContext<'_>, batch: Batch, out: &mut Sink<'_>) -> Result<Flow> {
        if self.one_in == 1 {
            return out(batch);
        }
        let dice = roll(&batch, self.dice.arrive(&batch), ctx.seed);
        let taken = |row: usize| dice.get(row).is_some_and(|n| n.is_multiple_of(self.one_in));
        let selection = Bitmap::from_fn(batch.rows(), taken);
        pass(&batch, &selection, out)
    }
}

/// `generate_sequence`: its own rows in place of all others.
pub(crate) struct SequenceCollector {
    count: u64,
}

impl SequenceCollector {
    /// `count` rows.
    pub(crate) fn new(count: u64) -> SequenceCollector {
        SequenceCollector { count }
    }
}

impl Collector for SequenceCollector {
    fn push(&mut self, _ctx: &ExecContext<'_>, _batch: Batch) -> Result<Flow> {
        Ok(Flow::Stop)
    }

    fn fork(&self) -> Box<dyn Collector> {
        Box::new(SequenceCollector::new(self.count))
    }

    fn absorb(&mut self, _ctx: &ExecContext<'_>, other: Box<dyn Collector>) -> Result<()> {
        same_kind::<SequenceCollector>(other);
        Ok(())
    }

    fn finish(self: Box<Self>, ctx: &ExecContext<'_>, out: &mut Sink<'_>) -> Result<()> {
        let mut next = 0u64;
        while next < self.count {
            ctx.check()?;
            let end = self.count.min(next + MAX_BATCH_ROWS as u64);
            let values: Vec<i64> = (next..end).filter_map(|n| i64::try_from(n).ok()).collect();
            let mut batch = Batch::new(values.len());
            batch.set_column(Arc::from("_msg"), Column::ints(values));
            if out(batch)? == Flow::Stop {
                break;
            }
            next = end;
        }
        Ok(())
    }
}
