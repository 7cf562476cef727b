//! Bit-sliced filters: those of many blocks, turned so that one probe reads a few bytes of all.
//!
//! A group has members (of a block and a column, say) with filters of one width. Row `p` holds bit
//! `p` of every member, one bit each, in whole bytes. Rows are stored in order, cut into pieces of
//! about [`PIECE_LEN`] bytes with a checksum each, so that a probe of one hash reads four pieces.
//!
//! Head: `width log u8 | members varint | xxh3-64 of each piece`. The head's length and checksum
//! are kept by whoever refers to the group; the pieces follow it.

use std::ops::Range;

use xxhash_rust::xxh3::xxh3_64;

use super::filter::{Bloom, WIDTH_LOG_MAX, WIDTH_LOG_MIN, probes};
use crate::codec::Bitmap;
use crate::codec::varint::{Reader, put_varint};
use crate::error::Malformed;

/// Bytes of a piece, or one row if that is longer.
const PIECE_LEN: usize = 2_048;
/// The most members of a group.
pub(crate) const MEMBERS_MAX: usize = 4_096;

/// The head and the pieces of a group of `filters`, brought to the width `1 << width_log`.
pub(crate) fn encode_group(filters: &[Bloom], width_log: u8) -> (Vec<u8>, Vec<u8>) {
    debug_assert!(filters.len() <= MEMBERS_MAX, "a group has a bounded number of members");
    let width_log = width_log.clamp(WIDTH_LOG_MIN, WIDTH_LOG_MAX);
    let row_len = filters.len().div_ceil(8);
    let mut rows = vec![0u8; row_len << width_log];
    for (member, filter) in filters.iter().enumerate() {
        for bit in filter.resized(width_log).ones() {
            if let Some(byte) = rows.get_mut(bit * row_len + member / 8) {
                *byte |= 1 << (member % 8);
            }
        }
    }
    let mut head = vec![width_log];
    put_varint(&mut head, filters.len() as u64);
    for piece in rows.chunks(piece_rows(row_len) * row_len.max(1)) {
        head.extend_from_slice(&xxh3_64(piece).to_le_bytes());
    }
    (head, rows)
}

/// The rows of a piece; a power of two, so that pieces are alike.
fn piece_rows(row_len: usize) -> usize {
    let fit = PIECE_LEN / row_len.max(1);
    fit.checked_ilog2().map_or(1, |log| 1 << log)
}

/// The head of a group of filters.
#[derive(Debug, Clone)]
pub(crate) struct FilterGroup {
    width_log: u8,
    members: usize,
    checksums: Vec<u64>,
}

impl FilterGroup {
    /// Reads a head whose checksum has been verified.
    pub(crate) fn parse(head: &[u8]) -> Result<FilterGroup, Malformed> {
        let mut r = Reader::new(head);
        let width_log = r.u8()?;
        if !(WIDTH_LOG_MIN..=WIDTH_LOG_MAX).contains(&width_log) {
            return Err(Malformed("filter of an unknown width"));
        }
        let members = r.len(MEMBERS_MAX)?;
        let row_len = members.div_ceil(8);
        let pieces = if members == 0 { 0 } else { (1usize << width_log) / piece_rows(row_len) };
        // A width of few rows fits one piece.
        let pieces = if members == 0 { 0 } else { pieces.max(1) };
        let bytes = r.take(pieces * 8)?;
        r.finish()?;
        let checksums = bytes.as_chunks().0.iter().map(|c| u64::from_le_bytes(*c)).collect();
        Ok(FilterGroup { width_log, members, checksums })
    }

    /// The number of members.
    pub(crate) fn members(&self) -> usize {
        self.members
    }

    /// Bytes of all pieces.
    pub(crate) fn len(&self) -> u64 {
        (self.row_len() << self.width_log) as u64
    }

    /// Drops the members that do not have `hash` from `alive`, a set of all members.
    ///
    /// `read` gives the bytes of a range, counted from the first piece; it is called for at most
    /// four pieces, and for none if no member is alive.
    pub(crate) fn retain<B, E>(
        &self,
        hash: u64,
        alive: &mut Bitmap,
        mut read: impl FnMut(Range<u64>) -> Result<B, E>,
    ) -> Result<(), E>
    where
        B: AsRef<[u8]>,
        E: From<Malformed>,
    {
        let row_len = self.row_len();
        let rows = piece_rows(row_len).min(1 << self.width_log);
        for bit in probes(hash, self.width_log) {
            if !alive.any() {
                return Ok(());
            }
            let piece = bit / rows;
            let start = (piece * rows * row_len) as u64;
            let bytes = read(start..start + (rows * row_len) as u64)?;
            let bytes = bytes.as_ref();
            let in_piece = bit % rows * row_len;
            let row = bytes.get(in_piece..in_piece + row_len);
            let row = row.ok_or(Malformed("filter piece is short"))?;
            if self.checksums.get(piece) != Some(&xxh3_64(bytes)) {
                return Err(Malformed("filter piece does not match its checksum").into());
            }
            alive.and(&Bitmap::decode(&mut Reader::new(row), self.members)?);
        }
        Ok(())
    }

    fn row_len(&self) -> usize {
        self.members.div_ceil(8)
    }
}

#[cfg(test)]
#[allow(clippy::cast_possible_truncation)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn probe(group: &FilterGroup, pieces: &[u8], hash: u64) -> (Bitmap, usize) {
        let mut alive = Bitmap::full(group.members());
        let mut read_bytes = 0;
        let read = |range: Range<u64>| {
            let range = range.start as usize..range.end as usize;
            read_bytes += range.len();
            pieces.get(range).ok_or(Malformed("range outside of the group"))
        };
        group.retain(hash, &mut alive, read).unwrap();
        (alive, read_bytes)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn answers_like_its_members(
            sets in prop::collection::vec(prop::collection::vec(any::<u64>(), 0..50), 0..40),
            others in prop::collection::vec(any::<u64>(), 0..50),
            width_log in 6u8..13,
        ) {
            let filters: Vec<Bloom> = sets
                .iter()
                .map(|set| {
                    let mut bloom = Bloom::for_hashes(set.len());
                    set.iter().for_each(|h| bloom.insert(*h));
                    bloom
                })
                .collect();
            let (head, pieces) = encode_group(&filters, width_log);
            let group = FilterGroup::parse(&head).unwrap();
            prop_assert_eq!(group.len(), pieces.len() as u64);
            for hash in sets.iter().flatten().chain(&others) {
                let row_wise: Vec<bool> =
                    filters.iter().map(|f| f.resized(width_log).may_contain(*hash)).collect();
                let (alive, _) = probe(&group, &pieces, *hash);
                for (member, set) in sets.iter().enumerate() {
                    prop_assert_eq!(alive.get(member), row_wise[member]);
                    prop_assert!(alive.get(member) || !set.contains(hash));
                }
            }
        }

        #[test]
        fn any_head_is_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            let _ = FilterGroup::parse(&bytes);
        }
    }

    #[test]
    fn a_probe_reads_four_pieces_and_verifies_them() {
        let mut filters = vec![Bloom::empty(15); 128];
        filters[77].insert(42);
        let (head, mut pieces) = encode_group(&filters, 15);
        let group = FilterGroup::parse(&head).unwrap();
        let (alive, read) = probe(&group, &pieces, 42);
        assert_eq!(alive.iter().collect::<Vec<_>>(), [77]);
        assert!(read <= 4 * PIECE_LEN);
        pieces.iter_mut().for_each(|b| *b ^= 1);
        let mut alive = Bitmap::full(128);
        let read = |r: Range<u64>| Ok(&pieces[r.start as usize..r.end as usize]);
        assert!(group.retain::<_, Malformed>(42, &mut alive, read).is_err());
    }
}
