//! Texts for property tests that sit on the borders where filters go wrong.

use proptest::prelude::*;

/// Short texts of words, digits, punctuation, scripts and case oddities that often repeat.
pub(crate) fn adversarial_text() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "a",
        "b",
        "A",
        "ab",
        "error",
        "Error",
        "err",
        "1",
        "12",
        "0",
        "-",
        "_",
        ".",
        ":",
        " ",
        "/",
        "*",
        "\"",
        "[",
        "]",
        "\\",
        "\n",
        "<",
        ">",
        "\u{e4}",
        "\u{c4}",
        "\u{4e2d}\u{6587}",
        "\u{301}",
        "\u{bd}",
        "\u{130}",
        "\u{131}",
        "\u{212a}",
        "k",
        "i",
        "\u{1f600}",
        "\u{663}",
        "\u{3a3}",
        "\u{3c3}",
        "\u{3c2}",
        "\u{df}",
        "\u{1e9e}",
    ]);
    prop::collection::vec(piece, 0..8).prop_map(|v| v.concat())
}

/// Values as logs have them: numbers in several spellings, addresses, times, words, nothing.
pub(crate) fn log_value() -> impl Strategy<Value = String> {
    prop_oneof![
        2 => Just(String::new()),
        4 => (-200i64..2000).prop_map(|n| n.to_string()),
        1 => any::<i64>().prop_map(|n| n.to_string()),
        1 => (-50i32..50, 0u32..100).prop_map(|(a, b)| format!("{a}.{b}")),
        2 => prop::sample::select(vec![
            "007", "+1", "1e3", "1_000", "-0", "1.10", "1.1", "1h5m", "90s", "1m30s", "10KB",
            "1MiB", "0x1F", "NaN", "inf", "1,000", "12px", "100%", "1.2.3", "v1.2", "\u{663}",
            "10.0.0.1", "192.168.001.1", "255.255.255.255", "10.0.0.256", "2001:db8::1", "::1",
            "2024-01-01T00:00:00Z", "2024-01-01T02:00:00.5+02:00", "[\"a\",1]", "[1,2", "{}",
        ]).prop_map(str::to_owned),
        4 => adversarial_text(),
    ]
}
