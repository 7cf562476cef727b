//! Batches -> parts.

use std::collections::BTreeSet;

use crate::Result;
use crate::part::{PartSummary, WriterOptions, write_part};
use crate::record::RowBatch;

use super::Cut;

/// A part in memory.
#[derive(Debug)]
pub(crate) struct PartBytes {
    /// What the writer says of it.
    pub(crate) summary: PartSummary,
    /// The part, byte for byte as a file would hold it.
    pub(crate) bytes: Vec<u8>,
}

/// Encodes a cut into one part for each day it holds rows of, days ascending.
///
/// `options` gives the writer's options for a day; it is asked once a day. Cost: one pass over
/// the rows to find the days, then the writer's cost for each row once.
///
/// # Errors
/// Those of the writer, which for memory are limits of the format.
pub(crate) fn encode_days(
    cut: &Cut,
    mut options: impl FnMut(i32) -> WriterOptions,
) -> Result<Vec<PartBytes>> {
    let batches: Vec<&RowBatch> = cut.batches.iter().map(|(_, b)| b.as_ref()).collect();
    let mut out = Vec::new();
    for day in days_of(&batches) {
        let mut bytes = Vec::new();
        let summary = write_part(&batches, &options(day), &mut bytes)?;
        out.push(PartBytes { summary, bytes });
    }
    Ok(out)
}

/// The UTC days of the rows.
pub(crate) fn days_of(batches: &[&RowBatch]) -> BTreeSet<i32> {
    let mut days = BTreeSet::new();
    let mut last = None;
    for row in batches.iter().flat_map(|b| b.iter()) {
        let day = row.time.day();
        if last != Some(day) {
            days.insert(day);
            last = Some(day);
        }
    }
    days
}
