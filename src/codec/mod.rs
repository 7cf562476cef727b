//! LAYER 1: bytes <-> column values. Pure functions; one file per encoding.
//!
//! * [`Encoder`] turns one column of one block into an [`EncodedPage`]; it picks the encoding.
//! * [`PageHead`] reads a page back, one [`Strip`] of at most [`STRIP_ROWS`] rows at a time, with
//!   the help of a [`Decoder`], which keeps what is worth reusing between strips.
//! * [`Bitmap`] is a set of rows.
//! * [`varint`] holds the checked reader of all encoded bytes, [`compress`] the use of zstd.
//!
//! Invariants: what was encoded is what is decoded, byte for byte; an empty value is an absent
//! one; a page holds block-local numbers only, so that it can be copied to another part; a decoder
//! verifies the checksum first, checks each length against a cap before it allocates, and returns
//! [`Malformed`](crate::error::Malformed) for bytes that no encoder wrote.
//!
//! Callers: the part's writer and reader, the stream table, and the scan (for typed strips).

mod bitmap;
mod bitpack;
pub(crate) mod compress;
mod dictionary;
mod encoder;
mod frame;
mod holes;
mod integers;
mod numbers;
mod page;
mod plain;
mod shaped;
pub(crate) mod template;
mod texts;
mod times;
pub(crate) mod varint;

pub(crate) use bitmap::Bitmap;
pub(crate) use encoder::{EncodeOptions, Encoder};
pub(crate) use page::{
    Decoder, EncodedPage, Encoding, PageHead, PageInput, PageStats, Strip, strip_count,
    strip_table_len, verify_strips,
};
pub(crate) use template::{Beside, FIELDS_MAX};

/// The most rows of a strip: the unit of decoding and caching.
pub(crate) const STRIP_ROWS: usize = 2_048;
/// The most rows of a block, and so of a page.
pub(crate) const PAGE_ROWS_MAX: usize = 65_536;
/// The most bytes of all values of a page.
pub(crate) const PAGE_RAW_MAX: usize = 128 << 20;

#[cfg(test)]
mod tests;
