#![no_main]

loglith_fuzz::target!("answer");
