//! Texts for property tests that sit on the borders where filters go wrong.

use proptest::prelude::*;

use crate::query::ast::{
    CompareOp, FieldPattern, Filter, MatchAnchor, MatchPart, MatchPattern, Number, Predicate,
    RangeBound, ValueSet,
};
use crate::query::regex::Regex;

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
            "2024-01-01T00:00:00Z", "2024-01-01T02:00:00.5+02:00", "9007199254740992",
            "9007199254740993", "9007199254740993.5", "18446744073709551617", "1e30",
            "2024-01-01T00:00:00.000000001Z", "0.1", "-9007199254740993", "[\"a\",1]", "[1,2", "{}",
        ]).prop_map(str::to_owned),
        4 => adversarial_text(),
    ]
}

/// A needle: a text of its own or a value.
fn needle() -> impl Strategy<Value = String> {
    prop_oneof![adversarial_text(), log_value()]
}

fn needles() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec(needle(), 0..9)
}

fn op() -> impl Strategy<Value = CompareOp> {
    use CompareOp::*;
    prop::sample::select(vec![Greater, GreaterOrEqual, Less, LessOrEqual])
}

fn bound() -> impl Strategy<Value = RangeBound> {
    let text = prop::sample::select(vec![
        "-inf",
        "-9007199254740992",
        "-3",
        "0",
        "0.1",
        "1",
        "12",
        "1000",
        "1h",
        "10KB",
        "9007199254740992",
        "9007199254740993",
        "2024-01-01T00:00:00Z",
        "inf",
    ]);
    (text, any::<bool>()).prop_map(|(text, inclusive)| RangeBound {
        value: Number { text: text.to_owned() },
        inclusive,
    })
}

/// Expressions of literals that stand in the texts, with all that can be around them.
fn regex() -> impl Strategy<Value = Regex> {
    let literal = prop::sample::select(vec!["a", "err", "error", "1", "x", "Error", "-", "ab"]);
    let leaf = prop_oneof![
        4 => literal.prop_map(str::to_owned),
        1 => prop::sample::select(vec![".*", r"\d+", r"\b", "^", "$", "[ab]", r"\w", "(?i)a"])
            .prop_map(str::to_owned),
    ];
    let source = leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 1..4).prop_map(|v| v.concat()),
            prop::collection::vec(inner.clone(), 1..4).prop_map(|v| format!("({})", v.join("|"))),
            (inner, prop::sample::select(vec!["?", "*", "+", "{2}"]))
                .prop_map(|(sub, repeat)| format!("(?:{sub}){repeat}")),
        ]
    });
    source.prop_filter_map("refused", |source| Regex::new(&source).ok())
}

fn pattern() -> impl Strategy<Value = MatchPattern> {
    let part = prop_oneof![
        "[ab:. ]{1,2}".prop_map(MatchPart::Literal),
        Just(MatchPart::Number),
        Just(MatchPart::Ip4),
        Just(MatchPart::Word),
    ];
    let anchor = prop::sample::select(vec![
        MatchAnchor::Anywhere,
        MatchAnchor::Full,
        MatchAnchor::Start,
        MatchAnchor::End,
    ]);
    (prop::collection::vec(part, 0..3), anchor).prop_map(|(parts, anchor)| MatchPattern {
        source: String::new(),
        anchor,
        parts,
    })
}

/// Conditions on a value that the naive evaluator knows and takes for the same.
pub(crate) fn common_predicate() -> impl Strategy<Value = Predicate> {
    // What an empty phrase means in a list is nowhere said.
    let phrases = || {
        needles().prop_map(|mut v| {
            v.retain(|n| !n.is_empty());
            v
        })
    };
    prop_oneof![
        Just(Predicate::Any),
        needle().prop_map(Predicate::Phrase),
        needle().prop_map(|p| match p.is_empty() {
            true => Predicate::Any,
            false => Predicate::Prefix(p),
        }),
        needle().prop_map(Predicate::Substring),
        needle().prop_map(Predicate::PhraseFold),
        needle().prop_map(Predicate::PrefixFold),
        needle().prop_map(Predicate::Exact),
        needle().prop_map(Predicate::ExactPrefix),
        regex().prop_map(Predicate::Regex),
        needles().prop_map(|v| Predicate::In(ValueSet::List(v))),
        phrases().prop_map(|v| Predicate::ContainsAll(ValueSet::List(v))),
        phrases().prop_map(|v| Predicate::ContainsAny(ValueSet::List(v))),
        needles().prop_map(Predicate::Sequence),
        (op(), needle()).prop_map(|(op, value)| Predicate::Compare { op, value }),
        (bound(), bound()).prop_map(|(min, max)| Predicate::Range { min, max }),
        (needle(), needle()).prop_map(|(min, max)| Predicate::StringRange { min, max }),
        (0u64..6, 0u64..9).prop_map(|(min, max)| Predicate::LenRange { min, max }),
        Just(Predicate::Ipv4Range { min: 0x0a00_0000, max: 0x0aff_ffff }),
    ]
}

/// Any condition on a value but those that need an expression or a subquery.
pub(crate) fn predicate() -> impl Strategy<Value = Predicate> {
    let rare = prop_oneof![
        Just(Predicate::Ipv6Range { min: 1, max: 1 << 127 }),
        pattern().prop_map(Predicate::PatternMatch),
        needles().prop_map(Predicate::JsonArrayContainsAny),
        needles().prop_map(|v| Predicate::ContainsAny(ValueSet::List(v))),
    ];
    prop_oneof![6 => common_predicate(), 1 => rare]
}

/// A condition on one field.
pub(crate) fn field(name: &str, predicate: Predicate) -> Filter {
    Filter::Field { field: FieldPattern::Name(name.to_owned()), predicate }
}

/// A tree of filters on some of `names`, and on the fields that begin with `a`.
pub(crate) fn filter_tree(names: &'static [&'static str]) -> impl Strategy<Value = Filter> {
    let leaf = prop_oneof![
        6 => (prop::sample::select(names), common_predicate()).prop_map(|(n, p)| field(n, p)),
        1 => common_predicate().prop_map(|predicate| Filter::Field {
            field: FieldPattern::Prefix("a".to_owned()),
            predicate,
        }),
        1 => Just(Filter::All),
    ];
    leaf.prop_recursive(4, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Filter::And),
            prop::collection::vec(inner.clone(), 0..4).prop_map(Filter::Or),
            inner.prop_map(|f| Filter::Not(Box::new(f))),
        ]
    })
}
