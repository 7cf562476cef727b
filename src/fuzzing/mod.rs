//! LAYER 6, feature `fuzzing`: what fuzz targets call. Not part of the API.
//!
//! [`TARGETS`] lists a function for each door through which bytes from outside come. Each takes
//! any bytes and must return: it panics when a property is broken, which a fuzzer finds and an
//! ordinary test reports. The functions are pure, apart from threads of queries, and bound their
//! own work, so that what takes long is a finding too.
//!
//! * `part`: bytes as a part; `remade_part`: a valid part whose units were changed one by one and
//!   whose checksums are right again.
//! * `pages`, `stream_table`, `units`: the decoders below parts, behind their checksums.
//! * `manifest`, `journal`: the files beside parts, as they are and with checksums repaired.
//! * `query`, `answer`: texts of queries, parsed and run.
//! * `ndjson`, `time`, `values`: what rows are made of.
//! * `life`: operations on a store against plain vectors, on the simulated disk.
//!
//! Callers: `fuzz/` and `tests/fuzz.rs`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    reason = "a broken property panics, which is what a fuzzer looks for"
)]

mod answer;
mod input;
mod journal;
mod life;
mod manifest;
mod ndjson;
mod pages;
mod part;
mod query;
mod rows;
mod time;
mod units;
mod values;

/// A fuzz target.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// Its name, that of its file in `fuzz/fuzz_targets`.
    pub name: &'static str,
    /// Tries any bytes; panics if a property is broken.
    pub run: fn(&[u8]),
    /// Inputs made from valid data, from which a fuzzer begins.
    pub seeds: fn() -> Vec<Vec<u8>>,
}

/// All targets.
pub const TARGETS: &[Target] = &[
    Target { name: "answer", run: answer::run, seeds: answer::seeds },
    Target { name: "journal", run: journal::run, seeds: journal::seeds },
    Target { name: "life", run: life::run, seeds: life::seeds },
    Target { name: "manifest", run: manifest::run, seeds: manifest::seeds },
    Target { name: "ndjson", run: ndjson::run, seeds: ndjson::seeds },
    Target { name: "pages", run: pages::run, seeds: pages::seeds },
    Target { name: "part", run: part::run, seeds: part::seeds },
    Target { name: "query", run: query::run, seeds: query::seeds },
    Target { name: "remade_part", run: part::run_remade, seeds: part::seeds_remade },
    Target { name: "stream_table", run: units::run_stream_table, seeds: units::seeds_stream_table },
    Target { name: "time", run: time::run, seeds: time::seeds },
    Target { name: "units", run: units::run, seeds: units::seeds },
    Target { name: "values", run: values::run, seeds: values::seeds },
];

/// Runs one input of the target `name`.
///
/// # Panics
/// If a property is broken, or there is no such target.
pub fn run(name: &str, input: &[u8]) {
    let target = TARGETS.iter().find(|target| target.name == name);
    (target.expect("a target of this name").run)(input);
}
