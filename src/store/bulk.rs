//! Many lines at once: parsing and encoding side by side, rows in the order of the input.

use std::io::Read;
use std::sync::Arc;

use crossbeam::channel::{Receiver, bounded};
use memchr::{memchr, memrchr};

use crate::error::{Error, Result};
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{Condvar, Mutex, MutexGuard};

/// Chunks of at most so many bytes, which keep workers busy and make parts of a good size.
const MAX_CHUNK_BYTES: usize = 16 << 20;
/// A worker holds a chunk and its rows; chunks being read and waiting come on top, so all of them
/// are about so many chunks.
const CHUNKS_IN_MEMORY: u64 = 16;

/// Input is cut at line ends into chunks of about this many bytes; a chunk is parsed and encoded
/// by one worker and becomes one part for each day in it.
pub(crate) fn chunk_bytes(memory_limit_bytes: u64) -> usize {
    let share = usize::try_from(memory_limit_bytes / CHUNKS_IN_MEMORY).unwrap_or(usize::MAX);
    share.min(MAX_CHUNK_BYTES)
}

/// A piece of the input that begins and ends at a line's end.
#[derive(Debug)]
pub(crate) struct Chunk {
    /// Its place among the chunks.
    pub(crate) index: u64,
    held: Held,
    spare: Spare,
}

/// A buffer, all of which was written before, and how much of it is in use.
#[derive(Debug, Default)]
struct Held {
    buffer: Vec<u8>,
    len: usize,
}

/// Buffers of chunks that are done: fresh memory costs a page fault for every 4 KiB.
type Spare = Arc<Mutex<Vec<Vec<u8>>>>;

impl Chunk {
    /// Its bytes. A line over the limit is cut behind the limit, so that its parser rejects it.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.held.bytes()
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        self.spare.lock().push(std::mem::take(&mut self.held.buffer));
    }
}

impl Held {
    fn bytes(&self) -> &[u8] {
        self.buffer.get(..self.len).unwrap_or(&[])
    }

    /// Appends up to `most` bytes of `input`; fewer only at its end.
    fn read(&mut self, input: &mut impl Read, most: usize) -> std::io::Result<usize> {
        let (from, end) = (self.len, self.len + most);
        if self.buffer.len() < end {
            self.buffer.resize(end, 0);
        }
        while self.len < end {
            match input.read(self.buffer.get_mut(self.len..end).unwrap_or(&mut [])) {
                Ok(0) => break,
                Ok(read) => self.len += read,
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(self.len - from)
    }

    fn put(&mut self, bytes: &[u8]) {
        let end = self.len + bytes.len();
        if self.buffer.len() < end {
            self.buffer.resize(end, 0);
        }
        if let Some(to) = self.buffer.get_mut(self.len..end) {
            to.copy_from_slice(bytes);
        }
        self.len = end;
    }

    fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    /// Drops the first bytes.
    fn skip(&mut self, count: usize) {
        self.buffer.copy_within(count..self.len, 0);
        self.len -= count;
    }
}

/// Lets workers pass one after the other, in the order of their chunks, as long as all of them
/// succeed.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    turn: Mutex<Turn>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Turn {
    next: u64,
    /// Whether a chunk has failed, so that none behind it may pass.
    failed: bool,
}

/// The right to pass once. Dropping it fails, and lets the next know, so that an error of one
/// worker never stops the others.
#[derive(Debug)]
pub(crate) struct Ticket<'a> {
    turns: &'a Turns,
    index: u64,
    passed: bool,
}

impl Turns {
    /// The ticket of a chunk.
    pub(crate) fn ticket(&self, index: u64) -> Ticket<'_> {
        Ticket { turns: self, index, passed: false }
    }

    /// Waits for the turn of a chunk.
    fn wait(&self, index: u64) -> MutexGuard<'_, Turn> {
        let mut turn = self.turn.lock();
        while turn.next != index {
            self.changed.wait(&mut turn);
        }
        turn
    }
}

impl Ticket<'_> {
    /// Waits until every chunk before has passed, runs `f`, and lets the next pass. Runs nothing
    /// and gives `None` if a chunk before has failed.
    ///
    /// # Errors
    /// Those of `f`.
    pub(crate) fn pass<T>(mut self, f: impl FnOnce() -> Result<T>) -> Result<Option<T>> {
        if self.turns.wait(self.index).failed {
            return Ok(None);
        }
        let value = f()?;
        self.passed = true;
        Ok(Some(value))
    }
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        let mut turn = self.turns.wait(self.index);
        turn.next = self.index + 1;
        turn.failed |= !self.passed;
        drop(turn);
        self.turns.changed.notify_all();
    }
}

/// How an input is cut and worked on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    /// Threads.
    pub(crate) workers: usize,
    /// Bytes of a chunk.
    pub(crate) chunk_bytes: usize,
    /// Bytes of the longest line.
    pub(crate) longest: usize,
}

/// Reads `input`, which `head` begins, in chunks and hands them to threads running `work`. Reads
/// no further when one of them has failed. Gives the first error, of the input or of a worker.
pub(crate) fn run(
    input: impl Read,
    head: Vec<u8>,
    plan: Plan,
    work: impl Fn(Chunk) -> Result<()> + Sync,
) -> Result<()> {
    let (sender, receiver) = bounded::<Chunk>(1);
    let failed = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (work, failed) = (&work, &failed);
        let threads: Vec<_> = (0..plan.workers.max(1))
            .map(|_| {
                let receiver = receiver.clone();
                scope.spawn(move || consume(&receiver, work, failed))
            })
            .collect();
        drop(receiver);
        let spare = Spare::default();
        let mut chunks =
            Chunks { input, plan, carry: head, skipping: false, spare: Arc::clone(&spare) };
        let mut result = Ok(());
        for index in 0.. {
            if failed.load(Ordering::Acquire) {
                break;
            }
            match chunks.next() {
                Ok(Some(held)) => {
                    let chunk = Chunk { index, held, spare: Arc::clone(&spare) };
                    if sender.send(chunk).is_err() {
                        break;
                    }
                }
                Ok(None) => break,
                Err(e) => {
                    result = Err(e);
                    break;
                }
            }
        }
        drop(sender);
        for thread in threads {
            let ended = thread.join().unwrap_or_else(|_| {
                Err(Error::Poisoned { why: "a worker of an ingestion panicked".to_owned() })
            });
            result = result.and(ended);
        }
        result
    })
}

/// After an error the chunks that were read already still take their turns.
fn consume(
    chunks: &Receiver<Chunk>,
    work: &(impl Fn(Chunk) -> Result<()> + Sync),
    failed: &AtomicBool,
) -> Result<()> {
    let mut result = Ok(());
    for chunk in chunks {
        let ended = work(chunk);
        failed.fetch_or(ended.is_err(), Ordering::AcqRel);
        result = result.and(ended);
    }
    result
}

/// Cuts an input at line ends.
struct Chunks<R> {
    input: R,
    plan: Plan,
    carry: Vec<u8>,
    /// Whether the rest of a line over the limit is still to be passed over.
    skipping: bool,
    spare: Spare,
}

impl<R: Read> Chunks<R> {
    fn next(&mut self) -> Result<Option<Held>> {
        loop {
            let buffer = self.spare.lock().pop().unwrap_or_default();
            let mut held = Held { buffer, len: 0 };
            held.put(&self.carry);
            self.carry.clear();
            let got = held
                .read(&mut self.input, self.plan.chunk_bytes)
                .map_err(|e| Error::io("read", std::path::Path::new("the input"), e))?;
            let ended = got < self.plan.chunk_bytes;
            if self.skipping {
                let bytes = held.bytes();
                let line_end = memchr(b'\n', bytes).map_or(bytes.len(), |i| i + 1);
                self.skipping = line_end == bytes.len() && !bytes.ends_with(b"\n");
                held.skip(line_end);
            }
            if ended {
                return Ok((held.len > 0).then_some(held));
            }
            match memrchr(b'\n', held.bytes()) {
                Some(i) => {
                    let end = i + 1;
                    self.carry.extend_from_slice(held.bytes().get(end..).unwrap_or(&[]));
                    held.truncate(end);
                    return Ok(Some(held));
                }
                None if held.len > self.plan.longest => {
                    held.truncate(self.plan.longest + 1);
                    held.put(b"\n");
                    self.skipping = true;
                    return Ok(Some(held));
                }
                None => {
                    held.buffer.truncate(held.len);
                    self.carry = held.buffer;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONGEST: usize = 4 << 20;
    const CHUNK_BYTES: usize = 16 << 20;

    fn plan(workers: usize) -> Plan {
        Plan { workers, chunk_bytes: CHUNK_BYTES, longest: LONGEST }
    }

    #[test]
    fn chunks_end_at_line_ends_and_pass_in_order() {
        let line = [vec![b'x'; 999], vec![b'\n']].concat();
        let input: Vec<u8> = line.repeat(70_000);
        let turns = Turns::default();
        let seen = Mutex::new(Vec::new());
        run(input.as_slice(), b"first\n".to_vec(), plan(3), |chunk| {
            assert!(chunk.bytes().ends_with(b"\n"));
            let ticket = turns.ticket(chunk.index);
            ticket.pass(|| {
                seen.lock().push((chunk.index, chunk.bytes().len()));
                Ok(())
            })?;
            Ok(())
        })
        .unwrap();
        let seen = seen.into_inner();
        assert!(seen.iter().enumerate().all(|(i, (index, _))| i as u64 == *index));
        assert_eq!(seen.iter().map(|(_, len)| len).sum::<usize>(), input.len() + 6);
    }

    #[test]
    fn an_error_ends_the_run_and_stops_nobody() {
        let turns = Turns::default();
        let (passed, begun) = (Mutex::new(Vec::new()), Mutex::new(0));
        let input = std::io::Read::take(std::io::repeat(b'\n'), CHUNK_BYTES as u64 * 40);
        let refused = run(input, Vec::new(), plan(2), |chunk| {
            let ticket = turns.ticket(chunk.index);
            *begun.lock() += 1;
            if chunk.index == 1 {
                return Err(Error::Closed);
            }
            ticket.pass(|| {
                passed.lock().push(chunk.index);
                Ok(())
            })?;
            Ok(())
        });
        assert!(matches!(refused, Err(Error::Closed)));
        assert_eq!(*passed.lock(), [0], "nothing behind a failure");
        assert!(*begun.lock() < 10, "the rest of the input is not read");
    }

    #[test]
    fn a_line_without_end_is_cut_behind_the_limit() {
        let long = vec![b'y'; CHUNK_BYTES * 3 + 5];
        let input = [b"a\n".to_vec(), long.clone(), b"\nb\nc".to_vec()].concat();
        assert_eq!(line_lengths(input.as_slice(), Vec::new()), [1, LONGEST + 1, 1, 1]);
        let head = b"1\n22\n333".to_vec();
        let rest = [long, b"\nb".to_vec()].concat();
        assert_eq!(line_lengths(rest.as_slice(), head), [1, 2, LONGEST + 1, 1]);
    }

    fn line_lengths(input: &[u8], head: Vec<u8>) -> Vec<usize> {
        let lines = Mutex::new(Vec::new());
        run(input, head, plan(1), |chunk| {
            let split = chunk.bytes().split(|b| *b == b'\n').filter(|l| !l.is_empty());
            lines.lock().extend(split.map(<[u8]>::len));
            Ok(())
        })
        .unwrap();
        lines.into_inner()
    }
}
