//! Times as queries write them: down to any unit, with the range that they cover, and zones.

use super::civil::{days_from_civil, days_in_month};
use super::timestamp::{NANOS_PER_SECOND, from_nanos_i128, parse_offset};
use super::{Timestamp, Zone};

const SECOND: i128 = NANOS_PER_SECOND as i128;

/// All times that a partial time covers, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TimeSpan {
    /// The first nanosecond.
    pub(crate) start: Timestamp,
    /// The last nanosecond.
    pub(crate) end: Timestamp,
}

/// Local date and time of day as far as they were written.
struct Civil {
    year: i64,
    month: Option<i64>,
    day: Option<i64>,
    /// Nanoseconds of the day, and how many of them the text covers.
    clock: Option<(i128, i128)>,
}

/// Reads `YYYY[-MM[-DD[Thh[:mm[:ss[.fraction]]]]]]`, each with `Z`, `+hh:mm`, `+hhmm` or in
/// `zone`, and gives the range covered: the whole unit written, a millisecond with exactly three
/// digits of fraction, one nanosecond with any other number. A blank may stand for `T`.
///
/// `None` for other texts. Times outside of the range of [`Timestamp`] count as its first or last
/// one.
pub(crate) fn parse_partial_time(text: &[u8], zone: &Zone) -> Option<TimeSpan> {
    let mut cursor = Cursor { rest: text };
    let civil = cursor.civil()?;
    let fixed;
    let zone = match cursor.rest {
        b"" => zone,
        b"Z" | b"z" => &Zone::UTC,
        [_, _, _] => return None,
        offset => {
            fixed = Zone::Fixed(parse_offset(offset)?);
            &fixed
        }
    };
    let (start, after) = civil.bounds();
    let (start, end) = (zone.first_showing(start), zone.first_showing(after) - 1);
    let held = |nanos: i128| match nanos {
        nanos if nanos < 0 => from_nanos_i128(nanos).unwrap_or(Timestamp::MIN),
        nanos => from_nanos_i128(nanos).unwrap_or(Timestamp::MAX),
    };
    Some(TimeSpan { start: held(start), end: held(end) })
}

impl Civil {
    /// The first local nanosecond covered and the first one after.
    fn bounds(&self) -> (i128, i128) {
        let midnight = |y, m, d| i128::from(days_from_civil(y, m, d)) * 86_400 * SECOND;
        let year = self.year;
        let Some(month) = self.month else {
            return (midnight(year, 1, 1), midnight(year + 1, 1, 1));
        };
        let Some(day) = self.day else {
            let (next_year, next) = if month == 12 { (year + 1, 1) } else { (year, month + 1) };
            return (midnight(year, month, 1), midnight(next_year, next, 1));
        };
        let start = midnight(year, month, day);
        match self.clock {
            None => (start, start + 86_400 * SECOND),
            Some((at, covers)) => (start + at, start + at + covers),
        }
    }
}

struct Cursor<'a> {
    rest: &'a [u8],
}

impl Cursor<'_> {
    fn civil(&mut self) -> Option<Civil> {
        let year = self.number(4)?;
        let mut civil = Civil { year, month: None, day: None, clock: None };
        if !self.at_date_part() {
            return Some(civil);
        }
        self.rest = self.rest.get(1..)?;
        let month = self.number(2).filter(|m| (1..=12).contains(m))?;
        civil.month = Some(month);
        if !self.at_date_part() {
            return Some(civil);
        }
        self.rest = self.rest.get(1..)?;
        let day = self.number(2).filter(|d| (1..=days_in_month(year, month)).contains(d))?;
        civil.day = Some(day);
        if let [b'T' | b't' | b' ', rest @ ..] = self.rest {
            self.rest = rest;
            civil.clock = Some(self.clock()?);
        }
        Some(civil)
    }

    /// Whether a minus begins a month or day and not an offset: exactly two digits follow it.
    fn at_date_part(&self) -> bool {
        let [b'-', rest @ ..] = self.rest else { return false };
        let digits = rest.iter().take_while(|b| b.is_ascii_digit()).count();
        digits == 2 && rest.get(2) != Some(&b':')
    }

    fn clock(&mut self) -> Option<(i128, i128)> {
        let hour = i128::from(self.number(2).filter(|h| *h < 24)?);
        let Some(minute) = self.after_colon()? else {
            return Some((hour * 3_600 * SECOND, 3_600 * SECOND));
        };
        let Some(second) = self.after_colon()? else {
            return Some(((hour * 60 + minute) * 60 * SECOND, 60 * SECOND));
        };
        let at = ((hour * 60 + minute) * 60 + second) * SECOND;
        let [b'.', rest @ ..] = self.rest else { return Some((at, SECOND)) };
        let len = rest.iter().take_while(|b| b.is_ascii_digit()).count();
        self.rest = rest;
        if len == 0 || len > 9 {
            return None;
        }
        let fraction = self.number(len)?;
        let unit = 10i128.pow(9 - u32::try_from(len).ok()?);
        let covers = if len == 3 { unit } else { 1 };
        Some((at + i128::from(fraction) * unit, covers))
    }

    /// Two digits below 60 after a colon, if there is one.
    fn after_colon(&mut self) -> Option<Option<i128>> {
        let [b':', rest @ ..] = self.rest else { return Some(None) };
        self.rest = rest;
        let value = self.number(2).filter(|v| *v < 60)?;
        Some(Some(i128::from(value)))
    }

    /// Exactly `len` digits.
    fn number(&mut self, len: usize) -> Option<i64> {
        let (digits, rest) = self.rest.split_at_checked(len)?;
        let mut value = 0;
        for b in digits {
            if !b.is_ascii_digit() {
                return None;
            }
            value = value * 10 + i64::from(b - b'0');
        }
        self.rest = rest;
        Some(value)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn span_in(text: &str, zone: &Zone) -> Option<(String, String)> {
        parse_partial_time(text.as_bytes(), zone).map(|s| (s.start.to_string(), s.end.to_string()))
    }

    fn check(text: &str, start: &str, end: &str) {
        let want = Some((start.to_owned(), end.to_owned()));
        assert_eq!(span_in(text, &Zone::UTC), want, "{text}");
    }

    #[test]
    fn covers_the_unit_written() {
        check("2024", "2024-01-01T00:00:00Z", "2024-12-31T23:59:59.999999999Z");
        check("2024-02Z", "2024-02-01T00:00:00Z", "2024-02-29T23:59:59.999999999Z");
        check("2024-12", "2024-12-01T00:00:00Z", "2024-12-31T23:59:59.999999999Z");
        check("2024-03-05", "2024-03-05T00:00:00Z", "2024-03-05T23:59:59.999999999Z");
        check("2024-03-05T06", "2024-03-05T06:00:00Z", "2024-03-05T06:59:59.999999999Z");
        check("2024-03-05T06:07Z", "2024-03-05T06:07:00Z", "2024-03-05T06:07:59.999999999Z");
        check("2024-03-05 06:07:08", "2024-03-05T06:07:08Z", "2024-03-05T06:07:08.999999999Z");
        check(
            "2024-03-05T06:07:08.123Z",
            "2024-03-05T06:07:08.123Z",
            "2024-03-05T06:07:08.123999999Z",
        );
        check("2024-03-05T06:07:08.1Z", "2024-03-05T06:07:08.1Z", "2024-03-05T06:07:08.1Z");
        check("1677", "1677-09-21T00:12:43.145224192Z", "1677-12-31T23:59:59.999999999Z");
        check("2262", "2262-01-01T00:00:00Z", "2262-04-11T23:47:16.854775807Z");
        let (first, last) = (Timestamp::MIN.to_string(), Timestamp::MAX.to_string());
        check("0001-01-01", &first, &first);
        check("9999", &last, &last);
        let berlin = Zone::posix("CET-1CEST,M3.5.0,M10.5.0/3");
        assert_eq!(span_in("9999", &berlin), Some((last.clone(), last)));
        assert_eq!(span_in("0000-01-01T00", &berlin), Some((first.clone(), first)));
    }

    #[test]
    fn offsets_are_told_from_dates() {
        check("2024-02:00", "2024-01-01T02:00:00Z", "2025-01-01T01:59:59.999999999Z");
        check("2024-0200", "2024-01-01T02:00:00Z", "2025-01-01T01:59:59.999999999Z");
        check("2024-03-02:00", "2024-03-01T02:00:00Z", "2024-04-01T01:59:59.999999999Z");
        check("2024-03-05+01:30", "2024-03-04T22:30:00Z", "2024-03-05T22:29:59.999999999Z");
        check("2024-03-05T06+0100", "2024-03-05T05:00:00Z", "2024-03-05T05:59:59.999999999Z");
    }

    #[test]
    fn zones_with_rules_apply() {
        let zone = Zone::posix("CET-1CEST,M3.5.0,M10.5.0/3");
        let span = span_in("2024-03-31", &zone).unwrap();
        assert_eq!(span.0, "2024-03-30T23:00:00Z");
        assert_eq!(span.1, "2024-03-31T21:59:59.999999999Z");
        // What a change of the clock skips is empty; what it repeats is there twice.
        let (skipped, after) = span_in("2024-03-31T02", &zone).unwrap();
        assert_eq!(
            (&*skipped, &*after),
            ("2024-03-31T01:00:00Z", "2024-03-31T00:59:59.999999999Z")
        );
        let twice = span_in("2024-10-27T02", &zone).unwrap();
        assert_eq!(twice.0, "2024-10-27T00:00:00Z");
        assert_eq!(twice.1, "2024-10-27T01:59:59.999999999Z");
        let fixed = span_in("2024-03-31T00:00", &Zone::Fixed(3_600)).unwrap();
        assert_eq!(fixed.0, "2024-03-30T23:00:00Z");
    }

    #[test]
    fn refuses_what_is_no_time() {
        for bad in [
            "",
            "24",
            "20245",
            "2024-",
            "2024-1",
            "2024-13",
            "2024-02-30",
            "2024-02-03T",
            "now",
            "2024-02-03T24",
            "2024-02-03T1:00",
            "2024-02-03T01:60",
            "2024-02-03T01:00:60",
            "2024-02-03T01:00:00.",
            "2024-02-03T01:00:00.1234567890",
            "2024x",
            "2024-02-03TZ",
            "2024+01",
            "2024Zx",
        ] {
            assert_eq!(span_in(bad, &Zone::UTC), None, "{bad}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1_000))]

        #[test]
        fn prefixes_of_a_time_cover_it(nanos in -(1i64 << 62)..1 << 62) {
            let time = Timestamp::from_nanos(nanos);
            let text = format!("{:0<30}", time.to_string().trim_end_matches('Z').to_owned() + ".");
            for len in [4, 7, 10, 13, 16, 19] {
                let span = parse_partial_time(&text.as_bytes()[..len], &Zone::UTC).unwrap();
                prop_assert!(span.start <= time && time <= span.end);
            }
        }

        #[test]
        fn no_bytes_panic(text in "[0-9TZ:.+ -]{0,32}") {
            let _ = parse_partial_time(text.as_bytes(), &Zone::UTC);
        }
    }
}
