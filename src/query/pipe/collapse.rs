//! `collapse_nums`: numbers replaced by `<N>`.

use super::text::is_word_char;

/// Appends the text with its numbers replaced. A number is a run of hex digits, all decimal or an
/// even count of at least four, that stands apart from words but for a few letters around it.
pub(crate) fn collapse_nums(value: &[u8], out: &mut Vec<u8>) {
    let mut done = 0;
    let mut at = 0;
    while let Some(start) = find_start(value, at) {
        let run = value.get(start..).unwrap_or(&[]);
        let len = run.iter().take_while(|b| is(**b, HEX)).count();
        let end = start + len;
        at = end;
        let run = run.get(..len).unwrap_or(&[]);
        if (len >= HEX_MIN && len.is_multiple_of(2) || run.iter().all(u8::is_ascii_digit))
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

/// The fewest hex digits that are a number if not all are decimal.
const HEX_MIN: usize = 4;

const DIGIT: u8 = 1;
const HEX: u8 = 2;
/// No hex digit, and a number may stand behind it; of a character that is not ASCII the last byte
/// does not tell.
const BEFORE: u8 = 4;

/// What each byte is.
const CLASSES: [u8; 256] = {
    let mut classes = [BEFORE; 256];
    let mut b = 0u8;
    while b < 128 {
        #[expect(clippy::indexing_slicing, reason = "an array of 256, indexed by a byte")]
        let to = &mut classes[b as usize];
        *to = match b {
            b'0'..=b'9' => DIGIT | HEX,
            b'a'..=b'f' | b'A'..=b'F' => HEX,
            b'T' | b'X' | b'x' | b'v' | b's' | b'h' | b'm' => BEFORE,
            b'g'..=b'z' | b'G'..=b'Z' | b'_' => 0,
            _ => BEFORE,
        };
        b += 1;
    }
    classes
};

#[inline]
fn is(b: u8, class: u8) -> bool {
    CLASSES.get(usize::from(b)).is_some_and(|classes| classes & class != 0)
}

/// Bytes that are looked at together.
pub(super) const CHUNK: usize = 32;
const WITH_NEXT: usize = CHUNK + HEX_MIN - 1;

/// Whether a number may begin in the first [`CHUNK`] bytes; written so that it compiles to
/// operations on many bytes at once.
#[inline]
fn may_start_number(chunk: &[u8; WITH_NEXT]) -> bool {
    let digit = |b: u8| u8::from(b.wrapping_sub(b'0') < 10);
    let hex = chunk.map(|b| digit(b) | u8::from((b | 0x20).wrapping_sub(b'a') < 6));
    let mut found = [0u8; CHUNK];
    for ((to, hex), b) in found.iter_mut().zip(hex.array_windows::<HEX_MIN>()).zip(chunk) {
        let [w, x, y, z] = hex;
        *to = digit(*b) | w & x & y & z;
    }
    found.iter().fold(0, |any, b| any | b) != 0
}

/// A place from `at` on before which, behind `at`, no number begins; text is passed over in steps.
pub(super) fn pass_over(value: &[u8], mut at: usize) -> usize {
    let chunk = |at: usize| value.get(at..)?.first_chunk::<WITH_NEXT>();
    while chunk(at).is_some_and(|chunk| !may_start_number(chunk)) {
        at += CHUNK;
    }
    at
}

/// Where, from `at` on, a run of hex digits begins that may be a number. Most runs are of letters,
/// within words or short.
fn find_start(value: &[u8], mut at: usize) -> Option<usize> {
    loop {
        at = pass_over(value, at);
        let rest = value.get(at..).filter(|rest| !rest.is_empty())?;
        let before = at.checked_sub(1).and_then(|at| value.get(at));
        let mut is_apart = before.is_none_or(|b| is(*b, BEFORE));
        for (i, b) in rest.iter().take(CHUNK).enumerate() {
            if is_apart && is(*b, HEX) {
                let long = rest.get(i..i + HEX_MIN);
                let is_long = || long.is_some_and(|run| run.iter().all(|b| is(*b, HEX)));
                if is(*b, DIGIT) || is_long() {
                    return Some(at + i);
                }
            }
            is_apart = is(*b, BEFORE);
        }
        at += CHUNK;
    }
}

/// Whether what ends here lets a number follow, the last byte being one that may.
fn starts_apart(before: &[u8]) -> bool {
    if before.last().is_none_or(u8::is_ascii) {
        return true;
    }
    let start = before.len().saturating_sub(4);
    let tail = String::from_utf8_lossy(before.get(start..).unwrap_or(&[]));
    !tail.chars().next_back().is_some_and(is_word_char)
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
