//! Header, footer and section directory: what a reader checks before anything else.

use super::layout::{
    END_MAGIC, Extent, FOOTER_LEN, FORMAT, HEADER_LEN, MAGIC, REQUIRED_KNOWN, SECTION_ENTRY_LEN,
    SECTION_RAW_MAX, SECTIONS_MAX, section,
};
use crate::codec::varint::Reader;
use crate::error::Malformed;
use crate::index::{FOLD_ID, TOKENIZER_ID};
use crate::io::checksum;

/// Id of the hash of words in filters: xxh3-64.
pub(crate) const HASH_ID: u8 = 1;

/// The footer: what a part is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Footer {
    /// The store that wrote the part.
    pub(crate) store_id: u128,
    /// The part's id, never reused in its store.
    pub(crate) part_id: u64,
    /// The UTC day of all rows, in days since the epoch.
    pub(crate) day: i64,
    /// First sequence of the part's cut.
    pub(crate) cut_lo: u64,
    /// Last sequence of the part's cut.
    pub(crate) cut_hi: u64,
    /// Deletes up to this number have been applied to the rows.
    pub(crate) deletes_applied: u64,
    /// The number of rows.
    pub(crate) rows: u64,
    /// The earliest row, in ns; 0 without rows.
    pub(crate) min_time: i64,
    /// The latest row, in ns; 0 without rows.
    pub(crate) max_time: i64,
    /// The number of blocks.
    pub(crate) blocks: u32,
    /// The number of streams.
    pub(crate) streams: u32,
    /// How many merges stand behind the rows: 0 is a flush.
    pub(crate) level: u8,
    /// Tokenizer of the filters; a reader that does not know it must not use them.
    pub(crate) tokenizer_id: u16,
    /// Case folding of the filters.
    pub(crate) fold_id: u16,
    /// Hash of the filters.
    pub(crate) hash_id: u8,
    /// The number of parts that this one replaces; their ids are the section of inputs.
    pub(crate) inputs: u32,
    /// Features without which the part cannot be read.
    pub(crate) required: u64,
    /// Features that a reader may ignore.
    pub(crate) optional: u64,
    /// Where the section directory is.
    pub(crate) directory: Extent,
    /// The length of the file.
    pub(crate) len: u64,
}

/// Why a footer is refused.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum FooterError {
    /// The bytes are not a footer.
    Malformed(Malformed),
    /// A newer version wrote the part.
    Unsupported(String),
}

impl From<Malformed> for FooterError {
    fn from(m: Malformed) -> FooterError {
        FooterError::Malformed(m)
    }
}

impl Footer {
    /// The footer's bytes and its checksum, which stands in them and in the manifest.
    pub(crate) fn encode(&self) -> (Vec<u8>, u64) {
        let mut out = Vec::with_capacity(FOOTER_LEN);
        out.extend_from_slice(&self.store_id.to_le_bytes());
        out.extend_from_slice(&self.part_id.to_le_bytes());
        out.extend_from_slice(&self.day.to_le_bytes());
        for n in [self.cut_lo, self.cut_hi, self.deletes_applied, self.rows] {
            out.extend_from_slice(&n.to_le_bytes());
        }
        out.extend_from_slice(&self.min_time.to_le_bytes());
        out.extend_from_slice(&self.max_time.to_le_bytes());
        out.extend_from_slice(&self.blocks.to_le_bytes());
        out.extend_from_slice(&self.streams.to_le_bytes());
        out.extend_from_slice(&[self.level, self.hash_id]);
        out.extend_from_slice(&self.tokenizer_id.to_le_bytes());
        out.extend_from_slice(&self.fold_id.to_le_bytes());
        out.extend_from_slice(&self.inputs.to_le_bytes());
        out.extend_from_slice(&self.required.to_le_bytes());
        out.extend_from_slice(&self.optional.to_le_bytes());
        out.extend_from_slice(&self.directory.offset.to_le_bytes());
        // The directory is capped far below 4 GiB.
        let directory_len = u32::try_from(self.directory.len).unwrap_or(u32::MAX);
        out.extend_from_slice(&directory_len.to_le_bytes());
        out.extend_from_slice(&FORMAT.to_le_bytes());
        out.extend_from_slice(&self.directory.checksum.to_le_bytes());
        out.extend_from_slice(&self.len.to_le_bytes());
        let sum = checksum(&out);
        out.extend_from_slice(&sum.to_le_bytes());
        out.extend_from_slice(&END_MAGIC);
        debug_assert_eq!(out.len(), FOOTER_LEN);
        (out, sum)
    }

    /// Reads the last [`FOOTER_LEN`] bytes of a file of `file_len` bytes.
    pub(crate) fn parse(bytes: &[u8], file_len: u64) -> Result<(Footer, u64), FooterError> {
        let (body, sum) = check_frame(bytes)?;
        let mut r = Reader::new(body);
        let store_id = u128::from(r.u64()?) | u128::from(r.u64()?) << 64;
        let (part_id, day) = (r.u64()?, r.u64()?.cast_signed());
        let (cut_lo, cut_hi, deletes_applied, rows) = (r.u64()?, r.u64()?, r.u64()?, r.u64()?);
        let (min_time, max_time) = (r.u64()?.cast_signed(), r.u64()?.cast_signed());
        let (blocks, streams) = (r.u32()?, r.u32()?);
        let (level, hash_id) = (r.u8()?, r.u8()?);
        let (tokenizer_id, fold_id) = (u16_of(&mut r)?, u16_of(&mut r)?);
        let inputs = r.u32()?;
        let (required, optional) = (r.u64()?, r.u64()?);
        let offset = r.u64()?;
        let len = u64::from(r.u32()?);
        let format = u16_of(&mut r)?;
        let directory = Extent { offset, len, checksum: r.u64()? };
        let len = r.u64()?;
        r.finish()?;
        if format != FORMAT {
            return Err(FooterError::Unsupported(format!("part format {format}")));
        }
        if required & !REQUIRED_KNOWN != 0 {
            let unknown = required & !REQUIRED_KNOWN;
            return Err(FooterError::Unsupported(format!("part features {unknown:#x}")));
        }
        let footer = Footer {
            store_id,
            part_id,
            day,
            cut_lo,
            cut_hi,
            deletes_applied,
            rows,
            min_time,
            max_time,
            blocks,
            streams,
            level,
            tokenizer_id,
            fold_id,
            hash_id,
            inputs,
            required,
            optional,
            directory,
            len,
        };
        footer.check(file_len)?;
        Ok((footer, sum))
    }

    /// Whether the filters were made by hashes and tables that this version knows.
    pub(crate) fn filters_known(&self) -> bool {
        (self.tokenizer_id, self.fold_id, self.hash_id) == (TOKENIZER_ID, FOLD_ID, HASH_ID)
    }

    /// The header and the footer's numbers must fit each other and the file.
    fn check(&self, file_len: u64) -> Result<(), Malformed> {
        let footer_at = file_len.checked_sub(FOOTER_LEN as u64);
        if self.len != file_len || footer_at != Some(self.directory.end()) {
            return Err(Malformed("the file has another length than its footer says"));
        }
        if self.directory.offset < HEADER_LEN as u64 {
            return Err(Malformed("the section directory lies in the header"));
        }
        if self.cut_lo > self.cut_hi {
            return Err(Malformed("the cut is empty"));
        }
        if self.rows.checked_sub(1).is_some_and(|r| r > self.cut_hi - self.cut_lo) {
            return Err(Malformed("more rows than the cut holds"));
        }
        if self.min_time > self.max_time || u64::from(self.blocks) > self.rows {
            return Err(Malformed("counts of the footer disagree"));
        }
        Ok(())
    }
}

fn u16_of(r: &mut Reader<'_>) -> Result<u16, Malformed> {
    Ok(u16::from_le_bytes([r.u8()?, r.u8()?]))
}

/// Checks length, end magic and checksum; gives the bytes under the checksum, and the checksum.
fn check_frame(bytes: &[u8]) -> Result<(&[u8], u64), Malformed> {
    let (rest, magic) = bytes.split_last_chunk::<8>().ok_or(Malformed("no footer"))?;
    let (body, sum) = rest.split_last_chunk::<8>().ok_or(Malformed("no footer"))?;
    if bytes.len() != FOOTER_LEN || *magic != END_MAGIC {
        return Err(Malformed("no footer at the end"));
    }
    let sum = u64::from_le_bytes(*sum);
    if checksum(body) != sum {
        return Err(Malformed("checksum of the footer"));
    }
    Ok((body, sum))
}

/// The first bytes of every part.
pub(crate) fn header() -> [u8; HEADER_LEN] {
    let mut out = [0; HEADER_LEN];
    for (to, from) in out.iter_mut().zip(MAGIC.into_iter().chain(FORMAT.to_le_bytes())) {
        *to = from;
    }
    out
}

/// One section of the tail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Section {
    /// What it holds; see [`section`].
    pub(crate) kind: u16,
    /// The version of its layout.
    pub(crate) version: u16,
    /// Whether a reader that does not know it must refuse the part.
    pub(crate) required: bool,
    /// Where it is.
    pub(crate) at: Extent,
}

/// The section directory's bytes.
pub(crate) fn encode_directory(sections: &[Section]) -> Vec<u8> {
    let mut out = Vec::with_capacity(sections.len() * SECTION_ENTRY_LEN);
    for s in sections {
        out.extend_from_slice(&s.kind.to_le_bytes());
        out.extend_from_slice(&s.version.to_le_bytes());
        out.extend_from_slice(&u32::from(s.required).to_le_bytes());
        out.extend_from_slice(&s.at.offset.to_le_bytes());
        out.extend_from_slice(&s.at.len.to_le_bytes());
        out.extend_from_slice(&s.at.checksum.to_le_bytes());
    }
    out
}

/// Reads a section directory that begins at offset `directory_at` of the file.
///
/// # Errors
/// `Unsupported` for a required section of unknown kind or version.
pub(crate) fn parse_directory(
    bytes: &[u8],
    directory_at: u64,
) -> Result<Vec<Section>, FooterError> {
    let count = bytes.len() / SECTION_ENTRY_LEN;
    if !bytes.len().is_multiple_of(SECTION_ENTRY_LEN) || count > SECTIONS_MAX as usize {
        return Err(Malformed("length of the section directory").into());
    }
    let mut r = Reader::new(bytes);
    let mut sections: Vec<Section> = Vec::with_capacity(count);
    while !r.is_empty() {
        let kinds = r.u32()?.to_le_bytes();
        let [k0, k1, v0, v1] = kinds;
        let (kind, version) = (u16::from_le_bytes([k0, k1]), u16::from_le_bytes([v0, v1]));
        let required = match r.u32()? {
            0 => false,
            1 => true,
            _ => return Err(Malformed("unknown flags of a section").into()),
        };
        let at = Extent { offset: r.u64()?, len: r.u64()?, checksum: r.u64()? };
        let inside = at.offset >= HEADER_LEN as u64
            && at.offset.checked_add(at.len).is_some_and(|end| end <= directory_at)
            && at.len <= SECTION_RAW_MAX as u64;
        if !inside || sections.iter().any(|s| s.kind == kind) {
            return Err(Malformed("a section outside the tail, or twice").into());
        }
        let known = version == 0 && (section::METAINDEX..=section::INPUTS).contains(&kind);
        if required && !known {
            let what = format!("part section {kind} version {version}");
            return Err(FooterError::Unsupported(what));
        }
        sections.push(Section { kind, version, required, at });
    }
    Ok(sections)
}
