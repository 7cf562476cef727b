//! LogsQL text -> [`Query`].
//!
//! A recursive descent over the tokens. Invariants:
//!
//! * Nesting (parentheses, subqueries, expressions) is counted by [`Parser::nested`], so no text
//!   overflows the stack; repeated `!` and long chains are loops.
//! * Work is linear: what copies text or compiles expressions pays with [`Parser::charge`].
//! * Inside, errors are [`Fault`]s; the public error gets the query's text at the very end.

mod filter;
mod function;
mod lookalike;
mod math;
mod options;
mod pattern;
mod pipe;
mod pipe_fields;
mod pipe_values;
mod running;
mod scan;
mod stats;
mod stream;
mod time;

use std::str::FromStr;

use super::ast::{ExtractPattern, Filter, FormatPattern, MatchAnchor, MatchPattern, Query};
use super::fault::Fault;
use super::lexer::{Token, TokenKind, offset_as_written, tokenize};
use super::names;
use super::regex::Regex;
use crate::error::QueryError;

/// Longest query text in bytes, unless the caller allows more.
pub(crate) const MAX_QUERY_LEN: usize = 1 << 20;

/// Deepest nesting.
const MAX_DEPTH: u32 = 128;
/// Levels that a query takes: what it needs of the stack, and no more queries in each other than
/// the executor runs.
const QUERY_LEVELS: u32 = 8;

/// What one query may spend on copies and compiled expressions, about in bytes.
const BUDGET: usize = 96 << 20;

type Parsed<T> = Result<T, Fault>;

impl FromStr for Query {
    type Err = QueryError;

    /// Parses LogsQL of at most 1 MiB.
    fn from_str(text: &str) -> Result<Query, QueryError> {
        parse_query(text, MAX_QUERY_LEN)
    }
}

impl FromStr for Filter {
    type Err = QueryError;

    /// Parses a filter without pipes, of at most 1 MiB.
    fn from_str(text: &str) -> Result<Filter, QueryError> {
        let parse = || {
            let mut parser = Parser::new(text, MAX_QUERY_LEN)?;
            let filter = parser.leading_filter()?;
            parser.expect_end()?;
            Ok(filter)
        };
        parse().map_err(|fault: Fault| fault.in_query(text))
    }
}

/// Parses a query of at most `max_len` bytes.
pub(crate) fn parse_query(text: &str, max_len: usize) -> Result<Query, QueryError> {
    let parse = || {
        let mut parser = Parser::new(text, max_len)?;
        let query = parser.query()?;
        parser.expect_end()?;
        Ok(query)
    };
    parse().map_err(|fault: Fault| fault.in_query(text))
}

/// Takes the pattern of `extract` apart.
pub(crate) fn extract_pattern(source: &str) -> Result<ExtractPattern, QueryError> {
    pattern::extract_pattern(whole(source)).map_err(|fault| fault.in_query(source))
}

/// Takes the pattern of `format` apart.
pub(crate) fn format_pattern(source: &str) -> Result<FormatPattern, QueryError> {
    pattern::format_pattern(whole(source)).map_err(|fault| fault.in_query(source))
}

/// Takes a pattern of `pattern_match` apart.
pub(crate) fn match_pattern(source: String, anchor: MatchAnchor) -> MatchPattern {
    pattern::match_pattern(source, anchor)
}

/// A text that no query stands around.
fn whole(text: &str) -> Compound {
    Compound { text: text.to_owned(), start: 0, quoted: true }
}

/// The state of a parse: a position among the tokens.
struct Parser<'q> {
    text: &'q str,
    tokens: Vec<Token>,
    position: usize,
    depth: u32,
    spent: usize,
}

/// A word glued together from neighbouring tokens, or one quoted text.
struct Compound {
    text: String,
    start: usize,
    quoted: bool,
}

impl<'q> Parser<'q> {
    fn new(text: &'q str, max_len: usize) -> Parsed<Parser<'q>> {
        let max_len = max_len.min(u32::MAX as usize - 1);
        if text.len() > max_len {
            let len = text.len();
            return Err(Fault::new(0, format!("the query has {len} bytes; {max_len} are allowed")));
        }
        Ok(Parser { text, tokens: tokenize(text)?, position: 0, depth: 0, spent: 0 })
    }

    /// Runs `parse` one level deeper.
    fn nested<T>(&mut self, parse: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        self.nested_by(1, parse)
    }

    fn nested_by<T>(
        &mut self,
        levels: u32,
        parse: impl FnOnce(&mut Self) -> Parsed<T>,
    ) -> Parsed<T> {
        if self.depth + levels > MAX_DEPTH {
            let most = MAX_DEPTH / QUERY_LEVELS;
            return self.fail(format!("nested more than {MAX_DEPTH} levels, or {most} queries"));
        }
        self.depth += levels;
        let parsed = parse(self);
        self.depth -= levels;
        parsed
    }

    /// Pays for a copy of `bytes` bytes.
    fn charge(&mut self, bytes: usize) -> Parsed<()> {
        self.spent = self.spent.saturating_add(bytes);
        if self.spent > BUDGET { self.fail("the query is too complex") } else { Ok(()) }
    }

    /// `{options} filter | pipe | ...`, with an optional `;` at the end.
    fn query(&mut self) -> Parsed<Query> {
        self.nested_by(QUERY_LEVELS, |p| {
            let options = p.options()?;
            let filter = p.leading_filter()?;
            let mut pipes = Vec::new();
            while p.eat("|") {
                let pipe = p.pipe(pipes.is_empty())?;
                pipes.push(pipe);
            }
            p.eat(";");
            Ok(Query { options, filter, pipes })
        })
    }

    fn expect_end(&mut self) -> Parsed<()> {
        self.eat(";");
        let token = self.peek();
        if token.kind == TokenKind::End {
            return Ok(());
        }
        let fault = Fault::new(token.start(), format!("unexpected {}", self.show(token)));
        let behind_end = self.behind(1).is_some_and(|before| self.is(before, ";"));
        Err(if self.raw(token) == ")" {
            fault.hint("it closes no parenthesis")
        } else if behind_end && names::contains(names::PIPES, self.raw(token)) {
            fault.hint(format!("pipes have a bar in front: | {}", self.raw(token)))
        } else {
            fault.hint("quote it if it is meant to be searched for")
        })
    }

    /// The current token.
    fn peek(&self) -> Token {
        self.peek_at(0)
    }

    /// The token `ahead` places behind the current one.
    fn peek_at(&self, ahead: usize) -> Token {
        let end = self.text.len();
        let token = self.tokens.get(self.position + ahead).or(self.tokens.last());
        token.copied().unwrap_or_else(|| Token::end_at(end))
    }

    /// Takes the current token; stays at the end.
    fn next(&mut self) -> Token {
        let token = self.peek();
        if token.kind != TokenKind::End {
            self.position += 1;
        }
        token
    }

    /// The text of a token as written.
    fn raw(&self, token: Token) -> &'q str {
        self.text.get(token.start()..token.end()).unwrap_or("")
    }

    /// The text of a token for messages.
    fn show(&self, token: Token) -> String {
        if token.kind == TokenKind::End {
            return "end of the query".to_owned();
        }
        let raw = self.raw(token);
        let shown: String = raw.chars().take(40).collect();
        if shown.len() < raw.len() { format!("`{shown}...`") } else { format!("`{shown}`") }
    }

    /// Whether the current token is this unquoted word or symbol, in any case.
    fn at(&self, word: &str) -> bool {
        self.is(self.peek(), word)
    }

    fn is(&self, token: Token, word: &str) -> bool {
        matches!(token.kind, TokenKind::Word | TokenKind::Symbol)
            && self.raw(token).eq_ignore_ascii_case(word)
    }

    /// Whether the current token is one of these.
    fn at_any(&self, words: &[&str]) -> bool {
        words.iter().any(|word| self.at(word))
    }

    /// Whether a pipe or query ends here.
    fn at_stop(&self) -> bool {
        self.peek().kind == TokenKind::End || self.at_any(&["|", ")", ";"])
    }

    /// Whether the current token follows the one before without a blank.
    fn glued(&self) -> bool {
        self.position > 0 && !self.peek().spaced && self.peek().kind != TokenKind::End
    }

    /// Takes the current token if it is this word or symbol.
    fn eat(&mut self, word: &str) -> bool {
        let found = self.at(word);
        if found {
            self.position += 1;
        }
        found
    }

    /// Takes this symbol or word, or fails; `place` says where it was expected.
    fn require(&mut self, word: &str, place: &str) -> Parsed<()> {
        if self.eat(word) { Ok(()) } else { self.unexpected(&format!("`{word}` {place}")) }
    }

    /// An error at the current token.
    fn fail<T>(&self, message: impl Into<String>) -> Parsed<T> {
        Err(Fault::new(self.peek().start(), message))
    }

    /// An error at the current token, which should have been something else.
    fn unexpected<T>(&self, expected: &str) -> Parsed<T> {
        self.fail(format!("expected {expected}, found {}", self.show(self.peek())))
    }

    /// Compiles a regular expression that was written at `offset`.
    fn regex(&mut self, source: &str, offset: usize, anchored: bool) -> Parsed<Regex> {
        let compiled = if anchored { Regex::anchored(source) } else { Regex::new(source) };
        let regex = compiled.map_err(|mut fault| {
            let written = self.text.get(offset..).unwrap_or("");
            fault.at = offset_as_written(written, fault.at);
            Fault::of_regex(&fault, offset)
        })?;
        self.charge(regex.memory())?;
        Ok(regex)
    }
}
