//! The thread that flushes.

use std::sync::Arc;
use std::time::Duration;

use crate::error::{Error, Result};
use crate::journal::Journal;
use crate::options::Durability;
use crate::sync::thread::{self, JoinHandle};

use super::core::{Core, caught, is_no_space};

/// How often the thread looks.
const TICK: Duration = Duration::from_millis(100);
/// The journal is synced at least this often.
const JOURNAL_SYNC: Duration = Duration::from_secs(1);
/// After a flush that failed, the next try waits this long.
const RETRY: Duration = Duration::from_secs(1);
/// The flush interval where there is no journal.
const BUFFERED_FLUSH: Duration = Duration::from_secs(5);

/// What the thread remembers between two looks.
#[derive(Debug, Default)]
pub(crate) struct Timer {
    last_sync: Duration,
    last_flush: Duration,
    retry_at: Duration,
}

/// Starts the thread that seals the buffer, syncs the journal and flushes by age. It ends when
/// the store closes.
pub(crate) fn start(core: &Arc<Core>) -> Result<JoinHandle<()>> {
    let core = Arc::clone(core);
    let run = move || {
        let mut timer = Timer::default();
        while !wait_for_close(&core) {
            let ticked = caught("the thread that flushes panicked", || {
                core.tick(&mut timer);
                Ok(())
            });
            if let Err(e) = ticked {
                core.note_failure(&e);
            }
        }
    };
    thread::Builder::new()
        .name("loglith-flush".to_owned())
        .spawn(run)
        .map_err(|e| Error::io("start a thread for", std::path::Path::new("loglith"), e))
}

/// Waits for one tick; whether the store was closed.
fn wait_for_close(core: &Core) -> bool {
    let mut state = core.state.lock();
    if !state.closed {
        core.wait(&mut state, TICK);
    }
    state.closed
}

impl Core {
    /// One look at the clock: what is due is done. A failure is kept for `stats` and tried again.
    pub(crate) fn tick(&self, timer: &mut Timer) {
        let now = self.clock.monotonic();
        let sync_due = now.saturating_sub(timer.last_sync) >= JOURNAL_SYNC;
        if sync_due {
            timer.last_sync = now;
            let mark = self.state.lock().journal.as_ref().map(Journal::mark);
            // A failure has stopped all writes, which is where it is told.
            let _ = mark.map(|mark| self.sync_journal(mark));
        }
        let mut state = self.state.lock();
        let aged = |since: Duration| now.saturating_sub(since) >= self.options.seal_age;
        let cut = if state.buffer.since().is_some_and(aged) { state.cut_buffer() } else { None };
        let waiting = state.version.memory_len().0 > 0;
        drop(state);
        if let Some(view) = cut
            && self.land_in_memory(&view).is_ok()
        {
            // What fails here is tried by the flush.
            let _ = self.gather_crowded();
        }
        if !waiting {
            timer.last_flush = now;
        }
        let due = now.saturating_sub(timer.last_flush) >= self.flush_interval();
        if due && now >= timer.retry_at {
            match self.flush() {
                Ok(_) => timer.last_flush = now,
                Err(e) => {
                    timer.retry_at = now + RETRY;
                    if !is_no_space(&e) {
                        self.note_failure(&e);
                    }
                }
            }
        }
    }

    fn flush_interval(&self) -> Duration {
        match self.options.durability {
            Durability::Buffered => self.options.flush_interval.min(BUFFERED_FLUSH),
            _ => self.options.flush_interval,
        }
    }
}
