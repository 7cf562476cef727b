//! Names of fields and their rows from what parts say of themselves.

use std::sync::Arc;

use foldhash::fast::RandomState;
use hashbrown::HashMap;

use super::PartSet;
use crate::error::Result;
use crate::part::ReadStats;
use crate::query::ast::{STREAM_FIELD, STREAM_ID_FIELD, TIME_FIELD};
use crate::query::batch::Batch;
use crate::query::column::Column;
use crate::query::context::TimeRange;

/// For each field, a batch of as many rows as have it; reads the name tables of the parts and no
/// block. `None` if `range` takes only some rows of a part.
///
/// # Errors
/// Those of opening parts and reading their name tables.
pub(crate) fn names_from_headers(
    parts: &dyn PartSet,
    range: TimeRange,
    stats: &ReadStats,
) -> Result<Option<Vec<Batch>>> {
    let cx = parts.read_context(stats);
    let mut readers = Vec::new();
    for i in 0..parts.len() {
        let Some(bounds) = parts.bounds(i) else { continue };
        if !range.overlaps(bounds.min_time, bounds.max_time) {
            continue;
        }
        if !range.covers(bounds.min_time, bounds.max_time) {
            return Ok(None);
        }
        readers.push((parts.reader(i)?, bounds.rows));
    }
    let mut hits: HashMap<&str, u64, RandomState> = HashMap::default();
    for (reader, rows) in &readers {
        let names = reader.names(&cx)?;
        let fields = (0u32..).zip(names.iter()).map(|(id, name)| (name, names.hits(id)));
        let special = [TIME_FIELD, STREAM_FIELD, STREAM_ID_FIELD].map(|n| (n, *rows));
        for (name, rows) in fields.chain(special).filter(|(_, rows)| *rows > 0) {
            *hits.entry(name).or_default() += rows;
        }
    }
    let present = Column::constant(b"present");
    let batch = |(name, rows)| {
        let mut batch = Batch::new(usize::try_from(rows).unwrap_or(usize::MAX));
        batch.set_column(Arc::from(name), present.clone());
        batch
    };
    Ok(Some(hits.into_iter().map(batch).collect()))
}
