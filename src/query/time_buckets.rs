//! Buckets of equal width that times fall into, numbered without a text or a division for each.

use super::group::Numbers;

/// The most buckets that are numbered in a list.
const LISTED: usize = 1 << 20;

const UNSEEN: u32 = u32::MAX;

/// Buckets of a width in nanoseconds, the boundaries moved by an offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EvenBuckets {
    width: u64,
    shift: i64,
    /// The whole part of 2^64 divided by the width.
    inverse: u64,
}

impl EvenBuckets {
    /// Buckets that begin at multiples of `width` less `shift`.
    pub(crate) fn new(width: i64, shift: i64) -> Option<EvenBuckets> {
        let width = u64::try_from(width).ok().filter(|w| *w > 1)?;
        Some(EvenBuckets { width, shift, inverse: u64::MAX / width })
    }

    /// The start of the bucket of a time, unless that is out of range.
    pub(crate) fn start(self, ns: i64) -> Option<i64> {
        let width = i64::try_from(self.width).ok()?;
        ns.checked_sub(ns.checked_add(self.shift)?.rem_euclid(width))
    }

    /// The start of the bucket that holds all times from `min` to `max`, if one does.
    pub(crate) fn only(self, min: i64, max: i64) -> Option<i64> {
        let start = self.start(min)?;
        (self.start(max)? == start).then_some(start)
    }

    /// How many whole widths there are in `distance`.
    #[inline]
    fn whole(self, distance: u64) -> u64 {
        let wide = u128::from(distance) * u128::from(self.inverse);
        let near = (wide >> 64) as u64;
        // The inverse is rounded down, so this is the number or one less.
        near + u64::from(distance - near * self.width >= self.width)
    }
}

/// The numbers of buckets, in a list from the first to the last that was seen.
#[derive(Debug, Clone, Default)]
pub(crate) struct TimeBuckets {
    even: Option<EvenBuckets>,
    /// The start of the first bucket of the list.
    origin: i64,
    numbers: Vec<u32>,
}

impl TimeBuckets {
    /// The number of the bucket of each time; `number` says that of the bucket of a time that is
    /// not in the list. Asked for with the same buckets each time.
    pub(crate) fn number_all(
        &mut self,
        times: &[i64],
        even: EvenBuckets,
        mut number: impl FnMut(i64) -> u32,
    ) -> Numbers {
        if self.even != Some(even) {
            let Some(origin) = times.first().and_then(|ns| even.start(*ns)) else {
                return Numbers::Each(times.iter().map(|ns| number(*ns)).collect());
            };
            *self = TimeBuckets { even: Some(even), origin, numbers: Vec::new() };
        }
        let of = |ns: &i64| {
            // The list ends within the range of times, so distances of earlier times wrap around
            // to ones behind it.
            let distance = ns.wrapping_sub(self.origin).cast_unsigned();
            let bucket = usize::try_from(even.whole(distance)).unwrap_or(usize::MAX);
            match self.numbers.get(bucket) {
                Some(known) if *known != UNSEEN => *known,
                _ => {
                    let id = number(*ns);
                    self.put(even, *ns, id);
                    id
                }
            }
        };
        Numbers::Each(times.iter().map(of).collect())
    }

    /// Puts the bucket of a time into the list, unless that would be too long, or some times of
    /// it would be out of range.
    fn put(&mut self, even: EvenBuckets, ns: i64, id: u32) -> Option<()> {
        let start = even.start(ns)?;
        let width = i64::try_from(even.width).ok()?;
        start.checked_add(even.shift)?;
        start.checked_add(width)?.checked_add(even.shift)?;
        if start < self.origin {
            // Room for as many again, so that going back in time bucket by bucket stays cheap.
            let needed = even.whole(self.origin.checked_sub(start)?.cast_unsigned());
            let more = usize::try_from(needed).ok()?.max(self.numbers.len());
            let back = i64::try_from(more).ok()?.checked_mul(width)?;
            let origin = self.origin.checked_sub(back)?;
            if self.numbers.len() + more > LISTED {
                return None;
            }
            self.numbers.splice(0..0, std::iter::repeat_n(UNSEEN, more));
            self.origin = origin;
        }
        let bucket = even.whole(start.checked_sub(self.origin)?.cast_unsigned());
        let bucket = usize::try_from(bucket).ok().filter(|bucket| *bucket < LISTED)?;
        if bucket >= self.numbers.len() {
            self.numbers.resize(bucket + 1, UNSEEN);
        }
        *self.numbers.get_mut(bucket)? = id;
        Some(())
    }

    /// Bytes of memory held.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.numbers.capacity() * 4
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1_000))]
        #[test]
        fn buckets_are_those_of_a_division(
            batches in prop::collection::vec(prop::collection::vec(any::<i64>(), 0..20), 1..5),
            shift in 0u32..60,
            width in prop_oneof![2i64..100, 1_000_000_000i64..i64::MAX],
            moved in prop_oneof![-1_000_000_000_000i64..1_000_000_000_000, any::<i64>()],
            ends in any::<bool>(),
        ) {
            let even = EvenBuckets::new(width, moved).unwrap();
            let mut buckets = TimeBuckets::default();
            let mut starts: Vec<i64> = Vec::new();
            for times in &batches {
                // Times near both ends of their range, or anywhere.
                let at_end = |t: &i64| if *t < 0 { i64::MIN - t } else { i64::MAX - t };
                let near = |t: &i64| t >> shift;
                let place = |t: &i64| if ends { at_end(&near(t)) } else { near(t) };
                let times: Vec<i64> = times.iter().map(place).collect();
                let numbers = buckets.number_all(&times, even, |ns| {
                    let start = even.start(ns).unwrap_or(ns);
                    let known = starts.iter().position(|s| *s == start);
                    let at = known.unwrap_or_else(|| {
                        starts.push(start);
                        starts.len() - 1
                    });
                    u32::try_from(at).unwrap()
                });
                for (row, ns) in times.iter().enumerate() {
                    let wide = i128::from(*ns);
                    let want = wide - (wide + i128::from(moved)).rem_euclid(i128::from(width));
                    let want = match i64::try_from(want) {
                        Ok(want) if ns.checked_add(moved).is_some() => want,
                        _ => *ns,
                    };
                    prop_assert_eq!(starts[numbers.get(row) as usize], want);
                }
            }
        }
    }
}
