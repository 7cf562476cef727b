//! Takes the patterns of `extract`, `format` and `pattern_match` apart.

use super::super::ast::{
    ExtractPart, ExtractPattern, FormatEncoding, FormatPart, FormatPattern, MatchAnchor, MatchPart,
    MatchPattern,
};
use super::super::fault::Fault;
use super::super::names;
use super::{Compound, Parsed};

/// Names in front of `:` in a placeholder of `format`.
const ENCODINGS: &[(&str, FormatEncoding)] = &[
    ("q", FormatEncoding::Quoted),
    ("uc", FormatEncoding::Upper),
    ("lc", FormatEncoding::Lower),
    ("time", FormatEncoding::Time),
    ("duration", FormatEncoding::Duration),
    ("duration_seconds", FormatEncoding::DurationSeconds),
    ("ipv4", FormatEncoding::Ipv4),
    ("hexencode", FormatEncoding::HexEncode),
    ("hexdecode", FormatEncoding::HexDecode),
    ("hexnumencode", FormatEncoding::HexNumEncode),
    ("hexnumdecode", FormatEncoding::HexNumDecode),
    ("base64encode", FormatEncoding::Base64Encode),
    ("base64decode", FormatEncoding::Base64Decode),
    ("urlencode", FormatEncoding::UrlEncode),
    ("urldecode", FormatEncoding::UrlDecode),
];

/// A piece of a pattern: text, or what stands between `<` and `>`.
enum Piece<'a> {
    Text(String),
    Placeholder(&'a str),
}

/// Splits at `<...>`; `offset` is where the pattern begins, for errors.
fn pieces(source: &str, offset: usize) -> Parsed<Vec<Piece<'_>>> {
    let mut pieces = Vec::new();
    let mut rest = source;
    while let Some((text, behind)) = rest.split_once('<') {
        let Some((placeholder, after)) = behind.split_once('>') else {
            return Err(Fault::new(offset, "a `<` of the pattern is never closed")
                .hint("write &lt; for a literal `<`"));
        };
        if !text.is_empty() {
            pieces.push(Piece::Text(decode_entities(text)));
        }
        pieces.push(Piece::Placeholder(placeholder));
        rest = after;
    }
    if !rest.is_empty() {
        pieces.push(Piece::Text(decode_entities(rest)));
    }
    Ok(pieces)
}

fn decode_entities(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        let (before, entity) = rest.split_at(at);
        out.push_str(before);
        let known =
            [("&lt;", '<'), ("&gt;", '>'), ("&amp;", '&'), ("&quot;", '"'), ("&#39;", '\'')];
        let found = known.iter().find(|(name, _)| entity.starts_with(name));
        let (len, decoded) = found.map_or((1, '&'), |(name, c)| (name.len(), *c));
        out.push(decoded);
        rest = entity.get(len..).unwrap_or("");
    }
    out.push_str(rest);
    out
}

/// The field of a placeholder; `None` where the text is dropped.
fn target(name: &str, offset: usize) -> Parsed<Option<String>> {
    let name = name.trim();
    match name {
        "" | "_" | "*" => Ok(None),
        _ if name.ends_with('*') => {
            Err(Fault::new(offset, format!("wildcard in the placeholder <{name}>")))
        }
        _ => Ok(Some(name.to_owned())),
    }
}

/// The pattern of `extract`.
pub(super) fn extract_pattern(word: Compound) -> Parsed<ExtractPattern> {
    let Compound { text: source, start, .. } = word;
    let mut parts = Vec::new();
    for piece in pieces(&source, start)? {
        let part = match piece {
            Piece::Text(text) => ExtractPart::Literal(text),
            Piece::Placeholder(inner) => {
                let (plain, name) = match inner.split_once(':') {
                    Some((option, name)) if option.trim() == "plain" => (true, name),
                    _ => (false, inner),
                };
                ExtractPart::Placeholder { field: target(name, start)?, plain }
            }
        };
        let touching = matches!(
            (parts.last(), &part),
            (Some(ExtractPart::Placeholder { .. }), ExtractPart::Placeholder { .. })
        );
        if touching {
            return Err(Fault::new(start, "two placeholders need some text between them"));
        }
        parts.push(part);
    }
    let named =
        |part: &ExtractPart| matches!(part, ExtractPart::Placeholder { field: Some(_), .. });
    if !parts.iter().any(named) {
        return Err(
            Fault::new(start, "the pattern has no named placeholder").hint("write one as <name>")
        );
    }
    Ok(ExtractPattern { source, parts })
}

/// The pattern of `format`.
pub(super) fn format_pattern(word: Compound) -> Parsed<FormatPattern> {
    let Compound { text: source, start, .. } = word;
    let mut parts = Vec::new();
    for piece in pieces(&source, start)? {
        parts.push(match piece {
            Piece::Text(text) => FormatPart::Literal(text),
            Piece::Placeholder(inner) => {
                let (encoding, name) = encoding(inner, start)?;
                FormatPart::Field { field: target(name, start)?, encoding }
            }
        });
    }
    Ok(FormatPattern { source, parts })
}

fn encoding(placeholder: &str, start: usize) -> Parsed<(FormatEncoding, &str)> {
    let Some((option, name)) = placeholder.split_once(':') else {
        return Ok((FormatEncoding::Plain, placeholder));
    };
    let option = option.trim();
    if let Some((_, encoding)) = ENCODINGS.iter().find(|(known, _)| *known == option) {
        return Ok((*encoding, name));
    }
    let fault = Fault::new(start, format!("unknown option `{option}` in <{placeholder}>"));
    let known: Vec<&str> = ENCODINGS.iter().map(|(name, _)| *name).collect();
    Err(match names::nearest(&known, option) {
        Some(meant) => fault.hint(format!("did you mean `{meant}`?")),
        None => fault.hint(format!("the options are {}", known.join(", "))),
    })
}

/// The pattern of `pattern_match`, where anything but the known placeholders is text.
pub(super) fn match_pattern(source: String, anchor: MatchAnchor) -> MatchPattern {
    let mut parts = Vec::new();
    let mut literal = String::new();
    let mut rest = source.as_str();
    while let Some(at) = rest.find('<') {
        let (before, open) = rest.split_at(at);
        literal.push_str(before);
        if let Some(part) =
            MatchPart::PLACEHOLDERS.into_iter().find(|part| open.starts_with(part.text()))
        {
            if !literal.is_empty() {
                parts.push(MatchPart::Literal(std::mem::take(&mut literal)));
            }
            rest = open.get(part.text().len()..).unwrap_or("");
            parts.push(part);
        } else {
            literal.push('<');
            rest = open.get(1..).unwrap_or("");
        }
    }
    literal.push_str(rest);
    if !literal.is_empty() {
        parts.push(MatchPart::Literal(literal));
    }
    MatchPattern { source, anchor, parts }
}
