//! Which columns get a token filter, how large it may be, and what is known of values for free.

use super::header::Facts;
use super::writer::Profile;
use crate::codec::{EncodedPage, Encoding};
use crate::index::tokenizer::{PerClass, WordClass};
use crate::index::{Bloom, HashSet64, WIDTH_LOG_MAX, WIDTH_LOG_MIN, WordSet};
use crate::record::{Quantity, TextVec};

/// A filter takes at most this share of its page. Plain words are few, and what most searches are
/// for.
const SHARES: PerClass<usize> = [5, 8];
/// Below so many bits for each word a filter prunes too little.
const BITS_MIN: usize = 4;
/// A filter that may be as wide as it wants is the narrowest with so many bits for each word: up
/// to twice as many.
const BITS_WANTED: PerClass<usize> = [6, 5];
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

    /// The filters of the words of a page's values, those that pay: const pages and short
    /// dictionaries are exact themselves, numbers have their range.
    pub(super) fn make(&mut self, page: &EncodedPage, values: &TextVec) -> PerClass<Option<Bloom>> {
        if !self.enabled || page.len() < PAGE_MIN {
            return PerClass::default();
        }
        let values = match (page.encoding, &page.distinct) {
            (Encoding::Const | Encoding::Integers | Encoding::Times, _) => {
                return PerClass::default();
            }
            (_, Some(distinct)) if distinct.bytes().len() < DICTIONARY_MIN => {
                return PerClass::default();
            }
            (_, Some(distinct)) => distinct,
            (_, None) => values,
        };
        let bits = SHARES.map(|share| page.len() / share * 8);
        self.words.fill(values, bits.map(|bits| bits / BITS_MIN));
        WordClass::ALL.map(|class| {
            let of = class as usize;
            make_filter(self.words.of(class), *BITS_WANTED.get(of)?, *bits.get(of)?)
        })
    }
}

/// The filter of a set of words, of at most `bits` bits.
fn make_filter(words: &HashSet64, wanted: usize, bits: usize) -> Option<Bloom> {
    let width_log = (words.len() * wanted).next_power_of_two().min(bits.max(1)).ilog2();
    let width_log = u8::try_from(width_log).ok()?.max(WIDTH_LOG_MIN);
    if width_log > WIDTH_LOG_MAX || (1 << width_log) < words.len() * BITS_MIN {
        return None;
    }
    let mut bloom = Bloom::empty(width_log);
    words.iter().for_each(|hash| bloom.insert(hash));
    Some(bloom)
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
        let numbers = present().filter_map(Quantity::parse).map(|n| n.enclosing_f64());
        facts.numbers = numbers.reduce(|(min, max), (low, high)| (min.min(low), max.max(high)));
        facts.all_numbers =
            facts.numbers.is_some() && present().all(|value| Quantity::parse(value).is_some());
    }
    facts
}
