//! Index blocks: the headers of some blocks, packed; and the metaindex that lists them.

use std::ops::Range;
use std::sync::Arc;

use super::header::{BlockHead, ColumnHeader, FilterRef, HeadBase, Home};
use super::layout::{Extent, INDEX_BLOCK_RAW_MAX, count32};
use super::sink::Out;
use super::words::IndexColumn;
use crate::codec::compress::Compressor;
use crate::codec::varint::{Reader, put_signed, put_varint};
use crate::error::Malformed;
use crate::index::tokenizer::PerClass;
use crate::index::{Filter, GroupHead, MEMBERS_MAX, encode_filters};
use crate::sync::Mutex;

/// The most columns of a block that a reader takes.
const COLUMNS_MAX: usize = 4 << 20;

/// One index block, as the metaindex lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MetaEntry {
    /// Number of its first block in the part.
    pub(crate) first_block: u32,
    /// The number of blocks.
    pub(crate) blocks: u32,
    /// The part's row that is the first of its first block.
    pub(crate) first_row: u64,
    /// Rows of all its blocks.
    pub(crate) rows: u64,
    /// The least stream ordinal of its blocks.
    pub(crate) first_stream: u32,
    /// Stream ordinals from the least to the greatest.
    pub(crate) streams: u32,
    /// The earliest row.
    pub(crate) min_time: i64,
    /// The latest row.
    pub(crate) max_time: i64,
    /// Start of its first block's pages.
    pub(crate) pages: u64,
    /// Start of its filter groups, which end where the index block begins.
    pub(crate) filters: u64,
    /// The packed headers.
    pub(crate) at: Extent,
}

impl MetaEntry {
    /// Appends the entry; numbers that continue the entry before are left out.
    fn put(&self, before: (u64, u32), out: &mut Vec<u8>) {
        let (offset, stream) = before;
        put_varint(out, u64::from(self.blocks));
        put_varint(out, self.rows);
        put_varint(out, u64::from(self.first_stream - stream));
        put_varint(out, u64::from(self.streams));
        put_signed(out, self.min_time);
        put_varint(out, self.max_time.wrapping_sub(self.min_time).cast_unsigned());
        put_varint(out, self.pages - offset);
        put_varint(out, self.filters - self.pages);
        self.at.put(self.filters, out);
    }

    /// The metaindex section's raw bytes.
    pub(crate) fn encode_all(entries: &[MetaEntry]) -> Vec<u8> {
        let mut out = Vec::new();
        put_varint(&mut out, entries.len() as u64);
        let mut before = (0, 0);
        for entry in entries {
            entry.put(before, &mut out);
            before = (entry.at.end(), entry.first_stream);
        }
        out
    }

    /// Reads what [`encode_all`](MetaEntry::encode_all) wrote.
    pub(crate) fn parse_all(bytes: &[u8]) -> Result<Vec<MetaEntry>, Malformed> {
        let late = Malformed("numbers of the metaindex out of range");
        let mut r = Reader::new(bytes);
        let count = r.len(bytes.len())?;
        let mut out = Vec::with_capacity(count);
        let (mut block, mut row, mut offset, mut stream) = (0u32, 0u64, 0u64, 0u32);
        for _ in 0..count {
            let (blocks, rows) = (r.varint32()?, r.varint()?);
            let first_stream = stream.checked_add(r.varint32()?).ok_or(late)?;
            let streams = r.varint32()?;
            let min_time = r.signed()?;
            let max_time = min_time.checked_add_unsigned(r.varint()?).ok_or(late)?;
            let pages = offset.checked_add(r.varint()?).ok_or(late)?;
            let filters = pages.checked_add(r.varint()?).ok_or(late)?;
            let at = Extent::read(&mut r, filters)?;
            if blocks == 0 || streams == 0 || first_stream.checked_add(streams).is_none() {
                return Err(late);
            }
            out.push(MetaEntry {
                first_block: block,
                blocks,
                first_row: row,
                rows,
                first_stream,
                streams,
                min_time,
                max_time,
                pages,
                filters,
                at,
            });
            block = block.checked_add(blocks).ok_or(late)?;
            row = row.checked_add(rows).ok_or(late)?;
            (offset, stream) = (at.end(), first_stream);
        }
        r.finish()?;
        Ok(out)
    }

    fn base(&self) -> HeadBase {
        HeadBase { first_stream: self.first_stream, min_time: self.min_time, pages: self.pages }
    }
}

/// The unpacked headers of some blocks. Heads of blocks are read when it is opened, headers of
/// columns when they are asked for.
#[derive(Debug)]
pub(crate) struct IndexBlock {
    raw: Vec<u8>,
    /// Where the pages of its blocks end.
    pages_end: u64,
    blocks: Vec<(BlockHead, Range<usize>)>,
    groups: Vec<PlacedGroup>,
    /// What queries asked last of columns of all blocks, the latest at the end.
    columns: Mutex<Vec<(Box<str>, Arc<IndexColumn>)>>,
}

/// How many columns are kept.
const COLUMNS_KEPT: usize = 16;

/// A filter group and where its pieces are.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct PlacedGroup {
    /// The group's head.
    pub(crate) group: GroupHead,
    /// Its first byte, from the start of the file.
    pub(crate) offset: u64,
}

impl PlacedGroup {
    /// Where it is in the file.
    pub(crate) fn range(&self) -> Range<u64> {
        self.offset..self.offset.saturating_add(self.group.len())
    }
}

impl IndexBlock {
    /// Reads the unpacked bytes of the index block of `entry`.
    pub(crate) fn parse(raw: Vec<u8>, entry: &MetaEntry) -> Result<IndexBlock, Malformed> {
        let mut r = Reader::new(&raw);
        let count = entry.blocks as usize;
        if count > raw.len() {
            return Err(Malformed("more blocks than bytes"));
        }
        let mut lens = Vec::with_capacity(count);
        for _ in 0..count {
            lens.push(r.len(raw.len())?);
        }
        let mut blocks = Vec::with_capacity(count);
        let (mut block, mut row) = (entry.first_block, entry.first_row);
        for len in lens {
            let mut header = Reader::new(r.take(len)?);
            let head = BlockHead::read(&mut header, entry.base(), block, row)?;
            check_head(&head, entry)?;
            let end = raw.len() - r.rest().len();
            row += u64::from(head.rows);
            block = block.saturating_add(1);
            blocks.push((head, end - header.rest().len()..end));
        }
        let groups = read_groups(&mut r, entry)?;
        r.finish()?;
        if row != entry.first_row.saturating_add(entry.rows) {
            return Err(Malformed("blocks with other rows than the metaindex says"));
        }
        let columns = Mutex::default();
        Ok(IndexBlock { pages_end: entry.filters, blocks, groups, columns, raw })
    }

    /// The number of blocks.
    pub(crate) fn len(&self) -> usize {
        self.blocks.len()
    }

    /// The head of block `i` of this index block.
    pub(crate) fn head(&self, i: usize) -> Option<&BlockHead> {
        self.blocks.get(i).map(|(head, _)| head)
    }

    /// Where the pages of block `i` are in the file.
    pub(super) fn pages(&self, i: usize) -> Range<u64> {
        let start = self.head(i).map_or(self.pages_end, |head| head.offset);
        let end = self.head(i.saturating_add(1)).map_or(self.pages_end, |next| next.offset);
        start..end
    }

    /// All heads, in order.
    pub(crate) fn heads(&self) -> impl ExactSizeIterator<Item = &BlockHead> + '_ {
        self.blocks.iter().map(|(head, _)| head)
    }

    /// Where its filters begin in the file.
    pub(super) fn filters_at(&self) -> u64 {
        self.pages_end
    }

    /// The filter groups, in the order of their pieces.
    pub(crate) fn groups(&self) -> &[PlacedGroup] {
        &self.groups
    }

    /// The filter group of a number.
    pub(crate) fn group(&self, number: u32) -> Result<&PlacedGroup, Malformed> {
        let group = self.groups.get(crate::part::layout::index(number));
        group.ok_or(Malformed("no such filter group"))
    }

    /// What `read` found out about column `name` of all blocks, the first time it was asked.
    pub(super) fn kept_column(
        &self,
        name: &str,
        read: impl FnOnce() -> crate::Result<IndexColumn>,
    ) -> crate::Result<Arc<IndexColumn>> {
        if let Some((_, known)) = self.columns.lock().iter().find(|(n, _)| **n == *name) {
            return Ok(Arc::clone(known));
        }
        let column = Arc::new(read()?);
        let mut columns = self.columns.lock();
        if columns.len() >= COLUMNS_KEPT {
            columns.remove(0);
        }
        columns.push((Box::from(name), Arc::clone(&column)));
        Ok(column)
    }

    /// The header of column `name` of block `i`; absent if the block has no values for it but
    /// stream constants.
    pub(crate) fn column(&self, i: usize, name: u32) -> Result<Option<ColumnHeader>, Malformed> {
        let Some((head, columns)) = self.open(i)? else { return Ok(None) };
        let mut found = None;
        columns.visit(|id, range| {
            if id == name {
                found = Some(range);
            }
            id < name
        })?;
        match found {
            Some(range) => self.read(head, range).map(Some),
            None => Ok(None),
        }
    }

    /// The names of the columns of block `i`, ascending.
    pub(crate) fn names(&self, i: usize) -> Result<Vec<u32>, Malformed> {
        let mut out = Vec::new();
        if let Some((_, columns)) = self.open(i)? {
            columns.visit(|id, _| {
                out.push(id);
                true
            })?;
        }
        Ok(out)
    }

    /// All columns of block `i`, ascending by name.
    pub(crate) fn columns(&self, i: usize) -> Result<Vec<(u32, ColumnHeader)>, Malformed> {
        let Some((head, columns)) = self.open(i)? else { return Ok(Vec::new()) };
        let mut ranges = Vec::new();
        columns.visit(|id, range| {
            ranges.push((id, range));
            true
        })?;
        ranges.into_iter().map(|(id, range)| Ok((id, self.read(head, range)?))).collect()
    }

    fn open(&self, i: usize) -> Result<Option<(&BlockHead, Columns<'_>)>, Malformed> {
        let Some((head, range)) = self.blocks.get(i) else { return Ok(None) };
        let mut r = Reader::new(self.raw.get(range.clone()).unwrap_or(&[]));
        let count = r.len(COLUMNS_MAX)?;
        let names = r;
        for _ in 0..count {
            r.varint()?;
        }
        let lens = r;
        for _ in 0..count {
            r.varint()?;
        }
        let start = self.raw.len().min(range.end) - r.rest().len();
        Ok(Some((head, Columns { count, names, lens, start, end: range.end })))
    }

    fn read(&self, head: &BlockHead, range: Range<usize>) -> Result<ColumnHeader, Malformed> {
        let bytes = self.raw.get(range).ok_or(Malformed("header of a column"))?;
        ColumnHeader::read(bytes, head.rows, head.offset)
    }
}

/// The groups, whose pieces lie one after the other where the metaindex says.
fn read_groups(r: &mut Reader<'_>, entry: &MetaEntry) -> Result<Vec<PlacedGroup>, Malformed> {
    let count = r.len(r.rest().len())?;
    let mut groups = Vec::with_capacity(count);
    let mut offset = entry.filters;
    for _ in 0..count {
        let group = PlacedGroup { group: GroupHead::read(r)?, offset };
        offset = group.range().end;
        groups.push(group);
    }
    match offset == entry.at.offset {
        true => Ok(groups),
        false => Err(Malformed("filter groups of another length than the metaindex says")),
    }
}

fn check_head(head: &BlockHead, entry: &MetaEntry) -> Result<(), Malformed> {
    let last = head.first_stream.saturating_add(head.streams);
    if last > entry.first_stream.saturating_add(entry.streams)
        || head.max_time > entry.max_time
        || head.offset > entry.filters
    {
        return Err(Malformed("a block outside of what the metaindex says"));
    }
    Ok(())
}

/// The directory of the columns of a block.
struct Columns<'a> {
    count: usize,
    names: Reader<'a>,
    lens: Reader<'a>,
    start: usize,
    end: usize,
}

impl Columns<'_> {
    /// Calls `f` with each name and where its header is, until it returns false.
    fn visit(mut self, mut f: impl FnMut(u32, Range<usize>) -> bool) -> Result<(), Malformed> {
        let mut next = 0u32;
        for _ in 0..self.count {
            let id =
                next.checked_add(self.names.varint32()?).ok_or(Malformed("number of a column"))?;
            next = id.checked_add(1).ok_or(Malformed("number of a column"))?;
            let len = self.lens.len(INDEX_BLOCK_RAW_MAX)?;
            let end = self.start.saturating_add(len);
            if end > self.end {
                return Err(Malformed("headers of columns past their block"));
            }
            if !f(id, self.start..end) {
                return Ok(());
            }
            self.start = end;
        }
        if self.start == self.end { Ok(()) } else { Err(Malformed("headers of columns")) }
    }
}

/// A column of a finished block: its name, its header without the filters, its filters.
#[derive(Debug)]
pub(crate) struct ColumnDraft {
    /// The name's number.
    pub(crate) name: u32,
    /// The header; `filters` are set when the filter groups are written.
    pub(crate) header: ColumnHeader,
    /// The filters of words, by class.
    pub(crate) filters: PerClass<Option<Filter>>,
}

/// A filter to be written.
struct FilterDraft<'a> {
    /// Where its place is noted.
    place: &'a mut Option<FilterRef>,
    /// Its column, class of words and width.
    key: (u32, usize, u8),
    filter: Filter,
    /// Bytes of its page.
    page: u64,
}

/// A group of filters takes at most this share of its pages: where blocks are few, words that each
/// has for itself would take as much as the values, and reading these is little work.
const GROUP_SHARE: u64 = 8;

#[derive(Debug)]
struct BlockDraft {
    head: BlockHead,
    columns: Vec<ColumnDraft>,
}

/// Collects headers and filters until they fill an index block.
#[derive(Debug, Default)]
pub(crate) struct IndexBuilder {
    drafts: Vec<BlockDraft>,
    raw: usize,
    filters: usize,
    scratch: Vec<u8>,
}

impl IndexBuilder {
    /// Adds a finished block; `columns` ascending by name.
    pub(crate) fn push(&mut self, head: BlockHead, columns: Vec<ColumnDraft>) {
        self.scratch.clear();
        for column in &columns {
            column.header.put(head.rows, head.offset, &mut self.scratch);
        }
        let filters = columns.iter().flat_map(|c| c.filters.iter().flatten());
        let filters: usize = filters.map(Filter::heap_bytes).sum();
        self.raw += self.scratch.len() + columns.len() * 2 + 64;
        self.filters += filters;
        self.drafts.push(BlockDraft { head, columns });
    }

    /// Raw bytes of the headers so far, about, and bytes of filters.
    pub(crate) fn size(&self) -> (usize, usize) {
        (self.raw, self.filters)
    }

    /// Writes filter groups and index block of what was collected; nothing if there is nothing.
    pub(crate) fn flush(
        &mut self,
        out: &mut Out<'_>,
        zstd: &mut Compressor,
    ) -> crate::Result<Option<MetaEntry>> {
        let Some((mut entry, groups)) = self.entry(out, zstd)? else { return Ok(None) };
        let mut raw = self.encode(&entry);
        raw.extend_from_slice(&groups);
        let mut packed = Vec::new();
        zstd.pack(&raw, &mut packed);
        entry.at = out.unit(&packed)?;
        self.drafts.clear();
        (self.raw, self.filters) = (0, 0);
        Ok(Some(entry))
    }

    /// Writes the filter groups; gives the entry, which does not know yet where its index block is,
    /// and the number and heads of the groups, which end the index block.
    pub(super) fn entry(
        &mut self,
        out: &mut Out<'_>,
        zstd: &mut Compressor,
    ) -> crate::Result<Option<(MetaEntry, Vec<u8>)>> {
        let Some(first) = self.drafts.first() else { return Ok(None) };
        let mut entry = MetaEntry {
            first_block: first.head.block,
            blocks: count32(self.drafts.len()),
            first_row: first.head.first_row,
            rows: self.drafts.iter().map(|d| u64::from(d.head.rows)).sum(),
            first_stream: first.head.first_stream,
            streams: 0,
            min_time: self.drafts.iter().map(|d| d.head.min_time).min().unwrap_or(0),
            max_time: self.drafts.iter().map(|d| d.head.max_time).max().unwrap_or(0),
            pages: first.head.offset,
            filters: out.at(),
            at: Extent::default(),
        };
        let heads = self.drafts.iter().map(|d| &d.head);
        let last = heads.map(|h| h.first_stream + h.streams).max().unwrap_or(0);
        entry.streams = last - entry.first_stream;
        let groups = self.write_filters(out, zstd)?;
        Ok(Some((entry, groups)))
    }

    /// Writes the filters, those of one column, class of words and width as a group; gives the
    /// groups' number and heads.
    fn write_filters(
        &mut self,
        out: &mut Out<'_>,
        zstd: &mut Compressor,
    ) -> crate::Result<Vec<u8>> {
        let columns = self.drafts.iter_mut().flat_map(|d| d.columns.iter_mut());
        let mut filters: Vec<FilterDraft<'_>> = Vec::new();
        for column in columns {
            let page = match &column.header.home {
                Home::Page(page) => page.len,
                Home::Sparse { len, .. } => u64::from(*len),
                Home::SameAs(_) => 0,
            };
            let places = column.header.filters.iter_mut().zip(&mut column.filters);
            for (class, (place, filter)) in places.enumerate() {
                if let Some(filter) = filter.take() {
                    let key = (column.name, class, filter.width_log());
                    filters.push(FilterDraft { place, key, filter, page });
                }
            }
        }
        // The sort is stable: members of a group stand in the order of their blocks.
        filters.sort_by_key(|draft| draft.key);
        let (mut count, mut heads) = (0, Vec::new());
        for same in filters.chunk_by_mut(|a, b| a.key == b.key) {
            for members in same.chunks_mut(MEMBERS_MAX) {
                let filters: Vec<&Filter> = members.iter().map(|draft| &draft.filter).collect();
                let (head, pieces) = encode_filters(&filters, zstd);
                let pages: u64 = members.iter().map(|draft| draft.page).sum();
                if (head.len() + pieces.len()) as u64 > pages / GROUP_SHARE {
                    continue;
                }
                out.put(&pieces)?;
                heads.extend_from_slice(&head);
                for (member, draft) in members.iter_mut().enumerate() {
                    *draft.place = Some(FilterRef { group: count, member: count32(member) });
                }
                count += 1;
            }
        }
        let mut groups = Vec::new();
        put_varint(&mut groups, u64::from(count));
        groups.extend_from_slice(&heads);
        Ok(groups)
    }

    /// The unpacked index block of what was collected, up to the groups.
    pub(super) fn encode(&self, entry: &MetaEntry) -> Vec<u8> {
        let (mut lens, mut headers) = (Vec::new(), Vec::new());
        for draft in &self.drafts {
            let start = headers.len();
            draft.head.put(entry.base(), &mut headers);
            put_columns(draft, &mut headers);
            put_varint(&mut lens, (headers.len() - start) as u64);
        }
        lens.extend_from_slice(&headers);
        lens
    }
}

fn put_columns(draft: &BlockDraft, out: &mut Vec<u8>) {
    put_varint(out, draft.columns.len() as u64);
    let mut next = 0;
    for column in &draft.columns {
        put_varint(out, u64::from(column.name - next));
        next = column.name + 1;
    }
    let (mut lens, mut headers) = (Vec::new(), Vec::new());
    for ColumnDraft { header, .. } in &draft.columns {
        let start = headers.len();
        header.put(draft.head.rows, draft.head.offset, &mut headers);
        put_varint(&mut lens, (headers.len() - start) as u64);
    }
    out.extend_from_slice(&lens);
    out.extend_from_slice(&headers);
}
