//! Columns of one strip of a block, read when they are first asked for.

use std::cell::{OnceCell, RefCell};
use std::ops::Range;
use std::sync::Arc;

use super::block::{BlockScan, ByName, ScanColumn, get_or_try};
use super::facts::is_special;
use super::stored::gather_typed;
use crate::codec::template::TemplateIds;
use crate::codec::{Encoding, PageHead, Strip};
use crate::error::Result;
use crate::part::{BlockReader, ColumnPage, PageRef, RunConstants, SparseColumn};
use crate::query::ast::{STREAM_FIELD, STREAM_ID_FIELD, TIME_FIELD};
use crate::query::column::Column;
use crate::query::filter::{
    CodedRows, ColumnRef, ColumnSource, RowNumbers, ValuePredicate, Verdict,
};
use crate::record::TextVec;

/// Values are made for some rows alone if these are so many times fewer than the rows, or the
/// streams, that the others would be made for.
const FEW: usize = 4;

/// Rows whose value is a constant of their stream, ascending, and that value.
pub(super) type ConstantRows = Vec<(Range<usize>, Vec<u8>)>;

/// One strip of a block as a source of columns.
pub(crate) struct StripSource<'b, 'a> {
    pub(super) block: &'b BlockScan<'a>,
    pub(super) strip: usize,
    pub(super) rows: usize,
    runs: OnceCell<Vec<(usize, Range<usize>)>>,
    run_ends: OnceCell<Arc<Vec<u32>>>,
    cache: RefCell<ByName<Arc<Column>>>,
}

/// A strip of a page of templates, and the rows whose value is a constant of their stream instead.
type WithConstants<'b> = (TemplatePage<'b>, ConstantRows);

/// A strip of a page of templates.
pub(super) struct TemplatePage<'b> {
    reader: &'b BlockReader<'b>,
    page: PageRef,
    pub(super) head: Arc<PageHead>,
    strip: usize,
}

impl TemplatePage<'_> {
    /// The templates of the rows.
    pub(super) fn ids(&self) -> Result<Arc<TemplateIds>> {
        self.reader.template_ids(&self.page, &self.head, self.strip)
    }

    /// The rows with the values of their slots.
    pub(super) fn strip(&self) -> Result<Arc<Strip>> {
        self.reader.strip(&self.page, &self.head, self.strip)
    }
}

impl<'b, 'a> StripSource<'b, 'a> {
    /// Strip `strip` of a block; nothing is read.
    pub(crate) fn new(block: &'b BlockScan<'a>, strip: usize) -> StripSource<'b, 'a> {
        let rows = block.strip_rows(strip).len();
        StripSource {
            block,
            strip,
            rows,
            runs: OnceCell::new(),
            run_ends: OnceCell::new(),
            cache: RefCell::default(),
        }
    }

    /// The runs of the strip, each with its rows, counted from the strip's first.
    pub(crate) fn runs(&self) -> Result<&[(usize, Range<usize>)]> {
        get_or_try(&self.runs, || self.block.strip_runs(self.strip)).map(Vec::as_slice)
    }

    /// The values of a field, kept for the next time.
    pub(crate) fn shared(&self, name: &str) -> Result<Arc<Column>> {
        if let Some(known) = self.cache.borrow().get(name) {
            return Ok(known.clone());
        }
        let column = Arc::new(match name {
            TIME_FIELD => self.times()?,
            STREAM_FIELD => self.by_run(self.block.stream_texts()?)?,
            STREAM_ID_FIELD => self.by_run(self.block.stream_ids()?)?,
            _ if !self.block.exists(name)? => return Ok(self.block.nowhere().1.clone()),
            _ => {
                let column = self.block.column(name)?;
                self.stored(&column)?
            }
        });
        self.cache.borrow_mut().insert(Box::from(name), column.clone());
        Ok(column)
    }

    fn times(&self) -> Result<Column> {
        Ok(match &*self.block.reader.times(self.strip)? {
            Strip::Times(times) => Column::Times(Arc::clone(times)),
            _ => Column::absent(),
        })
    }

    /// The value of each row's stream.
    fn by_run(&self, values: &Arc<TextVec>) -> Result<Column> {
        if let [(run, _)] = self.runs()? {
            return Ok(Column::constant(values.get(*run)));
        }
        self.of_runs(|run| u32::try_from(run).unwrap_or(u32::MAX), values)
    }

    /// A code per run.
    pub(super) fn of_runs(
        &self,
        code_of: impl Fn(usize) -> u32,
        values: &Arc<TextVec>,
    ) -> Result<Column> {
        let runs = self.runs()?;
        let ends = self.run_ends.get_or_init(|| {
            let end = |(_, rows): &(usize, Range<usize>)| u32::try_from(rows.end);
            Arc::new(runs.iter().map(|run| end(run).unwrap_or(u32::MAX)).collect())
        });
        let codes = runs.iter().map(|(run, _)| code_of(*run)).collect();
        Ok(Column::Runs {
            ends: Arc::clone(ends),
            codes: Arc::new(codes),
            dictionary: Arc::clone(values),
        })
    }

    /// Where the strip of a field is that is stored as templates, and the rows whose value is a
    /// constant of their stream instead.
    pub(super) fn template_page(&self, name: &str) -> Result<Option<WithConstants<'_>>> {
        if is_special(name) {
            return Ok(None);
        }
        let column = self.block.column(name)?;
        let ColumnPage::Page(page) = &column.column.page else { return Ok(None) };
        if page.encoding != Encoding::Templates {
            return Ok(None);
        }
        let Some(constants) = self.constants(&column)? else { return Ok(None) };
        let head = self.block.head(&column, page)?;
        let page = page.clone();
        Ok(Some((
            TemplatePage { reader: &self.block.reader, page, head, strip: self.strip },
            constants,
        )))
    }

    /// The rows whose value is a constant of their stream instead of one of the page, and that
    /// value; `None` if all rows are such.
    fn constants(&self, column: &ScanColumn) -> Result<Option<ConstantRows>> {
        let of_runs = &column.column.constants;
        let mut constants = Vec::new();
        match of_runs {
            RunConstants::None => {}
            RunConstants::Every(_) => return Ok(None),
            RunConstants::PerRun { .. } => {
                let mut covered = 0;
                for (run, rows) in self.runs()? {
                    let value = of_runs.get(*run);
                    if !value.is_empty() {
                        covered += rows.len();
                        constants.push((rows.clone(), value.to_vec()));
                    }
                }
                if covered == self.rows {
                    return Ok(None);
                }
            }
        }
        Ok(Some(constants))
    }

    /// The values of the given rows of a field, which ascend.
    pub(crate) fn gather(&self, name: &str, rows: &[u32]) -> Result<Column> {
        let is_known = self.cache.borrow().contains_key(name);
        if !is_known && [STREAM_FIELD, STREAM_ID_FIELD].contains(&name) {
            let streams = self.block.reader.head_of_block().streams as usize;
            if rows.len() * FEW < streams {
                return self.gather_streams(name == STREAM_ID_FIELD, rows);
            }
        }
        if is_known || is_special(name) {
            return Ok(self.shared(name)?.gather(rows));
        }
        let column = self.block.column(name)?;
        let constants = &column.column.constants;
        let runs = match constants {
            RunConstants::Every(value) => return Ok(Column::constant(value)),
            RunConstants::None => match &column.column.page {
                ColumnPage::Const(value) => return Ok(Column::constant(value)),
                _ => Vec::new(),
            },
            RunConstants::PerRun { .. } => self.runs_of(rows)?,
        };
        let constant = |i: usize| runs.get(i).map_or(&[][..], |run| constants.get(*run));
        let strip = match &column.column.page {
            ColumnPage::Page(page) if (0..rows.len()).any(|i| constant(i).is_empty()) => {
                let head = self.block.head(&column, page)?;
                Some(self.block.reader.strip(page, &head, self.strip)?)
            }
            _ => None,
        };
        let is_page = matches!(column.column.page, ColumnPage::Page(_));
        if strip.is_none()
            && rows.len() * FEW >= self.rows
            && (!is_page || self.constants(&column)?.is_none())
        {
            // The column keeps its form, which pays where rows are many.
            return Ok(self.shared(name)?.gather(rows));
        }
        if let (RunConstants::None, Some(strip)) = (constants, &strip)
            && let Some(column) = gather_typed(strip, rows)
        {
            return Ok(column);
        }
        let sparse = self.block.sparse(&column)?;
        let first = self.block.strip_rows(self.strip).start;
        let mut out = TextVec::with_capacity(rows.len(), 0);
        let mut scratch = Vec::new();
        for (i, row) in rows.iter().map(|row| *row as usize).enumerate() {
            match (constant(i), strip.as_deref(), &column.column.page) {
                (b"", Some(Strip::Templates(strip)), _) => {
                    strip.render(row, out.open());
                    out.close();
                }
                (b"", Some(strip), _) => out.push(strip.get(row, &mut scratch)),
                (b"", None, ColumnPage::Const(value)) => out.push(value),
                (b"", None, _) => out.push(sparse.map_or(&[][..], |s| s.get(first + row))),
                (value, ..) => out.push(value),
            }
        }
        Ok(if out.bytes().is_empty() { Column::absent() } else { Column::text(out) })
    }

    fn stored(&self, column: &ScanColumn) -> Result<Column> {
        let (codes, values) = match &column.column.constants {
            RunConstants::Every(value) => return Ok(Column::constant(value)),
            RunConstants::None => return self.page(column),
            RunConstants::PerRun { codes, values } => (codes, values),
        };
        let code_of = |run: usize| codes.get(run).copied().unwrap_or(0);
        let mut kinds = self.runs()?.iter().map(|(run, _)| code_of(*run));
        let first = kinds.next().unwrap_or(0);
        if kinds.all(|code| code == first) {
            return match (first as usize).checked_sub(1) {
                Some(value) => Ok(Column::constant(values.get(value))),
                None => self.page(column),
            };
        }
        if self.runs()?.iter().all(|(run, _)| code_of(*run) > 0) {
            return self.of_runs(column.run_codes(codes, values), values);
        }
        match &column.column.page {
            ColumnPage::Absent | ColumnPage::Const(_) => {
                self.of_runs(column.run_codes(codes, values), column.run_dictionary(values))
            }
            _ => self.mixed(column),
        }
    }

    /// Rows of streams with constants and rows of the page, in one strip.
    fn mixed(&self, column: &ScanColumn) -> Result<Column> {
        let page = self.page(column)?;
        if let (
            Column::Codes { codes, dictionary },
            RunConstants::PerRun { codes: kinds, values },
        ) = (&page, &column.column.constants)
        {
            let joined = column.joined_dictionary(dictionary, values);
            let first = u32::try_from(dictionary.len()).unwrap_or(u32::MAX);
            let mut codes = Vec::clone(codes);
            for (run, rows) in self.runs()? {
                let kind = kinds.get(*run).copied().unwrap_or(0);
                if let (Some(value), Some(rows)) =
                    (kind.checked_sub(1), codes.get_mut(rows.clone()))
                {
                    rows.fill(first.saturating_add(value));
                }
            }
            return Ok(Column::codes(codes, Arc::clone(joined)));
        }
        if let (Column::Const(value), RunConstants::PerRun { codes, values }) =
            (&page, &column.column.constants)
            && value.is_empty()
        {
            return self.of_runs(column.run_codes(codes, values), column.run_dictionary(values));
        }
        let mut out = TextVec::with_capacity(self.rows, 0);
        let mut scratch = Vec::new();
        for (run, rows) in self.runs()? {
            let constant = column.column.constants.get(*run);
            for row in rows.clone() {
                match constant {
                    b"" => out.push(page.value(row, &mut scratch)),
                    value => out.push(value),
                }
            }
        }
        Ok(Column::text(out))
    }

    /// The values of the page for all rows of the strip.
    fn page(&self, column: &ScanColumn) -> Result<Column> {
        Ok(match &column.column.page {
            ColumnPage::Absent => Column::absent(),
            ColumnPage::Const(value) => Column::constant(value),
            ColumnPage::Page(page) => {
                let head = self.block.head(column, page)?;
                let strip = self.block.reader.strip(page, &head, self.strip)?;
                column_of(&strip)
            }
            ColumnPage::Sparse(_) => match self.block.sparse(column)? {
                Some(sparse) => self.of_sparse(sparse),
                None => Column::absent(),
            },
        })
    }

    fn of_sparse(&self, sparse: &SparseColumn) -> Column {
        let rows = self.block.strip_rows(self.strip);
        let first = sparse.rows.partition_point(|&r| (r as usize) < rows.start);
        let mut next = sparse.rows.iter().enumerate().skip(first).peekable();
        if next.peek().is_none_or(|(_, r)| **r as usize >= rows.end) {
            return Column::absent();
        }
        let mut out = TextVec::with_capacity(self.rows, 0);
        for row in rows {
            match next.next_if(|(_, r)| **r as usize == row) {
                Some((i, _)) => out.push(sparse.values.get(i)),
                None => out.push(b""),
            }
        }
        Column::text(out)
    }
}

impl ColumnSource for StripSource<'_, '_> {
    fn rows(&self) -> usize {
        self.rows
    }

    fn column(&self, name: &str) -> Result<ColumnRef<'_>> {
        self.shared(name).map(ColumnRef::Shared)
    }

    fn coded(
        &self,
        name: &str,
        leaf: usize,
        predicate: &ValuePredicate,
    ) -> Result<Option<CodedRows>> {
        if is_special(name) {
            return Ok(None);
        }
        let column = self.block.column(name)?;
        let ColumnPage::Page(page) = &column.column.page else { return Ok(None) };
        let Some(constants) = self.constants(&column)? else { return Ok(None) };
        let Some(verdicts) = self.block.verdicts(leaf, predicate, &column, page)? else {
            return Ok(None);
        };
        let numbers = match verdicts.common() {
            Some(Verdict::All | Verdict::None) => RowNumbers::Unread,
            _ => {
                let head = self.block.head(&column, page)?;
                let reader = &self.block.reader;
                match page.encoding {
                    Encoding::Templates => {
                        RowNumbers::Templates(reader.template_ids(page, &head, self.strip)?)
                    }
                    _ => RowNumbers::Codes(reader.strip(page, &head, self.strip)?),
                }
            }
        };
        Ok(Some(CodedRows { numbers, verdicts, constants }))
    }

    fn slot_values(&self, name: &str) -> Result<Option<Arc<Strip>>> {
        let column = self.block.column(name)?;
        match &column.column.page {
            ColumnPage::Page(page) if page.encoding == Encoding::Templates => {
                let head = self.block.head(&column, page)?;
                self.block.reader.strip(page, &head, self.strip).map(Some)
            }
            _ => Ok(None),
        }
    }

    fn names_with_prefix(&self, prefix: &str) -> Result<Vec<Arc<str>>> {
        self.block.names_with_prefix(prefix)
    }
}

/// A decoded strip as a column.
fn column_of(strip: &Strip) -> Column {
    match strip {
        Strip::Text(values) => Column::Text(Arc::clone(values)),
        Strip::Codes { dictionary, .. } if dictionary.len() == 1 => {
            Column::constant(dictionary.get(0))
        }
        Strip::Codes { codes, dictionary } => {
            Column::Codes { codes: Arc::clone(codes), dictionary: Arc::clone(dictionary) }
        }
        Strip::Ints { values, absent, exceptions } => {
            let boxed = |(row, text): &(u32, Vec<u8>)| (*row, Box::from(text.as_slice()));
            Column::Ints {
                values: Arc::clone(values),
                absent: absent.clone(),
                exceptions: exceptions.iter().map(boxed).collect(),
            }
        }
        Strip::Times(times) => Column::Times(Arc::clone(times)),
        Strip::Templates(_) => Column::text(strip.to_text()),
    }
}
