//! Template columns: log messages as the numbers of their templates and the values of their slots.
//!
//! A line of a log is mostly text that its program always writes, with a few values in between.
//! The [tokenizer](tokenize) takes each ASCII alphanumeric run that holds a digit for a value: it
//! becomes a *slot*, the rest of the line is the *template*. Slots have no types of their own.
//! The rows of a page that share a template make a small table; for each column of it the
//! [encoder] finds out what the values have in common ([`Slot`]): values that are all the same go
//! back into the text of the template, numbers and hex digits are packed, few distinct values
//! become codes, what stands in another column of the block as well is only
//! referred to, and the rest is text. Any row can be stored: one that the tokenizer does not
//! take is a template that is one slot.
//!
//! A page is self-contained, but for the values that it takes from other columns of its block,
//! whose names it holds. Its head holds the [`TemplateTable`]; each strip
//! ([`TemplateStrip`]) holds the template number of each row, which can be decoded alone, and
//! then the values of the slots, column by column.
//!
//! Invariants: what is rendered is what was encoded, byte for byte; in the text of a template the
//! byte 0 stands for a slot and for nothing else; rows of a template are in row order within
//! each column of a strip; columns to which a page refers refer to none themselves.
//!
//! Callers: the encoder and the reader of pages; the scan, which asks the table first.
//!
//! The idea of parsing lines by rule into templates and typed columns is that of CLP (Rodrigues
//! et al., OSDI 2021); that of typing each column by its values, of LogGrep (Wei et al., EuroSys
//! 2023).

mod bits;
mod column;
mod encoder;
mod fields;
mod find;
mod slot;
mod strip;
mod table;
mod tokenize;

pub(super) use encoder::TemplateEncoder;
pub(crate) use fields::Beside;
pub(crate) use find::{SlotNeedle, holds_folded};
pub(crate) use slot::{Slot, class, classes_of};
pub(crate) use strip::{TemplateIds, TemplateStrip};
pub(crate) use table::{PlacedSlot, TemplateTable};

/// The byte that stands for a slot in the text of a template.
pub(crate) const SLOT: u8 = 0;
/// The most templates of a page.
const TEMPLATES_MAX: usize = 65_536;
/// The most slots that the tokenizer finds in a row; a row with more is one slot.
const ROW_SLOTS_MAX: usize = 1_024;
/// The most bytes of the descriptions of all slots of a page.
const SHAPES_MAX: usize = 4 << 20;
/// The most distinct values of a dictionary slot: its codes are bytes.
const CODES_MAX: usize = 256;
/// The most columns to which a page refers.
pub(crate) const FIELDS_MAX: usize = 64;
/// The most bytes of a name of one.
const FIELD_NAME_MAX: usize = 1 << 16;
/// Slots refer to values of at most so many bytes.
const FIELD_VALUE_MAX: usize = 4_096;
/// The most digits of a number: more might not fit 64 bits.
const DIGITS_MAX: usize = 19;

#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
