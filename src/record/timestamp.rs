//! Points in time: printing, and the syntaxes in which logs and values spell them.

use std::fmt;

use super::civil::{civil_from_days, days_from_civil, days_in_month};
use super::number::Decimal;

/// A point in time: nanoseconds since 1970-01-01T00:00:00Z, between the years 1677 and 2262.
///
/// Displays as RFC 3339 in UTC with `Z` and the shortest fraction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(i64);

/// Nanoseconds of a UTC day.
pub(crate) const NANOS_PER_DAY: i64 = 86_400_000_000_000;
/// Nanoseconds of a second.
pub(crate) const NANOS_PER_SECOND: i64 = 1_000_000_000;

/// The longest printed form: date, time of day, nine digits of fraction, `Z`.
const MAX_TEXT: usize = 30;

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

    /// Reads RFC 3339: `2025-03-04T05:06:07.89Z`, or with an offset such as `+02:00`; at most
    /// nine digits of fraction. `None` for anything else and outside of the range.
    pub fn parse(text: &str) -> Option<Timestamp> {
        parse_rfc3339(text.as_bytes())
    }

    /// The number of the UTC day, 1970-01-01 being 0.
    pub(crate) const fn day(self) -> i32 {
        // The quotient is at most 106,752 in magnitude.
        #[expect(clippy::cast_possible_truncation, reason = "i64 nanoseconds span 213,504 days")]
        let day = self.0.div_euclid(NANOS_PER_DAY) as i32;
        day
    }

    /// Appends the printed form: RFC 3339, UTC, `Z`, shortest fraction.
    pub(crate) fn write_to(self, out: &mut Vec<u8>) {
        let (text, len) = self.text();
        out.extend_from_slice(text.get(..len).unwrap_or(&[]));
    }

    #[expect(clippy::indexing_slicing, reason = "a fixed buffer, at most 30 bytes of which used")]
    fn text(self) -> ([u8; MAX_TEXT], usize) {
        let mut text = *b"0000-00-00T00:00:00.000000000Z";
        let (year, month, day) = civil_from_days(self.0.div_euclid(NANOS_PER_DAY));
        let in_day = self.0.rem_euclid(NANOS_PER_DAY);
        let (second, nanos) = (in_day / NANOS_PER_SECOND, in_day % NANOS_PER_SECOND);
        put_digits(&mut text[0..4], year);
        put_digits(&mut text[5..7], month);
        put_digits(&mut text[8..10], day);
        put_digits(&mut text[11..13], second / 3_600);
        put_digits(&mut text[14..16], second / 60 % 60);
        put_digits(&mut text[17..19], second % 60);
        let mut len = 19;
        if nanos != 0 {
            put_digits(&mut text[20..29], nanos);
            len = 29;
            while text[len - 1] == b'0' {
                len -= 1;
            }
        }
        text[len] = b'Z';
        (text, len + 1)
    }
}

/// Writes `value` right-aligned with leading zeros; `value` is not negative and fits.
fn put_digits(out: &mut [u8], mut value: i64) {
    for slot in out.iter_mut().rev() {
        #[expect(
            clippy::cast_sign_loss,
            reason = "a remainder of ten of a number that is not negative"
        )]
        let digit = (value % 10) as u8;
        *slot = b'0' + digit;
        value /= 10;
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (text, len) = self.text();
        f.pad(text.get(..len).and_then(|t| std::str::from_utf8(t).ok()).unwrap_or(""))
    }
}

/// Reads the fixed form `YYYY-MM-DDThh:mm:ss[.fraction]Z` with at most nine digits of fraction.
/// `None` means "not in this form", not that it is no time.
#[inline]
pub(crate) fn parse_utc_fixed(text: &[u8]) -> Option<Timestamp> {
    let (head, tail) = text.split_first_chunk::<19>()?;
    let days = parse_date_fixed(head.first_chunk::<10>()?)?;
    let second = parse_clock_fixed(head.last_chunk::<9>()?)?;
    let nanos = match tail {
        [b'Z'] => 0,
        [b'.', digits @ .., b'Z'] => parse_fraction(digits)?,
        _ => return None,
    };
    let seconds = days * 86_400 + second;
    seconds.checked_mul(NANOS_PER_SECOND)?.checked_add(nanos).map(Timestamp)
}

/// Days since 1970 of `YYYY-MM-DD`.
#[inline]
fn parse_date_fixed(t: &[u8; 10]) -> Option<i64> {
    let [y0, y1, y2, y3, b'-', m0, m1, b'-', d0, d1] = *t else { return None };
    let year = two_digits(y0, y1)? * 100 + two_digits(y2, y3)?;
    let (month, day) = (two_digits(m0, m1)?, two_digits(d0, d1)?);
    if !(1..=12).contains(&month) || day < 1 || day > days_in_month(year, month) {
        return None;
    }
    Some(days_from_civil(year, month, day))
}

/// Second of the day of `Thh:mm:ss`.
#[inline]
fn parse_clock_fixed(t: &[u8; 9]) -> Option<i64> {
    let [b'T', h0, h1, b':', m0, m1, b':', s0, s1] = *t else { return None };
    let (hour, minute, second) = (two_digits(h0, h1)?, two_digits(m0, m1)?, two_digits(s0, s1)?);
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    Some(hour * 3_600 + minute * 60 + second)
}

#[inline]
fn two_digits(a: u8, b: u8) -> Option<i64> {
    let (a, b) = (a.wrapping_sub(b'0'), b.wrapping_sub(b'0'));
    if a > 9 || b > 9 { None } else { Some(i64::from(a) * 10 + i64::from(b)) }
}

/// Nanoseconds of one to nine digits of fraction.
#[inline]
fn parse_fraction(digits: &[u8]) -> Option<i64> {
    const POWERS: [i64; 10] =
        [1_000_000_000, 100_000_000, 10_000_000, 1_000_000, 100_000, 10_000, 1_000, 100, 10, 1];
    if digits.is_empty() {
        return None;
    }
    let power = POWERS.get(digits.len())?;
    let mut value = 0;
    for b in digits {
        let d = b.wrapping_sub(b'0');
        if d > 9 {
            return None;
        }
        value = value * 10 + i64::from(d);
    }
    Some(value * power)
}

/// Reads a value as RFC 3339: capital `T` and `Z`, or an offset `+hh:mm`; at most nine digits of
/// fraction; no leap second. `None` also outside of the range of [`Timestamp`].
pub(crate) fn parse_rfc3339(text: &[u8]) -> Option<Timestamp> {
    if let Some(time) = parse_utc_fixed(text) {
        return Some(time);
    }
    let (local, zone) = split_rfc3339(text)?;
    let offset = match zone {
        b"Z" => 0,
        [_, _, _, b':', _, _] => parse_offset(zone)?,
        _ => return None,
    };
    from_nanos_i128(local - i128::from(offset) * i128::from(NANOS_PER_SECOND))
}

/// Local nanoseconds since 1970 of a date and time of day, and the text of the zone after it.
fn split_rfc3339(text: &[u8]) -> Option<(i128, &[u8])> {
    let (head, tail) = text.split_first_chunk::<19>()?;
    let days = parse_date_fixed(head.first_chunk::<10>()?)?;
    let second = parse_clock_fixed(head.last_chunk::<9>()?)?;
    let (nanos, zone) = match tail {
        [b'.', rest @ ..] => {
            let digits = rest.iter().take_while(|b| b.is_ascii_digit()).count();
            let (digits, zone) = rest.split_at(digits);
            (parse_fraction(digits)?, zone)
        }
        zone => (0, zone),
    };
    let seconds = i128::from(days * 86_400 + second);
    Some((seconds * i128::from(NANOS_PER_SECOND) + i128::from(nanos), zone))
}

/// Seconds east of UTC of `+hh:mm`, `+hhmm` or `+hh`.
pub(crate) fn parse_offset(text: &[u8]) -> Option<i64> {
    let (sign, hour, minute) = match *text {
        [sign, h0, h1, b':', m0, m1] | [sign, h0, h1, m0, m1] => {
            (sign, two_digits(h0, h1)?, two_digits(m0, m1)?)
        }
        [sign, h0, h1] => (sign, two_digits(h0, h1)?, 0),
        _ => return None,
    };
    if hour > 23 || minute > 59 {
        return None;
    }
    let seconds = hour * 3_600 + minute * 60;
    match sign {
        b'+' => Some(seconds),
        b'-' => Some(-seconds),
        _ => None,
    }
}

/// Reads the time of an entry, in any spelling that is beyond doubt: RFC 3339, also with a blank
/// or small letters, a comma before the fraction, an offset `+hhmm` or `+hh`, no zone at all
/// (then `zone_seconds` east of UTC), more than nine digits of fraction (cut), a leap second
/// (the second after it); or a Unix time in s, ms, us or ns by magnitude.
pub(crate) fn parse_entry_time(text: &[u8], zone_seconds: i32) -> Option<Timestamp> {
    if let Some(time) = parse_utc_fixed(text) {
        return Some(time);
    }
    parse_lenient(text, zone_seconds).or_else(|| parse_unix(text))
}

fn parse_lenient(text: &[u8], zone_seconds: i32) -> Option<Timestamp> {
    let (head, tail) = text.split_first_chunk::<19>()?;
    let days = parse_date_fixed(head.first_chunk::<10>()?)?;
    let mut clock = *head.last_chunk::<9>()?;
    if let [sep @ (b't' | b' '), ..] = &mut clock {
        *sep = b'T';
    }
    let mut leap = 0;
    if let [.., s0 @ b'6', s1 @ b'0'] = &mut clock {
        (*s0, *s1, leap) = (b'5', b'9', 1);
    }
    let second = parse_clock_fixed(&clock)? + leap;
    let (nanos, zone) = match tail {
        [b'.' | b',', rest @ ..] => {
            let digits = rest.iter().take_while(|b| b.is_ascii_digit()).count();
            let (digits, zone) = rest.split_at(digits);
            (parse_fraction(digits.get(..9).unwrap_or(digits))?, zone)
        }
        zone => (0, zone),
    };
    let zone = zone.strip_prefix(b" ").unwrap_or(zone);
    let offset = match zone {
        b"Z" | b"z" | b"UTC" => 0,
        b"" => i64::from(zone_seconds),
        _ => parse_offset(zone)?,
    };
    let seconds = i128::from(days * 86_400 + second - offset);
    from_nanos_i128(seconds * i128::from(NANOS_PER_SECOND) + i128::from(nanos))
}

/// Reads a Unix time: below 2^31 in magnitude seconds, then milliseconds, microseconds,
/// nanoseconds by factors of 1,000. Fractions and exponents are allowed; what lies below a
/// nanosecond is cut.
pub(crate) fn parse_unix(text: &[u8]) -> Option<Timestamp> {
    from_unix(Decimal::parse(text)?)
}

/// The time of a Unix number, its unit guessed from the magnitude as in [`parse_unix`].
pub(crate) fn from_unix(number: Decimal) -> Option<Timestamp> {
    const SECONDS_BELOW: i128 = 1 << 31;
    let magnitude = number.trunc().checked_abs()?;
    let unit: i128 = if magnitude < SECONDS_BELOW {
        1_000_000_000
    } else if magnitude < SECONDS_BELOW * 1_000 {
        1_000_000
    } else if magnitude < SECONDS_BELOW * 1_000_000 {
        1_000
    } else {
        1
    };
    from_nanos_i128(number.checked_mul_int(unit)?.floor())
}

/// The time of so many nanoseconds since 1970, if it is in range.
pub(crate) fn from_nanos_i128(nanos: i128) -> Option<Timestamp> {
    i64::try_from(nanos).ok().map(Timestamp)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ns(text: &str) -> Option<i64> {
        parse_rfc3339(text.as_bytes()).map(Timestamp::as_nanos)
    }

    fn entry(text: &str) -> Option<String> {
        parse_entry_time(text.as_bytes(), 7_200).map(|t| t.to_string())
    }

    #[test]
    fn prints_the_shortest_fraction() {
        for text in [
            "1970-01-01T00:00:00Z",
            "2024-02-29T23:59:59.5Z",
            "2025-01-01T00:00:00.000000001Z",
            "1677-09-21T00:12:43.145224192Z",
            "2262-04-11T23:47:16.854775807Z",
            "1969-12-31T23:59:59.99Z",
        ] {
            let time = parse_rfc3339(text.as_bytes()).unwrap();
            assert_eq!(time.to_string(), text);
            let mut out = b"x".to_vec();
            time.write_to(&mut out);
            assert_eq!(out, format!("x{text}").as_bytes());
        }
        assert_eq!(Timestamp::MIN.to_string(), "1677-09-21T00:12:43.145224192Z");
        assert_eq!(Timestamp::MAX.to_string(), "2262-04-11T23:47:16.854775807Z");
    }

    #[test]
    fn values_are_read_strictly() {
        assert_eq!(ns("1970-01-01T02:00:00.25+02:00"), Some(250_000_000));
        assert_eq!(ns("1969-12-31T22:30:00-01:30"), Some(0));
        for bad in [
            "",
            "2024",
            "2024-02-30T00:00:00Z",
            "2023-02-29T00:00:00Z",
            "2024-13-01T00:00:00Z",
            "2024-01-01T24:00:00Z",
            "2024-01-01T00:00:60Z",
            "2024-01-01T00:00:00",
            "2024-01-01T00:00:00.Z",
            "2024-01-01T00:00:00.1234567890Z",
            "2024-01-01 00:00:00Z",
            "2024-01-01t00:00:00z",
            "2024-01-01T00:00:00+0200",
            "2024-01-01T00:00:00+24:00",
            "2024-01-01T00:00:00Z ",
            "1677-01-01T00:00:00Z",
            "2262-04-11T23:47:16.854775808Z",
            "9999-12-31T23:59:59Z",
        ] {
            assert_eq!(ns(bad), None, "{bad}");
        }
    }

    #[test]
    fn entries_are_read_liberally() {
        let want = Some("2024-01-02T01:04:05.25Z".to_owned());
        for text in [
            "2024-01-02T01:04:05.25Z",
            "2024-01-02t01:04:05.25z",
            "2024-01-02 01:04:05,250",
            "2024-01-02T03:04:05.2500000000000000",
            "2024-01-02T00:04:05.25-0100",
            "2024-01-02 02:04:05.25 +01",
            "1704157445250",
            "1704157445.25",
            "1704157445250000000",
            "1.70415744525e9",
        ] {
            let want = if text.len() == 23 && text.contains(',') {
                Some("2024-01-01T23:04:05.25Z".to_owned())
            } else {
                want.clone()
            };
            assert_eq!(entry(text), want, "{text}");
        }
        assert_eq!(entry("2016-12-31T23:59:60Z"), Some("2017-01-01T00:00:00Z".to_owned()));
        for bad in ["", "yesterday", "12:00", "1e30", "2024-01-02", "0x10"] {
            assert_eq!(entry(bad), None, "{bad}");
        }
    }

    #[test]
    fn unix_units_follow_the_magnitude() {
        let unix = |t: &str| parse_unix(t.as_bytes()).map(Timestamp::as_nanos);
        assert_eq!(unix("2147483647"), Some(2_147_483_647_000_000_000));
        assert_eq!(unix("2147483648"), Some(2_147_483_648_000_000));
        assert_eq!(unix("2147483648000"), Some(2_147_483_648_000_000));
        assert_eq!(unix("2147483648000000"), Some(2_147_483_648_000_000));
        assert_eq!(unix("-1.5"), Some(-1_500_000_000));
        assert_eq!(unix("0.0000000019"), Some(1));
        assert_eq!(unix("9223372036854775807"), Some(i64::MAX));
        assert_eq!(unix("9223372036854775808"), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(500))]

        #[test]
        fn print_and_parse_are_inverse(nanos: i64, shift in 0u32..10) {
            let unit = 10i64.pow(shift);
            let time = Timestamp::from_nanos(nanos / unit * unit);
            let text = time.to_string();
            prop_assert_eq!(parse_rfc3339(text.as_bytes()), Some(time));
            prop_assert_eq!(parse_utc_fixed(text.as_bytes()), Some(time));
            let civil = jiff::Timestamp::from_nanosecond(i128::from(time.as_nanos())).unwrap();
            prop_assert_eq!(civil.to_string(), text);
        }

        #[test]
        fn offsets_shift(nanos in -(1i64 << 61)..1 << 61, minutes in -1439i64..1440) {
            let time = Timestamp::from_nanos(nanos);
            let local = Timestamp::from_nanos(nanos + minutes * 60 * NANOS_PER_SECOND).to_string();
            let (sign, m) = if minutes < 0 { ('-', -minutes) } else { ('+', minutes) };
            let local = local.trim_end_matches('Z');
            let text = format!("{local}{sign}{:02}:{:02}", m / 60, m % 60);
            prop_assert_eq!(parse_rfc3339(text.as_bytes()), Some(time));
        }

        #[test]
        fn no_bytes_panic(text in "[0-9TZtz:.+ -]{0,40}") {
            let _ = (parse_rfc3339(text.as_bytes()), parse_entry_time(text.as_bytes(), 0));
        }
    }
}
