//! Level by level from parts over index blocks to blocks, best first.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use super::bound::{Direction, TimeBound};
use super::facts::{IndexSays, PartSays};
use super::{PartBounds, PartSet, StreamSet};
use crate::codec::Bitmap;
use crate::error::{Error, Result};
use crate::part::{IndexBlock, PartReader, ReadContext};
use crate::query::ast::StreamSelector;
use crate::query::context::TimeRange;
use crate::query::counters::ScanCounters;
use crate::query::damage::Unit;
use crate::query::filter::{CompiledFilter, Verdict};
use crate::sync::Mutex;

/// The filter of a query, taken apart for pruning.
#[derive(Debug)]
pub(crate) struct ScanFilter {
    /// What is left to evaluate on rows.
    pub(crate) filter: CompiledFilter,
    /// What the streams of all rows have to pass; not in `filter` any more.
    pub(crate) selectors: Vec<StreamSelector>,
    /// The times of all rows lie in here; still in `filter` too.
    pub(crate) range: TimeRange,
    /// Whether blocks may be judged by what is known of them.
    pub(crate) prune: bool,
}

impl ScanFilter {
    /// Takes a filter apart; without `prune` all of it stays to be evaluated on rows.
    pub(crate) fn new(filter: CompiledFilter, prune: bool) -> ScanFilter {
        if !prune {
            return ScanFilter { filter, selectors: Vec::new(), range: TimeRange::ALL, prune };
        }
        let range = filter.time_range();
        let (selectors, filter) = filter.split_selectors();
        ScanFilter { filter, selectors, range, prune }
    }
}

/// A part that is open for a query.
#[derive(Debug)]
pub(crate) struct OpenPart {
    /// Its number in the query's parts.
    pub(crate) number: u32,
    /// Its reader.
    pub(crate) reader: Arc<PartReader>,
    /// What is known of it.
    pub(crate) bounds: PartBounds,
    /// The streams that the query selects; `None` for all.
    pub(crate) streams: Option<StreamSet>,
}

/// A block to be looked at.
#[derive(Debug, Clone)]
pub(crate) struct ScanTask {
    /// Its part.
    pub(crate) part: Arc<OpenPart>,
    /// The index block with its header.
    pub(crate) index: Arc<IndexBlock>,
    /// Its number in the index block.
    pub(crate) block: usize,
}

/// What still has to be looked at, shared by all workers of a query.
pub(crate) struct Frontier<'q> {
    parts: &'q dyn PartSet,
    filter: &'q ScanFilter,
    bound: Option<&'q TimeBound>,
    counters: &'q ScanCounters,
    direction: Direction,
    items: Mutex<BinaryHeap<Item>>,
}

#[derive(Debug)]
struct Item {
    rank: i64,
    what: What,
}

#[derive(Debug)]
enum What {
    Part(usize),
    Index(Arc<OpenPart>, usize),
    Block(ScanTask),
}

impl What {
    /// Blocks come before what may hold blocks of the same rank.
    fn level(&self) -> u8 {
        match self {
            What::Part(_) => 0,
            What::Index(..) => 1,
            What::Block(_) => 2,
        }
    }
}

impl Ord for Item {
    fn cmp(&self, other: &Item) -> Ordering {
        (self.rank, self.what.level()).cmp(&(other.rank, other.what.level()))
    }
}

impl PartialOrd for Item {
    fn partial_cmp(&self, other: &Item) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Item {
    fn eq(&self, other: &Item) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Item {}

impl<'q> Frontier<'q> {
    /// All parts that may hold rows, none opened.
    pub(crate) fn new(
        parts: &'q dyn PartSet,
        filter: &'q ScanFilter,
        bound: Option<&'q TimeBound>,
        counters: &'q ScanCounters,
    ) -> Frontier<'q> {
        let direction = bound.map_or(Direction::Newest, TimeBound::direction);
        let frontier =
            Frontier { parts, filter, bound, counters, direction, items: Mutex::default() };
        let mut items = frontier.items.lock();
        if !filter.filter.is_none() {
            for i in 0..parts.len() {
                let Some(bounds) = parts.bounds(i) else { continue };
                counters.parts.fetch_add(1, Relaxed);
                counters.rows.fetch_add(bounds.rows, Relaxed);
                if bounds.rows > 0 && filter.range.overlaps(bounds.min_time, bounds.max_time) {
                    let rank = direction.best(bounds.min_time, bounds.max_time);
                    items.push(Item { rank, what: What::Part(i) });
                }
            }
        }
        drop(items);
        frontier
    }

    /// Rows of the parts that may hold rows and were not opened yet.
    pub(crate) fn rows(&self) -> u64 {
        let items = self.items.lock();
        let parts = items.iter().filter_map(|item| match item.what {
            What::Part(i) => self.parts.bounds(i),
            _ => None,
        });
        parts.map(|b| b.rows).sum()
    }

    /// Takes out the parts of which the range of times takes all rows and whose headers are sound;
    /// their rows. For filters that ask for nothing else.
    pub(crate) fn take_whole_parts(&self, cx: &ReadContext<'_>) -> u64 {
        let mut items = self.items.lock();
        let mut rows = 0;
        items.retain(|item| {
            let What::Part(i) = item.what else { return true };
            let whole = self.parts.bounds(i).filter(|bounds| {
                self.filter.range.covers(bounds.min_time, bounds.max_time)
                    && self.parts.reader(i).is_ok_and(|part| part.strips(cx).is_ok())
            });
            let Some(bounds) = whole else { return true };
            self.counters.parts_read.fetch_add(1, Relaxed);
            self.counters.days_read.lock().insert(bounds.day());
            rows += bounds.rows;
            false
        });
        self.counters.rows_matched.fetch_add(rows, Relaxed);
        rows
    }

    /// Whether nothing is left.
    pub(crate) fn is_empty(&self) -> bool {
        self.items.lock().is_empty()
    }

    /// The next block to look at; `None` when no further one can hold a row.
    pub(crate) fn next(&self, cx: &ReadContext<'_>) -> Result<Option<ScanTask>> {
        let mut items = self.items.lock();
        while let Some(item) = items.pop() {
            if self.bound.is_some_and(|b| b.excludes_rank(item.rank)) {
                // The best of what is left is not good enough.
                items.clear();
                break;
            }
            match item.what {
                What::Part(i) => {
                    if let Err(e) = self.expand_part(i, cx, &mut items) {
                        let rows = self.parts.bounds(i).map_or(0, |b| b.rows);
                        let number = u32::try_from(i).unwrap_or(u32::MAX);
                        self.counters.damage.skip(e, Some((number, 0, rows)))?;
                    }
                }
                What::Index(part, entry) => {
                    if let Err(e) = self.expand_index(&part, entry, cx, &mut items) {
                        let unit = index_unit(&part, entry, cx);
                        self.counters.damage.skip(e, unit)?;
                    }
                }
                What::Block(task) => return Ok(Some(task)),
            }
        }
        Ok(None)
    }

    fn expand_part(
        &self,
        i: usize,
        cx: &ReadContext<'_>,
        items: &mut BinaryHeap<Item>,
    ) -> Result<()> {
        let Some(bounds) = self.parts.bounds(i) else { return Ok(()) };
        let reader = self.parts.reader(i)?;
        if !self.may_pass(&reader, &bounds, cx)? {
            return Ok(());
        }
        self.counters.parts_read.fetch_add(1, Relaxed);
        self.counters.days_read.lock().insert(bounds.day());
        let streams = match self.filter.selectors.as_slice() {
            [] => None,
            selectors => Some(StreamSet::select(&reader, cx, selectors)?),
        };
        if streams.as_ref().is_some_and(StreamSet::is_empty) {
            return Ok(());
        }
        let number = u32::try_from(i).unwrap_or(u32::MAX);
        let part = Arc::new(OpenPart { number, reader, bounds, streams });
        for (entry, meta) in part.reader.metaindex(cx)?.iter().enumerate() {
            self.counters.index_blocks.fetch_add(1, Relaxed);
            if self.may_hold(&part, (meta.min_time, meta.max_time), meta.first_stream, meta.streams)
            {
                let rank = self.direction.best(meta.min_time, meta.max_time);
                items.push(Item { rank, what: What::Index(part.clone(), entry) });
            }
        }
        Ok(())
    }

    /// Whether rows of a part may pass, by the names of its fields.
    fn may_pass(
        &self,
        reader: &PartReader,
        bounds: &PartBounds,
        cx: &ReadContext<'_>,
    ) -> Result<bool> {
        let filter = &self.filter.filter;
        if !self.filter.prune || filter.asks_time_only() {
            return Ok(true);
        }
        // Where names are damaged, what needs them says so.
        let Ok(names) = reader.names(cx) else { return Ok(true) };
        let says = PartSays { times: (bounds.min_time, bounds.max_time), names };
        let mut open: Vec<usize> = (0..filter.part_count()).collect();
        Ok(filter.judge_parts(&mut open, &says)? != Verdict::None)
    }

    fn expand_index(
        &self,
        part: &Arc<OpenPart>,
        entry: usize,
        cx: &ReadContext<'_>,
        items: &mut BinaryHeap<Item>,
    ) -> Result<()> {
        let index = part.reader.index_block(cx, entry)?;
        self.counters.index_blocks_read.fetch_add(1, Relaxed);
        let passing = self.blocks_that_may_pass(part, &index, cx)?;
        for (block, head) in index.heads().enumerate() {
            self.counters.blocks.fetch_add(1, Relaxed);
            if passing.as_ref().is_some_and(|passing| !passing.get(block)) {
                continue;
            }
            if self.may_hold(part, (head.min_time, head.max_time), head.first_stream, head.streams)
            {
                let rank = self.direction.best(head.min_time, head.max_time);
                let task = ScanTask { part: part.clone(), index: index.clone(), block };
                items.push(Item { rank, what: What::Block(task) });
            }
        }
        Ok(())
    }

    /// The blocks in which rows may pass, by the words that they need; `None` for all, also where
    /// what tells is damaged: the block that needs it says so.
    fn blocks_that_may_pass(
        &self,
        part: &OpenPart,
        index: &Arc<IndexBlock>,
        cx: &ReadContext<'_>,
    ) -> Result<Option<Bitmap>> {
        if !self.filter.prune {
            return Ok(None);
        }
        let says = IndexSays { part: &part.reader, cx, index };
        match self.filter.filter.blocks_that_may_pass(&says) {
            Err(Error::Corrupted { .. }) => Ok(None),
            known => known,
        }
    }

    /// Whether rows of these times and streams may pass.
    fn may_hold(&self, part: &OpenPart, times: (i64, i64), first: u32, count: u32) -> bool {
        self.filter.range.overlaps(times.0, times.1)
            && part.streams.as_ref().is_none_or(|s| s.count(first, count) > 0)
    }
}

/// The rows of an index block that cannot be read, as the metaindex counts them.
pub(super) fn index_unit(part: &OpenPart, entry: usize, cx: &ReadContext<'_>) -> Option<Unit> {
    let entries = part.reader.metaindex(cx).ok()?;
    let before: u64 = entries.iter().take(entry).map(|e| e.rows).sum();
    entries.get(entry).map(|e| (part.number, before, e.rows))
}
