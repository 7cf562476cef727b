//! When an answer counts as the expected one: the rules of `tests/data/golden/README.md`.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// A row without empty values and without fields that depend on the engine.
pub type Row = BTreeMap<String, String>;

/// What a golden case says about the comparison.
#[derive(Debug, Default)]
pub struct Rules {
    pub ordered: bool,
    pub approx: Vec<String>,
    pub json: BTreeMap<String, String>,
}

/// `None` if `have` is as good as `want`, else what differs.
pub fn difference(rules: &Rules, want: &[Row], have: &[Row]) -> Option<String> {
    let mut want = normal(rules, want);
    let mut have = normal(rules, have);
    if !rules.ordered {
        let exact_first = |row: &Row| {
            let hard: Vec<_> = row
                .iter()
                .filter(|(name, _)| !rules.approx.contains(name))
                .map(|(n, v)| (n.clone(), v.clone()))
                .collect();
            let soft: Vec<_> = rules.approx.iter().filter_map(|n| row.get(n)).collect();
            let soft: Vec<String> = soft.iter().map(|v| sortable(v)).collect();
            (hard, soft)
        };
        want.sort_by_key(exact_first);
        have.sort_by_key(exact_first);
    }
    if want.len() != have.len() {
        let lost = want.iter().find(|w| !have.contains(w));
        let extra = have.iter().find(|h| !want.contains(h));
        let (w, h) = (want.len(), have.len());
        return Some(format!("want {w} rows, got {h}; lost {lost:?}; unexpected {extra:?}"));
    }
    let differ = want.iter().zip(&have).position(|(w, h)| !same(rules, w, h))?;
    Some(format!("row {}: want {:?}, got {:?}", differ + 1, want[differ], have[differ]))
}

/// The number as a text that sorts like it.
fn sortable(value: &str) -> String {
    match value.parse::<f64>() {
        // Rounded, so that the tolerance does not change the order of what is close.
        Ok(x) if x.is_finite() => format!("{:+.9e}", x),
        _ => value.to_owned(),
    }
}

fn same(rules: &Rules, want: &Row, have: &Row) -> bool {
    want.len() == have.len()
        && want.iter().all(|(name, w)| match have.get(name) {
            Some(h) => w == h || (rules.approx.contains(name) && close(w, h)),
            None => false,
        })
}

fn close(a: &str, b: &str) -> bool {
    match (a.parse::<f64>(), b.parse::<f64>()) {
        (Ok(x), Ok(y)) if x.is_nan() || y.is_nan() => x.is_nan() && y.is_nan(),
        (Ok(x), Ok(y)) => x == y || (x - y).abs() <= (1e-9 * x.abs().max(y.abs())).max(1e-12),
        _ => false,
    }
}

fn normal(rules: &Rules, rows: &[Row]) -> Vec<Row> {
    let mut out: Vec<Row> = rows.to_vec();
    for row in &mut out {
        row.retain(|name, value| name != "_stream_id" && !value.is_empty());
        for (name, value) in row.iter_mut() {
            if let Some(mode) = rules.json.get(name) {
                *value = by_meaning(value, mode);
            }
        }
    }
    out.retain(|row| !row.is_empty());
    out
}

/// The text in a form in which equal meanings are equal texts.
fn by_meaning(text: &str, mode: &str) -> String {
    if mode == "logfmt" {
        return logfmt_items(text).join(" ");
    }
    let Ok(value) = serde_json::from_str::<Value>(text) else { return text.to_owned() };
    let value = match value {
        Value::Array(items) if mode == "bag" => {
            let parsed = items.into_iter().map(|item| match &item {
                Value::String(s) if s.starts_with(['{', '[']) => {
                    serde_json::from_str(s).unwrap_or(item)
                }
                _ => item,
            });
            let mut items: Vec<Value> = parsed.map(canonical).collect();
            items.sort_by_key(Value::to_string);
            Value::Array(items)
        }
        other => canonical(other),
    };
    value.to_string()
}

/// Members in the order of their names, without empty ones and without `_stream_id`.
fn canonical(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let kept: BTreeMap<String, Value> = members
                .into_iter()
                .filter(|(name, v)| name != "_stream_id" && v.as_str() != Some(""))
                .map(|(name, v)| (name, canonical(v)))
                .collect();
            Value::Object(kept.into_iter().collect::<Map<_, _>>())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(canonical).collect()),
        other => other,
    }
}

/// The sorted non-empty `k=v` items of a logfmt line.
fn logfmt_items(text: &str) -> Vec<String> {
    let mut items = vec![String::new()];
    let mut quoted = false;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c == ' ' && !quoted {
            items.push(String::new());
            continue;
        }
        let item = items.last_mut().unwrap();
        item.push(c);
        match c {
            '"' => quoted = !quoted,
            '\\' if quoted => item.extend(chars.next()),
            _ => {}
        }
    }
    items.retain(|i| !i.is_empty() && !i.ends_with('=') && !i.ends_with("=\"\""));
    items.sort();
    items
}

/// A member's value as text: strings as they are, `null` as empty, anything else as JSON.
pub fn text_of(value: &Value) -> String {
    match value {
        Value::String(s) => s.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// A row from a JSON object.
pub fn row_of(value: &Value) -> Row {
    let members = value.as_object().unwrap();
    members.iter().map(|(name, v)| (name.clone(), text_of(v))).collect()
}
