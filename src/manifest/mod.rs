//! LAYER 3: which parts exist.
