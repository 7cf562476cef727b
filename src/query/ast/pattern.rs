//! The little pattern languages of `extract`, `format` and `pattern_match`, taken apart.

/// The pattern of `extract`: literals with placeholders between them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExtractPattern {
    /// As written, without quotes.
    pub source: String,
    /// Its parts; two placeholders never stand side by side, and at least one of them is named.
    pub parts: Vec<ExtractPart>,
}

/// A part of an [`ExtractPattern`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExtractPart {
    /// Text that must be there; entities are decoded. Never empty.
    Literal(String),
    /// Text up to the next literal, or the rest.
    Placeholder {
        /// The field that takes the text; `None` for `<_>` and `<*>`.
        field: Option<String>,
        /// `<plain:f>`: quoted text is taken as it stands.
        plain: bool,
    },
}

/// The pattern of `format`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FormatPattern {
    /// As written, without quotes.
    pub source: String,
    /// Its parts.
    pub parts: Vec<FormatPart>,
}

/// A part of a [`FormatPattern`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FormatPart {
    /// Text; entities are decoded. Never empty.
    Literal(String),
    /// The value of a field.
    Field {
        /// The field; `None` for `<_>` and `<*>`, which print nothing.
        field: Option<String>,
        /// How it is written.
        encoding: FormatEncoding,
    },
}

/// How `format` writes a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FormatEncoding {
    /// `<f>`: as it is.
    Plain,
    /// `<q:f>`: a JSON string.
    Quoted,
    /// `<uc:f>`: upper case.
    Upper,
    /// `<lc:f>`: lower case.
    Lower,
    /// `<time:f>`: Unix time to RFC 3339.
    Time,
    /// `<duration:f>`: nanoseconds to a duration.
    Duration,
    /// `<duration_seconds:f>`: a duration to seconds.
    DurationSeconds,
    /// `<ipv4:f>`: a number to a dotted quad.
    Ipv4,
    /// `<hexencode:f>`
    HexEncode,
    /// `<hexdecode:f>`
    HexDecode,
    /// `<hexnumencode:f>`: an integer to 16 hex digits.
    HexNumEncode,
    /// `<hexnumdecode:f>`
    HexNumDecode,
    /// `<base64encode:f>`
    Base64Encode,
    /// `<base64decode:f>`
    Base64Decode,
    /// `<urlencode:f>`
    UrlEncode,
    /// `<urldecode:f>`
    UrlDecode,
}

/// The pattern of `pattern_match` and its anchored forms.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MatchPattern {
    /// As written, without quotes.
    pub source: String,
    /// Where it has to match.
    pub anchor: MatchAnchor,
    /// Its parts.
    pub parts: Vec<MatchPart>,
}

/// Where a [`MatchPattern`] has to match.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MatchAnchor {
    /// `pattern_match`: anywhere.
    Anywhere,
    /// `pattern_match_full`: the whole value.
    Full,
    /// `pattern_match_prefix`: at the start.
    Start,
    /// `pattern_match_suffix`: at the end.
    End,
}

/// A part of a [`MatchPattern`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MatchPart {
    /// Text that must be there; anything in `<..>` that is no placeholder is text. Never empty.
    Literal(String),
    /// `<N>`
    Number,
    /// `<UUID>`
    Uuid,
    /// `<IP4>`
    Ip4,
    /// `<TIME>`
    Time,
    /// `<DATE>`
    Date,
    /// `<DATETIME>`
    DateTime,
    /// `<W>`
    Word,
}

impl MatchPart {
    /// All parts but literals.
    pub(crate) const PLACEHOLDERS: [MatchPart; 7] = [
        MatchPart::Number,
        MatchPart::Uuid,
        MatchPart::Ip4,
        MatchPart::Time,
        MatchPart::Date,
        MatchPart::DateTime,
        MatchPart::Word,
    ];

    /// How it is written in a pattern.
    pub(crate) fn text(&self) -> &str {
        match self {
            MatchPart::Literal(text) => text,
            MatchPart::Number => "<N>",
            MatchPart::Uuid => "<UUID>",
            MatchPart::Ip4 => "<IP4>",
            MatchPart::Time => "<TIME>",
            MatchPart::Date => "<DATE>",
            MatchPart::DateTime => "<DATETIME>",
            MatchPart::Word => "<W>",
        }
    }
}
