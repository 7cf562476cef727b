//! Sequences of signed numbers in blocks of 128: frame of reference, with patches.
//!
//! A block is `base (signed varint, less the base of the block before) | width u8 | patches |
//! packed`: the values less the base, in `width & 0x7f` bits each. With bit 7 of the width, a few
//! values have more bits than that: `count u8 | high width u8 | positions (count x u8) | high bits
//! (packed)`, and the packed numbers hold their low bits. The idea of patching is that of PFOR
//! (Zukowski et al., 2006).
#![expect(clippy::indexing_slicing, reason = "loops over arrays of the block's fixed size")]

use super::bitpack::{self, BLOCK, pack, packed_len, width_of};
use super::varint::{Reader, put_signed};
use crate::error::Malformed;

const PATCHED: u8 = 0x80;

/// Appends `values`.
pub(super) fn encode(values: &[i64], out: &mut Vec<u8>) {
    let mut last_base = 0;
    let mut residuals = [0u64; BLOCK];
    for block in values.chunks(BLOCK) {
        let base = block.iter().copied().min().unwrap_or(0);
        put_signed(out, base.wrapping_sub(last_base));
        last_base = base;
        let residuals = &mut residuals[..block.len()];
        for (to, from) in residuals.iter_mut().zip(block) {
            *to = from.wrapping_sub(base).cast_unsigned();
        }
        encode_block(residuals, out);
    }
}

#[expect(clippy::cast_possible_truncation, reason = "widths are at most 64, positions 127")]
fn encode_block(residuals: &mut [u64], out: &mut Vec<u8>) {
    let (width, max_width) = best_width(residuals);
    if width == max_width {
        out.push(width as u8);
        pack(residuals, width, out);
        return;
    }
    let high_width = max_width - width;
    let mut highs = [0u64; BLOCK];
    let mut positions = [0u8; BLOCK];
    let mut count = 0;
    for (i, v) in residuals.iter_mut().enumerate() {
        let high = *v >> width;
        if high != 0 {
            highs[count] = high;
            positions[count] = i as u8;
            count += 1;
            *v &= (1 << width) - 1;
        }
    }
    out.extend([width as u8 | PATCHED, count as u8, high_width as u8]);
    out.extend_from_slice(&positions[..count]);
    pack(&highs[..count], high_width, out);
    pack(residuals, width, out);
}

/// The width that makes the block smallest, and that of the largest value. They differ only if
/// less than half of the values need patches.
fn best_width(residuals: &[u64]) -> (u32, u32) {
    let all = residuals.iter().fold(0, |acc, v| acc | v);
    let max_width = width_of(all);
    if max_width < 3 || residuals.len() < 16 {
        return (max_width, max_width);
    }
    let mut counts = [0usize; 65];
    for v in residuals {
        counts[width_of(*v) as usize] += 1;
    }
    let mut best = (packed_len(residuals.len(), max_width), max_width);
    let mut patches = 0;
    for width in (0..max_width).rev() {
        patches += counts[width as usize + 1];
        if patches * 2 > residuals.len() {
            break;
        }
        let len = 2
            + patches
            + packed_len(patches, max_width - width)
            + packed_len(residuals.len(), width);
        if len < best.0 {
            best = (len, width);
        }
    }
    (best.1, max_width)
}

/// Reads `out.len()` values, a number that the caller has checked.
pub(super) fn decode(r: &mut Reader<'_>, out: &mut [i64]) -> Result<(), Malformed> {
    let mut base = 0i64;
    let mut residuals = [0u64; BLOCK];
    for block in out.chunks_mut(BLOCK) {
        base = base.wrapping_add(r.signed()?);
        let residuals = &mut residuals[..block.len()];
        decode_block(r, residuals)?;
        for (to, from) in block.iter_mut().zip(residuals) {
            *to = base.wrapping_add(from.cast_signed());
        }
    }
    Ok(())
}

fn decode_block(r: &mut Reader<'_>, residuals: &mut [u64]) -> Result<(), Malformed> {
    let header = r.u8()?;
    let width = u32::from(header & !PATCHED);
    if header & PATCHED == 0 {
        return unpack(r, width, residuals);
    }
    let count = usize::from(r.u8()?);
    let high_width = u32::from(r.u8()?);
    if count > BLOCK || width + high_width > 64 || high_width == 0 {
        return Err(Malformed("patches that no block has"));
    }
    let positions = r.take(count)?;
    let mut highs = [0u64; BLOCK];
    unpack(r, high_width, &mut highs[..count])?;
    unpack(r, width, residuals)?;
    for (position, high) in positions.iter().zip(highs) {
        let v = residuals.get_mut(usize::from(*position));
        *v.ok_or(Malformed("patch past the end of its block"))? |= high << width;
    }
    Ok(())
}

fn unpack(r: &mut Reader<'_>, width: u32, out: &mut [u64]) -> Result<(), Malformed> {
    *r = Reader::new(bitpack::unpack(r.rest(), width, out)?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]
        #[test]
        fn numbers_come_back(
            values in prop::collection::vec((any::<i64>(), 0u32..64), 0..300),
            narrow in any::<bool>(),
        ) {
            let values: Vec<i64> = values
                .iter()
                .map(|(v, shift)| if narrow && shift % 16 != 0 { v & 31 } else { v >> shift })
                .collect();
            let mut out = Vec::new();
            encode(&values, &mut out);
            let mut got = vec![0; values.len()];
            let mut r = Reader::new(&out);
            prop_assert_eq!(decode(&mut r, &mut got), Ok(()));
            prop_assert!(r.is_empty());
            prop_assert_eq!(got, values);
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = decode(&mut Reader::new(&bytes), &mut [0; 200]);
        }
    }

    #[test]
    fn an_outlier_costs_a_few_bytes_only() {
        let mut values: Vec<i64> = (0..128).map(|i| i % 8).collect();
        values[77] = i64::MAX;
        let mut out = Vec::new();
        encode(&values, &mut out);
        assert!(out.len() < 128 * 3 / 8 + 16, "{}", out.len());
    }
}
