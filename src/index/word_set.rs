//! The distinct words of a column, as filters hold them.

use super::filter::HashSet64;
use super::tokenizer::{for_each_word, word_hash};
use crate::record::{TextVec, between, digits, fill_masks, letters, next_clear, next_set};

/// Words seen lately that are remembered as they are: a power of two.
const RECENT: usize = 1_024;
/// Words of more bytes are not remembered.
const SHORT: usize = 16;

/// A short word, with zeros behind; a word has no byte 0.
type Short = [u64; 2];

/// For each length, the bytes of a short word.
#[expect(
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "a table, made by the compiler"
)]
const MASKS: [Short; SHORT + 1] = {
    let mut masks = [[0; 2]; SHORT + 1];
    let mut len = 1;
    while len <= SHORT {
        let all = u128::MAX >> (128 - 8 * len);
        masks[len] = [(all & u64::MAX as u128) as u64, (all >> 64) as u64];
        len += 1;
    }
    masks
};

/// Collects the hashes of the words of a column, each once.
///
/// Words of logs come again and again: short ones that came lately are known by their bytes, and
/// are neither hashed nor looked for in the set.
#[derive(Debug)]
pub(crate) struct WordSet {
    hashes: HashSet64,
    recent: Box<[Short; RECENT]>,
    /// One bit for each byte of the column: whether it is in a word.
    masks: Vec<u64>,
}

impl WordSet {
    /// No words.
    pub(crate) fn new() -> WordSet {
        let (hashes, masks) = (HashSet64::default(), Vec::new());
        WordSet { hashes, recent: Box::new([[0; 2]; RECENT]), masks }
    }

    /// Makes the set that of the words of all values; false if they are more than `most`, and the
    /// set then is of no use.
    pub(crate) fn fill(&mut self, values: &TextVec, most: usize) -> bool {
        self.hashes.clear();
        self.recent.fill([0; 2]);
        let ascii = values.bytes().is_ascii();
        fill_masks(values.bytes(), &mut self.masks, word_bytes);
        let mut start = 0;
        for end in values.ends() {
            let end = *end as usize;
            let value = values.bytes().get(start..end).unwrap_or(&[]);
            if ascii || value.is_ascii() {
                self.add_marked(values.bytes(), start, end);
            } else {
                for_each_word(value, |_, word| {
                    self.hashes.insert(word_hash(word));
                });
            }
            if self.hashes.len() > most {
                return false;
            }
            start = end;
        }
        true
    }

    /// The number of distinct words.
    pub(crate) fn len(&self) -> usize {
        self.hashes.len()
    }

    /// The hashes of all words.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        self.hashes.iter()
    }

    /// Adds the words that the masks show between two bytes.
    #[inline]
    fn add_marked(&mut self, bytes: &[u8], mut at: usize, end: usize) {
        loop {
            let start = next_set(&self.masks, at, end);
            if start >= end {
                return;
            }
            at = next_clear(&self.masks, start, end);
            self.add(bytes, start, at);
        }
    }

    #[inline]
    fn add(&mut self, bytes: &[u8], start: usize, end: usize) {
        if let Some(mask) = MASKS.get(end - start)
            && let Some(head) = bytes.get(start..).and_then(|rest| rest.first_chunk::<SHORT>())
            && let ([low, high], _) = head.as_chunks::<8>()
        {
            let low = u64::from_le_bytes(*low) & mask[0];
            let high = u64::from_le_bytes(*high) & mask[1];
            if let Some(recent) = self.recent.get_mut(place(low, high)) {
                if *recent == [low, high] {
                    return;
                }
                *recent = [low, high];
            }
        }
        self.hashes.insert(word_hash(bytes.get(start..end).unwrap_or(&[])));
    }
}

/// Where a short word is remembered.
#[inline]
fn place(low: u64, high: u64) -> usize {
    let mixed = (low ^ high.rotate_left(31)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    usize::try_from(mixed >> 32).unwrap_or(0) % RECENT
}

/// The bytes of words of ASCII.
#[inline]
fn word_bytes(bytes: u64) -> u64 {
    letters(bytes) | digits(bytes) | between(bytes, b'_', b'_')
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn words(values: &[Vec<u8>]) -> BTreeSet<u64> {
        let mut out = BTreeSet::new();
        for value in values {
            for_each_word(value, |_, word| {
                out.insert(word_hash(word));
            });
        }
        out
    }

    fn text() -> impl Strategy<Value = Vec<u8>> {
        prop_oneof![
            "[a-c0-9_ ./-]{0,40}".prop_map(String::into_bytes),
            "[a-z]{0,80}".prop_map(String::into_bytes),
            "[a\u{e9}\u{4e2d}_ 7]{0,12}".prop_map(String::into_bytes),
            prop::collection::vec(any::<u8>(), 0..90),
            prop::collection::vec(0u8..128, 0..200),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]
        #[test]
        fn the_words_are_those_of_the_tokenizer(
            first in prop::collection::vec(text(), 0..30),
            second in prop::collection::vec("[ -~]{0,70}".prop_map(String::into_bytes), 0..30),
        ) {
            let mut set = WordSet::new();
            for values in [&first, &second, &first] {
                let column: TextVec = values.iter().map(Vec::as_slice).collect();
                let want = words(values);
                prop_assert!(set.fill(&column, want.len()));
                prop_assert_eq!(set.len(), want.len());
                prop_assert_eq!(set.iter().collect::<BTreeSet<_>>(), want.clone());
                if !want.is_empty() {
                    prop_assert!(!set.fill(&column, want.len() - 1));
                }
            }
        }
    }
}
