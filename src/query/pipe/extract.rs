//! `extract` and `extract_regexp`: fields out of text.

use std::sync::Arc;

use memchr::memmem::Finder;

use super::quoted::unquote_prefix;
use super::transform::FieldWriter;
use super::{Condition, RowPipe, Sink, selected};
use crate::error::Result;
use crate::query::Regex;
use crate::query::ast::{Extract, ExtractPart, ExtractRegexp, KeepMode};
use crate::query::batch::Batch;
use crate::query::column::Column;
use crate::query::context::{ExecContext, Flow};

/// `extract`.
pub(crate) struct ExtractPipe {
    condition: Condition,
    field: Arc<str>,
    keep: KeepMode,
    /// Searched first; empty: the text's start.
    head: Finder<'static>,
    steps: Vec<Step>,
}

/// A placeholder and the literal behind it.
struct Step {
    field: Option<String>,
    plain: bool,
    /// Empty at the end of the pattern.
    next: Finder<'static>,
}

impl ExtractPipe {
    /// Compiles the pattern.
    pub(crate) fn new(plan: &Extract, ctx: &ExecContext<'_>) -> Result<ExtractPipe> {
        let mut head = "";
        let mut steps: Vec<Step> = Vec::new();
        for part in &plan.pattern.parts {
            match (part, steps.last_mut()) {
                (ExtractPart::Literal(text), None) => head = text,
                (ExtractPart::Literal(text), Some(step)) => {
                    step.next = Finder::new(text.as_bytes()).into_owned();
                }
                (ExtractPart::Placeholder { field, plain }, _) => steps.push(Step {
                    field: field.clone(),
                    plain: *plain,
                    next: Finder::new(b"").into_owned(),
                }),
            }
        }
        Ok(ExtractPipe {
            condition: Condition::compile(plan.condition.as_ref(), ctx)?,
            field: Arc::from(plan.field.as_str()),
            keep: plan.keep,
            head: Finder::new(head.as_bytes()).into_owned(),
            steps,
        })
    }

    /// Sets every named field of the row; those that are not found are empty.
    fn extract(&self, value: &[u8], row: usize, writer: &mut FieldWriter) {
        let mut rest =
            self.head.find(value).and_then(|at| value.get(at + self.head.needle().len()..));
        for step in &self.steps {
            let found = rest.and_then(|text| step.take(text));
            if let Some(field) = &step.field {
                match &found {
                    Some((Taken::Plain(text), _)) => writer.set(row, field, text),
                    Some((Taken::Unquoted(text), _)) => writer.set(row, field, text),
                    None => writer.set(row, field, b""),
                }
            }
            rest = found.map(|(_, tail)| tail);
        }
    }
}

enum Taken<'a> {
    Plain(&'a [u8]),
    Unquoted(Vec<u8>),
}

impl Step {
    /// The text of the placeholder and what follows the literal behind it.
    fn take<'a>(&self, text: &'a [u8]) -> Option<(Taken<'a>, &'a [u8])> {
        let literal = self.next.needle();
        if !self.plain
            && let Some((unquoted, len)) = unquote_prefix(text)
        {
            let tail = text.get(len..)?.strip_prefix(literal)?;
            return Some((Taken::Unquoted(unquoted), tail));
        }
        if literal.is_empty() {
            return Some((Taken::Plain(text), &[]));
        }
        let at = self.next.find(text)?;
        Some((Taken::Plain(text.get(..at)?), text.get(at + literal.len()..)?))
    }
}

impl RowPipe for ExtractPipe {
    fn apply(&self, ctx: &ExecContext<'_>, mut batch: Batch, out: &mut Sink<'_>) -> Result<Flow> {
        let selection = self.condition.select(&batch)?;
        let absent = Column::absent();
        let column = batch.column(&self.field).unwrap_or(&absent);
        let mut writer = FieldWriter::default();
        let mut scratch = Vec::new();
        for row in 0..batch.rows() {
            if selected(selection.as_ref(), row) {
                self.extract(column.value(row, &mut scratch), row, &mut writer);
            }
            ctx.check_row(row)?;
        }
        writer.finish(&mut batch, self.keep);
        out(batch)
    }
}

/// `extract_regexp`.
pub(crate) struct ExtractRegexpPipe {
    condition: Condition,
    field: Arc<str>,
    keep: KeepMode,
    regex: Regex,
    /// Number and name of the named groups.
    groups: Vec<(usize, String)>,
}

impl ExtractRegexpPipe {
    /// Compiles the pipe.
    pub(crate) fn new(plan: &ExtractRegexp, ctx: &ExecContext<'_>) -> Result<ExtractRegexpPipe> {
        let info = plan.regex.meta().group_info().clone();
        let names = info.pattern_names(regex_automata::PatternID::ZERO).enumerate();
        let groups = names.filter_map(|(i, name)| Some((i, name?.to_owned()))).collect();
        Ok(ExtractRegexpPipe {
            condition: Condition::compile(plan.condition.as_ref(), ctx)?,
            field: Arc::from(plan.field.as_str()),
            keep: plan.keep,
            regex: plan.regex.clone(),
            groups,
        })
    }
}

impl RowPipe for ExtractRegexpPipe {
    fn apply(&self, ctx: &ExecContext<'_>, mut batch: Batch, out: &mut Sink<'_>) -> Result<Flow> {
        let selection = self.condition.select(&batch)?;
        let absent = Column::absent();
        let column = batch.column(&self.field).unwrap_or(&absent);
        let mut writer = FieldWriter::default();
        let mut scratch = Vec::new();
        let regex = self.regex.meta();
        let mut captures = regex.create_captures();
        for row in 0..batch.rows() {
            ctx.check_row(row)?;
            if !selected(selection.as_ref(), row) {
                continue;
            }
            let value = column.value(row, &mut scratch);
            regex.captures(value, &mut captures);
            for (group, name) in &self.groups {
                let span = captures.get_group(*group);
                let text = span.and_then(|s| value.get(s.range())).unwrap_or(&[]);
                writer.set(row, name, text);
            }
        }
        writer.finish(&mut batch, self.keep);
        out(batch)
    }
}
