//! Rows in, pages out: gathers the columns of a block and writes it.

use super::column_buffer::ColumnBuffer;
use super::filters::{FilterMaker, facts};
use super::header::{BlockHead, ColumnHeader, Facts, HeadRef, Home, PageRef};
use super::index_block::ColumnDraft;
use super::layout::{SPARSE_RAW_MAX, count32};
use super::names::Names;
use super::runs::RunsBuilder;
use super::sink::Out;
use super::sparse::put_piece;
use super::stream_columns::StreamColumns;
use super::writer::Profile;
use crate::codec::compress::Compressor;
use crate::codec::{
    Beside, EncodeOptions, EncodedPage, Encoder, Encoding, FIELDS_MAX, PageInput, PageStats,
};
use crate::error::Malformed;
use crate::index::tokenizer::PerClass;
use crate::io::checksum;
use crate::record::TextVec;
use crate::{Error, Result};

/// Columns beyond so many, the largest first, go to the sparse page if they are rare.
const PAGES_MIN: usize = 64;
/// A column is rare if fewer than one in so many rows have it.
const RARE: u64 = 64;
/// Rare columns of fewer bytes go to the sparse page in any case: a page would cost more.
const SMALL: usize = 2_048;
/// Columns of fewer bytes are not compared with others.
const SAME_MIN: usize = 64;

/// When a block is full.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Rows of a block.
    pub(super) rows: u32,
    /// Bytes of its largest column, unless a single row has more.
    pub(super) bytes: usize,
}

/// The largest blocks of the format's default: larger ones take fewer bytes, since pages share
/// templates and dictionaries, and more work where a few rows of many blocks are wanted.
pub(super) const FULL: Limits = Limits { rows: 65_536, bytes: 5 << 18 };

/// The block that is being filled.
pub(super) struct BlockBuilder {
    columns: Vec<ColumnBuffer>,
    /// Numbers of the columns that are not untouched.
    active: Vec<u32>,
    times: Vec<i64>,
    runs: RunsBuilder,
    first_stream: u32,
    largest: usize,
    /// Names of the constants of the stream that is being written, and the row of its run's start.
    constants: Vec<u32>,
    run_start: u32,
    tools: Tools,
}

/// What encodes.
pub(super) struct Tools {
    pub(super) encoder: Encoder,
    pub(super) zstd: Compressor,
    pub(super) filters: FilterMaker,
    dense: TextVec,
    /// The values of the columns to which the largest one may refer.
    beside: Vec<TextVec>,
}

impl Tools {
    pub(super) fn new(profile: Profile, zstd_level: i32) -> Tools {
        let stays = profile == Profile::Merge;
        let options = EncodeOptions { level: zstd_level, stays, verify: stays };
        Tools {
            encoder: Encoder::new(options),
            zstd: Compressor::new(zstd_level),
            filters: FilterMaker::new(profile),
            dense: TextVec::new(),
            beside: Vec::new(),
        }
    }
}

/// A block that was written: what its header needs, and rows with a value by column.
pub(super) struct Written {
    pub(super) head: BlockHead,
    pub(super) columns: Vec<ColumnDraft>,
}

impl BlockBuilder {
    pub(super) fn new(names: usize, tools: Tools) -> BlockBuilder {
        let mut columns = Vec::new();
        columns.resize_with(names, ColumnBuffer::default);
        BlockBuilder {
            columns,
            active: Vec::new(),
            times: Vec::new(),
            runs: RunsBuilder::default(),
            first_stream: 0,
            largest: 0,
            constants: Vec::new(),
            run_start: 0,
            tools,
        }
    }

    pub(super) fn tools(&mut self) -> &mut Tools {
        &mut self.tools
    }

    /// The number of rows so far.
    pub(super) fn rows(&self) -> u32 {
        count32(self.times.len())
    }

    /// Bytes of the largest column so far.
    pub(super) fn largest(&self) -> usize {
        self.largest
    }

    /// Begins the run of stream `ordinal`, whose constants stand under these names; at least one
    /// row of it must follow.
    pub(super) fn begin_run(&mut self, ordinal: u32, constants: &[u32]) {
        self.end_run();
        if self.runs.len() == 0 {
            self.first_stream = ordinal;
        }
        self.runs.begin();
        self.constants.clear();
        self.constants.extend_from_slice(constants);
        self.run_start = self.rows();
    }

    /// Counts the rows of the run that the stream's constants cover.
    fn end_run(&mut self) {
        let rows = self.rows() - self.run_start;
        self.run_start = self.rows();
        if rows == 0 {
            return;
        }
        for name in self.constants.drain(..) {
            let Some(column) = self.columns.get_mut(name as usize) else { continue };
            if column.is_untouched() {
                self.active.push(name);
            }
            column.cover(rows);
        }
    }

    /// Whether the row would make the block larger than `limits`.
    #[inline]
    pub(super) fn is_full(&self, fields: &[(u32, &[u8])], limits: Limits) -> bool {
        if self.times.is_empty() {
            return false;
        }
        if self.rows() >= limits.rows {
            return true;
        }
        let longest = fields.iter().map(|(_, value)| value.len()).max().unwrap_or(0);
        if self.largest + longest <= limits.bytes {
            return false;
        }
        let column = |name: u32| self.columns.get(name as usize).map_or(0, ColumnBuffer::bytes);
        fields.iter().any(|&(name, value)| column(name) + value.len() > limits.bytes)
    }

    /// Adds a row of the run begun last; `fields` without the stream's constants.
    #[inline]
    pub(super) fn row(&mut self, time: i64, fields: &[(u32, &[u8])]) {
        let row = self.rows();
        self.times.push(time);
        self.runs.row(time);
        for &(name, value) in fields {
            let Some(column) = self.columns.get_mut(name as usize) else { continue };
            if column.is_untouched() {
                self.active.push(name);
            }
            self.largest = self.largest.max(column.push(row, value));
        }
    }

    /// How many rows from `first` on fit in the block without making it larger than `limits`; an
    /// empty block holds at least one. The columns that `skip` names are not for it.
    pub(super) fn fitting(
        &self,
        held: &StreamColumns,
        first: u32,
        skip: &dyn Fn(u32) -> bool,
        limits: Limits,
    ) -> u32 {
        let rest = count32(held.len()).saturating_sub(first);
        let mut fitting = rest.min(limits.rows.saturating_sub(self.rows()));
        for (name, column) in held.active().filter(|(name, _)| !skip(*name)) {
            let bytes = self.columns.get(name as usize).map_or(0, ColumnBuffer::bytes);
            let fit = column.fitting(first, limits.bytes.saturating_sub(bytes));
            fitting = fitting.min(fit.unwrap_or(rest));
        }
        if self.times.is_empty() { fitting.max(1).min(rest) } else { fitting }
    }

    /// Adds rows of the run begun last, but for the columns that `skip` names.
    pub(super) fn columns(
        &mut self,
        held: &StreamColumns,
        rows: std::ops::Range<u32>,
        skip: &dyn Fn(u32) -> bool,
    ) {
        let base = self.rows();
        let times = held.times().get(rows.start as usize..rows.end as usize).unwrap_or(&[]);
        self.times.extend_from_slice(times);
        times.iter().for_each(|time| self.runs.row(*time));
        for (name, from) in held.active().filter(|(name, _)| !skip(*name)) {
            let Some(column) = self.columns.get_mut(name as usize) else { continue };
            let untouched = column.is_untouched();
            from.append_to(rows.clone(), base, column);
            if untouched && !column.is_untouched() {
                self.active.push(name);
            }
            self.largest = self.largest.max(column.bytes());
        }
    }

    /// Writes the block's pages and empties it; there must be rows.
    pub(super) fn write(
        &mut self,
        out: &mut Out<'_>,
        names: &Names,
        (block, first_row): (u32, u64),
    ) -> Result<Written> {
        self.end_run();
        self.runs.drop_empty();
        let (rows, offset) = (self.rows(), out.at());
        self.active.sort_unstable();
        let sparse = self.sparse_columns();
        let main = self.main_column(&sparse);
        // Where the main column belongs; it is written when all others are.
        let mut main_at = None;
        let mut paged: Vec<u32> = Vec::new();
        let mut columns = Vec::with_capacity(self.active.len());
        let mut candidates: Vec<u32> = Vec::new();
        let mut sparse_page = Vec::new();
        for i in 0..self.active.len() {
            let Some(&name) = self.active.get(i) else { break };
            let Some(column) = self.columns.get(name as usize) else { break };
            if column.present() == 0 {
                continue;
            }
            let present = column.present();
            let (home, facts, filters) = if sparse.binary_search(&name).is_ok() {
                let at = count32(sparse_page.len());
                put_piece(column.entries(), &mut sparse_page);
                let len = count32(sparse_page.len()) - at;
                (Home::Sparse { offset: at, len }, Facts::default(), PerClass::default())
            } else if let Some(value) = column.constant(rows) {
                let page = constant_page(value, rows);
                let facts = facts(&page);
                (Home::Page(put_page(out, page)?), facts, PerClass::default())
            } else if let Some(same) = find_same(&self.columns, &candidates, column) {
                (Home::SameAs(same), Facts::default(), PerClass::default())
            } else {
                if column.bytes() >= SAME_MIN {
                    candidates.push(name);
                }
                if main == Some(name) {
                    main_at = Some(columns.len());
                    continue;
                }
                paged.push(name);
                let values = column.dense(rows, &mut self.tools.dense);
                let input = PageInput::alone(values);
                let page = self.tools.encoder.encode_page(&input).map_err(broken)?;
                let filters = self.tools.filters.make(&page, values);
                let facts = facts(&page);
                (Home::Page(put_page(out, page)?), facts, filters)
            };
            let header = ColumnHeader { home, present, facts, filters: PerClass::default() };
            columns.push(ColumnDraft { name, header, filters });
        }
        if let (Some(name), Some(at)) = (main, main_at) {
            columns.insert(at, self.write_main(out, names, name, &paged)?);
        }
        let head = self.write_head(out, &sparse_page, (block, first_row, rows, offset))?;
        self.clear();
        Ok(Written { head, columns })
    }

    /// The column whose page may refer to others: the largest one.
    fn main_column(&self, sparse: &[u32]) -> Option<u32> {
        if !self.tools.encoder.refers() {
            return None;
        }
        let bytes = |name: &u32| self.columns.get(*name as usize).map_or(0, ColumnBuffer::bytes);
        let paged = self.active.iter().filter(|name| sparse.binary_search(name).is_err());
        paged.copied().max_by_key(bytes)
    }

    /// Writes the page of the main column, which may refer to those of `paged`.
    fn write_main(
        &mut self,
        out: &mut Out<'_>,
        names: &Names,
        name: u32,
        paged: &[u32],
    ) -> Result<ColumnDraft> {
        let rows = self.rows();
        let Tools { encoder, filters, dense, beside, .. } = &mut self.tools;
        let paged = paged.get(..paged.len().min(FIELDS_MAX)).unwrap_or(&[]);
        beside.resize_with(beside.len().max(paged.len()), TextVec::new);
        let column = |name: u32| self.columns.get(name as usize);
        let beside: Vec<Beside<'_>> = paged
            .iter()
            .zip(beside)
            .filter_map(|(name, scratch)| {
                let values = column(*name)?.dense(rows, scratch);
                Some(Beside { name: names.name(*name), values })
            })
            .collect();
        let column = column(name).ok_or_else(|| broken(Malformed("no such column")))?;
        let values = column.dense(rows, dense);
        let input = PageInput { values, beside: &beside };
        let page = encoder.encode_page(&input).map_err(broken)?;
        let filters = filters.make(&page, values);
        let facts = facts(&page);
        let home = Home::Page(put_page(out, page)?);
        let present = column.present();
        let header = ColumnHeader { home, present, facts, filters: PerClass::default() };
        Ok(ColumnDraft { name, header, filters })
    }

    /// Writes the pages that belong to no column.
    fn write_head(
        &mut self,
        out: &mut Out<'_>,
        sparse_page: &[u8],
        (block, first_row, rows, offset): (u32, u64, u32, u64),
    ) -> Result<BlockHead> {
        let mut packed = Vec::new();
        let sparse = if sparse_page.is_empty() {
            None
        } else {
            self.tools.zstd.pack(sparse_page, &mut packed);
            Some(out.unit(&packed)?)
        };
        let runs = if self.runs.len() < 2 {
            None
        } else {
            packed.clear();
            self.tools.zstd.pack(&self.runs.encode(), &mut packed);
            Some(out.unit(&packed)?)
        };
        let run_rows: Vec<u32> = self.runs.rows().collect();
        let times = self.tools.encoder.encode_times(&self.times, &run_rows);
        let time = put_page(out, times.map_err(broken)?)?;
        let (min_time, max_time) = self.runs.span();
        Ok(BlockHead {
            block,
            first_row,
            rows,
            first_stream: self.first_stream,
            streams: count32(self.runs.len()),
            min_time,
            max_time,
            largest: count32(self.largest),
            offset,
            time,
            runs,
            sparse,
        })
    }

    fn clear(&mut self) {
        for name in self.active.drain(..) {
            if let Some(column) = self.columns.get_mut(name as usize) {
                column.clear();
            }
        }
        self.times.clear();
        self.runs.clear();
        self.largest = 0;
        self.run_start = 0;
    }

    /// The columns that go to the sparse page, ascending.
    fn sparse_columns(&self) -> Vec<u32> {
        let rows = u64::from(self.rows());
        let column = |name: &u32| self.columns.get(*name as usize);
        let mut by_size: Vec<u32> = self.active.clone();
        by_size.retain(|name| column(name).is_some_and(|c| c.present() > 0));
        if by_size.len() > PAGES_MIN {
            by_size.sort_by_key(|name| std::cmp::Reverse(column(name).map_or(0, |c| c.bytes())));
        }
        let mut out: Vec<u32> = Vec::new();
        let mut bytes = 0;
        for (rank, name) in by_size.iter().enumerate() {
            let Some(column) = column(name) else { continue };
            let rare = u64::from(column.present()) * RARE < rows;
            let cost = column.bytes() + column.present() as usize * 8;
            let small = column.bytes() < SMALL || rank >= PAGES_MIN;
            if rare && small && bytes + cost < SPARSE_RAW_MAX {
                bytes += cost;
                out.push(*name);
            }
        }
        out.sort_unstable();
        out
    }
}

/// An earlier column of the block with the same values. Const pages are never referred to: which
/// rows they stand for depends on the stream constants of their own column.
fn find_same(columns: &[ColumnBuffer], earlier: &[u32], column: &ColumnBuffer) -> Option<u32> {
    if column.bytes() < SAME_MIN {
        return None;
    }
    earlier.iter().copied().find(|name| {
        columns.get(*name as usize).is_some_and(|other| {
            other.bytes() == column.bytes()
                && other.present() == column.present()
                && other.same_as(column)
        })
    })
}

pub(super) fn constant_page(value: &[u8], rows: u32) -> EncodedPage {
    let len = count32(value.len());
    let stats =
        PageStats { rows, present: rows, min_len: len, max_len: len, ..PageStats::default() };
    let head = value.to_vec();
    EncodedPage { encoding: Encoding::Const, head, strips: Vec::new(), stats, distinct: None }
}

/// Writes a page; short heads stay in the header.
pub(super) fn put_page(out: &mut Out<'_>, page: EncodedPage) -> Result<PageRef> {
    let offset = out.at();
    let head = if PageRef::is_inline(page.head.len()) {
        HeadRef::Inline(page.head)
    } else {
        out.put(&page.head)?;
        HeadRef::External { len: page.head.len() as u64, checksum: checksum(&page.head) }
    };
    out.put(&page.strips)?;
    Ok(PageRef { encoding: page.encoding, offset, len: out.at() - offset, head })
}

/// A page that does not decode to what was encoded must not be written.
fn broken(what: Malformed) -> Error {
    Error::Poisoned { why: format!("encoding of a page: {}", what.0) }
}
