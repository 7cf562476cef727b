//! Filters.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::ops::{BitAnd, BitOr, Not, Range, RangeInclusive};

use super::{duration, texts};
use crate::error::QueryError;
use crate::query::ast::{
    CompareOp, DayRange, FieldOp, FieldPattern, Filter, LabelFilter, LabelOp, MESSAGE_FIELD,
    MatchAnchor, Number, Predicate, Query, RangeBound, STREAM_ID_FIELD, StreamIds, StreamSelector,
    TimeFilter, TimeForm, TimePoint, ValueSet, WeekRange, Weekday,
};
use crate::query::fault::Fault;
use crate::query::parser::match_pattern;
use crate::query::regex::Regex;
use crate::record::{StreamId, Timestamp};

/// Filters on the field `name`.
pub fn field(name: impl Into<String>) -> FieldFilters {
    FieldFilters { field: FieldPattern::Name(name.into()) }
}

/// Filters on the message, the field `_msg`.
pub fn message() -> FieldFilters {
    field(MESSAGE_FIELD)
}

/// Filters on all fields whose names start with `prefix`: one of those that have a value has to
/// pass.
pub fn fields_with_prefix(prefix: impl Into<String>) -> FieldFilters {
    FieldFilters { field: FieldPattern::Prefix(prefix.into()) }
}

/// Makes filters on one field; see [`field`].
///
/// ```
/// use loglith::{Query, field};
///
/// let filter = field("host").starts_with("web-") & field("took").string_range("a", "m");
/// assert_eq!(Query::new(filter).to_string(), "host:=\"web-\"* took:string_range(a, m)");
/// ```
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

    /// As [`word`](FieldFilters::word), in any case.
    pub fn word_in_any_case(self, text: impl Into<String>) -> Filter {
        self.is(Predicate::PhraseFold(text.into()))
    }

    /// As [`prefix`](FieldFilters::prefix), in any case.
    pub fn prefix_in_any_case(self, text: impl Into<String>) -> Filter {
        self.is(Predicate::PrefixFold(text.into()))
    }

    /// The value starts with `text`.
    pub fn starts_with(self, text: impl Into<String>) -> Filter {
        self.is(Predicate::ExactPrefix(text.into()))
    }

    /// The phrases stand in the value in this order.
    pub fn sequence<T: Into<String>>(self, phrases: impl IntoIterator<Item = T>) -> Filter {
        self.is(Predicate::Sequence(texts(phrases)))
    }

    /// `min <= value < max`, by bytes.
    pub fn string_range(self, min: impl Into<String>, max: impl Into<String>) -> Filter {
        self.is(Predicate::StringRange { min: min.into(), max: max.into() })
    }

    /// The length in characters.
    pub fn len_range(self, characters: RangeInclusive<u64>) -> Filter {
        let (min, max) = characters.into_inner();
        self.is(Predicate::LenRange { min, max })
    }

    /// The value is an IPv4 address from `first` to `last`.
    pub fn ipv4_range(self, first: Ipv4Addr, last: Ipv4Addr) -> Filter {
        self.is(Predicate::Ipv4Range { min: first.to_bits(), max: last.to_bits() })
    }

    /// The value is an address from `first` to `last`; IPv4 counts as `::ffff:a.b.c.d`.
    pub fn ipv6_range(self, first: Ipv6Addr, last: Ipv6Addr) -> Filter {
        self.is(Predicate::Ipv6Range { min: first.to_bits(), max: last.to_bits() })
    }

    /// The value is that of the field `other`.
    pub fn eq_field(self, other: impl Into<String>) -> Filter {
        self.is(Predicate::CompareField { op: FieldOp::Equal, other: other.into() })
    }

    /// The value is less than that of the field `other`: by number if both are numbers, else by
    /// bytes.
    pub fn lt_field(self, other: impl Into<String>) -> Filter {
        self.is(Predicate::CompareField { op: FieldOp::Less, other: other.into() })
    }

    /// The value is at most that of the field `other`, as [`lt_field`](FieldFilters::lt_field).
    pub fn le_field(self, other: impl Into<String>) -> Filter {
        self.is(Predicate::CompareField { op: FieldOp::LessOrEqual, other: other.into() })
    }

    /// The value is that of `name` in a row of `query`.
    pub fn in_query(self, query: Query, name: impl Into<String>) -> Filter {
        self.is(Predicate::In(values_of(query, name)))
    }

    /// The value holds all texts of `name` in the rows of `query` as phrases.
    pub fn contains_all_of_query(self, query: Query, name: impl Into<String>) -> Filter {
        self.is(Predicate::ContainsAll(values_of(query, name)))
    }

    /// The value holds a text of `name` in the rows of `query` as a phrase.
    pub fn contains_any_of_query(self, query: Query, name: impl Into<String>) -> Filter {
        self.is(Predicate::ContainsAny(values_of(query, name)))
    }

    /// The value is a number from `min` to `max`.
    pub fn number_range(self, range: RangeInclusive<f64>) -> Filter {
        let bound = |x: f64| {
            let x = if x.is_nan() { f64::INFINITY } else { x };
            RangeBound { value: Number { text: x.to_string() }, inclusive: true }
        };
        self.is(Predicate::Range { min: bound(*range.start()), max: bound(*range.end()) })
    }

    /// The pattern, with `<N>`, `<W>`, `<UUID>`, `<IP4>`, `<TIME>`, `<DATE>` and `<DATETIME>` for
    /// what varies, stands at `anchor` of the value.
    pub fn pattern_match(self, pattern: impl Into<String>, anchor: MatchAnchor) -> Filter {
        self.is(Predicate::PatternMatch(match_pattern(pattern.into(), anchor)))
    }

    /// The value is one of `texts` in a common spelling of its case. Texts with more than ten
    /// capitals have none.
    pub fn equals_common_case<T: Into<String>>(self, texts: impl IntoIterator<Item = T>) -> Filter {
        self.is(Predicate::EqualsCommonCase(super::texts(texts)))
    }

    /// The value holds one of `phrases` in a common spelling of its case.
    pub fn contains_common_case<T: Into<String>>(
        self,
        phrases: impl IntoIterator<Item = T>,
    ) -> Filter {
        self.is(Predicate::ContainsCommonCase(texts(phrases)))
    }

    /// The value is stored as `kind`, such as `dict`; depends on the layout.
    pub fn value_type(self, kind: impl Into<String>) -> Filter {
        self.is(Predicate::ValueType(kind.into()))
    }

    /// The value is a JSON array with one of these scalars.
    pub fn json_array_contains_any<T: Into<String>>(
        self,
        items: impl IntoIterator<Item = T>,
    ) -> Filter {
        self.is(Predicate::JsonArrayContainsAny(texts(items)))
    }
}

fn values_of(query: Query, name: impl Into<String>) -> ValueSet {
    let field: String = name.into();
    ValueSet::Query { query: Box::new(query.fields([field.as_str()])), field }
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
        label_filter(label, LabelOp::Equal(value.into()))
    }

    /// The stream's label `label` is one of `values`.
    pub fn stream_in<T: Into<String>>(
        label: impl Into<String>,
        values: impl IntoIterator<Item = T>,
    ) -> Filter {
        label_filter(label, LabelOp::In(texts(values)))
    }

    /// The regular expression matches the whole of the stream's label `label`.
    ///
    /// # Errors
    ///
    /// [`QueryError`] if `expression` is not RE2 syntax or too large.
    pub fn stream_matches(
        label: impl Into<String>,
        expression: &str,
    ) -> Result<Filter, QueryError> {
        let regex = Regex::anchored(expression)
            .map_err(|fault| Fault::of_regex(&fault, 0).in_query(expression))?;
        Ok(label_filter(label, LabelOp::Matches(regex)))
    }

    /// The stream is one of these.
    pub fn stream_ids(ids: impl IntoIterator<Item = StreamId>) -> Filter {
        Filter::StreamId(StreamIds::List(ids.into_iter().collect()))
    }

    /// The stream is one of the rows of `query`.
    pub fn streams_of(query: Query) -> Filter {
        let query = Box::new(query.fields([STREAM_ID_FIELD]));
        Filter::StreamId(StreamIds::Query { query, field: STREAM_ID_FIELD.to_owned() })
    }

    /// The time of day, since midnight in the query's zone, is at least the start and less than
    /// the end of `range`.
    pub fn day_range(range: Range<std::time::Duration>) -> Filter {
        let (start, end) = (duration(range.start).nanos, duration(range.end).nanos);
        Filter::DayRange(DayRange { start, end, offset: None })
    }

    /// The day in the query's zone is one of these; Sunday is the first of a week.
    pub fn week_range(days: RangeInclusive<Weekday>) -> Filter {
        let (start, end) = days.into_inner();
        let (start_inclusive, end_inclusive, offset) = (true, true, None);
        Filter::WeekRange(WeekRange { start, start_inclusive, end, end_inclusive, offset })
    }

    /// The time is one of the last `age`, the moment of the query excluded. Ages of more than 292
    /// years count as 292 years.
    pub fn last(age: std::time::Duration) -> Filter {
        Filter::Time(TimeFilter { form: TimeForm::Last(duration(age)), offset: None })
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

fn label_filter(label: impl Into<String>, op: LabelOp) -> Filter {
    let filter = LabelFilter { label: label.into(), op };
    Filter::Stream(StreamSelector { alternatives: vec![vec![filter]] })
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
