//! Pipes: what happens to the rows.

use super::{
    CompareOp, Duration, ExtractPattern, FieldPattern, Filter, FormatPattern, GroupKey, MathItem,
    Query, RunningItem, StatsItem, TimeFilter, TimeForm, TimePoint,
};
use crate::query::regex::Regex;

/// One step of a query.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Pipe {
    /// `block_stats`: one row per column page; depends on the layout.
    BlockStats,
    /// `blocks_count as r`
    BlocksCount {
        /// The field that takes the count.
        result: String,
    },
    /// `coalesce(a, b*) default "x" as r`
    Coalesce {
        /// The fields in order.
        fields: Vec<FieldPattern>,
        /// The value where all are empty.
        default: String,
        /// The field that takes the value.
        result: String,
    },
    /// `collapse_nums`
    CollapseNums(CollapseNums),
    /// `copy a as b, p* as q*`
    Copy(Vec<RenamePair>),
    /// `decolorize f`
    Decolorize {
        /// The field.
        field: String,
    },
    /// `delete a, b*`
    Delete(Vec<FieldPattern>),
    /// `drop_empty_fields`
    DropEmptyFields,
    /// `extract`
    Extract(Extract),
    /// `extract_regexp`
    ExtractRegexp(ExtractRegexp),
    /// `facets`
    Facets(Facets),
    /// `field_names filter sub as n`
    FieldNames {
        /// Keep names with this substring.
        filter: Option<String>,
        /// The field that takes the names.
        result: String,
    },
    /// `field_values f filter sub limit N`
    FieldValues {
        /// The field.
        field: String,
        /// Keep values with this substring.
        filter: Option<String>,
        /// Most values.
        limit: Option<u64>,
    },
    /// `fields a, b*`
    Fields(Vec<FieldPattern>),
    /// `filter f`
    Filter(Filter),
    /// `format`
    Format(Format),
    /// `generate_sequence N`
    GenerateSequence {
        /// Rows to make, at least 1.
        count: u64,
    },
    /// `hash(f) as r`
    Hash {
        /// The field.
        field: String,
        /// The field that takes the hash.
        result: String,
    },
    /// `join`
    Join(Join),
    /// `json_array_concat "sep" from f as r`
    JsonArrayConcat {
        /// Between the items.
        separator: String,
        /// The field.
        field: String,
        /// The field that takes the text.
        result: String,
    },
    /// `json_array_len(f) as r`
    JsonArrayLen {
        /// The field.
        field: String,
        /// The field that takes the length.
        result: String,
    },
    /// `len(f) as r`: bytes.
    Len {
        /// The field.
        field: String,
        /// The field that takes the length.
        result: String,
    },
    /// `limit N`
    Limit(u64),
    /// `math`
    Math(Math),
    /// `offset N`
    Offset(u64),
    /// `pack_json`, `pack_logfmt`
    Pack(Pack),
    /// `patterns by (f) new since T`: what messages have in common, and how often.
    Patterns(Patterns),
    /// `query_stats`
    QueryStats,
    /// `rename a as b, p* as q*`
    Rename(Vec<RenamePair>),
    /// `replace`
    Replace(Replace),
    /// `replace_regexp`
    ReplaceRegexp(ReplaceRegexp),
    /// `running_stats`
    RunningStats(RunningStats),
    /// `sample N`: one row in N at random.
    Sample(u64),
    /// `set_stream_fields`
    SetStreamFields(SetStreamFields),
    /// `sort`, `first`, `last`
    Sort(Sort),
    /// `split "sep" from f as r`
    Split {
        /// The separator; empty splits into characters.
        separator: String,
        /// The field.
        field: String,
        /// The field that takes the JSON array.
        result: String,
    },
    /// `stats by (...) f() as r, ...`
    Stats {
        /// The group keys.
        by: Vec<GroupKey>,
        /// The functions; never empty.
        items: Vec<StatsItem>,
    },
    /// `stream_context`; always the first pipe.
    StreamContext(StreamContext),
    /// `time_add d at f`
    TimeAdd {
        /// Added.
        offset: Duration,
        /// The field.
        field: String,
    },
    /// `top`
    Top(Top),
    /// `total_stats`: as `running_stats`, the final value on every row.
    TotalStats(RunningStats),
    /// `union (q)`
    Union(RightSide),
    /// `uniq`
    Uniq(Uniq),
    /// `unpack_json`, `unpack_logfmt`, `unpack_syslog`
    Unpack(Unpack),
    /// `unpack_words`
    UnpackWords(UnpackWords),
    /// `unroll`
    Unroll(Unroll),
}

/// What happens to a field that had a value before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum KeepMode {
    /// The new value replaces it, also if the new one is empty.
    #[default]
    Overwrite,
    /// `keep_original_fields`: a non-empty old value stays.
    KeepOriginal,
    /// `skip_empty_results`: an empty new value leaves the old one.
    SkipEmpty,
}

/// `source as target`; with `*` at the end of either side prefixes are exchanged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RenamePair {
    /// The old name or prefix.
    pub source: FieldPattern,
    /// The new name or prefix.
    pub target: FieldPattern,
}

/// `collapse_nums if (...) at f prettify`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CollapseNums {
    /// The rows that are changed.
    pub condition: Option<Filter>,
    /// The field.
    pub field: String,
    /// Whether groups of numbers become `<UUID>`, `<IP4>` and so on.
    pub prettify: bool,
}

/// `extract if (...) "pattern" from f keep_original_fields`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Extract {
    /// The rows that are changed.
    pub condition: Option<Filter>,
    /// The pattern.
    pub pattern: ExtractPattern,
    /// The field it is applied to.
    pub field: String,
    /// What happens to old values.
    pub keep: KeepMode,
}

/// `extract_regexp if (...) "re" from f keep_original_fields`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExtractRegexp {
    /// The rows that are changed.
    pub condition: Option<Filter>,
    /// The expression; has at least one named group.
    pub regex: Regex,
    /// The field it is applied to.
    pub field: String,
    /// What happens to old values.
    pub keep: KeepMode,
}

/// `facets N max_values_per_field M max_value_len L keep_const_fields`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facets {
    /// Values per field.
    pub limit: u64,
    /// Fields with more distinct values are left out.
    pub max_values_per_field: u64,
    /// Fields with a longer value (bytes) are left out.
    pub max_value_len: u64,
    /// Whether fields with one value in all rows stay.
    pub keep_const_fields: bool,
}

impl Facets {
    /// The distinct values that a field may have unless the query says otherwise.
    pub(crate) const MAX_VALUES_PER_FIELD: u64 = 1_000;
    /// The bytes that a value may have unless the query says otherwise.
    pub(crate) const MAX_VALUE_LEN: u64 = 128;
}

/// `format if (...) "pattern" as r keep_original_fields`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Format {
    /// The rows that are changed.
    pub condition: Option<Filter>,
    /// The pattern.
    pub pattern: FormatPattern,
    /// The field that takes the text.
    pub result: String,
    /// What happens to old values.
    pub keep: KeepMode,
}

/// The right side of `join` and `union`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RightSide {
    /// `(query)`
    Query(Box<Query>),
    /// `rows({a="1"}, ...)`
    Rows(Vec<Vec<(String, String)>>),
}

/// `join by (k) (query) inner prefix p`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Join {
    /// The fields that have to be equal.
    pub by: Vec<String>,
    /// The other rows.
    pub right: RightSide,
    /// Whether rows without a match are dropped.
    pub inner: bool,
    /// Put in front of the names of the right side.
    pub prefix: String,
}

/// `math a + b as c, ...`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Math {
    /// The expressions; later ones see earlier results. Never empty.
    pub items: Vec<MathItem>,
}

/// `pack_json fields (a, b*) as r`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pack {
    /// What is written.
    pub format: PackFormat,
    /// The fields.
    pub fields: Vec<FieldPattern>,
    /// The field that takes the text.
    pub result: String,
}

/// The text that `pack_*` writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PackFormat {
    /// `pack_json`
    Json,
    /// `pack_logfmt`
    Logfmt,
}

/// `patterns by (a, b) new since T`, `... new against (filter)`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Patterns {
    /// Group by these as well.
    pub by: Vec<String>,
    /// Only patterns that no row of the baseline has; its rows are not counted.
    pub baseline: Option<Baseline>,
}

/// The rows with which others are compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Baseline {
    /// `since T`: those before this time.
    Before(TimePoint),
    /// `against (filter)`: those that pass.
    Rows(Filter),
}

impl Baseline {
    /// The filter that picks the rows.
    pub(crate) fn filter(&self) -> Filter {
        match self {
            Baseline::Before(point) => Filter::Time(TimeFilter {
                form: TimeForm::Compare { op: CompareOp::Less, point: point.clone() },
                offset: None,
            }),
            Baseline::Rows(filter) => filter.clone(),
        }
    }
}

/// `replace if (...) ("old", "new") at f limit N`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replace {
    /// The rows that are changed.
    pub condition: Option<Filter>,
    /// Searched.
    pub old: String,
    /// Put in its place.
    pub new: String,
    /// The field.
    pub field: String,
    /// Most replacements, counted from the left.
    pub limit: Option<u64>,
}

/// `replace_regexp if (...) ("re", "new") at f limit N`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplaceRegexp {
    /// The rows that are changed.
    pub condition: Option<Filter>,
    /// Searched.
    pub regex: Regex,
    /// Put in its place; `$1`, `${1}` and `${name}` are groups.
    pub new: String,
    /// The field.
    pub field: String,
    /// Most replacements, counted from the left.
    pub limit: Option<u64>,
}

/// `running_stats by (f) fn() as r, ...`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunningStats {
    /// The group keys.
    pub by: Vec<String>,
    /// The functions; never empty.
    pub items: Vec<RunningItem>,
}

/// `set_stream_fields if (...) a, b*`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetStreamFields {
    /// The rows that are changed.
    pub condition: Option<Filter>,
    /// The new stream fields.
    pub fields: Vec<FieldPattern>,
}

/// `sort by (a desc, b) partition by (c) offset O limit N rank as r`
///
/// The directions of `desc` after the list, and of `last`, are in the keys already.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sort {
    /// The keys; empty: by all fields.
    pub keys: Vec<SortKey>,
    /// Only without keys: whether the order is reversed. False if there are keys.
    pub desc: bool,
    /// The limit and the offset count per group of these.
    pub partition_by: Vec<String>,
    /// Rows skipped.
    pub offset: Option<u64>,
    /// Most rows.
    pub limit: Option<u64>,
    /// The field that takes the position, counted from 1 before the offset.
    pub rank: Option<String>,
}

/// One key of a sort.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SortKey {
    /// The field.
    pub field: String,
    /// Whether the largest comes first.
    pub desc: bool,
}

/// `stream_context before N after M time_window d`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamContext {
    /// Earlier rows.
    pub before: u64,
    /// Later rows.
    pub after: u64,
    /// How far to look; an hour by default.
    pub time_window: Option<Duration>,
}

/// `top N by (a, b) hits as h rank as r`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Top {
    /// Most rows.
    pub limit: u64,
    /// The fields.
    pub by: Vec<String>,
    /// The field that takes the count.
    pub hits: String,
    /// The field that takes the position.
    pub rank: Option<String>,
}

/// `uniq by (a, b) with hits limit N`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Uniq {
    /// The fields.
    pub by: Vec<String>,
    /// The field that takes the number of rows, if they are counted.
    pub hits: Option<String>,
    /// Most rows.
    pub limit: Option<u64>,
}

/// `unpack_json if (...) from f fields (a, b*) result_prefix p keep_original_fields`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unpack {
    /// What is read.
    pub format: UnpackFormat,
    /// The rows that are changed.
    pub condition: Option<Filter>,
    /// The field that is taken apart.
    pub field: String,
    /// The members that become fields.
    pub fields: Vec<FieldPattern>,
    /// Put in front of their names.
    pub result_prefix: String,
    /// What happens to old values.
    pub keep: KeepMode,
}

/// The text that `unpack_*` reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UnpackFormat {
    /// `unpack_json`
    Json,
    /// `unpack_logfmt`
    Logfmt,
    /// `unpack_syslog offset d`: times without a zone are this much ahead of UTC.
    Syslog {
        /// The zone.
        offset: Option<Duration>,
    },
}

/// `unpack_words from f as r drop_duplicates`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnpackWords {
    /// The field.
    pub field: String,
    /// The field that takes the JSON array.
    pub result: String,
    /// Whether each word is listed once.
    pub drop_duplicates: bool,
}

/// `unroll if (...) by (a, b)`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unroll {
    /// The rows that are changed.
    pub condition: Option<Filter>,
    /// The fields.
    pub fields: Vec<String>,
}
