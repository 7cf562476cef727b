//! Chooses the encoding of a page and makes it.

use std::sync::Arc;

use foldhash::fast::RandomState;

use super::compress::Compressor;
use super::dictionary::DictColumn;
use super::integers::IntColumn;
use super::page::{
    Decoder, EncodedPage, Encoding, PageHead, PageInput, PageStats, Strip, StripsBuilder,
    strip_count,
};
use super::shaped::ShapedColumn;
use super::template::{Beside, TemplateEncoder};
use super::{PAGE_RAW_MAX, PAGE_ROWS_MAX, STRIP_ROWS, plain, times};
use crate::error::Malformed;
use crate::record::TextVec;

/// With so few distinct values the dictionary always wins over plain strings.
const SURE_DICTIONARY: usize = 256;
/// Templates are tried for columns of at least so many bytes,
const TEMPLATES_BYTES_MIN: usize = 4_096;
/// and for values of on average so many.
const TEMPLATES_LEN_MIN: usize = 12;
/// The least level of zstd for front-coded dictionaries of pages that stay.
const HEAD_LEVEL: i32 = 9;

/// How pages are encoded.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EncodeOptions {
    /// The level of zstd; 0 compresses nothing and picks what is encoded fastest.
    pub(crate) level: i32,
    /// Whether the pages are to stay, so that trying harder pays; the others are merged soon.
    pub(crate) stays: bool,
    /// Decode every page at once and compare; debug builds always do.
    pub(crate) verify: bool,
}

/// Encodes pages; one for each worker, since it keeps contexts and buffers.
#[derive(Debug)]
pub(crate) struct Encoder {
    options: EncodeOptions,
    zstd: Compressor,
    templates: TemplateEncoder,
    /// For dictionaries, which are small and read whole: more work pays.
    heads: Compressor,
    check: Decoder,
    hasher: RandomState,
}

/// Head and strips of a page in one encoding.
struct Encoded {
    encoding: Encoding,
    head: Vec<u8>,
    strips: Vec<u8>,
}

impl Encoded {
    fn len(&self) -> usize {
        self.head.len() + self.strips.len()
    }
}

impl Encoder {
    /// An encoder with its own buffers.
    pub(crate) fn new(options: EncodeOptions) -> Encoder {
        let EncodeOptions { level, stays, .. } = options;
        let (zstd, heads) = if stays {
            (Compressor::thorough(level), Compressor::thorough(level.max(HEAD_LEVEL)))
        } else {
            (Compressor::new(level), Compressor::new(level))
        };
        Encoder {
            options,
            zstd,
            templates: TemplateEncoder::default(),
            heads,
            check: Decoder::new(),
            hasher: RandomState::default(),
        }
    }

    /// Compresses what is small and kept for long, as the heads of pages are.
    pub(crate) fn heads(&mut self) -> &mut Compressor {
        &mut self.heads
    }

    /// Whether pages of text may refer to other columns.
    pub(crate) fn refers(&self) -> bool {
        self.options.stays
    }

    /// Encodes one column of one block in the smallest encoding.
    ///
    /// Fails only if a verification was asked for and found a difference.
    pub(crate) fn encode_page(&mut self, input: &PageInput<'_>) -> Result<EncodedPage, Malformed> {
        let values = input.values;
        debug_assert!(values.len() <= PAGE_ROWS_MAX, "a block has at most 65,536 rows");
        debug_assert!(values.bytes().len() <= PAGE_RAW_MAX, "a page has at most 128 MiB");
        debug_assert!(input.beside.iter().all(|b| b.values.len() == values.len()), "rows");
        let mut stats = stats(values);
        let (encoded, distinct) = match constant(values) {
            Some(value) => {
                let encoded =
                    Encoded { encoding: Encoding::Const, head: value.to_vec(), strips: Vec::new() };
                stats.int_range = IntColumn::of(values).and_then(|c| c.range());
                (encoded, Some(Arc::new([value].into_iter().collect())))
            }
            None if self.options.level == 0 => (self.plain(values), None),
            None => self.choose(input, &mut stats),
        };
        let Encoded { encoding, head, strips } = encoded;
        let page = EncodedPage { encoding, head, strips, stats, distinct };
        if self.options.verify || cfg!(debug_assertions) {
            self.verify(&page, input)?;
        }
        Ok(page)
    }

    /// The smallest of the encodings that suit the values.
    fn choose(
        &mut self,
        input: &PageInput<'_>,
        stats: &mut PageStats,
    ) -> (Encoded, Option<Arc<TextVec>>) {
        let values = input.values;
        let ints = IntColumn::of(values);
        if let Some(ints) = &ints
            && ints.holes.exceptions.is_empty()
        {
            stats.int_range = ints.range();
        }
        let most = if self.options.stays { values.len() } else { values.len() / 2 };
        let mut column = DictColumn::of(values, most.max(2), &self.hasher);
        let sure = column.as_ref().is_some_and(|c| c.dictionary.len() <= SURE_DICTIONARY);
        let shaped = if ints.is_some() || sure { None } else { ShapedColumn::of(values) };
        let typed = match (ints, shaped) {
            (Some(ints), _) => Some(self.integers(values, &ints)),
            (None, Some(shaped)) => Some(self.shaped(values, &shaped)),
            (None, None) => None,
        };
        let encoded = match typed {
            None if sure => column.as_mut().map(|c| self.dictionary(c)),
            None => self.text(input, column.as_mut()),
            // Typed values have no templates that would be smaller.
            Some(typed) => {
                let column = column.as_mut().filter(|c| !c.has_many() || c.least() < typed.len());
                match column.map(|c| self.dictionary(c)) {
                    Some(dictionary) if dictionary.len() < typed.len() => Some(dictionary),
                    _ => Some(typed),
                }
            }
        };
        let encoded = match encoded {
            Some(best) if sure => best,
            Some(best) => self.smaller_of_plain(values, best),
            None => self.plain(values),
        };
        match (encoded.encoding, column) {
            (Encoding::Dictionary, Some(c)) => (encoded, Some(Arc::new(c.dictionary))),
            _ => (encoded, None),
        }
    }

    fn shaped(&mut self, values: &TextVec, column: &ShapedColumn) -> Encoded {
        let mut strips = StripsBuilder::default();
        let plan = column.plan(middle_strip(values.len()), &mut self.zstd);
        for range in strip_ranges(values.len()) {
            column.encode_strip(values, range, &plan, &mut self.zstd, strips.open());
            strips.close();
        }
        let mut params = Vec::new();
        column.encode_params(&mut params);
        let (head, strips) = strips.finish(&params);
        Encoded { encoding: Encoding::Shaped, head, strips }
    }

    fn integers(&mut self, values: &TextVec, ints: &IntColumn) -> Encoded {
        let mut strips = StripsBuilder::default();
        let layout = ints.best_layout(middle_strip(values.len()), &mut self.zstd);
        for range in strip_ranges(values.len()) {
            ints.encode_strip(values, range, layout, &mut self.zstd, strips.open());
            strips.close();
        }
        let (head, strips) = strips.finish(&[]);
        Encoded { encoding: Encoding::Integers, head, strips }
    }

    fn dictionary(&mut self, column: &mut DictColumn) -> Encoded {
        let params = column.params(&mut self.zstd, &mut self.heads);
        let mut strips = StripsBuilder::default();
        for range in strip_ranges(column.codes.len()) {
            column.encode_strip(range, &mut self.zstd, strips.open());
            strips.close();
        }
        let (head, strips) = strips.finish(&params);
        Encoded { encoding: Encoding::Dictionary, head, strips }
    }

    /// A dictionary or templates. Templates must be clearly smaller, since a dictionary answers
    /// more questions at once. What probably wins is tried first, and may decide that the other is
    /// not tried at all.
    fn text(&mut self, input: &PageInput<'_>, column: Option<&mut DictColumn>) -> Option<Encoded> {
        let Some(column) = column else { return self.templates(input) };
        let clearly = |templates: &Encoded| templates.len() + templates.len() / 4;
        if column.has_many()
            && let Some(templates) = self.templates(input)
        {
            if column.least() > clearly(&templates) {
                return Some(templates);
            }
            let dictionary = self.dictionary(column);
            let better = clearly(&templates) < dictionary.len();
            return Some(if better { templates } else { dictionary });
        }
        let dictionary = self.dictionary(column);
        if dictionary.head.len() * 2 < dictionary.len() {
            return Some(dictionary);
        }
        let templates = self.templates(input).filter(|t| clearly(t) < dictionary.len());
        Some(templates.unwrap_or(dictionary))
    }

    /// `best`, or plain strings if they are smaller.
    fn smaller_of_plain(&mut self, values: &TextVec, best: Encoded) -> Encoded {
        if self.plain_estimate(values) >= best.len() {
            return best;
        }
        let plain = self.plain(values);
        if plain.len() < best.len() { plain } else { best }
    }

    fn templates(&mut self, input: &PageInput<'_>) -> Option<Encoded> {
        let values = input.values;
        let bytes = values.bytes().len();
        if !self.options.stays
            || bytes < TEMPLATES_BYTES_MIN
            || bytes < values.len() * TEMPLATES_LEN_MIN
        {
            return None;
        }
        let (mut strips, mut params) = (StripsBuilder::default(), Vec::new());
        let (zstd, heads) = (&mut self.zstd, &mut self.heads);
        let suit =
            self.templates.encode(values, input.beside, zstd, heads, &mut strips, &mut params);
        if !suit {
            return None;
        }
        let (head, strips) = strips.finish(&params);
        Some(Encoded { encoding: Encoding::Templates, head, strips })
    }

    fn plain(&mut self, values: &TextVec) -> Encoded {
        let mut strips = StripsBuilder::default();
        for range in strip_ranges(values.len()) {
            plain::encode_strip(values, range, &mut self.zstd, strips.open());
            strips.close();
        }
        let (head, strips) = strips.finish(&[]);
        Encoded { encoding: Encoding::Plain, head, strips }
    }

    /// About the length of the plain page, from one strip of several.
    fn plain_estimate(&mut self, values: &TextVec) -> usize {
        let count = strip_count(values.len());
        if count < 2 {
            return 0;
        }
        let (from, to) = middle_strip(values.len());
        let mut out = Vec::new();
        plain::encode_strip(values, (from, to), &mut self.zstd, &mut out);
        (out.len() + 10) * values.len() / (to - from).max(1)
    }

    /// Encodes the times of a block. `run_lens` are the numbers of rows of its stream runs, whose
    /// sum is that of `times`; within a run times do not decrease (else the page is only larger).
    ///
    /// Fails only if a verification was asked for and found a difference.
    pub(crate) fn encode_times(
        &mut self,
        times: &[i64],
        run_lens: &[u32],
    ) -> Result<EncodedPage, Malformed> {
        debug_assert!(times.len() <= PAGE_ROWS_MAX, "a block has at most 65,536 rows");
        debug_assert_eq!(run_lens.iter().map(|n| *n as usize).sum::<usize>(), times.len());
        let mut strips = StripsBuilder::default();
        let runs = times::strip_runs(times.len(), run_lens);
        for (strip, lens) in times.chunks(STRIP_ROWS).zip(&runs) {
            times::encode_strip(strip, lens, strips.open());
            strips.close();
        }
        let (head, strips) = strips.finish(&[]);
        let rows = u32::try_from(times.len()).unwrap_or(u32::MAX);
        let range = times.iter().min().zip(times.iter().max());
        let stats = PageStats {
            rows,
            present: rows,
            int_range: range.map(|(min, max)| (*min, *max)),
            ..PageStats::default()
        };
        let page = EncodedPage { encoding: Encoding::Times, head, strips, stats, distinct: None };
        if self.options.verify || cfg!(debug_assertions) {
            let mut got = Vec::with_capacity(times.len());
            self.decode(&page, times.len(), &[], |strip| match strip {
                Strip::Times(times) => got.extend_from_slice(&times),
                _ => got.clear(),
            })?;
            if got != times {
                return Err(Malformed("page does not decode to what was encoded"));
            }
        }
        Ok(page)
    }

    /// Decodes `page` and compares it with what it was made of.
    fn verify(&mut self, page: &EncodedPage, input: &PageInput<'_>) -> Result<(), Malformed> {
        let values = input.values;
        let mut want = values.iter();
        let mut scratch = Vec::new();
        let mut same = true;
        self.decode(page, values.len(), input.beside, |strip| match strip {
            Strip::Text(text) => same &= text.iter().all(|value| want.next() == Some(value)),
            Strip::Codes { codes, dictionary } => {
                let mut values = codes.iter().map(|code| dictionary.get(*code as usize));
                same &= values.all(|value| want.next() == Some(value));
            }
            strip => {
                let mut rows = 0..strip.len();
                same &= rows.all(|row| want.next() == Some(strip.get(row, &mut scratch)));
            }
        })?;
        if same && want.next().is_none() {
            Ok(())
        } else {
            Err(Malformed("page does not decode to what was encoded"))
        }
    }

    fn decode(
        &mut self,
        page: &EncodedPage,
        rows: usize,
        beside: &[Beside<'_>],
        mut each: impl FnMut(Strip),
    ) -> Result<(), Malformed> {
        let head = PageHead::parse(page.encoding, &page.head, rows, &mut self.check)?;
        let referred = head.fields().into_iter().flat_map(TextVec::iter);
        let referred = referred
            .map(|name| beside.iter().find(|b| b.name.as_bytes() == name).copied())
            .collect::<Option<Vec<_>>>()
            .ok_or(Malformed("page that refers to a column of no block"))?;
        for i in 0..head.strip_count() {
            let bytes = page.strip(&head, i).ok_or(Malformed("strip past the end of its page"))?;
            let rows = i * STRIP_ROWS..i * STRIP_ROWS + head.strip_rows(i);
            let beside: Vec<Arc<Strip>> = (referred.iter())
                .map(|b| {
                    Arc::new(Strip::Text(Arc::new(rows.clone().map(|r| b.values.get(r)).collect())))
                })
                .collect();
            each(head.decode_strip(i, bytes, &beside, &mut self.check)?);
        }
        Ok(())
    }
}

/// The rows of the strip in the middle of a page.
fn middle_strip(rows: usize) -> (usize, usize) {
    let middle = strip_count(rows) / 2 * STRIP_ROWS;
    let from = if middle < rows { middle } else { 0 };
    (from, (from + STRIP_ROWS).min(rows))
}

/// The rows of each strip of a page.
fn strip_ranges(rows: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..strip_count(rows)).map(move |i| (i * STRIP_ROWS, ((i + 1) * STRIP_ROWS).min(rows)))
}

/// The value of all rows, if it is one.
fn constant(values: &TextVec) -> Option<&[u8]> {
    let first = values.get(0);
    let same = values.bytes().len() == first.len() * values.len();
    (same && values.iter().all(|v| v == first)).then_some(first)
}

fn stats(values: &TextVec) -> PageStats {
    let mut stats = PageStats { min_len: u32::MAX, ..PageStats::default() };
    stats.rows = u32::try_from(values.len()).unwrap_or(u32::MAX);
    let mut start = 0;
    for end in values.ends() {
        let len = end - start;
        start = *end;
        // An absent value counts as one of the greatest length here, which changes no minimum.
        stats.min_len = stats.min_len.min(len.wrapping_sub(1));
        stats.max_len = stats.max_len.max(len);
        stats.present += u32::from(len > 0);
    }
    stats.min_len = if stats.present == 0 { 0 } else { stats.min_len.wrapping_add(1) };
    stats
}
