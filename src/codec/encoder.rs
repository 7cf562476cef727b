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
use super::template::TemplateEncoder;
use super::{PAGE_RAW_MAX, PAGE_ROWS_MAX, STRIP_ROWS, plain, times};
use crate::error::Malformed;
use crate::record::TextVec;

/// With so few distinct values the dictionary always wins over plain strings.
const SURE_DICTIONARY: usize = 256;
/// Templates are tried for columns of at least so many bytes,
const TEMPLATES_BYTES_MIN: usize = 4_096;
/// and for values of on average so many.
const TEMPLATES_LEN_MIN: usize = 12;

/// How pages are encoded.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EncodeOptions {
    /// The level of zstd; 0 compresses nothing and picks what is encoded fastest.
    pub(crate) level: i32,
    /// Decode every page at once and compare; debug builds always do.
    pub(crate) verify: bool,
}

/// Encodes pages; one for each worker, since it keeps contexts and buffers.
#[derive(Debug)]
pub(crate) struct Encoder {
    options: EncodeOptions,
    zstd: Compressor,
    templates: TemplateEncoder,
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
        Encoder {
            options,
            zstd: Compressor::new(options.level),
            templates: TemplateEncoder::default(),
            check: Decoder::new(),
            hasher: RandomState::default(),
        }
    }

    /// The compressor, for blobs that are no pages.
    pub(crate) fn compressor(&mut self) -> &mut Compressor {
        &mut self.zstd
    }

    /// Encodes one column of one block in the smallest encoding.
    ///
    /// Fails only if a verification was asked for and found a difference.
    pub(crate) fn encode_page(&mut self, input: &PageInput<'_>) -> Result<EncodedPage, Malformed> {
        let values = input.values;
        debug_assert!(values.len() <= PAGE_ROWS_MAX, "a block has at most 65,536 rows");
        debug_assert!(values.bytes().len() <= PAGE_RAW_MAX, "a page has at most 128 MiB");
        let mut stats = stats(values);
        let (encoded, distinct) = match constant(values) {
            Some(value) => {
                let encoded =
                    Encoded { encoding: Encoding::Const, head: value.to_vec(), strips: Vec::new() };
                stats.int_range = IntColumn::of(values).and_then(|c| c.range());
                (encoded, Some(Arc::new([value].into_iter().collect())))
            }
            None if self.options.level == 0 => (self.plain(values), None),
            None => self.choose(values, &mut stats),
        };
        let Encoded { encoding, head, strips } = encoded;
        let page = EncodedPage { encoding, head, strips, stats, distinct };
        if self.options.verify || cfg!(debug_assertions) {
            self.verify(&page, values)?;
        }
        Ok(page)
    }

    /// The smallest of the encodings that suit the values.
    fn choose(
        &mut self,
        values: &TextVec,
        stats: &mut PageStats,
    ) -> (Encoded, Option<Arc<TextVec>>) {
        let ints = IntColumn::of(values);
        if let Some(ints) = &ints
            && ints.exceptions.is_empty()
        {
            stats.int_range = ints.range();
        }
        let column = DictColumn::of(values, &self.hasher);
        let sure = column.as_ref().is_some_and(|c| c.dictionary.len() <= SURE_DICTIONARY);
        let ints = ints.map(|ints| self.integers(values, &ints));
        let dictionary = column.as_ref().map(|c| self.dictionary(c));
        let best = match (ints, dictionary) {
            (Some(a), Some(b)) => Some(if a.len() <= b.len() { a } else { b }),
            (a, b) => a.or(b),
        };
        let encoded = match best {
            Some(best) if sure => best,
            best => self.smaller_of_text(values, best),
        };
        match (encoded.encoding, column) {
            (Encoding::Dictionary, Some(c)) => (encoded, Some(Arc::new(c.dictionary))),
            _ => (encoded, None),
        }
    }

    fn integers(&mut self, values: &TextVec, ints: &IntColumn) -> Encoded {
        let mut strips = StripsBuilder::default();
        let middle = strip_count(values.len()) / 2;
        let order =
            ints.best_order(middle * STRIP_ROWS, ((middle + 1) * STRIP_ROWS).min(values.len()));
        for range in strip_ranges(values.len()) {
            ints.encode_strip(values, range, order, strips.open());
            strips.close();
        }
        let (head, strips) = strips.finish(&[]);
        Encoded { encoding: Encoding::Integers, head, strips }
    }

    fn dictionary(&mut self, column: &DictColumn) -> Encoded {
        let mut params = Vec::new();
        column.encode_params(&mut self.zstd, &mut params);
        let mut strips = StripsBuilder::default();
        for range in strip_ranges(column.codes.len()) {
            column.encode_strip(range, &mut self.zstd, strips.open());
            strips.close();
        }
        let (head, strips) = strips.finish(&params);
        Encoded { encoding: Encoding::Dictionary, head, strips }
    }

    /// `best`, or templates or plain strings if they are smaller. Templates must be clearly smaller
    /// than a dictionary, since that answers more questions at once.
    fn smaller_of_text(&mut self, values: &TextVec, best: Option<Encoded>) -> Encoded {
        let by_values = |best: &Encoded| best.head.len() * 2 < best.len();
        let best = match best {
            Some(best) if by_values(&best) => Some(best),
            best => match (best, self.templates(values)) {
                (Some(best), Some(templates)) => {
                    let clearly = templates.len() + templates.len() / 4 < best.len();
                    Some(if clearly { templates } else { best })
                }
                (best, templates) => best.or(templates),
            },
        };
        match best {
            Some(best) if self.plain_estimate(values) >= best.len() => best,
            Some(best) => {
                let plain = self.plain(values);
                if plain.len() < best.len() { plain } else { best }
            }
            None => self.plain(values),
        }
    }

    fn templates(&mut self, values: &TextVec) -> Option<Encoded> {
        let bytes = values.bytes().len();
        if bytes < TEMPLATES_BYTES_MIN || bytes < values.len() * TEMPLATES_LEN_MIN {
            return None;
        }
        let (mut strips, mut params) = (StripsBuilder::default(), Vec::new());
        if !self.templates.encode(values, &mut self.zstd, &mut strips, &mut params) {
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
        let middle = count / 2;
        let (from, to) = (middle * STRIP_ROWS, ((middle + 1) * STRIP_ROWS).min(values.len()));
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
            self.decode(&page, times.len(), |strip| match strip {
                Strip::Times(times) => got.extend(times),
                _ => got.clear(),
            })?;
            if got != times {
                return Err(Malformed("page does not decode to what was encoded"));
            }
        }
        Ok(page)
    }

    /// Decodes `page` and compares it with what it was made of.
    fn verify(&mut self, page: &EncodedPage, values: &TextVec) -> Result<(), Malformed> {
        let mut want = values.iter();
        let mut scratch = Vec::new();
        let mut same = true;
        self.decode(page, values.len(), |strip| {
            same &= (0..strip.len()).all(|row| want.next() == Some(strip.get(row, &mut scratch)));
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
        mut each: impl FnMut(Strip),
    ) -> Result<(), Malformed> {
        let head = PageHead::parse(page.encoding, &page.head, rows, &mut self.check)?;
        for i in 0..head.strip_count() {
            let bytes = page.strip(&head, i).ok_or(Malformed("strip past the end of its page"))?;
            each(head.decode_strip(i, bytes, &mut self.check)?);
        }
        Ok(())
    }
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

/// The first eight bytes as a number that orders as they do; shorter values are padded with zeros.
#[inline]
fn order_prefix(value: &[u8]) -> u64 {
    match value.first_chunk::<8>() {
        Some(head) => u64::from_le_bytes(*head).swap_bytes(),
        None => value.iter().zip(1u32..).fold(0, |n, (b, i)| n | u64::from(*b) << (64 - 8 * i)),
    }
}

fn stats(values: &TextVec) -> PageStats {
    let mut s = PageStats { min_len: u32::MAX, ..PageStats::default() };
    let (mut min, mut max) = ((u64::MAX, None), (0u64, None));
    for (row, value) in (0u32..).zip(values.iter()) {
        s.rows += 1;
        if value.is_empty() {
            continue;
        }
        s.present += 1;
        let len = u32::try_from(value.len()).unwrap_or(u32::MAX);
        s.min_len = s.min_len.min(len);
        s.max_len = s.max_len.max(len);
        let prefix = order_prefix(value);
        let at = |row: Option<u32>| row.map(|row| values.get(row as usize));
        if prefix < min.0 || (prefix == min.0 && at(min.1).is_none_or(|m| value < m)) {
            min = (prefix, Some(row));
        }
        if prefix > max.0 || (prefix == max.0 && at(max.1).is_none_or(|m| value > m)) {
            max = (prefix, Some(row));
        }
    }
    if s.present == 0 {
        s.min_len = 0;
    }
    s.text_range = min.1.zip(max.1);
    s
}
