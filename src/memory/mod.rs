//! LAYER 3: rows that are searchable but not yet on disk.
