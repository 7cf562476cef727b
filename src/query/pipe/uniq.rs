//! `uniq`, `top`, `field_values`: distinct tuples and how many rows have them.

use std::cmp::{Ordering, Reverse};
use std::sync::Arc;

use memchr::memmem;

use super::{Collector, Sink, same_kind};
use crate::error::Result;
use crate::query::ast::{Top, Uniq};
use crate::query::batch::{Batch, MAX_BATCH_ROWS};
use crate::query::column::{Column, push_int};
use crate::query::context::{ExecContext, Flow, Reservation};
use crate::query::group::GroupTable;
use crate::query::plan::{Planned, Wanted};
use crate::query::sorting::sort_checked;
use crate::record::{TextVec, cmp_values_then_bytes};

/// Counts the rows of each tuple; the most frequent come first, then the smaller in value order.
pub(crate) struct UniqCollector {
    plan: Arc<Plan>,
    groups: GroupTable,
    hits: Vec<u64>,
    wanted: Wanted,
    memory: Reservation,
}

struct Plan {
    what: &'static str,
    by: Vec<Arc<str>>,
    hits: Option<Arc<str>>,
    rank: Option<Arc<str>>,
    limit: Option<usize>,
    /// Only tuples whose first value contains this.
    filter: Option<String>,
    /// Whether ties are settled by the length of the values first: the rule of `top` over
    /// several fields.
    short_first: bool,
}

impl UniqCollector {
    /// The empty state of `uniq`.
    pub(crate) fn uniq(uniq: &Uniq, ctx: &ExecContext<'_>) -> UniqCollector {
        UniqCollector::new(
            Plan {
                what: "uniq",
                by: names(&uniq.by),
                hits: uniq.hits.as_deref().map(Arc::from),
                rank: None,
                limit: limit(uniq.limit),
                filter: None,
                short_first: false,
            },
            ctx,
        )
    }

    /// The empty state of `top`.
    pub(crate) fn top(top: &Top, ctx: &ExecContext<'_>) -> UniqCollector {
        UniqCollector::new(
            Plan {
                what: "top",
                by: names(&top.by),
                hits: Some(Arc::from(top.hits.as_str())),
                rank: top.rank.as_deref().map(Arc::from),
                limit: limit(Some(top.limit)),
                filter: None,
                short_first: top.by.len() > 1,
            },
            ctx,
        )
    }

    /// The empty state of `field_values`.
    pub(crate) fn field_values(
        field: &str,
        filter: Option<&str>,
        most: Option<u64>,
        ctx: &ExecContext<'_>,
    ) -> UniqCollector {
        UniqCollector::new(
            Plan {
                what: "field_values",
                by: vec![Arc::from(field)],
                hits: Some(Arc::from(if field == "hits" { "hitss" } else { "hits" })),
                rank: None,
                limit: limit(most),
                filter: filter.map(str::to_owned),
                short_first: false,
            },
            ctx,
        )
    }

    fn new(plan: Plan, ctx: &ExecContext<'_>) -> UniqCollector {
        let groups = GroupTable::new(plan.by.len());
        let memory = ctx.reservation(plan.what);
        UniqCollector {
            plan: Arc::new(plan),
            groups,
            hits: Vec::new(),
            wanted: Wanted::InOrder,
            memory,
        }
    }

    /// Sorts by the values of the key, of each the shorter first.
    fn sort_short_first(&self, order: &mut Vec<u32>, ctx: &ExecContext<'_>) -> Result<()> {
        let compare = |a: u32, b: u32, i: usize| {
            let (x, y) = (self.groups.key(a, i), self.groups.key(b, i));
            x.len().cmp(&y.len()).then_with(|| cmp_values_then_bytes(x, y))
        };
        sort_checked(order, ctx, |a, b| {
            let columns = (0..self.plan.by.len()).map(|i| compare(*a, *b, i));
            columns.fold(Ordering::Equal, Ordering::then)
        })
    }

    fn charge(&mut self) -> Result<()> {
        self.memory.resize(self.groups.heap_bytes() + self.hits.capacity() * 8)
    }

    /// The groups that come out, in order.
    fn chosen(&self, ctx: &ExecContext<'_>) -> Result<Vec<u32>> {
        let count = u32::try_from(self.hits.len()).unwrap_or(u32::MAX);
        let mut order: Vec<u32> = match &self.plan.filter {
            None => (0..count).collect(),
            Some(part) => {
                let finder = memmem::Finder::new(part.as_bytes());
                (0..count).filter(|g| finder.find(self.groups.key(*g, 0)).is_some()).collect()
            }
        };
        let hits = |g: u32| self.hits.get(g as usize).copied().unwrap_or(0);
        let limit = self.limit();
        if limit == usize::MAX && self.wanted == Wanted::AnyOrder {
            return Ok(order);
        }
        let by_key = !self.plan.short_first && orders_ties(&self.wanted);
        keep_most_frequent(&self.groups, &mut order, &hits, limit, by_key);
        if self.plan.short_first {
            self.sort_short_first(&mut order, ctx)?;
        } else {
            self.groups.sort(&mut order, ctx)?;
        }
        sort_checked(&mut order, ctx, |a, b| hits(*b).cmp(&hits(*a)))?;
        order.truncate(self.plan.limit.unwrap_or(usize::MAX));
        if orders_ties(&self.wanted) {
            order.truncate(limit);
        }
        Ok(order)
    }

    /// So many groups come out at most.
    fn limit(&self) -> usize {
        let own = self.plan.limit.unwrap_or(usize::MAX);
        own.min(most_wanted(&self.wanted, self.plan.hits.as_deref()))
    }

    /// The same as planned: of which only some rows are wanted.
    pub(crate) fn planned(mut self, planned: &Planned) -> UniqCollector {
        self.wanted = planned.wanted.clone();
        self
    }
}

fn names(fields: &[String]) -> Vec<Arc<str>> {
    fields.iter().map(|f| Arc::from(f.as_str())).collect()
}

fn limit(n: Option<u64>) -> Option<usize> {
    n.map(|n| usize::try_from(n).unwrap_or(usize::MAX))
}

impl Collector for UniqCollector {
    fn push(&mut self, ctx: &ExecContext<'_>, batch: Batch) -> Result<Flow> {
        ctx.check()?;
        if batch.rows() == 0 {
            return Ok(Flow::Continue);
        }
        let absent = Column::absent();
        let columns: Vec<&Column> =
            self.plan.by.iter().map(|f| batch.column(f).unwrap_or(&absent)).collect();
        let groups = self.groups.assign(&columns, batch.rows());
        self.hits.resize(self.groups.len(), 0);
        let mut add = |group: u32, n: u64| {
            if let Some(hits) = self.hits.get_mut(group as usize) {
                *hits += n;
            }
        };
        groups.for_each_count(batch.rows(), &mut add);
        self.charge()?;
        Ok(Flow::Continue)
    }

    fn fork(&self) -> Box<dyn Collector> {
        Box::new(UniqCollector {
            plan: self.plan.clone(),
            groups: self.groups.fork(),
            hits: Vec::new(),
            wanted: self.wanted.clone(),
            memory: self.memory.fork(),
        })
    }

    fn absorb(&mut self, ctx: &ExecContext<'_>, other: Box<dyn Collector>) -> Result<()> {
        let Some(other) = same_kind::<UniqCollector>(other) else { return Ok(()) };
        if other.hits.is_empty() {
            return Ok(());
        }
        let map = self.groups.absorb(&other.groups, ctx)?;
        self.hits.resize(self.groups.len(), 0);
        for (group, n) in map.iter().zip(&other.hits) {
            if let Some(hits) = self.hits.get_mut(*group as usize) {
                *hits += n;
            }
        }
        self.charge()
    }

    fn finish(self: Box<Self>, ctx: &ExecContext<'_>, out: &mut Sink<'_>) -> Result<()> {
        let order = self.chosen(ctx)?;
        let mut rank = 1;
        for groups in order.chunks(MAX_BATCH_ROWS) {
            ctx.check()?;
            let mut batch = Batch::new(groups.len());
            for (i, name) in self.plan.by.iter().enumerate() {
                let values: TextVec = groups.iter().map(|g| self.groups.key(*g, i)).collect();
                batch.set_column(name.clone(), Column::text(values));
            }
            if let Some(name) = &self.plan.hits {
                let hits = groups.iter().map(|g| self.hits.get(*g as usize).copied().unwrap_or(0));
                batch.set_column(name.clone(), counts(hits));
            }
            if let Some(name) = &self.plan.rank {
                batch.set_column(name.clone(), counts((rank..).take(groups.len())));
            }
            rank += groups.len() as u64;
            if out(batch)? == Flow::Stop {
                break;
            }
        }
        Ok(())
    }
}

/// So many groups are wanted at most of those that come out in the descending order of `hits`.
pub(super) fn most_wanted(wanted: &Wanted, hits: Option<&str>) -> usize {
    match wanted {
        // They come out in this order anyway.
        Wanted::Best { field, desc: true, rows, .. } if Some(field.as_str()) == hits => *rows,
        Wanted::First(rows) => *rows,
        _ => usize::MAX,
    }
}

/// Whether groups of equally many rows are wanted in the order of their keys.
pub(super) fn orders_ties(wanted: &Wanted) -> bool {
    !matches!(wanted, Wanted::Best { alone: false, .. })
}

/// Drops groups that cannot be among the `limit` most frequent: those that have fewer rows than
/// the last one to come out need no sorting by value, and of those that have as many only the first
/// are needed if ties are settled `by_key`.
pub(super) fn keep_most_frequent(
    groups: &GroupTable,
    order: &mut Vec<u32>,
    hits: &dyn Fn(u32) -> u64,
    limit: usize,
    by_key: bool,
) {
    if limit == 0 || limit >= order.len() {
        return;
    }
    let (_, last, _) = order.select_nth_unstable_by_key(limit - 1, |g| Reverse(hits(*g)));
    let least = hits(*last);
    let mut equal = Vec::new();
    order.retain(|g| {
        if hits(*g) == least {
            equal.push(*g);
        }
        hits(*g) > least
    });
    if by_key {
        groups.keep_first(&mut equal, limit - order.len());
    }
    order.append(&mut equal);
}

/// A column of counts.
pub(crate) fn counts(values: impl Iterator<Item = u64>) -> Column {
    let mut out = TextVec::new();
    for n in values {
        push_int(out.open(), i64::try_from(n).unwrap_or(i64::MAX));
        out.close();
    }
    Column::text(out)
}
