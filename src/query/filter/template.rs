//! Predicates on templates: what can be said of all rows of a template without their slots.
//!
//! The answer for a template is about all texts that it can stand for:
//!
//! * A needle that stands in the text of a template, apart from its slots, stands in all of its
//!   rows. A slot's value is a run of letters and digits that is never empty, so a neighbour that
//!   is a slot is a word that goes on.
//! * A needle that does not stand there can only be found where a slot takes part. Whether one
//!   can is decided by the bytes around it and by what is known of its values. When in doubt, the
//!   rows are looked at.
//!
//! Slots of which nothing is known (classes 0) leave everything open.

use super::chars::push_lower;
use super::coded::Verdicts;
use super::column::search;
use super::judge::Verdict;
use super::needs::Needs;
use super::phrase::{FoldedPhrase, Phrase};
use super::predicate::{RegexPredicate, ValuePredicate};
use super::set::{Bounded, PhraseSet};
use super::slots::with_slots;
use crate::codec::Bitmap;
use crate::codec::template::{SLOT, TemplateTable};
use crate::index;

/// What is known of the words of a page of templates.
pub(crate) trait PageWords {
    /// Whether words with digits may take part in a match of a needle.
    fn may_touch_digits(&self, needle: &index::Needle<'_>) -> bool;

    /// Whether a run of letters and digits of a value of another column, to which the page refers
    /// by its name, may be `piece`.
    fn may_have_piece(&self, name: &[u8], piece: &[u8]) -> bool;
}

/// The templates of a page, and what is known of its words.
#[derive(Clone, Copy)]
pub(super) struct PageTemplates<'a> {
    pub(super) table: &'a TemplateTable,
    pub(super) words: &'a dyn PageWords,
}

/// The verdicts of a predicate on the rows of each template of a page.
pub(crate) fn template_verdicts(
    predicate: &ValuePredicate,
    table: &TemplateTable,
    words: &dyn PageWords,
) -> Verdicts {
    let page = PageTemplates { table, words };
    let each = match predicate {
        ValuePredicate::Phrase(phrase) => {
            let (each, inside) = needle_verdicts(&Needle::of(phrase), page, None);
            return Verdicts::with_slots(each, inside);
        }
        ValuePredicate::Const(answer) => vec![Verdict::of(*answer); table.len()],
        ValuePredicate::Folded(phrase) => {
            let (each, inside) = folded_verdicts(phrase, page);
            return Verdicts::with_slots(each, inside);
        }
        ValuePredicate::AllPhrases(all) => {
            let mut open = Narrowed::all(table);
            for phrase in all {
                if !open.alive.any() {
                    break;
                }
                open.and(needle_verdicts(&Needle::of(phrase), page, open.alive()).0);
            }
            open.verdicts
        }
        ValuePredicate::AnyPhrase(set) if !set.has_empty() => match set.few() {
            Some(phrases) => {
                let each = phrases.iter().map(|p| needle_verdicts(&Needle::of(p), page, None).0);
                any_of(each, table)
            }
            None => set_verdicts(set, table),
        },
        ValuePredicate::Regex(regex) => regex_verdicts(regex, page),
        ValuePredicate::Empty | ValuePredicate::NonEmpty => {
            let empty = matches!(predicate, ValuePredicate::Empty);
            let of = |t: usize| match table.slots(t).1.iter().all(|s| s.classes == 0) {
                true if !table.texts().get(t).iter().all(|b| *b == SLOT) => Verdict::of(!empty),
                true if table.slots(t).1.is_empty() => Verdict::of(empty),
                true => Verdict::Maybe,
                false => Verdict::of(!empty),
            };
            (0..table.len()).map(of).collect()
        }
        _ => {
            let mut verdicts = needs_verdicts(&predicate.needs(), page, None);
            decide_constants(predicate, table, &mut verdicts);
            verdicts
        }
    };
    Verdicts::new(each)
}

/// Verdicts that get narrower with each condition that all rows have to meet.
struct Narrowed {
    verdicts: Vec<Verdict>,
    alive: Bitmap,
}

impl Narrowed {
    fn all(table: &TemplateTable) -> Narrowed {
        let (verdicts, alive) = (vec![Verdict::All; table.len()], Bitmap::full(table.len()));
        Narrowed { verdicts, alive }
    }

    /// The templates that are not excluded yet.
    fn alive(&self) -> Option<&Bitmap> {
        Some(&self.alive)
    }

    fn and(&mut self, verdicts: Vec<Verdict>) {
        for (to, verdict) in self.verdicts.iter_mut().zip(verdicts) {
            *to = to.and(verdict);
        }
        let verdicts = &self.verdicts;
        self.alive.retain(|t| verdicts.get(t) != Some(&Verdict::None));
    }
}

/// The verdicts on a set of many needles: all are searched at once in the text of a template, and
/// where slots may take part the rows are looked at.
fn set_verdicts(set: &PhraseSet, table: &TemplateTable) -> Vec<Verdict> {
    let needles = set.needles();
    let in_slots_only = |n: &Bounded| n.bytes().contains(&SLOT);
    if needles.iter().any(in_slots_only) {
        return vec![Verdict::Maybe; table.len()];
    }
    // With bounds on both sides a needle holds the whole run of a slot, digit included.
    let is_word =
        |n: &Bounded| n.bounds() == (true, true) && !n.bytes().iter().any(u8::is_ascii_digit);
    let mut open = Bitmap::empty(table.len());
    if needles.iter().all(is_word) {
        table.loose_slots().iter().for_each(|(template, _)| open.set(*template as usize));
    } else {
        (0..table.len()).filter(|t| !table.slots(*t).1.is_empty()).for_each(|t| open.set(t));
    }
    let of = |(t, text): (usize, &[u8])| {
        let free = |n: &Bounded, start: usize| {
            let (left, right) = n.bounds();
            let before = start.checked_sub(1).and_then(|i| text.get(i));
            let after = text.get(start + n.bytes().len());
            !(left && before == Some(&SLOT) || right && after == Some(&SLOT))
        };
        match set.any_hit(text, free) {
            true => Verdict::All,
            false if open.get(t) => Verdict::Maybe,
            false => Verdict::None,
        }
    };
    table.texts().iter().enumerate().map(of).collect()
}

fn any_of(each: impl Iterator<Item = Vec<Verdict>>, table: &TemplateTable) -> Vec<Verdict> {
    let mut out = vec![Verdict::None; table.len()];
    for verdicts in each {
        out.iter_mut().zip(verdicts).for_each(|(to, verdict)| *to = to.or(verdict));
    }
    out
}

/// Templates that do not meet the needs, or are not `alive`, have no rows that pass.
fn needs_verdicts(needs: &Needs, page: PageTemplates<'_>, alive: Option<&Bitmap>) -> Vec<Verdict> {
    let table = page.table;
    match needs {
        Needs::Nothing | Needs::Text { fold: true, .. } => vec![Verdict::Maybe; table.len()],
        Needs::Text { bytes, bounds, .. } => {
            let finder = Phrase::substring(bytes);
            let (left, right) = *bounds;
            let needle = Needle { left, right, ..Needle::of(&finder) };
            let verdicts = needle_verdicts(&needle, page, alive).0;
            verdicts.into_iter().map(|v| v.and(Verdict::Maybe)).collect()
        }
        Needs::All(all) => {
            // What is long is rare, most of the time, and leaves few templates for the rest.
            let mut all: Vec<(usize, &Needs)> = all.iter().map(|n| (shortest(n), n)).collect();
            all.sort_by_key(|(len, _)| std::cmp::Reverse(*len));
            let mut open = Narrowed::all(table);
            if let Some(alive) = alive {
                open.alive = alive.clone();
            }
            for (_, need) in all {
                open.and(needs_verdicts(need, page, open.alive()));
            }
            open.verdicts
        }
        Needs::Any(any) => any_of(any.iter().map(|n| needs_verdicts(n, page, alive)), table),
    }
}

/// The length of the shortest literal that may be all there is.
fn shortest(needs: &Needs) -> usize {
    match needs {
        Needs::Nothing => 0,
        Needs::Text { bytes, .. } => bytes.len(),
        Needs::All(all) => all.iter().map(shortest).max().unwrap_or(0),
        Needs::Any(any) => any.iter().map(shortest).min().unwrap_or(0),
    }
}

/// Templates without slots are their only text.
fn decide_constants(predicate: &ValuePredicate, table: &TemplateTable, verdicts: &mut [Verdict]) {
    for (t, verdict) in verdicts.iter_mut().enumerate() {
        if *verdict == Verdict::Maybe && table.slots(t).1.is_empty() {
            *verdict = Verdict::of(predicate.matches(table.texts().get(t)));
        }
    }
}

fn regex_verdicts(regex: &RegexPredicate, page: PageTemplates<'_>) -> Vec<Verdict> {
    let table = page.table;
    let mut verdicts = needs_verdicts(&regex.needs, page, None);
    let meta = regex.regex.meta();
    // Without assertions a match depends on nothing but its own bytes.
    let local = regex.regex.hir().is_some_and(|hir| hir.properties().look_set().is_empty());
    for (t, verdict) in verdicts.iter_mut().enumerate() {
        if *verdict != Verdict::Maybe {
            continue;
        }
        let text = table.texts().get(t);
        if table.slots(t).1.is_empty() {
            *verdict = Verdict::of(meta.is_match(text));
        } else if local {
            let free = |m: regex_automata::Match| {
                text.get(m.range()).is_some_and(|m| memchr::memchr(SLOT, m).is_none())
            };
            if meta.find_iter(text).any(free) {
                *verdict = Verdict::All;
            }
        }
    }
    verdicts
}

/// What is searched.
#[derive(Clone, Copy)]
pub(super) struct Needle<'a> {
    phrase: &'a Phrase,
    /// In lower case if case does not count.
    pub(super) bytes: &'a [u8],
    /// Whether no word may go on to the left.
    pub(super) left: bool,
    /// Whether no word may go on to the right.
    pub(super) right: bool,
    /// Whether case does not count.
    pub(super) fold: bool,
}

impl<'a> Needle<'a> {
    fn of(phrase: &'a Phrase) -> Needle<'a> {
        let (left, right) = phrase.bounds();
        Needle { phrase, bytes: phrase.needle(), left, right, fold: false }
    }

    /// Whether a slot's byte is a neighbour that the needle may not have.
    fn touches_slot(&self, text: &[u8], start: usize) -> bool {
        let before = start.checked_sub(1).and_then(|i| text.get(i));
        let after = text.get(start + self.bytes.len());
        self.left && before == Some(&SLOT) || self.right && after == Some(&SLOT)
    }
}

/// The verdicts on a needle: none for templates that are not `alive`. For templates in whose rows
/// the needle can stand in a slot only, those slots too.
fn needle_verdicts(
    needle: &Needle<'_>,
    page: PageTemplates<'_>,
    alive: Option<&Bitmap>,
) -> (Vec<Verdict>, Vec<(u32, u16)>) {
    let table = page.table;
    if needle.bytes.contains(&SLOT) {
        return (vec![Verdict::Maybe; table.len()], Vec::new());
    }
    let next = |bytes: &[u8], from| needle.phrase.next(bytes, from);
    let accept = |text: &[u8], start| {
        let (left, right) = (needle.left, needle.right);
        !needle.touches_slot(text, start)
            && super::phrase::is_bounded(text, start, needle.bytes.len(), left, right)
    };
    let sparse = alive.filter(|alive| alive.count() * 4 < table.len());
    let found = match sparse {
        None => search(table.texts(), needle.bytes.len(), next, accept),
        Some(alive) => {
            let mut found = Bitmap::empty(table.len());
            for t in alive.iter() {
                let text = table.texts().get(t);
                let hits = std::iter::successors(next(text, 0), |at| next(text, at + 1));
                if hits.into_iter().any(|start| accept(text, start)) {
                    found.set(t);
                }
            }
            found
        }
    };
    with_slots(needle, page, &found, alive)
}

/// As [`needle_verdicts`], in any case.
fn folded_verdicts(
    phrase: &FoldedPhrase,
    page: PageTemplates<'_>,
) -> (Vec<Verdict>, Vec<(u32, u16)>) {
    let table = page.table;
    let needle = Needle { fold: true, ..Needle::of(phrase.phrase()) };
    if needle.bytes.contains(&SLOT) {
        return (vec![Verdict::Maybe; table.len()], Vec::new());
    }
    let accept = |text: &[u8], start: usize| {
        !needle.touches_slot(text, start) && phrase.bounded(text, start)
    };
    if table.texts().bytes().is_ascii() {
        let next = |bytes: &[u8], from| phrase.next_ascii(bytes, from);
        let found = search(table.texts(), needle.bytes.len(), next, accept);
        return with_slots(&needle, page, &found, None);
    }
    let mut found = Bitmap::empty(table.len());
    let mut lower = Vec::new();
    for (t, text) in table.texts().iter().enumerate() {
        let is_ascii = text.is_ascii();
        lower.clear();
        if !is_ascii {
            push_lower(text, &mut lower);
        }
        let text = if is_ascii { text } else { lower.as_slice() };
        let next = |from| match is_ascii {
            true => phrase.next_ascii(text, from),
            false => phrase.phrase().next(text, from),
        };
        let mut hits = std::iter::successors(next(0), |at| next(at + 1));
        if hits.any(|start| accept(text, start)) {
            found.set(t);
        }
    }
    with_slots(&needle, page, &found, None)
}

#[cfg(test)]
mod tests;
