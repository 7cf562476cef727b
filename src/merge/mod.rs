//! LAYER 5: several parts -> one.
