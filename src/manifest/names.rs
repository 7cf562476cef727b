//! Where files live below the root of a store.

use std::path::{Path, PathBuf};

use crate::io::TEMP_SUFFIX;
use crate::record::{civil_from_days, days_from_civil};

/// The file that the writer of a store holds locked.
pub(crate) const LOCK_FILE: &str = "LOCK";
/// The directory of files that are neither used nor provably needless.
pub(crate) const QUARANTINE_DIR: &str = "quarantine";
/// The end of the name of a part file.
pub(crate) const PART_SUFFIX: &str = ".part";
/// The beginning of the name of a manifest file.
pub(super) const MANIFEST_PREFIX: &str = "MANIFEST-";

/// What a name in the root of a store, or in the directory of a day, stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileKind {
    /// `MANIFEST-<generation>`.
    Manifest(u64),
    /// `<id>.part`.
    Part(u64),
    /// A file that was being written when its writer stopped.
    Temp,
    /// Any other name.
    Other,
}

/// What a file name stands for.
pub(crate) fn classify(name: &str) -> FileKind {
    if name.ends_with(TEMP_SUFFIX) {
        FileKind::Temp
    } else if let Some(generation) = parse_manifest_file(name) {
        FileKind::Manifest(generation)
    } else if let Some(id) = parse_part_file(name) {
        FileKind::Part(id)
    } else {
        FileKind::Other
    }
}

/// The manifest of a generation.
pub(crate) fn manifest_path(root: &Path, generation: u64) -> PathBuf {
    root.join(format!("{MANIFEST_PREFIX}{generation}"))
}

fn parse_manifest_file(name: &str) -> Option<u64> {
    let digits = name.strip_prefix(MANIFEST_PREFIX)?;
    let generation: u64 = digits.parse().ok()?;
    (digits == generation.to_string()).then_some(generation)
}

/// The name of the directory of a UTC day: `YYYYMMDD`. Days of [`Timestamp`]s have four-digit
/// years.
///
/// [`Timestamp`]: crate::record::Timestamp
pub(crate) fn day_dir_name(day: i32) -> String {
    let (year, month, date) = civil_from_days(i64::from(day));
    format!("{year:04}{month:02}{date:02}")
}

/// The directory of a UTC day.
pub(crate) fn day_dir(root: &Path, day: i32) -> PathBuf {
    root.join(day_dir_name(day))
}

/// The day of a directory named `YYYYMMDD`.
pub(crate) fn parse_day_dir(name: &str) -> Option<i32> {
    if name.len() != 8 || !name.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let year: i64 = name.get(..4)?.parse().ok()?;
    let month: i64 = name.get(4..6)?.parse().ok()?;
    let date: i64 = name.get(6..)?.parse().ok()?;
    if !(1..=12).contains(&month) || !(1..=31).contains(&date) {
        return None;
    }
    let day = i32::try_from(days_from_civil(year, month, date)).ok()?;
    // 30 February comes out as another day.
    (day_dir_name(day) == name).then_some(day)
}

/// The file name of a part: its id in 16 hex digits.
pub(crate) fn part_file_name(part_id: u64) -> String {
    format!("{part_id:016x}{PART_SUFFIX}")
}

/// The file of a part.
pub(crate) fn part_path(root: &Path, day: i32, part_id: u64) -> PathBuf {
    day_dir(root, day).join(part_file_name(part_id))
}

/// The id of the part with this file name.
pub(crate) fn parse_part_file(name: &str) -> Option<u64> {
    let hex = name.strip_suffix(PART_SUFFIX)?;
    let id = u64::from_str_radix(hex, 16).ok()?;
    (part_file_name(id) == name).then_some(id)
}

/// The name in the quarantine of a part that cannot be used.
pub(crate) fn quarantine_name(day: i32, part_id: u64) -> String {
    format!("{}-{}", day_dir_name(day), part_file_name(part_id))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Timestamp;

    #[test]
    fn days_have_names() {
        let cases = [(0, "19700101"), (-1, "19691231"), (11_016, "20000229"), (20_454, "20260101")];
        for (day, name) in cases {
            assert_eq!(day_dir_name(day), name);
            assert_eq!(parse_day_dir(name), Some(day));
        }
        for bad in ["", "2026010", "20260230", "20261301", "20260100", "2026o101", "+2026101"] {
            assert_eq!(parse_day_dir(bad), None, "{bad}");
        }
    }

    #[test]
    fn every_day_of_a_timestamp_comes_back_in_order() {
        let mut last = String::new();
        for day in Timestamp::MIN.day()..=Timestamp::MAX.day() {
            let name = day_dir_name(day);
            assert_eq!(parse_day_dir(&name), Some(day));
            assert!(name > last);
            last = name;
        }
    }

    #[test]
    fn file_names_are_exact() {
        assert_eq!(part_file_name(0x1f), "000000000000001f.part");
        assert_eq!(classify("000000000000001f.part"), FileKind::Part(0x1f));
        assert_eq!(classify("000000000000001F.part"), FileKind::Other);
        assert_eq!(classify("1f.part"), FileKind::Other);
        assert_eq!(classify("000000000000001f.part.tmp"), FileKind::Temp);
        assert_eq!(classify("MANIFEST-12"), FileKind::Manifest(12));
        assert_eq!(classify("MANIFEST-012"), FileKind::Other);
        assert_eq!(classify("MANIFEST-+1"), FileKind::Other);
        assert_eq!(classify("MANIFEST-2.tmp"), FileKind::Temp);
        assert_eq!(classify("LOCK"), FileKind::Other);
        let path = part_path(Path::new("/s"), 0, 1);
        assert_eq!(path, Path::new("/s/19700101/0000000000000001.part"));
        assert_eq!(quarantine_name(0, 1), "19700101-0000000000000001.part");
    }
}
