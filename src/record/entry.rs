//! Entries: what a program appends.

use std::fmt::Write;

use super::Timestamp;

/// One log entry: an optional time and fields. Without a time it gets the time of the append.
///
/// ```
/// use loglith::{Entry, Timestamp};
/// let entry = Entry::new()
///     .time(Timestamp::from_nanos(1_700_000_000_000_000_000))
///     .field("level", "info")
///     .field("status", 200)
///     .message("request served");
/// assert_eq!(entry.fields().count(), 3);
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Entry {
    batch: Batch,
}

impl Entry {
    /// An entry without time and fields.
    pub fn new() -> Entry {
        let mut batch = Batch::new();
        batch.entry();
        Entry { batch }
    }

    /// Sets the time.
    pub fn time(mut self, time: Timestamp) -> Entry {
        self.batch.set_time(time);
        self
    }

    /// Adds a field. An empty value is the same as no field; of several values of one name the
    /// last counts.
    pub fn field(mut self, name: &str, value: impl FieldValue) -> Entry {
        self.batch.add_field(name, value);
        self
    }

    /// Adds a field whose value may not be UTF-8; invalid sequences become U+FFFD, which the
    /// report of the append counts.
    pub fn field_bytes(mut self, name: &str, value: &[u8]) -> Entry {
        self.batch.add_bytes(name, value);
        self
    }

    /// Sets the message, the field `_msg`.
    pub fn message(self, text: &str) -> Entry {
        self.field("_msg", text)
    }

    /// The entry as a batch of one.
    pub(crate) fn as_batch(&self) -> &Batch {
        &self.batch
    }

    /// Names and values in the order in which they were added.
    pub fn fields(&self) -> impl Iterator<Item = (&str, &str)> {
        self.batch.entries().flat_map(|e| e.fields())
    }
}

/// Entries to append together, all in a few allocations: the cheapest way to append.
///
/// ```
/// use loglith::Batch;
/// let mut batch = Batch::new();
/// for i in 0..3 {
///     batch.entry().field("app", "demo").field("step", i).message("done");
/// }
/// assert_eq!(batch.len(), 3);
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Batch {
    /// Names and values one after the other.
    text: String,
    fields: Vec<FieldEnds>,
    entries: Vec<Head>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct FieldEnds {
    name: usize,
    value: usize,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Head {
    time: Option<Timestamp>,
    /// A value was not UTF-8.
    repaired: bool,
    first_field: usize,
}

impl Batch {
    /// No entries.
    pub fn new() -> Batch {
        Batch::default()
    }

    /// No entries, with room for `entries` entries of `bytes` bytes of names and values in all.
    pub fn with_capacity(entries: usize, bytes: usize) -> Batch {
        Batch {
            text: String::with_capacity(bytes),
            fields: Vec::with_capacity(entries.saturating_mul(6)),
            entries: Vec::with_capacity(entries),
        }
    }

    /// Starts a new entry, without time and fields yet.
    pub fn entry(&mut self) -> BatchEntry<'_> {
        let first_field = self.fields.len();
        self.entries.push(Head { time: None, repaired: false, first_field });
        BatchEntry { batch: self }
    }

    /// Adds a copy of an entry.
    pub fn push(&mut self, entry: &Entry) {
        let Some(head) = entry.batch.entries.first() else { return };
        let first_field = self.fields.len();
        let shift = self.text.len();
        self.entries.push(Head { first_field, ..*head });
        self.text.push_str(&entry.batch.text);
        let shifted = |f: &FieldEnds| FieldEnds { name: f.name + shift, value: f.value + shift };
        self.fields.extend(entry.batch.fields.iter().map(shifted));
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Bytes of all names and values.
    pub fn text_bytes(&self) -> usize {
        self.text.len()
    }

    /// Removes all entries and keeps the room.
    pub fn clear(&mut self) {
        self.text.clear();
        self.fields.clear();
        self.entries.clear();
    }

    /// The entries in order.
    pub(crate) fn entries(&self) -> impl Iterator<Item = EntryView<'_>> {
        self.entries.iter().enumerate().map(|(i, head)| EntryView {
            batch: self,
            time: head.time,
            repaired: head.repaired,
            first_field: head.first_field,
            fields_end: self.entries.get(i + 1).map_or(self.fields.len(), |h| h.first_field),
        })
    }

    fn set_time(&mut self, time: Timestamp) {
        if let Some(head) = self.entries.last_mut() {
            head.time = Some(time);
        }
    }

    fn add_field(&mut self, name: &str, value: impl FieldValue) {
        self.text.push_str(name);
        let name = self.text.len();
        value.write_to(&mut self.text);
        self.fields.push(FieldEnds { name, value: self.text.len() });
    }

    fn add_bytes(&mut self, name: &str, value: &[u8]) {
        let text = String::from_utf8_lossy(value);
        if let (std::borrow::Cow::Owned(_), Some(head)) = (&text, self.entries.last_mut()) {
            head.repaired = true;
        }
        self.add_field(name, &*text);
    }
}

/// The newest entry of a [`Batch`], while it is being filled.
#[derive(Debug)]
pub struct BatchEntry<'a> {
    batch: &'a mut Batch,
}

impl BatchEntry<'_> {
    /// Sets the time.
    pub fn time(self, time: Timestamp) -> Self {
        self.batch.set_time(time);
        self
    }

    /// Adds a field; see [`Entry::field`].
    pub fn field(self, name: &str, value: impl FieldValue) -> Self {
        self.batch.add_field(name, value);
        self
    }

    /// Adds a field whose value may not be UTF-8; see [`Entry::field_bytes`].
    pub fn field_bytes(self, name: &str, value: &[u8]) -> Self {
        self.batch.add_bytes(name, value);
        self
    }

    /// Sets the message, the field `_msg`.
    pub fn message(self, text: &str) -> Self {
        self.field("_msg", text)
    }
}

/// One entry of a [`Batch`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct EntryView<'a> {
    batch: &'a Batch,
    /// The time, if one was given.
    pub(crate) time: Option<Timestamp>,
    /// A value was not UTF-8 and has been repaired.
    pub(crate) repaired: bool,
    first_field: usize,
    fields_end: usize,
}

impl<'a> EntryView<'a> {
    /// Names and values in order.
    pub(crate) fn fields(&self) -> impl Iterator<Item = (&'a str, &'a str)> + use<'a> {
        let batch = self.batch;
        let before = self.first_field.checked_sub(1).and_then(|i| batch.fields.get(i));
        let mut start = before.map_or(0, |f| f.value);
        let fields = batch.fields.get(self.first_field..self.fields_end).unwrap_or(&[]);
        fields.iter().map(move |f| {
            let name = batch.text.get(start..f.name).unwrap_or("");
            let value = batch.text.get(f.name..f.value).unwrap_or("");
            start = f.value;
            (name, value)
        })
    }
}

mod sealed {
    pub trait Sealed {}
}

/// What can be the value of a field: text, numbers, bools, times and options of them. Everything
/// is stored as text; `None` is an absent field.
pub trait FieldValue: sealed::Sealed {
    /// Appends the text of the value.
    #[doc(hidden)]
    fn write_to(&self, out: &mut String);
}

impl<T: FieldValue + ?Sized> sealed::Sealed for &T {}
impl<T: FieldValue + ?Sized> FieldValue for &T {
    fn write_to(&self, out: &mut String) {
        (**self).write_to(out);
    }
}

impl<T: FieldValue> sealed::Sealed for Option<T> {}
impl<T: FieldValue> FieldValue for Option<T> {
    fn write_to(&self, out: &mut String) {
        if let Some(value) = self {
            value.write_to(out);
        }
    }
}

impl sealed::Sealed for str {}
impl FieldValue for str {
    fn write_to(&self, out: &mut String) {
        out.push_str(self);
    }
}

impl sealed::Sealed for String {}
impl FieldValue for String {
    fn write_to(&self, out: &mut String) {
        out.push_str(self);
    }
}

macro_rules! displayed_values {
    ($($type:ty)*) => {$(
        impl sealed::Sealed for $type {}
        impl FieldValue for $type {
            fn write_to(&self, out: &mut String) {
                // Writing to a string does not fail.
                let _ = write!(out, "{self}");
            }
        }
    )*};
}

displayed_values!(i8 i16 i32 i64 i128 isize u8 u16 u32 u64 u128 usize f32 f64 bool char Timestamp);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_come_back_in_order() {
        let mut batch = Batch::with_capacity(2, 64);
        batch.entry().field("a", 1).field("b", "x").field("c", None::<i32>);
        batch.entry();
        batch.entry().time(Timestamp::from_nanos(5)).field("d", -2.5).message("m");
        let entry = Entry::new().field("e", true).field_bytes("f", b"\xff!");
        batch.push(&entry);
        let rows: Vec<(Option<i64>, bool, Vec<_>)> = batch
            .entries()
            .map(|e| (e.time.map(Timestamp::as_nanos), e.repaired, e.fields().collect()))
            .collect();
        assert_eq!(rows[0], (None, false, vec![("a", "1"), ("b", "x"), ("c", "")]));
        assert_eq!(rows[1], (None, false, vec![]));
        assert_eq!(rows[2], (Some(5), false, vec![("d", "-2.5"), ("_msg", "m")]));
        assert_eq!(rows[3], (None, true, vec![("e", "true"), ("f", "\u{fffd}!")]));
        batch.clear();
        assert!(batch.is_empty() && batch.text_bytes() == 0);
    }
}
