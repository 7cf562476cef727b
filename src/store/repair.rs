//! Bringing a damaged store back to where every query works.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::{Corruption, Error, Result};
use crate::io::{FileWriter, is_not_found};
use crate::manifest::{
    Change, DamageMark, Edit, LOCK_FILE, PartEntry, QUARANTINE_DIR, part_path, quarantine_name,
    set_aside,
};
use crate::merge::salvage_part;
use crate::options::{Durability, Options};
use crate::part::{
    FileSink, PartReader, Profile, ReadContext, ReadStats, SkippedRows, SkippedUnit, WriterOptions,
    verify_part,
};
use crate::partition::{PartHandle, part_entry};
use crate::record::Timestamp;

use super::core::Core;
use super::damage::KnownDamage;
use super::open::open_locked;
use super::rebuild;

/// A damaged part whose sound rows are in a new part.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SalvagedPart {
    /// The damaged file; it is in `quarantine` now.
    pub path: PathBuf,
    /// Rows in the new part.
    pub rows_kept: u64,
    /// Rows that could not be read.
    pub rows_lost: u64,
}

/// What a repair found and did. Printing it gives one sentence for each finding.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RepairReport {
    /// Whether the manifest could not be used and was made anew from the parts.
    pub manifest_rebuilt: bool,
    /// Parts that the new manifest lists.
    pub parts_listed: u64,
    /// What opening the store found and mended.
    pub opening: Vec<String>,
    /// Parts that were checked.
    pub parts_checked: u64,
    /// Damaged parts whose sound rows were saved.
    pub salvaged: Vec<SalvagedPart>,
    /// Files in `quarantine` now, and why; nothing is deleted that may hold rows.
    pub set_aside: Vec<(PathBuf, String)>,
    /// Rows of parts that are lost whole, as the manifest counted them.
    pub rows_of_lost_parts: u64,
    /// Losses that were accepted: queries do not fail because of them any more.
    pub accepted: Vec<KnownDamage>,
    /// Losses that were not: queries over their times fail until they are.
    pub remaining: Vec<KnownDamage>,
}

impl RepairReport {
    /// Rows known to be lost, accepted or not. Damage of which nobody can say how many rows it
    /// took counts as none.
    pub fn rows_lost(&self) -> u64 {
        self.accepted.iter().chain(&self.remaining).map(|damage| damage.rows).sum()
    }

    /// Whether every query works now.
    pub fn is_complete(&self) -> bool {
        self.remaining.is_empty()
    }
}

impl fmt::Display for RepairReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.manifest_rebuilt {
            writeln!(
                f,
                "the manifest was made anew from {} parts; losses that only it knew of are \
                 forgotten",
                self.parts_listed
            )?;
        }
        for line in &self.opening {
            writeln!(f, "{line}")?;
        }
        for part in &self.salvaged {
            let (path, kept, lost) = (part.path.display(), part.rows_kept, part.rows_lost);
            writeln!(f, "{path}: {kept} rows saved into a new part, {lost} rows lost")?;
        }
        for (path, why) in &self.set_aside {
            writeln!(f, "{} is in {QUARANTINE_DIR}: {why}", path.display())?;
        }
        for damage in &self.accepted {
            writeln!(f, "loss accepted: {damage}")?;
        }
        for damage in &self.remaining {
            writeln!(f, "lost: {damage}")?;
        }
        write!(f, "checked {} parts: ", self.parts_checked)?;
        match (self.rows_lost(), self.accepted.len() + self.remaining.len()) {
            (_, 0) => f.write_str("nothing is lost"),
            (0, _) => f.write_str("rows are lost, nobody knows how many"),
            (rows, _) => write!(f, "at least {rows} rows are lost"),
        }?;
        if !self.remaining.is_empty() {
            f.write_str("; queries over their times fail until the loss is accepted")?;
        }
        Ok(())
    }
}

/// Repairs the store in `dir`; see [`Store::repair`](crate::Store::repair).
pub(crate) fn repair(options: Options, dir: &Path, accept_loss: bool) -> Result<RepairReport> {
    let disk = Arc::clone(&options.disk);
    // A mistyped name must not make a store.
    disk.list(dir).map_err(|e| match is_not_found(&e) {
        true => Error::NotAStore { path: dir.to_path_buf() },
        false => e,
    })?;
    let lock = disk.lock(&dir.join(LOCK_FILE))?;
    let mut report = RepairReport::default();
    if rebuild::is_lost(&disk, dir)? {
        rebuild::rebuild(&disk, dir, &mut report)?;
    }
    let options = options.background(false).durability(Durability::Process);
    let core = open_locked(options, dir, lock)?;
    report.opening.extend(core.report.damage.iter().map(Corruption::to_string));
    report.opening.extend(core.report.notes.iter().cloned());
    // What the journal holds goes to parts, and its damaged segments to quarantine.
    core.flush()?;
    let parts: Vec<_> = core.state.lock().version.parts().cloned().collect();
    for part in parts {
        report.parts_checked += 1;
        core.repair_part(&part, &mut report)?;
    }
    let snapshot = core.snapshot()?;
    let known = core.known_damage(&snapshot);
    if accept_loss {
        core.accept_losses()?;
        report.accepted = known;
    } else {
        report.remaining = known.into_iter().filter(|damage| damage.lost).collect();
    }
    Ok(report)
}

/// What is left of a part.
enum Condition {
    Sound,
    /// Rows can be read; those that cannot, if any.
    Damaged(Corruption, Option<SkippedUnit>),
    /// Nothing can.
    Unreadable(Corruption),
}

impl Core {
    /// Replaces a part that is damaged by what is left of it.
    fn repair_part(&self, part: &Arc<PartHandle>, report: &mut RepairReport) -> Result<()> {
        let path = part.path();
        match examine(part)? {
            Condition::Sound => Ok(()),
            Condition::Unreadable(damage) => {
                report.rows_of_lost_parts += part.info().rows;
                self.commit(&Edit::of(Change::AddHole(part.info().hole())))?;
                self.set_aside(part, &damage.what, report)
            }
            Condition::Damaged(damage, lost) => {
                let entry = self.salvage(part)?;
                let rows_lost = lost.map_or(0, |lost| lost.rows);
                report.salvaged.push(SalvagedPart { path, rows_kept: entry.rows, rows_lost });
                let mut edit = Edit::of(Change::DropPart { part_id: part.info().part_id });
                edit.push(Change::AddPart(entry));
                if let Some(lost) = lost {
                    edit.push(Change::AddDamage(self.loss_of(part, &damage, lost)?));
                }
                self.commit(&edit)?;
                self.set_aside(part, &damage.what, report)
            }
        }?;
        self.reload();
        Ok(())
    }

    /// Writes the sound rows of a part into a new file.
    fn salvage(&self, part: &PartHandle) -> Result<PartEntry> {
        let info = part.info();
        let reader = part.reader()?;
        let stats = ReadStats::default();
        let mut inputs = vec![info.part_id];
        // Without them a crash leaves more files to tell apart, no more.
        inputs.extend(reader.inputs(&ReadContext::new(&stats)).unwrap_or(&[]));
        let id = self.part_id()?;
        let cuts = (info.cut_lo, info.cut_hi);
        let options = WriterOptions {
            level: info.level,
            inputs,
            ..self.writer_options(id, info.day, cuts, Profile::Merge)
        };
        let path = part_path(&self.root, info.day, id);
        let skipped = SkippedRows::default();
        let write = |file: &mut dyn FileWriter, path: &Path| {
            salvage_part(&reader, &options, &skipped, &mut FileSink { file, path })
        };
        self.publish_file(info.day, &path, write).map(|summary| part_entry(&summary))
    }

    /// The mark that stands for the rows that a salvaged part lost.
    fn loss_of(
        &self,
        part: &PartHandle,
        damage: &Corruption,
        lost: SkippedUnit,
    ) -> Result<DamageMark> {
        let file = part.path();
        let file = file.strip_prefix(&self.root).unwrap_or(&file);
        Ok(DamageMark {
            id: self.part_id()?,
            part_id: 0,
            file: file.to_string_lossy().into_owned(),
            offset: damage.offset,
            what: format!("{}; {} rows are lost with it", damage.what, lost.rows),
            rows: lost.rows,
            min_time: Timestamp::from_nanos(lost.min_time),
            max_time: Timestamp::from_nanos(lost.max_time),
        })
    }

    /// Moves the file of a part that is not listed any more to quarantine, if it is there.
    fn set_aside(&self, part: &PartHandle, why: &str, report: &mut RepairReport) -> Result<()> {
        let (info, path) = (part.info(), part.path());
        let name = quarantine_name(info.day, info.part_id);
        match set_aside(self.disk.as_ref(), &self.root, &path, &name) {
            Err(e) if is_not_found(&e) => {}
            moved => report.set_aside.push((moved?, why.to_owned())),
        }
        Ok(())
    }

    /// Forgets everything that is known to be lost.
    fn accept_losses(&self) -> Result<()> {
        let mut edit = Edit::default();
        {
            let manifest = self.manifest()?.lock();
            let holes = manifest.state().holes();
            edit.changes.extend(holes.map(|hole| Change::DropHole { part_id: hole.part_id }));
            let marks = manifest.state().damage();
            edit.changes.extend(marks.map(|mark| Change::DropDamage { id: mark.id }));
        }
        self.commit(&edit)?;
        self.reload();
        Ok(())
    }

    /// Takes over what the manifest lists now.
    fn reload(&self) {
        let Ok(manifest) = self.manifest() else { return };
        let version = {
            let manifest = manifest.lock();
            super::open::version_of(manifest.state(), &self.disk, &self.files, &self.root)
        };
        self.state.lock().version = Arc::new(version);
    }
}

/// Reads every byte of a part.
fn examine(part: &PartHandle) -> Result<Condition> {
    let unreadable = |e: Error| match e {
        Error::Corrupted(damage) => Ok(Condition::Unreadable(damage)),
        Error::Io { action: "read", path, source } => Ok(Condition::Unreadable(Corruption {
            path,
            offset: 0,
            what: format!("it cannot be read: {source}"),
        })),
        other => Err(other),
    };
    let reader = match part.reader() {
        Ok(reader) => reader,
        Err(e) => return unreadable(e),
    };
    let stats = ReadStats::default();
    let finding = match verify_part(&reader, &ReadContext::new(&stats)) {
        Ok(report) => match report.findings.into_iter().next() {
            None => return Ok(Condition::Sound),
            Some(finding) => finding,
        },
        Err(e) => return unreadable(e),
    };
    let damage = Corruption { path: part.path(), offset: finding.offset, what: finding.what };
    match sound_rows(&reader) {
        Ok((0, _)) => Ok(Condition::Unreadable(damage)),
        Ok((_, lost)) => Ok(Condition::Damaged(damage, lost)),
        Err(e) => unreadable(e),
    }
}

/// How many rows can be read, and what cannot.
fn sound_rows(reader: &PartReader) -> Result<(u64, Option<SkippedUnit>)> {
    let (stats, skipped) = (ReadStats::default(), SkippedRows::default());
    let cx = ReadContext::new(&stats);
    reader.names(&cx)?;
    let mut rows = reader.sound_rows(&cx, &skipped);
    let mut kept = 0;
    while rows.advance()? {
        kept += 1;
    }
    Ok((kept, skipped.total()))
}
