//! Time filters.

use super::super::ast::{
    Baseline, CompareOp, DayRange, Duration, Filter, TimeFilter, TimeForm, TimePoint, WeekRange,
    Weekday,
};
use super::super::fault::Fault;
use super::scan::short;
use super::{Compound, Parsed, Parser};
use crate::record::{Zone, parse_duration_nanos, parse_partial_time, parse_unix};

const NANOS_PER_MINUTE: i64 = 60_000_000_000;

impl Parser<'_> {
    /// Behind `_time:`.
    pub(super) fn time_filter(&mut self) -> Parsed<Filter> {
        let next = self.peek_at(1);
        if self.is(next, "[") || self.is(next, "(") {
            if self.eat("day_range") {
                return self.day_range();
            }
            if self.eat("week_range") {
                return self.week_range();
            }
        }
        let form = if self.at("offset") { TimeForm::UpToNow } else { self.time_form()? };
        let offset = self.time_offset()?;
        if matches!(form, TimeForm::UpToNow) && offset.is_none() {
            return self.unexpected("`offset`");
        }
        self.charge(128)?;
        Ok(Filter::Time(TimeFilter { form, offset }))
    }

    fn time_offset(&mut self) -> Parsed<Option<Duration>> {
        if self.eat("offset") { self.duration().map(Some) } else { Ok(None) }
    }

    fn time_form(&mut self) -> Parsed<TimeForm> {
        if self.at_any(&["[", "("]) {
            let (min_inclusive, [min, max], max_inclusive) = self.bracket_pair()?;
            let (min, max) = (point(min, true)?, point(max, true)?);
            return Ok(TimeForm::Range { min, min_inclusive, max, max_inclusive });
        }
        let greater = self.eat(">");
        if greater || self.eat("<") {
            let or_equal = self.glued() && self.eat("=");
            return self.time_comparison(greater, or_equal);
        }
        self.eat("=");
        let word = self.string("a time, a duration or a range behind `_time:`")?;
        let relative_to_now = word.text.starts_with("now");
        Ok(match point(word, false)? {
            TimePoint::BeforeNow(age) if !relative_to_now => TimeForm::Last(age),
            at => TimeForm::At(at),
        })
    }

    fn time_comparison(&mut self, greater: bool, or_equal: bool) -> Parsed<TimeForm> {
        let word = self.string("a time or a duration")?;
        let relative_to_now = word.text.starts_with("now");
        let op = match (greater, or_equal) {
            (true, true) => CompareOp::GreaterOrEqual,
            (true, false) => CompareOp::Greater,
            (false, true) => CompareOp::LessOrEqual,
            (false, false) => CompareOp::Less,
        };
        Ok(match point(word, false)? {
            TimePoint::BeforeNow(age) if !relative_to_now && greater => TimeForm::OlderThan(age),
            TimePoint::BeforeNow(age) if !relative_to_now => TimeForm::Last(age),
            point => TimeForm::Compare { op, point },
        })
    }

    /// Behind `new`.
    pub(super) fn baseline(&mut self) -> Parsed<Baseline> {
        if self.eat("since") {
            let word = self.string("a time, or a duration before now, behind `since`")?;
            return Ok(Baseline::Before(point(word, false)?));
        }
        if self.eat("against") {
            return Ok(Baseline::Rows(self.condition()?));
        }
        let expected = "`since` and a time or `against` and a filter in parentheses";
        self.unexpected(expected)
    }

    fn day_range(&mut self) -> Parsed<Filter> {
        let (min_inclusive, [min, max], max_inclusive) = self.bracket_pair()?;
        let start = time_of_day(&min)? + i64::from(!min_inclusive);
        let end = time_of_day(&max)? + i64::from(max_inclusive);
        let offset = self.time_offset()?.map(|d| d.nanos);
        Ok(Filter::DayRange(DayRange { start, end, offset }))
    }

    fn week_range(&mut self) -> Parsed<Filter> {
        let (start_inclusive, [start, end], end_inclusive) = self.bracket_pair()?;
        let (start, end) = (weekday(&start)?, weekday(&end)?);
        let offset = self.time_offset()?.map(|d| d.nanos);
        let range = WeekRange { start, start_inclusive, end, end_inclusive, offset };
        Ok(Filter::WeekRange(range))
    }
}

/// Reads one point in time; only between brackets numbers are Unix times.
fn point(word: Compound, in_brackets: bool) -> Parsed<TimePoint> {
    let text = word.text.as_str();
    if text.eq_ignore_ascii_case("now") {
        return Ok(TimePoint::Now);
    }
    if let Some(rest) = text.strip_prefix("now") {
        let before = rest.strip_prefix('-');
        let (age, sign) =
            (before.or(rest.strip_prefix('+')), if before.is_some() { 1 } else { -1 });
        let nanos = age.and_then(|age| parse_duration_nanos(age.as_bytes()));
        if let (Some(age), Some(nanos)) = (age, nanos.filter(|n| *n >= 0)) {
            let text = if sign < 0 { format!("-{age}") } else { age.to_owned() };
            return Ok(TimePoint::BeforeNow(Duration { text, nanos: sign * nanos }));
        }
    }
    // Plain years first: 2024 is no number of seconds.
    let bytes = text.as_bytes();
    let is_unix = || in_brackets && parse_unix(bytes).is_some();
    if parse_partial_time(bytes, &Zone::UTC).is_some() || is_unix() {
        return Ok(TimePoint::Text(word.text));
    }
    match parse_duration_nanos(bytes) {
        Some(nanos) if nanos >= 0 => Ok(TimePoint::BeforeNow(Duration { text: word.text, nanos })),
        _ => Err(Fault::new(word.start, format!("`{}` is not a time", short(text)))
            .hint("times look like 5m, now-1h, 2024-03, 2024-03-05T10:00:00Z")),
    }
}

/// `hh:mm` up to `24:00`, in nanoseconds.
fn time_of_day(word: &Compound) -> Parsed<i64> {
    let two = |text: &str| match text.as_bytes() {
        [a @ b'0'..=b'9', b @ b'0'..=b'9'] => Some(i64::from(a - b'0') * 10 + i64::from(b - b'0')),
        _ => None,
    };
    let parts = word.text.split_once(':');
    let minutes = parts.and_then(|(hour, minute)| match (two(hour)?, two(minute)?) {
        (24, 0) => Some(24 * 60),
        (hour @ 0..24, minute @ 0..60) => Some(hour * 60 + minute),
        _ => None,
    });
    minutes.map(|minutes| minutes * NANOS_PER_MINUTE).ok_or_else(|| {
        Fault::new(word.start, format!("`{}` is not a time of day", short(&word.text)))
            .hint("times of day look like 08:30, up to 24:00")
    })
}

fn weekday(word: &Compound) -> Parsed<Weekday> {
    Ok(match word.text.to_ascii_lowercase().as_str() {
        "sun" | "sunday" => Weekday::Sunday,
        "mon" | "monday" => Weekday::Monday,
        "tue" | "tuesday" => Weekday::Tuesday,
        "wed" | "wednesday" => Weekday::Wednesday,
        "thu" | "thursday" => Weekday::Thursday,
        "fri" | "friday" => Weekday::Friday,
        "sat" | "saturday" => Weekday::Saturday,
        _ => {
            let message = format!("`{}` is not a day of the week", short(&word.text));
            return Err(Fault::new(word.start, message).hint("days look like Mon or Monday"));
        }
    })
}
