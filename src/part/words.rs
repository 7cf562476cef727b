//! Whether the values of pages may hold a text, by the filters of their words.

use std::ops::Range;
use std::sync::Arc;

use super::block_reader::{BlockReader, ColumnPage, RunConstants};
use super::header::{ColumnHeader, FilterRef};
use super::index_block::{IndexBlock, PlacedGroup};
use super::layout;
use super::reader::PartReader;
use super::source::{ReadContext, count};
use crate::Result;
use crate::codec::Bitmap;
use crate::error::Malformed;
use crate::index::tokenizer::{PerClass, WordClass};
use crate::index::{FilterGroup, GroupHead, Needle, Vocabulary, VocabularyChunk, Word, WordPart};

/// A column of the blocks of an index block: what may be said of it without asking a block.
#[derive(Debug)]
pub(crate) struct IndexColumn {
    blocks: Vec<InBlock>,
}

/// What a block has of a column.
#[derive(Debug)]
enum InBlock {
    /// No values.
    Nothing,
    /// A page, and its filters.
    Page(PerClass<Option<FilterRef>>),
    /// Values that streams share too; nothing is known of the words of these.
    Constants,
}

impl IndexColumn {
    /// The blocks with values.
    pub(crate) fn present(&self) -> Bitmap {
        let has = |i| !matches!(self.blocks.get(i), Some(InBlock::Nothing));
        Bitmap::from_fn(self.blocks.len(), has)
    }
}

impl PartReader {
    /// Column `name` of all blocks of an index block. Reads headers and the stream table, no page.
    pub(crate) fn index_column(
        &self,
        cx: &ReadContext<'_>,
        index: &Arc<IndexBlock>,
        name: &str,
    ) -> Result<Arc<IndexColumn>> {
        index.kept_column(name, || {
            let of_block = |i: usize| {
                let column = self.block(cx, index, i)?.column(name)?;
                Ok(match (&column.constants, &column.page, column.header) {
                    (RunConstants::None, ColumnPage::Absent, _) => InBlock::Nothing,
                    (RunConstants::None, _, Some(header)) => InBlock::Page(header.filters),
                    _ => InBlock::Constants,
                })
            };
            Ok(IndexColumn { blocks: (0..index.len()).map(of_block).collect::<Result<_>>()? })
        })
    }

    /// The blocks of an index block in which a value of a column may hold `needle`.
    pub(crate) fn blocks_with(
        &self,
        cx: &ReadContext<'_>,
        index: &IndexBlock,
        column: &IndexColumn,
        needle: &Needle<'_>,
    ) -> Result<Bitmap> {
        if !self.footer().filters_known() {
            return Ok(column.present());
        }
        let words = IndexWords { part: self, cx, index };
        let found = needle.found(|class, word| words.blocks_with(column, class, &word))?;
        Ok(found.unwrap_or_else(|| column.present()))
    }
}

impl BlockReader<'_> {
    fn words(&self) -> IndexWords<'_> {
        IndexWords { part: self.part, cx: self.cx, index: self.index() }
    }

    /// Whether values of a column's page may hold `needle`, by the words that it needs; true if
    /// there are no filters, or if they were made by tables that this version does not know.
    pub(crate) fn may_hold(&self, header: &ColumnHeader, needle: &Needle<'_>) -> Result<bool> {
        if !self.part.footer().filters_known() {
            return Ok(true);
        }
        let words = self.words();
        let found = needle.found(|class, word| words.page_has(&header.filters, class, &word))?;
        Ok(found.unwrap_or(true))
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
            if self.words().page_has(&header.filters, WordClass::Pieces, &Word::With(part))? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// The filters of an index block.
#[derive(Clone, Copy)]
struct IndexWords<'a> {
    part: &'a PartReader,
    cx: &'a ReadContext<'a>,
    index: &'a IndexBlock,
}

impl<'a> IndexWords<'a> {
    /// Whether a page with these filters may have a word of a class.
    fn page_has(
        &self,
        filters: &PerClass<Option<FilterRef>>,
        class: WordClass,
        word: &Word<'_>,
    ) -> Result<bool> {
        let Some(Some(at)) = filters.get(class as usize) else { return Ok(true) };
        let members = self.members(at.group, word)?;
        self.is_member(&members, *at)
    }

    /// The blocks of which the page of a column may have a word of a class.
    fn blocks_with(
        &self,
        column: &IndexColumn,
        class: WordClass,
        word: &Word<'_>,
    ) -> Result<Bitmap> {
        let mut out = Bitmap::empty(column.blocks.len());
        // Filters of blocks side by side stand in few groups, most of the time in one.
        let mut last: Option<(u32, Arc<Bitmap>)> = None;
        for (i, block) in column.blocks.iter().enumerate() {
            let may = match block {
                InBlock::Nothing => false,
                InBlock::Constants => true,
                InBlock::Page(filters) => match filters.get(class as usize) {
                    Some(Some(at)) => {
                        let members = match last.take().filter(|(group, _)| *group == at.group) {
                            Some((_, members)) => members,
                            None => self.members(at.group, word)?,
                        };
                        let may = self.is_member(&members, *at)?;
                        last = Some((at.group, members));
                        may
                    }
                    _ => true,
                },
            };
            if may {
                out.set(i);
            }
        }
        Ok(out)
    }

    fn is_member(&self, members: &Bitmap, at: FilterRef) -> Result<bool> {
        let member = layout::index(at.member);
        match member < members.len() {
            true => Ok(members.get(member)),
            false => Err(self.malformed("no such filter of the group")),
        }
    }

    fn malformed(&self, what: &'static str) -> crate::Error {
        self.part.malformed(self.index.filters_at(), Malformed(what))
    }

    /// The members of a group that may have a word, found out once by a worker.
    fn members(&self, group: u32, word: &Word<'_>) -> Result<Arc<Bitmap>> {
        let at = (self.part.footer().part_id, self.index.filters_at(), group);
        self.cx.members(at, word, || {
            let placed = self.index.group(group).map_err(|Malformed(what)| self.malformed(what))?;
            match (&placed.group, word) {
                (GroupHead::Words(vocabulary), Word::With(part)) => {
                    self.members_of_vocabulary(placed, vocabulary, part)
                }
                (GroupHead::Hashes(group), Word::Hashed(hash)) => {
                    let read = |i, range| self.filter_piece(placed.offset, group, i, range);
                    group.members_with(*hash, read)
                }
                _ => Err(self.malformed("a filter of another kind of words")),
            }
        })
    }

    fn members_of_vocabulary(
        &self,
        placed: &PlacedGroup,
        vocabulary: &Vocabulary,
        part: &WordPart<'_>,
    ) -> Result<Bitmap> {
        let mut members = Bitmap::empty(vocabulary.members());
        for i in vocabulary.chunks_with(part) {
            self.chunk(placed.offset, vocabulary, i)?.add_members(part, &mut members);
        }
        Ok(members)
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
            let bytes = self.read(offset, len)?;
            let chunk = vocabulary.chunk(i, &bytes, &mut self.cx.decoder());
            let chunk = chunk.map_err(|e| self.part.malformed(offset, e))?;
            let held = chunk.heap_bytes();
            Ok((chunk, held))
        })
    }

    fn filter_piece(
        &self,
        offset: u64,
        group: &FilterGroup,
        piece: usize,
        range: Range<u64>,
    ) -> Result<Piece> {
        let (offset, len) = (offset.saturating_add(range.start), range.end - range.start);
        let piece = self.cx.cached(self.part.footer().part_id, offset, || {
            let bytes = self.read(offset, len)?;
            group.verify(piece, &bytes).map_err(|e| self.part.malformed(offset, e))?;
            let held = bytes.capacity();
            Ok((bytes, held))
        });
        piece.map(Piece)
    }

    fn read(&self, offset: u64, len: u64) -> Result<Vec<u8>> {
        count(&self.cx.stats.filter_bytes, len);
        count(&self.cx.stats.read_bytes, len);
        self.part.source().read(offset, len)
    }
}

/// The verified bytes of a piece of a filter group.
struct Piece(Arc<Vec<u8>>);

impl AsRef<[u8]> for Piece {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}
