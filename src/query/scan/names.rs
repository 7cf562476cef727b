//! Names of fields and their rows from what parts say of themselves.

use std::sync::Arc;

use super::PartSet;
use crate::error::Result;
use crate::part::ReadStats;
use crate::query::ast::{STREAM_FIELD, STREAM_ID_FIELD, TIME_FIELD};
use crate::query::batch::Batch;
use crate::query::column::Column;
use crate::query::context::TimeRange;

/// For each part and each field of it, a batch of as many rows as have the field; reads the name
/// tables of the parts and no block. `None` if `range` takes only some rows of a part.
///
/// # Errors
/// Those of opening parts and reading their name tables.
pub(crate) fn names_from_headers(
    parts: &dyn PartSet,
    range: TimeRange,
    stats: &ReadStats,
) -> Result<Option<Vec<Batch>>> {
    let cx = parts.read_context(stats);
    let mut out = Vec::new();
    for i in 0..parts.len() {
        let Some(bounds) = parts.bounds(i) else { continue };
        if !range.overlaps(bounds.min_time, bounds.max_time) {
            continue;
        }
        if !range.covers(bounds.min_time, bounds.max_time) {
            return Ok(None);
        }
        let reader = parts.reader(i)?;
        let names = reader.names(&cx)?;
        let fields = (0u32..).zip(names.iter()).map(|(id, name)| (name, names.hits(id)));
        let special = [TIME_FIELD, STREAM_FIELD, STREAM_ID_FIELD].map(|n| (n, bounds.rows));
        for (name, rows) in fields.chain(special).filter(|(_, rows)| *rows > 0) {
            let mut batch = Batch::new(usize::try_from(rows).unwrap_or(usize::MAX));
            batch.set_column(Arc::from(name), Column::constant(b"present"));
            out.push(batch);
        }
    }
    Ok(Some(out))
}
