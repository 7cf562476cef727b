//! Columns of a block, and what their strips share, read when they are first asked for.

use std::cell::{OnceCell, RefCell};
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use foldhash::fast::RandomState;
use hashbrown::HashMap;

use super::mapped::Mapping;
use super::words::ColumnWords;
use crate::codec::{Encoding, PageHead, STRIP_ROWS};
use crate::error::Result;
use crate::part::{
    BlockColumn, BlockReader, ColumnPage, PageRef, ReadContext, RunConstants, SparseColumn,
};
use crate::query::ast::{MESSAGE_FIELD, STREAM_FIELD, STREAM_ID_FIELD, TIME_FIELD};
use crate::query::column::Column;
use crate::query::fields::FieldSet;
use crate::query::filter::{ValuePredicate, Verdicts, template_verdicts};
use crate::record::TextVec;

/// Something for each field: a block may have thousands.
pub(super) type ByName<T> = HashMap<Box<str>, T, RandomState>;

/// A block and what has been found out about its columns.
pub(crate) struct BlockScan<'a> {
    pub(super) reader: BlockReader<'a>,
    pub(super) cx: &'a ReadContext<'a>,
    columns: RefCell<ByName<Rc<ScanColumn>>>,
    stream_texts: OnceCell<Arc<TextVec>>,
    stream_ids: OnceCell<Arc<TextVec>>,
    output: OnceCell<Vec<Arc<str>>>,
    /// What the predicate of a leaf says of the templates or values of the page at an offset.
    verdicts: RefCell<HashMap<(usize, u64), Arc<Verdicts>, RandomState>>,
    /// The column of all fields that are nowhere in the part.
    nowhere: OnceCell<(Rc<ScanColumn>, Arc<Column>)>,
    pub(super) mapping: Mapping,
}

/// A column of a block with the parts of it that strips share.
#[derive(Debug)]
pub(crate) struct ScanColumn {
    /// Where its values come from.
    pub(crate) column: BlockColumn,
    head: OnceCell<Arc<PageHead>>,
    sparse: OnceCell<SparseColumn>,
    /// The constants of runs, then the value of a const page, or the empty one.
    dictionary: OnceCell<Arc<TextVec>>,
    /// The dictionary of the page, then the constants of runs.
    joined: OnceCell<Arc<TextVec>>,
}

impl<'a> BlockScan<'a> {
    /// A block of which nothing has been read.
    pub(crate) fn new(reader: BlockReader<'a>, cx: &'a ReadContext<'a>) -> BlockScan<'a> {
        BlockScan {
            reader,
            cx,
            columns: RefCell::default(),
            stream_texts: OnceCell::new(),
            stream_ids: OnceCell::new(),
            output: OnceCell::new(),
            verdicts: RefCell::default(),
            nowhere: OnceCell::new(),
            mapping: Mapping::default(),
        }
    }

    /// The block.
    pub(crate) fn reader(&self) -> &BlockReader<'a> {
        &self.reader
    }

    /// Where the values of a field come from; not for `_time`, `_stream` and `_stream_id`.
    pub(crate) fn column(&self, name: &str) -> Result<Rc<ScanColumn>> {
        if let Some(known) = self.columns.borrow().get(name) {
            return Ok(known.clone());
        }
        if !self.exists(name)? {
            return Ok(self.nowhere().0.clone());
        }
        let column = Rc::new(ScanColumn::new(self.reader.column(name)?));
        self.columns.borrow_mut().insert(Box::from(name), column.clone());
        Ok(column)
    }

    /// Whether a row of the part may have the field. A query may name any number of fields that
    /// are nowhere, so nothing is kept for each of them.
    pub(super) fn exists(&self, name: &str) -> Result<bool> {
        Ok(self.reader.part().names(self.cx)?.id(name).is_some())
    }

    pub(super) fn nowhere(&self) -> &(Rc<ScanColumn>, Arc<Column>) {
        self.nowhere.get_or_init(|| {
            let column = BlockColumn {
                constants: RunConstants::None,
                page: ColumnPage::Absent,
                header: None,
            };
            (Rc::new(ScanColumn::new(column)), Arc::new(Column::absent()))
        })
    }

    /// The head of a page of a column, read once.
    pub(crate) fn head(&self, column: &ScanColumn, page: &PageRef) -> Result<Arc<PageHead>> {
        get_or_try(&column.head, || self.reader.head(page)).cloned()
    }

    /// What the predicate of a leaf says of the templates of a page, or of the values of its
    /// dictionary, found out once; `None` if it has neither.
    pub(crate) fn verdicts(
        &self,
        leaf: usize,
        predicate: &ValuePredicate,
        column: &ScanColumn,
        page: &PageRef,
    ) -> Result<Option<Arc<Verdicts>>> {
        if !matches!(page.encoding, Encoding::Dictionary | Encoding::Templates) {
            return Ok(None);
        }
        if let Some(known) = self.verdicts.borrow().get(&(leaf, page.offset)) {
            return Ok(Some(known.clone()));
        }
        let words = ColumnWords { block: self, column };
        let verdicts = if words.deny(predicate) {
            Verdicts::none()
        } else {
            let head = self.head(column, page)?;
            match (head.templates(), head.dictionary()) {
                (Some(table), _) => template_verdicts(predicate, table, &words),
                (None, Some(values)) => Verdicts::of_dictionary(predicate, values),
                (None, None) => return Ok(None),
            }
        };
        let verdicts = Arc::new(verdicts);
        self.verdicts.borrow_mut().insert((leaf, page.offset), verdicts.clone());
        Ok(Some(verdicts))
    }

    pub(super) fn sparse<'c>(&self, column: &'c ScanColumn) -> Result<Option<&'c SparseColumn>> {
        match &column.column.page {
            ColumnPage::Sparse(at) => {
                get_or_try(&column.sparse, || self.reader.sparse(at)).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// The texts of the block's streams.
    pub(crate) fn stream_texts(&self) -> Result<&Arc<TextVec>> {
        get_or_try(&self.stream_texts, || {
            let mut out = TextVec::new();
            self.for_each_stream(|ordinal| {
                out.push(&self.reader.part().stream_text(self.cx, ordinal)?);
                Ok(())
            })?;
            Ok(Arc::new(out))
        })
    }

    pub(super) fn stream_ids(&self) -> Result<&Arc<TextVec>> {
        get_or_try(&self.stream_ids, || {
            let mut out = TextVec::new();
            self.for_each_stream(|ordinal| {
                let key = self.reader.part().stream_key(self.cx, ordinal)?;
                out.push(key.id().to_string().as_bytes());
                Ok(())
            })?;
            Ok(Arc::new(out))
        })
    }

    fn for_each_stream(&self, mut f: impl FnMut(u32) -> Result<()>) -> Result<()> {
        let head = self.reader.head_of_block();
        (0..head.streams).try_for_each(|i| f(head.first_stream.saturating_add(i)))
    }

    /// Names of columns of the block that start with `prefix`; those of labels and constants of
    /// its streams included, and some that no row has.
    pub(crate) fn names_with_prefix(&self, prefix: &str) -> Result<Vec<Arc<str>>> {
        let special = [TIME_FIELD, STREAM_FIELD, STREAM_ID_FIELD];
        let mut out: Vec<Arc<str>> =
            special.into_iter().filter(|n| n.starts_with(prefix)).map(Arc::from).collect();
        let part = self.reader.part();
        let names = part.names(self.cx)?;
        let wanted = names.with_prefix(prefix);
        if wanted.is_empty() {
            return Ok(out);
        }
        let mut ids = self.reader.names()?;
        ids.retain(|id| wanted.contains(id));
        let head = self.reader.head_of_block();
        let (mut ordinal, end) =
            (head.first_stream, head.first_stream.saturating_add(head.streams));
        while ordinal < end {
            let (chunk, at, place) = part.chunk_of(self.cx, ordinal)?;
            let streams = place..chunk.len().min(place + (end - ordinal) as usize);
            let constants = chunk.constant_names_of(streams);
            let constants = constants.map_err(|e| e.at(part.source().path(), at.at.offset))?;
            ids.extend(constants.into_iter().filter(|id| wanted.contains(id)));
            let labels = chunk.label_names().filter(|n| n.starts_with(prefix));
            ids.extend(labels.filter_map(|n| names.id(n)));
            ordinal = at.first.saturating_add(at.streams);
        }
        ids.sort_unstable();
        ids.dedup();
        out.extend(ids.into_iter().map(|id| Arc::from(names.name(id))));
        Ok(out)
    }

    /// The names of the wanted fields that the block may have, in the order of output. Asked for
    /// with the same fields each time.
    pub(crate) fn output_names(&self, fields: &FieldSet) -> Result<&[Arc<str>]> {
        let names = get_or_try(&self.output, || {
            let known = self.reader.part().names(self.cx)?;
            // A query may name any number of fields that are nowhere.
            let exists = |name: &&str| name_class(name) < 3 || known.id(name).is_some();
            let mut names: Vec<Arc<str>> = fields.names().filter(exists).map(Arc::from).collect();
            for prefix in fields.prefixes() {
                let of_prefix = self.names_with_prefix(prefix)?;
                names.extend(of_prefix.into_iter().filter(|n| fields.contains(n)));
            }
            names.sort_by(|a, b| (name_class(a), a).cmp(&(name_class(b), b)));
            names.dedup();
            Ok(names)
        })?;
        Ok(names)
    }

    /// The rows of strip `i`.
    pub(crate) fn strip_rows(&self, i: usize) -> Range<usize> {
        let start = (i * STRIP_ROWS).min(self.reader.rows());
        start..(start + STRIP_ROWS).min(self.reader.rows())
    }

    /// The runs that strip `i` touches, each with its rows, counted from the strip's first.
    pub(crate) fn strip_runs(&self, i: usize) -> Result<Vec<(usize, Range<usize>)>> {
        let rows = self.strip_rows(i);
        let runs = self.reader.runs()?;
        let first = u32::try_from(rows.start).unwrap_or(u32::MAX);
        let mut out = Vec::new();
        for run in runs.run_of(first)..runs.len() {
            let of_run = runs.rows(run);
            let (start, end) = (of_run.start as usize, of_run.end as usize);
            if start >= rows.end {
                break;
            }
            out.push((run, start.max(rows.start) - rows.start..end.min(rows.end) - rows.start));
        }
        Ok(out)
    }
}

impl ScanColumn {
    fn new(column: BlockColumn) -> ScanColumn {
        ScanColumn {
            column,
            head: OnceCell::new(),
            sparse: OnceCell::new(),
            dictionary: OnceCell::new(),
            joined: OnceCell::new(),
        }
    }

    /// The dictionary of codes by run.
    pub(super) fn run_dictionary(&self, values: &TextVec) -> &Arc<TextVec> {
        self.dictionary.get_or_init(|| {
            let mut all = TextVec::clone(values);
            match &self.column.page {
                ColumnPage::Const(value) => all.push(value),
                _ => all.push(b""),
            }
            Arc::new(all)
        })
    }

    /// The code of each run in [`run_dictionary`](ScanColumn::run_dictionary); for runs without a
    /// constant that of the value of a const page, or of no value.
    pub(super) fn run_codes<'c>(
        &self,
        codes: &'c [u32],
        values: &TextVec,
    ) -> impl Fn(usize) -> u32 + 'c {
        let none = u32::try_from(values.len()).unwrap_or(u32::MAX);
        move |run| codes.get(run).and_then(|code| code.checked_sub(1)).unwrap_or(none)
    }

    /// The dictionary of the page, then the constants of runs.
    pub(super) fn joined_dictionary(
        &self,
        page: &Arc<TextVec>,
        constants: &TextVec,
    ) -> &Arc<TextVec> {
        self.joined.get_or_init(|| {
            let mut all = TextVec::clone(page);
            all.extend(constants);
            Arc::new(all)
        })
    }
}

/// `_time`, `_stream_id`, `_stream` and `_msg` stand before all others.
fn name_class(name: &str) -> u8 {
    match name {
        TIME_FIELD => 0,
        STREAM_ID_FIELD => 1,
        STREAM_FIELD => 2,
        MESSAGE_FIELD => 3,
        _ => 4,
    }
}

/// The value of `cell`, made on first use.
pub(super) fn get_or_try<T>(cell: &OnceCell<T>, make: impl FnOnce() -> Result<T>) -> Result<&T> {
    if let Some(value) = cell.get() {
        return Ok(value);
    }
    let value = make()?;
    Ok(cell.get_or_init(|| value))
}
