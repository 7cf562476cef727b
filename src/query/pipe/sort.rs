//! `sort`, `first`, `last`.

use std::cmp::Ordering;
use std::sync::Arc;

use super::{Collector, Sink, same_kind};
use crate::error::{Error, Result};
use crate::query::ast::Sort;
use crate::query::batch::{Batch, MAX_BATCH_ROWS};
use crate::query::column::{Column, push_int};
use crate::query::context::{CHECK_ROWS, ExecContext, Flow, Reservation};
use crate::query::group::GroupTable;
use crate::query::sorting::sort_checked;
use crate::query::stats::Place;
use crate::query::value_key::{ValueKey, ValueRef, compare_refs, sort_key};
use crate::record::{SortKey, TextVec};

/// Rows kept above the limit before they are sorted and cut.
const SLACK: usize = 8_192;

/// The rows that may still come out of a sort.
///
/// With a limit only that many rows (per partition) are kept, give or take the slack between two
/// cuts, and the worst of them turns most later rows away by their first key.
pub(crate) struct SortCollector {
    plan: Arc<Plan>,
    batches: Vec<Kept>,
    entries: Vec<Entry>,
    arrived: u64,
    /// No row whose first key comes after this one can come out.
    bar: Option<ValueKey>,
    /// The number of entries at which they are cut.
    cut_at: usize,
    memory: Reservation,
}

struct Plan {
    sort: Sort,
    /// Rows of a partition that may come out, the offset included.
    keep: Option<usize>,
}

struct Kept {
    batch: Batch,
    places: Vec<Place>,
}

/// A row: its first key, and where it is.
#[derive(Clone, Copy)]
struct Entry {
    key: SortKey,
    batch: u32,
    row: u32,
}

impl SortCollector {
    /// The empty state.
    pub(crate) fn new(sort: &Sort, ctx: &ExecContext<'_>) -> SortCollector {
        let size = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
        let offset = size(sort.offset.unwrap_or(0));
        let keep = sort.limit.map(|limit| offset.saturating_add(size(limit)));
        SortCollector {
            plan: Arc::new(Plan { sort: sort.clone(), keep }),
            batches: Vec::new(),
            entries: Vec::new(),
            arrived: 0,
            bar: None,
            cut_at: cut_at(keep, 0),
            memory: ctx.reservation("sort"),
        }
    }

    fn add(&mut self, ctx: &ExecContext<'_>, batch: Batch, places: Vec<Place>) -> Result<()> {
        let index = u32::try_from(self.batches.len()).unwrap_or(u32::MAX);
        let absent = Column::absent();
        let first = self.plan.sort.keys.first();
        let column = first.and_then(|k| batch.column(&k.field)).unwrap_or(&absent);
        let mut scratch = Vec::new();
        for row in 0..u32::try_from(batch.rows()).unwrap_or(u32::MAX) {
            let key = sort_key(ValueRef::of(column, row as usize), &mut scratch);
            self.entries.push(Entry { key, batch: index, row });
        }
        self.batches.push(Kept { batch, places });
        if self.entries.len() >= self.cut_at {
            self.cut(ctx)?;
        }
        match self.charge() {
            // Rows that cannot come out may make room.
            Err(Error::MemoryLimit { .. }) if self.plan.keep.is_some() => {
                self.cut(ctx)?;
                self.charge()
            }
            charged => charged,
        }
    }

    /// The rows of a batch that the bar lets through.
    fn pass_bar(&self, batch: &Batch) -> Option<Vec<u32>> {
        let bar = self.bar.as_ref()?;
        let key = self.plan.sort.keys.first()?;
        let absent = Column::absent();
        let column = batch.column(&key.field).unwrap_or(&absent);
        let worse = if key.desc { Ordering::Less } else { Ordering::Greater };
        let rows = 0..u32::try_from(batch.rows()).unwrap_or(u32::MAX);
        let passes = |row: &u32| ValueRef::of(column, *row as usize).compare(bar) != worse;
        Some(rows.filter(passes).collect())
    }

    /// Sorts the entries and drops those that cannot come out; sets the bar.
    fn cut(&mut self, ctx: &ExecContext<'_>) -> Result<()> {
        let Some(keep) = self.plan.keep else { return Ok(()) };
        ctx.check()?;
        self.sort_entries(ctx)?;
        if self.plan.sort.partition_by.is_empty() {
            self.entries.truncate(keep);
            self.bar = self.entries.last().filter(|_| self.entries.len() == keep).and_then(|e| {
                let key = self.plan.sort.keys.first()?;
                let batch = &self.batches.get(e.batch as usize)?.batch;
                let value = batch.column(&key.field).map(|c| ValueRef::of(c, e.row as usize));
                Some(value.unwrap_or(ValueRef::Text(&[])).to_key())
            });
        } else {
            let positions = self.positions_in_partition();
            let mut positions = positions.iter();
            self.entries.retain(|_| positions.next().is_some_and(|p| *p <= keep as u64));
        }
        self.compact(ctx)?;
        self.cut_at = cut_at(Some(keep), self.entries.len());
        Ok(())
    }

    /// Moves the rows of the entries, in their order, into batches of their own.
    fn compact(&mut self, ctx: &ExecContext<'_>) -> Result<()> {
        let (batches, places): (Vec<Batch>, Vec<Vec<Place>>) =
            self.batches.drain(..).map(|k| (k.batch, k.places)).unzip();
        let place = |(batch, row): &(u32, u32)| {
            let places = places.get(*batch as usize);
            places.and_then(|p| p.get(*row as usize)).copied().unwrap_or(Place::Arrived(0))
        };
        for (number, entries) in (0..).zip(self.entries.chunks_mut(CHECK_ROWS)) {
            ctx.check()?;
            let rows: Vec<(u32, u32)> = entries.iter().map(|e| (e.batch, e.row)).collect();
            let places = rows.iter().map(place).collect();
            self.batches.push(Kept { batch: Batch::gather_from(&batches, &rows), places });
            for (row, entry) in (0..).zip(entries) {
                (entry.batch, entry.row) = (number, row);
            }
        }
        Ok(())
    }

    fn charge(&mut self) -> Result<()> {
        let batches: usize = self
            .batches
            .iter()
            .map(|k| k.batch.heap_bytes() + k.places.capacity() * size_of::<Place>())
            .sum();
        self.memory.resize(batches + 2 * self.entries.capacity() * size_of::<Entry>())
    }

    fn sort_entries(&mut self, ctx: &ExecContext<'_>) -> Result<()> {
        let keys = self.keys();
        let absent = Column::absent();
        let columns: Vec<Vec<&Column>> = self
            .batches
            .iter()
            .map(|k| keys.iter().map(|(f, _)| k.batch.column(f).unwrap_or(&absent)).collect())
            .collect();
        let (batches, named) = (&self.batches, !self.plan.sort.keys.is_empty());
        let column = |e: &Entry, i: usize| {
            columns.get(e.batch as usize).and_then(|c| c.get(i)).copied().unwrap_or(&absent)
        };
        let place = |e: &Entry| {
            let places = batches.get(e.batch as usize).map(|k| &k.places);
            places.and_then(|p| p.get(e.row as usize)).copied().unwrap_or(Place::Arrived(0))
        };
        sort_checked(&mut self.entries, ctx, |a, b| {
            for (i, (_, desc)) in keys.iter().enumerate() {
                let quick = if named && i == 0 { a.key.compare_keys(b.key) } else { None };
                let order = quick.unwrap_or_else(|| {
                    let x = ValueRef::of(column(a, i), a.row as usize);
                    compare_refs(x, ValueRef::of(column(b, i), b.row as usize))
                });
                if order != Ordering::Equal {
                    return if *desc { order.reverse() } else { order };
                }
            }
            place(a).compare(&place(b), ctx)
        })
    }

    /// The keys and whether the largest comes first; without keys all fields by name.
    fn keys(&self) -> Vec<(String, bool)> {
        let sort = &self.plan.sort;
        if !sort.keys.is_empty() {
            return sort.keys.iter().map(|k| (k.field.clone(), k.desc)).collect();
        }
        let columns = self.batches.iter().flat_map(|k| k.batch.columns());
        let mut names: Vec<(String, bool)> =
            columns.map(|(name, _)| (name.to_string(), sort.desc)).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// For each entry, in order, its position in its partition, counted from 1.
    fn positions_in_partition(&self) -> Vec<u64> {
        let fields = &self.plan.sort.partition_by;
        if fields.is_empty() {
            return (1..=self.entries.len() as u64).collect();
        }
        let mut table = GroupTable::new(fields.len());
        let absent = Column::absent();
        let groups: Vec<_> = self
            .batches
            .iter()
            .map(|k| {
                let columns: Vec<&Column> =
                    fields.iter().map(|f| k.batch.column(f).unwrap_or(&absent)).collect();
                table.assign(&columns, k.batch.rows())
            })
            .collect();
        let mut seen = vec![0u64; table.len()];
        let position = |e: &Entry| {
            let group = groups.get(e.batch as usize).map_or(0, |g| g.get(e.row as usize));
            let Some(n) = seen.get_mut(group as usize) else { return 0 };
            *n += 1;
            *n
        };
        self.entries.iter().map(position).collect()
    }
}

fn cut_at(keep: Option<usize>, kept: usize) -> usize {
    match keep {
        Some(keep) => keep.max(kept).saturating_mul(2).saturating_add(SLACK),
        None => usize::MAX,
    }
}

/// The place of each row of a batch, `arrived` rows having come before it.
fn places(batch: &Batch, arrived: u64) -> Vec<Place> {
    match batch.positions() {
        Some(positions) => positions.iter().map(|p| Place::Stored(*p)).collect(),
        None => (0..batch.rows() as u64).map(|i| Place::Arrived(arrived + i)).collect(),
    }
}

impl Collector for SortCollector {
    fn push(&mut self, ctx: &ExecContext<'_>, batch: Batch) -> Result<Flow> {
        ctx.check()?;
        let mut places = places(&batch, self.arrived);
        self.arrived += batch.rows() as u64;
        if self.plan.keep == Some(0) {
            return Ok(Flow::Stop);
        }
        let batch = match self.pass_bar(&batch) {
            None => batch,
            Some(rows) if rows.len() == batch.rows() => batch,
            Some(rows) => {
                places = rows.iter().filter_map(|r| places.get(*r as usize).copied()).collect();
                batch.gather(&rows)
            }
        };
        if batch.rows() > 0 {
            self.add(ctx, batch, places)?;
        }
        Ok(Flow::Continue)
    }

    fn fork(&self) -> Box<dyn Collector> {
        Box::new(SortCollector {
            plan: self.plan.clone(),
            batches: Vec::new(),
            entries: Vec::new(),
            arrived: self.arrived,
            bar: None,
            cut_at: cut_at(self.plan.keep, 0),
            memory: self.memory.fork(),
        })
    }

    fn absorb(&mut self, ctx: &ExecContext<'_>, other: Box<dyn Collector>) -> Result<()> {
        let Some(mut other) = same_kind::<SortCollector>(other) else { return Ok(()) };
        let base = self.arrived;
        self.arrived += other.arrived;
        other.memory.resize(0)?;
        // Entries that were cut away leave their rows behind.
        if other.plan.keep.is_some() {
            other.sort_entries(ctx)?;
            other.compact(ctx)?;
        }
        for mut kept in other.batches {
            for place in &mut kept.places {
                if let Place::Arrived(n) = place {
                    *n += base;
                }
            }
            self.add(ctx, kept.batch, kept.places)?;
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>, ctx: &ExecContext<'_>, out: &mut Sink<'_>) -> Result<()> {
        ctx.check()?;
        self.sort_entries(ctx)?;
        let positions = self.positions_in_partition();
        let first = self.plan.sort.offset.unwrap_or(0);
        let last = first.saturating_add(self.plan.sort.limit.unwrap_or(u64::MAX));
        let wanted: Vec<((u32, u32), u64)> = self
            .entries
            .iter()
            .zip(positions)
            .filter(|(_, p)| (first < *p) && (*p <= last))
            .map(|(e, p)| ((e.batch, e.row), p))
            .collect();
        let rank: Option<Arc<str>> = self.plan.sort.rank.as_deref().map(Arc::from);
        let batches: Vec<Batch> = self.batches.drain(..).map(|k| k.batch).collect();
        for chunk in wanted.chunks(MAX_BATCH_ROWS) {
            ctx.check()?;
            let rows: Vec<(u32, u32)> = chunk.iter().map(|(row, _)| *row).collect();
            let mut batch = Batch::gather_from(&batches, &rows);
            batch.clear_positions();
            if let Some(rank) = &rank {
                let mut values = TextVec::with_capacity(chunk.len(), 0);
                for (_, position) in chunk {
                    push_int(values.open(), i64::try_from(*position).unwrap_or(i64::MAX));
                    values.close();
                }
                batch.set_column(rank.clone(), Column::text(values));
            }
            if out(batch)? == Flow::Stop {
                break;
            }
        }
        Ok(())
    }
}
