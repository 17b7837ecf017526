//! Log records and events.

use super::{
    buffer::{Buffer, delimited_len},
    envelope::{Encoded, Envelope},
    value::{self, Attribute, AttributeValue},
};
use crate::{Signal, UnixNanos};

/// Fields of `LogRecord` (proto/logs/v1/logs.proto).
mod field {
    pub(super) const TIME: u32 = 1;
    pub(super) const SEVERITY_NUMBER: u32 = 2;
    pub(super) const SEVERITY_TEXT: u32 = 3;
    pub(super) const BODY: u32 = 5;
    pub(super) const ATTRIBUTES: u32 = 6;
    pub(super) const OBSERVED_TIME: u32 = 11;
    pub(super) const EVENT_NAME: u32 = 12;
}

/// The severity of a log record; the numbers are those of `SeverityNumber`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Severity {
    /// Details for debugging.
    Debug = 5,
    /// Information.
    #[default]
    Info = 9,
    /// A possible error.
    Warn = 13,
    /// An error.
    Error = 17,
}

impl Severity {
    fn as_str(self) -> &'static str {
        match self {
            Self::Debug => "DEBUG",
            Self::Info => "INFO",
            Self::Warn => "WARN",
            Self::Error => "ERROR",
        }
    }
}

/// A log record.
#[derive(Clone, Copy, Debug, Default)]
pub struct LogRecordParts<'a> {
    /// The event name; empty for a plain log record.
    pub event_name: &'a str,
    /// The time of the event.
    pub time_unix_nanos: UnixNanos,
    /// The time at which the record was read, or `time_unix_nanos` if that is unknown.
    pub observed_unix_nanos: UnixNanos,
    /// The severity.
    pub severity: Severity,
    /// The body, for example a text or a map.
    pub body: Option<AttributeValue<'a>>,
    /// The attributes.
    pub attributes: &'a [Attribute<'a>],
}

/// Collects log records until a batch is full.
#[derive(Debug, Default)]
pub struct LogsWriter {
    records: Buffer,
    /// The body of the newest record.
    body: Buffer,
    count: u32,
}

impl LogsWriter {
    /// Returns the number of log records so far.
    pub fn records(&self) -> u32 {
        self.count
    }

    /// Returns the size of the log records so far, in bytes.
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Returns whether there are no log records.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Adds a log record.
    pub fn record(&mut self, parts: &LogRecordParts<'_>) {
        let severity = parts.severity.as_str();
        // Encoded into a buffer first: its length precedes it, and computing the length takes longer than copying the bytes.
        self.body.clear();
        if let Some(body) = &parts.body {
            body.encode(&mut self.body);
        }
        let body_len = match parts.body {
            Some(_) => delimited_len(field::BODY, self.body.len()),
            None => 0,
        };
        let text_len = |number, text: &str| match text.len() {
            0 => 0,
            len => delimited_len(number, len),
        };
        let len = 9
            + 2
            + text_len(field::SEVERITY_TEXT, severity)
            + body_len
            + value::attributes_len(field::ATTRIBUTES, parts.attributes)
            + 9
            + text_len(field::EVENT_NAME, parts.event_name);
        let out = &mut self.records;
        out.delimited_head(2, len);
        let begin = out.len();
        out.fixed64(field::TIME, parts.time_unix_nanos.0);
        out.uint(field::SEVERITY_NUMBER, parts.severity as u64);
        out.text(field::SEVERITY_TEXT, severity);
        if parts.body.is_some() {
            out.delimited(field::BODY, self.body.as_slice());
        }
        value::attributes(field::ATTRIBUTES, parts.attributes, out);
        out.fixed64(field::OBSERVED_TIME, parts.observed_unix_nanos.0);
        out.text(field::EVENT_NAME, parts.event_name);
        debug_assert_eq!(out.len() - begin, len, "the length is known before it is written");
        self.count += 1;
    }

    /// Returns the batch so far, if it has log records, and resets the writer.
    pub fn finish(&mut self, envelope: &Envelope) -> Option<Encoded> {
        if self.is_empty() {
            return None;
        }
        let bytes = envelope.wrap(self.records.len(), |out| out.append(self.records.as_slice()));
        let encoded = Encoded {
            signal: Signal::Logs,
            items: self.count,
            bytes,
        };
        self.records.clear();
        self.count = 0;
        Some(encoded)
    }
}
