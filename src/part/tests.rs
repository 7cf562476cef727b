//! Parts as wholes: what was written is what is read, whatever the shape of the rows; damaged
//! bytes are noticed.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;

use super::header::Home;
pub(crate) use super::plain::{Plain, batch};
use super::*;
use crate::index::Needle;
use crate::io::Disk;
use crate::record::{RowBatch, StreamKey};
use crate::{Error, Result};

pub(crate) const DAY: i64 = 20_000;
const DAY_NS: i64 = 86_400_000_000_000;

impl Plain {
    pub(crate) fn new(app: &str, time: i64, fields: &[(&str, &str)]) -> Plain {
        let labels = if app.is_empty() { vec![] } else { vec![("app".into(), app.into())] };
        let fields = fields.iter().map(|(n, v)| (n.to_string(), v.as_bytes().to_vec())).collect();
        Plain { labels, time: DAY * DAY_NS + time, fields }
    }

    fn text(&self) -> Vec<u8> {
        StreamKey::new(self.labels.clone()).text()
    }
}

pub(crate) fn options(profile: Profile) -> WriterOptions {
    WriterOptions::new(7, DAY, (100, 100 + 1_000_000), profile)
}

pub(crate) fn write(batches: &[&RowBatch], options: &WriterOptions) -> (Vec<u8>, PartSummary) {
    let mut bytes = Vec::new();
    let summary = write_part(batches, options, &mut bytes).unwrap();
    (bytes, summary)
}

pub(crate) fn read_all(part: &PartReader) -> Result<Vec<Plain>> {
    let stats = ReadStats::default();
    let cx = ReadContext::new(&stats);
    let names = part.names(&cx)?.clone();
    let mut cursor = part.rows(&cx);
    let mut out = Vec::new();
    while cursor.advance()? {
        let (time, key) = (cursor.time(), Arc::clone(cursor.key()));
        let mut fields: BTreeMap<String, Vec<u8>> = BTreeMap::new();
        let constants: Vec<_> = cursor.constants().to_vec();
        let mut own = Vec::new();
        cursor.fields(&mut own);
        let all = constants.iter().map(|(n, v)| (*n, v.as_slice())).chain(own);
        for (name, value) in all {
            assert!(fields.insert(names.name(name).to_owned(), value.to_vec()).is_none());
        }
        out.push(Plain { labels: key.labels().to_vec(), time, fields });
    }
    Ok(out)
}

pub(crate) fn open(bytes: &[u8]) -> Result<PartReader> {
    PartReader::open(PartSource::memory(bytes.to_vec()), None)
}

pub(crate) fn sorted(rows: &[Plain]) -> Vec<Plain> {
    let mut rows: Vec<Plain> =
        rows.iter().filter(|r| r.time.div_euclid(DAY_NS) == DAY).cloned().collect();
    rows.sort_by_key(|r| (r.text(), r.time));
    rows
}

pub(crate) fn row() -> impl Strategy<Value = Plain> {
    let value = prop_oneof![
        4 => "[ab]",
        2 => "[0-9]{1,4}",
        1 => "[a-z ]{0,60}".prop_map(|s| s + "."),
        1 => Just("same for all".to_owned()),
        1 => "-?[0-9]{1,3}\\.[0-9]{1,2}",
    ];
    let fields = prop::collection::btree_map("[a-f]|_msg", value, 0..6);
    ("[p-r]?", 0i64..40, fields, 0u8..20).prop_map(|(app, time, fields, late)| {
        let time = if late == 0 { time - 20 } else { time * 1_000_000 };
        let mut row = Plain::new(&app, time, &[]);
        row.fields = fields.into_iter().map(|(n, v)| (n, v.into_bytes())).collect();
        row
    })
}

fn profile() -> impl Strategy<Value = Profile> {
    prop_oneof![Just(Profile::Buffer), Just(Profile::Flush), Just(Profile::Merge)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]
    #[test]
    fn rows_come_back(
        rows in prop::collection::vec(row(), 0..120),
        cut in 0usize..120, profile in profile(),
        block_rows in 1u32..60, block_bytes in prop_oneof![1usize..200, Just(5 << 18)],
    ) {
        let cut = cut.min(rows.len());
        let (a, b) = (batch(&rows[..cut]), batch(&rows[cut..]));
        let options = WriterOptions { block_rows, block_bytes, ..options(profile) };
        let (bytes, summary) = write(&[&a, &b], &options);
        let part = open(&bytes).unwrap();
        let want = sorted(&rows);
        prop_assert_eq!(summary.rows as usize, want.len());
        prop_assert_eq!(summary.len as usize, bytes.len());
        prop_assert_eq!(read_all(&part).unwrap(), want);
        prop_assert_eq!(findings(&part), []);
    }
}

fn findings(part: &PartReader) -> Vec<Finding> {
    let stats = ReadStats::default();
    verify_part(part, &ReadContext::new(&stats)).unwrap().findings
}

/// Rows of one stream after the other come back from a part of many shapes.
fn check(rows: &[Plain]) -> PartReader {
    let mut part = None;
    for profile in [Profile::Buffer, Profile::Flush] {
        let (bytes, _) = write(&[&batch(rows)], &options(profile));
        let reader = open(&bytes).unwrap();
        assert!(read_all(&reader).unwrap() == sorted(rows));
        assert_eq!(findings(&reader), []);
        part = Some(reader);
    }
    part.unwrap()
}

#[test]
fn an_empty_part_has_no_rows() {
    let part = check(&[]);
    assert_eq!((part.footer().rows, part.footer().blocks, part.footer().streams), (0, 0, 0));
}

#[test]
fn streams_of_one_row_share_blocks_and_have_no_constants() {
    let rows: Vec<Plain> =
        (0..1_500).map(|i| Plain::new(&format!("s{i:05}"), i, &[("k", "v"), ("i", "x")])).collect();
    let part = check(&rows);
    assert_eq!((part.footer().blocks, part.footer().streams), (1, 1_500));
}

#[test]
fn streams_of_the_same_text_stay_apart() {
    let odd = ("a=\"x\",b".to_owned(), b"y".to_vec());
    let two = vec![("a".to_owned(), b"x".to_vec()), ("b".to_owned(), b"y".to_vec())];
    let row = |labels: Vec<(String, Vec<u8>)>, time| Plain {
        labels,
        ..Plain::new("", time, &[("_msg", "m")])
    };
    let rows = [row(two.clone(), 1), row(vec![odd.clone()], 2), row(two, 3)];
    assert_eq!(rows[0].text(), rows[1].text());
    let part = open(&write(&[&batch(&rows)], &options(Profile::Flush)).0).unwrap();
    let mut read = read_all(&part).unwrap();
    read.sort_by_key(|r| r.time);
    assert_eq!(read, rows);
    assert_eq!((part.footer().streams, findings(&part)), (2, vec![]));
}

#[test]
fn huge_values_stand_alone() {
    let big = "x".repeat(3 << 20);
    let rows: Vec<Plain> = (0..9)
        .map(|i| Plain::new("a", i, &[("_msg", if i % 3 == 1 { big.as_str() } else { "small" })]))
        .collect();
    let part = check(&rows);
    assert_eq!(part.footer().blocks, 7);
}

#[test]
fn rows_of_two_thousand_fields_and_ten_thousand_names() {
    let rows: Vec<Plain> = (0..20)
        .map(|i| {
            let names: Vec<String> =
                (0..2_000).map(|n| format!("n{}", (n + i * 420) % 10_000)).collect();
            let fields: Vec<(&str, &str)> = names.iter().map(|n| (n.as_str(), "v1")).collect();
            Plain::new("a", i as i64, &fields)
        })
        .collect();
    let stats = ReadStats::default();
    let part = check(&rows);
    let names = part.names(&ReadContext::new(&stats)).unwrap().clone();
    assert_eq!(names.len(), 9_981);
    let want = rows.iter().filter(|r| r.fields.contains_key("n77")).count() as u64;
    assert_eq!(names.hits(names.id("n77").unwrap()), want);
}

#[test]
fn constants_of_a_stream_stand_in_no_block() {
    let rows: Vec<Plain> = (0..10)
        .map(|i| {
            let (app, host) = if i % 2 == 0 { ("a", "h1") } else { ("b", "h2") };
            let msg = format!("m{i}");
            let mut fields = vec![("host", host), ("_msg", msg.as_str())];
            if app == "b" {
                fields.push(("only_b", if i < 5 { "x" } else { "y" }));
            }
            Plain::new(app, i, &fields)
        })
        .collect();
    let part = check(&rows);
    let stats = ReadStats::default();
    let cx = ReadContext::new(&stats);
    let index = part.index_block(&cx, 0).unwrap();
    let block = part.block(&cx, &index, 0).unwrap();
    let host = block.column("host").unwrap();
    assert!(host.header.is_none());
    assert_eq!((host.constants.get(0), host.constants.get(1)), (&b"h1"[..], &b"h2"[..]));
    let only_b = block.column("only_b").unwrap();
    assert_eq!(only_b.constants, RunConstants::None);
    assert_eq!(only_b.header.unwrap().present, 5);
    assert_eq!(block.column("app").unwrap().constants.get(1), b"b");
    assert!(block.column("nothing").unwrap().is_absent());
    assert!(matches!(block.column("_msg").unwrap().page, ColumnPage::Page(_)));
    assert_eq!(stats.pages.load(std::sync::atomic::Ordering::Relaxed), 0);
}

#[test]
fn equal_columns_are_stored_once() {
    let rows: Vec<Plain> = (0..100)
        .map(|i| {
            let id = format!("{:032x}", i * 0x9e37_79b9_7f4a_7c15u128);
            Plain::new("a", i as i64, &[("trace", &id), ("copy", &id), ("other", "x")])
        })
        .collect();
    let part = check(&rows);
    let stats = ReadStats::default();
    let cx = ReadContext::new(&stats);
    let index = part.index_block(&cx, 0).unwrap();
    let block = part.block(&cx, &index, 0).unwrap();
    let names = part.names(&cx).unwrap();
    let trace = block.raw_header(names.id("trace").unwrap()).unwrap().unwrap();
    assert_eq!(trace.home, Home::SameAs(names.id("copy").unwrap()));
    assert_eq!(block.column("trace").unwrap().header, block.column("copy").unwrap().header);
}

#[test]
fn rare_columns_share_the_sparse_page() {
    let rows: Vec<Plain> = (0..1_000)
        .map(|i| {
            let msg = format!("m{i}");
            let rare = format!("rare{}", i / 10);
            let mut fields = vec![("_msg", msg.as_str())];
            if i % 10 == 0 {
                fields.push((&rare, "once"));
            }
            Plain::new("a", i, &fields)
        })
        .collect();
    let part = check(&rows);
    let stats = ReadStats::default();
    let cx = ReadContext::new(&stats);
    let index = part.index_block(&cx, 0).unwrap();
    let block = part.block(&cx, &index, 0).unwrap();
    let ColumnPage::Sparse(at) = block.column("rare7").unwrap().page else { panic!("no sparse") };
    let column = block.sparse(&at).unwrap();
    assert_eq!((column.rows.as_slice(), column.values.get(0)), (&[70][..], &b"once"[..]));
}

/// A small part that has every kind of unit.
fn small() -> (Vec<u8>, Vec<Plain>) {
    let mut rows = Vec::new();
    for i in 0..300i64 {
        let app = ["a", "b", "c"][i as usize % 3];
        let msg = format!("message {i} of {}", i * i);
        let number = (i * 7).to_string();
        let mut fields = vec![("_msg", msg.as_str()), ("host", app), ("n", number.as_str())];
        fields.push(("level", if i % 5 == 0 { "error" } else { "info" }));
        fields.push(("copy", msg.as_str()));
        if i == 77 {
            fields.push(("rare", "value"));
        }
        rows.push(Plain::new(app, i * 1_000, &fields));
    }
    let options = WriterOptions { block_rows: 120, ..options(Profile::Flush) };
    (write(&[&batch(&rows)], &options).0, sorted(&rows))
}

/// Reading gives the rows that were written, or says that the part is damaged.
fn right_or_refused(bytes: &[u8], want: &[Plain]) -> bool {
    match open(bytes).and_then(|part| read_all(&part)) {
        Ok(rows) => {
            assert!(rows == want, "wrong rows from damaged bytes");
            true
        }
        Err(Error::Corrupted(_) | Error::Unsupported { .. }) => false,
        Err(e) => panic!("{e}"),
    }
}

#[test]
fn every_flipped_byte_is_noticed() {
    let (mut bytes, want) = small();
    assert!(right_or_refused(&bytes, &want));
    assert_eq!(findings(&open(&bytes).unwrap()), []);
    for at in 0..bytes.len() {
        let flip = 1u8 << (at % 8);
        bytes[at] ^= flip;
        if right_or_refused(&bytes, &want) {
            // Reading rows touches neither filters nor the list of inputs; verification does.
            assert_ne!(findings(&open(&bytes).unwrap()), [], "flip at {at}");
        }
        bytes[at] ^= flip;
    }
}

#[test]
fn the_same_bytes_go_to_files() {
    let (bytes, want) = small();
    let disk = crate::io::SimDisk::new();
    let path = std::path::Path::new("p");
    let mut file = disk.create(path).unwrap();
    FileSink { file: file.as_mut(), path }.append(&bytes).unwrap();
    let mut again = Vec::new();
    let batch = batch(&want);
    let options = WriterOptions { block_rows: 120, ..options(Profile::Flush) };
    write_part(&[&batch], &options, &mut again).unwrap();
    assert!(again == bytes, "sorted rows make other bytes");
    let facts = Expected { len: bytes.len() as u64, footer_checksum: footer_checksum(&bytes) };
    let source = PartSource::file(disk.open_read(path).unwrap(), path.into());
    let part = PartReader::open(source.clone(), Some(facts)).unwrap();
    assert!(read_all(&part).unwrap() == want);
    for wrong in [Expected { len: 1, ..facts }, Expected { footer_checksum: 1, ..facts }] {
        let refused = PartReader::open(source.clone(), Some(wrong));
        assert!(matches!(refused, Err(Error::Corrupted(_))));
    }
}

fn footer_checksum(bytes: &[u8]) -> u64 {
    open(bytes).unwrap().footer_checksum()
}

/// A file with a hole behind its header, as long as if it were written out.
#[derive(Debug)]
struct Sparse {
    bytes: Vec<u8>,
    header: u64,
    hole: u64,
}

impl crate::io::ReadAt for Sparse {
    fn len(&self) -> std::io::Result<u64> {
        Ok(self.bytes.len() as u64 + self.hole)
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> std::io::Result<usize> {
        let at = if offset < self.header { offset } else { offset - self.hole };
        let held = self.bytes.get(usize::try_from(at).unwrap()..).unwrap_or(&[]);
        let read = held.len().min(buf.len());
        buf[..read].copy_from_slice(&held[..read]);
        Ok(read)
    }
}

/// Whatever lies beyond 4 GiB is found there: blocks, index blocks, filters, the tail.
#[test]
fn offsets_above_4_gib() {
    let hole = 5 << 30;
    let rows: Vec<Plain> =
        (0..9_000).map(|i| Plain::new("a", i, &[("_msg", &format!("row {i} of many"))])).collect();
    let options = options(Profile::Flush);
    let mut bytes = Vec::new();
    let names = Names::new(vec!["_msg", "app"]);
    let mut builder = PartBuilder::new(&options, names, &mut bytes).unwrap();
    builder.skip(hole);
    let key = StreamKey::new(rows[0].labels.clone());
    let size = StreamSize { rows: rows.len() as u64, largest: 200_000 };
    builder.begin_stream(&key, [], size).unwrap();
    for row in &rows {
        builder.row(row.time, &[(0, row.fields["_msg"].as_slice())]).unwrap();
    }
    let summary = builder.finish().unwrap();
    assert_eq!(summary.len, bytes.len() as u64 + hole);
    let header = super::footer::header().len() as u64;
    let file = Arc::new(Sparse { bytes, header, hole });
    let part = PartReader::open(PartSource::file(file, "sparse".into()), None).unwrap();
    assert!(read_all(&part).unwrap() == sorted(&rows));
    let found = findings(&part);
    assert_eq!(found.len(), 1, "nothing but the hole: {found:?}");
    assert_eq!(found[0].offset, header);
}

#[test]
fn unknown_encodings_are_refused() {
    for tag in 0..=255u8 {
        let mut out = vec![tag, 0, 0, 0];
        out.resize(20, 0);
        let mut r = crate::codec::varint::Reader::new(&out);
        let read = PageRef::read(&mut r, 0);
        assert_eq!(read.is_ok(), crate::codec::Encoding::from_u8(tag).is_ok(), "{tag}");
    }
}

/// A word without digits.
fn plain_word(n: u32) -> String {
    n.to_string().bytes().map(|b| char::from(b - b'0' + b'a')).collect::<String>() + "absent"
}

#[test]
fn filters_hold_every_word_and_prune_others() {
    let rows: Vec<Plain> = (0..2_000u64)
        .map(|i| {
            let id = i.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            Plain::new("a", i as i64, &[("_msg", &format!("request {id:x} took {i} ms"))])
        })
        .collect();
    let part = check(&rows);
    let stats = ReadStats::default();
    let cx = ReadContext::new(&stats);
    let index = part.index_block(&cx, 0).unwrap();
    let block = part.block(&cx, &index, 0).unwrap();
    let header = block.column("_msg").unwrap().header.unwrap();
    let [Some(plain), Some(pieces), Some(at)] = header.filters else { panic!("no filters") };
    let find = |text: &str, open: bool, fold: bool| {
        let bounds = (!open, !open);
        block.may_hold(&header, &Needle { text: text.as_bytes(), bounds, fold }).unwrap()
    };
    let has = |word: &str| find(word, false, false);
    assert!(has("request") && has("1999") && has("9e3779b97f4a7c15"));
    let absent = (0..1_000).filter(|i| has(&format!("absent{i}"))).count();
    assert!(absent < 300, "{absent} of 1,000 absent ids pass");
    let absent = (0..1_000u32).filter(|i| has(&plain_word(*i))).count();
    assert_eq!(absent, 0, "words are known exactly");
    assert!(find("quest", true, false) && find("st ", true, false) && find("request", false, true));
    assert!(!find("Request", true, false) && !find("quest", false, false));
    assert!(!find("1xyz", true, false) && find("took 1", true, false));
    let Home::Page(page) = &header.home else { panic!("no page") };
    assert!(index.group(at.group).unwrap().group.len() <= page.len / 8);
    for words in [plain, pieces] {
        assert!(index.group(words.group).unwrap().group.len() < 100);
    }
}

/// Words that stand a few times would take as much in a vocabulary as in their page.
#[test]
fn words_of_few_rows_take_no_more_than_a_share_of_their_pages() {
    let word = |n: u64| {
        let random = (n + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes();
        random.iter().map(|b| char::from(b'a' + b % 26)).collect::<String>()
    };
    let message = |i: u32| {
        let words = (0..20).map(|n| word((u64::from(i) * 20 + n).pow(2) % 701));
        words.collect::<Vec<String>>().join(" ")
    };
    let has_plain = |rows: Vec<Plain>| {
        let part = check(&rows);
        let stats = ReadStats::default();
        let cx = ReadContext::new(&stats);
        let index = part.index_block(&cx, 0).unwrap();
        let block = part.block(&cx, &index, 0).unwrap();
        let header = block.column("_msg").unwrap().header.unwrap();
        let Home::Page(page) = &header.home else { panic!("no page") };
        let lens: Vec<u64> = index.groups().iter().map(|placed| placed.group.len()).collect();
        assert!(lens.iter().all(|len| *len <= page.len / 8), "{lens:?} of {}", page.len);
        let text = rows.last().unwrap().fields["_msg"].clone();
        let needle = Needle { text: &text, bounds: (true, true), fold: false };
        assert!(block.may_hold(&header, &needle).unwrap());
        let [plain, ..] = header.filters;
        plain.is_some()
    };
    let row = |i: u32, text: &str| Plain::new("a", i64::from(i), &[("_msg", text)]);
    assert!(!has_plain((0..100).map(|i| row(i, &message(i))).collect()));
    let repeated = |i: u32| format!("{} {i:08} {}", message(i % 3), i.wrapping_mul(0x9e37_79b9));
    assert!(has_plain((0..4_000).map(|i| row(i, &repeated(i))).collect()));
}

#[test]
fn every_truncation_is_noticed() {
    let (bytes, want) = small();
    for len in 0..bytes.len() {
        assert!(!right_or_refused(&bytes[..len], &want));
    }
}
