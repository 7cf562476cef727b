//! Choosing and reading the manifest files of a directory.

use std::fmt;
use std::io;
use std::path::Path;

use super::edit::{Change, Edit, StoreId};
use super::log::{HEADER_BYTES, Header, HeaderError, Next, Position, RecordKind, next};
use super::names::{FileKind, classify, manifest_path};
use super::state::ManifestState;
use crate::error::Corruption;
use crate::io::{Disk, ReadAt, is_not_found, read_vec_at};
use crate::{Error, Result};

/// The longest manifest file that is read.
const MAX_FILE_BYTES: u64 = 1 << 30;
/// How often a reader looks again when the writer exchanged the file under its hands.
const MAX_LOOKS: usize = 10;

/// What opening a manifest met with.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ManifestReport {
    /// The generation in use.
    pub(crate) generation: u64,
    /// Edits read behind the image.
    pub(crate) edits: u64,
    /// Bytes of a torn last record (or torn unsynced ones) that were dropped.
    pub(crate) dropped_bytes: u64,
    /// Optional changes of unknown kinds that were passed over.
    pub(crate) skipped_changes: u64,
    /// Parts listed by edits that may not have been synced before a loss of power. Where such a
    /// file is missing or torn, nothing that was promised is lost.
    pub(crate) unsynced_parts: Vec<u64>,
    /// Set when the newest manifest was damaged and something older is in use.
    pub(crate) fallback: Option<Fallback>,
}

/// Opening on something else than the newest manifest as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fallback {
    /// The damage of the newest manifest.
    pub(crate) damage: Corruption,
    /// What is used in its place.
    pub(crate) to: FallbackTo,
}

/// What is used in place of a damaged manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FallbackTo {
    /// The edits of the same file that come before the damage.
    EditsBefore,
    /// The previous generation.
    Previous(u64),
}

impl fmt::Display for FallbackTo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FallbackTo::EditsBefore => f.write_str("the edits before the damage"),
            FallbackTo::Previous(generation) => write!(f, "MANIFEST-{generation}"),
        }
    }
}

/// A manifest as read.
#[derive(Debug)]
pub(super) struct Loaded {
    pub(super) state: ManifestState,
    pub(super) report: ManifestReport,
    pub(super) position: Position,
    /// Bytes of the header and the image.
    pub(super) image_bytes: u64,
    /// The number of the last edit that was to be durable before its writer went on.
    pub(super) last_synced: u64,
    /// The highest generation of which there is a file.
    pub(super) newest: u64,
}

/// One file as read: what its good records add up to, and how it ends.
struct Scanned {
    loaded: Loaded,
    damage: Option<Corruption>,
}

/// The generations of the manifest files in a directory, rising.
pub(super) fn generations(disk: &dyn Disk, dir: &Path) -> Result<Vec<u64>> {
    let mut found = Vec::new();
    for entry in disk.list(dir)? {
        if let (false, FileKind::Manifest(generation)) = (entry.is_dir, classify(&entry.name)) {
            found.push(generation);
        }
    }
    found.sort_unstable();
    Ok(found)
}

/// Reads the newest manifest of a directory, or what comes closest to it.
///
/// # Errors
/// [`Error::NotAStore`] without any manifest; [`Error::Corrupted`] when neither the newest nor
/// the previous one can be used; [`Error::Unsupported`] when a newer version wrote it.
pub(super) fn load(disk: &dyn Disk, dir: &Path) -> Result<Loaded> {
    let mut looks = 0;
    loop {
        looks += 1;
        match load_once(disk, dir) {
            // A writer published a generation and removed the one that was just listed.
            Err(e) if is_not_found(&e) && looks < MAX_LOOKS => {}
            loaded => return loaded,
        }
    }
}

fn load_once(disk: &dyn Disk, dir: &Path) -> Result<Loaded> {
    let missing = || Error::NotAStore { path: dir.to_path_buf() };
    let found = match generations(disk, dir) {
        Err(e) if is_not_found(&e) => return Err(missing()),
        found => found?,
    };
    let (&newest, older) = found.split_last().ok_or_else(missing)?;
    let path = manifest_path(dir, newest);
    let damage = match scan(&path, newest, &read_file(disk, &path)?)? {
        Ok(Scanned { loaded, damage: None }) => return Ok(loaded),
        // The image is newer than anything that the previous generation says.
        Ok(Scanned { mut loaded, damage: Some(damage) }) => {
            loaded.report.fallback = Some(Fallback { damage, to: FallbackTo::EditsBefore });
            return Ok(loaded);
        }
        Err(damage) => damage,
    };
    let Some(&previous) = older.last() else {
        return Err(hopeless(damage, "and there is no previous one"));
    };
    let previous_path = manifest_path(dir, previous);
    match scan(&previous_path, previous, &read_file(disk, &previous_path)?)? {
        Ok(Scanned { mut loaded, damage: None }) => {
            let to = FallbackTo::Previous(previous);
            loaded.report.fallback = Some(Fallback { damage, to });
            loaded.newest = newest;
            Ok(loaded)
        }
        _ => {
            let also = format!("and so is {}", previous_path.display());
            Err(hopeless(damage, &also))
        }
    }
}

/// The error when nothing is left to open the store with.
fn hopeless(mut damage: Corruption, also: &str) -> Error {
    damage.what = format!(
        "{}, {also}; repair rebuilds a manifest from the part files, which were not touched",
        damage.what
    );
    Error::Corrupted(damage)
}

/// Reads a whole file; a read that fails is tried once more through a fresh descriptor.
fn read_file(disk: &dyn Disk, path: &Path) -> Result<Vec<u8>> {
    let file = disk.open_read(path)?;
    match read_from(file.as_ref(), 0) {
        Ok(bytes) => Ok(bytes),
        Err(_) => {
            let file = disk.open_read(path)?;
            read_from(file.as_ref(), 0).map_err(|e| Error::io("read", path, e))
        }
    }
}

/// The bytes of a file from an offset on; none when the file is shorter.
pub(super) fn read_from(file: &dyn ReadAt, offset: u64) -> io::Result<Vec<u8>> {
    let len = file.len()?;
    if len > MAX_FILE_BYTES {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "longer than any manifest"));
    }
    match read_vec_at(file, offset, len.saturating_sub(offset)) {
        // The writer took back a torn record between the two calls.
        Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => Ok(Vec::new()),
        read => read,
    }
}

/// Reads the records of a file. The inner error is damage of the header or the image, which
/// leaves nothing to use.
fn scan(
    path: &Path,
    generation: u64,
    bytes: &[u8],
) -> Result<std::result::Result<Scanned, Corruption>> {
    let bad = |offset: u64, what: &str| Corruption {
        path: path.to_path_buf(),
        offset,
        what: what.to_owned(),
    };
    let (header, checksum) = match Header::decode(bytes) {
        Ok(decoded) => decoded,
        Err(HeaderError::Malformed(e)) => return Ok(Err(bad(0, e.0))),
        Err(HeaderError::Unsupported(format, features)) => {
            let what = format!("manifest format {format}, features {features:#x}");
            return Err(Error::Unsupported { path: path.to_path_buf(), what });
        }
    };
    if header.generation != generation {
        return Ok(Err(bad(0, "the header names another generation than the file")));
    }
    let mut loaded = Loaded::before_image(header.store_id, generation, checksum);
    match loaded.read_records(path, bytes.get(HEADER_BYTES..).unwrap_or(&[]))? {
        Ended::Whole if loaded.image_bytes > 0 => Ok(Ok(Scanned { loaded, damage: None })),
        Ended::Whole => Ok(Err(bad(HEADER_BYTES as u64, "the image is missing"))),
        Ended::Torn(bytes) => {
            loaded.report.dropped_bytes = bytes;
            Ok(Ok(Scanned { loaded, damage: None }))
        }
        Ended::Damaged(what) => {
            let damage = bad(loaded.position.offset, what);
            if loaded.image_bytes == 0 {
                return Ok(Err(damage));
            }
            Ok(Ok(Scanned { loaded, damage: Some(damage) }))
        }
    }
}

/// How a run of records ended.
pub(super) enum Ended {
    /// With the last byte.
    Whole,
    /// With this many bytes that are no whole record.
    Torn(u64),
    /// With bytes that were whole once.
    Damaged(&'static str),
}

impl Loaded {
    /// Nothing read but the header.
    fn before_image(store_id: StoreId, generation: u64, checksum: u64) -> Loaded {
        let position = Position {
            offset: HEADER_BYTES as u64,
            last_record: 0,
            number: u64::MAX,
            checksum,
            durable: 0,
        };
        Loaded {
            state: ManifestState::new(store_id),
            report: ManifestReport { generation, ..ManifestReport::default() },
            position,
            image_bytes: 0,
            last_synced: 0,
            newest: generation,
        }
    }

    /// Applies the records of `bytes`, which is what follows the position in the file.
    pub(super) fn read_records(&mut self, path: &Path, bytes: &[u8]) -> Result<Ended> {
        let start = self.position.offset;
        // Parts of edits that no later record has called durable, with the edit's number.
        let mut open: Vec<(u64, u64)> = Vec::new();
        let ended = loop {
            let done = usize::try_from(self.position.offset - start).unwrap_or(usize::MAX);
            let rest = bytes.get(done..).unwrap_or(&[]);
            let before = self.position;
            match next(&mut self.position, rest) {
                Next::End => break Ended::Whole,
                Next::Torn => break Ended::Torn(rest.len() as u64),
                Next::Damaged(e) => break Ended::Damaged(e.0),
                Next::Unknown(kind) => {
                    let what = format!("a change of kind {kind} in the manifest");
                    return Err(Error::Unsupported { path: path.to_path_buf(), what });
                }
                Next::Edit { edit, kind, skipped } => {
                    if let Err(e) = self.state.apply(&edit) {
                        self.position = before;
                        break Ended::Damaged(e.0);
                    }
                    self.report.skipped_changes += skipped;
                    self.report.edits += u64::from(kind != RecordKind::Image);
                    match kind {
                        RecordKind::Image => {
                            self.image_bytes = self.position.offset;
                            self.last_synced = self.position.number;
                        }
                        RecordKind::Synced => self.last_synced = self.position.number,
                        RecordKind::Later => {
                            open.extend(added(&edit).map(|id| (self.position.number, id)));
                        }
                    }
                }
            }
        };
        let durable = self.position.durable;
        let unsynced = open.into_iter().filter(|(number, _)| *number > durable).map(|(_, id)| id);
        self.report.unsynced_parts = unsynced.filter(|&id| self.state.part(id).is_some()).collect();
        Ok(ended)
    }
}

/// The parts that an edit lists.
fn added(edit: &Edit) -> impl Iterator<Item = u64> {
    edit.changes.iter().filter_map(|change| match change {
        Change::AddPart(part) => Some(part.part_id),
        _ => None,
    })
}
