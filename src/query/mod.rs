//! LAYER 5: LogsQL text -> rows.
//!
//! * [`ast`]: the syntax tree; everything else of this folder speaks in its terms.
//! * [`regex`]: regular expressions of the language.
//! * [`column`], [`batch`], [`position`]: rows on their way through a query.
//! * [`context`]: what a running query hands to its stages.
//! * [`fields`]: which fields a stage needs.
//! * [`group`]: rows by equal values of some columns.
//! * [`pipe`]: what happens to rows between the scan and the caller.

pub mod ast;
mod batch;
mod column;
mod context;
mod fields;
mod group;
mod pipe;
mod position;
mod regex;

pub use ast::{Filter, Pipe, Query};
pub use regex::Regex;

#[cfg(test)]
mod naive;
