//! What the store says about what it did.

use std::fmt;

use crate::error::Corruption;

/// What opening a store found and mended. Printing it gives one sentence for each finding.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct OpenReport {
    /// Rows read back from the journal: acknowledged, and not in a part when the store ended.
    pub replayed_rows: u64,
    /// Bytes of the journal's last writes that a crash cut short before they were acknowledged
    /// as durable.
    pub torn_bytes: u64,
    /// Places found damaged, beside those the manifest already knew.
    pub damage: Vec<Corruption>,
    /// Sentences about what recovery did: parts adopted, files set aside, an older manifest used.
    pub notes: Vec<String>,
}

impl OpenReport {
    /// A sentence about the bytes that were cut short, if there are any.
    pub(crate) fn torn_note(&self) -> Option<String> {
        let bytes = self.torn_bytes;
        (bytes > 0).then(|| format!("{bytes} bytes at the end of the journal were cut short"))
    }

    /// Whether there is nothing that anybody needs to know.
    pub fn is_clean(&self) -> bool {
        self.torn_bytes == 0 && self.damage.is_empty() && self.notes.is_empty()
    }
}

impl fmt::Display for OpenReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.replayed_rows > 0 {
            writeln!(f, "{} rows were read back from the journal", self.replayed_rows)?;
        }
        if let Some(note) = self.torn_note() {
            writeln!(f, "{note}")?;
        }
        for damage in &self.damage {
            writeln!(f, "{damage}")?;
        }
        for note in &self.notes {
            writeln!(f, "{note}")?;
        }
        Ok(())
    }
}

/// What a flush wrote.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FlushReport {
    /// Part files written.
    pub parts: u64,
    /// Rows in them.
    pub rows: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// What a compaction did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CompactReport {
    /// What was flushed first.
    pub flushed: FlushReport,
    /// Merges made.
    pub merges: u64,
    /// Parts that went into them.
    pub parts_read: u64,
    /// Bytes of the parts that came out of them.
    pub bytes_written: u64,
    /// Blocks that merges took over from their inputs as they were.
    pub blocks_copied: u64,
    /// Bytes of the pages of these blocks.
    pub bytes_copied: u64,
    /// Rows in these blocks.
    pub rows_copied: u64,
    /// Rows that merges encoded anew.
    pub rows_encoded: u64,
    /// Bytes of all parts afterwards.
    pub bytes_stored: u64,
    /// Parts afterwards.
    pub parts_stored: u64,
    /// Rows afterwards, deleted ones not counted.
    pub rows_stored: u64,
    /// Bytes that flushes and bulk ingests wrote since the store was opened.
    pub flushed_bytes: u64,
    /// Bytes that all merges wrote since the store was opened; over `flushed_bytes` it is the
    /// write amplification.
    pub merged_bytes: u64,
}

impl fmt::Display for CompactReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "flushed {} rows into {} parts", self.flushed.rows, self.flushed.parts)?;
        writeln!(
            f,
            "{} merges read {} parts and wrote {} bytes",
            self.merges, self.parts_read, self.bytes_written
        )?;
        writeln!(
            f,
            "copied {} blocks of {} rows and {} bytes, encoded {} rows anew",
            self.blocks_copied, self.rows_copied, self.bytes_copied, self.rows_encoded
        )?;
        write!(
            f,
            "stored: {} rows, {} parts, {} bytes",
            self.rows_stored, self.parts_stored, self.bytes_stored
        )?;
        if self.bytes_stored > 0 {
            #[expect(clippy::cast_precision_loss, reason = "a ratio for people")]
            let amplification = self.bytes_written as f64 / self.bytes_stored as f64;
            write!(f, "; write amplification of this compaction {amplification:.2}")?;
        }
        if self.flushed_bytes > 0 {
            #[expect(clippy::cast_precision_loss, reason = "a ratio for people")]
            let amplification = self.merged_bytes as f64 / self.flushed_bytes as f64;
            write!(f, ", of all merges since opening {amplification:.2}")?;
        }
        Ok(())
    }
}

/// Counts of an open store.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreStats {
    /// Days that hold rows.
    pub days: u64,
    /// Part files.
    pub file_parts: u64,
    /// Memory parts.
    pub memory_parts: u64,
    /// Rows in parts, deleted ones not counted.
    pub part_rows: u64,
    /// Rows in the buffer.
    pub buffered_rows: u64,
    /// Bytes of all part files.
    pub file_bytes: u64,
    /// Bytes of memory held by rows that are not in files.
    pub memory_bytes: u64,
    /// Bytes of files that flushes and bulk ingests made since the store was opened.
    pub flushed_bytes: u64,
    /// Bytes of files that merges made since the store was opened; over `flushed_bytes` it is
    /// the write amplification.
    pub merged_bytes: u64,
    /// Bytes of the journal.
    pub journal_bytes: u64,
}
