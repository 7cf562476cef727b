//! What a query sees.

use std::sync::Arc;

use super::{Hole, PartHandle, Version};

/// The rows of a store at one moment. Holding it keeps its parts readable.
#[derive(Debug)]
pub(crate) struct Snapshot {
    parts: Vec<Arc<PartHandle>>,
    holes: Vec<Hole>,
}

impl Snapshot {
    /// The parts of a version and those made of the buffer, which hold later cuts or, while a
    /// buffer is being encoded, cuts between.
    pub(crate) fn new(version: &Version, buffered: Vec<Arc<PartHandle>>) -> Snapshot {
        let mut parts: Vec<_> = version.parts().cloned().chain(buffered).collect();
        parts.sort_by_key(|p| (p.info().day, p.info().cut_lo));
        Snapshot { parts, holes: version.holes().to_vec() }
    }

    /// All parts, by day and cut.
    pub(crate) fn parts(&self) -> &[Arc<PartHandle>] {
        &self.parts
    }

    /// What is known to be lost.
    pub(crate) fn holes(&self) -> &[Hole] {
        &self.holes
    }
}
