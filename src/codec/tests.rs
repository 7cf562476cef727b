//! Every page decodes to what was encoded, and hostile bytes are refused.
#![allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap)]

use proptest::prelude::*;

use super::*;
use crate::record::TextVec;

/// Decodes a page to text.
fn decode(page: &EncodedPage, rows: usize) -> TextVec {
    let mut decoder = Decoder::new();
    let head = PageHead::parse(page.encoding, &page.head, rows, &mut decoder).unwrap();
    assert_eq!(head.page_len(), page.len() as u64);
    let mut out = TextVec::new();
    for i in 0..head.strip_count() {
        let bytes = page.strip(&head, i).unwrap();
        let strip = head.decode_strip(i, bytes, &mut decoder).unwrap();
        assert_eq!(strip.len(), head.strip_rows(i));
        strip.append_to(&mut out);
    }
    out
}

fn encode(values: &TextVec, level: i32) -> EncodedPage {
    let mut encoder = Encoder::new(EncodeOptions { level, verify: false });
    encoder.encode_page(&PageInput { values }).unwrap()
}

fn value() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        Just(Vec::new()),
        any::<i64>().prop_map(|n| n.to_string().into_bytes()),
        (-300i64..300).prop_map(|n| n.to_string().into_bytes()),
        prop::sample::select(vec![
            "007",
            "1.10",
            "1_000",
            "-0",
            "+1",
            "0",
            "-1",
            "18446744073709551616",
            "9223372036854775807",
            "9223372036854775808",
            "-9223372036854775808",
            "-9223372036854775809",
            "00000000000000000001",
            "1e3",
            "2024-02-30T25:00:00Z",
            "192.168.001.1",
            " 1",
            "1 ",
            "\u{e4}\u{f6}\u{fc}",
            "\u{1f980}",
            "INFO",
            "-",
        ])
        .prop_map(|s| s.as_bytes().to_vec()),
        prop::collection::vec(any::<u8>(), 0..20),
        "[a-f0-9]{16}".prop_map(String::into_bytes),
    ]
}

/// Columns of one kind of value as well as mixed ones, short and of several strips.
fn column() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let ints = |r: std::ops::Range<i64>| r.prop_map(|n| n.to_string().into_bytes());
    prop_oneof![
        prop::collection::vec(value(), 0..40),
        (prop::collection::vec(value(), 1..6), 0usize..5000)
            .prop_map(|(v, n)| (0..n).map(|i| v[i * i % v.len()].clone()).collect()),
        prop::collection::vec(ints(-5..1000), 0..300),
        prop::collection::vec(prop_oneof![9 => ints(0..100_000), 1 => value()], 2000..2100),
        (ints(0..1), 0usize..5000, -3i64..1000).prop_map(|(_, n, step)| {
            (0..n as i64).map(|i| (i * step + i % 7).to_string().into_bytes()).collect()
        }),
    ]
}

fn text(values: &[Vec<u8>]) -> TextVec {
    values.iter().map(Vec::as_slice).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    #[test]
    fn columns_come_back(values in column(), level in 0i32..3) {
        let values = text(&values);
        let page = encode(&values, level);
        prop_assert_eq!(decode(&page, values.len()), values);
    }

    #[test]
    fn times_come_back(
        times in prop::collection::vec(prop_oneof![any::<i64>(), 0i64..1000], 0..300),
        shift in 0u32..40,
    ) {
        let times: Vec<i64> = times.iter().map(|t| t >> shift).collect();
        let mut encoder = Encoder::new(EncodeOptions { level: 1, verify: true });
        let lens = [times.len() as u32 / 2, times.len() as u32 - times.len() as u32 / 2];
        prop_assert!(encoder.encode_times(&times, &lens).is_ok());
    }

    #[test]
    fn any_head_is_read_or_refused(
        encoding in 0u8..8,
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        rows in 0usize..3000,
    ) {
        if let Ok(encoding) = Encoding::from_u8(encoding) {
            let mut decoder = Decoder::new();
            if let Ok(head) = PageHead::parse(encoding, &bytes, rows, &mut decoder) {
                let _ = head.decode_strip(0, &bytes, &mut decoder);
            }
        }
    }
}

#[test]
fn a_flipped_bit_is_noticed() {
    let values: TextVec =
        ["a", "bb", "ccc", "bb", "\u{e4}"].map(str::as_bytes).into_iter().collect();
    let page = encode(&values, 1);
    let mut decoder = Decoder::new();
    let head = PageHead::parse(page.encoding, &page.head, 5, &mut decoder).unwrap();
    for bit in 0..page.strips.len() * 8 {
        let mut strip = page.strips.clone();
        strip[bit / 8] ^= 1 << (bit % 8);
        assert!(head.decode_strip(0, &strip, &mut decoder).is_err());
    }
    assert!(head.decode_strip(0, &page.strips[1..], &mut decoder).is_err());
    assert!(head.decode_strip(1, &page.strips, &mut decoder).is_err());
}

#[test]
fn constants_live_in_the_head() {
    let values: TextVec = [&b"same"[..]; 5000].into_iter().collect();
    let page = encode(&values, 1);
    assert_eq!((page.encoding, page.len()), (Encoding::Const, 4));
    assert_eq!(decode(&page, 5000), values);
    assert_eq!(page.distinct.unwrap().len(), 1);
}
