//! Which fields a stage needs.

use std::collections::BTreeSet;

use super::ast::{FieldPattern, Filter, Predicate};

/// A set of field names: some names, and all names of some prefixes but a few.
///
/// Operations that cannot be exact err on the side of more fields, which costs time but never
/// an answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct FieldSet {
    names: BTreeSet<String>,
    /// No prefix is the beginning of another.
    prefixes: BTreeSet<String>,
    /// Names that match a prefix and are not meant.
    except: BTreeSet<String>,
}

impl FieldSet {
    /// No field.
    pub(crate) fn none() -> FieldSet {
        FieldSet::default()
    }

    /// Every field.
    pub(crate) fn all() -> FieldSet {
        let mut set = FieldSet::default();
        set.insert_prefix("");
        set
    }

    /// The given names.
    pub(crate) fn of<S: AsRef<str>>(names: impl IntoIterator<Item = S>) -> FieldSet {
        let mut set = FieldSet::default();
        for name in names {
            set.insert(name.as_ref());
        }
        set
    }

    /// Whether the set is certainly empty.
    pub(crate) fn is_none(&self) -> bool {
        self.names.is_empty() && self.prefixes.is_empty()
    }

    /// Whether `name` is in the set.
    pub(crate) fn contains(&self, name: &str) -> bool {
        self.names.contains(name) || (self.matches_prefix(name) && !self.except.contains(name))
    }

    /// Whether a name that starts with `prefix` may be in the set.
    pub(crate) fn meets_prefix(&self, prefix: &str) -> bool {
        self.names.iter().any(|n| n.starts_with(prefix))
            || self.prefixes.iter().any(|p| p.starts_with(prefix) || prefix.starts_with(p.as_str()))
    }

    /// The names that are in the set beside those of the prefixes.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(String::as_str)
    }

    /// The prefixes whose names are in the set, but for [`except`](FieldSet::except).
    pub(crate) fn prefixes(&self) -> impl Iterator<Item = &str> {
        self.prefixes.iter().map(String::as_str)
    }

    /// Names that match a prefix but are not in the set.
    pub(crate) fn except(&self) -> impl Iterator<Item = &str> {
        self.except.iter().map(String::as_str)
    }

    /// Adds a name.
    pub(crate) fn insert(&mut self, name: &str) {
        if self.matches_prefix(name) {
            self.except.remove(name);
        } else {
            self.names.insert(name.to_owned());
        }
    }

    /// Adds all names that start with `prefix`.
    pub(crate) fn insert_prefix(&mut self, prefix: &str) {
        self.except.retain(|n| !n.starts_with(prefix));
        if self.matches_prefix(prefix) {
            return;
        }
        self.names.retain(|n| !n.starts_with(prefix));
        self.prefixes.retain(|p| !p.starts_with(prefix));
        self.prefixes.insert(prefix.to_owned());
    }

    /// Adds what a pattern matches.
    pub(crate) fn insert_pattern(&mut self, pattern: &FieldPattern) {
        match pattern {
            FieldPattern::Name(name) => self.insert(name),
            FieldPattern::Prefix(prefix) => self.insert_prefix(prefix),
        }
    }

    /// Adds all of `other`.
    #[cfg(test)]
    pub(crate) fn union(&mut self, other: &FieldSet) {
        let mut except: BTreeSet<String> =
            self.except.iter().filter(|n| !other.contains(n)).cloned().collect();
        except.extend(other.except.iter().filter(|n| !self.contains(n)).cloned());
        for prefix in &other.prefixes {
            self.insert_prefix(prefix);
        }
        for name in &other.names {
            self.insert(name);
        }
        self.except = except;
    }

    /// Takes a name out.
    pub(crate) fn remove(&mut self, name: &str) {
        self.names.remove(name);
        if self.matches_prefix(name) {
            self.except.insert(name.to_owned());
        }
    }

    /// Takes the names of a prefix out, as far as the form of the set allows.
    pub(crate) fn remove_prefix(&mut self, prefix: &str) {
        self.names.retain(|n| !n.starts_with(prefix));
        self.prefixes.retain(|p| !p.starts_with(prefix));
        let prefixes = &self.prefixes;
        self.except.retain(|n| prefixes.iter().any(|p| n.starts_with(p.as_str())));
    }

    /// Takes out what a pattern matches, as far as the form of the set allows.
    pub(crate) fn remove_pattern(&mut self, pattern: &FieldPattern) {
        match pattern {
            FieldPattern::Name(name) => self.remove(name),
            FieldPattern::Prefix(prefix) => self.remove_prefix(prefix),
        }
    }

    fn matches_prefix(&self, name: &str) -> bool {
        self.prefixes.iter().any(|p| name.starts_with(p.as_str()))
    }
}

/// Adds the fields that a filter reads. A subquery's fields are its own affair.
pub(crate) fn insert_filter_fields(filter: &Filter, set: &mut FieldSet) {
    match filter {
        Filter::All => {}
        Filter::And(list) | Filter::Or(list) => {
            list.iter().for_each(|f| insert_filter_fields(f, set));
        }
        Filter::Not(inner) => insert_filter_fields(inner, set),
        Filter::Field { field, predicate } => {
            set.insert_pattern(field);
            if let Predicate::CompareField { other, .. } = predicate {
                set.insert(other);
            }
        }
        Filter::Stream(_) => set.insert("_stream"),
        Filter::StreamId(_) => set.insert("_stream_id"),
        Filter::Time(_) | Filter::DayRange(_) | Filter::WeekRange(_) => set.insert("_time"),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NAMES: [&str; 8] = ["", "a", "ab", "abc", "b", "ba", "bab", "c"];

    #[derive(Debug, Clone)]
    enum Step {
        Insert(&'static str),
        InsertPrefix(&'static str),
        Remove(&'static str),
        RemovePrefix(&'static str),
        Union(Vec<Step>),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let name = || prop::sample::select(NAMES.to_vec());
        let leaf = prop_oneof![
            name().prop_map(Step::Insert),
            name().prop_map(Step::InsertPrefix),
            name().prop_map(Step::Remove),
            name().prop_map(Step::RemovePrefix),
        ];
        let union = prop::collection::vec(leaf.clone(), 0..4).prop_map(Step::Union);
        prop::collection::vec(prop_oneof![4 => leaf, 1 => union], 0..8)
    }

    /// The set, the names that must be in it, and those that may not.
    fn build(steps: &[Step]) -> (FieldSet, BTreeSet<&'static str>, bool) {
        let (mut set, mut must, mut exact) = (FieldSet::none(), BTreeSet::new(), true);
        let of = |prefix: &str| {
            let prefix = prefix.to_owned();
            NAMES.into_iter().filter(move |n| n.starts_with(&prefix))
        };
        for step in steps {
            match step {
                Step::Insert(name) => {
                    set.insert(name);
                    must.insert(*name);
                }
                Step::InsertPrefix(prefix) => {
                    set.insert_prefix(prefix);
                    must.extend(of(prefix));
                }
                Step::Remove(name) => {
                    set.remove(name);
                    must.remove(name);
                }
                Step::RemovePrefix(prefix) => {
                    set.remove_prefix(prefix);
                    must.retain(|n| !n.starts_with(prefix));
                    exact = false;
                }
                Step::Union(steps) => {
                    let (other, names, other_exact) = build(steps);
                    set.union(&other);
                    must.extend(names);
                    exact &= other_exact;
                }
            }
        }
        (set, must, exact)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]
        #[test]
        fn never_loses_a_name_and_is_exact_where_it_can_be(steps in steps()) {
            let (set, must, exact) = build(&steps);
            for name in NAMES {
                prop_assert!(set.contains(name) || !must.contains(name), "{set:?} {name}");
                prop_assert!(!exact || set.contains(name) == must.contains(name), "{set:?} {name}");
                prop_assert!(!set.contains(name) || set.meets_prefix(name));
            }
        }
    }
}
