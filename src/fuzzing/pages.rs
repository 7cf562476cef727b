//! Decoders of pages, behind their checksums.

use super::input::{Input, put_bytes};
use super::rows::rows;
use crate::codec::varint::put_varint;
use crate::codec::{
    Decoder, EncodeOptions, Encoder, Encoding, PAGE_ROWS_MAX, PageHead, PageInput, strip_count,
};
use crate::io::checksum;
use crate::record::TextVec;

/// Pages of more bytes of text are not encoded again.
const TEXT_MAX: usize = 1 << 18;

/// Encoding u8, rows u16, the strips behind their lengths u16, the parameters.
pub(super) fn run(input: &[u8]) {
    let mut input = Input::new(input);
    let Ok(encoding) = Encoding::from_u8(input.u8()) else { return };
    let rows = usize::from(input.u16()) + 1;
    let mut head = Vec::new();
    let mut strips = Vec::new();
    if encoding != Encoding::Const {
        for _ in 0..strip_count(rows) {
            let strip = input.bytes();
            put_varint(&mut head, strip.len() as u64);
            head.extend_from_slice(&checksum(strip).to_le_bytes());
            strips.push(strip);
        }
    }
    head.extend_from_slice(input.rest());
    let mut decoder = Decoder::new();
    let Ok(page) = PageHead::parse(encoding, &head, rows, &mut decoder) else { return };
    let mut text = TextVec::new();
    for i in 0..page.strip_count() {
        let bytes = strips.get(i).copied().unwrap_or(&[]);
        let Ok(strip) = page.decode_strip(i, bytes, &[], &mut decoder) else { return };
        assert_eq!(strip.len(), page.strip_rows(i), "rows of a strip");
        strip.append_to(&mut text);
        if text.bytes().len() > TEXT_MAX {
            return;
        }
    }
    assert_eq!(text.len(), rows, "rows of a page");
    let level = i32::from(text.len().is_multiple_of(2));
    assert_eq!(again(&text, level), text, "what was decoded is what is encoded again");
}

/// Values encoded and decoded.
fn again(values: &TextVec, level: i32) -> TextVec {
    let mut encoder = Encoder::new(EncodeOptions { level, stays: level > 1, verify: true });
    let page = encoder.encode_page(&PageInput::alone(values)).expect("values are encoded exactly");
    let mut decoder = Decoder::new();
    let head = PageHead::parse(page.encoding, &page.head, values.len(), &mut decoder);
    let head = head.expect("a head that was written");
    let mut out = TextVec::new();
    for i in 0..head.strip_count() {
        let bytes = page.strip(&head, i).unwrap_or(&[]);
        let strip =
            head.decode_strip(i, bytes, &[], &mut decoder).expect("a strip that was written");
        strip.append_to(&mut out);
    }
    out
}

pub(super) fn seeds() -> Vec<Vec<u8>> {
    let mut out = Vec::new();
    for (kind, names) in [
        (0, &["_msg", "level", "host", "n", "size", "dur"][..]),
        (1, &["n", "id", "ip", "rare"]),
        (2, &["at", "same", "field3"]),
    ] {
        for (count, level) in [(60, 1), (60, 0), (2_100, 3)] {
            let rows = rows(kind, count);
            for name in names {
                let value = |row: &'_ crate::part::plain::Plain| row.fields.get(*name).cloned();
                let mut values = TextVec::new();
                rows.iter().for_each(|row| values.push(&value(row).unwrap_or_default()));
                out.push(seed(&values, level));
            }
        }
    }
    for count in [1usize, 50, 2_049] {
        let times: Vec<i64> = (0..count as i64).map(|i| i / 3 * 1_000_000 + i % 2).collect();
        let runs = [count.div_ceil(2) as u32, (count / 2) as u32];
        let runs = &runs[..if count > 1 { 2 } else { 1 }];
        let mut encoder = Encoder::new(EncodeOptions { level: 1, stays: false, verify: true });
        let page = encoder.encode_times(&times, runs).expect("times are encoded exactly");
        out.push(encoded(&page, count));
    }
    out.retain(|seed| seed.len() < 8_192);
    out
}

fn seed(values: &TextVec, level: i32) -> Vec<u8> {
    let mut encoder = Encoder::new(EncodeOptions { level, stays: level > 1, verify: true });
    let page = encoder.encode_page(&PageInput::alone(values)).expect("values are encoded exactly");
    encoded(&page, values.len())
}

fn encoded(page: &crate::codec::EncodedPage, rows: usize) -> Vec<u8> {
    assert!(rows <= PAGE_ROWS_MAX, "a page");
    let mut out = vec![page.encoding.as_u8()];
    out.extend_from_slice(&((rows - 1) as u16).to_le_bytes());
    let mut params = page.head.as_slice();
    if page.encoding != Encoding::Const {
        let mut decoder = Decoder::new();
        let head = PageHead::parse(page.encoding, &page.head, rows, &mut decoder).expect("a head");
        let mut table = Vec::new();
        for i in 0..head.strip_count() {
            let strip = page.strip(&head, i).unwrap_or(&[]);
            put_bytes(&mut out, strip);
            put_varint(&mut table, strip.len() as u64);
            table.extend_from_slice(&[0; 8]);
        }
        params = &page.head[table.len()..];
    }
    out.extend_from_slice(params);
    out
}
