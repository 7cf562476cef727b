//! LAYER 3: input to rows. Uses `record`; used by `store`.
//!
//! Every format gives names and values to a [`RowWriter`], which applies the rules of what a row
//! is: empty values vanish, of several values of a name the last counts, the time leaves the
//! fields, the labels make the stream, and an entry over a limit is rejected whole, with a
//! reason. [`JsonLines`] reads JSON, one object a line.
//!
//! Invariants: values handed to a [`RowWriter`] are valid UTF-8; a rejected entry leaves nothing
//! in the batch; every entry of the input is counted in the [`IngestReport`], as a row or as
//! rejected. No input can panic, and memory is bounded by the entry limit and the batch target.

mod entries;
mod json;
mod names;
mod options;
mod report;
mod row_writer;
mod streams;

pub(crate) use entries::append_batch;
pub(crate) use json::{JsonLines, read_json_lines};
pub use options::IngestOptions;
pub use report::{IngestReport, RejectExample, RejectReason, Rejected};
pub(crate) use row_writer::{DayGate, RowWriter, TARGET_BATCH_BYTES};
