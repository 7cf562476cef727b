#![no_main]

loglith_fuzz::target!("part");
