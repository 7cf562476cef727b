//! Fuzz targets as ordinary tests: each tries its committed seeds and every input that once broke
//! it, and what the seeds are now.

#![cfg(feature = "fuzzing")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::fs;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};

use loglith::fuzzing::TARGETS;

fn fuzz() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz")
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(dir) else { return Vec::new() };
    let mut out: Vec<PathBuf> = entries.map(|e| e.unwrap().path()).collect();
    out.sort();
    out
}

/// With `LOGLITH_WRITE_SEEDS=1` it writes `fuzz/seeds` anew first.
#[test]
fn seeds_and_regressions() {
    let write = std::env::var_os("LOGLITH_WRITE_SEEDS").is_some();
    let mut failed = Vec::new();
    for target in TARGETS {
        let seeds = (target.seeds)();
        assert!(!seeds.is_empty(), "{} has seeds", target.name);
        let dir = fuzz().join("seeds").join(target.name);
        if write {
            let _ = fs::remove_dir_all(&dir);
            fs::create_dir_all(&dir).unwrap();
            for (i, seed) in seeds.iter().enumerate() {
                fs::write(dir.join(format!("{i:02}")), seed).unwrap();
            }
        }
        let mut inputs: Vec<(String, Vec<u8>)> =
            seeds.into_iter().enumerate().map(|(i, s)| (format!("seed {i}"), s)).collect();
        inputs.push(("nothing".to_owned(), Vec::new()));
        for dir in ["seeds", "regressions"] {
            for file in files(&fuzz().join(dir).join(target.name)) {
                inputs.push((file.display().to_string(), fs::read(&file).unwrap()));
            }
        }
        for (name, input) in inputs {
            if catch_unwind(|| (target.run)(&input)).is_err() {
                failed.push(format!("{}: {name}", target.name));
            }
        }
    }
    assert!(failed.is_empty(), "{failed:#?}");
}

/// Every target has a file, seeds that are committed, and a place for what it finds.
#[test]
fn targets_are_complete() {
    let mut names: Vec<String> = files(&fuzz().join("fuzz_targets"))
        .iter()
        .map(|f| f.file_stem().unwrap().to_string_lossy().into_owned())
        .collect();
    names.sort();
    let targets: Vec<&str> = TARGETS.iter().map(|t| t.name).collect();
    assert_eq!(names, targets);
    for name in targets {
        assert!(!files(&fuzz().join("seeds").join(name)).is_empty(), "seeds of {name}");
    }
}
