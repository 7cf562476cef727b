//! The distinct words of a column, as filters hold them.

use super::filter::HashSet64;
use super::tokenizer::{PerClass, WordClass, for_each_word, word_hash};
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

/// Collects the hashes of the words of a column by class, each once.
///
/// Words of logs come again and again: short ones that came lately are known by their bytes, and
/// are neither hashed nor looked for in the set.
#[derive(Debug)]
pub(crate) struct WordSet {
    hashes: PerClass<HashSet64>,
    /// More words of a class are not of interest.
    most: PerClass<usize>,
    recent: Box<[Short; RECENT]>,
    /// One bit for each byte of the column: whether it is in a word.
    masks: Vec<u64>,
}

impl WordSet {
    /// No words.
    pub(crate) fn new() -> WordSet {
        WordSet {
            hashes: PerClass::default(),
            most: PerClass::default(),
            recent: Box::new([[0; 2]; RECENT]),
            masks: Vec::new(),
        }
    }

    /// Makes the set that of the words of all values. Of a class with more words than its `most`
    /// it holds some, one more than that.
    pub(crate) fn fill(&mut self, values: &TextVec, most: PerClass<usize>) {
        self.hashes.iter_mut().for_each(HashSet64::clear);
        self.most = most;
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
            if self.hashes.iter().zip(&most).all(|(words, most)| words.len() > *most) {
                return;
            }
            start = end;
        }
    }

    /// The hashes of the words of a class.
    pub(crate) fn of(&self, class: WordClass) -> &HashSet64 {
        let [plain, digits] = &self.hashes;
        match class {
            WordClass::Plain => plain,
            WordClass::Digits => digits,
        }
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
        let Some(class) = WordClass::of(word) else { return };
        if let Some(hashes) = self.hashes.get_mut(class as usize)
            && self.most.get(class as usize).is_some_and(|most| hashes.len() <= *most)
        {
            hashes.insert(word_hash(word));
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

    fn words(values: &[Vec<u8>]) -> PerClass<BTreeSet<u64>> {
        let mut out = PerClass::<BTreeSet<u64>>::default();
        for value in values {
            for_each_word(value, |_, word| {
                if let Some(class) = WordClass::of(word) {
                    out[class as usize].insert(word_hash(word));
                }
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
                let most = want.each_ref().map(BTreeSet::len);
                set.fill(&column, most);
                for (class, want) in WordClass::ALL.into_iter().zip(&want) {
                    prop_assert_eq!(set.of(class).len(), want.len());
                    prop_assert_eq!(&set.of(class).iter().collect::<BTreeSet<_>>(), want);
                }
                let less = most.map(|most| most / 2);
                set.fill(&column, less);
                for (class, want) in WordClass::ALL.into_iter().zip(&want) {
                    let (some, less) = (set.of(class).len(), less[class as usize]);
                    prop_assert!(some > less || some == want.len());
                    prop_assert!(set.of(class).iter().all(|hash| want.contains(&hash)));
                }
            }
        }
    }
}
