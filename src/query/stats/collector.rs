//! The pipe `stats`: groups and their functions.

use std::sync::Arc;

use super::{BucketFn, Input, StatsState, compile_function};
use crate::error::Result;
use crate::query::ast::{GroupKey, StatsItem};
use crate::query::batch::{Batch, MAX_BATCH_ROWS};
use crate::query::column::Column;
use crate::query::context::{ExecContext, Flow, Reservation};
use crate::query::group::GroupTable;
use crate::query::pipe::{Collector, Condition, Sink, same_kind};
use crate::record::{TextVec, cmp_values_then_bytes};

/// The state of one `stats`.
pub(crate) struct StatsCollector {
    keys: Arc<Vec<Key>>,
    groups: GroupTable,
    functions: Vec<Function>,
    arrived: u64,
    memory: Reservation,
}

struct Key {
    field: Arc<str>,
    bucket: Option<BucketFn>,
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
            arrived: 0,
            memory: ctx.reservation("stats"),
        })
    }

    fn charge(&mut self) -> Result<()> {
        let functions: usize = self.functions.iter().map(|f| f.state.heap_bytes()).sum();
        self.memory.resize(self.groups.heap_bytes() + functions)
    }

    /// Groups in the order of their keys.
    fn sorted_groups(&self) -> Vec<u32> {
        let count = u32::try_from(self.groups.len()).unwrap_or(u32::MAX);
        let mut order: Vec<u32> = (0..count).collect();
        sort_groups(&mut order, &self.groups, self.keys.len());
        order
    }
}

/// Sorts groups by the values of their keys.
pub(crate) fn sort_groups(order: &mut [u32], groups: &GroupTable, width: usize) {
    order.sort_unstable_by(|a, b| {
        (0..width)
            .map(|i| cmp_values_then_bytes(groups.key(*a, i), groups.key(*b, i)))
            .find(|o| o.is_ne())
            .unwrap_or(std::cmp::Ordering::Equal)
    });
}

impl Collector for StatsCollector {
    fn push(&mut self, ctx: &ExecContext<'_>, batch: Batch) -> Result<Flow> {
        ctx.check()?;
        let rows = batch.rows();
        let absent = Column::absent();
        let bucketed: Vec<Option<Column>> = self
            .keys
            .iter()
            .map(|key| {
                let column = batch.column(&key.field).unwrap_or(&absent);
                key.bucket.as_ref().map(|b| b.apply(column, rows))
            })
            .collect();
        let columns: Vec<&Column> = self
            .keys
            .iter()
            .zip(&bucketed)
            .map(|(key, b)| b.as_ref().or_else(|| batch.column(&key.field)).unwrap_or(&absent))
            .collect();
        if rows > 0 {
            let groups = self.groups.assign(&columns, rows);
            for function in &mut self.functions {
                let selection = function.condition.select(&batch)?;
                let input = Input {
                    batch: &batch,
                    groups: &groups,
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
            arrived: self.arrived,
            memory: self.memory.fork(),
        })
    }

    fn absorb(&mut self, ctx: &ExecContext<'_>, other: Box<dyn Collector>) -> Result<()> {
        let Some(other) = same_kind::<StatsCollector>(other) else { return Ok(()) };
        let map = self.groups.absorb(&other.groups);
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
        let order = self.sorted_groups();
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
