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

mod filter;
mod pipe;
mod stats;
mod text;
mod value;

use std::collections::BTreeMap;

pub(crate) use filter::matches;
pub(crate) use value::{compare, number, print_time};

use super::ast::{Filter, Pipe, Predicate, Query, RightSide, ValueSet};

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

/// Runs `query` over `rows`, which come in append order.
pub(crate) fn run(query: &Query, rows: &[Row], now: i64) -> (Vec<Row>, Order) {
    let all = rows;
    let mut rows: Vec<Row> = rows.to_vec();
    rows.sort_by(|a, b| {
        (a.time, a.get("_stream").as_bytes()).cmp(&(b.time, b.get("_stream").as_bytes()))
    });
    let filter = with_values(&query.filter, all, now);
    rows.retain(|r| matches(&filter, r, now));
    let mut order = Order::Canonical;
    for pipe in &query.pipes {
        match pipe {
            Pipe::Union(RightSide::Query(right)) => rows.extend(run(right, all, now).0),
            Pipe::Filter(filter) => {
                let pipe = Pipe::Filter(with_values(filter, all, now));
                (rows, order) = pipe::apply(&pipe, rows, order, now);
            }
            pipe => (rows, order) = pipe::apply(pipe, rows, order, now),
        }
    }
    (rows, order)
}

/// The filter with the values of its subqueries written out.
fn with_values(filter: &Filter, all: &[Row], now: i64) -> Filter {
    let each = |list: &[Filter]| list.iter().map(|f| with_values(f, all, now)).collect();
    match filter {
        Filter::And(list) => Filter::And(each(list)),
        Filter::Or(list) => Filter::Or(each(list)),
        Filter::Not(inner) => Filter::Not(Box::new(with_values(inner, all, now))),
        Filter::Field {
            field,
            predicate: Predicate::In(ValueSet::Query { query, field: from }),
        } => {
            let (found, _) = run(query, all, now);
            let values = found.iter().map(|r| r.get(from).to_owned()).collect();
            let predicate = Predicate::In(ValueSet::List(values));
            Filter::Field { field: field.clone(), predicate }
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod golden_tests;
#[cfg(test)]
mod tests;
