//! What log tools ask again and again, each made of queries.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::error::{Error, Result};
use crate::options::QueryOptions;
use crate::query::ast::{
    self, Bucket, BucketStep, GroupKey, Number, Sort, SortKey, StatsItem, StreamIds, TIME_FIELD,
    TimeFilter, TimeForm, TimePoint, Uniq,
};
use crate::query::{BucketFn, Filter, Pipe, Query, Row, closed_time_range, explain};
use crate::record::{StreamId, Timestamp};

use super::Store;

/// More buckets than anybody draws.
const MAX_BUCKETS: u64 = 1_000_000;

/// How many rows fall into each step of time; see [`Store::hits`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Hits {
    /// The width of a bucket.
    pub step: Duration,
    /// One series for each value of the field, that with most rows first. Without a field one
    /// series, for the empty value.
    pub series: Vec<HitsSeries>,
    /// Rows that are in no bucket, since a pipe has taken their `_time` away or made it no time.
    pub untimed: u64,
}

/// The buckets of one value.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct HitsSeries {
    /// The value of the field.
    pub value: String,
    /// Rows in all buckets.
    pub total: u64,
    /// Start and rows of each bucket, by time and without gaps. All series have the same starts.
    pub buckets: Vec<(Timestamp, u64)>,
}

/// A name or value, and the rows that have it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ValueHits {
    /// The name or value; empty for rows without a value.
    pub value: String,
    /// Rows.
    pub hits: u64,
}

/// These calls have no place to say what was skipped, so they fail at damage.
fn strict(options: &QueryOptions) -> QueryOptions {
    options.clone().skip_damaged(false)
}

impl Store {
    /// How `query` would run, as a tree with the scan at its foot: what each filter lets the scan
    /// skip, which columns are read, what runs in the workers. For people; it may change.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// # let store = loglith::Store::open(dir.path())?;
    /// let plan = store.explain(&"error took:>5 | limit 10".parse()?);
    /// assert!(plan.contains("stops at the newest 10 rows by time"));
    /// assert!(plan.contains("skips blocks by the least and greatest took"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn explain(&self, query: &Query) -> String {
        explain(query, true)
    }

    /// Rows of `query` over time in buckets of `step`, together or for each value of the field
    /// `by`.
    ///
    /// Buckets start at multiples of `step` since 1970-01-01T00:00:00. Empty ones are filled in:
    /// over the range of time that the query's filter gives, if it is closed at both ends, else
    /// from the first to the last row. Rows that a pipe has left without a time are counted apart.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// use loglith::{Entry, IngestOptions, QueryOptions, Store, Timestamp};
    /// use std::time::Duration;
    ///
    /// let store = Store::open(dir.path())?;
    /// let ingest = store.ingest(IngestOptions::new().stream_fields(["app"]))?;
    /// for second in [1, 2, 125] {
    ///     let time = Timestamp::from_nanos(second * 1_000_000_000);
    ///     ingest.append(Entry::new().time(time).field("app", "web").message("hello"))?;
    /// }
    /// let minute = Duration::from_secs(60);
    /// let hits = store.hits(&"hello".parse()?, minute, Some("app"), &QueryOptions::new())?;
    /// let counts: Vec<u64> = hits.series[0].buckets.iter().map(|b| b.1).collect();
    /// assert_eq!((hits.series[0].value.as_str(), counts), ("web", vec![2, 0, 1]));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// In the time zone of the options buckets begin at multiples of the step by the local clock.
    /// Where it changes, a bucket lasts from the moment when the clock first shows its start to
    /// the start of the next one; buckets no longer than what the clock goes back by come twice.
    ///
    /// # Errors
    /// [`Error::InvalidOption`] if the step is zero, longer than 292 years or so short that there
    /// would be more than a million buckets; those of the query.
    pub fn hits(
        &self,
        query: &Query,
        step: Duration,
        by: Option<&str>,
        options: &QueryOptions,
    ) -> Result<Hits> {
        let bad = |why: &str| Error::InvalidOption { name: "step", why: why.to_owned() };
        let width = i64::try_from(step.as_nanos()).map_err(|_| bad("it is too long"))?;
        if width == 0 {
            return Err(bad("it must not be zero"));
        }
        let now = options.now.unwrap_or_else(|| self.core().clock.now());
        let options = strict(options).now(now);
        let bucket = Bucket {
            step: BucketStep::Number(Number { text: format!("{width}ns") }),
            offset: None,
        };
        let times = BucketFn::new(&bucket, &options.zone);
        let mut keys = vec![GroupKey { field: TIME_FIELD.to_owned(), bucket: Some(bucket) }];
        keys.extend(by.map(|field| GroupKey { field: field.to_owned(), bucket: None }));
        let count = hits_name(by);
        let items = vec![StatsItem::count().named(count)];
        let counted = query.clone().pipe(Pipe::Stats { by: keys, items });
        let mut found: BTreeMap<String, BTreeMap<i64, u64>> = BTreeMap::new();
        if by.is_none() {
            found.insert(String::new(), BTreeMap::new());
        }
        let mut untimed = 0;
        for row in self.query_with(&counted, &options)? {
            let row = row?;
            let Some(start) = Timestamp::parse(row.get(TIME_FIELD)) else {
                untimed += number(&row, count);
                continue;
            };
            let value = by.map_or("", |field| row.get(field)).to_owned();
            *found.entry(value).or_default().entry(start.as_nanos()).or_default() +=
                number(&row, count);
        }
        // Pipes may move rows out of the range of the filter.
        let range = closed_time_range(query, &options, now);
        let range = range.map(|r| [times.time(r.min), times.time(r.max)]);
        let starts =
            || found.values().flat_map(|s| s.keys().copied()).chain(range.into_iter().flatten());
        let starts = match (starts().min(), starts().max()) {
            (Some(first), Some(last)) => {
                let each = last.abs_diff(first) / width.unsigned_abs() + 1;
                if each.saturating_mul(found.len() as u64) > MAX_BUCKETS {
                    return Err(bad("there would be more than a million buckets"));
                }
                let next = |start: &i64| times.next_start(*start);
                std::iter::successors(Some(first), next).take_while(|s| *s <= last).collect()
            }
            _ => Vec::new(),
        };
        let mut series: Vec<HitsSeries> =
            found.into_iter().map(|(value, hits)| filled(value, &hits, &starts)).collect();
        series.sort_by_key(|s| std::cmp::Reverse(s.total));
        Ok(Hits { step, series, untimed })
    }

    /// The fields of the rows of `query` by name, with the rows in which each has a value.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// # use loglith::{Entry, IngestOptions, QueryOptions, Store};
    /// let store = Store::open(dir.path())?;
    /// let ingest = store.ingest(IngestOptions::new())?;
    /// ingest.append(Entry::new().field("user", "ann").message("in"))?;
    /// ingest.append(Entry::new().message("out"))?;
    /// let names = store.field_names(&"*".parse()?, &QueryOptions::new())?;
    /// let user = names.iter().find(|n| n.value == "user").ok_or("a field")?;
    /// assert_eq!(user.hits, 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of the query.
    pub fn field_names(&self, query: &Query, options: &QueryOptions) -> Result<Vec<ValueHits>> {
        let pipe = Pipe::FieldNames { filter: None, result: "name".to_owned() };
        self.value_hits(query.clone().pipe(pipe), "name", "hits", options)
    }

    /// The `limit` most frequent values of a field in the rows of `query`, most frequent first.
    /// The empty value stands for rows without the field.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// # use loglith::{Entry, IngestOptions, QueryOptions, Store};
    /// let store = Store::open(dir.path())?;
    /// let ingest = store.ingest(IngestOptions::new())?;
    /// for user in ["ann", "bob", "ann"] {
    ///     ingest.append(Entry::new().field("user", user).message("in"))?;
    /// }
    /// let users = store.field_values(&"in".parse()?, "user", 10, &QueryOptions::new())?;
    /// let users: Vec<_> = users.iter().map(|u| (u.value.as_str(), u.hits)).collect();
    /// assert_eq!(users, [("ann", 2), ("bob", 1)]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of the query.
    pub fn field_values(
        &self,
        query: &Query,
        field: &str,
        limit: u64,
        options: &QueryOptions,
    ) -> Result<Vec<ValueHits>> {
        let hits = hits_name(Some(field));
        let (by, count) = (vec![field.to_owned()], Some(hits.to_owned()));
        let pipe = Pipe::Uniq(Uniq { by, hits: count, limit: Some(limit) });
        let mut values = self.value_hits(query.clone().pipe(pipe), field, hits, options)?;
        values.sort_by_key(|v| std::cmp::Reverse(v.hits));
        Ok(values)
    }

    /// The `limit` streams with most rows of `query`, by their labels: `{app="web"}`.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// # use loglith::{Entry, IngestOptions, QueryOptions, Store};
    /// let store = Store::open(dir.path())?;
    /// let ingest = store.ingest(IngestOptions::new().stream_fields(["app"]))?;
    /// ingest.append(Entry::new().field("app", "web").message("in"))?;
    /// let streams = store.streams(&"*".parse()?, 10, &QueryOptions::new())?;
    /// assert_eq!(streams[0].value, "{app=\"web\"}");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of the query.
    pub fn streams(
        &self,
        query: &Query,
        limit: u64,
        options: &QueryOptions,
    ) -> Result<Vec<ValueHits>> {
        self.field_values(query, ast::STREAM_FIELD, limit, options)
    }

    /// The same as [`streams`](Store::streams), by the streams' ids, which
    /// `_stream_id:in(...)` and [`StreamId::parse`] read.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// # use loglith::{Entry, IngestOptions, QueryOptions, Store, StreamId};
    /// let store = Store::open(dir.path())?;
    /// let ingest = store.ingest(IngestOptions::new().stream_fields(["app"]))?;
    /// ingest.append(Entry::new().field("app", "web").message("in"))?;
    /// let ids = store.stream_ids(&"*".parse()?, 10, &QueryOptions::new())?;
    /// assert!(StreamId::parse(&ids[0].value).is_some());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of the query.
    pub fn stream_ids(
        &self,
        query: &Query,
        limit: u64,
        options: &QueryOptions,
    ) -> Result<Vec<ValueHits>> {
        self.field_values(query, ast::STREAM_ID_FIELD, limit, options)
    }

    /// The last `n` rows of `query` by time, the newest one last. Reads no more than it must: the
    /// scan goes from the newest block back and stops. For queries whose pipes neither sort nor
    /// aggregate; of those it gives the first `n` rows in reverse.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// # use loglith::{Entry, IngestOptions, QueryOptions, Store, Timestamp};
    /// let store = Store::open(dir.path())?;
    /// let ingest = store.ingest(IngestOptions::new())?;
    /// for n in 1..=5 {
    ///     let entry = Entry::new().time(Timestamp::from_nanos(n)).field("n", n);
    ///     ingest.append(entry.message("tick"))?;
    /// }
    /// let rows = store.tail(&"tick".parse()?, 2, &QueryOptions::new())?;
    /// let numbers: Vec<&str> = rows.iter().map(|r| r.get("n")).collect();
    /// assert_eq!(numbers, ["4", "5"]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of the query.
    pub fn tail(&self, query: &Query, n: u64, options: &QueryOptions) -> Result<Vec<Row>> {
        let mut rows = self.rows(query.clone().limit(n), options)?;
        rows.reverse();
        Ok(rows)
    }

    /// A row in its stream: up to `before` earlier rows, all rows of its very moment (itself among
    /// them), up to `after` later ones, by time; rows of one moment in the order in which they
    /// were appended. Looks at most `window` back and ahead. `row` needs its fields `_time` and
    /// `_stream_id`.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// # use loglith::{Entry, IngestOptions, QueryOptions, Store, Timestamp};
    /// use std::time::Duration;
    ///
    /// let store = Store::open(dir.path())?;
    /// let ingest = store.ingest(IngestOptions::new().stream_fields(["app"]))?;
    /// for n in 0..10 {
    ///     let entry = Entry::new().time(Timestamp::from_nanos(n / 2)).field("n", n);
    ///     ingest.append(entry.field("app", if n % 2 == 0 { "a" } else { "b" }).message("tick"))?;
    /// }
    /// let row = store.query("n:=4")?.next().ok_or("a row")??;
    /// let (hour, options) = (Duration::from_secs(3600), QueryOptions::new());
    /// let rows = store.stream_context(&row, 1, 2, hour, &options)?;
    /// let numbers: Vec<&str> = rows.iter().map(|r| r.get("n")).collect();
    /// assert_eq!(numbers, ["2", "4", "6", "8"]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidOption`] if the row lacks its time or stream; those of the queries.
    pub fn stream_context(
        &self,
        row: &Row,
        before: u64,
        after: u64,
        window: Duration,
        options: &QueryOptions,
    ) -> Result<Vec<Row>> {
        let bad = |why: &str| Error::InvalidOption { name: "row", why: why.to_owned() };
        let id = StreamId::parse(row.get(ast::STREAM_ID_FIELD));
        let id = id.ok_or_else(|| bad("it has no _stream_id"))?;
        let time = Timestamp::parse(row.get(TIME_FIELD)).ok_or_else(|| bad("it has no _time"))?;
        let window = i64::try_from(window.as_nanos()).unwrap_or(i64::MAX);
        let at = |nanos: i64| Timestamp::from_nanos(nanos);
        let (from, to) =
            (time.as_nanos().saturating_sub(window), time.as_nanos().saturating_add(window));
        let stream = || Filter::StreamId(StreamIds::List(vec![id]));
        let range = |min, min_inclusive, max, max_inclusive| {
            let point = |t: Timestamp| TimePoint::Text(nine_digits(t));
            let form =
                TimeForm::Range { min: point(min), min_inclusive, max: point(max), max_inclusive };
            Query::new(stream() & Filter::Time(TimeFilter { form, offset: None }))
        };
        let mut rows = self.tail(&range(at(from), true, time, false), before, options)?;
        rows.extend(self.rows(range(time, true, time, true).pipe(oldest(None)), options)?);
        let later = range(time, false, at(to), true).pipe(oldest(Some(after)));
        rows.extend(self.rows(later, options)?);
        Ok(rows)
    }

    fn rows(&self, query: Query, options: &QueryOptions) -> Result<Vec<Row>> {
        self.query_with(&query, &strict(options))?.collect()
    }

    fn value_hits(
        &self,
        query: Query,
        value: &str,
        hits: &str,
        options: &QueryOptions,
    ) -> Result<Vec<ValueHits>> {
        let rows = self.query_with(&query, &strict(options))?;
        rows.map(|row| {
            let row = row?;
            Ok(ValueHits { value: row.get(value).to_owned(), hits: number(&row, hits) })
        })
        .collect()
    }
}

/// By time, the oldest first.
fn oldest(limit: Option<u64>) -> Pipe {
    Pipe::Sort(Sort {
        keys: vec![SortKey { field: TIME_FIELD.to_owned(), desc: false }],
        desc: false,
        partition_by: Vec::new(),
        offset: None,
        limit,
        rank: None,
    })
}

/// A time that covers one nanosecond: a shorter fraction would cover more.
fn nine_digits(time: Timestamp) -> String {
    let text = time.to_string();
    let text = text.trim_end_matches('Z');
    let (second, fraction) = text.split_once('.').unwrap_or((text, ""));
    format!("{second}.{fraction:0<9}Z")
}

/// A name for a count that is not the field itself.
fn hits_name(field: Option<&str>) -> &'static str {
    if field == Some("hits") { "hitss" } else { "hits" }
}

fn number(row: &Row, field: &str) -> u64 {
    row.get(field).parse().unwrap_or(0)
}

fn filled(value: String, hits: &BTreeMap<i64, u64>, starts: &[i64]) -> HitsSeries {
    let hits_at = |start: &i64| hits.get(start).copied().unwrap_or(0);
    let buckets = starts.iter().map(|s| (Timestamp::from_nanos(*s), hits_at(s))).collect();
    HitsSeries { value, total: hits.values().sum(), buckets }
}

#[cfg(test)]
mod tests {
    use crate::record::Zone;
    use crate::{Entry, IngestOptions};

    use super::*;

    const HOUR: u64 = 3_600;

    /// A row every half hour of four days around each change of the clock.
    fn hits(rule: &str, first: &str, step: u64, filter: &str) -> Vec<(String, u64)> {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path()).unwrap();
        let ingest = store.ingest(IngestOptions::new()).unwrap();
        let first = Timestamp::parse(first).unwrap().as_nanos();
        for half in 0..4 * 48 {
            let time = Timestamp::from_nanos(first + half * 1_800_000_000_000);
            ingest.append(Entry::new().time(time).message("m")).unwrap();
        }
        let options = QueryOptions { zone: Zone::posix(rule), ..QueryOptions::new() };
        let query = filter.parse().unwrap();
        let hits = store.hits(&query, Duration::from_secs(step), None, &options).unwrap();
        let buckets = hits.series[0].buckets.iter().map(|b| (b.0.to_string(), b.1)).collect();
        store.close().unwrap();
        buckets
    }

    #[test]
    fn days_of_a_zone_are_as_long_as_its_clock_says() {
        let day = |rule: &str, first: &str| hits(rule, first, 24 * HOUR, "*");
        let starts = |buckets: &[(String, u64)]| -> Vec<String> {
            buckets.iter().map(|b| b.0[5..16].to_owned()).collect()
        };
        let counts = |buckets: &[(String, u64)]| buckets.iter().map(|b| b.1).collect::<Vec<_>>();
        let spring = day("CET-1CEST,M3.5.0,M10.5.0/3", "2024-03-29T23:00:00Z");
        assert_eq!(
            starts(&spring),
            ["03-29T23:00", "03-30T23:00", "03-31T22:00", "04-01T22:00", "04-02T22:00"]
        );
        assert_eq!(counts(&spring), [48, 46, 48, 48, 2]);
        let autumn = day("CET-1CEST,M3.5.0,M10.5.0/3", "2024-10-25T22:00:00Z");
        assert_eq!(counts(&autumn), [48, 50, 48, 46]);
        // Midnight is there twice: the day begins with the first.
        let twice = day("CST5CDT,M3.2.0/0,M11.1.0/1", "2024-11-02T04:00:00Z");
        assert_eq!(starts(&twice), ["11-02T04:00", "11-03T04:00", "11-04T05:00", "11-05T05:00"]);
        assert_eq!(counts(&twice), [48, 50, 48, 46]);
        // Midnight is not there: the day begins with the change.
        let never = day("CST5CDT,M3.2.0/0,M11.1.0/1", "2024-03-09T05:00:00Z");
        assert_eq!(
            starts(&never),
            ["03-09T05:00", "03-10T05:00", "03-11T04:00", "03-12T04:00", "03-13T04:00"]
        );
        assert_eq!(counts(&never), [48, 46, 48, 48, 2]);
    }

    #[test]
    fn a_range_is_filled_bucket_by_bucket() {
        let rule = "CET-1CEST,M3.5.0,M10.5.0/3";
        let range = "_time:[2024-10-27, 2024-10-28) nothing";
        let hours = hits(rule, "2024-10-25T22:00:00Z", HOUR, range);
        assert_eq!(hours.len(), 25);
        let parts = hits(rule, "2024-10-25T22:00:00Z", 6 * HOUR, range);
        let starts: Vec<&str> = parts.iter().map(|b| &b.0[8..13]).collect();
        assert_eq!(starts, ["26T22", "27T05", "27T11", "27T17"]);
    }

    #[test]
    fn rows_that_pipes_take_the_time_from_are_counted_apart() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path()).unwrap();
        let ingest = store.ingest(IngestOptions::new()).unwrap();
        for n in 0..3 {
            ingest.append(Entry::new().time(Timestamp::from_nanos(n)).message("m")).unwrap();
        }
        let hits = |query: &str| {
            let query = query.parse().unwrap();
            let hits = store.hits(&query, Duration::from_secs(1), None, &QueryOptions::new());
            let hits = hits.unwrap();
            (hits.series[0].total, hits.untimed, hits.series[0].buckets.len())
        };
        assert_eq!(hits("*"), (3, 0, 1));
        assert_eq!(hits("* | fields _msg"), (0, 3, 0));
        assert_eq!(hits("* | stats count()"), (0, 1, 0));
        assert_eq!(hits("* | format if (*) \"x\" as _time"), (0, 3, 0));
        // Out of the range of the filter, and yet drawn.
        assert_eq!(hits("_time:[0, 1] | time_add 3s"), (3, 0, 4));
    }
}
