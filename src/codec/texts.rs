//! Distinct values, as they stand in the head of a dictionary page.
//!
//! `form u8`, then: 0 = a plain strip; 1 = front-coded: `lengths shared with the value before, a
//! byte each (packed blob behind its length) | the rest of each value, as a plain strip`; 2 = the
//! parameters of shaped values, behind their length, and one strip of them.

use super::compress::Compressor;
use super::page::Decoder;
use super::shaped::{self, ShapedColumn};
use super::varint::{Reader, put_bytes};
use super::{PAGE_RAW_MAX, plain};
use crate::error::Malformed;
use crate::record::TextVec;

const PLAIN: u8 = 0;
const FRONT: u8 = 1;
const SHAPED: u8 = 2;

/// Appends the values as they are; fast.
pub(super) fn put_plain(values: &TextVec, zstd: &mut Compressor, out: &mut Vec<u8>) {
    out.push(PLAIN);
    plain::encode_strip(values, (0, values.len()), zstd, out);
}

/// Appends the values without what each shares with the one before; small if they are sorted.
pub(super) fn put_front(values: &TextVec, zstd: &mut Compressor, out: &mut Vec<u8>) {
    out.push(FRONT);
    let mut shared = Vec::with_capacity(values.len());
    let mut rest = TextVec::with_capacity(values.len(), values.bytes().len() / 2);
    let mut last: &[u8] = &[];
    for value in values.iter() {
        let same = last.iter().zip(value).take_while(|(a, b)| a == b).count();
        let len = u8::try_from(same).unwrap_or(u8::MAX);
        shared.push(len);
        rest.push(value.get(usize::from(len)..).unwrap_or(&[]));
        last = value;
    }
    let mut blob = Vec::new();
    zstd.pack(&shared, &mut blob);
    put_bytes(out, &blob);
    plain::encode_strip(&rest, (0, rest.len()), zstd, out);
}

/// Appends values of one shape.
pub(super) fn put_shaped(
    values: &TextVec,
    column: &ShapedColumn,
    zstd: &mut Compressor,
    out: &mut Vec<u8>,
) {
    out.push(SHAPED);
    let mut params = Vec::new();
    column.encode_params(&mut params);
    put_bytes(out, &params);
    let all = (0, values.len());
    column.encode_strip(values, all, &column.plan(all, zstd), zstd, out);
}

/// Reads `count` values, a number that the caller has checked against its cap.
pub(super) fn decode(
    r: &mut Reader<'_>,
    count: usize,
    decoder: &mut Decoder,
) -> Result<TextVec, Malformed> {
    match r.u8()? {
        PLAIN => plain::decode_strip(r.take(r.rest().len())?, count, decoder),
        FRONT => decode_front(r, count, decoder),
        SHAPED => {
            let mut params = Reader::new(r.bytes(PAGE_RAW_MAX)?);
            let shape = shaped::decode_params(&mut params)?;
            params.finish()?;
            shaped::decode_strip(r.take(r.rest().len())?, count, &shape, decoder)
        }
        _ => Err(Malformed("unknown form of a dictionary")),
    }
}

fn decode_front(
    r: &mut Reader<'_>,
    count: usize,
    decoder: &mut Decoder,
) -> Result<TextVec, Malformed> {
    let blob = r.bytes(count + 16)?;
    let shared = decoder.unpack(blob, count)?;
    let rest = plain::decode_strip(r.take(r.rest().len())?, count, decoder)?;
    if shared.len() != count {
        return Err(Malformed("shared lengths of other values"));
    }
    let mut out = TextVec::with_capacity(count, rest.bytes().len() * 2);
    let mut start = 0;
    for (len, tail) in shared.iter().zip(rest.iter()) {
        let end = out.bytes().len();
        let len = usize::from(*len);
        if len > end - start {
            return Err(Malformed("more shared bytes than the value before has"));
        }
        if end + len + tail.len() > PAGE_RAW_MAX {
            return Err(Malformed("values of a page over their cap"));
        }
        out.open().extend_from_within(start..start + len);
        out.open().extend_from_slice(tail);
        out.close();
        start = end;
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn values() -> impl Strategy<Value = Vec<String>> {
        let value = prop_oneof!["[ab]{0,6}", "(abc){0,120}", "[a-f0-9]{8}", "10[.]0[.]0[.][0-9]"];
        prop::collection::vec(value, 0..60)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]
        #[test]
        fn values_come_back_in_every_form(
            values in values(),
            sort in any::<bool>(),
            flip in any::<usize>(),
        ) {
            let mut values = values;
            if sort {
                values.sort();
            }
            let values: TextVec = values.iter().map(|v| v.as_bytes()).collect();
            let mut zstd = Compressor::thorough(3);
            let mut forms = vec![Vec::new(), Vec::new()];
            put_plain(&values, &mut zstd, &mut forms[0]);
            put_front(&values, &mut zstd, &mut forms[1]);
            if let Some(column) = ShapedColumn::of(&values) {
                let mut form = Vec::new();
                put_shaped(&values, &column, &mut zstd, &mut form);
                forms.push(form);
            }
            for mut form in forms {
                let got = decode(&mut Reader::new(&form), values.len(), &mut Decoder::new());
                prop_assert_eq!(got.as_ref(), Ok(&values));
                let at = flip % form.len();
                form[at] ^= 1 << (flip % 8);
                let _ = decode(&mut Reader::new(&form), values.len(), &mut Decoder::new());
            }
        }
    }
}
