//! The pipe `math`.

use super::super::ast::{Math, MathExpr, MathFunction, MathItem, MathOp, Number, Pipe};
use super::super::fault::Fault;
use super::super::lexer::{Token, TokenKind, unquote};
use super::super::names;
use super::scan::short;
use super::{Parsed, Parser};
use crate::record::parse_number;

/// Operations by how tightly they bind, loosest first. All are left-associative.
const LEVELS: &[&[(&str, MathOp)]] = &[
    &[("default", MathOp::Default)],
    &[("or", MathOp::BitOr)],
    &[("xor", MathOp::BitXor)],
    &[("&", MathOp::BitAnd)],
    &[("+", MathOp::Add), ("-", MathOp::Subtract)],
    &[("*", MathOp::Multiply), ("/", MathOp::Divide), ("%", MathOp::Remainder)],
    &[("^", MathOp::Power)],
];

impl<'q> Parser<'q> {
    pub(super) fn math(&mut self) -> Parsed<Pipe> {
        let items = self.comma_list(|p| {
            let expr = p.nested(|p| p.math_level(0))?;
            if p.at("=") {
                let hint = "the name stands behind the expression: math a + b as x";
                return p.unexpected("the name of the result").map_err(|f| f.hint(hint));
            }
            let result = match p.optional_result(&[])? {
                Some(name) => name,
                None => {
                    let name = expr.to_string();
                    p.charge(name.len())?;
                    name
                }
            };
            Ok(MathItem { expr, result })
        })?;
        Ok(Pipe::Math(Math { items }))
    }

    /// An expression of operations of this level and tighter ones. A long chain makes a deep
    /// tree to the left, so each operation counts as a level of nesting.
    fn math_level(&mut self, level: usize) -> Parsed<MathExpr> {
        let Some(operations) = LEVELS.get(level) else {
            return self.math_operand();
        };
        let mut left = self.math_level(level + 1)?;
        let depth = self.depth;
        while let Some((_, op)) = operations.iter().find(|(sign, _)| self.at(sign)) {
            self.next();
            self.depth += 1;
            let right = self.nested(|p| p.math_level(level + 1))?;
            left = MathExpr::Binary { op: *op, left: Box::new(left), right: Box::new(right) };
        }
        self.depth = depth;
        Ok(left)
    }

    fn math_operand(&mut self) -> Parsed<MathExpr> {
        let token = self.peek();
        if self.eat("(") {
            let inner = self.nested(|p| p.math_level(0))?;
            self.require(")", "behind the expression")?;
            return Ok(inner);
        }
        if self.eat("-") {
            return Ok(match self.nested(Self::math_operand)? {
                MathExpr::Number(n) if n.text.starts_with(|c: char| c.is_ascii_digit()) => {
                    MathExpr::Number(Number { text: format!("-{}", n.text) })
                }
                operand => MathExpr::Negate(Box::new(operand)),
            });
        }
        if self.eat("+") {
            return self.nested(Self::math_operand);
        }
        match token.kind {
            TokenKind::Word if self.is(self.peek_at(1), "(") => self.math_call(),
            TokenKind::Word => {
                self.next();
                let text = match self.exponent(token) {
                    Some(number) => number,
                    None => self.raw(token),
                };
                Ok(constant_or_field(text.to_owned()))
            }
            TokenKind::Quoted => {
                self.next();
                let text = unquote(self.raw(token)).map_err(|f| f.shifted(token.start()))?;
                Ok(constant_or_field(text.into_owned()))
            }
            _ => self.unexpected("a number, a field or a function"),
        }
    }

    /// The whole of a number such as `1e-5`, whose first token was taken; takes the rest.
    fn exponent(&mut self, first: Token) -> Option<&'q str> {
        let mantissa = self.raw(first).strip_suffix(['e', 'E'])?;
        let (sign, digits) = (self.peek(), self.peek_at(1));
        let signed = self.is(sign, "-") || self.is(sign, "+");
        let plain = mantissa.bytes().all(|b| b.is_ascii_digit() || b == b'.');
        if !plain || !signed || sign.spaced || digits.spaced {
            return None;
        }
        let number = self.text.get(first.start()..digits.end())?;
        parse_number(number.as_bytes())?;
        self.position += 2;
        Some(number)
    }

    fn math_call(&mut self) -> Parsed<MathExpr> {
        let token = self.next();
        let name = self.raw(token).to_ascii_lowercase();
        let (function, least, most) = match name.as_str() {
            "abs" => (MathFunction::Abs, 1, 1),
            "ceil" => (MathFunction::Ceil, 1, 1),
            "exp" => (MathFunction::Exp, 1, 1),
            "floor" => (MathFunction::Floor, 1, 1),
            "ln" => (MathFunction::Ln, 1, 1),
            "max" => (MathFunction::Max, 1, usize::MAX),
            "min" => (MathFunction::Min, 1, usize::MAX),
            "now" => (MathFunction::Now, 0, 0),
            "rand" => (MathFunction::Rand, 0, 0),
            "round" => (MathFunction::Round, 1, 2),
            _ => {
                let message = format!("there is no function `{}`", short(&name));
                let fault = Fault::new(token.start(), message);
                return Err(match names::nearest(names::MATH, &name) {
                    Some(meant) => fault.hint(format!("did you mean `{meant}`?")),
                    None => fault.hint(format!("the functions are {}", names::MATH.join(", "))),
                });
            }
        };
        let args = self.paren_list(|p| p.nested(|p| p.math_level(0)))?;
        if args.len() < least || args.len() > most {
            let expected = match (least, most) {
                (0, _) => "no arguments".to_owned(),
                (1, 1) => "one argument".to_owned(),
                (1, 2) => "one or two arguments".to_owned(),
                _ => "at least one argument".to_owned(),
            };
            return Err(Fault::new(token.start(), format!("{name} takes {expected}")));
        }
        Ok(MathExpr::Call { function, args })
    }
}

/// Text that reads as a number is one, quoted or not.
fn constant_or_field(text: String) -> MathExpr {
    if parse_number(text.as_bytes()).is_some() {
        MathExpr::Number(Number { text })
    } else {
        MathExpr::Field(text)
    }
}
