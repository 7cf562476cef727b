//! A field of texts mapped by a function that looks at them piece by piece, as `collapse_nums`
//! does: for template pages once for each template, and by value only where values matter.
//!
//! A *separator* is an ASCII byte that is neither a letter nor a digit nor `_`. The function must
//! be local: it leaves separators alone, and what it makes of a text is what it makes of the
//! pieces between separators, each with the separators around it. A piece of a template is
//! *settled* if the function makes the same of it whatever its slot holds. That is found out by
//! trying values that stand for all of the slot's kind: the function may tell decimal digits from
//! letters, and one length from another, but no digit from another and no hex letter from another.

use std::ops::Range;
use std::sync::Arc;

use super::block::StripSource;
use super::settle::settle;
use crate::codec::template::{SLOT, TemplateStrip, TemplateTable};
use crate::codec::{Encoding, Strip};
use crate::error::Result;
use crate::part::{ColumnPage, RunConstants};
use crate::query::column::Column;
use crate::record::TextVec;
use crate::sync::Mutex;

/// Appends what becomes of a text.
pub(crate) type TextFn = fn(&[u8], &mut Vec<u8>);

/// A function of texts, in two steps.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TextMap {
    /// Tells it from others.
    pub(crate) id: u8,
    /// A local function.
    pub(crate) local: TextFn,
    /// What is then made of the whole.
    pub(crate) whole: Option<TextFn>,
}

impl TextMap {
    /// Appends what becomes of a text.
    pub(crate) fn apply(&self, text: &[u8], out: &mut Vec<u8>) {
        match self.whole {
            None => (self.local)(text, out),
            Some(whole) => {
                let mut made = Vec::with_capacity(text.len());
                (self.local)(text, &mut made);
                whole(&made, out);
            }
        }
    }
}

/// What becomes of the templates of a page, found out as they are met.
#[derive(Debug)]
pub(crate) struct MappedTable {
    map: TextMap,
    templates: Vec<Mapped>,
    scratch: Scratch,
}

/// A template of which so many rows were met is worth finding out what becomes of it.
const WORTH: u8 = 1;

/// What becomes of a template.
#[derive(Debug)]
pub(super) enum Mapped {
    /// Not found out; so many rows were met.
    Met(u8),
    /// The same text for all rows.
    Settled(Vec<u8>),
    /// What the rows' values decide.
    Pieces(Vec<Piece>),
}

#[derive(Debug)]
pub(super) enum Piece {
    /// These bytes.
    Settled(Vec<u8>),
    /// A part with one slot, for each value of the slot's dictionary.
    Codes { slot: usize, made: TextVec },
    /// What becomes of this part of the template's text with these slots; `context` says that it
    /// begins with a separator that stands at the end of the piece before already.
    Open { text: Range<usize>, context: bool, slots: Range<usize> },
}

#[derive(Debug, Default)]
struct Scratch {
    /// The text of a row, or of a piece of it.
    text: Vec<u8>,
    /// What became of the pieces before.
    made: Vec<u8>,
}

impl MappedTable {
    /// Nothing found out yet.
    pub(crate) fn new(map: TextMap, table: &TemplateTable) -> MappedTable {
        let mut templates = Vec::new();
        templates.resize_with(table.len(), || Mapped::Met(0));
        MappedTable { map, templates, scratch: Scratch::default() }
    }

    /// Bytes of memory held, about: when all is found out.
    pub(crate) fn heap_bytes(&self, table: &TemplateTable) -> usize {
        2 * table.heap_bytes() + self.templates.capacity() * size_of::<Mapped>()
    }

    /// What becomes of the given rows of a strip of the page. `constants` are rows that have
    /// another value than the strip says.
    pub(crate) fn column(
        &mut self,
        strip: &TemplateStrip,
        rows: impl ExactSizeIterator<Item = usize>,
        constants: &[(Range<usize>, Vec<u8>)],
    ) -> Column {
        let mut out = Codes { codes: Vec::with_capacity(rows.len()), values: TextVec::new() };
        let mut known: Vec<Option<u32>> = vec![None; self.templates.len()];
        let mut constants = constants.iter().peekable();
        let mut last_constant: Option<(usize, u32)> = None;
        for row in rows {
            while constants.next_if(|(range, _)| range.end <= row).is_some() {}
            if let Some((range, value)) = constants.peek().filter(|(range, _)| range.start <= row) {
                match last_constant {
                    Some((start, code)) if start == range.start => out.codes.push(code),
                    _ => {
                        let code = out.add(|out| self.map.apply(value, out));
                        last_constant = Some((range.start, code));
                    }
                }
                continue;
            }
            let template = strip.template(row).unwrap_or(usize::MAX);
            match known.get_mut(template) {
                Some(Some(code)) => out.codes.push(*code),
                Some(known) => *known = self.row(strip, row, template, &mut out),
                None => {}
            }
        }
        Column::codes(out.codes, Arc::new(out.values))
    }

    /// Gives `out` what becomes of a row; its code if that is the one of all rows of the template.
    fn row(
        &mut self,
        strip: &TemplateStrip,
        row: usize,
        template: usize,
        out: &mut Codes,
    ) -> Option<u32> {
        let (map, scratch) = (self.map, &mut self.scratch);
        let mapped = self.templates.get_mut(template)?;
        match mapped {
            Mapped::Met(WORTH) => *mapped = settle(map, strip.table(), template),
            Mapped::Met(rows) => *rows += 1,
            _ => {}
        }
        match mapped {
            Mapped::Met(_) => {
                scratch.text.clear();
                strip.render(row, &mut scratch.text);
                out.add(|out| map.apply(&scratch.text, out));
                None
            }
            Mapped::Settled(text) => Some(out.add(|out| out.extend_from_slice(text))),
            Mapped::Pieces(pieces) => {
                scratch.made.clear();
                let text = strip.table().texts().get(template);
                pieces.iter().for_each(|piece| piece.push(map, strip, row, text, scratch));
                out.add(|out| match map.whole {
                    None => out.extend_from_slice(&scratch.made),
                    Some(whole) => whole(&scratch.made, out),
                });
                None
            }
        }
    }
}

/// A column of codes in the making.
struct Codes {
    codes: Vec<u32>,
    values: TextVec,
}

impl Codes {
    /// Gives the next row a new value.
    fn add(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> u32 {
        let code = u32::try_from(self.values.len()).unwrap_or(u32::MAX);
        write(self.values.open());
        self.values.close();
        self.codes.push(code);
        code
    }
}

impl Piece {
    /// Appends what becomes of the piece in a row.
    fn push(
        &self,
        map: TextMap,
        strip: &TemplateStrip,
        row: usize,
        template: &[u8],
        scratch: &mut Scratch,
    ) {
        let (text, context, slots) = match self {
            Piece::Settled(made) => return scratch.made.extend_from_slice(made),
            Piece::Codes { slot, made } => {
                let code = usize::from(strip.code(row, *slot));
                return scratch.made.extend_from_slice(made.get(code));
            }
            Piece::Open { text, context, slots } => (text, *context, slots),
        };
        scratch.text.clear();
        let mut slots = slots.clone();
        for part in template.get(text.clone()).unwrap_or(&[]).split_inclusive(|b| *b == SLOT) {
            match part.split_last() {
                Some((&SLOT, literal)) => {
                    scratch.text.extend_from_slice(literal);
                    if let Some(slot) = slots.next() {
                        strip.push_value(row, slot, &mut scratch.text);
                    }
                }
                _ => scratch.text.extend_from_slice(part),
            }
        }
        let before = scratch.made.len();
        (map.local)(&scratch.text, &mut scratch.made);
        if context {
            scratch.made.remove(before);
        }
    }
}

/// Dictionaries of more bytes are mapped where their values are used only.
const MAPPED_AT_ONCE: usize = 4 << 20;

/// Tells mapped dictionaries from mapped templates, in the cache.
const DICTIONARY: u8 = 0x40;

impl StripSource<'_, '_> {
    /// What a function makes of the values of the given rows of a field, or of all.
    /// `None` unless it is stored as templates.
    pub(crate) fn mapped(
        &self,
        name: &str,
        map: TextMap,
        rows: Option<&[u32]>,
    ) -> Result<Option<Column>> {
        if let Some((strip, constants)) = self.template_strip(name)?
            && let Strip::Templates(strip) = &*strip
        {
            let column = self.block.column(name)?;
            let ColumnPage::Page(page) = &column.column.page else { return Ok(None) };
            let table = self.block.reader.derived(page, map.id, || {
                let table = MappedTable::new(map, strip.table());
                let bytes = table.heap_bytes(strip.table());
                (Mutex::new(table), bytes)
            })?;
            let mut table = table.lock();
            return Ok(Some(match rows {
                Some(rows) => table.column(strip, rows.iter().map(|r| *r as usize), &constants),
                None => table.column(strip, 0..self.rows, &constants),
            }));
        }
        self.mapped_dictionary(name, map, rows)
    }

    /// The same for a page with a dictionary, whose values are mapped once for all strips.
    fn mapped_dictionary(
        &self,
        name: &str,
        map: TextMap,
        rows: Option<&[u32]>,
    ) -> Result<Option<Column>> {
        let column = self.block.column(name)?;
        let page = match (&column.column.constants, &column.column.page) {
            (RunConstants::None, ColumnPage::Page(page))
                if page.encoding == Encoding::Dictionary =>
            {
                page
            }
            _ => return Ok(None),
        };
        let Column::Codes { codes, dictionary } = &*self.shared(name)? else { return Ok(None) };
        if dictionary.bytes().len() > MAPPED_AT_ONCE {
            return Ok(None);
        }
        let mapped = self.block.reader.derived(page, DICTIONARY | map.id, || {
            let mut mapped = TextVec::with_capacity(dictionary.len(), dictionary.bytes().len());
            for value in dictionary.iter() {
                map.apply(value, mapped.open());
                mapped.close();
            }
            let bytes = mapped.heap_bytes();
            (mapped, bytes)
        })?;
        let column = Column::Codes { codes: Arc::clone(codes), dictionary: mapped };
        Ok(Some(rows.map_or_else(|| column.clone(), |rows| column.gather(rows))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::template::testing::{lines, strips};
    use crate::query::pipe::{collapse_nums, name_groups, push_pattern};
    use proptest::prelude::*;

    /// A piece of a line: text that stays, or a kind of value.
    fn piece() -> impl Strategy<Value = (usize, String)> {
        let literals = [
            "", " ", "a", "b", "x", "v", "T", "Z", "_", "-", ".", ":", "/", "=", "ab", "0", "12",
            "dead", "\u{e9}", "\u{b5}", "\u{ff1}", "<N>", "<UUID>", "took ", "ms", "s", "+",
        ];
        prop_oneof![
            prop::sample::select(literals.to_vec()).prop_map(|text| (0, text.to_owned())),
            (1usize..10).prop_map(|kind| (kind, String::new())),
        ]
    }

    fn value(kind: usize, seed: u64) -> String {
        let mixed = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        match kind {
            1 => (seed % 3000).to_string(),
            2 => mixed.to_string(),
            3 => format!("{:02}", seed % 60),
            4 => format!("{mixed:016x}"),
            5 => format!("{:05X}", mixed >> 44),
            6 => format!("{:03x}", mixed >> 52),
            7 => ["7", "12", "abcd", "0x1f", "zz9", "d34d"][usize::try_from(mixed % 6).unwrap()]
                .to_owned(),
            _ => format!("w{mixed}q\u{e9}{seed}"),
        }
    }

    /// The value of row `i` in another column of the block, which messages repeat.
    fn beside(i: u64) -> String {
        value(if i.is_multiple_of(50) { 7 } else { 4 }, i / 3)
    }

    fn check(texts: &[String]) -> std::result::Result<(), TestCaseError> {
        let values: TextVec = texts.iter().map(String::as_bytes).collect();
        let ids: Vec<String> = (0..).map(beside).take(texts.len()).collect();
        let columns = vec![("id", ids.iter().map(String::as_bytes).collect())];
        let Some(strips) = strips(&values, &columns) else { return Ok(()) };
        for map in [
            TextMap { id: 0, local: collapse_nums, whole: None },
            TextMap { id: 0, local: collapse_nums, whole: Some(name_groups) },
            TextMap { id: 0, local: push_pattern, whole: None },
        ] {
            let mut table: Option<MappedTable> = None;
            let mut rows = texts.iter();
            for strip in &strips {
                let Strip::Templates(strip) = strip else { panic!("a strip of another kind") };
                let table = table.get_or_insert_with(|| MappedTable::new(map, strip.table()));
                let constants = [(1..3, b"fixed 17".to_vec())];
                let made = table.column(strip, 0..strip.len(), &constants);
                let mut scratch = Vec::new();
                for row in 0..strip.len() {
                    let text = rows.next().unwrap();
                    let mut want = Vec::new();
                    let constant = (1..3).contains(&row);
                    map.apply(if constant { b"fixed 17" } else { text.as_bytes() }, &mut want);
                    let got = String::from_utf8_lossy(made.value(row, &mut scratch)).into_owned();
                    prop_assert_eq!(got, String::from_utf8_lossy(&want), "{}", text);
                }
            }
        }
        Ok(())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]
        #[test]
        fn templates_map_as_their_rows(
            formats in prop::collection::vec(prop::collection::vec(piece(), 0..9), 1..4),
            seed in any::<u32>(),
        ) {
            let line = |i: u64| {
                let format = &formats[usize::try_from(i).unwrap() % formats.len()];
                let pieces = format.iter().zip(0u64..).map(|((kind, text), at)| match kind {
                    0 => text.clone(),
                    9 => beside(i),
                    kind => value(*kind, u64::from(seed) + i / 7 * 31 + at),
                });
                pieces.collect::<String>()
            };
            check(&(0..300).map(line).collect::<Vec<_>>())?;
        }

        #[test]
        fn lines_of_logs_map_as_their_rows(lines in lines()) {
            check(&lines)?;
        }
    }

    #[test]
    fn most_templates_are_settled() {
        let texts: Vec<String> = (0..400)
            .map(|i| format!("took {}ms id={:032x} at 10.0.0.{}", i * 7, i * 77_777, i % 250))
            .collect();
        let values: TextVec = texts.iter().map(String::as_bytes).collect();
        let strips = strips(&values, &Vec::new()).unwrap();
        let Some(Strip::Templates(strip)) = strips.first() else { panic!("no templates") };
        let map = TextMap { id: 0, local: collapse_nums, whole: None };
        let mut table = MappedTable::new(map, strip.table());
        let Column::Codes { dictionary, .. } = table.column(strip, 0..strip.len(), &[]) else {
            panic!("no codes")
        };
        // One for each template, but for the first rows.
        assert!(dictionary.len() <= strip.table().len() * (usize::from(WORTH) + 1));
        assert_eq!(dictionary.get(0), b"took <N>ms id=<N> at <N>.<N>.<N>.<N>");
    }
}
