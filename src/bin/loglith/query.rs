//! `loglith query`.

use std::io::{self, BufWriter, Write};

use loglith::{Pipe, Query, QueryOptions, Store, Timestamp};

use crate::args::QueryArgs;
use crate::envelope;
use crate::exit::{Failure, Outcome};
use crate::output::Printer;

const WRITE_BUFFER_BYTES: usize = 64 << 10;

/// Runs one query, or all queries of a file.
pub(crate) fn run(args: &QueryArgs) -> Outcome {
    let store = Store::open_read_only(&args.store.store)?;
    let out = BufWriter::with_capacity(WRITE_BUFFER_BYTES, io::stdout().lock());
    if let Some(file) = &args.queries_file {
        return envelope::run(&store, file, args.repeat, out);
    }
    let text = args.query.as_deref().unwrap_or_default();
    let mut query: Query = text.parse().map_err(loglith::Error::from)?;
    if let Some(limit) = args.limit {
        query.pipes.push(Pipe::Limit(limit));
    }
    let mut options = QueryOptions::new();
    if let Some(now) = &args.now {
        options = options.now(time(now)?);
    }
    let mut rows = store.query_with(&query, &options)?;
    let mut printer = Printer::new(out, args.format);
    for row in rows.by_ref() {
        printer.row(&row?)?;
    }
    printer.finish()?;
    if args.stats {
        writeln!(io::stderr(), "{}", rows.stats())?;
    }
    Ok(())
}

/// A time of the command line.
pub(crate) fn time(text: &str) -> Result<Timestamp, Failure> {
    let why = || Failure::Usage(format!("{text} is not a time such as 2025-06-01T12:00:00Z"));
    Timestamp::parse(text).ok_or_else(why)
}
