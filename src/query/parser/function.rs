//! Filters that are written as functions.

use std::net::IpAddr;

use super::super::ast::{
    FieldOp, Filter, MatchAnchor, Number, Pipe, Predicate, Query, RangeBound, ValueSet,
};
use super::super::fault::Fault;
use super::super::lexer::TokenKind;
use super::super::names;
use super::filter::Scope;
use super::scan::{short, whole_number};
use super::{Compound, Parsed, Parser};
use crate::record::{parse_ipv4, parse_number};

/// Upper-case characters that a word of a common-case filter may have.
const MAX_COMMON_CASE_UPPER: usize = 10;

/// The arguments of a set filter.
pub(super) enum SetArgs {
    /// `(*)`
    Any,
    /// `(a, b)`
    List(Vec<Compound>),
    /// `(query)` and the field that it ends in.
    Query(Box<Query>, String),
}

impl Parser<'_> {
    /// Whether a filter function with its parenthesis stands here.
    pub(super) fn at_function(&self) -> bool {
        let (name, open) = (self.peek(), self.peek_at(1));
        if name.kind != TokenKind::Word || !names::contains(names::FILTERS, self.raw(name)) {
            return false;
        }
        let range = self.is(name, "range") && (self.is(open, "[") || self.is(open, "{"));
        self.is(open, "(") || range
    }

    pub(super) fn function(&mut self, scope: Scope<'_>) -> Parsed<Filter> {
        let name = self.next();
        let predicate = match self.raw(name).to_ascii_lowercase().as_str() {
            "in" => Predicate::In(self.value_set()?),
            "contains_all" => Predicate::ContainsAll(self.value_set()?),
            "contains_any" => Predicate::ContainsAny(self.value_set()?),
            "seq" => Predicate::Sequence(self.texts()?),
            "equals_common_case" => Predicate::EqualsCommonCase(self.common_case()?),
            "contains_common_case" => Predicate::ContainsCommonCase(self.common_case()?),
            "json_array_contains_any" => Predicate::JsonArrayContainsAny(self.texts()?),
            "exact" => self.exact_call()?,
            "i" => self.fold_call()?,
            "re" => {
                let word = self.single_arg()?;
                Predicate::Regex(self.regex(&word.text, word.start, false)?)
            }
            "range" => self.range()?,
            "string_range" => {
                let [min, max] = self.args("string_range takes two values")?;
                Predicate::StringRange { min: min.text, max: max.text }
            }
            "len_range" => self.len_range()?,
            "ipv4_range" => self.ipv4_range()?,
            "ipv6_range" => self.ipv6_range()?,
            "eq_field" => self.compare_field(FieldOp::Equal)?,
            "le_field" => self.compare_field(FieldOp::LessOrEqual)?,
            "lt_field" => self.compare_field(FieldOp::Less)?,
            "value_type" => Predicate::ValueType(self.single_arg()?.text),
            "pattern_match" => self.pattern_match(MatchAnchor::Anywhere)?,
            "pattern_match_full" => self.pattern_match(MatchAnchor::Full)?,
            "pattern_match_prefix" => self.pattern_match(MatchAnchor::Start)?,
            _ => self.pattern_match(MatchAnchor::End)?,
        };
        self.leaf(scope, predicate)
    }

    fn texts(&mut self) -> Parsed<Vec<String>> {
        Ok(self.arg_list()?.into_iter().map(|word| word.text).collect())
    }

    fn arg_list(&mut self) -> Parsed<Vec<Compound>> {
        self.paren_list(|p| p.string("a value"))
    }

    /// A fixed number of arguments.
    fn args<const N: usize>(&mut self, expected: &str) -> Parsed<[Compound; N]> {
        let start = self.peek().start();
        <[Compound; N]>::try_from(self.arg_list()?).map_err(|_| Fault::new(start, expected))
    }

    fn single_arg(&mut self) -> Parsed<Compound> {
        let [word] = self.args("expected exactly one value")?;
        Ok(word)
    }

    fn value_set(&mut self) -> Parsed<ValueSet> {
        Ok(match self.set_args()? {
            SetArgs::Any => ValueSet::Any,
            SetArgs::List(words) => {
                ValueSet::List(words.into_iter().map(|word| word.text).collect())
            }
            SetArgs::Query(query, field) => ValueSet::Query { query, field },
        })
    }

    /// `(*)`, `(a, b)` or `(query | fields f)`. A list is tried first; both attempts together
    /// look at most twice at each token in front of the first that fits no list, which is where
    /// a nested set would begin, so this stays linear.
    pub(super) fn set_args(&mut self) -> Parsed<SetArgs> {
        let start = self.position;
        if self.is(self.peek_at(1), "*") && self.is(self.peek_at(2), ")") {
            self.position += 3;
            return Ok(SetArgs::Any);
        }
        let fault = match self.arg_list() {
            // A star means everything even in quotes.
            Ok(words) => {
                let star = matches!(words.as_slice(), [word] if word.text == "*");
                return Ok(if star { SetArgs::Any } else { SetArgs::List(words) });
            }
            Err(fault) => fault,
        };
        let is_list = self.is(self.peek_at(0), ",")
            || self.tokens.get(start + 2).is_some_and(|&second| self.is(second, ","))
            || self.peek().kind == TokenKind::End && self.position <= start + 2;
        if is_list {
            return Err(fault);
        }
        self.position = start;
        self.subquery_of_one_field()
    }

    fn subquery_of_one_field(&mut self) -> Parsed<SetArgs> {
        let (query, end) = self.subquery()?;
        match single_field(&query) {
            Some(field) => {
                let field = field.to_owned();
                Ok(SetArgs::Query(Box::new(query), field))
            }
            None => Err(Fault::new(end, "the subquery has to end in one field")
                .hint("add `| fields name` to it; the values of a list have commas between them")),
        }
    }

    /// `(query)`, and the offset of its `)`.
    pub(super) fn subquery(&mut self) -> Parsed<(Query, usize)> {
        self.require("(", "in front of the subquery")?;
        let query = self.query()?;
        let end = self.peek().start();
        self.require(")", "behind the subquery")?;
        Ok((query, end))
    }

    fn common_case(&mut self) -> Parsed<Vec<String>> {
        let words = self.arg_list()?;
        for word in &words {
            let upper = word.text.chars().filter(|c| c.is_uppercase()).count();
            if upper > MAX_COMMON_CASE_UPPER {
                let message =
                    format!("more than {MAX_COMMON_CASE_UPPER} upper-case characters in one text");
                return Err(Fault::new(word.start, message));
            }
        }
        Ok(words.into_iter().map(|word| word.text).collect())
    }

    /// `(text)` or `(text*)`, and whether the star is there.
    fn text_or_prefix(&mut self) -> Parsed<(String, bool)> {
        self.require("(", "behind the function")?;
        let text = if self.at("*") { String::new() } else { self.string("a value")?.text };
        let star = self.eat("*");
        self.require(")", "behind the value")?;
        Ok((text, star))
    }

    fn exact_call(&mut self) -> Parsed<Predicate> {
        let (text, star) = self.text_or_prefix()?;
        Ok(if star { Predicate::ExactPrefix(text) } else { Predicate::Exact(text) })
    }

    fn fold_call(&mut self) -> Parsed<Predicate> {
        let (text, star) = self.text_or_prefix()?;
        Ok(if star { Predicate::PrefixFold(text) } else { Predicate::PhraseFold(text) })
    }

    fn range(&mut self) -> Parsed<Predicate> {
        let (min_inclusive, [min, max], max_inclusive) = self.bracket_pair()?;
        let bound = |word: Compound, inclusive| {
            if parse_number(word.text.as_bytes()).is_none() {
                let message = format!("`{}` is not a number", short(&word.text));
                return Err(
                    Fault::new(word.start, message).hint("string_range(a, b) compares texts")
                );
            }
            Ok(RangeBound { value: Number { text: word.text }, inclusive })
        };
        Ok(Predicate::Range { min: bound(min, min_inclusive)?, max: bound(max, max_inclusive)? })
    }

    /// `[a, b)` with any of the four brackets: whether each end is included.
    pub(super) fn bracket_pair(&mut self) -> Parsed<(bool, [Compound; 2], bool)> {
        let min_inclusive = self.eat("[");
        if !min_inclusive {
            self.require("(", "or `[` in front of the range")?;
        }
        let min = self.string("the start of the range")?;
        let to = self.at("to");
        self.require(",", "between the ends of the range").map_err(|fault| match to {
            true => fault.hint("write a comma instead of `TO`"),
            false => fault,
        })?;
        let max = self.string("the end of the range")?;
        let max_inclusive = self.eat("]");
        if !max_inclusive {
            self.require(")", "or `]` behind the range")?;
        }
        Ok((min_inclusive, [min, max], max_inclusive))
    }

    fn len_range(&mut self) -> Parsed<Predicate> {
        let [min, max] = self.args("len_range takes two lengths")?;
        let length = |word: &Compound| {
            if word.text.eq_ignore_ascii_case("inf") {
                return Ok(u64::MAX);
            }
            whole_number(&word.text).ok_or_else(|| {
                Fault::new(word.start, format!("`{}` is not a length", short(&word.text)))
            })
        };
        Ok(Predicate::LenRange { min: length(&min)?, max: length(&max)? })
    }

    fn compare_field(&mut self, op: FieldOp) -> Parsed<Predicate> {
        Ok(Predicate::CompareField { op, other: self.single_arg()?.text })
    }

    fn pattern_match(&mut self, anchor: MatchAnchor) -> Parsed<Predicate> {
        let word = self.single_arg()?;
        Ok(Predicate::PatternMatch(super::pattern::match_pattern(word.text, anchor)))
    }

    fn ipv4_range(&mut self) -> Parsed<Predicate> {
        let parse = |text: &str| parse_ipv4(text.as_bytes());
        let (min, max) = self.address_range("IPv4", 32, &|text| parse(text).map(u128::from))?;
        let narrow = |wide: u128| u32::try_from(wide).unwrap_or(u32::MAX);
        Ok(Predicate::Ipv4Range { min: narrow(min), max: narrow(max) })
    }

    fn ipv6_range(&mut self) -> Parsed<Predicate> {
        let (min, max) = self.address_range("IPv6", 128, &parse_ipv6)?;
        Ok(Predicate::Ipv6Range { min, max })
    }

    /// `(first, last)`, `(address)` or `(network/bits)`.
    fn address_range(
        &mut self,
        family: &str,
        width: u32,
        parse: &dyn Fn(&str) -> Option<u128>,
    ) -> Parsed<(u128, u128)> {
        let start = self.peek().start();
        let args = self.arg_list()?;
        let address = |text: &str, at: usize| {
            let message = || format!("`{}` is not an {family} address", short(text));
            parse(text).ok_or_else(|| Fault::new(at, message()))
        };
        match args.as_slice() {
            [first, last] => {
                Ok((address(&first.text, first.start)?, address(&last.text, last.start)?))
            }
            [only] => {
                let (text, bits) = match only.text.split_once('/') {
                    Some((text, bits)) => (text, network_bits(bits, width, only.start)?),
                    None => (only.text.as_str(), width),
                };
                let base = address(text, only.start)?;
                let host = host_mask(width - bits);
                Ok((base & !host, base | host))
            }
            _ => Err(Fault::new(start, "expected one network or two addresses")),
        }
    }
}

/// Reads the bits of a network; `width` are those of an address.
pub(super) fn network_bits(text: &str, width: u32, at: usize) -> Parsed<u32> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let bits = if digits { text.parse().ok() } else { None };
    bits.filter(|bits| *bits <= width)
        .ok_or_else(|| Fault::new(at, format!("a network has 0 to {width} bits")))
}

/// The lowest `bits` bits set.
fn host_mask(bits: u32) -> u128 {
    if bits == 0 { 0 } else { u128::MAX >> (128 - bits) }
}

/// An IPv6 address without its zone, or an IPv4 address mapped into IPv6.
fn parse_ipv6(text: &str) -> Option<u128> {
    let address = text.split('%').next().unwrap_or(text);
    match address.parse().ok()? {
        IpAddr::V6(v6) => Some(v6.to_bits()),
        IpAddr::V4(v4) => Some(v4.to_ipv6_mapped().to_bits()),
    }
}

/// The field that the rows of a subquery consist of.
fn single_field(query: &Query) -> Option<&str> {
    use super::super::ast::FieldPattern::Name;
    match query.pipes.last()? {
        Pipe::Fields(fields) => match fields.as_slice() {
            [Name(field)] => Some(field),
            _ => None,
        },
        Pipe::Uniq(uniq) if uniq.hits.is_none() => match uniq.by.as_slice() {
            [field] => Some(field),
            _ => None,
        },
        _ => None,
    }
}
