//! Rows of a typed page that have no typed value: absent ones, and those with some other text.
//!
//! In a strip: `absent rows (row set, if ABSENT) | exceptions (if EXCEPTIONS)`. Exceptions are
//! `count varint`, then for each `row varint (less the row of the one before) | bytes`.

use super::varint::{Reader, put_bytes, put_varint};
use super::{Bitmap, PAGE_RAW_MAX};
use crate::error::Malformed;
use crate::record::TextVec;

/// Flag of a strip: some rows are absent.
pub(super) const ABSENT: u8 = 0b100;
/// Flag of a strip: some rows hold other texts.
pub(super) const EXCEPTIONS: u8 = 0b1000;

/// The holes of a column.
#[derive(Debug, Default)]
pub(super) struct Holes {
    /// Rows without a value.
    pub(super) absent: Option<Bitmap>,
    /// Rows whose value is another text, ascending.
    pub(super) exceptions: Vec<u32>,
}

impl Holes {
    /// Notes that `row`, the last one so far of a column of `rows` rows, has no typed value;
    /// false if the column has too many exceptions to be worth its type.
    pub(super) fn add(&mut self, row: u32, value: &[u8], rows: usize) -> bool {
        if value.is_empty() {
            self.absent.get_or_insert_with(|| Bitmap::empty(rows)).set(row as usize);
            return true;
        }
        self.exceptions.push(row);
        self.exceptions.len() <= 4 + row as usize / 128
    }

    /// Whether every row has a typed value.
    pub(super) fn is_empty(&self) -> bool {
        self.absent.is_none() && self.exceptions.is_empty()
    }

    /// Calls `f` with each row of `from..to` that has a typed value.
    pub(super) fn for_typed(&self, (from, to): (usize, usize), mut f: impl FnMut(usize)) {
        let mut exceptions = self.exceptions_in(from, to).iter().peekable();
        for row in from..to {
            if exceptions.next_if(|e| **e as usize == row).is_none()
                && !self.absent.as_ref().is_some_and(|a| a.get(row))
            {
                f(row);
            }
        }
    }

    /// Whether every row of `from..to` has a typed value.
    pub(super) fn none_in(&self, from: usize, to: usize) -> bool {
        self.exceptions_in(from, to).is_empty()
            && self.absent.as_ref().is_none_or(|a| !a.any_range(from..to))
    }

    /// Appends the holes of rows `from..to`; gives the strip's flags.
    pub(super) fn encode(
        &self,
        values: &TextVec,
        (from, to): (usize, usize),
        out: &mut Vec<u8>,
    ) -> u8 {
        let mut flags = 0;
        if let Some(absent) = self.absent.as_ref().filter(|a| a.any_range(from..to)) {
            flags |= ABSENT;
            absent.slice(from..to).encode(out);
        }
        let exceptions = self.exceptions_in(from, to);
        if !exceptions.is_empty() {
            flags |= EXCEPTIONS;
            put_varint(out, exceptions.len() as u64);
            let mut last = from;
            for row in exceptions {
                let row = *row as usize;
                put_varint(out, (row - last) as u64);
                put_bytes(out, values.get(row));
                last = row;
            }
        }
        flags
    }

    fn exceptions_in(&self, from: usize, to: usize) -> &[u32] {
        let start = self.exceptions.partition_point(|e| (*e as usize) < from);
        let end = self.exceptions.partition_point(|e| (*e as usize) < to);
        self.exceptions.get(start..end).unwrap_or(&[])
    }
}

/// The holes of a strip.
#[derive(Debug)]
pub(super) struct StripHoles {
    /// Rows without a value.
    pub(super) absent: Option<Bitmap>,
    /// Rows with another text, ascending.
    pub(super) exceptions: Vec<(u32, Vec<u8>)>,
}

impl StripHoles {
    /// Reads the holes of a strip of `rows` rows, a number that the caller has checked.
    pub(super) fn decode(
        r: &mut Reader<'_>,
        flags: u8,
        rows: usize,
    ) -> Result<StripHoles, Malformed> {
        let absent = if flags & ABSENT != 0 { Some(Bitmap::decode(r, rows)?) } else { None };
        let exceptions = if flags & EXCEPTIONS != 0 { exceptions(r, rows)? } else { Vec::new() };
        Ok(StripHoles { absent, exceptions })
    }

    /// The rows with a typed value; `None` means all.
    pub(super) fn typed(&self, rows: usize) -> Option<Bitmap> {
        let mut holes = self.absent.clone();
        if !self.exceptions.is_empty() {
            let holes = holes.get_or_insert_with(|| Bitmap::empty(rows));
            self.exceptions.iter().for_each(|(row, _)| holes.set(*row as usize));
        }
        if let Some(holes) = &mut holes {
            holes.invert();
        }
        holes
    }
}

fn exceptions(r: &mut Reader<'_>, rows: usize) -> Result<Vec<(u32, Vec<u8>)>, Malformed> {
    let count = r.len(rows)?;
    // Each takes at least two bytes, so no more memory than a few times the input is taken.
    let mut exceptions = Vec::with_capacity(count.min(r.rest().len()));
    let mut row = 0u32;
    for i in 0..count {
        let step = r.varint32()?;
        if i > 0 && step == 0 {
            return Err(Malformed("exception row stands twice"));
        }
        row = row.checked_add(step).ok_or(Malformed("exception past the end"))?;
        if row as usize >= rows {
            return Err(Malformed("exception past the end"));
        }
        exceptions.push((row, r.bytes(PAGE_RAW_MAX)?.to_vec()));
    }
    Ok(exceptions)
}
