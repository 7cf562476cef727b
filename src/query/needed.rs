//! The fields that a pipe has to see so that what is read of its output comes out right.

use super::ast::{
    ExtractPart, FieldPattern, Filter, FormatPart, KeepMode, MESSAGE_FIELD, MathExpr, Pipe,
    RenamePair, RunningFunction, RunningStats, STREAM_FIELD, STREAM_ID_FIELD, StatsFunction,
    StatsItem, TIME_FIELD, Unpack,
};
use super::fields::{FieldSet, insert_filter_fields};

/// The fields of the input of `pipe` that are needed if `output` are those of its output that
/// somebody reads. May name more fields than needed, never fewer.
pub(crate) fn needed_input(pipe: &Pipe, output: &FieldSet) -> FieldSet {
    let mut set = output.clone();
    match pipe {
        Pipe::BlockStats | Pipe::DropEmptyFields | Pipe::Facets(_) | Pipe::FieldNames { .. } => {
            return FieldSet::all();
        }
        Pipe::BlocksCount { .. }
        | Pipe::GenerateSequence { .. }
        | Pipe::QueryStats
        | Pipe::StreamContext(_) => return FieldSet::none(),
        Pipe::FieldValues { field, .. } => return FieldSet::of([field]),
        Pipe::Top(plan) => return FieldSet::of(&plan.by),
        Pipe::Uniq(plan) => return FieldSet::of(&plan.by),
        Pipe::Patterns(plan) => {
            let mut set = FieldSet::of(&plan.by);
            set.insert(MESSAGE_FIELD);
            if ["first", "last", "example"].iter().any(|name| output.contains(name)) {
                set.insert(TIME_FIELD);
            }
            if let Some(baseline) = &plan.baseline {
                insert_filter_fields(&baseline.filter(), &mut set);
            }
            return set;
        }
        Pipe::Stats { by, items } => {
            let mut set = FieldSet::of(by.iter().map(|k| &k.field));
            items.iter().for_each(|item| stats_item(item, output, &mut set));
            return set;
        }
        Pipe::Fields(patterns) => return restricted(output, patterns),
        Pipe::Delete(patterns) => patterns.iter().for_each(|p| set.remove_pattern(p)),
        Pipe::Copy(pairs) => pairs.iter().rev().for_each(|pair| moved(pair, false, &mut set)),
        Pipe::Rename(pairs) => pairs.iter().rev().for_each(|pair| moved(pair, true, &mut set)),
        Pipe::Filter(filter) => insert_filter_fields(filter, &mut set),
        Pipe::Join(plan) => plan.by.iter().for_each(|f| set.insert(f)),
        Pipe::Sort(plan) => {
            if let Some(rank) = &plan.rank {
                set.remove(rank);
            }
            if plan.keys.is_empty() {
                return FieldSet::all();
            }
            plan.keys.iter().for_each(|k| set.insert(&k.field));
            plan.partition_by.iter().for_each(|f| set.insert(f));
        }
        Pipe::RunningStats(plan) | Pipe::TotalStats(plan) => running(plan, &mut set),
        Pipe::Unroll(plan) => {
            // The number of rows depends on the fields, whoever reads them.
            plan.fields.iter().for_each(|f| set.insert(f));
            condition(plan.condition.as_ref(), &mut set);
        }
        _ => value_pipe(pipe, output, &mut set),
    }
    set
}

/// Pipes that give fields new values, row by row.
fn value_pipe(pipe: &Pipe, output: &FieldSet, set: &mut FieldSet) {
    match pipe {
        Pipe::Coalesce { fields, result, .. } => packed(fields, result, set),
        Pipe::CollapseNums(plan) => in_place(&plan.field, plan.condition.as_ref(), set),
        Pipe::Replace(plan) => in_place(&plan.field, plan.condition.as_ref(), set),
        Pipe::ReplaceRegexp(plan) => in_place(&plan.field, plan.condition.as_ref(), set),
        Pipe::Extract(plan) => {
            let names = plan.pattern.parts.iter().filter_map(|part| match part {
                ExtractPart::Placeholder { field, .. } => field.as_deref(),
                ExtractPart::Literal(_) => None,
            });
            extracted(names, &plan.field, plan.condition.as_ref(), plan.keep, set);
        }
        Pipe::ExtractRegexp(plan) => {
            let info = plan.regex.meta().group_info();
            let names = info.pattern_names(regex_automata::PatternID::ZERO).flatten();
            extracted(names, &plan.field, plan.condition.as_ref(), plan.keep, set);
        }
        Pipe::Format(plan) => {
            let replaces = plan.condition.is_none() && plan.keep == KeepMode::Overwrite;
            if take(&plan.result, replaces, set) {
                for part in &plan.pattern.parts {
                    if let FormatPart::Field { field: Some(field), .. } = part {
                        set.insert(field);
                    }
                }
                condition(plan.condition.as_ref(), set);
            }
        }
        Pipe::Hash { field, result }
        | Pipe::JsonArrayConcat { field, result, .. }
        | Pipe::JsonArrayLen { field, result }
        | Pipe::Len { field, result }
        | Pipe::Split { field, result, .. } => unary(field, result, set),
        Pipe::UnpackWords(plan) => unary(&plan.field, &plan.result, set),
        Pipe::Math(plan) => {
            for item in plan.items.iter().rev() {
                if take(&item.result, true, set) {
                    math_fields(&item.expr, set);
                }
            }
        }
        Pipe::Pack(plan) => packed(&plan.fields, &plan.result, set),
        Pipe::SetStreamFields(plan) => {
            let needed = [STREAM_FIELD, STREAM_ID_FIELD].map(|f| output.contains(f));
            if needed.contains(&true) {
                if plan.condition.is_none() {
                    set.remove(STREAM_FIELD);
                    set.remove(STREAM_ID_FIELD);
                }
                plan.fields.iter().for_each(|p| set.insert_pattern(p));
                condition(plan.condition.as_ref(), set);
            }
        }
        Pipe::Unpack(plan) if plan.fields.iter().any(|p| unpacks_needed(plan, p, output)) => {
            set.insert(&plan.field);
            condition(plan.condition.as_ref(), set);
        }
        // The rows pass as they are.
        _ => {}
    }
}

/// Whether a field is needed; if the pipe gives it a new value in every row (`replaces`), its old
/// one is not.
fn take(field: &str, replaces: bool, set: &mut FieldSet) -> bool {
    let needed = set.contains(field);
    if needed && replaces {
        set.remove(field);
    }
    needed
}

fn unary(field: &str, result: &str, set: &mut FieldSet) {
    if take(result, true, set) {
        set.insert(field);
    }
}

fn packed(fields: &[FieldPattern], result: &str, set: &mut FieldSet) {
    if take(result, true, set) {
        fields.iter().for_each(|p| set.insert_pattern(p));
    }
}

fn in_place(field: &str, filter: Option<&Filter>, set: &mut FieldSet) {
    if set.contains(field) {
        condition(filter, set);
    }
}

fn condition(filter: Option<&Filter>, set: &mut FieldSet) {
    if let Some(filter) = filter {
        insert_filter_fields(filter, set);
    }
}

fn extracted<'a>(
    names: impl Iterator<Item = &'a str>,
    field: &str,
    filter: Option<&Filter>,
    keep: KeepMode,
    set: &mut FieldSet,
) {
    let replaces = filter.is_none() && keep == KeepMode::Overwrite;
    // All names first: one may be the field itself.
    let mut needed = false;
    for name in names {
        needed |= take(name, replaces, set);
    }
    if needed {
        set.insert(field);
        condition(filter, set);
    }
}

fn unpacks_needed(plan: &Unpack, pattern: &FieldPattern, output: &FieldSet) -> bool {
    match pattern {
        FieldPattern::Name(name) => output.contains(&format!("{}{name}", plan.result_prefix)),
        FieldPattern::Prefix(p) => output.meets_prefix(&format!("{}{p}", plan.result_prefix)),
    }
}

/// The fields of `output` that match one of the patterns.
fn restricted(output: &FieldSet, patterns: &[FieldPattern]) -> FieldSet {
    let mut set = FieldSet::none();
    for pattern in patterns {
        match pattern {
            FieldPattern::Name(name) if output.contains(name) => set.insert(name),
            FieldPattern::Name(_) => {}
            FieldPattern::Prefix(prefix) => {
                output.names().filter(|n| n.starts_with(prefix)).for_each(|n| set.insert(n));
                for other in output.prefixes() {
                    if other.starts_with(prefix) {
                        set.insert_prefix(other);
                    } else if prefix.starts_with(other) {
                        set.insert_prefix(prefix);
                    }
                }
            }
        }
    }
    output.except().for_each(|n| set.remove(n));
    set
}

fn moved(pair: &RenamePair, rename: bool, set: &mut FieldSet) {
    let text = |p: &FieldPattern| match p {
        FieldPattern::Name(s) | FieldPattern::Prefix(s) => s.clone(),
    };
    let (from, to) = (text(&pair.source), text(&pair.target));
    if from == to {
        return;
    }
    if let FieldPattern::Name(_) = pair.source {
        let needed = set.contains(&to);
        set.remove(&to);
        if rename {
            set.remove(&from);
        }
        if needed {
            set.insert(&from);
        }
        return;
    }
    // Fields that have the new name already keep it where the moved ones are absent.
    let names: Vec<String> = set.names().map(str::to_owned).collect();
    let prefixes: Vec<String> = set.prefixes().map(str::to_owned).collect();
    for name in names {
        if let Some(rest) = name.strip_prefix(to.as_str()) {
            set.insert(&format!("{from}{rest}"));
        }
    }
    for prefix in prefixes {
        if let Some(rest) = prefix.strip_prefix(to.as_str()) {
            set.insert_prefix(&format!("{from}{rest}"));
        } else if to.starts_with(&prefix) {
            set.insert_prefix(&from);
        }
    }
}

fn math_fields(expr: &MathExpr, set: &mut FieldSet) {
    match expr {
        MathExpr::Number(_) => {}
        MathExpr::Field(name) => set.insert(name),
        MathExpr::Negate(inner) => math_fields(inner, set),
        MathExpr::Binary { left, right, .. } => {
            math_fields(left, set);
            math_fields(right, set);
        }
        MathExpr::Call { args, .. } => args.iter().for_each(|arg| math_fields(arg, set)),
    }
}

fn running(plan: &RunningStats, set: &mut FieldSet) {
    for item in &plan.items {
        set.remove(&item.result);
    }
    set.insert(TIME_FIELD);
    plan.by.iter().for_each(|f| set.insert(f));
    for item in &plan.items {
        match &item.function {
            RunningFunction::Count(fields) if fields.iter().any(FieldPattern::is_all) => {}
            RunningFunction::Count(fields)
            | RunningFunction::Sum(fields)
            | RunningFunction::Min(fields)
            | RunningFunction::Max(fields) => fields.iter().for_each(|p| set.insert_pattern(p)),
            RunningFunction::First { field, .. } | RunningFunction::Last { field, .. } => {
                set.insert(field);
            }
        }
    }
}

fn stats_item(item: &StatsItem, output: &FieldSet, set: &mut FieldSet) {
    use StatsFunction as F;
    if !output.contains(&item.result) {
        return;
    }
    condition(item.condition.as_ref(), set);
    let mut patterns = |fields: &[FieldPattern]| {
        fields.iter().for_each(|p| set.insert_pattern(p));
    };
    match &item.function {
        F::Rate => {}
        F::Count(fields) if fields.iter().any(FieldPattern::is_all) => {}
        F::Avg(fields)
        | F::Count(fields)
        | F::CountEmpty(fields)
        | F::Max(fields)
        | F::Median(fields)
        | F::Min(fields)
        | F::Quantile { fields, .. }
        | F::RateSum(fields)
        | F::RowAny(fields)
        | F::Stddev(fields)
        | F::Sum(fields)
        | F::SumLen(fields)
        | F::UniqValues { fields, .. }
        | F::Values { fields, .. } => patterns(fields),
        F::JsonValues { fields, sort, .. } => {
            patterns(fields);
            sort.iter().for_each(|k| set.insert(&k.field));
        }
        F::RowMax { source, fields } | F::RowMin { source, fields } => {
            patterns(fields);
            set.insert(source);
        }
        F::CountUniq { fields, .. } | F::CountUniqHash { fields, .. } => {
            fields.iter().for_each(|f| set.insert(f));
        }
        F::FieldMax { source, field } | F::FieldMin { source, field } => {
            set.insert(source);
            set.insert(field);
        }
        F::Any(field) | F::Histogram(field) => set.insert(field),
    }
}
