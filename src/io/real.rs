//! The disk of the operating system.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::Path;
use std::sync::Arc;

use super::disk::{
    DirEntry, Disk, FileSync, FileWriter, LockGuard, ReadAt, is_not_found, parent_dir,
};
use crate::{Error, Result};

/// Longest text read from a lock file to name its holder.
const MAX_HOLDER_BYTES: u64 = 64;
/// How often a lock that is held is tried again, and how long each try waits.
const LOCK_TRIES: u32 = 3;
const LOCK_PAUSE: std::time::Duration = std::time::Duration::from_millis(2);

/// Files through `std::fs`; paths are passed to the system as they are.
#[derive(Debug, Clone, Copy, Default)]
pub struct RealDisk;

impl RealDisk {
    /// The disk of the operating system.
    pub fn new() -> RealDisk {
        RealDisk
    }
}

/// Names action and path of a failure.
fn named<T>(action: &'static str, path: &Path, result: io::Result<T>) -> Result<T> {
    result.map_err(|e| Error::io(action, path, e))
}

impl Disk for RealDisk {
    fn create(&self, path: &Path) -> Result<Box<dyn FileWriter>> {
        let file = OpenOptions::new().write(true).create_new(true).open(path);
        let file = Arc::new(named("create", path, file)?);
        Ok(Box::new(RealWriter { file, len: 0, torn: false }))
    }

    fn open_append(&self, path: &Path) -> Result<Box<dyn FileWriter>> {
        let file = named("open", path, OpenOptions::new().write(true).open(path))?;
        let len = named("open", path, file.metadata())?.len();
        Ok(Box::new(RealWriter { file: Arc::new(file), len, torn: false }))
    }

    fn open_read(&self, path: &Path) -> Result<Arc<dyn ReadAt>> {
        let file = named("open", path, File::open(path))?;
        // Opening a directory for reading succeeds on some systems and fails at the first read.
        if named("open", path, file.metadata())?.is_dir() {
            return Err(Error::io("open", path, io::ErrorKind::IsADirectory.into()));
        }
        Ok(Arc::new(RealFile { file }))
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        named("rename", from, fs::rename(from, to))
    }

    fn hard_link(&self, from: &Path, to: &Path) -> Result<()> {
        named("link", to, fs::hard_link(from, to))
    }

    fn remove_file(&self, path: &Path) -> Result<()> {
        named("remove", path, fs::remove_file(path))
    }

    fn remove_dir(&self, path: &Path) -> Result<()> {
        named("remove", path, fs::remove_dir(path))
    }

    fn create_dir_all(&self, path: &Path) -> Result<()> {
        if path.is_dir() {
            return Ok(());
        }
        let parent = parent_dir(path);
        if path.parent().is_some() {
            self.create_dir_all(&parent)?;
        }
        match fs::create_dir(path) {
            // Another thread was faster; its sync may still be under way, so ours is made too.
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => {}
            made => named("create", path, made)?,
        }
        self.sync_dir(&parent)
    }

    fn list(&self, dir: &Path) -> Result<Vec<DirEntry>> {
        let mut entries = Vec::new();
        for entry in named("list", dir, fs::read_dir(dir))? {
            let entry = named("list", dir, entry)?;
            let meta = match entry.metadata() {
                Ok(meta) => meta,
                // Removed between the listing and the look at it.
                Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
                Err(e) => return Err(Error::io("list", &entry.path(), e)),
            };
            let is_dir = meta.is_dir();
            entries.push(DirEntry {
                name: entry.file_name().to_string_lossy().into_owned(),
                len: if is_dir { 0 } else { meta.len() },
                is_dir,
            });
        }
        entries.sort();
        Ok(entries)
    }

    #[cfg(unix)]
    fn sync_dir(&self, dir: &Path) -> Result<()> {
        named("sync", dir, File::open(dir).and_then(|d| d.sync_all()))
    }

    /// Directories cannot be synced here; the system orders changes of names itself.
    #[cfg(not(unix))]
    fn sync_dir(&self, _dir: &Path) -> Result<()> {
        Ok(())
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn LockGuard>> {
        let mut open = OpenOptions::new();
        open.read(true).write(true).create(true).truncate(false);
        let mut file = named("open", path, open.open(path))?;
        let mut locked = file.try_lock();
        for _ in 0..LOCK_TRIES {
            if !matches!(locked, Err(TryLockError::WouldBlock)) {
                break;
            }
            // Somebody may only be asking whether it is locked.
            std::thread::sleep(LOCK_PAUSE);
            locked = file.try_lock();
        }
        match locked {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let holder = read_holder(&mut file);
                return Err(Error::Locked { path: parent_dir(path), holder });
            }
            Err(TryLockError::Error(e)) => return Err(Error::io("lock", path, e)),
        }
        let text = format!("pid {}", std::process::id());
        let written = file.set_len(0).and_then(|()| file.write_all(text.as_bytes()));
        named("lock", path, written)?;
        Ok(Box::new(RealLock { _file: file }))
    }

    fn is_locked(&self, path: &Path) -> Result<bool> {
        let file = match named("open", path, File::open(path)) {
            Err(e) if is_not_found(&e) => return Ok(false),
            file => file?,
        };
        match file.try_lock_shared() {
            Ok(()) => Ok(false),
            Err(TryLockError::WouldBlock) => Ok(true),
            Err(TryLockError::Error(e)) => Err(Error::io("lock", path, e)),
        }
    }

    #[cfg(unix)]
    fn free_space(&self, path: &Path) -> Result<u64> {
        let stat = named("ask free space of", path, rustix::fs::statvfs(path).map_err(Into::into))?;
        Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
    }

    #[cfg(not(unix))]
    fn free_space(&self, _path: &Path) -> Result<u64> {
        Ok(u64::MAX)
    }
}

/// Who holds the lock, as far as the file can be read; empty if not.
fn read_holder(file: &mut File) -> String {
    let mut text = Vec::new();
    let read = file.rewind().and_then(|()| file.take(MAX_HOLDER_BYTES).read_to_end(&mut text));
    match read {
        Ok(_) => String::from_utf8_lossy(&text).trim().to_owned(),
        Err(_) => String::new(),
    }
}

/// The lock ends when the descriptor is closed, also by the death of the process.
#[derive(Debug)]
struct RealLock {
    _file: File,
}

impl LockGuard for RealLock {}

#[derive(Debug)]
struct RealFile {
    file: File,
}

impl ReadAt for RealFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<usize> {
        match self.read_some(offset, buf) {
            // Systems refuse offsets beyond the largest file; for a reader that is the end.
            Err(e) if e.kind() == io::ErrorKind::InvalidInput && offset >= self.len()? => Ok(0),
            read => read,
        }
    }
}

impl RealFile {
    #[cfg(unix)]
    fn read_some(&self, offset: u64, buf: &mut [u8]) -> io::Result<usize> {
        std::os::unix::fs::FileExt::read_at(&self.file, buf, offset)
    }

    #[cfg(windows)]
    fn read_some(&self, offset: u64, buf: &mut [u8]) -> io::Result<usize> {
        std::os::windows::fs::FileExt::seek_read(&self.file, buf, offset)
    }
}

/// Writes at its own offset, so that torn bytes behind it can never shift later ones.
#[derive(Debug)]
struct RealWriter {
    file: Arc<File>,
    len: u64,
    torn: bool,
}

impl RealWriter {
    #[cfg(unix)]
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<usize> {
        std::os::unix::fs::FileExt::write_at(self.file.as_ref(), bytes, offset)
    }

    #[cfg(windows)]
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<usize> {
        std::os::windows::fs::FileExt::seek_write(self.file.as_ref(), bytes, offset)
    }

    fn write_all_at(&self, mut offset: u64, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.write_at(offset, bytes) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(n) => {
                    offset += n as u64;
                    bytes = bytes.get(n..).unwrap_or(&[]);
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }
}

/// Shares the descriptor of a writer, so that a failure to write back is told to one of the two.
#[derive(Debug)]
struct RealSync {
    file: Arc<File>,
}

impl FileSync for RealSync {
    fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }
}

/// The refusal of an append behind a torn one.
pub(super) fn torn_error() -> io::Error {
    io::Error::other("an earlier append failed and has not been taken back")
}

impl FileWriter for RealWriter {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.torn {
            return Err(torn_error());
        }
        if let Err(e) = self.write_all_at(self.len, bytes) {
            self.torn = true;
            return Err(e);
        }
        self.len += bytes.len() as u64;
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn syncer(&self) -> Arc<dyn FileSync> {
        Arc::new(RealSync { file: Arc::clone(&self.file) })
    }

    fn truncate(&mut self, len: u64) -> io::Result<()> {
        if len > self.len {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        self.file.set_len(len)?;
        self.len = len;
        self.torn = false;
        Ok(())
    }

    fn len(&self) -> u64 {
        self.len
    }
}
