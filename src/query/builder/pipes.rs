//! Queries and their pipes.

use super::names;
use crate::query::ast::{
    FieldPattern, Filter, GroupKey, Pipe, Query, QueryOptions, RenamePair, Sort, SortKey,
    StatsItem, Top, Uniq,
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

    /// Appends any pipe.
    pub fn pipe(mut self, pipe: Pipe) -> Query {
        self.pipes.push(pipe);
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
        let keys: Vec<_> = names.into_iter().map(|field| SortKey { field, desc }).collect();
        let desc = desc && keys.is_empty();
        let (partition_by, offset, limit, rank) = (Vec::new(), None, None, None);
        self.pipe(Pipe::Sort(Sort { keys, desc, partition_by, offset, limit, rank }))
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
    pub fn stats<T: Into<String>>(
        self,
        by: impl IntoIterator<Item = T>,
        items: impl IntoIterator<Item = StatsItem>,
    ) -> Query {
        let key = |name: T| GroupKey { field: name.into(), bucket: None };
        let by = by.into_iter().map(key).collect();
        self.pipe(Pipe::Stats { by, items: items.into_iter().collect() })
    }

    /// The distinct values of these fields.
    pub fn uniq_by<T: Into<String>>(self, names: impl IntoIterator<Item = T>) -> Query {
        let by = names.into_iter().map(Into::into).collect();
        self.pipe(Pipe::Uniq(Uniq { by, hits: None, limit: None }))
    }

    /// The `n` most frequent values of these fields, with their count in the field `hits`.
    pub fn top<T: Into<String>>(self, n: u64, names: impl IntoIterator<Item = T>) -> Query {
        let by = names.into_iter().map(Into::into).collect();
        self.pipe(Pipe::Top(Top { limit: n, by, hits: "hits".to_owned(), rank: None }))
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
