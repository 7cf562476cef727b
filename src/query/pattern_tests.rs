//! `patterns` and `collapse_nums` over messages in every form, against the naive evaluator and
//! against the engine without rewriting.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::ast::Query;
use super::counters::QueryStats;
use super::exec::execute_parts;
use super::naive;
use super::testing::{TestParts, TestRow};
use crate::options::QueryOptions;
use crate::part::Profile;
use crate::record::Timestamp;

type Fields = BTreeMap<String, String>;

/// Messages of many kinds: templates with every kind of slot, few values, one value a stream,
/// plain texts, and none.
fn rows(count: i64) -> Vec<TestRow> {
    let row = |i: i64| {
        let mixed = i.wrapping_mul(0x9E37_79B9_7F4A_7C15u64.cast_signed());
        let hex = format!("{mixed:016x}");
        let message = match i % 11 {
            0 => format!("took {}ms for 10.0.{}.{}", i * 7 % 3000, i % 7, i % 250),
            1 => format!("GET /item/{hex} from \"u{}\" done", i % 90),
            2 => {
                let (a, b, c, d) = (&hex[..8], &hex[8..12], &hex[12..], &hex[2..14]);
                format!("request {a}-{b}-{c}-beef-{d} ended")
            }
            3 => format!("2024-03-05T10:{:02}:{:02}.{}Z level=info", i % 60, i % 59, i % 1000),
            4 => format!("size {}x{} of \u{e9}{}", i % 40, i % 30, i % 3),
            5 => ["ready", "not ready", "pod-7 gone", ""][usize::try_from(i / 11 % 4).unwrap()]
                .to_owned(),
            6 => format!("short {} {}", &hex[..5], &hex[..4]),
            7 => format!("word w{}q{} word", i % 13, i % 17),
            8 => format!("trace {} of {}", &hex[..10], &hex[..10]),
            _ => format!("loop {}", i % 5),
        };
        TestRow {
            // Many rows have one time.
            time: i / 5 * 1_000_000_000,
            labels: vec![("app", format!("a{}", i % 3)), ("pod", format!("p{}", i % 8))],
            fields: vec![
                ("_msg", if i % 8 == 7 { format!("beat {}", i % 3) } else { message }),
                ("id", hex[..10].to_owned()),
                ("level", format!("l{}", i % 4)),
            ],
        }
    };
    (0..count).map(row).collect()
}

const QUERIES: [&str; 17] = [
    "* | patterns",
    "* | patterns | limit 3",
    "* | patterns by (app)",
    "* | patterns by (level, app) | limit 5",
    "* | patterns by (_msg) | limit 5",
    "* | patterns | fields pattern, hits",
    "* | patterns | fields pattern, first",
    "* | patterns | sort by (hits desc, pattern) | limit 4",
    "took | patterns",
    "level:l1 took | patterns",
    "{app=\"a1\"} | patterns | fields example, share, pattern",
    "_time:[1970-01-01T00:01:00Z, 1970-01-01T00:08:20Z] | patterns",
    "* | patterns new since 1970-01-01T00:00:01Z",
    "* | patterns by (pod) new against (level:l1 or ready)",
    "* | patterns new against (level:l1) | limit 2",
    "options(time_offset=1h) _time:<1970-01-01T02:00:00Z | patterns new since 1970-01-01T01:00:01Z",
    "* | format \"<_msg> 12\" as _msg | patterns",
];

fn run(parts: &Arc<TestParts>, query: &Query, options: &QueryOptions) -> (Vec<Fields>, QueryStats) {
    let parts: Arc<TestParts> = parts.clone();
    let mut rows = execute_parts(query, parts, options, Timestamp::from_nanos(0));
    let fields = |row: super::answer::Row| {
        let present = row.fields().filter(|(_, value)| !value.is_empty());
        present.map(|(name, value)| (name.to_owned(), value.to_owned())).collect::<Fields>()
    };
    let got = rows.by_ref().map(|row| fields(row.unwrap())).collect();
    (got, rows.stats())
}

fn layouts() -> Vec<Arc<TestParts>> {
    let rows = rows(1_200);
    let layouts = [
        (vec![1_200], 65_536, Profile::Merge),
        (vec![800, 90], 300, Profile::Merge),
        (vec![500], 65_536, Profile::Flush),
        (vec![500], 300, Profile::Buffer),
    ];
    let write = |(cuts, block, profile): (Vec<usize>, u32, Profile)| {
        Arc::new(TestParts::write(&rows, &cuts, block, profile))
    };
    layouts.into_iter().map(write).collect()
}

#[test]
fn patterns_are_the_same_in_every_form() {
    for parts in layouts() {
        for text in QUERIES {
            let query: Query = text.parse().unwrap();
            let (want, _) = naive::run(&query, parts.rows(), naive::Scope::at(0));
            let want: Vec<Fields> = want.into_iter().map(|row| row.fields).collect();
            assert!(!want.is_empty(), "{text}");
            for (optimise, workers) in [(true, 1), (true, 3), (false, 2)] {
                let options = QueryOptions::new().optimise(optimise).workers(workers);
                let (got, _) = run(&parts, &query, &options);
                assert_eq!(got, want, "{text}, {optimise}");
            }
        }
    }
}

#[test]
fn numbers_are_collapsed_the_same_in_every_form() {
    for parts in layouts() {
        for text in [
            "* | collapse_nums | top 400 by (_msg)",
            "* | collapse_nums prettify | uniq by (_msg) with hits",
            "level:l2 | collapse_nums | top 400 by (_msg)",
            "* | collapse_nums | limit 7",
            "took | collapse_nums prettify | limit 3 | fields _msg, _time, id",
            "* | collapse_nums at id | limit 9",
            "{pod=\"p7\"} | collapse_nums | stats by (_msg, level) count() n",
            "beat or took | collapse_nums prettify | top 10 by (_msg)",
        ] {
            let query: Query = text.parse().unwrap();
            let (want, _) = run(&parts, &query, &QueryOptions::new().optimise(false));
            assert!(!want.is_empty(), "{text}");
            assert_eq!(run(&parts, &query, &QueryOptions::new()).0, want, "{text}");
        }
    }
}
