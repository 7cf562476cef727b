//! The pipe `stats`: groups and their functions.

use std::cmp::Ordering;
use std::sync::Arc;

use super::{BucketFn, Input, StatsState, compile_function};
use crate::error::Result;
use crate::query::ast::{GroupKey, StatsItem};
use crate::query::batch::{Batch, MAX_BATCH_ROWS};
use crate::query::column::Column;
use crate::query::context::{ExecContext, Flow, Reservation};
use crate::query::group::{GroupTable, KeyColumn};
use crate::query::pipe::{Collector, Condition, Sink, same_kind};
use crate::query::plan::Wanted;
use crate::query::time_buckets::EvenBuckets;
use crate::record::{SortKey, TextVec};

/// The state of one `stats`.
pub(crate) struct StatsCollector {
    keys: Arc<Vec<Key>>,
    groups: GroupTable,
    functions: Vec<Function>,
    wanted: Wanted,
    arrived: u64,
    memory: Reservation,
}

struct Key {
    field: Arc<str>,
    bucket: Option<BucketFn>,
}

/// What the values of a key are made of, batch by batch.
enum KeySource<'b> {
    Column(&'b Column),
    Bucketed(Column),
    Times(&'b [i64], EvenBuckets, Box<dyn Fn(i64) -> i64 + 'b>),
}

impl Key {
    fn source<'b>(&'b self, batch: &'b Batch, absent: &'b Column) -> KeySource<'b> {
        let column = batch.column(&self.field).unwrap_or(absent);
        let Some(bucket) = &self.bucket else { return KeySource::Column(column) };
        match (column, bucket.even_buckets()) {
            (Column::Times(times), Some(even)) => {
                KeySource::Times(times, even, Box::new(|ns| bucket.time(ns)))
            }
            _ => KeySource::Bucketed(bucket.apply(column, batch.rows())),
        }
    }
}

impl KeySource<'_> {
    fn column(&self) -> KeyColumn<'_> {
        match self {
            KeySource::Column(column) => KeyColumn::Values(column),
            KeySource::Bucketed(column) => KeyColumn::Values(column),
            KeySource::Times(times, even, start) => KeyColumn::Buckets(times, *even, start),
        }
    }
}

struct Function {
    condition: Arc<Condition>,
    result: Arc<str>,
    state: Box<dyn StatsState>,
}

impl StatsCollector {
    /// The empty state of `stats by (...) ...`.
    pub(crate) fn new(
        by: &[GroupKey],
        items: &[StatsItem],
        ctx: &ExecContext<'_>,
    ) -> Result<StatsCollector> {
        let keys = by.iter().map(|key| Key {
            field: Arc::from(key.field.as_str()),
            bucket: key.bucket.as_ref().map(|b| BucketFn::new(b, &ctx.zone)),
        });
        let mut functions = Vec::with_capacity(items.len());
        for item in items {
            functions.push(Function {
                condition: Arc::new(Condition::compile(item.condition.as_ref(), ctx)?),
                result: Arc::from(item.result.as_str()),
                state: compile_function(&item.function, ctx),
            });
        }
        Ok(StatsCollector {
            keys: Arc::new(keys.collect()),
            groups: GroupTable::new(by.len()),
            functions,
            wanted: Wanted::InOrder,
            arrived: 0,
            memory: ctx.reservation("stats"),
        })
    }

    /// The same, of which only some rows are wanted.
    pub(crate) fn wanted(mut self, wanted: &Wanted) -> StatsCollector {
        self.wanted = wanted.clone();
        self
    }

    fn charge(&mut self) -> Result<()> {
        let functions: usize = self.functions.iter().map(|f| f.state.heap_bytes()).sum();
        self.memory.resize(self.groups.heap_bytes() + functions)
    }

    /// The groups that are wanted, in the order of their keys.
    fn wanted_groups(&mut self, ctx: &ExecContext<'_>) -> Result<Vec<u32>> {
        let count = u32::try_from(self.groups.len()).unwrap_or(u32::MAX);
        let mut groups: Vec<u32> = (0..count).collect();
        if let Wanted::Best { field, desc, rows, .. } = &self.wanted
            && *rows > 0
            && *rows < groups.len()
            && let Some(function) = self.functions.iter_mut().rfind(|f| *f.result == **field)
        {
            let mut answers = TextVec::with_capacity(groups.len(), 0);
            for (i, group) in groups.iter().enumerate() {
                function.state.answer(ctx, *group, answers.open());
                answers.close();
                ctx.check_row(i)?;
            }
            keep_best(&mut groups, &answers, *desc, *rows);
        }
        if let Wanted::First(rows) = self.wanted {
            self.groups.keep_first(&mut groups, rows);
        }
        if self.wanted != Wanted::AnyOrder {
            self.groups.sort(&mut groups, ctx)?;
        }
        Ok(groups)
    }
}

/// Drops the groups whose answer comes behind that of the best `rows` ones; group `i` has answer
/// `i`.
fn keep_best(groups: &mut Vec<u32>, answers: &TextVec, desc: bool, rows: usize) {
    let compare = |a: &(SortKey, &[u8]), b: &(SortKey, &[u8])| {
        let order = a.0.compare(a.1, b.0, b.1);
        if desc { order.reverse() } else { order }
    };
    let keys: Vec<(SortKey, &[u8])> =
        answers.iter().map(|text| (SortKey::of(text), text)).collect();
    let mut sorted = keys.clone();
    let (_, last, _) = sorted.select_nth_unstable_by(rows - 1, compare);
    groups.retain(|group| {
        keys.get(*group as usize).is_some_and(|key| compare(key, last) != Ordering::Greater)
    });
}

impl Collector for StatsCollector {
    fn push(&mut self, ctx: &ExecContext<'_>, batch: Batch) -> Result<Flow> {
        ctx.check()?;
        let rows = batch.rows();
        let absent = Column::absent();
        let keys = Arc::clone(&self.keys);
        let sources: Vec<KeySource<'_>> =
            keys.iter().map(|key| key.source(&batch, &absent)).collect();
        let columns: Vec<KeyColumn<'_>> = sources.iter().map(KeySource::column).collect();
        if rows > 0 {
            let groups = self.groups.assign_keys(&columns, rows);
            let group_count = self.groups.len();
            for function in &mut self.functions {
                let selection = function.condition.select(&batch)?;
                let input = Input {
                    batch: &batch,
                    groups: &groups,
                    group_count,
                    selection: selection.as_ref(),
                    arrived: self.arrived,
                };
                function.state.update(ctx, &input)?;
                ctx.check()?;
            }
            self.arrived += rows as u64;
            self.charge()?;
        }
        Ok(Flow::Continue)
    }

    fn fork(&self) -> Box<dyn Collector> {
        let fork = |f: &Function| Function {
            condition: f.condition.clone(),
            result: f.result.clone(),
            state: f.state.fork(),
        };
        Box::new(StatsCollector {
            keys: self.keys.clone(),
            groups: self.groups.fork(),
            functions: self.functions.iter().map(fork).collect(),
            wanted: self.wanted.clone(),
            arrived: self.arrived,
            memory: self.memory.fork(),
        })
    }

    fn absorb(&mut self, ctx: &ExecContext<'_>, other: Box<dyn Collector>) -> Result<()> {
        let Some(other) = same_kind::<StatsCollector>(other) else { return Ok(()) };
        let map = self.groups.absorb(&other.groups, ctx)?;
        for (mine, theirs) in self.functions.iter_mut().zip(other.functions) {
            mine.state.absorb(ctx, theirs.state, &map)?;
            ctx.check()?;
        }
        self.charge()
    }

    fn finish(mut self: Box<Self>, ctx: &ExecContext<'_>, out: &mut Sink<'_>) -> Result<()> {
        for function in &mut self.functions {
            function.state.prepare(ctx)?;
        }
        let order = self.wanted_groups(ctx)?;
        for groups in order.chunks(MAX_BATCH_ROWS) {
            let mut batch = Batch::new(groups.len());
            for (i, key) in self.keys.iter().enumerate() {
                let values: TextVec = groups.iter().map(|g| self.groups.key(*g, i)).collect();
                batch.set_column(key.field.clone(), Column::compact(values));
            }
            for function in &mut self.functions {
                let mut values = TextVec::with_capacity(groups.len(), 0);
                for (i, group) in groups.iter().enumerate() {
                    function.state.answer(ctx, *group, values.open());
                    values.close();
                    ctx.check_row(i)?;
                }
                batch.set_column(function.result.clone(), Column::compact(values));
            }
            if out(batch)? == Flow::Stop {
                break;
            }
        }
        Ok(())
    }
}
