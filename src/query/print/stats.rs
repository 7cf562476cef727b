//! Stats functions and math as text.

use std::fmt::{self, Display, Formatter};

use super::super::ast::{
    Bucket, BucketStep, CalendarUnit, FieldPattern, GroupKey, MathExpr, MathFunction, MathItem,
    MathOp, RunningFunction, RunningItem, SortKey, StatsFunction, StatsItem,
};
use super::{Commas, Text, Texts, write_quoted};

impl Display for GroupKey {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        Text(&self.field).fmt(f)?;
        match &self.bucket {
            Some(bucket) => write!(f, ":{bucket}"),
            None => Ok(()),
        }
    }
}

impl Display for Bucket {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match &self.step {
            BucketStep::Number(number) => number.fmt(f)?,
            BucketStep::Ipv4Network(bits) => write!(f, "/{bits}")?,
            BucketStep::Calendar(unit) => f.write_str(unit_name(*unit))?,
        }
        match &self.offset {
            Some(offset) => write!(f, " offset {offset}"),
            None => Ok(()),
        }
    }
}

fn unit_name(unit: CalendarUnit) -> &'static str {
    match unit {
        CalendarUnit::Nanosecond => "nanosecond",
        CalendarUnit::Microsecond => "microsecond",
        CalendarUnit::Millisecond => "millisecond",
        CalendarUnit::Second => "second",
        CalendarUnit::Minute => "minute",
        CalendarUnit::Hour => "hour",
        CalendarUnit::Day => "day",
        CalendarUnit::Week => "week",
        CalendarUnit::Month => "month",
        CalendarUnit::Year => "year",
    }
}

impl Display for StatsItem {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.function.fmt(f)?;
        if let Some(condition) = &self.condition {
            write!(f, " if ({condition})")?;
        }
        write!(f, " as {}", Text(&self.result))
    }
}

impl Display for SortKey {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", Text(&self.field), if self.desc { " desc" } else { "" })
    }
}

fn call(f: &mut Formatter<'_>, name: &str, fields: &[FieldPattern]) -> fmt::Result {
    write!(f, "{name}({})", Commas(fields))
}

fn pair(f: &mut Formatter<'_>, name: &str, source: &str, field: &str) -> fmt::Result {
    write!(f, "{name}({}, {})", Text(source), Text(field))
}

fn limited(f: &mut Formatter<'_>, limit: Option<u64>) -> fmt::Result {
    match limit {
        Some(limit) => write!(f, " limit {limit}"),
        None => Ok(()),
    }
}

/// `row_max(source)` or `row_max(source, fields)`.
fn row(f: &mut Formatter<'_>, name: &str, source: &str, fields: &[FieldPattern]) -> fmt::Result {
    match fields {
        [all] if all.is_all() => write!(f, "{name}({})", Text(source)),
        _ => write!(f, "{name}({}, {})", Text(source), Commas(fields)),
    }
}

impl Display for StatsFunction {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        use StatsFunction as F;
        match self {
            F::Any(field) => write!(f, "any({})", Text(field)),
            F::Avg(fields) => call(f, "avg", fields),
            F::Count(fields) => call(f, "count", fields),
            F::CountEmpty(fields) => call(f, "count_empty", fields),
            F::CountUniq { fields, limit } => {
                write!(f, "count_uniq({})", Texts(fields))?;
                limited(f, *limit)
            }
            F::CountUniqHash { fields, limit } => {
                write!(f, "count_uniq_hash({})", Texts(fields))?;
                limited(f, *limit)
            }
            F::FieldMax { source, field } => pair(f, "field_max", source, field),
            F::FieldMin { source, field } => pair(f, "field_min", source, field),
            F::Histogram(field) => write!(f, "histogram({})", Text(field)),
            F::JsonValues { fields, sort, limit } => {
                call(f, "json_values", fields)?;
                if !sort.is_empty() {
                    write!(f, " sort by ({})", Commas(sort))?;
                }
                limited(f, *limit)
            }
            F::Max(fields) => call(f, "max", fields),
            F::Median(fields) => call(f, "median", fields),
            F::Min(fields) => call(f, "min", fields),
            F::Quantile { phi, fields } => match fields.as_slice() {
                [all] if all.is_all() => write!(f, "quantile({phi})"),
                _ => write!(f, "quantile({phi}, {})", Commas(fields)),
            },
            F::Rate => f.write_str("rate()"),
            F::RateSum(fields) => call(f, "rate_sum", fields),
            F::RowAny(fields) => call(f, "row_any", fields),
            F::RowMax { source, fields } => row(f, "row_max", source, fields),
            F::RowMin { source, fields } => row(f, "row_min", source, fields),
            F::Stddev(fields) => call(f, "stddev", fields),
            F::Sum(fields) => call(f, "sum", fields),
            F::SumLen(fields) => call(f, "sum_len", fields),
            F::UniqValues { fields, limit } => {
                call(f, "uniq_values", fields)?;
                limited(f, *limit)
            }
            F::Values { fields, limit } => {
                call(f, "values", fields)?;
                limited(f, *limit)
            }
        }
    }
}

impl Display for RunningItem {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} as {}", self.function, Text(&self.result))
    }
}

impl Display for RunningFunction {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            RunningFunction::Count(fields) => call(f, "count", fields),
            RunningFunction::Sum(fields) => call(f, "sum", fields),
            RunningFunction::Min(fields) => call(f, "min", fields),
            RunningFunction::Max(fields) => call(f, "max", fields),
            RunningFunction::First { field, offset } => shifted(f, "first", field, *offset),
            RunningFunction::Last { field, offset } => shifted(f, "last", field, *offset),
        }
    }
}

fn shifted(f: &mut Formatter<'_>, name: &str, field: &str, offset: u64) -> fmt::Result {
    write!(f, "{name}({})", Text(field))?;
    if offset == 0 { Ok(()) } else { write!(f, " offset {offset}") }
}

impl Display for MathItem {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} as {}", self.expr, Text(&self.result))
    }
}

impl MathOp {
    /// How tightly it binds, and its sign.
    fn parts(self) -> (u8, &'static str) {
        match self {
            MathOp::Default => (0, "default"),
            MathOp::BitOr => (1, "or"),
            MathOp::BitXor => (2, "xor"),
            MathOp::BitAnd => (3, "&"),
            MathOp::Add => (4, "+"),
            MathOp::Subtract => (4, "-"),
            MathOp::Multiply => (5, "*"),
            MathOp::Divide => (5, "/"),
            MathOp::Remainder => (5, "%"),
            MathOp::Power => (6, "^"),
        }
    }
}

/// How tightly a negation and its operand bind.
const UNARY: u8 = 7;

impl Display for MathExpr {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write_math(f, self, 0)
    }
}

/// Writes an expression where operations looser than `least` need parentheses.
fn write_math(f: &mut Formatter<'_>, expr: &MathExpr, least: u8) -> fmt::Result {
    match expr {
        MathExpr::Number(number) => number.fmt(f),
        MathExpr::Field(name) => {
            // A word in front of a parenthesis is a function only if it is not quoted, and only
            // quoted names may hold anything but word characters.
            Text(name).fmt(f)
        }
        MathExpr::Negate(inner) => {
            // `-5` would read as a number, and `-"5"` as the same.
            f.write_str("-")?;
            let number = matches!(**inner, MathExpr::Number(_));
            let parens = number || matches!(**inner, MathExpr::Negate(_));
            if parens {
                f.write_str("(")?;
            }
            write_math(f, inner, UNARY)?;
            f.write_str(if parens { ")" } else { "" })
        }
        MathExpr::Binary { op, left, right } => {
            let (level, sign) = op.parts();
            f.write_str(if level < least { "(" } else { "" })?;
            write_math(f, left, level)?;
            write!(f, " {sign} ")?;
            write_math(f, right, level + 1)?;
            f.write_str(if level < least { ")" } else { "" })
        }
        MathExpr::Call { function, args } => {
            f.write_str(match function {
                MathFunction::Abs => "abs",
                MathFunction::Ceil => "ceil",
                MathFunction::Exp => "exp",
                MathFunction::Floor => "floor",
                MathFunction::Ln => "ln",
                MathFunction::Max => "max",
                MathFunction::Min => "min",
                MathFunction::Now => "now",
                MathFunction::Rand => "rand",
                MathFunction::Round => "round",
            })?;
            write!(f, "({})", Commas(args))
        }
    }
}

/// Used by pipes for patterns, which are always quoted.
pub(super) struct Quoted<'a>(pub(super) &'a str);

impl Display for Quoted<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write_quoted(f, self.0)
    }
}
