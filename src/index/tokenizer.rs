//! The words of a text.
//!
//! A word is a maximal run of word characters: letters, decimal digits and `_` of any script, by
//! the frozen tables of [`TOKENIZER_ID`](super::TOKENIZER_ID). Bytes that are not UTF-8 are no
//! word characters.

use xxhash_rust::xxh3::xxh3_64;

use super::unicode_v1::{LOWER, LowerRange, WORD, WORD_BMP};

/// What a byte says about the character it begins.
const SEPARATOR: u8 = 0;
const WORD_BYTE: u8 = 1;
const NON_ASCII: u8 = 2;

static CLASSES: [u8; 256] = classes();

const fn classes() -> [u8; 256] {
    let mut table = [SEPARATOR; 256];
    let mut b = 0u8;
    loop {
        let class = if b >= 0x80 {
            NON_ASCII
        } else if b.is_ascii_alphanumeric() || b == b'_' {
            WORD_BYTE
        } else {
            SEPARATOR
        };
        #[expect(clippy::indexing_slicing, reason = "a table of 256 entries, by a byte")]
        {
            table[b as usize] = class;
        }
        if b == 255 {
            return table;
        }
        b += 1;
    }
}

#[inline]
fn class(b: u8) -> u8 {
    CLASSES.get(usize::from(b)).copied().unwrap_or(SEPARATOR)
}

/// Whether `c` is a word character.
#[inline]
pub(crate) fn is_word_char(c: char) -> bool {
    let n = u32::from(c);
    match u8::try_from(n) {
        Ok(b) if b < 0x80 => class(b) == WORD_BYTE,
        _ if n < 0x1_0000 => {
            WORD_BMP.get(n as usize / 64).is_some_and(|word| word >> (n % 64) & 1 == 1)
        }
        _ => {
            let i = WORD.partition_point(|(_, last)| *last < n);
            WORD.get(i).is_some_and(|(first, _)| *first <= n)
        }
    }
}

/// The character at the start of `text` and its length; `None` if that is not UTF-8.
#[inline]
fn first_char(text: &[u8]) -> Option<(char, usize)> {
    let len = match text.first()? {
        0..0x80 => 1,
        0xc2..0xe0 => 2,
        0xe0..0xf0 => 3,
        0xf0..0xf5 => 4,
        _ => return None,
    };
    let c = std::str::from_utf8(text.get(..len)?).ok()?.chars().next()?;
    Some((c, len))
}

/// The length of the word character at the start of `text`; 0 if there is none.
#[inline]
fn word_char_len(text: &[u8]) -> usize {
    match text.first().map_or(SEPARATOR, |b| class(*b)) {
        SEPARATOR => 0,
        WORD_BYTE => 1,
        _ => first_char(text).map_or(0, |(c, len)| if is_word_char(c) { len } else { 0 }),
    }
}

/// Calls `f` for each word of `text` with its offset, in order.
#[inline]
pub(crate) fn for_each_word<'a>(text: &'a [u8], mut f: impl FnMut(usize, &'a [u8])) {
    let mut at = 0;
    while at < text.len() {
        let start = at;
        loop {
            let rest = text.get(at..).unwrap_or(&[]);
            at += rest.iter().take_while(|b| class(**b) == WORD_BYTE).count();
            match text.get(at) {
                Some(b) if class(*b) == NON_ASCII => {
                    let len = word_char_len(text.get(at..).unwrap_or(&[]));
                    if len == 0 {
                        break;
                    }
                    at += len;
                }
                _ => break,
            }
        }
        if at > start {
            f(start, text.get(start..at).unwrap_or(&[]));
        }
        // What stands at `at` is no word character: step over it, or over one byte of it, whose
        // rest cannot begin a character.
        at += 1;
        let rest = text.get(at..).unwrap_or(&[]);
        at += rest.iter().take_while(|b| class(**b) == SEPARATOR).count();
    }
}

/// The hash of a word, as filters hold it.
#[inline]
pub(crate) fn word_hash(word: &[u8]) -> u64 {
    xxh3_64(word)
}

/// Whether a word character ends at byte `at` of `text`.
#[inline]
pub(crate) fn word_before(text: &[u8], at: usize) -> bool {
    let Some(before) = text.get(..at) else { return false };
    match before.last().map_or(SEPARATOR, |b| class(*b)) {
        SEPARATOR => false,
        WORD_BYTE => true,
        _ => {
            let tail = before.get(before.len().saturating_sub(4)..).unwrap_or(&[]);
            let start = tail.iter().rposition(|b| b & 0xc0 != 0x80);
            let last = start.and_then(|s| tail.get(s..)).unwrap_or(&[]);
            first_char(last).is_some_and(|(c, len)| len == last.len() && is_word_char(c))
        }
    }
}

/// Whether a word character begins at byte `at` of `text`.
#[inline]
pub(crate) fn word_after(text: &[u8], at: usize) -> bool {
    text.get(at..).is_some_and(|rest| word_char_len(rest) > 0)
}

/// Classes of words and parts of them, each of which has filters of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum WordClass {
    /// No ASCII digit: there are few of them in a block, and most searches are for such.
    Plain = 0,
    /// What words with digits have between their digits.
    Pieces = 1,
    /// With an ASCII digit: ids, long numbers and what is like them.
    Digits = 2,
}

/// Something for each class of words.
pub(crate) type PerClass<T> = [T; 3];

impl WordClass {
    /// The class of a word; `None` for numbers of a few digits, which nearly every block has.
    #[inline]
    pub(crate) fn of(word: &[u8]) -> Option<WordClass> {
        let digits = word.iter().filter(|b| b.is_ascii_digit()).count();
        match digits {
            0 => Some(WordClass::Plain),
            n if n == word.len() && n <= SHORT_NUMBER => None,
            _ => Some(WordClass::Digits),
        }
    }
}

/// Numbers of at most so many digits are in no filter.
const SHORT_NUMBER: usize = 6;
/// Pieces of fewer characters are in no filter.
const SHORT_PIECE: usize = 3;

/// Calls `f` with each piece of a word with its offset: what stands between its digits, unless it
/// is too short, or consists of hex digits only: random ids have every such piece.
pub(crate) fn pieces<'a>(word: &'a [u8], mut f: impl FnMut(usize, &'a [u8])) {
    let mut start = 0;
    for piece in word.split(u8::is_ascii_digit) {
        if is_in_vocabulary(piece) {
            f(start, piece);
        }
        start += piece.len() + 1;
    }
}

/// Whether what stands between digits is one of the pieces that filters hold.
#[inline]
pub(crate) fn is_in_vocabulary(piece: &[u8]) -> bool {
    piece.len() >= SHORT_PIECE
        && !piece.iter().all(u8::is_ascii_hexdigit)
        && piece.iter().filter(|b| **b & 0xc0 != 0x80).count() >= SHORT_PIECE
}

/// The lower-case letter of `c`: always one character, by the frozen table of
/// [`FOLD_ID`](super::FOLD_ID).
#[inline]
pub(crate) fn lower_char(c: char) -> char {
    if c.is_ascii() {
        return c.to_ascii_lowercase();
    }
    let n = u32::from(c);
    let i = LOWER.partition_point(|r| r.last < n);
    match LOWER.get(i) {
        Some(LowerRange { first, step, delta, .. })
            if *first <= n && (n - first).is_multiple_of(u32::from(*step)) =>
        {
            n.checked_add_signed(*delta).and_then(char::from_u32).unwrap_or(c)
        }
        _ => c,
    }
}

/// Appends `text` with each character in lower case; bytes that are not UTF-8 stay.
pub(crate) fn lower_into(text: &[u8], out: &mut Vec<u8>) {
    if text.is_ascii() {
        out.extend(text.iter().map(u8::to_ascii_lowercase));
        return;
    }
    for chunk in text.utf8_chunks() {
        for c in chunk.valid().chars() {
            out.extend_from_slice(lower_char(c).encode_utf8(&mut [0; 4]).as_bytes());
        }
        out.extend_from_slice(chunk.invalid());
    }
}

#[cfg(test)]
mod tests;
