//! Simulated input: GPUs that report their counters, and ranks that report their steps.

use std::{collections::BTreeMap, ops::RangeInclusive, time::Duration};

use opentelemetry_proto::tonic::{
    common::v1::{KeyValue, any_value},
    metrics::v1::{MetricsData, metric, number_data_point},
    trace::v1::{Span, TracesData},
};
use prost::Message;
use pulsetrain_derive::{EnergyConfig, EnergyStage};
use pulsetrain_otlp::{
    Signal, UnixNanos,
    view::NumberValue,
    write::{
        Attribute, AttributeValue, Encoded, Envelope, HistogramParts, MetricsWriter, PointParts, SpanParts,
        SpansWriter,
    },
};
use pulsetrain_pipeline::{
    Batch, Stage,
    clock::{self, Instant},
};
use pulsetrain_semconv::{Metric, attribute, metric as names, span};

pub(crate) const SECOND: u64 = 1_000_000_000;
/// The time zero of the tests, which have a resolution of a nanosecond.
const ZERO_TIME: u64 = 1_123_456_789;

/// A rank with the attributes of its telemetry.
#[derive(Clone, Debug)]
pub(crate) struct Rank {
    pub(crate) run: &'static str,
    pub(crate) rank: i64,
    pub(crate) host: &'static str,
    pub(crate) world_size: Option<i64>,
}

/// A stage with its output.
pub(crate) struct World {
    pub(crate) stage: EnergyStage,
    pub(crate) now: Instant,
    pub(crate) out: Vec<Batch>,
}

/// The rank 0 of the run `r` on the host `h`.
pub(crate) const ZERO: Rank = Rank {
    run: "r",
    rank: 0,
    host: "h",
    world_size: None,
};

impl Rank {
    fn envelope(&self) -> Envelope {
        let mut resource = vec![
            (attribute::TRAIN_RUN_ID.name, AttributeValue::Text(self.run)),
            (attribute::TRAIN_RANK.name, AttributeValue::Int(self.rank)),
        ];
        if !self.host.is_empty() {
            resource.push((attribute::HOST_NAME.name, AttributeValue::Text(self.host)));
        }
        resource.extend(
            self.world_size
                .map(|size| (attribute::TRAIN_WORLD_SIZE.name, AttributeValue::Int(size))),
        );
        Envelope::new(&resource, "trainer", "1", "")
    }

    /// The span of a step between two times in nanoseconds.
    pub(crate) fn step(&self, number: i64, start: u64, end: u64) -> Batch {
        self.step_with(number, start, end, &[])
    }

    pub(crate) fn step_with(&self, number: i64, start: u64, end: u64, more: &[Attribute<'_>]) -> Batch {
        let mut attributes = vec![(&attribute::TRAIN_STEP, AttributeValue::Int(number))];
        attributes.extend_from_slice(more);
        let mut writer = SpansWriter::default();
        writer.span(&SpanParts {
            span: &span::TRAIN_STEP,
            trace_id: [1; 16],
            span_id: number.to_be_bytes(),
            parent_span_id: None,
            start_unix_nanos: UnixNanos(ZERO_TIME + start),
            end_unix_nanos: UnixNanos(ZERO_TIME + end),
            attributes: &attributes,
        });
        batch(writer.finish(&self.envelope()))
    }

    /// A point of the durations of all steps so far.
    pub(crate) fn durations(&self, count: u64, sum: f64, time: u64) -> Batch {
        let mut writer = MetricsWriter::default();
        let metric = &names::TRAIN_STEP_DURATION;
        let point = PointParts {
            start_unix_nanos: UnixNanos(1),
            time_unix_nanos: UnixNanos(ZERO_TIME + time),
            attributes: &[],
        };
        let contents = HistogramParts {
            count,
            sum,
            min: 0.0,
            max: sum,
            bucket_counts: &vec![0; metric.bounds.len() + 1],
        };
        writer.histogram(metric, point, contents);
        batch(writer.finish(&self.envelope()))
    }
}

/// Returns a reading of one metric of a GPU on the host `h`, claimed by a rank if there is one.
pub(crate) fn reading(
    gpu: &str,
    owner: Option<&Rank>,
    metric: &'static Metric,
    time: u64,
    value: f64,
    more: &[Attribute<'_>],
) -> Batch {
    readings(gpu, owner, metric, &[(time, value)], more)
}

fn readings(
    gpu: &str,
    owner: Option<&Rank>,
    metric: &'static Metric,
    values: &[(u64, f64)],
    more: &[Attribute<'_>],
) -> Batch {
    let mut attributes = vec![(&attribute::GPU_ID, AttributeValue::Text(gpu))];
    if let Some(owner) = owner {
        attributes.push((&attribute::TRAIN_RUN_ID, AttributeValue::Text(owner.run)));
        attributes.push((&attribute::TRAIN_RANK, AttributeValue::Int(owner.rank)));
    }
    attributes.extend_from_slice(more);
    let mut writer = MetricsWriter::default();
    for (time, value) in values {
        let point = PointParts {
            start_unix_nanos: UnixNanos::UNKNOWN,
            time_unix_nanos: UnixNanos(ZERO_TIME + time),
            attributes: &attributes,
        };
        writer.number(metric, point, NumberValue::Double(*value));
    }
    let resource = [(attribute::HOST_NAME.name, AttributeValue::Text("h"))];
    batch(writer.finish(&Envelope::new(&resource, "gpu", "1", "")))
}

/// Returns the energy counter of a GPU around an update. The GPU source reads it shortly before, too.
pub(crate) fn energy(gpu: &str, owner: Option<&Rank>, time: u64, joules: f64) -> Batch {
    let before = (time.saturating_sub(1), joules - 1e-9);
    readings(gpu, owner, &names::GPU_ENERGY, &[before, (time, joules)], &[])
}

/// One reading of the energy counter of a GPU.
pub(crate) fn read_energy(gpu: &str, owner: Option<&Rank>, time: u64, joules: f64) -> Batch {
    reading(gpu, owner, &names::GPU_ENERGY, time, joules, &[])
}

/// The enforced power limit of a GPU.
pub(crate) fn power_limit(gpu: &str, owner: Option<&Rank>, time: u64, watts: f64) -> Batch {
    let enforced = [(&attribute::GPU_POWER_LIMIT_KIND, AttributeValue::Text("enforced"))];
    reading(gpu, owner, &names::GPU_POWER_LIMIT, time, watts, &enforced)
}

fn batch(encoded: Option<Encoded>) -> Batch {
    let encoded = encoded.expect("something was written");
    Batch::new(encoded.signal, encoded.items, encoded.bytes)
}

impl World {
    pub(crate) fn new(config: EnergyConfig) -> Self {
        Self {
            stage: EnergyStage::new(config),
            now: clock::now(),
            out: Vec::new(),
        }
    }

    pub(crate) fn pass(&mut self, batch: Batch) {
        self.stage.pass(batch, self.now, &mut self.out);
    }

    /// Passes the energy counter of a GPU: pairs of a second and joules.
    pub(crate) fn count(&mut self, gpu: &str, owner: Option<&Rank>, counter: &[(u64, f64)]) {
        for (second, joules) in counter {
            self.pass(energy(gpu, owner, second * SECOND, *joules));
        }
    }

    /// Passes the counter of `GPU-0`, which draws 100 W, at each of these seconds.
    pub(crate) fn draw_100_watts(&mut self, owner: Option<&Rank>, seconds: RangeInclusive<u64>) {
        for second in seconds {
            self.pass(energy("GPU-0", owner, second * SECOND, 100.0 * second as f64));
        }
    }

    /// Advances time and releases due batches.
    pub(crate) fn wait(&mut self, time: Duration) {
        self.now += time;
        self.stage.release(self.now, &mut self.out);
    }

    pub(crate) fn finish(&mut self) {
        self.stage.finish(&mut self.out);
    }

    /// Returns the steps in order of output.
    pub(crate) fn steps(&self) -> Vec<Derived> {
        let traces = self.out.iter().filter(|batch| batch.signal() == Signal::Traces);
        traces.flat_map(spans).map(Derived::from_span).collect()
    }

    /// Returns the only step.
    pub(crate) fn step(&self) -> Derived {
        let mut steps = self.steps();
        assert_eq!(steps.len(), 1, "{steps:?}");
        steps.remove(0)
    }

    /// Returns the last count and sum of a derived histogram of a run's rank.
    pub(crate) fn histogram(&self, name: &str) -> Option<(u64, f64)> {
        let all = self.metrics().into_iter().filter(|metric| metric.name == name);
        let mut points = all.filter_map(|metric| match metric.data? {
            metric::Data::Histogram(histogram) => histogram.data_points.last().cloned(),
            _ => None,
        });
        points
            .next_back()
            .map(|point| (point.count, rounded(point.sum.unwrap_or(f64::NAN))))
    }

    /// Returns the last value of a gauge.
    pub(crate) fn gauge(&self, name: &str) -> Option<f64> {
        let all = self.metrics().into_iter().filter(|metric| metric.name == name);
        let mut points = all.filter_map(|metric| match metric.data? {
            metric::Data::Gauge(gauge) => gauge.data_points.last().cloned(),
            _ => None,
        });
        points.next_back().and_then(|point| match point.value? {
            number_data_point::Value::AsDouble(value) => Some(value),
            number_data_point::Value::AsInt(value) => Some(value as f64),
        })
    }

    /// Returns the last value of `gpu.run.energy` in a phase.
    pub(crate) fn run_energy(&self, phase: &str) -> f64 {
        let is_of_phase = |attributes: &[KeyValue]| {
            let mut values = attributes
                .iter()
                .filter_map(|entry| entry.value.as_ref()?.value.as_ref());
            values.any(|value| *value == any_value::Value::StringValue(phase.to_owned()))
        };
        let all = self
            .metrics()
            .into_iter()
            .filter(|metric| metric.name == names::GPU_RUN_ENERGY.name);
        let sums = all.filter_map(|metric| match metric.data? {
            metric::Data::Sum(sum) => Some(sum.data_points),
            _ => None,
        });
        let last = sums.flatten().rfind(|point| is_of_phase(&point.attributes));
        match last.and_then(|point| point.value) {
            Some(number_data_point::Value::AsDouble(joules)) => joules,
            other => panic!("{phase}: {other:?}"),
        }
    }

    fn metrics(&self) -> Vec<opentelemetry_proto::tonic::metrics::v1::Metric> {
        let metrics = self.out.iter().filter(|batch| batch.signal() == Signal::Metrics);
        metrics
            .map(|batch| MetricsData::decode(batch.bytes().clone()).expect("metrics"))
            .flat_map(|data| data.resource_metrics)
            .flat_map(|resource| resource.scope_metrics)
            .flat_map(|scope| scope.metrics)
            .collect()
    }
}

pub(crate) fn spans(batch: &Batch) -> Vec<Span> {
    let data = TracesData::decode(batch.bytes().clone()).expect("spans");
    data.resource_spans
        .into_iter()
        .flat_map(|resource| resource.scope_spans)
        .flat_map(|scope| scope.spans)
        .collect()
}

/// The derived attributes of a step's span.
#[derive(Debug)]
pub(crate) struct Derived {
    pub(crate) number: f64,
    pub(crate) status: Option<String>,
    texts: BTreeMap<String, String>,
    numbers: BTreeMap<String, f64>,
}

/// Rounds to a millionth: readings around an update are a nanosecond apart.
fn rounded(number: f64) -> f64 {
    (number * 1e6).round() / 1e6
}

impl Derived {
    fn from_span(span: Span) -> Self {
        let (mut texts, mut numbers) = (BTreeMap::new(), BTreeMap::new());
        for KeyValue { key, value, .. } in span.attributes {
            match value
                .and_then(|value| value.value)
                .expect("every attribute has a value")
            {
                any_value::Value::StringValue(text) => drop(texts.insert(key, text)),
                any_value::Value::IntValue(number) => drop(numbers.insert(key, number as f64)),
                any_value::Value::DoubleValue(number) => drop(numbers.insert(key, rounded(number))),
                other => panic!("{key}: {other:?}"),
            }
        }
        Self {
            number: numbers
                .get(attribute::TRAIN_STEP.name)
                .copied()
                .unwrap_or(f64::NAN),
            status: texts.get(attribute::GPU_STEP_ENERGY_STATUS.name).cloned(),
            texts,
            numbers,
        }
    }

    pub(crate) fn text(&self, attribute: &pulsetrain_semconv::Attribute) -> Option<&str> {
        self.texts.get(attribute.name).map(String::as_str)
    }

    pub(crate) fn get(&self, attribute: &pulsetrain_semconv::Attribute) -> Option<f64> {
        self.numbers.get(attribute.name).copied()
    }

    pub(crate) fn joules(&self) -> f64 {
        self.get(&attribute::GPU_STEP_ENERGY)
            .expect("the step has an energy")
    }
}
