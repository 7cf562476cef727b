#![no_main]

loglith_fuzz::target!("stream_table");
