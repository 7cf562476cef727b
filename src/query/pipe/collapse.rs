//! `collapse_nums`: numbers replaced by `<N>`.

use super::text::is_word_char;

/// Appends the text with its numbers replaced. A number is a run of hex digits, all decimal or an
/// even count of at least four, that stands apart from words but for a few letters around it.
pub(crate) fn collapse_nums(value: &[u8], out: &mut Vec<u8>) {
    let mut done = 0;
    let mut at = 0;
    while let Some(start) = find_hex(value, at) {
        let run = value.get(start..).unwrap_or(&[]);
        let len = run.iter().take_while(|b| b.is_ascii_hexdigit()).count();
        let end = start + len;
        at = end;
        let run = run.get(..len).unwrap_or(&[]);
        let decimal = run.iter().all(u8::is_ascii_digit);
        if (decimal || len >= 4 && len.is_multiple_of(2))
            && starts_apart(value.get(..start).unwrap_or(&[]))
            && ends_apart(value.get(end..).unwrap_or(&[]))
        {
            out.extend_from_slice(value.get(done..start).unwrap_or(&[]));
            out.extend_from_slice(b"<N>");
            done = end;
        }
    }
    out.extend_from_slice(value.get(done..).unwrap_or(&[]));
}

fn find_hex(value: &[u8], at: usize) -> Option<usize> {
    value.get(at..)?.iter().position(u8::is_ascii_hexdigit).map(|i| at + i)
}

fn starts_apart(before: &[u8]) -> bool {
    match before.last() {
        None => true,
        Some(b) if b.is_ascii() => {
            matches!(b, b'T' | b'X' | b'x' | b'v' | b's' | b'h' | b'm')
                || !b.is_ascii_alphanumeric() && *b != b'_'
        }
        Some(_) => {
            let start = before.len().saturating_sub(4);
            let tail = String::from_utf8_lossy(before.get(start..).unwrap_or(&[]));
            !tail.chars().next_back().is_some_and(is_word_char)
        }
    }
}

fn ends_apart(after: &[u8]) -> bool {
    match after.first() {
        None => true,
        Some(b) if b.is_ascii() => {
            matches!(b, b'T' | b'Z' | b's' | b'm' | b'h' | b'u' | b'n')
                || !b.is_ascii_alphanumeric() && *b != b'_'
        }
        Some(_) => {
            let head = String::from_utf8_lossy(after.get(..after.len().min(4)).unwrap_or(&[]));
            head.chars()
                .next()
                .is_none_or(|c| matches!(c, '\u{b5}' | '\u{3bc}') || !is_word_char(c))
        }
    }
}

/// Groups of numbers and what they become, in this order.
const SHAPES: [(&str, &str); 12] = [
    ("<N>-<N>-<N>-<N>-<N>", "<UUID>"),
    ("<N>.<N>.<N>.<N>", "<IP4>"),
    ("<N>:<N>:<N>", "<TIME>"),
    ("<TIME>.<N>", "<TIME>"),
    ("<TIME>,<N>", "<TIME>"),
    ("<N>-<N>-<N>", "<DATE>"),
    ("<N>/<N>/<N>", "<DATE>"),
    ("<DATE>T<TIME>", "<DATETIME>"),
    ("<DATE> <TIME>", "<DATETIME>"),
    ("<DATETIME>Z", "<DATETIME>"),
    ("<DATETIME>+<N>:<N>", "<DATETIME>"),
    ("<DATETIME>-<N>:<N>", "<DATETIME>"),
];

/// Appends the text with its numbers replaced and groups of numbers named.
pub(crate) fn prettify(value: &[u8], out: &mut Vec<u8>) {
    let mut text = Vec::with_capacity(value.len());
    collapse_nums(value, &mut text);
    name_groups(&text, out);
}

/// Appends the text, whose numbers are replaced, with groups of them named.
pub(crate) fn name_groups(collapsed: &[u8], out: &mut Vec<u8>) {
    let mut text = collapsed.to_vec();
    for (shape, name) in SHAPES {
        if memchr::memmem::find(&text, shape.as_bytes()).is_some() {
            text = replaced(&text, shape.as_bytes(), name.as_bytes());
        }
    }
    out.extend_from_slice(&text);
}

fn replaced(text: &[u8], old: &[u8], new: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut start = 0;
    for at in memchr::memmem::find_iter(text, old) {
        out.extend_from_slice(text.get(start..at).unwrap_or(&[]));
        out.extend_from_slice(new);
        start = at + old.len();
    }
    out.extend_from_slice(text.get(start..).unwrap_or(&[]));
    out
}
