//! The naive evaluator gives the golden answers, where it knows the pipes.

use std::collections::BTreeMap;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use serde_json::Value;

use super::*;
use crate::query::ast::Query;

#[path = "../../../tests/support/compare.rs"]
mod compare;

use compare::{Rules, difference, row_of, text_of};

/// The rows of a data set in the order of its lines.
fn load(path: &Path, stream_fields: &[&str]) -> Vec<Row> {
    let text = fs::read_to_string(path).unwrap();
    text.lines().map(|line| load_row(line, stream_fields)).collect()
}

fn load_row(line: &str, stream_fields: &[&str]) -> Row {
    let mut row = Row::default();
    flatten("", &serde_json::from_str(line).unwrap(), &mut row);
    row.time = value::rfc3339(row.get("_time")).unwrap();
    row.set("_time", &print_time(row.time));
    for field in stream_fields {
        let label = row.get(field).to_owned();
        if !label.is_empty() {
            row.labels.insert((*field).to_owned(), label);
        }
    }
    let escape = |v: &String| v.replace('\\', "\\\\").replace('"', "\\\"");
    let labels: Vec<String> =
        row.labels.iter().map(|(k, v)| format!("{k}=\"{}\"", escape(v))).collect();
    let stream = format!("{{{}}}", labels.join(","));
    row.set("_stream", &stream);
    row.set("_stream_id", &stream);
    row
}

fn flatten(prefix: &str, value: &Value, row: &mut Row) {
    for (name, value) in value.as_object().unwrap() {
        let name = format!("{prefix}{name}");
        match value {
            Value::Object(_) => flatten(&format!("{name}."), value, row),
            other => row.set(&name, &text_of(other)),
        }
    }
}

fn strings(value: &Value) -> Vec<&str> {
    value.as_array().map_or(Vec::new(), |list| list.iter().filter_map(Value::as_str).collect())
}

#[test]
fn golden_answers() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/golden");
    let text = fs::read_to_string(dir.join("cases.jsonl")).unwrap();
    let mut data: BTreeMap<String, Vec<Row>> = BTreeMap::new();
    let (mut known, mut wrong) = (0, Vec::new());
    for line in text.lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let Some(expect) = case["expect"].as_array() else { continue };
        let Ok(query) = case["query"].as_str().unwrap().parse::<Query>() else { continue };
        let file = case["data"].as_str().unwrap();
        let fields = strings(&case["stream_fields"]);
        let rows = data.entry(file.to_owned()).or_insert_with(|| load(&dir.join(file), &fields));
        let far = "2033-01-01T00:00:00Z";
        let now = value::rfc3339(case["now"].as_str().unwrap_or(far)).unwrap();
        let run = || run(&query, rows, Scope::at(now)).0;
        // Panics where it does not know a pipe or a filter.
        let Ok(have) = catch_unwind(AssertUnwindSafe(run)) else { continue };
        known += 1;
        let json = case["json"].as_object().map(|modes| {
            modes.iter().map(|(field, mode)| (field.clone(), mode.as_str().unwrap().to_owned()))
        });
        let rules = Rules {
            ordered: case["ordered"].as_bool().unwrap_or(false),
            approx: strings(&case["approx"]).into_iter().map(str::to_owned).collect(),
            json: json.map(Iterator::collect).unwrap_or_default(),
        };
        let want: Vec<_> = expect.iter().map(row_of).collect();
        let have: Vec<_> = have.into_iter().map(|r| r.fields).collect();
        if let Some(why) = difference(&rules, &want, &have) {
            wrong.push(format!("{}: {}\n  {why}", case["id"], case["query"]));
        }
    }
    println!("{known} cases are known");
    assert!(wrong.is_empty(), "{} of {known}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(known > 1_250, "only {known} cases are known");
}
