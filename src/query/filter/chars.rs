//! Character classes of text filters over byte strings that are normally, but not surely, UTF-8.

use std::sync::OnceLock;

/// Whether `c` belongs to a word: a letter, a decimal digit of any script, or `_`.
///
/// Combining marks, other numbers such as `\u{bd}` and symbols do not.
pub(crate) fn is_word_char(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_alphanumeric() || c == '_';
    }
    let ranges = word_ranges();
    let i = ranges.partition_point(|&(_, end)| end < c);
    ranges.get(i).is_some_and(|&(start, _)| start <= c)
}

/// The ranges of `[\p{L}\p{Nd}_]`, sorted; a constant of the program, made at first use.
fn word_ranges() -> &'static [(char, char)] {
    static RANGES: OnceLock<Vec<(char, char)>> = OnceLock::new();
    RANGES.get_or_init(|| {
        let hir = regex_syntax::parse(r"[\p{L}\p{Nd}_]");
        match hir.as_ref().map(|h| h.kind()) {
            Ok(regex_syntax::hir::HirKind::Class(regex_syntax::hir::Class::Unicode(class))) => {
                class.ranges().iter().map(|r| (r.start(), r.end())).collect()
            }
            _ => Vec::new(),
        }
    })
}

/// The first character of `text` and its length; `None` at the end or at a byte that starts no
/// valid character.
pub(crate) fn first_char(text: &[u8]) -> Option<(char, usize)> {
    let &first = text.first()?;
    if first.is_ascii() {
        return Some((char::from(first), 1));
    }
    let len = match first {
        0xc2..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf4 => 4,
        _ => return None,
    };
    let c = std::str::from_utf8(text.get(..len)?).ok()?.chars().next()?;
    Some((c, len))
}

/// The last character of `text`; `None` at the start or behind a byte that ends no valid one.
pub(crate) fn last_char(text: &[u8]) -> Option<char> {
    let &last = text.last()?;
    if last.is_ascii() {
        return Some(char::from(last));
    }
    for len in 2..=4 {
        let start = text.len().checked_sub(len)?;
        let tail = text.get(start..)?;
        if !is_continuation(*tail.first()?) {
            return std::str::from_utf8(tail).ok()?.chars().next();
        }
    }
    None
}

/// Whether `text` starts with a word character.
pub(crate) fn starts_with_word_char(text: &[u8]) -> bool {
    first_char(text).is_some_and(|(c, _)| is_word_char(c))
}

/// Whether `text` ends with a word character.
pub(crate) fn ends_with_word_char(text: &[u8]) -> bool {
    last_char(text).is_some_and(is_word_char)
}

/// Whether `b` continues a UTF-8 character.
pub(crate) fn is_continuation(b: u8) -> bool {
    b & 0xc0 == 0x80
}

/// The number of characters; bytes that are not UTF-8 count unless they look like continuations.
pub(crate) fn char_count(text: &[u8]) -> usize {
    text.iter().filter(|&&b| !is_continuation(b)).count()
}

/// The one-to-one lower case of a character: never more than one character.
pub(crate) fn lower_char(c: char) -> char {
    if c.is_ascii() { c.to_ascii_lowercase() } else { c.to_lowercase().next().unwrap_or(c) }
}

/// Appends `text` in lower case, character by character; invalid bytes stay as they are.
pub(crate) fn push_lower(text: &[u8], out: &mut Vec<u8>) {
    if text.is_ascii() {
        let from = out.len();
        out.extend_from_slice(text);
        if let Some(new) = out.get_mut(from..) {
            new.make_ascii_lowercase();
        }
        return;
    }
    for chunk in text.utf8_chunks() {
        for c in chunk.valid().chars() {
            let mut buffer = [0; 4];
            out.extend_from_slice(lower_char(c).encode_utf8(&mut buffer).as_bytes());
        }
        out.extend_from_slice(chunk.invalid());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_follow_letters_and_decimal_digits() {
        for c in ['a', 'Z', '0', '_', '\u{e4}', '\u{416}', '\u{4e2d}', '\u{663}', '\u{ff11}'] {
            assert!(is_word_char(c), "{c}");
        }
        for c in ['-', ' ', '.', '\u{301}', '\u{2116}', '\u{bd}', '\u{b2}', '\u{1f600}'] {
            assert!(!is_word_char(c), "{c}");
        }
    }

    #[test]
    fn last_char_undoes_encoding() {
        for c in ['a', '\u{e4}', '\u{4e2d}', '\u{1f600}'] {
            let text = format!("x{c}");
            assert_eq!(last_char(text.as_bytes()), Some(c));
            assert_eq!(first_char(&text.as_bytes()[1..]), Some((c, c.len_utf8())));
        }
        assert_eq!(last_char(b"\x80\x80\x80\x80\x80"), None);
        assert_eq!(last_char(b"a\xff"), None);
        assert_eq!(first_char(b"\xff"), None);
        assert_eq!(first_char(b"\xe4"), None);
    }

    #[test]
    fn lower_case_is_one_to_one() {
        let mut out = Vec::new();
        push_lower("\u{130}\u{df}\u{3a3}K\u{212a}\u{1e9e}".as_bytes(), &mut out);
        assert_eq!(out, "i\u{df}\u{3c3}kk\u{df}".as_bytes());
        out.clear();
        push_lower(b"A\xffB\xc3", &mut out);
        assert_eq!(out, b"a\xffb\xc3");
    }
}
