//! One predicate on one column, by the column's form.
//!
//! Constants are judged once and dictionaries once per value. On text the needle is searched in
//! the bytes of all rows at once, and only hits are looked at; sparse selections go row by row.

use std::sync::Arc;

use aho_corasick::AhoCorasick;

use super::phrase::{FoldedPhrase, Phrase};
use super::predicate::{RegexPredicate, ValuePredicate};
use crate::codec::Bitmap;
use crate::query::column::{Column, push_int};
use crate::record::{TextVec, parse_canonical_int};

/// Dictionaries that a leaf remembers at most.
const CACHED_DICTIONARIES: usize = 16;

/// Answers of one predicate for the values of dictionaries.
#[derive(Debug, Default)]
pub(crate) struct DictionaryCache {
    entries: Vec<(Arc<TextVec>, Vec<Answer>)>,
    literals: Option<Option<AhoCorasick>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    Unknown,
    No,
    Yes,
}

impl DictionaryCache {
    fn answers(&mut self, dictionary: &Arc<TextVec>) -> &mut [Answer] {
        let known = self.entries.iter().position(|(d, _)| Arc::ptr_eq(d, dictionary));
        let at = known.unwrap_or_else(|| {
            if self.entries.len() >= CACHED_DICTIONARIES {
                self.entries.remove(0);
            }
            self.entries.push((dictionary.clone(), vec![Answer::Unknown; dictionary.len()]));
            self.entries.len() - 1
        });
        #[expect(clippy::indexing_slicing, reason = "found or pushed above")]
        &mut self.entries[at].1
    }
}

/// What the predicate says of a value of a dictionary, found out once.
#[inline]
fn answer(
    answers: &mut [Answer],
    code: u32,
    dictionary: &TextVec,
    predicate: &ValuePredicate,
) -> bool {
    match answers.get_mut(code as usize) {
        Some(Answer::No) => false,
        Some(Answer::Yes) => true,
        Some(unknown) => {
            let yes = predicate.matches(dictionary.get(code as usize));
            *unknown = if yes { Answer::Yes } else { Answer::No };
            yes
        }
        None => predicate.matches(b""),
    }
}

/// Takes the rows whose value does not meet the predicate out of `selection`.
pub(crate) fn apply(
    predicate: &ValuePredicate,
    column: &Column,
    selection: &mut Bitmap,
    cache: &mut DictionaryCache,
) {
    match column {
        Column::Const(value) => {
            if !predicate.matches(value) {
                selection.clear_all();
            }
        }
        Column::Codes { codes, dictionary } => {
            let answers = cache.answers(dictionary);
            selection.retain(|row| {
                let code = codes.get(row).copied().unwrap_or(u32::MAX);
                answer(answers, code, dictionary, predicate)
            });
        }
        Column::Runs { ends, codes, dictionary } => {
            let answers = cache.answers(dictionary);
            let mut start = 0;
            for (end, code) in ends.iter().zip(codes.iter()) {
                let end = *end as usize;
                if selection.any_range(start..end) && !answer(answers, *code, dictionary, predicate)
                {
                    selection.clear_range(start..end);
                }
                start = end;
            }
        }
        Column::Text(values) => apply_text(predicate, values, selection, cache),
        Column::Ints { values, absent, exceptions } => {
            let ints = Ints { values, absent: absent.as_ref(), exceptions };
            ints.apply(predicate, selection);
        }
        Column::Times(_) => {
            let mut scratch = Vec::new();
            selection.retain(|row| predicate.matches(column.value(row, &mut scratch)));
        }
    }
}

/// As [`apply`], for texts.
pub(super) fn apply_text(
    predicate: &ValuePredicate,
    values: &TextVec,
    selection: &mut Bitmap,
    cache: &mut DictionaryCache,
) {
    match predicate {
        ValuePredicate::Phrase(phrase) => apply_phrase(phrase, values, selection),
        ValuePredicate::Folded(phrase) => apply_folded(phrase, values, selection),
        ValuePredicate::AllPhrases(all) => {
            for phrase in all {
                if !selection.any() {
                    break;
                }
                apply_phrase(phrase, values, selection);
            }
        }
        ValuePredicate::Sequence(all) => {
            if let Some(first) = all.first() {
                apply_phrase(first, values, selection);
            }
            selection.retain(|row| predicate.matches(values.get(row)));
        }
        ValuePredicate::Regex(regex) => apply_regex(regex, values, selection, cache),
        ValuePredicate::Pattern(pattern) => {
            if let Some(longest) = pattern.literals().max_by_key(|l| l.len()) {
                apply_phrase(&Phrase::substring(longest.as_bytes()), values, selection);
            }
            selection.retain(|row| predicate.matches(values.get(row)));
        }
        ValuePredicate::Empty | ValuePredicate::NonEmpty => {
            let wants_empty = matches!(predicate, ValuePredicate::Empty);
            selection.retain(|row| values.get(row).is_empty() == wants_empty);
        }
        _ => selection.retain(|row| predicate.matches(values.get(row))),
    }
}

/// Expressions with more literals are tried as they are: building the automaton would cost more.
const MOST_LITERALS: usize = 1_024;

/// Whether so many rows are left that searching all bytes at once is cheaper.
fn is_dense(selection: &Bitmap, values: &TextVec) -> bool {
    selection.count() * 4 >= values.len()
}

fn apply_phrase(phrase: &Phrase, values: &TextVec, selection: &mut Bitmap) {
    if !is_dense(selection, values) {
        return selection.retain(|row| phrase.find_end(values.get(row)).is_some());
    }
    let found = search(
        values,
        phrase.needle().len(),
        |bytes, from| phrase.next(bytes, from),
        |text, start| phrase.bounded(text, start),
    );
    selection.and(&found);
}

fn apply_folded(phrase: &FoldedPhrase, values: &TextVec, selection: &mut Bitmap) {
    if !is_dense(selection, values) || !values.bytes().is_ascii() {
        return selection.retain(|row| phrase.is_match(values.get(row)));
    }
    let found = search(
        values,
        phrase.needle().len(),
        |bytes, from| phrase.next_ascii(bytes, from),
        |text, start| phrase.bounded(text, start),
    );
    selection.and(&found);
}

fn apply_regex(
    predicate: &RegexPredicate,
    values: &TextVec,
    selection: &mut Bitmap,
    cache: &mut DictionaryCache,
) {
    match predicate.literals.as_slice() {
        [] => {}
        [one] => apply_phrase(&Phrase::substring(one), values, selection),
        many if many.len() <= MOST_LITERALS && is_dense(selection, values) => {
            let automaton = cache.literals.get_or_insert_with(|| AhoCorasick::new(many).ok());
            if let Some(automaton) = automaton {
                selection.and(&search_any(values, automaton));
            }
        }
        _ => {}
    }
    let regex = predicate.regex.meta();
    selection.retain(|row| regex.is_match(values.get(row)));
}

/// The rows in which a needle of `len` bytes stands and is accepted. `next` finds the needle in
/// the bytes of all rows; hits across the border of two rows are passed over.
pub(super) fn search(
    values: &TextVec,
    len: usize,
    next: impl Fn(&[u8], usize) -> Option<usize>,
    accept: impl Fn(&[u8], usize) -> bool,
) -> Bitmap {
    let bytes = values.bytes();
    let mut found = Bitmap::empty(values.len());
    let mut rows = RowCursor::new(values);
    let mut from = 0;
    while let Some(at) = next(bytes, from) {
        let Some((row, start, end)) = rows.row_at(at) else { break };
        let text = bytes.get(start..end).unwrap_or(&[]);
        if at + len <= end && accept(text, at - start) {
            found.set(row);
            from = end;
        } else {
            from = at + 1;
        }
    }
    found
}

/// The rows that hold one of the automaton's needles.
fn search_any(values: &TextVec, automaton: &AhoCorasick) -> Bitmap {
    let bytes = values.bytes();
    let mut found = Bitmap::empty(values.len());
    let mut rows = RowCursor::new(values);
    let mut from = 0;
    while let Some(hit) = automaton.find(aho_corasick::Input::new(bytes).range(from..)) {
        let Some((row, _, end)) = rows.row_at(hit.start()) else { break };
        if hit.end() <= end {
            found.set(row);
            from = end;
        } else {
            from = hit.start() + 1;
        }
    }
    found
}

/// Finds the row of ever larger places in the bytes.
struct RowCursor<'a> {
    ends: &'a [u32],
    row: usize,
}

impl<'a> RowCursor<'a> {
    fn new(values: &'a TextVec) -> RowCursor<'a> {
        RowCursor { ends: values.ends(), row: 0 }
    }

    /// The row that holds byte `at`, and where it starts and ends.
    fn row_at(&mut self, at: usize) -> Option<(usize, usize, usize)> {
        let rest = self.ends.get(self.row..)?;
        self.row += rest.partition_point(|&end| end as usize <= at);
        let end = *self.ends.get(self.row)? as usize;
        let before = self.row.checked_sub(1).and_then(|r| self.ends.get(r));
        Some((self.row, before.map_or(0, |&e| e as usize), end))
    }
}

/// A column of integers.
struct Ints<'a> {
    values: &'a [i64],
    absent: Option<&'a Bitmap>,
    exceptions: &'a [(u32, Box<[u8]>)],
}

impl Ints<'_> {
    fn apply(&self, predicate: &ValuePredicate, selection: &mut Bitmap) {
        match predicate {
            ValuePredicate::NonEmpty => self.keep(predicate, selection, |_| true),
            ValuePredicate::Empty => self.keep(predicate, selection, |_| false),
            // The text of an integer is neither an address nor an array.
            ValuePredicate::Ipv4(..) | ValuePredicate::Ipv6(..) | ValuePredicate::JsonArray(_) => {
                self.keep(predicate, selection, |_| false);
            }
            ValuePredicate::Exact(text) => match parse_canonical_int(text) {
                Some(wanted) => self.keep(predicate, selection, |n| n == wanted),
                None => self.keep(predicate, selection, |_| false),
            },
            ValuePredicate::Numbers(range) => {
                let (least, most) = range.ints().into_inner();
                self.keep(predicate, selection, |n| (n >= least) & (n <= most));
            }
            ValuePredicate::Phrase(phrase) if phrase.bounds() == (true, true) => {
                // Digits with boundaries on both sides are the whole number but for its sign.
                match parse_magnitude(phrase.needle()) {
                    Some(wanted) => {
                        self.keep(predicate, selection, |n| n.unsigned_abs() == wanted);
                    }
                    None => self.keep(predicate, selection, |_| false),
                }
            }
            _ => {
                let mut text = Vec::new();
                self.retain(predicate, selection, |n| {
                    text.clear();
                    push_int(&mut text, n);
                    predicate.matches(&text)
                });
            }
        }
    }

    /// As [`retain`](Ints::retain), for a test that costs next to nothing: made of all values.
    fn keep(
        &self,
        predicate: &ValuePredicate,
        selection: &mut Bitmap,
        passes: impl Fn(i64) -> bool,
    ) {
        let mut passing = Bitmap::of_values(self.values, passes);
        for (row, text) in self.exceptions {
            let row = *row as usize;
            passing.clear_range(row..row + 1);
            if predicate.matches(text) {
                passing.set(row);
            }
        }
        match self.absent {
            Some(absent) if predicate.matches(b"") => passing.or(absent),
            Some(absent) => passing.and_not(absent),
            None => {}
        }
        selection.and(&passing);
    }

    /// Keeps the rows that pass; `passes` judges integers, the predicate itself all other texts.
    fn retain(
        &self,
        predicate: &ValuePredicate,
        selection: &mut Bitmap,
        mut passes: impl FnMut(i64) -> bool,
    ) {
        if self.absent.is_none() && self.exceptions.is_empty() {
            return selection.retain(|row| self.values.get(row).is_some_and(|&n| passes(n)));
        }
        let mut exceptions = self.exceptions.iter().peekable();
        selection.retain(|row| {
            if self.absent.is_some_and(|a| a.get(row)) {
                return predicate.matches(b"");
            }
            while exceptions.next_if(|(r, _)| (*r as usize) < row).is_some() {}
            if let Some((_, text)) = exceptions.next_if(|(r, _)| *r as usize == row) {
                return predicate.matches(text);
            }
            self.values.get(row).is_some_and(|&n| passes(n))
        });
    }
}

/// The value of canonical digits without a sign.
fn parse_magnitude(digits: &[u8]) -> Option<u64> {
    if !digits.iter().all(u8::is_ascii_digit) || digits.len() > 1 && digits.starts_with(b"0") {
        return None;
    }
    std::str::from_utf8(digits).ok()?.parse().ok()
}
