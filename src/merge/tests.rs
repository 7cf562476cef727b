//! Merges as wholes, and the table of the policy.

use proptest::prelude::*;

use super::kway::MergeResult;
use super::*;
use crate::Error;
use crate::part::tests::{DAY, Plain, batch, open, options, read_all, row, sorted, write};
use crate::part::{
    PartReader, Profile, ReadContext, ReadStats, WriterOptions, inspect_part, verify_part,
};

fn part_of(rows: &[Plain], cuts: (u64, u64)) -> PartReader {
    open(&write(&[&batch(rows)], &WriterOptions { cuts, ..options(Profile::Flush) }).0).unwrap()
}

fn merge(inputs: &[&PartReader], options: &WriterOptions) -> (PartReader, MergeResult) {
    merge_by(inputs, options, Hooks::default())
}

fn merge_by(
    inputs: &[&PartReader],
    options: &WriterOptions,
    hooks: Hooks<'_>,
) -> (PartReader, MergeResult) {
    let mut bytes = Vec::new();
    let result = merge_parts(inputs, options, hooks, &mut bytes).unwrap();
    assert_eq!(result.summary.len, bytes.len() as u64);
    let part = open(&bytes).unwrap();
    let stats = ReadStats::default();
    let report = verify_part(&part, &ReadContext::new(&stats)).unwrap();
    assert_eq!(report.findings, []);
    (part, result)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn a_merge_has_the_rows_of_its_inputs_in_order(
        rows in prop::collection::vec(row(), 0..150),
        cuts in prop::collection::vec(0usize..150, 0..4),
        block_rows in 3u32..80,
    ) {
        let mut cuts: Vec<usize> = cuts.into_iter().map(|c| c.min(rows.len())).collect();
        cuts.extend([0, rows.len()]);
        cuts.sort_unstable();
        let parts: Vec<PartReader> = cuts
            .windows(2)
            .map(|w| part_of(&rows[w[0]..w[1]], (w[0] as u64, w[1] as u64)))
            .collect();
        let options = WriterOptions { block_rows, ..options(Profile::Merge) };
        let inputs: Vec<&PartReader> = parts.iter().collect();
        let (once, result) = merge(&inputs, &options);
        let want = sorted(&rows);
        prop_assert_eq!(&read_all(&once).unwrap(), &want);
        prop_assert_eq!(result.rows_in, want.len() as u64);
        // Merged in two steps.
        let (left, right) = inputs.split_at(inputs.len() / 2);
        let (left, _) = merge(left, &options);
        let (right, _) = merge(right, &options);
        let (twice, _) = merge(&[&left, &right], &options);
        prop_assert_eq!(read_all(&twice).unwrap(), want);
    }
}

#[test]
fn constants_of_short_streams_are_found_by_merges() {
    let rows: Vec<Plain> = (0..8)
        .map(|i| Plain::new("a", i, &[("host", "h"), ("n", if i < 7 { "1" } else { "2" })]))
        .collect();
    let parts: Vec<PartReader> =
        rows.chunks(2).zip(0..).map(|(rows, i)| part_of(rows, (i * 2, i * 2 + 1))).collect();
    let (merged, _) = merge(&parts.iter().collect::<Vec<_>>(), &options(Profile::Merge));
    let stats = ReadStats::default();
    let cx = ReadContext::new(&stats);
    let chunk = merged.chunk(&cx, 0).unwrap();
    let names = merged.names(&cx).unwrap();
    let constants: Vec<&str> = chunk.constant_names().map(|n| names.name(n)).collect();
    assert_eq!(constants, ["host"]);
    assert_eq!(chunk.rows(0), 8);
    let columns = inspect_part(&merged, &cx).unwrap().columns;
    let has = |name: &str| columns.keys().any(|(n, _)| n == name);
    assert!(has("n") && !has("host"), "{columns:?}");
}

#[test]
fn long_streams_keep_the_constants_that_all_inputs_have() {
    let rows = |range: std::ops::Range<i64>, b: &str| -> Vec<Plain> {
        range.map(|i| Plain::new("a", i, &[("x", "1"), ("y", b), ("i", &i.to_string())])).collect()
    };
    let all = [rows(0..5_000, "p"), rows(5_000..9_000, "p"), rows(9_000..9_500, "q")];
    let parts: Vec<PartReader> = all
        .iter()
        .zip(0..)
        .map(|(rows, i)| part_of(rows, (i * 5_000, i * 5_000 + 4_999)))
        .collect();
    let inputs: Vec<&PartReader> = parts.iter().collect();
    let (merged, _) = merge(&inputs, &options(Profile::Merge));
    assert!(read_all(&merged).unwrap() == sorted(&all.concat()));
    let stats = ReadStats::default();
    let cx = ReadContext::new(&stats);
    let names = merged.names(&cx).unwrap();
    let constants: Vec<u32> = merged.chunk(&cx, 0).unwrap().constant_names().collect();
    assert_eq!(constants, [names.id("x").unwrap()]);
}

#[test]
fn a_damaged_input_ends_the_merge() {
    let rows: Vec<Plain> =
        (0..50).map(|i| Plain::new("a", i, &[("_msg", &format!("message {i}"))])).collect();
    let (mut bytes, _) = write(&[&batch(&rows)], &options(Profile::Flush));
    bytes[20] ^= 1;
    let part = open(&bytes).unwrap();
    let merge = || merge_parts(&[&part], &options(Profile::Merge), Hooks::default(), &mut vec![]);
    let failed = merge();
    assert!(matches!(&failed, Err(Error::Corrupted(c)) if c.offset < 300), "{failed:?}");
}

/// Rows of a few streams whose times rise from part to part, some parts a little mixed.
fn rising() -> impl Strategy<Value = Vec<Vec<Plain>>> {
    let part = (prop::collection::vec(row(), 0..60), 0i64..8, any::<bool>());
    prop::collection::vec(part, 1..5).prop_map(|parts| {
        let mut out = Vec::new();
        for (i, (mut rows, back, constant)) in (0i64..).zip(parts) {
            rows.sort_by_key(|row| row.time);
            for (n, row) in (0i64..).zip(&mut rows) {
                row.time = Plain::new("", 0, &[]).time + i * 55 + n - back;
                row.fields.insert("n".to_owned(), (i * 100 + n).to_string().into_bytes());
                if constant {
                    // Constants that other parts lack, or have with another value.
                    let value = format!("constant {}", i % 2).into_bytes();
                    row.fields.insert("g".to_owned(), value);
                    row.fields.insert("z".to_owned(), vec![b'z'; 200]);
                }
            }
            out.push(rows);
        }
        out
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    #[test]
    fn a_merge_that_copies_blocks_has_the_same_rows(
        parts in rising(), block_rows in 2u32..30, again in rising(),
    ) {
        let size = |o: WriterOptions| WriterOptions { block_rows, ..o };
        let write_all = |parts: &[Vec<Plain>]| -> Vec<PartReader> {
            let merged = WriterOptions { level: 1, ..size(options(Profile::Flush)) };
            let part = |rows: &Vec<Plain>| write(&[&batch(rows)], &merged).0;
            parts.iter().map(|rows| open(&part(rows)).unwrap()).collect()
        };
        let readers = write_all(&parts);
        let inputs: Vec<&PartReader> = readers.iter().collect();
        let merge = |inputs: &[&PartReader], encode_all| {
            let hooks = Hooks { encode_all, ..Hooks::default() };
            merge_by(inputs, &size(options(Profile::Merge)), hooks)
        };
        let (copied, result) = merge(&inputs, false);
        let (encoded, other) = merge(&inputs, true);
        let want = sorted(&parts.concat());
        prop_assert_eq!(&read_all(&copied).unwrap(), &want);
        prop_assert_eq!(&read_all(&encoded).unwrap(), &want);
        let work = result.work;
        prop_assert_eq!(work.rows_copied + work.rows_encoded, want.len() as u64);
        let other = other.work;
        prop_assert_eq!((other.blocks_copied, other.rows_encoded), (0, want.len() as u64));
        // Copied blocks are copied again, beside others.
        let more = write_all(&again);
        let inputs: Vec<&PartReader> = [&copied].into_iter().chain(&more).collect();
        let (twice, _) = merge(&inputs, false);
        prop_assert_eq!(read_all(&twice).unwrap(), sorted(&[want, again.concat()].concat()));
    }
}

#[test]
fn full_blocks_are_copied_byte_for_byte() {
    let rows = |range: std::ops::Range<i64>, zone: &str| -> Vec<Plain> {
        let text = |i: i64| format!("message {} number {i}", i * 7919 % 1_000);
        let row =
            |i: i64| Plain::new("big", i, &[("_msg", &text(i)), ("host", "same"), ("zone", zone)]);
        range.map(row).collect()
    };
    let small = |range: std::ops::Range<i64>| -> Vec<Plain> {
        range.map(|i| Plain::new("small", i, &[("_msg", "x"), ("host", "same")])).collect()
    };
    let all = [
        [rows(0..4_000, "a"), small(0..40)].concat(),
        [rows(4_000..8_000, "b"), small(40..70)].concat(),
    ];
    let size = |profile| WriterOptions { block_rows: 1_000, level: 1, ..options(profile) };
    let part = |rows: &Vec<Plain>| open(&write(&[&batch(rows)], &size(Profile::Flush)).0).unwrap();
    let parts: Vec<PartReader> = all.iter().map(part).collect();
    let inputs: Vec<&PartReader> = parts.iter().collect();
    let (merged, result) = merge(&inputs, &size(Profile::Merge));
    assert!(read_all(&merged).unwrap() == sorted(&all.concat()));
    let work = result.work;
    assert_eq!((work.blocks_copied, work.rows_copied, work.rows_encoded), (8, 8_000, 70));
    // What was a constant of the stream in each part is one of the block now.
    let stats = ReadStats::default();
    let cx = ReadContext::new(&stats);
    let names = merged.names(&cx).unwrap();
    let chunk = merged.chunk(&cx, 0).unwrap();
    let constants: Vec<&str> = chunk.constant_names().map(|n| names.name(n)).collect();
    assert_eq!(constants, ["_msg", "host"], "that of the small stream, and that of both");
    assert_eq!(names.hits(names.id("zone").unwrap()), 8_000);
    // The pages of the first block stand in both files.
    let len = parts[0].index_block(&cx, 0).unwrap().head(1).unwrap().offset - 16;
    let pages = parts[0].source().read(16, len).unwrap();
    assert_eq!(merged.source().read(16, len).unwrap(), pages);
    // Rows of another part in the middle of a block: that block is encoded, the others are not.
    let between = vec![Plain::new("big", 1_500, &[("host", "same")]); 5];
    let (merged, result) = merge(&[&parts[0], &part(&between)], &size(Profile::Merge));
    assert!(read_all(&merged).unwrap() == sorted(&[all[0].clone(), between].concat()));
    assert_eq!((result.work.blocks_copied, result.work.rows_encoded), (3, 1_045));
    // Blocks of a flush are made anew.
    let flushed = WriterOptions { level: 0, ..size(Profile::Flush) };
    let flushed = open(&write(&[&batch(&all[0])], &flushed).0).unwrap();
    let (merged, result) = merge(&[&flushed, &parts[1]], &size(Profile::Merge));
    assert!(read_all(&merged).unwrap() == sorted(&all.concat()));
    assert_eq!((result.work.blocks_copied, result.work.rows_encoded), (4, 4_070));
}

#[test]
fn a_damaged_block_is_not_copied() {
    let rows: Vec<Plain> =
        (0..500).map(|i| Plain::new("a", i, &[("_msg", &format!("message {i}"))])).collect();
    let size = |profile| WriterOptions { block_rows: 100, ..options(profile) };
    let (bytes, _) = write(&[&batch(&rows)], &size(Profile::Flush));
    let part = open(&bytes).unwrap();
    let stats = ReadStats::default();
    let cx = ReadContext::new(&stats);
    let end = part.metaindex(&cx).unwrap()[0].filters as usize;
    for at in (16..end).step_by(7) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 4;
        let part = open(&damaged).unwrap();
        let merge = merge_parts(&[&part], &size(Profile::Merge), Hooks::default(), &mut Vec::new());
        assert!(matches!(merge, Err(Error::Corrupted(_))), "byte {at}");
    }
}

/// Parts of one day by length in MiB and hours, with cuts in order.
fn metas(parts: &[(u64, i64, i64)]) -> Vec<PartMeta> {
    let meta = |(i, (len, from, to)): (u64, &(u64, i64, i64))| PartMeta {
        part_id: i,
        day: DAY,
        level: 1,
        len: len << 20,
        min_time: *from,
        max_time: *to,
        cuts: (i * 10, i * 10 + 9),
    };
    (0u64..).zip(parts).map(meta).collect()
}

fn planned(tasks: Vec<MergeTask>) -> Vec<Vec<u64>> {
    tasks.into_iter().map(|t| t.parts).collect()
}

#[test]
fn the_policy_by_table() {
    let same = |n: usize, len: u64| vec![(len, 0, 24); n];
    for (parts, busy, want) in [
        (same(2, 1), vec![], vec![]),
        (same(3, 1), vec![], vec![vec![0, 1, 2]]),
        (same(20, 1), vec![], vec![(0..16).collect::<Vec<u64>>(), vec![16, 17, 18, 19]]),
        ([vec![(100, 0, 24)], same(4, 1)].concat(), vec![], vec![vec![1, 2, 3, 4]]),
        (same(7, 1), vec![3], vec![vec![0, 1, 2], vec![4, 5, 6]]),
        (same(5, 1), vec![2], vec![]),
        // Large parts of different hours stay apart, those of the same hours do not.
        (vec![(80, 0, 7), (80, 8, 15), (80, 16, 23)], vec![], vec![]),
        (vec![(80, 0, 9), (80, 5, 15), (80, 9, 23)], vec![], vec![vec![0, 1, 2]]),
    ] {
        assert_eq!(planned(plan(&metas(&parts), &busy)), want, "{parts:?} {busy:?}");
    }
    let hours = [(80, 0, 7), (80, 8, 15), (1, 16, 23), (1, 16, 23)];
    assert_eq!(planned(plan_compaction(&metas(&hours), &[])), [vec![1, 2, 3]]);
}

#[test]
fn what_no_merge_touched_is_rewritten_once() {
    let part = |id: u64, day: i64, level: u8| PartMeta {
        part_id: id,
        day,
        level,
        cuts: (id, id),
        ..metas(&[(1 + 20 * u64::from(level), 0, 24)])[0]
    };
    let parts = [part(0, 1, 0), part(1, 1, 1), part(2, 1, 0), part(3, 1, 0), part(4, 2, 0)];
    // The day of the last part may still grow.
    assert_eq!(planned(plan(&parts, &[])), [vec![0], vec![2, 3]]);
    assert_eq!(planned(plan(&parts, &[2])), [vec![0], vec![3]]);
    assert_eq!(planned(plan(&parts[..4], &[])), Vec::<Vec<u64>>::new());
    assert_eq!(planned(plan(&[part(0, 1, 1), part(1, 2, 1)], &[])), Vec::<Vec<u64>>::new());
    assert_eq!(planned(plan_compaction(&parts[3..], &[])), [vec![3], vec![4]]);
    assert_eq!(planned(plan_compaction(&[part(0, 1, 1)], &[])), Vec::<Vec<u64>>::new());
}

#[test]
fn a_trickle_is_rewritten_a_bounded_number_of_times() {
    let mut parts: Vec<PartMeta> = Vec::new();
    let (mut written, mut next_id) = (0u64, 0u64);
    for cut in 0..3_000u64 {
        let meta = metas(&[(1, 0, 24)])[0];
        parts.push(PartMeta { part_id: next_id, cuts: (cut, cut), ..meta });
        next_id += 1;
        for task in plan(&parts, &[]) {
            let level = task.level;
            parts.retain(|p| !task.parts.contains(&p.part_id));
            parts.push(PartMeta {
                part_id: next_id,
                level,
                len: task.len,
                cuts: task.cuts,
                ..meta
            });
            next_id += 1;
            written += task.len;
        }
    }
    let mib = written >> 20;
    assert!(parts.len() <= 24 && mib / 3_000 <= 8, "{} parts, {mib} MiB", parts.len());
}
