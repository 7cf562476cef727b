//! Finds the columns that have one value in all rows of a stream.

use super::builder::StreamSize;

/// Streams of fewer rows have no constants: their values do as well in pages, where they are
/// typed and have filters.
pub(crate) const CONSTANT_ROWS_MIN: u64 = 4;

/// What has been seen of a column in the stream.
#[derive(Debug, Clone, Copy, Default)]
struct Seen<'a> {
    /// The stream in which the rest was seen.
    stream: u32,
    /// Rows with the value of the first row.
    rows: u64,
    value: &'a [u8],
    /// Where the value of the row before is, which is mostly that of this row as well.
    last: &'a [u8],
    bytes: u64,
}

/// Watches the rows of one stream after the other.
#[derive(Debug)]
pub(crate) struct ConstantFinder<'a> {
    columns: Vec<Seen<'a>>,
    stream: u32,
    rows: u64,
    names: Vec<u32>,
    found: Vec<(u32, &'a [u8])>,
}

impl<'a> ConstantFinder<'a> {
    pub(crate) fn new(names: usize) -> ConstantFinder<'a> {
        ConstantFinder {
            columns: vec![Seen::default(); names],
            stream: 0,
            rows: 0,
            names: Vec::new(),
            found: Vec::new(),
        }
    }

    /// Begins the next stream.
    pub(crate) fn begin(&mut self) {
        self.stream += 1;
        self.rows = 0;
        self.names.clear();
    }

    /// Looks at the next row.
    #[inline]
    pub(crate) fn row(&mut self, fields: impl Iterator<Item = (u32, &'a [u8])>) {
        for (name, value) in fields {
            let Some(seen) = self.columns.get_mut(name as usize) else { continue };
            if seen.stream != self.stream {
                // A column that the first row lacks keeps a count that no row can make up for.
                let rows = u64::from(self.rows == 0);
                *seen = Seen { stream: self.stream, rows, value, last: value, bytes: 0 };
                self.names.push(name);
            } else if seen.rows == self.rows
                && (std::ptr::eq(seen.last, value) || seen.value == value)
            {
                seen.rows += 1;
                seen.last = value;
            }
            seen.bytes += value.len() as u64;
        }
        self.rows += 1;
    }

    /// The constants of the stream, ascending by name, and how large the rest is.
    pub(crate) fn end(&mut self) -> (&[(u32, &'a [u8])], StreamSize) {
        self.found.clear();
        let mut largest = 0;
        for &name in &self.names {
            let Some(seen) = self.columns.get(name as usize) else { continue };
            if seen.rows == self.rows && self.rows >= CONSTANT_ROWS_MIN {
                self.found.push((name, seen.value));
            } else {
                largest = largest.max(seen.bytes);
            }
        }
        self.found.sort_unstable_by_key(|c| c.0);
        (&self.found, StreamSize { rows: self.rows, largest })
    }

    /// Whether column `name` is a constant of the stream; to be asked after
    /// [`end`](ConstantFinder::end).
    #[inline]
    pub(crate) fn is_constant(&self, name: u32) -> bool {
        self.rows >= CONSTANT_ROWS_MIN
            && self.columns.get(name as usize).is_some_and(|seen| seen.rows == self.rows)
    }
}
