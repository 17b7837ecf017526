//! The expected content of the examples, as prost types.

use opentelemetry_proto::tonic::{
    common::v1::{AnyValue, ArrayValue, InstrumentationScope, KeyValue, KeyValueList, any_value::Value},
    logs::v1::{LogRecord, LogsData, ResourceLogs, ScopeLogs},
    metrics::v1::{
        Exemplar, ExponentialHistogram, ExponentialHistogramDataPoint, Gauge, Histogram, HistogramDataPoint,
        Metric, MetricsData, NumberDataPoint, ResourceMetrics, ScopeMetrics, Sum, Summary, SummaryDataPoint,
        exemplar, exponential_histogram_data_point::Buckets, metric::Data, number_data_point,
        summary_data_point::ValueAtQuantile,
    },
    resource::v1::Resource,
    trace::v1::{
        ResourceSpans, ScopeSpans, Span, Status, TracesData,
        span::{Event, Link},
    },
};

const TRACE_ID: u128 = 0x5b8e_fff7_9803_8103_d269_b633_813f_c60c;
const SPAN_ID: u64 = 0xeee1_9b7e_c3c1_b174;

fn attribute(key: &str, value: impl Into<Option<Value>>) -> KeyValue {
    KeyValue {
        key: key.to_owned(),
        value: Some(any(value)),
        key_strindex: 0,
    }
}

fn any(value: impl Into<Option<Value>>) -> AnyValue {
    AnyValue { value: value.into() }
}

fn text(text: &str) -> Value {
    Value::StringValue(text.to_owned())
}

fn trainer(more: Option<KeyValue>) -> Resource {
    Resource {
        attributes: [attribute("service.name", text("trainer"))]
            .into_iter()
            .chain(more)
            .collect(),
        ..Resource::default()
    }
}

fn scope(version: &str) -> Option<InstrumentationScope> {
    Some(InstrumentationScope {
        name: "pulsetrain".to_owned(),
        version: version.to_owned(),
        ..InstrumentationScope::default()
    })
}

pub(crate) fn traces() -> TracesData {
    let span = Span {
        trace_id: TRACE_ID.to_be_bytes().to_vec(),
        span_id: SPAN_ID.to_be_bytes().to_vec(),
        name: "train.step".to_owned(),
        start_time_unix_nano: 1_544_712_660_000_000_000,
        end_time_unix_nano: 1_544_712_661_000_000_001,
        kind: 1,
        flags: 257,
        attributes: vec![
            attribute("train.step", Value::IntValue(9_007_199_254_740_993)),
            attribute("train.loss", Value::DoubleValue(f64::NAN)),
            attribute("skipped", Value::BoolValue(false)),
        ],
        events: vec![Event {
            time_unix_nano: 1_544_712_660_500_000_000,
            name: "spike".to_owned(),
            attributes: vec![attribute("empty", None)],
            dropped_attributes_count: 0,
        }],
        links: vec![Link {
            trace_id: (TRACE_ID + 1).to_be_bytes().to_vec(),
            span_id: (SPAN_ID + 1).to_be_bytes().to_vec(),
            ..Link::default()
        }],
        status: Some(Status {
            code: 2,
            message: "loss is \"NaN\"".to_owned(),
        }),
        ..Span::default()
    };
    TracesData {
        resource_spans: vec![ResourceSpans {
            resource: Some(trainer(Some(attribute("train.rank", Value::IntValue(3))))),
            scope_spans: vec![ScopeSpans {
                scope: scope("0.1.0"),
                spans: vec![span],
                ..ScopeSpans::default()
            }],
            schema_url: "https://example.org/1".to_owned(),
        }],
    }
}

pub(crate) fn logs() -> LogsData {
    let layers = vec![any(Value::IntValue(-1)), any(Value::BoolValue(true)), any(None)];
    let body = vec![
        attribute("lr", Value::DoubleValue(0.0003)),
        attribute("layers", Value::ArrayValue(ArrayValue { values: layers })),
        attribute("hash", Value::BytesValue(vec![0xde, 0xad, 0xbe, 0xef])),
    ];
    let record = LogRecord {
        time_unix_nano: 1_544_712_660_300_000_000,
        observed_time_unix_nano: 1_544_712_660_300_000_001,
        severity_number: 10,
        severity_text: "Information".to_owned(),
        trace_id: TRACE_ID.to_be_bytes().to_vec(),
        span_id: SPAN_ID.to_be_bytes().to_vec(),
        event_name: "run.config".to_owned(),
        body: Some(any(Value::KvlistValue(KeyValueList { values: body }))),
        attributes: vec![attribute("path", text("C:\\runé🔥\n"))],
        ..LogRecord::default()
    };
    LogsData {
        resource_logs: vec![ResourceLogs {
            resource: Some(Resource {
                dropped_attributes_count: 1,
                ..trainer(None)
            }),
            scope_logs: vec![ScopeLogs {
                scope: scope(""),
                log_records: vec![record],
                ..ScopeLogs::default()
            }],
            ..ResourceLogs::default()
        }],
    }
}

pub(crate) fn metrics() -> MetricsData {
    MetricsData {
        resource_metrics: vec![ResourceMetrics {
            resource: Some(trainer(None)),
            scope_metrics: vec![ScopeMetrics {
                scope: scope(""),
                metrics: vec![tokens(), loss(), duration(), latency(), quantiles()],
                ..ScopeMetrics::default()
            }],
            ..ResourceMetrics::default()
        }],
    }
}

fn metric(name: &str, unit: &str, data: Data) -> Metric {
    Metric {
        name: name.to_owned(),
        unit: unit.to_owned(),
        data: Some(data),
        ..Metric::default()
    }
}

fn tokens() -> Metric {
    let point = NumberDataPoint {
        start_time_unix_nano: 1_544_712_660_300_000_000,
        time_unix_nano: 1_544_712_660_300_000_001,
        value: Some(number_data_point::Value::AsInt(9_007_199_254_740_993)),
        ..NumberDataPoint::default()
    };
    let sum = Sum {
        aggregation_temporality: 2,
        is_monotonic: true,
        data_points: vec![point],
    };
    Metric {
        description: "Tokens seen".to_owned(),
        ..metric("train.tokens", "{token}", Data::Sum(sum))
    }
}

fn loss() -> Metric {
    let point = |time, value: Option<f64>| NumberDataPoint {
        time_unix_nano: time,
        value: value.map(number_data_point::Value::AsDouble),
        ..NumberDataPoint::default()
    };
    let mut data_points = vec![
        point(1, Some(10.0)),
        point(2, Some(f64::NAN)),
        point(3, Some(f64::NEG_INFINITY)),
        point(4, None),
    ];
    data_points[0].attributes = vec![attribute("k", text("v"))];
    data_points[3].flags = 1;
    metric("train.loss", "{loss}", Data::Gauge(Gauge { data_points }))
}

fn duration() -> Metric {
    let exemplar = Exemplar {
        time_unix_nano: 2,
        span_id: SPAN_ID.to_be_bytes().to_vec(),
        trace_id: TRACE_ID.to_be_bytes().to_vec(),
        value: Some(exemplar::Value::AsDouble(2.0)),
        ..Exemplar::default()
    };
    let point = HistogramDataPoint {
        start_time_unix_nano: 1,
        time_unix_nano: 2,
        count: 2,
        sum: Some(2.5),
        bucket_counts: vec![1, 1],
        explicit_bounds: vec![1.0],
        min: Some(0.0),
        max: Some(2.0),
        exemplars: vec![exemplar],
        ..HistogramDataPoint::default()
    };
    let histogram = Histogram {
        aggregation_temporality: 1,
        data_points: vec![point],
    };
    metric("train.step.duration", "s", Data::Histogram(histogram))
}

fn latency() -> Metric {
    let point = ExponentialHistogramDataPoint {
        time_unix_nano: 2,
        count: 3,
        sum: Some(10.5),
        scale: -1,
        zero_count: 1,
        positive: Some(Buckets {
            offset: -2,
            bucket_counts: vec![0, 2],
        }),
        negative: Some(Buckets::default()),
        zero_threshold: 1e-128,
        ..ExponentialHistogramDataPoint::default()
    };
    let histogram = ExponentialHistogram {
        aggregation_temporality: 1,
        data_points: vec![point],
    };
    metric("latency", "", Data::ExponentialHistogram(histogram))
}

fn quantiles() -> Metric {
    let at = |quantile, value| ValueAtQuantile { quantile, value };
    let point = SummaryDataPoint {
        time_unix_nano: 2,
        count: 4,
        sum: 8.0,
        quantile_values: vec![at(0.5, 2.0), at(1.0, f64::INFINITY)],
        ..SummaryDataPoint::default()
    };
    metric(
        "quantiles",
        "",
        Data::Summary(Summary {
            data_points: vec![point],
        }),
    )
}
