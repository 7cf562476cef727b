//! Pages: one column of one block, as a head and strips.

use std::ops::Range;
use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_64;

use super::compress::Decompressor;
use super::shaped::{self, ShapedParams};
use super::template::{Beside, TemplateIds, TemplateStrip, TemplateTable};
use super::varint::{Reader, put_varint};
use super::{Bitmap, PAGE_RAW_MAX, PAGE_ROWS_MAX, STRIP_ROWS, dictionary, integers, plain, times};
use crate::error::Malformed;
use crate::record::TextVec;

/// How the values of a page are stored. The numbers are part of the format.
///
/// Numbers 7 to 13 are reserved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub(crate) enum Encoding {
    /// Lengths and bytes.
    Plain = 1,
    /// The same value in all rows: it is the head, there are no strips.
    Const = 2,
    /// Numbers of values in a dictionary, which is in the head.
    Dictionary = 3,
    /// Canonical decimal integers.
    Integers = 4,
    /// The `_time` column: nanoseconds.
    Times = 5,
    /// Templates and the values of their slots.
    Templates = 14,
    /// Values of one shape: ids, addresses, numbers with units, times in text.
    Shaped = 6,
}

impl Encoding {
    /// The encoding of a number of the format.
    pub(crate) fn from_u8(n: u8) -> Result<Encoding, Malformed> {
        match n {
            1 => Ok(Encoding::Plain),
            2 => Ok(Encoding::Const),
            3 => Ok(Encoding::Dictionary),
            4 => Ok(Encoding::Integers),
            5 => Ok(Encoding::Times),
            14 => Ok(Encoding::Templates),
            6 => Ok(Encoding::Shaped),
            _ => Err(Malformed("unknown encoding")),
        }
    }

    /// The number in the format.
    pub(crate) fn as_u8(self) -> u8 {
        self as u8
    }
}

/// One column of one block: at most [`PAGE_ROWS_MAX`] values of at most [`PAGE_RAW_MAX`] bytes
/// together; an empty value is an absent one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PageInput<'a> {
    /// One value for each row.
    pub(crate) values: &'a TextVec,
    /// Other columns of the block, to whose values the page may refer.
    pub(crate) beside: &'a [Beside<'a>],
}

impl<'a> PageInput<'a> {
    /// A column whose page refers to no others.
    pub(crate) fn alone(values: &'a TextVec) -> PageInput<'a> {
        PageInput { values, beside: &[] }
    }
}

/// An encoded page. In a file the strips follow the head at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EncodedPage {
    /// How the values are stored.
    pub(crate) encoding: Encoding,
    /// The head; its length and checksum are kept by whoever refers to the page.
    pub(crate) head: Vec<u8>,
    /// All strips, one after the other.
    pub(crate) strips: Vec<u8>,
    /// What is known about the values.
    pub(crate) stats: PageStats,
    /// The distinct values, the empty one included if some row has none, where the encoder found
    /// them anyway: for const and dictionary pages. In dictionary order.
    pub(crate) distinct: Option<Arc<TextVec>>,
}

impl EncodedPage {
    /// Bytes of head and strips.
    pub(crate) fn len(&self) -> usize {
        self.head.len() + self.strips.len()
    }

    /// The bytes of strip `i` according to the page's parsed head.
    pub(crate) fn strip(&self, head: &PageHead, i: usize) -> Option<&[u8]> {
        let range = head.strip_range(i);
        let start = usize::try_from(range.start).ok()?.checked_sub(self.head.len())?;
        let end = usize::try_from(range.end).ok()?.checked_sub(self.head.len())?;
        self.strips.get(start..end)
    }
}

/// Facts about the values of a page.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PageStats {
    /// The number of rows.
    pub(crate) rows: u32,
    /// The number of rows with a value.
    pub(crate) present: u32,
    /// The shortest length of a present value in bytes; 0 if there is none.
    pub(crate) min_len: u32,
    /// The longest length of a value in bytes.
    pub(crate) max_len: u32,
    /// Least and greatest value if all present ones are canonical decimal integers of 64 bits.
    pub(crate) int_range: Option<(i64, i64)>,
}

impl PageStats {}

/// Decoded values of up to [`STRIP_ROWS`] consecutive rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Strip {
    /// The values.
    Text(Arc<TextVec>),
    /// Numbers of values in a dictionary; every code is below its length.
    Codes {
        /// The number of each row's value.
        codes: Arc<Vec<u32>>,
        /// The distinct values; an absent value is the empty one.
        dictionary: Arc<TextVec>,
    },
    /// Canonical decimal integers.
    Ints {
        /// The number of each row; of no meaning for rows that are absent or exceptions.
        values: Arc<Vec<i64>>,
        /// The rows without a value.
        absent: Option<Bitmap>,
        /// Rows whose value is some other text, ascending.
        exceptions: Vec<(u32, Vec<u8>)>,
    },
    /// Nanoseconds since the Unix epoch.
    Times(Arc<Vec<i64>>),
    /// Templates and the values of their slots, rendered on demand.
    Templates(TemplateStrip),
}

impl Strip {
    /// The number of rows.
    pub(crate) fn len(&self) -> usize {
        match self {
            Strip::Text(text) => text.len(),
            Strip::Codes { codes, .. } => codes.len(),
            Strip::Ints { values, .. } | Strip::Times(values) => values.len(),
            Strip::Templates(strip) => strip.len(),
        }
    }

    /// The value of `row`, printed into `scratch` if it is not held as text; empty if absent.
    #[inline]
    pub(crate) fn get<'a>(&'a self, row: usize, scratch: &'a mut Vec<u8>) -> &'a [u8] {
        match self {
            Strip::Text(text) => text.get(row),
            Strip::Codes { codes, dictionary } => {
                codes.get(row).map_or(&[], |code| dictionary.get(*code as usize))
            }
            Strip::Ints { values, absent, exceptions } => {
                if absent.as_ref().is_some_and(|a| a.get(row)) {
                    return &[];
                }
                if let Some(text) = exception(exceptions, row) {
                    return text;
                }
                values.get(row).map_or(&[], |n| print_int(*n, scratch))
            }
            Strip::Times(values) => values.get(row).map_or(&[], |n| print_int(*n, scratch)),
            Strip::Templates(strip) => {
                scratch.clear();
                strip.render(row, scratch);
                scratch
            }
        }
    }

    /// All values as text.
    pub(crate) fn to_text(&self) -> TextVec {
        let mut out = TextVec::new();
        self.append_to(&mut out);
        out
    }

    /// Appends all values to `out`.
    pub(crate) fn append_to(&self, out: &mut TextVec) {
        match self {
            Strip::Text(text) => return out.extend(text),
            Strip::Templates(strip) => return strip.append_to(out),
            _ => {}
        }
        let mut scratch = Vec::new();
        for row in 0..self.len() {
            out.push(self.get(row, &mut scratch));
        }
    }

    /// Bytes of memory held, a shared dictionary or table not counted.
    pub(crate) fn heap_bytes(&self) -> usize {
        match self {
            Strip::Text(text) => text.heap_bytes(),
            Strip::Codes { codes, .. } => codes.capacity() * size_of::<u32>(),
            Strip::Times(values) => values.capacity() * size_of::<i64>(),
            Strip::Templates(strip) => strip.heap_bytes(),
            Strip::Ints { values, absent, exceptions } => {
                values.capacity() * size_of::<i64>()
                    + absent.as_ref().map_or(0, |a| a.words().len() * 8)
                    + exceptions.iter().map(|(_, text)| text.capacity() + 32).sum::<usize>()
            }
        }
    }
}

/// The text of an exception row.
fn exception(exceptions: &[(u32, Vec<u8>)], row: usize) -> Option<&[u8]> {
    if exceptions.is_empty() {
        return None;
    }
    let i = exceptions.binary_search_by(|(r, _)| (*r as usize).cmp(&row)).ok()?;
    exceptions.get(i).map(|(_, text)| text.as_slice())
}

/// The decimal text of `n` in `scratch`.
#[inline]
fn print_int(n: i64, scratch: &mut Vec<u8>) -> &[u8] {
    scratch.clear();
    let mut rest = n.unsigned_abs();
    loop {
        // A digit, so it fits a byte.
        scratch.push(b'0' + (rest % 10).to_le_bytes()[0]);
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if n < 0 {
        scratch.push(b'-');
    }
    scratch.reverse();
    scratch
}

/// What decoding can reuse from one strip to the next; one for each worker.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    pub(super) zstd: Decompressor,
    pub(super) scratch: Vec<u8>,
}

impl Decoder {
    /// Nothing to reuse yet.
    pub(crate) fn new() -> Decoder {
        Decoder::default()
    }

    /// The raw bytes of a blob that [`Compressor::pack`](super::compress::Compressor::pack) made.
    pub(crate) fn unpack(&mut self, blob: &[u8], max: usize) -> Result<Vec<u8>, Malformed> {
        self.zstd.unpack(blob, max)
    }
}

/// The number of strips of a page.
pub(crate) fn strip_count(rows: usize) -> usize {
    rows.div_ceil(STRIP_ROWS)
}

/// The bytes of the strip table with which the head of a page of `rows` rows begins.
pub(crate) fn strip_table_len(head: &[u8], rows: usize) -> Result<usize, Malformed> {
    let mut r = Reader::new(head);
    for _ in 0..strip_count(rows) {
        r.varint32()?;
        r.u64()?;
    }
    Ok(head.len() - r.rest().len())
}

/// Where a strip lies, and the checksum of its bytes.
#[derive(Debug, Clone, Copy)]
struct StripRef {
    start: u64,
    len: u32,
    checksum: u64,
}

/// Collects strips and their table while a page is encoded.
#[derive(Debug, Default)]
pub(super) struct StripsBuilder {
    table: Vec<u8>,
    strips: Vec<u8>,
    closed: usize,
}

impl StripsBuilder {
    /// The buffer to which the bytes of the open strip are appended.
    pub(super) fn open(&mut self) -> &mut Vec<u8> {
        &mut self.strips
    }

    /// Ends the open strip.
    pub(super) fn close(&mut self) {
        let strip = self.strips.get(self.closed..).unwrap_or(&[]);
        put_varint(&mut self.table, strip.len() as u64);
        self.table.extend_from_slice(&xxh3_64(strip).to_le_bytes());
        self.closed = self.strips.len();
    }

    /// The head, which is the strip table and `params`, and the strips.
    pub(super) fn finish(self, params: &[u8]) -> (Vec<u8>, Vec<u8>) {
        let mut head = self.table;
        head.extend_from_slice(params);
        (head, self.strips)
    }
}

/// Verifies the checksums of all strips of a page, without decoding anything: `head` is its head,
/// verified already, `strips` what follows.
pub(crate) fn verify_strips(
    encoding: Encoding,
    head: &[u8],
    strips: &[u8],
    rows: usize,
) -> Result<(), Malformed> {
    let (mut table, mut rest) = (Reader::new(head), Reader::new(strips));
    let count = if encoding == Encoding::Const { 0 } else { strip_count(rows) };
    for _ in 0..count {
        let len = table.len(strips.len())?;
        if table.u64()? != xxh3_64(rest.take(len)?) {
            return Err(Malformed("strip does not match its checksum"));
        }
    }
    rest.finish()
}

/// The head of a page: where its strips are, and what decoding them needs.
#[derive(Debug, Clone)]
pub(crate) struct PageHead {
    rows: usize,
    strips: Vec<StripRef>,
    end: u64,
    params: Params,
}

/// What the head holds for each encoding.
#[derive(Debug, Clone)]
enum Params {
    Plain,
    Times,
    Integers,
    Const(Arc<TextVec>),
    Dictionary(Arc<TextVec>),
    Templates(Arc<TemplateTable>),
    Shaped(Arc<ShapedParams>),
}

impl PageHead {
    /// Reads a head whose checksum has been verified. `rows` is the block's number of rows.
    pub(crate) fn parse(
        encoding: Encoding,
        bytes: &[u8],
        rows: usize,
        decoder: &mut Decoder,
    ) -> Result<PageHead, Malformed> {
        if rows > PAGE_ROWS_MAX {
            return Err(Malformed("too many rows in a page"));
        }
        if encoding == Encoding::Const {
            return PageHead::constant(bytes, rows);
        }
        let mut r = Reader::new(bytes);
        let mut strips = Vec::with_capacity(strip_count(rows));
        let mut start = bytes.len() as u64;
        for _ in 0..strip_count(rows) {
            let len = r.varint32()?;
            strips.push(StripRef { start, len, checksum: r.u64()? });
            start += u64::from(len);
        }
        let params = match encoding {
            Encoding::Plain => Params::Plain,
            Encoding::Times => Params::Times,
            Encoding::Integers => Params::Integers,
            Encoding::Dictionary => Params::Dictionary(dictionary::decode_params(&mut r, decoder)?),
            Encoding::Templates => {
                Params::Templates(Arc::new(TemplateTable::decode(&mut r, decoder)?))
            }
            Encoding::Shaped => Params::Shaped(shaped::decode_params(&mut r)?),
            Encoding::Const => return Err(Malformed("const page with strips")),
        };
        r.finish()?;
        Ok(PageHead { rows, strips, end: start, params })
    }

    fn constant(value: &[u8], rows: usize) -> Result<PageHead, Malformed> {
        if value.len() > PAGE_RAW_MAX {
            return Err(Malformed("value over its cap"));
        }
        let params = Params::Const(Arc::new([value].into_iter().collect()));
        let end = value.len() as u64;
        Ok(PageHead { rows, strips: Vec::new(), end, params })
    }

    /// The number of strips, also of const pages, whose strips have no bytes.
    pub(crate) fn strip_count(&self) -> usize {
        strip_count(self.rows)
    }

    /// The number of rows of strip `i`; 0 past the last one.
    pub(crate) fn strip_rows(&self, i: usize) -> usize {
        self.rows.saturating_sub(i.saturating_mul(STRIP_ROWS)).min(STRIP_ROWS)
    }

    /// Where the bytes of strip `i` are, counted from the start of the page (its head).
    pub(crate) fn strip_range(&self, i: usize) -> Range<u64> {
        self.strips.get(i).map_or(self.end..self.end, |s| s.start..s.start + u64::from(s.len))
    }

    /// Bytes of head and strips.
    pub(crate) fn page_len(&self) -> u64 {
        self.end
    }

    /// The distinct values of a const or dictionary page.
    pub(crate) fn dictionary(&self) -> Option<&Arc<TextVec>> {
        match &self.params {
            Params::Const(dictionary) | Params::Dictionary(dictionary) => Some(dictionary),
            Params::Plain
            | Params::Times
            | Params::Integers
            | Params::Shaped(_)
            | Params::Templates(_) => None,
        }
    }

    /// The templates of a page that has some.
    pub(crate) fn templates(&self) -> Option<&Arc<TemplateTable>> {
        match &self.params {
            Params::Templates(table) => Some(table),
            _ => None,
        }
    }

    /// The names of the columns of the block whose strips decoding needs.
    pub(crate) fn fields(&self) -> Option<&TextVec> {
        self.templates().map(|table| table.fields()).filter(|fields| !fields.is_empty())
    }

    /// Bytes of memory held.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.strips.capacity() * size_of::<StripRef>()
            + match &self.params {
                Params::Const(dictionary) | Params::Dictionary(dictionary) => {
                    dictionary.heap_bytes()
                }
                Params::Shaped(params) => params.heap_bytes(),
                Params::Templates(table) => table.heap_bytes(),
                Params::Plain | Params::Times | Params::Integers => 0,
            }
    }

    /// Verifies and decodes strip `i` from its bytes. `beside` are the strips of the columns that
    /// [`fields`](PageHead::fields) names.
    pub(crate) fn decode_strip(
        &self,
        i: usize,
        bytes: &[u8],
        beside: &[Arc<Strip>],
        decoder: &mut Decoder,
    ) -> Result<Strip, Malformed> {
        if !matches!(self.params, Params::Const(_)) {
            self.verify_strip(i, bytes)?;
        }
        self.decode_verified(i, bytes, beside, decoder)
    }

    /// Verifies strip `i` and decodes the templates of its rows, not their values; the page has
    /// templates.
    pub(crate) fn decode_template_ids(
        &self,
        i: usize,
        bytes: &[u8],
        decoder: &mut Decoder,
    ) -> Result<TemplateIds, Malformed> {
        let Params::Templates(table) = &self.params else {
            return Err(Malformed("no page of templates"));
        };
        self.verify_strip(i, bytes)?;
        TemplateIds::decode(bytes, self.strip_rows(i), table, decoder)
    }

    /// Verifies strip `i` and decodes the values of its slots, the templates of its rows being
    /// known; the page has templates.
    pub(crate) fn decode_template_values(
        &self,
        i: usize,
        bytes: &[u8],
        ids: &Arc<TemplateIds>,
        beside: &[Arc<Strip>],
        decoder: &mut Decoder,
    ) -> Result<Strip, Malformed> {
        let Params::Templates(table) = &self.params else {
            return Err(Malformed("no page of templates"));
        };
        self.verify_strip(i, bytes)?;
        TemplateStrip::decode_values(bytes, ids, table, beside, decoder).map(Strip::Templates)
    }

    fn verify_strip(&self, i: usize, bytes: &[u8]) -> Result<(), Malformed> {
        let strip = self.strips.get(i).ok_or(Malformed("no such strip"))?;
        if bytes.len() != strip.len as usize || xxh3_64(bytes) != strip.checksum {
            return Err(Malformed("strip does not match its checksum"));
        }
        Ok(())
    }

    /// Decodes strip `i` from bytes whose checksum has been verified.
    pub(super) fn decode_verified(
        &self,
        i: usize,
        bytes: &[u8],
        beside: &[Arc<Strip>],
        decoder: &mut Decoder,
    ) -> Result<Strip, Malformed> {
        let rows = self.strip_rows(i);
        match &self.params {
            Params::Plain => {
                plain::decode_strip(bytes, rows, decoder).map(|text| Strip::Text(Arc::new(text)))
            }
            Params::Times => times::decode_strip(bytes, rows).map(|t| Strip::Times(Arc::new(t))),
            Params::Integers => integers::decode_strip(bytes, rows, decoder),
            Params::Shaped(params) => shaped::decode_strip(bytes, rows, params, decoder)
                .map(|text| Strip::Text(Arc::new(text))),
            Params::Dictionary(dictionary) => {
                dictionary::decode_strip(bytes, rows, dictionary, decoder)
            }
            Params::Templates(table) => {
                TemplateStrip::decode(bytes, rows, table, beside, decoder).map(Strip::Templates)
            }
            Params::Const(dictionary) => Ok(Strip::Codes {
                codes: Arc::new(vec![0; rows]),
                dictionary: Arc::clone(dictionary),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_print_as_the_standard_does() {
        let mut scratch = Vec::new();
        for n in [0, 7, 10, -1, 99, -100, 1234567890, i64::MAX, i64::MIN] {
            assert_eq!(print_int(n, &mut scratch), n.to_string().as_bytes());
        }
    }
}
