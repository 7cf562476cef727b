//! One column of the block that is being built.

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
