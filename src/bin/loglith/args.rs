//! What can be typed.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};

use loglith::{Durability, Query, ast};

use crate::color::ColorChoice;
use crate::hits;

/// A columnar store for logs, queried with LogsQL.
#[derive(Debug, Parser)]
#[command(
    version,
    after_help = "\
Exit codes:
  0  done
  1  the query was refused or failed
  2  the command line is wrong
  3  a file or directory cannot be used, or the store is open for writing elsewhere
  4  the store is damaged"
)]
pub(crate) struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Add log entries to a store, which is created if it is missing
    Ingest(IngestArgs),
    /// Run a LogsQL query and print its rows
    Query(QueryArgs),
    /// Write everything to disk, merge the parts of each day, and report
    Compact(CompactArgs),
    /// Show days, parts, streams and what the columns cost
    Inspect(InspectArgs),
    /// Check every byte of a store against its checksums
    Verify(StoreArgs),
    /// Save what is left of a damaged store
    Repair(RepairArgs),
    /// Load real logs into a store and run ten queries on them
    Demo(DemoArgs),
}

#[derive(Debug, Args)]
pub(crate) struct StoreArgs {
    /// Directory of the store
    #[arg(long, value_name = "DIR")]
    pub(crate) store: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct IngestArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// How the entries are written: one JSON object a line
    #[arg(long, value_enum, default_value = "json")]
    pub(crate) format: InputFormat,
    /// Fields that identify a source of logs, such as app,host
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    pub(crate) stream_fields: Vec<String>,
    /// Field that holds the time
    #[arg(long, value_name = "F")]
    pub(crate) time_field: Option<String>,
    /// Field that holds the message
    #[arg(long, value_name = "F")]
    pub(crate) msg_field: Option<String>,
    /// What a row that was acknowledged survives
    #[arg(long, value_enum, default_value = "process")]
    pub(crate) durability: DurabilityChoice,
    /// Print, each time when more rows are acknowledged, how many are so far: one number a line.
    /// The report goes to the standard error then. Rows of a large file are acknowledged when
    /// they are in synced part files, whatever the durability
    #[arg(long)]
    pub(crate) ack: bool,
    /// Memory of the store, such as 64MiB; rows wait for part files in a quarter of it
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) memory_limit: Option<u64>,
    /// Rows reach part files after this time at the latest, such as 10s
    #[arg(long, value_name = "D", value_parser = hits::step)]
    pub(crate) flush_interval: Option<Duration>,
    /// Level of zstd in the parts that this makes, which are to be merged: higher is smaller and
    /// slower to make
    #[arg(long, value_name = "1-19", value_parser = clap::value_parser!(u8).range(1..=19))]
    pub(crate) level: Option<u8>,
    /// Files to read, also compressed with zstd; - is the standard input
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct CompactArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// Level of zstd in the parts that this makes; higher is smaller and slower to make
    #[arg(long, value_name = "1-19", value_parser = clap::value_parser!(u8).range(1..=19))]
    pub(crate) level: Option<u8>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum DurabilityChoice {
    /// Nothing but a regular end: rows are in memory until they are flushed
    Buffered,
    /// The death of the process: rows are with the operating system
    Process,
    /// Loss of power: rows are on the medium
    Sync,
}

impl From<DurabilityChoice> for Durability {
    fn from(choice: DurabilityChoice) -> Durability {
        match choice {
            DurabilityChoice::Buffered => Durability::Buffered,
            DurabilityChoice::Process => Durability::Process,
            DurabilityChoice::Sync => Durability::Sync,
        }
    }
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum InputFormat {
    /// One JSON object a line
    Json,
}

#[derive(Debug, Args)]
pub(crate) struct QueryArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// How rows are printed: json if it is left out. With --hits, print the bars as rows
    #[arg(long, value_enum)]
    pub(crate) format: Option<OutputFormat>,
    /// Print at most this many rows: the newest ones, where the query does not sort
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<u64>,
    /// The time that `now` and relative times mean, in RFC 3339
    #[arg(long, value_name = "T")]
    pub(crate) now: Option<String>,
    /// The time zone of times without one and of days: UTC, local, +02:00, Europe/Berlin
    #[arg(long, value_name = "ZONE", default_value = "UTC", allow_hyphen_values = true)]
    pub(crate) time_zone: String,
    /// Colours: auto is "on a terminal, unless NO_COLOR is set"
    #[arg(long, value_enum, default_value = "auto", value_name = "WHEN")]
    pub(crate) color: ColorChoice,
    /// Print how the query would run instead of running it
    #[arg(long, conflicts_with_all = ["queries_file", "hits"])]
    pub(crate) explain: bool,
    /// Draw how many rows there are over time instead of printing them
    #[arg(long, conflicts_with = "queries_file")]
    pub(crate) hits: bool,
    /// Width of a bar of --hits, such as 5m; chosen to fit without it
    #[arg(long, value_name = "D", requires = "hits", value_parser = hits::step)]
    pub(crate) step: Option<Duration>,
    /// Draw each value of this field by itself
    #[arg(long, value_name = "FIELD", requires = "hits")]
    pub(crate) by: Option<String>,
    /// Answer from what can be read where the store is damaged; says on the standard error how
    /// many rows may be missing, and exits with 4
    #[arg(long, conflicts_with_all = ["queries_file", "hits"])]
    pub(crate) skip_damaged: bool,
    /// Print to the standard error how much the query read
    #[arg(long)]
    pub(crate) stats: bool,
    /// Print one JSON line for each query of --queries-file
    #[arg(long, requires = "queries_file", conflicts_with = "query")]
    pub(crate) envelope: bool,
    /// File with one {"query":"...","now":"..."} a line; now may be left out
    #[arg(long, value_name = "F", conflicts_with_all = ["query", "limit", "stats", "now"],
          requires = "envelope")]
    pub(crate) queries_file: Option<PathBuf>,
    /// Run each query of the file this often
    #[arg(long, value_name = "N", default_value_t = 1, requires = "queries_file",
          value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) repeat: u32,
    /// LogsQL; put -- in front of it if it starts with -
    #[arg(required_unless_present = "queries_file")]
    pub(crate) query: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, ValueEnum)]
pub(crate) enum OutputFormat {
    /// One JSON object a line, every value a string
    Json,
    /// One line of names, then one of values for each row
    Csv,
    /// name=value pairs
    Logfmt,
    /// Columns for the eye
    Table,
    /// The message of each row, or its values where it has none
    Raw,
}

#[derive(Debug, Args)]
pub(crate) struct InspectArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// Only this part, by its id as `inspect` shows it: hexadecimal digits
    #[arg(long, value_name = "P", value_parser = part_id)]
    pub(crate) part: Option<u64>,
}

fn part_id(text: &str) -> Result<u64, String> {
    u64::from_str_radix(text, 16).map_err(|e| e.to_string())
}

/// A size as the language writes them: `16MB`, `1.5GiB`, `1_000_000`.
fn size(text: &str) -> Result<u64, String> {
    let why = || format!("{text} is not a size such as 64MiB, 1.5GB or 1000000");
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '.' || c == '_';
    if text.is_empty() || !text.chars().all(is_word) {
        return Err(why());
    }
    let query: Query = format!("* | limit {text}").parse().map_err(|_| why())?;
    match query.pipes.as_slice() {
        [ast::Pipe::Limit(bytes)] => Ok(*bytes),
        _ => Err(why()),
    }
}

#[derive(Debug, Args)]
pub(crate) struct RepairArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// Let queries answer without the rows that are lost for good
    #[arg(long)]
    pub(crate) accept_loss: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Directory of the store; the default one is made anew each time
    #[arg(long, value_name = "DIR")]
    pub(crate) store: Option<PathBuf>,
    /// Directory of the logs
    #[arg(long, value_name = "DIR")]
    pub(crate) logs: Option<PathBuf>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn definition_is_sound() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn queries_may_start_with_a_dash() {
        let line = ["loglith", "query", "--store", "s", "--", "-error"];
        let Command::Query(a) = Arguments::try_parse_from(line).unwrap().command else {
            panic!("a query")
        };
        assert_eq!(a.query.as_deref(), Some("-error"));
    }

    #[test]
    fn sizes_are_those_of_the_language() {
        let sizes = [("16MB", 16_000_000), ("64MiB", 64 << 20), ("1.5KB", 1_500), ("1000", 1_000)];
        for (text, bytes) in sizes {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
        for text in ["", "-1", "16 MB", "16XB", "1.0005KB", "x", "1 | offset 2", "inf"] {
            assert!(size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn envelope_needs_a_file() {
        let line = ["loglith", "query", "--store", "s", "--envelope", "*"];
        assert!(Arguments::try_parse_from(line).is_err());
        let line = ["loglith", "query", "--store", "s", "--envelope", "--queries-file", "f"];
        assert!(Arguments::try_parse_from(line).is_ok());
        assert!(Arguments::try_parse_from(["loglith", "query", "--store", "s"]).is_err());
    }
}
