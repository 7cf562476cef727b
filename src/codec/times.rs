//! The `_time` column.

use super::STRIP_ROWS;
use super::compress::Compressor;
use super::page::Decoder;
use crate::error::Malformed;

/// Appends the strip of `times`.
pub(super) fn encode_strip(times: &[i64], zstd: &mut Compressor, out: &mut Vec<u8>) {
    let raw: Vec<u8> = times.iter().flat_map(|t| t.to_le_bytes()).collect();
    zstd.pack(&raw, out);
}

/// Decodes a strip of `rows` rows.
pub(super) fn decode_strip(
    bytes: &[u8],
    rows: usize,
    decoder: &mut Decoder,
) -> Result<Vec<i64>, Malformed> {
    let Decoder { zstd, scratch } = decoder;
    zstd.unpack_into(bytes, STRIP_ROWS * 8, scratch)?;
    let (times, rest) = scratch.as_chunks();
    if times.len() != rows || !rest.is_empty() {
        return Err(Malformed("number of times is not that of rows"));
    }
    Ok(times.iter().map(|t| i64::from_le_bytes(*t)).collect())
}
