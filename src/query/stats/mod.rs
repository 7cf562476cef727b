//! LAYER 5: aggregation, the functions of the pipe `stats`.
//!
//! A function is a [`StatsState`]: one partial answer per group, fed batch by batch, mergeable.
//! [`collector::StatsCollector`] assigns rows to groups and drives the functions.
//!
//! Invariants: a function sees a list of byte strings, whatever the form of the columns; merging
//! states gives the answer of one state that saw all rows; where rows are picked or listed it is
//! by their [`Place`]. Callers: the pipes.

mod bucket;
mod collector;
mod count;
mod distinct;
mod extreme;
mod histogram;
mod input;
mod pick;
mod quantile;
mod sum;
#[cfg(test)]
mod tests;
mod values;

use std::any::Any;

pub(crate) use bucket::BucketFn;
pub(crate) use collector::StatsCollector;
pub(crate) use input::{FieldList, Input, Part, Place};

use super::ast::StatsFunction;
use super::context::ExecContext;
use crate::error::Result;
use crate::record::parse_number;

/// The partial answers of one function for all groups.
pub(crate) trait StatsState: Any + Send {
    /// Takes the selected rows of a batch. Groups are numbered below `input.group_count()`.
    fn update(&mut self, ctx: &ExecContext<'_>, input: &Input<'_>) -> Result<()>;

    /// An empty state of the same function.
    fn fork(&self) -> Box<dyn StatsState>;

    /// Takes over a state of the same function; `map` gives the group here of each group there.
    fn absorb(
        &mut self,
        ctx: &ExecContext<'_>,
        other: Box<dyn StatsState>,
        map: &[u32],
    ) -> Result<()>;

    /// Called once before the answers are read.
    fn prepare(&mut self, _ctx: &ExecContext<'_>) -> Result<()> {
        Ok(())
    }

    /// Appends the answer for a group; a group that took no row has the function's empty answer.
    fn answer(&mut self, ctx: &ExecContext<'_>, group: u32, out: &mut Vec<u8>);

    /// Bytes of memory held, about.
    fn heap_bytes(&self) -> usize;
}

/// The state of another worker as the type it has.
pub(crate) fn same_state<T: StatsState>(other: Box<dyn StatsState>) -> Option<Box<T>> {
    let other: Box<dyn Any> = other;
    let same = other.downcast::<T>().ok();
    debug_assert!(same.is_some(), "a state absorbs what it forked");
    same
}

/// The state of `group`, made if it is not there yet.
#[inline]
pub(crate) fn slot<T: Default + Clone>(states: &mut Vec<T>, group: u32) -> &mut T {
    let group = group as usize;
    if group >= states.len() {
        states.resize(group + 1, T::default());
    }
    #[expect(clippy::indexing_slicing, reason = "resized above")]
    &mut states[group]
}

/// The group in this state of a group in another one.
#[inline]
pub(crate) fn mapped(map: &[u32], group: usize) -> u32 {
    map.get(group).copied().unwrap_or(0)
}

/// The empty state of a function.
pub(crate) fn compile_function(
    function: &StatsFunction,
    ctx: &ExecContext<'_>,
) -> Box<dyn StatsState> {
    use StatsFunction as F;
    let list = FieldList::new;
    match function {
        F::Any(field) => Box::new(pick::PickField::any(field)),
        F::Avg(fields) => Box::new(sum::SumState::new(list(fields), sum::Reading::Mean)),
        F::Count(fields) => Box::new(count::CountState::new(fields)),
        F::CountEmpty(fields) => Box::new(count::CountEmptyState::new(list(fields))),
        F::CountUniq { fields, limit } => Box::new(distinct::CountUniqState::new(fields, *limit)),
        F::CountUniqHash { fields, limit } => {
            Box::new(distinct::CountHashState::new(fields, *limit))
        }
        F::FieldMax { source, field } => Box::new(pick::PickField::extreme(source, field, true)),
        F::FieldMin { source, field } => Box::new(pick::PickField::extreme(source, field, false)),
        F::Histogram(field) => Box::new(histogram::HistogramState::new(field)),
        F::JsonValues { fields, sort, limit } => {
            Box::new(values::JsonValuesState::new(list(fields), sort, *limit))
        }
        F::Max(fields) => Box::new(extreme::ExtremeState::new(list(fields), true)),
        F::Median(fields) => Box::new(quantile::QuantileState::new(list(fields), 0.5)),
        F::Min(fields) => Box::new(extreme::ExtremeState::new(list(fields), false)),
        F::Quantile { phi, fields } => {
            let phi = parse_number(phi.text.as_bytes()).unwrap_or(0.0);
            Box::new(quantile::QuantileState::new(list(fields), phi))
        }
        F::Rate => Box::new(count::CountState::rate(rate_seconds(ctx))),
        F::RateSum(fields) => {
            let reading = sum::Reading::PerSecond(rate_seconds(ctx));
            Box::new(sum::SumState::new(list(fields), reading))
        }
        F::RowAny(fields) => Box::new(pick::PickRow::any(list(fields))),
        F::RowMax { source, fields } => {
            Box::new(pick::PickRow::extreme(source, list(fields), true))
        }
        F::RowMin { source, fields } => {
            Box::new(pick::PickRow::extreme(source, list(fields), false))
        }
        F::Stddev(fields) => Box::new(sum::StddevState::new(list(fields))),
        F::Sum(fields) => Box::new(sum::SumState::new(list(fields), sum::Reading::Sum)),
        F::SumLen(fields) => Box::new(count::SumLenState::new(list(fields))),
        F::UniqValues { fields, limit } => {
            Box::new(distinct::UniqValuesState::new(list(fields), *limit))
        }
        F::Values { fields, limit } => Box::new(values::ValuesState::new(list(fields), *limit)),
    }
}

/// The length of the query's time range; 1 without a closed range, so that rates are counts.
fn rate_seconds(ctx: &ExecContext<'_>) -> f64 {
    ctx.time_range.map_or(1.0, |range| range.seconds())
}
