//! The bytes of a manifest file: a header, an image, then edits, each record checksummed and
//! chained to the one before.
//!
//! A record can be verified alone, so that good records behind a bad one are found; whether that
//! is damage or a torn end follows from what they say is durable.

use super::edit::{DecodeError, Edit, StoreId};
use crate::codec::varint::Reader;
use crate::error::Malformed;
use crate::io::{Checksum, checksum};

const MAGIC: [u8; 8] = *b"LOGLITHM";
const FORMAT: u32 = 0;
/// Bytes of the header of a file.
pub(super) const HEADER_BYTES: usize = 48;
/// Bytes of a record before its payload.
pub(super) const RECORD_BYTES: usize = 40;
/// The longest payload of a record.
pub(super) const MAX_PAYLOAD_BYTES: usize = 256 << 20;
/// How often, at most, the search for good records behind a bad one reads the file.
const MAX_SEARCH_PASSES: usize = 16;

/// The header of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) generation: u64,
    pub(super) store_id: StoreId,
}

/// Why a header cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HeaderError {
    Malformed(Malformed),
    /// A whole header of a format or with features this version does not know.
    Unsupported(u32, u32),
}

impl Header {
    /// The bytes, and the checksum that the first record is chained to.
    pub(super) fn encode(self) -> (Vec<u8>, u64) {
        let mut out = Vec::with_capacity(HEADER_BYTES);
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&FORMAT.to_le_bytes());
        // Required features, of which there are none.
        out.extend_from_slice(&0u32.to_le_bytes());
        out.extend_from_slice(&self.generation.to_le_bytes());
        out.extend_from_slice(&self.store_id.0);
        let sum = checksum(&out);
        out.extend_from_slice(&sum.to_le_bytes());
        (out, sum)
    }

    /// The header at the start of `bytes`, and its checksum.
    pub(super) fn decode(bytes: &[u8]) -> Result<(Header, u64), HeaderError> {
        let malformed = |what| HeaderError::Malformed(Malformed(what));
        let mut r = Reader::new(bytes);
        let early = |e: Malformed| HeaderError::Malformed(e);
        let head = Reader::new(bytes).take(HEADER_BYTES - 8).map_err(early)?;
        if r.take(MAGIC.len()).map_err(early)? != MAGIC {
            return Err(malformed("not the header of a manifest"));
        }
        let (format, features) = (r.u32().map_err(early)?, r.u32().map_err(early)?);
        let generation = r.u64().map_err(early)?;
        let mut store_id = StoreId::default();
        store_id.0.copy_from_slice(r.take(16).map_err(early)?);
        let sum = r.u64().map_err(early)?;
        if checksum(head) != sum {
            return Err(malformed("checksum of the header differs"));
        }
        if format != FORMAT || features != 0 {
            return Err(HeaderError::Unsupported(format, features));
        }
        Ok((Header { generation, store_id }, sum))
    }
}

/// What a record holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RecordKind {
    /// The whole state; the first record of a file and no other.
    Image,
    /// An edit whose files were synced before it and which was synced itself.
    Synced,
    /// An edit that becomes durable later, as do the files it names.
    Later,
}

impl RecordKind {
    fn marker(self) -> [u8; 4] {
        match self {
            RecordKind::Image => *b"IMAG",
            RecordKind::Synced => *b"EDIT",
            RecordKind::Later => *b"LATE",
        }
    }

    fn of(marker: &[u8]) -> Option<RecordKind> {
        let all = [RecordKind::Image, RecordKind::Synced, RecordKind::Later];
        all.into_iter().find(|kind| kind.marker() == marker)
    }
}

/// A record as it stands in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Record<'a> {
    pub(super) kind: RecordKind,
    /// The number of the edit; an image has that of the last edit in it.
    pub(super) number: u64,
    /// Edits up to this number were durable when the record was written.
    pub(super) durable: u64,
    /// The checksum of the record before, or of the header.
    pub(super) previous: u64,
    pub(super) checksum: u64,
    pub(super) payload: &'a [u8],
}

impl<'a> Record<'a> {
    /// The bytes of a record, and its checksum; `None` if the payload is over its cap.
    pub(super) fn encode(
        kind: RecordKind,
        number: u64,
        durable: u64,
        previous: u64,
        payload: &[u8],
    ) -> Option<(Vec<u8>, u64)> {
        let len = u32::try_from(payload.len()).ok()?;
        if payload.len() > MAX_PAYLOAD_BYTES {
            return None;
        }
        let mut out = Vec::with_capacity(RECORD_BYTES + payload.len());
        out.extend_from_slice(&kind.marker());
        out.extend_from_slice(&len.to_le_bytes());
        out.extend_from_slice(&number.to_le_bytes());
        out.extend_from_slice(&durable.to_le_bytes());
        out.extend_from_slice(&previous.to_le_bytes());
        let sum = sum_of(&out, payload);
        out.extend_from_slice(&sum.to_le_bytes());
        out.extend_from_slice(payload);
        Some((out, sum))
    }

    /// The record at the start of `bytes`, verified.
    pub(super) fn decode(bytes: &'a [u8]) -> Result<Record<'a>, Malformed> {
        let mut r = Reader::new(bytes);
        let kind = RecordKind::of(r.take(4)?).ok_or(Malformed("no record begins here"))?;
        let len = usize::try_from(r.u32()?).unwrap_or(usize::MAX);
        if len > MAX_PAYLOAD_BYTES {
            return Err(Malformed("record longer than allowed"));
        }
        let (number, durable, previous, sum) = (r.u64()?, r.u64()?, r.u64()?, r.u64()?);
        let payload = r.take(len)?;
        let head = Reader::new(bytes).take(RECORD_BYTES - 8)?;
        if sum_of(head, payload) != sum {
            return Err(Malformed("checksum of the record differs"));
        }
        Ok(Record { kind, number, durable, previous, checksum: sum, payload })
    }

    /// Bytes of the record in the file.
    pub(super) fn len(&self) -> usize {
        RECORD_BYTES + self.payload.len()
    }
}

fn sum_of(head: &[u8], payload: &[u8]) -> u64 {
    let mut sum = Checksum::new(0);
    sum.update(head);
    sum.update(payload);
    sum.finish()
}

/// Where a reader of a file stands: what the next record must follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Position {
    /// Offset of the next record.
    pub(super) offset: u64,
    /// Offset of the last record read.
    pub(super) last_record: u64,
    /// Number of the last edit.
    pub(super) number: u64,
    /// Checksum of the last record.
    pub(super) checksum: u64,
    /// The highest number that any record read so far calls durable.
    pub(super) durable: u64,
}

/// What comes next in a file.
#[derive(Debug)]
pub(super) enum Next {
    /// An edit and the kind of its record.
    Edit { edit: Edit, kind: RecordKind, skipped: u64 },
    /// The file ends with the record before.
    End,
    /// The bytes behind are no whole record, and nothing behind them was promised.
    Torn,
    /// The bytes behind were whole once.
    Damaged(Malformed),
    /// A change of this kind must be understood, and is not.
    Unknown(u64),
}

/// Reads the record at the start of `bytes`, which is what follows `position`, and moves on.
pub(super) fn next(position: &mut Position, bytes: &[u8]) -> Next {
    if bytes.is_empty() {
        return Next::End;
    }
    let first = position.number == u64::MAX;
    let record = match Record::decode(bytes) {
        Ok(record) => record,
        Err(_) if !promised_behind(bytes, position.number) && !first => return Next::Torn,
        Err(e) => return Next::Damaged(e),
    };
    if record.previous != position.checksum {
        return Next::Damaged(Malformed("record does not follow the one before"));
    }
    if first != (record.kind == RecordKind::Image) {
        return Next::Damaged(Malformed("image in the wrong place"));
    }
    if !first && record.number != position.number.wrapping_add(1) {
        return Next::Damaged(Malformed("edit out of order"));
    }
    let (edit, skipped) = match Edit::decode(record.payload) {
        Ok(decoded) => decoded,
        Err(DecodeError::Unknown(kind)) => return Next::Unknown(kind),
        Err(DecodeError::Malformed(e)) => return Next::Damaged(e),
    };
    position.last_record = position.offset;
    position.offset += record.len() as u64;
    position.number = record.number;
    position.checksum = record.checksum;
    position.durable = position.durable.max(match record.kind {
        RecordKind::Image => record.number,
        RecordKind::Synced | RecordKind::Later => record.durable,
    });
    Next::Edit { edit, kind: record.kind, skipped }
}

/// Whether a good record behind the bad one at the start of `bytes` says that the edit behind
/// `number` was durable.
fn promised_behind(bytes: &[u8], number: u64) -> bool {
    let mut budget = bytes.len().saturating_mul(MAX_SEARCH_PASSES);
    let mut at = 1;
    while let Some(rest) = bytes.get(at..).filter(|rest| rest.len() >= RECORD_BYTES) {
        at += 1;
        if rest.get(..4).and_then(RecordKind::of).is_none() {
            continue;
        }
        match Record::decode(rest) {
            Ok(record) => {
                if record.durable > number {
                    return true;
                }
                at += record.len() - 1;
            }
            Err(_) => {
                let len = rest.get(4..8).and_then(|len| len.try_into().ok());
                let len = usize::try_from(u32::from_le_bytes(len.unwrap_or_default()));
                let cost = len.ok().filter(|&len| len <= rest.len()).unwrap_or(0) + RECORD_BYTES;
                // Bytes made to keep the search busy are not a torn end.
                let Some(left) = budget.checked_sub(cost) else { return true };
                budget = left;
            }
        }
    }
    false
}
