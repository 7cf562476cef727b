//! Filters as text.

use std::fmt::{self, Display, Formatter};

use super::super::ast::{
    CompareOp, DayRange, Duration, FieldOp, FieldPattern, Filter, LabelFilter, LabelOp,
    MESSAGE_FIELD, MatchAnchor, MatchPattern, Predicate, RangeBound, StreamIds, StreamSelector,
    TimeFilter, TimeForm, TimePoint, ValueSet, WeekRange, Weekday,
};
use super::{Commas, Text, Texts, write_quoted};

/// How tightly the surroundings of a filter bind.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum Place {
    Or,
    And,
    Not,
}

impl Display for Filter {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write_filter(f, self, Place::Or)
    }
}

fn write_filter(f: &mut Formatter<'_>, filter: &Filter, place: Place) -> fmt::Result {
    match filter {
        Filter::All => f.write_str("*"),
        Filter::And(parts) if parts.is_empty() => f.write_str("*"),
        Filter::Or(parts) if parts.is_empty() => f.write_str("!*"),
        Filter::And(parts) => write_list(f, parts, " ", place > Place::And, Place::And),
        Filter::Or(parts) => write_list(f, parts, " or ", place > Place::Or, Place::Or),
        Filter::Not(inner) => {
            f.write_str("!")?;
            write_filter(f, inner, Place::Not)
        }
        Filter::Field { field, predicate } => write_field(f, field, predicate),
        Filter::Stream(selector) => selector.fmt(f),
        Filter::StreamId(ids) => match ids {
            StreamIds::List(ids) => write!(f, "_stream_id:in({})", Commas(ids)),
            StreamIds::Query { query, .. } => write!(f, "_stream_id:in({query})"),
        },
        Filter::Time(time) => time.fmt(f),
        Filter::DayRange(range) => range.fmt(f),
        Filter::WeekRange(range) => range.fmt(f),
    }
}

/// The parts of `and` or `or`; a part of the same kind gets parentheses, so that it stays apart.
fn write_list(
    f: &mut Formatter<'_>,
    parts: &[Filter],
    between: &str,
    parens: bool,
    inside: Place,
) -> fmt::Result {
    if parens {
        f.write_str("(")?;
    }
    for (i, part) in parts.iter().enumerate() {
        f.write_str(if i == 0 { "" } else { between })?;
        // One step tighter than the list itself.
        let place = if inside == Place::Or { Place::And } else { Place::Not };
        match part {
            Filter::And(_) if inside == Place::Or => write_filter(f, part, Place::And)?,
            _ => write_filter(f, part, place)?,
        }
    }
    if parens {
        f.write_str(")")?;
    }
    Ok(())
}

fn write_field(f: &mut Formatter<'_>, field: &FieldPattern, predicate: &Predicate) -> fmt::Result {
    let message = matches!(field, FieldPattern::Name(name) if name == MESSAGE_FIELD);
    // Bare `*` would be every row.
    if !message || *predicate == Predicate::Any {
        write!(f, "{field}:")?;
    }
    predicate.fmt(f)
}

impl Display for Predicate {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Predicate::Any => f.write_str("*"),
            Predicate::Phrase(text) => Text(text).fmt(f),
            Predicate::Prefix(text) => write!(f, "{}*", Text(text)),
            Predicate::Substring(text) => write!(f, "*{}*", Text(text)),
            Predicate::PhraseFold(text) => write!(f, "i({})", Text(text)),
            Predicate::PrefixFold(text) => write!(f, "i({}*)", Text(text)),
            Predicate::Exact(text) => write!(f, "={}", Text(text)),
            Predicate::ExactPrefix(text) => write!(f, "={}*", Text(text)),
            Predicate::In(values) => write!(f, "in({values})"),
            Predicate::ContainsAll(values) => write!(f, "contains_all({values})"),
            Predicate::ContainsAny(values) => write!(f, "contains_any({values})"),
            Predicate::Sequence(texts) => write!(f, "seq({})", Texts(texts)),
            Predicate::Regex(regex) => {
                f.write_str("~")?;
                write_quoted(f, regex.as_str())
            }
            Predicate::Compare { op, value } => write!(f, "{op}{}", Text(value)),
            Predicate::Range { min, max } => write_range(f, min, max),
            Predicate::StringRange { min, max } => {
                write!(f, "string_range({}, {})", Text(min), Text(max))
            }
            Predicate::LenRange { min, max } => {
                write!(f, "len_range({}, {})", Length(*min), Length(*max))
            }
            Predicate::Ipv4Range { min, max } => {
                let (min, max) = (std::net::Ipv4Addr::from(*min), std::net::Ipv4Addr::from(*max));
                write!(f, "ipv4_range({min}, {max})")
            }
            Predicate::Ipv6Range { min, max } => {
                let (min, max) = (std::net::Ipv6Addr::from(*min), std::net::Ipv6Addr::from(*max));
                write!(f, "ipv6_range(\"{min}\", \"{max}\")")
            }
            Predicate::CompareField { op, other } => {
                let name = match op {
                    FieldOp::Equal => "eq_field",
                    FieldOp::LessOrEqual => "le_field",
                    FieldOp::Less => "lt_field",
                };
                write!(f, "{name}({})", Text(other))
            }
            Predicate::ValueType(name) => write!(f, "value_type({})", Text(name)),
            Predicate::PatternMatch(pattern) => pattern.fmt(f),
            Predicate::EqualsCommonCase(texts) => {
                write!(f, "equals_common_case({})", Texts(texts))
            }
            Predicate::ContainsCommonCase(texts) => {
                write!(f, "contains_common_case({})", Texts(texts))
            }
            Predicate::JsonArrayContainsAny(texts) => {
                write!(f, "json_array_contains_any({})", Texts(texts))
            }
        }
    }
}

struct Length(u64);

impl Display for Length {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.0 == u64::MAX { f.write_str("inf") } else { self.0.fmt(f) }
    }
}

fn write_range(f: &mut Formatter<'_>, min: &RangeBound, max: &RangeBound) -> fmt::Result {
    let open = if min.inclusive { '[' } else { '(' };
    let close = if max.inclusive { ']' } else { ')' };
    write!(f, "range{open}{}, {}{close}", min.value, max.value)
}

impl Display for CompareOp {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            CompareOp::Greater => ">",
            CompareOp::GreaterOrEqual => ">=",
            CompareOp::Less => "<",
            CompareOp::LessOrEqual => "<=",
        })
    }
}

impl Display for ValueSet {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            ValueSet::Any => f.write_str("*"),
            ValueSet::List(values) => Texts(values).fmt(f),
            ValueSet::Query { query, .. } => query.fmt(f),
        }
    }
}

impl Display for MatchPattern {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self.anchor {
            MatchAnchor::Anywhere => "pattern_match(",
            MatchAnchor::Full => "pattern_match_full(",
            MatchAnchor::Start => "pattern_match_prefix(",
            MatchAnchor::End => "pattern_match_suffix(",
        })?;
        write_quoted(f, &self.source)?;
        f.write_str(")")
    }
}

impl Display for StreamSelector {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("{")?;
        for (i, labels) in self.alternatives.iter().enumerate() {
            f.write_str(if i == 0 { "" } else { " or " })?;
            for (i, label) in labels.iter().enumerate() {
                f.write_str(if i == 0 { "" } else { "," })?;
                label.fmt(f)?;
            }
        }
        f.write_str("}")
    }
}

impl Display for LabelFilter {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        Text(&self.label).fmt(f)?;
        let (sign, value) = match &self.op {
            LabelOp::Equal(value) => ("=", value.as_str()),
            LabelOp::NotEqual(value) => ("!=", value.as_str()),
            LabelOp::Matches(regex) => ("=~", regex.as_str()),
            LabelOp::NotMatches(regex) => ("!~", regex.as_str()),
            LabelOp::In(values) => return write!(f, " in ({})", Texts(values)),
            LabelOp::NotIn(values) => return write!(f, " not_in ({})", Texts(values)),
        };
        f.write_str(sign)?;
        write_quoted(f, value)
    }
}

impl Display for TimeFilter {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("_time:")?;
        let mut blank = " ";
        match &self.form {
            TimeForm::Last(age) => age.fmt(f)?,
            TimeForm::OlderThan(age) => write!(f, ">{age}")?,
            TimeForm::At(point) => point.fmt(f)?,
            TimeForm::Compare { op, point } => write!(f, "{op}{}", Pinned(point))?,
            TimeForm::Range { min, min_inclusive, max, max_inclusive } => {
                let open = if *min_inclusive { '[' } else { '(' };
                let close = if *max_inclusive { ']' } else { ')' };
                write!(f, "{open}{}, {}{close}", Pinned(min), Pinned(max))?;
            }
            TimeForm::UpToNow => blank = "",
        }
        match &self.offset {
            Some(offset) => write!(f, "{blank}offset {offset}"),
            None => Ok(()),
        }
    }
}

/// A point whose distance from now is written with `now`.
struct Pinned<'a>(&'a TimePoint);

impl Display for Pinned<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0 {
            TimePoint::BeforeNow(Duration { text, nanos }) => match text.strip_prefix('-') {
                Some(text) if *nanos <= 0 => write!(f, "now+{text}"),
                _ => write!(f, "now-{text}"),
            },
            point => point.fmt(f),
        }
    }
}

impl Display for TimePoint {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            TimePoint::Text(text) => {
                let bare = |c: char| c.is_ascii_alphanumeric() || "-+:._".contains(c);
                if text.chars().all(bare) { f.write_str(text) } else { write_quoted(f, text) }
            }
            TimePoint::Now => f.write_str("now"),
            TimePoint::BeforeNow(_) => Pinned(self).fmt(f),
        }
    }
}

/// Nanoseconds of the day as `hh:mm`.
struct Clock(i64);

impl Display for Clock {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let minutes = self.0 / 60_000_000_000;
        write!(f, "{:02}:{:02}", minutes / 60, minutes % 60)
    }
}

impl Display for DayRange {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        // Ends are whole minutes, moved by a nanosecond where the bracket says so.
        let moved = |nanos: i64| nanos % 60_000_000_000 != 0;
        let open = if moved(self.start) { '(' } else { '[' };
        let close = if moved(self.end) { ']' } else { ')' };
        write!(f, "_time:day_range{open}{}, {}{close}", Clock(self.start), Clock(self.end))?;
        write_zone_offset(f, self.offset)
    }
}

impl Display for WeekRange {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let open = if self.start_inclusive { '[' } else { '(' };
        let close = if self.end_inclusive { ']' } else { ')' };
        write!(f, "_time:week_range{open}{}, {}{close}", self.start, self.end)?;
        write_zone_offset(f, self.offset)
    }
}

fn write_zone_offset(f: &mut Formatter<'_>, offset: Option<i64>) -> fmt::Result {
    match offset {
        Some(nanos) => write!(f, " offset {nanos}ns"),
        None => Ok(()),
    }
}

impl Display for Weekday {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Weekday::Sunday => "Sun",
            Weekday::Monday => "Mon",
            Weekday::Tuesday => "Tue",
            Weekday::Wednesday => "Wed",
            Weekday::Thursday => "Thu",
            Weekday::Friday => "Fri",
            Weekday::Saturday => "Sat",
        })
    }
}
