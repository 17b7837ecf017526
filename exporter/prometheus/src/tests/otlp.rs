//! OTLP for tests, built with the types of `opentelemetry-proto`.

use std::{
    future::Future,
    pin::pin,
    task::{Context, Poll, Waker},
};

use opentelemetry_proto::tonic::{
    common::v1::{AnyValue, InstrumentationScope, KeyValue, any_value::Value},
    metrics::v1::{
        Exemplar, ExponentialHistogram, ExponentialHistogramDataPoint, Gauge, Histogram, HistogramDataPoint,
        Metric, MetricsData, NumberDataPoint, ResourceMetrics, ScopeMetrics, Sum, Summary, SummaryDataPoint,
        exponential_histogram_data_point::Buckets, metric::Data, number_data_point,
        summary_data_point::ValueAtQuantile,
    },
    resource::v1::Resource,
};
use prost::Message;
use pulsetrain_otlp::Signal;
use pulsetrain_pipeline::Batch;

pub(super) const DELTA: i32 = 1;
pub(super) const CUMULATIVE: i32 = 2;
/// A time in 2024, in nanoseconds.
pub(super) const T0: u64 = 1_710_000_000_000_000_000;
pub(super) const SECOND: u64 = 1_000_000_000;

/// The metrics of one resource.
pub(super) struct Batches {
    resource: Vec<KeyValue>,
    metrics: Vec<Metric>,
}

/// Returns the result of a future that never waits.
pub(super) fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => result,
        Poll::Pending => panic!("the sink waits for something"),
    }
}

/// Returns the batch of a resource that sends `metrics`.
pub(super) fn from(resource: &[(&str, &str)], metrics: Vec<Metric>) -> Batches {
    Batches {
        resource: attributes(resource),
        metrics,
    }
}

/// Returns the batch of a run of that id.
pub(super) fn run(id: &str, metrics: Vec<Metric>) -> Batches {
    from(&[("train.run.id", id)], metrics)
}

/// Returns the batch of the run `r` with one metric.
pub(super) fn one(metric: Metric) -> Batches {
    run("r", vec![metric])
}

impl Batches {
    pub(super) fn encode(self) -> Batch {
        let items = self.metrics.len() as u32;
        let data = MetricsData {
            resource_metrics: vec![ResourceMetrics {
                resource: Some(Resource {
                    attributes: self.resource,
                    ..Default::default()
                }),
                scope_metrics: vec![ScopeMetrics {
                    scope: Some(InstrumentationScope {
                        name: "test".into(),
                        version: "1.0".into(),
                        ..Default::default()
                    }),
                    metrics: self.metrics,
                    schema_url: String::new(),
                }],
                schema_url: String::new(),
            }],
        };
        Batch::new(Signal::Metrics, items, data.encode_to_vec())
    }
}

pub(super) fn metric(name: &str, unit: &str, description: &str, data: Data) -> Metric {
    Metric {
        name: name.into(),
        unit: unit.into(),
        description: description.into(),
        data: Some(data),
        ..Default::default()
    }
}

/// Returns a metric without unit and description.
pub(super) fn unitless(name: &str, data: Data) -> Metric {
    metric(name, "", "", data)
}

pub(super) fn gauge(points: Vec<NumberDataPoint>) -> Data {
    Data::Gauge(Gauge { data_points: points })
}

pub(super) fn sum(aggregation_temporality: i32, is_monotonic: bool, points: Vec<NumberDataPoint>) -> Data {
    Data::Sum(Sum {
        data_points: points,
        aggregation_temporality,
        is_monotonic,
    })
}

/// Returns a point of a sum that counts from `start` on.
pub(super) fn number(start: u64, time: u64, value: f64, labels: &[(&str, &str)]) -> NumberDataPoint {
    NumberDataPoint {
        attributes: attributes(labels),
        start_time_unix_nano: start,
        time_unix_nano: time,
        value: Some(number_data_point::Value::AsDouble(value)),
        ..Default::default()
    }
}

/// Returns a unitless gauge with one point.
pub(super) fn simple(name: &str, time: u64, value: f64, labels: &[(&str, &str)]) -> Metric {
    unitless(name, gauge(vec![number(0, time, value, labels)]))
}

/// Returns a point that marks the end of its series.
pub(super) fn end(name: &str, time: u64, labels: &[(&str, &str)]) -> Metric {
    let point = NumberDataPoint {
        attributes: attributes(labels),
        time_unix_nano: time,
        flags: 1,
        ..Default::default()
    };
    unitless(name, gauge(vec![point]))
}

pub(super) fn histogram(temporality: i32, point: HistogramDataPoint) -> Data {
    Data::Histogram(Histogram {
        data_points: vec![point],
        aggregation_temporality: temporality,
    })
}

pub(super) fn buckets(start: u64, time: u64, bounds: &[f64], counts: &[u64], sum: f64) -> HistogramDataPoint {
    HistogramDataPoint {
        start_time_unix_nano: start,
        time_unix_nano: time,
        count: counts.iter().sum(),
        sum: Some(sum),
        bucket_counts: counts.to_vec(),
        explicit_bounds: bounds.to_vec(),
        ..Default::default()
    }
}

pub(super) fn exponential(temporality: i32, scale: i32, offset: i32, positive: &[u64]) -> Data {
    Data::ExponentialHistogram(ExponentialHistogram {
        data_points: vec![ExponentialHistogramDataPoint {
            start_time_unix_nano: T0,
            time_unix_nano: T0 + SECOND,
            count: positive.iter().fold(3, |sum, count| count.wrapping_add(sum)),
            sum: Some(12.5),
            scale,
            zero_count: 3,
            positive: Some(Buckets {
                offset,
                bucket_counts: positive.to_vec(),
            }),
            ..Default::default()
        }],
        aggregation_temporality: temporality,
    })
}

pub(super) fn summary(quantiles: &[(f64, f64)]) -> Data {
    Data::Summary(Summary {
        data_points: vec![SummaryDataPoint {
            time_unix_nano: T0,
            count: 10,
            sum: 55.0,
            quantile_values: quantiles
                .iter()
                .map(|(quantile, value)| ValueAtQuantile {
                    quantile: *quantile,
                    value: *value,
                })
                .collect(),
            ..Default::default()
        }],
    })
}

pub(super) fn exemplar(value: f64, time: u64, labels: &[(&str, &str)]) -> Exemplar {
    use opentelemetry_proto::tonic::metrics::v1::exemplar::Value;
    Exemplar {
        filtered_attributes: attributes(labels),
        time_unix_nano: time,
        span_id: vec![0xab; 8],
        trace_id: vec![0xcd; 16],
        value: Some(Value::AsDouble(value)),
    }
}

pub(super) fn attributes(pairs: &[(&str, &str)]) -> Vec<KeyValue> {
    pairs
        .iter()
        .map(|(key, value)| attribute(key, Value::StringValue((*value).into())))
        .collect()
}

pub(super) fn attribute(key: &str, value: Value) -> KeyValue {
    KeyValue {
        key: key.into(),
        value: Some(AnyValue { value: Some(value) }),
        ..Default::default()
    }
}
