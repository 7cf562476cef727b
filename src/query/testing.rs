//! Rows and contexts for tests of the query room.

use std::sync::Arc;

use super::ast::Query;
use super::batch::Batch;
use super::context::{
    ExecContext, Flow, QueryCounters, QueryMemory, Stop, StreamContextSource, SubqueryRunner,
    TimeRange,
};
use super::fields::FieldSet;
use super::naive;
use super::position::{NoStreams, RowPos};
use super::scan::{PartBounds, PartSet};
use crate::error::Result;
use crate::part::{PartReader, PartSource, Profile, WriterOptions, write_part};
use crate::record::{RowBatchBuilder, StreamKey, TextVec, Timestamp, Zone, stream_text};

struct NoStorage;

impl SubqueryRunner for NoStorage {
    fn run(&self, _: &Query, _: &ExecContext<'_>) -> Result<Vec<Batch>> {
        Ok(Vec::new())
    }
}

impl StreamContextSource for NoStorage {
    fn visit_stream(
        &self,
        _: &ExecContext<'_>,
        _: RowPos,
        _: TimeRange,
        _: &FieldSet,
        _: &mut dyn FnMut(Batch) -> Result<Flow>,
    ) -> Result<()> {
        Ok(())
    }

    fn values_at(&self, _: &str, _: &[RowPos]) -> Result<TextVec> {
        Ok(TextVec::new())
    }
}

/// Runs `f` with a context that has room, no deadline and no rows in storage.
pub(crate) fn test_context<T>(f: impl FnOnce(&ExecContext<'_>) -> T) -> T {
    let counters = QueryCounters::default();
    f(&ExecContext {
        now: Timestamp::from_nanos(1_709_640_000_000_000_000),
        zone: Zone::UTC,
        memory: QueryMemory::new(1 << 30),
        stop: Stop::default(),
        counters: &counters,
        time_range: None,
        seed: 1,
        streams: &NoStreams,
        subqueries: &NoStorage,
        neighbours: &NoStorage,
    })
}

/// A row to be stored.
#[derive(Debug, Clone)]
pub(crate) struct TestRow {
    /// Nanoseconds since 1970; all rows of a test lie on one day.
    pub(crate) time: i64,
    /// Labels of its stream; empty ones are left out.
    pub(crate) labels: Vec<(&'static str, String)>,
    /// Other fields; empty ones are left out.
    pub(crate) fields: Vec<(&'static str, String)>,
}

/// Rows in parts in memory.
#[derive(Debug)]
pub(crate) struct TestParts {
    parts: Vec<(PartBounds, Arc<PartReader>)>,
    rows: Vec<naive::Row>,
}

impl TestParts {
    /// Cuts rows into parts of the given numbers of rows, the last one again and again.
    pub(crate) fn write(
        rows: &[TestRow],
        cuts: &[usize],
        block_rows: u32,
        profile: Profile,
    ) -> TestParts {
        let mut parts = Vec::new();
        let (mut rest, mut cut_lo) = (rows, 0u64);
        for i in 0.. {
            if rest.is_empty() {
                break;
            }
            let cut = cuts[i.min(cuts.len() - 1)].clamp(1, rest.len());
            let (now, later) = rest.split_at(cut);
            parts.push(write_one(now, cut_lo, i as u64, block_rows, profile));
            rest = later;
            cut_lo += cut as u64;
        }
        TestParts { parts, rows: rows.iter().map(naive_row).collect() }
    }

    /// The rows as the naive evaluator takes them, in append order.
    pub(crate) fn rows(&self) -> &[naive::Row] {
        &self.rows
    }
}

impl PartSet for TestParts {
    fn len(&self) -> usize {
        self.parts.len()
    }

    fn bounds(&self, i: usize) -> Option<PartBounds> {
        self.parts.get(i).map(|(bounds, _)| *bounds)
    }

    fn reader(&self, i: usize) -> Result<Arc<PartReader>> {
        Ok(self.parts[i].1.clone())
    }
}

fn write_one(
    rows: &[TestRow],
    cut_lo: u64,
    part_id: u64,
    block_rows: u32,
    profile: Profile,
) -> (PartBounds, Arc<PartReader>) {
    let mut builder = RowBatchBuilder::new();
    let mut streams: Vec<(StreamKey, u32)> = Vec::new();
    for row in rows {
        let labels = row.labels.iter().filter(|(_, v)| !v.is_empty());
        let labels = labels.map(|(n, v)| ((*n).to_owned(), v.clone().into_bytes()));
        let key = StreamKey::new(labels);
        let known = streams.iter().find(|(k, _)| *k == key).map(|(_, number)| *number);
        let stream = known.unwrap_or_else(|| {
            let number = builder.add_stream(Arc::new(key.clone()));
            streams.push((key, number));
            number
        });
        for (name, value) in row.fields.iter().filter(|(_, v)| !v.is_empty()) {
            let name = builder.name_id(name);
            builder.push_field(name, value.as_bytes());
        }
        builder.finish_row(Timestamp::from_nanos(row.time), stream);
    }
    let batch = builder.finish();
    let cuts = (cut_lo, cut_lo + rows.len() as u64 - 1);
    let day = Timestamp::from_nanos(rows[0].time).day();
    let mut options = WriterOptions::new(part_id, day.into(), cuts, profile);
    options.block_rows = block_rows;
    let mut bytes = Vec::new();
    let summary = write_part(&[&batch], &options, &mut bytes).unwrap();
    let reader = PartReader::open(PartSource::memory(bytes), None).unwrap();
    let bounds = PartBounds {
        rows: summary.rows,
        min_time: summary.min_time,
        max_time: summary.max_time,
        cut_lo,
    };
    (bounds, Arc::new(reader))
}

fn naive_row(row: &TestRow) -> naive::Row {
    let mut out = naive::Row { time: row.time, ..naive::Row::default() };
    for (name, value) in row.labels.iter().chain(&row.fields) {
        out.set(name, value);
    }
    for (name, value) in row.labels.iter().filter(|(_, v)| !v.is_empty()) {
        out.labels.insert((*name).to_owned(), value.clone());
    }
    let labels = out.labels.iter().map(|(n, v)| (n.as_str(), v.as_bytes()));
    let stream = String::from_utf8(stream_text(labels)).unwrap();
    out.set("_stream", &stream);
    out.set("_time", &Timestamp::from_nanos(row.time).to_string());
    out
}
