//! Stream selectors and stream ids.

use super::super::ast::{
    FieldPattern, Filter, LabelFilter, LabelOp, STREAM_FIELD, StreamIds, StreamSelector,
};
use super::super::fault::Fault;
use super::super::lexer::{TokenKind, unquote};
use super::filter::Scope;
use super::function::SetArgs;
use super::scan::short;
use super::{Compound, Parsed, Parser};
use crate::record::StreamId;

impl Parser<'_> {
    /// `{...}` where a filter may stand.
    pub(super) fn stream_under(&mut self, scope: Scope<'_>) -> Parsed<Filter> {
        match scope {
            None => {}
            Some(FieldPattern::Name(name)) if name == STREAM_FIELD => {}
            Some(_) => {
                let fault = Fault::new(self.peek().start(), "a stream selector is no value");
                return Err(fault.hint(if self.is(self.peek_at(2), "to") {
                    self.range_of_lucene()
                } else {
                    "write it without a field name, or quote the text".to_owned()
                }));
            }
        }
        Ok(Filter::Stream(self.stream_selector()?))
    }

    /// Behind `_stream:`.
    pub(super) fn stream_field(&mut self) -> Parsed<Filter> {
        if !self.at("{") {
            return self.unexpected("`{` behind `_stream:`");
        }
        Ok(Filter::Stream(self.stream_selector()?))
    }

    /// Behind `_stream_id:`.
    pub(super) fn stream_id(&mut self) -> Parsed<Filter> {
        if self.at("in") && self.is(self.peek_at(1), "(") {
            self.next();
            let start = self.peek().start();
            return Ok(Filter::StreamId(match self.set_args()? {
                SetArgs::Any => {
                    return Err(Fault::new(start, "expected stream ids").hint("use `*`"));
                }
                SetArgs::List(words) => {
                    StreamIds::List(words.iter().map(parse_id).collect::<Parsed<_>>()?)
                }
                SetArgs::Query(query, field) => StreamIds::Query { query, field },
            }));
        }
        self.eat("=");
        let word = self.string("a stream id or `in(...)` behind `_stream_id:`")?;
        Ok(Filter::StreamId(StreamIds::List(vec![parse_id(&word)?])))
    }

    fn stream_selector(&mut self) -> Parsed<StreamSelector> {
        let open = self.next();
        let mut alternatives = Vec::new();
        let mut labels = Vec::new();
        loop {
            if self.eat("}") {
                if !labels.is_empty() {
                    alternatives.push(labels);
                }
                return Ok(StreamSelector { alternatives });
            }
            if self.peek().kind == TokenKind::End {
                let fault = Fault::new(self.peek().start(), "expected `}`");
                let at = open.start();
                return Err(fault.hint(format!("it has to close the `{{` at byte {at}")));
            }
            labels.push(self.label_filter()?);
            self.charge(64)?;
            if self.eat("or") {
                alternatives.push(std::mem::take(&mut labels));
                if self.at("}") {
                    return self.unexpected("a label behind `or`");
                }
            } else if !self.eat(",") && !self.at("}") {
                let between = "labels have commas between them: {app=\"web\", env=\"prod\"}";
                return self.unexpected("`,`, `or` or `}`").map_err(|f| f.hint(between));
            }
        }
    }

    fn label_filter(&mut self) -> Parsed<LabelFilter> {
        let label = self.label_word(&["=", "!=", "=~", "!~"], "the name of a label")?.text;
        let token = self.next();
        let op = match self.raw(token).to_ascii_lowercase().as_str() {
            "=" => LabelOp::Equal(self.label_value()?.text),
            "!=" => LabelOp::NotEqual(self.label_value()?.text),
            "=~" => {
                let word = self.label_value()?;
                LabelOp::Matches(self.regex(&word.text, word.start, true)?)
            }
            "!~" => {
                let word = self.label_value()?;
                LabelOp::NotMatches(self.regex(&word.text, word.start, true)?)
            }
            word @ ("in" | "not_in") => {
                let negated = word == "not_in";
                match self.label_values()? {
                    Some(values) if negated => LabelOp::NotIn(values),
                    Some(values) => LabelOp::In(values),
                    None => {
                        let everything = self.regex(".*", token.start(), true)?;
                        if negated {
                            LabelOp::NotMatches(everything)
                        } else {
                            LabelOp::Matches(everything)
                        }
                    }
                }
            }
            _ => {
                self.position = self.position.saturating_sub(1);
                return self.unexpected("one of =, !=, =~, !~, in(...), not_in(...)");
            }
        };
        Ok(LabelFilter { label, op })
    }

    /// The values in parentheses; `None` for `(*)`.
    fn label_values(&mut self) -> Parsed<Option<Vec<String>>> {
        if self.at("(") && self.is(self.peek_at(1), "*") && self.is(self.peek_at(2), ")") {
            self.position += 3;
            return Ok(None);
        }
        let words = self.paren_list(Self::label_value)?;
        Ok(Some(words.into_iter().map(|word| word.text).collect()))
    }

    fn label_value(&mut self) -> Parsed<Compound> {
        self.label_word(&[], "a value")
    }

    /// A quoted text or a bare word inside of braces.
    pub(super) fn label_word(&mut self, stops: &[&str], expected: &str) -> Parsed<Compound> {
        const STOPS: &[&str] = &["}", "{", ",", "(", ")", "|", "=", "!=", "=~", "!~"];
        let first = self.peek();
        if first.kind == TokenKind::End || self.at_any(STOPS) {
            return self.unexpected(expected);
        }
        self.next();
        if first.kind == TokenKind::Quoted {
            let text = unquote(self.raw(first)).map_err(|f| f.shifted(first.start()))?;
            return Ok(Compound { text: text.into_owned(), start: first.start(), quoted: true });
        }
        let mut end = first.end();
        while self.glued()
            && self.peek().kind != TokenKind::Quoted
            && !self.at_any(STOPS)
            && !self.at_any(stops)
        {
            end = self.next().end();
        }
        let text = self.text.get(first.start()..end).unwrap_or("").to_owned();
        Ok(Compound { text, start: first.start(), quoted: false })
    }
}

fn parse_id(word: &Compound) -> Parsed<StreamId> {
    StreamId::parse(&word.text).ok_or_else(|| {
        Fault::new(word.start, format!("`{}` is not a stream id", short(&word.text)))
            .hint("stream ids have 32 hex digits")
    })
}
