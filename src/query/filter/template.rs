//! Predicates on template columns: each template is asked once, and only the rows of templates
//! whose answer depends on the values of slots are rendered.
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

use std::ops::Range;
use std::sync::Arc;

use super::column::search;
use super::judge::Verdict;
use super::needs::Needs;
use super::phrase::{FoldedPhrase, Phrase};
use super::predicate::{RegexPredicate, ValuePredicate};
use crate::codec::template::{PlacedSlot, SLOT, Slot, TemplateTable, classes_of};
use crate::codec::{Bitmap, Strip};

/// The rows of a strip in template form, and the answer for each template.
#[derive(Debug, Clone)]
pub(crate) struct TemplateRows {
    /// The strip; of templates.
    pub(crate) strip: Arc<Strip>,
    /// For each template of the page.
    pub(crate) verdicts: Arc<Vec<Verdict>>,
    /// Rows whose value is a constant of their stream instead, ascending, and that value.
    pub(crate) constants: Vec<(Range<usize>, Vec<u8>)>,
}

/// The verdict of a predicate on the rows of each template.
pub(crate) fn template_verdicts(predicate: &ValuePredicate, table: &TemplateTable) -> Vec<Verdict> {
    match predicate {
        ValuePredicate::Const(answer) => vec![Verdict::of(*answer); table.len()],
        ValuePredicate::Phrase(phrase) => needle_verdicts(&Needle::of(phrase), table),
        ValuePredicate::Folded(phrase) => folded_verdicts(phrase, table),
        ValuePredicate::AllPhrases(all) => {
            let each = all.iter().map(|phrase| needle_verdicts(&Needle::of(phrase), table));
            combine(each, table, Verdict::All, Verdict::and)
        }
        ValuePredicate::AnyPhrase(set) if !set.has_empty() => {
            let each = set.phrases().iter().map(|p| needle_verdicts(&Needle::of(p), table));
            combine(each, table, Verdict::None, Verdict::or)
        }
        ValuePredicate::Regex(regex) => regex_verdicts(regex, table),
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
            let mut verdicts = needs_verdicts(&predicate.needs(), table);
            decide_constants(predicate, table, &mut verdicts);
            verdicts
        }
    }
}

/// Takes the rows that do not pass out of `selection`.
pub(super) fn apply(predicate: &ValuePredicate, rows: &TemplateRows, selection: &mut Bitmap) {
    let Strip::Templates(strip) = &*rows.strip else { return };
    let mut text = Vec::new();
    let ids = strip.ids();
    let mut constants = rows.constants.iter().peekable();
    let mut last: Option<(&[u8], bool)> = None;
    selection.retain(|row| {
        while constants.next_if(|(range, _)| range.end <= row).is_some() {}
        if let Some((_, value)) = constants.peek().filter(|(range, _)| range.start <= row) {
            return match last {
                Some((known, passes)) if std::ptr::eq(known, value.as_slice()) => passes,
                _ => {
                    let passes = predicate.matches(value);
                    last = Some((value, passes));
                    passes
                }
            };
        }
        let id = ids.get(row).map_or(usize::MAX, |id| *id as usize);
        match rows.verdicts.get(id) {
            Some(Verdict::None) => false,
            Some(Verdict::All) => true,
            _ => {
                text.clear();
                strip.render(row, &mut text);
                predicate.matches(&text)
            }
        }
    });
}

/// Joins the verdicts of several predicates.
fn combine(
    each: impl Iterator<Item = Vec<Verdict>>,
    table: &TemplateTable,
    start: Verdict,
    join: impl Fn(Verdict, Verdict) -> Verdict,
) -> Vec<Verdict> {
    let mut out = vec![start; table.len()];
    for verdicts in each {
        out.iter_mut().zip(verdicts).for_each(|(to, verdict)| *to = join(*to, verdict));
    }
    out
}

/// Templates that do not meet the needs have no rows that pass.
fn needs_verdicts(needs: &Needs, table: &TemplateTable) -> Vec<Verdict> {
    match needs {
        Needs::Nothing => vec![Verdict::Maybe; table.len()],
        Needs::Text { bytes, bounds, .. } => {
            let finder = Phrase::substring(bytes);
            let (left, right) = *bounds;
            let verdicts = needle_verdicts(&Needle { left, right, ..Needle::of(&finder) }, table);
            verdicts.into_iter().map(|v| v.and(Verdict::Maybe)).collect()
        }
        Needs::All(all) => {
            combine(all.iter().map(|n| needs_verdicts(n, table)), table, Verdict::All, Verdict::and)
        }
        Needs::Any(any) => {
            combine(any.iter().map(|n| needs_verdicts(n, table)), table, Verdict::None, Verdict::or)
        }
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

fn regex_verdicts(regex: &RegexPredicate, table: &TemplateTable) -> Vec<Verdict> {
    let mut verdicts = needs_verdicts(&regex.needs, table);
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
struct Needle<'a> {
    phrase: &'a Phrase,
    bytes: &'a [u8],
    left: bool,
    right: bool,
    fold: bool,
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

fn needle_verdicts(needle: &Needle<'_>, table: &TemplateTable) -> Vec<Verdict> {
    if needle.bytes.contains(&SLOT) {
        return vec![Verdict::Maybe; table.len()];
    }
    let found = search(
        table.texts(),
        needle.bytes.len(),
        |bytes, from| needle.phrase.next(bytes, from),
        |text, start| {
            let (left, right) = (needle.left, needle.right);
            !needle.touches_slot(text, start)
                && super::phrase::is_bounded(text, start, needle.bytes.len(), left, right)
        },
    );
    with_slots(needle, table, &found)
}

fn folded_verdicts(phrase: &FoldedPhrase, table: &TemplateTable) -> Vec<Verdict> {
    let needle = Needle { fold: true, ..Needle::of(phrase.phrase()) };
    if needle.bytes.contains(&SLOT) {
        return vec![Verdict::Maybe; table.len()];
    }
    if table.texts().bytes().is_ascii() {
        let found = search(
            table.texts(),
            needle.bytes.len(),
            |bytes, from| phrase.next_ascii(bytes, from),
            |text, start| !needle.touches_slot(text, start) && phrase.bounded(text, start),
        );
        return with_slots(&needle, table, &found);
    }
    // Folding may change lengths beyond ASCII; such templates are left to their rows.
    let mut found = Bitmap::empty(table.len());
    for (t, text) in table.texts().iter().enumerate().filter(|(_, text)| text.is_ascii()) {
        let mut from = 0;
        while let Some(start) = phrase.next_ascii(text, from) {
            if !needle.touches_slot(text, start) && phrase.bounded(text, start) {
                found.set(t);
                break;
            }
            from = start + 1;
        }
    }
    let mut verdicts = with_slots(&needle, table, &found);
    for ((t, verdict), text) in verdicts.iter_mut().enumerate().zip(table.texts().iter()) {
        if !text.is_ascii() {
            *verdict = match table.slots(t).1 {
                [] => Verdict::of(phrase.is_match(text)),
                _ => Verdict::Maybe,
            };
        }
    }
    verdicts
}

/// The verdicts on templates of which `found` hold the needle in their text.
fn with_slots(needle: &Needle<'_>, table: &TemplateTable, found: &Bitmap) -> Vec<Verdict> {
    let digit = needle.bytes.iter().any(u8::is_ascii_digit);
    // Whether some byte of the needle can stand in a slot of these classes.
    let mut fits_any = [false; 32];
    for (classes, fits) in (0u8..).zip(&mut fits_any) {
        *fits = needle.bytes.iter().any(|b| may_be(*b, classes, needle.fold));
    }
    let mut texts = table.texts().iter();
    let of = |t: usize| {
        let text = texts.next().unwrap_or(&[]);
        if found.get(t) {
            return Verdict::All;
        }
        let slots = table.slots(t).1;
        let takes_part = |(i, slot): (usize, &PlacedSlot)| {
            if slot.classes == 0 {
                return true;
            }
            // With boundaries on both sides the needle holds the whole run, digit included.
            if needle.left && needle.right && slot.digit && !digit {
                return false;
            }
            fits_any.get(usize::from(slot.classes)).is_none_or(|fits| *fits)
                && Around::of(text, slots, i).may_match(needle, digit, slot, slots, table)
        };
        if slots.iter().enumerate().any(takes_part) { Verdict::Maybe } else { Verdict::None }
    };
    (0..table.len()).map(of).collect()
}

/// Whether a byte can stand in a value all of whose bytes have `classes`.
fn may_be(b: u8, classes: u8, fold: bool) -> bool {
    let has = |b: u8| classes_of(&[b]) & classes == classes;
    has(b) || fold && (has(b.to_ascii_uppercase()) || b >= 0x80)
}

/// The text around a slot, up to its neighbours.
struct Around<'a> {
    before: &'a [u8],
    after: &'a [u8],
    is_first: bool,
    is_last: bool,
}

impl<'a> Around<'a> {
    fn of(text: &'a [u8], slots: &[PlacedSlot], i: usize) -> Around<'a> {
        let at_of = |i: usize| slots.get(i).map(|slot| slot.at as usize);
        let at = at_of(i).unwrap_or(0);
        let from = i.checked_sub(1).and_then(at_of).map(|at| at + 1);
        let to = at_of(i + 1);
        Around {
            before: text.get(from.unwrap_or(0)..at).unwrap_or(&[]),
            after: text.get(at + 1..to.unwrap_or(text.len())).unwrap_or(&[]),
            is_first: from.is_none(),
            is_last: to.is_none(),
        }
    }

    /// Whether the needle may match with `i..j` of it in the slot, for some of its bytes.
    fn may_match(
        &self,
        needle: &Needle<'_>,
        needle_digit: bool,
        slot: &PlacedSlot,
        slots: &[PlacedSlot],
        table: &TemplateTable,
    ) -> bool {
        let bytes = needle.bytes;
        let fits = |b: &u8| may_be(*b, slot.classes, needle.fold);
        let values = match slot.slot {
            Slot::Same { of } => slots.get(usize::from(of)).map_or(slot.slot, |same| same.slot),
            own => own,
        };
        for i in 0..bytes.len() {
            if !self.starts(needle, i) {
                continue;
            }
            let run = bytes.iter().skip(i).take_while(|b| fits(b)).count();
            for j in i + 1..=i + run {
                if !self.ends(needle, j) {
                    continue;
                }
                let (from_start, to_end) = (i > 0 || needle.left, j < bytes.len() || needle.right);
                let whole_left = needle.left || i > 0 && !is_alphanumeric(self.before.last());
                let whole_right =
                    needle.right || j < bytes.len() && !is_alphanumeric(self.after.first());
                if whole_left && whole_right && slot.digit && !needle_digit {
                    continue;
                }
                let part = bytes.get(i..j).unwrap_or(&[]);
                if needle.fold || may_hold(values, part, from_start, to_end, table) {
                    return true;
                }
            }
        }
        false
    }

    /// Whether the text before the slot lets its value, or a place in it, be byte `i` of the
    /// needle.
    fn starts(&self, needle: &Needle<'_>, i: usize) -> bool {
        if i == 0 {
            return !needle.left || !is_word(self.before.last());
        }
        let tail = self.before.len().min(i);
        let want = needle.bytes.get(i - tail..i).unwrap_or(&[]);
        let have = self.before.get(self.before.len() - tail..).unwrap_or(&[]);
        same(want, have, needle.fold) && (tail == i || !self.is_first)
    }

    /// Whether the text behind the slot lets the slot's last byte be that before `j`.
    fn ends(&self, needle: &Needle<'_>, j: usize) -> bool {
        let rest = needle.bytes.get(j..).unwrap_or(&[]);
        if rest.is_empty() {
            return !needle.right || !is_word(self.after.first());
        }
        let head = self.after.len().min(rest.len());
        let want = rest.get(..head).unwrap_or(&[]);
        let have = self.after.get(..head).unwrap_or(&[]);
        same(want, have, needle.fold) && (head == rest.len() || !self.is_last)
    }
}

fn same(want: &[u8], have: &[u8], fold: bool) -> bool {
    if fold { !have.is_ascii() || want.eq_ignore_ascii_case(have) } else { want == have }
}

/// Whether a byte surely belongs to a word.
fn is_word(b: Option<&u8>) -> bool {
    b.is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_')
}

fn is_alphanumeric(b: Option<&u8>) -> bool {
    b.is_some_and(u8::is_ascii_alphanumeric)
}

/// Whether a value of the slot may hold `part`, at its start, at its end, or as a whole.
fn may_hold(
    slot: Slot,
    part: &[u8],
    from_start: bool,
    to_end: bool,
    table: &TemplateTable,
) -> bool {
    let whole = from_start && to_end;
    let by_length = |len: usize| if whole { part.len() == len } else { part.len() <= len };
    match slot {
        Slot::Int { digits: 0, base, width } => {
            let number = part.iter().try_fold(0u64, |n, b| {
                n.checked_mul(10)?.checked_add(u64::from(b.wrapping_sub(b'0')))
            });
            let max = u64::MAX.checked_shr(64 - u32::from(width)).unwrap_or(0);
            let in_range = |n: u64| n >= base && n - base <= max;
            (!from_start || part.len() == 1 || part.first() != Some(&b'0'))
                && (!whole || number.is_some_and(in_range))
        }
        Slot::Int { digits, .. } => by_length(digits.into()),
        Slot::Hex { digits, .. } => by_length(digits.into()),
        Slot::Codes { first, count } => {
            let first = first as usize;
            (first..first + usize::from(count)).map(|i| table.dictionary().get(i)).any(|value| {
                match (from_start, to_end) {
                    (true, true) => value == part,
                    (true, false) => value.starts_with(part),
                    (false, true) => value.ends_with(part),
                    (false, false) => memchr::memmem::find(value, part).is_some(),
                }
            })
        }
        Slot::Field { len: 0, .. } | Slot::Text { .. } | Slot::Same { .. } => true,
        Slot::Field { len, .. } => by_length(len.into()),
    }
}

#[cfg(test)]
mod tests;
