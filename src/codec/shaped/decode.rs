//! Reads the columns of pieces and prints values from them.

use std::sync::Arc;

use super::super::PAGE_RAW_MAX;
use super::super::bitpack::{unpack, width_of};
use super::super::holes::{ABSENT, EXCEPTIONS, StripHoles};
use super::super::numbers::{decode_numbers, decode_packed};
use super::super::page::Decoder;
use super::super::varint::Reader;
use super::shape::{Piece, Shape, WORD_MAX};
use super::{PLANES, SCALE_MAX, SCALES, SHORTEST, ShapedParams, WORDS_MAX};
use crate::error::Malformed;
use crate::record::{TextVec, Timestamp};

/// Reads the head's parameters.
pub(in crate::codec) fn decode_params(r: &mut Reader<'_>) -> Result<Arc<ShapedParams>, Malformed> {
    let shape = Shape::read(r)?;
    let mut tables = Vec::new();
    for piece in shape.pieces() {
        let mut table = TextVec::new();
        match piece {
            Piece::Literal(_) => continue,
            Piece::Word => {
                let count = r.len(WORDS_MAX)?;
                if count == 0 {
                    return Err(Malformed("table without words"));
                }
                for _ in 0..count {
                    table.push(r.bytes(WORD_MAX)?);
                }
            }
            _ => {}
        }
        tables.push(table);
    }
    Ok(Arc::new(ShapedParams { shape, tables }))
}

/// Decoded columns of a strip.
enum Decoded {
    Numbers(Vec<i64>),
    Decimals(Vec<i64>, Scales),
    Hex(Vec<u8>),
    Words(Vec<u8>),
}

enum Scales {
    All(u8),
    Shortest(u8),
    Each(Vec<u64>),
}

/// Decodes a strip of `rows` rows, a number that the caller has checked.
pub(in crate::codec) fn decode_strip(
    bytes: &[u8],
    rows: usize,
    params: &ShapedParams,
    decoder: &mut Decoder,
) -> Result<TextVec, Malformed> {
    let mut r = Reader::new(bytes);
    let flags = r.u8()?;
    if flags & !(ABSENT | EXCEPTIONS) != 0 {
        return Err(Malformed("unknown flags of shaped values"));
    }
    let holes = StripHoles::decode(&mut r, flags, rows)?;
    let typed = holes.typed(rows);
    let count = typed.as_ref().map_or(rows, |t| t.count());
    let mut columns = Vec::with_capacity(params.tables.len());
    let pieces = params.shape.pieces().iter().filter(|p| !matches!(p, Piece::Literal(_)));
    for (piece, table) in pieces.zip(&params.tables) {
        let mut r = Reader::new(r.bytes(PAGE_RAW_MAX)?);
        columns.push(decode_column(&mut r, piece, table, count, decoder)?);
        r.finish()?;
    }
    r.finish()?;
    let mut out = TextVec::with_capacity(rows, count * 16);
    let mut exceptions = holes.exceptions.iter().peekable();
    let mut next = 0;
    for row in 0..rows {
        if typed.as_ref().is_none_or(|t| t.get(row)) {
            print_row(params, &columns, next, out.open())?;
            next += 1;
        } else if let Some((_, text)) = exceptions.next_if(|(r, _)| *r as usize == row) {
            out.open().extend_from_slice(text);
        }
        out.close();
        if out.bytes().len() > PAGE_RAW_MAX {
            return Err(Malformed("values of a page over their cap"));
        }
    }
    Ok(out)
}

fn decode_column(
    r: &mut Reader<'_>,
    piece: &Piece,
    table: &TextVec,
    count: usize,
    decoder: &mut Decoder,
) -> Result<Decoded, Malformed> {
    Ok(match piece {
        Piece::Literal(_) => return Err(Malformed("literal with a column")),
        Piece::Int => Decoded::Numbers(numbers(r, count, decoder)?),
        Piece::Time(fraction) => {
            let mut numbers = numbers(r, count, decoder)?;
            let unit = power_of_ten(9 - (*fraction).min(9));
            for n in &mut numbers {
                // Times outside of the range have no text; what the encoder reads is inside.
                *n = n.div_euclid(unit).wrapping_mul(unit);
            }
            Decoded::Numbers(numbers)
        }
        Piece::Digits(width) => {
            let numbers = numbers(r, count, decoder)?;
            check_below(&numbers, power_of_ten(*width))?;
            Decoded::Numbers(numbers)
        }
        Piece::Ipv4 => {
            let numbers = numbers(r, count, decoder)?;
            check_below(&numbers, 1 << 32)?;
            Decoded::Numbers(numbers)
        }
        Piece::Decimal => {
            let scale = r.u8()?;
            let scales = match scale & SCALES {
                0 => Scales::All(scale),
                SHORTEST => Scales::Shortest(scale & !SHORTEST),
                _ if scale != SCALES => return Err(Malformed("scale of decimals")),
                _ => {
                    let mut scales = vec![0; count];
                    *r = Reader::new(unpack(r.rest(), 5, &mut scales)?);
                    Scales::Each(scales)
                }
            };
            Decoded::Decimals(numbers(r, count, decoder)?, scales)
        }
        Piece::Hex { .. } | Piece::Uuid { .. } => {
            let width = match piece {
                Piece::Hex { digits, .. } => usize::from(*digits).div_ceil(2),
                _ => 16,
            };
            let mut bytes = Vec::new();
            decoder.zstd.unpack_next(r, count * width, &mut bytes)?;
            if bytes.len() != count * width {
                return Err(Malformed("number of digits is not that of rows"));
            }
            Decoded::Hex(bytes)
        }
        Piece::Word => Decoded::Words(words(r, table.len(), count, decoder)?),
    })
}

fn numbers(r: &mut Reader<'_>, count: usize, decoder: &mut Decoder) -> Result<Vec<i64>, Malformed> {
    let layout = r.u8()?;
    let order = layout & !PLANES;
    if order > 2 {
        return Err(Malformed("unknown layout of numbers"));
    }
    let mut out = vec![0; count];
    if layout & PLANES == 0 {
        decode_numbers(r, order, &mut out)?;
    } else {
        decode_packed(r, order, decoder, &mut out)?;
    }
    Ok(out)
}

fn check_below(numbers: &[i64], end: i64) -> Result<(), Malformed> {
    if numbers.iter().all(|n| (0..end).contains(n)) {
        Ok(())
    } else {
        Err(Malformed("number wider than its piece"))
    }
}

fn words(
    r: &mut Reader<'_>,
    table: usize,
    count: usize,
    decoder: &mut Decoder,
) -> Result<Vec<u8>, Malformed> {
    let mut out = vec![0; count];
    if table < 2 {
        return Ok(out);
    }
    match r.u8()? {
        0 => {
            let mut wide = vec![0u64; count];
            *r = Reader::new(unpack(r.rest(), width_of(table as u64 - 1), &mut wide)?);
            out.iter_mut().zip(wide).for_each(|(to, n)| *to = n.to_le_bytes()[0]);
        }
        1 => decoder.zstd.unpack_next(r, count, &mut out)?,
        _ => return Err(Malformed("unknown mode of words")),
    }
    let max = out.iter().copied().max().unwrap_or(0);
    if out.len() != count || usize::from(max) >= table {
        return Err(Malformed("word past the end of its table"));
    }
    Ok(out)
}

/// 10^n for n up to 18; larger ones are taken for 18.
fn power_of_ten(n: u8) -> i64 {
    10i64.pow(u32::from(n.min(SCALE_MAX)))
}

/// Appends the value of the matching row `row`.
fn print_row(
    params: &ShapedParams,
    columns: &[Decoded],
    row: usize,
    out: &mut Vec<u8>,
) -> Result<(), Malformed> {
    let mut columns = columns.iter().zip(&params.tables);
    for piece in params.shape.pieces() {
        if let Piece::Literal(text) = piece {
            out.extend_from_slice(text);
            continue;
        }
        let missing = Malformed("value past the end of its column");
        match columns.next().ok_or(missing)? {
            (Decoded::Numbers(numbers), _) => {
                print_number(piece, *numbers.get(row).ok_or(missing)?, out);
            }
            (Decoded::Decimals(numbers, scales), _) => {
                let n = *numbers.get(row).ok_or(missing)?;
                match scales {
                    Scales::All(scale) => print_decimal(n, *scale, out)?,
                    Scales::Each(scales) => {
                        let scale = scales.get(row).ok_or(missing)?.to_le_bytes()[0];
                        print_decimal(n, scale, out)?;
                    }
                    Scales::Shortest(scale) => {
                        let (mut n, mut scale) = (n, *scale);
                        while scale > 0 && n % 10 == 0 {
                            (n, scale) = (n / 10, scale - 1);
                        }
                        print_decimal(n, scale, out)?;
                    }
                }
            }
            (Decoded::Hex(bytes), _) => print_hex(piece, bytes, row, out),
            (Decoded::Words(words), table) => {
                out.extend_from_slice(table.get(usize::from(*words.get(row).ok_or(missing)?)));
            }
        }
    }
    Ok(())
}

fn print_number(piece: &Piece, n: i64, out: &mut Vec<u8>) {
    match piece {
        Piece::Digits(width) => print_digits(n.unsigned_abs(), usize::from(*width), out),
        Piece::Ipv4 => {
            let [d, c, b, a, ..] = n.to_le_bytes();
            for (i, group) in [a, b, c, d].into_iter().enumerate() {
                if i > 0 {
                    out.push(b'.');
                }
                print_digits(u64::from(group), 1, out);
            }
        }
        Piece::Time(fraction) => print_time(n, *fraction, out),
        _ => {
            if n < 0 {
                out.push(b'-');
            }
            print_digits(n.unsigned_abs(), 1, out);
        }
    }
}

/// Appends `n` in at least `width` decimal digits.
#[inline]
fn print_digits(mut n: u64, width: usize, out: &mut Vec<u8>) {
    let at = out.len();
    loop {
        out.push(b'0' + (n % 10).to_le_bytes()[0]);
        n /= 10;
        if n == 0 && out.len() - at >= width {
            break;
        }
    }
    if let Some(digits) = out.get_mut(at..) {
        digits.reverse();
    }
}

fn print_decimal(n: i64, scale: u8, out: &mut Vec<u8>) -> Result<(), Malformed> {
    if scale > SCALE_MAX {
        return Err(Malformed("scale of decimals"));
    }
    if n < 0 {
        out.push(b'-');
    }
    let power = power_of_ten(scale).unsigned_abs();
    print_digits(n.unsigned_abs() / power, 1, out);
    if scale > 0 {
        out.push(b'.');
        print_digits(n.unsigned_abs() % power, usize::from(scale), out);
    }
    Ok(())
}

/// Appends the time; `nanos` is a multiple of its last digit's unit.
fn print_time(nanos: i64, fraction: u8, out: &mut Vec<u8>) {
    let second = nanos.div_euclid(1_000_000_000).saturating_mul(1_000_000_000);
    Timestamp::from_nanos(second).write_to(out);
    if fraction > 0 {
        // The text of a whole second ends with its `Z`.
        out.pop();
        out.push(b'.');
        let nanos = nanos.wrapping_sub(second).unsigned_abs();
        let unit = power_of_ten(9 - fraction.min(9)).unsigned_abs();
        print_digits(nanos / unit, usize::from(fraction), out);
        out.push(b'Z');
    }
}

fn print_hex(piece: &Piece, bytes: &[u8], row: usize, out: &mut Vec<u8>) {
    let (digits, upper, dashes) = match piece {
        Piece::Hex { digits, upper } => (usize::from(*digits), *upper, false),
        Piece::Uuid { upper } => (32, *upper, true),
        _ => return,
    };
    let table: &[u8; 16] = if upper { b"0123456789ABCDEF" } else { b"0123456789abcdef" };
    let digit = |n: u8| table.get(usize::from(n & 0xf)).copied().unwrap_or(b'0');
    let width = digits.div_ceil(2);
    let value = bytes.get(row * width..(row + 1) * width).unwrap_or(&[]);
    for (i, b) in value.iter().enumerate() {
        if dashes && matches!(i, 4 | 6 | 8 | 10) {
            out.push(b'-');
        }
        out.push(digit(b >> 4));
        if i * 2 + 1 < digits {
            out.push(digit(*b));
        }
    }
}
