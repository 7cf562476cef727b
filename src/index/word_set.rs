//! The distinct words of a column, as filters hold them.

use super::filter::HashSet64;
use super::tokenizer::{WordClass, for_each_word, pieces, word_hash};
use super::vocabulary::WORD_MAX;
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

/// Collects the words of a column by class, each once.
///
/// Words of logs come again and again: short ones that came lately are known by their bytes, and
/// are neither hashed nor looked for in the set.
#[derive(Debug)]
pub(crate) struct WordSet {
    plain: Words,
    pieces: Words,
    digits: HashSet64,
    /// More words with digits are not of interest.
    most_digits: usize,
    recent: Box<[Short; RECENT]>,
    /// One bit for each byte of the column: whether it is in a word.
    masks: Vec<u64>,
}

/// The words of a class that has vocabularies.
#[derive(Debug, Default)]
struct Words {
    hashes: HashSet64,
    texts: TextVec,
    /// More bytes are not of interest.
    most: usize,
    is_full: bool,
}

/// How much of each class is of interest.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MostWords {
    /// Bytes of plain words.
    pub(crate) plain: usize,
    /// Bytes of pieces.
    pub(crate) pieces: usize,
    /// The number of words with digits.
    pub(crate) digits: usize,
}

impl Words {
    fn clear(&mut self, most: usize) {
        self.hashes.clear();
        self.texts.clear();
        (self.most, self.is_full) = (most, false);
    }

    #[inline]
    fn insert(&mut self, word: &[u8]) {
        if !self.is_full && self.hashes.insert(word_hash(word)) {
            self.texts.push(word);
            self.is_full = self.texts.bytes().len() > self.most || word.len() > WORD_MAX;
        }
    }

    /// The words, ascending; none if they are too many.
    fn sorted(&self) -> Option<TextVec> {
        if self.is_full {
            return None;
        }
        let mut words: Vec<&[u8]> = self.texts.iter().collect();
        words.sort_unstable();
        Some(words.into_iter().collect())
    }
}

impl WordSet {
    /// No words.
    pub(crate) fn new() -> WordSet {
        WordSet {
            plain: Words::default(),
            pieces: Words::default(),
            digits: HashSet64::default(),
            most_digits: 0,
            recent: Box::new([[0; 2]; RECENT]),
            masks: Vec::new(),
        }
    }

    /// Makes the set that of the words of all values. Of a class with more than its `most` it
    /// holds some, and more than that.
    pub(crate) fn fill(&mut self, values: &TextVec, most: MostWords) {
        self.plain.clear(most.plain);
        self.pieces.clear(most.pieces);
        self.digits.clear();
        self.most_digits = most.digits;
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
                for_each_word(value, |_, word| self.insert(word));
            }
            if self.plain.is_full && self.pieces.is_full && self.has_too_many_digits() {
                return;
            }
            start = end;
        }
    }

    /// All plain words, ascending; none if they are too many.
    pub(crate) fn plain(&self) -> Option<TextVec> {
        self.plain.sorted()
    }

    /// All pieces of words with digits, ascending; none if they are too many.
    pub(crate) fn pieces(&self) -> Option<TextVec> {
        self.pieces.sorted()
    }

    /// The hashes of the words with digits.
    pub(crate) fn digits(&self) -> &HashSet64 {
        &self.digits
    }

    fn has_too_many_digits(&self) -> bool {
        self.digits.len() > self.most_digits
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
        self.insert(bytes.get(start..end).unwrap_or(&[]));
    }

    #[inline]
    fn insert(&mut self, word: &[u8]) {
        match WordClass::of(word) {
            None => {}
            Some(WordClass::Plain) => self.plain.insert(word),
            Some(_) => {
                let is_new = self.has_too_many_digits() || self.digits.insert(word_hash(word));
                if is_new && !self.pieces.is_full {
                    pieces(word, |_, piece| self.pieces.insert(piece));
                }
            }
        }
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

    /// Plain words, pieces, hashes of words with digits.
    type Naive = (BTreeSet<Vec<u8>>, BTreeSet<Vec<u8>>, BTreeSet<u64>);

    fn words(values: &[Vec<u8>]) -> Naive {
        let mut out = Naive::default();
        for value in values {
            for_each_word(value, |_, word| match WordClass::of(word) {
                Some(WordClass::Plain) => {
                    out.0.insert(word.to_vec());
                }
                Some(_) => {
                    out.2.insert(word_hash(word));
                    pieces(word, |_, piece| {
                        out.1.insert(piece.to_vec());
                    });
                }
                None => {}
            });
        }
        out
    }

    fn bytes(words: &BTreeSet<Vec<u8>>) -> usize {
        words.iter().map(Vec::len).sum()
    }

    fn set(words: Option<TextVec>) -> Option<BTreeSet<Vec<u8>>> {
        let words = words?;
        assert!(words.iter().is_sorted(), "words ascend");
        Some(words.iter().map(<[u8]>::to_vec).collect())
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
                let long = |words: &BTreeSet<Vec<u8>>| words.iter().any(|w| w.len() > WORD_MAX);
                let most = MostWords {
                    plain: bytes(&want.0),
                    pieces: bytes(&want.1),
                    digits: want.2.len(),
                };
                set.fill(&column, most);
                prop_assert_eq!(self::set(set.plain()), (!long(&want.0)).then(|| want.0.clone()));
                prop_assert_eq!(self::set(set.pieces()), (!long(&want.1)).then(|| want.1.clone()));
                prop_assert_eq!(set.digits().iter().collect::<BTreeSet<_>>(), want.2.clone());
                let less = MostWords { plain: 0, pieces: most.pieces, digits: most.digits / 2 };
                set.fill(&column, less);
                prop_assert_eq!(set.plain().is_some(), want.0.is_empty());
                prop_assert_eq!(self::set(set.pieces()), (!long(&want.1)).then(|| want.1.clone()));
                let some = set.digits().len();
                prop_assert!(some > less.digits || some == want.2.len());
                prop_assert!(set.digits().iter().all(|hash| want.2.contains(&hash)));
            }
        }
    }
}
