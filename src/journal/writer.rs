//! Appending to the journal.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::io::{Disk, FileWriter, file_name};

use super::segment::{HEADER_LEN, Kind, RecordHeader, SegmentHeader, encode_record, segment_path};

/// Where damaged segments go.
const QUARANTINE: &str = "quarantine";
/// A segment is sealed when it is longer than this.
const SEGMENT_LEN_TARGET: u64 = 64 << 20;

/// The writing end of the journal.
///
/// Nothing is ever appended behind a failed append: the bytes of a failed one are cut off again,
/// and where that fails too a new segment begins, whose header says how much of the one before
/// is valid.
#[derive(Debug)]
pub(crate) struct Journal {
    disk: Arc<dyn Disk>,
    root: PathBuf,
    store_id: u128,
    current: Option<Current>,
    next_segment: u64,
    previous_len: u64,
    sealed: VecDeque<Sealed>,
    scratch: Vec<u8>,
}

#[derive(Debug)]
struct Current {
    segment: u64,
    file: Box<dyn FileWriter>,
    len: u64,
    last_sequence: u64,
    synced: u64,
}

/// A segment that takes no more records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sealed {
    /// Its number.
    pub(crate) segment: u64,
    /// Its valid length in bytes.
    pub(crate) len: u64,
    /// The sequence of its last row; 0 without rows.
    pub(crate) last_sequence: u64,
    /// Whether bytes of it are bad: it is set aside, not removed.
    pub(crate) damaged: bool,
}

impl Journal {
    /// Continues behind the segments that replay found. Creates no file before the first append.
    pub(crate) fn new(
        disk: Arc<dyn Disk>,
        root: PathBuf,
        store_id: u128,
        found: Vec<Sealed>,
    ) -> Journal {
        let next_segment = found.last().map_or(1, |s| s.segment + 1);
        let previous_len = found.last().map_or(0, |s| s.len);
        Journal {
            disk,
            root,
            store_id,
            current: None,
            next_segment,
            previous_len,
            sealed: found.into(),
            scratch: Vec::new(),
        }
    }

    /// Appends a batch that [`encode`](super::encode) made; it survives the death of the process
    /// when the call returns, and power loss after the next [`sync`](Journal::sync).
    ///
    /// # Errors
    /// After an error the batch is not in the journal.
    pub(crate) fn append(&mut self, sequence: u64, rows: u32, payload: &[u8]) -> Result<()> {
        self.append_record(Kind::Batch, sequence, rows, payload)?;
        if let Some(current) = &mut self.current {
            current.last_sequence = sequence + u64::from(rows.max(1)) - 1;
        }
        Ok(())
    }

    /// Says that the store was closed: from here on a bad record is damage, not a torn write.
    pub(crate) fn append_close(&mut self) -> Result<()> {
        if self.current.is_none() {
            return Ok(());
        }
        self.append_record(Kind::Close, 0, 0, &[])?;
        self.sync()
    }

    /// Makes everything appended so far survive power loss.
    pub(crate) fn sync(&mut self) -> Result<()> {
        let dirty = |c: &&mut Current| c.synced < c.len;
        let Some(current) = self.current.as_mut().filter(dirty) else { return Ok(()) };
        current
            .file
            .sync()
            .map_err(|e| Error::io("sync", &segment_path(&self.root, current.segment), e))?;
        current.synced = current.len;
        Ok(())
    }

    /// Bytes in all segments.
    pub(crate) fn len_bytes(&self) -> u64 {
        let sealed: u64 = self.sealed.iter().map(|s| s.len).sum();
        sealed + self.current.as_ref().map_or(0, |c| c.len)
    }

    /// Removes the segments whose rows are all at or before `sequence`, which parts hold durably.
    /// The segment being written goes too if it is sealed by that (it is long, or `all`).
    pub(crate) fn release(&mut self, sequence: u64, all: bool) -> Result<()> {
        let done = |c: &Current| c.last_sequence <= sequence && c.len > HEADER_LEN as u64;
        if self.current.as_ref().is_some_and(|c| done(c) && (all || c.len > SEGMENT_LEN_TARGET)) {
            self.seal();
        }
        // The newest segment stays: its successor's header speaks of its length.
        while self.sealed.len() > 1 || (all && self.current.is_none()) {
            let Some(first) = self.sealed.front().copied() else { break };
            if first.last_sequence > sequence {
                break;
            }
            let path = segment_path(&self.root, first.segment);
            if first.damaged {
                self.set_aside(&path)?;
            } else {
                self.disk.remove_file(&path)?;
            }
            self.sealed.pop_front();
        }
        Ok(())
    }

    /// Moves a damaged segment to a free name in the quarantine: it is the only witness of the
    /// rows that were in it.
    fn set_aside(&self, path: &Path) -> Result<()> {
        let dir = self.root.join(QUARANTINE);
        self.disk.create_dir_all(&dir)?;
        let taken = self.disk.list(&dir)?;
        let name = file_name(path);
        let free = (0u32..).map(|n| format!("{name}.{n}"));
        let free = free.into_iter().find(|n| taken.iter().all(|e| e.name != *n));
        self.disk.rename(path, &dir.join(free.unwrap_or(name)))?;
        self.disk.sync_dir(&dir)?;
        self.disk.sync_dir(&self.root)
    }

    fn append_record(
        &mut self,
        kind: Kind,
        sequence: u64,
        rows: u32,
        payload: &[u8],
    ) -> Result<()> {
        if self.current.as_ref().is_some_and(|c| c.len > SEGMENT_LEN_TARGET) {
            self.sync()?;
            self.seal();
        }
        if self.current.is_none() {
            self.current = Some(self.begin_segment()?);
        }
        let Some(current) = &mut self.current else { return Err(Error::Closed) };
        let path = segment_path(&self.root, current.segment);
        self.scratch.clear();
        let synced = u32::try_from(current.synced).unwrap_or(u32::MAX);
        let header = RecordHeader { kind, sequence, rows, synced };
        encode_record(&mut self.scratch, (current.segment, current.len), header, payload)
            .map_err(|m| m.at(&path, current.len))?;
        match current.file.append(&self.scratch) {
            Ok(()) => {
                current.len += self.scratch.len() as u64;
                Ok(())
            }
            Err(e) => {
                if current.file.truncate(current.len).is_err() {
                    self.seal();
                }
                Err(Error::io("append", &path, e))
            }
        }
    }

    fn seal(&mut self) {
        if let Some(c) = self.current.take() {
            self.previous_len = c.len;
            self.sealed.push_back(Sealed {
                segment: c.segment,
                len: c.len,
                last_sequence: c.last_sequence,
                damaged: false,
            });
        }
    }

    fn begin_segment(&mut self) -> Result<Current> {
        let segment = self.next_segment;
        let path = segment_path(&self.root, segment);
        let mut file = self.disk.create(&path)?;
        self.next_segment += 1;
        let header =
            SegmentHeader { store_id: self.store_id, segment, previous_len: self.previous_len };
        let written = file.append(&header.encode()).and_then(|()| file.sync());
        let synced = written
            .map_err(|e| Error::io("append", &path, e))
            .and_then(|()| self.disk.sync_dir(&self.root));
        if let Err(e) = synced {
            drop(file);
            let _ = self.disk.remove_file(&path);
            return Err(e);
        }
        Ok(Current {
            segment,
            file,
            len: HEADER_LEN as u64,
            last_sequence: 0,
            synced: HEADER_LEN as u64,
        })
    }
}
