//! `unroll`: a row per item of JSON arrays.

use std::sync::Arc;

use super::{Condition, RowPipe, Sink, selected};
use crate::error::Result;
use crate::query::ast::Unroll;
use crate::query::batch::{Batch, MAX_BATCH_ROWS};
use crate::query::column::Column;
use crate::query::context::{ExecContext, Flow};
use crate::query::json::array_items;
use crate::query::position::RowPos;
use crate::record::TextVec;

/// Batches of multiplied rows are handed out at about this many bytes.
const BATCH_BYTES: usize = 32 << 20;

/// `unroll`.
pub(crate) struct UnrollPipe {
    condition: Condition,
    fields: Vec<Arc<str>>,
}

impl UnrollPipe {
    /// Compiles the pipe.
    pub(crate) fn new(plan: &Unroll, ctx: &ExecContext<'_>) -> Result<UnrollPipe> {
        let condition = Condition::compile(plan.condition.as_ref(), ctx)?;
        let fields = plan.fields.iter().map(|f| Arc::from(f.as_str())).collect();
        Ok(UnrollPipe { condition, fields })
    }
}

/// Rows that are made of the rows of a batch, some fields replaced.
pub(crate) struct Multiplier<'a> {
    batch: &'a Batch,
    fields: Vec<Arc<str>>,
    /// The row that each new row is made of.
    rows: Vec<u32>,
    values: Vec<TextVec>,
    /// The last source row, and the number of rows made of it before the last one.
    last: Option<u32>,
    sub: u32,
    positions: Vec<RowPos>,
    bytes: usize,
}

impl<'a> Multiplier<'a> {
    /// No rows yet.
    pub(crate) fn new(batch: &'a Batch, fields: Vec<Arc<str>>) -> Multiplier<'a> {
        let values = vec![TextVec::new(); fields.len()];
        let (rows, positions) = (Vec::new(), Vec::new());
        Multiplier { batch, fields, rows, values, last: None, sub: 0, positions, bytes: 0 }
    }

    /// Bytes of a row, about.
    pub(crate) fn row_bytes(batch: &Batch, row: usize) -> usize {
        let bytes = |c: &Column| match c {
            Column::Text(text) => text.get(row).len(),
            _ => 8,
        };
        batch.columns().iter().map(|(_, c)| bytes(c)).sum()
    }

    /// Adds a row made of `row`, `row_bytes` large, and hands out a full batch.
    pub(crate) fn push<'v>(
        &mut self,
        row: usize,
        row_bytes: usize,
        values: impl Iterator<Item = &'v [u8]>,
        out: &mut Sink<'_>,
    ) -> Result<Flow> {
        let source = u32::try_from(row).unwrap_or(u32::MAX);
        self.sub = if self.last == Some(source) { self.sub.saturating_add(1) } else { 0 };
        self.last = Some(source);
        self.rows.push(source);
        self.bytes += row_bytes;
        for (column, value) in self.values.iter_mut().zip(values) {
            column.push(value);
            self.bytes += value.len();
        }
        if let Some(pos) = self.batch.positions().and_then(|p| p.get(row)) {
            // Rows of rows that were multiplied before stay in order.
            let sub = pos.sub.saturating_mul(1 << 16).saturating_add(self.sub);
            self.positions.push(RowPos { sub, ..*pos });
        }
        if self.rows.len() >= MAX_BATCH_ROWS || self.bytes >= BATCH_BYTES {
            return self.hand_out(out);
        }
        Ok(Flow::Continue)
    }

    /// Hands out the rows so far.
    pub(crate) fn hand_out(&mut self, out: &mut Sink<'_>) -> Result<Flow> {
        if self.rows.is_empty() {
            return Ok(Flow::Continue);
        }
        let mut batch = self.batch.gather(&self.rows);
        for (field, values) in self.fields.iter().zip(&mut self.values) {
            batch.set_column(field.clone(), Column::compact(std::mem::take(values)));
        }
        let positions = std::mem::take(&mut self.positions);
        batch.set_positions((positions.len() == batch.rows()).then_some(positions));
        self.rows.clear();
        self.bytes = 0;
        out(batch)
    }
}

impl RowPipe for UnrollPipe {
    fn apply(&self, ctx: &ExecContext<'_>, batch: Batch, out: &mut Sink<'_>) -> Result<Flow> {
        let selection = self.condition.select(&batch)?;
        let absent = Column::absent();
        let columns: Vec<&Column> =
            self.fields.iter().map(|f| batch.column(f).unwrap_or(&absent)).collect();
        let mut rows = Multiplier::new(&batch, self.fields.clone());
        let mut scratch = Vec::new();
        for row in 0..batch.rows() {
            ctx.check_row(row)?;
            let bytes = Multiplier::row_bytes(&batch, row);
            let flow = if selected(selection.as_ref(), row) {
                let items: Vec<Vec<Vec<u8>>> = columns
                    .iter()
                    .map(|c| array_items(c.value(row, &mut scratch)).unwrap_or_default())
                    .collect();
                let count = items.iter().map(Vec::len).max().unwrap_or(0).max(1);
                let mut flow = Flow::Continue;
                for i in 0..count {
                    let values = items.iter().map(|list| list.get(i).map_or(&b""[..], |v| v));
                    flow = rows.push(row, bytes, values, out)?;
                    if flow == Flow::Stop {
                        break;
                    }
                    ctx.check_row(i)?;
                }
                flow
            } else {
                let kept: Vec<Vec<u8>> =
                    columns.iter().map(|c| c.value(row, &mut scratch).to_vec()).collect();
                rows.push(row, bytes, kept.iter().map(Vec::as_slice), out)?
            };
            if flow == Flow::Stop {
                return Ok(Flow::Stop);
            }
        }
        rows.hand_out(out)
    }
}
