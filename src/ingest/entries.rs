//! Entries of programs to rows.

use super::report::IngestReport;
use super::row_writer::RowWriter;
use crate::error::Result;
use crate::record::{Batch, RowBatch};

/// Makes rows of the entries of `batch` and hands them to `sink`, the last ones too. Rejected
/// entries are counted in the report, in which an entry counts as a line. All rows are in one
/// batch, so that they are kept or lost together, unless they exceed its size limit.
///
/// # Errors
/// What `sink` returns; the entries handed over before it stay handed over.
pub(crate) fn append_batch(
    writer: &mut RowWriter,
    batch: &Batch,
    report: &mut IngestReport,
    mut sink: impl FnMut(RowBatch) -> Result<()>,
) -> Result<()> {
    let longest = writer.options().limits.max_entry_bytes;
    for entry in batch.entries() {
        report.lines += 1;
        if writer.must_split(longest.min(batch.text_bytes())) {
            sink(writer.take_batch())?;
        }
        if let Err(rejection) = writer.append(entry, report) {
            report.reject(rejection.reason, || rejection.detail);
        }
    }
    report.bytes += batch.text_bytes() as u64;
    if writer.len() > 0 {
        sink(writer.take_batch())?;
    }
    Ok(())
}
