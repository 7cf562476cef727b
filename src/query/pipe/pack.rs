//! `pack_json` and `pack_logfmt`: fields put into one text.

use std::sync::Arc;

use super::{RowPipe, Sink};
use crate::error::Result;
use crate::query::ast::{Pack, PackFormat};
use crate::query::batch::Batch;
use crate::query::column::Column;
use crate::query::context::{ExecContext, Flow};
use crate::query::json;
use crate::query::stats::FieldList;
use crate::record::TextVec;

/// `pack_json`, `pack_logfmt`.
pub(crate) struct PackPipe {
    fields: FieldList,
    format: PackFormat,
    result: Arc<str>,
}

impl PackPipe {
    /// Takes the plan.
    pub(crate) fn new(plan: &Pack) -> PackPipe {
        let fields = FieldList::new(&plan.fields);
        PackPipe { fields, format: plan.format, result: Arc::from(plan.result.as_str()) }
    }
}

impl RowPipe for PackPipe {
    fn apply(&self, ctx: &ExecContext<'_>, mut batch: Batch, out: &mut Sink<'_>) -> Result<Flow> {
        let mut values = TextVec::with_capacity(batch.rows(), 0);
        let absent = Column::absent();
        let parts = self.fields.parts(&batch, &absent);
        // Names are the same in all rows.
        let names: Vec<Vec<u8>> = parts
            .iter()
            .map(|part| {
                let mut name = Vec::new();
                match self.format {
                    PackFormat::Json => {
                        json::push_string(&mut name, part.name.as_bytes());
                        name.push(b':');
                    }
                    PackFormat::Logfmt => {
                        name.extend_from_slice(part.name.as_bytes());
                        name.push(b'=');
                    }
                }
                name
            })
            .collect();
        let mut scratch = Vec::new();
        for row in 0..batch.rows() {
            let text = values.open();
            let mut separator: &[u8] = b"";
            if self.format == PackFormat::Json {
                text.push(b'{');
            }
            for (part, name) in parts.iter().zip(&names) {
                let value = part.column.value(row, &mut scratch);
                if value.is_empty() {
                    continue;
                }
                text.extend_from_slice(separator);
                text.extend_from_slice(name);
                match self.format {
                    PackFormat::Json => json::push_string(text, value),
                    PackFormat::Logfmt => push_logfmt(text, value),
                }
                separator = if self.format == PackFormat::Json { b"," } else { b" " };
            }
            if self.format == PackFormat::Json {
                text.push(b'}');
            }
            values.close();
            ctx.check_row(row)?;
        }
        batch.set_column(self.result.clone(), Column::compact(values));
        out(batch)
    }
}

fn push_logfmt(out: &mut Vec<u8>, value: &[u8]) {
    if value.iter().any(|b| *b <= b' ' || matches!(b, b'"' | b'\\')) {
        json::push_quoted(out, value, true);
    } else {
        out.extend_from_slice(value);
    }
}
