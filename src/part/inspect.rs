//! Where the bytes of a part are: by column, encoding and piece.

use std::collections::BTreeMap;
use std::fmt;

use super::header::{HeadRef, Home, PageRef};
use super::layout::{FOOTER_LEN, HEADER_LEN};
use super::reader::PartReader;
use super::source::ReadContext;
use crate::Result;

/// Bytes and counts of one column in one encoding.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ColumnBytes {
    /// Blocks that hold it this way.
    pub(crate) blocks: u64,
    /// Rows with a value.
    pub(crate) rows: u64,
    /// Bytes of heads before strips.
    pub(crate) heads: u64,
    /// Bytes of strips, or pieces of sparse pages before compression.
    pub(crate) strips: u64,
    /// Bytes of filters.
    pub(crate) filters: u64,
}

/// Where the bytes of a part are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PartInspection {
    /// Bytes by column name and encoding; `_time` is the time pages.
    pub(crate) columns: BTreeMap<(String, String), ColumnBytes>,
    /// Bytes of runs pages.
    pub(crate) runs: u64,
    /// Bytes of sparse pages.
    pub(crate) sparse: u64,
    /// Bytes of index blocks.
    pub(crate) index: u64,
    /// Bytes of the stream table.
    pub(crate) streams: u64,
    /// Bytes of sections, directory, header and footer.
    pub(crate) tail: u64,
    /// Bytes of the file.
    pub(crate) total: u64,
    /// Rows of the part.
    pub(crate) rows: u64,
    /// Blocks of the part.
    pub(crate) blocks: u64,
}

/// Reads all headers of a part, but no page.
pub(crate) fn inspect_part(part: &PartReader, cx: &ReadContext<'_>) -> Result<PartInspection> {
    let footer = part.footer();
    let mut out = PartInspection {
        total: footer.len,
        rows: footer.rows,
        blocks: footer.blocks.into(),
        tail: (HEADER_LEN + FOOTER_LEN) as u64 + footer.directory.len,
        ..PartInspection::default()
    };
    out.tail += part.sections(cx)?.iter().map(|s| s.at.len).sum::<u64>();
    out.streams = part.chunks(cx)?.iter().map(|c| c.at.len).sum();
    let names = part.names(cx)?;
    for (e, entry) in part.metaindex(cx)?.iter().enumerate() {
        out.index += entry.at.len;
        let index = part.index_block(cx, e)?;
        for (i, head) in index.heads().enumerate() {
            out.runs += head.runs.map_or(0, |r| r.len);
            out.sparse += head.sparse.map_or(0, |s| s.len);
            out.page("_time", &head.time).rows += u64::from(head.rows);
            let columns = index.columns(i).map_err(|e| part.malformed(entry.at.offset, e))?;
            for (name, header) in columns {
                let name = names.name(name);
                let bytes = match &header.home {
                    Home::Page(page) => out.page(name, page),
                    Home::Sparse { len, .. } => {
                        let bytes = out.column(name, "sparse");
                        bytes.strips += u64::from(*len);
                        bytes
                    }
                    Home::SameAs(_) => out.column(name, "same"),
                };
                bytes.rows += u64::from(header.present);
                if let Some(filter) = header.filter {
                    let group = index.group(filter);
                    let group = &group.map_err(|e| part.malformed(entry.at.offset, e))?.group;
                    bytes.filters += group.len() / group.members() as u64;
                }
            }
        }
    }
    Ok(out)
}

impl PartInspection {
    fn column(&mut self, name: &str, encoding: &str) -> &mut ColumnBytes {
        let key = (name.to_owned(), encoding.to_owned());
        let bytes = self.columns.entry(key).or_default();
        bytes.blocks += 1;
        bytes
    }

    fn page(&mut self, name: &str, page: &PageRef) -> &mut ColumnBytes {
        let bytes = self.column(name, &format!("{:?}", page.encoding).to_lowercase());
        let head = match &page.head {
            HeadRef::Inline(_) => 0,
            HeadRef::External { len, .. } => *len,
        };
        bytes.heads += head;
        bytes.strips += page.len - head;
        bytes
    }
}

impl fmt::Display for PartInspection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} bytes, {} rows, {} blocks", self.total, self.rows, self.blocks)?;
        for (what, bytes) in [
            ("index blocks", self.index),
            ("stream table", self.streams),
            ("runs pages", self.runs),
            ("sparse pages", self.sparse),
            ("tail", self.tail),
        ] {
            writeln!(f, "{bytes:>12}  {what}")?;
        }
        writeln!(
            f,
            "{:>12}{:>10}{:>10}{:>8}{:>10}  column",
            "strips", "heads", "filters", "blocks", "rows"
        )?;
        let mut columns: Vec<_> = self.columns.iter().collect();
        columns.sort_by_key(|(_, b)| std::cmp::Reverse(b.strips + b.heads + b.filters));
        for ((name, encoding), b) in columns {
            let (strips, heads, filters) = (b.strips, b.heads, b.filters);
            write!(f, "{strips:>12}{heads:>10}{filters:>10}{:>8}{:>10}", b.blocks, b.rows)?;
            writeln!(f, "  {name} ({encoding})")?;
        }
        Ok(())
    }
}
