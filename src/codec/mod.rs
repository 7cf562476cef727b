//! LAYER 1: bytes <-> column values. Pure functions; one file per encoding.
