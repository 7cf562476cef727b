//! LAYER 0: the data model. No I/O, no storage.
//!
//! * [`Timestamp`]: nanoseconds since the Unix epoch, its spellings, civil dates, partial times.
//! * Durations, decimals, numbers in texts, exact sums.
//! * The total order of values.
//! * [`TextVec`]: many byte strings in one allocation, the shape in which columns travel.
//! * [`RowBatch`]: normalised rows, ready to be journaled and put in blocks.
//! * [`StreamId`] and the canonical text of a stream.
//!
//! Everything here is a pure function of its input and safe on any bytes.

mod byte_masks;
mod civil;
mod decimal;
mod duration;
mod entry;
mod exact_sum;
mod limits;
mod number;
mod partial_time;
mod quantity;
mod row_batch;
mod stream;
mod text_vec;
mod timestamp;
mod value_order;
mod zone;

pub(crate) use byte_masks::{between, digits, fill_masks, letters, next_clear, next_set};
pub(crate) use civil::{civil_from_days, days_from_civil, days_in_month, month_start, year_start};
pub(crate) use decimal::Decimal;
pub(crate) use duration::{parse_duration, parse_duration_nanos, write_duration};
pub(crate) use entry::EntryView;
pub use entry::{Batch, BatchEntry, Entry, FieldValue};
pub(crate) use exact_sum::ExactSum;
pub use limits::Limits;
pub(crate) use limits::{MAX_BATCH_BYTES, MAX_NESTING};
pub(crate) use number::{
    Number, parse_canonical_int, parse_ipv4, parse_number, parse_numeric, write_f64,
};
#[cfg(feature = "fuzzing")]
pub(crate) use number::{parse_quantity, parse_size};
pub(crate) use partial_time::{TimeSpan, parse_partial_time};
pub(crate) use quantity::{Quantity, cmp_quantities};
pub(crate) use row_batch::{NameId, RowBatch, RowBatchBuilder, RowView};
pub use stream::StreamId;
pub(crate) use stream::{StreamKey, stream_text};
pub(crate) use text_vec::TextVec;
pub use timestamp::Timestamp;
#[cfg(feature = "fuzzing")]
pub(crate) use timestamp::parse_offset;
pub(crate) use timestamp::{
    NANOS_PER_DAY, NANOS_PER_SECOND, parse_entry_time, parse_rfc3339, parse_unix, parse_utc_fixed,
};
#[cfg(feature = "fuzzing")]
pub(crate) use value_order::cmp_natural;
pub(crate) use value_order::{SortKey, cmp_values, cmp_values_then_bytes};
pub(crate) use zone::Zone;
