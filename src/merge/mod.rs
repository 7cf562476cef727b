//! LAYER 5: several parts -> one.
//!
//! * [`plan`] says which parts are worth merging: a pure function over what the manifest lists.
//! * [`merge_parts`] reads parts and writes the one that replaces them.
//!
//! Invariants: only parts of one day that are neighbours by their cuts are merged, and are given
//! in the order of their cuts, so that rows of equal stream and time keep their append order; a
//! merge never changes an answer; damage in an input ends the merge with an error, and whoever
//! called it drops what was written.
//!
//! Callers: the store's mergers, flushes of memory parts, `compact`.

mod kway;
mod policy;
#[cfg(test)]
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_possible_wrap)]
mod tests;

pub(crate) use kway::{Hooks, MergeWork, merge_parts, salvage_part};
pub(crate) use policy::{MANY_PARTS, MergeTask, PartMeta, plan, plan_compaction, plan_debt};
