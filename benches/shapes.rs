//! Rows of odd shapes: very many streams, names, fields; huge messages; batches of one row; ids
//! that never repeat. Each is written, merged, and asked one question.

#![allow(missing_docs, unreachable_pub, dead_code, reason = "a benchmark")]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a benchmark ends by panicking")]

use std::fmt::Write;
use std::time::Duration;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use loglith::{Batch, Entry, IngestOptions, Store, Timestamp};

/// 2025-06-01T00:00:00Z in nanoseconds.
const START: i64 = 1_748_736_000_000_000_000;

/// A shape: its lines, and a question with its answer.
struct Shape {
    name: &'static str,
    lines: String,
    query: &'static str,
    answer: &'static str,
}

/// `count` lines, one a millisecond; `fields` appends the members of row `i` behind its time.
fn lines(count: usize, fields: impl Fn(&mut String, usize)) -> String {
    lines_every(1_000_000, count, fields)
}

/// The same with so many nanoseconds between two lines.
fn lines_every(step: i64, count: usize, fields: impl Fn(&mut String, usize)) -> String {
    let mut out = String::new();
    for i in 0..count {
        let time = Timestamp::from_nanos(START + i64::try_from(i).unwrap() * step);
        write!(out, "{{\"_time\":\"{time}\"").unwrap();
        fields(&mut out, i);
        out.push_str("}\n");
    }
    out
}

/// A number that looks random, the same for every run.
fn mixed(i: usize) -> u64 {
    (i as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29).wrapping_mul(0x94d0_49bb)
}

/// Five fields of a service of 20 sources.
fn usual(out: &mut String, i: usize) {
    let (app, status) = (i % 20, if i % 80 == 7 { 503 } else { 200 });
    let level = if status == 503 { "error" } else { "info" };
    write!(out, ",\"app\":\"app-{app}\",\"level\":\"{level}\",\"status\":{status}").unwrap();
    let took = mixed(i) % 5_000;
    write!(out, ",\"_msg\":\"request {i} of user {} took {took} ms\"", mixed(i) % 1_000).unwrap();
}

fn shapes() -> Vec<Shape> {
    vec![
        // What the others are compared with.
        Shape {
            name: "usual",
            lines: lines(100_000, usual),
            query: "{app=\"app-7\"} status:=503 | stats count() n",
            answer: "1250",
        },
        Shape {
            name: "days_200",
            lines: lines_every(864_000_000_000, 20_000, usual),
            query: "_time:2025-12-05Z | stats count() n",
            answer: "100",
        },
        Shape {
            name: "streams_250000",
            lines: lines(250_000, |out, i| {
                write!(out, ",\"app\":\"app-{i}\",\"_msg\":\"tick {i}\"").unwrap();
            }),
            query: "{app=\"app-777\"} | stats count() n",
            answer: "1",
        },
        Shape {
            name: "streams_25000",
            lines: lines(100_000, |out, i| {
                let app = i % 25_000;
                write!(out, ",\"app\":\"app-{app}\",\"_msg\":\"tick {i}\"").unwrap();
            }),
            query: "{app=\"app-777\"} | stats count() n",
            answer: "4",
        },
        Shape {
            name: "names_10000",
            lines: lines(50_000, |out, i| {
                let name = i % 10_000;
                write!(out, ",\"app\":\"a\",\"field{name}\":\"value {i}\"").unwrap();
            }),
            query: "field777:* | stats count() n",
            answer: "5",
        },
        Shape {
            name: "fields_1000",
            lines: lines(1_000, |out, i| {
                out.push_str(",\"app\":\"a\"");
                (0..1_000).for_each(|f| write!(out, ",\"f{f}\":{}", i * f % 977).unwrap());
            }),
            query: "f500:=500 | stats count() n",
            answer: "2",
        },
        Shape {
            name: "messages_1mb",
            lines: lines(32, |out, i| {
                out.push_str(",\"app\":\"a\",\"_msg\":\"");
                (0..60_000).for_each(|w| write!(out, "{:x} ", mixed(i * 60_000 + w)).unwrap());
                write!(out, "needle{i}\"").unwrap();
            }),
            query: "needle7 | stats count() n",
            answer: "1",
        },
        Shape {
            name: "ids_that_never_repeat",
            lines: lines(100_000, |out, i| {
                let (a, b) = (mixed(i), mixed(i + 1_000_000));
                write!(out, ",\"app\":\"a\",\"id\":\"{a:016x}{b:016x}\"").unwrap();
            }),
            query: "* | stats count_uniq(id) n",
            answer: "100000",
        },
    ]
}

fn written(shape: &Shape) -> (tempfile::TempDir, Store) {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::options().background(false).open(dir.path()).unwrap();
    let ingest = store.ingest(IngestOptions::new().stream_fields(["app"])).unwrap();
    // Two parts, so that there is something to merge.
    let half = shape.lines.len() / 2;
    let half = half + shape.lines[half..].find('\n').unwrap() + 1;
    for lines in [&shape.lines[..half], &shape.lines[half..]] {
        let report = ingest.ndjson(lines.as_bytes()).unwrap();
        assert_eq!(report.rejected(), 0, "{report}");
        store.flush().unwrap();
    }
    drop(ingest);
    (dir, store)
}

fn odd_shapes(c: &mut Criterion) {
    let mut group = c.benchmark_group("shapes");
    group.sample_size(10);
    group.warm_up_time(Duration::from_millis(200));
    group.measurement_time(Duration::from_secs(2));
    for shape in shapes() {
        group.throughput(Throughput::Bytes(shape.lines.len() as u64));
        group.bench_function(format!("{}/write", shape.name), |b| {
            b.iter_with_large_drop(|| written(&shape));
        });
        group.bench_function(format!("{}/merge", shape.name), |b| {
            let merge = |(dir, store): (tempfile::TempDir, Store)| {
                store.compact().unwrap();
                (dir, store)
            };
            b.iter_batched(|| written(&shape), merge, BatchSize::PerIteration);
        });
        let (_dir, store) = written(&shape);
        store.compact().unwrap();
        group.bench_function(format!("{}/query", shape.name), |b| {
            b.iter(|| {
                let row = store.query(shape.query).unwrap().next().unwrap().unwrap();
                assert_eq!(row.get("n"), shape.answer);
            });
        });
    }
    group.finish();
}

/// Each row acknowledged alone, as a program that logs does it.
fn one_row_a_batch(c: &mut Criterion) {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::options().background(false).open(dir.path()).unwrap();
    let ingest = store.ingest(IngestOptions::new().stream_fields(["app"])).unwrap();
    let mut i = 0i64;
    c.bench_function("shapes/one_row_a_batch", |b| {
        b.iter(|| {
            i += 1;
            let time = Timestamp::from_nanos(START + i * 1_000);
            let text = format!("message {i} of a program");
            let entry = Entry::new().time(time).field("app", "a").field("_msg", text.as_str());
            ingest.append(entry).unwrap();
        });
    });
}

/// The same thousand events of five fields from a program and as NDJSON, up to the
/// acknowledgement: what the caller's thread pays.
fn from_a_program(c: &mut Criterion) {
    let mut group = c.benchmark_group("events");
    group.throughput(Throughput::Elements(1_000));
    let texts = lines(1_000, usual);
    let messages: Vec<String> =
        (0..1_000).map(|i| format!("request {i} of user 7 took {} ms", i % 97)).collect();
    let apps: Vec<String> = (0..20).map(|i| format!("app-{i}")).collect();
    for kind in ["entries", "ndjson"] {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::options().open(dir.path()).unwrap();
        let ingest = store.ingest(IngestOptions::new().stream_fields(["app"])).unwrap();
        group.bench_function(kind, |b| {
            b.iter(|| {
                if kind == "ndjson" {
                    ingest.ndjson(texts.as_bytes()).unwrap();
                    return;
                }
                let mut batch = Batch::new();
                for (i, message) in messages.iter().enumerate() {
                    let millis = i64::try_from(i).unwrap() * 1_000_000;
                    batch
                        .entry()
                        .time(Timestamp::from_nanos(START + millis))
                        .field("app", apps[i % 20].as_str())
                        .field("level", "info")
                        .field("status", 200_u64)
                        .message(message);
                }
                ingest.append_batch(batch).unwrap();
            });
        });
    }
    group.finish();
}

criterion_group!(benches, odd_shapes, one_row_a_batch, from_a_program);
criterion_main!(benches);
