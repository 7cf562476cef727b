//! `histogram`: hits in logarithmic buckets, 18 a decade.

use std::collections::BTreeMap;

use super::input::Input;
use super::{StatsState, mapped, same_state, slot};
use crate::error::Result;
use crate::query::column::Column;
use crate::query::context::ExecContext;
use crate::record::parse_number;

/// Buckets of a decade.
const PER_DECADE: i32 = 18;
/// The smallest and the largest decade.
const DECADES: (i32, i32) = (-9, 18);
/// The bucket of values up to the smallest decade.
const LOWER: i32 = i32::MIN;
/// The bucket of values above the largest decade.
const UPPER: i32 = i32::MAX;

/// Hits per bucket.
#[derive(Debug, Clone)]
pub(crate) struct HistogramState {
    field: String,
    hits: Vec<BTreeMap<i32, u64>>,
}

impl HistogramState {
    /// `histogram(f)`.
    pub(crate) fn new(field: &str) -> HistogramState {
        HistogramState { field: field.to_owned(), hits: Vec::new() }
    }
}

/// The bucket of a value; `None` for negative ones and NaN.
fn bucket_of(value: f64) -> Option<i32> {
    if value.is_nan() || value < 0.0 {
        return None;
    }
    let (low, high) = DECADES;
    if value <= 1e-9 {
        return Some(LOWER);
    }
    if value > 1e18 {
        return Some(UPPER);
    }
    let guess = (value.log10() - f64::from(low)) * f64::from(PER_DECADE);
    // In range by the comparisons above.
    #[expect(clippy::cast_possible_truncation, reason = "below 18 * 27")]
    let mut bucket = guess.floor() as i32;
    // Buckets are open below and closed above; logarithms may miss the border by a bit.
    while bucket > 0 && value <= border(bucket) {
        bucket -= 1;
    }
    while value > border(bucket + 1) {
        bucket += 1;
    }
    Some(bucket.min((high - low) * PER_DECADE - 1))
}

/// The lower end of a bucket.
fn border(bucket: i32) -> f64 {
    let (decade, step) = (bucket.div_euclid(PER_DECADE), bucket.rem_euclid(PER_DECADE));
    let power = format!("1e{}", decade + DECADES.0).parse::<f64>().unwrap_or(0.0);
    if step == 0 { power } else { power * 10f64.powf(f64::from(step) / f64::from(PER_DECADE)) }
}

/// Three digits after the point and an exponent of at least two digits.
fn push_float(out: &mut Vec<u8>, value: f64) {
    let text = format!("{value:.3e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let sign = if exponent < 0 { '-' } else { '+' };
    out.extend_from_slice(format!("{mantissa}e{sign}{:02}", exponent.abs()).as_bytes());
}

fn push_range(out: &mut Vec<u8>, bucket: i32) {
    let (low, high) = DECADES;
    match bucket {
        LOWER => {
            out.extend_from_slice(b"0...");
            push_float(out, border(0));
        }
        UPPER => {
            push_float(out, border((high - low) * PER_DECADE));
            out.extend_from_slice(b"...+Inf");
        }
        bucket => {
            push_float(out, border(bucket));
            out.extend_from_slice(b"...");
            push_float(out, border(bucket + 1));
        }
    }
}

impl StatsState for HistogramState {
    fn update(&mut self, _ctx: &ExecContext<'_>, input: &Input<'_>) -> Result<()> {
        let Some(column) = input.column(&self.field) else { return Ok(()) };
        let hits = &mut self.hits;
        let mut hit = |group: u32, bucket: Option<i32>| {
            if let Some(bucket) = bucket {
                *slot(hits, group).entry(bucket).or_default() += 1;
            }
        };
        match column {
            Column::Codes { codes, dictionary } => {
                let buckets: Vec<Option<i32>> =
                    dictionary.iter().map(|v| parse_number(v).and_then(bucket_of)).collect();
                input.for_each(|row, group| {
                    let code = codes.get(row).map_or(usize::MAX, |c| *c as usize);
                    hit(group, buckets.get(code).copied().flatten());
                });
            }
            Column::Const(value) => {
                let bucket = parse_number(value).and_then(bucket_of);
                input.for_each(|_, group| hit(group, bucket));
            }
            _ => {
                let mut scratch = Vec::new();
                input.for_each(|row, group| {
                    let number = parse_number(column.value(row, &mut scratch));
                    hit(group, number.and_then(bucket_of));
                });
            }
        }
        Ok(())
    }

    fn fork(&self) -> Box<dyn StatsState> {
        Box::new(HistogramState::new(&self.field))
    }

    fn absorb(
        &mut self,
        _ctx: &ExecContext<'_>,
        other: Box<dyn StatsState>,
        map: &[u32],
    ) -> Result<()> {
        if let Some(other) = same_state::<HistogramState>(other) {
            for (group, hits) in other.hits.iter().enumerate() {
                let mine = slot(&mut self.hits, mapped(map, group));
                for (bucket, n) in hits {
                    *mine.entry(*bucket).or_default() += n;
                }
            }
        }
        Ok(())
    }

    fn answer(&mut self, _ctx: &ExecContext<'_>, group: u32, out: &mut Vec<u8>) {
        out.push(b'[');
        for (i, (bucket, hits)) in slot(&mut self.hits, group).iter().enumerate() {
            if i > 0 {
                out.push(b',');
            }
            out.extend_from_slice(b"{\"vmrange\":\"");
            push_range(out, *bucket);
            out.extend_from_slice(format!("\",\"hits\":{hits}}}").as_bytes());
        }
        out.push(b']');
    }

    fn heap_bytes(&self) -> usize {
        let entries: usize = self.hits.iter().map(BTreeMap::len).sum();
        self.hits.capacity() * 24 + entries * 32
    }
}
