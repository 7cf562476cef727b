use proptest::prelude::*;

use super::testing::{Columns, columns_of, encode, lines, text};
use super::*;
use crate::codec::page::{Decoder, Encoding, PageHead};
use crate::record::TextVec;

fn decode(
    head: &[u8],
    strips: &[u8],
    rows: usize,
    columns: &Columns,
) -> Result<TextVec, crate::error::Malformed> {
    let mut out = TextVec::new();
    for strip in super::testing::decode(head, strips, rows, columns)? {
        strip.append_to(&mut out);
    }
    Ok(out)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn lines_come_back(lines in lines(), alone: bool) {
        let values = text(&lines);
        let columns = if alone { Columns::new() } else { columns_of(&values) };
        if let Some((head, strips)) = encode(&values, &columns) {
            prop_assert_eq!(decode(&head, &strips, values.len(), &columns), Ok(values));
        } else {
            prop_assert!(lines.len() > 512);
        }
    }

    #[test]
    fn any_bytes_come_back(
        lines in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..20), 0..60),
    ) {
        let values = text(&lines);
        let columns = columns_of(&values);
        let (head, strips) = encode(&values, &columns).unwrap();
        prop_assert_eq!(decode(&head, &strips, values.len(), &columns), Ok(values));
    }

    #[test]
    fn mangled_pages_are_read_or_refused(
        lines in lines(),
        at in any::<prop::sample::Index>(),
        xor in 1u8..,
        cut in any::<prop::sample::Index>(),
    ) {
        let values = text(&lines);
        let columns = columns_of(&values);
        let Some((head, strips)) = encode(&values, &columns) else { return Ok(()) };
        let mut bad = head.clone();
        bad[at.index(head.len())] ^= xor;
        let _ = decode(&bad, &strips, values.len(), &columns);
        let short = &head[..cut.index(head.len())];
        prop_assert!(decode(short, &strips, values.len(), &columns).is_err());
        if !strips.is_empty() {
            let mut bad = strips.clone();
            bad[at.index(strips.len())] ^= xor;
            let _ = decode(&head, &bad, values.len(), &columns);
            let cut = &strips[..cut.index(strips.len())];
            prop_assert!(decode(&head, cut, values.len(), &columns).is_err());
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
    let (head, strips) = encode(&values, &Columns::new()).unwrap();
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
    assert_eq!(decode(&head, &strips, values.len(), &Columns::new()), Ok(values));
}

#[test]
fn rows_of_templates_of_their_own_are_left_to_plain_text() {
    let lines: Vec<String> = (0..2_000u32)
        .map(|i| {
            format!("{:?}", i.to_string().bytes().map(|b| (b + 49) as char).collect::<String>())
        })
        .collect();
    assert!(encode(&text(&lines), &Columns::new()).is_none());
}

#[test]
fn what_stands_in_another_column_is_referred_to() {
    let id = |i: u64| format!("{:016x}", i.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let lines: Vec<String> =
        (0..3_000).map(|i| format!("[{}] request {}-{} done", i % 5, id(i), i * 1_001)).collect();
    let values = text(&lines);
    let span: Vec<String> = (0..3_000).map(|i| format!("span/{}/1", id(i))).collect();
    let number: Vec<String> = (0..3_000u64).map(|i| (i * 1_001).to_string()).collect();
    let columns = vec![("span", text(&span)), ("other", text(&number)), ("unused", text(&span))];
    let (head, strips) = encode(&values, &columns).unwrap();
    assert!(strips.len() < 2_500, "{}", strips.len());
    let parsed = PageHead::parse(Encoding::Templates, &head, 3_000, &mut Decoder::new()).unwrap();
    let table = parsed.templates().unwrap();
    assert_eq!(table.fields().iter().collect::<Vec<_>>(), [&b"span"[..], b"other"]);
    let slots: Vec<Slot> = table.slots(0).1.iter().map(|placed| placed.slot).collect();
    assert!(matches!(slots[1], Slot::Field { column: 0, piece: 0, len: 16, .. }), "{slots:?}");
    assert!(matches!(slots[2], Slot::Field { column: 1, piece: 0, len: 0, .. }), "{slots:?}");
    assert_eq!(decode(&head, &strips, values.len(), &columns), Ok(values));

    // Columns that are not there, have other rows, other kinds of values or other lengths.
    for bad in [
        Columns::new(),
        vec![("span", text(&span)), ("other", text(&span))],
        vec![("span", text(&vec![""; 3_000])), ("other", text(&number))],
        vec![("span", text(&vec!["span/0/1"; 3_000])), ("other", text(&number))],
    ] {
        assert!(decode(&head, &strips, 3_000, &bad).is_err());
    }
}

#[test]
fn words_and_short_values_stay_where_they_are() {
    let lines: Vec<String> = (0..100).map(|i| format!("user {i} of worker{}x", i * 7)).collect();
    let short: Vec<String> = (0..100).map(|i| i.to_string()).collect();
    let words: Vec<String> = (0..100).map(|i| format!("worker{}x", i * 7)).collect();
    let columns = vec![("short", text(&short)), ("words", text(&words))];
    let (head, _) = encode(&text(&lines), &columns).unwrap();
    let parsed = PageHead::parse(Encoding::Templates, &head, 100, &mut Decoder::new()).unwrap();
    assert!(parsed.fields().is_none());
}
