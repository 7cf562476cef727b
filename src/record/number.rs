//! Numbers in texts: every syntax that filters, math, sums and the value order read as a number.

pub(crate) use super::decimal::Decimal;
use super::duration::parse_duration;
use super::parse_rfc3339;

/// A number read from a text.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Number {
    /// Exact.
    Decimal(Decimal),
    /// A decimal of too many digits or too large an exponent for [`Decimal`], rounded to the
    /// nearest `f64`; or an infinity. Never NaN.
    Wide(f64),
}

impl Number {
    /// The nearest `f64`.
    pub(crate) fn to_f64(self) -> f64 {
        match self {
            Number::Decimal(d) => d.to_f64(),
            Number::Wide(x) => x,
        }
    }

    /// Whether [`to_f64`](Number::to_f64) is known to lose nothing of the number that `text`
    /// spells.
    pub(crate) fn is_exact_f64(self, text: &[u8]) -> bool {
        match self {
            Number::Decimal(d) => d.is_exact_f64(),
            Number::Wide(_) => self.is_infinite(text),
        }
    }

    /// Whether `text` names infinity; a decimal may be too large for an `f64` and yet finite.
    pub(crate) fn is_infinite(self, text: &[u8]) -> bool {
        matches!(self, Number::Wide(x) if x.is_infinite()) && !text.iter().any(u8::is_ascii_digit)
    }
}

/// Reads the canonical text of an integer: exactly what printing the `i64` gives.
#[inline]
pub(crate) fn parse_canonical_int(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        _ => (false, text),
    };
    match digits {
        [] | [b'0', _, ..] => return None,
        [b'0'] if negative => return None,
        _ if digits.len() > 19 => return None,
        _ => {}
    }
    let mut value = 0u64;
    for b in digits {
        let d = b.wrapping_sub(b'0');
        if d > 9 {
            return None;
        }
        // At most 19 digits stay below 10^19, which fits.
        value = value * 10 + u64::from(d);
    }
    if negative { 0i64.checked_sub_unsigned(value) } else { i64::try_from(value).ok() }
}

/// The value of a text where a number is wanted (comparison filters, math): a decimal, duration
/// (ns), byte size, another number syntax, an RFC 3339 time (ns since 1970) or an IPv4 address.
pub(crate) fn parse_quantity(text: &[u8]) -> Option<Number> {
    if !may_be_quantity(text) {
        return None;
    }
    if let Some(number) = parse_numeric(text) {
        return Some(number);
    }
    let time = parse_rfc3339(text).map(|t| i128::from(t.as_nanos()));
    let integer = time.or_else(|| parse_ipv4(text).map(i128::from))?;
    Some(Number::Decimal(Decimal::from_int(integer)))
}

/// [`parse_quantity`] as the nearest `f64`. The text `-0` is negative zero.
pub(crate) fn parse_number(text: &[u8]) -> Option<f64> {
    let value = parse_quantity(text)?.to_f64();
    Some(if value == 0.0 && text.starts_with(b"-") { -0.0 } else { value })
}

/// The value of a text of a number syntax: decimals, durations, sizes, integers with a prefix,
/// infinities; not times and addresses. These take part in sums and form one class of the value
/// order.
pub(crate) fn parse_numeric(text: &[u8]) -> Option<Number> {
    if !may_be_quantity(text) {
        return None;
    }
    let exact = |d: Option<Decimal>| d.map(Number::Decimal);
    match *text.last()? {
        b'0'..=b'9' | b'.' => parse_plain(text).or_else(|| exact(parse_prefixed(text))),
        b's' | b'm' | b'h' | b'w' => exact(parse_duration(text)),
        b'd' => exact(parse_duration(text).or_else(|| parse_prefixed(text))),
        b'y' => exact(parse_duration(text)).or_else(|| parse_infinity(text)),
        b'B' => exact(parse_size(text).or_else(|| parse_prefixed(text))),
        b'K' | b'M' | b'G' | b'T' | b'i' => exact(parse_size(text)),
        b'f' | b'F' | b'Y' => exact(parse_prefixed(text)).or_else(|| parse_infinity(text)),
        b'a'..=b'e' | b'A' | b'C'..=b'E' => exact(parse_prefixed(text)),
        _ => None,
    }
}

/// Whether the first byte leaves a chance; most text fails here.
#[inline]
pub(crate) fn may_be_quantity(text: &[u8]) -> bool {
    matches!(text.first(), Some(b'0'..=b'9' | b'-' | b'+' | b'.' | b'i' | b'I'))
}

/// What the digits of an unsigned decimal say.
struct Scan {
    mantissa: u128,
    /// Digits after the point.
    fraction: u32,
    /// The mantissa has more digits than fit.
    overflow: bool,
    underscore: bool,
    /// There is no digit before or after the point.
    bare_point: bool,
}

/// Reads digits with at most one point; `_` may stand between two digits.
fn scan_digits(text: &[u8]) -> Option<(Scan, &[u8])> {
    let mut scan =
        Scan { mantissa: 0, fraction: 0, overflow: false, underscore: false, bare_point: false };
    let mut rest = text;
    let before = scan.run(&mut rest)?;
    let mut after = 0;
    if let [b'.', tail @ ..] = rest {
        rest = tail;
        after = scan.run(&mut rest)?;
        scan.bare_point = before == 0 || after == 0;
    }
    scan.fraction = after;
    if before + after == 0 { None } else { Some((scan, rest)) }
}

impl Scan {
    /// Takes one run of digits and gives their number.
    fn run(&mut self, rest: &mut &[u8]) -> Option<u32> {
        let mut count = 0u32;
        let mut previous_is_digit = false;
        while let [b, tail @ ..] = *rest {
            let d = b.wrapping_sub(b'0');
            if d <= 9 {
                self.push(d);
                count = count.checked_add(1)?;
                previous_is_digit = true;
            } else if *b == b'_' && previous_is_digit && matches!(tail, [b'0'..=b'9', ..]) {
                self.underscore = true;
                previous_is_digit = false;
            } else {
                break;
            }
            *rest = tail;
        }
        Some(count)
    }

    #[inline]
    fn push(&mut self, digit: u8) {
        // Below this bound ten times the value and a digit fit in an i128.
        const BOUND: u128 = (i128::MAX as u128 - 9) / 10;
        if self.mantissa <= BOUND {
            self.mantissa = self.mantissa * 10 + u128::from(digit);
        } else {
            self.overflow = true;
        }
    }

    fn decimal(&self, negative: bool, exponent: i64) -> Option<Decimal> {
        if self.overflow {
            return None;
        }
        let magnitude = i128::try_from(self.mantissa).ok()?;
        let mantissa = if negative { -magnitude } else { magnitude };
        if mantissa == 0 {
            return Some(Decimal::ZERO);
        }
        let scale = i64::from(self.fraction) - exponent;
        match u32::try_from(scale) {
            Ok(scale) => Decimal::new(mantissa, scale),
            Err(_) => {
                let power = 10i128.checked_pow(u32::try_from(-scale).ok()?)?;
                Some(Decimal::from_int(mantissa.checked_mul(power)?))
            }
        }
    }
}

/// Exponents beyond this are not read as numbers.
const MAX_EXPONENT: i64 = 99_999;

/// Reads a decimal with optional sign, `_` between digits, point and exponent.
pub(crate) fn parse_plain(text: &[u8]) -> Option<Number> {
    let (negative, unsigned) = split_sign(text);
    let (scan, rest) = scan_digits(unsigned)?;
    let exponent = match rest {
        [] => 0,
        [b'e' | b'E', digits @ ..] if !scan.underscore => parse_exponent(digits)?,
        _ => return None,
    };
    if let Some(decimal) = scan.decimal(negative, exponent) {
        return Some(Number::Decimal(decimal));
    }
    let clean: String = text.iter().filter(|b| **b != b'_').map(|b| char::from(*b)).collect();
    clean.parse().ok().map(Number::Wide)
}

fn parse_exponent(text: &[u8]) -> Option<i64> {
    let (negative, digits) = split_sign(text);
    if digits.is_empty() {
        return None;
    }
    let mut value = 0i64;
    for b in digits {
        let d = b.wrapping_sub(b'0');
        if d > 9 {
            return None;
        }
        value = value * 10 + i64::from(d);
        if value > MAX_EXPONENT {
            return None;
        }
    }
    Some(if negative { -value } else { value })
}

fn split_sign(text: &[u8]) -> (bool, &[u8]) {
    match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    }
}

/// Reads `12` or `1.5` at the start of a text that goes on with a unit.
pub(crate) fn scan_number(text: &[u8]) -> Option<(Decimal, &[u8])> {
    let (scan, rest) = scan_digits(text)?;
    if scan.underscore || scan.bare_point {
        return None;
    }
    Some((scan.decimal(false, 0)?, rest))
}

/// Reads a byte size: a number with `B`, with `K M G T` (powers of 1,000, `B` optional) or with
/// `Ki Mi Gi Ti` (powers of 1,024, `B` optional). The result is in bytes, possibly fractional.
pub(crate) fn parse_size(text: &[u8]) -> Option<Decimal> {
    let (negative, unsigned) = match text {
        [b'-', rest @ ..] => (true, rest),
        _ => (false, text),
    };
    let (number, unit) = scan_number(unsigned)?;
    let bytes: i128 = match unit {
        b"B" => 1,
        b"K" | b"KB" => 1_000,
        b"M" | b"MB" => 1_000_000,
        b"G" | b"GB" => 1_000_000_000,
        b"T" | b"TB" => 1_000_000_000_000,
        b"Ki" | b"KiB" => 1 << 10,
        b"Mi" | b"MiB" => 1 << 20,
        b"Gi" | b"GiB" => 1 << 30,
        b"Ti" | b"TiB" => 1 << 40,
        _ => return None,
    };
    let size = number.checked_mul_int(bytes)?;
    Some(if negative { size.negated() } else { size })
}

/// Reads an integer with a prefix: `0x1F`, `0b101`, `0o17`, a sign before it, `_` between digits.
fn parse_prefixed(text: &[u8]) -> Option<Decimal> {
    let (negative, unsigned) = split_sign(text);
    let (radix, digits) = match unsigned {
        [b'0', b'x' | b'X', digits @ ..] => (16, digits),
        [b'0', b'o' | b'O', digits @ ..] => (8, digits),
        [b'0', b'b' | b'B', digits @ ..] => (2, digits),
        _ => return None,
    };
    let mut value = 0i128;
    // An underscore may follow the prefix.
    let mut previous_is_digit = true;
    for b in digits {
        if *b == b'_' && previous_is_digit {
            previous_is_digit = false;
            continue;
        }
        let digit = char::from(*b).to_digit(radix)?;
        value = value.checked_mul(i128::from(radix))?.checked_add(i128::from(digit))?;
        previous_is_digit = true;
    }
    if digits.is_empty() || !previous_is_digit {
        return None;
    }
    Some(Decimal::from_int(if negative { -value } else { value }))
}

/// Reads `inf` or `infinity` in any case, with an optional sign.
fn parse_infinity(text: &[u8]) -> Option<Number> {
    let (negative, name) = split_sign(text);
    if !name.eq_ignore_ascii_case(b"inf") && !name.eq_ignore_ascii_case(b"infinity") {
        return None;
    }
    Some(Number::Wide(if negative { f64::NEG_INFINITY } else { f64::INFINITY }))
}

/// Reads an IPv4 address: four numbers up to 255 of one to three digits, zeros in front allowed.
#[inline]
pub(crate) fn parse_ipv4(text: &[u8]) -> Option<u32> {
    if text.len() > 15 {
        return None;
    }
    let mut address = 0u32;
    let mut parts = 0;
    for part in text.split(|b| *b == b'.') {
        if part.is_empty() || part.len() > 3 {
            return None;
        }
        let mut value = 0u32;
        for b in part {
            let d = b.wrapping_sub(b'0');
            if d > 9 {
                return None;
            }
            value = value * 10 + u32::from(d);
        }
        if value > 255 {
            return None;
        }
        parts += 1;
        if parts > 4 {
            return None;
        }
        address = address << 8 | value;
    }
    if parts == 4 { Some(address) } else { None }
}

/// Appends a float as the shortest decimal that reads back the same, without exponent; `NaN`,
/// `+Inf`, `-Inf`, `-0`.
pub(crate) fn write_f64(out: &mut Vec<u8>, value: f64) {
    use std::io::Write;
    if value.is_nan() {
        out.extend_from_slice(b"NaN");
    } else if value.is_infinite() {
        out.extend_from_slice(if value > 0.0 { b"+Inf" } else { b"-Inf" });
    } else {
        // Writing to a vector does not fail.
        let _ = write!(out, "{value}");
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn value(text: &str) -> Option<f64> {
        parse_number(text.as_bytes())
    }

    #[test]
    fn every_syntax_has_its_value() {
        for (text, want) in [
            ("0", 0.0),
            ("-12", -12.0),
            ("007", 7.0),
            ("1_000", 1_000.0),
            ("1_0.2_5", 10.25),
            ("1.10", 1.1),
            ("1h5m", 3_900e9),
            ("-1.5s", -1.5e9),
            ("10KB", 10_000.0),
            ("1.5MiB", 1_572_864.0),
            ("7B", 7.0),
            ("-2Ki", -2_048.0),
            ("1T", 1e12),
            ("1e3", 1_000.0),
            ("1E+3", 1_000.0),
            ("+1", 1.0),
            (".5", 0.5),
            ("1.", 1.0),
            ("inf", f64::INFINITY),
            ("-Infinity", f64::NEG_INFINITY),
            ("0x1F", 31.0),
            ("-0xb", -11.0),
            ("0b101", 5.0),
            ("0o17", 15.0),
            ("0x_f_f", 255.0),
            ("1970-01-01T00:00:01.5Z", 1.5e9),
            ("0.0.1.2", 258.0),
            ("1e400", f64::INFINITY),
            ("1e-400", 0.0),
            ("123456789012345678901234567890123456789012", 1.2345678901234568e41),
        ] {
            assert_eq!(value(text), Some(want), "{text}");
        }
        assert!(value("-0").unwrap().is_sign_negative());
    }

    #[test]
    fn other_texts_have_none() {
        for text in [
            "",
            "-",
            "+",
            ".",
            "1,000",
            "12px",
            "100%",
            "1 2",
            "\u{663}",
            "v1.2",
            "1.2.3",
            "NaN",
            "1/2",
            "_1",
            "1_",
            "1__0",
            "1_000e3",
            "1e",
            "1e+",
            "1e100000",
            "0x",
            "0x_",
            "0xg",
            "0x1_",
            "1.2.3.4.5",
            "1.2.3.256",
            "1.2.3.",
            "1.2.3.0004",
            "e5",
            "--1",
            "+-1",
            "1KiBB",
            "1 KB",
            "info",
            "in",
            "i",
            "Inf1",
            "1kb",
            "08:15",
            "1.5",
            "2024-01-01",
        ] {
            let want = if text == "1.5" { Some(1.5) } else { None };
            assert_eq!(value(text), want, "{text}");
        }
    }

    #[test]
    fn addresses_and_times_are_no_numerics() {
        assert_eq!(parse_numeric(b"1.2.3.4"), None);
        assert_eq!(parse_numeric(b"1970-01-01T00:00:00Z"), None);
        assert_eq!(parse_ipv4(b"192.168.001.1"), Some(0xC0A8_0101));
    }

    #[test]
    fn canonical_integers_print_back() {
        for text in ["0", "7", "-7", "9223372036854775807", "-9223372036854775808", "100"] {
            assert_eq!(parse_canonical_int(text.as_bytes()).unwrap().to_string(), text);
        }
        for text in ["", "-", "-0", "00", "01", "+1", "1.0", "9223372036854775808", "1e3", " 1"] {
            assert_eq!(parse_canonical_int(text.as_bytes()), None, "{text}");
        }
        assert_eq!(parse_canonical_int(b"-9223372036854775809"), None);
        assert_eq!(parse_canonical_int(b"99999999999999999999"), None);
    }

    #[test]
    fn floats_print_without_exponent() {
        let print = |x: f64| {
            let mut out = Vec::new();
            write_f64(&mut out, x);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(print(0.000_000_001), "0.000000001");
        assert_eq!(print(1e22), "10000000000000000000000");
        assert_eq!(print(f64::NAN), "NaN");
        assert_eq!(print(f64::INFINITY), "+Inf");
        assert_eq!(print(f64::NEG_INFINITY), "-Inf");
        assert_eq!(print(-0.0), "-0");
        assert_eq!(print(0.1 + 0.2), "0.30000000000000004");
        assert_eq!(print(-9.0), "-9");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(500))]

        #[test]
        fn plain_numbers_are_the_nearest_f64(
            text in "[+-]?[0-9]{0,45}(\\.[0-9]{0,45})?([eE][+-]?[0-9]{1,3})?"
        ) {
            let want = text.parse::<f64>().ok();
            prop_assert_eq!(parse_plain(text.as_bytes()).map(Number::to_f64), want);
        }

        #[test]
        fn canonical_means_printed(text in "-?[0-9]{1,20}", number: i64) {
            prop_assert_eq!(parse_canonical_int(number.to_string().as_bytes()), Some(number));
            let want = text.parse::<i64>().ok().filter(|n| n.to_string() == text);
            prop_assert_eq!(parse_canonical_int(text.as_bytes()), want);
        }

        #[test]
        fn no_text_panics(text in "[0-9a-zA-Z_.+:\u{b5}-]{0,24}") {
            let _ = (parse_number(text.as_bytes()), parse_numeric(text.as_bytes()));
        }
    }
}
