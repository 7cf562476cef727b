//! `loglith demo`: real logs, and what an on-call engineer asks of them.

use std::fs::{self, File};
use std::io::{self, BufReader, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use loglith::{IngestOptions, Query, QueryOptions, Store};

use crate::args::DemoArgs;
use crate::demo_queries::{DemoQuery, QUERIES};
use crate::exit::{Failure, Outcome};
use crate::ingest::{Waits, ingest_reader, speed};
use crate::output::{bytes, grouped, pairs, table};

const DEFAULT_STORE: &str = "demo-store";
const DEFAULT_LOGS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/logs");
const STREAM_FIELDS: [&str; 5] = ["app", "host", "namespace", "pod", "container"];

/// Loads the logs, runs the queries, and says how to go on.
pub(crate) fn run(args: &DemoArgs) -> Outcome {
    let logs = args.logs.clone().unwrap_or_else(|| PathBuf::from(DEFAULT_LOGS));
    let dir = fresh_dir(args)?;
    let mut out = io::stdout().lock();
    let store = Store::open(&dir)?;
    load(&store, &logs, &dir, &mut out)?;
    for (i, query) in QUERIES.iter().enumerate() {
        ask(&store, i + 1, query, &mut out)?;
    }
    store.close()?;
    let dir = dir.display();
    writeln!(out, "\nTry next:")?;
    writeln!(out, "  cargo build --release --features cli")?;
    writeln!(
        out,
        "  target/release/loglith query --store {dir} --format table \
         'level:error | top 10 by (app)'"
    )?;
    writeln!(out, "  target/release/loglith inspect --store {dir}")?;
    writeln!(
        out,
        "  target/release/loglith ingest --store my-store --stream-fields app,host my.ndjson"
    )?;
    out.flush()?;
    Ok(())
}

/// The store's directory: the default one is made anew, any other must not hold anything.
fn fresh_dir(args: &DemoArgs) -> Result<PathBuf, Failure> {
    let Some(dir) = &args.store else {
        let dir = PathBuf::from(DEFAULT_STORE);
        if dir.exists() {
            // Refuses to remove what is no store.
            Store::open_read_only(&dir)?;
            fs::remove_dir_all(&dir).map_err(|e| Failure::file("remove", &dir, e))?;
        }
        return Ok(dir);
    };
    let used = fs::read_dir(dir).is_ok_and(|mut entries| entries.next().is_some());
    if used {
        let why = format!("{} is not empty; the demo wants a new directory", dir.display());
        return Err(Failure::Usage(why));
    }
    Ok(dir.clone())
}

/// Ingests every log file, compacts, and prints what that cost.
fn load(store: &Store, logs: &Path, dir: &Path, out: &mut impl Write) -> Outcome {
    let files = log_files(logs)?;
    writeln!(out, "Loading {} files of {} into {}", files.len(), logs.display(), dir.display())?;
    let started = Instant::now();
    let ingest = store.ingest(IngestOptions::new().stream_fields(STREAM_FIELDS))?;
    let (mut rows, mut raw, mut compressed) = (0, 0, 0);
    for path in &files {
        let file = File::open(path).map_err(|e| Failure::file("open", path, e))?;
        let file_bytes = file.metadata().map_err(|e| Failure::file("read", path, e))?.len();
        let report = ingest_reader(&ingest, BufReader::new(file), Waits::ForAll, &|_| ())?;
        let name = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        writeln!(
            out,
            "  {:<28} {:>7} rows {:>9}",
            name,
            grouped(report.accepted),
            bytes(report.bytes)
        )?;
        rows += report.accepted;
        raw += report.bytes;
        compressed += file_bytes;
    }
    drop(ingest);
    store.flush()?;
    writeln!(out, "Ingested {}", speed(rows, raw, started.elapsed()))?;
    let started = Instant::now();
    store.compact()?;
    let disk = store.stats().file_bytes;
    writeln!(
        out,
        "Compacted in {:.2} s: {} on disk, {:.1} times smaller than the raw rows \
         (zstd -19 files: {})",
        started.elapsed().as_secs_f64(),
        bytes(disk),
        raw as f64 / disk.max(1) as f64,
        bytes(compressed),
    )?;
    Ok(())
}

fn log_files(logs: &Path) -> Result<Vec<PathBuf>, Failure> {
    let entries = fs::read_dir(logs).map_err(|e| Failure::file("list", logs, e))?;
    let mut files = Vec::new();
    for entry in entries {
        let path = entry.map_err(|e| Failure::file("list", logs, e))?.path();
        let name = path.to_string_lossy();
        if name.ends_with(".ndjson") || name.ends_with(".ndjson.zst") {
            files.push(path);
        }
    }
    files.sort();
    if files.is_empty() {
        return Err(Failure::Usage(format!("{} holds no .ndjson files", logs.display())));
    }
    Ok(files)
}

/// Runs a query and prints question, answer, time and work.
fn ask(store: &Store, number: usize, demo: &DemoQuery, out: &mut impl Write) -> Outcome {
    writeln!(out, "\n{number}. {}\n   {}", demo.question, demo.query)?;
    let started = Instant::now();
    let query: Query = demo.query.parse().map_err(loglith::Error::from)?;
    let mut rows = store.query_with(&query, &QueryOptions::new())?;
    let mut answer = Vec::new();
    for row in rows.by_ref() {
        answer.push(pairs(row?.fields()));
    }
    let elapsed: Duration = started.elapsed();
    for line in table(&answer) {
        writeln!(out, "     {line}")?;
    }
    let stats = rows.stats();
    writeln!(
        out,
        "   {:.2} ms; read {} of {} blocks, {} of {} strips",
        elapsed.as_secs_f64() * 1e3,
        grouped(stats.blocks_read),
        grouped(stats.blocks_total),
        grouped(stats.strips_read),
        grouped(stats.strips_total),
    )?;
    Ok(())
}
