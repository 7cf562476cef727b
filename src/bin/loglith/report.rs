//! `loglith compact`, `inspect`, `repair` and `verify`.

use std::io::{self, IsTerminal, Write};

use indicatif::ProgressBar;
use loglith::Store;

use crate::args::{CompactArgs, InspectArgs, RepairArgs, StoreArgs};
use crate::exit::{Failure, Outcome, end, tell_opening};

/// Flushes, merges, and prints what that did.
pub(crate) fn compact(args: &CompactArgs) -> Outcome {
    // A mistyped name must not make a store.
    drop(Store::open_read_only(&args.store.store)?);
    let options = Store::options();
    let options = match args.level {
        Some(level) => options.merge_level(level),
        None => options,
    };
    let store = options.open(&args.store.store)?;
    let sound = tell_opening(&store);
    let report = store.compact()?;
    // Merges leave damaged parts alone, and go on.
    let damage = store.inspect()?.damage;
    store.close()?;
    writeln!(io::stdout(), "{report}")?;
    for place in &damage {
        // Without a standard error there is nobody to tell.
        let _ = writeln!(io::stderr(), "damage: {place}");
    }
    end(sound && damage.is_empty())
}

/// Prints what the store, or one part of it, consists of.
pub(crate) fn inspect(args: &InspectArgs) -> Outcome {
    let store = Store::open_read_only(&args.store.store)?;
    let sound = tell_opening(&store);
    let mut out = io::stdout().lock();
    match args.part {
        Some(id) => {
            let why = || Failure::Usage(format!("the store has no part {id:016x}"));
            writeln!(out, "{}", store.inspect_part(id)?.ok_or_else(why)?)?;
        }
        None => {
            let inspection = store.inspect()?;
            writeln!(out, "{inspection}")?;
            return end(sound && inspection.damage.is_empty());
        }
    }
    end(sound)
}

/// Saves what is left of a damaged store, and says what is lost.
pub(crate) fn repair(args: &RepairArgs) -> Outcome {
    let report = Store::repair(&args.store.store, args.accept_loss)?;
    writeln!(io::stdout(), "{report}")?;
    if report.is_complete() {
        return Ok(());
    }
    // Without a standard error the exit code has to say it.
    let _ = writeln!(io::stderr(), "run it with --accept-loss to have queries answer without them");
    Err(Failure::Damage)
}

/// Reads everything and checks it.
pub(crate) fn verify(args: &StoreArgs) -> Outcome {
    let store = Store::open_read_only(&args.store)?;
    let bar = if io::stderr().is_terminal() { ProgressBar::new(0) } else { ProgressBar::hidden() };
    let report = store.verify(&mut |progress| {
        bar.set_length(progress.parts_total);
        bar.set_position(progress.parts_done);
        true
    })?;
    bar.finish_and_clear();
    writeln!(io::stdout(), "{report}")?;
    if report.is_clean() { Ok(()) } else { Err(Failure::Damage) }
}
