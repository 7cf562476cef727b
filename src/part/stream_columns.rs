//! Rows of one stream, column by column, held until the stream's constants are known.

use std::ops::Range;

use super::column_buffer::ColumnBuffer;
use super::constants::CONSTANT_ROWS_MIN;
use super::layout::count32;
use crate::record::TextVec;

/// Rows held at most, about.
const ROWS_MAX: usize = 4_096;
/// Bytes of values held, about.
const BYTES_MAX: usize = 4 << 20;

/// Rows of one stream in their order.
#[derive(Debug, Default)]
pub(crate) struct StreamColumns {
    times: Vec<i64>,
    /// By number of their names.
    columns: Vec<HeldColumn>,
    /// Numbers of the columns with values.
    active: Vec<u32>,
    bytes: usize,
}

/// The values of one column.
#[derive(Debug, Default)]
pub(super) struct HeldColumn {
    /// The value of the first rows, which stands once.
    lead: Vec<u8>,
    /// How many of the first rows have it.
    lead_rows: u32,
    /// The values of the rows behind.
    rest: ColumnBuffer,
    is_active: bool,
}

impl StreamColumns {
    /// No rows, of columns with numbers below `names`.
    pub(crate) fn new(names: usize) -> StreamColumns {
        let mut columns = Vec::new();
        columns.resize_with(names, HeldColumn::default);
        StreamColumns { columns, ..StreamColumns::default() }
    }

    /// The number of rows.
    pub(crate) fn len(&self) -> usize {
        self.times.len()
    }

    /// Whether there are no rows.
    pub(crate) fn is_empty(&self) -> bool {
        self.times.is_empty()
    }

    /// Whether no more should be added.
    pub(crate) fn is_full(&self) -> bool {
        self.len() >= ROWS_MAX || self.bytes >= BYTES_MAX
    }

    /// Forgets the rows, keeps the room.
    pub(crate) fn clear(&mut self) {
        for name in self.active.drain(..) {
            if let Some(column) = self.columns.get_mut(name as usize) {
                column.lead.clear();
                column.lead_rows = 0;
                column.rest.clear();
                column.is_active = false;
            }
        }
        self.times.clear();
        self.bytes = 0;
    }

    /// The columns that have one value in all rows, ascending by name, if there are enough rows to
    /// speak of it.
    pub(crate) fn constants(&self) -> Vec<(u32, &[u8])> {
        let rows = count32(self.len());
        if u64::from(rows) < CONSTANT_ROWS_MIN {
            return Vec::new();
        }
        let all = self.active().filter(|(_, column)| column.lead_rows == rows);
        let mut constants: Vec<(u32, &[u8])> =
            all.map(|(name, column)| (name, column.lead.as_slice())).collect();
        constants.sort_unstable_by_key(|c| c.0);
        constants
    }

    /// Bytes of the values of the largest column that is none of the [`constants`].
    ///
    /// [`constants`]: StreamColumns::constants
    pub(crate) fn largest(&self) -> u64 {
        let rows = count32(self.len());
        let constant = u64::from(rows) >= CONSTANT_ROWS_MIN;
        let others = self.active().filter(|(_, c)| !constant || c.lead_rows != rows);
        others.map(|(_, column)| column.bytes()).max().unwrap_or(0)
    }

    pub(super) fn active(&self) -> impl Iterator<Item = (u32, &HeldColumn)> {
        let column = |name: u32| self.columns.get(name as usize).map(|column| (name, column));
        self.active.iter().filter_map(move |name| column(*name))
    }

    pub(super) fn times(&self) -> &[i64] {
        &self.times
    }

    /// Adds rows, whose values come with [`repeat`](StreamColumns::repeat) and
    /// [`values`](StreamColumns::values); gives the number of the first.
    pub(super) fn add_rows(&mut self, times: &[i64]) -> u32 {
        let first = count32(self.times.len());
        self.times.extend_from_slice(times);
        first
    }

    /// Gives `rows` rows from `first` on the same value.
    pub(super) fn repeat(&mut self, name: u32, first: u32, rows: u32, value: &[u8]) {
        let Some(column) = self.column(name) else { return };
        if column.leads(first, value) {
            column.lead_rows += rows;
            return;
        }
        for row in first..first + rows {
            column.rest.push(row, value);
        }
        self.bytes += value.len() * rows as usize;
    }

    /// Gives some texts to the rows from `first` on; an empty one is no value.
    pub(super) fn texts(&mut self, name: u32, first: u32, texts: &TextVec, range: Range<usize>) {
        if texts.length_of(range.clone()) == 0 {
            return;
        }
        let Some(column) = self.column(name) else { return };
        let leads = column.leads(first, texts.get(range.start));
        if leads || (range.clone()).any(|i| texts.get(i).is_empty()) {
            let values = range.map(|i| texts.get(i));
            return self.values(name, (first..).zip(values));
        }
        let before = column.rest.bytes();
        column.rest.extend_texts(first, texts, range);
        let added = column.rest.bytes() - before;
        self.bytes += added;
    }

    /// Gives values to rows, ascending, behind all that have one; an empty value is none.
    pub(super) fn values<'v>(&mut self, name: u32, values: impl Iterator<Item = (u32, &'v [u8])>) {
        let mut values = values.filter(|(_, value)| !value.is_empty()).peekable();
        if values.peek().is_none() {
            return;
        }
        let Some(column) = self.column(name) else { return };
        let before = column.rest.bytes();
        for (row, value) in values.by_ref() {
            if column.leads(row, value) {
                column.lead_rows += 1;
                continue;
            }
            // The first value that is another one: no later row leads.
            column.rest.push(row, value);
            break;
        }
        for (row, value) in values {
            column.rest.push(row, value);
        }
        let added = column.rest.bytes() - before;
        self.bytes += added;
    }

    fn column(&mut self, name: u32) -> Option<&mut HeldColumn> {
        let column = self.columns.get_mut(name as usize)?;
        if !column.is_active {
            column.is_active = true;
            self.active.push(name);
        }
        Some(column)
    }
}

impl HeldColumn {
    /// Whether the rows before `row` have all the same value, and `row` as well.
    #[inline]
    fn leads(&mut self, row: u32, value: &[u8]) -> bool {
        if self.lead_rows != row || self.rest.present() > 0 {
            return false;
        }
        if row == 0 {
            self.lead.clear();
            self.lead.extend_from_slice(value);
            return true;
        }
        self.lead == value
    }

    fn bytes(&self) -> u64 {
        self.lead.len() as u64 * u64::from(self.lead_rows) + self.rest.bytes() as u64
    }

    /// How many rows from `first` on have values of at most `room` bytes together; `None` if all
    /// have.
    pub(super) fn fitting(&self, first: u32, room: usize) -> Option<u32> {
        let leading = self.lead_rows.saturating_sub(first);
        let fit = room.checked_div(self.lead.len()).unwrap_or(usize::MAX);
        if fit < leading as usize {
            return Some(count32(fit));
        }
        let room = room - self.lead.len() * leading as usize;
        self.rest.fitting(first, room).map(|row| row - first)
    }

    /// Appends the values of `rows` to a column of a block, in which the first of them has the
    /// number `base`.
    pub(super) fn append_to(&self, rows: Range<u32>, base: u32, column: &mut ColumnBuffer) {
        for row in rows.start..rows.end.min(self.lead_rows) {
            column.push(row - rows.start + base, &self.lead);
        }
        column.extend(&self.rest, rows, base);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]
        #[test]
        fn columns_hold_what_rows_have(
            pieces in prop::collection::vec(
                (prop::collection::vec("[ab]{0,2}", 1..6), 0u8..3), 0..6),
            cut in 0u32..30,
            room in 0usize..20,
        ) {
            let mut held = StreamColumns::new(1);
            let mut naive: BTreeMap<u32, Vec<u8>> = BTreeMap::new();
            for (values, how) in &pieces {
                let times = vec![0; values.len()];
                let first = held.add_rows(&times);
                let mut values: Vec<&[u8]> = values.iter().map(String::as_bytes).collect();
                let value = values[0];
                match how {
                    0 if !value.is_empty() => {
                        held.repeat(0, first, count32(values.len()), value);
                        values.fill(value);
                    }
                    1 => {
                        let texts = [b"x"].iter().map(|x| &x[..]).chain(values.iter().copied());
                        held.texts(0, first, &texts.collect(), 1..values.len() + 1);
                    }
                    _ => held.values(0, (first..).zip(values.iter().copied())),
                }
                let rows = (first..).zip(values).filter(|(_, value)| !value.is_empty());
                naive.extend(rows.map(|(row, value)| (row, value.to_vec())));
            }
            let len = count32(held.len());
            let same = naive.len() == len as usize
                && naive.values().all(|value| Some(value) == naive.get(&0));
            let constants = held.constants();
            prop_assert_eq!(!constants.is_empty(), same && len >= 4);
            let total: usize = naive.values().map(Vec::len).sum();
            let want = if constants.is_empty() { total } else { 0 };
            prop_assert_eq!(held.largest(), want as u64);
            let cut = cut.min(len);
            for range in [0..cut, cut..len] {
                let mut column = ColumnBuffer::default();
                column.push(0, b"first");
                let Some((_, from)) = held.active().next() else { continue };
                from.append_to(range.clone(), 1, &mut column);
                let got: Vec<(u32, Vec<u8>)> =
                    column.entries().skip(1).map(|(row, v)| (row, v.to_vec())).collect();
                let want: Vec<(u32, Vec<u8>)> = naive
                    .range(range.clone())
                    .map(|(row, v)| (row - range.start + 1, v.clone()))
                    .collect();
                prop_assert_eq!(got, want);
                let mut bytes = 0;
                let first_over = naive.range(range.start..).find(|(_, value)| {
                    bytes += value.len();
                    bytes > room
                });
                let want = first_over.map(|(row, _)| row - range.start);
                prop_assert_eq!(from.fitting(range.start, room), want);
            }
            held.clear();
            prop_assert!(held.is_empty() && held.active().next().is_none());
        }
    }
}
