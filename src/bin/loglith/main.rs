//! The command line `loglith`: the library's calls, one command each.
//!
//! `args` says what can be typed, `exit` how a run ends; the other modules are the commands.

mod args;
mod color;
mod demo;
mod demo_queries;
mod envelope;
mod exit;
mod hits;
mod ingest;
mod output;
mod query;
mod report;

use std::process::ExitCode;

use clap::Parser;

use args::{Arguments, Command};

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(e) => return exit::usage(&e),
    };
    let done = match arguments.command {
        Command::Ingest(a) => ingest::run(&a),
        Command::Query(a) => query::run(&a),
        Command::Compact(a) => report::compact(&a),
        Command::Inspect(a) => report::inspect(&a),
        Command::Verify(a) => report::verify(&a),
        Command::Repair(a) => report::repair(&a),
        Command::Demo(a) => demo::run(&a),
    };
    exit::code(done)
}
