//! Evaluation of a filter tree on the rows of a batch or a strip.

use std::ops::Deref;
use std::sync::Arc;

use super::coded::{self, CodedRows};
use super::column::{self, DictionaryCache};
use super::predicate::ValuePredicate;
use super::{CompiledFilter, FieldTest, Node};
use crate::codec::{Bitmap, Strip};
use crate::error::Result;
use crate::query::ast::{FieldOp, TIME_FIELD};
use crate::query::batch::Batch;
use crate::query::column::Column;
use crate::record::{cmp_quantities, parse_rfc3339};

/// Rows whose fields can be asked for by name.
pub(crate) trait ColumnSource {
    /// The number of rows.
    fn rows(&self) -> usize;

    /// The values of a field; an absent field is a column of empty values. Asking again for the
    /// same field is cheap.
    fn column(&self, name: &str) -> Result<ColumnRef<'_>>;

    /// The rows of a field as numbers of values or templates of its page, with the verdicts of the
    /// predicate of leaf `leaf`, if they are stored so.
    fn coded(
        &self,
        _name: &str,
        _leaf: usize,
        _predicate: &ValuePredicate,
    ) -> Result<Option<CodedRows>> {
        Ok(None)
    }

    /// The rows of a field with the values of their slots, if they are stored as templates.
    fn slot_values(&self, _name: &str) -> Result<Option<Arc<Strip>>> {
        Ok(None)
    }

    /// The names that start with `prefix`, at least those of which a row has a value.
    fn names_with_prefix(&self, prefix: &str) -> Result<Vec<Arc<str>>>;
}

/// A column that belongs to its source or is shared with it.
#[derive(Debug, Clone)]
pub(crate) enum ColumnRef<'a> {
    /// Part of the source.
    Borrowed(&'a Column),
    /// Kept by the source for the next time.
    Shared(Arc<Column>),
}

impl Deref for ColumnRef<'_> {
    type Target = Column;

    fn deref(&self) -> &Column {
        match self {
            ColumnRef::Borrowed(column) => column,
            ColumnRef::Shared(column) => column,
        }
    }
}

impl ColumnSource for Batch {
    fn rows(&self) -> usize {
        Batch::rows(self)
    }

    fn column(&self, name: &str) -> Result<ColumnRef<'_>> {
        Ok(match Batch::column(self, name) {
            Some(column) => ColumnRef::Borrowed(column),
            None => ColumnRef::Shared(Arc::new(Column::absent())),
        })
    }

    fn names_with_prefix(&self, prefix: &str) -> Result<Vec<Arc<str>>> {
        let names = self.columns().iter().map(|(name, _)| name);
        Ok(names.filter(|n| n.starts_with(prefix)).cloned().collect())
    }
}

/// What a worker keeps between evaluations of one filter: answers for dictionaries.
#[derive(Debug, Default)]
pub(crate) struct FilterScratch {
    leaves: Vec<DictionaryCache>,
}

impl FilterScratch {
    fn leaf(&mut self, leaf: usize) -> &mut DictionaryCache {
        if self.leaves.len() <= leaf {
            self.leaves.resize_with(leaf + 1, DictionaryCache::default);
        }
        // The vector was just made long enough.
        #[expect(clippy::indexing_slicing, reason = "resized above")]
        &mut self.leaves[leaf]
    }
}

impl CompiledFilter {
    /// Takes the rows that do not pass out of `selection`.
    pub(crate) fn eval(&self, source: &dyn ColumnSource, selection: &mut Bitmap) -> Result<()> {
        self.eval_with(source, selection, &mut FilterScratch::default())
    }

    /// As [`eval`](CompiledFilter::eval), keeping what was found out about dictionaries in
    /// `scratch`, which must not be used with another filter.
    pub(crate) fn eval_with(
        &self,
        source: &dyn ColumnSource,
        selection: &mut Bitmap,
        scratch: &mut FilterScratch,
    ) -> Result<()> {
        Eval { filter: self, source, scratch }.node(&self.root, selection)
    }
}

impl CompiledFilter {
    /// As [`eval_with`](CompiledFilter::eval_with), with only those of the parts that all have
    /// to pass that `open` names.
    pub(crate) fn eval_parts(
        &self,
        open: &[usize],
        source: &dyn ColumnSource,
        selection: &mut Bitmap,
        scratch: &mut FilterScratch,
    ) -> Result<()> {
        let mut eval = Eval { filter: self, source, scratch };
        for part in open.iter().filter_map(|&i| self.parts().get(i)) {
            eval.node(part, selection)?;
        }
        Ok(())
    }
}

struct Eval<'a> {
    filter: &'a CompiledFilter,
    source: &'a dyn ColumnSource,
    scratch: &'a mut FilterScratch,
}

impl Eval<'_> {
    fn node(&mut self, node: &Node, selection: &mut Bitmap) -> Result<()> {
        if !selection.any() {
            return Ok(());
        }
        self.filter.stop.check()?;
        match node {
            Node::Const(true) => {}
            Node::Const(false) => selection.clear_all(),
            Node::And(all) => {
                for part in all {
                    self.node(part, selection)?;
                }
            }
            Node::Or(any) => {
                let mut passed = Bitmap::empty(selection.len());
                for part in any {
                    let mut open = selection.clone();
                    open.and_not(&passed);
                    if !open.any() {
                        break;
                    }
                    self.node(part, &mut open)?;
                    passed.or(&open);
                }
                *selection = passed;
            }
            Node::Not(inner) => {
                let mut passed = selection.clone();
                self.node(inner, &mut passed)?;
                selection.and_not(&passed);
            }
            Node::Field { field, test, leaf } => self.field(field, test, *leaf, selection)?,
            Node::AnyField { prefix, test, leaf } => {
                self.any_field(prefix, test, *leaf, selection)?;
            }
            Node::Time(range) => self.times(selection, |t| range.contains(t))?,
            Node::Day(range) => {
                let times = &self.filter.times;
                self.times(selection, |t| times.in_day_range(range, t))?;
            }
            Node::Week(range) => {
                let times = &self.filter.times;
                self.times(selection, |t| times.in_week_range(range, t))?;
            }
        }
        Ok(())
    }

    fn field(
        &mut self,
        name: &str,
        test: &FieldTest,
        leaf: usize,
        selection: &mut Bitmap,
    ) -> Result<()> {
        if let FieldTest::Value(predicate) = test
            && let Some(rows) = self.source.coded(name, leaf, predicate)?
        {
            let strip = || self.source.slot_values(name);
            return coded::apply(predicate, &rows, strip, selection);
        }
        let column = self.source.column(name)?;
        match test {
            FieldTest::Value(predicate) => {
                column::apply(predicate, &column, selection, self.scratch.leaf(leaf));
            }
            FieldTest::Compare(op, other) => {
                let other = self.source.column(other)?;
                let (mut left, mut right) = (Vec::new(), Vec::new());
                selection.retain(|row| {
                    compare(*op, column.value(row, &mut left), other.value(row, &mut right))
                });
            }
            FieldTest::Type(wanted) => {
                if stored_type(&column) == &**wanted {
                    selection.retain(|row| !column.is_empty_at(row));
                } else {
                    selection.clear_all();
                }
            }
        }
        Ok(())
    }

    /// Rows that have one of the fields with a value that passes.
    fn any_field(
        &mut self,
        prefix: &str,
        test: &FieldTest,
        leaf: usize,
        selection: &mut Bitmap,
    ) -> Result<()> {
        let mut passed = Bitmap::empty(selection.len());
        for name in self.source.names_with_prefix(prefix)? {
            let mut open = selection.clone();
            open.and_not(&passed);
            if !open.any() {
                break;
            }
            let is_false_for_absent =
                matches!(test, FieldTest::Value(p) if !p.matches(b"")) || is_type(test);
            if !is_false_for_absent {
                let column = self.source.column(&name)?;
                let cache = &mut DictionaryCache::default();
                column::apply(&ValuePredicate::NonEmpty, &column, &mut open, cache);
            }
            self.field(&name, test, leaf, &mut open)?;
            passed.or(&open);
        }
        *selection = passed;
        Ok(())
    }

    /// Keeps the rows whose time passes; a `_time` that is no time passes no time filter.
    fn times(&self, selection: &mut Bitmap, mut passes: impl FnMut(i64) -> bool) -> Result<()> {
        let column = self.source.column(TIME_FIELD)?;
        match &*column {
            Column::Times(times) => {
                selection.retain(|row| times.get(row).is_some_and(|&t| passes(t)));
            }
            column => {
                let mut scratch = Vec::new();
                selection.retain(|row| {
                    let time = parse_rfc3339(column.value(row, &mut scratch));
                    time.is_some_and(|t| passes(t.as_nanos()))
                });
            }
        }
        Ok(())
    }
}

fn is_type(test: &FieldTest) -> bool {
    matches!(test, FieldTest::Type(_))
}

/// Whether two values stand in the relation: equal by bytes, else by number if both are numbers.
pub(super) fn compare(op: FieldOp, left: &[u8], right: &[u8]) -> bool {
    if op == FieldOp::Equal {
        return left == right;
    }
    let order = cmp_quantities(left, right).unwrap_or_else(|| left.cmp(right));
    if op == FieldOp::Less { order.is_lt() } else { order.is_le() }
}

/// The word of `value_type` for the form of a column; depends on the layout.
fn stored_type(column: &Column) -> &'static str {
    match column {
        Column::Const(_) => "const",
        Column::Text(_) => "string",
        Column::Codes { .. } | Column::Runs { .. } => "dict",
        Column::Ints { .. } => "int64",
        Column::Times(_) => "iso8601",
    }
}
