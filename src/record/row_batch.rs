//! Normalised rows: what ingestion makes and what the buffer, the journal and the part writer take.

use std::sync::Arc;

use hashbrown::HashTable;

use super::{StreamKey, Timestamp};

/// Local number of a field name within one [`RowBatch`].
pub(crate) type NameId = u32;

/// Rows after normalisation, in append order: values in one arena, names and streams once each.
///
/// A value that repeats that of the row before of the same stream stands in the arena once: most
/// fields of container logs are of that kind. [`RowView::fields`] then gives the same slice.
///
/// The labels of a row's stream are fields of the row as well, but are kept only in the stream:
/// [`RowView::fields`] does not repeat them. A row never holds an empty value, `_time`, `_stream`
/// or `_stream_id`, nor the same name twice.
#[derive(Debug, Default)]
pub(crate) struct RowBatch {
    names: Vec<String>,
    streams: Vec<Arc<StreamKey>>,
    rows: Vec<Row>,
    fields: Vec<FieldRef>,
    bytes: Vec<u8>,
}

#[derive(Debug, Clone, Copy)]
struct Row {
    time: Timestamp,
    stream: u32,
    fields_end: u32,
}

#[derive(Debug, Clone, Copy)]
struct FieldRef {
    /// The name, and [`PLAIN`].
    tag: u32,
    start: u32,
    end: u32,
}

/// Marks values that read the same within quotes in JSON: they need no escapes.
const PLAIN: u32 = 1 << 31;

impl FieldRef {
    #[inline]
    fn name(self) -> NameId {
        self.tag & !PLAIN
    }

    #[inline]
    fn range(self) -> std::ops::Range<usize> {
        self.start as usize..self.end as usize
    }
}

/// One row of a [`RowBatch`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct RowView<'a> {
    batch: &'a RowBatch,
    /// The row's time.
    pub(crate) time: Timestamp,
    /// Local number of the row's stream.
    pub(crate) stream: u32,
    first_field: u32,
    fields_end: u32,
}

impl RowBatch {
    /// The number of rows.
    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are no rows.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Field names by [`NameId`].
    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    /// Streams by local number.
    pub(crate) fn streams(&self) -> &[Arc<StreamKey>] {
        &self.streams
    }

    /// Row `i` in append order.
    pub(crate) fn row(&self, i: usize) -> Option<RowView<'_>> {
        let row = self.rows.get(i)?;
        let first_field = match i.checked_sub(1) {
            None => 0,
            Some(p) => self.rows.get(p)?.fields_end,
        };
        Some(RowView {
            batch: self,
            time: row.time,
            stream: row.stream,
            first_field,
            fields_end: row.fields_end,
        })
    }

    /// All rows in append order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = RowView<'_>> + '_ {
        (0..self.len()).filter_map(|i| self.row(i))
    }

    /// The rows whose index `keep` holds for, in the same order.
    pub(crate) fn retain(&self, mut keep: impl FnMut(usize) -> bool) -> RowBatch {
        let mut builder = RowBatchBuilder::new();
        let names: Vec<NameId> = self.names.iter().map(|n| builder.name_id(n)).collect();
        for stream in &self.streams {
            builder.add_stream(Arc::clone(stream));
        }
        for (_, row) in self.iter().enumerate().filter(|(i, _)| keep(*i)) {
            for (name, value) in row.fields() {
                let name = names.get(name as usize).copied().unwrap_or(name);
                builder.push_field(name, value);
            }
            builder.finish_row(row.time, row.stream);
        }
        builder.finish()
    }

    /// Bytes of memory held, about.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.bytes.capacity()
            + self.fields.capacity() * size_of::<FieldRef>()
            + self.rows.capacity() * size_of::<Row>()
            + self.names.iter().map(|n| n.capacity() + 24).sum::<usize>()
    }

    /// Bytes of all values, repeated ones and stream labels not counted.
    #[cfg(test)]
    pub(crate) fn value_bytes(&self) -> usize {
        self.bytes.len()
    }
}

impl<'a> RowView<'a> {
    /// Name and value of each field, labels of the stream not repeated, in input order.
    pub(crate) fn fields(&self) -> impl ExactSizeIterator<Item = (NameId, &'a [u8])> + 'a {
        let batch = self.batch;
        let range = self.first_field as usize..self.fields_end as usize;
        batch
            .fields
            .get(range)
            .unwrap_or(&[])
            .iter()
            .map(move |f| (f.name(), batch.bytes.get(f.range()).unwrap_or(&[])))
    }

    /// The row's stream.
    #[cfg(any(test, feature = "fuzzing"))]
    pub(crate) fn stream_key(&self) -> Option<&'a Arc<StreamKey>> {
        self.batch.streams.get(self.stream as usize)
    }
}

/// How many fields of the row before are looked at for one of the same name.
const NEAR: usize = 4;

/// The row whose fields the open row probably repeats.
#[derive(Debug, Default)]
struct Guess {
    row: Option<u32>,
    /// Its fields that were not met yet.
    fields: std::ops::Range<usize>,
    /// Whether all fields of the open row were compared with it.
    whole: bool,
}

/// Builds a [`RowBatch`] row by row.
#[derive(Debug, Default)]
pub(crate) struct RowBatchBuilder {
    batch: RowBatch,
    /// The last finished row of each stream.
    last_rows: Vec<Option<u32>>,
    /// Where the values of the open row begin.
    open_bytes: usize,
    guess: Guess,
    name_table: HashTable<NameId>,
    hasher: foldhash::fast::RandomState,
}

impl RowBatchBuilder {
    /// No rows yet.
    pub(crate) fn new() -> RowBatchBuilder {
        RowBatchBuilder::default()
    }

    /// No rows yet, with room for so many of each.
    pub(crate) fn with_capacity(rows: usize, fields: usize, bytes: usize) -> RowBatchBuilder {
        let mut builder = RowBatchBuilder::new();
        builder.batch.rows.reserve(rows);
        builder.batch.fields.reserve(fields);
        builder.batch.bytes.reserve(bytes);
        builder
    }

    /// No rows yet, in the memory of a batch that is not needed any more.
    pub(crate) fn reusing(mut batch: RowBatch) -> RowBatchBuilder {
        batch.names.clear();
        batch.streams.clear();
        batch.rows.clear();
        batch.fields.clear();
        batch.bytes.clear();
        RowBatchBuilder { batch, ..RowBatchBuilder::default() }
    }

    /// The number of `name` in this batch.
    pub(crate) fn name_id(&mut self, name: &str) -> NameId {
        use std::hash::BuildHasher;
        let hash = self.hasher.hash_one(name);
        let names = &mut self.batch.names;
        let same = |id: &NameId| names.get(*id as usize).is_some_and(|n| n == name);
        if let Some(id) = self.name_table.find(hash, same) {
            return *id;
        }
        // The number of names in a batch is bounded by its bytes, so it fits.
        let id = NameId::try_from(names.len()).unwrap_or(NameId::MAX);
        names.push(name.to_owned());
        let (hasher, names) = (&self.hasher, &self.batch.names);
        self.name_table.insert_unique(hash, id, |id| {
            hasher.hash_one(names.get(*id as usize).map_or("", String::as_str))
        });
        id
    }

    /// Adds a stream without looking for an equal one; the caller keeps the number.
    pub(crate) fn add_stream(&mut self, stream: Arc<StreamKey>) -> u32 {
        let id = u32::try_from(self.batch.streams.len()).unwrap_or(u32::MAX);
        self.batch.streams.push(stream);
        self.last_rows.push(None);
        id
    }

    /// Where the fields of the open row begin.
    fn open_start(&self) -> usize {
        self.batch.rows.last().map_or(0, |r| r.fields_end as usize)
    }

    fn open_row(&self) -> &[FieldRef] {
        self.batch.fields.get(self.open_start()..).unwrap_or(&[])
    }

    /// The number of fields of the open row.
    pub(crate) fn open_len(&self) -> usize {
        self.batch.fields.len() - self.open_start()
    }

    /// The value of a field of the open row.
    pub(crate) fn open_value(&self, name: NameId) -> Option<&[u8]> {
        let field = self.open_row().iter().find(|f| f.name() == name)?;
        self.batch.bytes.get(field.range())
    }

    /// Takes a field out of the open row; its bytes stay unused in the arena.
    pub(crate) fn remove_field(&mut self, name: NameId) -> bool {
        let start = self.open_start();
        match self.open_row().iter().position(|f| f.name() == name) {
            Some(i) => {
                self.batch.fields.remove(start + i);
                true
            }
            None => false,
        }
    }

    /// Gives a field of the open row another name, which the row does not have yet.
    pub(crate) fn rename_field(&mut self, from: NameId, to: NameId) {
        let start = self.open_start();
        let fields = self.batch.fields.get_mut(start..).unwrap_or(&mut []);
        if let Some(field) = fields.iter_mut().find(|f| f.name() == from) {
            field.tag = field.tag & PLAIN | to;
        }
    }

    /// Says that the open row is probably one of `stream`: its further fields are compared with
    /// those of that stream's last row as they come.
    pub(crate) fn guess_stream(&mut self, stream: u32) {
        let row = self.last_rows.get(stream as usize).copied().flatten();
        let whole = self.open_len() == 0;
        let fields = row.map_or(0..0, |row| self.fields_of(row as usize));
        self.guess = Guess { row, fields, whole };
    }

    /// Appends one field to the open row. `value` must not be empty, `name` not one of the
    /// row's stream labels and not given twice in a row.
    #[inline]
    pub(crate) fn push_field(&mut self, name: NameId, value: &[u8]) {
        match self.guess(name) {
            Some(same) if self.batch.bytes.get(same.range()) == Some(value) => {
                self.batch.fields.push(same);
            }
            _ => self.push_new(name, value),
        }
    }

    /// Appends a field whose value is the same as in the row that was guessed, if its text stands
    /// at the start of `json` with a quote behind it; gives its length.
    #[inline]
    pub(crate) fn push_repeated(&mut self, name: NameId, json: &[u8]) -> Option<usize> {
        let (next, same) = self.find_guess(name)?;
        if same.tag & PLAIN == 0 {
            // It may be the same when its escapes are decoded.
            return None;
        }
        self.guess.fields.start = next;
        let text = self.batch.bytes.get(same.range())?;
        if !json.starts_with(text) || json.get(text.len()) != Some(&b'"') {
            return None;
        }
        self.batch.fields.push(same);
        Some(text.len())
    }

    /// As [`push_field`](RowBatchBuilder::push_field), for a value that stands within quotes in
    /// JSON as it is, and was not found to be repeated.
    #[inline]
    pub(crate) fn push_plain(&mut self, name: NameId, value: &[u8]) {
        self.push_new(name | PLAIN, value);
    }

    #[inline]
    fn push_new(&mut self, tag: u32, value: &[u8]) {
        let start = offset(self.batch.bytes.len());
        self.batch.bytes.extend_from_slice(value);
        self.batch.fields.push(FieldRef { tag, start, end: offset(self.batch.bytes.len()) });
    }

    /// The field of that name in the row that was guessed, which is looked for once.
    #[inline]
    fn guess(&mut self, name: NameId) -> Option<FieldRef> {
        let (next, found) = self.find_guess(name)?;
        self.guess.fields.start = next;
        Some(found)
    }

    /// That field, and where to look for the next one. Rows of a stream have mostly the same
    /// fields in the same order.
    #[inline]
    fn find_guess(&self, name: NameId) -> Option<(usize, FieldRef)> {
        let first = self.guess.fields.start;
        let near = first..self.guess.fields.end.min(first + NEAR);
        let near = self.batch.fields.get(near)?;
        let at = near.iter().position(|f| f.name() == name)?;
        Some((first + at + 1, *near.get(at)?))
    }

    fn fields_of(&self, row: usize) -> std::ops::Range<usize> {
        let end = |row: usize| self.batch.rows.get(row).map_or(0, |r| r.fields_end as usize);
        row.checked_sub(1).map_or(0, end)..end(row)
    }

    /// Number of fields and bytes of all rows so far, the open one included.
    pub(crate) fn size(&self) -> (usize, usize) {
        (self.batch.fields.len(), self.batch.bytes.len())
    }

    /// Closes the open row.
    pub(crate) fn finish_row(&mut self, time: Timestamp, stream: u32) {
        if let Some(last) = self.last_rows.get_mut(stream as usize) {
            let row = u32::try_from(self.batch.rows.len()).ok();
            let before = std::mem::replace(last, row);
            let compared = self.guess.whole && self.guess.row == before;
            if let Some(before) = before.filter(|_| !compared) {
                self.share_values(before as usize);
            }
        }
        let fields_end = offset(self.batch.fields.len());
        self.batch.rows.push(Row { time, stream, fields_end });
        self.open_bytes = self.batch.bytes.len();
        self.guess = Guess::default();
    }

    /// Lets fields of the open row refer to equal values of row `before`, and closes the gaps.
    fn share_values(&mut self, before: usize) {
        let open = self.open_start();
        let range = self.fields_of(before);
        let (done, fields) = self.batch.fields.split_at_mut(open);
        let mut earlier = done.get(range).unwrap_or(&[]);
        let bytes = &mut self.batch.bytes;
        let mut end = self.open_bytes;
        for field in fields {
            let found = earlier.iter().take(NEAR).position(|f| f.name() == field.name());
            let range = field.range();
            if let Some(at) = found
                && let Some(same) = earlier.get(at)
                && same.end - same.start == field.end - field.start
                && bytes.get(same.range()) == bytes.get(range.clone())
            {
                (field.start, field.end) = (same.start, same.end);
            } else if range.start >= self.open_bytes {
                let len = range.len();
                if range.start != end {
                    bytes.copy_within(range, end);
                }
                (field.start, field.end) = (offset(end), offset(end + len));
                end += len;
            }
            earlier = earlier.get(found.map_or(0, |at| at + 1)..).unwrap_or(&[]);
        }
        bytes.truncate(end);
    }

    /// Drops the fields of the open row.
    pub(crate) fn abandon_row(&mut self) {
        self.batch.fields.truncate(self.open_start());
        self.batch.bytes.truncate(self.open_bytes);
        self.guess = Guess::default();
    }

    /// The number of finished rows.
    pub(crate) fn len(&self) -> usize {
        self.batch.rows.len()
    }

    /// The batch.
    pub(crate) fn finish(mut self) -> RowBatch {
        self.abandon_row();
        self.batch
    }
}

/// Batches are at most 64 MiB, so their offsets fit in 32 bits.
fn offset(n: usize) -> u32 {
    debug_assert!(u32::try_from(n).is_ok(), "a batch holds less than 4 GiB");
    u32::try_from(n).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_values_stand_once() {
        let mut b = RowBatchBuilder::new();
        let s = b.add_stream(Arc::new(StreamKey::default()));
        let t = b.add_stream(Arc::new(StreamKey::default()));
        let names: Vec<NameId> = (0..9).map(|n| b.name_id(&n.to_string())).collect();
        let mut want = Vec::new();
        for row in 0..200usize {
            let mut fields = Vec::new();
            for (n, name) in names.iter().enumerate() {
                // Constants, counters, values that change at times, fields that come and go.
                let value = match n {
                    0 | 5 => format!("constant {n}"),
                    1 => row.to_string(),
                    2 if row % 7 == 0 => continue,
                    3 if row % 50 < 20 => continue,
                    n => format!("{}", row / (n * 3)),
                };
                // Guesses, right and wrong ones, at the start of a row and within it.
                if (row + n) % 5 == 0 {
                    b.guess_stream(if row % 4 == 0 { t } else { s });
                }
                let json = format!("{value}\",");
                match n % 3 {
                    0 => b.push_field(*name, value.as_bytes()),
                    _ if b.push_repeated(*name, json.as_bytes()).is_some() => {}
                    1 => b.push_plain(*name, value.as_bytes()),
                    _ => b.push_field(*name, value.as_bytes()),
                }
                fields.push((*name, value.into_bytes()));
            }
            if row % 13 == 0 {
                b.remove_field(names[1]);
                fields.retain(|(name, _)| *name != names[1]);
            }
            if row % 17 == 0 {
                b.abandon_row();
                continue;
            }
            b.finish_row(Timestamp::from_nanos(0), if row % 3 == 0 { t } else { s });
            want.push(fields);
        }
        let batch = b.finish();
        let got: Vec<Vec<(NameId, Vec<u8>)>> =
            batch.iter().map(|row| row.fields().map(|(n, v)| (n, v.to_vec())).collect()).collect();
        assert_eq!(got, want);
        let all: usize = want.iter().flatten().map(|(_, v)| v.len()).sum();
        assert!(batch.value_bytes() * 3 < all, "{} of {all}", batch.value_bytes());
    }

    #[test]
    fn only_whole_values_without_escapes_are_repeated() {
        let mut b = RowBatchBuilder::new();
        let s = b.add_stream(Arc::new(StreamKey::default()));
        let (x, y) = (b.name_id("x"), b.name_id("y"));
        b.push_plain(x, b"abc");
        b.push_field(y, b"a\"");
        b.finish_row(Timestamp::from_nanos(0), s);
        for (name, json, want) in [
            (x, &b"abc\","[..], Some(3)),
            (x, b"abcd\",", None),
            (x, b"abc", None),
            (x, b"ab\",", None),
            (y, b"a\"\"", None),
        ] {
            b.guess_stream(s);
            assert_eq!(b.push_repeated(name, json), want, "{json:?}");
            b.abandon_row();
        }
        // What had escapes is compared when they are decoded.
        b.guess_stream(s);
        assert_eq!((b.push_repeated(x, b"abc\""), b.push_repeated(y, b"a\\\"\"")), (Some(3), None));
        b.push_field(y, b"a\"");
        b.finish_row(Timestamp::from_nanos(0), s);
        let batch = b.finish();
        assert_eq!((batch.len(), batch.value_bytes()), (2, 5));
        let mut b = RowBatchBuilder::reusing(batch);
        let s = b.add_stream(Arc::new(StreamKey::default()));
        let z = b.name_id("z");
        b.guess_stream(s);
        b.push_field(z, b"9");
        b.finish_row(Timestamp::from_nanos(1), s);
        let batch = b.finish();
        assert_eq!(batch.names(), ["z"]);
        assert_eq!(batch.row(0).unwrap().fields().collect::<Vec<_>>(), [(z, &b"9"[..])]);
    }

    #[test]
    fn rows_come_back_in_append_order() {
        let mut b = RowBatchBuilder::new();
        let s = b.add_stream(Arc::new(StreamKey::default()));
        let (x, y) = (b.name_id("x"), b.name_id("y"));
        assert_eq!(b.name_id("x"), x);
        b.push_field(x, b"1");
        b.push_field(y, b"2");
        b.finish_row(Timestamp::from_nanos(5), s);
        b.push_field(y, b"lost");
        b.abandon_row();
        b.push_field(x, b"3");
        b.push_field(y, b"gone");
        assert_eq!((b.open_len(), b.open_value(y)), (2, Some(&b"gone"[..])));
        assert!(b.remove_field(y) && !b.remove_field(y));
        b.rename_field(x, y);
        b.finish_row(Timestamp::from_nanos(4), s);
        b.push_field(y, b"open");
        let batch = b.finish();
        assert_eq!(batch.len(), 2);
        let fields = |i: usize| batch.row(i).unwrap().fields().collect::<Vec<_>>();
        assert_eq!(fields(0), [(x, &b"1"[..]), (y, b"2")]);
        assert_eq!(fields(1), [(y, &b"3"[..])]);
        assert_eq!(batch.row(1).unwrap().time.as_nanos(), 4);
        assert!(batch.row(2).is_none());
    }
}
