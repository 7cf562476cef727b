//! Points in time.

use std::fmt;

/// A point in time: nanoseconds since 1970-01-01T00:00:00Z, between the years 1677 and 2262.
///
/// Displays as RFC 3339 in UTC with `Z` and the shortest fraction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(i64);

/// Nanoseconds of a UTC day.
pub(crate) const NANOS_PER_DAY: i64 = 86_400_000_000_000;

impl Timestamp {
    /// The earliest time.
    pub const MIN: Timestamp = Timestamp(i64::MIN);
    /// The latest time.
    pub const MAX: Timestamp = Timestamp(i64::MAX);

    /// A time from nanoseconds since the Unix epoch.
    pub const fn from_nanos(nanos: i64) -> Timestamp {
        Timestamp(nanos)
    }

    /// Nanoseconds since the Unix epoch.
    pub const fn as_nanos(self) -> i64 {
        self.0
    }

    /// The number of the UTC day, 1970-01-01 being 0.
    pub(crate) const fn day(self) -> i32 {
        // The quotient is at most 106,752 in magnitude.
        #[expect(clippy::cast_possible_truncation, reason = "i64 nanoseconds span 213,504 days")]
        let day = self.0.div_euclid(NANOS_PER_DAY) as i32;
        day
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("")
    }
}
