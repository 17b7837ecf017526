//! The lines of two ranks, in every form in which a client may send the same steps.

use opentelemetry_proto::tonic::{
    common::v1::{AnyValue, KeyValue, any_value},
    metrics::v1::{
        AggregationTemporality, ExponentialHistogram, ExponentialHistogramDataPoint, Gauge, Histogram,
        HistogramDataPoint, Metric, MetricsData, NumberDataPoint, ResourceMetrics, ScopeMetrics, Sum,
        metric::Data, number_data_point,
    },
    resource::v1::Resource,
};
use prost::Message as _;
use pulsetrain_semconv::metric;

use super::*;

const SECOND: u64 = 1_000_000_000;
const START: u64 = 1_000 * SECOND;

/// A form of the same steps.
#[derive(Clone, Copy, Debug)]
struct Form {
    temporality: AggregationTemporality,
    is_exponential: bool,
    rank: fn(i64) -> any_value::Value,
}

const PLAIN: Form = Form {
    temporality: AggregationTemporality::Cumulative,
    is_exponential: false,
    rank: any_value::Value::IntValue,
};

fn pair(key: &str, value: any_value::Value) -> KeyValue {
    KeyValue {
        key: key.to_owned(),
        value: Some(AnyValue { value: Some(value) }),
        ..KeyValue::default()
    }
}

impl Form {
    /// Returns a step of a rank: 1 s and 1,000 tokens for each rank, and a loss that depends on the rank.
    fn step(self, rank: i64, number: u64) -> Vec<u8> {
        let is_delta = self.temporality == AggregationTemporality::Delta;
        let start_time_unix_nano = if is_delta {
            START + (number - 1) * SECOND
        } else {
            START
        };
        let time_unix_nano = START + number * SECOND;
        let count = if is_delta { 1 } else { number };
        let aggregation_temporality = self.temporality as i32;
        let numbers = |value: f64| {
            vec![NumberDataPoint {
                start_time_unix_nano,
                time_unix_nano,
                value: Some(number_data_point::Value::AsDouble(value)),
                ..NumberDataPoint::default()
            }]
        };
        let gauge = |value| {
            Data::Gauge(Gauge {
                data_points: numbers(value),
            })
        };
        let sum = Some(count as f64);
        let durations = if self.is_exponential {
            Data::ExponentialHistogram(ExponentialHistogram {
                data_points: vec![ExponentialHistogramDataPoint {
                    start_time_unix_nano,
                    time_unix_nano,
                    count,
                    sum,
                    ..ExponentialHistogramDataPoint::default()
                }],
                aggregation_temporality,
            })
        } else {
            Data::Histogram(Histogram {
                data_points: vec![HistogramDataPoint {
                    start_time_unix_nano,
                    time_unix_nano,
                    count,
                    sum,
                    ..HistogramDataPoint::default()
                }],
                aggregation_temporality,
            })
        };
        let tokens = Data::Sum(Sum {
            data_points: numbers(1_000.0 * count as f64),
            aggregation_temporality,
            is_monotonic: true,
        });
        let metrics = [
            (&metric::TRAIN_GLOBAL_STEP, gauge(number as f64)),
            (&metric::TRAIN_LOSS, gauge(2.0 + rank as f64)),
            (&metric::TRAIN_STEP_DURATION, durations),
            (&metric::TRAIN_TOKENS, tokens),
        ];
        let metrics = metrics.map(|(metric, data)| Metric {
            name: metric.name.to_owned(),
            data: Some(data),
            ..Metric::default()
        });
        let attributes = vec![
            pair("train.run.id", any_value::Value::StringValue("run".to_owned())),
            pair("train.rank", (self.rank)(rank)),
        ];
        let data = MetricsData {
            resource_metrics: vec![ResourceMetrics {
                resource: Some(Resource {
                    attributes,
                    ..Resource::default()
                }),
                scope_metrics: vec![ScopeMetrics {
                    metrics: metrics.into(),
                    ..ScopeMetrics::default()
                }],
                ..ResourceMetrics::default()
            }],
        };
        data.encode_to_vec()
    }

    /// Returns the lines of three steps of two ranks.
    fn lines(self) -> Vec<String> {
        let mut console = ConsoleSink::stderr(ConsoleStyle::Scrolling);
        let messages = (1..=3).flat_map(|number| [0, 1].map(|rank| self.step(rank, number)));
        let lines = messages.flat_map(|message| console.lines(&message).unwrap());
        lines.map(|(_, line)| line).collect()
    }
}

const LINES: [&str; 3] = [
    ":: step       1   loss 2.0000 |   1.0k tps |  1000 ms",
    ":: step       2   loss 2.0000 |   1.0k tps |  1000 ms",
    ":: step       3   loss 2.0000 |   1.0k tps |  1000 ms",
];

#[test]
fn deltas_give_the_lines_of_totals() {
    assert_eq!(PLAIN.lines(), LINES);
    let temporality = AggregationTemporality::Delta;
    assert_eq!(Form { temporality, ..PLAIN }.lines(), LINES);
}

#[test]
fn rank_as_a_string_or_a_double_is_a_rank() {
    let text: fn(i64) -> any_value::Value = |rank| any_value::Value::StringValue(rank.to_string());
    let double: fn(i64) -> any_value::Value = |rank| any_value::Value::DoubleValue(rank as f64);
    for rank in [text, double] {
        assert_eq!(Form { rank, ..PLAIN }.lines(), LINES);
    }
}

#[test]
fn exponential_histograms_give_the_lines_of_explicit_ones() {
    for temporality in [AggregationTemporality::Cumulative, AggregationTemporality::Delta] {
        let form = Form {
            temporality,
            is_exponential: true,
            ..PLAIN
        };
        assert_eq!(form.lines(), LINES, "{form:?}");
    }
}

#[test]
fn duration_of_several_steps_is_their_mean() {
    let mut console = ConsoleSink::stderr(ConsoleStyle::Scrolling);
    let lines = [1, 5].map(|number| console.lines(&PLAIN.step(0, number)).unwrap());
    assert_eq!(
        lines[1][0].1,
        ":: step       5   loss 2.0000 |   1.0k tps |  1000 ms"
    );
}

#[test]
fn repeated_delta_changes_no_value() {
    let form = Form {
        temporality: AggregationTemporality::Delta,
        ..PLAIN
    };
    let mut console = ConsoleSink::stderr(ConsoleStyle::Scrolling);
    let lines = [1, 1].map(|number| console.lines(&form.step(0, number)).unwrap());
    assert_eq!(lines[0], lines[1]);
}
