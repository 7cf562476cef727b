//! Telling how much of an input is acknowledged.

use std::collections::BTreeMap;
use std::fmt;

use crate::sync::Mutex;
/// How much of an input is acknowledged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Acknowledged {
    /// So many rows, the first ones of the input; rejected entries make none.
    pub rows: u64,
    /// The highest sequence of these rows.
    pub last_sequence: u64,
}

/// Counts the acknowledged rows of one input, and tells somebody, in the order of the input.
pub(crate) struct Acks<'a> {
    tell: &'a (dyn Fn(Acknowledged) + Sync),
    state: Mutex<AckState>,
}

#[derive(Debug, Default)]
struct AckState {
    so_far: Acknowledged,
    next_chunk: u64,
    /// Chunks that are done before one that comes before them.
    early: BTreeMap<u64, Acknowledged>,
}

impl fmt::Debug for Acks<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.state.fmt(f)
    }
}

impl<'a> Acks<'a> {
    /// Nothing is acknowledged.
    pub(crate) fn new(tell: &'a (dyn Fn(Acknowledged) + Sync)) -> Acks<'a> {
        Acks { tell, state: Mutex::default() }
    }

    /// The next rows of the input are acknowledged.
    pub(crate) fn more(&self, rows: u64, last_sequence: u64) {
        self.add(&mut self.state.lock(), Acknowledged { rows, last_sequence });
    }

    /// The rows of a chunk of a bulk ingest are acknowledged; chunks are numbered from 0.
    pub(crate) fn chunk(&self, index: u64, rows: u64, last_sequence: u64) {
        let mut state = self.state.lock();
        state.early.insert(index, Acknowledged { rows, last_sequence });
        loop {
            let next = state.next_chunk;
            let Some(chunk) = state.early.remove(&next) else { return };
            state.next_chunk += 1;
            self.add(&mut state, chunk);
        }
    }

    fn add(&self, state: &mut AckState, more: Acknowledged) {
        if more.rows > 0 {
            state.so_far.rows += more.rows;
            state.so_far.last_sequence = state.so_far.last_sequence.max(more.last_sequence);
            (self.tell)(state.so_far);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_first_rows_of_the_input_are_told() {
        let told = Mutex::new(Vec::new());
        let tell = |a: Acknowledged| told.lock().push((a.rows, a.last_sequence));
        let acks = Acks::new(&tell);
        acks.more(5, 5);
        acks.more(0, 5);
        acks.chunk(2, 7, 30);
        acks.chunk(1, 0, 0);
        assert_eq!(*told.lock(), [(5, 5)]);
        acks.chunk(0, 3, 8);
        assert_eq!(*told.lock(), [(5, 5), (8, 8), (15, 30)]);
    }
}
