//! Finding out what becomes of a template, whatever its slots hold.

use std::ops::{Range, RangeInclusive};

use foldhash::fast::RandomState;
use hashbrown::HashMap;

use super::mapped::TextFn;
use crate::codec::template::{PlacedSlot, SLOT, Slot, TemplateTable, class};

fn is_separator(b: u8) -> bool {
    b.is_ascii() && !b.is_ascii_alphanumeric() && b != b'_' && b != SLOT
}

/// What becomes of a template of which the values of some slots decide.
#[derive(Debug)]
pub(super) struct OpenTemplate {
    /// What stands before each open piece, and behind the last.
    pub(super) between: Vec<Vec<u8>>,
    /// The open pieces.
    pub(super) open: Vec<OpenPiece>,
}

/// A part of a template's text of which the values of its slots decide what becomes.
#[derive(Debug)]
pub(super) struct OpenPiece {
    /// The part.
    pub(super) text: Range<usize>,
    /// Whether it begins with a separator that stands at the end of the piece before already.
    pub(super) context: bool,
    /// Its slots.
    pub(super) slots: Range<usize>,
}

/// What a local function makes of pieces of templates. The same pieces come in many templates, so
/// each is tried once.
#[derive(Debug)]
pub(super) struct Settler {
    local: TextFn,
    /// What becomes of a piece, by the kind of its slot's values and its text; nothing if the
    /// values decide.
    known: KnownPieces,
    trial: Trial,
    key: Vec<u8>,
}

/// Texts by what they are made of; nothing for what makes several.
type KnownPieces = HashMap<Box<[u8]>, Option<Box<[u8]>>, RandomState>;

/// So many pieces are remembered.
const KNOWN_MAX: usize = 4_096;
/// Longer pieces are not remembered.
const PIECE_MAX: usize = 256;

impl Settler {
    /// Nothing found out yet of what a local function does.
    pub(super) fn new(local: TextFn) -> Settler {
        Settler { local, known: HashMap::default(), trial: Trial::default(), key: Vec::new() }
    }

    /// Puts what becomes of all rows of a template into `settled`, if that is the same of all.
    pub(super) fn settle(
        &mut self,
        table: &TemplateTable,
        template: usize,
        settled: &mut Vec<u8>,
    ) -> Option<OpenTemplate> {
        settled.clear();
        let text = table.texts().get(template);
        let (_, slots) = table.slots(template);
        if slots.is_empty() {
            (self.local)(text, settled);
            return None;
        }
        let mut out = OpenTemplate { between: Vec::new(), open: Vec::new() };
        let mut slot = 0;
        for (range, count) in cut(text) {
            // A piece is looked at with the separator before it.
            let context = usize::from(range.start > 0);
            let piece = text.get(range.start - context..range.end).unwrap_or(&[]);
            let made = match (count, slots.get(slot)) {
                (0, _) => Some(self.trial.of(self.local, piece)),
                (1, Some(placed)) => Values::of(placed, slots, table)
                    .and_then(|values| self.of_values(piece, values)),
                _ => None,
            };
            match made {
                Some(made) => settled.extend_from_slice(made.get(context..).unwrap_or(&[])),
                None => {
                    out.between.push(std::mem::take(settled));
                    out.open.push(OpenPiece {
                        text: range.start - context..range.end,
                        context: context > 0,
                        slots: slot..slot + count,
                    });
                }
            }
            slot += count;
        }
        if out.open.is_empty() {
            return None;
        }
        out.between.push(std::mem::take(settled));
        Some(out)
    }

    /// What becomes of a piece with one slot, if it is the same for all of these values.
    fn of_values(&mut self, piece: &[u8], values: Values) -> Option<&[u8]> {
        if piece.len() > PIECE_MAX {
            return self.trial.common(self.local, piece, values).then_some(&self.trial.first);
        }
        self.key.clear();
        self.key.extend(values.key());
        self.key.extend_from_slice(piece);
        if !self.known.contains_key(self.key.as_slice()) {
            if self.known.len() >= KNOWN_MAX {
                self.known.clear();
            }
            let settled = self.trial.common(self.local, piece, values);
            let made = settled.then(|| Box::from(self.trial.first.as_slice()));
            self.known.insert(Box::from(self.key.as_slice()), made);
        }
        self.known.get(self.key.as_slice())?.as_deref()
    }
}

/// Cuts the text of a template into pieces, each up to and with a separator or the end, and tells
/// how many slots each has. One with slots begins behind the last separator before them.
fn cut(text: &[u8]) -> impl Iterator<Item = (Range<usize>, usize)> + '_ {
    let mut start = 0;
    std::iter::from_fn(move || {
        let rest = text.get(start..).filter(|rest| !rest.is_empty())?;
        let at_slot = memchr::memchr(SLOT, rest);
        let head = rest.get(..at_slot.unwrap_or(rest.len())).unwrap_or(&[]);
        let mut slots = 0;
        let len = match at_slot {
            None => rest.len(),
            Some(at) => match head.iter().rposition(|b| is_separator(*b)) {
                Some(separator) => separator + 1,
                None => {
                    let behind = rest.get(at..).unwrap_or(&[]);
                    let end = behind.iter().position(|b| {
                        slots += usize::from(*b == SLOT);
                        is_separator(*b)
                    });
                    end.map_or(rest.len(), |end| at + end + 1)
                }
            },
        };
        let range = start..start + len;
        start += len;
        Some((range, slots))
    })
}

/// What is known of all values of a slot, as far as a local function may tell values apart.
#[derive(Debug, Clone, Copy)]
struct Values {
    digits: Digits,
    /// A bit for each length ([`stand_in_length`]).
    lengths: u8,
    /// Whether each value has a decimal digit, or is part of a run that has.
    has_digit: bool,
}

#[derive(Debug, Clone, Copy)]
enum Digits {
    Decimal,
    LowerHex,
    UpperHex,
}

impl Values {
    /// Bytes that stand for what is known.
    fn key(self) -> [u8; 3] {
        [self.lengths, self.digits as u8 + 1, u8::from(self.has_digit)]
    }

    /// What is known of a slot's values; `None` if they are not digits.
    pub(super) fn of(
        placed: &PlacedSlot,
        slots: &[PlacedSlot],
        table: &TemplateTable,
    ) -> Option<Values> {
        let stored = match placed.slot {
            Slot::Same { of } => slots.get(usize::from(of))?,
            _ => placed,
        };
        let (classes, lengths) = match stored.slot {
            Slot::Int { digits, base, width } => {
                (class::DIGIT, bits_of(int_lengths(digits, base, width)))
            }
            Slot::Hex { digits, .. } => (stored.classes, bit(digits.into())),
            Slot::Field { len: 0, .. } => (stored.classes & class::DIGIT, bits_of(1..=LENGTHS)),
            Slot::Field { classes, len, .. } => (classes, bit(len.into())),
            Slot::Codes { first, count } => {
                let first = first as usize;
                let values = (first..first + usize::from(count)).map(|i| table.dictionary().get(i));
                (stored.classes, values.fold(0, |bits, value| bits | bit(value.len())))
            }
            Slot::Text { .. } | Slot::Same { .. } => return None,
        };
        let digits = match classes {
            _ if classes & class::DIGIT != 0 => Digits::Decimal,
            _ if classes & class::LOWER != 0 => Digits::LowerHex,
            _ if classes & class::UPPER != 0 => Digits::UpperHex,
            _ => return None,
        };
        Some(Values { digits, lengths, has_digit: placed.digit })
    }
}

/// So many lengths stand for all.
const LENGTHS: usize = 5;

/// The length of the values that stand for those of another one: whether it is even, and whether
/// it is at least four, is all that a function may tell of a length.
fn stand_in_length(len: usize) -> usize {
    if len <= LENGTHS { len } else { LENGTHS - 1 + len % 2 }
}

fn bit(len: usize) -> u8 {
    1 << stand_in_length(len)
}

fn bits_of(lengths: RangeInclusive<usize>) -> u8 {
    lengths.fold(0, |bits, len| bits | bit(len))
}

/// How many digits the numbers of a slot have.
fn int_lengths(digits: u8, base: u64, width: u8) -> RangeInclusive<usize> {
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

/// Tries values of a slot.
#[derive(Debug, Default)]
struct Trial {
    text: Vec<u8>,
    made: Vec<u8>,
    /// What became of the first value.
    first: Vec<u8>,
}

impl Trial {
    fn of(&mut self, local: TextFn, piece: &[u8]) -> &[u8] {
        self.first.clear();
        local(piece, &mut self.first);
        &self.first
    }

    /// Whether a piece with one slot becomes the same for all of these values.
    fn common(&mut self, local: TextFn, piece: &[u8], values: Values) -> bool {
        let mut is_first = true;
        let lengths = (0..=LENGTHS).filter(|len| values.lengths >> len & 1 != 0);
        lengths.flat_map(|len| stand_ins(len, values)).all(|(len, even, odd)| {
            self.with_value(local, piece, (0..len).map(|i| if i % 2 == 0 { even } else { odd }));
            if std::mem::take(&mut is_first) {
                std::mem::swap(&mut self.first, &mut self.made);
                return true;
            }
            self.first == self.made
        }) && !is_first
    }

    fn with_value(&mut self, local: TextFn, piece: &[u8], value: impl Iterator<Item = u8>) {
        let at = memchr::memchr(SLOT, piece).unwrap_or(piece.len());
        self.text.clear();
        self.text.extend_from_slice(piece.get(..at).unwrap_or(&[]));
        self.text.extend(value);
        self.text.extend_from_slice(piece.get(at + 1..).unwrap_or(&[]));
        self.made.clear();
        local(&self.text, &mut self.made);
    }
}

/// Values that stand for all of a length: that, and their digits at even and at odd places.
fn stand_ins(len: usize, values: Values) -> Vec<(usize, u8, u8)> {
    let (a, b) = match values.digits {
        Digits::Decimal => return vec![(len, b'1', b'1'), (len, b'2', b'2')],
        Digits::LowerHex => (b'a', b'b'),
        Digits::UpperHex => (b'A', b'B'),
    };
    let mut out = vec![(len, b'1', b'1'), (len, b'2', b'2'), (len, b'1', a), (len, b'2', b)];
    // A single character is a digit or a letter.
    if !values.has_digit || len == 1 {
        out.extend([(len, a, a), (len, b, b)]);
    }
    out
}
