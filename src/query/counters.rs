//! How much of the store a query looked at, level by level.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use super::damage::DamageLog;
use crate::part::ReadStats;
use crate::sync::Mutex;

/// Counted while a query runs; shared by its workers.
#[derive(Debug, Default)]
pub(crate) struct ScanCounters {
    /// The UTC days of opened parts.
    pub(crate) days_read: Mutex<BTreeSet<i32>>,
    /// Parts that the query sees.
    pub(crate) parts: AtomicU64,
    /// Parts that were opened.
    pub(crate) parts_read: AtomicU64,
    /// Index blocks of opened parts.
    pub(crate) index_blocks: AtomicU64,
    /// Index blocks whose headers were looked at.
    pub(crate) index_blocks_read: AtomicU64,
    /// Blocks of those.
    pub(crate) blocks: AtomicU64,
    /// Blocks that were judged by the facts in their headers.
    pub(crate) blocks_judged: AtomicU64,
    /// Blocks whose strips were looked at.
    pub(crate) blocks_scanned: AtomicU64,
    /// Rows of all parts.
    pub(crate) rows: AtomicU64,
    /// Rows of strips on which filters were evaluated.
    pub(crate) rows_scanned: AtomicU64,
    /// Rows that passed the filter, those counted by headers included.
    pub(crate) rows_matched: AtomicU64,
    /// Reads of parts.
    pub(crate) reads: ReadStats,
    /// Damage that was met.
    pub(crate) damage: DamageLog,
}

/// How much of the store a query looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct QueryStats {
    /// UTC days that have rows.
    pub days_total: u64,
    /// Days of which a part was opened.
    pub days_read: u64,
    /// Parts that the query sees: files, memory and the buffer.
    pub parts_total: u64,
    /// Parts of which more than their entry in the manifest was needed.
    pub parts_read: u64,
    /// Index blocks of those parts.
    pub index_blocks_total: u64,
    /// Index blocks whose headers were looked at.
    pub index_blocks_read: u64,
    /// Blocks of all parts.
    pub blocks_total: u64,
    /// Blocks of which a page was read.
    pub blocks_read: u64,
    /// Heads of pages that were read.
    pub pages_read: u64,
    /// Strips of all columns of all parts, those of columns with one value included.
    pub strips_total: u64,
    /// Strips that were decoded.
    pub strips_read: u64,
    /// Rows of all parts.
    pub rows_total: u64,
    /// Rows on which the filter was evaluated.
    pub rows_read: u64,
    /// Rows that passed the filter.
    pub rows_matched: u64,
    /// Bytes of membership filters that were read.
    pub filter_bytes: u64,
    /// Bytes read from parts, all of them.
    pub bytes_read: u64,
    /// Bytes of decoded values.
    pub bytes_decoded: u64,
    /// Damaged places that were skipped; only with
    /// [`QueryOptions::skip_damaged`](crate::QueryOptions::skip_damaged).
    pub damaged_places: u64,
    /// Rows that could not be read because of them, or lie in parts that are lost: at most so
    /// many rows are missing from the answer, or from what it was computed from. 0 also if the
    /// number is not known, so look at `damaged_places`.
    pub rows_missing: u64,
}

impl ScanCounters {
    /// Nothing counted; says whether damage is skipped.
    pub(crate) fn new(skip_damaged: bool) -> ScanCounters {
        ScanCounters { damage: DamageLog::new(skip_damaged), ..ScanCounters::default() }
    }

    /// The counts so far; the numbers of all days, blocks and strips are left at 0.
    pub(crate) fn snapshot(&self) -> QueryStats {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let (damaged_places, rows_missing) = self.damage.counts();
        QueryStats {
            days_total: 0,
            days_read: self.days_read.lock().len() as u64,
            parts_total: get(&self.parts),
            parts_read: get(&self.parts_read),
            index_blocks_total: get(&self.index_blocks),
            index_blocks_read: get(&self.index_blocks_read),
            blocks_total: 0,
            blocks_read: get(&self.reads.blocks),
            pages_read: get(&self.reads.pages),
            strips_total: 0,
            strips_read: get(&self.reads.strips),
            rows_total: get(&self.rows),
            rows_read: get(&self.rows_scanned),
            rows_matched: get(&self.rows_matched),
            filter_bytes: get(&self.reads.filter_bytes),
            bytes_read: get(&self.reads.read_bytes),
            bytes_decoded: get(&self.reads.decoded_bytes),
            damaged_places,
            rows_missing,
        }
    }
}

impl fmt::Display for QueryStats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "days          {} of {}", self.days_read, self.days_total)?;
        writeln!(f, "parts         {} of {}", self.parts_read, self.parts_total)?;
        writeln!(f, "index blocks  {} of {}", self.index_blocks_read, self.index_blocks_total)?;
        writeln!(f, "blocks        {} of {}", self.blocks_read, self.blocks_total)?;
        writeln!(f, "pages         {}", self.pages_read)?;
        writeln!(f, "strips        {} of {}", self.strips_read, self.strips_total)?;
        writeln!(
            f,
            "rows          {} matched, {} filtered, {} in all",
            self.rows_matched, self.rows_read, self.rows_total
        )?;
        write!(
            f,
            "bytes         {} read, {} of them filters, {} decoded",
            self.bytes_read, self.filter_bytes, self.bytes_decoded
        )?;
        if self.damaged_places > 0 {
            let (places, rows) = (self.damaged_places, self.rows_missing);
            write!(f, "\ndamage        {places} places, {rows} rows possibly missing")?;
        }
        Ok(())
    }
}
