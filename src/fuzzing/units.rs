//! Decoders of the small units of a part.

use std::ops::Range;

use super::input::Input;
use super::rows::{open, part_bytes, rows};
use crate::codec::Decoder;
use crate::codec::compress::Compressor;
use crate::codec::varint::Reader;
use crate::error::Malformed;
use crate::index::{
    Bloom, ChunkBuilder, Filter, FilterGroup, GroupHead, StreamChunk, encode_filters,
};
use crate::part::{
    Footer, IndexBlock, MetaEntry, Names, Profile, ReadContext, ReadStats, Runs, SparseColumn,
    Unit, remake,
};
use crate::record::StreamKey;

/// The most raw bytes of a packed blob.
const RAW_MAX: usize = 1 << 20;

/// A chunk of the stream table: whatever it gives for its streams agrees.
pub(super) fn run_stream_table(input: &[u8]) {
    let Ok(chunk) = StreamChunk::parse(input.to_vec()) else { return };
    let names: Vec<u32> = chunk.constant_names().collect();
    let mut builder = ChunkBuilder::default();
    let mut keys = Vec::new();
    for i in 0..chunk.len() {
        let Ok(key) = chunk.key(i) else { return };
        assert_eq!(chunk.text(i).expect("labels were read"), key.text(), "text of a stream");
        let mut constants = Vec::new();
        for name in &names {
            let Ok(column) = chunk.constant(*name) else { return };
            let column = column.expect("a constant of this name");
            constants.push((*name, column.value(i).to_vec()));
        }
        constants.retain(|(_, value)| !value.is_empty());
        builder.push(&key, constants.iter().map(|(n, v)| (*n, v.as_slice())), chunk.rows(i));
        keys.push((key, constants));
    }
    if keys.is_empty() {
        return;
    }
    for label in chunk.label_names() {
        let column = chunk.label(label).expect("was read").expect("a label of this name");
        let matching = column.matching(|value| value.len() % 2 == 1);
        for (i, (key, _)) in keys.iter().enumerate() {
            assert_eq!(matching.get(i), key.get(label).len() % 2 == 1, "streams that match");
        }
    }
    let again = StreamChunk::parse(builder.take()).expect("a chunk that was written");
    for (i, (key, constants)) in keys.iter().enumerate() {
        assert_eq!(&again.key(i).expect("a chunk that was written"), key);
        assert_eq!(again.rows(i), chunk.rows(i));
        for (name, value) in constants {
            let column = again.constant(*name).expect("was written").expect("was written");
            assert_eq!(column.value(i), value);
        }
    }
}

pub(super) fn seeds_stream_table() -> Vec<Vec<u8>> {
    let chunk = |count: usize| {
        let mut builder = ChunkBuilder::default();
        for i in 0..count {
            let label = |n: &str, v: String| (n.to_owned(), v.into_bytes());
            let mut labels = vec![label("app", format!("app-{}", i % 5))];
            if i % 3 == 0 {
                labels.push(label("pod", format!("pod \"{i}\"")));
            }
            let host = format!("host-{}", i / 4);
            let constants = [(2, &b"same"[..]), (9, host.as_bytes())];
            builder.push(&StreamKey::new(labels), constants.into_iter().skip(i % 2), i as u64 + 1);
        }
        builder.take()
    };
    vec![chunk(1), chunk(7), chunk(40)]
}

/// Which unit, then its bytes.
pub(super) fn run(input: &[u8]) {
    let mut input = Input::new(input);
    let kind = input.u8();
    // What a decoder refuses is no finding.
    let _ = match kind % 8 {
        0 => packed(input.rest()),
        1 => names(input.rest()),
        2 => metaindex(input.rest()),
        3 => index_block(input),
        4 => runs(input),
        5 => sparse(input),
        6 => filter_group(input),
        _ => footer(input.rest()),
    };
}

fn packed(bytes: &[u8]) -> Result<(), Malformed> {
    let raw = Decoder::new().unpack(bytes, RAW_MAX)?;
    let mut blob = Vec::new();
    Compressor::new(1).pack(&raw, &mut blob);
    assert!(Decoder::new().unpack(&blob, RAW_MAX) == Ok(raw), "a blob comes back");
    Ok(())
}

fn names(bytes: &[u8]) -> Result<(), Malformed> {
    let names = Names::parse(bytes)?;
    assert_eq!(Names::parse(&names.encode()).as_ref(), Ok(&names), "names come back");
    for (i, name) in (0u32..).zip(names.iter()) {
        assert_eq!(names.id(name), Some(i), "the number of a name");
        assert!(names.with_prefix(name).contains(&i), "names with a prefix");
    }
    Ok(())
}

fn metaindex(bytes: &[u8]) -> Result<(), Malformed> {
    let entries = MetaEntry::parse_all(bytes)?;
    let again = MetaEntry::encode_all(&entries);
    assert_eq!(MetaEntry::parse_all(&again).as_ref(), Ok(&entries), "entries come back");
    Ok(())
}

fn index_block(mut input: Input<'_>) -> Result<(), Malformed> {
    let (blocks, rows) = (u32::from(input.u8()), u64::from(input.u16()));
    let entry = MetaEntry {
        first_block: 0,
        blocks,
        first_row: 0,
        rows,
        first_stream: 0,
        streams: u32::from(input.u8()),
        min_time: 0,
        max_time: i64::MAX,
        pages: 16,
        filters: 1 << 20,
        at: Default::default(),
    };
    let index = IndexBlock::parse(input.rest().to_vec(), &entry)?;
    assert_eq!(index.heads().map(|h| u64::from(h.rows)).sum::<u64>(), rows, "rows of the blocks");
    for i in 0..index.len() {
        let columns = index.columns(i)?;
        let names = index.names(i)?;
        assert!(names.is_sorted_by(|a, b| a < b), "columns ascend");
        assert!(columns.iter().map(|c| c.0).eq(names), "names of columns");
        for (name, header) in columns.iter().take(50) {
            assert_eq!(index.column(i, *name)?.as_ref(), Some(header), "a column by its name");
        }
    }
    Ok(())
}

fn runs(mut input: Input<'_>) -> Result<(), Malformed> {
    let (rows, streams) = (u32::from(input.u16()) + 1, u32::from(input.u8()) + 1);
    let (from, span) = (i64::from(input.u16()), i64::from(input.u16()) << (input.u8() % 46));
    let block = (from, from + span);
    let runs = Runs::parse(input.rest(), rows, streams, block)?;
    let mut next = 0;
    for i in 0..runs.len() {
        let Range { start, end } = runs.rows(i);
        assert!(start == next && end > start, "runs follow each other");
        assert_eq!(runs.run_of(start), i, "the run of a row");
        let (min, max) = runs.times(i).expect("times of a run");
        assert!(block.0 <= min && min <= max && max <= block.1, "times of a run");
        next = end;
    }
    assert_eq!((next, runs.len()), (rows, streams as usize), "rows and streams");
    Ok(())
}

fn sparse(mut input: Input<'_>) -> Result<(), Malformed> {
    let (rows, present) = (u32::from(input.u16()) + 1, u32::from(input.u8()));
    let column = SparseColumn::parse(input.rest(), rows, present)?;
    assert_eq!(column.rows.len(), present as usize);
    assert!(column.rows.is_sorted_by(|a, b| a < b) && column.rows.iter().all(|r| *r < rows));
    assert!(column.values.iter().all(|value| !value.is_empty()), "sparse values");
    Ok(())
}

fn filter_group(mut input: Input<'_>) -> Result<(), Malformed> {
    let head = GroupHead::read(&mut Reader::new(input.bytes()))?;
    let bytes = input.rest();
    let alone = head.split(bytes, &mut Decoder::new());
    match &head {
        GroupHead::Hashes(group) => hashes(group, alone.ok(), bytes),
        GroupHead::Words(_) => {
            let alone = alone?;
            assert_eq!(alone.len(), head.members(), "a set of words for each member");
            for filter in &alone {
                let Filter::Words(words) = filter else { panic!("a filter of another kind") };
                assert!(words.iter().is_sorted_by(|a, b| a < b), "words ascend");
                assert!(words.iter().all(|word| filter.may_have(word)), "words are found");
            }
            Ok(())
        }
    }
}

fn hashes(group: &FilterGroup, alone: Option<Vec<Filter>>, pieces: &[u8]) -> Result<(), Malformed> {
    let read = |piece: usize, range: Range<u64>| {
        let bytes = pieces.get(range.start as usize..range.end as usize);
        let bytes = bytes.ok_or(Malformed("past the pieces"))?;
        group.verify(piece, bytes).map(|()| bytes)
    };
    let hash = 0x1234_5678_9abc_def0;
    let found = group.members_with(hash, read)?;
    for member in 0..group.members() {
        if let Some(Filter::Hashes(alone)) = alone.as_ref().map(|all| &all[member]) {
            assert_eq!(found.get(member), alone.may_contain(hash), "as the filter alone");
        }
    }
    Ok(())
}

fn footer(bytes: &[u8]) -> Result<(), Malformed> {
    let mut footer = bytes.to_vec();
    footer.resize(144, 0);
    let sum = crate::io::checksum(&footer);
    footer.extend_from_slice(&sum.to_le_bytes());
    footer.extend_from_slice(b"htilgol\n");
    let len = u64::from_le_bytes(*footer[136..].first_chunk().expect("eight bytes"));
    if let Ok((parsed, _)) = Footer::parse(&footer, len) {
        assert_eq!(parsed.encode().0, footer, "a footer comes back");
    }
    Ok(())
}

pub(super) fn seeds() -> Vec<Vec<u8>> {
    let mut out = Vec::new();
    let mut seed = |kind: u8, parts: &[&[u8]]| out.push([&[kind][..], &parts.concat()].concat());
    let mut blob = Vec::new();
    Compressor::new(1).pack(&b"some text again ".repeat(20), &mut blob);
    seed(0, &[&blob]);
    let part = open(part_bytes(&rows(1, 120), Profile::Flush, 200)).expect("a valid part");
    let stats = ReadStats::default();
    let cx = ReadContext::new(&stats);
    let mut sections = 0;
    let mut each = |unit: Unit, bytes: &mut Vec<u8>| match unit {
        Unit::Section => {
            sections += 1;
            match sections {
                1 => seed(2, &[bytes]),
                2 => seed(1, &[bytes]),
                _ => {}
            }
        }
        Unit::Index => seed(3, &[&[1, 120, 0, 4], bytes]),
        Unit::Block => {
            seed(4, &[&[119, 0, 3, 0, 0, 64, 156, 10], bytes]);
            seed(5, &[&[119, 0, 1], bytes]);
        }
        Unit::Footer => seed(7, &[bytes]),
        _ => {}
    };
    remake(&part, &cx, &mut each).expect("a valid part");
    let mut filters = [Bloom::empty(7), Bloom::empty(7), Bloom::empty(7)];
    (0..9u64).for_each(|i| filters[0].insert(i.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
    filters[2].insert(0x1234_5678_9abc_def0);
    let words = |words: &[&str]| Filter::Words(words.iter().map(|w| w.as_bytes()).collect());
    let words = [words(&["connection", "refused"]), words(&[]), words(&["connect", "refused"])];
    for filters in [filters.map(Filter::Hashes), words] {
        let (head, bytes) =
            encode_filters(&filters.iter().collect::<Vec<_>>(), &mut Compressor::new(0));
        seed(6, &[&(head.len() as u16).to_le_bytes(), &head, &bytes]);
    }
    out
}
