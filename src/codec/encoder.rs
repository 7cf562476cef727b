//! Chooses the encoding of a page and makes it.

use std::sync::Arc;

use super::compress::Compressor;
use super::page::{
    Decoder, EncodedPage, Encoding, PageHead, PageInput, PageStats, Strip, StripsBuilder,
    strip_count,
};
use super::{PAGE_RAW_MAX, PAGE_ROWS_MAX, STRIP_ROWS, plain, times};
use crate::error::Malformed;
use crate::record::TextVec;

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
    check: Decoder,
}

impl Encoder {
    /// An encoder with its own buffers.
    pub(crate) fn new(options: EncodeOptions) -> Encoder {
        Encoder { options, zstd: Compressor::new(options.level), check: Decoder::new() }
    }

    /// Encodes one column of one block in the smallest encoding.
    ///
    /// Fails only if a verification was asked for and found a difference.
    pub(crate) fn encode_page(&mut self, input: &PageInput<'_>) -> Result<EncodedPage, Malformed> {
        let values = input.values;
        debug_assert!(values.len() <= PAGE_ROWS_MAX, "a block has at most 65,536 rows");
        debug_assert!(values.bytes().len() <= PAGE_RAW_MAX, "a page has at most 128 MiB");
        let stats = stats(values);
        let page = match constant(values) {
            Some(value) => EncodedPage {
                encoding: Encoding::Const,
                head: value.to_vec(),
                strips: Vec::new(),
                stats,
                distinct: Some(Arc::new([value].into_iter().collect())),
            },
            None => self.plain(values, stats),
        };
        if self.options.verify || cfg!(debug_assertions) {
            self.verify(&page, values)?;
        }
        Ok(page)
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
        for strip in times.chunks(STRIP_ROWS) {
            times::encode_strip(strip, &mut self.zstd, strips.open());
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

    fn plain(&mut self, values: &TextVec, stats: PageStats) -> EncodedPage {
        let mut strips = StripsBuilder::default();
        for i in 0..strip_count(values.len()) {
            let (from, to) = (i * STRIP_ROWS, ((i + 1) * STRIP_ROWS).min(values.len()));
            plain::encode_strip(values, from, to, &mut self.zstd, strips.open());
            strips.close();
        }
        let (head, strips) = strips.finish(&[]);
        EncodedPage { encoding: Encoding::Plain, head, strips, stats, distinct: None }
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

/// The value of all rows, if it is one.
fn constant(values: &TextVec) -> Option<&[u8]> {
    let first = values.get(0);
    let same = values.bytes().len() == first.len() * values.len();
    (same && values.iter().all(|v| v == first)).then_some(first)
}

fn stats(values: &TextVec) -> PageStats {
    type At<'a> = (u32, &'a [u8]);
    let mut s = PageStats { min_len: u32::MAX, ..PageStats::default() };
    let mut range: Option<(At<'_>, At<'_>)> = None;
    for (row, value) in (0u32..).zip(values.iter()) {
        s.rows += 1;
        if value.is_empty() {
            continue;
        }
        s.present += 1;
        let len = u32::try_from(value.len()).unwrap_or(u32::MAX);
        s.min_len = s.min_len.min(len);
        s.max_len = s.max_len.max(len);
        let (min, max) = range.get_or_insert(((row, value), (row, value)));
        if value < min.1 {
            *min = (row, value);
        }
        if value > max.1 {
            *max = (row, value);
        }
    }
    if s.present == 0 {
        s.min_len = 0;
    }
    s.text_range = range.map(|(min, max)| (min.0, max.0));
    s
}
