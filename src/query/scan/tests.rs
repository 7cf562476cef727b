//! The scan of random parts against a look at every row.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;

use proptest::prelude::*;

use super::testing::{any_filter, any_rows};
use super::*;
use crate::part::{Profile, ReadContext};
use crate::query::ast::{Filter, Predicate};
use crate::query::batch::Batch;
use crate::query::context::Flow;
use crate::query::counters::ScanCounters;
use crate::query::fields::FieldSet;
use crate::query::filter::CompiledFilter;
use crate::query::filter::testing::field;
use crate::query::naive;
use crate::query::testing::{TestParts, TestRow, test_context};

/// A row of an answer: its order and its fields.
pub(super) type Out = (u64, BTreeMap<String, String>);

pub(super) fn scan(
    parts: &TestParts,
    filter: &Filter,
    prune: bool,
    fields: &FieldSet,
    bound: Option<&TimeBound>,
    counters: &ScanCounters,
) -> Vec<Out> {
    scan_with(parts, filter, prune, fields, (bound, false), counters, None)
}

/// As [`scan`], with columns deferred if the bound says so, and with a cache.
pub(super) fn scan_with(
    parts: &TestParts,
    filter: &Filter,
    prune: bool,
    fields: &FieldSet,
    (bound, defer): (Option<&TimeBound>, bool),
    counters: &ScanCounters,
    cache: Option<&dyn PartCache>,
) -> Vec<Out> {
    test_context(|ctx| {
        let compiled = CompiledFilter::compile(filter, ctx).unwrap();
        let filter = ScanFilter::new(compiled, prune);
        let output = ScanOutput::stored(fields);
        let cx = match cache {
            Some(cache) => ReadContext::new(&counters.reads).with_cache(cache),
            None => ReadContext::new(&counters.reads),
        };
        let frontier = Frontier::new(parts, &filter, bound, counters);
        let mut scanner = Scanner::new(ctx, &cx, &filter, &output, bound, counters);
        if defer {
            scanner = scanner.deferring();
        }
        let mut out = Vec::new();
        while let Some(task) = frontier.next(&cx).unwrap() {
            scanner
                .scan(&task, &mut |batch: Batch| {
                    if let (Some(bound), false) = (bound, defer) {
                        bound.offer(batch.positions().unwrap().iter().map(|p| p.time));
                    }
                    out.extend(batch_rows(&batch));
                    Ok(Flow::Continue)
                })
                .unwrap();
        }
        scanner
            .finish(&mut |batch: Batch| {
                out.extend(batch_rows(&batch));
                Ok(Flow::Continue)
            })
            .unwrap();
        out.sort();
        out
    })
}

fn batch_rows(batch: &Batch) -> Vec<Out> {
    let mut scratch = Vec::new();
    (0..batch.rows())
        .map(|row| {
            let mut fields = BTreeMap::new();
            for (name, column) in batch.columns() {
                let value = String::from_utf8(column.value(row, &mut scratch).to_vec()).unwrap();
                if !value.is_empty() {
                    fields.insert(name.to_string(), value);
                }
            }
            (batch.positions().unwrap()[row].order, fields)
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn gives_the_rows_that_pass_and_all_of_their_fields(
        rows in any_rows(60),
        filter in any_filter(),
        cuts in prop::collection::vec(1usize..30, 1..4),
        block_rows in prop::sample::select(vec![1u32, 3, 8, 65_536]),
        profile in prop::sample::select(vec![Profile::Buffer, Profile::Flush, Profile::Merge]),
        prune: bool,
    ) {
        let parts = TestParts::write(&rows, &cuts, block_rows, profile);
        let counters = ScanCounters::default();
        let got = scan(&parts, &filter, prune, &FieldSet::all(), None, &counters);
        let got: Vec<BTreeMap<String, String>> = got.into_iter().map(|(_, row)| row).collect();
        let expected: Vec<BTreeMap<String, String>> = parts
            .rows()
            .iter()
            .filter(|row| naive::matches(&filter, row, naive::Scope::at(0)))
            .map(|row| row.fields.clone())
            .collect();
        let sorted = |mut rows: Vec<BTreeMap<String, String>>| {
            for row in &mut rows {
                row.remove("_stream_id");
            }
            rows.sort();
            rows
        };
        prop_assert_eq!(sorted(got), sorted(expected));
    }

    #[test]
    fn the_best_rows_by_time_come_through(
        rows in any_rows(60),
        filter in any_filter(),
        cuts in prop::collection::vec(1usize..30, 1..4),
        block_rows in prop::sample::select(vec![1u32, 3, 8, 65_536]),
        limit in 0usize..8,
        newest: bool,
        defer: bool,
    ) {
        let parts = TestParts::write(&rows, &cuts, block_rows, Profile::Flush);
        let fields = FieldSet::of(["_time"]);
        let all = scan(&parts, &filter, true, &fields, None, &ScanCounters::default());
        let direction = if newest { Direction::Newest } else { Direction::Oldest };
        let bound = TimeBound::new(direction, limit);
        let (bound, counters) = ((Some(&bound), defer), ScanCounters::default());
        let some = scan_with(&parts, &filter, true, &fields, bound, &counters, None);
        prop_assert!(some.iter().all(|row| all.contains(row)));
        // Ties of the last place come too; all rows better than it have to be there.
        let best = |rows: &[Out]| {
            let mut times: Vec<String> = rows.iter().map(|(_, r)| r["_time"].clone()).collect();
            times.sort();
            if newest {
                times.reverse();
            }
            times.truncate(limit);
            times
        };
        prop_assert_eq!(best(&some), best(&all));
    }
}

#[test]
fn strips_of_one_block_are_told_apart() {
    let row = |i: i64| TestRow {
        time: i,
        labels: vec![("a", "x".to_owned())],
        fields: vec![
            ("b", format!("text number {i}")),
            ("n", i.to_string()),
            ("rare", if i == 4_000 { "here".to_owned() } else { String::new() }),
        ],
    };
    let rows: Vec<TestRow> = (0..5_000).map(row).collect();
    let parts = TestParts::write(&rows, &[5_000], 65_536, Profile::Flush);
    let counters = ScanCounters::default();
    let find = |filter: &Filter, counters: &ScanCounters| {
        scan(&parts, filter, true, &FieldSet::all(), None, counters)
    };
    let got = find(&field("rare", Predicate::Exact("here".to_owned())), &counters);
    assert_eq!(got.len(), 1);
    assert_eq!(got[0].1["b"], "text number 4000");
    let got = find(&field("b", Predicate::Phrase("number 3000".to_owned())), &counters);
    assert_eq!(got[0].1["n"], "3000");

    // Only the last of three strips is needed for the newest rows.
    let (counters, bound) = (ScanCounters::default(), TimeBound::new(Direction::Newest, 10));
    let newest =
        scan(&parts, &Filter::All, true, &FieldSet::of(["_time", "n"]), Some(&bound), &counters);
    assert!(newest.iter().any(|(_, r)| r["n"] == "4999") && newest.len() < 2_048);
    assert_eq!(counters.reads.strips.load(Relaxed), 2, "one strip of times, one of n");

    // Columns that are deferred are read of the strips with the newest rows only.
    let old = |i: i64| TestRow { labels: vec![("a", "w".to_owned())], ..row(i - 100) };
    let rows: Vec<TestRow> = (0..5_000).map(row).chain((0..5_000).map(old)).collect();
    let two = TestParts::write(&rows, &[10_000], 65_536, Profile::Flush);
    let fields = FieldSet::of(["_time", "n"]);
    let newest = |defer: bool| {
        let (counters, bound) = (ScanCounters::default(), TimeBound::new(Direction::Newest, 10));
        let (bound, cache) = ((Some(&bound), defer), crate::part::UnitCache::new(64 << 20));
        let rows = scan_with(&two, &Filter::All, true, &fields, bound, &counters, Some(&cache));
        (rows.len(), counters.reads.strips.load(Relaxed))
    };
    assert_eq!(newest(true).0, 10);
    assert!(newest(true).1 <= newest(false).1);

    // Nothing is read where headers say that no row can pass.
    let counters = ScanCounters::default();
    let none = find(&field("n", Predicate::Exact("5000".to_owned())), &counters);
    assert_eq!((none.len(), counters.reads.strips.load(Relaxed)), (0, 0));
    assert_eq!(counters.blocks_scanned.load(Relaxed), 0);
}
