//! Converts points: the original points sorted by metric, and the values of other counters as gauges.

use std::{
    collections::{BTreeMap, HashMap},
    io,
};

use pulsetrain_otlp::{
    Signal,
    descriptor::{FieldKind, MessageDescriptor},
    view::{Message, Metric},
    write::Buffer,
};
use pulsetrain_perfetto::{AnnotationData, CounterReading, TraceEvent, TrackKind};
use pulsetrain_pipeline::spill::{MemoryBudget, Sorter};

use super::{
    message,
    metric_metadata::MetricMetadata,
    names,
    resource_batches::{BatchContext, BatchKey, MESSAGE_BYTES, ResourceBatches},
    tracks::Tracks,
    values::{self, Entries},
};
use crate::ConvertError;

/// The fields of `Metric` that hold points (proto/metrics/v1/metrics.proto), by their names in OTLP/JSON.
const DATA: [&str; 5] = ["gauge", "sum", "histogram", "exponentialHistogram", "summary"];

/// Points by their metrics.
#[derive(Debug)]
pub(super) struct Points {
    all: Sorter,
    metrics: Vec<(u64, Vec<(String, AnnotationData)>)>,
    numbers: HashMap<(u64, u64), u64>,
    pub(super) count: u64,
}

impl Points {
    pub(super) fn new(room: MemoryBudget, metadata: &mut MetricMetadata, tracks: &Tracks) -> Self {
        let metadata: BTreeMap<_, _> = metadata.metrics(tracks);
        let numbers = metadata.keys().zip(0..).map(|(key, number)| (*key, number));
        Self {
            all: Sorter::new(room),
            numbers: numbers.collect(),
            metrics: metadata
                .into_iter()
                .map(|((process, _), head)| (process, head))
                .collect(),
            count: 0,
        }
    }

    /// Stores the original point of an event; returns `false` for an event without one.
    pub(super) fn take(
        &mut self,
        event: &TraceEvent,
        time: u64,
        fields: &Entries,
        process: u64,
    ) -> io::Result<bool> {
        let Some(metric) = values::number(fields, "point_of") else {
            return Ok(false);
        };
        let Some(number) = self.numbers.get(&(process, metric)).copied() else {
            return Ok(false);
        };
        let (_, head) = &self.metrics[number as usize];
        let Some(about) = data(head).and_then(|data| point_of(data.0)) else {
            return Ok(false);
        };
        self.count += 1;
        let point = point(about, event, time, fields);
        self.all
            .push((number, 0), |out| out.extend_from_slice(point.as_slice()))?;
        Ok(true)
    }

    /// Assembles the metrics and adds them to their batches. Returns the number of bytes that were written to a file.
    pub(super) fn assemble<E: From<ConvertError>, D: FnMut(Signal, Vec<u8>) -> Result<(), E>>(
        self,
        batches: &mut ResourceBatches<'_, D>,
        known: BatchContext<'_>,
    ) -> Result<u64, E> {
        let mut sorted = self.all.sorted().map_err(ConvertError::Temporary)?;
        for ((process, head), number) in self.metrics.iter().zip(0..) {
            let batch_key =
                BatchKey::Process(*process, Ok(values::number(head, "scope").unwrap_or_default()));
            let (mut points, mut is_first) = (Buffer::default(), true);
            loop {
                let has_more = sorted.next_key().is_some_and(|(next, _)| next == number);
                if points.len() >= MESSAGE_BYTES || !has_more && (is_first || !points.is_empty()) {
                    let metric = metric(head, &points);
                    batches.push(Signal::Metrics, batch_key.clone(), metric.as_slice(), known)?;
                    points.clear();
                    is_first = false;
                }
                if !has_more {
                    break;
                }
                let point = sorted.next_record().map_err(ConvertError::Temporary)?;
                points.delimited(1, point.unwrap_or_default());
            }
        }
        Ok(sorted.spilled_bytes())
    }
}

/// Encodes a point. Its time and value are those of the counter unless the annotations have them.
fn point(about: &MessageDescriptor, event: &TraceEvent, time: u64, fields: &Entries) -> Buffer {
    let mut out = Buffer::default();
    message::encode(about, fields, &[], &mut out);
    let has = |key| values::get(fields, key).is_some();
    if event.kind == pulsetrain_perfetto::EventKind::Counter && about.name == "NumberPoint" {
        if !has("timeUnixNano") {
            out.fixed64(3, time);
        }
        if !has("asDouble") && !has("asInt") {
            reading(event.value, &mut out);
        }
    }
    out
}

fn reading(value: Option<CounterReading>, point: &mut Buffer) {
    match value {
        Some(CounterReading::Double(value)) => point.double(4, value),
        Some(CounterReading::Int(value)) => point.fixed64(6, value as u64),
        None => {}
    }
}

/// Returns the field of a metric that holds its points: its name, its number and its other fields.
fn data(head: &Entries) -> Option<(&'static str, u32, &AnnotationData)> {
    DATA.iter().find_map(|name| {
        let value = values::get(head, name)?;
        let (_, field) = Metric::descriptor().by_json_name(name.as_bytes())?;
        Some((*name, field.number, value))
    })
}

/// Returns the descriptor of the points of a kind of metric.
fn point_of(data: &str) -> Option<&'static MessageDescriptor> {
    let (_, field) = Metric::descriptor().by_json_name(data.as_bytes())?;
    let FieldKind::One(inner) = field.kind else {
        return None;
    };
    let (_, points) = inner().by_number(1)?;
    match points.kind {
        FieldKind::Many(point) => Some(point()),
        _ => None,
    }
}

/// Encodes a `Metric` message with its points.
fn metric(head: &Entries, points: &Buffer) -> Buffer {
    let mut out = Buffer::default();
    message::encode(Metric::descriptor(), head, &DATA, &mut out);
    if let Some((name, number, fields)) = data(head) {
        let mut inner = Buffer::default();
        inner.append(points.as_slice());
        if let (Some((_, field)), AnnotationData::Map(fields)) =
            (Metric::descriptor().by_json_name(name.as_bytes()), fields)
            && let FieldKind::One(about) = field.kind
        {
            message::encode(about(), fields, &[], &mut inner);
        }
        out.delimited(number, inner.as_slice());
    }
    out
}

/// The values of a counter as a gauge, which is sent when it is large enough.
#[derive(Debug, Default)]
pub(super) struct Gauge {
    points: Buffer,
}

impl Gauge {
    /// Adds a value; returns `true` if the gauge must be sent before the next one.
    pub(super) fn take(&mut self, event: &TraceEvent, time: u64, label: &CounterLabel) -> bool {
        if event.value.is_some() {
            let mut point = Buffer::default();
            point.fixed64(3, time);
            reading(event.value, &mut point);
            point.append(label.attributes.as_slice());
            self.points.delimited(1, point.as_slice());
        }
        self.points.len() >= MESSAGE_BYTES
    }

    /// Returns the `Metric` message of the added values, if any.
    pub(super) fn end(&mut self, label: &CounterLabel) -> Option<Buffer> {
        if self.points.is_empty() {
            return None;
        }
        let mut out = Buffer::default();
        out.append(label.head.as_slice());
        out.delimited(5, self.points.as_slice());
        self.points.clear();
        Some(out)
    }
}

/// The name, unit and attributes of a counter; a name like `gpu.power {device.id=0}` contains attributes. Texts with separators
/// are in quotes.
#[derive(Debug, Default)]
pub(super) struct CounterLabel {
    head: Buffer,
    attributes: Buffer,
}

impl CounterLabel {
    pub(super) fn for_track(track: u64, tracks: &Tracks) -> Self {
        let full = tracks.name(track);
        let (name, labels) = names::name_and_labels(full).unwrap_or((full, Vec::new()));
        let mut label = Self::default();
        for (key, value) in labels {
            let value = AnnotationData::Text(names::unquoted(value).into_owned());
            values::attribute(7, &names::unquoted(key), &value, &mut label.attributes);
        }
        label.head.text(1, name);
        if let Some(about) = tracks.get(track) {
            label.head.text(2, &about.description);
            if let TrackKind::Counter { unit } = &about.kind {
                label.head.text(3, unit);
            }
        }
        label
    }
}
