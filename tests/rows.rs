//! The generator of realistic rows keeps its promises.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "a test fails by panicking"
)]
#![allow(missing_docs, unreachable_pub, dead_code, reason = "included from the benchmarks")]

#[path = "../benches/support/rows.rs"]
mod rows;

use rows::{KINDS, Kind, rows};
use serde_json::Value;

#[test]
fn same_seed_same_bytes() {
    for kind in KINDS {
        assert_eq!(rows(7, 50, kind), rows(7, 50, kind));
        assert_ne!(rows(7, 50, kind), rows(8, 50, kind));
    }
}

#[test]
fn every_row_is_json_with_time_message_and_source() {
    for kind in KINDS {
        let bytes = rows(1, 500, kind);
        let lines: Vec<Value> = bytes
            .split(|&b| b == b'\n')
            .filter(|l| !l.is_empty())
            .map(|l| serde_json::from_slice(l).unwrap())
            .collect();
        assert_eq!(lines.len(), 500);
        for line in &lines {
            for field in ["_time", "_msg", "app", "host"] {
                assert!(!line[field].as_str().unwrap().is_empty(), "{kind:?} {line}");
            }
        }
        if kind == Kind::Kubernetes {
            assert!(lines.iter().all(|l| l.as_object().unwrap().len() == 25));
        }
    }
}
