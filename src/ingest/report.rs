//! What became of the input.

use std::collections::BTreeMap;
use std::fmt;

/// Why an entry was rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum RejectReason {
    /// The line is not valid JSON.
    InvalidJson,
    /// The line is JSON, but not an object.
    NotAnObject,
    /// The entry has neither a time nor a field with a value.
    Empty,
    /// The time field holds something that is no time.
    InvalidTime,
    /// The time is further in the future than the limit allows.
    TooFarInFuture,
    /// The entry lies on a new day, and the store has as many days as it may.
    TooManyDays,
    /// The entry is longer than the limit.
    EntryTooLong,
    /// The entry has more fields than the limit.
    TooManyFields,
    /// The name of a field is longer than the limit.
    NameTooLong,
}

impl RejectReason {
    /// The reason in words.
    pub fn as_str(self) -> &'static str {
        match self {
            RejectReason::InvalidJson => "invalid JSON",
            RejectReason::NotAnObject => "not a JSON object",
            RejectReason::Empty => "no fields",
            RejectReason::InvalidTime => "invalid time",
            RejectReason::TooFarInFuture => "too far in the future",
            RejectReason::TooManyDays => "too many days in the store",
            RejectReason::EntryTooLong => "entry too long",
            RejectReason::TooManyFields => "too many fields",
            RejectReason::NameTooLong => "field name too long",
        }
    }
}

impl fmt::Display for RejectReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// An entry that was rejected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RejectExample {
    /// Its line from 1, or its place from 1 among the entries appended.
    pub line: u64,
    /// What is wrong and where, with the beginning of the text.
    pub detail: String,
}

/// How many entries were rejected for one reason, with the first few.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rejected {
    /// How many.
    pub count: u64,
    /// The first of them.
    pub examples: Vec<RejectExample>,
}

/// Examples kept for each reason.
const MAX_EXAMPLES: usize = 5;

/// What became of the input: rows accepted, entries rejected and why, and what was noticed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct IngestReport {
    /// Bytes of input.
    pub bytes: u64,
    /// Lines or entries of input, blank lines included.
    pub lines: u64,
    /// Rows made.
    pub accepted: u64,
    /// Accepted rows without a time, which got the time of their arrival.
    pub missing_time: u64,
    /// Entries with invalid UTF-8 or lone surrogates, replaced by U+FFFD.
    pub invalid_utf8: u64,
    /// Entries whose `_stream` was ignored: stream fields are chosen, or it is malformed.
    pub ignored_stream: u64,
    /// Entries whose `_stream_id` was ignored, as it always is.
    pub ignored_stream_id: u64,
    /// Entries whose `_time` was ignored because another field is the time.
    pub ignored_time: u64,
    /// The highest sequence of the accepted rows; 0 without any. Once
    /// [`Store::durable_sequence`](crate::Store::durable_sequence) has reached it, all of them
    /// survive a loss of power.
    pub last_sequence: u64,
    rejected: BTreeMap<RejectReason, Rejected>,
}

impl IngestReport {
    /// How many entries were rejected.
    pub fn rejected(&self) -> u64 {
        self.rejected.values().map(|r| r.count).sum()
    }

    /// The rejected entries by reason.
    pub fn rejections(&self) -> impl Iterator<Item = (RejectReason, &Rejected)> {
        self.rejected.iter().map(|(reason, rejected)| (*reason, rejected))
    }

    /// Adds the report of the input that follows this one's: its line numbers count on.
    pub fn merge(&mut self, next: &IngestReport) {
        for (reason, theirs) in &next.rejected {
            let ours = self.rejected.entry(*reason).or_default();
            ours.count += theirs.count;
            let room = MAX_EXAMPLES.saturating_sub(ours.examples.len());
            ours.examples.extend(
                theirs
                    .examples
                    .iter()
                    .take(room)
                    .map(|e| RejectExample { line: e.line + self.lines, detail: e.detail.clone() }),
            );
        }
        self.bytes += next.bytes;
        self.lines += next.lines;
        self.accepted += next.accepted;
        self.missing_time += next.missing_time;
        self.invalid_utf8 += next.invalid_utf8;
        self.ignored_stream += next.ignored_stream;
        self.ignored_stream_id += next.ignored_stream_id;
        self.ignored_time += next.ignored_time;
        self.last_sequence = self.last_sequence.max(next.last_sequence);
    }

    /// Counts a rejected entry; `detail` is only made while examples are wanted.
    pub(crate) fn reject(&mut self, reason: RejectReason, detail: impl FnOnce() -> String) {
        let line = self.lines;
        let rejected = self.rejected.entry(reason).or_default();
        rejected.count += 1;
        if rejected.examples.len() < MAX_EXAMPLES {
            rejected.examples.push(RejectExample { line, detail: detail() });
        }
    }
}

impl fmt::Display for IngestReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} rows from {} bytes", self.accepted, self.bytes)?;
        for (count, what) in [
            (self.rejected(), "rejected"),
            (self.missing_time, "without a time"),
            (self.invalid_utf8, "with invalid UTF-8"),
            (self.ignored_stream, "with an ignored _stream"),
            (self.ignored_stream_id, "with an ignored _stream_id"),
            (self.ignored_time, "with an ignored _time"),
        ] {
            if count > 0 {
                write!(f, ", {count} {what}")?;
            }
        }
        for (reason, rejected) in &self.rejected {
            write!(f, "\n{} rejected: {reason}", rejected.count)?;
            for example in &rejected.examples {
                write!(f, "\n  line {}: {}", example.line, example.detail)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merged_reports_count_lines_on() {
        let part = |lines: u64, bad_line: u64| {
            let mut r = IngestReport { lines: bad_line, accepted: 3, ..Default::default() };
            r.reject(RejectReason::InvalidJson, || "x".to_owned());
            r.lines = lines;
            r
        };
        let mut all = part(10, 4);
        all.merge(&part(20, 7));
        let (_, rejected) = all.rejections().next().unwrap();
        assert_eq!(rejected.examples.iter().map(|e| e.line).collect::<Vec<_>>(), [4, 17]);
        assert_eq!((all.lines, all.accepted, all.rejected()), (30, 6, 2));
        for _ in 0..10 {
            all.merge(&part(1, 1));
        }
        let (_, rejected) = all.rejections().next().unwrap();
        assert_eq!((rejected.count, rejected.examples.len()), (12, MAX_EXAMPLES));
        let text = all.to_string();
        assert!(text.starts_with("36 rows") && text.contains("12 rejected: invalid JSON"));
    }
}
