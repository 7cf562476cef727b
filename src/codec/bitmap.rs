//! A set of rows.

use std::ops::Range;

use super::varint::Reader;
use crate::error::Malformed;

/// A set of rows `0..len`, one bit a row in words of 64. Bits past `len` are always zero.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Bitmap {
    len: usize,
    words: Vec<u64>,
}

impl Bitmap {
    /// No row of `len` is in the set.
    pub(crate) fn empty(len: usize) -> Bitmap {
        Bitmap { len, words: vec![0; len.div_ceil(64)] }
    }

    /// All of `len` rows are in the set.
    pub(crate) fn full(len: usize) -> Bitmap {
        let mut b = Bitmap { len, words: vec![u64::MAX; len.div_ceil(64)] };
        b.trim();
        b
    }

    /// The rows for which `f` is true; `f` is called once for each row, in order.
    #[inline]
    pub(crate) fn from_fn(len: usize, mut f: impl FnMut(usize) -> bool) -> Bitmap {
        let mut words = Vec::with_capacity(len.div_ceil(64));
        let mut row = 0;
        while row < len {
            let end = (row + 64).min(len);
            let mut word = 0u64;
            for (bit, r) in (row..end).enumerate() {
                word |= u64::from(f(r)) << bit;
            }
            words.push(word);
            row = end;
        }
        Bitmap { len, words }
    }

    /// The rows whose value passes. Tests of 64 values are made at once where they compile to that.
    #[inline]
    pub(crate) fn of_values<T: Copy>(values: &[T], passes: impl Fn(T) -> bool) -> Bitmap {
        let mut words = Vec::with_capacity(values.len().div_ceil(64));
        for values in values.chunks(64) {
            let mut passed = [0u8; 64];
            for (to, value) in passed.iter_mut().zip(values) {
                *to = u8::from(passes(*value));
            }
            let (eights, _) = passed.as_chunks::<8>();
            words.push(eights.iter().rev().fold(0, |word, eight| word << 8 | low_bits(*eight)));
        }
        Bitmap { len: values.len(), words }
    }

    /// The number of rows, in the set or not.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The words, row `i` being bit `i % 64` of word `i / 64`.
    pub(crate) fn words(&self) -> &[u64] {
        &self.words
    }

    /// Whether `row` is in the set; rows past the end are not.
    #[inline]
    pub(crate) fn get(&self, row: usize) -> bool {
        self.words.get(row / 64).is_some_and(|w| w >> (row % 64) & 1 == 1)
    }

    /// Puts `row` into the set; rows past the end are ignored.
    #[inline]
    pub(crate) fn set(&mut self, row: usize) {
        if row < self.len
            && let Some(w) = self.words.get_mut(row / 64)
        {
            *w |= 1 << (row % 64);
        }
    }

    /// Puts all rows into the set.
    #[cfg(test)]
    pub(crate) fn fill(&mut self) {
        self.words.fill(u64::MAX);
        self.trim();
    }

    /// Takes all rows out of the set.
    pub(crate) fn clear_all(&mut self) {
        self.words.fill(0);
    }

    /// Puts the rows of `range` into the set, as far as there are such rows.
    pub(crate) fn set_range(&mut self, range: Range<usize>) {
        self.for_words(range, |w, mask| *w |= mask);
    }

    /// Takes the rows of `range` out of the set.
    pub(crate) fn clear_range(&mut self, range: Range<usize>) {
        self.for_words(range, |w, mask| *w &= !mask);
    }

    /// The number of rows of `range` in the set.
    pub(crate) fn count_range(&self, range: Range<usize>) -> usize {
        let mut n = 0;
        for (i, mask) in word_masks(range.start..range.end.min(self.len)) {
            n += self.words.get(i).map_or(0, |w| (w & mask).count_ones() as usize);
        }
        n
    }

    /// Whether a row of `range` is in the set.
    pub(crate) fn any_range(&self, range: Range<usize>) -> bool {
        word_masks(range.start..range.end.min(self.len))
            .any(|(i, mask)| self.words.get(i).is_some_and(|w| w & mask != 0))
    }

    /// Keeps the rows that are in `other` too. Rows that `other` does not have are dropped.
    pub(crate) fn and(&mut self, other: &Bitmap) {
        for (i, w) in self.words.iter_mut().enumerate() {
            *w &= other.words.get(i).copied().unwrap_or(0);
        }
    }

    /// Adds the rows of `other`, as far as this set has such rows.
    pub(crate) fn or(&mut self, other: &Bitmap) {
        for (w, o) in self.words.iter_mut().zip(&other.words) {
            *w |= o;
        }
        self.trim();
    }

    /// Drops the rows of `other`.
    pub(crate) fn and_not(&mut self, other: &Bitmap) {
        for (w, o) in self.words.iter_mut().zip(&other.words) {
            *w &= !o;
        }
    }

    /// Swaps the rows in the set with those that are not.
    pub(crate) fn invert(&mut self) {
        for w in &mut self.words {
            *w = !*w;
        }
        self.trim();
    }

    /// The number of rows in the set.
    pub(crate) fn count(&self) -> usize {
        self.words.iter().map(|w| w.count_ones() as usize).sum()
    }

    /// Whether some row is in the set.
    pub(crate) fn any(&self) -> bool {
        self.words.iter().any(|w| *w != 0)
    }

    /// Whether all rows are in the set.
    pub(crate) fn all(&self) -> bool {
        self.count() == self.len
    }

    /// The rows in the set, ascending.
    pub(crate) fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.words.iter().enumerate().flat_map(|(i, &w)| Ones(w).map(move |bit| i * 64 + bit))
    }

    /// The rows of `range` in the set, ascending.
    pub(crate) fn iter_range(&self, range: Range<usize>) -> impl Iterator<Item = usize> + '_ {
        word_masks(range.start..range.end.min(self.len)).flat_map(move |(i, mask)| {
            let word = self.words.get(i).copied().unwrap_or(0) & mask;
            Ones(word).map(move |bit| i * 64 + bit)
        })
    }

    /// The last row in the set.
    #[cfg(test)]
    pub(crate) fn last(&self) -> Option<usize> {
        let i = self.words.iter().rposition(|w| *w != 0)?;
        let w = self.words.get(i)?;
        Some(i * 64 + 63 - w.leading_zeros() as usize)
    }

    /// Calls `f` for each row in the set and drops the rows for which it is false.
    #[inline]
    pub(crate) fn retain(&mut self, mut f: impl FnMut(usize) -> bool) {
        for (i, w) in self.words.iter_mut().enumerate() {
            let mut kept = *w;
            for bit in Ones(*w) {
                if !f(i * 64 + bit) {
                    kept &= !(1 << bit);
                }
            }
            *w = kept;
        }
    }

    /// The rows of `range` as a set of their own, row `range.start` becoming row 0.
    pub(crate) fn slice(&self, range: Range<usize>) -> Bitmap {
        let end = range.end.min(self.len);
        let start = range.start.min(end);
        let (first, shift) = (start / 64, start % 64);
        let mut out = Bitmap::empty(end - start);
        for (i, w) in out.words.iter_mut().enumerate() {
            let low = self.words.get(first + i).copied().unwrap_or(0) >> shift;
            let high = self.words.get(first + i + 1).copied().unwrap_or(0);
            *w = if shift == 0 { low } else { low | high << (64 - shift) };
        }
        out.trim();
        out
    }

    /// Appends the set's words, eight bytes each but the last, which takes as many as it needs.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        let start = out.len();
        for w in &self.words {
            out.extend_from_slice(&w.to_le_bytes());
        }
        out.truncate(start + self.len.div_ceil(8));
    }

    /// Reads a set of `len` rows, a number that the caller has checked against its cap.
    pub(crate) fn decode(r: &mut Reader<'_>, len: usize) -> Result<Bitmap, Malformed> {
        let bytes = r.take(len.div_ceil(8))?;
        let mut out = Bitmap::empty(len);
        for (w, chunk) in out.words.iter_mut().zip(bytes.chunks(8)) {
            for (i, b) in chunk.iter().enumerate() {
                *w |= u64::from(*b) << (8 * i);
            }
        }
        let read = out.clone();
        out.trim();
        if read == out { Ok(out) } else { Err(Malformed("bits past the end of a row set")) }
    }

    fn for_words(&mut self, range: Range<usize>, f: impl Fn(&mut u64, u64)) {
        for (i, mask) in word_masks(range.start..range.end.min(self.len)) {
            if let Some(w) = self.words.get_mut(i) {
                f(w, mask);
            }
        }
    }

    fn trim(&mut self) {
        if !self.len.is_multiple_of(64)
            && let Some(w) = self.words.last_mut()
        {
            *w &= (1 << (self.len % 64)) - 1;
        }
    }
}

/// The lowest bit of each byte, that of the first byte lowest.
fn low_bits(bytes: [u8; 8]) -> u64 {
    // Bit 8 i of the bytes comes to bit 56 + i by the one summand 56 - 7 i.
    u64::from_le_bytes(bytes).wrapping_mul(0x0102_0408_1020_4080) >> 56
}

/// The words that `range` touches, each with the mask of its rows.
fn word_masks(range: Range<usize>) -> impl Iterator<Item = (usize, u64)> {
    let words = if range.is_empty() { 0..0 } else { range.start / 64..range.end.div_ceil(64) };
    words.map(move |i| {
        let low = range.start.saturating_sub(i * 64);
        let high = (range.end - i * 64).min(64);
        (i, u64::MAX << low & u64::MAX >> (64 - high))
    })
}

/// The positions of the one bits of a word, ascending.
struct Ones(u64);

impl Iterator for Ones {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        if self.0 == 0 {
            return None;
        }
        let bit = self.0.trailing_zeros() as usize;
        self.0 &= self.0 - 1;
        Some(bit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn bitmap(len: usize, rows: &BTreeSet<usize>) -> Bitmap {
        Bitmap::from_fn(len, |r| rows.contains(&r))
    }

    fn rows(b: &Bitmap) -> BTreeSet<usize> {
        b.iter().collect()
    }

    fn sets() -> impl Strategy<Value = (usize, BTreeSet<usize>, BTreeSet<usize>)> {
        (0usize..300).prop_flat_map(|len| {
            let set = || prop::collection::btree_set(0..len.max(1), 0..=len);
            (Just(len), set(), set()).prop_map(|(len, mut a, mut b)| {
                a.retain(|r| *r < len);
                b.retain(|r| *r < len);
                (len, a, b)
            })
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]
        #[test]
        fn acts_as_a_set((len, a, b) in sets(), from in 0usize..320, n in 0usize..320) {
            let (x, y) = (bitmap(len, &a), bitmap(len, &b));
            let values: Vec<usize> = (0..len).collect();
            prop_assert_eq!(&Bitmap::of_values(&values, |row| a.contains(&row)), &x);
            let op = |f: fn(&mut Bitmap, &Bitmap)| { let mut z = x.clone(); f(&mut z, &y); z };
            prop_assert_eq!(rows(&op(Bitmap::and)), &a & &b);
            prop_assert_eq!(rows(&op(Bitmap::or)), &a | &b);
            prop_assert_eq!(rows(&op(Bitmap::and_not)), &a - &b);
            let all: BTreeSet<usize> = (0..len).collect();
            prop_assert_eq!(rows(&op(|z, _| z.invert())), &all - &a);
            prop_assert_eq!(x.count(), a.len());
            prop_assert_eq!(x.any(), !a.is_empty());
            prop_assert_eq!(x.all(), a.len() == len);
            prop_assert_eq!(x.last(), a.last().copied());
            let range: BTreeSet<usize> = (from..(from + n).min(len)).collect();
            let r = from..from + n;
            let mut z = x.clone();
            z.set_range(r.clone());
            prop_assert_eq!(rows(&z), &a | &range);
            let mut z = x.clone();
            z.clear_range(r.clone());
            prop_assert_eq!(rows(&z), &a - &range);
            prop_assert_eq!(x.count_range(r.clone()), (&a & &range).len());
            prop_assert_eq!(x.any_range(r.clone()), !(&a & &range).is_empty());
            prop_assert_eq!(x.iter_range(r.clone()).collect::<BTreeSet<_>>(), &a & &range);
            let moved: BTreeSet<usize> = (&a & &range).iter().map(|i| i - from).collect();
            prop_assert_eq!(rows(&x.slice(r.clone())), moved);
            let mut z = x.clone();
            z.retain(|i| b.contains(&i));
            prop_assert_eq!(&z, &op(Bitmap::and));
            for i in 0..len + 70 {
                prop_assert_eq!(x.get(i), a.contains(&i));
            }
            let mut bytes = Vec::new();
            x.encode(&mut bytes);
            prop_assert_eq!(bytes.len(), len.div_ceil(8));
            prop_assert_eq!(Bitmap::decode(&mut Reader::new(&bytes), len), Ok(x.clone()));
        }
    }

    #[test]
    fn full_sets_have_no_bits_past_the_end() {
        for len in [0, 1, 63, 64, 65, 128] {
            let mut b = Bitmap::full(len);
            assert_eq!(b.count(), len);
            b.clear_all();
            b.fill();
            assert_eq!(b.count(), len);
            b.set(len);
            assert_eq!(b.count(), len);
        }
        assert!(Bitmap::decode(&mut Reader::new(&[0xff]), 7).is_err());
    }
}
