//! Shim over locks and atomics, so that schedule tests can swap them.
