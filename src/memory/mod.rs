//! LAYER 3: rows that are searchable but not yet on disk.
//!
//! * [`Buffer`]: batches as they were appended, up to 4 MiB or one second.
//! * [`encode_days`]: batches -> one part for each day, the same bytes as in a file.
//!
//! The store composes them: append -> buffer -> (cut) -> memory parts -> flush. A cut takes the
//! whole buffer, so cuts are disjoint and ordered.

mod buffer;
mod encode;

pub(crate) use buffer::{Buffer, Cut};
pub(crate) use encode::{PartBytes, days_of, encode_days};
