//! Many needles searched at once.

use aho_corasick::AhoCorasick;
use hashbrown::HashMap;

use super::set::Bounded;
use crate::index::tokenizer::for_each_word;

/// The most needles of one automaton: building one takes time by the square of their number.
const AUTOMATON: usize = 4_096;
/// The most needles that are known by the same word.
const SAME_WORD: u32 = 16;

type Table<'n, T> = HashMap<&'n [u8], T, foldhash::fast::RandomState>;
type OwnedTable<T> = HashMap<Box<[u8]>, T, foldhash::fast::RandomState>;

/// The numbers of needles by what of them is looked up.
///
/// An automaton finds each of a few thousand needles. Of more than that most are found by a word
/// that they hold: each word of a text is looked up once.
#[derive(Debug, Clone)]
pub(super) struct Many {
    /// By a word that is whole in every text that holds the needle, with its place in the needle.
    words: OwnedTable<Vec<(u32, u32)>>,
    /// Beginnings of words, which are all of their needles.
    prefixes: OwnedTable<u32>,
    /// The lengths of the beginnings, ascending.
    prefix_lens: Vec<usize>,
    /// The others, and the numbers of their needles.
    automata: Vec<(AhoCorasick, Vec<u32>)>,
}

impl Many {
    /// Of distinct needles, none of which is empty; `None` if an automaton would be too large.
    pub(super) fn of(needles: &[Bounded]) -> Option<Many> {
        let mut many = Many {
            words: HashMap::default(),
            prefixes: HashMap::default(),
            prefix_lens: Vec::new(),
            automata: Vec::new(),
        };
        let rest = if needles.len() <= AUTOMATON {
            (0..).take(needles.len()).collect()
        } else {
            many.sort_out(needles)
        };
        for numbers in rest.chunks(AUTOMATON) {
            let chosen = numbers.iter().filter_map(|n| needles.get(*n as usize));
            let automaton = AhoCorasick::new(chosen.map(Bounded::bytes)).ok()?;
            many.automata.push((automaton, numbers.to_vec()));
        }
        Some(many)
    }

    /// Puts the needles that have words of their own into the tables, and gives the others back.
    fn sort_out(&mut self, needles: &[Bounded]) -> Vec<u32> {
        let mut counts: Table<'_, u32> = HashMap::default();
        for needle in needles {
            each_whole_word(needle, |_, word| *counts.entry(word).or_default() += 1);
        }
        let mut rest = Vec::new();
        for (number, needle) in (0..).zip(needles) {
            let mut rarest: Option<(u32, u32, &[u8])> = None;
            each_whole_word(needle, |at, word| {
                let count = counts.get(word).copied().unwrap_or(0);
                if rarest.is_none_or(|(least, ..)| count < least) {
                    rarest = u32::try_from(at).ok().map(|at| (count, at, word));
                }
            });
            match rarest {
                Some((count, at, word)) if count <= SAME_WORD => {
                    self.words.entry(Box::from(word)).or_default().push((number, at));
                }
                None if is_prefix(needle) => {
                    self.prefixes.insert(Box::from(needle.bytes()), number);
                    self.prefix_lens.push(needle.bytes().len());
                }
                _ => rest.push(number),
            }
        }
        self.prefix_lens.sort_unstable();
        self.prefix_lens.dedup();
        rest
    }

    /// Whether a needle stands in `text` that `accept`, which gets its number and its place, lets
    /// through; the neighbours of needles are for it to judge.
    pub(super) fn any_hit(
        &self,
        needles: &[Bounded],
        text: &[u8],
        accept: impl Fn(u32, usize) -> bool,
    ) -> bool {
        let mut found = false;
        if !self.words.is_empty() || !self.prefixes.is_empty() {
            for_each_word(text, |at, word| {
                found = found
                    || self.known_by(word).any(|(number, before)| {
                        let start = at.checked_sub(before as usize);
                        let needle = needles.get(number as usize).map(Bounded::bytes);
                        let held = start.and_then(|start| text.get(start..));
                        needle.zip(held).is_some_and(|(needle, held)| held.starts_with(needle))
                            && start.is_some_and(|start| accept(number, start))
                    });
            });
        }
        found
            || self.automata.iter().any(|(automaton, numbers)| {
                automaton.find_overlapping_iter(text).any(|hit| {
                    let number = numbers.get(hit.pattern().as_usize());
                    number.is_some_and(|number| accept(*number, hit.start()))
                })
            })
    }

    /// The needles that a word of a text may belong to, and how far in front of it they begin.
    fn known_by<'a>(&'a self, word: &'a [u8]) -> impl Iterator<Item = (u32, u32)> + 'a {
        let whole = self.words.get(word).into_iter().flatten().copied();
        let beginnings = self.prefix_lens.iter().map_while(|len| word.get(..*len));
        whole.chain(beginnings.filter_map(|text| self.prefixes.get(text)).map(|n| (*n, 0)))
    }

    /// Bytes of memory held, about.
    pub(super) fn heap_bytes(&self) -> usize {
        let words: usize = self.words.iter().map(|(word, n)| word.len() + 8 * n.len() + 48).sum();
        let prefixes: usize = self.prefixes.keys().map(|text| text.len() + 32).sum();
        let automaton = |(a, n): &(AhoCorasick, Vec<u32>)| a.memory_usage() + 4 * n.len();
        words + prefixes + self.automata.iter().map(automaton).sum::<usize>()
    }

    /// How many needles automata have to find.
    #[cfg(test)]
    fn in_automata(&self) -> usize {
        self.automata.iter().map(|(_, numbers)| numbers.len()).sum()
    }
}

/// Calls `f` for each word of a needle that cannot be part of a longer one in a text.
fn each_whole_word<'n>(needle: &'n Bounded, mut f: impl FnMut(usize, &'n [u8])) {
    let (left, right) = needle.bounds();
    let len = needle.bytes().len();
    for_each_word(needle.bytes(), |at, word| {
        if (at > 0 || left) && (at + word.len() < len || right) {
            f(at, word);
        }
    });
}

/// Whether a needle is the beginning of a word.
fn is_prefix(needle: &Bounded) -> bool {
    let mut is_word = false;
    for_each_word(needle.bytes(), |_, word| is_word = word.len() == needle.bytes().len());
    is_word && needle.bounds().0
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::testing::adversarial_text;
    use super::*;

    fn hits(many: &Many, needles: &[Bounded], text: &[u8]) -> Vec<(u32, usize)> {
        let found = std::cell::RefCell::new(Vec::new());
        many.any_hit(needles, text, |number, start| {
            if needles[number as usize].fits(text, start) {
                found.borrow_mut().push((number, start));
            }
            false
        });
        let mut found = found.into_inner();
        found.sort_unstable();
        found
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]
        #[test]
        fn tables_find_what_automata_find(
            members in prop::collection::vec((adversarial_text(), 0..3), 1..14),
            text in adversarial_text(),
        ) {
            let bounded = |(text, kind): &(String, i32)| match kind {
                0 => Bounded::phrase(text.as_bytes()),
                1 => Bounded::prefix(text.as_bytes()),
                _ => Bounded::substring(text.as_bytes()),
            };
            let mut needles: Vec<Bounded> =
                members.iter().filter(|(text, _)| !text.is_empty()).map(bounded).collect();
            needles.sort_unstable();
            needles.dedup();
            let automaton = Many::of(&needles).unwrap();
            let mut tables = Many::of(&[]).unwrap();
            let rest = tables.sort_out(&needles);
            let others: Vec<&[u8]> = rest.iter().map(|n| needles[*n as usize].bytes()).collect();
            tables.automata.push((AhoCorasick::new(others).unwrap(), rest));
            // Once more the text among others, where needles have neighbours.
            for text in [text.clone(), format!("a{text}"), format!("{text}1 {text}")] {
                let want = hits(&automaton, &needles, text.as_bytes());
                prop_assert_eq!(hits(&tables, &needles, text.as_bytes()), want);
            }
        }
    }

    /// What is left to automata is what has no word of its own: their building is not linear.
    #[test]
    fn long_lists_are_looked_up() {
        let needles = |text: &str, make: fn(&[u8]) -> Bounded| -> Vec<Bounded> {
            let each = (10_000..110_000).map(|i| text.replace('N', &i.to_string()));
            each.map(|text| make(text.as_bytes())).collect()
        };
        for (text, make, left) in [
            ("wN", Bounded::phrase as fn(&[u8]) -> Bounded, 0),
            ("a bN", Bounded::phrase, 0),
            ("(N)", Bounded::substring, 0),
            ("wN", Bounded::prefix, 0),
            ("wN", Bounded::substring, 100_000),
        ] {
            let needles = needles(text, make);
            let started = std::time::Instant::now();
            let many = Many::of(&needles).unwrap();
            assert_eq!(many.in_automata(), left, "{text}");
            assert!(many.automata.iter().all(|(_, numbers)| numbers.len() <= AUTOMATON));
            let built = started.elapsed();
            assert!(built < std::time::Duration::from_secs(60), "{text}: {built:?}");
            assert!(many.any_hit(&needles, b"x a b77777 (77777) w77777 y", |_, _| true), "{text}");
            assert!(!many.any_hit(&needles, b"x a b7777 (7777) w7777 y", |_, _| true), "{text}");
        }
    }
}
