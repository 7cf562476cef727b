//! One JSON object to the fields of a row.
//!
//! Members whose value is a string without escapes, a number or a literal are read in place.
//! Nested objects are flattened first and given to the writer after that, since an object that
//! turns out to be too deep, or to have too long a name, is kept as text as a whole.

use std::ops::Range;

use super::scan::{
    SyntaxError, after_colon, error, literal_end, number_end, scalar_end, skip_space, string_end,
    unescape, value_end,
};
use crate::ingest::names::{START, Slot};
use crate::ingest::report::RejectReason;
use crate::ingest::row_writer::{Rejection, RowWriter};
use crate::record::MAX_NESTING;

/// Why an object became no row.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ObjectError {
    Syntax(SyntaxError),
    Rejected(Rejection),
}

impl From<SyntaxError> for ObjectError {
    fn from(e: SyntaxError) -> ObjectError {
        ObjectError::Syntax(e)
    }
}

impl From<Rejection> for ObjectError {
    fn from(r: Rejection) -> ObjectError {
        ObjectError::Rejected(r)
    }
}

/// Reads objects; keeps its buffers from one to the next.
#[derive(Debug, Default)]
pub(crate) struct ObjectReader {
    /// Decoded names and values of strings with escapes.
    scratch: Vec<u8>,
    nested: Nested,
    /// A lone surrogate was replaced.
    repaired: bool,
}

/// The flattened members of a nested object.
#[derive(Debug, Default)]
struct Nested {
    /// Names one after the other.
    names: String,
    /// Decoded values one after the other.
    values: Vec<u8>,
    members: Vec<Member>,
}

#[derive(Debug)]
struct Member {
    name: Range<usize>,
    value: Value,
}

#[derive(Debug)]
enum Value {
    /// A range of the line.
    Source(Range<usize>),
    /// A range of the decoded values.
    Decoded(Range<usize>),
}

impl ObjectReader {
    /// Whether a lone surrogate was replaced since the last call.
    pub(crate) fn take_repaired(&mut self) -> bool {
        std::mem::take(&mut self.repaired)
    }

    /// Gives all fields of the object that is the whole of `line` to the open row of `writer`.
    pub(crate) fn read(&mut self, line: &[u8], writer: &mut RowWriter) -> Result<(), ObjectError> {
        let mut at = skip_space(line, 0);
        if line.get(at) != Some(&b'{') {
            return Err(not_an_object(line, at));
        }
        at = skip_space(line, at + 1);
        if line.get(at) == Some(&b'}') {
            return Ok(end_of_line(line, at + 1)?);
        }
        let mut previous = START;
        loop {
            if line.get(at) != Some(&b'"') {
                return Ok(error(at, "expected a member name")?);
            }
            let (slot, name_end) = self.name(line, at + 1, previous, writer)?;
            previous = slot;
            let value = match line.get(name_end..name_end + 2) {
                Some([b':', next]) if *next > b' ' => name_end + 1,
                _ => after_colon(line, name_end)?,
            };
            at = self.value(line, value, slot, writer)?;
            match line.get(at..at + 2) {
                Some(b",\"") => at += 1,
                _ => {
                    at = skip_space(line, at);
                    match line.get(at) {
                        Some(b',') => at = skip_space(line, at + 1),
                        Some(b'}') => return Ok(end_of_line(line, at + 1)?),
                        Some(_) => return Ok(error(at, "expected `,` or `}`")?),
                        None => return Ok(error(at, "object without end")?),
                    }
                }
            }
        }
    }

    /// The slot of the name whose first byte is at `at`, and the offset after its closing quote.
    #[inline]
    fn name(
        &mut self,
        line: &[u8],
        at: usize,
        previous: Slot,
        writer: &mut RowWriter,
    ) -> Result<(Slot, usize), ObjectError> {
        if let Some(rest) = line.get(at..)
            && let Some((slot, len)) = writer.names().predict(previous, rest)
        {
            return Ok((slot, at + len));
        }
        let (end, escaped) = string_end(line, at)?;
        let raw = line.get(at..end).unwrap_or(&[]);
        let name = if escaped {
            self.scratch.clear();
            self.repaired |= unescape(raw, &mut self.scratch);
            self.scratch.as_slice()
        } else {
            raw
        };
        let name = std::str::from_utf8(name).unwrap_or("");
        Ok((writer.slot(previous, name)?, end + 1))
    }

    /// Gives the value at `at` to the writer; the offset after it.
    #[inline]
    fn value(
        &mut self,
        line: &[u8],
        at: usize,
        slot: Slot,
        writer: &mut RowWriter,
    ) -> Result<usize, ObjectError> {
        let end = match line.get(at) {
            Some(b'"') => {
                let text = line.get(at + 1..).unwrap_or(&[]);
                if let Some(len) = writer.assign_repeated(slot, text) {
                    return Ok(at + 1 + len + 1);
                }
                let (end, escaped) = string_end(line, at + 1)?;
                let raw = line.get(at + 1..end).unwrap_or(&[]);
                if escaped {
                    self.scratch.clear();
                    self.repaired |= unescape(raw, &mut self.scratch);
                    writer.assign_string(slot, &self.scratch, false);
                } else {
                    writer.assign_string(slot, raw, true);
                }
                return Ok(end + 1);
            }
            Some(b'-' | b'0'..=b'9') => number_end(line, at)?,
            Some(b'n') => {
                let end = literal_end(line, at, b"null")?;
                writer.assign(slot, b"");
                return Ok(end);
            }
            Some(b'{') => return self.nested(line, at, slot, writer),
            _ => value_end(line, at)?,
        };
        writer.assign(slot, line.get(at..end).unwrap_or(&[]));
        Ok(end)
    }

    /// Flattens the object at `at` and gives its members to the writer; the offset after it.
    fn nested(
        &mut self,
        line: &[u8],
        at: usize,
        slot: Slot,
        writer: &mut RowWriter,
    ) -> Result<usize, ObjectError> {
        let nested = &mut self.nested;
        nested.names.clear();
        nested.values.clear();
        nested.members.clear();
        let prefix = writer.names().get(slot).map_or("", |n| &n.text);
        nested.names.push_str(prefix);
        let prefix = 0..nested.names.len();
        let mut flattener = Flattener {
            line,
            nested,
            max_name: writer.options().limits.max_name_bytes,
            repaired: false,
        };
        let end = flattener.object(at, prefix.clone(), 2)?;
        self.repaired |= flattener.repaired;
        let mut previous = slot;
        for member in &self.nested.members {
            let value = match &member.value {
                Value::Source(range) => line.get(range.clone()),
                Value::Decoded(range) => self.nested.values.get(range.clone()),
            };
            if member.name == prefix {
                writer.assign(slot, value.unwrap_or(&[]));
                continue;
            }
            let name = self.nested.names.get(member.name.clone()).unwrap_or("");
            previous = writer.slot(previous, name)?;
            writer.assign(previous, value.unwrap_or(&[]));
        }
        Ok(end)
    }
}

struct Flattener<'a> {
    line: &'a [u8],
    nested: &'a mut Nested,
    max_name: usize,
    repaired: bool,
}

impl Flattener<'_> {
    /// Flattens the object at `at` whose own name is `prefix` and whose members have names of
    /// `level` components; the offset after it. Kept as text where that is too deep or a name
    /// becomes too long; an empty one is an empty value.
    fn object(
        &mut self,
        at: usize,
        prefix: Range<usize>,
        level: usize,
    ) -> Result<usize, SyntaxError> {
        let (members, names) = (self.nested.members.len(), self.nested.names.len());
        let flat = if level > MAX_NESTING { None } else { self.members(at, &prefix, level)? };
        if let Some(end) = flat {
            if self.nested.members.len() == members {
                self.push(prefix, Value::Source(0..0));
            }
            return Ok(end);
        }
        self.nested.members.truncate(members);
        self.nested.names.truncate(names);
        let end = value_end(self.line, at)?;
        let first = skip_space(self.line, at + 1);
        let empty = self.line.get(first) == Some(&b'}');
        self.push(prefix, Value::Source(if empty { 0..0 } else { at..end }));
        Ok(end)
    }

    /// Flattens the members of the object at `at`; `None` if a name is too long.
    fn members(
        &mut self,
        at: usize,
        prefix: &Range<usize>,
        level: usize,
    ) -> Result<Option<usize>, SyntaxError> {
        let line = self.line;
        let mut at = skip_space(line, at + 1);
        if line.get(at) == Some(&b'}') {
            return Ok(Some(at + 1));
        }
        loop {
            if line.get(at) != Some(&b'"') {
                return error(at, "expected a member name");
            }
            let (end, escaped) = string_end(line, at + 1)?;
            let name = self.name(prefix, line.get(at + 1..end).unwrap_or(&[]), escaped);
            if name.len() > self.max_name {
                return Ok(None);
            }
            at = self.value(after_colon(line, end + 1)?, name, level)?;
            at = skip_space(line, at);
            match line.get(at) {
                Some(b',') => at = skip_space(line, at + 1),
                Some(b'}') => return Ok(Some(at + 1)),
                Some(_) => return error(at, "expected `,` or `}`"),
                None => return error(at, "object without end"),
            }
        }
    }

    /// Appends `prefix.name` to the names.
    fn name(&mut self, prefix: &Range<usize>, raw: &[u8], escaped: bool) -> Range<usize> {
        let start = self.nested.names.len();
        self.nested.names.extend_from_within(prefix.clone());
        self.nested.names.push('.');
        if escaped {
            let mut decoded = Vec::new();
            self.repaired |= unescape(raw, &mut decoded);
            self.nested.names.push_str(&String::from_utf8_lossy(&decoded));
        } else {
            self.nested.names.push_str(std::str::from_utf8(raw).unwrap_or(""));
        }
        start..self.nested.names.len()
    }

    fn value(&mut self, at: usize, name: Range<usize>, level: usize) -> Result<usize, SyntaxError> {
        let line = self.line;
        match line.get(at) {
            Some(b'{') => self.object(at, name, level + 1),
            Some(b'"') => {
                let (end, escaped) = string_end(line, at + 1)?;
                if escaped {
                    let start = self.nested.values.len();
                    let raw = line.get(at + 1..end).unwrap_or(&[]);
                    self.repaired |= unescape(raw, &mut self.nested.values);
                    self.push(name, Value::Decoded(start..self.nested.values.len()));
                } else {
                    self.push(name, Value::Source(at + 1..end));
                }
                Ok(end + 1)
            }
            Some(b'[') => {
                let end = value_end(line, at)?;
                self.push(name, Value::Source(at..end));
                Ok(end)
            }
            first => {
                let end = scalar_end(line, at)?;
                let null = first == Some(&b'n');
                self.push(name, Value::Source(if null { 0..0 } else { at..end }));
                Ok(end)
            }
        }
    }

    fn push(&mut self, name: Range<usize>, value: Value) {
        self.nested.members.push(Member { name, value });
    }
}

/// Checks that only white space follows the object that ends at `at`.
fn end_of_line(line: &[u8], at: usize) -> Result<(), SyntaxError> {
    let end = skip_space(line, at);
    if end == line.len() { Ok(()) } else { error(end, "text after the object") }
}

/// Tells a line of other JSON from one that is none.
fn not_an_object(line: &[u8], at: usize) -> ObjectError {
    match value_end(line, at).and_then(|end| end_of_line(line, end)) {
        Ok(()) => ObjectError::Rejected(Rejection::new(
            RejectReason::NotAnObject,
            crate::ingest::row_writer::excerpt(line),
        )),
        Err(e) => ObjectError::Syntax(e),
    }
}
