//! Writes a part again with units changed and every checksum right: for fuzz targets, which
//! checksums would keep from what lies behind them.
//!
//! The walk goes bottom-up: strips, heads, filters, headers, index blocks, sections, directory,
//! footer. A unit is changed before the checksum in whatever refers to it is made, so only what a
//! change itself breaks is broken. Packed units are changed unpacked, and stored raw.

use super::block_reader::BlockReader;
use super::footer::{Section, encode_directory, header};
use super::header::{HeadRef, Home, PageRef};
use super::index_block::{ColumnDraft, IndexBuilder, MetaEntry};
use super::layout::{
    self, END_MAGIC, Extent, FOOTER_LEN, INDEX_BLOCK_RAW_MAX, SECTION_RAW_MAX, section,
};
use super::reader::PartReader;
use super::sink::Out;
use super::source::ReadContext;
use crate::Result;
use crate::codec::compress::Compressor;
use crate::codec::varint::{Reader, put_varint};
use crate::codec::{Encoding, strip_count};
use crate::error::Malformed;
use crate::io::checksum;

/// What kind of unit is about to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    /// A strip of a page.
    Strip,
    /// The head of a page, its strip table included.
    Head,
    /// A runs page or sparse page, unpacked.
    Block,
    /// The heads of the filter groups.
    Filter,
    /// An index block, unpacked.
    Index,
    /// A chunk of the stream table, unpacked.
    Chunk,
    /// A section of the tail, unpacked.
    Section,
    /// The section directory.
    Directory,
    /// The footer without its checksum and magic.
    Footer,
}

/// The bytes of `part`, a valid one, written anew; `change` may change each unit on its way.
pub(crate) fn remake(
    part: &PartReader,
    cx: &ReadContext<'_>,
    change: &mut dyn FnMut(Unit, &mut Vec<u8>),
) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut out = Out::new(&mut bytes);
    out.put(&header())?;
    let mut remake = Remake { part, cx, change, out, zstd: Compressor::new(0) };
    let mut entries = Vec::new();
    for entry in 0..part.metaindex(cx)?.len() {
        entries.extend(remake.index_block(entry)?);
    }
    remake.tail(&entries)?;
    Ok(bytes)
}

struct Remake<'a, 'b> {
    part: &'a PartReader,
    cx: &'a ReadContext<'a>,
    change: &'b mut dyn FnMut(Unit, &mut Vec<u8>),
    out: Out<'b>,
    zstd: Compressor,
}

impl Remake<'_, '_> {
    fn index_block(&mut self, entry: usize) -> Result<Option<MetaEntry>> {
        let index = self.part.index_block_once(self.cx, entry)?;
        let mut builder = IndexBuilder::default();
        let mut filters = Vec::new();
        for placed in index.groups() {
            filters.push(self.part.filters(self.cx, placed)?);
        }
        for i in 0..index.len() {
            let block = self.part.block(self.cx, &index, i)?;
            let mut head = block.head_of_block().clone();
            head.offset = self.out.at();
            let mut columns = Vec::new();
            let old = index.columns(i).map_err(|e| self.part.malformed(head.offset, e))?;
            for (name, mut header) in old {
                if let Home::Page(page) = &header.home {
                    header.home = Home::Page(self.page(&block, page)?);
                }
                let of_column = std::mem::take(&mut header.filters).map(|at| {
                    let at = at?;
                    filters.get(layout::index(at.group))?.get(layout::index(at.member)).cloned()
                });
                columns.push(ColumnDraft { name, header, filters: of_column });
            }
            for extent in [&mut head.sparse, &mut head.runs].into_iter().flatten() {
                *extent = self.packed(extent, SECTION_RAW_MAX, Unit::Block)?;
            }
            head.time = self.page(&block, &head.time)?;
            builder.push(head, columns);
        }
        let Some((mut entry, mut groups)) = builder.entry(&mut self.out, &mut self.zstd)? else {
            return Ok(None);
        };
        let mut raw = builder.encode(&entry);
        (self.change)(Unit::Filter, &mut groups);
        raw.extend_from_slice(&groups);
        entry.at = self.pack(raw, Unit::Index)?;
        Ok(Some(entry))
    }

    /// A page: strips, then the table that holds their checksums, then the head.
    fn page(&mut self, block: &BlockReader<'_>, page: &PageRef) -> Result<PageRef> {
        let (bytes, head) = raw_page(self.part, self.cx, page)?;
        let offset = self.out.at();
        let mut new_head = Vec::new();
        let mut strips = Vec::new();
        if page.encoding == Encoding::Const {
            new_head = head;
        } else {
            let mut read = || -> std::result::Result<(), Malformed> {
                let mut table = Reader::new(&head);
                let mut rest = Reader::new(&bytes);
                for _ in 0..strip_count(block.rows()) {
                    let len = table.len(bytes.len())?;
                    table.u64()?;
                    let mut strip = rest.take(len)?.to_vec();
                    (self.change)(Unit::Strip, &mut strip);
                    put_varint(&mut new_head, strip.len() as u64);
                    new_head.extend_from_slice(&checksum(&strip).to_le_bytes());
                    strips.extend_from_slice(&strip);
                }
                new_head.extend_from_slice(table.rest());
                Ok(())
            };
            read().map_err(|e| self.part.malformed(page.offset, e))?;
        }
        (self.change)(Unit::Head, &mut new_head);
        let head = if PageRef::is_inline(new_head.len()) {
            HeadRef::Inline(new_head)
        } else {
            self.out.put(&new_head)?;
            HeadRef::External { len: new_head.len() as u64, checksum: checksum(&new_head) }
        };
        self.out.put(&strips)?;
        Ok(PageRef { encoding: page.encoding, offset, len: self.out.at() - offset, head })
    }

    fn tail(mut self, entries: &[MetaEntry]) -> Result<()> {
        let (part, cx) = (self.part, self.cx);
        let base = self.out.at();
        let mut streams = base.to_le_bytes().to_vec();
        put_varint(&mut streams, part.chunks(cx)?.len() as u64);
        for chunk in part.chunks(cx)? {
            put_varint(&mut streams, u64::from(chunk.streams));
            self.packed(&chunk.at, SECTION_RAW_MAX, Unit::Chunk)?.put(base, &mut streams);
        }
        let mut inputs = Vec::new();
        part.inputs(cx)?.iter().for_each(|id| put_varint(&mut inputs, *id));
        let mut sections = Vec::new();
        for (kind, raw) in [
            (section::METAINDEX, MetaEntry::encode_all(entries)),
            (section::NAMES, part.names(cx)?.encode()),
            (section::STREAMS, streams),
            (section::INPUTS, inputs),
        ] {
            let at = self.pack(raw, Unit::Section)?;
            sections.push(Section { kind, version: 0, required: true, at });
        }
        let mut directory = encode_directory(&sections);
        (self.change)(Unit::Directory, &mut directory);
        let mut footer = part.footer().clone();
        footer.directory = self.out.unit(&directory)?;
        footer.len = self.out.at() + FOOTER_LEN as u64;
        let mut bytes = footer.encode().0;
        bytes.truncate(FOOTER_LEN - 16);
        (self.change)(Unit::Footer, &mut bytes);
        bytes.resize(FOOTER_LEN - 16, 0);
        let sum = checksum(&bytes);
        bytes.extend_from_slice(&sum.to_le_bytes());
        bytes.extend_from_slice(&END_MAGIC);
        self.out.put(&bytes)?;
        self.out.finish().map(|_| ())
    }

    /// A unit that is packed.
    fn packed(&mut self, at: &Extent, max: usize, unit: Unit) -> Result<Extent> {
        let packed = self.part.read_unit(self.cx, at, "a unit")?;
        let raw = self.cx.decoder().unpack(&packed, max.min(INDEX_BLOCK_RAW_MAX));
        self.pack(raw.map_err(|e| self.part.malformed(at.offset, e))?, unit)
    }

    fn pack(&mut self, mut raw: Vec<u8>, unit: Unit) -> Result<Extent> {
        (self.change)(unit, &mut raw);
        let mut packed = Vec::new();
        self.zstd.pack(&raw, &mut packed);
        self.out.unit(&packed)
    }
}

/// The strips of a page, and its head.
fn raw_page(part: &PartReader, cx: &ReadContext<'_>, page: &PageRef) -> Result<(Vec<u8>, Vec<u8>)> {
    let HeadRef::External { len, checksum } = &page.head else {
        let HeadRef::Inline(head) = &page.head else { return Ok(Default::default()) };
        return Ok((part.source().read(page.offset, page.len)?, head.clone()));
    };
    let at = Extent { offset: page.offset, len: *len, checksum: *checksum };
    let head = part.read_unit(cx, &at, "the head of a page")?;
    Ok((part.source().read(at.end(), page.len - len)?, head))
}

#[cfg(test)]
mod tests {
    use super::super::source::ReadStats;
    use super::super::tests::{Plain, batch, open, options, read_all, write};
    use super::super::{Profile, verify_part};
    use super::*;

    fn rows() -> Vec<Plain> {
        let row = |(i, app): (i64, &&str)| {
            let rare = if i % 100 == 7 { "seldom" } else { "" };
            let text = format!("message {} of {}", i * 7919 % 1_000, i % 17);
            let fields = [("_msg", text.as_str()), ("n", "1"), ("rare", rare)];
            let fields: Vec<_> = fields.into_iter().filter(|(_, v)| !v.is_empty()).collect();
            Plain::new(app, i, &fields)
        };
        (0..5_000).zip(["", "a", "b"].iter().cycle()).map(row).collect()
    }

    #[test]
    fn a_part_that_nothing_changed_is_the_same_part() {
        let (bytes, _) = write(&[&batch(&rows())], &options(Profile::Flush));
        let part = open(&bytes).unwrap();
        let stats = ReadStats::default();
        let cx = ReadContext::new(&stats);
        let mut units = Vec::new();
        let again = open(&remake(&part, &cx, &mut |unit, _| units.push(unit)).unwrap()).unwrap();
        assert_eq!(read_all(&again).unwrap(), read_all(&part).unwrap());
        assert_eq!(verify_part(&again, &cx).unwrap().findings, []);
        for unit in [Unit::Strip, Unit::Head, Unit::Block, Unit::Filter, Unit::Index] {
            assert!(units.contains(&unit), "{unit:?}");
        }
    }

    #[test]
    fn a_change_gets_past_the_checksums() {
        let (bytes, _) = write(&[&batch(&rows())], &options(Profile::Buffer));
        let part = open(&bytes).unwrap();
        let stats = ReadStats::default();
        let cx = ReadContext::new(&stats);
        let mut change = |unit: Unit, bytes: &mut Vec<u8>| {
            if let (Unit::Strip, Some(i)) = (unit, memchr::memmem::find(bytes, b"message 919")) {
                bytes[i] = b'M';
            }
        };
        let again = open(&remake(&part, &cx, &mut change).unwrap()).unwrap();
        let changed = |row: &Plain| row.fields["_msg"].starts_with(b"M");
        assert!(read_all(&again).unwrap().iter().any(changed));
    }
}
