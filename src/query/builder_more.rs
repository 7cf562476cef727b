//! More of the language for programs: the rarer filters, functions and pipes.
//!
//! What is missing is made of its parts: every filter is a [`Predicate`] for
//! [`FieldFilters::is`], every pipe a [`Pipe`] for [`Query::pipe`].

use std::net::{Ipv4Addr, Ipv6Addr};
use std::ops::RangeInclusive;

use super::ast::{
    FieldOp, FieldPattern, Filter, Number, Pipe, Predicate, Query, RenamePair, StatsFunction,
    StatsItem, ValueSet,
};
use super::builder::FieldFilters;

fn texts<T: Into<String>>(texts: impl IntoIterator<Item = T>) -> Vec<String> {
    texts.into_iter().map(Into::into).collect()
}

fn names<T: Into<String>>(names: impl IntoIterator<Item = T>) -> Vec<FieldPattern> {
    names.into_iter().map(|name| FieldPattern::Name(name.into())).collect()
}

/// The rarer filters.
///
/// ```
/// use loglith::{Query, field};
///
/// let filter = field("host").starts_with("web-") & field("took").string_range("a", "m");
/// assert_eq!(Query::new(filter).to_string(), "host:=\"web-\"* took:string_range(a, m)");
/// ```
impl FieldFilters {
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

/// The rarer functions.
///
/// ```
/// use loglith::{Filter, Query, StatsItem};
///
/// let users = StatsItem::count_uniq(["user"]).named("users");
/// let items = [users, StatsItem::median("took").named("m")];
/// let query = Query::new(Filter::word("GET")).stats(["host"], items);
/// assert_eq!(
///     query.to_string(),
///     "GET | stats by (host) count_uniq(user) as users, median(took) as m"
/// );
/// ```
impl StatsItem {
    /// `count_uniq(fields)`
    pub fn count_uniq<T: Into<String>>(fields: impl IntoIterator<Item = T>) -> StatsItem {
        StatsItem::new(StatsFunction::CountUniq { fields: texts(fields), limit: None })
    }

    /// `median(field)`
    pub fn median(field: impl Into<String>) -> StatsItem {
        StatsItem::new(StatsFunction::Median(names([field])))
    }

    /// `quantile(phi, field)`; `phi` is held to 0 to 1.
    pub fn quantile(phi: f64, field: impl Into<String>) -> StatsItem {
        let phi = if phi.is_nan() { 0.0 } else { phi.clamp(0.0, 1.0) };
        let phi = Number { text: phi.to_string() };
        StatsItem::new(StatsFunction::Quantile { phi, fields: names([field]) })
    }

    /// `uniq_values(field)`
    pub fn uniq_values(field: impl Into<String>) -> StatsItem {
        StatsItem::new(StatsFunction::UniqValues { fields: names([field]), limit: None })
    }

    /// `values(field)`
    pub fn values(field: impl Into<String>) -> StatsItem {
        StatsItem::new(StatsFunction::Values { fields: names([field]), limit: None })
    }
}

/// The rarer pipes.
///
/// ```
/// use loglith::{Filter, Query};
///
/// let query = Query::new(Filter::All).rename([("a", "b")]).delete(["c"]).sample(100);
/// assert_eq!(query.to_string(), "* | rename a as b | delete c | sample 100");
/// ```
impl Query {
    /// Gives fields other names, one after the other.
    pub fn rename<A: Into<String>, B: Into<String>>(
        self,
        pairs: impl IntoIterator<Item = (A, B)>,
    ) -> Query {
        let pairs = renames(pairs);
        if pairs.is_empty() { self } else { self.pipe(Pipe::Rename(pairs)) }
    }

    /// Copies fields, one after the other.
    pub fn copy<A: Into<String>, B: Into<String>>(
        self,
        pairs: impl IntoIterator<Item = (A, B)>,
    ) -> Query {
        let pairs = renames(pairs);
        if pairs.is_empty() { self } else { self.pipe(Pipe::Copy(pairs)) }
    }

    /// Takes fields away; none is no step.
    pub fn delete<T: Into<String>>(self, fields: impl IntoIterator<Item = T>) -> Query {
        let fields = names(fields);
        if fields.is_empty() { self } else { self.pipe(Pipe::Delete(fields)) }
    }

    /// Keeps about one row of `n`, which counts as 1 if it is zero.
    pub fn sample(self, n: u64) -> Query {
        self.pipe(Pipe::Sample(n.max(1)))
    }
}

fn renames<A: Into<String>, B: Into<String>>(
    pairs: impl IntoIterator<Item = (A, B)>,
) -> Vec<RenamePair> {
    let name = FieldPattern::Name;
    let pair = |(source, target): (A, B)| RenamePair {
        source: name(source.into()),
        target: name(target.into()),
    };
    pairs.into_iter().map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::super::builder::field;
    use super::*;

    #[test]
    fn what_is_made_is_what_the_parser_makes() {
        let f = || field("f");
        let (a, b) = (Ipv4Addr::new(10, 0, 0, 0), Ipv4Addr::new(10, 0, 0, 9));
        for filter in [
            f().word_in_any_case("a b"),
            f().prefix_in_any_case("a"),
            f().starts_with("x y"),
            f().sequence(["a", "b c"]),
            f().string_range("a", "b"),
            f().len_range(1..=5),
            f().len_range(1..=u64::MAX),
            f().ipv4_range(a, b),
            f().ipv6_range(a.to_ipv6_mapped(), b.to_ipv6_mapped()),
            f().eq_field("g"),
            f().lt_field("g"),
            f().le_field("g h"),
            f().in_query(Query::new(Filter::word("x")), "g"),
            f().json_array_contains_any(["a", "1"]),
        ] {
            let text = filter.to_string();
            assert_eq!(text.parse::<Filter>().as_ref(), Ok(&filter), "{text}");
        }
        let items = [
            StatsItem::count_uniq(["a", "b"]),
            StatsItem::median("a"),
            StatsItem::quantile(0.99, "a"),
            StatsItem::uniq_values("a"),
            StatsItem::values("a"),
        ];
        let query = Query::new(Filter::All)
            .rename([("a", "b"), ("c d", "e")])
            .copy([("a", "b")])
            .delete(["x"])
            .delete(Vec::<String>::new())
            .sample(0)
            .stats(["k"], items);
        let text = query.to_string();
        assert_eq!(text.parse::<Query>().as_ref(), Ok(&query), "{text}");
    }
}
