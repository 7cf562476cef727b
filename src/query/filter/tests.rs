//! Filters against twins: every column form against the bytes, trees against rows, judgements
//! against evaluation.

use std::borrow::Cow;
use std::sync::Arc;

use proptest::prelude::*;

use super::judge::{BlockFacts, ColumnFacts, PageFacts, Verdict};
use super::testing::{field, filter_tree, log_value, predicate};
use super::*;
use crate::codec::Bitmap;
use crate::error::Result;
use crate::index::Needle;
use crate::query::ast::{Filter, Predicate, TimeFilter, TimeForm, TimePoint};
use crate::query::batch::Batch;
use crate::query::column::Column;

use crate::query::testing::test_context;
use crate::record::{Quantity, TextVec, Timestamp, parse_canonical_int};

fn compile(filter: &Filter) -> CompiledFilter {
    test_context(|ctx| CompiledFilter::compile(filter, ctx)).unwrap()
}

/// All forms that a column of these values can have.
fn forms(values: &[String]) -> Vec<Column> {
    let text: TextVec = values.iter().map(|v| v.as_bytes()).collect();
    let mut out = vec![Column::Text(Arc::new(text))];
    let mut distinct: Vec<&String> = Vec::new();
    let mut codes = Vec::new();
    for value in values {
        let at = distinct.iter().position(|d| *d == value).unwrap_or_else(|| {
            distinct.push(value);
            distinct.len() - 1
        });
        codes.push(u32::try_from(at).unwrap());
    }
    let dictionary = Arc::new(distinct.iter().map(|v| v.as_bytes()).collect());
    let ends = Arc::new((1..=u32::try_from(values.len()).unwrap()).collect());
    let dictionary: Arc<TextVec> = dictionary;
    out.push(Column::codes(codes.clone(), Arc::clone(&dictionary)));
    out.push(Column::Runs { ends, codes: Arc::new(codes), dictionary });
    let mut absent = Bitmap::empty(values.len());
    let (mut ints, mut exceptions) = (Vec::new(), Vec::new());
    for (row, value) in values.iter().enumerate() {
        let int = parse_canonical_int(value.as_bytes());
        match int {
            _ if value.is_empty() => absent.set(row),
            None => exceptions.push((u32::try_from(row).unwrap(), Box::from(value.as_bytes()))),
            Some(_) => {}
        }
        ints.push(int.unwrap_or(0));
    }
    let absent = absent.any().then_some(absent);
    out.push(Column::Ints { values: Arc::new(ints), absent, exceptions });
    if distinct.len() == 1 {
        out.push(Column::constant(values[0].as_bytes()));
    }
    out
}

/// The predicate of a filter on one field, as judged value by value.
fn value_test(filter: &CompiledFilter) -> impl Fn(&[u8]) -> bool + '_ {
    |value| match &filter.root {
        Node::Const(answer) => *answer,
        Node::Field { test: FieldTest::Value(p), .. } => p.matches(value),
        other => panic!("{other:?}"),
    }
}

fn selected(filter: &CompiledFilter, batch: &Batch, start: &Bitmap) -> Vec<usize> {
    let mut selection = start.clone();
    filter.eval(batch, &mut selection).unwrap();
    selection.iter().collect()
}

/// A page of which everything is known that its values say.
struct Facts {
    values: Vec<String>,
    dictionary: bool,
    filter: bool,
}

fn ints(present: &[&[u8]]) -> Option<(i64, i64)> {
    let all: Option<Vec<i64>> = present.iter().map(|v| parse_canonical_int(v)).collect();
    let all = all?;
    Some((*all.iter().min()?, *all.iter().max()?))
}

impl BlockFacts for Facts {
    fn times(&self) -> (i64, i64) {
        (0, 0)
    }

    fn column(&self, name: &str) -> Result<ColumnFacts<'_>> {
        if name != "f" {
            return Ok(ColumnFacts { listed: vec![Cow::Borrowed(b"")], page: None });
        }
        let present: Vec<&[u8]> =
            self.values.iter().map(|v| v.as_bytes()).filter(|v| !v.is_empty()).collect();
        let numbers: Vec<(f64, f64)> =
            present.iter().filter_map(|v| Quantity::parse(v)).map(|n| n.enclosing_f64()).collect();
        let low = numbers.iter().map(|n| n.0).reduce(f64::min);
        let high = numbers.iter().map(|n| n.1).reduce(f64::max);
        let lengths = present.iter().map(|v| v.len() as u64);
        Ok(ColumnFacts {
            listed: Vec::new(),
            page: Some(PageFacts {
                may_be_empty: present.len() < self.values.len(),
                numbers: low.zip(high),
                all_numbers: numbers.len() == present.len(),
                ints: ints(&present),
                lengths: lengths.clone().min().zip(lengths.max()),
                least: present.iter().min().map(|v| Cow::Borrowed(*v)),
                greatest: present.iter().max().map(|v| Cow::Borrowed(*v)),
                dictionary: self.dictionary.then(|| Arc::new(present.iter().copied().collect())),
            }),
        })
    }

    fn names_with_prefix(&self, _: &str) -> Result<Option<Vec<Arc<str>>>> {
        Ok(Some(vec!["f".into()]))
    }

    fn may_hold(&self, _: &str, needle: &Needle<'_>) -> Result<bool> {
        // The sharpest answer that a filter may give.
        let text = needle.text;
        let folded = match needle.bounds {
            (true, true) => phrase::FoldedPhrase::new(text),
            _ => phrase::FoldedPhrase::prefix(text),
        };
        let phrase = match needle.bounds {
            (true, true) => phrase::Phrase::new(text),
            (true, false) => phrase::Phrase::prefix(text),
            _ => phrase::Phrase::substring(text),
        };
        let finds = |value: &[u8]| match needle.fold {
            true => folded.is_match(value),
            false => phrase.find_end(value).is_some(),
        };
        Ok(!self.filter || self.values.iter().any(|v| finds(v.as_bytes())))
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_500))]

    #[test]
    fn every_form_of_a_column_gives_the_same_rows(
        predicate in predicate(),
        values in prop::collection::vec(log_value(), 1..24),
        holes in any::<u64>(),
    ) {
        let filter = compile(&field("f", predicate));
        let test = value_test(&filter);
        let start = Bitmap::from_fn(values.len(), |r| holes >> (r % 64) & 1 == 1);
        let expected: Vec<usize> =
            start.iter().filter(|&r| test(values[r].as_bytes())).collect();
        for column in forms(&values) {
            let mut batch = Batch::new(values.len());
            batch.set_column("f".into(), column.clone());
            prop_assert_eq!(&selected(&filter, &batch, &start), &expected, "{:?}", column);
        }
        let all = Bitmap::full(values.len());
        let mut batch = Batch::new(values.len());
        batch.set_column("f".into(), forms(&values).remove(0));
        let expected: Vec<usize> =
            (0..values.len()).filter(|&r| test(values[r].as_bytes())).collect();
        prop_assert_eq!(selected(&filter, &batch, &all), expected);
    }

    #[test]
    fn judgements_hold(
        predicate in predicate(),
        negate: bool,
        values in prop::collection::vec(log_value(), 1..8),
        dictionary: bool,
        with_filter: bool,
    ) {
        let plain = field("f", predicate);
        let filter = compile(&if negate { Filter::Not(Box::new(plain)) } else { plain });
        let mut batch = Batch::new(values.len());
        batch.set_column("f".into(), forms(&values).remove(0));
        let hits = selected(&filter, &batch, &Bitmap::full(values.len())).len();
        let facts = Facts { values: values.clone(), dictionary, filter: with_filter };
        match filter.judge(&facts).unwrap() {
            Verdict::None => prop_assert_eq!(hits, 0),
            Verdict::All => prop_assert_eq!(hits, values.len()),
            Verdict::Maybe => {}
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn trees_mean_what_they_mean_for_each_row(
        filter in filter_tree(&["a", "b", "ab", "c"]),
        rows in prop::collection::vec((log_value(), log_value(), log_value()), 1..9),
    ) {
        let compiled = compile(&filter);
        let mut batch = Batch::new(rows.len());
        for (i, name) in ["a", "b", "ab"].into_iter().enumerate() {
            let values: Vec<String> =
                rows.iter().map(|r| [&r.0, &r.1, &r.2][i].clone()).collect();
            batch.set_column(name.into(), forms(&values).remove(i));
        }
        let expected: Vec<usize> = (0..rows.len())
            .filter(|&i| {
                let mut row = crate::query::naive::Row::default();
                for (name, value) in
                    ["a", "b", "ab"].iter().zip([&rows[i].0, &rows[i].1, &rows[i].2])
                {
                    row.set(name, value);
                }
                crate::query::naive::matches(&filter, &row, crate::query::naive::Scope::at(0))
            })
            .collect();
        prop_assert_eq!(selected(&compiled, &batch, &Bitmap::full(rows.len())), expected);
    }
}

#[test]
fn what_excludes_one_branch_does_not_exclude_another() {
    let phrase = |name: &str, text: &str| field(name, Predicate::Phrase(text.to_owned()));
    let facts = Facts { values: vec!["x".to_owned()], dictionary: false, filter: true };
    let judge = |filter: &Filter| compile(filter).judge(&facts).unwrap();
    let (hit, miss) = (phrase("f", "x"), phrase("f", "y"));
    let elsewhere = phrase("g", "x");
    assert_eq!(judge(&Filter::Or(vec![miss.clone(), hit.clone()])), Verdict::Maybe);
    assert_eq!(judge(&Filter::Or(vec![miss.clone(), elsewhere.clone()])), Verdict::None);
    assert_eq!(judge(&Filter::Or(vec![hit.clone(), elsewhere])), Verdict::Maybe);
    assert_eq!(judge(&Filter::And(vec![miss.clone(), hit])), Verdict::None);
    assert_eq!(judge(&Filter::Not(Box::new(miss))), Verdict::All);
}

#[test]
fn times_intersect_only_where_all_rows_must_pass() {
    let at = |text: &str| {
        Filter::Time(TimeFilter {
            form: TimeForm::At(TimePoint::Text(text.to_owned())),
            offset: None,
        })
    };
    let day = |text: &str| Timestamp::parse(text).unwrap().as_nanos();
    let both = compile(&Filter::And(vec![at("2024-03Z"), at("2024-03-05Z"), Filter::All]));
    assert_eq!(both.time_range().min, day("2024-03-05T00:00:00Z"));
    let either = compile(&Filter::Or(vec![at("2024-03Z"), at("2024-05Z")]));
    assert_eq!(either.time_range(), TimeRange::ALL);
    let neither = compile(&Filter::And(vec![at("2024-03Z"), at("2024-05Z")]));
    assert!(neither.time_range().is_empty());
}
