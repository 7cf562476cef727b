//! What pipes do to rows.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use super::value::compare;
use super::{Order, Row, Scope, matches, patterns, running, stats, text};
use crate::query::ast::{FieldPattern, Pipe, RenamePair, Sort, Top, Uniq};

/// The rows behind `pipe`, and how they are ordered.
pub(super) fn apply(pipe: &Pipe, rows: Vec<Row>, order: Order, scope: Scope) -> (Vec<Row>, Order) {
    let mut rows = rows;
    match pipe {
        Pipe::Filter(f) => rows.retain(|r| matches(f, r, scope)),
        Pipe::Fields(keep) => {
            let kept = |name: &str| keep.iter().any(|p| p.matches(name));
            rows.iter_mut().for_each(|r| r.fields.retain(|name, _| kept(name)));
        }
        Pipe::Delete(gone) => {
            let deleted = |name: &str| gone.iter().any(|p| p.matches(name));
            rows.iter_mut().for_each(|r| r.fields.retain(|name, _| !deleted(name)));
        }
        Pipe::Rename(pairs) => rows.iter_mut().for_each(|r| move_fields(r, pairs, true)),
        Pipe::Copy(pairs) => rows.iter_mut().for_each(|r| move_fields(r, pairs, false)),
        Pipe::Limit(n) => {
            let n = size(*n).min(rows.len());
            match order {
                Order::Canonical => rows.drain(..rows.len() - n),
                Order::Arrival => rows.drain(n..),
            };
        }
        Pipe::Offset(n) => {
            let n = size(*n).min(rows.len());
            match order {
                Order::Canonical => rows.truncate(rows.len() - n),
                Order::Arrival => drop(rows.drain(..n)),
            }
        }
        Pipe::Sort(sort) => return (sorted(sort, rows), Order::Arrival),
        Pipe::Stats { by, items } => {
            return (stats::aggregate(by, items, &rows, scope), Order::Arrival);
        }
        Pipe::Uniq(uniq) => return (distinct(uniq, &rows), Order::Arrival),
        Pipe::Top(top) => return (most_frequent(top, &rows), Order::Arrival),
        Pipe::FieldNames { filter, result } => {
            return (field_names(filter.as_deref(), result, &rows), Order::Arrival);
        }
        Pipe::FieldValues { field, filter, limit } => {
            let part = filter.as_deref().unwrap_or("");
            rows.retain(|r| r.get(field).contains(part));
            let by = vec![field.clone()];
            let uniq = Uniq { by, hits: Some("hits".to_owned()), limit: *limit };
            return (distinct(&uniq, &rows), Order::Arrival);
        }
        Pipe::DropEmptyFields => rows.retain(|r| !r.fields.is_empty()),
        Pipe::Unroll(plan) => {
            let unrolled = |r: &Row| match is_changed(pipe, r, scope) {
                true => text::unrolled(&plan.fields, r),
                false => vec![r.clone()],
            };
            rows = rows.iter().flat_map(unrolled).collect();
        }
        Pipe::RunningStats(plan) => return (running::running(plan, false, &rows), Order::Arrival),
        Pipe::TotalStats(plan) => return (running::running(plan, true, &rows), Order::Arrival),
        Pipe::Patterns(plan) => return (patterns::patterns(plan, &rows, scope), Order::Arrival),
        Pipe::Facets(plan) => return (running::facets(plan, &rows), Order::Arrival),
        Pipe::GenerateSequence { count } => {
            let row = |n: u64| {
                let mut row = Row::default();
                row.set("_msg", &n.to_string());
                row
            };
            return ((0..*count).map(row).collect(), Order::Arrival);
        }
        Pipe::CollapseNums(plan) => {
            rows.iter_mut().filter(|r| is_changed(pipe, r, scope)).for_each(|r| {
                let collapsed = patterns::collapse_nums(r.get(&plan.field));
                let value =
                    if plan.prettify { patterns::prettified(&collapsed) } else { collapsed };
                r.set(&plan.field, &value);
            });
        }
        other => rows.iter_mut().filter(|r| is_changed(other, r, scope)).for_each(|r| {
            let known = text::rewrite(other, r, scope);
            known.unwrap_or_else(|| panic!("the naive evaluator does not know {other:?}"));
        }),
    }
    (rows, order)
}

/// Whether the row passes the `if (...)` of the pipe.
fn is_changed(pipe: &Pipe, row: &Row, scope: Scope) -> bool {
    let condition = match pipe {
        Pipe::CollapseNums(p) => &p.condition,
        Pipe::Extract(p) => &p.condition,
        Pipe::ExtractRegexp(p) => &p.condition,
        Pipe::Format(p) => &p.condition,
        Pipe::Replace(p) => &p.condition,
        Pipe::ReplaceRegexp(p) => &p.condition,
        Pipe::SetStreamFields(p) => &p.condition,
        Pipe::Unpack(p) => &p.condition,
        Pipe::Unroll(p) => &p.condition,
        _ => &None,
    };
    condition.as_ref().is_none_or(|c| matches(c, row, scope))
}

pub(super) fn size(n: u64) -> usize {
    usize::try_from(n).unwrap_or(usize::MAX)
}

fn move_fields(row: &mut Row, pairs: &[RenamePair], remove: bool) {
    for pair in pairs {
        match (&pair.source, &pair.target) {
            (FieldPattern::Name(from), FieldPattern::Name(to)) => {
                let value = row.get(from).to_owned();
                if remove {
                    row.set(from, "");
                }
                row.set(to, &value);
            }
            (FieldPattern::Prefix(from), FieldPattern::Prefix(to)) => {
                let found: Vec<(String, String)> = row
                    .fields
                    .iter()
                    .filter(|(name, _)| name.starts_with(from.as_str()))
                    .map(|(name, value)| (name.clone(), value.clone()))
                    .collect();
                for (name, _) in found.iter().filter(|_| remove) {
                    row.set(name, "");
                }
                for (name, value) in &found {
                    row.set(&format!("{to}{}", &name[from.len()..]), value);
                }
            }
            other => panic!("the naive evaluator does not know {other:?}"),
        }
    }
}

fn sorted(sort: &Sort, mut rows: Vec<Row>) -> Vec<Row> {
    assert!(!sort.keys.is_empty(), "sort without keys is not for the naive evaluator");
    rows.sort_by(|a, b| {
        let mut all = Ordering::Equal;
        for key in &sort.keys {
            let one = compare(a.get(&key.field), b.get(&key.field));
            all = all.then(if key.desc { one.reverse() } else { one });
        }
        all
    });
    let mut seen: BTreeMap<Vec<String>, usize> = BTreeMap::new();
    let first = size(sort.offset.unwrap_or(0));
    let last = first.saturating_add(size(sort.limit.unwrap_or(u64::MAX)));
    let mut out = Vec::new();
    for mut row in rows {
        let group = sort.partition_by.iter().map(|f| row.get(f).to_owned()).collect();
        let position = seen.entry(group).or_default();
        *position += 1;
        if first < *position && *position <= last {
            if let Some(rank) = &sort.rank {
                row.set(rank, &position.to_string());
            }
            out.push(row);
        }
    }
    out
}

/// Distinct tuples of `by` with their number of rows: most frequent first, then by value, or by
/// length and value.
fn tuples(by: &[String], rows: &[Row], by_length: bool) -> Vec<(Vec<String>, u64)> {
    let mut counts: BTreeMap<Vec<String>, u64> = BTreeMap::new();
    for row in rows {
        *counts.entry(by.iter().map(|f| row.get(f).to_owned()).collect()).or_default() += 1;
    }
    let mut list: Vec<_> = counts.into_iter().collect();
    list.sort_by(|a, b| {
        b.1.cmp(&a.1).then_with(|| {
            let mut all = Ordering::Equal;
            for (x, y) in a.0.iter().zip(&b.0) {
                if by_length {
                    all = all.then(x.len().cmp(&y.len()));
                }
                all = all.then_with(|| compare(x, y)).then_with(|| x.cmp(y));
            }
            all
        })
    });
    list
}

fn tuple_row(by: &[String], tuple: &[String]) -> Row {
    let mut row = Row::default();
    for (name, value) in by.iter().zip(tuple) {
        row.set(name, value);
    }
    row
}

fn distinct(uniq: &Uniq, rows: &[Row]) -> Vec<Row> {
    let mut out = Vec::new();
    for (tuple, hits) in tuples(&uniq.by, rows, false) {
        let mut row = tuple_row(&uniq.by, &tuple);
        if let Some(name) = &uniq.hits {
            row.set(name, &hits.to_string());
        }
        out.push(row);
    }
    out.truncate(size(uniq.limit.unwrap_or(u64::MAX)));
    out
}

fn most_frequent(top: &Top, rows: &[Row]) -> Vec<Row> {
    let mut out = Vec::new();
    // Tuples of several values tie by the length of each value first.
    let by_length = top.by.len() > 1;
    for (i, (tuple, hits)) in tuples(&top.by, rows, by_length).into_iter().enumerate() {
        let mut row = tuple_row(&top.by, &tuple);
        row.set(&top.hits, &hits.to_string());
        if let Some(rank) = &top.rank {
            row.set(rank, &(i + 1).to_string());
        }
        out.push(row);
    }
    out.truncate(size(top.limit));
    out
}

fn field_names(filter: Option<&str>, result: &str, rows: &[Row]) -> Vec<Row> {
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for name in rows.iter().flat_map(|r| r.fields.keys()) {
        *counts.entry(name).or_default() += 1;
    }
    let wanted = counts.into_iter().filter(|(name, _)| name.contains(filter.unwrap_or("")));
    wanted
        .map(|(name, hits)| {
            let mut row = Row::default();
            row.set(result, name);
            row.set("hits", &hits.to_string());
            row
        })
        .collect()
}
