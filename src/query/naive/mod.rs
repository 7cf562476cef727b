//! The slow, obvious evaluator: LogsQL over rows in memory, one row at a time.
//!
//! Written from the rules of the language alone; it shares no code with the engine except the
//! syntax tree. Tests run random queries through both and compare. For tests only, so it may
//! panic on what it does not know.

#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "small numbers of tests, and a clear failure is all that a test needs"
)]

mod bytes;
mod clock;
mod context;
mod extract;
mod filter;
mod format;
mod math;
mod pattern;
mod patterns;
mod pipe;
mod running;
mod stats;
mod text;
mod unpack;
mod value;

use std::collections::BTreeMap;

pub(crate) use clock::Clock;
pub(crate) use filter::matches;
pub(crate) use value::{compare, number, print_time};

use super::ast::{
    Baseline, FieldPattern, Filter, Patterns, Pipe, Predicate, Query, QueryOptions, RightSide,
    STREAM_ID_FIELD, StreamIds, ValueSet,
};

/// A row: the fields that have a value, and what the storage knows of it.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Row {
    /// Name and value of each non-empty field, `_time` and `_stream` included.
    pub(crate) fields: BTreeMap<String, String>,
    /// The labels of the row's stream.
    pub(crate) labels: BTreeMap<String, String>,
    /// Nanoseconds since 1970.
    pub(crate) time: i64,
}

impl Row {
    /// The value of a field; empty if it is absent.
    pub(crate) fn get(&self, name: &str) -> &str {
        self.fields.get(name).map_or("", String::as_str)
    }

    /// Gives a field its value; the empty one removes it.
    pub(crate) fn set(&mut self, name: &str, value: &str) {
        if value.is_empty() {
            self.fields.remove(name);
        } else {
            self.fields.insert(name.to_owned(), value.to_owned());
        }
    }
}

/// How the rows between two pipes are ordered.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Order {
    /// Time, stream, append order, ascending; `limit` takes from the end.
    Canonical,
    /// As a pipe put them; `limit` takes from the start.
    Arrival,
}

/// What the times of a query are relative to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scope {
    /// Nanoseconds since 1970.
    pub(crate) now: i64,
    /// That of the query's zone.
    pub(crate) clock: Clock,
    /// The length of the query's own range of time, for rates.
    seconds: f64,
}

impl Scope {
    /// Queries in UTC.
    pub(crate) fn at(now: i64) -> Scope {
        Scope { now, clock: Clock::UTC, seconds: 1.0 }
    }
}

/// Runs `query` over `rows`, which come in append order.
pub(crate) fn run(query: &Query, rows: &[Row], scope: Scope) -> (Vec<Row>, Order) {
    Runner { all: rows, scope, options: QueryOptions::default() }.run(query)
}

/// What a query and its subqueries share.
struct Runner<'a> {
    all: &'a [Row],
    scope: Scope,
    /// Those of the query around this one.
    options: QueryOptions,
}

impl Runner<'_> {
    fn run(&self, query: &Query) -> (Vec<Row>, Order) {
        let runner = self.within(&query.options);
        let scope = Scope { seconds: filter::seconds(&query.filter, self.scope), ..self.scope };
        let mut rows: Vec<Row> = self.all.to_vec();
        rows.sort_by(|a, b| {
            (a.time, a.get("_stream").as_bytes()).cmp(&(b.time, b.get("_stream").as_bytes()))
        });
        if let Some(shift) = &runner.options.time_offset {
            // The filters look back, and the rows come forward.
            for row in &mut rows {
                row.time += shift.nanos;
                let time = print_time(row.time);
                row.set("_time", &time);
            }
        }
        let filters = [Some(&query.filter), runner.options.global_filter.as_deref()];
        let filters: Vec<Filter> =
            filters.into_iter().flatten().map(|f| runner.with_values(f)).collect();
        let stored = rows;
        let is_hit = |i: &usize| filters.iter().all(|f| matches(f, &stored[*i], scope));
        let hits: Vec<usize> = (0..stored.len()).filter(is_hit).collect();
        let mut rows: Vec<Row> = hits.iter().map(|i| stored[*i].clone()).collect();
        let mut order = Order::Canonical;
        for pipe in &query.pipes {
            match pipe {
                Pipe::StreamContext(plan) => {
                    rows = context::around(plan, &stored, &hits);
                    order = Order::Arrival;
                }
                Pipe::Union(right) => {
                    rows.extend(runner.right_side(right));
                    order = Order::Arrival;
                }
                Pipe::Join(plan) => {
                    rows = running::join(plan, &rows, &runner.right_side(&plan.right));
                }
                Pipe::Filter(filter) => {
                    let pipe = Pipe::Filter(runner.with_values(filter));
                    (rows, order) = pipe::apply(&pipe, rows, order, scope);
                }
                Pipe::Patterns(Patterns { by, baseline: Some(Baseline::Rows(filter)) }) => {
                    let baseline = Some(Baseline::Rows(runner.with_values(filter)));
                    let pipe = Pipe::Patterns(Patterns { by: by.clone(), baseline });
                    (rows, order) = pipe::apply(&pipe, rows, order, scope);
                }
                pipe => (rows, order) = pipe::apply(pipe, rows, order, scope),
            }
        }
        (rows, order)
    }

    /// The runner of what stands inside a query with these options.
    fn within(&self, own: &QueryOptions) -> Runner<'_> {
        let mut options = self.options.clone();
        options.time_offset = own.time_offset.clone().or(options.time_offset);
        let filters = [options.global_filter.take(), own.global_filter.clone()];
        let filters: Vec<Filter> = filters.into_iter().flatten().map(|f| *f).collect();
        options.global_filter = (!filters.is_empty()).then(|| Box::new(Filter::And(filters)));
        Runner { all: self.all, scope: self.scope, options }
    }

    fn right_side(&self, right: &RightSide) -> Vec<Row> {
        match right {
            RightSide::Query(query) => self.run(query).0,
            RightSide::Rows(rows) => {
                let row = |fields: &Vec<(String, String)>| {
                    let mut row = Row::default();
                    fields.iter().for_each(|(name, value)| row.set(name, value));
                    row
                };
                rows.iter().map(row).collect()
            }
        }
    }

    /// The filter with the values of its subqueries written out.
    fn with_values(&self, filter: &Filter) -> Filter {
        let each = |list: &[Filter]| list.iter().map(|f| self.with_values(f)).collect();
        let values = |set: &ValueSet| match set {
            ValueSet::Query { query, field } => {
                let (found, _) = self.run(query);
                ValueSet::List(found.iter().map(|r| r.get(field).to_owned()).collect())
            }
            other => other.clone(),
        };
        match filter {
            Filter::And(list) => Filter::And(each(list)),
            Filter::Or(list) => Filter::Or(each(list)),
            Filter::Not(inner) => Filter::Not(Box::new(self.with_values(inner))),
            Filter::Field { field, predicate } => {
                let predicate = match predicate {
                    Predicate::In(set) => Predicate::In(values(set)),
                    Predicate::ContainsAll(set) => Predicate::ContainsAll(values(set)),
                    Predicate::ContainsAny(set) => Predicate::ContainsAny(values(set)),
                    other => other.clone(),
                };
                Filter::Field { field: field.clone(), predicate }
            }
            Filter::StreamId(StreamIds::Query { query, field }) => {
                let (found, _) = self.run(query);
                let ids = found.iter().map(|r| r.get(field).to_owned()).collect();
                let field = FieldPattern::Name(STREAM_ID_FIELD.to_owned());
                Filter::Field { field, predicate: Predicate::In(ValueSet::List(ids)) }
            }
            other => other.clone(),
        }
    }
}

#[cfg(test)]
mod golden_tests;
#[cfg(test)]
mod tests;
