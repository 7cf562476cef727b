//! Errors inside the parser, before they get the query's text.

use super::regex::RegexFault;
use crate::error::QueryError;

/// What is wrong at a byte of the query. Small, since the parser tries alternatives.
#[derive(Debug, Clone)]
pub(crate) struct Fault {
    pub(crate) offset: usize,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
}

impl Fault {
    /// A fault at `offset`.
    pub(crate) fn new(offset: usize, message: impl Into<String>) -> Fault {
        Fault { offset, message: message.into(), hint: None }
    }

    /// What is wrong with a regular expression, at `offset`.
    pub(crate) fn of_regex(fault: &RegexFault, offset: usize) -> Fault {
        let message = format!("bad regular expression: {}", fault.message);
        Fault { offset: offset + fault.at, message, hint: fault.hint().map(str::to_owned) }
    }

    /// The same with a suggestion.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Fault {
        self.hint = Some(hint.into());
        self
    }

    /// The same with its offset counted from further left.
    pub(crate) fn shifted(mut self, by: usize) -> Fault {
        self.offset += by;
        self
    }

    /// The public error.
    pub(crate) fn in_query(self, query: &str) -> QueryError {
        QueryError {
            query: query.to_owned(),
            offset: self.offset,
            message: self.message,
            hint: self.hint,
        }
    }
}
