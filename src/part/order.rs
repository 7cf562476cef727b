//! The order of a part's rows, found in batches.

use std::sync::Arc;

use hashbrown::HashMap;

use super::layout::count32;
use crate::record::{RowBatch, RowView, StreamKey};

/// A row of one of the batches.
#[derive(Debug, Clone, Copy)]
pub(super) struct RowRef {
    pub(super) time: i64,
    batch: u32,
    row: u32,
}

impl RowRef {
    /// The row itself.
    #[inline]
    pub(super) fn view<'a>(&self, batches: &[&'a RowBatch]) -> Option<(usize, RowView<'a>)> {
        let batch = self.batch as usize;
        Some((batch, batches.get(batch)?.row(self.row as usize)?))
    }
}

/// The rows of one stream, in part order.
#[derive(Debug)]
pub(super) struct StreamRows<'a> {
    pub(super) key: &'a Arc<StreamKey>,
    pub(super) rows: std::ops::Range<usize>,
}

/// The rows of one day, sorted by (stream text, time, append order).
#[derive(Debug)]
pub(super) struct Order<'a> {
    pub(super) streams: Vec<StreamRows<'a>>,
    pub(super) rows: Vec<RowRef>,
}

/// Streams of all batches, each once.
#[derive(Debug, Default)]
struct Interned<'a> {
    keys: Vec<&'a Arc<StreamKey>>,
    /// For each batch the number in `keys` of each of its streams.
    of_batch: Vec<Vec<u32>>,
}

impl<'a> Interned<'a> {
    fn new(batches: &[&'a RowBatch]) -> Interned<'a> {
        let mut out = Interned::default();
        let mut by_key: HashMap<&StreamKey, u32, foldhash::fast::RandomState> = HashMap::default();
        // Batches of one source share their keys, so most are found without looking into them.
        let mut by_address: HashMap<*const StreamKey, u32, foldhash::fast::RandomState> =
            HashMap::default();
        for batch in batches {
            let mut local = Vec::with_capacity(batch.streams().len());
            for key in batch.streams() {
                let keys = &mut out.keys;
                let number = *by_address.entry(Arc::as_ptr(key)).or_insert_with(|| {
                    *by_key.entry(key.as_ref()).or_insert_with(|| {
                        keys.push(key);
                        count32(keys.len() - 1)
                    })
                });
                local.push(number);
            }
            out.of_batch.push(local);
        }
        out
    }
}

/// Nanoseconds of a day.
const DAY: i64 = 86_400_000_000_000;

/// Sorts the rows of UTC day `day` (days since the epoch). Rows of other days are left out.
///
/// Linear in the number of rows where the rows of each stream come in time order.
pub(super) fn order<'a>(batches: &[&'a RowBatch], day: i64) -> Order<'a> {
    let interned = Interned::new(batches);
    let mut counts = vec![0usize; interned.keys.len()];
    visit(batches, &interned, day, |number, _| {
        if let Some(count) = counts.get_mut(number) {
            *count += 1;
        }
    });
    let mut used: Vec<(Vec<u8>, usize)> = (0..interned.keys.len())
        .filter(|i| counts.get(*i).is_some_and(|n| *n > 0))
        .filter_map(|i| Some((interned.keys.get(i)?.text(), i)))
        .collect();
    // Labels of odd names can have the text of other labels.
    let labels = |i: usize| interned.keys.get(i).map(|key| key.labels());
    used.sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| labels(a.1).cmp(&labels(b.1))));
    let mut streams = Vec::with_capacity(used.len());
    let mut next = vec![0usize; counts.len()];
    let mut at = 0;
    for (_, i) in &used {
        let (Some(&count), Some(&key)) = (counts.get(*i), interned.keys.get(*i)) else { continue };
        if let Some(next) = next.get_mut(*i) {
            *next = at;
        }
        streams.push(StreamRows { key, rows: at..at + count });
        at += count;
    }
    let mut rows = vec![RowRef { time: 0, batch: 0, row: 0 }; at];
    visit(batches, &interned, day, |number, row| {
        let Some(next) = next.get_mut(number) else { return };
        if let Some(slot) = rows.get_mut(*next) {
            *slot = row;
        }
        *next += 1;
    });
    for stream in &streams {
        if let Some(rows) = rows.get_mut(stream.rows.clone())
            && !rows.is_sorted_by_key(|r| r.time)
        {
            rows.sort_by_key(|r| r.time);
        }
    }
    Order { streams, rows }
}

/// Calls `f` for every row of the day in append order, with the number of its stream.
fn visit(
    batches: &[&RowBatch],
    interned: &Interned<'_>,
    day: i64,
    mut f: impl FnMut(usize, RowRef),
) {
    for ((b, batch), local) in (0u32..).zip(batches).zip(&interned.of_batch) {
        for (r, row) in (0u32..).zip(batch.iter()) {
            let time = row.time.as_nanos();
            if time.div_euclid(DAY) == day
                && let Some(number) = local.get(row.stream as usize)
            {
                f(*number as usize, RowRef { time, batch: b, row: r });
            }
        }
    }
}
