//! Pipes that move whole columns: `fields`, `delete`, `rename`, `copy`, `filter`,
//! `drop_empty_fields`, `coalesce`, `set_stream_fields`.

use std::sync::Arc;

use super::transform::merge;
use super::{Condition, RowPipe, Sink, selected};
use crate::codec::Bitmap;
use crate::error::Result;
use crate::query::ast::{
    FieldPattern, Filter, KeepMode, RenamePair, STREAM_FIELD, STREAM_ID_FIELD, SetStreamFields,
};
use crate::query::batch::Batch;
use crate::query::column::Column;
use crate::query::context::{ExecContext, Flow};
use crate::query::stats::FieldList;
use crate::record::{TextVec, stream_text};

/// `fields` and `delete`.
pub(crate) struct ProjectPipe {
    patterns: Vec<FieldPattern>,
    keep: bool,
}

impl ProjectPipe {
    /// Keeps, or else drops, the fields of the patterns.
    pub(crate) fn new(patterns: &[FieldPattern], keep: bool) -> ProjectPipe {
        ProjectPipe { patterns: patterns.to_vec(), keep }
    }
}

impl RowPipe for ProjectPipe {
    fn apply(&self, _ctx: &ExecContext<'_>, mut batch: Batch, out: &mut Sink<'_>) -> Result<Flow> {
        batch.retain_columns(|name| self.patterns.iter().any(|p| p.matches(name)) == self.keep);
        if self.keep {
            // The order of the list is the order of output.
            let mut sorted = Batch::new(batch.rows());
            sorted.set_positions(batch.positions().map(<[_]>::to_vec));
            for pattern in &self.patterns {
                if let FieldPattern::Name(name) = pattern
                    && let Some(column) = batch.remove_column(name)
                {
                    sorted.set_column(Arc::from(name.as_str()), column);
                }
            }
            for (name, column) in batch.into_columns() {
                sorted.set_column(name, column);
            }
            batch = sorted;
        }
        out(batch)
    }
}

/// `rename` and `copy`.
pub(crate) struct MovePipe {
    pairs: Vec<RenamePair>,
    copy: bool,
}

impl MovePipe {
    /// Renames, or copies, pair by pair.
    pub(crate) fn new(pairs: &[RenamePair], copy: bool) -> MovePipe {
        MovePipe { pairs: pairs.to_vec(), copy }
    }

    fn move_one(&self, batch: &mut Batch, from: &str, to: &str) {
        if from == to {
            return;
        }
        let column = match self.copy {
            true => batch.column(from).cloned(),
            false => batch.remove_column(from),
        };
        match column {
            Some(column) => batch.set_column(Arc::from(to), column),
            None => {
                batch.remove_column(to);
            }
        }
    }

    /// Exchanges a prefix. A row's empty values do not move: they are absent, so that a field of
    /// the new name keeps its value in that row.
    fn move_prefix(&self, batch: &mut Batch, from: &str, to: &str) {
        if from == to {
            return;
        }
        let mut names: Vec<Arc<str>> = batch.columns().iter().map(|(n, _)| n.clone()).collect();
        names.retain(|n| n.starts_with(from));
        names.sort();
        let mut moved = Vec::new();
        for name in names {
            let column = match self.copy {
                true => batch.column(&name).cloned(),
                false => batch.remove_column(&name),
            };
            if let (Some(column), Some(rest)) = (column, name.strip_prefix(from)) {
                moved.push((format!("{to}{rest}"), column));
            }
        }
        for (name, column) in moved {
            let rows = batch.rows();
            let column = merge(batch.column(&name), column, rows, None, KeepMode::SkipEmpty);
            batch.set_column(Arc::from(name), column);
        }
    }
}

impl RowPipe for MovePipe {
    fn apply(&self, _ctx: &ExecContext<'_>, mut batch: Batch, out: &mut Sink<'_>) -> Result<Flow> {
        for pair in &self.pairs {
            match (&pair.source, &pair.target) {
                (FieldPattern::Name(from), FieldPattern::Name(to)) => {
                    self.move_one(&mut batch, from, to);
                }
                (FieldPattern::Prefix(from), FieldPattern::Prefix(to) | FieldPattern::Name(to)) => {
                    self.move_prefix(&mut batch, from, to);
                }
                // A name is the prefix that it alone has.
                (FieldPattern::Name(from), FieldPattern::Prefix(to)) => {
                    self.move_one(&mut batch, from, to);
                }
            }
        }
        out(batch)
    }
}

/// `filter`.
pub(crate) struct FilterPipe {
    condition: Condition,
}

impl FilterPipe {
    /// Compiles the filter.
    pub(crate) fn new(filter: &Filter, ctx: &ExecContext<'_>) -> Result<FilterPipe> {
        Ok(FilterPipe { condition: Condition::compile(Some(filter), ctx)? })
    }
}

impl RowPipe for FilterPipe {
    fn apply(&self, ctx: &ExecContext<'_>, batch: Batch, out: &mut Sink<'_>) -> Result<Flow> {
        ctx.check()?;
        match self.condition.select(&batch)? {
            None => out(batch),
            Some(selection) => pass(&batch, &selection, out),
        }
    }
}

/// Hands out the selected rows, if any.
pub(crate) fn pass(batch: &Batch, selection: &Bitmap, out: &mut Sink<'_>) -> Result<Flow> {
    let rows: Vec<u32> = selection.iter().filter_map(|r| u32::try_from(r).ok()).collect();
    if rows.is_empty() { Ok(Flow::Continue) } else { out(batch.gather(&rows)) }
}

/// `drop_empty_fields`: rows without any value go.
pub(crate) struct DropEmptyPipe;

impl RowPipe for DropEmptyPipe {
    fn apply(&self, ctx: &ExecContext<'_>, batch: Batch, out: &mut Sink<'_>) -> Result<Flow> {
        ctx.check()?;
        let constant = |c: &Column| matches!(c, Column::Const(v) if !v.is_empty());
        if batch.columns().iter().any(|(_, c)| constant(c)) {
            return out(batch);
        }
        let some = |row: usize| batch.columns().iter().any(|(_, c)| !c.is_empty_at(row));
        let selection = Bitmap::from_fn(batch.rows(), some);
        if selection.all() { out(batch) } else { pass(&batch, &selection, out) }
    }
}

/// `coalesce`.
pub(crate) struct CoalescePipe {
    fields: FieldList,
    default: String,
    result: Arc<str>,
}

impl CoalescePipe {
    /// The first value of the fields that is not empty.
    pub(crate) fn new(fields: &[FieldPattern], default: &str, result: &str) -> CoalescePipe {
        let fields = FieldList::new(fields);
        CoalescePipe { fields, default: default.to_owned(), result: Arc::from(result) }
    }
}

impl RowPipe for CoalescePipe {
    fn apply(&self, ctx: &ExecContext<'_>, mut batch: Batch, out: &mut Sink<'_>) -> Result<Flow> {
        let absent = Column::absent();
        let parts = self.fields.parts(&batch, &absent);
        let mut values = TextVec::with_capacity(batch.rows(), 0);
        let mut scratch = Vec::new();
        for row in 0..batch.rows() {
            let first = parts.iter().find(|p| !p.column.is_empty_at(row));
            match first {
                Some(part) => values.push(part.column.value(row, &mut scratch)),
                None => values.push(self.default.as_bytes()),
            }
            ctx.check_texts("a text pipe", row, values.bytes().len())?;
        }
        batch.set_column(self.result.clone(), Column::compact(values));
        out(batch)
    }
}

/// `set_stream_fields`.
pub(crate) struct SetStreamPipe {
    condition: Condition,
    fields: FieldList,
}

impl SetStreamPipe {
    /// Compiles the condition.
    pub(crate) fn new(plan: &SetStreamFields, ctx: &ExecContext<'_>) -> Result<SetStreamPipe> {
        let condition = Condition::compile(plan.condition.as_ref(), ctx)?;
        Ok(SetStreamPipe { condition, fields: FieldList::new(&plan.fields) })
    }
}

impl RowPipe for SetStreamPipe {
    fn apply(&self, ctx: &ExecContext<'_>, mut batch: Batch, out: &mut Sink<'_>) -> Result<Flow> {
        let selection = self.condition.select(&batch)?;
        let rows = batch.rows();
        let absent = Column::absent();
        let mut parts = self.fields.parts(&batch, &absent);
        parts.retain(|p| p.name != STREAM_FIELD && p.name != STREAM_ID_FIELD);
        parts.sort_by(|a, b| a.name.cmp(b.name));
        let mut values = TextVec::with_capacity(rows, 0);
        let mut scratch = Vec::new();
        for row in 0..rows {
            if selected(selection.as_ref(), row) {
                let mut labels: Vec<(&str, Vec<u8>)> = Vec::new();
                for part in &parts {
                    let value = part.column.value(row, &mut scratch);
                    if !value.is_empty() {
                        labels.push((part.name, value.to_vec()));
                    }
                }
                let labels = labels.iter().map(|(name, value)| (*name, value.as_slice()));
                values.open().extend_from_slice(&stream_text(labels));
            }
            values.close();
            ctx.check_texts("a text pipe", row, values.bytes().len())?;
        }
        let set = |name: &str, new: Column, batch: &mut Batch| {
            let old = batch.column(name);
            let column = merge(old, new, rows, selection.as_ref(), KeepMode::Overwrite);
            batch.set_column(Arc::from(name), column);
        };
        set(STREAM_FIELD, Column::compact(values), &mut batch);
        set(STREAM_ID_FIELD, Column::absent(), &mut batch);
        out(batch)
    }
}
