//! Log records: lines of the trace's log, and instants with all that they carry.

use std::borrow::Cow;

use pulsetrain_otlp::{
    WireError,
    view::{AnyValue, LogRecord, Message},
};
use pulsetrain_perfetto::{Annotations, LogLine, LogPriority};
use pulsetrain_pipeline::spill::{MemoryBudget, Sorter};

use super::{
    PerfettoError, PerfettoSummary,
    config::AttributePolicy,
    flows, identity, message,
    span_trees::LATEST,
    spans::Spans,
    stack_trace,
    trace_output::{PerfettoParts, TraceOutput},
    tree_span::array,
    values,
    walk::Input,
};
use pulsetrain_otlp::json::value_text;

/// The most bytes of a body in the name of its instant.
const NAME_BYTES: usize = 120;

/// The most bytes of a text body in the arguments of its instant; the log line has all of it.
const BODY_BYTES: usize = 1 << 10;

/// The field of a record's attributes (proto/logs/v1/logs.proto), which are next to the map of all other fields.
const ATTRIBUTES: u32 = 6;

/// The log records of an input.
#[derive(Debug, Default)]
pub(super) struct Records {
    pub(super) all: Sorter,
}

impl Records {
    pub(super) fn new(room: MemoryBudget) -> Self {
        Self {
            all: Sorter::new(room),
        }
    }

    /// Takes in a batch of logs.
    pub(super) fn add(
        &mut self,
        batch: &[u8],
        input: &mut Input<'_>,
        spans: &mut Spans,
    ) -> Result<(), PerfettoError> {
        let config = input.config;
        input.each_item(batch, |bytes, around, summary| {
            let record = LogRecord::decode(bytes)?;
            let time = logged_time(&record);
            if !config.shows_time(time, time) {
                summary.filtered += 1;
                return Ok(());
            }
            spans.add_log(record.trace_id, record.span_id);
            self.all.push((time, 0), |out| {
                out.extend_from_slice(&around.resource.to_le_bytes());
                out.extend_from_slice(&around.scope.to_le_bytes());
                out.extend_from_slice(bytes);
            })?;
            Ok(())
        })
    }
}

/// Draws one record.
pub(super) fn draw<P: PerfettoParts>(
    mut bytes: &[u8],
    time: u64,
    output: &mut TraceOutput<'_, P>,
    summary: &mut PerfettoSummary,
) -> Result<(), PerfettoError> {
    let (Some(resource), Some(scope)) = (array(&mut bytes), array(&mut bytes)) else {
        return Ok(());
    };
    let (resource, scope) = (u32::from_le_bytes(resource), u32::from_le_bytes(scope));
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
    let lane = output.logs(resource, time)?;
    let full = output.about.config.attributes.is_full();
    let mut outcome = Ok(());
    output.trace.instant(lane, time, name.as_bytes(), |event| {
        if let Some(flow) = flows::log_flow(record.trace_id, record.span_id) {
            event.flow(flow);
        }
        stack_trace::add(record.attributes, &AttributePolicy::Full, event);
        let mut out = event.annotations();
        out.map(identity::KEY, |map| {
            if full {
                map.add("log_of", scope);
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

/// Returns the time of a record, or the time at which it was observed.
fn logged_time(record: &LogRecord<'_>) -> u64 {
    match record.time_unix_nano {
        0 => record.observed_time_unix_nano,
        time => time,
    }
}

/// The name of a record's instant: that of the event, else the beginning of the body's first line, else the severity.
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

/// Adds the body, unless the name shows all of it. Maps and lists keep their types.
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

/// Returns at most `bytes` bytes of a text, with three dots at the end where it was cut.
fn shortened(text: &str, bytes: usize) -> Cow<'_, str> {
    if text.len() <= bytes {
        return Cow::Borrowed(text);
    }
    Cow::Owned(format!("{}...", &text[..text.floor_char_boundary(bytes - 3)]))
}

/// OTLP has four numbers for each of Android's names, and one name more (TRACE, which is verbose).
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
