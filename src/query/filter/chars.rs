//! Character classes of text filters over byte strings that are normally, but not surely, UTF-8.

pub(crate) use crate::index::tokenizer::{is_word_char, lower_char, lower_into as push_lower};
use crate::index::tokenizer::{word_after, word_before};

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

/// Whether `text` starts with a word character.
pub(crate) fn starts_with_word_char(text: &[u8]) -> bool {
    word_after(text, 0)
}

/// Whether `text` ends with a word character.
pub(crate) fn ends_with_word_char(text: &[u8]) -> bool {
    word_before(text, text.len())
}

/// Whether `b` continues a UTF-8 character.
pub(crate) fn is_continuation(b: u8) -> bool {
    b & 0xc0 == 0x80
}

/// The number of characters; bytes that are not UTF-8 count unless they look like continuations.
pub(crate) fn char_count(text: &[u8]) -> usize {
    text.iter().filter(|&&b| !is_continuation(b)).count()
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
    fn first_char_reads_what_is_there() {
        for c in ['a', '\u{e4}', '\u{4e2d}', '\u{1f600}'] {
            assert_eq!(first_char(format!("{c}x").as_bytes()), Some((c, c.len_utf8())));
        }
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
