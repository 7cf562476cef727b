//! Rows that are in no part yet, as a query sees them.

use std::sync::Arc;

use crate::Result;
use crate::memory::{Cut, encode_days};
use crate::part::{Profile, WriterOptions};
use crate::partition::{PartHandle, part_entry};
use crate::sync::Mutex;

use super::ids::ViewIds;

/// A buffer, or a cut that is being encoded, readable as parts.
///
/// The parts are made when a query first asks, by the quick profile of the writer, and kept for
/// the next query; an append makes a new view.
#[derive(Debug)]
pub(crate) struct BufferView {
    cut: Cut,
    parts: Mutex<Option<Arc<Vec<Arc<PartHandle>>>>>,
}

impl BufferView {
    /// A view of a cut.
    pub(crate) fn new(cut: Cut) -> BufferView {
        BufferView { cut, parts: Mutex::new(None) }
    }

    /// The rows.
    pub(crate) fn cut(&self) -> &Cut {
        &self.cut
    }

    /// The rows as parts, one for each day.
    pub(crate) fn parts(&self, store_id: u128, ids: &ViewIds) -> Result<Arc<Vec<Arc<PartHandle>>>> {
        let mut slot = self.parts.lock();
        if let Some(parts) = slot.as_ref() {
            return Ok(Arc::clone(parts));
        }
        let cuts = (self.cut.lo, self.cut.hi);
        let encoded = encode_days(&self.cut, |day| WriterOptions {
            store_id,
            ..WriterOptions::new(ids.next(), i64::from(day), cuts, Profile::Buffer)
        })?;
        let handles = encoded
            .into_iter()
            .map(|p| Arc::new(PartHandle::memory(part_entry(&p.summary), p.bytes)))
            .collect();
        let parts = Arc::new(handles);
        *slot = Some(Arc::clone(&parts));
        Ok(parts)
    }
}
