//! A field of texts mapped by a function that looks at them piece by piece, as `collapse_nums`
//! does: for template pages once for each template, and by value only where values matter.
//!
//! A *separator* is an ASCII byte that is neither a letter nor a digit nor `_`. The function must
//! be local: it leaves separators alone, and what it makes of a text is what it makes of the
//! pieces between separators, each with the separators around it. A piece of a template is
//! *settled* if the function makes the same of it whatever its slot holds. That is found out by
//! trying values that stand for all of the slot's kind: the function may tell decimal digits from
//! letters, even lengths from odd ones and those below four from others, but no digit from another
//! and no hex letter from another.

use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::sync::Arc;

use super::block::BlockScan;
use super::settle::settle;
use super::strip::StripSource;
use crate::codec::Strip;
use crate::codec::template::{SLOT, TemplateStrip, TemplateTable};
use crate::error::Result;
use crate::part::ColumnPage;
use crate::query::column::Column;
use crate::query::group::Interner;
use crate::record::TextVec;

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
    /// The local function makes the same text of all rows.
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

/// Rows mapped to numbers of texts, each of which stands for what the local function made of some.
pub(crate) struct MappedRows {
    map: TextMap,
    codes: Vec<u32>,
    made: Interner,
    /// What the function for the whole makes of each, if there is one.
    values: TextVec,
    /// The numbers of templates that are settled, or of the codes of the dictionary.
    known: Vec<Option<u32>>,
    dictionary: Option<Arc<TextVec>>,
    scratch: Vec<u8>,
}

impl MappedRows {
    /// No rows yet.
    pub(crate) fn new(map: TextMap) -> MappedRows {
        MappedRows {
            map,
            codes: Vec::new(),
            made: Interner::default(),
            values: TextVec::new(),
            known: Vec::new(),
            dictionary: None,
            scratch: Vec::new(),
        }
    }

    /// The column of the rows so far.
    pub(crate) fn finish(self) -> Column {
        let values = match self.map.whole {
            Some(_) => self.values,
            None => self.made.texts(),
        };
        Column::codes(self.codes, Arc::new(values))
    }

    /// The number of what the local function made.
    fn number(&mut self, made: &[u8]) -> u32 {
        let number = self.made.intern(made);
        if let Some(whole) = self.map.whole.filter(|_| number as usize == self.values.len()) {
            whole(made, self.values.open());
            self.values.close();
        }
        number
    }

    /// The number of what becomes of a value.
    fn number_of(&mut self, value: &[u8]) -> u32 {
        let mut made = std::mem::take(&mut self.scratch);
        made.clear();
        (self.map.local)(value, &mut made);
        let number = self.number(&made);
        self.scratch = made;
        number
    }

    /// Adds the first `rows` rows of a column.
    fn add_column(&mut self, column: &Column, rows: usize) {
        match column {
            Column::Const(value) => {
                let number = self.number_of(value);
                self.codes.resize(self.codes.len() + rows, number);
            }
            Column::Codes { codes, dictionary } => {
                if self.dictionary.as_ref().is_none_or(|last| !Arc::ptr_eq(last, dictionary)) {
                    self.dictionary = Some(Arc::clone(dictionary));
                    self.known.clear();
                    self.known.resize(dictionary.len(), None);
                }
                for code in codes.iter().take(rows) {
                    let number = match self.known.get(*code as usize) {
                        Some(Some(number)) => *number,
                        _ => self.number_of(dictionary.get(*code as usize)),
                    };
                    if let Some(slot) = self.known.get_mut(*code as usize) {
                        *slot = Some(number);
                    }
                    self.codes.push(number);
                }
            }
            Column::Runs { ends, codes, dictionary } => {
                let (mut row, mut number) = (0, 0);
                for (end, code) in ends.iter().zip(codes.iter()) {
                    number = self.number_of(dictionary.get(*code as usize));
                    let count = (*end as usize).min(rows).saturating_sub(row);
                    self.codes.resize(self.codes.len() + count, number);
                    row += count;
                }
                self.codes.resize(self.codes.len() + rows.saturating_sub(row), number);
            }
            column => column.for_each(rows, |_, value| {
                let number = self.number_of(value);
                self.codes.push(number);
            }),
        }
    }
}

impl MappedTable {
    /// Nothing found out yet.
    pub(crate) fn new(map: TextMap, table: &TemplateTable) -> MappedTable {
        let mut templates = Vec::new();
        templates.resize_with(table.len(), || Mapped::Met(0));
        MappedTable { map, templates, scratch: Scratch::default() }
    }

    /// Adds the given rows of a strip of the page to `out`. `constants` are rows that have another
    /// value than the strip says.
    pub(crate) fn add(
        &mut self,
        strip: &TemplateStrip,
        rows: impl Iterator<Item = usize>,
        constants: &[(Range<usize>, Vec<u8>)],
        out: &mut MappedRows,
    ) {
        out.known.resize(self.templates.len(), None);
        let mut constants = constants.iter().peekable();
        let mut last_constant: Option<(usize, u32)> = None;
        for row in rows {
            while constants.next_if(|(range, _)| range.end <= row).is_some() {}
            let number = if let Some((range, value)) =
                constants.peek().filter(|(range, _)| range.start <= row)
            {
                let known = last_constant.filter(|(start, _)| *start == range.start);
                let number = known.map_or_else(|| out.number_of(value), |(_, number)| number);
                last_constant = Some((range.start, number));
                number
            } else {
                let template = strip.template(row).unwrap_or(usize::MAX);
                match out.known.get(template) {
                    Some(Some(number)) => *number,
                    _ => self.row(strip, row, template, out),
                }
            };
            out.codes.push(number);
        }
    }

    /// The number of what becomes of a row.
    fn row(
        &mut self,
        strip: &TemplateStrip,
        row: usize,
        template: usize,
        out: &mut MappedRows,
    ) -> u32 {
        let (map, scratch) = (self.map, &mut self.scratch);
        let Some(mapped) = self.templates.get_mut(template) else { return out.number(&[]) };
        match mapped {
            Mapped::Met(WORTH) => *mapped = settle(map, strip.table(), template),
            Mapped::Met(rows) => *rows += 1,
            _ => {}
        }
        match mapped {
            Mapped::Met(_) => {
                scratch.text.clear();
                strip.render(row, &mut scratch.text);
                out.number_of(&scratch.text)
            }
            Mapped::Settled(text) => {
                let number = out.number(text);
                if let Some(known) = out.known.get_mut(template) {
                    *known = Some(number);
                }
                number
            }
            Mapped::Pieces(pieces) => {
                scratch.made.clear();
                let text = strip.table().texts().get(template);
                pieces.iter().for_each(|piece| piece.push(map, strip, row, text, scratch));
                out.number(&scratch.made)
            }
        }
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

/// What a query has found out of the one field of a block that it maps.
#[derive(Debug, Default)]
pub(super) struct Mapping {
    /// Whether all rows of the block are wanted.
    pub(super) whole: Cell<bool>,
    /// What became of all rows; nothing if it could not be found out.
    page: RefCell<Option<Option<Arc<Column>>>>,
    /// What became of templates so far.
    table: RefCell<Option<MappedTable>>,
}

/// Of a page of which so large a share of the rows is wanted all are mapped and kept.
const WHOLE_SHARE: usize = 8;

impl StripSource<'_, '_> {
    /// What a function makes of the values of the given rows of a field, or of all.
    pub(crate) fn mapped(&self, name: &str, map: TextMap, rows: Option<&[u32]>) -> Result<Column> {
        let count = rows.map_or(self.rows, <[u32]>::len);
        let is_worth =
            self.block.mapping.whole.get() || count * WHOLE_SHARE >= self.block.reader.rows();
        if let Some(page) = self.block.mapped_page(name, map, is_worth) {
            let first = u32::try_from(self.block.strip_rows(self.strip).start);
            let first = first.unwrap_or(u32::MAX);
            let all = || 0..u32::try_from(self.rows).unwrap_or(u32::MAX);
            let in_page: Vec<u32> = match rows {
                None if count == self.block.reader.rows() => return Ok(Column::clone(&page)),
                None => all().map(|row| first.saturating_add(row)).collect(),
                Some(rows) => rows.iter().map(|row| first.saturating_add(*row)).collect(),
            };
            return Ok(page.gather(&in_page));
        }
        let mut out = MappedRows::new(map);
        let mut table = self.block.mapping.table.borrow_mut();
        self.add_mapped(name, rows, &mut table, &mut out)?;
        Ok(out.finish())
    }

    /// Adds what becomes of the given rows, or of all.
    fn add_mapped(
        &self,
        name: &str,
        rows: Option<&[u32]>,
        table: &mut Option<MappedTable>,
        out: &mut MappedRows,
    ) -> Result<()> {
        if let Some((strip, constants)) = self.template_strip(name)?
            && let Strip::Templates(strip) = &*strip
        {
            let table = table.get_or_insert_with(|| MappedTable::new(out.map, strip.table()));
            match rows {
                Some(rows) => {
                    table.add(strip, rows.iter().map(|row| *row as usize), &constants, out);
                }
                None => table.add(strip, 0..self.rows, &constants, out),
            }
            return Ok(());
        }
        match rows {
            Some(rows) => out.add_column(&self.gather(name, rows)?, rows.len()),
            None => out.add_column(&*self.shared(name)?, self.rows),
        }
        Ok(())
    }
}

impl BlockScan<'_> {
    /// What a function makes of all rows of a field that has a page: made if that `is_worth` it,
    /// and found again while the cache keeps it. `None` also where the page cannot be read: the
    /// strips that can be are then mapped one by one.
    fn mapped_page(&self, name: &str, map: TextMap, is_worth: bool) -> Option<Arc<Column>> {
        if let Some(known) = self.mapping.page.borrow().as_ref() {
            return known.clone();
        }
        let column = self.column(name).ok()?;
        let ColumnPage::Page(page) = &column.column.page else { return None };
        let kept = self.reader.derived_before::<Column>(page, map.id);
        if kept.is_none() && !is_worth {
            return None;
        }
        let made = || {
            let mut out = MappedRows::new(map);
            let mut table = None;
            self.cx.passing(|| {
                (0..self.reader.strips()).try_for_each(|strip| {
                    StripSource::new(self, strip).add_mapped(name, None, &mut table, &mut out)
                })
            })?;
            let column = out.finish();
            let bytes = column.heap_bytes();
            Ok((column, bytes))
        };
        let page = kept.or_else(|| self.reader.derived(page, map.id, made).ok());
        *self.mapping.page.borrow_mut() = Some(page.clone());
        page
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::template::testing::{lines, strips};
    use crate::query::pipe::{collapse_nums, mask_words, name_groups, name_places};
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
            TextMap { id: 0, local: mask_words, whole: Some(name_places) },
            TextMap { id: 0, local: mask_words, whole: None },
        ] {
            let mut table: Option<MappedTable> = None;
            let mut rows = texts.iter();
            for strip in &strips {
                let Strip::Templates(strip) = strip else { panic!("a strip of another kind") };
                let table = table.get_or_insert_with(|| MappedTable::new(map, strip.table()));
                let constants = [(1..3, b"fixed 17".to_vec())];
                let mut out = MappedRows::new(map);
                table.add(strip, 0..strip.len(), &constants, &mut out);
                let made = out.finish();
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
        let mut out = MappedRows::new(map);
        table.add(strip, 0..strip.len(), &[], &mut out);
        let Column::Codes { dictionary, .. } = out.finish() else { panic!("no codes") };
        let met = table.templates.iter().filter(|t| !matches!(t, Mapped::Met(_)));
        assert!(met.clone().count() > 0);
        assert!(met.clone().all(|template| matches!(template, Mapped::Settled(_))));
        // One for each template, but for the first rows.
        assert!(dictionary.len() <= strip.table().len() * (usize::from(WORTH) + 1));
        assert_eq!(dictionary.get(0), b"took <N>ms id=<N> at <N>.<N>.<N>.<N>");
    }
}
