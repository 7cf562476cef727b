//! A lost manifest is made anew from the footers of the parts.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::io::{Disk, is_not_found};
use crate::journal::{replay, segment_stores};
use crate::manifest::{
    Facts, Manifest, ManifestFollower, PartFacts, PartRef, Removal, Segments, StoreId, carry_out,
    list_files, part_path, reconcile,
};
use crate::part::{PartReader, PartSource, ReadContext, ReadStats, verify_part};

use super::damage::record_set_aside;
use super::open::read_facts;
use super::repair::RepairReport;

/// Whether the manifest of the store in `root` cannot be used at all. Changes nothing.
pub(crate) fn is_lost(disk: &Arc<dyn Disk>, root: &Path) -> Result<bool> {
    match ManifestFollower::open(Arc::clone(disk), root) {
        Ok(_) => Ok(false),
        Err(Error::NotAStore { .. } | Error::Corrupted(_)) => Ok(true),
        Err(e) => Err(e),
    }
}

/// Writes a manifest that lists the parts which hold rows that no other holds.
///
/// A part that was merged from others is used instead of them, since its footer names them; if it
/// is damaged inside and all of them are sound, they are used instead of it. Parts that overlap
/// without such a reason go to quarantine. Rows of the journal come back when the store is opened.
pub(crate) fn rebuild(disk: &Arc<dyn Disk>, root: &Path, report: &mut RepairReport) -> Result<()> {
    let listing = match list_files(disk.as_ref(), root) {
        Err(e) if is_not_found(&e) => return Err(not_a_store(root)),
        listing => listing?,
    };
    let mut found = HashMap::new();
    for file in &listing.parts {
        let path = part_path(root, file.place.day, file.place.part_id);
        found.insert(file.place, read_facts(disk.as_ref(), &path));
    }
    let store_id = store_of(disk.as_ref(), root, &found)?.ok_or_else(|| not_a_store(root))?;
    let withdrawn = put_inputs_first(disk.as_ref(), root, &mut found);
    let complete = || found.values().filter_map(complete_facts);
    let ids = found.keys().map(|place| place.part_id).max().unwrap_or(0);
    let mut sequences = complete().map(|f| f.cut_hi).max().unwrap_or(0);
    let store = u128::from_le_bytes(store_id.0);
    replay(disk.as_ref(), root, store, &Segments::default(), &mut |sequence, batch| {
        sequences = sequences.max(sequence.saturating_add(batch.len() as u64));
        Ok(())
    })?;
    let mut manifest = Manifest::create_anew(Arc::clone(disk), root, store_id, ids, sequences)?;
    let missing = || Facts::Unreadable("it is not there".to_owned());
    let decided = reconcile(manifest.state(), &listing.parts, &[], &mut |place| {
        found.get(&place).cloned().unwrap_or_else(missing)
    });
    let is_needless = |file: &Removal| withdrawn.contains(&file.place);
    record_set_aside(&mut manifest, &decided, is_needless)?;
    carry_out(disk.as_ref(), root, &mut manifest, &decided, &listing)?;
    report.manifest_rebuilt = true;
    report.parts_listed = decided.adopted.len() as u64;
    for file in &decided.quarantine {
        let path = part_path(root, file.place.day, file.place.part_id);
        report.set_aside.push((path, file.why.clone()));
    }
    Ok(())
}

fn not_a_store(root: &Path) -> Error {
    Error::NotAStore { path: root.to_path_buf() }
}

fn complete_facts(facts: &Facts) -> Option<&PartFacts> {
    match facts {
        Facts::Complete(facts) => Some(facts),
        Facts::Unreadable(_) => None,
    }
}

/// The store that most of the files belong to.
fn store_of(
    disk: &dyn Disk,
    root: &Path,
    found: &HashMap<PartRef, Facts>,
) -> Result<Option<StoreId>> {
    let mut votes: HashMap<u128, usize> = HashMap::new();
    let parts = found.values().filter_map(complete_facts);
    let parts = parts.map(|f| u128::from_le_bytes(f.store_id.0));
    for store in parts.chain(segment_stores(disk, root)?) {
        *votes.entry(store).or_default() += 1;
    }
    let most = votes.into_iter().max_by_key(|(store, votes)| (*votes, *store));
    Ok(most.map(|(store, _)| StoreId(store.to_le_bytes())))
}

/// Withdraws parts that are damaged inside where the parts they were merged from are all sound.
fn put_inputs_first(
    disk: &dyn Disk,
    root: &Path,
    found: &mut HashMap<PartRef, Facts>,
) -> HashSet<PartRef> {
    let merged = found.iter().filter(|(_, facts)| {
        complete_facts(facts).is_some_and(|facts| {
            let there = |id: &u64| {
                let place = PartRef { day: facts.day, part_id: *id };
                found.get(&place).and_then(complete_facts).is_some()
            };
            !facts.inputs.is_empty() && facts.inputs.iter().all(there)
        })
    });
    let merged: Vec<PartRef> = merged.map(|(place, _)| *place).collect();
    let mut sound: HashMap<PartRef, bool> = HashMap::new();
    let mut is_sound = |place: PartRef| {
        let path = part_path(root, place.day, place.part_id);
        *sound.entry(place).or_insert_with(|| verifies(disk, &path))
    };
    let mut withdrawn = HashSet::new();
    for place in merged {
        let inputs = found.get(&place).and_then(complete_facts).map(|f| f.inputs.clone());
        let inputs = inputs.unwrap_or_default();
        let all = |id: &u64| is_sound(PartRef { day: place.day, part_id: *id });
        if inputs.iter().all(all) && !is_sound(place) {
            withdrawn.insert(place);
        }
    }
    for place in &withdrawn {
        let why = "it is damaged, and the parts it was made of are sound".to_owned();
        found.insert(*place, Facts::Unreadable(why));
    }
    withdrawn
}

/// Whether every byte of a part is as it was written.
fn verifies(disk: &dyn Disk, path: &Path) -> bool {
    let read = || -> Result<bool> {
        let source = PartSource::file(disk.open_read(path)?, path.to_path_buf());
        let stats = ReadStats::default();
        let report = verify_part(&PartReader::open(source, None)?, &ReadContext::new(&stats))?;
        Ok(report.findings.is_empty())
    };
    read().unwrap_or(false)
}
