//! Time zones: what their clocks show, and when.

use jiff::tz::{AmbiguousOffset, TimeZone};

use super::Timestamp;
use super::timestamp::{NANOS_PER_SECOND, parse_offset};

const SECOND: i128 = NANOS_PER_SECOND as i128;

/// The time zone in which a query reads times without a zone, and in which days begin.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Zone {
    /// Seconds east of UTC.
    Fixed(i64),
    /// A zone with rules.
    Named(TimeZone),
}

impl Zone {
    /// Universal time.
    pub(crate) const UTC: Zone = Zone::Fixed(0);

    /// The zone of a name: `UTC`, `local`, an offset such as `+02:00`, or a name of the system's
    /// table of zones such as `Europe/Berlin`.
    pub(crate) fn named(name: &str) -> Option<Zone> {
        match name {
            "UTC" | "Z" => Some(Zone::UTC),
            "local" => TimeZone::try_system().ok().map(Zone::Named),
            _ if name.starts_with(['+', '-']) => parse_offset(name.as_bytes()).map(Zone::Fixed),
            _ => TimeZone::get(name).ok().map(Zone::Named),
        }
    }

    /// A zone by the rule of a POSIX `TZ` variable, whatever the system's table of zones has.
    #[cfg(test)]
    pub(crate) fn posix(rule: &str) -> Zone {
        Zone::Named(TimeZone::posix(rule).unwrap())
    }

    /// Zones by how their clocks change; none needs the system's table.
    #[cfg(test)]
    pub(crate) const CHANGING: [&str; 6] = [
        "CET-1CEST,M3.5.0,M10.5.0/3",
        // Midnight is skipped, and the hour behind it is there twice.
        "CST5CDT,M3.2.0/0,M11.1.0/1",
        // Midnight is skipped, and the hour before it is there twice.
        "<-03>3<-02>,M11.1.0/0,M2.3.0/0",
        // A minute after midnight the clock goes back into the day before.
        "NST3:30NDT,M3.2.0/0:01,M11.1.0/0:01",
        // Half an hour.
        "<+1030>-10:30<+11>-11,M10.1.0,M4.1.0",
        // Midnight lies inside of what is skipped.
        "XST5XDT,M3.5.0/23:30,M10.5.0/2",
    ];

    /// The first moment, in nanoseconds since 1970 UTC, at which the clock shows `local` or more;
    /// `local` is given as if it were UTC. So a time that a change of the clock repeats stands for
    /// its first moment and one that is skipped for the change, and later local times never come
    /// earlier.
    pub(crate) fn first_showing(&self, local: i128) -> i128 {
        let zone = match self {
            Zone::Fixed(east) => return local - i128::from(*east) * SECOND,
            Zone::Named(zone) => zone,
        };
        // Years that the calendar does not have are beyond all times of rows as well.
        let Ok(shown) = jiff::Timestamp::from_nanosecond(local) else { return local };
        let civil = TimeZone::UTC.to_datetime(shown);
        let at = |offset: jiff::tz::Offset| local - i128::from(offset.seconds()) * SECOND;
        match zone.to_ambiguous_timestamp(civil).offset() {
            AmbiguousOffset::Unambiguous { offset } => at(offset),
            AmbiguousOffset::Fold { before, .. } => at(before),
            AmbiguousOffset::Gap { before, after } => {
                let change = last_change(zone, at(before));
                change.filter(|change| *change > at(after)).unwrap_or_else(|| at(before))
            }
        }
    }

    /// Seconds east of UTC at a time.
    pub(crate) fn seconds_east(&self, time: Timestamp) -> i64 {
        match self {
            Zone::Fixed(east) => *east,
            Zone::Named(zone) => {
                let at = jiff::Timestamp::from_nanosecond(i128::from(time.as_nanos()));
                at.map_or(0, |at| i64::from(zone.to_offset(at).seconds()))
            }
        }
    }

    /// The last change of the offset at or before a time, both in nanoseconds since 1970.
    pub(crate) fn last_change(&self, time: i64) -> Option<i128> {
        match self {
            Zone::Fixed(_) => None,
            Zone::Named(zone) => last_change(zone, time.into()),
        }
    }

    /// The next change of the offset, or of the rules, after a time.
    pub(crate) fn next_change(&self, time: i64) -> Option<i128> {
        let Zone::Named(zone) = self else { return None };
        let at = jiff::Timestamp::from_nanosecond(time.into()).ok()?;
        Some(zone.following(at).next()?.timestamp().as_nanosecond())
    }
}

fn last_change(zone: &TimeZone, time: i128) -> Option<i128> {
    // Changes come at whole seconds.
    let after = time.div_euclid(SECOND) + 1;
    let after = jiff::Timestamp::from_second(i64::try_from(after).ok()?).ok()?;
    let moves = |change: &jiff::Timestamp| {
        let before = change.checked_sub(jiff::SignedDuration::from_secs(1));
        before.is_ok_and(|before| zone.to_offset(before) != zone.to_offset(*change))
    };
    let mut changes = zone.preceding(after).map(|change| change.timestamp());
    changes.find(moves).map(jiff::Timestamp::as_nanosecond)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_moment_is_the_one_a_walk_finds() {
        for rule in Zone::CHANGING {
            let zone = Zone::posix(rule);
            let mut change = Timestamp::parse("2024-01-01T00:00:00Z").unwrap().as_nanos();
            for _ in 0..2 {
                change = i64::try_from(zone.next_change(change).unwrap()).unwrap();
                assert_eq!(zone.last_change(change), Some(change.into()), "{rule}");
                let minute = 60 * NANOS_PER_SECOND;
                let shown =
                    |t: i64| t + zone.seconds_east(Timestamp::from_nanos(t)) * NANOS_PER_SECOND;
                let mut latest = i64::MIN;
                for step in -300..300 {
                    let time = change + step * minute;
                    if shown(time) <= latest {
                        continue;
                    }
                    // All that the clock has not shown before this moment it shows now.
                    let fresh = if latest == i64::MIN { shown(time) } else { latest + minute };
                    for local in (fresh..=shown(time)).step_by(60 * 1_000_000_000) {
                        let first = zone.first_showing(local.into());
                        assert_eq!(first, i128::from(time), "{rule}: {step} minutes");
                    }
                    latest = shown(time);
                }
            }
        }
    }

    #[test]
    fn offsets_follow_the_rules() {
        let summer = Timestamp::parse("2024-07-01T00:00:00Z").unwrap();
        assert_eq!(Zone::posix(Zone::CHANGING[0]).seconds_east(summer), 7_200);
        assert_eq!(Zone::Fixed(-60).seconds_east(summer), -60);
        assert_eq!(Zone::Fixed(-60).first_showing(0), 60 * SECOND);
    }

    #[test]
    fn zones_have_names() {
        assert_eq!(Zone::named("UTC"), Some(Zone::UTC));
        assert_eq!(Zone::named("-02:30"), Some(Zone::Fixed(-9_000)));
        for bad in ["", "+2:3:4", "Mars/Olympus", "../../etc/passwd"] {
            assert_eq!(Zone::named(bad), None, "{bad}");
        }
    }
}
