//! A bounded number of open files.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Disk, ReadAt};
use crate::Error;
use crate::sync::Mutex;

/// Opens files for reading on first use and keeps the descriptors of the latest used ones.
///
/// A store may have 10,000 parts where a process may have 1,024 descriptors. A file that was
/// removed stays readable only while its descriptor is held, so whoever removes files must do so
/// after their last reader.
pub(crate) struct DescriptorCache {
    disk: Arc<dyn Disk>,
    limit: usize,
    open: Mutex<Open>,
}

#[derive(Default)]
struct Open {
    files: HashMap<PathBuf, (Arc<dyn ReadAt>, u64)>,
    uses: u64,
}

impl DescriptorCache {
    /// At most `limit` files are held open between reads.
    pub(crate) fn new(disk: Arc<dyn Disk>, limit: usize) -> Arc<DescriptorCache> {
        Arc::new(DescriptorCache { disk, limit: limit.max(1), open: Mutex::default() })
    }

    /// The file at `path`, opened when first read.
    pub(crate) fn file(self: &Arc<Self>, path: PathBuf) -> Arc<dyn ReadAt> {
        Arc::new(CachedFile { cache: Arc::clone(self), path })
    }

    /// Closes the file at `path` if it is held open.
    pub(crate) fn forget(&self, path: &Path) {
        self.open.lock().files.remove(path);
    }

    fn get(&self, path: &Path) -> io::Result<Arc<dyn ReadAt>> {
        let mut open = self.open.lock();
        open.uses += 1;
        let now = open.uses;
        if let Some((file, used)) = open.files.get_mut(path) {
            *used = now;
            return Ok(Arc::clone(file));
        }
        let file = self.disk.open_read(path).map_err(|e| match e {
            Error::Io { source, .. } => source,
            other => io::Error::other(other.to_string()),
        })?;
        if open.files.len() >= self.limit {
            let oldest = open.files.iter().min_by_key(|(_, (_, used))| *used);
            if let Some(oldest) = oldest.map(|(path, _)| path.clone()) {
                open.files.remove(&oldest);
            }
        }
        open.files.insert(path.to_path_buf(), (Arc::clone(&file), now));
        Ok(file)
    }
}

impl fmt::Debug for DescriptorCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DescriptorCache({} of {})", self.open.lock().files.len(), self.limit)
    }
}

#[derive(Debug)]
struct CachedFile {
    cache: Arc<DescriptorCache>,
    path: PathBuf,
}

impl ReadAt for CachedFile {
    fn len(&self) -> io::Result<u64> {
        self.cache.get(&self.path)?.len()
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<usize> {
        self.cache.get(&self.path)?.read_at(offset, buf)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::{SimDisk, read_vec_at};

    #[test]
    fn more_files_than_descriptors() {
        let disk: Arc<dyn Disk> = Arc::new(SimDisk::new());
        let root = Path::new("/d");
        disk.create_dir_all(root).unwrap();
        for i in 0..10u8 {
            disk.create(&root.join(i.to_string())).unwrap().append(&[i]).unwrap();
        }
        let cache = DescriptorCache::new(Arc::clone(&disk), 3);
        let files: Vec<_> = (0..10u8).map(|i| cache.file(root.join(i.to_string()))).collect();
        for _ in 0..2 {
            for (i, file) in (0u8..).zip(&files) {
                assert_eq!(read_vec_at(file.as_ref(), 0, 1).unwrap(), [i]);
            }
        }
        assert_eq!(cache.open.lock().files.len(), 3);
        let missing = cache.file(root.join("none")).len().unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
    }
}
