//! The column names of a part, sorted bytewise; a name's number is its place.

use super::layout::{NAME_MAX, NAMES_MAX, SECTION_RAW_MAX, count32};
use crate::codec::varint::{Reader, put_bytes, put_varint};
use crate::error::Malformed;
use crate::record::TextVec;

/// Names and in how many rows of the part each has a value.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Names {
    names: TextVec,
    hits: Vec<u64>,
}

impl Names {
    /// Takes names that are sorted and distinct; no hits yet.
    pub(crate) fn new<'a>(sorted: impl IntoIterator<Item = &'a str>) -> Names {
        let names: TextVec = sorted.into_iter().map(str::as_bytes).collect();
        let hits = vec![0; names.len()];
        Names { names, hits }
    }

    /// The number of names.
    pub(crate) fn len(&self) -> usize {
        self.names.len()
    }

    /// Name `id`; empty past the end.
    pub(crate) fn name(&self, id: u32) -> &str {
        std::str::from_utf8(self.names.get(id as usize)).unwrap_or("")
    }

    /// The number of `name`, by binary search.
    pub(crate) fn id(&self, name: &str) -> Option<u32> {
        let i = self.names.partition_point(|n| n < name.as_bytes());
        let is_there = i < self.names.len() && self.names.get(i) == name.as_bytes();
        if is_there { u32::try_from(i).ok() } else { None }
    }

    /// The numbers of the names that begin with `prefix`.
    pub(crate) fn with_prefix(&self, prefix: &str) -> std::ops::Range<u32> {
        let prefix = prefix.as_bytes();
        let start = self.names.partition_point(|name| name < prefix);
        let end = self.names.partition_point(|name| name < prefix || name.starts_with(prefix));
        count32(start)..count32(end)
    }

    /// In how many rows of the part `id` has a value, labels and stream constants included.
    pub(crate) fn hits(&self, id: u32) -> u64 {
        self.hits.get(id as usize).copied().unwrap_or(0)
    }

    /// Adds rows in which `id` has a value.
    pub(crate) fn add_hits(&mut self, id: u32, rows: u64) {
        if let Some(hits) = self.hits.get_mut(id as usize) {
            *hits += rows;
        }
    }

    /// All names in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &str> + '_ {
        (0..count32(self.len())).map(|id| self.name(id))
    }

    /// The section's raw bytes: count, then (length shared with the name before, rest, hits).
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_varint(&mut out, self.names.len() as u64);
        let mut before: &[u8] = &[];
        for (name, hits) in self.names.iter().zip(&self.hits) {
            let shared = before.iter().zip(name).take_while(|(a, b)| a == b).count();
            put_varint(&mut out, shared as u64);
            put_bytes(&mut out, name.get(shared..).unwrap_or(&[]));
            put_varint(&mut out, *hits);
            before = name;
        }
        out
    }

    /// Reads what [`encode`](Names::encode) wrote.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Names, Malformed> {
        let mut r = Reader::new(bytes);
        let count = r.len(NAMES_MAX)?;
        if count > r.rest().len() {
            return Err(Malformed("more names than bytes"));
        }
        let mut out = Names { names: TextVec::new(), hits: Vec::with_capacity(count) };
        let mut name = Vec::new();
        for i in 0..count {
            let shared = r.len(name.len())?;
            let rest = r.bytes(NAME_MAX)?;
            let grows = rest > name.get(shared..).unwrap_or(&[]);
            if i > 0 && !grows {
                return Err(Malformed("names out of order"));
            }
            name.truncate(shared);
            name.extend_from_slice(rest);
            let over = name.len() > NAME_MAX || out.names.bytes().len() > SECTION_RAW_MAX;
            if over || std::str::from_utf8(&name).is_err() {
                return Err(Malformed("a name too long or not UTF-8"));
            }
            out.names.push(&name);
            out.hits.push(r.varint()?);
        }
        r.finish()?;
        Ok(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn names_come_back(set in prop::collection::btree_set("[a-c\u{e9}.]{0,6}", 0..20)) {
            let mut names = Names::new(set.iter().map(String::as_str));
            names.add_hits(0, 7);
            let back = Names::parse(&names.encode()).unwrap();
            prop_assert_eq!(&back, &names);
            for (i, name) in (0u32..).zip(&set) {
                prop_assert_eq!(back.id(name), Some(i));
                prop_assert_eq!(back.name(i), name);
            }
            prop_assert_eq!(back.id("zzz"), None);
            for prefix in ["", "a", "b.", "\u{e9}", "zz"] {
                let want: Vec<&String> = set.iter().filter(|n| n.starts_with(prefix)).collect();
                let got: Vec<String> =
                    back.with_prefix(prefix).map(|id| back.name(id).to_owned()).collect();
                prop_assert_eq!(got.iter().collect::<Vec<_>>(), want);
            }
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(0u8..8, 0..40)) {
            let _ = Names::parse(&bytes);
        }
    }
}
