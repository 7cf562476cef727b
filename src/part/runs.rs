//! The runs of a block: how many rows each stream has in it, and between which times.

use std::ops::Range;
use std::sync::Arc;

#[cfg(test)]
use super::layout::count32;
use crate::codec::PAGE_ROWS_MAX;
use crate::codec::varint::{Reader, put_varint};
use crate::error::Malformed;

/// Runs up to this number keep their times to 1/65,536 of the block's span, more to 1/256.
const FINE_RUNS_MAX: usize = 1_024;

/// The runs of a block, in stream order; run `i` is stream `first_stream + i`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Runs {
    /// First row behind each run.
    ends: Arc<Vec<u32>>,
    /// Bounds of the times of each run, never too narrow.
    times: Vec<(i64, i64)>,
}

impl Runs {
    /// A block of one stream.
    pub(crate) fn single(rows: u32, min_time: i64, max_time: i64) -> Runs {
        Runs { ends: Arc::new(vec![rows]), times: vec![(min_time, max_time)] }
    }

    /// The number of runs.
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The first row behind each run.
    pub(crate) fn ends(&self) -> &Arc<Vec<u32>> {
        &self.ends
    }

    /// The rows of run `i`; empty past the end.
    pub(crate) fn rows(&self, i: usize) -> Range<u32> {
        let end = self.ends.get(i).or(self.ends.last()).copied().unwrap_or(0);
        let before = match i.checked_sub(1) {
            None => 0,
            Some(p) => self.ends.get(p).copied().unwrap_or(end),
        };
        before..end
    }

    /// No row of run `i` is earlier than the first nor later than the second time.
    pub(crate) fn times(&self, i: usize) -> Option<(i64, i64)> {
        self.times.get(i).copied()
    }

    /// The run that holds `row`, by binary search.
    pub(crate) fn run_of(&self, row: u32) -> usize {
        self.ends.partition_point(|end| *end <= row)
    }

    /// Bytes of memory held.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.ends.capacity() * size_of::<u32>() + self.times.capacity() * size_of::<(i64, i64)>()
    }

    /// Reads the raw runs of a block of `rows` rows and `streams` streams.
    pub(crate) fn parse(
        bytes: &[u8],
        rows: u32,
        streams: u32,
        block: (i64, i64),
    ) -> Result<Runs, Malformed> {
        let mut r = Reader::new(bytes);
        let shift = u32::from(r.u8()?);
        let count = streams as usize;
        if shift > 63 || count > PAGE_ROWS_MAX {
            return Err(Malformed("runs of a block"));
        }
        let (mut ends, mut times) = (Vec::with_capacity(count), Vec::with_capacity(count));
        let span = block.1.wrapping_sub(block.0).cast_unsigned();
        let mut end = 0u32;
        for _ in 0..count {
            end = r
                .varint32()?
                .checked_add(1)
                .and_then(|n| end.checked_add(n))
                .filter(|end| *end <= rows)
                .ok_or(Malformed("runs with more rows than the block"))?;
            let low = r.varint()?;
            let high = low.checked_add(r.varint()?).ok_or(Malformed("times of a run"))?;
            if high > span >> shift {
                return Err(Malformed("a run later than its block"));
            }
            let top = ((high << shift) | ((1u64 << shift) - 1)).min(span);
            let at = |n: u64| block.0.wrapping_add(n.cast_signed());
            times.push((at(low << shift), at(top)));
            ends.push(end);
        }
        r.finish()?;
        if end != rows {
            return Err(Malformed("runs with fewer rows than the block"));
        }
        Ok(Runs { ends: Arc::new(ends), times })
    }
}

/// Collects the runs of a block while it is built.
#[derive(Debug, Default)]
pub(crate) struct RunsBuilder {
    runs: Vec<(u32, i64, i64)>,
}

impl RunsBuilder {
    /// Forgets all runs.
    pub(crate) fn clear(&mut self) {
        self.runs.clear();
    }

    /// The number of runs.
    pub(crate) fn len(&self) -> usize {
        self.runs.len()
    }

    /// Begins the run of the next stream, which must get a row.
    pub(crate) fn begin(&mut self) {
        self.runs.push((0, i64::MAX, i64::MIN));
    }

    /// Forgets the run begun last if it has no row: its first one goes to the next block.
    pub(crate) fn drop_empty(&mut self) {
        self.runs.pop_if(|(rows, _, _)| *rows == 0);
    }

    /// Counts a row of the run begun last.
    #[inline]
    pub(crate) fn row(&mut self, time: i64) {
        if let Some((rows, min, max)) = self.runs.last_mut() {
            *rows += 1;
            *min = (*min).min(time);
            *max = (*max).max(time);
        }
    }

    /// Earliest and latest time of all runs; zeros without rows.
    pub(crate) fn span(&self) -> (i64, i64) {
        let min = self.runs.iter().map(|r| r.1).min().unwrap_or(0);
        let max = self.runs.iter().map(|r| r.2).max().unwrap_or(0);
        (min, max)
    }

    /// Rows of each run.
    pub(crate) fn rows(&self) -> impl Iterator<Item = u32> + '_ {
        self.runs.iter().map(|r| r.0)
    }

    /// The raw runs: shift, then for each run rows - 1, earliest time, latest - earliest, times
    /// in units of 2^shift ns from the block's earliest.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let (min, max) = self.span();
        let span = max.wrapping_sub(min).cast_unsigned();
        let keep = if self.runs.len() > FINE_RUNS_MAX { 8 } else { 16 };
        let shift = (64 - span.leading_zeros()).saturating_sub(keep);
        let mut out = vec![shift.to_le_bytes()[0]];
        for &(rows, low, high) in &self.runs {
            let quantum = |t: i64| t.wrapping_sub(min).cast_unsigned() >> shift;
            put_varint(&mut out, u64::from(rows.saturating_sub(1)));
            put_varint(&mut out, quantum(low));
            put_varint(&mut out, quantum(high) - quantum(low));
        }
        out
    }

    /// The number of rows of all runs.
    #[cfg(test)]
    pub(crate) fn total(&self) -> u32 {
        count32(self.runs.iter().map(|r| r.0 as usize).sum())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]
        #[test]
        fn bounds_hold_every_row(
            runs in prop::collection::vec(prop::collection::vec(any::<i64>(), 1..5), 1..40),
            shift in 0u32..50,
            many in any::<bool>(),
        ) {
            let repeat = if many { 60 } else { 1 };
            let mut builder = RunsBuilder::default();
            let runs: Vec<Vec<i64>> = runs.iter().cycle().take(runs.len() * repeat)
                .map(|r| r.iter().map(|t| t >> shift >> 1).collect()).collect();
            for run in &runs {
                builder.begin();
                run.iter().for_each(|t| builder.row(*t));
            }
            let rows = builder.total();
            let back = Runs::parse(
                &builder.encode(), rows, count32(runs.len()), builder.span()).unwrap();
            let mut row = 0;
            for (i, run) in runs.iter().enumerate() {
                prop_assert_eq!(back.rows(i), row..row + count32(run.len()));
                prop_assert_eq!(back.run_of(row), i);
                row += count32(run.len());
                let (min, max) = back.times(i).unwrap();
                prop_assert!(run.iter().all(|t| min <= *t && *t <= max));
                prop_assert!(min >= builder.span().0 && max <= builder.span().1);
            }
            prop_assert!(back.rows(runs.len()).is_empty());
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..20)) {
            let _ = Runs::parse(&bytes, 3, 2, (i64::MIN, i64::MAX));
        }
    }
}
