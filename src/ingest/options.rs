//! How input becomes rows.

use crate::error::{Error, Result};
use crate::record::Limits;

/// How input becomes rows: which fields identify a stream, where time and message are, limits.
///
/// ```
/// use loglith::IngestOptions;
/// let options = IngestOptions::new()
///     .stream_fields(["app", "host"])
///     .time_field("ts")
///     .time_zone_seconds(2 * 3600);
/// assert!(options.validate().is_ok());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IngestOptions {
    pub(crate) stream_fields: Vec<String>,
    pub(crate) time_field: String,
    pub(crate) msg_field: String,
    pub(crate) time_zone_seconds: i32,
    pub(crate) limits: Limits,
}

impl Default for IngestOptions {
    fn default() -> IngestOptions {
        IngestOptions {
            stream_fields: Vec::new(),
            time_field: "_time".to_owned(),
            msg_field: "_msg".to_owned(),
            time_zone_seconds: 0,
            limits: Limits::default(),
        }
    }
}

impl IngestOptions {
    /// The default options: no stream fields, time in `_time`, message in `_msg`, UTC.
    pub fn new() -> IngestOptions {
        IngestOptions::default()
    }

    /// The fields that identify a stream: their values, where present, are its labels. They stay
    /// ordinary fields. Empty names and repetitions are ignored; none by default, and then the
    /// labels of a `_stream` in the input become the stream.
    pub fn stream_fields<I, S>(mut self, names: I) -> IngestOptions
    where
        I: IntoIterator<Item = S>,
        S: Into<String>,
    {
        self.stream_fields = names.into_iter().map(Into::into).filter(|n| !n.is_empty()).collect();
        self.stream_fields.sort();
        self.stream_fields.dedup();
        self
    }

    /// The field that holds the time; it is not stored under its own name. Where it is missing,
    /// `_time` is looked for. `_time` by default.
    pub fn time_field(mut self, name: impl Into<String>) -> IngestOptions {
        self.time_field = name.into();
        self
    }

    /// The field that becomes the message `_msg`, unless the entry has one of that name. `_msg`
    /// by default.
    pub fn msg_field(mut self, name: impl Into<String>) -> IngestOptions {
        self.msg_field = name.into();
        self
    }

    /// Seconds east of UTC in which times without a zone are read; 0 by default.
    pub fn time_zone_seconds(mut self, seconds_east: i32) -> IngestOptions {
        self.time_zone_seconds = seconds_east;
        self
    }

    /// The limits of what is accepted.
    pub fn limits(mut self, limits: Limits) -> IngestOptions {
        self.limits = limits;
        self
    }

    /// Checks that the options can work.
    ///
    /// # Errors
    /// [`Error::InvalidOption`] names the first one that cannot.
    pub fn validate(&self) -> Result<()> {
        self.limits.validate()?;
        let invalid =
            |name: &'static str, why: &str| Err(Error::InvalidOption { name, why: why.to_owned() });
        if self.time_zone_seconds.unsigned_abs() >= 86_400 {
            return invalid("time_zone_seconds", "it must be less than a day");
        }
        if self.time_field.is_empty() {
            return invalid("time_field", "it must not be empty");
        }
        if self.msg_field.is_empty() {
            return invalid("msg_field", "it must not be empty");
        }
        if self.msg_field == self.time_field {
            return invalid("msg_field", "it is the time field as well");
        }
        let reserved = ["_time", "_stream", "_stream_id", self.time_field.as_str()];
        if self.stream_fields.iter().any(|n| reserved.contains(&n.as_str())) {
            return invalid("stream_fields", "the time and the stream cannot be stream fields");
        }
        if self.stream_fields.contains(&self.msg_field) {
            return invalid("stream_fields", "the message cannot be a stream field");
        }
        if self.stream_fields.iter().any(|n| n.len() > self.limits.max_name_bytes) {
            return invalid("stream_fields", "a name is longer than max_name_bytes");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_items_are_ignored() {
        let options = IngestOptions::new().stream_fields(["b", "", "a", "b"]);
        assert_eq!(options.stream_fields, ["a", "b"]);
        assert!(options.validate().is_ok());
    }

    #[test]
    fn what_cannot_work_is_named() {
        let why = |o: IngestOptions| o.validate().unwrap_err().to_string();
        assert!(why(IngestOptions::new().stream_fields(["_time"])).contains("stream_fields"));
        assert!(why(IngestOptions::new().stream_fields(["_msg"])).contains("message"));
        assert!(why(IngestOptions::new().time_field("")).contains("time_field"));
        assert!(why(IngestOptions::new().time_field("x").msg_field("x")).contains("msg_field"));
        assert!(why(IngestOptions::new().time_zone_seconds(90_000)).contains("time_zone"));
    }
}
