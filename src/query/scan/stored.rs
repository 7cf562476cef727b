//! Values of some stored rows, found by their places.

use super::PartSet;
use super::block::BlockScan;
use super::strip::StripSource;
use crate::codec::{STRIP_ROWS, Strip};
use crate::error::Result;
use crate::part::{PartReader, ReadContext};
use crate::query::column::Column;
use crate::query::counters::ScanCounters;
use crate::query::position::RowPos;
use crate::record::TextVec;

/// The values of a field in rows that the scan has given out, in the order of `rows`; empty where
/// they cannot be read and the query skips damage. Each strip is read once.
pub(crate) fn values_at(
    parts: &dyn PartSet,
    counters: &ScanCounters,
    field: &str,
    rows: &[RowPos],
) -> Result<TextVec> {
    let cx = parts.read_context(&counters.reads);
    let mut order: Vec<usize> = (0..rows.len()).collect();
    order.sort_by_key(|i| rows.get(*i).map(|row| (row.part, row.order)));
    let mut values = vec![Vec::new(); rows.len()];
    let at = |i: usize| rows.get(i).copied().unwrap_or_default();
    for of_part in order.chunk_by(|a, b| at(*a).part == at(*b).part) {
        let Some(part) = of_part.first().map(|i| at(*i).part as usize) else { continue };
        let cut_lo = parts.bounds(part).map_or(0, |bounds| bounds.cut_lo);
        let numbers: Vec<u64> =
            of_part.iter().map(|i| at(*i).order.saturating_sub(cut_lo)).collect();
        let mut done = 0;
        while let Some(left) = numbers.get(done..).filter(|left| !left.is_empty()) {
            let found =
                parts.reader(part).and_then(|reader| of_one_strip(&reader, &cx, field, left));
            let (found, count) = found.or_else(|e| {
                counters.damage.skip(e, None)?;
                Ok::<_, crate::Error>((TextVec::new(), 1))
            })?;
            for (i, value) in of_part.iter().skip(done).zip(found.iter()) {
                if let Some(slot) = values.get_mut(*i) {
                    *slot = value.to_vec();
                }
            }
            done += count.max(1);
        }
    }
    Ok(values.iter().map(Vec::as_slice).collect())
}

/// The values in those of the rows, which ascend, that stand in the strip of the first one; and
/// how many rows these are.
fn of_one_strip(
    part: &PartReader,
    cx: &ReadContext<'_>,
    field: &str,
    rows: &[u64],
) -> Result<(TextVec, usize)> {
    let nothing = Ok((TextVec::new(), 1));
    let Some(first) = rows.first() else { return nothing };
    let entry = part.metaindex(cx)?.partition_point(|entry| entry.first_row <= *first);
    let Some(entry) = entry.checked_sub(1) else { return nothing };
    let index = part.index_block(cx, entry)?;
    let block = index.heads().take_while(|head| head.first_row <= *first).count();
    let Some(block) = block.checked_sub(1) else { return nothing };
    let block = BlockScan::new(part.block(cx, &index, block)?, cx);
    let (first_row, end) = (block.reader().head_of_block().first_row, block.reader().rows() as u64);
    let in_block = |row: &u64| row.checked_sub(first_row).filter(|row| *row < end);
    let rows_per_strip = STRIP_ROWS as u64;
    let Some(strip) = in_block(first).map(|row| row / rows_per_strip) else { return nothing };
    let in_strip = rows.iter().map_while(|row| {
        let row = in_block(row).filter(|row| row / rows_per_strip == strip)?;
        u32::try_from(row % rows_per_strip).ok()
    });
    let in_strip: Vec<u32> = in_strip.collect();
    let source = StripSource::new(&block, usize::try_from(strip).unwrap_or(usize::MAX));
    let column = source.gather(field, &in_strip)?;
    Ok((column.to_text(in_strip.len()), in_strip.len()))
}

/// The given rows of a strip that keeps its form.
pub(super) fn gather_typed(strip: &Strip, rows: &[u32]) -> Option<Column> {
    match strip {
        Strip::Codes { codes, dictionary } => {
            let code = |row: &u32| codes.get(*row as usize).copied().unwrap_or(u32::MAX);
            let codes = rows.iter().map(code).collect();
            Some(Column::codes(codes, dictionary.clone()))
        }
        Strip::Ints { values, absent: None, exceptions } if exceptions.is_empty() => {
            let value = |row: &u32| values.get(*row as usize).copied().unwrap_or(0);
            Some(Column::ints(rows.iter().map(value).collect()))
        }
        _ => None,
    }
}
