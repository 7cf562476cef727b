//! A store that is open for reading, beside a writer or not.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::Result;
use crate::io::{Disk, is_not_found};
use crate::journal::{Replayed, replay, segment_lengths};
use crate::manifest::{Followed, Hole, ManifestFollower, PartEntry, part_path};
use crate::partition::{PartHandle, Snapshot, Version};

use super::core::Core;
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
    views: Vec<BufferView>,
}

impl Follower {
    /// Reads the manifest of the store in `root`.
    pub(crate) fn open(disk: &Arc<dyn Disk>, root: &Path) -> Result<Follower> {
        let manifest = ManifestFollower::open(Arc::clone(disk), root)?;
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

    /// What reading met with.
    pub(crate) fn report(&self) -> OpenReport {
        let mut report = OpenReport::default();
        if let Some(fallback) = &self.manifest.report().fallback {
            report.damage.push(fallback.damage.clone());
            report
                .notes
                .push(format!("the newest manifest is damaged; in use instead: {}", fallback.to));
        }
        // What the end of the journal lacks may still be on its way from the writer.
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
        let lengths = segment_lengths(core.disk.as_ref(), &self.root)?;
        let stale = self.tail.as_ref().is_none_or(|t| t.lengths != lengths);
        let mut batches = Vec::new();
        if stale {
            self.replayed =
                replay(core.disk.as_ref(), &self.root, self.store_id(), &mut |sequence, batch| {
                    batches.push((sequence, batch));
                    Ok(())
                })?;
        }
        let changed = self.manifest.refresh()? == Followed::Changed;
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
            self.tail =
                Some(Tail { lengths, views: cuts.into_iter().map(BufferView::new).collect() });
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
        Ok(Arc::new(Snapshot::new(&version, buffered)))
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
        Ok(Version::new(parts, holes))
    }

    fn open_part(&self, core: &Core, entry: &PartEntry) -> Result<Arc<PartHandle>> {
        let path = part_path(&self.root, entry.day, entry.part_id);
        let file = core.disk.open_read(&path)?;
        Ok(Arc::new(PartHandle::pinned(entry.clone(), file, path)))
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
