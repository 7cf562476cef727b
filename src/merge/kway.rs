//! Merges the rows of parts into one part.

use std::sync::Arc;

use crate::Result;
use crate::part::{
    BlockCopy, ByteSink, CopyFilters, Names, PartBuilder, PartReader, PartSummary, ReadContext,
    ReadStats, RowCursor, SkippedRows, StreamColumns, StreamSize, WriterOptions,
};
use crate::record::StreamKey;

/// What whoever calls a merge says in it.
#[derive(Default)]
pub(crate) struct Hooks<'a> {
    /// Asked before blocks and once in some rows; an error ends the merge.
    pub(crate) check: Option<&'a dyn Fn() -> Result<()>>,
    /// Whether every row is encoded anew, which changes no answer.
    pub(crate) encode_all: bool,
}

/// A merge asks whether it may go on once in so many rows.
const CHECK_ROWS: usize = 1_024;

/// What a merge did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MergeResult {
    /// The part that was written.
    pub(crate) summary: PartSummary,
    /// Rows of the inputs.
    pub(crate) rows_in: u64,
    /// Bytes of the inputs.
    pub(crate) bytes_in: u64,
    /// What it wrote, and how.
    pub(crate) work: MergeWork,
}

/// What merges wrote: blocks taken over as they were, and rows that were encoded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct MergeWork {
    /// Blocks that were copied.
    pub(crate) blocks_copied: u64,
    /// Rows in them.
    pub(crate) rows_copied: u64,
    /// Bytes of their pages.
    pub(crate) bytes_copied: u64,
    /// Rows that were encoded anew.
    pub(crate) rows_encoded: u64,
}

/// Writes the rows of `inputs`, which are in the order of their cuts, as one part. Full blocks of
/// one stream that no rows of other inputs lie between are copied, unless rows are chosen; all
/// other rows are encoded anew. Memory is bounded: a strip of each column of each input, the block
/// and the stream chunk being written, a block that is copied.
///
/// # Errors
/// `Corrupted` if an input is damaged, and the errors of reading, of `check` and of the sink. What
/// the sink has got is then no part.
pub(crate) fn merge_parts(
    inputs: &[&PartReader],
    options: &WriterOptions,
    hooks: Hooks<'_>,
    sink: &mut dyn ByteSink,
) -> Result<MergeResult> {
    let stats = ReadStats::default();
    let contexts: Vec<ReadContext<'_>> = inputs.iter().map(|_| ReadContext::new(&stats)).collect();
    let (names, maps) = join_names(inputs, &contexts)?;
    let cursors = inputs.iter().zip(&contexts).map(|(part, cx)| part.rows(cx));
    let open = open_inputs(cursors.zip(maps))?;
    let mut merge = Merge {
        inputs: open,
        held: StreamColumns::new(names.len()),
        builder: PartBuilder::new(options, names, sink)?,
        hooks,
        work: MergeWork::default(),
        unchecked: 0,
    };
    while merge.stream()? {}
    Ok(MergeResult {
        work: merge.work,
        summary: merge.builder.finish()?,
        rows_in: inputs.iter().map(|p| p.footer().rows).sum(),
        bytes_in: inputs.iter().map(|p| p.footer().len).sum(),
    })
}

/// Writes the rows of a damaged part that can be read as another part; `skipped` counts those
/// that cannot.
///
/// # Errors
/// `Corrupted` if the part's names or its list of blocks are damaged; those of the sink.
pub(crate) fn salvage_part(
    part: &PartReader,
    options: &WriterOptions,
    skipped: &SkippedRows,
    sink: &mut dyn ByteSink,
) -> Result<PartSummary> {
    let stats = ReadStats::default();
    let contexts = [ReadContext::new(&stats)];
    let (names, maps) = join_names(&[part], &contexts)?;
    let cursors = contexts.iter().map(|cx| part.sound_rows(cx, skipped));
    let open = open_inputs(cursors.zip(maps))?;
    let mut merge = Merge {
        inputs: open,
        held: StreamColumns::new(names.len()),
        builder: PartBuilder::new(options, names, sink)?,
        hooks: Hooks { encode_all: true, ..Hooks::default() },
        work: MergeWork::default(),
        unchecked: 0,
    };
    while merge.stream()? {}
    merge.builder.finish()
}

/// The inputs that have rows, each at its first.
fn open_inputs<'a>(
    cursors: impl Iterator<Item = (RowCursor<'a>, Vec<u32>)>,
) -> Result<Vec<Input<'a>>> {
    let mut open = Vec::new();
    for (cursor, map) in cursors {
        let (text, filters) = (Vec::new(), CopyFilters::default());
        let mut input = Input { cursor, map, text, ordinal: None, here: false, filters };
        if input.advance()? {
            open.push(input);
        }
    }
    Ok(open)
}

/// The names with values of all inputs, and for each input the numbers of its names among them.
fn join_names(
    inputs: &[&PartReader],
    contexts: &[ReadContext<'_>],
) -> Result<(Names, Vec<Vec<u32>>)> {
    let mut all: Vec<&str> = Vec::new();
    let mut each = Vec::with_capacity(inputs.len());
    for (part, cx) in inputs.iter().zip(contexts) {
        let names = part.names(cx)?;
        all.extend((0u32..).zip(names.iter()).filter(|(id, _)| names.hits(*id) > 0).map(|n| n.1));
        all.sort_unstable();
        all.dedup();
        each.push(names);
    }
    let joined = Names::new(all);
    let number = |name: &str| joined.id(name).unwrap_or(u32::MAX);
    let maps = each.iter().map(|names| names.iter().map(number).collect()).collect();
    Ok((joined, maps))
}

/// A row of one of the inputs.
struct Input<'a> {
    cursor: RowCursor<'a>,
    /// The output's numbers of the input's names.
    map: Vec<u32>,
    /// The text of the current row's stream.
    text: Vec<u8>,
    ordinal: Option<u32>,
    /// Whether that is the stream that is being merged.
    here: bool,
    /// For blocks that are copied.
    filters: CopyFilters,
}

impl Input<'_> {
    /// Steps to the next row, whose pages are not read yet if a block of one stream begins with
    /// it; false behind the last.
    fn advance(&mut self) -> Result<bool> {
        if !self.cursor.step()? {
            return Ok(false);
        }
        if self.ordinal != Some(self.cursor.ordinal()) {
            self.ordinal = Some(self.cursor.ordinal());
            self.text = self.cursor.key().text();
            self.here = false;
        }
        Ok(true)
    }

    /// The constants of the current row's stream by the output's numbers, ascending.
    fn constants(&self) -> Vec<(u32, &[u8])> {
        let constants = self.cursor.constants().iter();
        constants.map(|(name, value)| (self.number(*name), value.as_slice())).collect()
    }

    /// Whether the current row begins a block that is worth copying: a full one, and not of a
    /// flush, whose pages are made fast and not small.
    fn is_full(&self, builder: &PartBuilder<'_>) -> bool {
        self.cursor.whole_block().is_some_and(|block| {
            let head = block.head_of_block();
            block.part().footer().level > 0 && builder.is_full(head.rows, head.largest)
        })
    }

    /// The block that begins with the current row, read to be copied, if it can be.
    fn copy(&mut self) -> Result<Option<BlockCopy>> {
        let Some(block) = self.cursor.whole_block() else { return Ok(None) };
        let map = &self.map;
        let number = |name: u32| map.get(name as usize).copied().filter(|n| *n != u32::MAX);
        let copy = block.copy(&number, &mut self.filters)?;
        // A column beside a constant of the same name has values that nobody may see.
        let hidden = |copy: &BlockCopy| self.constants().iter().any(|(name, _)| copy.has(*name));
        Ok(copy.filter(|copy| !hidden(copy)))
    }

    /// What streams are ordered by; labels of odd names can have the text of other labels.
    fn stream(&self) -> (&[u8], &[(String, Vec<u8>)]) {
        (&self.text, self.cursor.key().labels())
    }

    fn number(&self, name: u32) -> u32 {
        self.map.get(name as usize).copied().unwrap_or(u32::MAX)
    }

    /// The constant of the current row's stream under the output's number `name`.
    fn constant(&self, name: u32) -> Option<&[u8]> {
        let found = self.cursor.constants().iter().find(|(n, _)| self.number(*n) == name);
        found.map(|(_, value)| value.as_slice())
    }
}

struct Merge<'a, 'h, 'o> {
    /// Inputs that still have rows, in the order of their cuts.
    inputs: Vec<Input<'a>>,
    builder: PartBuilder<'o>,
    hooks: Hooks<'h>,
    work: MergeWork,
    held: StreamColumns,
    /// Rows encoded since the merge asked whether it may go on.
    unchecked: usize,
}

impl Merge<'_, '_, '_> {
    /// Writes the rows of the next stream; false if there is none.
    fn stream(&mut self) -> Result<bool> {
        let Some(first) = self.inputs.iter().min_by_key(|input| input.stream()) else {
            return Ok(false);
        };
        let (text, key) = (first.text.clone(), Arc::clone(first.cursor.key()));
        let mut total = 0;
        for input in &mut self.inputs {
            input.here = input.stream() == (&text, key.labels());
            total += if input.here { input.cursor.stream_rows() } else { 0 };
        }
        let full = |input: &Input<'_>| input.here && input.is_full(&self.builder);
        if !self.hooks.encode_all && self.inputs.iter().any(full) {
            self.blocks(&key)?;
        } else {
            self.rows(&key, total)?;
        }
        Ok(true)
    }

    /// Writes a stream whose rows are all encoded anew.
    fn rows(&mut self, key: &Arc<StreamKey>, total: u64) -> Result<()> {
        self.hold()?;
        if self.held.is_empty() {
            return Ok(());
        }
        let (constants, size) = self.constants(total);
        let given = constants.iter().map(|(name, value)| (*name, value.as_slice()));
        self.builder.begin_stream(key, given, size)?;
        while !self.held.is_empty() {
            self.write_held(&constants)?;
            self.hold()?;
        }
        Ok(())
    }

    /// Writes the rows that are held.
    fn write_held(&mut self, constants: &[(u32, Vec<u8>)]) -> Result<()> {
        self.builder.columns(&self.held, &|name| has(constants, name))?;
        self.held.clear();
        Ok(())
    }

    /// Writes a stream with blocks that are worth copying. Its constants are those that it has in
    /// all inputs, since a copied block holds no column for what was constant where it comes from.
    fn blocks(&mut self, key: &Arc<StreamKey>) -> Result<()> {
        let mut here = self.inputs.iter().filter(|input| input.here);
        let mut constants = here.next().map_or(Vec::new(), Input::constants);
        for other in here {
            constants.retain(|(name, value)| other.constant(*name) == Some(value));
        }
        let constants: Vec<(u32, Vec<u8>)> =
            constants.into_iter().map(|(name, value)| (name, value.to_vec())).collect();
        let given = constants.iter().map(|(name, value)| (*name, value.as_slice()));
        self.builder.begin_stream(key, given, StreamSize::default())?;
        while let Some(i) = next(&self.inputs) {
            if let Some(copy) = self.block(i)? {
                self.write_held(&constants)?;
                self.copy(i, copy)?;
                continue;
            }
            self.piece(i)?;
            if self.held.is_full() {
                self.write_held(&constants)?;
            }
        }
        self.write_held(&constants)
    }

    /// The block that begins with the current row of input `i`, to be copied, if it is full and
    /// comes before all rows of the other inputs.
    fn block(&mut self, i: usize) -> Result<Option<BlockCopy>> {
        let Some(input) = self.inputs.get(i) else { return Ok(None) };
        let Some(last) = input.cursor.whole_block().map(|b| b.head_of_block().max_time) else {
            return Ok(None);
        };
        let others = self.inputs.iter().enumerate().filter(|(j, other)| *j != i && other.here);
        let alone = others.into_iter().all(|(j, other)| (other.cursor.time(), j) > (last, i));
        if !alone || !input.is_full(&self.builder) {
            return Ok(None);
        }
        self.hooks.check.map_or(Ok(()), |check| check())?;
        self.inputs.get_mut(i).map_or(Ok(None), Input::copy)
    }

    /// Writes a block of input `i` as it is.
    fn copy(&mut self, i: usize, copy: BlockCopy) -> Result<()> {
        let Some(input) = self.inputs.get_mut(i) else { return Ok(()) };
        self.work.blocks_copied += 1;
        self.work.rows_copied += u64::from(copy.rows());
        self.work.bytes_copied += copy.len() as u64;
        self.builder.copy_block(copy, &input.constants())?;
        input.cursor.skip();
        self.step(i)
    }

    /// Holds the next rows of the stream, as many as there is room for.
    fn hold(&mut self) -> Result<()> {
        self.held.clear();
        while !self.held.is_full() {
            let Some(i) = next(&self.inputs) else { break };
            self.piece(i)?;
        }
        Ok(())
    }

    /// Holds the current row of input `i` and those behind it that are read together with it and
    /// come before all rows of the other inputs.
    fn piece(&mut self, i: usize) -> Result<()> {
        self.check_rows()?;
        let others = self.inputs.iter().enumerate().filter(|(j, other)| *j != i && other.here);
        let bound = others.map(|(j, other)| (other.cursor.time(), j)).min();
        let Some(input) = self.inputs.get_mut(i) else { return Ok(()) };
        input.cursor.open()?;
        let before = |time: &i64| bound.is_none_or(|bound| (*time, i) < bound);
        let rows = input.cursor.times().partition_point(before).max(1);
        input.cursor.take(rows, &input.map, &mut self.held);
        self.work.rows_encoded += rows as u64;
        self.unchecked += rows;
        self.step(i)
    }

    /// Asks whether the merge may go on, once in [`CHECK_ROWS`] rows that are encoded.
    fn check_rows(&mut self) -> Result<()> {
        if self.work.rows_encoded > 0 && self.unchecked < CHECK_ROWS {
            return Ok(());
        }
        self.unchecked = 0;
        self.hooks.check.map_or(Ok(()), |check| check())
    }

    /// The constants of the stream and how large the rest will be. Exact if all its rows are
    /// held; else what is constant in the held rows and in every input that has more of them.
    fn constants(&self, total: u64) -> (Vec<(u32, Vec<u8>)>, StreamSize) {
        let rest: Vec<&Input<'_>> = self.inputs.iter().filter(|input| input.here).collect();
        let holds =
            |name: u32, value: &[u8]| rest.iter().all(|input| input.constant(name) == Some(value));
        let found = self.held.constants().into_iter();
        let constants = found.filter(|(name, value)| holds(*name, value));
        let constants = constants.map(|(name, value)| (name, value.to_vec())).collect();
        let held = (self.held.len() as u64).max(1);
        let rows = if rest.is_empty() { held } else { total.max(held) };
        (constants, StreamSize { rows, largest: self.held.largest().saturating_mul(rows) / held })
    }

    /// Steps input `i` to its next row and forgets it behind the last.
    fn step(&mut self, i: usize) -> Result<()> {
        let Some(input) = self.inputs.get_mut(i) else { return Ok(()) };
        if !input.advance()? {
            self.inputs.remove(i);
        }
        Ok(())
    }
}

/// The input whose current row is the stream's next one: the earliest, of the oldest cut.
fn next(inputs: &[Input<'_>]) -> Option<usize> {
    let here = inputs.iter().enumerate().filter(|(_, input)| input.here);
    here.min_by_key(|(i, input)| (input.cursor.time(), *i)).map(|(i, _)| i)
}

/// Whether `name` is one of the constants, which ascend by name.
fn has(constants: &[(u32, Vec<u8>)], name: u32) -> bool {
    constants.binary_search_by_key(&name, |(name, _)| *name).is_ok()
}
