//! Pipes that change the fields of a row: which one stands here, and its shared options.

use super::super::ast::{
    CollapseNums, FieldPattern, KeepMode, MESSAGE_FIELD, Pack, PackFormat, Pipe, SetStreamFields,
    TIME_FIELD, Unroll,
};
use super::super::fault::Fault;
use super::{Parsed, Parser};

impl Parser<'_> {
    pub(super) fn value_pipe(&mut self, name: &str) -> Parsed<Pipe> {
        Ok(match name {
            "coalesce" => self.coalesce()?,
            "collapse_nums" => self.collapse_nums()?,
            "decolorize" => Pipe::Decolorize { field: self.optional_field()? },
            "extract" => self.extract()?,
            "extract_regexp" => self.extract_regexp()?,
            "format" => self.format()?,
            "hash" => {
                let (field, result) = self.field_and_result()?;
                Pipe::Hash { field, result }
            }
            "json_array_concat" => self.json_array_concat()?,
            "json_array_len" => {
                let (field, result) = self.field_and_result()?;
                Pipe::JsonArrayLen { field, result }
            }
            "len" => {
                let (field, result) = self.field_and_result()?;
                Pipe::Len { field, result }
            }
            "pack_json" => self.pack(PackFormat::Json)?,
            "pack_logfmt" => self.pack(PackFormat::Logfmt)?,
            "replace" => self.replace()?,
            "replace_regexp" => self.replace_regexp()?,
            "set_stream_fields" => {
                let condition = self.optional_condition()?;
                let fields = self.comma_list(Self::field_pattern)?;
                Pipe::SetStreamFields(SetStreamFields { condition, fields })
            }
            "split" => self.split()?,
            "time_add" => {
                let offset = self.duration()?;
                let at = self.eat("at");
                let field = if at { self.plain_name()? } else { TIME_FIELD.to_owned() };
                Pipe::TimeAdd { offset, field }
            }
            "unpack_json" | "unpack_logfmt" | "unpack_syslog" => self.unpack(name)?,
            "unpack_words" => self.unpack_words()?,
            _ => {
                let condition = self.optional_condition()?;
                self.eat("by");
                Pipe::Unroll(Unroll { condition, fields: self.loose_name_list()? })
            }
        })
    }

    /// A field name if one stands here, else `_msg`.
    fn optional_field(&mut self) -> Parsed<String> {
        if self.at_stop() { Ok(MESSAGE_FIELD.to_owned()) } else { self.plain_name() }
    }

    /// `at f`, else `_msg`.
    pub(super) fn at_field(&mut self) -> Parsed<String> {
        self.field_behind("at")
    }

    /// `from f`, else `_msg`.
    pub(super) fn source_field(&mut self) -> Parsed<String> {
        self.field_behind("from")
    }

    fn field_behind(&mut self, word: &str) -> Parsed<String> {
        if self.eat(word) { self.plain_name() } else { Ok(MESSAGE_FIELD.to_owned()) }
    }

    /// `keep_original_fields` or `skip_empty_results`.
    pub(super) fn keep_mode(&mut self) -> KeepMode {
        if self.eat("keep_original_fields") {
            KeepMode::KeepOriginal
        } else if self.eat("skip_empty_results") {
            KeepMode::SkipEmpty
        } else {
            KeepMode::Overwrite
        }
    }

    /// `(f) as r` or `f as r`; the result is `_msg` by default.
    fn field_and_result(&mut self) -> Parsed<(String, String)> {
        let field = if self.eat("(") {
            let field = self.plain_name()?;
            self.require(")", "behind the field")?;
            field
        } else {
            self.plain_name()?
        };
        Ok((field, self.result_or(MESSAGE_FIELD)?))
    }

    fn coalesce(&mut self) -> Parsed<Pipe> {
        let start = self.peek().start();
        let fields = self.paren_list(Self::field_pattern)?;
        if fields.is_empty() {
            return Err(Fault::new(start, "coalesce needs at least one field"));
        }
        let default = self.eat("default");
        let default = if default { self.string("a value")?.text } else { String::new() };
        Ok(Pipe::Coalesce { fields, default, result: self.result_or(MESSAGE_FIELD)? })
    }

    fn collapse_nums(&mut self) -> Parsed<Pipe> {
        let condition = self.optional_condition()?;
        let field = self.at_field()?;
        let prettify = self.eat("prettify");
        Ok(Pipe::CollapseNums(CollapseNums { condition, field, prettify }))
    }

    fn pack(&mut self, format: PackFormat) -> Parsed<Pipe> {
        let fields =
            if self.eat("fields") { self.paren_list(Self::field_pattern)? } else { Vec::new() };
        let fields = super::stats::or_all(fields);
        Ok(Pipe::Pack(Pack { format, fields, result: self.result_or(MESSAGE_FIELD)? }))
    }

    fn json_array_concat(&mut self) -> Parsed<Pipe> {
        let separator = if self.at_stop() || self.at_any(&["from", "as"]) {
            String::new()
        } else {
            self.string("a separator")?.text
        };
        let (field, result) = self.source_and_result()?;
        Ok(Pipe::JsonArrayConcat { separator, field, result })
    }

    fn split(&mut self) -> Parsed<Pipe> {
        if self.at_any(&["from", "as"]) {
            let fault = Fault::new(self.peek().start(), "missing the separator of split");
            return Err(fault.hint("quote it if this word is the separator"));
        }
        let separator = self.string("the separator of split")?.text;
        let (field, result) = self.source_and_result()?;
        Ok(Pipe::Split { separator, field, result })
    }

    /// `[from f] [as r]`, where the result is the field itself by default.
    fn source_and_result(&mut self) -> Parsed<(String, String)> {
        let field = self.source_field()?;
        let result = self.result_or(&field)?;
        Ok((field, result))
    }

    /// `fields (a, b*)`, else all.
    pub(super) fn optional_fields(&mut self) -> Parsed<Vec<FieldPattern>> {
        if !self.eat("fields") {
            return Ok(vec![FieldPattern::all()]);
        }
        Ok(super::stats::or_all(self.paren_list(Self::field_pattern)?))
    }
}
