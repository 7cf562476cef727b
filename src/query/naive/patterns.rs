//! `patterns`.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::filter::is_word;
use super::value::{compare, print_time, rfc3339};
use super::{Row, Scope, matches};
use crate::query::Regex;
use crate::query::ast::Patterns;

static HEX: LazyLock<Regex> = LazyLock::new(|| Regex::new("[0-9A-Fa-f]+").unwrap());

/// What the groups of [`GROUPS`] are called.
const NAMES: [&str; 5] = ["<DATETIME>", "<UUID>", "<IP4>", "<TIME>", "<DATE>"];

static GROUPS: LazyLock<Regex> = LazyLock::new(|| {
    let date = "(?:<N>-<N>-<N>|<N>/<N>/<N>)";
    let time = "<N>:<N>:<N>(?:[.,]<N>)?";
    let uuid = "<N>-<N>-<N>-<N>-<N>";
    let ip4 = "<N>\\.<N>\\.<N>\\.<N>";
    let zoned = format!("{date}[T ]{time}(?:Z|[+-]<N>:<N>)?");
    Regex::new(&format!("({zoned})|({uuid})|({ip4})|({time})|({date})")).unwrap()
});

/// What is known of one pattern.
#[derive(Default)]
struct Group {
    hits: u64,
    known: bool,
    times: Vec<i64>,
    newest: Option<(Option<i64>, String)>,
}

/// The rows that `patterns` makes of `rows`.
pub(super) fn patterns(plan: &Patterns, rows: &[Row], scope: Scope) -> Vec<Row> {
    let baseline = plan.baseline.as_ref().map(|b| b.filter());
    let mut groups: BTreeMap<Vec<String>, Group> = BTreeMap::new();
    let mut total = 0;
    for row in rows {
        let mut key: Vec<String> = plan.by.iter().map(|f| row.get(f).to_owned()).collect();
        key.push(pattern(row.get("_msg")));
        let group = groups.entry(key).or_default();
        if baseline.as_ref().is_some_and(|b| matches(b, row, scope)) {
            group.known = true;
            continue;
        }
        total += 1;
        group.hits += 1;
        let time = rfc3339(row.get("_time"));
        group.times.extend(time);
        if group.newest.as_ref().is_none_or(|(newest, _)| time >= *newest) {
            group.newest = Some((time, row.get("_msg").to_owned()));
        }
    }
    let mut groups: Vec<_> = groups.into_iter().filter(|(_, g)| g.hits > 0 && !g.known).collect();
    groups.sort_by(|(a, x), (b, y)| {
        let by_value = |(a, b): (&String, &String)| compare(a, b).then_with(|| a.cmp(b));
        let by_key = a.iter().zip(b).map(by_value).fold(Ordering::Equal, Ordering::then);
        y.hits.cmp(&x.hits).then(by_key)
    });
    groups.into_iter().map(|(key, group)| row_of(plan, &key, &group, total)).collect()
}

fn row_of(plan: &Patterns, key: &[String], group: &Group, total: u64) -> Row {
    let mut row = Row::default();
    let names = plan.by.iter().map(String::as_str).chain(["pattern"]);
    names.zip(key).for_each(|(name, value)| row.set(name, value));
    row.set("hits", &group.hits.to_string());
    let share = (group.hits * 2_000_000 + total) / (2 * total);
    let share = format!("{}.{:06}", share / 1_000_000, share % 1_000_000);
    row.set("share", share.trim_end_matches('0').trim_end_matches('.'));
    let time = |time: Option<&i64>| time.map_or(String::new(), |time| print_time(*time));
    row.set("first", &time(group.times.iter().min()));
    row.set("last", &time(group.times.iter().max()));
    row.set("example", group.newest.as_ref().map_or("", |(_, message)| message));
    row
}

/// The message with placeholders.
fn pattern(message: &str) -> String {
    let masked = each_word(message, word);
    let (mut out, mut done) = (String::new(), 0);
    for found in GROUPS.meta().captures_iter(masked.as_bytes()) {
        let all = found.get_match().unwrap();
        out.push_str(&masked[done..all.start()]);
        let which = (1..=NAMES.len()).find(|i| found.get_group(*i).is_some()).unwrap();
        out.push_str(NAMES[which - 1]);
        done = all.end();
    }
    out + &masked[done..]
}

/// A word with its numbers replaced, or replaced itself.
fn word(word: &str) -> String {
    let out = collapsed(word);
    if out.contains(|c: char| c.is_ascii_digit()) { "<W>".to_owned() } else { out }
}

/// The text with the numbers of its words replaced.
pub(super) fn collapse_nums(text: &str) -> String {
    each_word(text, collapsed)
}

/// The text, whose numbers are replaced, with groups of them named, one kind after the other.
pub(super) fn prettified(collapsed: &str) -> String {
    let named = collapsed
        .replace("<N>-<N>-<N>-<N>-<N>", "<UUID>")
        .replace("<N>.<N>.<N>.<N>", "<IP4>")
        .replace("<N>:<N>:<N>", "<TIME>")
        .replace("<TIME>.<N>", "<TIME>")
        .replace("<TIME>,<N>", "<TIME>")
        .replace("<N>-<N>-<N>", "<DATE>")
        .replace("<N>/<N>/<N>", "<DATE>")
        .replace("<DATE>T<TIME>", "<DATETIME>")
        .replace("<DATE> <TIME>", "<DATETIME>");
    ["Z", "+<N>:<N>", "-<N>:<N>"]
        .into_iter()
        .fold(named, |text, zone| text.replace(&format!("<DATETIME>{zone}"), "<DATETIME>"))
}

/// The text with something else in place of each word.
fn each_word(text: &str, other: fn(&str) -> String) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let end = rest.find(|c| is_word(c) != is_word(first)).unwrap_or(rest.len());
        let (run, tail) = rest.split_at(end);
        out.push_str(&if is_word(first) { other(run) } else { run.to_owned() });
        rest = tail;
    }
    out
}

/// A word with its numbers replaced.
fn collapsed(word: &str) -> String {
    let (mut out, mut done) = (String::new(), 0);
    for found in HEX.meta().find_iter(word.as_bytes()) {
        let run = &word[found.start()..found.end()];
        let decimal = run.chars().all(|c| c.is_ascii_digit());
        let before = word[..found.start()].chars().next_back();
        let after = word[found.end()..].chars().next();
        if (decimal || run.len() >= 4 && run.len().is_multiple_of(2))
            && before.is_none_or(|c| "TXxvshm".contains(c))
            && after.is_none_or(|c| "TZsmhun\u{b5}\u{3bc}".contains(c))
        {
            out.push_str(&word[done..found.start()]);
            out.push_str("<N>");
            done = found.end();
        }
    }
    out + &word[done..]
}
