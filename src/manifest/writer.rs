//! The one writer of a store's manifest.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::edit::{Change, DamageMark, Edit, StoreId};
use super::files::set_aside;
use super::load::{Fallback, Loaded, ManifestReport, generations, load};
use super::log::{Header, Position, Record, RecordKind};
use super::names::manifest_path;
use super::state::ManifestState;
use crate::io::{Disk, FileWriter, Fsync, file_name, publish};
use crate::record::Timestamp;
use crate::{Error, Result};

/// How many ids or sequences are reserved at a time.
pub(crate) const RESERVATION_STEP: u64 = 1 << 20;
/// How far reservations jump when edits may be missing: farther than any lost edits went.
const LOST_RESERVATIONS: u64 = 1 << 40;
/// Edits may take this many times the bytes of the image before the file is rewritten,
const REWRITE_FACTOR: u64 = 4;
/// but at least this many bytes.
const REWRITE_FLOOR_BYTES: u64 = 64 << 10;

/// The manifest of a store that is open for writing.
///
/// The caller holds the store's lock. After a failure that leaves the file in doubt, every
/// further append is refused with [`Error::Poisoned`]; the state stays readable.
#[derive(Debug)]
pub(crate) struct Manifest {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    state: ManifestState,
    log: OpenLog,
    /// Edits up to this number are durable.
    durable: u64,
    /// Bytes of edits at which the file is to be rewritten.
    rewrite_at: u64,
    /// Why the last rewrite failed; the edits are safe in the longer file.
    rewrite_failure: Option<Error>,
    poison: Option<String>,
}

/// The file that edits are appended to.
#[derive(Debug)]
struct OpenLog {
    file: Box<dyn FileWriter>,
    path: PathBuf,
    generation: u64,
    /// Bytes of header and image.
    image_bytes: u64,
    /// Number of the last edit.
    number: u64,
    /// Checksum of the last record.
    checksum: u64,
}

impl Manifest {
    /// Makes the directory a store without rows.
    ///
    /// # Errors
    /// [`Error::Io`] when it has a manifest already.
    pub(crate) fn create(disk: Arc<dyn Disk>, dir: &Path, store_id: StoreId) -> Result<Manifest> {
        disk.create_dir_all(dir)?;
        if let Some(&generation) = generations(disk.as_ref(), dir)?.last() {
            let path = manifest_path(dir, generation);
            return Err(Error::io("create", &path, std::io::ErrorKind::AlreadyExists.into()));
        }
        let state = ManifestState::new(store_id);
        let log = write_generation(disk.as_ref(), dir, 1, &state, 0)?;
        Ok(Manifest::with_log(disk, dir, state, log))
    }

    /// Opens the manifest of a store for writing.
    ///
    /// A torn end is cut off and reported. When the newest manifest is damaged, what comes
    /// closest to it is written as a new generation with a [`DamageMark`], the damaged file goes
    /// to quarantine, and the report says so. After either, reservations jump, so that no id and
    /// no sequence of a lost edit can be given out again. The parts that the report calls unsynced
    /// are to be synced before the first durable edit.
    ///
    /// # Errors
    /// As of reading: [`Error::NotAStore`], [`Error::Corrupted`], [`Error::Unsupported`].
    pub(crate) fn open(disk: Arc<dyn Disk>, dir: &Path) -> Result<(Manifest, ManifestReport)> {
        let loaded = load(disk.as_ref(), dir)?;
        if let Some(fallback) = loaded.report.fallback.clone() {
            return Manifest::open_damaged(disk, dir, loaded, &fallback);
        }
        let Loaded { state, report, position, image_bytes, last_synced, .. } = loaded;
        let path = manifest_path(dir, report.generation);
        let mut file = disk.open_append(&path)?;
        if report.dropped_bytes > 0 {
            let cut = file.truncate(position.offset);
            cut.map_err(|e| Error::io("truncate", &path, e))?;
        }
        // An earlier process may have died between its append and its sync.
        file.sync().map_err(|e| Error::io("sync", &path, e))?;
        let Position { number, checksum, .. } = position;
        let generation = report.generation;
        let log = OpenLog { file, path, generation, image_bytes, number, checksum };
        let mut manifest = Manifest::with_log(disk, dir, state, log);
        manifest.durable = last_synced;
        if report.dropped_bytes > 0 {
            let jump = jump(&manifest.state);
            manifest.reserve(&jump)?;
        }
        Ok((manifest, report))
    }

    /// Makes the directory a store of this id whose manifest is lost: every manifest file goes to
    /// quarantine. Reservations begin behind `ids` and `sequences`, far enough to be beyond what
    /// the lost manifest gave out.
    ///
    /// # Errors
    /// Those of the disk; after any of them the manifest is lost still, and this can be repeated.
    pub(crate) fn create_anew(
        disk: Arc<dyn Disk>,
        dir: &Path,
        store_id: StoreId,
        ids: u64,
        sequences: u64,
    ) -> Result<Manifest> {
        for generation in generations(disk.as_ref(), dir)? {
            let path = manifest_path(dir, generation);
            set_aside(disk.as_ref(), dir, &path, &file_name(&path))?;
        }
        let mut state = ManifestState::new(store_id);
        let far = |n: u64| n.saturating_add(LOST_RESERVATIONS);
        let mut edit = Edit::of(Change::ReserveIds { below: far(ids) });
        edit.push(Change::ReserveSequences { below: far(sequences) });
        state.apply(&edit).map_err(|e| e.at(dir, 0))?;
        let log = write_generation(disk.as_ref(), dir, 1, &state, 0)?;
        Ok(Manifest::with_log(disk, dir, state, log))
    }

    fn open_damaged(
        disk: Arc<dyn Disk>,
        dir: &Path,
        loaded: Loaded,
        fallback: &Fallback,
    ) -> Result<(Manifest, ManifestReport)> {
        let Loaded { mut state, mut report, position, newest, .. } = loaded;
        let damaged = fallback.damage.path.clone();
        let mut edit = jump(&state);
        edit.push(Change::AddDamage(DamageMark {
            id: state.ids_below().saturating_add(LOST_RESERVATIONS - 1),
            part_id: 0,
            file: file_name(&damaged),
            offset: fallback.damage.offset,
            what: fallback.damage.what.clone(),
            rows: 0,
            min_time: Timestamp::MIN,
            max_time: Timestamp::MAX,
        }));
        state.apply(&edit).map_err(|e| e.at(&damaged, 0))?;
        let generation = newest.saturating_add(1);
        let log = write_generation(disk.as_ref(), dir, generation, &state, position.number)?;
        set_aside(disk.as_ref(), dir, &damaged, &file_name(&damaged))?;
        report.generation = generation;
        Ok((Manifest::with_log(disk, dir, state, log), report))
    }

    fn with_log(disk: Arc<dyn Disk>, dir: &Path, state: ManifestState, log: OpenLog) -> Manifest {
        let rewrite_at = rewrite_at(log.image_bytes);
        let durable = log.number;
        let dir = dir.to_path_buf();
        Manifest { disk, dir, state, log, durable, rewrite_at, rewrite_failure: None, poison: None }
    }

    /// What the edits so far add up to.
    pub(crate) fn state(&self) -> &ManifestState {
        &self.state
    }

    /// The generation of the file in use.
    #[cfg(test)]
    pub(crate) fn generation(&self) -> u64 {
        self.log.generation
    }

    /// Bytes of the file in use.
    #[cfg(test)]
    pub(crate) fn file_bytes(&self) -> u64 {
        self.log.file.len()
    }

    /// Makes an edit true.
    ///
    /// With [`Fsync::Now`] it is durable when the call returns, as are all edits before it; every
    /// file named by any of them must have been synced before. With [`Fsync::Later`] it survives
    /// the death of the process, and loss of power only after [`sync`](Manifest::sync).
    ///
    /// # Errors
    /// [`Error::Io`]: the edit is not true, and the file is as before. When that cannot be
    /// granted, later calls give [`Error::Poisoned`], and opening again may find the edit or not.
    /// [`Error::Corrupted`]: the edit contradicts the state; nothing was written.
    pub(crate) fn append(&mut self, edit: &Edit, fsync: Fsync) -> Result<()> {
        self.check_poison()?;
        if edit.is_empty() {
            return Ok(());
        }
        if fsync == Fsync::Now && self.durable < self.log.number {
            // A record calls all edits before it durable, so they must be.
            self.sync_file()?;
        }
        let undo = self.state.begin(edit).map_err(|e| e.at(&self.log.path, self.log.file.len()))?;
        if let Err(e) = self.append_record(&edit.encode(), fsync) {
            self.state.roll_back(undo);
            return Err(e);
        }
        self.state.finish(edit);
        if fsync == Fsync::Now {
            self.rewrite_if_long();
        }
        Ok(())
    }

    /// Makes all edits durable; every file named by any of them must have been synced before.
    ///
    /// # Errors
    /// [`Error::Io`], after which the manifest is poisoned.
    pub(crate) fn sync(&mut self) -> Result<()> {
        self.check_poison()?;
        if self.durable < self.log.number {
            self.sync_file()?;
            // An empty record, so that a reader knows that these edits were durable.
            self.append_record(&[], Fsync::Now)?;
            self.rewrite_if_long();
        }
        Ok(())
    }

    /// Reserves the next ids (of parts, deletes, damage marks), durably.
    pub(crate) fn reserve_ids(&mut self) -> Result<Range<u64>> {
        let from = self.state.ids_below();
        let below = from.saturating_add(RESERVATION_STEP);
        self.reserve(&Edit::of(Change::ReserveIds { below }))?;
        Ok(from..below)
    }

    /// Reserves the next sequences, durably.
    pub(crate) fn reserve_sequences(&mut self) -> Result<Range<u64>> {
        let from = self.state.sequences_below();
        let below = from.saturating_add(RESERVATION_STEP);
        self.reserve(&Edit::of(Change::ReserveSequences { below }))?;
        Ok(from..below)
    }

    /// A reservation names no files, so that it can be synced while they are not: the record
    /// does not call the edits before it durable.
    fn reserve(&mut self, edit: &Edit) -> Result<()> {
        if self.durable == self.log.number {
            return self.append(edit, Fsync::Now);
        }
        self.append(edit, Fsync::Later)?;
        let synced = self.log.file.sync();
        synced.map_err(|e| self.poisoned_by("sync", e))
    }

    /// Rewrites the file as an image of the state, in a new generation.
    ///
    /// # Errors
    /// [`Error::Io`]: the file in use stays in use. When the new one could not be taken back,
    /// later appends give [`Error::Poisoned`].
    pub(crate) fn rewrite(&mut self) -> Result<()> {
        self.check_poison()?;
        if self.durable < self.log.number {
            self.sync()?;
        }
        let generation = self.log.generation.saturating_add(1);
        let disk = self.disk.as_ref();
        match write_generation(disk, &self.dir, generation, &self.state, self.log.number) {
            Ok(log) => {
                self.rewrite_at = rewrite_at(log.image_bytes);
                let previous = self.log.generation;
                self.log = log;
                self.remove_before(previous);
                Ok(())
            }
            Err(e) => {
                self.take_back_generation(generation);
                Err(e)
            }
        }
    }

    /// After a failed rewrite no trace of the new file may stay: it would be the newest one, and
    /// hide what is appended to the file in use from now on.
    fn take_back_generation(&mut self, generation: u64) {
        let path = manifest_path(&self.dir, generation);
        let taken = generations(self.disk.as_ref(), &self.dir).and_then(|found| {
            if found.contains(&generation) {
                self.disk.remove_file(&path)?;
            }
            self.disk.sync_dir(&self.dir)
        });
        if let Err(e) = taken {
            self.poison = Some(format!("a rewrite of the manifest could not be taken back: {e}"));
        }
    }

    /// Removes the generations before `previous`. What cannot be removed now is next time.
    fn remove_before(&self, previous: u64) {
        let found = generations(self.disk.as_ref(), &self.dir).unwrap_or_default();
        for generation in found.into_iter().filter(|&generation| generation < previous) {
            let _ = self.disk.remove_file(&manifest_path(&self.dir, generation));
        }
    }

    fn rewrite_if_long(&mut self) {
        let edits = self.log.file.len().saturating_sub(self.log.image_bytes);
        if edits < self.rewrite_at {
            return;
        }
        self.rewrite_failure = self.rewrite().err();
        if self.rewrite_failure.is_some() {
            // Not again with every edit.
            self.rewrite_at = edits.saturating_mul(2);
        }
    }

    fn check_poison(&self) -> Result<()> {
        match &self.poison {
            Some(why) => Err(Error::Poisoned { why: why.clone() }),
            None => Ok(()),
        }
    }

    fn poisoned_by(&mut self, action: &'static str, e: std::io::Error) -> Error {
        let error = Error::io(action, &self.log.path, e);
        self.poison = Some(error.to_string());
        error
    }

    fn sync_file(&mut self) -> Result<()> {
        match self.log.file.sync() {
            Ok(()) => {
                self.durable = self.log.number;
                Ok(())
            }
            // What was to be synced may be lost though a later sync succeeds.
            Err(e) => Err(self.poisoned_by("sync", e)),
        }
    }

    /// Appends a record, or leaves the file as it was.
    fn append_record(&mut self, payload: &[u8], fsync: Fsync) -> Result<()> {
        let before = self.log.file.len();
        let kind = match fsync {
            Fsync::Now => RecordKind::Synced,
            Fsync::Later => RecordKind::Later,
        };
        let number = self.log.number.wrapping_add(1);
        let record = Record::encode(kind, number, self.durable, self.log.checksum, payload);
        let (bytes, checksum) = record.ok_or(Error::MemoryLimit {
            what: "an edit of the manifest",
            limit_bytes: super::log::MAX_PAYLOAD_BYTES as u64,
        })?;
        if let Err(e) = self.log.file.append(&bytes) {
            let error = Error::io("append", &self.log.path, e);
            if self.log.file.truncate(before).is_err() {
                self.poison = Some(error.to_string());
            }
            return Err(error);
        }
        if fsync == Fsync::Now
            && let Err(e) = self.log.file.sync()
        {
            // Whether the record is durable is unknown. Taken back as well as can be, it is
            // most likely gone when the manifest is opened again.
            let _ = self.log.file.truncate(before);
            return Err(self.poisoned_by("sync", e));
        }
        self.log.number = number;
        self.log.checksum = checksum;
        if fsync == Fsync::Now {
            self.durable = number;
        }
        Ok(())
    }
}

/// Bytes of edits at which a file with an image of this size is rewritten.
fn rewrite_at(image_bytes: u64) -> u64 {
    image_bytes.saturating_mul(REWRITE_FACTOR).max(REWRITE_FLOOR_BYTES)
}

/// The edit that keeps what lost edits may have reserved from being given out again.
fn jump(state: &ManifestState) -> Edit {
    let ids = state.ids_below().saturating_add(LOST_RESERVATIONS);
    let sequences = state.sequences_below().saturating_add(LOST_RESERVATIONS);
    Edit {
        changes: vec![
            Change::ReserveIds { below: ids },
            Change::ReserveSequences { below: sequences },
        ],
    }
}

/// Publishes the file of a generation: header and image. It is durable when the call returns.
fn write_generation(
    disk: &dyn Disk,
    dir: &Path,
    generation: u64,
    state: &ManifestState,
    number: u64,
) -> Result<OpenLog> {
    let path = manifest_path(dir, generation);
    let header = Header { generation, store_id: state.store_id() };
    let (mut bytes, header_sum) = header.encode();
    let payload = state.image().encode();
    let image = Record::encode(RecordKind::Image, number, number, header_sum, &payload);
    let (image, checksum) = image.ok_or(Error::MemoryLimit {
        what: "the image of the manifest",
        limit_bytes: super::log::MAX_PAYLOAD_BYTES as u64,
    })?;
    bytes.extend_from_slice(&image);
    publish(disk, &path, Fsync::Now, |file| {
        file.append(&bytes).map_err(|e| Error::io("append", &path, e))
    })?;
    let file = disk.open_append(&path)?;
    let image_bytes = bytes.len() as u64;
    Ok(OpenLog { file, path, generation, image_bytes, number, checksum })
}
