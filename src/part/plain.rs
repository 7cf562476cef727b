//! Rows as plain data, for tests and fuzz targets.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::record::{RowBatch, RowBatchBuilder, StreamKey, Timestamp};

/// A row as plain data: labels, time, fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Plain {
    pub(crate) labels: Vec<(String, Vec<u8>)>,
    pub(crate) time: i64,
    pub(crate) fields: BTreeMap<String, Vec<u8>>,
}

/// Rows as ingestion gives them.
pub(crate) fn batch(rows: &[Plain]) -> RowBatch {
    let mut b = RowBatchBuilder::new();
    let mut streams: Vec<(&Plain, u32)> = Vec::new();
    for row in rows {
        let known = streams.iter().find(|(other, _)| other.labels == row.labels).map(|s| s.1);
        let stream = known.unwrap_or_else(|| {
            let id = b.add_stream(Arc::new(StreamKey::new(row.labels.clone())));
            streams.push((row, id));
            id
        });
        for (name, value) in &row.fields {
            let name = b.name_id(name);
            b.push_field(name, value);
        }
        b.finish_row(Timestamp::from_nanos(row.time), stream);
    }
    b.finish()
}
