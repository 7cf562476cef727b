//! `loglith query`.

use std::io::{self, BufWriter, Write};

use loglith::ast::FieldPattern;
use loglith::{Pipe, Query, QueryOptions, Store, Timestamp};

use crate::args::{OutputFormat, QueryArgs};
use crate::color::Palette;
use crate::envelope;
use crate::exit::{Failure, Outcome, end, tell_opening};
use crate::hits;
use crate::output::Printer;

const WRITE_BUFFER_BYTES: usize = 64 << 10;

/// Runs one query, or all queries of a file.
pub(crate) fn run(args: &QueryArgs) -> Outcome {
    let store = Store::open_read_only(&args.store.store)?;
    let sound = tell_opening(&store);
    answer(args, &store).and_then(|()| end(sound))
}

fn answer(args: &QueryArgs, store: &Store) -> Outcome {
    let mut out = BufWriter::with_capacity(WRITE_BUFFER_BYTES, io::stdout().lock());
    if let Some(file) = &args.queries_file {
        return envelope::run(store, file, args, out);
    }
    let text = args.query.as_deref().unwrap_or_default();
    let mut query: Query = text.parse().map_err(loglith::Error::from)?;
    if let Some(limit) = args.limit {
        query.pipes.push(Pipe::Limit(limit));
    }
    let options = QueryOptions::new().skip_damaged(args.skip_damaged);
    let mut options = options.time_zone(&args.time_zone)?;
    if let Some(now) = &args.now {
        options = options.now(time(now)?);
    }
    let palette = Palette::new(args.color);
    if args.hits {
        return hits::run(store, &query, args, &options, palette, out);
    }
    if args.explain {
        write!(out, "{}", store.explain(&query))?;
        out.flush()?;
        return Ok(());
    }
    let mut rows = store.query_with(&query, &options)?;
    let mut printer =
        Printer::new(out, args.format.unwrap_or(OutputFormat::Json), palette, columns(&query));
    for row in rows.by_ref() {
        printer.row(&row?)?;
    }
    printer.finish()?;
    if args.stats {
        writeln!(io::stderr(), "{}", rows.stats())?;
    }
    let damage = rows.damage();
    if damage.is_empty() {
        return Ok(());
    }
    // Without a standard error the exit code has to say it.
    let mut err = io::stderr();
    let _ = damage.iter().try_for_each(|place| writeln!(err, "skipped: {place}"));
    let _ = match rows.stats().rows_missing {
        0 => writeln!(err, "warning: the answer may lack rows; nobody knows how many"),
        rows => writeln!(err, "warning: the answer may lack up to {rows} rows"),
    };
    Err(Failure::Damage)
}

/// The columns of a query's answer, where its last pipe that makes columns names them all.
fn columns(query: &Query) -> Option<Vec<String>> {
    let keeps_columns = |p: &&Pipe| matches!(p, Pipe::Limit(_) | Pipe::Offset(_) | Pipe::Filter(_));
    match query.pipes.iter().rev().find(|p| !keeps_columns(p))? {
        Pipe::Fields(patterns) => patterns
            .iter()
            .map(|p| match p {
                FieldPattern::Name(name) => Some(name.clone()),
                FieldPattern::Prefix(_) => None,
            })
            .collect(),
        Pipe::Stats { by, items } => {
            let keys = by.iter().map(|k| k.field.clone());
            Some(keys.chain(items.iter().map(|i| i.result.clone())).collect())
        }
        Pipe::Uniq(u) => Some(u.by.iter().chain(&u.hits).cloned().collect()),
        Pipe::Top(t) => Some(t.by.iter().chain([&t.hits]).chain(&t.rank).cloned().collect()),
        _ => None,
    }
}

/// A time of the command line.
pub(crate) fn time(text: &str) -> Result<Timestamp, Failure> {
    let why = || Failure::Usage(format!("{text} is not a time such as 2025-06-01T12:00:00Z"));
    Timestamp::parse(text).ok_or_else(why)
}
