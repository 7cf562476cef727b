//! The inside of an open store, shared by its handles and its threads.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::error::{Error, Result};
use crate::io::{Clock, DescriptorCache, Disk, Fsync, LockGuard};
use crate::journal::{Commit, Mark};
use crate::manifest::{Edit, Manifest};
use crate::options::Options;
use crate::part::{Profile, UnitCache, WriterOptions};
use crate::partition::{PartHandle, Snapshot};
use crate::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use crate::sync::{Condvar, Mutex, MutexGuard};

use super::follow::Follower;
use super::ids::ViewIds;
use super::report::OpenReport;
use super::state::State;
use super::view::BufferView;

/// How many part files are held open between reads.
pub(crate) const DESCRIPTORS_MAX: usize = 256;

/// Everything of a store but its threads.
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) root: PathBuf,
    pub(crate) options: Options,
    pub(crate) store_id: u128,
    pub(crate) files: Arc<DescriptorCache>,
    /// Names the parts that only this process sees, in the cache too.
    pub(crate) view_ids: ViewIds,
    /// Decoded units of parts, for all queries.
    pub(crate) cache: Arc<UnitCache>,
    pub(crate) report: OpenReport,
    pub(crate) state: Mutex<State>,
    /// What of the journal is durable. Its lock is never held together with that of `state`.
    pub(crate) commit: Commit,
    /// The highest durable sequence that was told.
    pub(crate) durable: AtomicU64,
    /// Signalled when memory is freed, a cut has landed, or the store closes.
    pub(crate) changed: Condvar,
    /// Bulk ingests that run now.
    pub(crate) bulks: AtomicUsize,
    /// Set when the store begins to close: merges that run are given up.
    pub(crate) stopping: AtomicBool,
    pub(crate) role: Role,
}

/// What a store may do.
#[derive(Debug)]
pub(crate) enum Role {
    /// The one writer.
    Writer {
        /// Locked after `state` where both are needed, never the other way round.
        manifest: Mutex<Manifest>,
        /// Held during a flush, so that there is one at a time.
        flushing: Mutex<()>,
        /// Held during a merge, so that there is one at a time: parts that no merge of this
        /// life touches again.
        merging: Mutex<Vec<u64>>,
        /// Keeps other writers out.
        _lock: Box<dyn LockGuard>,
    },
    /// A reader beside the writer.
    Reader(Mutex<Follower>),
}

/// Runs `work`; a panic in it, which is a bug of this crate, becomes an error, so that whoever
/// waits for the end of the work is told.
pub(crate) fn caught<T>(what: &'static str, work: impl FnOnce() -> Result<T>) -> Result<T> {
    // What the work has changed is as after any other error: locks are free, and what is listed
    // is whole.
    catch_unwind(AssertUnwindSafe(work)).unwrap_or(Err(Error::Internal { what }))
}

impl Core {
    /// Keeps a failure of a thread of the store for `last_error`, and a panic for `close` too.
    pub(crate) fn note_failure(&self, e: &Error) {
        let mut state = self.state.lock();
        state.last_error = Some(e.to_string());
        if let Error::Internal { what } = e {
            state.panicked.get_or_insert(what);
        }
    }

    /// The manifest, for a writer.
    pub(crate) fn manifest(&self) -> Result<&Mutex<Manifest>> {
        match &self.role {
            Role::Writer { manifest, .. } => Ok(manifest),
            Role::Reader(_) => Err(Error::ReadOnly),
        }
    }

    /// Makes `edit` true, durably.
    pub(crate) fn commit(&self, edit: &Edit) -> Result<()> {
        let result = self.manifest()?.lock().append(edit, Fsync::Now);
        if let Err(Error::Poisoned { why }) = &result {
            self.state.lock().poisoned.get_or_insert_with(|| why.clone());
            self.changed.notify_all();
        }
        result
    }

    /// Makes the journal durable up to `mark`, together with whoever else waits for it.
    pub(crate) fn sync_journal(&self, mark: Mark) -> Result<()> {
        self.commit.reach(mark, || {
            let task = match &self.state.lock().journal {
                Some(journal) => journal.sync_task(),
                None => return Ok(mark),
            };
            if let Err(e) = task.run(self.disk.as_ref()) {
                // After a failed sync nothing is known about the bytes: stop promising.
                self.state.lock().poisoned.get_or_insert_with(|| e.to_string());
                return Err(e);
            }
            if let Some(journal) = &mut self.state.lock().journal {
                journal.note_synced(&task);
            }
            Ok(task.mark())
        })
    }

    /// Takes an id for a part.
    pub(crate) fn part_id(&self) -> Result<u64> {
        let manifest = self.manifest()?;
        self.state.lock().part_ids.take(1, || manifest.lock().reserve_ids())
    }

    /// The writer's options for a new part of this store.
    pub(crate) fn writer_options(
        &self,
        part_id: u64,
        day: i32,
        cuts: (u64, u64),
        profile: Profile,
    ) -> WriterOptions {
        let chosen = match profile {
            Profile::Buffer => None,
            Profile::Flush => self.options.flush_level,
            Profile::Merge => self.options.merge_level,
        };
        WriterOptions {
            store_id: self.store_id,
            zstd_level: chosen.unwrap_or_else(|| profile.zstd_level()),
            ..WriterOptions::new(part_id, i64::from(day), cuts, profile)
        }
    }

    /// What a query sees: every row acknowledged before the call, none twice.
    pub(crate) fn snapshot(&self) -> Result<Arc<Snapshot>> {
        if let Role::Reader(follower) = &self.role {
            return follower.lock().snapshot(self);
        }
        let (version, views) = {
            let mut state = self.state.lock();
            if state.closed {
                return Err(Error::Closed);
            }
            let mut views: Vec<Arc<BufferView>> =
                state.in_flight.iter().filter_map(|f| f.view.clone()).collect();
            views.extend(state.view_buffer());
            (Arc::clone(&state.version), views)
        };
        let mut parts: Vec<Arc<PartHandle>> = Vec::new();
        for view in views {
            parts.extend(view.parts(self.store_id, &self.view_ids)?.iter().cloned());
        }
        Ok(Arc::new(Snapshot::new(&version, parts)))
    }

    /// Waits until something changes, at most for `timeout`; the lock is given up meanwhile.
    pub(crate) fn wait(&self, state: &mut MutexGuard<'_, State>, timeout: Duration) {
        let _ = self.changed.wait_for(state, timeout);
    }

    /// Whether the store is closed or about to be.
    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// The share of memory that rows outside files may take.
    pub(crate) fn memory_share(&self) -> u64 {
        self.options.memory_limit_bytes / 4
    }
}

/// Whether the disk is full, which passes by itself.
pub(crate) fn is_no_space(error: &Error) -> bool {
    matches!(error, Error::Io { source, .. } if source.kind() == std::io::ErrorKind::StorageFull)
}
