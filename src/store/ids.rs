//! Numbers that are never used twice.

use std::ops::Range;

use crate::Result;
use crate::sync::atomic::{AtomicU64, Ordering};

/// Ids with this bit belong to parts that are never written.
const VIEW_BIT: u64 = 1 << 63;

/// Ids for parts that only one process ever sees, unique among the handles of one store.
#[derive(Debug, Default)]
pub(crate) struct ViewIds(AtomicU64);

impl ViewIds {
    /// The next id.
    pub(crate) fn next(&self) -> u64 {
        VIEW_BIT | self.0.fetch_add(1, Ordering::Relaxed)
    }
}

/// Hands out numbers that the manifest has reserved.
///
/// Reservations are made in steps; what a life of the store leaves unused is not used by the
/// next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Counter {
    free: Range<u64>,
}

impl Counter {
    /// Nothing is reserved yet; numbers below `first` were.
    pub(crate) fn new(first: u64) -> Counter {
        Counter { free: first.max(1)..first.max(1) }
    }

    /// Takes `n` numbers in a row and gives the first; asks `reserve` for more where needed.
    ///
    /// # Errors
    /// Those of `reserve`; no number is taken then.
    pub(crate) fn take(
        &mut self,
        n: u64,
        mut reserve: impl FnMut() -> Result<Range<u64>>,
    ) -> Result<u64> {
        while self.free.end - self.free.start < n {
            let more = reserve()?;
            if more.start == self.free.end {
                self.free.end = more.end;
            } else {
                // Numbers must be in a row, so what came before a jump stays unused.
                self.free = more.start.max(1)..more.end;
            }
        }
        let first = self.free.start;
        self.free.start += n;
        Ok(first)
    }

    /// The number that comes next.
    pub(crate) fn peek(&self) -> u64 {
        self.free.start
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_reserved_first_and_never_repeat() {
        let mut reserved = 0;
        let mut reserve = || {
            reserved += 10;
            Ok(reserved - 10..reserved)
        };
        let mut c = Counter::new(0);
        assert_eq!(c.take(5, &mut reserve).unwrap(), 1);
        assert_eq!(c.take(1, &mut reserve).unwrap(), 6);
        assert_eq!(c.take(25, &mut reserve).unwrap(), 7);
        assert_eq!(c.peek(), 32);
        let mut later = Counter::new(reserved);
        assert_eq!(later.take(1, &mut || Ok(100..110)).unwrap(), 100);
        assert!(later.take(100, &mut || Err(crate::Error::Full)).is_err());
        assert_eq!(later.peek(), 101);
    }
}
