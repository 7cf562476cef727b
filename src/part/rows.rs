//! All rows of a part, one after the other, a strip of each column in memory at a time.

use std::cell::RefCell;
use std::ops::Range;
use std::sync::Arc;

use super::block_reader::{BlockReader, ColumnPage, page_of};
use super::header::PageRef;
use super::index_block::IndexBlock;
use super::layout::count32;
use super::reader::PartReader;
use super::runs::Runs;
use super::source::ReadContext;
use super::sparse::SparseColumn;
use super::stream_columns::StreamColumns;
use crate::codec::{Encoding, PageHead, STRIP_ROWS, Strip};
use crate::error::Malformed;
use crate::index::StreamChunk;
use crate::record::StreamKey;
use crate::{Error, Result};

/// Walks over the rows of a part in its order.
pub(crate) struct RowCursor<'a> {
    part: &'a PartReader,
    cx: &'a ReadContext<'a>,
    entry: usize,
    /// The number of the next block in it.
    next: usize,
    index: Option<(usize, Arc<IndexBlock>)>,
    chunk: Option<(usize, Arc<StreamChunk>)>,
    block: Option<OpenBlock<'a>>,
    /// A block of one stream whose first row is the current one, before it is opened.
    whole: Option<BlockReader<'a>>,
    /// Row of the block; the one that is current.
    row: usize,
    stream: OpenStream,
    /// Where rows are counted that cannot be read; without it they are an error.
    skipped: Option<&'a SkippedRows>,
    /// What is being read, and passed over if that fails.
    unit: Option<SkippedUnit>,
}

/// Rows that a walk has passed over because they cannot be read.
#[derive(Debug, Default)]
pub(crate) struct SkippedRows {
    units: RefCell<Vec<SkippedUnit>>,
}

/// A unit that cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SkippedUnit {
    /// Its rows.
    pub(crate) rows: u64,
    /// The earliest time that they can have.
    pub(crate) min_time: i64,
    /// The latest time that they can have.
    pub(crate) max_time: i64,
}

impl SkippedRows {
    /// All of them together; none if every row could be read.
    pub(crate) fn total(&self) -> Option<SkippedUnit> {
        let join = |a: SkippedUnit, b: SkippedUnit| SkippedUnit {
            rows: a.rows.saturating_add(b.rows),
            min_time: a.min_time.min(b.min_time),
            max_time: a.max_time.max(b.max_time),
        };
        self.units.borrow().iter().copied().reduce(join)
    }
}

/// The stream of the current row.
#[derive(Debug, Default)]
struct OpenStream {
    ordinal: Option<u32>,
    key: Arc<StreamKey>,
    rows: u64,
    constants: Vec<(u32, Vec<u8>)>,
}

struct OpenBlock<'a> {
    reader: BlockReader<'a>,
    runs: Arc<Runs>,
    run: usize,
    columns: Vec<Column>,
    strip: Option<usize>,
    times: Arc<Strip>,
}

struct Column {
    name: u32,
    /// Which 64ths of the current strip may hold a value, from the lowest bit on: a stream has
    /// few of the columns of the block that it shares with others.
    present: u64,
    values: Values,
}

enum Values {
    /// The value of rows whose stream has no constant.
    Const(Vec<u8>),
    Page {
        page: PageRef,
        head: Arc<PageHead>,
        /// The current strip; numbers printed.
        strip: Arc<Strip>,
    },
    Sparse(SparseColumn),
}

impl PartReader {
    /// The rows of the part in its order; [`RowCursor::advance`] steps to the first.
    pub(crate) fn rows<'a>(&'a self, cx: &'a ReadContext<'a>) -> RowCursor<'a> {
        RowCursor {
            part: self,
            cx,
            entry: 0,
            next: 0,
            index: None,
            chunk: None,
            block: None,
            whole: None,
            row: 0,
            stream: OpenStream::default(),
            skipped: None,
            unit: None,
        }
    }

    /// As [`rows`](PartReader::rows), but passes over what is damaged: index blocks, blocks,
    /// strips, and the runs of streams whose labels cannot be read.
    pub(crate) fn sound_rows<'a>(
        &'a self,
        cx: &'a ReadContext<'a>,
        skipped: &'a SkippedRows,
    ) -> RowCursor<'a> {
        RowCursor { skipped: Some(skipped), ..self.rows(cx) }
    }
}

impl<'a> RowCursor<'a> {
    /// Steps to the next row; false behind the last.
    pub(crate) fn advance(&mut self) -> Result<bool> {
        self.open()?;
        loop {
            match self.walk(true) {
                Err(e @ Error::Corrupted(_)) => match (self.skipped, self.unit.take()) {
                    (Some(skipped), Some(unit)) => skipped.units.borrow_mut().push(unit),
                    _ => return Err(e),
                },
                stepped => return stepped,
            }
        }
    }

    /// Steps to the next row, but does not read the pages of a block of one stream that begins
    /// with it: [`whole_block`](RowCursor::whole_block) gives it, and the row's fields can be
    /// asked for after [`open`](RowCursor::open). A walk over sound rows always reads.
    pub(crate) fn step(&mut self) -> Result<bool> {
        if self.skipped.is_some() {
            return self.advance();
        }
        self.open()?;
        self.walk(false)
    }

    /// The block of one stream that begins with the current row, if its pages were not read yet.
    pub(crate) fn whole_block(&self) -> Option<&BlockReader<'a>> {
        self.whole.as_ref()
    }

    /// Reads the pages of the current row.
    pub(crate) fn open(&mut self) -> Result<()> {
        if let Some(reader) = self.whole.take() {
            self.block = Some(OpenBlock::new(reader)?);
            self.enter_row()?;
        }
        Ok(())
    }

    /// Leaves the block that [`whole_block`](RowCursor::whole_block) gives; the next step is to
    /// the row behind it.
    pub(crate) fn skip(&mut self) {
        self.whole = None;
    }

    /// One step; when it fails it has set `unit`, and stands on the last row of that.
    fn walk(&mut self, read: bool) -> Result<bool> {
        self.row += 1;
        let done = self.block.as_ref().is_none_or(|b| self.row >= b.reader.rows());
        if done {
            (self.row, self.block) = (0, None);
            let Some(reader) = self.next_block()? else { return Ok(false) };
            let head = reader.head_of_block();
            if !read && head.streams == 1 {
                let ordinal = head.first_stream;
                self.whole = Some(reader);
                if self.stream.ordinal != Some(ordinal) {
                    self.stream = self.open_stream(ordinal)?;
                }
                return Ok(true);
            }
            self.block = Some(OpenBlock::new(reader)?);
        }
        self.enter_row().map(|()| true)
    }

    /// Reads what the current row of the open block needs; fails as [`walk`](RowCursor::walk).
    fn enter_row(&mut self) -> Result<()> {
        let Some(block) = &mut self.block else { return Ok(()) };
        let head = block.reader.head_of_block();
        let (first_stream, min_time, max_time) = (head.first_stream, head.min_time, head.max_time);
        let rest = |row: usize, end: usize| {
            let rows = end.saturating_sub(row) as u64;
            SkippedUnit { rows, min_time, max_time }
        };
        let strip = self.row / STRIP_ROWS;
        if block.strip != Some(strip) {
            let end = ((strip + 1) * STRIP_ROWS).min(block.reader.rows());
            self.unit = Some(rest(self.row, end));
            if let Err(e) = block.load(strip) {
                self.row = end.saturating_sub(1);
                return Err(e);
            }
        }
        while self.row >= block.runs.rows(block.run).end as usize {
            block.run += 1;
        }
        let ordinal = first_stream + count32(block.run);
        if self.stream.ordinal != Some(ordinal) {
            let end = block.runs.rows(block.run).end as usize;
            self.unit = Some(rest(self.row, end));
            match self.open_stream(ordinal) {
                Ok(stream) => self.stream = stream,
                Err(e) => {
                    self.row = end.saturating_sub(1);
                    return Err(e);
                }
            }
        }
        Ok(())
    }

    /// The times of the current row and of those behind it that are read together with it: rows
    /// of its stream and strip. None before its pages are read.
    pub(crate) fn times(&self) -> &[i64] {
        let Some(block) = &self.block else { return &[] };
        let Strip::Times(times) = block.times.as_ref() else { return &[] };
        let at = self.row % STRIP_ROWS;
        let left = (block.runs.rows(block.run).end as usize).saturating_sub(self.row);
        times.get(at..times.len().min(at + left)).unwrap_or(&[])
    }

    /// Adds the current row and those behind it, `rows` of those that [`times`](RowCursor::times)
    /// speaks of, constants included, to `out`, which numbers the names by `numbers`. The next
    /// step is to the row behind them.
    pub(crate) fn take(&mut self, rows: usize, numbers: &[u32], out: &mut StreamColumns) {
        let first = out.add_rows(self.times().get(..rows).unwrap_or(&[]));
        let Some(block) = &self.block else { return };
        let number = |name: u32| numbers.get(name as usize).copied().unwrap_or(u32::MAX);
        let constants = &self.stream.constants;
        for (name, value) in constants {
            out.repeat(number(*name), first, count32(rows), value);
        }
        let at = self.row % STRIP_ROWS;
        let wanted = granules(at..at + rows);
        for column in block.columns.iter().filter(|column| column.present & wanted != 0) {
            let name = number(column.name);
            match &column.values {
                Values::Const(value) => {
                    if constants.binary_search_by_key(&column.name, |c| c.0).is_err() {
                        out.repeat(name, first, count32(rows), value);
                    }
                }
                Values::Page { strip, .. } => match strip.as_ref() {
                    Strip::Text(texts) => out.texts(name, first, texts, at..at + rows),
                    Strip::Codes { codes, dictionary } => {
                        let codes = codes.get(at..at + rows).unwrap_or(&[]);
                        let values = codes.iter().map(|code| dictionary.get(*code as usize));
                        out.values(name, (first..).zip(values));
                    }
                    Strip::Ints { .. } | Strip::Times(_) | Strip::Templates(_) => {}
                },
                Values::Sparse(column) => {
                    let here = column.between(self.row, self.row + rows);
                    let shift = |row: u32| row - count32(self.row) + first;
                    out.values(name, here.map(|(row, value)| (shift(row), value)));
                }
            }
        }
        self.row += rows.saturating_sub(1);
    }

    /// The time of the current row.
    pub(crate) fn time(&self) -> i64 {
        if let Some(whole) = &self.whole {
            return whole.head_of_block().min_time;
        }
        match self.block.as_ref().map(|b| b.times.as_ref()) {
            Some(Strip::Times(times)) => times.get(self.row % STRIP_ROWS).copied().unwrap_or(0),
            _ => 0,
        }
    }

    /// The ordinal of the current row's stream.
    pub(crate) fn ordinal(&self) -> u32 {
        self.stream.ordinal.unwrap_or(0)
    }

    /// The labels of the current row's stream.
    pub(crate) fn key(&self) -> &Arc<StreamKey> {
        &self.stream.key
    }

    /// The number of rows of the part in the current row's stream.
    pub(crate) fn stream_rows(&self) -> u64 {
        self.stream.rows
    }

    /// The fields of the current row that are constants of its stream, ascending by number.
    pub(crate) fn constants(&self) -> &[(u32, Vec<u8>)] {
        &self.stream.constants
    }

    /// Appends the other fields of the current row, by part numbers of their names, ascending.
    #[cfg(any(test, feature = "fuzzing"))]
    pub(crate) fn fields<'v>(&'v self, out: &mut Vec<(u32, &'v [u8])>) {
        let Some(block) = &self.block else { return };
        let constants = &self.stream.constants;
        for column in &block.columns {
            let value = match &column.values {
                Values::Const(value) => {
                    let covered = constants.binary_search_by_key(&column.name, |c| c.0).is_ok();
                    if covered { &[] } else { value.as_slice() }
                }
                Values::Page { strip, .. } => text(strip, self.row % STRIP_ROWS),
                Values::Sparse(column) => {
                    column.between(self.row, self.row + 1).next().map_or(&[][..], |(_, v)| v)
                }
            };
            if !value.is_empty() {
                out.push((column.name, value));
            }
        }
    }

    /// The next block; none behind the last.
    fn next_block(&mut self) -> Result<Option<BlockReader<'a>>> {
        self.unit = None;
        let entries = self.part.metaindex(self.cx)?;
        let number = self.entry;
        let Some(entry) = entries.get(number) else { return Ok(None) };
        let index = match &self.index {
            Some((held, index)) if *held == number => Arc::clone(index),
            _ => {
                self.unit = Some(SkippedUnit {
                    rows: entry.rows,
                    min_time: entry.min_time,
                    max_time: entry.max_time,
                });
                // Behind it, if it cannot be read.
                self.entry += 1;
                let index = self.part.index_block_once(self.cx, number)?;
                self.entry = number;
                index
            }
        };
        self.index = Some((number, Arc::clone(&index)));
        let block = self.next;
        self.next += 1;
        if self.next >= entry.blocks as usize {
            self.next = 0;
            self.entry += 1;
        }
        self.unit = index.heads().nth(block).map(|head| SkippedUnit {
            rows: u64::from(head.rows),
            min_time: head.min_time,
            max_time: head.max_time,
        });
        self.part.block(self.cx, &index, block).map(Some)
    }

    fn open_stream(&mut self, ordinal: u32) -> Result<OpenStream> {
        let (number, at) = self.part.locate(self.cx, ordinal)?;
        let chunk = match &self.chunk {
            Some((held, chunk)) if *held == number => Arc::clone(chunk),
            _ => self.part.chunk_once(self.cx, number)?,
        };
        self.chunk = Some((number, Arc::clone(&chunk)));
        let i = (ordinal - at.first) as usize;
        let bad = |e: Malformed| self.part.malformed(at.at.offset, e);
        let constants = chunk.constants_of(i).map_err(bad)?;
        let key = chunk.key(i).map_err(bad)?;
        let (key, rows) = (Arc::new(key), chunk.rows(i));
        Ok(OpenStream { ordinal: Some(ordinal), key, rows, constants })
    }
}

impl<'a> OpenBlock<'a> {
    fn new(reader: BlockReader<'a>) -> Result<OpenBlock<'a>> {
        let mut columns = Vec::new();
        for (name, header) in reader.headers()? {
            let values = match page_of(&header) {
                ColumnPage::Absent => continue,
                ColumnPage::Const(value) => Values::Const(value),
                ColumnPage::Sparse(at) => Values::Sparse(reader.sparse(&at)?),
                ColumnPage::Page(page) => {
                    let head = reader.head(&page)?;
                    match head.dictionary().filter(|_| page.encoding == Encoding::Const) {
                        Some(values) => Values::Const(values.get(0).to_vec()),
                        None => Values::Page {
                            page,
                            head,
                            strip: Arc::new(Strip::Times(Arc::default())),
                        },
                    }
                }
            };
            columns.push(Column { name, present: u64::MAX, values });
        }
        let runs = Arc::clone(reader.runs()?);
        let times = Arc::new(Strip::Times(Arc::default()));
        Ok(OpenBlock { reader, runs, run: 0, columns, strip: None, times })
    }

    fn load(&mut self, i: usize) -> Result<()> {
        self.strip = Some(i);
        self.times = self.reader.times(i)?;
        for column in &mut self.columns {
            if let Values::Page { page, head, strip } = &mut column.values {
                let read = self.reader.strip(page, head, i)?;
                *strip = match *read {
                    Strip::Ints { .. } | Strip::Templates(_) => {
                        Arc::new(Strip::Text(Arc::new(read.to_text())))
                    }
                    _ => read,
                };
                column.present = present(strip);
            }
        }
        Ok(())
    }
}

/// Rows of a 64th of a strip.
const GRANULE_ROWS: usize = STRIP_ROWS / 64;

/// The 64ths of a strip that `rows` touch.
fn granules(rows: Range<usize>) -> u64 {
    let first = (rows.start / GRANULE_ROWS).min(63);
    let last = (rows.end.saturating_sub(1) / GRANULE_ROWS).clamp(first, 63);
    (u64::MAX >> (63 - last)) & (u64::MAX << first)
}

/// The 64ths of a strip that hold a value.
fn present(strip: &Strip) -> u64 {
    let mask = |granules: &mut dyn Iterator<Item = bool>| {
        granules.take(64).enumerate().fold(0u64, |mask, (i, any)| mask | (u64::from(any) << i))
    };
    match strip {
        Strip::Text(texts) => mask(
            &mut (0..texts.len())
                .step_by(GRANULE_ROWS)
                .map(|from| texts.length_of(from..texts.len().min(from + GRANULE_ROWS)) > 0),
        ),
        Strip::Codes { codes, dictionary } => {
            // Distinct values: one of them at most is none.
            let Some(none) = dictionary.iter().position(<[u8]>::is_empty) else { return u64::MAX };
            mask(&mut codes.chunks(GRANULE_ROWS).map(|c| c.iter().any(|c| *c as usize != none)))
        }
        Strip::Ints { .. } | Strip::Times(_) | Strip::Templates(_) => u64::MAX,
    }
}

/// A value of a strip that is held as text.
#[cfg(any(test, feature = "fuzzing"))]
fn text(strip: &Strip, row: usize) -> &[u8] {
    match strip {
        Strip::Text(text) => text.get(row),
        Strip::Codes { codes, dictionary } => {
            codes.get(row).map_or(&[], |code| dictionary.get(*code as usize))
        }
        Strip::Ints { .. } | Strip::Times(_) | Strip::Templates(_) => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn granules_cover_rows_and_values() {
        assert_eq!(STRIP_ROWS % 64, 0);
        for (from, rows) in [(0, 1), (0, STRIP_ROWS), (31, 2), (STRIP_ROWS - 1, 1), (700, 64)] {
            let naive = (from..from + rows).fold(0u64, |m, row| m | (1 << (row / GRANULE_ROWS)));
            assert_eq!(granules(from..from + rows), naive, "{from} {rows}");
        }
        let value = |row: usize| if row % 700 == 69 { &b"x"[..] } else { b"" };
        for rows in [1, 69, 70, 800, STRIP_ROWS] {
            let texts: crate::record::TextVec = (0..rows).map(value).collect();
            let naive =
                (69..rows).step_by(700).fold(0u64, |m, row| m | (1 << (row / GRANULE_ROWS)));
            assert_eq!(present(&Strip::Text(Arc::new(texts))), naive, "{rows}");
            let codes: Vec<u32> = (0..rows).map(|row| value(row).is_empty().into()).collect();
            let codes = Arc::new(codes);
            let dictionary = Arc::new([&b"x"[..], b""].into_iter().collect());
            assert_eq!(present(&Strip::Codes { codes, dictionary }), naive, "{rows}");
        }
    }
}
