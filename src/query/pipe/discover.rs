//! `field_names` and `facets`: what the rows hold.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use super::uniq::counts;
use super::{Collector, Sink, emit, same_kind};
use crate::error::Result;
use crate::query::ast::Facets;
use crate::query::batch::Batch;
use crate::query::column::Column;
use crate::query::context::{ExecContext, Flow, Reservation};
use crate::query::group::ValueTable;
use crate::query::sorting::sort_checked;
use crate::record::{TextVec, cmp_values_then_bytes};

/// Counts the rows in which each field has a value.
pub(crate) struct FieldNamesCollector {
    filter: Option<String>,
    result: Arc<str>,
    hits: BTreeMap<Arc<str>, u64>,
    /// Bytes of the names.
    bytes: usize,
    memory: Reservation,
}

impl FieldNamesCollector {
    /// The empty state.
    pub(crate) fn new(
        filter: Option<&str>,
        result: &str,
        ctx: &ExecContext<'_>,
    ) -> FieldNamesCollector {
        FieldNamesCollector {
            filter: filter.map(str::to_owned),
            result: Arc::from(result),
            hits: BTreeMap::new(),
            bytes: 0,
            memory: ctx.reservation("field_names"),
        }
    }

    fn add(&mut self, name: Arc<str>, n: u64) {
        if n == 0 {
            return;
        }
        match self.hits.entry(name) {
            Entry::Occupied(mut known) => *known.get_mut() += n,
            Entry::Vacant(free) => {
                self.bytes += free.key().len() + 64;
                free.insert(n);
            }
        }
    }
}

/// The number of rows with a value.
fn present(column: &Column, rows: usize) -> u64 {
    match column {
        Column::Const(value) if value.is_empty() => 0,
        Column::Const(_) => rows as u64,
        _ => (0..rows).filter(|row| !column.is_empty_at(*row)).count() as u64,
    }
}

impl Collector for FieldNamesCollector {
    fn push(&mut self, ctx: &ExecContext<'_>, batch: Batch) -> Result<Flow> {
        ctx.check()?;
        let rows = batch.rows();
        for (name, column) in batch.into_columns() {
            if self.filter.as_ref().is_none_or(|part| name.contains(part.as_str())) {
                let n = present(&column, rows);
                self.add(name, n);
            }
        }
        self.memory.resize(self.bytes)?;
        Ok(Flow::Continue)
    }

    fn fork(&self) -> Box<dyn Collector> {
        Box::new(FieldNamesCollector {
            filter: self.filter.clone(),
            result: self.result.clone(),
            hits: BTreeMap::new(),
            bytes: 0,
            memory: self.memory.fork(),
        })
    }

    fn absorb(&mut self, _ctx: &ExecContext<'_>, other: Box<dyn Collector>) -> Result<()> {
        if let Some(other) = same_kind::<FieldNamesCollector>(other) {
            for (name, n) in other.hits {
                self.add(name, n);
            }
        }
        Ok(())
    }

    fn finish(self: Box<Self>, _ctx: &ExecContext<'_>, out: &mut Sink<'_>) -> Result<()> {
        let mut batch = Batch::new(self.hits.len());
        let names: TextVec = self.hits.keys().map(|n| n.as_bytes()).collect();
        batch.set_column(self.result.clone(), Column::text(names));
        let hits = if &*self.result == "hits" { "hitss" } else { "hits" };
        batch.set_column(Arc::from(hits), counts(self.hits.values().copied()));
        emit(&batch, out).map(|_| ())
    }
}

/// Counts the values of every field.
pub(crate) struct FacetsCollector {
    plan: Facets,
    rows: u64,
    fields: BTreeMap<Arc<str>, FieldFacet>,
    memory: Reservation,
}

/// The values of one field; nothing is kept of a field that has too many or too long ones.
#[derive(Default)]
struct FieldFacet {
    values: ValueTable,
    hits: Vec<u64>,
    dropped: bool,
    /// How many of the values were judged.
    judged: u32,
    /// Whether the empty value is one of those.
    empty: bool,
}

impl FieldFacet {
    fn add(&mut self, id: u32, n: u64) {
        let id = id as usize;
        if self.hits.len() <= id {
            self.hits.resize(id + 1, 0);
        }
        if let Some(hits) = self.hits.get_mut(id) {
            *hits += n;
        }
    }

    /// Drops the field for good if it breaks a rule. Looks at the values that are new.
    fn judge(&mut self, plan: &Facets) {
        let values = self.values.values();
        let end = u32::try_from(values.len()).unwrap_or(u32::MAX);
        let mut too_long = false;
        for id in std::mem::replace(&mut self.judged, end)..end {
            let value = values.get(id);
            too_long |= value.len() as u64 > plan.max_value_len;
            self.empty |= value.is_empty();
        }
        let distinct = values.len() as u64 - u64::from(self.empty);
        if too_long || distinct > plan.max_values_per_field {
            *self = FieldFacet { dropped: true, ..FieldFacet::default() };
        }
    }
}

impl FacetsCollector {
    /// The empty state.
    pub(crate) fn new(plan: &Facets, ctx: &ExecContext<'_>) -> FacetsCollector {
        let memory = ctx.reservation("facets");
        FacetsCollector { plan: plan.clone(), rows: 0, fields: BTreeMap::new(), memory }
    }

    fn charge(&mut self) -> Result<()> {
        let bytes = |f: &FieldFacet| 128 + f.values.heap_bytes() + f.hits.capacity() * 8;
        self.memory.resize(self.fields.values().map(bytes).sum())
    }
}

impl Collector for FacetsCollector {
    fn push(&mut self, ctx: &ExecContext<'_>, batch: Batch) -> Result<Flow> {
        ctx.check()?;
        let rows = batch.rows();
        self.rows += rows as u64;
        for (name, column) in batch.into_columns() {
            let facet = self.fields.entry(name).or_default();
            if facet.dropped || rows == 0 {
                continue;
            }
            let numbers = facet.values.intern_column(&column, rows);
            numbers.for_each_count(rows, |id, n| facet.add(id, n));
            facet.judge(&self.plan);
            ctx.check()?;
        }
        self.charge()?;
        Ok(Flow::Continue)
    }

    fn fork(&self) -> Box<dyn Collector> {
        Box::new(FacetsCollector {
            plan: self.plan.clone(),
            rows: 0,
            fields: BTreeMap::new(),
            memory: self.memory.fork(),
        })
    }

    fn absorb(&mut self, ctx: &ExecContext<'_>, other: Box<dyn Collector>) -> Result<()> {
        let Some(other) = same_kind::<FacetsCollector>(other) else { return Ok(()) };
        self.rows += other.rows;
        for (name, theirs) in other.fields {
            let mine = self.fields.entry(name).or_default();
            if mine.dropped || theirs.dropped {
                *mine = FieldFacet { dropped: true, ..FieldFacet::default() };
                continue;
            }
            for (i, (id, n)) in (0..).zip(&theirs.hits).enumerate() {
                ctx.check_row(i)?;
                let id = mine.values.intern(theirs.values.values().get(id));
                mine.add(id, *n);
            }
            mine.judge(&self.plan);
        }
        self.charge()
    }

    fn finish(self: Box<Self>, ctx: &ExecContext<'_>, out: &mut Sink<'_>) -> Result<()> {
        let limit = usize::try_from(self.plan.limit).unwrap_or(usize::MAX);
        let (mut names, mut values, mut hits) = (TextVec::new(), TextVec::new(), Vec::new());
        for (name, facet) in self.fields.iter().filter(|(_, f)| !f.dropped) {
            ctx.check()?;
            let table = facet.values.values();
            let mut list: Vec<(&[u8], u64)> = (0..)
                .zip(&facet.hits)
                .map(|(id, n)| (table.get(id), *n))
                .filter(|(value, n)| !value.is_empty() && *n > 0)
                .collect();
            let constant = matches!(list.as_slice(), [(_, n)] if *n == self.rows);
            if constant && !self.plan.keep_const_fields {
                continue;
            }
            sort_checked(&mut list, ctx, |a, b| {
                Reverse(a.1).cmp(&Reverse(b.1)).then_with(|| cmp_values_then_bytes(a.0, b.0))
            })?;
            for (value, n) in list.into_iter().take(limit) {
                names.push(name.as_bytes());
                values.push(value);
                hits.push(n);
            }
        }
        let mut batch = Batch::new(hits.len());
        batch.set_column(Arc::from("field_name"), Column::text(names));
        batch.set_column(Arc::from("field_value"), Column::text(values));
        batch.set_column(Arc::from("hits"), counts(hits.into_iter()));
        emit(&batch, out).map(|_| ())
    }
}
