//! JSON texts: writing strings and objects, and a scanner that keeps the spelling of what it reads.

use super::stats::Part;

/// Deeper nesting is not read as JSON.
const MAX_DEPTH: usize = 128;

const HEX: &[u8; 16] = b"0123456789abcdef";

/// Appends a JSON string.
pub(crate) fn push_string(out: &mut Vec<u8>, text: &[u8]) {
    push_quoted(out, text, false);
}

/// Appends a JSON string; with `html`, `<` and `'` are escaped too.
pub(crate) fn push_quoted(out: &mut Vec<u8>, text: &[u8], html: bool) {
    out.push(b'"');
    let mut rest = text;
    while let Some(at) = find_special(rest, html) {
        let (plain, tail) = rest.split_at(at);
        out.extend_from_slice(plain);
        let Some((b, tail)) = tail.split_first() else { break };
        push_escape(out, *b);
        rest = tail;
    }
    out.extend_from_slice(rest);
    out.push(b'"');
}

/// Where the first byte stands that is to be escaped.
fn find_special(text: &[u8], html: bool) -> Option<usize> {
    let special =
        |b: &u8| *b < 0x20 || matches!(b, b'"' | b'\\') || html && matches!(b, b'<' | b'\'');
    let mut plain = 0;
    if !html {
        let words = text.chunks_exact(8).map(|c| c.try_into().map_or(0, u64::from_le_bytes));
        plain = 8 * words.take_while(|word| !has_special(*word)).count();
    }
    let rest = text.get(plain..).unwrap_or(&[]);
    rest.iter().position(special).map(|at| plain + at)
}

/// Whether one of eight bytes is below 0x20, a quote or a backslash.
#[inline]
fn has_special(word: u64) -> bool {
    const ONES: u64 = u64::MAX / 255;
    // The high bit of each byte that is below `n`, and below another that is, at most 128.
    let below = |word: u64, n: u64| word.wrapping_sub(ONES * n) & !word & (ONES * 0x80);
    let equals = |b: u8| below(word ^ (ONES * u64::from(b)), 1);
    below(word, 0x20) | equals(b'"') | equals(b'\\') != 0
}

fn push_escape(out: &mut Vec<u8>, b: u8) {
    let short = match b {
        b'"' => Some(b'"'),
        b'\\' => Some(b'\\'),
        b'\n' => Some(b'n'),
        b'\r' => Some(b'r'),
        b'\t' => Some(b't'),
        0x08 => Some(b'b'),
        0x0c => Some(b'f'),
        _ => None,
    };
    out.push(b'\\');
    match short {
        Some(c) => out.push(c),
        None => {
            out.extend_from_slice(b"u00");
            for nibble in [b >> 4, b & 15] {
                out.push(HEX.get(usize::from(nibble)).copied().unwrap_or(b'0'));
            }
        }
    }
}

/// Appends an array of strings.
pub(crate) fn push_array<'a>(out: &mut Vec<u8>, items: impl Iterator<Item = &'a [u8]>) {
    out.push(b'[');
    for (i, item) in items.enumerate() {
        if i > 0 {
            out.push(b',');
        }
        push_string(out, item);
    }
    out.push(b']');
}

/// Appends the values that a row has in some columns as an object.
pub(crate) fn push_row(out: &mut Vec<u8>, parts: &[Part<'_>], row: usize, scratch: &mut Vec<u8>) {
    out.push(b'{');
    let mut first = true;
    for part in parts {
        let value = part.column.value(row, scratch);
        if value.is_empty() {
            continue;
        }
        if !first {
            out.push(b',');
        }
        first = false;
        push_string(out, part.name.as_bytes());
        out.push(b':');
        push_string(out, value);
    }
    out.push(b'}');
}

/// What kind of value begins at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `{`
    Object,
    /// `[`
    Array,
    /// `"`
    String,
    /// `null`
    Null,
    /// A number, `true` or `false`.
    Scalar,
}

/// Reads JSON text from left to right. All methods return `None` at a syntax error.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scanner<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Scanner<'a> {
    /// Starts at the beginning.
    pub(crate) fn new(text: &'a [u8]) -> Scanner<'a> {
        Scanner { text, at: 0 }
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    /// Skips white space.
    pub(crate) fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    /// Takes one byte if it is the next.
    pub(crate) fn take(&mut self, b: u8) -> Option<()> {
        let same = self.peek() == Some(b);
        self.at += usize::from(same);
        same.then_some(())
    }

    /// Whether only white space is left.
    pub(crate) fn at_end(mut self) -> bool {
        self.skip_space();
        self.at == self.text.len()
    }

    /// The kind of the value that begins here.
    pub(crate) fn kind(&self) -> Option<Kind> {
        match self.peek()? {
            b'{' => Some(Kind::Object),
            b'[' => Some(Kind::Array),
            b'"' => Some(Kind::String),
            b'n' => Some(Kind::Null),
            _ => Some(Kind::Scalar),
        }
    }

    /// Appends the decoded string that begins here.
    pub(crate) fn string(&mut self, out: &mut Vec<u8>) -> Option<()> {
        self.take(b'"')?;
        loop {
            let rest = self.text.get(self.at..)?;
            let len = rest.iter().position(|b| matches!(b, b'"' | b'\\') || *b < 0x20)?;
            out.extend_from_slice(rest.get(..len)?);
            self.at += len;
            if self.take(b'"').is_some() {
                return Some(());
            }
            self.take(b'\\')?;
            let escape = self.peek()?;
            self.at += 1;
            match escape {
                b'"' | b'\\' | b'/' => out.push(escape),
                b'n' => out.push(b'\n'),
                b'r' => out.push(b'\r'),
                b't' => out.push(b'\t'),
                b'b' => out.push(0x08),
                b'f' => out.push(0x0c),
                b'u' => {
                    let c = self.unicode()?;
                    out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                }
                _ => return None,
            }
        }
    }

    /// The character of `\uXXXX`, the `\u` taken; lone surrogates become U+FFFD.
    fn unicode(&mut self) -> Option<char> {
        let unit = self.hex4()?;
        if !(0xD800..0xE000).contains(&unit) {
            return char::from_u32(unit);
        }
        let ahead = self.text.get(self.at..self.at + 2) == Some(b"\\u");
        if unit < 0xDC00 && ahead {
            let mut next = *self;
            next.at += 2;
            let low = next.hex4()?;
            if (0xDC00..0xE000).contains(&low) {
                *self = next;
                return char::from_u32(0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00));
            }
        }
        Some('\u{fffd}')
    }

    fn hex4(&mut self) -> Option<u32> {
        let mut value = 0;
        for _ in 0..4 {
            let digit = char::from(self.peek()?).to_digit(16)?;
            value = value << 4 | digit;
            self.at += 1;
        }
        Some(value)
    }

    /// Skips a value and returns its source text.
    pub(crate) fn value(&mut self) -> Option<&'a [u8]> {
        let start = self.at;
        self.skip_value(0)?;
        self.text.get(start..self.at)
    }

    fn skip_value(&mut self, depth: usize) -> Option<()> {
        match self.kind()? {
            Kind::String => self.string(&mut Vec::new()),
            Kind::Array if depth < MAX_DEPTH => self.items(|s| s.skip_value(depth + 1)),
            Kind::Object if depth < MAX_DEPTH => {
                self.members(|s, _| s.skip_value(depth + 1), &mut Vec::new())
            }
            Kind::Array | Kind::Object => None,
            Kind::Null | Kind::Scalar => self.scalar(),
        }
    }

    fn scalar(&mut self) -> Option<()> {
        let rest = self.text.get(self.at..)?;
        for word in [&b"null"[..], b"true", b"false"] {
            if rest.starts_with(word) {
                self.at += word.len();
                return Some(());
            }
        }
        let _ = self.take(b'-');
        let digits = |s: &mut Self| {
            let start = s.at;
            while s.peek().is_some_and(|b| b.is_ascii_digit()) {
                s.at += 1;
            }
            (s.at > start).then_some(())
        };
        digits(self)?;
        if self.take(b'.').is_some() {
            digits(self)?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if self.take(b'+').is_none() {
                let _ = self.take(b'-');
            }
            digits(self)?;
        }
        Some(())
    }

    /// Calls `f` at each item of the array that begins here; `f` has to read the item.
    pub(crate) fn items(&mut self, mut f: impl FnMut(&mut Self) -> Option<()>) -> Option<()> {
        self.take(b'[')?;
        self.skip_space();
        if self.take(b']').is_some() {
            return Some(());
        }
        loop {
            self.skip_space();
            f(self)?;
            self.skip_space();
            if self.take(b',').is_none() {
                return self.take(b']');
            }
        }
    }

    /// Calls `f` with the name of each member of the object that begins here, at its value, which
    /// `f` has to read. `name` is the buffer for the names; what it holds before stays in front.
    pub(crate) fn members(
        &mut self,
        mut f: impl FnMut(&mut Self, &mut Vec<u8>) -> Option<()>,
        name: &mut Vec<u8>,
    ) -> Option<()> {
        self.take(b'{')?;
        self.skip_space();
        if self.take(b'}').is_some() {
            return Some(());
        }
        let prefix = name.len();
        loop {
            self.skip_space();
            self.string(name)?;
            self.skip_space();
            self.take(b':')?;
            self.skip_space();
            f(self, name)?;
            name.truncate(prefix);
            self.skip_space();
            if self.take(b',').is_none() {
                return self.take(b'}');
            }
        }
    }
}

/// The items of a text that is a JSON array: strings decoded, others without white space. `None`
/// for other texts.
pub(crate) fn array_items(text: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut scanner = Scanner::new(text);
    let mut out = Vec::new();
    scanner.items(|s| {
        let mut item = Vec::new();
        if s.kind()? == Kind::String {
            s.string(&mut item)?;
        } else {
            push_compact(&mut item, s.value()?);
        }
        out.push(item);
        Some(())
    })?;
    scanner.at_end().then_some(out)
}

/// Appends valid JSON without the white space between its tokens.
pub(crate) fn push_compact(out: &mut Vec<u8>, json: &[u8]) {
    let mut quoted = false;
    let mut escaped = false;
    for &b in json {
        if quoted {
            quoted = escaped || b != b'"';
            escaped = b == b'\\' && !escaped;
        } else if matches!(b, b' ' | b'\t' | b'\n' | b'\r') {
            continue;
        } else {
            quoted = b == b'"';
        }
        out.push(b);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn items(text: &str) -> Option<Vec<String>> {
        let all = array_items(text.as_bytes())?;
        Some(all.into_iter().map(|i| String::from_utf8(i).unwrap()).collect())
    }

    #[test]
    fn arrays_give_their_items() {
        let text = r#"["a\u00e9\n", 1.50, null, {"k" : [ true, "x y" ]} ,"\ud83d\ude00"] "#;
        let want =
            ["a\u{e9}\n", "1.50", "null", r#"{"k":[true,"x y"]}"#, "\u{1f600}"].map(String::from);
        assert_eq!(items(text), Some(want.to_vec()));
        assert_eq!(items("[]"), Some(Vec::new()));
        for bad in ["", "x", "[1", "[1,]", "[01x]", "{}", "[1] 2", "[\"\\q\"]", "[tru]"] {
            assert_eq!(items(bad), None, "{bad}");
        }
        let deep = "[".repeat(100_000);
        assert_eq!(items(&deep), None);
    }

    proptest! {
        #[test]
        fn the_first_byte_to_escape_is_found(
            text in prop::collection::vec(
                prop_oneof![8 => 0x1eu8..0x82, 1 => any::<u8>()],
                0..40,
            ),
            html: bool,
        ) {
            let special = |b: &u8| {
                *b < 0x20 || [b'"', b'\\'].contains(b) || html && [b'<', b'\''].contains(b)
            };
            prop_assert_eq!(find_special(&text, html), text.iter().position(special));
        }
    }

    #[test]
    fn strings_come_back() {
        let text = "a\"b\\c\n\u{1}\u{e9}<'";
        let mut out = Vec::new();
        push_string(&mut out, text.as_bytes());
        let mut back = Vec::new();
        Scanner::new(&out).string(&mut back).unwrap();
        assert_eq!(back, text.as_bytes());
        out.clear();
        push_quoted(&mut out, b"<'>", true);
        assert_eq!(out, br#""\u003c\u0027>""#);
    }
}
