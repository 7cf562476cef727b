//! LAYER 4: days, versions and snapshots.
