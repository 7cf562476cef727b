//! A plan as text: a tree with the last step on top and the scan at its foot.

use std::fmt::Write;

use super::ast::{
    FieldPattern, Filter, Pipe, Predicate, Query, QueryOptions, RightSide, StreamIds, ValueSet,
};
use super::exec::inherit;
use super::fields::{FieldSet, insert_filter_fields};
use super::plan::{Plan, is_row_pipe};
use crate::record::parse_number;

/// How a query would run: its steps, what each prunes by, which columns are read.
pub(crate) fn explain(query: &Query, optimise: bool) -> String {
    let mut out = format!("{query}\n");
    tree(query, None, optimise).write_to(&mut out, "");
    out
}

/// A line and what hangs below it.
struct Tree {
    line: String,
    below: Vec<Tree>,
}

impl Tree {
    fn leaf(line: impl Into<String>) -> Tree {
        Tree { line: line.into(), below: Vec::new() }
    }

    fn write_to(&self, out: &mut String, margin: &str) {
        // Writing to a string does not fail.
        let _ = writeln!(out, "{margin}`- {}", self.line);
        self.write_below(out, &format!("{margin}   "));
    }

    fn write_below(&self, out: &mut String, margin: &str) {
        let Some((last, others)) = self.below.split_last() else { return };
        for tree in others {
            let _ = writeln!(out, "{margin}|- {}", tree.line);
            tree.write_below(out, &format!("{margin}|  "));
        }
        last.write_to(out, margin);
    }
}

fn tree(query: &Query, outer: Option<&QueryOptions>, optimise: bool) -> Tree {
    let options = inherit(&query.options, outer);
    let plan = Plan::new(query, &options, optimise);
    let mut root = scan(&plan, &options, optimise);
    let mut gathered = false;
    for pipe in plan.pipes.iter().map(|planned| &planned.pipe) {
        let how = match (pipe, is_row_pipe(pipe), gathered) {
            (Pipe::Union(_), ..) => "adds rows after the last",
            (_, true, false) => "in the workers of the scan",
            (_, true, true) => "row by row",
            (_, false, false) => "a part in each worker, then all",
            (_, false, true) => "gathers rows",
        };
        gathered |= !is_row_pipe(pipe) && !matches!(pipe, Pipe::Union(_));
        let mut step = Tree { line: format!("{pipe}    [{how}]"), below: Vec::new() };
        let right = match pipe {
            Pipe::Union(right) => Some(right),
            Pipe::Join(join) => Some(&join.right),
            _ => None,
        };
        if let Some(RightSide::Query(inner)) = right {
            step.below.push(tree(inner, Some(&options), optimise));
        }
        step.below.push(root);
        root = step;
    }
    root
}

fn scan(plan: &Plan, options: &QueryOptions, optimise: bool) -> Tree {
    let mut root = Tree::leaf("scan");
    let mut filter = Tree::leaf(format!("filter {}", plan.filter));
    let parts = match &plan.filter {
        Filter::And(parts) => parts.as_slice(),
        one => std::slice::from_ref(one),
    };
    for part in parts {
        let mut step = Tree::leaf(format!("{part}    [{}]", pruned_by(part)));
        subqueries(part, &mut |inner| step.below.push(tree(inner, Some(options), optimise)));
        filter.below.push(step);
    }
    root.below.push(filter);
    if plan.time_offset != 0 {
        root.below.push(Tree::leaf(format!("times shifted by {} ns", plan.time_offset)));
    }
    if let Some((field, _)) = &plan.map {
        let how = "once for each template where values do not matter";
        root.below.push(Tree::leaf(format!("values of {field} mapped    [{how}]")));
    }
    if plan.names_only {
        root.below.push(Tree::leaf("names counted by the tables of parts in the range".to_owned()));
    }
    if plan.count_only {
        root.below.push(Tree::leaf("rows counted by parts that lie in the range".to_owned()));
    }
    if let Some((direction, limit)) = plan.bound {
        let end = match direction {
            super::scan::Direction::Newest => "newest",
            super::scan::Direction::Oldest => "oldest",
        };
        root.below.push(Tree::leaf(format!("stops at the {end} {limit} rows by time")));
    }
    let mut filtered = FieldSet::none();
    insert_filter_fields(&plan.filter, &mut filtered);
    root.below.push(Tree::leaf(format!("columns of the filter: {}", columns(&filtered))));
    root.below
        .push(Tree::leaf(format!("columns of the rows that pass: {}", columns(&plan.fields))));
    root
}

fn columns(fields: &FieldSet) -> String {
    if fields.is_none() {
        return "none".to_owned();
    }
    let names = fields.names().map(|n| FieldPattern::Name(n.to_owned()).to_string());
    let prefixes = fields.prefixes().map(|p| FieldPattern::Prefix(p.to_owned()).to_string());
    let mut text = names.chain(prefixes).collect::<Vec<_>>().join(", ");
    let except: Vec<String> =
        fields.except().map(|n| FieldPattern::Name(n.to_owned()).to_string()).collect();
    if !except.is_empty() {
        let _ = write!(text, " without {}", except.join(", "));
    }
    text
}

/// What lets the scan skip data that a filter cannot match.
fn pruned_by(filter: &Filter) -> String {
    match filter {
        Filter::All => "every row".to_owned(),
        Filter::Time(_) => "skips days, parts, blocks by time".to_owned(),
        Filter::Stream(selector) => {
            let labels = selector.alternatives.iter().flatten();
            let mut names: Vec<&str> = labels.map(|l| l.label.as_str()).collect();
            names.sort_unstable();
            names.dedup();
            format!("skips streams by their labels {}", names.join(", "))
        }
        Filter::StreamId(_) => "compares the stream of each row".to_owned(),
        Filter::Field { field, predicate } => by_value(&field.to_string(), predicate),
        Filter::And(all) | Filter::Or(all) if all.is_empty() => "no column".to_owned(),
        Filter::And(_) => "skips what one of its parts skips".to_owned(),
        Filter::Or(_) => "skips what all of its parts skip".to_owned(),
        Filter::Not(_) => "skips blocks where every row matches what is negated".to_owned(),
        Filter::DayRange(_) | Filter::WeekRange(_) => "compares the time of each row".to_owned(),
    }
}

fn by_value(field: &str, predicate: &Predicate) -> String {
    let words = || format!("skips blocks by the words of {field}");
    match predicate {
        Predicate::Any => format!("skips blocks without {field}"),
        Predicate::Phrase(p) | Predicate::Exact(p) if p.is_empty() => {
            format!("skips blocks where every row has {field}")
        }
        Predicate::Phrase(_)
        | Predicate::Prefix(_)
        | Predicate::Substring(_)
        | Predicate::Exact(_)
        | Predicate::ExactPrefix(_)
        | Predicate::In(_)
        | Predicate::ContainsAll(_)
        | Predicate::ContainsAny(_)
        | Predicate::Sequence(_)
        | Predicate::Regex(_)
        | Predicate::PatternMatch(_)
        | Predicate::EqualsCommonCase(_)
        | Predicate::ContainsCommonCase(_) => words(),
        Predicate::Range { .. } => format!("skips blocks by the least and greatest {field}"),
        Predicate::Compare { value, .. } if parse_number(value.as_bytes()).is_some() => {
            format!("skips blocks by the least and greatest {field}")
        }
        _ => format!("skips blocks by the few distinct values of {field}, if they are few"),
    }
}

/// Calls `visit` with the subqueries of a filter.
fn subqueries(filter: &Filter, visit: &mut dyn FnMut(&Query)) {
    match filter {
        Filter::And(all) | Filter::Or(all) => all.iter().for_each(|f| subqueries(f, visit)),
        Filter::Not(inner) => subqueries(inner, visit),
        Filter::StreamId(StreamIds::Query { query, .. }) => visit(query),
        Filter::Field {
            predicate:
                Predicate::In(ValueSet::Query { query, .. })
                | Predicate::ContainsAll(ValueSet::Query { query, .. })
                | Predicate::ContainsAny(ValueSet::Query { query, .. }),
            ..
        } => visit(query),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(query: &str) -> String {
        explain(&query.parse().unwrap(), true)
    }

    #[test]
    fn steps_from_the_last_to_the_scan() {
        let query = "_time:1h {app=\"web\"} error took:>5 | fields host, took \
                     | stats by (host) count() as n | sort by (n desc) | limit 5";
        let expected = "\
_time:1h {app=\"web\"} error took:>5 | fields host, took | stats by (host) count(*) as n \
| sort by (n desc) | limit 5
`- limit 5    [gathers rows]
   `- sort by (n desc) limit 5    [gathers rows]
      `- stats by (host) count(*) as n    [a part in each worker, then all]
         `- fields host, took    [in the workers of the scan]
            `- scan
               |- filter _time:1h {app=\"web\"} error took:>5
               |  |- _time:1h    [skips days, parts, blocks by time]
               |  |- {app=\"web\"}    [skips streams by their labels app]
               |  |- error    [skips blocks by the words of _msg]
               |  `- took:>5    [skips blocks by the least and greatest took]
               |- columns of the filter: _msg, _stream, _time, took
               `- columns of the rows that pass: host
";
        assert_eq!(text(query), expected);
    }

    #[test]
    fn subqueries_hang_where_they_are_used() {
        let plan = text("u:in(level:error | fields u) | union (fatal | limit 2)");
        assert!(plan.contains("|- scan\n") || plan.contains("`- scan\n"), "{plan}");
        assert!(plan.contains("stops at the newest 2 rows by time"), "{plan}");
        assert!(plan.contains("skips blocks by the words of level"), "{plan}");
        assert!(text("* | limit 3").contains("newest 3"));
        assert!(text("* | sort by (_time) limit 3").contains("oldest 3"));
        assert!(text("options(time_offset=1h) *").contains("shifted by 3600000000000 ns"));
    }
}
