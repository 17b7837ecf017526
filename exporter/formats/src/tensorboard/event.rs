//! Decodes a record, an `Event` message (`tensorflow/core/util/event.proto`), without copying.

use pulsetrain_otlp::{
    UnixNanos,
    wire::{Field, Reader, WireError, WireValue},
};

/// One event of a training run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Event<'a> {
    /// Seconds since 1970.
    pub(super) wall_time: f64,
    /// The step. Zero is not encoded.
    pub(super) step: i64,
    /// The content of the event.
    pub(super) content: Content<'a>,
}

/// The contents of an event.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) enum Content<'a> {
    /// No known content.
    #[default]
    Nothing,
    /// The version of the format, the first event of a file.
    Version,
    /// Values under tags.
    Summary(&'a [u8]),
    /// A graph of the program or a trace of its execution, under the name of the rule that leaves it out.
    NoTelemetry(&'static str),
    /// A session of the writer began here: it was restarted from the event's step.
    SessionStart,
}

/// `SessionLog.status` of a session that begins.
const SESSION_START: u64 = 1;

/// The fields that nearly every event has, with their wire types.
mod tag {
    pub(super) const WALL_TIME: u32 = 1 << 3 | 1;
    pub(super) const STEP: u32 = 2 << 3;
    pub(super) const SUMMARY: u32 = 5 << 3 | 2;
}

/// Parses an event.
#[inline]
pub(super) fn parse(bytes: &[u8]) -> Result<Event<'_>, WireError> {
    let mut event = Event::default();
    let mut reader = Reader::new(bytes);
    while !reader.is_at_end() {
        match reader.tag()? {
            tag::WALL_TIME => event.wall_time = f64::from_bits(reader.fixed64()?),
            tag::STEP => event.step = reader.varint()? as i64,
            tag::SUMMARY => event.content = Content::Summary(reader.delimited()?),
            other => {
                let value = reader.value(other)?;
                event.content = rare(other >> 3, value)?.unwrap_or(event.content);
            }
        }
    }
    Ok(event)
}

/// Decodes the fields that few events have.
#[cold]
fn rare(number: u32, value: WireValue<'_>) -> Result<Option<Content<'static>>, WireError> {
    Ok(match (number, value) {
        (3, _) => Some(Content::Version),
        (4 | 8 | 9, _) => Some(Content::NoTelemetry("graph")),
        (7, WireValue::Bytes(log)) if is_start(log)? => Some(Content::SessionStart),
        _ => None,
    })
}

fn is_start(session_log: &[u8]) -> Result<bool, WireError> {
    for field in Reader::new(session_log) {
        let Field { number, value } = field?;
        if (number, value) == (1, WireValue::Varint(SESSION_START)) {
            return Ok(true);
        }
    }
    Ok(false)
}

impl Event<'_> {
    /// Returns the event's time, or `None` if the event has no valid time.
    #[inline]
    pub(super) fn time_unix_nanos(&self) -> Option<UnixNanos> {
        // Up to the year 2500, so that the sum stays within 64 bits.
        let is_time = self.wall_time > 0.0 && self.wall_time < 1.6725e10;
        is_time.then(|| {
            // Adding a half and truncating rounds, and is faster than `round`. The fraction has at most 22 bits at this
            // distance from 1970, so the result is exact.
            let seconds = self.wall_time as u64;
            let nanos = (self.wall_time - seconds as f64) * 1e9 + 0.5;
            UnixNanos(seconds * 1_000_000_000 + nanos as u64)
        })
    }
}
