//! Numbers: differences of some order, divided by their greatest common divisor, in frames or as
//! bytes under zstd.

use super::bitpack::width_of;
use super::compress::{Compressor, put_frame};
use super::frame;
use super::page::Decoder;
use super::varint::{Reader, put_signed, put_varint, unzigzag, zigzag};
use crate::error::Malformed;

/// So many numbers at least are tried as bytes under zstd.
const PLANES_MIN: usize = 64;

/// Appends numbers; overwrites them.
pub(super) fn encode_numbers(numbers: &mut [i64], order: u8, out: &mut Vec<u8>) {
    if let Some(rest) = differences(numbers, order, out) {
        frame::encode(rest, out);
    }
}

/// Turns `numbers` into differences of `order`, divided; appends heads and divisor. `None` if the
/// heads are all there is.
fn differences<'a>(numbers: &'a mut [i64], order: u8, out: &mut Vec<u8>) -> Option<&'a mut [i64]> {
    let mut rest = numbers;
    for _ in 0..order {
        let (first, after) = rest.split_first_mut()?;
        put_signed(out, *first);
        let mut last = *first;
        for n in after.iter_mut() {
            let value = *n;
            *n = value.wrapping_sub(last);
            last = value;
        }
        rest = after;
    }
    put_varint(out, divide(rest));
    Some(rest)
}

/// How numbers are laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Layout {
    /// The order of differences.
    pub(super) order: u8,
    /// Whether bytes under zstd are tried.
    pub(super) planes: bool,
}

impl Layout {
    /// The layout that makes `numbers` smallest.
    pub(super) fn best(numbers: &[i64], zstd: &mut Compressor) -> Layout {
        let planes = zstd.is_thorough() && numbers.len() >= PLANES_MIN;
        let mut best = (usize::MAX, Layout::default());
        let mut out = Vec::new();
        for order in 0..=2 {
            out.clear();
            let layout = Layout { order, planes: planes && order < 2 };
            let planes = encode_packed(&mut numbers.to_vec(), layout, zstd, &mut out);
            if out.len() < best.0 {
                best = (out.len(), Layout { order, planes });
            }
        }
        best.1
    }
}

/// Appends numbers, as bytes under zstd where the layout says to try and that is smaller, which is
/// returned; overwrites them.
///
/// As bytes they are `heads | divisor varint | width u8 | packed blob`: the zigzag numbers, first
/// the lowest byte of all, then the next, up to `width` of them. Entropy coding sees where small
/// differences are frequent, which the fixed width of a frame does not.
pub(super) fn encode_packed(
    numbers: &mut [i64],
    layout: Layout,
    zstd: &mut Compressor,
    out: &mut Vec<u8>,
) -> bool {
    let Some(rest) = differences(numbers, layout.order, out) else { return false };
    let at = out.len();
    frame::encode(rest, out);
    if !layout.planes || rest.is_empty() {
        return false;
    }
    let all = rest.iter().fold(0, |all, n| all | zigzag(*n));
    let width = width_of(all).div_ceil(8).max(1);
    let mut planes = Vec::with_capacity(rest.len() * width as usize);
    for plane in 0..width {
        planes.extend(rest.iter().map(|n| (zigzag(*n) >> (8 * plane)).to_le_bytes()[0]));
    }
    match zstd.frame(&planes) {
        Some(frame) if frame.len() + 5 < out.len() - at => {
            out.truncate(at);
            out.push(width.to_le_bytes()[0]);
            put_frame(planes.len(), frame, out);
            true
        }
        _ => false,
    }
}

/// Reads `out.len()` numbers that [`encode_packed`] stored as bytes. They end what `r` reads.
pub(super) fn decode_packed(
    r: &mut Reader<'_>,
    order: u8,
    decoder: &mut Decoder,
    out: &mut [i64],
) -> Result<(), Malformed> {
    decode_with(r, order, out, |r, out| {
        let width = usize::from(r.u8()?);
        if width == 0 || width > 8 {
            return Err(Malformed("width of bytes of numbers"));
        }
        let Decoder { zstd, scratch } = decoder;
        zstd.unpack_next(r, out.len() * width, scratch)?;
        if scratch.len() != out.len() * width {
            return Err(Malformed("other bytes than numbers"));
        }
        let mut wide = vec![0u64; out.len()];
        for (shift, plane) in (0u32..).step_by(8).zip(scratch.chunks_exact(out.len().max(1))) {
            wide.iter_mut().zip(plane).for_each(|(n, b)| *n |= u64::from(*b) << shift);
        }
        out.iter_mut().zip(wide).for_each(|(to, n)| *to = unzigzag(n));
        Ok(())
    })
}

/// Divides all numbers by their greatest common divisor, which is returned; 1 for no numbers.
fn divide(numbers: &mut [i64]) -> u64 {
    let mut divisor = 0u64;
    for n in numbers.iter() {
        let n = n.unsigned_abs();
        if divisor == 0 || !n.is_multiple_of(divisor) {
            divisor = gcd(divisor, n);
            if divisor == 1 {
                return 1;
            }
        }
    }
    match i64::try_from(divisor) {
        Ok(d) if d > 1 => {
            numbers.iter_mut().for_each(|n| *n /= d);
            divisor
        }
        _ => 1,
    }
}

fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Reads `n` numbers, a count that the caller has checked.
pub(super) fn decode_numbers(
    r: &mut Reader<'_>,
    order: u8,
    out: &mut [i64],
) -> Result<(), Malformed> {
    decode_with(r, order, out, frame::decode)
}

fn decode_with(
    r: &mut Reader<'_>,
    order: u8,
    out: &mut [i64],
    body: impl FnOnce(&mut Reader<'_>, &mut [i64]) -> Result<(), Malformed>,
) -> Result<(), Malformed> {
    let heads = usize::from(order).min(out.len());
    let mut firsts = [0i64; 2];
    for first in firsts.iter_mut().take(heads) {
        *first = r.signed()?;
    }
    // With fewer numbers than that, the first ones are all there is.
    if heads == usize::from(order) {
        let rest = out.get_mut(heads..).unwrap_or(&mut []);
        let divisor = i64::try_from(r.varint()?).map_err(|_| Malformed("divisor over 63 bits"))?;
        body(r, rest)?;
        if divisor != 1 {
            rest.iter_mut().for_each(|n| *n = n.wrapping_mul(divisor));
        }
    }
    for level in (0..heads).rev() {
        let Some(sums) = out.get_mut(level..) else { continue };
        let mut sum = firsts.get(level).copied().unwrap_or(0);
        let Some((head, after)) = sums.split_first_mut() else { continue };
        *head = sum;
        for n in after {
            sum = sum.wrapping_add(*n);
            *n = sum;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]
        #[test]
        fn numbers_come_back(
            numbers in prop::collection::vec(any::<i64>(), 0..300),
            shift in 0u32..64,
            factor in 1i64..1000,
            order in 0u8..3,
        ) {
            let numbers: Vec<i64> =
                numbers.iter().map(|n| (n >> shift).wrapping_mul(factor)).collect();
            let mut out = Vec::new();
            encode_numbers(&mut numbers.clone(), order, &mut out);
            let mut got = vec![0; numbers.len()];
            let mut r = Reader::new(&out);
            prop_assert_eq!(decode_numbers(&mut r, order, &mut got), Ok(()));
            prop_assert!(r.is_empty());
            prop_assert_eq!(&got, &numbers);
            let mut zstd = Compressor::thorough(3);
            out.clear();
            let layout = Layout { order, planes: true };
            let planes = encode_packed(&mut numbers.clone(), layout, &mut zstd, &mut out);
            let mut r = Reader::new(&out);
            let read = if planes {
                decode_packed(&mut r, order, &mut Decoder::new(), &mut got)
            } else {
                decode_numbers(&mut r, order, &mut got)
            };
            prop_assert_eq!(read, Ok(()));
            prop_assert!(r.is_empty());
            prop_assert_eq!(got, numbers);
        }

        #[test]
        fn any_bytes_are_read_or_refused(
            bytes in prop::collection::vec(prop_oneof![0u8..4, any::<u8>()], 0..300),
            order in 0u8..3,
        ) {
            let mut r = Reader::new(&bytes);
            let _ = decode_packed(&mut r, order, &mut Decoder::new(), &mut [0; 9]);
        }
    }

    #[test]
    fn a_few_numbers_come_back_in_every_order() {
        for order in 0..=2 {
            for numbers in [&[][..], &[7], &[7, -9], &[7, -9, i64::MIN], &[5; 4]] {
                let mut out = Vec::new();
                encode_numbers(&mut numbers.to_vec(), order, &mut out);
                let mut got = vec![0; numbers.len()];
                assert_eq!(decode_numbers(&mut Reader::new(&out), order, &mut got), Ok(()));
                assert_eq!(got, numbers);
            }
        }
    }

    #[test]
    fn skewed_differences_take_fewer_bits_than_their_widest() {
        let mut n = 0;
        let numbers: Vec<i64> = (0i64..2048)
            .map(|i| {
                n += if i % 9 == 0 { i * 7919 % 60_000 } else { 100 + i % 3 };
                n
            })
            .collect();
        let layout = Layout::best(&numbers, &mut Compressor::thorough(3));
        assert_eq!(layout, Layout { order: 1, planes: true });
        let (mut planes, mut frames) = (Vec::new(), Vec::new());
        let mut zstd = Compressor::thorough(3);
        assert!(encode_packed(&mut numbers.clone(), layout, &mut zstd, &mut planes));
        encode_numbers(&mut numbers.clone(), 1, &mut frames);
        assert!(planes.len() * 4 < frames.len() * 3, "{} of {}", planes.len(), frames.len());
    }
}
