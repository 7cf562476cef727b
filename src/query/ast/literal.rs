//! Literals that keep their spelling.

/// A number as written in the query: decimal, duration, size, or any other text that reads as a
/// number (`10`, `1.5KiB`, `0x1F`, `5m`, `inf`).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Number {
    /// The spelling, checked to be a number.
    pub text: String,
}

/// A length of time as written in the query, such as `1h30m`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Duration {
    /// The spelling.
    pub text: String,
    /// Its value in nanoseconds; may be negative.
    pub nanos: i64,
}
