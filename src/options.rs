//! Options of a store, of ingestion and of a query: every limit with its default and unit.
