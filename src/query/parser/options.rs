//! `options(...)` in front of a query.

use super::super::ast::{Filter, Predicate, QueryOptions, StreamIds, ValueSet};
use super::super::fault::Fault;
use super::super::names;
use super::{Parsed, Parser};

impl Parser<'_> {
    pub(super) fn options(&mut self) -> Parsed<QueryOptions> {
        let mut options = QueryOptions::default();
        if !self.at("options") || !self.is(self.peek_at(1), "(") {
            return Ok(options);
        }
        self.next();
        self.next();
        while !self.eat(")") {
            self.option(&mut options)?;
            if !self.eat(",") && !self.at(")") {
                return self.unexpected("`,` or `)` behind the option");
            }
        }
        Ok(options)
    }

    fn option(&mut self, options: &mut QueryOptions) -> Parsed<()> {
        let name = self.next();
        let known = names::contains(names::OPTIONS, self.raw(name));
        if !known {
            let fault = Fault::new(name.start(), format!("unknown option {}", self.show(name)));
            return Err(match names::nearest(names::OPTIONS, self.raw(name)) {
                Some(meant) => fault.hint(format!("did you mean `{meant}`?")),
                None => fault.hint(format!("the options are {}", names::OPTIONS.join(", "))),
            });
        }
        self.require("=", "behind the name of the option")?;
        match self.raw(name).to_ascii_lowercase().as_str() {
            "concurrency" => options.concurrency = Some(self.count()?),
            "parallel_readers" => options.parallel_readers = Some(self.count()?),
            "time_offset" => options.time_offset = Some(self.duration()?),
            "allow_partial_response" => options.allow_partial_response = Some(self.boolean()?),
            "ignore_global_time_filter" => {
                options.ignore_global_time_filter = Some(self.boolean()?);
            }
            _ => options.global_filter = Some(Box::new(self.global_filter()?)),
        }
        Ok(())
    }

    fn boolean(&mut self) -> Parsed<bool> {
        let word = self.compound(false, "true or false")?;
        match word.text.to_ascii_lowercase().as_str() {
            "true" | "1" | "t" => Ok(true),
            "false" | "0" | "f" => Ok(false),
            _ => Err(Fault::new(word.start, "expected true or false")),
        }
    }

    fn global_filter(&mut self) -> Parsed<Filter> {
        let start = self.peek().start();
        let filter = self.nested(|p| p.condition())?;
        if holds_subquery(&filter) {
            return Err(Fault::new(start, "a global filter cannot hold a subquery")
                .hint("it would apply to its own subquery; filter by that in the query instead"));
        }
        Ok(filter)
    }
}

fn holds_subquery(filter: &Filter) -> bool {
    match filter {
        Filter::And(list) | Filter::Or(list) => list.iter().any(holds_subquery),
        Filter::Not(inner) => holds_subquery(inner),
        Filter::Field {
            predicate:
                Predicate::In(set) | Predicate::ContainsAll(set) | Predicate::ContainsAny(set),
            ..
        } => matches!(set, ValueSet::Query { .. }),
        Filter::StreamId(ids) => matches!(ids, StreamIds::Query { .. }),
        _ => false,
    }
}
