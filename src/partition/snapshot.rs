//! What a query sees.

use std::sync::Arc;

use super::{DamageMark, Hole, PartHandle, Version};

/// The rows of a store at one moment. Holding it keeps its parts readable.
#[derive(Debug)]
pub(crate) struct Snapshot {
    parts: Vec<Arc<PartHandle>>,
    holes: Vec<Hole>,
    lost_files: Vec<DamageMark>,
}

impl Snapshot {
    /// The parts of a version and those made of the buffer, which hold later cuts or, while a
    /// buffer is being encoded, cuts between.
    pub(crate) fn new(version: &Version, buffered: Vec<Arc<PartHandle>>) -> Snapshot {
        let mut parts: Vec<_> = version.parts().cloned().chain(buffered).collect();
        parts.sort_by_key(|p| (p.info().day, p.info().cut_lo));
        let (holes, lost_files) = (version.holes().to_vec(), version.lost_files().to_vec());
        Snapshot { parts, holes, lost_files }
    }

    /// All parts, by day and cut.
    pub(crate) fn parts(&self) -> &[Arc<PartHandle>] {
        &self.parts
    }

    /// Adds a file that took rows with it.
    pub(crate) fn with_lost_files(mut self, more: impl IntoIterator<Item = DamageMark>) -> Self {
        self.lost_files.extend(more);
        self
    }

    /// Files that took rows with them.
    pub(crate) fn lost_files(&self) -> &[DamageMark] {
        &self.lost_files
    }

    /// What is known to be lost.
    pub(crate) fn holes(&self) -> &[Hole] {
        &self.holes
    }
}
