//! Values of one shape: ids, addresses, numbers with units, times in text, and what is joined of
//! these. Each piece is a column of its own.
//!
//! Parameters: the shape, then for each word piece its table: `count varint (1 to 256)`, words as
//! `bytes`. A strip is `flags u8 | holes`, then for each piece that is no literal a column of the
//! matching rows, behind its varint length:
//!
//! * integers, digits, addresses, times (nanoseconds): `layout u8 | numbers`;
//!   bits 0-1 of the layout are the order, bit 2 says "as bytes under zstd";
//! * decimals: `scale u8 | layout u8 | numbers`, where the values are the numbers over 10^scale,
//!   with so many digits behind the point or, with bit 7 of the scale, as few as they need; or
//!   bits 6 and 7 of the scale: `scales, packed in 5 bits`, and the digits of each as an integer;
//! * hexadecimal digits: a packed blob of half a byte each, the first one the high half; an odd
//!   last one is the high half of a byte;
//! * words: nothing if the table has one; else `0 | numbers packed` or `1 | packed blob` of bytes.
//!
//! [`shape`] knows the pieces, [`encode`] and [`decode`] the columns.

mod decode;
mod encode;
mod shape;

use shape::Shape;

use crate::record::TextVec;

pub(super) use decode::{decode_params, decode_strip};
pub(super) use encode::ShapedColumn;

/// The most words of a table.
const WORDS_MAX: usize = 256;
/// The most digits behind the point of a decimal.
const SCALE_MAX: u8 = 18;
/// The fewest digits that give the decimals of a strip.
const SHORTEST: u8 = 0x80;
/// Each decimal of a strip has its own number of digits behind the point.
const SCALES: u8 = 0xc0;
/// A strip's numbers are bytes under zstd.
const PLANES: u8 = 0b100;

/// What a page's strips have in common.
#[derive(Debug, Clone)]
pub(in crate::codec) struct ShapedParams {
    shape: Shape,
    /// The table of each word piece, empty ones for other pieces; literals have none.
    tables: Vec<TextVec>,
}

impl ShapedParams {
    /// Bytes of memory held.
    pub(in crate::codec) fn heap_bytes(&self) -> usize {
        self.tables.iter().map(TextVec::heap_bytes).sum::<usize>() + 1024
    }
}
