//! Log records: lines of the trace's log, and instants with all that they carry.

use pulsetrain_otlp::view::{AnyValue, LogRecord, Message};
use pulsetrain_perfetto::{LogLine, LogPriority};
use pulsetrain_pipeline::spill::{Room, Sorter};

use super::{
    PerfettoError, PerfettoSummary,
    canvas::{Canvas, PerfettoParts},
    config::AttributePolicy,
    drawn::array,
    identity, message, values,
    walk::Input,
};

/// The field of a record's attributes (proto/logs/v1/logs.proto), which stand beside the map of all others.
const ATTRIBUTES: u32 = 6;

/// The log records of an input.
#[derive(Debug, Default)]
pub(super) struct Records {
    pub(super) all: Sorter,
}

impl Records {
    pub(super) fn new(room: Room) -> Self {
        Self {
            all: Sorter::new(room),
        }
    }

    /// Takes in a batch of logs.
    pub(super) fn add(&mut self, batch: &[u8], input: &mut Input<'_>) -> Result<(), PerfettoError> {
        let config = input.config;
        input.each_item(batch, |bytes, around, summary| {
            let record = LogRecord::decode(bytes)?;
            let time = match record.time_unix_nano {
                0 => record.observed_time_unix_nano,
                time => time,
            };
            if !config.shows_time(time, time) {
                summary.filtered += 1;
                return Ok(());
            }
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
    canvas: &mut Canvas<'_, P>,
    summary: &mut PerfettoSummary,
) -> Result<(), PerfettoError> {
    let (Some(resource), Some(scope)) = (array(&mut bytes), array(&mut bytes)) else {
        return Ok(());
    };
    let (resource, scope) = (u32::from_le_bytes(resource), u32::from_le_bytes(scope));
    let record = LogRecord::decode(bytes)?;
    let text = text(&record);
    let line = LogLine {
        priority: priority(record.severity_number),
        tag: record.event_name.as_bytes(),
        message: text.as_bytes(),
    };
    let process = canvas.process(resource, time)?;
    canvas.trace.log(process, time, &line)?;
    let lane = canvas.logs(resource, time)?;
    let full = canvas.about.config.attributes.is_full();
    let mut outcome = Ok(());
    canvas.trace.instant(lane, time, text.as_bytes(), |event| {
        let mut out = event.annotations();
        out.map(identity::KEY, |map| {
            if full {
                map.add("log_of", scope);
                outcome = message::add(LogRecord::descriptor(), bytes, &[ATTRIBUTES], map);
            } else {
                map.add("severity_number", record.severity_number);
                identity::id(map, "trace_id", record.trace_id);
                identity::id(map, "span_id", record.span_id);
            }
        });
        let added = values::attributes(record.attributes, &AttributePolicy::Full, &mut out);
        outcome = outcome.and(added);
    })?;
    outcome?;
    summary.without_time += u64::from(record.time_unix_nano == 0 && record.observed_time_unix_nano == 0);
    summary.logs += 1;
    Ok(())
}

/// What a record says: its body, or the name of the event where that is all.
fn text(record: &LogRecord<'_>) -> String {
    match record.body.unwrap_or_default() {
        AnyValue::Empty | AnyValue::Map(_) | AnyValue::Array(_) => {
            record.event_name.to_str_lossy().into_owned()
        }
        body => values::short_text(body),
    }
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
