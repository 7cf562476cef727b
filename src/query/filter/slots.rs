//! Whether the slot of a template can take part in a match of a needle.

use super::judge::Verdict;
use std::cell::RefCell;

use super::template::{Needle, PageTemplates, PageWords};
use crate::codec::Bitmap;
use crate::codec::template::{PlacedSlot, Slot, TemplateTable, class, classes_of, holds_folded};
use crate::index;

/// Places in a needle, one bit each; longer needles are taken to match wherever a slot is.
type Places = u128;

/// The verdicts on templates of which `found` hold the needle in their text, none for those that
/// are not `alive`; and where the needle can stand in a slot only, those slots.
pub(super) fn with_slots(
    needle: &Needle<'_>,
    page: PageTemplates<'_>,
    found: &Bitmap,
    alive: Option<&Bitmap>,
) -> (Vec<Verdict>, Vec<(u32, u16)>) {
    let table = page.table;
    let is_open = |t: usize| !found.get(t) && alive.is_none_or(|alive| alive.get(t));
    let of = |t: usize| Verdict::of(found.get(t) && alive.is_none_or(|alive| alive.get(t)));
    let mut out = Parts { verdicts: (0..table.len()).map(of).collect(), inside: Vec::new() };
    let matcher = SlotMatcher::new(needle, page);
    let (text, bounds) = (needle.bytes, (needle.left, needle.right));
    let whole_words = index::Needle { text, bounds, fold: needle.fold };
    if !matcher.has_digit && !page.words.may_touch_digits(&whole_words) {
        // The run of letters and digits of any other slot is, or is in, a word with digits.
        for (template, slot) in table.loose_slots() {
            let t = *template as usize;
            if is_open(t) {
                out.add(*template, *slot, matcher.part(t, (*slot).into()));
            }
        }
    } else {
        for (template, t) in (0u32..).zip(0..table.len()).filter(|(_, t)| is_open(*t)) {
            for (slot, placed) in (0u16..).zip(table.slots(t).1) {
                if !matcher.is_out(placed) && !out.add(template, slot, matcher.part(t, slot.into()))
                {
                    break;
                }
            }
        }
    }
    (out.verdicts, out.inside)
}

/// Verdicts and slots as they are found.
struct Parts {
    verdicts: Vec<Verdict>,
    inside: Vec<(u32, u16)>,
}

impl Parts {
    /// Adds how a slot takes part; false if the other slots of its template do not count any more.
    fn add(&mut self, template: u32, slot: u16, part: Part) -> bool {
        let Some(verdict) = self.verdicts.get_mut(template as usize) else { return false };
        let is_last = |inside: &Vec<(u32, u16)>| inside.last().is_some_and(|(t, _)| *t == template);
        let is_across = *verdict == Verdict::Maybe && !is_last(&self.inside);
        match part {
            Part::None => {}
            _ if is_across => return false,
            Part::Inside => {
                *verdict = Verdict::Maybe;
                self.inside.push((template, slot));
            }
            Part::Across => {
                *verdict = Verdict::Maybe;
                while is_last(&self.inside) {
                    self.inside.pop();
                }
                return false;
            }
        }
        true
    }
}

/// How a slot takes part in matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// In none.
    None,
    /// All of the needle may stand in its value, and it takes part in no other way.
    Inside,
    /// The needle may stand partly in its value; or nothing is known.
    Across,
}

/// A needle, made ready for many slots.
struct SlotMatcher<'a> {
    needle: Needle<'a>,
    table: &'a TemplateTable,
    words: &'a dyn PageWords,
    /// For each column to which the page refers, whether the needle may be a piece of its values,
    /// if that was asked.
    in_fields: RefCell<Vec<Option<bool>>>,
    has_digit: bool,
    /// Whether the needle is a whole run of letters and digits.
    is_run: bool,
    is_long: bool,
    /// All places of the needle.
    all: Places,
    /// For each byte, the places in the needle where it stands.
    places: [Places; 256],
    /// For each class, the places in the needle of bytes that a value of this class may have.
    fits: [Places; 32],
}

impl<'a> SlotMatcher<'a> {
    fn new(needle: &Needle<'a>, page: PageTemplates<'a>) -> SlotMatcher<'a> {
        let has_digit = needle.bytes.iter().any(u8::is_ascii_digit);
        let mut matcher = SlotMatcher {
            needle: *needle,
            table: page.table,
            words: page.words,
            in_fields: RefCell::default(),
            has_digit,
            is_run: needle.left
                && needle.right
                && needle.bytes.iter().all(u8::is_ascii_alphanumeric),
            is_long: needle.bytes.len() >= Places::BITS as usize,
            all: 0,
            places: [0; 256],
            fits: [0; 32],
        };
        if matcher.is_long {
            return matcher;
        }
        matcher.all = (1 << needle.bytes.len()) - 1;
        for (i, b) in needle.bytes.iter().enumerate() {
            if let Some(places) = matcher.places.get_mut(usize::from(*b)) {
                *places |= 1 << i;
            }
            for (classes, fits) in (0u8..).zip(&mut matcher.fits) {
                *fits |= Places::from(may_be(*b, classes, needle.fold)) << i;
            }
        }
        matcher
    }

    /// The places in the needle that a byte of the text may be.
    fn places_of(&self, b: u8) -> Places {
        let b = match self.needle.fold {
            true if !b.is_ascii() => return Places::MAX,
            true => b.to_ascii_lowercase(),
            false => b,
        };
        self.places.get(usize::from(b)).copied().unwrap_or(Places::MAX)
    }

    /// Whether the kind of a slot alone says that it takes part in no match: its values are whole
    /// runs, as the needle is, and of other bytes.
    #[inline]
    fn is_out(&self, slot: &PlacedSlot) -> bool {
        self.is_run
            && slot.alone
            && slot.classes & class::WORD != 0
            && !self.is_long
            && self.fits.get(usize::from(slot.classes)).is_some_and(|fits| *fits != self.all)
    }

    /// How slot `i` of template `t` takes part.
    fn part(&self, t: usize, i: usize) -> Part {
        let needle = &self.needle;
        let slots = self.table.slots(t).1;
        let Some(slot) = slots.get(i) else { return Part::None };
        if slot.classes & class::WORD == 0 || self.is_long {
            return Part::Across;
        }
        let fits = self.fits.get(usize::from(slot.classes)).copied().unwrap_or(Places::MAX);
        if fits == 0 || self.is_out(slot) {
            return Part::None;
        }
        let values = match slot.slot {
            Slot::Same { of } => slots.get(usize::from(of)).map_or(slot.slot, |same| same.slot),
            own => own,
        };
        if self.is_run && slot.alone {
            // The value is a whole run as well.
            return self.holds(slot, values, 0..self.needle.bytes.len(), (true, true));
        }
        let around = Around::of(self.table.texts().get(t), slots, i);
        let (starts, ends) = (self.starts(&around), self.ends(&around));
        let mut part = Part::None;
        let mut open = starts & fits;
        while open != 0 {
            let i = open.trailing_zeros();
            open &= open - 1;
            // Ends lie behind the start, as far as the needle's bytes fit the slot.
            let run = (fits >> i).trailing_ones();
            let behind = Places::MAX.checked_shl(i + 1).unwrap_or(0);
            let within = !Places::MAX.checked_shl(i + run + 1).unwrap_or(0);
            let mut ends = ends & behind & within;
            if ends == 0 || i > 0 && !around.starts(needle, i as usize) {
                continue;
            }
            while ends != 0 {
                let j = ends.trailing_zeros();
                ends &= ends - 1;
                match self.stands(&around, slot, values, i as usize..j as usize) {
                    Part::Across => return Part::Across,
                    Part::Inside => part = Part::Inside,
                    Part::None => {}
                }
            }
        }
        part
    }

    /// The places of the needle's bytes that may be the slot's first of it.
    fn starts(&self, around: &Around<'_>) -> Places {
        let first = Places::from(!self.needle.left || !is_word(around.before.last()));
        match around.before.last() {
            Some(b) => first | self.places_of(*b) << 1,
            None if around.is_first => first,
            None => first | Places::MAX << 1,
        }
    }

    /// The places of the needle's bytes that may stand behind the slot; its length for none.
    fn ends(&self, around: &Around<'_>) -> Places {
        let len = self.needle.bytes.len();
        let none = Places::from(!self.needle.right || !is_word(around.after.first())) << len;
        let inner = (1 << len) - 1;
        match around.after.first() {
            Some(b) => none | self.places_of(*b) & inner,
            None if around.is_last => none,
            None => none | inner,
        }
    }

    /// Whether the needle may match with the bytes `range` of it in the slot.
    fn stands(
        &self,
        around: &Around<'_>,
        slot: &PlacedSlot,
        values: Slot,
        range: std::ops::Range<usize>,
    ) -> Part {
        let needle = &self.needle;
        let (i, j) = (range.start, range.end);
        if j < needle.bytes.len() && !around.ends(needle, j) {
            return Part::None;
        }
        let (from_start, to_end) = (i > 0 || needle.left, j < needle.bytes.len() || needle.right);
        let whole_left = needle.left || i > 0 && !is_alphanumeric(around.before.last());
        let whole_right =
            needle.right || j < needle.bytes.len() && !is_alphanumeric(around.after.first());
        if whole_left && whole_right && slot.digit && !self.has_digit {
            return Part::None;
        }
        self.holds(slot, values, range, (from_start, to_end))
    }

    /// Whether a value of a slot may hold the bytes `range` of the needle, at its ends as `ends`
    /// says.
    fn holds(
        &self,
        slot: &PlacedSlot,
        values: Slot,
        range: std::ops::Range<usize>,
        (from_start, to_end): (bool, bool),
    ) -> Part {
        let needle = &self.needle;
        if range.len() == needle.bytes.len()
            && from_start
            && to_end
            && slot.digit
            && !self.has_digit
        {
            return Part::None;
        }
        let part = needle.bytes.get(range).unwrap_or(&[]);
        if let (Slot::Field { column, .. }, true, true, false) =
            (values, from_start && to_end, part.len() == needle.bytes.len(), needle.fold)
            && !self.may_be_in_field(column)
        {
            return Part::None;
        }
        let held = Held { part, from_start, to_end, fold: needle.fold };
        match held.may_be_in(values, self.table) {
            false => Part::None,
            true if part.len() == needle.bytes.len() => Part::Inside,
            true => Part::Across,
        }
    }
}

impl SlotMatcher<'_> {
    /// Whether the needle may be a piece of a value of a column to which the page refers.
    fn may_be_in_field(&self, column: u8) -> bool {
        let column = usize::from(column);
        let mut known = self.in_fields.borrow_mut();
        if known.len() <= column {
            known.resize(column + 1, None);
        }
        let Some(known) = known.get_mut(column) else { return true };
        *known.get_or_insert_with(|| {
            self.words.may_have_piece(self.table.fields().get(column), self.needle.bytes)
        })
    }
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

    /// Whether the text before the slot lets a place in it be byte `i` of the needle, not the
    /// first.
    fn starts(&self, needle: &Needle<'_>, i: usize) -> bool {
        let tail = self.before.len().min(i);
        let want = needle.bytes.get(i - tail..i).unwrap_or(&[]);
        let have = self.before.get(self.before.len() - tail..).unwrap_or(&[]);
        same(want, have, needle.fold) && (tail == i || !self.is_first)
    }

    /// Whether the text behind the slot lets the slot's last byte be that before `j`, not the
    /// needle's last.
    fn ends(&self, needle: &Needle<'_>, j: usize) -> bool {
        let rest = needle.bytes.get(j..).unwrap_or(&[]);
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

/// What of a needle a value of a slot is to hold.
struct Held<'a> {
    part: &'a [u8],
    /// Whether the value begins with it.
    from_start: bool,
    /// Whether the value ends with it.
    to_end: bool,
    /// Whether case does not count.
    fold: bool,
}

impl Held<'_> {
    /// Whether a value of the slot, of ASCII, may hold it.
    fn may_be_in(&self, slot: Slot, table: &TemplateTable) -> bool {
        let Held { part, from_start, to_end, fold } = *self;
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
                let mut values =
                    (first..first + usize::from(count)).map(|i| table.dictionary().get(i));
                values.any(|value| match (from_start, to_end) {
                    _ if fold => holds_folded(value, part, from_start, to_end),
                    (true, true) => value == part,
                    (true, false) => value.starts_with(part),
                    (false, true) => value.ends_with(part),
                    (false, false) => memchr::memmem::find(value, part).is_some(),
                })
            }
            Slot::Field { len: 0, .. } | Slot::Text { .. } | Slot::Same { .. } => true,
            Slot::Field { len, .. } => by_length(len.into()),
        }
    }
}
