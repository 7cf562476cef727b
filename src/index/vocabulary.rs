//! Vocabularies: exactly which words the pages of many blocks have.
//!
//! A vocabulary has members (pages of one column), each a set of words. All words stand once, in
//! order, each with the members that have it, so that words are found by their start, and by any
//! part of them. They are cut into chunks, so that a whole word reads one chunk.
//!
//! Head: `0 u8 | members varint | chunks varint | for each chunk: length varint, xxh3-64, first
//! word bytes`. A chunk is a packed blob: `words varint | for each word: length shared with the
//! word before varint, rest bytes | for each word: members varint, then each member less (the one
//! before + 1), varint; or, if there are more than an eighth of all, all members as a row set`.

use std::ops::Range;
use std::sync::OnceLock;

use memchr::memmem;
use xxhash_rust::xxh3::xxh3_64;

use super::filter_group::MEMBERS_MAX;
use super::needle::WordPart;
use super::tokenizer::lower_into;
use crate::codec::compress::Compressor;
use crate::codec::varint::{Reader, put_bytes, put_varint};
use crate::codec::{Bitmap, Decoder};
use crate::error::Malformed;
use crate::record::TextVec;

/// A page with a longer word has no vocabulary.
pub(crate) const WORD_MAX: usize = 256;
/// A chunk ends behind so many raw bytes.
const CHUNK_LEN: usize = 32 << 10;
/// The most raw bytes of a chunk.
const CHUNK_MAX: usize = 64 << 10;

/// The head and the chunks of a vocabulary of these members; the words of each ascend.
pub(crate) fn encode_vocabulary(members: &[&TextVec], zstd: &mut Compressor) -> (Vec<u8>, Vec<u8>) {
    debug_assert!(members.len() <= MEMBERS_MAX, "a group has a bounded number of members");
    let each = (0u16..).zip(members);
    let mut all: Vec<(&[u8], u16)> =
        each.flat_map(|(member, words)| words.iter().map(move |word| (word, member))).collect();
    all.sort_unstable();
    let mut chunks = ChunkWriter::new(members.len(), zstd);
    for same in all.chunk_by(|a, b| a.0 == b.0) {
        chunks.word(same);
    }
    chunks.end();
    let mut head = vec![0];
    put_varint(&mut head, members.len() as u64);
    put_varint(&mut head, chunks.count);
    head.extend_from_slice(&chunks.heads);
    (head, chunks.bytes)
}

/// Writes chunks one after the other.
struct ChunkWriter<'a> {
    members: usize,
    zstd: &'a mut Compressor,
    count: u64,
    heads: Vec<u8>,
    bytes: Vec<u8>,
    first: Vec<u8>,
    before: Vec<u8>,
    words: Vec<u8>,
    lists: Vec<u8>,
    len: u64,
}

impl ChunkWriter<'_> {
    fn new(members: usize, zstd: &mut Compressor) -> ChunkWriter<'_> {
        ChunkWriter {
            members,
            zstd,
            count: 0,
            heads: Vec::new(),
            bytes: Vec::new(),
            first: Vec::new(),
            before: Vec::new(),
            words: Vec::new(),
            lists: Vec::new(),
            len: 0,
        }
    }

    /// A word and its members, ascending.
    fn word(&mut self, same: &[(&[u8], u16)]) {
        let Some((word, _)) = same.first() else { return };
        if self.len == 0 {
            self.first = word.to_vec();
            self.before.clear();
        }
        let shared = word.iter().zip(&self.before).take_while(|(a, b)| a == b).count();
        put_varint(&mut self.words, shared as u64);
        put_bytes(&mut self.words, word.get(shared..).unwrap_or(&[]));
        self.before = word.to_vec();
        put_varint(&mut self.lists, same.len() as u64);
        if is_dense(same.len(), self.members) {
            let mut set = Bitmap::empty(self.members);
            same.iter().for_each(|(_, member)| set.set(usize::from(*member)));
            set.encode(&mut self.lists);
        } else {
            let mut next = 0;
            for (_, member) in same {
                put_varint(&mut self.lists, u64::from(member - next));
                next = member + 1;
            }
        }
        self.len += 1;
        if self.words.len() + self.lists.len() >= CHUNK_LEN {
            self.end();
        }
    }

    fn end(&mut self) {
        if self.len == 0 {
            return;
        }
        let mut raw = Vec::new();
        put_varint(&mut raw, self.len);
        raw.append(&mut self.words);
        raw.append(&mut self.lists);
        let start = self.bytes.len();
        self.zstd.pack(&raw, &mut self.bytes);
        let chunk = self.bytes.get(start..).unwrap_or(&[]);
        put_varint(&mut self.heads, chunk.len() as u64);
        self.heads.extend_from_slice(&xxh3_64(chunk).to_le_bytes());
        put_bytes(&mut self.heads, &self.first);
        self.len = 0;
        self.count += 1;
    }
}

/// Whether a list of so many members is longer than a set.
fn is_dense(count: usize, members: usize) -> bool {
    count > members / 8
}

/// The head of a vocabulary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Vocabulary {
    members: usize,
    /// The first word of each chunk.
    firsts: TextVec,
    /// Where each chunk ends, from the first one's start, and its checksum.
    chunks: Vec<(u64, u64)>,
}

impl Vocabulary {
    /// Reads a head.
    pub(crate) fn read(r: &mut Reader<'_>) -> Result<Vocabulary, Malformed> {
        if r.u8()? != 0 {
            return Err(Malformed("no vocabulary"));
        }
        let members = r.len(MEMBERS_MAX)?;
        if members == 0 {
            return Err(Malformed("a vocabulary without members"));
        }
        let count = r.len(r.rest().len())?;
        let mut out = Vocabulary { members, firsts: TextVec::new(), chunks: Vec::new() };
        let mut end = 0;
        for _ in 0..count {
            end += r.len(CHUNK_MAX)? as u64;
            out.chunks.push((end, r.u64()?));
            let first = r.bytes(WORD_MAX)?;
            let before = out.firsts.len().checked_sub(1).map_or(&[][..], |i| out.firsts.get(i));
            if first <= before {
                return Err(Malformed("chunks of words out of order"));
            }
            out.firsts.push(first);
        }
        Ok(out)
    }

    /// The number of members.
    pub(crate) fn members(&self) -> usize {
        self.members
    }

    /// Bytes of all chunks.
    pub(crate) fn len(&self) -> u64 {
        self.chunks.last().map_or(0, |(end, _)| *end)
    }

    /// The chunks that may have a word with this part.
    pub(crate) fn chunks_with(&self, part: &WordPart<'_>) -> Range<usize> {
        if part.open.0 || part.fold {
            return 0..self.chunks.len();
        }
        // The last chunk that begins at or before the part is the first that may have it.
        let at_or_before = |first: &[u8]| first <= part.bytes;
        let start = self.firsts.partition_point(at_or_before).saturating_sub(1);
        let goes_on = |first: &[u8]| part.open.1 && first.starts_with(part.bytes);
        let end = self.firsts.partition_point(|first| at_or_before(first) || goes_on(first));
        start..end
    }

    /// Where chunk `i` is, from the start of the first one.
    pub(crate) fn range(&self, i: usize) -> Range<u64> {
        let end_of = |i: usize| self.chunks.get(i).map_or(0, |(end, _)| *end);
        i.checked_sub(1).map_or(0, end_of)..end_of(i)
    }

    /// Verifies and decodes chunk `i`.
    pub(crate) fn chunk(
        &self,
        i: usize,
        bytes: &[u8],
        decoder: &mut Decoder,
    ) -> Result<VocabularyChunk, Malformed> {
        if self.chunks.get(i).map(|(_, sum)| *sum) != Some(xxh3_64(bytes)) {
            return Err(Malformed("words do not match their checksum"));
        }
        let chunk = VocabularyChunk::parse(&decoder.unpack(bytes, CHUNK_MAX)?, self.members)?;
        let next = (i + 1 < self.firsts.len()).then(|| self.firsts.get(i + 1));
        let last = chunk.words.len().checked_sub(1).map(|last| chunk.words.get(last));
        if chunk.words.is_empty()
            || chunk.words.get(0) != self.firsts.get(i)
            || next.is_some_and(|next| last >= Some(next))
        {
            return Err(Malformed("words outside of their chunk"));
        }
        Ok(chunk)
    }

    /// The words of all members, from all chunks.
    pub(crate) fn split(
        &self,
        bytes: &[u8],
        decoder: &mut Decoder,
    ) -> Result<Vec<TextVec>, Malformed> {
        let mut out = vec![TextVec::new(); self.members];
        for i in 0..self.chunks.len() {
            let Range { start, end } = self.range(i);
            let at = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
            let bytes = bytes.get(at(start)..at(end)).ok_or(Malformed("words end early"))?;
            let chunk = self.chunk(i, bytes, decoder)?;
            for (i, word) in chunk.words.iter().enumerate() {
                for member in chunk.members_of(i) {
                    if let Some(words) = out.get_mut(usize::from(*member)) {
                        words.push(word);
                    }
                }
            }
        }
        Ok(out)
    }
}

/// Some of the words of a vocabulary, in order, and the members that have them.
#[derive(Debug)]
pub(crate) struct VocabularyChunk {
    words: TextVec,
    /// The words in lower case, when someone has asked for them.
    lower: OnceLock<TextVec>,
    /// For each word, the end of its members in `members`.
    ends: Vec<u32>,
    members: Vec<u16>,
}

impl VocabularyChunk {
    fn parse(raw: &[u8], members: usize) -> Result<VocabularyChunk, Malformed> {
        let mut r = Reader::new(raw);
        let count = r.len(raw.len())?;
        let mut words = TextVec::with_capacity(count, raw.len());
        let mut word: Vec<u8> = Vec::new();
        for _ in 0..count {
            let shared = r.len(word.len())?;
            let rest = r.bytes(WORD_MAX)?;
            let follows = rest > word.get(shared..).unwrap_or(&[]);
            if !follows || shared + rest.len() > WORD_MAX {
                return Err(Malformed("words out of order"));
            }
            word.truncate(shared);
            word.extend_from_slice(rest);
            words.push(&word);
        }
        let mut out = VocabularyChunk {
            words,
            lower: OnceLock::new(),
            ends: Vec::new(),
            members: Vec::new(),
        };
        for _ in 0..count {
            out.read_members(&mut r, members)?;
            out.ends.push(u32::try_from(out.members.len()).unwrap_or(u32::MAX));
        }
        r.finish()?;
        out.ends.shrink_to_fit();
        out.members.shrink_to_fit();
        Ok(out)
    }

    fn read_members(&mut self, r: &mut Reader<'_>, members: usize) -> Result<(), Malformed> {
        let late = Malformed("a word of no member");
        let number = |n: usize| u16::try_from(n).map_err(|_| late);
        let count = r.len(members)?;
        if is_dense(count, members) {
            let set = Bitmap::decode(r, members)?;
            if set.count() != count {
                return Err(Malformed("a word of other members than it says"));
            }
            for member in set.iter() {
                self.members.push(number(member)?);
            }
            return Ok(());
        }
        let mut next = 0;
        for _ in 0..count {
            let member = next + r.len(members)?;
            if member >= members {
                return Err(late);
            }
            self.members.push(number(member)?);
            next = member + 1;
        }
        Ok(())
    }

    fn members_of(&self, word: usize) -> &[u16] {
        let end_of = |i: usize| self.ends.get(i).map_or(0, |end| *end as usize);
        let start = word.checked_sub(1).map_or(0, end_of);
        self.members.get(start..end_of(word)).unwrap_or(&[])
    }

    /// Adds the members that have a word with this part.
    pub(crate) fn add_members(&self, part: &WordPart<'_>, out: &mut Bitmap) {
        let mut add = |word: usize| {
            self.members_of(word).iter().for_each(|member| out.set(usize::from(*member)));
        };
        if part.open.0 || part.fold {
            let words = if part.fold { self.lower() } else { &self.words };
            return find_part(words, part, add);
        }
        let first = self.words.partition_point(|word| word < part.bytes);
        for word in first..self.words.len() {
            let text = self.words.get(word);
            if !text.starts_with(part.bytes) || !part.open.1 && text.len() > part.bytes.len() {
                return;
            }
            add(word);
        }
    }

    fn lower(&self) -> &TextVec {
        self.lower.get_or_init(|| {
            let mut out = TextVec::with_capacity(self.words.len(), self.words.bytes().len());
            for word in self.words.iter() {
                lower_into(word, out.open());
                out.close();
            }
            out
        })
    }

    /// Bytes of memory held, the words in lower case included.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.words.heap_bytes() * 2
            + self.ends.capacity() * size_of::<u32>()
            + self.members.capacity() * size_of::<u16>()
    }
}

/// Whether `word` is among the words, which ascend.
pub(crate) fn has_word(words: &TextVec, word: &[u8]) -> bool {
    words.get(words.partition_point(|w| w < word)) == word
}

/// Calls `f` with the number of each word that has the part, ascending.
fn find_part(words: &TextVec, part: &WordPart<'_>, mut f: impl FnMut(usize)) {
    let finder = memmem::Finder::new(part.bytes);
    let (bytes, ends) = (words.bytes(), words.ends());
    let (mut from, mut word) = (0, 0);
    while let Some(at) = bytes.get(from..).and_then(|rest| finder.find(rest)) {
        let (start, stop) = (from + at, from + at + part.bytes.len());
        let rest = ends.get(word..).unwrap_or(&[]);
        word += rest.partition_point(|end| *end as usize <= start);
        let Some(end) = ends.get(word).map(|end| *end as usize) else { return };
        let begin = word.checked_sub(1).and_then(|i| ends.get(i)).map_or(0, |end| *end as usize);
        if stop <= end && (part.open.0 || start == begin) && (part.open.1 || stop == end) {
            f(word);
            from = end;
        } else {
            from = start + 1;
        }
    }
}

#[cfg(test)]
#[allow(clippy::cast_possible_truncation)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    type Sets = Vec<BTreeSet<Vec<u8>>>;

    fn encode(sets: &Sets) -> (Vocabulary, Vec<u8>) {
        let words = |set: &BTreeSet<Vec<u8>>| set.iter().map(Vec::as_slice).collect::<TextVec>();
        let members: Vec<TextVec> = sets.iter().map(words).collect();
        let each: Vec<&TextVec> = members.iter().collect();
        let (head, chunks) = encode_vocabulary(&each, &mut Compressor::new(1));
        let mut r = Reader::new(&head);
        let vocabulary = Vocabulary::read(&mut r).unwrap();
        r.finish().unwrap();
        assert_eq!(vocabulary.len(), chunks.len() as u64);
        assert_eq!(vocabulary.split(&chunks, &mut Decoder::new()).unwrap(), members);
        (vocabulary, chunks)
    }

    fn found(vocabulary: &Vocabulary, chunks: &[u8], part: &WordPart<'_>) -> Bitmap {
        let mut out = Bitmap::empty(vocabulary.members());
        for i in vocabulary.chunks_with(part) {
            let range = vocabulary.range(i);
            let bytes = &chunks[range.start as usize..range.end as usize];
            vocabulary.chunk(i, bytes, &mut Decoder::new()).unwrap().add_members(part, &mut out);
        }
        out
    }

    fn stands(part: &WordPart<'_>, word: &[u8]) -> bool {
        let mut folded = word.to_vec();
        if part.fold {
            folded.clear();
            lower_into(word, &mut folded);
        }
        folded.windows(part.bytes.len()).enumerate().any(|(at, window)| {
            let end = at + window.len() == folded.len();
            window == part.bytes && (part.open.0 || at == 0) && (part.open.1 || end)
        })
    }

    fn word() -> impl Strategy<Value = Vec<u8>> {
        "[abAB\u{e4}\u{c4}]{1,5}".prop_map(String::into_bytes)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]
        #[test]
        fn finds_the_members_that_have_a_part(
            sets in prop::collection::vec(prop::collection::btree_set(word(), 0..30), 1..20),
            part in "[ab\u{e4}]{1,3}",
            open: (bool, bool),
            fold: bool,
        ) {
            let (vocabulary, chunks) = encode(&sets);
            let part = WordPart { bytes: part.as_bytes(), open, fold };
            let got = found(&vocabulary, &chunks, &part);
            for (member, set) in sets.iter().enumerate() {
                prop_assert_eq!(got.get(member), set.iter().any(|word| stands(&part, word)));
            }
        }

        #[test]
        fn any_head_and_chunk_is_read_or_refused(
            head in prop::collection::vec(any::<u8>(), 0..60),
            chunk in prop::collection::vec(any::<u8>(), 0..60),
            members in 1usize..20,
        ) {
            let _ = Vocabulary::read(&mut Reader::new(&[&[0], head.as_slice()].concat()));
            let _ = VocabularyChunk::parse(&chunk, members);
        }
    }

    #[test]
    fn a_whole_word_reads_one_chunk_of_many_and_flips_are_seen() {
        let word = |i: usize| format!("word{}", i * 7919 % 100_003).into_bytes();
        let sets: Sets = (0..90).map(|m| (m * 300..m * 300 + 500).map(word).collect()).collect();
        let (vocabulary, mut chunks) = encode(&sets);
        assert!(vocabulary.chunks.len() > 3, "{} chunks", vocabulary.chunks.len());
        for i in [0, 777, 20_000] {
            let part = WordPart { bytes: &word(i), open: (false, false), fold: false };
            assert_eq!(vocabulary.chunks_with(&part).len(), 1);
            let got = found(&vocabulary, &chunks, &part);
            for (member, set) in sets.iter().enumerate() {
                assert_eq!(got.get(member), set.contains(&word(i)));
            }
            let part = WordPart { bytes: &word(i)[..5], open: (false, true), fold: false };
            assert!(vocabulary.chunks_with(&part).len() < vocabulary.chunks.len());
            let got = found(&vocabulary, &chunks, &part);
            for (member, set) in sets.iter().enumerate() {
                assert_eq!(got.get(member), set.iter().any(|w| w.starts_with(part.bytes)));
            }
        }
        for at in (0..chunks.len()).step_by(997) {
            chunks[at] ^= 1;
            assert!(vocabulary.split(&chunks, &mut Decoder::new()).is_err());
            chunks[at] ^= 1;
        }
    }
}
