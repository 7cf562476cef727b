use proptest::prelude::*;

use super::testing::{encode, lines, text};
use super::*;
use crate::codec::page::{Decoder, Encoding, PageHead};
use crate::record::TextVec;

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
