//! `uniq`, `top`, `field_values`: distinct tuples and how many rows have them.

use std::cmp::{Ordering, Reverse};
use std::sync::Arc;

use memchr::memmem;

use super::transform::map_column;
use super::{Collector, Sink, emit, same_kind};
use crate::error::Result;
use crate::query::ast::{MESSAGE_FIELD, Top, Uniq};
use crate::query::batch::Batch;
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
    /// Whether messages come as their patterns.
    mapped: bool,
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
    /// Whether the field `pattern` is made of the message.
    patterns: bool,
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
                patterns: false,
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
                patterns: false,
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
                patterns: false,
                short_first: false,
            },
            ctx,
        )
    }

    /// The empty state of `patterns`.
    pub(crate) fn patterns(by: &[String], ctx: &ExecContext<'_>) -> UniqCollector {
        let mut by = names(by);
        by.push(Arc::from(PATTERN_FIELD));
        UniqCollector::new(
            Plan {
                what: "patterns",
                by,
                hits: Some(Arc::from("hits")),
                rank: None,
                limit: None,
                filter: None,
                patterns: true,
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
            mapped: false,
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
        let hits = |g: &u32| Reverse(self.hits.get(*g as usize).copied().unwrap_or(0));
        let limit = self.limit();
        if limit == usize::MAX && self.wanted == Wanted::AnyOrder {
            return Ok(order);
        }
        if limit > 0 && limit < order.len() {
            // Groups that have fewer rows than the last one to come out need no sorting by value,
            // and of those that have as many only the first are needed.
            let (_, last, _) = order.select_nth_unstable_by_key(limit - 1, hits);
            let least = hits(last);
            let mut equal = Vec::new();
            order.retain(|g| {
                if hits(g) == least {
                    equal.push(*g);
                }
                hits(g) < least
            });
            if !self.plan.short_first {
                self.groups.keep_first(&mut equal, limit - order.len());
            }
            order.append(&mut equal);
        }
        if self.plan.short_first {
            self.sort_short_first(&mut order, ctx)?;
        } else {
            self.groups.sort(&mut order, ctx)?;
        }
        sort_checked(&mut order, ctx, |a, b| hits(a).cmp(&hits(b)))?;
        order.truncate(limit);
        Ok(order)
    }

    /// So many groups come out at most.
    fn limit(&self) -> usize {
        let own = self.plan.limit.unwrap_or(usize::MAX);
        match &self.wanted {
            // They come out in this order anyway.
            Wanted::Best { field, desc: true, rows }
                if self.plan.hits.as_deref() == Some(field) =>
            {
                own.min(*rows)
            }
            Wanted::First(rows) => own.min(*rows),
            _ => own,
        }
    }

    /// The same as planned: of which only some rows are wanted, whose messages may be mapped.
    pub(crate) fn planned(mut self, planned: &Planned) -> UniqCollector {
        self.wanted = planned.wanted.clone();
        self.mapped = planned.mapped;
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
    fn push(&mut self, ctx: &ExecContext<'_>, mut batch: Batch) -> Result<Flow> {
        ctx.check()?;
        if batch.rows() == 0 {
            return Ok(Flow::Continue);
        }
        if self.plan.patterns {
            let message = batch.column(MESSAGE_FIELD).cloned().unwrap_or_else(Column::absent);
            let pattern = if self.mapped {
                message
            } else {
                map_column(ctx, &message, batch.rows(), None, &push_pattern)?
            };
            batch.set_column(Arc::from(PATTERN_FIELD), pattern);
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
            mapped: self.mapped,
            memory: self.memory.fork(),
        })
    }

    fn absorb(&mut self, _ctx: &ExecContext<'_>, other: Box<dyn Collector>) -> Result<()> {
        let Some(other) = same_kind::<UniqCollector>(other) else { return Ok(()) };
        if other.hits.is_empty() {
            return Ok(());
        }
        let map = self.groups.absorb(&other.groups);
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
        let mut batch = Batch::new(order.len());
        for (i, name) in self.plan.by.iter().enumerate() {
            let values: TextVec = order.iter().map(|g| self.groups.key(*g, i)).collect();
            batch.set_column(name.clone(), Column::text(values));
        }
        if let Some(name) = &self.plan.hits {
            let hits = order.iter().map(|g| self.hits.get(*g as usize).copied().unwrap_or(0));
            batch.set_column(name.clone(), counts(hits));
        }
        if let Some(name) = &self.plan.rank {
            batch.set_column(name.clone(), counts(1..=order.len() as u64));
        }
        emit(&batch, out).map(|_| ())
    }
}

/// The field that takes the pattern of a message.
const PATTERN_FIELD: &str = "pattern";

/// Appends a text with every run of letters and digits that holds a digit replaced by `<*>`.
pub(crate) fn push_pattern(value: &[u8], out: &mut Vec<u8>) {
    let word = |b: &u8| b.is_ascii_alphanumeric() || !b.is_ascii();
    let mut rest = value;
    while !rest.is_empty() {
        let plain = rest.iter().take_while(|b| !word(b)).count();
        let (between, tail) = rest.split_at(plain);
        let len = tail.iter().take_while(|b| word(b)).count();
        let (run, tail) = tail.split_at(len);
        out.extend_from_slice(between);
        out.extend_from_slice(if run.iter().any(u8::is_ascii_digit) { b"<*>" } else { run });
        rest = tail;
    }
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
