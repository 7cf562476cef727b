use super::Regex;

fn matches(pattern: &str, text: &str) -> bool {
    Regex::new(pattern).unwrap().is_match(text.as_bytes())
}

#[test]
fn re2_meaning() {
    for (pattern, text, expected) in [
        ("a.b", "a\nb", true),
        ("^b$", "a\nb", false),
        ("(?m)^b$", "a\nb", true),
        (r"\d", "\u{663}", false),
        (r"\d", "7", true),
        (r"^\w+$", "\u{e4}", false),
        (r"\bfau", "\u{e4}fault", true),
        (r"\Bult", "fault", true),
        (r"[\w-]+$", "a-b", true),
        (r"[a&&b]", "&", true),
        (r"[[a]", "[", true),
        (r"[]a]", "]", true),
        (r"[^]a]", "]", false),
        (r"[[:alpha:]_]", "_", true),
        (r"[[:nope]", "n", true),
        (r"a{,2}", "a{,2}", true),
        (r"a{2}", "aa", true),
        (r"x{y}", "x{y}", true),
        (r"\Q.*\E", "a.*b", true),
        (r"\Q.*\E", "ab", false),
        (r"\<", "<", true),
        (r"\101", "A", true),
        (r"\x41\x{42}", "AB", true),
        (r"\p{Cyrillic}", "\u{416}", true),
        (r"\p{^Cyrillic}", "\u{416}", false),
        (r"\pL", "x", true),
        (r"(?i)\x{434}", "\u{414}", true),
        (r"(?i)k", "\u{212a}", true),
        (r"(?P<n>a)|(?<m>b)", "b", true),
        ("a|", "z", true),
        ("[~]", "~", true),
        ("a-b]", "a-b]", true),
        ("^[+--1]$", "+", true),
        ("^[+--1]$", ",", true),
        ("^[+--1]$", "-", true),
        ("^[+--1]$", ".", false),
        (r"^[\w--a]$", "a", true),
        (r"^[\w--a]$", "=", true),
        (r"^[\w-a]$", "-", true),
        (r"^[[:word:]--a]$", ".", true),
        (r"^[\pL-x]$", "-", true),
        (r"^[\pL1]$", "\u{416}", true),
        (r"^[a-c-]$", "-", true),
        (r"^[\x41-\x43]$", "B", true),
        (r"^[ -~]+$", "a&&b~~", true),
    ] {
        assert_eq!(matches(pattern, text), expected, "{pattern} on {text:?}");
    }
}

#[test]
fn refused() {
    for pattern in [
        "(abc",
        "a{2,1}",
        "(?<=a)b",
        "(?!a)b",
        "(?=a)b",
        r"(a)\1",
        "*a",
        "[a--b]",
        "[",
        "a**",
        "a{3}{3}",
        "a+*",
        r"\y",
        r"\",
        "(?x) a",
        "(?u)a",
        "a{1001}",
        r"[\b]",
        "[z-a]",
        r"\C",
        "(?Pa)",
        "(((a{1000}){1000}){1000})",
    ] {
        assert!(Regex::new(pattern).is_err(), "{pattern}");
    }
}

#[test]
fn anchored_matches_whole_values() {
    let regex = Regex::anchored("a|bc").unwrap();
    assert!(regex.is_match(b"bc"));
    assert!(!regex.is_match(b"abc"));
    assert_eq!(regex.as_str(), "a|bc");
}

#[test]
fn values_may_be_any_bytes() {
    assert!(matches("x$", "x"));
    let regex = Regex::new("b$").unwrap();
    assert!(regex.is_match(b"\xff\xfeb"));
}

#[test]
fn empty_matches_are_between_characters() {
    let regex = Regex::new("x*").unwrap();
    let found = |text: &str| -> Vec<usize> {
        regex.meta().find_iter(text).map(|found| found.start()).collect()
    };
    assert_eq!(found("a\u{f6}x\u{65e5}"), [0, 1, 3, 7]);
}
