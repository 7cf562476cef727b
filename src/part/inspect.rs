//! Where the bytes of a part are: by column, encoding and piece.

use std::collections::BTreeMap;

use super::header::{HeadRef, Home, PageRef};
use super::layout::{Extent, FOOTER_LEN, HEADER_LEN};
use super::reader::PartReader;
use super::source::ReadContext;
use crate::Result;
use crate::codec::{Encoding, strip_table_len};

/// Bytes and counts of one column in one encoding.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ColumnBytes {
    /// Blocks that hold it this way.
    pub(crate) blocks: u64,
    /// Rows with a value.
    pub(crate) rows: u64,
    /// Bytes of heads before strips, without the strip tables: dictionaries, templates, shapes.
    pub(crate) heads: u64,
    /// Bytes of strip tables before strips.
    pub(crate) tables: u64,
    /// Bytes of strips, or pieces of sparse pages before compression.
    pub(crate) strips: u64,
    /// Bytes of filters.
    pub(crate) filters: u64,
    /// Bytes of headers and the heads in them, in index blocks before these are packed.
    pub(crate) headers: u64,
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

/// Reads all headers and heads of a part, but no strip.
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
    let mut raw = Vec::new();
    for (e, entry) in part.metaindex(cx)?.iter().enumerate() {
        out.index += entry.at.len;
        let index = part.index_block(cx, e)?;
        for (i, head) in index.heads().enumerate() {
            out.runs += head.runs.map_or(0, |r| r.len);
            out.sparse += head.sparse.map_or(0, |s| s.len);
            let tables = strip_tables(part, cx, &head.time, head.rows)?;
            out.page("_time", &head.time, tables).rows += u64::from(head.rows);
            let columns = index.columns(i).map_err(|e| part.malformed(entry.at.offset, e))?;
            for (name, header) in columns {
                let name = names.name(name);
                raw.clear();
                header.put(head.rows, head.offset, &mut raw);
                let bytes = match &header.home {
                    Home::Page(page) => {
                        let tables = strip_tables(part, cx, page, head.rows)?;
                        out.page(name, page, tables)
                    }
                    Home::Sparse { len, .. } => {
                        let bytes = out.column(name, "sparse");
                        bytes.strips += u64::from(*len);
                        bytes
                    }
                    Home::SameAs(_) => out.column(name, "same"),
                };
                bytes.rows += u64::from(header.present);
                for filter in header.filters.into_iter().flatten() {
                    let group = index.group(filter.group);
                    let group = &group.map_err(|e| part.malformed(entry.at.offset, e))?.group;
                    bytes.filters += group.len() / group.members() as u64;
                }
                bytes.headers += raw.len() as u64;
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

    fn page(&mut self, name: &str, page: &PageRef, tables: u64) -> &mut ColumnBytes {
        let bytes = self.column(name, &format!("{:?}", page.encoding).to_lowercase());
        let head = match &page.head {
            HeadRef::Inline(_) => 0,
            HeadRef::External { len, .. } => *len,
        };
        bytes.heads += head.saturating_sub(tables);
        bytes.tables += tables;
        bytes.strips += page.len - head;
        bytes
    }
}

/// Bytes of the strip table of a page of `rows` rows whose head stands before its strips.
fn strip_tables(part: &PartReader, cx: &ReadContext<'_>, page: &PageRef, rows: u32) -> Result<u64> {
    let HeadRef::External { len, checksum } = page.head else { return Ok(0) };
    if page.encoding == Encoding::Const {
        return Ok(0);
    }
    let at = Extent { offset: page.offset, len, checksum };
    let head = part.read_unit(cx, &at, "the head of a page")?;
    let table = strip_table_len(&head, rows as usize);
    Ok(table.map_err(|e| part.malformed(page.offset, e))? as u64)
}
