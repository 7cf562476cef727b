//! Buckets of group keys: values rounded down to the start of the bucket that holds them.

use std::net::Ipv4Addr;
use std::sync::Arc;

use crate::query::ast::{Bucket, BucketStep, CalendarUnit};
use crate::query::column::{Column, push_int, push_time};
use crate::query::time_buckets::EvenBuckets;
use crate::record::{
    Decimal, Number, TextVec, Timestamp, Zone, month_start, parse_duration, parse_ipv4,
    parse_numeric, parse_rfc3339, write_duration, write_f64, year_start,
};

const SECOND: i128 = 1_000_000_000;
const DAY: i128 = 86_400 * SECOND;

/// A compiled bucket.
#[derive(Debug, Clone)]
pub(crate) struct BucketFn {
    step: Step,
    offset: Decimal,
    zone: Zone,
    /// The buckets of times, where they all have one width and the zone is fixed.
    even: Option<EvenBuckets>,
}

#[derive(Debug, Clone, Copy)]
enum Step {
    /// A width; for times in nanoseconds, their boundaries moved by `anchor`.
    Width {
        width: Decimal,
        anchor: i128,
    },
    Network(u8),
    Month,
    Year,
}

impl BucketFn {
    /// Compiles a bucket; times fall into buckets of the given zone.
    pub(crate) fn new(bucket: &Bucket, zone: &Zone) -> BucketFn {
        let offset = bucket.offset.as_ref().and_then(|n| exact(n.text.as_bytes()));
        let fixed = |nanos: i128| Step::Width { width: Decimal::from_int(nanos), anchor: 0 };
        let step = match &bucket.step {
            BucketStep::Number(n) => match exact(n.text.as_bytes()) {
                Some(width) if width > Decimal::ZERO => Step::Width { width, anchor: 0 },
                _ => fixed(1),
            },
            BucketStep::Ipv4Network(bits) => Step::Network((*bits).min(32)),
            BucketStep::Calendar(unit) => match unit {
                CalendarUnit::Nanosecond => fixed(1),
                CalendarUnit::Microsecond => fixed(1_000),
                CalendarUnit::Millisecond => fixed(1_000_000),
                CalendarUnit::Second => fixed(SECOND),
                CalendarUnit::Minute => fixed(60 * SECOND),
                CalendarUnit::Hour => fixed(3_600 * SECOND),
                CalendarUnit::Day => fixed(DAY),
                // 1970-01-05 was the first Monday.
                CalendarUnit::Week => {
                    Step::Width { width: Decimal::from_int(7 * DAY), anchor: 4 * DAY }
                }
                CalendarUnit::Month => Step::Month,
                CalendarUnit::Year => Step::Year,
            },
        };
        BucketFn::of(step, offset.unwrap_or(Decimal::ZERO), zone.clone())
    }

    fn of(step: Step, offset: Decimal, zone: Zone) -> BucketFn {
        let even = || {
            let (Step::Width { width, anchor }, Zone::Fixed(east)) = (step, &zone) else {
                return None;
            };
            let moved = offset.trunc().checked_add(anchor)?;
            let shift = (i128::from(*east) * SECOND).checked_sub(moved)?;
            EvenBuckets::new(i64::try_from(width.trunc()).ok()?, i64::try_from(shift).ok()?)
        };
        let even = even();
        BucketFn { step, offset, zone, even }
    }

    /// The buckets of times, if they have one width.
    pub(crate) fn even_buckets(&self) -> Option<EvenBuckets> {
        self.even
    }

    /// The starts of the buckets of a column's values.
    pub(crate) fn apply(&self, column: &Column, rows: usize) -> Column {
        let map = |values: &TextVec| {
            let mut out = TextVec::with_capacity(values.len(), values.bytes().len());
            for value in values.iter() {
                self.push_bucket(value, out.open());
                out.close();
            }
            out
        };
        match column {
            Column::Const(value) => {
                let mut out = Vec::new();
                self.push_bucket(value, &mut out);
                Column::constant(&out)
            }
            Column::Codes { codes, dictionary } => {
                Column::Codes { codes: codes.clone(), dictionary: Arc::new(map(dictionary)) }
            }
            Column::Runs { ends, codes, dictionary } => {
                let values = codes.iter().map(|code| dictionary.get(*code as usize)).collect();
                Column::of_each_run(ends, map(&values))
            }
            Column::Times(times) => {
                let mut last = (0, 0);
                let bucket = |ns: &i64| self.cached_time(*ns, &mut last);
                Column::Times(Arc::new(times.iter().take(rows).map(bucket).collect()))
            }
            Column::Ints { values, absent: None, exceptions } if exceptions.is_empty() => {
                match values.iter().take(rows).map(|n| self.int(*n)).collect() {
                    Some(values) => Column::ints(values),
                    None => Column::text(map(&column.to_text(rows))),
                }
            }
            Column::Text(_) | Column::Ints { .. } => Column::text(map(&column.to_text(rows))),
        }
    }

    /// The bucket of a time; remembers the last one, which most rows share.
    fn cached_time(&self, ns: i64, last: &mut (i64, i64)) -> i64 {
        let (start, end) = *last;
        if !(start..end).contains(&ns) {
            *last = self.span(ns);
        }
        last.0
    }

    /// The start of the bucket of a time, held to the range of times.
    pub(crate) fn time(&self, ns: i64) -> i64 {
        self.even.and_then(|even| even.start(ns)).unwrap_or_else(|| self.span(ns).0)
    }

    /// The start of the next bucket after that of a time, if there is one in the range of times.
    pub(crate) fn next_start(&self, ns: i64) -> Option<i64> {
        let start = self.time(ns);
        let mut end = self.span(ns).1;
        loop {
            let (next, after) = self.span(end);
            match next {
                i64::MAX => return None,
                _ if next > start => return Some(next),
                _ if after <= end => return None,
                _ => end = after,
            }
        }
    }

    /// The start of the bucket of a time, and an end such that all times between are in it; both
    /// held to the range of times.
    fn span(&self, ns: i64) -> (i64, i64) {
        let east = i128::from(self.zone.seconds_east(Timestamp::from_nanos(ns))) * SECOND;
        let Some((from, to)) = self.local_span(i128::from(ns) + east) else {
            return (ns, ns.saturating_add(1));
        };
        if matches!(self.zone, Zone::Fixed(_)) {
            return (clamp(from - east), clamp(to - east));
        }
        let (start, end) = self.zoned_span(ns, east, from, to);
        let change = self.zone.next_change(ns).unwrap_or(i128::MAX);
        (clamp(start), clamp(end.min(change)))
    }

    /// As [`span`](BucketFn::span) where the clock may change; `from` and `to` are the bounds by
    /// the clock at `ns`, which is `east` of UTC.
    ///
    /// A bucket begins when the clock first shows its start and ends when the next one begins, so
    /// each lasts for one stretch of time. But buckets no longer than what the clock goes back by
    /// are there twice: an hour that is repeated stays two hours.
    fn zoned_span(&self, ns: i64, east: i128, from: i128, to: i128) -> (i128, i128) {
        let start = self.zone.first_showing(from);
        let (again, width) = (from - east, to - from);
        if width < DAY && again - start >= width {
            let change = self.zone.last_change(ns).unwrap_or(again);
            return (again.max(change), to - east);
        }
        let end = self.zone.first_showing(to);
        if end > i128::from(ns) {
            return (start, end);
        }
        let after = self.local_span(to).map_or(to, |(_, after)| after);
        (end, self.zone.first_showing(after))
    }

    /// The bounds of the bucket of a local time; `None` for buckets of addresses.
    fn local_span(&self, local: i128) -> Option<(i128, i128)> {
        let offset = self.offset.trunc();
        let civil = |start: fn(Timestamp) -> Timestamp, longest: i128| {
            let at = |ns: i128| i128::from(start(Timestamp::from_nanos(clamp(ns))).as_nanos());
            let from = at(local - offset);
            // At the end of the range of times the next one is out of it.
            let to = at(from + longest);
            (from + offset, if to > from { to } else { from + longest } + offset)
        };
        Some(match self.step {
            Step::Width { width, anchor } => {
                let width = width.trunc().max(1);
                let moved = local - offset - anchor;
                let from = moved.div_euclid(width) * width + offset + anchor;
                (from, from + width)
            }
            Step::Network(_) => return None,
            Step::Month => civil(month_start, 31 * DAY),
            Step::Year => civil(year_start, 366 * DAY),
        })
    }

    fn int(&self, n: i64) -> Option<i64> {
        let (width, offset) = self.width()?;
        if width.scale() != 0 || offset.scale() != 0 {
            return None;
        }
        i64::try_from(floor_to(i128::from(n), width.mantissa(), offset.mantissa())?).ok()
    }

    /// The width and the offset of buckets of plain numbers.
    fn width(&self) -> Option<(Decimal, Decimal)> {
        match self.step {
            Step::Width { width, .. } => Some((width, self.offset)),
            Step::Network(bits) => {
                let hosts = 32 - u32::from(bits);
                Some((Decimal::from_int(1i128 << hosts), Decimal::ZERO))
            }
            Step::Month | Step::Year => None,
        }
    }

    /// Appends the start of the bucket of a value; values of other kinds stay as they are.
    fn push_bucket(&self, value: &[u8], out: &mut Vec<u8>) {
        if self.try_push(value, out).is_none() {
            out.extend_from_slice(value);
        }
    }

    fn try_push(&self, value: &[u8], out: &mut Vec<u8>) -> Option<()> {
        if value.is_empty() {
            return None;
        }
        if is_decimal_text(value) {
            match parse_numeric(value)? {
                Number::Decimal(d) => push_decimal(out, self.decimal(d)?),
                Number::Wide(x) => {
                    let (width, offset) = self.width()?;
                    let (width, offset) = (width.to_f64(), offset.to_f64());
                    write_f64(out, ((x - offset) / width).floor() * width + offset);
                }
            }
            return Some(());
        }
        if let Some(duration) = parse_duration(value) {
            let start = self.decimal(duration)?;
            write_duration(out, i64::try_from(start.trunc()).ok()?);
            return Some(());
        }
        self.push_time_or_address(value, out)
    }

    fn push_time_or_address(&self, value: &[u8], out: &mut Vec<u8>) -> Option<()> {
        if let Some(time) = parse_rfc3339(value) {
            if matches!(self.step, Step::Network(_)) {
                return None;
            }
            push_time(out, self.time(time.as_nanos()));
            return Some(());
        }
        let address = self.decimal(Decimal::from_int(i128::from(parse_ipv4(value)?)))?;
        let address = u32::try_from(address.trunc().max(0)).ok()?;
        out.extend_from_slice(Ipv4Addr::from_bits(address).to_string().as_bytes());
        Some(())
    }

    fn decimal(&self, value: Decimal) -> Option<Decimal> {
        let (width, offset) = self.width()?;
        let scale = value.scale().max(width.scale()).max(offset.scale());
        let raise = |d: Decimal| {
            let power = 10i128.checked_pow(u32::from(scale - d.scale()))?;
            d.mantissa().checked_mul(power)
        };
        let start = floor_to(raise(value)?, raise(width)?, raise(offset)?)?;
        Decimal::new(start, u32::from(scale))
    }
}

/// Whether a value is an integer or a decimal: a sign, digits, at most one point between digits,
/// `_` between digits. Sizes, hexadecimal and exponents keep their own spelling, so they are not
/// put into buckets of numbers.
fn is_decimal_text(value: &[u8]) -> bool {
    let digits = |part: &[u8]| {
        part.split(|b| *b == b'_').all(|g| !g.is_empty() && g.iter().all(u8::is_ascii_digit))
    };
    let body = value.strip_prefix(b"-").unwrap_or(value);
    match body.iter().position(|b| *b == b'.') {
        None => digits(body),
        Some(point) => {
            let (int, fraction) = body.split_at(point);
            digits(int) && digits(fraction.get(1..).unwrap_or(&[]))
        }
    }
}

fn exact(text: &[u8]) -> Option<Decimal> {
    match parse_numeric(text)? {
        Number::Decimal(d) => Some(d),
        Number::Wide(_) => None,
    }
}

fn floor_to(n: i128, width: i128, offset: i128) -> Option<i128> {
    let steps = n.checked_sub(offset)?.checked_div_euclid(width)?;
    steps.checked_mul(width)?.checked_add(offset)
}

fn clamp(ns: i128) -> i64 {
    let bounded = ns.clamp(i128::from(i64::MIN), i128::from(i64::MAX));
    i64::try_from(bounded).unwrap_or(0)
}

/// Appends a decimal without exponent.
fn push_decimal(out: &mut Vec<u8>, value: Decimal) {
    if let (0, Ok(n)) = (value.scale(), i64::try_from(value.mantissa())) {
        push_int(out, n);
        return;
    }
    let scale = usize::from(value.scale());
    let digits = value.mantissa().unsigned_abs().to_string();
    let digits = format!("{digits:0>width$}", width = scale + 1);
    if value.mantissa() < 0 {
        out.push(b'-');
    }
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    out.extend_from_slice(whole.as_bytes());
    if scale > 0 {
        out.push(b'.');
        out.extend_from_slice(fraction.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_integers_and_decimals_fall_into_buckets_of_numbers() {
        let step = Step::Width { width: Decimal::from_int(10), anchor: 0 };
        let bucket = BucketFn::of(step, Decimal::ZERO, Zone::UTC);
        let cases = [
            ("17", "10"),
            ("-3", "-10"),
            ("1_024", "1020"),
            ("12.75", "10"),
            ("0x1F", "0x1F"),
            ("1e3", "1e3"),
            ("+7", "+7"),
            ("12KB", "12KB"),
            ("1.", "1."),
            ("word", "word"),
        ];
        for (value, want) in cases {
            let mut out = Vec::new();
            bucket.push_bucket(value.as_bytes(), &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), want, "{value}");
        }
    }

    const MINUTE: i64 = 60_000_000_000;

    /// The starts of the buckets of all minutes around a change of the clock, by a walk: the
    /// bucket of a time is that of the latest which the clock has shown so far, or, if the bucket
    /// is no longer than what the clock goes back by, of what it shows since it went back.
    fn walked(zone: &Zone, change: i64, width: i64) -> Vec<(i64, i64)> {
        let shown = |t: i64| t + zone.seconds_east(Timestamp::from_nanos(t)) * 1_000_000_000;
        let repeats = width <= shown(change - MINUTE) + MINUTE - shown(change);
        let (mut latest, mut last, mut out) = (i64::MIN, None, Vec::new());
        for step in -4 * 1_440..3 * 1_440 {
            let time = change + step * MINUTE;
            if repeats && time == change {
                latest = i64::MIN;
                last = None;
            }
            latest = latest.max(shown(time));
            let bucket = latest.div_euclid(width);
            let start = match last {
                Some((known, start)) if known == bucket => start,
                _ => time,
            };
            last = Some((bucket, start));
            out.push((time, start));
        }
        out
    }

    #[test]
    fn buckets_follow_the_changes_of_the_clock() {
        let minutes = [1, 15, 30, 45, 60, 90, 120, 180, 360, 720, 1_440, 2_880];
        for rule in Zone::CHANGING {
            let zone = Zone::posix(rule);
            let mut change = Timestamp::parse("2024-01-01T00:00:00Z").unwrap().as_nanos();
            for _ in 0..2 {
                change = i64::try_from(zone.next_change(change).unwrap()).unwrap();
                for width in minutes.map(|m| m * MINUTE) {
                    let width_of = Decimal::from_int(width.into());
                    let step = Step::Width { width: width_of, anchor: 0 };
                    let bucket = BucketFn::of(step, Decimal::ZERO, zone.clone());
                    let times = walked(&zone, change, width);
                    // The first buckets began before the walk.
                    let settled = |t: &&(i64, i64)| {
                        let minutes = (t.0 - change) / MINUTE;
                        minutes.abs() < 150 || minutes > -1_440 && minutes % 31 == 0
                    };
                    for (time, start) in times.iter().filter(settled) {
                        let (have, end) = bucket.span(*time);
                        let at = Timestamp::from_nanos(*time);
                        assert_eq!(
                            Timestamp::from_nanos(have),
                            Timestamp::from_nanos(*start),
                            "{rule}: {at} in buckets of {} minutes",
                            width / MINUTE,
                        );
                        assert!(end > *time && bucket.span(end - 1).0 == *start, "{rule}: {at}");
                        let next = bucket.next_start(*time).unwrap();
                        assert!(next >= end && bucket.span(next).0 == next, "{rule}: {at}");
                        assert_eq!(bucket.span(next - 1).0, *start, "{rule}: {at}");
                    }
                }
            }
        }
    }

    #[test]
    fn months_and_years_begin_at_local_midnight() {
        let zone = Zone::posix(Zone::CHANGING[1]);
        let at = |text: &str| Timestamp::parse(text).unwrap().as_nanos();
        let month = BucketFn::of(Step::Month, Decimal::ZERO, zone.clone());
        assert_eq!(month.span(at("2024-03-20T00:00:00Z")).0, at("2024-03-01T05:00:00Z"));
        assert_eq!(month.next_start(at("2024-03-20T00:00:00Z")), Some(at("2024-04-01T04:00:00Z")));
        let year = BucketFn::of(Step::Year, Decimal::ZERO, zone);
        assert_eq!(year.span(at("2025-01-01T04:59:59Z")).0, at("2024-01-01T05:00:00Z"));
        for step in [Step::Month, Step::Year] {
            let bucket = BucketFn::of(step, Decimal::ZERO, Zone::UTC);
            assert_eq!(bucket.next_start(i64::MAX), None);
            assert!(bucket.next_start(i64::MIN).is_some());
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(500))]

        #[test]
        fn times_in_64_bits_fall_into_the_same_buckets(
            ns in any::<i64>(), width in 1i128..2 * DAY, offset in -DAY..DAY,
            east in -50_000i64..50_000,
        ) {
            let step = Step::Width { width: Decimal::from_int(width), anchor: 0 };
            let offset = Decimal::from_int(offset);
            let bucket = BucketFn::of(step, offset, Zone::Fixed(east));
            if let Some(start) = bucket.even.and_then(|even| even.start(ns)) {
                prop_assert_eq!(start, bucket.span(ns).0);
            } else {
                prop_assert!(width == 1 || ns.unsigned_abs() > i64::MAX.unsigned_abs() / 2);
            }
        }
    }
}
