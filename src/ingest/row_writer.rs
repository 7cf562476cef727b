//! Makes rows of names and values: what every input format has in common.

use std::sync::Arc;

use super::names::{NameTable, Role, START, Slot};
use super::options::IngestOptions;
use super::report::{IngestReport, RejectReason};
use super::streams::{StreamTable, parse_stream_text};
use crate::record::{
    EntryView, MAX_BATCH_BYTES, NANOS_PER_SECOND, NameId, RowBatch, RowBatchBuilder, StreamKey,
    Timestamp, parse_entry_time,
};

/// Asked before a row of a new day is made: may the store have that UTC day?
pub(crate) trait DayGate: Send + Sync + std::fmt::Debug {
    /// Whether rows of the day (1970-01-01 being 0) may be added.
    fn admit(&self, day: i32) -> bool;
}

/// Why a row was not made.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Rejection {
    pub(crate) reason: RejectReason,
    pub(crate) detail: String,
}

impl Rejection {
    pub(crate) fn new(reason: RejectReason, detail: impl Into<String>) -> Rejection {
        Rejection { reason, detail: detail.into() }
    }
}

/// More names than this are not remembered from one batch to the next.
const MAX_NAMES: usize = 1 << 16;
/// Batches of this many bytes of values are handed on.
pub(crate) const TARGET_BATCH_BYTES: usize = 4 << 20;
/// Batches of this many rows are handed on.
const TARGET_BATCH_ROWS: usize = 1 << 16;

/// The time of the open row, as far as it is known.
#[derive(Debug, Clone)]
enum RowTime {
    Missing,
    At(Timestamp),
    /// The beginning of a text that is no time.
    Invalid(String),
}

/// Makes rows of names and values and collects them in batches.
///
/// Between [`begin_row`](RowWriter::begin_row) and [`finish_row`](RowWriter::finish_row) every
/// value is given with [`assign`](RowWriter::assign); of several values of a name the last counts,
/// also if it is empty.
#[derive(Debug)]
pub(crate) struct RowWriter {
    options: Arc<IngestOptions>,
    gate: Option<Arc<dyn DayGate>>,
    now: Timestamp,
    names: NameTable,
    streams: StreamTable,
    builder: RowBatchBuilder,
    /// Number of the batch being built, from 1.
    batch: u64,
    /// Number of the open row, from 1.
    row: u64,
    time: RowTime,
    spare_time: RowTime,
    has_spare_time: bool,
    /// The values of the stream fields in the row before, and the last row that had each.
    labels: Vec<(Vec<u8>, u64)>,
    /// A label differs from those of `stream`.
    labels_changed: bool,
    /// The stream of the row before, valid if no label changed.
    stream: u32,
    /// Whether the stream of the open row is to be guessed before its next field.
    guess: bool,
    stream_text: Vec<u8>,
    has_stream_id: bool,
    /// The last day that was admitted.
    day: Option<i32>,
    target_bytes: usize,
    /// Batches whose memory the next ones take.
    spare: Vec<RowBatch>,
}

impl RowWriter {
    /// A writer without rows. `now` is the time of rows that have none.
    pub(crate) fn new(options: Arc<IngestOptions>, now: Timestamp) -> RowWriter {
        let labels = vec![(Vec::new(), 0); options.stream_fields.len()];
        RowWriter {
            options,
            gate: None,
            now,
            names: NameTable::default(),
            streams: StreamTable::default(),
            builder: RowBatchBuilder::new(),
            batch: 1,
            row: 0,
            time: RowTime::Missing,
            spare_time: RowTime::Missing,
            has_spare_time: false,
            labels,
            labels_changed: true,
            stream: 0,
            guess: true,
            stream_text: Vec::new(),
            has_stream_id: false,
            day: None,
            target_bytes: TARGET_BATCH_BYTES,
            spare: Vec::new(),
        }
    }

    /// Asks `gate` about each new day.
    pub(crate) fn with_gate(mut self, gate: Arc<dyn DayGate>) -> RowWriter {
        self.gate = Some(gate);
        self
    }

    /// Hands batches on at about so many bytes of values.
    pub(crate) fn with_target_bytes(mut self, bytes: usize) -> RowWriter {
        self.target_bytes = bytes.clamp(1, MAX_BATCH_BYTES);
        self
    }

    /// Takes the memory of a batch that is not needed any more for one of the next.
    pub(crate) fn recycle(&mut self, batch: RowBatch) {
        self.spare.push(batch);
    }

    /// Gives back the memory of batches.
    pub(crate) fn forget_spare(&mut self) {
        self.spare = Vec::new();
    }

    /// Sets the time of rows that have none.
    pub(crate) fn set_now(&mut self, now: Timestamp) {
        self.now = now;
    }

    /// The options.
    pub(crate) fn options(&self) -> &Arc<IngestOptions> {
        &self.options
    }

    /// The names.
    #[inline]
    pub(crate) fn names(&self) -> &NameTable {
        &self.names
    }

    /// Opens a row.
    #[inline]
    pub(crate) fn begin_row(&mut self) {
        self.row += 1;
        self.guess = true;
        self.time = RowTime::Missing;
        if self.has_spare_time {
            self.has_spare_time = false;
            self.spare_time = RowTime::Missing;
        }
        self.stream_text.clear();
        self.has_stream_id = false;
    }

    /// The slot of a name that follows `previous` ([`START`] for the first of a row).
    pub(crate) fn slot(&mut self, previous: Slot, name: &str) -> Result<Slot, Rejection> {
        if name.len() > self.options.limits.max_name_bytes {
            let head = excerpt(name.as_bytes());
            let detail = format!("a name of {} bytes: {head}", name.len());
            return Err(Rejection::new(RejectReason::NameTooLong, detail));
        }
        let options = &self.options;
        Ok(self.names.slot(previous, name, |name| role_of(options, name)))
    }

    /// Gives the open row a value, which must be valid UTF-8.
    #[inline]
    pub(crate) fn assign(&mut self, slot: Slot, value: &[u8]) {
        if let Some(id) = self.field(slot) {
            if !value.is_empty() {
                self.builder.push_field(id, value);
            }
        } else {
            self.assign_special(slot, value);
        }
    }

    /// Gives the open row a string of JSON whose text begins with `json`, if it is that of the row
    /// that was guessed; gives its length. Else the caller finds its end, and then comes
    /// [`assign_string`](RowWriter::assign_string).
    #[inline]
    pub(crate) fn assign_repeated(&mut self, slot: Slot, json: &[u8]) -> Option<usize> {
        let id = self.field(slot)?;
        self.builder.push_repeated(id, json)
    }

    /// Gives the open row a string of JSON that [`assign_repeated`](RowWriter::assign_repeated) did
    /// not know; `plain` if it has no escapes.
    #[inline]
    pub(crate) fn assign_string(&mut self, slot: Slot, value: &[u8], plain: bool) {
        match self.names.get(slot) {
            Some(name) if matches!(name.role, Role::Field | Role::Message) => match value {
                [] => {}
                _ if plain => self.builder.push_plain(name.id, value),
                _ => self.builder.push_field(name.id, value),
            },
            _ => self.assign_special(slot, value),
        }
    }

    /// The number in the batch of a name whose values are stored, whose field the open row then
    /// has no more.
    #[inline]
    fn field(&mut self, slot: Slot) -> Option<NameId> {
        let name = self.names.get_mut(slot)?;
        if !matches!(name.role, Role::Field | Role::Message) {
            return None;
        }
        if name.batch != self.batch {
            name.id = self.builder.name_id(&name.text);
            name.batch = self.batch;
        }
        if name.row == self.row {
            self.builder.remove_field(name.id);
        }
        name.row = self.row;
        let id = name.id;
        if self.guess {
            self.guess_stream();
        }
        Some(id)
    }

    /// Guesses the stream of the open row by the labels so far, the others taken to be those of
    /// the row before.
    fn guess_stream(&mut self) {
        self.guess = false;
        if self.labels_changed {
            if self.options.stream_fields.is_empty() {
                return;
            }
            let values = self.labels.iter().map(|(value, _)| value.as_slice());
            let Some(stream) = self.streams.known_values(values) else { return };
            self.stream = stream;
            self.labels_changed = false;
        }
        if let Some(local) = self.streams.local(self.stream, self.batch) {
            self.builder.guess_stream(local);
        }
    }

    fn assign_special(&mut self, slot: Slot, value: &[u8]) {
        let Some(role) = self.names.get(slot).map(|n| n.role) else { return };
        match role {
            Role::Time => self.time = self.read_time(value),
            Role::SpareTime => {
                self.spare_time = self.read_time(value);
                self.has_spare_time = true;
            }
            Role::Stream => {
                self.stream_text.clear();
                self.stream_text.extend_from_slice(value);
            }
            Role::StreamId => self.has_stream_id = !value.is_empty(),
            Role::Label(label) => {
                if let Some((current, row)) = self.labels.get_mut(label as usize) {
                    *row = self.row;
                    if current.as_slice() != value {
                        current.clear();
                        current.extend_from_slice(value);
                        self.labels_changed = true;
                        self.guess = true;
                    }
                }
            }
            Role::Field | Role::Message => {}
        }
    }

    fn read_time(&self, value: &[u8]) -> RowTime {
        if value.is_empty() {
            return RowTime::Missing;
        }
        match parse_entry_time(value, self.options.time_zone_seconds) {
            Some(time) => RowTime::At(time),
            None => RowTime::Invalid(excerpt(value)),
        }
    }

    /// Closes the open row and counts what was noticed; a rejected row leaves nothing behind.
    pub(crate) fn finish_row(&mut self, report: &mut IngestReport) -> Result<(), Rejection> {
        match self.try_finish_row(report) {
            Ok(()) => {
                report.accepted += 1;
                Ok(())
            }
            Err(rejection) => {
                self.builder.abandon_row();
                Err(rejection)
            }
        }
    }

    /// Drops the open row.
    pub(crate) fn abandon_row(&mut self) {
        self.builder.abandon_row();
    }

    fn try_finish_row(&mut self, report: &mut IngestReport) -> Result<(), Rejection> {
        let (time, missing) = self.row_time()?;
        let stream = self.row_stream(report);
        self.name_message();
        let fields = self.builder.open_len() + self.streams.labels_of(stream);
        if fields == 0 && missing {
            return Err(Rejection::new(RejectReason::Empty, "no field has a value"));
        }
        if fields > self.options.limits.max_fields {
            let detail = format!("{fields} fields");
            return Err(Rejection::new(RejectReason::TooManyFields, detail));
        }
        self.check_time(time)?;
        let stream = self.streams.local_id(stream, self.batch, &mut self.builder);
        self.builder.finish_row(time, stream);
        report.missing_time += u64::from(missing);
        report.ignored_stream_id += u64::from(self.has_stream_id);
        if self.has_spare_time && !missing && !matches!(self.time, RowTime::Missing) {
            report.ignored_time += 1;
        }
        Ok(())
    }

    /// The time of the open row, and whether it is only that of its arrival.
    #[inline]
    fn row_time(&self) -> Result<(Timestamp, bool), Rejection> {
        let time = match (&self.time, &self.spare_time) {
            (RowTime::Missing, spare) => spare,
            (time, _) => time,
        };
        match time {
            RowTime::At(time) => Ok((*time, false)),
            RowTime::Missing => Ok((self.now, true)),
            RowTime::Invalid(text) => Err(Rejection::new(RejectReason::InvalidTime, text.clone())),
        }
    }

    fn check_time(&mut self, time: Timestamp) -> Result<(), Rejection> {
        if let Some(max_future) = self.options.limits.max_future {
            let ahead = i128::from(time.as_nanos()) - i128::from(self.now.as_nanos());
            if ahead > i128::try_from(max_future.as_nanos()).unwrap_or(i128::MAX) {
                let seconds = ahead / i128::from(NANOS_PER_SECOND);
                let detail = format!("{time} is {seconds} s ahead");
                return Err(Rejection::new(RejectReason::TooFarInFuture, detail));
            }
        }
        let day = time.day();
        if self.day != Some(day) {
            if self.gate.as_ref().is_some_and(|gate| !gate.admit(day)) {
                return Err(Rejection::new(RejectReason::TooManyDays, time.to_string()));
            }
            self.day = Some(day);
        }
        Ok(())
    }

    /// The stream of the open row, whose labels are taken out of its fields.
    fn row_stream(&mut self, report: &mut IngestReport) -> u32 {
        if self.options.stream_fields.is_empty() {
            if self.stream_text.is_empty() {
                if self.labels_changed {
                    self.stream = self.streams.find(b"", StreamKey::default);
                    self.labels_changed = false;
                }
                return self.stream;
            }
            if let Some(stream) = self.stream_of_text() {
                return stream;
            }
            report.ignored_stream += 1;
            return self.streams.find(b"", StreamKey::default);
        }
        report.ignored_stream += u64::from(!self.stream_text.is_empty());
        for (value, row) in &mut self.labels {
            if *row != self.row && !value.is_empty() {
                value.clear();
                self.labels_changed = true;
            }
        }
        if self.labels_changed {
            let (fields, labels) = (&self.options.stream_fields, &self.labels);
            self.stream =
                self.streams.find_values(labels.iter().map(|(v, _)| v.as_slice()), || {
                    let pairs = fields.iter().zip(labels);
                    StreamKey::new(pairs.map(|(name, (value, _))| (name.clone(), value.clone())))
                });
            self.labels_changed = false;
        }
        self.stream
    }

    /// The stream that the row's `_stream` names; a field of the row with the name of a label
    /// overrides it. `None` if the text is malformed.
    fn stream_of_text(&mut self) -> Option<u32> {
        let labels = parse_stream_text(&self.stream_text)?;
        let limit = self.options.limits.max_name_bytes;
        let options = Arc::clone(&self.options);
        let allowed = |name: &str| {
            name.len() <= limit && matches!(role_of(&options, name), Role::Field | Role::Message)
        };
        if !labels.iter().all(|(name, _)| allowed(name)) {
            return None;
        }
        let mut actual = Vec::with_capacity(labels.len());
        for (name, value) in labels {
            let known = self.names.find(&name).and_then(|slot| self.names.get(slot));
            let field = known.filter(|n| n.row == self.row).map(|n| n.id);
            match field.and_then(|id| self.builder.open_value(id).map(|v| (id, v.to_vec()))) {
                Some((id, own)) => {
                    self.builder.remove_field(id);
                    actual.push((name, own));
                }
                None => actual.push((name, value)),
            }
        }
        let key = StreamKey::new(actual);
        let text = key.text();
        Some(self.streams.find(&text, || key))
    }

    /// Makes the chosen field the message, if the row has no `_msg`.
    fn name_message(&mut self) {
        if self.options.msg_field == "_msg" {
            return;
        }
        let message = self.builder.name_id("_msg");
        let chosen = self.builder.name_id(&self.options.msg_field);
        if self.builder.open_value(message).is_none() {
            self.builder.rename_field(chosen, message);
        }
    }

    /// Makes a row of an entry of a program.
    pub(crate) fn append(
        &mut self,
        entry: EntryView<'_>,
        report: &mut IngestReport,
    ) -> Result<(), Rejection> {
        self.begin_row();
        let mut previous = START;
        let mut bytes = 0;
        for (name, value) in entry.fields() {
            bytes += name.len() + value.len();
            if bytes > self.options.limits.max_entry_bytes {
                self.abandon_row();
                let detail = format!("above {bytes} bytes");
                return Err(Rejection::new(RejectReason::EntryTooLong, detail));
            }
            match self.slot(previous, name) {
                Ok(slot) => {
                    self.assign(slot, value.as_bytes());
                    previous = slot;
                }
                Err(rejection) => {
                    self.abandon_row();
                    return Err(rejection);
                }
            }
        }
        if let Some(time) = entry.time {
            self.time = RowTime::At(time);
        }
        report.invalid_utf8 += u64::from(entry.repaired);
        self.finish_row(report)
    }

    /// Whether the batch is large enough to be handed on before a row of `next_bytes` bytes.
    #[inline]
    pub(crate) fn is_full(&self, next_bytes: usize) -> bool {
        let rows = self.builder.len();
        let reached = self.builder.size().1 >= self.target_bytes || rows >= TARGET_BATCH_ROWS;
        rows > 0 && reached || self.must_split(next_bytes)
    }

    /// Whether a row of `next_bytes` bytes might not fit in the batch.
    #[inline]
    pub(crate) fn must_split(&self, next_bytes: usize) -> bool {
        let bytes = self.builder.size().1;
        self.builder.len() > 0 && bytes.saturating_add(next_bytes) > MAX_BATCH_BYTES
    }

    /// The number of rows since the last batch.
    pub(crate) fn len(&self) -> usize {
        self.builder.len()
    }

    /// The rows so far; the writer goes on with none.
    pub(crate) fn take_batch(&mut self) -> RowBatch {
        let (fields, bytes) = self.builder.size();
        let room = |n: usize| n + n / 8;
        // A full batch is a good guess of the size of the next one.
        let next = match self.spare.pop() {
            Some(spare) => RowBatchBuilder::reusing(spare),
            None if bytes >= self.target_bytes => {
                RowBatchBuilder::with_capacity(room(self.builder.len()), room(fields), room(bytes))
            }
            None => RowBatchBuilder::new(),
        };
        self.batch += 1;
        self.labels_changed = true;
        if self.names.len() > MAX_NAMES {
            self.names.clear();
        }
        self.streams.trim();
        std::mem::replace(&mut self.builder, next).finish()
    }
}

/// What becomes of a field of that name.
fn role_of(options: &IngestOptions, name: &str) -> Role {
    if name == options.time_field {
        return Role::Time;
    }
    match name {
        "_time" => return Role::SpareTime,
        "_stream" => return Role::Stream,
        "_stream_id" => return Role::StreamId,
        _ => {}
    }
    match options.stream_fields.binary_search_by(|f| f.as_str().cmp(name)) {
        Ok(label) => Role::Label(u32::try_from(label).unwrap_or(u32::MAX)),
        Err(_) if name == options.msg_field => Role::Message,
        Err(_) => Role::Field,
    }
}

/// The beginning of a text, for a message to a person.
pub(crate) fn excerpt(text: &[u8]) -> String {
    const LEN: usize = 100;
    let head = text.get(..LEN).unwrap_or(text);
    let mut shown = String::from_utf8_lossy(head).into_owned();
    if head.len() < text.len() {
        shown.push_str("...");
    }
    shown
}

#[cfg(test)]
mod tests;
