//! A store that is open for reading, beside a writer or not.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::io::{Disk, file_name, is_not_found};
use crate::journal::{Replayed, replay, segment_lengths};
use crate::manifest::{
    DamageMark, Followed, Hole, ManifestFollower, ManifestState, PartEntry, Segments, part_path,
};
use crate::partition::{PartHandle, Snapshot, Version};

use crate::record::Timestamp;

use super::core::Core;
use super::damage::{lost_manifest, unknown_gaps};
use super::recovered::Recovered;
use super::report::OpenReport;
use super::view::BufferView;

/// How often a reader looks again when a part vanished between the manifest and the open.
const MAX_LOOKS: usize = 10;

/// Follows the manifest and the journal of a store. Writes nothing and takes no lock.
///
/// The journal is read before the manifest: what a flush moves from one to the other in between
/// is then seen twice, and skipped in the journal, never missed.
#[derive(Debug)]
pub(crate) struct Follower {
    root: PathBuf,
    manifest: ManifestFollower,
    version: Option<Arc<Version>>,
    tail: Option<Tail>,
    replayed: Replayed,
}

/// The rows of the journal, as of its lengths.
#[derive(Debug)]
struct Tail {
    lengths: Vec<(u64, u64)>,
    /// What the manifest expected before they were looked at.
    expected: Segments,
    views: Vec<BufferView>,
}

impl Follower {
    /// Reads the manifest of the store in `root`.
    pub(crate) fn open(disk: &Arc<dyn Disk>, root: &Path) -> Result<Follower> {
        let manifest = match ManifestFollower::open(Arc::clone(disk), root) {
            Err(e @ Error::NotAStore { .. }) => {
                return Err(lost_manifest(disk.as_ref(), root)?.unwrap_or(e));
            }
            manifest => manifest?,
        };
        Ok(Follower {
            root: root.to_path_buf(),
            manifest,
            version: None,
            tail: None,
            replayed: Replayed::default(),
        })
    }

    /// The id of the store.
    pub(crate) fn store_id(&self) -> u128 {
        u128::from_le_bytes(self.manifest.state().store_id().0)
    }

    /// What reading met with; with `alone`, no writer is at work.
    pub(crate) fn report(&self, alone: bool) -> OpenReport {
        let mut report = OpenReport::default();
        if alone {
            report.torn_bytes = self.replayed.torn_bytes;
        }
        if let Some(fallback) = &self.manifest.report().fallback {
            report.damage.push(fallback.damage.clone());
            report
                .notes
                .push(format!("the newest manifest is damaged; in use instead: {}", fallback.to));
        }
        report.damage.extend(self.replayed.damage.iter().cloned());
        report
    }

    /// The rows of the store now.
    pub(crate) fn snapshot(&mut self, core: &Core) -> Result<Arc<Snapshot>> {
        let mut looks = 0;
        loop {
            looks += 1;
            let lost = looks == MAX_LOOKS;
            match self.look(core, lost) {
                Err(e) if is_not_found(&e) && !lost => self.version = None,
                other => return other,
            }
        }
    }

    /// One look. A part that is missing is an error, or with `lost` a hole.
    fn look(&mut self, core: &Core, lost: bool) -> Result<Arc<Snapshot>> {
        // A segment is missing if it is expected before and after the look, and not there.
        let expected = self.manifest.state().segments().clone();
        let lengths = segment_lengths(core.disk.as_ref(), &self.root)?;
        let seen = self.tail.as_ref();
        let stale = seen.is_none_or(|t| t.lengths != lengths || t.expected != expected);
        let mut batches = Vec::new();
        if stale {
            let (disk, store_id) = (core.disk.as_ref(), self.store_id());
            self.replayed =
                replay(disk, &self.root, store_id, &expected, &mut |sequence, batch| {
                    batches.push((sequence, batch));
                    Ok(())
                })?;
        }
        let changed = self.manifest.refresh()? == Followed::Changed;
        self.replayed.retain_expected(self.manifest.state().segments());
        if changed || self.version.is_none() {
            self.version = Some(Arc::new(self.new_version(core, lost)?));
        }
        if stale {
            let mut recovered = Recovered::new(self.manifest.state(), core.clock.monotonic());
            for (sequence, batch) in batches {
                recovered.push(self.manifest.state(), sequence, batch);
            }
            let (mut cuts, mut last) = recovered.finish();
            cuts.extend(last.cut());
            let views = cuts.into_iter().map(BufferView::new).collect();
            self.tail = Some(Tail { lengths, expected, views });
        } else if changed {
            // Rows of the tail may be in parts now: read it again.
            self.tail = None;
            return self.look(core, lost);
        }
        let version = self.version.clone().unwrap_or_default();
        let mut buffered = Vec::new();
        for view in self.tail.iter().flat_map(|t| &t.views) {
            buffered.extend(view.parts(core.store_id, &core.view_ids)?.iter().cloned());
        }
        let snapshot = Snapshot::new(&version, buffered);
        Ok(Arc::new(snapshot.with_lost_files(self.unrecorded())))
    }

    /// Takes over the handles of parts that are listed still, and opens the new ones at once: a
    /// file that the writer removes later stays readable through its descriptor.
    fn new_version(&self, core: &Core, lost: bool) -> Result<Version> {
        let old: HashMap<u64, &Arc<PartHandle>> = match &self.version {
            Some(version) => version.parts().map(|p| (p.info().part_id, p)).collect(),
            None => HashMap::new(),
        };
        let mut parts = Vec::new();
        let mut holes: Vec<Hole> = self.manifest.state().holes().cloned().collect();
        for entry in self.manifest.state().parts() {
            match old.get(&entry.part_id) {
                Some(part) => parts.push(Arc::clone(part)),
                None => match self.open_part(core, entry) {
                    Err(e) if lost && is_not_found(&e) => holes.push(hole_of(entry)),
                    other => parts.push(other?),
                },
            }
        }
        let marks = self.manifest.state().damage().filter(|mark| mark.loses_rows());
        Ok(Version::new(parts, holes, marks.cloned().collect()))
    }

    fn open_part(&self, core: &Core, entry: &PartEntry) -> Result<Arc<PartHandle>> {
        let path = part_path(&self.root, entry.day, entry.part_id);
        match core.disk.open_read(&path) {
            Ok(file) => Ok(Arc::new(PartHandle::pinned(entry.clone(), file, path))),
            Err(e) if is_not_found(&e) => Err(e),
            // One bad part fails the queries that need it, not the store.
            Err(_) => {
                let (disk, files) = (Arc::clone(&core.disk), Arc::clone(&core.files));
                Ok(Arc::new(PartHandle::file(entry.clone(), disk, files, path)))
            }
        }
    }

    /// Whether the journal holds all rows of a cut.
    pub(crate) fn journal_covers(&self, lo: u64, hi: u64) -> bool {
        let mut cuts = self.tail.iter().flat_map(|t| &t.views).map(BufferView::cut);
        cuts.any(|cut| cut.lo <= lo && hi <= cut.hi)
    }

    /// What the manifest says.
    pub(crate) fn state(&self) -> &ManifestState {
        self.manifest.state()
    }

    /// Damage that took rows and of which the manifest does not know: gaps of the journal that no
    /// writer has met yet, and a manifest whose end is damaged, so that no one but a writer can
    /// tell which parts there are.
    pub(crate) fn unrecorded(&self) -> Vec<DamageMark> {
        let mut marks = unknown_gaps(self.manifest.state(), &self.replayed, 0);
        marks.extend(self.manifest.report().fallback.as_ref().map(|fallback| DamageMark {
            id: 0,
            part_id: 0,
            file: file_name(&fallback.damage.path),
            offset: fallback.damage.offset,
            what: format!("{}; open the store for writing to recover it", fallback.damage.what),
            rows: 0,
            min_time: Timestamp::MIN,
            max_time: Timestamp::MAX,
        }));
        marks
    }
}

/// The hole that a missing part leaves.
fn hole_of(part: &PartEntry) -> Hole {
    Hole {
        part_id: part.part_id,
        day: part.day,
        rows: part.rows,
        min_time: part.min_time,
        max_time: part.max_time,
        cut_lo: part.cut_lo,
        cut_hi: part.cut_hi,
    }
}
