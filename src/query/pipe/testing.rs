//! Rows in memory, cut into batches and put into column forms at will, and a driver of queries
//! over them: for tests of pipes and aggregations.
#![expect(clippy::cast_possible_truncation, reason = "tests have few rows")]

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Appendix, RowPipe, Sink, Stage, compile_pipe, run_rows};
use crate::codec::Bitmap;
use crate::error::Result;
use crate::query::ast::Query;
use crate::query::batch::Batch;
use crate::query::column::Column;
use crate::query::context::{
    ExecContext, Flow, QueryCounters, QueryMemory, Stop, StreamContextSource, SubqueryRunner,
    TimeRange,
};
use crate::query::fields::{FieldSet, insert_filter_fields};
use crate::query::filter::CompiledFilter;
use crate::query::needed::needed_input;
use crate::query::plan::{Planned, Wanted};
use crate::query::position::{RowPos, StreamTexts};
use crate::record::{TextVec, Timestamp, Zone, parse_canonical_int, parse_rfc3339};
use crate::sync::Mutex;

/// A row: name and value.
pub(crate) type Row = BTreeMap<String, String>;

/// How rows travel.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Layout {
    /// Rows of a batch.
    pub(crate) batch_rows: usize,
    /// Chooses the form of each column of each batch; 0: all are text.
    pub(crate) forms: u64,
    /// Partial states of the first collector.
    pub(crate) workers: usize,
    /// Whether only the needed columns are there.
    pub(crate) prune: bool,
    /// Whether rows have places.
    pub(crate) places: bool,
}

impl Default for Layout {
    fn default() -> Layout {
        Layout { batch_rows: 1_000, forms: 0, workers: 1, prune: false, places: true }
    }
}

/// Rows in memory.
pub(crate) struct Rows {
    rows: Vec<Row>,
    streams: Vec<Arc<[u8]>>,
    layout: Mutex<Layout>,
    limit_bytes: u64,
    now: i64,
    time_range: Option<TimeRange>,
}

impl Rows {
    /// Rows in append order; those with a `_time` get their place from it.
    pub(crate) fn new(rows: Vec<Row>) -> Rows {
        let mut streams: Vec<Arc<[u8]>> =
            rows.iter().map(|r| Arc::from(stream(r).as_bytes())).collect();
        streams.sort();
        streams.dedup();
        let now = 1_709_640_000_000_000_000;
        let layout = Mutex::new(Layout::default());
        Rows { rows, streams, layout, limit_bytes: 1 << 30, now, time_range: None }
    }

    /// Lines of `name=value` pairs with blanks between them; row `i` is of second `i`.
    pub(crate) fn lines(lines: &[&str]) -> Rows {
        let row = |(i, line): (usize, &&str)| {
            let mut row = Row::new();
            row.insert("_time".into(), format!("2024-03-05T00:00:{i:02}Z"));
            for pair in line.split(' ').filter(|p| !p.is_empty()) {
                let (name, value) = pair.split_once('=').unwrap();
                row.insert(name.into(), value.replace('~', " "));
            }
            row
        };
        Rows::new(lines.iter().enumerate().map(row).collect())
    }

    /// A limit of memory.
    pub(crate) fn with_memory(mut self, bytes: u64) -> Rows {
        self.limit_bytes = bytes;
        self
    }

    /// The query's own range of time.
    pub(crate) fn with_range(mut self, min: i64, max: i64) -> Rows {
        self.time_range = Some(TimeRange { min, max });
        self
    }

    /// The answer of a query as rows without empty values.
    pub(crate) fn run(&self, query: &str) -> Vec<Row> {
        self.run_as(query, Layout::default())
    }

    /// The answer in a layout.
    pub(crate) fn run_as(&self, query: &str, layout: Layout) -> Vec<Row> {
        let query: Query = query.parse().unwrap_or_else(|e| panic!("{query}: {e}"));
        self.try_run(&query, layout).unwrap()
    }

    /// The answer of a parsed query.
    pub(crate) fn try_run(&self, query: &Query, layout: Layout) -> Result<Vec<Row>> {
        self.try_run_counted(query, layout).map(|(rows, _)| rows)
    }

    /// The rows, and how often it was asked whether the query may go on.
    pub(crate) fn try_run_counted(&self, query: &Query, layout: Layout) -> Result<(Vec<Row>, u64)> {
        *self.layout.lock() = layout;
        let counters = QueryCounters::default();
        let view = View(self);
        let ctx = ExecContext {
            now: Timestamp::from_nanos(self.now),
            zone: Zone::UTC,
            memory: QueryMemory::new(self.limit_bytes),
            stop: Stop::default(),
            counters: &counters,
            time_range: self.time_range,
            seed: 7,
            streams: &view,
            subqueries: &view,
            neighbours: &view,
        };
        let batches = execute(self, query, &ctx)?;
        assert_eq!(batches.iter().filter(|b| b.rows() == 0).count(), 0, "empty batch");
        let checks = counters.checks.load(std::sync::atomic::Ordering::Relaxed);
        Ok((batches.iter().flat_map(batch_rows).collect(), checks))
    }

    fn place(&self, i: usize) -> RowPos {
        let row = &self.rows[i];
        let time = row.get("_time").and_then(|t| parse_rfc3339(t.as_bytes()));
        let stream = self.streams.iter().position(|s| **s == *stream(row).as_bytes()).unwrap();
        RowPos {
            time: time.map_or(0, |t| t.as_nanos()),
            part: 0,
            stream: stream as u32,
            order: i as u64,
            sub: 0,
        }
    }

    /// Batches of the given rows, in that order.
    fn batches(&self, rows: &[usize], fields: &FieldSet) -> Vec<Batch> {
        let layout = *self.layout.lock();
        let mut out = Vec::new();
        for (n, rows) in rows.chunks(layout.batch_rows).enumerate() {
            let mut batch = Batch::new(rows.len());
            let mut names: Vec<&String> = rows.iter().flat_map(|r| self.rows[*r].keys()).collect();
            names.sort();
            names.dedup();
            for name in names.into_iter().filter(|n| fields.contains(n)) {
                let values: Vec<&str> =
                    rows.iter().map(|r| self.rows[*r].get(name).map_or("", |v| v)).collect();
                let salt = layout.forms.wrapping_mul(n as u64 * 31 + name.len() as u64 + 1);
                batch.set_column(Arc::from(name.as_str()), form(&values, layout.forms, salt));
            }
            if layout.places {
                batch.set_positions(Some(rows.iter().map(|r| self.place(*r)).collect()));
            }
            out.push(batch);
        }
        out
    }
}

fn stream(row: &Row) -> &str {
    row.get("_stream").map_or("{}", |s| s)
}

/// A column of the values in some form that can hold them.
pub(crate) fn form(values: &[&str], forms: u64, salt: u64) -> Column {
    let text = || Column::text(values.iter().map(|v| v.as_bytes()).collect::<TextVec>());
    if forms == 0 {
        return text();
    }
    match salt % 4 {
        0 => Column::compact(values.iter().map(|v| v.as_bytes()).collect()),
        1 => {
            let times: Option<Vec<i64>> = values
                .iter()
                .map(|v| {
                    let time = parse_rfc3339(v.as_bytes())?;
                    (time.to_string() == *v).then_some(time.as_nanos())
                })
                .collect();
            times.map_or_else(text, |t| Column::Times(Arc::new(t)))
        }
        2 => {
            let mut dictionary: Vec<&str> = vec!["unused"];
            let mut codes = Vec::new();
            for value in values {
                let known = dictionary.iter().position(|d| d == value);
                codes.push(known.unwrap_or(dictionary.len()) as u32);
                if known.is_none() {
                    dictionary.push(value);
                }
            }
            let dictionary = dictionary.iter().map(|v| v.as_bytes()).collect();
            Column::codes(codes, Arc::new(dictionary))
        }
        _ => {
            let mut absent = Bitmap::empty(values.len());
            let mut exceptions: Vec<(u32, Box<[u8]>)> = Vec::new();
            let mut number = |(i, v): (usize, &&str)| match parse_canonical_int(v.as_bytes()) {
                Some(n) => n,
                None if v.is_empty() => {
                    absent.set(i);
                    77
                }
                None => {
                    exceptions.push((i as u32, Box::from(v.as_bytes())));
                    -77
                }
            };
            let values = values.iter().enumerate().map(&mut number).collect();
            Column::Ints {
                values: Arc::new(values),
                absent: absent.any().then_some(absent),
                exceptions,
            }
        }
    }
}

/// The rows of a batch, empty values left out.
fn batch_rows(batch: &Batch) -> Vec<Row> {
    let mut scratch = Vec::new();
    let mut row = |i: usize| {
        let mut row = Row::new();
        for (name, column) in batch.columns() {
            let value = String::from_utf8_lossy(column.value(i, &mut scratch)).into_owned();
            if !value.is_empty() {
                row.insert(name.to_string(), value);
            }
        }
        row
    };
    (0..batch.rows()).map(&mut row).collect()
}

struct View<'a>(&'a Rows);

impl StreamTexts for View<'_> {
    fn stream_text(&self, _part: u32, stream: u32) -> Arc<[u8]> {
        self.0.streams[stream as usize].clone()
    }
}

impl SubqueryRunner for View<'_> {
    fn run(&self, query: &Query, ctx: &ExecContext<'_>) -> Result<Vec<Batch>> {
        execute(self.0, query, ctx)
    }
}

impl StreamContextSource for View<'_> {
    fn visit_stream(
        &self,
        _: &ExecContext<'_>,
        hit: RowPos,
        range: TimeRange,
        fields: &FieldSet,
        visit: &mut dyn FnMut(Batch) -> Result<Flow>,
    ) -> Result<()> {
        let mut rows: Vec<(RowPos, usize)> = (0..self.0.rows.len())
            .map(|i| (self.0.place(i), i))
            .filter(|(p, _)| p.stream == hit.stream && (range.min..=range.max).contains(&p.time))
            .collect();
        rows.sort_by_key(|(p, _)| (p.time, p.order));
        let rows: Vec<usize> = rows.into_iter().map(|(_, i)| i).collect();
        for batch in self.0.batches(&rows, fields) {
            if visit(batch)? == Flow::Stop {
                break;
            }
        }
        Ok(())
    }

    fn values_at(&self, _: &str, _: &[RowPos]) -> Result<TextVec> {
        unreachable!("no scan maps messages here")
    }
}

/// Runs a query: filter, row pipes, the first collector with some partial states, the rest.
fn execute(rows: &Rows, query: &Query, ctx: &ExecContext<'_>) -> Result<Vec<Batch>> {
    let layout = *rows.layout.lock();
    let mut needed = vec![FieldSet::all()];
    for pipe in query.pipes.iter().rev() {
        let input = needed_input(pipe, needed.last().unwrap());
        needed.push(if layout.prune { input } else { FieldSet::all() });
    }
    let mut source = needed.pop().unwrap();
    insert_filter_fields(&query.filter, &mut source);
    needed.reverse();
    let filter = CompiledFilter::compile(&query.filter, ctx)?;
    let all: Vec<usize> = (0..rows.rows.len()).collect();
    let mut batches = Vec::new();
    for batch in rows.batches(&all, &source) {
        let mut selection = Bitmap::full(batch.rows());
        filter.eval(&batch, &mut selection)?;
        let kept: Vec<u32> = selection.iter().map(|r| r as u32).collect();
        if !kept.is_empty() {
            batches.push(batch.gather(&kept));
        }
    }
    let mut workers = layout.workers;
    for (pipe, needed) in query.pipes.iter().zip(&needed) {
        let planned = Planned {
            pipe: pipe.clone(),
            output: needed.clone(),
            wanted: Wanted::InOrder,
            mapped: false,
        };
        batches = run_stage(&planned, batches, workers, ctx)?;
        let collects = matches!(compile_pipe(&planned, ctx)?, Stage::Collect(_));
        if collects {
            workers = 1;
        }
    }
    Ok(batches)
}

fn run_stage(
    planned: &Planned,
    batches: Vec<Batch>,
    workers: usize,
    ctx: &ExecContext<'_>,
) -> Result<Vec<Batch>> {
    let mut out = Vec::new();
    let mut sink = |batch: Batch| {
        out.push(batch);
        Ok(Flow::Continue)
    };
    let sink: &mut Sink<'_> = &mut sink;
    match compile_pipe(planned, ctx)? {
        Stage::Row(pipe) => {
            let pipes: [&dyn RowPipe; 1] = [&*pipe];
            for batch in batches {
                run_rows(&pipes, ctx, batch, sink)?;
            }
        }
        Stage::Append(pipe) => {
            let pipe: &dyn Appendix = &*pipe;
            for batch in batches {
                sink(batch)?;
            }
            pipe.append(ctx, sink)?;
        }
        Stage::Collect(first) => {
            let mut states: Vec<_> = (1..workers).map(|_| first.fork()).collect();
            states.insert(0, first);
            for (i, batch) in batches.into_iter().enumerate() {
                let n = states.len();
                states[i % n].push(ctx, batch)?;
            }
            // The last worker is the first to be absorbed, as it may happen.
            let mut first = states.remove(0);
            while let Some(state) = states.pop() {
                first.absorb(ctx, state)?;
            }
            first.finish(ctx, sink)?;
        }
    }
    Ok(out)
}
