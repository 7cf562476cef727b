//! The first rows of a stream, held until its constants are known.

/// Rows held for the constants of a stream.
pub(super) const ROWS_MAX: usize = 4_096;
/// Bytes of values held.
pub(super) const BYTES_MAX: usize = 4 << 20;

/// Rows as flat memory.
#[derive(Debug, Default)]
pub(super) struct StreamRows {
    /// Time and end of the fields of each row.
    rows: Vec<(i64, usize)>,
    /// Name and end of the value of each field.
    fields: Vec<(u32, usize)>,
    bytes: Vec<u8>,
}

impl StreamRows {
    /// Adds a row.
    pub(super) fn push(&mut self, time: i64, fields: &[(u32, &[u8])]) {
        for (name, value) in fields {
            self.bytes.extend_from_slice(value);
            self.fields.push((*name, self.bytes.len()));
        }
        self.rows.push((time, self.fields.len()));
    }

    /// The number of rows.
    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are no rows.
    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Whether no more should be added.
    pub(super) fn is_full(&self) -> bool {
        self.rows.len() >= ROWS_MAX || self.bytes.len() >= BYTES_MAX
    }

    /// Forgets the rows, keeps the room.
    pub(super) fn clear(&mut self) {
        self.rows.clear();
        self.fields.clear();
        self.bytes.clear();
    }

    /// The time of row `i`; its fields are put into `out`.
    pub(super) fn get<'a>(&'a self, i: usize, out: &mut Vec<(u32, &'a [u8])>) -> i64 {
        out.clear();
        let before = |i: usize| i.checked_sub(1);
        let first = before(i).and_then(|p| self.rows.get(p)).map_or(0, |r| r.1);
        let Some(&(time, end)) = self.rows.get(i) else { return 0 };
        let mut start = before(first).and_then(|p| self.fields.get(p)).map_or(0, |f| f.1);
        for &(name, end) in self.fields.get(first..end).unwrap_or(&[]) {
            out.push((name, self.bytes.get(start..end).unwrap_or(&[])));
            start = end;
        }
        time
    }
}
