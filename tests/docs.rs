//! docs/QUERY.md says what is true: its examples parse, those with an answer give it.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use loglith::{IngestOptions, Query, Store};

type Row = BTreeMap<String, String>;

fn page() -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/QUERY.md")).unwrap()
}

/// Language, line number and lines of each fenced block.
fn blocks(page: &str) -> Vec<(String, usize, Vec<String>)> {
    let mut out = Vec::new();
    let mut open: Option<(String, usize, Vec<String>)> = None;
    for (i, line) in page.lines().enumerate() {
        match (line.strip_prefix("```"), &mut open) {
            (Some(language), None) => open = Some((language.to_owned(), i + 1, Vec::new())),
            (Some(_), Some(_)) => out.extend(open.take()),
            (None, Some((_, _, lines))) => lines.push(line.to_owned()),
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "a block is not closed");
    out
}

fn parses(text: &str, line: usize) {
    let query: Query = text.parse().unwrap_or_else(|e| panic!("line {line}: {e}"));
    assert_eq!(query.to_string().parse::<Query>().as_ref(), Ok(&query), "line {line}: {text}");
}

/// The examples of a line: a query, or pipes in columns.
fn examples(line: &str) -> Vec<String> {
    if !line.starts_with('|') {
        return vec![line.to_owned()];
    }
    let mut out: Vec<String> = Vec::new();
    for column in line.split("  ").filter(|c| !c.trim().is_empty()) {
        match out.last_mut() {
            Some(last) if !column.trim_start().starts_with('|') => last.push_str(column),
            _ => out.push(format!("* {}", column.trim())),
        }
    }
    out
}

#[test]
fn fenced_examples_parse() {
    let mut count = 0;
    for (language, line, lines) in blocks(&page()) {
        if language == "logsql" {
            for (i, text) in lines.iter().enumerate() {
                for example in examples(text) {
                    parses(&example, line + i + 1);
                    count += 1;
                }
            }
        }
    }
    assert!(count > 60, "only {count} examples");
}

#[test]
fn filters_of_the_tables_parse() {
    let mut count = 0;
    let mut inside = false;
    for (i, line) in page().lines().enumerate() {
        if !line.starts_with('|') {
            inside = false;
        }
        inside |= line.starts_with("| write |");
        if !inside || line.starts_with("| write |") || line.starts_with("|---") {
            continue;
        }
        // The first column; `\|` is a bar of the query.
        let row = line[1..].replace("\\|", "\u{1}");
        let written = row.split('|').next().unwrap().replace('\u{1}', "|");
        for example in written.split('`').skip(1).step_by(2) {
            parses(example, i + 1);
            count += 1;
        }
    }
    assert!(count > 45, "only {count} examples");
}

fn rows(lines: &[String]) -> Vec<Row> {
    let row = |line: &String| {
        let value: serde_json::Value = serde_json::from_str(line).unwrap();
        let members = value.as_object().unwrap().iter();
        members.map(|(n, v)| (n.clone(), v.as_str().unwrap().to_owned())).collect()
    };
    lines.iter().map(row).collect()
}

#[test]
fn answers_are_those_of_the_page() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let ingest = store.ingest(IngestOptions::new().stream_fields(["app"])).unwrap();
    let mut query: Option<String> = None;
    let mut count = 0;
    for (language, line, lines) in blocks(&page()) {
        match language.as_str() {
            "rows" => {
                let report = ingest.ndjson(lines.join("\n").as_bytes()).unwrap();
                assert_eq!(report.accepted, lines.len() as u64);
            }
            "answer" => {
                let text = query.take().unwrap();
                let answer = store.query(&text).unwrap_or_else(|e| panic!("line {line}: {e}"));
                let have: Vec<Row> = answer
                    .map(|row| {
                        let row = row.unwrap();
                        let fields = row.fields().filter(|(_, v)| !v.is_empty());
                        fields.map(|(n, v)| (n.to_owned(), v.to_owned())).collect()
                    })
                    .collect();
                assert_eq!(have, rows(&lines), "line {line}: {text}");
                count += 1;
            }
            _ => {}
        }
        query = (language == "logsql").then(|| lines.join("\n"));
    }
    assert!(count >= 8, "only {count} answers");
}
