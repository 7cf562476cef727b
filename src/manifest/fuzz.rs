//! Manifest files from any payloads, under right checksums and numbers: for fuzz targets.

use super::edit::StoreId;
use super::log::{Header, Record, RecordKind};

/// A file of one record for each payload, the first one an image; the flag says whether an edit
/// is synced.
pub(crate) fn file(generation: u64, store_id: StoreId, payloads: &[(bool, &[u8])]) -> Vec<u8> {
    let (mut out, mut sum) = Header { generation, store_id }.encode();
    let mut durable = 0;
    for (number, (synced, payload)) in (0u64..).zip(payloads) {
        let kind = match (number, synced) {
            (0, _) => RecordKind::Image,
            (_, true) => RecordKind::Synced,
            (_, false) => RecordKind::Later,
        };
        if *synced {
            durable = number.saturating_sub(1);
        }
        let Some((bytes, own)) = Record::encode(kind, number, durable, sum, payload) else { break };
        out.extend_from_slice(&bytes);
        sum = own;
    }
    out
}

/// The payloads of the records of a file.
pub(crate) fn payloads(bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut out = Vec::new();
    let mut rest = bytes.get(super::log::HEADER_BYTES..).unwrap_or(&[]);
    while let Ok(record) = Record::decode(rest) {
        out.push(record.payload.to_vec());
        rest = rest.get(record.len()..).unwrap_or(&[]);
    }
    out
}
