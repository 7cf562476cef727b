//! The small pieces that filters and pipes share: words, names, lists, literals, conditions.

use super::super::ast::{Duration, FieldPattern, Filter, Number};
use super::super::fault::Fault;
use super::super::lexer::{TokenKind, unquote};
use super::{Compound, Parsed, Parser};
use crate::record::{parse_duration, parse_duration_nanos, parse_number};

/// Symbols that end a word wherever it stands.
const STOPS: &[&str] = &["*", ",", "(", ")", "[", "]", "|", ";"];

/// Symbols that look like a comparison when they stand inside of a word.
const OPERATORS: &[&str] = &["=", "!=", "=~", "!~", "<", ">", "~"];

impl<'q> Parser<'q> {
    /// A word: one quoted text, or neighbouring tokens without blanks between them. `expected`
    /// names what it is for.
    pub(super) fn compound(&mut self, colons: bool, expected: &str) -> Parsed<Compound> {
        let first = self.peek();
        if first.kind == TokenKind::End || self.at_any(STOPS) || (!colons && self.at(":")) {
            return self.unexpected(expected);
        }
        if self.at_any(&["{", "}"]) || self.at_any(OPERATORS) {
            return self.unexpected(expected).map_err(quote_it);
        }
        self.next();
        if first.kind == TokenKind::Quoted {
            self.check_glue(colons)?;
            let text = unquote(self.raw(first)).map_err(|f| f.shifted(first.start()))?;
            let text = text.into_owned();
            return Ok(Compound { text, start: first.start(), quoted: true });
        }
        let mut end = first.end();
        while self.glued() && !self.at_any(STOPS) && (colons || !self.at(":")) {
            if self.peek().kind == TokenKind::Quoted {
                let fault = "missing white space in front of the quoted text";
                return self.fail(fault).map_err(quote_it);
            }
            if self.at_any(OPERATORS) || self.at_any(&["{", "}"]) {
                return self.operator_in_word(self.text.get(first.start()..end).unwrap_or(""));
            }
            end = self.next().end();
        }
        let text = self.text.get(first.start()..end).unwrap_or("").to_owned();
        Ok(Compound { text, start: first.start(), quoted: false })
    }

    /// After a quoted text: nothing may follow it directly but a symbol that ends it.
    fn check_glue(&self, colons: bool) -> Parsed<()> {
        let free = !self.glued() || self.at_any(STOPS) || self.at("}") || (self.at(":") && !colons);
        if free {
            return Ok(());
        }
        if self.at_any(OPERATORS) {
            return self.operator_in_word("name");
        }
        self.fail("missing white space behind the quoted text").map_err(quote_it)
    }

    fn operator_in_word<T>(&self, left: &str) -> Parsed<T> {
        let operator = self.show(self.peek());
        // Two of `=` are meant as one.
        let doubled = self.is(self.peek(), "=") && self.is(self.peek_at(1), "=");
        let compared = self.at_any(&["<", ">"]) && self.is(self.peek_at(1), "=");
        let right = self.peek_at(if doubled || compared { 2 } else { 1 });
        let right = match right.kind {
            TokenKind::Word | TokenKind::Quoted => self.raw(right),
            _ => "value",
        };
        let sign = match self.raw(self.peek()) {
            "=~" | "~" => "~",
            "<" if compared => "<=",
            ">" if compared => ">=",
            other => other,
        };
        let fault = Fault::new(self.peek().start(), format!("unexpected {operator} in a word"));
        let short: String = left.chars().take(40).collect();
        if let Some(hint) = self.fuzziness() {
            return Err(fault.hint(hint));
        }
        Err(fault
            .hint(format!("write {short}:{sign}{right} to filter by a field, or quote the text")))
    }

    /// A field name.
    pub(super) fn field_name(&mut self) -> Parsed<String> {
        Ok(self.compound(false, "a field name")?.text)
    }

    /// The name of a result, behind an optional `as`.
    pub(super) fn result_name(&mut self) -> Parsed<String> {
        self.eat("as");
        Ok(self.compound(false, "the name of the result")?.text)
    }

    /// `[as] name` if something follows that is not one of `stops`, `,` or the end of the pipe.
    pub(super) fn optional_result(&mut self, stops: &[&str]) -> Parsed<Option<String>> {
        if self.at_stop() || self.at(",") || self.at_any(stops) {
            return Ok(None);
        }
        self.result_name().map(Some)
    }

    /// A field name, `prefix*` or `*`.
    pub(super) fn field_pattern(&mut self) -> Parsed<FieldPattern> {
        if self.eat("*") {
            return Ok(FieldPattern::all());
        }
        let name = self.field_name()?;
        if self.glued() && self.eat("*") {
            return Ok(FieldPattern::Prefix(name));
        }
        Ok(FieldPattern::Name(name))
    }

    /// `item, item, ...` with at least one item.
    pub(super) fn comma_list<T>(
        &mut self,
        mut item: impl FnMut(&mut Self) -> Parsed<T>,
    ) -> Parsed<Vec<T>> {
        let mut list = vec![item(self)?];
        while self.eat(",") {
            list.push(item(self)?);
        }
        Ok(list)
    }

    /// `(item, item, ...)`, possibly empty; a comma before the end is fine.
    pub(super) fn paren_list<T>(
        &mut self,
        mut item: impl FnMut(&mut Self) -> Parsed<T>,
    ) -> Parsed<Vec<T>> {
        self.require("(", "in front of the list").map_err(|fault| {
            let word = self.raw(self.peek());
            let name = if self.peek().kind == TokenKind::Word { word } else { "a" };
            fault.hint(format!("names of a list stand in parentheses: by ({name})"))
        })?;
        let mut list = Vec::new();
        while !self.eat(")") {
            list.push(item(self)?);
            if !self.eat(",") && !self.at(")") {
                return self.unexpected("`,` or `)`");
            }
        }
        Ok(list)
    }

    /// `(a, b)` of plain names.
    pub(super) fn name_list(&mut self) -> Parsed<Vec<String>> {
        self.paren_list(Self::plain_name)
    }

    /// `(a, b)` or `a, b`, of plain names and at least one.
    pub(super) fn loose_name_list(&mut self) -> Parsed<Vec<String>> {
        if !self.at("(") {
            return self.comma_list(Self::plain_name);
        }
        let start = self.peek().start();
        let list = self.name_list()?;
        if list.is_empty() {
            return Err(Fault::new(start, "expected at least one field name"));
        }
        Ok(list)
    }

    /// A field name where wildcards are refused.
    pub(super) fn plain_name(&mut self) -> Parsed<String> {
        let name = self.field_name()?;
        if self.at("*") {
            return self.fail("wildcards are not allowed here");
        }
        Ok(name)
    }

    /// A text in quotes or a bare word.
    pub(super) fn string(&mut self, expected: &str) -> Parsed<Compound> {
        self.compound(true, expected)
    }

    /// A length of time, perhaps negative.
    pub(super) fn duration(&mut self) -> Parsed<Duration> {
        let word = self.compound(true, "a duration such as 5m")?;
        match parse_duration_nanos(word.text.as_bytes()) {
            Some(nanos) => Ok(Duration { text: word.text, nanos }),
            None if parse_duration(word.text.as_bytes()).is_some() => {
                let message = format!("`{}` is too long", short(&word.text));
                Err(Fault::new(word.start, message).hint("durations go up to 292y"))
            }
            None => {
                Err(Fault::new(word.start, format!("`{}` is not a duration", short(&word.text)))
                    .hint("durations look like 5m, 1.5h or 1d12h30m"))
            }
        }
    }

    /// A number, duration or size.
    pub(super) fn number(&mut self) -> Parsed<Number> {
        let word = self.compound(true, "a number")?;
        if parse_number(word.text.as_bytes()).is_none() {
            let message = format!("`{}` is not a number", short(&word.text));
            return Err(Fault::new(word.start, message));
        }
        Ok(Number { text: word.text })
    }

    /// A whole number that is not negative; sizes such as `1KB` count.
    pub(super) fn count(&mut self) -> Parsed<u64> {
        let (name, sign) = (self.behind(1), self.peek());
        // `limit=10`, `head -n 5`, `head -5`.
        let meant = |p: &Self| {
            let is_sign = p.is(sign, "=") || p.is(sign, "-");
            let mut ahead = p.tokens.get(p.position..).unwrap_or(&[]).iter().take(3);
            let number = ahead.find(|t| whole_number(p.raw(**t)).is_some()).filter(|_| is_sign);
            let name = name.filter(|name| name.kind == TokenKind::Word);
            name.zip(number).map(|(name, n)| format!("write {} {}", p.raw(name), p.raw(*n)))
        };
        let meant = meant(self);
        let word = self.compound(false, "a number");
        let word = word.map_err(|fault| match &meant {
            Some(hint) => fault.hint(hint),
            None => fault,
        })?;
        whole_number(&word.text).ok_or_else(|| {
            let message = format!("`{}` is not a whole number", short(&word.text));
            super::lookalike::or_hint(Fault::new(word.start, message), meant)
        })
    }

    /// As `count`, at least 1.
    pub(super) fn positive_count(&mut self) -> Parsed<u64> {
        let start = self.peek().start();
        match self.count()? {
            0 => Err(Fault::new(start, "the number must be at least 1")),
            n => Ok(n),
        }
    }

    /// `limit N` if it stands here.
    pub(super) fn optional_limit(&mut self) -> Parsed<Option<u64>> {
        if self.eat("limit") { self.count().map(Some) } else { Ok(None) }
    }

    /// `if (filter)` if it stands here; `if ()` holds for every row.
    pub(super) fn optional_condition(&mut self) -> Parsed<Option<Filter>> {
        if self.eat("if") { self.condition().map(Some) } else { Ok(None) }
    }

    /// `(filter)`, where nothing between the parentheses holds for every row.
    pub(super) fn condition(&mut self) -> Parsed<Filter> {
        self.require("(", "in front of the condition")?;
        if self.eat(")") {
            return Ok(Filter::All);
        }
        let filter = self.leading_filter()?;
        self.eat(";");
        self.require(")", "behind the condition")?;
        Ok(filter)
    }
}

/// A suggestion to quote.
fn quote_it(fault: Fault) -> Fault {
    fault.hint("quote the text if it is meant literally")
}

/// The beginning of a text, for messages.
pub(super) fn short(text: &str) -> String {
    let shown: String = text.chars().take(40).collect();
    if shown.len() < text.len() { format!("{shown}...") } else { shown }
}

/// Reads a whole number: decimal digits, or any other number text with an exact integer value.
pub(super) fn whole_number(text: &str) -> Option<u64> {
    if text.bytes().all(|b| b.is_ascii_digit()) {
        return text.parse().ok();
    }
    let value = parse_number(text.as_bytes())?;
    let exact = (0.0..9_007_199_254_740_992.0).contains(&value) && value.fract() == 0.0;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "just checked")]
    let whole = value as u64;
    exact.then_some(whole)
}
