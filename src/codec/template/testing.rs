//! Pages of templates for tests, here and above.

use std::sync::Arc;

use proptest::prelude::*;

use super::tokenize::tokenize;
use super::{Beside, TemplateEncoder};
use crate::codec::compress::Compressor;
use crate::codec::page::{Decoder, Encoding, PageHead, StripsBuilder};
use crate::codec::{STRIP_ROWS, Strip};
use crate::error::Malformed;
use crate::record::TextVec;

/// Other columns of a block, by name.
pub(crate) type Columns = Vec<(&'static str, TextVec)>;

/// Head and strips of a page of `values`, whether or not templates suit them; it may refer to
/// `columns`.
pub(crate) fn encode(values: &TextVec, columns: &Columns) -> Option<(Vec<u8>, Vec<u8>)> {
    let (mut strips, mut params) = (StripsBuilder::default(), Vec::new());
    let mut zstd = Compressor::new(1);
    let beside: Vec<Beside<'_>> =
        columns.iter().map(|(name, values)| Beside { name, values }).collect();
    TemplateEncoder::default()
        .encode(values, &beside, &mut zstd, &mut Compressor::thorough(3), &mut strips, &mut params)
        .then(|| strips.finish(&params))
}

/// The decoded strips of a page of `rows` rows.
pub(crate) fn decode(
    head: &[u8],
    strips: &[u8],
    rows: usize,
    columns: &Columns,
) -> Result<Vec<Strip>, Malformed> {
    let mut decoder = Decoder::new();
    let head = PageHead::parse(Encoding::Templates, head, rows, &mut decoder)?;
    let start = head.strip_range(0).start;
    let at = |at: u64| usize::try_from(at - start).unwrap();
    let column = |name: &[u8]| columns.iter().find(|(n, _)| n.as_bytes() == name);
    let strip = |i: usize| {
        let range = head.strip_range(i);
        let bytes = strips.get(at(range.start)..at(range.end)).unwrap_or(&[]);
        let rows = i * STRIP_ROWS..i * STRIP_ROWS + head.strip_rows(i);
        let beside = |name: &[u8]| {
            let (_, values) = column(name)?;
            Some(Arc::new(Strip::Text(Arc::new(rows.clone().map(|row| values.get(row)).collect()))))
        };
        let beside: Vec<_> =
            head.fields().into_iter().flat_map(|f| f.iter().filter_map(beside)).collect();
        head.decode_verified(i, bytes, &beside, &mut decoder)
    };
    (0..head.strip_count()).map(strip).collect()
}

/// The decoded strips of a page of `values`, unless nearly all have templates of their own.
pub(crate) fn strips(values: &TextVec, columns: &Columns) -> Option<Vec<Strip>> {
    let (head, strips) = encode(values, columns)?;
    Some(decode(&head, &strips, values.len(), columns).unwrap())
}

/// Columns that hold slots of the lines: the first, the last two, and that of some rows only.
pub(crate) fn columns_of(values: &TextVec) -> Columns {
    let [mut first, mut last, mut some] = [TextVec::new(), TextVec::new(), TextVec::new()];
    let (mut key, mut spans) = (Vec::new(), Vec::new());
    for (row, value) in values.iter().enumerate() {
        spans.clear();
        tokenize(value, 0, &mut key, &mut spans);
        let slot =
            |i: usize| spans.get(i).map_or(&[][..], |s| &value[s.from as usize..s.to as usize]);
        let n = spans.len();
        first.push(slot(0));
        last.push(&[b"/", slot(n.wrapping_sub(1)), b"-", slot(n.wrapping_sub(2))].concat());
        some.push(if row % 3 == 0 { b"" } else { slot(1) });
    }
    vec![("first", first), ("last", last), ("some", some)]
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
pub(crate) fn lines() -> impl Strategy<Value = Vec<String>> {
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

pub(crate) fn text(values: &[impl AsRef<[u8]>]) -> TextVec {
    values.iter().map(AsRef::as_ref).collect()
}
