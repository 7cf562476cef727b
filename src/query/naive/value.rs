//! How texts read as numbers, times and addresses, and how they are ordered.

use std::cmp::Ordering;

use super::clock::Clock;

/// A number without rounding: `mantissa * 10^exponent`, or infinite.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Exact {
    Finite(i128, i32),
    Infinite(f64),
}

impl Exact {
    pub(crate) fn to_f64(self) -> f64 {
        match self {
            Exact::Finite(m, e) => format!("{m}e{e}").parse().unwrap(),
            Exact::Infinite(f) => f,
        }
    }

    pub(crate) fn cmp(self, other: Exact) -> Ordering {
        if let (Exact::Finite(a, ae), Exact::Finite(b, be)) = (self, other) {
            let low = ae.min(be);
            let up = |m: i128, e: i32| {
                10i128.checked_pow(e.abs_diff(low)).and_then(|f| m.checked_mul(f))
            };
            // At the lower exponent one of them stays as it is; one that does not fit is larger.
            return match (up(a, ae), up(b, be)) {
                (Some(a), Some(b)) => a.cmp(&b),
                (None, _) => a.cmp(&0),
                (_, None) => 0.cmp(&b),
            };
        }
        self.to_f64().partial_cmp(&other.to_f64()).unwrap()
    }

    /// `self + other`; the finite numbers of tests stay within range.
    pub(crate) fn add(self, other: Exact) -> Exact {
        match (self, other) {
            (Exact::Finite(a, ae), Exact::Finite(b, be)) => {
                let low = ae.min(be);
                let up = |m: i128, e: i32| m * 10i128.pow(e.abs_diff(low));
                Exact::Finite(up(a, ae) + up(b, be), low)
            }
            _ => Exact::Infinite(self.to_f64() + other.to_f64()),
        }
    }
}

/// Plain numbers, durations (ns), sizes (bytes) and other numeric syntax; no times or addresses.
pub(crate) fn exact(text: &str) -> Option<Exact> {
    decimal(text).or_else(|| duration(text)).or_else(|| size(text)).or_else(|| other_syntax(text))
}

/// The value that comparison filters see.
pub(crate) fn quantity(text: &str) -> Option<Exact> {
    let integer = |n: i128| Exact::Finite(n, 0);
    exact(text)
        .or_else(|| rfc3339(text).map(|t| integer(t.into())))
        .or_else(|| ipv4(text).map(|a| integer(a.into())))
}

/// The value that `math` and `histogram` see.
pub(crate) fn number(text: &str) -> Option<f64> {
    match quantity(text) {
        Some(Exact::Finite(0, _)) if text.starts_with('-') => Some(-0.0),
        Some(e) => Some(e.to_f64()),
        // More digits than an exact number has here.
        None if text.len() > 38 && text.bytes().all(|b| b.is_ascii_digit()) => text.parse().ok(),
        None => None,
    }
}

/// `-`, digits with `_` between them, at most one point with digits on both sides.
pub(crate) fn decimal(text: &str) -> Option<Exact> {
    let (negative, body) = match text.strip_prefix('-') {
        Some(b) => (true, b),
        None => (false, text),
    };
    let (int, fraction) = match body.split_once('.') {
        Some((i, f)) => (i, Some(f)),
        None => (body, None),
    };
    let digits = |s: &str| -> Option<String> {
        let ok = !s.is_empty()
            && s.split('_').all(|p| !p.is_empty() && p.bytes().all(|b| b.is_ascii_digit()));
        ok.then(|| s.replace('_', ""))
    };
    let int = digits(int)?;
    let fraction = match fraction {
        Some(f) => digits(f)?,
        None => String::new(),
    };
    let mantissa: i128 = format!("{int}{fraction}").parse().ok()?;
    let exponent = -i32::try_from(fraction.len()).ok()?;
    Some(Exact::Finite(if negative { -mantissa } else { mantissa }, exponent))
}

const NANOS: [(&str, i128); 10] = [
    ("ns", 1),
    ("\u{b5}s", 1_000),
    ("\u{3bc}s", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
    ("d", 86_400_000_000_000),
    ("w", 604_800_000_000_000),
    ("y", 31_536_000_000_000_000),
];

/// `1h30m`, `-1.5s`.
pub(crate) fn duration(text: &str) -> Option<Exact> {
    let (negative, mut rest) = match text.strip_prefix('-') {
        Some(b) => (true, b),
        None => (false, text),
    };
    if rest.is_empty() {
        return None;
    }
    let mut sum = Exact::Finite(0, 0);
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_')?;
        let Exact::Finite(m, e) = decimal(&rest[..end])? else { return None };
        rest = &rest[end..];
        let unit_end = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        let unit = NANOS.iter().find(|u| u.0 == &rest[..unit_end])?.1;
        rest = &rest[unit_end..];
        sum = sum.add(Exact::Finite(m * unit, e));
    }
    match sum {
        Exact::Finite(m, e) if negative => Some(Exact::Finite(-m, e)),
        other => Some(other),
    }
}

/// `10KB`, `1.5MiB`.
fn size(text: &str) -> Option<Exact> {
    let (k, ki) = (1000i128, 1024i128);
    let units = [
        ("KiB", ki),
        ("Ki", ki),
        ("MiB", ki * ki),
        ("Mi", ki * ki),
        ("GiB", ki.pow(3)),
        ("Gi", ki.pow(3)),
        ("TiB", ki.pow(4)),
        ("Ti", ki.pow(4)),
        ("KB", k),
        ("K", k),
        ("MB", k * k),
        ("M", k * k),
        ("GB", k.pow(3)),
        ("G", k.pow(3)),
        ("TB", k.pow(4)),
        ("T", k.pow(4)),
        ("B", 1),
    ];
    for (unit, factor) in units {
        if let Some(head) = text.strip_suffix(unit)
            && let Some(Exact::Finite(m, e)) = decimal(head)
        {
            return Some(Exact::Finite(m * factor, e));
        }
    }
    None
}

/// `1e3`, `+1`, `.5`, `1.`, `inf`, `0x1F`, `0b101`, `0o17`.
fn other_syntax(text: &str) -> Option<Exact> {
    let (negative, body) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let sign = if negative { -1 } else { 1 };
    let lower = body.to_ascii_lowercase();
    if lower == "inf" || lower == "infinity" {
        return Some(Exact::Infinite(if negative { f64::NEG_INFINITY } else { f64::INFINITY }));
    }
    for (prefix, radix) in [("0x", 16), ("0b", 2), ("0o", 8)] {
        if let Some(digits) = lower.strip_prefix(prefix) {
            let plain = digits.bytes().all(|b| b.is_ascii_alphanumeric());
            let m = i128::from_str_radix(digits, radix).ok().filter(|_| plain)?;
            return Some(Exact::Finite(sign * m, 0));
        }
    }
    let (mantissa, exponent) = match lower.split_once('e') {
        Some((m, e)) => (m, e.parse::<i32>().ok()?),
        None => (lower.as_str(), 0),
    };
    let (int, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{int}{fraction}");
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let scale = i32::try_from(fraction.len()).ok()?;
    Some(Exact::Finite(sign * digits.parse::<i128>().ok()?, exponent - scale))
}

/// A dotted quad.
pub(crate) fn ipv4(text: &str) -> Option<u32> {
    let parts: Vec<&str> = text.split('.').collect();
    if parts.len() != 4 {
        return None;
    }
    let mut value = 0;
    for part in parts {
        let ok = (1..=3).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_digit());
        let octet: u32 = part.parse().ok().filter(|o| ok && *o < 256)?;
        value = value * 256 + octet;
    }
    Some(value)
}

/// Days since 1970 of a date of the proleptic Gregorian calendar.
pub(crate) fn days(year: i64, month: i64, day: i64) -> i64 {
    let leap = |y: i64| (y % 4 == 0 && y % 100 != 0) || y % 400 == 0;
    let lengths = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut days = 0;
    for y in 1970.min(year)..1970.max(year) {
        days += if leap(y) { 366 } else { 365 };
    }
    if year < 1970 {
        days = -days;
    }
    for m in 1..month {
        days += lengths[m as usize - 1] + i64::from(m == 2 && leap(year));
    }
    days + day - 1
}

/// A complete RFC 3339 time as nanoseconds since 1970.
pub(crate) fn rfc3339(text: &str) -> Option<i64> {
    let (lo, _, complete) = wide_cover(text, Clock::UTC)?;
    let zone = text.ends_with('Z') || text.get(19..)?.contains(['+', '-']);
    i64::try_from(lo).ok().filter(|_| complete && zone)
}

/// First and last nanosecond that a full or partial time covers, read by the clock if it has no
/// zone, and whether it has seconds; times that 64 bits do not hold are brought into their range.
pub(crate) fn covered(text: &str, clock: Clock) -> Option<(i64, i64, bool)> {
    let (lo, hi, complete) = wide_cover(text, clock)?;
    let clamp = |n: i128| n.clamp(i64::MIN.into(), i64::MAX.into()) as i64;
    Some((clamp(lo), clamp(hi), complete))
}

fn wide_cover(text: &str, clock: Clock) -> Option<(i128, i128, bool)> {
    let (body, zone) = split_zone(text)?;
    let mut parts = [1970i64, 1, 1, 0, 0, 0];
    let shape = [4, 7, 10, 13, 16, 19];
    let (main, fraction) = match body.split_once('.') {
        Some((m, f)) if m.len() == 19 => (m, Some(f)),
        Some(_) => return None,
        None => (body, None),
    };
    let count = shape.iter().position(|&n| n == main.len())? + 1;
    let ranges = [0..4, 5..7, 8..10, 11..13, 14..16, 17..19];
    let separators = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':')];
    for (i, range) in ranges.iter().take(count).enumerate() {
        let digits = main.get(range.clone())?;
        parts[i] = digits.parse().ok().filter(|_| digits.bytes().all(|b| b.is_ascii_digit()))?;
        if i > 0 && main.as_bytes()[separators[i - 1].0] != separators[i - 1].1 {
            return None;
        }
    }
    let [_, month, day, hour, minute, second] = parts;
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let start = |p: &[i64; 6]| {
        let shown = days(p[0], p[1], p[2]) * 86_400 + p[3] * 3600 + p[4] * 60 + p[5];
        let nanos = |second: i64| i128::from(second) * 1_000_000_000;
        zone.map_or_else(|| clock.first_showing(nanos(shown)), |zone| nanos(shown - zone))
    };
    let lo = start(&parts);
    if let Some(f) = fraction {
        let ok = (1..=9).contains(&f.len()) && f.bytes().all(|b| b.is_ascii_digit());
        let nanos: i128 = format!("{f:0<9}").parse().ok().filter(|_| ok)?;
        let width = if f.len() == 3 { 999_999 } else { 0 };
        return Some((lo + nanos, lo + nanos + width, true));
    }
    let mut next = parts;
    match count {
        1 => next[0] += 1,
        2 if next[1] == 12 => (next[0], next[1]) = (next[0] + 1, 1),
        n => next[n - 1] += 1,
    }
    Some((lo, start(&next) - 1, count == 6))
}

/// The text before the zone, and the zone in seconds if there is one.
fn split_zone(text: &str) -> Option<(&str, Option<i64>)> {
    if let Some(body) = text.strip_suffix('Z') {
        return Some((body, Some(0)));
    }
    let tail = text.len().checked_sub(6).filter(|&i| i >= 4 && text.is_char_boundary(i));
    if let Some(at) = tail
        && matches!(text.as_bytes()[at], b'+' | b'-')
        && text.as_bytes()[at + 3] == b':'
    {
        let hours: i64 = text[at + 1..at + 3].parse().ok()?;
        let minutes: i64 = text[at + 4..].parse().ok()?;
        let sign = if text.as_bytes()[at] == b'-' { -1 } else { 1 };
        return Some((&text[..at], Some(sign * (hours * 3600 + minutes * 60))));
    }
    Some((text, None))
}

/// Nanoseconds since 1970 as RFC 3339 in UTC with the shortest fraction.
pub(crate) fn print_time(nanos: i64) -> String {
    let (seconds, fraction) = (nanos.div_euclid(1_000_000_000), nanos.rem_euclid(1_000_000_000));
    let (day, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let mut year = 1970 + day / 366 - i64::from(day < 0);
    while days(year + 1, 1, 1) <= day {
        year += 1;
    }
    let mut month = 1;
    while month < 12 && days(year, month + 1, 1) <= day {
        month += 1;
    }
    let dom = day - days(year, month, 1) + 1;
    let (h, m, s) = (second / 3600, second / 60 % 60, second % 60);
    let fraction = match fraction {
        0 => String::new(),
        f => format!(".{f:09}").trim_end_matches('0').to_owned(),
    };
    format!("{year:04}-{month:02}-{dom:02}T{h:02}:{m:02}:{s:02}{fraction}Z")
}

/// The total order of values: empty, numbers, times, IPv4 addresses, texts in natural order.
pub(crate) fn compare(a: &str, b: &str) -> Ordering {
    enum Class {
        Empty,
        Number(Exact),
        Time(i64),
        Address(u32),
        Text,
    }
    let classify = |t: &str| match () {
        () if t.is_empty() => (0, Class::Empty),
        () => match (exact(t), rfc3339(t), ipv4(t)) {
            (Some(e), ..) => (1, Class::Number(e)),
            (_, Some(ns), _) => (2, Class::Time(ns)),
            (_, _, Some(ip)) => (3, Class::Address(ip)),
            _ => (4, Class::Text),
        },
    };
    match (classify(a), classify(b)) {
        ((_, Class::Number(x)), (_, Class::Number(y))) => x.cmp(y),
        ((_, Class::Time(x)), (_, Class::Time(y))) => x.cmp(&y),
        ((_, Class::Address(x)), (_, Class::Address(y))) => x.cmp(&y),
        ((_, Class::Text), (_, Class::Text)) => natural(a.as_bytes(), b.as_bytes()),
        ((x, _), (y, _)) => x.cmp(&y),
    }
}

/// Bytewise, but runs of digits by their number, the longer run of equal numbers being greater.
fn natural(mut a: &[u8], mut b: &[u8]) -> Ordering {
    loop {
        let (Some(&x), Some(&y)) = (a.first(), b.first()) else { return a.len().cmp(&b.len()) };
        match (x.is_ascii_digit(), y.is_ascii_digit()) {
            (true, true) => {
                let run = |s: &[u8]| s.iter().take_while(|c| c.is_ascii_digit()).count();
                let (ra, rb) = (&a[..run(a)], &b[..run(b)]);
                let bare = |r: &[u8]| {
                    let zeros = r.iter().take_while(|&&c| c == b'0').count();
                    r[zeros..].to_vec()
                };
                let (na, nb) = (bare(ra), bare(rb));
                let by_value = na.len().cmp(&nb.len()).then_with(|| na.cmp(&nb));
                let all = by_value.then(ra.len().cmp(&rb.len()));
                if all != Ordering::Equal {
                    return all;
                }
                (a, b) = (&a[ra.len()..], &b[rb.len()..]);
            }
            (true, false) => return Ordering::Less,
            (false, true) => return Ordering::Greater,
            (false, false) if x != y => return x.cmp(&y),
            (false, false) => (a, b) = (&a[1..], &b[1..]),
        }
    }
}
