//! Random filters.

use super::{
    ADDRESSES, APPS, FIELDS, HOSTS, LEVELS, MIXED, Rng, STREAM_FIELDS, WORDS, quote, stream_id,
};

/// Some condition, of at most so many levels.
pub(super) fn filter(rng: &mut Rng, depth: usize) -> String {
    if depth == 0 || rng.one_in(3) {
        return leaf(rng);
    }
    let kind = rng.below(4);
    let mut sub = || filter(rng, depth - 1);
    match kind {
        0 => format!("({} or {})", sub(), sub()),
        1 => format!("!({})", sub()),
        2 => format!("({} {} {})", sub(), sub(), sub()),
        _ => format!("({} and not {})", sub(), sub()),
    }
}

fn leaf(rng: &mut Rng) -> String {
    match rng.below(13) {
        11 => {
            let from = rng.pick(&["level", "app", "ip", "id"]);
            let how = rng.pick(&["any", "all"]);
            format!("{}:contains_{how}({} | fields {from})", rng.pick(&FIELDS), no_stream(rng))
        }
        12 => format!("{}*:{}", rng.pick(&["n", "i", "r", "nosuch"]), text_predicate(rng)),
        10 => {
            let (field, inner) = (rng.pick(&FIELDS), no_stream(rng));
            let end = rng.pick(&["fields", "uniq by"]);
            let from = rng.pick(&FIELDS);
            format!("{field}:in({inner} | {end} ({from}))")
                .replace(&format!("fields ({from})"), &format!("fields {from}"))
        }
        0 => "*".to_owned(),
        1 if rng.one_in(4) => {
            format!("_stream_id:in({} {} | fields _stream_id)", stream(rng), no_stream(rng))
        }
        1 if rng.one_in(3) => stream_ids(rng),
        1 => stream(rng),
        2 => time_filter(rng),
        3 | 4 => text_predicate(rng),
        5 => {
            let number = rng.pick(&[
                "17",
                "0",
                "-5",
                "1KB",
                "30s",
                "10.0.0.2",
                "0x10",
                "abc",
                "9007199254740992",
                "9007199254740992.5",
                "2024-02-29T00:00:00Z",
            ]);
            if rng.one_in(4) {
                let (open, close) = (rng.pick(&["(", "["]), rng.pick(&[")", "]"]));
                let low = rng.pick(&["-5", "0", "9007199254740992", "1.1"]);
                let high = rng.pick(&["17", "1.1", "9007199254740993", "inf"]);
                return format!("{}:range{open}{low},{high}{close}", rng.pick(&["i", "d", "id"]));
            }
            let op = rng.pick(&[">", ">=", "<", "<="]);
            format!("{}:{op}{}", rng.pick(&["i", "d", "id", "ip", "rare", "u"]), quote(number))
        }
        _ => format!("{}:{}", rng.pick(&FIELDS), text_predicate(rng)),
    }
}

fn text_predicate(rng: &mut Rng) -> String {
    let word = *[rng.pick(&WORDS), rng.pick(&MIXED), rng.pick(&LEVELS), rng.pick(&ADDRESSES)]
        .get(rng.below(4))
        .unwrap();
    let chars: Vec<char> = word.chars().collect();
    let part: String = chars[..1 + rng.below(chars.len())].iter().collect();
    let (upper, expression) = (quote(&word.to_uppercase()), quote(&escape_regex(&part)));
    let (word, part) = (quote(word), quote(&part));
    let other = quote(rng.pick(&WORDS));
    match rng.below(20) {
        18 | 19 => {
            let patterns = [
                "took <N>ms",
                "id=<N>",
                "<IP4>",
                "<W>=1",
                "user:<N>",
                "<DATE>T<TIME>",
                "<DATETIME>",
                "/path/<N>",
                "<N>",
                "<W>",
                "<W>.<W>",
                "",
            ];
            let anchor = rng.pick(&["", "_full", "_prefix", "_suffix"]);
            format!("pattern_match{anchor}({})", quote(rng.pick(&patterns)))
        }
        15 => rng.pick(&["ipv6_range(\"::ffff:10.0.0.0/120\")", "ipv6_range(\"::/0\")"]).to_owned(),
        16 => format!("json_array_contains_any(a, {word}, true)"),
        17 => {
            let case = rng.pick(&["Error", "ERROR", "GET", "needle", "Other Needle"]);
            format!("{}_common_case({})", rng.pick(&["equals", "contains"]), quote(case))
        }
        0..=2 => word,
        3 => format!("{part}*"),
        4 => format!("i({upper})"),
        5 => format!("i({part}*)"),
        6 => format!("={word}"),
        7 => format!("={part}*"),
        8 => format!("in({word},{other},\"needle\")"),
        9 => format!("contains_any({word},{other})"),
        10 => format!("contains_all({word},{other})"),
        11 => format!("seq({word},{other})"),
        12 => format!("~{expression}"),
        13 => rng.pick(&["~\"^[0-9]+$\"", "~\"(?i)err(or)?\\\\b\"", "~\"t.*t|5\"", "~\"\""]).into(),
        _ => rng.pick(&["*", "\"\"", "len_range(2,5)", "ipv4_range(\"10.0.0.0/24\")"]).to_owned(),
    }
}

/// Puts a backslash before what means something in a regular expression.
fn escape_regex(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        if "\\.+*?()|[]{}^$".contains(c) {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

pub(super) fn stream(rng: &mut Rng) -> String {
    let app = quote(rng.pick(&APPS));
    match rng.below(6) {
        0 => format!("{{app={app}}}"),
        1 => format!("{{app!={app},host=\"h1\"}}"),
        2 => "{host=\"\"}".to_owned(),
        3 => format!("{{app in ({app},\"web\")}}"),
        4 => "{app=~\"w.b|db\"}".to_owned(),
        _ => "{host!~\"h[12]\" or app=\"db\"}".to_owned(),
    }
}

/// Streams by their ids, one of which may be that of no stream.
fn stream_ids(rng: &mut Rng) -> String {
    let mut one = || {
        let labels = [rng.pick(&APPS), rng.pick(&HOSTS)];
        stream_id(STREAM_FIELDS.into_iter().zip(labels))
    };
    let (first, second, third) = (one(), one(), one());
    match rng.below(3) {
        0 => format!("_stream_id:{first}"),
        1 => format!("_stream_id:in({first}, {second}, {third})"),
        _ => format!("_stream_id:in({first}, 00000000000000000000000000000000)"),
    }
}

/// A moment or a unit of time; those without a zone are in that of the query.
fn moment(rng: &mut Rng) -> &'static str {
    rng.pick(&[
        "2024-02-28T23:59:55Z",
        "2024-02-29T00:00:00Z",
        "2024-02-29T00:00:03.5Z",
        "2024-02-29T01:00:05+01:00",
        "2024-02-29Z",
        "2024-03-01Z",
        "2024-02-29",
        "2024-02-29T00:00:03",
        "2024-02-28T23:59:55.250",
        "2024-02-29T00",
        "2024-02-29T02:00:04",
    ])
}

/// A range of time that is closed at both ends, so that there are rates over it.
pub(super) fn time_range(rng: &mut Rng) -> String {
    let (from, to) = (moment(rng), moment(rng));
    let shift = rng.pick(&["", "", " offset 5s"]);
    match rng.below(4) {
        0 => format!("_time:{from}{shift}"),
        1 => format!("_time:>={from} _time:<{to}"),
        2 => format!("_time:1h{shift}"),
        _ => format!("_time:[{from}, {to}){shift}"),
    }
}

fn time_filter(rng: &mut Rng) -> String {
    let (a, b) = (moment(rng), moment(rng));
    match rng.below(7) {
        5 => format!(
            "_time:day_range[{}, 23:59:57){}",
            rng.pick(&["00:00", "23:59"]),
            rng.pick(&["", " offset 1h", " offset -10s"])
        )
        .replace("23:59:57", rng.pick(&["00:00", "24:00", "01:00"])),
        6 => format!(
            "_time:week_range{}{}",
            rng.pick(&["[Wed, Thu)", "[Thu, Sat]", "(Sun, Wed]"]),
            rng.pick(&["", " offset 2h"])
        ),
        0 => format!("_time:{a}"),
        1 => format!("_time:[{a},{b})"),
        2 => format!("_time:({a},{b}]"),
        3 => format!("_time:{}{a}", rng.pick(&[">", ">=", "<", "<="])),
        _ => "_time:1h".to_owned(),
    }
}

/// A filter that asks rows only.
pub(super) fn no_stream(rng: &mut Rng) -> String {
    format!("{}:{}", rng.pick(&FIELDS), text_predicate(rng))
}
