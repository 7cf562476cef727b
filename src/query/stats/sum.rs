//! `sum`, `avg`, `rate_sum`, `stddev`: exact sums, rounded once.

use super::input::{FieldList, Input};
use super::{StatsState, mapped, same_state, slot};
use crate::error::Result;
use crate::query::column::{Column, run_of};
use crate::query::context::ExecContext;
use crate::record::{Decimal, ExactSum, Number, parse_numeric, write_f64};

/// How a sum is read.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Reading {
    /// The sum.
    Sum,
    /// Divided by the number of numbers.
    Mean,
    /// Divided by so many seconds.
    PerSecond(f64),
}

/// Sums the numbers in some fields.
#[derive(Debug, Clone)]
pub(crate) struct SumState {
    fields: FieldList,
    reading: Reading,
    sums: Vec<ExactSum>,
}

impl SumState {
    /// `sum(...)`, `avg(...)`, `rate_sum(...)`.
    pub(crate) fn new(fields: FieldList, reading: Reading) -> SumState {
        SumState { fields, reading, sums: Vec::new() }
    }
}

impl StatsState for SumState {
    fn update(&mut self, _ctx: &ExecContext<'_>, input: &Input<'_>) -> Result<()> {
        let absent = Column::absent();
        let sums = &mut self.sums;
        for part in self.fields.parts(input.batch, &absent) {
            if !add_runs(sums, input, part.column) {
                for_each_number(input, part.column, |group, number| {
                    slot(sums, group).add(number);
                });
            }
        }
        Ok(())
    }

    fn fork(&self) -> Box<dyn StatsState> {
        Box::new(SumState::new(self.fields.clone(), self.reading))
    }

    fn absorb(
        &mut self,
        _ctx: &ExecContext<'_>,
        other: Box<dyn StatsState>,
        map: &[u32],
    ) -> Result<()> {
        if let Some(other) = same_state::<SumState>(other) {
            for (group, sum) in other.sums.iter().enumerate() {
                slot(&mut self.sums, mapped(map, group)).merge(sum);
            }
        }
        Ok(())
    }

    fn answer(&mut self, _ctx: &ExecContext<'_>, group: u32, out: &mut Vec<u8>) {
        let sum = slot(&mut self.sums, group);
        let total = if sum.count() == 0 { f64::NAN } else { sum.to_f64() };
        let divisor = match self.reading {
            Reading::Sum => 1.0,
            Reading::Mean => {
                if let Some(mean) = sum.to_decimal().and_then(|d| d.quotient(sum.count())) {
                    return write_f64(out, mean);
                }
                #[expect(clippy::cast_precision_loss, reason = "the sum was rounded before")]
                let count = sum.count() as f64;
                count
            }
            Reading::PerSecond(seconds) => seconds,
        };
        write_f64(out, total / divisor);
    }

    fn heap_bytes(&self) -> usize {
        self.sums.capacity() * size_of::<ExactSum>()
    }
}

/// Population standard deviation of the numbers in some fields.
#[derive(Debug, Clone)]
pub(crate) struct StddevState {
    fields: FieldList,
    /// Sum of the numbers and of their squares.
    sums: Vec<(ExactSum, ExactSum)>,
}

impl StddevState {
    /// `stddev(...)`.
    pub(crate) fn new(fields: FieldList) -> StddevState {
        StddevState { fields, sums: Vec::new() }
    }
}

impl StatsState for StddevState {
    fn update(&mut self, _ctx: &ExecContext<'_>, input: &Input<'_>) -> Result<()> {
        let absent = Column::absent();
        let sums = &mut self.sums;
        for part in self.fields.parts(input.batch, &absent) {
            for_each_number(input, part.column, |group, number| {
                let (sum, squares) = slot(sums, group);
                sum.add(number);
                squares.add(square(number));
            });
        }
        Ok(())
    }

    fn fork(&self) -> Box<dyn StatsState> {
        Box::new(StddevState::new(self.fields.clone()))
    }

    fn absorb(
        &mut self,
        _ctx: &ExecContext<'_>,
        other: Box<dyn StatsState>,
        map: &[u32],
    ) -> Result<()> {
        if let Some(other) = same_state::<StddevState>(other) {
            for (group, (sum, squares)) in other.sums.iter().enumerate() {
                let mine = slot(&mut self.sums, mapped(map, group));
                mine.0.merge(sum);
                mine.1.merge(squares);
            }
        }
        Ok(())
    }

    fn answer(&mut self, _ctx: &ExecContext<'_>, group: u32, out: &mut Vec<u8>) {
        let (sum, squares) = slot(&mut self.sums, group);
        write_f64(out, deviation(sum, squares));
    }

    fn heap_bytes(&self) -> usize {
        self.sums.capacity() * 2 * size_of::<ExactSum>()
    }
}

/// Adds the integers of each run of rows of one group at once; false if that cannot be done.
fn add_runs(sums: &mut Vec<ExactSum>, input: &Input<'_>, column: &Column) -> bool {
    let Column::Ints { values, absent, exceptions } = column else { return false };
    exceptions.is_empty()
        && input.for_each_run(|rows, group| {
            let run = values.get(rows.clone()).unwrap_or(&[]);
            let (mut sum, mut count) = (0i128, 0);
            match absent {
                None => {
                    sum = run.iter().map(|n| i128::from(*n)).sum();
                    count = run.len();
                }
                Some(absent) => {
                    for (row, n) in rows.zip(run) {
                        let present = !absent.get(row);
                        sum += if present { i128::from(*n) } else { 0 };
                        count += usize::from(present);
                    }
                }
            }
            if count > 0 {
                slot(sums, group).add_ints(sum, count as u64);
            }
        })
}

fn square(number: Number) -> Number {
    let exact = match number {
        Number::Decimal(d) => d
            .mantissa()
            .checked_mul(d.mantissa())
            .and_then(|m| Decimal::new(m, 2 * u32::from(d.scale()))),
        Number::Wide(_) => None,
    };
    match exact {
        Some(d) => Number::Decimal(d),
        None => Number::Wide(number.to_f64() * number.to_f64()),
    }
}

/// The root of the mean square distance from the mean. The sums are exact, so the only rounding
/// is that of the last steps; they are taken around the whole part of the mean where that fits,
/// so that large values with small differences lose nothing.
fn deviation(sum: &ExactSum, squares: &ExactSum) -> f64 {
    let count = sum.count();
    if count == 0 {
        return f64::NAN;
    }
    #[expect(clippy::cast_precision_loss, reason = "the answer is rounded anyway")]
    let n = count as f64;
    if let Some((near, squares_near)) = around_mean(sum, squares, count) {
        let mean = near / n;
        return (squares_near / n - mean * mean).max(0.0).sqrt();
    }
    let mean = sum.to_f64() / n;
    let variance = squares.to_f64() / n - mean * mean;
    if variance.is_nan() { f64::NAN } else { variance.max(0.0).sqrt() }
}

/// Sums of `x - m` and of `(x - m)^2` for the whole part `m` of the mean.
fn around_mean(sum: &ExactSum, squares: &ExactSum, count: u64) -> Option<(f64, f64)> {
    let n = i128::from(count);
    let (sum, squares) = (sum.to_decimal()?, squares.to_decimal()?);
    let m = sum.floor().div_euclid(n);
    let shift = Decimal::from_int(m.checked_mul(n)?);
    let near = sum.checked_add(shift.negated())?;
    let cross = sum.checked_mul_int(m.checked_mul(-2)?)?;
    let square = Decimal::from_int(m.checked_mul(m)?.checked_mul(n)?);
    let squares_near = squares.checked_add(cross)?.checked_add(square)?;
    Some((near.to_f64(), squares_near.to_f64()))
}

/// Calls `f` with (group, number) for each selected row whose value is a number.
pub(crate) fn for_each_number(input: &Input<'_>, column: &Column, mut f: impl FnMut(u32, Number)) {
    let int = |n: i64| Number::Decimal(Decimal::from_int(i128::from(n)));
    match column {
        Column::Const(value) => {
            if let Some(number) = parse_numeric(value) {
                input.for_each(|_, group| f(group, number));
            }
        }
        Column::Codes { codes, dictionary } => {
            let mut parsed: Vec<Option<Option<Number>>> = vec![None; dictionary.len()];
            input.for_each(|row, group| {
                let Some(&code) = codes.get(row) else { return };
                let Some(known) = parsed.get_mut(code as usize) else { return };
                let parse = || parse_numeric(dictionary.get(code as usize));
                if let Some(number) = *known.get_or_insert_with(parse) {
                    f(group, number);
                }
            });
        }
        Column::Ints { values, absent, exceptions } if exceptions.is_empty() => {
            input.for_each(|row, group| {
                if let Some(&n) = values.get(row)
                    && absent.as_ref().is_none_or(|absent| !absent.get(row))
                {
                    f(group, int(n));
                }
            });
        }
        Column::Runs { ends, codes, dictionary } => {
            let numbers: Vec<Option<Number>> =
                codes.iter().map(|code| parse_numeric(dictionary.get(*code as usize))).collect();
            input.for_each(|row, group| {
                if let Some(Some(number)) = numbers.get(run_of(ends, row)) {
                    f(group, *number);
                }
            });
        }
        // Times take no part in sums.
        Column::Times(_) => {}
        Column::Text(_) | Column::Ints { .. } => {
            let mut scratch = Vec::new();
            input.for_each(|row, group| {
                if let Some(number) = parse_numeric(column.value(row, &mut scratch)) {
                    f(group, number);
                }
            });
        }
    }
}
