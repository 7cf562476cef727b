//! LAYER 4: days, versions and snapshots.
//!
//! * [`PartHandle`]: one part, in memory or in a file, opened on first use. A handle whose part was
//!   replaced deletes its file when the last snapshot lets go of it.
//! * [`Version`]: the parts of every day at one moment, ordered by cut. Immutable; a flush or a
//!   merge makes a new one.
//! * [`Snapshot`]: what a query pins: the parts of a version and those of the buffer.
//!
//! Invariant: within a day the cut ranges of the parts are disjoint and ascending, so the order
//! of parts is the order in which their rows were appended.

mod handle;
mod snapshot;
mod version;

pub(crate) use crate::manifest::{DamageMark, Hole, PartEntry};
pub(crate) use handle::{PartHandle, part_entry};
pub(crate) use snapshot::Snapshot;
pub(crate) use version::Version;
