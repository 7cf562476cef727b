//! Reads all of a part and checks everything that its format promises.

use std::ops::Range;
use std::sync::Arc;

use super::block_reader::{BlockReader, ColumnPage, page_of};
use super::header::{ColumnHeader, FilterRef, Home, PageRef};
use super::index_block::IndexBlock;
use super::layout::{FOOTER_LEN, HEADER_LEN, index};
use super::reader::PartReader;
use super::source::ReadContext;
use crate::codec::{Encoding, STRIP_ROWS, Strip};
use crate::index::Filter;
use crate::index::tokenizer::{WordClass, for_each_word, pieces};
use crate::record::{StreamKey, parse_canonical_int};
use crate::{Error, Result};

/// What is wrong, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Finding {
    /// From the start of the file.
    pub(crate) offset: u64,
    /// What is wrong.
    pub(crate) what: String,
}

/// What a walk over a part has found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct VerifyReport {
    /// Everything that is wrong; a damaged unit hides what it refers to.
    pub(crate) findings: Vec<Finding>,
    /// Bytes of the file.
    pub(crate) bytes: u64,
    /// Rows that were read.
    pub(crate) rows: u64,
    /// Blocks that were read.
    pub(crate) blocks: u64,
    /// Strips that were decoded.
    pub(crate) strips: u64,
}

/// Reads every byte of a part: checksums, pages, orders, counts, facts of headers, filters, and
/// that no byte is outside of a unit. Time: that of decoding the whole part.
///
/// # Errors
/// Only those that are no damage: of the system, or a part of a newer version.
pub(crate) fn verify_part(part: &PartReader, cx: &ReadContext<'_>) -> Result<VerifyReport> {
    let mut v = Verifier {
        part,
        cx,
        report: VerifyReport { bytes: part.footer().len, ..VerifyReport::default() },
        units: Vec::new(),
        hits: Vec::new(),
        stream_rows: Vec::new(),
    };
    v.tail()?;
    v.blocks()?;
    v.totals()?;
    v.coverage();
    Ok(v.report)
}

/// The offset and the members of each filter group.
type Filters = Vec<(u64, Option<Vec<Filter>>)>;

struct Verifier<'a> {
    part: &'a PartReader,
    cx: &'a ReadContext<'a>,
    report: VerifyReport,
    /// Every range of the file that something refers to.
    units: Vec<Range<u64>>,
    /// Rows with a value by name, constants and labels not counted.
    hits: Vec<u64>,
    stream_rows: Vec<u64>,
}

impl<'a> Verifier<'a> {
    fn find(&mut self, offset: u64, what: impl Into<String>) {
        self.report.findings.push(Finding { offset, what: what.into() });
    }

    /// The value, or none if it is damaged, which is noted.
    fn note<T>(&mut self, result: Result<T>) -> Result<Option<T>> {
        match result {
            Ok(value) => Ok(Some(value)),
            Err(Error::Corrupted(c)) => {
                self.find(c.offset, c.what);
                Ok(None)
            }
            Err(e) => Err(e),
        }
    }

    fn unit(&mut self, range: Range<u64>) {
        if !range.is_empty() {
            self.units.push(range);
        }
    }

    fn tail(&mut self) -> Result<()> {
        let (part, cx) = (self.part, self.cx);
        let footer = part.footer();
        self.unit(0..HEADER_LEN as u64);
        self.unit(footer.directory.range());
        self.unit(footer.directory.end()..footer.directory.end() + FOOTER_LEN as u64);
        let sections = self.note(part.sections(cx))?.unwrap_or_default().to_vec();
        for section in sections {
            self.unit(section.at.range());
            // Sections of unknown kinds are not parsed, but their bytes count.
            let read = part.read_unit(cx, &section.at, "a section of the tail");
            self.note(read)?;
        }
        let names = self.note(part.names(cx))?.map_or(0, |names| names.len());
        self.hits = vec![0; names];
        self.note(part.inputs(cx))?;
        let chunks = self.note(part.chunks(cx))?.unwrap_or_default().to_vec();
        let mut before: Option<(Vec<u8>, StreamKey)> = None;
        for (i, at) in chunks.iter().enumerate() {
            self.unit(at.at.range());
            let Some(chunk) = self.note(part.chunk(cx, i))? else { continue };
            for stream in 0..chunk.len() {
                self.stream_rows.push(chunk.rows(stream));
                let key = chunk.key(stream).map_err(|e| part.malformed(at.at.offset, e));
                let Some(key) = self.note(key)? else { continue };
                let text = key.text();
                if before.as_ref().is_some_and(|(before, other)| {
                    (before, other.labels()) >= (&text, key.labels())
                }) {
                    self.find(at.at.offset, "streams out of order");
                }
                before = Some((text, key));
            }
            for name in chunk.constant_names() {
                let column = chunk.constant(name).map_err(|e| part.malformed(at.at.offset, e));
                let Some(Some(column)) = self.note(column)? else { continue };
                let rows = (0..chunk.len()).filter(|i| !column.value(*i).is_empty());
                self.hit(name, rows.map(|i| chunk.rows(i)).sum());
            }
            for label in chunk.label_names() {
                let column = chunk.label(label).map_err(|e| part.malformed(at.at.offset, e));
                let Some(Some(column)) = self.note(column)? else { continue };
                let rows = (0..chunk.len()).filter(|i| !column.value(*i).is_empty());
                if let Some(Some(id)) = self.note(part.names(cx).map(|names| names.id(label)))? {
                    self.hit(id, rows.map(|i| chunk.rows(i)).sum());
                }
            }
        }
        Ok(())
    }

    fn hit(&mut self, name: u32, rows: u64) {
        match self.hits.get_mut(name as usize) {
            Some(hits) => *hits = hits.saturating_add(rows),
            None => self.find(self.part.footer().directory.offset, "a column without a name"),
        }
    }

    fn blocks(&mut self) -> Result<()> {
        let (part, cx) = (self.part, self.cx);
        let entries = self.note(part.metaindex(cx))?.unwrap_or_default();
        for (e, entry) in entries.iter().enumerate() {
            self.unit(entry.at.range());
            let Some(index) = self.note(part.index_block(cx, e))? else { continue };
            let heads = || index.heads();
            if heads().map(|h| h.min_time).min() != Some(entry.min_time)
                || heads().map(|h| h.max_time).max() != Some(entry.max_time)
            {
                self.find(entry.at.offset, "times of the metaindex are not those of its blocks");
            }
            let filters = self.filters(&index)?;
            for i in 0..index.len() {
                let Some(block) = self.note(part.block(cx, &index, i))? else { continue };
                self.block(&block)?;
                let columns = index.columns(i).map_err(|e| part.malformed(entry.at.offset, e));
                for (name, header) in self.note(columns)?.unwrap_or_default() {
                    self.column(&block, name, &header, &filters)?;
                }
            }
        }
        Ok(())
    }

    /// The filters of an index block by group and member; none of damaged groups.
    fn filters(&mut self, index: &IndexBlock) -> Result<Filters> {
        let mut groups = Vec::new();
        for placed in index.groups() {
            self.unit(placed.range());
            let members = self.note(self.part.filters(self.cx, placed))?;
            groups.push((placed.offset, members));
        }
        Ok(groups)
    }

    /// Runs and times of a block.
    fn block(&mut self, block: &BlockReader<'a>) -> Result<()> {
        let head = block.head_of_block().clone();
        self.report.blocks += 1;
        self.report.rows += u64::from(head.rows);
        for extent in [&head.runs, &head.sparse].into_iter().flatten() {
            self.unit(extent.range());
        }
        if let Some(sparse) = &head.sparse {
            let read = self.part.read_unit(self.cx, sparse, "a sparse page");
            self.note(read)?;
        }
        let mut times: Vec<i64> = Vec::new();
        for (_, strip) in self.strips(block, &head.time)? {
            match strip.as_ref() {
                Strip::Times(strip) => times.extend_from_slice(strip),
                _ => self.find(head.time.offset, "times of another encoding"),
            }
        }
        if times.len() != head.rows as usize {
            return Ok(());
        }
        let range = (times.iter().min().copied(), times.iter().max().copied());
        if range != (Some(head.min_time), Some(head.max_time)) {
            self.find(head.offset, "times of a block are not those of its header");
        }
        let Some(runs) = self.note(block.runs().cloned())? else { return Ok(()) };
        for run in 0..runs.len() {
            let rows = runs.rows(run);
            let stream = (head.first_stream as usize).saturating_add(run);
            match self.stream_rows.get_mut(stream).map(|n| n.checked_sub(rows.len() as u64)) {
                Some(Some(left)) => {
                    if let Some(rows) = self.stream_rows.get_mut(stream) {
                        *rows = left;
                    }
                }
                _ => self.find(head.offset, "a run with more rows than its stream"),
            }
            let times = times.get(rows.start as usize..rows.end as usize).unwrap_or(&[]);
            let (min, max) = runs.times(run).unwrap_or((i64::MAX, i64::MIN));
            if times.iter().any(|t| *t < min || *t > max) || !times.is_sorted() {
                self.find(head.offset, "times of a run out of order or outside of its bounds");
            }
        }
        Ok(())
    }

    /// All strips of a page, as far as they can be decoded.
    fn strips(
        &mut self,
        block: &BlockReader<'a>,
        page: &PageRef,
    ) -> Result<Vec<(usize, Arc<Strip>)>> {
        self.unit(page.offset..page.offset.saturating_add(page.len));
        let mut out = Vec::new();
        let Some(head) = self.note(block.head(page))? else { return Ok(out) };
        for i in 0..block.strips() {
            if let Some(strip) = self.note(block.strip(page, &head, i))? {
                self.report.strips += 1;
                out.push((i, strip));
            }
        }
        Ok(out)
    }

    fn column(
        &mut self,
        block: &BlockReader<'a>,
        name: u32,
        header: &ColumnHeader,
        filters: &Filters,
    ) -> Result<()> {
        self.hit(name, u64::from(header.present));
        let mut check = Check::new(header);
        let own = header.filters.map(|at| self.filter_of(block, header, at, filters));
        let has_filter = own.iter().any(Option::is_some);
        let mut denied = None;
        let mut value = |check: &mut Check, value: &[u8]| {
            check.value(value);
            if !has_filter {
                return;
            }
            for_each_word(value, |_, w| {
                let Some(class) = WordClass::of(w) else { return };
                let mut check = |class: WordClass, word: &[u8]| {
                    if let Some(Some((at, filter))) = own.get(class as usize)
                        && !filter.may_have(word)
                    {
                        denied = Some(*at);
                    }
                };
                check(class, w);
                if class == WordClass::Digits {
                    pieces(w, |_, piece| check(WordClass::Pieces, piece));
                }
            });
        };
        match page_of(header) {
            ColumnPage::Page(page) => {
                let strips = self.strips(block, &page)?;
                if page.encoding == Encoding::Const {
                    check.present = header.present;
                } else if strips.len() == block.strips() {
                    let mut scratch = Vec::new();
                    for (_, strip) in strips {
                        debug_assert!(strip.len() <= STRIP_ROWS, "a strip is bounded");
                        (0..strip.len())
                            .for_each(|r| value(&mut check, strip.get(r, &mut scratch)));
                    }
                } else {
                    return Ok(());
                }
            }
            ColumnPage::Sparse(at) => {
                let Some(column) = self.note(block.sparse(&at))? else { return Ok(()) };
                column.values.iter().for_each(|v| value(&mut check, v));
            }
            ColumnPage::Const(_) | ColumnPage::Absent => {
                check.present = header.present;
                if matches!(header.home, Home::SameAs(_)) {
                    let other = block.header(name);
                    let other = self.note(other)?.flatten();
                    check.ok = other.is_some_and(|h| h.present == header.present);
                }
            }
        }
        if !check.ok || check.present != header.present {
            let at = column_offset(block, header);
            self.find(at, "values of a column are not what its header says");
        }
        if let Some(at) = denied {
            self.find(at, "a filter that denies a word");
        }
        Ok(())
    }

    /// A filter of a column and where its group is; none if its group is damaged, or if it was
    /// made by tables of another version and says nothing to this one.
    fn filter_of<'f>(
        &mut self,
        block: &BlockReader<'a>,
        header: &ColumnHeader,
        at: Option<FilterRef>,
        filters: &'f Filters,
    ) -> Option<(u64, &'f Filter)> {
        let FilterRef { group, member } = at?;
        let known = self.part.footer().filters_known();
        match filters.get(index(group)) {
            Some((_, None)) => None,
            Some((at, Some(members))) if index(member) < members.len() => {
                members.get(index(member)).filter(|_| known).map(|filter| (*at, filter))
            }
            _ => {
                self.find(column_offset(block, header), "no such filter");
                None
            }
        }
    }

    fn totals(&mut self) -> Result<()> {
        let (part, at) = (self.part, self.part.footer().directory.offset);
        if !self.report.findings.is_empty() {
            // Damaged units are not counted, so the sums would only repeat what was found.
            return Ok(());
        }
        if self.stream_rows.iter().any(|left| *left != 0) {
            self.find(at, "streams with other rows than the stream table says");
        }
        let names = self.note(
            part.names(self.cx)
                .map(|names| (0..).zip(&self.hits).all(|(id, hits)| names.hits(id) == *hits)),
        )?;
        if names == Some(false) {
            self.find(at, "columns with other rows than the names say");
        }
        Ok(())
    }

    /// Every byte must be in exactly one unit.
    fn coverage(&mut self) {
        let damaged = !self.report.findings.is_empty();
        let mut units = std::mem::take(&mut self.units);
        units.sort_by_key(|u| (u.start, u.end));
        let mut end = 0;
        for unit in units {
            if unit.start < end {
                self.find(unit.start, "a unit that overlaps another");
            } else if unit.start > end && !damaged {
                self.find(end, "bytes that belong to no unit");
            }
            end = end.max(unit.end);
        }
        if end != self.report.bytes && !damaged {
            self.find(end, "bytes that belong to no unit");
        }
    }
}

fn column_offset(block: &BlockReader<'_>, header: &ColumnHeader) -> u64 {
    match &header.home {
        Home::Page(page) => page.offset,
        _ => block.head_of_block().offset,
    }
}

/// Compares values with the facts of a header.
struct Check {
    present: u32,
    lengths: Option<(u32, u32)>,
    ints: Option<(i64, i64)>,
    ok: bool,
}

impl Check {
    fn new(header: &ColumnHeader) -> Check {
        Check { present: 0, lengths: header.facts.lengths, ints: header.facts.ints, ok: true }
    }

    fn value(&mut self, value: &[u8]) {
        if value.is_empty() {
            return;
        }
        self.present += 1;
        let len = value.len() as u64;
        if let Some((min, max)) = self.lengths {
            self.ok &= u64::from(min) <= len && len <= u64::from(max);
        }
        if let Some((min, max)) = self.ints {
            self.ok &= parse_canonical_int(value).is_some_and(|n| min <= n && n <= max);
        }
    }
}
