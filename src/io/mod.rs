//! LAYER 0: the only door to files and the clock.
