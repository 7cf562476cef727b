//! Texts of times and durations.

use crate::record::{
    Timestamp, Zone, parse_duration_nanos, parse_entry_time, parse_offset, parse_partial_time,
    parse_rfc3339, parse_unix, parse_utc_fixed, write_duration,
};

/// The last nanosecond covered may be this far behind the first: a year.
const SPAN_MAX: i128 = 366 * 86_400 * 1_000_000_000;

pub(super) fn run(text: &[u8]) {
    let full = parse_rfc3339(text);
    if let Some(time) = full {
        let printed = time.to_string();
        assert_eq!(Timestamp::parse(&printed), Some(time), "{printed}");
        assert_eq!(parse_entry_time(text, 0), Some(time), "a full time of an entry");
    }
    if let Some(time) = parse_utc_fixed(text) {
        assert_eq!(full, Some(time), "the quick way and the other");
    }
    for seconds in [0, 3_600, -19_800, i32::MAX, i32::MIN] {
        let time = parse_entry_time(text, seconds);
        let printed = time.map(|t| t.to_string());
        assert_eq!(printed.and_then(|p| Timestamp::parse(&p)), time, "a time prints");
    }
    for zone in [Zone::UTC, Zone::Fixed(7_200), Zone::Fixed(-64_800)] {
        if let Some(span) = parse_partial_time(text, &zone) {
            let len = i128::from(span.end.as_nanos()) - i128::from(span.start.as_nanos());
            assert!((0..SPAN_MAX).contains(&len), "a span of {len} ns");
        }
    }
    let _ = (parse_unix(text), parse_offset(text));
    if let Some(nanos) = parse_duration_nanos(text) {
        let mut printed = Vec::new();
        write_duration(&mut printed, nanos);
        let zero = printed == b"0";
        assert!(zero || parse_duration_nanos(&printed) == Some(nanos), "{nanos} ns");
    }
}

pub(super) fn seeds() -> Vec<Vec<u8>> {
    let texts = [
        "2025-03-04T05:06:07.89Z",
        "2025-03-04T05:06:07.123456789+02:30",
        "1677-09-21T00:12:43.145224192Z",
        "2262-04-11T23:47:16.854775807Z",
        "2024-02-29 23:59:60",
        "2024-02",
        "2024-12-31T23",
        "2024-10-04T05:06-0730",
        "1728000000",
        "1728000000.123",
        "1728000000123456789",
        "-1.5e9",
        "1h5m30.5s",
        "-2w3d",
        "123ms456us789ns",
        "1y",
        "9223372036854775807ns",
    ];
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}
