//! The total order of values, the one that every sort, minimum, maximum and quantile uses.
//!
//! Values fall into classes, in this order: empty; numbers of any syntax, by exact value; RFC 3339
//! times; IPv4 addresses; all other text, in natural order. The class of a value depends on that
//! value alone, and within a class the order is that of a key, so the whole is a total preorder:
//! values that spell the same number, time or address differently compare equal, and callers go
//! on with their next key (or take the bytewise smaller spelling).

use std::borrow::Cow;
use std::cmp::Ordering;

use super::number::{Number, may_be_quantity, parse_ipv4, parse_numeric};
use super::parse_rfc3339;

/// Compares two values in the total order.
pub(crate) fn cmp_values(a: &[u8], b: &[u8]) -> Ordering {
    if a == b {
        return Ordering::Equal;
    }
    SortKey::of(a).compare(a, SortKey::of(b), b)
}

/// Compares in the total order, and values of equal rank by their bytes: a strict order, by which
/// the smaller spelling of the least value comes first.
pub(crate) fn cmp_values_then_bytes(a: &[u8], b: &[u8]) -> Ordering {
    cmp_values(a, b).then_with(|| a.cmp(b))
}

/// Classes in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Class {
    Empty,
    Number,
    Time,
    Ipv4,
    Text,
}

/// The place of a value in the order, computed once: two keys settle most comparisons, and the
/// texts the rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SortKey {
    class: Class,
    /// Equal bits of two keys that are both whole mean equal values.
    whole: bool,
    /// Within a class never decreases with the value.
    bits: u64,
}

impl SortKey {
    /// The key of a value.
    pub(crate) fn of(value: &[u8]) -> SortKey {
        if value.is_empty() {
            return SortKey { class: Class::Empty, whole: true, bits: 0 };
        }
        if may_be_quantity(value) {
            if let Some(number) = parse_numeric(value) {
                let whole = number.is_exact_f64(value);
                return SortKey { class: Class::Number, whole, bits: f64_bits(number.to_f64()) };
            }
            if let Some(time) = parse_rfc3339(value) {
                let bits = time.as_nanos().cast_unsigned() ^ 1 << 63;
                return SortKey { class: Class::Time, whole: true, bits };
            }
            if let Some(address) = parse_ipv4(value) {
                return SortKey { class: Class::Ipv4, whole: true, bits: u64::from(address) };
            }
        }
        SortKey { class: Class::Text, whole: false, bits: text_bits(value) }
    }

    /// Compares as far as the keys tell; `None` if the texts must decide.
    #[inline]
    pub(crate) fn compare_keys(self, other: SortKey) -> Option<Ordering> {
        let order = self.class.cmp(&other.class).then(self.bits.cmp(&other.bits));
        match order {
            Ordering::Equal if self.whole && other.whole => Some(order),
            Ordering::Equal => None,
            _ => Some(order),
        }
    }

    /// Compares the value `a`, whose key this is, with the value `b` of key `other`.
    #[inline]
    pub(crate) fn compare(self, a: &[u8], other: SortKey, b: &[u8]) -> Ordering {
        match self.compare_keys(other) {
            Some(order) => order,
            None if self.class == Class::Text => cmp_natural(a, b),
            None => cmp_numbers(a, b),
        }
    }
}

/// Maps floats to integers of the same order; both zeros are equal. Not for NaN.
fn f64_bits(x: f64) -> u64 {
    // Adding zero turns the negative zero into the positive one.
    let bits = (x + 0.0).to_bits();
    if bits >> 63 == 1 { !bits } else { bits | 1 << 63 }
}

/// The first eight tokens of a text as ordered bytes: a run of digits is only marked, and nothing
/// is told of what follows it.
fn text_bits(text: &[u8]) -> u64 {
    let mut bits = 0u64;
    let mut shift = 64;
    for b in text.iter().take(8) {
        shift -= 8;
        if b.is_ascii_digit() {
            return bits | 1 << shift;
        }
        // The end is 0, a digit 1; other bytes, 246 in number, follow from 2 on.
        let rank = if *b < b'0' { b + 2 } else { b - 8 };
        bits |= u64::from(rank) << shift;
    }
    bits
}

/// Compares by exact value two texts that are numbers.
fn cmp_numbers(a: &[u8], b: &[u8]) -> Ordering {
    match (parse_numeric(a), parse_numeric(b)) {
        (Some(x), Some(y)) => cmp_spelled_numbers(a, x, b, y),
        _ => Ordering::Equal,
    }
}

/// Compares by exact value the numbers `x` and `y` that the texts `a` and `b` spell.
#[inline]
pub(super) fn cmp_spelled_numbers(a: &[u8], x: Number, b: &[u8], y: Number) -> Ordering {
    match (x, y) {
        (Number::Decimal(x), Number::Decimal(y)) => x.cmp(&y),
        _ => Digits::of(a, x).cmp(&Digits::of(b, y)),
    }
}

/// Any number: its sign, the place of its first digit, and its digits without zeros at both ends.
#[derive(Debug, PartialEq, Eq)]
struct Digits {
    /// -1, 0 or 1.
    sign: i8,
    /// The number is `0.digits * 10^exponent`; infinite numbers have the largest.
    exponent: i64,
    digits: Vec<u8>,
}

impl Digits {
    fn of(text: &[u8], number: Number) -> Digits {
        match number {
            Number::Decimal(d) => {
                let spelled = format!("{}e-{}", d.mantissa(), d.scale());
                Digits::of_plain(spelled.as_bytes())
            }
            Number::Wide(x) if number.is_infinite(text) => {
                let sign = if x > 0.0 { 1 } else { -1 };
                Digits { sign, exponent: i64::MAX, digits: Vec::new() }
            }
            Number::Wide(_) => Digits::of_plain(text),
        }
    }

    /// The digits of a plain decimal, which the text is known to be.
    fn of_plain(text: &[u8]) -> Digits {
        let text: Cow<'_, str> = String::from_utf8_lossy(text);
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((&text, "0"));
        let (before, after) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let only_digits = |t: &str| t.bytes().filter(u8::is_ascii_digit).collect::<Vec<u8>>();
        let mut digits = only_digits(before);
        let point = i64::try_from(digits.len()).unwrap_or(i64::MAX);
        digits.extend(only_digits(after));
        let leading = digits.iter().take_while(|d| **d == b'0').count();
        digits.drain(..leading);
        digits.truncate(digits.iter().rposition(|d| *d != b'0').map_or(0, |i| i + 1));
        if digits.is_empty() {
            return Digits { sign: 0, exponent: 0, digits };
        }
        let exponent = exponent.parse::<i64>().unwrap_or(0);
        let leading = i64::try_from(leading).unwrap_or(i64::MAX);
        let sign = if mantissa.starts_with('-') { -1 } else { 1 };
        Digits { sign, exponent: point - leading + exponent, digits }
    }
}

impl Ord for Digits {
    fn cmp(&self, other: &Digits) -> Ordering {
        let magnitude =
            || self.exponent.cmp(&other.exponent).then_with(|| self.digits.cmp(&other.digits));
        self.sign.cmp(&other.sign).then_with(|| match self.sign {
            1 => magnitude(),
            -1 => magnitude().reverse(),
            _ => Ordering::Equal,
        })
    }
}

impl PartialOrd for Digits {
    fn partial_cmp(&self, other: &Digits) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Natural text order: a text is a sequence of tokens, runs of ASCII digits and single other
/// bytes. A run sorts before another byte; runs compare as numbers, equal ones by length; a text
/// that ends comes first. Only equal texts compare equal.
pub(crate) fn cmp_natural(a: &[u8], b: &[u8]) -> Ordering {
    let common = a.iter().zip(b).take_while(|(x, y)| x == y).count();
    // The difference may lie inside a run: its whole run decides.
    let shared = a.get(..common).unwrap_or(&[]);
    let run_before = shared.iter().rev().take_while(|b| b.is_ascii_digit()).count();
    let a = a.get(common - run_before..).unwrap_or(&[]);
    let b = b.get(common - run_before..).unwrap_or(&[]);
    let (a_run, b_run) = (run_of(a), run_of(b));
    match (a_run.is_empty(), b_run.is_empty()) {
        (false, false) => {
            let order = cmp_runs(a_run, b_run);
            order.then_with(|| {
                // Equal runs are equal bytes, so the texts differ after them, in plain bytes.
                let a = a.get(a_run.len()..).unwrap_or(&[]);
                let b = b.get(b_run.len()..).unwrap_or(&[]);
                a.cmp(b)
            })
        }
        (false, true) if !b.is_empty() => Ordering::Less,
        (true, false) if !a.is_empty() => Ordering::Greater,
        _ => a.cmp(b),
    }
}

fn run_of(text: &[u8]) -> &[u8] {
    let len = text.iter().take_while(|b| b.is_ascii_digit()).count();
    text.get(..len).unwrap_or(&[])
}

fn cmp_runs(a: &[u8], b: &[u8]) -> Ordering {
    let significant = |run: &[u8]| run.iter().position(|d| *d != b'0').unwrap_or(run.len());
    let x = a.get(significant(a)..).unwrap_or(&[]);
    let y = b.get(significant(b)..).unwrap_or(&[]);
    x.len().cmp(&y.len()).then_with(|| x.cmp(y)).then_with(|| a.len().cmp(&b.len()))
}

#[cfg(test)]
mod tests;
