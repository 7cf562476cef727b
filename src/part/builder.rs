//! Builds a part from rows that come in part order.

use super::block_builder::{BlockBuilder, FULL, Limits, Tools};
use super::copy::BlockCopy;
use super::footer::{Footer, HASH_ID, Section, encode_directory, header};
use super::header::BlockHead;
use super::index_block::{ColumnDraft, IndexBuilder, MetaEntry};
use super::layout::{Extent, count32, section};
use super::names::Names;
use super::sink::{ByteSink, Out};
use super::stream_columns::StreamColumns;
use super::writer::{PartSummary, WriterOptions};
use crate::Result;
use crate::codec::varint::put_varint;
use crate::index::{CHUNK_STREAMS, ChunkBuilder};
use crate::index::{FOLD_ID, TOKENIZER_ID};
use crate::record::StreamKey;

/// Raw bytes of headers that fill an index block.
const INDEX_BLOCK_RAW: usize = 128 << 10;
/// Bytes of filters that fill a filter group.
const FILTER_GROUP: usize = 4 << 20;
/// Bytes of values that end a chunk of the stream table early.
const CHUNK_BYTES: usize = 8 << 20;

/// What is known of a stream before its rows come.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct StreamSize {
    /// Rows; 0 if unknown.
    pub(crate) rows: u64,
    /// Bytes of the largest column that is not constant.
    pub(crate) largest: u64,
}

/// Writes a part: streams in the order of their texts, rows of each by (time, append order).
pub(crate) struct PartBuilder<'a> {
    options: &'a WriterOptions,
    out: Out<'a>,
    names: Names,
    block: BlockBuilder,
    index: IndexBuilder,
    meta: Vec<MetaEntry>,
    blocks: u32,
    /// Rows in finished blocks.
    rows: u64,
    span: Option<(i64, i64)>,
    streams: u32,
    stream: OpenStream,
    chunk: ChunkBuilder,
    /// Finished chunks, packed; they are written behind the blocks.
    chunks: Vec<(u32, Vec<u8>)>,
}

/// The stream whose rows come now.
#[derive(Debug, Default)]
struct OpenStream {
    key: StreamKey,
    constants: Vec<(u32, Vec<u8>)>,
    names: Vec<u32>,
    rows: u64,
    /// Whether the stream fills blocks of its own.
    alone: bool,
    limits: Option<Limits>,
    /// Whether the open block has a run for it.
    has_run: bool,
}

impl<'a> PartBuilder<'a> {
    /// Begins a part. `names` are all names of fields and labels that will come.
    pub(crate) fn new(
        options: &'a WriterOptions,
        names: Names,
        sink: &'a mut dyn ByteSink,
    ) -> Result<PartBuilder<'a>> {
        let mut out = Out::new(sink);
        out.put(&header())?;
        Ok(PartBuilder {
            options,
            out,
            block: BlockBuilder::new(names.len(), Tools::new(options.profile, options.zstd_level)),
            names,
            index: IndexBuilder::default(),
            meta: Vec::new(),
            blocks: 0,
            rows: 0,
            span: None,
            streams: 0,
            stream: OpenStream::default(),
            chunk: ChunkBuilder::default(),
            chunks: Vec::new(),
        })
    }

    /// Leaves out so many bytes of the file.
    #[cfg(test)]
    pub(super) fn skip(&mut self, bytes: u64) {
        self.out.skip(bytes);
    }

    /// Begins the next stream, at least one row of which must follow. `constants` are the columns
    /// with one value in all its rows, ascending by name; [`row`](PartBuilder::row) is not given
    /// them.
    pub(crate) fn begin_stream<'v>(
        &mut self,
        key: &StreamKey,
        constants: impl IntoIterator<Item = (u32, &'v [u8])>,
        size: StreamSize,
    ) -> Result<()> {
        self.end_stream()?;
        let limits = self.options.limits();
        let large = size.largest * 2 >= limits.bytes as u64 || size.rows * 2 >= limits.rows.into();
        let stream = &mut self.stream;
        stream.key = key.clone();
        stream.constants = constants.into_iter().map(|(n, v)| (n, v.to_vec())).collect();
        stream.names = stream.constants.iter().map(|c| c.0).collect();
        stream.rows = 0;
        stream.alone = large;
        stream.limits = None;
        if large {
            stream.limits = Some(limits.evenly(size));
            self.close_block()?;
        }
        self.stream.has_run = false;
        self.streams += 1;
        Ok(())
    }

    /// Adds the next row of the stream: its fields by number of their names, each at most once,
    /// no empty values, in any order.
    #[inline]
    pub(crate) fn row(&mut self, time: i64, fields: &[(u32, &[u8])]) -> Result<()> {
        let limits = self.limits();
        if self.block.is_full(fields, limits) {
            self.close_full(limits)?;
        }
        self.open_run();
        self.stream.rows += 1;
        self.block.row(time, fields);
        Ok(())
    }

    /// Adds the next rows of the stream, but for the columns that `skip` names: its constants.
    pub(crate) fn columns(
        &mut self,
        held: &StreamColumns,
        skip: &dyn Fn(u32) -> bool,
    ) -> Result<()> {
        let mut from = 0;
        let all = count32(held.len());
        while from < all {
            let limits = self.limits();
            let fitting = self.block.fitting(held, from, skip, limits);
            if fitting == 0 {
                self.close_full(limits)?;
                continue;
            }
            self.open_run();
            self.stream.rows += u64::from(fitting);
            self.block.columns(held, from..from + fitting, skip);
            from += fitting;
        }
        Ok(())
    }

    fn limits(&self) -> Limits {
        self.stream.limits.unwrap_or(self.options.limits())
    }

    /// Closes a block that the next row does not fit in.
    fn close_full(&mut self, limits: Limits) -> Result<()> {
        if self.stream.rows > 0 && self.block.largest() >= limits.bytes / 2 {
            // A stream that overflows a block is not joined by smaller ones.
            self.stream.alone = true;
        }
        self.close_block()
    }

    fn open_run(&mut self) {
        if !self.stream.has_run {
            self.block.begin_run(self.streams - 1, &self.stream.names);
            self.stream.has_run = true;
        }
    }

    /// Whether a block with these counts is so full that it is worth copying.
    pub(crate) fn is_full(&self, rows: u32, largest: u32) -> bool {
        let limits = self.options.limits();
        rows >= limits.rows.div_ceil(2) || largest as usize * 2 >= limits.bytes
    }

    /// Adds a whole block of the stream, behind the rows so far. `constants` are those of the
    /// stream in the part that the block comes from, ascending by name: they include all that the
    /// stream has here.
    pub(crate) fn copy_block(
        &mut self,
        block: BlockCopy,
        constants: &[(u32, &[u8])],
    ) -> Result<()> {
        self.close_block()?;
        let kept = |name: u32| self.stream.names.binary_search(&name).is_ok();
        let lost: Vec<(u32, &[u8])> =
            constants.iter().copied().filter(|(name, _)| !kept(*name)).collect();
        let place = (self.blocks, self.rows, self.streams - 1);
        let (head, columns) = block.write(&mut self.out, place, &lost)?;
        self.stream.rows += u64::from(head.rows);
        self.add_block(head, columns)
    }

    /// Counts the stream that ends and puts it into the stream table.
    fn end_stream(&mut self) -> Result<()> {
        let stream = &mut self.stream;
        if stream.rows == 0 {
            return Ok(());
        }
        for (name, _) in stream.key.labels() {
            if let Some(id) = self.names.id(name) {
                self.names.add_hits(id, stream.rows);
            }
        }
        for (name, _) in &stream.constants {
            self.names.add_hits(*name, stream.rows);
        }
        let constants = stream.constants.iter().map(|(n, v)| (*n, v.as_slice()));
        self.chunk.push(&stream.key, constants, stream.rows);
        let alone = stream.alone;
        stream.rows = 0;
        if self.chunk.len() >= CHUNK_STREAMS || self.chunk.value_bytes() >= CHUNK_BYTES {
            self.close_chunk();
        }
        if alone { self.close_block() } else { Ok(()) }
    }

    fn close_chunk(&mut self) {
        let streams = count32(self.chunk.len());
        if streams > 0 {
            let mut packed = Vec::new();
            self.block.tools().zstd.pack(&self.chunk.take(), &mut packed);
            self.chunks.push((streams, packed));
        }
    }

    fn close_block(&mut self) -> Result<()> {
        self.stream.has_run = false;
        if self.block.rows() == 0 {
            return Ok(());
        }
        let written = self.block.write(&mut self.out, &self.names, (self.blocks, self.rows))?;
        self.add_block(written.head, written.columns)
    }

    /// Counts a block that was written.
    fn add_block(&mut self, head: BlockHead, columns: Vec<ColumnDraft>) -> Result<()> {
        for column in &columns {
            self.names.add_hits(column.name, u64::from(column.header.present));
        }
        self.blocks += 1;
        self.rows += u64::from(head.rows);
        let (min, max) = self.span.unwrap_or((head.min_time, head.max_time));
        self.span = Some((min.min(head.min_time), max.max(head.max_time)));
        self.index.push(head, columns);
        let (raw, filters) = self.index.size();
        if raw >= INDEX_BLOCK_RAW || filters >= FILTER_GROUP {
            self.flush_index()?;
        }
        Ok(())
    }

    fn flush_index(&mut self) -> Result<()> {
        let zstd = self.block.tools().encoder.heads();
        self.meta.extend(self.index.flush(&mut self.out, zstd)?);
        Ok(())
    }

    /// Writes the tail; gives what the manifest lists.
    pub(crate) fn finish(mut self) -> Result<PartSummary> {
        self.end_stream()?;
        self.close_block()?;
        self.flush_index()?;
        self.close_chunk();
        let mut chunks = Vec::new();
        put_varint(&mut chunks, self.chunks.len() as u64);
        let base = self.out.at();
        for (streams, packed) in std::mem::take(&mut self.chunks) {
            put_varint(&mut chunks, u64::from(streams));
            self.out.unit(&packed)?.put(base, &mut chunks);
        }
        let mut streams = base.to_le_bytes().to_vec();
        streams.extend_from_slice(&chunks);
        let mut inputs = Vec::new();
        self.options.inputs.iter().for_each(|id| put_varint(&mut inputs, *id));
        let sections = [
            self.section(section::METAINDEX, &MetaEntry::encode_all(&self.meta))?,
            self.section(section::NAMES, &self.names.encode())?,
            self.section(section::STREAMS, &streams)?,
            self.section(section::INPUTS, &inputs)?,
        ];
        let directory = self.out.unit(&encode_directory(&sections))?;
        self.write_footer(directory)
    }

    fn section(&mut self, kind: u16, raw: &[u8]) -> Result<Section> {
        let mut packed = Vec::new();
        self.block.tools().zstd.pack(raw, &mut packed);
        Ok(Section { kind, version: 0, required: true, at: self.out.unit(&packed)? })
    }

    fn write_footer(mut self, directory: Extent) -> Result<PartSummary> {
        let options = self.options;
        let (min_time, max_time) = self.span.unwrap_or((0, 0));
        let footer = Footer {
            store_id: options.store_id,
            part_id: options.part_id,
            day: options.day,
            cut_lo: options.cuts.0,
            cut_hi: options.cuts.1,
            deletes_applied: options.deletes_applied,
            rows: self.rows,
            min_time,
            max_time,
            blocks: self.blocks,
            streams: self.streams,
            level: options.level,
            tokenizer_id: TOKENIZER_ID,
            fold_id: FOLD_ID,
            hash_id: HASH_ID,
            inputs: count32(options.inputs.len()),
            required: 0,
            optional: 0,
            directory,
            len: self.out.at() + super::layout::FOOTER_LEN as u64,
        };
        let (bytes, footer_checksum) = footer.encode();
        self.out.put(&bytes)?;
        let len = self.out.finish()?;
        Ok(PartSummary {
            part_id: options.part_id,
            day: options.day,
            level: options.level,
            cuts: options.cuts,
            rows: self.rows,
            blocks: self.blocks,
            streams: self.streams,
            min_time,
            max_time,
            len,
            footer_checksum,
        })
    }
}

impl Limits {
    /// Limits under which a stream fills blocks of about the same size, none of them a small rest.
    fn evenly(self, size: StreamSize) -> Limits {
        let by_rows = size.rows.div_ceil(self.rows.into()).max(1);
        let rows = u32::try_from(size.rows.div_ceil(by_rows)).unwrap_or(self.rows);
        let by_bytes = size.largest.div_ceil(self.bytes as u64).max(1);
        let share = size.largest.div_ceil(by_bytes);
        let bytes = usize::try_from(share + share / 16).unwrap_or(self.bytes);
        Limits { rows: rows.clamp(1, self.rows), bytes: bytes.clamp(1, self.bytes) }
    }
}

impl WriterOptions {
    fn limits(&self) -> Limits {
        Limits {
            rows: self.block_rows.clamp(1, FULL.rows),
            bytes: self.block_bytes.clamp(1, FULL.bytes),
        }
    }
}
