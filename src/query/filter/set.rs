//! Sets of needles: exact values, and phrases of which any may stand in a text.

use std::collections::HashSet;

use aho_corasick::AhoCorasick;

use super::phrase::Phrase;

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
        if self.values.len() <= SMALL {
            self.values.iter().any(|v| **v == *value)
        } else {
            self.table.contains(value)
        }
    }

    /// The values, sorted.
    pub(crate) fn values(&self) -> &[Box<[u8]>] {
        &self.values
    }
}

/// Phrases of which one has to stand in the text.
#[derive(Debug, Clone)]
pub(crate) struct PhraseSet {
    phrases: Vec<Phrase>,
    /// Whether the empty phrase, which stands for the empty value, is one of them.
    empty: bool,
    automaton: Option<AhoCorasick>,
}

impl PhraseSet {
    /// The set of `needles` as phrases.
    pub(crate) fn new<'a>(needles: impl IntoIterator<Item = &'a [u8]>) -> PhraseSet {
        let mut needles: Vec<&[u8]> = needles.into_iter().collect();
        needles.sort_unstable();
        needles.dedup();
        let empty = needles.first().is_some_and(|n| n.is_empty());
        needles.retain(|n| !n.is_empty());
        // An automaton that is too large to build is no error: the phrases are tried in turn.
        let automaton = if needles.len() > SMALL { AhoCorasick::new(&needles).ok() } else { None };
        let phrases = needles.into_iter().map(Phrase::new).collect();
        PhraseSet { phrases, empty, automaton }
    }

    /// Whether one of the phrases stands in `text`.
    pub(crate) fn is_match(&self, text: &[u8]) -> bool {
        if text.is_empty() {
            return self.empty;
        }
        match &self.automaton {
            Some(automaton) => automaton.find_overlapping_iter(text).any(|hit| {
                let phrase = self.phrases.get(hit.pattern().as_usize());
                phrase.is_some_and(|p| p.bounded(text, hit.start()))
            }),
            None => self.phrases.iter().any(|p| p.find_end(text).is_some()),
        }
    }

    /// The phrases but the empty one.
    pub(crate) fn phrases(&self) -> &[Phrase] {
        &self.phrases
    }

    /// Whether the empty value matches.
    pub(crate) fn has_empty(&self) -> bool {
        self.empty
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
