//! Rows on their way through a query.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::column::{Column, run_of};
use super::position::RowPos;

/// At most this many rows travel in one batch.
pub(crate) const MAX_BATCH_ROWS: usize = 65_536;

/// Some rows, column by column.
///
/// `_time`, `_stream`, `_stream_id` and `_msg` are columns like any other. Names are unique;
/// their order is the order of output. A batch holds only the columns that someone needs and
/// only the rows that are still alive.
#[derive(Debug, Clone, Default)]
pub(crate) struct Batch {
    rows: usize,
    columns: Vec<(Arc<str>, Column)>,
    positions: Option<Arc<Vec<RowPos>>>,
    /// Where the rows are stored, for who asks of a few of them only.
    origin: Option<Arc<Origin>>,
    /// Where each column is, once there are many and one was set.
    places: Option<HashMap<Arc<str>, usize>>,
}

/// Where the rows of a batch from storage stand: their places, found one by one.
#[derive(Debug)]
pub(crate) struct Origin {
    /// Number of the part within the query's snapshot.
    pub(crate) part: u32,
    /// Append order of the strip's first row.
    pub(crate) order: u64,
    /// Ordinal of the strip's first stream within the part.
    pub(crate) stream: u32,
    /// The first row of the strip behind each of its streams.
    pub(crate) ends: Vec<u32>,
    /// The rows of the strip; `None` if these are all.
    pub(crate) picked: Option<Vec<u32>>,
}

impl Origin {
    /// The place of a row of the batch, which has this time.
    pub(crate) fn place(&self, row: u32, time: i64) -> RowPos {
        let row = match &self.picked {
            Some(picked) => picked.get(row as usize).copied().unwrap_or(row),
            None => row,
        };
        let run = u32::try_from(run_of(&self.ends, row as usize)).unwrap_or(u32::MAX);
        RowPos {
            time,
            part: self.part,
            stream: self.stream.saturating_add(run),
            order: self.order.saturating_add(u64::from(row)),
            sub: 0,
        }
    }
}

/// Below so many columns looking at each is as fast as anything.
const MANY_COLUMNS: usize = 64;

impl Batch {
    /// `rows` rows without columns.
    pub(crate) fn new(rows: usize) -> Batch {
        Batch { rows, ..Batch::default() }
    }

    /// The number of rows.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// Names and values.
    pub(crate) fn columns(&self) -> &[(Arc<str>, Column)] {
        &self.columns
    }

    /// Names and values, given away.
    pub(crate) fn into_columns(self) -> Vec<(Arc<str>, Column)> {
        self.columns
    }

    /// The column called `name`.
    pub(crate) fn column(&self, name: &str) -> Option<&Column> {
        match &self.places {
            Some(places) => self.columns.get(*places.get(name)?).map(|(_, c)| c),
            None => self.columns.iter().find(|(n, _)| &**n == name).map(|(_, c)| c),
        }
    }

    /// The value of a field, empty if absent.
    pub(crate) fn value<'a>(
        &'a self,
        name: &str,
        row: usize,
        scratch: &'a mut Vec<u8>,
    ) -> &'a [u8] {
        match self.column(name) {
            Some(column) => column.value(row, scratch),
            None => &[],
        }
    }

    /// Sets a column: replaced in place if the name exists, else appended.
    pub(crate) fn set_column(&mut self, name: Arc<str>, column: Column) {
        let columns = &self.columns;
        let place = if columns.len() < MANY_COLUMNS {
            columns.iter().position(|(n, _)| *n == name)
        } else {
            let all = || columns.iter().enumerate().map(|(i, (n, _))| (n.clone(), i)).collect();
            let places = self.places.get_or_insert_with(all);
            match places.entry(name.clone()) {
                Entry::Occupied(known) => Some(*known.get()),
                Entry::Vacant(free) => {
                    free.insert(columns.len());
                    None
                }
            }
        };
        match place.and_then(|i| self.columns.get_mut(i)) {
            Some(slot) => slot.1 = column,
            None => self.columns.push((name, column)),
        }
    }

    /// Removes a column and returns it.
    pub(crate) fn remove_column(&mut self, name: &str) -> Option<Column> {
        let at = self.columns.iter().position(|(n, _)| &**n == name)?;
        self.places = None;
        Some(self.columns.remove(at).1)
    }

    /// Keeps the columns whose name passes.
    pub(crate) fn retain_columns(&mut self, mut keep: impl FnMut(&str) -> bool) {
        self.places = None;
        self.columns.retain(|(name, _)| keep(name));
    }

    /// The canonical places of the rows, if they come from storage.
    pub(crate) fn positions(&self) -> Option<&[RowPos]> {
        self.positions.as_ref().map(|p| p.as_slice())
    }

    /// Gives the rows their places; ignored unless there is one for each row.
    pub(crate) fn set_positions(&mut self, positions: Option<Vec<RowPos>>) {
        debug_assert!(positions.as_ref().is_none_or(|p| p.len() == self.rows));
        self.positions = positions.filter(|p| p.len() == self.rows).map(Arc::new);
    }

    /// Where the rows are stored, if the scan says so and they are all as it gave them.
    pub(crate) fn origin(&self) -> Option<&Arc<Origin>> {
        self.origin.as_ref()
    }

    /// Says where the rows are stored.
    pub(crate) fn set_origin(&mut self, origin: Origin) {
        self.origin = Some(Arc::new(origin));
    }

    /// The given rows, in that order; a row may be named more than once.
    pub(crate) fn gather(&self, rows: &[u32]) -> Batch {
        let columns = self.columns.iter().map(|(n, c)| (n.clone(), c.gather(rows))).collect();
        let positions = self.positions.as_ref().map(|positions| {
            let at = |&r: &u32| positions.get(r as usize).copied().unwrap_or_default();
            Arc::new(rows.iter().map(at).collect())
        });
        Batch { rows: rows.len(), columns, positions, ..Batch::default() }
    }

    /// Rows `start..start + len`, cut to what there is.
    pub(crate) fn slice(&self, start: usize, len: usize) -> Batch {
        let end = start.saturating_add(len).min(self.rows);
        if start == 0 && end == self.rows {
            return self.clone();
        }
        let as_row = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let rows: Vec<u32> = (as_row(start)..as_row(end)).collect();
        self.gather(&rows)
    }

    /// All rows of `batches`, one after the other. Columns that a batch lacks are absent there;
    /// places are kept only if all batches have them.
    pub(crate) fn concat(batches: &[Batch]) -> Batch {
        if let [one] = batches {
            return one.clone();
        }
        let rows = batches.iter().map(Batch::rows).sum();
        let absent = Column::absent();
        let join = |name: Arc<str>| {
            let parts: Vec<(&Column, usize)> =
                batches.iter().map(|b| (b.column(&name).unwrap_or(&absent), b.rows)).collect();
            let column = Column::concat(&parts);
            (name, column)
        };
        let columns = names_of(batches).into_iter().map(join).collect();
        let positions: Option<Vec<&[RowPos]>> = batches.iter().map(Batch::positions).collect();
        let positions = positions.filter(|p| !p.is_empty()).map(|p| Arc::new(p.concat()));
        Batch { rows, columns, positions, ..Batch::default() }
    }

    /// Rows of several batches, each named by (batch, row), in that order; without places.
    pub(crate) fn gather_from(batches: &[Batch], rows: &[(u32, u32)]) -> Batch {
        let absent = Column::absent();
        let pick = |name: Arc<str>| {
            let from: Vec<&Column> =
                batches.iter().map(|b| b.column(&name).unwrap_or(&absent)).collect();
            let column = Column::gather_from(&from, rows);
            (name, column)
        };
        let columns = names_of(batches).into_iter().map(pick).collect();
        Batch { rows: rows.len(), columns, ..Batch::default() }
    }

    /// Forgets the canonical places of the rows.
    pub(crate) fn clear_positions(&mut self) {
        self.positions = None;
    }

    /// Bytes of memory held, shared buffers counted whole.
    pub(crate) fn heap_bytes(&self) -> usize {
        let columns: usize = self.columns.iter().map(|(n, c)| n.len() + 48 + c.heap_bytes()).sum();
        let positions = self.positions.as_ref().map_or(0, |p| p.capacity() * size_of::<RowPos>());
        let places = self.places.as_ref().map_or(0, |p| p.capacity() * 32);
        columns + positions + places
    }
}

/// The names of all columns, each once, in the order in which they come.
fn names_of(batches: &[Batch]) -> Vec<Arc<str>> {
    let mut seen = HashSet::new();
    let names = batches.iter().flat_map(|b| &b.columns).map(|(name, _)| name);
    names.filter(|name| seen.insert(Arc::clone(name))).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(a: &[&str], order: u64) -> Batch {
        let mut b = Batch::new(a.len());
        b.set_column("a".into(), Column::text(a.iter().map(|s| s.as_bytes()).collect()));
        let at = |i: u64| RowPos { order: order + i, ..RowPos::default() };
        b.set_positions(Some((0..a.len() as u64).map(at).collect()));
        b
    }

    fn values(b: &Batch, name: &str) -> Vec<Vec<u8>> {
        let mut scratch = Vec::new();
        (0..b.rows()).map(|r| b.value(name, r, &mut scratch).to_vec()).collect()
    }

    #[test]
    fn concat_pads_columns_and_keeps_places() {
        let mut second = batch(&["z"], 7);
        second.set_column("b".into(), Column::constant(b"k"));
        let all = Batch::concat(&[batch(&["x", "y"], 0), second]);
        assert_eq!(values(&all, "a"), [b"x", b"y", b"z"]);
        assert_eq!(values(&all, "b"), [&b""[..], b"", b"k"]);
        let orders: Vec<u64> = all.positions().unwrap().iter().map(|p| p.order).collect();
        assert_eq!(orders, [0, 1, 7]);
        let cut = all.slice(1, 9);
        assert_eq!(values(&cut, "a"), [b"y", b"z"]);
        assert_eq!(cut.positions().unwrap().len(), 2);
    }

    #[test]
    fn set_column_replaces_in_place() {
        let mut b = batch(&["x"], 0);
        b.set_column("b".into(), Column::constant(b"1"));
        b.set_column("a".into(), Column::constant(b"2"));
        let names: Vec<&str> = b.columns().iter().map(|(n, _)| &**n).collect();
        assert_eq!(names, ["a", "b"]);
        assert_eq!(values(&b, "a"), [b"2"]);
    }

    /// With any number of columns each name has one, which is found and replaced in place.
    #[test]
    fn many_columns_are_as_few() {
        let mut b = Batch::new(1);
        let mut want: Vec<(String, u32)> = Vec::new();
        let set = |b: &mut Batch, want: &mut Vec<(String, u32)>, n: u32, value: u32| {
            let name = format!("f{n}");
            b.set_column(name.as_str().into(), Column::constant(value.to_string().as_bytes()));
            match want.iter_mut().find(|(known, _)| *known == name) {
                Some(slot) => slot.1 = value,
                None => want.push((name, value)),
            }
        };
        for i in 0..1_000u32 {
            set(&mut b, &mut want, i * 7 % 301, i);
            if i % 97 == 0 {
                let name = format!("f{}", i % 301);
                let at = want.iter().position(|(known, _)| *known == name);
                assert_eq!(b.remove_column(&name).is_some(), at.is_some());
                at.map(|at| want.remove(at));
            }
            if i == 500 {
                b.retain_columns(|name| !name.ends_with('3'));
                want.retain(|(name, _)| !name.ends_with('3'));
            }
        }
        let have: Vec<(String, u32)> = b
            .columns()
            .iter()
            .map(|(name, _)| {
                let value = values(&b, name).remove(0);
                (name.to_string(), String::from_utf8(value).unwrap().parse().unwrap())
            })
            .collect();
        assert_eq!(have, want);
        assert!(b.column("f3").is_none() && b.column("nosuch").is_none());
    }
}
