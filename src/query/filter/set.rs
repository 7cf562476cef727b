//! Sets of needles: exact values, and phrases of which any may stand in a text.

use std::collections::HashSet;

use super::chars::{ends_with_word_char, starts_with_word_char};
use super::many::Many;
use super::phrase::{Phrase, is_bounded};

/// Sets up to this size are searched one by one.
const SMALL: usize = 6;

/// A set of whole values.
#[derive(Debug, Clone, Default)]
pub(crate) struct TextSet {
    values: Vec<Box<[u8]>>,
    table: HashSet<Box<[u8]>, foldhash::fast::RandomState>,
}

impl TextSet {
    /// The set of `values`; repeated ones count once.
    pub(crate) fn new(values: impl IntoIterator<Item = Vec<u8>>) -> TextSet {
        let mut values: Vec<Box<[u8]>> = values.into_iter().map(Vec::into_boxed_slice).collect();
        values.sort_unstable();
        values.dedup();
        let table = if values.len() > SMALL {
            values.iter().cloned().collect()
        } else {
            HashSet::default()
        };
        TextSet { values, table }
    }

    /// Whether `value` is in the set.
    pub(crate) fn contains(&self, value: &[u8]) -> bool {
        if self.is_small() {
            self.values.iter().any(|v| **v == *value)
        } else {
            self.table.contains(value)
        }
    }

    /// Whether the set is so small that each value is looked at by itself.
    pub(super) fn is_small(&self) -> bool {
        self.values.len() <= SMALL
    }

    /// Bytes of memory held, about.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.values.iter().map(|v| 2 * v.len() + 56).sum()
    }

    /// The values, sorted.
    pub(crate) fn values(&self) -> &[Box<[u8]>] {
        &self.values
    }
}

/// A needle, and on which sides no word may go on.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Bounded {
    bytes: Box<[u8]>,
    bounds: (bool, bool),
}

impl Bounded {
    /// A word or phrase.
    pub(crate) fn phrase(needle: &[u8]) -> Bounded {
        let bounds = (starts_with_word_char(needle), ends_with_word_char(needle));
        Bounded { bytes: Box::from(needle), bounds }
    }

    /// A prefix of a word.
    pub(crate) fn prefix(needle: &[u8]) -> Bounded {
        let bounds = (starts_with_word_char(needle), false);
        Bounded { bytes: Box::from(needle), bounds }
    }

    /// A substring.
    pub(crate) fn substring(needle: &[u8]) -> Bounded {
        Bounded { bytes: Box::from(needle), bounds: (false, false) }
    }

    /// The needle.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Whether no word may go on to the left, to the right.
    pub(crate) fn bounds(&self) -> (bool, bool) {
        self.bounds
    }

    /// Whether the needle, which stands at `start` of `text`, has the neighbours it must have.
    pub(super) fn fits(&self, text: &[u8], start: usize) -> bool {
        let (left, right) = self.bounds;
        is_bounded(text, start, self.bytes.len(), left, right)
    }

    /// Ready to be searched by itself.
    pub(super) fn to_phrase(&self) -> Phrase {
        Phrase::bounded_by(&self.bytes, self.bounds)
    }
}

/// Phrases, prefixes and substrings of which one has to stand in the text.
#[derive(Debug, Clone)]
pub(crate) struct PhraseSet {
    needles: Vec<Bounded>,
    /// Whether the empty phrase, which stands for the empty value, is one of them.
    empty: bool,
    search: Search,
}

/// How needles are searched.
#[derive(Debug, Clone)]
enum Search {
    /// One by one.
    Each(Vec<Phrase>),
    /// All at once.
    All(Box<Many>),
}

impl PhraseSet {
    /// The set of `needles` as phrases.
    #[cfg(test)]
    pub(crate) fn new<'a>(needles: impl IntoIterator<Item = &'a [u8]>) -> PhraseSet {
        PhraseSet::of(needles.into_iter().map(Bounded::phrase).collect())
    }

    /// The set of `needles`; repeated ones count once.
    pub(crate) fn of(mut needles: Vec<Bounded>) -> PhraseSet {
        needles.sort_unstable();
        needles.dedup();
        let empty = needles.first().is_some_and(|n| n.bytes.is_empty());
        needles.retain(|n| !n.bytes.is_empty());
        let each = || Search::Each(needles.iter().map(Bounded::to_phrase).collect());
        let search = match needles.len() {
            0..=SMALL => each(),
            // An automaton that is too large to build is no error.
            _ => Many::of(&needles).map_or_else(each, |many| Search::All(Box::new(many))),
        };
        PhraseSet { needles, empty, search }
    }

    /// Whether one of the needles stands in `text`.
    pub(crate) fn is_match(&self, text: &[u8]) -> bool {
        if text.is_empty() { self.empty } else { self.any_hit(text, |_, _| true) }
    }

    /// The needles but the empty one.
    pub(crate) fn needles(&self) -> &[Bounded] {
        &self.needles
    }

    /// The needles, if they are so few that each is searched by itself.
    pub(super) fn few(&self) -> Option<&[Phrase]> {
        match &self.search {
            Search::Each(phrases) => Some(phrases),
            Search::All(_) => None,
        }
    }

    /// Whether a needle that `accept` lets through stands in `text`.
    pub(super) fn any_hit(&self, text: &[u8], accept: impl Fn(&Bounded, usize) -> bool) -> bool {
        let fits = |n: &Bounded, start| n.fits(text, start) && accept(n, start);
        match &self.search {
            Search::All(many) => many.any_hit(&self.needles, text, |number, start| {
                let needle = self.needles.get(number as usize);
                needle.is_some_and(|n| fits(n, start))
            }),
            Search::Each(phrases) => phrases.iter().zip(&self.needles).any(|(phrase, needle)| {
                let hits =
                    std::iter::successors(phrase.next(text, 0), |at| phrase.next(text, at + 1));
                hits.into_iter().any(|start| fits(needle, start))
            }),
        }
    }

    /// Whether the empty value matches.
    pub(crate) fn has_empty(&self) -> bool {
        self.empty
    }

    /// Bytes of memory held, about.
    pub(crate) fn heap_bytes(&self) -> usize {
        let needles: usize = self.needles.iter().map(|n| n.bytes.len() + 48).sum();
        needles
            + match &self.search {
                Search::All(many) => many.heap_bytes(),
                Search::Each(phrases) => phrases.len() * 256,
            }
    }
}

/// Most upper-case letters of a text whose common spellings are listed.
pub(crate) const MAX_COMMON_CASE_UPPER: usize = 10;

/// The common spellings of a text: as it stands, all upper-case, and with any choice of its
/// upper-case letters lowered. `None` if it has too many upper-case letters.
pub(crate) fn common_cases(text: &str) -> Option<Vec<String>> {
    let upper = text.chars().filter(|c| c.is_uppercase()).count();
    if upper > MAX_COMMON_CASE_UPPER {
        return None;
    }
    let mut out: Vec<String> = (0..1u32 << upper)
        .map(|kept| {
            let mut n = 0;
            let spell = |c: char| {
                if !c.is_uppercase() {
                    return c;
                }
                n += 1;
                if kept >> (n - 1) & 1 == 1 { c } else { super::chars::lower_char(c) }
            };
            text.chars().map(spell).collect()
        })
        .collect();
    out.push(text.chars().map(|c| c.to_uppercase().next().unwrap_or(c)).collect());
    out.sort_unstable();
    out.dedup();
    Some(out)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::testing::adversarial_text;
    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]
        #[test]
        fn sets_equal_their_members(
            members in prop::collection::vec(adversarial_text(), 0..14),
            text in adversarial_text(),
        ) {
            let set = TextSet::new(members.iter().map(|m| m.as_bytes().to_vec()));
            prop_assert_eq!(set.contains(text.as_bytes()), members.contains(&text));
            let phrases = PhraseSet::new(members.iter().map(|m| m.as_bytes()));
            let naive = members.iter().any(|m| match m.as_str() {
                "" => text.is_empty(),
                m => Phrase::new(m.as_bytes()).find_end(text.as_bytes()).is_some(),
            });
            prop_assert_eq!(phrases.is_match(text.as_bytes()), naive);
        }
    }

    #[test]
    fn common_spellings() {
        assert_eq!(common_cases("Error").unwrap(), ["ERROR", "Error", "error"]);
        assert_eq!(common_cases("aB").unwrap(), ["AB", "aB", "ab"]);
        assert_eq!(common_cases("").unwrap(), [""]);
        assert!(common_cases(&"A".repeat(11)).is_none());
    }
}
