//! Functions that pick one row of a group: `row_any`, `row_min`, `row_max`, `any`, `field_min`,
//! `field_max`. Among equal rows the first one is picked.

use std::cmp::Ordering;

use super::input::{FieldList, Input, Place};
use super::{StatsState, mapped, same_state, slot};
use crate::error::Result;
use crate::query::column::Column;
use crate::query::context::ExecContext;
use crate::query::json;
use crate::query::value_key::{ValueKey, ValueRef};

/// The picked row of a group.
#[derive(Debug, Clone)]
struct Picked {
    place: Place,
    key: Option<ValueKey>,
    text: Box<[u8]>,
}

/// The picked rows of all groups.
#[derive(Debug, Clone, Default)]
struct Picks {
    max: bool,
    groups: Vec<Option<Picked>>,
    bytes: usize,
}

impl Picks {
    fn new(max: bool) -> Picks {
        Picks { max, ..Picks::default() }
    }

    /// Whether a row with this key takes the place of the picked one.
    fn wins(
        &mut self,
        ctx: &ExecContext<'_>,
        group: u32,
        key: Option<ValueRef<'_>>,
        place: impl Fn() -> Place,
    ) -> bool {
        let max = self.max;
        let Some(picked) = slot(&mut self.groups, group) else { return true };
        let by_key = match (key, &picked.key) {
            (Some(key), Some(best)) => key.compare(best),
            _ => Ordering::Equal,
        };
        match by_key {
            Ordering::Less => !max,
            Ordering::Greater => max,
            Ordering::Equal => place().compare(&picked.place, ctx) == Ordering::Less,
        }
    }

    fn set(&mut self, group: u32, picked: Picked) {
        let bytes = |p: &Picked| p.text.len() + p.key.as_ref().map_or(0, ValueKey::heap_bytes);
        self.bytes += bytes(&picked);
        if let Some(old) = slot(&mut self.groups, group).replace(picked) {
            self.bytes -= bytes(&old);
        }
    }

    fn absorb(&mut self, ctx: &ExecContext<'_>, other: Picks, map: &[u32]) {
        for (group, picked) in other.groups.into_iter().enumerate() {
            let group = mapped(map, group);
            if let Some(picked) = picked {
                let key = picked.key.as_ref().map(ValueKey::as_ref);
                if self.wins(ctx, group, key, || picked.place) {
                    self.set(group, picked);
                }
            }
        }
    }

    fn text(&self, group: u32) -> Option<&[u8]> {
        self.groups.get(group as usize)?.as_ref().map(|p| &*p.text)
    }

    fn heap_bytes(&self) -> usize {
        self.groups.capacity() * size_of::<Option<Picked>>() + self.bytes
    }
}

/// Picks rows by the order of `source`, or the first one; `text` makes what is kept of a row.
fn pick(
    ctx: &ExecContext<'_>,
    input: &Input<'_>,
    picks: &mut Picks,
    source: Option<&str>,
    mut text: impl FnMut(usize) -> Option<Box<[u8]>>,
) {
    let source = match source {
        None => None,
        Some(name) => match input.column(name) {
            Some(column) => Some(column),
            // Rows without a value to compare take no part.
            None => return,
        },
    };
    input.for_each(|row, group| {
        let key = source.map(|column| ValueRef::of(column, row));
        if key.is_some_and(ValueRef::is_empty) {
            return;
        }
        if picks.wins(ctx, group, key, || input.place(row))
            && let Some(text) = text(row)
        {
            let key = key.map(ValueRef::to_key);
            picks.set(group, Picked { place: input.place(row), key, text });
        }
    });
}

/// `row_any`, `row_min`, `row_max`: a row as JSON.
#[derive(Debug, Clone)]
pub(crate) struct PickRow {
    source: Option<String>,
    fields: FieldList,
    picks: Picks,
}

impl PickRow {
    /// `row_any(...)`: the first row.
    pub(crate) fn any(fields: FieldList) -> PickRow {
        PickRow { source: None, fields, picks: Picks::new(false) }
    }

    /// `row_max(source, ...)` or `row_min`.
    pub(crate) fn extreme(source: &str, fields: FieldList, max: bool) -> PickRow {
        PickRow { source: Some(source.to_owned()), fields, picks: Picks::new(max) }
    }
}

impl StatsState for PickRow {
    fn update(&mut self, ctx: &ExecContext<'_>, input: &Input<'_>) -> Result<()> {
        let absent = Column::absent();
        let parts = self.fields.parts(input.batch, &absent);
        let mut scratch = Vec::new();
        pick(ctx, input, &mut self.picks, self.source.as_deref(), |row| {
            let mut text = Vec::new();
            json::push_row(&mut text, &parts, row, &mut scratch);
            Some(text.into_boxed_slice())
        });
        Ok(())
    }

    fn fork(&self) -> Box<dyn StatsState> {
        let (source, fields) = (self.source.clone(), self.fields.clone());
        Box::new(PickRow { source, fields, picks: Picks::new(self.picks.max) })
    }

    fn absorb(
        &mut self,
        ctx: &ExecContext<'_>,
        other: Box<dyn StatsState>,
        map: &[u32],
    ) -> Result<()> {
        if let Some(other) = same_state::<PickRow>(other) {
            self.picks.absorb(ctx, other.picks, map);
        }
        Ok(())
    }

    fn answer(&mut self, _ctx: &ExecContext<'_>, group: u32, out: &mut Vec<u8>) {
        out.extend_from_slice(self.picks.text(group).unwrap_or(b"{}"));
    }

    fn heap_bytes(&self) -> usize {
        self.picks.heap_bytes()
    }
}

/// `any`, `field_min`, `field_max`: a value of a row.
#[derive(Debug, Clone)]
pub(crate) struct PickField {
    source: Option<String>,
    field: String,
    picks: Picks,
}

impl PickField {
    /// `any(f)`: the first value that is not empty.
    pub(crate) fn any(field: &str) -> PickField {
        PickField { source: None, field: field.to_owned(), picks: Picks::new(false) }
    }

    /// `field_max(source, f)` or `field_min`.
    pub(crate) fn extreme(source: &str, field: &str, max: bool) -> PickField {
        let (source, field) = (Some(source.to_owned()), field.to_owned());
        PickField { source, field, picks: Picks::new(max) }
    }
}

impl StatsState for PickField {
    fn update(&mut self, ctx: &ExecContext<'_>, input: &Input<'_>) -> Result<()> {
        let absent = Column::absent();
        let column = input.column(&self.field).unwrap_or(&absent);
        let empty_counts = self.source.is_some();
        let mut scratch = Vec::new();
        pick(ctx, input, &mut self.picks, self.source.as_deref(), |row| {
            let value = column.value(row, &mut scratch);
            (empty_counts || !value.is_empty()).then(|| Box::from(value))
        });
        Ok(())
    }

    fn fork(&self) -> Box<dyn StatsState> {
        let (source, field) = (self.source.clone(), self.field.clone());
        Box::new(PickField { source, field, picks: Picks::new(self.picks.max) })
    }

    fn absorb(
        &mut self,
        ctx: &ExecContext<'_>,
        other: Box<dyn StatsState>,
        map: &[u32],
    ) -> Result<()> {
        if let Some(other) = same_state::<PickField>(other) {
            self.picks.absorb(ctx, other.picks, map);
        }
        Ok(())
    }

    fn answer(&mut self, _ctx: &ExecContext<'_>, group: u32, out: &mut Vec<u8>) {
        out.extend_from_slice(self.picks.text(group).unwrap_or(b""));
    }

    fn heap_bytes(&self) -> usize {
        self.picks.heap_bytes()
    }
}
