//! Finds out what the values of one slot of one template have in common.

use std::hash::BuildHasher;

use foldhash::fast::RandomState;
use hashbrown::HashTable;

use super::slot::{HEX_MAX, Slot, class, classes_of, number_of};
use super::tokenize::Span;
use super::{CODES_MAX, DIGITS_MAX};
use crate::record::TextVec;

/// The rows from which on a dictionary is tried.
const CODES_ROWS_MIN: usize = 4;
/// A dictionary is given up when after so many rows most values are distinct.
const CODES_TRIAL: usize = 64;

/// How a column of slot values is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// All values are the same: they are part of the template's text.
    Constant,
    /// Behind `prefix` and before `suffix` bytes that all values share, as the slot says.
    Slot {
        /// Length of the common start, which is part of the template's text.
        prefix: u32,
        /// Length of the common end, likewise.
        suffix: u32,
        /// How the rest is stored.
        slot: Slot,
        /// Whether every value has a digit.
        digit: bool,
    },
}

/// Looks at columns; keeps buffers between them.
#[derive(Debug, Default)]
pub(super) struct ColumnAnalyser {
    hasher: RandomState,
    distinct: HashTable<u32>,
    firsts: Vec<Span>,
    counts: Vec<u32>,
    codes: Vec<u8>,
    cores: Vec<Span>,
}

/// What a pass over the values finds.
#[derive(Debug)]
struct Facts {
    classes: u8,
    min_len: u32,
    max_len: u32,
    /// No value has a needless zero in front.
    canonical: bool,
}

#[inline]
fn text(bytes: &[u8], span: Span) -> &[u8] {
    bytes.get(span.from as usize..span.to as usize).unwrap_or(&[])
}

fn facts(bytes: &[u8], values: &[Span]) -> Facts {
    let mut f = Facts { classes: u8::MAX, min_len: u32::MAX, max_len: 0, canonical: true };
    for span in values {
        let len = span.to - span.from;
        f.min_len = f.min_len.min(len);
        f.max_len = f.max_len.max(len);
        let value = text(bytes, *span);
        f.classes &= classes_of(value);
        f.canonical &= len == 1 || value.first() != Some(&b'0');
    }
    f
}

impl ColumnAnalyser {
    /// Chooses how to store `values`, whose bytes are in `bytes`. Appends a word for each value to
    /// `data`: numbers less the base, codes, or the place of the stored text; and the values of a
    /// dictionary to `dictionary`.
    pub(super) fn analyse(
        &mut self,
        bytes: &[u8],
        values: &[Span],
        dictionary: &mut TextVec,
        data: &mut Vec<u64>,
    ) -> Form {
        let Some(first) = values.first() else { return Form::Constant };
        let value = text(bytes, *first);
        if values.iter().all(|span| text(bytes, *span) == value) && classes_of(value) != 0 {
            return Form::Constant;
        }
        let mut f = facts(bytes, values);
        let (mut prefix, mut suffix) = (0, 0);
        self.cores.clear();
        self.cores.extend_from_slice(values);
        if f.classes & class::WORD != 0 && number_or_hex(&f).is_none() {
            (prefix, suffix) = affixes(bytes, values);
            // A slot is never empty, so that its neighbours in a text always touch a value.
            let shortest = values.iter().map(|span| span.to - span.from).min().unwrap_or(0);
            if shortest <= prefix + suffix {
                (prefix, suffix) = (0, 0);
            }
            if prefix + suffix > 0 {
                for core in &mut self.cores {
                    core.from += prefix;
                    core.to -= suffix;
                }
                f = facts(bytes, &self.cores);
            }
        }
        let slot = self.choose(bytes, &f, dictionary, data);
        let digit = matches!(slot, Slot::Int { .. })
            || values.iter().all(|span| text(bytes, *span).iter().any(u8::is_ascii_digit));
        Form::Slot { prefix, suffix, slot, digit }
    }

    fn choose(
        &mut self,
        bytes: &[u8],
        f: &Facts,
        dictionary: &mut TextVec,
        data: &mut Vec<u64>,
    ) -> Slot {
        let start = data.len();
        let rows = self.cores.len();
        let typed = match number_or_hex(f) {
            Some(Kind::Number) => Some(numbers(bytes, &self.cores, f, data)),
            Some(Kind::Hex { upper }) => {
                let digits = u16::try_from(f.max_len).unwrap_or(u16::MAX);
                Some((Slot::Hex { digits, upper }, rows * 4 * f.max_len as usize))
            }
            None => None,
        };
        let total: u32 = self.cores.iter().map(|span| span.to - span.from).sum();
        let bits = typed.map_or(total as usize * 6 + rows * 4, |t| t.1);
        if rows >= CODES_ROWS_MIN
            && let Some(cost) = self.dictionary(bytes)
            && cost < bits
        {
            data.truncate(start);
            data.extend(self.codes.iter().map(|code| u64::from(*code)));
            let first = u32::try_from(dictionary.len()).unwrap_or(u32::MAX);
            self.firsts.iter().for_each(|span| dictionary.push(text(bytes, *span)));
            let count = u16::try_from(self.firsts.len()).unwrap_or(u16::MAX);
            return Slot::Codes { first, count };
        }
        if let Some((slot @ Slot::Int { .. }, _)) = typed {
            return slot;
        }
        data.extend(self.cores.iter().map(|s| u64::from(s.from) << 32 | u64::from(s.to)));
        typed.map_or(Slot::Text { word: f.classes & class::WORD != 0 }, |t| t.0)
    }

    /// Numbers the distinct values, if there are few; returns about how many bits that takes.
    fn dictionary(&mut self, bytes: &[u8]) -> Option<usize> {
        let ColumnAnalyser { hasher, distinct, firsts, counts, codes, cores } = self;
        distinct.clear();
        firsts.clear();
        counts.clear();
        codes.clear();
        let mut changes = 0;
        for (row, span) in cores.iter().enumerate() {
            let value = text(bytes, *span);
            let value_of = |code: u32| firsts.get(code as usize).map(|s| text(bytes, *s));
            let last = codes.last().map(|code| u32::from(*code));
            if let Some(last) = last
                && value_of(last) == Some(value)
            {
                codes.push(last.to_le_bytes()[0]);
                *counts.get_mut(last as usize)? += 1;
                continue;
            }
            changes += 1;
            let hash = hasher.hash_one(value);
            let found = distinct.find(hash, |code| value_of(*code) == Some(value)).copied();
            let code = match found {
                Some(code) => {
                    *counts.get_mut(code as usize)? += 1;
                    code
                }
                None => {
                    let few = firsts.len() < CODES_MAX
                        && (row < CODES_TRIAL || firsts.len() * 4 < row * 3);
                    if !few {
                        return None;
                    }
                    let code = u32::try_from(firsts.len()).ok()?;
                    firsts.push(*span);
                    counts.push(1);
                    distinct.insert_unique(hash, code, |code| {
                        firsts.get(*code as usize).map_or(0, |s| hasher.hash_one(text(bytes, *s)))
                    });
                    code
                }
            };
            codes.push(code.to_le_bytes()[0]);
        }
        let text: u32 = firsts.iter().map(|span| span.to - span.from).sum();
        let by_runs = changes * 14;
        Some(
            entropy_bits(counts, codes.len()).min(by_runs)
                + text as usize * 4
                + firsts.len() * 4
                + 16,
        )
    }
}

/// About the bits of `rows` codes, of which each occurs as often as `counts` says.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "an estimate, of at most 65,536 codes"
)]
fn entropy_bits(counts: &[u32], rows: usize) -> usize {
    let rows = rows as f32;
    let bits: f32 = counts.iter().map(|count| *count as f32 * (rows / *count as f32).log2()).sum();
    bits as usize
}

enum Kind {
    Number,
    Hex { upper: bool },
}

/// Whether all values are numbers or hex digits that come back from fewer bits.
fn number_or_hex(f: &Facts) -> Option<Kind> {
    if f.min_len == 0 {
        return None;
    }
    let fixed = f.min_len == f.max_len;
    if f.classes & class::DIGIT != 0 && f.max_len as usize <= DIGITS_MAX && (f.canonical || fixed) {
        return Some(Kind::Number);
    }
    let hex = fixed && (2..=HEX_MAX).contains(&(f.max_len as usize));
    match f.classes & (class::LOWER | class::UPPER) {
        0 => None,
        _ if !hex => None,
        classes => Some(Kind::Hex { upper: classes & class::LOWER == 0 }),
    }
}

/// Appends the numbers less the least one; returns the slot and its bits.
fn numbers(bytes: &[u8], values: &[Span], f: &Facts, data: &mut Vec<u64>) -> (Slot, usize) {
    let start = data.len();
    let (mut base, mut max) = (u64::MAX, 0);
    for span in values {
        let n = number_of(text(bytes, *span));
        base = base.min(n);
        max = max.max(n);
        data.push(n);
    }
    data.iter_mut().skip(start).for_each(|n| *n -= base);
    let width = 64 - (max - base).leading_zeros();
    let width = u8::try_from(width).unwrap_or(64);
    let digits = if f.canonical { 0 } else { u8::try_from(f.max_len).unwrap_or(0) };
    (Slot::Int { digits, base, width }, values.len() * usize::from(width) + 32)
}

/// The lengths of what all values share at their start and end. Neither touches a digit of the
/// rest with a digit, so that numbers stay whole.
fn affixes(bytes: &[u8], values: &[Span]) -> (u32, u32) {
    let Some(first) = values.first() else { return (0, 0) };
    let value = text(bytes, *first);
    let mut start = value;
    for span in values {
        let same = start.iter().zip(text(bytes, *span)).take_while(|(a, b)| a == b).count();
        start = start.get(..same).unwrap_or(&[]);
    }
    while let [rest @ .., last] = start
        && last.is_ascii_digit()
    {
        start = rest;
    }
    let mut end = value.get(start.len()..).unwrap_or(&[]);
    for span in values {
        let rest = text(bytes, *span).get(start.len()..).unwrap_or(&[]);
        let same = end.iter().rev().zip(rest.iter().rev()).take_while(|(a, b)| a == b).count();
        end = end.get(end.len() - same..).unwrap_or(&[]);
    }
    while let [first, rest @ ..] = end
        && first.is_ascii_digit()
    {
        end = rest;
    }
    let len = |text: &[u8]| u32::try_from(text.len()).unwrap_or(0);
    (len(start), len(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(values: &[&str]) -> (Form, Vec<u64>, TextVec) {
        let bytes = values.concat().into_bytes();
        let mut spans = Vec::new();
        let mut from = 0;
        for value in values {
            let to = from + u32::try_from(value.len()).unwrap();
            spans.push(Span { from, to });
            from = to;
        }
        let (mut dictionary, mut data) = (TextVec::new(), Vec::new());
        let form = ColumnAnalyser::default().analyse(&bytes, &spans, &mut dictionary, &mut data);
        (form, data, dictionary)
    }

    fn slot(prefix: u32, suffix: u32, slot: Slot) -> Form {
        Form::Slot { prefix, suffix, slot, digit: true }
    }

    #[test]
    fn columns_get_the_type_of_their_values() {
        let int = |digits, base, width| Slot::Int { digits, base, width };
        assert_eq!(form(&["a7", "a7"]).0, Form::Constant);
        assert_eq!(form(&["7", "12"]), (slot(0, 0, int(0, 7, 3)), vec![0, 5], TextVec::new()));
        assert_eq!(form(&["07", "12"]).0, slot(0, 0, int(2, 7, 3)));
        assert_eq!(form(&["v07ms", "v12ms"]).0, slot(1, 2, int(2, 7, 3)));
        assert_eq!(form(&["0x3a", "0x4b"]).0, slot(2, 0, Slot::Hex { digits: 2, upper: false }));
        assert_eq!(form(&["AA0", "0BB"]).0, slot(0, 0, Slot::Hex { digits: 3, upper: true }));
        assert_eq!(form(&["x1y", "x1"]).0, slot(1, 0, Slot::Text { word: true }));
        assert_eq!(form(&["a1b", "a1b1b"]).0, slot(0, 0, Slot::Text { word: true }));
        assert_eq!(form(&["7-", "12"]).0, slot(0, 0, Slot::Text { word: false }));
        let raw = Slot::Text { word: false };
        let no_digit = Form::Slot { prefix: 0, suffix: 0, slot: raw, digit: false };
        assert_eq!(form(&["\0", "\0"]).0, no_digit);
        assert_eq!(form(&["18446744073709551616", "1"]).0, slot(0, 0, Slot::Text { word: true }));
    }

    #[test]
    fn few_distinct_values_become_codes() {
        let values: Vec<&str> = (0..40).map(|i| if i < 20 { "1000000" } else { "g9" }).collect();
        let (form, data, dictionary) = form(&values);
        assert_eq!(form, slot(0, 0, Slot::Codes { first: 0, count: 2 }));
        assert_eq!(data, (0..40).map(|i| u64::from(i >= 20)).collect::<Vec<_>>());
        assert_eq!(dictionary.iter().collect::<Vec<_>>(), [&b"1000000"[..], b"g9"]);
    }
}
