//! Queries that run: an answer never depends on pruning, rewriting, workers and layout.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use super::rows::{DAY, DAY_NS, Parts, is_typed, open, part_from, rows};
use crate::part::{PartReader, Profile};
use crate::query::execute_parts;
use crate::record::Timestamp;
use crate::{Error, Query, QueryOptions};

/// What may give another answer each time, or tells how rows are stored.
const FREE: [&str; 12] = [
    "sample",
    "any",
    "rand",
    "value_type",
    "block_stats",
    "blocks_count",
    "query_stats",
    "options",
    "generate_sequence",
    "patterns",
    "json_values",
    "explain",
];

/// The same rows as one part and as two, of different cuts.
static LAYOUTS: LazyLock<[Vec<Arc<PartReader>>; 2]> = LazyLock::new(|| {
    let part = |cut, rows: &[_], profile, block| {
        Arc::new(open(part_from(cut, rows, profile, block)).expect("a valid part"))
    };
    let rows = [rows(0, 40), rows(1, 60), rows(2, 30)].concat();
    let one = vec![part(1, &rows, Profile::Buffer, 1_000)];
    let (a, b) = rows.split_at(70);
    [one, vec![part(1, a, Profile::Flush, 33), part(100, b, Profile::Merge, 500)]]
});

pub(super) fn run(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let Ok(query) = text.parse::<Query>() else { return };
    let layouts = &*LAYOUTS;
    let options =
        QueryOptions::new().memory_limit(32 << 20).deadline(Duration::from_secs(3)).workers(1);
    let want = answer(&query, &layouts[1], &options.clone());
    let plain = options.prune(false).optimise(false);
    let got = answer(&query, &layouts[0], &plain.workers(2));
    if FREE.iter().any(|word| text.contains(word)) {
        return;
    }
    // One of two may be over a limit by a little.
    if let (Some(want), Some(got)) = (want, got) {
        assert!(want == got, "{query}\n{}\n{}", shown(&want), shown(&got));
    }
}

fn shown(rows: &[String]) -> String {
    rows[..rows.len().min(20)].join("\n")
}

/// The rows of an answer, in no order; none if the query is refused.
fn answer(query: &Query, parts: &[Arc<PartReader>], options: &QueryOptions) -> Option<Vec<String>> {
    let now = Timestamp::from_nanos(DAY * DAY_NS + 5_000_000_000);
    let mut out = Vec::new();
    for row in execute_parts(query, Arc::new(Parts(parts.to_vec())), options, now) {
        match row {
            Ok(row) => {
                // Which columns come first is free.
                let mut fields: Vec<(&str, &str)> = row.fields().collect();
                fields.retain(|(_, value)| !value.is_empty());
                fields.sort_unstable();
                out.push(format!("{fields:?}"));
            }
            Err(e) => {
                assert!(is_typed(&e) && !matches!(e, Error::Corrupted(_)), "{e}");
                return None;
            }
        }
        if out.len() > 20_000 {
            return None;
        }
    }
    out.sort();
    Some(out)
}

pub(super) fn seeds() -> Vec<Vec<u8>> {
    super::query::seeds()
}
