//! `min` and `max` in the total order of values.

use std::cmp::Ordering;

use super::input::{FieldList, Input};
use super::{StatsState, mapped, same_state, slot};
use crate::error::Result;
use crate::query::column::Column;
use crate::query::context::ExecContext;
use crate::query::value_key::{ValueKey, ValueRef};

/// The extreme value of some fields, by the smaller spelling where values are equal.
#[derive(Debug, Clone)]
pub(crate) struct ExtremeState {
    fields: FieldList,
    max: bool,
    best: Vec<Option<ValueKey>>,
    text_bytes: usize,
}

impl ExtremeState {
    /// `max(...)` or `min(...)`.
    pub(crate) fn new(fields: FieldList, max: bool) -> ExtremeState {
        ExtremeState { fields, max, best: Vec::new(), text_bytes: 0 }
    }

    #[inline]
    fn offer(&mut self, group: u32, value: ValueRef<'_>) {
        let best = slot(&mut self.best, group);
        let wins = match &*best {
            None => true,
            Some(key) => match value.compare(key) {
                Ordering::Less => !self.max,
                Ordering::Greater => self.max,
                Ordering::Equal => value.compare_then_bytes(key) == Ordering::Less,
            },
        };
        if wins {
            let key = value.to_key();
            self.text_bytes += key.heap_bytes();
            if let Some(old) = best.replace(key) {
                self.text_bytes -= old.heap_bytes();
            }
        }
    }

    fn offer_column(&mut self, input: &Input<'_>, column: &Column, with_absent: bool) {
        if let Column::Codes { codes, dictionary } = column {
            // The last group that a value was offered to: most rows repeat both.
            let mut offered = vec![u32::MAX; dictionary.len()];
            input.for_each(|row, group| {
                let Some(&code) = codes.get(row) else { return };
                let Some(last) = offered.get_mut(code as usize) else { return };
                let value = dictionary.get(code as usize);
                if *last != group && (with_absent || !value.is_empty()) {
                    self.offer(group, ValueRef::Text(value));
                }
                *last = group;
            });
            return;
        }
        let constant = matches!(column, Column::Const(_));
        let mut last = u32::MAX;
        input.for_each(|row, group| {
            if constant && group == last {
                return;
            }
            last = group;
            let value = ValueRef::of(column, row);
            if with_absent || !value.is_empty() {
                self.offer(group, value);
            }
        });
    }
}

impl StatsState for ExtremeState {
    fn update(&mut self, _ctx: &ExecContext<'_>, input: &Input<'_>) -> Result<()> {
        let absent = Column::absent();
        let fields = self.fields.clone();
        for part in fields.parts(input.batch, &absent) {
            self.offer_column(input, part.column, part.with_absent);
        }
        Ok(())
    }

    fn fork(&self) -> Box<dyn StatsState> {
        Box::new(ExtremeState::new(self.fields.clone(), self.max))
    }

    fn absorb(
        &mut self,
        _ctx: &ExecContext<'_>,
        other: Box<dyn StatsState>,
        map: &[u32],
    ) -> Result<()> {
        if let Some(other) = same_state::<ExtremeState>(other) {
            for (group, best) in other.best.iter().enumerate() {
                if let Some(key) = best {
                    self.offer(mapped(map, group), key.as_ref());
                }
            }
        }
        Ok(())
    }

    fn answer(&mut self, _ctx: &ExecContext<'_>, group: u32, out: &mut Vec<u8>) {
        if let Some(key) = slot(&mut self.best, group) {
            key.as_ref().push_to(out);
        }
    }

    fn heap_bytes(&self) -> usize {
        self.best.capacity() * size_of::<Option<ValueKey>>() + self.text_bytes
    }
}
