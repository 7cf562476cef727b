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

use std::cell::{Cell, OnceCell, RefCell};
use std::ops::Range;
use std::sync::Arc;

use super::block::BlockScan;
use super::mapper::{Shape, SharedMapper, TextMapper, UNKNOWN};
use super::settle::{OpenPiece, OpenTemplate};
use super::strip::StripSource;
use crate::codec::Strip;
use crate::codec::template::{SLOT, TemplateIds, TemplateStrip, TemplateTable};
use crate::error::Result;
use crate::part::ColumnPage;
use crate::query::column::Column;
use crate::record::TextVec;

/// Appends what becomes of a text.
pub(crate) type TextFn = fn(&[u8], &mut Vec<u8>);

/// A function of texts, in two steps.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TextMap {
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
    templates: Vec<Option<PageShape>>,
    /// The numbers of what becomes of settled templates.
    known: Vec<u32>,
    /// The text of an open piece.
    text: Vec<u8>,
    /// The outcomes of a row's open pieces.
    outcomes: Vec<u32>,
}

/// What becomes of the rows of a template of the page.
#[derive(Debug)]
struct PageShape {
    shape: Shape,
    /// For each open piece, if its one slot has a dictionary, the outcome for each value of it, if
    /// found out.
    codes: Vec<Vec<u32>>,
}

/// Rows mapped to the numbers of the mapper's texts.
#[derive(Debug, Default)]
pub(crate) struct MappedRows {
    codes: Vec<u32>,
    /// The numbers of the values of the dictionary, as far as they were asked for.
    known: Vec<u32>,
    dictionary: Option<Arc<TextVec>>,
}

impl MappedRows {
    /// The column of the rows so far.
    pub(crate) fn finish(self, mapper: &TextMapper) -> Column {
        Column::codes(self.codes, Arc::new(mapper.texts()))
    }

    /// Adds the first `rows` rows of a column.
    fn add_column(&mut self, mapper: &mut TextMapper, column: &Column, rows: usize) {
        match column {
            Column::Const(value) => {
                let number = mapper.number_of(value);
                self.codes.resize(self.codes.len() + rows, number);
            }
            Column::Codes { codes, dictionary } => {
                if self.dictionary.as_ref().is_none_or(|last| !Arc::ptr_eq(last, dictionary)) {
                    self.dictionary = Some(Arc::clone(dictionary));
                    self.known.clear();
                    self.known.resize(dictionary.len(), UNKNOWN);
                }
                for code in codes.iter().take(rows) {
                    let number = match self.known.get(*code as usize) {
                        Some(number) if *number != UNKNOWN => *number,
                        _ => mapper.number_of(dictionary.get(*code as usize)),
                    };
                    set(&mut self.known, *code as usize, number);
                    self.codes.push(number);
                }
            }
            Column::Runs { ends, codes, dictionary } => {
                let (mut row, mut number) = (0, 0);
                for (end, code) in ends.iter().zip(codes.iter()) {
                    number = mapper.number_of(dictionary.get(*code as usize));
                    let count = (*end as usize).min(rows).saturating_sub(row);
                    self.codes.resize(self.codes.len() + count, number);
                    row += count;
                }
                self.codes.resize(self.codes.len() + rows.saturating_sub(row), number);
            }
            column => column.for_each(rows, |_, value| {
                let number = mapper.number_of(value);
                self.codes.push(number);
            }),
        }
    }
}

fn set(list: &mut [u32], at: usize, value: u32) {
    if let Some(slot) = list.get_mut(at) {
        *slot = value;
    }
}

/// A strip of a page of templates: its values are read when a row needs them.
pub(crate) struct LazyStrip<'a> {
    table: &'a TemplateTable,
    ids: &'a TemplateIds,
    read: &'a dyn Fn() -> Result<Arc<Strip>>,
    values: Option<Arc<Strip>>,
}

impl<'a> LazyStrip<'a> {
    /// A strip of which the templates of the rows are known; `read` reads the values of slots.
    pub(crate) fn new(
        table: &'a TemplateTable,
        ids: &'a TemplateIds,
        read: &'a dyn Fn() -> Result<Arc<Strip>>,
    ) -> LazyStrip<'a> {
        LazyStrip { table, ids, read, values: None }
    }

    fn values(&mut self) -> Result<Option<&TemplateStrip>> {
        if self.values.is_none() {
            self.values = Some((self.read)()?);
        }
        match self.values.as_deref() {
            Some(Strip::Templates(strip)) => Ok(Some(strip)),
            _ => Ok(None),
        }
    }
}

impl MappedTable {
    /// Nothing found out yet.
    pub(crate) fn new(table: &TemplateTable) -> MappedTable {
        let mut templates = Vec::new();
        templates.resize_with(table.len(), || None);
        let known = vec![UNKNOWN; table.len()];
        MappedTable { templates, known, text: Vec::new(), outcomes: Vec::new() }
    }

    /// Adds the given rows of a strip of the page to `out`. `constants` are rows that have another
    /// value than the strip says.
    pub(crate) fn add(
        &mut self,
        mapper: &mut TextMapper,
        strip: &mut LazyStrip<'_>,
        rows: impl Iterator<Item = usize>,
        constants: &[(Range<usize>, Vec<u8>)],
        out: &mut MappedRows,
    ) -> Result<()> {
        let ids = strip.ids.ids();
        let mut constants = constants.iter().peekable();
        let mut last_constant: Option<(usize, u32)> = None;
        for row in rows {
            while constants.next_if(|(range, _)| range.end <= row).is_some() {}
            let number = if let Some((range, value)) =
                constants.peek().filter(|(range, _)| range.start <= row)
            {
                let known = last_constant.filter(|(start, _)| *start == range.start);
                let number = known.map_or_else(|| mapper.number_of(value), |(_, number)| number);
                last_constant = Some((range.start, number));
                number
            } else {
                let template = ids.get(row).map_or(usize::MAX, |id| usize::from(*id));
                match self.known.get(template) {
                    Some(number) if *number != UNKNOWN => *number,
                    _ => self.row(mapper, strip, row, template)?,
                }
            };
            out.codes.push(number);
        }
        Ok(())
    }

    /// The number of what becomes of a row.
    fn row(
        &mut self,
        mapper: &mut TextMapper,
        strip: &mut LazyStrip<'_>,
        row: usize,
        template: usize,
    ) -> Result<u32> {
        let table = strip.table;
        let Some(known) = self.templates.get_mut(template) else {
            return Ok(mapper.number_of(&[]));
        };
        let PageShape { shape, codes } =
            known.get_or_insert_with(|| PageShape::new(mapper, table, template));
        let OpenTemplate { between, open } = match shape {
            Shape::Settled(number) => {
                set(&mut self.known, template, *number);
                return Ok(*number);
            }
            Shape::Open(template) => template,
        };
        let Some(strip) = strip.values()? else { return Ok(mapper.number_of(&[])) };
        let text = table.texts().get(template);
        self.outcomes.clear();
        for (piece, codes) in open.iter().zip(codes) {
            let code = match codes.len() {
                0 => None,
                _ => Some(usize::from(strip.code(row, piece.slots.start))),
            };
            let known = code.and_then(|code| codes.get(code)).filter(|known| **known != UNKNOWN);
            let outcome = match known {
                Some(known) => *known,
                None => {
                    self.text.clear();
                    piece.render(strip, row, text, &mut self.text);
                    mapper.outcome(piece, &self.text)
                }
            };
            if let Some(code) = code {
                set(codes, code, outcome);
            }
            self.outcomes.push(outcome);
        }
        let template = u32::try_from(template).unwrap_or(UNKNOWN);
        Ok(mapper.joined(template, between, &self.outcomes))
    }
}

impl PageShape {
    fn new(mapper: &mut TextMapper, table: &TemplateTable, template: usize) -> PageShape {
        let shape = mapper.shape(table, template);
        let codes = match &shape {
            Shape::Settled(_) => Vec::new(),
            Shape::Open(of) => {
                let codes = |piece: &OpenPiece| match piece.slots.len() {
                    1 => vec![UNKNOWN; table.codes_of(template, piece.slots.start)],
                    _ => Vec::new(),
                };
                of.open.iter().map(codes).collect()
            }
        };
        PageShape { shape, codes }
    }
}

impl OpenPiece {
    /// Appends the text of the piece in a row of a template with this text.
    fn render(&self, strip: &TemplateStrip, row: usize, template: &[u8], out: &mut Vec<u8>) {
        let mut slots = self.slots.clone();
        let text = template.get(self.text.clone()).unwrap_or(&[]);
        for part in text.split_inclusive(|b| *b == SLOT) {
            match part.split_last() {
                Some((&SLOT, literal)) => {
                    out.extend_from_slice(literal);
                    if let Some(slot) = slots.next() {
                        strip.push_value(row, slot, out);
                    }
                }
                _ => out.extend_from_slice(part),
            }
        }
    }
}

/// What a query has found out of the one field of a block that it maps.
#[derive(Debug, Default)]
pub(super) struct Mapping {
    /// Whether all rows of the block are wanted.
    pub(super) whole: Cell<bool>,
    /// What the worker has found out.
    mapper: OnceCell<SharedMapper>,
    /// What became of all rows; nothing if it could not be found out.
    page: RefCell<Option<Option<Arc<Column>>>>,
    /// What became of templates so far.
    table: RefCell<Option<MappedTable>>,
}

impl Mapping {
    fn mapper(&self, map: TextMap) -> &SharedMapper {
        self.mapper.get_or_init(|| TextMapper::shared(map))
    }

    /// Has the block find out together with others what becomes of templates.
    pub(super) fn share(&self, mapper: &SharedMapper) {
        mapper.borrow_mut().next_block();
        let _ = self.mapper.set(SharedMapper::clone(mapper));
    }
}

/// Of a page of which so large a share of the rows is wanted all are mapped.
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
        let mut out = MappedRows::default();
        let mut table = self.block.mapping.table.borrow_mut();
        let mapper = &mut *self.block.mapping.mapper(map).borrow_mut();
        self.add_mapped(name, mapper, rows, &mut table, &mut out)?;
        Ok(out.finish(mapper))
    }

    /// Adds what becomes of the given rows, or of all.
    fn add_mapped(
        &self,
        name: &str,
        mapper: &mut TextMapper,
        rows: Option<&[u32]>,
        table: &mut Option<MappedTable>,
        out: &mut MappedRows,
    ) -> Result<()> {
        if let Some((page, constants)) = self.template_page(name)?
            && let Some(templates) = page.head.templates()
        {
            let table = table.get_or_insert_with(|| MappedTable::new(templates));
            let ids = page.ids()?;
            let read = || page.strip();
            let mut strip = LazyStrip::new(templates, &ids, &read);
            return match rows {
                Some(rows) => {
                    let rows = rows.iter().map(|row| *row as usize);
                    table.add(mapper, &mut strip, rows, &constants, out)
                }
                None => table.add(mapper, &mut strip, 0..self.rows, &constants, out),
            };
        }
        match rows {
            Some(rows) => out.add_column(mapper, &self.gather(name, rows)?, rows.len()),
            None => out.add_column(mapper, &*self.shared(name)?, self.rows),
        }
        Ok(())
    }
}

impl BlockScan<'_> {
    /// What a function makes of all rows of a field that has a page, if that `is_worth` it. `None`
    /// also where the page cannot be read: the strips that can be are then mapped one by one.
    fn mapped_page(&self, name: &str, map: TextMap, is_worth: bool) -> Option<Arc<Column>> {
        if let Some(known) = self.mapping.page.borrow().as_ref() {
            return known.clone();
        }
        let column = self.column(name).ok()?;
        let ColumnPage::Page(_) = &column.column.page else { return None };
        if !is_worth {
            return None;
        }
        let mut out = MappedRows::default();
        let mut table = None;
        let mapper = &mut *self.mapping.mapper(map).borrow_mut();
        let made = (0..self.reader.strips()).try_for_each(|strip| {
            StripSource::new(self, strip).add_mapped(name, mapper, None, &mut table, &mut out)
        });
        let page = made.ok().map(|()| Arc::new(out.finish(mapper)));
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
            TextMap { local: collapse_nums, whole: None },
            TextMap { local: collapse_nums, whole: Some(name_groups) },
            TextMap { local: mask_words, whole: Some(name_places) },
            TextMap { local: mask_words, whole: None },
        ] {
            let mut table: Option<MappedTable> = None;
            let mut rows = texts.iter();
            let mut mapper = TextMapper::new(map);
            for strip in &strips {
                let Strip::Templates(strip) = strip else { panic!("a strip of another kind") };
                let table = table.get_or_insert_with(|| MappedTable::new(strip.table()));
                let constants = [(1..3, b"fixed 17".to_vec())];
                let mut out = MappedRows::default();
                let read = || Ok(Arc::new(Strip::Templates(strip.clone())));
                let mut lazy = LazyStrip::new(strip.table(), strip.ids(), &read);
                let all = 0..strip.len();
                table.add(&mut mapper, &mut lazy, all, &constants, &mut out).unwrap();
                let made = out.finish(&mapper);
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
    fn settled_templates_need_no_values() {
        let texts: Vec<String> = (0..400)
            .map(|i| format!("took {}ms id={:032x} at 10.0.0.{}", i * 7, i * 77_777, i % 250))
            .collect();
        let values: TextVec = texts.iter().map(String::as_bytes).collect();
        let strips = strips(&values, &Vec::new()).unwrap();
        let Some(Strip::Templates(strip)) = strips.first() else { panic!("no templates") };
        let map = TextMap { local: collapse_nums, whole: None };
        let mut table = MappedTable::new(strip.table());
        let mut out = MappedRows::default();
        let read = || panic!("values are read");
        let mut lazy = LazyStrip::new(strip.table(), strip.ids(), &read);
        let mut mapper = TextMapper::new(map);
        table.add(&mut mapper, &mut lazy, 0..strip.len(), &[], &mut out).unwrap();
        let Column::Codes { dictionary, .. } = out.finish(&mapper) else { panic!("no codes") };
        assert_eq!(dictionary.len(), 1);
        assert_eq!(dictionary.get(0), b"took <N>ms id=<N> at <N>.<N>.<N>.<N>");
    }
}
