//! Queries and their pipes.

use super::names;
use crate::query::ast::{
    Duration, FieldPattern, Filter, GroupKey, Pipe, Query, QueryOptions, RenamePair, RightSide,
    RunningItem, RunningStats, Sort, SortKey, StatsItem, Top, Uniq,
};

/// ```
/// use loglith::{Filter, Query};
///
/// let query = Query::new(Filter::All).rename([("a", "b")]).delete(["c"]).sample(100);
/// assert_eq!(query.to_string(), "* | rename a as b | delete c | sample 100");
/// ```
impl Query {
    /// The rows of `filter`, as they are.
    pub fn new(filter: Filter) -> Query {
        Query { options: QueryOptions::default(), filter, pipes: Vec::new() }
    }

    /// Appends any pipe; those with options are values of their own.
    ///
    /// ```
    /// use loglith::ast::{Extract, Unpack};
    /// use loglith::{Filter, Query, field};
    ///
    /// let web = field("app").eq("web");
    /// let query = Query::new(Filter::All)
    ///     .pipe(Extract::new("took <took>ms")?.only(web))
    ///     .pipe(Unpack::json().from("body").fields(["user"]).result_prefix("b."));
    /// let text = "* | extract if (app:=web) \"took <took>ms\" \
    ///     | unpack_json from body fields (user) result_prefix b.";
    /// assert_eq!(query.to_string(), text);
    /// # Ok::<(), loglith::QueryError>(())
    /// ```
    pub fn pipe(mut self, pipe: impl Into<Pipe>) -> Query {
        self.pipes.push(pipe.into());
        self
    }

    /// Keeps these fields; none keeps all.
    pub fn fields<T: Into<String>>(self, names: impl IntoIterator<Item = T>) -> Query {
        let fields: Vec<_> = names.into_iter().map(|n| FieldPattern::Name(n.into())).collect();
        let fields = if fields.is_empty() { vec![FieldPattern::all()] } else { fields };
        self.pipe(Pipe::Fields(fields))
    }

    /// Keeps the rows of `filter`.
    pub fn filter(self, filter: Filter) -> Query {
        self.pipe(Pipe::Filter(filter))
    }

    /// At most `n` rows: after a sort the first ones, else the newest.
    pub fn limit(self, n: u64) -> Query {
        self.pipe(Pipe::Limit(n))
    }

    /// Skips `n` rows.
    pub fn offset(self, n: u64) -> Query {
        self.pipe(Pipe::Offset(n))
    }

    /// Sorts by these fields, smallest first; by all fields if there are none.
    pub fn sort_by<T: Into<String>>(self, names: impl IntoIterator<Item = T>) -> Query {
        self.sort(names.into_iter().map(Into::into).collect(), false)
    }

    /// Sorts by these fields, largest first; by all fields if there are none.
    pub fn sort_by_desc<T: Into<String>>(self, names: impl IntoIterator<Item = T>) -> Query {
        self.sort(names.into_iter().map(Into::into).collect(), true)
    }

    fn sort(self, names: Vec<String>, desc: bool) -> Query {
        let mut sort = Sort::by(names.into_iter().map(|field| SortKey { field, desc }));
        sort.desc = desc && sort.keys.is_empty();
        self.pipe(sort)
    }

    /// Aggregates in groups of equal values of `by`.
    ///
    /// ```
    /// use loglith::{Filter, Query, StatsItem};
    ///
    /// let per_host = Query::new(Filter::word("error"))
    ///     .stats(["host"], [StatsItem::count().named("errors")])
    ///     .sort_by_desc(["errors"]);
    /// let text = "error | stats by (host) count(*) as errors | sort by (errors desc)";
    /// assert_eq!(per_host.to_string(), text);
    /// ```
    pub fn stats<T: Into<GroupKey>>(
        self,
        by: impl IntoIterator<Item = T>,
        items: impl IntoIterator<Item = StatsItem>,
    ) -> Query {
        let by = by.into_iter().map(Into::into).collect();
        self.pipe(Pipe::Stats { by, items: items.into_iter().collect() })
    }

    /// The distinct values of these fields.
    pub fn uniq_by<T: Into<String>>(self, names: impl IntoIterator<Item = T>) -> Query {
        self.pipe(Uniq::by(names))
    }

    /// The `n` most frequent values of these fields, with their count in the field `hits`.
    pub fn top<T: Into<String>>(self, n: u64, names: impl IntoIterator<Item = T>) -> Query {
        self.pipe(Top::new(n, names))
    }

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

    /// `coalesce`: the first of these fields that has a value, `default` without one, put into
    /// `result`.
    pub fn coalesce<T: Into<String>>(
        self,
        fields: impl IntoIterator<Item = T>,
        default: impl Into<String>,
        result: impl Into<String>,
    ) -> Query {
        let (fields, default) = (names(fields), default.into());
        self.pipe(Pipe::Coalesce { fields, default, result: result.into() })
    }

    /// `decolorize`: takes the colours of terminals out.
    pub fn decolorize(self, field: impl Into<String>) -> Query {
        self.pipe(Pipe::Decolorize { field: field.into() })
    }

    /// `drop_empty_fields`: drops rows without a field.
    pub fn drop_empty_fields(self) -> Query {
        self.pipe(Pipe::DropEmptyFields)
    }

    /// `field_names`: the names of fields, in the field `name`, and their number of rows.
    pub fn field_names(self) -> Query {
        self.pipe(Pipe::FieldNames { filter: None, result: "name".to_owned() })
    }

    /// `field_values`: the values of a field and their number of rows.
    pub fn field_values(self, field: impl Into<String>) -> Query {
        self.pipe(Pipe::FieldValues { field: field.into(), filter: None, limit: None })
    }

    /// `generate_sequence`: the numbers below `count` instead of rows, at least one.
    pub fn generate_sequence(self, count: u64) -> Query {
        self.pipe(Pipe::GenerateSequence { count: count.max(1) })
    }

    /// `hash`: the hash of a field, put into `result`.
    pub fn hash(self, field: impl Into<String>, result: impl Into<String>) -> Query {
        self.pipe(Pipe::Hash { field: field.into(), result: result.into() })
    }

    /// `json_array_concat`: the items of a JSON array as one text, put into `result`.
    pub fn json_array_concat(
        self,
        separator: impl Into<String>,
        field: impl Into<String>,
        result: impl Into<String>,
    ) -> Query {
        let (separator, field) = (separator.into(), field.into());
        self.pipe(Pipe::JsonArrayConcat { separator, field, result: result.into() })
    }

    /// `json_array_len`: the number of items of a JSON array, put into `result`.
    pub fn json_array_len(self, field: impl Into<String>, result: impl Into<String>) -> Query {
        self.pipe(Pipe::JsonArrayLen { field: field.into(), result: result.into() })
    }

    /// `len`: the length of a field in bytes, put into `result`.
    pub fn len_of(self, field: impl Into<String>, result: impl Into<String>) -> Query {
        self.pipe(Pipe::Len { field: field.into(), result: result.into() })
    }

    /// `split`: the pieces of a field as a JSON array, put into `result`; characters if
    /// `separator` is empty.
    pub fn split(
        self,
        separator: impl Into<String>,
        field: impl Into<String>,
        result: impl Into<String>,
    ) -> Query {
        let (separator, field) = (separator.into(), field.into());
        self.pipe(Pipe::Split { separator, field, result: result.into() })
    }

    /// `time_add`: moves the times of a field by so many nanoseconds.
    pub fn time_add(self, nanos: i64, field: impl Into<String>) -> Query {
        let offset = Duration { text: format!("{nanos}ns"), nanos };
        self.pipe(Pipe::TimeAdd { offset, field: field.into() })
    }

    /// `running_stats`: functions over the rows of a group up to each row.
    pub fn running_stats<T: Into<String>>(
        self,
        by: impl IntoIterator<Item = T>,
        items: impl IntoIterator<Item = RunningItem>,
    ) -> Query {
        self.pipe(Pipe::RunningStats(RunningStats::new(by, items)))
    }

    /// `total_stats`: functions over all rows of a group, on each row.
    pub fn total_stats<T: Into<String>>(
        self,
        by: impl IntoIterator<Item = T>,
        items: impl IntoIterator<Item = RunningItem>,
    ) -> Query {
        self.pipe(Pipe::TotalStats(RunningStats::new(by, items)))
    }

    /// `union`: the rows of another query behind those of this one.
    pub fn union(self, right: RightSide) -> Query {
        self.pipe(Pipe::Union(right))
    }

    /// `block_stats`: a row for each page that is read; depends on the layout.
    pub fn block_stats(self) -> Query {
        self.pipe(Pipe::BlockStats)
    }

    /// `blocks_count`: the number of blocks that are read, in `result`; depends on the layout.
    pub fn blocks_count(self, result: impl Into<String>) -> Query {
        self.pipe(Pipe::BlocksCount { result: result.into() })
    }

    /// `query_stats`: what was read.
    pub fn query_stats(self) -> Query {
        self.pipe(Pipe::QueryStats)
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
