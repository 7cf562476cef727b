//! `loglith query --envelope`: many queries in one process, one JSON line for each.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::time::Instant;

use loglith::{Error, Query, QueryOptions, QueryStats, Store, Timestamp, write_json};
use serde_json::{Value, json};

use crate::args::QueryArgs;
use crate::exit::{Failure, Outcome};

/// The answer of one query: its rows as a JSON array, and what it took.
struct Answer {
    rows: Vec<u8>,
    elapsed_ms: Vec<f64>,
    stats: QueryStats,
}

/// Runs each line of `file`; a query that fails becomes an error line and ends nothing.
pub(crate) fn run(store: &Store, file: &Path, args: &QueryArgs, mut out: impl Write) -> Outcome {
    let text = fs::read(file).map_err(|e| Failure::file("read", file, e))?;
    for (index, line) in text.split(|b| *b == b'\n').enumerate() {
        if line.trim_ascii().is_empty() {
            continue;
        }
        let line = std::str::from_utf8(line).map_err(|_| "the line is not UTF-8".to_owned());
        match line.and_then(|line| answer(store, line, args)) {
            Ok(answer) => {
                write!(out, "{{\"query_index\":{index},\"rows\":")?;
                out.write_all(&answer.rows)?;
                let elapsed = Value::from(answer.elapsed_ms);
                writeln!(out, ",\"elapsed_ms\":{elapsed},\"stats\":{}}}", stats(&answer.stats))?;
            }
            Err(error) => writeln!(out, "{}", json!({ "query_index": index, "error": error }))?,
        }
    }
    out.flush()?;
    Ok(())
}

fn answer(store: &Store, line: &str, args: &QueryArgs) -> Result<Answer, String> {
    let request: Value = serde_json::from_str(line).map_err(|e| format!("not JSON: {e}"))?;
    let member = |name: &str| request.get(name).and_then(Value::as_str);
    let text = member("query").ok_or("the line has no text \"query\"")?;
    let options = QueryOptions::new().time_zone(&args.time_zone);
    let mut options = options.map_err(|e| e.to_string())?;
    if let Some(now) = member("now") {
        let now = Timestamp::parse(now).ok_or_else(|| format!("{now} is not a time"))?;
        options = options.now(now);
    }
    let mut elapsed_ms = Vec::new();
    let mut last = None;
    for _ in 0..args.repeat {
        let started = Instant::now();
        let answer = once(store, text, &options).map_err(|e| e.to_string())?;
        elapsed_ms.push(started.elapsed().as_secs_f64() * 1e3);
        last = Some(answer);
    }
    let (rows, stats) = last.ok_or("the query ran zero times")?;
    Ok(Answer { rows, elapsed_ms, stats })
}

/// Parses, plans, runs, and renders every row.
fn once(store: &Store, text: &str, options: &QueryOptions) -> Result<(Vec<u8>, QueryStats), Error> {
    let query: Query = text.parse()?;
    let mut rows = store.query_with(&query, options)?;
    let mut rendered = vec![b'['];
    for row in rows.by_ref() {
        if rendered.len() > 1 {
            rendered.push(b',');
        }
        write_json(&row?, &mut rendered);
    }
    rendered.push(b']');
    Ok((rendered, rows.stats()))
}

/// The counters of a query as JSON.
fn stats(stats: &QueryStats) -> Value {
    json!({
        "blocks": stats.blocks_total,
        "blocks_read": stats.blocks_read,
        "strips": stats.strips_total,
        "strips_read": stats.strips_read,
        "rows": stats.rows_total,
        "rows_read": stats.rows_read,
        "bytes_read": stats.bytes_read,
    })
}
