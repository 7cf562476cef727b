//! `stream_context`: the rows around each hit in its stream.

use std::collections::VecDeque;
use std::sync::Arc;

use super::{Collector, Sink, same_kind};
use crate::error::Result;
use crate::query::ast::{MESSAGE_FIELD, STREAM_FIELD, STREAM_ID_FIELD, StreamContext, TIME_FIELD};
use crate::query::batch::Batch;
use crate::query::column::Column;
use crate::query::context::{ExecContext, Flow, Reservation, TimeRange};
use crate::query::fields::FieldSet;
use crate::query::position::RowPos;
use crate::query::sorting::sort_checked;
use crate::record::parse_rfc3339;

/// How far to look without `time_window`: an hour.
const WINDOW: i64 = 3_600_000_000_000;
/// Rows are handed out in batches of about this many.
const CHUNK_ROWS: usize = 4_096;

/// Gathers the places of the hits; the neighbours are read at the end.
pub(crate) struct StreamContextCollector {
    plan: Arc<Plan>,
    hits: Vec<RowPos>,
    memory: Reservation,
}

struct Plan {
    before: usize,
    after: usize,
    window: i64,
    fields: FieldSet,
}

impl StreamContextCollector {
    /// The empty state; `needed` are the fields that later stages read.
    pub(crate) fn new(
        plan: &StreamContext,
        needed: &FieldSet,
        ctx: &ExecContext<'_>,
    ) -> StreamContextCollector {
        let mut fields = needed.clone();
        for name in [TIME_FIELD, STREAM_FIELD, STREAM_ID_FIELD] {
            fields.insert(name);
        }
        let plan = Plan {
            before: usize::try_from(plan.before).unwrap_or(usize::MAX),
            after: usize::try_from(plan.after).unwrap_or(usize::MAX),
            window: plan.time_window.as_ref().map_or(WINDOW, |d| d.nanos),
            fields,
        };
        let memory = ctx.reservation("stream_context");
        StreamContextCollector { plan: Arc::new(plan), hits: Vec::new(), memory }
    }
}

impl Collector for StreamContextCollector {
    fn push(&mut self, ctx: &ExecContext<'_>, batch: Batch) -> Result<Flow> {
        ctx.check()?;
        self.hits.extend_from_slice(batch.positions().unwrap_or(&[]));
        self.memory.resize(2 * self.hits.capacity() * size_of::<RowPos>())?;
        Ok(Flow::Continue)
    }

    fn fork(&self) -> Box<dyn Collector> {
        let (plan, memory) = (self.plan.clone(), self.memory.fork());
        Box::new(StreamContextCollector { plan, hits: Vec::new(), memory })
    }

    fn absorb(&mut self, _ctx: &ExecContext<'_>, other: Box<dyn Collector>) -> Result<()> {
        if let Some(other) = same_kind::<StreamContextCollector>(other) {
            self.hits.extend_from_slice(&other.hits);
        }
        self.memory.resize(2 * self.hits.capacity() * size_of::<RowPos>())
    }

    fn finish(mut self: Box<Self>, ctx: &ExecContext<'_>, out: &mut Sink<'_>) -> Result<()> {
        let mut printer = Printer::new(ctx, out);
        sort_checked(&mut self.hits, ctx, |a, b| ctx.cmp_positions(a, b))?;
        // Streams in the order of their first hits.
        let mut streams: Vec<Vec<RowPos>> = Vec::new();
        let mut index = std::collections::HashMap::new();
        for (row, hit) in self.hits.iter().enumerate() {
            ctx.check_row(row)?;
            let text = ctx.streams.stream_text(hit.part, hit.stream);
            let at = *index.entry(text).or_insert(streams.len());
            match streams.get_mut(at) {
                Some(list) => list.push(*hit),
                None => streams.push(vec![*hit]),
            }
        }
        for hits in &streams {
            ctx.check()?;
            if self.print_stream(ctx, hits, &mut printer)? == Flow::Stop {
                return Ok(());
            }
        }
        printer.end()
    }
}

impl StreamContextCollector {
    fn print_stream(
        &self,
        ctx: &ExecContext<'_>,
        hits: &[RowPos],
        printer: &mut Printer<'_, '_, '_>,
    ) -> Result<Flow> {
        let (Some(first), Some(last)) = (hits.first(), hits.last()) else {
            return Ok(Flow::Continue);
        };
        let range = TimeRange {
            min: first.time.saturating_sub(self.plan.window),
            max: last.time.saturating_add(self.plan.window),
        };
        let mut walk = Walk {
            plan: &self.plan,
            hits,
            next_hit: 0,
            row: 0,
            earlier: VecDeque::new(),
            open: VecDeque::new(),
        };
        let mut flow = Flow::Continue;
        ctx.neighbours.visit_stream(ctx, *first, range, &self.plan.fields, &mut |batch| {
            ctx.check()?;
            flow = walk.take(ctx, Arc::new(batch), printer)?;
            let done = walk.next_hit == hits.len() && walk.open.is_empty();
            Ok(if flow == Flow::Stop || done { Flow::Stop } else { Flow::Continue })
        })?;
        Ok(flow)
    }
}

/// The way through the rows of one stream, oldest first. Each row goes into the chunk of the
/// first hit that it is near to.
struct Walk<'a> {
    plan: &'a Plan,
    hits: &'a [RowPos],
    next_hit: usize,
    /// The number of rows seen.
    row: usize,
    /// The last rows that no chunk has taken.
    earlier: VecDeque<(Arc<Batch>, u32)>,
    /// Hits whose later rows are still being taken: number of the hit, and of its last row.
    open: VecDeque<(usize, usize)>,
}

impl Walk<'_> {
    fn take(
        &mut self,
        ctx: &ExecContext<'_>,
        batch: Arc<Batch>,
        printer: &mut Printer<'_, '_, '_>,
    ) -> Result<Flow> {
        for (row, pos) in (0..).zip(batch.positions().unwrap_or(&[])) {
            let hit = self.hits.get(self.next_hit);
            let is_hit = hit.is_some_and(|h| ctx.cmp_positions(h, pos).is_eq());
            while self.open.front().is_some_and(|(_, end)| *end < self.row) {
                self.open.pop_front();
            }
            if is_hit {
                self.open.push_back((self.next_hit, self.row.saturating_add(self.plan.after)));
                self.next_hit += 1;
            }
            match self.open.front() {
                Some((chunk, _)) => {
                    for (batch, row) in self.earlier.drain(..) {
                        printer.print(*chunk, &batch, row)?;
                    }
                    if printer.print(*chunk, &batch, row)? == Flow::Stop {
                        return Ok(Flow::Stop);
                    }
                }
                None => {
                    self.earlier.push_back((batch.clone(), row));
                    if self.earlier.len() > self.plan.before {
                        self.earlier.pop_front();
                    }
                }
            }
            self.row += 1;
        }
        Ok(Flow::Continue)
    }
}

/// Prints rows, and a row of dashes behind each chunk if there is more than one.
struct Printer<'a, 'o, 'c> {
    out: &'a mut Sink<'o>,
    ctx: &'a ExecContext<'c>,
    batches: Vec<Arc<Batch>>,
    rows: Vec<(u32, u32)>,
    /// The chunk of the last row.
    chunk: Option<(Arc<[u8]>, usize)>,
    chunks: usize,
    last: Option<(Arc<Batch>, u32)>,
}

impl<'a, 'o, 'c> Printer<'a, 'o, 'c> {
    fn new(ctx: &'a ExecContext<'c>, out: &'a mut Sink<'o>) -> Printer<'a, 'o, 'c> {
        Printer {
            out,
            ctx,
            batches: Vec::new(),
            rows: Vec::new(),
            chunk: None,
            chunks: 0,
            last: None,
        }
    }

    fn print(&mut self, chunk: usize, batch: &Arc<Batch>, row: u32) -> Result<Flow> {
        let mut scratch = Vec::new();
        let stream = batch.value(STREAM_FIELD, row as usize, &mut scratch);
        let same = self.chunk.as_ref().is_some_and(|(s, c)| *c == chunk && **s == *stream);
        if !same {
            let stream = Arc::from(stream);
            if self.chunks > 0 {
                self.dashes();
            }
            self.chunks += 1;
            self.chunk = Some((stream, chunk));
        }
        self.add(batch.clone(), row);
        self.last = Some((batch.clone(), row));
        if self.rows.len() >= CHUNK_ROWS { self.hand_out() } else { Ok(Flow::Continue) }
    }

    fn add(&mut self, batch: Arc<Batch>, row: u32) {
        if !self.batches.last().is_some_and(|b| Arc::ptr_eq(b, &batch)) {
            self.batches.push(batch);
        }
        let index = u32::try_from(self.batches.len() - 1).unwrap_or(u32::MAX);
        self.rows.push((index, row));
    }

    /// A row of dashes, a nanosecond after the last row.
    fn dashes(&mut self) {
        let Some((batch, last)) = &self.last else { return };
        let mut dashes = Batch::new(1);
        for name in [STREAM_FIELD, STREAM_ID_FIELD] {
            if let Some(column) = batch.column(name) {
                dashes.set_column(Arc::from(name), column.gather(&[*last]));
            }
        }
        let mut scratch = Vec::new();
        let time = batch.value(TIME_FIELD, *last as usize, &mut scratch);
        if let Some(time) = parse_rfc3339(time) {
            let after = vec![time.as_nanos().saturating_add(1)];
            dashes.set_column(Arc::from(TIME_FIELD), Column::Times(Arc::new(after)));
        }
        dashes.set_column(Arc::from(MESSAGE_FIELD), Column::constant(b"---"));
        self.add(Arc::new(dashes), 0);
    }

    fn hand_out(&mut self) -> Result<Flow> {
        self.ctx.check()?;
        if self.rows.is_empty() {
            return Ok(Flow::Continue);
        }
        let batches: Vec<Batch> = self.batches.drain(..).map(|b| (*b).clone()).collect();
        let batch = Batch::gather_from(&batches, &std::mem::take(&mut self.rows));
        (self.out)(batch)
    }

    fn end(mut self) -> Result<()> {
        if self.chunks > 1 {
            self.dashes();
        }
        self.hand_out().map(|_| ())
    }
}
