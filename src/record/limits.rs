//! The limits of what a store accepts, with their defaults.

use std::time::Duration;

use crate::error::{Error, Result};

/// The most that an entry may ever take, whatever the options say: 64 MiB.
pub(crate) const HARD_MAX_ENTRY_BYTES: usize = 64 << 20;
/// The most that a batch takes; larger ones are split: 64 MiB of values.
pub(crate) const MAX_BATCH_BYTES: usize = 64 << 20;
/// Nested objects deeper than this are kept as JSON text.
pub(crate) const MAX_NESTING: usize = 32;

/// What a store accepts. Entries over a limit are rejected with a reason, never cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Longest field name in bytes; 1,024 by default. Nested objects with a longer flattened name
    /// are kept as JSON text under their own name.
    pub max_name_bytes: usize,
    /// Most fields of an entry; 2,000 by default.
    pub max_fields: usize,
    /// Longest entry in bytes, as a line of JSON or as the sum of its names and values; 4 MiB by
    /// default, at most 64 MiB.
    pub max_entry_bytes: usize,
    /// How far beyond the current time an entry may lie; no limit by default.
    pub max_future: Option<Duration>,
    /// Most UTC days in a store; 4,096 by default.
    pub max_days: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            max_name_bytes: 1_024,
            max_fields: 2_000,
            max_entry_bytes: 4 << 20,
            max_future: None,
            max_days: 4_096,
        }
    }
}

impl Limits {
    /// Checks that the limits can work.
    ///
    /// # Errors
    /// [`Error::InvalidOption`] if one is zero or `max_entry_bytes` is above 64 MiB.
    pub fn validate(&self) -> Result<()> {
        let positive = [
            ("max_name_bytes", self.max_name_bytes),
            ("max_fields", self.max_fields),
            ("max_entry_bytes", self.max_entry_bytes),
            ("max_days", self.max_days),
        ];
        for (name, value) in positive {
            if value == 0 {
                return Err(Error::InvalidOption { name, why: "it must not be zero".to_owned() });
            }
        }
        if self.max_name_bytes > usize::from(u16::MAX) {
            let why = format!("{} is above 65,535", self.max_name_bytes);
            return Err(Error::InvalidOption { name: "max_name_bytes", why });
        }
        if self.max_entry_bytes > HARD_MAX_ENTRY_BYTES {
            let why = format!("{} is above 64 MiB", self.max_entry_bytes);
            return Err(Error::InvalidOption { name: "max_entry_bytes", why });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impossible_limits_are_named() {
        assert!(Limits::default().validate().is_ok());
        let limits = Limits { max_fields: 0, ..Limits::default() };
        assert!(limits.validate().unwrap_err().to_string().contains("max_fields"));
        let limits = Limits { max_entry_bytes: 65 << 20, ..Limits::default() };
        assert!(limits.validate().unwrap_err().to_string().contains("64 MiB"));
    }
}
