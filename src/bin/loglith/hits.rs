//! `loglith query --hits`: rows over time as bars.

use std::io::{self, Write};
use std::time::Duration;

use loglith::{Hits, HitsSeries, Query, QueryOptions, StatsItem, Store, Timestamp, ast};

use crate::args::{OutputFormat, QueryArgs};
use crate::color::{Paint, Palette};
use crate::exit::{Failure, Outcome};
use crate::output::{Printer, grouped};

/// Bars at most, where the step is chosen here.
const BARS: u64 = 60;
/// Width of the longest bar, in characters.
const BAR_WIDTH: u64 = 50;
/// Series that are drawn.
const SERIES: usize = 10;
/// Eighths of a block, from one to seven.
const EIGHTHS: [&str; 7] =
    ["\u{258f}", "\u{258e}", "\u{258d}", "\u{258c}", "\u{258b}", "\u{258a}", "\u{2589}"];
const FULL: &str = "\u{2588}";

/// Steps that people like, in seconds.
const STEPS: [u64; 18] = [
    1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 21_600, 43_200, 86_400,
    604_800,
];

/// Draws the rows of `query` over time.
pub(crate) fn run(
    store: &Store,
    query: &Query,
    args: &QueryArgs,
    options: &QueryOptions,
    palette: Palette,
    mut out: impl Write,
) -> Outcome {
    let step = match args.step {
        Some(step) => step,
        None => good_step(store, query, options)?,
    };
    let by = args.by.as_deref();
    let hits = store.hits(query, step, by, options)?;
    match args.format {
        Some(format) => print(&hits, by, format, palette, out)?,
        None => {
            draw(&hits, by, palette, &mut out)?;
            out.flush()?;
        }
    }
    if hits.untimed > 0 {
        // Without a standard error there is nowhere to say it.
        let rows = grouped(hits.untimed);
        let _ = writeln!(io::stderr(), "warning: {rows} rows have no _time and are in no bar");
    }
    Ok(())
}

/// Prints a row for each bucket, by time and then by series.
fn print(
    hits: &Hits,
    by: Option<&str>,
    format: OutputFormat,
    palette: Palette,
    out: impl Write,
) -> io::Result<()> {
    let count = if by == Some("hits") { "hitss" } else { "hits" };
    let names = std::iter::once("_time").chain(by).chain([count]);
    let columns = Some(names.map(str::to_owned).collect());
    let mut printer = Printer::new(out, format, palette, columns);
    let buckets = hits.series.first().map_or(0, |series| series.buckets.len());
    for at in 0..buckets {
        for series in &hits.series {
            let Some((start, rows)) = series.buckets.get(at) else { continue };
            let (start, rows) = (start.to_string(), rows.to_string());
            let value = by.map(|by| (by, series.value.as_str()));
            let fields = std::iter::once(("_time", &*start)).chain(value).chain([(count, &*rows)]);
            printer.fields(&fields.collect::<Vec<_>>())?;
        }
    }
    printer.finish()
}

/// The smallest of [`STEPS`] that gives at most [`BARS`] bars.
fn good_step(store: &Store, query: &Query, options: &QueryOptions) -> Result<Duration, Failure> {
    let ends = [StatsItem::min("_time").named("first"), StatsItem::max("_time").named("last")];
    let ends = query.clone().stats(Vec::<String>::new(), ends);
    let row = store.query_with(&ends, options)?.next().transpose()?;
    let at = |name: &str| row.as_ref().and_then(|r| Timestamp::parse(r.get(name)));
    let seconds = match (at("first"), at("last")) {
        (Some(first), Some(last)) => {
            last.as_nanos().saturating_sub(first.as_nanos()).unsigned_abs() / 1_000_000_000
        }
        _ => 0,
    };
    let fits = |step: &&u64| seconds / **step < BARS;
    let longest = 604_800 * (seconds / 604_800 / BARS + 1);
    Ok(Duration::from_secs(STEPS.iter().find(fits).copied().unwrap_or(longest)))
}

fn draw(hits: &Hits, by: Option<&str>, palette: Palette, out: &mut impl Write) -> io::Result<()> {
    let longest = hits.series.iter().flat_map(|s| s.buckets.iter().map(|b| b.1)).max();
    let longest = longest.unwrap_or(0);
    for series in hits.series.iter().take(SERIES) {
        if let Some(by) = by {
            let head = format!("{by}={}", shown(&series.value));
            writeln!(out, "{}  {}", palette.paint(Paint::Head, &head), grouped(series.total))?;
        }
        draw_series(series, longest, palette, out)?;
    }
    let hidden = hits.series.len().saturating_sub(SERIES);
    if hidden > 0 {
        writeln!(out, "and {hidden} more values")?;
    }
    let total: u64 = hits.series.iter().map(|s| s.total).sum();
    writeln!(out, "{} rows, {} s a bar", grouped(total), hits.step.as_secs_f64())
}

fn draw_series(
    series: &HitsSeries,
    longest: u64,
    palette: Palette,
    out: &mut impl Write,
) -> io::Result<()> {
    let counts: Vec<String> = series.buckets.iter().map(|b| grouped(b.1)).collect();
    let width = counts.iter().map(String::len).max().unwrap_or(0);
    let starts: Vec<String> = series.buckets.iter().map(|b| b.0.to_string()).collect();
    let time_width = starts.iter().map(String::len).max().unwrap_or(0);
    for ((start, count), bucket) in starts.iter().zip(&counts).zip(&series.buckets) {
        let bar = palette.paint(Paint::Bar, &bar(bucket.1, longest));
        let line = format!("{start:<time_width$}  {count:>width$}  {bar}");
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

/// A bar of up to [`BAR_WIDTH`] characters; any count but zero can be seen.
fn bar(count: u64, longest: u64) -> String {
    if count == 0 || longest == 0 {
        return String::new();
    }
    let eighths = u128::from(count) * u128::from(BAR_WIDTH) * 8 / u128::from(longest);
    let eighths = usize::try_from(eighths).unwrap_or(0).max(1);
    let mut out = FULL.repeat(eighths / 8);
    if let Some(part) = (eighths % 8).checked_sub(1) {
        out.push_str(EIGHTHS.get(part).copied().unwrap_or(""));
    }
    out
}

fn shown(value: &str) -> String {
    if value.is_empty() { "(none)".to_owned() } else { value.escape_debug().to_string() }
}

/// A step as the language writes durations: `5m`, `1h30m`.
pub(crate) fn step(text: &str) -> Result<Duration, String> {
    let why = || format!("{text} is not a duration such as 30s, 5m or 1h30m");
    let query: Query = format!("options(time_offset={text}) *").parse().map_err(|_| why())?;
    let ast::QueryOptions { time_offset: Some(offset), .. } = query.options else {
        return Err(why());
    };
    match u64::try_from(offset.nanos) {
        Ok(nanos) if nanos > 0 => Ok(Duration::from_nanos(nanos)),
        _ => Err(why()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_as_long_as_their_counts() {
        assert_eq!(bar(0, 10), "");
        assert_eq!(bar(10, 10), FULL.repeat(50));
        assert_eq!(bar(1, 1_000_000), EIGHTHS[0]);
        assert_eq!(bar(1, 100), format!("{}", EIGHTHS[3]));
        assert_eq!(bar(u64::MAX, u64::MAX).chars().count(), 50);
    }

    #[test]
    fn steps_are_durations() {
        assert_eq!(step("1h30m"), Ok(Duration::from_secs(5_400)));
        for text in ["", "0s", "-1h", "5", "1h) *", "x"] {
            assert!(step(text).is_err(), "{text}");
        }
    }
}
