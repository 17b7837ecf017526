//! Log records: lines of the trace's log, and instants with all that they carry.

use std::io::Write;

use bytes::Bytes;
use pulsetrain_otlp::{
    WireError,
    view::{AnyValue, LogRecord, LogsData, Message, ResourceLogs},
};
use pulsetrain_perfetto::{LogLine, LogPriority, ProcessTrack, TraceWriter};

use super::{
    PerfettoConfig, PerfettoError, PerfettoSummary, config::AttributePolicy, identity, resources::Resources,
    spans::first, values,
};

/// Where the row of log records stands among a process's tracks: below the counters.
const RANK: i32 = 200_000;

/// The log records of an input.
#[derive(Debug, Default)]
pub(super) struct Records {
    batches: Vec<Bytes>,
    all: Vec<Record>,
}

#[derive(Clone, Copy, Debug)]
struct Record {
    batch: u32,
    offset: u32,
    length: u32,
    resource: u32,
    time: u64,
}

impl Records {
    /// Takes in a batch of logs.
    pub(super) fn add(
        &mut self,
        batch: Bytes,
        config: &PerfettoConfig,
        resources: &mut Resources,
        summary: &mut PerfettoSummary,
    ) -> Result<(), WireError> {
        let mut all = LogsData::decode(&batch)?.resource_logs.iter();
        while let Some(bytes) = all.next_bytes() {
            let bytes = bytes?;
            let resource = resources.number(first(bytes, 1))?;
            let ranked = config.shows_rank(resources.get(resource).rank);
            for scope in ResourceLogs::decode(bytes)?.scope_logs {
                let mut each = scope?.log_records.iter();
                while let Some(bytes) = each.next_bytes() {
                    let bytes = bytes?;
                    let record = LogRecord::decode(bytes)?;
                    let time = if record.time_unix_nano == 0 {
                        record.observed_time_unix_nano
                    } else {
                        record.time_unix_nano
                    };
                    if !ranked || !config.shows_time(time, time) {
                        summary.filtered += 1;
                        continue;
                    }
                    self.all.push(Record {
                        batch: self.batches.len() as u32,
                        offset: (bytes.as_ptr() as usize - batch.as_ptr() as usize) as u32,
                        length: bytes.len() as u32,
                        resource,
                        time,
                    });
                }
            }
        }
        self.batches.push(batch);
        Ok(())
    }

    /// Draws the records of one process.
    pub(super) fn draw<W: Write>(
        &self,
        trace: &mut TraceWriter<W>,
        process: ProcessTrack,
        resource: u32,
        summary: &mut PerfettoSummary,
    ) -> Result<(), PerfettoError> {
        let mut mine: Vec<&Record> = self
            .all
            .iter()
            .filter(|record| record.resource == resource)
            .collect();
        if mine.is_empty() {
            return Ok(());
        }
        mine.sort_by_key(|record| record.time);
        let lane = trace.lane(process, "logs", RANK)?;
        for record in mine {
            let start = record.offset as usize;
            let bytes = &self.batches[record.batch as usize][start..start + record.length as usize];
            let said = LogRecord::decode(bytes)?;
            let text = text(&said);
            let line = LogLine {
                priority: priority(said.severity_number),
                tag: said.event_name.as_bytes(),
                message: text.as_bytes(),
            };
            trace.log(process, record.time, &line)?;
            let mut outcome = Ok(());
            trace.instant(lane, record.time, text.as_bytes(), |event| {
                let mut out = event.annotations();
                out.map(identity::KEY, |map| {
                    map.add("severity_number", said.severity_number);
                    identity::id(map, "trace_id", said.trace_id);
                    identity::id(map, "span_id", said.span_id);
                });
                outcome = values::attributes(said.attributes, &AttributePolicy::Full, &mut out);
            })?;
            outcome?;
            summary.logs += 1;
        }
        Ok(())
    }
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
