//! One record: an `Event` message (`tensorflow/core/util/event.proto`), read without copying.

use pulsetrain_otlp::wire::{Field, Reader, Value, WireError};

/// What a training run says at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Event<'a> {
    /// Seconds since 1970.
    pub(super) wall_time: f64,
    /// The step; zero is not on the wire.
    pub(super) step: i64,
    /// What it says.
    pub(super) content: Content<'a>,
}

/// The contents of an event.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) enum Content<'a> {
    /// Nothing that is known.
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

/// Parses an event.
#[inline]
pub(super) fn parse(bytes: &[u8]) -> Result<Event<'_>, WireError> {
    let mut event = Event::default();
    for field in Reader::new(bytes) {
        match field? {
            Field {
                number: 1,
                value: Value::Fixed64(bits),
            } => event.wall_time = f64::from_bits(bits),
            Field {
                number: 2,
                value: Value::Varint(step),
            } => event.step = step as i64,
            Field { number: 3, .. } => event.content = Content::Version,
            Field {
                number: 5,
                value: Value::Bytes(summary),
            } => event.content = Content::Summary(summary),
            Field {
                number: 4 | 8 | 9, ..
            } => event.content = Content::NoTelemetry("graph"),
            Field {
                number: 7,
                value: Value::Bytes(log),
            } if is_start(log)? => event.content = Content::SessionStart,
            _ => {}
        }
    }
    Ok(event)
}

fn is_start(session_log: &[u8]) -> Result<bool, WireError> {
    for field in Reader::new(session_log) {
        if field?
            == (Field {
                number: 1,
                value: Value::Varint(SESSION_START),
            })
        {
            return Ok(true);
        }
    }
    Ok(false)
}

impl Event<'_> {
    /// The event's time in nanoseconds since 1970, if it has one.
    #[inline]
    pub(super) fn time_unix_nanos(&self) -> Option<u64> {
        // Up to the year 2500, so that the sum stays within 64 bits.
        let is_time = self.wall_time > 0.0 && self.wall_time < 1.6725e10;
        is_time.then(|| {
            let seconds = self.wall_time.trunc();
            seconds as u64 * 1_000_000_000 + ((self.wall_time - seconds) * 1e9).round() as u64
        })
    }
}
