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
    /// One for each code of a dictionary in each run of rows.
    Coded(Cells),
    /// One for each row.
    Each(Vec<u32>),
}

/// Numbers of (run, code of a dictionary), the codes of a run side by side; no more than rows.
#[derive(Debug, Clone)]
pub(crate) struct Cells {
    /// The first row behind each run.
    ends: Arc<Vec<u32>>,
    /// The code of each row.
    codes: Arc<Vec<u32>>,
    /// The codes that there are.
    width: usize,
    /// The number of each cell that has rows.
    ids: Vec<u32>,
    /// How many rows are of each cell.
    counts: Vec<u32>,
}

impl Cells {
    /// Cells without numbers; `None` if there are more of them than rows, or codes without a cell.
    fn new(ends: &Arc<Vec<u32>>, codes: &Arc<Vec<u32>>, width: usize) -> Option<Cells> {
        let cells = width.checked_mul(ends.len()).filter(|cells| *cells <= codes.len())?;
        let mut counts = vec![0u32; cells];
        let mut rest = codes.as_slice();
        let mut start = 0;
        for (end, counts) in ends.iter().zip(counts.chunks_exact_mut(width.max(1))) {
            let (run, behind) = rest.split_at_checked(end.checked_sub(start)? as usize)?;
            count_codes(run, counts)?;
            (rest, start) = (behind, *end);
        }
        let (ends, codes) = (Arc::clone(ends), Arc::clone(codes));
        rest.is_empty().then_some(Cells { ends, codes, width, ids: Vec::new(), counts })
    }

    /// Cells with the numbers that `number` says for each run and code that have rows.
    fn numbered(self, mut number: impl FnMut(usize, usize) -> u32) -> Cells {
        let width = self.width.max(1);
        let of = |(cell, count): (usize, &u32)| match count {
            0 => UNSEEN,
            _ => number(cell / width, cell % width),
        };
        Cells { ids: self.counts.iter().enumerate().map(of).collect(), ..self }
    }

    /// The same cells, their numbers changed.
    fn map(&self, mut number: impl FnMut(usize, u32) -> u32) -> Cells {
        let ids = &self.ids;
        let number = |run, code| {
            let cell = run * self.width + code;
            number(run, ids.get(cell).copied().unwrap_or(UNSEEN))
        };
        self.clone().numbered(number)
    }

    #[inline]
    fn get(&self, row: usize) -> u32 {
        let run = if self.ends.len() > 1 { run_of(&self.ends, row) } else { 0 };
        let cell = self.codes.get(row).map(|code| run * self.width + *code as usize);
        cell.and_then(|cell| self.ids.get(cell)).copied().unwrap_or(0)
    }

    /// Calls `f` with each row and its number.
    #[inline]
    pub(crate) fn for_each(&self, mut f: impl FnMut(usize, u32)) {
        let mut row = 0;
        for (end, ids) in self.ends.iter().zip(self.ids.chunks_exact(self.width.max(1))) {
            for code in self.codes.get(row..*end as usize).unwrap_or(&[]) {
                f(row, ids.get(*code as usize).copied().unwrap_or(0));
                row += 1;
            }
        }
    }
}

/// Counters side by side for the same codes: rows in a row often have the same code, and adding to
/// what was just written takes several cycles.
const LANES: usize = 4;
/// The most codes that are counted in lanes.
const LANE_CODES: usize = 64;

/// Adds how often each code occurs; `None` if there is one without a count.
fn count_codes(codes: &[u32], counts: &mut [u32]) -> Option<()> {
    if counts.len() > LANE_CODES {
        for code in codes {
            *counts.get_mut(*code as usize)? += 1;
        }
        return Some(());
    }
    let mut lanes = [[0u32; LANE_CODES]; LANES];
    let mut chunks = codes.chunks_exact(LANES);
    for chunk in &mut chunks {
        for (code, lane) in chunk.iter().zip(&mut lanes) {
            *lane.get_mut(*code as usize)? += 1;
        }
    }
    for (code, lane) in chunks.remainder().iter().zip(&mut lanes) {
        *lane.get_mut(*code as usize)? += 1;
    }
    for lane in &lanes {
        if lane.iter().skip(counts.len()).any(|count| *count > 0) {
            return None;
        }
        counts.iter_mut().zip(lane).for_each(|(count, more)| *count += more);
    }
    Some(())
}

impl Numbers {
    /// The number of `row`.
    #[inline]
    pub(crate) fn get(&self, row: usize) -> u32 {
        match self {
            Numbers::One(n) => *n,
            Numbers::Runs { ends, ids } => ids.get(run_of(ends, row)).copied().unwrap_or(0),
            Numbers::Coded(cells) => cells.get(row),
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
            Numbers::Coded(cells) => {
                let some = cells.ids.iter().zip(&cells.counts).filter(|(_, count)| **count > 0);
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
            Numbers::Coded(cells) => {
                let mut out = Vec::with_capacity(rows);
                cells.for_each(|_, number| out.push(number));
                out.resize(rows, 0);
                out
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
        let end = u32::try_from(rows).ok().filter(|_| codes.len() == rows)?;
        let cells = Cells::new(&Arc::new(vec![end]), codes, dictionary)?;
        let code = |code| u32::try_from(code).unwrap_or(UNSEEN);
        Some(Numbers::Coded(cells.numbered(|_, c| number(code(c)))))
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

    /// Forgets all pairs.
    pub(crate) fn clear(&mut self) {
        self.pairs.clear();
        self.table.clear();
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
            (Numbers::One(a), Numbers::Coded(cells)) => {
                Numbers::Coded(cells.map(|_, b| self.intern((*a, b))))
            }
            (Numbers::Coded(cells), Numbers::One(b)) => {
                Numbers::Coded(cells.map(|_, a| self.intern((a, *b))))
            }
            (Numbers::Runs { ends, ids: runs }, Numbers::Coded(cells)) => {
                let pair = |run: usize, b| (runs.get(run).copied().unwrap_or(0), b);
                self.assign_cells(ends, cells, pair).unwrap_or_else(|| self.assign_all(a, b, rows))
            }
            (Numbers::Coded(cells), Numbers::Runs { ends, ids: runs }) => {
                let pair = |run: usize, a| (a, runs.get(run).copied().unwrap_or(0));
                self.assign_cells(ends, cells, pair).unwrap_or_else(|| self.assign_all(a, b, rows))
            }
            (Numbers::One(a), Numbers::Each(b)) => {
                self.assign_each(std::iter::repeat(*a).zip(b.iter().copied()), rows)
            }
            (Numbers::Each(a), Numbers::One(b)) => {
                self.assign_each(a.iter().copied().zip(std::iter::repeat(*b)), rows)
            }
            _ => self.assign_all(a, b, rows),
        }
    }

    /// The pairs of runs and of the codes of their rows; `None` if there are too many of them.
    fn assign_cells(
        &mut self,
        ends: &Arc<Vec<u32>>,
        cells: &Cells,
        pair: impl Fn(usize, u32) -> (u32, u32),
    ) -> Option<Numbers> {
        if cells.ends == *ends {
            return Some(Numbers::Coded(cells.map(|run, id| self.intern(pair(run, id)))));
        }
        if cells.ends.len() > 1 {
            return None;
        }
        let id = |code: usize| cells.ids.get(code).copied().unwrap_or(UNSEEN);
        let of_runs = Cells::new(ends, &cells.codes, cells.width)?;
        Some(Numbers::Coded(of_runs.numbered(|run, code| self.intern(pair(run, id(code))))))
    }

    fn assign_all(&mut self, a: &Numbers, b: &Numbers, rows: usize) -> Numbers {
        self.assign_each(a.to_each(rows).into_iter().zip(b.to_each(rows)), rows)
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
            batches in prop::collection::vec((numbers(40), numbers(40), numbers(40)), 1..4),
        ) {
            let (mut inner, mut table) = (PairTable::default(), PairTable::default());
            let mut seen = BTreeSet::new();
            let tuples = batches.iter().flat_map(|(a, b, c)| {
                let ab = inner.assign(a, b, 40);
                [(a.clone(), b.clone()), (ab.clone(), c.clone()), (c.clone(), ab)]
            });
            for (a, b) in tuples {
                let (a, b) = (&a, &b);
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
