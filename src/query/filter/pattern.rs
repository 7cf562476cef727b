//! `pattern_match` and its anchored forms: literals with typed placeholders between them.
//!
//! Byte-exact, greedy, without backtracking inside one attempt; where the pattern may start
//! anywhere, a failed attempt is followed by one a byte later.

use memchr::memmem::Finder;

use super::chars::{first_char, is_word_char};
use crate::query::ast::{MatchAnchor, MatchPart, MatchPattern};

/// A pattern prepared for matching.
#[derive(Debug, Clone)]
pub(crate) struct PatternMatcher {
    anchor: MatchAnchor,
    parts: Vec<MatchPart>,
    /// Finds the literal with which the pattern starts, if it starts with one.
    first: Option<Finder<'static>>,
}

impl PatternMatcher {
    /// Prepares a pattern.
    pub(crate) fn new(pattern: &MatchPattern) -> PatternMatcher {
        let first = match pattern.parts.first() {
            Some(MatchPart::Literal(text)) => Some(Finder::new(text.as_bytes()).into_owned()),
            _ => None,
        };
        PatternMatcher { anchor: pattern.anchor, parts: pattern.parts.clone(), first }
    }

    /// The literals, all of which stand in every value that matches.
    pub(crate) fn literals(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|p| match p {
            MatchPart::Literal(text) => Some(text.as_str()),
            _ => None,
        })
    }

    /// Whether `value` matches.
    pub(crate) fn is_match(&self, value: &[u8]) -> bool {
        match self.anchor {
            MatchAnchor::Full => self.match_at(value, 0) == Some(value.len()),
            MatchAnchor::Start => self.match_at(value, 0).is_some(),
            MatchAnchor::Anywhere => self.any_start(value, |_| true),
            MatchAnchor::End => {
                self.parts.is_empty() || self.any_start(value, |end| end == value.len())
            }
        }
    }

    /// Whether some start gives an end that is accepted.
    fn any_start(&self, value: &[u8], accept: impl Fn(usize) -> bool) -> bool {
        let mut start = 0;
        while start <= value.len() {
            if let Some(first) = &self.first {
                match value.get(start..).and_then(|rest| first.find(rest)) {
                    Some(at) => start += at,
                    None => return false,
                }
            }
            if self.match_at(value, start).is_some_and(&accept) {
                return true;
            }
            start += 1;
        }
        false
    }

    /// The end of the match that begins at `start`.
    fn match_at(&self, value: &[u8], start: usize) -> Option<usize> {
        if let Some(first) = self.parts.first()
            && is_numeric(first)
            && !may_start_number(value, start)
        {
            return None;
        }
        let mut at = start;
        for part in &self.parts {
            at = match_part(part, value, at)?;
        }
        Some(at)
    }
}

fn is_numeric(part: &MatchPart) -> bool {
    !matches!(part, MatchPart::Literal(_) | MatchPart::Word)
}

fn match_part(part: &MatchPart, value: &[u8], at: usize) -> Option<usize> {
    match part {
        MatchPart::Literal(text) => literal(value, at, text.as_bytes()),
        MatchPart::Word => word(value, at),
        numbers => numbers_end(numbers, value, at, number),
    }
}

/// Where the number, or the group of numbers, ends for which a placeholder stands and which begins
/// at `at`; `number` says where a number ends.
pub(crate) fn numbers_end(
    part: &MatchPart,
    text: &[u8],
    at: usize,
    number: impl Fn(&[u8], usize) -> Option<usize> + Copy,
) -> Option<usize> {
    let numbers = |at, count, separator: &[u8]| {
        let first = number(text, at)?;
        (1..count).try_fold(first, |at, _| number(text, literal(text, at, separator)?))
    };
    let time = |at| {
        let end = numbers(at, 3, b":")?;
        let fraction = match text.get(end) {
            Some(b'.' | b',') => number(text, end + 1),
            _ => None,
        };
        Some(fraction.unwrap_or(end))
    };
    let date = |at| numbers(at, 3, b"-").or_else(|| numbers(at, 3, b"/"));
    match part {
        MatchPart::Literal(_) | MatchPart::Word => None,
        MatchPart::Number => number(text, at),
        MatchPart::Uuid => numbers(at, 5, b"-"),
        MatchPart::Ip4 => numbers(at, 4, b"."),
        MatchPart::Time => time(at),
        MatchPart::Date => date(at),
        MatchPart::DateTime => {
            let separator = date(at)?;
            if !matches!(text.get(separator), Some(b'T' | b' ')) {
                return None;
            }
            let end = time(separator + 1)?;
            let zone = match text.get(end) {
                Some(b'Z') => Some(end + 1),
                Some(b'+' | b'-') => numbers(end + 1, 2, b":"),
                _ => None,
            };
            Some(zone.unwrap_or(end))
        }
    }
}

fn literal(value: &[u8], at: usize, text: &[u8]) -> Option<usize> {
    value.get(at..)?.starts_with(text).then_some(at + text.len())
}

/// A run of hex digits: all decimal, or of an even length of four at least; not followed by a
/// word byte other than a few letters of units and separators.
fn number(value: &[u8], at: usize) -> Option<usize> {
    let rest = value.get(at..)?;
    let len = rest.iter().take_while(|b| b.is_ascii_hexdigit()).count();
    let digits = rest.get(..len)?;
    let decimal = digits.iter().all(u8::is_ascii_digit);
    if len == 0 || !decimal && (len < 4 || len % 2 == 1) {
        return None;
    }
    match rest.get(len) {
        Some(b) if is_word_byte(*b) && !b"_TZsmhun".contains(b) => None,
        _ => Some(at + len),
    }
}

/// Whether a number may start at `at` for what stands before it.
fn may_start_number(value: &[u8], at: usize) -> bool {
    let before = at.checked_sub(1).and_then(|i| value.get(i));
    before.is_none_or(|b| !is_word_byte(*b) || b"_TXxvshm".contains(b))
}

fn is_word_byte(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b == b'_'
}

/// A word, possibly empty in front of another character, or one quoted string.
fn word(value: &[u8], at: usize) -> Option<usize> {
    let rest = value.get(at..)?;
    let &first = rest.first()?;
    if matches!(first, b'"' | b'\'' | b'`')
        && let Some(len) = quoted_len(rest, first)
    {
        return Some(at + len);
    }
    let mut end = at;
    while let Some((c, len)) = first_char(value.get(end..)?)
        && is_word_char(c)
    {
        end += len;
    }
    Some(end)
}

/// The length of the quoted string with which `text` starts.
fn quoted_len(text: &[u8], quote: u8) -> Option<usize> {
    let mut i = 1;
    loop {
        match *text.get(i)? {
            b if b == quote => return Some(i + 1),
            b'\\' if quote != b'`' => i += 2,
            _ => i += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(name: &str) -> MatchPart {
        match name {
            "<N>" => MatchPart::Number,
            "<UUID>" => MatchPart::Uuid,
            "<IP4>" => MatchPart::Ip4,
            "<TIME>" => MatchPart::Time,
            "<DATE>" => MatchPart::Date,
            "<DATETIME>" => MatchPart::DateTime,
            "<W>" => MatchPart::Word,
            text => MatchPart::Literal(text.to_owned()),
        }
    }

    fn hit(anchor: MatchAnchor, parts: &[&str], value: &str) -> bool {
        let pattern = MatchPattern {
            source: parts.concat(),
            anchor,
            parts: parts.iter().map(|p| part(p)).collect(),
        };
        PatternMatcher::new(&pattern).is_match(value.as_bytes())
    }

    #[test]
    fn anywhere() {
        let any = |parts: &[&str], value| hit(MatchAnchor::Anywhere, parts, value);
        assert!(any(&["id=", "<N>", ","], "x id=12, y"));
        assert!(!any(&["id=", "<N>", ","], "id=12.5,"));
        assert!(any(&["id=", "<N>", ","], "id=1.5, id=12,"));
        assert!(any(&["<N>", "ms"], "took12ms 15ms"));
        assert!(!any(&["<N>", "ms"], "took12ms"));
        assert!(any(&["<N>"], "x12"));
        assert!(!any(&["<N>"], "q12"));
        assert!(!any(&["<N>"], "abc"));
        assert!(any(&["<N>"], "abcd"));
        assert!(any(&["<TIME>"], "at 99:99:99,5 "));
        assert!(any(&["<DATETIME>"], "2024/01/02 03:04:05.6+01:00"));
        assert!(any(&["<UUID>"], "2edfed59-3e98-4073-bbb2-28d321ca71a7"));
        assert!(any(&["a", "<W>", "-b"], "xa-b"));
        assert!(!any(&["a", "<W>"], "a"));
        assert!(any(&["=", "<W>", ";"], "k=\"a \\\" b\";"));
        assert!(any(&[], ""));
    }

    #[test]
    fn anchored() {
        assert!(hit(MatchAnchor::Full, &["<IP4>", ":", "<N>"], "1.2.3.4:80"));
        assert!(!hit(MatchAnchor::Full, &["<IP4>", ":", "<N>"], "a 1.2.3.4:80"));
        assert!(!hit(MatchAnchor::Full, &["<IP4>"], "1.2.3.4 "));
        assert!(hit(MatchAnchor::End, &["took ", "<N>", "ms"], "a took 1ms took 22ms"));
        assert!(!hit(MatchAnchor::End, &["took ", "<N>", "ms"], "took 22ms."));
        assert!(hit(MatchAnchor::End, &[], "x"));
        assert!(hit(MatchAnchor::Start, &["a", "<N>"], "a1 b"));
        assert!(!hit(MatchAnchor::Start, &["a", "<N>"], "ba1"));
    }
}
