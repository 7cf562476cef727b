//! The numbers of the format: magics, lengths, section kinds, feature bits, caps.

use std::ops::Range;

use crate::codec::varint::{Reader, put_varint};
use crate::error::Malformed;

/// The first eight bytes of a part.
pub(crate) const MAGIC: [u8; 8] = *b"loglith\n";
/// The last eight bytes of a part.
pub(crate) const END_MAGIC: [u8; 8] = *b"htilgol\n";
/// The format's number; 0 may change freely until the format is frozen.
pub(crate) const FORMAT: u16 = 0;
/// Bytes of the header: magic, format number, zero.
pub(crate) const HEADER_LEN: usize = 16;
/// Bytes of the footer, the last bytes of a part.
pub(crate) const FOOTER_LEN: usize = 160;
/// Bytes of one entry of the section directory.
pub(crate) const SECTION_ENTRY_LEN: usize = 32;

/// The most bytes of any unit that is read at once: a page of the largest raw size, and its head.
pub(crate) const UNIT_MAX: u64 = 192 << 20;
/// The most raw bytes of an index block: the headers of one block of very many columns.
pub(crate) const INDEX_BLOCK_RAW_MAX: usize = 256 << 20;
/// The most raw bytes of a tail section.
pub(crate) const SECTION_RAW_MAX: usize = 256 << 20;
/// The most sections of a part.
pub(crate) const SECTIONS_MAX: u32 = 256;
/// The most bytes of a column name that a reader takes.
pub(crate) const NAME_MAX: usize = 1 << 16;
/// The most column names of a part.
pub(crate) const NAMES_MAX: usize = 4 << 20;
/// The most bytes of the runs page of a block.
pub(crate) const RUNS_RAW_MAX: usize = 4 << 20;
/// The most bytes of the sparse page of a block.
pub(crate) const SPARSE_RAW_MAX: usize = 128 << 20;
/// The most ids of replaced parts.
pub(crate) const INPUTS_MAX: usize = 1 << 16;

/// A page head of at most so many bytes stands in the block header instead of before its strips.
pub(crate) const INLINE_HEAD_MAX: usize = 128;

/// Kinds of sections. A reader skips kinds that it does not know, unless they are required.
pub(crate) mod section {
    /// Where the index blocks are.
    pub(crate) const METAINDEX: u16 = 1;
    /// Column names.
    pub(crate) const NAMES: u16 = 2;
    /// Where the chunks of the stream table are.
    pub(crate) const STREAMS: u16 = 4;
    /// Ids of the parts that this one replaces.
    pub(crate) const INPUTS: u16 = 5;
}

/// Features that a reader must know to read a part right.
pub(crate) const REQUIRED_KNOWN: u64 = 0;

/// A piece of the file and its checksum, as whoever refers to it stores them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Extent {
    /// From the start of the file, in bytes.
    pub(crate) offset: u64,
    /// In bytes.
    pub(crate) len: u64,
    /// xxh3-64 of the bytes.
    pub(crate) checksum: u64,
}

impl Extent {
    /// The offset of the first byte behind; saturates, which no file reaches.
    pub(crate) fn end(&self) -> u64 {
        self.offset.saturating_add(self.len)
    }

    /// As a range of offsets.
    pub(crate) fn range(&self) -> Range<u64> {
        self.offset..self.end()
    }

    /// Appends offset - `base`, length and checksum.
    pub(crate) fn put(&self, base: u64, out: &mut Vec<u8>) {
        put_varint(out, self.offset.wrapping_sub(base));
        put_varint(out, self.len);
        out.extend_from_slice(&self.checksum.to_le_bytes());
    }

    /// Reads what [`put`](Extent::put) wrote.
    pub(crate) fn read(r: &mut Reader<'_>, base: u64) -> Result<Extent, Malformed> {
        let offset = base.checked_add(r.varint()?).ok_or(Malformed("offset too large"))?;
        let len = r.varint()?;
        if len > UNIT_MAX || offset.checked_add(len).is_none() {
            return Err(Malformed("extent over its cap"));
        }
        Ok(Extent { offset, len, checksum: r.u64()? })
    }
}

/// `n` as u32; the caps of the format keep every count that is written below 2^32.
pub(crate) fn count32(n: usize) -> u32 {
    debug_assert!(u32::try_from(n).is_ok(), "a count over 32 bits");
    u32::try_from(n).unwrap_or(u32::MAX)
}

/// `n` as usize; exact on 64-bit systems, and callers index memory of that size.
pub(crate) fn index(n: u32) -> usize {
    n as usize
}
