//! Which streams of a part a query selects.

use super::block::BlockScan;
use super::frontier::{OpenPart, index_unit};
use super::scanner::{ScanOutput, StripScan};
use super::strip::StripSource;
use super::{PartBounds, PartSet};
use crate::codec::{Bitmap, STRIP_ROWS};
use crate::error::{Malformed, Result};
use crate::index::StreamChunk;
use crate::part::{PartReader, ReadContext};
use crate::query::ast::{LabelFilter, StreamSelector, TIME_FIELD};
use crate::query::batch::Batch;
use crate::query::column::Column;
use crate::query::context::{ExecContext, Flow, Reservation, TimeRange};
use crate::query::counters::ScanCounters;
use crate::query::filter::{ColumnSource, matches_label};
use crate::query::position::RowPos;
use crate::query::sorting::sort_checked;

/// The ordinals of the selected streams of a part.
#[derive(Debug)]
pub(crate) struct StreamSet {
    selected: Bitmap,
}

impl StreamSet {
    /// The streams of a part that pass all selectors.
    ///
    /// Each label filter is judged once per distinct value of a chunk of the stream table.
    pub(crate) fn select(
        part: &PartReader,
        cx: &ReadContext<'_>,
        selectors: &[StreamSelector],
    ) -> Result<StreamSet> {
        let mut selected = Bitmap::empty(part.footer().streams as usize);
        for (i, at) in part.chunks(cx)?.to_vec().into_iter().enumerate() {
            let chunk = part.chunk(cx, i)?;
            let passed = select_in(&chunk, selectors);
            let passed = passed.map_err(|e| e.at(part.source().path(), at.at.offset))?;
            for stream in passed.iter() {
                selected.set(at.first as usize + stream);
            }
        }
        Ok(StreamSet { selected })
    }

    /// Whether no stream is selected.
    pub(crate) fn is_empty(&self) -> bool {
        !self.selected.any()
    }

    /// Whether a stream is selected.
    pub(crate) fn contains(&self, ordinal: u32) -> bool {
        self.selected.get(ordinal as usize)
    }

    /// The number of selected streams of `count` from `first` on.
    pub(crate) fn count(&self, first: u32, count: u32) -> usize {
        let first = first as usize;
        self.selected.count_range(first..first + count as usize)
    }
}

fn select_in(
    chunk: &StreamChunk,
    selectors: &[StreamSelector],
) -> std::result::Result<Bitmap, Malformed> {
    let mut all = Bitmap::full(chunk.len());
    for selector in selectors {
        let mut any = Bitmap::empty(chunk.len());
        for alternative in &selector.alternatives {
            let mut passed = all.clone();
            for filter in alternative {
                retain(chunk, filter, &mut passed)?;
            }
            any.or(&passed);
        }
        all = any;
    }
    Ok(all)
}

fn retain(
    chunk: &StreamChunk,
    filter: &LabelFilter,
    streams: &mut Bitmap,
) -> std::result::Result<(), Malformed> {
    let absent = matches_label(filter, b"");
    match chunk.label(&filter.label)? {
        None if absent => {}
        None => streams.clear_all(),
        Some(column) => {
            let answers: Vec<bool> =
                column.values.iter().map(|v| matches_label(filter, v)).collect();
            streams.retain(|i| {
                let code = column.codes.get(i).copied().unwrap_or(0) as usize;
                match code.checked_sub(1) {
                    None => absent,
                    Some(value) => answers.get(value).copied().unwrap_or(false),
                }
            });
        }
    }
    Ok(())
}

/// Rows of a stream, as far as they are read.
struct StreamRows<'q> {
    ctx: &'q ExecContext<'q>,
    range: TimeRange,
    output: &'q ScanOutput,
    rows: Vec<Batch>,
    memory: Reservation,
    bytes: usize,
}

impl StreamRows<'_> {
    fn push(&mut self, rows: Batch) -> Result<()> {
        self.bytes += rows.heap_bytes();
        // They are there twice while they become one batch.
        self.memory.resize(2 * self.bytes)?;
        self.rows.push(rows);
        Ok(())
    }

    /// All of them in one batch, and the memory that it takes.
    fn joined(mut self) -> Result<(Batch, Reservation)> {
        let all = Batch::concat(&self.rows);
        self.memory.resize(all.heap_bytes())?;
        Ok((all, self.memory))
    }
}

/// Hands out the rows of the stream of `hit` with times in `range`, in canonical order.
///
/// # Errors
/// Those of reading, of [`ExecContext::check`], and [`Error::MemoryLimit`](crate::Error) if the
/// rows do not fit in the query's memory.
pub(crate) fn visit_stream(
    parts: &dyn PartSet,
    counters: &ScanCounters,
    ctx: &ExecContext<'_>,
    hit: RowPos,
    range: TimeRange,
    output: &ScanOutput,
    visit: &mut dyn FnMut(Batch) -> Result<Flow>,
) -> Result<()> {
    let cx = parts.read_context(&counters.reads);
    let text = parts.reader(hit.part as usize).and_then(|r| r.stream_text(&cx, hit.stream));
    let text = match text {
        Ok(text) => text,
        Err(e) => return counters.damage.skip(e, None),
    };
    let mut found = StreamRows {
        ctx,
        range,
        output,
        rows: Vec::new(),
        memory: ctx.reservation("stream_context"),
        bytes: 0,
    };
    for i in 0..parts.len() {
        let overlaps = |b: &PartBounds| range.overlaps(b.min_time, b.max_time);
        let Some(bounds) = parts.bounds(i).filter(overlaps) else { continue };
        let number = u32::try_from(i).unwrap_or(u32::MAX);
        let mut read = || -> Result<()> {
            let reader = parts.reader(i)?;
            let Some(ordinal) = find_stream(&reader, &cx, &text)? else { return Ok(()) };
            let part = OpenPart { number, reader, bounds, streams: None };
            rows_of_stream(&part, counters, &cx, ordinal, &mut found)
        };
        if let Err(e) = read() {
            counters.damage.skip(e, Some((number, 0, bounds.rows)))?;
        }
    }
    // Rows of one stream: time, then append order.
    let (all, _memory) = found.joined()?;
    let positions = all.positions().unwrap_or(&[]);
    let mut rows: Vec<u32> = (0..u32::try_from(all.rows()).unwrap_or(u32::MAX)).collect();
    let place = |row: u32| positions.get(row as usize).map(|p| (p.time, p.order));
    sort_checked(&mut rows, ctx, |a, b| place(*a).cmp(&place(*b)))?;
    for chunk in rows.chunks(STRIP_ROWS) {
        if visit(all.gather(chunk))? == Flow::Stop {
            break;
        }
    }
    Ok(())
}

/// The ordinal of a stream in a part; streams are in the order of their texts.
fn find_stream(part: &PartReader, cx: &ReadContext<'_>, text: &[u8]) -> Result<Option<u32>> {
    let (mut low, mut high) = (0, part.footer().streams);
    while low < high {
        let middle = low.midpoint(high);
        match part.stream_text(cx, middle)?.as_slice().cmp(text) {
            std::cmp::Ordering::Equal => return Ok(Some(middle)),
            std::cmp::Ordering::Less => low = middle + 1,
            std::cmp::Ordering::Greater => high = middle,
        }
    }
    Ok(None)
}

/// Adds the rows of a stream in a part to `out`; skips damaged units if the query does.
fn rows_of_stream(
    part: &OpenPart,
    counters: &ScanCounters,
    cx: &ReadContext<'_>,
    ordinal: u32,
    out: &mut StreamRows<'_>,
) -> Result<()> {
    let range = out.range;
    let holds = |first: u32, count: u32, times: (i64, i64)| {
        first <= ordinal && ordinal - first < count && range.overlaps(times.0, times.1)
    };
    for (entry, meta) in part.reader.metaindex(cx)?.iter().enumerate() {
        if !holds(meta.first_stream, meta.streams, (meta.min_time, meta.max_time)) {
            continue;
        }
        let index = match part.reader.index_block(cx, entry) {
            Ok(index) => index,
            Err(e) => {
                counters.damage.skip(e, index_unit(part, entry, cx))?;
                continue;
            }
        };
        for (i, head) in index.heads().enumerate() {
            if !holds(head.first_stream, head.streams, (head.min_time, head.max_time)) {
                continue;
            }
            let unit = (part.number, head.first_row, u64::from(head.rows));
            let read = part.reader.block(cx, &index, i).and_then(|block| {
                let block = BlockScan::new(block, cx);
                let wanted = (ordinal - head.first_stream) as usize;
                rows_of_run(part, counters, &block, wanted, out)
            });
            read.or_else(|e| counters.damage.skip(e, Some(unit)))?;
        }
    }
    Ok(())
}

/// The rows of one run of a block, strip by strip.
fn rows_of_run(
    part: &OpenPart,
    counters: &ScanCounters,
    block: &BlockScan<'_>,
    wanted: usize,
    out: &mut StreamRows<'_>,
) -> Result<()> {
    for strip in 0..block.reader().strips() {
        out.ctx.check()?;
        let source = StripSource::new(block, strip);
        let scan = StripScan::new(block, &source, strip, part);
        let mut read = || -> Result<()> {
            let run = source.runs()?.iter().find(|(run, _)| *run == wanted);
            let Some((_, rows)) = run else { return Ok(()) };
            let mut selection = Bitmap::empty(source.rows());
            selection.set_range(rows.clone());
            let times = source.shared(TIME_FIELD)?;
            if let Column::Times(times) = &*times {
                selection.retain(|row| times.get(row).is_some_and(|t| out.range.contains(*t)));
            }
            if selection.any() {
                out.push(scan.batch(out.output, &selection)?)?;
            }
            Ok(())
        };
        read().or_else(|e| counters.damage.skip(e, Some(scan.unit())))?;
    }
    Ok(())
}
