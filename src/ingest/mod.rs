//! LAYER 5: text or entries -> normalised rows.
