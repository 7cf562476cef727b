#![no_main]

loglith_fuzz::target!("remade_part");
