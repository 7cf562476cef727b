//! What a query does about damage that it meets, and what it has met.

use std::collections::HashSet;

use crate::error::{Corruption, Error, Result};
use crate::sync::Mutex;

/// The most places that are named; the others are counted.
const PLACES_MAX: usize = 100;

/// A unit that is skipped whole: number of the part, the first row in it, the number of rows.
pub(crate) type Unit = (u32, u64, u64);

/// Fails a query at the first damage, or lets it skip the damaged units and takes note of them.
#[derive(Debug, Default)]
pub(crate) struct DamageLog {
    skip: bool,
    found: Mutex<Found>,
}

/// What a query has skipped.
#[derive(Debug, Clone, Default)]
pub(crate) struct Found {
    /// Damaged places.
    pub(crate) places: Vec<Corruption>,
    /// Rows of skipped units.
    pub(crate) rows: u64,
    units: HashSet<Unit>,
}

impl DamageLog {
    /// For a query that skips damage, or one that does not.
    pub(crate) fn new(skip: bool) -> DamageLog {
        DamageLog { skip, found: Mutex::default() }
    }

    /// Whether to go on where `error` was met, without what could not be read.
    ///
    /// # Errors
    /// `error`, if it is no damage or the query must not skip.
    pub(crate) fn skip(&self, error: Error, unit: Option<Unit>) -> Result<()> {
        let place = match error {
            Error::Corrupted(place) if self.skip => place,
            // A medium that does not give its bytes: as good as damaged.
            Error::Io { action: "read", path, source } if self.skip => {
                Corruption { path, offset: 0, what: format!("it cannot be read: {source}") }
            }
            other => return Err(other),
        };
        let mut found = self.found.lock();
        if let Some(unit) = unit
            && found.units.insert(unit)
        {
            found.rows = found.rows.saturating_add(unit.2);
        }
        if found.places.len() < PLACES_MAX && !found.places.contains(&place) {
            found.places.push(place);
        }
        Ok(())
    }

    /// What was skipped so far: damaged places and rows.
    pub(crate) fn skipped(&self) -> (Vec<Corruption>, u64) {
        let found = self.found.lock();
        (found.places.clone(), found.rows)
    }

    /// The number of damaged places, at most as many as are named, and of rows skipped with them.
    pub(crate) fn counts(&self) -> (u64, u64) {
        let found = self.found.lock();
        (found.places.len() as u64, found.rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_unit_counts_once_and_each_place_is_named_once() {
        let damage = |offset| Error::corrupted("p".as_ref(), offset, "x");
        let strict = DamageLog::default();
        assert!(matches!(strict.skip(damage(1), None), Err(Error::Corrupted(_))));
        let log = DamageLog::new(true);
        log.skip(damage(1), Some((0, 0, 10))).unwrap();
        log.skip(damage(1), Some((0, 0, 10))).unwrap();
        log.skip(damage(1), Some((0, 10, 5))).unwrap();
        log.skip(damage(2), None).unwrap();
        assert!(matches!(log.skip(Error::Cancelled, None), Err(Error::Cancelled)));
        assert_eq!(log.counts(), (2, 15));
    }
}
