//! The one family of filters: a bloom filter whose width is a power of two.
//!
//! Bit `(h1 + i * h2) mod width` is set for `i` in `0..4`, where `h1` and `h2` are the low and the
//! high half of the hash, `h2` made odd (Kirsch and Mitzenmacher, 2006). Since the width is a power
//! of two, filters of one width can be bit-sliced into a group whatever made them.

/// Bits set for each hash.
pub(crate) const PROBES: usize = 4;
/// The narrowest filter has `1 << WIDTH_LOG_MIN` bits.
pub(crate) const WIDTH_LOG_MIN: u8 = 6;
/// The widest filter has `1 << WIDTH_LOG_MAX` bits.
pub(crate) const WIDTH_LOG_MAX: u8 = 24;

/// The bits of `hash` in a filter of `1 << width_log` bits.
#[inline]
pub(super) fn probes(hash: u64, width_log: u8) -> impl Iterator<Item = usize> {
    let (h1, h2) = (hash & 0xffff_ffff, hash >> 32 | 1);
    let mask = (1u64 << width_log) - 1;
    // The mask keeps the number below 2^24.
    (0..PROBES as u64).map(move |i| usize::try_from((h1 + i * h2) & mask).unwrap_or(0))
}

/// A set of hashes that says "no" only if a hash was never added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Bloom {
    width_log: u8,
    words: Vec<u64>,
}

impl Bloom {
    /// An empty filter of `1 << width_log` bits, the width being brought into its limits.
    pub(crate) fn empty(width_log: u8) -> Bloom {
        let width_log = width_log.clamp(WIDTH_LOG_MIN, WIDTH_LOG_MAX);
        Bloom { width_log, words: vec![0; 1 << (width_log - 6)] }
    }

    /// The binary logarithm of the number of bits.
    pub(crate) fn width_log(&self) -> u8 {
        self.width_log
    }

    /// Adds a hash.
    #[inline]
    pub(crate) fn insert(&mut self, hash: u64) {
        for bit in probes(hash, self.width_log) {
            if let Some(word) = self.words.get_mut(bit / 64) {
                *word |= 1 << (bit % 64);
            }
        }
    }

    /// Sets one bit.
    pub(super) fn set(&mut self, bit: usize) {
        if let Some(word) = self.words.get_mut(bit / 64) {
            *word |= 1 << (bit % 64);
        }
    }

    /// Whether `hash` may have been added.
    #[inline]
    pub(crate) fn may_contain(&self, hash: u64) -> bool {
        probes(hash, self.width_log).all(|bit| self.bit(bit))
    }

    /// The bits that are set, ascending.
    pub(super) fn ones(&self) -> impl Iterator<Item = usize> + '_ {
        self.words.iter().enumerate().flat_map(|(i, word)| {
            let mut left = *word;
            std::iter::from_fn(move || {
                let bit = left.trailing_zeros();
                left &= left.wrapping_sub(1);
                (bit < 64).then_some(i * 64 + bit as usize)
            })
        })
    }

    /// Bytes of memory held.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.words.capacity() * 8
    }

    #[inline]
    fn bit(&self, bit: usize) -> bool {
        self.words.get(bit / 64).is_some_and(|word| word >> (bit % 64) & 1 == 1)
    }
}

/// A set of hashes, to count and keep each one once before a filter is made of them.
#[derive(Debug, Clone, Default)]
pub(crate) struct HashSet64 {
    /// Open addressing by the high half; 0 marks a free slot.
    slots: Vec<u64>,
    /// The hashes but 0, in the order in which they came.
    hashes: Vec<u64>,
    has_zero: bool,
}

impl HashSet64 {
    /// Adds a hash; true if it is new.
    #[inline]
    pub(crate) fn insert(&mut self, hash: u64) -> bool {
        if hash == 0 {
            return !std::mem::replace(&mut self.has_zero, true);
        }
        if self.hashes.len() * 2 >= self.slots.len() {
            self.grow();
        }
        let new = Self::place(&mut self.slots, hash);
        if new {
            self.hashes.push(hash);
        }
        new
    }

    /// The number of distinct hashes.
    pub(crate) fn len(&self) -> usize {
        self.hashes.len() + usize::from(self.has_zero)
    }

    /// All hashes, each once.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        let zero = self.has_zero.then_some(0);
        self.hashes.iter().copied().chain(zero)
    }

    /// Forgets all hashes, keeps the room.
    pub(crate) fn clear(&mut self) {
        // As wide as the set was, so that a small set after a large one is not cleared for long.
        self.slots.truncate((self.hashes.len() * 4).next_power_of_two().max(64));
        self.slots.fill(0);
        self.hashes.clear();
        self.has_zero = false;
    }

    #[inline]
    fn place(slots: &mut [u64], hash: u64) -> bool {
        let mask = slots.len().wrapping_sub(1);
        // Hashes are uniform, and the mask is below the slots' number, so any part of them will do.
        let mut at = usize::try_from(hash >> 32).unwrap_or(0) & mask;
        while let Some(slot) = slots.get_mut(at) {
            if *slot == 0 {
                *slot = hash;
                return true;
            }
            if *slot == hash {
                return false;
            }
            at = (at + 1) & mask;
        }
        false
    }

    #[cold]
    fn grow(&mut self) {
        let len = (self.slots.len() * 2).max(64);
        self.slots.clear();
        self.slots.resize(len, 0);
        for hash in &self.hashes {
            Self::place(&mut self.slots, *hash);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn hashes() -> impl Strategy<Value = Vec<u64>> {
        prop::collection::vec(prop_oneof![9 => any::<u64>(), 1 => 0u64..4], 0..400)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn never_denies_a_member(a in hashes(), width_log in 0u8..14) {
            let mut set = HashSet64::default();
            let naive: BTreeSet<u64> = a.iter().copied().collect();
            let new = a.iter().filter(|h| set.insert(**h)).count();
            prop_assert_eq!(new, naive.len());
            prop_assert_eq!(set.len(), naive.len());
            prop_assert_eq!(set.iter().collect::<BTreeSet<_>>(), naive);
            let mut bloom = Bloom::empty(width_log);
            set.iter().for_each(|h| bloom.insert(h));
            prop_assert!(a.iter().all(|h| bloom.may_contain(*h)));
            let mut copy = Bloom::empty(width_log);
            bloom.ones().for_each(|bit| copy.set(bit));
            prop_assert_eq!(copy, bloom);
        }
    }

    #[test]
    fn denies_most_of_what_is_not_there() {
        let hash = |i: u64| xxhash_rust::xxh3::xxh3_64(&i.to_le_bytes());
        for (n, width_log) in [(1000u64, 13u8), (2000, 14), (5000, 16)] {
            let mut bloom = Bloom::empty(width_log);
            (0..n).for_each(|i| bloom.insert(hash(i)));
            let wrong = (n..n + 10_000).filter(|i| bloom.may_contain(hash(*i))).count();
            assert!(wrong < 400, "{n}: {wrong} of 10,000");
        }
        assert_eq!(Bloom::empty(u8::MAX).width_log(), WIDTH_LOG_MAX);
    }
}
