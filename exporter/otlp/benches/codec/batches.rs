//! The same batches from the writers of this crate and from prost: the telemetry of a trainer with eight accelerators over
//! some seconds.

use std::sync::LazyLock;

use opentelemetry_proto::tonic::{
    common::v1::{AnyValue, InstrumentationScope, KeyValue, any_value},
    metrics::v1::{
        Gauge, Metric, MetricsData, NumberDataPoint, ResourceMetrics, ScopeMetrics, metric::Data,
        number_data_point,
    },
    resource::v1::Resource,
    trace::v1::{ResourceSpans, ScopeSpans, Span, TracesData},
};
use pulsetrain_otlp::{
    UnixNanos,
    view::NumberValue,
    write::{
        Attribute, AttributeValue, Envelope, LogRecordParts, LogsWriter, MetricsWriter, PointParts,
        SpanParts, SpansWriter,
    },
};
use pulsetrain_semconv::{self as semconv, attribute, metric, span};

const SPANS: u64 = 512;
const POINTS: u64 = 512;
const START: u64 = 1_792_000_000_000_000_000;
const RESOURCE: [(&str, &str); 3] = [
    ("service.name", "trainer"),
    ("service.instance.id", "run-7/3"),
    ("host.name", "node-12"),
];
const DEVICES: [&str; 8] = [
    "cuda:0", "cuda:1", "cuda:2", "cuda:3", "cuda:4", "cuda:5", "cuda:6", "cuda:7",
];
const METRICS: [&semconv::Metric; 4] = [
    &metric::GPU_POWER,
    &metric::GPU_TEMPERATURE,
    &metric::GPU_CLOCK_FREQUENCY,
    &metric::GPU_UTILIZATION,
];

static ENVELOPE: LazyLock<Envelope> = LazyLock::new(|| {
    Envelope::new(
        &RESOURCE.map(|(key, value)| (key, AttributeValue::from(value))),
        "pulsetrain",
        "0.1.0",
        "",
    )
});

fn trace_id(index: u64) -> [u8; 16] {
    (u128::from(index / 8) * 0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835).to_be_bytes()
}

fn span_id(index: u64) -> [u8; 8] {
    (index + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()
}

fn device(index: u64) -> &'static str {
    DEVICES[(index % 8) as usize]
}

fn loss(index: u64) -> f64 {
    2.5 + 1.0 / (index + 1) as f64
}

pub(crate) fn spans_by_writer() -> Vec<u8> {
    let mut writer = SpansWriter::default();
    for index in 0..SPANS {
        let attributes: [Attribute<'_>; 5] = [
            (&attribute::TRAIN_STEP, AttributeValue::Int(index as i64)),
            (
                &attribute::TRAIN_MICRO_BATCH,
                AttributeValue::Int((index % 4) as i64),
            ),
            (&attribute::DEVICE_ID, AttributeValue::Text(device(index))),
            (&attribute::PERF_CLOCK, AttributeValue::Text("cuda_event")),
            (&attribute::TRAIN_LOSS, AttributeValue::Double(loss(index))),
        ];
        writer.span(&SpanParts {
            span: &span::PERF_FORWARD,
            trace_id: trace_id(index),
            span_id: span_id(index),
            parent_span_id: Some(span_id(index / 8)),
            start_unix_nanos: UnixNanos(START + index * 1_000_003),
            end_unix_nanos: UnixNanos(START + index * 1_000_003 + 917_113),
            attributes: &attributes,
        });
    }
    writer.finish(&ENVELOPE).unwrap().bytes
}

/// Returns spans of 134 bytes, whose attributes are text, as SDKs send them.
pub(crate) fn short_spans() -> Vec<u8> {
    let mut writer = SpansWriter::default();
    for index in 0..SPANS {
        writer.span(&SpanParts {
            span: &span::PERF_FORWARD,
            trace_id: trace_id(index),
            span_id: span_id(index),
            parent_span_id: None,
            start_unix_nanos: UnixNanos(START + index * 1_000_003),
            end_unix_nanos: UnixNanos(START + index * 1_000_003 + 917_113),
            attributes: &[
                (&attribute::TRAIN_RUN_ID, AttributeValue::Text("10d62377")),
                (&attribute::DEVICE_ID, AttributeValue::Text(device(index))),
                (&attribute::PERF_CLOCK, AttributeValue::Text("host")),
            ],
        });
    }
    writer.finish(&ENVELOPE).unwrap().bytes
}

pub(crate) fn records() -> Vec<u8> {
    let mut writer = LogsWriter::default();
    for index in 0..SPANS {
        let body = format!("step {index}: loss {:.3}", loss(index));
        writer.record(&LogRecordParts {
            time_unix_nanos: UnixNanos(START + index * 1_000_003),
            body: Some(AttributeValue::Text(&body)),
            attributes: &[
                (&attribute::TRAIN_RUN_ID, AttributeValue::Text("10d62377")),
                (&attribute::TRAIN_STEP, AttributeValue::Int(index as i64)),
            ],
            ..LogRecordParts::default()
        });
    }
    writer.finish(&ENVELOPE).unwrap().bytes
}

pub(crate) fn spans_by_prost() -> TracesData {
    let spans = (0..SPANS).map(|index| Span {
        trace_id: trace_id(index).to_vec(),
        span_id: span_id(index).to_vec(),
        parent_span_id: span_id(index / 8).to_vec(),
        name: span::PERF_FORWARD.name.to_owned(),
        kind: 1,
        start_time_unix_nano: START + index * 1_000_003,
        end_time_unix_nano: START + index * 1_000_003 + 917_113,
        attributes: vec![
            int(&attribute::TRAIN_STEP, index),
            int(&attribute::TRAIN_MICRO_BATCH, index % 4),
            text(attribute::DEVICE_ID.name, device(index)),
            text(attribute::PERF_CLOCK.name, "cuda_event"),
            key_value(
                attribute::TRAIN_LOSS.name,
                any_value::Value::DoubleValue(loss(index)),
            ),
        ],
        ..Span::default()
    });
    TracesData {
        resource_spans: vec![ResourceSpans {
            resource: Some(resource()),
            scope_spans: vec![ScopeSpans {
                scope: Some(scope()),
                spans: spans.collect(),
                ..ScopeSpans::default()
            }],
            ..ResourceSpans::default()
        }],
    }
}

pub(crate) fn points_by_writer() -> Vec<u8> {
    let mut writer = MetricsWriter::default();
    for metric in METRICS {
        for index in 0..POINTS {
            let attributes: [Attribute<'_>; 4] = [
                (&attribute::GPU_INDEX, AttributeValue::Int((index % 8) as i64)),
                (&attribute::GPU_NAME, AttributeValue::Text("NVIDIA H200")),
                (
                    &attribute::GPU_UUID,
                    AttributeValue::Text("GPU-5f2d1f0e-7a1e-4b1c-9a0e-0c6f6f1d2b3a"),
                ),
                (&attribute::DEVICE_ID, AttributeValue::Text(device(index))),
            ];
            let point = PointParts {
                time_unix_nanos: UnixNanos(START + index * 1_000_003),
                attributes: &attributes,
                ..PointParts::default()
            };
            writer.number(metric, point, NumberValue::Double(loss(index)));
        }
    }
    writer.finish(&ENVELOPE).unwrap().bytes
}

pub(crate) fn points_by_prost() -> MetricsData {
    let points = || {
        (0..POINTS).map(|index| NumberDataPoint {
            time_unix_nano: START + index * 1_000_003,
            value: Some(number_data_point::Value::AsDouble(loss(index))),
            attributes: vec![
                int(&attribute::GPU_INDEX, index % 8),
                text(attribute::GPU_NAME.name, "NVIDIA H200"),
                text(
                    attribute::GPU_UUID.name,
                    "GPU-5f2d1f0e-7a1e-4b1c-9a0e-0c6f6f1d2b3a",
                ),
                text(attribute::DEVICE_ID.name, device(index)),
            ],
            ..NumberDataPoint::default()
        })
    };
    let metrics = METRICS.map(|metric| Metric {
        name: metric.name.to_owned(),
        description: metric.brief.to_owned(),
        unit: metric.unit.to_owned(),
        data: Some(Data::Gauge(Gauge {
            data_points: points().collect(),
        })),
        ..Metric::default()
    });
    MetricsData {
        resource_metrics: vec![ResourceMetrics {
            resource: Some(resource()),
            scope_metrics: vec![ScopeMetrics {
                scope: Some(scope()),
                metrics: metrics.into(),
                ..ScopeMetrics::default()
            }],
            ..ResourceMetrics::default()
        }],
    }
}

fn resource() -> Resource {
    Resource {
        attributes: RESOURCE.map(|(key, value)| text(key, value)).into(),
        ..Resource::default()
    }
}

fn scope() -> InstrumentationScope {
    InstrumentationScope {
        name: "pulsetrain".to_owned(),
        version: "0.1.0".to_owned(),
        ..InstrumentationScope::default()
    }
}

fn int(attribute: &semconv::Attribute, value: u64) -> KeyValue {
    key_value(attribute.name, any_value::Value::IntValue(value as i64))
}

fn text(key: &str, value: &str) -> KeyValue {
    key_value(key, any_value::Value::StringValue(value.to_owned()))
}

fn key_value(key: &str, value: any_value::Value) -> KeyValue {
    KeyValue {
        key: key.to_owned(),
        value: Some(AnyValue { value: Some(value) }),
        key_strindex: 0,
    }
}
