//! Damage as a recorded state: what the manifest knows of it, in words.

use std::collections::HashMap;
use std::fmt;
use std::path::Path;

use crate::error::{Corruption, Error, Result};
use crate::io::{Disk, Fsync, file_name, is_not_found};
use crate::journal::{Gap, Replayed, is_segment, segment_lengths};
use crate::manifest::{
    Change, DamageMark, Edit, Facts, LOCK_FILE, Manifest, ManifestState, Reconciled, Removal,
    day_dir_name, list_files, manifest_path, part_file_name, part_path, reconcile,
};
use crate::partition::{Hole, Snapshot};
use crate::record::Timestamp;

use super::core::{Core, Role};
use super::open::read_facts;

/// Damage that a store knows of. It is remembered until
/// [`Store::repair`](crate::Store::repair) ends it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct KnownDamage {
    /// The file, the offset, and what is wrong.
    pub place: Corruption,
    /// At most so many rows cannot be read because of it; 0 if that is unknown or none.
    pub rows: u64,
    /// The earliest `_time` that these rows can have.
    pub min_time: Timestamp,
    /// The latest `_time` that these rows can have.
    pub max_time: Timestamp,
    /// Whether every query over these times fails, instead of only those that read the damaged
    /// bytes: the rows are in no part any more.
    pub lost: bool,
}

impl fmt::Display for KnownDamage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.place.fmt(f)?;
        if self.rows > 0 {
            write!(f, " ({} rows at most)", self.rows)?;
        }
        Ok(())
    }
}

/// What a hole stands for, in words.
pub(crate) fn hole_damage(root: &Path, hole: &Hole) -> Corruption {
    Corruption {
        path: part_path(root, hole.day, hole.part_id),
        offset: 0,
        what: format!("the part is lost, and {} rows with it", hole.rows),
    }
}

/// What a mark of damage says, in words.
pub(crate) fn mark_damage(root: &Path, mark: &DamageMark) -> Corruption {
    Corruption { path: root.join(&mark.file), offset: mark.offset, what: mark.what.clone() }
}

/// The mark of a gap in the journal.
fn gap_mark(id: u64, gap: &Gap) -> DamageMark {
    let lost = match gap.rows() {
        0 => "acknowledged rows are lost with it".to_owned(),
        rows => format!("up to {rows} acknowledged rows are lost with it"),
    };
    DamageMark {
        id,
        part_id: 0,
        file: file_name(&gap.place.path),
        offset: gap.place.offset,
        what: format!("{}; {lost}", gap.place.what),
        rows: gap.rows(),
        min_time: Timestamp::MIN,
        max_time: Timestamp::MAX,
    }
}

/// Marks for the gaps of the journal that took rows which are nowhere else, and of which the
/// manifest does not know. Their ids begin at `id`.
pub(crate) fn unknown_gaps(state: &ManifestState, replayed: &Replayed, id: u64) -> Vec<DamageMark> {
    let flushed = state.flushed_through().unwrap_or(0);
    let lossy = replayed.gaps.iter().filter(|gap| gap.promised && !gap.is_needless(flushed));
    let marks = lossy.zip(id..).map(|(gap, id)| gap_mark(id, gap));
    marks.filter(|m| state.damage().all(|d| (&d.file, d.offset) != (&m.file, m.offset))).collect()
}

/// Records the gaps of the journal before its segments go; those that are gone already are expected
/// no longer.
pub(crate) fn record_gaps(manifest: &mut Manifest, replayed: &Replayed) -> Result<()> {
    let listed = |n: &u64| manifest.state().segments().first_rows.contains_key(n);
    let missing = replayed.gaps.iter().filter_map(|gap| gap.missing).filter(listed);
    let mut changes: Vec<Change> = missing.map(|segment| Change::DropSegment { segment }).collect();
    if !unknown_gaps(manifest.state(), replayed, 0).is_empty() {
        let id = manifest.reserve_ids()?.start;
        let marks = unknown_gaps(manifest.state(), replayed, id);
        changes.extend(marks.into_iter().map(Change::AddDamage));
    }
    manifest.append(&Edit { changes }, Fsync::Now)
}

/// After edits of the manifest were lost: makes it forget the segments of the journal that are not
/// there, since the lost edits may have said that they were needless. Gives their number.
pub(crate) fn forget_segments(
    disk: &dyn Disk,
    root: &Path,
    manifest: &mut Manifest,
) -> Result<usize> {
    let found = segment_lengths(disk, root)?;
    let missing = |n: &&u64| found.iter().all(|(found, _)| found != *n);
    let gone = manifest.state().segments().first_rows.keys().filter(missing);
    let changes: Vec<Change> = gone.map(|&segment| Change::DropSegment { segment }).collect();
    let count = changes.len();
    manifest.append(&Edit { changes }, Fsync::Now)?;
    Ok(count)
}

/// Records files that recovery sets aside after edits of the manifest were lost: they may have
/// been listed, and hold rows that nothing else does.
pub(crate) fn record_set_aside(
    manifest: &mut Manifest,
    decided: &Reconciled,
    is_needless: impl Fn(&Removal) -> bool,
) -> Result<()> {
    let lossy: Vec<&Removal> = decided.quarantine.iter().filter(|f| !is_needless(f)).collect();
    if lossy.is_empty() {
        return Ok(());
    }
    let ids = manifest.reserve_ids()?.start..;
    let mark = |(file, id): (&Removal, u64)| {
        let (day, part_id) = (file.place.day, file.place.part_id);
        let (min_time, max_time) = times_of_day(day);
        Change::AddDamage(DamageMark {
            id,
            part_id: 0,
            file: format!("{}/{}", day_dir_name(day), part_file_name(part_id)),
            offset: 0,
            what: format!("it may have held rows, and cannot be used: {}", file.why),
            rows: 0,
            min_time,
            max_time,
        })
    };
    let changes = lossy.into_iter().zip(ids).map(mark).collect();
    manifest.append(&Edit { changes }, Fsync::Now)
}

/// The first and the last nanosecond of a UTC day.
pub(crate) fn times_of_day(day: i32) -> (Timestamp, Timestamp) {
    const DAY_NANOS: i128 = 86_400_000_000_000;
    let first = i128::from(day) * DAY_NANOS;
    let clamp = |nanos: i128| {
        let nanos = nanos.clamp(i128::from(i64::MIN), i128::from(i64::MAX));
        Timestamp::from_nanos(i64::try_from(nanos).unwrap_or(0))
    };
    (clamp(first), clamp(first + DAY_NANOS - 1))
}

/// That a directory has files of a store, and no manifest that says which of them are in use.
///
/// # Errors
/// Those of listing the directory.
pub(crate) fn lost_manifest(disk: &dyn Disk, root: &Path) -> Result<Option<Error>> {
    let files = match disk.list(root) {
        Err(e) if is_not_found(&e) => return Ok(None),
        files => files?,
    };
    let journal = files.iter().any(|file| !file.is_dir && is_segment(&file.name));
    if !journal && list_files(disk, root)?.parts.is_empty() {
        return Ok(None);
    }
    let what = "the manifest is missing, and files of a store are there; repair rebuilds it";
    Ok(Some(Error::corrupted(&manifest_path(root, 1), 0, what)))
}

/// Part files that no manifest lists.
#[derive(Debug, Default)]
pub(crate) struct Unlisted {
    /// Those of which nothing says why.
    pub(crate) damage: Vec<Corruption>,
    /// How many a writer left that died in the middle of a large ingest.
    leftovers: usize,
}

impl Unlisted {
    /// A sentence about the leftovers, if there are any.
    pub(crate) fn leftovers_note(&self) -> Option<String> {
        (self.leftovers > 0).then(|| {
            format!(
                "{} part files are leftovers of an ingest that ended before it was acknowledged; \
                 the next opening for writing puts them in order",
                self.leftovers
            )
        })
    }
}

impl Core {
    /// Part files that the manifest does not list and that are not provably needless, for a
    /// reader while no writer is at work: a writer died before it listed them, or the manifest
    /// has lost its end. The next opening for writing uses what can be used of them.
    ///
    /// Costs a listing of each day's directory; nothing is looked for if there are more than
    /// `days_max`.
    pub(crate) fn unlisted(&self, days_max: usize) -> Result<Unlisted> {
        let Role::Reader(follower) = &self.role else { return Ok(Unlisted::default()) };
        let is_locked = || self.disk.is_locked(&self.root.join(LOCK_FILE));
        let days = self.disk.list(&self.root)?.iter().filter(|entry| entry.is_dir).count();
        if days > days_max || is_locked()? {
            return Ok(Unlisted::default());
        }
        let listing = list_files(self.disk.as_ref(), &self.root)?;
        self.snapshot()?;
        let follower = follower.lock();
        let state = follower.state();
        let mut facts = HashMap::new();
        let decided = reconcile(state, &listing.parts, &[], &mut |place| {
            let read =
                read_facts(self.disk.as_ref(), &part_path(&self.root, place.day, place.part_id));
            facts.insert(place.part_id, read.clone());
            read
        });
        let in_journal = |id: &u64| match facts.get(id) {
            Some(Facts::Complete(f)) => follower.journal_covers(f.cut_lo, f.cut_hi),
            _ => false,
        };
        let what = "no manifest lists this part, and nothing shows that it is needless";
        let strays = listing.parts.iter().map(|found| found.place).filter(|place| {
            let id = place.part_id;
            let set_aside = decided.quarantine.iter().any(|q| q.place == *place);
            let unlisted = state.part(id).is_none() && !decided.leftovers.contains(place);
            unlisted && (set_aside || decided.adopted.contains(&id)) && !in_journal(&id)
        });
        let damage = strays.map(|place| Corruption {
            path: part_path(&self.root, place.day, place.part_id),
            offset: 0,
            what: what.to_owned(),
        });
        let unlisted = Unlisted { damage: damage.collect(), leftovers: decided.leftovers.len() };
        // A writer that came meanwhile may have written them.
        Ok(if is_locked()? { Unlisted::default() } else { unlisted })
    }

    /// What is known of damage: lost parts and files, and marks of damaged ones that stay in use.
    pub(crate) fn known_damage(&self, snapshot: &Snapshot) -> Vec<KnownDamage> {
        let holes = snapshot.holes().iter().map(|hole| KnownDamage {
            place: hole_damage(&self.root, hole),
            rows: hole.rows,
            min_time: hole.min_time,
            max_time: hole.max_time,
            lost: true,
        });
        let of_mark = |mark: &DamageMark, lost| KnownDamage {
            place: mark_damage(&self.root, mark),
            rows: mark.rows,
            min_time: mark.min_time,
            max_time: mark.max_time,
            lost,
        };
        let lost = snapshot.lost_files().iter().map(|mark| of_mark(mark, true));
        let marks = |state: &ManifestState| -> Vec<DamageMark> {
            state.damage().filter(|mark| !mark.loses_rows()).cloned().collect()
        };
        let marks = match &self.role {
            Role::Writer { manifest, .. } => marks(manifest.lock().state()),
            Role::Reader(follower) => marks(follower.lock().state()),
        };
        holes.chain(lost).chain(marks.iter().map(|mark| of_mark(mark, false))).collect()
    }
}
