//! Aggregations of the pipes `stats`, `running_stats` and `total_stats`.

use super::{FieldPattern, Filter, Number, SortKey};

/// One key of `by (...)`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupKey {
    /// The field.
    pub field: String,
    /// `:step offset o`: values are rounded down to the start of their bucket.
    pub bucket: Option<Bucket>,
}

/// How values fall into buckets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bucket {
    /// The width.
    pub step: BucketStep,
    /// Moves the boundaries; a number, duration or size.
    pub offset: Option<Number>,
}

/// The width of a bucket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BucketStep {
    /// A positive number, duration (nanoseconds for times) or size.
    Number(Number),
    /// `/24`: the network of an IPv4 address, 0 to 32 bits.
    Ipv4Network(u8),
    /// A unit by its name; months and years follow the calendar.
    Calendar(CalendarUnit),
}

/// A unit of time by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names say it")]
pub enum CalendarUnit {
    Nanosecond,
    Microsecond,
    Millisecond,
    Second,
    Minute,
    Hour,
    Day,
    /// From Monday.
    Week,
    Month,
    Year,
}

/// One function of `stats` with its condition and result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatsItem {
    /// What is computed.
    pub function: StatsFunction,
    /// `if (...)`: the rows that take part.
    pub condition: Option<Filter>,
    /// The field that takes the answer; without `as` the function's text.
    pub result: String,
}

/// An aggregation. Lists of fields are never empty: all fields are the pattern `*`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum StatsFunction {
    /// `any(f)`: some non-empty value.
    Any(String),
    /// `avg(f...)`
    Avg(Vec<FieldPattern>),
    /// `count()` (the pattern `*`) counts rows; `count(f...)` those with one of the fields.
    Count(Vec<FieldPattern>),
    /// `count_empty(f...)`: rows with none of the fields.
    CountEmpty(Vec<FieldPattern>),
    /// `count_uniq(f...) limit N`: distinct tuples.
    CountUniq {
        /// The fields of the tuple.
        fields: Vec<String>,
        /// Largest answer.
        limit: Option<u64>,
    },
    /// `count_uniq_hash(f...) limit N`: distinct hashes of tuples.
    CountUniqHash {
        /// The fields of the tuple.
        fields: Vec<String>,
        /// Largest answer.
        limit: Option<u64>,
    },
    /// `field_max(source, field)`: the value of `field` in the row with the largest `source`.
    FieldMax {
        /// Compared.
        source: String,
        /// Returned.
        field: String,
    },
    /// `field_min(source, field)`.
    FieldMin {
        /// Compared.
        source: String,
        /// Returned.
        field: String,
    },
    /// `histogram(f)`
    Histogram(String),
    /// `json_values(f...) sort by (...) limit N`: the rows as JSON texts.
    JsonValues {
        /// The packed fields.
        fields: Vec<FieldPattern>,
        /// Order; empty is the order of the rows.
        sort: Vec<SortKey>,
        /// Longest array.
        limit: Option<u64>,
    },
    /// `max(f...)`
    Max(Vec<FieldPattern>),
    /// `median(f...)`
    Median(Vec<FieldPattern>),
    /// `min(f...)`
    Min(Vec<FieldPattern>),
    /// `quantile(phi, f...)`
    Quantile {
        /// From 0 to 1.
        phi: Number,
        /// The fields.
        fields: Vec<FieldPattern>,
    },
    /// `rate()`
    Rate,
    /// `rate_sum(f...)`
    RateSum(Vec<FieldPattern>),
    /// `row_any(f...)`: one row as JSON.
    RowAny(Vec<FieldPattern>),
    /// `row_max(source, f...)`: the row with the largest `source` as JSON.
    RowMax {
        /// Compared.
        source: String,
        /// Returned.
        fields: Vec<FieldPattern>,
    },
    /// `row_min(source, f...)`.
    RowMin {
        /// Compared.
        source: String,
        /// Returned.
        fields: Vec<FieldPattern>,
    },
    /// `stddev(f...)`: of the population.
    Stddev(Vec<FieldPattern>),
    /// `sum(f...)`
    Sum(Vec<FieldPattern>),
    /// `sum_len(f...)`: bytes.
    SumLen(Vec<FieldPattern>),
    /// `uniq_values(f...) limit N`
    UniqValues {
        /// The fields.
        fields: Vec<FieldPattern>,
        /// Longest array.
        limit: Option<u64>,
    },
    /// `values(f...) limit N`
    Values {
        /// The fields.
        fields: Vec<FieldPattern>,
        /// Longest array.
        limit: Option<u64>,
    },
}

/// One function of `running_stats` or `total_stats`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunningItem {
    /// What is computed.
    pub function: RunningFunction,
    /// The field that takes the answer; without `as` the function's text.
    pub result: String,
}

/// An aggregation that follows the rows of a group in time order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunningFunction {
    /// `count(f...)`
    Count(Vec<FieldPattern>),
    /// `sum(f...)`
    Sum(Vec<FieldPattern>),
    /// `min(f...)`
    Min(Vec<FieldPattern>),
    /// `max(f...)`
    Max(Vec<FieldPattern>),
    /// `first(f) offset k`: the value of row `k`, counted from 0.
    First {
        /// The field.
        field: String,
        /// `k`
        offset: u64,
    },
    /// `last(f) offset k`: the value `k` rows back.
    Last {
        /// The field.
        field: String,
        /// `k`
        offset: u64,
    },
}
