//! Dictionary: each distinct value once in the head, its number for each row.
//!
//! The head's parameters are `count varint | values`, in one of the forms of [`texts`].
//! A strip is `mode u8` and one of: 0 = codes, packed in the bits that `count - 1` needs; 1 = runs:
//! `runs varint | codes (packed) | lengths less one (varints)`; 2 = one packed blob of the codes'
//! low bytes, and then their high bytes if there are more than 256 values.

use std::sync::Arc;

use foldhash::fast::RandomState;
use hashbrown::HashTable;

use super::bitpack::{pack, packed_len, unpack32, width_of};
use super::compress::Compressor;
use super::page::{Decoder, Strip};
use super::shaped::ShapedColumn;
use super::varint::{Reader, put_varint};
use super::{STRIP_ROWS, texts};
use crate::error::Malformed;
use crate::record::TextVec;

/// The most values of a dictionary.
pub(super) const DICTIONARY_MAX: usize = 65_536;
/// Dictionaries of as many values are tried as values of one shape.
const SHAPED_MIN: usize = 32;
/// Dictionaries of as many values are front-coded.
const FRONT_MIN: usize = 32;
/// Dictionaries of so many values are always sorted by bytes.
const SORTED_MAX: usize = 256;
/// Codes are tried as bytes under zstd if packing needs at least this many bytes.
const ZSTD_MIN: usize = 48;

const PACKED: u8 = 0;
const RUNS: u8 = 1;
const BYTES: u8 = 2;

/// A column as numbers of its distinct values.
#[derive(Debug)]
pub(super) struct DictColumn {
    /// The number of each row's value.
    pub(super) codes: Vec<u32>,
    /// The distinct values, in any order.
    pub(super) dictionary: TextVec,
}

impl DictColumn {
    /// Numbers the values of a column in the order in which they come; `None` if a dictionary
    /// would not pay, since there are more values than `most`, or too many for the rows.
    pub(super) fn of(values: &TextVec, most: usize, state: &RandomState) -> Option<DictColumn> {
        use std::hash::BuildHasher;
        let most = most.min(DICTIONARY_MAX);
        let mut table: HashTable<u32> = HashTable::new();
        let mut codes: Vec<u32> = Vec::with_capacity(values.len());
        let mut dictionary = TextVec::new();
        let mut last: (&[u8], u32) = (&[], u32::MAX);
        for (row, value) in values.iter().enumerate() {
            if value == last.0 && last.1 != u32::MAX {
                codes.push(last.1);
                continue;
            }
            let hash = state.hash_one(value);
            let same = |code: &u32| dictionary.get(*code as usize) == value;
            let code = match table.find(hash, same) {
                Some(code) => *code,
                None => {
                    let code = u32::try_from(dictionary.len()).ok()?;
                    if dictionary.len() >= most || too_many(dictionary.len(), row) {
                        return None;
                    }
                    dictionary.push(value);
                    let rehash = |code: &u32| state.hash_one(dictionary.get(*code as usize));
                    table.insert_unique(hash, code, rehash);
                    code
                }
            };
            codes.push(code);
            last = (value, code);
        }
        Some(DictColumn { codes, dictionary })
    }

    /// Whether there are so many distinct values that a dictionary probably does not pay.
    pub(super) fn has_many(&self) -> bool {
        self.dictionary.len() * 4 > self.codes.len()
    }

    /// A page of many values seldom takes fewer bytes: sorted, front-coded and compressed, texts
    /// take an eighth.
    pub(super) fn least(&self) -> usize {
        self.dictionary.bytes().len() / 8 + self.codes.len() / 2
    }

    /// Puts the dictionary in bytewise order.
    pub(super) fn sort(&mut self) {
        let count = u32::try_from(self.dictionary.len()).unwrap_or(0);
        let mut order: Vec<u32> = (0..count).collect();
        let value = |code: u32| self.dictionary.get(code as usize);
        order.sort_unstable_by(|a, b| value(*a).cmp(value(*b)));
        let mut renumber = vec![0u32; order.len()];
        let mut sorted = TextVec::with_capacity(order.len(), self.dictionary.bytes().len());
        for (new, old) in (0u32..).zip(&order) {
            sorted.push(value(*old));
            if let Some(to) = renumber.get_mut(*old as usize) {
                *to = new;
            }
        }
        for code in &mut self.codes {
            *code = renumber.get(*code as usize).copied().unwrap_or(0);
        }
        self.dictionary = sorted;
    }

    /// The head's parameters. Sorts the values where that makes them smaller, so this comes
    /// before any strip.
    pub(super) fn params(&mut self, zstd: &mut Compressor, heads: &mut Compressor) -> Vec<u8> {
        let mut out = Vec::new();
        put_varint(&mut out, self.dictionary.len() as u64);
        let shaped = if self.dictionary.len() < SHAPED_MIN {
            None
        } else {
            ShapedColumn::of(&self.dictionary)
        };
        let few = self.dictionary.len() <= SORTED_MAX;
        match shaped {
            Some(shaped) if shaped.is_hex() || !zstd.is_thorough() => {
                texts::put_shaped(&self.dictionary, &shaped, zstd, &mut out);
            }
            shaped => {
                if few || zstd.is_thorough() {
                    self.sort();
                }
                let shaped = shaped.and_then(|_| ShapedColumn::of(&self.dictionary));
                if let Some(shaped) = shaped {
                    texts::put_shaped(&self.dictionary, &shaped, zstd, &mut out);
                } else if self.dictionary.len() >= FRONT_MIN && zstd.is_thorough() {
                    texts::put_front(&self.dictionary, heads, &mut out);
                } else {
                    texts::put_plain(&self.dictionary, zstd, &mut out);
                }
            }
        }
        out
    }

    /// Appends the strip of rows `from..to`.
    pub(super) fn encode_strip(
        &self,
        (from, to): (usize, usize),
        zstd: &mut Compressor,
        out: &mut Vec<u8>,
    ) {
        let codes = self.codes.get(from..to).unwrap_or(&[]);
        encode_codes(codes, self.dictionary.len(), zstd, out);
    }
}

/// Appends the codes of a strip, all below `count`.
pub(super) fn encode_codes(codes: &[u32], count: usize, zstd: &mut Compressor, out: &mut Vec<u8>) {
    let width = code_width(count);
    let runs = codes.chunk_by(|a, b| a == b);
    let run_count = runs.clone().count();
    let mut best = packed_len(codes.len(), width);
    let runs_len = packed_len(run_count, width) + run_count + 2;
    let by_runs = runs_len < best;
    best = best.min(runs_len);
    if best >= ZSTD_MIN && zstd.level() > 0 {
        let mut bytes: Vec<u8> = codes.iter().map(|c| c.to_le_bytes()[0]).collect();
        if width > 8 {
            bytes.extend(codes.iter().map(|c| c.to_le_bytes()[1]));
        }
        if let Some(frame) = zstd.frame(&bytes)
            && frame.len() + 4 < best
        {
            out.push(BYTES);
            super::compress::put_frame(bytes.len(), frame, out);
            return;
        }
    }
    if by_runs {
        out.push(RUNS);
        put_varint(out, run_count as u64);
        let firsts: Vec<u64> =
            runs.clone().map(|run| run.first().map_or(0, |c| u64::from(*c))).collect();
        pack(&firsts, width, out);
        runs.for_each(|run| put_varint(out, run.len() as u64 - 1));
    } else {
        out.push(PACKED);
        let wide: Vec<u64> = codes.iter().map(|c| u64::from(*c)).collect();
        pack(&wide, width, out);
    }
}

/// Whether the first `rows` rows have so many distinct values that a dictionary cannot pay.
fn too_many(distinct: usize, rows: usize) -> bool {
    rows >= 512 && distinct * 4 > rows * 3
}

fn code_width(count: usize) -> u32 {
    width_of((count as u64).saturating_sub(1))
}

/// Reads the head's parameters.
pub(super) fn decode_params(
    r: &mut Reader<'_>,
    decoder: &mut Decoder,
) -> Result<Arc<TextVec>, Malformed> {
    let count = r.len(DICTIONARY_MAX)?;
    if count == 0 {
        return Err(Malformed("empty dictionary"));
    }
    texts::decode(r, count, decoder).map(Arc::new)
}

/// Decodes a strip of `rows` rows.
pub(super) fn decode_strip(
    bytes: &[u8],
    rows: usize,
    dictionary: &Arc<TextVec>,
    decoder: &mut Decoder,
) -> Result<Strip, Malformed> {
    let codes = decode_codes(bytes, rows, dictionary.len(), decoder)?;
    Ok(Strip::Codes { codes: Arc::new(codes), dictionary: Arc::clone(dictionary) })
}

/// Reads the codes of a strip of `rows` rows; all are below `count`.
pub(super) fn decode_codes(
    bytes: &[u8],
    rows: usize,
    count: usize,
    decoder: &mut Decoder,
) -> Result<Vec<u32>, Malformed> {
    let width = code_width(count);
    let mut r = Reader::new(bytes);
    let mut codes = vec![0u32; rows];
    match r.u8()? {
        PACKED => r = Reader::new(unpack32(r.rest(), width, &mut codes)?),
        RUNS => decode_runs(&mut r, width, &mut codes)?,
        BYTES => {
            let Decoder { zstd, scratch } = decoder;
            zstd.unpack_into(r.take(r.rest().len())?, STRIP_ROWS * 2, scratch)?;
            let planes = if width > 8 { 2 } else { 1 };
            if scratch.len() != rows * planes {
                return Err(Malformed("number of codes is not that of rows"));
            }
            let (low, high) = scratch.split_at(rows);
            codes.iter_mut().zip(low).for_each(|(code, b)| *code = u32::from(*b));
            codes.iter_mut().zip(high).for_each(|(code, b)| *code |= u32::from(*b) << 8);
        }
        _ => return Err(Malformed("unknown mode of codes")),
    }
    r.finish()?;
    // One pass without a branch for each code.
    let max = codes.iter().copied().max().unwrap_or(0);
    if max as usize >= count && rows > 0 {
        return Err(Malformed("code past the end of its dictionary"));
    }
    Ok(codes)
}

fn decode_runs(r: &mut Reader<'_>, width: u32, codes: &mut [u32]) -> Result<(), Malformed> {
    let mut firsts = vec![0u32; r.len(codes.len())?];
    *r = Reader::new(unpack32(r.rest(), width, &mut firsts)?);
    let mut rest = codes;
    for code in firsts {
        let len = r.len(STRIP_ROWS)? + 1;
        let (run, after) =
            rest.split_at_mut_checked(len).ok_or(Malformed("runs of more rows than the strip"))?;
        run.fill(code);
        rest = after;
    }
    if rest.is_empty() { Ok(()) } else { Err(Malformed("runs of fewer rows than the strip")) }
}
