//! What a query gives back: rows one by one, or whole batches of columns.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use crossbeam::channel::{Receiver, bounded};

use super::answer::{Columns, Row};
use super::batch::Batch;
use super::context::Flow;
use super::counters::QueryStats;
use super::exec::Execution;
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
    current: Option<Columns>,
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

    /// The next rows as columns, some thousands at a time: what programs need that look at few of
    /// the fields, or hand columns on. Rows that were taken one by one are not among them. `None`
    /// after the last ones.
    ///
    /// # Errors
    /// Those of the query, after which it ends.
    pub fn next_columns(&mut self) -> Option<Result<Columns>> {
        loop {
            match self.current.take().filter(|columns| !columns.is_empty()) {
                Some(rest) => return Some(Ok(rest)),
                None => match self.next_batch()? {
                    Ok(batch) => self.current = Some(Columns::new(batch)),
                    Err(e) => return Some(Err(e)),
                },
            }
        }
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
            if let Some(row) = self.current.as_mut().and_then(Columns::take_row) {
                return Some(Ok(row));
            }
            match self.next_batch()? {
                Ok(batch) => self.current = Some(Columns::new(batch)),
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
