//! What words a text must have to hold a needle.

use super::tokenizer::{WordClass, for_each_word, is_in_vocabulary, pieces, word_hash};
use crate::codec::Bitmap;

/// A text that is looked for in values.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Needle<'a> {
    /// The text; in lower case if case does not count.
    pub(crate) text: &'a [u8],
    /// Whether no word may go on to the left of it, to the right of it.
    pub(crate) bounds: (bool, bool),
    /// Whether case does not count.
    pub(crate) fold: bool,
}

/// A word, or a part of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WordPart<'a> {
    /// Its bytes; in lower case if case does not count.
    pub(crate) bytes: &'a [u8],
    /// Whether the word may go on to the left, to the right.
    pub(crate) open: (bool, bool),
    /// Whether case does not count.
    pub(crate) fold: bool,
}

impl WordPart<'_> {
    /// Whether it is a part of a word as the value spells it: there are characters that are no
    /// part of words, but whose lower-case letters are.
    fn is_certain(&self) -> bool {
        !self.fold || self.bytes.is_ascii()
    }
}

/// Something that every value has that holds a needle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WordNeed<'a> {
    /// This plain word.
    Plain(WordPart<'a>),
    /// This piece of a word with digits.
    Piece(WordPart<'a>),
    /// A plain word or a piece with this part.
    Either(WordPart<'a>),
    /// A word with digits of this hash.
    Digits(u64),
}

/// Where something may be: whether in the one place that was asked about, or in which of many.
pub(crate) trait Found: Sized {
    /// Whether it is in no place.
    fn is_nowhere(&self) -> bool;
    /// Whether it may be in every place.
    fn is_everywhere(&self) -> bool;
    /// Where both may be.
    fn both(self, other: Self) -> Self;
    /// Where one of them may be.
    fn either(self, other: Self) -> Self;
}

impl Found for bool {
    fn is_nowhere(&self) -> bool {
        !*self
    }

    fn is_everywhere(&self) -> bool {
        *self
    }

    fn both(self, other: bool) -> bool {
        self && other
    }

    fn either(self, other: bool) -> bool {
        self || other
    }
}

impl Found for Bitmap {
    fn is_nowhere(&self) -> bool {
        !self.any()
    }

    fn is_everywhere(&self) -> bool {
        self.all()
    }

    fn both(mut self, other: Bitmap) -> Bitmap {
        self.and(&other);
        self
    }

    fn either(mut self, other: Bitmap) -> Bitmap {
        self.or(&other);
        self
    }
}

/// Where all of `each` may be, or any of them; what cannot change that is not asked for. `None`
/// where nothing is known of one that counts.
pub(crate) fn found_all<F: Found, E>(
    each: impl IntoIterator<Item = Result<Option<F>, E>>,
) -> Result<Option<F>, E> {
    let mut all: Option<F> = None;
    for one in each {
        all = match (all, one?) {
            (Some(all), Some(one)) => Some(all.both(one)),
            (known, None) | (None, known) => known,
        };
        if all.as_ref().is_some_and(Found::is_nowhere) {
            break;
        }
    }
    Ok(all)
}

/// As [`found_all`], where one of `each` suffices.
pub(crate) fn found_any<F: Found, E>(
    each: impl IntoIterator<Item = Result<Option<F>, E>>,
) -> Result<Option<F>, E> {
    let mut any: Option<F> = None;
    for one in each {
        let Some(one) = one? else { return Ok(None) };
        let joined = match any {
            Some(any) => any.either(one),
            None => one,
        };
        if joined.is_everywhere() {
            return Ok(Some(joined));
        }
        any = Some(joined);
    }
    Ok(any)
}

/// A word that values may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Word<'a> {
    /// One with this part, of a class that is kept in vocabularies.
    With(WordPart<'a>),
    /// One with digits, of this hash.
    Hashed(u64),
}

impl<'a> Needle<'a> {
    /// Where the needle may stand; `has` says where words of a class are. `None` if it needs no
    /// words.
    pub(crate) fn found<F: Found, E>(
        &self,
        mut has: impl FnMut(WordClass, Word<'_>) -> Result<F, E>,
    ) -> Result<Option<F>, E> {
        let has = &mut has;
        found_all(self.needs().iter().map(|need| match *need {
            WordNeed::Plain(part) => has(WordClass::Plain, Word::With(part)).map(Some),
            WordNeed::Piece(part) => has(WordClass::Pieces, Word::With(part)).map(Some),
            WordNeed::Either(part) => {
                let classes = [WordClass::Plain, WordClass::Pieces];
                found_any(classes.iter().map(|class| has(*class, Word::With(part)).map(Some)))
            }
            WordNeed::Digits(hash) => has(WordClass::Digits, Word::Hashed(hash)).map(Some),
        }))
    }

    /// What every value has that holds the needle.
    pub(crate) fn needs(&self) -> Vec<WordNeed<'a>> {
        let mut out = Vec::new();
        self.for_each_part(|part| match WordClass::of(part.bytes) {
            _ if !part.is_certain() => {}
            Some(WordClass::Plain) if part.open == (false, false) => {
                out.push(WordNeed::Plain(part))
            }
            Some(WordClass::Plain) => {
                if is_in_vocabulary(part.bytes) {
                    out.push(WordNeed::Either(part));
                }
            }
            Some(_) if part.open == (false, false) && !part.fold => {
                out.push(WordNeed::Digits(word_hash(part.bytes)));
            }
            _ => pieces(part.bytes, |start, piece| {
                let end = start + piece.len();
                let open = (part.open.0 && start == 0, part.open.1 && end == part.bytes.len());
                out.push(WordNeed::Piece(WordPart { bytes: piece, open, ..part }));
            }),
        });
        out
    }

    /// The parts of words one of which a word with digits must have for the needle to stand partly
    /// or wholly in it; `None` if it may be any such word.
    pub(crate) fn in_digit_words(&self) -> Option<Vec<WordPart<'a>>> {
        let (head, tail) = self.cut_characters();
        let mut out = if head == 0 && tail == self.text.len() { Some(Vec::new()) } else { None };
        self.for_each_part(|part| {
            let is_plain = WordClass::of(part.bytes) == Some(WordClass::Plain);
            match &mut out {
                _ if !is_plain || !is_in_vocabulary(part.bytes) || !part.is_certain() => out = None,
                Some(parts) if part.open != (false, false) => parts.push(part),
                // A whole word without digits is no part of a word with digits.
                _ => {}
            }
        });
        out
    }

    /// Where the bytes at the start end, and those at the end begin, that may belong to characters
    /// that the value has as a whole.
    fn cut_characters(&self) -> (usize, usize) {
        let head = self.text.iter().take_while(|b| **b & 0xc0 == 0x80).count();
        (head, self.text.len() - cut_character(self.text))
    }

    /// Calls `f` with each word of the needle.
    fn for_each_part(&self, mut f: impl FnMut(WordPart<'a>)) {
        let (head, tail) = self.cut_characters();
        for_each_word(self.text, |start, word| {
            let end = start + word.len();
            let open = (start <= head && !self.bounds.0, end >= tail && !self.bounds.1);
            f(WordPart { bytes: word, open, fold: self.fold });
        });
    }
}

/// The bytes at the end of a text that begin a character and do not end it.
fn cut_character(text: &[u8]) -> usize {
    let tail = text.get(text.len().saturating_sub(3)..).unwrap_or(&[]);
    match tail.iter().rposition(|b| b & 0xc0 == 0xc0) {
        Some(lead) if std::str::from_utf8(tail.get(lead..).unwrap_or(&[])).is_err() => {
            tail.len() - lead
        }
        _ => 0,
    }
}
