//! One block of a part, open for evaluation.

use std::cell::{Cell, OnceCell};
use std::ops::Range;
use std::sync::Arc;

use super::header::{BlockHead, ColumnHeader, FilterRef, HeadRef, Home, PageRef};
use super::index_block::IndexBlock;
use super::layout::{Extent, RUNS_RAW_MAX, SPARSE_RAW_MAX};
use super::reader::PartReader;
use super::runs::Runs;
use super::source::{ReadContext, count};
use super::sparse::SparseColumn;
use crate::Result;
use crate::codec::template::TemplateIds;
use crate::codec::{Encoding, PageHead, Strip, strip_count};
use crate::error::Malformed;
use crate::index::{ChunkColumn, Filter, StreamChunk};
use crate::record::TextVec;

/// A block; what is read of it is kept only by the context's cache, but for its runs.
pub(crate) struct BlockReader<'a> {
    pub(super) part: &'a PartReader,
    pub(super) cx: &'a ReadContext<'a>,
    index: Arc<IndexBlock>,
    i: usize,
    head: BlockHead,
    runs: OnceCell<Arc<Runs>>,
    sparse: OnceCell<Arc<Vec<u8>>>,
    touched: Cell<bool>,
}

/// Where the values of a column of a block come from: the constant of the row's stream if that
/// has one, else the page.
#[derive(Debug, Clone)]
pub(crate) struct BlockColumn {
    /// Labels and constants of the block's streams under this name.
    pub(crate) constants: RunConstants,
    /// The values of the other rows.
    pub(crate) page: ColumnPage,
    /// The column's header, that of the column it equals if it is the same as another; its facts
    /// are about the page only.
    pub(crate) header: Option<ColumnHeader>,
}

impl BlockColumn {
    /// Whether no row of the block has a value.
    #[cfg(test)]
    pub(crate) fn is_absent(&self) -> bool {
        matches!((&self.constants, &self.page), (RunConstants::None, ColumnPage::Absent))
    }
}

/// Values that all rows of a run share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RunConstants {
    /// No run has one.
    None,
    /// All runs have this one; the page is not to be read.
    Every(Vec<u8>),
    /// Some have one.
    PerRun {
        /// For each run 0, or the number of its value plus 1.
        codes: Vec<u32>,
        /// The values; some may be unused, or equal.
        values: Arc<TextVec>,
    },
}

impl RunConstants {
    /// The constant of run `i`; empty if it has none.
    pub(crate) fn get(&self, run: usize) -> &[u8] {
        match self {
            RunConstants::None => &[],
            RunConstants::Every(value) => value,
            RunConstants::PerRun { codes, values } => {
                match codes.get(run).and_then(|code| (*code as usize).checked_sub(1)) {
                    Some(i) => values.get(i),
                    None => &[],
                }
            }
        }
    }
}

/// Values that stand in the block.
#[derive(Debug, Clone)]
pub(crate) enum ColumnPage {
    /// None.
    Absent,
    /// Every row whose stream has no constant has this value.
    Const(Vec<u8>),
    /// One value for each row, read by [`BlockReader::head`] and [`BlockReader::strip`]; empty
    /// for rows whose stream has a constant. A const page (its value longer than heads in headers
    /// may be) means every row whose stream has no constant.
    Page(PageRef),
    /// A piece of the sparse page, read by [`BlockReader::sparse`].
    Sparse(SparseRef),
}

/// A piece of the sparse page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SparseRef {
    offset: u32,
    len: u32,
    present: u32,
}

impl PartReader {
    /// Block `i` of an index block of this part.
    pub(crate) fn block<'a>(
        &'a self,
        cx: &'a ReadContext<'a>,
        index: &Arc<IndexBlock>,
        i: usize,
    ) -> Result<BlockReader<'a>> {
        let head = index.head(i).cloned();
        let head = head.ok_or_else(|| self.source().corrupted(0, "no such block"))?;
        Ok(BlockReader {
            part: self,
            cx,
            index: Arc::clone(index),
            i,
            head,
            runs: OnceCell::new(),
            sparse: OnceCell::new(),
            touched: Cell::new(false),
        })
    }
}

impl<'a> BlockReader<'a> {
    /// The block's rows, streams and times.
    pub(crate) fn head_of_block(&self) -> &BlockHead {
        &self.head
    }

    /// The part.
    pub(crate) fn part(&self) -> &'a PartReader {
        self.part
    }

    /// The number of rows.
    pub(crate) fn rows(&self) -> usize {
        self.head.rows as usize
    }

    /// The number of strips.
    pub(crate) fn strips(&self) -> usize {
        strip_count(self.rows())
    }

    /// The runs of the block's streams.
    pub(crate) fn runs(&self) -> Result<&Arc<Runs>> {
        if let Some(runs) = self.runs.get() {
            return Ok(runs);
        }
        let head = &self.head;
        let runs = match &head.runs {
            None => Arc::new(Runs::single(head.rows, head.min_time, head.max_time)),
            Some(at) => self.cx.cached(self.part.footer().part_id, at.offset, || {
                let raw = self.unpack(at, RUNS_RAW_MAX, "the runs of a block")?;
                let times = (head.min_time, head.max_time);
                let runs = Runs::parse(&raw, head.rows, head.streams, times);
                let runs = runs.map_err(|e| self.part.malformed(at.offset, e))?;
                let bytes = runs.heap_bytes();
                Ok((runs, bytes))
            })?,
        };
        Ok(self.runs.get_or_init(|| runs))
    }

    /// The header of column `name` as it stands in the block, one that is the same as another
    /// not resolved; absent if only streams have values for it.
    pub(crate) fn raw_header(&self, name: u32) -> Result<Option<ColumnHeader>> {
        self.index.column(self.i, name).map_err(|e| self.index_malformed(e))
    }

    /// The header of column `name`, that of the other column if it is the same as another.
    pub(crate) fn header(&self, name: u32) -> Result<Option<ColumnHeader>> {
        let Some(header) = self.raw_header(name)? else { return Ok(None) };
        let Home::SameAs(other) = header.home else { return Ok(Some(header)) };
        match self.raw_header(other)? {
            Some(same) if matches!(same.home, Home::Page(_)) => Ok(Some(same)),
            _ => Err(self.index_malformed(Malformed("a column the same as one without a page"))),
        }
    }

    /// All columns that stand in the block, ascending by name, with the header of the other column
    /// if they are the same as another. Linear, unlike asking for one after the other.
    pub(crate) fn headers(&self) -> Result<Vec<(u32, ColumnHeader)>> {
        let raw = self.raw_headers()?;
        let page = |name: u32| {
            let i = raw.binary_search_by_key(&name, |(n, _)| *n).ok()?;
            raw.get(i).map(|(_, h)| h).filter(|h| matches!(h.home, Home::Page(_)))
        };
        let mut out = Vec::with_capacity(raw.len());
        for (name, header) in &raw {
            let resolved = match header.home {
                Home::SameAs(other) => page(other),
                _ => Some(header),
            };
            let what = Malformed("a column the same as one without a page");
            let resolved = resolved.ok_or_else(|| self.index_malformed(what))?;
            out.push((*name, resolved.clone()));
        }
        Ok(out)
    }

    /// All columns that stand in the block, ascending by name, as they stand there.
    pub(super) fn raw_headers(&self) -> Result<Vec<(u32, ColumnHeader)>> {
        self.index.columns(self.i).map_err(|e| self.index_malformed(e))
    }

    /// Where the block's pages are.
    pub(super) fn pages(&self) -> Range<u64> {
        self.index.pages(self.i)
    }

    /// The bytes of the block's pages, not verified.
    pub(super) fn read_pages(&self) -> Result<Vec<u8>> {
        self.touch();
        let place = self.pages();
        let len = place.end.saturating_sub(place.start);
        count(&self.cx.stats.read_bytes, len);
        self.part.source().read(place.start, len)
    }

    /// The block's index block.
    pub(super) fn index(&self) -> &Arc<IndexBlock> {
        &self.index
    }

    /// All filters of the group that holds this one.
    pub(super) fn filters_beside(&self, filter: FilterRef) -> Result<Vec<Filter>> {
        let group = self.index.group(filter.group).map_err(|e| self.index_malformed(e))?;
        self.part.filters(self.cx, group)
    }

    /// Part numbers of the names of the columns that stand in the block, ascending.
    pub(crate) fn names(&self) -> Result<Vec<u32>> {
        self.index.names(self.i).map_err(|e| self.index_malformed(e))
    }

    /// Where the values of `name` come from. Reads the header and the stream table, no page.
    pub(crate) fn column(&self, name: &str) -> Result<BlockColumn> {
        let id = self.part.names(self.cx)?.id(name);
        let constants = self.constants(name, id)?;
        let header = match (&constants, id) {
            (RunConstants::Every(_), _) | (_, None) => None,
            (_, Some(id)) => self.header(id)?,
        };
        let page = match &header {
            None => ColumnPage::Absent,
            Some(header) => page_of(header),
        };
        Ok(BlockColumn { constants, page, header })
    }

    /// Labels and constants of the block's streams under one name.
    fn constants(&self, name: &str, id: Option<u32>) -> Result<RunConstants> {
        let (first, count) = (self.head.first_stream, self.head.streams as usize);
        let mut all = Joined::default();
        let mut done = 0usize;
        while done < count {
            let ordinal = first.saturating_add(super::layout::count32(done));
            let (chunk, at, place) = self.part.chunk_of(self.cx, ordinal)?;
            let n = (chunk.len() - place).min(count - done);
            let columns = columns_of(&chunk, name, id);
            let columns = columns.map_err(|e| self.part.malformed(at.at.offset, e))?;
            all.add(&columns, place..place + n);
            done += n;
        }
        Ok(all.finish())
    }

    /// The head of a page.
    pub(crate) fn head(&self, page: &PageRef) -> Result<Arc<PageHead>> {
        self.touch();
        let load = |bytes: &[u8]| {
            count(&self.cx.stats.pages, 1);
            let mut decoder = self.cx.decoder();
            let head = PageHead::parse(page.encoding, bytes, self.rows(), &mut decoder);
            let head = head.map_err(|e| self.part.malformed(page.offset, e))?;
            let inline = matches!(page.head, HeadRef::Inline(_));
            let strips =
                if inline { page.len.saturating_add(bytes.len() as u64) } else { page.len };
            if head.page_len() != strips {
                return Err(self.part.malformed(page.offset, Malformed("length of a page")));
            }
            Ok(head)
        };
        match &page.head {
            HeadRef::Inline(bytes) => load(bytes).map(Arc::new),
            HeadRef::External { len, checksum } => {
                let at = Extent { offset: page.offset, len: *len, checksum: *checksum };
                self.cx.cached(self.part.footer().part_id, page.offset, || {
                    let head = load(&self.part.read_unit(self.cx, &at, "the head of a page")?)?;
                    let bytes = head.heap_bytes();
                    Ok((head, bytes))
                })
            }
        }
    }

    /// Strip `i` of a page; `head` is the page's.
    pub(crate) fn strip(&self, page: &PageRef, head: &PageHead, i: usize) -> Result<Arc<Strip>> {
        let (offset, len) = self.strip_place(page, head, i);
        let load = || {
            let beside = self.strips_beside(page, head, i)?;
            let bytes = self.read_strip(offset, len)?;
            let strip = if head.templates().is_some() {
                let ids =
                    self.cached_ids(offset, len, || self.decode_ids(head, i, offset, &bytes))?;
                head.decode_template_values(i, &bytes, &ids, &beside, &mut self.cx.decoder())
            } else {
                head.decode_strip(i, &bytes, &beside, &mut self.cx.decoder())
            };
            let strip = strip.map_err(|e| self.part.malformed(offset, e))?;
            let bytes = strip.heap_bytes();
            count(&self.cx.stats.decoded_bytes, bytes as u64);
            Ok((strip, bytes))
        };
        if len == 0 {
            // Strips without bytes share their offset with the next unit.
            return load().map(|(strip, _)| Arc::new(strip));
        }
        self.cx.cached(self.part.footer().part_id, offset, load)
    }

    /// Strip `i` of the columns to which a page refers.
    fn strips_beside(&self, page: &PageRef, head: &PageHead, i: usize) -> Result<Vec<Arc<Strip>>> {
        let Some(fields) = head.fields() else { return Ok(Vec::new()) };
        let names = self.part.names(self.cx)?;
        let malformed = || self.part.malformed(page.offset, Malformed("a page of another column"));
        let strip = |name: &[u8]| {
            let id = std::str::from_utf8(name).ok().and_then(|name| names.id(name));
            let header = self.header(id.ok_or_else(malformed)?)?.ok_or_else(malformed)?;
            let Home::Page(other) = &header.home else { return Err(malformed()) };
            let head = self.head(other)?;
            // So that no page refers to itself, in circles.
            if head.fields().is_some() {
                return Err(malformed());
            }
            self.strip(other, &head, i)
        };
        fields.iter().map(strip).collect()
    }

    /// The templates of the rows of strip `i` of a page of templates, without their values.
    pub(crate) fn template_ids(
        &self,
        page: &PageRef,
        head: &PageHead,
        i: usize,
    ) -> Result<Arc<TemplateIds>> {
        let (offset, len) = self.strip_place(page, head, i);
        self.cached_ids(offset, len, || {
            let bytes = self.read_strip(offset, len)?;
            self.decode_ids(head, i, offset, &bytes)
        })
    }

    fn cached_ids(
        &self,
        offset: u64,
        len: u64,
        load: impl FnOnce() -> Result<(TemplateIds, usize)>,
    ) -> Result<Arc<TemplateIds>> {
        if len < 2 {
            return load().map(|(ids, _)| Arc::new(ids));
        }
        // The strip's second byte: its first one is the place of the strip as a whole.
        self.cx.cached(self.part.footer().part_id, offset.saturating_add(1), load)
    }

    fn decode_ids(
        &self,
        head: &PageHead,
        i: usize,
        offset: u64,
        bytes: &[u8],
    ) -> Result<(TemplateIds, usize)> {
        let ids = head.decode_template_ids(i, bytes, &mut self.cx.decoder());
        let ids = ids.map_err(|e| self.part.malformed(offset, e))?;
        let bytes = ids.heap_bytes();
        count(&self.cx.stats.decoded_bytes, bytes as u64);
        Ok((ids, bytes))
    }

    /// Where strip `i` of a page is in the file.
    fn strip_place(&self, page: &PageRef, head: &PageHead, i: usize) -> (u64, u64) {
        self.touch();
        let range = head.strip_range(i);
        (page.strip_offset(range.start), range.end.saturating_sub(range.start))
    }

    fn read_strip(&self, offset: u64, len: u64) -> Result<Vec<u8>> {
        count(&self.cx.stats.strips, 1);
        count(&self.cx.stats.read_bytes, len);
        self.part.source().read(offset, len)
    }

    /// The times of strip `i`.
    pub(crate) fn times(&self, i: usize) -> Result<Arc<Strip>> {
        let page = &self.head.time;
        let strip = self.strip(page, self.head(page)?.as_ref(), i)?;
        match *strip {
            Strip::Times(_) => Ok(strip),
            _ => Err(self.part.malformed(page.offset, Malformed("times of another encoding"))),
        }
    }

    /// The values of a column in the sparse page.
    pub(crate) fn sparse(&self, at: &SparseRef) -> Result<SparseColumn> {
        let Some(page) = &self.head.sparse else {
            return Err(self.index_malformed(Malformed("no sparse page")));
        };
        if self.sparse.get().is_none() {
            let raw = self.cx.cached(self.part.footer().part_id, page.offset, || {
                let raw = self.unpack(page, SPARSE_RAW_MAX, "a sparse page")?;
                let bytes = raw.capacity();
                Ok((raw, bytes))
            })?;
            let _ = self.sparse.set(raw);
        }
        let (from, len) = (at.offset as usize, at.len as usize);
        let raw = self.sparse.get().map_or(&[][..], |raw| raw.as_slice());
        let piece = raw.get(from..from.saturating_add(len));
        let column = piece
            .ok_or(Malformed("a piece past the sparse page"))
            .and_then(|piece| SparseColumn::parse(piece, self.head.rows, at.present));
        column.map_err(|e| self.part.malformed(page.offset, e))
    }

    /// Reads and unpacks a unit of the block.
    fn unpack(&self, at: &Extent, max: usize, what: &'static str) -> Result<Vec<u8>> {
        self.touch();
        let packed = self.part.read_unit(self.cx, at, what)?;
        let raw = self.cx.decoder().unpack(&packed, max);
        raw.map_err(|e| self.part.malformed(at.offset, e))
    }

    fn touch(&self) {
        if !self.touched.replace(true) {
            count(&self.cx.stats.blocks, 1);
        }
    }

    pub(super) fn index_malformed(&self, what: Malformed) -> crate::Error {
        self.part.malformed(self.head.offset, what)
    }
}

/// Where a header says the values are.
pub(super) fn page_of(header: &ColumnHeader) -> ColumnPage {
    match &header.home {
        Home::Page(page) => match &page.head {
            HeadRef::Inline(value) if page.encoding == Encoding::Const => {
                ColumnPage::Const(value.clone())
            }
            _ => ColumnPage::Page(page.clone()),
        },
        Home::Sparse { offset, len } => {
            ColumnPage::Sparse(SparseRef { offset: *offset, len: *len, present: header.present })
        }
        Home::SameAs(_) => ColumnPage::Absent,
    }
}

fn columns_of(
    chunk: &StreamChunk,
    name: &str,
    id: Option<u32>,
) -> std::result::Result<Vec<Arc<ChunkColumn>>, Malformed> {
    let label = chunk.label(name)?;
    let constant = match id {
        Some(id) => chunk.constant(id)?,
        None => None,
    };
    Ok([label, constant].into_iter().flatten().collect())
}

/// Codes of consecutive streams over chunks and columns.
#[derive(Debug, Default)]
struct Joined {
    codes: Vec<u32>,
    values: Option<Arc<TextVec>>,
}

impl Joined {
    /// Appends the streams `range` of a chunk; at most one of its columns has a value for each.
    fn add(&mut self, columns: &[Arc<ChunkColumn>], range: std::ops::Range<usize>) {
        let start = self.codes.len();
        self.codes.resize(start + range.len(), 0);
        for column in columns {
            let codes = column.codes.get(range.clone()).unwrap_or(&[]);
            if codes.iter().all(|code| *code == 0) {
                continue;
            }
            let base = self.append(&column.values);
            for (to, code) in self.codes.iter_mut().skip(start).zip(codes) {
                if *code > 0 {
                    *to = code + base;
                }
            }
        }
    }

    /// Appends values; what is to be added to their codes.
    fn append(&mut self, values: &Arc<TextVec>) -> u32 {
        match &mut self.values {
            None => {
                self.values = Some(Arc::clone(values));
                0
            }
            Some(all) => {
                let base = super::layout::count32(all.len());
                Arc::make_mut(all).extend(values);
                base
            }
        }
    }

    fn finish(self) -> RunConstants {
        let Some(values) = self.values else { return RunConstants::None };
        let first = self.codes.first().copied().unwrap_or(0);
        match (first as usize).checked_sub(1) {
            Some(value) if self.codes.iter().all(|code| *code == first) => {
                RunConstants::Every(values.get(value).to_vec())
            }
            _ => RunConstants::PerRun { codes: self.codes, values },
        }
    }
}
