//! Many lines at once: parsing and encoding side by side, rows in the order of the input.

use std::io::Read;
use std::sync::Arc;

use crossbeam::channel::{Receiver, bounded};
use memchr::{memchr, memrchr};

use crate::error::{Error, Result};
use crate::sync::{Condvar, Mutex};

/// Input is cut at line ends into chunks of about this many bytes; a chunk is parsed and encoded
/// by one worker and becomes one part for each day in it.
pub(crate) const CHUNK_BYTES: usize = 16 << 20;

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

/// Lets workers pass one after the other, in the order of their chunks.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    next: Mutex<u64>,
    changed: Condvar,
}

/// The right to pass; dropping it passes, so that an error of one worker never stops the others.
#[derive(Debug)]
pub(crate) struct Ticket<'a> {
    turns: &'a Turns,
    index: u64,
}

impl Turns {
    /// The ticket of a chunk.
    pub(crate) fn ticket(&self, index: u64) -> Ticket<'_> {
        Ticket { turns: self, index }
    }

    fn wait(&self, index: u64) {
        let mut next = self.next.lock();
        while *next != index {
            self.changed.wait(&mut next);
        }
    }
}

impl Ticket<'_> {
    /// Waits until every chunk before has passed, runs `f`, and lets the next pass.
    pub(crate) fn pass<T>(self, f: impl FnOnce() -> T) -> T {
        self.turns.wait(self.index);
        f()
    }
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        self.turns.wait(self.index);
        *self.turns.next.lock() = self.index + 1;
        self.turns.changed.notify_all();
    }
}

/// Reads `input`, which `head` begins, in chunks and hands them to `workers` threads running
/// `work`; lines are at most `longest` bytes. Gives the first error, of the input or of a worker.
pub(crate) fn run(
    input: impl Read,
    workers: usize,
    longest: usize,
    head: Vec<u8>,
    work: impl Fn(Chunk) -> Result<()> + Sync,
) -> Result<()> {
    let (sender, receiver) = bounded::<Chunk>(1);
    std::thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = (0..workers.max(1))
            .map(|_| {
                let receiver = receiver.clone();
                scope.spawn(move || consume(&receiver, work))
            })
            .collect();
        drop(receiver);
        let spare = Spare::default();
        let mut chunks =
            Chunks { input, longest, carry: head, skipping: false, spare: Arc::clone(&spare) };
        let mut result = Ok(());
        for index in 0.. {
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

/// After an error the remaining chunks still take their turns, without being worked on.
fn consume(chunks: &Receiver<Chunk>, work: &(impl Fn(Chunk) -> Result<()> + Sync)) -> Result<()> {
    let mut result = Ok(());
    for chunk in chunks {
        let ended = work(chunk);
        if result.is_ok() {
            result = ended;
        }
    }
    result
}

/// Cuts an input at line ends.
struct Chunks<R> {
    input: R,
    longest: usize,
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
                .read(&mut self.input, CHUNK_BYTES)
                .map_err(|e| Error::io("read", std::path::Path::new("the input"), e))?;
            let ended = got < CHUNK_BYTES;
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
                None if held.len > self.longest => {
                    held.truncate(self.longest + 1);
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

    #[test]
    fn chunks_end_at_line_ends_and_pass_in_order() {
        let line = [vec![b'x'; 999], vec![b'\n']].concat();
        let input: Vec<u8> = line.repeat(70_000);
        let turns = Turns::default();
        let seen = Mutex::new(Vec::new());
        run(input.as_slice(), 3, LONGEST, b"first\n".to_vec(), |chunk| {
            assert!(chunk.bytes().ends_with(b"\n"));
            let ticket = turns.ticket(chunk.index);
            ticket.pass(|| seen.lock().push((chunk.index, chunk.bytes().len())));
            Ok(())
        })
        .unwrap();
        let seen = seen.into_inner();
        assert!(seen.iter().enumerate().all(|(i, (index, _))| i as u64 == *index));
        assert_eq!(seen.iter().map(|(_, len)| len).sum::<usize>(), input.len() + 6);
    }

    #[test]
    fn an_error_ends_the_run_and_stops_nobody() {
        let input = vec![b'\n'; CHUNK_BYTES * 3];
        let turns = Turns::default();
        let refused = run(input.as_slice(), 2, LONGEST, Vec::new(), |chunk| {
            let _ticket = turns.ticket(chunk.index);
            if chunk.index == 0 { Err(Error::Closed) } else { Ok(()) }
        });
        assert!(matches!(refused, Err(Error::Closed)));
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
        run(input, 1, LONGEST, head, |chunk| {
            let split = chunk.bytes().split(|b| *b == b'\n').filter(|l| !l.is_empty());
            lines.lock().extend(split.map(<[u8]>::len));
            Ok(())
        })
        .unwrap();
        lines.into_inner()
    }
}
