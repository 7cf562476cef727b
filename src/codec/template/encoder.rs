//! Turns a column of text into templates and slot values.

use std::hash::BuildHasher;

use foldhash::fast::RandomState;
use hashbrown::HashTable;

use super::bits::BitWriter;
use super::column::{ColumnAnalyser, Form};
use super::fields::{Beside, FieldFinder};
use super::slot::{Slot, pack_hex};
use super::table::TableBuilder;
use super::tokenize::{Span, Tokenizer};
use super::{SHAPES_MAX, SLOT};
use crate::codec::compress::Compressor;
use crate::codec::page::StripsBuilder;
use crate::codec::varint::{put_bytes, put_varint};
use crate::codec::{STRIP_ROWS, dictionary, plain};
use crate::record::TextVec;

/// After so many rows the encoder gives up if nearly every row has a template of its own.
const TRIAL_ROWS: usize = 512;

/// Encodes pages; keeps its buffers between them.
#[derive(Debug, Default)]
pub(in crate::codec) struct TemplateEncoder {
    hasher: RandomState,
    tokenizer: Tokenizer,
    /// The templates as the tokenizer found them, and their numbers by text.
    keys: TextVec,
    numbers: HashTable<u32>,
    key: Vec<u8>,
    /// The slots of all rows, and where those of each row begin.
    spans: Vec<Span>,
    firsts: Vec<u32>,
    /// The template of each row.
    ids: Vec<u32>,
    /// The rows, by template, and where those of each template begin.
    order: Vec<u32>,
    starts: Vec<u32>,
    analyser: ColumnAnalyser,
    column: Vec<Span>,
    finder: FieldFinder,
    table: TableBuilder,
    columns: Vec<Column>,
    data: Vec<u64>,
    streams: Streams,
}

/// A column of slot values that is stored.
#[derive(Debug, Clone, Copy)]
struct Column {
    template: u32,
    slot: Slot,
    /// Where its words begin in the data.
    start: usize,
}

/// A stored column of the template at hand, for slots that repeat it.
#[derive(Debug, Clone, Copy)]
struct Earlier {
    /// Its number among the slots that the tokenizer found.
    token: usize,
    /// Its number among the slots of the template.
    slot: u16,
    prefix: u32,
    suffix: u32,
    digit: bool,
}

/// The values of a strip, by kind.
#[derive(Debug, Default)]
struct Streams {
    codes: Vec<u8>,
    texts: TextVec,
    hex: Vec<u8>,
    bits: Vec<u8>,
    blob: Vec<u8>,
}

impl TemplateEncoder {
    /// Appends the strips of a page to `strips` and the parameters of its head to `params`.
    /// The templates are
    /// compressed by `heads`. `false` if templates do not suit the values; what was appended is
    /// then of no use. Slots may refer to the columns `beside`.
    pub(in crate::codec) fn encode(
        &mut self,
        values: &TextVec,
        beside: &[Beside<'_>],
        zstd: &mut Compressor,
        heads: &mut Compressor,
        strips: &mut StripsBuilder,
        params: &mut Vec<u8>,
    ) -> bool {
        if !self.tokenize(values) {
            return false;
        }
        self.sort_rows();
        self.table.clear();
        self.columns.clear();
        self.data.clear();
        self.table.count = self.keys.len();
        self.finder.begin(beside);
        for template in 0..self.keys.len() {
            self.add_template(values, beside, template);
            if self.table.shapes.len() > SHAPES_MAX {
                return false;
            }
        }
        self.write_strips(values, zstd, strips);
        self.table.finish(heads, params);
        true
    }

    /// Finds the template and the slots of each row.
    fn tokenize(&mut self, values: &TextVec) -> bool {
        self.keys.clear();
        self.numbers.clear();
        self.spans.clear();
        self.firsts.clear();
        self.ids.clear();
        let (mut from, mut last) = (0, u32::MAX);
        self.tokenizer.begin(values.bytes());
        for (row, end) in values.ends().iter().enumerate() {
            self.firsts.push(u32::try_from(self.spans.len()).unwrap_or(u32::MAX));
            let to = *end as usize;
            self.tokenizer.cut(values.bytes(), (from, to), &mut self.key, &mut self.spans);
            from = to;
            if last == u32::MAX || self.keys.get(last as usize) != self.key {
                last = self.number_of_key();
            }
            self.ids.push(last);
            if row == TRIAL_ROWS && self.keys.len() * 8 > row * 7 {
                return false;
            }
        }
        self.firsts.push(u32::try_from(self.spans.len()).unwrap_or(u32::MAX));
        u32::try_from(self.spans.len()).is_ok()
    }

    /// The number of the template in `key`.
    fn number_of_key(&mut self) -> u32 {
        let TemplateEncoder { hasher, keys, numbers, key, .. } = self;
        let hash = hasher.hash_one(key.as_slice());
        if let Some(number) = numbers.find(hash, |n| keys.get(*n as usize) == key) {
            return *number;
        }
        let number = u32::try_from(keys.len()).unwrap_or(u32::MAX);
        keys.push(key);
        numbers.insert_unique(hash, number, |n| hasher.hash_one(keys.get(*n as usize)));
        number
    }

    /// Sorts the rows by template: a counting sort, so rows of a template stay in order.
    #[expect(clippy::indexing_slicing, reason = "arrays of the sizes made here")]
    fn sort_rows(&mut self) {
        self.starts.clear();
        self.starts.resize(self.keys.len() + 1, 0);
        for id in &self.ids {
            self.starts[*id as usize + 1] += 1;
        }
        for i in 1..self.starts.len() {
            self.starts[i] += self.starts[i - 1];
        }
        self.order.clear();
        self.order.resize(self.ids.len(), 0);
        let mut next = self.starts.clone();
        for (row, id) in (0u32..).zip(&self.ids) {
            let to = &mut next[*id as usize];
            self.order[*to as usize] = row;
            *to += 1;
        }
    }

    /// Adds the text of a template and its columns.
    #[expect(clippy::indexing_slicing, reason = "arrays of the encoder's own making")]
    fn add_template(&mut self, values: &TextVec, beside: &[Beside<'_>], template: usize) {
        let rows = self.starts[template] as usize..self.starts[template + 1] as usize;
        let from = self.table.texts.len();
        let shape = self.table.shapes.len();
        let first = self.order[rows.start];
        let only = values.get(first as usize);
        self.finder.begin_template(beside, first);
        if rows.len() == 1 && !self.finder.any_long() && memchr::memchr(SLOT, only).is_none() {
            self.table.texts.extend_from_slice(only);
            put_varint(&mut self.table.shapes, only.len() as u64);
            return;
        }
        let mut slots = Vec::new();
        let mut earlier: Vec<Earlier> = Vec::new();
        let key = std::mem::take(&mut self.key);
        let mut key = key;
        key.clear();
        key.extend_from_slice(self.keys.get(template));
        let mut at = 0;
        for (token, mark) in memchr::memchr_iter(SLOT, &key).enumerate() {
            self.table.texts.extend_from_slice(&key[at..mark]);
            at = mark + 1;
            let column = (template, rows.clone(), token);
            self.add_column(values, beside, column, &mut earlier, &mut slots);
        }
        self.table.texts.extend_from_slice(&key[at..]);
        self.key = key;
        self.table.shapes.truncate(shape);
        put_varint(&mut self.table.shapes, (self.table.texts.len() - from) as u64);
        for (slot, digit) in slots {
            Slot::encode(slot, digit, &mut self.table.shapes);
        }
    }

    /// Adds one column of a template: its part of the text, and its values if they differ.
    #[expect(clippy::indexing_slicing, reason = "arrays of the encoder's own making")]
    fn add_column(
        &mut self,
        values: &TextVec,
        beside: &[Beside<'_>],
        (template, rows, token): (usize, std::ops::Range<usize>, usize),
        earlier: &mut Vec<Earlier>,
        slots: &mut Vec<(Slot, bool)>,
    ) {
        let bytes = values.bytes();
        let text = |span: Span| &bytes[span.from as usize..span.to as usize];
        let rows = &self.order[rows];
        let spans = &self.spans;
        let firsts = &self.firsts;
        let span_of = |row: u32, token: usize| spans[firsts[row as usize] as usize + token];
        self.column.clear();
        self.column.extend(rows.iter().map(|row| span_of(*row, token)));
        let Some(first) = self.column.first().copied() else { return };
        let same = |e: &&Earlier| {
            let as_that = |(span, row): (&Span, &u32)| text(*span) == text(span_of(*row, e.token));
            self.column.iter().rev().zip(rows.iter().rev()).all(as_that)
        };
        let texts = &mut self.table.texts;
        if let Some(e) = earlier.iter().find(same) {
            texts.extend_from_slice(&text(first)[..e.prefix as usize]);
            texts.push(SLOT);
            texts.extend_from_slice(&text(first)[text(first).len() - e.suffix as usize..]);
            slots.push((Slot::Same { of: e.slot }, e.digit));
            return;
        }
        let number = u16::try_from(slots.len()).unwrap_or(u16::MAX);
        let of_rows = self.column.iter().map(|span| text(*span));
        let found = self.finder.find(beside, rows, of_rows, &mut self.table.fields);
        if let Some((slot, digit)) = found {
            texts.push(SLOT);
            earlier.push(Earlier { token, slot: number, prefix: 0, suffix: 0, digit });
            slots.push((slot, digit));
            return;
        }
        let start = self.data.len();
        let dictionary = &mut self.table.dictionary;
        match self.analyser.analyse(bytes, &self.column, dictionary, &mut self.data) {
            Form::Constant => texts.extend_from_slice(text(first)),
            Form::Slot { prefix, suffix, slot, digit } => {
                texts.extend_from_slice(&text(first)[..prefix as usize]);
                texts.push(SLOT);
                texts.extend_from_slice(&text(first)[text(first).len() - suffix as usize..]);
                earlier.push(Earlier { token, slot: number, prefix, suffix, digit });
                slots.push((slot, digit));
                let template = u32::try_from(template).unwrap_or(u32::MAX);
                self.columns.push(Column { template, slot, start });
            }
        }
    }

    fn write_strips(&mut self, values: &TextVec, zstd: &mut Compressor, out: &mut StripsBuilder) {
        // For each template, how many of its rows stand in the strips before.
        let mut done = vec![0u32; self.keys.len()];
        for (i, ids) in self.ids.chunks(STRIP_ROWS).enumerate() {
            let strip_end = u32::try_from((i + 1) * STRIP_ROWS).unwrap_or(u32::MAX);
            let before = done.clone();
            for (template, done) in done.iter_mut().enumerate() {
                let rows = self.rows_of(template);
                let rest = rows.get(*done as usize..).unwrap_or(&[]);
                *done += rest.iter().zip(0u32..).find(|(row, _)| **row >= strip_end).map_or_else(
                    || u32::try_from(rest.len()).unwrap_or(u32::MAX),
                    |(_, count)| count,
                );
            }
            self.streams.clear();
            let mut bits = BitWriter::default();
            for column in &self.columns {
                let template = column.template as usize;
                let of = |counts: &[u32]| counts.get(template).map_or(0, |n| *n as usize);
                let range = column.start + of(&before)..column.start + of(&done);
                let data = self.data.get(range).unwrap_or(&[]);
                self.streams.put(column.slot, data, values.bytes(), &mut bits);
            }
            bits.finish(&mut self.streams.bits);
            self.streams.write(ids, self.keys.len(), zstd, out.open());
            out.close();
        }
    }

    fn rows_of(&self, template: usize) -> &[u32] {
        let at = |i: usize| self.starts.get(i).map_or(0, |start| *start as usize);
        self.order.get(at(template)..at(template + 1)).unwrap_or(&[])
    }
}

impl Streams {
    fn clear(&mut self) {
        self.codes.clear();
        self.texts.clear();
        self.hex.clear();
        self.bits.clear();
    }

    /// Appends the values of one column.
    fn put(&mut self, slot: Slot, data: &[u64], bytes: &[u8], bits: &mut BitWriter) {
        let text = |word: u64| {
            let (from, to) = (word >> 32, word & u64::from(u32::MAX));
            let range = usize::try_from(from).unwrap_or(0)..usize::try_from(to).unwrap_or(0);
            bytes.get(range).unwrap_or(&[])
        };
        match slot {
            Slot::Int { width, .. } => {
                data.iter().for_each(|n| bits.put(*n, u32::from(width), &mut self.bits));
            }
            Slot::Codes { .. } => self.codes.extend(data.iter().map(|n| n.to_le_bytes()[0])),
            Slot::Hex { .. } => data.iter().for_each(|word| pack_hex(text(*word), &mut self.hex)),
            Slot::Text { .. } => data.iter().for_each(|word| self.texts.push(text(*word))),
            Slot::Same { .. } | Slot::Field { .. } => {}
        }
    }

    /// Appends the strip.
    fn write(&mut self, ids: &[u32], templates: usize, zstd: &mut Compressor, out: &mut Vec<u8>) {
        self.blob.clear();
        dictionary::encode_codes(ids, templates, zstd, &mut self.blob);
        put_bytes(out, &self.blob);
        if !self.codes.is_empty() {
            self.blob.clear();
            zstd.pack(&self.codes, &mut self.blob);
            put_bytes(out, &self.blob);
        }
        if !self.texts.is_empty() {
            self.blob.clear();
            plain::encode_strip(&self.texts, (0, self.texts.len()), zstd, &mut self.blob);
            put_bytes(out, &self.blob);
        }
        out.extend_from_slice(&self.hex);
        out.extend_from_slice(&self.bits);
    }
}
