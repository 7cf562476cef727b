//! Texts of queries: what parses prints as text that parses to the same.

use crate::Query;

/// Queries of all kinds, on the fields of [`super::rows`].
pub(super) const TEXTS: [&str; 40] = [
    "*",
    "error",
    "level:error host:\"one of all\"",
    "_time:5m {app=\"api\"} -level:=info",
    "_time:[2024-10-04, 2024-10-05) or _msg:~\"took [0-9]+ ms\"",
    "n:>10 n:<=20 size:range(1, 5KiB] dur:>1.5ms",
    "id:in(a, b, \"c d\") or id:len_range(3, 40) | fields id, n",
    "_msg:seq(request, took) ip:ipv4_range(192.168.0.0/16)",
    "!(level:info or level:warn) | limit 3",
    "level:i(ERROR) _msg:\"reques\"* =\"x\"* rare:* same:eq_field(same2)",
    "_stream:{app=~\"a.*\", pod!=\"x\"} | sort by (_time desc, n) limit 4 offset 1",
    "* | stats by (level, _time:1s) count() c, sum(n) s, avg(n), max(dur), min(at)",
    "* | stats count_uniq(ip) u, quantile(0.9, n) q, values(level), uniq_values(level) limit 3",
    "* | stats by (app) count() if (level:error) errors, row_max(n, id)",
    "* | uniq by (level, host) with hits limit 3 | sort by (hits desc)",
    "* | top 3 by (level) hits as h rank as r",
    "* | fields level, n | rename n as m | copy m as k | delete level",
    "* | filter n:>3 | first 2 by (n) | last 1 by (n)",
    "_msg:request | extract \"request <no> took <ms> ms from <ip>\" | math no * 2 + ms as x",
    "* | format \"<level>: <n> <uc:host>\" as text | len(text) as l",
    "* | replace (\"request\", \"r\") at _msg limit 1 | replace_regexp (\"[0-9]+\", \"N\") at _msg",
    "* | unpack_json from _msg fields (a, b) | unpack_logfmt from _msg result_prefix \"x_\"",
    "* | unpack_syslog from _msg | pack_json fields (a, b) as j | drop_empty_fields",
    "* | field_names | sort by (hits) | offset 1",
    "* | field_values level limit 2",
    "* | facets 3 max_value_len 10",
    "* | split \",\" from _msg as parts | unroll by (parts)",
    "n:in(level:error | fields n) | count()",
    "* | join by (level) (level:error | stats by (level) count() as hits) inner",
    "* | union (level:error | limit 1) | stats count() x",
    "* | stream_context before 1 after 1",
    "* | running_stats sum(n) as s | total_stats count() as c",
    "* | collapse_nums at _msg prettify | top 2 by (_msg)",
    "* | time_add 1h at _time | hash(level) as h | decolorize _msg",
    "* | json_array_len(arr) as n | set_stream_fields level",
    "options(concurrency=1, time_offset=1h) error | limit 1",
    "tags:json_array_contains_any(a, b) level:contains_all(a) x:contains_any(b)",
    "_msg:pattern_match(\"request <N> took <N> ms\") n:le_field(size) n:string_range(a, z)",
    "_time:day_range[08:00, 18:00] _time:week_range[Mon, Fri] offset 2h",
    "* | extract_regexp \"(?P<verb>[a-z]+) (?P<no>[0-9]+)\" from _msg if (n:>1) | histogram(n)",
];

pub(super) fn run(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    match text.parse::<Query>() {
        Ok(query) => {
            let printed = query.to_string();
            let again = printed.parse::<Query>();
            assert!(again.as_ref() == Ok(&query), "prints as {printed}, which is {again:?}");
        }
        Err(error) => {
            assert!(text.is_char_boundary(error.offset), "the place of an error");
            assert!(!error.message.is_empty() && error.to_string().len() < 2_000, "{error}");
        }
    }
}

pub(super) fn seeds() -> Vec<Vec<u8>> {
    TEXTS.iter().map(|text| text.as_bytes().to_vec()).collect()
}
