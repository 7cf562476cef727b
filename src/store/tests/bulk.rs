//! Large inputs, whose chunks are written side by side.

use super::*;
use crate::ingest::IngestReport;
use crate::io::Fault;

const ROWS: u64 = 900;
/// About twenty chunks.
const CHUNK_BYTES: usize = 4_000;

/// Lines that say their numbers, over three days; every tenth line is none.
fn lines() -> Vec<String> {
    let line = |n: u64| {
        let time = i64::try_from(n % 3).unwrap() * DAY + i64::try_from(n).unwrap();
        let row =
            format!("{{\"_time\":{time},\"app\":\"a\",\"n\":{n},\"_msg\":\"row number {n}\"}}\n");
        if n % 9 == 5 { format!("{row}no row\n") } else { row }
    };
    let text: String = (0..ROWS).map(line).collect();
    text.lines().map(|line| format!("{line}\n")).collect()
}

/// What the last call told, and how it ended.
fn bulk(ingest: &Ingest, lines: &[String]) -> (IngestReport, Result<()>) {
    let told = crate::sync::Mutex::new(IngestReport::default());
    let tell = |report: &IngestReport| *told.lock() = report.clone();
    let acks = crate::store::acks::Acks::new(&tell);
    let ended = ingest.bulk(Vec::new(), lines.concat().as_bytes(), &acks);
    if ended.is_ok() {
        return (acks.into_report(), ended);
    }
    (told.into_inner(), ended)
}

/// Wherever the disk fails, the store holds the lines that were told of and none behind them, and
/// giving it the others, when the disk works again, makes it whole.
#[test]
fn a_failure_leaves_the_first_lines_and_nothing_behind_them() {
    let lines = lines();
    let whole = Arc::new(SimDisk::new());
    let open = |disk: &Arc<SimDisk>| {
        let store = options(disk, Durability::Process).open(root()).unwrap();
        let ingest = ingest(&store).with_chunk_bytes(CHUNK_BYTES);
        (store, ingest)
    };
    let (store, ingest) = open(&whole);
    let begun = whole.ops();
    let (report, ended) = bulk(&ingest, &lines);
    ended.unwrap();
    assert_eq!((report.accepted, report.rejected()), (ROWS, ROWS / 9));
    assert_eq!(numbers(&store), (0..ROWS).collect::<Vec<_>>());
    let ops = whole.ops() - begun;
    drop((store, ingest));
    let (mut failed, mut in_the_middle) = (0, 0);
    for (i, at) in (0..ops).step_by(13).enumerate() {
        let disk = Arc::new(SimDisk::new());
        let (store, ingest) = open(&disk);
        let fault = [Fault::Io, Fault::NoSpace, Fault::Short][i % 3];
        let at = disk.ops() + at;
        if i % 2 == 0 {
            disk.fail_once(at, fault)
        } else {
            disk.fail_from(at, fault)
        }
        let (report, ended) = bulk(&ingest, &lines);
        disk.clear_faults();
        let context = format!("{fault:?} at {at}: {ended:?}, {report}");
        assert_eq!(numbers(&store), (0..report.accepted).collect::<Vec<_>>(), "{context}");
        let rejected = lines.iter().take(usize::try_from(report.lines).unwrap());
        let rejected = rejected.filter(|line| *line == "no row\n").count() as u64;
        assert_eq!((report.rejected(), report.lines), (rejected, report.accepted + rejected));
        failed += u64::from(ended.is_err());
        in_the_middle += u64::from(report.accepted > 0 && report.accepted < ROWS);
        drop((store, ingest));
        let (store, ingest) = open(&disk);
        // A chunk that could not be taken back may be there, whole. None is told of and gone.
        let there = numbers(&store);
        assert!(there.starts_with(&(0..report.accepted).collect::<Vec<_>>()), "{context}");
        let number =
            |line: &str| line.split("\"n\":").nth(1)?.split(',').next()?.parse::<u64>().ok();
        let is_there = |line: &str| number(line).is_some_and(|n| there.binary_search(&n).is_ok());
        let rest: Vec<String> = lines.iter().filter(|line| !is_there(line)).cloned().collect();
        let (rest, ended) = bulk(&ingest, &rest);
        ended.unwrap();
        assert_eq!(rest.accepted, ROWS - there.len() as u64, "{context}");
        assert_eq!(numbers(&store), (0..ROWS).collect::<Vec<_>>(), "{context}");
        assert!(store.verify(&mut |_| true).unwrap().is_clean(), "{context}");
        check_files(&disk, &store);
    }
    assert!(failed > 10 && in_the_middle > 5, "{failed} failures, {in_the_middle} in the middle");
}
