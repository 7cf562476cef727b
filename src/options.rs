//! Options of a store and of a query: every limit with its default and unit.

use std::sync::Arc;
use std::time::Duration;

use crate::io::{Clock, Disk, RealDisk, SystemClock};
use crate::record::{Timestamp, Zone};
use crate::{Error, Result};

/// What an acknowledged write survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Durability {
    /// The rows are in memory; the death of the process loses what was not flushed.
    Buffered,
    /// The rows are with the operating system: they survive the death of the process.
    #[default]
    Process,
    /// The rows are on the medium: they survive power loss.
    Sync,
}

/// How a store is opened. The defaults suit a desktop program or an agent.
///
/// ```
/// # fn main() -> loglith::Result<()> {
/// # let dir = tempfile::tempdir().map_err(|_| loglith::Error::Closed)?;
/// use loglith::{Durability, Store};
/// let store = Store::options()
///     .memory_limit(64 << 20)
///     .durability(Durability::Sync)
///     .open(dir.path())?;
/// # store.close()
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Options {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) memory_limit_bytes: u64,
    pub(crate) durability: Durability,
    pub(crate) flush_interval: Duration,
    pub(crate) seal_bytes: usize,
    pub(crate) seal_age: Duration,
    pub(crate) flush_level: Option<i32>,
    pub(crate) merge_level: Option<i32>,
    pub(crate) background: bool,
}

/// The highest level of zstd that needs no extraordinary memory.
const ZSTD_LEVEL_MAX: u8 = 19;

impl Default for Options {
    fn default() -> Options {
        Options {
            disk: Arc::new(RealDisk::new()),
            clock: Arc::new(SystemClock::new()),
            memory_limit_bytes: 256 << 20,
            durability: Durability::default(),
            flush_interval: Duration::from_secs(60),
            seal_bytes: 4 << 20,
            seal_age: Duration::from_secs(1),
            flush_level: None,
            merge_level: None,
            background: true,
        }
    }
}

impl Options {
    /// The default options.
    pub fn new() -> Options {
        Options::default()
    }

    /// The memory of the store in bytes: a quarter each for rows not yet in files, for flushing
    /// and merging, for caches, and for queries. Default: 256 MiB; at least 8 MiB.
    pub fn memory_limit(mut self, bytes: u64) -> Options {
        self.memory_limit_bytes = bytes.max(8 << 20);
        self
    }

    /// What an acknowledged write survives. Default: [`Durability::Process`].
    pub fn durability(mut self, durability: Durability) -> Options {
        self.durability = durability;
        self
    }

    /// Rows are in a part file at most this long after they were appended. Default: 60 s with a
    /// journal, 5 s under [`Durability::Buffered`].
    pub fn flush_interval(mut self, interval: Duration) -> Options {
        self.flush_interval = interval;
        self
    }

    /// The buffer becomes a memory part at this many bytes. Default: 4 MiB.
    pub fn seal_bytes(mut self, bytes: usize) -> Options {
        self.seal_bytes = bytes.max(1);
        self
    }

    /// The level of zstd in parts that a flush writes, which are merged soon: 1 to 19. Default: 1.
    /// What it costs and saves stands in `docs/BENCHMARKS.md`.
    pub fn flush_level(mut self, level: u8) -> Options {
        self.flush_level = Some(i32::from(level.clamp(1, ZSTD_LEVEL_MAX)));
        self
    }

    /// The level of zstd in parts that a merge writes, which stay: 1 to 19. Default: 3. Any level
    /// is decompressed at the same speed. Blocks that a merge copies keep the level they have.
    pub fn merge_level(mut self, level: u8) -> Options {
        self.merge_level = Some(i32::from(level.clamp(1, ZSTD_LEVEL_MAX)));
        self
    }

    /// Whether the store has threads of its own, one that flushes by age and one that merges
    /// parts. Default: true. Without them rows reach part files when the buffer's share of memory
    /// is half full, or on
    /// [`Store::flush`](crate::Store::flush) and [`Store::close`](crate::Store::close), and parts
    /// become fewer by [`Store::compact`](crate::Store::compact).
    pub fn background(mut self, background: bool) -> Options {
        self.background = background;
        self
    }

    /// The disk to use. Default: the operating system's.
    #[doc(hidden)]
    pub fn disk(mut self, disk: Arc<dyn Disk>) -> Options {
        self.disk = disk;
        self
    }

    /// The clock to use. Default: the operating system's.
    #[doc(hidden)]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Options {
        self.clock = clock;
        self
    }
}

/// How a query runs. The default suits most: all cores, a quarter of the store's memory, no
/// deadline.
///
/// ```
/// use loglith::QueryOptions;
/// use std::time::Duration;
/// let options = QueryOptions::new().deadline(Duration::from_secs(10)).workers(2);
/// assert_eq!(options.worker_limit(), Some(2));
/// ```
#[derive(Debug, Clone)]
pub struct QueryOptions {
    pub(crate) now: Option<Timestamp>,
    pub(crate) zone: Zone,
    pub(crate) workers: Option<usize>,
    pub(crate) memory_limit_bytes: u64,
    pub(crate) deadline: Option<Duration>,
    pub(crate) prune: bool,
    pub(crate) optimise: bool,
    pub(crate) skip_damaged: bool,
}

impl Default for QueryOptions {
    fn default() -> QueryOptions {
        QueryOptions {
            now: None,
            zone: Zone::UTC,
            workers: None,
            memory_limit_bytes: DEFAULT_QUERY_MEMORY_BYTES,
            deadline: None,
            prune: true,
            optimise: true,
            skip_damaged: false,
        }
    }
}

/// Half of the query share of the default memory limit; see [`QueryOptions::memory_limit`].
pub(crate) const DEFAULT_QUERY_MEMORY_BYTES: u64 = 256 << 20;

impl QueryOptions {
    /// The default options.
    pub fn new() -> QueryOptions {
        QueryOptions::default()
    }

    /// The time that `now` and relative times mean. Default: the store's clock at the start of
    /// the query.
    pub fn now(mut self, now: Timestamp) -> QueryOptions {
        self.now = Some(now);
        self
    }

    /// The time zone of times that the query gives without one, of days and hours such as in
    /// `_time:day_range[09:00, 17:00]`, and of the buckets of `_time`: `UTC`, `local`, an offset
    /// such as `+02:00`, or a name of the system's table of zones such as `Europe/Berlin`. Times
    /// are printed in UTC. Default: UTC.
    ///
    /// # Errors
    /// [`Error::InvalidOption`](crate::Error::InvalidOption) if there is no such zone.
    ///
    /// ```
    /// # use loglith::QueryOptions;
    /// let options = QueryOptions::new().time_zone("+02:00")?;
    /// assert!(options.time_zone("Mars/Olympus").is_err());
    /// # Ok::<(), loglith::Error>(())
    /// ```
    pub fn time_zone(mut self, name: &str) -> Result<QueryOptions> {
        self.zone = Zone::named(name).ok_or_else(|| Error::InvalidOption {
            name: "time_zone",
            why: format!("{name:?} is no time zone that this system knows"),
        })?;
        Ok(self)
    }

    /// At most this many threads. Default: one for each core. The answer does not depend on it.
    pub fn workers(mut self, workers: usize) -> QueryOptions {
        self.workers = Some(workers.max(1));
        self
    }

    /// The memory, in bytes, that pipes which must keep rows (sort, stats, uniq) may hold. A query
    /// that would need more fails with [`Error::MemoryLimit`](crate::Error::MemoryLimit).
    /// Default: 256 MiB.
    pub fn memory_limit(mut self, bytes: u64) -> QueryOptions {
        self.memory_limit_bytes = bytes;
        self
    }

    /// The longest time the query may take; then it fails with
    /// [`Error::DeadlineExceeded`](crate::Error::DeadlineExceeded). Default: none.
    pub fn deadline(mut self, deadline: Duration) -> QueryOptions {
        self.deadline = Some(deadline);
        self
    }

    /// Whether metadata may be used to skip data that cannot match. Default: true. Turning it off
    /// never changes an answer; it exists to prove that.
    pub fn prune(mut self, prune: bool) -> QueryOptions {
        self.prune = prune;
        self
    }

    /// Whether the query may be rewritten into a cheaper equal one. Default: true. Turning it off
    /// never changes an answer; it exists to prove that.
    pub fn optimise(mut self, optimise: bool) -> QueryOptions {
        self.optimise = optimise;
        self
    }

    /// Whether to answer from what can be read where the store is damaged, instead of failing with
    /// [`Error::Corrupted`](crate::Error::Corrupted). The smallest unit that cannot be read is
    /// left out: a strip of at most 2,048 rows, a block, a part. Damage of what only speeds the
    /// query up costs no rows. Default: false.
    ///
    /// [`QueryStats::damaged_places`](crate::QueryStats::damaged_places) says whether anything
    /// was skipped, [`QueryStats::rows_missing`](crate::QueryStats::rows_missing) how many rows
    /// that may be, and [`Rows::damage`](crate::Rows::damage) where. Calls that give no
    /// [`Rows`](crate::Rows) (`hits`, `field_names`, `tail` and their kin) fail all the same.
    pub fn skip_damaged(mut self, skip: bool) -> QueryOptions {
        self.skip_damaged = skip;
        self
    }

    /// The limit set by [`workers`](QueryOptions::workers).
    pub fn worker_limit(&self) -> Option<usize> {
        self.workers
    }
}
