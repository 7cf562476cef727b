//! Durations: `1w2d3h4m5.6s`.

use super::decimal::Decimal;
use super::number::scan_number;

/// Units and their nanoseconds; a text that is a prefix of another comes after it.
const UNITS: [(&[u8], i128); 11] = [
    (b"ns", 1),
    (b"us", 1_000),
    ("\u{b5}s".as_bytes(), 1_000),
    ("\u{3bc}s".as_bytes(), 1_000),
    (b"ms", 1_000_000),
    (b"s", 1_000_000_000),
    (b"m", 60_000_000_000),
    (b"h", 3_600_000_000_000),
    (b"d", 86_400_000_000_000),
    (b"w", 604_800_000_000_000),
    (b"y", 31_536_000_000_000_000),
];

/// Reads a duration as nanoseconds: numbers each with a unit of `ns us ms s m h d w y` (also with
/// either micro sign), such as `1h5m` or `-1.5s`; a year has 365 days. `None` for other texts.
pub(crate) fn parse_duration(text: &[u8]) -> Option<Decimal> {
    let (negative, mut rest) = match text {
        [b'-', rest @ ..] => (true, rest),
        _ => (false, text),
    };
    if rest.is_empty() {
        return None;
    }
    let mut total = Decimal::ZERO;
    while !rest.is_empty() {
        let (number, tail) = scan_number(rest)?;
        let (unit, nanos) = UNITS.iter().find(|(unit, _)| tail.starts_with(unit))?;
        total = total.checked_add(number.checked_mul_int(*nanos)?)?;
        rest = tail.get(unit.len()..)?;
    }
    Some(if negative { total.negated() } else { total })
}

/// Reads a duration as whole nanoseconds, cut towards zero.
pub(crate) fn parse_duration_nanos(text: &[u8]) -> Option<i64> {
    i64::try_from(parse_duration(text)?.trunc()).ok()
}

/// Appends a duration: from a second on weeks, days, hours, minutes and seconds with a fraction
/// (`1w2d3h4m5.6s`), below it `123ms456us789ns` with the micro sign; zero is `0`.
pub(crate) fn write_duration(out: &mut Vec<u8>, nanos: i64) {
    const SECOND: u64 = 1_000_000_000;
    if nanos == 0 {
        out.push(b'0');
        return;
    }
    if nanos < 0 {
        out.push(b'-');
    }
    let mut rest = nanos.unsigned_abs();
    let units: &[(u64, &str)] = if rest >= SECOND {
        &[(604_800, "w"), (86_400, "d"), (3_600, "h"), (60, "m")]
    } else {
        &[]
    };
    for (seconds, unit) in units {
        let size = seconds * SECOND;
        write_part(out, rest / size, unit);
        rest %= size;
    }
    if units.is_empty() {
        write_part(out, rest / 1_000_000, "ms");
        write_part(out, rest / 1_000 % 1_000, "\u{b5}s");
        write_part(out, rest % 1_000, "ns");
    } else if rest > 0 {
        out.extend_from_slice((rest / SECOND).to_string().as_bytes());
        let fraction = rest % SECOND;
        if fraction > 0 {
            let digits = format!(".{fraction:09}");
            out.extend_from_slice(digits.trim_end_matches('0').as_bytes());
        }
        out.push(b's');
    }
}

fn write_part(out: &mut Vec<u8>, count: u64, unit: &str) {
    if count > 0 {
        out.extend_from_slice(count.to_string().as_bytes());
        out.extend_from_slice(unit.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn print(nanos: i64) -> String {
        let mut out = Vec::new();
        write_duration(&mut out, nanos);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn reads_every_unit() {
        let ns = |t: &str| parse_duration_nanos(t.as_bytes());
        assert_eq!(ns("1w2d3h4m5.6s"), Some(788_645_600_000_000));
        assert_eq!(ns("1y"), Some(365 * 86_400_000_000_000));
        assert_eq!(ns("15\u{b5}s"), Some(15_000));
        assert_eq!(ns("15\u{3bc}s2us3ns"), Some(17_003));
        assert_eq!(ns("-1.5ms"), Some(-1_500_000));
        assert_eq!(ns("0s"), Some(0));
        for bad in ["", "-", "5", "s", "1.s", ".5s", "1s ", "1s-1m", "+1s", "1 s", "1S", "1_0s"] {
            assert_eq!(ns(bad), None, "{bad}");
        }
        assert_eq!(parse_duration(b"1.5ns"), Decimal::new(15, 1));
        assert_eq!(ns("999999999999y"), None);
    }

    #[test]
    fn prints_from_weeks_to_nanoseconds() {
        assert_eq!(print(0), "0");
        assert_eq!(print(788_645_600_000_000), "1w2d3h4m5.6s");
        assert_eq!(print(123_456_789), "123ms456\u{b5}s789ns");
        assert_eq!(print(1_000), "1\u{b5}s");
        assert_eq!(print(129_600_000_000_000), "1d12h");
        assert_eq!(print(60_500_000_000), "1m0.5s");
        assert_eq!(print(-1_000_000_001), "-1.000000001s");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1_000))]

        #[test]
        fn print_and_parse_are_inverse(nanos: i64, shift in 0u32..63) {
            let nanos = nanos >> shift;
            if nanos != 0 {
                prop_assert_eq!(parse_duration_nanos(print(nanos).as_bytes()), Some(nanos));
            }
        }
    }
}
