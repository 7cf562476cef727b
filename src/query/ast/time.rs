//! Time filters, in the form in which they were written.

use super::{CompareOp, Duration};

/// `_time:...`, a range of time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimeFilter {
    /// The range as written.
    pub form: TimeForm,
    /// `offset d`: the range lies this much earlier.
    pub offset: Option<Duration>,
}

/// The ways to write a range of time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TimeForm {
    /// `_time:5m`: the last five minutes up to now, now excluded.
    Last(Duration),
    /// `_time:>5m`: older than five minutes.
    OlderThan(Duration),
    /// `_time:2024-03`: the whole unit that is written.
    At(TimePoint),
    /// `_time:>=2024-03`.
    Compare {
        /// The comparison.
        op: CompareOp,
        /// Its right side.
        point: TimePoint,
    },
    /// `_time:[a, b)`.
    Range {
        /// Start.
        min: TimePoint,
        /// Whether the start belongs to the range.
        min_inclusive: bool,
        /// End.
        max: TimePoint,
        /// Whether the unit of the end belongs to the range.
        max_inclusive: bool,
    },
    /// `_time:offset d`: everything up to now, shifted.
    UpToNow,
}

/// A point in time as written; a partial time covers a whole unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TimePoint {
    /// RFC 3339 or a beginning of it (`2024`, `2024-03-05T10Z`), or a Unix number.
    Text(String),
    /// `now`.
    Now,
    /// `now-2h` and `2h`: this much before now (negative: after it).
    BeforeNow(Duration),
}

/// `_time:day_range[08:00, 18:00) offset 2h`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DayRange {
    /// Start, in nanoseconds since midnight, included.
    pub start: i64,
    /// End, in nanoseconds since midnight, excluded. Nothing matches when it is not after `start`.
    pub end: i64,
    /// `offset d` in nanoseconds: the times are those of a zone this much ahead of UTC. Without
    /// one the times are those of the query's zone.
    pub offset: Option<i64>,
}

/// `_time:week_range[Mon, Fri] offset 2h`. No wrap over the end of the week.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WeekRange {
    /// First day as written.
    pub start: Weekday,
    /// Whether the first day belongs to the range.
    pub start_inclusive: bool,
    /// Last day as written.
    pub end: Weekday,
    /// Whether the last day belongs to the range.
    pub end_inclusive: bool,
    /// As in [`DayRange::offset`].
    pub offset: Option<i64>,
}

/// A day of the week.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Weekday {
    Sunday,
    Monday,
    Tuesday,
    Wednesday,
    Thursday,
    Friday,
    Saturday,
}
