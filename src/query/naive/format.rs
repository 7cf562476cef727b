//! Texts put together.

use super::Row;
use super::stats::{print_duration, print_float};
use super::text::put;
use super::value::{Exact, duration, exact, print_time};
use crate::query::ast::{
    FieldPattern, Format, FormatEncoding, FormatPart, Pack, PackFormat, SetStreamFields,
};

/// `format`.
pub(super) fn format(plan: &Format, row: &mut Row) {
    let mut out = String::new();
    for part in &plan.pattern.parts {
        match part {
            FormatPart::Literal(text) => out.push_str(text),
            FormatPart::Field { field: None, .. } => {}
            FormatPart::Field { field: Some(field), encoding } => {
                let value = row.get(field);
                out.push_str(&encoded(*encoding, value).unwrap_or_else(|| value.to_owned()));
            }
        }
    }
    put(row, &plan.result, &out, plan.keep);
}

/// The value in another form; `None` if it cannot be read.
fn encoded(encoding: FormatEncoding, value: &str) -> Option<String> {
    let each_byte = |f: &dyn Fn(u8) -> String| value.bytes().map(f).collect::<String>();
    Some(match encoding {
        FormatEncoding::Plain => value.to_owned(),
        FormatEncoding::Quoted => quoted(value),
        FormatEncoding::Upper => mapped(value, |c| c.to_uppercase().collect()),
        FormatEncoding::Lower => {
            mapped(&value.replace('\u{130}', "i"), |c| c.to_lowercase().collect())
        }
        FormatEncoding::Time => print_time(unix(value)?),
        FormatEncoding::Duration => print_duration(i128::from(value.parse::<i64>().ok()?)),
        FormatEncoding::DurationSeconds => {
            let Exact::Finite(nanos, exponent) = duration(value)? else { return None };
            print_float(Exact::Finite(nanos, exponent).to_f64() / 1e9)
        }
        FormatEncoding::Ipv4 => std::net::Ipv4Addr::from(value.parse::<u32>().ok()?).to_string(),
        FormatEncoding::HexEncode => each_byte(&|b| format!("{b:02X}")),
        FormatEncoding::HexDecode => {
            let pairs: Vec<&[u8]> = value.as_bytes().chunks(2).collect();
            let decoded = pairs.iter().flat_map(|pair| match hex(pair) {
                Some(byte) => vec![byte],
                None => pair.to_vec(),
            });
            String::from_utf8(decoded.collect()).expect("only what was encoded is decoded")
        }
        FormatEncoding::HexNumEncode => format!("{:016X}", value.parse::<u64>().ok()?),
        FormatEncoding::HexNumDecode => {
            let digits = value.bytes().all(|b| b.is_ascii_hexdigit()) && value.len() <= 16;
            u64::from_str_radix(value, 16).ok().filter(|_| digits)?.to_string()
        }
        FormatEncoding::Base64Encode => base64(value.as_bytes()),
        FormatEncoding::Base64Decode => {
            String::from_utf8(base64_bytes(value)?).expect("only what was encoded is decoded")
        }
        FormatEncoding::UrlEncode => each_byte(&|b| match char::from(b) {
            ' ' => "+".to_owned(),
            c if c.is_ascii_alphanumeric() || "-._".contains(c) => c.to_string(),
            _ => format!("%{b:02X}"),
        }),
        FormatEncoding::UrlDecode => {
            let (bytes, mut out, mut at) = (value.as_bytes(), Vec::new(), 0);
            while at < bytes.len() {
                let code = bytes.get(at + 1..at + 3).and_then(hex);
                match (bytes[at], code) {
                    (b'%', Some(byte)) => {
                        out.push(byte);
                        at += 2;
                    }
                    (b'+', _) => out.push(b' '),
                    (b, _) => out.push(b),
                }
                at += 1;
            }
            String::from_utf8(out).expect("only what was encoded is decoded")
        }
    })
}

fn hex(pair: &[u8]) -> Option<u8> {
    let text = std::str::from_utf8(pair).ok()?;
    let digits = text.len() == 2 && text.bytes().all(|b| b.is_ascii_hexdigit());
    u8::from_str_radix(text, 16).ok().filter(|_| digits)
}

/// Character by character, where one becomes one.
fn mapped(value: &str, map: impl Fn(char) -> Vec<char>) -> String {
    let one = |c: char| match map(c)[..] {
        [other] => other,
        _ => c,
    };
    value.chars().map(one).collect()
}

/// Seconds, or milli-, micro- or nanoseconds by their size, as nanoseconds.
fn unix(text: &str) -> Option<i64> {
    let plain = text.bytes().all(|b| b.is_ascii_digit() || b"+-._eE".contains(&b));
    let Exact::Finite(mantissa, exponent) = exact(text).filter(|_| plain)? else { return None };
    let zeros = 10i128.checked_pow(u32::try_from(exponent).unwrap_or(0))?;
    let mantissa = mantissa.checked_mul(zeros)?;
    let ten = 10i128.checked_pow(exponent.min(0).unsigned_abs())?;
    let (mut scale, mut most) = (1_000_000_000, ten << 31);
    while mantissa.abs() >= most && scale > 1 {
        scale /= 1_000;
        most *= 1_000;
    }
    i64::try_from(mantissa.checked_mul(scale)?.div_euclid(ten)).ok()
}

fn base64_alphabet() -> Vec<char> {
    ('A'..='Z').chain('a'..='z').chain('0'..='9').chain(['+', '/']).collect()
}

/// The bytes that are written so; `None` if none are.
fn base64_bytes(text: &str) -> Option<Vec<u8>> {
    let alphabet = base64_alphabet();
    let digit = |c: char| alphabet.iter().position(|a| *a == c);
    let digits: Vec<usize> =
        text.trim_end_matches('=').chars().map(digit).collect::<Option<_>>()?;
    let bits: String = digits.iter().map(|d| format!("{d:06b}")).collect();
    let whole = bits.as_bytes().chunks_exact(8).map(|b| std::str::from_utf8(b).unwrap());
    let bytes: Vec<u8> = whole.map(|b| u8::from_str_radix(b, 2).unwrap()).collect();
    (text.len().is_multiple_of(4) && base64(&bytes) == text).then_some(bytes)
}

fn base64(bytes: &[u8]) -> String {
    let alphabet = base64_alphabet();
    let mut bits: String = bytes.iter().map(|b| format!("{b:08b}")).collect();
    while !bits.len().is_multiple_of(6) {
        bits.push('0');
    }
    let digits = bits.as_bytes().chunks(6).map(|six| std::str::from_utf8(six).unwrap());
    let mut out: String =
        digits.map(|six| alphabet[usize::from_str_radix(six, 2).unwrap()]).collect();
    while !out.len().is_multiple_of(4) {
        out.push('=');
    }
    out
}

/// A JSON string in which `<` and `'` are escaped too.
fn quoted(value: &str) -> String {
    let json = serde_json::to_string(value).unwrap();
    json.replace('<', "\\u003c").replace('\'', "\\u0027")
}

/// `pack_json` and `pack_logfmt`.
pub(super) fn pack(plan: &Pack, row: &mut Row) {
    // The order of members is not fixed; objects are compared as such, lists of pairs sorted.
    let picked = |name: &&String| plan.fields.iter().any(|p| p.matches(name));
    let members = row.fields.iter().filter(|(name, _)| picked(name));
    let text = match plan.format {
        PackFormat::Json => {
            let each = |(name, value): (&String, &String)| {
                let json = |t: &str| serde_json::to_string(t).unwrap();
                format!("{}:{}", json(name), json(value))
            };
            format!("{{{}}}", members.map(each).collect::<Vec<_>>().join(","))
        }
        PackFormat::Logfmt => {
            let is_odd = |c: char| c <= ' ' || c == '"' || c == '\\';
            let each = |(name, value): (&String, &String)| match value.contains(is_odd) {
                true => format!("{name}={}", quoted(value)),
                false => format!("{name}={value}"),
            };
            members.map(each).collect::<Vec<_>>().join(" ")
        }
    };
    row.set(&plan.result, &text);
}

/// `set_stream_fields`.
pub(super) fn set_stream_fields(plan: &SetStreamFields, row: &mut Row) {
    let labels = row.fields.iter().filter(|(name, _)| {
        plan.fields.iter().any(|p| match p {
            FieldPattern::Name(n) => n == *name,
            FieldPattern::Prefix(p) => name.starts_with(p.as_str()),
        })
    });
    let escaped = |v: &String| v.replace('\\', "\\\\").replace('"', "\\\"");
    let labels: Vec<String> = labels.map(|(k, v)| format!("{k}=\"{}\"", escaped(v))).collect();
    let stream = format!("{{{}}}", labels.join(","));
    row.set("_stream", &stream);
    row.set("_stream_id", "");
}
