//! Opening a store.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::io::{DescriptorCache, Disk, LockGuard};
use crate::journal::{Commit, Journal, Replayed, replay};
use crate::manifest::{
    Facts, LOCK_FILE, Manifest, ManifestReport, ManifestState, PartFacts, PartRef, QUARANTINE_DIR,
    Reconciled, StoreId, carry_out, list_files, part_path, reconcile,
};
use crate::memory::Buffer;
use crate::options::{Durability, Options};
use crate::part::{PartReader, PartSource, ReadContext, ReadStats, UnitCache};
use crate::partition::{PartHandle, Version};
use crate::record::Timestamp;
use crate::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use crate::sync::{Condvar, Mutex};

use super::core::{Core, DESCRIPTORS_MAX, Role};
use super::damage::{forget_segments, lost_manifest, record_gaps, record_set_aside};
use super::follow::Follower;
use super::ids::{Counter, ViewIds};
use super::recovered::Recovered;
use super::report::OpenReport;
use super::state::{InFlight, State, Written};

/// Opens a store for writing:
///
/// 1. take the lock;
/// 2. read the manifest, or begin one;
/// 3. list the days' files and reconcile them with the manifest: adopt, set aside, remove;
/// 4. replay the journal: rows that no part holds come back into the buffer.
///
/// No part is read, but footers of files that are not as listed.
pub(crate) fn open_writer(options: Options, dir: &Path) -> Result<Core> {
    let disk = Arc::clone(&options.disk);
    disk.create_dir_all(dir)?;
    let lock = disk.lock(&dir.join(LOCK_FILE))?;
    open_locked(options, dir, lock)
}

/// Opens a store for writing whose lock is held.
pub(crate) fn open_locked(options: Options, dir: &Path, lock: Box<dyn LockGuard>) -> Result<Core> {
    let disk = Arc::clone(&options.disk);
    let (mut manifest, manifest_report) = open_manifest(&disk, dir)?;
    let mut report = OpenReport::default();
    note_manifest(&manifest_report, &mut report);
    recover_files(disk.as_ref(), dir, &mut manifest, &manifest_report, &mut report)?;

    let store_id = u128::from_le_bytes(manifest.state().store_id().0);
    let mut recovered = Recovered::new(manifest.state(), options.clock.monotonic());
    if manifest_report.fallback.is_some() {
        let gone = forget_segments(disk.as_ref(), dir, &mut manifest)?;
        if gone > 0 {
            report
                .notes
                .push(format!("{gone} journal segments are not there, as lost edits may say"));
        }
    }
    let expected = manifest.state().segments();
    let replayed = replay(disk.as_ref(), dir, store_id, expected, &mut |sequence, batch| {
        recovered.push(manifest.state(), sequence, batch);
        Ok(())
    })?;
    note_replay(&replayed, &mut report);
    record_gaps(&mut manifest, &replayed)?;
    report.replayed_rows = recovered.rows();
    let (cuts, buffer) = recovered.finish();
    let files = DescriptorCache::new(Arc::clone(&disk), DESCRIPTORS_MAX);
    let journal = (options.durability != Durability::Buffered).then(|| {
        let (found, unused) = (replayed.segments.clone(), manifest.state().segments().below);
        Journal::new(Arc::clone(&disk), dir.to_path_buf(), store_id, found, unused)
    });
    let state = State {
        version: Arc::new(version_of(manifest.state(), &disk, &files, dir)),
        buffer,
        buffer_view: None,
        in_flight: cuts.into_iter().map(InFlight::waiting).collect(),
        journal,
        sequences: Counter::new(manifest.state().sequences_below()),
        part_ids: Counter::new(manifest.state().ids_below()),
        written: Written::default(),
        poisoned: None,
        last_error: None,
        panicked: None,
        closed: false,
    };
    let role = Role::Writer {
        manifest: Mutex::new(manifest),
        flushing: Mutex::new(()),
        merging: Mutex::default(),
        _lock: lock,
    };
    Ok(new_core(options, dir, store_id, files, report, state, role))
}

/// A reader looks for part files that no manifest lists in at most so many days: it should not cost
/// more than the queries that follow.
const UNLISTED_DAYS_MAX: usize = 256;

/// Opens a store for reading. Writes nothing.
pub(crate) fn open_reader(options: Options, dir: &Path) -> Result<Core> {
    let disk = Arc::clone(&options.disk);
    let follower = Follower::open(&disk, dir)?;
    let store_id = follower.store_id();
    let report = OpenReport::default();
    let files = DescriptorCache::new(Arc::clone(&disk), DESCRIPTORS_MAX);
    let state = State {
        version: Arc::default(),
        buffer: Buffer::default(),
        buffer_view: None,
        in_flight: Vec::new(),
        journal: None,
        sequences: Counter::new(0),
        part_ids: Counter::new(0),
        written: Written::default(),
        poisoned: None,
        last_error: None,
        panicked: None,
        closed: false,
    };
    let role = Role::Reader(Mutex::new(follower));
    let mut core = new_core(options, dir, store_id, files, report, state, role);
    core.snapshot()?;
    if let Role::Reader(follower) = &core.role {
        // While a writer is at work, what the end of the journal lacks may be on its way.
        let alone = !core.disk.is_locked(&dir.join(LOCK_FILE))?;
        core.report = follower.lock().report(alone);
    }
    let unlisted = core.unlisted(UNLISTED_DAYS_MAX)?;
    core.report.notes.extend(unlisted.leftovers_note());
    let strays = unlisted.damage.len();
    if strays > 0 {
        core.report.notes.push(format!(
            "{strays} part files are listed by no manifest and not in use: a writer died before it \
             listed them, or the end of the manifest is lost; verify names them, and the next \
             opening for writing uses what it can"
        ));
    }
    Ok(core)
}

fn new_core(
    options: Options,
    dir: &Path,
    store_id: u128,
    files: Arc<DescriptorCache>,
    report: OpenReport,
    state: State,
    role: Role,
) -> Core {
    // A quarter of the memory; a share that no machine can hold is no limit.
    let cache_bytes = usize::try_from(options.memory_limit_bytes / 4).unwrap_or(usize::MAX);
    Core {
        cache: Arc::new(UnitCache::new(cache_bytes)),
        view_ids: ViewIds::default(),
        disk: Arc::clone(&options.disk),
        clock: Arc::clone(&options.clock),
        root: dir.to_path_buf(),
        options,
        store_id,
        files,
        report,
        state: Mutex::new(state),
        commit: Commit::default(),
        durable: AtomicU64::new(0),
        changed: Condvar::new(),
        bulks: AtomicUsize::new(0),
        stopping: AtomicBool::new(false),
        role,
    }
}

fn open_manifest(disk: &Arc<dyn Disk>, dir: &Path) -> Result<(Manifest, ManifestReport)> {
    match Manifest::open(Arc::clone(disk), dir) {
        Err(Error::NotAStore { .. }) => {
            // A new store here would not know the files of the old one.
            if let Some(lost) = lost_manifest(disk.as_ref(), dir)? {
                return Err(lost);
            }
            let manifest = Manifest::create(Arc::clone(disk), dir, StoreId::random())?;
            Ok((manifest, ManifestReport::default()))
        }
        other => other,
    }
}

fn note_manifest(manifest: &ManifestReport, report: &mut OpenReport) {
    if manifest.dropped_bytes > 0 {
        let bytes = manifest.dropped_bytes;
        report.notes.push(format!("{bytes} bytes of a torn last manifest edit were dropped"));
    }
    if let Some(fallback) = &manifest.fallback {
        report.damage.push(fallback.damage.clone());
        report
            .notes
            .push(format!("the newest manifest is damaged; in use instead: {}", fallback.to));
    }
}

fn note_replay(replayed: &Replayed, report: &mut OpenReport) {
    report.torn_bytes = replayed.torn_bytes;
    report.damage.extend(replayed.damage.iter().cloned());
}

/// The version that a manifest lists.
pub(crate) fn version_of(
    state: &ManifestState,
    disk: &Arc<dyn Disk>,
    files: &Arc<DescriptorCache>,
    root: &Path,
) -> Version {
    let handle = |entry: &crate::manifest::PartEntry| {
        let path = part_path(root, entry.day, entry.part_id);
        Arc::new(PartHandle::file(entry.clone(), Arc::clone(disk), Arc::clone(files), path))
    };
    let lost_files = state.damage().filter(|mark| mark.loses_rows()).cloned().collect();
    Version::new(state.parts().map(handle), state.holes().cloned().collect(), lost_files)
}

fn recover_files(
    disk: &dyn Disk,
    dir: &Path,
    manifest: &mut Manifest,
    manifest_report: &ManifestReport,
    report: &mut OpenReport,
) -> Result<()> {
    let listing = list_files(disk, dir)?;
    let mut unreadable = HashSet::new();
    let mut facts = |place: PartRef| {
        let facts = read_facts(disk, &part_path(dir, place.day, place.part_id));
        if matches!(facts, Facts::Unreadable(_)) {
            unreadable.insert(place);
        }
        facts
    };
    let unsynced = &manifest_report.unsynced_parts;
    let decided = reconcile(manifest.state(), &listing.parts, unsynced, &mut facts);
    note_recovery(&decided, report);
    // A part has its name only when it is whole, so one that cannot be read was damaged; it may
    // have been listed by edits that are lost.
    let fallback = manifest_report.fallback.is_some();
    let listed: HashSet<u64> = manifest.state().parts().map(|part| part.part_id).collect();
    record_set_aside(manifest, &decided, |file| {
        let stray = !listed.contains(&file.place.part_id) && unreadable.contains(&file.place);
        !fallback && !stray
    })?;
    // A part has its final name only after its bytes were synced, so adopting needs no sync.
    carry_out(disk, dir, manifest, &decided, &listing)
}

fn note_recovery(todo: &Reconciled, report: &mut OpenReport) {
    let is_removed = |place: &&PartRef| todo.remove.iter().any(|file| file.place == **place);
    match todo.leftovers.iter().filter(is_removed).count() {
        0 => {}
        n => report
            .notes
            .push(format!("{n} parts of an ingest that was never acknowledged are gone")),
    }
    for id in &todo.adopted {
        report.notes.push(format!("part {id:016x} was not listed and is in use again"));
    }
    for id in &todo.lost {
        report.notes.push(format!("part {id:016x} is lost; queries over its time range fail"));
    }
    for id in &todo.lost_unsynced {
        report.notes.push(format!("part {id:016x} was not durable before a loss of power"));
    }
    for set_aside in &todo.quarantine {
        let id = set_aside.place.part_id;
        report.notes.push(format!("part {id:016x} is in {QUARANTINE_DIR}: {}", set_aside.why));
    }
}

/// What the footer of a part file says.
pub(crate) fn read_facts(disk: &dyn Disk, path: &Path) -> Facts {
    let read = || -> Result<PartFacts> {
        let file = disk.open_read(path)?;
        let reader = PartReader::open(PartSource::file(file, path.to_path_buf()), None)?;
        let stats = ReadStats::default();
        let inputs = reader.inputs(&ReadContext::new(&stats))?.to_vec();
        let footer = reader.footer();
        Ok(PartFacts {
            part_id: footer.part_id,
            store_id: StoreId(footer.store_id.to_le_bytes()),
            day: i32::try_from(footer.day).unwrap_or(i32::MAX),
            level: footer.level,
            cut_lo: footer.cut_lo,
            cut_hi: footer.cut_hi,
            inputs,
            rows: footer.rows,
            min_time: Timestamp::from_nanos(footer.min_time),
            max_time: Timestamp::from_nanos(footer.max_time),
            length: footer.len,
            footer_checksum: reader.footer_checksum(),
            deletes_applied: footer.deletes_applied,
        })
    };
    read().map_or_else(|e| Facts::Unreadable(e.to_string()), Facts::Complete)
}
