//! The way from parts to batches: which blocks to look at, in which order, and what to read of
//! them.
//!
//! * [`PartSet`]: the parts that a query sees.
//! * [`Frontier`]: level by level from parts over index blocks to blocks, newest (or oldest)
//!   first, shared by the workers of a query; what cannot hold a row is never expanded.
//! * [`BlockScan`] and [`StripSource`]: columns of a block and of one strip of it, each read when
//!   it is first asked for.
//! * [`Scanner`]: filters a block strip by strip and makes batches of the rows that are left.
//!
//! Invariants: pruning only ever leaves out rows that the filter rejects; the rows that come out
//! do not depend on layout, workers or the order of blocks.

mod block;
mod bound;
mod deferred;
mod facts;
mod frontier;
mod mapped;
mod mapper;
mod names;
mod runs;
mod scanner;
mod settle;
mod stored;
mod streams;
mod strip;
#[cfg(test)]
mod template_tests;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
mod words;

use std::fmt::Debug;
use std::sync::Arc;

pub(crate) use bound::{Direction, TimeBound};
pub(crate) use frontier::ScanTask;
pub(crate) use frontier::{Frontier, ScanFilter};
pub(crate) use mapped::{TextFn, TextMap};
pub(crate) use names::names_from_headers;
pub(crate) use scanner::{ScanOutput, Scanner};
pub(crate) use stored::values_at;
pub(crate) use streams::{StreamSet, visit_stream};

use super::damage::Unit;
use crate::error::{Corruption, Result};
use crate::part::{PartCache, PartReader, ReadContext, ReadStats};
use crate::query::context::TimeRange;
use crate::record::Timestamp;

/// What is known of a part without opening it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PartBounds {
    /// The number of rows.
    pub(crate) rows: u64,
    /// The earliest time in ns.
    pub(crate) min_time: i64,
    /// The latest time in ns.
    pub(crate) max_time: i64,
    /// What the order of the part's first row counts from.
    pub(crate) cut_lo: u64,
}

impl PartBounds {
    /// The UTC day of all rows.
    pub(crate) fn day(&self) -> i32 {
        Timestamp::from_nanos(self.min_time).day()
    }
}

/// The parts that a query sees: those of files, of memory and of the buffer.
pub(crate) trait PartSet: Send + Sync + Debug {
    /// The number of parts.
    fn len(&self) -> usize;

    /// What is known of part `i` without opening it; `None` past the end.
    fn bounds(&self, i: usize) -> Option<PartBounds>;

    /// Part `i`, opened on first use.
    ///
    /// # Errors
    /// Those of opening it.
    fn reader(&self, i: usize) -> Result<Arc<PartReader>>;

    /// Where decoded units of parts are kept from query to query.
    fn cache(&self) -> Option<&dyn PartCache> {
        None
    }

    /// What a worker of a query reads parts with.
    fn read_context<'a>(&'a self, stats: &'a ReadStats) -> ReadContext<'a> {
        let cx = ReadContext::new(stats);
        match self.cache() {
            Some(cache) => cx.with_cache(cache),
            None => cx,
        }
    }

    /// What is known to be lost of the rows of a range of time.
    fn lost(&self, range: TimeRange) -> Vec<Lost> {
        let _ = range;
        Vec::new()
    }
}

/// Rows that no part holds any more.
#[derive(Debug, Clone)]
pub(crate) struct Lost {
    /// What is damaged or missing.
    pub(crate) damage: Corruption,
    /// Tells it from other units, and the number of its rows.
    pub(crate) unit: Unit,
}
