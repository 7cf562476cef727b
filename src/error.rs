//! One error type for the whole crate, each variant a sentence that a person can act on.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// The result of every fallible call of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// What can go wrong in a store.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused an operation on a file.
    Io {
        /// What was being done, as a verb: `open`, `read`, `append`, `sync`, `rename`.
        action: &'static str,
        /// The file or directory it was done to.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// Bytes on disk are not what was written.
    Corrupted(Corruption),
    /// The query text is not LogsQL, or asks for something that cannot be done.
    Query(QueryError),
    /// Another process holds the store for writing.
    Locked {
        /// The store's directory.
        path: PathBuf,
        /// Who holds it, as written into the lock file (`pid 4711`), or empty.
        holder: String,
    },
    /// The file was written by a newer version and needs a feature this version lacks.
    Unsupported {
        /// The file.
        path: PathBuf,
        /// What is not understood.
        what: String,
    },
    /// An entry is over a limit or has no valid time; it was not appended.
    Rejected {
        /// The reason.
        why: String,
    },
    /// An option has a value that cannot work.
    InvalidOption {
        /// The option's name.
        name: &'static str,
        /// Why the value cannot work.
        why: String,
    },
    /// A query or a write needed more memory than its limit allows.
    MemoryLimit {
        /// What needed the memory: a pipe's name, `buffer`.
        what: &'static str,
        /// The limit in bytes.
        limit_bytes: u64,
    },
    /// A query ran past its deadline.
    DeadlineExceeded,
    /// A query was cancelled through its handle.
    Cancelled,
    /// The write would have to wait, and the caller asked not to.
    Full,
    /// A write on a store opened read-only.
    ReadOnly,
    /// The store was closed.
    Closed,
    /// An earlier write failed in a way that makes further writes unsafe; queries still work.
    Poisoned {
        /// The failure that caused it.
        why: String,
    },
    /// The directory holds no store.
    NotAStore {
        /// The directory.
        path: PathBuf,
    },
    /// A bug of this crate that was kept from the host program.
    Internal {
        /// What happened.
        what: &'static str,
    },
}

/// Where bytes differ from what was written, and how it was noticed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Corruption {
    /// The damaged file.
    pub path: PathBuf,
    /// Offset in bytes of the damaged unit from the start of the file.
    pub offset: u64,
    /// What is wrong with it.
    pub what: String,
}

/// A query that cannot be run: where in its text, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueryError {
    /// The whole query text.
    pub query: String,
    /// Offset in bytes of the offending text from the start of the query.
    pub offset: usize,
    /// What is wrong, and what was expected.
    pub message: String,
    /// A suggestion, such as the name that was probably meant.
    pub hint: Option<String>,
}

/// Bytes that do not follow their encoding; the reader that knows file and offset turns it into
/// an [`Error::Corrupted`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Malformed(pub(crate) &'static str);

impl Malformed {
    /// Names the file and the offset at which the malformed unit begins.
    pub(crate) fn at(self, path: &Path, offset: u64) -> Error {
        Error::corrupted(path, offset, self.0)
    }
}

impl Error {
    /// An I/O failure of `action` on `path`.
    pub(crate) fn io(action: &'static str, path: &Path, source: io::Error) -> Error {
        Error::Io { action, path: path.to_path_buf(), source }
    }

    /// Damage at `offset` of `path`.
    pub(crate) fn corrupted(path: &Path, offset: u64, what: impl Into<String>) -> Error {
        Error::Corrupted(Corruption { path: path.to_path_buf(), offset, what: what.into() })
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Io { action, path, source } => {
                write!(f, "cannot {action} {}: {source}", path.display())
            }
            Error::Corrupted(c) => c.fmt(f),
            Error::Query(q) => q.fmt(f),
            Error::Locked { path, holder } if holder.is_empty() => {
                write!(f, "the store {} is open for writing elsewhere", path.display())
            }
            Error::Locked { path, holder } => {
                write!(f, "the store {} is open for writing by {holder}", path.display())
            }
            Error::Unsupported { path, what } => {
                write!(f, "{} needs a newer version of loglith: {what}", path.display())
            }
            Error::Rejected { why } => write!(f, "the entry was rejected: {why}"),
            Error::InvalidOption { name, why } => write!(f, "option {name}: {why}"),
            Error::MemoryLimit { what, limit_bytes } => {
                write!(f, "{what} needs more memory than its limit of {limit_bytes} bytes")
            }
            Error::DeadlineExceeded => f.write_str("the query ran past its deadline"),
            Error::Cancelled => f.write_str("the query was cancelled"),
            Error::Full => f.write_str("the buffer is full; try again when it has been flushed"),
            Error::ReadOnly => f.write_str("the store is open read-only"),
            Error::Closed => f.write_str("the store is closed"),
            Error::Poisoned { why } => {
                write!(f, "the store takes no more writes after a failure: {why}")
            }
            Error::NotAStore { path } => {
                write!(f, "{} holds no store", path.display())
            }
            Error::Internal { what } => write!(f, "internal error: {what}"),
        }
    }
}

impl fmt::Display for Corruption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is damaged at offset {}: {}", self.path.display(), self.offset, self.what)
    }
}

impl std::error::Error for QueryError {}

/// Bytes of a line that are shown on either side of a fault.
const SHOWN: usize = 80;

fn last_chars(text: &str) -> &str {
    text.get(text.ceil_char_boundary(text.len().saturating_sub(SHOWN))..).unwrap_or("")
}

/// The start of a text, and whether there is more.
fn first_chars(text: &str) -> (&str, bool) {
    let end = text.floor_char_boundary(SHOWN);
    (text.get(..end).unwrap_or(""), end < text.len())
}

impl fmt::Display for QueryError {
    /// The message, the line of the query, and a caret under the position.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let offset = self.query.floor_char_boundary(self.offset);
        let (before, after) = self.query.split_at(offset);
        let line_start = before.rfind('\n').map_or(0, |i| i + 1);
        let line_no = before.matches('\n').count() + 1;
        let head = before.get(line_start..).unwrap_or("");
        let tail = after.split('\n').next().unwrap_or("");
        let column = head.chars().count() + 1;
        writeln!(f, "{} (line {line_no}, column {column})", self.message)?;
        let (cut, head, tail) = (head.len() > SHOWN, last_chars(head), first_chars(tail));
        let (left, right) = (if cut { ".." } else { "" }, if tail.1 { ".." } else { "" });
        writeln!(f, "  {left}{head}{}{right}", tail.0)?;
        let pad: String = head.chars().map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
        write!(f, "  {}{pad}^", " ".repeat(left.len()))?;
        if let Some(hint) = &self.hint {
            write!(f, "\nhint: {hint}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}

impl From<QueryError> for Error {
    fn from(e: QueryError) -> Error {
        Error::Query(e)
    }
}
