//! Tests of the manifest: its helpers, the state against a naive twin, opening and following.

mod reconcile;
mod sweep;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use proptest::prelude::*;

use super::edit::{ClientKey, Delete, RetentionMark};
use super::load::FallbackTo;
use super::log::{Record, RecordKind};
use super::names::manifest_path;
use super::recovery::FoundPart;
use super::writer::RESERVATION_STEP;
use super::*;
use crate::Error;
use crate::codec::varint::{put_bytes, put_varint};
use crate::io::{Disk, Fsync, MemoryFile, ReadAt, SimDisk};
use crate::record::Timestamp;

const ROOT: &str = "/store";
const ID: StoreId = StoreId([7; 16]);

fn root() -> &'static Path {
    Path::new(ROOT)
}

fn part(day: i32, part_id: u64, cut_lo: u64, cut_hi: u64) -> PartEntry {
    PartEntry {
        part_id,
        day,
        level: 0,
        length: 1_000 + part_id,
        footer_checksum: part_id.wrapping_mul(0x9e37_79b9_7f4a_7c15),
        rows: (cut_hi - cut_lo).saturating_add(1),
        min_time: Timestamp::from_nanos(i64::from(day) * 1_000),
        max_time: Timestamp::from_nanos(i64::from(day) * 1_000 + 999),
        cut_lo,
        cut_hi,
        deletes_applied: 0,
    }
}

fn add(day: i32, part_id: u64, cut_lo: u64, cut_hi: u64) -> Edit {
    Edit::of(Change::AddPart(part(day, part_id, cut_lo, cut_hi)))
}

fn create(disk: &SimDisk) -> Manifest {
    Manifest::create(Arc::new(disk.clone()), root(), ID).unwrap()
}

fn open(disk: &SimDisk) -> crate::Result<(Manifest, ManifestReport)> {
    Manifest::open(Arc::new(disk.clone()), root())
}

fn follow(disk: &SimDisk) -> crate::Result<ManifestFollower> {
    ManifestFollower::open(Arc::new(disk.clone()), root())
}

fn fold(edits: &[Edit]) -> ManifestState {
    let mut state = ManifestState::new(ID);
    edits.iter().for_each(|edit| state.apply(edit).unwrap());
    state
}

/// A change of every kind, none contradicting another.
fn every_change() -> Vec<Change> {
    let mark = DamageMark {
        id: 40,
        part_id: 3,
        file: "19700102/0000000000000003.part".into(),
        offset: 77,
        what: "checksum of a strip differs".into(),
        rows: 12,
        min_time: Timestamp::MIN,
        max_time: Timestamp::MAX,
    };
    let delete = Delete { id: 41, filter: "app:=\"x\" _time:<1s".into(), cut: 30 };
    let key = |sequence, text: &[u8]| {
        let time = Timestamp::from_nanos(-5);
        Change::AddClientKey(ClientKey { key: text.to_vec(), sequence, time })
    };
    vec![
        Change::AddPart(part(-1, 1, 0, 9)),
        Change::AddPart(part(-1, 2, 10, 19)),
        Change::AddPart(part(1, 3, 0, u64::MAX)),
        Change::AddHole(part(-1, 2, 10, 19).hole()),
        Change::DropHole { part_id: 2 },
        Change::AddHole(part(2, 9, 5, 6).hole()),
        Change::AddDamage(mark.clone()),
        Change::AddDamage(DamageMark { id: 42, ..mark }),
        Change::DropDamage { id: 42 },
        Change::AddDelete(delete.clone()),
        Change::AddDelete(Delete { id: 43, ..delete }),
        Change::DropDelete { id: 43 },
        key(7, b"first"),
        key(9, b"\xff\x00second"),
        Change::ForgetClientKeys { through: 7 },
        Change::ReserveIds { below: 1 << 20 },
        Change::ReserveSequences { below: 1 << 21 },
        Change::FlushedThrough { through: 19 },
        Change::Retention(RetentionMark {
            clock: Timestamp::from_nanos(3),
            newest_time: Timestamp::from_nanos(4),
            cutoff: Timestamp::MIN,
        }),
        Change::AddBulk(Bulk { cut_lo: 50, cut_hi: 59, parts: 3 }),
        Change::AddBulk(Bulk { cut_lo: 60, cut_hi: 60, parts: 1 }),
        Change::DropBulk { cut_lo: 50 },
        Change::AddSegment { segment: 6, first: 20 },
        Change::AddSegment { segment: 7, first: 30 },
        Change::AddSegment { segment: 8, first: 40 },
        Change::DropSegment { segment: 6 },
        Change::DropSegment { segment: 8 },
        Change::DropPart { part_id: 1 },
        Change::DropDay { day: 5, cut: 4 },
        Change::DropDay { day: -1, cut: 19 },
        Change::ForgetDay { day: 5 },
    ]
}

#[test]
fn every_change_comes_back() {
    let edit = Edit { changes: every_change() };
    assert_eq!(Edit::decode(&edit.encode()).unwrap(), (edit.clone(), 0));
    let state = fold(&[edit]);
    assert_eq!(fold(&[state.image()]), state);
    assert_eq!(state.parts().map(|p| p.part_id).collect::<Vec<_>>(), [3]);
    assert_eq!(state.holes().map(|h| h.part_id).collect::<Vec<_>>(), [9]);
    assert_eq!(state.damage().map(|m| m.id).collect::<Vec<_>>(), [40]);
    assert_eq!(state.deletes().map(|d| d.id).collect::<Vec<_>>(), [41]);
    assert_eq!(state.client_keys().map(|k| k.sequence).collect::<Vec<_>>(), [9]);
    assert_eq!(state.dropped_through(-1), Some(19));
    assert_eq!(state.dropped_through(5), None);
    assert_eq!((state.ids_below(), state.sequences_below()), (1 << 20, 1 << 21));
    assert_eq!(state.flushed_through(), Some(19));
    assert_eq!(state.bulks().values().map(|b| b.cut_hi).collect::<Vec<_>>(), [60]);
    assert_eq!(*state.segments(), Segments { first_rows: BTreeMap::from([(7, 30)]), below: 9 });
    assert!(state.covers(-1, 19) && !state.covers(-1, 20));
    assert!(state.covers(2, 5) && !state.covers(2, 4) && !state.covers(2, 7));
    assert!(state.covers(1, 1 << 60) && !state.covers(0, 3));
}

#[test]
fn contradictory_edits_change_nothing() {
    let mut state = fold(&[Edit { changes: every_change() }]);
    let before = state.clone();
    let bad = [
        Change::AddPart(part(1, 50, 5, 6)),
        Change::AddPart(part(8, 3, 5, 6)),
        Change::AddPart(part(2, 51, 6, 7)),
        Change::AddPart(part(2, 9, 20, 21)),
        Change::AddHole(part(2, 52, 4, 5).hole()),
        Change::DropPart { part_id: 9 },
        Change::DropPart { part_id: 77 },
        Change::DropHole { part_id: 3 },
    ];
    for change in bad {
        let good = every_change().into_iter().filter(|change| {
            !matches!(change, Change::AddPart(p) if p.part_id == 3)
                && !matches!(change, Change::AddHole(h) if h.part_id == 9)
        });
        let mut edit = Edit { changes: good.collect() };
        edit.push(Change::DropDay { day: 2, cut: 1 });
        edit.push(change);
        assert!(state.apply(&edit).is_err(), "{:?}", edit.changes.last());
        assert_eq!(state, before);
    }
    let disk = SimDisk::new();
    let mut manifest = create(&disk);
    let bytes = manifest.file_bytes();
    let refused = manifest.append(&Edit::of(Change::DropPart { part_id: 1 }), Fsync::Now);
    assert!(matches!(refused, Err(Error::Corrupted(_))));
    assert_eq!(manifest.file_bytes(), bytes);
    manifest.append(&add(0, 1, 0, 1), Fsync::Now).unwrap();
}

/// The state kept the plainest way.
#[derive(Debug, Default, PartialEq)]
struct Naive {
    parts: Vec<PartEntry>,
    holes: Vec<Hole>,
    marks: BTreeMap<u64, DamageMark>,
    deletes: BTreeMap<u64, Delete>,
    keys: Vec<ClientKey>,
    dropped: BTreeMap<i32, u64>,
    below: (u64, u64),
    flushed: Option<u64>,
    segments: Segments,
    bulks: BTreeMap<u64, Bulk>,
}

impl Naive {
    fn new() -> Naive {
        Naive { below: (1, 1), ..Naive::default() }
    }

    fn of(state: &ManifestState) -> Naive {
        let days = (-2..9).filter_map(|day| Some((day, state.dropped_through(day)?)));
        Naive {
            parts: state.parts().cloned().collect(),
            holes: state.holes().cloned().collect(),
            marks: state.damage().map(|mark| (mark.id, mark.clone())).collect(),
            deletes: state.deletes().map(|delete| (delete.id, delete.clone())).collect(),
            keys: state.client_keys().cloned().collect(),
            dropped: days.collect(),
            below: (state.ids_below(), state.sequences_below()),
            flushed: state.flushed_through(),
            segments: state.segments().clone(),
            bulks: state.bulks().clone(),
        }
    }

    fn drop_parts(&mut self, gone: impl Fn(&PartEntry) -> bool) {
        for part in self.parts.iter().filter(|part| gone(part)) {
            self.marks.retain(|_, mark| mark.part_id != part.part_id);
        }
        self.parts.retain(|part| !gone(part));
    }

    fn apply(&mut self, change: &Change) {
        match change.clone() {
            Change::AddPart(part) => self.parts.push(part),
            Change::DropPart { part_id } => self.drop_parts(|part| part.part_id == part_id),
            Change::DropDay { day, cut } => {
                self.drop_parts(|part| part.day == day && part.cut_hi <= cut);
                self.holes.retain(|hole| hole.day != day || hole.cut_hi > cut);
                let dropped = self.dropped.entry(day).or_default();
                *dropped = (*dropped).max(cut);
            }
            Change::ForgetDay { day } => drop(self.dropped.remove(&day)),
            Change::AddHole(hole) => {
                self.drop_parts(|part| part.part_id == hole.part_id);
                self.holes.push(hole);
            }
            Change::DropHole { part_id } => self.holes.retain(|hole| hole.part_id != part_id),
            Change::AddDamage(mark) => drop(self.marks.insert(mark.id, mark)),
            Change::DropDamage { id } => drop(self.marks.remove(&id)),
            Change::AddDelete(delete) => drop(self.deletes.insert(delete.id, delete)),
            Change::DropDelete { id } => drop(self.deletes.remove(&id)),
            Change::AddClientKey(key) => self.keys.push(key),
            Change::ForgetClientKeys { through } => self.keys.retain(|k| k.sequence > through),
            Change::ReserveIds { below } => self.below.0 = self.below.0.max(below),
            Change::ReserveSequences { below } => self.below.1 = self.below.1.max(below),
            Change::FlushedThrough { through } => self.flushed = self.flushed.max(Some(through)),
            Change::Retention(_) => {}
            Change::AddSegment { segment, first } => {
                self.segments.first_rows.insert(segment, first);
                self.segments.below = self.segments.below.max(segment + 1);
            }
            Change::DropSegment { segment } => {
                self.segments.first_rows.remove(&segment);
                self.segments.below = self.segments.below.max(segment + 1);
            }
            Change::AddBulk(bulk) => {
                self.bulks.insert(bulk.cut_lo, bulk);
            }
            Change::DropBulk { cut_lo } => {
                self.bulks.remove(&cut_lo);
            }
        }
        self.parts.sort_by_key(|part| (part.day, part.cut_lo));
        self.holes.sort_by_key(|hole| (hole.day, hole.cut_lo));
    }
}

/// A change that does not contradict the state, chosen by two numbers.
fn valid_change(state: &ManifestState, next: &mut u64, kind: u8, pick: u64) -> Change {
    *next += 1;
    let id = *next;
    let parts: Vec<&PartEntry> = state.parts().collect();
    let holes: Vec<&Hole> = state.holes().collect();
    let any_part = parts.get(usize::try_from(pick).unwrap() % parts.len().max(1));
    let any_hole = holes.get(usize::try_from(pick).unwrap() % holes.len().max(1));
    let day = i32::try_from(pick % 5).unwrap();
    match (kind % 18, any_part, any_hole) {
        (0, Some(part), _) => Change::DropPart { part_id: part.part_id },
        (1, Some(part), _) => Change::AddHole(part.hole()),
        (2, _, Some(hole)) => Change::DropHole { part_id: hole.part_id },
        (3, ..) => Change::DropDay { day, cut: id * 5 },
        (4, ..) => Change::ForgetDay { day },
        (5, Some(part), _) => Change::AddDamage(DamageMark {
            id,
            part_id: part.part_id,
            file: "f".repeat(usize::try_from(pick % 200).unwrap()),
            offset: pick,
            what: "w".into(),
            rows: 0,
            min_time: part.min_time,
            max_time: part.max_time,
        }),
        (6, ..) => Change::DropDamage { id: pick % id },
        (7, ..) => Change::AddDelete(Delete { id, filter: format!("f{pick}"), cut: pick }),
        (8, ..) => Change::DropDelete { id: pick % id },
        (9, ..) => {
            let key = pick.to_le_bytes().to_vec();
            Change::AddClientKey(ClientKey { key, sequence: id, time: Timestamp::from_nanos(1) })
        }
        (10, ..) => Change::ForgetClientKeys { through: pick % id },
        (11, ..) => Change::FlushedThrough { through: pick },
        (12, ..) => Change::ReserveIds { below: pick },
        (13, ..) => Change::AddSegment { segment: id, first: pick },
        (14, ..) => Change::DropSegment { segment: pick % id },
        (15, ..) => Change::AddBulk(Bulk { cut_lo: pick, cut_hi: pick + id, parts: id }),
        (16, ..) => Change::DropBulk { cut_lo: pick },
        _ => Change::AddPart(part(day, id, id * 10, id * 10 + 9)),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn state_is_the_fold_of_edits(
        steps in prop::collection::vec((any::<u8>(), 0u64..1_000, 0u8..12), 1..120),
    ) {
        let disk = SimDisk::new();
        let mut manifest = create(&disk);
        let mut follower = follow(&disk).unwrap();
        let (mut naive, mut next) = (Naive::new(), 0);
        for (kind, pick, action) in steps {
            let change = valid_change(manifest.state(), &mut next, kind, pick);
            let fsync = if action % 3 == 0 { Fsync::Later } else { Fsync::Now };
            manifest.append(&Edit::of(change.clone()), fsync).unwrap();
            naive.apply(&change);
            match action {
                9 => manifest.rewrite().unwrap(),
                10 => {
                    drop(manifest);
                    let (opened, report) = open(&disk).unwrap();
                    prop_assert_eq!(report.dropped_bytes, 0);
                    prop_assert_eq!(report.fallback, None);
                    manifest = opened;
                }
                11 => manifest.sync().unwrap(),
                _ => {}
            }
            prop_assert_eq!(&Naive::of(manifest.state()), &naive);
            if pick % 3 == 0 {
                follower.refresh().unwrap();
                prop_assert_eq!(follower.state(), manifest.state());
                prop_assert_eq!(follower.refresh().unwrap(), Followed::Unchanged);
            }
        }
        manifest.sync().unwrap();
        let (reopened, _) = open(&disk.crash(crate::io::CrashModel::LOSE_ALL, 0)).unwrap();
        prop_assert_eq!(reopened.state(), manifest.state());
    }

    #[test]
    fn any_bytes_are_decoded_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Ok((edit, 0)) = Edit::decode(&bytes) {
            prop_assert_eq!(Edit::decode(&edit.encode()).unwrap().0, edit);
        }
        let _ = Record::decode(&bytes);
        let _ = super::log::Header::decode(&bytes);
    }
}

#[test]
fn days_and_parts_are_in_order() {
    let state = fold(&[add(3, 1, 20, 29), add(-2, 2, 20, 29), add(3, 3, 0, 9), add(7, 4, 5, 5)]);
    assert_eq!(state.days().collect::<Vec<_>>(), [-2, 3, 7]);
    assert_eq!(state.parts_of(3).map(|p| p.part_id).collect::<Vec<_>>(), [3, 1]);
    assert_eq!(state.part(4).unwrap().day, 7);
    assert!(state.part(5).is_none() && state.hole(4).is_none());
}

#[test]
fn reservations_are_durable_and_never_overlap() {
    let disk = SimDisk::new();
    let mut manifest = create(&disk);
    let first = manifest.reserve_ids().unwrap();
    assert_eq!(first, 1..1 + RESERVATION_STEP);
    // Also behind an edit that is not synced, which stays unsynced.
    manifest.append(&add(0, 1, 1, 1), Fsync::Later).unwrap();
    let second = manifest.reserve_ids().unwrap();
    assert_eq!(second.start, first.end);
    let sequences = manifest.reserve_sequences().unwrap();
    let (mut reopened, report) = open(&disk.crash(crate::io::CrashModel::LOSE_ALL, 0)).unwrap();
    assert_eq!(report.unsynced_parts, [1]);
    assert_eq!(reopened.reserve_ids().unwrap().start, second.end);
    assert_eq!(reopened.reserve_sequences().unwrap().start, sequences.end);
    reopened.sync().unwrap();
    drop(reopened);
}

#[test]
fn unsynced_parts_are_named_until_synced() {
    let disk = SimDisk::new();
    let mut manifest = create(&disk);
    manifest.append(&add(0, 1, 1, 1), Fsync::Later).unwrap();
    manifest.append(&add(0, 2, 2, 2), Fsync::Later).unwrap();
    assert_eq!(open(&disk.fork()).unwrap().1.unsynced_parts, [1, 2]);
    manifest.sync().unwrap();
    assert_eq!(open(&disk.fork()).unwrap().1.unsynced_parts, [0u64; 0]);
    manifest.append(&add(0, 3, 3, 3), Fsync::Later).unwrap();
    manifest.append(&add(0, 4, 4, 4), Fsync::Now).unwrap();
    assert_eq!(open(&disk.fork()).unwrap().1.unsynced_parts, [0u64; 0]);
}

#[test]
fn long_logs_are_rewritten_and_the_previous_one_kept() {
    let disk = SimDisk::new();
    let mut manifest = create(&disk);
    let mut edits = Vec::new();
    for id in 1..4_000 {
        let mut edit = add(0, id, id, id);
        if id > 1 {
            edit.changes.insert(0, Change::DropPart { part_id: id - 1 });
        }
        manifest.append(&edit, Fsync::Now).unwrap();
        edits.push(edit);
        assert!(manifest.file_bytes() < 70_000);
    }
    assert!(manifest.generation() > 4);
    let names: Vec<String> =
        disk.list(root()).unwrap().into_iter().map(|entry| entry.name).collect();
    let mut want = [manifest.generation() - 1, manifest.generation()]
        .map(|generation| format!("MANIFEST-{generation}"));
    want.sort();
    assert_eq!(names, want);
    assert_eq!(open(&disk).unwrap().0.state(), &fold(&edits));
}

#[test]
fn a_directory_is_made_a_store_once() {
    let disk = SimDisk::new();
    assert!(matches!(open(&disk), Err(Error::NotAStore { .. })));
    assert!(matches!(follow(&disk), Err(Error::NotAStore { .. })));
    let manifest = create(&disk);
    assert_eq!(manifest.state().store_id(), ID);
    let again = Manifest::create(Arc::new(disk.clone()), root(), ID);
    assert!(matches!(again, Err(Error::Io { action: "create", .. })));
    assert_ne!(StoreId::random(), StoreId::random());
    assert_eq!(ID.to_string(), "07".repeat(16));
}

/// A manifest with one more record, whose payload is given as bytes.
fn with_payload(payload: &[u8]) -> SimDisk {
    let disk = SimDisk::new();
    drop(create(&disk));
    let path = manifest_path(root(), 1);
    let mut bytes = disk.read_file(&path).unwrap();
    let image = Record::decode(&bytes[super::log::HEADER_BYTES..]).unwrap();
    let record = Record::encode(RecordKind::Synced, 1, 0, image.checksum, payload);
    bytes.extend(record.unwrap().0);
    disk.write_file(&path, &bytes);
    disk
}

#[test]
fn unknown_changes_are_skipped_or_refused() {
    let change = |tag: u64| {
        let mut payload = Edit::of(Change::ReserveIds { below: 9 }).encode();
        put_varint(&mut payload, tag);
        put_bytes(&mut payload, b"from the future");
        payload.extend(Edit::of(Change::ReserveSequences { below: 8 }).encode());
        payload
    };
    let (manifest, report) = open(&with_payload(&change(900 << 1 | 1))).unwrap();
    assert_eq!(report.skipped_changes, 1);
    assert_eq!((manifest.state().ids_below(), manifest.state().sequences_below()), (9, 8));
    match open(&with_payload(&change(900 << 1))) {
        Err(Error::Unsupported { what, .. }) => assert!(what.contains("900")),
        other => panic!("{other:?}"),
    }
    // A whole record with bytes that are no edit was not written by any version.
    let opened = open(&with_payload(b"\x02\x01")).unwrap();
    assert!(opened.1.fallback.is_some());
}

#[test]
fn follower_waits_for_whole_records_and_never_writes() {
    let disk = SimDisk::new();
    let mut manifest = create(&disk);
    manifest.append(&add(0, 1, 1, 1), Fsync::Now).unwrap();
    let path = manifest_path(root(), 1);
    let short = disk.read_file(&path).unwrap();
    manifest.append(&add(0, 2, 2, 2), Fsync::Now).unwrap();
    let long = disk.read_file(&path).unwrap();
    let reader = SimDisk::new();
    reader.write_file(&path, &short);
    let mut follower = follow(&reader).unwrap();
    let begun = reader.ops();
    for len in short.len()..long.len() {
        let mut file = reader.open_append(&path).unwrap();
        file.append(&long[len..=len]).unwrap();
        let whole = len + 1 == long.len();
        let want = if whole { Followed::Changed } else { Followed::Unchanged };
        assert_eq!(follower.refresh().unwrap(), want);
    }
    assert_eq!(follower.state(), manifest.state());
    // The writer takes back a record that it could not sync, and writes another.
    reader.cut(&path, short.len() as u64);
    assert_eq!(follower.refresh().unwrap(), Followed::Changed);
    assert!(follower.state().part(2).is_none());
    let by_follower = reader.trace().split_off(usize::try_from(begun).unwrap());
    assert!(
        by_follower
            .iter()
            .all(|op| { !op.kind.is_mutation() || op.kind == crate::io::OpKind::Append })
    );
}

#[test]
fn reading_is_bounded_by_the_file() {
    // A file object that claims to be huge is refused before memory is taken.
    #[derive(Debug)]
    struct Huge(MemoryFile);
    impl ReadAt for Huge {
        fn len(&self) -> std::io::Result<u64> {
            Ok(1 << 60)
        }
        fn read_at(&self, offset: u64, buf: &mut [u8]) -> std::io::Result<usize> {
            self.0.read_at(offset, buf)
        }
    }
    let huge = Huge(MemoryFile::new(vec![0; 10]));
    assert!(super::load::read_from(&huge, 0).is_err());
}
