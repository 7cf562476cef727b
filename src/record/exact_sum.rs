//! Sums that do not depend on the order of addition.

use std::collections::BTreeMap;

use super::decimal::{Decimal, power_of_ten};
use super::number::{Number, parse_numeric};

/// The sum of numbers, kept exactly and rounded once when it is read.
///
/// Decimals add up in an `i128` at a common scale. What does not fit there goes into blocks of 18
/// decimal digits, which never overflow in practice: each holds the sum of over 10^19 blocks.
/// Numbers that are only known as `f64` (too many digits for [`Decimal`], results of math) enter
/// with their shortest decimal. The sum of a multiset of numbers is thus one exact decimal, and
/// blocks of data, workers and merges cannot change it.
#[derive(Debug, Clone, Default)]
pub(crate) struct ExactSum {
    mantissa: i128,
    scale: u8,
    count: u64,
    rest: Option<Box<Rest>>,
}

#[derive(Debug, Clone, Default)]
struct Rest {
    /// Block `k` counts units of `10^(18 k)`.
    blocks: BTreeMap<i32, i128>,
    positive_infinity: bool,
    negative_infinity: bool,
    nan: bool,
}

/// Decimal digits of a block.
const BLOCK_DIGITS: i32 = 18;
const BLOCK: i128 = 1_000_000_000_000_000_000;

impl ExactSum {
    /// The empty sum.
    pub(crate) fn new() -> ExactSum {
        ExactSum::default()
    }

    /// How many numbers were added.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Adds the number that a text spells; false, and nothing added, if it spells none.
    pub(crate) fn add_text(&mut self, text: &[u8]) -> bool {
        match parse_numeric(text) {
            Some(number) => self.add(number),
            None => return false,
        }
        true
    }

    /// Adds an integer.
    #[inline]
    #[cfg(test)]
    pub(crate) fn add_int(&mut self, value: i64) {
        self.add_decimal(Decimal::from_int(i128::from(value)));
    }

    /// Adds `count` integers whose sum is `sum`.
    pub(crate) fn add_ints(&mut self, sum: i128, count: u64) {
        self.count += count;
        self.add_scaled(sum, 0);
    }

    /// Adds a number.
    pub(crate) fn add(&mut self, number: Number) {
        match number {
            Number::Decimal(d) => self.add_decimal(d),
            Number::Wide(x) => self.add_f64(x),
        }
    }

    /// Adds a decimal.
    #[inline]
    pub(crate) fn add_decimal(&mut self, value: Decimal) {
        self.count += 1;
        if value.scale() == self.scale
            && let Some(sum) = self.mantissa.checked_add(value.mantissa())
        {
            self.mantissa = sum;
            return;
        }
        self.add_scaled(value.mantissa(), value.scale());
    }

    /// Adds a float by its shortest decimal. NaN makes the sum NaN.
    pub(crate) fn add_f64(&mut self, value: f64) {
        self.count += 1;
        if value.trunc() == value && value.abs() < 9e15 {
            #[expect(clippy::cast_possible_truncation, reason = "an integer below 2^53")]
            self.add_scaled(value as i128, 0);
        } else if value.is_finite() {
            // "d.ddde-x", at most 17 digits.
            let text = format!("{value:e}");
            let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
            let (before, after) = mantissa.split_once('.').unwrap_or((mantissa, ""));
            let digits: i128 = format!("{before}{after}").parse().unwrap_or(0);
            let fraction = i32::try_from(after.len()).unwrap_or(0);
            let exponent = exponent.parse::<i32>().unwrap_or(0) - fraction;
            match u8::try_from(-exponent) {
                Ok(scale) if scale <= super::decimal::MAX_SCALE => self.add_scaled(digits, scale),
                _ => self.rest().add(digits, exponent),
            }
        } else {
            self.add_special(value);
        }
    }

    fn add_special(&mut self, value: f64) {
        let rest = self.rest();
        rest.nan |= value.is_nan();
        rest.positive_infinity |= value == f64::INFINITY;
        rest.negative_infinity |= value == f64::NEG_INFINITY;
    }

    fn add_scaled(&mut self, mantissa: i128, scale: u8) {
        let common = scale.max(self.scale);
        let raise = |m: i128, from: u8| m.checked_mul(power_of_ten(common - from)?);
        let sum = match (raise(self.mantissa, self.scale), raise(mantissa, scale)) {
            (Some(a), Some(b)) => a.checked_add(b),
            _ => None,
        };
        match sum {
            Some(sum) => (self.mantissa, self.scale) = (sum, common),
            None => self.rest().add(mantissa, -i32::from(scale)),
        }
    }

    fn rest(&mut self) -> &mut Rest {
        self.rest.get_or_insert_with(Box::default)
    }

    /// Adds all numbers of another sum.
    pub(crate) fn merge(&mut self, other: &ExactSum) {
        self.count += other.count;
        self.add_scaled(other.mantissa, other.scale);
        let Some(theirs) = &other.rest else { return };
        let ours = self.rest();
        for (block, value) in &theirs.blocks {
            *ours.blocks.entry(*block).or_default() += value;
        }
        ours.nan |= theirs.nan;
        ours.positive_infinity |= theirs.positive_infinity;
        ours.negative_infinity |= theirs.negative_infinity;
    }

    /// The sum as the nearest `f64`; zero for no numbers.
    pub(crate) fn to_f64(&self) -> f64 {
        match &self.rest {
            None => Decimal::new(self.mantissa, u32::from(self.scale)).map_or(0.0, Decimal::to_f64),
            Some(rest) if rest.nan || rest.positive_infinity && rest.negative_infinity => f64::NAN,
            Some(rest) if rest.positive_infinity => f64::INFINITY,
            Some(rest) if rest.negative_infinity => f64::NEG_INFINITY,
            Some(rest) => {
                let mut all = rest.clone();
                all.add(self.mantissa, -i32::from(self.scale));
                all.to_f64()
            }
        }
    }

    /// The sum as a decimal, if it fits.
    pub(crate) fn to_decimal(&self) -> Option<Decimal> {
        let sum = Decimal::new(self.mantissa, u32::from(self.scale))?;
        self.rest.is_none().then_some(sum)
    }

    /// The sum as an integer, if it is one and fits.
    #[cfg(test)]
    pub(crate) fn to_i128(&self) -> Option<i128> {
        let sum = Decimal::new(self.mantissa, u32::from(self.scale))?;
        if self.rest.is_none() && sum.scale() == 0 { Some(sum.mantissa()) } else { None }
    }
}

impl Rest {
    /// Adds `mantissa * 10^exponent`.
    fn add(&mut self, mantissa: i128, exponent: i32) {
        let mut block = exponent.div_euclid(BLOCK_DIGITS);
        let shift = exponent.rem_euclid(BLOCK_DIGITS);
        let power = u8::try_from(shift).ok().and_then(power_of_ten).unwrap_or(1);
        let mut left = mantissa;
        let mut carry = 0i128;
        while left != 0 || carry != 0 {
            // Below 10^18 * 10^17 and a carry below 10^18, so it fits.
            let value = left % BLOCK * power + carry;
            left /= BLOCK;
            carry = value / BLOCK;
            *self.blocks.entry(block).or_default() += value % BLOCK;
            block += 1;
        }
    }

    /// Spells the sum out as a decimal, whose nearest `f64` is the result.
    fn to_f64(&self) -> f64 {
        let Some((lowest, _)) = self.blocks.first_key_value() else { return 0.0 };
        let negative = self.is_negative();
        let sign = if negative { -1 } else { 1 };
        let mut digits: Vec<i128> = Vec::new();
        let (mut block, mut carry) = (*lowest, 0i128);
        let highest = self.blocks.last_key_value().map_or(block, |(k, _)| *k);
        while block <= highest || carry != 0 {
            let value = self.blocks.get(&block).copied().unwrap_or(0) * sign + carry;
            digits.push(value.rem_euclid(BLOCK));
            carry = value.div_euclid(BLOCK);
            block += 1;
        }
        let mut text = String::from(if negative { "-" } else { "" });
        for digit in digits.iter().rev() {
            text.push_str(&format!("{digit:018}"));
        }
        text.push_str(&format!("e{}", lowest * BLOCK_DIGITS));
        text.parse().unwrap_or(f64::NAN)
    }

    /// The sign of the sum: that of the carry out of the highest block, or else of nothing.
    fn is_negative(&self) -> bool {
        let mut carry = 0i128;
        let mut previous: Option<i32> = None;
        for (block, value) in &self.blocks {
            // An empty block between two keeps of a carry only its sign.
            let gap = previous.map_or(1, |p| block - p);
            for _ in 1..gap.min(4) {
                carry = carry.div_euclid(BLOCK);
            }
            carry = (carry + value).div_euclid(BLOCK);
            previous = Some(*block);
        }
        carry < 0
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sum(texts: &[&str]) -> f64 {
        let mut sum = ExactSum::new();
        for text in texts {
            assert!(sum.add_text(text.as_bytes()), "{text}");
        }
        sum.to_f64()
    }

    #[test]
    fn decimals_add_exactly() {
        assert_eq!(sum(&["0.1", "0.2"]), 0.3);
        assert_eq!(sum(&["9007199254740993", "-9007199254740992"]), 1.0);
        assert_eq!(sum(&["1e30", "0.00000000000000000001", "-1e30"]), 1e-20);
        assert_eq!(sum(&["1h", "-60m", "1KB", "0x10"]), 1_016.0);
        assert_eq!(sum(&[]), 0.0);
        assert!(!ExactSum::new().add_text(b"1.2.3.4"));
    }

    #[test]
    fn wide_numbers_add_exactly() {
        assert_eq!(sum(&["1e300", "1", "-1e300"]), 1.0);
        assert_eq!(sum(&["1e300", "-1", "-1e300"]), -1.0);
        assert_eq!(sum(&["-1e300", "-1e-300", "1e300"]), -1e-300);
        assert_eq!(sum(&["1e38", "1e38", "1e38", "-1e38", "-1e38", "-1e38", "0.5"]), 0.5);
        assert_eq!(sum(&["1e308", "1e308"]), f64::INFINITY);
        assert_eq!(sum(&["inf", "1"]), f64::INFINITY);
        assert!(sum(&["inf", "-inf"]).is_nan());
    }

    fn operand() -> impl Strategy<Value = String> {
        prop_oneof![
            "-?[0-9]{1,19}",
            "-?[0-9]{1,10}\\.[0-9]{1,12}",
            "-?[0-9]\\.[0-9]{1,30}",
            "-?[0-9]{30,38}",
            "-?[1-9]e-?[12]?[0-9]{1,2}",
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(500))]

        #[test]
        fn the_order_and_the_split_do_not_matter(
            texts in prop::collection::vec(operand(), 1..20), cut in 0usize..20
        ) {
            let mut forward = ExactSum::new();
            texts.iter().for_each(|t| assert!(forward.add_text(t.as_bytes())));
            let (mut left, mut right) = (ExactSum::new(), ExactSum::new());
            for (i, text) in texts.iter().enumerate().rev() {
                let half = if i < cut { &mut left } else { &mut right };
                half.add_text(text.as_bytes());
            }
            right.merge(&left);
            prop_assert_eq!(forward.to_f64().to_bits(), right.to_f64().to_bits());
            prop_assert_eq!(forward.count(), right.count());
        }

        #[test]
        fn a_sum_and_its_opposite_cancel(texts in prop::collection::vec(operand(), 1..12)) {
            let mut total = ExactSum::new();
            for text in &texts {
                total.add_text(text.as_bytes());
            }
            total.add_text(b"0.125");
            for text in &texts {
                let opposite = text.strip_prefix('-').map_or(format!("-{text}"), str::to_owned);
                total.add_text(opposite.as_bytes());
            }
            prop_assert_eq!(total.to_f64(), 0.125);
        }

        #[test]
        fn integers_sum_as_integers(values in prop::collection::vec(any::<i64>(), 0..50)) {
            let mut total = ExactSum::new();
            values.iter().for_each(|v| total.add_int(*v));
            let want: i128 = values.iter().map(|v| i128::from(*v)).sum();
            prop_assert_eq!(total.to_i128(), Some(want));
        }
    }
}
