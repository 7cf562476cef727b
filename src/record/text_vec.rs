//! Many byte strings in one allocation.

use crate::error::Malformed;

/// A vector of byte strings: all bytes in one buffer, and the end of each string.
///
/// This is the shape in which column values travel between the codecs, the scan and the pipes.
/// An index past the end reads as the empty string, which everywhere means "absent".
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct TextVec {
    ends: Vec<u32>,
    bytes: Vec<u8>,
}

impl TextVec {
    /// No strings.
    pub(crate) fn new() -> TextVec {
        TextVec::default()
    }

    /// No strings yet, with room for `len` strings of `bytes` bytes in all.
    pub(crate) fn with_capacity(len: usize, bytes: usize) -> TextVec {
        TextVec { ends: Vec::with_capacity(len), bytes: Vec::with_capacity(bytes) }
    }

    /// Takes over buffers; `ends` must not decrease and must end at `bytes.len()`.
    pub(crate) fn from_parts(ends: Vec<u32>, bytes: Vec<u8>) -> Result<TextVec, Malformed> {
        let mut last = 0;
        for &end in &ends {
            if end < last {
                return Err(Malformed("string ends decrease"));
            }
            last = end;
        }
        if last as usize != bytes.len() {
            return Err(Malformed("string ends do not cover the bytes"));
        }
        Ok(TextVec { ends, bytes })
    }

    /// The buffers: the end of each string, and all bytes.
    pub(crate) fn into_parts(self) -> (Vec<u32>, Vec<u8>) {
        (self.ends, self.bytes)
    }

    /// Appends a string. The sum of all lengths must stay below 4 GiB, which the caps of blocks
    /// and batches guarantee; beyond it the string is stored as empty.
    pub(crate) fn push(&mut self, value: &[u8]) {
        self.bytes.extend_from_slice(value);
        self.close();
    }

    /// The open buffer: bytes appended here belong to the next string, which [`close`] ends.
    ///
    /// [`close`]: TextVec::close
    pub(crate) fn open(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Ends the string whose bytes were appended through [`open`](TextVec::open).
    pub(crate) fn close(&mut self) {
        match u32::try_from(self.bytes.len()) {
            Ok(end) => self.ends.push(end),
            Err(_) => {
                let last = self.last_end();
                self.bytes.truncate(last as usize);
                self.ends.push(last);
            }
        }
    }

    /// Appends all strings of `other`.
    pub(crate) fn extend(&mut self, other: &TextVec) {
        for value in other.iter() {
            self.push(value);
        }
    }

    /// Bytes of some strings together.
    pub(crate) fn length_of(&self, range: std::ops::Range<usize>) -> u32 {
        let end = range.end.checked_sub(1).map_or(0, |last| self.end_of(last));
        end.saturating_sub(range.start.checked_sub(1).map_or(0, |last| self.end_of(last)))
    }

    /// The number of strings before the first that `goes_before` denies, which must hold of none
    /// behind that one. By binary search.
    pub(crate) fn partition_point(&self, goes_before: impl Fn(&[u8]) -> bool) -> usize {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low.midpoint(high);
            if goes_before(self.get(middle)) { low = middle + 1 } else { high = middle }
        }
        low
    }

    /// Where string `i` ends; that of the last one past the end.
    fn end_of(&self, i: usize) -> u32 {
        self.ends.get(i).or(self.ends.last()).copied().unwrap_or(0)
    }

    /// Appends some strings of `other`.
    pub(crate) fn extend_range(&mut self, other: &TextVec, range: std::ops::Range<usize>) {
        let start = range.start.checked_sub(1).map_or(0, |last| other.end_of(last));
        let ends = other.ends.get(range).unwrap_or(&[]);
        let end = ends.last().copied().unwrap_or(start);
        let base = self.bytes.len();
        let Some(bytes) = other.bytes.get(start as usize..end as usize) else { return };
        if u32::try_from(base + bytes.len()).is_ok() {
            let base = u32::try_from(base).unwrap_or(0);
            self.bytes.extend_from_slice(bytes);
            self.ends.extend(ends.iter().map(|end| end - start + base));
        }
    }

    /// The number of strings.
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are no values.
    pub(crate) fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// String `i`; empty past the end.
    #[inline]
    pub(crate) fn get(&self, i: usize) -> &[u8] {
        let start = match i.checked_sub(1) {
            None => 0,
            Some(p) => match self.ends.get(p) {
                Some(&e) => e as usize,
                None => return &[],
            },
        };
        match self.ends.get(i) {
            Some(&end) => self.bytes.get(start..end as usize).unwrap_or(&[]),
            None => &[],
        }
    }

    /// All strings in order.
    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> + Clone + '_ {
        let mut start = 0usize;
        self.ends.iter().map(move |&end| {
            let value = self.bytes.get(start..end as usize).unwrap_or(&[]);
            start = end as usize;
            value
        })
    }

    /// All bytes, one string after the other.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The end of each string in [`bytes`](TextVec::bytes).
    pub(crate) fn ends(&self) -> &[u32] {
        &self.ends
    }

    /// Forgets all strings, keeps the room.
    pub(crate) fn clear(&mut self) {
        self.ends.clear();
        self.bytes.clear();
    }

    /// Bytes of memory held.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.bytes.capacity() + self.ends.capacity() * size_of::<u32>()
    }

    fn last_end(&self) -> u32 {
        self.ends.last().copied().unwrap_or(0)
    }
}

impl<'a> FromIterator<&'a [u8]> for TextVec {
    fn from_iter<I: IntoIterator<Item = &'a [u8]>>(iter: I) -> TextVec {
        let mut out = TextVec::new();
        for value in iter {
            out.push(value);
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_back_what_was_pushed() {
        let mut v = TextVec::new();
        for s in ["a", "", "bc", "ddd"] {
            v.push(s.as_bytes());
        }
        assert_eq!(v.iter().collect::<Vec<_>>(), [&b"a"[..], b"", b"bc", b"ddd"]);
        assert_eq!(
            (v.get(0), v.get(1), v.get(3), v.get(4)),
            (&b"a"[..], &b""[..], &b"ddd"[..], &b""[..])
        );
        assert_eq!(v.get(usize::MAX), b"");
        let mut w = TextVec::new();
        w.push(b"x");
        w.extend_range(&v, 1..3);
        assert_eq!([v.length_of(1..3), v.length_of(0..4), v.length_of(2..2)], [2, 6, 0]);
        w.extend_range(&v, 4..4);
        w.extend_range(&v, 0..1);
        assert_eq!(w.iter().collect::<Vec<_>>(), [&b"x"[..], b"", b"bc", b"a"]);
    }

    #[test]
    fn refuses_bad_parts() {
        assert!(TextVec::from_parts(vec![2, 1], vec![0, 0]).is_err());
        assert!(TextVec::from_parts(vec![1], vec![0, 0]).is_err());
        assert!(TextVec::from_parts(vec![0, 2], vec![0, 0]).is_ok());
    }
}
