//! `join` and `union`: rows of another query.

use std::sync::Arc;

use super::unroll::Multiplier;
use super::{Appendix, RowPipe, Sink};
use crate::error::Result;
use crate::query::ast::{Join, RightSide};
use crate::query::batch::Batch;
use crate::query::column::Column;
use crate::query::context::{ExecContext, Flow, Reservation};
use crate::query::group::GroupTable;
use crate::record::TextVec;

/// The rows of the other side, without places: in canonical order if they come from storage as
/// they are, else in the order in which the query gives them.
fn right_rows(right: &RightSide, ctx: &ExecContext<'_>) -> Result<Vec<Batch>> {
    match right {
        RightSide::Rows(rows) => Ok(vec![literal_rows(rows)]),
        RightSide::Query(query) => {
            let mut batches = ctx.subqueries.run(query, ctx)?;
            batches.retain(|b| b.rows() > 0);
            if !batches.is_empty() && batches.iter().all(|b| b.positions().is_some()) {
                let all = Batch::concat(&batches);
                let positions = all.positions().unwrap_or(&[]);
                let mut order: Vec<u32> = (0..).take(positions.len()).collect();
                order.sort_by(|a, b| {
                    match (positions.get(*a as usize), positions.get(*b as usize)) {
                        (Some(a), Some(b)) => ctx.cmp_positions(a, b),
                        _ => std::cmp::Ordering::Equal,
                    }
                });
                batches = vec![all.gather(&order)];
            }
            batches.iter_mut().for_each(Batch::clear_positions);
            Ok(batches)
        }
    }
}

fn literal_rows(rows: &[Vec<(String, String)>]) -> Batch {
    let mut names: Vec<&String> = Vec::new();
    for (name, _) in rows.iter().flatten() {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let mut batch = Batch::new(rows.len());
    for name in names {
        let value = |row: &Vec<(String, String)>| {
            row.iter().rev().find(|(n, _)| n == name).map_or("", |(_, v)| v).to_owned()
        };
        let texts: Vec<String> = rows.iter().map(value).collect();
        let values: TextVec = texts.iter().map(|t| t.as_bytes()).collect();
        batch.set_column(Arc::from(name.as_str()), Column::text(values));
    }
    batch
}

/// `union`.
pub(crate) struct UnionPipe {
    right: RightSide,
}

impl UnionPipe {
    /// Keeps the other side for the end.
    pub(crate) fn new(right: &RightSide) -> UnionPipe {
        UnionPipe { right: right.clone() }
    }
}

impl Appendix for UnionPipe {
    fn append(&self, ctx: &ExecContext<'_>, out: &mut Sink<'_>) -> Result<Flow> {
        for batch in right_rows(&self.right, ctx)? {
            if super::emit(&batch, out)? == Flow::Stop {
                return Ok(Flow::Stop);
            }
        }
        Ok(Flow::Continue)
    }
}

/// `join`: the other side is read when the pipe is compiled and found by its keys.
pub(crate) struct JoinPipe {
    by: Vec<String>,
    inner: bool,
    /// The columns that the other side adds, under their new names.
    columns: Vec<(Arc<str>, Column)>,
    groups: GroupTable,
    /// The rows of each group.
    rows: Vec<Vec<u32>>,
    _memory: Reservation,
}

impl JoinPipe {
    /// Reads the other side.
    pub(crate) fn new(plan: &Join, ctx: &ExecContext<'_>) -> Result<JoinPipe> {
        let batches = right_rows(&plan.right, ctx)?;
        let all = Batch::concat(&batches);
        let mut memory = ctx.reservation("join");
        memory.resize(2 * all.heap_bytes())?;
        let absent = Column::absent();
        let keys: Vec<&Column> = plan.by.iter().map(|f| all.column(f).unwrap_or(&absent)).collect();
        let mut groups = GroupTable::new(plan.by.len());
        let mut rows: Vec<Vec<u32>> = Vec::new();
        if all.rows() > 0 {
            let numbers = groups.assign(&keys, all.rows());
            rows.resize(groups.len(), Vec::new());
            for row in 0..all.rows() {
                if let Some(list) = rows.get_mut(numbers.get(row) as usize) {
                    list.extend(u32::try_from(row));
                }
            }
        }
        memory.resize(2 * all.heap_bytes() + groups.heap_bytes() + 32 * rows.len())?;
        let columns = all
            .into_columns()
            .into_iter()
            .filter(|(name, _)| !plan.by.iter().any(|f| **f == **name))
            .map(|(name, column)| (Arc::from(format!("{}{name}", plan.prefix)), column))
            .collect();
        let (by, inner) = (plan.by.clone(), plan.inner);
        Ok(JoinPipe { by, inner, columns, groups, rows, _memory: memory })
    }
}

impl RowPipe for JoinPipe {
    fn apply(&self, ctx: &ExecContext<'_>, batch: Batch, out: &mut Sink<'_>) -> Result<Flow> {
        let absent = Column::absent();
        let keys: Vec<&Column> =
            self.by.iter().map(|f| batch.column(f).unwrap_or(&absent)).collect();
        let old: Vec<&Column> =
            self.columns.iter().map(|(n, _)| batch.column(n).unwrap_or(&absent)).collect();
        let names = self.columns.iter().map(|(n, _)| n.clone()).collect();
        let mut made = Multiplier::new(&batch, names);
        let mut values: Vec<Vec<u8>> = vec![Vec::new(); self.columns.len()];
        let mut key_texts: Vec<Vec<u8>> = vec![Vec::new(); keys.len()];
        let mut scratch = Vec::new();
        for row in 0..batch.rows() {
            ctx.check_row(row)?;
            for (text, column) in key_texts.iter_mut().zip(&keys) {
                text.clear();
                text.extend_from_slice(column.value(row, &mut scratch));
            }
            let key: Vec<&[u8]> = key_texts.iter().map(Vec::as_slice).collect();
            let matches = self.groups.find(&key).and_then(|g| self.rows.get(g as usize));
            let bytes = Multiplier::row_bytes(&batch, row);
            let right: Vec<Option<u32>> = match matches {
                Some(rows) => rows.iter().map(|r| Some(*r)).collect(),
                None if self.inner => continue,
                None => vec![None],
            };
            for (i, right) in right.into_iter().enumerate() {
                ctx.check_row(i)?;
                for ((value, (_, column)), old) in values.iter_mut().zip(&self.columns).zip(&old) {
                    value.clear();
                    value.extend_from_slice(old.value(row, &mut scratch));
                    if let (true, Some(right)) = (value.is_empty(), right) {
                        value.extend_from_slice(column.value(right as usize, &mut scratch));
                    }
                }
                let flow = made.push(row, bytes, values.iter().map(Vec::as_slice), out)?;
                if flow == Flow::Stop {
                    return Ok(Flow::Stop);
                }
            }
        }
        made.hand_out(out)
    }
}
