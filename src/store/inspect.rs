//! Where the bytes go.

use std::collections::BTreeMap;
use std::fmt;

use crate::error::{Error, Result};
use crate::manifest::day_dir_name;
use crate::part::{self, ReadContext, ReadStats, inspect_part};
use crate::partition::PartHandle;

use super::core::Core;
use super::damage::KnownDamage;

/// Bytes and counts of one column in one encoding.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ColumnBytes {
    /// Blocks that hold it this way.
    pub blocks: u64,
    /// Rows with a value.
    pub rows: u64,
    /// Bytes of page heads without strip tables: dictionaries, templates, shapes.
    pub heads: u64,
    /// Bytes of strip tables: lengths and checksums of strips.
    pub tables: u64,
    /// Bytes of strips.
    pub strips: u64,
    /// Bytes of filters.
    pub filters: u64,
    /// Bytes of block headers, and short page heads in them, before index blocks are packed.
    pub headers: u64,
}

/// Where the bytes of one part, or of several, are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PartInspection {
    /// By column name and encoding; `_time` is the time pages.
    pub columns: BTreeMap<(String, String), ColumnBytes>,
    /// Bytes of runs pages: which rows of a block belong to which stream.
    pub runs: u64,
    /// Bytes of sparse pages: columns that few rows have.
    pub sparse: u64,
    /// Bytes of index blocks: the headers of blocks.
    pub index: u64,
    /// Bytes of the stream table: labels and what is constant in a stream.
    pub streams: u64,
    /// Bytes of names, directory, header and footer.
    pub tail: u64,
    /// Bytes in all.
    pub total: u64,
    /// Rows.
    pub rows: u64,
    /// Blocks.
    pub blocks: u64,
}

/// One day of a store.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DayInfo {
    /// The UTC day as `YYYYMMDD`.
    pub day: String,
    /// Its parts: id, level, rows and bytes.
    pub parts: Vec<(u64, u8, u64, u64)>,
    /// Streams in its parts; a stream counts once for each part it is in.
    pub streams: u64,
}

/// Where the bytes of a store are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Inspection {
    /// The days, ascending.
    pub days: Vec<DayInfo>,
    /// All parts together, those that cannot be read left out.
    pub parts: PartInspection,
    /// Damage that is known, and parts whose indexes cannot be read.
    pub damage: Vec<KnownDamage>,
}

impl Core {
    pub(crate) fn inspect(&self) -> Result<Inspection> {
        let snapshot = self.snapshot()?;
        let mut out = Inspection { damage: self.known_damage(&snapshot), ..Inspection::default() };
        for part in snapshot.parts() {
            let info = part.info();
            let day = day_dir_name(info.day);
            if out.days.last().is_none_or(|d| d.day != day) {
                out.days.push(DayInfo { day, ..DayInfo::default() });
            }
            let streams = part.reader().map_or(0, |r| u64::from(r.footer().streams));
            if let Some(last) = out.days.last_mut() {
                last.parts.push((info.part_id, info.level, info.rows, info.length));
                last.streams += streams;
            }
            match inspect(part) {
                Ok(found) => out.parts.add(&found),
                Err(Error::Corrupted(place)) => out.damage.push(KnownDamage {
                    place,
                    rows: info.rows,
                    min_time: info.min_time,
                    max_time: info.max_time,
                    lost: false,
                }),
                Err(e) => return Err(e),
            }
        }
        Ok(out)
    }

    pub(crate) fn inspect_part(&self, part_id: u64) -> Result<Option<PartInspection>> {
        let snapshot = self.snapshot()?;
        let part = snapshot.parts().iter().find(|p| p.info().part_id == part_id);
        part.map(|p| inspect(p)).transpose()
    }
}

fn inspect(part: &PartHandle) -> Result<PartInspection> {
    let stats = ReadStats::default();
    let found = inspect_part(part.reader()?.as_ref(), &ReadContext::new(&stats))?;
    let column = |c: &part::ColumnBytes| ColumnBytes {
        blocks: c.blocks,
        rows: c.rows,
        heads: c.heads,
        tables: c.tables,
        strips: c.strips,
        filters: c.filters,
        headers: c.headers,
    };
    Ok(PartInspection {
        columns: found.columns.iter().map(|(k, c)| (k.clone(), column(c))).collect(),
        runs: found.runs,
        sparse: found.sparse,
        index: found.index,
        streams: found.streams,
        tail: found.tail,
        total: found.total,
        rows: found.rows,
        blocks: found.blocks,
    })
}

impl PartInspection {
    fn add(&mut self, other: &PartInspection) {
        for (key, c) in &other.columns {
            let sum = self.columns.entry(key.clone()).or_default();
            sum.blocks += c.blocks;
            sum.rows += c.rows;
            sum.heads += c.heads;
            sum.tables += c.tables;
            sum.strips += c.strips;
            sum.filters += c.filters;
            sum.headers += c.headers;
        }
        self.runs += other.runs;
        self.sparse += other.sparse;
        self.index += other.index;
        self.streams += other.streams;
        self.tail += other.tail;
        self.total += other.total;
        self.rows += other.rows;
        self.blocks += other.blocks;
    }

    /// Bytes of all filters.
    pub fn filters(&self) -> u64 {
        self.columns.values().map(|c| c.filters).sum()
    }
}

impl fmt::Display for PartInspection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:<32} {:<10} {:>7} {:>9} {:>10} {:>8} {:>10} {:>9} {:>8}",
            "column",
            "encoding",
            "blocks",
            "rows",
            "heads",
            "tables",
            "strips",
            "filters",
            "headers"
        )?;
        let mut columns: Vec<_> = self.columns.iter().collect();
        columns.sort_by_key(|(_, c)| std::cmp::Reverse(c.heads + c.tables + c.strips + c.filters));
        for ((name, encoding), c) in columns {
            writeln!(
                f,
                "{name:<32} {encoding:<10} {:>7} {:>9} {:>10} {:>8} {:>10} {:>9} {:>8}",
                c.blocks, c.rows, c.heads, c.tables, c.strips, c.filters, c.headers
            )?;
        }
        let pieces = [
            ("runs pages", self.runs),
            ("sparse pages", self.sparse),
            ("index blocks", self.index),
            ("stream table", self.streams),
            ("names, directory, footer", self.tail),
            ("filters, counted above", self.filters()),
        ];
        for (piece, bytes) in pieces {
            writeln!(f, "{piece:<32} {bytes:>12}")?;
        }
        write!(f, "{} bytes, {} rows, {} blocks", self.total, self.rows, self.blocks)
    }
}

impl fmt::Display for Inspection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for day in &self.days {
            let (rows, bytes) =
                day.parts.iter().fold((0, 0), |(r, b), (_, _, rows, len)| (r + rows, b + len));
            let (parts, streams) = (day.parts.len(), day.streams);
            writeln!(
                f,
                "day {}: {parts} parts, {rows} rows, {bytes} bytes, {streams} streams",
                day.day
            )?;
            for (id, level, rows, len) in &day.parts {
                writeln!(f, "  part {id:016x}: level {level}, {rows} rows, {len} bytes")?;
            }
        }
        for damage in &self.damage {
            writeln!(f, "damage: {damage}")?;
        }
        self.parts.fmt(f)
    }
}
