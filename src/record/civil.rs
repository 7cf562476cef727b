//! Civil dates of the proleptic Gregorian calendar, in UTC.
//!
//! The day-number arithmetic counts years from March, so that the leap day is the last of its
//! year, and months by the linear form `(153 m + 2) / 5` (Hinnant, "chrono-compatible low-level
//! date algorithms").

use super::{Timestamp, timestamp::NANOS_PER_DAY};

/// Days from 1970-01-01 to the given date; `month` from 1, `day` from 1.
pub(crate) const fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let y = if month <= 2 { year - 1 } else { year };
    let era = y.div_euclid(400);
    let year_of_era = y - era * 400;
    let month_from_march = (month + 9) % 12;
    let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

/// Year, month and day of the date `days` after 1970-01-01.
pub(crate) const fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let z = days + 719_468;
    let era = z.div_euclid(146_097);
    let day_of_era = z - era * 146_097;
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + if month <= 2 { 1 } else { 0 };
    (year, month, day)
}

/// The number of days of a month; `month` from 1 to 12.
pub(crate) const fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        _ => 31,
    }
}

/// The first instant of the UTC month of `time`, or the earliest time if that is out of range.
pub(crate) fn month_start(time: Timestamp) -> Timestamp {
    let (year, month, _) = civil_from_days(i64::from(time.day()));
    day_start(days_from_civil(year, month, 1))
}

/// The first instant of the UTC year of `time`, or the earliest time if that is out of range.
pub(crate) fn year_start(time: Timestamp) -> Timestamp {
    let (year, _, _) = civil_from_days(i64::from(time.day()));
    day_start(days_from_civil(year, 1, 1))
}

/// The first instant of the UTC month after that of `time`, or the latest time.
#[cfg(test)]
pub(crate) fn next_month_start(time: Timestamp) -> Timestamp {
    let (year, month, _) = civil_from_days(i64::from(time.day()));
    let (year, month) = if month == 12 { (year + 1, 1) } else { (year, month + 1) };
    day_start(days_from_civil(year, month, 1))
}

/// The first instant of the UTC year after that of `time`, or the latest time.
#[cfg(test)]
pub(crate) fn next_year_start(time: Timestamp) -> Timestamp {
    let (year, _, _) = civil_from_days(i64::from(time.day()));
    day_start(days_from_civil(year + 1, 1, 1))
}

/// The first instant of a UTC day, clamped to the range of times.
fn day_start(day: i64) -> Timestamp {
    Timestamp::from_nanos(day.saturating_mul(NANOS_PER_DAY))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_day_of_the_range_goes_there_and_back() {
        let (mut year, mut month, mut day) = (1677, 1, 1);
        for days in days_from_civil(1677, 1, 1)..=days_from_civil(2262, 12, 31) {
            assert_eq!(civil_from_days(days), (year, month, day));
            assert_eq!(days_from_civil(year, month, day), days);
            day += 1;
            if day > days_in_month(year, month) {
                (month, day) = (month + 1, 1);
            }
            if month > 12 {
                (year, month) = (year + 1, 1);
            }
        }
        assert_eq!(days_from_civil(1970, 1, 1), 0);
        assert_eq!(days_from_civil(2000, 2, 29), 11_016);
    }

    #[test]
    fn months_and_years_begin_where_the_calendar_says() {
        let at = |text: &str| super::super::parse_rfc3339(text.as_bytes()).unwrap();
        let leap = at("2024-02-29T23:59:59.999999999Z");
        assert_eq!(month_start(leap), at("2024-02-01T00:00:00Z"));
        assert_eq!(next_month_start(leap), at("2024-03-01T00:00:00Z"));
        assert_eq!(year_start(leap), at("2024-01-01T00:00:00Z"));
        assert_eq!(next_year_start(leap), at("2025-01-01T00:00:00Z"));
        assert_eq!(next_month_start(at("1969-12-31T00:00:00Z")), at("1970-01-01T00:00:00Z"));
        assert_eq!(month_start(Timestamp::MIN), Timestamp::MIN);
        assert_eq!(year_start(Timestamp::MIN), Timestamp::MIN);
        assert_eq!(next_month_start(Timestamp::MAX), Timestamp::MAX);
        assert_eq!(next_year_start(Timestamp::MAX), Timestamp::MAX);
    }
}
