//! How a file comes to exist: whole, or not at all.

use std::path::{Path, PathBuf};

use super::disk::{Disk, FileWriter, is_not_found, parent_dir};
use crate::{Error, Result};

/// The end of the name of a file that is still being written; recovery removes such files.
pub(crate) const TEMP_SUFFIX: &str = ".tmp";

/// When bytes and names are to be durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fsync {
    /// When the call returns.
    Now,
    /// When the caller syncs later: survives the death of the process, not loss of power.
    Later,
}

/// The name under which `path` is written before it is published.
pub(crate) fn temp_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(TEMP_SUFFIX);
    PathBuf::from(name)
}

/// Writes a file under a temporary name, syncs it, renames it to `path` and syncs the directory;
/// gives what `write` gave.
///
/// When it fails, `path` is as it was and the temporary file is removed if the disk allows; only
/// a failing sync of the directory leaves it open which of the two a crash would show.
pub(crate) fn publish<T>(
    disk: &dyn Disk,
    path: &Path,
    fsync: Fsync,
    write: impl FnOnce(&mut dyn FileWriter) -> Result<T>,
) -> Result<T> {
    let temp = temp_path(path);
    let mut file = create_temp(disk, &temp)?;
    let written = write(file.as_mut()).and_then(|value| {
        if fsync == Fsync::Now {
            file.sync().map_err(|e| Error::io("sync", &temp, e))?;
        }
        Ok(value)
    });
    // Some systems refuse to rename an open file.
    drop(file);
    let renamed = written.and_then(|value| disk.rename(&temp, path).map(|()| value));
    match renamed {
        Ok(value) => {
            if fsync == Fsync::Now {
                disk.sync_dir(&parent_dir(path))?;
            }
            Ok(value)
        }
        Err(error) => {
            // The first failure is the one to report; recovery removes what stays.
            let _ = disk.remove_file(&temp);
            Err(error)
        }
    }
}

/// Creates the temporary file, in place of one that an earlier attempt left.
fn create_temp(disk: &dyn Disk, temp: &Path) -> Result<Box<dyn FileWriter>> {
    match disk.remove_file(temp) {
        Err(e) if !is_not_found(&e) => return Err(e),
        _ => {}
    }
    disk.create(temp)
}
