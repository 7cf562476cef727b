//! Numbers in as few bits as the largest of them needs.
//!
//! Layout: each full block of 128 values of at most 32 bits is stored in four lanes, value `i` in
//! lane `i % 4`; a lane is `width` little-endian words of 32 bits, filled from the low bits, and
//! the words of the lanes alternate. So one shift serves four neighbours, which compilers turn
//! into vector code. Values after the last full block, and all values of more than 32 bits, are
//! one stream of bits, low bits first.
#![expect(
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "loops over arrays of fixed size; lengths of outside bytes are checked before"
)]

use crate::error::Malformed;

/// Values of a block.
pub(super) const BLOCK: usize = 128;

/// The bits that `n` needs.
#[inline]
pub(super) fn width_of(n: u64) -> u32 {
    64 - n.leading_zeros()
}

/// The bytes of `n` values of `width` bits.
pub(super) fn packed_len(n: usize, width: u32) -> usize {
    (n * width as usize).div_ceil(8)
}

/// Calls `$f::<W>($args)` for the `W` that equals `$width`, which is 1 to 32.
macro_rules! for_width {
    ($width:expr, $f:ident ( $($args:expr),* )) => {
        for_width!(@all $width, $f, ($($args),*),
            1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32)
    };
    (@all $width:expr, $f:ident, $args:tt, $($w:literal)*) => {
        match $width { $($w => for_width!(@one $f, $w, $args),)* _ => {} }
    };
    (@one $f:ident, $w:literal, ($($args:expr),*)) => { $f::<$w>($($args),*) };
}

/// Appends `values`, each of at most `width` bits.
pub(super) fn pack(values: &[u64], width: u32, out: &mut Vec<u8>) {
    debug_assert!(values.iter().all(|v| width_of(*v) <= width), "values fit the width");
    if width == 0 {
        return;
    }
    let (blocks, rest) =
        if width <= 32 { values.as_chunks::<BLOCK>() } else { ([].as_slice(), values) };
    let mut narrow = [0u32; BLOCK];
    for block in blocks {
        for (to, from) in narrow.iter_mut().zip(block) {
            *to = *from as u32;
        }
        for_width!(width, pack_block(&narrow, out));
    }
    pack_bits(rest, width, out);
}

fn pack_block<const W: usize>(values: &[u32; BLOCK], out: &mut Vec<u8>) {
    let mut words = [[0u32; 4]; 32];
    for row in 0..BLOCK / 4 {
        let (word, shift) = (row * W / 32, row * W % 32);
        for lane in 0..4 {
            let v = values[row * 4 + lane];
            words[word][lane] |= v << shift;
            if shift + W > 32 {
                words[word + 1][lane] = v >> (32 - shift);
            }
        }
    }
    for word in words[..W].iter().flatten() {
        out.extend_from_slice(&word.to_le_bytes());
    }
}

fn pack_bits(values: &[u64], width: u32, out: &mut Vec<u8>) {
    let (mut acc, mut bits) = (0u128, 0u32);
    for v in values {
        acc |= u128::from(*v) << bits;
        bits += width;
        if bits >= 64 {
            out.extend_from_slice(&(acc as u64).to_le_bytes());
            acc >>= 64;
            bits -= 64;
        }
    }
    out.extend_from_slice(&acc.to_le_bytes()[..bits.div_ceil(8) as usize]);
}

/// Reads `out.len()` values of `width` bits from the start of `bytes`; returns the rest of
/// `bytes`.
pub(super) fn unpack<'a>(
    bytes: &'a [u8],
    width: u32,
    out: &mut [u64],
) -> Result<&'a [u8], Malformed> {
    let (packed, left) = split(bytes, width, out.len())?;
    let mut packed = packed;
    let mut rest = out;
    if (1..=32).contains(&width) {
        let mut narrow = [0u32; BLOCK];
        let (blocks, tail) = rest.as_chunks_mut::<BLOCK>();
        for block in blocks {
            let (bytes, after) = packed.split_at(width as usize * 16);
            for_width!(width, unpack_block(bytes, &mut narrow));
            for (to, from) in block.iter_mut().zip(&narrow) {
                *to = u64::from(*from);
            }
            packed = after;
        }
        rest = tail;
    }
    let mut bits = BitReader::new(packed, width);
    rest.iter_mut().for_each(|v| *v = bits.next());
    Ok(left)
}

/// Like [`unpack`], of values of at most 32 bits.
pub(super) fn unpack32<'a>(
    bytes: &'a [u8],
    width: u32,
    out: &mut [u32],
) -> Result<&'a [u8], Malformed> {
    if width > 32 {
        return Err(Malformed("numbers of over 32 bits"));
    }
    let (packed, left) = split(bytes, width, out.len())?;
    let mut packed = packed;
    let mut rest = out;
    if width > 0 {
        let (blocks, tail) = rest.as_chunks_mut::<BLOCK>();
        for block in blocks {
            let (bytes, after) = packed.split_at(width as usize * 16);
            for_width!(width, unpack_block(bytes, block));
            packed = after;
        }
        rest = tail;
    }
    let mut bits = BitReader::new(packed, width);
    rest.iter_mut().for_each(|v| *v = bits.next() as u32);
    Ok(left)
}

fn split(bytes: &[u8], width: u32, n: usize) -> Result<(&[u8], &[u8]), Malformed> {
    if width > 64 {
        return Err(Malformed("numbers of over 64 bits"));
    }
    bytes.split_at_checked(packed_len(n, width)).ok_or(Malformed("packed numbers end early"))
}

#[inline]
fn unpack_block<const W: usize>(bytes: &[u8], out: &mut [u32; BLOCK]) {
    let mut words = [[0u32; 4]; 33];
    for (to, from) in words[..W].iter_mut().flatten().zip(bytes.as_chunks::<4>().0) {
        *to = u32::from_le_bytes(*from);
    }
    let mask = u32::MAX >> (32 - W);
    for row in 0..BLOCK / 4 {
        let (word, shift) = (row * W / 32, row * W % 32);
        for lane in 0..4 {
            let mut v = words[word][lane] >> shift;
            if shift + W > 32 {
                v |= words[word + 1][lane] << (32 - shift);
            }
            out[row * 4 + lane] = v & mask;
        }
    }
}

/// Reads a stream of bits of which enough are there; zeros after its end.
struct BitReader<'a> {
    bytes: &'a [u8],
    width: u32,
    acc: u128,
    bits: u32,
}

impl<'a> BitReader<'a> {
    fn new(bytes: &'a [u8], width: u32) -> BitReader<'a> {
        BitReader { bytes, width, acc: 0, bits: 0 }
    }

    #[inline]
    fn next(&mut self) -> u64 {
        if self.bits < self.width {
            let word = match self.bytes.split_first_chunk::<8>() {
                Some((word, rest)) => {
                    self.bytes = rest;
                    u64::from_le_bytes(*word)
                }
                None => {
                    let mut word = [0; 8];
                    word[..self.bytes.len()].copy_from_slice(self.bytes);
                    self.bytes = &[];
                    u64::from_le_bytes(word)
                }
            };
            self.acc |= u128::from(word) << self.bits;
            self.bits += 64;
        }
        let v = self.acc as u64 & (((1u128 << self.width) - 1) as u64);
        self.acc >>= self.width;
        self.bits -= self.width;
        v
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]
        #[test]
        fn numbers_come_back(
            width in 0u32..=64,
            values in prop::collection::vec(any::<u64>(), 0..300),
        ) {
            let mask = if width == 64 { u64::MAX } else { (1 << width) - 1 };
            let values: Vec<u64> = values.iter().map(|v| v & mask).collect();
            let mut out = Vec::new();
            pack(&values, width, &mut out);
            prop_assert_eq!(out.len(), packed_len(values.len(), width));
            out.push(42);
            let mut got = vec![7; values.len()];
            prop_assert_eq!(unpack(&out, width, &mut got), Ok(&[42u8][..]));
            prop_assert_eq!(&got, &values);
            if width <= 32 {
                let mut got = vec![7; values.len()];
                prop_assert_eq!(unpack32(&out, width, &mut got), Ok(&[42u8][..]));
                prop_assert!(got.iter().zip(&values).all(|(a, b)| u64::from(*a) == *b));
            }
            if packed_len(values.len(), width) > 0 {
                out.truncate(out.len() - 2);
                prop_assert!(unpack(&out, width, &mut got).is_err());
            }
        }
    }

    #[test]
    fn widths_over_those_of_the_type_are_refused() {
        assert!(unpack(&[0; 2000], 65, &mut [0; 8]).is_err());
        assert!(unpack32(&[0; 2000], 33, &mut [0; 8]).is_err());
    }
}
