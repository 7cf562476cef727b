//! Three-valued evaluation of a filter on a whole block, from what is known without its rows.

use std::borrow::Cow;
use std::cell::Cell;
use std::sync::Arc;

use super::coded::Verdicts;
use super::number_range::NumberRange;
use super::predicate::{MOST_PROBES, ValuePredicate};
use super::{CompiledFilter, FieldTest, Node};
use crate::codec::Bitmap;
use crate::error::Result;
use crate::index::{Needle, found_all, found_any};
use crate::query::context::{Stop, TimeRange};
use crate::record::{TextVec, parse_canonical_int};

/// What is known about the rows of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// None of them passes.
    None,
    /// All of them pass.
    All,
    /// Their values have to be looked at.
    Maybe,
}

impl Verdict {
    pub(super) fn of(answer: bool) -> Verdict {
        if answer { Verdict::All } else { Verdict::None }
    }

    /// For rows that have to meet both of two conditions.
    pub(super) fn and(self, other: Verdict) -> Verdict {
        match (self, other) {
            (Verdict::None, _) | (_, Verdict::None) => Verdict::None,
            (Verdict::All, Verdict::All) => Verdict::All,
            _ => Verdict::Maybe,
        }
    }

    /// For rows that have to meet one of two conditions.
    pub(super) fn or(self, other: Verdict) -> Verdict {
        self.negated().and(other.negated()).negated()
    }

    pub(super) fn negated(self) -> Verdict {
        match self {
            Verdict::None => Verdict::All,
            Verdict::All => Verdict::None,
            Verdict::Maybe => Verdict::Maybe,
        }
    }

    /// For rows of which some have one verdict, some the other.
    fn mixed(self, other: Verdict) -> Verdict {
        if self == other { self } else { Verdict::Maybe }
    }
}

/// What a block knows about its columns.
pub(crate) trait BlockFacts {
    /// The first and the last time of the rows; may be too wide.
    fn times(&self) -> (i64, i64);

    /// The facts of a field.
    fn column(&self, name: &str) -> Result<ColumnFacts<'_>>;

    /// The names that start with `prefix`, all of those of which a row has a value; `None` if
    /// they are not known.
    fn names_with_prefix(&self, prefix: &str) -> Result<Option<Vec<Arc<str>>>>;

    /// Whether a value of the field's page may hold `needle`. True if that is not known.
    fn may_hold(&self, name: &str, needle: &Needle<'_>) -> Result<bool>;

    /// The verdicts of the predicate of leaf `leaf` on the templates of the field's page, or on
    /// the values of its dictionary, if it has some. Each row of the page, absent ones included,
    /// is of one of them.
    fn verdicts(
        &self,
        _name: &str,
        _leaf: usize,
        _predicate: &ValuePredicate,
    ) -> Result<Option<Arc<Verdicts>>> {
        Ok(None)
    }
}

/// What an index block knows of the columns of all its blocks.
pub(crate) trait IndexFacts {
    /// The blocks in which a row may have a value of the field; `None` if that is not known.
    fn present(&self, name: &str) -> Result<Option<Bitmap>>;

    /// The blocks in which a value of the field may hold `needle`.
    fn may_hold(&self, name: &str, needle: &Needle<'_>) -> Result<Bitmap>;
}

/// What is known about the values of a field in a block: each row has one of the listed values
/// or a value of the page. Each source gives at least one row its value, unless it says so.
#[derive(Debug, Clone, Default)]
pub(crate) struct ColumnFacts<'a> {
    /// Values known one by one.
    pub(crate) listed: Vec<Cow<'a, [u8]>>,
    /// All other values.
    pub(crate) page: Option<PageFacts<'a>>,
}

/// Bounds of the values of a page.
#[derive(Debug, Clone, Default)]
pub(crate) struct PageFacts<'a> {
    /// Whether a row may be without a value.
    pub(crate) may_be_empty: bool,
    /// Numbers not above and not below any value that reads as a number; `None` if not known.
    pub(crate) numbers: Option<(f64, f64)>,
    /// Whether all non-empty values read as numbers.
    pub(crate) all_numbers: bool,
    /// Least and greatest value, if all non-empty values are canonical integers.
    pub(crate) ints: Option<(i64, i64)>,
    /// Lengths in bytes of the shortest and the longest non-empty value.
    pub(crate) lengths: Option<(u64, u64)>,
    /// The bytewise least non-empty value, or something less.
    pub(crate) least: Option<Cow<'a, [u8]>>,
    /// The bytewise greatest non-empty value, or something greater.
    pub(crate) greatest: Option<Cow<'a, [u8]>>,
    /// All non-empty values.
    pub(crate) dictionary: Option<Arc<TextVec>>,
}

impl CompiledFilter {
    fn steps(&self) -> Steps<'_> {
        Steps { stop: &self.stop, done: Cell::new(0) }
    }

    /// What is known about the rows of a block.
    #[cfg(test)]
    pub(crate) fn judge(&self, facts: &dyn BlockFacts) -> Result<Verdict> {
        judge(&self.root, facts, &self.steps())
    }

    /// Judges the parts of the filter that all have to pass, those of `open`, and leaves in
    /// `open` the ones that have to be evaluated row by row.
    pub(crate) fn judge_parts(
        &self,
        open: &mut Vec<usize>,
        facts: &dyn BlockFacts,
    ) -> Result<Verdict> {
        let (parts, steps) = (self.parts(), self.steps());
        let mut left = Vec::with_capacity(open.len());
        for &i in open.iter() {
            let Some(part) = parts.get(i) else { continue };
            match judge(part, facts, &steps)? {
                Verdict::None => return Ok(Verdict::None),
                Verdict::All => {}
                Verdict::Maybe => left.push(i),
            }
        }
        *open = left;
        Ok(if open.is_empty() { Verdict::All } else { Verdict::Maybe })
    }

    /// The blocks of an index block in which rows may pass, by the words that they need; `None`
    /// if that could be all.
    pub(crate) fn blocks_that_may_pass(&self, facts: &dyn IndexFacts) -> Result<Option<Bitmap>> {
        blocks_of(&self.root, facts, &self.steps())
    }

    /// The times that a row must have to pass: what the filters of `_time` that every row has to
    /// pass have in common.
    pub(crate) fn time_range(&self) -> TimeRange {
        if self.is_none() {
            return TimeRange::NONE;
        }
        let range = self.parts().iter().fold(TimeRange::ALL, |range, node| match node {
            Node::Time(r) => range.intersect(*r),
            _ => range,
        });
        if range.is_empty() { TimeRange::NONE } else { range }
    }
}

/// Counts the steps of a judgement and asks from time to time whether the query may go on.
struct Steps<'a> {
    stop: &'a Stop,
    done: Cell<u32>,
}

impl Steps<'_> {
    fn step(&self) -> Result<()> {
        let done = self.done.get().wrapping_add(1);
        self.done.set(done);
        if done.is_multiple_of(16) { self.stop.check() } else { Ok(()) }
    }
}

fn judge(node: &Node, facts: &dyn BlockFacts, steps: &Steps<'_>) -> Result<Verdict> {
    steps.step()?;
    Ok(match node {
        Node::Const(answer) => Verdict::of(*answer),
        Node::And(all) => {
            let mut verdict = Verdict::All;
            for part in all {
                match judge(part, facts, steps)? {
                    Verdict::None => return Ok(Verdict::None),
                    Verdict::Maybe => verdict = Verdict::Maybe,
                    Verdict::All => {}
                }
            }
            verdict
        }
        Node::Or(any) => {
            let mut verdict = Verdict::None;
            for part in any {
                match judge(part, facts, steps)? {
                    Verdict::All => return Ok(Verdict::All),
                    Verdict::Maybe => verdict = Verdict::Maybe,
                    Verdict::None => {}
                }
            }
            verdict
        }
        Node::Not(inner) => judge(inner, facts, steps)?.negated(),
        Node::Field { field, test: FieldTest::Value(predicate), leaf } => {
            judge_field(field, *leaf, predicate, facts)?
        }
        Node::Field { .. } => Verdict::Maybe,
        Node::AnyField { prefix, test, leaf } => judge_any_field(prefix, test, *leaf, facts)?,
        Node::Time(range) => {
            let (min, max) = facts.times();
            if !range.overlaps(min, max) {
                Verdict::None
            } else if range.covers(min, max) {
                Verdict::All
            } else {
                Verdict::Maybe
            }
        }
        Node::Day(_) | Node::Week(_) => Verdict::Maybe,
    })
}

fn blocks_of(node: &Node, facts: &dyn IndexFacts, steps: &Steps<'_>) -> Result<Option<Bitmap>> {
    steps.step()?;
    match node {
        Node::And(all) => {
            let all = all.iter().take(MOST_PROBES);
            found_all(all.map(|part| blocks_of(part, facts, steps)))
        }
        Node::Or(any) if any.len() > MOST_PROBES => Ok(None),
        Node::Or(any) => found_any(any.iter().map(|part| blocks_of(part, facts, steps))),
        Node::Field { field, test: FieldTest::Value(predicate), .. } if !predicate.matches(b"") => {
            let Some(present) = facts.present(field)? else { return Ok(None) };
            let mut may_hold = |needle: &Needle<'_>| {
                steps.step()?;
                facts.may_hold(field, needle)
            };
            let met = predicate.may_be_met(&mut may_hold)?;
            Ok(Some(met.unwrap_or(present)))
        }
        _ => Ok(None),
    }
}

fn judge_any_field(
    prefix: &str,
    test: &FieldTest,
    leaf: usize,
    facts: &dyn BlockFacts,
) -> Result<Verdict> {
    let (Some(names), FieldTest::Value(predicate)) = (facts.names_with_prefix(prefix)?, test)
    else {
        return Ok(Verdict::Maybe);
    };
    for name in names {
        if judge_field(&name, leaf, predicate, facts)? != Verdict::None {
            return Ok(Verdict::Maybe);
        }
    }
    // No value passes; absent ones would not count anyway.
    Ok(Verdict::None)
}

fn judge_field(
    name: &str,
    leaf: usize,
    predicate: &ValuePredicate,
    facts: &dyn BlockFacts,
) -> Result<Verdict> {
    let known = facts.column(name)?;
    let mut verdict: Option<Verdict> = None;
    let mut add = |next: Verdict| {
        let mixed = verdict.map_or(next, |v| v.mixed(next));
        verdict = Some(mixed);
        mixed == Verdict::Maybe
    };
    for value in &known.listed {
        if add(Verdict::of(predicate.matches(value))) {
            return Ok(Verdict::Maybe);
        }
    }
    if let Some(page) = &known.page {
        let judged = judge_page(predicate, page);
        // A filter can only exclude, and only the non-empty values.
        let judged = if judged == Verdict::Maybe && may_exclude(predicate, page) {
            let met = predicate.may_be_met(&mut |needle| facts.may_hold(name, needle))?;
            if met.unwrap_or(true) { Verdict::Maybe } else { Verdict::None }
        } else {
            judged
        };
        let judged = match judged {
            Verdict::Maybe => {
                let known = facts.verdicts(name, leaf, predicate)?;
                known.and_then(|verdicts| verdicts.common()).unwrap_or(judged)
            }
            sure => sure,
        };
        add(judged);
    }
    Ok(verdict.unwrap_or(Verdict::Maybe))
}

/// Whether the predicate fails in all rows of the page once no non-empty value meets it.
fn may_exclude(predicate: &ValuePredicate, page: &PageFacts<'_>) -> bool {
    !page.may_be_empty || !predicate.matches(b"")
}

/// The verdict on the rows of a page from the bounds of its values.
fn judge_page(predicate: &ValuePredicate, page: &PageFacts<'_>) -> Verdict {
    let values = judge_values(predicate, page);
    if !page.may_be_empty {
        return values;
    }
    values.mixed(Verdict::of(predicate.matches(b"")))
}

/// The verdict on the non-empty values of a page.
fn judge_values(predicate: &ValuePredicate, page: &PageFacts<'_>) -> Verdict {
    if let Some(dictionary) = &page.dictionary {
        let mut verdicts = dictionary
            .iter()
            .filter(|v| !v.is_empty())
            .map(|value| Verdict::of(predicate.matches(value)));
        let first = verdicts.next().unwrap_or(Verdict::Maybe);
        return if verdicts.all(|v| v == first) { first } else { Verdict::Maybe };
    }
    match predicate {
        ValuePredicate::Const(answer) => Verdict::of(*answer),
        ValuePredicate::Empty => Verdict::None,
        ValuePredicate::NonEmpty => Verdict::All,
        ValuePredicate::Numbers(range) => judge_numbers(range, page),
        ValuePredicate::Exact(value) => may_be_one(value, page),
        ValuePredicate::OneOf(set) => {
            let may_be = |v: &[u8]| !v.is_empty() && may_be_one(v, page) != Verdict::None;
            if set.values().iter().any(|v| may_be(v)) { Verdict::Maybe } else { Verdict::None }
        }
        ValuePredicate::Bytes(range) => {
            let (least, greatest) = (&page.least, &page.greatest);
            let below = greatest.as_ref().is_some_and(|g| is_below(g, range));
            let above = least.as_ref().is_some_and(|l| is_above(l, range));
            if below || above { Verdict::None } else { Verdict::Maybe }
        }
        ValuePredicate::Length(min, max) => match page.lengths {
            // Characters are between a quarter of the bytes and all of them.
            Some((shortest, longest)) if longest < *min || shortest / 4 > *max => Verdict::None,
            _ => Verdict::Maybe,
        },
        // A needle longer than every value stands in none of them.
        ValuePredicate::Phrase(phrase) => longer_than_all(phrase.needle().len(), page),
        ValuePredicate::StartsWith(start) => longer_than_all(start.len(), page),
        _ => Verdict::Maybe,
    }
}

fn judge_numbers(range: &NumberRange, page: &PageFacts<'_>) -> Verdict {
    if let Some((least, greatest)) = page.ints {
        let ints = range.ints();
        if ints.is_empty() || greatest < *ints.start() || least > *ints.end() {
            return Verdict::None;
        }
        let all = ints.contains(&least) && ints.contains(&greatest);
        return if all { Verdict::All } else { Verdict::Maybe };
    }
    match page.numbers {
        Some((low, high)) if range.misses(low, high) => Verdict::None,
        Some((low, high)) if page.all_numbers && range.covers(low, high) => Verdict::All,
        _ => Verdict::Maybe,
    }
}

fn longer_than_all(len: usize, page: &PageFacts<'_>) -> Verdict {
    match page.lengths {
        Some((_, longest)) if len as u64 > longest => Verdict::None,
        _ => Verdict::Maybe,
    }
}

/// Whether a value of the page may be `value`, which is not empty.
fn may_be_one(value: &[u8], page: &PageFacts<'_>) -> Verdict {
    let (least, greatest) = (&page.least, &page.greatest);
    let len = value.len() as u64;
    let not_an_int = page
        .ints
        .is_some_and(|(min, max)| parse_canonical_int(value).is_none_or(|n| n < min || n > max));
    let excluded = not_an_int
        || page.lengths.is_some_and(|(shortest, longest)| len < shortest || len > longest)
        || least.as_ref().is_some_and(|l| value < &**l)
        || greatest.as_ref().is_some_and(|g| value > &**g);
    if excluded { Verdict::None } else { Verdict::Maybe }
}

/// Whether all values up to `greatest` lie below the range.
fn is_below(greatest: &[u8], range: &super::predicate::ByteRange) -> bool {
    match &range.min {
        Some((min, inclusive)) => greatest < &**min || greatest == &**min && !inclusive,
        None => false,
    }
}

/// Whether all values from `least` on lie above the range.
fn is_above(least: &[u8], range: &super::predicate::ByteRange) -> bool {
    match &range.max {
        Some((max, inclusive)) => least > &**max || least == &**max && !inclusive,
        None => false,
    }
}
