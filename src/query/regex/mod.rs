//! Regular expressions in RE2 syntax, compiled once at parse time.
//!
//! `.` matches every character, line feeds too; `\d`, `\w`, `\s` and `\b` are ASCII; there are no
//! back-references and no look-around. Matching takes time linear in the text.

mod translate;

use std::fmt;
use std::sync::Arc;

use regex_automata::meta;
use regex_automata::util::syntax;
use regex_syntax::ParserBuilder;
use regex_syntax::hir::Hir;
use translate::Translated;

/// Largest compiled automaton of one expression in bytes.
const NFA_SIZE_LIMIT: usize = 2 << 20;

/// Largest lazy automaton of one expression in bytes.
const HYBRID_CACHE: usize = 1 << 20;

/// Deepest nesting of one expression.
const NEST_LIMIT: u32 = 100;

/// A compiled regular expression; equal to another of the same source.
///
/// Cloning shares the compiled form.
#[derive(Clone)]
pub struct Regex {
    source: Arc<str>,
    compiled: Arc<meta::Regex>,
}

impl Regex {
    /// Compiles `source` to match anywhere; an error says why it is refused.
    pub(crate) fn new(source: &str) -> Result<Regex, RegexFault> {
        let translated = translate::to_rust_syntax(source)?;
        Regex::compile(source, &translated.pattern, &translated)
    }

    /// Compiles `source` to match whole values only.
    pub(crate) fn anchored(source: &str) -> Result<Regex, RegexFault> {
        // Without the anchors first: they would close groups that are open.
        Regex::new(source)?;
        let translated = translate::to_rust_syntax(source)?;
        Regex::compile(source, &format!("^(?:{})$", translated.pattern), &translated)
    }

    fn compile(source: &str, pattern: &str, translated: &Translated) -> Result<Regex, RegexFault> {
        let syntax =
            syntax::Config::new().utf8(false).dot_matches_new_line(true).nest_limit(NEST_LIMIT);
        let config = meta::Config::new()
            // An empty match inside a character would let a replacement tear it apart.
            .utf8_empty(true)
            .nfa_size_limit(Some(NFA_SIZE_LIMIT))
            .hybrid_cache_capacity(HYBRID_CACHE);
        let compiled = meta::Builder::new()
            .syntax(syntax)
            .configure(config)
            .build(pattern)
            .map_err(|error| explain(&error, translated))?;
        Ok(Regex { source: source.into(), compiled: Arc::new(compiled) })
    }

    /// The expression as written.
    pub fn as_str(&self) -> &str {
        &self.source
    }

    /// The compiled form.
    pub(crate) fn meta(&self) -> &meta::Regex {
        &self.compiled
    }

    /// Whether the expression matches somewhere in `text`.
    #[cfg(test)]
    pub(crate) fn is_match(&self, text: &[u8]) -> bool {
        self.compiled.is_match(text)
    }

    /// The expression taken apart, for the literals that every match holds; without the anchors
    /// of [`anchored`](Regex::anchored).
    pub(crate) fn hir(&self) -> Option<Hir> {
        let pattern = translate::to_rust_syntax(&self.source).ok()?.pattern;
        let mut parser = ParserBuilder::new();
        parser.utf8(false).dot_matches_new_line(true).nest_limit(NEST_LIMIT);
        parser.build().parse(&pattern).ok()
    }

    /// The names of its groups, the whole match first.
    pub(crate) fn group_names(&self) -> impl Iterator<Item = Option<&str>> {
        self.compiled.group_info().pattern_names(regex_automata::PatternID::ZERO)
    }

    /// Bytes that the compiled form takes.
    pub(crate) fn memory(&self) -> usize {
        self.compiled.memory_usage() + self.source.len()
    }
}

/// Why an expression is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RegexFault {
    /// Where in the expression, in bytes.
    pub(crate) at: usize,
    /// What is wrong there.
    pub(crate) message: String,
}

impl RegexFault {
    /// What to write instead, as far as the fault tells.
    pub(crate) fn hint(&self) -> Option<&'static str> {
        let hints = [
            ("nothing to repeat", "write [*], [+] or [?] for the character itself"),
            ("a repetition of a repetition", "put the repetition into a group: (a+)*"),
            ("unclosed group", "write [(] for the character itself, or close the group with )"),
            ("unopened group", "write [)] for the character itself"),
            ("missing ]", "write [[] for the character itself, or close the class with ]"),
            ("look-around", "search for the two texts in filters of their own: ~\"a\" !~\"b\""),
            ("back-references", "expressions are those of RE2, which repeats no group"),
            ("unknown escape", "only signs and the escapes of RE2 may follow a backslash"),
            ("too large", "repeat less often"),
        ];
        hints.iter().find(|(part, _)| self.message.contains(part)).map(|(_, hint)| *hint)
    }
}

/// The reason in one line, without the pattern, which is not quite what the user wrote.
fn explain(error: &meta::BuildError, translated: &Translated) -> RegexFault {
    let (at, message) = match error.syntax_error() {
        Some(regex_syntax::Error::Parse(e)) => (e.span().start.offset, e.kind().to_string()),
        Some(regex_syntax::Error::Translate(e)) => (e.span().start.offset, e.kind().to_string()),
        _ if error.size_limit().is_some() => (0, "it is too large".to_owned()),
        _ => (0, "it is not supported".to_owned()),
    };
    RegexFault { at: translated.source_of(at), message }
}

impl PartialEq for Regex {
    fn eq(&self, other: &Regex) -> bool {
        self.source == other.source
    }
}

impl Eq for Regex {}

impl fmt::Debug for Regex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Regex({:?})", self.source)
    }
}

#[cfg(test)]
mod tests;
