//! LAYER 0: the only door to files and the clock.
//!
//! Every room reaches files through [`Disk`] and time through [`Clock`]; `std::fs` is named
//! nowhere else in the crate. [`RealDisk`] is the operating system; `SimDisk` is a
//! deterministic disk in memory that loses, tears and refuses on request.
//!
//! Invariants that both disks keep (one test suite runs on both):
//! * files only grow at their end or are truncated; written bytes never change in place;
//! * appended bytes are durable after `FileWriter::sync`, a name after `Disk::sync_dir` of its
//!   directory, a new directory when `Disk::create_dir_all` returns;
//! * an append either succeeds whole or fails, and after a failure `FileWriter::truncate` to
//!   `FileWriter::len` takes the torn bytes back.
//!
//! Any room may call this one; it calls none but `record` (for [`Timestamp`]).
//!
//! [`Timestamp`]: crate::record::Timestamp

mod checksum;
mod clock;
mod descriptors;
mod disk;
mod publish;
mod real;
#[cfg(any(test, feature = "sim"))]
#[allow(dead_code, reason = "tests and fuzz targets use different pieces of it")]
mod sim;
#[cfg(test)]
mod tests;

pub(crate) use checksum::{Checksum, checksum, checksum_seeded};
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use clock::ManualClock;
pub use clock::{Clock, SystemClock};
pub(crate) use descriptors::DescriptorCache;
#[cfg(test)]
pub(crate) use disk::read_exact_at;
pub use disk::{DirEntry, Disk, FileSync, FileWriter, LockGuard, MemoryFile, ReadAt};
pub(crate) use disk::{file_name, is_not_found, parent_dir, read_vec_at};
pub(crate) use publish::{Fsync, TEMP_SUFFIX, publish};
pub use real::RealDisk;
#[cfg(any(test, feature = "sim"))]
#[allow(unused_imports, reason = "tests and fuzz targets use different pieces of it")]
pub use sim::{CrashModel, DataDamage, EntryDamage, Fault, Op, OpKind, SimDisk};
