//! Telling how much of an input is acknowledged.

use std::fmt;

use crate::ingest::IngestReport;
use crate::sync::Mutex;

/// What became of the first lines of one input, and who is told of it.
pub(crate) struct Acks<'a> {
    tell: &'a (dyn Fn(&IngestReport) + Sync),
    so_far: Mutex<IngestReport>,
}

impl fmt::Debug for Acks<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.so_far.fmt(f)
    }
}

impl<'a> Acks<'a> {
    /// Nothing is acknowledged.
    pub(crate) fn new(tell: &'a (dyn Fn(&IngestReport) + Sync)) -> Acks<'a> {
        Acks { tell, so_far: Mutex::default() }
    }

    /// The rows of the next lines are acknowledged.
    pub(crate) fn more(&self, next: &IngestReport) {
        let mut so_far = self.so_far.lock();
        so_far.merge(next);
        if next.accepted > 0 {
            (self.tell)(&so_far);
        }
    }

    /// What became of the whole input.
    pub(crate) fn into_report(self) -> IngestReport {
        self.so_far.into_inner()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ingest::RejectReason;

    #[test]
    fn rows_are_told_and_rejected_lines_are_counted() {
        let told = Mutex::new(Vec::new());
        let tell = |so_far: &IngestReport| {
            told.lock().push((so_far.accepted, so_far.lines, so_far.last_sequence));
        };
        let acks = Acks::new(&tell);
        let rows = |accepted, last_sequence| {
            let mut report = IngestReport::default();
            (report.lines, report.accepted, report.last_sequence) =
                (accepted, accepted, last_sequence);
            report
        };
        let mut bad = rows(0, 0);
        bad.lines = 1;
        bad.reject(RejectReason::Empty, || "nothing".to_owned());
        acks.more(&rows(5, 5));
        acks.more(&bad);
        acks.more(&rows(3, 8));
        assert_eq!(*told.lock(), [(5, 5, 5), (8, 9, 8)]);
        assert_eq!(acks.into_report().rejected(), 1);
    }
}
