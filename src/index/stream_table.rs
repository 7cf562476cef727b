//! The streams of a part: their labels, and the columns that have one value in all of a stream's
//! rows.
//!
//! Streams are numbered in the order of their text. The table is cut into chunks of at most
//! [`CHUNK_STREAMS`] streams; a chunk holds, for each column, its distinct values in bytewise order
//! and a code for each stream: 0 for none, else one more than the value's number. So a selector is
//! evaluated once for each distinct value of a chunk, and a chunk is read only when it is needed.
//! Ids of streams are not stored: they follow from the labels.
//!
//! Directory: `columns varint | (kind u8, name behind its length) each | chunks varint | (streams
//! varint, length varint, xxh3-64) each`. A chunk is one packed blob of `columns varint`, then for
//! each column, ascending: `number in the directory varint | distinct values varint | shared
//! prefixes and suffix lengths of the values (integers each) | bytes of the suffixes | codes
//! (integers)`. Whoever refers to the directory keeps its length and checksum; the chunks follow
//! it.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_64;

use crate::codec::compress::Compressor;
use crate::codec::varint::{Reader, put_bytes, put_varint};
use crate::codec::{Bitmap, Decoder, PAGE_RAW_MAX, decode_ints, encode_ints};
use crate::error::Malformed;
use crate::record::{StreamKey, TextVec, stream_text};

/// The most streams of a chunk.
pub(crate) const CHUNK_STREAMS: usize = 1_024;
/// A chunk is closed before its values would exceed this many bytes.
const CHUNK_BYTES: usize = 4 << 20;
/// The most bytes of a column's name.
const NAME_MAX: usize = 1 << 16;

/// A column of the table. The same name may be a label of some streams and a constant of others.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum StreamColumn {
    /// A label of the stream.
    Label(String),
    /// An ordinary field with one value in all rows of the stream.
    Constant(String),
}

impl StreamColumn {
    /// The field's name.
    pub(crate) fn name(&self) -> &str {
        match self {
            StreamColumn::Label(name) | StreamColumn::Constant(name) => name,
        }
    }

    fn is_label(&self) -> bool {
        matches!(self, StreamColumn::Label(_))
    }
}

/// Makes a table of streams that come in order.
#[derive(Debug, Default)]
pub(crate) struct StreamTableBuilder {
    columns: Vec<StreamColumn>,
    numbers: BTreeMap<StreamColumn, u32>,
    directory: Vec<u8>,
    chunks: Vec<u8>,
    chunk_count: u64,
    len: usize,
    /// Of the open chunk: values of each column with their streams.
    open: BTreeMap<u32, Vec<(u32, Vec<u8>)>>,
    open_streams: u32,
    open_bytes: usize,
}

impl StreamTableBuilder {
    /// A table without streams.
    pub(crate) fn new() -> StreamTableBuilder {
        StreamTableBuilder::default()
    }

    /// Adds the next stream with its constants, whose names are not labels of it; absent values
    /// are left out. Returns its ordinal.
    pub(crate) fn push<'a>(
        &mut self,
        key: &StreamKey,
        constants: impl IntoIterator<Item = (&'a str, &'a [u8])>,
        zstd: &mut Compressor,
    ) -> usize {
        if self.open_streams as usize >= CHUNK_STREAMS || self.open_bytes > CHUNK_BYTES {
            self.close_chunk(zstd);
        }
        for (name, value) in key.labels() {
            self.put(StreamColumn::Label(name.clone()), value);
        }
        for (name, value) in constants {
            if !value.is_empty() {
                self.put(StreamColumn::Constant(name.to_owned()), value);
            }
        }
        self.open_streams += 1;
        self.len += 1;
        self.len - 1
    }

    /// The directory, and the chunks that follow it.
    pub(crate) fn finish(mut self, zstd: &mut Compressor) -> (Vec<u8>, Vec<u8>) {
        self.close_chunk(zstd);
        let mut head = Vec::new();
        put_varint(&mut head, self.columns.len() as u64);
        for column in &self.columns {
            head.push(u8::from(!column.is_label()));
            put_bytes(&mut head, column.name().as_bytes());
        }
        put_varint(&mut head, self.chunk_count);
        head.extend_from_slice(&self.directory);
        (head, self.chunks)
    }

    fn put(&mut self, column: StreamColumn, value: &[u8]) {
        let number = match self.numbers.get(&column) {
            Some(number) => *number,
            None => {
                // Every column has a value, so the memory that holds them bounds their number.
                let number = u32::try_from(self.columns.len()).unwrap_or(u32::MAX);
                self.columns.push(column.clone());
                self.numbers.insert(column, number);
                number
            }
        };
        self.open_bytes += value.len();
        self.open.entry(number).or_default().push((self.open_streams, value.to_vec()));
    }

    fn close_chunk(&mut self, zstd: &mut Compressor) {
        if self.open_streams == 0 {
            return;
        }
        let mut raw = Vec::new();
        put_varint(&mut raw, self.open.len() as u64);
        for (number, values) in &self.open {
            put_varint(&mut raw, u64::from(*number));
            encode_column(values, self.open_streams as usize, &mut raw);
        }
        let start = self.chunks.len();
        zstd.pack(&raw, &mut self.chunks);
        let chunk = self.chunks.get(start..).unwrap_or(&[]);
        put_varint(&mut self.directory, u64::from(self.open_streams));
        put_varint(&mut self.directory, chunk.len() as u64);
        self.directory.extend_from_slice(&xxh3_64(chunk).to_le_bytes());
        self.chunk_count += 1;
        self.open.clear();
        self.open_streams = 0;
        self.open_bytes = 0;
    }
}

/// Appends distinct values and codes of a column.
fn encode_column(values: &[(u32, Vec<u8>)], streams: usize, out: &mut Vec<u8>) {
    let mut distinct: Vec<&[u8]> = values.iter().map(|(_, v)| v.as_slice()).collect();
    distinct.sort_unstable();
    distinct.dedup();
    let (mut prefixes, mut suffixes, mut bytes) = (Vec::new(), Vec::new(), Vec::new());
    let mut last: &[u8] = &[];
    for value in &distinct {
        let shared = last.iter().zip(*value).take_while(|(a, b)| a == b).count();
        let suffix = value.get(shared..).unwrap_or(&[]);
        prefixes.push(signed(shared));
        suffixes.push(signed(suffix.len()));
        bytes.extend_from_slice(suffix);
        last = value;
    }
    let mut codes = vec![0i64; streams];
    for (stream, value) in values {
        let code = distinct.binary_search(&value.as_slice()).map_or(0, |i| signed(i + 1));
        if let Some(to) = codes.get_mut(*stream as usize) {
            *to = code;
        }
    }
    put_varint(out, distinct.len() as u64);
    encode_ints(&prefixes, out);
    encode_ints(&suffixes, out);
    out.extend_from_slice(&bytes);
    encode_ints(&codes, out);
}

/// Lengths in memory fit 63 bits.
fn signed(n: usize) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

/// The directory of a stream table.
#[derive(Debug, Clone)]
pub(crate) struct StreamTable {
    len: usize,
    columns: Arc<[StreamColumn]>,
    chunks: Vec<ChunkRef>,
}

#[derive(Debug, Clone, Copy)]
struct ChunkRef {
    first: usize,
    streams: usize,
    start: u64,
    len: u64,
    checksum: u64,
}

impl StreamTable {
    /// Reads a directory whose checksum has been verified.
    pub(crate) fn parse(directory: &[u8]) -> Result<StreamTable, Malformed> {
        let mut r = Reader::new(directory);
        // Each column takes two bytes and each chunk ten, so the counts are bounded by the bytes.
        let mut columns = Vec::new();
        for _ in 0..r.len(directory.len())? {
            let kind = r.u8()?;
            let name = std::str::from_utf8(r.bytes(NAME_MAX)?);
            let name = name.map_err(|_| Malformed("column name is not UTF-8"))?.to_owned();
            columns.push(match kind {
                0 => StreamColumn::Label(name),
                1 => StreamColumn::Constant(name),
                _ => return Err(Malformed("unknown kind of stream column")),
            });
        }
        let mut chunks = Vec::new();
        let (mut first, mut start) = (0usize, directory.len() as u64);
        for _ in 0..r.len(directory.len())? {
            let streams = r.len(CHUNK_STREAMS)?;
            let len = u64::from(r.varint32()?);
            chunks.push(ChunkRef { first, streams, start, len, checksum: r.u64()? });
            first += streams;
            start += len;
        }
        r.finish()?;
        Ok(StreamTable { len: first, columns: columns.into(), chunks })
    }

    /// The number of streams.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// All columns, in no order that means anything.
    pub(crate) fn columns(&self) -> &[StreamColumn] {
        &self.columns
    }

    /// The number of chunks.
    pub(crate) fn chunk_count(&self) -> usize {
        self.chunks.len()
    }

    /// The chunk of a stream and the stream's row in it.
    pub(crate) fn locate(&self, ordinal: usize) -> Option<(usize, usize)> {
        let i = self.chunks.partition_point(|c| c.first + c.streams <= ordinal);
        let chunk = self.chunks.get(i)?;
        Some((i, ordinal - chunk.first))
    }

    /// The ordinals of the streams of chunk `i`.
    pub(crate) fn chunk_streams(&self, i: usize) -> Range<usize> {
        self.chunks.get(i).map_or(self.len..self.len, |c| c.first..c.first + c.streams)
    }

    /// Where chunk `i` is, counted from the start of the directory.
    pub(crate) fn chunk_range(&self, i: usize) -> Range<u64> {
        self.chunks.get(i).map_or(0..0, |c| c.start..c.start + c.len)
    }

    /// Verifies and decodes chunk `i` from its bytes.
    pub(crate) fn decode_chunk(
        &self,
        i: usize,
        bytes: &[u8],
        decoder: &mut Decoder,
    ) -> Result<StreamChunk, Malformed> {
        let chunk = self.chunks.get(i).ok_or(Malformed("no such chunk of streams"))?;
        if bytes.len() as u64 != chunk.len || xxh3_64(bytes) != chunk.checksum {
            return Err(Malformed("chunk of streams does not match its checksum"));
        }
        let raw = decoder.unpack(bytes, PAGE_RAW_MAX)?;
        StreamChunk::decode(&raw, chunk.streams, Arc::clone(&self.columns))
    }
}

/// Up to [`CHUNK_STREAMS`] consecutive streams. Streams are numbered from the chunk's first one.
#[derive(Debug, Clone)]
pub(crate) struct StreamChunk {
    streams: usize,
    names: Arc<[StreamColumn]>,
    columns: Vec<ChunkColumn>,
}

#[derive(Debug, Clone)]
struct ChunkColumn {
    /// Number in the directory.
    number: usize,
    distinct: TextVec,
    /// 0 or the number of the value plus one; all are at most the number of values.
    codes: Vec<u16>,
}

impl ChunkColumn {
    fn get(&self, stream: usize) -> &[u8] {
        let code = self.codes.get(stream).copied().unwrap_or(0);
        code.checked_sub(1).map_or(&[], |i| self.distinct.get(usize::from(i)))
    }
}

impl StreamChunk {
    fn decode(
        raw: &[u8],
        streams: usize,
        names: Arc<[StreamColumn]>,
    ) -> Result<StreamChunk, Malformed> {
        let mut r = Reader::new(raw);
        let mut columns: Vec<ChunkColumn> = Vec::new();
        for _ in 0..r.len(names.len())? {
            let number = r.len(names.len().saturating_sub(1))?;
            if columns.last().is_some_and(|c| c.number >= number) {
                return Err(Malformed("stream columns out of order"));
            }
            columns.push(decode_column(&mut r, number, streams)?);
        }
        r.finish()?;
        // The text of a stream lists labels by name.
        columns.sort_by(|a, b| names.get(a.number).cmp(&names.get(b.number)));
        Ok(StreamChunk { streams, names, columns })
    }

    /// The number of streams.
    pub(crate) fn len(&self) -> usize {
        self.streams
    }

    /// The labels of a stream, by name.
    pub(crate) fn labels(&self, stream: usize) -> impl Iterator<Item = (&str, &[u8])> {
        self.values(stream, true)
    }

    /// The constants of a stream, by name.
    pub(crate) fn constants(&self, stream: usize) -> impl Iterator<Item = (&str, &[u8])> {
        self.values(stream, false)
    }

    /// The labels of a stream as a key.
    pub(crate) fn key(&self, stream: usize) -> StreamKey {
        StreamKey::new(self.labels(stream).map(|(n, v)| (n.to_owned(), v.to_vec())))
    }

    /// The canonical text of a stream.
    pub(crate) fn text(&self, stream: usize) -> Vec<u8> {
        stream_text(self.labels(stream))
    }

    /// The value of a column of a stream; empty if it has none.
    pub(crate) fn get(&self, stream: usize, column: &StreamColumn) -> &[u8] {
        self.column(column).map_or(&[], |c| c.get(stream))
    }

    /// The distinct values of a column in bytewise order.
    pub(crate) fn distinct(&self, column: &StreamColumn) -> Option<&TextVec> {
        self.column(column).map(|c| &c.distinct)
    }

    /// The number of the value in [`distinct`](StreamChunk::distinct) plus one, or 0 for none.
    pub(crate) fn codes(&self, column: &StreamColumn) -> Option<&[u16]> {
        self.column(column).map(|c| c.codes.as_slice())
    }

    /// The streams whose value of `column` satisfies `f`, which is called once for each distinct
    /// value, and with the empty one if some stream has none.
    pub(crate) fn matching(
        &self,
        column: &StreamColumn,
        mut f: impl FnMut(&[u8]) -> bool,
    ) -> Bitmap {
        let Some(column) = self.column(column) else {
            return if self.streams > 0 && f(&[]) {
                Bitmap::full(self.streams)
            } else {
                Bitmap::empty(self.streams)
            };
        };
        let mut answers = vec![column.codes.contains(&0) && f(&[])];
        answers.extend(column.distinct.iter().map(f));
        Bitmap::from_fn(self.streams, |stream| {
            let code = column.codes.get(stream).copied().unwrap_or(0);
            answers.get(usize::from(code)).copied().unwrap_or(false)
        })
    }

    /// Bytes of memory held.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.columns.iter().map(|c| c.distinct.heap_bytes() + c.codes.capacity() * 2 + 64).sum()
    }

    fn column(&self, column: &StreamColumn) -> Option<&ChunkColumn> {
        let name = |c: &ChunkColumn| self.names.get(c.number);
        let i = self.columns.binary_search_by(|c| name(c).cmp(&Some(column))).ok()?;
        self.columns.get(i)
    }

    fn values(&self, stream: usize, labels: bool) -> impl Iterator<Item = (&str, &[u8])> {
        self.columns.iter().filter_map(move |c| {
            let name = self.names.get(c.number).filter(|name| name.is_label() == labels)?;
            let value = c.get(stream);
            (!value.is_empty()).then_some((name.name(), value))
        })
    }
}

fn decode_column(
    r: &mut Reader<'_>,
    number: usize,
    streams: usize,
) -> Result<ChunkColumn, Malformed> {
    let count = r.len(streams)?;
    let lens = |numbers: Vec<i64>| -> Result<Vec<usize>, Malformed> {
        let len = |n: i64| usize::try_from(n).map_err(|_| Malformed("negative length"));
        numbers.into_iter().map(len).collect()
    };
    let prefixes = lens(decode_ints(r, count)?)?;
    let suffixes = lens(decode_ints(r, count)?)?;
    let mut distinct = TextVec::new();
    let mut value: Vec<u8> = Vec::new();
    let mut total = 0usize;
    for (prefix, suffix) in prefixes.into_iter().zip(suffixes) {
        if prefix > value.len() {
            return Err(Malformed("prefix longer than the value before"));
        }
        value.truncate(prefix);
        value.extend_from_slice(r.take(suffix)?);
        total += value.len();
        if total > PAGE_RAW_MAX {
            return Err(Malformed("values of a stream column over their cap"));
        }
        distinct.push(&value);
    }
    let code = |n: i64| {
        let code = u16::try_from(n).ok().filter(|code| usize::from(*code) <= count);
        code.ok_or(Malformed("code past the end of a stream column"))
    };
    let codes: Result<Vec<u16>, Malformed> =
        decode_ints(r, streams)?.into_iter().map(code).collect();
    Ok(ChunkColumn { number, distinct, codes: codes? })
}

#[cfg(test)]
mod tests;
