//! The stream table: labels and constants of the streams of a part, in chunks.
//!
//! A chunk holds up to [`CHUNK_STREAMS`] streams column by column: for each label name and each
//! constant field the sorted distinct values, and a code for each stream. A stream filter runs on
//! distinct values; a merge holds one chunk at a time.
//!
//! ```text
//! streams | rows of each | labels n, n x (name, bytes) | constants n, n x (id - previous, bytes)
//! | columns in that order: values n, n x (shared with the one before, rest), codes as deltas
//! ```

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

#[cfg(any(test, feature = "fuzzing"))]
use crate::codec::Bitmap;
use crate::codec::varint::{Reader, put_bytes, put_signed, put_varint};
use crate::error::Malformed;
use crate::record::{StreamKey, TextVec, stream_text};

/// The most streams of a chunk.
pub(crate) const CHUNK_STREAMS: usize = 1_024;

/// The most bytes of a label name.
const NAME_MAX: usize = 1 << 16;
/// The most columns of a chunk.
const COLUMNS_MAX: usize = 4 << 20;
/// The most bytes of all distinct values of a column of a chunk.
const VALUES_MAX: usize = 256 << 20;

/// Collects the streams of a chunk, in the order of their texts.
#[derive(Debug, Default)]
pub(crate) struct ChunkBuilder {
    rows: Vec<u64>,
    labels: BTreeMap<String, Draft>,
    constants: BTreeMap<u32, Draft>,
    bytes: usize,
}

/// The values of one column, for the streams that have one.
#[derive(Debug, Default)]
struct Draft {
    streams: Vec<u32>,
    values: TextVec,
}

impl ChunkBuilder {
    /// Adds the next stream: its labels, its constants by part number of their names (without
    /// empty values), and how many rows it has in the part.
    pub(crate) fn push<'a>(
        &mut self,
        key: &StreamKey,
        constants: impl IntoIterator<Item = (u32, &'a [u8])>,
        rows: u64,
    ) {
        let stream = u32::try_from(self.rows.len()).unwrap_or(u32::MAX);
        self.rows.push(rows);
        for (name, value) in key.labels() {
            self.bytes += value.len();
            match self.labels.get_mut(name) {
                Some(draft) => draft.push(stream, value),
                None => self.labels.entry(name.clone()).or_default().push(stream, value),
            }
        }
        for (name, value) in constants {
            self.bytes += value.len();
            self.constants.entry(name).or_default().push(stream, value);
        }
    }

    /// The number of streams so far.
    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Bytes of all values so far.
    pub(crate) fn value_bytes(&self) -> usize {
        self.bytes
    }

    /// The raw bytes of the chunk; the builder is empty afterwards.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        let mut out = Vec::new();
        put_varint(&mut out, self.rows.len() as u64);
        self.rows.iter().for_each(|rows| put_varint(&mut out, *rows));
        let mut bodies = Vec::new();
        put_varint(&mut out, self.labels.len() as u64);
        for (name, draft) in &self.labels {
            put_bytes(&mut out, name.as_bytes());
            let start = bodies.len();
            draft.encode(self.rows.len(), &mut bodies);
            put_varint(&mut out, (bodies.len() - start) as u64);
        }
        put_varint(&mut out, self.constants.len() as u64);
        let mut next = 0;
        for (&name, draft) in &self.constants {
            put_varint(&mut out, u64::from(name - next));
            next = name + 1;
            let start = bodies.len();
            draft.encode(self.rows.len(), &mut bodies);
            put_varint(&mut out, (bodies.len() - start) as u64);
        }
        out.extend_from_slice(&bodies);
        *self = ChunkBuilder::default();
        out
    }
}

impl Draft {
    fn push(&mut self, stream: u32, value: &[u8]) {
        self.streams.push(stream);
        self.values.push(value);
    }

    fn encode(&self, streams: usize, out: &mut Vec<u8>) {
        let mut order: Vec<usize> = (0..self.values.len()).collect();
        order.sort_by(|a, b| self.values.get(*a).cmp(self.values.get(*b)));
        let mut codes = vec![0i64; streams];
        let (mut distinct, mut body) = (0i64, Vec::new());
        let mut before: &[u8] = &[];
        for i in order {
            let value = self.values.get(i);
            if distinct == 0 || value != before {
                let shared = before.iter().zip(value).take_while(|(a, b)| a == b).count();
                put_varint(&mut body, shared as u64);
                put_bytes(&mut body, value.get(shared..).unwrap_or(&[]));
                distinct += 1;
                before = value;
            }
            let stream = self.streams.get(i).map_or(0, |s| *s as usize);
            if let Some(code) = codes.get_mut(stream) {
                *code = distinct;
            }
        }
        put_varint(out, distinct.cast_unsigned());
        out.extend_from_slice(&body);
        let mut before = 0;
        for code in codes {
            put_signed(out, code - before);
            before = code;
        }
    }
}

/// One label or constant of the streams of a chunk.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ChunkColumn {
    /// For each stream 0 if it has no value, else the number of its value plus 1.
    pub(crate) codes: Vec<u32>,
    /// The distinct values, sorted bytewise.
    pub(crate) values: Arc<TextVec>,
}

impl ChunkColumn {
    /// The value of stream `i` of the chunk; empty if it has none.
    pub(crate) fn value(&self, i: usize) -> &[u8] {
        match self.codes.get(i).and_then(|code| (*code as usize).checked_sub(1)) {
            Some(value) => self.values.get(value),
            None => &[],
        }
    }

    /// The streams whose value satisfies `f`, which is called once for each distinct value, and
    /// with the empty one if some stream has none.
    #[cfg(any(test, feature = "fuzzing"))]
    pub(crate) fn matching(&self, mut f: impl FnMut(&[u8]) -> bool) -> Bitmap {
        let mut answers = vec![self.codes.contains(&0) && f(&[])];
        answers.extend(self.values.iter().map(f));
        Bitmap::from_fn(self.codes.len(), |stream| {
            let code = self.codes.get(stream).copied().unwrap_or(0);
            answers.get(code as usize).copied().unwrap_or(false)
        })
    }

    fn parse(bytes: &[u8], streams: usize) -> Result<ChunkColumn, Malformed> {
        let mut r = Reader::new(bytes);
        let distinct = r.len(streams)?;
        let mut values = TextVec::new();
        let mut value = Vec::new();
        for i in 0..distinct {
            let shared = r.len(value.len())?;
            let rest = r.bytes(VALUES_MAX)?;
            if rest <= value.get(shared..).unwrap_or(&[]) {
                let what = if i == 0 { "an empty value" } else { "values out of order" };
                return Err(Malformed(what));
            }
            value.truncate(shared);
            value.extend_from_slice(rest);
            if values.bytes().len() + value.len() > VALUES_MAX {
                return Err(Malformed("value over its cap"));
            }
            values.push(&value);
        }
        let mut codes = Vec::with_capacity(streams);
        let mut code = 0i64;
        for _ in 0..streams {
            code = code.checked_add(r.signed()?).ok_or(Malformed("code out of range"))?;
            let code = u32::try_from(code).ok().filter(|c| *c as usize <= distinct);
            codes.push(code.ok_or(Malformed("code out of range"))?);
        }
        r.finish()?;
        Ok(ChunkColumn { codes, values: Arc::new(values) })
    }
}

/// A column that is read when it is asked for.
#[derive(Debug)]
struct Lazy<K> {
    name: K,
    bytes: Range<usize>,
    column: OnceLock<Arc<ChunkColumn>>,
}

/// A chunk of a stream table; its columns are read when they are asked for.
#[derive(Debug)]
pub(crate) struct StreamChunk {
    raw: Vec<u8>,
    rows: Vec<u64>,
    labels: Vec<Lazy<String>>,
    constants: Vec<Lazy<u32>>,
}

impl StreamChunk {
    /// Reads the raw bytes of a chunk.
    pub(crate) fn parse(raw: Vec<u8>) -> Result<StreamChunk, Malformed> {
        let mut r = Reader::new(&raw);
        let streams = r.len(CHUNK_STREAMS)?;
        let mut rows = Vec::with_capacity(streams);
        for _ in 0..streams {
            rows.push(r.varint()?);
        }
        let mut at = 0usize;
        let mut range = |len: usize| {
            let start = at;
            at = at.saturating_add(len);
            start..at
        };
        let mut labels: Vec<Lazy<String>> = Vec::new();
        for _ in 0..r.len(COLUMNS_MAX)? {
            let name = std::str::from_utf8(r.bytes(NAME_MAX)?);
            let name = name.map_err(|_| Malformed("a label name that is not UTF-8"))?.to_owned();
            if labels.last().is_some_and(|last| last.name >= name) {
                return Err(Malformed("label names out of order"));
            }
            let bytes = range(r.len(raw.len())?);
            labels.push(Lazy { name, bytes, column: OnceLock::new() });
        }
        let (mut constants, mut next) = (Vec::new(), 0u32);
        for _ in 0..r.len(COLUMNS_MAX)? {
            let late = Malformed("number of a constant");
            let name = next.checked_add(r.varint32()?).ok_or(late)?;
            next = name.checked_add(1).ok_or(late)?;
            let bytes = range(r.len(raw.len())?);
            constants.push(Lazy { name, bytes, column: OnceLock::new() });
        }
        if at != r.rest().len() {
            return Err(Malformed("columns of a stream chunk"));
        }
        let base = raw.len() - at;
        labels.iter_mut().for_each(|c| c.shift(base));
        constants.iter_mut().for_each(|c| c.shift(base));
        Ok(StreamChunk { raw, rows, labels, constants })
    }

    /// The number of streams.
    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Rows of the part in stream `i` of the chunk.
    pub(crate) fn rows(&self, i: usize) -> u64 {
        self.rows.get(i).copied().unwrap_or(0)
    }

    /// The names of all labels of these streams, sorted.
    pub(crate) fn label_names(&self) -> impl Iterator<Item = &str> + '_ {
        self.labels.iter().map(|c| c.name.as_str())
    }

    /// Part numbers of the names of all constants of these streams, ascending.
    pub(crate) fn constant_names(&self) -> impl Iterator<Item = u32> + '_ {
        self.constants.iter().map(|c| c.name)
    }

    /// Part numbers of the names of the constants that some of these streams have, ascending.
    pub(crate) fn constant_names_of(&self, streams: Range<usize>) -> Result<Vec<u32>, Malformed> {
        let mut out = Vec::new();
        for column in &self.constants {
            let loaded = self.load(column)?;
            let of_streams = loaded.codes.get(streams.clone()).unwrap_or(&[]);
            if of_streams.iter().any(|code| *code > 0) {
                out.push(column.name);
            }
        }
        Ok(out)
    }

    /// The label `name`; none if no stream of the chunk has it.
    pub(crate) fn label(&self, name: &str) -> Result<Option<Arc<ChunkColumn>>, Malformed> {
        match self.labels.binary_search_by(|c| c.name.as_str().cmp(name)) {
            Ok(i) => self.labels.get(i).map(|c| self.load(c)).transpose(),
            Err(_) => Ok(None),
        }
    }

    /// The constants under name number `name`; none if no stream of the chunk has one.
    pub(crate) fn constant(&self, name: u32) -> Result<Option<Arc<ChunkColumn>>, Malformed> {
        match self.constants.binary_search_by_key(&name, |c| c.name) {
            Ok(i) => self.constants.get(i).map(|c| self.load(c)).transpose(),
            Err(_) => Ok(None),
        }
    }

    /// The constants of stream `i` of the chunk by part number of their names, ascending.
    pub(crate) fn constants_of(&self, i: usize) -> Result<Vec<(u32, Vec<u8>)>, Malformed> {
        let mut constants = Vec::new();
        for column in &self.constants {
            let value = self.read(column)?.value(i);
            if !value.is_empty() {
                constants.push((column.name, value.to_vec()));
            }
        }
        Ok(constants)
    }

    /// The labels of stream `i` of the chunk.
    pub(crate) fn key(&self, i: usize) -> Result<StreamKey, Malformed> {
        let mut labels = Vec::with_capacity(self.labels.len());
        for column in &self.labels {
            let value = self.read(column)?.value(i);
            if !value.is_empty() {
                labels.push((column.name.clone(), value.to_vec()));
            }
        }
        Ok(StreamKey::new(labels))
    }

    /// The canonical text of stream `i` of the chunk.
    pub(crate) fn text(&self, i: usize) -> Result<Vec<u8>, Malformed> {
        let mut columns = Vec::with_capacity(self.labels.len());
        for column in &self.labels {
            columns.push((column.name.as_str(), self.load(column)?));
        }
        let labels = columns.iter().map(|(name, column)| (*name, column.value(i)));
        Ok(stream_text(labels.filter(|(_, value)| !value.is_empty())))
    }

    fn load<K>(&self, column: &Lazy<K>) -> Result<Arc<ChunkColumn>, Malformed> {
        self.read(column).map(Arc::clone)
    }

    fn read<'c, K>(&self, column: &'c Lazy<K>) -> Result<&'c Arc<ChunkColumn>, Malformed> {
        if let Some(read) = column.column.get() {
            return Ok(read);
        }
        let bytes = self.raw.get(column.bytes.clone()).unwrap_or(&[]);
        let read = Arc::new(ChunkColumn::parse(bytes, self.rows.len())?);
        Ok(column.column.get_or_init(|| read))
    }
}

impl<K> Lazy<K> {
    fn shift(&mut self, base: usize) {
        self.bytes = self.bytes.start + base..self.bytes.end + base;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type Stream = (BTreeMap<String, String>, BTreeMap<u32, String>, u64);

    fn stream() -> impl Strategy<Value = Stream> {
        (
            prop::collection::btree_map("[a-c]", "[x\"\\\\]{0,3}", 0..3),
            prop::collection::btree_map(0u32..9, "[x-z]{1,3}", 0..5),
            any::<u64>(),
        )
    }

    fn encode(streams: &[Stream]) -> (Vec<u8>, Vec<StreamKey>) {
        let mut builder = ChunkBuilder::default();
        let mut keys = Vec::new();
        for (labels, constants, rows) in streams {
            let labels = labels.iter().map(|(n, v)| (n.clone(), v.as_bytes().to_vec()));
            let key = StreamKey::new(labels);
            builder.push(&key, constants.iter().map(|(n, v)| (*n, v.as_bytes())), *rows);
            keys.push(key);
        }
        assert_eq!(builder.len(), streams.len());
        (builder.take(), keys)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn streams_come_back(streams in prop::collection::vec(stream(), 0..30)) {
            let (raw, keys) = encode(&streams);
            let chunk = StreamChunk::parse(raw).unwrap();
            prop_assert_eq!(chunk.len(), streams.len());
            for (i, (_, constants, rows)) in streams.iter().enumerate() {
                prop_assert_eq!(&chunk.key(i).unwrap(), &keys[i]);
                prop_assert_eq!(chunk.text(i).unwrap(), keys[i].text());
                prop_assert_eq!(chunk.rows(i), *rows);
                for name in 0..9 {
                    let want = constants.get(&name).map_or(&b""[..], |v| v.as_bytes());
                    let column = chunk.constant(name).unwrap();
                    prop_assert_eq!(column.as_ref().map_or(&b""[..], |c| c.value(i)), want);
                }
                let label = chunk.label("a").unwrap();
                prop_assert_eq!(label.as_ref().map_or(&b""[..], |c| c.value(i)), keys[i].get("a"));
                let even = |value: &[u8]| value.len().is_multiple_of(2);
                if let Some(label) = label {
                    prop_assert_eq!(label.matching(even).get(i), even(keys[i].get("a")));
                }
            }
        }

        #[test]
        fn damaged_bytes_are_read_or_refused(
            streams in prop::collection::vec(stream(), 0..4),
            at in any::<prop::sample::Index>(), flip in 1u8..=255,
        ) {
            let (mut raw, _) = encode(&streams);
            let at = at.index(raw.len());
            raw[at] ^= flip;
            if let Ok(chunk) = StreamChunk::parse(raw) {
                for i in 0..chunk.len() {
                    let _ = chunk.text(i);
                }
                let names: Vec<u32> = chunk.constant_names().collect();
                for name in names {
                    let _ = chunk.constant(name);
                }
            }
        }
    }
}
