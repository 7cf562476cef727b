//! A snapshot as queries read it.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::manifest::part_path;
use crate::part::{PartCache, PartReader, UnitCache};
use crate::partition::Snapshot;
use crate::query::{PartBounds, PartSet, TimeRange};

/// The parts of a snapshot.
#[derive(Debug)]
pub(crate) struct SnapshotParts {
    /// The rows.
    pub(crate) snapshot: Arc<Snapshot>,
    /// The store's directory, to name lost parts by.
    pub(crate) root: std::path::PathBuf,
    /// Decoded units that other queries may use again.
    pub(crate) cache: Arc<UnitCache>,
}

impl PartSet for SnapshotParts {
    fn len(&self) -> usize {
        self.snapshot.parts().len()
    }

    fn bounds(&self, i: usize) -> Option<PartBounds> {
        let info = self.snapshot.parts().get(i)?.info();
        Some(PartBounds {
            rows: info.rows,
            day: info.day,
            min_time: info.min_time.as_nanos(),
            max_time: info.max_time.as_nanos(),
            cut_lo: info.cut_lo,
        })
    }

    fn reader(&self, i: usize) -> Result<Arc<PartReader>> {
        match self.snapshot.parts().get(i) {
            Some(part) => part.reader(),
            None => Err(Error::Internal { what: "a query asked for a part past the last" }),
        }
    }

    fn cache(&self) -> Option<&dyn PartCache> {
        Some(self.cache.as_ref())
    }

    fn check(&self, range: TimeRange) -> Result<()> {
        let overlaps = |min: i64, max: i64| min <= range.max && max >= range.min;
        let mut holes = self.snapshot.holes().iter();
        match holes.find(|h| overlaps(h.min_time.as_nanos(), h.max_time.as_nanos())) {
            None => Ok(()),
            Some(hole) => Err(Error::corrupted(
                &part_path(&self.root, hole.day, hole.part_id),
                0,
                format!("the part is lost, and {} rows with it", hole.rows),
            )),
        }
    }
}
