//! Merging: by policy in the background, to the end on demand.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::io::FileWriter;
use crate::manifest::{Change, Edit, part_path};
use crate::merge::{MergeTask, PartMeta, merge_parts, plan, plan_compaction};
use crate::part::{FileSink, PartReader, Profile, WriterOptions};
use crate::partition::{PartHandle, Version, part_entry};

use super::core::{Core, Role};
use super::report::CompactReport;

/// A merge starts only if this much stays free beside its output.
const SPARE_BYTES: u64 = 64 << 20;

impl Core {
    /// Flushes, then merges until no merge is left that the rules allow.
    ///
    /// # Errors
    /// Those of the disk. A damaged input ends that merge, not the others; the part stays as it
    /// is and is not tried again by this call.
    pub(crate) fn compact(&self) -> Result<CompactReport> {
        let mut report = CompactReport { flushed: self.flush()?, ..CompactReport::default() };
        self.merge_all(&mut report, plan_compaction)?;
        let state = self.state.lock();
        for part in state.version.parts().filter(|p| !p.is_memory()) {
            report.parts_stored += 1;
            report.rows_stored += part.info().rows;
            report.bytes_stored += part.info().length;
        }
        Ok(report)
    }

    /// Makes the merges that are worth it now.
    pub(crate) fn merge_by_policy(&self) -> Result<CompactReport> {
        let mut report = CompactReport::default();
        self.merge_all(&mut report, plan)?;
        Ok(report)
    }

    fn merge_all(
        &self,
        report: &mut CompactReport,
        plan: impl Fn(&[PartMeta], &[u64]) -> Vec<MergeTask>,
    ) -> Result<()> {
        let Role::Writer { merging, .. } = &self.role else { return Err(Error::ReadOnly) };
        let _one_at_a_time = merging.lock();
        let mut damaged: Vec<u64> = Vec::new();
        loop {
            let (version, busy) = self.mergeable(&damaged);
            let metas: Vec<PartMeta> = version.parts().map(|p| meta(p)).collect();
            let tasks = plan(&metas, &busy);
            if tasks.is_empty() || self.state.lock().closed {
                return Ok(());
            }
            for task in &tasks {
                match self.merge_one(&version, task, report) {
                    Ok(()) => {}
                    Err(e @ Error::Corrupted(_)) => {
                        self.state.lock().last_error = Some(e.to_string());
                        damaged.extend(&task.parts);
                    }
                    Err(e) => return Err(e),
                }
            }
        }
    }

    /// The current version, and the parts that must not be merged or merged across: those in
    /// memory, those of a failed merge, and neighbours of cuts that have not landed.
    fn mergeable(&self, damaged: &[u64]) -> (Arc<Version>, Vec<u64>) {
        let state = self.state.lock();
        let version = Arc::clone(&state.version);
        let mut busy = damaged.to_vec();
        for (_, parts) in version.days() {
            busy.extend(parts.iter().filter(|p| p.is_memory()).map(|p| p.info().part_id));
            for flight in &state.in_flight {
                // A merge across the cut would enclose it: the part before it stays as it is.
                let before = parts.iter().rev().find(|p| p.info().cut_hi < flight.lo);
                busy.extend(before.map(|p| p.info().part_id));
            }
        }
        (version, busy)
    }

    /// Merges the parts of `task` into a new part, lists it in place of them, and lets their
    /// files go with the last snapshot that reads them.
    fn merge_one(
        &self,
        version: &Version,
        task: &MergeTask,
        report: &mut CompactReport,
    ) -> Result<()> {
        if self.disk.free_space(&self.root)? < task.len.saturating_add(SPARE_BYTES) {
            return Err(Error::io("merge in", &self.root, std::io::ErrorKind::StorageFull.into()));
        }
        let by_id: HashMap<u64, &Arc<PartHandle>> =
            version.parts().map(|p| (p.info().part_id, p)).collect();
        let parts: Vec<&Arc<PartHandle>> =
            task.parts.iter().filter_map(|id| by_id.get(id).copied()).collect();
        let readers: Vec<Arc<PartReader>> =
            parts.iter().map(|p| p.reader()).collect::<Result<_>>()?;
        let inputs: Vec<&PartReader> = readers.iter().map(AsRef::as_ref).collect();
        let day = i32::try_from(task.day).unwrap_or(i32::MAX);
        let id = self.part_id()?;
        let options = WriterOptions {
            level: task.level,
            inputs: task.parts.clone(),
            ..self.writer_options(id, day, task.cuts, Profile::Merge)
        };
        let path = part_path(&self.root, day, id);
        let merged = self.publish_file(day, &path, |file: &mut dyn FileWriter, path: &Path| {
            merge_parts(&inputs, &options, None, &mut FileSink { file, path })
        })?;
        let entry = part_entry(&merged.summary);
        let mut edit = Edit::default();
        task.parts.iter().for_each(|part_id| edit.push(Change::DropPart { part_id: *part_id }));
        edit.push(Change::AddPart(entry.clone()));
        self.commit(&edit)?;
        let handle = self.file_handle(entry);
        let mut state = self.state.lock();
        state.version = Arc::new(state.version.replace(&task.parts, [handle]));
        drop(state);
        parts.iter().for_each(|p| p.mark_obsolete());
        report.merges += 1;
        report.parts_read += task.parts.len() as u64;
        report.bytes_written += merged.summary.len;
        Ok(())
    }
}

fn meta(part: &PartHandle) -> PartMeta {
    let info = part.info();
    PartMeta {
        part_id: info.part_id,
        day: i64::from(info.day),
        level: info.level,
        len: info.length,
        min_time: info.min_time.as_nanos(),
        max_time: info.max_time.as_nanos(),
        cuts: (info.cut_lo, info.cut_hi),
    }
}
