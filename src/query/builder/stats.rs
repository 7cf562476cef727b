//! Functions of `stats`.

use super::{all_fields, duration, names, texts};
use crate::query::ast::{
    Bucket, BucketStep, CalendarUnit, FieldPattern, Filter, GroupKey, Number, RunningFunction,
    RunningItem, SortKey, StatsFunction, StatsItem, TIME_FIELD,
};

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

    /// `any(field)`
    pub fn any(field: impl Into<String>) -> StatsItem {
        StatsItem::new(StatsFunction::Any(field.into()))
    }

    /// `count(fields)`: the rows with one of these.
    pub fn count_of<T: Into<String>>(fields: impl IntoIterator<Item = T>) -> StatsItem {
        StatsItem::new(StatsFunction::Count(names(fields)))
    }

    /// `count_empty(fields)`: the rows with none of these.
    pub fn count_empty<T: Into<String>>(fields: impl IntoIterator<Item = T>) -> StatsItem {
        StatsItem::new(StatsFunction::CountEmpty(names(fields)))
    }

    /// `count_uniq_hash(fields)`
    pub fn count_uniq_hash<T: Into<String>>(fields: impl IntoIterator<Item = T>) -> StatsItem {
        StatsItem::new(StatsFunction::CountUniqHash { fields: texts(fields), limit: None })
    }

    /// `field_max(source, field)`: the value of `field` where `source` is largest.
    pub fn field_max(source: impl Into<String>, field: impl Into<String>) -> StatsItem {
        let (source, field) = (source.into(), field.into());
        StatsItem::new(StatsFunction::FieldMax { source, field })
    }

    /// `field_min(source, field)`: the value of `field` where `source` is least.
    pub fn field_min(source: impl Into<String>, field: impl Into<String>) -> StatsItem {
        let (source, field) = (source.into(), field.into());
        StatsItem::new(StatsFunction::FieldMin { source, field })
    }

    /// `histogram(field)`
    pub fn histogram(field: impl Into<String>) -> StatsItem {
        StatsItem::new(StatsFunction::Histogram(field.into()))
    }

    /// `json_values(fields) sort by (keys)`: the rows with these fields, all if there are none.
    pub fn json_values<T: Into<String>>(
        fields: impl IntoIterator<Item = T>,
        keys: impl IntoIterator<Item = SortKey>,
    ) -> StatsItem {
        let (fields, sort) = (some_or_all(fields), keys.into_iter().collect());
        StatsItem::new(StatsFunction::JsonValues { fields, sort, limit: None })
    }

    /// `rate()`
    pub fn rate() -> StatsItem {
        StatsItem::new(StatsFunction::Rate)
    }

    /// `rate_sum(field)`
    pub fn rate_sum(field: impl Into<String>) -> StatsItem {
        StatsItem::new(StatsFunction::RateSum(names([field])))
    }

    /// `row_any(fields)`: one row with these fields, all if there are none.
    pub fn row_any<T: Into<String>>(fields: impl IntoIterator<Item = T>) -> StatsItem {
        StatsItem::new(StatsFunction::RowAny(some_or_all(fields)))
    }

    /// `row_max(source, fields)`: the row where `source` is largest, with these fields, all if
    /// there are none.
    pub fn row_max<T: Into<String>>(
        source: impl Into<String>,
        fields: impl IntoIterator<Item = T>,
    ) -> StatsItem {
        let (source, fields) = (source.into(), some_or_all(fields));
        StatsItem::new(StatsFunction::RowMax { source, fields })
    }

    /// `row_min(source, fields)`: as [`row_max`](StatsItem::row_max), where it is least.
    pub fn row_min<T: Into<String>>(
        source: impl Into<String>,
        fields: impl IntoIterator<Item = T>,
    ) -> StatsItem {
        let (source, fields) = (source.into(), some_or_all(fields));
        StatsItem::new(StatsFunction::RowMin { source, fields })
    }

    /// `stddev(field)`
    pub fn stddev(field: impl Into<String>) -> StatsItem {
        StatsItem::new(StatsFunction::Stddev(names([field])))
    }

    /// `sum_len(field)`
    pub fn sum_len(field: impl Into<String>) -> StatsItem {
        StatsItem::new(StatsFunction::SumLen(names([field])))
    }
}

fn some_or_all<T: Into<String>>(fields: impl IntoIterator<Item = T>) -> Vec<FieldPattern> {
    let fields = names(fields);
    if fields.is_empty() { all_fields() } else { fields }
}

/// ```
/// use std::time::Duration;
///
/// use loglith::ast::GroupKey;
/// use loglith::{Filter, Query, StatsItem};
///
/// let keys = [GroupKey::time(Duration::from_secs(300)), GroupKey::from("host")];
/// let query = Query::new(Filter::word("error")).stats(keys, [StatsItem::count().named("n")]);
/// assert_eq!(query.to_string(), "error | stats by (_time:300000000000ns, host) count(*) as n");
/// ```
impl GroupKey {
    /// Times in buckets of this width.
    pub fn time(width: std::time::Duration) -> GroupKey {
        let text = duration(width.max(std::time::Duration::from_nanos(1))).text;
        GroupKey::buckets(TIME_FIELD, BucketStep::Number(Number { text }))
    }

    /// Times by the unit of the calendar in which they are.
    pub fn calendar(unit: CalendarUnit) -> GroupKey {
        GroupKey::buckets(TIME_FIELD, BucketStep::Calendar(unit))
    }

    /// The values of a field in buckets.
    pub fn buckets(field: impl Into<String>, step: BucketStep) -> GroupKey {
        GroupKey { field: field.into(), bucket: Some(Bucket { step, offset: None }) }
    }
}

impl<T: Into<String>> From<T> for GroupKey {
    fn from(field: T) -> GroupKey {
        GroupKey { field: field.into(), bucket: None }
    }
}

impl RunningItem {
    /// A function named by its text.
    pub fn new(function: RunningFunction) -> RunningItem {
        let result = function.to_string();
        RunningItem { function, result }
    }

    /// `count()`
    pub fn count() -> RunningItem {
        RunningItem::new(RunningFunction::Count(all_fields()))
    }

    /// `sum(field)`
    pub fn sum(field: impl Into<String>) -> RunningItem {
        RunningItem::new(RunningFunction::Sum(names([field])))
    }

    /// `min(field)`
    pub fn min(field: impl Into<String>) -> RunningItem {
        RunningItem::new(RunningFunction::Min(names([field])))
    }

    /// `max(field)`
    pub fn max(field: impl Into<String>) -> RunningItem {
        RunningItem::new(RunningFunction::Max(names([field])))
    }

    /// `first(field) offset row`: the value in the row of this number, counted from 0.
    pub fn first(field: impl Into<String>, row: u64) -> RunningItem {
        RunningItem::new(RunningFunction::First { field: field.into(), offset: row })
    }

    /// `last(field) offset back`: the value so many rows back.
    pub fn last(field: impl Into<String>, back: u64) -> RunningItem {
        RunningItem::new(RunningFunction::Last { field: field.into(), offset: back })
    }

    /// The same with its answer in the field `name`.
    pub fn named(mut self, name: impl Into<String>) -> RunningItem {
        self.result = name.into();
        self
    }
}
