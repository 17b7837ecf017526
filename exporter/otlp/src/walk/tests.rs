//! Walks over a message that has metrics of all five kinds, encoded by the reference implementation.

use opentelemetry_proto::tonic::{
    common::v1::{AnyValue, InstrumentationScope, KeyValue, any_value},
    logs::v1::{LogRecord, LogsData, ResourceLogs, ScopeLogs},
    metrics::v1::{
        AggregationTemporality, ExponentialHistogram, ExponentialHistogramDataPoint, Gauge, Histogram,
        HistogramDataPoint, Metric, MetricsData, NumberDataPoint, ResourceMetrics, ScopeMetrics, Sum,
        Summary, SummaryDataPoint, metric::Data, number_data_point,
    },
    resource::v1::Resource,
    trace::v1::{ResourceSpans, ScopeSpans, Span, TracesData},
};
use prost::Message as _;

use super::*;
use crate::{
    UnixNanos, WireError,
    view::{NumberValue, Temporality},
};

const DELTA: i32 = AggregationTemporality::Delta as i32;
const CUMULATIVE: i32 = AggregationTemporality::Cumulative as i32;

fn attribute(key: &str, value: i64) -> KeyValue {
    KeyValue {
        key: key.into(),
        value: Some(AnyValue {
            value: Some(any_value::Value::IntValue(value)),
        }),
        ..KeyValue::default()
    }
}

fn resource(rank: i64) -> Option<Resource> {
    Some(Resource {
        attributes: vec![attribute("train.rank", rank)],
        ..Resource::default()
    })
}

fn scope(name: &str) -> Option<InstrumentationScope> {
    Some(InstrumentationScope {
        name: name.into(),
        ..InstrumentationScope::default()
    })
}

fn number(time: u64, value: Option<number_data_point::Value>) -> NumberDataPoint {
    NumberDataPoint {
        attributes: vec![attribute("part", 1)],
        start_time_unix_nano: 1,
        time_unix_nano: time,
        flags: u32::from(value.is_none()),
        value,
        ..NumberDataPoint::default()
    }
}

/// Returns one metric of each kind, in the order of `MetricData`.
fn all_kinds() -> Vec<Data> {
    let histogram = HistogramDataPoint {
        count: 3,
        sum: Some(6.0),
        min: Some(1.0),
        max: Some(3.0),
        start_time_unix_nano: 1,
        time_unix_nano: 12,
        ..HistogramDataPoint::default()
    };
    let exponential = ExponentialHistogramDataPoint {
        count: 2,
        sum: Some(5.0),
        start_time_unix_nano: 1,
        time_unix_nano: 13,
        ..ExponentialHistogramDataPoint::default()
    };
    let summary = SummaryDataPoint {
        count: 4,
        sum: 8.0,
        start_time_unix_nano: 1,
        time_unix_nano: 14,
        ..SummaryDataPoint::default()
    };
    vec![
        Data::Gauge(Gauge {
            data_points: vec![number(10, Some(number_data_point::Value::AsDouble(0.5)))],
        }),
        Data::Sum(Sum {
            data_points: vec![
                number(11, Some(number_data_point::Value::AsInt(7))),
                number(15, None),
            ],
            aggregation_temporality: DELTA,
            is_monotonic: true,
        }),
        Data::Histogram(Histogram {
            data_points: vec![histogram],
            aggregation_temporality: CUMULATIVE,
        }),
        Data::ExponentialHistogram(ExponentialHistogram {
            data_points: vec![exponential],
            aggregation_temporality: DELTA,
        }),
        Data::Summary(Summary {
            data_points: vec![summary],
        }),
    ]
}

fn message(data: Vec<Data>) -> Vec<u8> {
    let metrics = data.into_iter().map(|data| Metric {
        name: "m".into(),
        data: Some(data),
        ..Metric::default()
    });
    let of_rank = |rank, metrics| ResourceMetrics {
        resource: resource(rank),
        scope_metrics: vec![ScopeMetrics {
            scope: scope("s"),
            metrics,
            schema_url: "https://schema".into(),
        }],
        ..ResourceMetrics::default()
    };
    let data = MetricsData {
        resource_metrics: vec![of_rank(0, metrics.collect()), of_rank(1, Vec::new())],
    };
    data.encode_to_vec()
}

/// Calls `visit` for every point of a message.
fn each_point(message: &[u8], mut visit: impl FnMut(AnyPoint<'_, '_>)) -> Result<(), WireError> {
    for resource in metrics(message) {
        for metric in resource?.items() {
            metric?.each_point(&mut visit)?;
        }
    }
    Ok(())
}

#[test]
fn points_of_all_five_kinds_have_kind_times_and_value() {
    let message = message(all_kinds());
    let mut found = Vec::new();
    each_point(&message, |point| {
        assert_eq!(point.start(), UnixNanos(1));
        found.push((point.kind, point.time().0, point.is_end(), point.value()));
    })
    .unwrap();
    let distribution = |count, sum, min, max| {
        Some(PointValue::Distribution(Distribution {
            count,
            sum: Some(sum),
            min,
            max,
        }))
    };
    let sum = PointKind::Sum {
        temporality: Temporality::Delta,
        is_monotonic: true,
    };
    let explicit = PointKind::Histogram {
        temporality: Temporality::Cumulative,
    };
    let exponential = PointKind::ExponentialHistogram {
        temporality: Temporality::Delta,
    };
    let number = |value| Some(PointValue::Number(value));
    assert_eq!(
        found,
        [
            (PointKind::Gauge, 10, false, number(NumberValue::Double(0.5))),
            (sum, 11, false, number(NumberValue::Int(7))),
            (sum, 15, true, None),
            (explicit, 12, false, distribution(3, 6.0, Some(1.0), Some(3.0))),
            (exponential, 13, false, distribution(2, 5.0, None, None)),
            (PointKind::Summary, 14, false, distribution(4, 8.0, None, None)),
        ]
    );
    assert!(exponential.is_delta() && !explicit.is_delta() && !PointKind::Gauge.is_delta());
}

#[test]
fn number_without_a_value_has_none_and_is_no_end() {
    let point = NumberDataPoint {
        flags: 0,
        ..number(10, None)
    };
    let message = message(vec![Data::Gauge(Gauge {
        data_points: vec![point],
    })]);
    let mut found = Vec::new();
    each_point(&message, |point| found.push((point.is_end(), point.value()))).unwrap();
    assert_eq!(found, [(false, None)]);
}

#[test]
fn items_are_given_with_their_resource_and_scope() {
    let message = message(all_kinds());
    let mut counts = Vec::new();
    for resource in metrics(&message) {
        let resource = resource.unwrap();
        let ranks = resource.attributes().iter().count();
        for scope in resource.scopes() {
            let scope = scope.unwrap();
            assert_eq!(scope.schema_url, "https://schema");
            assert_eq!(scope.scope.unwrap().name, "s");
            counts.push((ranks, scope.items.len()));
        }
        assert!(
            message
                .windows(resource.bytes.len())
                .any(|part| part == resource.bytes)
        );
    }
    assert_eq!(counts, [(1, 5), (1, 0)]);

    let spans = TracesData {
        resource_spans: vec![ResourceSpans {
            scope_spans: ["a", "b"]
                .map(|name| ScopeSpans {
                    spans: vec![Span {
                        name: name.into(),
                        ..Span::default()
                    }],
                    ..ScopeSpans::default()
                })
                .into(),
            ..ResourceSpans::default()
        }],
    };
    let spans = spans.encode_to_vec();
    let names = super::spans(&spans).flat_map(|resource| resource.unwrap().items());
    let names: Vec<String> = names.map(|span| span.unwrap().name.to_string()).collect();
    assert_eq!(names, ["a", "b"]);

    let records = LogsData {
        resource_logs: vec![ResourceLogs {
            resource: resource(0),
            scope_logs: vec![ScopeLogs {
                log_records: vec![LogRecord::default(); 3],
                ..ScopeLogs::default()
            }],
            ..ResourceLogs::default()
        }],
    };
    let records = records.encode_to_vec();
    assert_eq!(
        super::records(&records)
            .map(|resource| resource.unwrap().items().count())
            .sum::<usize>(),
        3
    );
}

#[test]
fn error_of_the_visitor_stops_the_walk() {
    let message = message(all_kinds());
    let mut visited = 0;
    for resource in metrics(&message) {
        let metric = resource.unwrap().items().nth(1).map(Result::unwrap);
        let Some(metric) = metric else { continue };
        let stopped = metric.try_each_point(|_| {
            visited += 1;
            Err(Stop)
        });
        assert_eq!(stopped, Err(Stop));
    }
    assert_eq!(visited, 1);
}

#[derive(Debug, PartialEq)]
struct Stop;

impl From<WireError> for Stop {
    fn from(_: WireError) -> Self {
        Self
    }
}

#[test]
fn truncated_message_and_invalid_point_are_errors() {
    let message = message(all_kinds());
    for end in 1..message.len() {
        let mut visited = 0;
        let walked = each_point(&message[..end], |_| visited += 1);
        // A message that ends after its first resource is complete.
        assert_eq!(
            (walked.is_ok(), visited),
            (visited > 0, if walked.is_ok() { 6 } else { 0 }),
            "{end}"
        );
    }
    // A gauge with an empty point and with one that ends after the tag of its time.
    let gauge = [0x0a, 0, 0x0a, 1, 0x19];
    let nest = |tag: u8, inner: &[u8]| [&[tag, inner.len() as u8], inner].concat();
    let message = nest(0x0a, &nest(0x12, &nest(0x12, &nest(0x2a, &gauge))));
    let mut visited = 0;
    assert!(each_point(&message, |_| visited += 1).is_err());
    assert_eq!(visited, 1, "the point before the invalid one");
    assert!(metrics(&[]).next().is_none());
}
