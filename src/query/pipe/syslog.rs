//! Syslog lines: RFC 5424, and the older form that RFC 3164 describes.

use super::unpack::Found;
use crate::record::{
    NANOS_PER_SECOND, Timestamp, civil_from_days, days_from_civil, days_in_month, parse_rfc3339,
};

const FACILITIES: [&str; 24] = [
    "kern",
    "user",
    "mail",
    "daemon",
    "auth",
    "syslog",
    "lpr",
    "news",
    "uucp",
    "cron",
    "authpriv",
    "ftp",
    "ntp",
    "security",
    "console",
    "solaris-cron",
    "local0",
    "local1",
    "local2",
    "local3",
    "local4",
    "local5",
    "local6",
    "local7",
];

const LEVELS: [&str; 8] =
    ["emerg", "alert", "critical", "error", "warning", "notice", "info", "debug"];

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// Reports the fields of a line. Times without a year are taken to be of the year that ends at
/// most a day after `now`; times without a zone are `offset` nanoseconds ahead of UTC.
pub(crate) fn parse(line: &str, now: Timestamp, offset: i64, found: &mut Found<'_>) {
    let rest = match line.strip_prefix('<') {
        None => line,
        Some(tail) => {
            let Some((priority, rest)) = tail.split_once('>') else {
                return found("priority", tail.as_bytes());
            };
            found("priority", priority.as_bytes());
            let Ok(number) = priority.parse::<u32>() else { return };
            report_priority(number, found);
            rest
        }
    };
    match rest.strip_prefix("1 ") {
        Some(tail) => rfc5424(tail, found),
        None => rfc3164(rest, now, offset, found),
    }
}

fn report_priority(number: u32, found: &mut Found<'_>) {
    let (facility, severity) = (number / 8, number % 8);
    found("facility", facility.to_string().as_bytes());
    found("severity", severity.to_string().as_bytes());
    let word = |words: &[&'static str], i: u32| words.get(i as usize).copied();
    if let Some(level) = word(&LEVELS, severity) {
        found("level", level.as_bytes());
    }
    let keyword = match word(&FACILITIES, facility) {
        Some(name) => name.to_owned(),
        None => format!("unknown[{facility}]"),
    };
    found("facility_keyword", keyword.as_bytes());
}

fn rfc5424(line: &str, found: &mut Found<'_>) {
    found("format", b"rfc5424");
    let mut rest = line;
    for name in ["timestamp", "hostname", "app_name", "proc_id", "msg_id"] {
        match rest.split_once(' ') {
            Some((value, tail)) => {
                found(name, value.as_bytes());
                rest = tail;
            }
            None => return found(name, rest.as_bytes()),
        }
    }
    let Some(tail) = structured_data(rest, found) else { return };
    let message = tail.strip_prefix(' ').unwrap_or(tail);
    let message = message.strip_prefix('\u{feff}').unwrap_or(message);
    found("message", message.as_bytes());
}

/// Reports `[id name="value" ...]` elements as `id.name` and returns what follows them.
fn structured_data<'a>(text: &'a str, found: &mut Found<'_>) -> Option<&'a str> {
    if let Some(tail) = text.strip_prefix('-') {
        return Some(tail);
    }
    let mut rest = text;
    while let Some(tail) = rest.strip_prefix('[') {
        let end = tail.find([' ', ']'])?;
        let (id, mut tail) = tail.split_at(end);
        if tail.starts_with(']') {
            found(id, b"");
        }
        loop {
            if let Some(after) = tail.strip_prefix(']') {
                rest = after;
                break;
            }
            let (name, after) = tail.trim_start_matches(' ').split_once("=\"")?;
            let (value, after) = param_value(after)?;
            found(&format!("{id}.{name}"), value.as_bytes());
            tail = after;
        }
    }
    Some(rest)
}

/// A value up to its closing quote; `\"`, `\\` and `\]` are decoded.
fn param_value(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((i, c)) = chars.next() {
        match c {
            '"' => return Some((value, text.get(i + 1..)?)),
            '\\' => match chars.next()?.1 {
                c @ ('"' | '\\' | ']') => value.push(c),
                c => value.extend(['\\', c]),
            },
            c => value.push(c),
        }
    }
    None
}

fn rfc3164(line: &str, now: Timestamp, offset: i64, found: &mut Found<'_>) {
    found("format", b"rfc3164");
    let Some((time, rest)) = header_time(line, now, offset) else {
        return found("message", line.as_bytes());
    };
    found("timestamp", time.to_string().as_bytes());
    let Some(rest) = rest.strip_prefix(' ') else { return };
    let Some((host, rest)) = rest.split_once(' ') else {
        return found("hostname", rest.as_bytes());
    };
    found("hostname", host.as_bytes());
    // The tag: everything up to `:`, `[` or a blank.
    let end = rest.find([':', '[', ' ']).unwrap_or(rest.len());
    let (tag, mut rest) = rest.split_at(end);
    if rest.starts_with(' ') || rest.is_empty() {
        // No tag: the word belongs to the message.
        return found("message", format!("{tag}{rest}").as_bytes());
    }
    found("app_name", tag.as_bytes());
    if let Some(tail) = rest.strip_prefix('[') {
        let Some((id, tail)) = tail.split_once(']') else {
            return found("message", rest.as_bytes());
        };
        found("proc_id", id.as_bytes());
        rest = tail;
    }
    let message = rest.strip_prefix(':').unwrap_or(rest);
    found("message", message.strip_prefix(' ').unwrap_or(message).as_bytes());
}

/// `Mar  1 04:00:13` or an RFC 3339 time at the start of a line.
fn header_time(line: &str, now: Timestamp, offset: i64) -> Option<(Timestamp, &str)> {
    let end = line.find(' ')?;
    if let Some(time) = parse_rfc3339(line.get(..end)?.as_bytes()) {
        return Some((time, line.get(end..)?));
    }
    let (stamp, rest) = (line.get(..15)?, line.get(15..)?);
    let month = (1..).zip(MONTHS).find(|(_, m)| stamp.starts_with(m))?.0;
    let day = stamp.get(4..6)?.trim_start().parse::<i64>().ok()?;
    let clock: Vec<i64> =
        stamp.get(7..)?.split(':').map(|n| n.parse().ok()).collect::<Option<_>>()?;
    let [hour @ 0..24, minute @ 0..60, second @ 0..=60] = clock.as_slice() else { return None };
    let seconds = hour * 3_600 + minute * 60 + second;
    let (year, _, _) = civil_from_days(i64::from(now.day()));
    let in_year = |year: i64| {
        let valid = (1..=days_in_month(year, month)).contains(&day);
        let days = days_from_civil(year, month, day);
        let nanos =
            days.checked_mul(86_400)?.checked_add(seconds)?.checked_mul(NANOS_PER_SECOND)?;
        valid.then_some(nanos.saturating_sub(offset))
    };
    let latest = now.as_nanos().saturating_add(86_400 * NANOS_PER_SECOND);
    // The 29th of February may need to go back to a leap year.
    let time = (year - 8..=year + 1).rev().filter_map(in_year).find(|ns| *ns <= latest)?;
    Some((Timestamp::from_nanos(time), rest))
}
