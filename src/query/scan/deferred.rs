//! Rows that passed the filter of "the newest N", before their columns are read: most of them
//! turn out not to be among the best, and their times are enough to know.

use std::sync::Arc;

use super::bound::TimeBound;
use super::frontier::ScanTask;
use crate::codec::Bitmap;

/// So many more rows than at the last look are kept before those that the bound excludes go.
const SLACK: usize = 65_536;

/// Rows of one strip.
#[derive(Debug)]
pub(super) struct DeferredRows {
    /// The block.
    pub(super) task: ScanTask,
    /// The strip.
    pub(super) strip: usize,
    /// The rows, counted from the strip's first, and their times.
    pub(super) rows: Vec<(u32, i64)>,
}

impl DeferredRows {
    /// Whether both are of one block.
    pub(super) fn is_beside(&self, other: &DeferredRows) -> bool {
        Arc::ptr_eq(&self.task.index, &other.task.index) && self.task.block == other.task.block
    }
}

/// All rows of a worker that wait.
#[derive(Debug, Default)]
pub(super) struct Deferred {
    strips: Vec<DeferredRows>,
    rows: usize,
    look_at: usize,
}

impl Deferred {
    /// Adds the selected rows of a strip and tells the bound of them.
    pub(super) fn add(
        &mut self,
        task: &ScanTask,
        strip: usize,
        selection: &Bitmap,
        times: &[i64],
        bound: &TimeBound,
    ) {
        let row = |row: usize| Some((u32::try_from(row).ok()?, *times.get(row)?));
        let rows: Vec<(u32, i64)> = selection.iter().filter_map(row).collect();
        bound.offer(rows.iter().map(|(_, time)| *time));
        self.rows += rows.len();
        self.strips.push(DeferredRows { task: task.clone(), strip, rows });
        if self.rows > self.look_at.saturating_add(SLACK) {
            self.prune(bound);
            self.look_at = self.rows;
        }
    }

    /// The rows that the bound does not exclude, block by block.
    pub(super) fn finish(mut self, bound: &TimeBound) -> Vec<DeferredRows> {
        self.prune(bound);
        self.strips
    }

    fn prune(&mut self, bound: &TimeBound) {
        for strip in &mut self.strips {
            strip.rows.retain(|(_, time)| !bound.excludes(*time));
        }
        self.strips.retain(|strip| !strip.rows.is_empty());
        self.rows = self.strips.iter().map(|strip| strip.rows.len()).sum();
    }
}
