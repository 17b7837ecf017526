//! A trainer for tests: encodes what ranks send, runs a stage over it, and decodes what the stage adds.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use pulsetrain_otlp::{
    Signal, UnixNanos,
    view::{AnyValue, KeyValue, Metric as MetricView, NumberValue, Repeated, Resource},
    walk,
    write::{
        Attribute, AttributeValue, Encoded, EncodedSeries, Envelope, GrowingHistogram, MetricsWriter,
        PointParts, SpanParts, SpansWriter,
    },
};
use pulsetrain_pipeline::{
    Batch, Stage,
    clock::{self, Instant},
};
use pulsetrain_semconv::{Event, Instrument, Metric, Span, attribute, metric, span};

use crate::{
    config::SignalsConfig,
    signals::{Derivation, Signals, SignalsStage},
    steps::StepFacts,
};

pub(crate) const SECOND: u64 = 1_000_000_000;
/// The start of the runs of tests.
pub(crate) const START: u64 = 1_700_000_000 * SECOND;

/// One rank of a run. Records are encoded as by the sources.
pub(crate) struct Trainer {
    envelope: Envelope,
    metrics: MetricsWriter,
    spans: SpansWriter,
    sums: BTreeMap<u16, f64>,
    histograms: BTreeMap<u16, GrowingHistogram>,
}

impl Trainer {
    /// Returns a rank of attempt 1 of a run of `world_size` ranks.
    pub(crate) fn new(run: &str, rank: i64, world_size: i64) -> Self {
        Self::of_attempt(run, rank, world_size, 1)
    }

    /// Returns a rank of an attempt.
    pub(crate) fn of_attempt(run: &str, rank: i64, world_size: i64, attempt: i64) -> Self {
        Self::of_instance(&format!("{run}/{rank}"), run, (rank, world_size), attempt)
    }

    /// Returns a rank with a `service.instance.id` of its own.
    pub(crate) fn of_instance(
        instance: &str,
        run: &str,
        (rank, world_size): (i64, i64),
        attempt: i64,
    ) -> Self {
        let host = format!("host-{}", rank / 8);
        let resource = [
            (attribute::SERVICE_NAME.name, AttributeValue::Text("trainer")),
            (
                attribute::SERVICE_INSTANCE_ID.name,
                AttributeValue::Text(instance),
            ),
            (attribute::HOST_NAME.name, AttributeValue::Text(&host)),
            (attribute::TRAIN_RUN_ID.name, AttributeValue::Text(run)),
            (attribute::TRAIN_RANK.name, AttributeValue::Int(rank)),
            (attribute::TRAIN_WORLD_SIZE.name, AttributeValue::Int(world_size)),
            (attribute::TRAIN_ATTEMPT.name, AttributeValue::Int(attempt)),
        ];
        Self {
            envelope: Envelope::new(&resource, "trainer", "1", ""),
            metrics: MetricsWriter::default(),
            spans: SpansWriter::default(),
            sums: BTreeMap::new(),
            histograms: BTreeMap::new(),
        }
    }

    /// Records a value: a gauge as it is, a counter by its increase, a histogram by an observation.
    pub(crate) fn record(&mut self, metric: &'static Metric, time: u64, value: f64) -> &mut Self {
        self.record_with(metric, time, value, &[])
    }

    /// Records a value with attributes.
    pub(crate) fn record_with(
        &mut self,
        metric: &'static Metric,
        time: u64,
        value: f64,
        attributes: &[Attribute<'_>],
    ) -> &mut Self {
        let (start, mut value) = (START, value);
        match metric.instrument {
            Instrument::Histogram => {
                let histogram = self
                    .histograms
                    .entry(metric.ordinal)
                    .or_insert_with(|| GrowingHistogram::for_series(&EncodedSeries::new(metric, attributes)));
                self.metrics
                    .observe(histogram, (UnixNanos(start), UnixNanos(time)), value);
                return self;
            }
            Instrument::Counter => {
                let sum = self.sums.entry(metric.ordinal).or_default();
                *sum += value;
                value = *sum;
            }
            _ => {}
        }
        let is_sum = metric.instrument != Instrument::Gauge;
        let point = PointParts {
            start_unix_nanos: if is_sum {
                UnixNanos(start)
            } else {
                UnixNanos::UNKNOWN
            },
            time_unix_nanos: UnixNanos(time),
            attributes,
        };
        let value = match metric.number {
            pulsetrain_semconv::Number::Int => NumberValue::Int(value as i64),
            pulsetrain_semconv::Number::Double => NumberValue::Double(value),
        };
        self.metrics.number(metric, point, value);
        self
    }

    /// Records the points of a step: its number and its duration in seconds.
    pub(crate) fn step(&mut self, number: i64, end: u64, secs: f64) -> &mut Self {
        self.record(&metric::TRAIN_GLOBAL_STEP, end, number as f64);
        self.record(&metric::TRAIN_STEP_DURATION, end, secs)
    }

    /// Records the span of a step and its consecutive child spans.
    pub(crate) fn step_span(
        &mut self,
        number: i64,
        end: u64,
        secs: f64,
        phases: &[(&'static Span, f64)],
    ) -> &mut Self {
        let start = end - (secs * 1e9).round() as u64;
        self.span(&span::TRAIN_STEP, Some(number), start, end);
        let mut at = start;
        for (phase, secs) in phases {
            let until = at + (secs * 1e9).round() as u64;
            self.span(phase, Some(number), at, until);
            at = until;
        }
        self
    }

    /// Records any span.
    pub(crate) fn span(&mut self, span: &'static Span, step: Option<i64>, start: u64, end: u64) -> &mut Self {
        let mut trace_id = [7; 16];
        trace_id[..8].copy_from_slice(&step.unwrap_or_default().to_be_bytes());
        let attributes: Vec<Attribute<'_>> = step
            .map(|step| (&attribute::TRAIN_STEP, AttributeValue::Int(step)))
            .into_iter()
            .collect();
        self.spans.span(&SpanParts {
            span,
            trace_id,
            span_id: (start ^ u64::from(span.name.len() as u8)).to_be_bytes(),
            parent_span_id: None,
            start_unix_nanos: UnixNanos(start),
            end_unix_nanos: UnixNanos(end),
            attributes: &attributes,
        });
        self
    }

    /// Ends the series of the step number, as a source does at the end of its run.
    pub(crate) fn end(&mut self, time: u64) -> &mut Self {
        let point = PointParts {
            time_unix_nanos: UnixNanos(time),
            ..PointParts::default()
        };
        self.metrics.end_of_series(&metric::TRAIN_GLOBAL_STEP, point);
        self
    }

    /// Returns what was recorded since the last call: metrics, spans.
    pub(crate) fn batches(&mut self) -> Vec<Batch> {
        let batch = |encoded: Encoded| Batch::new(encoded.signal, encoded.items, encoded.bytes);
        let metrics = self.metrics.finish(&self.envelope);
        let spans = self.spans.finish(&self.envelope);
        [metrics, spans].into_iter().flatten().map(batch).collect()
    }
}

/// A stage under test, with its own clock and output.
pub(crate) struct Bench {
    pub(crate) stage: SignalsStage,
    pub(crate) now: Instant,
    pub(crate) out: Vec<Batch>,
}

/// A point that was derived.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Derived {
    pub(crate) metric: String,
    /// `service.instance.id` of the resource.
    pub(crate) instance: String,
    pub(crate) attributes: Vec<String>,
    pub(crate) time: u64,
    pub(crate) value: f64,
}

impl Bench {
    /// Returns a stage with these derivations and the default configuration.
    pub(crate) fn new(derivations: Vec<Box<dyn Derivation>>) -> Self {
        Self {
            stage: SignalsStage::with(SignalsConfig::default(), derivations),
            now: clock::now(),
            out: Vec::new(),
        }
    }

    /// Passes the records of a trainer.
    pub(crate) fn pass(&mut self, trainer: &mut Trainer) -> &mut Self {
        for batch in trainer.batches() {
            self.stage.pass(batch, self.now, &mut self.out);
        }
        self
    }

    /// Advances time and releases due batches.
    pub(crate) fn wait(&mut self, time: Duration) -> &mut Self {
        self.now += time;
        if self.stage.due().is_some_and(|due| due <= self.now) {
            self.stage.release(self.now, &mut self.out);
        }
        self
    }

    /// Ends the stage.
    pub(crate) fn finish(&mut self) -> &mut Self {
        self.stage.finish(&mut self.out);
        self
    }

    /// Returns the derived points of a metric in order of output.
    pub(crate) fn points(&self, metric: &'static Metric) -> Vec<Derived> {
        let mut points = Vec::new();
        self.each_metric(|instance, derived| {
            if derived.name != metric.name {
                return;
            }
            let read = derived.each_point(|point| {
                // The end of a series has no value.
                let Some(value) = point.number() else { return };
                points.push(Derived {
                    metric: derived.name.to_string(),
                    instance: instance.to_owned(),
                    attributes: attributes_of(point.attributes()),
                    time: point.time().0,
                    value: value.as_f64(),
                });
            });
            read.expect("points");
        });
        points
    }

    /// Returns the derived events of a name: instance, time, body, attributes.
    pub(crate) fn events(&self, event: &'static Event) -> Vec<(String, u64, String, Vec<String>)> {
        let mut events = Vec::new();
        for batch in self.out.iter().filter(|batch| batch.signal() == Signal::Logs) {
            for resource in walk::records(batch.bytes()) {
                let resource = resource.expect("a resource");
                let instance = instance_of(resource.resource);
                for record in resource.items().map(|record| record.expect("a record")) {
                    if record.event_name == event.name {
                        let body = record.body.map(text_of).unwrap_or_default();
                        let attributes = attributes_of(record.attributes);
                        events.push((instance.clone(), record.time_unix_nano, body, attributes));
                    }
                }
            }
        }
        events
    }

    /// Returns the derived series, and whether each has ended.
    pub(crate) fn series(&self) -> BTreeMap<SeriesName, bool> {
        let mut series = BTreeMap::new();
        self.each_metric(|instance, derived| {
            let read = derived.each_point(|point| {
                let attributes = attributes_of(point.attributes());
                let name = (derived.name.to_string(), instance.to_owned(), attributes);
                series.insert(name, point.is_end());
            });
            read.expect("points");
        });
        series
    }

    /// Calls `read` with each derived metric and its instance.
    fn each_metric(&self, mut read: impl FnMut(&str, &MetricView<'_>)) {
        for batch in self.out.iter().filter(|batch| batch.signal() == Signal::Metrics) {
            for resource in walk::metrics(batch.bytes()) {
                let resource = resource.expect("a resource");
                let instance = instance_of(resource.resource);
                for scope in resource.scopes() {
                    let scope = scope.expect("a scope");
                    if scope.scope.is_some_and(|scope| scope.name == "pulsetrain.derive") {
                        for metric in scope.items {
                            read(&instance, &metric.expect("a metric"));
                        }
                    }
                }
            }
        }
    }

    /// Returns the values of the derived points of a metric.
    pub(crate) fn values(&self, metric: &'static Metric) -> Vec<f64> {
        self.points(metric).into_iter().map(|point| point.value).collect()
    }
}

/// The metric, instance and attributes of a derived series.
type SeriesName = (String, String, Vec<String>);

fn instance_of(resource: Option<Resource<'_>>) -> String {
    let attributes = resource.map(|resource| resource.attributes).unwrap_or_default();
    let mut attributes = attributes.into_iter().map(|entry| entry.expect("an attribute"));
    let found = attributes.find(|entry| entry.key == attribute::SERVICE_INSTANCE_ID.name);
    found
        .and_then(|entry| entry.value)
        .map(text_of)
        .unwrap_or_default()
}

fn attributes_of(attributes: Repeated<'_, KeyValue<'_>>) -> Vec<String> {
    let entries = attributes.into_iter().map(|entry| entry.expect("an attribute"));
    entries
        .map(|entry| format!("{}={}", entry.key, text_of(entry.value.unwrap_or_default())))
        .collect()
}

fn text_of(value: AnyValue<'_>) -> String {
    match value {
        AnyValue::String(text) => text.to_string(),
        AnyValue::Int(number) => number.to_string(),
        AnyValue::Double(number) => number.to_string(),
        other => format!("{other:?}"),
    }
}

/// A derivation that keeps its steps.
#[derive(Clone, Default)]
pub(crate) struct Seen(Arc<Mutex<Vec<StepFacts>>>);

impl Seen {
    /// Returns the steps so far.
    pub(crate) fn steps(&self) -> Vec<StepFacts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Derivation for Seen {
    fn sends(&self) -> &'static [&'static Metric] {
        &[]
    }

    fn on_step(&mut self, step: &StepFacts, _: &mut Signals) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(step.clone());
    }
}

/// Returns the time `secs` after the start of the runs of tests.
pub(crate) fn at(secs: f64) -> u64 {
    START + (secs * 1e9).round() as u64
}

/// Returns the same as a `UnixNanos`.
pub(crate) fn time(secs: f64) -> UnixNanos {
    UnixNanos(at(secs))
}
