//! `math`: arithmetic on fields.

use std::cell::Cell;
use std::sync::Arc;

use super::sample::{RowDice, roll};
use super::{RowPipe, Sink};
use crate::error::Result;
use crate::query::ast::{Math, MathExpr, MathFunction, MathOp};
use crate::query::batch::Batch;
use crate::query::column::Column;
use crate::query::context::{ExecContext, Flow};
use crate::record::{Decimal, TextVec, parse_number, write_f64};

/// `math`.
pub(crate) struct MathPipe {
    items: Vec<(MathExpr, Arc<str>)>,
    dice: RowDice,
}

/// What an expression is evaluated on.
struct Rows<'a> {
    batch: &'a Batch,
    ctx: &'a ExecContext<'a>,
    /// The number of rows before those of the batch.
    arrived: u64,
    /// Calls of `rand` so far.
    calls: Cell<u64>,
}

impl MathPipe {
    /// Takes the expressions.
    pub(crate) fn new(plan: &Math) -> MathPipe {
        let item = |i: &crate::query::ast::MathItem| (i.expr.clone(), Arc::from(&*i.result));
        MathPipe { items: plan.items.iter().map(item).collect(), dice: RowDice::default() }
    }
}

impl RowPipe for MathPipe {
    fn apply(&self, ctx: &ExecContext<'_>, mut batch: Batch, out: &mut Sink<'_>) -> Result<Flow> {
        let arrived = self.dice.arrive(&batch);
        let mut calls = Cell::new(0);
        for (expr, result) in &self.items {
            ctx.check()?;
            let rows = Rows { batch: &batch, ctx, arrived, calls };
            let values = evaluate(expr, &rows);
            calls = rows.calls;
            let column = values.into_column(batch.rows());
            batch.set_column(result.clone(), column);
        }
        out(batch)
    }
}

/// The values of an expression in the rows of a batch.
enum Values {
    One(f64),
    Each(Vec<f64>),
}

impl Values {
    fn get(&self, row: usize) -> f64 {
        match self {
            Values::One(x) => *x,
            Values::Each(list) => list.get(row).copied().unwrap_or(f64::NAN),
        }
    }

    fn map(self, f: impl Fn(f64) -> f64) -> Values {
        match self {
            Values::One(x) => Values::One(f(x)),
            Values::Each(mut list) => {
                list.iter_mut().for_each(|x| *x = f(*x));
                Values::Each(list)
            }
        }
    }

    fn zip(self, other: Values, f: impl Fn(f64, f64) -> f64) -> Values {
        match (self, other) {
            (Values::One(a), Values::One(b)) => Values::One(f(a, b)),
            (Values::One(a), Values::Each(list)) => Values::Each(list).map(|b| f(a, b)),
            (Values::Each(mut list), other) => {
                for (row, x) in list.iter_mut().enumerate() {
                    *x = f(*x, other.get(row));
                }
                Values::Each(list)
            }
        }
    }

    fn into_column(self, rows: usize) -> Column {
        match self {
            Values::One(x) => {
                let mut text = Vec::new();
                write_f64(&mut text, x);
                Column::constant(&text)
            }
            Values::Each(list) => {
                if let Some(ints) = list.iter().map(|x| whole(*x)).collect() {
                    return Column::ints(ints);
                }
                let mut values = TextVec::with_capacity(rows, rows * 8);
                for x in list {
                    write_f64(values.open(), x);
                    values.close();
                }
                Column::text(values)
            }
        }
    }
}

/// The integer that a float prints as.
fn whole(x: f64) -> Option<i64> {
    const LIMIT: f64 = 9_007_199_254_740_992.0;
    if x.abs() >= LIMIT || x != x.trunc() || x == 0.0 && x.is_sign_negative() {
        return None;
    }
    #[expect(clippy::cast_possible_truncation, reason = "a whole number below 2^53")]
    Some(x as i64)
}

fn evaluate(expr: &MathExpr, rows: &Rows<'_>) -> Values {
    match expr {
        MathExpr::Number(n) => Values::One(parse_number(n.text.as_bytes()).unwrap_or(f64::NAN)),
        MathExpr::Field(name) => match rows.batch.column(name) {
            Some(column) => field_values(column, rows.batch.rows()),
            None => Values::One(f64::NAN),
        },
        MathExpr::Negate(inner) => evaluate(inner, rows).map(|x| -x),
        MathExpr::Binary { op, left, right } => {
            let left = evaluate(left, rows);
            let right = evaluate(right, rows);
            left.zip(right, |a, b| binary(*op, a, b))
        }
        MathExpr::Call { function, args } => call(*function, args, rows),
    }
}

fn field_values(column: &Column, rows: usize) -> Values {
    let number = |text: &[u8]| parse_number(text).unwrap_or(f64::NAN);
    #[expect(clippy::cast_precision_loss, reason = "math is in floats")]
    let float = |n: &i64| *n as f64;
    match column {
        Column::Const(value) => Values::One(number(value)),
        Column::Codes { codes, dictionary } if dictionary.len() <= rows => {
            let parsed: Vec<f64> = dictionary.iter().map(number).collect();
            let value = |c: &u32| parsed.get(*c as usize).copied().unwrap_or(f64::NAN);
            Values::Each(codes.iter().take(rows).map(value).collect())
        }
        Column::Ints { values, absent: None, exceptions } if exceptions.is_empty() => {
            Values::Each(values.iter().take(rows).map(float).collect())
        }
        Column::Times(times) => Values::Each(times.iter().take(rows).map(float).collect()),
        _ => {
            let mut list = Vec::with_capacity(rows);
            column.for_each(rows, |_, text| list.push(number(text)));
            Values::Each(list)
        }
    }
}

fn binary(op: MathOp, a: f64, b: f64) -> f64 {
    match op {
        MathOp::Power => a.powf(b),
        MathOp::Multiply => a * b,
        MathOp::Divide => a / b,
        MathOp::Remainder => a % b,
        MathOp::Add => a + b,
        MathOp::Subtract => a - b,
        MathOp::BitAnd => bits(a, b, |x, y| x & y),
        MathOp::BitXor => bits(a, b, |x, y| x ^ y),
        MathOp::BitOr => bits(a, b, |x, y| x | y),
        MathOp::Default => {
            if a.is_nan() {
                b
            } else {
                a
            }
        }
    }
}

/// A bit operation on the whole parts; negative numbers are two's complement of 64 bits.
fn bits(a: f64, b: f64, f: impl Fn(u64, u64) -> u64) -> f64 {
    if a.is_nan() || b.is_nan() {
        return f64::NAN;
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the casts saturate, which is all that can be done for numbers of over 64 bits"
    )]
    let whole = |x: f64| if x < 0.0 { (x as i64).cast_unsigned() } else { x as u64 };
    #[expect(clippy::cast_precision_loss, reason = "math is in floats")]
    let float = |n: u64| n as f64;
    float(f(whole(a), whole(b)))
}

fn call(function: MathFunction, args: &[MathExpr], rows: &Rows<'_>) -> Values {
    let mut values = args.iter().map(|arg| evaluate(arg, rows));
    let first = values.next();
    let Some(first) = first else {
        return match function {
            #[expect(clippy::cast_precision_loss, reason = "math is in floats")]
            MathFunction::Now => Values::One(rows.ctx.now.as_nanos() as f64),
            MathFunction::Rand => random(rows),
            _ => Values::One(f64::NAN),
        };
    };
    match function {
        MathFunction::Abs => first.map(f64::abs),
        MathFunction::Ceil => first.map(f64::ceil),
        MathFunction::Exp => first.map(f64::exp),
        MathFunction::Floor => first.map(f64::floor),
        MathFunction::Ln => first.map(f64::ln),
        MathFunction::Max => values.fold(first, |a, b| a.zip(b, f64::max)),
        MathFunction::Min => values.fold(first, |a, b| a.zip(b, f64::min)),
        MathFunction::Round => match values.next() {
            None => first.map(f64::round),
            Some(nearest) => first.zip(nearest, round_to),
        },
        MathFunction::Now | MathFunction::Rand => Values::One(f64::NAN),
    }
}

/// A multiple of `nearest`, half away from zero, exact for the decimals that the floats print as.
fn round_to(x: f64, nearest: f64) -> f64 {
    let exact = || {
        let decimal = |x: f64| {
            let mut text = Vec::new();
            write_f64(&mut text, x);
            Decimal::parse(&text)
        };
        let (x, nearest) = (decimal(x)?, decimal(nearest.abs())?);
        let scale = x.scale().max(nearest.scale());
        let raise = |d: Decimal| {
            d.mantissa().checked_mul(10i128.checked_pow(u32::from(scale - d.scale()))?)
        };
        let (x, nearest) = (raise(x)?, raise(nearest)?);
        let steps = x.abs().checked_mul(2)?.checked_add(nearest)?;
        let steps = steps.checked_div(nearest.checked_mul(2)?)?;
        let rounded = steps.checked_mul(nearest)?.checked_mul(x.signum())?;
        Some(Decimal::new(rounded, u32::from(scale))?.to_f64())
    };
    exact().unwrap_or_else(|| (x / nearest).round() * nearest)
}

/// Numbers in `[0, 1)`, others at each call.
fn random(rows: &Rows<'_>) -> Values {
    #[expect(clippy::cast_precision_loss, reason = "53 bits fit")]
    let fraction = |bits: u64| (bits >> 11) as f64 / (1u64 << 53) as f64;
    let call = rows.calls.get();
    rows.calls.set(call + 1);
    let bits = roll(rows.batch, rows.arrived, rows.ctx.seed.wrapping_add(call));
    Values::Each(bits.into_iter().map(fraction).collect())
}
