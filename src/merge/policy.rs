//! Which parts to merge: size-tiered over neighbours.
//!
//! A merge is chosen by what it gains: the sum of its parts' lengths over the length of the
//! largest. Each time a row is rewritten its part grows by at least that factor, which bounds how
//! often it is: with a least gain of 3, a row of a 100 KiB part is written about 7 times until its
//! part has 100 MiB.
//!
//! Flushes write encodings that are quick to make; the small ones come with the first merge. So
//! rows that no merge ever touched are rewritten once even where it saves no part: when all is
//! compacted, and in the background when their day is settled, that is when a later one has rows.

use std::collections::BTreeMap;
use std::ops::Range;

/// Two neighbours above this length whose times do not overlap stay apart: a query of one hour
/// would read both.
pub(crate) const LARGE_PART: u64 = 64 << 20;
/// The most parts of a merge, each of which keeps a file and buffers open.
const INPUTS_MAX: usize = 16;
/// The least gain of a merge.
const GAIN: f64 = 3.0;
/// The least gain for days with more than [`MANY_PARTS`] parts.
const GAIN_CROWDED: f64 = 1.7;
/// So many parts of a day make every query of it slow.
pub(crate) const MANY_PARTS: usize = 24;
/// So many small parts of a day may be left when a store closes.
const SMALL_PARTS: usize = 16;
/// Parts up to this length are small.
const SMALL_PART: u64 = 512 << 10;
/// No merge makes a longer part.
const OUTPUT_MAX: u64 = 8 << 30;

/// What the policy knows of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PartMeta {
    /// The part's id.
    pub(crate) part_id: u64,
    /// UTC day, in days since the epoch.
    pub(crate) day: i64,
    /// How many merges stand behind its rows.
    pub(crate) level: u8,
    /// Bytes of the file.
    pub(crate) len: u64,
    /// The earliest row.
    pub(crate) min_time: i64,
    /// The latest row.
    pub(crate) max_time: i64,
    /// First and last sequence of the cut.
    pub(crate) cuts: (u64, u64),
}

/// Parts to merge into one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MergeTask {
    /// Their day.
    pub(crate) day: i64,
    /// Their ids, in the order of their cuts.
    pub(crate) parts: Vec<u64>,
    /// The level of the part that replaces them.
    pub(crate) level: u8,
    /// The cut of the part that replaces them.
    pub(crate) cuts: (u64, u64),
    /// Bytes that are read, and about as many that are written.
    pub(crate) len: u64,
}

/// The merges that are worth it now. `parts` are all parts of the store, in any order; those in
/// a running merge or damaged must be given too, as `busy`, since nothing is merged across them.
pub(crate) fn plan(parts: &[PartMeta], busy: &[u64]) -> Vec<MergeTask> {
    let mut out = Vec::new();
    let days = days(parts);
    let newest = days.keys().next_back();
    for (number, day) in &days {
        let least = if day.len() > MANY_PARTS { GAIN_CROWDED } else { GAIN };
        for free in free_runs(day, busy) {
            let run = day.get(free).unwrap_or(&[]);
            let before = out.len();
            choose(run, least, &mut out);
            if out.len() == before && Some(number) != newest {
                let fresh = run.chunk_by(|a, b| (a.level == 0) == (b.level == 0));
                fresh.filter(|w| w.iter().all(|p| p.level == 0)).for_each(|w| join(w, &mut out));
            }
        }
    }
    out
}

/// The merges that leave as few parts as the rules allow, whatever they cost.
pub(crate) fn plan_compaction(parts: &[PartMeta], busy: &[u64]) -> Vec<MergeTask> {
    let mut out = Vec::new();
    for day in days(parts).values() {
        for free in free_runs(day, busy) {
            join(day.get(free).unwrap_or(&[]), &mut out);
        }
    }
    out
}

/// The merges that make as few parts of neighbours as the rules allow.
fn join(mut rest: &[PartMeta], out: &mut Vec<MergeTask>) {
    while !rest.is_empty() {
        let n = (1..=rest.len())
            .take_while(|n| rest.get(..*n).is_some_and(allowed))
            .last()
            .unwrap_or(1);
        let (window, behind) = rest.split_at(n);
        out.extend(task(window));
        rest = behind;
    }
}

/// The quick merges that are due when a store closes: of small parts, in days that have more of
/// them than may be left.
pub(crate) fn plan_debt(parts: &[PartMeta], busy: &[u64]) -> Vec<MergeTask> {
    let mut out = Vec::new();
    let is_small = |p: &PartMeta| p.len <= SMALL_PART;
    for day in days(parts).values() {
        if day.iter().filter(|p| is_small(p)).count() <= SMALL_PARTS {
            continue;
        }
        for free in free_runs(day, busy) {
            let runs = day.get(free).unwrap_or(&[]).chunk_by(|a, b| is_small(a) == is_small(b));
            for run in runs.filter(|run| run.iter().all(is_small)) {
                out.extend(run.chunks(INPUTS_MAX).filter(|w| w.len() > 2).filter_map(task));
            }
        }
    }
    out
}

/// The parts of each day in the order of their cuts.
fn days(parts: &[PartMeta]) -> BTreeMap<i64, Vec<PartMeta>> {
    let mut days: BTreeMap<i64, Vec<PartMeta>> = BTreeMap::new();
    for part in parts {
        days.entry(part.day).or_default().push(*part);
    }
    for day in days.values_mut() {
        day.sort_by_key(|p| p.cuts);
    }
    days
}

/// The ranges of neighbours that are not busy.
fn free_runs(day: &[PartMeta], busy: &[u64]) -> Vec<Range<usize>> {
    let mut out = Vec::new();
    let mut start = 0;
    for (i, part) in day.iter().enumerate() {
        if busy.contains(&part.part_id) {
            out.push(start..i);
            start = i + 1;
        }
    }
    out.push(start..day.len());
    out
}

/// The best window of neighbours, and the best ones to its left and right.
fn choose(parts: &[PartMeta], least: f64, out: &mut Vec<MergeTask>) {
    let mut best: Option<(f64, Range<usize>)> = None;
    for from in 0..parts.len() {
        for to in from + 2..=parts.len().min(from + INPUTS_MAX) {
            let window = parts.get(from..to).unwrap_or(&[]);
            let gain = gain(window);
            if gain >= least && best.as_ref().is_none_or(|b| gain > b.0) && allowed(window) {
                best = Some((gain, from..to));
            }
        }
    }
    let Some((_, window)) = best else { return };
    choose(parts.get(..window.start).unwrap_or(&[]), least, out);
    out.extend(task(parts.get(window.clone()).unwrap_or(&[])));
    choose(parts.get(window.end..).unwrap_or(&[]), least, out);
}

/// The sum of the lengths over the largest.
#[expect(clippy::cast_precision_loss, reason = "a score")]
fn gain(window: &[PartMeta]) -> f64 {
    let sum: u64 = window.iter().map(|p| p.len).sum();
    let largest = window.iter().map(|p| p.len).max().unwrap_or(0);
    sum as f64 / largest.max(1) as f64
}

/// Whether the parts may become one.
fn allowed(window: &[PartMeta]) -> bool {
    let large: Vec<&PartMeta> = window.iter().filter(|p| p.len > LARGE_PART).collect();
    let apart = |a: &PartMeta, b: &PartMeta| a.max_time < b.min_time || b.max_time < a.min_time;
    window.len() <= INPUTS_MAX
        && window.iter().map(|p| p.len).sum::<u64>() <= OUTPUT_MAX
        && large.iter().enumerate().all(|(i, a)| large.iter().skip(i + 1).all(|b| !apart(a, b)))
}

/// The merge of a window; none of a single part that a merge made.
fn task(window: &[PartMeta]) -> Option<MergeTask> {
    let (first, last) = (window.first()?, window.last()?);
    if window.len() < 2 && first.level > 0 {
        return None;
    }
    let level = window.iter().map(|p| p.level).max().unwrap_or(0).saturating_add(1);
    Some(MergeTask {
        day: first.day,
        parts: window.iter().map(|p| p.part_id).collect(),
        level,
        cuts: (first.cuts.0, last.cuts.1),
        len: window.iter().map(|p| p.len).sum(),
    })
}
