//! The journal: payloads of batches, and segments that a store replays when it opens.

use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

use super::input::{Input, put_bytes};
use super::life::{options, root, write_some_rows};
use super::rows::{is_typed, rows};
use crate::Store;
use crate::io::SimDisk;
use crate::journal::{
    Kind, RecordHeader, SegmentHeader, decode, encode, encode_record, parse_segment_name,
    segment_path,
};
use crate::options::QueryOptions;
use crate::part::plain::batch;
use crate::record::RowBatch;

/// A store that was closed, the number of its next segment, and a sequence that is free.
struct Base {
    disk: SimDisk,
    store_id: u128,
    segment: u64,
    sequence: u64,
}

static BASE: LazyLock<Base> = LazyLock::new(|| {
    let disk = Arc::new(SimDisk::new());
    let rows = write_some_rows(&disk);
    let name = |path: &PathBuf| path.file_name().map(|n| n.to_string_lossy().into_owned());
    let names: Vec<String> = disk.files().iter().filter_map(name).collect();
    let segments = names.iter().filter_map(|name| parse_segment_name(name));
    let segment = segments.max().map_or(1, |n| n + 1);
    let manifest = names.iter().filter(|name| name.starts_with("MANIFEST-")).max();
    let manifest = disk.read_file(root().join(manifest.expect("a manifest"))).expect("a manifest");
    let id: [u8; 16] = *manifest[24..].first_chunk().expect("a header");
    let store_id = u128::from_le_bytes(id);
    Base { disk: SimDisk::clone(&disk), store_id, segment, sequence: rows + 1 }
});

/// Mode u8: 0 a payload, 1 a segment as it is, else records of any payloads.
pub(super) fn run(input: &[u8]) {
    let mut input = Input::new(input);
    match input.u8() % 3 {
        0 => payload(input.rest()),
        1 => replay(input.rest()),
        _ => replay(&records(&mut input)),
    }
}

/// A payload that is read is written as one that gives the same rows.
fn payload(bytes: &[u8]) {
    let Ok(batch) = decode(bytes) else { return };
    let mut again = Vec::new();
    encode(&batch, &mut again);
    let again = decode(&again).expect("a payload that was written");
    assert!(plain(&again) == plain(&batch), "rows of a payload");
}

type PlainRow = (i64, Vec<(String, Vec<u8>)>, Vec<(String, Vec<u8>)>);

fn plain(batch: &RowBatch) -> Vec<PlainRow> {
    let row = |row: crate::record::RowView<'_>| {
        let labels = row.stream_key().map_or(Vec::new(), |key| key.labels().to_vec());
        let name = |id: u32| batch.names()[id as usize].clone();
        let fields = row.fields().map(|(id, value)| (name(id), value.to_vec())).collect();
        (row.time.as_nanos(), labels, fields)
    };
    batch.iter().map(row).collect()
}

/// A segment of records: kind u8, distance of the sequence to the next one u8, synced u8, rows
/// u8 (0: as many as the payload has), payload.
fn records(input: &mut Input<'_>) -> Vec<u8> {
    let base = &*BASE;
    let header = SegmentHeader { store_id: base.store_id, segment: base.segment, previous_len: 0 };
    let mut out = header.encode();
    let mut sequence = base.sequence;
    while !input.is_empty() {
        let kind = if input.u8() % 8 == 7 { Kind::Close } else { Kind::Batch };
        let distance = u64::from(input.u8());
        let synced = if input.u8().is_multiple_of(2) { out.len() as u32 } else { 0 };
        let rows = u32::from(input.u8());
        let payload = input.bytes();
        let real = decode(payload).map_or(0, |batch| batch.len() as u32);
        let rows = if rows == 0 { real } else { rows };
        sequence = sequence.wrapping_add(distance);
        let header = RecordHeader { kind, sequence, rows, synced };
        let at = (base.segment, out.len() as u64);
        encode_record(&mut out, at, header, payload).expect("inputs are small");
        sequence += u64::from(real);
    }
    out
}

/// Opens a store with the segment; what it recovered is there when it opens again.
fn replay(segment: &[u8]) {
    let disk = Arc::new(BASE.disk.fork());
    disk.write_file(segment_path(&root(), BASE.segment), segment);
    let store = match options(&disk).open(root()) {
        Ok(store) => store,
        Err(e) => return assert!(is_typed(&e), "{e}"),
    };
    let rows = all_rows(&store);
    store.close().expect("a store on a good disk closes");
    let store = options(&disk).open(root()).expect("a store that was closed opens");
    let report = store.open_report();
    assert!(report.replayed_rows == 0, "{report}");
    assert!(all_rows(&store) == rows, "rows that were recovered are kept");
}

fn all_rows(store: &Store) -> Vec<Vec<u8>> {
    let mut out = Vec::new();
    let options = QueryOptions::new().skip_damaged(true);
    let query = "*".parse().expect("the query is LogsQL");
    for row in store.query_with(&query, &options).expect("queries begin") {
        let mut text = Vec::new();
        crate::write_json(&row.expect("recovered rows are read"), &mut text);
        out.push(text);
    }
    out.sort();
    out
}

pub(super) fn seeds() -> Vec<Vec<u8>> {
    let payload = |kind: u8, count: u32| {
        let mut out = Vec::new();
        encode(&batch(&rows(kind, count)), &mut out);
        out
    };
    let mut out = vec![[&[0][..], &payload(0, 9)].concat(), [&[0][..], &payload(1, 30)].concat()];
    let mut seed = vec![2];
    for (kind, count) in [(0u8, 3), (1, 2), (2, 5)] {
        seed.extend_from_slice(&[0, 0, kind, 0]);
        put_bytes(&mut seed, &payload(kind, count));
    }
    out.push([&[1][..], &records(&mut Input::new(&seed[1..]))].concat());
    seed.extend_from_slice(&[7, 0, 0, 0, 0, 0]);
    out.push(seed);
    out
}
