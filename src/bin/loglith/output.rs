//! Rows on the standard output: NDJSON, CSV, logfmt, a table, or bare messages.

use std::io::{self, Write};

use loglith::{Row, write_json};

use crate::args::OutputFormat;
use crate::color::{Paint, Palette};

/// Rows from which a table takes the widths of its columns.
const TABLE_ROWS: usize = 1000;
/// Widest column of a table, in characters.
const TABLE_COLUMN: usize = 80;

/// Prints rows in one of the formats.
pub(crate) struct Printer<W: Write> {
    out: W,
    format: OutputFormat,
    palette: Palette,
    line: Vec<u8>,
    table: Vec<Vec<(String, String)>>,
    /// The columns of CSV, where they are known or were found.
    columns: Option<Vec<String>>,
    head_printed: bool,
    /// Rows of CSV that wait for the last name.
    waiting: Vec<Row>,
}

impl<W: Write> Printer<W> {
    /// `columns` are those of the answer, where the query tells them; without them CSV keeps all
    /// rows until the end.
    pub(crate) fn new(
        out: W,
        format: OutputFormat,
        palette: Palette,
        columns: Option<Vec<String>>,
    ) -> Printer<W> {
        let (line, table, waiting) = (Vec::new(), Vec::new(), Vec::new());
        Printer { out, format, palette, line, table, columns, head_printed: false, waiting }
    }

    /// Prints a row, or keeps it until its table is full. A row without any value is passed over.
    pub(crate) fn row(&mut self, row: &Row) -> io::Result<()> {
        if row.fields().all(|(_, value)| value.is_empty()) {
            return Ok(());
        }
        match self.format {
            OutputFormat::Json if !self.palette.is_on() => {
                self.line.clear();
                write_json(row, &mut self.line);
                self.line.push(b'\n');
                self.out.write_all(&self.line)
            }
            OutputFormat::Csv if self.columns.is_none() => {
                self.waiting.push(row.clone());
                Ok(())
            }
            _ => self.fields(&row.fields().collect::<Vec<_>>()),
        }
    }

    /// As [`row`](Printer::row), for names and values; CSV needs to know its columns.
    pub(crate) fn fields(&mut self, fields: &[(&str, &str)]) -> io::Result<()> {
        self.line.clear();
        match self.format {
            OutputFormat::Json => json(fields, self.palette, &mut self.line),
            OutputFormat::Raw => raw(fields, &mut self.line),
            OutputFormat::Logfmt => logfmt(fields, self.palette, &mut self.line),
            OutputFormat::Csv => return self.csv_row(fields),
            OutputFormat::Table => {
                self.table.push(pairs(fields.iter().copied()));
                return if self.table.len() >= TABLE_ROWS { self.print_table() } else { Ok(()) };
            }
        }
        self.line.push(b'\n');
        self.out.write_all(&self.line)
    }

    /// Prints what is left.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        self.print_table()?;
        if self.format == OutputFormat::Csv {
            self.print_csv()?;
        }
        self.out.flush()
    }

    fn print_table(&mut self) -> io::Result<()> {
        for (i, line) in table(&self.table).iter().enumerate() {
            if i == 0 {
                writeln!(self.out, "{}", self.palette.paint(Paint::Head, line))?;
            } else {
                writeln!(self.out, "{line}")?;
            }
        }
        self.table.clear();
        Ok(())
    }

    fn print_csv(&mut self) -> io::Result<()> {
        let rows = std::mem::take(&mut self.waiting);
        if self.columns.is_none() {
            let mut names: Vec<String> = Vec::new();
            let mut seen = std::collections::HashSet::new();
            for (name, _) in rows.iter().flat_map(Row::fields).filter(|(_, v)| !v.is_empty()) {
                if seen.insert(name) {
                    names.push(name.to_owned());
                }
            }
            self.columns = Some(names);
        }
        for row in &rows {
            self.csv_row(&row.fields().collect::<Vec<_>>())?;
        }
        self.csv_head()
    }

    fn csv_row(&mut self, fields: &[(&str, &str)]) -> io::Result<()> {
        self.csv_head()?;
        let columns = self.columns.as_deref().unwrap_or(&[]);
        let value = |column: &String| fields.iter().find(|(name, _)| name == column);
        csv_line(columns.iter().map(|column| value(column).map_or("", |f| f.1)), &mut self.line);
        self.out.write_all(&self.line)
    }

    fn csv_head(&mut self) -> io::Result<()> {
        let columns = self.columns.as_deref().unwrap_or(&[]);
        if !self.head_printed && !columns.is_empty() {
            csv_line(columns.iter().map(String::as_str), &mut self.line);
            self.out.write_all(&self.line)?;
        }
        self.head_printed = true;
        Ok(())
    }
}

/// A line of CSV as RFC 4180 has it, with a bare line feed at its end.
fn csv_line<'a>(values: impl Iterator<Item = &'a str>, line: &mut Vec<u8>) {
    line.clear();
    for (i, value) in values.enumerate() {
        if i > 0 {
            line.push(b',');
        }
        let quoted = value.contains([',', '"', '\n', '\r'])
            || value.starts_with(' ')
            || value.ends_with(' ');
        if quoted {
            line.push(b'"');
            line.extend_from_slice(value.replace('"', "\"\"").as_bytes());
            line.push(b'"');
        } else {
            line.extend_from_slice(value.as_bytes());
        }
    }
    // A line of one empty value would read as no line.
    if line.is_empty() {
        line.extend_from_slice(b"\"\"");
    }
    line.push(b'\n');
}

/// `name=value` pairs as `unpack_logfmt` reads them. A name that would end early or look like a
/// pair is a JSON string.
fn logfmt(fields: &[(&str, &str)], palette: Palette, line: &mut Vec<u8>) {
    for (name, value) in fields.iter().filter(|(_, value)| !value.is_empty()) {
        if !line.is_empty() {
            line.push(b' ');
        }
        let must_quote = |c: char| c.is_control() || c == ' ' || c == '"' || c == '\\';
        if name.is_empty() || name.contains(|c: char| must_quote(c) || c == '=') {
            line.extend_from_slice(palette.paint(Paint::Name, &json_text(name)).as_bytes());
        } else {
            line.extend_from_slice(palette.paint(Paint::Name, name).as_bytes());
        }
        line.push(b'=');
        if value.contains(must_quote) {
            line.extend_from_slice(json_text(value).as_bytes());
        } else {
            line.extend_from_slice(palette.value(value).as_bytes());
        }
    }
}

/// A row as JSON, in colour on a terminal.
fn json(fields: &[(&str, &str)], palette: Palette, line: &mut Vec<u8>) {
    line.push(b'{');
    for (i, (name, value)) in fields.iter().filter(|(_, v)| !v.is_empty()).enumerate() {
        if i > 0 {
            line.push(b',');
        }
        line.extend_from_slice(palette.paint(Paint::Name, &json_text(name)).as_bytes());
        line.push(b':');
        let painted = palette.value(value);
        if painted == *value {
            line.extend_from_slice(json_text(value).as_bytes());
        } else {
            // Only words are painted, which need no escapes.
            line.extend_from_slice(format!("\"{painted}\"").as_bytes());
        }
    }
    line.push(b'}');
}

fn json_text(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// The message, or all values with tabs between them.
fn raw(fields: &[(&str, &str)], out: &mut Vec<u8>) {
    let message = fields.iter().find(|(name, value)| *name == "_msg" && !value.is_empty());
    if let Some((_, value)) = message {
        out.extend_from_slice(value.as_bytes());
        return;
    }
    for (i, (_, value)) in fields.iter().enumerate() {
        if i > 0 {
            out.push(b'\t');
        }
        out.extend_from_slice(value.as_bytes());
    }
}

/// Names and values of a row, the empty ones left out.
pub(crate) fn pairs<'a>(fields: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<(String, String)> {
    fields
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
    fn csv_quotes_what_it_must() {
        let line = |values: &[&str]| {
            let mut out = Vec::new();
            csv_line(values.iter().copied(), &mut out);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(
            line(&["a", "", "b,c", "d\"e", "f\ng", " h"]),
            "a,,\"b,c\",\"d\"\"e\",\"f\ng\",\" h\"\n"
        );
        assert_eq!(line(&[""]), "\"\"\n");
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
