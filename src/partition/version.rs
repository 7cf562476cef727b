//! The parts of every day at one moment.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use super::{DamageMark, Hole, PartHandle};

/// Immutable; shared by the store and by every snapshot taken while it was current.
#[derive(Debug, Clone, Default)]
pub(crate) struct Version {
    days: BTreeMap<i32, Vec<Arc<PartHandle>>>,
    holes: Vec<Hole>,
    /// Files that took rows with them.
    lost_files: Vec<DamageMark>,
    /// Number and bytes of the memory parts: every append asks for them.
    memory: (usize, u64),
}

impl Version {
    /// The version of `parts`, `holes` and files that took rows with them.
    pub(crate) fn new(
        parts: impl IntoIterator<Item = Arc<PartHandle>>,
        holes: Vec<Hole>,
        lost_files: Vec<DamageMark>,
    ) -> Version {
        Version { holes, lost_files, ..Version::default() }.replace(&[], parts)
    }

    /// This version without the parts of `remove` and with those of `add`.
    pub(crate) fn replace(
        &self,
        remove: &[u64],
        add: impl IntoIterator<Item = Arc<PartHandle>>,
    ) -> Version {
        let remove: HashSet<u64> = remove.iter().copied().collect();
        let mut days = self.days.clone();
        if !remove.is_empty() {
            for parts in days.values_mut() {
                parts.retain(|p| !remove.contains(&p.info().part_id));
            }
        }
        for part in add {
            let parts = days.entry(part.info().day).or_default();
            let at = parts.partition_point(|p| p.info().cut_lo < part.info().cut_lo);
            debug_assert!(
                parts.get(at).is_none_or(|next| part.info().cut_hi < next.info().cut_lo)
                    && at
                        .checked_sub(1)
                        .and_then(|i| parts.get(i))
                        .is_none_or(|before| before.info().cut_hi < part.info().cut_lo),
                "the cuts of a day are disjoint"
            );
            parts.insert(at, part);
        }
        days.retain(|_, parts| !parts.is_empty());
        let parts = days.values().flatten().filter(|p: &&Arc<PartHandle>| p.is_memory());
        let memory = parts.fold((0, 0), |(n, bytes), p| (n + 1, bytes + p.info().length));
        let (holes, lost_files) = (self.holes.clone(), self.lost_files.clone());
        Version { days, holes, lost_files, memory }
    }

    /// The days and their parts, both ascending.
    pub(crate) fn days(&self) -> impl Iterator<Item = (i32, &[Arc<PartHandle>])> + '_ {
        self.days.iter().map(|(day, parts)| (*day, parts.as_slice()))
    }

    /// All parts, by day and cut.
    pub(crate) fn parts(&self) -> impl Iterator<Item = &Arc<PartHandle>> + '_ {
        self.days.values().flatten()
    }

    /// What is known to be lost.
    pub(crate) fn holes(&self) -> &[Hole] {
        &self.holes
    }

    /// Files that took rows with them.
    pub(crate) fn lost_files(&self) -> &[DamageMark] {
        &self.lost_files
    }

    /// The number of memory parts and their bytes.
    pub(crate) fn memory_len(&self) -> (usize, u64) {
        self.memory
    }
}
