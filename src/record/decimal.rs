//! Exact decimal numbers.

use std::cmp::Ordering;

/// The largest scale: 10^38 is the largest power of ten in an `i128`.
pub(crate) const MAX_SCALE: u8 = 38;

/// The exact number `mantissa / 10^scale`, in lowest terms: either the scale is zero or the
/// mantissa does not end in a zero digit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Decimal {
    mantissa: i128,
    scale: u8,
}

/// The powers of ten that an `f64` holds exactly.
const EXACT_POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
    1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
];

/// `10^n` for `n <= 38`.
pub(crate) fn power_of_ten(n: u8) -> Option<i128> {
    10i128.checked_pow(u32::from(n))
}

impl Decimal {
    /// Zero.
    pub(crate) const ZERO: Decimal = Decimal { mantissa: 0, scale: 0 };

    /// An integer.
    pub(crate) const fn from_int(value: i128) -> Decimal {
        Decimal { mantissa: value, scale: 0 }
    }

    /// `mantissa / 10^scale`, if it fits.
    pub(crate) fn new(mut mantissa: i128, mut scale: u32) -> Option<Decimal> {
        while scale > 0 && mantissa % 10 == 0 {
            if mantissa == 0 {
                return Some(Decimal::ZERO);
            }
            mantissa /= 10;
            scale -= 1;
        }
        let scale = u8::try_from(scale).ok().filter(|s| *s <= MAX_SCALE)?;
        Some(Decimal { mantissa, scale })
    }

    /// Reads a plain number: sign, digits, point, exponent, as JSON and most programs write it.
    pub(crate) fn parse(text: &[u8]) -> Option<Decimal> {
        match super::number::parse_plain(text)? {
            super::number::Number::Decimal(d) => Some(d),
            super::number::Number::Wide(_) => None,
        }
    }

    /// The digits as an integer.
    pub(crate) fn mantissa(self) -> i128 {
        self.mantissa
    }

    /// The number of digits after the point.
    pub(crate) fn scale(self) -> u8 {
        self.scale
    }

    /// The integer part, rounded towards zero.
    pub(crate) fn trunc(self) -> i128 {
        power_of_ten(self.scale).map_or(0, |p| self.mantissa / p)
    }

    /// The largest integer that is not above.
    pub(crate) fn floor(self) -> i128 {
        power_of_ten(self.scale).map_or(0, |p| self.mantissa.div_euclid(p))
    }

    /// The sum, if it fits.
    pub(crate) fn checked_add(self, other: Decimal) -> Option<Decimal> {
        let scale = self.scale.max(other.scale);
        let a = self.mantissa.checked_mul(power_of_ten(scale - self.scale)?)?;
        let b = other.mantissa.checked_mul(power_of_ten(scale - other.scale)?)?;
        Decimal::new(a.checked_add(b)?, u32::from(scale))
    }

    /// The product with an integer, if it fits.
    pub(crate) fn checked_mul_int(self, factor: i128) -> Option<Decimal> {
        Decimal::new(self.mantissa.checked_mul(factor)?, u32::from(self.scale))
    }

    /// The number with the other sign.
    pub(crate) fn negated(self) -> Decimal {
        Decimal { mantissa: self.mantissa.saturating_neg(), scale: self.scale }
    }

    /// The nearest `f64`, ties to even.
    pub(crate) fn to_f64(self) -> f64 {
        const EXACT: i128 = 1 << 53;
        #[expect(clippy::cast_precision_loss, reason = "the cast rounds to nearest, ties to even")]
        let mantissa = self.mantissa as f64;
        if self.scale == 0 {
            return mantissa;
        }
        if self.mantissa > -EXACT && self.mantissa < EXACT {
            // Both are exact in an f64, so one division rounds once (Clinger's fast path).
            if let Some(power) = EXACT_POWERS.get(usize::from(self.scale)) {
                return mantissa / power;
            }
        }
        let text = format!("{}e-{}", self.mantissa, self.scale);
        text.parse().unwrap_or(mantissa)
    }

    /// The `f64` nearest to the number divided by `divisor`, ties to even; `None` if the fraction
    /// is too wide or the divisor zero.
    pub(crate) fn quotient(self, divisor: u64) -> Option<f64> {
        let below = power_of_ten(self.scale)?.unsigned_abs().checked_mul(divisor.into())?;
        if below == 0 || below >> 127 != 0 {
            return None;
        }
        let above = self.mantissa.unsigned_abs();
        let (mut bits, mut rest) = (above / below, above % below);
        let mut shift = 0;
        // With more bits than an f64 has, the last one may stand for all that is left.
        while rest != 0 && bits >> 64 == 0 {
            rest <<= 1;
            bits = bits << 1 | u128::from(rest >= below);
            rest -= if rest >= below { below } else { 0 };
            shift += 1;
        }
        #[expect(clippy::cast_precision_loss, reason = "the cast rounds to nearest, ties to even")]
        let magnitude = (bits | u128::from(rest != 0)) as f64 / 2f64.powi(shift);
        Some(if self.mantissa < 0 { -magnitude } else { magnitude })
    }

    /// Whether [`to_f64`](Decimal::to_f64) is known to lose nothing.
    pub(crate) fn is_exact_f64(self) -> bool {
        self.scale == 0 && self.mantissa.unsigned_abs() <= 1 << 53
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Decimal) -> Ordering {
        if self.scale == other.scale {
            return self.mantissa.cmp(&other.mantissa);
        }
        if self.scale > other.scale {
            return other.cmp(self).reverse();
        }
        let raised = power_of_ten(other.scale - self.scale)
            .and_then(|power| self.mantissa.checked_mul(power));
        match raised {
            Some(raised) => raised.cmp(&other.mantissa),
            // Out of range at the scale of the other, so larger in magnitude than it.
            None => self.mantissa.cmp(&0),
        }
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Decimal) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn dec(mantissa: i128, scale: u32) -> Decimal {
        Decimal::new(mantissa, scale).unwrap()
    }

    #[test]
    fn lowest_terms() {
        assert_eq!(dec(1_500, 2), dec(15, 0));
        assert_eq!(dec(0, 38), Decimal::ZERO);
        assert_eq!(dec(-1_230, 3), dec(-123, 2));
        assert_eq!(Decimal::new(1, 39), None);
        assert_eq!((dec(-15, 1).trunc(), dec(-15, 1).floor()), (-1, -2));
    }

    #[test]
    fn extremes_compare() {
        let (big, tiny) = (dec(i128::MAX, 0), dec(1, 38));
        assert!(big > tiny && dec(i128::MIN, 0) < tiny);
        assert!(dec(i128::MIN, 0) < tiny.negated() && tiny.negated() < tiny);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1_000))]

        #[test]
        fn order_and_sum_follow_integers(a in -10_000i128..10_000, b in -10_000i128..10_000,
                                         s in 0u32..6, t in 0u32..6) {
            let (x, y) = (dec(a, s), dec(b, t));
            let (u, v) = (a * 10i128.pow(6 - s), b * 10i128.pow(6 - t));
            prop_assert_eq!(x.cmp(&y), u.cmp(&v));
            prop_assert_eq!(x.checked_add(y), Decimal::new(u + v, 6));
        }

        #[test]
        fn quotients_are_rounded_once(m: i128, shift in 0u32..127, s in 0u32..12, n in 1u64..50) {
            let d = dec(m >> shift, s);
            // The quotient times the divisor is exact where the divisor is a power of two.
            prop_assert_eq!(d.quotient(1), Some(d.to_f64()));
            prop_assert_eq!(d.quotient(1 << 20), Some(d.to_f64() / 1_048_576.0));
            // A number that is a multiple gives what it is a multiple of.
            let multiple = dec((m >> shift >> 6) * i128::from(n), s);
            prop_assert_eq!(multiple.quotient(n), Some(dec(m >> shift >> 6, s).to_f64()));
        }

        #[test]
        fn nearest_f64(m: i128, shift in 0u32..127, s in 0u32..39) {
            let d = dec(m >> shift, s);
            let text = format!("{}e-{}", m >> shift, s);
            prop_assert_eq!(d.to_f64(), text.parse::<f64>().unwrap());
        }
    }
}
