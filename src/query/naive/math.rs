//! Arithmetic in floats.

use super::stats::print_float;
use super::value::{Exact, decimal, number};
use super::{Row, Scope};
use crate::query::ast::{MathExpr, MathFunction, MathItem, MathOp};

/// Sets the results of the expressions; later ones see those of earlier ones.
pub(super) fn apply(items: &[MathItem], row: &mut Row, scope: Scope) {
    for item in items {
        let value = evaluate(&item.expr, row, scope);
        row.set(&item.result, &print_float(value));
    }
}

fn evaluate(expr: &MathExpr, row: &Row, scope: Scope) -> f64 {
    match expr {
        MathExpr::Number(n) => number(&n.text).unwrap_or(f64::NAN),
        MathExpr::Field(name) => number(row.get(name)).unwrap_or(f64::NAN),
        MathExpr::Negate(inner) => -evaluate(inner, row, scope),
        MathExpr::Binary { op, left, right } => {
            let (a, b) = (evaluate(left, row, scope), evaluate(right, row, scope));
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
                MathOp::Default if a.is_nan() => b,
                MathOp::Default => a,
            }
        }
        MathExpr::Call { function, args } => {
            let args: Vec<f64> = args.iter().map(|arg| evaluate(arg, row, scope)).collect();
            let known = || args.iter().copied().filter(|x| !x.is_nan());
            match function {
                MathFunction::Abs => args[0].abs(),
                MathFunction::Ceil => args[0].ceil(),
                MathFunction::Exp => args[0].exp(),
                MathFunction::Floor => args[0].floor(),
                MathFunction::Ln => args[0].ln(),
                MathFunction::Max => known().reduce(f64::max).unwrap_or(f64::NAN),
                MathFunction::Min => known().reduce(f64::min).unwrap_or(f64::NAN),
                MathFunction::Now => scope.now as f64,
                MathFunction::Round if args.len() == 1 => args[0].round(),
                MathFunction::Round => round(args[0], args[1]),
                MathFunction::Rand => panic!("rand() is not for the naive evaluator"),
            }
        }
    }
}

/// Of the whole parts, as two's complement of 64 bits.
fn bits(a: f64, b: f64, operation: impl Fn(u64, u64) -> u64) -> f64 {
    let whole = |x: f64| {
        let clamped = (x.trunc() as i128).clamp(i64::MIN.into(), u64::MAX.into());
        (clamped & i128::from(u64::MAX)) as u64
    };
    if a.is_nan() || b.is_nan() { f64::NAN } else { operation(whole(a), whole(b)) as f64 }
}

/// The nearest multiple, half away from zero, of the decimals that the numbers print as.
fn round(x: f64, nearest: f64) -> f64 {
    let read = |x: f64| decimal(&print_float(x));
    let (Some(Exact::Finite(m, e)), Some(Exact::Finite(n, f))) = (read(x), read(nearest)) else {
        return (x / nearest).round() * nearest;
    };
    let low = e.min(f);
    let up = |m: i128, e: i32| m * 10i128.pow(e.abs_diff(low));
    let (m, n) = (up(m, e), up(n, f).abs());
    if n == 0 {
        return (x / nearest).round() * nearest;
    }
    let steps = (2 * m.abs() + n) / (2 * n);
    Exact::Finite(steps * n * m.signum(), low).to_f64()
}
