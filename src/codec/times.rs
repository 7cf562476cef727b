//! The `_time` column: nanoseconds, sorted within each stream run.
//!
//! A strip is `runs varint | lengths of runs less one (frame, if there are several) | first times
//! (numbers) | groups`. A group is `runs varint | numbers`: the differences between neighbours of
//! these runs. Numbers are divided by their greatest common divisor, so that times of a coarser
//! unit cost no more than that unit needs. A run that is long enough has a group of its own, since
//! each stream has its own pace and unit; short ones share.

use super::numbers::{decode_numbers, encode_numbers};
use super::varint::{Reader, put_varint};
use super::{STRIP_ROWS, frame};
use crate::error::Malformed;

/// A run with as many rows has a group of its own.
const GROUP_MIN: usize = 64;

/// Appends the strip of `times`; `run_lens` are the lengths of its runs.
pub(super) fn encode_strip(times: &[i64], run_lens: &[usize], out: &mut Vec<u8>) {
    put_varint(out, run_lens.len() as u64);
    if run_lens.len() > 1 {
        // A run has at least one row, and at most those of a strip.
        let lens: Vec<i64> =
            run_lens.iter().map(|n| i64::try_from(n - 1).unwrap_or(i64::MAX)).collect();
        frame::encode(&lens, out);
    }
    let mut firsts = Vec::with_capacity(run_lens.len());
    let mut steps = Vec::with_capacity(times.len());
    let mut groups = Vec::new();
    let mut group_runs = 0u64;
    let mut close = |runs: &mut u64, steps: &mut Vec<i64>| {
        if *runs > 0 {
            put_varint(&mut groups, *runs);
            encode_numbers(steps, 0, &mut groups);
            *runs = 0;
            steps.clear();
        }
    };
    let mut rest = times;
    for len in run_lens {
        let (run, after) = rest.split_at(rest.len().min(*len));
        rest = after;
        if *len >= GROUP_MIN || steps.len() >= GROUP_MIN {
            close(&mut group_runs, &mut steps);
        }
        firsts.extend(run.first());
        steps.extend(run.iter().zip(run.iter().skip(1)).map(|(a, b)| b.wrapping_sub(*a)));
        group_runs += 1;
    }
    close(&mut group_runs, &mut steps);
    encode_numbers(&mut firsts, 0, out);
    out.extend_from_slice(&groups);
}

/// The lengths of the runs within each strip of a page of `rows` rows, whose runs have `run_lens`
/// rows.
pub(super) fn strip_runs(rows: usize, run_lens: &[u32]) -> Vec<Vec<usize>> {
    let mut strips = Vec::new();
    let mut lens = run_lens.iter().map(|n| *n as usize).filter(|n| *n > 0);
    let mut open = lens.next().unwrap_or(rows);
    let mut done = 0;
    while done < rows {
        let mut left = STRIP_ROWS.min(rows - done);
        done += left;
        let mut strip = Vec::new();
        while left > 0 {
            let taken = open.min(left);
            strip.push(taken);
            left -= taken;
            open -= taken;
            if open == 0 {
                open = lens.next().unwrap_or(rows);
            }
        }
        strips.push(strip);
    }
    strips
}

/// Decodes a strip of `rows` rows.
pub(super) fn decode_strip(bytes: &[u8], rows: usize) -> Result<Vec<i64>, Malformed> {
    let mut r = Reader::new(bytes);
    let runs = r.len(rows)?;
    let lens = decode_lens(&mut r, runs, rows)?;
    let mut firsts = vec![0i64; runs];
    decode_numbers(&mut r, 0, &mut firsts)?;
    let mut times = Vec::with_capacity(rows);
    let mut steps = vec![0i64; rows];
    let mut runs = lens.iter().zip(firsts);
    let mut runs_left = lens.len();
    while runs_left > 0 {
        let count = r.len(runs_left)?;
        if count == 0 {
            return Err(Malformed("group without runs"));
        }
        let group = lens.get(lens.len() - runs_left..).unwrap_or(&[]);
        let step_count = group.iter().take(count).map(|len| len - 1).sum();
        let steps = steps.get_mut(..step_count).ok_or(Malformed("group of too many rows"))?;
        decode_numbers(&mut r, 0, steps)?;
        let mut steps = steps.iter();
        for (len, first) in runs.by_ref().take(count) {
            let mut time = first;
            times.push(time);
            for step in steps.by_ref().take(len - 1) {
                time = time.wrapping_add(*step);
                times.push(time);
            }
        }
        runs_left -= count;
    }
    r.finish()?;
    if times.len() == rows {
        Ok(times)
    } else {
        Err(Malformed("number of times is not that of rows"))
    }
}

/// The lengths of `runs` runs, each at least 1, with the sum `rows`.
fn decode_lens(r: &mut Reader<'_>, runs: usize, rows: usize) -> Result<Vec<usize>, Malformed> {
    if runs == 0 {
        return Ok(Vec::new());
    }
    if runs == 1 {
        return Ok(vec![rows]);
    }
    let mut lens = vec![0i64; runs];
    frame::decode(r, &mut lens)?;
    let mut total = 0;
    let lens: Result<Vec<usize>, Malformed> = lens
        .iter()
        .map(|len| {
            let len = usize::try_from(*len).ok().filter(|len| *len < STRIP_ROWS);
            let len = len.ok_or(Malformed("run longer than its strip"))? + 1;
            total += len;
            Ok(len)
        })
        .collect();
    let lens = lens?;
    if total == rows { Ok(lens) } else { Err(Malformed("runs do not cover the strip")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]
        #[test]
        fn times_come_back(
            runs in prop::collection::vec(prop::collection::vec(any::<i64>(), 1..200), 0..20),
            shift in 0u32..50,
            unit in prop::sample::select(vec![1i64, 1000, 1_000_000_000]),
        ) {
            let mut times = Vec::new();
            let mut lens = Vec::new();
            for run in &runs {
                let mut run: Vec<i64> =
                    run.iter().map(|t| (t >> shift).wrapping_mul(unit)).collect();
                run.sort_unstable();
                lens.push(u32::try_from(run.len()).unwrap());
                times.extend(run);
            }
            let strips = strip_runs(times.len(), &lens);
            prop_assert_eq!(strips.len(), times.len().div_ceil(STRIP_ROWS));
            for (strip, lens) in times.chunks(STRIP_ROWS).zip(strips) {
                prop_assert_eq!(lens.iter().sum::<usize>(), strip.len());
                let mut out = Vec::new();
                encode_strip(strip, &lens, &mut out);
                prop_assert_eq!(decode_strip(&out, strip.len()), Ok(strip.to_vec()));
            }
        }

        #[test]
        fn any_bytes_are_read_or_refused(
            bytes in prop::collection::vec(prop_oneof![0u8..4, any::<u8>()], 0..300),
        ) {
            let _ = decode_strip(&bytes, 200);
        }
    }

    #[test]
    fn a_steady_stream_costs_almost_nothing() {
        let times: Vec<i64> =
            (0..2048).map(|i| 1_700_000_000_000_000_000 + i * 10_000_000).collect();
        let mut out = Vec::new();
        encode_strip(&times, &[2048], &mut out);
        assert!(out.len() < 80, "{}", out.len());
        assert_eq!(decode_strip(&out, 2048), Ok(times));
    }
}
