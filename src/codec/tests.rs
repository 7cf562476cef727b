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
        let strip = head.decode_strip(i, bytes, &[], &mut decoder).unwrap();
        assert_eq!(strip.len(), head.strip_rows(i));
        strip.append_to(&mut out);
    }
    out
}

fn encode(values: &TextVec, level: i32) -> EncodedPage {
    let mut encoder = Encoder::new(EncodeOptions { level, stays: level > 1, verify: false });
    encoder.encode_page(&PageInput::alone(values)).unwrap()
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
        shaped_value(),
    ]
}

/// Values that look like those of typed columns, and some that nearly do.
fn shaped_value() -> impl Strategy<Value = Vec<u8>> {
    shapes().prop_flat_map(|shape| shape).prop_map(String::into_bytes)
}

/// A strategy for values of one shape.
fn shapes() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "[0-9a-f]{32}",
        "[0-9A-F]{7}",
        "[0-9a-fA-F]{8}",
        "[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}",
        "req-[0-9A-F]{8}-[0-9A-F]{4}-4[0-9A-F]{3}-[0-9A-F]{4}-[0-9A-F]{12}",
        "(10|192|8)[.][0-9]{1,3}[.][0-9]{1,3}[.][0-9]{1,2}",
        "10[.][0-9]{1,2}[.]1[.][0-9]{1,2}:[0-9]{2,5}",
        "-?[0-9]{1,3}[.][0-9]{1,6}(ms|s|\u{b5}s)",
        "-?[0-9]{1,18}[.]?[0-9]{0,6}",
        "2025-0[1-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-5][0-9][.][0-9]{3}Z",
        "1677-09-21T00:12:4[0-9][.][0-9]{9}Z",
        "2025-01-02T03:04:[0-5][0-9]Z",
        "(C|S)-0x[0-9a-f]{12}",
        "blk_-?[1-9][0-9]{18}",
        "[a-z]{1,3}[0-9]{1,3}",
        "0[0-9]{5}",
    ])
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
        shapes().prop_flat_map(|shape| prop::collection::vec(
            prop_oneof![40 => shape.prop_map(String::into_bytes), 1 => value()],
            0..400,
        )),
        shapes().prop_flat_map(|shape| prop::collection::vec(
            prop_oneof![200 => shape.prop_map(String::into_bytes), 1 => value()],
            2000..2200,
        )),
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
    fn mangled_strips_are_read_or_refused(
        values in column(),
        level in 0i32..4,
        at in any::<usize>(),
        xor in 1u8..,
        keep in any::<usize>(),
    ) {
        // The decoders themselves, without the checksum before them.
        let values = text(&values);
        let page = encode(&values, level);
        let mut decoder = Decoder::new();
        let mut head = page.head.clone();
        if !head.is_empty() {
            let at = at % head.len();
            head[at] ^= xor;
            let _ = PageHead::parse(page.encoding, &head, values.len(), &mut decoder);
        }
        let head = PageHead::parse(page.encoding, &page.head, values.len(), &mut decoder).unwrap();
        if !page.strips.is_empty() {
            let mut strip = page.strip(&head, 0).unwrap().to_vec();
            let at = at % strip.len();
            strip[at] ^= xor;
            let _ = head.decode_verified(0, &strip, &[], &mut decoder);
            strip.truncate(keep % strip.len());
            let _ = head.decode_verified(0, &strip, &[], &mut decoder);
        }
    }

    #[test]
    fn stats_are_facts(values in column()) {
        let column = text(&values);
        let stats = encode(&column, 1).stats;
        let present: Vec<&Vec<u8>> = values.iter().filter(|v| !v.is_empty()).collect();
        prop_assert_eq!(stats.rows as usize, values.len());
        prop_assert_eq!(stats.present as usize, present.len());
        prop_assert_eq!(stats.min_len as usize, present.iter().map(|v| v.len()).min().unwrap_or(0));
        prop_assert_eq!(stats.max_len as usize, present.iter().map(|v| v.len()).max().unwrap_or(0));
        let numbers: Option<Vec<i64>> =
            present.iter().map(|v| std::str::from_utf8(v).ok()?.parse().ok()).collect();
        if let Some((min, max)) = stats.int_range {
            let numbers = numbers.unwrap();
            prop_assert_eq!(numbers.iter().min(), Some(&min));
            prop_assert_eq!(numbers.iter().max(), Some(&max));
        }
    }

    #[test]
    fn columns_come_back(values in column(), level in 0i32..4) {
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
        let mut encoder = Encoder::new(EncodeOptions { level: 1, stays: false, verify: true });
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
                let _ = head.decode_strip(0, &bytes, &[], &mut decoder);
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
        assert!(head.decode_strip(0, &strip, &[], &mut decoder).is_err());
    }
    assert!(head.decode_strip(0, &page.strips[1..], &[], &mut decoder).is_err());
    assert!(head.decode_strip(1, &page.strips, &[], &mut decoder).is_err());
}

#[test]
fn constants_live_in_the_head() {
    let values: TextVec = [&b"same"[..]; 5000].into_iter().collect();
    let page = encode(&values, 1);
    assert_eq!((page.encoding, page.len()), (Encoding::Const, 4));
    assert_eq!(decode(&page, 5000), values);
    assert_eq!(page.distinct.unwrap().len(), 1);
}

/// `n` values made by `f`.
fn made(n: usize, f: impl Fn(usize) -> String) -> TextVec {
    (0..n).map(f).map(String::into_bytes).collect::<Vec<_>>().iter().map(Vec::as_slice).collect()
}

#[test]
fn the_encoding_follows_the_values() {
    let kind = |values: &TextVec| encode(values, 1).encoding;
    let spread = |i: usize| i.wrapping_mul(2_654_435_761) % 1_000_003;
    assert_eq!(kind(&made(5000, |i| spread(i).to_string())), Encoding::Integers);
    assert_eq!(kind(&made(5000, |i| format!("{:08}x", spread(i)))), Encoding::Shaped);
    let letters = |n: usize| n.to_string().bytes().map(|b| (b + 49) as char).collect::<String>();
    let text = |i: usize| [letters(spread(i)), letters(spread(i + 7))].join(" ");
    assert_eq!(kind(&made(5000, |i| text(i).repeat(1 + i % 3))), Encoding::Plain);
    assert_eq!(kind(&made(5000, |i| format!("v{}", spread(i) % 300))), Encoding::Dictionary);
    let few = made(5000, |i| if i % 500 == 9 { "n/a".into() } else { spread(i).to_string() });
    let page = encode(&few, 1);
    assert_eq!(page.encoding, Encoding::Integers);
    assert_eq!(page.stats.int_range, None);
    assert_eq!(decode(&page, 5000), few);
    let counter = encode(&made(5000, |i| (1_000_000 + i * 17).to_string()), 1);
    assert_eq!(counter.encoding, Encoding::Integers);
    assert!(counter.len() < 200, "{}", counter.len());
    assert_eq!(counter.stats.int_range, Some((1_000_000, 1_084_983)));
}

#[test]
fn values_of_one_shape_take_the_bits_that_they_need() {
    let spread = |i: usize| i.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let size = |f: &dyn Fn(usize) -> String| {
        let page = encode(&made(4096, f), 3);
        assert_eq!(page.encoding, Encoding::Shaped);
        page.len()
    };
    let id = |i: usize| format!("{:016x}", spread(i));
    assert!(size(&id) < 4096 * 8 + 100, "{}", size(&id));
    let uuid = |i: usize| {
        let (a, b) = (spread(i), spread(i + 9999));
        let (c, d) = (b >> 48, b & 0xffff_ffff_ffff);
        format!("{:08x}-{:04x}-{:04x}-{c:04x}-{d:012x}", a >> 32, a >> 16 & 0xffff, a & 0xffff)
    };
    assert!(size(&uuid) < 4096 * 16 + 100, "{}", size(&uuid));
    let peer = |i: usize| {
        let n = spread(i);
        format!("10.{}.{}.{}:{}", n & 255, n >> 8 & 255, n >> 16 & 255, 32768 + (n >> 32 & 0x7fff))
    };
    assert!(size(&peer) < 4096 * 5 + 400, "{}", size(&peer));
    let took = |i: usize| format!("{}.{:03}ms", spread(i) >> 58, spread(i) >> 20 & 511);
    assert!(size(&took) < 4096 * 2 + 400, "{}", size(&took));
    let time = |i: usize| format!("2025-06-02T00:{:02}:{:02}.{:03}Z", i / 100, i % 60, i % 1000);
    assert!(size(&time) < 4096 * 3, "{}", size(&time));
}

#[test]
fn no_page_is_much_larger_than_its_text() {
    let noise = |i: usize| format!("{:x}", i.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    for n in [1, 2, 3, 10, 100, 3000] {
        let values = made(n, noise);
        let page = encode(&values, 1);
        assert!(page.len() <= values.bytes().len() + n + 32, "{n} rows: {}", page.len());
    }
}

#[test]
fn one_huge_value_comes_back() {
    let mut values = TextVec::new();
    values.push(b"small");
    values.push(&vec![b'x'; 3 << 20]);
    assert_eq!(decode(&encode(&values, 1), 2), values);
    assert_eq!(decode(&encode(&values, 0), 2), values);
}
