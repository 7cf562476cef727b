//! The reader against a naive normaliser on a general JSON parser.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::*;
use crate::ingest::{IngestOptions, RejectReason};
use crate::record::{Limits, Timestamp};

const NOW: i64 = 1_000;

type Fields = BTreeMap<String, String>;

fn lines(options: IngestOptions) -> JsonLines {
    JsonLines::new(RowWriter::new(Arc::new(options), Timestamp::from_nanos(NOW)))
}

/// All fields of each row, labels included, with `_time` in nanoseconds.
fn rows_of(batch: &RowBatch) -> Vec<Fields> {
    let text = |b: &[u8]| String::from_utf8(b.to_vec()).unwrap();
    let rows = batch.iter().map(|row| {
        let mut fields = Fields::new();
        for (name, value) in row.fields() {
            assert!(!value.is_empty());
            let old = fields.insert(batch.names()[name as usize].clone(), text(value));
            assert_eq!(old, None, "a name twice in a row");
        }
        for (name, value) in row.stream_key().unwrap().labels() {
            assert_eq!(fields.insert(name.clone(), text(value)), None);
        }
        fields.insert("_time".to_owned(), row.time.as_nanos().to_string());
        fields
    });
    rows.collect()
}

fn ingest_with(options: IngestOptions, input: &[u8]) -> (Vec<Fields>, IngestReport) {
    let mut report = IngestReport::default();
    let mut rows = Vec::new();
    let mut lines = lines(options);
    let mut sink = |batch: RowBatch, _: &mut IngestReport| {
        rows.extend(rows_of(&batch));
        Ok(())
    };
    lines.parse_chunk(input, &mut report, &mut sink).unwrap();
    lines.flush(&mut report, &mut sink).unwrap();
    assert_eq!(report.accepted, rows.len() as u64);
    assert_eq!(report.bytes, input.len() as u64);
    (rows, report)
}

fn ingest(input: &str) -> (Vec<Fields>, IngestReport) {
    ingest_with(IngestOptions::new(), input.as_bytes())
}

fn fields(pairs: &[(&str, &str)]) -> Fields {
    let mut all: Fields = pairs.iter().map(|(n, v)| (n.to_string(), v.to_string())).collect();
    all.entry("_time".to_owned()).or_insert(NOW.to_string());
    all
}

/// The members of an object in source order.
struct Members(Vec<(String, Box<RawValue>)>);

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct Collect;
        impl<'de> Visitor<'de> for Collect {
            type Value = Members;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(
                self,
                mut map: A,
            ) -> std::result::Result<Members, A::Error> {
                let mut all = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    all.push(entry);
                }
                Ok(Members(all))
            }
        }
        deserializer.deserialize_map(Collect)
    }
}

/// Flattens an object; `None` if a name is too long.
fn naive_flatten(
    prefix: Option<&str>,
    object: &str,
    level: usize,
    max_name: usize,
) -> Option<Vec<(String, String)>> {
    let mut out = Vec::new();
    let Members(members) = serde_json::from_str(object).unwrap();
    for (name, raw) in members {
        let name = prefix.map_or(name.clone(), |p| format!("{p}.{name}"));
        if name.len() > max_name {
            return None;
        }
        let raw = raw.get();
        match raw.as_bytes()[0] {
            b'{' => {
                let flat = if level < 32 {
                    naive_flatten(Some(&name), raw, level + 1, max_name)
                } else {
                    None
                };
                match flat {
                    Some(inner) if inner.is_empty() => out.push((name, String::new())),
                    Some(inner) => out.extend(inner),
                    None if raw[1..].trim_start().starts_with('}') => {
                        out.push((name, String::new()));
                    }
                    None => out.push((name, raw.to_owned())),
                }
            }
            b'"' => out.push((name, serde_json::from_str(raw).unwrap())),
            b'n' => out.push((name, String::new())),
            _ => out.push((name, raw.to_owned())),
        }
    }
    Some(out)
}

/// The row of a line: `None` if it is rejected.
fn naive_row(line: &str, max_name: usize) -> Option<Fields> {
    serde_json::from_str::<&RawValue>(line).ok()?;
    if !line.trim_start().starts_with('{') {
        return None;
    }
    let mut row = Fields::new();
    for (name, value) in naive_flatten(None, line, 1, max_name)? {
        row.insert(name, value);
    }
    row.retain(|_, v| !v.is_empty());
    if row.is_empty() {
        return None;
    }
    row.insert("_time".to_owned(), NOW.to_string());
    Some(row)
}

fn assert_agrees(line: &str, max_name: usize) {
    let limits = Limits { max_name_bytes: max_name, ..Limits::default() };
    let (rows, report) = ingest_with(IngestOptions::new().limits(limits), line.as_bytes());
    let want: Vec<Fields> = naive_row(line, max_name).into_iter().collect();
    assert_eq!(rows, want, "{line:?}");
    let blank = line.trim_ascii().is_empty();
    assert_eq!(report.rejected(), u64::from(want.is_empty() && !blank), "{line:?}");
}

fn json_space() -> impl Strategy<Value = &'static str> {
    prop_oneof![8 => Just(""), 1 => Just(" "), 1 => Just("\t"), 1 => Just(" \r ")]
}

fn json_name() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => "[abc]",
        2 => "a\\.[bc]",
        1 => "(\\\\u0061|\\\\\"|\\\\\\\\|\\\\u00e9|\u{e9}|x y|:){1,2}",
        1 => "[a-z]{10,40}",
        1 => Just(String::new()),
    ]
}

fn json_scalar() -> impl Strategy<Value = String> {
    let escape = "\\\\[\"\\\\/bfnrt]|\\\\u00[0-7][0-9a-fA-F]|\\\\ud83d\\\\ude00|\\\\u20AC";
    let escaped = format!("\"([a-z\u{1f600}]{{0,9}}({escape})){{0,4}}[a-z]{{0,9}}\"");
    prop_oneof![
        "\"[a-z {}:,\u{e9}\u{20ac}]{0,20}\"",
        proptest::string::string_regex(&escaped).unwrap(),
        "-?(0|[1-9][0-9]{0,25})(\\.[0-9]{1,5})?([eE][+-]?[0-9]{1,3})?",
        prop::sample::select(vec!["true", "false", "null", "\"\"", "{}", "[]", "{ }", "[ ]"])
            .prop_map(str::to_owned),
        // Not JSON.
        prop::sample::select(vec![
            "01",
            "1.",
            ".5",
            "+1",
            "-",
            "1e",
            "tru",
            "nul",
            "\"a",
            "\"\\q\"",
            "\"\\u12\"",
            "\"\u{1}\"",
            "\"\t\"",
            "NaN",
            "'a'",
            "",
            "\"\\",
            "{,}",
            "[1,]",
            "{\"a\"}",
            "{\"a\":}",
            "[1 2]",
            "{\"a\":1,}",
            "{a:1}",
            "[}",
            "{]",
            "\"a\"b",
            "truefalse",
        ])
        .prop_map(str::to_owned),
    ]
}

/// JSON values with white space; now and then not JSON.
fn json_value() -> impl Strategy<Value = String> {
    let valid_mostly = prop_oneof![
        12 => json_scalar().prop_filter("json", |s| {
            serde_json::from_str::<&RawValue>(s).is_ok()
        }),
        1 => json_scalar(),
    ];
    valid_mostly.prop_recursive(4, 24, 4, |inner| {
        let member = (json_space(), json_name(), json_space(), json_space(), inner.clone());
        let member = member.prop_map(|(a, n, b, c, v)| format!("{a}\"{n}\"{b}:{c}{v}{a}"));
        prop_oneof![
            prop::collection::vec(member, 0..5).prop_map(|m| format!("{{{}}}", m.join(","))),
            (prop::collection::vec(inner, 0..4), json_space())
                .prop_map(|(v, s)| format!("[{s}{}{s}]", v.join(&format!("{s},{s}")))),
        ]
    })
}

fn json_line() -> impl Strategy<Value = String> {
    let member = (json_name(), json_value()).prop_map(|(n, v)| format!("\"{n}\":{v}"));
    let object = prop::collection::vec(member, 0..6).prop_map(|m| format!("{{{}}}", m.join(",")));
    prop_oneof![12 => object, 1 => json_value()]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn agrees_with_the_naive_normaliser(
        line in json_line(), before in json_space(), after in json_space()
    ) {
        assert_agrees(&format!("{before}{line}{after}"), 30);
        assert_agrees(&line, 1_024);
    }

    #[test]
    fn agrees_on_damaged_lines(
        line in json_line(), at: prop::sample::Index, with in "[\"{}:,a0\\\\ ]?"
    ) {
        let mut at = at.index(line.len() + 1);
        while !line.is_char_boundary(at) {
            at -= 1;
        }
        assert_agrees(&line[..at], 1_024);
        let tail = line[at..].chars().skip(1).collect::<String>();
        let damaged = format!("{}{with}{tail}", &line[..at]);
        // The general parser refuses lone surrogates, but only when it decodes the string.
        let raw = serde_json::from_str::<&RawValue>(&damaged).is_ok();
        prop_assume!(!raw || serde_json::from_str::<serde_json::Value>(&damaged).is_ok());
        assert_agrees(&damaged, 1_024);
    }

    #[test]
    fn many_lines_are_the_lines_one_by_one(
        input in prop::collection::vec(json_line(), 0..20),
        read_at in 1usize..50,
        target in 1usize..200,
    ) {
        let text = input.join("\n");
        let (rows, report) = ingest(&text);
        let want: Vec<Fields> = input.iter().filter_map(|l| naive_row(l, 1_024)).collect();
        prop_assert_eq!(&rows, &want);
        // Read in small pieces and handed on in small batches, it is the same.
        let writer = RowWriter::new(Arc::default(), Timestamp::from_nanos(NOW));
        let mut small = JsonLines::new(writer.with_target_bytes(target));
        let mut small_report = IngestReport::default();
        let mut small_rows = Vec::new();
        let mut sink = |batch: RowBatch, _: &mut IngestReport| {
            small_rows.extend(rows_of(&batch));
            Ok(())
        };
        let pieces = Pieces { rest: text.as_bytes(), len: read_at };
        read_json_lines(pieces, Path::new("x"), &mut small, &mut small_report, &mut sink).unwrap();
        prop_assert_eq!(&small_rows, &want);
        prop_assert_eq!(small_report, report);
    }

    #[test]
    fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        ingest_with(IngestOptions::new(), &bytes);
    }
}

struct Pieces<'a> {
    rest: &'a [u8],
    len: usize,
}

impl Read for Pieces<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let len = self.len.min(self.rest.len()).min(buffer.len());
        buffer[..len].copy_from_slice(&self.rest[..len]);
        self.rest = &self.rest[len..];
        Ok(len)
    }
}

#[test]
fn text_is_kept_as_it_stands() {
    let (rows, report) = ingest(concat!(
        "{\"_time\":\"1970-01-01T00:00:01Z\",\"_msg\":\"a\\n\\u00e9\\/\",\"n\":1.50,\"z\":-0,",
        "\"big\":123456789012345678901,\"arr\":[1, \"two\",null ,{\"k\":[true]}],\"t\":true,",
        "\"no\":null,\"e\":\"\",\"o\":{},\"ea\":[],\"x y\":{\"p:q\":{\"r\":1e5}}}\n\n  \r\n",
        "{\"b\":2,\"a\":{\"b\":1},\"a.b\":3,\"b\":4}\r\n",
    ));
    let first = fields(&[
        ("_time", "1000000000"),
        ("_msg", "a\n\u{e9}/"),
        ("n", "1.50"),
        ("z", "-0"),
        ("big", "123456789012345678901"),
        ("arr", "[1, \"two\",null ,{\"k\":[true]}]"),
        ("t", "true"),
        ("ea", "[]"),
        ("x y.p:q.r", "1e5"),
    ]);
    assert_eq!(rows, [first, fields(&[("b", "4"), ("a.b", "3")])]);
    assert_eq!((report.lines, report.missing_time, report.rejected()), (4, 1, 0));
}

#[test]
fn deep_objects_are_kept_as_text() {
    let nested = |levels: usize| format!("{}1{}", "{\"k\":".repeat(levels), "}".repeat(levels));
    let name = |levels: usize| vec!["k"; levels].join(".");
    assert_eq!(ingest(&nested(32)).0, [fields(&[(&name(32), "1")])]);
    assert_eq!(ingest(&nested(34)).0, [fields(&[(&name(32), &nested(2))])]);
    // Deeper than general parsers go.
    assert_eq!(ingest(&nested(100_000)).0, [fields(&[(&name(32), &nested(99_968))])]);
    let brackets = format!("{}{}", "[".repeat(200_000), "]".repeat(200_000));
    assert_eq!(ingest(&format!("{{\"a\":{brackets}}}")).0, [fields(&[("a", &brackets)])]);
}

#[test]
fn lone_surrogates_and_bad_bytes_are_replaced_and_counted() {
    let mut input = br#"{"a":"\ud800x","b":"\udc00\ud83d\ude00"}"#.to_vec();
    input.extend_from_slice(b"\n{\"a\":\"\xff\xfe\"}\n{\"a\":1}");
    let (rows, report) = ingest_with(IngestOptions::new(), &input);
    assert_eq!(rows[0], fields(&[("a", "\u{fffd}x"), ("b", "\u{fffd}\u{1f600}")]));
    assert_eq!(rows[1], fields(&[("a", "\u{fffd}\u{fffd}")]));
    assert_eq!((rows.len(), report.invalid_utf8), (3, 2));
}

#[test]
fn bad_lines_are_counted_and_skipped() {
    let (rows, report) = ingest(concat!(
        "\u{feff}{\"a\":1}\n[1]\n{\"a\":1\n{}\n{\"_time\":\"soon\"}\n{\"_time\":\"\"}\n",
        "\"x\"\nnope\n{\"_time\":5}\n{\"b\":2}",
    ));
    assert_eq!(rows.len(), 3);
    let got: Vec<_> = report
        .rejections()
        .map(|(reason, r)| (reason, r.examples.iter().map(|e| e.line).collect::<Vec<_>>()))
        .collect();
    let want = [
        (RejectReason::InvalidJson, vec![3, 8]),
        (RejectReason::NotAnObject, vec![2, 7]),
        (RejectReason::Empty, vec![4, 6]),
        (RejectReason::InvalidTime, vec![5]),
    ];
    assert_eq!(got, want);
    assert!(report.to_string().contains("line 3: object without end at byte 7"), "{report}");
}

#[test]
fn long_lines_are_rejected_unbuffered() {
    let limits = Limits { max_entry_bytes: 100, ..Limits::default() };
    let long = format!("{{\"a\":\"{}\"}}", "x".repeat(3 << 20));
    let input = format!("{{\"a\":1}}\n{long}\n{{\"b\":2}}\n{long}");
    let options = IngestOptions::new().limits(limits);
    let mut report = IngestReport::default();
    let mut rows = 0;
    let mut sink = |batch: RowBatch, _: &mut IngestReport| {
        rows += batch.len();
        Ok(())
    };
    let mut lines = lines(options.clone());
    read_json_lines(input.as_bytes(), Path::new("x"), &mut lines, &mut report, &mut sink).unwrap();
    assert_eq!((rows, report.lines, report.bytes), (2, 4, input.len() as u64));
    let (reason, rejected) = report.rejections().next().unwrap();
    assert_eq!((reason, rejected.count), (RejectReason::EntryTooLong, 2));
    assert_eq!(rejected.examples.iter().map(|e| e.line).collect::<Vec<_>>(), [2, 4]);
    assert_eq!(ingest_with(options, input.as_bytes()).1.rejected(), 2);
}

#[test]
fn an_error_of_the_sink_ends_the_input() {
    let mut lines = lines(IngestOptions::new());
    let mut report = IngestReport::default();
    let mut sink = |_: RowBatch, _: &mut IngestReport| Err(Error::Closed);
    let input = &b"{\"a\":1}"[..];
    let got = read_json_lines(input, Path::new("x"), &mut lines, &mut report, &mut sink);
    assert!(matches!(got, Err(Error::Closed)));
}

/// Speed over a file of JSON lines named by `LOGLITH_JSON_FILE`; run in release mode.
#[test]
#[ignore = "a measurement"]
fn speed() {
    let path = std::env::var("LOGLITH_JSON_FILE").unwrap();
    let input = std::fs::read(path).unwrap();
    for round in 0..5 {
        let options =
            IngestOptions::new().stream_fields(["app", "host", "namespace", "pod", "container"]);
        let mut lines = lines(options);
        let mut report = IngestReport::default();
        let (mut rows, mut bytes) = (0, 0);
        let start = std::time::Instant::now();
        let mut sink = |batch: RowBatch, _: &mut IngestReport| {
            rows += batch.len();
            bytes += batch.value_bytes();
            Ok(())
        };
        for chunk in input.chunks(64 << 20) {
            lines.parse_chunk(chunk, &mut report, &mut sink).unwrap();
        }
        lines.flush(&mut report, &mut sink).unwrap();
        let seconds = start.elapsed().as_secs_f64();
        println!(
            "{round}: {:.0} MB/s, {:.3} us a row, {rows} rows, {bytes} value bytes, {} rejected",
            input.len() as f64 / 1e6 / seconds,
            seconds * 1e6 / rows as f64,
            report.rejected()
        );
    }
}
