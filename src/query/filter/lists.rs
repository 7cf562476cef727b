//! Long lists: many alternatives or conditions on one field become one test.
//!
//! Each word of a list costs a look at the text; as a set all words cost one look together. So a
//! list takes time by its length plus that of the text, not by their product.

use hashbrown::{HashMap, HashSet};

use super::compile::{Compiler, all_needles, one_of};
use super::predicate::ValuePredicate;
use super::set::{Bounded, PhraseSet};
use super::{FieldTest, Node};
use crate::error::Result;
use crate::query::ast::{FieldPattern, Filter, Predicate, ValueSet};

/// From so many tests of one kind on one field they are made one.
const MANY: usize = 8;

/// What tests that can be joined have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Kind {
    /// A text stands in the value.
    Needle,
    /// The value is a text.
    Value,
}

/// Tests that may become one.
struct Group<'f> {
    field: &'f FieldPattern,
    kind: Kind,
    members: Vec<&'f Filter>,
}

impl Compiler<'_> {
    /// The node of an `And` or `Or`.
    pub(super) fn list(&mut self, filter: &Filter) -> Result<Node> {
        let mut parts = Vec::new();
        let any = matches!(filter, Filter::Or(_));
        flatten(filter, any, &mut parts);
        self.parts(&parts, any)
    }

    /// Any of `parts`, or all of them.
    fn parts(&mut self, parts: &[&Filter], any: bool) -> Result<Node> {
        let mut nodes = Vec::new();
        if parts.len() < MANY {
            for part in parts {
                nodes.push(self.node(part)?);
            }
            return Ok(join(nodes, any));
        }
        let (mut rest, mut negated) = (Vec::new(), Vec::new());
        for part in distinct(parts) {
            match part {
                Filter::Not(inner) => negated.push((part, &**inner)),
                _ => rest.push(part),
            }
        }
        if negated.len() < MANY {
            rest.extend(negated.iter().map(|(part, _)| *part));
        } else {
            // None of them, or not all of them.
            let inner: Vec<&Filter> = negated.iter().map(|(_, inner)| *inner).collect();
            nodes.push(Node::negate(self.parts(&inner, !any)?));
        }
        let (groups, single) = grouped(&rest, any);
        for filter in single {
            nodes.push(self.node(filter)?);
        }
        for group in groups {
            if group.members.len() < MANY {
                for filter in group.members {
                    nodes.push(self.node(filter)?);
                }
            } else {
                let test = FieldTest::Value(Box::new(joined(&group, any)));
                nodes.push(self.leaf(group.field, test));
            }
        }
        Ok(join(nodes, any))
    }
}

fn join(nodes: Vec<Node>, any: bool) -> Node {
    if any { Node::or(nodes) } else { Node::and(nodes) }
}

/// The parts of lists of one kind within each other.
fn flatten<'f>(filter: &'f Filter, any: bool, out: &mut Vec<&'f Filter>) {
    match filter {
        Filter::Or(parts) if any => parts.iter().for_each(|f| flatten(f, any, out)),
        Filter::And(parts) if !any => parts.iter().for_each(|f| flatten(f, any, out)),
        other => out.push(other),
    }
}

/// Without the tests of a field that stand there a second time.
fn distinct<'f>(parts: &[&'f Filter]) -> Vec<&'f Filter> {
    let mut seen: HashSet<String, foldhash::fast::RandomState> = HashSet::default();
    let is_new = |filter: &&&Filter| match filter {
        Filter::Field { .. } => seen.insert(filter.to_string()),
        _ => true,
    };
    parts.iter().filter(is_new).copied().collect()
}

/// The tests that may be joined, and the others, both in their order.
fn grouped<'f>(parts: &[&'f Filter], any: bool) -> (Vec<Group<'f>>, Vec<&'f Filter>) {
    type Key<'f> = (bool, &'f str, Kind);
    let mut places: HashMap<Key<'f>, usize, foldhash::fast::RandomState> = HashMap::default();
    let (mut groups, mut single) = (Vec::<Group<'f>>::new(), Vec::new());
    for &filter in parts {
        let Filter::Field { field, predicate } = filter else {
            single.push(filter);
            continue;
        };
        let (is_name, name) = match field {
            FieldPattern::Name(name) => (true, name),
            FieldPattern::Prefix(prefix) => (false, prefix),
        };
        // All of several conditions may hold for different fields of a prefix.
        let kind = kind_of(predicate, any).filter(|_| any || is_name);
        let Some(kind) = kind else {
            single.push(filter);
            continue;
        };
        let place = *places.entry((is_name, name, kind)).or_insert_with(|| {
            groups.push(Group { field, kind, members: Vec::new() });
            groups.len() - 1
        });
        if let Some(group) = groups.get_mut(place) {
            group.members.push(filter);
        }
    }
    (groups, single)
}

/// How a test may be joined with others. The empty phrase means the empty value, which no text
/// stands in.
fn kind_of(predicate: &Predicate, any: bool) -> Option<Kind> {
    let filled = |list: &[String]| list.iter().all(|text| !text.is_empty());
    match predicate {
        Predicate::Phrase(text) if any || !text.is_empty() => Some(Kind::Needle),
        Predicate::Prefix(text) | Predicate::Substring(text) if !text.is_empty() => {
            Some(Kind::Needle)
        }
        Predicate::ContainsAny(ValueSet::List(_)) if any => Some(Kind::Needle),
        Predicate::ContainsAll(ValueSet::List(list)) if !any && filled(list) => Some(Kind::Needle),
        Predicate::Exact(_) | Predicate::In(ValueSet::List(_)) if any => Some(Kind::Value),
        _ => None,
    }
}

/// The test that the members of a group make together.
fn joined(group: &Group<'_>, any: bool) -> ValuePredicate {
    let predicates = group.members.iter().filter_map(|filter| match filter {
        Filter::Field { predicate, .. } => Some(predicate),
        _ => None,
    });
    match group.kind {
        Kind::Value => {
            one_of(predicates.flat_map(texts).map(|text| text.as_bytes().to_vec()).collect())
        }
        Kind::Needle => {
            let needles: Vec<Bounded> = predicates
                .flat_map(|p| texts(p).map(move |text| bounded(p, text.as_bytes())))
                .collect();
            if any {
                ValuePredicate::AnyPhrase(PhraseSet::of(needles))
            } else {
                all_needles(needles)
            }
        }
    }
}

/// The texts of a test of a [`Kind`].
fn texts(predicate: &Predicate) -> impl Iterator<Item = &String> {
    let texts = match predicate {
        Predicate::Phrase(text)
        | Predicate::Prefix(text)
        | Predicate::Substring(text)
        | Predicate::Exact(text) => std::slice::from_ref(text),
        Predicate::ContainsAny(ValueSet::List(list))
        | Predicate::ContainsAll(ValueSet::List(list))
        | Predicate::In(ValueSet::List(list)) => list,
        _ => &[],
    };
    texts.iter()
}

fn bounded(predicate: &Predicate, text: &[u8]) -> Bounded {
    match predicate {
        Predicate::Prefix(_) => Bounded::prefix(text),
        Predicate::Substring(_) => Bounded::substring(text),
        _ => Bounded::phrase(text),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use std::sync::atomic::Ordering::Relaxed;

    use super::super::CompiledFilter;
    use super::super::testing::{adversarial_text, field};
    use super::*;
    use crate::codec::Bitmap;
    use crate::error::Error;
    use crate::query::batch::Batch;
    use crate::query::column::Column;
    use crate::query::naive;
    use crate::query::testing::test_context;

    fn compile(filter: &Filter) -> CompiledFilter {
        test_context(|ctx| CompiledFilter::compile(filter, ctx)).unwrap()
    }

    fn leaves(node: &Node) -> usize {
        match node {
            Node::And(all) | Node::Or(all) => all.iter().map(leaves).sum(),
            Node::Not(inner) => leaves(inner),
            _ => 1,
        }
    }

    #[test]
    fn long_lists_are_one_test() {
        let words: Vec<String> = (0..5_000).map(|i| format!("w{i}")).collect();
        let list = |sign: &str, glue: &str| {
            let all: Vec<String> = words.iter().map(|w| sign.replace('W', w)).collect();
            leaves(&compile(&all.join(glue).parse().unwrap()).root)
        };
        for sign in ["W", "!W", "f:W", "f:!W", "W*", "*W*", "a*:W", "f:=W", "contains_any(W, x)"] {
            assert_eq!(list(sign, " or "), 1, "{sign} or");
        }
        for sign in ["W", "!W", "f:W", "f:!W", "W*", "*W*", "f:!=W", "!f:W"] {
            assert_eq!(list(sign, " "), 1, "{sign} and");
        }
        let repeated = vec!["a"; 1_000].join(" or ");
        assert_eq!(leaves(&compile(&repeated.parse().unwrap()).root), 1);
        let repeated = vec!["f:>5"; 1_000].join(" ");
        assert_eq!(leaves(&compile(&repeated.parse().unwrap()).root), 1);
    }

    #[test]
    fn long_filters_ask_whether_they_may_go_on() {
        let list: Vec<String> = (0..100).map(|i| format!("f{i}:>{i}")).collect();
        let filter: Filter = list.join(" or ").parse().unwrap();
        test_context(|ctx| {
            let compiled = CompiledFilter::compile(&filter, ctx).unwrap();
            let mut batch = Batch::new(1);
            batch.set_column("f99".into(), Column::constant(b"5"));
            let mut selection = Bitmap::full(1);
            compiled.eval(&batch, &mut selection).unwrap();
            ctx.stop.cancelled.store(true, Relaxed);
            let mut selection = Bitmap::full(1);
            let stopped = compiled.eval(&batch, &mut selection);
            assert!(matches!(stopped, Err(Error::Cancelled)));
        });
    }

    fn test() -> impl Strategy<Value = Filter> {
        let text = || adversarial_text();
        // What the empty phrase means in a list is tested elsewhere.
        let filled =
            || adversarial_text().prop_map(|t| if t.is_empty() { "x".to_owned() } else { t });
        let name = prop::sample::select(vec!["a", "b"]);
        let predicate = prop_oneof![
            4 => text().prop_map(Predicate::Phrase),
            1 => text().prop_filter_map("any", |t| (!t.is_empty()).then_some(Predicate::Prefix(t))),
            1 => text().prop_map(Predicate::Substring),
            2 => text().prop_map(Predicate::Exact),
            1 => prop::collection::vec(filled(), 0..3)
                .prop_map(|l| Predicate::ContainsAny(ValueSet::List(l))),
            1 => prop::collection::vec(filled(), 0..3)
                .prop_map(|l| Predicate::ContainsAll(ValueSet::List(l))),
            1 => prop::collection::vec(text(), 0..3).prop_map(|l| Predicate::In(ValueSet::List(l))),
            1 => Just(Predicate::Any),
        ];
        (name, predicate, 0..4, any::<bool>()).prop_map(|(name, predicate, negate, prefix)| {
            let mut filter = field(name, predicate);
            if let (Filter::Field { field, .. }, true) = (&mut filter, prefix) {
                *field = FieldPattern::Prefix(name.to_owned());
            }
            if negate == 0 { Filter::Not(Box::new(filter)) } else { filter }
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(600))]

        #[test]
        fn joined_tests_mean_what_each_means(
            parts in prop::collection::vec(test(), 0..40),
            any: bool,
            values in prop::collection::vec((adversarial_text(), adversarial_text()), 1..6),
        ) {
            let filter = if any { Filter::Or(parts) } else { Filter::And(parts) };
            let column = |texts: Vec<&[u8]>| Column::text(texts.into_iter().collect());
            let mut batch = Batch::new(values.len());
            batch.set_column("a".into(), column(values.iter().map(|v| v.0.as_bytes()).collect()));
            batch.set_column("b".into(), column(values.iter().map(|v| v.1.as_bytes()).collect()));
            let mut selection = Bitmap::full(values.len());
            compile(&filter).eval(&batch, &mut selection).unwrap();
            for (i, (a, b)) in values.iter().enumerate() {
                let mut row = naive::Row::default();
                row.set("a", a);
                row.set("b", b);
                let want = naive::matches(&filter, &row, naive::Scope::at(0));
                prop_assert_eq!(selection.get(i), want, "{:?}", row);
            }
        }
    }
}
