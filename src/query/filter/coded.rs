//! Predicates on pages whose rows are numbers: of values in a dictionary, or of templates.
//!
//! Each number is judged once for the page; rows only look their number up. Only rows of
//! templates whose answer depends on the values of slots are rendered, and of those only the ones
//! that a look at the slots leaves.

use std::ops::Range;
use std::sync::Arc;

use super::column::{DictionaryCache, apply_text};
use super::judge::Verdict;
use super::predicate::ValuePredicate;
use crate::codec::template::{SlotNeedle, TemplateIds, TemplateStrip};
use crate::codec::{Bitmap, Strip};
use crate::error::Result;
use crate::record::TextVec;

/// The verdicts of a predicate on the rows of each number of a page.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Verdicts {
    each: Vec<Verdict>,
    common: Option<Verdict>,
    /// The one number whose verdict is not "none".
    only: Option<u32>,
    inside: Vec<(u32, u16)>,
}

impl Verdicts {
    /// One verdict for each number.
    pub(super) fn new(each: Vec<Verdict>) -> Verdicts {
        Verdicts::with_slots(each, Vec::new())
    }

    /// One verdict for each template. `inside` names slots by template and place, ascending: of
    /// the rows of those templates only the ones pass that hold the needle in such a slot.
    pub(super) fn with_slots(each: Vec<Verdict>, inside: Vec<(u32, u16)>) -> Verdicts {
        let common = each.first().copied().filter(|first| each.iter().all(|v| v == first));
        let mut others = (0u32..).zip(&each).filter(|(_, verdict)| **verdict != Verdict::None);
        let only = others.next().filter(|_| others.next().is_none()).map(|(number, _)| number);
        Verdicts { each, common, only, inside }
    }

    /// No row passes, whatever its number.
    pub(crate) fn none() -> Verdicts {
        Verdicts { common: Some(Verdict::None), ..Verdicts::default() }
    }

    /// The verdicts on the values of a dictionary.
    pub(crate) fn of_dictionary(predicate: &ValuePredicate, values: &TextVec) -> Verdicts {
        let mut passing = Bitmap::full(values.len());
        apply_text(predicate, values, &mut passing, &mut DictionaryCache::default());
        Verdicts::new((0..values.len()).map(|i| Verdict::of(passing.get(i))).collect())
    }

    /// The verdict that all numbers have in common.
    pub(crate) fn common(&self) -> Option<Verdict> {
        self.common
    }

    /// The verdict on the rows of a number.
    pub(super) fn of(&self, number: u32) -> Verdict {
        self.common.or_else(|| self.each.get(number as usize).copied()).unwrap_or(Verdict::Maybe)
    }

    /// The slots of a template in one of which the needle has to stand; empty if it may stand
    /// elsewhere too.
    fn slots_of(&self, template: u32) -> impl Iterator<Item = u16> + '_ {
        let first = self.inside.partition_point(|(t, _)| *t < template);
        let rest = self.inside.get(first..).unwrap_or(&[]).iter();
        rest.take_while(move |(t, _)| *t == template).map(|(_, slot)| *slot)
    }
}

/// The rows of a strip by their numbers, and the answer for each number.
#[derive(Debug, Clone)]
pub(crate) struct CodedRows {
    /// The number of each row.
    pub(crate) numbers: RowNumbers,
    /// For each number of the page.
    pub(crate) verdicts: Arc<Verdicts>,
    /// Rows whose value is a constant of their stream instead, ascending, and that value.
    pub(crate) constants: Vec<(Range<usize>, Vec<u8>)>,
}

/// Where the numbers of a strip's rows are.
#[derive(Debug, Clone)]
pub(crate) enum RowNumbers {
    /// Not read: all numbers of the page have the same sure verdict.
    Unread,
    /// A strip of codes.
    Codes(Arc<Strip>),
    /// The templates of a strip.
    Templates(Arc<TemplateIds>),
}

impl CodedRows {
    fn number(&self, row: usize) -> Option<u32> {
        match &self.numbers {
            RowNumbers::Unread => None,
            RowNumbers::Codes(strip) => match &**strip {
                Strip::Codes { codes, .. } => codes.get(row).copied(),
                _ => None,
            },
            RowNumbers::Templates(ids) => ids.ids().get(row).map(|id| u32::from(*id)),
        }
    }

    /// The rows whose verdict passes the test.
    fn rows_with(&self, len: usize, test: impl Fn(Verdict) -> bool) -> Bitmap {
        let passes = |number: u32| test(self.verdicts.of(number));
        match &self.numbers {
            RowNumbers::Templates(ids) if ids.ids().len() == len => {
                Bitmap::of_values(ids.ids(), |number| passes(number.into()))
            }
            RowNumbers::Codes(strip) => match (&**strip, self.verdicts.only) {
                (Strip::Codes { codes, .. }, Some(only))
                    if codes.len() == len && !test(Verdict::None) && passes(only) =>
                {
                    Bitmap::of_values(codes, |code| code == only)
                }
                (Strip::Codes { codes, .. }, _) if codes.len() == len => {
                    Bitmap::of_values(codes, passes)
                }
                _ => Bitmap::from_fn(len, |_| passes(u32::MAX)),
            },
            _ => Bitmap::from_fn(len, |_| passes(u32::MAX)),
        }
    }

    /// The verdict that all rows but those of constants have in common.
    fn common(&self) -> Option<Verdict> {
        if let (None, RowNumbers::Templates(ids)) = (self.verdicts.common, &self.numbers) {
            let mut verdicts = ids.present().map(|id| self.verdicts.of(id));
            let first = verdicts.next();
            return first.filter(|first| verdicts.all(|v| v == *first));
        }
        self.verdicts.common
    }

    /// Whether some row has to be looked at.
    fn has_open(&self) -> bool {
        match &self.numbers {
            RowNumbers::Templates(ids) => {
                ids.present().any(|id| self.verdicts.of(id) == Verdict::Maybe)
            }
            _ => self.verdicts.each.contains(&Verdict::Maybe),
        }
    }

    /// Takes the rows of constants out of `selection`; returns those that pass.
    fn take_constants(&self, predicate: &ValuePredicate, selection: &mut Bitmap) -> Option<Bitmap> {
        if self.constants.is_empty() {
            return None;
        }
        let mut passing = Bitmap::empty(selection.len());
        let mut last: Option<(&[u8], bool)> = None;
        for (range, value) in &self.constants {
            if !selection.any_range(range.clone()) {
                continue;
            }
            let passes = match last {
                Some((known, passes)) if known == value.as_slice() => passes,
                _ => predicate.matches(value),
            };
            last = Some((value, passes));
            if passes {
                selection.iter_range(range.clone()).for_each(|row| passing.set(row));
            }
            selection.clear_range(range.clone());
        }
        Some(passing)
    }
}

/// Takes the rows that do not pass out of `selection`. `strip` reads the values of the slots.
pub(super) fn apply(
    predicate: &ValuePredicate,
    rows: &CodedRows,
    strip: impl FnOnce() -> Result<Option<Arc<Strip>>>,
    selection: &mut Bitmap,
) -> Result<()> {
    let of_constants = rows.take_constants(predicate, selection);
    match rows.common() {
        Some(Verdict::All) => {}
        Some(Verdict::None) => selection.clear_all(),
        _ => {
            selection.and(&rows.rows_with(selection.len(), |v| v != Verdict::None));
            if rows.has_open() && selection.any() {
                let mut open = rows.rows_with(selection.len(), |v| v == Verdict::Maybe);
                open.and(selection);
                if open.any()
                    && let Some(strip) = strip()?
                    && let Strip::Templates(strip) = &*strip
                {
                    look_at(predicate, rows, strip, &open, selection);
                }
            }
        }
    }
    if let Some(passing) = of_constants {
        selection.or(&passing);
    }
    Ok(())
}

/// Drops those of the rows `open` whose text does not pass.
fn look_at(
    predicate: &ValuePredicate,
    rows: &CodedRows,
    strip: &TemplateStrip,
    open: &Bitmap,
    selection: &mut Bitmap,
) {
    let mut found = FoundInSlots { predicate, rows, strip, templates: Vec::new() };
    let mut text = Vec::new();
    let mut failing = open.clone();
    failing.retain(|row| {
        let template = rows.number(row).unwrap_or(u32::MAX);
        if !found.may_pass(template, row) {
            return true;
        }
        text.clear();
        strip.render(row, &mut text);
        !predicate.matches(&text)
    });
    selection.and_not(&failing);
}

/// For templates with rows where the needle has to stand in a slot: the rows in which it does.
struct FoundInSlots<'a> {
    predicate: &'a ValuePredicate,
    rows: &'a CodedRows,
    strip: &'a TemplateStrip,
    /// By template; `None` if the slots do not decide. Rows are named by their ranks.
    templates: Vec<(u32, Option<Vec<u16>>)>,
}

impl FoundInSlots<'_> {
    fn may_pass(&mut self, template: u32, row: usize) -> bool {
        let at = match self.templates.binary_search_by_key(&template, |(t, _)| *t) {
            Ok(at) => at,
            Err(at) => {
                self.templates.insert(at, (template, self.search(template)));
                at
            }
        };
        let ranks = self.templates.get(at).and_then(|(_, ranks)| ranks.as_ref());
        let rank = self.strip.rank(row);
        ranks.is_none_or(|ranks| rank.is_none_or(|rank| ranks.binary_search(&rank).is_ok()))
    }

    fn search(&self, template: u32) -> Option<Vec<u16>> {
        let (phrase, fold) = match self.predicate {
            ValuePredicate::Phrase(phrase) => (phrase, false),
            ValuePredicate::Folded(folded) => (folded.phrase(), true),
            _ => return None,
        };
        let mut slots = self.rows.verdicts.slots_of(template).peekable();
        slots.peek()?;
        // A slot of letters and digits lies within one word, so a bound is an end of the slot.
        let (left, right) = phrase.bounds();
        let needle = SlotNeedle::new(phrase.needle(), (left, right), fold);
        let mut ranks = Vec::new();
        for slot in slots {
            ranks.extend(self.strip.ranks_with(template, usize::from(slot), &needle));
        }
        ranks.sort_unstable();
        ranks.dedup();
        Some(ranks)
    }
}
