//! One query of each kind, over made-up rows of three days: parsing, planning, running, and
//! rendering all rows as JSON.

#![allow(missing_docs, unreachable_pub, dead_code, reason = "a benchmark")]
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "a benchmark ends by panicking"
)]

#[path = "support/measure.rs"]
mod measure;
#[path = "support/rows.rs"]
mod rows;

use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use loglith::{IngestOptions, Store};
use measure::answer;
use rows::{KINDS, STREAM_FIELDS, rows};
use serde_json::Value;

const ROWS_PER_KIND: usize = 50_000;

/// Name and text; `NEEDLE` stands for an id that one row has.
const QUERIES: &[(&str, &str)] = &[
    ("count_all", "* | stats count() n"),
    ("newest_100", "* | sort by (_time) desc | limit 100"),
    ("newest_100_error", "level:error | sort by (_time) desc | limit 100"),
    ("word_common", "finished | stats count() n"),
    ("word_rare", "DHCPREQUEST | stats count() n"),
    ("word_absent", "zzyzxqq | stats count() n"),
    ("phrase", "\"invalid user admin\" | stats count() n"),
    ("and_words", "connection refused | stats count() n"),
    ("or_words", "(timeout or refused or panic) | stats count() n"),
    ("not_word", "failed !upstream | stats count() n"),
    ("prefix", "connect* | stats count() n"),
    ("substring", "~\"nnection ref\" | stats count() n"),
    ("substring_absent", "~\"qzxjv\" | stats count() n"),
    ("regex", "~\"timeout (after|before) [0-9]+ms\" | stats count() n"),
    ("case_insensitive", "i(FAILED) | stats count() n"),
    ("field_exact", "status:=500 | stats count() n"),
    ("field_range", "bytes:>100000 | stats count() n"),
    ("needle_id", "trace_id:=\"NEEDLE\""),
    ("needle_any", "\"NEEDLE\" | stats count() n"),
    (
        "stream_hour",
        "_time:[2025-06-03T10:00:00Z,2025-06-03T11:00:00Z) {app=\"nginx\"} \
         | sort by (_time) desc | limit 100",
    ),
    ("hist_5m", "* | stats by (_time:5m) count() n"),
    ("hist_error_5m", "level:error | stats by (_time:5m) count() n"),
    ("by_app_level", "* | stats by (app, level) count() n"),
    ("top_ip", "* | top 10 by (remote_addr)"),
    ("uniq_trace", "* | stats count_uniq(trace_id) n"),
    ("quantile", "* | stats by (app) quantile(0.99, bytes) p99, avg(bytes) a, sum(bytes) s"),
    ("field_names", "* | field_names"),
    ("uniq_path", "{app=\"nginx\"} | uniq by (path) with hits | sort by (hits) desc | limit 20"),
    ("patterns", "* | collapse_nums | top 20 by (_msg)"),
    ("export_app", "{app=\"sshd\"} | fields _time, _msg"),
];

fn queries(c: &mut Criterion) {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let ingest = store.ingest(IngestOptions::new().stream_fields(STREAM_FIELDS)).unwrap();
    for kind in KINDS {
        ingest.ndjson(&rows(1, ROWS_PER_KIND, kind)[..]).unwrap();
    }
    store.compact().unwrap();
    let one = answer(&store, "trace_id:* | limit 1 | fields trace_id");
    let needle: Value = serde_json::from_slice(&one).unwrap();
    let needle = needle["trace_id"].as_str().unwrap();

    let mut group = c.benchmark_group("query");
    group.sample_size(10);
    group.warm_up_time(Duration::from_millis(200));
    group.measurement_time(Duration::from_secs(1));
    for (name, text) in QUERIES {
        let text = text.replace("NEEDLE", needle);
        group.bench_function(*name, |b| b.iter(|| answer(&store, &text)));
    }
    group.finish();
}

criterion_group!(benches, queries);
criterion_main!(benches);
