//! `pattern_match` and its anchored forms.

use super::extract::unquoted;
use super::filter::is_word;
use crate::query::ast::{MatchAnchor, MatchPart, MatchPattern};

/// Whether the pattern fits the text.
pub(super) fn fits(pattern: &MatchPattern, text: &str) -> bool {
    let ends = |from: usize| parts_end(&pattern.parts, text, from);
    // An attempt may begin at any byte; literals never match inside a character.
    let starts = (0..=text.len()).filter(|&at| text.is_char_boundary(at));
    match pattern.anchor {
        MatchAnchor::Full => ends(0) == Some(text.len()),
        MatchAnchor::Start => ends(0).is_some(),
        MatchAnchor::Anywhere => starts.into_iter().any(|at| ends(at).is_some()),
        MatchAnchor::End if pattern.parts.is_empty() => true,
        MatchAnchor::End => starts.into_iter().any(|at| ends(at) == Some(text.len())),
    }
}

/// Where the parts end that begin at `from`.
fn parts_end(parts: &[MatchPart], text: &str, from: usize) -> Option<usize> {
    let is_numeric = |part: &MatchPart| !matches!(part, MatchPart::Literal(_) | MatchPart::Word);
    if parts.first().is_some_and(is_numeric) && !may_begin_number(&text[..from]) {
        return None;
    }
    parts.iter().try_fold(from, |at, part| part_end(part, text, at))
}

fn may_begin_number(before: &str) -> bool {
    before.chars().next_back().is_none_or(|c| !is_word(c) || "_TXxvshm".contains(c))
}

fn part_end(part: &MatchPart, text: &str, at: usize) -> Option<usize> {
    let joined = |count: usize, separators: &[&str]| {
        separators.iter().find_map(|separator| {
            let mut at = number(text, at)?;
            for _ in 1..count {
                at = number(text, literal(text, at, separator)?)?;
            }
            Some(at)
        })
    };
    match part {
        MatchPart::Literal(wanted) => literal(text, at, wanted),
        MatchPart::Number => number(text, at),
        MatchPart::Uuid => joined(5, &["-"]),
        MatchPart::Ip4 => joined(4, &["."]),
        MatchPart::Time => time(text, at),
        MatchPart::Date => joined(3, &["-", "/"]),
        MatchPart::DateTime => {
            let at = part_end(&MatchPart::Date, text, at)?;
            let at = literal(text, at, "T").or_else(|| literal(text, at, " "))?;
            let at = time(text, at)?;
            if let Some(zoned) = literal(text, at, "Z") {
                return Some(zoned);
            }
            let zone = || {
                let at = literal(text, at, "+").or_else(|| literal(text, at, "-"))?;
                number(text, literal(text, number(text, at)?, ":")?)
            };
            Some(zone().unwrap_or(at))
        }
        MatchPart::Word => {
            if let Some((_, tail)) = unquoted(&text[at..]) {
                return Some(text.len() - tail.len());
            }
            let rest = &text[at..];
            let end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
            (!rest.is_empty()).then_some(at + end)
        }
    }
}

fn time(text: &str, at: usize) -> Option<usize> {
    let at = number(text, at)?;
    let at = number(text, literal(text, at, ":")?)?;
    let at = number(text, literal(text, at, ":")?)?;
    let fraction = |mark| number(text, literal(text, at, mark)?);
    Some(fraction(".").or_else(|| fraction(",")).unwrap_or(at))
}

fn literal(text: &str, at: usize, wanted: &str) -> Option<usize> {
    text[at..].starts_with(wanted).then_some(at + wanted.len())
}

/// A run of decimal digits, or an even number of at least four hex digits with a letter among
/// them, that no other letter or digit follows than one of those that units and times begin with.
fn number(text: &str, at: usize) -> Option<usize> {
    let rest = &text[at..];
    let len = rest.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(rest.len());
    let decimal = rest[..len].bytes().all(|b| b.is_ascii_digit());
    let good = len > 0 && (decimal || (len >= 4 && len.is_multiple_of(2)));
    let next = rest[len..].chars().next();
    let ends = next.is_none_or(|c| !is_word(c) || "_TZsmhun".contains(c));
    (good && ends).then_some(at + len)
}
