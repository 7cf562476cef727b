//! Random rows and random queries over them, as text.
//!
//! The rows hold what breaks engines: ties in time, a midnight, missing fields, streams with
//! quotes, numbers in many spellings, words of other scripts. The queries stay where the answer
//! is fixed: whatever picks rows does so by a total order. Same seed, same rows and queries.

mod filters;
mod pipes;

use filters::{filter, no_stream, stream, time_range};

use super::naive::{Clock, Row};
use crate::record::{StreamKey, Zone};

/// 2024-02-28T23:59:50Z, ten seconds before a leap day.
const START: i64 = 1_709_164_790_000_000_000;
/// The time at which queries run.
pub(crate) const NOW: i64 = START + 3_600_000_000_000;
/// The stream fields of the rows.
pub(crate) const STREAM_FIELDS: [&str; 2] = ["app", "host"];

/// Zones in which queries run, and their clocks. The last two change theirs between the rows: one
/// goes over a midnight that it has shown, the other back to before it.
const ZONES: [(&str, Clock); 5] = [
    ("UTC", Clock::UTC),
    ("+02:00", Clock(&[(i64::MIN, 7_200)])),
    ("-00:30", Clock(&[(i64::MIN, -1_800)])),
    ("AAA0:00:04BBB-0:00:05,59/0:00:02,300", Clock(&[(i64::MIN, -4), (START + 16_000_000_000, 5)])),
    ("AAA0BBB0:00:06,59/0:00:03,300", Clock(&[(i64::MIN, 0), (START + 13_000_000_000, -6)])),
];

/// A small generator of pseudo-random numbers (SplitMix64).
#[derive(Debug, Clone)]
pub(crate) struct Rng(u64);

impl Rng {
    pub(crate) fn new(seed: u64) -> Rng {
        Rng(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Below `n`, which is not 0.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        usize::try_from(self.next() % n as u64).unwrap()
    }

    pub(crate) fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    pub(crate) fn pick<'a, T: ?Sized>(&mut self, list: &[&'a T]) -> &'a T {
        list[self.below(list.len())]
    }
}

const APPS: [&str; 5] = ["web", "db", "a\"b", "c\\d", "{x,y}"];
const HOSTS: [&str; 4] = ["h1", "h1", "h2", ""];
const LEVELS: [&str; 5] = ["info", "info", "warn", "error", "ERROR"];
const WORDS: [&str; 25] = [
    "GET",
    "error",
    "Error",
    "timeout",
    "time_out",
    "user",
    "12ms",
    "500",
    "-7",
    "10.0.0.1",
    "a_b",
    "a.b",
    "x=1",
    "connection",
    "refused",
    "b\u{f6}se",
    "\u{43f}\u{440}\u{438}",
    "\u{65e5}",
    "\u{130}",
    "stra\u{df}e",
    "/path/17",
    "deadbeef",
    "user:17",
    "\u{bd}",
    "\u{1b}[1;31mred\u{1b}[0m",
];
/// Numbers in groups.
const NUMBERED: [&str; 9] = [
    "2024-03-05T10:00:17.250Z",
    "2024/03/05 10:00:17,5",
    "2024-03-05 10:00:17+01:00",
    "2edfed59-3e98-4073-bbb2-28d321ca71a7",
    "10.20.30.40:8080",
    "1-2-3-4-5-6-7",
    "1.2.3.4.5.6.7.8",
    "10:20:30:40:50:60.7",
    "1/2/3/4/5/6",
];
const MIXED: [&str; 26] = [
    "1",
    "007",
    "1.10",
    "1.1",
    "-0",
    "1_000",
    "1e3",
    "10s",
    "1m",
    "90s",
    "1m30s",
    "5KB",
    "1KiB",
    "0x1F",
    "inf",
    "10.0.0.9",
    "9.0.0.1",
    "2024-02-29T00:00:00Z",
    "file2",
    "file10",
    "v1.2",
    "NaN",
    "12px",
    "9007199254740992",
    "9007199254740993",
    "2024-02-29T00:00:00.000000001Z",
];
const ADDRESSES: [&str; 5] = ["10.0.0.1", "10.0.0.200", "192.168.1.7", "10.0.0.1:80", "unknown"];
/// Fields that queries name; the last one never exists.
const FIELDS: [&str; 13] =
    ["_msg", "level", "i", "d", "ip", "u", "rare", "app", "host", "nest.x", "made", "a", "nosuch"];

/// A row as a line of JSON, and as the naive evaluator sees it.
#[derive(Debug, Clone)]
pub(crate) struct Sample {
    pub(crate) json: String,
    pub(crate) row: Row,
}

/// `n` rows in append order; the field `id` tells them apart.
pub(crate) fn rows(rng: &mut Rng, n: usize) -> Vec<Sample> {
    (0..n).map(|i| sample(rng, i)).collect()
}

fn sample(rng: &mut Rng, id: usize) -> Sample {
    let mut row = Row { time: time(rng), ..Row::default() };
    let time = super::naive::print_time(row.time);
    row.set("_time", &time);
    row.set("id", &id.to_string());
    row.set("_msg", &message(rng));
    row.set("app", rng.pick(&APPS));
    row.set("host", rng.pick(&HOSTS));
    row.set("level", rng.pick(&LEVELS));
    let number = i64::try_from(rng.below(200)).unwrap() - 50;
    row.set("i", &if rng.one_in(8) { "n/a".to_owned() } else { number.to_string() });
    if rng.one_in(10) {
        row.set("i", "");
    }
    if !rng.one_in(4) {
        row.set("d", rng.pick(&MIXED));
    }
    row.set("ip", rng.pick(&ADDRESSES));
    if rng.one_in(2) {
        row.set("u", rng.pick(&WORDS));
    }
    if rng.one_in(30) {
        row.set("rare", rng.pick(&["needle", "other needle", "5"]));
    }
    if rng.one_in(3) {
        row.set("nest.x", rng.pick(&["[1,\"a\"]", "true", "deep"]));
    }
    let json = json_line(&row);
    for label in STREAM_FIELDS {
        let value = row.get(label).to_owned();
        if !value.is_empty() {
            row.labels.insert(label.to_owned(), value);
        }
    }
    let labels: Vec<String> = row
        .labels
        .iter()
        .map(|(k, v)| format!("{k}=\"{}\"", v.replace('\\', "\\\\").replace('"', "\\\"")))
        .collect();
    row.set("_stream", &format!("{{{}}}", labels.join(",")));
    let id = stream_id(row.labels.iter().map(|(k, v)| (k.as_str(), v.as_str())));
    row.set("_stream_id", &id);
    Sample { json, row }
}

/// The id of the stream with these labels.
fn stream_id<'a>(labels: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let labels = labels.into_iter().map(|(name, value)| (name.to_owned(), value.into()));
    StreamKey::new(labels).id().to_string()
}

fn time(rng: &mut Rng) -> i64 {
    let second = 1_000_000_000;
    let whole = START + i64::try_from(rng.below(20)).unwrap() * second;
    match rng.below(8) {
        0 => whole + 999_999_999,
        1 => whole + i64::try_from(rng.below(1_000_000_000)).unwrap(),
        2 => whole + 86_400 * second,
        _ => whole,
    }
}

fn message(rng: &mut Rng) -> String {
    let words: Vec<&str> = (0..1 + rng.below(6)).map(|_| rng.pick(&WORDS)).collect();
    let mut text = words.join(rng.pick(&[" ", " ", ", ", "-"]));
    if rng.one_in(3) {
        text.push_str(&format!(" took {}ms id={:08x}", rng.below(2000), rng.next() >> 32));
    }
    if rng.one_in(6) {
        text.push(' ');
        text.push_str(rng.pick(&NUMBERED));
    }
    if rng.one_in(20) {
        text.push_str("\nsecond line");
    }
    text
}

fn json_line(row: &Row) -> String {
    let mut members: Vec<String> = Vec::new();
    for (name, value) in &row.fields {
        let quoted = quote(value);
        match name.as_str() {
            "nest.x" if value == "deep" => members.push(format!("\"nest\":{{\"x\":{quoted}}}")),
            "nest.x" => members.push(format!("\"nest\":{{\"x\":{value}}}")),
            _ => members.push(format!("{}:{quoted}", quote(name))),
        }
    }
    format!("{{{}}}", members.join(","))
}

fn quote(text: &str) -> String {
    serde_json::to_string(text).unwrap()
}

/// A query, and how its answer may be compared.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sketch {
    /// The filter and the pipes.
    pub(crate) parts: Vec<String>,
    /// Whether the rows come in an order that the query fixes.
    pub(crate) ordered: bool,
    /// Fields whose last digit may depend on rounding.
    pub(crate) approx: Vec<String>,
    /// Fields that hold JSON objects, whose members have no order.
    pub(crate) json: Vec<String>,
    /// The query's zone among [`ZONES`].
    zone: usize,
}

impl Sketch {
    /// The query's text.
    pub(crate) fn text(&self) -> String {
        self.parts.join(" | ")
    }

    /// The zone in which the query runs, and its clock.
    pub(crate) fn zone(&self) -> (Zone, Clock) {
        let (name, clock) = ZONES[self.zone];
        (Zone::named(name).unwrap_or_else(|| Zone::posix(name)), clock)
    }
}

/// A random query over [`rows`].
pub(crate) fn query(rng: &mut Rng) -> Sketch {
    let options = if rng.one_in(12) { pipes::options(rng) } else { String::new() };
    let range = if rng.one_in(8) { time_range(rng) + " " } else { String::new() };
    let start = format!("{options}{range}{}", filter(rng, 2));
    let mut sketch = Sketch { parts: vec![start], ..Sketch::default() };
    if rng.one_in(15) {
        sketch.parts.push(pipes::stream_context(rng));
        sketch.ordered = true;
    }
    for _ in 0..rng.below(5) {
        let pipe = row_pipe(rng, &mut sketch.ordered);
        sketch.parts.push(pipe);
    }
    if rng.one_in(2) {
        last_pipe(rng, &mut sketch);
    }
    if rng.one_in(4) {
        // Buckets on days when the clock changes are tested where they are made.
        let in_buckets = sketch.parts.iter().any(|part| part.contains("by (_time:"));
        sketch.zone = rng.below(if in_buckets { 3 } else { ZONES.len() });
    }
    sketch
}

fn some_fields(rng: &mut Rng, most: usize) -> Vec<&'static str> {
    let mut out: Vec<&str> = Vec::new();
    for _ in 0..1 + rng.below(most) {
        let field = rng.pick(&FIELDS);
        if !out.contains(&field) {
            out.push(field);
        }
    }
    out
}

/// A pipe behind which rows still have their `id`.
fn row_pipe(rng: &mut Rng, ordered: &mut bool) -> String {
    match rng.below(24) {
        15..=22 => pipes::maker(rng),
        23 => pipes::join(rng),
        8 => format!("len({}) as made", rng.pick(&FIELDS)),
        9 => format!(
            "split {} from {} as made",
            quote(rng.pick(&[" ", "e", "", "10"])),
            rng.pick(&FIELDS)
        ),
        10 => format!(
            "replace ({}, {}) at {} limit {}",
            quote(rng.pick(&["e", "00", "user"])),
            quote(rng.pick(&["", "E", "$1"])),
            rng.pick(&FIELDS),
            1 + rng.below(3)
        ),
        11 => format!("coalesce({}) default none as made", some_fields(rng, 3).join(", ")),
        12 => format!("unroll by ({})", rng.pick(&["nest.x", "rare"])),
        13 => format!("json_array_len({}) as made", rng.pick(&["nest.x", "made", "u"])),
        14 => format!(
            "json_array_concat {} from {} as made",
            quote(rng.pick(&["", ", "])),
            rng.pick(&["nest.x", "made"])
        ),
        0 => format!("fields id, _time, {}", some_fields(rng, 3).join(", ")),
        1 => format!("delete {}", some_fields(rng, 3).join(", ")),
        2 => format!("rename {} as {}", rng.pick(&FIELDS), rng.pick(&FIELDS)),
        3 => format!("copy {} as {}", rng.pick(&FIELDS), rng.pick(&["copied", "u", "rare"])),
        4 => format!("limit {}", rng.below(30)),
        5 => {
            let keys: Vec<String> = some_fields(rng, 2)
                .into_iter()
                .map(|f| format!("{f}{}", rng.pick(&["", " desc"])))
                .collect();
            *ordered = true;
            let mut sort = format!("sort by ({}, id)", keys.join(", "));
            if rng.one_in(2) {
                sort.push_str(rng.pick(&["", "", "", " partition by (level)"]));
                sort.push_str(&format!(" limit {}", 1 + rng.below(20)));
            }
            if rng.one_in(4) {
                sort.push_str(&format!(" offset {}", rng.below(10)));
            }
            sort
        }
        _ => format!("filter {}", no_stream(rng)),
    }
}

fn last_pipe(rng: &mut Rng, sketch: &mut Sketch) {
    sketch.ordered = false;
    let fields = some_fields(rng, 2).join(", ");
    let pipe = match rng.below(12) {
        11 => pipes::patterns(rng, sketch),
        8..=10 => pipes::last(rng, sketch),
        7 => format!("union ({} | fields id, _time, i)", filter(rng, 1)),
        0 => format!("uniq by ({fields}){}", rng.pick(&["", " with hits"])),
        1 => format!("uniq by ({fields}) with hits limit {}", 1 + rng.below(5)),
        2 if rng.one_in(2) => format!("top {} by ({})", 1 + rng.below(6), rng.pick(&FIELDS)),
        2 => format!("top 1000 by ({fields})"),
        3 => "field_names".to_owned(),
        4 => format!("field_values {} limit {}", rng.pick(&FIELDS), 1 + rng.below(9)),
        _ => stats(rng, sketch),
    };
    sketch.parts.push(pipe);
}

fn stats(rng: &mut Rng, sketch: &mut Sketch) -> String {
    let by = match rng.below(9) {
        6..=8 => format!(
            "by ({}) ",
            rng.pick(&[
                "_time:5s offset 2s",
                "_time:1h offset -10s",
                "_time:month",
                "_time:week offset 1d",
                "_time:year",
                "_time:day",
                "i:10 offset 3",
                "i:0.5 offset 0.2",
                "d:1s offset 100ms",
                "ip:/24",
                "ip:/0",
                "d:/8",
                "i:7 offset -2, level",
            ])
        ),
        0 => String::new(),
        1 => "by (_time:5s) ".to_owned(),
        2 => "by (i:10) ".to_owned(),
        3 => "by (app, level) ".to_owned(),
        _ => format!("by ({}) ", rng.pick(&FIELDS)),
    };
    let mut functions = Vec::new();
    for i in 0..1 + rng.below(3) {
        let field = rng.pick(&["i", "d", "u", "rare", "id", "nosuch"]);
        let function = match rng.below(22) {
            20 => "rate()".to_owned(),
            21 => format!("rate_sum({field}, {})", if field == "i" { "id" } else { "i" }),
            16 => format!("row_min({field}, level, n*, id)"),
            17 => format!("row_max({field}, _time, i)"),
            18 => format!("json_values(id, {field}) sort by ({field} desc, id) limit 4"),
            19 => format!("histogram({field})"),
            13 => format!("stddev({})", rng.pick(&["i", "id", "rare"])),
            14 => format!("{}({field}, id)", rng.pick(&["field_max", "field_min"])),
            15 => format!("count_uniq_hash({field})"),
            0 | 1 => "count()".to_owned(),
            2 => format!("count({field})"),
            3 => format!("count_empty({field}, rare)"),
            4 => format!("count_uniq({field})"),
            5 => format!("sum({field}, {})", if field == "i" { "id" } else { "i" }),
            6 => format!("avg({field})"),
            7 => format!("min({field})"),
            8 => format!("max({field})"),
            9 => format!("quantile({}, {field})", rng.pick(&["0", "0.25", "0.9", "1"])),
            10 => format!("median({field})"),
            11 => format!("values(id) limit {}", 1 + rng.below(4)),
            _ => "uniq_values(u)".to_owned(),
        };
        if ["sum", "avg", "stddev", "rate_sum"].iter().any(|f| function.starts_with(f)) {
            sketch.approx.push(format!("r{i}"));
        }
        if ["row_", "json"].iter().any(|f| function.starts_with(f)) {
            sketch.json.push(format!("r{i}"));
        }
        let condition =
            if rng.one_in(4) { format!(" if ({})", no_stream(rng)) } else { String::new() };
        functions.push(format!("{function}{condition} as r{i}"));
    }
    format!("stats {by}{}", functions.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn same_seed_same_rows_and_queries() {
        let make = |seed| {
            let mut rng = Rng::new(seed);
            let rows: Vec<String> = rows(&mut rng, 20).into_iter().map(|s| s.json).collect();
            let queries: Vec<String> = (0..50).map(|_| query(&mut rng).text()).collect();
            (rows, queries)
        };
        assert_eq!(make(1), make(1));
        assert_ne!(make(1), make(2));
    }

    /// What never comes up is not compared with anything.
    #[test]
    fn every_family_comes_up() {
        let mut rng = Rng::new(1);
        let texts: Vec<String> = (0..6_000).map(|_| query(&mut rng).text()).collect();
        let families = "math format encode: decode: extract extract_regexp replace_regexp \
            pack_json pack_logfmt unpack_json unpack_logfmt unpack_syslog unpack_words time_add \
            set_stream_fields join union facets running_stats total_stats histogram row_min \
            row_max json_values offset time_offset global_filter contains_any( contains_all( \
            pattern_match pattern_match_full pattern_match_prefix pattern_match_suffix \
            _time:month _time:week day_range week_range keep_original_fields \
            skip_empty_results result_prefix drop_duplicates rows( inner \
            rate() rate_sum( stream_context _stream_id: prettify";
        for family in families.split_ascii_whitespace() {
            let count = texts.iter().filter(|text| text.contains(family)).count();
            assert!(count >= 5, "{family} comes up {count} times");
        }
    }

    #[test]
    fn lines_hold_what_the_rows_hold() {
        let mut rng = Rng::new(3);
        for sample in rows(&mut rng, 300) {
            let value: serde_json::Value = serde_json::from_str(&sample.json).unwrap();
            assert_eq!(value["_msg"].as_str().unwrap(), sample.row.get("_msg"));
            assert_eq!(value["id"].as_str().unwrap(), sample.row.get("id"));
        }
    }
}
