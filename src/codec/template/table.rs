//! The templates of a page, as its head holds them.

use super::slot::{Slot, class, classes_of};
use super::{
    DIGITS_MAX, FIELD_NAME_MAX, FIELDS_MAX, ROW_SLOTS_MAX, SHAPES_MAX, SLOT, TEMPLATES_MAX,
};
use crate::codec::compress::Compressor;
use crate::codec::page::Decoder;
use crate::codec::varint::{Reader, put_bytes, put_varint};
use crate::codec::{PAGE_RAW_MAX, plain};
use crate::error::Malformed;
use crate::record::TextVec;

/// The templates of a page: their texts, and how the values of their slots are stored.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TemplateTable {
    texts: TextVec,
    /// For each template, the end of its slots in `slots`.
    slot_ends: Vec<u32>,
    slots: Vec<PlacedSlot>,
    dictionary: TextVec,
    /// The names of the columns to which slots refer.
    fields: TextVec,
    /// The most bytes that a value not stored as text in a strip may have.
    longest_value: usize,
    /// The slots whose values are not all, or pieces of, letters and digits with a digit: by
    /// template and place, ascending.
    loose: Vec<(u32, u16)>,
}

/// A slot and its place in the text of its template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PlacedSlot {
    /// Where its byte stands in the text.
    pub(crate) at: u32,
    /// How its values are stored.
    pub(crate) slot: Slot,
    /// The classes ([`class`]) that all bytes of all its values have; 0 if a value may be empty.
    pub(crate) classes: u8,
    /// Whether the run of letters and digits of which each value is, or is a part, has a digit.
    pub(crate) digit: bool,
    /// Whether neither the text nor another slot goes on beside it with letters or digits.
    pub(crate) alone: bool,
}

/// What an encoder collects for the head of a page.
#[derive(Debug, Default)]
pub(super) struct TableBuilder {
    /// The texts of all templates, one after the other.
    pub(super) texts: Vec<u8>,
    /// For each template the length of its text and the descriptions of its slots.
    pub(super) shapes: Vec<u8>,
    /// The values of all dictionary slots.
    pub(super) dictionary: TextVec,
    /// The names of the columns to which slots refer.
    pub(super) fields: TextVec,
    /// The number of templates.
    pub(super) count: usize,
}

impl TableBuilder {
    /// Forgets the templates of the page before.
    pub(super) fn clear(&mut self) {
        self.texts.clear();
        self.shapes.clear();
        self.dictionary.clear();
        self.fields.clear();
        self.count = 0;
    }

    /// Appends the parameters of the page's head.
    pub(super) fn finish(&self, zstd: &mut Compressor, out: &mut Vec<u8>) {
        put_varint(out, self.count as u64);
        let mut blob = Vec::new();
        for part in [&self.texts, &self.shapes] {
            blob.clear();
            zstd.pack(part, &mut blob);
            put_bytes(out, &blob);
        }
        put_varint(out, self.fields.len() as u64);
        self.fields.iter().for_each(|name| put_bytes(out, name));
        put_varint(out, self.dictionary.len() as u64);
        if !self.dictionary.is_empty() {
            plain::encode_strip(&self.dictionary, (0, self.dictionary.len()), zstd, out);
        }
    }
}

impl TemplateTable {
    /// Reads the parameters of a head, up to its end.
    pub(in crate::codec) fn decode(
        r: &mut Reader<'_>,
        decoder: &mut Decoder,
    ) -> Result<TemplateTable, Malformed> {
        let count = r.len(TEMPLATES_MAX)?;
        let bytes = decoder.zstd.unpack(r.bytes(PAGE_RAW_MAX)?, PAGE_RAW_MAX)?;
        let shapes = decoder.zstd.unpack(r.bytes(SHAPES_MAX)?, SHAPES_MAX)?;
        let mut fields = TextVec::new();
        for _ in 0..r.len(FIELDS_MAX)? {
            fields.push(r.bytes(FIELD_NAME_MAX)?);
        }
        let values = r.len(PAGE_RAW_MAX)?;
        let rest = r.take(r.rest().len())?;
        let dictionary = match values {
            0 if rest.is_empty() => TextVec::new(),
            0 => return Err(Malformed("bytes left over")),
            _ if values > shapes.len().saturating_mul(super::CODES_MAX) => {
                return Err(Malformed("more values than dictionary slots have"));
            }
            _ => plain::decode_strip(rest, values, decoder)?,
        };
        let mut table = TemplateTable {
            texts: TextVec::new(),
            slot_ends: Vec::with_capacity(count),
            slots: Vec::new(),
            fields,
            longest_value: dictionary.iter().map(<[u8]>::len).fold(DIGITS_MAX + 1, usize::max),
            dictionary,
            loose: Vec::new(),
        };
        let ends = table.read_shapes(&bytes, &shapes, count)?;
        table.texts = TextVec::from_parts(ends, bytes)?;
        // Heads are kept for long.
        table.slots.shrink_to_fit();
        table.loose.shrink_to_fit();
        Ok(table)
    }

    /// Reads the lengths and slots of all templates; returns where the texts end.
    fn read_shapes(
        &mut self,
        texts: &[u8],
        shapes: &[u8],
        count: usize,
    ) -> Result<Vec<u32>, Malformed> {
        let mut r = Reader::new(shapes);
        let mut rest = texts;
        let mut ends = Vec::with_capacity(count);
        let (mut end, mut first) = (0u32, 0u32);
        for _ in 0..count {
            let len = r.varint32()?;
            let (text, after) = (rest.split_at_checked(len as usize))
                .ok_or(Malformed("texts of templates end early"))?;
            rest = after;
            end = end.checked_add(len).ok_or(Malformed("texts of 4 GiB"))?;
            ends.push(end);
            self.read_slots(text, &mut r, &mut first)?;
        }
        r.finish()?;
        if !rest.is_empty() || first as usize != self.dictionary.len() {
            return Err(Malformed("templates do not use up their texts and values"));
        }
        Ok(ends)
    }

    fn read_slots(
        &mut self,
        text: &[u8],
        r: &mut Reader<'_>,
        first: &mut u32,
    ) -> Result<(), Malformed> {
        let start = self.slots.len();
        for at in memchr::memchr_iter(SLOT, text) {
            let (slot, digit) = Slot::decode(r, *first)?;
            let word = class::WORD | class::TEXT;
            let classes = match slot {
                Slot::Int { .. } => word | class::DIGIT | class::LOWER | class::UPPER,
                Slot::Hex { digits: 0, .. } => 0,
                Slot::Hex { upper, digits } => {
                    self.longest_value = self.longest_value.max(digits.into());
                    word | if upper { class::UPPER } else { class::LOWER }
                }
                Slot::Text { word: true } => word,
                Slot::Text { word: false } => 0,
                Slot::Codes { count, .. } => {
                    let from = *first as usize;
                    *first += u32::from(count);
                    (from..from + usize::from(count)).fold(u8::MAX, |all, i| {
                        let value = self.dictionary.get(i);
                        if value.is_empty() { 0 } else { all & classes_of(value) }
                    })
                }
                Slot::Same { of } => match self.slots.get(start + usize::from(of)) {
                    Some(PlacedSlot { slot: Slot::Same { .. }, .. }) | None => {
                        return Err(Malformed("slot that repeats none before it"));
                    }
                    Some(same) => same.classes,
                },
                Slot::Field { column, .. } if usize::from(column) >= self.fields.len() => {
                    return Err(Malformed("slot of a column that the page does not name"));
                }
                Slot::Field { classes, .. } => classes,
            };
            let alone = is_alone(text, at);
            let at = u32::try_from(at).map_err(|_| Malformed("texts of 4 GiB"))?;
            if !digit || classes & class::WORD == 0 {
                let place = u16::try_from(self.slots.len() - start);
                let place = place.map_err(|_| Malformed("template with too many slots"))?;
                self.loose.push((u32::try_from(self.slot_ends.len()).unwrap_or(u32::MAX), place));
            }
            self.slots.push(PlacedSlot { at, slot, classes, digit, alone });
        }
        if self.slots.len() - start > ROW_SLOTS_MAX {
            return Err(Malformed("template with too many slots"));
        }
        self.slot_ends.push(u32::try_from(self.slots.len()).unwrap_or(u32::MAX));
        Ok(())
    }

    /// The number of templates.
    pub(crate) fn len(&self) -> usize {
        self.texts.len()
    }

    /// The texts of all templates, in which [`SLOT`] stands for a slot.
    pub(crate) fn texts(&self) -> &TextVec {
        &self.texts
    }

    /// The slots of all templates, one after the other.
    pub(super) fn all_slots(&self) -> &[PlacedSlot] {
        &self.slots
    }

    /// The slots of a template, and the number of the first one among all.
    #[inline]
    pub(crate) fn slots(&self, template: usize) -> (usize, &[PlacedSlot]) {
        let end_of = |t: usize| self.slot_ends.get(t).map_or(0, |end| *end as usize);
        let start = template.checked_sub(1).map_or(0, end_of);
        (start, self.slots.get(start..end_of(template)).unwrap_or(&[]))
    }

    /// The slot whose values a slot of a template has, and its number among all.
    pub(super) fn stored(&self, template: usize, slot: usize) -> Option<(Slot, usize)> {
        let (first, slots) = self.slots(template);
        let of = match slots.get(slot)?.slot {
            Slot::Same { of } => usize::from(of),
            _ => slot,
        };
        slots.get(of).map(|placed| (placed.slot, first + of))
    }

    /// The number of values of the dictionary of a slot; 0 if it has none.
    pub(crate) fn codes_of(&self, template: usize, slot: usize) -> usize {
        match self.stored(template, slot) {
            Some((Slot::Codes { count, .. }, _)) => count.into(),
            _ => 0,
        }
    }

    /// The slots in which a word without digits may stand, or of which nothing is known, by
    /// template and place, ascending.
    pub(crate) fn loose_slots(&self) -> &[(u32, u16)] {
        &self.loose
    }

    /// A bound on the bytes of the values that do not stand in strips as text.
    pub(super) fn longest_value(&self) -> usize {
        self.longest_value
    }

    /// The values of all dictionary slots.
    pub(crate) fn dictionary(&self) -> &TextVec {
        &self.dictionary
    }

    /// The names of the columns of the block whose values stand in slots.
    pub(crate) fn fields(&self) -> &TextVec {
        &self.fields
    }

    /// Bytes of memory held.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.texts.heap_bytes()
            + self.fields.heap_bytes()
            + self.dictionary.heap_bytes()
            + self.slot_ends.capacity() * size_of::<u32>()
            + self.slots.capacity() * size_of::<PlacedSlot>()
            + self.loose.capacity() * size_of::<(u32, u16)>()
    }
}

/// Whether neither neighbour of the slot at `at` is a slot, or an ASCII letter or digit.
fn is_alone(text: &[u8], at: usize) -> bool {
    let goes_on = |b: &u8| b.is_ascii_alphanumeric() || *b == SLOT;
    let before = at.checked_sub(1).and_then(|before| text.get(before));
    !before.is_some_and(goes_on) && !text.get(at + 1).is_some_and(goes_on)
}
