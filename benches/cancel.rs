//! How long heavy queries go on after a cancel, and after their deadline.
//!
//! `LOGLITH_STORE` names the store that is queried, `LOGLITH_RUNS` how often each query is
//! stopped, `LOGLITH_ONLY` a part of the names of the queries that run. Without a store there are
//! made-up rows.

#![allow(missing_docs, unreachable_pub, dead_code, reason = "a benchmark")]
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "a benchmark ends by panicking"
)]

#[path = "support/rows.rs"]
mod rows;

use std::time::{Duration, Instant};

use loglith::{Error, IngestOptions, Query, QueryOptions, Store};
use rows::{KINDS, STREAM_FIELDS, rows};

const ROWS_PER_KIND: usize = 250_000;

/// A query is stopped within this much of its start.
const LONGEST: Duration = Duration::from_millis(1_500);
/// What is promised.
const BOUND: Duration = Duration::from_millis(50);

/// Name and text.
const QUERIES: &[(&str, &str)] = &[
    ("export", "*"),
    ("word", "connection"),
    ("substring", "*onnec*"),
    ("any case", "i(CONNECTION) or i(fail*)"),
    ("regex", "~\"[0-9a-f]+-[a-z]{3,}.*error\""),
    ("regex any case", "~\"(?i)(error|fail).*[0-9]$\""),
    ("pattern_match", "pattern_match(\"<IP4>:<N>\")"),
    ("pattern anywhere", "pattern_match(\"<W> <W> <W>\")"),
    ("every field", "*:\"500\""),
    ("ipv4_range", "remote_addr:ipv4_range(10.0.0.0/8)"),
    ("eq_field", "app:eq_field(container)"),
    ("in subquery", "host:in(error | fields host)"),
    ("contains_any subquery", "contains_any(error | uniq by (app) | fields app)"),
    ("sort", "* | sort by (_msg)"),
    ("sort by time", "* | sort by (_time)"),
    ("sort all fields", "* | sort"),
    ("sort partition", "* | sort by (_msg) partition by (app) limit 3"),
    ("sort limit", "* | sort by (_msg desc) limit 100000"),
    ("uniq", "* | uniq by (_msg)"),
    ("uniq hits", "* | uniq by (host, pod, _msg) with hits"),
    ("top", "* | top 10 by (_msg)"),
    ("field_values", "* | field_values _msg"),
    ("field_names", "error* | field_names"),
    ("facets", "* | facets max_values_per_field 1000000"),
    ("stats by message", "* | stats by (_msg) count() as n"),
    ("stats by second", "* | stats by (_time:1s, app) count() as n, max(_msg) as m"),
    ("count_uniq", "* | stats count_uniq(_msg) as n"),
    ("quantile", "* | stats by (app) quantile(0.9, _msg) as q"),
    ("values", "* | stats values(_msg) as v"),
    ("uniq_values", "* | stats uniq_values(_msg) as v"),
    ("json_values", "* | stats by (app) json_values(_time, _msg) sort by (_msg) as v"),
    ("row_max", "* | stats by (host) row_max(_msg) as v"),
    ("sum of all", "* | stats sum(*) as s, sum_len(*) as l"),
    ("running_stats", "* | running_stats by (app) count() as n"),
    ("total_stats", "* | total_stats by (app) count() as n, max(_msg) as m"),
    ("join", "* | join by (host) (* | stats by (host) count() as n)"),
    ("join rows", "* | fields host | join by (host) (error* | fields host, _msg)"),
    ("union", "* | union (*) | sort by (_msg)"),
    ("stream_context", "error | stream_context before 5 after 5"),
    ("stream_context all", "* | stream_context before 1 after 1 time_window 1w"),
    ("patterns", "* | patterns"),
    ("patterns of two", "* | patterns by (_msg)"),
    ("patterns new", "* | patterns new against (level:error)"),
    ("collapse_nums", "* | collapse_nums prettify | stats by (_msg) count() as n"),
    ("replace_regexp", "* | replace_regexp (\"[0-9]+\", \"<$0>\") | stats count_uniq(_msg) as n"),
    ("extract", "* | extract \"<a> <b> <c>\" | stats by (a, b) count() as n"),
    ("extract_regexp", "* | extract_regexp \"(?P<x>[a-z]+)$\" | uniq by (x)"),
    ("pack_json", "* | pack_json as p | stats count_uniq(p) as n"),
    ("unpack_json", "* | pack_json as p | unpack_json from p result_prefix x_ | fields x_a*"),
    ("unpack_words", "* | unpack_words as w | unroll by (w) | uniq by (w)"),
    ("format", "* | format \"<uc:_msg> <hexencode:_msg>\" as f | stats max(f) as m"),
    ("math", "* | math (bytes * 2 + pid) % 7 as x | stats sum(x) as s"),
    ("set_stream_fields", "* | set_stream_fields app, level | uniq by (_stream)"),
    ("hash", "* | hash(_msg) as h | uniq by (h)"),
    ("decolorize", "* | decolorize | fields _msg"),
    ("sample", "* | sample 3 | sort by (_msg)"),
    ("offset", "* | offset 900000"),
    ("generate_sequence", "* | generate_sequence 100000000 | stats sum(_msg) as s"),
    ("block_stats", "* | block_stats | stats by (field) count() as n"),
];

/// Queries that are as long as they may be.
fn long_queries() -> Vec<(&'static str, String)> {
    let list = |start: &str, glue: &str, each: &dyn Fn(usize) -> String, end: &str| {
        let mut text = start.to_owned();
        for i in 0.. {
            let next = each(i);
            if text.len() + next.len() + glue.len() + end.len() > 1 << 20 {
                break;
            }
            text.push_str(if i > 0 { glue } else { "" });
            text.push_str(&next);
        }
        text + end
    };
    vec![
        ("long in", list("host:in(", ",", &|i| format!("w{i}"), ")")),
        ("long and", list("", " ", &|i| format!("!w{i}"), "")),
        ("long or", list("", " or ", &|i| format!("w{i}"), "")),
        ("long prefixes", list("", " or ", &|i| format!("zx{i}*"), "")),
        ("long substrings", list("", " or ", &|i| format!("*zx{i}*"), "")),
        ("long ranges", list("", " or ", &|i| format!("_msg:string_range(zz{i},zz{i}x)"), "")),
        ("long any case", list("", " or ", &|i| format!("i(zx{i}y)"), "")),
        ("long fields", list("", " or ", &|i| format!("f{i}*:x"), "")),
        ("long regexes", list("", " or ", &|i| format!("~\"x{i}y\""), "")),
        ("many pipes", list("* | ", " | ", &|i| format!("len(_msg) as w{i}"), "")),
        ("many functions", list("* | stats ", ", ", &|i| format!("sum(w{i}) as v{i}"), "")),
        ("many conditions", list("* | stats ", ", ", &|i| format!("count() if (w{i}) v{i}"), "")),
        ("many expressions", list("* | math ", ", ", &|i| format!("pid+{i} as v{i}"), "")),
        ("many keys", list("* | sort by (", ", ", &|i| format!("w{i}"), ")")),
    ]
}

/// Numbers that look random (SplitMix64).
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Runs a query until it ends or is stopped; says how.
fn run(store: &Store, query: &Query, options: &QueryOptions, cancel: Option<Duration>) -> End {
    let mut rows = match store.query_with(query, options) {
        Ok(rows) => rows,
        Err(error) => return End::of(Some(error)),
    };
    let handle = rows.cancel_handle();
    std::thread::scope(|scope| {
        let stopper = cancel.map(|after| {
            scope.spawn(move || {
                std::thread::sleep(after);
                handle.cancel();
                Instant::now()
            })
        });
        let error = loop {
            match rows.next_columns() {
                Some(Ok(_)) => {}
                Some(Err(error)) => break Some(error),
                None => break None,
            }
        };
        drop(rows);
        let ended = Instant::now();
        let mut end = End::of(error);
        end.late = stopper.map(|s| ended.saturating_duration_since(s.join().unwrap()));
        end
    })
}

struct End {
    stopped: bool,
    failed: Option<String>,
    late: Option<Duration>,
}

impl End {
    fn of(error: Option<Error>) -> End {
        let stopped = matches!(&error, Some(Error::Cancelled | Error::DeadlineExceeded));
        let failed = error.filter(|_| !stopped).map(|e| e.to_string());
        End { stopped, failed, late: None }
    }
}

fn main() {
    let runs: usize = std::env::var("LOGLITH_RUNS").map_or(2, |n| n.parse().unwrap());
    let only = std::env::var("LOGLITH_ONLY").unwrap_or_default();
    let dir = tempfile::tempdir().unwrap();
    let store = match std::env::var("LOGLITH_STORE") {
        Ok(dir) => Store::open_read_only(dir).unwrap(),
        Err(_) => {
            let store = Store::open(dir.path()).unwrap();
            let ingest = store.ingest(IngestOptions::new().stream_fields(STREAM_FIELDS)).unwrap();
            for kind in KINDS {
                ingest.ndjson(&rows(1, ROWS_PER_KIND, kind)[..]).unwrap();
            }
            store.compact().unwrap();
            store
        }
    };
    let short = QUERIES.iter().map(|(name, text)| (*name, (*text).to_owned()));
    let mut state = 1;
    let mut above = 0;
    println!("{:22} {:>8} {:>18} {:>18}", "milliseconds", "runs", "after a cancel", "a deadline");
    for (name, text) in short.chain(long_queries()).filter(|(name, _)| name.contains(&only)) {
        let query: Query = text.parse().unwrap();
        let started = Instant::now();
        let end = run(&store, &query, &QueryOptions::new().deadline(LONGEST), None);
        let whole = started.elapsed();
        let mut late = [Vec::new(), Vec::new()];
        for _ in 0..runs {
            let within = whole.min(LONGEST).as_micros().max(1) as u64;
            let after = Duration::from_micros(random(&mut state) % within);
            let end = run(&store, &query, &QueryOptions::new(), Some(after));
            late[0].extend(end.late.filter(|_| end.stopped));
            let started = Instant::now();
            let end = run(&store, &query, &QueryOptions::new().deadline(after), None);
            let taken = started.elapsed().saturating_sub(after);
            late[1].extend(Some(taken).filter(|_| end.stopped));
        }
        let mut shown = Vec::new();
        for list in &mut late {
            list.sort();
            let ms = |d: Option<&Duration>| d.map_or(f64::NAN, |d| d.as_secs_f64() * 1e3);
            shown.push(format!("{:8.1} {:8.1}", ms(list.get(list.len() / 2)), ms(list.last())));
            above += usize::from(list.last().is_some_and(|worst| *worst > BOUND));
        }
        let whole = if end.stopped {
            format!(">{}", LONGEST.as_millis())
        } else {
            whole.as_millis().to_string()
        };
        let note =
            end.failed.map(|e| e.lines().next().unwrap_or("").to_owned()).unwrap_or_default();
        println!("{name:22} {whole:>8} {:>18} {:>18}  {note}", shown[0], shown[1]);
    }
    println!("{above} worst cases above {} ms", BOUND.as_millis());
}
