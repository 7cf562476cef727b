//! Pipes: which one stands here, and those that choose, order and combine rows.

use super::super::ast::{
    Facets, FieldPattern, Join, Patterns, Pipe, RightSide, Sort, SortKey, StreamContext, Top, Uniq,
};
use super::super::fault::Fault;
use super::super::lexer::TokenKind;
use super::super::names;
use super::{Parsed, Parser, lookalike};

/// The fields that `patterns` gives beside those by which it groups.
const PATTERN_FIELDS: [&str; 6] = ["pattern", "hits", "share", "first", "last", "example"];

/// What `limit`, `head`, `top` and `facets` take without a number.
const DEFAULT_LIMIT: u64 = 10;

impl Parser<'_> {
    /// One step behind `|`; `first` if it follows the filter directly.
    pub(super) fn pipe(&mut self, first: bool) -> Parsed<Pipe> {
        let token = self.peek();
        let start = token.start();
        let name = self.raw(token).to_ascii_lowercase();
        let named = token.kind == TokenKind::Word
            && names::contains(names::PIPES, &name)
            && !self.is(self.peek_at(1), ":");
        let pipe = if named {
            self.next();
            if name == "stream_context" && !first {
                return Err(Fault::new(start, "stream_context has to be the first pipe"));
            }
            self.named_pipe(&name)?
        } else if self.at_stats_function() || self.at("by") && self.is(self.peek_at(1), "(") {
            self.stats()?
        } else {
            self.bare_filter()?
        };
        self.charge(256)?;
        if self.at_stop() {
            return Ok(pipe);
        }
        let shown = if named { format!("`{name}`") } else { "the filter".to_owned() };
        let found = self.show(self.peek());
        let message =
            format!("unexpected {found} behind the pipe {shown}; expected `|` or the end");
        let meant = self.behind_pipe(if named { &name } else { "the filter" });
        Err(lookalike::or_hint(Fault::new(self.peek().start(), message), meant))
    }

    /// A filter whose `filter` was left out: not a bare word, which is more likely a misspelt
    /// pipe.
    fn bare_filter(&mut self) -> Parsed<Pipe> {
        let token = self.peek();
        if self.at_stop() {
            let empty: Parsed<Pipe> = self.unexpected("a pipe behind `|`");
            let doubled = self.is(token, "|") && !token.spaced;
            return empty.map_err(|f| if doubled { f.hint("write `or` for either") } else { f });
        }
        self.refuse_line_filter()?;
        let word = token.kind == TokenKind::Word && !self.at("not");
        let field = self.is(self.peek_at(1), ":") || self.wildcard_field();
        if word && !field && !self.at_function() && self.is_plain_step() {
            let fault = Fault::new(token.start(), format!("unknown pipe {}", self.show(token)));
            let meant = lookalike::pipe(self.raw(token));
            return Err(match (meant, names::nearest(names::PIPES, self.raw(token))) {
                (Some(hint), _) => fault.hint(hint),
                (_, Some(meant)) => fault.hint(format!("did you mean `{meant}`?")),
                _ => fault.hint("to filter by a word write `| filter word`"),
            });
        }
        Ok(Pipe::Filter(self.leading_filter()?))
    }

    fn wildcard_field(&self) -> bool {
        self.is(self.peek_at(1), "*") && self.is(self.peek_at(2), ":")
    }

    /// Whether the word here is not the start of a glued field name such as `a-b:`.
    fn is_plain_step(&self) -> bool {
        for ahead in 1..=64 {
            let token = self.peek_at(ahead);
            if token.spaced || token.kind == TokenKind::End {
                return !self.is(token, ":");
            }
            if self.is(token, ":") {
                return false;
            }
        }
        true
    }

    fn named_pipe(&mut self, name: &str) -> Parsed<Pipe> {
        Ok(match name {
            "block_stats" => Pipe::BlockStats,
            "blocks_count" => Pipe::BlocksCount { result: self.result_or("blocks_count")? },
            "copy" | "cp" => Pipe::Copy(self.rename_pairs()?),
            "rename" | "mv" => Pipe::Rename(self.rename_pairs()?),
            "delete" | "del" | "rm" | "drop" => Pipe::Delete(self.comma_list(Self::field_pattern)?),
            "drop_empty_fields" => Pipe::DropEmptyFields,
            "facets" => self.facets()?,
            "field_names" => self.field_names()?,
            "field_values" => self.field_values()?,
            "fields" | "keep" => Pipe::Fields(self.comma_list(Self::field_pattern)?),
            "filter" | "where" => Pipe::Filter(self.leading_filter()?),
            "first" => self.first_or_last(false)?,
            "last" => self.first_or_last(true)?,
            "generate_sequence" => Pipe::GenerateSequence { count: self.positive_count()? },
            "join" => self.join()?,
            "limit" | "head" => Pipe::Limit(self.count_or_default()?),
            "math" | "eval" => self.math()?,
            "offset" | "skip" => Pipe::Offset(self.count()?),
            "patterns" => Pipe::Patterns(self.patterns()?),
            "query_stats" => Pipe::QueryStats,
            "running_stats" => Pipe::RunningStats(self.running_stats()?),
            "sample" => Pipe::Sample(self.positive_count()?),
            "sort" | "order" => self.sort()?,
            "stats" => self.stats()?,
            "stream_context" => self.stream_context()?,
            "top" => self.top()?,
            "total_stats" => Pipe::TotalStats(self.running_stats()?),
            "union" => Pipe::Union(self.right_side()?),
            "uniq" => self.uniq()?,
            _ => self.value_pipe(name)?,
        })
    }

    /// `[as] name`, or this name.
    pub(super) fn result_or(&mut self, default: &str) -> Parsed<String> {
        Ok(self.optional_result(&[])?.unwrap_or_else(|| default.to_owned()))
    }

    fn count_or_default(&mut self) -> Parsed<u64> {
        if self.at_stop() { Ok(DEFAULT_LIMIT) } else { self.count() }
    }

    fn facets(&mut self) -> Parsed<Pipe> {
        let mut facets = Facets {
            limit: DEFAULT_LIMIT,
            max_values_per_field: Facets::MAX_VALUES_PER_FIELD,
            max_value_len: Facets::MAX_VALUE_LEN,
            keep_const_fields: false,
        };
        const OPTIONS: &[&str] = &["max_values_per_field", "max_value_len", "keep_const_fields"];
        if !self.at_stop() && !self.at_any(OPTIONS) {
            facets.limit = self.positive_count()?;
        }
        loop {
            if self.eat("max_values_per_field") {
                facets.max_values_per_field = self.positive_count()?;
            } else if self.eat("max_value_len") {
                facets.max_value_len = self.positive_count()?;
            } else if self.eat("keep_const_fields") {
                facets.keep_const_fields = true;
            } else {
                return Ok(Pipe::Facets(facets));
            }
        }
    }

    fn field_names(&mut self) -> Parsed<Pipe> {
        let filter = self.optional_substring()?;
        Ok(Pipe::FieldNames { filter, result: self.result_or("name")? })
    }

    fn field_values(&mut self) -> Parsed<Pipe> {
        let field = self.plain_name()?;
        let filter = self.optional_substring()?;
        Ok(Pipe::FieldValues { field, filter, limit: self.optional_limit()? })
    }

    fn optional_substring(&mut self) -> Parsed<Option<String>> {
        if !self.eat("filter") {
            return Ok(None);
        }
        Ok(Some(self.string("a substring behind `filter`")?.text))
    }

    /// `(a desc, b)`
    pub(super) fn sort_keys(&mut self) -> Parsed<Vec<SortKey>> {
        self.paren_list(|p| {
            let field = p.plain_name()?;
            let desc = p.eat("desc");
            if !desc {
                p.eat("asc");
            }
            Ok(SortKey { field, desc })
        })
    }

    fn sort(&mut self) -> Parsed<Pipe> {
        let mut sort = empty_sort();
        if self.eat("by") || self.at("(") {
            sort.keys = self.sort_keys()?;
        }
        let desc = self.eat("desc");
        if !desc {
            self.eat("asc");
        }
        let start = self.peek().start();
        loop {
            let at = self.peek().start();
            if self.eat("offset") {
                set_once(&mut sort.offset, self.count()?, "offset", at)?;
            } else if self.eat("limit") {
                set_once(&mut sort.limit, self.count()?, "limit", at)?;
            } else if self.at("partition") {
                self.partition(&mut sort)?;
            } else if self.at("rank") {
                let rank = self.rank()?;
                set_once(&mut sort.rank, rank, "rank", at)?;
            } else {
                break;
            }
        }
        if !sort.partition_by.is_empty() && sort.limit.is_none() {
            return Err(Fault::new(start, "`partition by` needs a limit")
                .hint("add `limit N` for N rows of each group"));
        }
        Ok(Pipe::Sort(directed(sort, desc)))
    }

    /// `first N by (k)`: a sort with a limit.
    fn first_or_last(&mut self, last: bool) -> Parsed<Pipe> {
        let mut sort = empty_sort();
        let counted = !self.at_stop() && !self.at_any(&["by", "(", "partition", "rank"]);
        sort.limit = Some(if counted { self.positive_count()? } else { 1 });
        if self.eat("by") || self.at("(") {
            sort.keys = self.sort_keys()?;
        }
        loop {
            if self.at("partition") {
                self.partition(&mut sort)?;
            } else if self.at("rank") {
                sort.rank = Some(self.rank()?);
            } else {
                return Ok(Pipe::Sort(directed(sort, last)));
            }
        }
    }

    fn partition(&mut self, sort: &mut Sort) -> Parsed<()> {
        self.next();
        self.require("by", "behind `partition`")?;
        let start = self.peek().start();
        let by = self.name_list()?;
        if by.is_empty() || !sort.partition_by.is_empty() {
            return Err(Fault::new(start, "expected one list of fields behind `partition by`"));
        }
        sort.partition_by = by;
        Ok(())
    }

    /// `rank [as] name`
    fn rank(&mut self) -> Parsed<String> {
        self.next();
        const STOPS: &[&str] = &["limit", "offset", "partition", "hits"];
        Ok(self.optional_result(STOPS)?.unwrap_or_else(|| "rank".to_owned()))
    }

    fn stream_context(&mut self) -> Parsed<Pipe> {
        let mut context = StreamContext { before: 0, after: 0, time_window: None };
        let mut bounded = false;
        loop {
            if self.eat("before") {
                context.before = self.count()?;
                bounded = true;
            } else if self.eat("after") {
                context.after = self.count()?;
                bounded = true;
            } else if self.at("time_window") {
                let start = self.next().start();
                let window = self.duration()?;
                if window.nanos <= 0 {
                    return Err(Fault::new(start, "the time window must be positive"));
                }
                context.time_window = Some(window);
            } else if bounded {
                return Ok(Pipe::StreamContext(context));
            } else {
                return self.unexpected("`before N` or `after N`");
            }
        }
    }

    fn top(&mut self) -> Parsed<Pipe> {
        let counted = self.raw(self.peek()).starts_with(|c: char| c.is_ascii_digit());
        let limit = if counted { self.count()? } else { DEFAULT_LIMIT };
        self.eat("by");
        let by = self.loose_name_list()?;
        let (mut hits, mut rank) = (None, None);
        loop {
            let at = self.peek().start();
            if self.at("hits") {
                self.next();
                let name = self.optional_result(&["rank"])?.unwrap_or_else(|| "hits".to_owned());
                set_once(&mut hits, name, "hits", at)?;
            } else if self.at("rank") {
                let name = self.rank()?;
                set_once(&mut rank, name, "rank", at)?;
            } else {
                break;
            }
        }
        let hits = free_name(hits.unwrap_or_else(|| "hits".to_owned()), &by);
        let rank = rank.map(|rank| free_name(rank, &by));
        Ok(Pipe::Top(Top { limit, by, hits, rank }))
    }

    fn uniq(&mut self) -> Parsed<Pipe> {
        self.eat("by");
        let by = self.loose_name_list()?;
        let (mut hits, mut limit) = (None, None);
        loop {
            let at = self.peek().start();
            if self.eat("with") {
                self.require("hits", "behind `with`")?;
                hits = Some(free_name("hits".to_owned(), &by));
            } else if self.eat("hits") {
                hits = Some(free_name("hits".to_owned(), &by));
            } else if self.eat("limit") {
                set_once(&mut limit, self.count()?, "limit", at)?;
            } else {
                return Ok(Pipe::Uniq(Uniq { by, hits, limit }));
            }
        }
    }

    fn patterns(&mut self) -> Parsed<Patterns> {
        let start = self.peek_at(1).start();
        let by = if self.eat("by") { self.name_list()? } else { Vec::new() };
        if let Some(name) = by.iter().find(|name| PATTERN_FIELDS.contains(&name.as_str())) {
            let fault = Fault::new(start, format!("`patterns` makes a field `{name}` itself"));
            return Err(fault.hint(format!("give the other one a new name: | copy {name} as x")));
        }
        let at = self.peek().start();
        let baseline = match self.eat("new") {
            true => Some(self.baseline()?),
            false if self.at("since") || self.at("against") => {
                let fault = Fault::new(
                    at,
                    format!("expected `new` in front of {}", self.show(self.peek())),
                );
                return Err(fault.hint("write | patterns new since 1h"));
            }
            false => None,
        };
        Ok(Patterns { by, baseline })
    }

    fn join(&mut self) -> Parsed<Pipe> {
        self.eat("by");
        let start = self.peek().start();
        let by = self.name_list()?;
        if by.is_empty() {
            return Err(Fault::new(start, "join needs at least one field"));
        }
        let right = self.right_side()?;
        let mut join = Join { by, right, inner: false, prefix: String::new() };
        loop {
            if self.eat("inner") {
                join.inner = true;
            } else if self.eat("left") {
                join.inner = false;
            } else if self.eat("prefix") {
                join.prefix = self.string("a prefix")?.text;
            } else {
                return Ok(Pipe::Join(join));
            }
        }
    }

    /// `(query)` or `rows(...)`.
    fn right_side(&mut self) -> Parsed<RightSide> {
        if !self.at("rows") {
            if !self.at("(") {
                return self.unexpected("a query in parentheses or `rows(...)`");
            }
            return Ok(RightSide::Query(Box::new(self.subquery()?.0)));
        }
        self.next();
        self.require("(", "behind `rows`")?;
        let mut rows = Vec::new();
        while !self.eat(")") {
            rows.push(self.literal_row()?);
            self.eat(",");
        }
        Ok(RightSide::Rows(rows))
    }

    /// `{a="1", b:2}`
    fn literal_row(&mut self) -> Parsed<Vec<(String, String)>> {
        self.require("{", "in front of a row")?;
        let mut row: Vec<(String, String)> = Vec::new();
        while !self.eat("}") {
            let name = self.label_word(&[":"], "a field name")?.text;
            if !self.eat("=") {
                self.require(":", "or `=` behind the field name")?;
            }
            let value = self.label_word(&[], "a value")?.text;
            row.push((name, value));
            if !self.eat(",") && !self.at("}") {
                return self.unexpected("`,` or `}`");
            }
        }
        self.charge(64)?;
        Ok(row)
    }

    fn rename_pairs(&mut self) -> Parsed<Vec<super::super::ast::RenamePair>> {
        self.comma_list(|p| {
            let source = p.field_pattern()?;
            p.eat("as");
            let target = p.field_pattern()?;
            if matches!((&source, &target), (FieldPattern::Name(_), FieldPattern::Prefix(_))) {
                return p.fail("a single field cannot become a wildcard");
            }
            Ok(super::super::ast::RenamePair { source, target })
        })
    }
}

fn empty_sort() -> Sort {
    Sort {
        keys: Vec::new(),
        desc: false,
        partition_by: Vec::new(),
        offset: None,
        limit: None,
        rank: None,
    }
}

/// Moves the overall direction into the keys.
fn directed(mut sort: Sort, desc: bool) -> Sort {
    for key in &mut sort.keys {
        key.desc ^= desc;
    }
    sort.desc = desc && sort.keys.is_empty();
    sort
}

fn set_once<T>(slot: &mut Option<T>, value: T, name: &str, at: usize) -> Parsed<()> {
    if slot.replace(value).is_some() {
        return Err(Fault::new(at, format!("a second `{name}`")));
    }
    Ok(())
}

/// The name with `s` behind it until no key has it.
fn free_name(mut name: String, by: &[String]) -> String {
    while by.contains(&name) {
        name.push('s');
    }
    name
}
