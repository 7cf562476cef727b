//! `quantile` and `median`: an actual value, found among all values.

use std::cmp::Ordering;

use super::input::{FieldList, Input};
use super::{StatsState, mapped, same_state, slot};
use crate::codec::Bitmap;
use crate::error::Result;
use crate::query::column::{Column, push_int, push_time};
use crate::query::context::ExecContext;
use crate::query::group::Interner;
use crate::query::sorting::sort_checked;
use crate::query::value_key::ValueRef;
use crate::record::{cmp_values_then_bytes, parse_canonical_int};

/// All values of some fields.
#[derive(Debug, Clone)]
pub(crate) struct QuantileState {
    fields: FieldList,
    phi: f64,
    groups: Vec<Samples>,
    /// The texts of all groups.
    texts: Interner,
    sample_bytes: usize,
}

/// The values of a group, by kind. No text is that of an integer.
#[derive(Debug, Clone, Default)]
struct Samples {
    empty: u64,
    ints: Vec<i64>,
    times: Vec<i64>,
    /// (text, how often), a text possibly more than once.
    texts: Vec<(u32, u64)>,
}

impl QuantileState {
    /// `quantile(phi, ...)`.
    pub(crate) fn new(fields: FieldList, phi: f64) -> QuantileState {
        let texts = Interner::default();
        QuantileState { fields, phi, groups: Vec::new(), texts, sample_bytes: 0 }
    }

    /// Adds the integers of a column, run by run where groups come in runs.
    fn add_ints(
        &mut self,
        input: &Input<'_>,
        values: &[i64],
        absent: Option<&Bitmap>,
        with_absent: bool,
    ) {
        let (groups, bytes) = (&mut self.groups, &mut self.sample_bytes);
        let in_runs = input.for_each_run(|rows, group| {
            let samples = slot(groups, group);
            let run = values.get(rows.clone()).unwrap_or(&[]);
            let before = samples.ints.len();
            match absent {
                None => samples.ints.extend_from_slice(run),
                Some(absent) => {
                    let present = rows.clone().zip(run).filter(|(row, _)| !absent.get(*row));
                    samples.ints.extend(present.map(|(_, n)| *n));
                }
            }
            let added = samples.ints.len() - before;
            *bytes += 8 * added;
            if with_absent {
                samples.empty += (rows.len() - added) as u64;
            }
        });
        if in_runs {
            return;
        }
        input.for_each(|row, group| {
            let samples = slot(groups, group);
            if absent.is_some_and(|absent| absent.get(row)) {
                samples.empty += u64::from(with_absent);
            } else {
                samples.ints.extend(values.get(row));
                *bytes += 8;
            }
        });
    }

    #[inline]
    fn add(&mut self, group: u32, value: ValueRef<'_>, times: u64) {
        if times == 0 {
            return;
        }
        let samples = slot(&mut self.groups, group);
        let more = usize::try_from(times).unwrap_or(usize::MAX);
        match value {
            ValueRef::Int(n) => {
                samples.ints.extend(std::iter::repeat_n(n, more));
                self.sample_bytes += 8 * more;
            }
            ValueRef::Time(ns) => {
                samples.times.extend(std::iter::repeat_n(ns, more));
                self.sample_bytes += 8 * more;
            }
            ValueRef::Text([]) => samples.empty += times,
            ValueRef::Text(text) => match parse_canonical_int(text) {
                Some(n) => self.add(group, ValueRef::Int(n), times),
                None => {
                    let id = self.texts.intern(text);
                    match samples.texts.last_mut() {
                        Some((last, count)) if *last == id => *count += times,
                        _ => {
                            samples.texts.push((id, times));
                            self.sample_bytes += 16;
                        }
                    }
                }
            },
        }
    }
}

impl StatsState for QuantileState {
    fn update(&mut self, _ctx: &ExecContext<'_>, input: &Input<'_>) -> Result<()> {
        let absent = Column::absent();
        let fields = self.fields.clone();
        for part in fields.parts(input.batch, &absent) {
            match part.column {
                Column::Const(value) => {
                    let value = ValueRef::Text(value);
                    if part.with_absent || !value.is_empty() {
                        input.for_each_count(|group, rows| self.add(group, value, rows));
                    }
                }
                Column::Ints { values, absent, exceptions } if exceptions.is_empty() => {
                    self.add_ints(input, values, absent.as_ref(), part.with_absent);
                }
                column => input.for_each(|row, group| {
                    let value = ValueRef::of(column, row);
                    if part.with_absent || !value.is_empty() {
                        self.add(group, value, 1);
                    }
                }),
            }
        }
        Ok(())
    }

    fn fork(&self) -> Box<dyn StatsState> {
        Box::new(QuantileState::new(self.fields.clone(), self.phi))
    }

    fn absorb(
        &mut self,
        _ctx: &ExecContext<'_>,
        other: Box<dyn StatsState>,
        map: &[u32],
    ) -> Result<()> {
        let Some(other) = same_state::<QuantileState>(other) else { return Ok(()) };
        let ids = 0..u32::try_from(other.texts.len()).unwrap_or(u32::MAX);
        let ids: Vec<u32> = ids.map(|id| self.texts.intern(other.texts.get(id))).collect();
        self.sample_bytes += other.sample_bytes;
        for (group, samples) in other.groups.into_iter().enumerate() {
            let mine = slot(&mut self.groups, mapped(map, group));
            mine.empty += samples.empty;
            mine.ints.extend(samples.ints);
            mine.times.extend(samples.times);
            mine.texts.extend(samples.texts.iter().map(|(id, n)| (mapped(&ids, *id as usize), *n)));
        }
        Ok(())
    }

    fn prepare(&mut self, ctx: &ExecContext<'_>) -> Result<()> {
        let mixed = self.groups.iter_mut().filter(|samples| !samples.texts.is_empty());
        let texts = &self.texts;
        for samples in mixed {
            sort_checked(&mut samples.ints, ctx, i64::cmp)?;
            sort_checked(&mut samples.times, ctx, i64::cmp)?;
            sort_checked(&mut samples.texts, ctx, |a, b| {
                cmp_values_then_bytes(texts.get(a.0), texts.get(b.0))
            })?;
        }
        Ok(())
    }

    fn answer(&mut self, _ctx: &ExecContext<'_>, group: u32, out: &mut Vec<u8>) {
        let texts = &self.texts;
        let samples = slot(&mut self.groups, group);
        let total = samples.total();
        if total > 0 {
            samples.push_nth(texts, nth(self.phi, total), out);
        }
    }

    fn heap_bytes(&self) -> usize {
        let groups = self.groups.capacity() * size_of::<Samples>();
        groups + 2 * self.sample_bytes + self.texts.heap_bytes()
    }
}

/// The index of the quantile among so many sorted values.
fn nth(phi: f64, total: u64) -> u64 {
    #[expect(clippy::cast_precision_loss, reason = "no group has 2^53 values")]
    let index = (phi.clamp(0.0, 1.0) * total as f64).floor();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "not negative")]
    let index = index as u64;
    index.min(total.saturating_sub(1))
}

impl Samples {
    fn total(&self) -> u64 {
        let texts: u64 = self.texts.iter().map(|(_, n)| n).sum();
        self.empty + (self.ints.len() + self.times.len()) as u64 + texts
    }

    /// Appends the value of index `k` among integers and times.
    fn push_nth_typed(&mut self, k: usize, out: &mut Vec<u8>) {
        if k < self.ints.len() {
            push_int(out, *self.ints.select_nth_unstable(k).1);
        } else if k - self.ints.len() < self.times.len() {
            let ints = self.ints.len();
            push_time(out, *self.times.select_nth_unstable(k - ints).1);
        }
    }

    /// Appends the value of index `k` in the total order.
    fn push_nth(&mut self, texts: &Interner, k: u64, out: &mut Vec<u8>) {
        let Some(mut k) = k.checked_sub(self.empty) else { return };
        if self.texts.is_empty() {
            return self.push_nth_typed(usize::try_from(k).unwrap_or(usize::MAX), out);
        }
        // One pass each if `prepare` has sorted them.
        self.ints.sort_unstable();
        self.times.sort_unstable();
        let order = |a: &u32, b: &u32| cmp_values_then_bytes(texts.get(*a), texts.get(*b));
        self.texts.sort_unstable_by(|a, b| order(&a.0, &b.0));
        // Integers come before times; find how many texts come before index `k`.
        for (id, count) in &self.texts {
            let text = texts.get(*id);
            let before = |write: fn(&mut Vec<u8>, i64)| {
                move |n: &i64| {
                    let mut value = Vec::with_capacity(32);
                    write(&mut value, *n);
                    cmp_values_then_bytes(&value, text) == Ordering::Less
                }
            };
            let typed = self.ints.partition_point(before(push_int))
                + self.times.partition_point(before(push_time));
            if k < typed as u64 {
                break;
            }
            if k < typed as u64 + count {
                out.extend_from_slice(text);
                return;
            }
            k -= count;
        }
        let k = usize::try_from(k).unwrap_or(usize::MAX);
        match self.ints.get(k) {
            Some(n) => push_int(out, *n),
            None => {
                if let Some(ns) = self.times.get(k - self.ints.len()) {
                    push_time(out, *ns);
                }
            }
        }
    }
}
