//! Regular expressions in RE2 syntax, compiled once at parse time.

use std::fmt;
use std::sync::Arc;

use regex_automata::meta;

/// A compiled regular expression; equal to another of the same source and anchoring.
#[derive(Clone)]
pub struct Regex {
    source: Arc<str>,
    compiled: Arc<meta::Regex>,
}

impl Regex {
    /// The expression as written.
    pub fn as_str(&self) -> &str {
        &self.source
    }

    /// The compiled form.
    pub(crate) fn meta(&self) -> &meta::Regex {
        &self.compiled
    }
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
