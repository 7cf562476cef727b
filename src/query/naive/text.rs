//! Pipes that make texts of texts.

use serde_json::Value;
use serde_json::value::RawValue;

use super::value::{print_time, rfc3339};
use super::{Row, Scope, bytes, extract, format, math, unpack};
use crate::query::ast::{KeepMode, Pipe};

/// Gives a field a new value, unless the old one has to stay.
pub(super) fn put(row: &mut Row, name: &str, value: &str, keep: KeepMode) {
    let stays = match keep {
        KeepMode::Overwrite => false,
        KeepMode::KeepOriginal => !row.get(name).is_empty(),
        KeepMode::SkipEmpty => value.is_empty(),
    };
    if !stays {
        row.set(name, value);
    }
}

/// What a pipe that looks at one row at a time makes of it; `None` if this is no such pipe.
pub(super) fn rewrite(pipe: &Pipe, row: &mut Row, scope: Scope) -> Option<()> {
    match pipe {
        Pipe::Math(plan) => math::apply(&plan.items, row, scope),
        Pipe::Extract(plan) => extract::extract(plan, row),
        Pipe::ExtractRegexp(plan) => extract::extract_regexp(plan, row),
        Pipe::ReplaceRegexp(plan) => extract::replace_regexp(plan, row),
        Pipe::Format(plan) => format::format(plan, row),
        Pipe::Pack(plan) => format::pack(plan, row),
        Pipe::SetStreamFields(plan) => format::set_stream_fields(plan, row),
        Pipe::Unpack(plan) => unpack::unpack(plan, row),
        Pipe::UnpackWords(plan) => unpack::unpack_words(plan, row),
        Pipe::TimeAdd { offset, field } => {
            if let Some(time) = rfc3339(row.get(field)) {
                row.set(field, &print_time(time.saturating_add(offset.nanos)));
            }
        }
        Pipe::Hash { field, result } => {
            row.set(result, &bytes::hash(row.get(field).as_bytes()).to_string());
        }
        Pipe::Decolorize { field } => row.set(field, &bytes::decolorize(row.get(field))),
        Pipe::Len { field, result } => row.set(result, &row.get(field).len().to_string()),
        Pipe::JsonArrayLen { field, result } => {
            let len = items(row.get(field)).map_or(0, |list| list.len());
            row.set(result, &len.to_string());
        }
        Pipe::JsonArrayConcat { separator, field, result } => {
            let list = items(row.get(field)).unwrap_or_default();
            let texts: Vec<String> = list.iter().map(text).collect();
            row.set(result, &texts.join(separator));
        }
        Pipe::Split { separator, field, result } => {
            let value = row.get(field);
            let parts: Vec<String> = if separator.is_empty() {
                value.chars().map(String::from).collect()
            } else {
                value.split(separator.as_str()).map(str::to_owned).collect()
            };
            let array = serde_json::to_string(&parts).unwrap();
            row.set(result, &array);
        }
        Pipe::Coalesce { fields, default, result } => {
            let values = fields.iter().flat_map(|pattern| {
                row.fields.iter().filter(|(name, _)| pattern.matches(name)).map(|(_, v)| v)
            });
            let first = values.into_iter().next().unwrap_or(default).clone();
            row.set(result, &first);
        }
        Pipe::Replace(plan) => {
            let most = plan.limit.map_or(usize::MAX, |n| usize::try_from(n).unwrap());
            let new = row.get(&plan.field).replacen(&plan.old, &plan.new, most);
            row.set(&plan.field, &new);
        }
        _ => return None,
    }
    Some(())
}

/// One row for each item of the arrays in `fields`, shorter arrays padded; one row without a value
/// where there are no items.
pub(super) fn unrolled(fields: &[String], row: &Row) -> Vec<Row> {
    let lists: Vec<Vec<Value>> =
        fields.iter().map(|f| items(row.get(f)).unwrap_or_default()).collect();
    let longest = lists.iter().map(Vec::len).max().unwrap_or(0).max(1);
    let one = |i: usize| {
        let mut out = row.clone();
        for (field, list) in fields.iter().zip(&lists) {
            out.set(field, &list.get(i).map_or(String::new(), text));
        }
        out
    };
    (0..longest).map(one).collect()
}

/// The items of a JSON array.
fn items(value: &str) -> Option<Vec<Value>> {
    if value.starts_with('[') { serde_json::from_str(value).ok() } else { None }
}

/// Strings as they are, everything else as JSON.
fn text(value: &Value) -> String {
    match value {
        Value::String(s) => s.clone(),
        other => other.to_string(),
    }
}

/// The items of a JSON array that are neither arrays nor objects: strings decoded, others as they
/// are written.
pub(super) fn scalars(value: &str) -> Vec<String> {
    let list: Vec<&RawValue> = serde_json::from_str(value).unwrap_or_default();
    let raw = list.iter().map(|item| item.get()).filter(|t| !t.starts_with(['[', '{']));
    raw.map(|t| serde_json::from_str::<String>(t).unwrap_or_else(|_| t.to_owned())).collect()
}
