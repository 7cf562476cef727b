//! What the short lock of a store guards.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::journal::Journal;
use crate::memory::{Buffer, Cut};
use crate::partition::Version;

use super::ids::Counter;
use super::view::BufferView;

/// The mutable part of an open store. Held only for moments: no file is written under its lock
/// but the journal, whose order is the order of sequences.
#[derive(Debug)]
pub(crate) struct State {
    /// Parts in memory and in files.
    pub(crate) version: Arc<Version>,
    /// Rows that no cut has taken yet.
    pub(crate) buffer: Buffer,
    /// The buffer as queries see it, until the next append.
    pub(crate) buffer_view: Option<Arc<BufferView>>,
    /// Cuts whose parts are being made, ascending.
    pub(crate) in_flight: Vec<InFlight>,
    /// The journal; `None` when writes are only buffered.
    pub(crate) journal: Option<Journal>,
    /// Sequences of rows.
    pub(crate) sequences: Counter,
    /// Ids of parts.
    pub(crate) part_ids: Counter,
    /// What went into part files since the store was opened.
    pub(crate) written: Written,
    /// Why no more writes are taken, after a failure that makes them unsafe.
    pub(crate) poisoned: Option<String>,
    /// The last failure of a background flush or merge.
    pub(crate) last_error: Option<String>,
    /// What panicked in a thread of the store; `close` tells it.
    pub(crate) panicked: Option<&'static str>,
    /// Whether `close` was called.
    pub(crate) closed: bool,
}

/// What went into part files since the store was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Written {
    /// Bytes of files that flushes and bulk ingests made.
    pub(crate) flushed_bytes: u64,
    /// Bytes of files that merges made.
    pub(crate) merged_bytes: u64,
    /// How often there was something new for the merger to look at.
    pub(crate) events: u64,
}

/// A cut between the buffer and its parts.
#[derive(Debug)]
pub(crate) struct InFlight {
    /// The sequence of its first row.
    pub(crate) lo: u64,
    /// The sequence of its last row.
    pub(crate) hi: u64,
    /// Its rows, where they are acknowledged already; a bulk batch is not before its parts are.
    pub(crate) view: Option<Arc<BufferView>>,
    /// Whether nobody is making its parts, because that failed; the next flush does.
    pub(crate) failed: bool,
}

impl InFlight {
    /// A cut whose parts nobody makes yet; the next flush does.
    pub(crate) fn waiting(cut: Cut) -> InFlight {
        let (lo, hi) = (cut.lo, cut.hi);
        InFlight { lo, hi, view: Some(Arc::new(BufferView::new(cut))), failed: true }
    }
}

impl State {
    /// Refuses when the store takes no writes.
    pub(crate) fn check_writable(&self) -> Result<()> {
        if self.closed {
            return Err(Error::Closed);
        }
        match &self.poisoned {
            Some(why) => Err(Error::Poisoned { why: why.clone() }),
            None => Ok(()),
        }
    }

    /// Bytes of memory held by rows that are not in files.
    pub(crate) fn memory_bytes(&self) -> u64 {
        let in_flight: usize =
            self.in_flight.iter().filter_map(|f| f.view.as_ref()).map(|v| v.cut().heap_bytes).sum();
        self.version.memory_len().1 + (self.buffer.heap_bytes() + in_flight) as u64
    }

    /// Takes the buffer as a cut in flight; the caller must encode and publish it.
    pub(crate) fn cut_buffer(&mut self) -> Option<Arc<BufferView>> {
        let cut = self.buffer.cut()?;
        let view = match self.buffer_view.take() {
            Some(view) if view.cut().hi == cut.hi => view,
            _ => Arc::new(BufferView::new(cut)),
        };
        let Cut { lo, hi, .. } = *view.cut();
        self.in_flight.push(InFlight { lo, hi, view: Some(Arc::clone(&view)), failed: false });
        Some(view)
    }

    /// The buffer as queries see it.
    pub(crate) fn view_buffer(&mut self) -> Option<Arc<BufferView>> {
        if self.buffer_view.is_none() {
            self.buffer_view = self.buffer.view().map(|cut| Arc::new(BufferView::new(cut)));
        }
        self.buffer_view.clone()
    }

    /// Notes that the parts of the cut that begins at `lo` could not be made.
    pub(crate) fn fail(&mut self, lo: u64) {
        self.in_flight.iter_mut().filter(|f| f.lo == lo).for_each(|f| f.failed = true);
    }

    /// Ends the flight of the cut that begins at `lo`.
    pub(crate) fn land(&mut self, lo: u64) {
        self.in_flight.retain(|f| f.lo != lo);
    }
}
