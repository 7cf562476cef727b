//! LAYER 2: the on-disk format; `docs/FORMAT.md` mirrors this folder.
//!
//! A part is one file (or the same bytes in memory) that holds rows of one UTC day with all that
//! is needed to read them: streams, names, headers, pages.
//!
//! * [`write_part`] and [`PartBuilder`] write one, [`PartReader`] reads it.
//! * `layout`, `footer`, `names`, `runs`, `header`, `index_block` are the byte layout.
//!
//! Invariants: rows are sorted by (stream text, time, append order); every byte is under a
//! checksum that stands in whatever refers to it, and is verified before decoding; a finished part
//! never changes; pages hold no number that means something outside of their block.
//!
//! Callers: memory parts, flush, merge, and the scan.

mod block_builder;
mod block_reader;
mod builder;
mod cache;
mod column_buffer;
mod constants;
mod copy;
mod filters;
mod footer;
mod header;
mod index_block;
mod inspect;
mod layout;
mod names;
mod order;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod plain;
mod reader;
#[cfg(any(test, feature = "fuzzing"))]
mod remake;
mod rows;
mod runs;
mod sink;
mod source;
mod sparse;
mod stream_columns;
#[cfg(test)]
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_possible_wrap)]
pub(crate) mod tests;
mod verify;
mod words;
mod writer;

pub(crate) use block_reader::{BlockColumn, BlockReader, ColumnPage, RunConstants};
pub(crate) use builder::{PartBuilder, StreamSize};
pub(crate) use cache::UnitCache;
pub(crate) use copy::{BlockCopy, CopyFilters};
#[cfg(feature = "fuzzing")]
pub(crate) use footer::Footer;
pub(crate) use header::{ColumnHeader, PageRef};
pub(crate) use index_block::IndexBlock;
#[cfg(feature = "fuzzing")]
pub(crate) use index_block::MetaEntry;
pub(crate) use inspect::{ColumnBytes, inspect_part};
pub(crate) use names::Names;
pub(crate) use reader::{Expected, PartReader};
#[cfg(feature = "fuzzing")]
pub(crate) use remake::{Unit, remake};
pub(crate) use rows::{RowCursor, SkippedRows, SkippedUnit};
#[cfg(feature = "fuzzing")]
pub(crate) use runs::Runs;
pub(crate) use sink::{ByteSink, FileSink};
pub(crate) use source::{PartCache, PartSource, ReadContext, ReadStats};
pub(crate) use sparse::SparseColumn;
pub(crate) use stream_columns::StreamColumns;
pub(crate) use verify::{Finding, verify_part};
pub(crate) use words::IndexColumn;
pub(crate) use writer::{PartSummary, Profile, WriterOptions, write_part};
