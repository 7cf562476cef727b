//! Parts: any bytes, and valid parts whose units were changed under right checksums.

use std::sync::{Arc, LazyLock};

use super::input::{Input, put_bytes};
use super::rows::{DAY, Parts, is_typed, open, part_bytes, read_rows, rows};
use crate::merge::Hooks;
use crate::part::plain::Plain;
use crate::part::{
    PartReader, Profile, ReadContext, ReadStats, Unit, WriterOptions, inspect_part, remake,
    verify_part,
};
use crate::query::{Query, execute_parts};
use crate::record::{StreamKey, Timestamp};
use crate::{Error, QueryOptions};

/// Parts that say that they have more rows are not read: few bytes may stand for many rows.
const ROWS_MAX: u64 = 20_000;

const QUERIES: [&str; 7] = [
    "* | stats count() n, count_uniq(level) u",
    "level:=error _msg:took | fields _time, _stream, n",
    "request n:>3 | sort by (_time) | limit 5",
    "_msg:~\"10.0.[0-3]\" rare:seldom",
    "{app=\"api\"} size:* | stats by (level) sum(size) s, max(dur) m",
    "* | field_names",
    "_time:2024-10-04T00:00:00Z dur:>10ms | uniq by (id, host)",
];

pub(super) fn run(input: &[u8]) {
    check(input.to_vec());
}

fn check(bytes: Vec<u8>) {
    let part = match open(bytes) {
        Ok(part) => Arc::new(part),
        Err(e) => return assert!(is_typed(&e), "{e}"),
    };
    if part.footer().rows > ROWS_MAX {
        return;
    }
    let stats = ReadStats::default();
    let cx = ReadContext::new(&stats);
    let clean = match verify_part(&part, &cx) {
        Ok(report) => report.findings.is_empty(),
        Err(e) => {
            assert!(is_typed(&e), "{e}");
            false
        }
    };
    let all = typed(read_rows(&part, usize::MAX), clean);
    if let Some(all) = &all {
        assert_eq!(all.len() as u64, part.footer().rows, "rows of the footer");
    }
    typed(inspect_part(&part, &cx), clean);
    query(&part, clean);
    merge(&part, if clean { all } else { None });
}

/// A result; an error must be one of damage, and a part without findings must not give one.
fn typed<T>(result: crate::Result<T>, clean: bool) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(e) => {
            assert!(is_typed(&e), "{e}");
            assert!(!clean, "verification finds nothing wrong, reading does: {e}");
            None
        }
    }
}

/// Asks two of the queries, by the last bytes of the part.
fn query(part: &Arc<PartReader>, clean: bool) {
    let which = part.footer_checksum() as usize % QUERIES.len();
    for text in [QUERIES[which], QUERIES[(which + 3) % QUERIES.len()]] {
        let query: Query = text.parse().expect("the query is LogsQL");
        let answer = |prune: bool| {
            let options = QueryOptions::new().workers(1).prune(prune);
            let parts = Arc::new(Parts(vec![Arc::clone(part)]));
            let now = Timestamp::from_nanos(0);
            let rows = execute_parts(&query, parts, &options, now);
            let mut out = Vec::new();
            for row in rows {
                let mut text = Vec::new();
                crate::write_json(&row?, &mut text);
                out.push(text);
            }
            out.sort();
            Ok::<_, Error>(out)
        };
        let pruned = typed(answer(true), clean);
        if !clean {
            continue;
        }
        let all = typed(answer(false), clean);
        assert!(pruned == all, "pruning changes the answer of {text}");
    }
}

/// Merges the part with a good one; a part without findings loses no row.
fn merge(part: &PartReader, rows: Option<Vec<Plain>>) {
    static GOOD: LazyLock<Vec<u8>> =
        LazyLock::new(|| part_bytes(&super::rows::rows(1, 50), Profile::Flush, 30));
    let good = open(GOOD.clone()).expect("a valid part");
    let options = WriterOptions::new(9, DAY, (1, 2_000_000), Profile::Merge);
    let mut bytes = Vec::new();
    let result = crate::merge::merge_parts(&[part, &good], &options, Hooks::default(), &mut bytes);
    if typed(result, rows.is_some()).is_none() {
        return;
    }
    let Some(mut want) = rows else { return };
    want.extend(read_rows(&good, usize::MAX).expect("a valid part"));
    want.sort_by_cached_key(|row| {
        let key = StreamKey::new(row.labels.clone());
        (key.text(), row.labels.clone(), row.time)
    });
    let merged = open(bytes).and_then(|merged| read_rows(&merged, usize::MAX));
    assert!(merged.expect("a merge writes a valid part") == want, "rows of a merge");
}

pub(super) fn seeds() -> Vec<Vec<u8>> {
    let part = |kind, count, profile, block| part_bytes(&rows(kind, count), profile, block);
    vec![
        part(0, 0, Profile::Flush, 100),
        part(0, 40, Profile::Flush, 100),
        part(1, 70, Profile::Merge, 30),
        part(2, 60, Profile::Flush, 200),
        part(0, 30, Profile::Buffer, 20),
        part(1, 300, Profile::Flush, 65_536),
    ]
}

/// The parts that [`run_remade`] changes.
static VALID: LazyLock<Vec<PartReader>> = LazyLock::new(|| {
    let part = |kind, count, profile, block| {
        open(part_bytes(&rows(kind, count), profile, block)).expect("a valid part")
    };
    vec![
        part(0, 80, Profile::Flush, 50),
        part(1, 120, Profile::Merge, 90),
        part(2, 100, Profile::Flush, 400),
        part(0, 60, Profile::Buffer, 40),
        part(3, 2_100, Profile::Flush, 65_536),
    ]
});

/// A change of the bytes of unit number `unit` of a part.
struct Change<'a> {
    unit: usize,
    kind: u8,
    at: usize,
    bytes: &'a [u8],
}

impl Change<'_> {
    fn apply(&self, unit: &mut Vec<u8>) {
        let at = self.at % (unit.len() + 1);
        let len = self.bytes.len();
        match self.kind % 4 {
            0 => {
                for (to, from) in unit[at..].iter_mut().zip(self.bytes) {
                    *to = *from;
                }
            }
            1 => drop(unit.splice(at..at, self.bytes.iter().copied())),
            2 => drop(unit.drain(at..(at + len).min(unit.len()))),
            _ => {
                for (to, from) in unit[at..].iter_mut().zip(self.bytes) {
                    *to = to.wrapping_add(*from);
                }
            }
        }
    }
}

/// Which part, then changes: unit u16, kind u8, place u16, bytes behind their length u8.
pub(super) fn run_remade(input: &[u8]) {
    let mut input = Input::new(input);
    let part = &VALID[input.below(VALID.len())];
    let mut changes = Vec::new();
    while !input.is_empty() && changes.len() < 8 {
        let (unit, kind, at) = (input.u16().into(), input.u8(), input.u16().into());
        let len = input.u8().into();
        changes.push(Change { unit, kind, at, bytes: input.take(len) });
    }
    let stats = ReadStats::default();
    let cx = ReadContext::new(&stats);
    let mut number = 0;
    let mut change = |_: Unit, bytes: &mut Vec<u8>| {
        changes.iter().filter(|c| c.unit == number).for_each(|c| c.apply(bytes));
        number += 1;
    };
    let bytes = remake(part, &cx, &mut change).expect("the part was valid");
    check(bytes);
}

pub(super) fn seeds_remade() -> Vec<Vec<u8>> {
    let mut out = Vec::new();
    for (i, part) in VALID.iter().enumerate() {
        // One unit of each kind, the first and the last.
        let stats = ReadStats::default();
        let cx = ReadContext::new(&stats);
        let mut units: Vec<(Unit, usize)> = Vec::new();
        remake(part, &cx, &mut |unit, bytes| units.push((unit, bytes.len()))).expect("valid");
        let mut seen: Vec<Unit> = Vec::new();
        for (number, (unit, len)) in units.iter().enumerate() {
            let is_last = units[number + 1..].iter().all(|(other, _)| other != unit);
            if seen.contains(unit) && !is_last {
                continue;
            }
            seen.push(*unit);
            let mut seed = vec![i as u8];
            for (kind, at) in [(3u8, len / 2), (0, 0)] {
                seed.extend_from_slice(&(number as u16).to_le_bytes());
                seed.push(kind);
                seed.extend_from_slice(&(at as u16).to_le_bytes());
                seed.extend_from_slice(&[2, 0, 0]);
            }
            out.push(seed);
        }
    }
    let mut large = Vec::new();
    put_bytes(&mut large, &[1; 40]);
    out.push(large);
    out
}
