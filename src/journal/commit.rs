//! Many writers share one sync.

use crate::error::{Error, Result};
use crate::sync::{Condvar, Mutex};

use super::writer::Mark;

/// What of the journal is durable, and who is making more of it so.
///
/// A writer appends under the lock of the journal, gives that up, and then waits here until its
/// record is durable. The first to wait syncs for all that have appended by then; those that
/// come meanwhile are covered by the next sync.
#[derive(Debug, Default)]
pub(crate) struct Commit {
    state: Mutex<CommitState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct CommitState {
    durable: Mark,
    syncing: bool,
    syncs: u64,
    failed: Option<String>,
}

impl Commit {
    /// What is durable now.
    pub(crate) fn durable(&self) -> Mark {
        self.state.lock().durable
    }

    /// How many syncs were made.
    #[cfg(test)]
    pub(crate) fn syncs(&self) -> u64 {
        self.state.lock().syncs
    }

    /// Returns when everything up to `mark` is durable. `sync` makes everything durable that was
    /// appended before it is called and gives the mark of that; it must not hold the lock of the
    /// journal while it waits for the disk. It is called by one writer at a time.
    ///
    /// # Errors
    /// That of `sync`; after it, [`Error::Poisoned`] for everything not durable before.
    pub(crate) fn reach(&self, mark: Mark, sync: impl Fn() -> Result<Mark>) -> Result<()> {
        let mut state = self.state.lock();
        loop {
            if state.durable.records >= mark.records {
                return Ok(());
            }
            if let Some(why) = &state.failed {
                return Err(Error::Poisoned { why: why.clone() });
            }
            if state.syncing {
                self.changed.wait(&mut state);
                continue;
            }
            state.syncing = true;
            drop(state);
            let synced = sync();
            state = self.state.lock();
            state.syncing = false;
            state.syncs += 1;
            let ended = match synced {
                Ok(durable) => {
                    if durable.records > state.durable.records {
                        state.durable = durable;
                    }
                    Ok(())
                }
                Err(e) => {
                    state.failed = Some(e.to_string());
                    Err(e)
                }
            };
            self.changed.notify_all();
            ended?;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    fn mark(records: u64) -> Mark {
        Mark { records, sequence: records * 10 }
    }

    #[test]
    fn writers_share_syncs_and_none_returns_early() {
        let (commit, appended, syncs) = (Commit::default(), AtomicU64::new(0), AtomicU64::new(0));
        let sync = || {
            syncs.fetch_add(1, Ordering::SeqCst);
            let through = appended.load(Ordering::SeqCst);
            std::thread::sleep(std::time::Duration::from_millis(2));
            Ok(mark(through))
        };
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..20 {
                        let own = mark(appended.fetch_add(1, Ordering::SeqCst) + 1);
                        commit.reach(own, sync).unwrap();
                        assert!(commit.durable().records >= own.records);
                    }
                });
            }
        });
        assert_eq!(commit.durable(), mark(160));
        let syncs = syncs.load(Ordering::SeqCst);
        assert!(syncs < 100, "{syncs} syncs for 160 records of 8 writers");
    }

    #[test]
    fn a_failed_sync_is_never_made_good_by_a_later_one() {
        let commit = Commit::default();
        commit.reach(mark(1), || Ok(mark(1))).unwrap();
        let failed = commit.reach(mark(2), || Err(Error::Full));
        assert!(matches!(failed, Err(Error::Full)));
        let after = commit.reach(mark(3), || Ok(mark(3)));
        assert!(matches!(after, Err(Error::Poisoned { .. })));
        commit.reach(mark(1), || Ok(mark(3))).unwrap();
        assert_eq!(commit.durable(), mark(1));
    }
}

/// Schedules of two writers in order, 100,000 of them, or with `LOGLITH_SCHEDULES_ALL=1` every one;
/// see `store::tests::schedules` for the command.
#[cfg(test)]
#[cfg(loglith_shuttle)]
mod schedules {
    use std::sync::Arc;

    use super::*;
    use crate::sync::thread;

    /// A journal of which a sync makes durable what was appended before it.
    #[derive(Default)]
    struct Appended {
        commit: Commit,
        records: Mutex<u64>,
        durable: Mutex<u64>,
    }

    impl Appended {
        fn write(&self, fails: bool) -> Result<()> {
            let records = {
                let mut records = self.records.lock();
                *records += 1;
                *records
            };
            self.commit.reach(Mark { records, sequence: records }, || {
                let records = *self.records.lock();
                if fails {
                    return Err(Error::Poisoned { why: "the disk".to_owned() });
                }
                let mut durable = self.durable.lock();
                *durable = records.max(*durable);
                Ok(Mark { records, sequence: records })
            })?;
            assert!(*self.durable.lock() >= records, "told before it was durable");
            Ok(())
        }
    }

    #[test]
    fn schedules_of_writers_that_share_syncs() {
        let all = std::env::var_os("LOGLITH_SCHEDULES_ALL").is_some();
        let most = if all { None } else { Some(100_000) };
        for fails in [[false; 2], [false, true]] {
            let scheduler = shuttle::scheduler::DfsScheduler::new(most, false);
            let schedules =
                shuttle::Runner::new(scheduler, shuttle::Config::new()).run(move || {
                    let journal = Arc::new(Appended::default());
                    let threads = fails.map(|fails| {
                        let journal = Arc::clone(&journal);
                        thread::spawn(move || journal.write(fails))
                    });
                    let ended = threads.map(|t| t.join().unwrap());
                    assert!(fails[1] || ended.iter().all(Result::is_ok));
                    assert!(journal.commit.syncs() <= 2);
                });
            println!("{schedules} schedules");
        }
    }
}
