//! Aggregations.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use super::value::{
    Exact, compare, days, decimal, duration, exact, ipv4, number, print_time, rfc3339,
};
use super::{Clock, Row, Scope, matches};
use crate::query::ast::{
    BucketStep, CalendarUnit, FieldPattern, GroupKey, SortKey, StatsFunction, StatsItem,
};

/// One row per group.
pub(super) fn aggregate(
    by: &[GroupKey],
    items: &[StatsItem],
    rows: &[Row],
    scope: Scope,
) -> Vec<Row> {
    let mut groups: BTreeMap<Vec<String>, Vec<&Row>> = BTreeMap::new();
    if by.is_empty() {
        groups.insert(Vec::new(), Vec::new());
    }
    for row in rows {
        groups
            .entry(by.iter().map(|k| group_value(k, row, scope)).collect())
            .or_default()
            .push(row);
    }
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_by(|a, b| cmp_keys(&a.0, &b.0));
    let mut out = Vec::new();
    for (key, members) in groups {
        let mut result = Row::default();
        for (k, value) in by.iter().zip(&key) {
            result.set(&k.field, value);
        }
        for item in items {
            let members: Vec<&Row> = members
                .iter()
                .copied()
                .filter(|r| item.condition.as_ref().is_none_or(|c| matches(c, r, scope)))
                .collect();
            result.set(&item.result, &answer(&item.function, &members, scope));
        }
        out.push(result);
    }
    out
}

/// Groups come in the value order of their keys, key by key.
fn cmp_keys(a: &[String], b: &[String]) -> Ordering {
    let keys = a.iter().zip(b).map(|(x, y)| compare(x, y).then_with(|| x.cmp(y)));
    keys.fold(Ordering::Equal, Ordering::then)
}

/// The value of a group key, rounded down to its bucket.
fn group_value(key: &GroupKey, row: &Row, scope: Scope) -> String {
    let value = row.get(&key.field);
    let Some(bucket) = &key.bucket else { return value.to_owned() };
    let offset = bucket.offset.as_ref().map_or(Exact::Finite(0, 0), |o| exact(&o.text).unwrap());
    let step = match &bucket.step {
        BucketStep::Number(step) => exact(&step.text).unwrap(),
        BucketStep::Ipv4Network(bits) => {
            // Other numbers fall into buckets of as many as the network has addresses.
            Exact::Finite(1 << (32 - bits), 0)
        }
        BucketStep::Calendar(unit) => match calendar_start(*unit, value, offset, scope.clock) {
            Ok(start) => return start,
            Err(step) => step,
        },
    };
    let (Exact::Finite(step, se), Exact::Finite(offset, oe)) = (step, offset) else {
        panic!("a finite bucket: {bucket:?}")
    };
    let down = |mantissa: i128, exponent: i32| {
        let low = exponent.min(se).min(oe);
        let up = |m: i128, e: i32| m * 10i128.pow(e.abs_diff(low));
        let (step, offset) = (up(step, se), up(offset, oe));
        ((up(mantissa, exponent) - offset).div_euclid(step) * step + offset, low)
    };
    let whole = |(m, e): (i128, i32)| m / 10i128.pow(e.unsigned_abs());
    let is_network = matches!(bucket.step, BucketStep::Ipv4Network(_));
    if let Some(time) = rfc3339(value).filter(|_| !is_network) {
        let start = whole(down(scope.clock.shown(time).into(), 0));
        return print_time(i64::try_from(scope.clock.first_showing(start)).unwrap());
    }
    if let Some(Exact::Finite(m, e)) = decimal(value) {
        let (floor, exponent) = down(m, e);
        return print_decimal(floor, exponent);
    }
    if let Some(address) = ipv4(value) {
        let (floor, _) = down(i128::from(address), 0);
        let start = u32::try_from(floor.max(0));
        return start.map_or(value.to_owned(), |a| std::net::Ipv4Addr::from(a).to_string());
    }
    match duration(value) {
        Some(Exact::Finite(m, e)) => print_duration(whole(down(m, e))),
        _ => value.to_owned(),
    }
}

/// The start of the unit in which a time lies; the width of the unit where the calendar does not
/// matter.
fn calendar_start(
    unit: CalendarUnit,
    value: &str,
    offset: Exact,
    clock: Clock,
) -> Result<String, Exact> {
    let nanos = |n: i64| Err(Exact::Finite(n.into(), 0));
    let second = 1_000_000_000;
    match unit {
        CalendarUnit::Nanosecond => nanos(1),
        CalendarUnit::Microsecond => nanos(1_000),
        CalendarUnit::Millisecond => nanos(1_000_000),
        CalendarUnit::Second => nanos(second),
        CalendarUnit::Minute => nanos(60 * second),
        CalendarUnit::Hour => nanos(3_600 * second),
        CalendarUnit::Day => nanos(86_400 * second),
        CalendarUnit::Week | CalendarUnit::Month | CalendarUnit::Year => {
            let (Some(time), Exact::Finite(offset, 0)) = (rfc3339(value), offset) else {
                panic!("weeks, months and years of times only: {value}")
            };
            let offset = i64::try_from(offset).unwrap();
            let day = (clock.shown(time) - offset).div_euclid(86_400 * second);
            let start = match unit {
                // 1970-01-01 was a Thursday, three days behind a Monday.
                CalendarUnit::Week => day - (day + 3).rem_euclid(7),
                CalendarUnit::Month => {
                    let text = print_time(day * 86_400 * second);
                    days(text[..4].parse().unwrap(), text[5..7].parse().unwrap(), 1)
                }
                _ => days(print_time(day * 86_400 * second)[..4].parse().unwrap(), 1, 1),
            };
            let start = clock.first_showing((start * 86_400 * second + offset).into());
            Ok(print_time(i64::try_from(start).unwrap()))
        }
    }
}

/// `mantissa * 10^exponent` without needless zeros; the exponent is not positive.
fn print_decimal(mantissa: i128, exponent: i32) -> String {
    let scale = exponent.unsigned_abs() as usize;
    let digits = format!("{:0>width$}", mantissa.unsigned_abs(), width = scale + 1);
    let (int, fraction) = digits.split_at(digits.len() - scale);
    let sign = if mantissa < 0 { "-" } else { "" };
    let point = if fraction.trim_end_matches('0').is_empty() { "" } else { "." };
    format!("{sign}{int}{point}{}", fraction.trim_end_matches('0'))
}

/// Nanoseconds as `1w2d3h4m5.6s`, below a second as `1ms2\u{b5}s3ns`.
pub(super) fn print_duration(nanos: i128) -> String {
    let (sign, nanos) = (if nanos < 0 { "-" } else { "" }, nanos.unsigned_abs());
    let second = 1_000_000_000;
    let mut out = sign.to_owned();
    let mut rest = nanos;
    let units: &[(&str, u128)] = if nanos < second {
        &[("ms", 1_000_000), ("\u{b5}s", 1_000), ("ns", 1)]
    } else {
        &[
            ("w", 604_800 * second),
            ("d", 86_400 * second),
            ("h", 3_600 * second),
            ("m", 60 * second),
        ]
    };
    for (unit, size) in units {
        if rest >= *size {
            out.push_str(&format!("{}{unit}", rest / size));
            rest %= size;
        }
    }
    if rest > 0 {
        let seconds = print_decimal(i128::try_from(rest).unwrap(), -9);
        out.push_str(&format!("{seconds}s"));
    }
    if out.is_empty() { "0".to_owned() } else { out }
}

/// The fields of `row` that the patterns name; plain names also when they are absent.
fn values<'a>(fields: &[FieldPattern], row: &'a Row) -> Vec<&'a str> {
    let mut out = Vec::new();
    for pattern in fields {
        match pattern {
            FieldPattern::Name(name) => out.push(row.get(name)),
            FieldPattern::Prefix(prefix) => {
                let found = row.fields.iter().filter(|(n, _)| n.starts_with(prefix.as_str()));
                out.extend(found.map(|(_, v)| v.as_str()));
            }
        }
    }
    out
}

pub(super) fn all_values<'a>(fields: &[FieldPattern], rows: &[&'a Row]) -> Vec<&'a str> {
    rows.iter().flat_map(|r| values(fields, r)).collect()
}

fn answer(function: &StatsFunction, rows: &[&Row], scope: Scope) -> String {
    match function {
        StatsFunction::Rate => print_float(rows.len() as f64 / scope.seconds),
        StatsFunction::RateSum(fields) => {
            print_float(sum(&all_values(fields, rows)).0 / scope.seconds)
        }
        StatsFunction::Count(fields) if fields.iter().any(FieldPattern::is_all) => {
            rows.len().to_string()
        }
        StatsFunction::Count(fields) => {
            rows.iter().filter(|r| some_value(fields, r)).count().to_string()
        }
        StatsFunction::CountEmpty(fields) => {
            rows.iter().filter(|r| !some_value(fields, r)).count().to_string()
        }
        StatsFunction::CountUniq { fields, limit }
        | StatsFunction::CountUniqHash { fields, limit } => {
            let tuples: BTreeSet<Vec<&str>> = rows
                .iter()
                .map(|r| fields.iter().map(|f| r.get(f)).collect::<Vec<_>>())
                .filter(|t| t.iter().any(|v| !v.is_empty()))
                .collect();
            (tuples.len() as u64).min(limit.unwrap_or(u64::MAX)).to_string()
        }
        StatsFunction::Sum(fields) => print_float(sum(&all_values(fields, rows)).0),
        StatsFunction::Avg(fields) => {
            let (sum, count) = sum(&all_values(fields, rows));
            print_float(sum / count)
        }
        StatsFunction::Min(fields) => extreme(&all_values(fields, rows), Ordering::Less),
        StatsFunction::Max(fields) => extreme(&all_values(fields, rows), Ordering::Greater),
        StatsFunction::Stddev(fields) => {
            let numbers: Vec<f64> = all_values(fields, rows)
                .iter()
                .filter_map(|v| exact(v))
                .map(Exact::to_f64)
                .collect();
            let count = numbers.len() as f64;
            let mean = numbers.iter().sum::<f64>() / count;
            let squares: f64 = numbers.iter().map(|x| (x - mean) * (x - mean)).sum();
            print_float((squares / count).sqrt())
        }
        StatsFunction::FieldMax { source, field } => picked(source, field, rows, Ordering::Greater),
        StatsFunction::FieldMin { source, field } => picked(source, field, rows, Ordering::Less),
        StatsFunction::Median(fields) => quantile(0.5, all_values(fields, rows)),
        StatsFunction::Quantile { phi, fields } => {
            quantile(phi.text.parse().unwrap(), all_values(fields, rows))
        }
        StatsFunction::SumLen(fields) => {
            all_values(fields, rows).iter().map(|v| v.len()).sum::<usize>().to_string()
        }
        StatsFunction::Values { fields, limit } => json_array(all_values(fields, rows), *limit),
        StatsFunction::UniqValues { fields, limit } => {
            let set: BTreeSet<&str> =
                all_values(fields, rows).into_iter().filter(|v| !v.is_empty()).collect();
            let mut list: Vec<&str> = set.into_iter().collect();
            list.sort_by(|a, b| compare(a, b));
            json_array(list, *limit)
        }
        StatsFunction::RowMax { source, fields } => {
            picked_row(source, rows, Ordering::Greater).map_or("{}".into(), |r| object(fields, r))
        }
        StatsFunction::RowMin { source, fields } => {
            picked_row(source, rows, Ordering::Less).map_or("{}".into(), |r| object(fields, r))
        }
        StatsFunction::JsonValues { fields, sort, limit } => {
            let mut rows = rows.to_vec();
            rows.sort_by(|a, b| cmp_rows(sort, a, b));
            let objects: Vec<String> = rows.iter().map(|r| object(fields, r)).collect();
            json_array(objects.iter().map(String::as_str).collect(), *limit)
        }
        StatsFunction::Histogram(field) => {
            histogram(rows.iter().filter_map(|r| number(r.get(field))))
        }
        other => panic!("the naive evaluator does not know {other:?}"),
    }
}

/// Whether one of the fields has a value.
pub(super) fn some_value(fields: &[FieldPattern], row: &Row) -> bool {
    values(fields, row).iter().any(|v| !v.is_empty())
}

fn cmp_rows(keys: &[SortKey], a: &Row, b: &Row) -> Ordering {
    let by_key = |key: &SortKey| {
        let one = compare(a.get(&key.field), b.get(&key.field));
        if key.desc { one.reverse() } else { one }
    };
    keys.iter().map(by_key).fold(Ordering::Equal, Ordering::then)
}

/// The fields of a row as a JSON object.
fn object(fields: &[FieldPattern], row: &Row) -> String {
    let picked = row.fields.iter().filter(|(n, _)| fields.iter().any(|p| p.matches(n)));
    serde_json::to_string(&picked.collect::<BTreeMap<_, _>>()).unwrap()
}

/// Numbers by 18 buckets a decade.
fn histogram(numbers: impl Iterator<Item = f64>) -> String {
    let mut counts: BTreeMap<i32, u64> = BTreeMap::new();
    for x in numbers.filter(|x| *x >= 0.0) {
        let bucket = match x {
            x if x <= 1e-9 => -1,
            x if x > 1e18 => 27 * 18,
            x => (0..27 * 18).find(|i| x <= bound(i + 1)).unwrap(),
        };
        *counts.entry(bucket).or_default() += 1;
    }
    let each = |(bucket, hits): (i32, u64)| {
        let range = match bucket {
            -1 => "0...1.000e-09".to_owned(),
            486 => "1.000e+18...+Inf".to_owned(),
            i => format!("{}...{}", scientific(bound(i)), scientific(bound(i + 1))),
        };
        format!("{{\"vmrange\":\"{range}\",\"hits\":{hits}}}")
    };
    format!("[{}]", counts.into_iter().map(each).collect::<Vec<_>>().join(","))
}

/// The lower end of a bucket.
fn bound(bucket: i32) -> f64 {
    10f64.powf(f64::from(bucket) / 18.0 - 9.0)
}

fn scientific(x: f64) -> String {
    let text = format!("{x:.3e}");
    let (mantissa, exponent) = text.split_once('e').unwrap();
    let exponent: i32 = exponent.parse().unwrap();
    format!("{mantissa}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs())
}

fn json_array(list: Vec<&str>, limit: Option<u64>) -> String {
    let n = usize::try_from(limit.unwrap_or(u64::MAX)).unwrap();
    serde_json::to_string(&list.into_iter().take(n).collect::<Vec<_>>()).unwrap()
}

/// The sum of the numbers among the values, and how many there are; without any, not a number.
pub(super) fn sum(values: &[&str]) -> (f64, f64) {
    let numbers: Vec<Exact> = values.iter().filter_map(|v| exact(v)).collect();
    match numbers.iter().copied().reduce(Exact::add) {
        Some(total) => (total.to_f64(), numbers.len() as f64),
        None => (f64::NAN, 0.0),
    }
}

pub(super) fn print_float(x: f64) -> String {
    match x {
        _ if x.is_nan() => "NaN".to_owned(),
        f64::INFINITY => "+Inf".to_owned(),
        f64::NEG_INFINITY => "-Inf".to_owned(),
        _ => x.to_string(),
    }
}

/// The least or greatest value; of several spellings the bytewise smallest.
pub(super) fn extreme(values: &[&str], wanted: Ordering) -> String {
    let mut best: Option<&str> = None;
    for &v in values {
        let better = best.is_none_or(|b| match compare(v, b) {
            Ordering::Equal => v < b,
            other => other == wanted,
        });
        if better {
            best = Some(v);
        }
    }
    best.unwrap_or("").to_owned()
}

/// The value of `field` in the first row with the least or greatest `source`.
fn picked(source: &str, field: &str, rows: &[&Row], wanted: Ordering) -> String {
    picked_row(source, rows, wanted).map_or(String::new(), |r| r.get(field).to_owned())
}

/// The first row with the least or greatest `source`.
fn picked_row<'a>(source: &str, rows: &[&'a Row], wanted: Ordering) -> Option<&'a Row> {
    let mut best: Option<&Row> = None;
    for row in rows.iter().filter(|r| !r.get(source).is_empty()) {
        if best.is_none_or(|b| compare(row.get(source), b.get(source)) == wanted) {
            best = Some(row);
        }
    }
    best
}

fn quantile(phi: f64, mut values: Vec<&str>) -> String {
    values.sort_by(|a, b| compare(a, b).then_with(|| a.cmp(b)));
    let index = (phi * values.len() as f64).floor() as usize;
    values.get(index.min(values.len().saturating_sub(1))).copied().unwrap_or("").to_owned()
}
