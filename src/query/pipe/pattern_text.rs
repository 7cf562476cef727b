//! `patterns`: what all messages of one kind have in common, as text for `pattern_match`.

use super::collapse::{CHUNK, collapse_nums, pass_over};
use crate::query::ast::MatchPart;
use crate::query::filter::{first_char, is_word_char, numbers_end};

/// Appends the text with its numbers replaced by `<N>`, as `collapse_nums` does, and by `<W>` each
/// word in which digits are left.
pub(crate) fn mask_words(value: &[u8], out: &mut Vec<u8>) {
    let mut at = 0;
    // Up to here every word is looked at.
    let mut busy = 0;
    while at < value.len() {
        if at >= busy {
            let numbers = pass_over(value, at);
            busy = numbers + CHUNK;
            // All before the last word that may reach into what was not passed over stays.
            let passed = value.get(at..numbers).unwrap_or(&[]);
            let plain = passed.iter().rposition(|b| class(*b) == 0).map_or(0, |i| i + 1);
            out.extend_from_slice(passed.get(..plain).unwrap_or(&[]));
            at += plain;
        }
        let rest = value.get(at..).unwrap_or(&[]);
        let (between, tail) = rest.split_at(length_where(rest, false));
        let (word, _) = tail.split_at(length_where(tail, true));
        out.extend_from_slice(between);
        push_word(word, out);
        at += between.len() + word.len();
    }
}

const WORD: u8 = 1;
const DIGIT: u8 = 2;
const HEX: u8 = 4;
const WIDE: u8 = 8;

/// What each byte is.
const CLASSES: [u8; 256] = {
    let mut classes = [WIDE; 256];
    let mut b = 0u8;
    while b < 128 {
        #[expect(clippy::indexing_slicing, reason = "an array of 256, indexed by a byte")]
        let to = &mut classes[b as usize];
        *to = match b {
            b'0'..=b'9' => WORD | DIGIT | HEX,
            b'a'..=b'f' | b'A'..=b'F' => WORD | HEX,
            b'g'..=b'z' | b'G'..=b'Z' | b'_' => WORD,
            _ => 0,
        };
        b += 1;
    }
    classes
};

#[inline]
fn class(b: u8) -> u8 {
    CLASSES.get(usize::from(b)).copied().unwrap_or(0)
}

/// How far the text consists of word characters, or of anything else.
fn length_where(text: &[u8], word: bool) -> usize {
    let mut at = 0;
    while let Some(b) = text.get(at) {
        let class = class(*b);
        let (is_word, len) = if class & WIDE == 0 {
            (class & WORD != 0, 1)
        } else {
            let next = first_char(text.get(at..).unwrap_or(&[]));
            next.map_or((false, 1), |(c, len)| (is_word_char(c), len))
        };
        if is_word != word {
            break;
        }
        at += len;
    }
    at
}

/// The fewest letters that can be a number in hex digits.
const HEX_LETTERS: u32 = 4;

/// Whether a word may hold a number.
fn may_hold_number(word: &[u8]) -> bool {
    let mut hex = 0;
    word.iter().any(|b| {
        let class = class(*b);
        hex = if class & HEX == 0 { 0 } else { hex + 1 };
        class & DIGIT != 0 || hex >= HEX_LETTERS
    })
}

fn push_word(word: &[u8], out: &mut Vec<u8>) {
    if !may_hold_number(word) {
        out.extend_from_slice(word);
        return;
    }
    let start = out.len();
    collapse_nums(word, out);
    if out.get(start..).is_some_and(|made| made.iter().any(u8::is_ascii_digit)) {
        out.truncate(start);
        out.extend_from_slice(b"<W>");
    }
}

const NUMBER: &[u8] = b"<N>";

/// Groups of numbers, the longer ones first where one begins as another does.
static GROUPS: [MatchPart; 5] =
    [MatchPart::DateTime, MatchPart::Uuid, MatchPart::Ip4, MatchPart::Time, MatchPart::Date];

/// Appends the text, whose numbers are replaced, with groups of them named: those that the
/// placeholders of `pattern_match` take for one, from the left.
pub(crate) fn name_places(masked: &[u8], out: &mut Vec<u8>) {
    let mut done = 0;
    let numbers = memchr::memmem::find_iter(masked, NUMBER);
    for start in numbers {
        // It may belong to the group before.
        if start < done {
            continue;
        }
        let (name, end) = place_at(masked, start);
        out.extend_from_slice(masked.get(done..start).unwrap_or(&[]));
        out.extend_from_slice(name);
        done = end;
    }
    out.extend_from_slice(masked.get(done..).unwrap_or(&[]));
}

/// The name of what begins at a number, and where it ends.
fn place_at(text: &[u8], at: usize) -> (&'static [u8], usize) {
    let number =
        |text: &[u8], at: usize| text.get(at..)?.starts_with(NUMBER).then_some(at + NUMBER.len());
    let end = |group: &MatchPart| numbers_end(group, text, at, number);
    let found = GROUPS.iter().find_map(|group| Some((group.text().as_bytes(), end(group)?)));
    found.unwrap_or((NUMBER, at + NUMBER.len()))
}

/// Appends the pattern of a message.
pub(crate) fn push_pattern(message: &[u8], out: &mut Vec<u8>) {
    let mut masked = Vec::with_capacity(message.len());
    mask_words(message, &mut masked);
    name_places(&masked, out);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::codec::Bitmap;
    use crate::query::Query;
    use crate::query::batch::Batch;
    use crate::query::column::Column;
    use crate::query::filter::CompiledFilter;
    use crate::query::testing::test_context;

    fn pattern(message: &str) -> String {
        let mut out = Vec::new();
        push_pattern(message.as_bytes(), &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn placeholders_stand_for_what_varies() {
        for (message, want) in [
            ("took 12ms", "took <N>ms"),
            ("GET /a/17?x=0x1f HTTP/1.1", "GET /a/<N>?x=<W> HTTP/<N>.<N>"),
            ("user u17_x in v2", "user <W> in v<N>"),
            ("id 2edfed59-3e98-4073-bbb2-28d321ca71a7!", "id <UUID>!"),
            ("id 2edfed59-dead-4073-bbb2-28d321ca71a7!", "id <UUID>!"),
            ("from 10.0.0.1:80 to 1.2.3.4.5", "from <IP4>:<N> to <IP4>.<N>"),
            ("2024-01-02T03:04:05.678Z up", "<DATETIME> up"),
            ("2024/01/02 03:04:05,678+02:00", "<DATETIME>"),
            ("03:04:05.1,2 on 2024-01-02", "<TIME>,<N> on <DATE>"),
            ("size 200x300, 7f3a9", "size <W>, <W>"),
            ("no digits at all", "no digits at all"),
            ("made of lead", "made of lead"),
            ("\u{e9}tat 1\u{e9}2 \u{ff11}", "\u{e9}tat <W> \u{ff11}"),
            ("", ""),
        ] {
            assert_eq!(pattern(message), want, "{message}");
        }
    }

    /// Whether the pattern of a message, put into `pattern_match_full`, finds the message.
    fn finds_itself(message: &str) -> bool {
        let pattern = serde_json::to_string(&pattern(message)).unwrap();
        let query: Query = format!("pattern_match_full({pattern})").parse().unwrap();
        test_context(|ctx| {
            let filter = CompiledFilter::compile(&query.filter, ctx).unwrap();
            let mut batch = Batch::new(1);
            batch.set_column("_msg".into(), Column::constant(message.as_bytes()));
            let mut selection = Bitmap::full(1);
            filter.eval(&batch, &mut selection).unwrap();
            selection.any()
        })
    }

    const PIECES: [&str; 29] = [
        " ",
        "-",
        ".",
        ":",
        "/",
        ",",
        "T",
        "Z",
        "+",
        "=",
        "_",
        "x",
        "v",
        "12",
        "7",
        "dead",
        "ab",
        "a1b2",
        "word",
        "\u{e9}",
        "ms",
        "1.2.3.4",
        "10:20:30",
        "2024-01-02",
        "\"",
        "'",
        "3f",
        "2edfed59-3e98-4073-bbb2-28d321ca71a7",
        "\u{2013}",
    ];

    proptest! {
        #[test]
        fn a_pattern_finds_its_messages(
            pieces in prop::collection::vec(prop::sample::select(PIECES.to_vec()), 0..12),
        ) {
            let message = pieces.concat();
            // `pattern_match` takes the start of such a word for the fraction of the time.
            let fractions = ["<TIME>.<W>", "<TIME>,<W>"];
            let is_apart = |of: &str| !pattern(&message).contains(of);
            prop_assume!(fractions.into_iter().all(is_apart));
            prop_assert!(finds_itself(&message), "{} {}", message, pattern(&message));
        }
    }
}
