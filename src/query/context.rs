//! What a running query hands to its stages: limits, clock, memory, and the way back to storage.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use super::ast::Query;
use super::batch::Batch;
use super::fields::FieldSet;
use super::position::{RowPos, StreamTexts};
use crate::error::{Error, Result};
use crate::record::{TextVec, Timestamp, Zone};

/// Call [`ExecContext::check`] at least once for this many rows.
pub(crate) const CHECK_ROWS: usize = 4_096;

/// Everything a stage of a running query may ask for. Shared by all workers of the query.
pub(crate) struct ExecContext<'a> {
    /// The time at which the query runs, the same for all its parts.
    pub(crate) now: Timestamp,
    /// The zone of times and calendar units that name none.
    pub(crate) zone: Zone,
    /// The memory that collected state is charged to.
    pub(crate) memory: Arc<QueryMemory>,
    /// Says when the query has to end.
    pub(crate) stop: Stop,
    /// The work done so far.
    pub(crate) counters: &'a QueryCounters,
    /// The query's own top-level range of `_time`, if closed at both ends.
    pub(crate) time_range: Option<TimeRange>,
    /// Seeds `sample` and `rand()`.
    pub(crate) seed: u64,
    /// The streams that row positions number.
    pub(crate) streams: &'a dyn StreamTexts,
    /// Runs subqueries.
    pub(crate) subqueries: &'a dyn SubqueryRunner,
    /// Reads the neighbours of rows.
    pub(crate) neighbours: &'a dyn StreamContextSource,
}

/// Says whether a query may go on; clones say the same.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stop {
    /// Set by the holder of the query to end it.
    pub(crate) cancelled: Arc<AtomicBool>,
    /// When the query has to end.
    pub(crate) deadline: Option<Instant>,
}

impl Stop {
    /// Whether the query may go on.
    ///
    /// # Errors
    /// [`Error::Cancelled`] or [`Error::DeadlineExceeded`].
    pub(crate) fn check(&self) -> Result<()> {
        if self.cancelled.load(Ordering::Relaxed) {
            return Err(Error::Cancelled);
        }
        match self.deadline {
            Some(deadline) if Instant::now() >= deadline => Err(Error::DeadlineExceeded),
            _ => Ok(()),
        }
    }
}

/// Nanoseconds since the epoch, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TimeRange {
    /// First.
    pub(crate) min: i64,
    /// Last.
    pub(crate) max: i64,
}

impl TimeRange {
    /// The length of the range; at least a nanosecond.
    pub(crate) fn seconds(self) -> f64 {
        let nanos = i128::from(self.max) - i128::from(self.min) + 1;
        #[expect(clippy::cast_precision_loss, reason = "a rate is a rounded number anyway")]
        let nanos = nanos.max(1) as f64;
        nanos / 1e9
    }
}

/// Runs a query inside a query, under the same limits.
pub(crate) trait SubqueryRunner: Sync {
    /// The rows of `query`, in its order.
    fn run(&self, query: &Query, ctx: &ExecContext<'_>) -> Result<Vec<Batch>>;
}

/// Reads rows next to rows.
pub(crate) trait StreamContextSource: Sync {
    /// Visits all rows of the stream of `hit` with times in `range`, deleted ones left out, in
    /// ascending canonical order. The batches have positions and the columns of `fields` (and
    /// may have more); times are shifted as those of the query's rows are. Ends early on
    /// [`Flow::Stop`].
    fn visit_stream(
        &self,
        ctx: &ExecContext<'_>,
        hit: RowPos,
        range: TimeRange,
        fields: &FieldSet,
        visit: &mut dyn FnMut(Batch) -> Result<Flow>,
    ) -> Result<()>;

    /// The values of a field in some stored rows; empty where they are lost.
    fn values_at(&self, field: &str, rows: &[RowPos]) -> Result<TextVec>;
}

/// Whether a stage wants more rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flow {
    /// Yes.
    Continue,
    /// No further row can change the answer.
    Stop,
}

/// Counts of work done by a query; see the pipe `query_stats`.
#[derive(Debug, Default)]
pub(crate) struct QueryCounters {
    /// Bytes read for headers of blocks.
    pub(crate) header_bytes: AtomicU64,
    /// Bytes read for index blocks and metaindexes.
    pub(crate) index_bytes: AtomicU64,
    /// Bytes read for membership filters.
    pub(crate) filter_bytes: AtomicU64,
    /// Bytes read for values.
    pub(crate) value_bytes: AtomicU64,
    /// Bytes read for times.
    pub(crate) time_bytes: AtomicU64,
    /// Blocks whose rows were looked at.
    pub(crate) blocks: AtomicU64,
    /// Rows in those blocks.
    pub(crate) rows: AtomicU64,
    /// Rows that passed the query's filter.
    pub(crate) rows_found: AtomicU64,
    /// Values decoded.
    pub(crate) values: AtomicU64,
    /// Times decoded.
    pub(crate) times: AtomicU64,
    /// Bytes of decoded values.
    pub(crate) decoded_bytes: AtomicU64,
    /// How often it was asked whether the query may go on.
    #[cfg(test)]
    pub(crate) checks: AtomicU64,
}

/// The memory that a query may hold at a time.
#[derive(Debug)]
pub(crate) struct QueryMemory {
    limit: u64,
    used: AtomicU64,
}

impl QueryMemory {
    /// At most `limit` bytes.
    pub(crate) fn new(limit: u64) -> Arc<QueryMemory> {
        Arc::new(QueryMemory { limit, used: AtomicU64::new(0) })
    }

    /// The bytes reserved now.
    #[cfg(test)]
    pub(crate) fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    fn reserve(&self, what: &'static str, bytes: u64) -> Result<()> {
        let fits = |used: u64| used.checked_add(bytes).filter(|&sum| sum <= self.limit);
        match self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits) {
            Ok(_) => Ok(()),
            Err(_) => Err(Error::MemoryLimit { what, limit_bytes: self.limit }),
        }
    }
}

/// A share of a query's memory, given back when dropped.
#[derive(Debug)]
pub(crate) struct Reservation {
    memory: Arc<QueryMemory>,
    what: &'static str,
    bytes: u64,
}

impl Reservation {
    /// Makes the share `bytes` large. Small growth is taken in steps, so that calling this often
    /// is cheap.
    ///
    /// # Errors
    /// [`Error::MemoryLimit`] if the query would hold more than it may.
    pub(crate) fn resize(&mut self, bytes: usize) -> Result<()> {
        const STEP: u64 = 16 * 1024;
        let wanted = (bytes as u64).next_multiple_of(STEP);
        if wanted > self.bytes {
            self.memory.reserve(self.what, wanted - self.bytes)?;
        } else {
            self.memory.used.fetch_sub(self.bytes - wanted, Ordering::Relaxed);
        }
        self.bytes = wanted;
        Ok(())
    }

    /// An empty share of the same memory.
    pub(crate) fn fork(&self) -> Reservation {
        Reservation { memory: self.memory.clone(), what: self.what, bytes: 0 }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.memory.used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

impl ExecContext<'_> {
    /// An empty share of the query's memory for `what`, a pipe's name.
    pub(crate) fn reservation(&self, what: &'static str) -> Reservation {
        Reservation { memory: self.memory.clone(), what, bytes: 0 }
    }

    /// Whether the query may go on.
    ///
    /// # Errors
    /// [`Error::Cancelled`] or [`Error::DeadlineExceeded`].
    pub(crate) fn check(&self) -> Result<()> {
        #[cfg(test)]
        self.counters.checks.fetch_add(1, Ordering::Relaxed);
        self.stop.check()
    }

    /// Calls [`check`](ExecContext::check) when `row` ends a run of [`CHECK_ROWS`].
    #[inline]
    pub(crate) fn check_row(&self, row: usize) -> Result<()> {
        if row % CHECK_ROWS == CHECK_ROWS - 1 { self.check() } else { Ok(()) }
    }

    /// As [`check_row`](ExecContext::check_row), for a pipe `what` that makes one text a row: the
    /// texts of a batch may take a quarter of the query's memory, since those of several pipes
    /// are held at a time.
    ///
    /// # Errors
    /// Those of [`check`](ExecContext::check), and [`Error::MemoryLimit`].
    #[inline]
    pub(crate) fn check_texts(&self, what: &'static str, row: usize, bytes: usize) -> Result<()> {
        if bytes as u64 > self.memory.limit / 4 {
            return Err(Error::MemoryLimit { what, limit_bytes: self.memory.limit });
        }
        self.check_row(row)
    }

    /// Compares in canonical order.
    pub(crate) fn cmp_positions(&self, a: &RowPos, b: &RowPos) -> std::cmp::Ordering {
        a.cmp_with(b, self.streams)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_come_back_and_the_limit_holds() {
        let memory = QueryMemory::new(64 * 1024);
        let share = || Reservation { memory: memory.clone(), what: "x", bytes: 0 };
        let mut a = share();
        let mut b = share();
        a.resize(40 * 1024).unwrap();
        assert!(matches!(b.resize(32 * 1024), Err(Error::MemoryLimit { what: "x", .. })));
        a.resize(1).unwrap();
        b.resize(32 * 1024).unwrap();
        drop((a, b));
        assert_eq!(memory.used(), 0);
    }
}
