//! How a run ends: messages on the standard error, and the exit code.

use std::fmt;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use loglith::{Error, Store};

/// Why a command did not do what was asked.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The library refused or failed.
    Store(Error),
    /// A file of the user.
    File { action: &'static str, path: String, source: io::Error },
    /// The command line asks for something that makes no sense.
    Usage(String),
    /// The reader of our output has seen enough.
    OutputClosed,
    /// Our output cannot be written.
    Output(io::Error),
    /// Checks found damage, which was printed already.
    Damage,
}

/// What every command returns.
pub(crate) type Outcome = Result<(), Failure>;

const QUERY_FAILED: u8 = 1;
const USAGE: u8 = 2;
const INPUT_OUTPUT: u8 = 3;
const DAMAGED: u8 = 4;

impl Failure {
    /// A failure of `action` on a file of the user.
    pub(crate) fn file(action: &'static str, path: &Path, source: io::Error) -> Failure {
        Failure::File { action, path: path.display().to_string(), source }
    }

    fn exit_code(&self) -> u8 {
        match self {
            Failure::OutputClosed => 0,
            Failure::Usage(_) | Failure::Store(Error::InvalidOption { .. }) => USAGE,
            Failure::File { .. } | Failure::Output(_) => INPUT_OUTPUT,
            Failure::Damage | Failure::Store(Error::Corrupted(_)) => DAMAGED,
            Failure::Store(
                Error::Query(_)
                | Error::MemoryLimit { .. }
                | Error::DeadlineExceeded
                | Error::Cancelled,
            ) => QUERY_FAILED,
            Failure::Store(_) => INPUT_OUTPUT,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Store(e) => e.fmt(f),
            Failure::File { action, path, source } => write!(f, "cannot {action} {path}: {source}"),
            Failure::Usage(why) => f.write_str(why),
            Failure::OutputClosed => Ok(()),
            Failure::Output(e) => write!(f, "cannot write the output: {e}"),
            Failure::Damage => f.write_str("the store is damaged; rows may be missing"),
        }
    }
}

impl From<Error> for Failure {
    fn from(e: Error) -> Failure {
        Failure::Store(e)
    }
}

impl From<io::Error> for Failure {
    /// Errors of the standard output; those of files go through [`Failure::file`].
    fn from(e: io::Error) -> Failure {
        if e.kind() == io::ErrorKind::BrokenPipe {
            Failure::OutputClosed
        } else {
            Failure::Output(e)
        }
    }
}

/// Prints on the standard error what opening the store found. Give its result to
/// [`end`] when the command is done.
pub(crate) fn tell_opening(store: &Store) -> bool {
    let report = store.open_report();
    if !report.is_clean() || report.replayed_rows > 0 {
        // Without a standard error there is nobody to tell.
        let _ = write!(io::stderr(), "{report}");
    }
    report.damage.is_empty()
}

/// Success, unless opening found damage: then an answer may lack rows.
pub(crate) fn end(sound: bool) -> Outcome {
    if sound { Ok(()) } else { Err(Failure::Damage) }
}

/// Prints why a command failed, if it did.
pub(crate) fn code(outcome: Outcome) -> ExitCode {
    let Err(failure) = outcome else { return ExitCode::SUCCESS };
    if !matches!(failure, Failure::OutputClosed) {
        // Nothing is left to do if even the standard error is closed.
        let _ = writeln!(io::stderr(), "error: {failure}");
    }
    ExitCode::from(failure.exit_code())
}

/// Prints a usage error, or the help that was asked for.
pub(crate) fn usage(e: &clap::Error) -> ExitCode {
    let _ = e.print();
    if e.use_stderr() { ExitCode::from(USAGE) } else { ExitCode::SUCCESS }
}
