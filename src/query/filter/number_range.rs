//! Ranges of numbers, by exact value.

use std::cmp::Ordering;
use std::ops::RangeInclusive;

use crate::record::{Quantity, parse_canonical_int};

/// A range of numbers; an end that is `None` is open.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct NumberRange {
    min: Option<(Quantity, bool)>,
    max: Option<(Quantity, bool)>,
    ints: RangeInclusive<i64>,
}

impl NumberRange {
    /// The numbers between the ends; each says whether it is inside itself.
    pub(crate) fn new(min: Option<(Quantity, bool)>, max: Option<(Quantity, bool)>) -> NumberRange {
        let below =
            |n: i64| min.as_ref().is_some_and(|min| !is_above(Some(min.0.compare_int(n)), min.1));
        let above =
            |n: i64| max.as_ref().is_some_and(|max| !is_below(Some(max.0.compare_int(n)), max.1));
        let ints = match (first(|n| !below(n)), first(above)) {
            (None, _) | (_, Some(i64::MIN)) => EMPTY,
            (Some(least), None) => least..=i64::MAX,
            (Some(least), Some(past)) => least..=past - 1,
        };
        NumberRange { min, max, ints }
    }

    /// Whether the text is a number in the range.
    #[inline]
    pub(crate) fn contains(&self, text: &[u8]) -> bool {
        if let Some(n) = parse_canonical_int(text) {
            return self.ints.contains(&n);
        }
        let (min, max) = (self.min.as_ref(), self.max.as_ref());
        match (min, max) {
            _ if text.is_empty() => false,
            (None, None) => Quantity::parse(text).is_some(),
            _ => {
                min.is_none_or(|(min, inside)| is_above(min.compare_text(text), *inside))
                    && max.is_none_or(|(max, inside)| is_below(max.compare_text(text), *inside))
            }
        }
    }

    /// The integers of 64 bits in the range.
    pub(crate) fn ints(&self) -> RangeInclusive<i64> {
        self.ints.clone()
    }

    /// Whether it is sure that no number from `low` to `high` is inside.
    pub(crate) fn misses(&self, low: f64, high: f64) -> bool {
        let outside = |end: &Option<(Quantity, bool)>, x: f64, far: Ordering| {
            end.as_ref().is_some_and(|(end, inside)| match end.compare_f64(x) {
                Some(Ordering::Equal) => !inside,
                order => order == Some(far),
            })
        };
        outside(&self.min, high, Ordering::Greater) || outside(&self.max, low, Ordering::Less)
    }

    /// Whether it is sure that all numbers from `low` to `high` are inside.
    pub(crate) fn covers(&self, low: f64, high: f64) -> bool {
        let (min, max) = (self.min.as_ref(), self.max.as_ref());
        min.is_none_or(|(min, inside)| is_above(min.compare_f64(low), *inside))
            && max.is_none_or(|(max, inside)| is_below(max.compare_f64(high), *inside))
    }
}

#[expect(clippy::reversed_empty_ranges, reason = "empty is what is wanted")]
const EMPTY: RangeInclusive<i64> = 1..=0;

/// Whether a number that the lower end compares with in this way is inside.
fn is_above(end: Option<Ordering>, inside: bool) -> bool {
    match end {
        Some(Ordering::Equal) => inside,
        order => order == Some(Ordering::Less),
    }
}

/// Whether a number that the upper end compares with in this way is inside.
fn is_below(end: Option<Ordering>, inside: bool) -> bool {
    is_above(end.map(Ordering::reverse), inside)
}

/// The least integer for which `holds`, which holds for all larger ones as well.
fn first(holds: impl Fn(i64) -> bool) -> Option<i64> {
    let (mut low, mut high) = (i64::MIN, i64::MAX);
    if !holds(high) {
        return None;
    }
    while low < high {
        // The mean rounded down, whatever the signs.
        let middle = (low & high) + ((low ^ high) >> 1);
        if holds(middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    Some(high)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(min: &str, min_inside: bool, max: &str, max_inside: bool) -> NumberRange {
        let end = |text: &str, inside| Quantity::parse(text.as_bytes()).map(|n| (n, inside));
        NumberRange::new(end(min, min_inside), end(max, max_inside))
    }

    #[test]
    fn ranges_know_what_they_miss() {
        let range = range("1", false, "2", true);
        assert!(range.misses(0.0, 1.0) && !range.misses(0.0, 1.1));
        assert!(range.misses(2.1, 3.0) && !range.misses(2.0, 3.0));
        assert!(range.covers(1.5, 2.0) && !range.covers(1.0, 2.0));
        assert!(range.contains(b"2") && !range.contains(b"1") && !range.contains(b"NaN"));
    }

    #[test]
    fn texts_that_look_like_integers_are_read_as_numbers() {
        let range = range("7", true, "1000", true);
        for text in ["7", "007", "+7", "1e3", "1_000", "7.0", "0x10", "1000"] {
            let text = text.as_bytes();
            let number = Quantity::parse(text);
            let inside = number.is_some_and(|_| {
                let (min, max) = (range.min.as_ref().unwrap(), range.max.as_ref().unwrap());
                is_above(min.0.compare_text(text), true) && is_below(max.0.compare_text(text), true)
            });
            assert_eq!(range.contains(text), inside, "{}", String::from_utf8_lossy(text));
        }
        assert!(range.contains(b"007") && range.contains(b"1e3") && !range.contains(b""));
        assert!(!range.contains(b"6") && !range.contains(b"1001") && !range.contains(b"-7"));
    }

    #[test]
    fn integers_are_told_apart_where_floats_are_not() {
        let (a, b) = ("9007199254740993", "9007199254740995");
        assert_eq!(range(a, false, b, false).ints(), 9007199254740994..=9007199254740994);
        assert_eq!(range(a, true, b, true).ints(), 9007199254740993..=9007199254740995);
        assert!(!range(a, true, b, true).covers(9007199254740992.0, 9007199254740994.0));
        for (min, max, want) in [
            ("", "", i64::MIN..=i64::MAX),
            ("1e30", "", EMPTY),
            ("", "-1e30", EMPTY),
            ("-0.5", "0.5", 0..=0),
            ("1e-400", "1.5", 1..=1),
            ("-inf", "-9223372036854775808", i64::MIN..=i64::MIN),
            ("9223372036854775807", "inf", i64::MAX..=i64::MAX),
        ] {
            assert_eq!(range(min, true, max, true).ints(), want, "{min} to {max}");
        }
        assert!(range("1", false, "2", false).ints().is_empty());
    }
}
