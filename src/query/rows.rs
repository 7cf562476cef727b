//! What a query gives back: rows one by one, or whole batches of columns.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use crossbeam::channel::{Receiver, bounded};

use super::batch::Batch;
use super::context::Flow;
use super::counters::QueryStats;
use super::exec::Execution;
use super::json;
use crate::error::{Corruption, Error, Result};

/// Batches that wait for the consumer; workers wait when it is full.
const QUEUE: usize = 4;

/// The rows of a query, made as they are asked for.
///
/// The query starts with the first call of [`next`](Iterator::next). Workers run at most a few
/// batches ahead. Dropping it ends the query and waits for its workers.
///
/// After an error the iterator ends.
#[derive(Debug)]
pub struct Rows {
    execution: Arc<Execution>,
    state: State,
    current: Option<(Arc<TextBatch>, Range<usize>)>,
}

#[derive(Debug)]
enum State {
    NotStarted,
    /// The whole answer, which is small.
    Ready(VecDeque<Batch>),
    Running {
        batches: Option<Receiver<Result<Batch>>>,
        driver: Option<JoinHandle<()>>,
    },
    Ended,
}

impl Rows {
    pub(crate) fn new(execution: Execution) -> Rows {
        Rows { execution: Arc::new(execution), state: State::NotStarted, current: None }
    }

    /// How much of the store the query has looked at so far. Reads headers of parts that the
    /// query itself did not need, to say how much there is.
    pub fn stats(&self) -> QueryStats {
        self.execution.stats()
    }

    /// The damaged places that the query has skipped so far, up to 100 of them; only with
    /// [`QueryOptions::skip_damaged`](crate::QueryOptions::skip_damaged).
    pub fn damage(&self) -> Vec<Corruption> {
        self.execution.damage()
    }

    /// Ends the query from another thread.
    pub fn cancel_handle(&self) -> CancelHandle {
        CancelHandle { cancelled: self.execution.cancelled().clone() }
    }

    /// The next batch of columns; `None` after the last one.
    pub(crate) fn next_batch(&mut self) -> Option<Result<Batch>> {
        loop {
            match &mut self.state {
                State::NotStarted => {
                    if let Err(e) = self.start() {
                        self.state = State::Ended;
                        return Some(Err(e));
                    }
                }
                State::Ready(batches) => return batches.pop_front().map(Ok),
                State::Ended => return None,
                State::Running { batches, driver } => {
                    let next = batches.as_ref().and_then(|b| b.recv().ok());
                    if let Some(Ok(batch)) = next {
                        return Some(Ok(batch));
                    }
                    *batches = None;
                    let ended = driver.take().map(JoinHandle::join);
                    self.state = State::Ended;
                    return match (next, ended) {
                        (Some(error), _) => Some(error),
                        (None, Some(Err(_))) => Some(Err(panicked())),
                        (None, _) => None,
                    };
                }
            }
        }
    }

    /// Runs a query whose answer is small at once, any other in a thread of its own.
    fn start(&mut self) -> Result<()> {
        if self.execution.has_small_answer() {
            let mut all = VecDeque::new();
            self.execution.run(&mut |batch| {
                all.push_back(batch);
                Ok(Flow::Continue)
            })?;
            self.state = State::Ready(all);
            return Ok(());
        }
        let (send, receive) = bounded(QUEUE);
        let execution = self.execution.clone();
        let work = move || {
            let result = execution.run(&mut |batch| {
                Ok(if send.send(Ok(batch)).is_ok() { Flow::Continue } else { Flow::Stop })
            });
            if let Err(e) = result {
                // Nobody listens any more if this fails.
                let _ = send.send(Err(e));
            }
        };
        let driver = std::thread::Builder::new().name("loglith-query".to_owned()).spawn(work);
        let driver = driver.map_err(|e| Error::io("start", "the thread of a query".as_ref(), e))?;
        self.state = State::Running { batches: Some(receive), driver: Some(driver) };
        Ok(())
    }
}

/// A worker of a query panicked: a bug of this crate, kept from the host program.
pub(crate) fn panicked() -> Error {
    Error::Internal { what: "a worker of a query panicked" }
}

impl Iterator for Rows {
    type Item = Result<Row>;

    fn next(&mut self) -> Option<Result<Row>> {
        loop {
            if let Some((batch, rows)) = &mut self.current
                && let Some(row) = rows.next()
            {
                return Some(Ok(Row { batch: batch.clone(), row }));
            }
            match self.next_batch()? {
                Ok(batch) => {
                    let rows = 0..batch.rows();
                    self.current = Some((Arc::new(TextBatch::new(&batch)), rows));
                }
                Err(e) => return Some(Err(e)),
            }
        }
    }
}

impl Drop for Rows {
    fn drop(&mut self) {
        self.execution.cancelled().store(true, Ordering::Relaxed);
        if let State::Running { batches, driver } = &mut self.state {
            // The driver may wait for room in the queue.
            *batches = None;
            if let Some(driver) = driver.take() {
                let _ = driver.join();
            }
        }
    }
}

/// Ends a query from another thread; it then fails with [`Error::Cancelled`].
#[derive(Debug, Clone)]
pub struct CancelHandle {
    cancelled: Arc<AtomicBool>,
}

impl CancelHandle {
    /// Ends the query soon. Has no effect on one that has ended.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }
}

/// A batch as texts.
#[derive(Debug)]
struct TextBatch {
    columns: Vec<(Arc<str>, TextColumn)>,
}

/// The values of a column, one after the other.
#[derive(Debug)]
enum TextColumn {
    Same(String),
    Each { text: String, ends: Vec<usize> },
}

impl TextBatch {
    fn new(batch: &Batch) -> TextBatch {
        let columns = batch.columns().iter().map(|(name, column)| {
            let text = match column {
                super::column::Column::Const(value) => {
                    TextColumn::Same(String::from_utf8_lossy(value).into_owned())
                }
                column => TextColumn::each(&column.as_text(batch.rows())),
            };
            (name.clone(), text)
        });
        TextBatch { columns: columns.collect() }
    }
}

impl TextColumn {
    /// Values that are not UTF-8 get U+FFFD where they are not.
    fn each(values: &crate::record::TextVec) -> TextColumn {
        if let Ok(text) = std::str::from_utf8(values.bytes()) {
            let ends: Vec<usize> = values.ends().iter().map(|e| *e as usize).collect();
            if ends.iter().all(|&end| text.is_char_boundary(end)) {
                return TextColumn::Each { text: text.to_owned(), ends };
            }
        }
        let (mut text, mut ends) = (String::new(), Vec::new());
        for value in values.iter() {
            text.push_str(&String::from_utf8_lossy(value));
            ends.push(text.len());
        }
        TextColumn::Each { text, ends }
    }

    fn get(&self, row: usize) -> &str {
        match self {
            TextColumn::Same(value) => value,
            TextColumn::Each { text, ends } => {
                let start = match row.checked_sub(1) {
                    Some(before) => ends.get(before).copied().unwrap_or(text.len()),
                    None => 0,
                };
                let end = ends.get(row).copied().unwrap_or(text.len());
                text.get(start..end).unwrap_or("")
            }
        }
    }
}

/// One row of an answer.
#[derive(Debug, Clone)]
pub struct Row {
    batch: Arc<TextBatch>,
    row: usize,
}

impl Row {
    /// Name and value of each field in the order of the answer's columns; the value of a field
    /// that the row lacks is empty.
    pub fn fields(&self) -> impl Iterator<Item = (&str, &str)> {
        self.batch.columns.iter().map(|(name, column)| (&**name, column.get(self.row)))
    }

    /// The value of a field; empty if the row lacks it.
    pub fn get(&self, name: &str) -> &str {
        let column = self.batch.columns.iter().find(|(n, _)| &**n == name);
        column.map_or("", |(_, column)| column.get(self.row))
    }
}

/// Appends a row as a JSON object on one line, without a line end. Fields without a value are
/// left out; all values are strings.
pub fn write_json(row: &Row, out: &mut Vec<u8>) {
    out.push(b'{');
    let mut first = true;
    for (name, value) in row.fields().filter(|(_, value)| !value.is_empty()) {
        if !first {
            out.push(b',');
        }
        first = false;
        json::push_string(out, name.as_bytes());
        out.push(b':');
        json::push_string(out, value.as_bytes());
    }
    out.push(b'}');
}
