//! Memory -> part files -> manifest.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::error::{Error, Result};
use crate::io::{FileWriter, Fsync, is_not_found, publish};
use crate::manifest::{Change, Edit, day_dir, part_path};
use crate::partition::{PartEntry, PartHandle};

use super::core::{Core, Role};
use super::report::FlushReport;
use super::state::InFlight;

impl Core {
    /// Writes everything acknowledged so far into part files.
    ///
    /// 1. The buffer is cut and becomes memory parts; cuts of other threads are waited for.
    /// 2. Memory parts of a day that are neighbours become one. If that fails they are written as
    ///    they are.
    /// 3. Each memory part is written to a temporary file, synced, renamed; the directory is
    ///    synced.
    /// 4. One manifest edit lists them all, over all days.
    /// 5. The version is swapped, memory is freed, the journal is released.
    pub(crate) fn flush(&self) -> Result<FlushReport> {
        let Role::Writer { flushing, .. } = &self.role else { return Err(Error::ReadOnly) };
        let _one_at_a_time = flushing.lock();
        let through = self.settle()?;
        if let Err(e) = self.gather(through, 2) {
            self.state.lock().last_error = Some(e.to_string());
        }
        let version = Arc::clone(&self.state.lock().version);
        let waiting: Vec<Arc<PartHandle>> = version
            .parts()
            .filter(|p| p.is_memory() && p.info().cut_hi <= through)
            .cloned()
            .collect();
        let mut report = FlushReport::default();
        let mut written = Vec::new();
        for part in &waiting {
            let Some(bytes) = part.memory_bytes() else { continue };
            let entry = part.info().clone();
            self.publish_part(&entry, |file, _| {
                file.append(bytes).map_err(|e| Error::io("append", &part.path(), e))
            })?;
            report.parts += 1;
            report.rows += entry.rows;
            report.bytes += entry.length;
            written.push(entry);
        }
        self.list_parts(&written, through)?;
        let handles: Vec<_> = written.into_iter().map(|entry| self.file_handle(entry)).collect();
        let memory_ids: Vec<u64> = waiting.iter().map(|p| p.info().part_id).collect();
        let mut state = self.state.lock();
        state.version = Arc::new(state.version.replace(&memory_ids, handles));
        state.written.flushed_bytes += report.bytes;
        state.written.events += u64::from(report.parts > 0);
        let idle = state.buffer.rows() == 0
            && state.in_flight.iter().all(|f| f.view.is_none())
            && state.version.memory_len().0 == 0;
        if let Some(journal) = &mut state.journal {
            // A segment that cannot be removed now is removed after a later flush.
            let _ = journal.release(through, idle, &mut |gone| self.unlist_segments(gone));
        }
        drop(state);
        self.changed.notify_all();
        Ok(report)
    }

    /// Cuts the buffer and waits until every cut up to it has landed; gives the last sequence
    /// of that cut.
    fn settle(&self) -> Result<u64> {
        let mut state = self.state.lock();
        let cut = state.cut_buffer();
        let through = state.sequences.peek().saturating_sub(1);
        drop(state);
        if let Some(view) = cut {
            self.land_in_memory(&view)?;
        }
        loop {
            let mut state = self.state.lock();
            let waiting = |f: &&mut InFlight| f.view.is_some() && f.hi <= through;
            let Some(first) = state.in_flight.iter_mut().find(waiting) else { break };
            let retry = if std::mem::take(&mut first.failed) { first.view.clone() } else { None };
            match retry {
                None => self.wait(&mut state, Duration::from_millis(20)),
                Some(view) => {
                    drop(state);
                    self.land_in_memory(&view)?;
                }
            }
        }
        Ok(through)
    }

    /// Makes the manifest expect a segment of the journal, whose first record is durable.
    pub(crate) fn list_segment(&self, segment: u64, first: u64) -> Result<()> {
        let edit = Edit::of(Change::AddSegment { segment, first });
        self.manifest()?.lock().append(&edit, Fsync::Now)
    }

    /// Makes the manifest expect these segments no longer.
    fn unlist_segments(&self, gone: &[u64]) -> Result<()> {
        let mut manifest = self.manifest()?.lock();
        let listed = &manifest.state().segments().first_rows;
        let gone = gone.iter().copied().filter(|segment| listed.contains_key(segment));
        let changes = gone.map(|segment| Change::DropSegment { segment }).collect();
        manifest.append(&Edit { changes }, Fsync::Now)
    }

    fn list_parts(&self, entries: &[PartEntry], through: u64) -> Result<()> {
        let mut edit = Edit::default();
        entries.iter().for_each(|entry| edit.push(Change::AddPart(entry.clone())));
        if !entries.is_empty() {
            edit.push(Change::FlushedThrough { through });
            self.commit(&edit)?;
        }
        Ok(())
    }

    fn publish_part(
        &self,
        entry: &PartEntry,
        write: impl FnOnce(&mut dyn FileWriter, &Path) -> Result<()>,
    ) -> Result<()> {
        let path = part_path(&self.root, entry.day, entry.part_id);
        self.publish_file(entry.day, &path, write)
    }

    /// Writes a part's file under a temporary name and publishes it.
    pub(crate) fn publish_file<T>(
        &self,
        day: i32,
        path: &Path,
        write: impl FnOnce(&mut dyn FileWriter, &Path) -> Result<T>,
    ) -> Result<T> {
        let dir = day_dir(&self.root, day);
        match self.disk.list(&dir) {
            Ok(_) => {}
            Err(e) if is_not_found(&e) => self.disk.create_dir_all(&dir)?,
            Err(e) => return Err(e),
        }
        publish(self.disk.as_ref(), path, Fsync::Now, |file| write(file, path))
    }

    /// A handle on a listed part's file.
    pub(crate) fn file_handle(&self, entry: PartEntry) -> Arc<PartHandle> {
        let path = part_path(&self.root, entry.day, entry.part_id);
        let (disk, files) = (Arc::clone(&self.disk), Arc::clone(&self.files));
        Arc::new(PartHandle::file(entry, disk, files, path))
    }
}
