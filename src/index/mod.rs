//! LAYER 1: what lets a query skip work: tokenizer, filters, stream table.
