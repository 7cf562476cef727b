//! LAYER 5: LogsQL text -> rows.
//!
//! * [`ast`]: the syntax tree; everything else of this folder speaks in its terms.
//! * [`regex`]: regular expressions of the language.
//! * [`column`], [`batch`], [`position`]: rows on their way through a query.
//! * [`context`]: what a running query hands to its stages.
//! * [`filter`]: filters as trees of tests on columns.
//! * [`fields`], [`needed`]: which fields a stage needs.
//! * [`group`]: rows by equal values of some columns.
//! * [`json`]: JSON texts.
//! * [`stats`]: the functions of aggregation.
//! * [`value_key`]: values compared in the total order.
//! * [`pipe`]: what happens to rows between the scan and the caller.

pub mod ast;
mod batch;
mod column;
mod context;
mod counters;
mod exec;
mod fields;
pub(crate) mod filter;
mod group;
mod json;
mod needed;
mod pipe;
mod plan;
mod position;
mod regex;
mod rows;
mod scan;
mod stats;
#[cfg(test)]
pub(crate) mod testing;
mod value_key;

pub use ast::{Filter, Pipe, Query};
pub use counters::QueryStats;
pub(crate) use exec::execute_parts;
pub use regex::Regex;
pub use rows::{CancelHandle, Row, Rows, write_json};

#[cfg(test)]
mod naive;
#[cfg(test)]
mod testgen;
