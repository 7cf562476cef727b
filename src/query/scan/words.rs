//! What filters say of the words of a page of a block.

use super::block::{BlockScan, ScanColumn};
use crate::index::Needle;
use crate::query::filter::{PageWords, ValuePredicate};

/// What filters say of the words of a page. Damage to them says nothing of the rows; it was told
/// where the block was judged.
pub(super) struct ColumnWords<'b, 'a> {
    pub(super) block: &'b BlockScan<'a>,
    pub(super) column: &'b ScanColumn,
}

impl ColumnWords<'_, '_> {
    /// Whether no value of the page, nor the empty one, passes for what it needs.
    pub(super) fn deny(&self, predicate: &ValuePredicate) -> bool {
        let Some(header) = &self.column.column.header else { return false };
        let reader = &self.block.reader;
        let mut may_hold = |needle: &Needle<'_>| reader.may_hold(header, needle);
        let met = predicate.may_be_met(&mut may_hold);
        matches!(met, Ok(Some(false))) && !predicate.matches(b"")
    }

    fn may_be(&self, name: &[u8], value: &[u8]) -> Option<bool> {
        let column = self.block.column(std::str::from_utf8(name).ok()?).ok()?;
        let header = column.column.header.as_ref()?;
        // A longer value may hold it as a part of a word.
        let (_, longest) = header.facts.lengths?;
        if longest as usize > value.len() {
            return None;
        }
        let needle = Needle { text: value, bounds: (true, true), fold: false };
        self.block.reader.may_hold(header, &needle).ok()
    }
}

impl PageWords for ColumnWords<'_, '_> {
    fn may_touch_digits(&self, needle: &Needle<'_>) -> bool {
        let header = self.column.column.header.as_ref();
        let may = header.and_then(|h| self.block.reader.may_touch_digits(h, needle).ok());
        may.unwrap_or(true)
    }

    fn may_have_piece(&self, name: &[u8], piece: &[u8]) -> bool {
        self.may_be(name, piece).unwrap_or(true)
    }
}
