use proptest::prelude::*;

use std::sync::Arc;

use super::super::coded::{CodedRows, RowNumbers, apply};
use super::super::set::{PhraseSet, TextSet};
use super::*;
use crate::codec::Strip;
use crate::codec::template::testing::{Columns, columns_of, lines, strips, text};
use crate::index::tokenizer::{WordClass, for_each_word, lower_into, pieces};
use crate::query::filter::number_range::NumberRange;
use crate::query::filter::predicate::ByteRange;
use crate::query::regex::Regex;
use crate::record::Quantity;

/// Counts how often each verdict was given, and compares with the definition.
fn check(predicate: &ValuePredicate, strips: &[Strip], lines: &[String]) -> [usize; 3] {
    let mut rows = lines.iter();
    let mut given = [0; 3];
    for strip in strips {
        let Strip::Templates(templates) = strip else { panic!("no templates") };
        let verdicts = template_verdicts(predicate, templates.table(), &Lines(lines));
        let verdicts = Arc::new(verdicts);
        for id in templates.ids().ids() {
            given[match verdicts.of((*id).into()) {
                Verdict::None => 0,
                Verdict::All => 1,
                Verdict::Maybe => 2,
            }] += 1;
        }
        let mut selection = Bitmap::full(strip.len());
        let strip_rows = CodedRows {
            numbers: RowNumbers::Templates(templates.ids().clone()),
            verdicts,
            constants: vec![(3..5, lines[0].clone().into_bytes())],
        };
        let values = || Ok(Some(Arc::new(strip.clone())));
        apply(predicate, &strip_rows, values, &mut selection).unwrap();
        for row in 0..strip.len() {
            let line = match rows.next().unwrap() {
                _ if (3..5).contains(&row) => &lines[0],
                line => line,
            };
            let want = predicate.matches(line.as_bytes());
            assert_eq!(selection.get(row), want, "{predicate:?} on {line:?}");
        }
    }
    given
}

/// The sharpest answers that filters may give.
struct Lines<'a>(&'a [String]);

impl PageWords for Lines<'_> {
    fn may_touch_digits(&self, needle: &index::Needle<'_>) -> bool {
        may_touch_digits(needle, self.0)
    }

    fn may_have_piece(&self, _: &[u8], piece: &[u8]) -> bool {
        self.0.iter().any(|line| {
            line.split(|c: char| !c.is_ascii_alphanumeric()).any(|run| run.as_bytes() == piece)
        })
    }
}

/// Whether a piece of a word with digits has a part that the needle has in such words.
fn may_touch_digits(needle: &index::Needle<'_>, lines: &[String]) -> bool {
    let Some(parts) = needle.in_digit_words() else { return true };
    let stands = |part: &index::WordPart<'_>, piece: &[u8]| {
        let mut text = piece.to_vec();
        if part.fold {
            text.clear();
            lower_into(piece, &mut text);
        }
        text.windows(part.bytes.len()).enumerate().any(|(at, window)| {
            let end = at + window.len() == text.len();
            window == part.bytes && (part.open.0 || at == 0) && (part.open.1 || end)
        })
    };
    let mut found = false;
    for line in lines {
        for_each_word(line.as_bytes(), |_, word| {
            if WordClass::of(word) == Some(WordClass::Digits) {
                pieces(word, |_, piece| found |= parts.iter().any(|part| stands(part, piece)));
            }
        });
    }
    found
}

fn regex(pattern: &str) -> Option<ValuePredicate> {
    let regex = Regex::new(pattern).ok()?;
    let needs = regex.hir().map(|hir| Needs::regex(&hir)).unwrap_or_default();
    let literals = needs.literals();
    Some(ValuePredicate::Regex(RegexPredicate { regex, needs, literals }))
}

/// Every kind of predicate that has a needle, and a few others.
fn predicates(needle: &str, other: &str) -> Vec<ValuePredicate> {
    let (n, o) = (needle.as_bytes(), other.as_bytes());
    let mut all = vec![
        ValuePredicate::Empty,
        ValuePredicate::NonEmpty,
        ValuePredicate::Exact(Box::from(n)),
        ValuePredicate::StartsWith(Box::from(n)),
        ValuePredicate::OneOf(TextSet::new([n.to_vec(), o.to_vec()])),
        ValuePredicate::Length(n.len() as u64, n.len() as u64 + 3),
        ValuePredicate::Bytes(ByteRange { min: Some((Box::from(n), true)), max: None }),
        ValuePredicate::Numbers(Box::new(NumberRange::new(
            Quantity::parse(b"1").map(|n| (n, true)),
            Quantity::parse(b"500").map(|n| (n, false)),
        ))),
    ];
    if needle.is_empty() || other.is_empty() {
        return all;
    }
    all.extend([
        ValuePredicate::Phrase(Phrase::new(n)),
        ValuePredicate::Phrase(Phrase::prefix(n)),
        ValuePredicate::Phrase(Phrase::substring(n)),
        ValuePredicate::Folded(FoldedPhrase::new(n)),
        ValuePredicate::Folded(FoldedPhrase::prefix(n)),
        ValuePredicate::AllPhrases(vec![Phrase::new(n), Phrase::substring(o)]),
        ValuePredicate::AnyPhrase(PhraseSet::new([n, o])),
        ValuePredicate::Sequence(vec![Phrase::new(n), Phrase::new(o)]),
    ]);
    let (a, b) = (regex_syntax::escape(needle), regex_syntax::escape(other));
    let patterns =
        [a.clone(), format!("{a}.*{b}"), format!("({a}|{b})x?"), format!("^{a}|\\b{b}\\b")];
    all.extend(patterns.iter().filter_map(|p| regex(p)));
    all
}

/// A piece of a line, by its characters.
fn piece(lines: &[String], pick: (usize, usize, usize)) -> String {
    if lines.is_empty() {
        return "x".to_string();
    }
    let line: Vec<char> = lines[pick.0 % lines.len()].chars().collect();
    let from = pick.1 % (line.len() + 1);
    let len = pick.2 % 12;
    line[from..].iter().take(len).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]
    #[test]
    fn equals_the_definition(
        lines in lines(),
        needle in any::<(usize, usize, usize)>(),
        other in any::<(usize, usize, usize)>(),
        free in prop::sample::select(vec![
            "", "a", "1", "took", "ook 1", "7 ms", "conn", "id=", "id", "e", "0", "BEEF", "beef-",
            "x1", "1y", "v1ms", "v1", "port 4", ":", ":0", "done", "\u{e4}1", "\u{e4}", "000", "_1",
        ]),
        (upper, alone) in any::<(bool, bool)>(),
    ) {
        let values = text(&lines);
        let columns = if alone { Columns::new() } else { columns_of(&values) };
        let Some(strips) = strips(&values, &columns) else { return Ok(()) };
        let (mut needle, other) = (piece(&lines, needle), piece(&lines, other));
        if upper {
            needle = needle.to_uppercase();
        }
        for predicate in predicates(&needle, &other) {
            check(&predicate, &strips, &lines);
        }
        for predicate in predicates(free, &needle) {
            check(&predicate, &strips, &lines);
        }
    }
}

#[test]
fn words_are_decided_by_templates_alone() {
    let lines: Vec<String> = (0..3_000u32)
        .map(|i| match i % 3 {
            0 => format!("error 0x{:08x} while reading block {i}", i * 7919),
            1 => format!("took {}ms, errors{} seen, user web-{}", i % 90, i % 50, i % 7),
            _ => format!("id {:032x} done", u128::from(i) << 77 | 12345),
        })
        .collect();
    let strips = strips(&text(&lines), &Columns::new()).unwrap();
    let phrase = |needle: &str| ValuePredicate::Phrase(Phrase::new(needle.as_bytes()));
    let substring = |needle: &str| ValuePredicate::Phrase(Phrase::substring(needle.as_bytes()));
    let folded = |needle: &str| ValuePredicate::Folded(FoldedPhrase::new(needle.as_bytes()));
    for (predicate, want) in [
        (phrase("error"), [2_000, 1_000, 0]),
        (phrase("absent"), [3_000, 0, 0]),
        (phrase("reading block"), [2_000, 1_000, 0]),
        (folded("ERROR"), [2_000, 1_000, 0]),
        (substring("eading bl"), [2_000, 1_000, 0]),
        (substring("qzxjv"), [3_000, 0, 0]),
        (ValuePredicate::Phrase(Phrase::prefix(b"err")), [1_000, 2_000, 0]),
        (phrase("errors7"), [2_000, 0, 1_000]),
        (phrase("99"), [2_000, 0, 1_000]),
        (phrase("5000"), [3_000, 0, 0]),
        (regex("(while|during) read(ing)?").unwrap(), [2_000, 1_000, 0]),
        (regex("took \\d+ms").unwrap(), [2_000, 0, 1_000]),
    ] {
        assert_eq!(check(&predicate, &strips, &lines), want, "{predicate:?}");
    }
}
