use std::time::Duration;

use super::*;
use crate::ingest::{JsonLines, append_batch};
use crate::record::{Batch, Entry, Limits};

const NOW: i64 = 1_700_000_000_000_000_000;

fn writer(options: IngestOptions) -> RowWriter {
    RowWriter::new(Arc::new(options), Timestamp::from_nanos(NOW))
}

/// Stream text, then fields without labels.
type Row = (String, Vec<(String, String)>);

fn rows_of(batch: &RowBatch) -> Vec<Row> {
    let text = |b: &[u8]| String::from_utf8(b.to_vec()).unwrap();
    let rows = batch.iter().map(|row| {
        let fields = row.fields().map(|(n, v)| (batch.names()[n as usize].clone(), text(v)));
        (text(&row.stream_key().unwrap().text()), fields.collect())
    });
    rows.collect()
}

fn ingest(options: IngestOptions, input: &str) -> (Vec<Row>, IngestReport) {
    let mut lines = JsonLines::new(writer(options));
    let mut report = IngestReport::default();
    let mut rows = Vec::new();
    let mut sink = |batch: RowBatch, _: &mut IngestReport| {
        rows.extend(rows_of(&batch));
        Ok(())
    };
    lines.parse_chunk(input.as_bytes(), &mut report, &mut sink).unwrap();
    lines.flush(&mut report, &mut sink).unwrap();
    (rows, report)
}

fn row(stream: &str, fields: &[(&str, &str)]) -> Row {
    (stream.to_owned(), fields.iter().map(|(n, v)| (n.to_string(), v.to_string())).collect())
}

fn reasons(report: &IngestReport) -> Vec<(RejectReason, u64)> {
    report.rejections().map(|(reason, r)| (reason, r.count)).collect()
}

#[test]
fn stream_fields_become_labels() {
    let options = IngestOptions::new().stream_fields(["host", "app"]);
    let (rows, report) = ingest(
        options,
        concat!(
            "{\"app\":\"a\",\"host\":\"h\",\"x\":1}\n",
            "{\"x\":2,\"host\":\"h\",\"app\":\"a\"}\n",
            "{\"x\":3,\"host\":\"h\"}\n",
            "{\"x\":4}\n",
            "{\"x\":5,\"app\":\"b\",\"app\":\"a\",\"host\":\"h\",\"_stream\":\"{q=\\\"z\\\"}\"}\n",
            "{\"x\":6,\"app\":\"a\",\"app\":null,\"host\":7,\"_stream_id\":\"00\"}\n",
        ),
    );
    let want = [
        row("{app=\"a\",host=\"h\"}", &[("x", "1")]),
        row("{app=\"a\",host=\"h\"}", &[("x", "2")]),
        row("{host=\"h\"}", &[("x", "3")]),
        row("{}", &[("x", "4")]),
        row("{app=\"a\",host=\"h\"}", &[("x", "5")]),
        row("{host=\"7\"}", &[("x", "6")]),
    ];
    assert_eq!(rows, want);
    assert_eq!((report.ignored_stream, report.ignored_stream_id), (1, 1));
}

#[test]
fn a_stream_in_the_input_is_kept_without_stream_fields() {
    let (rows, report) = ingest(
        IngestOptions::new(),
        concat!(
            "{\"_stream\":\"{app=\\\"a\\\",h=\\\"1\\\"}\",\"app\":\"a\",\"h\":\"1\",\"x\":1}\n",
            "{\"x\":2,\"_stream\":\"{app=\\\"a\\\",h=\\\"1\\\"}\"}\n",
            "{\"app\":\"b\",\"x\":3,\"_stream\":\"{app=\\\"a\\\",h=\\\"1\\\"}\"}\n",
            "{\"x\":4,\"_stream\":\"{app=}\"}\n",
            "{\"x\":5,\"_stream\":\"{}\"}\n",
            "{\"x\":6,\"_stream\":\"{_time=\\\"1\\\"}\"}\n",
        ),
    );
    let want = [
        row("{app=\"a\",h=\"1\"}", &[("x", "1")]),
        row("{app=\"a\",h=\"1\"}", &[("x", "2")]),
        row("{app=\"b\",h=\"1\"}", &[("x", "3")]),
        row("{}", &[("x", "4")]),
        row("{}", &[("x", "5")]),
        row("{}", &[("x", "6")]),
    ];
    assert_eq!(rows, want);
    assert_eq!(report.ignored_stream, 2);
}

#[test]
fn streams_hold_over_batches() {
    let options = IngestOptions::new().stream_fields(["app"]);
    let mut lines = JsonLines::new(writer(options).with_target_bytes(1));
    let mut report = IngestReport::default();
    let mut streams = Vec::new();
    let mut sink = |batch: RowBatch, _: &mut IngestReport| {
        assert_eq!(batch.len(), 1);
        streams.push(rows_of(&batch).remove(0).0);
        Ok(())
    };
    let input = b"{\"app\":\"a\",\"x\":1}\n{\"app\":\"a\",\"x\":1}\n{\"app\":\"b\",\"x\":1}\n";
    lines.parse_chunk(input, &mut report, &mut sink).unwrap();
    lines.flush(&mut report, &mut sink).unwrap();
    assert_eq!(streams, ["{app=\"a\"}", "{app=\"a\"}", "{app=\"b\"}"]);
}

#[test]
fn time_and_message_fields_can_be_chosen() {
    let options = IngestOptions::new().time_field("ts").msg_field("text").time_zone_seconds(3_600);
    let mut lines = JsonLines::new(writer(options));
    let mut report = IngestReport::default();
    let mut batches = Vec::new();
    let mut sink = |batch: RowBatch, _: &mut IngestReport| {
        batches.push(batch);
        Ok(())
    };
    let input = concat!(
        "{\"ts\":\"1970-01-01 01:00:01\",\"text\":\"m\"}\n",
        "{\"_time\":2,\"text\":\"m\",\"_msg\":\"own\"}\n",
        "{\"_time\":2,\"ts\":3.5,\"text\":\"\"}\n",
        "{\"ts\":null,\"text\":\"x\"}\n",
    );
    lines.parse_chunk(input.as_bytes(), &mut report, &mut sink).unwrap();
    lines.flush(&mut report, &mut sink).unwrap();
    let times: Vec<i64> = batches[0].iter().map(|r| r.time.as_nanos() / 100_000_000).collect();
    assert_eq!(times, [10, 20, 35, NOW / 100_000_000]);
    let want = [
        row("{}", &[("_msg", "m")]),
        row("{}", &[("text", "m"), ("_msg", "own")]),
        row("{}", &[]),
        row("{}", &[("_msg", "x")]),
    ];
    assert_eq!(rows_of(&batches[0]), want);
    assert_eq!((report.missing_time, report.ignored_time), (1, 1));
}

#[derive(Debug)]
struct OnlyDay(i32);

impl DayGate for OnlyDay {
    fn admit(&self, day: i32) -> bool {
        day == self.0
    }
}

#[test]
fn limits_reject_whole_entries() {
    let limits = Limits {
        max_name_bytes: 5,
        max_fields: 2,
        max_entry_bytes: 60,
        max_future: Some(Duration::from_secs(60)),
        ..Limits::default()
    };
    let options = IngestOptions::new().stream_fields(["s"]).limits(limits);
    let today = Timestamp::from_nanos(NOW).day();
    let writer = writer(options).with_gate(Arc::new(OnlyDay(today)));
    let mut lines = JsonLines::new(writer);
    let mut report = IngestReport::default();
    let mut rows = Vec::new();
    let mut sink = |batch: RowBatch, _: &mut IngestReport| {
        rows.extend(rows_of(&batch));
        Ok(())
    };
    let input = concat!(
        "{\"abcde\":1,\"s\":2}\n",
        "{\"abcdef\":1}\n",
        "{\"a\":1,\"b\":2,\"s\":3}\n",
        "{\"a\":1,\"b\":2,\"b\":3,\"c\":null}\n",
        "{\"a\":\"0123456789012345678901234567890123456789012345678901234567\"}\n",
        "{\"a\":{\"b\":1,\"cdef\":2}}\n",
        "{\"_time\":1700000061,\"a\":1}\n",
        "{\"_time\":1700000059,\"a\":1}\n",
        "{\"_time\":1600000000,\"a\":1}\n",
    );
    lines.parse_chunk(input.as_bytes(), &mut report, &mut sink).unwrap();
    lines.flush(&mut report, &mut sink).unwrap();
    let want = [
        row("{s=\"2\"}", &[("abcde", "1")]),
        row("{}", &[("a", "1"), ("b", "3")]),
        row("{}", &[("a", "{\"b\":1,\"cdef\":2}")]),
        row("{}", &[("a", "1")]),
    ];
    assert_eq!(rows, want);
    let want = [
        (RejectReason::TooFarInFuture, 1),
        (RejectReason::TooManyDays, 1),
        (RejectReason::EntryTooLong, 1),
        (RejectReason::TooManyFields, 1),
        (RejectReason::NameTooLong, 1),
    ];
    assert_eq!(reasons(&report), want);
}

#[test]
fn entries_follow_the_same_rules() {
    let limits = Limits { max_entry_bytes: 40, ..Limits::default() };
    let mut writer = writer(IngestOptions::new().stream_fields(["app"]).limits(limits));
    let mut batch = Batch::new();
    batch.entry().field("app", "a").field("x", 1).field("x", 2).message("m");
    batch.push(&Entry::new().field("_time", "nonsense").field("y", 1));
    batch.push(&Entry::new().time(Timestamp::from_nanos(7)).field("_time", "9").field("y", ""));
    batch.entry().field("long", "0123456789012345678901234567890123456789");
    batch.entry();
    batch.push(&Entry::new().field_bytes("z", b"\xff"));
    let mut report = IngestReport::default();
    let mut rows = Vec::new();
    append_batch(&mut writer, &batch, &mut report, |b| {
        rows.extend(rows_of(&b));
        Ok(())
    })
    .unwrap();
    let want = [
        row("{app=\"a\"}", &[("x", "2"), ("_msg", "m")]),
        row("{}", &[]),
        row("{}", &[("z", "\u{fffd}")]),
    ];
    assert_eq!(rows, want);
    let want =
        [(RejectReason::Empty, 1), (RejectReason::InvalidTime, 1), (RejectReason::EntryTooLong, 1)];
    assert_eq!(reasons(&report), want);
    assert_eq!((report.invalid_utf8, report.missing_time, report.lines), (1, 2, 6));
}

#[test]
fn many_names_and_streams_are_forgotten_between_batches() {
    let mut lines = JsonLines::new(writer(IngestOptions::new()).with_target_bytes(1 << 20));
    let mut report = IngestReport::default();
    let mut rows = 0;
    let mut sink = |batch: RowBatch, _: &mut IngestReport| {
        rows += batch.len();
        Ok(())
    };
    for round in 0..3 {
        let input: String = (0..40_000).map(|i| format!("{{\"n{round}_{i}\":{i}}}\n")).collect();
        lines.parse_chunk(input.as_bytes(), &mut report, &mut sink).unwrap();
        lines.flush(&mut report, &mut sink).unwrap();
    }
    assert!(lines.writer().names().len() <= MAX_NAMES);
    assert_eq!(rows, 120_000);
}
