//! The files of a store: listing them, and carrying out what recovery decided.

use std::path::{Path, PathBuf};

use super::names::{
    FileKind, QUARANTINE_DIR, classify, day_dir, parse_day_dir, part_path, quarantine_name,
};
use super::recovery::{FoundPart, PartRef, Reconciled};
use super::writer::Manifest;
use crate::Result;
use crate::io::{Disk, Fsync, is_not_found, parent_dir};

/// What lies below the root of a store.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Listing {
    /// The part files in the directories of days.
    pub(crate) parts: Vec<FoundPart>,
    /// Files that were being written when their writer stopped.
    pub(crate) temps: Vec<PathBuf>,
    /// The days that have a directory.
    pub(crate) days: Vec<i32>,
    /// Files in the directories of days that no store makes.
    pub(crate) strangers: Vec<PathBuf>,
}

/// Lists the root and the directory of each day, once.
pub(crate) fn list_files(disk: &dyn Disk, root: &Path) -> Result<Listing> {
    let mut listing = Listing::default();
    for entry in disk.list(root)? {
        if !entry.is_dir {
            if classify(&entry.name) == FileKind::Temp {
                listing.temps.push(root.join(&entry.name));
            }
        } else if let Some(day) = parse_day_dir(&entry.name) {
            list_day(disk, root, day, &mut listing)?;
        }
    }
    Ok(listing)
}

fn list_day(disk: &dyn Disk, root: &Path, day: i32, listing: &mut Listing) -> Result<()> {
    let dir = day_dir(root, day);
    let entries = match disk.list(&dir) {
        // Another process removed a dropped day.
        Err(e) if is_not_found(&e) => return Ok(()),
        entries => entries?,
    };
    listing.days.push(day);
    for entry in entries {
        match classify(&entry.name) {
            FileKind::Part(part_id) if !entry.is_dir => {
                let place = PartRef { day, part_id };
                listing.parts.push(FoundPart { place, length: entry.len });
            }
            FileKind::Temp if !entry.is_dir => listing.temps.push(dir.join(&entry.name)),
            _ => listing.strangers.push(dir.join(&entry.name)),
        }
    }
    Ok(())
}

/// Carries out what [`reconcile`](super::reconcile) decided: makes the edit durable, moves files
/// to quarantine, removes needless ones, and the temporary files of the listing.
///
/// Removals that fail are left to the next opening; everything else that fails is an error, and
/// can be repeated. A file that is adopted is not synced here: the caller does that before, where
/// it may have been written without.
pub(crate) fn carry_out(
    disk: &dyn Disk,
    root: &Path,
    manifest: &mut Manifest,
    decided: &Reconciled,
    listing: &Listing,
) -> Result<()> {
    manifest.append(&decided.edit, Fsync::Now)?;
    for file in &decided.quarantine {
        let PartRef { day, part_id } = file.place;
        set_aside(disk, root, &part_path(root, day, part_id), &quarantine_name(day, part_id))?;
    }
    for file in &decided.remove {
        let _ = disk.remove_file(&part_path(root, file.place.day, file.place.part_id));
    }
    for temp in &listing.temps {
        let _ = disk.remove_file(temp);
    }
    let mut days: Vec<i32> = decided.remove.iter().map(|file| file.place.day).collect();
    days.sort_unstable();
    days.dedup();
    days.into_iter().try_for_each(|day| disk.sync_dir(&day_dir(root, day)))
}

/// Moves a file that cannot be used to the quarantine, durably: to `name`, or that with a number
/// if it is taken. Gives the new path.
///
/// # Errors
/// Those of the disk; that of renaming if there is no such file.
pub(crate) fn set_aside(disk: &dyn Disk, root: &Path, from: &Path, name: &str) -> Result<PathBuf> {
    let quarantine = root.join(QUARANTINE_DIR);
    disk.create_dir_all(&quarantine)?;
    let taken = disk.list(&quarantine)?;
    let mut free = name.to_owned();
    let mut attempt = 0u32;
    while taken.iter().any(|entry| entry.name == free) {
        attempt += 1;
        free = format!("{name}.{attempt}");
    }
    let to = quarantine.join(free);
    disk.rename(from, &to)?;
    disk.sync_dir(&quarantine)?;
    disk.sync_dir(&parent_dir(from))?;
    Ok(to)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::io::SimDisk;
    use crate::manifest::{Change, Edit, Removal, StoreId};

    #[test]
    fn files_are_listed_moved_and_removed() {
        let root = Path::new("/s");
        let disk = SimDisk::new();
        let mut manifest =
            Manifest::create(Arc::new(disk.clone()), root, StoreId([1; 16])).unwrap();
        let names = [
            "19700101/0000000000000001.part",
            "19700101/0000000000000002.part",
            "19700101/0000000000000003.part.tmp",
            "19700101/notes.txt",
            "19700102/0000000000000004.part",
            "MANIFEST-2.tmp",
            "journal/1",
            "quarantine/19700102-0000000000000004.part",
        ];
        names.iter().for_each(|name| disk.write_file(root.join(name), name.as_bytes()));
        let listing = list_files(&disk, root).unwrap();
        let places: Vec<_> = listing.parts.iter().map(|f| (f.place.day, f.place.part_id)).collect();
        assert_eq!(places, [(0, 1), (0, 2), (1, 4)]);
        assert_eq!(listing.days, [0, 1]);
        assert_eq!(listing.strangers, [root.join("19700101/notes.txt")]);
        assert_eq!(listing.temps.len(), 2);
        let file = |day, part_id| Removal { place: PartRef { day, part_id }, why: "test".into() };
        let decided = Reconciled {
            edit: Edit::of(Change::ReserveIds { below: 9 }),
            remove: vec![file(0, 1)],
            quarantine: vec![file(1, 4)],
            ..Reconciled::default()
        };
        carry_out(&disk, root, &mut manifest, &decided, &listing).unwrap();
        assert_eq!(manifest.state().ids_below(), 9);
        let want = [
            "19700101/0000000000000002.part",
            "19700101/notes.txt",
            "MANIFEST-1",
            "journal/1",
            "quarantine/19700102-0000000000000004.part",
            "quarantine/19700102-0000000000000004.part.1",
        ];
        let durable = disk.crash(crate::io::CrashModel::LOSE_ALL, 0);
        // Temporary files may come back, and go the next time.
        let mut files = durable.files();
        files.retain(|path| !path.to_string_lossy().ends_with(".tmp"));
        assert_eq!(files, want.map(|name| root.join(name)));
    }
}
