//! Filters of either kind, alone and in groups.

use super::filter::Bloom;
use super::filter_group::{FilterGroup, encode_group};
use super::tokenizer::word_hash;
use super::vocabulary::{Vocabulary, encode_vocabulary, has_word};
use crate::codec::Decoder;
use crate::codec::compress::Compressor;
use crate::codec::varint::Reader;
use crate::error::Malformed;
use crate::record::TextVec;

/// What is known of the words of one class of one page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Filter {
    /// The words, ascending.
    Words(TextVec),
    /// A set with their hashes.
    Hashes(Bloom),
}

impl Filter {
    /// The binary logarithm of the number of bits; 0 of words.
    pub(crate) fn width_log(&self) -> u8 {
        match self {
            Filter::Words(_) => 0,
            Filter::Hashes(bloom) => bloom.width_log(),
        }
    }

    /// Whether the page may have this word or piece.
    pub(crate) fn may_have(&self, word: &[u8]) -> bool {
        match self {
            Filter::Words(words) => has_word(words, word),
            Filter::Hashes(bloom) => bloom.may_contain(word_hash(word)),
        }
    }

    /// Bytes of memory held.
    pub(crate) fn heap_bytes(&self) -> usize {
        match self {
            Filter::Words(words) => words.heap_bytes(),
            Filter::Hashes(bloom) => bloom.heap_bytes(),
        }
    }
}

/// The head of a group of filters of one kind and width.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum GroupHead {
    /// Of words.
    Words(Vocabulary),
    /// Of sets of hashes.
    Hashes(FilterGroup),
}

impl GroupHead {
    /// Reads a head.
    pub(crate) fn read(r: &mut Reader<'_>) -> Result<GroupHead, Malformed> {
        match r.rest().first() {
            Some(0) => Vocabulary::read(r).map(GroupHead::Words),
            _ => FilterGroup::read(r).map(GroupHead::Hashes),
        }
    }

    /// The number of members.
    pub(crate) fn members(&self) -> usize {
        match self {
            GroupHead::Words(vocabulary) => vocabulary.members(),
            GroupHead::Hashes(group) => group.members(),
        }
    }

    /// Bytes of what follows the head elsewhere.
    pub(crate) fn len(&self) -> u64 {
        match self {
            GroupHead::Words(vocabulary) => vocabulary.len(),
            GroupHead::Hashes(group) => group.len(),
        }
    }

    /// The filters of all members, from all bytes, which are verified.
    pub(crate) fn split(
        &self,
        bytes: &[u8],
        decoder: &mut Decoder,
    ) -> Result<Vec<Filter>, Malformed> {
        Ok(match self {
            GroupHead::Words(vocabulary) => {
                vocabulary.split(bytes, decoder)?.into_iter().map(Filter::Words).collect()
            }
            GroupHead::Hashes(group) => {
                group.split(bytes)?.into_iter().map(Filter::Hashes).collect()
            }
        })
    }
}

/// The head of a group of filters of one kind and width, and what it refers to.
pub(crate) fn encode_filters(filters: &[&Filter], zstd: &mut Compressor) -> (Vec<u8>, Vec<u8>) {
    let (mut words, mut blooms) = (Vec::new(), Vec::new());
    for filter in filters {
        match filter {
            Filter::Words(of) => words.push(of),
            Filter::Hashes(bloom) => blooms.push(bloom),
        }
    }
    debug_assert!(words.is_empty() || blooms.is_empty(), "filters of one kind");
    match blooms.first() {
        None => encode_vocabulary(&words, zstd),
        Some(bloom) => encode_group(&blooms, bloom.width_log()),
    }
}
