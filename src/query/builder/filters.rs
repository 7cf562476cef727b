//! Filters.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::ops::{BitAnd, BitOr, Not, RangeInclusive};

use super::texts;
use crate::error::QueryError;
use crate::query::ast::{
    CompareOp, Duration, FieldOp, FieldPattern, Filter, LabelFilter, LabelOp, MESSAGE_FIELD,
    Predicate, Query, StreamSelector, TimeFilter, TimeForm, TimePoint, ValueSet,
};
use crate::query::fault::Fault;
use crate::query::regex::Regex;
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
        let field: String = name.into();
        let query = Box::new(query.fields([field.as_str()]));
        self.is(Predicate::In(ValueSet::Query { query, field }))
    }

    /// The value is a JSON array with one of these scalars.
    pub fn json_array_contains_any<T: Into<String>>(
        self,
        items: impl IntoIterator<Item = T>,
    ) -> Filter {
        self.is(Predicate::JsonArrayContainsAny(texts(items)))
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
