//! Field names seen so far, each with what is to be done with its values.

use std::hash::BuildHasher;

use hashbrown::HashTable;

use crate::record::NameId;

/// Number of a name in a [`NameTable`].
pub(crate) type Slot = u32;

/// What becomes of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// It is stored.
    Field,
    /// It is stored; it becomes the message if the row has no other.
    Message,
    /// It is the label of that number.
    Label(u32),
    /// It is the time.
    Time,
    /// It is the time if the time field is missing.
    SpareTime,
    /// It is the text of a stream.
    Stream,
    /// It is the id of a stream.
    StreamId,
}

#[derive(Debug)]
pub(crate) struct Name {
    /// The name.
    pub(crate) text: Box<str>,
    /// The name and a quote, as it stands in JSON after the opening one; empty if it needs
    /// escapes there.
    quoted: Box<[u8]>,
    /// What becomes of the field.
    pub(crate) role: Role,
    /// The name's number in the batch of generation `batch`.
    pub(crate) id: NameId,
    /// The batch for which `id` holds.
    pub(crate) batch: u64,
    /// The last row that had the name.
    pub(crate) row: u64,
    /// The names that followed this one most recently.
    next: [Slot; NEXT],
}

/// The names of one input. Finding a name is quick where names follow each other as they did
/// before: the names that followed the last one are compared first.
#[derive(Debug, Default)]
pub(crate) struct NameTable {
    names: Vec<Name>,
    table: HashTable<Slot>,
    hasher: foldhash::fast::RandomState,
    /// The first names of rows.
    first: [Slot; NEXT],
}

/// How many followers of a name are remembered.
const NEXT: usize = 4;

/// Stands before the first name of a row.
pub(crate) const START: Slot = Slot::MAX;

impl NameTable {
    /// The name of a slot.
    #[inline]
    pub(crate) fn get_mut(&mut self, slot: Slot) -> Option<&mut Name> {
        self.names.get_mut(slot as usize)
    }

    /// The name of a slot.
    pub(crate) fn get(&self, slot: Slot) -> Option<&Name> {
        self.names.get(slot as usize)
    }

    /// The number of names.
    pub(crate) fn len(&self) -> usize {
        self.names.len()
    }

    /// The name that stands at the start of `json` (after the opening quote), if it is one that
    /// followed `previous` before, and its length with the closing quote.
    #[inline]
    pub(crate) fn predict(&self, previous: Slot, json: &[u8]) -> Option<(Slot, usize)> {
        for slot in self.successors(previous) {
            if let Some(name) = self.names.get(slot as usize)
                && !name.quoted.is_empty()
                && json.starts_with(&name.quoted)
            {
                return Some((slot, name.quoted.len()));
            }
        }
        None
    }

    #[inline]
    fn successors(&self, previous: Slot) -> [Slot; NEXT] {
        self.names.get(previous as usize).map_or(self.first, |n| n.next)
    }

    /// The slot of a name, if it was seen.
    pub(crate) fn find(&self, text: &str) -> Option<Slot> {
        let same = |slot: &Slot| self.get(*slot).is_some_and(|n| *n.text == *text);
        self.table.find(self.hasher.hash_one(text), same).copied()
    }

    /// The slot of a name, a new one with the role that `role` gives if need be.
    pub(crate) fn slot(
        &mut self,
        previous: Slot,
        text: &str,
        role: impl FnOnce(&str) -> Role,
    ) -> Slot {
        for slot in self.successors(previous) {
            if self.names.get(slot as usize).is_some_and(|n| *n.text == *text) {
                return slot;
            }
        }
        let hash = self.hasher.hash_one(text);
        let names = &self.names;
        let same = |slot: &Slot| names.get(*slot as usize).is_some_and(|n| *n.text == *text);
        let slot = match self.table.find(hash, same) {
            Some(slot) => *slot,
            None => self.insert(hash, text, role(text)),
        };
        let next = match self.names.get_mut(previous as usize) {
            Some(name) => &mut name.next,
            None => &mut self.first,
        };
        next.rotate_right(1);
        next[0] = slot;
        slot
    }

    fn insert(&mut self, hash: u64, text: &str, role: Role) -> Slot {
        let slot = Slot::try_from(self.names.len()).unwrap_or(START);
        let plain = !text.bytes().any(|b| b == b'"' || b == b'\\' || b < 0x20);
        let quoted = if plain { format!("{text}\"").into_bytes() } else { Vec::new() };
        self.names.push(Name {
            text: text.into(),
            quoted: quoted.into(),
            role,
            id: 0,
            batch: 0,
            row: 0,
            next: [START; NEXT],
        });
        let (hasher, names) = (&self.hasher, &self.names);
        self.table.insert_unique(hash, slot, |slot| {
            hasher.hash_one(names.get(*slot as usize).map_or("", |n| &n.text))
        });
        slot
    }

    /// Forgets all names.
    pub(crate) fn clear(&mut self) {
        self.names.clear();
        self.table.clear();
        self.first = [START; NEXT];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_predicted_from_the_one_before() {
        let mut table = NameTable::default();
        let a = table.slot(START, "a", |_| Role::Field);
        let b = table.slot(a, "b", |_| Role::Time);
        assert_eq!(table.predict(START, b"a\":1"), Some((a, 2)));
        assert_eq!(table.predict(a, b"b\":1"), Some((b, 2)));
        assert_eq!(table.predict(a, b"bb\":1"), None);
        let c = table.slot(a, "c\"", |_| Role::Field);
        assert_eq!(table.predict(a, b"c\\\"\""), None);
        assert_eq!(table.predict(a, b"b\""), Some((b, 2)));
        assert_eq!(table.slot(b, "c\"", |_| Role::Field), c);
        assert_eq!(table.get(b).unwrap().role, Role::Time);
        assert_eq!(table.len(), 3);
        table.clear();
        assert_eq!(table.predict(START, b"a\""), None);
    }
}
