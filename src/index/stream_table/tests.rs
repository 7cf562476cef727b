//! The table against the streams that it was made of.
#![allow(clippy::cast_possible_truncation)]

use proptest::prelude::*;

use super::*;

type Stream = (StreamKey, Vec<(String, Vec<u8>)>);

fn build(streams: &[Stream]) -> (StreamTable, Vec<u8>, usize) {
    let mut zstd = Compressor::new(3);
    let mut builder = StreamTableBuilder::new();
    for (i, (key, constants)) in streams.iter().enumerate() {
        let constants = constants.iter().map(|(n, v)| (n.as_str(), v.as_slice()));
        assert_eq!(builder.push(key, constants, &mut zstd), i);
    }
    let (directory, chunks) = builder.finish(&mut zstd);
    let head_len = directory.len();
    let table = StreamTable::parse(&directory).unwrap();
    (table, [directory, chunks].concat(), head_len)
}

fn chunk(table: &StreamTable, bytes: &[u8], i: usize) -> StreamChunk {
    let range = table.chunk_range(i);
    let bytes = &bytes[range.start as usize..range.end as usize];
    table.decode_chunk(i, bytes, &mut Decoder::new()).unwrap()
}

fn streams() -> impl Strategy<Value = Vec<Stream>> {
    let value = prop_oneof![
        Just(Vec::new()),
        "[ab]{1,3}".prop_map(String::into_bytes),
        prop::collection::vec(any::<u8>(), 0..6),
    ];
    let pairs = |names: &'static [&'static str]| {
        let name = prop::sample::select(names).prop_map(str::to_owned);
        prop::collection::btree_map(name, value.clone(), 0..4)
    };
    let stream = (pairs(&["app", "host", "x"]), pairs(&["host2", "y", "z"]));
    prop::collection::vec(stream, 0..60).prop_map(|streams| {
        streams
            .into_iter()
            .map(|(labels, constants)| (StreamKey::new(labels), constants.into_iter().collect()))
            .collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn streams_come_back(streams in streams(), repeat in prop::sample::select(vec![1usize, 30])) {
        let streams: Vec<Stream> =
            streams.iter().cycle().take(streams.len() * repeat).cloned().collect();
        let (table, bytes, _) = build(&streams);
        prop_assert_eq!(table.len(), streams.len());
        prop_assert_eq!(table.locate(streams.len()), None);
        let chunks: Vec<StreamChunk> =
            (0..table.chunk_count()).map(|i| chunk(&table, &bytes, i)).collect();
        for (ordinal, (key, constants)) in streams.iter().enumerate() {
            let (i, row) = table.locate(ordinal).unwrap();
            prop_assert!(table.chunk_streams(i).contains(&ordinal));
            let chunk = &chunks[i];
            prop_assert_eq!(&chunk.key(row), key);
            prop_assert_eq!(chunk.text(row), key.text());
            let want: Vec<(&str, &[u8])> = constants
                .iter()
                .filter(|(_, v)| !v.is_empty())
                .map(|(n, v)| (n.as_str(), v.as_slice()))
                .collect();
            prop_assert_eq!(chunk.constants(row).collect::<Vec<_>>(), want);
            let host = StreamColumn::Label("host".into());
            prop_assert_eq!(chunk.get(row, &host), key.get("host"));
        }
    }

    #[test]
    fn selectors_are_answered_as_for_each_stream(streams in streams(), needle in "[ab]{0,2}") {
        let (table, bytes, _) = build(&streams);
        let wanted = |v: &[u8]| v.starts_with(needle.as_bytes());
        for name in ["app", "host", "nowhere"] {
            let column = StreamColumn::Label(name.into());
            for i in 0..table.chunk_count() {
                let chunk = chunk(&table, &bytes, i);
                let mut seen = Vec::new();
                let rows = chunk.matching(&column, |v| {
                    seen.push(v.to_vec());
                    wanted(v)
                });
                let calls = seen.len();
                seen.sort();
                seen.dedup();
                prop_assert_eq!(calls, seen.len(), "once for each distinct value");
                for (row, ordinal) in table.chunk_streams(i).enumerate() {
                    prop_assert_eq!(rows.get(row), wanted(streams[ordinal].0.get(name)));
                }
            }
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused(
        streams in streams(),
        bytes in prop::collection::vec(any::<u8>(), 0..100),
        at in any::<prop::sample::Index>(),
        xor in 1u8..,
    ) {
        let _ = StreamTable::parse(&bytes);
        let (table, good, head_len) = build(&streams);
        let mut directory = good[..head_len].to_vec();
        directory[at.index(head_len)] ^= xor;
        let _ = StreamTable::parse(&directory);
        if table.chunk_count() > 0 {
            let range = table.chunk_range(0);
            let blob = &good[range.start as usize..range.end as usize];
            let mut raw = Decoder::new().unpack(blob, 1 << 20).unwrap();
            let at = at.index(raw.len());
            raw[at] ^= xor;
            let names: Arc<[StreamColumn]> = table.columns().into();
            let n = table.chunk_streams(0).len();
            let _ = StreamChunk::decode(&raw, n, Arc::clone(&names));
            raw.truncate(at);
            let _ = StreamChunk::decode(&raw, n, names);
            let mut blob = blob.to_vec();
            let at = at % blob.len();
            blob[at] ^= xor;
            prop_assert!(table.decode_chunk(0, &blob, &mut Decoder::new()).is_err());
        }
    }
}

/// A pod-like name: a few letters and digits that look random.
fn suffix(seed: u64, len: usize) -> String {
    let mut h = xxh3_64(&seed.to_le_bytes());
    (0..len)
        .map(|_| {
            let c = b"bcdfghjklmnpqrstvwxz2456789"[(h % 27) as usize];
            h /= 27;
            char::from(c)
        })
        .collect()
}

#[test]
fn many_streams_stay_small() {
    let mut streams: Vec<Stream> = (0..25_000u64)
        .map(|i| {
            let (app, node) = (i % 40, xxh3_64(&i.to_le_bytes()) % 200);
            let set = suffix(1_000_000 + i / 200, 9);
            let labels = [
                ("app", format!("service-{app}")),
                ("container", format!("service-{app}")),
                ("namespace", format!("team-{}", app % 12)),
                ("node", format!("ip-10-0-{}-{}.internal", node / 16, node % 256)),
                ("pod", format!("service-{app}-{set}-{}", suffix(i, 5))),
            ];
            let labels = labels.map(|(n, v)| (n.to_owned(), v.into_bytes()));
            let uid = format!(
                "{:016x}{:016x}",
                xxh3_64(&(i + 99_999).to_le_bytes()),
                xxh3_64(&[i as u8, 7])
            );
            let constants = vec![("uid".to_owned(), uid.into_bytes())];
            (StreamKey::new(labels), if i % 8 == 0 { constants } else { Vec::new() })
        })
        .collect();
    streams.sort_by_cached_key(|(key, _)| key.text());
    let (table, bytes, _) = build(&streams);
    assert_eq!(table.chunk_count(), 25);
    assert!(bytes.len() < 500_000, "{}", bytes.len());
}
