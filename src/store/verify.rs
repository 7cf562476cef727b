//! Checking every byte.

use std::fmt;

use crate::error::{Corruption, Error, Result};
use crate::part::{ReadContext, ReadStats, verify_part};

use super::core::Core;

/// How far a verification is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct VerifyProgress {
    /// Parts checked.
    pub parts_done: u64,
    /// Parts to check.
    pub parts_total: u64,
    /// Bytes checked.
    pub bytes_done: u64,
    /// Bytes to check.
    pub bytes_total: u64,
}

/// What a verification found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct VerifyReport {
    /// Parts checked, unflushed rows included.
    pub parts: u64,
    /// Rows read back.
    pub rows: u64,
    /// Blocks read.
    pub blocks: u64,
    /// Strips decoded.
    pub strips: u64,
    /// Bytes checked.
    pub bytes: u64,
    /// Everything that is wrong.
    pub damage: Vec<Corruption>,
    /// Sentences about what the end of a writer left behind, which is no damage: bytes of a write
    /// that was cut short, files that were not in use yet.
    pub notes: Vec<String>,
    /// Whether the walk was ended before the last part.
    pub cancelled: bool,
}

impl VerifyReport {
    /// Whether nothing is wrong with what was checked.
    pub fn is_clean(&self) -> bool {
        self.damage.is_empty()
    }
}

impl fmt::Display for VerifyReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for damage in &self.damage {
            writeln!(f, "{damage}")?;
        }
        for note in &self.notes {
            writeln!(f, "{note}")?;
        }
        write!(
            f,
            "checked {} parts, {} rows, {} blocks, {} strips, {} bytes: ",
            self.parts, self.rows, self.blocks, self.strips, self.bytes
        )?;
        match self.damage.len() {
            0 if self.cancelled => f.write_str("ended early, nothing wrong so far"),
            0 => f.write_str("nothing wrong"),
            n => write!(f, "{n} places are damaged"),
        }
    }
}

impl Core {
    /// Reads every byte of every part. What a query would see is what is checked.
    pub(crate) fn verify(
        &self,
        progress: &mut dyn FnMut(&VerifyProgress) -> bool,
    ) -> Result<VerifyReport> {
        let snapshot = self.snapshot()?;
        let mut report = VerifyReport { damage: self.report.damage.clone(), ..Default::default() };
        let lost = self.known_damage(&snapshot).into_iter().filter(|damage| damage.lost);
        report.damage.extend(lost.map(|damage| damage.place));
        let unlisted = self.unlisted(usize::MAX)?;
        report.notes.extend(self.report.torn_note());
        report.notes.extend(unlisted.leftovers_note());
        report.damage.extend(unlisted.damage);
        let mut at = VerifyProgress {
            parts_total: snapshot.parts().len() as u64,
            bytes_total: snapshot.parts().iter().map(|p| p.info().length).sum(),
            ..VerifyProgress::default()
        };
        for part in snapshot.parts() {
            let stats = ReadStats::default();
            match part.reader().and_then(|r| verify_part(&r, &ReadContext::new(&stats))) {
                Ok(found) => {
                    report.rows += found.rows;
                    report.blocks += found.blocks;
                    report.strips += found.strips;
                    report.bytes += found.bytes;
                    let named = |f: crate::part::Finding| Corruption {
                        path: part.path(),
                        offset: f.offset,
                        what: f.what,
                    };
                    report.damage.extend(found.findings.into_iter().map(named));
                }
                Err(Error::Corrupted(damage)) => report.damage.push(damage),
                Err(Error::Io { action: "read", path, source }) => report.damage.push(Corruption {
                    path,
                    offset: 0,
                    what: format!("it cannot be read: {source}"),
                }),
                Err(other) => return Err(other),
            }
            report.parts += 1;
            at.parts_done += 1;
            at.bytes_done += part.info().length;
            if !progress(&at) {
                report.cancelled = at.parts_done < at.parts_total;
                break;
            }
        }
        Ok(report)
    }
}
