//! Columns that are known run by run: what streams and headers say without a page.

use std::sync::Arc;

use super::block::BlockScan;
use super::strip::StripSource;
use crate::error::Result;
use crate::part::{ColumnPage, RunConstants};
use crate::query::ast::{STREAM_FIELD, STREAM_ID_FIELD, TIME_FIELD};
use crate::query::column::{Column, push_time};
use crate::query::time_buckets::EvenBuckets;
use crate::record::TextVec;

/// Some of the runs of a block, with all of their rows.
#[derive(Debug)]
pub(crate) struct RunRows {
    runs: Vec<u32>,
    /// The first row behind each run, counted among these runs.
    ends: Arc<Vec<u32>>,
}

impl RunRows {
    /// The number of rows.
    pub(crate) fn rows(&self) -> usize {
        self.ends.last().map_or(0, |end| *end as usize)
    }
}

impl StripSource<'_, '_> {
    /// The run of each of the given rows, which ascend.
    pub(super) fn runs_of(&self, rows: &[u32]) -> Result<Vec<usize>> {
        let mut runs = self.runs()?.iter().peekable();
        let run_of = |row: &u32| {
            while runs.next_if(|(_, of_run)| of_run.end <= *row as usize).is_some() {}
            runs.peek().map_or(0, |(run, _)| *run)
        };
        Ok(rows.iter().map(run_of).collect())
    }

    /// The texts or ids of the streams of the given rows, which ascend, made for these alone.
    pub(super) fn gather_streams(&self, ids: bool, rows: &[u32]) -> Result<Column> {
        let reader = &self.block.reader;
        let mut out = TextVec::new();
        let mut last: Option<(usize, Vec<u8>)> = None;
        for run in self.runs_of(rows)? {
            if last.as_ref().is_none_or(|(known, _)| *known != run) {
                let first = reader.head_of_block().first_stream;
                let ordinal = first.saturating_add(u32::try_from(run).unwrap_or(u32::MAX));
                let text = match ids {
                    true => {
                        let key = reader.part().stream_key(self.block.cx, ordinal)?;
                        key.id().to_string().into_bytes()
                    }
                    false => reader.part().stream_text(self.block.cx, ordinal)?,
                };
                last = Some((run, text));
            }
            out.push(last.as_ref().map_or(&[][..], |(_, text)| text));
        }
        Ok(Column::text(out))
    }
}

impl BlockScan<'_> {
    /// The runs whose number passes.
    pub(crate) fn some_runs(&self, wanted: impl Fn(u32) -> bool) -> Result<RunRows> {
        let all = self.reader.runs()?;
        let (mut runs, mut ends, mut end) = (Vec::new(), Vec::new(), 0);
        for run in (0..all.len()).filter_map(|run| u32::try_from(run).ok()).filter(|r| wanted(*r)) {
            let rows = all.rows(run as usize);
            end += rows.end - rows.start;
            runs.push(run);
            ends.push(end);
        }
        Ok(RunRows { runs, ends: Arc::new(ends) })
    }

    /// The values of a field in the rows of some runs, or of all; `None` if a page has to be read
    /// for them.
    pub(crate) fn column_of_runs(
        &self,
        name: &str,
        runs: Option<&RunRows>,
    ) -> Result<Option<Column>> {
        match name {
            TIME_FIELD => return Ok(None),
            STREAM_FIELD => return self.value_of_runs(runs, |run| run, self.stream_texts()?),
            STREAM_ID_FIELD => return self.value_of_runs(runs, |run| run, self.stream_ids()?),
            _ => {}
        }
        let column = self.column(name)?;
        let (codes, values) = match (&column.column.constants, &column.column.page) {
            (RunConstants::Every(value), _) => return Ok(Some(Column::constant(value))),
            (RunConstants::None, ColumnPage::Const(value)) => {
                return Ok(Some(Column::constant(value)));
            }
            (RunConstants::None, ColumnPage::Absent) => return Ok(Some(Column::absent())),
            (RunConstants::None, _) => return Ok(None),
            (RunConstants::PerRun { codes, values }, _) => (codes, values),
        };
        let has = |run: usize| codes.get(run).is_some_and(|code| *code > 0);
        let all_have = match runs {
            Some(some) => some.runs.iter().all(|run| has(*run as usize)),
            None => (0..codes.len()).all(has),
        };
        // The values themselves, where they suffice, are those of other blocks too.
        let dictionary = match &column.column.page {
            _ if all_have => values,
            ColumnPage::Absent | ColumnPage::Const(_) => column.run_dictionary(values),
            _ => return Ok(None),
        };
        let code_of = column.run_codes(codes, values);
        self.value_of_runs(runs, |run| code_of(run as usize), dictionary)
    }

    /// For the rows of some runs, or of all, a time of the bucket that each falls into; `None` if
    /// times have to be read for it.
    pub(crate) fn buckets_of_runs(
        &self,
        even: EvenBuckets,
        runs: Option<&RunRows>,
    ) -> Result<Option<Column>> {
        let head = self.reader.head_of_block();
        if let Some(start) = even.only(head.min_time, head.max_time) {
            return Ok(Some(start_column(start)));
        }
        let all = self.reader.runs()?;
        let start = |run: usize| all.times(run).and_then(|(min, max)| even.only(min, max));
        let starts: Option<Vec<i64>> = match runs {
            Some(some) => some.runs.iter().map(|run| start(*run as usize)).collect(),
            None => (0..all.len()).map(start).collect(),
        };
        let ends = runs.map_or_else(|| Arc::clone(all.ends()), |some| Arc::clone(&some.ends));
        Ok(starts.map(|starts| Column::of_each_run(&ends, time_texts(&starts))))
    }

    fn value_of_runs(
        &self,
        runs: Option<&RunRows>,
        code_of: impl Fn(u32) -> u32,
        values: &Arc<TextVec>,
    ) -> Result<Option<Column>> {
        let (ends, codes): (_, Vec<u32>) = match runs {
            Some(some) => (Arc::clone(&some.ends), some.runs.iter().map(|r| code_of(*r)).collect()),
            None => {
                let all = self.reader.runs()?;
                let runs = 0..u32::try_from(all.len()).unwrap_or(u32::MAX);
                (Arc::clone(all.ends()), runs.map(code_of).collect())
            }
        };
        Ok(Some(Column::Runs { ends, codes: Arc::new(codes), dictionary: Arc::clone(values) }))
    }
}

impl StripSource<'_, '_> {
    /// For the given rows, or all, a time of the bucket that each falls into; `None` if times have
    /// to be read for it.
    pub(crate) fn buckets(
        &self,
        even: EvenBuckets,
        rows: Option<&[u32]>,
    ) -> Result<Option<Column>> {
        let all = self.block.reader.runs()?;
        let mut starts = Vec::new();
        for (run, _) in self.runs()? {
            match all.times(*run).and_then(|(min, max)| even.only(min, max)) {
                Some(start) => starts.push(start),
                None => return Ok(None),
            }
        }
        if let Some(first) = starts.first()
            && starts.iter().all(|start| start == first)
        {
            return Ok(Some(start_column(*first)));
        }
        let values = Arc::new(time_texts(&starts));
        let first = self.runs()?.first().map_or(0, |(run, _)| *run);
        let code = |run: usize| u32::try_from(run.saturating_sub(first)).unwrap_or(u32::MAX);
        let column = self.of_runs(code, &values)?;
        Ok(Some(rows.map_or_else(|| column.clone(), |rows| column.gather(rows))))
    }
}

/// A column of one time.
fn start_column(start: i64) -> Column {
    let mut text = Vec::new();
    push_time(&mut text, start);
    Column::constant(&text)
}

fn time_texts(times: &[i64]) -> TextVec {
    let mut out = TextVec::with_capacity(times.len(), 24 * times.len());
    for ns in times {
        push_time(out.open(), *ns);
        out.close();
    }
    out
}
