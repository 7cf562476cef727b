//! Early end of "the newest N" and "the oldest N".

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::atomic::{AtomicI64, Ordering};

use crate::sync::Mutex;
/// Which rows are wanted first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    /// The latest.
    Newest,
    /// The earliest.
    Oldest,
}

impl Direction {
    /// A number that is greater for the time that is wanted first.
    #[inline]
    pub(crate) fn rank(self, time: i64) -> i64 {
        match self {
            Direction::Newest => time,
            Direction::Oldest => !time,
        }
    }

    /// The best rank that a row between two times can have.
    pub(crate) fn best(self, min: i64, max: i64) -> i64 {
        match self {
            Direction::Newest => max,
            Direction::Oldest => !min,
        }
    }
}

/// The N best times seen so far by all workers: a row with a worse time than all of them cannot
/// be among the N best rows. Rows with an equal time still can.
#[derive(Debug)]
pub(crate) struct TimeBound {
    direction: Direction,
    limit: usize,
    worst: AtomicI64,
    ranks: Mutex<BinaryHeap<Reverse<i64>>>,
}

impl TimeBound {
    /// No row seen yet; `limit` rows are wanted.
    pub(crate) fn new(direction: Direction, limit: usize) -> TimeBound {
        let worst = if limit == 0 { i64::MAX } else { i64::MIN };
        TimeBound { direction, limit, worst: AtomicI64::new(worst), ranks: Mutex::default() }
    }

    /// Which rows are wanted first.
    pub(crate) fn direction(&self) -> Direction {
        self.direction
    }

    /// Whether a row of this time, and any that is worse, is surely not among the best.
    #[inline]
    pub(crate) fn excludes(&self, time: i64) -> bool {
        self.excludes_rank(self.direction.rank(time))
    }

    /// As [`excludes`](TimeBound::excludes), for a rank.
    #[inline]
    pub(crate) fn excludes_rank(&self, rank: i64) -> bool {
        rank < self.worst.load(Ordering::Relaxed)
    }

    /// Counts rows that came through.
    pub(crate) fn offer(&self, times: impl Iterator<Item = i64>) {
        if self.limit == 0 {
            return;
        }
        let mut ranks = self.ranks.lock();
        for rank in times.map(|t| self.direction.rank(t)) {
            if ranks.len() < self.limit {
                ranks.push(Reverse(rank));
            } else if ranks.peek().is_some_and(|worst| rank > worst.0) {
                ranks.pop();
                ranks.push(Reverse(rank));
            }
        }
        if ranks.len() == self.limit
            && let Some(worst) = ranks.peek()
        {
            self.worst.store(worst.0, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]
        #[test]
        fn never_excludes_one_of_the_best(
            times in prop::collection::vec(-20i64..20, 0..40),
            limit in 0usize..10,
            newest: bool,
        ) {
            let direction = if newest { Direction::Newest } else { Direction::Oldest };
            let bound = TimeBound::new(direction, limit);
            for batch in times.chunks(3) {
                bound.offer(batch.iter().copied());
            }
            let mut sorted = times.clone();
            sorted.sort_by_key(|t| Reverse(direction.rank(*t)));
            for time in sorted.iter().take(limit) {
                prop_assert!(!bound.excludes(*time));
            }
            if let Some(last) = limit.checked_sub(1).and_then(|l| sorted.get(l)) {
                let worse = if newest { last - 1 } else { last + 1 };
                prop_assert!(bound.excludes(worse));
            }
        }
    }
}
