//! Filters: from the syntax tree to sets of rows.
//!
//! * [`CompiledFilter`] is a tree whose leaves look at one field ([`ValuePredicate`]), at the
//!   time, or at two fields. It is made once per query and shared by all workers.
//! * [`CompiledFilter::eval`] narrows a set of rows of a [`ColumnSource`]: a batch between two
//!   pipes or a strip of a block. Each leaf means what [`ValuePredicate::matches`] says of the
//!   bytes of a value; the form of a column only makes it faster.
//! * [`CompiledFilter::judge`] says of a whole block, from what is known without reading it,
//!   whether none or all of its rows pass. The judgement is three-valued over the whole tree, so
//!   that what excludes one branch never excludes another.
//!
//! Callers: the scan, the pipes with conditions, deletes.

mod address;
mod chars;
mod coded;
mod column;
mod compile;
mod count;
mod eval;
mod json_array;
mod judge;
mod lists;
mod many;
mod needs;
mod number_range;
mod pattern;
mod phrase;
mod predicate;
mod set;
mod slots;
mod stream;
mod template;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
mod time;

use std::sync::Arc;

pub(crate) use chars::{first_char, is_word_char};
pub(crate) use coded::{CodedRows, RowNumbers, Verdicts};
pub(crate) use eval::{ColumnRef, ColumnSource, FilterScratch};
pub(crate) use judge::{BlockFacts, ColumnFacts, IndexFacts, PageFacts, Verdict};
pub(crate) use needs::Needs;
pub(crate) use pattern::numbers_end;
pub(crate) use predicate::ValuePredicate;
pub(crate) use stream::matches_label;
pub(crate) use template::{PageWords, template_verdicts};
pub(crate) use time::TimeContext;

use crate::query::ast::{DayRange, FieldOp, StreamSelector, WeekRange};
use crate::query::context::{Reservation, Stop, TimeRange};

/// A filter ready to be evaluated; cheap to share.
#[derive(Debug, Clone)]
pub(crate) struct CompiledFilter {
    root: Node,
    times: TimeContext,
    /// Long filters ask whether they may go on.
    stop: Stop,
    /// What long lists take of the query's memory.
    _memory: Option<Arc<Reservation>>,
}

/// A part of a filter.
#[derive(Debug, Clone)]
enum Node {
    /// Every row, or none.
    Const(bool),
    /// All of them, cheapest first.
    And(Vec<Node>),
    /// Any of them, cheapest first.
    Or(Vec<Node>),
    /// The other rows.
    Not(Box<Node>),
    /// A condition on a field.
    Field {
        /// Its name.
        field: Arc<str>,
        /// The condition.
        test: FieldTest,
        /// Number of the leaf.
        leaf: usize,
    },
    /// A condition on any field that the row has and whose name starts so.
    AnyField {
        /// The start of the name.
        prefix: Arc<str>,
        /// The condition.
        test: FieldTest,
        /// Number of the leaf.
        leaf: usize,
    },
    /// The row's time lies in the range.
    Time(TimeRange),
    /// The time of day does.
    Day(DayRange),
    /// The day of the week does.
    Week(WeekRange),
}

/// A condition on a field.
#[derive(Debug, Clone)]
enum FieldTest {
    /// On its value.
    Value(Box<ValuePredicate>),
    /// On its value and that of another field.
    Compare(FieldOp, Arc<str>),
    /// On the form in which it is stored.
    Type(Arc<str>),
}

impl CompiledFilter {
    /// Whether no row passes, as far as the filter itself tells.
    pub(crate) fn is_none(&self) -> bool {
        matches!(self.root, Node::Const(false))
    }

    /// The parts that all have to pass.
    fn parts(&self) -> &[Node] {
        match &self.root {
            Node::And(all) => all,
            one => std::slice::from_ref(one),
        }
    }

    /// Whether nothing is asked but the time.
    pub(crate) fn asks_time_only(&self) -> bool {
        let by_time = |part: &Node| matches!(part, Node::Time(_) | Node::Day(_) | Node::Week(_));
        self.parts().iter().all(|part| by_time(part) || matches!(part, Node::Const(_)))
    }

    /// The number of parts that all have to pass.
    pub(crate) fn part_count(&self) -> usize {
        self.parts().len()
    }

    /// The stream selectors that every row has to pass, and the rest of the filter.
    pub(crate) fn split_selectors(self) -> (Vec<StreamSelector>, CompiledFilter) {
        let selectors: Vec<StreamSelector> =
            self.parts().iter().filter_map(Node::as_selector).cloned().collect();
        let rest = self.parts().iter().filter(|n| n.as_selector().is_none()).cloned().collect();
        (selectors, CompiledFilter { root: Node::and(rest), ..self })
    }
}

impl Node {
    fn as_selector(&self) -> Option<&StreamSelector> {
        match self {
            Node::Field { test: FieldTest::Value(predicate), .. } => match &**predicate {
                ValuePredicate::Stream(selector) => Some(selector),
                _ => None,
            },
            _ => None,
        }
    }
}
