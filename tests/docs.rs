//! The pages say what is true: examples of docs/QUERY.md parse, those with an answer give it; the
//! tests that docs/DURABILITY.md and docs/TESTING.md name are there.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

#[path = "support/named.rs"]
mod named;

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use loglith::{IngestOptions, Query, Store};

type Row = BTreeMap<String, String>;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap()
}

fn page() -> String {
    read("docs/QUERY.md")
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

/// A promise is kept by a test: whatever the pages name as one exists, and there is one for each
/// chapter of promises and for each fault of others.
#[test]
fn the_tests_that_pages_name_exist() {
    let tests = named::Tests::of(&root());
    let mut unknown = Vec::new();
    for path in ["docs/DURABILITY.md", "docs/TESTING.md"] {
        for (i, line) in read(path).lines().enumerate() {
            let gone = |name: &&str| named::looks_like_a_test(name) && !tests.know(name);
            let names = named::quoted(line).filter(gone);
            unknown.extend(names.map(|name| format!("{path}:{}: {name}", i + 1)));
        }
    }
    assert!(unknown.is_empty(), "no such tests:\n{}", unknown.join("\n"));

    let durability = read("docs/DURABILITY.md");
    for chapter in durability.split("\n## ").skip(1) {
        let title = chapter.lines().next().unwrap();
        let promises = !["Assumptions", "Not yet"].contains(&title);
        let shown = named::quoted(chapter).any(|name| tests.know(name));
        assert!(shown || !promises, "no test shows what \"{title}\" promises");
    }
    let testing = read("docs/TESTING.md");
    let faults = testing.split("\n| scenario | test |\n|---|---|\n").nth(1).unwrap();
    for fault in faults.lines().take_while(|line| line.starts_with('|')) {
        let shown = named::quoted(fault).any(|name| tests.know(name));
        assert!(shown, "no test would show: {fault}");
        let gone = named::quoted(fault).find(|name| named::is_name(name) && !tests.know(name));
        assert!(gone.is_none(), "{gone:?} is no test: {fault}");
    }
}

/// A longer run is chosen by a variable that something reads.
#[test]
fn the_variables_that_pages_name_are_read() {
    let sources = named::sources(&root());
    let mut count = 0;
    for path in ["README.md", "docs/TESTING.md", "docs/BENCHMARKS.md"] {
        for command in named::quoted(&read(path)).filter(|text| text.contains("cargo ")) {
            let words = command.split_whitespace().take_while(|word| *word != "cargo");
            let variables = words.filter_map(|word| word.split_once('=')).map(|(name, _)| name);
            // Not those of the compiler and of proptest.
            let others = ["RUSTFLAGS", "RUSTC_BOOTSTRAP", "PROPTEST_CASES"];
            let ours = |name: &&str| !others.contains(name) && !name.starts_with('-');
            for name in variables.filter(ours) {
                let read = sources.iter().any(|(_, text)| text.contains(&format!("\"{name}\"")));
                assert!(read, "{path}: nothing reads {name}");
                count += 1;
            }
        }
    }
    assert!(count >= 8, "only {count} variables");
}
