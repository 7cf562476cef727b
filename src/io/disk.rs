//! The traits of a disk, and the helpers that work on any of them.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::{Error, Result};

/// What a directory holds under one name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct DirEntry {
    /// The last component of the path; a name that is not UTF-8 shows U+FFFD.
    pub name: String,
    /// Length in bytes; 0 for a directory.
    pub len: u64,
    /// Whether it is a directory.
    pub is_dir: bool,
}

/// A file system, as much of it as a store needs.
///
/// Failures are [`Error::Io`] with the action and the path.
pub trait Disk: fmt::Debug + Send + Sync {
    /// Creates a new empty file for appending; fails if the name exists.
    fn create(&self, path: &Path) -> Result<Box<dyn FileWriter>>;

    /// Opens an existing file for appending at its end.
    fn open_append(&self, path: &Path) -> Result<Box<dyn FileWriter>>;

    /// Opens an existing file for positioned reads.
    fn open_read(&self, path: &Path) -> Result<Arc<dyn ReadAt>>;

    /// Renames a file, replacing what stands at `to` (unless that is the same file). Across
    /// directories, the directory of `to` is to be synced before that of `from`.
    fn rename(&self, from: &Path, to: &Path) -> Result<()>;

    /// Gives a file a second name; fails if `to` exists.
    fn hard_link(&self, from: &Path, to: &Path) -> Result<()>;

    /// Removes a file's name. Open readers keep reading, except where the system refuses the
    /// removal of an open file: then this fails and is to be tried again later.
    fn remove_file(&self, path: &Path) -> Result<()>;

    /// Removes an empty directory.
    fn remove_dir(&self, path: &Path) -> Result<()>;

    /// Creates a directory and its missing ancestors, durable when the call returns.
    fn create_dir_all(&self, path: &Path) -> Result<()>;

    /// What a directory holds, sorted by name.
    fn list(&self, dir: &Path) -> Result<Vec<DirEntry>>;

    /// Makes the names in a directory durable: creations, renames and removals so far.
    fn sync_dir(&self, dir: &Path) -> Result<()>;

    /// Takes the lock file at `path`, creating it if need be; it is never deleted.
    ///
    /// Fails with [`Error::Locked`], naming the holder, while another guard of this or another
    /// process lives.
    fn lock(&self, path: &Path) -> Result<Box<dyn LockGuard>>;

    /// Whether another holds the lock of [`lock`](Disk::lock). Writes nothing.
    fn is_locked(&self, path: &Path) -> Result<bool>;

    /// Bytes free for writing on the file system of `path`; `u64::MAX` where unknown.
    fn free_space(&self, path: &Path) -> Result<u64>;
}

/// A file that grows at its end.
pub trait FileWriter: fmt::Debug + Send {
    /// Appends all of `bytes`.
    ///
    /// After an error the file may hold a part of them; every further append fails until
    /// [`truncate`](FileWriter::truncate) has taken that part back.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Makes all appended bytes durable. After an error nothing may be assumed about bytes
    /// appended since the last success, whatever a later sync says.
    fn sync(&mut self) -> io::Result<()>;

    /// A handle that syncs the file while others append to it.
    fn syncer(&self) -> Arc<dyn FileSync>;

    /// Cuts the file to `len` bytes (at most [`len`](FileWriter::len)).
    fn truncate(&mut self, len: u64) -> io::Result<()>;

    /// Bytes of all appends that succeeded.
    fn len(&self) -> u64;

    /// Whether the file has no bytes.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Makes the bytes of an open file durable, also while they are being appended to.
pub trait FileSync: fmt::Debug + Send + Sync {
    /// Makes all bytes durable whose append returned before the call. After an error nothing may
    /// be assumed about bytes appended since the last success, whatever a later sync says.
    fn sync(&self) -> io::Result<()>;
}

/// A file open for positioned reads; the open file survives rename and removal of its name.
pub trait ReadAt: fmt::Debug + Send + Sync {
    /// The length of the file now, in bytes.
    fn len(&self) -> io::Result<u64>;

    /// Whether the file has no bytes now.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Reads up to `buf.len()` bytes at `offset`; 0 bytes mean the end of the file.
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<usize>;
}

/// Holds a lock file until dropped.
pub trait LockGuard: fmt::Debug + Send + Sync {}

/// Bytes in memory that read like a file.
#[derive(Clone)]
pub struct MemoryFile(Arc<[u8]>);

impl MemoryFile {
    /// A file that holds `bytes`.
    pub fn new(bytes: impl Into<Arc<[u8]>>) -> MemoryFile {
        MemoryFile(bytes.into())
    }

    /// The bytes of the file.
    pub fn bytes(&self) -> &Arc<[u8]> {
        &self.0
    }
}

impl fmt::Debug for MemoryFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MemoryFile({} bytes)", self.0.len())
    }
}

impl ReadAt for MemoryFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.len() as u64)
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<usize> {
        Ok(copy_at(&self.0, offset, buf))
    }
}

/// Copies what `bytes` holds from `offset` on into `buf`; the number of bytes copied.
pub(super) fn copy_at(bytes: &[u8], offset: u64, buf: &mut [u8]) -> usize {
    let rest = usize::try_from(offset).ok().and_then(|at| bytes.get(at..)).unwrap_or(&[]);
    let n = rest.len().min(buf.len());
    if let (Some(to), Some(from)) = (buf.get_mut(..n), rest.get(..n)) {
        to.copy_from_slice(from);
    }
    n
}

/// Fills `buf` from `offset` on, repeating interrupted and short reads.
///
/// # Errors
/// `UnexpectedEof` when the file ends before.
pub(crate) fn read_exact_at(file: &dyn ReadAt, offset: u64, buf: &mut [u8]) -> io::Result<()> {
    let mut done = 0usize;
    while let Some(rest) = buf.get_mut(done..).filter(|rest| !rest.is_empty()) {
        let at = offset.checked_add(done as u64).ok_or(io::ErrorKind::UnexpectedEof)?;
        match file.read_at(at, rest) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(n) => done += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

/// Reads `len` bytes at `offset`; the range is checked against the file before memory is taken.
///
/// # Errors
/// `UnexpectedEof` when the file is shorter.
pub(crate) fn read_vec_at(file: &dyn ReadAt, offset: u64, len: u64) -> io::Result<Vec<u8>> {
    let end = offset.checked_add(len).ok_or(io::ErrorKind::UnexpectedEof)?;
    if end > file.len()? {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let len = usize::try_from(len).map_err(|_| io::ErrorKind::OutOfMemory)?;
    let mut buf = vec![0; len];
    read_exact_at(file, offset, &mut buf)?;
    Ok(buf)
}

/// Whether the error says that a file or directory does not exist.
pub(crate) fn is_not_found(error: &Error) -> bool {
    matches!(error, Error::Io { source, .. } if source.kind() == io::ErrorKind::NotFound)
}

/// The directory that holds `path`; `.` for a bare name.
pub(crate) fn parent_dir(path: &Path) -> PathBuf {
    match path.parent() {
        Some(p) if !p.as_os_str().is_empty() => p.to_path_buf(),
        _ => PathBuf::from("."),
    }
}

/// The last component of `path` as text.
pub(crate) fn file_name(path: &Path) -> String {
    path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default()
}
