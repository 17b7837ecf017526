//! Reads back the output of the writers through the views.

use pulsetrain_semconv::{self as semconv, AttributeKind, Instrument, Metric, Number, SpanKind, Stability};

use super::*;
use crate::{
    Signal, UnixNanos,
    view::{
        AnyValue, LogsData, Message, MetricData, MetricsData, NumberValue, Repeated, Temporality, TracesData,
    },
};

mod histograms;

static STEP: semconv::Attribute = semconv::Attribute {
    name: "train.step",
    brief: "",
    kind: AttributeKind::Int,
    descriptive: false,
    stability: Stability::Development,
};

const fn metric(ordinal: u16, name: &'static str, instrument: Instrument, bounds: &'static [f64]) -> Metric {
    Metric {
        ordinal,
        name,
        brief: "a test's metric",
        unit: "s",
        instrument,
        number: Number::Double,
        bounds,
        attributes: &[],
        prometheus_name: "",
        stability: Stability::Development,
        upstream: &[],
    }
}

static LOSS: Metric = metric(7, "loss", Instrument::Gauge, &[]);
static TOKENS: Metric = metric(0, "tokens", Instrument::Counter, &[]);
static DURATION: Metric = metric(3, "duration", Instrument::Histogram, &[0.1, 1.0]);

fn envelope() -> Envelope {
    Envelope::new(
        &[("train.rank", AttributeValue::Int(-1))],
        "scope",
        "1.0",
        "https://schema",
    )
}

/// Returns the first of some messages.
fn first<'a, M: Message<'a>>(messages: Repeated<'a, M>) -> M {
    let first = messages.into_iter().next().expect("there is one");
    first.expect("it can be read")
}

#[test]
fn points_are_grouped_by_metric_in_the_order_of_their_first_point() {
    let mut writer = MetricsWriter::default();
    let at = |nanos| PointParts {
        time_unix_nanos: UnixNanos(nanos),
        ..PointParts::default()
    };
    writer.number(&LOSS, at(1), NumberValue::Double(f64::NAN));
    writer.number(
        &TOKENS,
        PointParts {
            start_unix_nanos: UnixNanos(1),
            ..at(2)
        },
        NumberValue::Int(300),
    );
    writer.number(&LOSS, at(3), NumberValue::Double(2.5));
    let batch = writer.finish(&envelope()).unwrap();
    assert_eq!(
        (batch.signal, batch.items, writer.is_empty()),
        (Signal::Metrics, 3, true)
    );

    let data = MetricsData::decode(&batch.bytes).unwrap();
    let resource_metrics = first(data.resource_metrics);
    assert!(resource_metrics.schema_url == "https://schema");
    let scope = first(resource_metrics.scope_metrics);
    assert!(scope.scope.unwrap().name == "scope" && scope.schema_url == "https://schema");
    let metrics: Vec<_> = scope.metrics.iter().map(Result::unwrap).collect();
    assert_eq!(
        metrics
            .iter()
            .map(|metric| metric.name.to_str().unwrap())
            .collect::<Vec<_>>(),
        ["loss", "tokens"]
    );
    let Some(MetricData::Gauge(gauge)) = metrics[0].data() else {
        panic!("loss is a gauge")
    };
    let values: Vec<f64> = gauge
        .data_points
        .iter()
        .map(|point| point.unwrap().value().unwrap().as_f64())
        .collect();
    assert!(values[0].is_nan() && values[1] == 2.5 && values.len() == 2);
    let Some(MetricData::Sum(sum)) = metrics[1].data() else {
        panic!("tokens is a sum")
    };
    assert!(sum.is_monotonic && Temporality::from(sum.aggregation_temporality) == Temporality::Cumulative);
    assert_eq!(first(sum.data_points).value(), Some(NumberValue::Int(300)));
}

#[test]
fn finished_writer_can_be_reused() {
    let mut writer = MetricsWriter::default();
    writer.number(&LOSS, PointParts::default(), NumberValue::Double(1.0));
    let first = writer.finish(&envelope()).unwrap();
    assert!(writer.finish(&envelope()).is_none());
    writer.number(&LOSS, PointParts::default(), NumberValue::Double(1.0));
    assert_eq!(writer.finish(&envelope()).unwrap(), first);
}

#[test]
fn point_of_a_pre_encoded_series_equals_one_with_inline_attributes() {
    for text in ["", "short", &"long".repeat(100)] {
        let attributes = [
            (&STEP, AttributeValue::Int(-400)),
            (&STEP, AttributeValue::Text(text)),
        ];
        let (mut one, mut other) = (MetricsWriter::default(), MetricsWriter::default());
        let point = PointParts {
            start_unix_nanos: UnixNanos::UNKNOWN,
            time_unix_nanos: UnixNanos(5),
            attributes: &attributes,
        };
        one.number(&LOSS, point, NumberValue::Double(2.5));
        other.number_of(
            &EncodedSeries::new(&LOSS, &attributes),
            UnixNanos::UNKNOWN,
            UnixNanos(5),
            NumberValue::Double(2.5),
        );
        assert_eq!(one.len(), other.len());
        assert_eq!(one.finish(&envelope()), other.finish(&envelope()));
    }
}

#[test]
fn histogram_point_has_its_bounds_and_bucket_counts() {
    let mut writer = MetricsWriter::default();
    let parts = HistogramParts {
        count: 3,
        sum: 2.5,
        min: 0.1,
        max: 1.5,
        bucket_counts: &[1, 0, 2],
    };
    writer.histogram(
        &DURATION,
        PointParts {
            start_unix_nanos: UnixNanos(1),
            time_unix_nanos: UnixNanos(2),
            attributes: &[],
        },
        parts,
    );
    let batch = writer.finish(&envelope()).unwrap();
    let data = MetricsData::decode(&batch.bytes).unwrap();
    let scope = first(first(data.resource_metrics).scope_metrics);
    let Some(MetricData::Histogram(histogram)) = first(scope.metrics).data() else {
        panic!("duration is a histogram")
    };
    let point = first(histogram.data_points);
    assert_eq!(
        (point.count, point.sum, point.min, point.max),
        (3, Some(2.5), Some(0.1), Some(1.5))
    );
    assert_eq!(
        point
            .bucket_counts
            .iter()
            .map(|count| count.unwrap().0)
            .collect::<Vec<_>>(),
        [1, 0, 2]
    );
    assert_eq!(
        point
            .explicit_bounds
            .iter()
            .map(Result::unwrap)
            .collect::<Vec<_>>(),
        [0.1, 1.0]
    );
}

#[test]
fn span_round_trips_with_its_ids_attributes_and_links() {
    static SPAN: semconv::Span = semconv::Span {
        name: "train.step",
        brief: "",
        kind: SpanKind::Internal,
        attributes: &[],
        stability: Stability::Development,
        upstream: &[],
    };
    let mut writer = SpansWriter::default();
    let parts = SpanParts {
        span: &SPAN,
        trace_id: [1; 16],
        span_id: [2; 8],
        parent_span_id: Some([3; 8]),
        start_unix_nanos: UnixNanos(5),
        end_unix_nanos: UnixNanos(9),
        attributes: &[(&STEP, AttributeValue::Int(400))],
    };
    let (trace_id, span_id) = ([4; 16], [5; 8]);
    writer.linked_span(&parts, &[SpanLink { trace_id, span_id }]);
    let batch = writer.finish(&envelope()).unwrap();
    let data = TracesData::decode(&batch.bytes).unwrap();
    let scope = first(first(data.resource_spans).scope_spans);
    let span = first(scope.spans);
    assert_eq!(
        (span.trace_id, span.span_id, span.parent_span_id),
        (&[1; 16][..], &[2; 8][..], &[3; 8][..])
    );
    assert_eq!(
        (span.kind, span.start_time_unix_nano, span.end_time_unix_nano),
        (1, 5, 9)
    );
    let attribute = first(span.attributes);
    assert!(attribute.key == "train.step" && matches!(attribute.value, Some(AnyValue::Int(400))));
    let link = first(span.links);
    assert_eq!((link.trace_id, link.span_id), (&trace_id[..], &span_id[..]));
}

#[test]
fn log_record_keeps_nested_attribute_values() {
    let mut writer = LogsWriter::default();
    let list = [AttributeValue::Text("a"), AttributeValue::Double(0.5)];
    let map = [
        ("list", AttributeValue::List(&list)),
        ("yes", AttributeValue::Bool(true)),
    ];
    writer.record(&LogRecordParts {
        event_name: "e",
        body: Some(AttributeValue::Map(&map)),
        ..LogRecordParts::default()
    });
    let batch = writer.finish(&envelope()).unwrap();
    let data = LogsData::decode(&batch.bytes).unwrap();
    let scope = first(first(data.resource_logs).scope_logs);
    let record = first(scope.log_records);
    assert!(record.event_name == "e" && record.severity_number == 9);
    let Some(AnyValue::Map(entries)) = record.body else {
        panic!("the body is a map")
    };
    let entries: Vec<_> = entries.iter().map(Result::unwrap).collect();
    let Some(AnyValue::Array(values)) = entries[0].value else {
        panic!("its first entry is a list")
    };
    assert!(matches!(values.iter().nth(1), Some(Ok(AnyValue::Double(0.5)))));
    assert!(matches!(entries[1].value, Some(AnyValue::Bool(true))));
}
