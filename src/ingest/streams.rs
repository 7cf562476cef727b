//! Streams seen so far, and the text form of streams in the input.

use std::hash::BuildHasher;
use std::sync::Arc;

use hashbrown::HashTable;

use crate::record::{RowBatchBuilder, StreamKey};

/// More streams than this are not remembered from one batch to the next.
const MAX_STREAMS: usize = 1 << 17;

#[derive(Debug)]
struct Known {
    key: Box<[u8]>,
    stream: Arc<StreamKey>,
    /// Its number in batch `batch`.
    id: u32,
    batch: u64,
}

/// Streams by a key that the caller chooses: the text or the values of the labels.
#[derive(Debug, Default)]
pub(crate) struct StreamTable {
    known: Vec<Known>,
    table: HashTable<u32>,
    hasher: foldhash::fast::RandomState,
    key: Vec<u8>,
}

impl StreamTable {
    /// The stream of a key, made by `make` when it is new.
    pub(crate) fn find(&mut self, key: &[u8], make: impl FnOnce() -> StreamKey) -> u32 {
        let hash = self.hasher.hash_one(key);
        let known = &self.known;
        let same = |i: &u32| known.get(*i as usize).is_some_and(|k| *k.key == *key);
        if let Some(i) = self.table.find(hash, same) {
            return *i;
        }
        let new = u32::try_from(self.known.len()).unwrap_or(u32::MAX);
        self.known.push(Known { key: key.into(), stream: Arc::new(make()), id: 0, batch: 0 });
        let (hasher, known) = (&self.hasher, &self.known);
        self.table.insert_unique(hash, new, |i| {
            hasher.hash_one(known.get(*i as usize).map_or(&[][..], |k| &k.key))
        });
        new
    }

    /// The stream of these values of the stream fields.
    pub(crate) fn find_values<'a>(
        &mut self,
        values: impl Iterator<Item = &'a [u8]>,
        make: impl FnOnce() -> StreamKey,
    ) -> u32 {
        self.key_of(values);
        let key = std::mem::take(&mut self.key);
        let found = self.find(&key, make);
        self.key = key;
        found
    }

    /// The stream of these values of the stream fields, if it was seen.
    pub(crate) fn known_values<'a>(
        &mut self,
        values: impl Iterator<Item = &'a [u8]>,
    ) -> Option<u32> {
        self.key_of(values);
        let same = |i: &u32| self.known.get(*i as usize).is_some_and(|k| *k.key == *self.key);
        self.table.find(self.hasher.hash_one(self.key.as_slice()), same).copied()
    }

    fn key_of<'a>(&mut self, values: impl Iterator<Item = &'a [u8]>) {
        self.key.clear();
        for value in values {
            let len = u32::try_from(value.len()).unwrap_or(u32::MAX);
            self.key.extend_from_slice(&len.to_le_bytes());
            self.key.extend_from_slice(value);
        }
    }

    /// The number of a stream in the batch being built, if it is in it.
    pub(crate) fn local(&self, stream: u32, batch: u64) -> Option<u32> {
        let known = self.known.get(stream as usize)?;
        (known.batch == batch).then_some(known.id)
    }

    /// The number of labels of a stream.
    pub(crate) fn labels_of(&self, stream: u32) -> usize {
        self.known.get(stream as usize).map_or(0, |k| k.stream.labels().len())
    }

    /// The number of a stream in the batch being built, to which it is added if need be.
    pub(crate) fn local_id(
        &mut self,
        stream: u32,
        batch: u64,
        builder: &mut RowBatchBuilder,
    ) -> u32 {
        let Some(known) = self.known.get_mut(stream as usize) else { return 0 };
        if known.batch != batch {
            known.batch = batch;
            known.id = builder.add_stream(Arc::clone(&known.stream));
        }
        known.id
    }

    /// Forgets all streams if they are too many.
    pub(crate) fn trim(&mut self) {
        if self.known.len() > MAX_STREAMS {
            self.known.clear();
            self.table.clear();
        }
    }
}

/// Reads `{a="x",b="y"}`, in which `\` escapes `"`, `\` and, as other programs write them, line
/// breaks and tabs. `None` if it is malformed or a name is empty.
pub(crate) fn parse_stream_text(text: &[u8]) -> Option<Vec<(String, Vec<u8>)>> {
    let text = std::str::from_utf8(text).ok()?;
    let mut rest = text.strip_prefix('{')?.strip_suffix('}')?;
    let mut labels = Vec::new();
    while !rest.is_empty() {
        let (name, tail) = rest.split_once("=\"")?;
        if name.is_empty() {
            return None;
        }
        let mut value = String::new();
        let mut chars = tail.char_indices();
        let end = loop {
            match chars.next()? {
                (at, '"') => break at,
                (_, '\\') => value.push(match chars.next()?.1 {
                    c @ ('"' | '\\') => c,
                    'n' => '\n',
                    'r' => '\r',
                    't' => '\t',
                    _ => return None,
                }),
                (_, c) => value.push(c),
            }
        };
        labels.push((name.to_owned(), value.into_bytes()));
        rest = tail.get(end + 1..)?;
        if !rest.is_empty() {
            rest = rest.strip_prefix(',').filter(|r| !r.is_empty())?;
        }
    }
    Some(labels)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn malformed_texts_are_refused() {
        for bad in [
            "",
            "{",
            "}",
            "a",
            "{a}",
            "{a=}",
            "{a=x}",
            "{a=\"x}",
            "{a=\"x\"",
            "{=\"x\"}",
            "{a=\"x\",}",
            "{a=\"x\" }",
            "{a=\"\\q\"}",
            "{a=\"x\"b=\"y\"}",
            "{,}",
            "{\"}",
        ] {
            assert_eq!(parse_stream_text(bad.as_bytes()), None, "{bad}");
        }
        assert_eq!(parse_stream_text(b"{}"), Some(vec![]));
        let labels = parse_stream_text(b"{b=\"\\n\",a=\"x,=}\"}").unwrap();
        assert_eq!(labels, [("b".into(), b"\n".to_vec()), ("a".into(), b"x,=}".to_vec())]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]

        #[test]
        fn canonical_text_reads_back(
            labels in prop::collection::btree_map("[a-z./ ]{1,6}", "[a\"\\\\,={}\u{e9}]{1,6}", 0..4)
        ) {
            let labels = labels.into_iter().map(|(n, v)| (n, v.into_bytes()));
            let key = StreamKey::new(labels);
            let read = parse_stream_text(&key.text()).map(StreamKey::new);
            prop_assert_eq!(read, Some(key));
        }
    }
}
