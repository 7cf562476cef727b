//! LAYER 3: which parts exist, and everything else a store must remember about itself.
//!
//! * [`edit`](self): an [`Edit`] is a list of [`Change`]s that become true together, over any
//!   number of days;
//! * `state`: [`ManifestState`] is what the edits so far add up to;
//! * `log`: the bytes of a manifest file (`docs/FORMAT.md` mirrors it);
//! * `load`: choosing and reading the files of a directory;
//! * `writer`: [`Manifest`], the one writer; `follow`: [`ManifestFollower`], a reader that never
//!   writes;
//! * `recovery`: reconciles the state with the files found, by the rule of provable removal;
//! * `files`: lists the files of a store and carries out what recovery decided;
//! * `names`: where files live below the root of a store.
//!
//! Invariants:
//! * the cut ranges of the parts and holes of one day are disjoint, and a part holds every row of
//!   its day whose sequence lies in its range (except rows deleted since);
//! * ids (of parts, deletes and damage marks: one space) and sequences are used only below what
//!   has been reserved, and never twice;
//! * a synced edit is lost only with a report: a torn end is counted, damage before the end makes
//!   the opening fall back and say so;
//! * an edit is synced after the files it names and before the files it makes needless go.
//!
//! Callers: the store and the partition. The lock of a store is its opener's business.

mod edit;
mod files;
mod follow;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzz;
mod load;
mod log;
mod names;
mod recovery;
mod state;
#[cfg(test)]
mod tests;
mod writer;

pub(crate) use edit::{Bulk, Change, DamageMark, Edit, Hole, PartEntry, PartFacts, StoreId};
pub(crate) use files::{carry_out, list_files, set_aside};
pub(crate) use follow::{Followed, ManifestFollower};
pub(crate) use load::ManifestReport;
pub(crate) use names::{
    LOCK_FILE, QUARANTINE_DIR, day_dir, day_dir_name, manifest_path, parse_part_file,
    part_file_name, part_path, quarantine_name,
};
pub(crate) use recovery::{Facts, PartRef, Reconciled, Removal, reconcile};
pub(crate) use state::{ManifestState, Segments};
pub(crate) use writer::Manifest;
