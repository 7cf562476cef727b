//! Texts of known formats taken apart.

use serde_json::Value;

use super::Row;
use super::extract::unquoted;
use super::filter::is_word;
use super::text::put;
use crate::query::ast::{FieldPattern, Unpack, UnpackFormat, UnpackWords};

/// `unpack_json`, `unpack_logfmt`, `unpack_syslog`.
pub(super) fn unpack(plan: &Unpack, row: &mut Row) {
    let text = row.get(&plan.field).to_owned();
    let mut found: Vec<(String, String)> = Vec::new();
    match &plan.format {
        UnpackFormat::Json if !text.starts_with('{') => return,
        UnpackFormat::Json => {
            if let Ok(value) = serde_json::from_str(&text) {
                flatten("", &value, &mut found);
            }
        }
        UnpackFormat::Logfmt => logfmt(&text, &mut found),
        UnpackFormat::Syslog { .. } => syslog(&text, &mut found),
    }
    let listed = plan.fields.iter().filter_map(|pattern| match pattern {
        FieldPattern::Name(name) => Some((name.clone(), String::new())),
        FieldPattern::Prefix(_) => None,
    });
    let missing: Vec<_> = listed.filter(|(n, _)| found.iter().all(|f| f.0 != *n)).collect();
    // Of a name that comes several times the last one counts.
    let last = (0..found.len()).filter(|&i| found[i + 1..].iter().all(|f| f.0 != found[i].0));
    let found: Vec<_> = last.map(|i| found[i].clone()).chain(missing).collect();
    for (name, value) in found {
        if plan.fields.iter().any(|p| p.matches(&name)) {
            put(row, &format!("{}{name}", plan.result_prefix), &value, plan.keep);
        }
    }
}

fn flatten(prefix: &str, value: &Value, found: &mut Vec<(String, String)>) {
    for (name, value) in value.as_object().unwrap() {
        let name = format!("{prefix}{name}");
        match value {
            Value::Null => {}
            Value::Object(_) => flatten(&format!("{name}."), value, found),
            Value::String(text) => found.push((name, text.clone())),
            other => found.push((name, other.to_string())),
        }
    }
}

/// `k=v` with single blanks between them.
fn logfmt(text: &str, found: &mut Vec<(String, String)>) {
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.find(['=', ' ']).unwrap_or(rest.len());
        let (key, tail) = rest.split_at(end);
        let Some(value) = tail.strip_prefix('=') else {
            if !key.is_empty() || tail.is_empty() {
                found.push((key.to_owned(), String::new()));
            }
            rest = tail.strip_prefix(' ').unwrap_or("");
            continue;
        };
        let (value, tail) = match unquoted(value) {
            Some(quoted) => quoted,
            None => {
                let (value, tail) = value.split_at(value.find(' ').unwrap_or(value.len()));
                (value.to_owned(), tail)
            }
        };
        found.push((key.to_owned(), value));
        rest = tail.strip_prefix(' ').unwrap_or("");
    }
}

const KEYWORDS: &str = "kern user mail daemon auth syslog lpr news uucp cron authpriv ftp ntp \
    security console solaris-cron local0 local1 local2 local3 local4 local5 local6 local7";
const LEVELS: &str = "emerg alert critical error warning notice info debug";

/// RFC 5424 without structured data, and lines without a header.
fn syslog(text: &str, found: &mut Vec<(String, String)>) {
    let mut add = |name: &str, value: &str| found.push((name.to_owned(), value.to_owned()));
    let mut rest = text;
    if let Some(tail) = text.strip_prefix('<') {
        let Some((priority, tail)) = tail.split_once('>') else { return add("priority", tail) };
        add("priority", priority);
        let Ok(number) = priority.parse::<usize>() else { return };
        let (facility, severity) = (number / 8, number % 8);
        add("facility", &facility.to_string());
        add("severity", &severity.to_string());
        add("level", LEVELS.split(' ').nth(severity).unwrap());
        match KEYWORDS.split_ascii_whitespace().nth(facility) {
            Some(keyword) => add("facility_keyword", keyword),
            None => add("facility_keyword", &format!("unknown[{facility}]")),
        }
        rest = tail;
    }
    let Some(tail) = rest.strip_prefix("1 ") else {
        let month =
            rest.get(..3).is_some_and(|m| "JanFebMarAprMayJunJulAugSepOctNovDec".contains(m));
        assert!(!month, "times without a year are not for the naive evaluator");
        add("format", "rfc3164");
        return add("message", rest);
    };
    add("format", "rfc5424");
    let mut parts = tail.splitn(7, ' ');
    for name in ["timestamp", "hostname", "app_name", "proc_id", "msg_id"] {
        add(name, parts.next().unwrap());
    }
    assert_eq!(parts.next(), Some("-"), "structured data is not for the naive evaluator");
    add("message", parts.next().unwrap_or(""));
}

/// `unpack_words`.
pub(super) fn unpack_words(plan: &UnpackWords, row: &mut Row) {
    let mut words: Vec<&str> = row.get(&plan.field).split(|c| !is_word(c)).collect();
    words.retain(|word| !word.is_empty());
    if plan.drop_duplicates {
        let all = words.clone();
        let mut at = 0;
        words.retain(|word| {
            at += 1;
            !all[..at - 1].contains(word)
        });
    }
    let array = serde_json::to_string(&words).unwrap();
    row.set(&plan.result, &array);
}
