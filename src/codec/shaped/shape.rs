//! The shape of values: which pieces they consist of, in which order.
//!
//! A shape is found by taking a few values apart, and then only counts as a guess: a value either
//! matches it, piece by piece, so that printing the pieces gives its bytes, or it is an exception.

use super::super::integers::parse_int;
use super::super::varint::{Reader, put_bytes, put_varint};
use crate::error::Malformed;
use crate::record::parse_utc_fixed;

/// The most pieces of a shape.
const PIECES_MAX: usize = 32;
/// Longer values have no shape.
const VALUE_MAX: usize = 255;
/// The most hexadecimal digits of a piece.
const HEX_MAX: usize = 128;
/// The fewest hexadecimal digits that are taken for an id.
const HEX_MIN: usize = 6;
/// The most decimal digits of a number with a point, or of fixed width.
const DIGITS_MAX: usize = 18;
/// The longest word.
pub(super) const WORD_MAX: usize = 64;

/// The first time of a whole second.
const FIRST_SECOND: i64 = i64::MIN / 1_000_000_000 * 1_000_000_000;

/// One piece of a shape.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Piece {
    /// These bytes.
    Literal(Vec<u8>),
    /// A canonical decimal integer.
    Int,
    /// So many decimal digits.
    Digits(u8),
    /// A decimal number, perhaps with a point: no zeros in front, any at the end.
    Decimal,
    /// An IPv4 address, no zeros in front.
    Ipv4,
    /// `YYYY-MM-DDThh:mm:ss`, so many digits of fraction, `Z`.
    Time(u8),
    /// So many hexadecimal digits of one case.
    Hex {
        /// The number of digits.
        digits: u8,
        /// Their case.
        upper: bool,
    },
    /// Hexadecimal digits as a UUID: 8-4-4-4-12.
    Uuid {
        /// Their case.
        upper: bool,
    },
    /// Letters, `_` and bytes that are no ASCII: one word of a table.
    Word,
}

/// What a value has in the place of a piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part<'a> {
    /// Integers, digits, addresses, times.
    Number(i64),
    /// All digits as an integer, and how many of them stand behind the point.
    Decimal(i64, u8),
    /// Hexadecimal digits, dashes of a UUID among them.
    Hex(&'a [u8]),
    /// A word.
    Word(&'a [u8]),
}

/// Pieces in their order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Shape {
    pieces: Vec<Piece>,
}

impl Shape {
    /// Takes `value` apart; `None` if it is too long or holds nothing but words.
    pub(super) fn of(value: &[u8]) -> Option<Shape> {
        if value.len() > VALUE_MAX {
            return None;
        }
        let mut pieces: Vec<Piece> = Vec::new();
        let mut rest = value;
        while let Some(first) = rest.first() {
            let (piece, len) = next_piece(rest, pieces.last());
            let (piece, len) = piece.map_or((Piece::Literal(vec![*first]), 1), |p| (p, len));
            match (pieces.last_mut(), &piece) {
                (Some(Piece::Literal(last)), Piece::Literal(more)) => last.extend_from_slice(more),
                _ => pieces.push(piece),
            }
            if pieces.len() > PIECES_MAX {
                return None;
            }
            rest = rest.get(len..)?;
        }
        let typed = |p: &Piece| !matches!(p, Piece::Literal(_) | Piece::Word);
        pieces.iter().any(typed).then_some(Shape { pieces })
    }

    /// The pieces.
    pub(super) fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    /// What `value` has in the place of each piece that is no literal, into `parts`.
    pub(super) fn matches<'a>(&self, value: &'a [u8], parts: &mut Vec<Part<'a>>) -> bool {
        parts.clear();
        let mut rest = value;
        for piece in &self.pieces {
            let Some(len) = match_piece(piece, rest, parts) else { return false };
            rest = rest.get(len..).unwrap_or(&[]);
        }
        rest.is_empty()
    }

    /// Appends the shape.
    pub(super) fn put(&self, out: &mut Vec<u8>) {
        put_varint(out, self.pieces.len() as u64);
        for piece in &self.pieces {
            let (kind, parameter) = match piece {
                Piece::Literal(_) => (0, None),
                Piece::Int => (1, None),
                Piece::Digits(n) => (2, Some(*n)),
                Piece::Decimal => (3, None),
                Piece::Ipv4 => (4, None),
                Piece::Time(n) => (5, Some(*n)),
                Piece::Hex { digits, upper } => (6 + u8::from(*upper), Some(*digits)),
                Piece::Uuid { upper } => (8 + u8::from(*upper), None),
                Piece::Word => (10, None),
            };
            out.push(kind);
            out.extend(parameter);
            if let Piece::Literal(text) = piece {
                put_bytes(out, text);
            }
        }
    }

    /// Reads what [`put`](Shape::put) wrote.
    pub(super) fn read(r: &mut Reader<'_>) -> Result<Shape, Malformed> {
        let count = r.len(PIECES_MAX)?;
        let mut pieces = Vec::with_capacity(count);
        for _ in 0..count {
            let piece = match r.u8()? {
                0 => Piece::Literal(r.bytes(VALUE_MAX)?.to_vec()),
                1 => Piece::Int,
                2 => Piece::Digits(small(r, DIGITS_MAX)?),
                3 => Piece::Decimal,
                4 => Piece::Ipv4,
                5 => Piece::Time(small(r, 9)?),
                kind @ (6 | 7) => Piece::Hex { digits: small(r, HEX_MAX)?, upper: kind == 7 },
                kind @ (8 | 9) => Piece::Uuid { upper: kind == 9 },
                10 => Piece::Word,
                _ => return Err(Malformed("unknown piece of a shape")),
            };
            pieces.push(piece);
        }
        Ok(Shape { pieces })
    }
}

fn small(r: &mut Reader<'_>, max: usize) -> Result<u8, Malformed> {
    let n = r.u8()?;
    if usize::from(n) > max { Err(Malformed("width of a piece over its cap")) } else { Ok(n) }
}

/// The piece with which `text` begins, and its length; `None` for a literal byte.
fn next_piece(text: &[u8], before: Option<&Piece>) -> (Option<Piece>, usize) {
    let run = count(text, u8::is_ascii_alphanumeric);
    let digits = count(text, u8::is_ascii_digit);
    let ends_at = |len: usize| !text.get(len).is_some_and(u8::is_ascii_alphanumeric);
    if let Some(len) = time(text).map(|(_, fraction)| time_len(fraction)).filter(|l| ends_at(*l)) {
        let fraction = len.saturating_sub(21).to_le_bytes()[0];
        return (Some(Piece::Time(fraction)), len);
    }
    if let Some(upper) = uuid_case(text).filter(|_| ends_at(36)) {
        return (Some(Piece::Uuid { upper }), 36);
    }
    if let Some((_, len)) = ipv4(text).filter(|(_, len)| ends_at(*len)) {
        return (Some(Piece::Ipv4), len);
    }
    if text.starts_with(b"0x") && run >= 6 && hex_case(text.get(2..run)).is_some() {
        return (Some(Piece::Literal(b"0x".to_vec())), 2);
    }
    let after_0x = matches!(before, Some(Piece::Literal(l)) if l.ends_with(b"0x"));
    if run >= if after_0x { 4 } else { HEX_MIN }
        && run <= HEX_MAX
        && (after_0x || digits < run)
        && let Some(upper) = hex_case(text.get(..run))
    {
        return (Some(Piece::Hex { digits: run.to_le_bytes()[0], upper }), run);
    }
    let numbers = matches!(before, Some(Piece::Int | Piece::Digits(_) | Piece::Decimal));
    if digits > 0 || (!numbers && text.first() == Some(&b'-')) {
        if let Some((_, scale, len)) = decimal(text) {
            // In a version such as 1.2.3 no two of the numbers are a decimal.
            let after = matches!(before, Some(Piece::Literal(l)) if l.ends_with(b"."));
            if scale > 0 && !after && text.get(len) != Some(&b'.') {
                return (Some(Piece::Decimal), len);
            }
        }
        if let Some((_, len)) = int(text) {
            return (Some(Piece::Int), len);
        }
    }
    if (1..=DIGITS_MAX).contains(&digits) {
        return (Some(Piece::Digits(digits.to_le_bytes()[0])), digits);
    }
    let word = count(text, is_word);
    if (1..=WORD_MAX).contains(&word) { (Some(Piece::Word), word) } else { (None, 1) }
}

/// Matches the beginning of `text`; gives the length that matched.
#[inline]
fn match_piece<'a>(piece: &Piece, text: &'a [u8], parts: &mut Vec<Part<'a>>) -> Option<usize> {
    let (part, len) = match piece {
        Piece::Literal(literal) => return text.starts_with(literal).then_some(literal.len()),
        Piece::Int => int(text).map(|(n, len)| (Part::Number(n), len))?,
        Piece::Digits(width) => {
            let digits = text.get(..usize::from(*width))?;
            (Part::Number(digits_value(digits)?), digits.len())
        }
        Piece::Decimal => decimal(text).map(|(n, scale, len)| (Part::Decimal(n, scale), len))?,
        Piece::Ipv4 => ipv4(text).map(|(n, len)| (Part::Number(n), len))?,
        Piece::Time(fraction) => {
            let (n, found) = time(text)?;
            (found == *fraction).then_some((Part::Number(n), time_len(found)))?
        }
        Piece::Hex { digits, upper } => {
            let hex = text.get(..usize::from(*digits))?;
            hex.iter().all(|b| is_hex(*b, *upper)).then_some((Part::Hex(hex), hex.len()))?
        }
        Piece::Uuid { upper } => {
            let hex = text.get(..36)?;
            let fits = (0..).zip(hex).all(|(i, b)| match i {
                8 | 13 | 18 | 23 => *b == b'-',
                _ => is_hex(*b, *upper),
            });
            fits.then_some((Part::Hex(hex), 36))?
        }
        Piece::Word => {
            let len = count(text, is_word);
            let word = text.get(..len).filter(|w| !w.is_empty() && w.len() <= WORD_MAX)?;
            (Part::Word(word), len)
        }
    };
    parts.push(part);
    Some(len)
}

/// How many bytes at the start of `text` satisfy `f`.
#[inline]
fn count(text: &[u8], f: impl Fn(&u8) -> bool) -> usize {
    text.iter().take_while(|b| f(b)).count()
}

fn is_word(b: &u8) -> bool {
    b.is_ascii_alphabetic() || *b == b'_' || !b.is_ascii()
}

#[inline]
fn is_hex(b: u8, upper: bool) -> bool {
    b.is_ascii_digit() || if upper { matches!(b, b'A'..=b'F') } else { matches!(b, b'a'..=b'f') }
}

/// Whether the hexadecimal digits are of upper case; lower if there are no letters.
fn hex_case(text: Option<&[u8]>) -> Option<bool> {
    let text = text?;
    [false, true].into_iter().find(|upper| text.iter().all(|b| is_hex(*b, *upper)))
}

fn uuid_case(text: &[u8]) -> Option<bool> {
    let text = text.get(..36)?;
    [false, true].into_iter().find(|upper| {
        (0..).zip(text).all(|(i, b)| match i {
            8 | 13 | 18 | 23 => *b == b'-',
            _ => is_hex(*b, *upper),
        })
    })
}

/// The canonical integer that the longest run of digits at the start of `text` is.
#[inline]
fn int(text: &[u8]) -> Option<(i64, usize)> {
    let sign = usize::from(text.first() == Some(&b'-'));
    let len = sign + count(text.get(sign..)?, u8::is_ascii_digit);
    parse_int(text.get(..len)?).map(|n| (n, len))
}

/// The number that decimal digits are, at most 18 of them.
fn digits_value(digits: &[u8]) -> Option<i64> {
    digits
        .iter()
        .try_fold(0i64, |n, b| b.is_ascii_digit().then(|| n * 10 + i64::from(b.wrapping_sub(b'0'))))
}

/// A decimal at the start of `text`: its digits as an integer, how many stand behind the point,
/// its length. A negative zero is none.
#[inline]
fn decimal(text: &[u8]) -> Option<(i64, u8, usize)> {
    let (whole, len) = match text {
        // The sign of -0.5 is not that of its whole part.
        [b'-', b'0', ..] => (0, 2),
        _ => int(text)?,
    };
    let negative = text.first() == Some(&b'-');
    let fraction = match text.get(len) {
        Some(b'.') => count(text.get(len + 1..)?, u8::is_ascii_digit),
        _ => 0,
    };
    if len + fraction > DIGITS_MAX {
        return None;
    }
    if fraction == 0 {
        return (!(negative && whole == 0)).then_some((whole, 0, len));
    }
    let end = len + 1 + fraction;
    let tail = digits_value(text.get(len + 1..end)?)?;
    let scale = u32::try_from(fraction).ok()?;
    let whole = whole.checked_mul(10i64.checked_pow(scale)?)?;
    let n = if negative { whole.checked_sub(tail)? } else { whole.checked_add(tail)? };
    (!(negative && n == 0)).then_some((n, scale.to_le_bytes()[0], end))
}

/// The address at the start of `text`, which no digit and no further group follows.
#[inline]
fn ipv4(text: &[u8]) -> Option<(i64, usize)> {
    let (mut address, mut at) = (0i64, 0);
    for group in 0..4 {
        if group > 0 {
            if text.get(at) != Some(&b'.') {
                return None;
            }
            at += 1;
        }
        let digits = count(text.get(at..)?, u8::is_ascii_digit);
        if digits == 0 || digits > 3 || (digits > 1 && text.get(at) == Some(&b'0')) {
            return None;
        }
        let value = digits_value(text.get(at..at + digits)?).filter(|n| *n < 256)?;
        address = address << 8 | value;
        at += digits;
    }
    let dotted = text.get(at) == Some(&b'.') && text.get(at + 1).is_some_and(u8::is_ascii_digit);
    (!dotted).then_some((address, at))
}

/// The bytes of a time with so many digits of fraction.
fn time_len(fraction: u8) -> usize {
    if fraction == 0 { 20 } else { 21 + usize::from(fraction) }
}

/// The time at the start of `text`, and its digits of fraction.
#[inline]
fn time(text: &[u8]) -> Option<(i64, u8)> {
    if text.get(10) != Some(&b'T') {
        return None;
    }
    let fraction = match text.get(19)? {
        b'.' => count(text.get(20..)?, u8::is_ascii_digit),
        _ => 0,
    };
    let fraction = u8::try_from(fraction).ok().filter(|n| *n <= 9)?;
    let time = parse_utc_fixed(text.get(..time_len(fraction))?)?;
    let nanos = time.as_nanos();
    // Before the first whole second of the range, a second has no time of its own to print.
    (nanos >= FIRST_SECOND).then_some((nanos, fraction))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(text: &str) -> Vec<Piece> {
        Shape::of(text.as_bytes()).map_or(Vec::new(), |s| s.pieces)
    }

    fn literal(text: &str) -> Piece {
        Piece::Literal(text.as_bytes().to_vec())
    }

    #[test]
    fn values_are_taken_apart() {
        use Piece::*;
        let lower = |digits| Hex { digits, upper: false };
        assert_eq!(pieces("10.1.2.3:443"), [Ipv4, literal(":"), Int]);
        assert_eq!(pieces("704b30d6-5cea-4998-6448-c03963a95d10"), [Uuid { upper: false }]);
        assert_eq!(pieces("6ec35f89809baf85"), [lower(16)]);
        assert_eq!(pieces("6EC35F89809BAF85"), [Hex { digits: 16, upper: true }]);
        assert_eq!(pieces("C-0x4e89b8729fe1"), [Word, literal("-0x"), lower(12)]);
        assert_eq!(pieces("blk_-5611000350411985689"), [Word, Int]);
        assert_eq!(pieces("35.129519ms"), [Decimal, Word]);
        assert_eq!(pieces("1.2.3"), [Int, literal("."), Int, literal("."), Int]);
        assert_eq!(pieces("007"), [Digits(3)]);
        assert_eq!(pieces("2025-06-02T00:00:02.494Z"), [Time(3)]);
        assert_eq!(pieces("2025-06-02T00:00:02Z"), [Time(0)]);
        assert_eq!(pieces("2025-06-31T00:00:02Z")[0], Int);
        assert_eq!(pieces("192.168.001.1")[0], Int);
        assert_eq!(pieces("plain words"), []);
        assert_eq!(pieces(""), []);
    }

    #[test]
    fn a_number_is_only_what_prints_the_same() {
        assert_eq!(decimal(b"1.10"), Some((110, 2, 4)));
        assert_eq!(decimal(b"-0.5"), Some((-5, 1, 4)));
        assert_eq!(decimal(b"-1.5x"), Some((-15, 1, 4)));
        assert_eq!(decimal(b"0.0"), Some((0, 1, 3)));
        assert_eq!(decimal(b"12"), Some((12, 0, 2)));
        for text in ["-0", "-0.0", "-00.5", "01.5", ".5", "", "-", "9999999999999999999.5"] {
            assert_eq!(decimal(text.as_bytes()).filter(|d| d.2 == text.len()), None, "{text}");
        }
        assert_eq!(int(b"0123"), None);
        assert_eq!(ipv4(b"1.2.3.4.5"), None);
        assert_eq!(ipv4(b"1.2.3.256"), None);
        assert_eq!(ipv4(b"01.2.3.4"), None);
        assert_eq!(ipv4(b"1.2.3.4."), Some((0x01020304, 7)));
    }

    #[test]
    fn shapes_come_back() {
        for text in ["C-0x4e89b8729fe1 10.1.2.3 1.5 007 2025-06-02T00:00:02.494Z 5", "a1b2c3D 7"] {
            let shape = Shape::of(text.as_bytes()).unwrap();
            let mut out = Vec::new();
            shape.put(&mut out);
            let mut r = Reader::new(&out);
            assert_eq!(Shape::read(&mut r), Ok(shape));
            assert!(r.is_empty());
        }
        assert!(Shape::read(&mut Reader::new(&[1, 2, 19])).is_err());
        assert!(Shape::read(&mut Reader::new(&[1, 11])).is_err());
        assert!(Shape::read(&mut Reader::new(&[33])).is_err());
    }
}
