//! Expressions of `math`.

use std::ops::{Add, BitAnd, BitOr, BitXor, Div, Mul, Neg, Rem, Sub};

use crate::query::ast::{MathExpr, MathFunction, MathItem, MathOp, Number};

/// ```
/// use loglith::ast::{Math, MathExpr};
/// use loglith::{Filter, Query};
///
/// let kib = MathExpr::field("bytes") / MathExpr::number(1024.0);
/// let query = Query::new(Filter::All).pipe(Math::new([kib.named("kib")]));
/// assert_eq!(query.to_string(), "* | math bytes / 1024 as kib");
/// ```
impl MathExpr {
    /// The numeric value of a field.
    pub fn field(name: impl Into<String>) -> MathExpr {
        MathExpr::Field(name.into())
    }

    /// A constant.
    pub fn number(x: f64) -> MathExpr {
        let spelled = |x: f64| MathExpr::Number(Number { text: x.to_string() });
        match x {
            _ if x.is_nan() => spelled(0.0) / spelled(0.0),
            f64::NEG_INFINITY => -spelled(f64::INFINITY),
            _ => spelled(x),
        }
    }

    /// A function of these arguments.
    pub fn call(function: MathFunction, args: impl IntoIterator<Item = MathExpr>) -> MathExpr {
        MathExpr::Call { function, args: args.into_iter().collect() }
    }

    /// `self ^ exponent`, a power.
    pub fn power(self, exponent: MathExpr) -> MathExpr {
        self.with(MathOp::Power, exponent)
    }

    /// `other` where this is not a number.
    pub fn or_default(self, other: MathExpr) -> MathExpr {
        self.with(MathOp::Default, other)
    }

    /// The expression with its value in the field `name`.
    pub fn named(self, name: impl Into<String>) -> MathItem {
        MathItem { expr: self, result: name.into() }
    }

    fn with(self, op: MathOp, right: MathExpr) -> MathExpr {
        MathExpr::Binary { op, left: Box::new(self), right: Box::new(right) }
    }
}

macro_rules! operations {
    ($($name:ident $method:ident $op:ident),+) => {$(
        impl $name for MathExpr {
            type Output = MathExpr;

            fn $method(self, right: MathExpr) -> MathExpr {
                self.with(MathOp::$op, right)
            }
        }
    )+};
}

operations!(
    Add add Add, Sub sub Subtract, Mul mul Multiply, Div div Divide, Rem rem Remainder,
    BitAnd bitand BitAnd, BitOr bitor BitOr, BitXor bitxor BitXor
);

impl Neg for MathExpr {
    type Output = MathExpr;

    fn neg(self) -> MathExpr {
        MathExpr::Negate(Box::new(self))
    }
}
