//! Values: numbers in texts, the total order, words.

use std::cmp::Ordering;

use super::input::{Input, put_bytes};
use crate::index::tokenizer::{
    for_each_word, is_word_char, lower_into, word_after, word_before, word_hash,
};
use crate::index::{Needle, WordNeed};
use crate::record::{
    SortKey, cmp_natural, cmp_values, cmp_values_then_bytes, parse_canonical_int, parse_ipv4,
    parse_number, parse_numeric, parse_quantity, parse_size, write_f64,
};

/// Three values behind their lengths.
pub(super) fn run(input: &[u8]) {
    let mut input = Input::new(input);
    let (a, b) = (input.bytes(), input.bytes());
    let values = [a, b, input.rest()];
    for value in values {
        number(value);
        words(value);
    }
    for order in [cmp_values, cmp_natural, cmp_values_then_bytes] {
        total(values, order);
    }
    for (a, b) in [(0, 1), (1, 2), (0, 2)] {
        let (a, b) = (values[a], values[b]);
        let by_key = SortKey::of(a).compare(a, SortKey::of(b), b);
        assert_eq!(by_key, cmp_values(a, b), "keys and values");
        let same = cmp_values_then_bytes(a, b) == Ordering::Equal;
        assert_eq!(same, a == b, "bytes decide in the end");
    }
}

/// The order is one: either way round, and over three values.
fn total(values: [&[u8]; 3], order: fn(&[u8], &[u8]) -> Ordering) {
    for a in values {
        assert_eq!(order(a, a), Ordering::Equal, "a value equals itself");
        for b in values {
            assert_eq!(order(a, b), order(b, a).reverse(), "either way round");
            for c in values {
                if order(a, b).is_le() && order(b, c).is_le() {
                    assert!(order(a, c).is_le(), "a cycle");
                    let equal = order(a, b).is_eq() && order(b, c).is_eq();
                    assert_eq!(order(a, c).is_eq(), equal, "equal values");
                }
            }
        }
    }
}

fn number(value: &[u8]) {
    if let Some(n) = parse_canonical_int(value) {
        assert_eq!(n.to_string().as_bytes(), value, "a canonical integer");
        assert_eq!(parse_number(value), Some(n as f64), "an integer is a number");
    }
    if let Some(n) = parse_number(value) {
        let mut printed = Vec::new();
        write_f64(&mut printed, n);
        let again = parse_number(&printed);
        let shown = String::from_utf8_lossy(&printed);
        assert!(n.is_nan() || !n.is_finite() || again == Some(n), "{n} prints as {shown}");
    }
    let _ = parse_numeric(value);
    let _ = (parse_quantity(value), parse_size(value), parse_ipv4(value));
}

fn words(value: &[u8]) {
    let mut hashes = Vec::new();
    let mut end = 0;
    for_each_word(value, |at, word| {
        assert!(at >= end && !word.is_empty(), "words follow each other");
        let text = std::str::from_utf8(word).expect("a word is UTF-8");
        assert!(text.chars().all(is_word_char), "a word of word characters");
        assert!(!word_before(value, at) && !word_after(value, at + word.len()), "whole words");
        end = at + word.len();
        hashes.push(word_hash(word));
    });
    for bounds in [(true, true), (true, false), (false, true), (false, false)] {
        let needle = Needle { text: value, bounds, fold: false };
        for need in needle.needs() {
            let known = match need {
                WordNeed::Digits(hash) => hashes.contains(&hash),
                WordNeed::Plain(part) => hashes.contains(&word_hash(part.bytes)),
                WordNeed::Piece(part) | WordNeed::Either(part) => {
                    memchr::memmem::find(value, part.bytes).is_some()
                }
            };
            assert!(known, "words of a needle");
        }
    }
    let mut lower = Vec::new();
    lower_into(value, &mut lower);
    let mut twice = Vec::new();
    lower_into(&lower, &mut twice);
    assert_eq!(twice, lower, "lower case is lower case");
}

pub(super) fn seeds() -> Vec<Vec<u8>> {
    let values = [
        ["10", "9.5", "1e1"],
        ["1.5KiB", "1536", "0x600"],
        ["2h", "7200s", "7200000000000"],
        ["192.168.1.1", "192.168.1.10", "192.168.1.1x"],
        ["2025-01-01T00:00:00Z", "2025-01-01T01:00:00+01:00", "2025"],
        ["file10.txt", "file9.txt", "file09.txt"],
        ["", "-0", "007"],
        [
            "\u{c9}t\u{e9} _a1 \u{540d}\u{524d}",
            "NaN inf",
            "99999999999999999999999999999999999999999",
        ],
    ];
    let seed = |three: &[&str; 3]| {
        let mut out = Vec::new();
        put_bytes(&mut out, three[0].as_bytes());
        put_bytes(&mut out, three[1].as_bytes());
        out.extend_from_slice(three[2].as_bytes());
        out
    };
    values.iter().map(seed).collect()
}
