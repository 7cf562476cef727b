//! What people write who come from other query languages, and how to say it here.
//!
//! Nothing of this changes what a query means: hints are given where a query is refused anyway,
//! and the few forms that are refused for them mean nothing useful if taken literally.

use super::super::fault::Fault;
use super::super::lexer::{Token, TokenKind};
use super::super::names;
use super::scan::whole_number;
use super::{Parsed, Parser};

type Hints = &'static [(&'static str, &'static str)];

/// Steps of other languages.
const PIPES: Hints = &[
    ("aggregate", "count with stats by (host) count() as n"),
    ("awk", "write extract \"<a> <b>\""),
    ("bin", "group by time with stats by (_time:5m) count() as n"),
    ("bucket", "group by time with stats by (_time:5m) count() as n"),
    ("count", "write stats count() as n"),
    ("cut", "write extract \"<a> <b>\""),
    ("dedup", "write uniq by (host)"),
    ("distinct", "write uniq by (host)"),
    ("exclude", "write delete host"),
    ("extend", "write math a + b as c, or format \"<a> <b>\" as c"),
    ("grep", "write filter word"),
    ("group", "write stats by (host) count() as n"),
    ("groupby", "write stats by (host) count() as n"),
    ("having", "write filter n:>5"),
    ("histogram", "write stats histogram(took) as h"),
    ("jq", "write unpack_json"),
    ("json", "write unpack_json"),
    ("label_format", "write rename a as b, or format \"<a>\" as b"),
    ("line_format", "write format \"<a> <b>\""),
    ("logfmt", "write unpack_logfmt"),
    ("lookup", "write join by (user) (* | fields user, team)"),
    ("not", "write filter !word"),
    ("parse", "write extract \"took <took>ms\""),
    ("pattern", "write extract \"took <took>ms\""),
    ("project", "write fields host, took"),
    ("rare", "write stats by (host) count() as n | sort by (n) limit 10"),
    ("regexp", "write extract_regexp \"id=(?P<id>[0-9]+)\""),
    ("rex", "write extract_regexp \"id=(?P<id>[0-9]+)\""),
    ("search", "write filter word"),
    ("sed", "write replace_regexp (\"[0-9]+\", \"N\")"),
    ("select", "write fields host, took, or filter took:>5"),
    ("spath", "write unpack_json"),
    ("sum", "write stats sum(took) as s"),
    ("summarize", "write stats by (host) count() as n"),
    ("syslog", "write unpack_syslog"),
    ("table", "write fields host, took"),
    ("tail", "limit 10 gives the newest rows; sort by (_time) orders them"),
    ("take", "write limit 10"),
    ("time_series", "write stats by (_time:5m) count() as n"),
    ("timechart", "write stats by (_time:5m) count() as n"),
    ("timeslice", "write stats by (_time:5m) count() as n"),
    ("transaction", "write stats by (id) min(_time) as first, max(_time) as last"),
    ("unpack", "write unpack_json, unpack_logfmt or unpack_syslog"),
    ("unwrap", "functions name their field: stats sum(took) as s"),
    ("wc", "write stats count() as n"),
];

/// Stats functions of other languages.
const STATS: Hints = &[
    ("approx_count_distinct", "write count_uniq(host)"),
    ("arbitrary", "write any(host)"),
    ("array_agg", "write values(host)"),
    ("average", "write avg(took)"),
    ("avgif", "write avg(took) if (level:error)"),
    ("cardinality", "write count_uniq(host)"),
    ("count_distinct", "write count_uniq(host)"),
    ("countif", "write count() if (level:error)"),
    ("dc", "write count_uniq(host)"),
    ("dcount", "write count_uniq(host)"),
    ("distinct_count", "write count_uniq(host)"),
    ("earliest", "write field_min(_time, host)"),
    ("first", "write field_min(_time, host)"),
    ("last", "write field_max(_time, host)"),
    ("latest", "write field_max(_time, host)"),
    ("list", "write values(host)"),
    ("mean", "write avg(took)"),
    ("mode", "the pipe top 1 by (host) gives the most frequent value"),
    ("p50", "write median(took)"),
    ("p75", "write quantile(0.75, took)"),
    ("p90", "write quantile(0.9, took)"),
    ("p95", "write quantile(0.95, took)"),
    ("p99", "write quantile(0.99, took)"),
    ("p999", "write quantile(0.999, took)"),
    ("perc", "write quantile(0.99, took)"),
    ("perc95", "write quantile(0.95, took)"),
    ("perc99", "write quantile(0.99, took)"),
    ("percentile", "write quantile(0.99, took)"),
    ("percentile_cont", "write quantile(0.99, took)"),
    ("stdev", "write stddev(took)"),
    ("sumif", "write sum(took) if (level:error)"),
    ("uniq", "write count_uniq(host), or uniq_values(host)"),
    ("unique", "write count_uniq(host), or uniq_values(host)"),
];

/// Filter functions of other languages.
const FILTERS: Hints = &[
    ("between", "write field:range[1, 10]"),
    ("bytes_over_time", "write * | stats by (_time:5m) sum_len(_msg) as n"),
    ("cidr", "write field:ipv4_range(10.0.0.0/8)"),
    ("cidrmatch", "write field:ipv4_range(10.0.0.0/8)"),
    ("contains", "write *text* for a substring, or text for a word"),
    ("count_over_time", "write * | stats by (_time:5m) count() as n"),
    ("endswith", "write field:~\"text$\""),
    ("equals", "write field:=text"),
    ("exists", "write field:*"),
    ("icontains", "write field:~\"(?i)text\", or i(word)"),
    ("is_null", "write field:\"\""),
    ("isnotempty", "write field:*"),
    ("isnotnull", "write field:*"),
    ("isnull", "write field:\"\""),
    ("like", "write *text* for a substring"),
    ("lower", "write i(word) to ignore the case"),
    ("match", "write field:~\"expression\""),
    ("matches", "write field:~\"expression\""),
    ("regex", "write field:~\"expression\""),
    ("regexp", "write field:~\"expression\""),
    ("regexp_like", "write field:~\"expression\""),
    ("rlike", "write field:~\"expression\""),
    ("searchmatch", "write the filter itself"),
    ("select", "write field:=text"),
    ("startswith", "write field:=\"text\"*"),
    ("tolower", "write i(word) to ignore the case"),
    ("upper", "write i(word) to ignore the case"),
];

fn hint_of(hints: Hints, word: &str) -> Option<&'static str> {
    hints.iter().find(|(name, _)| name.eq_ignore_ascii_case(word)).map(|(_, hint)| *hint)
}

/// How to write a step of another language.
pub(super) fn pipe(word: &str) -> Option<&'static str> {
    hint_of(PIPES, word)
}

/// How to write a stats function of another language.
pub(super) fn stats(word: &str) -> Option<&'static str> {
    hint_of(STATS, word)
}

/// How to write a filter function of another language.
pub(super) fn filter(word: &str) -> Option<&'static str> {
    hint_of(FILTERS, word)
}

impl Parser<'_> {
    /// The token before the current one, so many places back.
    pub(super) fn behind(&self, back: usize) -> Option<Token> {
        self.position.checked_sub(back).and_then(|i| self.tokens.get(i)).copied()
    }

    fn was(&self, back: usize, word: &str) -> bool {
        self.behind(back).is_some_and(|token| self.is(token, word))
    }

    /// Refuses a query that begins as in SQL.
    pub(super) fn refuse_sql(&self) -> Parsed<()> {
        let from = |t: &&Token| t.kind == TokenKind::Word && self.is(**t, "from");
        let here = self.tokens.get(self.position..).unwrap_or(&[]);
        if !self.at("select") || !here.iter().take(64).any(|t| from(&t)) {
            return Ok(());
        }
        let fault = Fault::new(self.peek().start(), "this looks like SQL");
        Err(fault.hint(
            "a query is a filter and pipes: level:error | stats by (host) count() as n; quote \
             \"select\" to search for the word",
        ))
    }

    /// What may have been meant by the name of a pipe or function where a query begins.
    pub(super) fn leading_name(&self, name: &str) -> String {
        let next = self.peek_at(1);
        let of_stream = self.is(next, "(") && self.is(self.peek_at(2), "{");
        if names::contains(names::STATS, name) && (of_stream || self.is(next, "by")) {
            let how = "functions stand in a pipe: * | stats by (_time:5m) count() as n";
            return format!("write \"{name}\" to search for the word; {how}");
        }
        let value = if self.is(next, "=") { self.peek_at(2) } else { next };
        let rest = match self.is(next, "(") {
            true => "(...)".to_owned(),
            false if whole_number(self.raw(value)).is_some() => format!(" {}", self.raw(value)),
            false => String::new(),
        };
        format!(
            "write \"{name}\" to search for the word; pipes need a filter in front: * | \
             {name}{rest}"
        )
    }

    /// How to write `/expression/`, or a star inside of a word, which stands behind this place.
    pub(super) fn regex_between_slashes(&self) -> String {
        let end = self.peek().start();
        let before = self.text.get(..end).unwrap_or("");
        let word = before.rsplit([' ', ':', '(']).next().unwrap_or("");
        let inner = word.strip_prefix('/').filter(|inner| self.at("/") && !inner.is_empty());
        format!("for a regular expression write ~\"{}\"", inner.unwrap_or("f.*o"))
    }

    /// How to write `[a TO b]` and `{a TO b}`, which begin here.
    pub(super) fn range_of_lucene(&self) -> String {
        let (first, last) = (self.peek_at(1), self.peek_at(3));
        let is_range = self.is(self.peek_at(2), "to") && last.kind == TokenKind::Word;
        let (open, close) = if self.at("{") { ('(', ')') } else { ('[', ']') };
        match is_range {
            true => {
                let (first, last) = (self.raw(first), self.raw(last));
                format!("write field:range{open}{first}, {last}{close} for a range of numbers")
            }
            false => "write range[500, 600] for a range".to_owned(),
        }
    }

    /// How to do without `word~1` and `"two words"~5`; the `~` is here.
    pub(super) fn fuzziness(&self) -> Option<String> {
        let distance = self.raw(self.peek_at(1));
        let is_number = !distance.is_empty() && distance.bytes().all(|b| b.is_ascii_digit());
        let left = self.behind(1).filter(|_| self.at("~") && is_number)?;
        Some(match left.kind {
            TokenKind::Quoted => {
                "write seq(a, b) for words in an order, whatever stands between them".to_owned()
            }
            _ => format!(
                "similar words are not found; write {0}* for what begins so",
                self.raw(left)
            ),
        })
    }

    /// Refuses `|= "x"` and its kin, which filter lines elsewhere; the `|` is taken already.
    pub(super) fn refuse_line_filter(&self) -> Parsed<()> {
        let sign = self.peek();
        if sign.spaced || !self.at_any(&["=", "~", "=~", ">"]) {
            return Ok(());
        }
        let value = self.raw(self.peek_at(1));
        let value = if value.is_empty() { "\"text\"" } else { value };
        let how = match self.raw(sign) {
            "=" => format!("lines that hold a text are found by {value} alone, without `|=`"),
            ">" => "pattern_match(\"took <N>ms\") finds patterns".to_owned(),
            _ => format!("write ~{value}, without `|`"),
        };
        let message = format!("unexpected `|{}`", self.raw(sign));
        Err(Fault::new(sign.start().saturating_sub(1), message).hint(how))
    }

    /// What may have been meant by what stands behind a pipe where it should end.
    pub(super) fn behind_pipe(&self, pipe: &str) -> Option<String> {
        let word = self.raw(self.peek());
        let names = "names have commas between them: a, b";
        Some(match pipe {
            "stats" | "the filter" if self.at("by") || self.was(1, "by") => {
                "the keys stand in front of the functions: stats by (host) count() as n".to_owned()
            }
            "sort" | "order" if !self.at("(") => {
                let key = if self.at("-") { self.raw(self.peek_at(1)) } else { word };
                let key = if key.is_empty() { "took" } else { key };
                format!("the keys stand in parentheses: sort by ({key} desc)")
            }
            "fields" | "keep" if self.was(1, "-") => format!("write delete {word}"),
            "fields" | "keep" | "delete" | "del" | "rm" | "drop" => names.to_owned(),
            "limit" | "head" if self.at("offset") || self.at(",") => {
                "write offset 5 | limit 10".to_owned()
            }
            "rename" | "mv" | "copy" | "cp" => format!("write {pipe} a as b, c as d"),
            _ => return None,
        })
    }
}

/// A suggestion for an error that has none.
pub(super) fn or_hint(mut fault: Fault, hint: Option<impl Into<String>>) -> Fault {
    if fault.hint.is_none() {
        fault.hint = hint.map(Into::into);
    }
    fault
}

#[cfg(test)]
mod tests {
    use super::super::super::ast::{Filter, Query};
    use super::*;

    #[test]
    fn what_is_recommended_parses() {
        let written = |hint: &str| -> Option<String> {
            let text = hint.strip_prefix("write ")?;
            let text = text.split(" for a ").next()?.split(" to ignore").next()?;
            Some(text.split(", or ").next()?.split(" or ").next()?.to_owned())
        };
        for (name, hint) in PIPES {
            if let Some(text) = written(hint) {
                let query = format!("* | {}", text.split(", unpack").next().unwrap());
                query.parse::<Query>().unwrap_or_else(|e| panic!("{name}: {e}"));
            }
        }
        for (name, hint) in STATS {
            if let Some(text) = written(hint) {
                let query = format!("* | stats {text}");
                query.parse::<Query>().unwrap_or_else(|e| panic!("{name}: {e}"));
            }
        }
        for (name, hint) in FILTERS.iter().filter(|(name, _)| *name != "searchmatch") {
            if let Some(text) = written(hint) {
                text.parse::<Query>().unwrap_or_else(|e| panic!("{name}: {e}"));
            }
        }
        assert!("field:*".parse::<Filter>().is_ok());
    }

    #[test]
    fn words_are_none_of_this_language() {
        assert!(PIPES.iter().all(|(name, _)| !names::contains(names::PIPES, name)));
        assert!(STATS.iter().all(|(name, _)| !names::contains(names::STATS, name)));
        assert!(FILTERS.iter().all(|(name, _)| !names::contains(names::FILTERS, name)));
    }
}
