//! From the syntax tree to stages.

use super::columns::{
    CoalescePipe, DropEmptyPipe, FilterPipe, MovePipe, ProjectPipe, SetStreamPipe,
};
use super::discover::{FacetsCollector, FieldNamesCollector};
use super::extract::{ExtractPipe, ExtractRegexpPipe};
use super::format::FormatPipe;
use super::join::{JoinPipe, UnionPipe};
use super::limit::LimitCollector;
use super::math::MathPipe;
use super::pack::PackPipe;
use super::patterns::PatternsCollector;
use super::report::{BlockStatsCollector, BlocksCountCollector, QueryStatsCollector};
use super::running::RunningCollector;
use super::sample::{SamplePipe, SequenceCollector};
use super::sort::SortCollector;
use super::stream_context::StreamContextCollector;
use super::text::{self, RegexReplacer};
use super::transform::{MapPipe, ValueFn};
use super::uniq::UniqCollector;
use super::unpack::UnpackPipe;
use super::unroll::UnrollPipe;
use super::{Stage, collapse};
use crate::error::Result;
use crate::query::ast::{Filter, Pipe};
use crate::query::context::ExecContext;
use crate::query::plan::Planned;
use crate::query::stats::StatsCollector;

/// Compiles a pipe. Subqueries of `join` and of filters are run here.
pub(crate) fn compile_pipe(planned: &Planned, ctx: &ExecContext<'_>) -> Result<Stage> {
    let Planned { pipe, output: needed, .. } = planned;
    if let Some(stage) = compile_collector(planned, ctx)? {
        return Ok(stage);
    }
    if let Some(stage) = compile_map(pipe, ctx)? {
        return Ok(stage);
    }
    Ok(match pipe {
        Pipe::Coalesce { fields, default, result } => {
            Stage::Row(Box::new(CoalescePipe::new(fields, default, result)))
        }
        Pipe::Copy(pairs) => Stage::Row(Box::new(MovePipe::new(pairs, true))),
        Pipe::Rename(pairs) => Stage::Row(Box::new(MovePipe::new(pairs, false))),
        Pipe::Delete(patterns) => Stage::Row(Box::new(ProjectPipe::new(patterns, false))),
        Pipe::Fields(patterns) => Stage::Row(Box::new(ProjectPipe::new(patterns, true))),
        Pipe::DropEmptyFields => Stage::Row(Box::new(DropEmptyPipe)),
        Pipe::Extract(plan) => Stage::Row(Box::new(ExtractPipe::new(plan, ctx)?)),
        Pipe::ExtractRegexp(plan) => Stage::Row(Box::new(ExtractRegexpPipe::new(plan, ctx)?)),
        Pipe::Filter(filter) => Stage::Row(Box::new(FilterPipe::new(filter, ctx)?)),
        Pipe::Format(plan) => Stage::Row(Box::new(FormatPipe::new(plan, ctx)?)),
        Pipe::Join(plan) => Stage::Row(Box::new(JoinPipe::new(plan, ctx)?)),
        Pipe::Math(plan) => Stage::Row(Box::new(MathPipe::new(plan))),
        Pipe::Pack(plan) => Stage::Row(Box::new(PackPipe::new(plan))),
        Pipe::Sample(one_in) => Stage::Row(Box::new(SamplePipe::new(*one_in))),
        Pipe::SetStreamFields(plan) => Stage::Row(Box::new(SetStreamPipe::new(plan, ctx)?)),
        Pipe::Union(right) => Stage::Append(Box::new(UnionPipe::new(right))),
        Pipe::Unpack(plan) => Stage::Row(Box::new(UnpackPipe::new(plan, needed, ctx)?)),
        Pipe::Unroll(plan) => Stage::Row(Box::new(UnrollPipe::new(plan, ctx)?)),
        // The two functions above know the others; a pipe without effect is still a pipe.
        _ => Stage::Row(Box::new(MovePipe::new(&[], true))),
    })
}

fn compile_collector(planned: &Planned, ctx: &ExecContext<'_>) -> Result<Option<Stage>> {
    let Planned { pipe, output: needed, wanted, .. } = planned;
    Ok(Some(match pipe {
        Pipe::BlockStats => Stage::Collect(Box::new(BlockStatsCollector::new(ctx))),
        Pipe::BlocksCount { result } => Stage::Collect(Box::new(BlocksCountCollector::new(result))),
        Pipe::Facets(plan) => Stage::Collect(Box::new(FacetsCollector::new(plan, ctx))),
        Pipe::FieldNames { filter, result } => {
            Stage::Collect(Box::new(FieldNamesCollector::new(filter.as_deref(), result, ctx)))
        }
        Pipe::FieldValues { field, filter, limit } => Stage::Collect(Box::new(
            UniqCollector::field_values(field, filter.as_deref(), *limit, ctx),
        )),
        Pipe::GenerateSequence { count } => {
            Stage::Collect(Box::new(SequenceCollector::new(*count)))
        }
        Pipe::Limit(n) => Stage::Collect(Box::new(LimitCollector::limit(*n, ctx))),
        Pipe::Offset(n) => Stage::Collect(Box::new(LimitCollector::offset(*n, ctx))),
        Pipe::Patterns(plan) => {
            Stage::Collect(Box::new(PatternsCollector::new(plan, planned, ctx)?))
        }
        Pipe::QueryStats => Stage::Collect(Box::new(QueryStatsCollector::new())),
        Pipe::RunningStats(plan) => {
            Stage::Collect(Box::new(RunningCollector::new(plan, false, ctx)))
        }
        Pipe::TotalStats(plan) => Stage::Collect(Box::new(RunningCollector::new(plan, true, ctx))),
        Pipe::Sort(plan) => Stage::Collect(Box::new(SortCollector::new(plan, ctx))),
        Pipe::Stats { by, items } => {
            Stage::Collect(Box::new(StatsCollector::new(by, items, ctx)?.wanted(wanted)))
        }
        Pipe::StreamContext(plan) => {
            Stage::Collect(Box::new(StreamContextCollector::new(plan, needed, ctx)))
        }
        Pipe::Top(plan) => Stage::Collect(Box::new(UniqCollector::top(plan, ctx).planned(planned))),
        Pipe::Uniq(plan) => {
            Stage::Collect(Box::new(UniqCollector::uniq(plan, ctx).planned(planned)))
        }
        _ => return Ok(None),
    }))
}

/// Pipes that make one value of one value.
fn compile_map(pipe: &Pipe, ctx: &ExecContext<'_>) -> Result<Option<Stage>> {
    let (condition, field, result, map): (Option<&Filter>, &str, &str, Box<ValueFn>) = match pipe {
        Pipe::CollapseNums(plan) => {
            let map = if plan.prettify { collapse::prettify } else { collapse::collapse_nums };
            (plan.condition.as_ref(), &plan.field, &plan.field, Box::new(map))
        }
        Pipe::Decolorize { field } => (None, field, field, Box::new(text::decolorize)),
        Pipe::Hash { field, result } => (None, field, result, Box::new(text::hash)),
        Pipe::JsonArrayConcat { separator, field, result } => {
            let separator = separator.clone().into_bytes();
            let map = move |value: &[u8], out: &mut Vec<u8>| {
                text::json_array_concat(&separator, value, out);
            };
            (None, field, result, Box::new(map))
        }
        Pipe::JsonArrayLen { field, result } => {
            (None, field, result, Box::new(text::json_array_len))
        }
        Pipe::Len { field, result } => (None, field, result, Box::new(text::len)),
        Pipe::Replace(plan) => {
            let owned = plan.clone();
            let map = move |value: &[u8], out: &mut Vec<u8>| text::replace(&owned, value, out);
            (plan.condition.as_ref(), &plan.field, &plan.field, Box::new(map))
        }
        Pipe::ReplaceRegexp(plan) => {
            let replacer = RegexReplacer::new(plan);
            let map = move |value: &[u8], out: &mut Vec<u8>| replacer.apply(value, out);
            (plan.condition.as_ref(), &plan.field, &plan.field, Box::new(map))
        }
        Pipe::Split { separator, field, result } => {
            let separator = separator.clone().into_bytes();
            let map = move |value: &[u8], out: &mut Vec<u8>| text::split(&separator, value, out);
            (None, field, result, Box::new(map))
        }
        Pipe::TimeAdd { offset, field } => {
            let nanos = offset.nanos;
            let map = move |value: &[u8], out: &mut Vec<u8>| text::time_add(nanos, value, out);
            (None, field, field, Box::new(map))
        }
        Pipe::UnpackWords(plan) => {
            let once = plan.drop_duplicates;
            let map = move |value: &[u8], out: &mut Vec<u8>| text::words(once, value, out);
            (None, &plan.field, &plan.result, Box::new(map))
        }
        _ => return Ok(None),
    };
    let pipe = MapPipe::new(condition, field, result, map, ctx)?;
    Ok(Some(Stage::Row(Box::new(pipe))))
}
