//! loglith: an embeddable columnar storage engine for logs.
//!
//! The rooms of the crate, lower layers first; each folder's first page says what lives there.

mod codec;
mod error;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod index;
mod ingest;
mod io;
mod journal;
mod manifest;
mod memory;
mod merge;
mod options;
mod part;
mod partition;
mod query;
mod record;
mod store;
mod sync;

pub use error::{Corruption, Error, QueryError, Result};
pub use ingest::{IngestOptions, IngestReport, RejectExample, RejectReason, Rejected};
pub use options::{Durability, Options, QueryOptions};
pub use query::ast::{self, StatsItem};
pub use query::{
    CancelHandle, ColumnValues, Columns, FieldFilters, Filter, Pipe, Query, QueryStats, Regex, Row,
    Rows, field, fields_with_prefix, message, write_json,
};
pub use record::{Batch, BatchEntry, Entry, FieldValue, Limits, StreamId, Timestamp};
pub use store::{
    ColumnBytes, CompactReport, DayInfo, FlushReport, Hits, HitsSeries, Ingest, Inspection,
    KnownDamage, OpenReport, PartInspection, RepairReport, SalvagedPart, Store, StoreStats,
    ValueHits, VerifyProgress, VerifyReport,
};

/// The README's example is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
