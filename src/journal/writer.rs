//! Appending to the journal.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::io::{Disk, FileSync, FileWriter, file_name, is_not_found};

use crate::manifest::set_aside;

use super::segment::{HEADER_LEN, Kind, RecordHeader, SegmentHeader, encode_record, segment_path};

/// A segment is sealed when it is longer than this.
const SEGMENT_LEN_TARGET: u64 = 64 << 20;

/// The writing end of the journal.
///
/// Nothing is ever appended behind a failed append: the bytes of a failed one are cut off again,
/// and where that fails too a new segment begins, whose header says how much of the one before
/// is valid.
///
/// A segment begins with its first record, and both are durable before its caller is told of it;
/// it goes when its caller was told that. So whoever remembers what is told knows which segments
/// must be there and hold something.
#[derive(Debug)]
pub(crate) struct Journal {
    disk: Arc<dyn Disk>,
    root: PathBuf,
    store_id: u128,
    current: Option<Current>,
    next_segment: u64,
    previous_len: u64,
    sealed: VecDeque<Sealed>,
    /// Segments of earlier lives that no sync of this one has covered: the system may hold them
    /// in its cache only.
    inherited: Vec<PathBuf>,
    /// What was appended so far.
    mark: Mark,
    /// Why no record may follow: the bytes of a segment are in doubt.
    broken: Option<String>,
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

/// How far the journal had come at some moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Mark {
    /// Records appended; all that earlier lives left count as one.
    pub(crate) records: u64,
    /// The sequence of the last row in them.
    pub(crate) sequence: u64,
}

/// What makes the journal durable up to a mark.
#[derive(Debug)]
pub(crate) struct SyncTask {
    mark: Mark,
    older: Vec<PathBuf>,
    current: Option<Unsynced>,
}

#[derive(Debug)]
struct Unsynced {
    segment: u64,
    path: PathBuf,
    len: u64,
    file: Arc<dyn FileSync>,
}

impl SyncTask {
    /// What is durable when it is done.
    pub(crate) fn mark(&self) -> Mark {
        self.mark
    }

    /// Does it.
    ///
    /// # Errors
    /// After an error nothing is known of the bytes, and no later sync makes them durable.
    pub(crate) fn run(&self, disk: &dyn Disk) -> Result<()> {
        for path in &self.older {
            match disk.open_append(path) {
                Ok(mut file) => file.sync().map_err(|e| Error::io("sync", path, e))?,
                // A flush made it needless.
                Err(e) if is_not_found(&e) => {}
                Err(e) => return Err(e),
            }
        }
        match &self.current {
            Some(current) => current.file.sync().map_err(|e| Error::io("sync", &current.path, e)),
            None => Ok(()),
        }
    }
}

impl Journal {
    /// Continues behind the segments that replay found, and those below the number `unused`.
    /// Creates no file before the first append.
    pub(crate) fn new(
        disk: Arc<dyn Disk>,
        root: PathBuf,
        store_id: u128,
        found: Vec<Sealed>,
        unused: u64,
    ) -> Journal {
        let next_segment = found.last().map_or(1, |s| s.segment + 1).max(unused);
        let previous_len = found.last().map_or(0, |s| s.len);
        let inherited: Vec<PathBuf> = found
            .iter()
            .filter(|s| s.len > HEADER_LEN as u64)
            .map(|s| segment_path(&root, s.segment))
            .collect();
        let mark = Mark {
            records: u64::from(!inherited.is_empty()),
            sequence: found.iter().map(|s| s.last_sequence).max().unwrap_or(0),
        };
        Journal {
            disk,
            root,
            store_id,
            current: None,
            next_segment,
            previous_len,
            sealed: found.into(),
            inherited,
            mark,
            broken: None,
            scratch: Vec::new(),
        }
    }

    /// Appends a batch that [`encode`](super::encode) made; it survives the death of the process
    /// when the call returns, and power loss after the next [`sync`](Journal::sync).
    ///
    /// When a segment begins with it, both are durable, and `begun` is told its number.
    ///
    /// # Errors
    /// Those of the disk and of `begun`. After an error the batch is not in the journal.
    pub(crate) fn append(
        &mut self,
        sequence: u64,
        rows: u32,
        payload: &[u8],
        begun: &mut dyn FnMut(u64) -> Result<()>,
    ) -> Result<()> {
        self.check_sound()?;
        if self.current.as_ref().is_some_and(|c| c.len > SEGMENT_LEN_TARGET) {
            self.sync()?;
            self.seal();
        }
        match self.current {
            Some(_) => self.append_record(Kind::Batch, sequence, rows, payload)?,
            None => self.begin_segment((sequence, rows), payload, begun)?,
        }
        let last = sequence + u64::from(rows.max(1)) - 1;
        self.mark = Mark { records: self.mark.records + 1, sequence: last };
        if let Some(current) = &mut self.current {
            current.last_sequence = last;
        }
        Ok(())
    }

    /// What was appended so far.
    pub(crate) fn mark(&self) -> Mark {
        self.mark
    }

    /// What must be done to make everything appended so far survive power loss; it is done
    /// without the journal, so that others append meanwhile.
    pub(crate) fn sync_task(&self) -> SyncTask {
        let current = self.current.as_ref().filter(|c| c.synced < c.len);
        SyncTask {
            mark: self.mark,
            older: self.inherited.clone(),
            current: current.map(|c| Unsynced {
                segment: c.segment,
                path: segment_path(&self.root, c.segment),
                len: c.len,
                file: c.file.syncer(),
            }),
        }
    }

    /// Remembers that a task was done.
    pub(crate) fn note_synced(&mut self, task: &SyncTask) {
        self.inherited.retain(|path| !task.older.contains(path));
        if let (Some(current), Some(done)) = (&mut self.current, &task.current)
            && current.segment == done.segment
        {
            current.synced = current.synced.max(done.len);
        }
    }

    /// Says that the store was closed: from here on a bad record is damage, not a torn write.
    pub(crate) fn append_close(&mut self) -> Result<()> {
        if self.current.is_none() {
            return Ok(());
        }
        self.check_sound()?;
        self.append_record(Kind::Close, 0, 0, &[])?;
        self.sync()
    }

    /// Makes everything appended so far survive power loss.
    pub(crate) fn sync(&mut self) -> Result<()> {
        let task = self.sync_task();
        if let Err(e) = task.run(self.disk.as_ref()) {
            self.broken = Some(e.to_string());
            return Err(e);
        }
        self.note_synced(&task);
        Ok(())
    }

    /// Bytes in all segments.
    pub(crate) fn len_bytes(&self) -> u64 {
        let sealed: u64 = self.sealed.iter().map(|s| s.len).sum();
        sealed + self.current.as_ref().map_or(0, |c| c.len)
    }

    /// Removes the segments whose rows are all at or before `sequence`, which parts hold durably.
    /// The segment being written goes too if it is sealed by that (it is long, or `all`). `gone`
    /// is told the numbers of those that are about to go.
    pub(crate) fn release(
        &mut self,
        sequence: u64,
        all: bool,
        gone: &mut dyn FnMut(&[u64]) -> Result<()>,
    ) -> Result<()> {
        let done = |c: &Current| c.last_sequence <= sequence && c.len > HEADER_LEN as u64;
        if self.current.as_ref().is_some_and(|c| done(c) && (all || c.len > SEGMENT_LEN_TARGET)) {
            self.seal();
        }
        // The newest segment stays: its successor's header speaks of its length.
        let stay = usize::from(!(all && self.current.is_none()));
        let may_go = self.sealed.len().saturating_sub(stay);
        let needless = self.sealed.iter().take(may_go).take_while(|s| s.last_sequence <= sequence);
        let needless: Vec<u64> = needless.map(|s| s.segment).collect();
        if needless.is_empty() {
            return Ok(());
        }
        gone(&needless)?;
        for _ in needless {
            let Some(first) = self.sealed.front() else { break };
            let path = segment_path(&self.root, first.segment);
            let put_away = match first.damaged {
                // It is the only witness of the rows that were in it.
                true => {
                    set_aside(self.disk.as_ref(), &self.root, &path, &file_name(&path)).map(drop)
                }
                false => self.disk.remove_file(&path),
            };
            match put_away {
                Err(e) if !is_not_found(&e) => return Err(e),
                _ => self.sealed.pop_front(),
            };
        }
        Ok(())
    }

    fn check_sound(&self) -> Result<()> {
        match &self.broken {
            Some(why) => Err(Error::Poisoned { why: why.clone() }),
            None => Ok(()),
        }
    }

    fn append_record(
        &mut self,
        kind: Kind,
        sequence: u64,
        rows: u32,
        payload: &[u8],
    ) -> Result<()> {
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
                    // Later syncs do not reach a sealed segment.
                    self.broken = current.file.sync().err().map(|e| e.to_string());
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

    /// Begins a segment with a record of rows.
    fn begin_segment(
        &mut self,
        (sequence, rows): (u64, u32),
        payload: &[u8],
        begun: &mut dyn FnMut(u64) -> Result<()>,
    ) -> Result<()> {
        if !self.inherited.is_empty() {
            // The new header promises the length of the segment before.
            self.sync()?;
        }
        let segment = self.next_segment;
        let path = segment_path(&self.root, segment);
        let header =
            SegmentHeader { store_id: self.store_id, segment, previous_len: self.previous_len };
        let at = HEADER_LEN as u64;
        let mut bytes = header.encode();
        let record = RecordHeader { kind: Kind::Batch, sequence, rows, synced: 0 };
        encode_record(&mut bytes, (segment, at), record, payload).map_err(|m| m.at(&path, at))?;
        let mut file = self.disk.create(&path)?;
        let written = file.append(&bytes).and_then(|()| file.sync());
        let durable = written
            .map_err(|e| Error::io("append", &path, e))
            .and_then(|()| self.disk.sync_dir(&self.root))
            .and_then(|()| begun(segment));
        if let Err(e) = durable {
            drop(file);
            self.take_back(&path);
            return Err(e);
        }
        self.next_segment += 1;
        let len = bytes.len() as u64;
        self.current = Some(Current { segment, file, len, last_sequence: 0, synced: len });
        Ok(())
    }

    /// Removes a segment that could not be begun: its record must not be found again.
    fn take_back(&mut self, path: &Path) {
        let removed = self.disk.remove_file(path).and_then(|()| self.disk.sync_dir(&self.root));
        self.broken = removed.err().map(|e| e.to_string());
    }
}
