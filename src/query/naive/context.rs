//! `stream_context`.

use std::collections::BTreeSet;

use super::value::print_time;
use super::{Row, pipe};
use crate::query::ast::StreamContext;

const HOUR: i64 = 3_600_000_000_000;

/// The rows around those at the places `hits` of `stored`, which is in canonical order.
pub(super) fn around(plan: &StreamContext, stored: &[Row], hits: &[usize]) -> Vec<Row> {
    let window = plan.time_window.as_ref().map_or(HOUR, |d| d.nanos);
    let mut chunks: Vec<Vec<&Row>> = Vec::new();
    let mut done = BTreeSet::new();
    for hit in hits {
        let stream = stored[*hit].get("_stream");
        if !done.insert(stream) {
            continue;
        }
        let of_stream: Vec<usize> =
            hits.iter().copied().filter(|i| stored[*i].get("_stream") == stream).collect();
        let first = stored[of_stream[0]].time - window;
        let last = stored[*of_stream.last().unwrap()].time + window;
        let near: Vec<usize> = (0..stored.len())
            .filter(|i| stored[*i].get("_stream") == stream)
            .filter(|i| first <= stored[*i].time && stored[*i].time <= last)
            .collect();
        let mut taken = BTreeSet::new();
        for hit in of_stream {
            let at = near.iter().position(|i| *i == hit).unwrap();
            let from = at.saturating_sub(pipe::size(plan.before));
            let to = at.saturating_add(pipe::size(plan.after)).min(near.len() - 1);
            let rows = near[from..=to].iter().filter(|i| taken.insert(**i));
            chunks.push(rows.map(|i| &stored[*i]).collect());
        }
    }
    chunks.retain(|chunk| !chunk.is_empty());
    let several = chunks.len() > 1;
    let mut out = Vec::new();
    for chunk in chunks {
        out.extend(chunk.iter().map(|row| (*row).clone()));
        if several {
            out.push(dashes(chunk.last().unwrap()));
        }
    }
    out
}

/// The row between two chunks.
fn dashes(last: &Row) -> Row {
    let mut row = Row { labels: last.labels.clone(), time: last.time + 1, ..Row::default() };
    row.set("_time", &print_time(row.time));
    row.set("_stream", last.get("_stream"));
    row.set("_stream_id", last.get("_stream_id"));
    row.set("_msg", "---");
    row
}
