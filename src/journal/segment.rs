//! The bytes of a journal segment: a header, then records.
//!
//! ```text
//! header (56): magic 8 | format 4 | zero 4 | store id 16 | segment 8 | previous length 8 | sum 8
//! record     : checksum 8 | payload length 4 | kind 4 | sequence 8 | rows 4 | synced 4 | payload
//! ```
//!
//! All numbers are little-endian. The checksum of a record covers everything after itself and is
//! seeded with the segment's number and the record's offset, so that a record of another place
//! does not pass. `previous length` is where the valid records of the segment before end. `synced`
//! is how many bytes of the segment were known to be durable when the record was written: bad bytes
//! before that are damage even at the end.

use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use crate::error::Malformed;

/// Bytes of a segment's header.
pub(crate) const HEADER_LEN: usize = 56;
/// Bytes of a record before its payload.
pub(crate) const RECORD_HEADER_LEN: usize = 32;
/// The longest payload: a batch of 64 MiB of values with its names, streams and lengths.
pub(crate) const PAYLOAD_LEN_MAX: u32 = 256 << 20;

const MAGIC: &[u8; 8] = b"LLJOURNL";
const FORMAT: u32 = 0;

/// What a record says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A batch of rows.
    Batch,
    /// The store was closed; nothing follows in this segment.
    Close,
}

impl Kind {
    fn code(self) -> u32 {
        match self {
            Kind::Batch => 1,
            Kind::Close => 2,
        }
    }

    fn from_code(code: u32) -> Option<Kind> {
        match code {
            1 => Some(Kind::Batch),
            2 => Some(Kind::Close),
            _ => None,
        }
    }
}

/// The header of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SegmentHeader {
    /// The store it belongs to.
    pub(crate) store_id: u128,
    /// Its number; segments are numbered without gaps within the life of a store.
    pub(crate) segment: u64,
    /// Where the valid records of the segment before end; 0 if there is none.
    pub(crate) previous_len: u64,
}

impl SegmentHeader {
    /// The header's bytes.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(HEADER_LEN);
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&FORMAT.to_le_bytes());
        out.extend_from_slice(&0u32.to_le_bytes());
        out.extend_from_slice(&self.store_id.to_le_bytes());
        out.extend_from_slice(&self.segment.to_le_bytes());
        out.extend_from_slice(&self.previous_len.to_le_bytes());
        let sum = xxh3_64(&out);
        out.extend_from_slice(&sum.to_le_bytes());
        out
    }

    /// Reads a header from the first bytes of a segment.
    pub(crate) fn decode(bytes: &[u8]) -> Result<SegmentHeader, Malformed> {
        let short = Malformed("the segment header is incomplete");
        let head = bytes.get(..HEADER_LEN).ok_or(short)?;
        let (body, sum) = head.split_at_checked(HEADER_LEN - 8).ok_or(short)?;
        if number::<8>(sum).map(u64::from_le_bytes) != Some(xxh3_64(body)) {
            return Err(Malformed("the segment header's checksum differs"));
        }
        let at = |from: usize, to: usize| body.get(from..to).unwrap_or(&[]);
        if at(0, 8) != MAGIC {
            return Err(Malformed("not a journal segment"));
        }
        if number::<4>(at(8, 12)).map(u32::from_le_bytes) != Some(FORMAT) || at(12, 16) != [0; 4] {
            return Err(Malformed("a journal format of a newer version"));
        }
        let u64_at = |from| number::<8>(at(from, from + 8)).map(u64::from_le_bytes).ok_or(short);
        Ok(SegmentHeader {
            store_id: number::<16>(at(16, 32)).map(u128::from_le_bytes).ok_or(short)?,
            segment: u64_at(32)?,
            previous_len: u64_at(40)?,
        })
    }
}

/// What a record says beside its payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RecordHeader {
    /// What it is.
    pub(crate) kind: Kind,
    /// The sequence of its first row.
    pub(crate) sequence: u64,
    /// The number of its rows.
    pub(crate) rows: u32,
    /// Bytes of the segment known to be durable when the record was written.
    pub(crate) synced: u32,
}

/// A record as it stands in a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RecordView<'a> {
    /// What it says beside its payload.
    pub(crate) header: RecordHeader,
    /// The encoded batch.
    pub(crate) payload: &'a [u8],
}

/// Appends a record that will stand at `offset` of `segment`.
pub(crate) fn encode_record(
    out: &mut Vec<u8>,
    (segment, offset): (u64, u64),
    header: RecordHeader,
    payload: &[u8],
) -> Result<(), Malformed> {
    let len = u32::try_from(payload.len()).ok().filter(|len| *len <= PAYLOAD_LEN_MAX);
    let len = len.ok_or(Malformed("a batch too large for the journal"))?;
    let start = out.len();
    out.extend_from_slice(&[0; 8]);
    out.extend_from_slice(&len.to_le_bytes());
    out.extend_from_slice(&header.kind.code().to_le_bytes());
    out.extend_from_slice(&header.sequence.to_le_bytes());
    out.extend_from_slice(&header.rows.to_le_bytes());
    out.extend_from_slice(&header.synced.to_le_bytes());
    out.extend_from_slice(payload);
    let sum = checksum(out.get(start + 8..).unwrap_or(&[]), segment, offset);
    if let Some(slot) = out.get_mut(start..start + 8) {
        slot.copy_from_slice(&sum.to_le_bytes());
    }
    Ok(())
}

/// Reads the record at the start of `bytes`, which stand at `offset` of `segment`; gives its
/// length too. `None`: the bytes are no whole valid record.
pub(crate) fn decode_record(
    bytes: &[u8],
    segment: u64,
    offset: u64,
) -> Option<(RecordView<'_>, usize)> {
    let head = bytes.get(..RECORD_HEADER_LEN)?;
    let u32_at =
        |from: usize| head.get(from..from + 4).and_then(number::<4>).map(u32::from_le_bytes);
    let u64_at =
        |from: usize| head.get(from..from + 8).and_then(number::<8>).map(u64::from_le_bytes);
    let len = u32_at(8).filter(|len| *len <= PAYLOAD_LEN_MAX)?;
    let kind = Kind::from_code(u32_at(12)?)?;
    let total = RECORD_HEADER_LEN + len as usize;
    let covered = bytes.get(8..total)?;
    if u64_at(0)? != checksum(covered, segment, offset) {
        return None;
    }
    let payload = bytes.get(RECORD_HEADER_LEN..total)?;
    let header =
        RecordHeader { kind, sequence: u64_at(16)?, rows: u32_at(24)?, synced: u32_at(28)? };
    Some((RecordView { header, payload }, total))
}

/// The file of a segment in the store's directory.
pub(crate) fn segment_path(root: &Path, segment: u64) -> PathBuf {
    root.join(format!("JOURNAL-{segment:016x}"))
}

/// Whether a file of this name is a segment.
pub(crate) fn is_segment(name: &str) -> bool {
    parse_segment_name(name).is_some()
}

/// The number in a segment's file name.
pub(crate) fn parse_segment_name(name: &str) -> Option<u64> {
    let hex = name.strip_prefix("JOURNAL-").filter(|hex| hex.len() == 16)?;
    u64::from_str_radix(hex, 16).ok()
}

fn checksum(bytes: &[u8], segment: u64, offset: u64) -> u64 {
    xxh3_64_with_seed(bytes, segment.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ offset)
}

fn number<const N: usize>(bytes: &[u8]) -> Option<[u8; N]> {
    bytes.try_into().ok()
}
