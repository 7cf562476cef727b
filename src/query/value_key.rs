//! Values compared in the total order without making texts of typed ones.

use std::cmp::Ordering;

use super::column::{Column, push_int, push_time};
use crate::record::{SortKey, cmp_values};

/// A value of a column: typed where the column is.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ValueRef<'a> {
    /// The canonical text of an integer.
    Int(i64),
    /// The RFC 3339 text of a time.
    Time(i64),
    /// Any text.
    Text(&'a [u8]),
}

/// A kept value.
#[derive(Debug, Clone)]
pub(crate) enum ValueKey {
    /// The canonical text of an integer.
    Int(i64),
    /// The RFC 3339 text of a time.
    Time(i64),
    /// Any text and its place in the order.
    Text(Box<[u8]>, SortKey),
}

impl<'a> ValueRef<'a> {
    /// The value of a row of a column.
    #[inline]
    pub(crate) fn of(column: &'a Column, row: usize) -> ValueRef<'a> {
        match column {
            Column::Const(value) => ValueRef::Text(value),
            Column::Text(values) => ValueRef::Text(values.get(row)),
            Column::Codes { codes, dictionary } => match codes.get(row) {
                Some(&code) => ValueRef::Text(dictionary.get(code as usize)),
                None => ValueRef::Text(&[]),
            },
            Column::Runs { ends, codes, dictionary } => {
                match codes.get(super::column::run_of(ends, row)) {
                    Some(&code) => ValueRef::Text(dictionary.get(code as usize)),
                    None => ValueRef::Text(&[]),
                }
            }
            Column::Ints { values, absent, exceptions } => {
                if absent.as_ref().is_some_and(|a| a.get(row)) {
                    return ValueRef::Text(&[]);
                }
                if let Some(text) = super::column::exception(exceptions, row) {
                    return ValueRef::Text(text);
                }
                values.get(row).map_or(ValueRef::Text(&[]), |&n| ValueRef::Int(n))
            }
            Column::Times(times) => {
                times.get(row).map_or(ValueRef::Text(&[]), |&ns| ValueRef::Time(ns))
            }
        }
    }

    /// Whether it is absent.
    pub(crate) fn is_empty(self) -> bool {
        matches!(self, ValueRef::Text([]))
    }

    /// Appends the text.
    pub(crate) fn push_to(self, out: &mut Vec<u8>) {
        match self {
            ValueRef::Int(n) => push_int(out, n),
            ValueRef::Time(ns) => push_time(out, ns),
            ValueRef::Text(text) => out.extend_from_slice(text),
        }
    }

    /// The value to keep.
    pub(crate) fn to_key(self) -> ValueKey {
        match self {
            ValueRef::Int(n) => ValueKey::Int(n),
            ValueRef::Time(ns) => ValueKey::Time(ns),
            ValueRef::Text(text) => ValueKey::Text(Box::from(text), SortKey::of(text)),
        }
    }

    /// Compares in the total order.
    #[inline]
    pub(crate) fn compare(self, key: &ValueKey) -> Ordering {
        match (self, key) {
            (ValueRef::Int(a), ValueKey::Int(b)) | (ValueRef::Time(a), ValueKey::Time(b)) => {
                a.cmp(b)
            }
            (ValueRef::Int(_), ValueKey::Time(_)) => Ordering::Less,
            (ValueRef::Time(_), ValueKey::Int(_)) => Ordering::Greater,
            (ValueRef::Text(a), ValueKey::Text(b, key)) => {
                if a == &**b {
                    Ordering::Equal
                } else {
                    SortKey::of(a).compare(a, *key, b)
                }
            }
            (a, b) => {
                let (mut x, mut y) = (Vec::with_capacity(32), Vec::with_capacity(32));
                a.push_to(&mut x);
                b.as_ref().push_to(&mut y);
                SortKey::of(&x).compare(&x, SortKey::of(&y), &y)
            }
        }
    }

    /// Compares in the total order, equal values by their bytes.
    pub(crate) fn compare_then_bytes(self, key: &ValueKey) -> Ordering {
        let order = self.compare(key);
        if order != Ordering::Equal {
            return order;
        }
        match (self, key) {
            (ValueRef::Int(_), ValueKey::Int(_)) | (ValueRef::Time(_), ValueKey::Time(_)) => order,
            (ValueRef::Text(a), ValueKey::Text(b, _)) => a.cmp(b),
            (a, b) => {
                let (mut x, mut y) = (Vec::with_capacity(32), Vec::with_capacity(32));
                a.push_to(&mut x);
                b.as_ref().push_to(&mut y);
                x.cmp(&y)
            }
        }
    }
}

impl ValueKey {
    /// The value, borrowed.
    pub(crate) fn as_ref(&self) -> ValueRef<'_> {
        match self {
            ValueKey::Int(n) => ValueRef::Int(*n),
            ValueKey::Time(ns) => ValueRef::Time(*ns),
            ValueKey::Text(text, _) => ValueRef::Text(text),
        }
    }

    /// Bytes of memory held beside the key itself.
    pub(crate) fn heap_bytes(&self) -> usize {
        match self {
            ValueKey::Text(text, _) => text.len(),
            _ => 0,
        }
    }
}

/// The place of a value in the order, without its text.
pub(crate) fn sort_key(value: ValueRef<'_>, scratch: &mut Vec<u8>) -> SortKey {
    match value {
        ValueRef::Text(text) => SortKey::of(text),
        typed => {
            scratch.clear();
            typed.push_to(scratch);
            SortKey::of(scratch)
        }
    }
}

/// Compares two values in the total order.
pub(crate) fn compare_refs(a: ValueRef<'_>, b: ValueRef<'_>) -> Ordering {
    match (a, b) {
        (ValueRef::Int(x), ValueRef::Int(y)) | (ValueRef::Time(x), ValueRef::Time(y)) => x.cmp(&y),
        (ValueRef::Int(_), ValueRef::Time(_)) => Ordering::Less,
        (ValueRef::Time(_), ValueRef::Int(_)) => Ordering::Greater,
        (ValueRef::Text(x), ValueRef::Text(y)) => cmp_values(x, y),
        (a, b) => {
            let (mut x, mut y) = (Vec::with_capacity(32), Vec::with_capacity(32));
            a.push_to(&mut x);
            b.push_to(&mut y);
            cmp_values(&x, &y)
        }
    }
}
