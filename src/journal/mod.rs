//! LAYER 3: the append-only record of acknowledged batches.

mod record;
