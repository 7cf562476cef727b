//! Quoted strings at the start of a text: `"..."` and `'...'` with escapes, `` `...` `` as it is.

/// The decoded string that a text starts with, and the length of its source. `None` if the text
/// does not start with a valid quoted string.
pub(crate) fn unquote_prefix(text: &[u8]) -> Option<(Vec<u8>, usize)> {
    let (quote, rest) = text.split_first()?;
    match quote {
        b'`' => {
            let len = memchr::memchr(b'`', rest)?;
            Some((rest.get(..len)?.to_vec(), len + 2))
        }
        b'"' | b'\'' => {
            let mut out = Vec::new();
            let mut at = 0;
            loop {
                let b = *rest.get(at)?;
                at += 1;
                match b {
                    b'\n' => return None,
                    b'\\' => at += unescape(rest.get(at..)?, *quote, &mut out)?,
                    b if b == *quote => return Some((out, at + 1)),
                    b => out.push(b),
                }
            }
        }
        _ => None,
    }
}

/// Appends the character that an escape stands for; the backslash is taken. Gives the length.
fn unescape(text: &[u8], quote: u8, out: &mut Vec<u8>) -> Option<usize> {
    let simple = match *text.first()? {
        b'a' => 0x07,
        b'b' => 0x08,
        b'f' => 0x0c,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'v' => 0x0b,
        b'\\' => b'\\',
        b if b == quote => b,
        b'x' => {
            out.push(u8::try_from(digits(text.get(1..3)?, 16)?).ok()?);
            return Some(3);
        }
        b'0'..=b'3' => {
            out.push(u8::try_from(digits(text.get(..3)?, 8)?).ok()?);
            return Some(3);
        }
        b'u' => return unicode(text.get(1..5)?, out).map(|()| 5),
        b'U' => return unicode(text.get(1..9)?, out).map(|()| 9),
        _ => return None,
    };
    out.push(simple);
    Some(1)
}

fn digits(text: &[u8], radix: u32) -> Option<u32> {
    text.iter().try_fold(0u32, |n, b| {
        let digit = char::from(*b).to_digit(radix)?;
        n.checked_mul(radix)?.checked_add(digit)
    })
}

fn unicode(text: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let c = char::from_u32(digits(text, 16)?)?;
    out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_go_reads() {
        let read = |text: &str| {
            unquote_prefix(text.as_bytes()).map(|(s, n)| (String::from_utf8(s).unwrap(), n))
        };
        assert_eq!(read(r#""a\"b\u00e9\x41\101" tail"#), Some(("a\"b\u{e9}AA".into(), 20)));
        assert_eq!(read("`raw\\`x"), Some(("raw\\".into(), 6)));
        assert_eq!(read(r"'it\'s'"), Some(("it's".into(), 7)));
        for bad in ["", "x", "\"open", "\"\\q\"", "\"a\nb\"", "\"\\'\"", "`", "\"\\ud800\""] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }
}
