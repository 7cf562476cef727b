//! Integers: values that are the canonical decimal text of a 64-bit number.
//!
//! A strip is `flags u8 | holes | numbers`. Rows that are neither absent nor exceptions have a
//! number. The low two flag bits say what the numbers are: 0 = the values, 1 = their differences
//! behind the first value, 2 = the differences of these behind the first value and the first
//! difference. Flag PLANES: as bytes under zstd, else as frames.

use std::sync::Arc;

use super::compress::Compressor;
use super::holes::{ABSENT, EXCEPTIONS, Holes, StripHoles};
use super::numbers::{Layout, decode_numbers, decode_packed, encode_packed};
use super::page::{Decoder, Strip};
use super::varint::Reader;
use crate::error::Malformed;
use crate::record::TextVec;

const ORDER: u8 = 0b11;
const PLANES: u8 = 0b1_0000;
/// The number of which `text` is the canonical decimal text.
#[inline]
pub(super) fn parse_int(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    let first = *digits.first()?;
    if digits.len() > 19 || (first == b'0' && (digits.len() > 1 || negative)) {
        return None;
    }
    let mut n = 0u64;
    for b in digits {
        let digit = b.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        // At most 19 digits, so this stays below 10^19, which fits 64 bits without sign.
        n = n * 10 + u64::from(digit);
    }
    if negative {
        let n = n.cast_signed().wrapping_neg();
        (n < 0).then_some(n)
    } else {
        i64::try_from(n).ok()
    }
}

/// A column of integers.
#[derive(Debug, Default)]
pub(super) struct IntColumn {
    /// The number of each row; 0 where there is none.
    pub(super) numbers: Vec<i64>,
    /// Rows without a number.
    pub(super) holes: Holes,
}

impl IntColumn {
    /// Reads the numbers of a column; `None` if too many values are not integers.
    pub(super) fn of(values: &TextVec) -> Option<IntColumn> {
        let mut column = IntColumn::default();
        if !plausible(values) {
            return None;
        }
        column.numbers.reserve(values.len());
        for (row, value) in (0u32..).zip(values.iter()) {
            if let Some(n) = parse_int(value) {
                column.numbers.push(n);
                continue;
            }
            column.numbers.push(0);
            if !column.holes.add(row, value, values.len()) {
                return None;
            }
        }
        Some(column)
    }

    /// Least and greatest number.
    pub(super) fn range(&self) -> Option<(i64, i64)> {
        let mut range: Option<(i64, i64)> = None;
        let mut see = |n: i64| {
            let (min, max) = range.unwrap_or((n, n));
            range = Some((min.min(n), max.max(n)));
        };
        if self.holes.is_empty() {
            self.numbers.iter().for_each(|n| see(*n));
        } else {
            let all = (0, self.numbers.len());
            self.holes.for_typed(all, |row| see(self.numbers.get(row).copied().unwrap_or(0)));
        }
        range
    }

    /// The numbers of those rows of `from..to` that have one.
    fn present(&self, (from, to): (usize, usize), out: &mut Vec<i64>) {
        out.clear();
        if self.holes.none_in(from, to) {
            out.extend_from_slice(self.numbers.get(from..to).unwrap_or(&[]));
        } else {
            let number = |row: usize| self.numbers.get(row).copied().unwrap_or(0);
            self.holes.for_typed((from, to), |row| out.push(number(row)));
        }
    }

    /// Appends the strip of rows `from..to`.
    pub(super) fn encode_strip(
        &self,
        values: &TextVec,
        rows: (usize, usize),
        layout: Layout,
        zstd: &mut Compressor,
        out: &mut Vec<u8>,
    ) {
        let at = out.len();
        out.push(0);
        let mut flags = self.holes.encode(values, rows, out) | layout.order;
        let mut numbers = Vec::with_capacity(rows.1 - rows.0);
        self.present(rows, &mut numbers);
        if encode_packed(&mut numbers, layout, zstd, out) {
            flags |= PLANES;
        }
        if let Some(first) = out.get_mut(at) {
            *first = flags;
        }
    }

    /// The layout that makes the strip of rows `from..to` smallest.
    pub(super) fn best_layout(&self, rows: (usize, usize), zstd: &mut Compressor) -> Layout {
        let mut numbers = Vec::new();
        self.present(rows, &mut numbers);
        Layout::best(&numbers, zstd)
    }
}

/// Whether a few values, spread over the column, are mostly integers.
fn plausible(values: &TextVec) -> bool {
    let step = (values.len() / 32).max(1);
    let (mut ints, mut others) = (0, 0);
    for row in (0..values.len()).step_by(step) {
        let value = values.get(row);
        if parse_int(value).is_some() {
            ints += 1;
        } else if !value.is_empty() {
            others += 1;
        }
    }
    others * 8 <= ints + 8
}

/// Decodes a strip of `rows` rows.
pub(super) fn decode_strip(
    bytes: &[u8],
    rows: usize,
    decoder: &mut Decoder,
) -> Result<Strip, Malformed> {
    let mut r = Reader::new(bytes);
    let flags = r.u8()?;
    let order = flags & ORDER;
    if order > 2 || flags > (ORDER | ABSENT | EXCEPTIONS | PLANES) {
        return Err(Malformed("unknown flags of integers"));
    }
    let holes = StripHoles::decode(&mut r, flags, rows)?;
    let mut read = |r: &mut Reader<'_>, out: &mut [i64]| {
        if flags & PLANES == 0 {
            decode_numbers(r, order, out)
        } else {
            decode_packed(r, order, decoder, out)
        }
    };
    let mut values = vec![0i64; rows];
    match holes.typed(rows) {
        None => read(&mut r, &mut values)?,
        Some(typed) => {
            let mut numbers = vec![0i64; typed.count()];
            read(&mut r, &mut numbers)?;
            for (row, n) in typed.iter().zip(numbers) {
                if let Some(to) = values.get_mut(row) {
                    *to = n;
                }
            }
        }
    }
    r.finish()?;
    Ok(Strip::Ints { values: Arc::new(values), absent: holes.absent, exceptions: holes.exceptions })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn only_canonical_texts_are_numbers() {
        for n in [0, 1, -1, 10, i64::MAX, i64::MIN, i64::MIN + 1] {
            assert_eq!(parse_int(n.to_string().as_bytes()), Some(n));
        }
        for text in [
            "",
            "-",
            "-0",
            "+1",
            "00",
            "01",
            "-01",
            "1.0",
            " 1",
            "1 ",
            "1_0",
            "0x1",
            "9223372036854775808",
            "-9223372036854775809",
            "9999999999999999999",
            "18446744073709551615",
            "-18446744073709551615",
            "10000000000000000000",
            "1e3",
        ] {
            assert_eq!(parse_int(text.as_bytes()), None, "{text}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]
        #[test]
        fn parsing_is_the_inverse_of_printing(text in "-?[0-9]{0,21}", n in any::<i64>()) {
            let naive = text.parse::<i64>().ok().filter(|n| n.to_string() == text);
            prop_assert_eq!(parse_int(text.as_bytes()), naive);
            prop_assert_eq!(parse_int(n.to_string().as_bytes()), Some(n));
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = decode_strip(&bytes, 200, &mut Decoder::new());
        }
    }
}
