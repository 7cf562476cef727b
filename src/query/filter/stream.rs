//! Stream selectors, judged on the canonical text of a stream or on its labels.

use std::borrow::Cow;

use crate::query::ast::{LabelFilter, LabelOp, StreamSelector};

/// Whether a stream given by its canonical text is selected.
pub(crate) fn matches_text(selector: &StreamSelector, stream: &[u8]) -> bool {
    let labels = parse_labels(stream);
    let get = |name: &str| {
        let label = labels.iter().find(|(n, _)| *n == name.as_bytes());
        label.map_or(Cow::Borrowed(&b""[..]), |(_, v)| v.clone())
    };
    matches_labels(selector, get)
}

/// Whether a stream is selected whose labels `get` gives; an absent label is empty.
pub(crate) fn matches_labels<'a>(
    selector: &StreamSelector,
    get: impl Fn(&str) -> Cow<'a, [u8]>,
) -> bool {
    selector.alternatives.iter().any(|all| all.iter().all(|f| matches_label(f, &get(&f.label))))
}

/// Whether the value of a label passes its filter.
pub(crate) fn matches_label(filter: &LabelFilter, value: &[u8]) -> bool {
    let is_in = |values: &[String]| values.iter().any(|v| v == "*" || v.as_bytes() == value);
    match &filter.op {
        LabelOp::Equal(v) => v.as_bytes() == value,
        LabelOp::NotEqual(v) => v.as_bytes() != value,
        LabelOp::Matches(re) => re.meta().is_match(value),
        LabelOp::NotMatches(re) => !re.meta().is_match(value),
        LabelOp::In(values) => is_in(values),
        LabelOp::NotIn(values) => !is_in(values),
    }
}

/// Takes `{a="x",b="y"}` apart; text that is no such list has no labels from there on.
fn parse_labels(stream: &[u8]) -> Vec<(&[u8], Cow<'_, [u8]>)> {
    let mut out = Vec::new();
    let mut rest = stream.strip_prefix(b"{").unwrap_or(&[]);
    while let Some(at) = memchr::memmem::find(rest, b"=\"") {
        let Some((name, value)) = rest.split_at_checked(at) else { break };
        let value = value.get(2..).unwrap_or(&[]);
        let Some(len) = value_len(value) else { break };
        let raw = value.get(..len).unwrap_or(&[]);
        out.push((name, unescape(raw)));
        rest = match value.get(len..) {
            Some([b'"', b',', more @ ..]) => more,
            _ => break,
        };
    }
    out
}

/// The length of an escaped value up to its closing quote.
fn value_len(text: &[u8]) -> Option<usize> {
    let mut i = 0;
    loop {
        match *text.get(i)? {
            b'"' => return Some(i),
            b'\\' => i += 2,
            _ => i += 1,
        }
    }
}

fn unescape(raw: &[u8]) -> Cow<'_, [u8]> {
    if !raw.contains(&b'\\') {
        return Cow::Borrowed(raw);
    }
    let mut out = Vec::with_capacity(raw.len());
    let mut bytes = raw.iter();
    while let Some(&b) = bytes.next() {
        match b {
            b'\\' => out.extend(bytes.next()),
            _ => out.push(b),
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::record::StreamKey;

    fn equal(label: &str, value: &str) -> LabelFilter {
        LabelFilter { label: label.to_owned(), op: LabelOp::Equal(value.to_owned()) }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]
        #[test]
        fn canonical_text_gives_the_labels_back(
            labels in prop::collection::vec(("[a-c]", "[\"\\\\,{}=a]{0,4}"), 0..4),
        ) {
            let pairs = labels.iter().map(|(n, v)| (n.clone(), v.as_bytes().to_vec()));
            let key = StreamKey::new(pairs);
            let text = key.text();
            for name in ["a", "b", "c", "d"] {
                let value = String::from_utf8(key.get(name).to_vec()).unwrap();
                let yes = StreamSelector { alternatives: vec![vec![equal(name, &value)]] };
                prop_assert!(matches_text(&yes, &text), "{:?} {}", text, name);
                let no = StreamSelector { alternatives: vec![vec![equal(name, &(value + "x"))]] };
                prop_assert!(!matches_text(&no, &text));
            }
        }
    }

    #[test]
    fn absent_labels_are_empty_and_no_alternative_matches_nothing() {
        let absent = StreamSelector { alternatives: vec![vec![equal("z", "")]] };
        assert!(matches_text(&absent, b"{}"));
        assert!(matches_text(&absent, br#"{a="x"}"#));
        assert!(!matches_text(&StreamSelector { alternatives: vec![] }, b"{}"));
        let or =
            StreamSelector { alternatives: vec![vec![equal("a", "y")], vec![equal("a", "x")]] };
        assert!(matches_text(&or, br#"{a="x"}"#));
        let any = LabelOp::In(vec!["*".to_owned()]);
        let any = LabelFilter { label: "q".to_owned(), op: any };
        assert!(matches_label(&any, b"x"));
    }
}
