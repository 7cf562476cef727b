//! Random pipes that make texts of texts, bring rows of other queries in, or look at all rows.

use super::{FIELDS, Rng, Sketch, filter, no_stream, quote, some_fields, stream};

/// The fields that expressions read.
const NUMBERS: [&str; 7] = ["i", "d", "id", "ip", "_time", "made", "nosuch"];
/// Patterns of `extract`, for messages and for arrays.
const EXTRACTS: [&str; 10] = [
    "took <n>ms id=<x>",
    "took <n>ms",
    "<a> <b>",
    "user:<n>",
    "<a>,<_>,<b>",
    "[<n>,<x>]",
    "[1,<x>]",
    "e<a>e<b>e",
    "<a>.<*>.<b>",
    "[1,<plain:x>]",
];
const EXPRESSIONS: [&str; 5] = [
    "(?P<a>[a-z]+) (?P<b>[0-9]+)",
    "id=(?P<x>[0-9a-f]{4})",
    "(?P<a>\\\\w+)[.:](?P<b>\\\\w+)?",
    "^(?P<a>.)",
    "(?P<a>x)?(?P<b>e|o)",
];

/// A pipe that changes rows one by one and leaves `id` and `_time` alone, but for adding to a
/// time. What only makes sense together is one text.
pub(super) fn maker(rng: &mut Rng) -> String {
    let condition = if rng.one_in(3) { format!("if ({}) ", no_stream(rng)) } else { String::new() };
    let keep = rng.pick(&["", "", " keep_original_fields", " skip_empty_results"]);
    let field = rng.pick(&FIELDS);
    match rng.below(19) {
        16 => format!("hash({field}) as made"),
        17 => format!("decolorize {}", rng.pick(&["_msg", "u", "made"])),
        18 => {
            let pretty = rng.pick(&["", " prettify"]);
            format!("collapse_nums {condition}at {field}{pretty}")
        }
        0..=2 => {
            let (first, second) = (expression(rng, 2), expression(rng, 1));
            format!("math {first} as {}, {second} as made", rng.pick(&["m", "made", "u"]))
        }
        3 | 4 => {
            let target = rng.pick(&["made", "u", "_msg"]);
            format!("format {condition}{} as {target}{keep}", quote(&template(rng)))
        }
        5 => {
            let code = rng.pick(&["hex", "base64", "url"]);
            format!("format '<{code}encode:{field}>' as c | format '<{code}decode:c>' as made")
        }
        6 | 7 => {
            let (pattern, from) = (rng.pick(&EXTRACTS), rng.pick(&["_msg", "nest.x", "d", "u"]));
            format!("extract {condition}{} from {from}{keep}", quote(pattern))
        }
        8 => {
            let expression = rng.pick(&EXPRESSIONS);
            format!("extract_regexp {condition}\"{expression}\" from {field}{keep}")
        }
        9 => {
            let change = rng.pick(&[
                "(\"[0-9]+\", \"<$0>\")",
                "(\"(e)(r)\", \"$2${1}_\")",
                "(\"(?P<x>[a-z])$\", \"${x}${x}$nosuch\")",
                "(\"\", \"-\")",
                "(\"[^a-z]*\", \"\")",
            ]);
            let limit = rng.pick(&["", "", " limit 1", " limit 2"]);
            format!("replace_regexp {condition}{change} at {field}{limit}")
        }
        10 => {
            let (kind, fields) = (rng.pick(&["json", "logfmt"]), some_fields(rng, 3).join(", "));
            let listed = rng.pick(&["", " fields (i, d, zz)", " fields (n*, app)"]);
            let prefix = rng.pick(&["", " result_prefix p_"]);
            format!(
                "pack_{kind} fields ({fields}, n*) as packed | \
                 unpack_{kind} {condition}from packed{listed}{prefix}{keep} | delete packed"
            )
        }
        11 => {
            let listed = rng.pick(&["", " fields (a, b*, zz)", " fields (b.c)"]);
            let json =
                "{\"a\":<q:u>,\"b\":{\"c\":<q:d>,\"l\":[1, {\"m\":2}]},\"n\":null,\"u\":\"\"";
            let json = quote(&format!("{json}{}", rng.pick(&["}", ",\"a\":1.50}", ""])));
            format!(
                "format {json} as made | \
                 unpack_json {condition}from made{listed}{keep} | delete made"
            )
        }
        12 => {
            let line = quote("&lt;<id>&gt;1 <_time> <host> <app> <i> ID - <_msg>");
            format!("format {line} as made | unpack_syslog from made result_prefix s_{keep}")
        }
        13 => format!("unpack_words from {field} as made{}", rng.pick(&["", " drop_duplicates"])),
        14 => format!(
            "time_add {} at {}",
            rng.pick(&["1h", "-1500ms", "1w"]),
            rng.pick(&["_time", "d", "u"])
        ),
        _ => format!("set_stream_fields {condition}{}, n*", some_fields(rng, 2).join(", ")),
    }
}

fn expression(rng: &mut Rng, depth: usize) -> String {
    if depth == 0 || rng.one_in(4) {
        return match rng.below(3) {
            0 => rng.pick(&["2", "0.1", "1KiB", "1m30s", "-3", "0", "1e3", "7"]).to_owned(),
            _ => rng.pick(&NUMBERS).to_owned(),
        };
    }
    let kind = rng.below(10);
    let mut sub = || expression(rng, depth - 1);
    let (a, b) = (sub(), sub());
    let function = rng.pick(&["abs", "ceil", "floor", "ln", "exp", "round"]);
    let operation = rng.pick(&["+", "-", "*", "/", "%", "^", "&", "or", "xor", "default"]);
    match kind {
        0 => format!("{function}({a})"),
        1 => format!("{}({a}, {b})", rng.pick(&["min", "max", "round"])),
        2 => format!("-({a})"),
        3 => format!("(now() - {a})"),
        4 => format!("{a} {operation} {b}"),
        _ => format!("({a} {operation} {b})"),
    }
}

/// A pattern of `format` whose encodings take any text.
fn template(rng: &mut Rng) -> String {
    let mut out = String::new();
    for _ in 0..1 + rng.below(3) {
        let encoding = rng.pick(&[
            "",
            "",
            "q:",
            "uc:",
            "lc:",
            "time:",
            "duration:",
            "duration_seconds:",
            "ipv4:",
            "hexencode:",
            "hexnumencode:",
            "hexnumdecode:",
            "base64encode:",
            "urlencode:",
        ]);
        let field = rng.pick(&FIELDS);
        out.push_str(&format!("{}<{encoding}{field}>", rng.pick(&["", " ", "a&lt;b", "'"])));
    }
    out
}

/// Rows of another query beside those of this one, each found once at most.
pub(super) fn join(rng: &mut Rng) -> String {
    let key = rng.pick(&["level", "app", "u", "nosuch"]);
    let right = match rng.below(4) {
        0 => format!("rows({{{key}=\"error\", u=1, x=2}}, {{{key}=web, x=\"\"}}, {{{key}=db}})"),
        1 => format!("({} | stats by ({key}) count() as n, max(id) as nest.x)", filter(rng, 1)),
        2 => format!("({} | sort by (id desc) | limit 3 | fields {key}, u, n*)", filter(rng, 1)),
        _ => format!("({} | uniq by ({key}, host) with hits)", filter(rng, 1)),
    };
    let ends = rng.pick(&["", " inner", " prefix r_", " inner prefix \"\""]);
    format!("join by ({key}) {right}{ends}")
}

/// Pipes at the end of a query, whose answer has no order.
pub(super) fn last(rng: &mut Rng, sketch: &mut Sketch) -> String {
    match rng.below(5) {
        0 => format!("union ({} | fields id, _time, i) | {}", filter(rng, 1), {
            rng.pick(&[
                "filter i:>10",
                "uniq by (i, level) with hits",
                "stats by (level) count() as n, max(i) as m",
                "sort by (i desc, id, level) limit 7 | fields id",
            ])
        }),
        1 => {
            let size = rng.pick(&["", "3 ", "1 "]);
            let most = rng.pick(&["", " max_values_per_field 6"]);
            let len = rng.pick(&["", " max_value_len 12"]);
            let constant = rng.pick(&["", " keep_const_fields"]);
            format!("delete _stream_id | facets {size}{most}{len}{constant}")
        }
        2 => join(rng),
        _ => {
            let kind = rng.pick(&["running_stats", "total_stats"]);
            let by = rng.pick(&["", "by (level) ", "by (app, host) ", "by (nosuch) "]);
            let mut functions = Vec::new();
            for i in 0..1 + rng.below(3) {
                let field = rng.pick(&["i", "d", "id", "u"]);
                let function = match rng.below(7) {
                    0 => "count()".to_owned(),
                    1 => format!("count({field}, rare)"),
                    2 => format!("sum({field})"),
                    3 => format!("min({field})"),
                    4 => format!("max({field}, rare)"),
                    5 => format!("first({field}) offset {}", rng.below(3)),
                    _ => format!("last({field}) offset {}", rng.below(3)),
                };
                sketch.approx.push(format!("r{i}"));
                functions.push(format!("{function} as r{i}"));
            }
            format!("{kind} {by}{}", functions.join(", "))
        }
    }
}

/// `patterns`, whose rows come in a fixed order.
pub(super) fn patterns(rng: &mut Rng, sketch: &mut Sketch) -> String {
    sketch.ordered = true;
    let by = rng.pick(&["", "", " by (app)", " by (level, host)", " by (_msg)"]);
    let baseline = match rng.below(5) {
        0 => format!(" new against ({})", no_stream(rng)),
        1 => format!(
            " new since {}",
            rng.pick(&["1h", "2024-03-05", "2024-03-05T10:00:00Z", "now-5m"])
        ),
        _ => String::new(),
    };
    let behind = rng.pick(&[
        "",
        "",
        " | limit 3",
        " | fields pattern, hits, last",
        " | sort by (hits desc, pattern) | limit 2",
        " | fields hits, share",
        " | sort by (first) | fields example, first",
    ]);
    format!("patterns{by}{baseline}{behind}")
}

/// `stream_context`, which has to be the first pipe.
pub(super) fn stream_context(rng: &mut Rng) -> String {
    let window = rng.pick(&["", "", " time_window 2s", " time_window 1ms", " time_window 1w"]);
    match rng.below(4) {
        0 => format!("stream_context before {}{window}", rng.below(4)),
        1 => format!("stream_context after {}{window}", rng.below(4)),
        _ => format!("stream_context before {} after {}{window}", rng.below(4), rng.below(4)),
    }
}

/// Options in front of a query.
pub(super) fn options(rng: &mut Rng) -> String {
    match rng.below(4) {
        0 => format!("options(global_filter=({} or {})) ", no_stream(rng), stream(rng)),
        1 => "options(concurrency=2, parallel_readers=1) ".to_owned(),
        _ => format!("options(time_offset={}) ", rng.pick(&["5s", "1d", "-3s"])),
    }
}
