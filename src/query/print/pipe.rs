//! Pipes as text. Defaults are left out.

use std::fmt::{self, Display, Formatter};

use super::super::ast::{
    Baseline, Facets, Filter, Join, KeepMode, MESSAGE_FIELD, Pack, PackFormat, Patterns, Pipe,
    RenamePair, Replace, ReplaceRegexp, RightSide, Sort, StreamContext, TIME_FIELD, Top, Uniq,
    Unpack, UnpackFormat,
};
use super::stats::Quoted;
use super::{Commas, Text, Texts};

impl Display for Pipe {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Pipe::BlockStats => f.write_str("block_stats"),
            Pipe::BlocksCount { result } => write!(f, "blocks_count as {}", Text(result)),
            Pipe::Copy(pairs) => write!(f, "copy {}", Commas(pairs)),
            Pipe::Delete(fields) => write!(f, "delete {}", Commas(fields)),
            Pipe::DropEmptyFields => f.write_str("drop_empty_fields"),
            Pipe::Facets(facets) => facets.fmt(f),
            Pipe::FieldNames { filter, result } => {
                write!(f, "field_names{} as {}", Substring(filter), Text(result))
            }
            Pipe::FieldValues { field, filter, limit } => {
                write!(f, "field_values {}{}{}", Text(field), Substring(filter), Limit(*limit))
            }
            Pipe::Fields(fields) => write!(f, "fields {}", Commas(fields)),
            Pipe::Filter(filter) => write!(f, "filter {filter}"),
            Pipe::GenerateSequence { count } => write!(f, "generate_sequence {count}"),
            Pipe::Join(join) => join.fmt(f),
            Pipe::Limit(n) => write!(f, "limit {n}"),
            Pipe::Math(math) => write!(f, "math {}", Commas(&math.items)),
            Pipe::Offset(n) => write!(f, "offset {n}"),
            Pipe::Patterns(plan) => plan.fmt(f),
            Pipe::QueryStats => f.write_str("query_stats"),
            Pipe::Rename(pairs) => write!(f, "rename {}", Commas(pairs)),
            Pipe::RunningStats(stats) => {
                write!(f, "running_stats {}{}", By(&stats.by), Commas(&stats.items))
            }
            Pipe::TotalStats(stats) => {
                write!(f, "total_stats {}{}", By(&stats.by), Commas(&stats.items))
            }
            Pipe::Sample(n) => write!(f, "sample {n}"),
            Pipe::Sort(sort) => sort.fmt(f),
            Pipe::Stats { by, items } if by.is_empty() => write!(f, "stats {}", Commas(items)),
            Pipe::Stats { by, items } => write!(f, "stats by ({}) {}", Commas(by), Commas(items)),
            Pipe::StreamContext(context) => context.fmt(f),
            Pipe::Top(top) => top.fmt(f),
            Pipe::Union(right) => write!(f, "union {right}"),
            Pipe::Uniq(uniq) => uniq.fmt(f),
            _ => write_value_pipe(f, self),
        }
    }
}

/// The pipes that change the values of single rows.
fn write_value_pipe(f: &mut Formatter<'_>, pipe: &Pipe) -> fmt::Result {
    match pipe {
        Pipe::Coalesce { fields, default, result } => {
            write!(f, "coalesce({})", Commas(fields))?;
            if !default.is_empty() {
                write!(f, " default {}", Text(default))?;
            }
            As(result, MESSAGE_FIELD).fmt(f)
        }
        Pipe::CollapseNums(p) => {
            write!(f, "collapse_nums{}{}", If(&p.condition), Named("at", &p.field, MESSAGE_FIELD))?;
            f.write_str(if p.prettify { " prettify" } else { "" })
        }
        Pipe::Decolorize { field } => write!(f, "decolorize {}", Text(field)),
        Pipe::Extract(p) => {
            write!(f, "extract{} {}", If(&p.condition), Quoted(&p.pattern.source))?;
            write!(f, "{}{}", Named("from", &p.field, MESSAGE_FIELD), p.keep)
        }
        Pipe::ExtractRegexp(p) => {
            write!(f, "extract_regexp{} {}", If(&p.condition), Quoted(p.regex.as_str()))?;
            write!(f, "{}{}", Named("from", &p.field, MESSAGE_FIELD), p.keep)
        }
        Pipe::Format(p) => {
            write!(f, "format{} {}", If(&p.condition), Quoted(&p.pattern.source))?;
            write!(f, "{}{}", As(&p.result, MESSAGE_FIELD), p.keep)
        }
        Pipe::Hash { field, result } => {
            write!(f, "hash({}){}", Text(field), As(result, MESSAGE_FIELD))
        }
        Pipe::JsonArrayConcat { separator, field, result } => {
            write!(f, "json_array_concat {}", Quoted(separator))?;
            write!(f, "{}{}", Named("from", field, MESSAGE_FIELD), As(result, field))
        }
        Pipe::JsonArrayLen { field, result } => {
            write!(f, "json_array_len({}){}", Text(field), As(result, MESSAGE_FIELD))
        }
        Pipe::Len { field, result } => {
            write!(f, "len({}){}", Text(field), As(result, MESSAGE_FIELD))
        }
        Pipe::Pack(p) => p.fmt(f),
        Pipe::Replace(p) => p.fmt(f),
        Pipe::ReplaceRegexp(p) => p.fmt(f),
        Pipe::SetStreamFields(p) => {
            write!(f, "set_stream_fields{} {}", If(&p.condition), Commas(&p.fields))
        }
        Pipe::Split { separator, field, result } => {
            write!(f, "split {}", Quoted(separator))?;
            write!(f, "{}{}", Named("from", field, MESSAGE_FIELD), As(result, field))
        }
        Pipe::TimeAdd { offset, field } => {
            write!(f, "time_add {offset}{}", Named("at", field, TIME_FIELD))
        }
        Pipe::Unpack(p) => p.fmt(f),
        Pipe::UnpackWords(p) => {
            write!(f, "unpack_words from {}{}", Text(&p.field), As(&p.result, &p.field))?;
            f.write_str(if p.drop_duplicates { " drop_duplicates" } else { "" })
        }
        Pipe::Unroll(p) => write!(f, "unroll{} by ({})", If(&p.condition), Texts(&p.fields)),
        // The rest is written by the caller.
        _ => Ok(()),
    }
}

impl Display for Pack {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self.format {
            PackFormat::Json => "pack_json",
            PackFormat::Logfmt => "pack_logfmt",
        })?;
        write!(f, "{}{}", FieldList(&self.fields), As(&self.result, MESSAGE_FIELD))
    }
}

impl Display for Replace {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (old, new) = (Quoted(&self.old), Quoted(&self.new));
        write!(f, "replace{} ({old}, {new})", If(&self.condition))?;
        write!(f, "{}{}", Named("at", &self.field, MESSAGE_FIELD), Limit(self.limit))
    }
}

impl Display for ReplaceRegexp {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (old, new) = (Quoted(self.regex.as_str()), Quoted(&self.new));
        write!(f, "replace_regexp{} ({old}, {new})", If(&self.condition))?;
        write!(f, "{}{}", Named("at", &self.field, MESSAGE_FIELD), Limit(self.limit))
    }
}

impl Display for Unpack {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self.format {
            UnpackFormat::Json => "unpack_json",
            UnpackFormat::Logfmt => "unpack_logfmt",
            UnpackFormat::Syslog { .. } => "unpack_syslog",
        })?;
        write!(f, "{}{}", If(&self.condition), Named("from", &self.field, MESSAGE_FIELD))?;
        match &self.format {
            UnpackFormat::Syslog { offset: Some(offset) } => write!(f, " offset {offset}")?,
            UnpackFormat::Syslog { offset: None } => {}
            UnpackFormat::Json | UnpackFormat::Logfmt => FieldList(&self.fields).fmt(f)?,
        }
        if !self.result_prefix.is_empty() {
            write!(f, " result_prefix {}", Text(&self.result_prefix))?;
        }
        self.keep.fmt(f)
    }
}

impl Display for KeepMode {
    /// With a blank in front; nothing for the default.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            KeepMode::Overwrite => "",
            KeepMode::KeepOriginal => " keep_original_fields",
            KeepMode::SkipEmpty => " skip_empty_results",
        })
    }
}

impl Display for RenamePair {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} as {}", self.source, self.target)
    }
}

impl Display for Facets {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Facets { limit, max_values_per_field, max_value_len, keep_const_fields } = self;
        write!(f, "facets {limit} max_values_per_field {max_values_per_field}")?;
        write!(f, " max_value_len {max_value_len}")?;
        f.write_str(if *keep_const_fields { " keep_const_fields" } else { "" })
    }
}

impl Display for RightSide {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let rows = match self {
            RightSide::Query(query) => return write!(f, "({query})"),
            RightSide::Rows(rows) => rows,
        };
        f.write_str("rows(")?;
        for (i, row) in rows.iter().enumerate() {
            f.write_str(if i == 0 { "{" } else { ", {" })?;
            for (i, (name, value)) in row.iter().enumerate() {
                f.write_str(if i == 0 { "" } else { ", " })?;
                write!(f, "{}={}", Text(name), Quoted(value))?;
            }
            f.write_str("}")?;
        }
        f.write_str(")")
    }
}

impl Display for Join {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "join by ({}) {}", Texts(&self.by), self.right)?;
        f.write_str(if self.inner { " inner" } else { "" })?;
        if self.prefix.is_empty() { Ok(()) } else { write!(f, " prefix {}", Text(&self.prefix)) }
    }
}

impl Display for Sort {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("sort")?;
        if !self.keys.is_empty() {
            write!(f, " by ({})", Commas(&self.keys))?;
        }
        f.write_str(if self.desc { " desc" } else { "" })?;
        if !self.partition_by.is_empty() {
            write!(f, " partition by ({})", Texts(&self.partition_by))?;
        }
        if let Some(offset) = self.offset {
            write!(f, " offset {offset}")?;
        }
        Limit(self.limit).fmt(f)?;
        Rank(&self.rank).fmt(f)
    }
}

impl Display for StreamContext {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "stream_context before {} after {}", self.before, self.after)?;
        match &self.time_window {
            Some(window) => write!(f, " time_window {window}"),
            None => Ok(()),
        }
    }
}

impl Display for Top {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "top {} by ({}) hits as {}", self.limit, Texts(&self.by), Text(&self.hits))?;
        Rank(&self.rank).fmt(f)
    }
}

impl Display for Uniq {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "uniq by ({})", Texts(&self.by))?;
        f.write_str(if self.hits.is_some() { " with hits" } else { "" })?;
        Limit(self.limit).fmt(f)
    }
}

/// ` if (filter)`
struct If<'a>(&'a Option<Filter>);

impl Display for If<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(condition) => write!(f, " if ({condition})"),
            None => Ok(()),
        }
    }
}

/// ` as name`, unless that is the default.
struct As<'a>(&'a str, &'a str);

impl Display for As<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.0 == self.1 { Ok(()) } else { write!(f, " as {}", Text(self.0)) }
    }
}

/// ` word name`, unless that is the default.
struct Named<'a>(&'a str, &'a str, &'a str);

impl Display for Named<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.1 == self.2 { Ok(()) } else { write!(f, " {} {}", self.0, Text(self.1)) }
    }
}

struct Limit(Option<u64>);

impl Display for Limit {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(limit) => write!(f, " limit {limit}"),
            None => Ok(()),
        }
    }
}

struct Rank<'a>(&'a Option<String>);

impl Display for Rank<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(name) => write!(f, " rank as {}", Text(name)),
            None => Ok(()),
        }
    }
}

struct Substring<'a>(&'a Option<String>);

impl Display for Substring<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(text) => write!(f, " filter {}", Quoted(text)),
            None => Ok(()),
        }
    }
}

/// `by (...) ` if there are keys.
struct By<'a>(&'a [String]);

impl Display for By<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { Ok(()) } else { write!(f, "by ({}) ", Texts(self.0)) }
    }
}

impl Display for Patterns {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("patterns")?;
        if !self.by.is_empty() {
            write!(f, " by ({})", Texts(&self.by))?;
        }
        match &self.baseline {
            None => Ok(()),
            Some(Baseline::Before(time)) => write!(f, " new since {time}"),
            Some(Baseline::Rows(filter)) => write!(f, " new against ({filter})"),
        }
    }
}

/// ` fields (...)`, unless these are all.
struct FieldList<'a>(&'a [super::super::ast::FieldPattern]);

impl Display for FieldList<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0 {
            [all] if all.is_all() => Ok(()),
            fields => write!(f, " fields ({})", Commas(fields)),
        }
    }
}
