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
                let mut last = None;
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

    /// The bucket of a time; remembers the bounds of the last one, which most rows share.
    fn cached_time(&self, ns: i64, last: &mut Option<(i64, i64)>) -> i64 {
        if let Some((start, end)) = *last
            && (start..end).contains(&ns)
        {
            return start;
        }
        let start = self.time(ns);
        *last = match (&self.step, &self.zone) {
            (Step::Width { width, .. }, Zone::Fixed(_)) => i64::try_from(width.trunc())
                .ok()
                .and_then(|w| start.checked_add(w))
                .map(|end| (start, end)),
            _ => None,
        };
        start
    }

    /// The start of the bucket of a time, held to the range of times.
    pub(crate) fn time(&self, ns: i64) -> i64 {
        self.even.and_then(|even| even.start(ns)).unwrap_or_else(|| self.any_time(ns))
    }

    fn any_time(&self, ns: i64) -> i64 {
        let east = |ns: i64| i128::from(self.zone.seconds_east(Timestamp::from_nanos(ns))) * SECOND;
        let here = east(ns);
        let local = i128::from(ns) + here;
        let offset = self.offset.trunc();
        let civil = |start: fn(Timestamp) -> Timestamp| {
            i128::from(start(Timestamp::from_nanos(clamp(local - offset))).as_nanos()) + offset
        };
        let (start, long) = match self.step {
            Step::Width { width, anchor } => {
                let width = width.trunc().max(1);
                let moved = local - offset - anchor;
                (moved.div_euclid(width) * width + offset + anchor, width >= DAY)
            }
            Step::Network(_) => return ns,
            Step::Month => (civil(month_start), true),
            Step::Year => (civil(year_start), true),
        };
        // Short buckets keep the zone's offset of the time itself, so that an hour that a clock
        // change repeats stays two hours; long ones begin at local midnight.
        clamp(start - if long { east(clamp(start - here)) } else { here })
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
                prop_assert_eq!(start, bucket.any_time(ns));
            } else {
                prop_assert!(width == 1 || ns.unsigned_abs() > i64::MAX.unsigned_abs() / 2);
            }
        }
    }
}
