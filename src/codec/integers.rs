//! Integers: values that are the canonical decimal text of a 64-bit number.
//!
//! A strip is `flags u8 | absent rows (row set, if ABSENT) | exceptions (if EXCEPTIONS: count, then
//! rows less the row before, and texts behind their length) | first | numbers`. Rows that are
//! neither absent nor exceptions have a number. The low two flag bits say what the numbers are:
//! 0 = the values, 1 = their differences behind the first value, 2 = the differences of these
//! behind the first value and the first difference. They are stored divided by their greatest
//! common divisor (varint), as [`frame`] says.

use super::varint::{Reader, put_bytes, put_signed, put_varint};
use super::{Bitmap, PAGE_RAW_MAX, STRIP_ROWS, frame, page::Strip};
use crate::error::Malformed;
use crate::record::TextVec;

const ORDER: u8 = 0b11;
const ABSENT: u8 = 0b100;
const EXCEPTIONS: u8 = 0b1000;

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
    /// Rows without a value.
    pub(super) absent: Option<Bitmap>,
    /// Rows whose value is another text, ascending.
    pub(super) exceptions: Vec<u32>,
}

impl IntColumn {
    /// Reads the numbers of a column; `None` if too many values are not integers.
    pub(super) fn of(values: &TextVec) -> Option<IntColumn> {
        let mut column = IntColumn::default();
        column.numbers.reserve(values.len());
        for (row, value) in (0u32..).zip(values.iter()) {
            if let Some(n) = parse_int(value) {
                column.numbers.push(n);
                continue;
            }
            column.numbers.push(0);
            if value.is_empty() {
                let len = values.len();
                column.absent.get_or_insert_with(|| Bitmap::empty(len)).set(row as usize);
            } else {
                column.exceptions.push(row);
                if column.exceptions.len() > 4 + row as usize / 128 {
                    return None;
                }
            }
        }
        Some(column)
    }

    /// Least and greatest number.
    pub(super) fn range(&self) -> Option<(i64, i64)> {
        if self.absent.is_none() && self.exceptions.is_empty() {
            return self.numbers.iter().min().zip(self.numbers.iter().max()).map(|(a, b)| (*a, *b));
        }
        let mut present = Vec::new();
        self.present(0, self.numbers.len(), &mut present);
        present.iter().min().zip(present.iter().max()).map(|(a, b)| (*a, *b))
    }

    /// The numbers of those rows of `from..to` that have one.
    fn present(&self, from: usize, to: usize, out: &mut Vec<i64>) {
        out.clear();
        let numbers = self.numbers.get(from..to).unwrap_or(&[]);
        let mut exceptions = self.exceptions_in(from, to).iter().peekable();
        if self.absent.is_none() && exceptions.peek().is_none() {
            out.extend_from_slice(numbers);
            return;
        }
        for (row, n) in (from..).zip(numbers) {
            if exceptions.next_if(|e| **e as usize == row).is_none()
                && !self.absent.as_ref().is_some_and(|a| a.get(row))
            {
                out.push(*n);
            }
        }
    }

    fn exceptions_in(&self, from: usize, to: usize) -> &[u32] {
        let start = self.exceptions.partition_point(|e| (*e as usize) < from);
        let end = self.exceptions.partition_point(|e| (*e as usize) < to);
        self.exceptions.get(start..end).unwrap_or(&[])
    }

    /// Appends the strip of rows `from..to`, its numbers stored as `order` differences.
    pub(super) fn encode_strip(
        &self,
        values: &TextVec,
        (from, to): (usize, usize),
        order: u8,
        out: &mut Vec<u8>,
    ) {
        let absent = self.absent.as_ref().filter(|a| a.any_range(from..to));
        let exceptions = self.exceptions_in(from, to);
        let mut flags = order;
        flags |= if absent.is_some() { ABSENT } else { 0 };
        flags |= if exceptions.is_empty() { 0 } else { EXCEPTIONS };
        out.push(flags);
        if let Some(absent) = absent {
            absent.slice(from..to).encode(out);
        }
        if !exceptions.is_empty() {
            put_varint(out, exceptions.len() as u64);
            let mut last = from;
            for row in exceptions {
                let row = *row as usize;
                put_varint(out, (row - last) as u64);
                put_bytes(out, values.get(row));
                last = row;
            }
        }
        let mut numbers = Vec::with_capacity(to - from);
        self.present(from, to, &mut numbers);
        encode_numbers(&mut numbers, order, out);
    }

    /// The order of differences that makes the strip of rows `from..to` smallest.
    pub(super) fn best_order(&self, from: usize, to: usize) -> u8 {
        let mut numbers = Vec::new();
        let mut best = (usize::MAX, 0);
        let mut out = Vec::new();
        for order in 0..=2 {
            self.present(from, to, &mut numbers);
            out.clear();
            encode_numbers(&mut numbers, order, &mut out);
            best = best.min((out.len(), order));
        }
        best.1
    }
}

/// Appends `numbers` with the order of differences, a byte, that makes them smallest.
pub(crate) fn encode_ints(numbers: &[i64], out: &mut Vec<u8>) {
    let mut best: Vec<u8> = Vec::new();
    for order in 0..=2 {
        let mut trial = vec![order];
        encode_numbers(&mut numbers.to_vec(), order, &mut trial);
        if order == 0 || trial.len() < best.len() {
            best = trial;
        }
    }
    out.extend_from_slice(&best);
}

/// Reads `n` numbers that [`encode_ints`] wrote; `n` must have been checked against a cap.
pub(crate) fn decode_ints(r: &mut Reader<'_>, n: usize) -> Result<Vec<i64>, Malformed> {
    let order = r.u8()?;
    if order > 2 {
        return Err(Malformed("unknown order of differences"));
    }
    let mut numbers = vec![0i64; n];
    decode_numbers(r, order, &mut numbers)?;
    Ok(numbers)
}

/// Appends numbers; overwrites them.
pub(super) fn encode_numbers(numbers: &mut [i64], order: u8, out: &mut Vec<u8>) {
    let mut rest = numbers;
    for _ in 0..order {
        let Some((first, after)) = rest.split_first_mut() else { return };
        put_signed(out, *first);
        let mut last = *first;
        for n in after.iter_mut() {
            let value = *n;
            *n = value.wrapping_sub(last);
            last = value;
        }
        rest = after;
    }
    let divisor = divide(rest);
    put_varint(out, divisor);
    frame::encode(rest, out);
}

/// Divides all numbers by their greatest common divisor, which is returned; 1 for no numbers.
fn divide(numbers: &mut [i64]) -> u64 {
    let mut divisor = 0u64;
    for n in numbers.iter() {
        let n = n.unsigned_abs();
        if divisor == 0 || !n.is_multiple_of(divisor) {
            divisor = gcd(divisor, n);
            if divisor == 1 {
                return 1;
            }
        }
    }
    match i64::try_from(divisor) {
        Ok(d) if d > 1 => {
            numbers.iter_mut().for_each(|n| *n /= d);
            divisor
        }
        _ => 1,
    }
}

fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Reads `n` numbers, a count that the caller has checked.
pub(super) fn decode_numbers(
    r: &mut Reader<'_>,
    order: u8,
    out: &mut [i64],
) -> Result<(), Malformed> {
    let heads = usize::from(order).min(out.len());
    let mut firsts = [0i64; 2];
    for first in firsts.iter_mut().take(heads) {
        *first = r.signed()?;
    }
    // With fewer numbers than that, the first ones are all there is.
    if heads == usize::from(order) {
        let rest = out.get_mut(heads..).unwrap_or(&mut []);
        let divisor = i64::try_from(r.varint()?).map_err(|_| Malformed("divisor over 63 bits"))?;
        frame::decode(r, rest)?;
        if divisor != 1 {
            rest.iter_mut().for_each(|n| *n = n.wrapping_mul(divisor));
        }
    }
    for level in (0..heads).rev() {
        let Some(sums) = out.get_mut(level..) else { continue };
        let mut sum = firsts.get(level).copied().unwrap_or(0);
        let Some((head, after)) = sums.split_first_mut() else { continue };
        *head = sum;
        for n in after {
            sum = sum.wrapping_add(*n);
            *n = sum;
        }
    }
    Ok(())
}

/// Decodes a strip of `rows` rows.
pub(super) fn decode_strip(bytes: &[u8], rows: usize) -> Result<Strip, Malformed> {
    let mut r = Reader::new(bytes);
    let flags = r.u8()?;
    let order = flags & ORDER;
    if order > 2 || flags > (ORDER | ABSENT | EXCEPTIONS) {
        return Err(Malformed("unknown flags of integers"));
    }
    let absent = if flags & ABSENT != 0 { Some(Bitmap::decode(&mut r, rows)?) } else { None };
    let exceptions =
        if flags & EXCEPTIONS != 0 { decode_exceptions(&mut r, rows)? } else { Vec::new() };
    let mut holes = absent.clone();
    if !exceptions.is_empty() {
        let holes = holes.get_or_insert_with(|| Bitmap::empty(rows));
        exceptions.iter().for_each(|(row, _)| holes.set(*row as usize));
    }
    let mut values = vec![0i64; rows];
    match holes {
        None => decode_numbers(&mut r, order, &mut values)?,
        Some(mut holes) => {
            holes.invert();
            let mut numbers = vec![0i64; holes.count()];
            decode_numbers(&mut r, order, &mut numbers)?;
            for (row, n) in holes.iter().zip(numbers) {
                if let Some(to) = values.get_mut(row) {
                    *to = n;
                }
            }
        }
    }
    r.finish()?;
    Ok(Strip::Ints { values, absent, exceptions })
}

fn decode_exceptions(r: &mut Reader<'_>, rows: usize) -> Result<Vec<(u32, Vec<u8>)>, Malformed> {
    let count = r.len(rows.min(STRIP_ROWS))?;
    let mut exceptions = Vec::with_capacity(count);
    let mut row = 0u32;
    for i in 0..count {
        let step = r.varint32()?;
        if i > 0 && step == 0 {
            return Err(Malformed("exception row stands twice"));
        }
        row = row.checked_add(step).ok_or(Malformed("exception past the end"))?;
        if row as usize >= rows {
            return Err(Malformed("exception past the end"));
        }
        exceptions.push((row, r.bytes(PAGE_RAW_MAX)?.to_vec()));
    }
    Ok(exceptions)
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
        fn numbers_come_back(
            numbers in prop::collection::vec(any::<i64>(), 0..300),
            shift in 0u32..64,
            factor in 1i64..1000,
            order in 0u8..3,
        ) {
            let numbers: Vec<i64> =
                numbers.iter().map(|n| (n >> shift).wrapping_mul(factor)).collect();
            let mut out = Vec::new();
            encode_numbers(&mut numbers.clone(), order, &mut out);
            let mut got = vec![0; numbers.len()];
            let mut r = Reader::new(&out);
            prop_assert_eq!(decode_numbers(&mut r, order, &mut got), Ok(()));
            prop_assert!(r.is_empty());
            prop_assert_eq!(got, numbers);
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = decode_strip(&bytes, 200);
        }
    }

    #[test]
    fn a_few_numbers_come_back_in_every_order() {
        for order in 0..=2 {
            for numbers in [&[][..], &[7], &[7, -9], &[7, -9, i64::MIN], &[5; 4]] {
                let mut out = Vec::new();
                encode_numbers(&mut numbers.to_vec(), order, &mut out);
                let mut got = vec![0; numbers.len()];
                assert_eq!(decode_numbers(&mut Reader::new(&out), order, &mut got), Ok(()));
                assert_eq!(got, numbers);
            }
        }
    }
}
