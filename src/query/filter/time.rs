//! Time filters: the ranges that their written forms stand for.

use crate::query::ast::{
    CompareOp, DayRange, Duration, TimeFilter, TimeForm, TimePoint, WeekRange,
};
use crate::query::context::{ExecContext, TimeRange};
use crate::record::{NANOS_PER_DAY, TimeSpan, Timestamp, Zone, parse_partial_time, parse_unix};

impl TimeRange {
    /// All times.
    pub(crate) const ALL: TimeRange = TimeRange { min: i64::MIN, max: i64::MAX };
    /// No time.
    pub(crate) const NONE: TimeRange = TimeRange { min: i64::MAX, max: i64::MIN };

    /// Whether `time` is inside.
    #[inline]
    pub(crate) fn contains(self, time: i64) -> bool {
        self.min <= time && time <= self.max
    }

    /// Whether no time is inside.
    pub(crate) fn is_empty(self) -> bool {
        self.min > self.max
    }

    /// The times in both.
    pub(crate) fn intersect(self, other: TimeRange) -> TimeRange {
        TimeRange { min: self.min.max(other.min), max: self.max.min(other.max) }
    }

    /// Whether some time of `min..=max` is inside.
    pub(crate) fn overlaps(self, min: i64, max: i64) -> bool {
        self.min <= max && min <= self.max && !self.is_empty()
    }

    /// Whether all times of `min..=max` are inside.
    pub(crate) fn covers(self, min: i64, max: i64) -> bool {
        self.min <= min && max <= self.max
    }

    /// The range moved back by `nanos`; ends that are open stay so.
    pub(crate) fn shifted_back(self, nanos: i64) -> TimeRange {
        let shift = |t: i64| match t {
            i64::MIN | i64::MAX => t,
            t => t.saturating_sub(nanos),
        };
        TimeRange { min: shift(self.min), max: shift(self.max) }
    }
}

/// What time filters are relative to.
#[derive(Debug, Clone)]
pub(crate) struct TimeContext {
    /// The current time.
    pub(crate) now: Timestamp,
    /// The zone of times without one.
    pub(crate) zone: Zone,
    /// `options(time_offset=...)` in nanoseconds: filters look this much further back.
    pub(crate) time_offset: i64,
}

impl TimeContext {
    /// The times of a query, with filters looking `time_offset` nanoseconds further back.
    pub(crate) fn new(ctx: &ExecContext<'_>, time_offset: i64) -> TimeContext {
        TimeContext { now: ctx.now, zone: ctx.zone.clone(), time_offset }
    }

    /// The range of a filter; `None` if a time in it cannot be read.
    pub(crate) fn range(&self, filter: &TimeFilter) -> Option<TimeRange> {
        let range = self.form(&filter.form)?;
        let offset = filter.offset.as_ref().map_or(0, |d| d.nanos);
        Some(range.shifted_back(offset).shifted_back(self.time_offset))
    }

    fn form(&self, form: &TimeForm) -> Option<TimeRange> {
        let now = self.now.as_nanos();
        Some(match form {
            TimeForm::Last(d) => {
                TimeRange { min: now.saturating_sub(d.nanos), max: now.saturating_sub(1) }
            }
            TimeForm::OlderThan(d) => {
                TimeRange { min: i64::MIN, max: before(now.saturating_sub(d.nanos)) }
            }
            TimeForm::UpToNow => TimeRange { min: i64::MIN, max: now.saturating_sub(1) },
            TimeForm::At(point) => {
                let span = self.span(point)?;
                TimeRange { min: span.start.as_nanos(), max: span.end.as_nanos() }
            }
            TimeForm::Compare { op, point } => {
                let span = self.span(point)?;
                let (start, end) = (span.start.as_nanos(), span.end.as_nanos());
                match op {
                    CompareOp::Greater => after(start),
                    CompareOp::GreaterOrEqual => TimeRange { min: start, max: i64::MAX },
                    CompareOp::Less => until(start),
                    CompareOp::LessOrEqual => TimeRange { min: i64::MIN, max: end },
                }
            }
            TimeForm::Range { min, min_inclusive, max, max_inclusive } => {
                let (low, high) = (self.span(min)?, self.span(max)?);
                let (low, high_start) = (low.start.as_nanos(), high.start.as_nanos());
                let lower = match min_inclusive {
                    true => TimeRange { min: low, max: i64::MAX },
                    false => after(low),
                };
                let upper = match max_inclusive {
                    true => TimeRange { min: i64::MIN, max: high.end.as_nanos() },
                    false => until(high_start),
                };
                lower.intersect(upper)
            }
        })
    }

    fn span(&self, point: &TimePoint) -> Option<TimeSpan> {
        let at = |t: Timestamp| TimeSpan { start: t, end: t };
        match point {
            TimePoint::Now => Some(at(self.now)),
            TimePoint::BeforeNow(Duration { nanos, .. }) => {
                Some(at(Timestamp::from_nanos(self.now.as_nanos().saturating_sub(*nanos))))
            }
            TimePoint::Text(text) => {
                let text = text.as_bytes();
                parse_partial_time(text, &self.zone).or_else(|| parse_unix(text).map(at))
            }
        }
    }

    /// The time of a row as `day_range` and `week_range` see it: local, as if it were UTC.
    fn local(&self, time: i64, offset: Option<i64>) -> i128 {
        let seen = i128::from(time) + i128::from(self.time_offset);
        let east = match offset {
            Some(nanos) => i128::from(nanos),
            None => {
                let seen = seen.clamp(i64::MIN.into(), i64::MAX.into());
                let at = Timestamp::from_nanos(i64::try_from(seen).unwrap_or(time));
                i128::from(self.zone.seconds_east(at)) * SECOND
            }
        };
        seen + east
    }

    /// Whether the time of day lies in the range.
    pub(crate) fn in_day_range(&self, range: &DayRange, time: i64) -> bool {
        let of_day = self.local(time, range.offset).rem_euclid(i128::from(NANOS_PER_DAY));
        i128::from(range.start) <= of_day && of_day < i128::from(range.end)
    }

    /// Whether the day of the week lies in the range.
    pub(crate) fn in_week_range(&self, range: &WeekRange, time: i64) -> bool {
        let day = self.local(time, range.offset).div_euclid(i128::from(NANOS_PER_DAY));
        // 1970-01-01 was a Thursday.
        let weekday = (day + 4).rem_euclid(7);
        let first = range.start as i128 + i128::from(!range.start_inclusive);
        let last = range.end as i128 - i128::from(!range.end_inclusive);
        first <= weekday && weekday <= last
    }
}

const SECOND: i128 = 1_000_000_000;

fn before(time: i64) -> i64 {
    time.saturating_sub(1)
}

fn after(time: i64) -> TimeRange {
    match time.checked_add(1) {
        Some(min) => TimeRange { min, max: i64::MAX },
        None => TimeRange::NONE,
    }
}

fn until(time: i64) -> TimeRange {
    match time.checked_sub(1) {
        Some(max) => TimeRange { min: i64::MIN, max },
        None => TimeRange::NONE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::ast::Weekday;

    fn at(text: &str) -> i64 {
        Timestamp::parse(text).unwrap().as_nanos()
    }

    fn context() -> TimeContext {
        let now = Timestamp::parse("2024-03-05T12:00:00Z").unwrap();
        TimeContext { now, zone: Zone::UTC, time_offset: 0 }
    }

    fn range(form: TimeForm) -> TimeRange {
        context().range(&TimeFilter { form, offset: None }).unwrap()
    }

    fn point(text: &str) -> TimePoint {
        TimePoint::Text(text.to_owned())
    }

    fn duration(nanos: i64) -> Duration {
        Duration { text: format!("{nanos}ns"), nanos }
    }

    #[test]
    fn units_are_covered() {
        let r = range(TimeForm::At(point("2024-02Z")));
        assert_eq!(r.min, at("2024-02-01T00:00:00Z"));
        assert_eq!(r.max, at("2024-02-29T23:59:59.999999999Z"));
        let r = range(TimeForm::Compare { op: CompareOp::Greater, point: point("2024-03-05Z") });
        assert_eq!(r.min, at("2024-03-05T00:00:00.000000001Z"));
        let r = range(TimeForm::Compare { op: CompareOp::LessOrEqual, point: point("2024Z") });
        assert_eq!(r.max, at("2024-12-31T23:59:59.999999999Z"));
        let r = range(TimeForm::Range {
            min: point("2024-01Z"),
            min_inclusive: true,
            max: point("2024-02Z"),
            max_inclusive: false,
        });
        assert_eq!(
            (r.min, r.max),
            (at("2024-01-01T00:00:00Z"), at("2024-01-31T23:59:59.999999999Z"))
        );
    }

    #[test]
    fn relative_ranges_end_before_now() {
        let r = range(TimeForm::Last(duration(1_000)));
        let now = at("2024-03-05T12:00:00Z");
        assert_eq!((r.min, r.max), (now - 1_000, now - 1));
        let shifted =
            TimeFilter { form: TimeForm::Last(duration(1_000)), offset: Some(duration(500)) };
        let r = context().range(&shifted).unwrap();
        assert_eq!((r.min, r.max), (now - 1_500, now - 501));
        let open =
            TimeForm::Compare { op: CompareOp::Greater, point: TimePoint::BeforeNow(duration(10)) };
        assert_eq!(range(open).max, i64::MAX);
    }

    #[test]
    fn reversed_ranges_are_empty() {
        let r = range(TimeForm::Range {
            min: point("2024-02Z"),
            min_inclusive: true,
            max: point("2024-01Z"),
            max_inclusive: true,
        });
        assert!(r.is_empty() && !r.overlaps(i64::MIN, i64::MAX));
    }

    #[test]
    fn days_and_weeks() {
        let cx = context();
        let hour = 3_600_000_000_000;
        let day = DayRange { start: 8 * hour, end: 18 * hour, offset: None };
        assert!(cx.in_day_range(&day, at("2024-03-05T08:00:00Z")));
        assert!(!cx.in_day_range(&day, at("2024-03-05T18:00:00Z")));
        let east = DayRange { offset: Some(2 * hour), ..day };
        assert!(cx.in_day_range(&east, at("2024-03-05T06:00:00Z")));
        assert!(cx.in_day_range(&day, at("1969-12-31T09:00:00Z")));
        let week = WeekRange {
            start: Weekday::Monday,
            start_inclusive: true,
            end: Weekday::Friday,
            end_inclusive: false,
            offset: None,
        };
        assert!(cx.in_week_range(&week, at("2024-03-04T00:00:00Z")));
        assert!(!cx.in_week_range(&week, at("2024-03-08T00:00:00Z")));
        assert!(!cx.in_week_range(&week, at("2024-03-03T23:59:59Z")));
    }
}
