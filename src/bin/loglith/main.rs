//! The command line `loglith`.

fn main() {}
