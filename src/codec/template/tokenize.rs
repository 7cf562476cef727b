//! Cuts a row into template and slots, in one pass over a table of classes.
#![expect(
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "the inner loop of encoding: positions within a row of at most 128 MiB"
)]

use super::{ROW_SLOTS_MAX, SLOT};
use crate::record::{digits, fill_masks, letters, next_clear, next_set};

const DIGIT: u8 = 1;
const LETTER: u8 = 2;
const WORD: u8 = DIGIT | LETTER;
const MARK: u8 = 4;

const CLASS: [u8; 256] = {
    let mut class = [0u8; 256];
    let mut b = 0;
    while b < 256 {
        class[b] = match b as u8 {
            b'0'..=b'9' => DIGIT,
            b'a'..=b'z' | b'A'..=b'Z' => LETTER,
            SLOT => MARK,
            _ => 0,
        };
        b += 1;
    }
    class
};

/// Where a slot's value is, in the bytes of the whole column.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span {
    pub(super) from: u32,
    pub(super) to: u32,
}

/// Puts the template of `row` into `key` and appends its slots, whose places count from `base`.
///
/// A row that holds the byte of a slot, or too many slots, becomes one slot.
pub(super) fn tokenize(row: &[u8], base: u32, key: &mut Vec<u8>, spans: &mut Vec<Span>) {
    key.clear();
    let before = spans.len();
    let (mut at, mut fixed) = (0, 0);
    let mut seen = 0u8;
    while at < row.len() {
        let class = CLASS[row[at] as usize];
        if class & WORD == 0 {
            seen |= class;
            at += 1;
            continue;
        }
        let start = at;
        let mut classes = class;
        at += 1;
        while at < row.len() {
            let class = CLASS[row[at] as usize];
            if class & WORD == 0 {
                break;
            }
            classes |= class;
            at += 1;
        }
        if classes & DIGIT != 0 || (classes == LETTER && is_id_without_digit(row, start, at)) {
            key.extend_from_slice(&row[fixed..start]);
            key.push(SLOT);
            spans.push(Span { from: base + start as u32, to: base + at as u32 });
            fixed = at;
        }
    }
    key.extend_from_slice(&row[fixed..]);
    if seen & MARK != 0 || spans.len() - before > ROW_SLOTS_MAX {
        spans.truncate(before);
        spans.push(Span { from: base, to: base + row.len() as u32 });
        key.clear();
        key.push(SLOT);
    }
}

/// Cuts the rows of a column as [`tokenize`] does, with the classes of all bytes found at once.
#[derive(Debug, Default)]
pub(super) struct Tokenizer {
    /// One bit for each byte: whether it is a letter or a digit.
    words: Vec<u64>,
    /// Whether it is a digit.
    digits: Vec<u64>,
    /// Whether the byte of a slot occurs.
    marked: bool,
}

impl Tokenizer {
    /// Looks at the bytes of all rows.
    pub(super) fn begin(&mut self, bytes: &[u8]) {
        fill_masks(bytes, &mut self.words, |word| letters(word) | digits(word));
        fill_masks(bytes, &mut self.digits, digits);
        self.marked = memchr::memchr(SLOT, bytes).is_some();
    }

    /// Puts the template of the row between two of `bytes` into `key` and appends its slots, whose
    /// places are those in `bytes`.
    #[inline]
    pub(super) fn cut(
        &self,
        bytes: &[u8],
        (from, to): (usize, usize),
        key: &mut Vec<u8>,
        spans: &mut Vec<Span>,
    ) {
        let row = &bytes[from..to];
        if self.marked {
            return tokenize(row, from as u32, key, spans);
        }
        key.clear();
        let before = spans.len();
        let (mut at, mut fixed) = (from, from);
        loop {
            let start = next_set(&self.words, at, to);
            if start >= to {
                break;
            }
            at = next_clear(&self.words, start, to);
            let digit = next_set(&self.digits, start, at) < at;
            if digit || is_id_without_digit(row, start - from, at - from) {
                key.extend_from_slice(&bytes[fixed..start]);
                key.push(SLOT);
                spans.push(Span { from: start as u32, to: at as u32 });
                fixed = at;
            }
        }
        key.extend_from_slice(&bytes[fixed..to]);
        if spans.len() - before > ROW_SLOTS_MAX {
            spans.truncate(before);
            spans.push(Span { from: from as u32, to: to as u32 });
            key.clear();
            key.push(SLOT);
        }
    }
}

/// Whether a run of letters looks like a piece of an id that has no digit by chance, so that a
/// template of its own would be a waste: a group of a UUID, or the random suffix of a pod's name.
/// A word taken for one by mistake costs next to nothing, since constant slots become text again.
fn is_id_without_digit(row: &[u8], from: usize, to: usize) -> bool {
    if !matches!(to - from, 4 | 5 | 8 | 12) {
        return false;
    }
    let dash = (from > 0 && row[from - 1] == b'-') || row.get(to) == Some(&b'-');
    let run = &row[from..to];
    dash && if run.len() == 5 {
        run.iter().all(|b| b.is_ascii_lowercase() && !matches!(b, b'a' | b'e' | b'i' | b'o' | b'u'))
    } else {
        run.iter().all(|b| matches!(b, b'a'..=b'f')) || run.iter().all(|b| matches!(b, b'A'..=b'F'))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]
        #[test]
        fn columns_are_cut_as_rows_are(
            rows in prop::collection::vec(prop_oneof![
                5 => "[a-z0-9 .-]{0,40}".prop_map(String::into_bytes),
                5 => "-?(beef|xkcdw|DEAD|0a|web){1,2}-?".prop_map(String::into_bytes),
                5 => prop::collection::vec(1u8.., 0..100),
                1 => prop::collection::vec(any::<u8>(), 0..100),
                1 => Just(b"1 ".repeat(ROW_SLOTS_MAX + 1)),
            ], 0..12),
        ) {
            let column = rows.concat();
            let mut tokenizer = Tokenizer::default();
            tokenizer.begin(&column);
            let (mut got, mut want) = ((vec![], vec![]), (vec![], vec![]));
            let places = |spans: &[Span]| spans.iter().map(|s| (s.from, s.to)).collect::<Vec<_>>();
            let mut from = 0;
            for row in &rows {
                tokenizer.cut(&column, (from, from + row.len()), &mut got.0, &mut got.1);
                tokenize(row, from as u32, &mut want.0, &mut want.1);
                prop_assert_eq!(&got.0, &want.0);
                prop_assert_eq!(places(&got.1), places(&want.1));
                from += row.len();
            }
        }
    }

    fn cut(row: &str) -> String {
        let (mut key, mut spans) = (Vec::new(), Vec::new());
        tokenize(row.as_bytes(), 0, &mut key, &mut spans);
        let mut spans = spans.iter();
        let mut out = String::new();
        for b in key {
            if b == SLOT {
                let span = spans.next().unwrap();
                out.push_str(&format!("<{}>", &row[span.from as usize..span.to as usize]));
            } else {
                out.push(b as char);
            }
        }
        assert!(spans.next().is_none());
        out
    }

    #[test]
    fn runs_with_digits_are_slots() {
        for (row, want) in [
            ("", ""),
            ("started", "started"),
            ("7", "<7>"),
            ("took 12ms, v1.2", "took <12ms>, <v1>.<2>"),
            ("GET /a/b_3x HTTP/1.1", "GET /a/b_<3x> HTTP/<1>.<1>"),
            ("pod web-mhxgb up", "pod web-<mhxgb> up"),
            (
                "id 0a1b2c3d-beef-4e5f-abcd-001122334455",
                "id <0a1b2c3d>-<beef>-<4e5f>-<abcd>-<001122334455>",
            ),
            ("mixed-Beef dry-cabin beef", "mixed-Beef dry-cabin beef"),
            ("a\0b 7", "<a\0b 7>"),
        ] {
            assert_eq!(cut(row), want);
        }
        let many = "1 ".repeat(ROW_SLOTS_MAX + 1);
        assert_eq!(cut(&many), format!("<{many}>"));
    }
}
