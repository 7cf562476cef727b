//! The sparse page: the values of columns that few rows of a block have.
//!
//! Unpacked it is one piece for each column, in the order of their headers; a piece is, for each
//! row with a value, the distance to the row before and the value behind its length.

use crate::codec::varint::{Reader, put_bytes, put_varint};
use crate::error::Malformed;
use crate::record::TextVec;

/// Appends the piece of a column.
pub(super) fn put_piece<'a>(entries: impl Iterator<Item = (u32, &'a [u8])>, out: &mut Vec<u8>) {
    let mut next = 0;
    for (row, value) in entries {
        put_varint(out, u64::from(row - next));
        put_bytes(out, value);
        next = row + 1;
    }
}

/// The values of one column of a sparse page.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SparseColumn {
    /// The rows with a value, ascending.
    pub(crate) rows: Vec<u32>,
    /// Their values.
    pub(crate) values: TextVec,
}

impl SparseColumn {
    /// The value of a row of the block; empty if it has none.
    pub(crate) fn get(&self, row: usize) -> &[u8] {
        let found = self.rows.binary_search_by(|known| (*known as usize).cmp(&row));
        found.map_or(&[], |i| self.values.get(i))
    }

    /// The rows from `from` on, before `to`, with their values.
    pub(super) fn between(&self, from: usize, to: usize) -> impl Iterator<Item = (u32, &[u8])> {
        let first = self.rows.partition_point(|row| (*row as usize) < from);
        let rows = self.rows.iter().copied().enumerate().skip(first);
        let here = rows.take_while(move |(_, row)| (*row as usize) < to);
        here.map(|(i, row)| (row, self.values.get(i)))
    }

    /// Reads the piece of a column with `present` values in a block of `rows` rows.
    pub(crate) fn parse(bytes: &[u8], rows: u32, present: u32) -> Result<SparseColumn, Malformed> {
        let mut r = Reader::new(bytes);
        // Every entry takes two bytes at least.
        if present as usize > bytes.len() {
            return Err(Malformed("more sparse values than bytes"));
        }
        let mut out = SparseColumn {
            rows: Vec::with_capacity(present as usize),
            values: TextVec::with_capacity(present as usize, bytes.len()),
        };
        let mut next = 0u32;
        for _ in 0..present {
            let late = Malformed("row of a sparse value");
            let row = next.checked_add(r.varint32()?).filter(|row| *row < rows).ok_or(late)?;
            next = row + 1;
            let value = r.bytes(bytes.len())?;
            if value.is_empty() {
                return Err(Malformed("an empty sparse value"));
            }
            out.rows.push(row);
            out.values.push(value);
        }
        r.finish()?;
        Ok(out)
    }
}
