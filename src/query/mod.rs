//! LAYER 5: LogsQL text -> rows.
//!
//! * [`ast`]: the syntax tree; everything else of this folder speaks in its terms.
//! * [`regex`]: regular expressions of the language.

pub mod ast;
mod regex;

pub use ast::{Filter, Pipe, Query};
pub use regex::Regex;
