//! JSON, one object a line.
//!
//! `scan` knows the grammar, `object` turns one object into fields, and this page cuts the input
//! into lines. The grammar is our own strict one; the tests hold it against a general JSON parser.

mod object;
mod scan;

use std::io::Read;
use std::path::Path;

use self::object::{ObjectError, ObjectReader};
use super::report::{IngestReport, RejectReason};
use super::row_writer::{RowWriter, excerpt};
use crate::error::{Error, Result};
use crate::record::RowBatch;

/// Bytes read at once.
const READ_BYTES: usize = 1 << 20;

/// Takes full batches, with what became of the lines so far, those of the batch included: it may
/// take the report too, and leave an empty one for the lines that follow.
pub(crate) type Sink<'a> = dyn FnMut(RowBatch, &mut IngestReport) -> Result<()> + 'a;

/// Turns chunks of JSON lines into batches of rows.
///
/// Several workers can share one input: each takes chunks cut at line breaks, and the reports of
/// the chunks are merged in the order of the chunks.
#[derive(Debug)]
pub(crate) struct JsonLines {
    writer: RowWriter,
    reader: ObjectReader,
}

impl JsonLines {
    /// Gives rows to `writer`.
    pub(crate) fn new(writer: RowWriter) -> JsonLines {
        JsonLines { writer, reader: ObjectReader::default() }
    }

    /// The writer.
    pub(crate) fn into_writer(self) -> RowWriter {
        self.writer
    }

    /// The writer, to set the current time.
    #[cfg(test)]
    pub(crate) fn writer(&mut self) -> &mut RowWriter {
        &mut self.writer
    }

    /// Reads whole lines; the last one may lack its line break. Full batches go to `sink`; the
    /// rest stays for the next chunk or [`flush`](JsonLines::flush).
    ///
    /// # Errors
    /// What `sink` returns.
    pub(crate) fn parse_chunk(
        &mut self,
        chunk: &[u8],
        report: &mut IngestReport,
        sink: &mut Sink<'_>,
    ) -> Result<()> {
        let mut rest = chunk;
        while !rest.is_empty() {
            let before = rest.len();
            let line = match memchr::memchr(b'\n', rest) {
                Some(end) => {
                    let (line, tail) = rest.split_at(end);
                    rest = tail.get(1..).unwrap_or(&[]);
                    line
                }
                None => std::mem::take(&mut rest),
            };
            if self.writer.is_full(line.len()) {
                sink(self.writer.take_batch(), report)?;
            }
            report.lines += 1;
            report.bytes += (before - rest.len()) as u64;
            // Line by line, so that the scan finds the bytes in the nearest cache.
            if std::str::from_utf8(line).is_ok() {
                self.line(line, report);
            } else {
                report.invalid_utf8 += 1;
                self.line(String::from_utf8_lossy(line).as_bytes(), report);
            }
        }
        Ok(())
    }

    /// Hands the remaining rows to `sink`.
    ///
    /// # Errors
    /// What `sink` returns.
    pub(crate) fn flush(&mut self, report: &mut IngestReport, sink: &mut Sink<'_>) -> Result<()> {
        if self.writer.len() > 0 { sink(self.writer.take_batch(), report) } else { Ok(()) }
    }

    /// A line of valid UTF-8.
    #[inline]
    fn line(&mut self, line: &[u8], report: &mut IngestReport) {
        const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
        let line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line);
        if line.len() > self.writer.options().limits.max_entry_bytes {
            reject_long_line(line, line.len() as u64, report);
            return;
        }
        if !matches!(line.first(), Some(b'{')) && line.trim_ascii().is_empty() {
            return;
        }
        self.writer.begin_row();
        let read = self.reader.read(line, &mut self.writer);
        report.invalid_utf8 += u64::from(self.reader.take_repaired());
        let rejection = match read {
            Ok(()) => match self.writer.finish_row(report) {
                Ok(()) => return,
                Err(rejection) => rejection,
            },
            Err(error) => {
                self.writer.abandon_row();
                match error {
                    ObjectError::Rejected(rejection) => rejection,
                    ObjectError::Syntax(e) => {
                        report.reject(RejectReason::InvalidJson, || {
                            format!("{} at byte {} of {}", e.what, e.at + 1, excerpt(line))
                        });
                        return;
                    }
                }
            }
        };
        report.reject(rejection.reason, || rejection.detail);
    }
}

fn reject_long_line(head: &[u8], len: u64, report: &mut IngestReport) {
    report.reject(RejectReason::EntryTooLong, || format!("{len} bytes: {}", excerpt(head)));
}

/// Reads all of `input` and hands its rows to `sink` in batches, the last ones too. Memory stays
/// within the entry limit and the batch target; a longer line is skipped unbuffered.
///
/// # Errors
/// [`Error::Io`] if `input` fails (`path` is named there), and what `sink` returns.
pub(crate) fn read_json_lines(
    mut input: impl Read,
    path: &Path,
    lines: &mut JsonLines,
    report: &mut IngestReport,
    sink: &mut Sink<'_>,
) -> Result<()> {
    let longest = lines.writer.options().limits.max_entry_bytes;
    let mut buffer: Vec<u8> = Vec::new();
    let mut filled = 0;
    // Whether the end of a line that is too long was not seen yet.
    let mut skipping = false;
    loop {
        buffer.resize(buffer.len().max(filled + READ_BYTES), 0);
        let read = read_some(&mut input, buffer.get_mut(filled..).unwrap_or(&mut []));
        let read = read.map_err(|e| Error::io("read", path, e))?;
        filled += read;
        let held = buffer.get(..filled).unwrap_or(&[]);
        let mut done = 0;
        if skipping {
            let line_end = memchr::memchr(b'\n', held).map(|i| i + 1);
            skipping = line_end.is_none();
            done = line_end.unwrap_or(filled);
            report.bytes += done as u64;
        }
        let rest = held.get(done..).unwrap_or(&[]);
        let whole =
            if read == 0 { rest.len() } else { memchr::memrchr(b'\n', rest).map_or(0, |i| i + 1) };
        let (chunk, rest) = rest.split_at_checked(whole).unwrap_or((&[], &[]));
        lines.parse_chunk(chunk, report, sink)?;
        done += whole;
        if read == 0 {
            return lines.flush(report, sink);
        }
        if !skipping && rest.len() > longest {
            report.lines += 1;
            report.reject(RejectReason::EntryTooLong, || {
                format!("above {longest} bytes: {}", excerpt(rest))
            });
            report.bytes += rest.len() as u64;
            done = filled;
            skipping = true;
        }
        buffer.copy_within(done..filled, 0);
        filled -= done;
    }
}

/// Reads once, again if a signal interrupted it.
fn read_some(input: &mut impl Read, buffer: &mut [u8]) -> std::io::Result<usize> {
    loop {
        match input.read(buffer) {
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

#[cfg(test)]
mod tests;
