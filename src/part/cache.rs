//! A cache of decoded units: page heads, strips, runs, filters.

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::sync::Mutex;

use super::source::{Cached, PartCache};

/// The cache has so many locks.
const SHARDS: usize = 16;
/// No unit takes more than this share of the cache. Heads of pages, the largest units, hold a few
/// MiB at most.
const UNIT_SHARE: usize = 16;
/// What an entry costs beside its unit.
const ENTRY: usize = 96;

/// Keeps units up to a number of bytes. What is not asked for again goes first (CLOCK): a scan
/// of everything does not push out what other queries use.
#[derive(Debug)]
pub(crate) struct UnitCache {
    shards: Vec<Mutex<Shard>>,
    limit: usize,
    /// Bytes of all shards: shards may be of any size, since units are of very different sizes.
    bytes: AtomicUsize,
    /// The shard that gives up a unit next.
    next: AtomicUsize,
    hasher: RandomState,
}

type Key = (u64, u64);

#[derive(Default)]
struct Shard {
    places: HashMap<Key, usize, RandomState>,
    slots: Vec<Option<Slot>>,
    free: Vec<usize>,
    hand: usize,
    bytes: usize,
}

struct Slot {
    key: Key,
    unit: Cached,
    bytes: usize,
    used: bool,
}

impl std::fmt::Debug for Shard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Shard({} units, {} bytes)", self.places.len(), self.bytes)
    }
}

impl UnitCache {
    /// A cache of at most `bytes` bytes.
    pub(crate) fn new(bytes: usize) -> UnitCache {
        let mut shards = Vec::new();
        shards.resize_with(SHARDS, Mutex::default);
        UnitCache {
            shards,
            limit: bytes,
            bytes: AtomicUsize::new(0),
            next: AtomicUsize::new(0),
            hasher: RandomState::default(),
        }
    }

    /// Bytes of memory held, about.
    #[cfg(test)]
    pub(crate) fn bytes(&self) -> usize {
        let all = self.shards.iter().map(|shard| shard.lock().bytes).sum();
        assert_eq!(self.bytes.load(Relaxed), all);
        all
    }

    /// Gives up units until there is room for `bytes` more.
    fn make_room(&self, bytes: usize) {
        let mut empty = 0;
        while self.bytes.load(Relaxed).saturating_add(bytes) > self.limit && empty < SHARDS {
            let next = self.next.fetch_add(1, Relaxed) % SHARDS;
            let freed = self.shards.get(next).map_or(0, |shard| shard.lock().evict());
            self.bytes.fetch_sub(freed, Relaxed);
            empty = if freed == 0 { empty + 1 } else { 0 };
        }
    }

    fn shard(&self, key: Key) -> Option<&Mutex<Shard>> {
        let hash = usize::try_from(self.hasher.hash_one(key) >> 40).unwrap_or(0);
        self.shards.get(hash % SHARDS)
    }
}

impl PartCache for UnitCache {
    fn get(&self, part: u64, offset: u64) -> Option<Cached> {
        let mut shard = self.shard((part, offset))?.lock();
        let place = *shard.places.get(&(part, offset))?;
        let slot = shard.slots.get_mut(place)?.as_mut()?;
        slot.used = true;
        Some(Cached::clone(&slot.unit))
    }

    fn put(&self, part: u64, offset: u64, unit: Cached, bytes: usize) {
        let (key, bytes) = ((part, offset), bytes + ENTRY);
        let Some(shard) = self.shard(key).filter(|_| bytes <= self.limit / UNIT_SHARE) else {
            return;
        };
        self.make_room(bytes);
        let mut shard = shard.lock();
        if let Some(place) = shard.places.get(&key).copied() {
            self.bytes.fetch_sub(shard.remove(place), Relaxed);
        }
        // Added first: whoever evicts the unit takes its bytes away.
        self.bytes.fetch_add(bytes, Relaxed);
        shard.insert(Slot { key, unit, bytes, used: false });
    }
}

impl Shard {
    fn insert(&mut self, slot: Slot) {
        let place = self.free.pop().unwrap_or(self.slots.len());
        self.bytes += slot.bytes;
        self.places.insert(slot.key, place);
        match self.slots.get_mut(place) {
            Some(free) => *free = Some(slot),
            None => self.slots.push(Some(slot)),
        }
    }

    /// Removes a unit; returns its bytes.
    fn remove(&mut self, place: usize) -> usize {
        let Some(slot) = self.slots.get_mut(place).and_then(Option::take) else { return 0 };
        self.bytes -= slot.bytes;
        self.places.remove(&slot.key);
        self.free.push(place);
        slot.bytes
    }

    /// Removes the next unit that was not used since the hand passed it; returns its bytes.
    fn evict(&mut self) -> usize {
        loop {
            self.hand = if self.hand + 1 < self.slots.len() { self.hand + 1 } else { 0 };
            match self.slots.get_mut(self.hand) {
                Some(Some(slot)) if slot.used => slot.used = false,
                Some(Some(_)) => return self.remove(self.hand),
                Some(None) if self.bytes > 0 => {}
                _ => return 0,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn keeps_what_is_used_within_its_bytes() {
        let cache = UnitCache::new(SHARDS * 20_000);
        let get = |i: u64| cache.get(1, i).and_then(|u| u.downcast::<u64>().ok()).map(|n| *n);
        for i in 0..2_000u64 {
            cache.put(1, i, Arc::new(i), 1_000);
            assert!(cache.bytes() <= SHARDS * 20_000);
            // Unit 7 is asked for all the time, so it stays.
            assert!(i < 7 || get(7) == Some(7));
        }
        assert_eq!((get(1_999), get(8)), (Some(1_999), None));
        assert!(cache.get(2, 7).is_none());
        cache.put(2, 0, Arc::new(0u64), 20_000);
        assert!(cache.get(2, 0).is_none(), "larger than a unit may be");
        cache.put(1, 7, Arc::new(70u64), 10);
        assert_eq!(get(7), Some(70));
    }

    #[test]
    fn a_cache_without_bytes_keeps_nothing() {
        let cache = UnitCache::new(0);
        cache.put(1, 1, Arc::new(1u64), 0);
        assert!(cache.get(1, 1).is_none());
    }
}
