//! The pipes `running_stats` and `total_stats`.

use super::super::ast::{FieldPattern, RunningFunction, RunningItem, RunningStats};
use super::super::fault::Fault;
use super::super::lexer::TokenKind;
use super::super::names;
use super::scan::short;
use super::stats::or_all;
use super::{Parsed, Parser};

impl Parser<'_> {
    pub(super) fn running_stats(&mut self) -> Parsed<RunningStats> {
        let by = if self.eat("by") || self.at("(") { self.name_list()? } else { Vec::new() };
        let mut items: Vec<RunningItem> = Vec::new();
        loop {
            let start = self.peek().start();
            let function = self.running_function()?;
            let result = match self.optional_result(&[])? {
                Some(name) => name,
                None => function.to_string(),
            };
            self.charge(8 * (items.len() + by.len()) + result.len() + 64)?;
            if by.contains(&result) || items.iter().any(|item| item.result == result) {
                let message = format!("the result name `{}` is taken", short(&result));
                return Err(Fault::new(start, message).hint("give it another name with `as`"));
            }
            items.push(RunningItem { function, result });
            if !self.eat(",") {
                return Ok(RunningStats { by, items });
            }
        }
    }

    fn running_function(&mut self) -> Parsed<RunningFunction> {
        let token = self.peek();
        if token.kind != TokenKind::Word || !self.is(self.peek_at(1), "(") {
            return self.unexpected("a function such as sum(field)");
        }
        self.next();
        let fields = self.paren_list(Self::field_pattern)?;
        self.charge(64 * (fields.len() + 1))?;
        Ok(match self.raw(token).to_ascii_lowercase().as_str() {
            "count" => RunningFunction::Count(or_all(fields)),
            "sum" => RunningFunction::Sum(or_all(fields)),
            "min" => RunningFunction::Min(or_all(fields)),
            "max" => RunningFunction::Max(or_all(fields)),
            name @ ("first" | "last") => {
                let [field] = <[FieldPattern; 1]>::try_from(fields).map_err(|_| {
                    Fault::new(token.start(), format!("{name} takes exactly one field"))
                })?;
                let FieldPattern::Name(field) = field else {
                    let message = format!("{name} does not take wildcards");
                    return Err(Fault::new(token.start(), message));
                };
                let offset = if self.eat("offset") { self.count()? } else { 0 };
                if name == "first" {
                    RunningFunction::First { field, offset }
                } else {
                    RunningFunction::Last { field, offset }
                }
            }
            _ => {
                let message = format!("unknown function {}", self.show(token));
                let known = names::RUNNING.join(", ");
                return Err(Fault::new(token.start(), message)
                    .hint(format!("the functions here are {known}")));
            }
        })
    }
}
