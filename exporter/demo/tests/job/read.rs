//! Reads batches back into points, spans and events.

#![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

use std::collections::BTreeMap;

use pulsetrain_demo::{Demo, DemoConfig, Truth};
use pulsetrain_otlp::{
    Signal, UnixNanos,
    view::{AnyValue, KeyValue, Repeated},
    walk::{self, PointValue},
};
use pulsetrain_pipeline::Batch;
use pulsetrain_semconv::{Attribute, Metric, Span, attribute};

/// Attributes as text.
pub(crate) type Attributes = BTreeMap<String, String>;

/// The telemetry that a job has sent.
#[derive(Default)]
pub(crate) struct Sent {
    pub(crate) points: Vec<Point>,
    pub(crate) spans: Vec<SpanItem>,
    pub(crate) events: Vec<(String, Attributes)>,
    pub(crate) truth: Vec<Truth>,
}

/// A point; for a histogram, its sum.
pub(crate) struct Point {
    pub(crate) metric: String,
    pub(crate) resource: Attributes,
    pub(crate) attributes: Attributes,
    pub(crate) time: UnixNanos,
    pub(crate) value: f64,
    pub(crate) is_ended: bool,
}

pub(crate) struct SpanItem {
    pub(crate) name: String,
    pub(crate) resource: Attributes,
    pub(crate) attributes: Attributes,
    pub(crate) start: UnixNanos,
    pub(crate) end: UnixNanos,
    pub(crate) trace: Vec<u8>,
    pub(crate) id: Vec<u8>,
    pub(crate) parent: Vec<u8>,
}

/// Runs a job to its end, and returns its telemetry.
pub(crate) fn sent(config: DemoConfig) -> Sent {
    let mut demo = Demo::new(config).expect("a job that can be simulated");
    let (mut sent, mut last) = (Sent::default(), UnixNanos::UNKNOWN);
    while let Some((time, batches)) = demo.next_batches() {
        assert!(time >= last, "time goes back");
        last = time;
        batches.iter().for_each(|batch| sent.read(batch));
    }
    let counts = demo.counts();
    assert_eq!(counts.points, sent.points.len() as u64);
    assert_eq!(counts.spans, sent.spans.len() as u64);
    assert_eq!(counts.events, sent.events.len() as u64);
    sent.truth = demo.truth().to_vec();
    sent
}

impl Sent {
    fn read(&mut self, batch: &Batch) {
        match batch.signal() {
            Signal::Metrics => self.read_metrics(batch.bytes()),
            Signal::Traces => self.read_spans(batch.bytes()),
            Signal::Logs => self.read_events(batch.bytes()),
        }
    }

    fn read_metrics(&mut self, bytes: &[u8]) {
        for resource in walk::metrics(bytes) {
            let resource = resource.unwrap();
            let own = attributes(resource.attributes());
            for metric in resource.items() {
                let metric = metric.unwrap();
                let read = metric.each_point(|point| {
                    let value = match point.value() {
                        Some(PointValue::Number(number)) => number.as_f64(),
                        Some(PointValue::Distribution(distribution)) => distribution.sum.unwrap_or_default(),
                        None => f64::NAN,
                    };
                    self.points.push(Point {
                        metric: metric.name.to_string(),
                        resource: own.clone(),
                        attributes: attributes(point.attributes()),
                        time: point.time(),
                        value,
                        is_ended: point.is_end(),
                    });
                });
                read.unwrap();
            }
        }
    }

    fn read_spans(&mut self, bytes: &[u8]) {
        for resource in walk::spans(bytes) {
            let resource = resource.unwrap();
            let own = attributes(resource.attributes());
            for span in resource.items() {
                let span = span.unwrap();
                self.spans.push(SpanItem {
                    name: span.name.to_str().unwrap().to_owned(),
                    resource: own.clone(),
                    attributes: attributes(span.attributes),
                    start: UnixNanos(span.start_time_unix_nano),
                    end: UnixNanos(span.end_time_unix_nano),
                    trace: span.trace_id.to_vec(),
                    id: span.span_id.to_vec(),
                    parent: span.parent_span_id.to_vec(),
                });
            }
        }
    }

    fn read_events(&mut self, bytes: &[u8]) {
        for record in walk::records(bytes).flat_map(|resource| resource.unwrap().items()) {
            let record = record.unwrap();
            let name = record.event_name.to_str().unwrap().to_owned();
            self.events.push((name, attributes(record.attributes)));
        }
    }

    /// The points of a metric, without those that end a series.
    pub(crate) fn points<'a>(&'a self, metric: &Metric) -> impl Iterator<Item = &'a Point> {
        let name = metric.name;
        self.points
            .iter()
            .filter(move |point| point.metric == name && !point.is_ended)
    }

    /// The points of a metric of one rank.
    pub(crate) fn of_rank<'a>(&'a self, metric: &Metric, rank: i64) -> impl Iterator<Item = &'a Point> {
        self.points(metric)
            .filter(move |point| point.rank() == Some(rank))
    }

    /// The spans of a name.
    pub(crate) fn spans_of<'a>(&'a self, span: &Span) -> impl Iterator<Item = &'a SpanItem> {
        let name = span.name;
        self.spans.iter().filter(move |span| span.name == name)
    }

    /// The spans of a name on one rank.
    pub(crate) fn spans_of_rank<'a>(&'a self, span: &Span, rank: i64) -> impl Iterator<Item = &'a SpanItem> {
        self.spans_of(span).filter(move |span| span.rank() == rank)
    }
}

impl Point {
    /// The rank of the resource, or of the point of a GPU.
    pub(crate) fn rank(&self) -> Option<i64> {
        let own = self.resource.get(attribute::TRAIN_RANK.name);
        let rank = own.or_else(|| self.attributes.get(attribute::TRAIN_RANK.name));
        rank.map(|rank| rank.parse().unwrap())
    }

    pub(crate) fn attribute(&self, attribute: &Attribute) -> &str {
        self.attributes.get(attribute.name).map_or("", String::as_str)
    }
}

impl SpanItem {
    pub(crate) fn rank(&self) -> i64 {
        self.resource[attribute::TRAIN_RANK.name].parse().unwrap()
    }

    pub(crate) fn step(&self) -> u64 {
        self.attributes[attribute::TRAIN_STEP.name].parse().unwrap()
    }

    pub(crate) fn seconds(&self) -> f64 {
        self.end.secs_since(self.start)
    }
}

fn attributes(pairs: Repeated<'_, KeyValue<'_>>) -> Attributes {
    let text = |pair: KeyValue<'_>| {
        let value = match pair.value {
            Some(AnyValue::String(text)) => text.to_str().unwrap().to_owned(),
            Some(AnyValue::Int(number)) => number.to_string(),
            Some(AnyValue::Double(number)) => number.to_string(),
            other => format!("{other:?}"),
        };
        (pair.key.to_str().unwrap().to_owned(), value)
    };
    pairs.iter().map(|pair| text(pair.unwrap())).collect()
}
