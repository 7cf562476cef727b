//! Blocks taken over from another part as they are: pages byte for byte, under new headers.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use super::block_builder::{constant_page, put_page};
use super::block_reader::BlockReader;
use super::filters::facts;
use super::header::{BlockHead, ColumnHeader, FilterRef, HeadRef, Home, PageRef};
use super::index_block::{ColumnDraft, IndexBlock};
use super::layout::{Extent, index};
use super::sink::Out;
use crate::Result;
use crate::codec::{Encoding, verify_strips};
use crate::error::Malformed;
use crate::index::Filter;
use crate::index::tokenizer::PerClass;
use crate::io::checksum;

/// Blocks of more bytes of pages are not copied, which bounds the memory of a copy.
const COPY_MAX: u64 = 32 << 20;

/// A block of one stream that was read to be copied: verified bytes, and headers whose offsets
/// count from the start of the bytes.
pub(crate) struct BlockCopy {
    head: BlockHead,
    columns: Vec<ColumnDraft>,
    bytes: Vec<u8>,
}

/// Filters of the index block from which blocks are being copied, by group: a group is read as a
/// whole.
#[derive(Default)]
pub(crate) struct CopyFilters {
    index: Option<Arc<IndexBlock>>,
    groups: BTreeMap<u32, Vec<Filter>>,
}

impl CopyFilters {
    fn get(&mut self, block: &BlockReader<'_>, at: FilterRef) -> Result<Option<Filter>> {
        if self.index.as_ref().is_none_or(|index| !Arc::ptr_eq(index, block.index())) {
            self.index = Some(Arc::clone(block.index()));
            self.groups.clear();
        }
        let group = match self.groups.entry(at.group) {
            Entry::Occupied(read) => read.into_mut(),
            Entry::Vacant(slot) => slot.insert(block.filters_beside(at)?),
        };
        Ok(group.get(index(at.member)).cloned())
    }
}

impl BlockReader<'_> {
    /// Reads the block to be copied, whose columns get other numbers by `number`, ascending as
    /// before. None if it is not of the kind that can be: one stream, filters of words that this
    /// version knows, nothing outside of its place.
    ///
    /// # Errors
    /// `Corrupted` if bytes do not match their checksums.
    pub(crate) fn copy(
        &self,
        number: &dyn Fn(u32) -> Option<u32>,
        filters: &mut CopyFilters,
    ) -> Result<Option<BlockCopy>> {
        let head = self.head_of_block();
        let place = self.pages();
        let len = place.end.saturating_sub(place.start);
        let filters_known = self.part().footer().filters_known();
        if head.streams != 1 || len > COPY_MAX || !filters_known {
            return Ok(None);
        }
        let bytes = self.read_pages()?;
        let mut copy = BlockCopy { head: head.clone(), columns: Vec::new(), bytes };
        copy.head.offset = 0;
        let shift = |offset: &mut u64, len: u64| {
            let inside = *offset >= place.start && offset.saturating_add(len) <= place.end;
            *offset = offset.saturating_sub(place.start);
            inside
        };
        if !shift(&mut copy.head.time.offset, head.time.len) {
            return Ok(None);
        }
        if let Some(sparse) = &mut copy.head.sparse
            && !shift(&mut sparse.offset, sparse.len)
        {
            return Ok(None);
        }
        for (name, mut header) in self.raw_headers()? {
            let moved = match &mut header.home {
                Home::Page(page) => shift(&mut page.offset, page.len),
                Home::Sparse { .. } => true,
                Home::SameAs(other) => number(*other).map(|n| *other = n).is_some(),
            };
            let (Some(name), true) = (number(name), moved) else { return Ok(None) };
            let mut of_column = PerClass::default();
            for (filter, at) in of_column.iter_mut().zip(&mut header.filters) {
                *filter = match at.take() {
                    Some(at) => filters.get(self, at)?,
                    None => None,
                };
            }
            copy.columns.push(ColumnDraft { name, header, filters: of_column });
        }
        let verified = copy.verify();
        verified.map_err(|what| self.part().malformed(place.start, what))?;
        Ok(Some(copy))
    }
}

impl BlockCopy {
    /// The number of rows.
    pub(crate) fn rows(&self) -> u32 {
        self.head.rows
    }

    /// Bytes of its pages.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether the block holds a column of this name.
    pub(crate) fn has(&self, name: u32) -> bool {
        self.columns.binary_search_by_key(&name, |c| c.name).is_ok()
    }

    /// Every checksum of the block's bytes.
    fn verify(&self) -> std::result::Result<(), Malformed> {
        self.verify_page(&self.head.time)?;
        if let Some(Extent { offset, len, checksum: sum }) = self.head.sparse
            && checksum(self.range(offset, len)) != sum
        {
            return Err(Malformed("a sparse page does not match its checksum"));
        }
        for column in &self.columns {
            if let Home::Page(page) = &column.header.home {
                self.verify_page(page)?;
            }
        }
        Ok(())
    }

    fn verify_page(&self, page: &PageRef) -> std::result::Result<(), Malformed> {
        let bytes = self.range(page.offset, page.len);
        let (head, strips) = match &page.head {
            HeadRef::Inline(head) => (head.as_slice(), bytes),
            HeadRef::External { len, checksum: sum } => {
                let len = usize::try_from(*len).unwrap_or(usize::MAX);
                let split = bytes.split_at_checked(len);
                let (head, strips) = split.ok_or(Malformed("head longer than its page"))?;
                if checksum(head) != *sum {
                    return Err(Malformed("the head of a page does not match its checksum"));
                }
                (head, strips)
            }
        };
        verify_strips(page.encoding, head, strips, self.head.rows as usize)
    }

    fn range(&self, offset: u64, len: u64) -> &[u8] {
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        self.bytes.get(start..start.saturating_add(len)).unwrap_or(&[])
    }

    /// Writes the pages, and const pages for columns that were `constants` of the stream and are
    /// no longer, ascending by name. The block gets this number, first row and stream.
    pub(super) fn write(
        mut self,
        out: &mut Out<'_>,
        (block, first_row, first_stream): (u32, u64, u32),
        constants: &[(u32, &[u8])],
    ) -> Result<(BlockHead, Vec<ColumnDraft>)> {
        let base = out.at();
        out.put(&self.bytes)?;
        for (name, value) in constants {
            let page = constant_page(value, self.head.rows);
            let facts = facts(&page);
            debug_assert_eq!(page.encoding, Encoding::Const);
            let mut home = put_page(out, page)?;
            // All offsets are moved below.
            home.offset -= base;
            let present = self.head.rows;
            let filters = PerClass::default();
            let header = ColumnHeader { home: Home::Page(home), present, facts, filters };
            let at = self.columns.partition_point(|c| c.name < *name);
            self.columns
                .insert(at, ColumnDraft { name: *name, header, filters: PerClass::default() });
        }
        let mut head = self.head;
        (head.block, head.first_row, head.first_stream) = (block, first_row, first_stream);
        head.offset = base;
        head.time.offset += base;
        if let Some(sparse) = &mut head.sparse {
            sparse.offset += base;
        }
        for column in &mut self.columns {
            if let Home::Page(page) = &mut column.header.home {
                page.offset += base;
            }
        }
        Ok((head, self.columns))
    }
}
