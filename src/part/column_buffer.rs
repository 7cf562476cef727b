//! One column of the block that is being built.

use std::ops::Range;

use super::layout::count32;
use crate::record::TextVec;

/// The values of one column, for the rows that have one.
#[derive(Debug, Default)]
pub(super) struct ColumnBuffer {
    /// The rows that have a value, ascending.
    rows: Vec<u32>,
    /// Their values.
    values: TextVec,
    /// Rows of the block whose stream has a constant for this column.
    covered: u32,
}

impl ColumnBuffer {
    /// Adds the value of `row`, which comes after all rows so far.
    #[inline]
    pub(super) fn push(&mut self, row: u32, value: &[u8]) -> usize {
        self.rows.push(row);
        self.values.push(value);
        self.values.bytes().len()
    }

    /// Appends the values of some rows of another column; the first of these rows has the number
    /// `base` here.
    pub(super) fn extend(&mut self, other: &ColumnBuffer, rows: Range<u32>, base: u32) {
        let from = other.rows.partition_point(|row| *row < rows.start);
        let to = other.rows.partition_point(|row| *row < rows.end);
        let taken = other.rows.get(from..to).unwrap_or(&[]);
        self.rows.extend(taken.iter().map(|row| row - rows.start + base));
        self.values.extend_range(&other.values, from..to);
    }

    /// Appends some texts, none of them empty, for the rows from `first` on.
    pub(super) fn extend_texts(&mut self, first: u32, texts: &TextVec, range: Range<usize>) {
        self.rows.extend((first..).take(range.len()));
        self.values.extend_range(texts, range);
    }

    /// The first row whose value, together with those from row `first` on, has more than `room`
    /// bytes; `None` if there is none.
    pub(super) fn fitting(&self, first: u32, room: usize) -> Option<u32> {
        let from = self.rows.partition_point(|row| *row < first);
        let ends = self.values.ends();
        let start = from.checked_sub(1).and_then(|i| ends.get(i)).copied().unwrap_or(0);
        let rest = ends.get(from..).unwrap_or(&[]);
        let fit = rest.partition_point(|end| (*end - start) as usize <= room);
        self.rows.get(from + fit).copied()
    }

    /// Counts rows whose stream has a constant for this column.
    pub(super) fn cover(&mut self, rows: u32) {
        self.covered += rows;
    }

    pub(super) fn is_untouched(&self) -> bool {
        self.rows.is_empty() && self.covered == 0
    }

    /// Forgets everything, keeps the room.
    pub(super) fn clear(&mut self) {
        self.rows.clear();
        self.values.clear();
        self.covered = 0;
    }

    /// The number of rows with a value.
    pub(super) fn present(&self) -> u32 {
        count32(self.rows.len())
    }

    /// Bytes of all values.
    pub(super) fn bytes(&self) -> usize {
        self.values.bytes().len()
    }

    /// The rows with a value, and the values.
    pub(super) fn entries(&self) -> impl Iterator<Item = (u32, &[u8])> + '_ {
        self.rows.iter().copied().zip(self.values.iter())
    }

    /// Whether two columns hold the same values in the same rows.
    pub(super) fn same_as(&self, other: &ColumnBuffer) -> bool {
        self.rows == other.rows && self.values == other.values
    }

    /// The value of all rows of a block of `rows` rows that have no stream constant, if it is one.
    pub(super) fn constant(&self, rows: u32) -> Option<&[u8]> {
        if self.present() + self.covered != rows {
            return None;
        }
        let first = self.values.get(0);
        let (bytes, len) = (self.values.bytes(), first.len());
        let same_lengths = len.checked_mul(self.values.len()) == Some(bytes.len());
        // Bytes that are equal to themselves one value further repeat the first value; the ends
        // then stand at multiples of its length, or the texts differ.
        let repeats = same_lengths && bytes.get(len..) == bytes.get(..bytes.len() - len);
        (repeats && self.values.iter().all(|v| v.len() == len)).then_some(first)
    }

    /// One value for each of `rows` rows, empty where there is none; `scratch` is used for it
    /// where rows are missing.
    pub(super) fn dense<'a>(&'a self, rows: u32, scratch: &'a mut TextVec) -> &'a TextVec {
        if self.present() == rows {
            return &self.values;
        }
        scratch.clear();
        let mut next = 0;
        for (row, value) in self.entries() {
            for _ in next..row {
                scratch.push(&[]);
            }
            scratch.push(value);
            next = row + 1;
        }
        for _ in next..rows {
            scratch.push(&[]);
        }
        scratch
    }
}
