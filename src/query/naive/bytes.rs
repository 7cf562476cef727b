//! Pipes that look at bytes.

/// `hash`: xxh64 without a seed, its low 53 bits.
pub(super) fn hash(bytes: &[u8]) -> u64 {
    xxh64(bytes) & ((1 << 53) - 1)
}

const PRIMES: [u64; 5] = [
    11_400_714_785_074_694_791,
    14_029_467_366_897_019_727,
    1_609_587_929_392_839_161,
    9_650_029_242_287_828_579,
    2_870_177_450_012_600_261,
];

/// By the specification of xxHash: lanes of 32 bytes, then 8, 4 and 1 at a time.
fn xxh64(bytes: &[u8]) -> u64 {
    let [p1, p2, p3, p4, p5] = PRIMES;
    let round = |acc: u64, input: u64| {
        acc.wrapping_add(input.wrapping_mul(p2)).rotate_left(31).wrapping_mul(p1)
    };
    let word = |b: &[u8]| b.iter().rev().fold(0, |n, b| n << 8 | u64::from(*b));
    let mut rest = bytes;
    let mut hash = p5;
    if rest.len() >= 32 {
        let mut lanes = [p1.wrapping_add(p2), p2, 0, 0u64.wrapping_sub(p1)];
        while rest.len() >= 32 {
            for (lane, piece) in lanes.iter_mut().zip(rest.chunks(8)) {
                *lane = round(*lane, word(piece));
            }
            rest = &rest[32..];
        }
        let turns = [1, 7, 12, 18];
        hash = lanes.iter().zip(turns).fold(0, |h: u64, (l, n)| h.wrapping_add(l.rotate_left(n)));
        for lane in lanes {
            hash = (hash ^ round(0, lane)).wrapping_mul(p1).wrapping_add(p4);
        }
    }
    hash = hash.wrapping_add(bytes.len() as u64);
    while rest.len() >= 8 {
        hash ^= round(0, word(&rest[..8]));
        hash = hash.rotate_left(27).wrapping_mul(p1).wrapping_add(p4);
        rest = &rest[8..];
    }
    if rest.len() >= 4 {
        hash ^= word(&rest[..4]).wrapping_mul(p1);
        hash = hash.rotate_left(23).wrapping_mul(p2).wrapping_add(p3);
        rest = &rest[4..];
    }
    for b in rest {
        hash ^= u64::from(*b).wrapping_mul(p5);
        hash = hash.rotate_left(11).wrapping_mul(p1);
    }
    hash = (hash ^ hash >> 33).wrapping_mul(p2);
    hash = (hash ^ hash >> 29).wrapping_mul(p3);
    hash ^ hash >> 32
}

/// `decolorize`: without `ESC [`, parameters, intermediates and a final byte.
pub(super) fn decolorize(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("\u{1b}[") {
        out.push_str(&rest[..at]);
        let tail = rest[at + 2..].trim_start_matches(|c| ('\u{30}'..='\u{3f}').contains(&c));
        let tail = tail.trim_start_matches(|c| ('\u{20}'..='\u{2f}').contains(&c));
        rest = tail.strip_prefix(|c| ('\u{30}'..='\u{7e}').contains(&c)).unwrap_or(tail);
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_those_of_the_specification() {
        assert_eq!(xxh64(b""), 0xef46_db37_51d8_e999);
        assert_eq!(xxh64(b"abc"), 0x44bc_2cf5_ad77_0999);
    }

    #[test]
    fn colours_are_taken_out() {
        assert_eq!(decolorize("a\u{1b}[1;31mred\u{1b}[0m b\u{1b}[>"), "ared b");
    }
}
