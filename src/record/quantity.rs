//! Numbers as comparison filters read them, compared by exact value whatever their syntax.

use std::cmp::Ordering;

use super::number::{Number, parse_quantity};
use super::value_order::cmp_spelled_numbers;

/// A number together with its spelling, which says what [`Number`] had to round.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Quantity {
    text: Box<[u8]>,
    number: Number,
    nearest: f64,
}

impl Quantity {
    /// Reads a decimal, duration, size, other number syntax, RFC 3339 time or IPv4 address.
    pub(crate) fn parse(text: &[u8]) -> Option<Quantity> {
        let number = parse_quantity(text)?;
        Some(Quantity { text: Box::from(text), number, nearest: number.to_f64() })
    }

    /// Compares with another text; `None` if it is no number.
    #[inline]
    pub(crate) fn compare_text(&self, other: &[u8]) -> Option<Ordering> {
        let number = parse_quantity(other)?;
        Some(cmp_spelled_numbers(&self.text, self.number, other, number))
    }

    /// Compares with an integer.
    pub(crate) fn compare_int(&self, other: i64) -> Ordering {
        let other = super::Decimal::from_int(other.into());
        cmp_spelled_numbers(&self.text, self.number, b"", Number::Decimal(other))
    }

    /// Compares with a number that is exactly an `f64`; `None` if that is too coarse to tell.
    pub(crate) fn compare_f64(&self, other: f64) -> Option<Ordering> {
        match self.nearest.partial_cmp(&other)? {
            Ordering::Equal if !self.number.is_exact_f64(&self.text) => None,
            order => Some(order),
        }
    }

    /// The closest two `f64` known to enclose the number; equal if one of them is the number.
    pub(crate) fn enclosing_f64(&self) -> (f64, f64) {
        if self.number.is_exact_f64(&self.text) {
            return (self.nearest, self.nearest);
        }
        (self.nearest.next_down(), self.nearest.next_up())
    }
}

/// Compares two texts by exact value; `None` if one of them is no number.
pub(crate) fn cmp_quantities(a: &[u8], b: &[u8]) -> Option<Ordering> {
    Some(cmp_spelled_numbers(a, parse_quantity(a)?, b, parse_quantity(b)?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn quantity(text: &str) -> Quantity {
        Quantity::parse(text.as_bytes()).unwrap()
    }

    /// Numbers in ascending order; those of one line are equal.
    const ASCENDING: [&[&str]; 16] = [
        &["-inf"],
        &["-1e400"],
        &["-9007199254740993"],
        &["-9007199254740992"],
        &["-1e-400"],
        &["0", "-0", "0.0", "0s"],
        &["1e-400"],
        &["0.1", "1e-1"],
        &["0.10000000000000000000000000000000000000000000001"],
        &["9007199254740992"],
        &["9007199254740993", "9007199254740993.0"],
        &["9223372036854775807"],
        &["9223372036854775808"],
        &["123456789012345678901234567890123456789012"],
        &["1e400", "10e399"],
        &["inf", "+Infinity"],
    ];

    #[test]
    fn the_exact_value_decides() {
        for (i, low) in ASCENDING.iter().enumerate() {
            for (j, high) in ASCENDING.iter().enumerate() {
                for (a, b) in low.iter().flat_map(|a| high.iter().map(move |b| (a, b))) {
                    let order = quantity(a).compare_text(b.as_bytes());
                    assert_eq!(order, Some(i.cmp(&j)), "{a} and {b}");
                }
            }
        }
    }

    #[test]
    fn times_and_addresses_count_as_integers() {
        let (a, b) = ("2024-01-01T00:00:00.000000001Z", "2024-01-01T00:00:00.000000002Z");
        assert_eq!(cmp_quantities(a.as_bytes(), b.as_bytes()), Some(Ordering::Less));
        assert_eq!(quantity("0.0.1.2").compare_int(258), Ordering::Equal);
        assert_eq!(cmp_quantities(b"1", b"x"), None);
    }

    proptest! {
        #[test]
        fn what_a_float_tells_is_true(n: i64, m in -2_000i64..2_000) {
            let number = quantity(&n.to_string());
            let (low, high) = number.enclosing_f64();
            let whole = |x: f64| format!("{x:.0}").parse::<i128>().unwrap();
            prop_assert!(whole(low) <= i128::from(n) && i128::from(n) <= whole(high));
            let other = n.saturating_add(m);
            let order = number.compare_f64(other as f64);
            let exact = i128::from(n).cmp(&whole(other as f64));
            prop_assert!(order.is_none_or(|o| o == exact));
            prop_assert_eq!(number.compare_int(other), n.cmp(&other));
        }
    }
}
