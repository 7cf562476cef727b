//! `running_stats` and `total_stats`: every row with an aggregate of its group beside it.

use std::cmp::Ordering;
use std::sync::Arc;

use super::{Collector, Sink, same_kind};
use crate::error::Result;
use crate::query::ast::{RunningFunction, RunningStats, TIME_FIELD};
use crate::query::batch::{Batch, MAX_BATCH_ROWS};
use crate::query::column::{Column, push_int};
use crate::query::context::{ExecContext, Flow, Reservation};
use crate::query::group::GroupTable;
use crate::query::sorting::sort_checked;
use crate::query::stats::{FieldList, Place};
use crate::query::value_key::{ValueKey, ValueRef};
use crate::record::{ExactSum, TextVec, parse_rfc3339, write_f64};

/// Buffers all rows.
pub(crate) struct RunningCollector {
    plan: Arc<RunningStats>,
    /// Whether every row gets the final answer of its group.
    total: bool,
    batches: Vec<Batch>,
    rows: Vec<Vec<Row>>,
    groups: GroupTable,
    arrived: u64,
    memory: Reservation,
}

/// A row of a group: its time, place, and where it is.
#[derive(Clone, Copy)]
struct Row {
    time: Option<i64>,
    place: Place,
    at: (u32, u32),
}

impl RunningCollector {
    /// The empty state.
    pub(crate) fn new(plan: &RunningStats, total: bool, ctx: &ExecContext<'_>) -> RunningCollector {
        RunningCollector {
            plan: Arc::new(plan.clone()),
            total,
            batches: Vec::new(),
            rows: Vec::new(),
            groups: GroupTable::new(plan.by.len()),
            arrived: 0,
            memory: ctx.reservation(if total { "total_stats" } else { "running_stats" }),
        }
    }

    fn charge(&mut self) -> Result<()> {
        let batches: usize = self.batches.iter().map(Batch::heap_bytes).sum();
        let rows: usize = self.rows.iter().map(|r| 24 + r.capacity() * size_of::<Row>()).sum();
        self.memory.resize(batches + rows + self.groups.heap_bytes())
    }
}

/// The time of a row, if it has one.
fn time_of(column: &Column, row: usize, scratch: &mut Vec<u8>) -> Option<i64> {
    match column {
        Column::Times(times) => times.get(row).copied(),
        _ => parse_rfc3339(column.value(row, scratch)).map(|t| t.as_nanos()),
    }
}

impl Collector for RunningCollector {
    fn push(&mut self, ctx: &ExecContext<'_>, batch: Batch) -> Result<Flow> {
        ctx.check()?;
        if batch.rows() == 0 {
            return Ok(Flow::Continue);
        }
        let absent = Column::absent();
        let keys: Vec<&Column> =
            self.plan.by.iter().map(|f| batch.column(f).unwrap_or(&absent)).collect();
        let groups = self.groups.assign(&keys, batch.rows());
        self.rows.resize(self.groups.len(), Vec::new());
        let times = batch.column(TIME_FIELD).unwrap_or(&absent);
        let index = u32::try_from(self.batches.len()).unwrap_or(u32::MAX);
        let mut scratch = Vec::new();
        for row in 0..batch.rows() {
            let place = match batch.positions().and_then(|p| p.get(row)) {
                Some(pos) => Place::Stored(*pos),
                None => Place::Arrived(self.arrived + row as u64),
            };
            let time = time_of(times, row, &mut scratch);
            let at = (index, u32::try_from(row).unwrap_or(u32::MAX));
            if let Some(list) = self.rows.get_mut(groups.get(row) as usize) {
                list.push(Row { time, place, at });
            }
        }
        self.arrived += batch.rows() as u64;
        self.batches.push(batch);
        self.charge()?;
        Ok(Flow::Continue)
    }

    fn fork(&self) -> Box<dyn Collector> {
        Box::new(RunningCollector {
            plan: self.plan.clone(),
            total: self.total,
            batches: Vec::new(),
            rows: Vec::new(),
            groups: self.groups.fork(),
            arrived: self.arrived,
            memory: self.memory.fork(),
        })
    }

    fn absorb(&mut self, ctx: &ExecContext<'_>, other: Box<dyn Collector>) -> Result<()> {
        let Some(mut other) = same_kind::<RunningCollector>(other) else { return Ok(()) };
        other.memory.resize(0)?;
        let map = self.groups.absorb(&other.groups, ctx)?;
        self.rows.resize(self.groups.len(), Vec::new());
        let (base, arrived) = (self.batches.len(), self.arrived);
        for (group, rows) in map.iter().zip(other.rows) {
            let moved = rows.into_iter().map(|row| Row {
                place: match row.place {
                    Place::Arrived(n) => Place::Arrived(n + arrived),
                    stored @ Place::Stored(_) => stored,
                },
                at: (row.at.0.saturating_add(u32::try_from(base).unwrap_or(u32::MAX)), row.at.1),
                ..row
            });
            if let Some(list) = self.rows.get_mut(*group as usize) {
                list.extend(moved);
            }
        }
        self.arrived += other.arrived;
        self.batches.append(&mut other.batches);
        self.charge()
    }

    fn finish(mut self: Box<Self>, ctx: &ExecContext<'_>, out: &mut Sink<'_>) -> Result<()> {
        let mut order: Vec<u32> = (0..u32::try_from(self.rows.len()).unwrap_or(u32::MAX)).collect();
        self.groups.sort(&mut order, ctx)?;
        let mut chunk = Chunk::new(self.plan.items.len());
        for group in order {
            ctx.check()?;
            let Some(mut rows) = self.rows.get_mut(group as usize).map(std::mem::take) else {
                continue;
            };
            sort_checked(&mut rows, ctx, |a, b| {
                let by_time = match (a.time, b.time) {
                    (Some(x), Some(y)) => x.cmp(&y),
                    // Rows without a time come first, as empty values do everywhere.
                    (None, Some(_)) => Ordering::Less,
                    (Some(_), None) => Ordering::Greater,
                    (None, None) => Ordering::Equal,
                };
                by_time.then_with(|| a.place.compare(&b.place, ctx))
            })?;
            let columns: Result<Vec<TextVec>> = self
                .plan
                .items
                .iter()
                .map(|item| answers(&item.function, &self.batches, &rows, self.total, ctx))
                .collect();
            let columns = columns?;
            for (i, row) in rows.iter().enumerate() {
                chunk.push(row.at, columns.iter().map(|c| c.get(i)));
                if chunk.rows.len() >= MAX_BATCH_ROWS
                    && chunk.hand_out(&self.plan, &self.batches, out)? == Flow::Stop
                {
                    return Ok(());
                }
            }
        }
        chunk.hand_out(&self.plan, &self.batches, out).map(|_| ())
    }
}

/// Rows that are ready to go, with their answers.
struct Chunk {
    rows: Vec<(u32, u32)>,
    answers: Vec<TextVec>,
}

impl Chunk {
    fn new(width: usize) -> Chunk {
        Chunk { rows: Vec::new(), answers: vec![TextVec::new(); width] }
    }

    fn push<'v>(&mut self, at: (u32, u32), values: impl Iterator<Item = &'v [u8]>) {
        self.rows.push(at);
        for (column, value) in self.answers.iter_mut().zip(values) {
            column.push(value);
        }
    }

    fn hand_out(
        &mut self,
        plan: &RunningStats,
        batches: &[Batch],
        out: &mut Sink<'_>,
    ) -> Result<Flow> {
        if self.rows.is_empty() {
            return Ok(Flow::Continue);
        }
        let mut batch = Batch::gather_from(batches, &self.rows);
        batch.clear_positions();
        self.rows.clear();
        for (item, values) in plan.items.iter().zip(&mut self.answers) {
            let column = Column::text(std::mem::take(values));
            batch.set_column(Arc::from(item.result.as_str()), column);
        }
        out(batch)
    }
}

/// The answer beside each row of a group.
fn answers(
    function: &RunningFunction,
    batches: &[Batch],
    rows: &[Row],
    total: bool,
    ctx: &ExecContext<'_>,
) -> Result<TextVec> {
    let mut out = TextVec::with_capacity(rows.len(), rows.len() * 4);
    match function {
        RunningFunction::First { field, offset } => {
            let k = usize::try_from(*offset).unwrap_or(usize::MAX);
            let value = rows.get(k).map(|row| field_value(batches, row, field)).unwrap_or_default();
            for i in 0..rows.len() {
                out.push(if total || i >= k { &value } else { b"" });
            }
        }
        RunningFunction::Last { field, offset } => {
            let k = usize::try_from(*offset).unwrap_or(usize::MAX);
            for i in 0..rows.len() {
                let upto = if total { rows.len() - 1 } else { i };
                ctx.check_row(i)?;
                let row = upto.checked_sub(k).and_then(|i| rows.get(i));
                out.push(&row.map(|row| field_value(batches, row, field)).unwrap_or_default());
            }
        }
        _ => {
            let mut state = Running::new(function);
            let mut text = Vec::new();
            for (i, row) in rows.iter().enumerate() {
                ctx.check_row(i)?;
                if let Some(batch) = batches.get(row.at.0 as usize) {
                    state.add(batch, row.at.1 as usize);
                }
                if !total {
                    state.push_answer(out.open());
                    out.close();
                }
            }
            if total {
                state.push_answer(&mut text);
                rows.iter().for_each(|_| out.push(&text));
            }
        }
    }
    Ok(out)
}

fn field_value(batches: &[Batch], row: &Row, field: &str) -> Vec<u8> {
    let mut scratch = Vec::new();
    let batch = batches.get(row.at.0 as usize);
    batch.map(|b| b.value(field, row.at.1 as usize, &mut scratch).to_vec()).unwrap_or_default()
}

/// `count`, `sum`, `min` and `max` up to a row.
enum Running {
    CountRows(u64),
    Count(FieldList, u64),
    Sum(FieldList, ExactSum),
    Extreme { fields: FieldList, max: bool, best: Option<ValueKey> },
}

impl Running {
    fn new(function: &RunningFunction) -> Running {
        match function {
            RunningFunction::Count(fields) if fields.iter().any(|f| f.is_all()) => {
                Running::CountRows(0)
            }
            RunningFunction::Count(fields) => Running::Count(FieldList::new(fields), 0),
            RunningFunction::Sum(fields) => Running::Sum(FieldList::new(fields), ExactSum::new()),
            RunningFunction::Min(fields) => {
                Running::Extreme { fields: FieldList::new(fields), max: false, best: None }
            }
            RunningFunction::Max(fields) => {
                Running::Extreme { fields: FieldList::new(fields), max: true, best: None }
            }
            RunningFunction::First { .. } | RunningFunction::Last { .. } => Running::CountRows(0),
        }
    }

    fn add(&mut self, batch: &Batch, row: usize) {
        let absent = Column::absent();
        match self {
            Running::CountRows(n) => *n += 1,
            Running::Count(fields, n) => {
                let parts = fields.parts(batch, &absent);
                *n += u64::from(parts.iter().any(|p| !p.column.is_empty_at(row)));
            }
            Running::Sum(fields, sum) => {
                let mut scratch = Vec::new();
                for part in fields.parts(batch, &absent) {
                    // Times take no part in sums, in whatever form they come.
                    sum.add_text(part.column.value(row, &mut scratch));
                }
            }
            Running::Extreme { fields, max, best } => {
                for part in fields.parts(batch, &absent) {
                    let value = ValueRef::of(part.column, row);
                    if value.is_empty() && !part.with_absent {
                        continue;
                    }
                    let order = best.as_ref().map(|key| {
                        let wanted = if *max { Ordering::Greater } else { Ordering::Less };
                        let order = value.compare(key);
                        order == wanted || order.is_eq() && value.compare_then_bytes(key).is_lt()
                    });
                    if order.unwrap_or(true) {
                        *best = Some(value.to_key());
                    }
                }
            }
        }
    }

    fn push_answer(&self, out: &mut Vec<u8>) {
        match self {
            Running::CountRows(n) | Running::Count(_, n) => {
                push_int(out, i64::try_from(*n).unwrap_or(i64::MAX));
            }
            Running::Sum(_, sum) if sum.count() == 0 => write_f64(out, f64::NAN),
            Running::Sum(_, sum) => write_f64(out, sum.to_f64()),
            Running::Extreme { best, .. } => {
                if let Some(key) = best {
                    key.as_ref().push_to(out);
                }
            }
        }
    }
}
