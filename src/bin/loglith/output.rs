//! Rows on the standard output: NDJSON, a table, or bare messages.

use std::io::{self, Write};

use loglith::{Row, write_json};

use crate::args::OutputFormat;

/// Rows from which a table takes the widths of its columns.
const TABLE_ROWS: usize = 1000;
/// Widest column of a table, in characters.
const TABLE_COLUMN: usize = 80;

/// Prints rows in one of the formats.
pub(crate) struct Printer<W: Write> {
    out: W,
    format: OutputFormat,
    line: Vec<u8>,
    table: Vec<Vec<(String, String)>>,
}

impl<W: Write> Printer<W> {
    pub(crate) fn new(out: W, format: OutputFormat) -> Printer<W> {
        Printer { out, format, line: Vec::new(), table: Vec::new() }
    }

    /// Prints a row, or keeps it until its table is full.
    pub(crate) fn row(&mut self, row: &Row) -> io::Result<()> {
        self.line.clear();
        match self.format {
            OutputFormat::Json => write_json(row, &mut self.line),
            OutputFormat::Raw => raw(row, &mut self.line),
            OutputFormat::Table => {
                self.table.push(pairs(row));
                return if self.table.len() >= TABLE_ROWS { self.print_table() } else { Ok(()) };
            }
        }
        self.line.push(b'\n');
        self.out.write_all(&self.line)
    }

    /// Prints what is left.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        self.print_table()?;
        self.out.flush()
    }

    fn print_table(&mut self) -> io::Result<()> {
        for line in table(&self.table) {
            writeln!(self.out, "{line}")?;
        }
        self.table.clear();
        Ok(())
    }
}

/// The message, or all values with tabs between them.
fn raw(row: &Row, out: &mut Vec<u8>) {
    let message = row.fields().find(|(name, value)| *name == "_msg" && !value.is_empty());
    if let Some((_, value)) = message {
        out.extend_from_slice(value.as_bytes());
        return;
    }
    for (i, (_, value)) in row.fields().enumerate() {
        if i > 0 {
            out.push(b'\t');
        }
        out.extend_from_slice(value.as_bytes());
    }
}

/// Names and values of a row, the empty ones left out.
pub(crate) fn pairs(row: &Row) -> Vec<(String, String)> {
    row.fields()
        .filter(|(_, value)| !value.is_empty())
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

/// Lines of a table with a head: one column per name, in the order of first appearance.
pub(crate) fn table(rows: &[Vec<(String, String)>]) -> Vec<String> {
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in rows.iter().flatten() {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    if names.is_empty() {
        return Vec::new();
    }
    let head: Vec<String> = names.iter().map(|n| cell(n)).collect();
    let body = rows.iter().map(|row| {
        let value = |n: &&str| row.iter().find(|(name, _)| name == n).map_or("", |(_, v)| v);
        names.iter().map(|n| cell(value(n))).collect::<Vec<String>>()
    });
    let lines: Vec<Vec<String>> = std::iter::once(head).chain(body).collect();
    let width = |column: usize| {
        let cells = lines.iter().filter_map(|l| l.get(column));
        cells.map(|c| c.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..names.len()).map(width).collect();
    let print = |line: &Vec<String>| {
        let cells = line.iter().zip(&widths).map(|(c, &w)| format!("{c:<w$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    lines.iter().map(print).collect()
}

/// A value on one line, cut where it is too wide.
fn cell(value: &str) -> String {
    let flat: String = value.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    if flat.chars().count() <= TABLE_COLUMN {
        return flat;
    }
    let mut cut: String = flat.chars().take(TABLE_COLUMN - 3).collect();
    cut.push_str("...");
    cut
}

/// `1234567` as `1,234,567`.
pub(crate) fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}

/// A number of bytes with a unit of a thousand.
pub(crate) fn bytes(n: u64) -> String {
    // Rounding is what is wanted here.
    let x = n as f64;
    match n {
        0..1_000 => format!("{n} B"),
        1_000..1_000_000 => format!("{:.1} kB", x / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", x / 1e6),
        _ => format!("{:.2} GB", x / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_for_the_eye() {
        assert_eq!(
            [0, 12, 123, 1234, 1_234_567].map(grouped),
            ["0", "12", "123", "1,234", "1,234,567"]
        );
        assert_eq!([999, 1_500, 2_500_000].map(bytes), ["999 B", "1.5 kB", "2.5 MB"]);
    }

    #[test]
    fn tables_have_one_column_per_name() {
        let pair = |n: &str, v: &str| (n.to_owned(), v.to_owned());
        let rows =
            [vec![pair("a", "1"), pair("b", "x\ny")], vec![pair("b", "longer"), pair("c", "2")]];
        assert_eq!(table(&rows), ["a  b       c", "1  x y", "   longer  2"]);
        assert!(table(&[vec![]]).is_empty());
        assert_eq!(cell(&"x".repeat(200)).chars().count(), TABLE_COLUMN);
    }
}
