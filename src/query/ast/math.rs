//! Expressions of the pipe `math`.

use super::Number;

/// One `expr as result` of `math`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MathItem {
    /// The expression.
    pub expr: MathExpr,
    /// The field that takes its value; without `as` the expression's text.
    pub result: String,
}

/// An expression over numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MathExpr {
    /// A constant, including quoted times and addresses.
    Number(Number),
    /// The numeric value of a field, `NaN` if it has none.
    Field(String),
    /// `-x`
    Negate(Box<MathExpr>),
    /// `a op b`
    Binary {
        /// The operation.
        op: MathOp,
        /// Left side.
        left: Box<MathExpr>,
        /// Right side.
        right: Box<MathExpr>,
    },
    /// `f(a, b)`; the number of arguments fits the function.
    Call {
        /// The function.
        function: MathFunction,
        /// Its arguments.
        args: Vec<MathExpr>,
    },
}

/// An operation on two numbers; all are left-associative.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MathOp {
    /// `^`
    Power,
    /// `*`
    Multiply,
    /// `/`
    Divide,
    /// `%`, with the sign of the dividend.
    Remainder,
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `&`
    BitAnd,
    /// `xor`
    BitXor,
    /// `or`
    BitOr,
    /// `default`: the right side where the left one is `NaN`.
    Default,
}

/// A function of numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MathFunction {
    /// `abs(x)`
    Abs,
    /// `ceil(x)`
    Ceil,
    /// `exp(x)`
    Exp,
    /// `floor(x)`
    Floor,
    /// `ln(x)`
    Ln,
    /// `max(x, ...)`: ignores `NaN`.
    Max,
    /// `min(x, ...)`: ignores `NaN`.
    Min,
    /// `now()`: nanoseconds since 1970.
    Now,
    /// `rand()`: at least 0, below 1.
    Rand,
    /// `round(x)` or `round(x, nearest)`: half away from zero.
    Round,
}
