//! Checked reads of a part, counted.

use std::any::Any;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use foldhash::fast::RandomState;
use hashbrown::HashMap;

use super::layout::{Extent, UNIT_MAX};
use crate::codec::{Bitmap, Decoder};
use crate::index::Word;
#[cfg(any(test, feature = "fuzzing"))]
use crate::io::MemoryFile;
use crate::io::{ReadAt, checksum, read_vec_at};
use crate::sync::{Mutex, MutexGuard};
use crate::{Error, Result};

/// The bytes of a part: a file, or memory that reads like one.
#[derive(Debug, Clone)]
pub(crate) struct PartSource {
    file: Arc<dyn ReadAt>,
    path: PathBuf,
}

impl PartSource {
    /// A part in a file; `path` is for errors.
    pub(crate) fn file(file: Arc<dyn ReadAt>, path: PathBuf) -> PartSource {
        PartSource { file, path }
    }

    /// A part in memory.
    #[cfg(any(test, feature = "fuzzing"))]
    pub(crate) fn memory(bytes: impl Into<Arc<[u8]>>) -> PartSource {
        PartSource { file: Arc::new(MemoryFile::new(bytes)), path: PathBuf::from("memory") }
    }

    /// The part's path, for errors.
    pub(crate) fn path(&self) -> &PathBuf {
        &self.path
    }

    /// The length in bytes.
    pub(crate) fn len(&self) -> Result<u64> {
        self.file.len().map_err(|e| self.failed(e))
    }

    /// Reads a range of the file.
    ///
    /// # Errors
    /// `Corrupted` if the file ends before; a failed read is tried twice.
    pub(crate) fn read(&self, offset: u64, len: u64) -> Result<Vec<u8>> {
        if len > UNIT_MAX {
            return Err(self.corrupted(offset, "a unit longer than its cap"));
        }
        let read = read_vec_at(self.file.as_ref(), offset, len);
        let read = read.or_else(|e| match e.kind() {
            std::io::ErrorKind::UnexpectedEof => Err(e),
            _ => read_vec_at(self.file.as_ref(), offset, len),
        });
        read.map_err(|e| match e.kind() {
            std::io::ErrorKind::UnexpectedEof => {
                self.corrupted(offset, "the file ends before what it refers to")
            }
            _ => self.failed(e),
        })
    }

    /// A part is removed after its last reader only, so a missing file is damage.
    fn failed(&self, e: std::io::Error) -> Error {
        match e.kind() {
            std::io::ErrorKind::NotFound => self.corrupted(0, "the file is missing"),
            _ => Error::io("read", &self.path, e),
        }
    }

    /// Reads a unit and verifies its checksum; `what` names it in the error.
    pub(crate) fn unit(&self, at: &Extent, what: &'static str) -> Result<Vec<u8>> {
        let bytes = self.read(at.offset, at.len)?;
        if checksum(&bytes) != at.checksum {
            return Err(self.corrupted(at.offset, &format!("{what} does not match its checksum")));
        }
        Ok(bytes)
    }

    /// Damage at `offset`.
    pub(crate) fn corrupted(&self, offset: u64, what: &str) -> Error {
        Error::corrupted(&self.path, offset, what)
    }
}

/// What was read, and how much of it; a query's workers may share one or have one each.
#[derive(Debug, Default)]
pub(crate) struct ReadStats {
    /// Index blocks read from the part.
    pub(crate) index_blocks: AtomicU64,
    /// Blocks of which a page, the runs or the times were read.
    pub(crate) blocks: AtomicU64,
    /// Heads of pages read (those in block headers included).
    pub(crate) pages: AtomicU64,
    /// Strips decoded.
    pub(crate) strips: AtomicU64,
    /// Bytes of filters read.
    pub(crate) filter_bytes: AtomicU64,
    /// Bytes read from the part.
    pub(crate) read_bytes: AtomicU64,
    /// Bytes of decoded values.
    pub(crate) decoded_bytes: AtomicU64,
    /// Units that were found in the cache.
    pub(crate) cache_hits: AtomicU64,
}

/// Adds to a counter.
pub(crate) fn count(counter: &AtomicU64, n: u64) {
    counter.fetch_add(n, Ordering::Relaxed);
}

/// Something decoded that a cache may keep.
pub(crate) type Cached = Arc<dyn Any + Send + Sync>;

/// A cache of decoded units, by part and offset. The offsets of different units differ.
pub(crate) trait PartCache: Send + Sync {
    /// What was put under this key.
    fn get(&self, part: u64, offset: u64) -> Option<Cached>;
    /// Keeps a unit of about `bytes` bytes, or not.
    fn put(&self, part: u64, offset: u64, unit: Cached, bytes: usize);
}

/// What the reads of one worker share.
pub(crate) struct ReadContext<'a> {
    /// Where reads are counted.
    pub(crate) stats: &'a ReadStats,
    /// Where decoded units are kept.
    cache: Option<&'a dyn PartCache>,
    /// Never contended by workers with contexts of their own.
    decoder: Mutex<Decoder>,
    /// The members of filter groups that may have words.
    members: Mutex<KnownMembers>,
}

/// What tells a filter group from all others: its part, where the filters of its index block
/// begin, its number there.
pub(super) type GroupKey = (u64, u64, u32);

/// By group: the members that may have a word.
type KnownMembers = HashMap<GroupKey, HashMap<WordKey, Arc<Bitmap>, RandomState>, RandomState>;

/// A word as a key.
#[derive(Debug, PartialEq, Eq, Hash)]
enum WordKey {
    /// The part, what may stand around it, and whether case does not count.
    With(Box<[u8]>, (bool, bool), bool),
    Hashed(u64),
}

impl From<&Word<'_>> for WordKey {
    fn from(word: &Word<'_>) -> WordKey {
        match word {
            Word::With(part) => WordKey::With(Box::from(part.bytes), part.open, part.fold),
            Word::Hashed(hash) => WordKey::Hashed(*hash),
        }
    }
}

/// How many words a worker remembers of a group.
const WORDS: usize = 4_096;

impl<'a> ReadContext<'a> {
    /// Without a cache.
    pub(crate) fn new(stats: &'a ReadStats) -> ReadContext<'a> {
        ReadContext {
            stats,
            cache: None,
            decoder: Mutex::new(Decoder::new()),
            members: Mutex::default(),
        }
    }

    /// With a cache.
    pub(crate) fn with_cache(mut self, cache: &'a dyn PartCache) -> ReadContext<'a> {
        self.cache = Some(cache);
        self
    }

    /// The worker's decoder; not to be held across another call that takes this context.
    pub(crate) fn decoder(&self) -> MutexGuard<'_, Decoder> {
        self.decoder.lock()
    }

    /// The members of a group that may have a word, which `find` looks for the first time.
    pub(super) fn members(
        &self,
        at: GroupKey,
        word: &Word<'_>,
        find: impl FnOnce() -> Result<Bitmap>,
    ) -> Result<Arc<Bitmap>> {
        let key = WordKey::from(word);
        if let Some(found) = self.members.lock().get(&at).and_then(|known| known.get(&key)) {
            return Ok(Arc::clone(found));
        }
        let found = Arc::new(find()?);
        let mut members = self.members.lock();
        let known = members.entry(at).or_default();
        if known.len() >= WORDS {
            known.clear();
        }
        known.insert(key, Arc::clone(&found));
        Ok(found)
    }

    /// The unit of type `T` at `offset` of part `part`, from the cache or made by `load`, which
    /// says how many bytes it holds.
    pub(crate) fn cached<T: Any + Send + Sync>(
        &self,
        part: u64,
        offset: u64,
        load: impl FnOnce() -> Result<(T, usize)>,
    ) -> Result<Arc<T>> {
        let Some(cache) = self.cache else { return load().map(|(unit, _)| Arc::new(unit)) };
        if let Some(unit) = cache.get(part, offset).and_then(|unit| unit.downcast::<T>().ok()) {
            count(&self.stats.cache_hits, 1);
            return Ok(unit);
        }
        let (unit, bytes) = load()?;
        let unit = Arc::new(unit);
        cache.put(part, offset, Arc::clone(&unit) as Cached, bytes);
        Ok(unit)
    }
}
