//! LAYER 6: composes the rooms: open, append, flush, query, verify, close.
