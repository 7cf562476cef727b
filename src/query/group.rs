//! Grouping of rows by the values of some columns, for `stats`, `uniq`, `top` and their kin.

use std::hash::BuildHasher;

use hashbrown::HashTable;

use super::column::{Column, push_int, push_time};

/// Distinct byte strings, numbered from 0 in the order of their arrival, all in one buffer.
#[derive(Debug, Clone, Default)]
pub(crate) struct Interner {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    table: HashTable<(u64, u32)>,
    hasher: foldhash::fast::RandomState,
}

impl Interner {
    /// The number of strings.
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// String `id`; empty for an unknown one.
    #[inline]
    pub(crate) fn get(&self, id: u32) -> &[u8] {
        let id = id as usize;
        let start = if id == 0 { 0 } else { self.ends.get(id - 1).copied().unwrap_or(0) };
        let end = self.ends.get(id).copied().unwrap_or(0);
        self.bytes.get(start..end).unwrap_or(&[])
    }

    /// The number of `value`, given out now if it is new.
    #[inline]
    pub(crate) fn intern(&mut self, value: &[u8]) -> u32 {
        let hash = self.hasher.hash_one(value);
        let found = self.table.find(hash, |(h, id)| *h == hash && self.get(*id) == value);
        if let Some((_, id)) = found {
            return *id;
        }
        // A query runs out of memory long before it runs out of numbers.
        let id = u32::try_from(self.ends.len()).unwrap_or(u32::MAX);
        self.bytes.extend_from_slice(value);
        self.ends.push(self.bytes.len());
        self.table.insert_unique(hash, (hash, id), |(h, _)| *h);
        id
    }

    /// The number of `value` if it has one.
    pub(crate) fn find(&self, value: &[u8]) -> Option<u32> {
        let hash = self.hasher.hash_one(value);
        let found = self.table.find(hash, |(h, id)| *h == hash && self.get(*id) == value);
        found.map(|(_, id)| *id)
    }

    /// Bytes of memory held.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.bytes.capacity() + self.ends.capacity() * 8 + self.table.capacity() * 20
    }
}

/// An [`Interner`] with a short cut for integers and times, so that typed columns need no text.
#[derive(Debug, Clone, Default)]
pub(crate) struct ValueTable {
    values: Interner,
    ints: HashTable<(i64, u32)>,
    times: HashTable<(i64, u32)>,
}

const UNSEEN: u32 = u32::MAX;

impl ValueTable {
    /// The distinct values.
    pub(crate) fn values(&self) -> &Interner {
        &self.values
    }

    /// The number of a value.
    pub(crate) fn intern(&mut self, value: &[u8]) -> u32 {
        self.values.intern(value)
    }

    /// The number of each of the first `rows` values of a column.
    pub(crate) fn intern_column(&mut self, column: &Column, rows: usize) -> Numbers {
        match column {
            Column::Const(value) => Numbers::One(self.values.intern(value)),
            Column::Codes { codes, dictionary } => {
                let mut known = vec![UNSEEN; dictionary.len()];
                let number = |code: &u32| match known.get_mut(*code as usize) {
                    Some(slot) if *slot != UNSEEN => *slot,
                    Some(slot) => {
                        *slot = self.values.intern(dictionary.get(*code as usize));
                        *slot
                    }
                    None => self.values.intern(&[]),
                };
                Numbers::Each(codes.iter().take(rows).map(number).collect())
            }
            Column::Text(text) => {
                let mut last: Option<(&[u8], u32)> = None;
                let mut number = |value| match last {
                    Some((v, id)) if v == value => id,
                    _ => {
                        let id = self.values.intern(value);
                        last = Some((value, id));
                        id
                    }
                };
                Numbers::Each((0..rows).map(|row| number(text.get(row))).collect())
            }
            Column::Times(times) => {
                let number = |ns| typed(&mut self.times, &mut self.values, ns, push_time);
                Numbers::Each(with_last(times.iter().take(rows).copied(), number))
            }
            Column::Ints { values, absent: None, exceptions } if exceptions.is_empty() => {
                let number = |n| typed(&mut self.ints, &mut self.values, n, push_int);
                Numbers::Each(with_last(values.iter().take(rows).copied(), number))
            }
            Column::Ints { values, absent, exceptions } => {
                let mut exceptions = exceptions.iter().peekable();
                let mut out = Vec::with_capacity(rows);
                for (row, n) in values.iter().enumerate().take(rows) {
                    let id = match exceptions.next_if(|(r, _)| *r as usize == row) {
                        Some((_, text)) => self.values.intern(text),
                        None if absent.as_ref().is_some_and(|a| a.get(row)) => {
                            self.values.intern(&[])
                        }
                        None => typed(&mut self.ints, &mut self.values, *n, push_int),
                    };
                    out.push(id);
                }
                Numbers::Each(out)
            }
        }
    }

    /// Bytes of memory held.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.values.heap_bytes() + (self.ints.capacity() + self.times.capacity()) * 20
    }
}

/// The number of an integer whose text `write` makes.
fn typed(
    table: &mut HashTable<(i64, u32)>,
    values: &mut Interner,
    n: i64,
    write: impl Fn(&mut Vec<u8>, i64),
) -> u32 {
    let hash = |n: i64| {
        let x = n.cast_unsigned().wrapping_mul(0x9E37_79B9_7F4A_7C15);
        x ^ (x >> 32)
    };
    if let Some((_, id)) = table.find(hash(n), |(m, _)| *m == n) {
        return *id;
    }
    let mut text = Vec::with_capacity(32);
    write(&mut text, n);
    let id = values.intern(&text);
    table.insert_unique(hash(n), (n, id), |(m, _)| hash(*m));
    id
}

/// Maps integers, an equal neighbour without a look-up.
fn with_last(values: impl Iterator<Item = i64>, mut number: impl FnMut(i64) -> u32) -> Vec<u32> {
    let mut last: Option<(i64, u32)> = None;
    let number = |n| match last {
        Some((m, id)) if m == n => id,
        _ => {
            let id = number(n);
            last = Some((n, id));
            id
        }
    };
    values.map(number).collect()
}

/// A number per row.
#[derive(Debug, Clone)]
pub(crate) enum Numbers {
    /// The same for all rows.
    One(u32),
    /// One for each row.
    Each(Vec<u32>),
}

impl Numbers {
    /// The number of `row`.
    #[inline]
    pub(crate) fn get(&self, row: usize) -> u32 {
        match self {
            Numbers::One(n) => *n,
            Numbers::Each(list) => list.get(row).copied().unwrap_or(0),
        }
    }
}

/// Distinct tuples of values, numbered from 0 in the order of their arrival.
#[derive(Debug, Clone)]
pub(crate) struct GroupTable {
    columns: Vec<ValueTable>,
    /// Value numbers of each group, one after the other; unused with a single column, where the
    /// value's number is the group's.
    tuples: Vec<u32>,
    table: HashTable<(u64, u32)>,
    groups: usize,
    hasher: foldhash::fast::RandomState,
}

impl GroupTable {
    /// No groups yet; keys of `width` values. With a width of 0 there is exactly one group.
    pub(crate) fn new(width: usize) -> GroupTable {
        GroupTable {
            columns: vec![ValueTable::default(); width],
            tuples: Vec::new(),
            table: HashTable::new(),
            groups: 0,
            hasher: foldhash::fast::RandomState::default(),
        }
    }

    /// An empty table of the same width.
    pub(crate) fn fork(&self) -> GroupTable {
        GroupTable::new(self.columns.len())
    }

    /// The number of groups.
    pub(crate) fn len(&self) -> usize {
        match self.columns.as_slice() {
            [] => 1,
            [one] => one.values.len(),
            _ => self.groups,
        }
    }

    /// The group of each of the first `rows` rows; one column for each value of the key.
    pub(crate) fn assign(&mut self, columns: &[&Column], rows: usize) -> Numbers {
        let numbers: Vec<Numbers> = self
            .columns
            .iter_mut()
            .zip(columns)
            .map(|(table, column)| table.intern_column(column, rows))
            .collect();
        match numbers.as_slice() {
            [] => Numbers::One(0),
            [one] => one.clone(),
            many if many.iter().all(|n| matches!(n, Numbers::One(_))) => {
                let tuple: Vec<u32> = many.iter().map(|n| n.get(0)).collect();
                Numbers::One(self.intern_tuple(&tuple))
            }
            many => {
                let mut out = Vec::with_capacity(rows);
                let mut tuple = vec![0; many.len()];
                let mut last: Option<(Vec<u32>, u32)> = None;
                for row in 0..rows {
                    for (slot, n) in tuple.iter_mut().zip(many) {
                        *slot = n.get(row);
                    }
                    let id = match &mut last {
                        Some((t, id)) if *t == tuple => *id,
                        _ => self.intern_tuple(&tuple),
                    };
                    match &mut last {
                        Some((t, i)) => {
                            t.copy_from_slice(&tuple);
                            *i = id;
                        }
                        None => last = Some((tuple.clone(), id)),
                    }
                    out.push(id);
                }
                Numbers::Each(out)
            }
        }
    }

    /// The group with these values.
    pub(crate) fn group_of(&mut self, values: &[&[u8]]) -> u32 {
        let numbers: Vec<u32> =
            self.columns.iter_mut().zip(values).map(|(t, v)| t.intern(v)).collect();
        match numbers.as_slice() {
            [] => 0,
            [one] => *one,
            many => self.intern_tuple(many),
        }
    }

    /// The group with these values, if there is one.
    pub(crate) fn find(&self, values: &[&[u8]]) -> Option<u32> {
        let number = |(t, v): (&ValueTable, &&[u8])| t.values.find(v);
        let tuple: Vec<u32> = self.columns.iter().zip(values).map(number).collect::<Option<_>>()?;
        match tuple.as_slice() {
            [] => Some(0),
            [one] => Some(*one),
            tuple => {
                let hash = self.hasher.hash_one(tuple);
                self.table.find(hash, |entry| self.is_tuple(entry, hash, tuple)).map(|e| e.1)
            }
        }
    }

    fn is_tuple(&self, entry: &(u64, u32), hash: u64, tuple: &[u32]) -> bool {
        let start = entry.1 as usize * tuple.len();
        entry.0 == hash && self.tuples.get(start..start + tuple.len()) == Some(tuple)
    }

    /// Adds the groups of another table and returns their numbers here.
    pub(crate) fn absorb(&mut self, other: &GroupTable) -> Vec<u32> {
        let maps: Vec<Vec<u32>> = self
            .columns
            .iter_mut()
            .zip(&other.columns)
            .map(|(mine, theirs)| {
                let ids = 0..u32::try_from(theirs.values.len()).unwrap_or(u32::MAX);
                ids.map(|id| mine.intern(theirs.values.get(id))).collect()
            })
            .collect();
        match maps.as_slice() {
            [] => vec![0],
            [one] => one.clone(),
            maps => {
                let mut tuple = vec![0; maps.len()];
                let mut out = Vec::with_capacity(other.groups);
                for theirs in other.tuples.chunks_exact(maps.len()) {
                    for ((slot, map), id) in tuple.iter_mut().zip(maps).zip(theirs) {
                        *slot = map.get(*id as usize).copied().unwrap_or(0);
                    }
                    out.push(self.intern_tuple(&tuple));
                }
                out
            }
        }
    }

    /// Value `column` of the key of `group`.
    pub(crate) fn key(&self, group: u32, column: usize) -> &[u8] {
        let width = self.columns.len();
        let id = match width {
            1 => group,
            _ => self.tuples.get(group as usize * width + column).copied().unwrap_or(UNSEEN),
        };
        self.columns.get(column).map_or(&[], |t| t.values.get(id))
    }

    /// Bytes of memory held.
    pub(crate) fn heap_bytes(&self) -> usize {
        let columns: usize = self.columns.iter().map(ValueTable::heap_bytes).sum();
        columns + self.tuples.capacity() * 4 + self.table.capacity() * 20
    }

    fn intern_tuple(&mut self, tuple: &[u32]) -> u32 {
        let hash = self.hasher.hash_one(tuple);
        if let Some((_, id)) = self.table.find(hash, |e| self.is_tuple(e, hash, tuple)) {
            return *id;
        }
        let id = u32::try_from(self.groups).unwrap_or(u32::MAX);
        self.groups += 1;
        self.tuples.extend_from_slice(tuple);
        self.table.insert_unique(hash, (hash, id), |(h, _)| *h);
        id
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn text(values: &[&str]) -> Column {
        Column::text(values.iter().map(|v| v.as_bytes()).collect())
    }

    fn numbers(n: &Numbers, rows: usize) -> Vec<u32> {
        (0..rows).map(|r| n.get(r)).collect()
    }

    #[test]
    fn equal_values_share_a_group_in_every_form() {
        let mut table = GroupTable::new(1);
        let dictionary = Arc::new(["7", "x", "7"].iter().map(|v| v.as_bytes()).collect());
        let codes = Column::Codes { codes: vec![0, 1, 2], dictionary };
        let ints = Column::ints(vec![7, 8, 7]);
        let a = numbers(&table.assign(&[&codes], 3), 3);
        let b = numbers(&table.assign(&[&ints], 3), 3);
        let c = numbers(&table.assign(&[&text(&["8", "x", ""])], 3), 3);
        let d = table.assign(&[&Column::constant(b"")], 3);
        assert_eq!((a, b, c, d.get(2)), (vec![0, 1, 0], vec![0, 2, 0], vec![2, 1, 3], 3));
        assert_eq!(table.key(3, 0), b"");
    }

    #[test]
    fn tuples_merge_by_value() {
        let mut a = GroupTable::new(2);
        let mut b = a.fork();
        let x = a.assign(&[&text(&["p", "q", "p"]), &text(&["1", "1", "2"])], 3);
        assert_eq!(numbers(&x, 3), [0, 1, 2]);
        b.assign(&[&text(&["z", "p"]), &text(&["1", "2"])], 2);
        assert_eq!(a.absorb(&b), [3, 2]);
        assert_eq!((a.len(), a.key(3, 0), a.key(3, 1)), (4, &b"z"[..], &b"1"[..]));
        assert_eq!(a.group_of(&[b"q", b"1"]), 1);
    }
}
