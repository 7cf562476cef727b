//! From a query to what the scan and the pipes have to do.
//!
//! Every rewrite here keeps the answer; [`QueryOptions::optimise`] turns all of them off, and
//! tests compare both.
//!
//! [`QueryOptions::optimise`]: crate::QueryOptions::optimise

use super::ast::{
    Bucket, CollapseNums, FieldPattern, Filter, MESSAGE_FIELD, Pipe, Query, QueryOptions,
    STREAM_FIELD, STREAM_ID_FIELD, Sort, StatsFunction, StatsItem, TIME_FIELD,
};
use super::context::TimeRange;
use super::fields::{FieldSet, insert_filter_fields};
use super::filter::TimeContext;
use super::needed::needed_input;
use super::pipe::{collapse_nums, mask_words, name_groups, name_places};
use super::scan::{Direction, TextFn, TextMap};

/// "The newest N" and "the oldest N" are cut short up to this N.
const BOUND_MAX: u64 = 1_000_000;

/// What a query has to do.
#[derive(Debug)]
pub(crate) struct Plan {
    /// The rows that the query reads, the filter of its options included.
    pub(crate) filter: Filter,
    /// Time filters of `filter` look this much further back, and `_time` is moved forward again.
    pub(crate) time_offset: i64,
    /// The pipes that are left.
    pub(crate) pipes: Vec<Planned>,
    /// The fields that the scan has to give.
    pub(crate) fields: FieldSet,
    /// Whether the rows need their canonical places.
    pub(crate) positions: bool,
    /// Whether batches have to say where their rows are stored.
    pub(crate) origins: bool,
    /// What becomes of the values of a field in the scan: what the first pipe makes of them.
    pub(crate) map: Option<(String, TextMap)>,
    /// The buckets of time by which rows are grouped, if that is all that `_time` is read for.
    pub(crate) time_bucket: Option<Bucket>,
    /// Only this many rows from one end of time are needed.
    pub(crate) bound: Option<(Direction, usize)>,
    /// The rows are only counted by the names of their fields, and picked only by time.
    pub(crate) names_only: bool,
    /// The rows are only counted, and picked only by time.
    pub(crate) count_only: bool,
}

/// A pipe, and what is done with its rows.
#[derive(Debug)]
pub(crate) struct Planned {
    /// The pipe.
    pub(crate) pipe: Pipe,
    /// The fields of its rows that someone reads.
    pub(crate) output: FieldSet,
    /// Which of its rows can be seen in the answer.
    pub(crate) wanted: Wanted,
    /// Whether the scan has mapped the field that the pipe reads ([`Plan::map`]).
    pub(crate) mapped: bool,
}

/// Which rows of a collecting pipe can be seen in the answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// All, in the order that the pipe gives them.
    InOrder,
    /// So many, the first in the order that the pipe gives them.
    First(usize),
    /// All, in any order.
    AnyOrder,
    /// Those that do not come behind the best `rows` ones by the values of a field, and perhaps
    /// others.
    Best {
        /// The field.
        field: String,
        /// Whether the greatest come first.
        desc: bool,
        /// So many are seen at most.
        rows: usize,
        /// Whether the order of the pipe decides where the values are equal; else others do.
        alone: bool,
    },
}

impl Wanted {
    /// What the pipes behind a collecting pipe want of it.
    fn by(behind: &[Pipe]) -> Wanted {
        match behind.first() {
            Some(Pipe::Sort(sort)) if sort.partition_by.is_empty() => {
                let seen = sort.limit.map(|n| n.saturating_add(sort.offset.unwrap_or(0)));
                let seen = seen.and_then(|n| usize::try_from(n).ok());
                match (sort.keys.first(), seen) {
                    (Some(key), Some(rows)) => {
                        let alone = sort.keys.len() == 1;
                        Wanted::Best { field: key.field.clone(), desc: key.desc, rows, alone }
                    }
                    _ => Wanted::InOrder,
                }
            }
            Some(Pipe::Limit(n)) => usize::try_from(*n).map_or(Wanted::InOrder, Wanted::First),
            Some(pipe @ (Pipe::Filter(_) | Pipe::Fields(_))) => {
                match Wanted::by(behind.get(1..).unwrap_or(&[])) {
                    Wanted::AnyOrder => Wanted::AnyOrder,
                    Wanted::First(rows) if matches!(pipe, Pipe::Fields(_)) => Wanted::First(rows),
                    _ => Wanted::InOrder,
                }
            }
            Some(pipe) if ignores_input_order(pipe) => Wanted::AnyOrder,
            _ => Wanted::InOrder,
        }
    }
}

impl Plan {
    /// Plans a query whose options are already joined with those of the query around it.
    pub(crate) fn new(query: &Query, options: &QueryOptions, optimise: bool) -> Plan {
        let mut filters: Vec<Filter> =
            options.global_filter.iter().map(|f| (**f).clone()).collect();
        filters.push(query.filter.clone());
        let time_offset = options.time_offset.as_ref().map_or(0, |d| d.nanos);
        let mut pipes = query.pipes.as_slice();
        // Behind a shift of times the filters of pipes see other times than the scan.
        while optimise
            && time_offset == 0
            && let [Pipe::Filter(filter), rest @ ..] = pipes
        {
            filters.push(filter.clone());
            pipes = rest;
        }
        let filter = match filters.len() {
            1 => filters.pop().unwrap_or(Filter::All),
            _ => Filter::And(filters),
        };
        let limited = if optimise { limit_sorts(pipes) } else { pipes.to_vec() };
        let pipes = limited.as_slice();
        let mut needed = FieldSet::all();
        let mut planned = Vec::with_capacity(pipes.len());
        for (i, pipe) in pipes.iter().enumerate().rev() {
            let output = needed.clone();
            needed = if optimise { needed_input(pipe, &output) } else { FieldSet::all() };
            let behind = pipes.get(i + 1..).filter(|_| optimise).unwrap_or(&[]);
            let wanted = Wanted::by(behind);
            planned.push(Planned { pipe: pipe.clone(), output, wanted, mapped: false });
        }
        planned.reverse();
        let bound = if optimise && time_offset == 0 { bound(pipes) } else { None };
        let map = pipes.first().filter(|_| optimise).and_then(map_of);
        let mut origins = false;
        match planned.first_mut().filter(|_| map.is_some()) {
            Some(first) if matches!(first.pipe, Pipe::Patterns(_)) => {
                first.mapped = true;
                origins = first.output.contains("example");
            }
            Some(_) => drop(planned.remove(0)),
            None => {}
        }
        let by_pattern = planned.first().is_some_and(|first| first.mapped);
        let positions = !optimise || bound.is_some() || !by_pattern && needs_positions(pipes);
        let time_bucket =
            planned.first().filter(|_| optimise && time_offset == 0).and_then(time_bucket);
        let counted = matches!(pipes.first(), Some(Pipe::FieldNames { .. }));
        let by_range = optimise && time_offset == 0 && is_range(&filter);
        let names_only = by_range && counted;
        let count_only = by_range && pipes.first().is_some_and(only_counts);
        Plan {
            filter,
            time_offset,
            pipes: planned,
            fields: needed,
            positions,
            origins,
            map,
            time_bucket,
            bound,
            names_only,
            count_only,
        }
    }
}

/// The bucket of time among the keys of `stats`, if nothing else reads `_time`.
fn time_bucket(planned: &Planned) -> Option<Bucket> {
    let Pipe::Stats { by, items } = &planned.pipe else { return None };
    let at = by.iter().position(|key| key.field == TIME_FIELD)?;
    let mut others = by.clone();
    let bucket = others.remove(at).bucket?;
    let rest = Pipe::Stats { by: others, items: items.clone() };
    (!needed_input(&rest, &FieldSet::all()).contains(TIME_FIELD)).then_some(bucket)
}

/// Whether a pipe asks only how many rows there are.
fn only_counts(pipe: &Pipe) -> bool {
    let counts = |item: &StatsItem| match &item.function {
        StatsFunction::Count(fields) => {
            item.condition.is_none() && fields.iter().any(FieldPattern::is_all)
        }
        StatsFunction::Rate => item.condition.is_none(),
        _ => false,
    };
    matches!(pipe, Pipe::Stats { by, items } if by.is_empty() && items.iter().all(counts))
}

/// The field whose values a pipe maps by a local function, and the function.
fn map_of(pipe: &Pipe) -> Option<(String, TextMap)> {
    match pipe {
        Pipe::CollapseNums(CollapseNums { condition: None, field, prettify }) => {
            let whole = prettify.then_some(name_groups as TextFn);
            let stored = ![TIME_FIELD, STREAM_FIELD, STREAM_ID_FIELD].contains(&field.as_str());
            stored.then(|| (field.clone(), TextMap { local: collapse_nums, whole }))
        }
        Pipe::Patterns(plan) => {
            // Nothing else may read the messages.
            let mut others = FieldSet::of(&plan.by);
            if let Some(baseline) = &plan.baseline {
                insert_filter_fields(&baseline.filter(), &mut others);
            }
            let map = TextMap { local: mask_words, whole: Some(name_places) };
            (!others.contains(MESSAGE_FIELD)).then(|| (MESSAGE_FIELD.to_owned(), map))
        }
        _ => None,
    }
}

/// Whether a filter picks the rows of one range of time.
fn is_range(filter: &Filter) -> bool {
    match filter {
        Filter::All | Filter::Time(_) => true,
        Filter::And(all) => all.iter().all(is_range),
        _ => false,
    }
}

/// The range of `_time` that the query itself gives, if it is closed at both ends.
pub(crate) fn closed_range(filter: &Filter, times: &TimeContext) -> Option<TimeRange> {
    fn visit(filter: &Filter, times: &TimeContext, range: &mut TimeRange) {
        match filter {
            Filter::And(all) => all.iter().for_each(|f| visit(f, times, range)),
            Filter::Time(time) => {
                if let Some(other) = times.range(time) {
                    *range = range.intersect(other);
                }
            }
            _ => {}
        }
    }
    let mut range = TimeRange::ALL;
    visit(filter, times, &mut range);
    let closed = range.min != i64::MIN && range.max != i64::MAX && !range.is_empty();
    closed.then_some(range)
}

/// How many rows from which end of time the first collecting pipe can keep at most.
fn bound(pipes: &[Pipe]) -> Option<(Direction, usize)> {
    let at = pipes.iter().position(|p| !is_row_pipe(p))?;
    let (before, rest) = pipes.split_at_checked(at)?;
    let (direction, rows) = match rest.first()? {
        Pipe::Limit(n) => (Direction::Newest, *n),
        Pipe::Sort(sort) => {
            if !before.iter().all(keeps_time) {
                return None;
            }
            by_time(sort)?
        }
        _ => return None,
    };
    (rows <= BOUND_MAX).then(|| usize::try_from(rows).ok()).flatten().map(|n| (direction, n))
}

/// A sort by time first that keeps some rows: from which end and how many.
fn by_time(sort: &Sort) -> Option<(Direction, u64)> {
    let first = sort.keys.first().filter(|k| k.field == TIME_FIELD)?;
    if !sort.partition_by.is_empty() {
        return None;
    }
    let rows = sort.limit?.saturating_add(sort.offset.unwrap_or(0));
    let direction = if first.desc { Direction::Newest } else { Direction::Oldest };
    Some((direction, rows))
}

/// Whether a pipe works row by row and gives each row the place that it had.
pub(crate) fn is_row_pipe(pipe: &Pipe) -> bool {
    matches!(
        pipe,
        Pipe::Coalesce { .. }
            | Pipe::CollapseNums(_)
            | Pipe::Copy(_)
            | Pipe::Decolorize { .. }
            | Pipe::Delete(_)
            | Pipe::DropEmptyFields
            | Pipe::Extract(_)
            | Pipe::ExtractRegexp(_)
            | Pipe::Fields(_)
            | Pipe::Filter(_)
            | Pipe::Format(_)
            | Pipe::Hash { .. }
            | Pipe::JsonArrayConcat { .. }
            | Pipe::JsonArrayLen { .. }
            | Pipe::Len { .. }
            | Pipe::Math(_)
            | Pipe::Pack(_)
            | Pipe::Rename(_)
            | Pipe::Replace(_)
            | Pipe::ReplaceRegexp(_)
            | Pipe::SetStreamFields(_)
            | Pipe::Split { .. }
            | Pipe::Unpack(_)
            | Pipe::UnpackWords(_)
            | Pipe::Unroll(_)
    )
}

/// Gives a sort the limit that follows it, through pipes that make one row of each: it then keeps
/// so many rows instead of all.
fn limit_sorts(pipes: &[Pipe]) -> Vec<Pipe> {
    let mut out = pipes.to_vec();
    for (at, pipe) in out.iter_mut().enumerate() {
        if let Pipe::Sort(sort) = pipe
            && sort.limit.is_none()
            && sort.partition_by.is_empty()
        {
            sort.limit = limit_behind(pipes.get(at + 1..).unwrap_or(&[]));
        }
    }
    out
}

/// How many of the first rows some pipe behind can reach.
fn limit_behind(pipes: &[Pipe]) -> Option<u64> {
    let mut skipped = 0_u64;
    for pipe in pipes {
        match pipe {
            Pipe::Offset(n) => skipped = skipped.saturating_add(*n),
            Pipe::Limit(n) => return Some(skipped.saturating_add(*n)),
            Pipe::Filter(_) | Pipe::DropEmptyFields | Pipe::Unroll(_) => return None,
            pipe if is_row_pipe(pipe) => {}
            _ => return None,
        }
    }
    None
}

/// Whether a pipe surely leaves `_time` as it is.
fn keeps_time(pipe: &Pipe) -> bool {
    let is_time = |p: &FieldPattern| p.matches(TIME_FIELD);
    match pipe {
        Pipe::Filter(_) | Pipe::DropEmptyFields | Pipe::Unroll(_) => !writes_time(pipe),
        Pipe::Fields(patterns) => patterns.iter().any(is_time),
        Pipe::Delete(patterns) => !patterns.iter().any(is_time),
        Pipe::Len { result, .. }
        | Pipe::Hash { result, .. }
        | Pipe::Split { result, .. }
        | Pipe::Coalesce { result, .. } => result != TIME_FIELD,
        Pipe::Format(plan) => plan.result != TIME_FIELD,
        Pipe::Math(plan) => plan.items.iter().all(|i| i.result != TIME_FIELD),
        Pipe::Replace(plan) => plan.field != TIME_FIELD,
        Pipe::ReplaceRegexp(plan) => plan.field != TIME_FIELD,
        _ => false,
    }
}

fn writes_time(pipe: &Pipe) -> bool {
    matches!(pipe, Pipe::Unroll(plan) if plan.fields.iter().any(|f| f == TIME_FIELD))
}

/// Whether the answer depends on the canonical places of the rows.
fn needs_positions(pipes: &[Pipe]) -> bool {
    for pipe in pipes {
        match pipe {
            pipe if is_row_pipe(pipe) => {}
            pipe => return !ignores_input_order(pipe),
        }
    }
    false
}

/// Whether a collecting pipe gives the same for any order of its rows.
fn ignores_input_order(pipe: &Pipe) -> bool {
    match pipe {
        Pipe::Stats { items, .. } => items.iter().all(|item| ignores_order(&item.function)),
        Pipe::Uniq(_)
        | Pipe::Top(_)
        | Pipe::FieldNames { .. }
        | Pipe::FieldValues { .. }
        | Pipe::Facets(_)
        | Pipe::GenerateSequence { .. } => true,
        _ => false,
    }
}

/// Whether a function gives the same for any order of rows.
fn ignores_order(function: &StatsFunction) -> bool {
    matches!(
        function,
        StatsFunction::Avg(_)
            | StatsFunction::Count(_)
            | StatsFunction::CountEmpty(_)
            | StatsFunction::CountUniq { .. }
            | StatsFunction::CountUniqHash { .. }
            | StatsFunction::Histogram(_)
            | StatsFunction::Max(_)
            | StatsFunction::Median(_)
            | StatsFunction::Min(_)
            | StatsFunction::Quantile { .. }
            | StatsFunction::Rate
            | StatsFunction::RateSum(_)
            | StatsFunction::Stddev(_)
            | StatsFunction::Sum(_)
            | StatsFunction::SumLen(_)
            | StatsFunction::UniqValues { .. }
    )
}

/// Whether the answer is surely so small that it can be made before it is handed out.
pub(crate) fn has_small_answer(pipes: &[Pipe]) -> bool {
    const SMALL: u64 = 10_000;
    let small_from = pipes.iter().rposition(|pipe| match pipe {
        Pipe::Limit(n) => *n <= SMALL,
        Pipe::Sort(sort) => sort.limit.is_some_and(|n| n <= SMALL) && sort.partition_by.is_empty(),
        Pipe::Stats { by, .. } => by.is_empty(),
        Pipe::Top(top) => top.limit <= SMALL,
        Pipe::BlocksCount { .. } | Pipe::QueryStats => true,
        _ => false,
    });
    small_from.is_some_and(|at| {
        let later = pipes.get(at + 1..).unwrap_or(&[]);
        later.iter().all(|p| is_row_pipe(p) && !matches!(p, Pipe::Unroll(_)))
    })
}
