//! What a text must hold for a predicate to be true: the part of a filter that pruning may use.
//!
//! A need is implied by every match; nothing follows from a need that is met.

use regex_syntax::hir::{Hir, HirKind};

use super::phrase::{FoldedPhrase, Phrase};
use super::predicate::MOST_PROBES;
use crate::index::{Found, Needle, found_all, found_any};

/// A condition that every matching value meets.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum Needs {
    /// No condition is known.
    #[default]
    Nothing,
    /// The value holds these bytes.
    Text {
        /// Never empty; in lower case if case does not count.
        bytes: Box<[u8]>,
        /// Whether no word goes on to the left of them, to the right of them.
        bounds: (bool, bool),
        /// Whether case does not count.
        fold: bool,
    },
    /// All of these.
    All(Vec<Needs>),
    /// Any of these.
    Any(Vec<Needs>),
}

/// Says where a value may hold a text.
pub(crate) type MayHold<'a, F, E> = dyn FnMut(&Needle<'_>) -> Result<F, E> + 'a;

impl Needs {
    /// The value holds `bytes`, with word boundaries on the sides that say so.
    pub(crate) fn text(bytes: &[u8], left: bool, right: bool) -> Needs {
        if bytes.is_empty() {
            return Needs::Nothing;
        }
        Needs::Text { bytes: Box::from(bytes), bounds: (left, right), fold: false }
    }

    /// What a phrase needs.
    pub(crate) fn phrase(phrase: &Phrase) -> Needs {
        let (left, right) = phrase.bounds();
        Needs::text(phrase.needle(), left, right)
    }

    /// What a phrase in any case needs.
    pub(crate) fn folded(phrase: &FoldedPhrase) -> Needs {
        let bytes = Box::from(phrase.needle());
        Needs::Text { bytes, bounds: phrase.phrase().bounds(), fold: true }
    }

    /// All of `needs`.
    pub(crate) fn all(needs: impl IntoIterator<Item = Needs>) -> Needs {
        let mut all: Vec<Needs> = needs.into_iter().filter(|n| *n != Needs::Nothing).collect();
        match all.len() {
            0 => Needs::Nothing,
            1 => all.pop().unwrap_or_default(),
            _ => Needs::All(all),
        }
    }

    /// Any of `needs`; if one of them is nothing, so is the answer. No needs at all: nothing.
    pub(crate) fn any(needs: impl IntoIterator<Item = Needs>) -> Needs {
        let mut any: Vec<Needs> = needs.into_iter().collect();
        if any.contains(&Needs::Nothing) {
            return Needs::Nothing;
        }
        match any.len() {
            0 => Needs::Nothing,
            1 => any.pop().unwrap_or_default(),
            _ => Needs::Any(any),
        }
    }

    /// What every match of an expression needs.
    pub(crate) fn regex(hir: &Hir) -> Needs {
        let mut walk = Walk::default();
        walk.visit(hir, 0);
        walk.finish()
    }

    /// Literals of which one stands in every matching value, the longest choice; empty if there
    /// is none.
    pub(crate) fn literals(&self) -> Vec<Vec<u8>> {
        match self {
            Needs::Nothing | Needs::Text { fold: true, .. } => Vec::new(),
            Needs::Text { bytes, .. } => vec![bytes.to_vec()],
            Needs::All(all) => {
                let shortest = |l: &Vec<Vec<u8>>| l.iter().map(Vec::len).min().unwrap_or(0);
                all.iter().map(Needs::literals).max_by_key(shortest).unwrap_or_default()
            }
            Needs::Any(any) => {
                let each: Vec<Vec<Vec<u8>>> = any.iter().map(Needs::literals).collect();
                if each.iter().any(Vec::is_empty) { Vec::new() } else { each.concat() }
            }
        }
    }

    /// Where the need may be met; `may_hold` says where a text may be. `None` where nothing is
    /// needed.
    pub(crate) fn may_be_met<F: Found, E>(
        &self,
        may_hold: &mut MayHold<'_, F, E>,
    ) -> Result<Option<F>, E> {
        match self {
            Needs::Nothing => Ok(None),
            Needs::Text { bytes, bounds, fold } => {
                may_hold(&Needle { text: bytes, bounds: *bounds, fold: *fold }).map(Some)
            }
            Needs::All(all) => {
                let all = all.iter().take(MOST_PROBES);
                found_all(all.map(|need| need.may_be_met(may_hold)))
            }
            Needs::Any(any) if any.len() > MOST_PROBES => Ok(None),
            Needs::Any(any) => found_any(any.iter().map(|need| need.may_be_met(may_hold))),
        }
    }
}

/// Deeper parts of an expression are taken to need nothing.
const MAX_DEPTH: usize = 64;

/// Collects literals along a concatenation.
#[derive(Default)]
struct Walk {
    /// The literal that the next part continues.
    open: Vec<u8>,
    done: Vec<Needs>,
}

impl Walk {
    fn visit(&mut self, hir: &Hir, depth: usize) {
        if depth > MAX_DEPTH {
            return self.cut();
        }
        match hir.kind() {
            HirKind::Empty => {}
            HirKind::Literal(literal) => self.open.extend_from_slice(&literal.0),
            // Assertions have no width: the literals around them touch.
            HirKind::Look(_) => {}
            HirKind::Class(_) => self.cut(),
            HirKind::Capture(capture) => self.visit(&capture.sub, depth + 1),
            HirKind::Concat(parts) => {
                for part in parts {
                    self.visit(part, depth + 1);
                }
            }
            HirKind::Repetition(repetition) => {
                self.cut();
                if repetition.min > 0 {
                    let mut inner = Walk::default();
                    inner.visit(&repetition.sub, depth + 1);
                    self.done.push(inner.finish());
                }
            }
            HirKind::Alternation(parts) => {
                self.cut();
                let each = parts.iter().map(|part| {
                    let mut inner = Walk::default();
                    inner.visit(part, depth + 1);
                    inner.finish()
                });
                self.done.push(Needs::any(each));
            }
        }
    }

    /// Ends the open literal.
    fn cut(&mut self) {
        let literal = std::mem::take(&mut self.open);
        self.done.push(Needs::text(&literal, false, false));
    }

    fn finish(mut self) -> Needs {
        self.cut();
        Needs::all(self.done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn literals(pattern: &str) -> Vec<String> {
        let hir = regex_syntax::parse(pattern).unwrap();
        let all = Needs::regex(&hir).literals();
        all.into_iter().map(|l| String::from_utf8(l).unwrap()).collect()
    }

    #[test]
    fn longest_choice_of_literals() {
        assert_eq!(literals("ab.*cde"), ["cde"]);
        assert_eq!(literals("foo(bar|baz+)"), ["foo"]);
        assert_eq!(literals("(error|warn)ing"), ["error", "warn"]);
        assert_eq!(literals("(x|y?)"), [""; 0]);
        assert_eq!(literals("a(bc)d"), ["abcd"]);
        assert_eq!(literals("x^y\\b"), ["xy"]);
        assert_eq!(literals("(?i)error"), [""; 0]);
        assert_eq!(literals(".*"), [""; 0]);
        assert_eq!(literals("(abc)*d"), ["d"]);
        assert_eq!(literals("(abc){2,}"), ["abc"]);
    }

    #[test]
    fn any_with_nothing_is_nothing() {
        let text = Needs::text(b"a", false, false);
        assert_eq!(Needs::any([text.clone(), Needs::Nothing]), Needs::Nothing);
        assert_eq!(Needs::all([text.clone(), Needs::Nothing]), text);
        assert_eq!(Needs::any([]), Needs::Nothing);
    }
}
