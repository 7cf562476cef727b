//! Conditions on one value, with exact semantics.

use std::cmp::Ordering;

use super::address::parse_ip;
use super::chars::char_count;
use super::json_array;
use super::needs::{MayHold, Needs};
use super::number_range::NumberRange;
use super::pattern::PatternMatcher;
use super::phrase::{FoldedPhrase, Phrase};
use super::set::{PhraseSet, TextSet};
use super::stream;
use crate::index::{Found, Needle, found_all, found_any};
use crate::query::ast::StreamSelector;
use crate::query::regex::Regex;
use crate::record::parse_ipv4;

/// A condition on the value of a field; the value of an absent field is empty.
#[derive(Debug, Clone)]
pub(crate) enum ValuePredicate {
    /// Holds for every value, or for none.
    Const(bool),
    /// The value is empty.
    Empty,
    /// The value is not empty.
    NonEmpty,
    /// A word, phrase, prefix or substring; never the empty one.
    Phrase(Phrase),
    /// A word, phrase or prefix in any case; never the empty one.
    Folded(FoldedPhrase),
    /// The whole value.
    Exact(Box<[u8]>),
    /// The start of the value.
    StartsWith(Box<[u8]>),
    /// One of the values.
    OneOf(TextSet),
    /// All phrases, the longest first, which is the rarest most of the time; never the empty one.
    AllPhrases(Vec<Phrase>),
    /// Some phrase.
    AnyPhrase(PhraseSet),
    /// The phrases one behind the other.
    Sequence(Vec<Phrase>),
    /// The expression matches somewhere.
    Regex(RegexPredicate),
    /// The value reads as a number in the range.
    Numbers(Box<NumberRange>),
    /// The bytes of the value lie in the range.
    Bytes(ByteRange),
    /// The length in characters, both ends included.
    Length(u64, u64),
    /// A dotted quad, both ends included.
    Ipv4(u32, u32),
    /// An address, both ends included.
    Ipv6(u128, u128),
    /// Literals and typed placeholders.
    Pattern(PatternMatcher),
    /// A JSON array with one of these scalars.
    JsonArray(TextSet),
    /// The canonical text of a stream that is selected.
    Stream(StreamSelector),
}

/// A regular expression, and what a text must hold before it is worth running.
#[derive(Debug, Clone)]
pub(crate) struct RegexPredicate {
    /// The expression.
    pub(crate) regex: Regex,
    /// What every match implies.
    pub(crate) needs: Needs,
    /// Literals of which one stands in every match; empty if none are known.
    pub(crate) literals: Vec<Vec<u8>>,
}

/// A range of byte strings; `None` is open.
#[derive(Debug, Clone, Default)]
pub(crate) struct ByteRange {
    /// Lower end and whether it is inside.
    pub(crate) min: Option<(Box<[u8]>, bool)>,
    /// Upper end and whether it is inside.
    pub(crate) max: Option<(Box<[u8]>, bool)>,
}

impl ByteRange {
    /// Whether `value` is inside.
    pub(crate) fn contains(&self, value: &[u8]) -> bool {
        let above = self.min.as_ref().is_none_or(|(min, inclusive)| match value.cmp(min) {
            Ordering::Less => false,
            Ordering::Equal => *inclusive,
            Ordering::Greater => true,
        });
        above
            && self.max.as_ref().is_none_or(|(max, inclusive)| match value.cmp(max) {
                Ordering::Less => true,
                Ordering::Equal => *inclusive,
                Ordering::Greater => false,
            })
    }
}

impl ValuePredicate {
    /// Whether `value` meets the condition.
    pub(crate) fn matches(&self, value: &[u8]) -> bool {
        match self {
            ValuePredicate::Const(answer) => *answer,
            ValuePredicate::Empty => value.is_empty(),
            ValuePredicate::NonEmpty => !value.is_empty(),
            ValuePredicate::Phrase(p) => p.find_end(value).is_some(),
            ValuePredicate::Folded(p) => p.is_match(value),
            ValuePredicate::Exact(v) => **v == *value,
            ValuePredicate::StartsWith(v) => value.starts_with(v),
            ValuePredicate::OneOf(set) => set.contains(value),
            ValuePredicate::AllPhrases(all) => all.iter().all(|p| p.find_end(value).is_some()),
            ValuePredicate::AnyPhrase(set) => set.is_match(value),
            ValuePredicate::Sequence(phrases) => is_sequence(phrases, value),
            ValuePredicate::Regex(r) => r.regex.meta().is_match(value),
            ValuePredicate::Numbers(range) => range.contains(value),
            ValuePredicate::Bytes(range) => range.contains(value),
            ValuePredicate::Length(min, max) => {
                let len = char_count(value) as u64;
                (*min..=*max).contains(&len)
            }
            ValuePredicate::Ipv4(min, max) => {
                parse_ipv4(value).is_some_and(|a| (*min..=*max).contains(&a))
            }
            ValuePredicate::Ipv6(min, max) => {
                parse_ip(value).is_some_and(|a| (*min..=*max).contains(&a))
            }
            ValuePredicate::Pattern(p) => p.is_match(value),
            ValuePredicate::JsonArray(set) => json_array::contains_any(value, set),
            ValuePredicate::Stream(selector) => stream::matches_text(selector, value),
        }
    }

    /// How dear a test is, relative to others; only speed depends on it.
    pub(crate) fn cost(&self) -> u32 {
        match self {
            ValuePredicate::Const(_) => 0,
            ValuePredicate::Empty | ValuePredicate::NonEmpty => 1,
            ValuePredicate::Stream(_) | ValuePredicate::Exact(_) => 2,
            ValuePredicate::StartsWith(_) | ValuePredicate::Bytes(_) => 2,
            ValuePredicate::OneOf(_) => 3,
            ValuePredicate::Numbers(_) | ValuePredicate::Ipv4(..) => 4,
            ValuePredicate::Length(..) => 4,
            ValuePredicate::Phrase(_) => 5,
            ValuePredicate::AllPhrases(_) | ValuePredicate::Sequence(_) => 6,
            ValuePredicate::Ipv6(..) => 6,
            ValuePredicate::Folded(_) => 8,
            ValuePredicate::AnyPhrase(_) => 10,
            ValuePredicate::Pattern(_) | ValuePredicate::JsonArray(_) => 15,
            ValuePredicate::Regex(_) => 20,
        }
    }

    /// Where a value may meet the predicate, by what it needs; `may_hold` says where a text may
    /// stand in a value. `None` where nothing is known.
    pub(crate) fn may_be_met<F: Found, E>(
        &self,
        may_hold: &mut MayHold<'_, F, E>,
    ) -> Result<Option<F>, E> {
        let whole = (true, true);
        match self {
            ValuePredicate::AnyPhrase(set) if !set.has_empty() => {
                may_hold_any(set.needles().iter().map(|n| (n.bytes(), n.bounds())), may_hold)
            }
            ValuePredicate::OneOf(set) if !set.contains(b"") => {
                may_hold_any(set.values().iter().map(|v| (&**v, whole)), may_hold)
            }
            ValuePredicate::AllPhrases(all) => {
                found_all(all.iter().take(MOST_PROBES).map(|phrase| {
                    let (text, bounds) = (phrase.needle(), phrase.bounds());
                    may_hold(&Needle { text, bounds, fold: false }).map(Some)
                }))
            }
            _ => self.needs().may_be_met(may_hold),
        }
    }

    /// Bytes of memory that long lists hold, about.
    pub(crate) fn heap_bytes(&self) -> usize {
        match self {
            ValuePredicate::OneOf(set) | ValuePredicate::JsonArray(set) => set.heap_bytes(),
            ValuePredicate::AnyPhrase(set) => set.heap_bytes(),
            ValuePredicate::AllPhrases(all) | ValuePredicate::Sequence(all) => all.len() * 256,
            _ => 0,
        }
    }

    /// What a value must hold for the predicate to be true.
    pub(crate) fn needs(&self) -> Needs {
        match self {
            ValuePredicate::Phrase(p) => Needs::phrase(p),
            ValuePredicate::Folded(p) => Needs::folded(p),
            ValuePredicate::Exact(v) => Needs::text(v, true, true),
            ValuePredicate::StartsWith(v) => Needs::text(v, true, false),
            // Longer lists are not looked up one by one in all texts.
            ValuePredicate::OneOf(set) if set.is_small() => {
                Needs::any(set.values().iter().map(|v| Needs::text(v, true, true)))
            }
            ValuePredicate::AllPhrases(all) | ValuePredicate::Sequence(all) => {
                Needs::all(all.iter().map(Needs::phrase))
            }
            ValuePredicate::Regex(r) => r.needs.clone(),
            ValuePredicate::Pattern(p) => {
                Needs::all(p.literals().map(|l| Needs::text(l.as_bytes(), false, false)))
            }
            _ => Needs::Nothing,
        }
    }
}

/// So many texts are looked up one by one in what a block knows of its words: of more that have
/// to be there the rest is not, of more of which one has to be there none is.
pub(super) const MOST_PROBES: usize = 4_096;

fn may_hold_any<'n, F: Found, E>(
    needles: impl ExactSizeIterator<Item = (&'n [u8], (bool, bool))>,
    may_hold: &mut MayHold<'_, F, E>,
) -> Result<Option<F>, E> {
    if needles.len() > MOST_PROBES {
        return Ok(None);
    }
    found_any(
        needles.map(|(text, bounds)| may_hold(&Needle { text, bounds, fold: false }).map(Some)),
    )
}

/// Each phrase is searched in what the previous one left, taken as a text of its own.
fn is_sequence(phrases: &[Phrase], value: &[u8]) -> bool {
    let mut rest = value;
    for phrase in phrases {
        match phrase.find_end(rest) {
            Some(end) => rest = rest.get(end..).unwrap_or(&[]),
            None => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_cut_the_text() {
        let seq = |parts: &[&str], text: &str| {
            let phrases: Vec<Phrase> = parts.iter().map(|p| Phrase::new(p.as_bytes())).collect();
            ValuePredicate::Sequence(phrases).matches(text.as_bytes())
        };
        assert!(seq(&["a", "b"], "a b"));
        assert!(!seq(&["a", "b"], "b a"));
        assert!(seq(&[], ""));
        assert!(seq(&["a-", "b"], "a-b"));
        assert!(!seq(&["a", "a"], "a aa"));
    }

    #[test]
    fn long_lists_cost_a_block_no_more_than_some_probes() {
        let phrases = |text: &str| -> Vec<Phrase> {
            let each = (0..100_000).map(|i| format!("{text}{i}"));
            each.map(|phrase| Phrase::new(phrase.as_bytes())).collect()
        };
        let bounded = |phrase: Phrase| super::super::set::Bounded::phrase(phrase.needle());
        let any = phrases("a").into_iter().map(bounded).collect();
        for predicate in [
            ValuePredicate::AllPhrases(phrases("a")),
            ValuePredicate::Sequence(phrases("a")),
            ValuePredicate::AnyPhrase(PhraseSet::of(any)),
        ] {
            let mut probes = 0;
            let mut may_hold = |_: &Needle<'_>| {
                probes += 1;
                Ok::<_, ()>(true)
            };
            let met = predicate.may_be_met(&mut may_hold).unwrap();
            assert!(met.unwrap_or(true));
            assert!(probes <= MOST_PROBES, "{probes}");
        }
    }

    #[test]
    fn ranges_of_bytes_have_ends() {
        let bytes = ByteRange {
            min: Some((Box::from(&b"b"[..]), true)),
            max: Some((Box::from(&b"d"[..]), false)),
        };
        assert!(bytes.contains(b"b") && bytes.contains(b"czz"));
        assert!(!bytes.contains(b"d") && !bytes.contains(b"") && !bytes.contains(b"az"));
        assert!(ByteRange::default().contains(b""));
    }
}
