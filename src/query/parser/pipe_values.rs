//! Pipes that take texts apart, put them together or change them.

use super::super::ast::{
    Extract, ExtractRegexp, Format, FormatPattern, MESSAGE_FIELD, Pipe, Replace, ReplaceRegexp,
    Unpack, UnpackFormat, UnpackWords,
};
use super::super::fault::Fault;
use super::pattern::{extract_pattern, format_pattern};
use super::{Compound, Parsed, Parser};

/// Words that end the optional field of `unpack_*`.
const UNPACK_WORDS: &[&str] =
    &["fields", "result_prefix", "keep_original_fields", "skip_empty_results", "offset"];

impl Parser<'_> {
    pub(super) fn extract(&mut self) -> Parsed<Pipe> {
        let condition = self.optional_condition()?;
        let pattern = extract_pattern(self.string("a pattern in quotes")?)?;
        self.charge(64 * pattern.parts.len())?;
        let field = self.source_field()?;
        let keep = self.keep_mode();
        Ok(Pipe::Extract(Extract { condition, pattern, field, keep }))
    }

    pub(super) fn extract_regexp(&mut self) -> Parsed<Pipe> {
        let condition = self.optional_condition()?;
        let word = self.string("a regular expression in quotes")?;
        let regex = self.regex(&word.text, word.start, false)?;
        if !regex.group_names().any(|name| name.is_some()) {
            return Err(Fault::new(word.start, "the expression has no named group")
                .hint("write one as (?P<name>...)"));
        }
        let field = self.source_field()?;
        let keep = self.keep_mode();
        Ok(Pipe::ExtractRegexp(ExtractRegexp { condition, regex, field, keep }))
    }

    pub(super) fn format(&mut self) -> Parsed<Pipe> {
        let condition = self.optional_condition()?;
        let pattern = self.format_pattern()?;
        let modes = &["keep_original_fields", "skip_empty_results"];
        let result = self.optional_result(modes)?.unwrap_or_else(|| MESSAGE_FIELD.to_owned());
        let keep = self.keep_mode();
        Ok(Pipe::Format(Format { condition, pattern, result, keep }))
    }

    fn format_pattern(&mut self) -> Parsed<FormatPattern> {
        let pattern = format_pattern(self.string("a pattern in quotes")?)?;
        self.charge(64 * pattern.parts.len())?;
        Ok(pattern)
    }

    /// `("old", "new")`
    fn old_and_new(&mut self) -> Parsed<(Compound, String)> {
        self.require("(", "in front of the two texts")?;
        let old = self.string("the text to replace")?;
        self.require(",", "between the two texts")?;
        let new = self.string("the text to put in its place")?.text;
        self.require(")", "behind the two texts")?;
        Ok((old, new))
    }

    pub(super) fn replace(&mut self) -> Parsed<Pipe> {
        let condition = self.optional_condition()?;
        let (old, new) = self.old_and_new()?;
        let field = self.at_field()?;
        let limit = self.optional_limit()?;
        Ok(Pipe::Replace(Replace { condition, old: old.text, new, field, limit }))
    }

    pub(super) fn replace_regexp(&mut self) -> Parsed<Pipe> {
        let condition = self.optional_condition()?;
        let (old, new) = self.old_and_new()?;
        let regex = self.regex(&old.text, old.start, false)?;
        let field = self.at_field()?;
        let limit = self.optional_limit()?;
        Ok(Pipe::ReplaceRegexp(ReplaceRegexp { condition, regex, new, field, limit }))
    }

    pub(super) fn unpack(&mut self, name: &str) -> Parsed<Pipe> {
        let condition = self.optional_condition()?;
        let named = self.eat("from") || !(self.at_stop() || self.at_any(UNPACK_WORDS));
        let field = if named { self.plain_name()? } else { MESSAGE_FIELD.to_owned() };
        let mut format = match name {
            "unpack_json" => UnpackFormat::Json,
            "unpack_logfmt" => UnpackFormat::Logfmt,
            _ => UnpackFormat::Syslog { offset: None },
        };
        let is_syslog = !matches!(format, UnpackFormat::Json | UnpackFormat::Logfmt);
        let mut fields = super::stats::or_all(Vec::new());
        if !is_syslog {
            fields = self.optional_fields()?;
        } else if self.eat("offset") {
            format = UnpackFormat::Syslog { offset: Some(self.duration()?) };
        }
        let prefixed = self.eat("result_prefix");
        let result_prefix = if prefixed { self.string("a prefix")?.text } else { String::new() };
        let keep = self.keep_mode();
        let unpack = Unpack { format, condition, field, fields, result_prefix, keep };
        Ok(Pipe::Unpack(unpack))
    }

    pub(super) fn unpack_words(&mut self) -> Parsed<Pipe> {
        let named =
            self.eat("from") || !(self.at_stop() || self.at_any(&["as", "drop_duplicates"]));
        let field = if named { self.plain_name()? } else { MESSAGE_FIELD.to_owned() };
        let result = self.optional_result(&["drop_duplicates"])?;
        let result = result.unwrap_or_else(|| field.clone());
        let drop_duplicates = self.eat("drop_duplicates");
        Ok(Pipe::UnpackWords(UnpackWords { field, result, drop_duplicates }))
    }
}
