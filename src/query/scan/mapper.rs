//! What a worker has found out of the texts that it maps.

use std::cell::RefCell;
use std::rc::Rc;

use super::mapped::TextMap;
use super::settle::{OpenPiece, OpenTemplate, Settler};
use crate::codec::template::TemplateTable;
use crate::query::group::Interner;
use crate::query::numbers::PairTable;
use crate::record::TextVec;

/// What the blocks of a worker share.
pub(super) type SharedMapper = Rc<RefCell<TextMapper>>;

/// The texts that a function has made of those of a block, by numbers, and of what.
#[derive(Debug)]
pub(crate) struct TextMapper {
    map: TextMap,
    /// All that is kept for the next block: pieces repeat, whole texts are found again faster in
    /// a block's own few.
    settler: Settler,
    /// What became of open pieces.
    outcomes: Interner,
    /// What rows have in common: a template, or what such rows have in common and the number of
    /// what becomes of the next open piece.
    states: PairTable,
    of_states: Vec<u32>,
    /// What the local function made.
    made: Interner,
    /// What the function for the whole made of that, if there is one.
    values: TextVec,
    scratch: Vec<u8>,
}

/// What becomes of the rows of a template.
#[derive(Debug)]
pub(super) enum Shape {
    /// The text of this number.
    Settled(u32),
    /// What their values decide.
    Open(OpenTemplate),
}

/// Not found out.
pub(super) const UNKNOWN: u32 = u32::MAX;
/// Marks the number of a state, in a pair where the number of a template may stand as well.
const STATE: u32 = 1 << 31;

impl TextMapper {
    /// Nothing found out yet.
    pub(crate) fn new(map: TextMap) -> TextMapper {
        TextMapper {
            map,
            settler: Settler::new(map.local),
            outcomes: Interner::default(),
            states: PairTable::default(),
            of_states: Vec::new(),
            made: Interner::default(),
            values: TextVec::new(),
            scratch: Vec::new(),
        }
    }

    /// The same, for all blocks of a worker.
    pub(super) fn shared(map: TextMap) -> SharedMapper {
        Rc::new(RefCell::new(TextMapper::new(map)))
    }

    /// Forgets the texts of the block before.
    pub(super) fn next_block(&mut self) {
        self.outcomes.clear();
        self.states.clear();
        self.of_states.clear();
        self.made.clear();
        self.values.clear();
    }

    /// All texts so far.
    pub(super) fn texts(&self) -> TextVec {
        match self.map.whole {
            Some(_) => self.values.clone(),
            None => self.made.texts(),
        }
    }

    /// The number of what becomes of a value.
    pub(super) fn number_of(&mut self, value: &[u8]) -> u32 {
        let mut made = std::mem::take(&mut self.scratch);
        made.clear();
        (self.map.local)(value, &mut made);
        self.number(made)
    }

    /// The number of what the local function made, in the scratch.
    fn number(&mut self, made: Vec<u8>) -> u32 {
        let number = self.made.intern(&made);
        if let Some(whole) = self.map.whole.filter(|_| number as usize == self.values.len()) {
            whole(&made, self.values.open());
            self.values.close();
        }
        self.scratch = made;
        number
    }

    /// What becomes of the rows of a template.
    pub(super) fn shape(&mut self, table: &TemplateTable, template: usize) -> Shape {
        let mut made = std::mem::take(&mut self.scratch);
        match self.settler.settle(table, template, &mut made) {
            Some(open) => Shape::Open(open),
            None => Shape::Settled(self.number(made)),
        }
    }

    /// The number of what becomes of an open piece with this text.
    pub(super) fn outcome(&mut self, piece: &OpenPiece, text: &[u8]) -> u32 {
        self.scratch.clear();
        (self.map.local)(text, &mut self.scratch);
        let made = self.scratch.get(usize::from(piece.context)..).unwrap_or(&[]);
        self.outcomes.intern(made)
    }

    /// The number of what becomes of rows of a template with these outcomes of its open pieces.
    pub(super) fn joined(&mut self, template: u32, between: &[Vec<u8>], outcomes: &[u32]) -> u32 {
        let joined = |state: u32, n: &u32| self.states.intern((state, *n)) | STATE;
        let state = (outcomes.iter().fold(template, joined) & !STATE) as usize;
        if let Some(number) = self.of_states.get(state).filter(|number| **number != UNKNOWN) {
            return *number;
        }
        let mut made = std::mem::take(&mut self.scratch);
        made.clear();
        let mut outcome = outcomes.iter();
        for settled in between {
            made.extend_from_slice(settled);
            made.extend_from_slice(outcome.next().map_or(&[][..], |n| self.outcomes.get(*n)));
        }
        let number = self.number(made);
        if self.of_states.len() <= state {
            self.of_states.resize(state + 1, UNKNOWN);
        }
        if let Some(known) = self.of_states.get_mut(state) {
            *known = number;
        }
        number
    }
}
