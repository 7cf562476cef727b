//! Streams: the labels that identify a source of logs.

use std::fmt;

use xxhash_rust::xxh3::xxh3_128;

/// The identity of a stream: xxh3-128 of its labels, shown as 32 hex digits.
///
/// The hash covers a length-prefixed encoding of the sorted labels, not their display text. It is
/// never stored: readers recompute it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StreamId(u128);

impl StreamId {
    /// The id as a number.
    pub fn as_u128(self) -> u128 {
        self.0
    }

    /// Reads 32 hex digits.
    pub fn parse(text: &str) -> Option<StreamId> {
        let hex = text.len() == 32 && text.bytes().all(|b| b.is_ascii_hexdigit());
        if hex { u128::from_str_radix(text, 16).ok().map(StreamId) } else { None }
    }
}

impl fmt::Display for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// The labels of a stream, sorted by name, without empty values.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct StreamKey {
    labels: Vec<(String, Vec<u8>)>,
}

impl StreamKey {
    /// Sorts the labels by name and drops empty values. A repeated name keeps its last value.
    pub(crate) fn new(labels: impl IntoIterator<Item = (String, Vec<u8>)>) -> StreamKey {
        let mut sorted: Vec<(String, Vec<u8>)> = Vec::new();
        for (name, value) in labels {
            match sorted.binary_search_by(|(n, _)| n.as_str().cmp(&name)) {
                Ok(i) => {
                    if let Some(slot) = sorted.get_mut(i) {
                        slot.1 = value;
                    }
                }
                Err(i) => sorted.insert(i, (name, value)),
            }
        }
        sorted.retain(|(_, v)| !v.is_empty());
        StreamKey { labels: sorted }
    }

    /// The labels, sorted by name.
    pub(crate) fn labels(&self) -> &[(String, Vec<u8>)] {
        &self.labels
    }

    /// The value of a label; empty if absent.
    pub(crate) fn get(&self, name: &str) -> &[u8] {
        match self.labels.binary_search_by(|(n, _)| n.as_str().cmp(name)) {
            Ok(i) => self.labels.get(i).map_or(&[], |(_, v)| v.as_slice()),
            Err(_) => &[],
        }
    }

    /// The canonical text `{a="x",b="y"}`.
    pub(crate) fn text(&self) -> Vec<u8> {
        stream_text(self.labels.iter().map(|(n, v)| (n.as_str(), v.as_slice())))
    }

    /// The id.
    pub(crate) fn id(&self) -> StreamId {
        let mut bytes = Vec::new();
        for (name, value) in &self.labels {
            for part in [name.as_bytes(), value] {
                bytes.extend_from_slice(&(part.len() as u64).to_le_bytes());
                bytes.extend_from_slice(part);
            }
        }
        StreamId(xxh3_128(&bytes))
    }
}

/// The canonical text of sorted labels: `{a="x",b="y"}`, `"` and `\` escaped with a backslash.
pub(crate) fn stream_text<'a>(labels: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> Vec<u8> {
    let mut out = vec![b'{'];
    for (i, (name, value)) in labels.into_iter().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(b"=\"");
        for &b in value {
            if b == b'"' || b == b'\\' {
                out.push(b'\\');
            }
            out.push(b);
        }
        out.push(b'"');
    }
    out.push(b'}');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(labels: &[(&str, &str)]) -> StreamKey {
        StreamKey::new(labels.iter().map(|(n, v)| (n.to_string(), v.as_bytes().to_vec())))
    }

    #[test]
    fn text_is_sorted_and_escaped() {
        let k = key(&[("b", "y\"\\"), ("a", "x"), ("c", "")]);
        assert_eq!(k.text(), br#"{a="x",b="y\"\\"}"#);
        assert_eq!(key(&[]).text(), b"{}");
        assert_eq!(k.get("a"), b"x");
        assert_eq!(k.get("c"), b"");
    }

    #[test]
    fn ids_depend_on_the_split_of_names_and_values() {
        assert_ne!(key(&[("a", "bc")]).id(), key(&[("ab", "c")]).id());
        let id = key(&[("a", "x")]).id();
        assert_eq!(StreamId::parse(&id.to_string()), Some(id));
        assert_eq!(StreamId::parse("xyz"), None);
    }
}
