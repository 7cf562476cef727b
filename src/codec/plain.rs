//! Plain strings: lengths and bytes, each strip compressed alone.
//!
//! A strip is `lengths (packed blob behind its length) | bytes (packed blob)`. The lengths are
//! `width u8` and one little-endian number of that many bytes for each row; width 0 has one
//! varint, the length of all.

use super::PAGE_RAW_MAX;
use super::compress::Compressor;
use super::page::Decoder;
use super::varint::{Reader, put_bytes, put_varint};
use crate::error::Malformed;
use crate::record::TextVec;

/// Appends the strip of rows `from..to`.
pub(super) fn encode_strip(
    values: &TextVec,
    (from, to): (usize, usize),
    zstd: &mut Compressor,
    out: &mut Vec<u8>,
) {
    let ends = values.ends().get(from..to).unwrap_or(&[]);
    let start = match from.checked_sub(1) {
        None => 0,
        Some(p) => values.ends().get(p).copied().unwrap_or(0),
    };
    let end = ends.last().copied().unwrap_or(start);
    let mut lengths = Vec::with_capacity(1 + ends.len() * 2);
    encode_lengths(start, ends, &mut lengths);
    let mut blob = Vec::with_capacity(lengths.len());
    zstd.pack(&lengths, &mut blob);
    put_bytes(out, &blob);
    zstd.pack(values.bytes().get(start as usize..end as usize).unwrap_or(&[]), out);
}

fn encode_lengths(start: u32, ends: &[u32], out: &mut Vec<u8>) {
    let lengths =
        || std::iter::once(&start).chain(ends).zip(ends).map(|(from, to)| to.wrapping_sub(*from));
    let max = lengths().max().unwrap_or(0);
    if lengths().all(|len| len == max) {
        out.push(0);
        put_varint(out, u64::from(max));
        return;
    }
    let width: u8 = match max {
        0..=0xff => 1,
        0x100..=0xffff => 2,
        _ => 4,
    };
    out.push(width);
    match width {
        1 => out.extend(lengths().map(|len| len.to_le_bytes()[0])),
        2 => lengths().for_each(|len| {
            let [low, high, ..] = len.to_le_bytes();
            out.extend_from_slice(&[low, high]);
        }),
        _ => lengths().for_each(|len| out.extend_from_slice(&len.to_le_bytes())),
    }
}

/// Decodes a strip of `rows` rows.
pub(super) fn decode_strip(
    bytes: &[u8],
    rows: usize,
    decoder: &mut Decoder,
) -> Result<TextVec, Malformed> {
    let mut r = Reader::new(bytes);
    let lengths_max = rows * 4 + 16;
    let blob = r.bytes(lengths_max + 16)?;
    let Decoder { zstd, scratch } = decoder;
    zstd.unpack_into(blob, lengths_max, scratch)?;
    let ends = decode_lengths(scratch, rows)?;
    let text = zstd.unpack(r.rest(), PAGE_RAW_MAX)?;
    TextVec::from_parts(ends, text)
}

fn decode_lengths(bytes: &[u8], rows: usize) -> Result<Vec<u32>, Malformed> {
    let mut r = Reader::new(bytes);
    let width = r.u8()?;
    let mut ends = Vec::with_capacity(rows);
    let mut end = 0u32;
    let mut push = |len: u32| -> Result<(), Malformed> {
        end = end.checked_add(len).ok_or(Malformed("strings of 4 GiB"))?;
        ends.push(end);
        Ok(())
    };
    match width {
        0 => {
            let len = r.varint32()?;
            (0..rows).try_for_each(|_| push(len))?;
        }
        1 => r.take(rows)?.iter().try_for_each(|b| push(u32::from(*b)))?,
        2 => (r.take(rows * 2)?.as_chunks().0.iter())
            .try_for_each(|b| push(u32::from(u16::from_le_bytes(*b))))?,
        4 => (r.take(rows * 4)?.as_chunks().0.iter())
            .try_for_each(|b| push(u32::from_le_bytes(*b)))?,
        _ => return Err(Malformed("unknown width of lengths")),
    }
    r.finish()?;
    Ok(ends)
}
