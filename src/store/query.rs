//! A snapshot as queries read it.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::part::{PartCache, PartReader, UnitCache};
use crate::partition::Snapshot;
use crate::query::{Lost, PartBounds, PartSet, TimeRange};
use crate::record::Timestamp;

use super::damage::{hole_damage, mark_damage};

/// Units of lost parts and files, beside the numbers of parts.
const LOST_PARTS: u32 = u32::MAX;
const LOST_FILES: u32 = u32::MAX - 1;

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

    fn lost(&self, range: TimeRange) -> Vec<Lost> {
        let overlaps = |min: Timestamp, max: Timestamp| {
            min.as_nanos() <= range.max && max.as_nanos() >= range.min
        };
        let holes = self.snapshot.holes().iter().filter(|h| overlaps(h.min_time, h.max_time));
        let holes = holes.map(|hole| Lost {
            damage: hole_damage(&self.root, hole),
            unit: (LOST_PARTS, hole.part_id, hole.rows),
        });
        let marks = self.snapshot.lost_files().iter();
        let marks = marks.filter(|m| overlaps(m.min_time, m.max_time)).zip(0u64..);
        let marks = marks.map(|(mark, i)| Lost {
            damage: mark_damage(&self.root, mark),
            unit: (LOST_FILES, i, mark.rows),
        });
        holes.chain(marks).collect()
    }
}
