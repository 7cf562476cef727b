//! LAYER 5: LogsQL text -> rows.
//!
//! * [`ast`]: the syntax tree; everything else of this folder speaks in its terms.
//! * `lexer`, `parser`: text -> tree; `print`: tree -> text. Parsing what was printed gives the
//!   same tree.
//! * `builder`: queries made by programs.
//! * `regex`: regular expressions of the language.
//! * [`column`], [`batch`], [`position`]: rows on their way through a query.
//! * [`context`]: what a running query hands to its stages.
//! * [`filter`]: filters as trees of tests on columns.
//! * [`fields`], [`needed`]: which fields a stage needs.
//! * [`group`]: rows by equal values of some columns.
//! * [`json`]: JSON texts.
//! * [`stats`]: the functions of aggregation.
//! * [`value_key`], [`sorting`]: values compared in the total order, sorting that can be given up.
//! * [`scan`]: from parts to the rows that pass, reading as little as possible.
//! * [`pipe`]: what happens to rows between the scan and the caller.
//! * [`plan`], [`exec`], [`explain`], [`rows`], [`answer`], [`counters`]: how a query runs, its
//!   answer, what it read.

mod answer;
pub mod ast;
mod batch;
mod builder;
mod column;
mod context;
mod counters;
mod damage;
mod exec;
#[cfg(test)]
mod exec_tests;
mod explain;
mod fault;
mod fields;
pub(crate) mod filter;
mod group;
mod json;
mod lexer;
mod names;
mod needed;
mod numbers;
mod parser;
#[cfg(test)]
mod pattern_tests;
mod pipe;
mod plan;
mod position;
mod print;
mod regex;
mod rows;
mod scan;
mod sorting;
mod stats;
mod tail;
#[cfg(test)]
pub(crate) mod testing;
mod time_buckets;
#[cfg(test)]
pub(crate) mod treegen;
mod value_key;

pub use answer::{ColumnValues, Columns, Row, write_json};
pub use ast::{Filter, Pipe, Query};
pub use builder::{FieldFilters, field, fields_with_prefix, message};
pub(crate) use context::TimeRange;
pub use counters::QueryStats;
pub(crate) use exec::{closed_time_range, execute_parts};
pub(crate) use explain::explain;
pub use regex::Regex;
pub use rows::{CancelHandle, Rows};
pub(crate) use scan::{Lost, PartBounds, PartSet};
pub(crate) use stats::BucketFn;

#[cfg(test)]
mod naive;
#[cfg(test)]
mod oracle_tests;
#[cfg(test)]
mod testgen;
#[cfg(test)]
mod tests;
