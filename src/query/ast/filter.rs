//! Filters: which rows.

use super::time::{DayRange, WeekRange};
use super::{FieldPattern, MatchPattern, Number, Query, TimeFilter};
use crate::query::regex::Regex;
use crate::record::StreamId;

/// A condition on a row.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Filter {
    /// `*` without a field name: every row.
    All,
    /// All of them; an empty list holds for every row.
    And(Vec<Filter>),
    /// Any of them; an empty list holds for no row.
    Or(Vec<Filter>),
    /// Not the filter.
    Not(Box<Filter>),
    /// The predicate holds for the field, or for any existing field of the prefix.
    Field {
        /// Which field; a prefix means "any non-empty field whose name starts so".
        field: FieldPattern,
        /// What must hold for its value.
        predicate: Predicate,
    },
    /// `{label="value"}`: the row's stream.
    Stream(StreamSelector),
    /// `_stream_id:...`.
    StreamId(StreamIds),
    /// `_time:...`: a range of time.
    Time(TimeFilter),
    /// `_time:day_range[...]`: a range of the time of day.
    DayRange(DayRange),
    /// `_time:week_range[...]`: a range of days of the week.
    WeekRange(WeekRange),
}

/// A condition on one value; an absent field has the empty value.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Predicate {
    /// `f:*`: the value is not empty.
    Any,
    /// A word or phrase with word boundaries at both ends; the empty phrase: the value is empty.
    Phrase(String),
    /// `p*`: a word boundary in front only. Never empty (that is `Any`).
    Prefix(String),
    /// `*p*`: a substring; the empty one holds for every row.
    Substring(String),
    /// `i(p)`: as `Phrase`, both sides lower-cased character by character.
    PhraseFold(String),
    /// `i(p*)`: as `Prefix`, both sides lower-cased; empty: the value is not empty.
    PrefixFold(String),
    /// `=x`: the whole value.
    Exact(String),
    /// `="x"*`: the start of the value.
    ExactPrefix(String),
    /// `in(...)`: one of the values.
    In(ValueSet),
    /// `contains_all(...)`: every phrase.
    ContainsAll(ValueSet),
    /// `contains_any(...)`: some phrase.
    ContainsAny(ValueSet),
    /// `seq(...)`: the phrases in this order.
    Sequence(Vec<String>),
    /// `~"re"`: the expression matches somewhere.
    Regex(Regex),
    /// `>x` and its kin: by number if `value` is a number, else by bytes.
    Compare {
        /// The comparison.
        op: CompareOp,
        /// The right side as written, without quotes.
        value: String,
    },
    /// `range(a, b)`: a numeric range.
    Range {
        /// Lower end.
        min: RangeBound,
        /// Upper end.
        max: RangeBound,
    },
    /// `string_range(a, b)`: bytewise `min <= value < max`.
    StringRange {
        /// Lower end, included.
        min: String,
        /// Upper end, excluded.
        max: String,
    },
    /// `len_range(a, b)`: the length in characters, both ends included.
    LenRange {
        /// Shortest.
        min: u64,
        /// Longest; `u64::MAX` is `inf`.
        max: u64,
    },
    /// `ipv4_range(...)`: a dotted quad between both ends, included.
    Ipv4Range {
        /// First address.
        min: u32,
        /// Last address.
        max: u32,
    },
    /// `ipv6_range(...)`: an address between both ends, included; IPv4 counts as `::ffff:a.b.c.d`.
    Ipv6Range {
        /// First address.
        min: u128,
        /// Last address.
        max: u128,
    },
    /// `eq_field(b)` and its kin: against another field of the same row.
    CompareField {
        /// The comparison.
        op: FieldOp,
        /// The other field.
        other: String,
    },
    /// `value_type(t)`: the storage type of the value's page; depends on the layout.
    ValueType(String),
    /// `pattern_match(...)` and its anchored forms.
    PatternMatch(MatchPattern),
    /// `equals_common_case(...)`: one of the values in a common spelling of its case.
    EqualsCommonCase(Vec<String>),
    /// `contains_common_case(...)`: some phrase in a common spelling of its case.
    ContainsCommonCase(Vec<String>),
    /// `json_array_contains_any(...)`: a JSON array with one of the values as scalar item.
    JsonArrayContainsAny(Vec<String>),
}

/// The values of `in`, `contains_all` and `contains_any`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ValueSet {
    /// `(*)`: the filter holds for every row.
    Any,
    /// Written out.
    List(Vec<String>),
    /// The values of one field in the rows of a subquery.
    Query {
        /// The subquery; ends in `fields` or `uniq` of one field.
        query: Box<Query>,
        /// That field.
        field: String,
    },
}

/// An ordering comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CompareOp {
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
}

/// A comparison of two fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FieldOp {
    /// `eq_field`: equal texts.
    Equal,
    /// `le_field`: numbers if both are, else bytes.
    LessOrEqual,
    /// `lt_field`: numbers if both are, else bytes.
    Less,
}

/// One end of a numeric range.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RangeBound {
    /// The number.
    pub value: Number,
    /// Whether the number itself is inside.
    pub inclusive: bool,
}

/// `{a="b", c=~"d" or e!="f"}`: alternatives of conjunctions. `{}` (no alternatives) matches
/// nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamSelector {
    /// Any of these lists; all filters of a list.
    pub alternatives: Vec<Vec<LabelFilter>>,
}

/// A condition on one label of a stream; an absent label has the empty value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelFilter {
    /// The label's name.
    pub label: String,
    /// What must hold.
    pub op: LabelOp,
}

/// What must hold for a label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LabelOp {
    /// `="v"`
    Equal(String),
    /// `!="v"`
    NotEqual(String),
    /// `=~"re"`: the expression matches the whole value (it is anchored already).
    Matches(Regex),
    /// `!~"re"`: it does not.
    NotMatches(Regex),
    /// `in(...)`; a `*` among the values stands for every value.
    In(Vec<String>),
    /// `not_in(...)`
    NotIn(Vec<String>),
}

/// Which streams `_stream_id:` selects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StreamIds {
    /// One of these.
    List(Vec<StreamId>),
    /// The ids in one field of a subquery's rows.
    Query {
        /// The subquery; ends in `fields` or `uniq` of one field.
        query: Box<Query>,
        /// That field.
        field: String,
    },
}
