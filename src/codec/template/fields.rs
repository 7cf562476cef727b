//! Slots whose values stand in other columns of the block: a request line repeats the path, an
//! error the id of its trace.
//!
//! The values of another column are cut by the same tokenizer as messages; a slot refers to one of
//! the *pieces* that it finds there, if that is the slot's value in every row of its template.

use std::sync::Arc;

use super::slot::{Slot, class, classes_of};
use super::table::{PlacedSlot, TemplateTable};
use super::tokenize::{Span, tokenize};
use super::{FIELD_VALUE_MAX, FIELDS_MAX};
use crate::codec::{PAGE_RAW_MAX, Strip};
use crate::error::Malformed;
use crate::record::TextVec;

/// Constant values of fewer bytes are cheaper as part of the template's text.
const CONSTANT_MIN: usize = 12;
/// Values of on average fewer bytes are cheaper where they stand.
const LEN_MIN: usize = 4;

/// Another column of the block, which has a page that does not refer to others.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Beside<'a> {
    /// Its name.
    pub(crate) name: &'a str,
    /// One value for each row; empty where there is none.
    pub(crate) values: &'a TextVec,
}

/// Cuts values into pieces; keeps its buffers.
#[derive(Debug, Default)]
struct Pieces {
    key: Vec<u8>,
    spans: Vec<Span>,
}

impl Pieces {
    /// The places of the pieces of `value`; none if it is too long to be referred to.
    fn of(&mut self, value: &[u8]) -> &[Span] {
        self.spans.clear();
        if value.len() <= FIELD_VALUE_MAX {
            tokenize(value, 0, &mut self.key, &mut self.spans);
        }
        &self.spans
    }

    /// Piece `number` of `value`.
    fn get<'v>(&mut self, value: &'v [u8], number: u16) -> Option<&'v [u8]> {
        let span = self.of(value).get(usize::from(number))?;
        value.get(span.from as usize..span.to as usize)
    }
}

/// A piece of a column that is the value of some slot in the first row of a template.
#[derive(Debug, Clone, Copy)]
struct Candidate {
    column: usize,
    piece: u16,
    span: Span,
}

/// Finds out which slots stand in other columns.
#[derive(Debug, Default)]
pub(super) struct FieldFinder {
    candidates: Vec<Candidate>,
    pieces: Pieces,
    /// For each column its number among those to which the page refers.
    used: Vec<Option<u8>>,
}

impl FieldFinder {
    /// Begins a page of rows with these other columns.
    pub(super) fn begin(&mut self, beside: &[Beside<'_>]) {
        self.used.clear();
        self.used.resize(beside.len().min(FIELDS_MAX), None);
    }

    /// Cuts the values of the first row of a template.
    pub(super) fn begin_template(&mut self, beside: &[Beside<'_>], row: u32) {
        self.candidates.clear();
        for column in 0..self.used.len() {
            let value = beside.get(column).map_or(&[][..], |b| b.values.get(row as usize));
            for (span, piece) in self.pieces.of(value).iter().zip(0u16..) {
                self.candidates.push(Candidate { column, piece, span: *span });
            }
        }
    }

    /// Whether a value that stands in one row only is worth a reference.
    pub(super) fn any_long(&self) -> bool {
        self.candidates.iter().any(|c| (c.span.to - c.span.from) as usize >= CONSTANT_MIN)
    }

    /// The slot that stands for `values`, which are those of `rows`, if another column has them
    /// all and they would cost more where they are. Names of columns are added to `names`.
    pub(super) fn find<'v>(
        &mut self,
        beside: &[Beside<'_>],
        rows: &[u32],
        values: impl Iterator<Item = &'v [u8]> + Clone,
        names: &mut TextVec,
    ) -> Option<(Slot, bool)> {
        let first = values.clone().next()?;
        for i in 0..self.candidates.len() {
            let Candidate { column, piece, span } = *self.candidates.get(i)?;
            let of = beside.get(column)?;
            let row = *rows.first()? as usize;
            if of.values.get(row).get(span.from as usize..span.to as usize) != Some(first) {
                continue;
            }
            let facts = Facts::of(values.clone()).filter(Facts::is_worth_it)?;
            let pieces = &mut self.pieces;
            let same = values
                .clone()
                .zip(rows)
                .all(|(value, row)| pieces.get(of.values.get(*row as usize), piece) == Some(value));
            if !same {
                continue;
            }
            let column = self.number(column, of.name, names)?;
            let Facts { classes, len, digit, .. } = facts;
            return Some((Slot::Field { column, piece, classes, len }, digit));
        }
        None
    }

    fn number(&mut self, column: usize, name: &str, names: &mut TextVec) -> Option<u8> {
        let used = self.used.get_mut(column)?;
        if used.is_none() {
            *used = Some(u8::try_from(names.len()).ok()?);
            names.push(name.as_bytes());
        }
        *used
    }
}

/// What the values of a slot have in common.
struct Facts {
    classes: u8,
    /// The length of each value; 0 if they differ.
    len: u16,
    digit: bool,
    rows: usize,
    bytes: usize,
    changes: usize,
}

impl Facts {
    fn of<'v>(values: impl Iterator<Item = &'v [u8]>) -> Option<Facts> {
        let mut values = values.peekable();
        let mut last = *values.peek()?;
        let len = u16::try_from(last.len()).unwrap_or(0);
        let mut f = Facts { classes: u8::MAX, len, digit: true, rows: 0, bytes: 0, changes: 0 };
        for value in values {
            f.classes &= classes_of(value);
            f.digit &= value.iter().any(u8::is_ascii_digit);
            f.rows += 1;
            f.bytes += value.len();
            f.changes += usize::from(last != value);
            if value.len() != usize::from(f.len) {
                f.len = 0;
            }
            last = value;
        }
        Some(f)
    }

    /// Whether a reference costs less. Only digits and hex digits are referred to: of words a
    /// search must know which ones there are, and their few values are codes in any case.
    fn is_worth_it(&self) -> bool {
        if self.classes & (class::LOWER | class::UPPER) == 0 {
            return false;
        }
        match self.changes {
            0 => self.bytes >= self.rows * CONSTANT_MIN,
            changes => self.bytes >= self.rows * LEN_MIN && changes * 8 >= self.rows,
        }
    }
}

/// The values of the slots of a strip that refer to other columns.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct FieldValues {
    bytes: Vec<u8>,
    /// For each template, for each such slot, the values of the template's rows in order.
    spans: Vec<(u32, u32)>,
}

impl FieldValues {
    /// Cuts them out of `beside`, the strips of the columns that the table names. `starts` tells
    /// for each slot of the table where its values begin, of `count` in all.
    pub(super) fn new(
        ids: &[u16],
        ranks: &[u16],
        table: &TemplateTable,
        (starts, count): (&[u32], usize),
        beside: &[Arc<Strip>],
    ) -> Result<FieldValues, Malformed> {
        if beside.len() != table.fields().len() || beside.iter().any(|s| s.len() != ids.len()) {
            return Err(Malformed("strip without the columns that it refers to"));
        }
        let mut out = FieldValues { bytes: Vec::new(), spans: vec![(0, 0); count] };
        if count == 0 {
            return Ok(out);
        }
        let mut cut = CutRow { beside, columns: Vec::new() };
        cut.columns.resize_with(beside.len(), CutValue::default);
        for (row, (id, rank)) in ids.iter().zip(ranks).enumerate() {
            let (first, slots) = table.slots(usize::from(*id));
            for (i, placed) in (first..).zip(slots) {
                let Slot::Field { column, piece, .. } = placed.slot else { continue };
                let value = cut.piece(row, column, piece).filter(|value| fits(value, placed));
                let value = value.ok_or(Malformed("slot whose column has no such value"))?;
                let from = out.bytes.len();
                out.bytes.extend_from_slice(value);
                let at = |n: usize| u32::try_from(n).map_err(|_| Malformed("strip over its cap"));
                let span = (at(from)?, at(out.bytes.len())?);
                let place = starts.get(i).map_or(0, |start| *start as usize) + usize::from(*rank);
                *out.spans.get_mut(place).ok_or(Malformed("strip over its cap"))? = span;
            }
            if out.bytes.len() > PAGE_RAW_MAX {
                return Err(Malformed("strip over the cap of a page"));
            }
        }
        Ok(out)
    }

    /// Value `i`.
    #[inline]
    pub(super) fn get(&self, i: usize) -> &[u8] {
        let (from, to) = self.spans.get(i).copied().unwrap_or((0, 0));
        self.bytes.get(from as usize..to as usize).unwrap_or(&[])
    }

    /// The length of the longest value.
    pub(super) fn longest(&self) -> usize {
        self.spans.iter().map(|(from, to)| (to - from) as usize).max().unwrap_or(0)
    }

    /// Bytes of memory held.
    pub(super) fn heap_bytes(&self) -> usize {
        self.bytes.capacity() + self.spans.capacity() * size_of::<(u32, u32)>()
    }
}

/// Whether a value is what its slot promises to those who only look at the table.
fn fits(value: &[u8], placed: &PlacedSlot) -> bool {
    let Slot::Field { classes, len, .. } = placed.slot else { return false };
    classes_of(value) & classes == classes
        && (len == 0 || value.len() == usize::from(len))
        && (!placed.digit || value.iter().any(u8::is_ascii_digit))
}

/// The pieces of the values of a row, each value cut once.
struct CutRow<'a> {
    beside: &'a [Arc<Strip>],
    columns: Vec<CutValue>,
}

#[derive(Default)]
struct CutValue {
    /// The row that was cut last, and 1.
    row: usize,
    value: Vec<u8>,
    pieces: Pieces,
}

impl CutRow<'_> {
    fn piece(&mut self, row: usize, column: u8, piece: u16) -> Option<&[u8]> {
        let strip = self.beside.get(usize::from(column))?;
        let cut = self.columns.get_mut(usize::from(column))?;
        if cut.row != row + 1 {
            cut.row = row + 1;
            let mut scratch = Vec::new();
            let value = strip.get(row, &mut scratch);
            cut.value.clear();
            cut.value.extend_from_slice(value);
            cut.pieces.of(value);
        }
        let span = cut.pieces.spans.get(usize::from(piece))?;
        cut.value.get(span.from as usize..span.to as usize)
    }
}
