//! Pipes about the query itself: `query_stats`, `blocks_count`, `block_stats`. Their answers
//! depend on the layout of the store.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::uniq::counts;
use super::{Collector, Sink, emit, same_kind};
use crate::error::Result;
use crate::query::ast::STREAM_FIELD;
use crate::query::batch::Batch;
use crate::query::column::Column;
use crate::query::context::{ExecContext, Flow, Reservation};
use crate::record::TextVec;

/// `query_stats`: one row of counters.
pub(crate) struct QueryStatsCollector {
    started: std::time::Instant,
}

impl QueryStatsCollector {
    /// Starts the watch.
    pub(crate) fn new() -> QueryStatsCollector {
        QueryStatsCollector { started: std::time::Instant::now() }
    }
}

impl Collector for QueryStatsCollector {
    fn push(&mut self, ctx: &ExecContext<'_>, _batch: Batch) -> Result<Flow> {
        ctx.check()?;
        Ok(Flow::Continue)
    }

    fn fork(&self) -> Box<dyn Collector> {
        Box::new(QueryStatsCollector { started: self.started })
    }

    fn absorb(&mut self, _ctx: &ExecContext<'_>, other: Box<dyn Collector>) -> Result<()> {
        same_kind::<QueryStatsCollector>(other);
        Ok(())
    }

    fn finish(self: Box<Self>, ctx: &ExecContext<'_>, out: &mut Sink<'_>) -> Result<()> {
        let c = ctx.counters;
        let get = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
        let bytes = [
            get(&c.header_bytes),
            get(&c.index_bytes),
            get(&c.filter_bytes),
            get(&c.value_bytes),
            get(&c.time_bytes),
        ];
        let [headers, index, filters, values, times] = bytes;
        let duration = u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let fields = [
            ("BytesReadColumnsHeaders", headers),
            ("BytesReadColumnsHeaderIndexes", index),
            ("BytesReadBloomFilters", filters),
            ("BytesReadValues", values),
            ("BytesReadTimestamps", times),
            ("BytesReadBlockHeaders", headers),
            ("BytesReadTotal", bytes.iter().sum()),
            ("BlocksProcessed", get(&c.blocks)),
            ("RowsProcessed", get(&c.rows)),
            ("RowsFound", get(&c.rows_found)),
            ("ValuesRead", get(&c.values)),
            ("TimestampsRead", get(&c.times)),
            ("BytesProcessedUncompressedValues", get(&c.decoded_bytes)),
            ("QueryDurationNsecs", duration),
        ];
        let mut batch = Batch::new(1);
        for (name, value) in fields {
            batch.set_column(Arc::from(name), counts(std::iter::once(value)));
        }
        emit(&batch, out).map(|_| ())
    }
}

/// `blocks_count`: the number of batches that the scan gave.
pub(crate) struct BlocksCountCollector {
    result: Arc<str>,
    blocks: u64,
}

impl BlocksCountCollector {
    /// No blocks yet.
    pub(crate) fn new(result: &str) -> BlocksCountCollector {
        BlocksCountCollector { result: Arc::from(result), blocks: 0 }
    }
}

impl Collector for BlocksCountCollector {
    fn push(&mut self, _ctx: &ExecContext<'_>, batch: Batch) -> Result<Flow> {
        self.blocks += u64::from(batch.rows() > 0);
        Ok(Flow::Continue)
    }

    fn fork(&self) -> Box<dyn Collector> {
        Box::new(BlocksCountCollector::new(&self.result))
    }

    fn absorb(&mut self, _ctx: &ExecContext<'_>, other: Box<dyn Collector>) -> Result<()> {
        self.blocks += same_kind::<BlocksCountCollector>(other).map_or(0, |o| o.blocks);
        Ok(())
    }

    fn finish(self: Box<Self>, _ctx: &ExecContext<'_>, out: &mut Sink<'_>) -> Result<()> {
        let mut batch = Batch::new(1);
        batch.set_column(self.result.clone(), counts(std::iter::once(self.blocks)));
        emit(&batch, out).map(|_| ())
    }
}

/// `block_stats`: a row per column of each batch that the scan gave.
pub(crate) struct BlockStatsCollector {
    fields: TextVec,
    kinds: TextVec,
    streams: TextVec,
    numbers: [Vec<u64>; 4],
    memory: Reservation,
}

impl BlockStatsCollector {
    /// No blocks yet.
    pub(crate) fn new(ctx: &ExecContext<'_>) -> BlockStatsCollector {
        BlockStatsCollector {
            fields: TextVec::new(),
            kinds: TextVec::new(),
            streams: TextVec::new(),
            numbers: Default::default(),
            memory: ctx.reservation("block_stats"),
        }
    }

    fn charge(&mut self) -> Result<()> {
        let texts = [&self.fields, &self.kinds, &self.streams].map(TextVec::heap_bytes);
        let numbers: usize = self.numbers.iter().map(|n| n.capacity() * 8).sum();
        self.memory.resize(texts.iter().sum::<usize>() + numbers)
    }
}

/// The form of a column, the bytes of its values, and the number and bytes of its dictionary.
fn describe(column: &Column) -> (&'static str, [usize; 3]) {
    match column {
        Column::Const(value) => ("const", [value.len(), 0, 0]),
        Column::Text(values) => ("string", [values.bytes().len(), 0, 0]),
        Column::Codes { codes, dictionary } => {
            ("dict", [codes.len() * 4, dictionary.len(), dictionary.bytes().len()])
        }
        Column::Runs { codes, dictionary, .. } => {
            ("dict", [codes.len() * 4, dictionary.len(), dictionary.bytes().len()])
        }
        Column::Ints { values, .. } => ("int64", [values.len() * 8, 0, 0]),
        Column::Times(times) => ("time", [times.len() * 8, 0, 0]),
    }
}

impl Collector for BlockStatsCollector {
    fn push(&mut self, ctx: &ExecContext<'_>, batch: Batch) -> Result<Flow> {
        ctx.check()?;
        let mut scratch = Vec::new();
        let stream = batch.value(STREAM_FIELD, 0, &mut scratch).to_vec();
        for (name, column) in batch.columns() {
            let (kind, [bytes, items, item_bytes]) = describe(column);
            self.fields.push(name.as_bytes());
            self.kinds.push(kind.as_bytes());
            self.streams.push(&stream);
            let numbers = [batch.rows(), bytes, items, item_bytes];
            for (list, n) in self.numbers.iter_mut().zip(numbers) {
                list.push(n as u64);
            }
        }
        self.charge()?;
        Ok(Flow::Continue)
    }

    fn fork(&self) -> Box<dyn Collector> {
        Box::new(BlockStatsCollector {
            fields: TextVec::new(),
            kinds: TextVec::new(),
            streams: TextVec::new(),
            numbers: Default::default(),
            memory: self.memory.fork(),
        })
    }

    fn absorb(&mut self, _ctx: &ExecContext<'_>, other: Box<dyn Collector>) -> Result<()> {
        let Some(other) = same_kind::<BlockStatsCollector>(other) else { return Ok(()) };
        self.fields.extend(&other.fields);
        self.kinds.extend(&other.kinds);
        self.streams.extend(&other.streams);
        for (mine, theirs) in self.numbers.iter_mut().zip(other.numbers) {
            mine.extend(theirs);
        }
        self.charge()
    }

    fn finish(self: Box<Self>, _ctx: &ExecContext<'_>, out: &mut Sink<'_>) -> Result<()> {
        let mut batch = Batch::new(self.fields.len());
        batch.set_column(Arc::from("field"), Column::text(self.fields));
        batch.set_column(Arc::from("type"), Column::text(self.kinds));
        let names = ["rows", "values_bytes", "dict_items", "dict_bytes"];
        for (name, list) in names.into_iter().zip(self.numbers) {
            batch.set_column(Arc::from(name), counts(list.into_iter()));
        }
        batch.set_column(Arc::from(STREAM_FIELD), Column::text(self.streams));
        emit(&batch, out).map(|_| ())
    }
}
