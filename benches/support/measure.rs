//! What benchmarks measure with.

use loglith::{Store, write_json};

/// The rows of an answer, rendered as lines of JSON.
pub fn answer(store: &Store, query: &str) -> Vec<u8> {
    let mut out = Vec::new();
    for row in store.query(query).unwrap() {
        write_json(&row.unwrap(), &mut out);
        out.push(b'\n');
    }
    out
}

/// The middle one of some values, at least one.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// How many rounds the environment asks for.
pub fn rounds() -> usize {
    std::env::var("BENCH_ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(5)
}
