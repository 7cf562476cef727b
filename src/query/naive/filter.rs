//! Which rows a filter keeps.

use std::cmp::Ordering;
use std::sync::LazyLock;

use regex_automata::meta::Regex;

use super::value::{covered, ipv4, quantity};
use super::{Row, Scope, pattern, text};
use crate::query::ast::{
    CompareOp, FieldOp, FieldPattern, Filter, LabelOp, Predicate, RangeBound, STREAM_ID_FIELD,
    StreamIds, StreamSelector, TimeFilter, TimeForm, TimePoint, ValueSet, WeekRange,
};

/// Letters, decimal digits and `_` of any script.
static WORD: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"^[\p{L}\p{Nd}_]$").unwrap());

/// Whether the row passes.
pub(crate) fn matches(filter: &Filter, row: &Row, scope: Scope) -> bool {
    match filter {
        Filter::All => true,
        Filter::And(list) => list.iter().all(|f| matches(f, row, scope)),
        Filter::Or(list) => list.iter().any(|f| matches(f, row, scope)),
        Filter::Not(f) => !matches(f, row, scope),
        Filter::Field { field: FieldPattern::Name(name), predicate } => {
            holds(predicate, row.get(name), row)
        }
        Filter::Field { field: FieldPattern::Prefix(prefix), predicate } => row
            .fields
            .iter()
            .any(|(name, value)| name.starts_with(prefix.as_str()) && holds(predicate, value, row)),
        Filter::Stream(selector) => stream_matches(selector, row),
        Filter::StreamId(StreamIds::List(ids)) => {
            ids.iter().any(|id| id.to_string() == row.get(STREAM_ID_FIELD))
        }
        Filter::Time(t) => {
            let (min, max) = time_bounds(t, scope);
            min.is_none_or(|min| min <= row.time) && max.is_none_or(|max| row.time <= max)
        }
        Filter::DayRange(d) => {
            let of_day = local(row.time, d.offset, scope).rem_euclid(86_400_000_000_000);
            d.start <= of_day && of_day < d.end
        }
        Filter::WeekRange(w) => week_matches(w, local(row.time, w.offset, scope)),
        other => panic!("the naive evaluator does not know {other:?}"),
    }
}

fn holds(predicate: &Predicate, value: &str, row: &Row) -> bool {
    match predicate {
        Predicate::Any => !value.is_empty(),
        Predicate::Phrase(p) if p.is_empty() => value.is_empty(),
        Predicate::Phrase(p) => phrase_at(value, p, true).is_some(),
        Predicate::Prefix(p) => phrase_at(value, p, false).is_some(),
        Predicate::Substring(s) => value.contains(s.as_str()),
        Predicate::PhraseFold(p) if p.is_empty() => value.is_empty(),
        Predicate::PhraseFold(p) => phrase_at(&fold(value), &fold(p), true).is_some(),
        Predicate::PrefixFold(p) if p.is_empty() => !value.is_empty(),
        Predicate::PrefixFold(p) => phrase_at(&fold(value), &fold(p), false).is_some(),
        Predicate::Exact(x) => value == x,
        Predicate::ExactPrefix(x) => value.starts_with(x.as_str()),
        Predicate::In(ValueSet::Any)
        | Predicate::ContainsAll(ValueSet::Any)
        | Predicate::ContainsAny(ValueSet::Any) => true,
        Predicate::In(ValueSet::List(list)) => list.iter().any(|x| value == x),
        Predicate::ContainsAll(ValueSet::List(list)) => {
            list.iter().all(|p| phrase_at(value, p, true).is_some())
        }
        Predicate::ContainsAny(ValueSet::List(list)) => {
            list.iter().any(|p| phrase_at(value, p, true).is_some())
        }
        Predicate::Sequence(list) => sequence(value, list),
        Predicate::Regex(re) => re.meta().is_match(value),
        Predicate::Compare { op, value: right } => compares(*op, value, right),
        Predicate::Range { min, max } => {
            let Some(v) = quantity(value) else { return false };
            let to = |bound: &RangeBound| v.cmp(quantity(&bound.value.text).unwrap());
            (to(min).is_gt() || (min.inclusive && to(min).is_eq()))
                && (to(max).is_lt() || (max.inclusive && to(max).is_eq()))
        }
        Predicate::StringRange { min, max } => min.as_str() <= value && value < max.as_str(),
        Predicate::LenRange { min, max } => {
            let len = value.chars().count() as u64;
            *min <= len && len <= *max
        }
        Predicate::Ipv4Range { min, max } => ipv4(value).is_some_and(|ip| *min <= ip && ip <= *max),
        Predicate::CompareField { op, other } => compares_field(*op, value, row.get(other)),
        Predicate::Ipv6Range { min, max } => ipv6(value).is_some_and(|ip| *min <= ip && ip <= *max),
        Predicate::EqualsCommonCase(list) => {
            list.iter().flat_map(|p| common_cases(p)).any(|p| value == p)
        }
        Predicate::ContainsCommonCase(list) => {
            list.iter().flat_map(|p| common_cases(p)).any(|p| phrase_at(value, &p, true).is_some())
        }
        Predicate::PatternMatch(p) => pattern::fits(p, value),
        Predicate::JsonArrayContainsAny(list) => {
            text::scalars(value).iter().any(|item| list.contains(item))
        }
        other => panic!("the naive evaluator does not know {other:?}"),
    }
}

/// An address of either kind, IPv4 as `::ffff:a.b.c.d`, a zone behind `%` dropped.
fn ipv6(value: &str) -> Option<u128> {
    let bare = value.split('%').next().unwrap();
    let address = match bare.parse::<std::net::IpAddr>().ok()? {
        std::net::IpAddr::V4(v4) => v4.to_ipv6_mapped(),
        std::net::IpAddr::V6(v6) => v6,
    };
    Some(u128::from(address))
}

/// All upper case, and each upper-case letter kept or lowered.
fn common_cases(p: &str) -> Vec<String> {
    let mut out = vec![String::new()];
    for c in p.chars() {
        let mut next = Vec::new();
        for start in &out {
            next.push(format!("{start}{c}"));
            if c.is_uppercase() {
                next.push(format!("{start}{}", c.to_lowercase()));
            }
        }
        out = next;
    }
    out.push(p.to_uppercase());
    out
}

pub(super) fn is_word(c: char) -> bool {
    let mut buffer = [0; 4];
    WORD.is_match(&*c.encode_utf8(&mut buffer))
}

/// Where `p` first stands in `value` with a word boundary in front and, if asked, behind.
fn phrase_at(value: &str, p: &str, whole: bool) -> Option<usize> {
    let starts_word = p.chars().next().is_some_and(is_word);
    let ends_word = p.chars().next_back().is_some_and(is_word);
    for at in 0..=value.len() {
        if !value.is_char_boundary(at) || !value[at..].starts_with(p) {
            continue;
        }
        let before = value[..at].chars().next_back().is_some_and(is_word);
        let after = value[at + p.len()..].chars().next().is_some_and(is_word);
        let inside_word = (starts_word && before) || (whole && ends_word && after);
        if !inside_word {
            return Some(at);
        }
    }
    None
}

fn sequence(value: &str, list: &[String]) -> bool {
    let mut rest = value;
    for p in list {
        match phrase_at(rest, p, true) {
            Some(at) => rest = &rest[at + p.len()..],
            None => return false,
        }
    }
    true
}

/// Lower case character by character, never two for one.
fn fold(text: &str) -> String {
    text.chars().map(|c| c.to_lowercase().next().unwrap_or(c)).collect()
}

fn ordering_fits(op: CompareOp, order: Ordering) -> bool {
    match op {
        CompareOp::Greater => order.is_gt(),
        CompareOp::GreaterOrEqual => order.is_ge(),
        CompareOp::Less => order.is_lt(),
        CompareOp::LessOrEqual => order.is_le(),
    }
}

fn compares(op: CompareOp, value: &str, right: &str) -> bool {
    match quantity(right) {
        Some(r) => quantity(value).is_some_and(|v| ordering_fits(op, v.cmp(r))),
        None => ordering_fits(op, value.as_bytes().cmp(right.as_bytes())),
    }
}

fn compares_field(op: FieldOp, a: &str, b: &str) -> bool {
    let op = match op {
        FieldOp::Equal => return a == b,
        FieldOp::LessOrEqual => CompareOp::LessOrEqual,
        FieldOp::Less => CompareOp::Less,
    };
    let order = match (quantity(a), quantity(b)) {
        (Some(x), Some(y)) => x.cmp(y),
        _ => a.as_bytes().cmp(b.as_bytes()),
    };
    ordering_fits(op, order)
}

fn stream_matches(selector: &StreamSelector, row: &Row) -> bool {
    let label = |name: &str| row.labels.get(name).map_or("", String::as_str);
    selector.alternatives.iter().any(|all| {
        all.iter().all(|f| match &f.op {
            LabelOp::Equal(v) => label(&f.label) == v,
            LabelOp::NotEqual(v) => label(&f.label) != v,
            LabelOp::Matches(re) => re.meta().is_match(label(&f.label)),
            LabelOp::NotMatches(re) => !re.meta().is_match(label(&f.label)),
            LabelOp::In(list) => list.iter().any(|v| v == "*" || v == label(&f.label)),
            LabelOp::NotIn(list) => !list.iter().any(|v| v == "*" || v == label(&f.label)),
        })
    })
}

/// First and last nanosecond of a point in time.
fn point(p: &TimePoint, scope: Scope) -> (i64, i64) {
    match p {
        TimePoint::Now => (scope.now, scope.now),
        TimePoint::BeforeNow(d) => (scope.now - d.nanos, scope.now - d.nanos),
        TimePoint::Text(t) => {
            let (lo, hi, _) = covered(t, scope.clock).unwrap_or_else(|| panic!("a time: {t}"));
            (lo, hi)
        }
    }
}

/// The first and the last time that pass; `None` where the range is open.
fn time_bounds(filter: &TimeFilter, scope: Scope) -> (Option<i64>, Option<i64>) {
    let now = scope.now;
    let (min, max) = match &filter.form {
        TimeForm::Last(d) => (Some(now - d.nanos), Some(now - 1)),
        TimeForm::OlderThan(d) => (None, Some(now - d.nanos - 1)),
        TimeForm::At(p) => {
            let (lo, hi) = point(p, scope);
            (Some(lo), Some(hi))
        }
        TimeForm::Compare { op, point: p } => {
            let (lo, hi) = point(p, scope);
            match op {
                CompareOp::Greater => (Some(lo + 1), None),
                CompareOp::GreaterOrEqual => (Some(lo), None),
                CompareOp::Less => (None, Some(lo - 1)),
                CompareOp::LessOrEqual => (None, Some(hi)),
            }
        }
        TimeForm::Range { min, min_inclusive, max, max_inclusive } => {
            let ((lo, _), (end_lo, end_hi)) = (point(min, scope), point(max, scope));
            let last = if *max_inclusive { end_hi } else { end_lo - 1 };
            (Some(lo + i64::from(!min_inclusive)), Some(last))
        }
        TimeForm::UpToNow => (None, Some(now - 1)),
    };
    let earlier = filter.offset.as_ref().map_or(0, |d| d.nanos);
    (min.map(|t| t - earlier), max.map(|t| t - earlier))
}

/// The seconds of the range of time that a query asks for; one without a closed range.
pub(super) fn seconds(filter: &Filter, scope: Scope) -> f64 {
    let (mut min, mut max) = (None, None);
    let mut open = vec![filter];
    while let Some(filter) = open.pop() {
        match filter {
            Filter::And(list) => open.extend(list),
            Filter::Time(t) => {
                let (lo, hi) = time_bounds(t, scope);
                min = min.max(lo);
                max = [max, hi].into_iter().flatten().min();
            }
            _ => {}
        }
    }
    match (min, max) {
        (Some(min), Some(max)) if min <= max => (max - min + 1) as f64 / 1e9,
        _ => 1.0,
    }
}

/// What a clock shows at a time: that of an offset, or of the query's zone.
fn local(time: i64, offset: Option<i64>, scope: Scope) -> i64 {
    offset.map_or_else(|| scope.clock.shown(time), |ahead| time + ahead)
}

fn week_matches(week: &WeekRange, local: i64) -> bool {
    let day = local.div_euclid(86_400_000_000_000);
    // 1970-01-01 was a Thursday; Sunday is 0.
    let day = (day + 4).rem_euclid(7);
    let (start, end) = (week.start as i64, week.end as i64);
    (day > start || (week.start_inclusive && day == start))
        && (day < end || (week.end_inclusive && day == end))
}
