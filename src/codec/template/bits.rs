//! A stream of bits, low bits first, that can be read at any place.

/// Bytes behind a stream that is read with [`get`], so that each read is one load.
pub(super) const PADDING: usize = 16;

/// Collects numbers of any width up to 64 bits.
#[derive(Debug, Default)]
pub(super) struct BitWriter {
    pending: u128,
    bits: u32,
}

impl BitWriter {
    /// Appends the low `width` bits of `value`, whose other bits are zero.
    #[inline]
    pub(super) fn put(&mut self, value: u64, width: u32, out: &mut Vec<u8>) {
        self.pending |= u128::from(value) << self.bits;
        self.bits += width;
        if self.bits >= 64 {
            let bytes = self.pending.to_le_bytes();
            out.extend_from_slice(bytes.first_chunk::<8>().unwrap_or(&[0; 8]));
            self.pending >>= 64;
            self.bits -= 64;
        }
    }

    /// Appends what is left, padded to a byte.
    pub(super) fn finish(self, out: &mut Vec<u8>) {
        out.extend(self.pending.to_le_bytes().iter().take(self.bits.div_ceil(8) as usize));
    }
}

/// The `width` bits from bit `at`; `bytes` must have [`PADDING`] behind the stream, past which
/// all bits are zero.
#[inline]
pub(super) fn get(bytes: &[u8], at: u64, width: u32) -> u64 {
    let from = usize::try_from(at / 8).unwrap_or(usize::MAX);
    let Some(word) = bytes.get(from..).and_then(|rest| rest.first_chunk::<16>()) else { return 0 };
    let shift = u32::from(at.to_le_bytes()[0] & 7);
    let mask = u64::MAX.checked_shr(64 - width.min(64)).unwrap_or(0);
    let shifted = (u128::from_le_bytes(*word) >> shift).to_le_bytes();
    u64::from_le_bytes(*shifted.first_chunk().unwrap_or(&[0; 8])) & mask
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]
        #[test]
        fn numbers_are_found_again(
            numbers in prop::collection::vec((any::<u64>(), 0u32..=64), 0..80),
        ) {
            let cut = |(n, width): (u64, u32)| if width == 0 { 0 } else { n >> (64 - width) };
            let mut out = Vec::new();
            let mut writer = BitWriter::default();
            numbers.iter().for_each(|n| writer.put(cut(*n), n.1, &mut out));
            writer.finish(&mut out);
            let bits: u64 = numbers.iter().map(|n| u64::from(n.1)).sum();
            prop_assert_eq!(out.len() as u64, bits.div_ceil(8));
            out.extend([0; PADDING]);
            let mut at = 0;
            for n in &numbers {
                prop_assert_eq!(get(&out, at, n.1), cut(*n));
                at += u64::from(n.1);
            }
            prop_assert_eq!(get(&out, at + 1_000, 64), 0);
        }
    }
}
