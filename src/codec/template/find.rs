//! Search in the values of one slot, in the form in which a strip holds them.

use memchr::memmem::Finder;

use super::slot::{Slot, class, classes_of, number_of, pack_hex};
use super::table::TemplateTable;
use super::{CODES_MAX, DIGITS_MAX};

/// A text that a value holds: as a whole, at its start, at its end, or anywhere.
#[derive(Debug)]
pub(crate) struct SlotNeedle {
    finder: Finder<'static>,
    from_start: bool,
    to_end: bool,
    /// Whether case does not count; values are of ASCII then.
    fold: bool,
}

/// What to look for in the values of a slot.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum SlotTest {
    /// No value can hold the needle.
    Never,
    /// This number.
    Number(u64),
    /// These hex digits, packed.
    Packed(Vec<u8>),
    /// The codes whose values hold the needle.
    Codes(Vec<bool>),
    /// The text of each value has to be looked at.
    Text,
}

impl SlotNeedle {
    /// `needle` stands at the start of the value, at its end, if `ends` say so. With `fold` it is
    /// in lower case, and looked for in values of ASCII letters and digits in any case.
    pub(crate) fn new(needle: &[u8], ends: (bool, bool), fold: bool) -> SlotNeedle {
        let finder = Finder::new(needle).into_owned();
        SlotNeedle { finder, from_start: ends.0, to_end: ends.1, fold }
    }

    /// Whether a value holds the needle.
    pub(crate) fn is_in(&self, value: &[u8]) -> bool {
        let needle = self.finder.needle();
        if self.fold {
            return holds_folded(value, needle, self.from_start, self.to_end);
        }
        match (self.from_start, self.to_end) {
            (true, true) => value == needle,
            (true, false) => value.starts_with(needle),
            (false, true) => value.ends_with(needle),
            (false, false) => self.finder.find(value).is_some(),
        }
    }

    /// What to look for in the values of a slot.
    pub(super) fn test(&self, slot: Slot, table: &TemplateTable) -> SlotTest {
        let needle = self.finder.needle();
        let is_whole = self.from_start && self.to_end;
        match slot {
            Slot::Int { digits, .. } if is_whole => {
                let is_canonical = match digits {
                    0 => needle.len() == 1 || !needle.starts_with(b"0"),
                    digits => needle.len() == usize::from(digits),
                };
                let is_number = !needle.is_empty() && needle.iter().all(u8::is_ascii_digit);
                match needle.len() {
                    // Numbers of so many digits may not fit.
                    len if len >= DIGITS_MAX => SlotTest::Text,
                    _ if is_canonical && is_number => SlotTest::Number(number_of(needle)),
                    _ => SlotTest::Never,
                }
            }
            Slot::Hex { digits, upper } if is_whole && !self.fold => {
                let case = if upper { class::UPPER } else { class::LOWER };
                if needle.len() != usize::from(digits) || classes_of(needle) & case == 0 {
                    return SlotTest::Never;
                }
                let mut packed = Vec::new();
                pack_hex(needle, &mut packed);
                SlotTest::Packed(packed)
            }
            Slot::Codes { first, count } => {
                let values = (0..usize::from(count).min(CODES_MAX))
                    .map(|i| table.dictionary().get(first as usize + i));
                SlotTest::Codes(values.map(|value| self.is_in(value)).collect())
            }
            _ => SlotTest::Text,
        }
    }
}

/// Whether a value of ASCII holds a part in any case: at its start, at its end, as a whole.
pub(crate) fn holds_folded(value: &[u8], part: &[u8], from_start: bool, to_end: bool) -> bool {
    let Some(rest) = value.len().checked_sub(part.len()) else { return false };
    let is_at = |at: usize| {
        value.get(at..at + part.len()).is_some_and(|text| text.eq_ignore_ascii_case(part))
    };
    match (from_start, to_end) {
        (true, true) => rest == 0 && is_at(0),
        (true, false) => is_at(0),
        (false, true) => is_at(rest),
        (false, false) => (0..=rest).any(is_at),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::testing::{Columns, columns_of, lines, strips, text};
    use super::*;
    use crate::codec::Strip;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]
        #[test]
        fn finds_what_a_look_at_each_value_finds(
            lines in lines(),
            pick in any::<(usize, usize, usize)>(),
            free in prop::sample::select(vec!["", "0", "007", "a", "123456789012345678", "F"]),
            (from_start, to_end, alone) in any::<(bool, bool, bool)>(),
        ) {
            let values = text(&lines);
            let columns = if alone { Columns::new() } else { columns_of(&values) };
            let Some(strips) = strips(&values, &columns) else { return Ok(()) };
            for strip in &strips {
                let Strip::Templates(strip) = strip else { panic!("no templates") };
                let ids = strip.ids().clone();
                for template in ids.present() {
                    let rows = ids.ids().iter().filter(|id| u32::from(**id) == template).count();
                    for slot in 0..strip.table().slots(template as usize).1.len() {
                        let rows = 0..u16::try_from(rows).unwrap();
                        let values: Vec<Vec<u8>> =
                            rows.map(|rank| strip.value_of(template, slot, rank)).collect();
                        let value = &values[pick.0 % values.len()];
                        let from = if from_start { 0 } else { pick.1 % (value.len() + 1) };
                        let len = if to_end { value.len() } else { pick.2 % (value.len() + 1) };
                        let own = value.get(from..len.max(from)).unwrap_or(&[]);
                        for needle in [own, free.as_bytes()] {
                            let needle = SlotNeedle::new(needle, (from_start, to_end), false);
                            let want: Vec<u16> = (0u16..)
                                .zip(&values)
                                .filter(|(_, value)| needle.is_in(value))
                                .map(|(rank, _)| rank)
                                .collect();
                            prop_assert_eq!(strip.ranks_with(template, slot, &needle), want);
                            let own = own.to_ascii_lowercase();
                            let needle = SlotNeedle::new(&own, (from_start, to_end), true);
                            let want: Vec<u16> = (0u16..)
                                .zip(&values)
                                .filter(|(_, value)| {
                                    let value = value.to_ascii_lowercase();
                                    SlotNeedle::new(&own, (from_start, to_end), false).is_in(&value)
                                })
                                .map(|(rank, _)| rank)
                                .collect();
                            prop_assert_eq!(strip.ranks_with(template, slot, &needle), want);
                        }
                    }
                }
            }
        }
    }
}
