//! Which columns get a token filter, how large it may be, and what is known of values for free.

use super::header::Facts;
use super::writer::Profile;
use crate::codec::{EncodedPage, Encoding};
use crate::index::{Bloom, WordSet};
use crate::record::{TextVec, parse_number};

/// A filter takes at most this share of its page.
const SHARE: usize = 8;
/// Below so many bits for each word a filter prunes too little.
const BITS_MIN: usize = 4;
/// Bits for each word of a filter that is as wide as it wants.
const BITS_MAX: usize = 10;
/// Dictionaries of fewer bytes are read rather than a filter.
const DICTIONARY_MIN: usize = 4_096;
/// Pages of fewer bytes are read rather than a filter.
const PAGE_MIN: usize = 1_024;
/// Dictionaries of more values are not read as numbers.
const NUMBERS_MAX: usize = 1_024;

/// Makes the filters of a part's columns.
#[derive(Debug)]
pub(super) struct FilterMaker {
    enabled: bool,
    words: WordSet,
}

impl FilterMaker {
    pub(super) fn new(profile: Profile) -> FilterMaker {
        FilterMaker { enabled: profile != Profile::Buffer, words: WordSet::new() }
    }

    /// The filter of the words of a page's values, if it pays: const pages and short dictionaries
    /// are exact themselves, numbers have their range.
    pub(super) fn make(&mut self, page: &EncodedPage, values: &TextVec) -> Option<Bloom> {
        if !self.enabled || page.len() < PAGE_MIN {
            return None;
        }
        let values = match (page.encoding, &page.distinct) {
            (Encoding::Const | Encoding::Integers | Encoding::Times, _) => return None,
            (_, Some(distinct)) if distinct.bytes().len() < DICTIONARY_MIN => return None,
            (_, Some(distinct)) => distinct,
            (_, None) => values,
        };
        let bits = page.len() / SHARE * 8;
        if !self.words.fill(values, bits / BITS_MIN) {
            return None;
        }
        let wanted = (self.words.len() * BITS_MAX).max(64).next_power_of_two().min(bits);
        let width_log = wanted.checked_ilog2()?;
        if (1 << width_log) < self.words.len() * BITS_MIN {
            return None;
        }
        let mut bloom = Bloom::empty(u8::try_from(width_log).ok()?);
        self.words.iter().for_each(|hash| bloom.insert(hash));
        Some(bloom)
    }
}

/// What is known of the values of a page.
pub(super) fn facts(page: &EncodedPage) -> Facts {
    let stats = &page.stats;
    let mut facts = Facts { ints: stats.int_range, ..Facts::default() };
    if page.encoding != Encoding::Const {
        facts.lengths = Some((stats.min_len, stats.max_len));
    }
    let few = page.distinct.as_ref().filter(|d| d.len() <= NUMBERS_MAX);
    if let (None, Some(distinct), true) = (facts.ints, few, page.encoding == Encoding::Dictionary) {
        let present = || distinct.iter().filter(|value| !value.is_empty());
        let numbers = present().filter_map(parse_number).filter(|n| !n.is_nan());
        facts.numbers = numbers.fold(None, |range: Option<(f64, f64)>, n| {
            let (min, max) = range.unwrap_or((n, n));
            Some((min.min(n), max.max(n)))
        });
        facts.all_numbers = facts.numbers.is_some()
            && present().all(|value| parse_number(value).is_some_and(|n| !n.is_nan()));
    }
    facts
}
