//! Where a row stands in the canonical order.

use std::cmp::Ordering;
use std::sync::Arc;

/// The place of a row in the canonical order: (time, stream text, append order).
///
/// `part` and `stream` are numbers that the query's snapshot gives out; `order` is the row's
/// tie-break number within its day (cut and row), comparable over all parts of a store. Compare
/// with [`RowPos::cmp_with`], which asks for stream texts only where times are equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct RowPos {
    /// Nanoseconds since the Unix epoch.
    pub(crate) time: i64,
    /// Number of the part within the query's snapshot.
    pub(crate) part: u32,
    /// Ordinal of the row's stream within the part.
    pub(crate) stream: u32,
    /// Append order.
    pub(crate) order: u64,
    /// Which of the rows that a pipe made of one stored row.
    pub(crate) sub: u32,
}

/// The texts of the streams that [`RowPos`] numbers.
pub(crate) trait StreamTexts: Sync {
    /// The canonical text of a stream; empty if the numbers are unknown.
    fn stream_text(&self, part: u32, stream: u32) -> Arc<[u8]>;
}

/// No streams: all rows stand in one nameless stream.
#[derive(Debug, Clone, Copy, Default)]
#[cfg(test)]
pub(crate) struct NoStreams;

#[cfg(test)]
impl StreamTexts for NoStreams {
    fn stream_text(&self, _part: u32, _stream: u32) -> Arc<[u8]> {
        Arc::from(&b""[..])
    }
}

impl RowPos {
    /// Compares in canonical order.
    pub(crate) fn cmp_with(&self, other: &RowPos, streams: &dyn StreamTexts) -> Ordering {
        self.time.cmp(&other.time).then_with(|| self.cmp_at_equal_time(other, streams))
    }

    #[cold]
    fn cmp_at_equal_time(&self, other: &RowPos, streams: &dyn StreamTexts) -> Ordering {
        let same_stream = self.part == other.part && self.stream == other.stream;
        let by_stream = if same_stream {
            Ordering::Equal
        } else {
            let a = streams.stream_text(self.part, self.stream);
            a.cmp(&streams.stream_text(other.part, other.stream))
        };
        by_stream.then(self.order.cmp(&other.order)).then(self.sub.cmp(&other.sub))
    }
}
