//! Words against a naive tokenizer, and the tables against what froze them.
#![allow(clippy::cast_possible_truncation)]

use proptest::prelude::*;
use regex_syntax::hir::{Class, HirKind};

use super::super::unicode_v1::{LOWER, WORD};
use super::*;

/// The classes of the standard's current version: letters and decimal digits.
fn current_word_ranges() -> Vec<(u32, u32)> {
    let hir = regex_syntax::parse(r"[\p{L}\p{Nd}_]").unwrap();
    let HirKind::Class(Class::Unicode(class)) = hir.kind() else { panic!("a class") };
    class.ranges().iter().map(|r| (u32::from(r.start()), u32::from(r.end()))).collect()
}

/// Lower-case letters of today's standard library, as ranges of equal distance.
fn current_lower_ranges() -> Vec<(u32, u32, u32, i32)> {
    let mut out: Vec<(u32, u32, u32, i32)> = Vec::new();
    for c in (0x80..=u32::from(char::MAX)).filter_map(char::from_u32) {
        let lower = c.to_lowercase().next().unwrap();
        if lower == c {
            continue;
        }
        let n = u32::from(c);
        let delta = u32::from(lower).cast_signed() - n.cast_signed();
        match out.last_mut() {
            Some((first, last, step, d))
                if *d == delta && (first == last || n - *last == *step) && n - *last <= 2 =>
            {
                *step = n - *last;
                *last = n;
            }
            _ => out.push((n, n, 1, delta)),
        }
    }
    out
}

/// Prints the tables; run by hand to make a new version of them, never to change one.
#[test]
#[ignore = "prints the source of the tables"]
fn print_tables() {
    println!("pub(super) static WORD: [(u32, u32); {}] = [", current_word_ranges().len());
    for (first, last) in current_word_ranges() {
        println!("    ({first:#x}, {last:#x}),");
    }
    println!("];\npub(super) static LOWER: [LowerRange; {}] = [", current_lower_ranges().len());
    for (first, last, step, delta) in current_lower_ranges() {
        println!("    lower({first:#x}, {last:#x}, {step}, {delta}),");
    }
    println!("];");
}

#[test]
fn tables_are_sorted_and_frozen() {
    assert!(WORD.iter().all(|(first, last)| first <= last));
    assert!(WORD.is_sorted_by(|a, b| a.1 + 1 < b.0), "ranges are apart");
    assert!(LOWER.iter().all(|r| r.first <= r.last && r.step > 0));
    assert!(LOWER.is_sorted_by(|a, b| a.last < b.first));
    let mut bytes = Vec::new();
    for (first, last) in WORD {
        bytes.extend_from_slice(&first.to_le_bytes());
        bytes.extend_from_slice(&last.to_le_bytes());
    }
    for r in &LOWER {
        for n in [r.first, r.last, u32::from(r.step), r.delta.cast_unsigned()] {
            bytes.extend_from_slice(&n.to_le_bytes());
        }
    }
    // Filters on disk depend on these tables: a change needs a new id, not a new number here.
    assert_eq!(format!("{:016x}", xxh3_64(&bytes)), TABLES_V1);
}

const TABLES_V1: &str = "44a1295fccc36267";

#[test]
fn character_classes() {
    let word = "a_9\u{e4}\u{df}\u{130}\u{4e2d}\u{3042}\u{663}\u{1d400}\u{2b0}\u{5d0}";
    for c in word.chars() {
        assert!(is_word_char(c), "{c:?}");
    }
    // A combining mark, numero, one half, superscript two, a roman numeral, a crab, a dash.
    for c in " -.\u{301}\u{2116}\u{bd}\u{b2}\u{2160}\u{1f980}\u{2014}\u{93e}".chars() {
        assert!(!is_word_char(c), "{c:?}");
    }
}

#[test]
fn lower_case_is_one_character() {
    for (upper, lower) in [
        ('A', 'a'),
        ('\u{130}', 'i'),
        ('\u{df}', '\u{df}'),
        ('\u{c4}', '\u{e4}'),
        ('\u{3a3}', '\u{3c3}'),
        ('\u{100}', '\u{101}'),
        ('\u{101}', '\u{101}'),
        ('\u{10400}', '\u{10428}'),
        ('\u{212a}', 'k'),
    ] {
        assert_eq!(lower_char(upper), lower);
    }
    let mut out = Vec::new();
    lower_into(b"\xffAB\xc3\x84\xc3", &mut out);
    assert_eq!(out, b"\xffab\xc3\xa4\xc3");
}

fn words(text: &[u8]) -> Vec<(usize, &[u8])> {
    let mut out = Vec::new();
    for_each_word(text, |at, word| out.push((at, word)));
    out
}

fn naive_words(text: &[u8]) -> Vec<(usize, &[u8])> {
    let mut out: Vec<(usize, usize)> = Vec::new();
    let mut at = 0;
    for chunk in text.utf8_chunks() {
        for c in chunk.valid().chars() {
            if is_word_char(c) {
                match out.last_mut() {
                    Some((_, end)) if *end == at => *end += c.len_utf8(),
                    _ => out.push((at, at + c.len_utf8())),
                }
            }
            at += c.len_utf8();
        }
        at += chunk.invalid().len();
    }
    out.into_iter().map(|(a, b)| (a, &text[a..b])).collect()
}

fn texts() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        "[a-z_0-9 .:-]{0,8}".prop_map(String::into_bytes),
        any::<char>().prop_map(|c| c.to_string().into_bytes()),
        prop::sample::select(vec!['\u{e4}', '\u{301}', '\u{4e2d}', '\u{bd}', '\u{1d400}'])
            .prop_map(|c| c.to_string().into_bytes()),
        prop::collection::vec(any::<u8>(), 0..3),
    ];
    prop::collection::vec(piece, 0..8).prop_map(|p| p.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]
    #[test]
    fn words_are_those_of_the_naive_tokenizer(text in texts()) {
        prop_assert_eq!(words(&text), naive_words(&text));
    }

    #[test]
    fn boundaries_agree_with_words(text in texts()) {
        let words = naive_words(&text);
        for at in 0..=text.len() {
            let starts = words.iter().any(|(a, w)| *a == at && !w.is_empty());
            if starts {
                prop_assert!(word_after(&text, at) && !word_before(&text, at));
            }
            if words.iter().any(|(a, w)| a + w.len() == at) {
                prop_assert!(word_before(&text, at) && !word_after(&text, at));
            }
            let inside = words.iter().any(|(a, w)| *a <= at && at <= a + w.len());
            if !inside {
                prop_assert!(!word_before(&text, at) && !word_after(&text, at));
            }
        }
        prop_assert!(!word_after(&text, text.len() + 1) && !word_before(&text, text.len() + 1));
    }

    #[test]
    fn a_text_that_matches_has_the_words_of_the_needle(
        left in texts(),
        needle in "[a-z\u{e4}\u{4e2d}\u{301}_. \u{0}-\u{10ffff}]{0,8}",
        right in texts(),
    ) {
        let needle = needle.into_bytes();
        let text = [left.as_slice(), &needle, &right].concat();
        let held: Vec<u64> = words(&text).iter().map(|(_, w)| word_hash(w)).collect();
        let (start, end) = (left.len(), left.len() + needle.len());
        // The conditions of phrases and prefixes.
        let left_ok = !word_after(&needle, 0) || !word_before(&text, start);
        let right_ok = !word_before(&needle, needle.len()) || !word_after(&text, end);
        let holds = |bounds| needle_words(&needle, bounds).iter().all(|(_, h)| held.contains(h));
        prop_assert!(holds(Bounds::Neither));
        prop_assert!(!left_ok || holds(Bounds::Start));
        prop_assert!(!(left_ok && right_ok) || holds(Bounds::Both));
    }
}

#[test]
fn needles_keep_the_words_whose_ends_are_known() {
    let n = |needle: &str, bounds| needle_words(needle.as_bytes(), bounds).len();
    assert_eq!(n("a b c", Bounds::Both), 3);
    assert_eq!(n("a b c", Bounds::Start), 2);
    assert_eq!(n("a b c", Bounds::Neither), 1);
    assert_eq!(n(" a b c ", Bounds::Neither), 3);
    assert_eq!(n("", Bounds::Both), 0);
    assert_eq!(n("took 123456 or 1234567", Bounds::Both), 3, "short numbers are in no filter");
}
