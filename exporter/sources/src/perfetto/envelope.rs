//! Resources and scopes around what was read, in messages of a size that every receiver takes.

use std::collections::BTreeMap;

use pulsetrain_otlp::{Signal, write::Buffer};
use pulsetrain_perfetto::{AnnotationData, CounterReading, LogItem, TraceEvent, TrackKind};
use pulsetrain_semconv::attribute;

use super::{slices::Epoch, spans::Home, tracks::Tracks, values, written::Written};

/// A message is ended when its items have this many bytes.
const MESSAGE_BYTES: usize = 1 << 20;

pub(super) type Messages = Vec<(Signal, Vec<u8>)>;

/// What stands around items: encoded messages, and the schemas beside them.
#[derive(Debug, Default)]
pub(super) struct Around {
    pub(super) resource: Buffer,
    pub(super) resource_schema_url: String,
    pub(super) scope: Buffer,
    pub(super) schema_url: String,
}

impl Around {
    fn wrap(&self, items: &Buffer) -> Vec<u8> {
        let mut scope = Buffer::default();
        scope.delimited(1, self.scope.as_slice());
        scope.append(items.as_slice());
        scope.text(3, &self.schema_url);
        let mut resource = Buffer::default();
        resource.delimited(1, self.resource.as_slice());
        resource.delimited(2, scope.as_slice());
        resource.text(3, &self.resource_schema_url);
        let mut whole = Buffer::default();
        whole.delimited(1, resource.as_slice());
        whole.into_vec()
    }

    /// Adds messages that hold these items, each field 2 of its scope.
    pub(super) fn push(
        &self,
        signal: Signal,
        each: impl IntoIterator<Item = Buffer>,
        messages: &mut Messages,
    ) {
        let mut items = Buffer::default();
        for item in each {
            items.delimited(2, item.as_slice());
            if items.len() >= MESSAGE_BYTES {
                messages.push((signal, self.wrap(&items)));
                items.clear();
            }
        }
        if !items.is_empty() {
            messages.push((signal, self.wrap(&items)));
        }
    }
}

/// Wraps spans.
pub(super) fn traces(
    spans: BTreeMap<Home, Vec<Buffer>>,
    written: &Written<'_>,
    tracks: &Tracks,
    messages: &mut Messages,
) {
    for (home, spans) in spans {
        let scope = home.scope.as_ref().copied().unwrap_or_default();
        let around = match written.around(home.process, scope) {
            Some(around) => around,
            None => Around {
                resource: resource(home.process, tracks),
                scope: home
                    .scope
                    .as_ref()
                    .map_or_else(|name| named(name), |_| Buffer::default()),
                ..Around::default()
            },
        };
        around.push(Signal::Traces, spans, messages);
    }
}

/// A process as a resource.
fn resource(process: u64, tracks: &Tracks) -> Buffer {
    let mut out = Buffer::default();
    let name = match tracks.name(process) {
        "" => "perfetto",
        name => name,
    };
    let text = AnnotationData::Text(name.to_owned());
    values::attribute(1, attribute::SERVICE_NAME.name, &text, &mut out);
    if let Some(TrackKind::Process { pid, .. }) = tracks.get(process).map(|track| &track.kind) {
        let pid = AnnotationData::Int(i64::from(*pid));
        values::attribute(1, attribute::PROCESS_PID.name, &pid, &mut out);
    }
    out
}

fn named(name: &str) -> Buffer {
    let mut out = Buffer::default();
    out.text(1, name);
    out
}

/// Wraps counters, each a gauge.
pub(super) fn metrics(counters: &[&TraceEvent], tracks: &Tracks, epoch: Epoch, messages: &mut Messages) {
    let mut by_track = BTreeMap::<(u64, u64), Vec<&TraceEvent>>::new();
    for &event in counters {
        let process = tracks.process(event.track_uuid);
        by_track
            .entry((process, event.track_uuid))
            .or_default()
            .push(event);
    }
    let mut by_process = BTreeMap::<u64, Vec<Buffer>>::new();
    for ((process, track), events) in by_track {
        by_process
            .entry(process)
            .or_default()
            .push(gauge(track, &events, tracks, epoch));
    }
    for (process, gauges) in by_process {
        let around = Around {
            resource: resource(process, tracks),
            ..Around::default()
        };
        around.push(Signal::Metrics, gauges, messages);
    }
}

/// A `Metric` message; a name like `gpu.power {device.id=0}` has attributes in it.
fn gauge(track: u64, events: &[&TraceEvent], tracks: &Tracks, epoch: Epoch) -> Buffer {
    let whole = tracks.name(track);
    let (name, labels) = whole
        .strip_suffix('}')
        .and_then(|rest| rest.split_once(" {"))
        .unwrap_or((whole, ""));
    let mut attributes = Buffer::default();
    for (key, value) in labels.split(", ").filter_map(|label| label.split_once('=')) {
        values::attribute(7, key, &AnnotationData::Text(value.to_owned()), &mut attributes);
    }
    let mut points = Buffer::default();
    for event in events {
        let mut point = Buffer::default();
        point.fixed64(3, epoch.unix(event.time));
        match event.value {
            Some(CounterReading::Int(value)) => point.fixed64(6, value as u64),
            Some(CounterReading::Double(value)) => point.double(4, value),
            None => continue,
        }
        point.append(attributes.as_slice());
        points.delimited(1, point.as_slice());
    }
    let mut out = Buffer::default();
    out.text(1, name);
    if let Some(about) = tracks.get(track) {
        out.text(2, &about.description);
        if let TrackKind::Counter { unit } = &about.kind {
            out.text(3, unit);
        }
    }
    out.delimited(5, points.as_slice());
    out
}

/// Wraps log lines, those of one process together.
pub(super) fn logs(lines: &[&LogItem], messages: &mut Messages) {
    let mut by_pid = BTreeMap::<i32, Vec<Buffer>>::new();
    for line in lines {
        by_pid.entry(line.pid).or_default().push(record(line));
    }
    for (pid, records) in by_pid {
        let mut around = Around::default();
        let pid = AnnotationData::Int(i64::from(pid));
        values::attribute(1, attribute::PROCESS_PID.name, &pid, &mut around.resource);
        around.push(Signal::Logs, records, messages);
    }
}

/// A `LogRecord` message.
fn record(line: &LogItem) -> Buffer {
    let mut out = Buffer::default();
    if let pulsetrain_perfetto::Time::Unix(nanos) = line.time {
        out.fixed64(1, nanos);
    }
    // Android's names, four of OTLP's numbers apart: verbose (2) is TRACE (1).
    out.uint(2, u64::from(line.priority.clamp(2, 7) - 2) * 4 + 1);
    let mut body = Buffer::default();
    body.delimited(1, line.message.as_bytes());
    out.delimited(5, body.as_slice());
    out.text(12, &line.tag);
    out
}
