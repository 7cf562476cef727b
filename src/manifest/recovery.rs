//! What to do about the files found when a store is opened: the rule of provable removal.
//!
//! A file is removed only when every row in it is provably held elsewhere: a listed part whose
//! footer verifies names it as an input; or its inputs are all listed and verify, so that it
//! never came to be needed; or its day was dropped; or none of its rows was ever acknowledged,
//! since it is one of several parts that were to be listed together, and others of them are not
//! there. A complete part that is not listed and whose
//! inputs are gone was listed once (inputs are removed only after the edit that lists their
//! merge is durable), or holds rows that only the journal has besides: it is adopted. What is
//! neither goes to quarantine, never away.
//!
//! [`reconcile`] is a function of the state, the listing and the footers, and does nothing
//! itself. Its caller makes the edit durable first, and then moves and removes the files.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::edit::{Change, Edit, PartEntry, PartFacts};
use super::state::ManifestState;

/// What is known of the footer of a part file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Facts {
    /// The footer verifies.
    Complete(PartFacts),
    /// There is no footer that verifies; why.
    Unreadable(String),
}

/// A part file by its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct PartRef {
    /// The day of its directory.
    pub(crate) day: i32,
    /// The id in its name.
    pub(crate) part_id: u64,
}

/// A part file in the listing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FoundPart {
    /// Where it is.
    pub(crate) place: PartRef,
    /// Length of the file in bytes.
    pub(crate) length: u64,
}

/// A file to remove or to quarantine, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Removal {
    /// The file.
    pub(crate) place: PartRef,
    /// Why it is not used.
    pub(crate) why: String,
}

/// What is to be done, in this order: the edit, durably; the quarantines; the removals.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Reconciled {
    /// Adopts parts, drops what they replace, records holes; empty if all is as listed.
    pub(crate) edit: Edit,
    /// Files whose rows are provably held elsewhere, or were never acknowledged.
    pub(crate) remove: Vec<Removal>,
    /// Files that are not listed because the writer died before it could list, and acknowledge,
    /// all that belong together: some are removed, some adopted.
    pub(crate) leftovers: Vec<PartRef>,
    /// Files that cannot be used and are not provably needless.
    pub(crate) quarantine: Vec<Removal>,
    /// Parts that are listed again by the edit.
    pub(crate) adopted: Vec<u64>,
    /// Listed parts whose rows are lost; each leaves a hole.
    pub(crate) lost: Vec<u64>,
    /// Listed parts that a loss of power took before they were promised; they leave none.
    pub(crate) lost_unsynced: Vec<u64>,
}

/// Compares what is listed with what is there.
///
/// `unsynced` are the parts of [`ManifestReport::unsynced_parts`]. `facts` reads the footer of a
/// file; it is asked only about files that are not as listed, and about listed parts that must
/// prove something: of a clean store it reads nothing. Temporary files are not its business:
/// they can always be removed.
///
/// [`ManifestReport::unsynced_parts`]: super::ManifestReport::unsynced_parts
pub(crate) fn reconcile(
    state: &ManifestState,
    found: &[FoundPart],
    unsynced: &[u64],
    facts: &mut dyn FnMut(PartRef) -> Facts,
) -> Reconciled {
    let mut work = Work::new(state, found, facts);
    work.judge_strays();
    work.judge_listed(unsynced);
    work.finish()
}

/// A listed part or hole as it stands while strays are judged.
#[derive(Debug, Clone)]
struct Listed {
    day: i32,
    cut_lo: u64,
    cut_hi: u64,
    /// The part as listed; `None` for a hole.
    part: Option<PartEntry>,
    /// The adopted part that takes its place.
    replaced_by: Option<u64>,
}

struct Work<'a> {
    state: &'a ManifestState,
    found: HashMap<PartRef, u64>,
    read_facts: &'a mut dyn FnMut(PartRef) -> Facts,
    facts: HashMap<PartRef, Facts>,
    listed: BTreeMap<u64, Listed>,
    adopted: BTreeMap<u64, PartFacts>,
    result: Reconciled,
}

/// What becomes of a file that is not listed.
enum Verdict {
    Adopt,
    Remove(String),
    Quarantine(String),
}

impl<'a> Work<'a> {
    fn new(
        state: &'a ManifestState,
        found: &[FoundPart],
        read_facts: &'a mut dyn FnMut(PartRef) -> Facts,
    ) -> Work<'a> {
        let mut listed = BTreeMap::new();
        for part in state.parts() {
            let (day, cut_lo, cut_hi) = (part.day, part.cut_lo, part.cut_hi);
            let part_id = part.part_id;
            let part = Some(part.clone());
            listed.insert(part_id, Listed { day, cut_lo, cut_hi, part, replaced_by: None });
        }
        for hole in state.holes() {
            let (day, cut_lo, cut_hi) = (hole.day, hole.cut_lo, hole.cut_hi);
            let entry = Listed { day, cut_lo, cut_hi, part: None, replaced_by: None };
            listed.insert(hole.part_id, entry);
        }
        Work {
            state,
            found: found.iter().map(|file| (file.place, file.length)).collect(),
            read_facts,
            facts: HashMap::new(),
            listed,
            adopted: BTreeMap::new(),
            result: Reconciled::default(),
        }
    }

    /// The footer of a file, if the file is where its footer says and belongs to this store.
    fn complete(&mut self, place: PartRef) -> Result<PartFacts, String> {
        let Some(&length) = self.found.get(&place) else { return Err("it is missing".into()) };
        let read = &mut self.read_facts;
        match self.facts.entry(place).or_insert_with(|| read(place)) {
            Facts::Unreadable(why) => Err(why.clone()),
            Facts::Complete(facts) if facts.store_id != self.state.store_id() => {
                Err(format!("it belongs to the store {}", facts.store_id))
            }
            Facts::Complete(facts)
                if (facts.day, facts.part_id, facts.length)
                    != (place.day, place.part_id, length) =>
            {
                Err("its footer describes another file".into())
            }
            Facts::Complete(facts) if facts.cut_lo > facts.cut_hi => {
                Err("its footer has an empty cut range".into())
            }
            Facts::Complete(facts) if facts.min_time > facts.max_time => {
                Err("its footer has an empty time range".into())
            }
            Facts::Complete(facts) => Ok(facts.clone()),
        }
    }

    /// Whether the file of a listed part is there with its length. The footer is read only
    /// where something hangs on it.
    fn is_there(&self, part: &PartEntry) -> bool {
        let place = PartRef { day: part.day, part_id: part.part_id };
        self.found.get(&place) == Some(&part.length)
    }

    /// Whether a listed part is there and its footer is the one that the manifest names.
    fn verifies(&mut self, part: &PartEntry) -> bool {
        let place = PartRef { day: part.day, part_id: part.part_id };
        self.complete(place).is_ok_and(|facts| facts.entry() == *part)
    }

    /// Files that are not listed, those that cover most first: they replace the others.
    fn judge_strays(&mut self) {
        let is_stray = |place: &PartRef| {
            self.state.part(place.part_id).is_none_or(|part| part.day != place.day)
        };
        let mut strays: Vec<PartRef> = self.found.keys().copied().filter(is_stray).collect();
        strays.sort_unstable();
        let mut complete = Vec::new();
        for place in strays {
            match self.complete(place) {
                Ok(facts) => complete.push(facts),
                Err(why) => self.result.quarantine.push(Removal { place, why }),
            }
        }
        complete.sort_by_key(|facts| {
            std::cmp::Reverse((facts.cut_hi - facts.cut_lo, facts.level, facts.part_id))
        });
        let unlisted = self.unlisted_bulks(&complete);
        for facts in complete {
            let place = PartRef { day: facts.day, part_id: facts.part_id };
            if let Some(whole) = unlisted.get(&place) {
                self.result.leftovers.push(place);
                if !whole {
                    let why = "its ingest was never acknowledged".into();
                    self.result.remove.push(Removal { place, why });
                    continue;
                }
            }
            match self.judge(&facts) {
                Verdict::Adopt => self.adopt(facts),
                Verdict::Remove(why) => self.result.remove.push(Removal { place, why }),
                Verdict::Quarantine(why) => self.result.quarantine.push(Removal { place, why }),
            }
        }
    }

    /// The files of cuts whose parts were to be listed together and are not, and whether all of
    /// such a cut are there: then the edit that lists them may be lost.
    fn unlisted_bulks(&self, strays: &[PartFacts]) -> HashMap<PartRef, bool> {
        let mut out = HashMap::new();
        for bulk in self.state.bulks().values() {
            let own = (bulk.cut_lo, bulk.cut_hi);
            let is_of = |f: &&PartFacts| (f.cut_lo, f.cut_hi) == own && f.inputs.is_empty();
            let there: Vec<&PartFacts> = strays.iter().filter(is_of).collect();
            // Nothing is merged across a cut that is being written.
            let stray_cuts = strays.iter().map(|f| (f.cut_lo, f.cut_hi));
            let listed_cuts = self.listed.values().map(|l| (l.cut_lo, l.cut_hi));
            let mut others = stray_cuts.chain(listed_cuts).filter(|cut| *cut != own);
            let merged = others.any(|(lo, hi)| lo <= own.0 && own.1 <= hi);
            let whole = merged || there.len() as u64 >= bulk.parts;
            let places = there.iter().map(|f| PartRef { day: f.day, part_id: f.part_id });
            out.extend(places.map(|place| (place, whole)));
        }
        out
    }

    /// What becomes of a complete file that is not listed.
    fn judge(&mut self, stray: &PartFacts) -> Verdict {
        if self.state.dropped_through(stray.day).is_some_and(|cut| stray.cut_hi <= cut) {
            return Verdict::Remove("its day was dropped".into());
        }
        if let Some(by) = self.named_as_input(stray) {
            return Verdict::Remove(format!("part {by:016x} holds its rows"));
        }
        if self.listed.get(&stray.part_id).is_some_and(|listed| listed.day != stray.day) {
            return Verdict::Quarantine("its id is listed for another day".into());
        }
        let mut was_listed = false;
        let mut all_listed = !stray.inputs.is_empty();
        for &input in &stray.inputs {
            let place = PartRef { day: stray.day, part_id: input };
            // Inputs are removed only when the edit that lists their merge is durable.
            was_listed |= !self.found.contains_key(&place);
            let part = self.state.part(input).cloned();
            all_listed &= part.is_some_and(|part| self.verifies(&part))
                && self.listed.get(&input).is_some_and(|listed| listed.replaced_by.is_none());
        }
        if all_listed {
            return Verdict::Remove("its inputs are listed and hold its rows".into());
        }
        match self.conflict(stray, was_listed) {
            None => Verdict::Adopt,
            Some(with) => Verdict::Quarantine(format!("it overlaps part {with:016x}")),
        }
    }

    /// The part in use that names the stray as an input and verifies.
    fn named_as_input(&mut self, stray: &PartFacts) -> Option<u64> {
        let adopted = self.adopted.values().find(|part| part.inputs.contains(&stray.part_id));
        if let Some(part) = adopted {
            return Some(part.part_id);
        }
        let state = self.state;
        let covering = state
            .parts_of(stray.day)
            .filter(|part| part.cut_lo <= stray.cut_lo && stray.cut_hi <= part.cut_hi);
        for part in covering {
            let place = PartRef { day: part.day, part_id: part.part_id };
            let names = self
                .complete(place)
                .is_ok_and(|facts| facts.entry() == *part && facts.inputs.contains(&stray.part_id));
            if names {
                return Some(part.part_id);
            }
        }
        None
    }

    /// The listed or adopted part, or the hole, that a stray can neither stand beside nor
    /// replace. It replaces its inputs; itself, if it was thought lost; what it covers, if that
    /// is a hole or missing, or if the stray was listed once (`was_listed`).
    fn conflict(&self, stray: &PartFacts, was_listed: bool) -> Option<u64> {
        let overlaps = |lo: u64, hi: u64| lo <= stray.cut_hi && stray.cut_lo <= hi;
        let adopted = self.adopted.values().find(|part| {
            part.part_id == stray.part_id
                || (part.day == stray.day && overlaps(part.cut_lo, part.cut_hi))
        });
        if let Some(part) = adopted {
            return Some(part.part_id);
        }
        let stands = |(id, listed): &(&u64, &Listed)| {
            let covered = stray.cut_lo <= listed.cut_lo && listed.cut_hi <= stray.cut_hi;
            let there = listed.part.as_ref().is_some_and(|part| self.is_there(part));
            let replaced = **id == stray.part_id
                || stray.inputs.contains(id)
                || (covered && (was_listed || !there));
            listed.day == stray.day
                && listed.replaced_by.is_none()
                && overlaps(listed.cut_lo, listed.cut_hi)
                && !(replaced && covered)
        };
        self.listed.iter().find(stands).map(|(id, _)| *id)
    }

    fn adopt(&mut self, facts: PartFacts) {
        for (id, listed) in &mut self.listed {
            let covered = facts.cut_lo <= listed.cut_lo && listed.cut_hi <= facts.cut_hi;
            if listed.day == facts.day && (covered || *id == facts.part_id) {
                listed.replaced_by.get_or_insert(facts.part_id);
            }
        }
        self.adopted.insert(facts.part_id, facts);
    }

    /// Listed parts: as they should be, replaced, or lost.
    fn judge_listed(&mut self, unsynced: &[u64]) {
        let unsynced: HashSet<u64> = unsynced.iter().copied().collect();
        let listed = std::mem::take(&mut self.listed);
        for (part_id, listed) in listed {
            let Some(part) = listed.part else {
                if listed.replaced_by.is_some() {
                    self.result.edit.push(Change::DropHole { part_id });
                }
                continue;
            };
            let place = PartRef { day: part.day, part_id };
            if let Some(by) = listed.replaced_by {
                self.result.edit.push(Change::DropPart { part_id });
                self.put_replaced_away(place, by);
            } else if !self.is_there(&part) {
                if self.found.contains_key(&place) {
                    let why = "its length is not the listed one".into();
                    self.result.quarantine.push(Removal { place, why });
                }
                if unsynced.contains(&part_id) {
                    self.result.edit.push(Change::DropPart { part_id });
                    self.result.lost_unsynced.push(part_id);
                } else {
                    self.result.edit.push(Change::AddHole(part.hole()));
                    self.result.lost.push(part_id);
                }
            }
        }
    }

    /// The file of a listed part that an adopted one replaces.
    fn put_replaced_away(&mut self, place: PartRef, by: u64) {
        if !self.found.contains_key(&place) {
            return;
        }
        let named = self.adopted.get(&by).is_some_and(|part| part.inputs.contains(&place.part_id));
        let why = format!("part {by:016x} holds its rows");
        let list = if named { &mut self.result.remove } else { &mut self.result.quarantine };
        list.push(Removal { place, why });
    }

    /// Adds the adopted parts behind what they replace, and the reservations they need.
    fn finish(mut self) -> Reconciled {
        let mut result = self.result;
        let adopted = std::mem::take(&mut self.adopted);
        let bulks = self.state.bulks().keys();
        result.edit.changes.extend(bulks.map(|&cut_lo| Change::DropBulk { cut_lo }));
        let id = self.found.keys().map(|place| place.part_id).max();
        let sequence = adopted.values().map(|part| part.cut_hi).max();
        for (part_id, facts) in adopted {
            result.edit.push(Change::AddPart(facts.entry()));
            result.adopted.push(part_id);
        }
        // A file that is there used its id, whatever the manifest has forgotten.
        let below = id.map_or(0, |id| id.saturating_add(1));
        if below > self.state.ids_below() {
            result.edit.push(Change::ReserveIds { below });
        }
        let below = sequence.map_or(0, |sequence| sequence.saturating_add(1));
        if below > self.state.sequences_below() {
            result.edit.push(Change::ReserveSequences { below });
        }
        result
    }
}
