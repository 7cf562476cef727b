//! Grouping of rows by the values of some columns, for `stats`, `uniq`, `top` and their kin.

use std::cmp::Ordering;
use std::hash::BuildHasher;
use std::sync::Arc;

use hashbrown::HashTable;

use super::column::{Column, push_int, push_time};
use super::context::ExecContext;
pub(crate) use super::numbers::Numbers;
use super::numbers::PairTable;
use super::sorting::sort_checked;
use super::time_buckets::{EvenBuckets, TimeBuckets};
use crate::Result;
use crate::record::{SortKey, TextVec};

/// Distinct byte strings, numbered from 0 in the order of their arrival, all in one buffer.
#[derive(Debug, Clone, Default)]
pub(crate) struct Interner {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    /// The half of the hash that is kept above the number of the string.
    table: HashTable<u64>,
    hasher: foldhash::fast::RandomState,
}

/// Bytes from which a buffer grows in smaller steps.
const LARGE: usize = 1 << 20;

/// The hash by which an entry of an [`Interner`] is placed: made of the half that it keeps.
fn place(entry: u64) -> u64 {
    (entry >> 32).wrapping_mul(0x9E37_79B9_7F4A_7C15)
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

    fn look(&self, half: u64, value: &[u8]) -> Option<u32> {
        let same = |e: &u64| *e >> 32 == half >> 32 && self.get(low(*e)) == value;
        self.table.find(place(half), same).map(|e| low(*e))
    }

    /// The number of `value`, given out now if it is new.
    #[inline]
    pub(crate) fn intern(&mut self, value: &[u8]) -> u32 {
        let half = self.hasher.hash_one(value) & !u64::from(u32::MAX);
        if let Some(id) = self.look(half, value) {
            return id;
        }
        // A query runs out of memory long before it runs out of numbers.
        let id = u32::try_from(self.ends.len()).unwrap_or(u32::MAX);
        self.make_room(value.len());
        self.bytes.extend_from_slice(value);
        self.ends.push(self.bytes.len());
        self.table.insert_unique(place(half), half | u64::from(id), |e| place(*e));
        id
    }

    /// Lets a large buffer grow by a quarter, not to twice its size: what it takes is charged when
    /// it has been taken.
    fn make_room(&mut self, len: usize) {
        let capacity = self.bytes.capacity();
        if capacity > LARGE && capacity - self.bytes.len() < len {
            self.bytes.reserve_exact(len.max(capacity / 4));
        }
    }

    /// The number of `value` if it has one.
    pub(crate) fn find(&self, value: &[u8]) -> Option<u32> {
        self.look(self.hasher.hash_one(value) & !u64::from(u32::MAX), value)
    }

    /// The numbers here of the strings of another one.
    ///
    /// # Errors
    /// Those of [`ExecContext::check`].
    pub(crate) fn absorb(&mut self, other: &Interner, ctx: &ExecContext<'_>) -> Result<Vec<u32>> {
        let new = if self.len() == 0 { other.len() } else { other.len() / 2 };
        self.table.reserve(new, |e| place(*e));
        let ids = 0..u32::try_from(other.len()).unwrap_or(u32::MAX);
        let intern = |id: u32| {
            ctx.check_row(id as usize)?;
            Ok(self.intern(other.get(id)))
        };
        ids.map(intern).collect()
    }

    /// The strings, in the order of their numbers.
    pub(crate) fn texts(&self) -> TextVec {
        let mut out = TextVec::with_capacity(self.len(), self.bytes.len());
        let mut start = 0;
        for end in &self.ends {
            out.push(self.bytes.get(start..*end).unwrap_or(&[]));
            start = *end;
        }
        out
    }

    /// Forgets all strings.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        self.table.clear();
    }

    /// Bytes of memory held.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.bytes.capacity() + self.ends.capacity() * 8 + self.table.capacity() * 10
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the low half")]
fn low(entry: u64) -> u32 {
    entry as u32
}

/// An [`Interner`] with short cuts for integers, times and dictionaries.
#[derive(Debug, Clone, Default)]
pub(crate) struct ValueTable {
    values: Interner,
    ints: HashTable<(i64, u32)>,
    times: HashTable<(i64, u32)>,
    buckets: TimeBuckets,
    /// The numbers of the values of the dictionary seen last, as far as they were asked for.
    last: Option<(Arc<TextVec>, Vec<u32>)>,
}

const UNSEEN: u32 = u32::MAX;

/// What a value of a key is made of.
#[derive(Clone, Copy)]
pub(crate) enum KeyColumn<'a> {
    /// The values of a column.
    Values(&'a Column),
    /// The starts of the buckets that times fall into; the function gives that of one time.
    Buckets(&'a [i64], EvenBuckets, &'a dyn Fn(i64) -> i64),
}

impl ValueTable {
    /// The distinct values.
    pub(crate) fn values(&self) -> &Interner {
        &self.values
    }

    /// The number of a value.
    pub(crate) fn intern(&mut self, value: &[u8]) -> u32 {
        self.values.intern(value)
    }

    /// The numbers of the values of a dictionary; [`UNSEEN`] for those not asked for yet.
    fn known(&mut self, dictionary: &Arc<TextVec>) -> (&mut Interner, &mut Vec<u32>) {
        let same = self.last.as_ref().is_some_and(|(last, _)| Arc::ptr_eq(last, dictionary));
        if !same {
            self.last = None;
        }
        let unknown = || (Arc::clone(dictionary), vec![UNSEEN; dictionary.len()]);
        (&mut self.values, &mut self.last.get_or_insert_with(unknown).1)
    }

    fn intern_codes(&mut self, codes: &[u32], dictionary: &Arc<TextVec>) -> Vec<u32> {
        let (values, known) = self.known(dictionary);
        codes.iter().map(|code| number_of_code(values, known, dictionary, *code)).collect()
    }

    /// The number of each of the first `rows` values of a column.
    pub(crate) fn intern_column(&mut self, column: &Column, rows: usize) -> Numbers {
        match column {
            Column::Const(value) => Numbers::One(self.values.intern(value)),
            Column::Codes { codes, dictionary } => {
                let (values, known) = self.known(dictionary);
                let number = |code: u32| number_of_code(values, known, dictionary, code);
                Numbers::coded(codes, rows, dictionary.len(), number).unwrap_or_else(|| {
                    let codes = codes.get(..rows).unwrap_or(codes);
                    Numbers::Each(self.intern_codes(codes, dictionary))
                })
            }
            Column::Runs { ends, codes, dictionary } => {
                let ids = self.intern_codes(codes, dictionary);
                match ids.split_first() {
                    Some((first, rest)) if rest.iter().all(|id| id == first) => {
                        Numbers::One(*first)
                    }
                    _ => Numbers::Runs { ends: Arc::clone(ends), ids },
                }
            }
            Column::Text(text) => {
                let mut last: Option<(&[u8], u32)> = None;
                // Comparing nothing with nothing takes tens of ns where the addresses are of no
                // memory, and columns of few rows are full of it.
                let same = |a: &[u8], b: &[u8]| a.len() == b.len() && (a.is_empty() || a == b);
                let mut number = |value| match last {
                    Some((v, id)) if same(v, value) => id,
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

    /// Adds the values of another table and returns their numbers here.
    ///
    /// # Errors
    /// Those of [`ExecContext::check`].
    pub(crate) fn absorb(&mut self, other: &ValueTable, ctx: &ExecContext<'_>) -> Result<Vec<u32>> {
        self.values.absorb(&other.values, ctx)
    }

    fn intern_key(&mut self, column: &KeyColumn<'_>, rows: usize) -> Numbers {
        match column {
            KeyColumn::Values(column) => self.intern_column(column, rows),
            KeyColumn::Buckets(times, even, start) => {
                let (values, known) = (&mut self.values, &mut self.times);
                let number = |ns| typed(known, values, start(ns), push_time);
                self.buckets.number_all(times.get(..rows).unwrap_or(times), *even, number)
            }
        }
    }

    /// Bytes of memory held.
    pub(crate) fn heap_bytes(&self) -> usize {
        let last = self.last.as_ref().map_or(0, |(_, known)| known.capacity() * 4);
        let typed = (self.ints.capacity() + self.times.capacity()) * 20;
        self.values.heap_bytes() + typed + self.buckets.heap_bytes() + last
    }
}

/// The number of the value of a code; `known` holds those that were asked for before.
#[inline]
fn number_of_code(
    values: &mut Interner,
    known: &mut [u32],
    dictionary: &TextVec,
    code: u32,
) -> u32 {
    match known.get_mut(code as usize) {
        Some(slot) if *slot != UNSEEN => *slot,
        Some(slot) => {
            *slot = values.intern(dictionary.get(code as usize));
            *slot
        }
        None => values.intern(&[]),
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

/// Distinct tuples of values, numbered from 0 in the order of their arrival.
#[derive(Debug, Clone)]
pub(crate) struct GroupTable {
    columns: Vec<ValueTable>,
    /// For each column but the first, the pairs of a tuple of the columns before and a value of
    /// this one. With a single column the value's number is the group's.
    pairs: Vec<PairTable>,
}

impl GroupTable {
    /// No groups yet; keys of `width` values. With a width of 0 there is exactly one group.
    pub(crate) fn new(width: usize) -> GroupTable {
        GroupTable {
            columns: vec![ValueTable::default(); width],
            pairs: vec![PairTable::default(); width.saturating_sub(1)],
        }
    }

    /// An empty table of the same width.
    pub(crate) fn fork(&self) -> GroupTable {
        GroupTable::new(self.columns.len())
    }

    /// The number of groups.
    pub(crate) fn len(&self) -> usize {
        match (self.pairs.last(), self.columns.first()) {
            (Some(pairs), _) => pairs.len(),
            (None, Some(one)) => one.values.len(),
            (None, None) => 1,
        }
    }

    /// The group of each of the first `rows` rows; one column for each value of the key.
    pub(crate) fn assign(&mut self, columns: &[&Column], rows: usize) -> Numbers {
        let columns: Vec<KeyColumn<'_>> = columns.iter().map(|c| KeyColumn::Values(c)).collect();
        self.assign_keys(&columns, rows)
    }

    /// As [`assign`](GroupTable::assign), with buckets of times.
    pub(crate) fn assign_keys(&mut self, columns: &[KeyColumn<'_>], rows: usize) -> Numbers {
        let numbers = self.columns.iter_mut().zip(columns);
        let mut numbers = numbers.map(|(table, column)| table.intern_key(column, rows));
        let Some(mut groups) = numbers.next() else { return Numbers::One(0) };
        for (table, column) in self.pairs.iter_mut().zip(numbers) {
            groups = table.assign(&groups, &column, rows);
        }
        groups
    }

    /// The group with these values.
    pub(crate) fn group_of(&mut self, values: &[&[u8]]) -> u32 {
        let numbers = self.columns.iter_mut().zip(values);
        let mut numbers = numbers.map(|(table, value)| table.intern(value));
        let Some(first) = numbers.next() else { return 0 };
        self.pairs.iter_mut().zip(numbers).fold(first, |group, (t, n)| t.intern((group, n)))
    }

    /// The group with these values, if there is one.
    pub(crate) fn find(&self, values: &[&[u8]]) -> Option<u32> {
        let numbers = self.columns.iter().zip(values);
        let mut numbers = numbers.map(|(table, value)| table.values.find(value));
        let Some(first) = numbers.next() else { return Some(0) };
        let mut pairs = self.pairs.iter().zip(numbers);
        pairs.try_fold(first?, |group, (table, n)| table.find((group, n?)))
    }

    /// Adds the groups of another table and returns their numbers here.
    ///
    /// # Errors
    /// Those of [`ExecContext::check`].
    pub(crate) fn absorb(&mut self, other: &GroupTable, ctx: &ExecContext<'_>) -> Result<Vec<u32>> {
        let values = self.columns.iter_mut().zip(&other.columns);
        let mut values = values.map(|(mine, theirs)| mine.absorb(theirs, ctx));
        let Some(groups) = values.next() else { return Ok(vec![0]) };
        let mut groups = groups?;
        for ((mine, theirs), values) in self.pairs.iter_mut().zip(&other.pairs).zip(values) {
            let values = values?;
            let number = |map: &[u32], id: u32| map.get(id as usize).copied().unwrap_or(0);
            let intern = |(row, (a, b)): (usize, &(u32, u32))| {
                ctx.check_row(row)?;
                Ok(mine.intern((number(&groups, *a), number(&values, *b))))
            };
            groups = theirs.iter().enumerate().map(intern).collect::<Result<_>>()?;
        }
        Ok(groups)
    }

    /// The number of value `column` of the key of `group`.
    fn value_number(&self, mut group: u32, column: usize) -> u32 {
        for (i, pairs) in self.pairs.iter().enumerate().rev() {
            let (before, value) = pairs.at(group);
            if i + 1 == column {
                return value;
            }
            group = before;
        }
        group
    }

    /// Value `column` of the key of `group`.
    pub(crate) fn key(&self, group: u32, column: usize) -> &[u8] {
        let id = self.value_number(group, column);
        self.columns.get(column).map_or(&[], |t| t.values.get(id))
    }

    /// Sorts groups by the values of their keys.
    ///
    /// # Errors
    /// Those of [`ExecContext::check`].
    pub(crate) fn sort(&self, groups: &mut [u32], ctx: &ExecContext<'_>) -> Result<()> {
        if let [one] = self.columns.as_slice() {
            let mut sorted = one.with_keys(groups);
            sort_checked(&mut sorted, ctx, |a, b| one.compare(*a, *b))?;
            groups.iter_mut().zip(sorted).for_each(|(group, (_, id))| *group = id);
            return Ok(());
        }
        let ranks = (self.columns.iter().enumerate())
            .map(|(i, column)| {
                let mut ids: Vec<u32> = groups.iter().map(|g| self.value_number(*g, i)).collect();
                ids.sort_unstable();
                ids.dedup();
                column.ranks(&ids, ctx)
            })
            .collect::<Result<Vec<Vec<u32>>>>()?;
        let rank = |group: u32, (i, ranks): (usize, &Vec<u32>)| {
            ranks.get(self.value_number(group, i) as usize).copied()
        };
        let mut sorted: Vec<(Vec<Option<u32>>, u32)> = groups
            .iter()
            .map(|group| (ranks.iter().enumerate().map(|c| rank(*group, c)).collect(), *group))
            .collect();
        sort_checked(&mut sorted, ctx, |a, b| a.0.cmp(&b.0))?;
        groups.iter_mut().zip(sorted).for_each(|(group, (_, id))| *group = id);
        Ok(())
    }

    /// Drops all but the `count` groups that come first when sorted by their keys, or keeps more.
    pub(crate) fn keep_first(&self, groups: &mut Vec<u32>, count: usize) {
        let [one] = self.columns.as_slice() else { return };
        if count == 0 || count >= groups.len() {
            return;
        }
        let mut sorted = one.with_keys(groups);
        sorted.select_nth_unstable_by(count - 1, |a, b| one.compare(*a, *b));
        groups.clear();
        groups.extend(sorted.iter().take(count).map(|(_, id)| *id));
    }

    /// Bytes of memory held.
    pub(crate) fn heap_bytes(&self) -> usize {
        let columns: usize = self.columns.iter().map(ValueTable::heap_bytes).sum();
        columns + self.pairs.iter().map(PairTable::heap_bytes).sum::<usize>()
    }
}

impl ValueTable {
    /// Each of these values with its place in the order.
    fn with_keys(&self, ids: &[u32]) -> Vec<(SortKey, u32)> {
        ids.iter().map(|id| (SortKey::of(self.values.get(*id)), *id)).collect()
    }

    /// Compares in the order of values, those of equal rank by their bytes.
    fn compare(&self, a: (SortKey, u32), b: (SortKey, u32)) -> Ordering {
        a.0.compare_keys(b.0).filter(|order| order.is_ne()).unwrap_or_else(|| {
            let (x, y) = (self.values.get(a.1), self.values.get(b.1));
            a.0.compare(x, b.0, y).then_with(|| x.cmp(y))
        })
    }

    /// The place of each of these values among them, by the number of the value.
    fn ranks(&self, ids: &[u32], ctx: &ExecContext<'_>) -> Result<Vec<u32>> {
        let mut sorted = self.with_keys(ids);
        sort_checked(&mut sorted, ctx, |a, b| self.compare(*a, *b))?;
        let mut ranks = vec![UNSEEN; self.values.len()];
        for (rank, (_, id)) in (0..).zip(sorted) {
            if let Some(slot) = ranks.get_mut(id as usize) {
                *slot = rank;
            }
        }
        Ok(ranks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::testing::test_context;
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
        let codes = Column::codes(vec![0, 1, 2], dictionary);
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
        test_context(|ctx| assert_eq!(a.absorb(&b, ctx).unwrap(), [3, 2]));
        assert_eq!((a.len(), a.key(3, 0), a.key(3, 1)), (4, &b"z"[..], &b"1"[..]));
        assert_eq!(a.group_of(&[b"q", b"1"]), 1);
    }
}
