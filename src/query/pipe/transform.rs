//! Shared by pipes that make new values of old ones.

use std::collections::HashMap;
use std::sync::Arc;

use super::{Condition, RowPipe, Sink, selected};
use crate::codec::Bitmap;
use crate::error::Result;
use crate::query::ast::{Filter, KeepMode};
use crate::query::batch::Batch;
use crate::query::column::Column;
use crate::query::context::{ExecContext, Flow};
use crate::record::TextVec;

/// Appends the new value made of an old one.
pub(crate) type ValueFn = dyn Fn(&[u8], &mut Vec<u8>) + Send + Sync;

/// A pipe that makes the value of one field from the value of another (or the same), once per
/// distinct value where the column's form tells them.
pub(crate) struct MapPipe {
    condition: Condition,
    field: Arc<str>,
    result: Arc<str>,
    map: Box<ValueFn>,
}

impl MapPipe {
    /// `result` becomes `map(field)` in the rows of the condition.
    pub(crate) fn new(
        condition: Option<&Filter>,
        field: &str,
        result: &str,
        map: Box<ValueFn>,
        ctx: &ExecContext<'_>,
    ) -> Result<MapPipe> {
        let condition = Condition::compile(condition, ctx)?;
        Ok(MapPipe { condition, field: Arc::from(field), result: Arc::from(result), map })
    }
}

impl RowPipe for MapPipe {
    fn apply(&self, ctx: &ExecContext<'_>, mut batch: Batch, out: &mut Sink<'_>) -> Result<Flow> {
        ctx.check()?;
        let selection = self.condition.select(&batch)?;
        let absent = Column::absent();
        let column = batch.column(&self.field).unwrap_or(&absent);
        let new = map_column(ctx, column, batch.rows(), selection.as_ref(), &*self.map)?;
        let old = batch.column(&self.result);
        let merged = merge(old, new, batch.rows(), selection.as_ref(), KeepMode::Overwrite);
        batch.set_column(self.result.clone(), merged);
        out(batch)
    }
}

/// Maps the values of the selected rows; the others are undefined.
pub(crate) fn map_column(
    ctx: &ExecContext<'_>,
    column: &Column,
    rows: usize,
    selection: Option<&Bitmap>,
    map: &ValueFn,
) -> Result<Column> {
    match column {
        Column::Const(value) => {
            let mut out = Vec::new();
            map(value, &mut out);
            Ok(Column::constant(&out))
        }
        Column::Codes { codes, dictionary } if dictionary.len() <= rows => {
            let mut values = TextVec::with_capacity(dictionary.len(), dictionary.bytes().len());
            for (i, value) in dictionary.iter().enumerate() {
                map(value, values.open());
                values.close();
                ctx.check_texts("a text pipe", i, values.bytes().len())?;
            }
            Ok(Column::Codes { codes: codes.clone(), dictionary: Arc::new(values) })
        }
        Column::Runs { ends, codes, dictionary } => {
            let mut values = TextVec::with_capacity(codes.len(), 0);
            for (i, code) in codes.iter().enumerate() {
                map(dictionary.get(*code as usize), values.open());
                values.close();
                ctx.check_texts("a text pipe", i, values.bytes().len())?;
            }
            Ok(Column::of_each_run(ends, values))
        }
        _ => {
            let mut values = TextVec::with_capacity(rows, 0);
            let mut scratch = Vec::new();
            for row in 0..rows {
                if selected(selection, row) {
                    map(column.value(row, &mut scratch), values.open());
                }
                values.close();
                ctx.check_texts("a text pipe", row, values.bytes().len())?;
            }
            Ok(Column::text(values))
        }
    }
}

/// The column of a field after new values were made for the selected rows.
pub(crate) fn merge(
    old: Option<&Column>,
    new: Column,
    rows: usize,
    selection: Option<&Bitmap>,
    keep: KeepMode,
) -> Column {
    let absent = Column::absent();
    let old = match old {
        Some(old) if !matches!(old, Column::Const(v) if v.is_empty()) => old,
        // Without old values every mode takes the new ones.
        _ if selection.is_none() => return new,
        _ => &absent,
    };
    if selection.is_none() && keep == KeepMode::Overwrite {
        return new;
    }
    let mut values = TextVec::with_capacity(rows, 0);
    let (mut a, mut b) = (Vec::new(), Vec::new());
    for row in 0..rows {
        let old = old.value(row, &mut a);
        if !selected(selection, row) {
            values.push(old);
            continue;
        }
        let new = new.value(row, &mut b);
        values.push(choose(old, new, keep));
    }
    Column::text(values)
}

/// The value of a field that had `old` and gets `new`.
#[inline]
fn choose<'a>(old: &'a [u8], new: &'a [u8], keep: KeepMode) -> &'a [u8] {
    match keep {
        KeepMode::Overwrite => new,
        KeepMode::KeepOriginal => {
            if old.is_empty() {
                new
            } else {
                old
            }
        }
        KeepMode::SkipEmpty => {
            if new.is_empty() {
                old
            } else {
                new
            }
        }
    }
}

/// New values of fields whose names are known only when the rows are read.
#[derive(Default)]
pub(crate) struct FieldWriter {
    index: HashMap<Arc<str>, usize>,
    columns: Vec<Written>,
}

struct Written {
    name: Arc<str>,
    bytes: Vec<u8>,
    /// (row, start, end) of each value, sorted by row.
    cells: Vec<(u32, u32, u32)>,
}

impl FieldWriter {
    /// Gives a field of a row a value, which may be empty; the last one counts. Rows come in
    /// ascending order.
    pub(crate) fn set(&mut self, row: usize, name: &str, value: &[u8]) {
        let at = match self.index.get(name) {
            Some(at) => *at,
            None => {
                let name: Arc<str> = Arc::from(name);
                self.index.insert(name.clone(), self.columns.len());
                self.columns.push(Written { name, bytes: Vec::new(), cells: Vec::new() });
                self.columns.len() - 1
            }
        };
        let Some(column) = self.columns.get_mut(at) else { return };
        let (Ok(row), Ok(start), Ok(end)) = (
            u32::try_from(row),
            u32::try_from(column.bytes.len()),
            u32::try_from(column.bytes.len() + value.len()),
        ) else {
            return;
        };
        column.bytes.extend_from_slice(value);
        match column.cells.last_mut() {
            Some(last) if last.0 == row => *last = (row, start, end),
            _ => column.cells.push((row, start, end)),
        }
    }

    /// Puts the values into the batch.
    pub(crate) fn finish(self, batch: &mut Batch, keep: KeepMode) {
        let rows = batch.rows();
        for column in self.columns {
            let absent = Column::absent();
            let old = batch.column(&column.name).unwrap_or(&absent);
            let mut values = TextVec::with_capacity(rows, column.bytes.len());
            let mut cells = column.cells.iter().peekable();
            let mut scratch = Vec::new();
            for row in 0..rows {
                let old = old.value(row, &mut scratch);
                match cells.next_if(|c| c.0 as usize == row) {
                    None => values.push(old),
                    Some((_, start, end)) => {
                        let new = column.bytes.get(*start as usize..*end as usize).unwrap_or(&[]);
                        values.push(choose(old, new, keep));
                    }
                }
            }
            batch.set_column(column.name, Column::compact(values));
        }
    }
}

/// Reads text as UTF-8, broken parts replaced.
pub(crate) fn lossy(text: &[u8]) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(text)
}
