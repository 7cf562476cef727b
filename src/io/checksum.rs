//! The checksum of everything on disk: xxh3-64.

use xxhash_rust::xxh3::{Xxh3, xxh3_64, xxh3_64_with_seed};

/// xxh3-64 of `bytes` with seed 0.
pub(crate) fn checksum(bytes: &[u8]) -> u64 {
    xxh3_64(bytes)
}

/// xxh3-64 of `bytes` with a seed: chained records use the checksum of the record before.
pub(crate) fn checksum_seeded(bytes: &[u8], seed: u64) -> u64 {
    xxh3_64_with_seed(bytes, seed)
}

/// xxh3-64 over bytes that come in pieces; equal to [`checksum_seeded`] of the whole.
#[derive(Clone)]
pub(crate) struct Checksum(Xxh3);

impl Checksum {
    /// An empty input under `seed` (0 for the plain checksum).
    pub(crate) fn new(seed: u64) -> Checksum {
        Checksum(Xxh3::with_seed(seed))
    }

    /// Adds the next piece.
    pub(crate) fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The checksum of the pieces so far.
    pub(crate) fn finish(&self) -> u64 {
        self.0.digest()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn known_values() {
        // The published vectors of XXH3_64bits for the empty input.
        assert_eq!(checksum(b""), 0x2d06_8005_38d3_94c2);
        assert_ne!(checksum_seeded(b"", 1), checksum(b""));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn pieces_equal_whole(bytes in prop::collection::vec(any::<u8>(), 0..600),
                              cut in 0usize..600, seed in any::<u64>()) {
            let cut = cut.min(bytes.len());
            let mut sum = Checksum::new(seed);
            sum.update(&bytes[..cut]);
            sum.update(&bytes[cut..]);
            prop_assert_eq!(sum.finish(), checksum_seeded(&bytes, seed));
        }
    }
}
