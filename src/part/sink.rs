//! Where a part is written to, and what is read from it.

use std::path::Path;

use super::layout::Extent;
use crate::io::{FileWriter, checksum};
use crate::{Error, Result};

/// Bytes that are appended at the end: memory or a file.
pub(crate) trait ByteSink {
    /// Appends all of `bytes`.
    fn append(&mut self, bytes: &[u8]) -> Result<()>;
}

impl ByteSink for Vec<u8> {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.extend_from_slice(bytes);
        Ok(())
    }
}

/// A file of a disk as a sink.
#[derive(Debug)]
pub(crate) struct FileSink<'a> {
    /// The file, whose end is the start of the part.
    pub(crate) file: &'a mut dyn FileWriter,
    /// Its path, for errors.
    pub(crate) path: &'a Path,
}

impl ByteSink for FileSink<'_> {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.append(bytes).map_err(|e| Error::io("append", self.path, e))
    }
}

/// Appends smaller than this are gathered first.
const BUFFER: usize = 256 << 10;

/// A sink that knows its offset and gathers small appends.
pub(crate) struct Out<'a> {
    sink: &'a mut dyn ByteSink,
    buffer: Vec<u8>,
    at: u64,
}

impl<'a> Out<'a> {
    pub(crate) fn new(sink: &'a mut dyn ByteSink) -> Out<'a> {
        Out { sink, buffer: Vec::new(), at: 0 }
    }

    /// Bytes appended so far.
    pub(crate) fn at(&self) -> u64 {
        self.at
    }

    /// Appends bytes.
    pub(crate) fn put(&mut self, bytes: &[u8]) -> Result<()> {
        self.at += bytes.len() as u64;
        if self.buffer.len() + bytes.len() > BUFFER {
            self.sink.append(&self.buffer)?;
            self.buffer.clear();
        }
        if bytes.len() >= BUFFER {
            return self.sink.append(bytes);
        }
        self.buffer.extend_from_slice(bytes);
        Ok(())
    }

    /// Leaves out so many bytes, which the sink is not given.
    #[cfg(test)]
    pub(crate) fn skip(&mut self, bytes: u64) {
        self.at += bytes;
    }

    /// Appends a unit that is read as a whole, and says where it is.
    pub(crate) fn unit(&mut self, bytes: &[u8]) -> Result<Extent> {
        let extent = Extent { offset: self.at, len: bytes.len() as u64, checksum: checksum(bytes) };
        self.put(bytes)?;
        Ok(extent)
    }

    /// Hands everything to the sink.
    pub(crate) fn finish(self) -> Result<u64> {
        if !self.buffer.is_empty() {
            self.sink.append(&self.buffer)?;
        }
        Ok(self.at)
    }
}
