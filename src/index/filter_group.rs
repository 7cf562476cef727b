//! Bit-sliced filters: those of many blocks, turned so that one probe reads a few bytes of all.
//!
//! A group has members (of blocks, for one column) with filters of one width. Row `p` holds bit `p`
//! of every member, one bit each; rows follow each other without gaps, so that a group takes as
//! many bytes as its members alone. Rows are cut into pieces of at most [`PIECE_LEN`] bytes (or
//! eight rows) with a checksum each: a probe of one hash reads at most four pieces for all members.
//!
//! Head: `width log u8 | members varint | xxh3-64 of each piece`; whoever holds the head verifies
//! it. The pieces are elsewhere, one after the other.

use std::ops::Range;

use xxhash_rust::xxh3::xxh3_64;

use super::filter::{Bloom, WIDTH_LOG_MAX, WIDTH_LOG_MIN, probes};
use crate::codec::Bitmap;
use crate::codec::varint::{Reader, put_varint};
use crate::error::Malformed;

/// Bytes of a piece, unless eight rows are longer.
const PIECE_LEN: usize = 512;
/// The most members of a group.
pub(crate) const MEMBERS_MAX: usize = 4_096;

/// The head and the pieces of a group of `filters`, all of `1 << width_log` bits.
pub(crate) fn encode_group(filters: &[&Bloom], width_log: u8) -> (Vec<u8>, Vec<u8>) {
    let members = filters.len();
    debug_assert!(members <= MEMBERS_MAX, "a group has a bounded number of members");
    debug_assert!(filters.iter().all(|f| f.width_log() == width_log), "one width");
    let mut pieces = vec![0u8; (members << width_log).div_ceil(8)];
    for (member, filter) in filters.iter().enumerate() {
        for bit in filter.ones() {
            let at = bit * members + member;
            if let Some(byte) = pieces.get_mut(at / 8) {
                *byte |= 1 << (at % 8);
            }
        }
    }
    let mut head = vec![width_log];
    put_varint(&mut head, members as u64);
    for piece in pieces.chunks(piece_len(members, width_log)) {
        head.extend_from_slice(&xxh3_64(piece).to_le_bytes());
    }
    (head, pieces)
}

/// Bytes of each piece. Rows of a piece are a power of two from 8 on, so that pieces are alike and
/// end with a whole byte.
fn piece_len(members: usize, width_log: u8) -> usize {
    let fit = (PIECE_LEN * 8 / members.max(1)).max(8);
    let rows = 1 << fit.ilog2().min(width_log.into());
    (rows * members / 8).max(1)
}

/// The head of a group of filters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FilterGroup {
    width_log: u8,
    members: usize,
    checksums: Vec<u64>,
}

impl FilterGroup {
    /// Reads a head.
    pub(crate) fn read(r: &mut Reader<'_>) -> Result<FilterGroup, Malformed> {
        let width_log = r.u8()?;
        if !(WIDTH_LOG_MIN..=WIDTH_LOG_MAX).contains(&width_log) {
            return Err(Malformed("filter of an unknown width"));
        }
        let members = r.len(MEMBERS_MAX)?;
        if members == 0 {
            return Err(Malformed("a group without filters"));
        }
        let pieces = (members << width_log) / 8 / piece_len(members, width_log);
        let bytes = r.take(pieces * 8)?;
        let checksums = bytes.as_chunks().0.iter().map(|c| u64::from_le_bytes(*c)).collect();
        Ok(FilterGroup { width_log, members, checksums })
    }

    /// The number of members.
    pub(crate) fn members(&self) -> usize {
        self.members
    }

    /// Bytes of all pieces.
    pub(crate) fn len(&self) -> u64 {
        ((self.members << self.width_log) / 8) as u64
    }

    /// The members that may have `hash`. `read` gives the bytes of a piece, which
    /// [`verify`](FilterGroup::verify) has passed; it is called at most four times.
    ///
    /// # Errors
    /// Those of `read`.
    pub(crate) fn members_with<B: AsRef<[u8]>, E>(
        &self,
        hash: u64,
        mut read: impl FnMut(usize, Range<u64>) -> Result<B, E>,
    ) -> Result<Bitmap, E> {
        let len = piece_len(self.members, self.width_log);
        let mut found = Bitmap::full(self.members);
        for bit in probes(hash, self.width_log) {
            // A row lies within one piece.
            let row = bit * self.members;
            let piece = row / 8 / len;
            let start = (piece * len) as u64;
            let bytes = read(piece, start..start + len as u64)?;
            let first = row - piece * len * 8;
            found.retain(|member| {
                let at = first + member;
                // A byte that is not there denies nothing.
                bytes.as_ref().get(at / 8).is_none_or(|byte| byte >> (at % 8) & 1 != 0)
            });
            if !found.any() {
                break;
            }
        }
        Ok(found)
    }

    /// Checks the bytes of a piece against its checksum.
    pub(crate) fn verify(&self, piece: usize, bytes: &[u8]) -> Result<(), Malformed> {
        match self.checksums.get(piece) == Some(&xxh3_64(bytes)) {
            true => Ok(()),
            false => Err(Malformed("filter piece does not match its checksum")),
        }
    }

    /// The filters of all members, from all pieces, which are verified.
    pub(crate) fn split(&self, pieces: &[u8]) -> Result<Vec<Bloom>, Malformed> {
        if pieces.len() as u64 != self.len() {
            return Err(Malformed("filter pieces of another length"));
        }
        for (i, piece) in pieces.chunks(piece_len(self.members, self.width_log)).enumerate() {
            self.verify(i, piece)?;
        }
        let mut out = vec![Bloom::empty(self.width_log); self.members];
        for (at, byte) in pieces.iter().enumerate().filter(|(_, byte)| **byte != 0) {
            for i in (0..8).filter(|i| byte >> i & 1 != 0) {
                let (bit, member) = ((at * 8 + i) / self.members, (at * 8 + i) % self.members);
                if let Some(filter) = out.get_mut(member) {
                    filter.set(bit);
                }
            }
        }
        Ok(out)
    }
}

#[cfg(test)]
#[allow(clippy::cast_possible_truncation)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn group(filters: &[Bloom], width_log: u8) -> (FilterGroup, Vec<u8>) {
        let (head, pieces) = encode_group(&filters.iter().collect::<Vec<_>>(), width_log);
        let mut r = Reader::new(&head);
        let group = FilterGroup::read(&mut r).unwrap();
        r.finish().unwrap();
        assert_eq!(group.len(), pieces.len() as u64);
        (group, pieces)
    }

    fn probe(group: &FilterGroup, pieces: &[u8], hash: u64) -> (Bitmap, usize) {
        let mut read_bytes = 0;
        let read = |piece: usize, range: Range<u64>| {
            let bytes = &pieces[range.start as usize..range.end as usize];
            read_bytes += bytes.len();
            group.verify(piece, bytes).map(|()| bytes)
        };
        let found = group.members_with(hash, read).unwrap();
        (found, read_bytes)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn answers_like_its_members(
            sets in prop::collection::vec(prop::collection::vec(any::<u64>(), 0..50), 1..40),
            others in prop::collection::vec(any::<u64>(), 0..50),
            width_log in 6u8..13,
        ) {
            let filters: Vec<Bloom> = sets
                .iter()
                .map(|set| {
                    let mut bloom = Bloom::empty(width_log);
                    set.iter().for_each(|h| bloom.insert(*h));
                    bloom
                })
                .collect();
            let (group, pieces) = group(&filters, width_log);
            prop_assert_eq!(group.len(), (filters.len() << width_log) as u64 / 8);
            prop_assert_eq!(&group.split(&pieces).unwrap(), &filters);
            for hash in sets.iter().flatten().chain(&others) {
                let (found, _) = probe(&group, &pieces, *hash);
                for (member, filter) in filters.iter().enumerate() {
                    prop_assert_eq!(found.get(member), filter.may_contain(*hash));
                }
            }
        }

        #[test]
        fn any_head_is_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            let _ = FilterGroup::read(&mut Reader::new(&bytes));
        }
    }

    #[test]
    fn a_probe_reads_four_pieces_at_most_and_flips_are_seen() {
        let mut filters = vec![Bloom::empty(15); 128];
        filters[77].insert(42);
        let (group, mut pieces) = group(&filters, 15);
        let (found, read) = probe(&group, &pieces, 42);
        assert_eq!(found.iter().collect::<Vec<_>>(), [77]);
        assert!(read <= 4 * PIECE_LEN);
        for at in (0..pieces.len()).step_by(97) {
            pieces[at] ^= 1;
            assert!(group.split(&pieces).is_err());
            pieces[at] ^= 1;
        }
    }
}
