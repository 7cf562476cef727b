//! The grammar of JSON on bytes: where strings, numbers and values end. Strict: whatever is
//! skipped is valid.
//!
//! The text must be valid UTF-8, which is checked beforehand; the scan only needs to find ASCII.

/// Where a text stops being JSON, and what is wrong there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SyntaxError {
    /// Offset in bytes.
    pub(crate) at: usize,
    /// What is wrong.
    pub(crate) what: &'static str,
}

pub(crate) fn error<T>(at: usize, what: &'static str) -> Result<T, SyntaxError> {
    Err(SyntaxError { at, what })
}

/// The end of white space that begins at `at`.
#[inline]
pub(crate) fn skip_space(json: &[u8], mut at: usize) -> usize {
    while let Some(b' ' | b'\t' | b'\n' | b'\r') = json.get(at) {
        at += 1;
    }
    at
}

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGHS: u64 = 0x8080_8080_8080_8080;

/// Marks the bytes of a word that end a run of plain string bytes: a quote, a backslash or a
/// control character. Only the lowest mark is sure to be right (borrows run upwards).
#[inline]
fn special(word: u64) -> u64 {
    let quote = word ^ (ONES * b'"' as u64);
    let backslash = word ^ (ONES * b'\\' as u64);
    let quotes = quote.wrapping_sub(ONES) & !quote;
    let backslashes = backslash.wrapping_sub(ONES) & !backslash;
    let controls = word.wrapping_sub(ONES * 0x20) & !word;
    (quotes | backslashes | controls) & HIGHS
}

/// The first quote, backslash or control character from `at` on, or the end of the text.
#[inline]
fn plain_end(json: &[u8], mut at: usize) -> usize {
    while let Some(chunk) = json.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
        let marks = special(u64::from_le_bytes(*chunk));
        if marks != 0 {
            return at + (marks.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    while let Some(b) = json.get(at) {
        if *b == b'"' || *b == b'\\' || *b < 0x20 {
            break;
        }
        at += 1;
    }
    at
}

/// The closing quote of a string whose first byte is at `at`, and whether it has escapes.
#[inline]
pub(crate) fn string_end(json: &[u8], at: usize) -> Result<(usize, bool), SyntaxError> {
    let end = plain_end(json, at);
    match json.get(end) {
        Some(b'"') => Ok((end, false)),
        _ => escaped_string_end(json, end),
    }
}

fn escaped_string_end(json: &[u8], mut at: usize) -> Result<(usize, bool), SyntaxError> {
    loop {
        at = plain_end(json, at);
        match json.get(at) {
            Some(b'"') => return Ok((at, true)),
            Some(b'\\') => at = escape_end(json, at)?,
            Some(_) => return error(at, "control character in a string"),
            None => return error(at, "string without end"),
        }
    }
}

/// The end of the escape at `at`.
fn escape_end(json: &[u8], at: usize) -> Result<usize, SyntaxError> {
    match json.get(at + 1) {
        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => Ok(at + 2),
        Some(b'u') => match code_unit(json, at) {
            Some(_) => Ok(at + 6),
            None => error(at, "invalid \\u escape"),
        },
        Some(_) => error(at, "invalid escape"),
        None => error(at, "string without end"),
    }
}

/// The UTF-16 code unit of the `\uXXXX` at `at`.
fn code_unit(json: &[u8], at: usize) -> Option<u16> {
    let mut unit = 0u16;
    let Some([b'\\', b'u', hex @ ..]) = json.get(at..at + 6) else { return None };
    for b in hex {
        let digit = char::from(*b).to_digit(16).and_then(|d| u16::try_from(d).ok())?;
        unit = unit << 4 | digit;
    }
    Some(unit)
}

/// Appends a string with its escapes decoded; `text` has passed [`string_end`]. A surrogate
/// without its partner becomes U+FFFD; gives whether there was one.
pub(crate) fn unescape(text: &[u8], out: &mut Vec<u8>) -> bool {
    let mut rest = text;
    let mut repaired = false;
    while let Some(at) = memchr::memchr(b'\\', rest) {
        let (plain, escape) = rest.split_at(at);
        out.extend_from_slice(plain);
        let len = match escape.get(1) {
            Some(b'u') => {
                let (c, len) = decode_unicode(escape);
                repaired |= c.is_none();
                let c = c.unwrap_or(char::REPLACEMENT_CHARACTER);
                out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                len
            }
            other => {
                out.push(match other {
                    Some(b'b') => 8,
                    Some(b'f') => 12,
                    Some(b'n') => b'\n',
                    Some(b'r') => b'\r',
                    Some(b't') => b'\t',
                    Some(b) => *b,
                    None => b'\\',
                });
                2
            }
        };
        rest = escape.get(len..).unwrap_or(&[]);
    }
    out.extend_from_slice(rest);
    repaired
}

/// The character of one or two `\uXXXX`, `None` for a lone surrogate, and the length read.
fn decode_unicode(text: &[u8]) -> (Option<char>, usize) {
    let first = code_unit(text, 0).unwrap_or(0);
    if let Some(c) = char::from_u32(u32::from(first)) {
        return (Some(c), 6);
    }
    let second = code_unit(text, 6).filter(|u| (0xDC00..0xE000).contains(u));
    match second {
        Some(low) if first < 0xDC00 => {
            let code = 0x1_0000 + ((u32::from(first) & 0x3FF) << 10 | u32::from(low) & 0x3FF);
            (char::from_u32(code), 12)
        }
        _ => (None, 6),
    }
}

/// The end of the number at `at`.
#[inline]
pub(crate) fn number_end(json: &[u8], mut at: usize) -> Result<usize, SyntaxError> {
    let digits = |mut at: usize| {
        while let Some(b'0'..=b'9') = json.get(at) {
            at += 1;
        }
        at
    };
    if json.get(at) == Some(&b'-') {
        at += 1;
    }
    at = match json.get(at) {
        Some(b'0') => at + 1,
        Some(b'1'..=b'9') => digits(at),
        _ => return error(at, "invalid number"),
    };
    if json.get(at) == Some(&b'.') {
        let end = digits(at + 1);
        if end == at + 1 {
            return error(end, "invalid number");
        }
        at = end;
    }
    if let Some(b'e' | b'E') = json.get(at) {
        at += 1;
        if let Some(b'+' | b'-') = json.get(at) {
            at += 1;
        }
        let end = digits(at);
        if end == at {
            return error(end, "invalid number");
        }
        at = end;
    }
    Ok(at)
}

/// The end of the literal at `at`.
#[inline]
pub(crate) fn literal_end(
    json: &[u8],
    at: usize,
    literal: &'static [u8],
) -> Result<usize, SyntaxError> {
    if json.get(at..).is_some_and(|rest| rest.starts_with(literal)) {
        Ok(at + literal.len())
    } else {
        error(at, "invalid value")
    }
}

/// The end of the value at `at`, of any kind and depth. Needs a bit of memory per level, no
/// stack.
pub(crate) fn value_end(json: &[u8], mut at: usize) -> Result<usize, SyntaxError> {
    // The open brackets; true for objects.
    let mut open: Vec<bool> = Vec::new();
    loop {
        // A value begins at `at`.
        match json.get(at) {
            Some(b'{') => {
                at = skip_space(json, at + 1);
                open.push(true);
                if json.get(at) != Some(&b'}') {
                    at = member_value(json, at)?;
                    continue;
                }
            }
            Some(b'[') => {
                at = skip_space(json, at + 1);
                open.push(false);
                if json.get(at) != Some(&b']') {
                    continue;
                }
            }
            _ => at = scalar_end(json, at)?,
        }
        // A value has ended, or a closing bracket follows an opening one.
        loop {
            let Some(is_object) = open.last() else { return Ok(at) };
            at = skip_space(json, at);
            match (json.get(at), is_object) {
                (Some(b','), true) => {
                    at = member_value(json, skip_space(json, at + 1))?;
                    break;
                }
                (Some(b','), false) => {
                    at = skip_space(json, at + 1);
                    break;
                }
                (Some(b'}'), true) | (Some(b']'), false) => {
                    open.pop();
                    at += 1;
                }
                (None, _) => return error(at, "value without end"),
                (_, true) => return error(at, "expected `,` or `}`"),
                (_, false) => return error(at, "expected `,` or `]`"),
            }
        }
    }
}

/// The start of the value of the member whose name begins at `at`.
fn member_value(json: &[u8], at: usize) -> Result<usize, SyntaxError> {
    if json.get(at) != Some(&b'"') {
        return error(at, "expected a member name");
    }
    let (end, _) = string_end(json, at + 1)?;
    after_colon(json, end + 1)
}

/// The start of the value after the colon that is due at `at`.
#[inline]
pub(crate) fn after_colon(json: &[u8], at: usize) -> Result<usize, SyntaxError> {
    let colon = skip_space(json, at);
    if json.get(colon) != Some(&b':') {
        return error(colon, "expected `:`");
    }
    Ok(skip_space(json, colon + 1))
}

/// The end of the string, number or literal at `at`.
pub(crate) fn scalar_end(json: &[u8], at: usize) -> Result<usize, SyntaxError> {
    match json.get(at) {
        Some(b'"') => string_end(json, at + 1).map(|(end, _)| end + 1),
        Some(b'-' | b'0'..=b'9') => number_end(json, at),
        Some(b't') => literal_end(json, at, b"true"),
        Some(b'f') => literal_end(json, at, b"false"),
        Some(b'n') => literal_end(json, at, b"null"),
        Some(_) => error(at, "expected a value"),
        None => error(at, "value without end"),
    }
}
