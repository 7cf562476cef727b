//! `if (...)`: which rows of a batch a pipe or function changes.

use crate::codec::Bitmap;
use crate::error::Result;
use crate::query::ast::Filter;
use crate::query::batch::Batch;
use crate::query::context::ExecContext;
use crate::query::filter::CompiledFilter;

/// A condition, or none.
#[derive(Debug, Clone)]
pub(crate) struct Condition(Option<CompiledFilter>);

impl Condition {
    /// Compiles the condition; `None` holds for every row.
    pub(crate) fn compile(filter: Option<&Filter>, ctx: &ExecContext<'_>) -> Result<Condition> {
        let compiled = filter.map(|f| CompiledFilter::compile(f, ctx)).transpose()?;
        Ok(Condition(compiled))
    }

    /// The rows for which the condition holds; `None` means all.
    pub(crate) fn select(&self, batch: &Batch) -> Result<Option<Bitmap>> {
        match &self.0 {
            None => Ok(None),
            Some(filter) => {
                let mut selection = Bitmap::full(batch.rows());
                filter.eval(batch, &mut selection)?;
                Ok((!selection.all()).then_some(selection))
            }
        }
    }
}

/// Whether a row is selected; no selection selects all.
#[inline]
pub(crate) fn selected(selection: Option<&Bitmap>, row: usize) -> bool {
    selection.is_none_or(|s| s.get(row))
}
