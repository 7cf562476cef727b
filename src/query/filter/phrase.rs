//! Words, phrases, prefixes and substrings: a needle with conditions on its neighbours.

use aho_corasick::Span;
use aho_corasick::packed::Searcher;
use memchr::memmem::Finder;

use super::chars::{ends_with_word_char, push_lower, starts_with_word_char};

/// A needle, and whether the character before or after it may belong to a word.
#[derive(Debug, Clone)]
pub(crate) struct Phrase {
    finder: Finder<'static>,
    left: bool,
    right: bool,
}

impl Phrase {
    /// A word or phrase: bounded on each side where the needle itself has a word character.
    pub(crate) fn new(needle: &[u8]) -> Phrase {
        let (left, right) = (starts_with_word_char(needle), ends_with_word_char(needle));
        Phrase { finder: Finder::new(needle).into_owned(), left, right }
    }

    /// A prefix of a word: bounded on the left only.
    pub(crate) fn prefix(needle: &[u8]) -> Phrase {
        Phrase { right: false, ..Phrase::new(needle) }
    }

    /// A substring: no bounds.
    pub(crate) fn substring(needle: &[u8]) -> Phrase {
        Phrase { left: false, right: false, finder: Finder::new(needle).into_owned() }
    }

    /// A needle where no word may go on to the left, to the right, if `bounds` say so.
    pub(super) fn bounded_by(needle: &[u8], (left, right): (bool, bool)) -> Phrase {
        Phrase { left, right, finder: Finder::new(needle).into_owned() }
    }

    /// The needle.
    pub(crate) fn needle(&self) -> &[u8] {
        self.finder.needle()
    }

    /// Whether a word may not go on to the left, to the right of the needle.
    pub(crate) fn bounds(&self) -> (bool, bool) {
        (self.left, self.right)
    }

    /// The end of the leftmost match.
    pub(crate) fn find_end(&self, text: &[u8]) -> Option<usize> {
        let len = self.needle().len();
        let mut from = 0;
        while let Some(at) = text.get(from..).and_then(|rest| self.finder.find(rest)) {
            let start = from + at;
            if self.bounded(text, start) {
                return Some(start + len);
            }
            from = start + 1;
        }
        None
    }

    /// Whether the needle, which stands at `start` of `text`, has the neighbours it must have.
    #[inline]
    pub(crate) fn bounded(&self, text: &[u8], start: usize) -> bool {
        is_bounded(text, start, self.needle().len(), self.left, self.right)
    }

    /// The next place at or behind `from` where the needle stands, neighbours not considered.
    #[inline]
    pub(crate) fn next(&self, text: &[u8], from: usize) -> Option<usize> {
        Some(from + self.finder.find(text.get(from..)?)?)
    }
}

/// Whether a needle of `len` bytes at `start` has no word that goes on where it must not.
#[inline]
pub(super) fn is_bounded(text: &[u8], start: usize, len: usize, left: bool, right: bool) -> bool {
    (!left || !ends_with_word_char(text.get(..start).unwrap_or(&[])))
        && (!right || !starts_with_word_char(text.get(start + len..).unwrap_or(&[])))
}

/// A [`Phrase`] that ignores case: both sides are compared in lower case, character by character.
#[derive(Debug, Clone)]
pub(crate) struct FoldedPhrase {
    /// In lower case already.
    phrase: Phrase,
    rare: Rare,
}

/// What is searched first: the least frequent bytes of the needle, in all their cases.
#[derive(Debug, Clone)]
enum Rare {
    /// No ASCII text holds a needle that has a character beyond ASCII.
    Nothing,
    /// One byte in both cases, and its place.
    Byte(u8, u8, usize),
    /// All spellings of a few bytes, and their place.
    Bytes(Searcher, usize),
}

/// Bytes that are searched at once: there are eight spellings of three letters.
const RARE_LEN: usize = 3;

impl Rare {
    fn of(needle: &[u8]) -> Rare {
        if !needle.is_ascii() {
            return Rare::Nothing;
        }
        let windows = needle.windows(RARE_LEN).enumerate();
        let common =
            |(_, w): &(usize, &[u8])| w.iter().map(|b| u32::from(frequency(*b))).sum::<u32>();
        if let Some((at, window)) = windows.min_by_key(common)
            && let Some(searcher) = Searcher::new(spellings(window))
        {
            return Rare::Bytes(searcher, at);
        }
        let place = needle.iter().enumerate().min_by_key(|(_, b)| frequency(**b));
        place.map_or(Rare::Nothing, |(i, &b)| Rare::Byte(b, b.to_ascii_uppercase(), i))
    }

    /// The first place at or behind `from` where they stand, and their place in the needle.
    fn find(&self, text: &[u8], from: usize) -> Option<(usize, usize)> {
        match self {
            Rare::Nothing => None,
            Rare::Byte(lower, upper, place) => {
                let from = from + place;
                let at = memchr::memchr2(*lower, *upper, text.get(from..)?)?;
                Some((from + at, *place))
            }
            Rare::Bytes(searcher, place) => {
                let from = from + place;
                if from > text.len() {
                    return None;
                }
                let hit = searcher.find_in(text, Span::from(from..text.len()))?;
                Some((hit.start(), *place))
            }
        }
    }
}

/// All ways to write ASCII letters in lower and upper case.
fn spellings(lower: &[u8]) -> Vec<Vec<u8>> {
    let mut out = vec![Vec::new()];
    for b in lower {
        let upper = b.to_ascii_uppercase();
        let mut longer = Vec::with_capacity(out.len() * 2);
        for start in out {
            if upper != *b {
                longer.push([start.as_slice(), &[upper]].concat());
            }
            longer.push([start.as_slice(), &[*b]].concat());
        }
        out = longer;
    }
    out
}

impl FoldedPhrase {
    /// `i(needle)`.
    pub(crate) fn new(needle: &[u8]) -> FoldedPhrase {
        FoldedPhrase::of(Phrase::new(&lower(needle)))
    }

    /// `i(needle*)`.
    pub(crate) fn prefix(needle: &[u8]) -> FoldedPhrase {
        FoldedPhrase::of(Phrase::prefix(&lower(needle)))
    }

    fn of(phrase: Phrase) -> FoldedPhrase {
        let rare = Rare::of(phrase.needle());
        FoldedPhrase { phrase, rare }
    }

    /// The needle in lower case.
    pub(crate) fn needle(&self) -> &[u8] {
        self.phrase.needle()
    }

    /// The phrase in lower case.
    pub(super) fn phrase(&self) -> &Phrase {
        &self.phrase
    }

    /// Whether `text` holds the phrase.
    pub(crate) fn is_match(&self, text: &[u8]) -> bool {
        if !text.is_ascii() {
            return self.phrase.find_end(&lower(text)).is_some();
        }
        let mut from = 0;
        while let Some(start) = self.next_ascii(text, from) {
            if self.phrase.bounded(text, start) {
                return true;
            }
            from = start + 1;
        }
        false
    }

    /// The next place in an ASCII text, neighbours not considered.
    pub(crate) fn next_ascii(&self, text: &[u8], from: usize) -> Option<usize> {
        let needle = self.phrase.needle();
        let mut from = from;
        loop {
            let (at, place) = self.rare.find(text, from)?;
            let start = at - place;
            let window = text.get(start..start + needle.len())?;
            if window.eq_ignore_ascii_case(needle) {
                return Some(start);
            }
            from = start + 1;
        }
    }

    /// Whether the needle, which stands at `start` of the ASCII text, has the right neighbours.
    pub(crate) fn bounded(&self, text: &[u8], start: usize) -> bool {
        self.phrase.bounded(text, start)
    }
}

fn lower(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    push_lower(text, &mut out);
    out
}

/// How common a byte is in logs, roughly; only speed depends on it.
fn frequency(b: u8) -> u8 {
    match b {
        b' ' => 255,
        b'e' | b't' | b'a' | b'o' | b'i' | b'n' | b's' | b'r' => 200,
        b'0'..=b'9' => 160,
        b'd' | b'l' | b'c' | b'p' | b'm' | b'u' | b'h' | b'f' | b'g' => 120,
        b'.' | b'-' | b'/' | b':' | b'=' | b'"' | b'_' | b',' => 110,
        b'b' | b'y' | b'w' | b'v' | b'k' => 70,
        _ => 30,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::chars::is_word_char;
    use super::super::testing::adversarial_text;
    use super::*;

    /// The definition, on characters.
    fn naive(text: &str, needle: &str, left: bool, right: bool) -> bool {
        text.match_indices(needle).count() > 0
            && (0..=text.len()).any(|i| {
                text.is_char_boundary(i) && text[i..].starts_with(needle) && {
                    let before = text[..i].chars().next_back().is_some_and(is_word_char);
                    let after = text[i + needle.len()..].chars().next().is_some_and(is_word_char);
                    let first = needle.chars().next().is_some_and(is_word_char);
                    let last = needle.chars().next_back().is_some_and(is_word_char);
                    !(left && first && before || right && last && after)
                }
            })
    }

    fn fold(text: &str) -> String {
        text.chars().map(super::super::chars::lower_char).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        #[test]
        fn equals_the_definition(text in adversarial_text(), needle in adversarial_text()) {
            prop_assume!(!needle.is_empty());
            let (t, n) = (text.as_bytes(), needle.as_bytes());
            prop_assert_eq!(
                Phrase::new(n).find_end(t).is_some(), naive(&text, &needle, true, true));
            prop_assert_eq!(
                Phrase::prefix(n).find_end(t).is_some(), naive(&text, &needle, true, false));
            prop_assert_eq!(Phrase::substring(n).find_end(t).is_some(), text.contains(&needle));
            let (lt, ln) = (fold(&text), fold(&needle));
            prop_assert_eq!(FoldedPhrase::new(n).is_match(t), naive(&lt, &ln, true, true));
            prop_assert_eq!(FoldedPhrase::prefix(n).is_match(t), naive(&lt, &ln, true, false));
        }

        #[test]
        fn does_not_panic_on_any_bytes(
            text: Vec<u8>,
            needle in prop::collection::vec(any::<u8>(), 1..4),
        ) {
            let found = Phrase::substring(&needle).find_end(&text).is_some();
            prop_assert_eq!(found, text.windows(needle.len()).any(|w| w == needle));
            Phrase::new(&needle).find_end(&text);
            FoldedPhrase::new(&needle).is_match(&text);
        }
    }

    #[test]
    fn examples() {
        let hit = |p: &str, t: &str| Phrase::new(p.as_bytes()).find_end(t.as_bytes()).is_some();
        assert!(hit("1.2.3.4", "ip=1.2.3.4:80"));
        assert!(!hit("1.2.3.4", "11.2.3.45"));
        assert!(hit("-prone", "error-prone"));
        assert!(!hit("fault", "no_fault"));
        assert!(!hit("fault", "f\u{e4}fault"));
        assert!(hit("fault", "faultfault fault"));
        assert!(FoldedPhrase::new(b"kelvin").is_match("1 \u{212a}ELVIN".as_bytes()));
    }
}
