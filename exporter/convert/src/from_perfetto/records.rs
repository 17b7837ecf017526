//! Converts log records: the lines of the trace's log, and instants outside slices.

use pulsetrain_otlp::{Signal, write::Buffer};
use pulsetrain_perfetto::{LogItem, Time, TraceEvent};

use super::{
    PerfettoConversion,
    event_index::Lines,
    resource_batches::{BatchContext, BatchKey, ResourceBatches},
    tracks::Thread,
    values,
};
use crate::ConvertError;

/// Fields of `LogRecord` (proto/logs/v1/logs.proto).
mod field {
    pub(super) const TIME: u32 = 1;
    pub(super) const SEVERITY_NUMBER: u32 = 2;
    pub(super) const BODY: u32 = 5;
    pub(super) const ATTRIBUTES: u32 = 6;
    pub(super) const EVENT_NAME: u32 = 12;
}

/// Encodes an instant outside a slice as a `LogRecord` message: an event with its name and its annotations.
pub(super) fn of_instant(event: &TraceEvent, time: u64, thread: &Thread) -> Buffer {
    let mut out = Buffer::default();
    out.fixed64(field::TIME, time);
    values::attributes(field::ATTRIBUTES, &event.annotations, &mut out);
    thread.add(field::ATTRIBUTES, &event.annotations, &mut out);
    out.text(field::EVENT_NAME, &event.name);
    out
}

/// Sends the log lines that have no complete record in the trace.
pub(super) fn send_lines<E: From<ConvertError>, D: FnMut(Signal, Vec<u8>) -> Result<(), E>>(
    mut lines: Lines,
    known: BatchContext<'_>,
    batches: &mut ResourceBatches<'_, D>,
    conversion: &mut PerfettoConversion,
) -> Result<(), E> {
    while let Some(line) = lines.next_line().map_err(ConvertError::Temporary)? {
        if !known.metadata.knows_pid(line.pid) {
            conversion.logs += 1;
            let record = of_line(&line);
            batches.push(Signal::Logs, BatchKey::Pid(line.pid), record.as_slice(), known)?;
        }
    }
    Ok(())
}

/// Encodes a line of the log as a `LogRecord` message.
fn of_line(line: &LogItem) -> Buffer {
    let mut out = Buffer::default();
    if let Time::Unix(nanos) = line.time
        && nanos != 0
    {
        out.fixed64(field::TIME, nanos);
    }
    // Each of Android's levels has four numbers in OTLP: verbose (2) is TRACE (1).
    out.uint(
        field::SEVERITY_NUMBER,
        u64::from(line.priority.clamp(2, 7) - 2) * 4 + 1,
    );
    let mut body = Buffer::default();
    body.delimited(1, line.message.as_bytes());
    out.delimited(field::BODY, body.as_slice());
    out.text(field::EVENT_NAME, &line.tag);
    out
}
