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
    /// One for each code of a dictionary, of which there are no more than rows.
    Coded {
        /// The code of each row.
        codes: Arc<Vec<u32>>,
        /// The number of each code that a row has.
        ids: Vec<u32>,
        /// How many rows have each code.
        counts: Vec<u32>,
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
            Numbers::Coded { codes, ids, .. } => of_code(ids, codes.get(row)),
            Numbers::Each(list) => list.get(row).copied().unwrap_or(0),
        }
    }

    /// Calls `f` with each number and how many of `rows` rows it stands for, in any order; a number
    /// may come several times.
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
            Numbers::Coded { ids, counts, .. } => {
                let some = ids.iter().zip(counts).filter(|(_, count)| **count > 0);
                some.for_each(|(id, count)| f(*id, u64::from(*count)));
            }
            Numbers::Each(list) => list.iter().for_each(|n| f(*n, 1)),
        }
    }

    /// A number for each row.
    pub(crate) fn to_each(&self, rows: usize) -> Vec<u32> {
        match self {
            Numbers::One(n) => vec![*n; rows],
            Numbers::Runs { ends, ids } => {
                let mut out = Vec::with_capacity(rows);
                for (end, id) in ends.iter().zip(ids) {
                    out.resize((*end as usize).clamp(out.len(), rows), *id);
                }
                out.resize(rows, 0);
                out
            }
            Numbers::Coded { codes, ids, .. } => {
                codes.iter().take(rows).map(|code| of_code(ids, Some(code))).collect()
            }
            Numbers::Each(list) => list.clone(),
        }
    }

    /// One for each code that some of the first `rows` rows have; `number` says which. `None` if
    /// the dictionary is larger than that.
    pub(crate) fn coded(
        codes: &Arc<Vec<u32>>,
        rows: usize,
        dictionary: usize,
        mut number: impl FnMut(u32) -> u32,
    ) -> Option<Numbers> {
        if dictionary > rows || codes.len() != rows {
            return None;
        }
        let mut counts = vec![0u32; dictionary];
        for code in codes.iter() {
            *counts.get_mut(*code as usize)? += 1;
        }
        let number = |(code, count): (u32, &u32)| if *count > 0 { number(code) } else { UNSEEN };
        let ids = (0u32..).zip(&counts).map(number).collect();
        Some(Numbers::Coded { codes: Arc::clone(codes), ids, counts })
    }
}

#[inline]
fn of_code(ids: &[u32], code: Option<&u32>) -> u32 {
    code.and_then(|code| ids.get(*code as usize)).copied().unwrap_or(0)
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
            (Numbers::One(a), Numbers::Coded { codes, ids, counts }) => {
                self.assign_coded(codes, ids, counts, |b| (*a, b))
            }
            (Numbers::Coded { codes, ids, counts }, Numbers::One(b)) => {
                self.assign_coded(codes, ids, counts, |a| (a, *b))
            }
            (Numbers::Runs { ends, ids: runs }, Numbers::Coded { codes, ids, .. }) => {
                self.assign_runs((ends, runs), (codes, ids), rows, |run, code| (run, code))
            }
            (Numbers::Coded { codes, ids, .. }, Numbers::Runs { ends, ids: runs }) => {
                self.assign_runs((ends, runs), (codes, ids), rows, |run, code| (code, run))
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

    /// The pairs of the codes that rows have.
    fn assign_coded(
        &mut self,
        codes: &Arc<Vec<u32>>,
        ids: &[u32],
        counts: &[u32],
        pair: impl Fn(u32) -> (u32, u32),
    ) -> Numbers {
        let number = |(id, count): (&u32, &u32)| match count {
            0 => UNSEEN,
            _ => self.intern(pair(*id)),
        };
        let ids = ids.iter().zip(counts).map(number).collect();
        Numbers::Coded { codes: Arc::clone(codes), ids, counts: counts.to_vec() }
    }

    /// The pairs of runs and of the codes of their rows: each is looked up once for a run.
    fn assign_runs(
        &mut self,
        (ends, runs): (&[u32], &[u32]),
        (codes, ids): (&[u32], &[u32]),
        rows: usize,
        pair: impl Fn(u32, u32) -> (u32, u32),
    ) -> Numbers {
        let mut out = Vec::with_capacity(rows);
        // For each code, the run in which it was seen last and the number of the pair.
        let mut seen = vec![(usize::MAX, 0u32); ids.len()];
        for (i, (end, run)) in ends.iter().zip(runs).enumerate() {
            let of_run = codes.get(out.len()..(*end as usize).min(rows)).unwrap_or(&[]);
            for code in of_run {
                let number = match seen.get_mut(*code as usize) {
                    Some((known, number)) if *known == i => *number,
                    Some(slot) => {
                        *slot = (i, self.intern(pair(*run, of_code(ids, Some(code)))));
                        slot.1
                    }
                    None => self.intern(pair(*run, 0)),
                };
                out.push(number);
            }
        }
        Numbers::Each(out)
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
    use std::collections::{BTreeMap, BTreeSet};

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
            prop::collection::vec(0u32..9, rows as usize).prop_map(|codes| {
                Numbers::coded(&Arc::new(codes), 40, 12, |code| code * 5 % 7).unwrap()
            }),
            prop::collection::vec(0u32..90, rows as usize).prop_map(Numbers::Each),
        ]
    }

    proptest! {
        #[test]
        fn pairs_are_numbered_as_row_by_row(
            batches in prop::collection::vec((numbers(40), numbers(40)), 1..4),
        ) {
            let mut table = PairTable::default();
            let mut seen = BTreeSet::new();
            for (a, b) in &batches {
                let got = table.assign(a, b, 40);
                let each = got.to_each(40);
                let mut counts = BTreeMap::new();
                got.for_each_count(40, |id, n| *counts.entry(id).or_insert(0) += n);
                let mut want = BTreeMap::new();
                for row in 0..40 {
                    let pair = (a.get(row), b.get(row));
                    seen.insert(pair);
                    let id = got.get(row);
                    *want.entry(id).or_insert(0u64) += 1;
                    prop_assert_eq!((table.at(id), table.find(pair)), (pair, Some(id)));
                    prop_assert_eq!(each.get(row), Some(&id));
                }
                counts.retain(|_, n| *n > 0);
                prop_assert_eq!(counts, want);
            }
            prop_assert_eq!(table.len(), seen.len());
        }
    }
}
