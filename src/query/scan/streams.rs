//! Which streams of a part a query selects.



use crate::codec::Bitmap;
use crate::error::{Malformed, Result};
use crate::index::stream_table::StreamChunk;
use crate::part::{PartReader, ReadContext};
use crate::query::ast::{LabelFilter, StreamSelector};
use crate::query::filter::matches_label;

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
