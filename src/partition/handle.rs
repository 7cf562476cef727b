//! One part of a version.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::Result;
use crate::io::{DescriptorCache, Disk, MemoryFile, ReadAt};
use crate::manifest::PartEntry;
use crate::part::{Expected, PartReader, PartSource, PartSummary};
use crate::record::Timestamp;
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicBool, Ordering};

/// What the writer of a part says of it, as the manifest lists it.
pub(crate) fn part_entry(summary: &PartSummary) -> PartEntry {
    PartEntry {
        part_id: summary.part_id,
        // A part's day comes from a timestamp, whose days fit.
        day: i32::try_from(summary.day).unwrap_or(i32::MAX),
        level: summary.level,
        length: summary.len,
        footer_checksum: summary.footer_checksum,
        rows: summary.rows,
        min_time: Timestamp::from_nanos(summary.min_time),
        max_time: Timestamp::from_nanos(summary.max_time),
        cut_lo: summary.cuts.0,
        cut_hi: summary.cuts.1,
        deletes_applied: 0,
    }
}

/// One part, in memory or in a file.
#[derive(Debug)]
pub(crate) struct PartHandle {
    info: PartEntry,
    place: Place,
    reader: Mutex<Option<Arc<PartReader>>>,
    obsolete: AtomicBool,
}

#[derive(Debug)]
enum Place {
    Memory(MemoryFile),
    File { disk: Arc<dyn Disk>, files: Arc<DescriptorCache>, path: PathBuf },
    Pinned { file: Arc<dyn ReadAt>, path: PathBuf },
}

impl PartHandle {
    /// A part whose bytes are in memory.
    pub(crate) fn memory(info: PartEntry, bytes: Vec<u8>) -> PartHandle {
        PartHandle::new(info, Place::Memory(MemoryFile::new(bytes)))
    }

    /// A part in the file at `path`.
    pub(crate) fn file(
        info: PartEntry,
        disk: Arc<dyn Disk>,
        files: Arc<DescriptorCache>,
        path: PathBuf,
    ) -> PartHandle {
        PartHandle::new(info, Place::File { disk, files, path })
    }

    /// A part in a file that is open already and stays so.
    pub(crate) fn pinned(info: PartEntry, file: Arc<dyn ReadAt>, path: PathBuf) -> PartHandle {
        PartHandle::new(info, Place::Pinned { file, path })
    }

    fn new(info: PartEntry, place: Place) -> PartHandle {
        PartHandle { info, place, reader: Mutex::new(None), obsolete: AtomicBool::new(false) }
    }

    /// What is known without opening the part.
    pub(crate) fn info(&self) -> &PartEntry {
        &self.info
    }

    /// Whether the part is only in memory.
    pub(crate) fn is_memory(&self) -> bool {
        matches!(self.place, Place::Memory(_))
    }

    /// The bytes of a memory part.
    pub(crate) fn memory_bytes(&self) -> Option<&Arc<[u8]>> {
        match &self.place {
            Place::Memory(file) => Some(file.bytes()),
            Place::File { .. } | Place::Pinned { .. } => None,
        }
    }

    /// The part's file; a made-up name for a memory part.
    pub(crate) fn path(&self) -> PathBuf {
        match &self.place {
            Place::Memory(_) => PathBuf::from(format!("memory part {:016x}", self.info.part_id)),
            Place::File { path, .. } | Place::Pinned { path, .. } => path.clone(),
        }
    }

    /// The reader, opened on first use.
    ///
    /// # Errors
    /// Those of opening; the next call tries again.
    pub(crate) fn reader(&self) -> Result<Arc<PartReader>> {
        let mut slot = self.reader.lock();
        if let Some(reader) = slot.as_ref() {
            return Ok(Arc::clone(reader));
        }
        let expected =
            Expected { len: self.info.length, footer_checksum: self.info.footer_checksum };
        let source = PartSource::file(self.open(), self.path());
        let reader = Arc::new(PartReader::open(source, Some(expected))?);
        *slot = Some(Arc::clone(&reader));
        Ok(reader)
    }

    fn open(&self) -> Arc<dyn ReadAt> {
        match &self.place {
            Place::Memory(file) => Arc::new(file.clone()),
            Place::File { files, path, .. } => files.file(path.clone()),
            Place::Pinned { file, .. } => Arc::clone(file),
        }
    }

    /// Says that a newer version holds every row of the part: its file goes when the last
    /// snapshot lets go of it.
    pub(crate) fn mark_obsolete(&self) {
        self.obsolete.store(true, Ordering::Release);
    }
}

impl Drop for PartHandle {
    fn drop(&mut self) {
        if let Place::File { disk, files, path } = &self.place {
            files.forget(path);
            if self.obsolete.load(Ordering::Acquire) {
                // A failure leaves an unlisted file whose successor is listed: the next open
                // removes it.
                let _ = remove(disk.as_ref(), path);
            }
        }
    }
}

fn remove(disk: &dyn Disk, path: &Path) -> Result<()> {
    disk.remove_file(path)
}
