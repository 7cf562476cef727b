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
//!
//! Each filter, pipe and function of the language has a maker here, named as the language names
//! it. `filters` makes filters, `stats` functions of `stats`, `math` expressions. A pipe without
//! options is a method of [`Query`](super::ast::Query) (`pipes`), one with options a value for
//! [`Query::pipe`](super::ast::Query::pipe) (`options`). What is rarer still is made of the parts
//! of the syntax tree, which are public.

mod filters;
mod math;
mod options;
mod pipes;
mod stats;

pub use filters::{FieldFilters, field, fields_with_prefix, message};

use super::ast::{Duration, FieldPattern};

fn texts<T: Into<String>>(texts: impl IntoIterator<Item = T>) -> Vec<String> {
    texts.into_iter().map(Into::into).collect()
}

fn names<T: Into<String>>(names: impl IntoIterator<Item = T>) -> Vec<FieldPattern> {
    names.into_iter().map(|name| FieldPattern::Name(name.into())).collect()
}

fn all_fields() -> Vec<FieldPattern> {
    vec![FieldPattern::all()]
}

/// A length of time; more than 292 years count as 292 years.
fn duration(length: std::time::Duration) -> Duration {
    let nanos = i64::try_from(length.as_nanos()).unwrap_or(i64::MAX);
    Duration { text: format!("{nanos}ns"), nanos }
}

#[cfg(test)]
mod complete;
#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::field;
    use crate::query::ast::{Filter, Query, StatsItem};

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
