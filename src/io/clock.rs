//! Where `now` comes from.

use std::fmt;
#[cfg(any(test, feature = "fuzzing"))]
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::record::Timestamp;

/// A source of wall-clock and of elapsed time.
pub trait Clock: fmt::Debug + Send + Sync {
    /// The wall clock; may jump in both directions.
    fn now(&self) -> Timestamp;

    /// Time since some fixed moment of this process; never goes back.
    fn monotonic(&self) -> Duration;
}

/// The clocks of the operating system.
#[derive(Debug, Clone)]
pub struct SystemClock {
    started: Instant,
}

impl SystemClock {
    /// A clock whose elapsed time begins now.
    pub fn new() -> SystemClock {
        SystemClock { started: Instant::now() }
    }
}

impl Default for SystemClock {
    fn default() -> SystemClock {
        SystemClock::new()
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let nanos = match SystemTime::now().duration_since(UNIX_EPOCH) {
            Ok(after) => i64::try_from(after.as_nanos()).unwrap_or(i64::MAX),
            Err(e) => i64::try_from(e.duration().as_nanos()).map_or(i64::MIN, |n| -n),
        };
        Timestamp::from_nanos(nanos)
    }

    fn monotonic(&self) -> Duration {
        self.started.elapsed()
    }
}

/// A clock that moves only when told to.
#[derive(Debug, Default)]
#[cfg(any(test, feature = "fuzzing"))]
pub struct ManualClock {
    now_nanos: AtomicI64,
    monotonic_nanos: AtomicU64,
}

#[cfg(any(test, feature = "fuzzing"))]
impl ManualClock {
    /// A clock that stands at `now`, with no time elapsed.
    #[cfg(any(test, feature = "fuzzing"))]
    pub fn new(now: Timestamp) -> ManualClock {
        ManualClock {
            now_nanos: AtomicI64::new(now.as_nanos()),
            monotonic_nanos: AtomicU64::new(0),
        }
    }

    /// Lets time pass: both clocks move on by `by`.
    #[cfg(test)]
    pub fn advance(&self, by: Duration) {
        let nanos = u64::try_from(by.as_nanos()).unwrap_or(u64::MAX);
        let signed = i64::try_from(nanos).unwrap_or(i64::MAX);
        self.now_nanos.fetch_add(signed, Ordering::SeqCst);
        self.monotonic_nanos.fetch_add(nanos, Ordering::SeqCst);
    }

    /// Makes the wall clock jump to `now`; no time elapses.
    #[cfg(test)]
    pub fn jump_to(&self, now: Timestamp) {
        self.now_nanos.store(now.as_nanos(), Ordering::SeqCst);
    }
}

#[cfg(any(test, feature = "fuzzing"))]
impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_nanos(self.now_nanos.load(Ordering::SeqCst))
    }

    fn monotonic(&self) -> Duration {
        Duration::from_nanos(self.monotonic_nanos.load(Ordering::SeqCst))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn manual_clock_moves_only_when_told() {
        let clock = ManualClock::new(Timestamp::from_nanos(1_000));
        assert_eq!(clock.now(), Timestamp::from_nanos(1_000));
        clock.advance(Duration::from_nanos(5));
        assert_eq!(clock.now(), Timestamp::from_nanos(1_005));
        assert_eq!(clock.monotonic(), Duration::from_nanos(5));
        clock.jump_to(Timestamp::from_nanos(-7));
        assert_eq!(clock.now(), Timestamp::from_nanos(-7));
        assert_eq!(clock.monotonic(), Duration::from_nanos(5));
    }

    #[test]
    fn system_clock_is_after_2020_and_monotonic() {
        let clock = SystemClock::new();
        assert!(clock.now() > Timestamp::from_nanos(1_577_836_800_000_000_000));
        let first = clock.monotonic();
        assert!(clock.monotonic() >= first);
    }
}
