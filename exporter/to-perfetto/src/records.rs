//! Draws log records as lines of the trace's log, and as instants with all of their fields.
//!
//! A record that names a span is kept with the spans (`spans`), and is drawn on the row of its span if the span is in the
//! input and contains the time of the record. Every other record is drawn on the row `logs` of its process.

use std::borrow::Cow;

use pulsetrain_otlp::{
    WireError,
    view::{AnyValue, LogRecord, Message},
};
use pulsetrain_perfetto::{Annotations, LaneTrack, LogLine, LogPriority};
use pulsetrain_pipeline::spill::{MemoryBudget, Sorter};

use super::{
    PerfettoError, PerfettoSummary,
    config::AttributePolicy,
    flows, identity, message,
    partitions::{self, Partitions},
    span_trees::LATEST,
    spans::Spans,
    stack_trace,
    trace_output::{PerfettoParts, TraceOutput},
    tree_span::array,
    values,
    walk::Input,
};
use pulsetrain_otlp::json::value_text;

/// The limit for the bytes of a body in the name of its instant.
const NAME_BYTES: usize = 120;

/// The size in bytes from which on a block of records that name a span is closed.
const PART_BYTES: usize = 1 << 20;

/// The limit for the bytes of a text body in the arguments of its instant; the log line has all of it.
const BODY_BYTES: usize = 1 << 10;

/// The field of a record's attributes (proto/logs/v1/logs.proto), which are not in the map of all other fields.
const ATTRIBUTES: u32 = 6;

/// The log records of an input.
#[derive(Debug, Default)]
pub(super) struct Records {
    /// The records on the row `logs`.
    pub(super) row: Sorter,
    count: u64,
}

/// A record with its resource and its scope, as stored in memory and in temporary files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StoredRecord<'a> {
    /// Its index among all records of the input.
    number: u64,
    resource: u32,
    scope: u32,
    message: &'a [u8],
}

/// The lane of a span that a record is drawn on, and the resource of the span.
pub(super) type SpanLane = (LaneTrack, u32);

impl Records {
    pub(super) fn new(room: MemoryBudget) -> Self {
        Self {
            row: Sorter::new(room),
            count: 0,
        }
    }

    /// Adds a batch of logs. Records that name a span are spilled during the batch if they exceed the memory budget.
    pub(super) fn add(
        &mut self,
        batch: &[u8],
        input: &mut Input<'_>,
        spans: &mut Spans,
        spilled: &mut Option<Partitions>,
    ) -> Result<(), PerfettoError> {
        let config = input.config;
        let mut of_spans = Vec::new();
        let outcome = input.each_item(batch, |message, around, _, summary| {
            if of_spans.len() >= PART_BYTES {
                spans.keep(std::mem::take(&mut of_spans).into());
                partitions::spill_beyond_budget(spans, spilled, config)?;
            }
            let record = LogRecord::decode(message)?;
            let time = logged_time(&record);
            if !config.shows_time(time, time) {
                summary.filtered += 1;
                return Ok(());
            }
            let stored = StoredRecord {
                number: self.count,
                resource: around.resource,
                scope: around.scope,
                message,
            };
            self.count += 1;
            if record.span_id.is_empty() {
                self.row.push((time, stored.number), |out| stored.pack(out))?;
            } else {
                let start = of_spans.len();
                stored.pack(&mut of_spans);
                spans.add_record(&record, (start, of_spans.len()), config);
            }
            Ok(())
        });
        if !of_spans.is_empty() {
            of_spans.shrink_to_fit();
            spans.keep(of_spans.into());
        }
        outcome
    }
}

impl<'a> StoredRecord<'a> {
    fn pack(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.number.to_le_bytes());
        out.extend_from_slice(&self.resource.to_le_bytes());
        out.extend_from_slice(&self.scope.to_le_bytes());
        out.extend_from_slice(self.message);
    }

    fn unpack(mut bytes: &'a [u8]) -> Option<Self> {
        let from = &mut bytes;
        Some(Self {
            number: u64::from_le_bytes(array(from)?),
            resource: u32::from_le_bytes(array(from)?),
            scope: u32::from_le_bytes(array(from)?),
            message: bytes,
        })
    }
}

/// Decodes a stored record.
pub(super) fn decode(stored: &[u8]) -> Result<LogRecord<'_>, WireError> {
    LogRecord::decode(StoredRecord::unpack(stored).map_or(&[], |stored| stored.message))
}

/// Puts a stored record on the row `logs`. Returns the number of the arrow from its span.
pub(super) fn put_on_row(stored: &[u8], row: &mut Sorter) -> Result<Option<u64>, PerfettoError> {
    let Some(StoredRecord { number, message, .. }) = StoredRecord::unpack(stored) else {
        return Ok(None);
    };
    let record = LogRecord::decode(message)?;
    row.push((logged_time(&record), number), |out| {
        out.extend_from_slice(stored);
    })?;
    Ok(flows::log_flow(record.trace_id, record.span_id))
}

/// Draws a stored record on the lane of its span, or on the row `logs` with an arrow from its span.
pub(super) fn draw<P: PerfettoParts>(
    stored: &[u8],
    time: u64,
    span_lane: Option<SpanLane>,
    output: &mut TraceOutput<'_, P>,
    summary: &mut PerfettoSummary,
) -> Result<(), PerfettoError> {
    let Some(StoredRecord {
        resource,
        scope,
        message: bytes,
        ..
    }) = StoredRecord::unpack(stored)
    else {
        return Ok(());
    };
    let record = LogRecord::decode(bytes)?;
    let body = value_text(record.body.unwrap_or_default());
    let event_name = record.event_name.to_str_lossy();
    let text = if body.is_empty() { &event_name } else { &body };
    let name = name(&record, &event_name, &body);
    let line = LogLine {
        priority: priority(record.severity_number),
        tag: record.event_name.as_bytes(),
        message: text.as_bytes(),
    };
    let process = output.process(resource, time)?;
    output.trace.log(process, time, &line)?;
    let (lane, around) = match span_lane {
        Some(of_span) => of_span,
        None => (output.logs(resource, time)?, resource),
    };
    let full = output.about.config.attributes.is_full();
    let pid = output.about.pids[resource as usize];
    let mut outcome = Ok(());
    output.trace.instant(lane, time, name.as_bytes(), |event| {
        if span_lane.is_none()
            && let Some(flow) = flows::log_flow(record.trace_id, record.span_id)
        {
            event.flow(flow);
        }
        stack_trace::add(record.attributes, &AttributePolicy::Full, event);
        let mut out = event.annotations();
        out.map(identity::KEY, |map| {
            if full {
                map.add("log_of", scope);
                if around != resource {
                    map.add("log_pid", pid);
                }
                outcome = message::add(LogRecord::descriptor(), bytes, &[ATTRIBUTES], map);
            } else {
                map.add("severity_number", record.severity_number);
                identity::text(map, "severity_text", record.severity_text.as_bytes());
                identity::id(map, "trace_id", record.trace_id);
                identity::id(map, "span_id", record.span_id);
                outcome = add_body(&record, &name, map);
            }
        });
        let added = values::attributes(record.attributes, &AttributePolicy::Full, &mut out);
        outcome = outcome.and(added);
    })?;
    outcome?;
    let logged = logged_time(&record);
    summary.without_time += u64::from(logged == 0);
    summary.beyond_range += u64::from(logged > LATEST);
    summary.logs += 1;
    Ok(())
}

/// Returns the time of a record, or the time at which it was observed if it has none.
pub(super) fn logged_time(record: &LogRecord<'_>) -> u64 {
    match record.time_unix_nano {
        0 => record.observed_time_unix_nano,
        time => time,
    }
}

/// Returns the name of a record's instant: that of the event, else the beginning of the body's first line, else the severity.
fn name<'a>(record: &LogRecord<'a>, event_name: &'a str, body: &'a str) -> Cow<'a, str> {
    let line = body.trim_start().lines().next().unwrap_or_default();
    if !event_name.is_empty() {
        Cow::Borrowed(event_name)
    } else if !line.is_empty() {
        shortened(line, NAME_BYTES)
    } else {
        record.severity_text.to_str_lossy()
    }
}

/// Adds the body, unless the name contains all of it. Maps and lists keep their types.
fn add_body(record: &LogRecord<'_>, name: &str, map: &mut Annotations<'_>) -> Result<(), WireError> {
    match record.body.unwrap_or_default() {
        AnyValue::Empty => Ok(()),
        AnyValue::String(text) => {
            let text = text.to_str_lossy();
            if text != name {
                map.add("body", shortened(&text, BODY_BYTES).as_ref());
            }
            Ok(())
        }
        body => values::add(b"body", body, map),
    }
}

/// Returns at most `bytes` bytes of a text, with three dots at the end if it was shortened.
fn shortened(text: &str, bytes: usize) -> Cow<'_, str> {
    if text.len() <= bytes {
        return Cow::Borrowed(text);
    }
    Cow::Owned(format!("{}...", &text[..text.floor_char_boundary(bytes - 3)]))
}

/// Converts a severity: OTLP has four numbers for each of Android's names, and one more name (TRACE, which is verbose).
fn priority(severity: i32) -> LogPriority {
    match severity {
        1..=4 => LogPriority::Verbose,
        5..=8 => LogPriority::Debug,
        13..=16 => LogPriority::Warn,
        17..=20 => LogPriority::Error,
        21.. => LogPriority::Fatal,
        _ => LogPriority::Info,
    }
}
