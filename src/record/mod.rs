//! LAYER 0: the data model. No I/O, no storage.
//!
//! * [`Timestamp`]: nanoseconds since the Unix epoch.
//! * [`TextVec`]: many byte strings in one allocation, the shape in which columns travel.
//! * [`RowBatch`]: normalised rows, ready to be journaled and put in blocks.
//! * [`StreamId`] and the canonical text of a stream.

mod row_batch;
mod stream;
mod text_vec;
mod timestamp;

pub(crate) use row_batch::{NameId, RowBatch, RowBatchBuilder, RowView};
pub use stream::StreamId;
pub(crate) use stream::{StreamKey, stream_text};
pub(crate) use text_vec::TextVec;
pub use timestamp::Timestamp;
