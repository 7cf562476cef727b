//! What rows cost on disk does not grow unnoticed.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "a test fails by panicking"
)]
#![allow(missing_docs, unreachable_pub, dead_code, reason = "included from the benchmarks")]

#[path = "../benches/support/rows.rs"]
mod rows;

use loglith::{IngestOptions, Store};
use rows::{KINDS, Kind, STREAM_FIELDS, rows};

/// Bytes of `count` rows of a kind on disk, after all merges.
fn bytes_on_disk(kind: Kind, count: usize) -> u64 {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::options().background(false).open(dir.path()).unwrap();
    let ingest = store.ingest(IngestOptions::new().stream_fields(STREAM_FIELDS)).unwrap();
    for seed in [3, 4] {
        ingest.ndjson(rows(seed, count / 2, kind).as_slice()).unwrap();
        store.flush().unwrap();
    }
    store.compact().unwrap();
    let inspection = store.inspect().unwrap();
    assert_eq!(inspection.parts.rows, count as u64);
    inspection.parts.total
}

#[test]
fn rows_take_no_more_bytes_than_they_did() {
    const ROWS: usize = 12_000;
    for kind in KINDS {
        // Hundredths of a byte for each row, a tenth more than was measured.
        let most = match kind {
            Kind::Kubernetes => 1_220,
            Kind::Web => 1_530,
            Kind::Syslog => 1_090,
            Kind::Service => 4_300,
        };
        let bytes = bytes_on_disk(kind, ROWS);
        let row = bytes * 100 / ROWS as u64;
        assert!(row <= most, "{kind:?}: {row} hundredths of a byte a row, at most {most}");
    }
}
