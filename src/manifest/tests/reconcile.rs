//! The rule of provable removal: a table of cases, and random histories with stale manifests.
#![expect(clippy::cloned_ref_to_slice_refs, reason = "cases of one file read like the others")]

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::*;

/// A file: its facts, or `None` where the footer cannot be read.
type Files = BTreeMap<PartRef, Option<PartFacts>>;

fn facts(day: i32, part_id: u64, cuts: (u64, u64), inputs: &[u64]) -> PartFacts {
    let entry = part(day, part_id, cuts.0, cuts.1);
    PartFacts {
        part_id,
        store_id: ID,
        day,
        level: u8::from(!inputs.is_empty()),
        cut_lo: cuts.0,
        cut_hi: cuts.1,
        inputs: inputs.to_vec(),
        rows: entry.rows,
        min_time: entry.min_time,
        max_time: entry.max_time,
        length: entry.length,
        footer_checksum: entry.footer_checksum,
        deletes_applied: 0,
    }
}

fn place(facts: &PartFacts) -> PartRef {
    PartRef { day: facts.day, part_id: facts.part_id }
}

fn files(all: &[PartFacts]) -> Files {
    all.iter().map(|facts| (place(facts), Some(facts.clone()))).collect()
}

fn listed(all: &[PartFacts]) -> ManifestState {
    let changes = all.iter().map(|facts| Change::AddPart(facts.entry()));
    fold(&[Edit { changes: changes.collect() }, Edit::of(Change::ReserveIds { below: 1_000 })])
}

fn run(state: &ManifestState, files: &Files, unsynced: &[u64]) -> Reconciled {
    let found: Vec<FoundPart> = files
        .iter()
        .map(|(&place, facts)| {
            let length = facts.as_ref().map_or(1_000 + place.part_id, |facts| facts.length);
            FoundPart { place, length }
        })
        .collect();
    let mut read = |place| match files.get(&place) {
        Some(Some(facts)) => Facts::Complete(facts.clone()),
        _ => Facts::Unreadable("no footer".into()),
    };
    let result = reconcile(state, &found, unsynced, &mut read);
    state.clone().apply(&result.edit).expect("the edit fits the state");
    result
}

fn ids(removals: &[Removal]) -> Vec<u64> {
    let mut ids: Vec<u64> = removals.iter().map(|removal| removal.place.part_id).collect();
    ids.sort_unstable();
    ids
}

/// What came out: adopted, removed, quarantined, lost.
fn outcome(result: &Reconciled) -> (Vec<u64>, Vec<u64>, Vec<u64>, Vec<u64>) {
    let Reconciled { adopted, remove, quarantine, lost, .. } = result;
    (adopted.clone(), ids(remove), ids(quarantine), lost.clone())
}

fn check(
    state: &ManifestState,
    files: &Files,
    want: (&[u64], &[u64], &[u64], &[u64]),
) -> Reconciled {
    let result = run(state, files, &[]);
    let want = (want.0.to_vec(), want.1.to_vec(), want.2.to_vec(), want.3.to_vec());
    assert_eq!(outcome(&result), want);
    result
}

#[test]
fn a_clean_store_reads_no_footer() {
    let all = [facts(0, 1, (0, 9), &[]), facts(0, 2, (10, 19), &[]), facts(1, 3, (0, 9), &[])];
    let found: Vec<FoundPart> =
        all.iter().map(|f| FoundPart { place: place(f), length: f.length }).collect();
    let mut read = |_| panic!("a footer was read");
    let result = reconcile(&listed(&all), &found, &[], &mut read);
    assert_eq!(result, Reconciled::default());
}

#[test]
fn listed_and_missing_leaves_a_hole() {
    let (a, b) = (facts(0, 1, (0, 9), &[]), facts(0, 2, (10, 19), &[]));
    let state = listed(&[a.clone(), b.clone()]);
    let result = check(&state, &files(&[b.clone()]), (&[], &[], &[], &[1]));
    let mut after = state.clone();
    after.apply(&result.edit).unwrap();
    assert_eq!(after.hole(1), Some(&a.entry().hole()));
    // Unless nobody was promised that it would be there.
    let result = run(&state, &files(&[b.clone()]), &[1]);
    assert_eq!((result.lost_unsynced, result.lost), (vec![1], vec![]));
    let mut after = state.clone();
    after.apply(&result.edit).unwrap();
    assert!(after.hole(1).is_none() && after.part(1).is_none());
    // A file of another length than listed is set aside as well.
    let torn = PartFacts { length: 7, ..a };
    check(&state, &files(&[torn, b]), (&[], &[], &[1], &[1]));
}

#[test]
fn a_lost_part_that_is_found_again_fills_its_hole() {
    let a = facts(0, 1, (0, 9), &[]);
    let state = fold(&[Edit::of(Change::AddHole(a.entry().hole()))]);
    let result = check(&state, &files(&[a]), (&[1], &[], &[], &[]));
    assert!(result.edit.changes.contains(&Change::DropHole { part_id: 1 }));
}

#[test]
fn merge_that_was_not_listed_goes_while_its_inputs_stand() {
    let (a, b) = (facts(0, 1, (0, 9), &[]), facts(0, 2, (10, 19), &[]));
    let merged = facts(0, 3, (0, 19), &[1, 2]);
    let state = listed(&[a.clone(), b.clone()]);
    check(&state, &files(&[a.clone(), b.clone(), merged.clone()]), (&[], &[3], &[], &[]));
    // One input cannot be read: the merge holds its rows.
    let mut found = files(&[a.clone(), b, merged.clone()]);
    found.insert(PartRef { day: 0, part_id: 2 }, None);
    let result = check(&state, &found, (&[3], &[1, 2], &[], &[]));
    assert!(result.edit.changes.contains(&Change::DropPart { part_id: 1 }));
    // One input is gone.
    check(&state, &files(&[a, merged]), (&[3], &[1], &[], &[]));
}

#[test]
fn leftover_inputs_of_a_listed_merge_go_only_if_it_verifies() {
    let (a, b) = (facts(0, 1, (0, 9), &[]), facts(0, 2, (10, 19), &[]));
    let merged = facts(0, 3, (0, 19), &[1, 2]);
    let state = listed(&[merged.clone()]);
    let mut found = files(&[a, b, merged.clone()]);
    check(&state, &found, (&[], &[1, 2], &[], &[]));
    found.insert(place(&merged), None);
    check(&state, &found, (&[], &[], &[1, 2], &[]));
    let other = PartFacts { footer_checksum: 5, ..merged.clone() };
    found.insert(place(&merged), Some(other));
    check(&state, &found, (&[], &[], &[1, 2], &[]));
    // The merge is gone: the manifest calls its rows lost, and keeps what may be some of them.
    found.remove(&place(&merged));
    check(&state, &found, (&[], &[], &[1, 2], &[3]));
}

#[test]
fn unlisted_parts_are_adopted_when_nothing_else_holds_their_rows() {
    let (a, b) = (facts(0, 1, (0, 9), &[]), facts(0, 2, (10, 19), &[]));
    let merged = facts(0, 3, (0, 19), &[1, 2]);
    // A flush whose edit was not written.
    check(&listed(&[a.clone()]), &files(&[a.clone(), b.clone()]), (&[2], &[], &[], &[]));
    // A merge listed in a manifest that is lost; the one at hand lists its inputs, or nothing.
    check(&listed(&[a.clone(), b.clone()]), &files(&[merged.clone()]), (&[3], &[], &[], &[]));
    check(&listed(&[]), &files(&[merged.clone()]), (&[3], &[], &[], &[]));
    let all = files(&[a.clone(), b.clone(), merged]);
    check(&listed(&[]), &all, (&[3], &[1, 2], &[], &[]));
    // A merge of a merge: the manifest at hand knows neither of them.
    let c = facts(0, 4, (20, 29), &[]);
    let twice = facts(0, 5, (0, 29), &[3, 4]);
    check(&listed(&[a, b, c]), &files(&[twice]), (&[5], &[], &[], &[]));
}

#[test]
fn what_nothing_proves_goes_to_quarantine() {
    let a = facts(0, 1, (0, 9), &[]);
    let state = listed(&[a.clone()]);
    let cases = [
        // The same rows flushed again under another id, or some of them.
        facts(0, 2, (0, 9), &[]),
        facts(0, 2, (5, 14), &[]),
        facts(0, 2, (5, 14), &[77]),
        // Of another store; of another place.
        PartFacts { store_id: StoreId([8; 16]), ..facts(0, 2, (10, 19), &[]) },
        PartFacts { day: 1, ..facts(0, 2, (10, 19), &[]) },
        PartFacts { part_id: 3, ..facts(0, 2, (10, 19), &[]) },
        PartFacts { cut_lo: 20, ..facts(0, 2, (10, 19), &[]) },
    ];
    for case in cases {
        let mut found = files(&[a.clone()]);
        found.insert(PartRef { day: 0, part_id: 2 }, Some(case));
        check(&state, &found, (&[], &[], &[2], &[]));
    }
    let mut found = files(&[a]);
    found.insert(PartRef { day: 0, part_id: 2 }, None);
    check(&state, &found, (&[], &[], &[2], &[]));
    // The id of a listed part in the directory of another day.
    let elsewhere = facts(1, 1, (0, 9), &[]);
    found.insert(PartRef { day: 1, part_id: 1 }, Some(elsewhere));
    check(&state, &found, (&[], &[], &[1, 2], &[]));
}

#[test]
fn files_of_a_dropped_day_go() {
    let (a, b) = (facts(0, 1, (0, 9), &[]), facts(0, 2, (10, 19), &[]));
    let state = fold(&[Edit::of(Change::DropDay { day: 0, cut: 9 })]);
    check(&state, &files(&[a, b]), (&[2], &[1], &[], &[]));
}

#[test]
fn found_ids_and_adopted_sequences_stay_used() {
    let state = fold(&[]);
    let mut found = files(&[facts(0, 50, (7, 99), &[])]);
    found.insert(PartRef { day: 0, part_id: 60 }, None);
    let mut after = state.clone();
    after.apply(&run(&state, &found, &[]).edit).unwrap();
    assert_eq!((after.ids_below(), after.sequences_below()), (61, 100));
}

/// A store that flushes, merges and drops; it remembers every state its manifest had.
struct History {
    states: Vec<ManifestState>,
    files: Files,
    /// Files that were to be removed and are still there.
    leftover: BTreeSet<PartRef>,
    /// The day and tens of cut of all rows there ever were.
    flushed: BTreeSet<(i32, u64)>,
    next_id: u64,
    next_cut: u64,
}

impl History {
    fn now(&self) -> &ManifestState {
        self.states.last().unwrap()
    }

    fn publish(&mut self, day: i32, cuts: (u64, u64), inputs: &[u64]) -> PartFacts {
        self.next_id += 1;
        let facts = facts(day, self.next_id, cuts, inputs);
        self.files.insert(place(&facts), Some(facts.clone()));
        facts
    }

    fn edit(&mut self, edit: &Edit) {
        let mut state = self.now().clone();
        state.apply(edit).unwrap();
        self.states.push(state);
    }

    fn flush(&mut self, day: i32, listed: bool) {
        let cuts = (self.next_cut, self.next_cut + 9);
        let facts = self.publish(day, cuts, &[]);
        self.flushed.insert((day, cuts.0 / 10));
        if listed {
            self.next_cut += 10;
            self.edit(&Edit::of(Change::AddPart(facts.entry())));
        }
    }

    /// Merges up to three parts of a day; `removed` tells which inputs get removed.
    fn merge(&mut self, day: i32, listed: bool, removed: u8) {
        let inputs: Vec<PartEntry> = self.now().parts_of(day).take(3).cloned().collect();
        let [first, .., last] = inputs.as_slice() else { return };
        let cuts = (first.cut_lo, last.cut_hi);
        let mut named: Vec<u64> = inputs.iter().map(|part| part.part_id).collect();
        // Inputs of inputs are named until they are gone.
        for part in &inputs {
            let place = PartRef { day, part_id: part.part_id };
            let earlier = self.files[&place].as_ref().unwrap().inputs.clone();
            named.extend(
                earlier
                    .into_iter()
                    .filter(|&part_id| self.leftover.contains(&PartRef { day, part_id })),
            );
        }
        let facts = self.publish(day, cuts, &named);
        if !listed {
            return;
        }
        let drops = inputs.iter().map(|part| Change::DropPart { part_id: part.part_id });
        let mut edit = Edit { changes: drops.collect() };
        edit.push(Change::AddPart(facts.entry()));
        self.edit(&edit);
        for (bit, part_id) in named.into_iter().enumerate() {
            self.remove(PartRef { day, part_id }, removed >> (bit % 8) & 1 == 1);
        }
    }

    fn remove(&mut self, place: PartRef, now: bool) {
        if now {
            self.files.remove(&place);
            self.leftover.remove(&place);
        } else if self.files.contains_key(&place) {
            self.leftover.insert(place);
        }
    }

    fn drop_day(&mut self, day: i32, removed: u8) {
        let parts: Vec<u64> = self.now().parts_of(day).map(|part| part.part_id).collect();
        let cut = self.next_cut.saturating_sub(1);
        self.edit(&Edit::of(Change::DropDay { day, cut }));
        for (bit, part_id) in parts.into_iter().enumerate() {
            self.remove(PartRef { day, part_id }, removed >> (bit % 8) & 1 == 1);
        }
    }
}

/// The (day, tens of cut) that the parts of a state hold, and how often.
fn rows(parts: impl Iterator<Item = (i32, u64, u64)>) -> HashMap<(i32, u64), u32> {
    let mut rows = HashMap::new();
    for (day, lo, hi) in parts {
        (lo / 10..=hi / 10).for_each(|ten| *rows.entry((day, ten)).or_default() += 1);
    }
    rows
}

fn rows_of(state: &ManifestState) -> HashMap<(i32, u64), u32> {
    rows(state.parts().map(|part| (part.day, part.cut_lo, part.cut_hi)))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Whatever edit the manifest at hand ends with, and wherever the store stopped: every live
    /// row is held by exactly one listed file that is there, and every removed file's rows are.
    #[test]
    fn live_rows_survive_stale_manifests(
        steps in prop::collection::vec((0u8..10, 0i32..2, any::<u8>()), 1..25),
        last in (0u8..3, 0i32..2),
        stale in 0usize..8,
    ) {
        let mut history = History {
            states: vec![fold(&[])],
            files: Files::new(),
            leftover: BTreeSet::new(),
            flushed: BTreeSet::new(),
            next_id: 0,
            next_cut: 0,
        };
        for (kind, day, removed) in steps {
            match kind {
                0..=5 => history.flush(day, true),
                6..=8 => history.merge(day, true, removed),
                _ => history.drop_day(day, removed),
            }
        }
        let (kind, day) = last;
        match kind {
            0 => {}
            // Stopped between publishing a file and listing it.
            1 => history.flush(day, false),
            _ => history.merge(day, false, 0),
        }
        let at_hand = &history.states[history.states.len().saturating_sub(1 + stale)];
        let result = run(at_hand, &history.files, &[]);
        let mut after = at_hand.clone();
        after.apply(&result.edit).unwrap();
        let gone: BTreeSet<PartRef> =
            result.remove.iter().chain(&result.quarantine).map(|removal| removal.place).collect();
        prop_assert_eq!(gone.len(), result.remove.len() + result.quarantine.len());
        for part in after.parts() {
            let place = PartRef { day: part.day, part_id: part.part_id };
            prop_assert!(history.files.contains_key(&place) && !gone.contains(&place));
        }
        let held = rows_of(&after);
        prop_assert!(held.values().all(|&times| times == 1));
        let live = rows_of(history.now());
        for row in live.keys().filter(|row| history.flushed.contains(row)) {
            prop_assert!(held.contains_key(row), "row {:?} is lost", row);
        }
        for removal in &result.remove {
            let facts = history.files[&removal.place].as_ref().unwrap();
            let dropped = at_hand.dropped_through(facts.day).is_some_and(|cut| facts.cut_hi <= cut);
            let mut all = rows([(facts.day, facts.cut_lo, facts.cut_hi)].into_iter());
            all.retain(|row, _| history.flushed.contains(row));
            prop_assert!(dropped || all.keys().all(|row| held.contains_key(row)));
        }
        // Nothing more is found to do the next time.
        let left: Files =
            history.files.into_iter().filter(|(place, _)| !gone.contains(place)).collect();
        let again = run(&after, &left, &[]);
        prop_assert_eq!(again, Reconciled::default());
    }
}
