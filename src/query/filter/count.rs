//! Counts rows by the templates that they are of, where the verdicts on these decide.

use std::sync::Arc;

use super::coded::{RowNumbers, Verdicts};
use super::eval::ColumnSource;
use super::judge::Verdict;
use super::{CompiledFilter, FieldTest, Node};
use crate::codec::template::TemplateIds;
use crate::error::Result;

impl CompiledFilter {
    /// How many rows pass those of the parts that `open` names; `None` if rows have to be looked
    /// at one by one. Time: that of going over the templates that the rows are of.
    pub(crate) fn count_parts(
        &self,
        open: &[usize],
        source: &dyn ColumnSource,
    ) -> Result<Option<usize>> {
        let mut reader = VerdictReader { source, field: None, ids: None };
        let mut all = Vec::new();
        for part in open.iter().filter_map(|i| self.parts().get(*i)) {
            let Some(verdicts) = reader.read(part)? else { return Ok(None) };
            all.push(verdicts);
        }
        let of = |number: u32| all.iter().fold(Verdict::All, |v, part| v.and(part.of(number)));
        let Some(ids) = &reader.ids else {
            return Ok(match of(0) {
                Verdict::None => Some(0),
                Verdict::All => Some(source.rows()),
                Verdict::Maybe => None,
            });
        };
        let mut count = 0;
        for (template, rows) in ids.counts() {
            match of(u32::try_from(template).unwrap_or(u32::MAX)) {
                Verdict::None => {}
                Verdict::All => count += rows,
                Verdict::Maybe => return Ok(None),
            }
        }
        Ok(Some(count))
    }
}

/// The verdicts of a tree of tests on one field.
enum VerdictTree {
    /// The same for all rows.
    Same(Verdict),
    Leaf(Arc<Verdicts>),
    All(Vec<VerdictTree>),
    Any(Vec<VerdictTree>),
    Not(Box<VerdictTree>),
}

impl VerdictTree {
    /// `join` of trees, without those that do not count: a tree that says `neutral` of all rows.
    /// One that says its opposite of all rows decides.
    fn joined(
        mut trees: Vec<VerdictTree>,
        neutral: Verdict,
        join: impl FnOnce(Vec<VerdictTree>) -> VerdictTree,
    ) -> VerdictTree {
        let decides = |tree: &VerdictTree| tree.is_same(neutral.negated());
        if trees.iter().any(decides) {
            return VerdictTree::Same(neutral.negated());
        }
        trees.retain(|tree| !tree.is_same(neutral));
        match (trees.len(), trees.pop()) {
            (_, None) => VerdictTree::Same(neutral),
            (1, Some(only)) => only,
            (_, Some(last)) => {
                trees.push(last);
                join(trees)
            }
        }
    }

    fn is_same(&self, verdict: Verdict) -> bool {
        matches!(self, VerdictTree::Same(same) if *same == verdict)
    }

    /// The verdict on the rows of a number.
    fn of(&self, number: u32) -> Verdict {
        match self {
            VerdictTree::Same(verdict) => *verdict,
            VerdictTree::Leaf(verdicts) => verdicts.of(number),
            VerdictTree::All(all) => {
                all.iter().fold(Verdict::All, |verdict, part| verdict.and(part.of(number)))
            }
            VerdictTree::Any(any) => {
                any.iter().fold(Verdict::None, |verdict, part| verdict.or(part.of(number)))
            }
            VerdictTree::Not(inner) => inner.of(number).negated(),
        }
    }
}

/// Asks for the verdicts of the leaves of a filter.
struct VerdictReader<'a> {
    source: &'a dyn ColumnSource,
    /// The field of which templates were read.
    field: Option<&'a str>,
    ids: Option<Arc<TemplateIds>>,
}

impl<'a> VerdictReader<'a> {
    /// `None` if a leaf is not decided by templates, or by those of another field.
    fn read(&mut self, node: &'a Node) -> Result<Option<VerdictTree>> {
        Ok(match node {
            Node::And(all) => {
                let join = |all| VerdictTree::joined(all, Verdict::All, VerdictTree::All);
                self.read_all(all)?.map(join)
            }
            Node::Or(any) => {
                let join = |any| VerdictTree::joined(any, Verdict::None, VerdictTree::Any);
                self.read_all(any)?.map(join)
            }
            Node::Not(inner) => self.read(inner)?.map(|inner| VerdictTree::Not(Box::new(inner))),
            Node::Field { field, test: FieldTest::Value(predicate), leaf } => {
                let rows = self.source.coded(field, *leaf, predicate)?;
                let Some(rows) = rows.filter(|rows| rows.constants.is_empty()) else {
                    return Ok(None);
                };
                match rows.numbers {
                    RowNumbers::Unread => {}
                    RowNumbers::Templates(ids)
                        if self.field.is_none_or(|known| *known == **field) =>
                    {
                        (self.field, self.ids) = (Some(&**field), Some(ids));
                    }
                    _ => return Ok(None),
                }
                Some(match rows.verdicts.common() {
                    Some(verdict) => VerdictTree::Same(verdict),
                    None => VerdictTree::Leaf(rows.verdicts),
                })
            }
            _ => None,
        })
    }

    fn read_all(&mut self, nodes: &'a [Node]) -> Result<Option<Vec<VerdictTree>>> {
        nodes.iter().map(|node| self.read(node)).collect()
    }
}
