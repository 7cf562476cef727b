//! The syntax tree -> text that parses to the same tree.

mod filter;
mod pipe;
mod stats;

use std::fmt::{self, Display, Formatter, Write};

use super::ast::{Duration, FieldPattern, Number, Query, QueryOptions};
use super::lexer::is_word_char;
use super::names::is_reserved;

impl Display for Query {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if !self.options.is_empty() {
            write!(f, "{} ", self.options)?;
        }
        self.filter.fmt(f)?;
        for pipe in &self.pipes {
            write!(f, " | {pipe}")?;
        }
        Ok(())
    }
}

impl Display for QueryOptions {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut parts: Vec<String> = Vec::new();
        let mut part = |name: &str, value: Option<String>| {
            parts.extend(value.map(|value| format!("{name}={value}")));
        };
        part("concurrency", self.concurrency.map(|n| n.to_string()));
        part("parallel_readers", self.parallel_readers.map(|n| n.to_string()));
        part("ignore_global_time_filter", self.ignore_global_time_filter.map(|b| b.to_string()));
        part("allow_partial_response", self.allow_partial_response.map(|b| b.to_string()));
        part("time_offset", self.time_offset.as_ref().map(|d| d.to_string()));
        part("global_filter", self.global_filter.as_ref().map(|filter| format!("({filter})")));
        write!(f, "options({})", parts.join(", "))
    }
}

impl Display for Duration {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Display for Number {
    /// Bare where that reads back as one word.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let digits = self.text.strip_prefix('-').unwrap_or(&self.text);
        if !digits.is_empty() && digits.chars().all(is_word_char) {
            return f.write_str(&self.text);
        }
        write_quoted(f, &self.text)
    }
}

impl Display for FieldPattern {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            FieldPattern::Name(name) => Text(name).fmt(f),
            FieldPattern::Prefix(prefix) if prefix.is_empty() => f.write_str("*"),
            FieldPattern::Prefix(prefix) => write!(f, "{}*", Text(prefix)),
        }
    }
}

/// A text of the user, quoted unless it reads as itself everywhere.
pub(super) struct Text<'a>(pub(super) &'a str);

impl Display for Text<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let bare = !self.0.is_empty() && self.0.chars().all(is_word_char) && !is_reserved(self.0);
        if bare { f.write_str(self.0) } else { write_quoted(f, self.0) }
    }
}

/// Writes `text` in double quotes.
pub(super) fn write_quoted(f: &mut Formatter<'_>, text: &str) -> fmt::Result {
    f.write_char('"')?;
    for c in text.chars() {
        match c {
            '"' | '\\' => write!(f, "\\{c}")?,
            '\n' => f.write_str("\\n")?,
            '\r' => f.write_str("\\r")?,
            '\t' => f.write_str("\\t")?,
            c if c.is_control() => write!(f, "\\u{:04x}", u32::from(c))?,
            c => f.write_char(c)?,
        }
    }
    f.write_char('"')
}

/// Items with a comma between them.
pub(super) struct Commas<'a, T>(pub(super) &'a [T]);

impl<T: Display> Display for Commas<'_, T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (i, item) in self.0.iter().enumerate() {
            f.write_str(if i == 0 { "" } else { ", " })?;
            item.fmt(f)?;
        }
        Ok(())
    }
}

/// Texts of the user with a comma between them.
pub(super) struct Texts<'a>(pub(super) &'a [String]);

impl Display for Texts<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let texts: Vec<Text<'_>> = self.0.iter().map(|text| Text(text)).collect();
        Commas(&texts).fmt(f)
    }
}
