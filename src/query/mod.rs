//! LAYER 5: LogsQL text -> rows.
