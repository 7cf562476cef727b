//! Queries made by programs instead of from text.
//!
//! ```
//! use loglith::{Filter, Query, field, message};
//!
//! let errors = message().word("error") & field("status").at_least("500");
//! let query = Query::new(errors & !field("path").prefix("/health"))
//!     .fields(["_time", "_msg"])
//!     .limit(20);
//! assert_eq!(
//!     query.to_string(),
//!     "error status:>=500 !path:\"/health\"* | fields _time, _msg | limit 20"
//! );
//! # let parsed: Query = query.to_string().parse().unwrap();
//! # assert_eq!(parsed, query);
//! ```

use std::ops::{BitAnd, BitOr, Not};

use super::ast::{
    CompareOp, Duration, FieldPattern, Filter, GroupKey, LabelFilter, LabelOp, MESSAGE_FIELD, Pipe,
    Predicate, Query, QueryOptions, Sort, SortKey, StatsFunction, StatsItem, StreamSelector,
    TimeFilter, TimeForm, TimePoint, Top, Uniq, ValueSet,
};
use super::fault::Fault;
use super::regex::Regex;
use crate::error::QueryError;
use crate::record::Timestamp;

/// Filters on the field `name`.
pub fn field(name: impl Into<String>) -> FieldFilters {
    FieldFilters { field: FieldPattern::Name(name.into()) }
}

/// Filters on the message, the field `_msg`.
pub fn message() -> FieldFilters {
    field(MESSAGE_FIELD)
}

/// Makes filters on one field; see [`field`].
#[derive(Debug, Clone)]
pub struct FieldFilters {
    field: FieldPattern,
}

impl FieldFilters {
    /// A filter of any predicate.
    pub fn is(self, predicate: Predicate) -> Filter {
        Filter::Field { field: self.field, predicate }
    }

    /// The value holds `text` with word boundaries at both ends.
    pub fn word(self, text: impl Into<String>) -> Filter {
        self.is(Predicate::Phrase(text.into()))
    }

    /// The value holds `text` with a word boundary in front.
    pub fn prefix(self, text: impl Into<String>) -> Filter {
        let text = text.into();
        self.is(if text.is_empty() { Predicate::Any } else { Predicate::Prefix(text) })
    }

    /// The value holds `text` anywhere.
    pub fn substring(self, text: impl Into<String>) -> Filter {
        self.is(Predicate::Substring(text.into()))
    }

    /// The value is `text`.
    pub fn eq(self, text: impl Into<String>) -> Filter {
        self.is(Predicate::Exact(text.into()))
    }

    /// The value is one of `texts`.
    pub fn one_of<T: Into<String>>(self, texts: impl IntoIterator<Item = T>) -> Filter {
        let texts = texts.into_iter().map(Into::into).collect();
        self.is(Predicate::In(value_set(texts)))
    }

    /// The value holds all `texts` as phrases.
    pub fn contains_all<T: Into<String>>(self, texts: impl IntoIterator<Item = T>) -> Filter {
        let texts = texts.into_iter().map(Into::into).collect();
        self.is(Predicate::ContainsAll(value_set(texts)))
    }

    /// The value holds one of `texts` as a phrase.
    pub fn contains_any<T: Into<String>>(self, texts: impl IntoIterator<Item = T>) -> Filter {
        let texts = texts.into_iter().map(Into::into).collect();
        self.is(Predicate::ContainsAny(value_set(texts)))
    }

    /// The value is not empty.
    pub fn any(self) -> Filter {
        self.is(Predicate::Any)
    }

    /// The value is empty or absent.
    pub fn empty(self) -> Filter {
        self.is(Predicate::Phrase(String::new()))
    }

    /// The regular expression matches somewhere in the value.
    ///
    /// # Errors
    ///
    /// [`QueryError`] if `expression` is not RE2 syntax or too large.
    pub fn matches(self, expression: &str) -> Result<Filter, QueryError> {
        let regex = Regex::new(expression)
            .map_err(|fault| Fault::of_regex(&fault, 0).in_query(expression))?;
        Ok(self.is(Predicate::Regex(regex)))
    }

    /// The value is greater than `bound`: as a number if `bound` is one, else by bytes.
    pub fn greater_than(self, bound: impl Into<String>) -> Filter {
        self.is(Predicate::Compare { op: CompareOp::Greater, value: bound.into() })
    }

    /// The value is at least `bound`.
    pub fn at_least(self, bound: impl Into<String>) -> Filter {
        self.is(Predicate::Compare { op: CompareOp::GreaterOrEqual, value: bound.into() })
    }

    /// The value is less than `bound`.
    pub fn less_than(self, bound: impl Into<String>) -> Filter {
        self.is(Predicate::Compare { op: CompareOp::Less, value: bound.into() })
    }

    /// The value is at most `bound`.
    pub fn at_most(self, bound: impl Into<String>) -> Filter {
        self.is(Predicate::Compare { op: CompareOp::LessOrEqual, value: bound.into() })
    }
}

/// A list of values; the list of only `*` would read as "every row", so it becomes two.
fn value_set(mut values: Vec<String>) -> ValueSet {
    if matches!(values.as_slice(), [star] if star == "*") {
        values.push("*".to_owned());
    }
    ValueSet::List(values)
}

impl Filter {
    /// The message holds `text` as a word or phrase.
    pub fn word(text: impl Into<String>) -> Filter {
        message().word(text)
    }

    /// All of `filters`; every row if there are none.
    pub fn and(filters: impl IntoIterator<Item = Filter>) -> Filter {
        let mut parts = Vec::new();
        for filter in filters {
            match filter {
                Filter::And(inner) => parts.extend(inner),
                other => parts.push(other),
            }
        }
        match <[Filter; 1]>::try_from(parts) {
            Ok([only]) => only,
            Err(parts) if parts.is_empty() => Filter::All,
            Err(parts) => Filter::And(parts),
        }
    }

    /// Any of `filters`; no row if there are none.
    pub fn or(filters: impl IntoIterator<Item = Filter>) -> Filter {
        let mut parts = Vec::new();
        for filter in filters {
            match filter {
                Filter::Or(inner) => parts.extend(inner),
                other => parts.push(other),
            }
        }
        match <[Filter; 1]>::try_from(parts) {
            Ok([only]) => only,
            Err(parts) if parts.is_empty() => !Filter::All,
            Err(parts) => Filter::Or(parts),
        }
    }

    /// The stream's label `label` is `value`.
    pub fn stream(label: impl Into<String>, value: impl Into<String>) -> Filter {
        let filter = LabelFilter { label: label.into(), op: LabelOp::Equal(value.into()) };
        Filter::Stream(StreamSelector { alternatives: vec![vec![filter]] })
    }

    /// The time is one of the last `age`, the moment of the query excluded. Ages of more than 292
    /// years count as 292 years.
    pub fn last(age: std::time::Duration) -> Filter {
        let nanos = i64::try_from(age.as_nanos()).unwrap_or(i64::MAX);
        let age = Duration { text: format!("{nanos}ns"), nanos };
        Filter::Time(TimeFilter { form: TimeForm::Last(age), offset: None })
    }

    /// The time is at least `start` and less than `end`.
    pub fn between(start: Timestamp, end: Timestamp) -> Filter {
        let form = TimeForm::Range {
            min: nanosecond(start),
            min_inclusive: true,
            max: nanosecond(end),
            max_inclusive: false,
        };
        Filter::Time(TimeFilter { form, offset: None })
    }
}

fn nanosecond(time: Timestamp) -> TimePoint {
    TimePoint::Text(time.to_string())
}

impl BitAnd for Filter {
    type Output = Filter;

    /// Both filters.
    fn bitand(self, other: Filter) -> Filter {
        Filter::and([self, other])
    }
}

impl BitOr for Filter {
    type Output = Filter;

    /// Either filter.
    fn bitor(self, other: Filter) -> Filter {
        Filter::or([self, other])
    }
}

impl Not for Filter {
    type Output = Filter;

    /// The rows that the filter does not match.
    fn not(self) -> Filter {
        match self {
            Filter::Not(inner) => *inner,
            other => Filter::Not(Box::new(other)),
        }
    }
}

impl StatsItem {
    /// A function over all rows, named by its text.
    pub fn new(function: StatsFunction) -> StatsItem {
        let result = function.to_string();
        StatsItem { function, condition: None, result }
    }

    /// `count()`
    pub fn count() -> StatsItem {
        StatsItem::new(StatsFunction::Count(vec![FieldPattern::all()]))
    }

    /// `sum(field)`
    pub fn sum(field: impl Into<String>) -> StatsItem {
        StatsItem::new(StatsFunction::Sum(vec![FieldPattern::Name(field.into())]))
    }

    /// `avg(field)`
    pub fn avg(field: impl Into<String>) -> StatsItem {
        StatsItem::new(StatsFunction::Avg(vec![FieldPattern::Name(field.into())]))
    }

    /// `min(field)`
    pub fn min(field: impl Into<String>) -> StatsItem {
        StatsItem::new(StatsFunction::Min(vec![FieldPattern::Name(field.into())]))
    }

    /// `max(field)`
    pub fn max(field: impl Into<String>) -> StatsItem {
        StatsItem::new(StatsFunction::Max(vec![FieldPattern::Name(field.into())]))
    }

    /// The same over the rows of `filter` only.
    pub fn only(mut self, filter: Filter) -> StatsItem {
        self.condition = Some(filter);
        self
    }

    /// The same with its answer in the field `name`.
    pub fn named(mut self, name: impl Into<String>) -> StatsItem {
        self.result = name.into();
        self
    }
}

impl Query {
    /// The rows of `filter`, as they are.
    pub fn new(filter: Filter) -> Query {
        Query { options: QueryOptions::default(), filter, pipes: Vec::new() }
    }

    /// Appends any pipe.
    pub fn pipe(mut self, pipe: Pipe) -> Query {
        self.pipes.push(pipe);
        self
    }

    /// Keeps these fields; none keeps all.
    pub fn fields<T: Into<String>>(self, names: impl IntoIterator<Item = T>) -> Query {
        let fields: Vec<_> = names.into_iter().map(|n| FieldPattern::Name(n.into())).collect();
        let fields = if fields.is_empty() { vec![FieldPattern::all()] } else { fields };
        self.pipe(Pipe::Fields(fields))
    }

    /// Keeps the rows of `filter`.
    pub fn filter(self, filter: Filter) -> Query {
        self.pipe(Pipe::Filter(filter))
    }

    /// At most `n` rows: after a sort the first ones, else the newest.
    pub fn limit(self, n: u64) -> Query {
        self.pipe(Pipe::Limit(n))
    }

    /// Skips `n` rows.
    pub fn offset(self, n: u64) -> Query {
        self.pipe(Pipe::Offset(n))
    }

    /// Sorts by these fields, smallest first; by all fields if there are none.
    pub fn sort_by<T: Into<String>>(self, names: impl IntoIterator<Item = T>) -> Query {
        self.sort(names.into_iter().map(Into::into).collect(), false)
    }

    /// Sorts by these fields, largest first; by all fields if there are none.
    pub fn sort_by_desc<T: Into<String>>(self, names: impl IntoIterator<Item = T>) -> Query {
        self.sort(names.into_iter().map(Into::into).collect(), true)
    }

    fn sort(self, names: Vec<String>, desc: bool) -> Query {
        let keys: Vec<_> = names.into_iter().map(|field| SortKey { field, desc }).collect();
        let desc = desc && keys.is_empty();
        let (partition_by, offset, limit, rank) = (Vec::new(), None, None, None);
        self.pipe(Pipe::Sort(Sort { keys, desc, partition_by, offset, limit, rank }))
    }

    /// Aggregates in groups of equal values of `by`.
    ///
    /// ```
    /// use loglith::{Filter, Query, StatsItem};
    ///
    /// let per_host = Query::new(Filter::word("error"))
    ///     .stats(["host"], [StatsItem::count().named("errors")])
    ///     .sort_by_desc(["errors"]);
    /// let text = "error | stats by (host) count(*) as errors | sort by (errors desc)";
    /// assert_eq!(per_host.to_string(), text);
    /// ```
    pub fn stats<T: Into<String>>(
        self,
        by: impl IntoIterator<Item = T>,
        items: impl IntoIterator<Item = StatsItem>,
    ) -> Query {
        let key = |name: T| GroupKey { field: name.into(), bucket: None };
        let by = by.into_iter().map(key).collect();
        self.pipe(Pipe::Stats { by, items: items.into_iter().collect() })
    }

    /// The distinct values of these fields.
    pub fn uniq_by<T: Into<String>>(self, names: impl IntoIterator<Item = T>) -> Query {
        let by = names.into_iter().map(Into::into).collect();
        self.pipe(Pipe::Uniq(Uniq { by, hits: None, limit: None }))
    }

    /// The `n` most frequent values of these fields, with their count in the field `hits`.
    pub fn top<T: Into<String>>(self, n: u64, names: impl IntoIterator<Item = T>) -> Query {
        let by = names.into_iter().map(Into::into).collect();
        self.pipe(Pipe::Top(Top { limit: n, by, hits: "hits".to_owned(), rank: None }))
    }
}
