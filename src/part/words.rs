//! Whether the values of a page may hold a text, by the filters of its words.

use std::ops::Range;
use std::sync::Arc;

use super::block_reader::BlockReader;
use super::header::{ColumnHeader, FilterRef};
use super::index_block::PlacedGroup;
use super::layout;
use super::source::count;
use crate::Result;
use crate::codec::Bitmap;
use crate::error::Malformed;
use crate::index::tokenizer::WordClass;
use crate::index::{
    FilterGroup, GroupHead, Needle, Vocabulary, VocabularyChunk, WordNeed, WordPart,
};

/// The verified bytes of a piece of a filter group.
struct Piece(Arc<Vec<u8>>);

impl AsRef<[u8]> for Piece {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl BlockReader<'_> {
    /// Whether values of a column's page may hold `needle`, by the words that it needs; true if
    /// there are no filters, or if they were made by tables that this version does not know.
    pub(crate) fn may_hold(&self, header: &ColumnHeader, needle: &Needle<'_>) -> Result<bool> {
        if !self.part.footer().filters_known() {
            return Ok(true);
        }
        for need in needle.needs() {
            let met = match need {
                WordNeed::Plain(part) => self.may_have(header, WordClass::Plain, &part)?,
                WordNeed::Piece(part) => self.may_have(header, WordClass::Pieces, &part)?,
                WordNeed::Either(part) => {
                    self.may_have(header, WordClass::Plain, &part)?
                        || self.may_have(header, WordClass::Pieces, &part)?
                }
                WordNeed::Digits(hash) => self.may_have_hash(header, hash)?,
            };
            if !met {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether words with digits of a column's page may take part in a match of `needle`; true if
    /// that is not known.
    pub(crate) fn may_touch_digits(
        &self,
        header: &ColumnHeader,
        needle: &Needle<'_>,
    ) -> Result<bool> {
        let parts = needle.in_digit_words();
        let (Some(parts), true) = (parts, self.part.footer().filters_known()) else {
            return Ok(true);
        };
        for part in parts {
            if self.may_have(header, WordClass::Pieces, &part)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The group of the filter of a class, and the place in it.
    fn filter(&self, at: FilterRef) -> Result<(&PlacedGroup, usize)> {
        let placed = self.index().group(at).map_err(|e| self.index_malformed(e))?;
        count(&self.cx.stats.filters, 1);
        let member = layout::index(at.member);
        match member < placed.group.members() {
            true => Ok((placed, member)),
            false => Err(self.index_malformed(Malformed("no such filter of the group"))),
        }
    }

    /// Whether a page may have a word or piece with a part.
    fn may_have(
        &self,
        header: &ColumnHeader,
        class: WordClass,
        part: &WordPart<'_>,
    ) -> Result<bool> {
        let Some(Some(at)) = header.filters.get(class as usize) else { return Ok(true) };
        let (placed, member) = self.filter(*at)?;
        let GroupHead::Words(vocabulary) = &placed.group else {
            return Err(self.index_malformed(Malformed("words of another kind of filter")));
        };
        // Empty vocabularies share their offset with the next one.
        let vocabulary_at = (self.part.footer().part_id, self.index().filters_at(), at.group);
        let members = self.cx.members(vocabulary_at, part, || {
            let mut members = Bitmap::empty(vocabulary.members());
            for i in vocabulary.chunks_with(part) {
                self.chunk(placed.offset, vocabulary, i)?.add_members(part, &mut members);
            }
            Ok(members)
        })?;
        Ok(members.get(member))
    }

    fn chunk(
        &self,
        offset: u64,
        vocabulary: &Vocabulary,
        i: usize,
    ) -> Result<Arc<VocabularyChunk>> {
        let Range { start, end } = vocabulary.range(i);
        let (offset, len) = (offset.saturating_add(start), end - start);
        self.cx.cached(self.part.footer().part_id, offset, || {
            count(&self.cx.stats.filter_bytes, len);
            count(&self.cx.stats.read_bytes, len);
            let bytes = self.part.source().read(offset, len)?;
            let chunk = vocabulary.chunk(i, &bytes, &mut self.cx.decoder());
            let chunk = chunk.map_err(|e| self.part.malformed(offset, e))?;
            let held = chunk.heap_bytes();
            Ok((chunk, held))
        })
    }

    /// Whether a page may have a word with digits of this hash.
    fn may_have_hash(&self, header: &ColumnHeader, hash: u64) -> Result<bool> {
        let Some(Some(at)) = header.filters.get(WordClass::Digits as usize) else {
            return Ok(true);
        };
        let (placed, member) = self.filter(*at)?;
        let GroupHead::Hashes(group) = &placed.group else {
            return Err(self.index_malformed(Malformed("hashes of another kind of filter")));
        };
        let read = |i, range| self.filter_piece(placed.offset, group, i, range);
        group.may_contain(member, hash, read)
    }

    fn filter_piece(
        &self,
        offset: u64,
        group: &FilterGroup,
        piece: usize,
        range: Range<u64>,
    ) -> Result<Piece> {
        let (offset, len) = (offset.saturating_add(range.start), range.end - range.start);
        let load = || {
            count(&self.cx.stats.filter_bytes, len);
            count(&self.cx.stats.read_bytes, len);
            let bytes = self.part.source().read(offset, len)?;
            group.verify(piece, &bytes).map_err(|e| self.part.malformed(offset, e))?;
            Ok(bytes)
        };
        self.cx.piece(self.part.footer().part_id, offset, load).map(Piece)
    }
}
