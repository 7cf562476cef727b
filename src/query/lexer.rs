//! Query text -> tokens.
//!
//! The whole text is cut up front (12 bytes a token), so that the parser can look ahead and go
//! back for free. Cutting is linear, and so is everything that a token's text needs later.

use std::borrow::Cow;

use super::fault::Fault;

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TokenKind {
    /// Letters, digits, `_` and `.`.
    Word,
    /// Text in quotes of any kind.
    Quoted,
    /// Any other character, or one of `!=`, `!~`, `=~`.
    Symbol,
    /// The end of the text.
    End,
}

/// A piece of the query text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) kind: TokenKind,
    /// Whether white space or a comment stands in front of it.
    pub(crate) spaced: bool,
    start: u32,
    end: u32,
}

impl Token {
    /// The end of a text of `len` bytes.
    pub(crate) fn end_at(len: usize) -> Token {
        token(TokenKind::End, false, len, len)
    }

    /// Offset in bytes of its first byte.
    pub(crate) fn start(self) -> usize {
        self.start as usize
    }

    /// Offset in bytes behind its last byte.
    pub(crate) fn end(self) -> usize {
        self.end as usize
    }
}

/// Cuts `text`, which is shorter than 4 GiB. The last token is always of kind `End`.
pub(crate) fn tokenize(text: &str) -> Result<Vec<Token>, Fault> {
    let mut tokens = Vec::new();
    let mut at = 0;
    loop {
        let (start, spaced) = skip_blanks(text, at);
        let rest = text.get(start..).unwrap_or("");
        let Some(first) = rest.chars().next() else {
            tokens.push(token(TokenKind::End, spaced, start, start));
            return Ok(tokens);
        };
        let (kind, len) = match first {
            '"' | '\'' | '`' => {
                let len = quoted_len(rest, first).ok_or_else(|| unbalanced(start, first))?;
                // Checks the escapes once; later uses cannot fail.
                unquote(rest.get(..len).unwrap_or("")).map_err(|f| f.shifted(start))?;
                (TokenKind::Quoted, len)
            }
            c if is_word_char(c) => {
                (TokenKind::Word, rest.find(|c| !is_word_char(c)).unwrap_or(rest.len()))
            }
            '!' if rest.starts_with("!=") || rest.starts_with("!~") => (TokenKind::Symbol, 2),
            '=' if rest.starts_with("=~") => (TokenKind::Symbol, 2),
            c => (TokenKind::Symbol, c.len_utf8()),
        };
        at = start + len;
        tokens.push(token(kind, spaced, start, at));
    }
}

#[expect(clippy::cast_possible_truncation, reason = "texts are shorter than 4 GiB")]
fn token(kind: TokenKind, spaced: bool, start: usize, end: usize) -> Token {
    Token { kind, spaced, start: start as u32, end: end as u32 }
}

/// Whether `c` belongs to words.
pub(crate) fn is_word_char(c: char) -> bool {
    c == '_' || c == '.' || c.is_alphanumeric()
}

/// The offset of the next token, and whether anything was skipped.
fn skip_blanks(text: &str, from: usize) -> (usize, bool) {
    let mut at = from;
    loop {
        let rest = text.get(at..).unwrap_or("");
        let trimmed = rest.trim_start();
        at += rest.len() - trimmed.len();
        if !trimmed.starts_with('#') {
            return (at, at > from);
        }
        at += trimmed.find('\n').unwrap_or(trimmed.len());
    }
}

/// The length of the quoted text at the start of `rest`, quotes included.
fn quoted_len(rest: &str, quote: char) -> Option<usize> {
    let mut escaped = false;
    for (i, c) in rest.char_indices().skip(1) {
        if escaped {
            escaped = false;
        } else if c == quote {
            return Some(i + 1);
        } else if c == '\\' && quote != '`' {
            escaped = true;
        }
    }
    None
}

fn unbalanced(start: usize, quote: char) -> Fault {
    let fault = Fault::new(start, format!("the quote {quote} is never closed"));
    if quote == '`' {
        return fault;
    }
    fault.hint(format!(
        "put {quote} at the end of the text, or put text that holds {quote} into other quotes"
    ))
}

/// The text inside the quotes of `quoted`, which begins and ends with the same quote.
pub(crate) fn unquote(quoted: &str) -> Result<Cow<'_, str>, Fault> {
    let inner = quoted.get(1..quoted.len().saturating_sub(1)).unwrap_or("");
    if quoted.starts_with('`') || !inner.contains('\\') {
        return Ok(Cow::Borrowed(inner));
    }
    let mut bytes: Vec<u8> = Vec::with_capacity(inner.len());
    let mut rest = inner;
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        bytes.extend_from_slice(before.as_bytes());
        let offset = 1 + inner.len() - escape.len();
        let len = unescape(escape, &mut bytes).ok_or_else(|| bad_escape(offset, escape))?;
        rest = escape.get(len..).unwrap_or("");
    }
    bytes.extend_from_slice(rest.as_bytes());
    let text = String::from_utf8(bytes)
        .map_err(|_| Fault::new(0, "the escapes of this text do not make valid UTF-8"))?;
    Ok(Cow::Owned(text))
}

/// Where byte `at` of a word or quoted text stands in what was written, which begins with it.
pub(crate) fn offset_as_written(written: &str, at: usize) -> usize {
    let quote = written.chars().next().filter(|c| matches!(c, '"' | '\'' | '`'));
    let Some(quote) = quote else { return at };
    let (mut offset, mut decoded) = (1, Vec::new());
    while decoded.len() < at && quote != '`' {
        let rest = written.get(offset..).unwrap_or("");
        let Some(c) = rest.chars().next() else { return offset };
        if c == '\\' {
            let Some(len) = unescape(rest, &mut decoded) else { return offset };
            offset += len;
        } else {
            decoded.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            offset += c.len_utf8();
        }
    }
    if quote == '`' { 1 + at } else { offset }
}

fn bad_escape(offset: usize, escape: &str) -> Fault {
    let shown: String = escape.chars().take(2).collect();
    Fault::new(offset, format!("unknown escape {shown}"))
        .hint(format!("write \\{shown} for a backslash, or put the text into back quotes"))
}

/// Decodes the escape at the start of `escape`; gives its length.
fn unescape(escape: &str, out: &mut Vec<u8>) -> Option<usize> {
    let c = escape.chars().nth(1)?;
    let simple = match c {
        'a' => 0x07,
        'b' => 0x08,
        'f' => 0x0c,
        'n' => b'\n',
        'r' => b'\r',
        't' => b'\t',
        'v' => 0x0b,
        '\\' | '"' | '\'' => u8::try_from(c).ok()?,
        'x' | '0'..='7' => {
            let (digits, len, radix) = if c == 'x' { (2..4, 4, 16) } else { (1..4, 4, 8) };
            out.push(u8::try_from(digits_value(escape.get(digits)?, radix)?).ok()?);
            return Some(len);
        }
        'u' | 'U' => {
            let len = if c == 'u' { 6 } else { 10 };
            let decoded = char::from_u32(digits_value(escape.get(2..len)?, 16)?)?;
            out.extend_from_slice(decoded.encode_utf8(&mut [0; 4]).as_bytes());
            return Some(len);
        }
        _ => return None,
    };
    out.push(simple);
    Some(2)
}

fn digits_value(digits: &str, radix: u32) -> Option<u32> {
    let all_digits = digits.chars().all(|c| c.is_digit(radix));
    if all_digits { u32::from_str_radix(digits, radix).ok() } else { None }
}
