//! The house rules that a machine can check, read from the sources themselves.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

#[path = "support/source.rs"]
mod source;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use source::{Source, rust_files};

/// Rooms from the bottom up: a room may use those of its own and of lower rows.
const LAYERS: &[&[&str]] = &[
    &["error", "sync"],
    &["io", "record", "options"],
    &["codec", "index"],
    &["part"],
    &["memory", "manifest", "journal"],
    &["partition"],
    &["ingest", "merge"],
    &["query"],
    &["store"],
    &["fuzzing"],
];

/// Lower rooms that a room must not use all the same.
const FORBIDDEN: &[(&str, &[&str])] =
    &[("query", &["io", "manifest", "journal", "memory", "ingest", "merge"])];

const MAX_CODE_LINES: usize = 600;
const MAX_FUNCTION_LINES: usize = 70;
const MAX_COLUMNS: usize = 100;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn sources(dirs: &[&str]) -> Vec<Source> {
    let root = root();
    dirs.iter()
        .flat_map(|d| rust_files(&root.join(d)))
        .map(|file| Source::read(&root, &file))
        .collect()
}

/// Files of `src/` that are compiled for tests only: those of a `#[cfg(test)] mod x;`.
fn test_only_files() -> BTreeSet<String> {
    let mut out = BTreeSet::new();
    walk_modules(&mut |path, test_only| {
        if test_only {
            out.insert(path.to_owned());
        }
    });
    out
}

fn production_sources() -> Vec<Source> {
    let tests = test_only_files();
    let mut files = sources(&["src"]);
    files.retain(|s| !tests.contains(&s.path));
    files
}

/// Calls `visit` with every file that a `mod` line reaches from the crate roots.
fn walk_modules(visit: &mut dyn FnMut(&str, bool)) {
    let root = root();
    let mut todo = vec![
        ("src/lib.rs".to_owned(), "src".to_owned(), false),
        ("src/bin/loglith/main.rs".to_owned(), "src/bin/loglith".to_owned(), false),
    ];
    while let Some((path, dir, test_only)) = todo.pop() {
        visit(&path, test_only);
        let source = Source::read(&root, &root.join(&path));
        for (name, test_mod) in source.modules() {
            let child_dir = format!("{dir}/{name}");
            let flat = format!("{child_dir}.rs");
            let nested = format!("{child_dir}/mod.rs");
            let child = if root.join(&flat).exists() { flat } else { nested };
            assert!(root.join(&child).exists(), "{path} names a module {name} without a file");
            todo.push((child, child_dir, test_only || test_mod));
        }
    }
}

fn report(rule: &str, found: &[String]) {
    assert!(found.is_empty(), "{rule}:\n  {}", found.join("\n  "));
}

#[test]
fn every_file_is_reached_by_a_mod() {
    let mut reached = BTreeSet::new();
    walk_modules(&mut |path, _| {
        reached.insert(path.to_owned());
    });
    let lost: Vec<String> =
        sources(&["src"]).into_iter().map(|s| s.path).filter(|p| !reached.contains(p)).collect();
    report("no mod line reaches these files", &lost);
}

#[test]
fn lower_rooms_do_not_use_upper_ones() {
    let level: BTreeMap<&str, usize> = LAYERS
        .iter()
        .enumerate()
        .flat_map(|(i, rooms)| rooms.iter().map(move |r| (*r, i)))
        .collect();
    let mut found = Vec::new();
    for source in production_sources() {
        let Some(room) = room_of(&source.path) else { continue };
        let Some(&own) = level.get(room) else {
            found.push(format!("{}: the room {room} is in no layer", source.path));
            continue;
        };
        for (used, at) in rooms_used(&source) {
            let Some(&other) = level.get(used.as_str()) else { continue };
            let barred =
                FORBIDDEN.iter().any(|(r, list)| *r == room && list.contains(&used.as_str()));
            if other > own || barred {
                found.push(format!("{}:{}: {room} uses {used}", source.path, source.line(at)));
            }
        }
    }
    report("a room uses one it must not know", &found);
}

/// The room of a file in `src/`; `None` for the crate root and the command line.
fn room_of(path: &str) -> Option<&str> {
    let rest = path.strip_prefix("src/")?;
    let room = rest.split('/').next()?.trim_end_matches(".rs");
    (room != "lib" && room != "bin").then_some(room)
}

/// Names behind `crate::`, also in `crate::{a, b::c}`.
fn rooms_used(source: &Source) -> Vec<(String, usize)> {
    let word = |s: &str| -> String {
        s.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
    };
    let mut out = Vec::new();
    for at in source.find("crate::") {
        let rest = &source.code[at + "crate::".len()..];
        let Some(list) = rest.strip_prefix('{') else {
            out.push((word(rest), at));
            continue;
        };
        let mut depth = 0;
        let mut start = true;
        for (i, c) in list.char_indices() {
            match c {
                '{' => depth += 1,
                '}' if depth == 0 => break,
                '}' => depth -= 1,
                ',' if depth == 0 => start = true,
                _ if start && !c.is_whitespace() => {
                    out.push((word(&list[i..]), at));
                    start = false;
                }
                _ => {}
            }
        }
    }
    out
}

#[test]
fn files_and_functions_are_short() {
    let mut found = Vec::new();
    for source in production_sources() {
        let lines = source.code_lines();
        if lines > MAX_CODE_LINES {
            found.push(format!("{}: {lines} lines of code", source.path));
        }
        for (name, line, len) in source.functions() {
            if len > MAX_FUNCTION_LINES {
                found.push(format!("{}:{line}: fn {name} has {len} lines", source.path));
            }
        }
    }
    report("too long to be read in one sitting", &found);
}

#[test]
fn lines_are_short_and_ascii() {
    let mut found = Vec::new();
    for source in sources(&["src", "tests", "benches", "fuzz/fuzz_targets"]) {
        for (i, line) in source.text.lines().enumerate() {
            if line.chars().count() > MAX_COLUMNS {
                found.push(format!("{}:{}: too long", source.path, i + 1));
            }
            if !line.is_ascii() {
                found.push(format!("{}:{}: not ASCII", source.path, i + 1));
            }
        }
    }
    report("lines of at most 100 columns, in ASCII", &found);
}

#[test]
fn only_io_touches_files() {
    let mut found = Vec::new();
    for source in production_sources() {
        if source.path.starts_with("src/io/") || source.path.starts_with("src/bin/") {
            continue;
        }
        for needle in ["std::fs", "fs::", "File::", "OpenOptions", "SystemTime"] {
            for at in source.find(needle) {
                let before = source.code[..at].chars().next_back();
                let inside_word = before.is_some_and(|c| c.is_alphanumeric() || c == '_');
                if !inside_word {
                    found.push(format!("{}:{}: {needle}", source.path, source.line(at)));
                }
            }
        }
    }
    report("files and clocks are reached through src/io only", &found);
}

#[test]
fn only_sync_names_the_library_of_locks() {
    let mut found = Vec::new();
    let elsewhere = |s: &&Source| !["src/sync/", "src/bin/"].iter().any(|d| s.path.starts_with(d));
    for source in production_sources().iter().filter(elsewhere) {
        for needle in ["parking_lot::", "std::sync::Mutex", "std::sync::RwLock"] {
            for at in source.find(needle) {
                found.push(format!("{}:{}: {needle}", source.path, source.line(at)));
            }
        }
    }
    report("locks are those of src/sync, so that schedules can be tested", &found);
}

#[test]
fn nothing_panics_on_purpose() {
    let banned =
        [".unwrap()", ".expect(\"", "panic!(", "unreachable!(", "todo!(", "unimplemented!("];
    let mut found = Vec::new();
    for source in production_sources() {
        // Fuzz targets panic when a property is broken; the locks of schedules are for tests only.
        if source.path.starts_with("src/fuzzing/") || source.path == "src/sync/scheduled.rs" {
            continue;
        }
        for needle in banned {
            for (at, _) in source.text.match_indices(needle) {
                // Blank where the text has a comment or a string.
                if source.in_test(at) || source.code.as_bytes()[at..=at + 1] == *b"  " {
                    continue;
                }
                found.push(format!("{}:{}: {needle}", source.path, source.line(at)));
            }
        }
    }
    report("outside tests nothing may panic", &found);
}

#[test]
fn folders_introduce_themselves() {
    let found: Vec<String> = sources(&["src"])
        .into_iter()
        .filter(|s| s.path.ends_with("/mod.rs") && !s.text.starts_with("//!"))
        .map(|s| s.path)
        .collect();
    report("a folder's mod.rs begins with //!", &found);
}

#[test]
fn nothing_is_left_open() {
    let mut found = Vec::new();
    // Split, so that this file does not find itself.
    let marks =
        [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X:"), concat!("HA", "CK")];
    for source in sources(&["src", "tests", "benches", "fuzz/fuzz_targets"]) {
        for mark in marks {
            for (at, _) in source.text.match_indices(mark) {
                found.push(format!("{}:{}: {mark}", source.path, source.line(at)));
            }
        }
    }
    report("no leftovers", &found);
}

#[test]
fn dependencies_have_a_reason() {
    let text = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let mut found = Vec::new();
    let mut section = String::new();
    let mut previous = "";
    for line in text.lines() {
        if line.starts_with('[') {
            section = line.to_owned();
        } else if section.contains("dependencies")
            && line.contains('=')
            && !previous.starts_with('#')
            && !line.starts_with('#')
        {
            found.push(line.to_owned());
        }
        previous = line;
    }
    report("a comment above each dependency says what it is for", &found);
}

#[test]
fn the_gate_runs_what_the_readme_promises() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let gate = fs::read_to_string(root().join(".ci/run")).unwrap();
    let commands: Vec<&str> = shell_lines(&readme).filter(|l| l.starts_with("cargo ")).collect();
    assert!(commands.len() >= 2, "the README names the demo and the tests: {commands:?}");
    let lost: Vec<String> =
        commands.iter().filter(|c| !gate.contains(*c)).map(|c| (*c).to_owned()).collect();
    report("commands of the README that .ci/run does not run", &lost);
}

/// Lines of the ```sh blocks.
fn shell_lines(text: &str) -> impl Iterator<Item = &str> {
    let mut inside = false;
    text.lines().filter(move |line| {
        if line.starts_with("```") {
            inside = *line == "```sh";
            return false;
        }
        inside
    })
}

#[test]
fn no_paths_of_a_machine() {
    let mut found = Vec::new();
    for source in production_sources() {
        for needle in ["/root/", "/home/", "/tmp/"] {
            for (at, _) in source.text.match_indices(needle) {
                found.push(format!("{}:{}: {needle}", source.path, source.line(at)));
            }
        }
    }
    report("no paths of a machine", &found);
}

#[test]
fn sources_of_the_shipped_logs_are_listed() {
    let dir = root().join("tests/data/logs");
    let listed = fs::read_to_string(dir.join("SOURCES.md")).unwrap();
    for entry in fs::read_dir(&dir).unwrap() {
        let name = entry.unwrap().file_name().to_string_lossy().into_owned();
        assert!(
            Path::new(&name).extension().is_some_and(|e| e == "md") || listed.contains(&name),
            "{name}"
        );
    }
}

#[test]
fn the_scanner_sees_code_only() {
    let text = concat!(
        "fn a() { // panic!(\n let s = \"panic!(\"; let c = '{'; ",
        "let l: &'static str = r#\"}\"#;\n}\n",
        "#[cfg(test)]\nmod tests { fn b() { x.unwrap() } }\n",
    );
    let source = Source::new("x.rs".into(), text.into());
    assert!(source.find("panic!(").is_empty());
    assert!(source.find(".unwrap()").is_empty());
    assert_eq!(source.functions(), [("a".to_owned(), 1, 3)]);
    assert_eq!(source.code_lines(), 3);
}
