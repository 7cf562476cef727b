//! Filters blocks strip by strip and makes batches of the rows that are left.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use super::block::BlockScan;
use super::bound::{Direction, TimeBound};
use super::deferred::Deferred;
use super::facts::{Depth, Facts};
use super::frontier::{OpenPart, ScanFilter, ScanTask};
use super::mapped::TextMap;
use super::mapper::{SharedMapper, TextMapper};
use super::runs::RunRows;
use super::strip::StripSource;
use crate::codec::Bitmap;
use crate::error::Result;
use crate::part::{BlockReader, ReadContext};
use crate::query::ast::TIME_FIELD;
use crate::query::batch::{Batch, Origin};
use crate::query::column::Column;
use crate::query::context::{ExecContext, Flow};
use crate::query::counters::ScanCounters;
use crate::query::damage::Unit;
use crate::query::fields::FieldSet;
use crate::query::filter::{FilterScratch, Verdict};
use crate::query::pipe::{Sink, map_column};
use crate::query::position::RowPos;
use crate::query::time_buckets::EvenBuckets;

/// What the rows that come out of a scan have to carry.
#[derive(Debug, Clone)]
pub(crate) struct ScanOutput {
    /// The fields that someone reads.
    pub(crate) fields: FieldSet,
    /// Whether someone asks for the canonical places of rows.
    pub(crate) positions: bool,
    /// Whether batches say where their rows are stored.
    pub(crate) origins: bool,
    /// Added to `_time` on output, in ns.
    pub(crate) time_shift: i64,
    /// All that is asked of `_time` is the bucket: any time of the same bucket will do.
    pub(crate) buckets: Option<EvenBuckets>,
    /// What becomes of the values of a field on output.
    pub(crate) map: Option<(Arc<str>, TextMap)>,
}

impl ScanOutput {
    /// Rows with these fields and their places, as they are stored.
    pub(crate) fn stored(fields: &FieldSet) -> ScanOutput {
        ScanOutput {
            fields: fields.clone(),
            positions: true,
            origins: false,
            time_shift: 0,
            buckets: None,
            map: None,
        }
    }
}

/// One worker's way through blocks.
pub(crate) struct Scanner<'q> {
    ctx: &'q ExecContext<'q>,
    cx: &'q ReadContext<'q>,
    filter: &'q ScanFilter,
    output: &'q ScanOutput,
    bound: Option<&'q TimeBound>,
    counters: &'q ScanCounters,
    scratch: FilterScratch,
    /// Rows that wait for the bound to become final, if they may.
    deferred: Option<Deferred>,
    /// What was found out for the field that is mapped.
    mapper: Option<SharedMapper>,
}

impl<'q> Scanner<'q> {
    /// A worker without anything remembered.
    pub(crate) fn new(
        ctx: &'q ExecContext<'q>,
        cx: &'q ReadContext<'q>,
        filter: &'q ScanFilter,
        output: &'q ScanOutput,
        bound: Option<&'q TimeBound>,
        counters: &'q ScanCounters,
    ) -> Scanner<'q> {
        let scratch = FilterScratch::default();
        let mapper = output.map.as_ref().map(|(_, map)| TextMapper::shared(*map));
        Scanner { ctx, cx, filter, output, bound, counters, scratch, deferred: None, mapper }
    }

    /// A block of which nothing has been read.
    fn open_block<'a>(&self, reader: BlockReader<'a>) -> BlockScan<'a>
    where
        'q: 'a,
    {
        let block = BlockScan::new(reader, self.cx);
        if let Some(mapper) = &self.mapper {
            block.mapping.share(mapper);
        }
        block
    }

    /// Reads the columns of the rows that pass only in [`finish`](Scanner::finish), when most of
    /// those that are not among the best have been found out by their times alone. Nothing behind
    /// the scan may drop rows; the bound is told of them here.
    pub(crate) fn deferring(mut self) -> Scanner<'q> {
        self.deferred = self.bound.map(|_| Deferred::default());
        self
    }

    /// Hands out what was deferred and is still among the best.
    pub(crate) fn finish(&mut self, out: &mut Sink<'_>) -> Result<Flow> {
        let (Some(deferred), Some(bound)) = (self.deferred.take(), self.bound) else {
            return Ok(Flow::Continue);
        };
        let rows = deferred.finish(bound);
        for of_block in rows.chunk_by(|a, b| a.is_beside(b)) {
            let Some(task) = of_block.first().map(|rows| rows.task.clone()) else { continue };
            // It was opened before.
            let reader = task.part.reader.block(self.cx, &task.index, task.block)?;
            let block = self.open_block(reader);
            for rows in of_block {
                let source = StripSource::new(&block, rows.strip);
                let scan = StripScan::new(&block, &source, rows.strip, &task.part);
                let mut selection = Bitmap::empty(block.strip_rows(rows.strip).len());
                rows.rows.iter().for_each(|(row, _)| selection.set(*row as usize));
                let batch = self
                    .batch(&scan, &selection)
                    .map(Some)
                    .or_else(|e| self.counters.damage.skip(e, Some(scan.unit())).map(|()| None))?;
                let Some(batch) = batch else { continue };
                self.count_found(batch.rows());
                if out(batch)? == Flow::Stop {
                    return Ok(Flow::Stop);
                }
            }
        }
        Ok(Flow::Continue)
    }

    /// Hands out the rows of a block that pass.
    pub(crate) fn scan(&mut self, task: &ScanTask, out: &mut Sink<'_>) -> Result<Flow> {
        self.ctx.check()?;
        let part = &*task.part;
        let reader = match part.reader.block(self.cx, &task.index, task.block) {
            Ok(reader) => reader,
            Err(e) => {
                let head = task.index.heads().nth(task.block);
                let unit = head.map(|h| (part.number, h.first_row, u64::from(h.rows)));
                return self.counters.damage.skip(e, unit).map(|()| Flow::Continue);
            }
        };
        let block = self.open_block(reader);
        let mut open: Vec<usize> = (0..self.filter.filter.part_count()).collect();
        match self.may_pass(&block, &mut open) {
            Ok(true) => {}
            Ok(false) => return Ok(Flow::Continue),
            Err(e) => {
                // What judges blocks is damaged; the rows may be sound.
                self.counters.damage.skip(e, None)?;
                open = (0..self.filter.filter.part_count()).collect();
            }
        }
        let all_streams = self.selects_all_streams(&block, part);
        let whole = if open.is_empty() { self.whole_block(&block, part) } else { Ok(None) };
        let whole = whole.or_else(|e| self.counters.damage.skip(e, None).map(|()| None))?;
        if let Some(batch) = whole {
            self.count_found(batch.rows());
            return out(batch);
        }
        let head = block.reader().head_of_block();
        let in_range = self.filter.range.covers(head.min_time, head.max_time);
        if all_streams && open.is_empty() && in_range && self.bound.is_none() {
            block.mapping.whole.set(true);
        }
        self.counters.blocks_scanned.fetch_add(1, Relaxed);
        self.ctx.counters.blocks.fetch_add(1, Relaxed);
        let strips = block.reader().strips();
        let mut limit = BlockLimit::default();
        for i in 0..strips {
            let strip = match self.direction() {
                Direction::Newest => strips - 1 - i,
                Direction::Oldest => i,
            };
            let source = StripSource::new(&block, strip);
            let scan = StripScan { all_streams, ..StripScan::new(&block, &source, strip, part) };
            let rows = self.strip(&scan, task, &open, &mut limit).or_else(|e| {
                let unit = scan.unit();
                self.counters.damage.skip(e, Some(unit)).map(|()| StripRows::None)
            })?;
            match rows {
                StripRows::None => {}
                StripRows::NoMoreInBlock => break,
                StripRows::Batch(batch) => {
                    if out(batch)? == Flow::Stop {
                        return Ok(Flow::Stop);
                    }
                }
            }
        }
        Ok(Flow::Continue)
    }

    fn may_pass(&self, block: &BlockScan<'_>, open: &mut Vec<usize>) -> Result<bool> {
        Ok(!self.filter.prune || self.judge(block, open)?)
    }

    fn direction(&self) -> Direction {
        self.bound.map_or(Direction::Newest, TimeBound::direction)
    }

    /// Judges the open parts of the filter by headers, then by filters and dictionaries; false
    /// if no row of the block passes.
    fn judge(&self, block: &BlockScan<'_>, open: &mut Vec<usize>) -> Result<bool> {
        self.counters.blocks_judged.fetch_add(1, Relaxed);
        let facts = Facts::new(block);
        for depth in [Depth::Headers, Depth::Filters] {
            facts.set_depth(depth);
            match self.filter.filter.judge_parts(open, &facts)? {
                Verdict::None => return Ok(false),
                Verdict::All => return Ok(true),
                Verdict::Maybe => {}
            }
        }
        Ok(true)
    }

    fn selects_all_streams(&self, block: &BlockScan<'_>, part: &OpenPart) -> bool {
        let head = block.reader().head_of_block();
        part.streams
            .as_ref()
            .is_none_or(|s| s.count(head.first_stream, head.streams) == head.streams as usize)
    }

    fn count_found(&self, rows: usize) {
        self.counters.rows_matched.fetch_add(rows as u64, Relaxed);
        self.ctx.counters.rows_found.fetch_add(rows as u64, Relaxed);
    }

    /// The rows of the selected streams of the block as one batch, if no page has to be read for
    /// it.
    fn whole_block(&self, block: &BlockScan<'_>, part: &OpenPart) -> Result<Option<Batch>> {
        if self.output.positions || self.output.origins || self.bound.is_some() {
            return Ok(None);
        }
        let runs = match &part.streams {
            Some(streams) if !self.selects_all_streams(block, part) => {
                let first = block.reader().head_of_block().first_stream;
                Some(block.some_runs(|run| streams.contains(first.saturating_add(run)))?)
            }
            _ => None,
        };
        let rows = runs.as_ref().map_or(block.reader().rows(), RunRows::rows);
        let mut batch = Batch::new(rows);
        for name in block.output_names(&self.output.fields)? {
            let column = match (&**name, self.output.buckets) {
                (TIME_FIELD, Some(even)) => block.buckets_of_runs(even, runs.as_ref())?,
                _ => block.column_of_runs(name, runs.as_ref())?,
            };
            let Some(column) = column else { return Ok(None) };
            let column = match &self.output.map {
                Some((field, map)) if field == name => {
                    let map = *map;
                    map_column(self.ctx, &column, rows, None, &move |value, out| {
                        map.apply(value, out);
                    })?
                }
                _ => column,
            };
            if !matches!(&column, Column::Const(value) if value.is_empty()) {
                batch.set_column(name.clone(), column);
            }
        }
        Ok(Some(batch))
    }

    /// Whether nothing is asked of the rows but how many they are.
    fn counts_only(&self) -> bool {
        self.bound.is_none() && !self.output.positions && self.output.fields.is_none()
    }

    fn strip(
        &mut self,
        scan: &StripScan<'_, '_>,
        task: &ScanTask,
        open: &[usize],
        limit: &mut BlockLimit,
    ) -> Result<StripRows> {
        self.ctx.check()?;
        let rows = scan.block.strip_rows(scan.strip).len();
        let mut selection = Bitmap::full(rows);
        if !self.select_runs(scan, &mut selection, limit)? {
            return Ok(StripRows::NoMoreInBlock);
        }
        if !selection.any() {
            return Ok(StripRows::None);
        }
        self.counters.rows_scanned.fetch_add(selection.count() as u64, Relaxed);
        self.ctx.counters.rows.fetch_add(selection.count() as u64, Relaxed);
        if self.counts_only()
            && selection.all()
            && let Some(count) = self.filter.filter.count_parts(open, scan.source)?
        {
            self.count_found(count);
            return Ok(if count == 0 {
                StripRows::None
            } else {
                StripRows::Batch(Batch::new(count))
            });
        }
        if let Some(bound) = self.bound {
            let times = scan.source.shared(TIME_FIELD)?;
            if let Column::Times(times) = &*times {
                limit.seen(times, bound.direction());
                selection.retain(|row| times.get(row).is_some_and(|t| !bound.excludes(*t)));
            }
        }
        self.filter.filter.eval_parts(open, scan.source, &mut selection, &mut self.scratch)?;
        if !selection.any() {
            return Ok(StripRows::None);
        }
        if let (Some(deferred), Some(bound)) = (&mut self.deferred, self.bound)
            && let Column::Times(times) = &*scan.source.shared(TIME_FIELD)?
        {
            deferred.add(task, scan.strip, &selection, times, bound);
            return Ok(StripRows::None);
        }
        self.count_found(selection.count());
        Ok(StripRows::Batch(self.batch(scan, &selection)?))
    }

    /// The selected rows of a strip, the mapped field in its place.
    fn batch(&self, scan: &StripScan<'_, '_>, selection: &Bitmap) -> Result<Batch> {
        let mut batch = scan.batch(self.output, selection)?;
        if let Some((field, map)) = &self.output.map
            && batch.column(field).is_some()
        {
            let picked = picked_rows(selection);
            let mapped = scan.source.mapped(field, *map, picked.as_deref())?;
            batch.set_column(Arc::clone(field), mapped);
        }
        Ok(batch)
    }

    /// Takes runs out that no stream selector, time or bound lets through. False if the bound
    /// excludes all further strips of the block.
    fn select_runs(
        &self,
        scan: &StripScan<'_, '_>,
        selection: &mut Bitmap,
        limit: &BlockLimit,
    ) -> Result<bool> {
        let head = scan.block.reader().head_of_block();
        if let (Some(bound), Some(rank)) = (self.bound, limit.best_left)
            && head.streams == 1
            && bound.excludes_rank(rank)
        {
            return Ok(false);
        }
        let whole = self.filter.range.covers(head.min_time, head.max_time);
        if scan.all_streams && whole && self.bound.is_none() {
            return Ok(true);
        }
        let runs = scan.block.reader().runs()?;
        for (run, rows) in scan.source.runs()? {
            let ordinal = head.first_stream.saturating_add(u32::try_from(*run).unwrap_or(u32::MAX));
            let wanted = scan.part.streams.as_ref().is_none_or(|s| s.contains(ordinal));
            let (min, max) = runs.times(*run).unwrap_or((head.min_time, head.max_time));
            let excluded =
                self.bound.is_some_and(|b| b.excludes_rank(b.direction().best(min, max)));
            if !wanted || excluded || !self.filter.range.overlaps(min, max) {
                selection.clear_range(rows.clone());
            }
        }
        Ok(true)
    }
}

fn positions(scan: &StripScan<'_, '_>, selection: &Bitmap) -> Result<Vec<RowPos>> {
    let times = scan.source.shared(TIME_FIELD)?;
    let Column::Times(times) = &*times else { return Ok(Vec::new()) };
    let head = scan.block.reader().head_of_block();
    let first_row = scan.part.bounds.cut_lo.saturating_add(head.first_row);
    let in_block = scan.block.strip_rows(scan.strip).start;
    let mut out = Vec::with_capacity(selection.count());
    for (run, rows) in scan.source.runs()? {
        let stream = head.first_stream.saturating_add(u32::try_from(*run).unwrap_or(u32::MAX));
        out.extend(selection.iter_range(rows.clone()).map(|row| RowPos {
            time: times.get(row).copied().unwrap_or(0),
            part: scan.part.number,
            stream,
            order: first_row.saturating_add((in_block + row) as u64),
            sub: 0,
        }));
    }
    Ok(out)
}

/// A strip and where it is.
pub(super) struct StripScan<'s, 'a> {
    block: &'s BlockScan<'a>,
    source: &'s StripSource<'s, 'a>,
    strip: usize,
    part: &'s OpenPart,
    all_streams: bool,
}

impl<'s, 'a> StripScan<'s, 'a> {
    /// A strip of a block of which all streams are selected.
    pub(super) fn new(
        block: &'s BlockScan<'a>,
        source: &'s StripSource<'s, 'a>,
        strip: usize,
        part: &'s OpenPart,
    ) -> StripScan<'s, 'a> {
        StripScan { block, source, strip, part, all_streams: true }
    }

    /// The rows of the strip, for the case that they cannot be read.
    pub(super) fn unit(&self) -> Unit {
        let rows = self.block.strip_rows(self.strip);
        let first = self.block.reader().head_of_block().first_row;
        (self.part.number, first.saturating_add(rows.start as u64), rows.len() as u64)
    }

    fn origin(&self, picked: Option<Vec<u32>>) -> Result<Origin> {
        let head = self.block.reader().head_of_block();
        let in_block = self.block.strip_rows(self.strip).start as u64;
        let runs = self.source.runs()?;
        let first_run = runs.first().map_or(0, |(run, _)| *run);
        let end = |(_, rows): &(usize, Range<usize>)| u32::try_from(rows.end).unwrap_or(u32::MAX);
        Ok(Origin {
            part: self.part.number,
            order: self.part.bounds.cut_lo.saturating_add(head.first_row).saturating_add(in_block),
            stream: head.first_stream.saturating_add(u32::try_from(first_run).unwrap_or(u32::MAX)),
            ends: runs.iter().map(end).collect(),
            picked,
        })
    }

    /// The wanted columns of the selected rows.
    pub(super) fn batch(&self, output: &ScanOutput, selection: &Bitmap) -> Result<Batch> {
        let picked = picked_rows(selection);
        let mut batch = Batch::new(picked.as_ref().map_or(selection.len(), Vec::len));
        for name in self.block.output_names(&output.fields)? {
            if output.map.as_ref().is_some_and(|(field, _)| field == name) {
                // Mapped by the caller; it keeps its place among the columns.
                batch.set_column(name.clone(), Column::absent());
                continue;
            }
            let bucketed = match (&**name, output.buckets) {
                (TIME_FIELD, Some(even)) => self.source.buckets(even, picked.as_deref())?,
                _ => None,
            };
            let mut column = match &picked {
                _ if bucketed.is_some() => bucketed.unwrap_or_else(Column::absent),
                None => Column::clone(&*self.source.shared(name)?),
                Some(rows) => self.source.gather(name, rows)?,
            };
            if matches!(&column, Column::Const(value) if value.is_empty()) {
                continue;
            }
            if let (TIME_FIELD, Column::Times(times)) = (&**name, &column)
                && output.time_shift != 0
            {
                let shift = output.time_shift;
                let moved = times.iter().map(|t| t.saturating_add(shift)).collect();
                column = Column::Times(Arc::new(moved));
            }
            batch.set_column(name.clone(), column);
        }
        if output.positions {
            batch.set_positions(Some(positions(self, selection)?));
        }
        if output.origins {
            batch.set_origin(self.origin(picked)?);
        }
        Ok(batch)
    }
}

/// The selected rows; `None` if that are all.
fn picked_rows(selection: &Bitmap) -> Option<Vec<u32>> {
    if selection.all() {
        return None;
    }
    Some(selection.iter().map(|r| u32::try_from(r).unwrap_or(u32::MAX)).collect())
}

enum StripRows {
    None,
    NoMoreInBlock,
    Batch(Batch),
}

/// In a block of one stream: the best rank that rows of strips not looked at yet can have.
#[derive(Debug, Default)]
struct BlockLimit {
    best_left: Option<i64>,
}

impl BlockLimit {
    /// The rows of a run are sorted by time, so strips to come are not better than these rows.
    fn seen(&mut self, times: &[i64], direction: Direction) {
        self.best_left = times.iter().map(|t| direction.rank(*t)).min();
    }
}
