//! Small functions from text to text.

use xxhash_rust::xxh64::xxh64;

use super::transform::lossy;
use crate::query::Regex;
use crate::query::ast::{Replace, ReplaceRegexp};
use crate::query::column::{push_int, push_time};
use crate::query::json;
use crate::record::parse_rfc3339;

/// `len`: the length in bytes.
pub(crate) fn len(value: &[u8], out: &mut Vec<u8>) {
    push_int(out, i64::try_from(value.len()).unwrap_or(i64::MAX));
}

/// `hash`: the low 53 bits of xxh64.
pub(crate) fn hash(value: &[u8], out: &mut Vec<u8>) {
    let hash = xxh64(value, 0) & ((1 << 53) - 1);
    push_int(out, i64::try_from(hash).unwrap_or(i64::MAX));
}

/// `json_array_len`: 0 for anything but an array.
pub(crate) fn json_array_len(value: &[u8], out: &mut Vec<u8>) {
    let items = json::array_items(value.trim_ascii_start()).map_or(0, |items| items.len());
    push_int(out, i64::try_from(items).unwrap_or(i64::MAX));
}

/// `json_array_concat`: the items with a separator between them.
pub(crate) fn json_array_concat(separator: &[u8], value: &[u8], out: &mut Vec<u8>) {
    let items = json::array_items(value.trim_ascii_start()).unwrap_or_default();
    for (i, item) in items.iter().enumerate() {
        if i > 0 {
            out.extend_from_slice(separator);
        }
        out.extend_from_slice(item);
    }
}

/// `split`: a JSON array of the texts between separators.
pub(crate) fn split(separator: &[u8], value: &[u8], out: &mut Vec<u8>) {
    if separator.is_empty() {
        let text = lossy(value);
        let mut bounds: Vec<usize> = text.char_indices().map(|(i, _)| i).collect();
        bounds.push(text.len());
        let chars = bounds.windows(2).filter_map(|w| match w {
            [start, end] => text.as_bytes().get(*start..*end),
            _ => None,
        });
        json::push_array(out, chars);
        return;
    }
    let mut parts = Vec::new();
    let mut start = 0;
    for at in memchr::memmem::find_iter(value, separator) {
        parts.push(value.get(start..at).unwrap_or(&[]));
        start = at + separator.len();
    }
    parts.push(value.get(start..).unwrap_or(&[]));
    json::push_array(out, parts.into_iter());
}

/// `unpack_words`: a JSON array of the words.
pub(crate) fn words(drop_duplicates: bool, value: &[u8], out: &mut Vec<u8>) {
    let text = lossy(value);
    let mut words: Vec<&str> =
        text.split(|c: char| !is_word_char(c)).filter(|w| !w.is_empty()).collect();
    if drop_duplicates {
        let mut seen = std::collections::HashSet::new();
        words.retain(|w| seen.insert(*w));
    }
    json::push_array(out, words.into_iter().map(str::as_bytes));
}

/// A letter or decimal digit of any script, or `_`.
pub(crate) fn is_word_char(c: char) -> bool {
    crate::query::filter::is_word_char(c)
}

/// `time_add`: times moved, held to their range; other values stay.
pub(crate) fn time_add(nanos: i64, value: &[u8], out: &mut Vec<u8>) {
    match parse_rfc3339(value) {
        Some(time) => push_time(out, time.as_nanos().saturating_add(nanos)),
        None => out.extend_from_slice(value),
    }
}

/// `decolorize`: control sequences `ESC [ ... final` removed.
pub(crate) fn decolorize(value: &[u8], out: &mut Vec<u8>) {
    let mut rest = value;
    while let Some(at) = memchr::memmem::find(rest, b"\x1b[") {
        let (plain, tail) = rest.split_at(at);
        out.extend_from_slice(plain);
        let tail = tail.get(2..).unwrap_or(&[]);
        let skip = |tail: &[u8], range: std::ops::RangeInclusive<u8>| {
            tail.iter().take_while(|b| range.contains(b)).count()
        };
        let mut n = skip(tail, 0x30..=0x3f);
        n += skip(tail.get(n..).unwrap_or(&[]), 0x20..=0x2f);
        n += usize::from(tail.get(n).is_some_and(|b| (0x30..=0x7e).contains(b)));
        rest = tail.get(n..).unwrap_or(&[]);
    }
    out.extend_from_slice(rest);
}

/// `replace`: literal text, from the left.
pub(crate) fn replace(plan: &Replace, value: &[u8], out: &mut Vec<u8>) {
    let limit = plan.limit.filter(|n| *n > 0).unwrap_or(u64::MAX);
    let old = plan.old.as_bytes();
    let mut start = 0;
    if !old.is_empty() {
        let mut left = limit;
        for at in memchr::memmem::find_iter(value, old) {
            if left == 0 {
                break;
            }
            left -= 1;
            out.extend_from_slice(value.get(start..at).unwrap_or(&[]));
            out.extend_from_slice(plan.new.as_bytes());
            start = at + old.len();
        }
    }
    out.extend_from_slice(value.get(start..).unwrap_or(&[]));
}

/// `replace_regexp`, its replacement taken apart.
pub(crate) struct RegexReplacer {
    regex: Regex,
    parts: Vec<Part>,
    limit: u64,
}

enum Part {
    Text(String),
    Group(usize),
}

impl RegexReplacer {
    /// Takes the replacement apart: `$1`, `${1}`, `$name`, `${name}`, `$$`.
    pub(crate) fn new(plan: &ReplaceRegexp) -> RegexReplacer {
        let limit = plan.limit.filter(|n| *n > 0).unwrap_or(u64::MAX);
        let regex = plan.regex.clone();
        let parts = template(&plan.new, &regex);
        RegexReplacer { regex, parts, limit }
    }

    /// Appends the value with its matches replaced.
    pub(crate) fn apply(&self, value: &[u8], out: &mut Vec<u8>) {
        let mut start = 0;
        let mut left = self.limit;
        for captures in self.regex.meta().captures_iter(value) {
            let Some(all) = captures.get_match() else { continue };
            if left == 0 {
                break;
            }
            left -= 1;
            out.extend_from_slice(value.get(start..all.start()).unwrap_or(&[]));
            for part in &self.parts {
                match part {
                    Part::Text(text) => out.extend_from_slice(text.as_bytes()),
                    Part::Group(i) => {
                        if let Some(span) = captures.get_group(*i) {
                            out.extend_from_slice(value.get(span.range()).unwrap_or(&[]));
                        }
                    }
                }
            }
            start = all.end();
        }
        out.extend_from_slice(value.get(start..).unwrap_or(&[]));
    }
}

fn template(text: &str, regex: &Regex) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut plain = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        plain.push_str(rest.get(..at).unwrap_or(""));
        let tail = rest.get(at + 1..).unwrap_or("");
        if let Some(after) = tail.strip_prefix('$') {
            plain.push('$');
            rest = after;
            continue;
        }
        let (name, after) = match tail.strip_prefix('{') {
            Some(braced) => braced.split_once('}').unwrap_or(("", tail)),
            None => {
                let word = |c: char| c.is_alphanumeric() || c == '_';
                let end = tail.find(|c: char| !word(c)).unwrap_or(tail.len());
                tail.split_at(end)
            }
        };
        if name.is_empty() {
            plain.push('$');
            rest = tail;
            continue;
        }
        parts.push(Part::Text(std::mem::take(&mut plain)));
        if let Some(group) = group_of(name, regex) {
            parts.push(Part::Group(group));
        }
        rest = after;
    }
    plain.push_str(rest);
    parts.push(Part::Text(plain));
    parts.retain(|p| !matches!(p, Part::Text(t) if t.is_empty()));
    parts
}

fn group_of(name: &str, regex: &Regex) -> Option<usize> {
    let info = regex.meta().group_info();
    match name.parse::<usize>() {
        Ok(i) => Some(i),
        Err(_) => info.to_index(regex_automata::PatternID::ZERO, name),
    }
}
