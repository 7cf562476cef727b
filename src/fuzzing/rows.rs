//! Rows, parts of rows, and sets of parts that queries see.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::part::plain::{Plain, batch};
use crate::part::{
    PartReader, PartSource, Profile, ReadContext, ReadStats, WriterOptions, write_part,
};
use crate::query::{PartBounds, PartSet};
use crate::{Error, Result};

/// The day of all rows.
pub(super) const DAY: i64 = 20_000;
/// Nanoseconds of a day.
pub(super) const DAY_NS: i64 = 86_400_000_000_000;

/// Rows of a kind of log: few streams, each column of another kind of values.
pub(super) fn rows(kind: u8, count: u32) -> Vec<Plain> {
    let row = |i: u32| {
        let app = ["", "api", "db", "web"][(i as usize * 7 / 5) % 4];
        let labels = if app.is_empty() { vec![] } else { vec![("app".into(), app.into())] };
        let mut fields = BTreeMap::new();
        let mut put = |name: &str, value: String| {
            if !value.is_empty() {
                fields.insert(name.to_owned(), value.into_bytes());
            }
        };
        if kind > 2 {
            // Few columns, for parts of many rows.
            put("n", (i % 300).to_string());
            put("level", ["info", "warn", "error"][(i % 7 % 3) as usize].to_owned());
            let time = DAY * DAY_NS + i64::from(i) * 1_000_000;
            return Plain { labels: Vec::new(), time, fields };
        }
        // The id stands in a column of its own too, in rows of one kind.
        let id = format!("{:032x}", u128::from(i) * 0x9e37_79b9_7f4a_7c15_f39c);
        let of = if kind == 1 { format!(", trace {id}") } else { String::new() };
        put("_msg", format!("request {} took {} ms from 10.0.{}.7{of}", i, i * i % 977, i % 9));
        put("level", ["info", "warn", "error"][(i % 7 % 3) as usize].to_owned());
        put("host", "one of all".to_owned());
        match kind {
            0 => {
                put("n", i.to_string());
                put(
                    "size",
                    if i.is_multiple_of(5) { String::new() } else { format!("{}", i * 1_000) },
                );
                put("dur", format!("{}.{}ms", i % 50, i % 10));
            }
            1 => {
                put("n", if i.is_multiple_of(11) { "007".to_owned() } else { (i % 3).to_string() });
                put("id", id);
                put("ip", format!("192.168.{}.{}", i % 3, i % 251));
                put("rare", if i % 100 == 3 { "seldom".to_owned() } else { String::new() });
            }
            _ => {
                put(&format!("field{}", i % 90), "x".repeat((i % 13) as usize));
                put("at", format!("2024-10-04T00:00:{:02}.{:03}Z", i % 60, i % 1_000));
                put("same", format!("v{i} of a copied column with some bytes"));
                put("same2", format!("v{i} of a copied column with some bytes"));
            }
        }
        Plain { labels, time: DAY * DAY_NS + i64::from(i / 3) * 1_000_000, fields }
    };
    (0..count).map(row).collect()
}

/// A valid part.
pub(super) fn part_bytes(rows: &[Plain], profile: Profile, block_rows: u32) -> Vec<u8> {
    part_from(100, rows, profile, block_rows)
}

/// A valid part whose first row has the sequence `cut_lo`.
pub(super) fn part_from(cut_lo: u64, rows: &[Plain], profile: Profile, block_rows: u32) -> Vec<u8> {
    let cuts = (cut_lo, cut_lo + rows.len() as u64);
    let options = WriterOptions { block_rows, ..WriterOptions::new(cut_lo, DAY, cuts, profile) };
    let mut bytes = Vec::new();
    write_part(&[&batch(rows)], &options, &mut bytes).expect("memory takes every part");
    bytes
}

/// Opens the bytes of a part.
pub(super) fn open(bytes: Vec<u8>) -> Result<PartReader> {
    PartReader::open(PartSource::memory(bytes), None)
}

/// All rows of a part, in its order; at most `max`.
pub(super) fn read_rows(part: &PartReader, max: usize) -> Result<Vec<Plain>> {
    let stats = ReadStats::default();
    let cx = ReadContext::new(&stats);
    let names = part.names(&cx)?.clone();
    let mut cursor = part.rows(&cx);
    let mut out = Vec::new();
    while out.len() < max && cursor.advance()? {
        let mut own = Vec::new();
        cursor.fields(&mut own);
        let constants = cursor.constants().iter().map(|(n, v)| (*n, v.as_slice()));
        let fields = constants.chain(own);
        let fields = fields.map(|(n, v)| (names.name(n).to_owned(), v.to_vec())).collect();
        let labels = cursor.key().labels().to_vec();
        out.push(Plain { labels, time: cursor.time(), fields });
    }
    Ok(out)
}

/// Parts as a query sees them.
#[derive(Debug)]
pub(super) struct Parts(pub(super) Vec<Arc<PartReader>>);

impl PartSet for Parts {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn bounds(&self, i: usize) -> Option<PartBounds> {
        let footer = self.0.get(i)?.footer();
        Some(PartBounds {
            rows: footer.rows,
            min_time: footer.min_time,
            max_time: footer.max_time,
            cut_lo: footer.cut_lo,
        })
    }

    fn reader(&self, i: usize) -> Result<Arc<PartReader>> {
        self.0.get(i).map(Arc::clone).ok_or(Error::Internal { what: "no such part" })
    }
}

/// An error that damaged bytes may give; a panic of a worker or a poisoned page is none.
pub(super) fn is_typed(error: &Error) -> bool {
    !matches!(error, Error::Internal { .. } | Error::Poisoned { .. })
}
