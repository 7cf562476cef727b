//! Pipes with options: each is a value of its own, made with what it needs and given its options
//! one by one, which [`Query::pipe`](crate::Query::pipe) takes.

use super::{duration, names, texts};
use crate::error::QueryError;
use crate::query::ast::{
    Baseline, CollapseNums, Extract, ExtractPattern, ExtractRegexp, Facets, Filter, Format,
    FormatPattern, Join, KeepMode, MESSAGE_FIELD, Math, MathItem, Pack, PackFormat, Patterns, Pipe,
    Query, Replace, ReplaceRegexp, RightSide, RunningItem, RunningStats, SetStreamFields, Sort,
    SortKey, StreamContext, TimePoint, Top, Uniq, Unpack, UnpackFormat, UnpackWords, Unroll,
};
use crate::query::fault::Fault;
use crate::query::parser::{extract_pattern, format_pattern};
use crate::query::regex::Regex;
use crate::record::Timestamp;

/// The pipes that a type of options stands for.
macro_rules! pipes {
    ($($name:ident),+) => {$(
        impl From<$name> for Pipe {
            fn from(plan: $name) -> Pipe {
                Pipe::$name(plan)
            }
        }
    )+};
}

pipes!(
    CollapseNums,
    Extract,
    ExtractRegexp,
    Facets,
    Format,
    Join,
    Math,
    Pack,
    Patterns,
    Replace,
    ReplaceRegexp,
    SetStreamFields,
    Sort,
    StreamContext,
    Top,
    Uniq,
    Unpack,
    UnpackWords,
    Unroll
);

/// Options that several pipes have under one name.
macro_rules! options {
    ($($name:ident: $($option:ident)+;)+) => {
        $(impl $name { $(options!(@ $option $name);)+ })+
    };
    (@ only $name:ident) => {
        /// The same for the rows of `filter`; other rows stay as they are.
        pub fn only(mut self, filter: Filter) -> $name {
            self.condition = Some(filter);
            self
        }
    };
    (@ from $name:ident) => {
        /// The same for this field instead of the message.
        pub fn from(mut self, field: impl Into<String>) -> $name {
            self.field = field.into();
            self
        }
    };
    (@ keep $name:ident) => {
        /// Says what happens to fields that had a value before.
        pub fn keep(mut self, keep: KeepMode) -> $name {
            self.keep = keep;
            self
        }
    };
    (@ limit $name:ident) => {
        /// At most so many.
        pub fn limit(mut self, most: u64) -> $name {
            self.limit = Some(most);
            self
        }
    };
    (@ rank $name:ident) => {
        /// Puts the position of each row, counted from 1, into this field.
        pub fn rank(mut self, field: impl Into<String>) -> $name {
            self.rank = Some(field.into());
            self
        }
    };
}

options! {
    CollapseNums: only from;
    Extract: only from keep;
    ExtractRegexp: only from keep;
    Format: only keep;
    Replace: only from limit;
    ReplaceRegexp: only from limit;
    SetStreamFields: only;
    Sort: limit rank;
    Top: rank;
    Uniq: limit;
    Unpack: only from keep;
    UnpackWords: from;
    Unroll: only;
}

fn regex(expression: &str) -> Result<Regex, QueryError> {
    Regex::new(expression).map_err(|fault| Fault::of_regex(&fault, 0).in_query(expression))
}

impl CollapseNums {
    /// `collapse_nums`: numbers in the message become `<N>`.
    #[expect(clippy::new_without_default, reason = "the message is as good as any other field")]
    pub fn new() -> CollapseNums {
        CollapseNums { condition: None, field: MESSAGE_FIELD.to_owned(), prettify: false }
    }

    /// Groups of numbers become `<UUID>`, `<IP4>`, `<DATETIME>` and so on.
    pub fn prettify(mut self) -> CollapseNums {
        self.prettify = true;
        self
    }
}

impl Extract {
    /// `extract`: the placeholders of `pattern` become fields.
    ///
    /// # Errors
    /// [`QueryError`] if the pattern has no named placeholder, or no text between two of them.
    pub fn new(pattern: &str) -> Result<Extract, QueryError> {
        let pattern: ExtractPattern = extract_pattern(pattern)?;
        let (condition, keep) = (None, KeepMode::default());
        Ok(Extract { condition, pattern, field: MESSAGE_FIELD.to_owned(), keep })
    }
}

impl ExtractRegexp {
    /// `extract_regexp`: the named groups of `expression` become fields.
    ///
    /// # Errors
    /// [`QueryError`] if it is not RE2 syntax, too large, or has no named group.
    pub fn new(expression: &str) -> Result<ExtractRegexp, QueryError> {
        let regex = regex(expression)?;
        if regex.group_names().flatten().next().is_none() {
            return Err(Fault::new(0, "the expression has no named group")
                .hint("write one as (?P<name>...)")
                .in_query(expression));
        }
        let (condition, keep) = (None, KeepMode::default());
        Ok(ExtractRegexp { condition, regex, field: MESSAGE_FIELD.to_owned(), keep })
    }
}

impl Facets {
    /// `facets`: the `limit` most frequent values of each field.
    pub fn new(limit: u64) -> Facets {
        Facets {
            limit: limit.max(1),
            max_values_per_field: Facets::MAX_VALUES_PER_FIELD,
            max_value_len: Facets::MAX_VALUE_LEN,
            keep_const_fields: false,
        }
    }

    /// Leaves fields with more distinct values out.
    pub fn max_values_per_field(mut self, most: u64) -> Facets {
        self.max_values_per_field = most.max(1);
        self
    }

    /// Leaves fields with a longer value, in bytes, out.
    pub fn max_value_len(mut self, most: u64) -> Facets {
        self.max_value_len = most.max(1);
        self
    }

    /// Keeps fields with one value in all rows.
    pub fn keep_const_fields(mut self) -> Facets {
        self.keep_const_fields = true;
        self
    }
}

impl Format {
    /// `format`: the text of `pattern` with the values of its placeholders, put into `result`.
    ///
    /// # Errors
    /// [`QueryError`] if a placeholder is open or has an option that there is not.
    pub fn new(pattern: &str, result: impl Into<String>) -> Result<Format, QueryError> {
        let pattern: FormatPattern = format_pattern(pattern)?;
        let (condition, keep) = (None, KeepMode::default());
        Ok(Format { condition, pattern, result: result.into(), keep })
    }
}

impl RightSide {
    /// The rows of a query.
    pub fn query(query: Query) -> RightSide {
        RightSide::Query(Box::new(query))
    }

    /// These rows.
    pub fn rows<R, N, V>(rows: impl IntoIterator<Item = R>) -> RightSide
    where
        R: IntoIterator<Item = (N, V)>,
        N: Into<String>,
        V: Into<String>,
    {
        let pair = |(name, value): (N, V)| (name.into(), value.into());
        RightSide::Rows(rows.into_iter().map(|row| row.into_iter().map(pair).collect()).collect())
    }
}

impl Join {
    /// `join`: the fields of rows of `right` with the same values of `by`.
    pub fn new<T: Into<String>>(by: impl IntoIterator<Item = T>, right: RightSide) -> Join {
        Join { by: texts(by), right, inner: false, prefix: String::new() }
    }

    /// Drops rows without a match.
    pub fn inner(mut self) -> Join {
        self.inner = true;
        self
    }

    /// Puts this in front of the names of the right side.
    pub fn prefix(mut self, prefix: impl Into<String>) -> Join {
        self.prefix = prefix.into();
        self
    }
}

impl Math {
    /// `math`: the values of these expressions; later ones see earlier results.
    pub fn new(items: impl IntoIterator<Item = MathItem>) -> Math {
        Math { items: items.into_iter().collect() }
    }
}

impl Pack {
    /// `pack_json`: the row as a JSON object in the field `result`.
    pub fn json(result: impl Into<String>) -> Pack {
        Pack { format: PackFormat::Json, fields: super::all_fields(), result: result.into() }
    }

    /// `pack_logfmt`
    pub fn logfmt(result: impl Into<String>) -> Pack {
        Pack { format: PackFormat::Logfmt, ..Pack::json(result) }
    }

    /// These fields only.
    pub fn fields<T: Into<String>>(mut self, fields: impl IntoIterator<Item = T>) -> Pack {
        self.fields = names(fields);
        self
    }
}

impl Patterns {
    /// `patterns`, in groups of equal values of `by`.
    pub fn new<T: Into<String>>(by: impl IntoIterator<Item = T>) -> Patterns {
        Patterns { by: texts(by), baseline: None }
    }

    /// Only those that no row before `time` has.
    pub fn new_since(mut self, time: Timestamp) -> Patterns {
        self.baseline = Some(Baseline::Before(TimePoint::Text(time.to_string())));
        self
    }

    /// Only those that no row of `filter` has.
    pub fn new_against(mut self, filter: Filter) -> Patterns {
        self.baseline = Some(Baseline::Rows(filter));
        self
    }
}

impl Replace {
    /// `replace`: `new` in the place of each `old` in the message.
    pub fn new(old: impl Into<String>, new: impl Into<String>) -> Replace {
        let field = MESSAGE_FIELD.to_owned();
        Replace { condition: None, old: old.into(), new: new.into(), field, limit: None }
    }
}

impl ReplaceRegexp {
    /// `replace_regexp`: `new`, in which `$1` and `${name}` are groups, in the place of what
    /// `expression` matches in the message.
    ///
    /// # Errors
    /// [`QueryError`] if `expression` is not RE2 syntax or too large.
    pub fn new(expression: &str, new: impl Into<String>) -> Result<ReplaceRegexp, QueryError> {
        let (regex, field) = (regex(expression)?, MESSAGE_FIELD.to_owned());
        Ok(ReplaceRegexp { condition: None, regex, new: new.into(), field, limit: None })
    }
}

impl RunningStats {
    /// The functions over the rows of each group of equal values of `by`; for
    /// [`Pipe::RunningStats`] and [`Pipe::TotalStats`].
    pub fn new<T: Into<String>>(
        by: impl IntoIterator<Item = T>,
        items: impl IntoIterator<Item = RunningItem>,
    ) -> RunningStats {
        RunningStats { by: texts(by), items: items.into_iter().collect() }
    }
}

impl SetStreamFields {
    /// `set_stream_fields`
    pub fn new<T: Into<String>>(fields: impl IntoIterator<Item = T>) -> SetStreamFields {
        SetStreamFields { condition: None, fields: names(fields) }
    }
}

impl Sort {
    /// `sort by (keys)`; by all fields if there are none.
    pub fn by(keys: impl IntoIterator<Item = SortKey>) -> Sort {
        Sort {
            keys: keys.into_iter().collect(),
            desc: false,
            partition_by: Vec::new(),
            offset: None,
            limit: None,
            rank: None,
        }
    }

    /// Skips so many rows.
    pub fn offset(mut self, rows: u64) -> Sort {
        self.offset = Some(rows);
        self
    }

    /// Counts the limit and the offset for each group of equal values of these fields.
    pub fn partition_by<T: Into<String>>(mut self, fields: impl IntoIterator<Item = T>) -> Sort {
        self.partition_by = texts(fields);
        self
    }
}

impl SortKey {
    /// The smallest value first.
    pub fn asc(field: impl Into<String>) -> SortKey {
        SortKey { field: field.into(), desc: false }
    }

    /// The largest value first.
    pub fn desc(field: impl Into<String>) -> SortKey {
        SortKey { field: field.into(), desc: true }
    }
}

impl StreamContext {
    /// `stream_context`: so many rows before and after each row in its stream. It has to be the
    /// first pipe.
    pub fn new(before: u64, after: u64) -> StreamContext {
        StreamContext { before, after, time_window: None }
    }

    /// Looks no farther than this.
    pub fn time_window(mut self, window: std::time::Duration) -> StreamContext {
        self.time_window = Some(duration(window));
        self
    }
}

impl Top {
    /// `top`: the `limit` most frequent values, their number in the field `hits`.
    pub fn new<T: Into<String>>(limit: u64, by: impl IntoIterator<Item = T>) -> Top {
        Top { limit, by: texts(by), hits: "hits".to_owned(), rank: None }
    }

    /// Puts the number of rows into this field.
    pub fn hits(mut self, field: impl Into<String>) -> Top {
        self.hits = field.into();
        self
    }
}

impl Uniq {
    /// `uniq`: the distinct values of these fields.
    pub fn by<T: Into<String>>(by: impl IntoIterator<Item = T>) -> Uniq {
        Uniq { by: texts(by), hits: None, limit: None }
    }

    /// Counts the rows of each value into the field `hits`.
    pub fn with_hits(mut self) -> Uniq {
        self.hits = Some("hits".to_owned());
        self
    }
}

impl Unpack {
    fn new(format: UnpackFormat) -> Unpack {
        Unpack {
            format,
            condition: None,
            field: MESSAGE_FIELD.to_owned(),
            fields: super::all_fields(),
            result_prefix: String::new(),
            keep: KeepMode::default(),
        }
    }

    /// `unpack_json`: the members of a JSON object become fields.
    pub fn json() -> Unpack {
        Unpack::new(UnpackFormat::Json)
    }

    /// `unpack_logfmt`
    pub fn logfmt() -> Unpack {
        Unpack::new(UnpackFormat::Logfmt)
    }

    /// `unpack_syslog`
    pub fn syslog() -> Unpack {
        Unpack::new(UnpackFormat::Syslog { offset: None })
    }

    /// These members only.
    pub fn fields<T: Into<String>>(mut self, fields: impl IntoIterator<Item = T>) -> Unpack {
        self.fields = names(fields);
        self
    }

    /// Puts this in front of the names of the fields.
    pub fn result_prefix(mut self, prefix: impl Into<String>) -> Unpack {
        self.result_prefix = prefix.into();
        self
    }
}

impl UnpackWords {
    /// `unpack_words`: the words of the message as a JSON array in the field `result`.
    pub fn new(result: impl Into<String>) -> UnpackWords {
        let field = MESSAGE_FIELD.to_owned();
        UnpackWords { field, result: result.into(), drop_duplicates: false }
    }

    /// Lists each word once.
    pub fn drop_duplicates(mut self) -> UnpackWords {
        self.drop_duplicates = true;
        self
    }
}

impl Unroll {
    /// `unroll`: a row for each item of these JSON arrays.
    pub fn by<T: Into<String>>(fields: impl IntoIterator<Item = T>) -> Unroll {
        Unroll { condition: None, fields: texts(fields) }
    }
}
