//! Converts log records: the lines of the trace's log, and instants outside slices.

use pulsetrain_otlp::{Signal, write::Buffer};
use pulsetrain_perfetto::{AnnotationData, EventKind, LogItem, Time, TraceEvent};

use super::{
    PerfettoConversion,
    event_index::Lines,
    metric_metadata::{KEY, otel_fields},
    resource_batches::{BatchContext, BatchKey, ResourceBatches},
    tracks::Thread,
    values::{self, Entries},
};
use crate::ConvertError;

/// The key of the severity in the instant of a log record, in a trace without all fields.
pub(super) const SEVERITY: &str = "severity_number";

/// The key of the line in the instant of a record. The reader adds it.
const LINE: &str = "line";

/// Fields of `LogRecord` (proto/logs/v1/logs.proto).
mod field {
    pub(super) const TIME: u32 = 1;
    pub(super) const SEVERITY_NUMBER: u32 = 2;
    pub(super) const SEVERITY_TEXT: u32 = 3;
    pub(super) const BODY: u32 = 5;
    pub(super) const ATTRIBUTES: u32 = 6;
    pub(super) const TRACE_ID: u32 = 9;
    pub(super) const SPAN_ID: u32 = 10;
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

/// Returns whether an event is the instant of the record with this line. The mapper writes it directly after the line.
pub(super) fn is_instant_of(line: &LogItem, event: &TraceEvent) -> bool {
    let fields = otel_fields(&event.annotations);
    event.kind == EventKind::Instant
        && event.time == line.time
        && fields.is_some_and(|fields| values::get(fields, SEVERITY).is_some())
}

/// Adds the line of a record to its instant.
pub(super) fn add_line(line: LogItem, event: &mut TraceEvent) {
    let LogItem {
        pid, tag, message, ..
    } = line;
    let line = [
        ("pid", AnnotationData::Int(pid.into())),
        ("tag", AnnotationData::Text(tag)),
        ("message", AnnotationData::Text(message)),
    ];
    let line = line.map(|(key, value)| (key.to_owned(), value)).into();
    let mut annotations = event.annotations.iter_mut();
    if let Some((_, AnnotationData::Map(fields))) = annotations.find(|(key, _)| key == KEY) {
        fields.push((LINE.to_owned(), AnnotationData::Map(line)));
    }
}

/// Returns the pid of a record from the fields of its instant. The instant can be on the row of another process.
pub(super) fn pid(fields: &Entries) -> Option<i32> {
    let pid = values::number(values::entries(fields, LINE)?, "pid")?;
    i32::try_from(pid).ok()
}

/// Encodes the instant of a record as a `LogRecord` message, in a trace without all fields.
pub(super) fn of_record(event: &TraceEvent, fields: &Entries, time: u64) -> Buffer {
    let line = values::entries(fields, LINE).unwrap_or_default();
    let text = |key| values::text(fields, key).unwrap_or_default();
    let tag = values::text(line, "tag").unwrap_or_default();
    let shown = values::text(fields, "body").unwrap_or(&event.name);
    let message = values::text(line, "message").unwrap_or(shown);
    let mut out = Buffer::default();
    out.fixed64(field::TIME, time);
    if let Some(severity) = values::number(fields, SEVERITY).filter(|severity| *severity != 0) {
        out.uint(field::SEVERITY_NUMBER, severity);
    }
    out.text(field::SEVERITY_TEXT, text("severity_text"));
    match values::get(fields, "body") {
        // The line has the complete text; without a body, it has the name of the event.
        None | Some(AnnotationData::Text(_)) if message == tag => {}
        None | Some(AnnotationData::Text(_)) => {
            let body = AnnotationData::Text(message.to_owned());
            out.delimited(field::BODY, values::any(&body).as_slice());
        }
        Some(body) => out.delimited(field::BODY, values::any(body).as_slice()),
    }
    let attributes = event.annotations.iter().filter(|(key, _)| key != KEY);
    values::attributes(field::ATTRIBUTES, attributes, &mut out);
    for (key, number) in [("trace_id", field::TRACE_ID), ("span_id", field::SPAN_ID)] {
        let id = values::id(fields, key);
        if !id.is_empty() {
            out.delimited(number, &id);
        }
    }
    out.text(field::EVENT_NAME, tag);
    out
}

/// Sends the log lines that have no record in the trace.
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
            let process = known.tracks.process_of(line.pid);
            let batch_key = match process.filter(|process| !known.tracks.name(*process).is_empty()) {
                Some(process) => BatchKey::Process(process, Err(String::new())),
                None => BatchKey::Pid(line.pid),
            };
            batches.push(Signal::Logs, batch_key, record.as_slice(), known)?;
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
