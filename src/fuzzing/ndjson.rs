//! Lines of JSON against a general parser and a plain reading of the rules.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::ingest::{IngestOptions, IngestReport, JsonLines, RowWriter};
use crate::record::{RowBatch, Timestamp};

const NOW: i64 = 1_000;
/// Nested deeper, values are not compared: the general parser gives up at 128 levels.
const DEPTH_MAX: usize = 60;
/// The default limit of names, in bytes, and that of fields of a row.
const NAME_MAX: usize = 1_024;
const FIELDS_MAX: usize = 2_000;

type Fields = BTreeMap<String, String>;

pub(super) fn run(input: &[u8]) {
    let options = Arc::new(IngestOptions::new());
    let mut lines = JsonLines::new(RowWriter::new(options, Timestamp::from_nanos(NOW)));
    let mut report = IngestReport::default();
    let mut rows = Vec::new();
    let mut sink = |batch: RowBatch, _: &mut IngestReport| {
        rows.extend(rows_of(&batch));
        Ok(())
    };
    lines.parse_chunk(input, &mut report, &mut sink).expect("the sink takes all");
    lines.flush(&mut report, &mut sink).expect("the sink takes all");
    assert_eq!(report.accepted, rows.len() as u64, "rows of the report");
    assert_eq!(report.bytes, input.len() as u64, "bytes of the report");
    // A mark of the byte order is no part of a line.
    let mark = b"\xef\xbb\xbf";
    let lines = input.split(|b| *b == b'\n').map(|line| line.strip_prefix(mark).unwrap_or(line));
    let lines = lines.filter(|line| !line.trim_ascii().is_empty());
    assert_eq!(report.accepted + report.rejected(), lines.clone().count() as u64, "all lines");
    let mut want = Vec::new();
    for line in lines {
        match naive_row(line) {
            Some(row) => want.extend(row),
            // A line that the plain reading does not know.
            None => return,
        }
    }
    assert_eq!(rows, want, "{}", String::from_utf8_lossy(input));
}

fn rows_of(batch: &RowBatch) -> Vec<Fields> {
    let rows = batch.iter().map(|row| {
        let mut fields = Fields::new();
        for (name, value) in row.fields() {
            assert!(!value.is_empty(), "an empty value is an absent one");
            let value = String::from_utf8(value.to_vec()).expect("values are UTF-8");
            let old = fields.insert(batch.names()[name as usize].clone(), value);
            assert_eq!(old, None, "a name twice in a row");
        }
        fields
    });
    rows.collect()
}

/// The members of an object in source order.
struct Members(Vec<(String, Box<RawValue>)>);

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collect;
        impl<'de> Visitor<'de> for Collect {
            type Value = Members;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
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
fn flatten(prefix: Option<&str>, object: &str, level: usize) -> Option<Vec<(String, String)>> {
    let mut out = Vec::new();
    let Members(members) = serde_json::from_str(object).expect("an object that was checked");
    for (name, raw) in members {
        let name = prefix.map_or(name.clone(), |p| format!("{p}.{name}"));
        if name.len() > NAME_MAX {
            return None;
        }
        let raw = raw.get();
        match raw.as_bytes()[0] {
            b'{' => {
                let flat = if level < 32 { flatten(Some(&name), raw, level + 1) } else { None };
                match flat {
                    Some(inner) if inner.is_empty() => out.push((name, String::new())),
                    Some(inner) => out.extend(inner),
                    None if raw[1..].trim_start().starts_with('}') => {
                        out.push((name, String::new()));
                    }
                    None => out.push((name, raw.to_owned())),
                }
            }
            b'"' => out.push((name, serde_json::from_str(raw).expect("a checked string"))),
            b'n' => out.push((name, String::new())),
            _ => out.push((name, raw.to_owned())),
        }
    }
    Some(out)
}

/// The row of a line, none if it is rejected; `None` if the plain reading does not know.
fn naive_row(line: &[u8]) -> Option<Option<Fields>> {
    let line = std::str::from_utf8(line).ok()?;
    if line.matches(['[', '{']).count() > DEPTH_MAX {
        return None;
    }
    if serde_json::from_str::<&RawValue>(line).is_err() {
        // A lone half of a pair of escapes is mended, not refused.
        return if line.contains("\\u") { None } else { Some(None) };
    }
    if !line.trim_start().starts_with('{') {
        return Some(None);
    }
    let mut row = Fields::new();
    // Raw values are not unescaped when they are checked.
    if line.contains("\\ud") || line.contains("\\uD") {
        return None;
    }
    let Some(members) = flatten(None, line, 1) else { return Some(None) };
    for (name, value) in members {
        row.insert(name, value);
    }
    let special = |name: &str| ["_time", "_stream", "_stream_id"].contains(&name);
    if row.len() > FIELDS_MAX || row.keys().any(|name| special(name)) {
        return None;
    }
    row.retain(|_, value| !value.is_empty());
    Some(if row.is_empty() { None } else { Some(row) })
}

pub(super) fn seeds() -> Vec<Vec<u8>> {
    let lines = [
        r#"{"_time":"2025-03-04T05:06:07.89Z","_msg":"GET /a","app":"web","status":200}"#,
        r#"{"a":{"b":{"c":1.50},"d":[1,"x",{}]},"e":null,"f":"","g":{},"h":true}"#,
        r#"{"a\u00e9\n":"tab\tquote\"slash\\ \u20ac \ud83d\ude00","a.b":1,"a":{"b":2}}"#,
        "{\"x\":1e5,\"y\":-0,\"z\":0.1e-7}\r\n\n{\"x\":01}\n[1]\n{\"open\":\"",
        r#"{"_stream":"{app=\"x\"}","_stream_id":"00","n":12345678901234567890}"#,
        " { \"sp\" : [ 1 , 2 ] , \"k\" : { \"l\" : false } } ",
    ];
    lines.iter().map(|line| line.as_bytes().to_vec()).collect()
}
