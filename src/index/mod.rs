//! LAYER 1: what lets a query skip work. Pure functions over bytes.
//!
//! * [`tokenizer`]: the words of a text, their hashes and their boundaries, by frozen tables.
//! * [`WordSet`]: the distinct words of a column, to make a filter of.
//! * [`Bloom`] and [`FilterGroup`]: sets of hashes that never deny a member.
//! * [`Vocabulary`]: exactly which words are in which of many sets, found by any part of them.
//! * [`Needle`]: the words that a text must have to hold another.
//! * [`StreamChunk`]: streams of a part, with their labels and constants, by columns.
//!
//! Invariant: what a filter denies is not there. Whatever changes which hashes a text has gets a
//! new [`TOKENIZER_ID`] or [`FOLD_ID`]; a reader that does not know an id must not prune by it.
//!
//! Callers: the part's writer and reader, merges, and the pruning step of queries.

mod filter;
mod filter_group;
mod group;
mod needle;
mod stream_table;
pub(crate) mod tokenizer;
mod unicode_v1;
mod vocabulary;
mod word_set;

pub(crate) use filter::{Bloom, HashSet64, WIDTH_LOG_MAX, WIDTH_LOG_MIN};
pub(crate) use filter_group::{FilterGroup, MEMBERS_MAX};
pub(crate) use group::{Filter, GroupHead, encode_filters};
#[cfg(feature = "fuzzing")]
pub(crate) use needle::WordNeed;
pub(crate) use needle::{Found, Needle, Word, WordPart, found_all, found_any};
pub(crate) use stream_table::{CHUNK_STREAMS, ChunkBuilder, ChunkColumn, StreamChunk};
pub(crate) use vocabulary::{Vocabulary, VocabularyChunk};
pub(crate) use word_set::{MostWords, WordSet};

/// The tokenizer that this version writes: words of letters, decimal digits and `_`, hashed with
/// xxh3-64.
pub(crate) const TOKENIZER_ID: u16 = 1;
/// The table of lower-case letters that this version uses.
pub(crate) const FOLD_ID: u16 = 1;
