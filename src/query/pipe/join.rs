//! `join` and `union`: rows of another query.

use std::collections::HashSet;
use std::sync::Arc;

use super::unroll::Multiplier;
use super::{Appendix, RowPipe, Sink};
use crate::error::Result;
use crate::query::ast::{Join, RightSide};
use crate::query::batch::Batch;
use crate::query::column::Column;
use crate::query::context::{CHECK_ROWS, ExecContext, Flow, Reservation};
use crate::query::group::GroupTable;
use crate::query::position::RowPos;
use crate::query::sorting::sort_checked;
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
                batches = in_canonical_order(&batches, ctx)?;
            }
            batches.iter_mut().for_each(Batch::clear_positions);
            Ok(batches)
        }
    }
}

/// The rows of batches with places, in their order.
fn in_canonical_order(batches: &[Batch], ctx: &ExecContext<'_>) -> Result<Vec<Batch>> {
    let mut order: Vec<(RowPos, (u32, u32))> = Vec::new();
    for (number, batch) in (0..).zip(batches) {
        let places = batch.positions().unwrap_or(&[]);
        order.extend((0..).zip(places).map(|(row, place)| (*place, (number, row))));
    }
    sort_checked(&mut order, ctx, |(a, _), (b, _)| ctx.cmp_positions(a, b))?;
    let mut out = Vec::new();
    for rows in order.chunks(CHECK_ROWS) {
        ctx.check()?;
        let rows: Vec<(u32, u32)> = rows.iter().map(|(_, row)| *row).collect();
        out.push(Batch::gather_from(batches, &rows));
    }
    Ok(out)
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
    /// The fields that the other side adds, under their new names.
    names: Vec<Arc<str>>,
    /// The columns of these fields, batch by batch.
    batches: Vec<Vec<Column>>,
    groups: GroupTable,
    /// The rows of each group: batch, and row in it.
    rows: Vec<Vec<(u32, u32)>>,
    _memory: Reservation,
}

impl JoinPipe {
    /// Reads the other side.
    pub(crate) fn new(plan: &Join, ctx: &ExecContext<'_>) -> Result<JoinPipe> {
        let batches = right_rows(&plan.right, ctx)?;
        let mut memory = ctx.reservation("join");
        let held: usize = batches.iter().map(Batch::heap_bytes).sum();
        memory.resize(held)?;
        let absent = Column::absent();
        let mut groups = GroupTable::new(plan.by.len());
        let mut rows: Vec<Vec<(u32, u32)>> = Vec::new();
        let mut bytes = 0;
        for (number, batch) in (0..).zip(&batches) {
            ctx.check()?;
            let keys = plan.by.iter().map(|f| batch.column(f).unwrap_or(&absent));
            let numbers = groups.assign(&keys.collect::<Vec<_>>(), batch.rows());
            rows.resize(groups.len(), Vec::new());
            for (row, place) in (0..batch.rows()).zip(0..) {
                if let Some(list) = rows.get_mut(numbers.get(row) as usize) {
                    list.push((number, place));
                }
            }
            bytes += 8 * batch.rows();
            memory.resize(held + groups.heap_bytes() + 32 * rows.len() + bytes)?;
        }
        let mut seen: HashSet<&str> = plan.by.iter().map(String::as_str).collect();
        let names = batches.iter().flat_map(Batch::columns).map(|(name, _)| &**name);
        let fields: Vec<&str> = names.filter(|name| seen.insert(name)).collect();
        let columns = |batch: &Batch| {
            fields.iter().map(|f| batch.column(f).unwrap_or(&absent).clone()).collect()
        };
        Ok(JoinPipe {
            by: plan.by.clone(),
            inner: plan.inner,
            names: fields.iter().map(|f| Arc::from(format!("{}{f}", plan.prefix))).collect(),
            batches: batches.iter().map(columns).collect(),
            groups,
            rows,
            _memory: memory,
        })
    }
}

impl RowPipe for JoinPipe {
    fn apply(&self, ctx: &ExecContext<'_>, batch: Batch, out: &mut Sink<'_>) -> Result<Flow> {
        let absent = Column::absent();
        let keys: Vec<&Column> =
            self.by.iter().map(|f| batch.column(f).unwrap_or(&absent)).collect();
        let old: Vec<&Column> =
            self.names.iter().map(|name| batch.column(name).unwrap_or(&absent)).collect();
        let mut made = Multiplier::new(&batch, self.names.clone());
        let mut values: Vec<Vec<u8>> = vec![Vec::new(); self.names.len()];
        let mut key_texts: Vec<Vec<u8>> = vec![Vec::new(); keys.len()];
        let mut scratch = Vec::new();
        let mut joined = 0;
        for row in 0..batch.rows() {
            ctx.check_row(row)?;
            for (text, column) in key_texts.iter_mut().zip(&keys) {
                text.clear();
                text.extend_from_slice(column.value(row, &mut scratch));
            }
            let key: Vec<&[u8]> = key_texts.iter().map(Vec::as_slice).collect();
            let matches = self.groups.find(&key).and_then(|g| self.rows.get(g as usize));
            let bytes = Multiplier::row_bytes(&batch, row);
            let right: Vec<Option<(u32, u32)>> = match matches {
                Some(rows) => rows.iter().map(|r| Some(*r)).collect(),
                None if self.inner => continue,
                None => vec![None],
            };
            for right in right {
                ctx.check_row(joined)?;
                joined += 1;
                let (columns, right) = match right {
                    Some((batch, row)) => (self.batches.get(batch as usize), row as usize),
                    None => (None, 0),
                };
                for (i, (value, old)) in values.iter_mut().zip(&old).enumerate() {
                    value.clear();
                    value.extend_from_slice(old.value(row, &mut scratch));
                    if let (true, Some(column)) = (value.is_empty(), columns.and_then(|c| c.get(i)))
                    {
                        value.extend_from_slice(column.value(right, &mut scratch));
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
