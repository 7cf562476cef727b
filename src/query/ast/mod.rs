//! The syntax tree of LogsQL: plain data, no evaluation.
//!
//! * Short forms are gone after parsing: `first`/`last` are [`Sort`], `switch` is one
//!   [`StatsItem`] per case, `f:(a or b)` is distributed over its words, every stats function and
//!   every math entry carries its result name.
//! * `Display` prints every node as LogsQL that parses to the same tree.
//! * An empty list of fields is never used for "all fields": that is the one pattern `*`.

mod filter;
mod literal;
mod math;
mod pattern;
mod pipe;
mod stats;
mod time;

pub use filter::{
    CompareOp, FieldOp, Filter, LabelFilter, LabelOp, Predicate, RangeBound, StreamIds,
    StreamSelector, ValueSet,
};
pub use literal::{Duration, Number};
pub use math::{MathExpr, MathFunction, MathItem, MathOp};
pub use pattern::{
    ExtractPart, ExtractPattern, FormatEncoding, FormatPart, FormatPattern, MatchAnchor, MatchPart,
    MatchPattern,
};
pub use pipe::{
    Baseline, CollapseNums, Extract, ExtractRegexp, Facets, Format, Join, KeepMode, Math, Pack,
    PackFormat, Patterns, Pipe, RenamePair, Replace, ReplaceRegexp, RightSide, RunningStats,
    SetStreamFields, Sort, SortKey, StreamContext, Top, Uniq, Unpack, UnpackFormat, UnpackWords,
    Unroll,
};
pub use stats::{
    Bucket, BucketStep, CalendarUnit, GroupKey, RunningFunction, RunningItem, StatsFunction,
    StatsItem,
};
pub use time::{DayRange, TimeFilter, TimeForm, TimePoint, WeekRange, Weekday};

/// The field that filters without a field name look at.
pub const MESSAGE_FIELD: &str = "_msg";
/// The field that holds the time of a row.
pub const TIME_FIELD: &str = "_time";
/// The field that holds the canonical text of a row's stream.
pub const STREAM_FIELD: &str = "_stream";
/// The field that holds the id of a row's stream.
pub const STREAM_ID_FIELD: &str = "_stream_id";

/// A query: which rows, and what to do with them.
///
/// Parse one from text with [`str::parse`], or build one with its methods; [`ToString`] gives the
/// text back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    /// `options(...)` in front of the query; a subquery inherits those that it does not set.
    pub options: QueryOptions,
    /// The rows that the query reads.
    pub filter: Filter,
    /// The pipes, in order.
    pub pipes: Vec<Pipe>,
}

/// What `options(...)` may set; `None` is "not set here".
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct QueryOptions {
    /// Workers that the query may use.
    pub concurrency: Option<u64>,
    /// Readers that the query may use; accepted, without effect on answers.
    pub parallel_readers: Option<u64>,
    /// Whether the time range given beside the query text is ignored.
    pub ignore_global_time_filter: Option<bool>,
    /// Accepted, without effect: a store is one node.
    pub allow_partial_response: Option<bool>,
    /// Every time filter is shifted back by this, and the times of selected rows forward again.
    pub time_offset: Option<Duration>,
    /// ANDed in front of the query and of all its subqueries.
    pub global_filter: Option<Box<Filter>>,
}

impl QueryOptions {
    /// Whether nothing is set.
    pub fn is_empty(&self) -> bool {
        *self == QueryOptions::default()
    }
}

/// One field by name, or all fields whose names start with a prefix.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FieldPattern {
    /// The field of this name.
    Name(String),
    /// `prefix*`; the empty prefix is `*`, every field.
    Prefix(String),
}

impl FieldPattern {
    /// Every field: `*`.
    pub fn all() -> FieldPattern {
        FieldPattern::Prefix(String::new())
    }

    /// Whether this is `*`.
    pub fn is_all(&self) -> bool {
        matches!(self, FieldPattern::Prefix(p) if p.is_empty())
    }

    /// Whether the field `name` is meant.
    pub fn matches(&self, name: &str) -> bool {
        match self {
            FieldPattern::Name(n) => n == name,
            FieldPattern::Prefix(p) => name.starts_with(p.as_str()),
        }
    }
}
