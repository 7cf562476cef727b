//! Texts taken apart by patterns and expressions.

use regex_automata::util::captures::Captures;

use super::Row;
use super::text::put;
use crate::query::ast::{Extract, ExtractPart, ExtractRegexp, ReplaceRegexp};

/// `extract`.
pub(super) fn extract(plan: &Extract, row: &mut Row) {
    let text = row.get(&plan.field).to_owned();
    let parts = &plan.pattern.parts;
    // What is still to be read; `None` when a literal was missing.
    let mut rest = Some(text.as_str());
    let mut found: Vec<(&str, String)> = Vec::new();
    for (i, part) in parts.iter().enumerate() {
        match part {
            ExtractPart::Literal(literal) if i == 0 => {
                rest = rest.and_then(|text| Some(text.split_once(literal.as_str())?.1));
            }
            // Those behind a placeholder are taken together with it.
            ExtractPart::Literal(_) => {}
            ExtractPart::Placeholder { field, plain } => {
                let next = match parts.get(i + 1) {
                    Some(ExtractPart::Literal(literal)) => literal.as_str(),
                    _ => "",
                };
                let taken = rest.and_then(|text| take(text, next, *plain));
                let (value, tail) = match taken {
                    Some((value, tail)) => (value, Some(tail)),
                    None => (String::new(), None),
                };
                rest = tail;
                found.extend(field.as_deref().map(|field| (field, value)));
            }
        }
    }
    for (field, value) in found {
        put(row, field, &value, plan.keep);
    }
}

/// The text of a placeholder in front of `next`, and what is behind that.
fn take<'a>(text: &'a str, next: &str, plain: bool) -> Option<(String, &'a str)> {
    if !plain && let Some((value, tail)) = unquoted(text) {
        return Some((value, tail.strip_prefix(next)?));
    }
    if next.is_empty() {
        return Some((text.to_owned(), ""));
    }
    let (value, tail) = text.split_once(next)?;
    Some((value.to_owned(), tail))
}

/// The quoted string that the text starts with, and the rest. Escapes of more than one character
/// are not for the naive evaluator.
pub(super) fn unquoted(text: &str) -> Option<(String, &str)> {
    let quote = text.chars().next().filter(|c| "\"'`".contains(*c))?;
    let mut value = String::new();
    let mut chars = text.char_indices().skip(1);
    while let Some((at, c)) = chars.next() {
        match c {
            c if c == quote => return Some((value, &text[at + 1..])),
            '\n' if quote != '`' => return None,
            '\\' if quote != '`' => value.push(match chars.next()?.1 {
                'n' => '\n',
                't' => '\t',
                'r' => '\r',
                '\\' => '\\',
                'u' => {
                    let digits: String = chars.by_ref().take(4).map(|(_, c)| c).collect();
                    char::from_u32(u32::from_str_radix(&digits, 16).ok()?)?
                }
                'x' | 'U' | '0'..='7' => panic!("an escape in {text}"),
                c if c == quote => c,
                _ => return None,
            }),
            c => value.push(c),
        }
    }
    None
}

/// `extract_regexp`.
pub(super) fn extract_regexp(plan: &ExtractRegexp, row: &mut Row) {
    let text = row.get(&plan.field).to_owned();
    let regex = plan.regex.meta();
    let mut captures = regex.create_captures();
    regex.captures(&text, &mut captures);
    let names = regex.group_info().pattern_names(regex_automata::PatternID::ZERO);
    for name in names.flatten() {
        let found = captures.get_group_by_name(name).map_or("", |span| &text[span.range()]);
        put(row, name, found, plan.keep);
    }
}

/// `replace_regexp`.
pub(super) fn replace_regexp(plan: &ReplaceRegexp, row: &mut Row) {
    let text = row.get(&plan.field).to_owned();
    let most = plan.limit.map_or(usize::MAX, |n| usize::try_from(n).unwrap());
    let (mut out, mut at) = (String::new(), 0);
    for captures in plan.regex.meta().captures_iter(&text).take(most) {
        let span = captures.get_match().unwrap();
        out.push_str(&text[at..span.start()]);
        expand(&plan.new, &captures, &text, &mut out);
        at = span.end();
    }
    out.push_str(&text[at..]);
    row.set(&plan.field, &out);
}

/// `$1`, `${1}`, `${name}` and `$0`; a group that did not match is empty.
fn expand(template: &str, captures: &Captures, text: &str, out: &mut String) {
    let mut rest = template;
    while let Some((before, behind)) = rest.split_once('$') {
        out.push_str(before);
        let (name, tail) = match behind.strip_prefix('{').and_then(|t| t.split_once('}')) {
            Some(braced) => braced,
            None => {
                let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
                let end = behind.find(|c| !is_name(c)).unwrap_or(behind.len());
                behind.split_at(end)
            }
        };
        assert!(!name.is_empty(), "a group in {template}");
        let group = match name.parse::<usize>() {
            Ok(number) => captures.get_group(number),
            Err(_) => captures.get_group_by_name(name),
        };
        out.push_str(group.map_or("", |span| &text[span.range()]));
        rest = tail;
    }
    out.push_str(rest);
}
