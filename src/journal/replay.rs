//! Reading the journal back after a restart, or beside the writer.

use std::path::Path;

use crate::error::{Corruption, Error, Result};
use crate::io::{DirEntry, Disk, ReadAt, read_vec_at};
use crate::record::RowBatch;

use super::record::decode;
use super::segment::{
    HEADER_LEN, Kind, RECORD_HEADER_LEN, RecordHeader, SegmentHeader, decode_record,
    parse_segment_name, segment_path,
};
use super::writer::Sealed;

/// What replay found beside the batches.
#[derive(Debug, Default)]
pub(crate) struct Replayed {
    /// The segments, in order, with their valid lengths.
    pub(crate) segments: Vec<Sealed>,
    /// Batches given to the caller.
    pub(crate) batches: u64,
    /// Rows of these batches.
    pub(crate) rows: u64,
    /// Bytes of records dropped because a crash cut them short before they were durable.
    pub(crate) torn_bytes: u64,
    /// Whether the last thing in the journal says that the store was closed.
    pub(crate) closed: bool,
    /// Places that are damaged rather than torn; the batches behind them were read.
    pub(crate) damage: Vec<Corruption>,
}

/// Gives every batch of the journal in `root`, in sequence order, to `apply`.
///
/// Bad bytes at the very end, never known to be durable, were cut short by a crash: dropped and
/// counted. Any others are damage: noted (a loss of power may leave such a gap among records that
/// were not durable yet; it is reported all the same, since rows are missing). Reading goes on
/// behind either. Writes nothing.
///
/// # Errors
/// Those of the disk and of `apply`.
pub(crate) fn replay(
    disk: &dyn Disk,
    root: &Path,
    store_id: u128,
    apply: &mut dyn FnMut(u64, RowBatch) -> Result<()>,
) -> Result<Replayed> {
    let mut numbers: Vec<u64> =
        disk.list(root)?.iter().filter_map(|e| parse_segment_name(&e.name)).collect();
    numbers.sort_unstable();
    let mut out = Replayed::default();
    let mut loaded = Vec::new();
    for (i, &segment) in numbers.iter().enumerate() {
        let before = i.checked_sub(1).and_then(|i| numbers.get(i));
        if before.is_some_and(|n| n + 1 != segment) {
            out.damage.push(Corruption {
                path: segment_path(root, segment - 1),
                offset: 0,
                what: "the journal segment is missing".to_owned(),
            });
        }
        let path = segment_path(root, segment);
        let file = disk.open_read(&path)?;
        loaded.push((segment, path, file));
    }
    for (i, (segment, path, file)) in loaded.iter().enumerate() {
        let bytes = read_all(file.as_ref(), path)?;
        let next = loaded.get(i + 1).and_then(|(n, _, f)| valid_len_in(*n, f.as_ref(), *segment));
        let last = i + 1 == loaded.len();
        let header = check_header(&bytes, store_id, *segment);
        let bad_header = header.is_err();
        if let Err(what) = header {
            // A header is synced before the first record, so a bad one with nothing behind it
            // was cut short by a crash; the next segment then says that nothing here is valid.
            let torn = last && bytes.len() <= HEADER_LEN;
            if torn || next == Some(0) {
                out.torn_bytes += if torn { bytes.len() as u64 } else { 0 };
                out.segments.push(Sealed {
                    segment: *segment,
                    len: 0,
                    last_sequence: 0,
                    damaged: false,
                });
                continue;
            }
            out.damage.push(Corruption { path: path.clone(), offset: 0, what: what.to_owned() });
        }
        let mut scan = SegmentScan { segment: *segment, path, bytes: &bytes, out: &mut out };
        let mut sealed = scan.run(next, apply)?;
        sealed.damaged |= bad_header;
        out.segments.push(sealed);
    }
    Ok(out)
}

/// Number and length in bytes of each segment, ascending: they change when the journal does.
pub(crate) fn segment_lengths(disk: &dyn Disk, root: &Path) -> Result<Vec<(u64, u64)>> {
    let entries = disk.list(root)?;
    let segment = |e: &DirEntry| Some((parse_segment_name(&e.name)?, e.len));
    let mut lengths: Vec<(u64, u64)> = entries.iter().filter_map(segment).collect();
    lengths.sort_unstable();
    Ok(lengths)
}

fn read_all(file: &dyn ReadAt, path: &Path) -> Result<Vec<u8>> {
    let len = file.len().map_err(|e| Error::io("read", path, e))?;
    read_vec_at(file, 0, len).map_err(|e| Error::io("read", path, e))
}

fn check_header(
    bytes: &[u8],
    store_id: u128,
    segment: u64,
) -> std::result::Result<(), &'static str> {
    let header = SegmentHeader::decode(bytes).map_err(|m| m.0)?;
    if header.store_id != store_id {
        return Err("the segment belongs to another store");
    }
    if header.segment != segment {
        return Err("the segment's number differs from its name");
    }
    Ok(())
}

/// What the header of the next segment says about the valid length of `segment`.
fn valid_len_in(next: u64, file: &dyn ReadAt, segment: u64) -> Option<u64> {
    let bytes = read_vec_at(file, 0, HEADER_LEN as u64).ok()?;
    let header = SegmentHeader::decode(&bytes).ok()?;
    (header.segment == next && next == segment + 1).then_some(header.previous_len)
}

struct SegmentScan<'a> {
    segment: u64,
    path: &'a Path,
    bytes: &'a [u8],
    out: &'a mut Replayed,
}

impl SegmentScan<'_> {
    fn run(
        &mut self,
        valid_len: Option<u64>,
        apply: &mut dyn FnMut(u64, RowBatch) -> Result<()>,
    ) -> Result<Sealed> {
        let before = self.out.damage.len();
        let known = valid_len.and_then(|n| usize::try_from(n).ok());
        let end = known.unwrap_or(self.bytes.len()).min(self.bytes.len());
        if known.is_some_and(|n| n > self.bytes.len()) {
            self.damaged(self.bytes.len(), "the segment is shorter than it was");
        }
        let mut at = HEADER_LEN;
        let mut last_sequence = 0;
        let mut synced = 0u32;
        let mut bad: Vec<(usize, usize)> = Vec::new();
        self.out.closed = false;
        while at < end {
            let rest = self.bytes.get(at..end).unwrap_or(&[]);
            let Some((record, len)) = decode_record(rest, self.segment, at as u64) else {
                let next = self.next_record(at + 1, end).unwrap_or(end);
                bad.push((at, next));
                at = next;
                continue;
            };
            let header = record.header;
            synced = synced.max(header.synced);
            self.out.closed = header.kind == Kind::Close;
            if header.kind == Kind::Batch {
                last_sequence = header.sequence + u64::from(header.rows.max(1)) - 1;
                self.apply_batch(at, header, record.payload, apply)?;
            }
            at += len;
        }
        // A tail that a crash cut short is not valid for a segment that continues here.
        let valid_end = bad.last().filter(|(_, to)| *to == end).map_or(at, |(from, _)| *from);
        for (from, to) in bad {
            // A write that was under way when the machine stopped is the last of its segment, and
            // nothing known to be durable comes behind it.
            let torn = to == end && known.is_none() && !self.out.closed && from >= synced as usize;
            if torn {
                self.out.torn_bytes += (to - from) as u64;
            } else if to == end {
                self.damaged(from, "a record is damaged");
            } else {
                self.damaged(from, "a record is damaged, and records follow it");
            }
        }
        let damaged = self.out.damage.len() > before;
        Ok(Sealed { segment: self.segment, len: valid_end as u64, last_sequence, damaged })
    }

    fn apply_batch(
        &mut self,
        at: usize,
        header: RecordHeader,
        payload: &[u8],
        apply: &mut dyn FnMut(u64, RowBatch) -> Result<()>,
    ) -> Result<()> {
        match decode(payload) {
            Ok(batch) if batch.len() as u64 == u64::from(header.rows) => {
                self.out.batches += 1;
                self.out.rows += u64::from(header.rows);
                apply(header.sequence, batch)?;
            }
            Ok(_) => self.damaged(at, "a record holds another number of rows"),
            Err(m) => self.damaged(at, m.0),
        }
        Ok(())
    }

    /// The offset of the next valid record at or after `from`.
    fn next_record(&self, from: usize, end: usize) -> Option<usize> {
        let last_start = end.checked_sub(RECORD_HEADER_LEN)?;
        (from..=last_start).find(|&at| {
            let rest = self.bytes.get(at..end).unwrap_or(&[]);
            decode_record(rest, self.segment, at as u64).is_some()
        })
    }

    fn damaged(&mut self, at: usize, what: &str) {
        self.out.damage.push(Corruption {
            path: self.path.to_path_buf(),
            offset: at as u64,
            what: what.to_owned(),
        });
    }
}
