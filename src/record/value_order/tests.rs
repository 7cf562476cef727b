use proptest::prelude::*;
use proptest::strategy::ValueTree;

use super::*;

/// Tokens of a text, whose lexicographic order is the natural one.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Token {
    Run(Vec<u8>, usize),
    Byte(u8),
}

fn naive_natural(a: &[u8], b: &[u8]) -> Ordering {
    fn tokens(mut text: &[u8]) -> Vec<Token> {
        let mut out = Vec::new();
        while let Some(&first) = text.first() {
            let run = text.iter().take_while(|b| b.is_ascii_digit()).count();
            if run == 0 {
                out.push(Token::Byte(first));
                text = &text[1..];
            } else {
                // Padded to one length, so that bytes order as numbers.
                let mut padded = vec![b'0'; 80 - run];
                padded.extend_from_slice(&text[..run]);
                out.push(Token::Run(padded, run));
                text = &text[run..];
            }
        }
        out
    }
    tokens(a).cmp(&tokens(b))
}

fn assert_ascending(values: &[&str]) {
    for (i, a) in values.iter().enumerate() {
        for (j, b) in values.iter().enumerate() {
            let got = cmp_values(a.as_bytes(), b.as_bytes());
            assert_eq!(got, i.cmp(&j), "{a:?} and {b:?}");
        }
    }
}

#[test]
fn classes_and_values_ascend() {
    assert_ascending(&[
        "",
        "-inf",
        "-1e400",
        "-123456789012345678901234567890123456789012",
        "-9007199254740993",
        "-9007199254740992",
        "-1.5",
        "-1e-400",
        "0",
        "1e-400",
        "0.1",
        "0.10000000000000000000000000000000000000000000001",
        "3ns",
        "9",
        "0xA",
        "9007199254740992",
        "9007199254740993",
        "9007199254740993.5",
        "1.7e38",
        "123456789012345678901234567890123456789012",
        "123456789012345678901234567890123456789012.5",
        "123456789012345678901234567890123456789013",
        "1e400",
        "inf",
        "1969-12-31T23:59:59Z",
        "2024-01-01T00:00:00Z",
        "1.2.3.4",
        "255.0.0.1",
        "9a",
        "10a",
        " x",
        "B",
        "NaN",
        "a",
        "a7",
        "a007",
        "a8",
        "ab",
        "file2",
        "file2b",
        "file10",
        "\u{e9}",
    ]);
}

#[test]
fn spellings_of_one_value_tie() {
    for group in [
        &["90s", "1m30s", "90000000000", "9e10", "90_000_000_000"][..],
        &["1", "01", "1.0", "1.", "+1", "0x1", "1B", "1ns", "1e0"],
        &["0", "-0", "0.000", "0s", "0B", "0e5"],
        &["0.1", ".1", "0.10", "1e-1", "0.1000000000000000000000000000000000000000000000000"],
        &["inf", "+Inf", "Infinity"],
        &["2024-01-01T00:00:00Z", "2024-01-01T01:00:00+01:00", "2024-01-01T00:00:00.000Z"],
        &["192.168.1.1", "192.168.001.1"],
        &[
            "123456789012345678901234567890123456789012",
            "123456789012345678901234567890123456789012.0",
        ],
        &["100000000000000000000000000000000000000000", "1e41", "0.1e42"],
    ] {
        for a in group {
            for b in group {
                let got = cmp_values(a.as_bytes(), b.as_bytes());
                assert_eq!(got, Ordering::Equal, "{a} and {b}");
                assert_eq!(cmp_values_then_bytes(a.as_bytes(), b.as_bytes()), a.cmp(b));
            }
        }
    }
}

/// Values near each other in every class, so that ties and near misses are common.
fn value() -> impl Strategy<Value = String> {
    prop_oneof![
        1 => Just(String::new()),
        4 => "-?[0-9]{1,3}",
        3 => "-?[0-9]{1,2}\\.[0-9]{1,3}",
        2 => "-?900719925474099[0-9](\\.[05])?",
        2 => "-?12345678901234567890123456789012345678[0-9]{1,6}(\\.[05])?",
        2 => "-?[0-9]{1,2}(\\.5)?(ns|\u{b5}s|ms|s|m|h|KB|KiB|B)",
        2 => "[+-]?(0x[0-9a-f]{1,2}|0b[01]{1,4}|[0-9]e[+-]?[0-9]{1,3}|inf)",
        2 => "202[45]-01-0[12]T0[01]:00:00(Z|\\+01:00)",
        2 => "[0-9]{1,2}\\.0\\.0\\.[0-9]{1,2}",
        4 => "[a0-9 .]{1,6}",
        2 => "(a|b|file|v1\\.)[0-9]{0,3}[ab]?",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn the_order_is_total(a in value(), b in value(), c in value()) {
        let (a, b, c) = (a.as_bytes(), b.as_bytes(), c.as_bytes());
        prop_assert_eq!(cmp_values(a, b), cmp_values(b, a).reverse());
        prop_assert_eq!(cmp_values(a, a), Ordering::Equal);
        let (ab, bc, ac) = (cmp_values(a, b), cmp_values(b, c), cmp_values(a, c));
        if ab != Ordering::Greater && bc != Ordering::Greater {
            prop_assert_ne!(ac, Ordering::Greater);
            if ab == Ordering::Less || bc == Ordering::Less {
                prop_assert_eq!(ac, Ordering::Less);
            }
        }
    }

    #[test]
    fn natural_order_is_that_of_tokens(a in "[a01 \u{e9}]{0,8}", b in "[a01 \u{e9}]{0,8}") {
        let (a, b) = (a.as_bytes(), b.as_bytes());
        prop_assert_eq!(cmp_natural(a, b), naive_natural(a, b));
        let keys = text_bits(a).cmp(&text_bits(b));
        prop_assert!(keys == Ordering::Equal || keys == naive_natural(a, b));
    }

    #[test]
    fn keys_agree_with_values(a in value(), b in value()) {
        let (x, y) = (SortKey::of(a.as_bytes()), SortKey::of(b.as_bytes()));
        if let Some(order) = x.compare_keys(y) {
            prop_assert_eq!(order, cmp_values(a.as_bytes(), b.as_bytes()));
        }
    }
}

#[test]
fn sorting_many_mixed_values_does_not_panic() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut values: Vec<String> = (0..5_000)
        .map(|_| value().new_tree(&mut runner).map(|tree| tree.current()).unwrap())
        .collect();
    values.sort_by(|a, b| cmp_values(a.as_bytes(), b.as_bytes()));
    assert!(
        values.is_sorted_by(|a, b| { cmp_values(a.as_bytes(), b.as_bytes()) != Ordering::Greater })
    );
}
