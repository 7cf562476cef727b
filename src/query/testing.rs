//! A context for tests of stages that need no storage.

use std::sync::atomic::AtomicBool;

use super::ast::Query;
use super::batch::Batch;
use super::context::{
    ExecContext, Flow, QueryCounters, QueryMemory, StreamContextSource, SubqueryRunner, TimeRange,
};
use super::fields::FieldSet;
use super::position::{NoStreams, RowPos};
use crate::error::Result;
use crate::record::{Timestamp, Zone};

struct NoStorage;

impl SubqueryRunner for NoStorage {
    fn run(&self, _: &Query, _: &ExecContext<'_>) -> Result<Vec<Batch>> {
        Ok(Vec::new())
    }
}

impl StreamContextSource for NoStorage {
    fn visit_stream(
        &self,
        _: RowPos,
        _: TimeRange,
        _: &FieldSet,
        _: &mut dyn FnMut(Batch) -> Result<Flow>,
    ) -> Result<()> {
        Ok(())
    }
}

/// Runs `f` with a context that has room, no deadline and no rows in storage.
pub(crate) fn test_context<T>(f: impl FnOnce(&ExecContext<'_>) -> T) -> T {
    let cancelled = AtomicBool::new(false);
    let counters = QueryCounters::default();
    f(&ExecContext {
        now: Timestamp::from_nanos(1_709_640_000_000_000_000),
        zone: Zone::UTC,
        memory: QueryMemory::new(1 << 30),
        deadline: None,
        cancelled: &cancelled,
        counters: &counters,
        time_range: None,
        seed: 1,
        streams: &NoStreams,
        subqueries: &NoStorage,
        neighbours: &NoStorage,
    })
}
