//! Rows and filters for property tests of the scan and of whole queries.

use proptest::prelude::*;

use crate::query::ast::{
    CompareOp, Filter, LabelFilter, LabelOp, StreamSelector, TimeFilter, TimeForm, TimePoint,
};
use crate::query::filter::testing::{filter_tree, log_value};
use crate::query::testing::TestRow;

/// Rows of a few streams with ties, constants, rare fields and numbers.
pub(crate) fn any_rows(max: usize) -> impl Strategy<Value = Vec<TestRow>> {
    let row = (
        prop::sample::select(vec!["x", "y", ""]),
        prop::sample::select(vec!["h1", "h2"]),
        0i64..40,
        log_value(),
        prop::sample::select(vec!["1", "2", "07", ""]),
        prop::option::weighted(0.1, log_value()),
    );
    prop::collection::vec(row, 1..max).prop_map(|rows| {
        let row =
            |(a, host, time, b, n, ab): (_, &str, i64, String, &str, Option<String>)| TestRow {
                time: time * 1_000_000_000,
                labels: vec![("a", str::to_owned(a)), ("host", host.to_owned())],
                fields: vec![
                    ("b", b),
                    ("n", n.to_owned()),
                    ("ab", ab.unwrap_or_default()),
                    ("of_host", format!("c-{host}")),
                    ("same", "s t".to_owned()),
                ],
            };
        rows.into_iter().map(row).collect()
    })
}

/// Any filter on such rows: trees, streams, times.
pub(crate) fn any_filter() -> impl Strategy<Value = Filter> {
    let selector = prop_oneof![
        prop::sample::select(vec!["x", "z", ""]).prop_map(|v| LabelOp::Equal(v.to_owned())),
        prop::sample::select(vec!["x", ""]).prop_map(|v| LabelOp::NotEqual(v.to_owned())),
    ];
    let stream =
        (prop::sample::select(vec!["a", "host", "b"]), selector).prop_map(|(label, op)| {
            let filter = LabelFilter { label: label.to_owned(), op };
            Filter::Stream(StreamSelector { alternatives: vec![vec![filter]] })
        });
    let op = prop::sample::select(vec![CompareOp::Less, CompareOp::GreaterOrEqual]);
    let time = (op, 0i64..40).prop_map(|(op, s)| {
        let point = TimePoint::Text(format!("1970-01-01T00:00:{s:02}Z"));
        Filter::Time(TimeFilter { form: TimeForm::Compare { op, point }, offset: None })
    });
    let names = &["a", "b", "ab", "n", "host", "of_host", "same", "_stream", "missing"];
    let any = prop_oneof![2 => filter_tree(names), 1 => stream, 1 => time];
    prop_oneof![
        any.clone(),
        prop::collection::vec(any.clone(), 1..4).prop_map(Filter::And),
        prop::collection::vec(any, 1..3).prop_map(Filter::Or),
    ]
}
