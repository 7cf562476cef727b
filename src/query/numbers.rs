//! Numbers of groups and values, row by row, and pairs of them.

use std::sync::Arc;

use hashbrown::HashTable;

use super::column::run_of;

const UNSEEN: u32 = u32::MAX;

/// A number per row.
#[derive(Debug, Clone)]
pub(crate) enum Numbers {
    /// The same for all rows.
    One(u32),
    /// One for each run of rows.
    Runs {
        /// The first row behind each run.
        ends: Arc<Vec<u32>>,
        /// The number of each run.
        ids: Vec<u32>,
    },
    /// One for each row.
    Each(Vec<u32>),
}

impl Numbers {
    /// The number of `row`.
    #[inline]
    pub(crate) fn get(&self, row: usize) -> u32 {
        match self {
            Numbers::One(n) => *n,
            Numbers::Runs { ends, ids } => ids.get(run_of(ends, row)).copied().unwrap_or(0),
            Numbers::Each(list) => list.get(row).copied().unwrap_or(0),
        }
    }

    /// Calls `f` with each number and how many of `rows` rows it stands for, in order.
    #[inline]
    pub(crate) fn for_each_count(&self, rows: usize, mut f: impl FnMut(u32, u64)) {
        match self {
            Numbers::One(n) => f(*n, rows as u64),
            Numbers::Runs { ends, ids } => {
                let mut start = 0;
                for (end, id) in ends.iter().zip(ids) {
                    f(*id, u64::from(end.saturating_sub(start)));
                    start = *end;
                }
            }
            Numbers::Each(list) => list.iter().for_each(|n| f(*n, 1)),
        }
    }

    /// A number for each row.
    fn to_each(&self, rows: usize) -> Vec<u32> {
        let mut out = Vec::with_capacity(rows);
        self.for_each_count(rows, |n, count| {
            let more = usize::try_from(count).unwrap_or(0).min(rows - out.len());
            out.resize(out.len() + more, n);
        });
        out
    }
}

/// Distinct pairs of numbers, numbered from 0 in the order of their arrival.
#[derive(Debug, Clone, Default)]
pub(crate) struct PairTable {
    pairs: Vec<(u32, u32)>,
    table: HashTable<u32>,
}

/// Places of the memory of pairs seen last.
const SEEN_LAST: usize = 64;

impl PairTable {
    /// The number of pairs.
    pub(crate) fn len(&self) -> usize {
        self.pairs.len()
    }

    /// The pairs in the order of their numbers.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &(u32, u32)> {
        self.pairs.iter()
    }

    fn hash(pair: (u32, u32)) -> u64 {
        let x = u64::from(pair.0) << 32 | u64::from(pair.1);
        let x = x.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        x ^ (x >> 29)
    }

    /// The pair of a number.
    pub(crate) fn at(&self, id: u32) -> (u32, u32) {
        self.pairs.get(id as usize).copied().unwrap_or((UNSEEN, UNSEEN))
    }

    /// The number of a pair if it has one.
    pub(crate) fn find(&self, pair: (u32, u32)) -> Option<u32> {
        self.table.find(PairTable::hash(pair), |id| self.at(*id) == pair).copied()
    }

    /// The number of a pair, given out now if it is new.
    pub(crate) fn intern(&mut self, pair: (u32, u32)) -> u32 {
        if let Some(id) = self.find(pair) {
            return id;
        }
        let id = u32::try_from(self.pairs.len()).unwrap_or(u32::MAX);
        self.pairs.push(pair);
        let pairs = &self.pairs;
        let hash_of =
            |id: &u32| PairTable::hash(pairs.get(*id as usize).copied().unwrap_or((0, 0)));
        self.table.insert_unique(PairTable::hash(pair), id, hash_of);
        id
    }

    /// The number of each row's pair.
    pub(crate) fn assign(&mut self, a: &Numbers, b: &Numbers, rows: usize) -> Numbers {
        match (a, b) {
            (Numbers::One(a), Numbers::One(b)) => Numbers::One(self.intern((*a, *b))),
            (Numbers::Runs { ends, ids }, Numbers::One(b)) => Numbers::Runs {
                ends: Arc::clone(ends),
                ids: ids.iter().map(|a| self.intern((*a, *b))).collect(),
            },
            (Numbers::One(a), Numbers::Runs { ends, ids }) => Numbers::Runs {
                ends: Arc::clone(ends),
                ids: ids.iter().map(|b| self.intern((*a, *b))).collect(),
            },
            (Numbers::Runs { ends, ids }, Numbers::Runs { ends: others, ids: other })
                if Arc::ptr_eq(ends, others) || ends == others =>
            {
                let pairs = ids.iter().zip(other);
                Numbers::Runs {
                    ends: Arc::clone(ends),
                    ids: pairs.map(|(a, b)| self.intern((*a, *b))).collect(),
                }
            }
            (Numbers::One(a), Numbers::Each(b)) => {
                self.assign_each(std::iter::repeat(*a).zip(b.iter().copied()), rows)
            }
            (Numbers::Each(a), Numbers::One(b)) => {
                self.assign_each(a.iter().copied().zip(std::iter::repeat(*b)), rows)
            }
            _ => self.assign_each(a.to_each(rows).into_iter().zip(b.to_each(rows)), rows),
        }
    }

    fn assign_each(&mut self, pairs: impl Iterator<Item = (u32, u32)>, rows: usize) -> Numbers {
        let mut seen = [((UNSEEN, UNSEEN), 0u32); SEEN_LAST];
        let number = |pair: (u32, u32)| {
            let place = (pair.0.wrapping_mul(31) ^ pair.1) as usize % SEEN_LAST;
            match seen.get_mut(place) {
                Some((known, id)) if *known == pair => *id,
                Some(slot) => {
                    *slot = (pair, self.intern(pair));
                    slot.1
                }
                None => self.intern(pair),
            }
        };
        Numbers::Each(pairs.take(rows).map(number).collect())
    }

    /// Bytes of memory held.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.pairs.capacity() * 8 + self.table.capacity() * 5
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn numbers(rows: u32) -> impl Strategy<Value = Numbers> {
        let runs = prop::collection::vec((0..rows, 0u32..4), 0..5).prop_map(move |cuts| {
            let mut ends: Vec<u32> = cuts.iter().map(|(end, _)| end + 1).collect();
            ends.push(rows);
            ends.sort_unstable();
            ends.dedup();
            let ids = ends.iter().map(|end| end * 7 % 4).collect();
            Numbers::Runs { ends: Arc::new(ends), ids }
        });
        prop_oneof![
            (0u32..4).prop_map(Numbers::One),
            runs,
            prop::collection::vec(0u32..90, rows as usize).prop_map(Numbers::Each),
        ]
    }

    proptest! {
        #[test]
        fn pairs_are_numbered_as_row_by_row(
            batches in prop::collection::vec((numbers(40), numbers(40)), 1..4),
        ) {
            let (mut table, mut rows) = (PairTable::default(), PairTable::default());
            for (a, b) in &batches {
                let got = table.assign(a, b, 40);
                let mut counted = Vec::new();
                got.for_each_count(40, |id, n| (0..n).for_each(|_| counted.push(id)));
                prop_assert_eq!(counted.len(), 40);
                for (row, n) in counted.iter().enumerate() {
                    let id = rows.intern((a.get(row), b.get(row)));
                    prop_assert_eq!(got.get(row), id);
                    prop_assert_eq!(*n, id);
                    prop_assert_eq!(rows.find((a.get(row), b.get(row))), Some(id));
                }
            }
            prop_assert_eq!(table.len(), rows.len());
        }
    }
}
