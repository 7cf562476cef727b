//! Finding out what becomes of a template, whatever its slots hold.

use std::ops::Range;

use super::mapped::{Mapped, Piece, TextMap};
use crate::codec::template::{PlacedSlot, SLOT, Slot, TemplateTable, class};
use crate::record::TextVec;

fn is_separator(b: u8) -> bool {
    b.is_ascii() && !b.is_ascii_alphanumeric() && b != b'_' && b != SLOT
}

/// What becomes of a template of a page.
pub(super) fn settle(map: TextMap, table: &TemplateTable, template: usize) -> Mapped {
    let text = table.texts().get(template);
    let (_, slots) = table.slots(template);
    let mut all = Pieces { text, pieces: Vec::new(), settled: Vec::new() };
    let mut trial = Trial { map, text: Vec::new(), made: Vec::new(), first: None };
    let mut slot = 0;
    for range in cut(text) {
        let (piece, context) = all.with_context(&range);
        let count = piece.iter().filter(|b| **b == SLOT).count();
        let outcome = match count {
            0 => Outcome::Settled(trial.of(piece).to_vec()),
            1 => trial.outcome(table, slots, slot, piece),
            _ => Outcome::Open,
        };
        match outcome {
            Outcome::Settled(made) => {
                all.settled.extend_from_slice(made.get(usize::from(context)..).unwrap_or(&[]));
            }
            Outcome::Codes(made) => {
                let cut = made.iter().map(|text| text.get(usize::from(context)..).unwrap_or(&[]));
                all.push(Piece::Codes { slot, made: cut.collect() });
            }
            Outcome::Open => {
                let text = range.start - usize::from(context)..range.end;
                all.push(Piece::Open { text, context, slots: slot..slot + count });
            }
        }
        slot += count;
    }
    all.finish()
}

/// Cuts the text of a template into pieces, each up to and with a separator or the end. One with
/// slots begins behind the last separator before them.
fn cut(text: &[u8]) -> impl Iterator<Item = Range<usize>> + '_ {
    let mut start = 0;
    std::iter::from_fn(move || {
        let rest = text.get(start..).filter(|rest| !rest.is_empty())?;
        let at_slot = rest.iter().position(|b| *b == SLOT);
        let head = rest.get(..at_slot.unwrap_or(rest.len())).unwrap_or(&[]);
        let plain = head.iter().rposition(|b| is_separator(*b)).map_or(0, |at| at + 1);
        let len = match at_slot {
            None => rest.len(),
            Some(_) if plain > 0 => plain,
            Some(at) => {
                let behind = rest.get(at..).unwrap_or(&[]);
                let end = behind.iter().position(|b| is_separator(*b));
                end.map_or(rest.len(), |end| at + end + 1)
            }
        };
        let range = start..start + len;
        start += len;
        Some(range)
    })
}

/// The pieces of a template so far.
struct Pieces<'t> {
    text: &'t [u8],
    pieces: Vec<Piece>,
    /// What became of the pieces since the last one that is not settled.
    settled: Vec<u8>,
}

impl<'t> Pieces<'t> {
    /// A piece with the separator before it, and whether there is one.
    fn with_context(&self, range: &Range<usize>) -> (&'t [u8], bool) {
        let from = range.start.saturating_sub(1);
        (self.text.get(from..range.end).unwrap_or(&[]), range.start > 0)
    }

    fn push(&mut self, piece: Piece) {
        self.pieces.push(Piece::Settled(std::mem::take(&mut self.settled)));
        self.pieces.push(piece);
    }

    fn finish(mut self) -> Mapped {
        if !self.pieces.is_empty() {
            self.pieces.push(Piece::Settled(self.settled));
            return Mapped::Pieces(self.pieces);
        }
        Mapped::Settled(self.settled)
    }
}

/// What becomes of a piece, the separator before it included.
enum Outcome {
    /// The same whatever the slot holds.
    Settled(Vec<u8>),
    /// One text for each value of the slot's dictionary.
    Codes(TextVec),
    /// It depends.
    Open,
}

/// Tries values of a slot.
struct Trial {
    map: TextMap,
    text: Vec<u8>,
    made: Vec<u8>,
    /// What became of the first value.
    first: Option<Vec<u8>>,
}

impl Trial {
    fn of(&mut self, piece: &[u8]) -> &[u8] {
        self.made.clear();
        (self.map.local)(piece, &mut self.made);
        &self.made
    }

    /// Whether the piece becomes the same with this value as with those before.
    fn same(&mut self, piece: &[u8], value: impl Iterator<Item = u8>) -> bool {
        self.with_value(piece, value);
        match &self.first {
            Some(first) => *first == self.made,
            None => {
                self.first = Some(self.made.clone());
                true
            }
        }
    }

    /// Whether the piece becomes the same for all values of so many hex digits.
    fn all_same(&mut self, piece: &[u8], digits: usize, upper: bool, digit: bool) -> bool {
        stand_ins(digits, upper, digit).into_iter().all(|(even, odd)| {
            self.same(piece, (0..digits).map(|i| if i % 2 == 0 { even } else { odd }))
        })
    }

    fn with_value(&mut self, piece: &[u8], value: impl Iterator<Item = u8>) {
        let at = piece.iter().position(|b| *b == SLOT).unwrap_or(piece.len());
        self.text.clear();
        self.text.extend_from_slice(piece.get(..at).unwrap_or(&[]));
        self.text.extend(value);
        self.text.extend_from_slice(piece.get(at + 1..).unwrap_or(&[]));
        self.made.clear();
        (self.map.local)(&self.text, &mut self.made);
    }

    /// What becomes of a piece with one slot.
    fn outcome(
        &mut self,
        table: &TemplateTable,
        slots: &[PlacedSlot],
        slot: usize,
        piece: &[u8],
    ) -> Outcome {
        let Some(placed) = slots.get(slot) else { return Outcome::Open };
        let kind = match placed.slot {
            Slot::Same { of } => slots.get(usize::from(of)).map(|same| same.slot),
            slot => Some(slot),
        };
        self.first = None;
        let settled = match kind {
            Some(Slot::Int { digits, base, width }) => {
                lengths(digits, base, width).take(LENGTHS).all(|len| {
                    [b'1', b'2']
                        .into_iter()
                        .all(|digit| self.same(piece, std::iter::repeat_n(digit, len)))
                })
            }
            Some(Slot::Hex { digits, upper }) => {
                self.all_same(piece, digits.into(), upper, placed.digit)
            }
            // A piece of another column that is hex digits is as good as such a slot.
            Some(Slot::Field { classes, len, .. })
                if len > 0 && classes & (class::LOWER | class::UPPER) != 0 =>
            {
                let upper = classes & class::LOWER == 0;
                self.all_same(piece, len.into(), upper, placed.digit)
            }
            Some(Slot::Codes { first, count }) => {
                let mut made = TextVec::new();
                let first = first as usize;
                for i in first..first + usize::from(count) {
                    self.with_value(piece, table.dictionary().get(i).iter().copied());
                    made.push(&self.made);
                }
                let all_same = made.iter().all(|text| text == made.get(0));
                return if all_same {
                    Outcome::Settled(made.get(0).to_vec())
                } else {
                    Outcome::Codes(made)
                };
            }
            Some(Slot::Text { .. } | Slot::Same { .. } | Slot::Field { .. }) | None => false,
        };
        match self.first.take().filter(|_| settled) {
            Some(made) => Outcome::Settled(made),
            None => Outcome::Open,
        }
    }
}

/// So many lengths stand for all: whether one is even, and whether it is at least four, is all
/// that a function may tell of it.
const LENGTHS: usize = 6;

/// How many digits the numbers of a slot have.
fn lengths(digits: u8, base: u64, width: u8) -> std::ops::RangeInclusive<usize> {
    if digits > 0 {
        return digits.into()..=digits.into();
    }
    let length = |n: u64| n.checked_ilog10().map_or(1, |log| log as usize + 1);
    let span = 1u64.checked_shl(width.into()).map_or(u64::MAX, |n| n - 1);
    match base.checked_add(span) {
        Some(top) => length(base)..=length(top),
        None => 1..=length(u64::MAX),
    }
}

/// The digits at even and at odd places of values that stand for all values of so many hex digits;
/// `digit` says that each has a decimal digit, or is part of a run that has.
fn stand_ins(digits: usize, upper: bool, digit: bool) -> Vec<(u8, u8)> {
    let (a, b) = if upper { (b'A', b'B') } else { (b'a', b'b') };
    let mut out = vec![(b'1', b'1'), (b'2', b'2'), (b'1', a), (b'2', b)];
    // A single character is a digit or a letter.
    if !digit || digits == 1 {
        out.extend([(a, a), (b, b)]);
    }
    out
}
