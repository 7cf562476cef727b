//! Runs queries: plan, workers, pipes, subqueries.
//!
//! The parallel phase is the scan with the pipes that work row by row, up to and including the
//! first pipe that collects rows, which has a state per worker. What follows is serial.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use crossbeam::channel::bounded;

use super::ast::{Query, QueryOptions as Settings};
use super::batch::Batch;
use super::context::{
    ExecContext, Flow, QueryCounters, QueryMemory, Stop, StreamContextSource, SubqueryRunner,
    TimeRange,
};
use super::counters::{QueryStats, ScanCounters};
use super::fields::FieldSet;
use super::filter::{CompiledFilter, TimeContext};
use super::pipe::{Collector, RowPipe, Sink, Stage, compile_pipe, run_rows};
use super::plan::{self, Plan};
use super::position::{RowPos, StreamTexts};
use super::rows::{Rows, panicked};
use super::scan::{
    Frontier, PartSet, ScanFilter, ScanOutput, ScanTask, Scanner, TimeBound, names_from_headers,
    values_at, visit_stream,
};
use super::stats::BucketFn;
use super::tail::Tail;
use crate::error::{Corruption, Error, QueryError, Result};
use crate::options::QueryOptions;
use crate::part::ReadStats;
use crate::record::{TextVec, Timestamp};
use crate::sync::Mutex;

/// Queries in queries in queries, at most.
const MAX_DEPTH: usize = 16;

/// Rows for which one more worker is worth its start.
const ROWS_PER_WORKER: u64 = 65_536;

/// So many blocks are read before other workers are started: what headers answer is done by then.
const ALONE_BLOCKS: u64 = 2;

/// The most workers of a query.
const MAX_WORKERS: usize = 64;

/// A query with all that it needs to run; runs once.
#[derive(Debug)]
pub(crate) struct Execution {
    query: Query,
    parts: Arc<dyn PartSet>,
    options: QueryOptions,
    now: Timestamp,
    cancelled: Arc<AtomicBool>,
    counters: ScanCounters,
    totals: QueryCounters,
}

/// Begins a query over `parts`; `now` is what relative times mean unless the options say it.
pub(crate) fn execute_parts(
    query: &Query,
    parts: Arc<dyn PartSet>,
    options: &QueryOptions,
    now: Timestamp,
) -> Rows {
    Rows::new(Execution {
        query: query.clone(),
        parts,
        options: options.clone(),
        now: options.now.unwrap_or(now),
        cancelled: Arc::new(AtomicBool::new(false)),
        counters: ScanCounters::new(options.skip_damaged),
        totals: QueryCounters::default(),
    })
}

/// The range of `_time` that the filter of a query gives, if it is closed at both ends.
pub(crate) fn closed_time_range(
    query: &Query,
    options: &QueryOptions,
    now: Timestamp,
) -> Option<TimeRange> {
    let times = TimeContext { now, zone: options.zone.clone(), time_offset: 0 };
    plan::closed_range(&query.filter, &times)
}

impl Execution {
    /// What was counted so far, and how much there is in all parts.
    pub(crate) fn stats(&self) -> QueryStats {
        let mut stats = self.counters.snapshot();
        let unread = ReadStats::default();
        let cx = self.parts.read_context(&unread);
        let mut days = BTreeSet::new();
        for i in 0..self.parts.len() {
            days.extend(self.parts.bounds(i).map(|bounds| bounds.day()));
            // A part that cannot be opened has no blocks to speak of.
            let Ok(reader) = self.parts.reader(i) else { continue };
            stats.blocks_total += u64::from(reader.footer().blocks);
            stats.strips_total += reader.strips(&cx).unwrap_or(0);
        }
        stats.days_total = days.len() as u64;
        stats
    }

    /// Lets the pipe `query_stats` see what was read.
    fn count_reads(&self) {
        let (reads, totals) = (&self.counters.reads, &self.totals);
        for (from, to) in [
            (&reads.read_bytes, &totals.value_bytes),
            (&reads.filter_bytes, &totals.filter_bytes),
            (&reads.decoded_bytes, &totals.decoded_bytes),
        ] {
            to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }

    /// Damaged places that the query has skipped so far.
    pub(crate) fn damage(&self) -> Vec<Corruption> {
        self.counters.damage.skipped().0
    }

    /// Set to end the query.
    pub(crate) fn cancelled(&self) -> &Arc<AtomicBool> {
        &self.cancelled
    }

    /// Whether the answer is surely small.
    pub(crate) fn has_small_answer(&self) -> bool {
        plan::has_small_answer(&self.query.pipes)
    }

    /// Runs the query and hands its rows to `out`.
    pub(crate) fn run(&self, out: &mut Sink<'_>) -> Result<()> {
        let shared = Shared {
            memory: QueryMemory::new(self.options.memory_limit_bytes),
            deadline: self.options.deadline.and_then(|d| Instant::now().checked_add(d)),
        };
        let level = Level { execution: self, shared: &shared, depth: 0, settings: None };
        level.run(&self.query, out)
    }
}

/// What a query and its subqueries have in common.
struct Shared {
    memory: Arc<QueryMemory>,
    deadline: Option<Instant>,
}

/// A query within queries.
struct Level<'q> {
    execution: &'q Execution,
    shared: &'q Shared,
    depth: usize,
    /// Options of the query around it.
    settings: Option<Settings>,
}

impl SubqueryRunner for Level<'_> {
    fn run(&self, query: &Query, ctx: &ExecContext<'_>) -> Result<Vec<Batch>> {
        let mut reservation = ctx.reservation("subquery");
        let (mut all, mut bytes) = (Vec::new(), 0);
        Level::run(self, query, &mut |batch| {
            bytes += batch.heap_bytes();
            reservation.resize(bytes)?;
            all.push(batch);
            Ok(Flow::Continue)
        })?;
        Ok(all)
    }
}

/// Texts of streams that are kept for the next comparison.
const KEPT_TEXTS: usize = 65_536;

/// Texts by part and stream.
type StreamTextCache = HashMap<(u32, u32), Arc<[u8]>>;

/// The way from row positions back to the parts.
struct Storage<'q> {
    parts: &'q dyn PartSet,
    counters: &'q ScanCounters,
    /// Added to the times of rows, in ns.
    time_shift: i64,
    texts: Mutex<StreamTextCache>,
    /// A stream whose text could not be read, so that the order of rows is in doubt.
    unread: Mutex<Option<Error>>,
}

impl StreamTexts for Storage<'_> {
    fn stream_text(&self, part: u32, stream: u32) -> Arc<[u8]> {
        if let Some(text) = self.texts.lock().get(&(part, stream)) {
            return text.clone();
        }
        let cx = self.parts.read_context(&self.counters.reads);
        let reader = self.parts.reader(part as usize);
        let text = reader.and_then(|reader| reader.stream_text(&cx, stream));
        let text: Arc<[u8]> = match text {
            Ok(text) => Arc::from(text),
            Err(e) => {
                self.unread.lock().get_or_insert(e);
                Arc::from(&b""[..])
            }
        };
        let mut texts = self.texts.lock();
        if texts.len() >= KEPT_TEXTS {
            texts.clear();
        }
        texts.insert((part, stream), text.clone());
        text
    }
}

impl StreamContextSource for Storage<'_> {
    fn visit_stream(
        &self,
        ctx: &ExecContext<'_>,
        hit: RowPos,
        range: TimeRange,
        fields: &FieldSet,
        visit: &mut dyn FnMut(Batch) -> Result<Flow>,
    ) -> Result<()> {
        let output = ScanOutput { time_shift: self.time_shift, ..ScanOutput::stored(fields) };
        visit_stream(self.parts, self.counters, ctx, hit, range, &output, visit)
    }

    fn values_at(&self, field: &str, rows: &[RowPos]) -> Result<TextVec> {
        values_at(self.parts, self.counters, field, rows)
    }
}

impl Level<'_> {
    fn run(&self, query: &Query, out: &mut Sink<'_>) -> Result<()> {
        if self.depth >= MAX_DEPTH {
            return Err(too_deep());
        }
        let execution = self.execution;
        let settings = inherit(&query.options, self.settings.as_ref());
        let plan = Plan::new(query, &settings, execution.options.optimise);
        let inner = Level {
            execution,
            shared: self.shared,
            depth: self.depth + 1,
            settings: Some(settings),
        };
        let storage = Storage {
            parts: &*execution.parts,
            counters: &execution.counters,
            time_shift: plan.time_offset,
            texts: Mutex::default(),
            unread: Mutex::default(),
        };
        let mut ctx = ExecContext {
            now: execution.now,
            zone: execution.options.zone.clone(),
            memory: self.shared.memory.clone(),
            stop: Stop { cancelled: execution.cancelled.clone(), deadline: self.shared.deadline },
            counters: &execution.totals,
            time_range: None,
            seed: 0,
            streams: &storage,
            subqueries: &inner,
            neighbours: &storage,
        };
        let times = TimeContext::new(&ctx, plan.time_offset);
        ctx.time_range = plan::closed_range(&query.filter, &times);
        let filter = CompiledFilter::compile_at(&plan.filter, &ctx, plan.time_offset)?;
        for lost in execution.parts.lost(filter.time_range()) {
            execution.counters.damage.skip(Error::Corrupted(lost.damage), Some(lost.unit))?;
        }
        let stages: Result<Vec<Stage>> =
            plan.pipes.iter().map(|planned| compile_pipe(planned, &ctx)).collect();
        let run = Run {
            execution,
            ctx: &ctx,
            filter: ScanFilter::new(filter, execution.options.prune),
            output: ScanOutput {
                fields: plan.fields,
                positions: plan.positions,
                origins: plan.origins,
                time_shift: plan.time_offset,
                buckets: plan
                    .time_bucket
                    .and_then(|bucket| BucketFn::new(&bucket, &ctx.zone).even_buckets()),
                map: plan.map.map(|(field, map)| (Arc::from(field), map)),
            },
            bound: plan.bound.map(|(direction, limit)| TimeBound::new(direction, limit)),
            names_only: plan.names_only && execution.options.prune,
            count_only: plan.count_only && execution.options.prune,
        };
        run.run(stages?, out)?;
        match storage.unread.lock().take() {
            Some(e) => execution.counters.damage.skip(e, None),
            None => Ok(()),
        }
    }
}

/// The options of a query within another: what it does not set it takes from there, and the
/// filters of both hold.
pub(crate) fn inherit(own: &Settings, outer: Option<&Settings>) -> Settings {
    let Some(outer) = outer else { return own.clone() };
    let global_filter = match (&outer.global_filter, &own.global_filter) {
        (Some(a), Some(b)) => {
            Some(Box::new(super::ast::Filter::And(vec![(**a).clone(), (**b).clone()])))
        }
        (a, b) => a.clone().or_else(|| b.clone()),
    };
    Settings {
        concurrency: own.concurrency.or(outer.concurrency),
        parallel_readers: own.parallel_readers.or(outer.parallel_readers),
        ignore_global_time_filter: own
            .ignore_global_time_filter
            .or(outer.ignore_global_time_filter),
        allow_partial_response: own.allow_partial_response.or(outer.allow_partial_response),
        time_offset: own.time_offset.clone().or_else(|| outer.time_offset.clone()),
        global_filter,
    }
}

fn too_deep() -> Error {
    Error::Query(QueryError {
        query: String::new(),
        offset: 0,
        message: format!("subqueries are nested deeper than {MAX_DEPTH} levels"),
        hint: None,
    })
}

/// One query on its way.
struct Run<'q> {
    execution: &'q Execution,
    ctx: &'q ExecContext<'q>,
    filter: ScanFilter,
    output: ScanOutput,
    bound: Option<TimeBound>,
    names_only: bool,
    count_only: bool,
}

/// What workers share beside the frontier.
struct Team<'q> {
    run: &'q Run<'q>,
    frontier: Frontier<'q>,
    pipes: Vec<&'q dyn RowPipe>,
    /// No more rows are wanted, or a worker failed.
    stopped: AtomicBool,
}

impl Run<'_> {
    fn run(&self, mut stages: Vec<Stage>, out: &mut Sink<'_>) -> Result<()> {
        let first = stages.iter().position(|s| matches!(s, Stage::Collect(_)));
        let mut tail = Tail::new(stages.split_off(first.map_or(stages.len(), |i| i + 1)));
        let collector = match stages.pop() {
            Some(Stage::Collect(collector)) => Some(collector),
            Some(stage) => {
                stages.push(stage);
                None
            }
            None => None,
        };
        let team = Team {
            run: self,
            frontier: Frontier::new(
                &*self.execution.parts,
                &self.filter,
                self.bound.as_ref(),
                &self.execution.counters,
            ),
            pipes: row_pipes(&stages),
            stopped: AtomicBool::new(false),
        };
        match collector {
            Some(mut collector) => {
                if self.count_only {
                    let cx = self.execution.parts.read_context(&self.execution.counters.reads);
                    let rows = usize::try_from(team.frontier.take_whole_parts(&cx));
                    collector.push(self.ctx, Batch::new(rows.unwrap_or(usize::MAX)))?;
                }
                let mut collector = match self.counted_names()? {
                    Some(names) => self.feed(collector, names)?,
                    None => team.collect(collector)?,
                };
                self.execution.count_reads();
                self.append(&stages, &mut |batch| collector.push(self.ctx, batch))?;
                collector.finish(self.ctx, &mut |batch| tail.push(self.ctx, batch, out))?;
                tail.finish(self.ctx, out)
            }
            None => {
                if team.stream(out)? == Flow::Continue {
                    self.append(&stages, out)?;
                }
                Ok(())
            }
        }
    }

    /// The batches of [`names_from_headers`], where the plan allows them.
    fn counted_names(&self) -> Result<Option<Vec<Batch>>> {
        if !self.names_only {
            return Ok(None);
        }
        let (parts, counters) = (&*self.execution.parts, &self.execution.counters);
        match names_from_headers(parts, self.filter.range, &counters.reads) {
            // The scan says what can be read all the same.
            Err(e) => counters.damage.skip(e, None).map(|()| None),
            counted => counted,
        }
    }

    fn feed(
        &self,
        mut collector: Box<dyn Collector>,
        batches: Vec<Batch>,
    ) -> Result<Box<dyn Collector>> {
        for batch in batches {
            collector.push(self.ctx, batch)?;
        }
        Ok(collector)
    }

    /// Lets the appending stages among `stages` add their rows, each through what follows it.
    fn append(&self, stages: &[Stage], out: &mut Sink<'_>) -> Result<()> {
        for (i, stage) in stages.iter().enumerate() {
            if let Stage::Append(appendix) = stage {
                let rest = row_pipes(stages.get(i + 1..).unwrap_or(&[]));
                let flow = appendix
                    .append(self.ctx, &mut |batch| run_rows(&rest, self.ctx, batch, out))?;
                if flow == Flow::Stop {
                    break;
                }
            }
        }
        Ok(())
    }
}

fn row_pipes(stages: &[Stage]) -> Vec<&dyn RowPipe> {
    let rows = stages.iter().filter_map(|s| match s {
        Stage::Row(pipe) => Some(&**pipe),
        _ => None,
    });
    rows.collect()
}

/// The number of cores, asked for once: asking reads files.
fn cores() -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    *CORES.get_or_init(|| std::thread::available_parallelism().map_or(1, std::num::NonZero::get))
}

impl Team<'_> {
    /// One for each core unless the options say a number; fewer for few rows.
    fn workers(&self) -> usize {
        let options = &self.run.execution.options;
        if let Some(workers) = options.workers {
            return workers.clamp(1, MAX_WORKERS);
        }
        let useful = self.frontier.rows().div_ceil(ROWS_PER_WORKER);
        cores().min(usize::try_from(useful).unwrap_or(usize::MAX)).clamp(1, MAX_WORKERS)
    }

    /// The loop of one worker, until nothing is left or about `most` blocks were read.
    fn work(&self, most: u64, out: &mut Sink<'_>) -> Result<Flow> {
        let result = self.work_until_stopped(most, out);
        if !matches!(result, Ok(Flow::Continue)) {
            self.stopped.store(true, Ordering::Relaxed);
        }
        result
    }

    fn work_until_stopped(&self, most: u64, out: &mut Sink<'_>) -> Result<Flow> {
        let run = self.run;
        let counters = &run.execution.counters;
        let cx = run.execution.parts.read_context(&counters.reads);
        let bound = run.bound.as_ref();
        let mut scanner = Scanner::new(run.ctx, &cx, &run.filter, &run.output, bound, counters);
        if self.defers() {
            scanner = scanner.deferring();
        }
        let read = || counters.blocks_scanned.load(Ordering::Relaxed);
        let end = read().saturating_add(most);
        while !self.stopped.load(Ordering::Relaxed) && (most == u64::MAX || read() < end) {
            let Some(task) = self.frontier.next(&cx)? else { break };
            let flow = self.scan(&mut scanner, &task, out)?;
            if flow == Flow::Stop {
                return Ok(Flow::Stop);
            }
        }
        scanner.finish(out)
    }

    /// Whether rows are read when the bound is final: none of them is dropped behind the scan.
    fn defers(&self) -> bool {
        self.run.bound.is_some() && self.pipes.is_empty()
    }

    fn scan(&self, scanner: &mut Scanner<'_>, task: &ScanTask, out: &mut Sink<'_>) -> Result<Flow> {
        let run = self.run;
        scanner.scan(task, &mut |batch| {
            run_rows(&self.pipes, run.ctx, batch, &mut |batch| {
                if let (Some(bound), Some(positions)) = (&run.bound, batch.positions())
                    && !self.defers()
                {
                    bound.offer(positions.iter().map(|p| p.time));
                }
                out(batch)
            })
        })
    }

    /// All rows in the collector, which has had a state per worker.
    fn collect(&self, mut first: Box<dyn Collector>) -> Result<Box<dyn Collector>> {
        let ctx = self.run.ctx;
        let workers = self.workers();
        let most = if workers > 1 { ALONE_BLOCKS } else { u64::MAX };
        self.work(most, &mut |batch| first.push(ctx, batch))?;
        if self.stopped.load(Ordering::Relaxed) || self.frontier.is_empty() {
            return Ok(first);
        }
        let others: Vec<Box<dyn Collector>> = (1..workers).map(|_| first.fork()).collect();
        let (own, states) = std::thread::scope(|scope| {
            let spawn = |mut state: Box<dyn Collector>| {
                scope.spawn(move || {
                    self.work(u64::MAX, &mut |batch| state.push(ctx, batch))?;
                    Ok(state)
                })
            };
            let handles: Vec<_> = others.into_iter().map(spawn).collect();
            let own = self.work(u64::MAX, &mut |batch| first.push(ctx, batch));
            let join = |h: std::thread::ScopedJoinHandle<'_, Result<Box<dyn Collector>>>| {
                h.join().unwrap_or_else(|_| Err(panicked()))
            };
            (own, handles.into_iter().map(join).collect::<Vec<_>>())
        });
        own?;
        for state in states {
            first.absorb(ctx, state?)?;
        }
        Ok(first)
    }

    /// All rows to `out`, in any order.
    fn stream(&self, out: &mut Sink<'_>) -> Result<Flow> {
        let workers = self.workers();
        if workers == 1 {
            return self.work(u64::MAX, out);
        }
        std::thread::scope(|scope| {
            let (send, receive) = bounded::<Batch>(workers);
            let spawn = |_| {
                let send = send.clone();
                scope.spawn(move || {
                    self.work(u64::MAX, &mut |batch| {
                        Ok(if send.send(batch).is_ok() { Flow::Continue } else { Flow::Stop })
                    })
                })
            };
            let handles: Vec<_> = (0..workers).map(spawn).collect();
            drop(send);
            let mut result = Ok(Flow::Continue);
            for batch in &receive {
                result = out(batch);
                if !matches!(result, Ok(Flow::Continue)) {
                    break;
                }
            }
            self.stopped.fetch_or(result.is_err(), Ordering::Relaxed);
            drop(receive);
            for handle in handles {
                let ended = handle.join().unwrap_or_else(|_| Err(panicked()));
                if let (Err(e), Ok(_)) = (ended, &result) {
                    result = Err(e);
                }
            }
            result
        })
    }
}
