//! Folded 4-grams: they prune searches for substrings and literals of regular expressions.
//!
//! A gram is four consecutive bytes, digits taken as `0`, so that numbers do not fill the filter.

/// The bytes of a gram.
pub(crate) const GRAM_LEN: usize = 4;

/// The hash of a gram as filters hold it: the four bytes as a little-endian number, mixed by the
/// finaliser of splitmix64 (Steele, Lea, Flood, 2014).
#[inline]
fn gram_hash(gram: u32) -> u64 {
    let mut h = u64::from(gram).wrapping_add(0x9e37_79b9_7f4a_7c15);
    h = (h ^ (h >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    h = (h ^ (h >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    h ^ (h >> 31)
}

#[inline]
fn fold(b: u8) -> u8 {
    if b.is_ascii_digit() { b'0' } else { b }
}

/// Calls `f` with the hash of each gram of `text`; none if the text is shorter than a gram.
#[inline]
pub(crate) fn for_each_gram(text: &[u8], mut f: impl FnMut(u64)) {
    let mut gram = 0u32;
    for (i, b) in text.iter().enumerate() {
        gram = gram >> 8 | u32::from(fold(*b)) << 24;
        if i + 1 >= GRAM_LEN {
            f(gram_hash(gram));
        }
    }
}

/// The hashes of the grams that every text containing `literal` has.
pub(crate) fn literal_grams(literal: &[u8]) -> Vec<u64> {
    let mut out = Vec::new();
    for_each_gram(literal, |h| out.push(h));
    out.sort_unstable();
    out.dedup();
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]
        #[test]
        fn a_text_has_the_grams_of_its_parts(
            text in prop::collection::vec(prop_oneof![b'a'..b'c', b'0'..=b'9'], 0..40),
            from in any::<prop::sample::Index>(),
            to in any::<prop::sample::Index>(),
        ) {
            let (from, to) = (from.index(text.len() + 1), to.index(text.len() + 1));
            let part = &text[from.min(to)..from.max(to)];
            let all = literal_grams(&text);
            prop_assert!(literal_grams(part).iter().all(|h| all.contains(h)));
        }
    }

    #[test]
    fn digits_are_alike_and_order_counts() {
        assert_eq!(literal_grams(b"a=17"), literal_grams(b"a=90"));
        assert_ne!(literal_grams(b"abcd"), literal_grams(b"dcba"));
        assert!(literal_grams(b"abc").is_empty());
        assert_eq!(literal_grams(b"abcde").len(), 2);
        // The hash is part of the format.
        assert_eq!(gram_hash(0), 0xe220_a839_7b1d_cdaf);
    }
}
