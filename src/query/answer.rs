//! The rows of an answer as texts: one by one, or as columns.

use std::ops::Range;
use std::sync::Arc;

use super::batch::Batch;
use super::column::Column;
use super::json;
use crate::record::TextVec;

/// Some rows of an answer as columns; see [`Rows::next_columns`](super::Rows::next_columns).
/// Cloning shares the values.
#[derive(Debug, Clone)]
pub struct Columns {
    batch: Arc<TextBatch>,
    rows: Range<usize>,
}

/// The values of one field in the rows of [`Columns`].
#[derive(Debug, Clone, Copy)]
pub struct ColumnValues<'a> {
    column: &'a TextColumn,
    first: usize,
    len: usize,
}

/// One row of an answer.
#[derive(Debug, Clone)]
pub struct Row {
    batch: Arc<TextBatch>,
    row: usize,
}

impl Columns {
    pub(crate) fn new(batch: Batch) -> Columns {
        let rows = 0..batch.rows();
        Columns { batch: Arc::new(TextBatch::new(batch)), rows }
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The fields in the order of the answer's columns.
    pub fn iter(&self) -> impl Iterator<Item = (&str, ColumnValues<'_>)> {
        self.batch.columns.iter().map(|(name, column)| (&**name, self.values(column)))
    }

    /// The values of a field; `None` if no row has it.
    pub fn column(&self, name: &str) -> Option<ColumnValues<'_>> {
        let column = self.batch.columns.iter().find(|(n, _)| &**n == name);
        column.map(|(_, column)| self.values(column))
    }

    fn values<'a>(&self, column: &'a TextColumn) -> ColumnValues<'a> {
        ColumnValues { column, first: self.rows.start, len: self.rows.len() }
    }

    /// Takes the first row away.
    pub(crate) fn take_row(&mut self) -> Option<Row> {
        let row = self.rows.next()?;
        Some(Row { batch: self.batch.clone(), row })
    }
}

impl<'a> ColumnValues<'a> {
    /// The value in a row; empty if the row lacks the field or there is no such row.
    pub fn get(&self, row: usize) -> &'a str {
        if row < self.len { self.column.get(self.first + row) } else { "" }
    }

    /// The value of all rows, if it is known to be the same.
    pub fn constant(&self) -> Option<&'a str> {
        match self.column {
            TextColumn::Same(value) => Some(value),
            _ => None,
        }
    }

    /// All values in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &'a str> {
        let values = *self;
        (0..values.len).map(move |row| values.get(row))
    }
}

impl Row {
    /// Name and value of each field in the order of the answer's columns; the value of a field
    /// that the row lacks is empty.
    pub fn fields(&self) -> impl Iterator<Item = (&str, &str)> {
        self.batch.columns.iter().map(|(name, column)| (&**name, column.get(self.row)))
    }

    /// The value of a field; empty if the row lacks it.
    pub fn get(&self, name: &str) -> &str {
        let column = self.batch.columns.iter().find(|(n, _)| &**n == name);
        column.map_or("", |(_, column)| column.get(self.row))
    }
}

/// Appends a row as a JSON object on one line, without a line end. Fields without a value are
/// left out; all values are strings.
pub fn write_json(row: &Row, out: &mut Vec<u8>) {
    out.push(b'{');
    let mut first = true;
    for (key, (_, column)) in row.batch.keys.iter().zip(&row.batch.columns) {
        let value = column.get(row.row);
        if value.is_empty() {
            continue;
        }
        if !first {
            out.push(b',');
        }
        first = false;
        out.extend_from_slice(key);
        json::push_string(out, value.as_bytes());
    }
    out.push(b'}');
}

/// A batch as texts.
#[derive(Debug)]
struct TextBatch {
    columns: Vec<(Arc<str>, TextColumn)>,
    /// The names as JSON, each with the colon behind it.
    keys: Vec<Vec<u8>>,
}

#[derive(Debug)]
enum TextColumn {
    Same(String),
    Each(Texts),
    /// The number of each row's value.
    Codes(Arc<Vec<u32>>, Texts),
}

/// Texts, one after the other.
#[derive(Debug)]
struct Texts {
    text: String,
    ends: Vec<u32>,
}

impl TextBatch {
    fn new(batch: Batch) -> TextBatch {
        let rows = batch.rows();
        let columns = batch.into_columns().into_iter();
        let columns: Vec<_> = columns.map(|(name, c)| (name, TextColumn::new(c, rows))).collect();
        let key = |(name, _): &(Arc<str>, TextColumn)| {
            let mut key = Vec::with_capacity(name.len() + 3);
            json::push_string(&mut key, name.as_bytes());
            key.push(b':');
            key
        };
        TextBatch { keys: columns.iter().map(key).collect(), columns }
    }
}

impl TextColumn {
    fn new(column: Column, rows: usize) -> TextColumn {
        match column {
            Column::Const(value) => TextColumn::Same(String::from_utf8_lossy(&value).into_owned()),
            Column::Text(values) if values.len() == rows => {
                let values = Arc::try_unwrap(values).unwrap_or_else(|shared| (*shared).clone());
                TextColumn::Each(Texts::new(values))
            }
            Column::Codes { codes, dictionary } if dictionary.len() <= rows => {
                TextColumn::Codes(codes, Texts::new((*dictionary).clone()))
            }
            column => TextColumn::Each(Texts::new(column.to_text(rows))),
        }
    }

    fn get(&self, row: usize) -> &str {
        match self {
            TextColumn::Same(value) => value,
            TextColumn::Each(texts) => texts.get(row),
            TextColumn::Codes(codes, texts) => {
                codes.get(row).map_or("", |code| texts.get(*code as usize))
            }
        }
    }
}

impl Texts {
    /// Values that are not UTF-8 get U+FFFD where they are not.
    fn new(values: TextVec) -> Texts {
        let (ends, bytes) = values.into_parts();
        match String::from_utf8(bytes) {
            Ok(text) if ends.iter().all(|&end| text.is_char_boundary(end as usize)) => {
                Texts { text, ends }
            }
            Ok(text) => Texts::mended(&ends, text.as_bytes()),
            Err(e) => Texts::mended(&ends, e.as_bytes()),
        }
    }

    fn mended(ends: &[u32], bytes: &[u8]) -> Texts {
        let mut start = 0;
        let mut mended = TextVec::with_capacity(ends.len(), bytes.len());
        for &end in ends {
            let value = bytes.get(start..end as usize).unwrap_or(&[]);
            mended.push(String::from_utf8_lossy(value).as_bytes());
            start = end as usize;
        }
        let (ends, bytes) = mended.into_parts();
        Texts { text: String::from_utf8_lossy(&bytes).into_owned(), ends }
    }

    fn get(&self, i: usize) -> &str {
        let end = |i: usize| self.ends.get(i).map(|end| *end as usize);
        let start = i.checked_sub(1).map_or(Some(0), end);
        let range = start.zip(end(i)).map(|(start, end)| start..end);
        range.and_then(|range| self.text.get(range)).unwrap_or("")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(list: &[&[u8]]) -> Arc<TextVec> {
        Arc::new(list.iter().copied().collect())
    }

    /// Every form of a column gives the same texts, row by row and column by column.
    #[test]
    fn forms_of_columns_give_the_same_texts() {
        let forms = [
            Column::Text(texts(&[b"7", b"", b"8"])),
            Column::codes(vec![1, 0, 2], texts(&[b"", b"7", b"8"])),
            Column::codes(vec![3, 1, 2], texts(&[b"x", b"", b"8", b"7", b""])),
            Column::Ints {
                values: Arc::new(vec![7, 0, 8]),
                absent: None,
                exceptions: vec![(1, Box::from(&b""[..]))],
            },
        ];
        for column in forms {
            let mut batch = Batch::new(3);
            batch.set_column("a".into(), column);
            batch.set_column("same".into(), Column::constant(b"s"));
            let mut columns = Columns::new(batch);
            let names: Vec<_> = columns.iter().map(|(name, _)| name.to_owned()).collect();
            assert_eq!(names, ["a", "same"]);
            let a = columns.column("a").unwrap();
            assert_eq!(a.iter().collect::<Vec<_>>(), ["7", "", "8"]);
            assert_eq!((a.get(3), a.constant()), ("", None));
            assert_eq!(columns.column("same").unwrap().constant(), Some("s"));
            assert!(columns.column("b").is_none());
            let row = columns.take_row().unwrap();
            assert_eq!((row.get("a"), row.get("same")), ("7", "s"));
            assert_eq!(columns.column("a").unwrap().iter().collect::<Vec<_>>(), ["", "8"]);
            assert_eq!(columns.len(), 2);
        }
    }

    #[test]
    fn bytes_that_are_no_text_are_mended_one_by_one() {
        let mut batch = Batch::new(3);
        // Together the first two would be a character.
        batch.set_column("a".into(), Column::Text(texts(&[b"\xc3", b"\xb6", b"x"])));
        let columns = Columns::new(batch);
        let values: Vec<_> = columns.column("a").unwrap().iter().collect();
        assert_eq!(values, ["\u{fffd}", "\u{fffd}", "x"]);
    }
}
