//! The scan over template pages against a look at every row.

use std::sync::atomic::Ordering::Relaxed;

use proptest::prelude::*;

use super::tests::{scan, scan_with};
use super::{Direction, TimeBound};
use crate::codec::template::testing::lines;
use crate::part::Profile;
use crate::query::ast::{Filter, Predicate};
use crate::query::counters::ScanCounters;
use crate::query::fields::FieldSet;
use crate::query::filter::testing::field;
use crate::query::naive;
use crate::query::regex::Regex;
use crate::query::testing::{TestParts, TestRow};

/// A row whose message is in another column, in part.
fn row(stream: &str, time: usize, message: String) -> TestRow {
    let words = message.split_inclusive(|c: char| !c.is_ascii_alphanumeric());
    let copy: String = words.filter(|word| word.contains(|c: char| c.is_ascii_digit())).collect();
    TestRow {
        time: i64::try_from(time).unwrap() * 1_000_000,
        labels: vec![("a", stream.to_owned())],
        fields: vec![("b", message), ("c", copy)],
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn rows_of_templates_and_of_constants_in_one_block(
        lines in lines(),
        pick in any::<prop::sample::Index>(),
        (from, len) in (0usize..40, 1usize..14),
        kind in 0usize..6,
        prune: bool,
    ) {
        prop_assume!(!lines.is_empty());
        // Streams whose messages are all the same stand between those of the lines.
        let mut rows = Vec::new();
        for (i, line) in lines.iter().cycle().take(lines.len().max(300)).enumerate() {
            rows.push(row(if i % 2 == 0 { "1" } else { "3" }, i, line.clone()));
            if i % 3 == 0 {
                let stream = if i % 2 == 0 { "2" } else { "4" };
                rows.push(row(stream, i, lines[i % 2 % lines.len()].clone()));
            }
        }
        let needle: String = pick.get(&lines).chars().skip(from).take(len).collect();
        let needle = if needle.is_empty() { "a".to_owned() } else { needle };
        let filter = field("b", match kind {
            0 => Predicate::Phrase(needle),
            1 => Predicate::Prefix(needle),
            2 => Predicate::Substring(needle),
            3 => Predicate::PhraseFold(needle),
            4 => Predicate::Exact(needle),
            _ => Predicate::Sequence(vec![needle.clone(), needle]),
        });
        let filter = if prune { filter } else { Filter::Not(Box::new(filter)) };
        let parts = TestParts::write(&rows, &[rows.len()], 65_536, Profile::Merge);
        let (fields, counters) = (FieldSet::of(["b"]), ScanCounters::default());
        let got = scan(&parts, &filter, prune, &fields, None, &counters);
        let mut got: Vec<String> =
            got.into_iter().map(|(_, mut row)| row.remove("b").unwrap_or_default()).collect();
        let mut want: Vec<String> = parts
            .rows()
            .iter()
            .filter(|row| naive::matches(&filter, row, naive::Scope::at(0)))
            .map(|row| row.fields.get("b").cloned().unwrap_or_default())
            .collect();
        got.sort();
        want.sort();
        prop_assert_eq!(got, want);
    }
}

/// Messages of three templates, with ids, in many blocks.
fn messages() -> TestParts {
    let message = |i: usize| match i % 3 {
        0 => format!("request {:032x} from 10.0.{}.{}", id(i), i % 200, i % 90),
        1 => format!("request queued behind {}, retry in {}ms", i % 17, i % 1000),
        _ => format!("slow request: {} statements in {} rounds", i * 31 % 4_000, i % 40),
    };
    let row = |i: usize| TestRow { fields: vec![("b", message(i))], ..row("x", i, String::new()) };
    let rows: Vec<TestRow> = (0..20_000usize).map(row).collect();
    TestParts::write(&rows, &[rows.len()], 2_500, Profile::Merge)
}

fn id(i: usize) -> u128 {
    (i as u128 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835)
}

#[test]
fn absent_words_read_filters_only() {
    let parts = messages();
    let count = |predicate: Predicate| {
        let counters = ScanCounters::default();
        let filter = field("b", predicate);
        let rows = scan(&parts, &filter, true, &FieldSet::of(["b"]), None, &counters).len();
        let reads = &counters.reads;
        let judged = &counters.blocks_judged;
        let of = [&reads.pages, &reads.strips, &reads.filter_bytes, judged];
        (rows, of.map(|n| n.load(Relaxed)))
    };
    for absent in ["absent", "reques", "zzyzx"] {
        let (rows, [pages, strips, filter_bytes, judged]) =
            count(Predicate::Phrase(absent.to_owned()));
        assert_eq!((rows, pages, strips, judged), (0, 0, 0, 0), "{absent}");
        assert!(filter_bytes < 4_096, "{absent}: {filter_bytes}");
    }
    for absent in [
        Predicate::Substring("equez".to_owned()),
        Predicate::Prefix("reques t".to_owned()),
        Predicate::PhraseFold("REQUES".to_owned()),
        Predicate::Regex(Regex::new("(queued|slow)ing|quests").unwrap()),
    ] {
        let (rows, [pages, strips, filter_bytes, judged]) = count(absent.clone());
        assert_eq!((rows, pages, strips, judged), (0, 0, 0, 0), "{absent:?}");
        assert!(filter_bytes < 4_096, "{absent:?}: {filter_bytes}");
    }
    // No word with digits begins so: templates answer alone.
    let (rows, [pages, strips, ..]) = count(Predicate::Prefix("quest".to_owned()));
    assert_eq!((rows, pages, strips), (0, 0, 0));
    assert_eq!(count(Predicate::Prefix("reque".to_owned())).0, 20_000);
    // An id is in one block of eight; in others it is denied, or looked for in packed digits.
    let (rows, [pages, strips, filter_bytes, _]) =
        count(Predicate::Phrase(format!("{:032x}", id(9_000))));
    assert_eq!(rows, 1);
    assert!(pages <= 4 && strips <= 16, "{pages} heads, {strips} strips");
    assert!(filter_bytes < 64 << 10, "{filter_bytes}");
    assert_eq!(count(Predicate::Phrase(format!("{:032x}", 77))).0, 0);
}

#[test]
fn classes_of_words_that_a_column_lacks_hide_no_others() {
    let texts = |i: usize| {
        let id = i.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        [format!("word{id} {}", i % 7), format!("plain words only {}", i % 9), format!("{id}")]
    };
    let fields = |i: usize| ["p", "q", "r"].into_iter().zip(texts(i)).collect();
    let row = |i: usize| TestRow { fields: fields(i), ..row("x", i, String::new()) };
    let rows: Vec<TestRow> = (0..3_000usize).map(row).collect();
    for profile in [Profile::Flush, Profile::Merge] {
        let parts = TestParts::write(&rows, &[rows.len()], 1_500, profile);
        for (column, text, want) in [
            ("p", "wor", 3_000),
            ("q", "wor", 3_000),
            ("r", "wor", 0),
            ("p", "plain", 0),
            ("q", "plain", 3_000),
        ] {
            for predicate in [
                Predicate::Prefix(text.to_owned()),
                Predicate::Substring(text.to_owned()),
                Predicate::PrefixFold(text.to_owned()),
            ] {
                let counters = ScanCounters::default();
                let filter = field(column, predicate);
                let rows = scan(&parts, &filter, true, &FieldSet::none(), None, &counters);
                assert_eq!(rows.len(), want, "{filter:?}");
            }
        }
    }
}

#[test]
fn what_was_read_once_is_in_the_cache() {
    let parts = messages();
    let cache = crate::part::UnitCache::new(64 << 20);
    let run = |predicate: &Predicate, newest: bool| {
        let counters = ScanCounters::default();
        let bound = TimeBound::new(Direction::Newest, 100);
        let bound = (newest.then_some(&bound), newest);
        let (filter, fields) = (field("b", predicate.clone()), FieldSet::all());
        let rows = scan_with(&parts, &filter, true, &fields, bound, &counters, Some(&cache));
        (rows, counters.reads.read_bytes.load(Relaxed))
    };
    for predicate in [
        Predicate::Phrase("queued".to_owned()),
        Predicate::Phrase(format!("{:032x}", id(9_000))),
        Predicate::Substring("t: 31".to_owned()),
        Predicate::Prefix("retr".to_owned()),
    ] {
        for newest in [true, false] {
            let (first, read) = run(&predicate, newest);
            let (second, read_again) = run(&predicate, newest);
            assert!(!first.is_empty() && first == second);
            assert_eq!(read_again, 0, "{predicate:?}, first {read}");
        }
    }
}

#[test]
fn what_no_template_holds_reads_no_strip() {
    let message = |i: usize| match i % 3 {
        0 => format!("request {i} from 10.0.{}.{} took {}ms", i % 200, i % 90, i * 7 % 990),
        1 => format!("request queued behind {}, retry in {}ms", i % 17, i % 1000),
        _ => format!("slow request: {} statements in {} rounds", i * 31 % 4_000, i % 40),
    };
    let rows: Vec<TestRow> = (0..6_000usize).map(|i| row("x", i, message(i))).collect();
    let parts = TestParts::write(&rows, &[rows.len()], 65_536, Profile::Merge);
    let count = |predicate: Predicate| {
        let counters = ScanCounters::default();
        let filter = field("b", predicate);
        let rows = scan(&parts, &filter, true, &FieldSet::of(["b"]), None, &counters).len();
        (rows, counters.reads.strips.load(Relaxed))
    };
    for absent in ["absent", "reques", "requests", "from 11"] {
        assert_eq!(count(Predicate::Phrase(absent.to_owned())), (0, 0), "{absent}");
    }
    for absent in ["qzxjv", "uest  ", "ms took", "from x"] {
        assert_eq!(count(Predicate::Substring(absent.to_owned())), (0, 0), "{absent}");
    }
    assert_eq!(count(Predicate::PhraseFold("REQUESTS".to_owned())), (0, 0));
    // What all templates hold needs strips for its rows only.
    let (rows, strips) = count(Predicate::Phrase("request".to_owned()));
    assert_eq!((rows, strips > 0), (6_000, true));
    assert_eq!(count(Predicate::Phrase("5001".to_owned())).0, 1);
}
