//! Functions of `stats`.

use super::{names, texts};
use crate::query::ast::{FieldPattern, Filter, Number, StatsFunction, StatsItem};

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
}
