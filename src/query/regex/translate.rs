//! RE2 syntax -> the syntax of regex-syntax, where the two differ.
//!
//! Only the differences are handled here; whatever else is wrong with an expression is found by
//! the compiler behind. A single pass, linear in the length.

use std::str::Chars;

use super::RegexFault;

/// Largest count in a repetition.
const MAX_REPEAT: u32 = 1_000;

/// What the expression read so far ends in.
#[derive(Clone, Copy, PartialEq)]
enum Before {
    /// Nothing that can be repeated.
    Nothing,
    /// Something that can be repeated.
    Atom,
    /// A repetition; `?` may follow once.
    Repeat,
    /// A repetition with its `?`.
    LazyRepeat,
}

/// An expression in the other syntax.
pub(super) struct Translated {
    /// The expression.
    pub(super) pattern: String,
    /// For each piece of it the place where it begins, and where that is in the source.
    places: Vec<(usize, usize)>,
}

impl Translated {
    /// Where in the source the byte `at` of the pattern comes from.
    pub(super) fn source_of(&self, at: usize) -> usize {
        let after = self.places.partition_point(|(place, _)| *place <= at);
        let piece = after.checked_sub(1).and_then(|i| self.places.get(i));
        piece.map_or(0, |(_, source)| *source)
    }
}

/// The same expression in the other syntax.
pub(super) fn to_rust_syntax(source: &str) -> Result<Translated, RegexFault> {
    let mut t = Translator {
        rest: Rest(source.chars()),
        out: String::with_capacity(source.len() + 16),
        before: Before::Nothing,
    };
    let mut places = Vec::new();
    loop {
        let at = source.len() - t.rest.0.as_str().len();
        let Some(c) = t.rest.next() else { break };
        places.push((t.out.len(), at));
        t.step(c).map_err(|message| RegexFault { at, message })?;
    }
    Ok(Translated { pattern: t.out, places })
}

/// What is left of the source.
#[derive(Clone)]
struct Rest<'a>(Chars<'a>);

impl Iterator for Rest<'_> {
    type Item = char;

    fn next(&mut self) -> Option<char> {
        self.0.next()
    }
}

impl Rest<'_> {
    fn peek(&self) -> Option<char> {
        self.0.clone().next()
    }

    fn next_if(&mut self, wanted: impl Fn(char) -> bool) -> Option<char> {
        let next = self.peek().filter(|c| wanted(*c))?;
        self.0.next();
        Some(next)
    }

    fn next_if_eq(&mut self, wanted: char) -> Option<char> {
        self.next_if(|c| c == wanted)
    }
}

struct Translator<'a> {
    rest: Rest<'a>,
    out: String,
    before: Before,
}

impl Translator<'_> {
    fn step(&mut self, c: char) -> Result<(), String> {
        match c {
            '\\' => self.escape()?,
            '[' => self.class()?,
            '(' => self.group()?,
            '|' => self.push('|', Before::Nothing),
            '*' | '+' => {
                self.repeat()?;
                self.out.push(c);
            }
            '?' if self.before == Before::Repeat => self.push('?', Before::LazyRepeat),
            '?' => {
                self.repeat()?;
                self.out.push('?');
            }
            '{' => self.braces()?,
            // A closing brace without an opening one is itself.
            '}' | ']' => {
                self.out.push('\\');
                self.push(c, Before::Atom);
            }
            _ => self.push(c, Before::Atom),
        }
        Ok(())
    }

    fn push(&mut self, c: char, before: Before) {
        self.out.push(c);
        self.before = before;
    }

    fn repeat(&mut self) -> Result<(), String> {
        match self.before {
            Before::Nothing => Err("a repetition has nothing to repeat".to_owned()),
            Before::Repeat | Before::LazyRepeat => Err("a repetition of a repetition".to_owned()),
            Before::Atom => {
                self.before = Before::Repeat;
                Ok(())
            }
        }
    }

    /// `(`, `(?:`, `(?flags)`, `(?flags:`, `(?P<name>`, `(?<name>`.
    fn group(&mut self) -> Result<(), String> {
        self.push('(', Before::Nothing);
        if self.rest.next_if_eq('?').is_none() {
            return Ok(());
        }
        self.out.push('?');
        if self.rest.next_if_eq('P').is_some() {
            self.out.push('P');
            if self.rest.peek() != Some('<') {
                return Err("a name of a group is written (?P<name>...)".to_owned());
            }
            return Ok(());
        }
        if self.rest.peek() == Some('<') {
            return match self.rest.clone().nth(1) {
                Some('=' | '!') => Err("look-around is not supported".to_owned()),
                _ => Ok(()),
            };
        }
        for c in self.rest.by_ref() {
            self.out.push(c);
            match c {
                ':' | ')' => return Ok(()),
                'i' | 'm' | 's' | 'U' | '-' => {}
                '=' | '!' => return Err("look-around is not supported".to_owned()),
                _ => return Err(format!("unknown flag {c}")),
            }
        }
        Ok(())
    }

    /// `{n}`, `{n,}`, `{n,m}`; anything else in braces is literal.
    fn braces(&mut self) -> Result<(), String> {
        let mut ahead = self.rest.clone();
        let body: String = ahead.by_ref().take_while(|c| *c != '}').take(16).collect();
        let number = |text: &str| text.bytes().all(|b| b.is_ascii_digit()) && !text.is_empty();
        let (least, most) = body.split_once(',').unwrap_or((&body, &body));
        let closed = self.rest.clone().nth(body.chars().count()) == Some('}');
        if !closed || !number(least) || !(most.is_empty() || number(most)) {
            self.out.push('\\');
            self.push('{', Before::Atom);
            return Ok(());
        }
        let too_large =
            |text: &str| text.parse::<u32>().map_or(!text.is_empty(), |n| n > MAX_REPEAT);
        if too_large(least) || too_large(most) {
            return Err(format!("a repetition of more than {MAX_REPEAT} times"));
        }
        self.repeat()?;
        self.out.push('{');
        for _ in 0..=body.len() {
            self.out.extend(self.rest.next());
        }
        Ok(())
    }

    /// Behind a backslash outside of brackets.
    fn escape(&mut self) -> Result<(), String> {
        let Some(c) = self.rest.next() else {
            return Err("a backslash at the end".to_owned());
        };
        let mut before = Before::Atom;
        match c {
            'b' | 'B' => {
                self.out.push_str(if c == 'b' { "(?-u:\\b)" } else { "(?-u:\\B)" });
            }
            'A' | 'z' => self.out.extend(['\\', c]),
            'Q' => before = self.literal(),
            'd' | 'D' | 'w' | 'W' | 's' | 'S' => self.perl_class(c),
            _ => self.common_escape(c)?,
        }
        self.before = before;
        Ok(())
    }

    /// `\Q...\E`
    fn literal(&mut self) -> Before {
        let mut before = self.before;
        while let Some(c) = self.rest.next() {
            if c == '\\' && self.rest.next_if_eq('E').is_some() {
                break;
            }
            self.out.push_str(&regex_syntax::escape(c.encode_utf8(&mut [0; 4])));
            before = Before::Atom;
        }
        before
    }

    fn perl_class(&mut self, c: char) {
        self.out.push_str(match c {
            'd' => "[0-9]",
            'D' => "[^0-9]",
            'w' => "[0-9A-Za-z_]",
            'W' => "[^0-9A-Za-z_]",
            's' => "[\\t\\n\\x0C\\r ]",
            _ => "[^\\t\\n\\x0C\\r ]",
        });
    }

    /// Escapes that mean the same inside and outside of brackets.
    fn common_escape(&mut self, c: char) -> Result<(), String> {
        match c {
            'a' | 'f' | 't' | 'n' | 'r' | 'v' => self.out.extend(['\\', c]),
            'x' => {
                self.out.push_str("\\x");
                self.braced();
            }
            'p' | 'P' => self.property(c),
            '0'..='7' => self.octal(c)?,
            c if c.is_ascii() && !c.is_ascii_alphanumeric() => self.literal_char(c),
            _ => return Err(format!("unknown escape \\{c}")),
        }
        Ok(())
    }

    /// A character that stands for itself.
    fn literal_char(&mut self, c: char) {
        self.out.push_str(&format!("\\x{{{:X}}}", u32::from(c)));
    }

    /// `\pL`, `\p{Greek}`, `\p{^Greek}`
    fn property(&mut self, c: char) {
        let mut negated = c == 'P';
        if self.rest.peek() != Some('{') {
            self.out.extend(['\\', c]);
            self.out.extend(self.rest.next());
            return;
        }
        self.rest.next();
        if self.rest.next_if_eq('^').is_some() {
            negated = !negated;
        }
        self.out.push_str(if negated { "\\P{" } else { "\\p{" });
        self.copy_to_brace();
    }

    /// Copies `{...}` if it stands here.
    fn braced(&mut self) {
        if self.rest.next_if_eq('{').is_some() {
            self.out.push('{');
            self.copy_to_brace();
        }
    }

    fn copy_to_brace(&mut self) {
        for c in self.rest.by_ref() {
            self.out.push(c);
            if c == '}' {
                return;
            }
        }
    }

    /// `\123`: up to three digits, and at least two unless the first is 0.
    fn octal(&mut self, first: char) -> Result<(), String> {
        let mut digits = String::from(first);
        while digits.len() < 3 {
            match self.rest.next_if(|c| ('0'..='7').contains(&c)) {
                Some(digit) => digits.push(digit),
                None => break,
            }
        }
        if digits.len() == 1 && first != '0' {
            return Err("back-references are not supported".to_owned());
        }
        let value = u32::from_str_radix(&digits, 8).unwrap_or(0);
        self.out.push_str(&format!("\\x{{{value:X}}}"));
        Ok(())
    }

    /// Everything up to the closing bracket.
    fn class(&mut self) -> Result<(), String> {
        self.push('[', Before::Atom);
        if self.rest.next_if_eq('^').is_some() {
            self.out.push('^');
        }
        let mut first = true;
        while let Some(c) = self.rest.next() {
            if c == ']' && !first {
                self.out.push(']');
                return Ok(());
            }
            first = false;
            if self.class_item(c)? {
                continue;
            }
            // A dash makes a range unless it stands at the end of the class.
            let mut ahead = self.rest.clone();
            if ahead.next() == Some('-') && ahead.next().is_some_and(|c| c != ']') {
                self.rest.next();
                self.out.push('-');
                if let Some(c) = self.rest.next() {
                    self.class_char(c)?;
                }
            }
        }
        Err("missing ]".to_owned())
    }

    /// What begins with `c` in a class; true for a class within it, which begins no range.
    fn class_item(&mut self, c: char) -> Result<bool, String> {
        let set = match (c, self.rest.peek()) {
            ('[', Some(':')) => return Ok(self.posix_class()),
            ('\\', Some(c)) => "dDwWsSpP".contains(c),
            _ => false,
        };
        self.class_char(c)?;
        Ok(set)
    }

    /// One character or escape. In the other syntax some make nested classes and set operations.
    fn class_char(&mut self, c: char) -> Result<(), String> {
        match c {
            '\\' => self.class_escape()?,
            c if c.is_ascii_punctuation() => self.literal_char(c),
            c => self.out.push(c),
        }
        Ok(())
    }

    /// `[:alpha:]`, or a literal bracket and false.
    fn posix_class(&mut self) -> bool {
        let name: String = self.rest.clone().skip(1).take(16).take_while(|c| *c != ':').collect();
        let mut behind = self.rest.clone().skip(1 + name.chars().count());
        if behind.next() != Some(':') || behind.next() != Some(']') {
            self.literal_char('[');
            return false;
        }
        self.out.push_str(&format!("[:{name}:]"));
        for _ in 0..name.chars().count() + 3 {
            self.rest.next();
        }
        true
    }

    fn class_escape(&mut self) -> Result<(), String> {
        match self.rest.next() {
            None => Err("a backslash at the end".to_owned()),
            Some(c @ ('d' | 'D' | 'w' | 'W' | 's' | 'S')) => {
                self.perl_class(c);
                Ok(())
            }
            Some(c) => self.common_escape(c),
        }
    }
}
