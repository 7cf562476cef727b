//! `patterns`: what messages have in common, how often, and since when.

use std::cmp::Ordering;
use std::sync::Arc;

use super::pattern_text::push_pattern;
use super::transform::map_column;
use super::uniq::{counts, keep_most_frequent, most_wanted, orders_ties};
use super::{Collector, Condition, Sink, emit, same_kind, selected};
use crate::error::Result;
use crate::query::ast::{MESSAGE_FIELD, Patterns, TIME_FIELD};
use crate::query::batch::Batch;
use crate::query::column::{Column, push_time};
use crate::query::context::{ExecContext, Flow, Reservation};
use crate::query::group::GroupTable;
use crate::query::plan::{Planned, Wanted};
use crate::query::position::RowPos;
use crate::query::sorting::sort_checked;
use crate::query::stats::Place;
use crate::record::{TextVec, parse_rfc3339};

/// The state of `patterns`.
pub(crate) struct PatternsCollector {
    plan: Arc<Plan>,
    groups: GroupTable,
    seen: Vec<Seen>,
    /// The newest message of each group, where it cannot be read again at the end.
    texts: Vec<Box<[u8]>>,
    text_bytes: usize,
    /// Rows that were counted.
    total: u64,
    /// Rows that came.
    arrived: u64,
    /// The number of the batch that is being pushed.
    batch: u32,
    memory: Reservation,
}

struct Plan {
    by: Vec<Arc<str>>,
    baseline: Option<Condition>,
    /// Whether messages come as their patterns, and say where they are stored.
    mapped: bool,
    /// Whether someone reads when rows were seen, or the example.
    times: bool,
    example: bool,
    wanted: Wanted,
}

/// What is known of a group.
#[derive(Debug, Clone, Copy)]
struct Seen {
    hits: u64,
    /// Whether a row of the baseline is of the group.
    known: bool,
    /// The earliest time; the greatest number if there is none.
    first: i64,
    /// The latest time; the least number if there is none.
    last: i64,
    /// Where the newest row stands.
    newest: Option<Place>,
    /// The batch of the newest row, and its number there, until the batch ends.
    row: (u32, u32),
}

const UNSEEN: Seen =
    Seen { hits: 0, known: false, first: i64::MAX, last: i64::MIN, newest: None, row: (0, 0) };

/// The times of a batch.
enum Times<'a> {
    Unread,
    All(&'a [i64]),
    Some(Vec<Option<i64>>),
}

impl Times<'_> {
    fn of(column: Option<&Column>, rows: usize) -> Times<'_> {
        match column {
            Some(Column::Times(times)) => Times::All(times),
            Some(column) => {
                let mut out = Vec::with_capacity(rows);
                let time = |value: &[u8]| parse_rfc3339(value).map(|time| time.as_nanos());
                column.for_each(rows, |_, value| out.push(time(value)));
                Times::Some(out)
            }
            None => Times::Unread,
        }
    }

    #[inline]
    fn get(&self, row: usize) -> Option<i64> {
        match self {
            Times::Unread => None,
            Times::All(times) => times.get(row).copied(),
            Times::Some(times) => times.get(row).copied().flatten(),
        }
    }
}

impl PatternsCollector {
    /// The empty state.
    pub(crate) fn new(
        plan: &Patterns,
        planned: &Planned,
        ctx: &ExecContext<'_>,
    ) -> Result<PatternsCollector> {
        let baseline = plan.baseline.as_ref().map(|b| b.filter());
        let baseline = baseline.map(|filter| Condition::compile(Some(&filter), ctx)).transpose()?;
        let is_read = |name: &str| planned.output.contains(name);
        let plan = Plan {
            by: plan.by.iter().map(|name| Arc::from(name.as_str())).collect(),
            baseline,
            mapped: planned.mapped,
            times: is_read("first") || is_read("last") || is_read("example"),
            example: is_read("example"),
            wanted: planned.wanted.clone(),
        };
        Ok(PatternsCollector::empty(&Arc::new(plan), ctx.reservation("patterns")))
    }

    fn empty(plan: &Arc<Plan>, memory: Reservation) -> PatternsCollector {
        PatternsCollector {
            plan: Arc::clone(plan),
            groups: GroupTable::new(plan.by.len() + 1),
            seen: Vec::new(),
            texts: Vec::new(),
            text_bytes: 0,
            total: 0,
            arrived: 0,
            batch: 0,
            memory,
        }
    }

    /// Whether messages are kept, since they cannot be read again.
    fn keeps_texts(&self) -> bool {
        self.plan.example && !self.plan.mapped
    }

    fn charge(&mut self) -> Result<()> {
        let texts = self.text_bytes + self.texts.capacity() * size_of::<Box<[u8]>>();
        let seen = self.seen.capacity() * size_of::<Seen>();
        self.memory.resize(self.groups.heap_bytes() + seen + texts)
    }

    /// Takes a row; says whether it is the newest of its group so far, and the first such of the
    /// batch.
    fn add(
        &mut self,
        ctx: &ExecContext<'_>,
        batch: &Batch,
        row: usize,
        group: u32,
        time: Option<i64>,
    ) -> bool {
        let Some(seen) = self.seen.get_mut(group as usize) else { return false };
        seen.hits += 1;
        seen.first = seen.first.min(time.unwrap_or(i64::MAX));
        let time = time.unwrap_or(i64::MIN);
        if time < seen.last || !self.plan.example {
            seen.last = seen.last.max(time);
            return false;
        }
        // Of the rows of a batch that have one time, the later ones come behind the others.
        let is_newest = time > seen.last
            || seen.row.0 == self.batch
            || seen.newest.is_none_or(|newest| {
                place(batch, row, time, self.arrived).compare(&newest, ctx) == Ordering::Greater
            });
        if !is_newest {
            return false;
        }
        seen.last = time;
        let is_first = seen.row.0 != self.batch;
        seen.row = (self.batch, u32::try_from(row).unwrap_or(u32::MAX));
        is_first
    }

    /// Notes where the newest rows of a batch stand, and their messages if need be.
    fn keep_newest(&mut self, batch: &Batch, touched: &[u32]) {
        let message = batch.column(MESSAGE_FIELD).filter(|_| self.keeps_texts());
        let mut scratch = Vec::new();
        for group in touched {
            let Some(seen) = self.seen.get_mut(*group as usize) else { continue };
            let row = seen.row.1 as usize;
            seen.newest = Some(place(batch, row, seen.last, self.arrived));
            if self.plan.mapped || !self.plan.example {
                continue;
            }
            let text = message.map_or(&[][..], |message| message.value(row, &mut scratch));
            if let Some(slot) = self.texts.get_mut(*group as usize) {
                self.text_bytes = self.text_bytes - slot.len() + text.len();
                *slot = Box::from(text);
            }
        }
    }

    fn make_room(&mut self) {
        self.seen.resize(self.groups.len(), UNSEEN);
        if self.keeps_texts() {
            self.texts.resize(self.groups.len(), Box::default());
        }
    }

    fn hits(&self, group: u32) -> u64 {
        self.seen.get(group as usize).map_or(0, |seen| seen.hits)
    }

    /// The groups that come out, in order.
    fn chosen(&self, ctx: &ExecContext<'_>) -> Result<Vec<u32>> {
        let groups = (0u32..).zip(&self.seen);
        let mut order: Vec<u32> = groups
            .filter(|(_, seen)| seen.hits > 0 && !seen.known)
            .map(|(group, _)| group)
            .collect();
        let limit = most_wanted(&self.plan.wanted, Some("hits"));
        let hits = |group: u32| self.hits(group);
        if limit == usize::MAX && self.plan.wanted == Wanted::AnyOrder {
            return Ok(order);
        }
        let by_key = orders_ties(&self.plan.wanted);
        keep_most_frequent(&self.groups, &mut order, &hits, limit, by_key);
        self.groups.sort(&mut order, ctx)?;
        sort_checked(&mut order, ctx, |a, b| hits(*b).cmp(&hits(*a)))?;
        if by_key {
            order.truncate(limit);
        }
        Ok(order)
    }

    /// The newest message of each of these groups.
    fn examples(&self, ctx: &ExecContext<'_>, order: &[u32]) -> Result<TextVec> {
        if self.keeps_texts() {
            let text = |group: &u32| self.texts.get(*group as usize).map_or(&[][..], |text| text);
            return Ok(order.iter().map(text).collect());
        }
        let place = |group: &u32| match self.seen.get(*group as usize)?.newest? {
            Place::Stored(place) => Some(place),
            Place::Arrived(_) => None,
        };
        let places: Vec<RowPos> =
            order.iter().map(|group| place(group).unwrap_or_default()).collect();
        ctx.neighbours.values_at(MESSAGE_FIELD, &places)
    }

    fn times(&self, order: &[u32], time: impl Fn(&Seen) -> i64) -> Column {
        let mut out = TextVec::new();
        for group in order {
            // Without any time the one stands before the other.
            if let Some(seen) = self.seen.get(*group as usize).filter(|s| s.first <= s.last) {
                push_time(out.open(), time(seen));
            }
            out.close();
        }
        Column::text(out)
    }
}

/// The place of a row of a batch.
fn place(batch: &Batch, row: usize, time: i64, arrived: u64) -> Place {
    if let Some(origin) = batch.origin() {
        return Place::Stored(origin.place(u32::try_from(row).unwrap_or(u32::MAX), time));
    }
    match batch.positions().and_then(|places| places.get(row)) {
        Some(place) => Place::Stored(*place),
        None => Place::Arrived(arrived.saturating_add(row as u64)),
    }
}

/// Appends a part of a whole as a decimal of at most six digits behind the point.
fn push_share(part: u64, whole: u64, out: &mut Vec<u8>) {
    const UNIT: u128 = 1_000_000;
    let whole = u128::from(whole.max(1));
    let millionths = (u128::from(part) * UNIT + whole / 2) / whole;
    let text = format!("{}.{:06}", millionths / UNIT, millionths % UNIT);
    out.extend_from_slice(text.trim_end_matches('0').trim_end_matches('.').as_bytes());
}

impl Collector for PatternsCollector {
    fn push(&mut self, ctx: &ExecContext<'_>, batch: Batch) -> Result<Flow> {
        ctx.check()?;
        let rows = batch.rows();
        if rows == 0 {
            return Ok(Flow::Continue);
        }
        let message = batch.column(MESSAGE_FIELD).cloned().unwrap_or_else(Column::absent);
        let pattern = match self.plan.mapped {
            true => message,
            false => map_column(ctx, &message, rows, None, &push_pattern)?,
        };
        let absent = Column::absent();
        let mut columns: Vec<&Column> =
            self.plan.by.iter().map(|f| batch.column(f).unwrap_or(&absent)).collect();
        columns.push(&pattern);
        let groups = self.groups.assign(&columns, rows);
        self.make_room();
        self.batch += 1;
        let plan = Arc::clone(&self.plan);
        let baseline = plan.baseline.as_ref().map(|b| b.select(&batch)).transpose()?;
        let times = match plan.times {
            true => Times::of(batch.column(TIME_FIELD), rows),
            false => Times::Unread,
        };
        let mut touched = Vec::new();
        for (row, group) in groups.to_each(rows).into_iter().enumerate() {
            if baseline.as_ref().is_some_and(|known| selected(known.as_ref(), row)) {
                if let Some(seen) = self.seen.get_mut(group as usize) {
                    seen.known = true;
                }
                continue;
            }
            self.total += 1;
            if self.add(ctx, &batch, row, group, times.get(row)) {
                touched.push(group);
            }
        }
        self.keep_newest(&batch, &touched);
        self.arrived += rows as u64;
        self.charge()?;
        Ok(Flow::Continue)
    }

    fn fork(&self) -> Box<dyn Collector> {
        Box::new(PatternsCollector::empty(&self.plan, self.memory.fork()))
    }

    fn absorb(&mut self, ctx: &ExecContext<'_>, other: Box<dyn Collector>) -> Result<()> {
        let Some(other) = same_kind::<PatternsCollector>(other) else { return Ok(()) };
        let mut other = *other;
        if other.seen.is_empty() {
            return Ok(());
        }
        let map = self.groups.absorb(&other.groups, ctx)?;
        self.make_room();
        for (theirs, group) in map.iter().enumerate() {
            let Some(seen) = other.seen.get(theirs) else { continue };
            let Some(own) = self.seen.get_mut(*group as usize) else { continue };
            own.hits += seen.hits;
            own.known |= seen.known;
            own.first = own.first.min(seen.first);
            let newest = seen.newest.map(|place| match place {
                Place::Arrived(n) => Place::Arrived(n.saturating_add(self.arrived)),
                stored => stored,
            });
            let is_newer = match (newest, own.newest) {
                (Some(_), None) => true,
                (Some(theirs), Some(mine)) => {
                    let by_time = seen.last.cmp(&own.last);
                    by_time.then_with(|| theirs.compare(&mine, ctx)) == Ordering::Greater
                }
                (None, _) => false,
            };
            own.last = own.last.max(seen.last);
            if is_newer {
                own.newest = newest;
                if let (Some(slot), Some(text)) =
                    (self.texts.get_mut(*group as usize), other.texts.get_mut(theirs))
                {
                    self.text_bytes = self.text_bytes - slot.len() + text.len();
                    *slot = std::mem::take(text);
                }
            }
        }
        self.total += other.total;
        self.arrived += other.arrived;
        self.charge()
    }

    fn finish(self: Box<Self>, ctx: &ExecContext<'_>, out: &mut Sink<'_>) -> Result<()> {
        let order = self.chosen(ctx)?;
        let mut batch = Batch::new(order.len());
        let key = |i: usize| Column::text(order.iter().map(|g| self.groups.key(*g, i)).collect());
        for (i, name) in self.plan.by.iter().enumerate() {
            batch.set_column(name.clone(), key(i));
        }
        batch.set_column(Arc::from("pattern"), key(self.plan.by.len()));
        batch.set_column(Arc::from("hits"), counts(order.iter().map(|g| self.hits(*g))));
        let mut shares = TextVec::new();
        for group in &order {
            push_share(self.hits(*group), self.total, shares.open());
            shares.close();
        }
        batch.set_column(Arc::from("share"), Column::text(shares));
        if self.plan.times {
            batch.set_column(Arc::from("first"), self.times(&order, |seen| seen.first));
            batch.set_column(Arc::from("last"), self.times(&order, |seen| seen.last));
        }
        if self.plan.example {
            let examples = self.examples(ctx, &order)?;
            batch.set_column(Arc::from("example"), Column::text(examples));
        }
        emit(&batch, out).map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_rounded_decimals() {
        for (part, whole, want) in
            [(1, 3, "0.333333"), (2, 3, "0.666667"), (1, 4, "0.25"), (5, 5, "1"), (0, 0, "0")]
        {
            let mut out = Vec::new();
            push_share(part, whole, &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), want);
        }
    }
}
