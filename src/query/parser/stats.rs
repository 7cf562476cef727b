//! The pipe `stats`.

use super::super::ast::{
    Bucket, BucketStep, CalendarUnit, FieldPattern, Filter, GroupKey, Number, Pipe, StatsFunction,
    StatsItem,
};
use super::super::fault::Fault;
use super::super::lexer::TokenKind;
use super::super::names;
use super::function::network_bits;
use super::scan::short;
use super::{Parsed, Parser, lookalike};
use crate::record::parse_number;

impl Parser<'_> {
    /// Whether a stats function with its parenthesis stands here.
    pub(super) fn at_stats_function(&self) -> bool {
        names::contains(names::STATS, self.raw(self.peek())) && self.is(self.peek_at(1), "(")
    }

    /// Behind `stats`, or at a step that leaves it out.
    pub(super) fn stats(&mut self) -> Parsed<Pipe> {
        let by = if self.eat("by") || self.at("(") {
            self.paren_list(Self::group_key)?
        } else {
            Vec::new()
        };
        let mut items: Vec<StatsItem> = Vec::new();
        loop {
            let first = items.len();
            let start = self.peek().start();
            self.stats_item(&mut items)?;
            self.check_results(&by, &items, first, start)?;
            if !self.eat(",") {
                return Ok(Pipe::Stats { by, items });
            }
        }
    }

    /// Result names must differ from the keys and from each other.
    fn check_results(
        &mut self,
        by: &[GroupKey],
        items: &[StatsItem],
        first: usize,
        start: usize,
    ) -> Parsed<()> {
        let (before, new) = items.split_at_checked(first).unwrap_or((items, &[]));
        let taken = before.len() + by.len();
        // A name is compared with every other one; a thousand of them cost nothing.
        self.charge(taken * 8)?;
        for (i, item) in new.iter().enumerate() {
            let name = &item.result;
            let others = before.iter().chain(new.get(..i).unwrap_or(&[]));
            if by.iter().any(|key| key.field == *name)
                || others.map(|other| &other.result).any(|other| other == name)
            {
                let message = format!("the result name `{}` is taken", short(name));
                return Err(Fault::new(start, message).hint("give it another name with `as`"));
            }
        }
        Ok(())
    }

    fn group_key(&mut self) -> Parsed<GroupKey> {
        let field = self.plain_name()?;
        let bucket = if self.eat(":") { Some(self.bucket()?) } else { None };
        Ok(GroupKey { field, bucket })
    }

    fn bucket(&mut self) -> Parsed<Bucket> {
        let step = self.bucket_step()?;
        let offset = if self.eat("offset") { Some(self.number()?) } else { None };
        Ok(Bucket { step, offset })
    }

    fn bucket_step(&mut self) -> Parsed<BucketStep> {
        let word = self.compound(true, "the width of a bucket")?;
        if let Some(bits) = word.text.strip_prefix('/') {
            let bits = network_bits(bits, 32, word.start)?;
            return Ok(BucketStep::Ipv4Network(u8::try_from(bits).unwrap_or(32)));
        }
        if let Some(unit) = calendar_unit(&word.text) {
            return Ok(BucketStep::Calendar(unit));
        }
        match parse_number(word.text.as_bytes()) {
            Some(width) if width > 0.0 && width.is_finite() => {
                Ok(BucketStep::Number(Number { text: word.text }))
            }
            _ => {
                let message = format!("`{}` is not the width of a bucket", short(&word.text));
                Err(Fault::new(word.start, message)
                    .hint("widths look like 5m, 1d, month, 100, 10KB or /24"))
            }
        }
    }

    /// One function; with `switch` one item per case.
    fn stats_item(&mut self, items: &mut Vec<StatsItem>) -> Parsed<()> {
        let spent = self.spent;
        let function = self.stats_function()?;
        if self.at("switch") && self.is(self.peek_at(1), "(") {
            return self.switch(&function, spent, items);
        }
        let condition = self.optional_condition()?;
        let result = match self.optional_result(&[])? {
            Some(name) => name,
            None => match &condition {
                Some(condition) => format!("{function} if ({condition})"),
                None => function.to_string(),
            },
        };
        self.charge(result.len() + 64)?;
        items.push(StatsItem { function, condition, result });
        Ok(())
    }

    /// `switch(case (f) as a, default as b)`: every case counts the rows that it matches, the
    /// default those that no case matches.
    fn switch(
        &mut self,
        function: &StatsFunction,
        spent: usize,
        items: &mut Vec<StatsItem>,
    ) -> Parsed<()> {
        let start = self.next().start();
        let mut cases: Vec<Filter> = Vec::new();
        let mut default = None;
        let results = self.paren_list(|p| {
            if p.eat("default") {
                if default.is_some() {
                    return p.fail("a second `default`");
                }
                let name = p.result_name()?;
                default = Some(name);
                return Ok(None);
            }
            if !p.eat("case") && !p.eat("if") {
                return p.unexpected("`case` or `default`");
            }
            cases.push(p.condition()?);
            Ok(Some(p.result_name()?))
        })?;
        if results.is_empty() {
            return Err(Fault::new(start, "switch() needs at least one case"));
        }
        // The cases are copied into the default, and the function into each item.
        let copied = self.spent - spent + 64 * results.len();
        self.charge(copied)?;
        let none_of = if cases.is_empty() { None } else { Some(!Filter::or(cases.clone())) };
        let mut cases = cases.into_iter();
        for result in results {
            let (condition, result) = match result {
                Some(result) => (cases.next(), result),
                None => (none_of.clone(), default.take().unwrap_or_default()),
            };
            items.push(StatsItem { function: function.clone(), condition, result });
        }
        Ok(())
    }

    fn stats_function(&mut self) -> Parsed<StatsFunction> {
        let token = self.peek();
        if token.kind != TokenKind::Word || !self.is(self.peek_at(1), "(") {
            let word = self.raw(token);
            let name = names::contains(names::STATS, word);
            let meant = match name {
                true => Some(format!("write {word}() with its parentheses")),
                false => lookalike::stats(word).map(str::to_owned),
            };
            let refused: Parsed<StatsFunction> =
                self.unexpected("a stats function such as count()");
            return refused.map_err(|fault| lookalike::or_hint(fault, meant));
        }
        if !names::contains(names::STATS, self.raw(token)) {
            let fault =
                Fault::new(token.start(), format!("unknown stats function {}", self.show(token)));
            let meant = lookalike::stats(self.raw(token));
            return Err(match (meant, names::nearest(names::STATS, self.raw(token))) {
                (Some(hint), _) => fault.hint(hint),
                (_, Some(meant)) => fault.hint(format!("did you mean `{meant}`?")),
                _ => fault.hint(format!("the functions are {}", names::STATS.join(", "))),
            });
        }
        self.next();
        let name = self.raw(token).to_ascii_lowercase();
        if name == "quantile" {
            return self.quantile();
        }
        let fields = self.paren_list(Self::field_pattern)?;
        self.charge(64 * (fields.len() + 1))?;
        self.function_of(&name, fields, token.start())
    }

    fn function_of(
        &mut self,
        name: &str,
        fields: Vec<FieldPattern>,
        start: usize,
    ) -> Parsed<StatsFunction> {
        let plain = || plain_fields(name, &fields, start);
        Ok(match name {
            "any" => StatsFunction::Any(one_field(name, plain()?, start)?),
            "avg" => StatsFunction::Avg(or_all(fields)),
            "count" => StatsFunction::Count(or_all(fields)),
            "count_empty" => StatsFunction::CountEmpty(or_all(fields)),
            "count_uniq" => {
                let fields = some_fields(name, plain()?, start)?;
                StatsFunction::CountUniq { fields, limit: self.optional_limit()? }
            }
            "count_uniq_hash" => {
                let fields = some_fields(name, plain()?, start)?;
                StatsFunction::CountUniqHash { fields, limit: self.optional_limit()? }
            }
            "field_max" => {
                let [source, field] = two_fields(name, plain()?, start)?;
                StatsFunction::FieldMax { source, field }
            }
            "field_min" => {
                let [source, field] = two_fields(name, plain()?, start)?;
                StatsFunction::FieldMin { source, field }
            }
            "histogram" => StatsFunction::Histogram(one_field(name, plain()?, start)?),
            "json_values" => self.json_values(or_all(fields))?,
            "max" => StatsFunction::Max(or_all(fields)),
            "median" => StatsFunction::Median(or_all(fields)),
            "min" => StatsFunction::Min(or_all(fields)),
            "rate" if fields.is_empty() => StatsFunction::Rate,
            "rate" => return Err(Fault::new(start, "rate() takes no fields")),
            "rate_sum" => StatsFunction::RateSum(or_all(fields)),
            "row_any" => StatsFunction::RowAny(or_all(fields)),
            "row_max" => {
                let (source, fields) = source_and_fields(name, fields, start)?;
                StatsFunction::RowMax { source, fields }
            }
            "row_min" => {
                let (source, fields) = source_and_fields(name, fields, start)?;
                StatsFunction::RowMin { source, fields }
            }
            "stddev" => StatsFunction::Stddev(or_all(fields)),
            "sum" => StatsFunction::Sum(or_all(fields)),
            "sum_len" => StatsFunction::SumLen(or_all(fields)),
            "uniq_values" => {
                StatsFunction::UniqValues { fields: or_all(fields), limit: self.optional_limit()? }
            }
            _ => StatsFunction::Values { fields: or_all(fields), limit: self.optional_limit()? },
        })
    }

    fn json_values(&mut self, fields: Vec<FieldPattern>) -> Parsed<StatsFunction> {
        let mut limit = self.optional_limit()?;
        let mut sort = Vec::new();
        if self.eat("sort") || self.eat("order") {
            self.eat("by");
            sort = self.sort_keys()?;
        }
        if limit.is_none() {
            limit = self.optional_limit()?;
        }
        Ok(StatsFunction::JsonValues { fields, sort, limit })
    }

    fn quantile(&mut self) -> Parsed<StatsFunction> {
        self.require("(", "behind `quantile`")?;
        let start = self.peek().start();
        let phi = self.number().map_err(|f| f.hint("write quantile(0.99, took)"))?;
        let value = parse_number(phi.text.as_bytes());
        if !value.is_some_and(|phi| (0.0..=1.0).contains(&phi)) {
            let fault = Fault::new(start, "the quantile must lie between 0 and 1");
            return Err(fault.hint("write quantile(0.99, took)"));
        }
        let mut fields = Vec::new();
        while self.eat(",") && !self.at(")") {
            fields.push(self.field_pattern()?);
        }
        self.require(")", "behind the fields")?;
        Ok(StatsFunction::Quantile { phi, fields: or_all(fields) })
    }
}

/// No fields, or `*` among them, means all fields.
pub(super) fn or_all(fields: Vec<FieldPattern>) -> Vec<FieldPattern> {
    if fields.is_empty() || fields.iter().any(FieldPattern::is_all) {
        vec![FieldPattern::all()]
    } else {
        fields
    }
}

/// Plain names only.
fn plain_fields(name: &str, fields: &[FieldPattern], start: usize) -> Parsed<Vec<String>> {
    fields
        .iter()
        .map(|field| match field {
            FieldPattern::Name(field) => Ok(field.clone()),
            FieldPattern::Prefix(_) => {
                Err(Fault::new(start, format!("{name} does not take wildcards")))
            }
        })
        .collect()
}

fn some_fields(name: &str, fields: Vec<String>, start: usize) -> Parsed<Vec<String>> {
    if fields.is_empty() {
        return Err(Fault::new(start, format!("{name} needs at least one field")));
    }
    Ok(fields)
}

fn one_field(name: &str, fields: Vec<String>, start: usize) -> Parsed<String> {
    let [field] = <[String; 1]>::try_from(fields)
        .map_err(|_| Fault::new(start, format!("{name} takes exactly one field")))?;
    Ok(field)
}

fn two_fields(name: &str, fields: Vec<String>, start: usize) -> Parsed<[String; 2]> {
    <[String; 2]>::try_from(fields)
        .map_err(|_| Fault::new(start, format!("{name} takes exactly two fields")))
}

fn source_and_fields(
    name: &str,
    fields: Vec<FieldPattern>,
    start: usize,
) -> Parsed<(String, Vec<FieldPattern>)> {
    let mut fields = fields.into_iter();
    match fields.next() {
        Some(FieldPattern::Name(source)) => Ok((source, or_all(fields.collect()))),
        _ => Err(Fault::new(start, format!("{name} needs the field that it compares"))),
    }
}

fn calendar_unit(name: &str) -> Option<CalendarUnit> {
    Some(match name.to_ascii_lowercase().as_str() {
        "nanosecond" => CalendarUnit::Nanosecond,
        "microsecond" => CalendarUnit::Microsecond,
        "millisecond" => CalendarUnit::Millisecond,
        "second" => CalendarUnit::Second,
        "minute" => CalendarUnit::Minute,
        "hour" => CalendarUnit::Hour,
        "day" => CalendarUnit::Day,
        "week" => CalendarUnit::Week,
        "month" => CalendarUnit::Month,
        "year" => CalendarUnit::Year,
        _ => return None,
    })
}
