//! Edits: what can change in a store, and the bytes of a change.

use std::fmt;
use std::hash::{BuildHasher, RandomState};

use crate::codec::varint::{Reader, put_bytes, put_signed, put_varint};
use crate::error::Malformed;
use crate::io::checksum_seeded;
use crate::record::Timestamp;

use super::names::MANIFEST_PREFIX;

/// What tells the files of one store from those of another: 128 random bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct StoreId(pub(crate) [u8; 16]);

impl StoreId {
    /// An id from the randomness that the system seeds hash tables with.
    pub(crate) fn random() -> StoreId {
        let mut id = [0; 16];
        for (n, half) in id.chunks_exact_mut(8).enumerate() {
            let word = RandomState::new().hash_one(n);
            half.copy_from_slice(&checksum_seeded(&word.to_le_bytes(), word).to_le_bytes());
        }
        StoreId(id)
    }
}

impl fmt::Display for StoreId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for StoreId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StoreId({self})")
    }
}

/// A part as the manifest lists it: enough to open the store without touching the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PartEntry {
    /// Names the file; never reused.
    pub(crate) part_id: u64,
    /// The UTC day of all its rows.
    pub(crate) day: i32,
    /// How often its rows were merged; 0 for a flushed part.
    pub(crate) level: u8,
    /// Length of the file in bytes.
    pub(crate) length: u64,
    /// xxh3-64 of the footer.
    pub(crate) footer_checksum: u64,
    /// Rows it holds.
    pub(crate) rows: u64,
    /// The earliest `_time` of its rows.
    pub(crate) min_time: Timestamp,
    /// The latest `_time` of its rows.
    pub(crate) max_time: Timestamp,
    /// The lowest sequence it covers.
    pub(crate) cut_lo: u64,
    /// The highest sequence it covers; at least `cut_lo`.
    pub(crate) cut_hi: u64,
    /// Deletes with ids up to this one have been applied to its rows; 0 for none.
    pub(crate) deletes_applied: u64,
}

/// What the footer of a part file says about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PartFacts {
    /// The id of the part.
    pub(crate) part_id: u64,
    /// The store it was written for.
    pub(crate) store_id: StoreId,
    /// The UTC day of all its rows.
    pub(crate) day: i32,
    /// How often its rows were merged.
    pub(crate) level: u8,
    /// The lowest sequence it covers.
    pub(crate) cut_lo: u64,
    /// The highest sequence it covers.
    pub(crate) cut_hi: u64,
    /// Parts whose rows it took over, directly or through parts that are gone.
    pub(crate) inputs: Vec<u64>,
    /// Rows it holds.
    pub(crate) rows: u64,
    /// The earliest `_time` of its rows.
    pub(crate) min_time: Timestamp,
    /// The latest `_time` of its rows.
    pub(crate) max_time: Timestamp,
    /// Length of the file in bytes.
    pub(crate) length: u64,
    /// xxh3-64 of the footer.
    pub(crate) footer_checksum: u64,
    /// Deletes with ids up to this one have been applied; 0 for none.
    pub(crate) deletes_applied: u64,
}

impl PartFacts {
    /// The manifest's entry of this part.
    pub(crate) fn entry(&self) -> PartEntry {
        PartEntry {
            part_id: self.part_id,
            day: self.day,
            level: self.level,
            length: self.length,
            footer_checksum: self.footer_checksum,
            rows: self.rows,
            min_time: self.min_time,
            max_time: self.max_time,
            cut_lo: self.cut_lo,
            cut_hi: self.cut_hi,
            deletes_applied: self.deletes_applied,
        }
    }
}

/// Rows that the store once held and cannot read: the place of a lost part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Hole {
    /// The part that is lost.
    pub(crate) part_id: u64,
    /// The UTC day of its rows.
    pub(crate) day: i32,
    /// Rows it held.
    pub(crate) rows: u64,
    /// The earliest `_time` of its rows.
    pub(crate) min_time: Timestamp,
    /// The latest `_time` of its rows.
    pub(crate) max_time: Timestamp,
    /// The lowest sequence it covered.
    pub(crate) cut_lo: u64,
    /// The highest sequence it covered.
    pub(crate) cut_hi: u64,
}

impl PartEntry {
    /// The hole that the loss of this part leaves.
    pub(crate) fn hole(&self) -> Hole {
        Hole {
            part_id: self.part_id,
            day: self.day,
            rows: self.rows,
            min_time: self.min_time,
            max_time: self.max_time,
            cut_lo: self.cut_lo,
            cut_hi: self.cut_hi,
        }
    }
}

/// Damage found inside a file that stays in use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DamageMark {
    /// The mark's own id.
    pub(crate) id: u64,
    /// The listed part that is damaged; 0 for a file that is no part.
    pub(crate) part_id: u64,
    /// The file, below the root of the store.
    pub(crate) file: String,
    /// Offset in bytes of the damaged unit.
    pub(crate) offset: u64,
    /// What is wrong with it.
    pub(crate) what: String,
    /// Rows that cannot be read because of it; 0 if unknown.
    pub(crate) rows: u64,
    /// The earliest `_time` these rows can have.
    pub(crate) min_time: Timestamp,
    /// The latest `_time` these rows can have.
    pub(crate) max_time: Timestamp,
}

impl DamageMark {
    /// Whether rows are lost that no part or hole stands for: queries over their times fail until
    /// the loss is accepted. A damaged manifest loses none by itself, since recovery looks for
    /// all parts.
    pub(crate) fn loses_rows(&self) -> bool {
        self.part_id == 0 && !self.file.starts_with(MANIFEST_PREFIX)
    }
}

/// A delete that is not yet applied to all parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Delete {
    /// The delete's own id; later deletes have higher ones.
    pub(crate) id: u64,
    /// The filter as printed text, with absolute times.
    pub(crate) filter: String,
    /// It applies to rows with sequences up to this one.
    pub(crate) cut: u64,
}

/// A key under which a client appended a batch; the same key again appends nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ClientKey {
    /// The client's bytes.
    pub(crate) key: Vec<u8>,
    /// The highest sequence of the batch.
    pub(crate) sequence: u64,
    /// When it was appended.
    pub(crate) time: Timestamp,
}

/// Rows that go into several parts, of different days, before any of them is acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bulk {
    /// Its lowest sequence.
    pub(crate) cut_lo: u64,
    /// Its highest sequence.
    pub(crate) cut_hi: u64,
    /// How many parts are written for it.
    pub(crate) parts: u64,
}

/// How far retention has gone, so that a clock that jumps cannot erase data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct RetentionMark {
    /// The wall clock when the mark was made.
    pub(crate) clock: Timestamp,
    /// The newest `_time` accepted until then.
    pub(crate) newest_time: Timestamp,
    /// Rows before this time have been dropped.
    pub(crate) cutoff: Timestamp,
}

/// One thing that becomes true with an edit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Change {
    /// The part is listed.
    AddPart(PartEntry),
    /// The part is no longer listed.
    DropPart {
        /// The part.
        part_id: u64,
    },
    /// All rows of the day with sequences up to `cut` are gone, on disk and in the journal:
    /// parts, holes and damage marks of the day that lie below go too.
    DropDay {
        /// The UTC day.
        day: i32,
        /// The highest sequence that is dropped.
        cut: u64,
    },
    /// No file or journal record of the dropped day is left; its mark goes.
    ForgetDay {
        /// The UTC day.
        day: i32,
    },
    /// The rows are lost; a listed part of that id is no longer listed.
    AddHole(Hole),
    /// The loss was accepted, or the rows are back.
    DropHole {
        /// The part that was lost.
        part_id: u64,
    },
    /// A file is damaged and stays in use.
    AddDamage(DamageMark),
    /// The damage was repaired or accepted.
    DropDamage {
        /// The mark.
        id: u64,
    },
    /// Rows are to be deleted.
    AddDelete(Delete),
    /// The delete has been applied everywhere.
    DropDelete {
        /// The delete.
        id: u64,
    },
    /// A batch was appended under a key.
    AddClientKey(ClientKey),
    /// Keys of batches with sequences up to `through` are forgotten.
    ForgetClientKeys {
        /// The highest sequence to forget.
        through: u64,
    },
    /// Ids below `below` may be used; it never falls.
    ReserveIds {
        /// The first id that may not.
        below: u64,
    },
    /// Sequences below `below` may be used; it never falls.
    ReserveSequences {
        /// The first sequence that may not.
        below: u64,
    },
    /// No row with a sequence up to `through` waits in memory or journal only; it never falls.
    FlushedThrough {
        /// The highest such sequence.
        through: u64,
    },
    /// Retention has been looked at.
    Retention(RetentionMark),
    /// The segment of the journal is there, and its first record is durable.
    AddSegment {
        /// Its number.
        segment: u64,
        /// The sequence of its first row.
        first: u64,
    },
    /// Every row of the segment is in parts, or known to be lost: it may be gone.
    DropSegment {
        /// Its number.
        segment: u64,
    },
    /// Parts of this cut are being written, and become listed together.
    AddBulk(Bulk),
    /// They are listed, or none of them is left.
    DropBulk {
        /// The lowest sequence of the cut.
        cut_lo: u64,
    },
}

/// Changes that become true together, or not at all.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Edit {
    /// In the order in which they apply.
    pub(crate) changes: Vec<Change>,
}

/// The most bytes of a text or key inside a change.
const MAX_TEXT_BYTES: usize = 16 << 20;
/// The low bit of a change's tag: a reader that does not know the kind may pass over it.
const OPTIONAL: u64 = 1;

/// Why the bytes of an edit cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DecodeError {
    Malformed(Malformed),
    /// A change of this kind must be understood, and is not.
    Unknown(u64),
}

impl From<Malformed> for DecodeError {
    fn from(e: Malformed) -> DecodeError {
        DecodeError::Malformed(e)
    }
}

impl Edit {
    /// An edit of one change.
    pub(crate) fn of(change: Change) -> Edit {
        Edit { changes: vec![change] }
    }

    /// Adds a change behind the others.
    pub(crate) fn push(&mut self, change: Change) {
        self.changes.push(change);
    }

    /// Whether it changes nothing.
    pub(crate) fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// The bytes of the edit.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let mut body = Vec::new();
        for change in &self.changes {
            body.clear();
            let kind = change.encode(&mut body);
            put_varint(&mut out, kind << 1);
            put_bytes(&mut out, &body);
        }
        out
    }

    /// The edit of these bytes, and how many optional changes of unknown kinds were passed over.
    pub(super) fn decode(bytes: &[u8]) -> Result<(Edit, u64), DecodeError> {
        let mut reader = Reader::new(bytes);
        let mut edit = Edit::default();
        let mut skipped = 0;
        while !reader.is_empty() {
            let tag = reader.varint()?;
            let len = reader.len(bytes.len())?;
            let mut body = Reader::new(reader.take(len)?);
            match Change::decode(tag >> 1, &mut body)? {
                Some(change) => edit.changes.push(change),
                None if tag & OPTIONAL != 0 => {
                    skipped += 1;
                    continue;
                }
                None => return Err(DecodeError::Unknown(tag >> 1)),
            }
            if !body.is_empty() {
                return Err(Malformed("change longer than its content").into());
            }
        }
        Ok((edit, skipped))
    }
}

impl Change {
    /// Appends the content of the change; its kind.
    fn encode(&self, out: &mut Vec<u8>) -> u64 {
        match self {
            Change::AddPart(part) => put_part(out, part),
            Change::DropPart { part_id } => put_varint(out, *part_id),
            Change::DropDay { day, cut } => {
                put_signed(out, i64::from(*day));
                put_varint(out, *cut);
            }
            Change::ForgetDay { day } => put_signed(out, i64::from(*day)),
            Change::AddHole(hole) => put_hole(out, hole),
            Change::DropHole { part_id } => put_varint(out, *part_id),
            Change::AddDamage(mark) => put_damage(out, mark),
            Change::AddDelete(delete) => {
                put_varint(out, delete.id);
                put_varint(out, delete.cut);
                put_bytes(out, delete.filter.as_bytes());
            }
            Change::DropDamage { id } | Change::DropDelete { id } => put_varint(out, *id),
            Change::AddClientKey(key) => {
                put_varint(out, key.sequence);
                put_time(out, key.time);
                put_bytes(out, &key.key);
            }
            Change::ForgetClientKeys { through } | Change::FlushedThrough { through } => {
                put_varint(out, *through);
            }
            Change::ReserveIds { below } | Change::ReserveSequences { below } => {
                put_varint(out, *below);
            }
            Change::Retention(mark) => {
                put_time(out, mark.clock);
                put_time(out, mark.newest_time);
                put_time(out, mark.cutoff);
            }
            Change::AddSegment { segment, first } => {
                put_varint(out, *segment);
                put_varint(out, *first);
            }
            Change::DropSegment { segment } => put_varint(out, *segment),
            Change::AddBulk(bulk) => {
                put_cuts(out, bulk.cut_lo, bulk.cut_hi);
                put_varint(out, bulk.parts);
            }
            Change::DropBulk { cut_lo } => put_varint(out, *cut_lo),
        }
        self.kind()
    }

    /// The number of the kind in the file.
    fn kind(&self) -> u64 {
        match self {
            Change::AddPart(_) => 1,
            Change::DropPart { .. } => 2,
            Change::DropDay { .. } => 3,
            Change::ForgetDay { .. } => 4,
            Change::AddHole(_) => 5,
            Change::DropHole { .. } => 6,
            Change::AddDamage(_) => 7,
            Change::DropDamage { .. } => 8,
            Change::AddDelete(_) => 9,
            Change::DropDelete { .. } => 10,
            Change::AddClientKey(_) => 11,
            Change::ForgetClientKeys { .. } => 12,
            Change::ReserveIds { .. } => 13,
            Change::ReserveSequences { .. } => 14,
            Change::FlushedThrough { .. } => 15,
            Change::Retention(_) => 16,
            Change::AddSegment { .. } => 17,
            Change::DropSegment { .. } => 18,
            Change::AddBulk(_) => 19,
            Change::DropBulk { .. } => 20,
        }
    }

    /// The change of this kind and content; `None` for an unknown kind.
    fn decode(kind: u64, r: &mut Reader<'_>) -> Result<Option<Change>, Malformed> {
        Ok(Some(match kind {
            1 => Change::AddPart(part(r)?),
            2 => Change::DropPart { part_id: r.varint()? },
            3 => Change::DropDay { day: day(r)?, cut: r.varint()? },
            4 => Change::ForgetDay { day: day(r)? },
            5 => Change::AddHole(hole(r)?),
            6 => Change::DropHole { part_id: r.varint()? },
            7 => Change::AddDamage(damage(r)?),
            8 => Change::DropDamage { id: r.varint()? },
            9 => {
                let (id, cut) = (r.varint()?, r.varint()?);
                Change::AddDelete(Delete { id, cut, filter: text(r)? })
            }
            10 => Change::DropDelete { id: r.varint()? },
            11 => {
                let (sequence, time) = (r.varint()?, time(r)?);
                let len = r.len(MAX_TEXT_BYTES)?;
                Change::AddClientKey(ClientKey { sequence, time, key: r.take(len)?.to_vec() })
            }
            12 => Change::ForgetClientKeys { through: r.varint()? },
            13 => Change::ReserveIds { below: r.varint()? },
            14 => Change::ReserveSequences { below: r.varint()? },
            15 => Change::FlushedThrough { through: r.varint()? },
            16 => {
                let (clock, newest_time, cutoff) = (time(r)?, time(r)?, time(r)?);
                Change::Retention(RetentionMark { clock, newest_time, cutoff })
            }
            17 => Change::AddSegment { segment: r.varint()?, first: r.varint()? },
            18 => Change::DropSegment { segment: r.varint()? },
            19 => {
                let (cut_lo, cut_hi) = cuts(r)?;
                Change::AddBulk(Bulk { cut_lo, cut_hi, parts: r.varint()? })
            }
            20 => Change::DropBulk { cut_lo: r.varint()? },
            _ => return Ok(None),
        }))
    }
}

fn put_time(out: &mut Vec<u8>, time: Timestamp) {
    out.extend_from_slice(&time.as_nanos().to_le_bytes());
}

fn time(r: &mut Reader<'_>) -> Result<Timestamp, Malformed> {
    Ok(Timestamp::from_nanos(r.u64()?.cast_signed()))
}

/// Two times, the later one as the distance to the earlier.
fn put_times(out: &mut Vec<u8>, min: Timestamp, max: Timestamp) {
    put_time(out, min);
    put_varint(out, max.as_nanos().wrapping_sub(min.as_nanos()).cast_unsigned());
}

fn times(r: &mut Reader<'_>) -> Result<(Timestamp, Timestamp), Malformed> {
    let min = time(r)?;
    let max = Timestamp::from_nanos(min.as_nanos().wrapping_add(r.varint()?.cast_signed()));
    if max < min { Err(Malformed("time range ends before it begins")) } else { Ok((min, max)) }
}

/// Two sequences, the higher one as the distance to the lower.
fn put_cuts(out: &mut Vec<u8>, lo: u64, hi: u64) {
    put_varint(out, lo);
    put_varint(out, hi.wrapping_sub(lo));
}

fn cuts(r: &mut Reader<'_>) -> Result<(u64, u64), Malformed> {
    let lo = r.varint()?;
    let hi = lo.checked_add(r.varint()?).ok_or(Malformed("cut range overflows"))?;
    Ok((lo, hi))
}

fn day(r: &mut Reader<'_>) -> Result<i32, Malformed> {
    let day = i32::try_from(r.signed()?).map_err(|_| Malformed("day out of range"))?;
    let days = Timestamp::MIN.day()..=Timestamp::MAX.day();
    if days.contains(&day) { Ok(day) } else { Err(Malformed("day out of range")) }
}

fn text(r: &mut Reader<'_>) -> Result<String, Malformed> {
    let len = r.len(MAX_TEXT_BYTES)?;
    let text = std::str::from_utf8(r.take(len)?).map_err(|_| Malformed("text is not UTF-8"))?;
    Ok(text.to_owned())
}

fn put_part(out: &mut Vec<u8>, part: &PartEntry) {
    put_varint(out, part.part_id);
    put_signed(out, i64::from(part.day));
    out.push(part.level);
    put_varint(out, part.length);
    out.extend_from_slice(&part.footer_checksum.to_le_bytes());
    put_varint(out, part.rows);
    put_times(out, part.min_time, part.max_time);
    put_cuts(out, part.cut_lo, part.cut_hi);
    put_varint(out, part.deletes_applied);
}

fn part(r: &mut Reader<'_>) -> Result<PartEntry, Malformed> {
    let (part_id, day, level) = (r.varint()?, day(r)?, r.u8()?);
    let (length, footer_checksum, rows) = (r.varint()?, r.u64()?, r.varint()?);
    let (min_time, max_time) = times(r)?;
    let (cut_lo, cut_hi) = cuts(r)?;
    let deletes_applied = r.varint()?;
    Ok(PartEntry {
        part_id,
        day,
        level,
        length,
        footer_checksum,
        rows,
        min_time,
        max_time,
        cut_lo,
        cut_hi,
        deletes_applied,
    })
}

fn put_hole(out: &mut Vec<u8>, hole: &Hole) {
    put_varint(out, hole.part_id);
    put_signed(out, i64::from(hole.day));
    put_varint(out, hole.rows);
    put_times(out, hole.min_time, hole.max_time);
    put_cuts(out, hole.cut_lo, hole.cut_hi);
}

fn hole(r: &mut Reader<'_>) -> Result<Hole, Malformed> {
    let (part_id, day, rows) = (r.varint()?, day(r)?, r.varint()?);
    let (min_time, max_time) = times(r)?;
    let (cut_lo, cut_hi) = cuts(r)?;
    Ok(Hole { part_id, day, rows, min_time, max_time, cut_lo, cut_hi })
}

fn put_damage(out: &mut Vec<u8>, mark: &DamageMark) {
    put_varint(out, mark.id);
    put_varint(out, mark.part_id);
    put_varint(out, mark.offset);
    put_varint(out, mark.rows);
    put_times(out, mark.min_time, mark.max_time);
    put_bytes(out, mark.file.as_bytes());
    put_bytes(out, mark.what.as_bytes());
}

fn damage(r: &mut Reader<'_>) -> Result<DamageMark, Malformed> {
    let (id, part_id, offset, rows) = (r.varint()?, r.varint()?, r.varint()?, r.varint()?);
    let (min_time, max_time) = times(r)?;
    let (file, what) = (text(r)?, text(r)?);
    Ok(DamageMark { id, part_id, file, offset, what, rows, min_time, max_time })
}
