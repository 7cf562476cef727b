//! Takes values apart and lays their pieces out as columns.

use super::super::STRIP_ROWS;
use super::super::bitpack::{pack, packed_len, width_of};
use super::super::compress::{Compressor, put_frame};
use super::super::holes::Holes;
use super::super::numbers::{Layout, encode_packed};
use super::super::varint::{put_bytes, put_varint};
use super::shape::{Part, Piece, Shape};
use super::{PLANES, SCALES, SHORTEST, ShapedParams, WORDS_MAX};
use crate::record::TextVec;

/// Values looked at to find the shape.
const CANDIDATES: usize = 4;
/// Values on which a shape is tried first.
const SAMPLE: usize = 48;

/// A column of values that match a shape.
#[derive(Debug)]
pub(in crate::codec) struct ShapedColumn {
    params: ShapedParams,
    columns: Vec<PartColumn>,
    holes: Holes,
    /// Matching rows before each strip.
    starts: Vec<usize>,
}

/// What matching rows have in the place of a piece.
#[derive(Debug)]
enum PartColumn {
    Numbers(Vec<i64>),
    Decimals(Vec<i64>, Vec<u8>),
    /// Bytes of a value, and the packed digits of all.
    Hex(usize, Vec<u8>),
    Words(Vec<u8>),
}

/// How the columns of a page's strips are laid out; as many as there are columns.
pub(in crate::codec) type Plan = Vec<Layout>;

impl ShapedColumn {
    /// Takes a column apart; `None` if its values have no common shape. Cheap in that case.
    pub(in crate::codec) fn of(values: &TextVec) -> Option<ShapedColumn> {
        let shape = find_shape(values)?;
        let columns = shape.pieces().iter().filter_map(PartColumn::new).collect::<Vec<_>>();
        let tables = vec![TextVec::new(); columns.len()];
        let params = ShapedParams { shape, tables };
        let rows = values.len();
        let mut column =
            ShapedColumn { params, columns, holes: Holes::default(), starts: Vec::new() };
        let mut parts = Vec::new();
        let mut matched = 0;
        for (row, value) in (0u32..).zip(values.iter()) {
            if (row as usize).is_multiple_of(STRIP_ROWS) {
                column.starts.push(matched);
            }
            if !value.is_empty()
                && column.params.shape.matches(value, &mut parts)
                && column.push(&parts)
            {
                matched += 1;
            } else if !column.holes.add(row, value, rows) {
                return None;
            }
        }
        Some(column)
    }

    /// Adds a row; false, and nothing is added, if a table is full.
    fn push(&mut self, parts: &[Part<'_>]) -> bool {
        let mut codes = [0u8; 32];
        for ((part, table), code) in parts.iter().zip(&mut self.params.tables).zip(&mut codes) {
            let Part::Word(word) = part else { continue };
            let known = table.iter().position(|w| w == *word);
            let Some(at) = known.or_else(|| (table.len() < WORDS_MAX).then_some(table.len()))
            else {
                return false;
            };
            if known.is_none() {
                table.push(word);
            }
            *code = at.to_le_bytes()[0];
        }
        for ((part, column), code) in parts.iter().zip(&mut self.columns).zip(codes) {
            match (part, column) {
                (Part::Number(n), PartColumn::Numbers(numbers)) => numbers.push(*n),
                (Part::Decimal(n, scale), PartColumn::Decimals(numbers, scales)) => {
                    numbers.push(*n);
                    scales.push(*scale);
                }
                (Part::Hex(digits), PartColumn::Hex(_, bytes)) => put_hex(digits, bytes),
                (Part::Word(_), PartColumn::Words(words)) => words.push(code),
                _ => {}
            }
        }
        true
    }

    /// Whether the values are little more than hexadecimal digits, which no order compresses.
    pub(in crate::codec) fn is_hex(&self) -> bool {
        self.columns.iter().any(|c| matches!(c, PartColumn::Hex(width, _) if *width >= 6))
    }

    /// Appends the head's parameters.
    pub(in crate::codec) fn encode_params(&self, out: &mut Vec<u8>) {
        self.params.shape.put(out);
        for (table, column) in self.params.tables.iter().zip(&self.columns) {
            if matches!(column, PartColumn::Words(_)) {
                put_varint(out, table.len() as u64);
                table.iter().for_each(|word| put_bytes(out, word));
            }
        }
    }

    /// How the strips are laid out best, judged by the one of rows `from..to`.
    pub(in crate::codec) fn plan(&self, rows: (usize, usize), zstd: &mut Compressor) -> Plan {
        let (from, to) = self.matching(rows);
        let layout = |column: &PartColumn| match column {
            PartColumn::Numbers(numbers) | PartColumn::Decimals(numbers, _) => {
                Layout::best(numbers.get(from..to).unwrap_or(&[]), zstd)
            }
            PartColumn::Hex(width, bytes) => {
                let bytes = bytes.get(from * width..to * width).unwrap_or(&[]);
                let smaller = zstd.frame(bytes).is_some_and(|f| f.len() * 33 < bytes.len() * 32);
                Layout { order: 0, planes: smaller }
            }
            PartColumn::Words(_) => Layout::default(),
        };
        self.columns.iter().map(layout).collect()
    }

    /// The matching rows of the rows `from..to`; `from` is that of a strip.
    fn matching(&self, (from, to): (usize, usize)) -> (usize, usize) {
        let mut count = 0;
        if self.holes.none_in(from, to) {
            count = to - from;
        } else {
            self.holes.for_typed((from, to), |_| count += 1);
        }
        let start = self.starts.get(from / STRIP_ROWS).copied().unwrap_or(0);
        (start, start + count)
    }

    /// Appends the strip of rows `from..to`.
    pub(in crate::codec) fn encode_strip(
        &self,
        values: &TextVec,
        rows: (usize, usize),
        plan: &Plan,
        zstd: &mut Compressor,
        out: &mut Vec<u8>,
    ) {
        let at = out.len();
        out.push(0);
        let flags = self.holes.encode(values, rows, out);
        if let Some(first) = out.get_mut(at) {
            *first = flags;
        }
        let (from, to) = self.matching(rows);
        let mut body = Vec::new();
        for ((column, layout), table) in self.columns.iter().zip(plan).zip(&self.params.tables) {
            body.clear();
            match column {
                PartColumn::Numbers(numbers) => {
                    let mut numbers = numbers.get(from..to).unwrap_or(&[]).to_vec();
                    put_numbers(&mut numbers, *layout, zstd, &mut body);
                }
                PartColumn::Decimals(numbers, scales) => {
                    let numbers = numbers.get(from..to).unwrap_or(&[]);
                    let scales = scales.get(from..to).unwrap_or(&[]);
                    put_decimals(numbers, scales, *layout, zstd, &mut body);
                }
                PartColumn::Hex(width, bytes) => {
                    let bytes = bytes.get(from * width..to * width).unwrap_or(&[]);
                    zstd.pack_if(layout.planes, bytes, &mut body);
                }
                PartColumn::Words(words) => {
                    put_words(words.get(from..to).unwrap_or(&[]), table.len(), zstd, &mut body);
                }
            }
            put_bytes(out, &body);
        }
    }
}

impl PartColumn {
    fn new(piece: &Piece) -> Option<PartColumn> {
        Some(match piece {
            Piece::Literal(_) => return None,
            Piece::Int | Piece::Digits(_) | Piece::Ipv4 | Piece::Time(_) => {
                PartColumn::Numbers(Vec::new())
            }
            Piece::Decimal => PartColumn::Decimals(Vec::new(), Vec::new()),
            Piece::Hex { digits, .. } => {
                PartColumn::Hex(usize::from(*digits).div_ceil(2), Vec::new())
            }
            Piece::Uuid { .. } => PartColumn::Hex(16, Vec::new()),
            Piece::Word => PartColumn::Words(Vec::new()),
        })
    }
}

/// The shape of some value that most others of a sample match.
fn find_shape(values: &TextVec) -> Option<Shape> {
    let sample = |count: usize| {
        let step = (values.len() / count).max(1);
        (0..values.len()).step_by(step).map(|row| values.get(row)).filter(|v| !v.is_empty())
    };
    let mut parts = Vec::new();
    let mut best: (usize, Option<Shape>) = (0, None);
    for value in sample(CANDIDATES).take(CANDIDATES) {
        let Some(shape) = Shape::of(value) else { continue };
        if best.1.as_ref() == Some(&shape) {
            continue;
        }
        let score = sample(SAMPLE).filter(|v| shape.matches(v, &mut parts)).count();
        if score > best.0 {
            best = (score, Some(shape));
        }
    }
    let all = sample(SAMPLE).count();
    best.1.filter(|_| best.0 * 16 >= all * 15)
}

/// Appends digits, two a byte; dashes are left out.
fn put_hex(digits: &[u8], out: &mut Vec<u8>) {
    let mut high = None;
    for b in digits.iter().filter(|b| **b != b'-') {
        // Letters of both cases have bit 6, and their low half is 1 to 6.
        let nibble = (b & 0xf) + 9 * (b >> 6);
        match high.take() {
            None => high = Some(nibble << 4),
            Some(h) => out.push(h | nibble),
        }
    }
    out.extend(high);
}

fn put_numbers(numbers: &mut [i64], layout: Layout, zstd: &mut Compressor, out: &mut Vec<u8>) {
    let at = out.len();
    out.push(layout.order);
    if encode_packed(numbers, layout, zstd, out)
        && let Some(first) = out.get_mut(at)
    {
        *first |= PLANES;
    }
}

fn put_decimals(
    numbers: &[i64],
    scales: &[u8],
    layout: Layout,
    zstd: &mut Compressor,
    out: &mut Vec<u8>,
) {
    let most = scales.iter().copied().max().unwrap_or(0);
    let raise = |(n, scale): (&i64, &u8)| {
        10i64.checked_pow(u32::from(most - scale)).and_then(|power| n.checked_mul(power))
    };
    let raised: Option<Vec<i64>> = numbers.iter().zip(scales).map(raise).collect();
    let shortest = numbers.iter().zip(scales).all(|(n, scale)| *scale == 0 || n % 10 != 0);
    match raised {
        Some(mut raised) if scales.iter().all(|s| *s == most) => {
            out.push(most);
            put_numbers(&mut raised, layout, zstd, out);
        }
        Some(mut raised) if shortest => {
            out.push(most | SHORTEST);
            put_numbers(&mut raised, layout, zstd, out);
        }
        _ => {
            out.push(SCALES);
            let scales: Vec<u64> = scales.iter().map(|s| u64::from(*s)).collect();
            pack(&scales, 5, out);
            put_numbers(&mut numbers.to_vec(), layout, zstd, out);
        }
    }
}

fn put_words(words: &[u8], table: usize, zstd: &mut Compressor, out: &mut Vec<u8>) {
    if table < 2 {
        return;
    }
    let width = width_of(table as u64 - 1);
    if let Some(frame) = zstd.frame(words)
        && frame.len() + 4 < packed_len(words.len(), width)
    {
        out.push(1);
        put_frame(words.len(), frame, out);
        return;
    }
    out.push(0);
    let words: Vec<u64> = words.iter().map(|w| u64::from(*w)).collect();
    pack(&words, width, out);
}
