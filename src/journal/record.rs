//! The bytes of one journal record: a batch of rows, smaller than its text.
//!
//! ```text
//! batch   := names streams rows
//! names   := count (length bytes)*
//! streams := count (label count (length name length value)*)*
//! rows    := count row*
//! row     := stream  time delta (zigzag, to the row before)  schema  same-bits  (length value)*
//! schema  := 0 (as the stream's row before) | 1 field count (name id)*
//! ```
//!
//! All numbers are varints. One bit a field says "the value of the stream's row before", so that
//! what is constant in a stream is written once a batch.

use std::sync::Arc;

use crate::error::Malformed;
use crate::record::{NameId, RowBatch, RowBatchBuilder, StreamKey, Timestamp};

/// Appends the encoding of `batch` to `out`.
pub(crate) fn encode(batch: &RowBatch, out: &mut Vec<u8>) {
    put(out, batch.names().len() as u64);
    for name in batch.names() {
        put_bytes(out, name.as_bytes());
    }
    put(out, batch.streams().len() as u64);
    for stream in batch.streams() {
        put(out, stream.labels().len() as u64);
        for (name, value) in stream.labels() {
            put_bytes(out, name.as_bytes());
            put_bytes(out, value);
        }
    }
    put(out, batch.len() as u64);
    let mut last_row: Vec<Option<usize>> = vec![None; batch.streams().len()];
    let mut last_time = 0i64;
    for (i, row) in batch.iter().enumerate() {
        put(out, u64::from(row.stream));
        put(out, zigzag(row.time.as_nanos().wrapping_sub(last_time)));
        last_time = row.time.as_nanos();
        let slot = last_row.get_mut(row.stream as usize);
        let before = slot.and_then(|s| s.replace(i)).and_then(|p| batch.row(p));
        let fields = row.fields();
        let same_schema = before.is_some_and(|b| {
            b.fields().len() == fields.len()
                && b.fields().zip(row.fields()).all(|(x, y)| x.0 == y.0)
        });
        if !same_schema {
            put(out, 1);
            put(out, fields.len() as u64);
            fields.for_each(|(name, _)| put(out, u64::from(name)));
            put_values(out, row.fields().map(|(_, value)| (value, false)));
        } else if let Some(before) = before {
            put(out, 0);
            let pairs = row.fields().zip(before.fields());
            put_values(out, pairs.map(|((_, value), (_, old))| (value, value == old)));
        }
    }
}

/// Reads a batch; `bytes` must hold exactly one.
pub(crate) fn decode(bytes: &[u8]) -> Result<RowBatch, Malformed> {
    let mut r = Reader { bytes };
    let mut builder = RowBatchBuilder::new();
    let names = r.count(1)?;
    let mut ids = Vec::with_capacity(names);
    for _ in 0..names {
        let name = r.text()?;
        if matches!(name, "_time" | "_stream" | "_stream_id") {
            return Err(Malformed("a field of a name that rows do not hold"));
        }
        ids.push((builder.name_id(name), name));
    }
    let streams = r.count(1)?;
    let mut keys = Vec::with_capacity(streams);
    for _ in 0..streams {
        let labels = r.count(2)?;
        let mut pairs = Vec::with_capacity(labels);
        for _ in 0..labels {
            let name = r.text()?.to_owned();
            pairs.push((name, r.bytes()?.to_vec()));
        }
        let key = Arc::new(StreamKey::new(pairs));
        builder.add_stream(Arc::clone(&key));
        keys.push(key);
    }
    let rows = r.count(4)?;
    if rows == 0 {
        return Err(Malformed("a batch without rows"));
    }
    let mut last: Vec<Vec<(NameId, &[u8])>> = vec![Vec::new(); streams];
    let mut time = 0i64;
    for _ in 0..rows {
        let stream = r.number()?;
        time = time.wrapping_add(unzigzag(r.number()?));
        let slot = usize::try_from(stream).ok().and_then(|s| last.get_mut(s).zip(keys.get(s)));
        let (fields, key) = slot.ok_or(Malformed("a row names a stream that is not there"))?;
        read_fields(&mut r, &ids, key, fields)?;
        for &(name, value) in fields.iter() {
            builder.push_field(name, value);
        }
        let stream = u32::try_from(stream).map_err(|_| Malformed("too many streams"))?;
        builder.finish_row(Timestamp::from_nanos(time), stream);
    }
    if r.bytes.is_empty() { Ok(builder.finish()) } else { Err(Malformed("bytes after the rows")) }
}

/// Replaces `fields`, the stream's row before, by the fields of the next row.
fn read_fields<'a>(
    r: &mut Reader<'a>,
    ids: &[(NameId, &str)],
    key: &StreamKey,
    fields: &mut Vec<(NameId, &'a [u8])>,
) -> Result<(), Malformed> {
    let fresh = match r.number()? {
        0 => false,
        1 => true,
        _ => return Err(Malformed("unknown schema mark")),
    };
    if fresh {
        fields.clear();
        for _ in 0..r.count(1)? {
            let id = usize::try_from(r.number()?).ok().and_then(|i| ids.get(i));
            let (id, name) = *id.ok_or(Malformed("a row names a field that is not there"))?;
            if !key.get(name).is_empty() {
                return Err(Malformed("a row repeats a label of its stream"));
            }
            fields.push((id, &[]));
        }
        let mut names: Vec<NameId> = fields.iter().map(|field| field.0).collect();
        names.sort_unstable();
        if names.windows(2).any(|pair| pair.first() == pair.last()) {
            return Err(Malformed("a row has a field twice"));
        }
    }
    let same = r.take(fields.len().div_ceil(8))?;
    for (i, field) in fields.iter_mut().enumerate() {
        let bits = same.get(i / 8).copied().unwrap_or(0);
        if bits & (1 << (i % 8)) == 0 {
            field.1 = r.bytes()?;
        } else if fresh {
            return Err(Malformed("a first row repeats a value"));
        }
        if field.1.is_empty() {
            return Err(Malformed("a field is empty"));
        }
    }
    Ok(())
}

fn put_values<'a>(out: &mut Vec<u8>, values: impl ExactSizeIterator<Item = (&'a [u8], bool)>) {
    let bits_at = out.len();
    out.resize(bits_at + values.len().div_ceil(8), 0);
    for (i, (value, same)) in values.enumerate() {
        if !same {
            put_bytes(out, value);
        } else if let Some(bits) = out.get_mut(bits_at + i / 8) {
            *bits |= 1 << (i % 8);
        }
    }
}

fn put(out: &mut Vec<u8>, mut n: u64) {
    while n >= 0x80 {
        out.push((n & 0x7f) as u8 | 0x80);
        n >>= 7;
    }
    out.push((n & 0x7f) as u8);
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

fn zigzag(n: i64) -> u64 {
    (n.cast_unsigned() << 1) ^ (n >> 63).cast_unsigned()
}

fn unzigzag(n: u64) -> i64 {
    (n >> 1).cast_signed() ^ -(n & 1).cast_signed()
}

/// A cursor that refuses to run past the end.
struct Reader<'a> {
    bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    fn take(&mut self, len: usize) -> Result<&'a [u8], Malformed> {
        let (head, tail) = self.bytes.split_at_checked(len).ok_or(Malformed("record too short"))?;
        self.bytes = tail;
        Ok(head)
    }

    fn number(&mut self) -> Result<u64, Malformed> {
        let mut n = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = *self.take(1)?.first().ok_or(Malformed("record too short"))?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                break;
            }
            n |= bits << shift;
            if byte < 0x80 {
                return Ok(n);
            }
        }
        Err(Malformed("number too long"))
    }

    /// A count of things that take at least `least` bytes each, so that it bounds an allocation.
    fn count(&mut self, least: usize) -> Result<usize, Malformed> {
        let n = usize::try_from(self.number()?).unwrap_or(usize::MAX);
        if n > self.bytes.len() / least.max(1) {
            return Err(Malformed("a count exceeds the record"));
        }
        Ok(n)
    }

    fn bytes(&mut self) -> Result<&'a [u8], Malformed> {
        let len = self.count(1)?;
        self.take(len)
    }

    fn text(&mut self) -> Result<&'a str, Malformed> {
        std::str::from_utf8(self.bytes()?).map_err(|_| Malformed("a name is not UTF-8"))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    type Row = (i64, u8, Vec<(u8, String)>);

    fn build(rows: &[Row]) -> RowBatch {
        let mut b = RowBatchBuilder::new();
        for s in 0..4u8 {
            let label = ("app".to_owned(), format!("s{s}").into_bytes());
            b.add_stream(Arc::new(StreamKey::new([label])));
        }
        for (time, stream, fields) in rows {
            for (name, value) in fields {
                let id = b.name_id(&format!("f{name}"));
                b.push_field(id, value.as_bytes());
            }
            b.finish_row(Timestamp::from_nanos(*time), u32::from(*stream));
        }
        b.finish()
    }

    type Flat = (i64, String, Vec<(String, Vec<u8>)>);

    fn flat(b: &RowBatch) -> Vec<Flat> {
        let name = |id: NameId| b.names()[id as usize].clone();
        b.iter()
            .map(|r| {
                let stream = String::from_utf8(r.stream_key().unwrap().text()).unwrap();
                let fields = r.fields().map(|(n, v)| (name(n), v.to_vec())).collect();
                (r.time.as_nanos(), stream, fields)
            })
            .collect()
    }

    fn rows() -> impl Strategy<Value = Vec<Row>> {
        let field = (0u8..12, "[a-c]{1,2}");
        let fields = prop::collection::vec(field, 0..10).prop_map(|mut f| {
            f.sort();
            f.dedup_by_key(|x| x.0);
            f
        });
        prop::collection::vec((any::<i64>(), 0u8..4, fields), 1..40)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        #[test]
        fn decodes_what_was_encoded(rows in rows()) {
            let batch = build(&rows);
            let mut bytes = Vec::new();
            encode(&batch, &mut bytes);
            prop_assert_eq!(flat(&decode(&bytes).unwrap()), flat(&batch));
        }

        #[test]
        fn damaged_bytes_never_panic(
            rows in rows(), at in any::<prop::sample::Index>(), x in 1u8..,
        ) {
            let mut bytes = Vec::new();
            encode(&build(&rows), &mut bytes);
            let i = at.index(bytes.len());
            bytes[i] ^= x;
            let _ = decode(&bytes);
            let _ = decode(&bytes[..i]);
        }
    }

    #[test]
    fn constants_of_a_stream_are_written_once() {
        let fields: Vec<_> = (0..10).map(|i| (i, format!("a constant value {i}"))).collect();
        let rows: Vec<Row> = (0..100).map(|t| (t, 1, fields.clone())).collect();
        let mut bytes = Vec::new();
        encode(&build(&rows), &mut bytes);
        assert!(bytes.len() < 100 * 6 + 400, "{} bytes", bytes.len());
    }

    #[test]
    fn rows_that_break_the_rules_of_rows_are_refused() {
        // Names, streams of (name, value), one row of stream 0: its field numbers.
        let record = |names: &[&str], label: &str, fields: &[u64]| {
            let mut out = Vec::new();
            put(&mut out, names.len() as u64);
            names.iter().for_each(|name| put_bytes(&mut out, name.as_bytes()));
            [1, 1].iter().for_each(|n| put(&mut out, *n));
            put_bytes(&mut out, label.as_bytes());
            put_bytes(&mut out, b"value");
            [1, 0, 0, 1, fields.len() as u64].iter().for_each(|n| put(&mut out, *n));
            fields.iter().for_each(|n| put(&mut out, *n));
            out.push(0);
            fields.iter().for_each(|_| put_bytes(&mut out, b"x"));
            out
        };
        assert!(decode(&record(&["a", "b"], "app", &[0, 1])).is_ok());
        assert!(decode(&record(&["a", "b"], "app", &[1, 1])).is_err(), "a field twice");
        assert!(decode(&record(&["a", "a"], "app", &[0, 1])).is_err(), "a name twice");
        assert!(decode(&record(&["a", "app"], "app", &[0, 1])).is_err(), "a label");
        assert!(decode(&record(&["_time"], "app", &[0])).is_err(), "the time");
        assert!(decode(&[0, 0, 0]).is_err(), "no row at all");
    }

    #[test]
    fn hostile_counts_do_not_allocate() {
        let mut bytes = Vec::new();
        put(&mut bytes, u64::MAX);
        assert!(decode(&bytes).is_err());
    }
}
