//! Headers of blocks and columns, as they stand in index blocks.

use super::layout::{Extent, INLINE_HEAD_MAX, UNIT_MAX};
use crate::codec::Encoding;
use crate::codec::varint::{Reader, put_signed, put_varint};
use crate::error::Malformed;
use crate::index::tokenizer::PerClass;

const HOME_MASK: u8 = 0b11;
const HOME_PAGE: u8 = 0;
const HOME_SPARSE: u8 = 1;
const HOME_SAME: u8 = 2;
/// Every row of the block has a value from this home.
const ALL_PRESENT: u8 = 1 << 2;
const HAS_LENGTHS: u8 = 1 << 3;
const HAS_INTS: u8 = 1 << 4;
const HAS_NUMBERS: u8 = 1 << 5;
const ALL_NUMBERS: u8 = 1 << 6;
const HAS_FILTERS: u8 = 1 << 7;

/// Where a page's head is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum HeadRef {
    /// In the header itself; the page consists of strips only.
    Inline(Vec<u8>),
    /// The first bytes of the page.
    External {
        /// Bytes of the head.
        len: u64,
        /// xxh3-64 of the head.
        checksum: u64,
    },
}

/// Where a page is and how it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PageRef {
    /// How its values are stored.
    pub(crate) encoding: Encoding,
    /// From the start of the file.
    pub(crate) offset: u64,
    /// Bytes of head (if external) and strips.
    pub(crate) len: u64,
    /// The head.
    pub(crate) head: HeadRef,
}

impl PageRef {
    /// Whether a head of `len` bytes stands in the header.
    pub(crate) fn is_inline(len: usize) -> bool {
        len <= INLINE_HEAD_MAX
    }

    /// The offset in the file of a strip that begins `start` bytes after the page's head began.
    pub(crate) fn strip_offset(&self, start: u64) -> u64 {
        match &self.head {
            HeadRef::Inline(head) => {
                self.offset.saturating_add(start).saturating_sub(head.len() as u64)
            }
            HeadRef::External { .. } => self.offset.saturating_add(start),
        }
    }

    pub(crate) fn put(&self, base: u64, out: &mut Vec<u8>) {
        out.push(self.encoding.as_u8());
        put_varint(out, self.offset.wrapping_sub(base));
        put_varint(out, self.len);
        match &self.head {
            HeadRef::Inline(head) => {
                put_varint(out, (head.len() as u64) << 1);
                out.extend_from_slice(head);
            }
            HeadRef::External { len, checksum } => {
                put_varint(out, len << 1 | 1);
                out.extend_from_slice(&checksum.to_le_bytes());
            }
        }
    }

    pub(crate) fn read(r: &mut Reader<'_>, base: u64) -> Result<PageRef, Malformed> {
        let encoding = Encoding::from_u8(r.u8()?)?;
        let offset = base.checked_add(r.varint()?).ok_or(Malformed("offset too large"))?;
        let len = r.varint()?;
        if len > UNIT_MAX || offset.checked_add(len).is_none() {
            return Err(Malformed("page over its cap"));
        }
        let head = r.varint()?;
        let head = if head & 1 == 0 {
            let head_len = usize::try_from(head >> 1).unwrap_or(usize::MAX);
            if head_len > INLINE_HEAD_MAX {
                return Err(Malformed("head over its cap"));
            }
            HeadRef::Inline(r.take(head_len)?.to_vec())
        } else {
            if head >> 1 > len {
                return Err(Malformed("head longer than its page"));
            }
            HeadRef::External { len: head >> 1, checksum: r.u64()? }
        };
        Ok(PageRef { encoding, offset, len, head })
    }
}

/// Where the values of a column of a block are, for rows whose stream has no constant for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Home {
    /// A page of one value for each row; a const page means every row without stream constant.
    Page(PageRef),
    /// A piece of the block's sparse page.
    Sparse {
        /// From the start of the unpacked sparse page.
        offset: u32,
        /// In bytes.
        len: u32,
    },
    /// The same values, from homes and stream constants alike, as column `name`, which stands in
    /// the block with a page.
    SameAs(u32),
}

/// What is known about the values of a column in a block without reading them.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Facts {
    /// Shortest and longest value in bytes.
    pub(crate) lengths: Option<(u32, u32)>,
    /// Least and greatest value, if all values are canonical decimal integers of 64 bits.
    pub(crate) ints: Option<(i64, i64)>,
    /// Numbers not above and not below any value that reads as a number.
    pub(crate) numbers: Option<(f64, f64)>,
    /// Whether all values read as numbers.
    pub(crate) all_numbers: bool,
}

/// One column of one block.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ColumnHeader {
    /// Where the values are.
    pub(crate) home: Home,
    /// Rows of the block with a value from this home.
    pub(crate) present: u32,
    /// What is known about the values.
    pub(crate) facts: Facts,
    /// The filters of the words of the values, by class.
    pub(crate) filters: PerClass<Option<FilterRef>>,
}

/// A filter: a member of a filter group of the index block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FilterRef {
    /// The number of the group.
    pub(crate) group: u32,
    /// The number of the member.
    pub(crate) member: u32,
}

impl ColumnHeader {
    /// Appends the header of a column of a block of `rows` rows whose pages begin at `block`.
    pub(crate) fn put(&self, rows: u32, block: u64, out: &mut Vec<u8>) {
        let facts = &self.facts;
        let mut tag = match &self.home {
            Home::Page(_) => HOME_PAGE,
            Home::Sparse { .. } => HOME_SPARSE,
            Home::SameAs(_) => HOME_SAME,
        };
        for (bit, on) in [
            (ALL_PRESENT, self.present == rows),
            (HAS_LENGTHS, facts.lengths.is_some()),
            (HAS_INTS, facts.ints.is_some()),
            (HAS_NUMBERS, facts.numbers.is_some()),
            (ALL_NUMBERS, facts.all_numbers),
            (HAS_FILTERS, self.filters.iter().any(Option::is_some)),
        ] {
            tag |= if on { bit } else { 0 };
        }
        out.push(tag);
        if self.present != rows {
            put_varint(out, u64::from(self.present));
        }
        match &self.home {
            Home::Page(page) => page.put(block, out),
            Home::Sparse { offset, len } => {
                put_varint(out, u64::from(*offset));
                put_varint(out, u64::from(*len));
            }
            Home::SameAs(name) => put_varint(out, u64::from(*name)),
        }
        if let Some((min, max)) = facts.lengths {
            put_varint(out, u64::from(min));
            put_varint(out, u64::from(max.saturating_sub(min)));
        }
        if let Some((min, max)) = facts.ints {
            put_signed(out, min);
            put_varint(out, max.wrapping_sub(min).cast_unsigned());
        }
        if let Some((min, max)) = facts.numbers {
            out.extend_from_slice(&min.to_bits().to_le_bytes());
            out.extend_from_slice(&max.to_bits().to_le_bytes());
        }
        if tag & HAS_FILTERS != 0 {
            for filter in &self.filters {
                put_varint(out, filter.map_or(0, |at| u64::from(at.group) + 1));
                if let Some(at) = filter {
                    put_varint(out, u64::from(at.member));
                }
            }
        }
    }

    /// Reads a header of a column of a block of `rows` rows whose pages begin at `block`.
    pub(crate) fn read(bytes: &[u8], rows: u32, block: u64) -> Result<ColumnHeader, Malformed> {
        let mut r = Reader::new(bytes);
        let tag = r.u8()?;
        let has = |bit: u8| tag & bit != 0;
        let present = if has(ALL_PRESENT) { rows } else { r.varint32()? };
        if present > rows {
            return Err(Malformed("a column with more values than rows"));
        }
        let home = match tag & HOME_MASK {
            HOME_PAGE => Home::Page(PageRef::read(&mut r, block)?),
            HOME_SPARSE => Home::Sparse { offset: r.varint32()?, len: r.varint32()? },
            HOME_SAME => Home::SameAs(r.varint32()?),
            _ => return Err(Malformed("unknown home of a column")),
        };
        let facts = read_facts(&mut r, has)?;
        let mut filters = PerClass::default();
        if has(HAS_FILTERS) {
            for filter in &mut filters {
                let group = r.varint32()?.checked_sub(1);
                *filter = match group {
                    Some(group) => Some(FilterRef { group, member: r.varint32()? }),
                    None => None,
                };
            }
        }
        r.finish()?;
        Ok(ColumnHeader { home, present, facts, filters })
    }
}

fn read_facts(r: &mut Reader<'_>, has: impl Fn(u8) -> bool) -> Result<Facts, Malformed> {
    let mut facts = Facts { all_numbers: has(ALL_NUMBERS), ..Facts::default() };
    if has(HAS_LENGTHS) {
        let min = r.varint32()?;
        let max = min.checked_add(r.varint32()?).ok_or(Malformed("lengths of a column"))?;
        facts.lengths = Some((min, max));
    }
    if has(HAS_INTS) {
        let min = r.signed()?;
        let max = min.checked_add_unsigned(r.varint()?).ok_or(Malformed("range of a column"))?;
        facts.ints = Some((min, max));
    }
    if has(HAS_NUMBERS) {
        let (min, max) = (f64::from_bits(r.u64()?), f64::from_bits(r.u64()?));
        if min.is_nan() || max.is_nan() || min > max {
            return Err(Malformed("range of a column"));
        }
        facts.numbers = Some((min, max));
    }
    Ok(facts)
}

/// The part of a block's header that stands before its columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BlockHead {
    /// The block's number in its part.
    pub(crate) block: u32,
    /// The part's row that is the block's first.
    pub(crate) first_row: u64,
    /// The number of rows, at least 1.
    pub(crate) rows: u32,
    /// The ordinal of the first stream.
    pub(crate) first_stream: u32,
    /// The number of streams; each has a row.
    pub(crate) streams: u32,
    /// The earliest row, in ns.
    pub(crate) min_time: i64,
    /// The latest row, in ns.
    pub(crate) max_time: i64,
    /// Bytes of the values of its largest column, which say how full the block is.
    pub(crate) largest: u32,
    /// Start of the block's pages in the file.
    pub(crate) offset: u64,
    /// The `_time` page.
    pub(crate) time: PageRef,
    /// The runs page; a block of one stream needs none.
    pub(crate) runs: Option<Extent>,
    /// The sparse page.
    pub(crate) sparse: Option<Extent>,
}

/// What the numbers of a block's header count from: the entry of its index block.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HeadBase {
    /// The entry's first stream.
    pub(crate) first_stream: u32,
    /// The entry's earliest time.
    pub(crate) min_time: i64,
    /// The entry's first page.
    pub(crate) pages: u64,
}

const HAS_RUNS: u8 = 1;
const HAS_SPARSE: u8 = 2;

impl BlockHead {
    /// Appends the head.
    pub(crate) fn put(&self, base: HeadBase, out: &mut Vec<u8>) {
        put_varint(out, u64::from(self.rows - 1));
        put_varint(out, u64::from(self.first_stream - base.first_stream));
        put_varint(out, u64::from(self.streams - 1));
        put_varint(out, self.min_time.wrapping_sub(base.min_time).cast_unsigned());
        put_varint(out, self.max_time.wrapping_sub(self.min_time).cast_unsigned());
        put_varint(out, u64::from(self.largest));
        put_varint(out, self.offset - base.pages);
        let has = |bit: u8, on: bool| if on { bit } else { 0 };
        out.push(has(HAS_RUNS, self.runs.is_some()) | has(HAS_SPARSE, self.sparse.is_some()));
        self.time.put(self.offset, out);
        for extent in [&self.runs, &self.sparse].into_iter().flatten() {
            extent.put(self.offset, out);
        }
    }

    /// Reads a head; `block` and `first_row` come from the heads before it.
    pub(crate) fn read(
        r: &mut Reader<'_>,
        base: HeadBase,
        block: u32,
        first_row: u64,
    ) -> Result<BlockHead, Malformed> {
        let late = Malformed("numbers of a block out of range");
        let rows = r.len(crate::codec::PAGE_ROWS_MAX - 1)?;
        let first_stream = base.first_stream.checked_add(r.varint32()?).ok_or(late)?;
        let streams = r.len(rows)?;
        let min_time = base.min_time.checked_add_unsigned(r.varint()?).ok_or(late)?;
        let max_time = min_time.checked_add_unsigned(r.varint()?).ok_or(late)?;
        let largest = r.varint32()?;
        let offset = base.pages.checked_add(r.varint()?).ok_or(late)?;
        let flags = r.u8()?;
        if flags & !(HAS_RUNS | HAS_SPARSE) != 0 {
            return Err(Malformed("unknown flags of a block"));
        }
        let time = PageRef::read(r, offset)?;
        let mut extent = |bit: u8| match flags & bit != 0 {
            true => Extent::read(r, offset).map(Some),
            false => Ok(None),
        };
        let (runs, sparse) = (extent(HAS_RUNS)?, extent(HAS_SPARSE)?);
        let (rows, streams) =
            (super::layout::count32(rows) + 1, super::layout::count32(streams) + 1);
        if runs.is_some() != (streams > 1) || first_stream.checked_add(streams).is_none() {
            return Err(late);
        }
        Ok(BlockHead {
            block,
            first_row,
            rows,
            first_stream,
            streams,
            min_time,
            max_time,
            largest,
            offset,
            time,
            runs,
            sparse,
        })
    }
}
