//! One column of a batch, in the form in which it was stored.

use std::sync::Arc;

use crate::codec::Bitmap;
use crate::record::{TextVec, Timestamp};

/// The values of one field in the rows of a batch; empty means absent.
///
/// All forms stand for a list of byte strings: equal lists must give equal answers, whatever
/// their form. Pipes look at the form only to be faster.
#[derive(Debug, Clone)]
pub(crate) enum Column {
    /// The same value in all rows.
    Const(Arc<[u8]>),
    /// A value per row.
    Text(Arc<TextVec>),
    /// A number into a dictionary per row. The dictionary may hold unused or equal values.
    Codes {
        /// Index into `dictionary` of each row.
        codes: Arc<Vec<u32>>,
        /// The values.
        dictionary: Arc<TextVec>,
    },
    /// A number into a dictionary for each run of rows: what all rows of a stream share.
    Runs {
        /// The first row behind each run, ascending.
        ends: Arc<Vec<u32>>,
        /// Index into `dictionary` of each run.
        codes: Arc<Vec<u32>>,
        /// The values.
        dictionary: Arc<TextVec>,
    },
    /// Canonical decimal texts of integers.
    Ints {
        /// The integer of each row; meaningless where absent or an exception.
        values: Arc<Vec<i64>>,
        /// Set for the rows without a value; `None` if all have one.
        absent: Option<Bitmap>,
        /// (row, text) of values that are not canonical integers, sorted by row. These rows are
        /// not set in `absent`.
        exceptions: Vec<(u32, Box<[u8]>)>,
    },
    /// RFC 3339 texts in UTC, shortest fraction, of nanoseconds since the epoch.
    Times(Arc<Vec<i64>>),
}

impl Column {
    /// A column without values.
    pub(crate) fn absent() -> Column {
        Column::Const(Arc::from(&b""[..]))
    }

    /// The same value in all rows.
    pub(crate) fn constant(value: &[u8]) -> Column {
        Column::Const(Arc::from(value))
    }

    /// A value per row.
    pub(crate) fn text(values: TextVec) -> Column {
        Column::Text(Arc::new(values))
    }

    /// A value per row, as [`Column::Const`] if all are equal.
    pub(crate) fn compact(values: TextVec) -> Column {
        let first = values.get(0);
        if values.iter().all(|v| v == first) {
            Column::constant(first)
        } else {
            Column::text(values)
        }
    }

    /// Integers without gaps.
    pub(crate) fn ints(values: Vec<i64>) -> Column {
        Column::Ints { values: Arc::new(values), absent: None, exceptions: Vec::new() }
    }

    /// A number into a dictionary per row.
    pub(crate) fn codes(codes: Vec<u32>, dictionary: Arc<TextVec>) -> Column {
        Column::Codes { codes: Arc::new(codes), dictionary }
    }

    /// A value for each run of rows.
    pub(crate) fn of_each_run(ends: &Arc<Vec<u32>>, values: TextVec) -> Column {
        let codes = (0..u32::try_from(values.len()).unwrap_or(u32::MAX)).collect();
        Column::Runs {
            ends: Arc::clone(ends),
            codes: Arc::new(codes),
            dictionary: Arc::new(values),
        }
    }

    /// The value of `row`, empty past the end. `scratch` is overwritten where text must be made.
    #[inline]
    pub(crate) fn value<'a>(&'a self, row: usize, scratch: &'a mut Vec<u8>) -> &'a [u8] {
        match self {
            Column::Const(value) => value,
            Column::Text(values) => values.get(row),
            Column::Codes { codes, dictionary } => match codes.get(row) {
                Some(&code) => dictionary.get(code as usize),
                None => &[],
            },
            Column::Runs { ends, codes, dictionary } => match codes.get(run_of(ends, row)) {
                Some(&code) => dictionary.get(code as usize),
                None => &[],
            },
            Column::Ints { values, absent, exceptions } => {
                if absent.as_ref().is_some_and(|a| a.get(row)) {
                    return &[];
                }
                if let Some(text) = exception(exceptions, row) {
                    return text;
                }
                match values.get(row) {
                    Some(&n) => {
                        scratch.clear();
                        push_int(scratch, n);
                        scratch
                    }
                    None => &[],
                }
            }
            Column::Times(times) => match times.get(row) {
                Some(&ns) => {
                    scratch.clear();
                    push_time(scratch, ns);
                    scratch
                }
                None => &[],
            },
        }
    }

    /// Calls `f` with each of the first `rows` values in order.
    pub(crate) fn for_each(&self, rows: usize, mut f: impl FnMut(usize, &[u8])) {
        let mut scratch = Vec::new();
        for row in 0..rows {
            f(row, self.value(row, &mut scratch));
        }
    }

    /// Whether the value of `row` is empty, without making its text.
    #[inline]
    pub(crate) fn is_empty_at(&self, row: usize) -> bool {
        match self {
            Column::Const(value) => value.is_empty(),
            Column::Text(values) => values.get(row).is_empty(),
            Column::Codes { codes, dictionary } => {
                codes.get(row).is_none_or(|&code| dictionary.get(code as usize).is_empty())
            }
            Column::Runs { ends, codes, dictionary } => {
                let code = codes.get(run_of(ends, row));
                code.is_none_or(|&code| dictionary.get(code as usize).is_empty())
            }
            Column::Ints { values, absent, exceptions } => {
                row >= values.len()
                    || absent.as_ref().is_some_and(|a| a.get(row))
                    || exception(exceptions, row).is_some_and(<[u8]>::is_empty)
            }
            Column::Times(times) => row >= times.len(),
        }
    }

    /// The values of the given rows, in that order; a row may be named more than once.
    pub(crate) fn gather(&self, rows: &[u32]) -> Column {
        match self {
            Column::Const(value) => Column::Const(value.clone()),
            Column::Text(values) => {
                let bytes = rows.iter().map(|&r| values.get(r as usize).len()).sum();
                let mut out = TextVec::with_capacity(rows.len(), bytes);
                for &row in rows {
                    out.push(values.get(row as usize));
                }
                Column::text(out)
            }
            Column::Codes { codes, dictionary } => {
                Column::codes(pick(codes, rows), dictionary.clone())
            }
            Column::Runs { ends, codes, dictionary } => {
                // Rows mostly ascend, so the run of one is often that of the next.
                let mut run = 0usize;
                let code = |&row: &u32| {
                    let before = run.checked_sub(1).and_then(|r| ends.get(r)).copied();
                    if before.is_some_and(|end| row < end)
                        || ends.get(run).is_none_or(|end| row >= *end)
                    {
                        run = run_of(ends, row as usize);
                    }
                    codes.get(run).copied().unwrap_or(u32::MAX)
                };
                Column::codes(rows.iter().map(code).collect(), dictionary.clone())
            }
            Column::Ints { values, absent, exceptions } => {
                let absent = absent.as_ref().map(|absent| {
                    let mut out = Bitmap::empty(rows.len());
                    for (i, &row) in rows.iter().enumerate() {
                        if absent.get(row as usize) {
                            out.set(i);
                        }
                    }
                    out
                });
                Column::Ints {
                    values: Arc::new(pick(values, rows)),
                    absent,
                    exceptions: gather_exceptions(exceptions, rows),
                }
            }
            Column::Times(times) => Column::Times(Arc::new(pick(times, rows))),
        }
    }

    /// The first `rows` values as text.
    pub(crate) fn to_text(&self, rows: usize) -> TextVec {
        let mut out = TextVec::with_capacity(rows, 0);
        self.append_to(rows, &mut out);
        out
    }

    /// Appends the first `rows` values to `out`.
    pub(crate) fn append_to(&self, rows: usize, out: &mut TextVec) {
        match self {
            Column::Ints { values, absent: None, exceptions } if exceptions.is_empty() => {
                for row in 0..rows {
                    if let Some(&n) = values.get(row) {
                        push_int(out.open(), n);
                    }
                    out.close();
                }
            }
            Column::Times(times) => {
                for row in 0..rows {
                    if let Some(&ns) = times.get(row) {
                        push_time(out.open(), ns);
                    }
                    out.close();
                }
            }
            Column::Runs { ends, codes, dictionary } => {
                let mut row = 0;
                for (end, code) in ends.iter().zip(codes.iter()) {
                    let end = (*end as usize).min(rows);
                    (row..end).for_each(|_| out.push(dictionary.get(*code as usize)));
                    row = row.max(end);
                }
                (row..rows).for_each(|_| out.push(&[]));
            }
            _ => self.for_each(rows, |_, value| out.push(value)),
        }
    }

    /// One column after the other; each part comes with its number of rows.
    pub(crate) fn concat(parts: &[(&Column, usize)]) -> Column {
        if let Some(column) = concat_same_form(parts) {
            return column;
        }
        let rows = parts.iter().map(|(_, n)| n).sum();
        let mut out = TextVec::with_capacity(rows, 0);
        for (column, rows) in parts {
            column.append_to(*rows, &mut out);
        }
        Column::text(out)
    }

    /// Values of several columns, each named by (column, row), in that order.
    pub(crate) fn gather_from(from: &[&Column], rows: &[(u32, u32)]) -> Column {
        let column = |i: u32| from.get(i as usize).copied();
        if let [one] = from {
            let rows: Vec<u32> = rows.iter().map(|(_, row)| *row).collect();
            return one.gather(&rows);
        }
        if let Some(Column::Const(first)) = from.first().copied()
            && from.iter().all(|c| matches!(c, Column::Const(v) if v == first))
        {
            return Column::Const(first.clone());
        }
        let time = |(i, row): &(u32, u32)| match column(*i) {
            Some(Column::Times(times)) => times.get(*row as usize).copied(),
            _ => None,
        };
        if let Some(times) = rows.iter().map(time).collect::<Option<Vec<i64>>>() {
            return Column::Times(Arc::new(times));
        }
        let mut out = TextVec::with_capacity(rows.len(), 0);
        let mut scratch = Vec::new();
        for (i, row) in rows {
            match column(*i) {
                Some(column) => out.push(column.value(*row as usize, &mut scratch)),
                None => out.push(&[]),
            }
        }
        Column::text(out)
    }

    /// Bytes of memory held, shared buffers counted whole.
    pub(crate) fn heap_bytes(&self) -> usize {
        match self {
            Column::Const(value) => value.len(),
            Column::Text(values) => values.heap_bytes(),
            Column::Codes { codes, dictionary } => codes.capacity() * 4 + dictionary.heap_bytes(),
            Column::Runs { ends, codes, dictionary } => {
                (ends.capacity() + codes.capacity()) * 4 + dictionary.heap_bytes()
            }
            Column::Ints { values, absent, exceptions } => {
                let texts: usize = exceptions.iter().map(|(_, t)| t.len() + 24).sum();
                values.capacity() * 8 + absent.as_ref().map_or(0, |a| a.len() / 8) + texts
            }
            Column::Times(times) => times.capacity() * 8,
        }
    }
}

/// Appends the decimal text of `n`.
pub(crate) fn push_int(out: &mut Vec<u8>, n: i64) {
    let mut digits = [0u8; 20];
    let mut at = digits.len();
    let mut rest = n.unsigned_abs();
    loop {
        at = at.saturating_sub(1);
        let digit = u8::try_from(rest % 10).unwrap_or(0);
        if let Some(slot) = digits.get_mut(at) {
            *slot = b'0' + digit;
        }
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if n < 0 {
        out.push(b'-');
    }
    out.extend_from_slice(digits.get(at..).unwrap_or(&[]));
}

/// Appends the RFC 3339 text of `ns`.
pub(crate) fn push_time(out: &mut Vec<u8>, ns: i64) {
    Timestamp::from_nanos(ns).write_to(out);
}

/// The run that holds `row`; past the last one for rows behind it.
#[inline]
pub(crate) fn run_of(ends: &[u32], row: usize) -> usize {
    ends.partition_point(|end| *end as usize <= row)
}

/// The text of `row` among exceptions sorted by row.
pub(crate) fn exception(exceptions: &[(u32, Box<[u8]>)], row: usize) -> Option<&[u8]> {
    if exceptions.is_empty() {
        return None;
    }
    let row = u32::try_from(row).ok()?;
    let at = exceptions.binary_search_by_key(&row, |(r, _)| *r).ok()?;
    exceptions.get(at).map(|(_, text)| &**text)
}

fn pick<T: Copy>(values: &[T], rows: &[u32]) -> Vec<T> {
    rows.iter().filter_map(|&row| values.get(row as usize).copied()).collect()
}

fn gather_exceptions(exceptions: &[(u32, Box<[u8]>)], rows: &[u32]) -> Vec<(u32, Box<[u8]>)> {
    if exceptions.is_empty() {
        return Vec::new();
    }
    let kept = |(i, &row): (usize, &u32)| {
        let text = exception(exceptions, row as usize)?;
        Some((u32::try_from(i).ok()?, Box::from(text)))
    };
    rows.iter().enumerate().filter_map(kept).collect()
}

/// Joins columns that all have one compact form; `None` where text is the way.
fn concat_same_form(parts: &[(&Column, usize)]) -> Option<Column> {
    let (first, rest) = parts.split_first()?;
    match first.0 {
        Column::Const(value) => rest
            .iter()
            .all(|(c, _)| matches!(c, Column::Const(v) if v == value))
            .then(|| Column::Const(value.clone())),
        Column::Codes { dictionary, .. } => {
            let mut out = Vec::new();
            for (column, rows) in parts {
                match column {
                    Column::Codes { codes, dictionary: d } if Arc::ptr_eq(d, dictionary) => {
                        out.extend_from_slice(codes.get(..*rows)?);
                    }
                    _ => return None,
                }
            }
            Some(Column::codes(out, dictionary.clone()))
        }
        Column::Ints { .. } => {
            let mut out = Vec::new();
            for (column, rows) in parts {
                match column {
                    Column::Ints { values, absent: None, exceptions } if exceptions.is_empty() => {
                        out.extend_from_slice(values.get(..*rows)?);
                    }
                    _ => return None,
                }
            }
            Some(Column::ints(out))
        }
        Column::Times(_) => {
            let mut out = Vec::new();
            for (column, rows) in parts {
                match column {
                    Column::Times(times) => out.extend_from_slice(times.get(..*rows)?),
                    _ => return None,
                }
            }
            Some(Column::Times(Arc::new(out)))
        }
        Column::Text(_) | Column::Runs { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(column: &Column, rows: usize) -> Vec<String> {
        let text = column.to_text(rows);
        text.iter().map(|v| String::from_utf8(v.to_vec()).unwrap()).collect()
    }

    fn forms() -> Vec<(Column, Vec<&'static str>)> {
        let dictionary: TextVec = [&b"x"[..], b"", b"x", b"unused"].into_iter().collect();
        let mut absent = Bitmap::empty(4);
        absent.set(1);
        vec![
            (Column::constant(b"c"), vec!["c", "c", "c", "c"]),
            (
                Column::text([&b"a"[..], b"", b"b", b"cc"].into_iter().collect()),
                vec!["a", "", "b", "cc"],
            ),
            (Column::codes(vec![0, 1, 2, 1], Arc::new(dictionary.clone())), vec!["x", "", "x", ""]),
            (
                Column::Runs {
                    ends: Arc::new(vec![2, 3, 4]),
                    codes: Arc::new(vec![2, 1, 3]),
                    dictionary: Arc::new(dictionary),
                },
                vec!["x", "x", "", "unused"],
            ),
            (
                Column::Ints {
                    values: Arc::new(vec![-5, 0, 0, i64::MIN]),
                    absent: Some(absent),
                    exceptions: vec![(2, Box::from(&b"007"[..]))],
                },
                vec!["-5", "", "007", "-9223372036854775808"],
            ),
        ]
    }

    #[test]
    fn every_form_reads_gathers_and_joins_as_its_texts() {
        for (column, expected) in forms() {
            assert_eq!(texts(&column, 4), expected);
            for (row, value) in expected.iter().enumerate() {
                assert_eq!(column.is_empty_at(row), value.is_empty(), "{column:?}");
            }
            let rows = [3, 1, 1, 2, 0];
            let gathered = column.gather(&rows);
            let picked: Vec<&str> = rows.iter().map(|&r| expected[r as usize]).collect();
            assert_eq!(texts(&gathered, 5), picked);
            for (other, other_expected) in forms() {
                let joined = Column::concat(&[(&column, 4), (&other, 4)]);
                let all: Vec<&str> = [expected.clone(), other_expected].concat();
                assert_eq!(texts(&joined, 8), all);
            }
        }
    }

    #[test]
    fn integers_print_as_the_standard_library_prints_them() {
        for n in [0, 7, -7, 10, 99, 1_000_000, i64::MAX, i64::MIN] {
            let mut out = Vec::new();
            push_int(&mut out, n);
            assert_eq!(String::from_utf8(out).unwrap(), n.to_string());
        }
    }
}
