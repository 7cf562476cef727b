//! Unflushed rows as they were appended.

use std::sync::Arc;
use std::time::Duration;

use crate::record::RowBatch;

/// Batches in append order, each with the sequence of its first row.
pub(crate) type Batches = Vec<(u64, Arc<RowBatch>)>;

/// Rows that were appended and are in no part yet.
#[derive(Debug, Default)]
pub(crate) struct Buffer {
    batches: Batches,
    heap_bytes: usize,
    rows: u64,
    since: Option<Duration>,
}

/// A buffer taken whole: every row with a sequence in `lo..=hi`.
#[derive(Debug, Clone)]
pub(crate) struct Cut {
    /// The sequence of the first row.
    pub(crate) lo: u64,
    /// The sequence of the last row.
    pub(crate) hi: u64,
    /// The rows.
    pub(crate) batches: Batches,
    /// Bytes of memory the rows hold, about.
    pub(crate) heap_bytes: usize,
}

impl Buffer {
    /// Adds a batch whose first row has `sequence`, which follows all rows so far; `now` is the
    /// monotonic time.
    pub(crate) fn push(&mut self, sequence: u64, batch: Arc<RowBatch>, now: Duration) {
        debug_assert!(!batch.is_empty(), "an empty batch has no sequence");
        debug_assert!(self.next().is_none_or(|next| next <= sequence), "sequences ascend");
        self.heap_bytes += batch.heap_bytes();
        self.rows += batch.len() as u64;
        self.since.get_or_insert(now);
        self.batches.push((sequence, batch));
    }

    /// The sequence of the first row.
    pub(crate) fn lo(&self) -> Option<u64> {
        self.batches.first().map(|(sequence, _)| *sequence)
    }

    /// The number of rows.
    pub(crate) fn rows(&self) -> u64 {
        self.rows
    }

    /// Bytes of memory the rows hold, about.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.heap_bytes
    }

    /// When the oldest row was appended, in monotonic time.
    pub(crate) fn since(&self) -> Option<Duration> {
        self.since
    }

    /// The rows so far, without taking them.
    pub(crate) fn view(&self) -> Option<Cut> {
        let lo = self.batches.first()?.0;
        let hi = self.next()?.checked_sub(1)?;
        Some(Cut { lo, hi, batches: self.batches.clone(), heap_bytes: self.heap_bytes })
    }

    /// Takes all rows; the buffer is empty afterwards.
    pub(crate) fn cut(&mut self) -> Option<Cut> {
        let cut = self.view()?;
        *self = Buffer::default();
        Some(cut)
    }

    fn next(&self) -> Option<u64> {
        self.batches.last().map(|(sequence, batch)| sequence + batch.len() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{RowBatchBuilder, StreamKey, Timestamp};

    fn batch(rows: usize) -> Arc<RowBatch> {
        let mut b = RowBatchBuilder::new();
        let s = b.add_stream(Arc::new(StreamKey::default()));
        for _ in 0..rows {
            b.finish_row(Timestamp::from_nanos(0), s);
        }
        Arc::new(b.finish())
    }

    #[test]
    fn a_cut_takes_everything_once() {
        let mut buffer = Buffer::default();
        assert!(buffer.cut().is_none());
        buffer.push(10, batch(3), Duration::from_secs(1));
        buffer.push(13, batch(2), Duration::from_secs(2));
        assert_eq!((buffer.rows(), buffer.since()), (5, Some(Duration::from_secs(1))));
        let view = buffer.view().unwrap();
        let cut = buffer.cut().unwrap();
        assert_eq!((view.lo, view.hi, cut.lo, cut.hi), (10, 14, 10, 14));
        assert_eq!(cut.batches.len(), 2);
        assert!(buffer.cut().is_none() && buffer.since().is_none());
    }
}
