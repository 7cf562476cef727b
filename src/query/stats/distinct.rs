//! `count_uniq`, `count_uniq_hash`, `uniq_values`.

use hashbrown::HashTable;
use xxhash_rust::xxh3::xxh3_64;

use super::count::push_count;
use super::input::{FieldList, Input};
use super::{StatsState, mapped, same_state, slot};
use crate::error::Result;
use crate::query::column::Column;
use crate::query::context::ExecContext;
use crate::query::group::{GroupTable, Numbers, ValueTable};
use crate::query::json;
use crate::query::sorting::sort_checked;
use crate::record::cmp_values_then_bytes;

/// Pairs of a group and a number, each once, with the count of each group.
#[derive(Debug, Clone, Default)]
struct PairSet {
    pairs: HashTable<u64>,
    counts: Vec<u64>,
    limit: Option<u64>,
}

fn mix(pair: u64) -> u64 {
    let x = (pair ^ (pair >> 29)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    x ^ (x >> 32)
}

impl PairSet {
    fn new(limit: Option<u64>) -> PairSet {
        PairSet { limit, ..PairSet::default() }
    }

    fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    fn insert(&mut self, group: u32, id: u32) {
        let count = slot(&mut self.counts, group);
        if self.limit.is_some_and(|limit| *count >= limit) {
            return;
        }
        let pair = u64::from(group) << 32 | u64::from(id);
        if self.pairs.find(mix(pair), |p| *p == pair).is_none() {
            self.pairs.insert_unique(mix(pair), pair, |p| mix(*p));
            *count += 1;
        }
    }

    fn absorb(&mut self, other: &PairSet, groups: &[u32], ids: &[u32]) {
        for (group, id) in other.iter() {
            self.insert(mapped(groups, group as usize), mapped(ids, id as usize));
        }
    }

    fn iter(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        #[expect(clippy::cast_possible_truncation, reason = "the low half")]
        self.pairs.iter().map(|p| ((p >> 32) as u32, *p as u32))
    }

    fn heap_bytes(&self) -> usize {
        self.pairs.capacity() * 10 + self.counts.capacity() * 8
    }
}

/// The selected rows of some columns; borrowed where all are.
fn selected_columns(input: &Input<'_>, columns: &[&Column]) -> Option<(Vec<Column>, Vec<u32>)> {
    let selection = input.selection?;
    let rows: Vec<u32> = selection.iter().filter_map(|r| u32::try_from(r).ok()).collect();
    Some((columns.iter().map(|c| c.gather(&rows)).collect(), rows))
}

/// Calls `f` with (group, number) for each selected row, equal neighbours once.
fn for_each_pair(
    input: &Input<'_>,
    rows: Option<&[u32]>,
    numbers: &Numbers,
    mut f: impl FnMut(u32, u32),
) {
    let mut last = None;
    let count = rows.map_or(input.batch.rows(), <[u32]>::len);
    for i in 0..count {
        let row = rows.map_or(i, |rows| rows.get(i).map_or(0, |r| *r as usize));
        let pair = (input.groups.get(row), numbers.get(i));
        if last != Some(pair) {
            f(pair.0, pair.1);
            last = Some(pair);
        }
    }
}

/// Distinct tuples with a value in them.
#[derive(Debug, Clone)]
pub(crate) struct CountUniqState {
    fields: Vec<String>,
    table: GroupTable,
    empty: u32,
    /// The group of all rows so far, if they were of one; its tuples are those of `table`, and
    /// `pairs` is empty.
    only: Option<u32>,
    pairs: PairSet,
}

impl CountUniqState {
    /// `count_uniq(...)`.
    pub(crate) fn new(fields: &[String], limit: Option<u64>) -> CountUniqState {
        let mut table = GroupTable::new(fields.len());
        let empty = table.group_of(&vec![&b""[..]; fields.len()]);
        let pairs = PairSet::new(limit);
        CountUniqState { fields: fields.to_vec(), table, empty, only: None, pairs }
    }

    /// Whether `group` is the only one, with all tuples of the table from now on.
    fn is_only(&mut self, group: u32) -> bool {
        if self.only.is_none() && self.pairs.is_empty() && self.table.len() == 1 {
            self.only = Some(group);
        }
        self.only == Some(group)
    }

    /// Makes room for more than one group.
    fn spread(&mut self) {
        if let Some(group) = self.only.take() {
            let ids = 0..u32::try_from(self.table.len()).unwrap_or(u32::MAX);
            let (pairs, empty) = (&mut self.pairs, self.empty);
            ids.filter(|id| *id != empty).for_each(|id| pairs.insert(group, id));
        }
    }
}

impl StatsState for CountUniqState {
    fn update(&mut self, _ctx: &ExecContext<'_>, input: &Input<'_>) -> Result<()> {
        let absent = Column::absent();
        let columns: Vec<&Column> =
            self.fields.iter().map(|f| input.column(f).unwrap_or(&absent)).collect();
        if input.selection.is_some_and(|rows| !rows.any()) {
            return Ok(());
        }
        let is_only = matches!(input.groups, Numbers::One(group) if self.is_only(*group));
        if !is_only {
            self.spread();
        }
        let picked = selected_columns(input, &columns);
        let (numbers, rows) = match &picked {
            None => (self.table.assign(&columns, input.batch.rows()), None),
            Some((columns, rows)) => {
                let columns: Vec<&Column> = columns.iter().collect();
                (self.table.assign(&columns, rows.len()), Some(rows.as_slice()))
            }
        };
        if is_only {
            return Ok(());
        }
        let (pairs, empty) = (&mut self.pairs, self.empty);
        for_each_pair(input, rows, &numbers, |group, id| {
            if id != empty {
                pairs.insert(group, id);
            }
        });
        Ok(())
    }

    fn fork(&self) -> Box<dyn StatsState> {
        Box::new(CountUniqState::new(&self.fields, self.pairs.limit))
    }

    fn absorb(
        &mut self,
        ctx: &ExecContext<'_>,
        other: Box<dyn StatsState>,
        map: &[u32],
    ) -> Result<()> {
        if let Some(mut other) = same_state::<CountUniqState>(other) {
            if other.table.len() == 1 {
                return Ok(());
            }
            if let Some(group) = other.only
                && self.is_only(mapped(map, group as usize))
            {
                self.table.absorb(&other.table, ctx)?;
                return Ok(());
            }
            self.spread();
            other.spread();
            let ids = self.table.absorb(&other.table, ctx)?;
            self.pairs.absorb(&other.pairs, map, &ids);
        }
        Ok(())
    }

    fn answer(&mut self, _ctx: &ExecContext<'_>, group: u32, out: &mut Vec<u8>) {
        let count = if self.only == Some(group) {
            let count = (self.table.len() - 1) as u64;
            self.pairs.limit.map_or(count, |limit| count.min(limit))
        } else {
            *slot(&mut self.pairs.counts, group)
        };
        push_count(out, count);
    }

    fn heap_bytes(&self) -> usize {
        self.table.heap_bytes() + self.pairs.heap_bytes()
    }
}

/// Distinct 64-bit hashes of tuples with a value in them.
#[derive(Debug, Clone)]
pub(crate) struct CountHashState {
    fields: Vec<String>,
    limit: Option<u64>,
    hashes: HashTable<(u32, u64)>,
    counts: Vec<u64>,
}

impl CountHashState {
    /// `count_uniq_hash(...)`.
    pub(crate) fn new(fields: &[String], limit: Option<u64>) -> CountHashState {
        let fields = fields.to_vec();
        CountHashState { fields, limit, hashes: HashTable::new(), counts: Vec::new() }
    }

    fn insert(&mut self, group: u32, hash: u64) {
        let count = slot(&mut self.counts, group);
        if self.limit.is_some_and(|limit| *count >= limit) {
            return;
        }
        let place = |(group, hash): &(u32, u64)| hash ^ mix(u64::from(*group));
        let entry = (group, hash);
        if self.hashes.find(place(&entry), |e| *e == entry).is_none() {
            self.hashes.insert_unique(place(&entry), entry, place);
            *count += 1;
        }
    }
}

impl StatsState for CountHashState {
    fn update(&mut self, _ctx: &ExecContext<'_>, input: &Input<'_>) -> Result<()> {
        let absent = Column::absent();
        let fields = self.fields.clone();
        let columns: Vec<&Column> =
            fields.iter().map(|f| input.column(f).unwrap_or(&absent)).collect();
        let (mut tuple, mut scratch) = (Vec::new(), Vec::new());
        input.for_each(|row, group| {
            tuple.clear();
            let mut any = false;
            for column in &columns {
                let value = column.value(row, &mut scratch);
                any |= !value.is_empty();
                tuple.extend_from_slice(&(value.len() as u64).to_le_bytes());
                tuple.extend_from_slice(value);
            }
            if any {
                self.insert(group, xxh3_64(&tuple));
            }
        });
        Ok(())
    }

    fn fork(&self) -> Box<dyn StatsState> {
        Box::new(CountHashState::new(&self.fields, self.limit))
    }

    fn absorb(
        &mut self,
        _ctx: &ExecContext<'_>,
        other: Box<dyn StatsState>,
        map: &[u32],
    ) -> Result<()> {
        if let Some(other) = same_state::<CountHashState>(other) {
            for (group, hash) in &other.hashes {
                self.insert(mapped(map, *group as usize), *hash);
            }
        }
        Ok(())
    }

    fn answer(&mut self, _ctx: &ExecContext<'_>, group: u32, out: &mut Vec<u8>) {
        push_count(out, *slot(&mut self.counts, group));
    }

    fn heap_bytes(&self) -> usize {
        self.hashes.capacity() * 18 + self.counts.capacity() * 8
    }
}

/// Distinct values of some fields, in value order.
#[derive(Debug, Clone)]
pub(crate) struct UniqValuesState {
    fields: FieldList,
    limit: Option<u64>,
    table: ValueTable,
    pairs: PairSet,
    /// Sorted numbers of the values of each group, made by `prepare`.
    sorted: Vec<Vec<u32>>,
}

impl UniqValuesState {
    /// `uniq_values(...)`.
    pub(crate) fn new(fields: FieldList, limit: Option<u64>) -> UniqValuesState {
        let (table, pairs) = (ValueTable::default(), PairSet::new(None));
        UniqValuesState { fields, limit, table, pairs, sorted: Vec::new() }
    }
}

impl StatsState for UniqValuesState {
    fn update(&mut self, _ctx: &ExecContext<'_>, input: &Input<'_>) -> Result<()> {
        let absent = Column::absent();
        let empty = self.table.intern(b"");
        for part in self.fields.parts(input.batch, &absent) {
            let picked = selected_columns(input, &[part.column]);
            let (numbers, rows) = match &picked {
                Some((columns, rows)) => {
                    let column = columns.first().unwrap_or(&absent);
                    (self.table.intern_column(column, rows.len()), Some(rows.as_slice()))
                }
                None => (self.table.intern_column(part.column, input.batch.rows()), None),
            };
            let pairs = &mut self.pairs;
            for_each_pair(input, rows, &numbers, |group, id| {
                if id != empty {
                    pairs.insert(group, id);
                }
            });
        }
        Ok(())
    }

    fn fork(&self) -> Box<dyn StatsState> {
        Box::new(UniqValuesState::new(self.fields.clone(), self.limit))
    }

    fn absorb(
        &mut self,
        ctx: &ExecContext<'_>,
        other: Box<dyn StatsState>,
        map: &[u32],
    ) -> Result<()> {
        if let Some(other) = same_state::<UniqValuesState>(other) {
            let ids = self.table.absorb(&other.table, ctx)?;
            self.pairs.absorb(&other.pairs, map, &ids);
        }
        Ok(())
    }

    fn prepare(&mut self, ctx: &ExecContext<'_>) -> Result<()> {
        for (i, (group, id)) in self.pairs.iter().enumerate() {
            slot(&mut self.sorted, group).push(id);
            ctx.check_row(i)?;
        }
        let values = self.table.values();
        let limit = self.limit.map_or(usize::MAX, |l| usize::try_from(l).unwrap_or(usize::MAX));
        for ids in &mut self.sorted {
            sort_checked(ids, ctx, |a, b| cmp_values_then_bytes(values.get(*a), values.get(*b)))?;
            ids.truncate(limit);
            ctx.check()?;
        }
        Ok(())
    }

    fn answer(&mut self, _ctx: &ExecContext<'_>, group: u32, out: &mut Vec<u8>) {
        let ids = slot(&mut self.sorted, group);
        json::push_array(out, ids.iter().map(|id| self.table.values().get(*id)));
    }

    fn heap_bytes(&self) -> usize {
        self.table.heap_bytes() + 2 * self.pairs.heap_bytes()
    }
}
