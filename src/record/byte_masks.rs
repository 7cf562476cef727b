//! Classes of bytes as bits, eight bytes at a time: the inner loop of what cuts texts into words.

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGHS: u64 = ONES * 0x80;

/// Sets a bit in `masks` for each byte of `bytes` that `class` names: it is given eight bytes below
/// 128 and gives back the high bit of each that is of the class. Other bytes are of none.
#[inline]
pub(crate) fn fill_masks(bytes: &[u8], masks: &mut Vec<u64>, class: impl Fn(u64) -> u64) {
    let mask_of = |chunk: &[u8; 64]| {
        let mut mask = 0;
        for (i, eight) in chunk.as_chunks::<8>().0.iter().enumerate() {
            let word = u64::from_le_bytes(*eight);
            let found = class(word & !HIGHS) & !word & HIGHS;
            // The product moves the bit of each byte into the highest one.
            mask |= ((found >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56) << (8 * i);
        }
        mask
    };
    masks.clear();
    let (chunks, rest) = bytes.as_chunks::<64>();
    masks.extend(chunks.iter().map(mask_of));
    let mut last = [0; 64];
    last.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
    masks.push(mask_of(&last));
}

/// The high bit of each of eight bytes below 128 that is between `first` and `last`; the other
/// bits mean nothing.
#[inline]
pub(crate) fn between(bytes: u64, first: u8, last: u8) -> u64 {
    // Sums of two bytes below 128 do not touch their neighbours.
    let least = |first: u8| bytes + ONES * u64::from(0x80 - first);
    least(first) & !least(last + 1)
}

/// As [`between`] for the letters of ASCII.
#[inline]
pub(crate) fn letters(bytes: u64) -> u64 {
    between(bytes | (ONES * 0x20), b'a', b'z')
}

/// As [`between`] for the digits of ASCII.
#[inline]
pub(crate) fn digits(bytes: u64) -> u64 {
    between(bytes, b'0', b'9')
}

/// The first set bit from `at` on, before `end`; else `end`.
#[inline]
pub(crate) fn next_set(masks: &[u64], at: usize, end: usize) -> usize {
    next(masks, at, end, 0)
}

/// The first clear bit from `at` on, before `end`; else `end`.
#[inline]
pub(crate) fn next_clear(masks: &[u64], at: usize, end: usize) -> usize {
    next(masks, at, end, u64::MAX)
}

#[inline]
fn next(masks: &[u64], mut at: usize, end: usize, flip: u64) -> usize {
    while at < end {
        let Some(mask) = masks.get(at / 64) else { break };
        let rest = (mask ^ flip) >> (at % 64);
        if rest != 0 {
            return (at + rest.trailing_zeros() as usize).min(end);
        }
        at = (at / 64 + 1) * 64;
    }
    end
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]
        #[test]
        fn masks_say_what_bytes_are(
            bytes in prop::collection::vec(any::<u8>(), 0..200),
            from in 0usize..200,
            to in 0usize..200,
            (first, last) in (1u8..127, 1u8..127),
        ) {
            let mut masks = Vec::new();
            let mut check = |class: fn(u64) -> u64, is: fn(&u8) -> bool| {
                fill_masks(&bytes, &mut masks, class);
                let set = |i: usize| masks[i / 64] >> (i % 64) & 1 == 1;
                let same = (0..bytes.len()).all(|i| set(i) == is(&bytes[i]));
                let (from, to) = (from.min(bytes.len()), to.min(bytes.len()));
                let next = |wanted| (from..to).find(|i| set(*i) == wanted).unwrap_or(to);
                same && next_set(&masks, from, to) == next(true)
                    && next_clear(&masks, from, to) == next(false)
            };
            prop_assert!(check(letters, u8::is_ascii_alphabetic));
            prop_assert!(check(digits, u8::is_ascii_digit));
            fill_masks(&bytes, &mut masks, |word| between(word, first, last));
            for (i, b) in bytes.iter().enumerate() {
                let set = masks[i / 64] >> (i % 64) & 1 == 1;
                prop_assert_eq!(set, (first..=last).contains(b) && *b < 128);
            }
        }
    }
}
