//! Opens a part and reads its tail and index blocks, each when it is first needed.

use std::sync::{Arc, OnceLock};

use super::footer::{Footer, FooterError, Section, header, parse_directory};
use super::index_block::{IndexBlock, MetaEntry, PlacedGroup};
use super::layout::{
    Extent, FOOTER_LEN, HEADER_LEN, INDEX_BLOCK_RAW_MAX, INPUTS_MAX, SECTION_RAW_MAX, section,
};
use super::names::Names;
use super::source::{PartSource, ReadContext, count};
use crate::codec::strip_count;
use crate::codec::varint::Reader;
use crate::error::Malformed;
use crate::index::{CHUNK_STREAMS, Filter, StreamChunk};
use crate::record::StreamKey;
use crate::sync::Mutex;
use crate::{Error, Result};

/// The most raw bytes of a chunk of the stream table.
const CHUNK_RAW_MAX: usize = 512 << 20;

/// What a manifest says of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Expected {
    /// The length of the file.
    pub(crate) len: u64,
    /// The checksum in the footer.
    pub(crate) footer_checksum: u64,
}

/// A part that is open for reading; shared by all who read it.
///
/// Opening reads header and footer. Everything else is read when it is first needed; tail
/// sections and index blocks are kept until [`release`](PartReader::release).
#[derive(Debug)]
pub(crate) struct PartReader {
    source: PartSource,
    footer: Footer,
    footer_checksum: u64,
    directory: OnceLock<Vec<Section>>,
    names: OnceLock<Names>,
    metaindex: OnceLock<Vec<MetaEntry>>,
    chunks: OnceLock<Vec<ChunkRef>>,
    inputs: OnceLock<Vec<u64>>,
    strips: OnceLock<u64>,
    loaded_index: Mutex<Vec<Option<Arc<IndexBlock>>>>,
    loaded_chunks: Mutex<Vec<Option<Arc<StreamChunk>>>>,
}

/// A chunk of the stream table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ChunkRef {
    /// Ordinal of its first stream.
    pub(crate) first: u32,
    /// The number of its streams.
    pub(crate) streams: u32,
    /// Where it is.
    pub(crate) at: Extent,
}

impl PartReader {
    /// Opens a part and checks its header and footer, and that it is the one the manifest means.
    ///
    /// # Errors
    /// `Corrupted`, `Io`; `Unsupported` if a newer version wrote it.
    pub(crate) fn open(source: PartSource, expected: Option<Expected>) -> Result<PartReader> {
        let len = source.len()?;
        let short = || source.corrupted(0, "the file is too short for a part");
        let footer_at = len.checked_sub(FOOTER_LEN as u64).ok_or_else(short)?;
        if footer_at < HEADER_LEN as u64 {
            return Err(short());
        }
        if expected.is_some_and(|e| e.len != len) {
            return Err(source.corrupted(len, "the file has another length than the manifest says"));
        }
        let bytes = source.read(footer_at, FOOTER_LEN as u64)?;
        let (footer, footer_checksum) =
            Footer::parse(&bytes, len).map_err(|e| footer_error(&source, footer_at, e))?;
        if expected.is_some_and(|e| e.footer_checksum != footer_checksum) {
            return Err(source.corrupted(footer_at, "the footer of another part"));
        }
        if source.read(0, HEADER_LEN as u64)? != header() {
            return Err(source.corrupted(0, "no header of a part"));
        }
        Ok(PartReader {
            source,
            footer,
            footer_checksum,
            directory: OnceLock::new(),
            names: OnceLock::new(),
            metaindex: OnceLock::new(),
            chunks: OnceLock::new(),
            inputs: OnceLock::new(),
            strips: OnceLock::new(),
            loaded_index: Mutex::default(),
            loaded_chunks: Mutex::default(),
        })
    }

    /// What the part is.
    pub(crate) fn footer(&self) -> &Footer {
        &self.footer
    }

    /// The checksum in the footer.
    pub(crate) fn footer_checksum(&self) -> u64 {
        self.footer_checksum
    }

    /// Where the bytes come from.
    pub(crate) fn source(&self) -> &PartSource {
        &self.source
    }

    /// The section directory.
    pub(crate) fn sections(&self, cx: &ReadContext<'_>) -> Result<&[Section]> {
        let sections = get_or_load(&self.directory, || {
            let at = &self.footer.directory;
            let bytes = self.read_unit(cx, at, "the section directory")?;
            parse_directory(&bytes, at.offset).map_err(|e| footer_error(&self.source, at.offset, e))
        })?;
        Ok(sections)
    }

    /// The number of strips of all columns, as far as headers tell.
    pub(crate) fn strips(&self, cx: &ReadContext<'_>) -> Result<u64> {
        let strips = get_or_load(&self.strips, || {
            let mut strips = 0;
            for entry in 0..self.metaindex(cx)?.len() {
                let index = self.index_block(cx, entry)?;
                for (i, head) in index.heads().enumerate() {
                    let columns = index.names(i).map_or(0, |names| names.len()) + 1;
                    strips += strip_count(head.rows as usize) * columns;
                }
            }
            Ok(strips as u64)
        })?;
        Ok(*strips)
    }

    /// The column names.
    pub(crate) fn names(&self, cx: &ReadContext<'_>) -> Result<&Names> {
        get_or_load(&self.names, || self.parse_section(cx, section::NAMES, Names::parse))
    }

    /// The list of index blocks.
    pub(crate) fn metaindex(&self, cx: &ReadContext<'_>) -> Result<&[MetaEntry]> {
        let entries = get_or_load(&self.metaindex, || {
            self.parse_section(cx, section::METAINDEX, |raw| {
                let entries = MetaEntry::parse_all(raw)?;
                self.check_metaindex(&entries)?;
                Ok(entries)
            })
        })?;
        Ok(entries)
    }

    fn check_metaindex(&self, entries: &[MetaEntry]) -> std::result::Result<(), Malformed> {
        let footer = &self.footer;
        let blocks = entries.iter().map(|e| u64::from(e.blocks)).sum::<u64>();
        let rows: u64 = entries.iter().map(|e| e.rows).fold(0, u64::saturating_add);
        let inside = |e: &MetaEntry| {
            e.min_time >= footer.min_time
                && e.max_time <= footer.max_time
                && u64::from(e.first_stream) + u64::from(e.streams) <= u64::from(footer.streams)
                && e.at.end() <= footer.directory.offset
        };
        if blocks != u64::from(footer.blocks) || rows != footer.rows || !entries.iter().all(inside)
        {
            return Err(Malformed("the metaindex and the footer disagree"));
        }
        Ok(())
    }

    /// The chunks of the stream table.
    pub(crate) fn chunks(&self, cx: &ReadContext<'_>) -> Result<&[ChunkRef]> {
        let chunks = get_or_load(&self.chunks, || {
            self.parse_section(cx, section::STREAMS, |raw| parse_chunks(raw, &self.footer))
        })?;
        Ok(chunks)
    }

    /// The ids of the parts that this one replaces.
    pub(crate) fn inputs(&self, cx: &ReadContext<'_>) -> Result<&[u64]> {
        let inputs = get_or_load(&self.inputs, || {
            self.parse_section(cx, section::INPUTS, |raw| {
                let mut r = Reader::new(raw);
                let mut out = Vec::new();
                while !r.is_empty() && out.len() < INPUTS_MAX {
                    out.push(r.varint()?);
                }
                r.finish()?;
                if out.len() != self.footer.inputs as usize {
                    return Err(Malformed("other inputs than the footer says"));
                }
                Ok(out)
            })
        })?;
        Ok(inputs)
    }

    /// Index block `entry` of the metaindex.
    pub(crate) fn index_block(
        &self,
        cx: &ReadContext<'_>,
        entry: usize,
    ) -> Result<Arc<IndexBlock>> {
        let block = self.index_block_once(cx, entry)?;
        keep(&self.loaded_index, entry, &block);
        Ok(block)
    }

    /// Like [`index_block`](PartReader::index_block), but does not keep what it has to read: for
    /// walks over the whole part.
    pub(super) fn index_block_once(
        &self,
        cx: &ReadContext<'_>,
        entry: usize,
    ) -> Result<Arc<IndexBlock>> {
        if let Some(Some(loaded)) = self.loaded_index.lock().get(entry) {
            return Ok(Arc::clone(loaded));
        }
        let meta = self.metaindex(cx)?.get(entry);
        let meta = meta.ok_or_else(|| self.source.corrupted(0, "no such index block"))?;
        let packed = self.read_unit(cx, &meta.at, "an index block")?;
        count(&cx.stats.index_blocks, 1);
        let raw = cx.decoder().unpack(&packed, INDEX_BLOCK_RAW_MAX);
        let block = raw
            .and_then(|raw| IndexBlock::parse(raw, meta))
            .map_err(|e| self.malformed(meta.at.offset, e))?;
        Ok(Arc::new(block))
    }

    /// The filters of all members of a group: for walks over the whole part.
    pub(crate) fn filters(
        &self,
        cx: &ReadContext<'_>,
        placed: &PlacedGroup,
    ) -> Result<Vec<Filter>> {
        count(&cx.stats.filter_bytes, placed.group.len());
        count(&cx.stats.read_bytes, placed.group.len());
        let bytes = self.source.read(placed.offset, placed.group.len())?;
        let filters = placed.group.split(&bytes, &mut cx.decoder());
        filters.map_err(|e| self.malformed(placed.offset, e))
    }

    /// Chunk `i` of the stream table.
    pub(crate) fn chunk(&self, cx: &ReadContext<'_>, i: usize) -> Result<Arc<StreamChunk>> {
        let chunk = self.chunk_once(cx, i)?;
        keep(&self.loaded_chunks, i, &chunk);
        Ok(chunk)
    }

    /// Like [`chunk`](PartReader::chunk), but does not keep what it has to read.
    pub(super) fn chunk_once(&self, cx: &ReadContext<'_>, i: usize) -> Result<Arc<StreamChunk>> {
        if let Some(Some(loaded)) = self.loaded_chunks.lock().get(i) {
            return Ok(Arc::clone(loaded));
        }
        let chunk = self.chunks(cx)?.get(i);
        let ChunkRef { streams, at, .. } =
            *chunk.ok_or_else(|| self.source.corrupted(0, "no such stream"))?;
        let packed = self.read_unit(cx, &at, "a chunk of the stream table")?;
        let raw = cx.decoder().unpack(&packed, CHUNK_RAW_MAX);
        let parsed = raw.and_then(StreamChunk::parse).map_err(|e| self.malformed(at.offset, e))?;
        if parsed.len() != streams as usize {
            return Err(self.source.corrupted(at.offset, "a chunk with other streams than listed"));
        }
        Ok(Arc::new(parsed))
    }

    /// The chunk that holds stream `ordinal`, and the stream's place in it.
    pub(crate) fn chunk_of(
        &self,
        cx: &ReadContext<'_>,
        ordinal: u32,
    ) -> Result<(Arc<StreamChunk>, ChunkRef, usize)> {
        let (i, at) = self.locate(cx, ordinal)?;
        Ok((self.chunk(cx, i)?, at, (ordinal - at.first) as usize))
    }

    /// The number of the chunk that holds stream `ordinal`.
    pub(super) fn locate(&self, cx: &ReadContext<'_>, ordinal: u32) -> Result<(usize, ChunkRef)> {
        let chunks = self.chunks(cx)?;
        let i = chunks.partition_point(|c| c.first <= ordinal).saturating_sub(1);
        let at = chunks.get(i).copied();
        let at = at.filter(|c| ordinal >= c.first && ordinal - c.first < c.streams);
        Ok((i, at.ok_or_else(|| self.source.corrupted(0, "no such stream"))?))
    }

    /// The labels of stream `ordinal`.
    pub(crate) fn stream_key(&self, cx: &ReadContext<'_>, ordinal: u32) -> Result<StreamKey> {
        let (chunk, at, i) = self.chunk_of(cx, ordinal)?;
        chunk.key(i).map_err(|e| self.malformed(at.at.offset, e))
    }

    /// The canonical text of stream `ordinal`.
    pub(crate) fn stream_text(&self, cx: &ReadContext<'_>, ordinal: u32) -> Result<Vec<u8>> {
        let (chunk, at, i) = self.chunk_of(cx, ordinal)?;
        chunk.text(i).map_err(|e| self.malformed(at.at.offset, e))
    }

    /// Reads a unit and verifies it.
    pub(super) fn read_unit(
        &self,
        cx: &ReadContext<'_>,
        at: &Extent,
        what: &'static str,
    ) -> Result<Vec<u8>> {
        count(&cx.stats.read_bytes, at.len);
        self.source.unit(at, what)
    }

    pub(super) fn malformed(&self, offset: u64, what: Malformed) -> Error {
        what.at(self.source.path(), offset)
    }

    fn parse_section<T>(
        &self,
        cx: &ReadContext<'_>,
        kind: u16,
        parse: impl FnOnce(&[u8]) -> std::result::Result<T, Malformed>,
    ) -> Result<T> {
        let section = self.sections(cx)?.iter().find(|s| s.kind == kind);
        let Some(section) = section else {
            let what = format!("section {kind} is missing");
            return Err(self.source.corrupted(self.footer.directory.offset, &what));
        };
        let packed = self.read_unit(cx, &section.at, "a section of the tail")?;
        let raw = cx.decoder().unpack(&packed, SECTION_RAW_MAX);
        raw.and_then(|raw| parse(&raw)).map_err(|e| self.malformed(section.at.offset, e))
    }
}

fn footer_error(source: &PartSource, offset: u64, error: FooterError) -> Error {
    match error {
        FooterError::Malformed(what) => what.at(source.path(), offset),
        FooterError::Unsupported(what) => Error::Unsupported { path: source.path().clone(), what },
    }
}

fn parse_chunks(raw: &[u8], footer: &Footer) -> std::result::Result<Vec<ChunkRef>, Malformed> {
    let mut r = Reader::new(raw);
    let base = r.u64()?;
    let count = r.len(raw.len())?;
    let mut out = Vec::with_capacity(count);
    let mut first = 0u32;
    for _ in 0..count {
        let streams = r.len(CHUNK_STREAMS)?;
        let streams = super::layout::count32(streams);
        let at = Extent::read(&mut r, base)?;
        if streams == 0 || at.end() > footer.directory.offset {
            return Err(Malformed("a chunk outside of the part"));
        }
        out.push(ChunkRef { first, streams, at });
        first = first.checked_add(streams).ok_or(Malformed("number of streams"))?;
    }
    r.finish()?;
    if first != footer.streams {
        return Err(Malformed("other streams than the footer says"));
    }
    Ok(out)
}

/// The value of `cell`, loaded by whoever comes first; who comes at the same time loads too.
fn get_or_load<T>(cell: &OnceLock<T>, load: impl FnOnce() -> Result<T>) -> Result<&T> {
    if let Some(value) = cell.get() {
        return Ok(value);
    }
    let value = load()?;
    Ok(cell.get_or_init(|| value))
}

/// Keeps a loaded unit under its number.
fn keep<T>(units: &Mutex<Vec<Option<Arc<T>>>>, i: usize, unit: &Arc<T>) {
    let mut units = units.lock();
    if units.len() <= i {
        units.resize_with(i + 1, || None);
    }
    if let Some(slot) = units.get_mut(i) {
        *slot = Some(Arc::clone(unit));
    }
}
