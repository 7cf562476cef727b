//! `values` and `json_values`: lists of values in the order of the rows.

use std::cmp::Ordering;

use super::input::{FieldList, Input, Place};
use super::{StatsState, mapped, same_state, slot};
use crate::error::Result;
use crate::query::ast::SortKey;
use crate::query::column::Column;
use crate::query::context::ExecContext;
use crate::query::json;
use crate::query::value_key::{ValueKey, ValueRef};

/// A listed text.
#[derive(Debug, Clone)]
struct Entry {
    place: Place,
    keys: Box<[ValueKey]>,
    text: Box<[u8]>,
}

/// The texts of each group, cut to the first ones of an order where there is a limit.
#[derive(Debug, Clone, Default)]
struct Lists {
    groups: Vec<Vec<Entry>>,
    limit: Option<u64>,
    /// For each key whether the largest comes first.
    desc: Vec<bool>,
    bytes: usize,
}

impl Lists {
    fn new(limit: Option<u64>, desc: Vec<bool>) -> Lists {
        Lists { limit, desc, ..Lists::default() }
    }

    fn fork(&self) -> Lists {
        Lists::new(self.limit, self.desc.clone())
    }

    fn push(&mut self, ctx: &ExecContext<'_>, group: u32, entry: Entry) {
        self.bytes += entry_bytes(&entry);
        let list = slot(&mut self.groups, group);
        list.push(entry);
        let limit = self.limit.map(|l| usize::try_from(l).unwrap_or(usize::MAX));
        if limit.is_some_and(|limit| list.len() >= limit.saturating_mul(2).saturating_add(64)) {
            self.cut(ctx, group);
        }
    }

    /// Sorts a list and cuts it to the limit.
    fn cut(&mut self, ctx: &ExecContext<'_>, group: u32) {
        let desc = &self.desc;
        let list = slot(&mut self.groups, group);
        // Stable: several texts of a row stay in their order.
        list.sort_by(|a, b| compare(a, b, desc).then_with(|| a.place.compare(&b.place, ctx)));
        let limit = self.limit.map_or(usize::MAX, |l| usize::try_from(l).unwrap_or(usize::MAX));
        while list.len() > limit {
            if let Some(entry) = list.pop() {
                self.bytes -= entry_bytes(&entry);
            }
        }
    }

    fn absorb(&mut self, ctx: &ExecContext<'_>, other: Lists, map: &[u32]) {
        for (group, list) in other.groups.into_iter().enumerate() {
            for entry in list {
                self.push(ctx, mapped(map, group), entry);
            }
        }
    }

    fn prepare(&mut self, ctx: &ExecContext<'_>) -> Result<()> {
        for group in 0..self.groups.len() {
            self.cut(ctx, u32::try_from(group).unwrap_or(u32::MAX));
            ctx.check()?;
        }
        Ok(())
    }

    fn answer(&mut self, group: u32, out: &mut Vec<u8>) {
        json::push_array(out, slot(&mut self.groups, group).iter().map(|e| &*e.text));
    }

    fn heap_bytes(&self) -> usize {
        self.bytes + self.groups.capacity() * 24
    }
}

fn entry_bytes(entry: &Entry) -> usize {
    let keys: usize = entry.keys.iter().map(|k| size_of::<ValueKey>() + k.heap_bytes()).sum();
    2 * size_of::<Entry>() + entry.text.len() + keys
}

fn compare(a: &Entry, b: &Entry, desc: &[bool]) -> Ordering {
    for ((x, y), desc) in a.keys.iter().zip(&b.keys).zip(desc) {
        let order = x.as_ref().compare(y);
        if order != Ordering::Equal {
            return if *desc { order.reverse() } else { order };
        }
    }
    Ordering::Equal
}

/// `values(...)`
#[derive(Debug, Clone)]
pub(crate) struct ValuesState {
    fields: FieldList,
    lists: Lists,
}

impl ValuesState {
    /// The values of the fields, absent ones as empty texts.
    pub(crate) fn new(fields: FieldList, limit: Option<u64>) -> ValuesState {
        ValuesState { fields, lists: Lists::new(limit, Vec::new()) }
    }
}

impl StatsState for ValuesState {
    fn update(&mut self, ctx: &ExecContext<'_>, input: &Input<'_>) -> Result<()> {
        let absent = Column::absent();
        let parts = self.fields.parts(input.batch, &absent);
        let (lists, mut scratch) = (&mut self.lists, Vec::new());
        input.for_each(|row, group| {
            for part in &parts {
                let value = part.column.value(row, &mut scratch);
                if part.with_absent || !value.is_empty() {
                    let (place, text) = (input.place(row), Box::from(value));
                    lists.push(ctx, group, Entry { place, keys: Box::default(), text });
                }
            }
        });
        Ok(())
    }

    fn fork(&self) -> Box<dyn StatsState> {
        Box::new(ValuesState { fields: self.fields.clone(), lists: self.lists.fork() })
    }

    fn absorb(
        &mut self,
        ctx: &ExecContext<'_>,
        other: Box<dyn StatsState>,
        map: &[u32],
    ) -> Result<()> {
        if let Some(other) = same_state::<ValuesState>(other) {
            self.lists.absorb(ctx, other.lists, map);
        }
        Ok(())
    }

    fn prepare(&mut self, ctx: &ExecContext<'_>) -> Result<()> {
        self.lists.prepare(ctx)
    }

    fn answer(&mut self, _ctx: &ExecContext<'_>, group: u32, out: &mut Vec<u8>) {
        self.lists.answer(group, out);
    }

    fn heap_bytes(&self) -> usize {
        self.lists.heap_bytes()
    }
}

/// `json_values(...)`
#[derive(Debug, Clone)]
pub(crate) struct JsonValuesState {
    fields: FieldList,
    keys: Vec<String>,
    lists: Lists,
}

impl JsonValuesState {
    /// The fields of each row as JSON.
    pub(crate) fn new(fields: FieldList, sort: &[SortKey], limit: Option<u64>) -> JsonValuesState {
        let desc = sort.iter().map(|k| k.desc).collect();
        let keys = sort.iter().map(|k| k.field.clone()).collect();
        JsonValuesState { fields, keys, lists: Lists::new(limit, desc) }
    }
}

impl StatsState for JsonValuesState {
    fn update(&mut self, ctx: &ExecContext<'_>, input: &Input<'_>) -> Result<()> {
        let absent = Column::absent();
        let keys: Vec<&Column> =
            self.keys.iter().map(|k| input.column(k).unwrap_or(&absent)).collect();
        let parts = self.fields.parts(input.batch, &absent);
        let (lists, mut scratch) = (&mut self.lists, Vec::new());
        input.for_each(|row, group| {
            let mut text = Vec::new();
            json::push_row(&mut text, &parts, row, &mut scratch);
            let keys = keys.iter().map(|c| ValueRef::of(c, row).to_key()).collect();
            let entry = Entry { place: input.place(row), keys, text: text.into_boxed_slice() };
            lists.push(ctx, group, entry);
        });
        Ok(())
    }

    fn fork(&self) -> Box<dyn StatsState> {
        let (fields, keys) = (self.fields.clone(), self.keys.clone());
        Box::new(JsonValuesState { fields, keys, lists: self.lists.fork() })
    }

    fn absorb(
        &mut self,
        ctx: &ExecContext<'_>,
        other: Box<dyn StatsState>,
        map: &[u32],
    ) -> Result<()> {
        if let Some(other) = same_state::<JsonValuesState>(other) {
            self.lists.absorb(ctx, other.lists, map);
        }
        Ok(())
    }

    fn prepare(&mut self, ctx: &ExecContext<'_>) -> Result<()> {
        self.lists.prepare(ctx)
    }

    fn answer(&mut self, _ctx: &ExecContext<'_>, group: u32, out: &mut Vec<u8>) {
        self.lists.answer(group, out);
    }

    fn heap_bytes(&self) -> usize {
        self.lists.heap_bytes()
    }
}
