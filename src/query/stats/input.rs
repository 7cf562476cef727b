//! What a stats function sees of a batch.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::ops::Range;

use crate::codec::Bitmap;
use crate::query::ast::FieldPattern;
use crate::query::batch::Batch;
use crate::query::column::Column;
use crate::query::context::ExecContext;
use crate::query::group::Numbers;
use crate::query::position::RowPos;

/// The selected rows of a batch and their groups.
pub(crate) struct Input<'a> {
    /// All rows.
    pub(crate) batch: &'a Batch,
    /// The group of each row.
    pub(crate) groups: &'a Numbers,
    /// The number of groups that there are.
    pub(crate) group_count: usize,
    /// The rows that count; `None` is all.
    pub(crate) selection: Option<&'a Bitmap>,
    /// The number of rows that arrived before this batch.
    pub(crate) arrived: u64,
}

impl Input<'_> {
    /// Calls `f` with (row, group) for each selected row, in order.
    #[inline]
    pub(crate) fn for_each(&self, mut f: impl FnMut(usize, u32)) {
        match (self.selection, self.groups) {
            (None, Numbers::One(group)) => (0..self.batch.rows()).for_each(|row| f(row, *group)),
            (None, Numbers::Coded(cells)) => cells.for_each(f),
            (None, Numbers::Each(groups)) => {
                groups.iter().enumerate().for_each(|(row, group)| f(row, *group));
            }
            (None, Numbers::Runs { ends, ids }) => {
                let mut start = 0;
                for (end, group) in ends.iter().zip(ids) {
                    let end = *end as usize;
                    (start..end).for_each(|row| f(row, *group));
                    start = end;
                }
            }
            (Some(rows), Numbers::Runs { ends, ids }) => {
                let mut start = 0;
                for (end, group) in ends.iter().zip(ids) {
                    let end = *end as usize;
                    rows.iter_range(start..end).for_each(|row| f(row, *group));
                    start = end;
                }
            }
            (Some(rows), groups) => rows.iter().for_each(|row| f(row, groups.get(row))),
        }
    }

    /// Calls `f` with each group and a number of selected rows of it.
    #[inline]
    pub(crate) fn for_each_count(&self, mut f: impl FnMut(u32, u64)) {
        match (self.selection, self.groups) {
            (None, groups) => groups.for_each_count(self.batch.rows(), f),
            (Some(rows), Numbers::One(group)) => f(*group, rows.count() as u64),
            (Some(rows), Numbers::Runs { ends, ids }) => {
                let mut start = 0;
                for (end, group) in ends.iter().zip(ids) {
                    let end = *end as usize;
                    f(*group, rows.count_range(start..end) as u64);
                    start = end;
                }
            }
            (Some(rows), groups) => rows.iter().for_each(|row| f(groups.get(row), 1)),
        }
    }

    /// Calls `f` with each range of rows that share a group, if groups change with runs of rows
    /// only and all rows are selected; false if not.
    pub(crate) fn for_each_run(&self, mut f: impl FnMut(Range<usize>, u32)) -> bool {
        match (self.selection, self.groups) {
            (None, Numbers::One(group)) => f(0..self.batch.rows(), *group),
            (None, Numbers::Runs { ends, ids }) => {
                let mut start = 0;
                for (end, group) in ends.iter().zip(ids) {
                    f(start..*end as usize, *group);
                    start = *end as usize;
                }
            }
            _ => return false,
        }
        true
    }

    /// The place of a row.
    #[inline]
    pub(crate) fn place(&self, row: usize) -> Place {
        match self.batch.positions().and_then(|p| p.get(row)) {
            Some(pos) => Place::Stored(*pos),
            None => Place::Arrived(self.arrived + row as u64),
        }
    }

    /// The column of a field, if there is one.
    pub(crate) fn column(&self, name: &str) -> Option<&Column> {
        self.batch.column(name)
    }
}

/// Where a row stands among the rows that a function sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// In the canonical order.
    Stored(RowPos),
    /// In the order of arrival; after all stored rows.
    Arrived(u64),
}

impl Place {
    /// Compares the order of two rows.
    #[inline]
    pub(crate) fn compare(&self, other: &Place, ctx: &ExecContext<'_>) -> Ordering {
        match (self, other) {
            (Place::Stored(a), Place::Stored(b)) => ctx.cmp_positions(a, b),
            (Place::Arrived(a), Place::Arrived(b)) => a.cmp(b),
            (Place::Stored(_), Place::Arrived(_)) => Ordering::Less,
            (Place::Arrived(_), Place::Stored(_)) => Ordering::Greater,
        }
    }
}

/// The fields of a function: names, which take part also where they are absent, and prefixes,
/// whose fields take part where they have a value.
#[derive(Debug, Clone)]
pub(crate) struct FieldList {
    /// Each once.
    patterns: Vec<FieldPattern>,
}

/// A column that takes part in a function.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Part<'a> {
    /// Its name.
    pub(crate) name: &'a str,
    /// Its values.
    pub(crate) column: &'a Column,
    /// Whether absent values take part as empty ones.
    pub(crate) with_absent: bool,
}

impl FieldList {
    /// The fields that the patterns name.
    pub(crate) fn new(patterns: &[FieldPattern]) -> FieldList {
        let mut seen = HashSet::new();
        let first = patterns.iter().filter(|pattern| seen.insert(*pattern));
        FieldList { patterns: first.cloned().collect() }
    }

    /// The columns of a batch that take part, in the order of the list, each once. `absent`
    /// stands for columns that the batch lacks.
    pub(crate) fn parts<'a>(&'a self, batch: &'a Batch, absent: &'a Column) -> Vec<Part<'a>> {
        let mut out: Vec<Part<'a>> = Vec::with_capacity(self.patterns.len());
        let mut of_prefixes: HashSet<&str> = HashSet::new();
        for pattern in &self.patterns {
            match pattern {
                FieldPattern::Name(name) => {
                    let column = batch.column(name).unwrap_or(absent);
                    if !of_prefixes.contains(name.as_str()) {
                        out.push(Part { name, column, with_absent: true });
                    }
                }
                FieldPattern::Prefix(prefix) => {
                    let mut found: Vec<Part<'a>> = Vec::new();
                    for (name, column) in batch.columns() {
                        if name.starts_with(prefix.as_str()) {
                            found.push(Part { name, column, with_absent: false });
                        }
                    }
                    // By name, so that the order of columns in a batch tells nothing.
                    found.sort_by(|a, b| a.name.cmp(b.name));
                    found.retain(|f| !out.iter().any(|p| p.name == f.name));
                    of_prefixes.extend(found.iter().map(|f| f.name));
                    out.append(&mut found);
                }
            }
        }
        out
    }
}
