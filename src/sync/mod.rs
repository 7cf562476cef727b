//! Locks and threads, so that tests can choose the schedule.
//!
//! Ordinary builds use parking_lot, whose locks are not poisoned by a panic in a callback, and the
//! threads of std. Under `--cfg loglith_shuttle` all of them are those of shuttle, which runs one
//! thread at a time and decides at each lock who is next; only the tests of
//! `store::tests::schedules` and of the journal's group commit run in such a build. There a wait
//! with a timeout may always time out, since shuttle has no clock.
//!
//! Everybody may use this; nobody else may name parking_lot.

#[cfg(loglith_shuttle)]
mod scheduled;

#[cfg(not(loglith_shuttle))]
pub(crate) use parking_lot::{Condvar, Mutex, MutexGuard};
#[cfg(not(loglith_shuttle))]
pub(crate) use std::{sync::atomic, thread};

#[cfg(loglith_shuttle)]
pub(crate) use scheduled::{Condvar, Mutex, MutexGuard};
#[cfg(loglith_shuttle)]
pub(crate) use shuttle::{sync::atomic, thread};
