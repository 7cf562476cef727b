use proptest::prelude::*;

use super::slot::Slot;
use super::*;
use crate::codec::compress::Compressor;
use crate::codec::page::{Decoder, Encoding, PageHead, StripsBuilder};
use crate::record::TextVec;

/// Head and strips of a page of `values`, whether or not templates suit them.
fn encode(values: &TextVec) -> Option<(Vec<u8>, Vec<u8>)> {
    let (mut strips, mut params) = (StripsBuilder::default(), Vec::new());
    let mut zstd = Compressor::new(1);
    TemplateEncoder::default()
        .encode(values, &mut zstd, &mut strips, &mut params)
        .then(|| strips.finish(&params))
}

fn decode(head: &[u8], strips: &[u8], rows: usize) -> Result<TextVec, crate::error::Malformed> {
    let mut decoder = Decoder::new();
    let head = PageHead::parse(Encoding::Templates, head, rows, &mut decoder)?;
    let start = head.strip_range(0).start;
    let mut out = TextVec::new();
    for i in 0..head.strip_count() {
        let range = head.strip_range(i);
        let at = |at: u64| usize::try_from(at - start).unwrap();
        let bytes = strips.get(at(range.start)..at(range.end)).unwrap_or(&[]);
        head.decode_verified(i, bytes, &mut decoder)?.append_to(&mut out);
    }
    Ok(out)
}

/// A value of a slot, or what looks like one.
fn value() -> impl Strategy<Value = String> {
    prop_oneof![
        (0u64..3000).prop_map(|n| n.to_string()),
        any::<u64>().prop_map(|n| n.to_string()),
        (0u32..100).prop_map(|n| format!("{n:02}")),
        any::<u32>().prop_map(|n| format!("{n:08x}")),
        any::<u32>().prop_map(|n| format!("0x{n:X}")),
        any::<u128>().prop_map(|n| format!("{n:032x}")),
        (0u8..5).prop_map(|n| format!("v{n}ms")),
        prop::sample::select(vec![
            "",
            "0",
            "00",
            "a",
            "1a",
            "beef",
            "\0",
            "\0\0",
            "7\0",
            "\u{e4}1",
            "-1",
            "_1_",
            "x",
            "18446744073709551616",
            "9999999999999999999",
            "00000000000000000000",
            "mhxgb",
        ])
        .prop_map(str::to_string),
    ]
}

/// Lines of a few templates, with values in them.
fn lines() -> impl Strategy<Value = Vec<String>> {
    let templates = prop::collection::vec(
        prop::sample::select(vec![
            "",
            "{}",
            "{}{}",
            "took {} ms",
            "a {} b {} c {}",
            "[{}] {}:{}:{} x{}y",
            "{}-{}-{}",
            "done",
            "conn {} from {} port {} id={} id={}",
            "\u{e4}{}\u{1f980} {}",
            "{} {} {}",
        ]),
        1..5,
    );
    (
        templates,
        prop::collection::vec((any::<u8>(), prop::collection::vec(value(), 5)), 0..200),
        any::<bool>(),
    )
        .prop_map(|(templates, rows, repeat)| {
            let times = if repeat { 15 } else { 1 };
            let lines = rows.iter().map(|(pick, values)| {
                let mut values = values.iter();
                let template = templates[*pick as usize % templates.len()];
                let pieces: Vec<&str> = template.split("{}").collect();
                let mut line = pieces[0].to_string();
                for piece in &pieces[1..] {
                    line.push_str(values.next().map_or("", String::as_str));
                    line.push_str(piece);
                }
                line
            });
            std::iter::repeat_n(lines, times).flatten().collect()
        })
}

fn text(values: &[impl AsRef<[u8]>]) -> TextVec {
    values.iter().map(AsRef::as_ref).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn lines_come_back(lines in lines()) {
        let values = text(&lines);
        if let Some((head, strips)) = encode(&values) {
            prop_assert_eq!(decode(&head, &strips, values.len()), Ok(values));
        } else {
            prop_assert!(lines.len() > 512);
        }
    }

    #[test]
    fn any_bytes_come_back(
        lines in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..20), 0..60),
    ) {
        let values = text(&lines);
        let (head, strips) = encode(&values).unwrap();
        prop_assert_eq!(decode(&head, &strips, values.len()), Ok(values));
    }

    #[test]
    fn mangled_pages_are_read_or_refused(
        lines in lines(),
        at in any::<prop::sample::Index>(),
        xor in 1u8..,
        cut in any::<prop::sample::Index>(),
    ) {
        let values = text(&lines);
        let Some((head, strips)) = encode(&values) else { return Ok(()) };
        let mut bad = head.clone();
        bad[at.index(head.len())] ^= xor;
        let _ = decode(&bad, &strips, values.len());
        prop_assert!(decode(&head[..cut.index(head.len())], &strips, values.len()).is_err());
        if !strips.is_empty() {
            let mut bad = strips.clone();
            bad[at.index(strips.len())] ^= xor;
            let _ = decode(&head, &bad, values.len());
            prop_assert!(decode(&head, &strips[..cut.index(strips.len())], values.len()).is_err());
        }
    }
}

#[test]
fn values_are_typed_and_not_text() {
    let lines: Vec<String> = (0..5_000u64)
        .map(|i| {
            format!(
                "worker {} took {}ms for {:016x} (again {:016x})",
                i % 7,
                100 + i * 37 % 900,
                i * i,
                i * i
            )
        })
        .collect();
    let values = text(&lines);
    let (head, strips) = encode(&values).unwrap();
    // Ten bits, eight bytes and less than three bits a row.
    assert!(strips.len() < 5_000 * 10, "{}", strips.len());
    assert!(head.len() < 300, "{}", head.len());
    let parsed = PageHead::parse(Encoding::Templates, &head, 5_000, &mut Decoder::new()).unwrap();
    let table = parsed.templates().unwrap();
    assert_eq!(
        table.texts().iter().collect::<Vec<_>>(),
        [&b"worker \0 took \0ms for \0 (again \0)"[..]]
    );
    let slots: Vec<Slot> = table.slots(0).1.iter().map(|placed| placed.slot).collect();
    assert_eq!(slots[1], Slot::Int { digits: 0, base: 100, width: 10 });
    assert_eq!(slots[2], Slot::Hex { digits: 16, upper: false });
    assert_eq!(slots[3], Slot::Same { of: 2 });
    assert_eq!(decode(&head, &strips, values.len()), Ok(values));
}

#[test]
fn rows_of_templates_of_their_own_are_left_to_plain_text() {
    let lines: Vec<String> = (0..2_000u32)
        .map(|i| {
            format!("{:?}", i.to_string().bytes().map(|b| (b + 49) as char).collect::<String>())
        })
        .collect();
    assert!(encode(&text(&lines)).is_none());
}
