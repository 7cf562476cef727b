//! LAYER 3: the append-only record of acknowledged batches.
//!
//! [`Journal`] appends, [`replay`] reads back. One record is one batch, whole or not at all. A
//! record is with the operating system when `append` returns, so it survives the death of the
//! process; a [`SyncTask`](writer::SyncTask) makes it survive power loss, and [`Commit`] lets many
//! writers share one. The journal is a list of segment files `JOURNAL-<n>`; a segment goes when
//! parts hold all its rows durably.
//!
//! Only the store calls it, under the lock that gives out sequences: journal order is sequence
//! order is visibility order.

mod commit;
mod record;
mod replay;
mod segment;
#[cfg(test)]
mod tests;
mod writer;

pub(crate) use commit::Commit;
#[cfg(feature = "fuzzing")]
pub(crate) use record::decode;
pub(crate) use record::encode;
pub(crate) use replay::{Gap, Replayed, replay, segment_lengths, segment_stores};
pub(crate) use segment::is_segment;
#[cfg(feature = "fuzzing")]
pub(crate) use segment::{
    Kind, RecordHeader, SegmentHeader, encode_record, parse_segment_name, segment_path,
};
pub(crate) use writer::{Journal, Mark};
