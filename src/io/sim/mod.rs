//! A disk in memory that behaves like the worst disk allowed.
//!
//! It keeps apart what is in the page cache from what is durable: bytes of a file become durable
//! by `sync`, names by `sync_dir`, and [`SimDisk::crash`] gives the disk as found after a reboot
//! under a [`CrashModel`]. Faults strike at chosen operation numbers. Everything is a function of
//! the operations and the seeds, so that a failing sweep can be repeated.

mod crash;
mod file;
mod state;
#[cfg(test)]
mod tests;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use crash::{CrashModel, DataDamage, EntryDamage};
use file::{SimFile, SimLock, SimWriter};
use state::State;

use super::disk::{DirEntry, Disk, FileWriter, LockGuard, ReadAt, parent_dir};
use crate::sync::Mutex;
use crate::{Error, Result};

/// What goes wrong with an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The system reports an I/O error; a failed sync leaves its bytes lost at a crash.
    Io,
    /// The system reports that no space is left.
    NoSpace,
    /// An append writes half of its bytes and fails; a read gives half of the bytes asked for.
    Short,
    /// The operation is interrupted before it did anything; never twice in a row.
    Interrupted,
    /// The machine stops: this operation and all later ones fail. An append that is struck may
    /// have reached the disk whole, in part or not at all, as the crash model says.
    Crash,
}

/// The kind of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum OpKind {
    /// [`Disk::create`].
    Create,
    /// [`Disk::open_append`] and [`Disk::open_read`].
    Open,
    /// [`ReadAt::read_at`].
    Read,
    /// [`FileWriter::append`].
    Append,
    /// [`FileWriter::sync`].
    Sync,
    /// [`FileWriter::truncate`].
    Truncate,
    /// [`Disk::rename`].
    Rename,
    /// [`Disk::hard_link`].
    Link,
    /// [`Disk::remove_file`] and [`Disk::remove_dir`].
    Remove,
    /// [`Disk::create_dir_all`] of a directory that is missing.
    CreateDir,
    /// [`Disk::list`].
    List,
    /// [`Disk::sync_dir`].
    SyncDir,
    /// [`Disk::lock`].
    Lock,
}

impl OpKind {
    /// Whether the operation can change what a crash leaves behind.
    pub fn is_mutation(self) -> bool {
        !matches!(self, OpKind::Open | OpKind::Read | OpKind::List)
    }
}

/// One operation of the trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Op {
    /// What was done.
    pub kind: OpKind,
    /// To which path.
    pub path: PathBuf,
    /// Bytes appended, asked for by a read, or kept by a truncation; else 0.
    pub len: u64,
}

/// A deterministic disk in memory; clones are handles to the same disk.
///
/// Paths are taken lexically; the roots `/` and `.` exist.
#[derive(Clone)]
pub struct SimDisk {
    shared: Arc<Mutex<State>>,
}

impl fmt::Debug for SimDisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.shared.lock();
        write!(f, "SimDisk({} files, {} operations)", state.names.len(), state.trace.len())
    }
}

impl Default for SimDisk {
    fn default() -> SimDisk {
        SimDisk::new()
    }
}

impl SimDisk {
    /// An empty disk without limits and faults.
    pub fn new() -> SimDisk {
        SimDisk::with_state(State::new())
    }

    fn with_state(state: State) -> SimDisk {
        SimDisk { shared: Arc::new(Mutex::new(state)) }
    }

    /// Limits the bytes that all files together may hold; appends beyond it write what fits and
    /// fail with `StorageFull`.
    pub fn set_capacity(&self, bytes: u64) {
        self.shared.lock().capacity = Some(bytes);
    }

    /// The number of operations so far, which is the number of the next operation.
    pub fn ops(&self) -> u64 {
        self.shared.lock().trace.len() as u64
    }

    /// All operations so far; the index is the operation number.
    pub fn trace(&self) -> Vec<Op> {
        self.shared.lock().trace.clone()
    }

    /// The operation with number `at` meets `fault`.
    pub fn fail_once(&self, at: u64, fault: Fault) {
        self.shared.lock().rules.push(state::Rule::Once(at, fault));
    }

    /// The operations with number `at` and above meet `fault`.
    pub fn fail_from(&self, at: u64, fault: Fault) {
        self.shared.lock().rules.push(state::Rule::From(at, fault));
    }

    /// The next operation of `kind` on a path that contains `part` meets `fault`.
    pub fn fail_next(&self, kind: OpKind, part: &str, fault: Fault) {
        self.shared.lock().rules.push(state::Rule::Next(kind, part.to_owned(), fault));
    }

    /// Forgets all faults to come; a crash stays.
    pub fn clear_faults(&self) {
        self.shared.lock().rules.clear();
    }

    /// Whether a crash has struck.
    pub fn is_crashed(&self) -> bool {
        self.shared.lock().crashed
    }

    /// The disk as a reboot at this moment would find it; this disk is left as it is, so that
    /// one moment can be looked at under many models. The new disk has the capacity, but no
    /// faults, no locks and no trace.
    pub fn crash(&self, model: CrashModel, seed: u64) -> SimDisk {
        SimDisk::with_state(crash::reboot(&self.shared.lock(), model, seed))
    }

    /// The disk as the next process finds it when this one has died at this moment: what was not
    /// synced is in the cache of the system still, and only there. No faults, no locks, no trace.
    pub fn kill(&self) -> SimDisk {
        SimDisk::with_state(self.shared.lock().without_process())
    }

    /// A copy of the disk with everything durable: a shutdown in good order.
    pub fn fork(&self) -> SimDisk {
        self.crash(CrashModel::KEEP_ALL, 0)
    }

    /// The paths of all files, sorted.
    pub fn files(&self) -> Vec<PathBuf> {
        self.shared.lock().names.keys().cloned().collect()
    }

    /// The bytes of a file, past the operation counter and faults.
    pub fn read_file(&self, path: impl AsRef<Path>) -> Option<Vec<u8>> {
        let state = self.shared.lock();
        let id = state.names.get(&state::normal(path.as_ref()))?;
        state.inodes.get(id).map(|inode| inode.live.clone())
    }

    /// Replaces or creates a file with durable bytes, past the operation counter and faults.
    pub fn write_file(&self, path: impl AsRef<Path>, bytes: &[u8]) {
        self.shared.lock().plant(&state::normal(path.as_ref()), bytes);
    }

    /// Flips the bits of `mask` in the byte at `offset`, in the cache and durably.
    ///
    /// Returns whether there is such a byte.
    pub fn flip(&self, path: impl AsRef<Path>, offset: u64, mask: u8) -> bool {
        self.shared.lock().damage(&state::normal(path.as_ref()), |bytes| {
            let at = usize::try_from(offset).ok();
            let byte = at.and_then(|at| bytes.get_mut(at));
            byte.map(|b| *b ^= mask).is_some()
        })
    }

    /// Cuts a file to `len` bytes, in the cache and durably. Returns whether the file exists.
    pub fn cut(&self, path: impl AsRef<Path>, len: u64) -> bool {
        self.shared.lock().damage(&state::normal(path.as_ref()), |bytes| {
            bytes.truncate(usize::try_from(len).unwrap_or(usize::MAX));
            true
        })
    }

    /// Counts an operation and meets its faults; `run` does it.
    fn operate<T>(
        &self,
        action: &'static str,
        kind: OpKind,
        path: &Path,
        run: impl FnOnce(&mut State, PathBuf) -> io::Result<T>,
    ) -> Result<T> {
        let mut state = self.shared.lock();
        let place = state::normal(path);
        let done = state.begin(kind, &place, 0).and_then(|()| run(&mut state, place));
        done.map_err(|e| Error::io(action, path, e))
    }
}

impl Disk for SimDisk {
    fn create(&self, path: &Path) -> Result<Box<dyn FileWriter>> {
        let id = self.operate("create", OpKind::Create, path, |s, p| s.create(&p))?;
        Ok(Box::new(SimWriter::new(self.clone(), state::normal(path), id, 0)))
    }

    fn open_append(&self, path: &Path) -> Result<Box<dyn FileWriter>> {
        let (id, len) = self.operate("open", OpKind::Open, path, |s, p| s.open(&p))?;
        Ok(Box::new(SimWriter::new(self.clone(), state::normal(path), id, len)))
    }

    fn open_read(&self, path: &Path) -> Result<Arc<dyn ReadAt>> {
        let (id, _) = self.operate("open", OpKind::Open, path, |s, p| s.open(&p))?;
        Ok(Arc::new(SimFile::new(self.clone(), state::normal(path), id)))
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        let to = state::normal(to);
        self.operate("rename", OpKind::Rename, from, |s, p| s.rename(&p, &to))
    }

    fn hard_link(&self, from: &Path, to: &Path) -> Result<()> {
        let from = state::normal(from);
        self.operate("link", OpKind::Link, to, |s, p| s.link(&from, &p))
    }

    fn remove_file(&self, path: &Path) -> Result<()> {
        self.operate("remove", OpKind::Remove, path, |s, p| s.remove_file(&p))
    }

    fn remove_dir(&self, path: &Path) -> Result<()> {
        self.operate("remove", OpKind::Remove, path, |s, p| s.remove_dir(&p))
    }

    fn create_dir_all(&self, path: &Path) -> Result<()> {
        if self.shared.lock().has_dir(&state::normal(path)) {
            return Ok(());
        }
        self.operate("create", OpKind::CreateDir, path, |s, p| s.create_dir_all(&p))
    }

    fn list(&self, dir: &Path) -> Result<Vec<DirEntry>> {
        self.operate("list", OpKind::List, dir, |s, p| s.list(&p))
    }

    fn sync_dir(&self, dir: &Path) -> Result<()> {
        self.operate("sync", OpKind::SyncDir, dir, |s, p| s.sync_dir(&p))
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn LockGuard>> {
        let taken = self.operate("lock", OpKind::Lock, path, |s, p| s.lock(&p))?;
        if !taken {
            let holder = self.read_file(path).unwrap_or_default();
            let holder = String::from_utf8_lossy(&holder).into_owned();
            return Err(Error::Locked { path: parent_dir(path), holder });
        }
        Ok(Box::new(SimLock::new(self.clone(), state::normal(path))))
    }

    fn is_locked(&self, path: &Path) -> Result<bool> {
        Ok(self.shared.lock().locks.contains(&state::normal(path)))
    }

    fn free_space(&self, _path: &Path) -> Result<u64> {
        let state = self.shared.lock();
        Ok(state.capacity.map_or(u64::MAX, |cap| cap.saturating_sub(state.used())))
    }
}
