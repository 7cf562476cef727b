use std::cmp::Ordering;

use super::value::{covered, exact, print_time, rfc3339};
use super::*;

#[test]
fn texts_read_as_numbers() {
    let cases: &[(&str, Option<f64>)] = &[
        ("10", Some(10.0)),
        ("1_000", Some(1000.0)),
        ("-0", Some(-0.0)),
        ("1.10", Some(1.1)),
        ("1h5m", Some(3_900e9)),
        ("-1.5s", Some(-1.5e9)),
        ("10KB", Some(10_000.0)),
        ("1.5KiB", Some(1536.0)),
        ("1e3", Some(1000.0)),
        (".5", Some(0.5)),
        ("1.", Some(1.0)),
        ("0x1F", Some(31.0)),
        ("inf", Some(f64::INFINITY)),
        ("10.0.0.1", Some(167_772_161.0)),
        ("1970-01-01T00:00:01Z", Some(1e9)),
        ("1,000", None),
        ("12px", None),
        ("v1.2", None),
        ("1.2.3", None),
        ("NaN", None),
        ("", None),
    ];
    for (text, want) in cases {
        assert_eq!(number(text), *want, "{text}");
    }
    assert_eq!(exact("1.5s"), Some(value::Exact::Finite(15_000_000_000, -1)));
}

#[test]
fn values_are_ordered_by_class_then_value() {
    let ascending = [
        "",
        "-5",
        "0",
        "1",
        "1.5",
        "9",
        "10",
        "20KB",
        "1s",
        "10s",
        "1m",
        "2020-01-01T00:00:00Z",
        "9.0.0.1",
        "10.0.0.1",
        "1a",
        "B",
        "a",
        "file2",
        "file10",
    ];
    for pair in ascending.windows(2) {
        assert_eq!(compare(pair[0], pair[1]), Ordering::Less, "{pair:?}");
        assert_eq!(compare(pair[1], pair[0]), Ordering::Greater, "{pair:?}");
    }
    assert_eq!(compare("90s", "1m30s"), Ordering::Equal);
    assert_eq!(compare("9007199254740993", "9007199254740992"), Ordering::Greater);
}

#[test]
fn times_cover_their_unit() {
    let day = 86_400_000_000_000;
    let leap = rfc3339("2024-02-29T00:00:00Z").unwrap();
    assert_eq!(covered("2024-02-29Z", Clock::UTC), Some((leap, leap + day - 1, false)));
    assert_eq!(covered("2024-02", Clock::UTC).unwrap().1, leap + day - 1);
    assert_eq!(covered("2024-02-29T01:00:00+01:00", Clock::UTC).unwrap().0, leap);
    assert_eq!(covered("2024-02-29T00:00:00.123Z", Clock::UTC).unwrap().1, leap + 123_999_999);
    for text in ["2024-02-29T23:59:59.999999999Z", "1969-12-31T23:59:59.5Z", "2100-03-01T00:00:00Z"]
    {
        assert_eq!(print_time(rfc3339(text).unwrap()), text);
    }
    assert_eq!(rfc3339("2024-02-29"), None);
    assert_eq!(rfc3339("2024-02-29T00:00:00"), None);
}
