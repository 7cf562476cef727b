//! What a block knows of its columns, as pruning asks for it.

use std::borrow::Cow;
use std::cell::Cell;
use std::sync::Arc;

use super::block::{BlockScan, ScanColumn};
use crate::codec::Bitmap;
use crate::error::Result;
use crate::index::Needle;
use crate::part::{
    ColumnHeader, ColumnPage, IndexBlock, IndexColumn, Names, PartReader, ReadContext, RunConstants,
};
use crate::query::ast::{STREAM_FIELD, STREAM_ID_FIELD, TIME_FIELD};
use crate::query::filter::{
    BlockFacts, ColumnFacts, IndexFacts, PageFacts, ValuePredicate, Verdicts,
};

/// How much may be read to judge a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Depth {
    /// Headers only.
    Headers,
    /// Heads of pages and membership filters too.
    Filters,
}

/// The facts of a block.
pub(super) struct Facts<'b, 'a> {
    block: &'b BlockScan<'a>,
    depth: Cell<Depth>,
}

impl<'b, 'a> Facts<'b, 'a> {
    pub(super) fn new(block: &'b BlockScan<'a>) -> Facts<'b, 'a> {
        Facts { block, depth: Cell::new(Depth::Headers) }
    }

    /// Sets what the next judgement may read.
    pub(super) fn set_depth(&self, depth: Depth) {
        self.depth.set(depth);
    }

    fn page(&self, column: &ScanColumn, header: &ColumnHeader) -> PageFacts<'static> {
        let known = &header.facts;
        // Rows of streams with a constant are not in the page; how many those are is not asked.
        let constants = !matches!(column.column.constants, RunConstants::None);
        PageFacts {
            may_be_empty: constants || (header.present as usize) < self.block.reader().rows(),
            numbers: known.numbers,
            all_numbers: known.all_numbers,
            lengths: known.lengths.map(|(min, max)| (min.into(), max.into())),
            ints: known.ints,
            ..PageFacts::default()
        }
    }
}

/// What a part says of itself: its times, and the names of its fields.
pub(super) struct PartSays<'a> {
    pub(super) times: (i64, i64),
    pub(super) names: &'a Names,
}

impl BlockFacts for PartSays<'_> {
    fn times(&self) -> (i64, i64) {
        self.times
    }

    fn column(&self, name: &str) -> Result<ColumnFacts<'_>> {
        let mut facts = ColumnFacts::default();
        if !is_special(name) && self.names.id(name).is_none() {
            facts.listed.push(Cow::Borrowed(b""));
        }
        Ok(facts)
    }

    fn names_with_prefix(&self, _: &str) -> Result<Option<Vec<Arc<str>>>> {
        Ok(None)
    }

    fn may_hold(&self, _: &str, _: &Needle<'_>) -> Result<bool> {
        Ok(true)
    }
}

/// The columns of the blocks of an index block.
pub(super) struct IndexSays<'a> {
    pub(super) part: &'a PartReader,
    pub(super) cx: &'a ReadContext<'a>,
    pub(super) index: &'a Arc<IndexBlock>,
}

impl IndexSays<'_> {
    fn column(&self, name: &str) -> Result<Arc<IndexColumn>> {
        self.part.index_column(self.cx, self.index, name)
    }
}

impl IndexFacts for IndexSays<'_> {
    fn present(&self, name: &str) -> Result<Option<Bitmap>> {
        match is_special(name) {
            true => Ok(None),
            false => self.column(name).map(|column| Some(column.present())),
        }
    }

    fn may_hold(&self, name: &str, needle: &Needle<'_>) -> Result<Bitmap> {
        self.part.blocks_with(self.cx, self.index, &*self.column(name)?, needle)
    }
}

/// Whether a field is made from times or streams, not read from a column.
pub(super) fn is_special(name: &str) -> bool {
    [TIME_FIELD, STREAM_FIELD, STREAM_ID_FIELD].contains(&name)
}

impl BlockFacts for Facts<'_, '_> {
    fn times(&self) -> (i64, i64) {
        let head = self.block.reader().head_of_block();
        (head.min_time, head.max_time)
    }

    fn column(&self, name: &str) -> Result<ColumnFacts<'_>> {
        match name {
            TIME_FIELD | STREAM_ID_FIELD => return Ok(ColumnFacts::default()),
            STREAM_FIELD => {
                let dictionary = Some(self.block.stream_texts()?.clone());
                let page = Some(PageFacts { dictionary, ..PageFacts::default() });
                return Ok(ColumnFacts { listed: Vec::new(), page });
            }
            _ => {}
        }
        let column = self.block.column(name)?;
        let mut facts = ColumnFacts::default();
        let rest = match &column.column.constants {
            RunConstants::Every(value) => {
                facts.listed.push(Cow::Owned(value.clone()));
                false
            }
            RunConstants::None => true,
            RunConstants::PerRun { codes, values } => {
                let mut used = vec![false; values.len() + 1];
                for code in codes {
                    if let Some(slot) = used.get_mut(*code as usize) {
                        *slot = true;
                    }
                }
                let listed = used.iter().skip(1).enumerate().filter(|(_, used)| **used);
                facts.listed.extend(listed.map(|(i, _)| Cow::Owned(values.get(i).to_vec())));
                used.first().copied().unwrap_or(true)
            }
        };
        if rest {
            match (&column.column.page, &column.column.header) {
                (ColumnPage::Absent, _) | (_, None) => facts.listed.push(Cow::Borrowed(b"")),
                (ColumnPage::Const(value), _) => facts.listed.push(Cow::Owned(value.clone())),
                (_, Some(header)) => facts.page = Some(self.page(&column, header)),
            }
        }
        Ok(facts)
    }

    fn names_with_prefix(&self, prefix: &str) -> Result<Option<Vec<Arc<str>>>> {
        self.block.names_with_prefix(prefix).map(Some)
    }

    fn may_hold(&self, name: &str, needle: &Needle<'_>) -> Result<bool> {
        if self.depth.get() != Depth::Filters {
            return Ok(true);
        }
        match &self.block.column(name)?.column.header {
            Some(header) => self.block.reader().may_hold(header, needle),
            None => Ok(true),
        }
    }

    fn verdicts(
        &self,
        name: &str,
        leaf: usize,
        predicate: &ValuePredicate,
    ) -> Result<Option<Arc<Verdicts>>> {
        if self.depth.get() != Depth::Filters {
            return Ok(None);
        }
        let column = self.block.column(name)?;
        match &column.column.page {
            ColumnPage::Page(page) => self.block.verdicts(leaf, predicate, &column, page),
            _ => Ok(None),
        }
    }
}
