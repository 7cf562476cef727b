//! LAYER 5: what happens to rows between the scan and the caller.
//!
//! A [`Stage`] is a compiled pipe. [`RowPipe`]s look at one batch at a time and run in the scan's
//! workers; [`Collector`]s gather all rows, in one partial state per worker, and give their rows
//! at the end; [`Appendix`] adds rows after the last one.
//!
//! Invariants: the answer does not depend on how rows are cut into batches, on the form of their
//! columns, or on the worker that saw them. Rows that come from storage carry their canonical
//! place and are taken in that order where order matters; other rows are taken as they arrive.
//! A blocking pipe gives its rows away in an order of its own, without places.

mod collapse;
mod columns;
mod compile;
mod condition;
mod discover;
mod extract;
mod format;
mod join;
mod limit;
#[cfg(test)]
mod limit_tests;
mod math;
mod pack;
mod pattern_text;
mod patterns;
mod quoted;
mod report;
mod running;
mod sample;
mod sort;
mod stream_context;
mod syslog;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
mod text;
mod transform;
mod uniq;
mod unpack;
mod unroll;

use std::any::Any;

pub(crate) use collapse::{collapse_nums, name_groups};
pub(crate) use compile::compile_pipe;
pub(crate) use condition::{Condition, selected};
pub(crate) use pattern_text::{mask_words, name_places};
pub(crate) use transform::map_column;

use super::batch::{Batch, MAX_BATCH_ROWS};
use super::context::{ExecContext, Flow};
use crate::error::Result;

/// Takes batches; says whether it wants more.
pub(crate) type Sink<'s> = dyn FnMut(Batch) -> Result<Flow> + 's;

/// A pipe that looks at one batch at a time and keeps nothing.
pub(crate) trait RowPipe: Send + Sync {
    /// Hands the rows that come of `batch` to `out`, in none, one or several batches.
    fn apply(&self, ctx: &ExecContext<'_>, batch: Batch, out: &mut Sink<'_>) -> Result<Flow>;
}

/// A pipe that needs all rows before it can answer.
pub(crate) trait Collector: Any + Send {
    /// Takes rows.
    fn push(&mut self, ctx: &ExecContext<'_>, batch: Batch) -> Result<Flow>;

    /// An empty state of the same pipe, for another worker.
    fn fork(&self) -> Box<dyn Collector>;

    /// Takes over the state of another worker, made by [`fork`](Collector::fork). Rows without
    /// places count as arriving after those of `self`.
    fn absorb(&mut self, ctx: &ExecContext<'_>, other: Box<dyn Collector>) -> Result<()>;

    /// Hands out the answer.
    fn finish(self: Box<Self>, ctx: &ExecContext<'_>, out: &mut Sink<'_>) -> Result<()>;
}

/// A pipe that lets all rows pass and adds some at the end.
pub(crate) trait Appendix: Send + Sync {
    /// Hands out the added rows; called once, after the last batch has passed.
    fn append(&self, ctx: &ExecContext<'_>, out: &mut Sink<'_>) -> Result<Flow>;
}

/// A compiled pipe.
pub(crate) enum Stage {
    /// Works batch by batch.
    Row(Box<dyn RowPipe>),
    /// Works on all rows together.
    Collect(Box<dyn Collector>),
    /// Adds rows at the end.
    Append(Box<dyn Appendix>),
}

/// Sends a batch through row pipes.
pub(crate) fn run_rows(
    pipes: &[&dyn RowPipe],
    ctx: &ExecContext<'_>,
    batch: Batch,
    out: &mut Sink<'_>,
) -> Result<Flow> {
    match pipes.split_first() {
        None => out(batch),
        Some((first, rest)) => {
            // What the pipe before has made; columns from storage share their dictionaries.
            ctx.check_texts("a pipe", 0, batch.heap_bytes() / 4)?;
            first.apply(ctx, batch, &mut |batch| run_rows(rest, ctx, batch, out))
        }
    }
}

/// The state of another worker as the type it has.
pub(crate) fn same_kind<T: Collector>(other: Box<dyn Collector>) -> Option<Box<T>> {
    let other: Box<dyn Any> = other;
    let same = other.downcast::<T>().ok();
    debug_assert!(same.is_some(), "a collector absorbs what it forked");
    same
}

/// Hands out rows in batches of at most [`MAX_BATCH_ROWS`].
pub(crate) fn emit(batch: &Batch, out: &mut Sink<'_>) -> Result<Flow> {
    let mut start = 0;
    while start < batch.rows() {
        if out(batch.slice(start, MAX_BATCH_ROWS))? == Flow::Stop {
            return Ok(Flow::Stop);
        }
        start += MAX_BATCH_ROWS;
    }
    Ok(Flow::Continue)
}
