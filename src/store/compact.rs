//! Merging on demand, and the merge of one task.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use crate::error::{Corruption, Error, Result};
use crate::io::FileWriter;
use crate::manifest::{Change, DamageMark, Edit, day_dir, parse_part_file, part_path};
#[cfg(test)]
use crate::merge::plan;
use crate::merge::{Hooks, MergeTask, MergeWork, PartMeta, merge_parts, plan_compaction};
use crate::part::{FileSink, PartReader, Profile, ReadContext, ReadStats, WriterOptions};
use crate::partition::{PartHandle, Version, part_entry};

use super::core::{Core, Role};
use super::report::CompactReport;

/// A merge starts only if this much stays free beside its output.
const SPARE_BYTES: u64 = 64 << 20;

/// The merges of parts that are worth it, without those that are busy.
type Plan = dyn Fn(&[PartMeta], &[u64]) -> Vec<MergeTask>;

/// Asked by a merge from time to time; an error ends it.
pub(super) type Check<'a> = dyn Fn() -> Result<()> + 'a;

impl Core {
    /// Flushes, then merges until no merge is left that the rules allow.
    ///
    /// # Errors
    /// Those of the disk. A damaged input ends that merge, not the others; the part stays as it
    /// is, is marked in the manifest and never tried again.
    pub(crate) fn compact(&self) -> Result<CompactReport> {
        let mut report = CompactReport { flushed: self.flush()?, ..CompactReport::default() };
        self.merge_all(&mut report, &plan_compaction)?;
        let state = self.state.lock();
        for part in state.version.parts().filter(|p| !p.is_memory()) {
            report.parts_stored += 1;
            report.rows_stored += part.info().rows;
            report.bytes_stored += part.info().length;
        }
        report.flushed_bytes = state.written.flushed_bytes;
        report.merged_bytes = state.written.merged_bytes;
        Ok(report)
    }

    /// Makes the merges that are worth it now.
    #[cfg(test)]
    pub(crate) fn merge_by_policy(&self) -> Result<CompactReport> {
        let mut report = CompactReport::default();
        self.merge_all(&mut report, &plan)?;
        Ok(report)
    }

    fn merge_all(&self, report: &mut CompactReport, plan: &Plan) -> Result<()> {
        let check = || if self.is_stopping() { Err(Error::Closed) } else { Ok(()) };
        while let Some(merged) = self.merge_next(plan, &|_, _| true, &|_| check())? {
            report.merges += u64::from(merged.bytes > 0);
            report.parts_read += merged.parts;
            report.bytes_written += merged.bytes;
            report.blocks_copied += merged.work.blocks_copied;
            report.bytes_copied += merged.work.bytes_copied;
            report.rows_copied += merged.work.rows_copied;
            report.rows_encoded += merged.work.rows_encoded;
        }
        check()
    }

    /// Makes the first merge of a plan that `admit` admits, given the number of parts of its day;
    /// `None` if there is none. `check` is given the same number. A damaged input makes an empty
    /// merge of it, and the part is not planned with again.
    pub(super) fn merge_next(
        &self,
        plan: &Plan,
        admit: &dyn Fn(&MergeTask, usize) -> bool,
        check: &dyn Fn(usize) -> Result<()>,
    ) -> Result<Option<Merged>> {
        let Role::Writer { merging, .. } = &self.role else { return Err(Error::ReadOnly) };
        let mut shunned = merging.lock();
        let (version, busy) = self.mergeable(&shunned)?;
        let metas: Vec<PartMeta> = version.parts().map(|p| meta(p)).collect();
        let count = |task: &MergeTask| metas.iter().filter(|m| m.day == task.day).count();
        let tasks = plan(&metas, &busy);
        let Some(task) = tasks.iter().find(|task| admit(task, count(task))) else {
            return Ok(None);
        };
        let parts_of_day = count(task);
        check(parts_of_day)?;
        match self.merge_one(&version, task, &|| check(parts_of_day)) {
            Err(Error::Corrupted(damage)) => {
                self.shun(&version, task, &damage, &mut shunned);
                Ok(Some(Merged::default()))
            }
            other => other.map(Some),
        }
    }

    /// The current version, and the parts that must not be merged or merged across: those in
    /// memory, those that are damaged, and neighbours of holes and of cuts that have not landed.
    fn mergeable(&self, shunned: &[u64]) -> Result<(Arc<Version>, Vec<u64>)> {
        let mut busy = shunned.to_vec();
        busy.extend(self.manifest()?.lock().state().damage().map(|mark| mark.part_id));
        let state = self.state.lock();
        let version = Arc::clone(&state.version);
        for (day, parts) in version.days() {
            busy.extend(parts.iter().filter(|p| p.is_memory()).map(|p| p.info().part_id));
            let holes = version.holes().iter().filter(|hole| hole.day == day).map(|h| h.cut_lo);
            for barrier in state.in_flight.iter().map(|flight| flight.lo).chain(holes) {
                // A merge across it would enclose it: the part before it stays as it is.
                let before = parts.iter().rev().find(|p| p.info().cut_hi < barrier);
                busy.extend(before.map(|p| p.info().part_id));
            }
        }
        Ok((version, busy))
    }

    /// Remembers damage that a merge met, so that no other merge tries: in the manifest, or if it
    /// is nowhere in the inputs or the manifest cannot, for the life of the store.
    fn shun(
        &self,
        version: &Version,
        task: &MergeTask,
        damage: &Corruption,
        shunned: &mut Vec<u64>,
    ) {
        self.state.lock().last_error = Some(damage.to_string());
        let inputs = || version.parts().filter(|p| task.parts.contains(&p.info().part_id));
        match inputs().find(|part| part.path() == damage.path) {
            Some(part) => {
                shunned.push(part.info().part_id);
                // Without the mark the next life of the store finds the damage again.
                let _ = self.mark_damaged(part, damage);
            }
            None => shunned.extend(&task.parts),
        }
    }

    fn mark_damaged(&self, part: &PartHandle, damage: &Corruption) -> Result<()> {
        let info = part.info();
        let file = damage.path.strip_prefix(&self.root).unwrap_or(&damage.path);
        self.commit(&Edit::of(Change::AddDamage(DamageMark {
            id: self.part_id()?,
            part_id: info.part_id,
            file: file.to_string_lossy().into_owned(),
            offset: damage.offset,
            what: damage.what.clone(),
            rows: 0,
            min_time: info.min_time,
            max_time: info.max_time,
        })))
    }

    /// Merges the parts of `task` into a new part, lists it in place of them, and lets their
    /// files go with the last snapshot that reads them.
    fn merge_one(&self, version: &Version, task: &MergeTask, check: &Check<'_>) -> Result<Merged> {
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
            inputs: self.named_inputs(day, task, &inputs)?,
            ..self.writer_options(id, day, task.cuts, Profile::Merge)
        };
        let path = part_path(&self.root, day, id);
        let merged = self.publish_file(day, &path, |file: &mut dyn FileWriter, path: &Path| {
            let hooks = Hooks { check: Some(check), ..Hooks::default() };
            merge_parts(&inputs, &options, hooks, &mut FileSink { file, path })
        });
        if merged.is_err() {
            // It may stand under its name, if only the sync of the directory failed.
            let _ = self.disk.remove_file(&path);
        }
        let merged = merged?;
        let entry = part_entry(&merged.summary);
        let mut edit = Edit::default();
        task.parts.iter().for_each(|part_id| edit.push(Change::DropPart { part_id: *part_id }));
        edit.push(Change::AddPart(entry.clone()));
        self.commit_or_remove(&edit, &path)?;
        let handle = self.file_handle(entry);
        let mut state = self.state.lock();
        state.version = Arc::new(state.version.replace(&task.parts, [handle]));
        state.written.merged_bytes += merged.summary.len;
        drop(state);
        parts.iter().for_each(|p| p.mark_obsolete());
        let (parts, bytes) = (task.parts.len() as u64, merged.summary.len);
        Ok(Merged { parts, bytes, work: merged.work })
    }

    /// The parts that a merge replaces, and what those replaced whose files are still there
    /// because a snapshot reads them: a crash may leave them behind.
    fn named_inputs(&self, day: i32, task: &MergeTask, parts: &[&PartReader]) -> Result<Vec<u64>> {
        let files = self.disk.list(&day_dir(&self.root, day))?;
        let there: HashSet<u64> = files.iter().filter_map(|f| parse_part_file(&f.name)).collect();
        let mut out = task.parts.clone();
        for part in parts {
            let stats = ReadStats::default();
            let before = part.inputs(&ReadContext::new(&stats))?.to_vec();
            out.extend(before.iter().filter(|id| there.contains(id)));
        }
        Ok(out)
    }

    /// Commits an edit that lists the file at `path`; removes the file if the edit is certainly
    /// not true, so that tries on a full disk do not pile up.
    fn commit_or_remove(&self, edit: &Edit, path: &Path) -> Result<()> {
        let result = self.commit(edit);
        let unharmed = || self.commit(&Edit::default()).is_ok();
        if result.is_err() && unharmed() {
            // The next opening removes what cannot be removed now.
            let _ = self.disk.remove_file(path);
        }
        result
    }
}

/// What one merge did; nothing if an input was damaged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Merged {
    /// Parts that it read.
    pub(super) parts: u64,
    /// Bytes that it wrote.
    pub(super) bytes: u64,
    /// How it wrote them.
    pub(super) work: MergeWork,
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
