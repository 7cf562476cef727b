//! `count`, `count_empty`, `rate`, `sum_len`.

use super::input::{FieldList, Input, Part};
use super::{StatsState, mapped, same_state, slot};
use crate::codec::Bitmap;
use crate::error::Result;
use crate::query::ast::FieldPattern;
use crate::query::column::{Column, push_int};
use crate::query::context::ExecContext;
use crate::record::write_f64;

/// Counts rows, all or those with a value in one of the fields.
#[derive(Debug, Clone)]
pub(crate) struct CountState {
    /// `None` counts all rows.
    fields: Option<FieldList>,
    /// Divides the answer.
    per_seconds: Option<f64>,
    counts: Vec<u64>,
}

impl CountState {
    /// `count(...)`.
    pub(crate) fn new(fields: &[FieldPattern]) -> CountState {
        let all = fields.iter().any(FieldPattern::is_all);
        let fields = (!all).then(|| FieldList::new(fields));
        CountState { fields, per_seconds: None, counts: Vec::new() }
    }

    /// `rate()` over so many seconds.
    pub(crate) fn rate(seconds: f64) -> CountState {
        CountState { fields: None, per_seconds: Some(seconds), counts: Vec::new() }
    }
}

impl StatsState for CountState {
    fn update(&mut self, _ctx: &ExecContext<'_>, input: &Input<'_>) -> Result<()> {
        let Some(fields) = &self.fields else {
            // With room for all groups the loop over rows is as short as it can be.
            self.counts.resize(input.group_count.max(self.counts.len()), 0);
            input.for_each_count(|group, rows| {
                if let Some(count) = self.counts.get_mut(group as usize) {
                    *count += rows;
                }
            });
            return Ok(());
        };
        let absent = Column::absent();
        let parts = fields.parts(input.batch, &absent);
        let present = any_present(&parts, input.batch.rows());
        input.for_each(|row, group| {
            *slot(&mut self.counts, group) += u64::from(present.get(row));
        });
        Ok(())
    }

    fn fork(&self) -> Box<dyn StatsState> {
        Box::new(CountState { counts: Vec::new(), ..self.clone() })
    }

    fn absorb(
        &mut self,
        _ctx: &ExecContext<'_>,
        other: Box<dyn StatsState>,
        map: &[u32],
    ) -> Result<()> {
        if let Some(other) = same_state::<CountState>(other) {
            add_counts(&mut self.counts, &other.counts, map);
        }
        Ok(())
    }

    fn answer(&mut self, _ctx: &ExecContext<'_>, group: u32, out: &mut Vec<u8>) {
        let count = self.counts.get(group as usize).copied().unwrap_or(0);
        match self.per_seconds {
            None => push_count(out, count),
            #[expect(clippy::cast_precision_loss, reason = "a rate is a rounded number anyway")]
            Some(seconds) => write_f64(out, count as f64 / seconds),
        }
    }

    fn heap_bytes(&self) -> usize {
        self.counts.capacity() * 8
    }
}

/// Counts rows without a value in any of the fields.
#[derive(Debug, Clone)]
pub(crate) struct CountEmptyState {
    fields: FieldList,
    counts: Vec<u64>,
}

impl CountEmptyState {
    /// `count_empty(...)`.
    pub(crate) fn new(fields: FieldList) -> CountEmptyState {
        CountEmptyState { fields, counts: Vec::new() }
    }
}

impl StatsState for CountEmptyState {
    fn update(&mut self, _ctx: &ExecContext<'_>, input: &Input<'_>) -> Result<()> {
        let absent = Column::absent();
        let parts = self.fields.parts(input.batch, &absent);
        let present = any_present(&parts, input.batch.rows());
        input.for_each(|row, group| {
            *slot(&mut self.counts, group) += u64::from(!present.get(row));
        });
        Ok(())
    }

    fn fork(&self) -> Box<dyn StatsState> {
        Box::new(CountEmptyState::new(self.fields.clone()))
    }

    fn absorb(
        &mut self,
        _ctx: &ExecContext<'_>,
        other: Box<dyn StatsState>,
        map: &[u32],
    ) -> Result<()> {
        if let Some(other) = same_state::<CountEmptyState>(other) {
            add_counts(&mut self.counts, &other.counts, map);
        }
        Ok(())
    }

    fn answer(&mut self, _ctx: &ExecContext<'_>, group: u32, out: &mut Vec<u8>) {
        push_count(out, self.counts.get(group as usize).copied().unwrap_or(0));
    }

    fn heap_bytes(&self) -> usize {
        self.counts.capacity() * 8
    }
}

/// Sums the lengths of values in bytes.
#[derive(Debug, Clone)]
pub(crate) struct SumLenState {
    fields: FieldList,
    sums: Vec<u64>,
}

impl SumLenState {
    /// `sum_len(...)`.
    pub(crate) fn new(fields: FieldList) -> SumLenState {
        SumLenState { fields, sums: Vec::new() }
    }
}

impl StatsState for SumLenState {
    fn update(&mut self, _ctx: &ExecContext<'_>, input: &Input<'_>) -> Result<()> {
        let absent = Column::absent();
        for part in self.fields.parts(input.batch, &absent) {
            if matches!(part.column, Column::Const(v) if v.is_empty()) {
                continue;
            }
            let mut scratch = Vec::new();
            input.for_each(|row, group| {
                let len = part.column.value(row, &mut scratch).len() as u64;
                *slot(&mut self.sums, group) += len;
            });
        }
        Ok(())
    }

    fn fork(&self) -> Box<dyn StatsState> {
        Box::new(SumLenState::new(self.fields.clone()))
    }

    fn absorb(
        &mut self,
        _ctx: &ExecContext<'_>,
        other: Box<dyn StatsState>,
        map: &[u32],
    ) -> Result<()> {
        if let Some(other) = same_state::<SumLenState>(other) {
            add_counts(&mut self.sums, &other.sums, map);
        }
        Ok(())
    }

    fn answer(&mut self, _ctx: &ExecContext<'_>, group: u32, out: &mut Vec<u8>) {
        push_count(out, self.sums.get(group as usize).copied().unwrap_or(0));
    }

    fn heap_bytes(&self) -> usize {
        self.sums.capacity() * 8
    }
}

/// The rows with a value in one of the columns.
fn any_present(parts: &[Part<'_>], rows: usize) -> Bitmap {
    if parts.iter().any(|p| matches!(p.column, Column::Const(v) if !v.is_empty())) {
        return Bitmap::full(rows);
    }
    Bitmap::from_fn(rows, |row| parts.iter().any(|p| !p.column.is_empty_at(row)))
}

fn add_counts(counts: &mut Vec<u64>, other: &[u64], map: &[u32]) {
    for (group, count) in other.iter().enumerate() {
        *slot(counts, mapped(map, group)) += count;
    }
}

/// Appends a count.
pub(crate) fn push_count(out: &mut Vec<u8>, count: u64) {
    push_int(out, i64::try_from(count).unwrap_or(i64::MAX));
}
