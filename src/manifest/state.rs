//! What the edits of a manifest add up to.

use std::collections::{BTreeMap, HashMap, VecDeque};

use super::edit::{
    Bulk, Change, ClientKey, DamageMark, Delete, Edit, Hole, PartEntry, RetentionMark, StoreId,
};
use crate::error::Malformed;

/// Everything a store remembers about itself.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ManifestState {
    store_id: StoreId,
    /// By day, then by cut.
    parts: BTreeMap<(i32, u64), PartEntry>,
    holes: BTreeMap<(i32, u64), Hole>,
    /// Where parts and holes stand, by id.
    places: HashMap<u64, Place>,
    damage: BTreeMap<u64, DamageMark>,
    deletes: BTreeMap<u64, Delete>,
    client_keys: VecDeque<ClientKey>,
    dropped_days: BTreeMap<i32, u64>,
    ids_below: u64,
    sequences_below: u64,
    flushed_through: Option<u64>,
    retention: Option<RetentionMark>,
    segments: Segments,
    bulks: BTreeMap<u64, Bulk>,
}

/// The segments that the journal must have.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Segments {
    /// The sequence of the first row of each. That row was durable before its segment was listed.
    pub(crate) first_rows: BTreeMap<u64, u64>,
    /// The first number that none was ever listed under, nor under a higher one.
    pub(crate) below: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Part(i32, u64),
    Hole(i32, u64),
}

impl ManifestState {
    /// The state of a store without rows.
    pub(crate) fn new(store_id: StoreId) -> ManifestState {
        // Number 0 stands for "none" where an id or a sequence may be missing.
        ManifestState { store_id, ids_below: 1, sequences_below: 1, ..ManifestState::default() }
    }

    /// The id of the store.
    pub(crate) fn store_id(&self) -> StoreId {
        self.store_id
    }

    /// All listed parts, by day and cut.
    pub(crate) fn parts(&self) -> impl DoubleEndedIterator<Item = &PartEntry> {
        self.parts.values()
    }

    /// The listed parts of a day, by cut.
    pub(crate) fn parts_of(&self, day: i32) -> impl DoubleEndedIterator<Item = &PartEntry> {
        self.parts.range((day, 0)..=(day, u64::MAX)).map(|(_, part)| part)
    }

    /// The days that have listed parts, rising.
    #[cfg(test)]
    pub(crate) fn days(&self) -> impl Iterator<Item = i32> {
        let mut next = Some(i32::MIN);
        std::iter::from_fn(move || {
            let (&(day, _), _) = self.parts.range((next?, 0)..).next()?;
            next = day.checked_add(1);
            Some(day)
        })
    }

    /// The listed part of this id.
    pub(crate) fn part(&self, part_id: u64) -> Option<&PartEntry> {
        match self.places.get(&part_id)? {
            Place::Part(day, cut) => self.parts.get(&(*day, *cut)),
            Place::Hole(..) => None,
        }
    }

    /// All holes, by day and cut.
    pub(crate) fn holes(&self) -> impl Iterator<Item = &Hole> {
        self.holes.values()
    }

    /// The holes of a day, by cut.
    pub(crate) fn holes_of(&self, day: i32) -> impl Iterator<Item = &Hole> {
        self.holes.range((day, 0)..=(day, u64::MAX)).map(|(_, hole)| hole)
    }

    /// The hole that the loss of this part left.
    #[cfg(test)]
    pub(crate) fn hole(&self, part_id: u64) -> Option<&Hole> {
        match self.places.get(&part_id)? {
            Place::Hole(day, cut) => self.holes.get(&(*day, *cut)),
            Place::Part(..) => None,
        }
    }

    /// All damage marks, by id.
    pub(crate) fn damage(&self) -> impl Iterator<Item = &DamageMark> {
        self.damage.values()
    }

    /// The deletes not yet applied everywhere, by id.
    #[cfg(test)]
    pub(crate) fn deletes(&self) -> impl Iterator<Item = &Delete> {
        self.deletes.values()
    }

    /// The keys of appended batches, in the order in which they came.
    #[cfg(test)]
    pub(crate) fn client_keys(&self) -> impl Iterator<Item = &ClientKey> {
        self.client_keys.iter()
    }

    /// Rows of the day with sequences up to this one have been dropped.
    pub(crate) fn dropped_through(&self, day: i32) -> Option<u64> {
        self.dropped_days.get(&day).copied()
    }

    /// Whether a row of the day with this sequence needs no replay: a listed part, a hole or a
    /// dropped day covers it.
    pub(crate) fn covers(&self, day: i32, sequence: u64) -> bool {
        let part = self.parts.range((day, 0)..=(day, sequence)).next_back();
        let hole = self.holes.range((day, 0)..=(day, sequence)).next_back();
        part.is_some_and(|(_, part)| part.cut_hi >= sequence)
            || hole.is_some_and(|(_, hole)| hole.cut_hi >= sequence)
            || self.dropped_through(day).is_some_and(|cut| cut >= sequence)
    }

    /// The first id that must not be used.
    pub(crate) fn ids_below(&self) -> u64 {
        self.ids_below
    }

    /// The first sequence that must not be used.
    pub(crate) fn sequences_below(&self) -> u64 {
        self.sequences_below
    }

    /// No row with a sequence up to this one waits in memory or journal only.
    pub(crate) fn flushed_through(&self) -> Option<u64> {
        self.flushed_through
    }

    /// The segments that the journal must have.
    pub(crate) fn segments(&self) -> &Segments {
        &self.segments
    }

    /// The cuts of which parts were being written, by their lowest sequences.
    pub(crate) fn bulks(&self) -> &BTreeMap<u64, Bulk> {
        &self.bulks
    }

    /// Makes the changes of an edit true; all of them, or none when it fails.
    ///
    /// # Errors
    /// The edit contradicts the state: an id that is listed already or not at all, cut ranges of
    /// a day that overlap.
    pub(crate) fn apply(&mut self, edit: &Edit) -> Result<(), Malformed> {
        self.begin(edit).map(|_| self.finish(edit))
    }

    /// The first half of [`apply`](ManifestState::apply), which can fail and be rolled back.
    pub(super) fn begin(&mut self, edit: &Edit) -> Result<Undo, Malformed> {
        let mut undo = Vec::new();
        for change in &edit.changes {
            if let Err(e) = self.apply_placed(change, &mut undo) {
                self.roll_back(Undo(undo));
                return Err(e);
            }
        }
        Ok(Undo(undo))
    }

    /// The second half of [`apply`](ManifestState::apply), which cannot fail.
    pub(super) fn finish(&mut self, edit: &Edit) {
        edit.changes.iter().for_each(|change| self.apply_rest(change));
    }

    /// The changes of parts, and of what goes with them.
    fn apply_placed(&mut self, change: &Change, undo: &mut Vec<Step>) -> Result<(), Malformed> {
        match change {
            Change::AddPart(part) => self.add_part(part, undo)?,
            Change::DropPart { part_id } => self.drop_part(*part_id, undo)?,
            Change::DropDay { day, cut } => self.drop_day(*day, *cut, undo)?,
            Change::AddHole(hole) => self.add_hole(hole, undo)?,
            Change::DropHole { part_id } => self.drop_hole(*part_id, undo)?,
            Change::ForgetDay { day } => {
                undo.push(Step::DayChanged(*day, self.dropped_days.remove(day)));
            }
            Change::AddDamage(mark) => {
                let before = self.damage.insert(mark.id, mark.clone());
                undo.push(Step::MarkChanged(mark.id, before));
            }
            Change::DropDamage { id } => {
                undo.push(Step::MarkChanged(*id, self.damage.remove(id)));
            }
            _ => {}
        }
        Ok(())
    }

    /// The changes that cannot contradict the state and do not depend on parts.
    fn apply_rest(&mut self, change: &Change) {
        match change {
            Change::AddDelete(delete) => {
                self.deletes.insert(delete.id, delete.clone());
            }
            Change::DropDelete { id } => {
                self.deletes.remove(id);
            }
            Change::AddClientKey(key) => self.client_keys.push_back(key.clone()),
            Change::ForgetClientKeys { through } => {
                self.client_keys.retain(|key| key.sequence > *through);
            }
            Change::ReserveIds { below } => self.ids_below = self.ids_below.max(*below),
            Change::ReserveSequences { below } => {
                self.sequences_below = self.sequences_below.max(*below);
            }
            Change::FlushedThrough { through } => {
                self.flushed_through = self.flushed_through.max(Some(*through));
            }
            Change::Retention(mark) => self.retention = Some(*mark),
            Change::AddSegment { segment, first } => {
                self.segments.first_rows.insert(*segment, *first);
                self.segments.below = self.segments.below.max(segment.saturating_add(1));
            }
            Change::DropSegment { segment } => {
                self.segments.first_rows.remove(segment);
                self.segments.below = self.segments.below.max(segment.saturating_add(1));
            }
            Change::AddBulk(bulk) => {
                self.bulks.insert(bulk.cut_lo, *bulk);
            }
            Change::DropBulk { cut_lo } => {
                self.bulks.remove(cut_lo);
            }
            _ => {}
        }
    }

    /// Whether a part or hole of the day lies, even partly, in the cut range.
    fn overlaps(&self, day: i32, lo: u64, hi: u64) -> bool {
        let part = self.parts.range((day, 0)..=(day, hi)).next_back();
        let hole = self.holes.range((day, 0)..=(day, hi)).next_back();
        part.is_some_and(|(_, part)| part.cut_hi >= lo)
            || hole.is_some_and(|(_, hole)| hole.cut_hi >= lo)
    }

    fn add_part(&mut self, part: &PartEntry, undo: &mut Vec<Step>) -> Result<(), Malformed> {
        if part.cut_lo > part.cut_hi || part.min_time > part.max_time {
            return Err(Malformed("part with an empty cut or time range"));
        }
        if self.places.contains_key(&part.part_id) {
            return Err(Malformed("part is listed twice"));
        }
        if self.overlaps(part.day, part.cut_lo, part.cut_hi) {
            return Err(Malformed("part overlaps another one's cut range"));
        }
        let (day, cut) = (part.day, part.cut_lo);
        self.parts.insert((day, cut), part.clone());
        self.places.insert(part.part_id, Place::Part(day, cut));
        undo.push(Step::PartAdded(part.part_id));
        Ok(())
    }

    fn drop_part(&mut self, part_id: u64, undo: &mut Vec<Step>) -> Result<(), Malformed> {
        let part = self.take_part(part_id).ok_or(Malformed("part to drop is not listed"))?;
        let marks = self.damage.values().filter(|mark| mark.part_id == part_id);
        let marks: Vec<u64> = marks.map(|mark| mark.id).collect();
        for id in marks {
            undo.push(Step::MarkChanged(id, self.damage.remove(&id)));
        }
        undo.push(Step::PartDropped(part));
        Ok(())
    }

    fn take_part(&mut self, part_id: u64) -> Option<PartEntry> {
        let Some(Place::Part(day, cut)) = self.places.get(&part_id).copied() else { return None };
        self.places.remove(&part_id);
        self.parts.remove(&(day, cut))
    }

    fn add_hole(&mut self, hole: &Hole, undo: &mut Vec<Step>) -> Result<(), Malformed> {
        if hole.cut_lo > hole.cut_hi || hole.min_time > hole.max_time {
            return Err(Malformed("hole with an empty cut or time range"));
        }
        if self.part(hole.part_id).is_some() {
            self.drop_part(hole.part_id, undo)?;
        }
        if self.places.contains_key(&hole.part_id) {
            return Err(Malformed("hole is listed twice"));
        }
        if self.overlaps(hole.day, hole.cut_lo, hole.cut_hi) {
            return Err(Malformed("hole overlaps another cut range"));
        }
        let (day, cut) = (hole.day, hole.cut_lo);
        self.holes.insert((day, cut), hole.clone());
        self.places.insert(hole.part_id, Place::Hole(day, cut));
        undo.push(Step::HoleAdded(hole.part_id));
        Ok(())
    }

    fn drop_hole(&mut self, part_id: u64, undo: &mut Vec<Step>) -> Result<(), Malformed> {
        let hole = self.take_hole(part_id).ok_or(Malformed("hole to drop is not listed"))?;
        undo.push(Step::HoleDropped(hole));
        Ok(())
    }

    fn take_hole(&mut self, part_id: u64) -> Option<Hole> {
        let Some(Place::Hole(day, cut)) = self.places.get(&part_id).copied() else { return None };
        self.places.remove(&part_id);
        self.holes.remove(&(day, cut))
    }

    fn drop_day(&mut self, day: i32, cut: u64, undo: &mut Vec<Step>) -> Result<(), Malformed> {
        let parts = self.parts_of(day).filter(|part| part.cut_hi <= cut);
        let parts: Vec<u64> = parts.map(|part| part.part_id).collect();
        parts.into_iter().try_for_each(|part_id| self.drop_part(part_id, undo))?;
        let holes = self.holes_of(day).filter(|hole| hole.cut_hi <= cut);
        let holes: Vec<u64> = holes.map(|hole| hole.part_id).collect();
        holes.into_iter().try_for_each(|part_id| self.drop_hole(part_id, undo))?;
        let before = self.dropped_days.get(&day).copied();
        self.dropped_days.insert(day, before.map_or(cut, |before| before.max(cut)));
        undo.push(Step::DayChanged(day, before));
        Ok(())
    }

    /// The edit that makes this state of the state without rows.
    pub(crate) fn image(&self) -> Edit {
        let mut edit = Edit::default();
        let dropped = self.dropped_days.iter();
        edit.changes.extend(dropped.map(|(&day, &cut)| Change::DropDay { day, cut }));
        edit.changes.extend(self.parts.values().cloned().map(Change::AddPart));
        edit.changes.extend(self.holes.values().cloned().map(Change::AddHole));
        edit.changes.extend(self.damage.values().cloned().map(Change::AddDamage));
        edit.changes.extend(self.deletes.values().cloned().map(Change::AddDelete));
        edit.changes.extend(self.client_keys.iter().cloned().map(Change::AddClientKey));
        edit.changes.push(Change::ReserveIds { below: self.ids_below });
        edit.changes.push(Change::ReserveSequences { below: self.sequences_below });
        let flushed = self.flushed_through.map(|through| Change::FlushedThrough { through });
        edit.changes.extend(flushed);
        edit.changes.extend(self.retention.map(Change::Retention));
        // The last number is dropped again if it is no longer in use, which keeps it from being
        // Numbers of segments that are gone are not used again.
        let last = self.segments.below.checked_sub(1);
        edit.changes.extend(last.map(|segment| Change::DropSegment { segment }));
        let first_rows = self.segments.first_rows.iter();
        edit.changes
            .extend(first_rows.map(|(&segment, &first)| Change::AddSegment { segment, first }));
        edit.changes.extend(self.bulks.values().copied().map(Change::AddBulk));
        edit
    }

    /// Takes the first half of the application of an edit back.
    pub(super) fn roll_back(&mut self, undo: Undo) {
        for step in undo.0.into_iter().rev() {
            match step {
                Step::PartAdded(id) => {
                    self.take_part(id);
                }
                Step::HoleAdded(id) => {
                    self.take_hole(id);
                }
                Step::PartDropped(part) => {
                    let (day, cut) = (part.day, part.cut_lo);
                    self.places.insert(part.part_id, Place::Part(day, cut));
                    self.parts.insert((day, cut), part);
                }
                Step::HoleDropped(hole) => {
                    let (day, cut) = (hole.day, hole.cut_lo);
                    self.places.insert(hole.part_id, Place::Hole(day, cut));
                    self.holes.insert((day, cut), hole);
                }
                Step::MarkChanged(id, before) => {
                    self.damage.remove(&id);
                    self.damage.extend(before.map(|mark| (id, mark)));
                }
                Step::DayChanged(day, before) => {
                    self.dropped_days.remove(&day);
                    self.dropped_days.extend(before.map(|cut| (day, cut)));
                }
            }
        }
    }
}

/// What an edit has done so far, so that it can be taken back.
#[derive(Debug)]
pub(super) struct Undo(Vec<Step>);

#[derive(Debug)]
enum Step {
    PartAdded(u64),
    PartDropped(PartEntry),
    HoleAdded(u64),
    HoleDropped(Hole),
    /// A damage mark, as it was before.
    MarkChanged(u64, Option<DamageMark>),
    /// The mark of a dropped day, as it was before.
    DayChanged(i32, Option<u64>),
}
