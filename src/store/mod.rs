//! LAYER 6: composes the rooms: open, append, flush, query, verify, close.
//!
//! [`Store`] is a handle on one [`Core`](core::Core); the last handle to go closes the store. A
//! row comes in through [`Ingest`], gets its sequence under the short lock of `state`, waits in
//! the buffer and in memory parts, and reaches a part file by a flush. A query pins a snapshot.
//! This room holds no logic of the others: it gives their steps an order.

mod acks;
mod append;
mod bulk;
mod bulk_cut;
mod compact;
mod core;
mod damage;
mod flush;
mod follow;
mod gather;
mod handle;
mod helpers;
mod ids;
mod ingest;
mod inspect;
mod merger;
mod open;
mod query;
mod rebuild;
mod recovered;
mod repair;
mod report;
mod state;
#[cfg(test)]
mod tests;
mod verify;
mod view;
mod workers;

pub use damage::KnownDamage;
pub use handle::Store;
pub use helpers::{Hits, HitsSeries, ValueHits};
pub use ingest::Ingest;
pub use inspect::{ColumnBytes, DayInfo, Inspection, PartInspection};
pub use repair::{RepairReport, SalvagedPart};
pub use report::{CompactReport, FlushReport, OpenReport, StoreStats};
pub use verify::{VerifyProgress, VerifyReport};
