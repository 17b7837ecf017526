//! Exemplars and exponential buckets, read back with the prost types of `opentelemetry-proto`.

use opentelemetry_proto::tonic::metrics::v1::{
    self as proto, exponential_histogram_data_point::Buckets, metric::Data,
};
use prost::Message as _;

use super::{super::buffer::delimited_len, *};

#[test]
fn exemplar_is_added_to_the_latest_point_of_its_histogram() {
    let mut writer = MetricsWriter::default();
    let exemplar = ExemplarParts {
        time_unix_nanos: UnixNanos(5),
        value: 0.7,
        span: SpanLink {
            trace_id: [1; 16],
            span_id: [2; 8],
        },
    };
    writer.exemplar(&DURATION, &exemplar);
    let point = PointParts {
        start_unix_nanos: UnixNanos(1),
        time_unix_nanos: UnixNanos(2),
        attributes: &[],
    };
    let parts = HistogramParts {
        count: 1,
        sum: 0.7,
        min: 0.7,
        max: 0.7,
        bucket_counts: &[0, 1, 0],
    };
    writer.histogram(&DURATION, point, parts);
    writer.number(&LOSS, point, NumberValue::Double(1.0));
    writer.histogram(&DURATION, point, parts);
    writer.exemplar(&DURATION, &exemplar);
    let before = writer.len();
    let batch = writer.finish(&envelope()).unwrap();
    writer.exemplar(&DURATION, &exemplar);
    assert!(writer.is_empty() && writer.finish(&envelope()).is_none());

    let data = proto::MetricsData::decode(batch.bytes.as_slice()).unwrap();
    let metrics = &data.resource_metrics[0].scope_metrics[0].metrics;
    let bodies: usize = metrics.iter().map(points_len).sum();
    assert_eq!(before, bodies);
    let Some(Data::Histogram(histogram)) = &metrics[0].data else {
        panic!("duration is a histogram")
    };
    assert_eq!(histogram.data_points[0].exemplars, []);
    let expected = proto::Exemplar {
        filtered_attributes: Vec::new(),
        time_unix_nano: 5,
        span_id: vec![2; 8],
        trace_id: vec![1; 16],
        value: Some(proto::exemplar::Value::AsDouble(0.7)),
    };
    assert_eq!(histogram.data_points[1].exemplars, [expected]);
    assert_eq!(histogram.data_points[1].bucket_counts, [0, 1, 0]);
}

/// The bytes of a metric's points, each with its tag and length.
fn points_len(metric: &proto::Metric) -> usize {
    let delimited = |len: usize| delimited_len(1, len);
    match metric.data.as_ref().expect("the metric has data") {
        Data::Gauge(gauge) => gauge
            .data_points
            .iter()
            .map(|point| delimited(point.encoded_len()))
            .sum(),
        Data::Histogram(data) => data
            .data_points
            .iter()
            .map(|point| delimited(point.encoded_len()))
            .sum(),
        other => panic!("{other:?} is not written by this test"),
    }
}

#[test]
fn a_histogram_with_exponential_buckets_is_a_metric_of_its_own() {
    let mut writer = MetricsWriter::default();
    let parts = ExponentialParts {
        count: 306,
        sum: 2.5,
        min: -1.5,
        max: f64::NAN,
        scale: -2,
        zero_count: 1,
        zero_threshold: 1e-9,
        positive: ExponentialBuckets {
            offset: -70,
            counts: &[1, 0, 300],
        },
        negative: ExponentialBuckets {
            offset: 3,
            counts: &[4],
        },
    };
    let point = PointParts {
        start_unix_nanos: UnixNanos(1),
        time_unix_nanos: UnixNanos(2),
        attributes: &[(&STEP, AttributeValue::Int(4))],
    };
    writer.number(&TOKENS, point, NumberValue::Int(1));
    writer.exponential(&DURATION, point, &parts);
    writer.exponential(&DURATION, point, &parts);
    let batch = writer.finish(&envelope()).unwrap();
    assert_eq!(batch.items, 3);

    let data = proto::MetricsData::decode(batch.bytes.as_slice()).unwrap();
    let metric = &data.resource_metrics[0].scope_metrics[0].metrics[1];
    let Some(Data::ExponentialHistogram(histogram)) = &metric.data else {
        panic!("the buckets are exponential")
    };
    assert_eq!(
        (
            metric.name.as_str(),
            histogram.aggregation_temporality,
            histogram.data_points.len()
        ),
        ("duration", 2, 2)
    );
    let point = &histogram.data_points[1];
    let side = |offset, bucket_counts: &[u64]| {
        let bucket_counts = bucket_counts.to_vec();
        Some(Buckets {
            offset,
            bucket_counts,
        })
    };
    let expected = proto::ExponentialHistogramDataPoint {
        attributes: point.attributes.clone(),
        start_time_unix_nano: 1,
        time_unix_nano: 2,
        count: 306,
        sum: Some(2.5),
        scale: -2,
        zero_count: 1,
        positive: side(-70, &[1, 0, 300]),
        negative: side(3, &[4]),
        flags: 0,
        exemplars: Vec::new(),
        min: Some(-1.5),
        max: None,
        zero_threshold: 1e-9,
    };
    assert_eq!((point, point.attributes.len()), (&expected, 1));
}
