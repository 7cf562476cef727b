//! The words of the language, and guesses at what a misspelt one was meant to be.

/// Names of pipes, alternative spellings included.
pub(crate) const PIPES: &[&str] = &[
    "block_stats",
    "blocks_count",
    "coalesce",
    "collapse_nums",
    "copy",
    "cp",
    "decolorize",
    "del",
    "delete",
    "drop",
    "drop_empty_fields",
    "eval",
    "extract",
    "extract_regexp",
    "facets",
    "field_names",
    "field_values",
    "fields",
    "filter",
    "first",
    "format",
    "generate_sequence",
    "hash",
    "head",
    "join",
    "json_array_concat",
    "json_array_len",
    "keep",
    "last",
    "len",
    "limit",
    "math",
    "mv",
    "offset",
    "order",
    "pack_json",
    "pack_logfmt",
    "patterns",
    "query_stats",
    "rename",
    "replace",
    "replace_regexp",
    "rm",
    "running_stats",
    "sample",
    "set_stream_fields",
    "skip",
    "sort",
    "split",
    "stats",
    "stream_context",
    "time_add",
    "top",
    "total_stats",
    "union",
    "uniq",
    "unpack_json",
    "unpack_logfmt",
    "unpack_syslog",
    "unpack_words",
    "unroll",
    "where",
];

/// Names of stats functions.
pub(crate) const STATS: &[&str] = &[
    "any",
    "avg",
    "count",
    "count_empty",
    "count_uniq",
    "count_uniq_hash",
    "field_max",
    "field_min",
    "histogram",
    "json_values",
    "max",
    "median",
    "min",
    "quantile",
    "rate",
    "rate_sum",
    "row_any",
    "row_max",
    "row_min",
    "stddev",
    "sum",
    "sum_len",
    "uniq_values",
    "values",
];

/// Names of functions of `running_stats` and `total_stats`.
pub(crate) const RUNNING: &[&str] = &["count", "first", "last", "max", "min", "sum"];

/// Names of filter functions.
pub(crate) const FILTERS: &[&str] = &[
    "contains_all",
    "contains_any",
    "contains_common_case",
    "eq_field",
    "equals_common_case",
    "exact",
    "i",
    "in",
    "ipv4_range",
    "ipv6_range",
    "json_array_contains_any",
    "le_field",
    "len_range",
    "lt_field",
    "pattern_match",
    "pattern_match_full",
    "pattern_match_prefix",
    "pattern_match_suffix",
    "range",
    "re",
    "seq",
    "string_range",
    "value_type",
];

/// Names of functions of `math`.
pub(crate) const MATH: &[&str] =
    &["abs", "ceil", "exp", "floor", "ln", "max", "min", "now", "rand", "round"];

/// Names of options.
pub(crate) const OPTIONS: &[&str] = &[
    "allow_partial_response",
    "concurrency",
    "global_filter",
    "ignore_global_time_filter",
    "parallel_readers",
    "time_offset",
];

/// Other words that mean something somewhere.
const KEYWORDS: &[&str] = &[
    "after",
    "and",
    "as",
    "asc",
    "at",
    "before",
    "by",
    "case",
    "day_range",
    "default",
    "desc",
    "drop_duplicates",
    "from",
    "hits",
    "if",
    "inner",
    "keep_const_fields",
    "keep_original_fields",
    "left",
    "max_value_len",
    "max_values_per_field",
    "not",
    "not_in",
    "now",
    "options",
    "or",
    "partition",
    "prefix",
    "prettify",
    "rank",
    "result_prefix",
    "rows",
    "skip_empty_results",
    "switch",
    "time_window",
    "week_range",
    "with",
    "xor",
];

/// Whether a word has to be quoted to stand for itself everywhere.
pub(crate) fn is_reserved(word: &str) -> bool {
    [PIPES, STATS, FILTERS, MATH, OPTIONS, KEYWORDS].iter().any(|list| contains(list, word))
}

/// Whether `list`, which is lower-case, holds `word` in any case.
pub(crate) fn contains(list: &[&str], word: &str) -> bool {
    list.iter().any(|name| name.eq_ignore_ascii_case(word))
}

/// The name of `list` that `word` was probably meant to be.
pub(crate) fn nearest<'a>(list: &[&'a str], word: &str) -> Option<&'a str> {
    if word.len() > 40 {
        return None;
    }
    let word = word.to_ascii_lowercase();
    let allowed = if word.len() <= 5 { 1 } else { 2 };
    list.iter()
        .map(|name| (edit_distance(&word, name), *name))
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// Insertions, deletions, replacements and swaps of neighbours (optimal string alignment) that
/// turn `a` into `b`, in O(|a| |b|).
fn edit_distance(a: &str, b: &str) -> usize {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut before: Vec<usize> = Vec::new();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut next = Vec::with_capacity(row.len());
        next.push(i + 1);
        for (j, y) in b.iter().enumerate() {
            let at = |r: &Vec<usize>, k: usize| r.get(k).copied().unwrap_or(usize::MAX - 1);
            let mut best = at(&row, j) + usize::from(x != y);
            best = best.min(at(&row, j + 1) + 1).min(at(&next, j) + 1);
            let swapped = i > 0 && j > 0 && a.get(i - 1) == Some(y) && b.get(j - 1) == Some(x);
            if swapped {
                best = best.min(at(&before, j - 1) + 1);
            }
            next.push(best);
        }
        before = std::mem::replace(&mut row, next);
    }
    row.last().copied().unwrap_or(0)
}
