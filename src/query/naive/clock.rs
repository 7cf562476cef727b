//! What the clock of a zone shows.

/// The clock of a time zone: from which nanosecond on it is how many seconds ahead of UTC.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Clock(pub(crate) &'static [(i64, i64)]);

impl Clock {
    /// Universal time.
    pub(crate) const UTC: Clock = Clock(&[(i64::MIN, 0)]);

    /// What the clock shows at a time, as if that were UTC.
    pub(crate) fn shown(self, time: i64) -> i64 {
        let (_, east) = self.0.iter().rfind(|(from, _)| *from <= time).unwrap();
        time + east * 1_000_000_000
    }

    /// The first time at which the clock shows this or more.
    pub(crate) fn first_showing(self, local: i128) -> i128 {
        let ends = self.0.iter().skip(1).map(|(from, _)| i128::from(*from)).chain([i128::MAX]);
        let mut each = self.0.iter().zip(ends).map(|((from, east), end)| {
            let shows = local - i128::from(*east) * 1_000_000_000;
            // Before the first offset there is nothing.
            let first = if *from == i64::MIN { shows } else { shows.max((*from).into()) };
            (first, end)
        });
        each.find(|(first, end)| first < end).unwrap().0
    }
}
