//! Open files and locks of a simulated disk.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use super::state::error_of;
use super::{Fault, OpKind, SimDisk};
use crate::io::disk::{FileSync, FileWriter, LockGuard, ReadAt, copy_at};
use crate::io::real::torn_error;

/// An open file for reading.
pub(super) struct SimFile {
    disk: SimDisk,
    path: PathBuf,
    id: u64,
}

impl SimFile {
    pub(super) fn new(disk: SimDisk, path: PathBuf, id: u64) -> SimFile {
        SimFile { disk, path, id }
    }
}

impl fmt::Debug for SimFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SimFile({})", self.path.display())
    }
}

impl ReadAt for SimFile {
    fn len(&self) -> io::Result<u64> {
        let state = self.disk.shared.lock();
        if state.crashed {
            return Err(error_of(Fault::Crash));
        }
        let inode = state.inodes.get(&self.id).ok_or(io::ErrorKind::NotFound)?;
        Ok(inode.live.len() as u64)
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<usize> {
        let mut state = self.disk.shared.lock();
        let fault = state.meet(OpKind::Read, &self.path, buf.len() as u64);
        let wanted = match fault {
            None => buf.len(),
            Some(Fault::Short) => buf.len().div_ceil(2),
            Some(fault) => return Err(error_of(fault)),
        };
        let inode = state.inodes.get(&self.id).ok_or(io::ErrorKind::NotFound)?;
        Ok(copy_at(&inode.live, offset, buf.get_mut(..wanted).unwrap_or(&mut [])))
    }
}

/// An open file for appending.
pub(super) struct SimWriter {
    disk: SimDisk,
    path: PathBuf,
    id: u64,
    len: u64,
    torn: bool,
}

impl SimWriter {
    pub(super) fn new(disk: SimDisk, path: PathBuf, id: u64, len: u64) -> SimWriter {
        SimWriter { disk, path, id, len, torn: false }
    }

    fn handle(&self) -> SimSync {
        SimSync { disk: self.disk.clone(), path: self.path.clone(), id: self.id }
    }
}

impl fmt::Debug for SimWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SimWriter({}, {} bytes)", self.path.display(), self.len)
    }
}

impl FileWriter for SimWriter {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.torn {
            return Err(torn_error());
        }
        let mut state = self.disk.shared.lock();
        let was_crashed = state.crashed;
        let fault = state.meet(OpKind::Append, &self.path, bytes.len() as u64);
        let room = state.capacity.map_or(u64::MAX, |cap| cap.saturating_sub(state.used()));
        let room = usize::try_from(room).unwrap_or(usize::MAX);
        let (written, error) = match fault {
            None if bytes.len() > room => (room, Some(Fault::NoSpace)),
            None => (bytes.len(), None),
            Some(Fault::Short) => ((bytes.len() / 2).min(room), Some(Fault::Short)),
            // What is in flight when the machine stops is for the crash model to decide.
            Some(Fault::Crash) if !was_crashed => (bytes.len().min(room), Some(Fault::Crash)),
            Some(fault) => (0, Some(fault)),
        };
        let inode = state.inodes.get_mut(&self.id).ok_or(io::ErrorKind::NotFound)?;
        if let Some(part) = bytes.get(..written).filter(|part| !part.is_empty()) {
            inode.append(part);
        }
        match error {
            Some(fault) => {
                self.torn = true;
                Err(error_of(fault))
            }
            None => {
                self.len += bytes.len() as u64;
                Ok(())
            }
        }
    }

    fn sync(&mut self) -> io::Result<()> {
        self.handle().sync()
    }

    fn syncer(&self) -> Arc<dyn FileSync> {
        Arc::new(self.handle())
    }

    fn truncate(&mut self, len: u64) -> io::Result<()> {
        if len > self.len {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let mut state = self.disk.shared.lock();
        state.begin(OpKind::Truncate, &self.path, len)?;
        let inode = state.inodes.get_mut(&self.id).ok_or(io::ErrorKind::NotFound)?;
        inode.truncate(usize::try_from(len).map_err(|_| io::ErrorKind::InvalidInput)?);
        self.len = len;
        self.torn = false;
        Ok(())
    }

    fn len(&self) -> u64 {
        self.len
    }
}

/// Syncs a file.
struct SimSync {
    disk: SimDisk,
    path: PathBuf,
    id: u64,
}

impl fmt::Debug for SimSync {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SimSync({})", self.path.display())
    }
}

impl FileSync for SimSync {
    fn sync(&self) -> io::Result<()> {
        let mut state = self.disk.shared.lock();
        let fault = state.meet(OpKind::Sync, &self.path, 0);
        let inode = state.inodes.get_mut(&self.id).ok_or(io::ErrorKind::NotFound)?;
        match fault {
            None | Some(Fault::Short) => {
                inode.sync();
                Ok(())
            }
            Some(Fault::Crash) => Err(error_of(Fault::Crash)),
            Some(fault) => {
                inode.fail_sync();
                Err(error_of(fault))
            }
        }
    }
}

/// A lock that is held.
pub(super) struct SimLock {
    disk: SimDisk,
    path: PathBuf,
}

impl SimLock {
    pub(super) fn new(disk: SimDisk, path: PathBuf) -> SimLock {
        SimLock { disk, path }
    }
}

impl fmt::Debug for SimLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SimLock({})", self.path.display())
    }
}

impl Drop for SimLock {
    fn drop(&mut self) {
        self.disk.shared.lock().locks.remove(&self.path);
    }
}

impl LockGuard for SimLock {}
