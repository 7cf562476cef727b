//! Which columns get a token filter, how large it may be, and what is known of values for free.

use super::header::{Facts, PageRef};
use super::writer::Profile;
use crate::codec::{EncodedPage, Encoding};
use crate::index::tokenizer::PerClass;
use crate::index::{Bloom, Filter, HashSet64, MostWords, WIDTH_LOG_MAX, WIDTH_LOG_MIN, WordSet};
use crate::record::{Quantity, TextVec};

/// The words of a page take at most as many bytes as the page, and pieces this share of it.
const PIECES_SHARE: usize = 4;
/// A filter of hashes takes at most this share of its page.
const DIGITS_SHARE: usize = 8;
/// A filter of hashes is the narrowest with so many bits for two words: up to twice as many. With
/// fewer it would prune too little.
const BITS_FOR_TWO: usize = 7;
/// Dictionaries of fewer bytes have no filter of hashes.
const DICTIONARY_MIN: usize = 4_096;
/// Pages of fewer bytes have no filter of hashes.
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

    /// The filters of the words of a page's values, those that pay: const pages and dictionaries
    /// in headers are exact themselves, numbers have their range.
    pub(super) fn make(
        &mut self,
        page: &EncodedPage,
        values: &TextVec,
    ) -> PerClass<Option<Filter>> {
        let is_short = match page.encoding {
            Encoding::Const | Encoding::Integers | Encoding::Times => true,
            Encoding::Dictionary => PageRef::is_inline(page.head.len()),
            _ => false,
        };
        if !self.enabled || is_short {
            return PerClass::default();
        }
        let bits = match &page.distinct {
            _ if page.len() < PAGE_MIN => 0,
            Some(distinct) if distinct.bytes().len() < DICTIONARY_MIN => 0,
            _ => page.len() / DIGITS_SHARE * 8,
        };
        let len = page.len().max(PAGE_MIN);
        let most =
            MostWords { plain: len, pieces: len / PIECES_SHARE, digits: bits * 2 / BITS_FOR_TWO };
        self.words.fill(page.distinct.as_deref().unwrap_or(values), most);
        [
            self.words.plain().map(Filter::Words),
            self.words.pieces().map(Filter::Words),
            if bits > 0 {
                make_filter(self.words.digits(), bits).map(Filter::Hashes)
            } else {
                None
            },
        ]
    }
}

/// The filter of a set of words, of at most `bits` bits.
fn make_filter(words: &HashSet64, bits: usize) -> Option<Bloom> {
    let wanted = words.len() * BITS_FOR_TWO / 2;
    let width_log = wanted.next_power_of_two().min(bits.max(1)).ilog2();
    let width_log = u8::try_from(width_log).ok()?.max(WIDTH_LOG_MIN);
    if width_log > WIDTH_LOG_MAX || (1 << width_log) < wanted {
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
