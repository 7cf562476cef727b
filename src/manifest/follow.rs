//! A reader of a manifest that another process may be writing.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::load::{Ended, Loaded, ManifestReport, generations, load, read_from};
use super::log::RECORD_BYTES;
use super::names::manifest_path;
use super::state::ManifestState;
use crate::io::{Disk, ReadAt, is_not_found, read_vec_at};
use crate::{Error, Result};

/// How often the newest file is looked for when the writer exchanges it under the reader's hands.
const MAX_LOOKS: usize = 10;

/// What a look at the manifest found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Followed {
    /// The state is as it was.
    Unchanged,
    /// The state has changed.
    Changed,
}

/// The manifest of a store that is open for reading only: it never writes, and follows the
/// edits of a writer in another process.
///
/// An incomplete last record is one that is not written yet, not damage.
#[derive(Debug)]
pub(crate) struct ManifestFollower {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    loaded: Loaded,
    file: Arc<dyn ReadAt>,
}

impl ManifestFollower {
    /// Reads the manifest of a store.
    ///
    /// # Errors
    /// [`Error::NotAStore`], [`Error::Corrupted`], [`Error::Unsupported`].
    pub(crate) fn open(disk: Arc<dyn Disk>, dir: &Path) -> Result<ManifestFollower> {
        let (loaded, file) = load_and_open(disk.as_ref(), dir)?;
        Ok(ManifestFollower { disk, dir: dir.to_path_buf(), loaded, file })
    }

    /// What the edits read so far add up to.
    pub(crate) fn state(&self) -> &ManifestState {
        &self.loaded.state
    }

    /// What reading has met with.
    pub(crate) fn report(&self) -> &ManifestReport {
        &self.loaded.report
    }

    /// Reads the edits written since the last look.
    ///
    /// # Errors
    /// As of opening; the state is then that of an earlier edit.
    pub(crate) fn refresh(&mut self) -> Result<Followed> {
        let found = generations(self.disk.as_ref(), &self.dir)?;
        if found.last() != Some(&self.loaded.newest) {
            return self.reload();
        }
        if self.loaded.report.fallback.is_some() {
            return Ok(Followed::Unchanged);
        }
        if !self.stands_where_it_was()? {
            return self.reload();
        }
        let path = manifest_path(&self.dir, self.loaded.report.generation);
        let bytes = read_from(self.file.as_ref(), self.loaded.position.offset);
        let bytes = bytes.map_err(|e| Error::io("read", &path, e))?;
        let before = self.loaded.position;
        match self.loaded.read_records(&path, &bytes)? {
            Ended::Damaged(_) => self.reload(),
            Ended::Whole | Ended::Torn(_) if self.loaded.position == before => {
                Ok(Followed::Unchanged)
            }
            Ended::Whole | Ended::Torn(_) => Ok(Followed::Changed),
        }
    }

    /// Whether the last record read is still there: a writer takes back one that it cannot sync.
    fn stands_where_it_was(&self) -> Result<bool> {
        let position = self.loaded.position;
        match read_vec_at(self.file.as_ref(), position.last_record, RECORD_BYTES as u64) {
            Ok(head) => Ok(head.ends_with(&position.checksum.to_le_bytes())),
            Err(e) if e.kind() == std::io::ErrorKind::UnexpectedEof => Ok(false),
            Err(e) => {
                let path = manifest_path(&self.dir, self.loaded.report.generation);
                Err(Error::io("read", &path, e))
            }
        }
    }

    fn reload(&mut self) -> Result<Followed> {
        let (loaded, file) = load_and_open(self.disk.as_ref(), &self.dir)?;
        let changed = loaded.state != self.loaded.state;
        self.loaded = loaded;
        self.file = file;
        Ok(if changed { Followed::Changed } else { Followed::Unchanged })
    }
}

fn load_and_open(disk: &dyn Disk, dir: &Path) -> Result<(Loaded, Arc<dyn ReadAt>)> {
    let mut looks = 0;
    loop {
        looks += 1;
        let loaded = load(disk, dir)?;
        match disk.open_read(&manifest_path(dir, loaded.report.generation)) {
            Ok(file) => return Ok((loaded, file)),
            Err(e) if is_not_found(&e) && looks < MAX_LOOKS => {}
            Err(e) => return Err(e),
        }
    }
}
