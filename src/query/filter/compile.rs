//! From the syntax tree to a tree of tests.

use std::sync::Arc;

use super::number_range::NumberRange;
use super::pattern::PatternMatcher;
use super::phrase::{FoldedPhrase, Phrase};
use super::predicate::{ByteRange, RegexPredicate, ValuePredicate};
use super::set::{Bounded, PhraseSet, TextSet, common_cases};
use super::time::TimeContext;
use super::{CompiledFilter, FieldTest, Node};
use crate::error::{Error, QueryError, Result};
use crate::query::ast::{
    CompareOp, FieldPattern, Filter, Predicate, Query, RangeBound, STREAM_FIELD, STREAM_ID_FIELD,
    StreamIds, ValueSet,
};
use crate::query::context::ExecContext;
use crate::query::regex::Regex;
use crate::record::Quantity;

impl CompiledFilter {
    /// Prepares a filter that runs between pipes: needles, expressions, the values of subqueries.
    ///
    /// # Errors
    /// [`Error::Query`] for what cannot be evaluated, and the errors of subqueries.
    pub(crate) fn compile(filter: &Filter, ctx: &ExecContext<'_>) -> Result<CompiledFilter> {
        CompiledFilter::compile_at(filter, ctx, 0)
    }

    /// As [`compile`](CompiledFilter::compile), with time filters looking `time_offset`
    /// nanoseconds further back.
    pub(crate) fn compile_at(
        filter: &Filter,
        ctx: &ExecContext<'_>,
        time_offset: i64,
    ) -> Result<CompiledFilter> {
        let times = TimeContext::new(ctx, time_offset);
        let mut compiler = Compiler { ctx, times, leaves: 0, bytes: 0 };
        let root = compiler.node(filter)?;
        let memory = match compiler.bytes {
            0 => None,
            bytes => {
                let mut memory = ctx.reservation("filter");
                memory.resize(bytes)?;
                Some(Arc::new(memory))
            }
        };
        Ok(CompiledFilter { root, times: compiler.times, stop: ctx.stop.clone(), _memory: memory })
    }
}

/// Lists below this size are not counted to the query's memory.
const LISTED_BYTES: usize = 64 << 10;

pub(super) struct Compiler<'a> {
    ctx: &'a ExecContext<'a>,
    times: TimeContext,
    leaves: usize,
    /// What long lists take of memory.
    bytes: usize,
}

impl Compiler<'_> {
    pub(super) fn node(&mut self, filter: &Filter) -> Result<Node> {
        Ok(match filter {
            Filter::All => Node::Const(true),
            Filter::And(_) | Filter::Or(_) => self.list(filter)?,
            Filter::Not(inner) => Node::negate(self.node(inner)?),
            Filter::Field { field, predicate } => {
                let test = self.test(predicate)?;
                self.leaf(field, test)
            }
            Filter::Stream(selector) => {
                let test = FieldTest::Value(Box::new(ValuePredicate::Stream(selector.clone())));
                self.named(STREAM_FIELD, test)
            }
            Filter::StreamId(ids) => {
                let set = match ids {
                    StreamIds::List(ids) => {
                        TextSet::new(ids.iter().map(|id| id.to_string().into_bytes()))
                    }
                    StreamIds::Query { query, field } => TextSet::new(self.values(query, field)?),
                };
                self.named(STREAM_ID_FIELD, FieldTest::Value(Box::new(ValuePredicate::OneOf(set))))
            }
            Filter::Time(time) => match self.times.range(time) {
                Some(range) if range.is_empty() => Node::Const(false),
                Some(range) => Node::Time(range),
                None => return Err(unusable("a time of the filter cannot be read")),
            },
            Filter::DayRange(range) => Node::Day(*range),
            Filter::WeekRange(range) => Node::Week(*range),
        })
    }

    pub(super) fn leaf(&mut self, field: &FieldPattern, test: FieldTest) -> Node {
        match field {
            FieldPattern::Name(name) => self.named(name, test),
            FieldPattern::Prefix(prefix) => {
                let leaf = self.next_leaf();
                Node::AnyField { prefix: Arc::from(prefix.as_str()), test, leaf }
            }
        }
    }

    fn named(&mut self, name: &str, test: FieldTest) -> Node {
        if let FieldTest::Value(predicate) = &test
            && let ValuePredicate::Const(answer) = **predicate
        {
            return Node::Const(answer);
        }
        if let FieldTest::Value(predicate) = &test {
            self.bytes += match predicate.heap_bytes() {
                few if few < LISTED_BYTES => 0,
                many => many,
            };
        }
        let leaf = self.next_leaf();
        Node::Field { field: Arc::from(name), test, leaf }
    }

    fn next_leaf(&mut self) -> usize {
        self.leaves += 1;
        self.leaves - 1
    }

    fn test(&mut self, predicate: &Predicate) -> Result<FieldTest> {
        Ok(match predicate {
            Predicate::CompareField { op, other } => {
                FieldTest::Compare(*op, Arc::from(other.as_str()))
            }
            Predicate::ValueType(name) => FieldTest::Type(Arc::from(name.as_str())),
            _ => FieldTest::Value(Box::new(self.predicate(predicate)?)),
        })
    }

    fn predicate(&mut self, predicate: &Predicate) -> Result<ValuePredicate> {
        use ValuePredicate as P;
        Ok(match predicate {
            Predicate::Any => P::NonEmpty,
            Predicate::Phrase(text) => phrase_or_empty(text),
            Predicate::Prefix(text) | Predicate::PrefixFold(text) if text.is_empty() => P::NonEmpty,
            Predicate::Prefix(text) => P::Phrase(Phrase::prefix(text.as_bytes())),
            Predicate::Substring(text) if text.is_empty() => P::Const(true),
            Predicate::Substring(text) => P::Phrase(Phrase::substring(text.as_bytes())),
            Predicate::PhraseFold(text) if text.is_empty() => P::Empty,
            Predicate::PhraseFold(text) => P::Folded(FoldedPhrase::new(text.as_bytes())),
            Predicate::PrefixFold(text) => P::Folded(FoldedPhrase::prefix(text.as_bytes())),
            Predicate::Exact(text) if text.is_empty() => P::Empty,
            Predicate::Exact(text) => P::Exact(Box::from(text.as_bytes())),
            Predicate::ExactPrefix(text) if text.is_empty() => P::Const(true),
            Predicate::ExactPrefix(text) => P::StartsWith(Box::from(text.as_bytes())),
            Predicate::In(ValueSet::Any)
            | Predicate::ContainsAll(ValueSet::Any)
            | Predicate::ContainsAny(ValueSet::Any) => P::Const(true),
            Predicate::In(set) => one_of(self.set(set)?),
            Predicate::ContainsAll(set) => all_phrases(&self.set(set)?),
            Predicate::ContainsAny(set) => any_phrase(&self.set(set)?),
            Predicate::Sequence(parts) => sequence(parts),
            Predicate::Regex(regex) => P::Regex(RegexPredicate::new(regex)),
            Predicate::Compare { op, value } => compare(*op, value),
            Predicate::Range { min, max } => P::Numbers(Box::new(number_range(min, max)?)),
            Predicate::StringRange { min, max } => P::Bytes(ByteRange {
                min: Some((Box::from(min.as_bytes()), true)),
                max: Some((Box::from(max.as_bytes()), false)),
            }),
            Predicate::LenRange { min, max } => P::Length(*min, *max),
            Predicate::Ipv4Range { min, max } => P::Ipv4(*min, *max),
            Predicate::Ipv6Range { min, max } => P::Ipv6(*min, *max),
            Predicate::PatternMatch(pattern) => P::Pattern(PatternMatcher::new(pattern)),
            Predicate::EqualsCommonCase(texts) => {
                let all = spellings(texts)?;
                one_of(all.into_iter().map(String::into_bytes).collect())
            }
            Predicate::ContainsCommonCase(texts) => {
                let all = spellings(texts)?;
                any_phrase(&all.into_iter().map(String::into_bytes).collect::<Vec<_>>())
            }
            Predicate::JsonArrayContainsAny(texts) => {
                P::JsonArray(TextSet::new(texts.iter().map(|t| t.as_bytes().to_vec())))
            }
            Predicate::CompareField { .. } | Predicate::ValueType(_) => P::Const(false),
        })
    }

    /// The values of a set that is not "any".
    fn set(&mut self, set: &ValueSet) -> Result<Vec<Vec<u8>>> {
        match set {
            ValueSet::Any => Ok(Vec::new()),
            ValueSet::List(values) => Ok(values.iter().map(|v| v.as_bytes().to_vec()).collect()),
            ValueSet::Query { query, field } => self.values(query, field),
        }
    }

    /// The distinct values of `field` in the rows of a subquery, the empty one included.
    fn values(&mut self, query: &Query, field: &str) -> Result<Vec<Vec<u8>>> {
        let mut reservation = self.ctx.reservation("subquery");
        let mut seen = hashbrown::HashSet::<Vec<u8>, foldhash::fast::RandomState>::default();
        let (mut bytes, mut scratch) = (0usize, Vec::new());
        for batch in self.ctx.subqueries.run(query, self.ctx)? {
            for row in 0..batch.rows() {
                let value = batch.value(field, row, &mut scratch);
                if !seen.contains(value) {
                    bytes += value.len() + 64;
                    seen.insert(value.to_vec());
                }
            }
            reservation.resize(bytes)?;
        }
        Ok(seen.into_iter().collect())
    }
}

impl RegexPredicate {
    /// Takes over a compiled expression and looks for its literals.
    pub(crate) fn new(regex: &Regex) -> RegexPredicate {
        let needs = regex.hir().as_ref().map(super::Needs::regex).unwrap_or_default();
        let mut literals = needs.literals();
        // Short literals hit everywhere and only cost.
        if literals.iter().any(|l| l.len() < 2) || literals.len() > 16 {
            literals.clear();
        }
        RegexPredicate { regex: regex.clone(), needs, literals }
    }
}

impl Node {
    /// All of `nodes`; nested lists are joined, constants folded.
    pub(super) fn and(nodes: Vec<Node>) -> Node {
        let mut all = Vec::with_capacity(nodes.len());
        for node in nodes {
            match node {
                Node::Const(true) => {}
                Node::Const(false) => return Node::Const(false),
                Node::And(inner) => all.extend(inner),
                node => all.push(node),
            }
        }
        all.sort_by_cached_key(Node::cost);
        match all.len() {
            0 => Node::Const(true),
            1 => all.pop().unwrap_or(Node::Const(true)),
            _ => Node::And(all),
        }
    }

    /// Any of `nodes`; nested lists are joined, constants folded.
    pub(super) fn or(nodes: Vec<Node>) -> Node {
        let mut any = Vec::with_capacity(nodes.len());
        for node in nodes {
            match node {
                Node::Const(false) => {}
                Node::Const(true) => return Node::Const(true),
                Node::Or(inner) => any.extend(inner),
                node => any.push(node),
            }
        }
        any.sort_by_cached_key(Node::cost);
        match any.len() {
            0 => Node::Const(false),
            1 => any.pop().unwrap_or(Node::Const(false)),
            _ => Node::Or(any),
        }
    }

    pub(super) fn negate(node: Node) -> Node {
        match node {
            Node::Const(answer) => Node::Const(!answer),
            Node::Not(inner) => *inner,
            node => Node::Not(Box::new(node)),
        }
    }

    /// How dear the part is; only the order of evaluation depends on it.
    fn cost(&self) -> u32 {
        let test_cost = |test: &FieldTest| match test {
            FieldTest::Value(p) => p.cost(),
            FieldTest::Compare(..) => 12,
            FieldTest::Type(_) => 2,
        };
        match self {
            Node::Const(_) => 0,
            Node::Time(_) => 1,
            Node::Day(_) | Node::Week(_) => 3,
            Node::Field { field, test, .. } => {
                // Messages are long, other fields short or of few values.
                let long = if &**field == crate::query::ast::MESSAGE_FIELD { 30 } else { 0 };
                test_cost(test) + long
            }
            Node::AnyField { test, .. } => 200 + test_cost(test),
            Node::And(nodes) | Node::Or(nodes) => {
                nodes.iter().map(Node::cost).fold(0, u32::saturating_add)
            }
            Node::Not(inner) => inner.cost(),
        }
    }
}

fn phrase_or_empty(text: &str) -> ValuePredicate {
    if text.is_empty() {
        ValuePredicate::Empty
    } else {
        ValuePredicate::Phrase(Phrase::new(text.as_bytes()))
    }
}

pub(super) fn one_of(mut values: Vec<Vec<u8>>) -> ValuePredicate {
    match values.len() {
        0 => ValuePredicate::Const(false),
        1 => match values.pop() {
            Some(value) if !value.is_empty() => ValuePredicate::Exact(value.into_boxed_slice()),
            _ => ValuePredicate::Empty,
        },
        _ => ValuePredicate::OneOf(TextSet::new(values)),
    }
}

fn all_phrases(values: &[Vec<u8>]) -> ValuePredicate {
    if values.is_empty() {
        return ValuePredicate::Const(true);
    }
    if values.iter().any(Vec::is_empty) {
        // The empty phrase holds for the empty value only, any other one never does for it.
        let only = values.iter().all(Vec::is_empty);
        return if only { ValuePredicate::Empty } else { ValuePredicate::Const(false) };
    }
    all_needles(values.iter().map(|v| Bounded::phrase(v)).collect())
}

/// All of `needles`, none of which is empty.
pub(super) fn all_needles(mut needles: Vec<Bounded>) -> ValuePredicate {
    needles.sort_unstable();
    needles.dedup();
    needles.sort_by_key(|n| std::cmp::Reverse(n.bytes().len()));
    ValuePredicate::AllPhrases(needles.iter().map(Bounded::to_phrase).collect())
}

fn any_phrase(values: &[Vec<u8>]) -> ValuePredicate {
    if values.is_empty() {
        return ValuePredicate::Const(false);
    }
    ValuePredicate::AnyPhrase(PhraseSet::of(values.iter().map(|v| Bounded::phrase(v)).collect()))
}

fn sequence(parts: &[String]) -> ValuePredicate {
    let phrases: Vec<Phrase> =
        parts.iter().filter(|p| !p.is_empty()).map(|p| Phrase::new(p.as_bytes())).collect();
    if phrases.is_empty() {
        return ValuePredicate::Const(true);
    }
    ValuePredicate::Sequence(phrases)
}

fn compare(op: CompareOp, value: &str) -> ValuePredicate {
    let above = matches!(op, CompareOp::Greater | CompareOp::GreaterOrEqual);
    let inclusive = matches!(op, CompareOp::GreaterOrEqual | CompareOp::LessOrEqual);
    if let Some(number) = Quantity::parse(value.as_bytes()) {
        let end = Some((number, inclusive));
        let (min, max) = if above { (end, None) } else { (None, end) };
        return ValuePredicate::Numbers(Box::new(NumberRange::new(min, max)));
    }
    let bound = Some((Box::from(value.as_bytes()), inclusive));
    ValuePredicate::Bytes(if above {
        ByteRange { min: bound, max: None }
    } else {
        ByteRange { min: None, max: bound }
    })
}

fn number_range(min: &RangeBound, max: &RangeBound) -> Result<NumberRange> {
    let read = |bound: &RangeBound| -> Result<Option<(Quantity, bool)>> {
        let number = Quantity::parse(bound.value.text.as_bytes());
        let number = number.ok_or_else(|| unusable("a bound of the range is no number"))?;
        Ok(Some((number, bound.inclusive)))
    };
    Ok(NumberRange::new(read(min)?, read(max)?))
}

fn spellings(texts: &[String]) -> Result<Vec<String>> {
    let mut out = Vec::new();
    for text in texts {
        match common_cases(text) {
            Some(all) => out.extend(all),
            None => return Err(unusable("a text has too many upper-case letters")),
        }
    }
    Ok(out)
}

/// A filter that the parser lets through but that cannot be evaluated.
fn unusable(message: &str) -> Error {
    Error::Query(QueryError {
        query: String::new(),
        offset: 0,
        message: message.to_owned(),
        hint: None,
    })
}
