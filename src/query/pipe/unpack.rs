//! `unpack_json`, `unpack_logfmt`, `unpack_syslog`: a value taken apart into fields.

use std::sync::Arc;

use super::quoted::unquote_prefix;
use super::transform::{FieldWriter, lossy};
use super::{Condition, RowPipe, Sink, selected, syslog};
use crate::error::Result;
use crate::query::ast::{FieldPattern, Unpack, UnpackFormat};
use crate::query::batch::Batch;
use crate::query::column::Column;
use crate::query::context::{ExecContext, Flow};
use crate::query::fields::FieldSet;
use crate::query::json::{Kind, Scanner, push_compact};

/// Objects nested deeper than this keep their JSON text, as in ingestion.
const MAX_FLATTEN: usize = 32;

/// `unpack_*`.
pub(crate) struct UnpackPipe {
    condition: Condition,
    plan: Unpack,
    field: Arc<str>,
    /// The fields that a later stage reads.
    needed: FieldSet,
}

/// Fields of one row as they are found: name and value.
pub(crate) type Found<'f> = dyn FnMut(&str, &[u8]) + 'f;

impl UnpackPipe {
    /// Compiles the pipe; fields that are not `needed` are not made.
    pub(crate) fn new(
        plan: &Unpack,
        needed: &FieldSet,
        ctx: &ExecContext<'_>,
    ) -> Result<UnpackPipe> {
        Ok(UnpackPipe {
            condition: Condition::compile(plan.condition.as_ref(), ctx)?,
            field: Arc::from(plan.field.as_str()),
            plan: plan.clone(),
            needed: needed.clone(),
        })
    }

    fn unpack(&self, ctx: &ExecContext<'_>, value: &[u8], row: usize, writer: &mut FieldWriter) {
        let mut name = String::new();
        let mut set = |field: &str, value: &[u8]| {
            if !self.plan.fields.iter().any(|p| p.matches(field)) {
                return;
            }
            name.clear();
            name.push_str(&self.plan.result_prefix);
            name.push_str(field);
            if self.needed.contains(&name) {
                writer.set(row, &name, value);
            }
        };
        if self.plan.format == UnpackFormat::Json && !value.starts_with(b"{") {
            return;
        }
        // Listed fields that are missing become empty; what is found replaces that.
        for pattern in &self.plan.fields {
            if let FieldPattern::Name(field) = pattern {
                set(field, b"");
            }
        }
        match &self.plan.format {
            UnpackFormat::Json => {
                // Checked first, so that broken JSON gives no field at all.
                let mut scanner = Scanner::new(value);
                if scanner.value().is_some() && scanner.at_end() {
                    let mut name = Vec::new();
                    let _ = flatten(&mut Scanner::new(value), &mut name, 0, &mut set);
                }
            }
            UnpackFormat::Logfmt => logfmt(value, &mut set),
            UnpackFormat::Syslog { offset } => {
                let offset = offset.as_ref().map_or(0, |d| d.nanos);
                syslog::parse(&lossy(value), ctx.now, offset, &mut set);
            }
        }
    }
}

impl RowPipe for UnpackPipe {
    fn apply(&self, ctx: &ExecContext<'_>, mut batch: Batch, out: &mut Sink<'_>) -> Result<Flow> {
        let selection = self.condition.select(&batch)?;
        let absent = Column::absent();
        let column = batch.column(&self.field).unwrap_or(&absent);
        let mut writer = FieldWriter::default();
        let mut scratch = Vec::new();
        for row in 0..batch.rows() {
            if selected(selection.as_ref(), row) {
                self.unpack(ctx, column.value(row, &mut scratch), row, &mut writer);
            }
            ctx.check_row(row)?;
        }
        writer.finish(&mut batch, self.plan.keep);
        out(batch)
    }
}

/// The members of the object that begins here: nested ones under dotted names, scalars as
/// their source text, arrays without white space; `null` and `{}` are left out.
fn flatten(
    scanner: &mut Scanner<'_>,
    name: &mut Vec<u8>,
    depth: usize,
    found: &mut Found<'_>,
) -> Option<()> {
    let mut value = Vec::new();
    scanner.members(
        |s, name| {
            value.clear();
            match s.kind()? {
                Kind::Null => s.value().map(|_| ()),
                Kind::String => {
                    s.string(&mut value)?;
                    found(&lossy(name), &value);
                    Some(())
                }
                Kind::Object if depth + 1 < MAX_FLATTEN => {
                    let len = name.len();
                    name.push(b'.');
                    flatten(s, name, depth + 1, found)?;
                    name.truncate(len);
                    Some(())
                }
                Kind::Object | Kind::Array => {
                    push_compact(&mut value, s.value()?);
                    found(&lossy(name), &value);
                    Some(())
                }
                Kind::Scalar => {
                    found(&lossy(name), s.value()?);
                    Some(())
                }
            }
        },
        name,
    )
}

/// `k=v` pairs with blanks between them; values may be quoted.
fn logfmt(value: &[u8], found: &mut Found<'_>) {
    let mut rest = value;
    while !rest.is_empty() {
        let end = rest.iter().position(|b| matches!(b, b'=' | b' ')).unwrap_or(rest.len());
        let (key, tail) = rest.split_at(end);
        let key = lossy(key);
        let Some((separator, tail)) = tail.split_first() else {
            found(&key, b"");
            return;
        };
        if *separator == b' ' {
            if !key.is_empty() {
                found(&key, b"");
            }
            rest = tail;
            continue;
        }
        match unquote_prefix(tail) {
            Some((text, len)) => {
                found(&key, &text);
                let tail = tail.get(len..).unwrap_or(&[]);
                // Anything else behind a quoted value ends the text.
                rest = tail.strip_prefix(b" ").unwrap_or(&[]);
            }
            None => {
                let end = tail.iter().position(|b| *b == b' ').unwrap_or(tail.len());
                let (text, tail) = tail.split_at(end);
                found(&key, text);
                rest = tail.get(1..).unwrap_or(&[]);
            }
        }
    }
}
