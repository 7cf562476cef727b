//! Pipes that look at all rows and keep them.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use super::stats::{all_values, extreme, print_float, some_value, sum};
use super::value::{compare, rfc3339};
use super::{Row, pipe};
use crate::query::ast::{Facets, FieldPattern, Join, RunningFunction, RunningStats};

/// `running_stats`, or with `total` `total_stats`.
pub(super) fn running(plan: &RunningStats, total: bool, rows: &[Row]) -> Vec<Row> {
    let mut groups: BTreeMap<Vec<String>, Vec<&Row>> = BTreeMap::new();
    for row in rows {
        let key = plan.by.iter().map(|f| row.get(f).to_owned()).collect();
        groups.entry(key).or_default().push(row);
    }
    let mut out = Vec::new();
    for mut members in groups.into_values() {
        members.sort_by_key(|r| rfc3339(r.get("_time")));
        for i in 0..members.len() {
            let seen = if total { &members[..] } else { &members[..=i] };
            let mut row = members[i].clone();
            for item in &plan.items {
                row.set(&item.result, &answer(&item.function, seen));
            }
            out.push(row);
        }
    }
    out
}

fn answer(function: &RunningFunction, rows: &[&Row]) -> String {
    let at = |i: Option<usize>, field: &str| {
        i.and_then(|i| rows.get(i)).map_or("", |r| r.get(field)).to_owned()
    };
    let usize = |n: u64| usize::try_from(n).unwrap();
    match function {
        RunningFunction::Count(fields) if fields.iter().any(FieldPattern::is_all) => {
            rows.len().to_string()
        }
        RunningFunction::Count(fields) => {
            rows.iter().filter(|r| some_value(fields, r)).count().to_string()
        }
        RunningFunction::Sum(fields) => print_float(sum(&all_values(fields, rows)).0),
        RunningFunction::Min(fields) => extreme(&all_values(fields, rows), Ordering::Less),
        RunningFunction::Max(fields) => extreme(&all_values(fields, rows), Ordering::Greater),
        RunningFunction::First { field, offset } => at(Some(usize(*offset)), field),
        RunningFunction::Last { field, offset } => {
            at((rows.len() - 1).checked_sub(usize(*offset)), field)
        }
    }
}

/// `join`: the right rows in their order.
pub(super) fn join(plan: &Join, rows: &[Row], right: &[Row]) -> Vec<Row> {
    let mut out = Vec::new();
    for row in rows {
        let equal = |r: &&Row| plan.by.iter().all(|key| r.get(key) == row.get(key));
        let matches: Vec<&Row> = right.iter().filter(equal).collect();
        if matches.is_empty() && !plan.inner {
            out.push(row.clone());
        }
        for found in matches {
            let mut joined = row.clone();
            for (name, value) in &found.fields {
                let target = format!("{}{name}", plan.prefix);
                if !plan.by.contains(name) && joined.get(&target).is_empty() {
                    joined.set(&target, value);
                }
            }
            out.push(joined);
        }
    }
    out
}

/// `facets`.
pub(super) fn facets(plan: &Facets, rows: &[Row]) -> Vec<Row> {
    let mut fields: BTreeMap<&str, BTreeMap<&str, u64>> = BTreeMap::new();
    for (name, value) in rows.iter().flat_map(|r| &r.fields) {
        *fields.entry(name).or_default().entry(value).or_default() += 1;
    }
    let mut out = Vec::new();
    for (name, values) in fields {
        let is_const = values.values().any(|hits| *hits == rows.len() as u64);
        let too_long = values.keys().any(|v| v.len() as u64 > plan.max_value_len);
        let too_many = values.len() as u64 > plan.max_values_per_field;
        if too_long || too_many || (is_const && !plan.keep_const_fields) {
            continue;
        }
        let mut values: Vec<_> = values.into_iter().collect();
        values.sort_by(|a, b| {
            b.1.cmp(&a.1).then_with(|| compare(a.0, b.0)).then_with(|| a.0.cmp(b.0))
        });
        values.truncate(pipe::size(plan.limit));
        for (value, hits) in values {
            let mut row = Row::default();
            row.set("field_name", name);
            row.set("field_value", value);
            row.set("hits", &hits.to_string());
            out.push(row);
        }
    }
    out
}
