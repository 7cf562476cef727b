//! Words against a naive tokenizer, and the tables against what froze them.
#![allow(clippy::cast_possible_truncation)]

use proptest::prelude::*;
use regex_syntax::hir::{Class, HirKind};

use super::super::needle::{Needle, WordNeed, WordPart};
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
        let (start, end) = (left.len(), left.len() + needle.len());
        // The conditions of phrases and prefixes.
        let left_ok = !word_after(&needle, 0) || !word_before(&text, start);
        let right_ok = !word_before(&needle, needle.len()) || !word_after(&text, end);
        let mut lower = Vec::new();
        lower_into(&text, &mut lower);
        let mut folded = Vec::new();
        lower_into(&needle, &mut folded);
        for bounds in [(false, false), (left_ok, false), (false, right_ok), (left_ok, right_ok)] {
            let needle = Needle { text: &needle, bounds, fold: false };
            prop_assert!(needle.needs().iter().all(|need| has(&text, need)));
            let folded = Needle { text: &folded, bounds, fold: true };
            prop_assert!(folded.needs().iter().all(|need| has(&lower, need)));
        }
        // Needles cut out of a text anywhere.
        for (from, to) in [(start, end), (start / 2, end), (start, end + right.len() / 2)] {
            let needle = Needle { text: &text[from..to], bounds: (false, false), fold: false };
            prop_assert!(needle.needs().iter().all(|need| has(&text, need)));
            prop_assert!(may_touch_digits(&needle, &text, from..to));
        }
    }
}

/// Whether a text has what a needle needs.
fn has(text: &[u8], need: &WordNeed<'_>) -> bool {
    let mut found = false;
    for_each_word(text, |_, word| {
        let plain = WordClass::of(word) == Some(WordClass::Plain);
        let piece = |part| {
            let mut found = false;
            pieces(word, |_, piece| found |= !plain && stands(part, piece));
            found
        };
        found |= match need {
            WordNeed::Plain(part) => plain && stands(part, word),
            WordNeed::Piece(part) => piece(part),
            WordNeed::Either(part) => plain && stands(part, word) || piece(part),
            WordNeed::Digits(hash) => word_hash(word) == *hash,
        };
    });
    found
}

fn stands(part: &WordPart<'_>, word: &[u8]) -> bool {
    word.windows(part.bytes.len()).enumerate().any(|(at, window)| {
        let end = at + window.len() == word.len();
        window == part.bytes && (part.open.0 || at == 0) && (part.open.1 || end)
    })
}

/// Whether a needle that stands at `range` may, as it says, take part in the words with digits in
/// which it does.
fn may_touch_digits(needle: &Needle<'_>, text: &[u8], range: std::ops::Range<usize>) -> bool {
    let Some(parts) = needle.in_digit_words() else { return true };
    words(text).iter().all(|(at, word)| {
        let apart = range.is_empty() || at + word.len() <= range.start || *at >= range.end;
        let mut found = apart || WordClass::of(word) == Some(WordClass::Plain);
        pieces(word, |_, piece| found |= parts.iter().any(|part| stands(part, piece)));
        found
    })
}

#[test]
fn needles_keep_the_words_whose_ends_are_known() {
    let n =
        |needle: &str, bounds, fold| Needle { text: needle.as_bytes(), bounds, fold }.needs().len();
    assert_eq!(n("a b c", (true, true), false), 3);
    assert_eq!(n("a b c", (true, false), false), 2);
    assert_eq!(n("a b c", (false, false), false), 1);
    assert_eq!(n(" a b c ", (false, false), false), 3);
    assert_eq!(n("", (true, true), false), 0);
    assert_eq!(n("took 123456 or 1234567", (true, true), false), 3, "short numbers");
    assert_eq!(n("xyz b abc", (false, false), false), 2, "the start of a word, hex digits");
    assert_eq!(n("web12xyz3 q", (false, true), false), 3, "pieces of words with digits");
    assert_eq!((n("web12", (true, true), false), n("web12", (true, true), true)), (1, 1));
}

#[test]
fn case_makes_no_words() {
    for c in (0..=u32::from(char::MAX)).filter_map(char::from_u32) {
        // The other way round it does not hold: the tables are of different ages.
        assert!(!is_word_char(c) || is_word_char(lower_char(c)), "{c:?}");
        assert!(c.is_ascii() || !lower_char(c).is_ascii() || is_word_char(c), "{c:?}");
        assert_eq!(c.is_ascii_digit(), lower_char(c).is_ascii_digit(), "{c:?}");
        assert!(c.is_ascii() || !lower_char(c).is_ascii_hexdigit(), "{c:?}");
    }
}
