//! The thread that merges.
//!
//! It looks after every flush and bulk ingest, makes the merges that the policy finds worth it,
//! one at a time, and ends when the store closes; a merge that runs then is given up. While a bulk
//! ingest runs it leaves the cores to it, unless a day has so many parts that queries suffer.

use std::sync::Arc;
use std::time::Duration;

use crate::error::{Error, Result};
use crate::merge::{MANY_PARTS, plan, plan_debt};
use crate::sync::atomic::Ordering;
use crate::sync::thread::{self, JoinHandle};

use super::core::{Core, caught, is_no_space};

/// How often the thread looks whether the store closes, if nobody wakes it.
const IDLE: Duration = Duration::from_secs(1);
/// How long a merge that stands back waits before it looks again.
const STEP: Duration = Duration::from_millis(20);
/// After a merge that failed the next try waits this long, doubled for each failure after it.
const RETRY: Duration = Duration::from_secs(1);
/// The longest such wait.
const RETRY_MAX: Duration = Duration::from_secs(60);
/// How long `close` may merge small parts.
const DEBT_TIME: Duration = Duration::from_millis(200);

/// Starts the thread.
pub(crate) fn start(core: &Arc<Core>) -> Result<JoinHandle<()>> {
    let core = Arc::clone(core);
    thread::Builder::new()
        .name("loglith-merge".to_owned())
        .spawn(move || run(&core))
        .map_err(|e| Error::io("start a thread for", std::path::Path::new("loglith"), e))
}

fn run(core: &Core) {
    let mut seen = None;
    let mut retry = RETRY;
    while let Some(events) = wait_for_event(core, seen) {
        match caught("a merge panicked", || core.merge_in_background()) {
            Ok(()) => (seen, retry) = (Some(events), RETRY),
            Err(e) => {
                if !is_no_space(&e) && !core.is_stopping() {
                    core.note_failure(&e);
                }
                pause(core, retry);
                retry = (retry * 2).min(RETRY_MAX);
            }
        }
    }
}

/// Waits until something has happened since `seen`; `None` when the store closes.
fn wait_for_event(core: &Core, seen: Option<u64>) -> Option<u64> {
    let mut state = core.state.lock();
    while seen == Some(state.written.events) && !state.closed && !core.is_stopping() {
        core.wait(&mut state, IDLE);
    }
    (!state.closed && !core.is_stopping()).then_some(state.written.events)
}

/// Waits for `time`, or until the store closes.
fn pause(core: &Core, time: Duration) {
    let until = core.clock.monotonic() + time;
    let mut state = core.state.lock();
    while core.clock.monotonic() < until && !state.closed && !core.is_stopping() {
        core.wait(&mut state, STEP * 5);
    }
}

/// Counts a bulk ingest while it runs.
#[derive(Debug)]
pub(crate) struct BulkGuard<'a> {
    core: &'a Core,
}

impl<'a> BulkGuard<'a> {
    /// A bulk ingest begins.
    pub(crate) fn new(core: &'a Core) -> BulkGuard<'a> {
        core.bulks.fetch_add(1, Ordering::AcqRel);
        BulkGuard { core }
    }
}

impl Drop for BulkGuard<'_> {
    fn drop(&mut self) {
        self.core.bulks.fetch_sub(1, Ordering::AcqRel);
        self.core.state.lock().written.events += 1;
        self.core.changed.notify_all();
    }
}

impl Core {
    /// Merges until nothing is worth it, or a bulk ingest wants the cores.
    pub(crate) fn merge_in_background(&self) -> Result<()> {
        let may = |parts_of_day: usize| {
            parts_of_day > MANY_PARTS || self.bulks.load(Ordering::Acquire) == 0
        };
        let check = |parts_of_day: usize| loop {
            if self.is_stopping() {
                return Err(Error::Closed);
            }
            if may(parts_of_day) {
                return Ok(());
            }
            let mut state = self.state.lock();
            self.wait(&mut state, STEP);
        };
        while self.merge_next(&plan, &|_, parts_of_day| may(parts_of_day), &check)?.is_some() {}
        Ok(())
    }

    /// Merges the small parts of days that have too many of them, for a short while: programs
    /// that only ever append a little and close would pile them up.
    pub(crate) fn pay_debt(&self) -> Result<()> {
        let until = self.clock.monotonic() + DEBT_TIME;
        let check = |_| {
            if self.clock.monotonic() < until { Ok(()) } else { Err(Error::DeadlineExceeded) }
        };
        loop {
            match self.merge_next(&plan_debt, &|_, _| true, &check) {
                Ok(Some(_)) => {}
                Ok(None) | Err(Error::DeadlineExceeded) => return Ok(()),
                Err(e) => return Err(e),
            }
        }
    }
}
