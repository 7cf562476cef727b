//! `format`: text out of fields.

use std::net::Ipv4Addr;
use std::sync::Arc;

use super::transform::{lossy, merge};
use super::{Condition, RowPipe, Sink, selected};
use crate::error::Result;
use crate::query::ast::{Format, FormatEncoding, FormatPart, KeepMode};
use crate::query::batch::Batch;
use crate::query::column::Column;
use crate::query::context::{ExecContext, Flow};
use crate::query::json;
use crate::record::{TextVec, parse_duration, parse_unix, write_duration, write_f64};

/// `format`.
pub(crate) struct FormatPipe {
    condition: Condition,
    parts: Vec<FormatPart>,
    result: Arc<str>,
    keep: KeepMode,
}

impl FormatPipe {
    /// Compiles the pipe.
    pub(crate) fn new(plan: &Format, ctx: &ExecContext<'_>) -> Result<FormatPipe> {
        Ok(FormatPipe {
            condition: Condition::compile(plan.condition.as_ref(), ctx)?,
            parts: plan.pattern.parts.clone(),
            result: Arc::from(plan.result.as_str()),
            keep: plan.keep,
        })
    }

    /// The text, if it is the same for all rows.
    fn literal(&self) -> Option<Vec<u8>> {
        let mut text = Vec::new();
        for part in &self.parts {
            match part {
                FormatPart::Literal(literal) => text.extend_from_slice(literal.as_bytes()),
                FormatPart::Field { field: None, .. } => {}
                FormatPart::Field { .. } => return None,
            }
        }
        Some(text)
    }
}

impl RowPipe for FormatPipe {
    fn apply(&self, ctx: &ExecContext<'_>, mut batch: Batch, out: &mut Sink<'_>) -> Result<Flow> {
        let selection = self.condition.select(&batch)?;
        let absent = Column::absent();
        let columns: Vec<&Column> = self
            .parts
            .iter()
            .map(|part| match part {
                FormatPart::Field { field: Some(field), .. } => {
                    batch.column(field).unwrap_or(&absent)
                }
                _ => &absent,
            })
            .collect();
        let replaces = selection.is_none() && self.keep == KeepMode::Overwrite;
        if let Some(text) = self.literal().filter(|_| replaces) {
            batch.set_column(self.result.clone(), Column::constant(&text));
            return out(batch);
        }
        let mut values = TextVec::with_capacity(batch.rows(), 0);
        let mut scratch = Vec::new();
        for row in 0..batch.rows() {
            if selected(selection.as_ref(), row) {
                let text = values.open();
                for (part, column) in self.parts.iter().zip(&columns) {
                    match part {
                        FormatPart::Literal(literal) => text.extend_from_slice(literal.as_bytes()),
                        FormatPart::Field { field: None, .. } => {}
                        FormatPart::Field { encoding, .. } => {
                            encode(*encoding, column.value(row, &mut scratch), text);
                        }
                    }
                }
            }
            values.close();
            ctx.check_texts("format", row, values.bytes().len())?;
        }
        let old = batch.column(&self.result);
        let new = Column::compact(values);
        let merged = merge(old, new, batch.rows(), selection.as_ref(), self.keep);
        batch.set_column(self.result.clone(), merged);
        out(batch)
    }
}

/// Appends a value in an encoding; what cannot be read as the encoding asks is copied.
fn encode(encoding: FormatEncoding, value: &[u8], out: &mut Vec<u8>) {
    let done = match encoding {
        FormatEncoding::Plain => None,
        FormatEncoding::Quoted => {
            json::push_quoted(out, value, true);
            Some(())
        }
        FormatEncoding::Upper => {
            push_mapped(out, value, |c| single(c, c.to_uppercase()));
            Some(())
        }
        FormatEncoding::Lower => {
            push_mapped(
                out,
                value,
                |c| if c == '\u{130}' { 'i' } else { single(c, c.to_lowercase()) },
            );
            Some(())
        }
        FormatEncoding::Time => parse_unix(value).map(|time| time.write_to(out)),
        FormatEncoding::Duration => number::<i64>(value).map(|nanos| write_duration(out, nanos)),
        FormatEncoding::DurationSeconds => {
            parse_duration(value).map(|nanos| write_f64(out, nanos.to_f64() / 1e9))
        }
        FormatEncoding::Ipv4 => number::<u32>(value).map(|n| {
            out.extend_from_slice(Ipv4Addr::from_bits(n).to_string().as_bytes());
        }),
        FormatEncoding::HexEncode => {
            value.iter().for_each(|b| push_hex(out, *b));
            Some(())
        }
        FormatEncoding::HexDecode => {
            hex_decode(value, out);
            Some(())
        }
        FormatEncoding::HexNumEncode => {
            number::<u64>(value).map(|n| out.extend_from_slice(format!("{n:016X}").as_bytes()))
        }
        FormatEncoding::HexNumDecode => {
            hex_number(value).map(|n| out.extend_from_slice(n.to_string().as_bytes()))
        }
        FormatEncoding::Base64Encode => {
            base64_encode(value, out);
            Some(())
        }
        FormatEncoding::Base64Decode => base64_decode(value).map(|v| out.extend_from_slice(&v)),
        FormatEncoding::UrlEncode => {
            url_encode(value, out);
            Some(())
        }
        FormatEncoding::UrlDecode => {
            url_decode(value, out);
            Some(())
        }
    };
    if done.is_none() {
        out.extend_from_slice(value);
    }
}

fn number<T: std::str::FromStr>(value: &[u8]) -> Option<T> {
    std::str::from_utf8(value).ok()?.parse().ok()
}

/// The mapped character where the mapping gives just one.
fn single(c: char, mut mapped: impl Iterator<Item = char>) -> char {
    match (mapped.next(), mapped.next()) {
        (Some(one), None) => one,
        _ => c,
    }
}

fn push_mapped(out: &mut Vec<u8>, value: &[u8], map: impl Fn(char) -> char) {
    for c in lossy(value).chars() {
        out.extend_from_slice(map(c).encode_utf8(&mut [0; 4]).as_bytes());
    }
}

const HEX: &[u8; 16] = b"0123456789ABCDEF";

fn push_hex(out: &mut Vec<u8>, b: u8) {
    for nibble in [b >> 4, b & 15] {
        out.push(HEX.get(usize::from(nibble)).copied().unwrap_or(b'0'));
    }
}

fn hex_digit(b: u8) -> Option<u8> {
    char::from(b).to_digit(16).and_then(|d| u8::try_from(d).ok())
}

fn hex_pair(pair: &[u8]) -> Option<u8> {
    match pair {
        [high, low] => Some(hex_digit(*high)? << 4 | hex_digit(*low)?),
        _ => None,
    }
}

fn hex_decode(value: &[u8], out: &mut Vec<u8>) {
    for pair in value.chunks(2) {
        match hex_pair(pair) {
            Some(b) => out.push(b),
            None => out.extend_from_slice(pair),
        }
    }
}

fn hex_number(value: &[u8]) -> Option<u64> {
    if value.is_empty() || value.len() > 16 {
        return None;
    }
    value.iter().try_fold(0u64, |n, b| Some(n << 4 | u64::from(hex_digit(*b)?)))
}

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

fn base64_encode(value: &[u8], out: &mut Vec<u8>) {
    for chunk in value.chunks(3) {
        let at = |i: usize| u32::from(chunk.get(i).copied().unwrap_or(0));
        let bits = at(0) << 16 | at(1) << 8 | at(2);
        for i in 0..4 {
            let index = (bits >> (18 - 6 * i) & 63) as usize;
            let digit = BASE64.get(index).copied().unwrap_or(b'=');
            out.push(if i <= chunk.len() { digit } else { b'=' });
        }
    }
}

/// Standard alphabet with padding.
fn base64_decode(value: &[u8]) -> Option<Vec<u8>> {
    if !value.len().is_multiple_of(4) {
        return None;
    }
    let mut out = Vec::with_capacity(value.len() / 4 * 3);
    let mut chunks = value.chunks(4).peekable();
    while let Some(chunk) = chunks.next() {
        let padding = chunk.iter().rev().take_while(|b| **b == b'=').count();
        if padding > 2 || padding > 0 && chunks.peek().is_some() {
            return None;
        }
        let digits = chunk.get(..4 - padding)?;
        let mut bits = 0u32;
        for b in digits {
            let digit = BASE64.iter().position(|d| d == b)?;
            bits = bits << 6 | u32::try_from(digit).ok()?;
        }
        bits <<= 6 * padding;
        out.extend_from_slice(
            bits.to_le_bytes()
                .get(..3)?
                .iter()
                .rev()
                .copied()
                .collect::<Vec<u8>>()
                .get(..3 - padding)?,
        );
    }
    Some(out)
}

fn url_encode(value: &[u8], out: &mut Vec<u8>) {
    for b in value {
        match b {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' => out.push(*b),
            b' ' => out.push(b'+'),
            b => {
                out.push(b'%');
                push_hex(out, *b);
            }
        }
    }
}

fn url_decode(value: &[u8], out: &mut Vec<u8>) {
    let mut rest = value;
    while let Some((b, tail)) = rest.split_first() {
        rest = tail;
        match b {
            b'+' => out.push(b' '),
            b'%' => match tail.get(..2).and_then(hex_pair) {
                Some(decoded) => {
                    out.push(decoded);
                    rest = tail.get(2..).unwrap_or(&[]);
                }
                None => out.push(b'%'),
            },
            b => out.push(*b),
        }
    }
}
