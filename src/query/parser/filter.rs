//! Filters: the logic and the predicates that are written with signs.

use super::super::ast::{
    CompareOp, FieldPattern, Filter, MESSAGE_FIELD, Predicate, STREAM_FIELD, STREAM_ID_FIELD,
    TIME_FIELD,
};
use super::super::fault::Fault;
use super::super::lexer::{Token, TokenKind};
use super::super::names;
use super::{Compound, Parsed, Parser};

/// The field that a filter stands under: `None` outside of `name:`.
pub(super) type Scope<'a> = Option<&'a FieldPattern>;

/// What a leaf costs beside its texts.
const LEAF_COST: usize = 64;

impl Parser<'_> {
    /// A filter at the start of a query, a step or a condition, where names of pipes and stats
    /// functions have to be quoted.
    pub(super) fn leading_filter(&mut self) -> Parsed<Filter> {
        let first = self.peek();
        if self.at_stop() {
            return self.unexpected("a filter");
        }
        self.refuse_sql()?;
        let word = self.raw(first);
        let is_name = names::contains(names::PIPES, word) || names::contains(names::STATS, word);
        // `patterns` is of our own making; queries written elsewhere may search for it.
        let reserved = first.kind == TokenKind::Word && is_name && !self.at("patterns");
        if reserved {
            let fault = Fault::new(first.start(), format!("a filter cannot start with `{word}`"));
            return Err(fault.hint(self.leading_name(word)));
        }
        self.filter(None)
    }

    /// `a b or c !d`
    pub(super) fn filter(&mut self, scope: Scope<'_>) -> Parsed<Filter> {
        let mut alternatives = Vec::new();
        loop {
            alternatives.push(self.conjunction(scope)?);
            if !self.eat("or") {
                return Ok(Filter::or(alternatives));
            }
            self.after_operator("or")?;
        }
    }

    fn conjunction(&mut self, scope: Scope<'_>) -> Parsed<Filter> {
        let mut parts = Vec::new();
        loop {
            if !parts.is_empty() && self.glued() && !self.behind_opener() {
                return Err(self.no_blank());
            }
            parts.push(self.negation(scope)?);
            if self.at_stop() || self.at("or") {
                return Ok(Filter::and(parts));
            }
            if self.eat("and") {
                self.after_operator("and")?;
            }
        }
    }

    /// Two filters that touch each other.
    fn no_blank(&self) -> Fault {
        let message = format!("missing white space in front of {}", self.show(self.peek()));
        let fault = Fault::new(self.peek().start(), message);
        let star = self.behind(1).is_some_and(|token| self.is(token, "*"));
        if star || self.at("/") {
            return fault.hint(self.regex_between_slashes());
        }
        if self.at(",") {
            return fault.hint("write `or` for either, or quote the text");
        }
        fault.hint("put a blank between two filters, or quote the text")
    }

    fn after_operator(&self, word: &str) -> Parsed<()> {
        if self.at_stop() {
            return self.unexpected(&format!("a filter behind `{word}`"));
        }
        if self.at(":") {
            let fault = Fault::new(self.peek().start(), format!("`{word}` is not a field name"));
            return Err(fault.hint(format!("quote it: \"{word}\":")));
        }
        Ok(())
    }

    /// Whether the token before the current one is a sign that needs no blank behind it.
    fn behind_opener(&self) -> bool {
        let before = self.position.checked_sub(1).and_then(|i| self.tokens.get(i));
        before.is_some_and(|&t| ["|", ":", "(", "!", "-"].iter().any(|sign| self.is(t, sign)))
    }

    /// Any number of `!`, `-` and `not`, then a term.
    fn negation(&mut self, scope: Scope<'_>) -> Parsed<Filter> {
        let mut negated = false;
        while self.at_any(&["!", "-"]) || self.at_not() {
            self.next();
            negated = !negated;
            if self.at_stop() {
                return self.unexpected("a filter to negate");
            }
        }
        let term = self.term(scope)?;
        Ok(if negated { !term } else { term })
    }

    fn at_not(&self) -> bool {
        self.at("not") && !self.is(self.peek_at(1), ":")
    }

    fn term(&mut self, scope: Scope<'_>) -> Parsed<Filter> {
        let token = self.peek();
        match token.kind {
            TokenKind::End => self.unexpected("a filter"),
            TokenKind::Quoted => self.phrase(scope),
            TokenKind::Word if self.at_any(&["and", "or"]) => {
                let message = format!("unexpected {}", self.show(token));
                Err(Fault::new(token.start(), message).hint("quote it to search for the word"))
            }
            TokenKind::Word if self.at_function() => self.function(scope),
            TokenKind::Word => self.phrase(scope),
            TokenKind::Symbol => self.symbol(scope, token),
        }
    }

    fn symbol(&mut self, scope: Scope<'_>, token: Token) -> Parsed<Filter> {
        let sign = self.raw(token);
        match sign {
            "(" => self.nested(|p| p.parentheses(scope)),
            "{" => self.stream_under(scope),
            "*" => self.star(scope),
            "=" | "!=" | "~" | "!~" | "=~" | ">" | "<" => {
                self.next();
                self.check_operator(scope, token)?;
                if sign == "=" && self.glued() && self.at("=") {
                    let fault = Fault::new(token.start(), "unexpected `==`");
                    return Err(fault.hint("one `=` behind the colon is enough: field:=value"));
                }
                match sign {
                    "=" => self.exact(scope),
                    "!=" => self.exact(scope).map(|filter| !filter),
                    "~" | "=~" => self.regex_filter(scope),
                    "!~" => self.regex_filter(scope).map(|filter| !filter),
                    _ => self.comparison(scope, sign == ">"),
                }
            }
            "," | ")" | "]" | "[" | "|" | ":" | ";" | "}" => {
                let message = format!("expected a filter, found {}", self.show(token));
                let hint = match sign {
                    "[" if scope.is_some() || self.is(self.peek_at(2), "to") => {
                        self.range_of_lucene()
                    }
                    _ => "quote it to search for it".to_owned(),
                };
                Err(Fault::new(token.start(), message).hint(hint))
            }
            "&" if self.is(self.peek_at(1), "&") && self.peek_at(2).spaced => {
                let fault = Fault::new(token.start(), "unexpected `&&`");
                Err(fault.hint("filters with a blank between them are joined by `and` already"))
            }
            _ => self.phrase(scope),
        }
    }

    /// `foo = bar`: a sign with a blank behind it and no field in front of it.
    fn check_operator(&self, scope: Scope<'_>, sign: Token) -> Parsed<()> {
        // `>=` and `==` are two tokens.
        let long = self.glued() && self.at("=");
        let behind = self.peek_at(usize::from(long));
        if scope.is_some() || !behind.spaced {
            return Ok(());
        }
        let fault = Fault::new(sign.start(), format!("unexpected {}", self.show(sign)));
        let is_value = matches!(behind.kind, TokenKind::Word | TokenKind::Quoted);
        let right = if is_value { self.raw(behind) } else { "value" };
        let sign = match self.raw(sign) {
            sign @ (">" | "<") if long => format!("{sign}="),
            "=~" => "~".to_owned(),
            sign => sign.to_owned(),
        };
        let left = self.behind(2);
        let (left, hint) = match left.map(|t| (t.kind, self.raw(t))) {
            Some((TokenKind::Word | TokenKind::Quoted, left)) => (left, "to filter by a field"),
            _ if sign == "!=" => return Err(fault.hint(format!("write !{right}"))),
            _ if sign.ends_with('~') => return Err(fault.hint(format!("write {sign}{right}"))),
            _ => ("field", "to filter by a field"),
        };
        Err(fault.hint(format!("{hint} write {left}:{sign}{right}")))
    }

    fn parentheses(&mut self, scope: Scope<'_>) -> Parsed<Filter> {
        let open = self.next();
        if self.at_stop() {
            return self.unexpected("a filter behind `(`");
        }
        let filter = self.filter(scope)?;
        self.eat(";");
        if !self.eat(")") {
            let fault = Fault::new(self.peek().start(), "expected `)`");
            let at = open.start();
            return Err(fault.hint(format!("it has to close the `(` at byte {at}")));
        }
        Ok(filter)
    }

    /// A leaf under the field of `scope`, or under `_msg`.
    pub(super) fn leaf(&mut self, scope: Scope<'_>, predicate: Predicate) -> Parsed<Filter> {
        let field = match scope {
            Some(field) => field.clone(),
            None => FieldPattern::Name(MESSAGE_FIELD.to_owned()),
        };
        let (FieldPattern::Name(name) | FieldPattern::Prefix(name)) = &field;
        self.charge(LEAF_COST + name.len())?;
        Ok(Filter::Field { field, predicate })
    }

    /// Everything that starts with `*`: any value, `*:filter`, `*substring*`.
    fn star(&mut self, scope: Scope<'_>) -> Parsed<Filter> {
        let star = self.next();
        if scope.is_none() && self.eat(":") {
            return self.under(FieldPattern::all());
        }
        if !self.glued() || self.at_any(&["|", ")", ";", ","]) {
            return match scope {
                None => Ok(Filter::All),
                Some(_) => self.leaf(scope, Predicate::Any),
            };
        }
        let word = self.compound(scope.is_some(), "text behind `*`")?;
        if !self.glued() || !self.eat("*") {
            let fault = Fault::new(star.start(), "expected `*` behind the substring as well");
            return Err(fault.hint(format!("write *{}* for a substring", word.text)));
        }
        if self.glued() && !self.at_stop() && !self.at(",") {
            return self.fail("missing white space behind `*`");
        }
        self.leaf(scope, Predicate::Substring(word.text))
    }

    /// A word or phrase: what is searched for, or a field name.
    fn phrase(&mut self, scope: Scope<'_>) -> Parsed<Filter> {
        let word = self.compound(scope.is_some(), "a filter")?;
        if scope.is_none() {
            if self.eat(":") {
                return self.under_name(word);
            }
            if self.glued() && self.at("*") && self.is(self.peek_at(1), ":") {
                self.position += 2;
                return self.under(FieldPattern::Prefix(word.text));
            }
        }
        if self.glued() && self.at("(") {
            return self.unknown_function(&word);
        }
        if self.glued() && self.eat("*") {
            return self.leaf(scope, prefix(word.text));
        }
        self.leaf(scope, Predicate::Phrase(word.text))
    }

    fn unknown_function<T>(&self, word: &Compound) -> Parsed<T> {
        let shown = super::scan::short(&word.text);
        let fault = Fault::new(word.start, format!("there is no filter function `{shown}`"));
        let meant = super::lookalike::filter(&word.text).filter(|_| !word.quoted);
        if let Some(hint) = meant {
            return Err(fault.hint(hint));
        }
        Err(match names::nearest(names::FILTERS, &word.text) {
            Some(meant) if !word.quoted => fault.hint(format!("did you mean `{meant}`?")),
            _ => fault.hint("put a blank in front of `(` to search for the word"),
        })
    }

    fn under_name(&mut self, name: Compound) -> Parsed<Filter> {
        match name.text.as_str() {
            TIME_FIELD => self.time_filter(),
            STREAM_FIELD => self.stream_field(),
            STREAM_ID_FIELD => self.stream_id(),
            "_exists_" => {
                let field = self.raw(self.peek());
                let fault = Fault::new(name.start, "there is no field `_exists_`");
                Err(fault.hint(format!("write {field}:* for rows with a value")))
            }
            _ => self.under(FieldPattern::Name(name.text)),
        }
    }

    /// The filter behind `name:`.
    fn under(&mut self, field: FieldPattern) -> Parsed<Filter> {
        if self.at_stop() {
            let hint = "write field:* for rows with a value, field:\"\" for those without one";
            return self.unexpected("a filter behind `:`").map_err(|fault| fault.hint(hint));
        }
        self.negation(Some(&field))
    }

    /// Behind `=`: the whole value, or its start.
    pub(super) fn exact(&mut self, scope: Scope<'_>) -> Parsed<Filter> {
        if self.eat("*") {
            return self.leaf(scope, Predicate::ExactPrefix(String::new()));
        }
        if self.at_stop() {
            let hint = "write field:=\"\" for rows without a value";
            return self.unexpected("a value behind `=`").map_err(|fault| fault.hint(hint));
        }
        let word = self.string("a value behind `=`")?;
        let predicate = if self.glued() && self.eat("*") {
            Predicate::ExactPrefix(word.text)
        } else {
            Predicate::Exact(word.text)
        };
        self.no_call("a value")?;
        self.leaf(scope, predicate)
    }

    fn regex_filter(&mut self, scope: Scope<'_>) -> Parsed<Filter> {
        let word = self.string("a regular expression in quotes")?;
        self.no_call("a regular expression in quotes")?;
        let regex = self.regex(&word.text, word.start, false)?;
        self.leaf(scope, Predicate::Regex(regex))
    }

    /// Refuses `(`, `[` and `*` right behind a value.
    fn no_call(&self, expected: &str) -> Parsed<()> {
        if self.glued() && self.at_any(&["(", "[", "*"]) {
            return self.unexpected(&format!("a blank behind {expected}"));
        }
        Ok(())
    }

    fn comparison(&mut self, scope: Scope<'_>, greater: bool) -> Parsed<Filter> {
        let or_equal = self.glued() && self.eat("=");
        let op = match (greater, or_equal) {
            (true, true) => CompareOp::GreaterOrEqual,
            (true, false) => CompareOp::Greater,
            (false, true) => CompareOp::LessOrEqual,
            (false, false) => CompareOp::Less,
        };
        let word = self.string("a value to compare with")?;
        self.no_call("the value")?;
        self.leaf(scope, Predicate::Compare { op, value: word.text })
    }
}

/// `p*`, where the empty prefix is "any value".
fn prefix(text: String) -> Predicate {
    if text.is_empty() { Predicate::Any } else { Predicate::Prefix(text) }
}
