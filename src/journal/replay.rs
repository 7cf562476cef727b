//! Reading the journal back after a restart, or beside the writer.

use std::collections::BTreeMap;
use std::path::Path;

use crate::error::{Corruption, Error, Result};
use crate::io::{DirEntry, Disk, ReadAt, read_vec_at};
use crate::manifest::Segments;
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
    /// Those of them that took records, in the order of the journal.
    pub(crate) gaps: Vec<Gap>,
    /// The sequence of the last row so far.
    last_sequence: u64,
}

/// A place where records were.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Gap {
    /// Where, and what is wrong.
    pub(crate) place: Corruption,
    /// The sequence of the last row before it; 0 if there is none.
    pub(crate) after: u64,
    /// The sequence of the first row behind it.
    pub(crate) before: Option<u64>,
    /// Whether its bytes were known to be durable. A loss of power may take others, which breaks
    /// no promise.
    pub(crate) promised: bool,
    /// The segment that is missing altogether, if that is what it is.
    pub(crate) missing: Option<u64>,
}

impl Gap {
    /// Whether every row that can have been in it is also in a part, if those up to
    /// `flushed_through` are.
    pub(crate) fn is_needless(&self, flushed_through: u64) -> bool {
        self.before.is_some_and(|before| before <= flushed_through.saturating_add(1))
    }

    /// At most so many rows were in it; 0 if that is unknown.
    pub(crate) fn rows(&self) -> u64 {
        let before = self.before.filter(|_| self.after > 0);
        before.map_or(0, |before| before.saturating_sub(self.after).saturating_sub(1))
    }
}

impl Replayed {
    fn gap(&mut self, gap: Gap) {
        self.damage.push(gap.place.clone());
        self.gaps.push(gap);
    }

    /// Forgets the missing segments that are not expected any more.
    pub(crate) fn retain_expected(&mut self, expected: &Segments) {
        let is_gone = |gap: &Gap| {
            gap.missing.is_some_and(|n| n < expected.below && !expected.first_rows.contains_key(&n))
        };
        let gone: Vec<Corruption> =
            self.gaps.iter().filter(|gap| is_gone(gap)).map(|gap| gap.place.clone()).collect();
        self.gaps.retain(|gap| !is_gone(gap));
        self.damage.retain(|place| !gone.contains(place));
    }

    /// Segments that should be there, with the sequences of their first rows where known.
    fn missing(&mut self, root: &Path, segments: BTreeMap<u64, Option<u64>>) {
        for (segment, first) in segments {
            let path = segment_path(root, segment);
            let what = "the journal segment is missing".to_owned();
            let place = Corruption { path, offset: 0, what };
            first.into_iter().for_each(|first| self.end_gaps(first));
            let after = first.map_or(self.last_sequence, |first| first.saturating_sub(1));
            let missing = Some(segment);
            self.gap(Gap { place, after, before: None, promised: true, missing });
        }
    }

    /// A good record of rows.
    fn record(&mut self, first: u64, last: u64) {
        self.end_gaps(first);
        self.last_sequence = last;
    }

    /// What is missing so far came before this sequence.
    fn end_gaps(&mut self, before: u64) {
        let open = self.gaps.iter_mut().filter(|gap| gap.before.is_none());
        open.for_each(|gap| gap.before = Some(before));
    }
}

/// Gives every batch of the journal in `root`, in sequence order, to `apply`. `expected` says which
/// segments must be there, each with a first record at least.
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
    expected: &Segments,
    apply: &mut dyn FnMut(u64, RowBatch) -> Result<()>,
) -> Result<Replayed> {
    let mut numbers: Vec<u64> =
        disk.list(root)?.iter().filter_map(|e| parse_segment_name(&e.name)).collect();
    numbers.sort_unstable();
    let mut out = Replayed::default();
    let mut loaded = Vec::new();
    let mut missing = missing_segments(&numbers, expected);
    for &segment in &numbers {
        let path = segment_path(root, segment);
        let file = disk.open_read(&path)?;
        loaded.push((segment, path, file));
    }
    for (i, (segment, path, file)) in loaded.iter().enumerate() {
        let behind = missing.split_off(segment);
        out.missing(root, std::mem::replace(&mut missing, behind));
        let first_row = expected.first_rows.get(segment).copied();
        first_row.into_iter().for_each(|first| out.end_gaps(first));
        let bytes = read_all(file.as_ref(), path)?;
        let next = loaded.get(i + 1).and_then(|(n, _, f)| valid_len_in(*n, f.as_ref(), *segment));
        let last = i + 1 == loaded.len();
        let header = check_header(&bytes, store_id, *segment);
        let bad_header = header.is_err();
        if let Err(BadHeader(what, foreign)) = header {
            // A segment is listed when its header and first record are synced, so a bad header of
            // one that is not was cut short by a crash; the next segment then says that nothing
            // here is valid.
            let torn = last && first_row.is_none();
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
            if foreign {
                // Its rows are none of this store's.
                let segment = *segment;
                out.segments.push(Sealed { segment, len: 0, last_sequence: 0, damaged: true });
                continue;
            }
        }
        let segment = *segment;
        let mut scan =
            SegmentScan { segment, path, bytes: &bytes, bad_header, first_row, out: &mut out };
        let mut sealed = scan.run(next, apply)?;
        sealed.damaged |= bad_header;
        out.segments.push(sealed);
    }
    out.missing(root, missing);
    Ok(out)
}

/// The numbers of segments that are not among those found and should be, with the sequence of
/// their first rows where that is known.
fn missing_segments(found: &[u64], expected: &Segments) -> BTreeMap<u64, Option<u64>> {
    let lacks = |n: &u64| found.binary_search(n).is_err();
    let listed = expected.first_rows.iter().filter(|(n, _)| lacks(n));
    let mut missing: BTreeMap<u64, Option<u64>> =
        listed.map(|(n, first)| (*n, Some(*first))).collect();
    // Numbers without gaps are all that is known of segments that were never listed.
    for (before, segment) in found.iter().zip(found.iter().skip(1)) {
        let last = segment - 1;
        if last > *before && last >= expected.below {
            missing.entry(last).or_insert(None);
        }
    }
    missing
}

/// Number and length in bytes of each segment, ascending: they change when the journal does.
pub(crate) fn segment_lengths(disk: &dyn Disk, root: &Path) -> Result<Vec<(u64, u64)>> {
    let entries = disk.list(root)?;
    let segment = |e: &DirEntry| Some((parse_segment_name(&e.name)?, e.len));
    let mut lengths: Vec<(u64, u64)> = entries.iter().filter_map(segment).collect();
    lengths.sort_unstable();
    Ok(lengths)
}

/// The store that each segment belongs to, as far as its header can be read.
pub(crate) fn segment_stores(disk: &dyn Disk, root: &Path) -> Result<Vec<u128>> {
    let mut stores = Vec::new();
    for (segment, _) in segment_lengths(disk, root)? {
        let file = disk.open_read(&segment_path(root, segment))?;
        let header = read_vec_at(file.as_ref(), 0, HEADER_LEN as u64).ok();
        let header = header.and_then(|bytes| SegmentHeader::decode(&bytes).ok());
        stores.extend(header.map(|h| h.store_id));
    }
    Ok(stores)
}

fn read_all(file: &dyn ReadAt, path: &Path) -> Result<Vec<u8>> {
    let len = file.len().map_err(|e| Error::io("read", path, e))?;
    read_vec_at(file, 0, len).map_err(|e| Error::io("read", path, e))
}

fn check_header(bytes: &[u8], store_id: u128, segment: u64) -> std::result::Result<(), BadHeader> {
    let header = SegmentHeader::decode(bytes).map_err(|m| BadHeader(m.0, false))?;
    if header.store_id != store_id {
        return Err(BadHeader("the segment belongs to another store", true));
    }
    if header.segment != segment {
        return Err(BadHeader("the segment's number differs from its name", true));
    }
    Ok(())
}

/// What is wrong with a header, and whether it is sound and another file's.
struct BadHeader(&'static str, bool);

/// What the header of the next segment says about the valid length of `segment`.
fn valid_len_in(next: u64, file: &dyn ReadAt, segment: u64) -> Option<u64> {
    let bytes = read_vec_at(file, 0, HEADER_LEN as u64).ok()?;
    let header = SegmentHeader::decode(&bytes).ok()?;
    (header.segment == next && next == segment + 1).then_some(header.previous_len)
}

/// Bytes that are no record, and the sequences around them.
struct Bad {
    from: usize,
    to: usize,
    after: u64,
    before: Option<u64>,
}

struct SegmentScan<'a> {
    segment: u64,
    path: &'a Path,
    bytes: &'a [u8],
    /// Whether the header, durable before any record was, is damaged: no crash did that, so no bad
    /// bytes here are put down to one.
    bad_header: bool,
    /// The sequence of its first row, if its first record was known to be durable.
    first_row: Option<u64>,
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
        let mut at = HEADER_LEN;
        let mut last_sequence = 0;
        let mut synced = 0u32;
        let mut bad: Vec<Bad> = Vec::new();
        self.out.closed = false;
        while at < end {
            let rest = self.bytes.get(at..end).unwrap_or(&[]);
            let Some((record, len)) = decode_record(rest, self.segment, at as u64) else {
                let next = self.next_record(at + 1, end).unwrap_or(end);
                bad.push(Bad { from: at, to: next, after: self.out.last_sequence, before: None });
                at = next;
                continue;
            };
            let header = record.header;
            synced = synced.max(header.synced);
            self.out.closed = header.kind == Kind::Close;
            if header.kind == Kind::Batch {
                last_sequence = header.sequence.saturating_add(u64::from(header.rows.max(1)) - 1);
                bad.iter_mut().for_each(|b| b.before = b.before.or(Some(header.sequence)));
                self.out.record(header.sequence, last_sequence);
                self.apply_batch(at, header, record.payload, apply)?;
            }
            at += len;
        }
        // A tail that a crash cut short is not valid for a segment that continues here.
        let valid_end = bad.last().filter(|b| b.to == end).map_or(at, |b| b.from);
        for Bad { from, to, after, before } in bad {
            let expected = from == HEADER_LEN && self.first_row.is_some();
            let promised = from < synced as usize || expected || self.out.closed || self.bad_header;
            // A write that was under way when the machine stopped is the last of its segment, and
            // nothing known to be durable comes behind it.
            let torn = to == end && known.is_none() && !promised;
            if torn {
                self.out.torn_bytes += (to - from) as u64;
                continue;
            }
            let what = match to == end {
                true => "a record is damaged",
                false => "a record is damaged, and records follow it",
            };
            let place = self.place(from, what);
            self.out.gap(Gap { place, after, before, promised, missing: None });
        }
        if let Some(first) = self.first_row.filter(|_| end <= HEADER_LEN) {
            let place = self.place(end, "the records of the segment are missing");
            let after = first.saturating_sub(1);
            self.out.gap(Gap { place, after, before: None, promised: true, missing: None });
        }
        if known.is_some_and(|n| n > self.bytes.len()) {
            let place = self.place(self.bytes.len(), "the segment is shorter than it was");
            let after = self.out.last_sequence;
            self.out.gap(Gap { place, after, before: None, promised: true, missing: None });
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
        let what = match decode(payload) {
            Ok(batch) if batch.len() as u64 == u64::from(header.rows) => {
                self.out.batches += 1;
                self.out.rows += u64::from(header.rows);
                return apply(header.sequence, batch);
            }
            Ok(_) => "a record holds another number of rows",
            Err(m) => m.0,
        };
        let gap = Gap {
            place: self.place(at, what),
            after: header.sequence.saturating_sub(1),
            before: Some(header.sequence.saturating_add(u64::from(header.rows))),
            promised: true,
            missing: None,
        };
        self.out.gap(gap);
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

    fn place(&self, at: usize, what: &str) -> Corruption {
        let (path, what) = (self.path.to_path_buf(), what.to_owned());
        Corruption { path, offset: at as u64, what }
    }
}
