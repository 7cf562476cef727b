//! A strip: the template of each row, and the values of the slots.
//!
//! `templates (codes of a dictionary, behind their length) | codes (packed blob behind its length,
//! if any slot has some) | texts (plain strip behind its length, likewise) | hex digits | bits`.
//! Each of the last four holds, for each template in order, for each of its slots in order, the
//! values of the template's rows in order. How many values there are of each follows from the
//! templates of the rows.

use std::sync::Arc;

use super::fields::FieldValues;
use super::find::{SlotNeedle, SlotTest};
use super::slot::{Slot, classes_of, print_hex, print_number};
use super::table::TemplateTable;
use super::{DIGITS_MAX, bits, slot};
use crate::codec::page::Decoder;
use crate::codec::varint::Reader;
use crate::codec::{PAGE_RAW_MAX, STRIP_ROWS, Strip, dictionary, plain};
use crate::error::Malformed;
use crate::record::TextVec;

/// The most bytes that the templates of a strip's rows take.
const IDS_MAX: usize = STRIP_ROWS * 8 + 64;

/// The rows of a strip, rendered on demand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TemplateStrip {
    table: Arc<TemplateTable>,
    ids: Arc<TemplateIds>,
    values: Values,
}

/// The values of all slots in a strip.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Values {
    /// For each slot of the table, where its values begin: a bit, byte, code or text.
    starts: Vec<u32>,
    codes: Vec<u8>,
    texts: TextVec,
    /// Those that stand in other columns.
    fields: FieldValues,
    hex: Vec<u8>,
    bits: Vec<u8>,
}

/// How much there is of each kind of value.
#[derive(Debug, Default, Clone, Copy)]
struct Sizes {
    codes: u64,
    texts: u64,
    fields: u64,
    hex: u64,
    bits: u64,
}

impl Sizes {
    /// Where the values of `slot` go.
    fn of(&mut self, slot: Slot) -> Option<&mut u64> {
        match slot {
            Slot::Text { .. } => Some(&mut self.texts),
            Slot::Int { .. } => Some(&mut self.bits),
            Slot::Hex { .. } => Some(&mut self.hex),
            Slot::Codes { .. } => Some(&mut self.codes),
            Slot::Field { .. } => Some(&mut self.fields),
            Slot::Same { .. } => None,
        }
    }
}

/// The templates of a strip's rows, decoded without the values of their slots.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct TemplateIds {
    ids: Vec<u16>,
    /// How many rows of the same template stand before each row in the strip.
    ranks: Vec<u16>,
    /// The templates that have rows, ascending, and how many.
    present: Vec<(u16, u16)>,
}

impl TemplateIds {
    /// Decodes the templates of a strip of `rows` rows.
    pub(in crate::codec) fn decode(
        bytes: &[u8],
        rows: usize,
        table: &TemplateTable,
        decoder: &mut Decoder,
    ) -> Result<TemplateIds, Malformed> {
        let (ids, _) = decode_ids(bytes, rows, table, decoder)?;
        let mut counts = vec![0u16; table.len()];
        let mut out = TemplateIds::default();
        out.ids.reserve_exact(rows);
        out.ranks.reserve_exact(rows);
        for id in ids {
            // A page has no more templates than that.
            out.ids.push(u16::try_from(id).unwrap_or(u16::MAX));
            let Some(count) = counts.get_mut(id as usize) else { continue };
            out.ranks.push(*count);
            *count += 1;
        }
        let present = (0u16..=u16::MAX).zip(counts).filter(|(_, count)| *count > 0);
        out.present = present.collect();
        Ok(out)
    }

    /// The template of each row.
    pub(crate) fn ids(&self) -> &[u16] {
        &self.ids
    }

    /// The templates that have rows, ascending.
    pub(crate) fn present(&self) -> impl Iterator<Item = u32> + '_ {
        self.present.iter().map(|(id, _)| u32::from(*id))
    }

    /// The template of a row, and how many rows of it stand before the row.
    #[inline]
    fn get(&self, row: usize) -> Option<(usize, u16)> {
        Some((usize::from(*self.ids.get(row)?), *self.ranks.get(row)?))
    }

    /// The number of rows of a template.
    fn rows_of(&self, template: u32) -> u16 {
        let at = self.present.binary_search_by_key(&template, |(id, _)| u32::from(*id));
        at.ok().and_then(|at| self.present.get(at)).map_or(0, |(_, count)| *count)
    }

    /// The templates that have rows, and how many.
    pub(crate) fn counts(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        self.present.iter().map(|(id, count)| (usize::from(*id), usize::from(*count)))
    }

    /// Bytes of memory held.
    pub(crate) fn heap_bytes(&self) -> usize {
        (self.ids.capacity() + self.ranks.capacity()) * size_of::<u16>()
            + self.present.capacity() * size_of::<(u16, u16)>()
    }
}

/// Reads the templates of the rows only; the rest of the bytes are the values of the slots.
fn decode_ids<'a>(
    bytes: &'a [u8],
    rows: usize,
    table: &TemplateTable,
    decoder: &mut Decoder,
) -> Result<(Vec<u32>, &'a [u8]), Malformed> {
    let mut r = Reader::new(bytes);
    let ids = dictionary::decode_codes(r.bytes(IDS_MAX)?, rows, table.len(), decoder)?;
    Ok((ids, r.rest()))
}

impl TemplateStrip {
    /// Decodes a strip of `rows` rows; `beside` are the strips of the columns that the table
    /// refers to.
    pub(in crate::codec) fn decode(
        bytes: &[u8],
        rows: usize,
        table: &Arc<TemplateTable>,
        beside: &[Arc<Strip>],
        decoder: &mut Decoder,
    ) -> Result<TemplateStrip, Malformed> {
        let ids = Arc::new(TemplateIds::decode(bytes, rows, table, decoder)?);
        TemplateStrip::decode_values(bytes, &ids, table, beside, decoder)
    }

    /// Decodes the values of a strip whose templates are known.
    pub(in crate::codec) fn decode_values(
        bytes: &[u8],
        ids: &Arc<TemplateIds>,
        table: &Arc<TemplateTable>,
        beside: &[Arc<Strip>],
        decoder: &mut Decoder,
    ) -> Result<TemplateStrip, Malformed> {
        let mut r = Reader::new(bytes);
        r.bytes(IDS_MAX)?;
        let (starts, sizes) = layout(ids, table)?;
        let places = (starts.as_slice(), cap(sizes.fields)?);
        let fields = FieldValues::new(&ids.ids, &ids.ranks, table, places, beside)?;
        let values = Values { starts, fields, ..Values::default() };
        let values = values.decode(r.rest(), sizes, decoder)?;
        values.check(ids, table)?;
        let strip = TemplateStrip { table: Arc::clone(table), ids: Arc::clone(ids), values };
        strip.check_length()?;
        Ok(strip)
    }

    /// The number of rows.
    pub(crate) fn len(&self) -> usize {
        self.ids.ids.len()
    }

    /// The templates of the rows.
    #[cfg(test)]
    pub(crate) fn ids(&self) -> &Arc<TemplateIds> {
        &self.ids
    }

    /// How many rows of the same template stand before `row` in the strip.
    pub(crate) fn rank(&self, row: usize) -> Option<u16> {
        self.ids.ranks.get(row).copied()
    }

    /// The ranks of the rows of `template` whose value in its slot `slot` holds `needle`,
    /// ascending.
    pub(crate) fn ranks_with(&self, template: u32, slot: usize, needle: &SlotNeedle) -> Vec<u16> {
        let (first, slots) = self.table.slots(template as usize);
        let value_of = |i: usize| slots.get(i).map(|placed| (i, placed.slot));
        let found = match value_of(slot) {
            Some((_, Slot::Same { of })) => value_of(usize::from(of)),
            own => own,
        };
        let Some((i, slot)) = found else { return Vec::new() };
        let rows = self.ids.rows_of(template);
        let holds = needle.test(slot, &self.table);
        let mut scratch = Vec::new();
        let mut passes = |rank: u16| {
            let at = self.values.place(slot, first + i, rank);
            match &holds {
                SlotTest::Never => false,
                SlotTest::Number(n) => match slot {
                    Slot::Int { base, width, .. } => {
                        base.wrapping_add(bits::get(&self.values.bits, at.into(), width.into()))
                            == *n
                    }
                    _ => false,
                },
                SlotTest::Packed(packed) => {
                    let at = at as usize;
                    self.values.hex.get(at..at + packed.len()) == Some(packed)
                }
                SlotTest::Codes(codes) => {
                    let code = self.values.codes.get(at as usize).copied().unwrap_or(0);
                    codes.get(usize::from(code)).copied().unwrap_or(false)
                }
                SlotTest::Text => {
                    scratch.clear();
                    self.values.print(slot, first + i, rank, &self.table, &mut scratch);
                    needle.is_in(&scratch)
                }
            }
        };
        (0..rows).filter(|rank| passes(*rank)).collect()
    }

    /// The value of a slot in the row of that rank.
    #[cfg(test)]
    pub(super) fn value_of(&self, template: u32, slot: usize, rank: u16) -> Vec<u8> {
        let (first, slots) = self.table.slots(template as usize);
        let slot = match slots[slot].slot {
            Slot::Same { of } => usize::from(of),
            _ => slot,
        };
        let mut out = Vec::new();
        self.values.print(slots[slot].slot, first + slot, rank, &self.table, &mut out);
        out
    }

    /// The templates of the page.
    #[cfg(test)]
    pub(crate) fn table(&self) -> &Arc<TemplateTable> {
        &self.table
    }

    /// Appends the text of `row` to `out`.
    #[inline]
    pub(crate) fn render(&self, row: usize, out: &mut Vec<u8>) {
        let Some((template, rank)) = self.ids.get(row) else { return };
        let text = self.table.texts().get(template);
        let (first, slots) = self.table.slots(template);
        let mut from = 0;
        for (i, placed) in slots.iter().enumerate() {
            let at = placed.at as usize;
            out.extend_from_slice(text.get(from..at).unwrap_or(&[]));
            match placed.slot {
                Slot::Same { of } => {
                    let of = usize::from(of);
                    if let Some(target) = slots.get(of) {
                        self.values.print(target.slot, first + of, rank, &self.table, out);
                    }
                }
                slot => self.values.print(slot, first + i, rank, &self.table, out),
            }
            from = at + 1;
        }
        out.extend_from_slice(text.get(from..).unwrap_or(&[]));
    }

    /// Appends the value of a slot of the template of `row`.
    pub(crate) fn push_value(&self, row: usize, slot: usize, out: &mut Vec<u8>) {
        let Some((template, rank)) = self.ids.get(row) else { return };
        if let Some((slot, i)) = self.table.stored(template, slot) {
            self.values.print(slot, i, rank, &self.table, out);
        }
    }

    /// The code of the value of a dictionary slot of the template of `row`.
    pub(crate) fn code(&self, row: usize, slot: usize) -> u8 {
        let Some((template, rank)) = self.ids.get(row) else { return 0 };
        let Some((_, i)) = self.table.stored(template, slot) else { return 0 };
        let start = self.values.starts.get(i).map_or(0, |start| *start as usize);
        self.values.codes.get(start + usize::from(rank)).copied().unwrap_or(0)
    }

    /// Appends the texts of all rows.
    pub(crate) fn append_to(&self, out: &mut TextVec) {
        for row in 0..self.len() {
            self.render(row, out.open());
            out.close();
        }
    }

    /// Fails if the texts of the rows are longer than a page may be.
    fn check_length(&self) -> Result<(), Malformed> {
        let table = &self.table;
        let texts = self.values.texts.iter().map(<[u8]>::len).max().unwrap_or(0);
        let texts = texts.max(self.values.fields.longest());
        let mut bound = 0;
        for (template, count) in self.ids.counts() {
            let slots = table.slots(template).1;
            let longest = slots.len().saturating_mul(texts.max(table.longest_value()));
            bound += (table.texts().get(template).len() + longest) * count;
        }
        // Nearly always a rough bound is enough.
        let fits = bound <= PAGE_RAW_MAX || {
            let mut rows = 0..self.len();
            let total = rows.try_fold(0usize, |total, row| {
                Some(total + self.length(row)).filter(|total| *total <= PAGE_RAW_MAX)
            });
            total.is_some()
        };
        if fits { Ok(()) } else { Err(Malformed("strip over the cap of a page")) }
    }

    /// The length of a row's text, numbers taken to have as many digits as they may.
    fn length(&self, row: usize) -> usize {
        let Some((id, rank)) = self.ids.get(row) else { return 0 };
        let (first, slots) = self.table.slots(id);
        let value = |i: usize, slot: Slot| match slot {
            Slot::Int { .. } => DIGITS_MAX,
            Slot::Hex { digits, .. } => usize::from(digits),
            slot => self.values.text_of(slot, first + i, rank, &self.table).len(),
        };
        let of_slots = slots.iter().enumerate().map(|(i, placed)| match placed.slot {
            Slot::Same { of } => {
                slots.get(usize::from(of)).map_or(0, |same| value(usize::from(of), same.slot))
            }
            slot => value(i, slot),
        });
        self.table.texts().get(id).len() + of_slots.sum::<usize>()
    }

    /// Bytes of memory held, the shared table and templates not counted.
    pub(crate) fn heap_bytes(&self) -> usize {
        let v = &self.values;
        v.starts.capacity() * size_of::<u32>()
            + v.codes.capacity()
            + v.texts.heap_bytes()
            + v.fields.heap_bytes()
            + v.hex.capacity()
            + v.bits.capacity()
    }
}

impl Values {
    /// Reads the values that the strip holds itself.
    fn decode(
        mut self,
        bytes: &[u8],
        sizes: Sizes,
        decoder: &mut Decoder,
    ) -> Result<Values, Malformed> {
        let mut r = Reader::new(bytes);
        if sizes.codes > 0 {
            let count = cap(sizes.codes)?;
            decoder.zstd.unpack_into(r.bytes(count + 64)?, count, &mut self.codes)?;
            if self.codes.len() != count {
                return Err(Malformed("number of codes is not that of rows"));
            }
        }
        if sizes.texts > 0 {
            let texts = r.bytes(PAGE_RAW_MAX)?;
            self.texts = plain::decode_strip(texts, cap(sizes.texts)?, decoder)?;
        }
        self.hex = r.take(cap(sizes.hex)?)?.to_vec();
        let packed = r.take(cap(sizes.bits.div_ceil(8))?)?;
        r.finish()?;
        self.bits.reserve_exact(packed.len() + bits::PADDING);
        self.bits.extend_from_slice(packed);
        self.bits.resize(packed.len() + bits::PADDING, 0);
        Ok(self)
    }

    /// Checks the codes, and that the texts are of their kind.
    fn check(&self, ids: &TemplateIds, table: &TemplateTable) -> Result<(), Malformed> {
        for_each_column(ids, table, |i, slot, count| {
            let start = self.starts.get(i).map_or(0, |start| *start as usize);
            match slot {
                Slot::Codes { count: values, .. } => {
                    let codes = self.codes.get(start..start + count).unwrap_or(&[]);
                    let max = codes.iter().copied().max().map_or(0, u16::from);
                    if max >= values {
                        Err(Malformed("code past its slot's values"))
                    } else {
                        Ok(())
                    }
                }
                Slot::Text { word: true } => {
                    let words = (start..start + count)
                        .all(|i| classes_of(self.texts.get(i)) & slot::class::WORD != 0);
                    if words { Ok(()) } else { Err(Malformed("slot of words with other bytes")) }
                }
                _ => Ok(()),
            }
        })
    }

    /// Where the value of the slot numbered `i` of all is, in the row of that rank.
    #[inline]
    fn place(&self, slot: Slot, i: usize, rank: u16) -> u32 {
        self.starts.get(i).copied().unwrap_or(0) + u32::from(rank) * slot.unit()
    }

    /// Appends the value of the slot numbered `i` of all, in the row of that rank.
    #[inline]
    fn print(&self, slot: Slot, i: usize, rank: u16, table: &TemplateTable, out: &mut Vec<u8>) {
        let at = self.place(slot, i, rank);
        match slot {
            Slot::Int { digits, base, width } => {
                let n = bits::get(&self.bits, u64::from(at), u32::from(width));
                print_number(base.wrapping_add(n), digits, out);
            }
            Slot::Hex { digits, upper } => {
                let at = at as usize;
                let packed = self.hex.get(at..at + slot.unit() as usize).unwrap_or(&[]);
                print_hex(packed, digits, upper, out);
            }
            slot => out.extend_from_slice(self.text_of(slot, i, rank, table)),
        }
    }

    /// The value of a slot that is stored as text.
    #[inline]
    fn text_of<'a>(
        &'a self,
        slot: Slot,
        i: usize,
        rank: u16,
        table: &'a TemplateTable,
    ) -> &'a [u8] {
        let at = self.starts.get(i).copied().unwrap_or(0) as usize + usize::from(rank);
        match slot {
            Slot::Text { .. } => self.texts.get(at),
            Slot::Field { .. } => self.fields.get(at),
            Slot::Codes { first, .. } => {
                let code = self.codes.get(at).copied().unwrap_or(0);
                table.dictionary().get(first as usize + usize::from(code))
            }
            Slot::Int { .. } | Slot::Hex { .. } | Slot::Same { .. } => &[],
        }
    }
}

/// A count of values as a size in memory.
fn cap(n: u64) -> Result<usize, Malformed> {
    usize::try_from(n).map_err(|_| Malformed("strip over its cap"))
}

/// Calls `each` with the number of each slot of a template that has rows, and their number.
fn for_each_column(
    ids: &TemplateIds,
    table: &TemplateTable,
    mut each: impl FnMut(usize, Slot, usize) -> Result<(), Malformed>,
) -> Result<(), Malformed> {
    for (template, count) in ids.counts() {
        let (first, slots) = table.slots(template);
        for (i, placed) in (first..).zip(slots) {
            each(i, placed.slot, count)?;
        }
    }
    Ok(())
}

/// Where the values of each slot begin, and how much there is in all.
fn layout(ids: &TemplateIds, table: &TemplateTable) -> Result<(Vec<u32>, Sizes), Malformed> {
    let mut starts = vec![0u32; table.all_slots().len()];
    let mut sizes = Sizes::default();
    for_each_column(ids, table, |i, slot, count| {
        if let Some(size) = sizes.of(slot) {
            if let Some(start) = starts.get_mut(i) {
                *start = u32::try_from(*size).map_err(|_| Malformed("strip over its cap"))?;
            }
            *size += count as u64 * u64::from(slot.unit());
        }
        Ok(())
    })?;
    let all = [sizes.codes, sizes.texts, sizes.fields, sizes.hex, sizes.bits];
    if all.iter().any(|size| *size > PAGE_RAW_MAX as u64 * 8) {
        return Err(Malformed("strip over its cap"));
    }
    Ok((starts, sizes))
}
