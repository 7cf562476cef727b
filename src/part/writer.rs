//! Writes the rows of batches as a part.

use super::builder::PartBuilder;
use super::constants::ConstantFinder;
use super::layout::count32;
use super::names::Names;
use super::order::order;
use super::sink::ByteSink;
use crate::Result;
use crate::record::RowBatch;

/// How much work a part is worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Profile {
    /// A part that a query makes of the buffer: nothing is compressed, no filters.
    Buffer,
    /// A part of recent rows, in memory or on disk: to be merged soon.
    Flush,
    /// A part that stays.
    Merge,
}

impl Profile {
    /// The usual level of zstd; 0 stores raw bytes.
    pub(crate) fn zstd_level(self) -> i32 {
        match self {
            Profile::Buffer => 0,
            Profile::Flush => 1,
            Profile::Merge => 3,
        }
    }
}

/// What a part is, and how it is written.
#[derive(Debug, Clone)]
pub(crate) struct WriterOptions {
    /// The store's id.
    pub(crate) store_id: u128,
    /// The part's id.
    pub(crate) part_id: u64,
    /// UTC day of the rows, in days since the epoch.
    pub(crate) day: i64,
    /// How many merges stand behind the rows; 0 for a flush.
    pub(crate) level: u8,
    /// First and last sequence of the part's cut.
    pub(crate) cuts: (u64, u64),
    /// Ids of the parts that this one replaces.
    pub(crate) inputs: Vec<u64>,
    /// Deletes up to this number have been applied to the rows.
    pub(crate) deletes_applied: u64,
    /// How much work it is worth.
    pub(crate) profile: Profile,
    /// The level of zstd; 0 stores raw bytes.
    pub(crate) zstd_level: i32,
    /// The most rows of a block; at most 65,536.
    pub(crate) block_rows: u32,
    /// The most bytes of the largest column of a block of more than one row; at most 1.25 MiB.
    pub(crate) block_bytes: usize,
}

impl WriterOptions {
    /// A part of level 0 with blocks of the usual size that replaces none.
    pub(crate) fn new(part_id: u64, day: i64, cuts: (u64, u64), profile: Profile) -> WriterOptions {
        WriterOptions {
            store_id: 0,
            part_id,
            day,
            level: 0,
            cuts,
            inputs: Vec::new(),
            deletes_applied: 0,
            profile,
            zstd_level: profile.zstd_level(),
            block_rows: super::block_builder::FULL.rows,
            block_bytes: super::block_builder::FULL.bytes,
        }
    }
}

/// What the manifest lists of a part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PartSummary {
    /// The part's id.
    pub(crate) part_id: u64,
    /// UTC day of the rows, in days since the epoch.
    pub(crate) day: i64,
    /// How many merges stand behind the rows.
    pub(crate) level: u8,
    /// First and last sequence of the part's cut.
    pub(crate) cuts: (u64, u64),
    /// The number of rows.
    pub(crate) rows: u64,
    /// The number of blocks.
    pub(crate) blocks: u32,
    /// The number of streams.
    pub(crate) streams: u32,
    /// The earliest row; 0 without rows.
    pub(crate) min_time: i64,
    /// The latest row; 0 without rows.
    pub(crate) max_time: i64,
    /// The length of the file.
    pub(crate) len: u64,
    /// The checksum in the footer.
    pub(crate) footer_checksum: u64,
}

/// Writes the rows of day `options.day` in `batches`, which come in append order; rows of other
/// days are left out. The same bytes for every sink.
///
/// Linear in the size of the rows, but for sorting streams by their texts and those rows that do
/// not come in the order of their times.
///
/// # Errors
/// Those of the sink.
pub(crate) fn write_part(
    batches: &[&RowBatch],
    options: &WriterOptions,
    sink: &mut dyn ByteSink,
) -> Result<PartSummary> {
    let order = order(batches, options.day);
    let (names, maps) = names(batches);
    let mut finder = ConstantFinder::new(names.len());
    let mut builder = PartBuilder::new(options, names, sink)?;
    // The fields of a row of batch `b`, under the part's numbers of their names.
    let number = |b: usize, name: u32| {
        maps.get(b).and_then(|map| map.get(name as usize)).copied().unwrap_or(u32::MAX)
    };
    let mut fields: Vec<(u32, &[u8])> = Vec::new();
    for stream in &order.streams {
        let rows = order.rows.get(stream.rows.clone()).unwrap_or(&[]);
        finder.begin();
        for row in rows {
            if let Some((b, view)) = row.view(batches) {
                finder.row(view.fields().map(|(name, value)| (number(b, name), value)));
            }
        }
        let (constants, size) = finder.end();
        builder.begin_stream(stream.key, constants.iter().copied(), size)?;
        for row in rows {
            if let Some((b, view)) = row.view(batches) {
                let all = view.fields().map(|(name, value)| (number(b, name), value));
                fields.clear();
                fields.extend(all.filter(|(name, _)| !finder.is_constant(*name)));
                builder.row(row.time, &fields)?;
            }
        }
    }
    builder.finish()
}

/// The names of all fields and labels, and for each batch the numbers of its names.
fn names(batches: &[&RowBatch]) -> (Names, Vec<Vec<u32>>) {
    let mut all: Vec<&str> = Vec::new();
    for batch in batches {
        all.extend(batch.names().iter().map(String::as_str));
        for key in batch.streams() {
            all.extend(key.labels().iter().map(|(name, _)| name.as_str()));
        }
        all.sort_unstable();
        all.dedup();
    }
    let number = |name: &String| count32(all.binary_search(&name.as_str()).unwrap_or(0));
    let maps = batches.iter().map(|b| b.names().iter().map(number).collect()).collect();
    (Names::new(all), maps)
}
