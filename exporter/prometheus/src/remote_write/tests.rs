//! Requests, decoded with prost messages that follow the specification.

use prost::Message;

use super::{request::snappy_block, *};

#[test]
fn literal_snappy_block_is_decoded_by_a_snappy_reader() {
    for length in [0, 1, 59, 60, 65_535, 65_536, 65_537, 200_000] {
        let bytes: Vec<u8> = (0..length).map(|place| (place % 251) as u8).collect();
        assert_eq!(read_literals(&snappy_block(&bytes)), bytes, "{length}");
    }
}

/// Decodes a snappy block of literals by its specification.
fn read_literals(mut block: &[u8]) -> Vec<u8> {
    let length = prost::encoding::decode_varint(&mut block).expect("a length") as usize;
    let mut bytes = Vec::new();
    while let [tag, rest @ ..] = block {
        assert_eq!(tag & 3, 0, "a literal");
        let (literal, rest) = match tag >> 2 {
            61 => (u16::from_le_bytes([rest[0], rest[1]]) as usize + 1, &rest[2..]),
            other => panic!("a length of another form: {other}"),
        };
        bytes.extend_from_slice(&rest[..literal]);
        block = &rest[literal..];
    }
    assert_eq!(bytes.len(), length);
    bytes
}

#[derive(Clone, PartialEq, Message)]
struct WriteRequest {
    #[prost(message, repeated, tag = "1")]
    timeseries: Vec<TimeSeries>,
}

#[derive(Clone, PartialEq, Message)]
struct TimeSeries {
    #[prost(message, repeated, tag = "1")]
    labels: Vec<Label>,
    #[prost(message, repeated, tag = "2")]
    samples: Vec<RemoteSample>,
}

#[derive(Clone, PartialEq, Message)]
struct Label {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    value: String,
}

#[derive(Clone, PartialEq, Message)]
struct RemoteSample {
    #[prost(double, tag = "1")]
    value: f64,
    #[prost(int64, tag = "2")]
    timestamp: i64,
}

/// Returns the series of a `MetricsData` in JSON: labels, and samples with the bits of their values.
fn series(message: &str) -> Vec<(String, Vec<(i64, u64)>)> {
    let mut bytes = Vec::new();
    let limits = pulsetrain_otlp::limits::Limits::default();
    pulsetrain_otlp::json::decode(message.as_bytes(), &limits, &mut bytes).expect("OTLP/JSON");
    let mut encoder = RemoteWriteEncoder::new(&PrometheusConfig::default());
    let (_, requests) = encoder.encode(&bytes).expect("OTLP");
    let [request] = requests.as_slice() else {
        panic!("{} requests", requests.len())
    };
    let request = WriteRequest::decode(&*read_literals(&request.bytes)).expect("a request");
    let shown = |series: TimeSeries| {
        let labels: Vec<String> = (series.labels.iter())
            .map(|label| format!("{}={}", label.name, label.value))
            .collect();
        let samples = series
            .samples
            .iter()
            .map(|sample| (sample.timestamp, sample.value.to_bits()));
        (labels.join(","), samples.collect())
    };
    request.timeseries.into_iter().map(shown).collect()
}

#[test]
fn points_are_samples_of_their_series_in_order_of_time() {
    let message = r#"{"resourceMetrics": [{"resource": {"attributes": [
        {"key": "service.name", "value": {"stringValue": "trainer"}}]},
        "scopeMetrics": [{"metrics": [
            {"name": "train.loss", "gauge": {"dataPoints": [
                {"timeUnixNano": "2000000000", "asDouble": "NaN", "attributes": [{"key": "A", "value": {"stringValue": "q\"uote"}}]},
                {"timeUnixNano": "1000000000", "asDouble": 2.5, "attributes": [{"key": "A", "value": {"stringValue": "q\"uote"}}]},
                {"timeUnixNano": "1000400000", "asDouble": 3.5, "attributes": [{"key": "A", "value": {"stringValue": "q\"uote"}}]},
                {"timeUnixNano": "3000000000", "flags": 1, "attributes": [{"key": "A", "value": {"stringValue": "q\"uote"}}]}]}},
            {"name": "d", "unit": "s", "histogram": {"aggregationTemporality": 2, "dataPoints": [
                {"timeUnixNano": "1000000000", "count": "3", "sum": 4, "bucketCounts": ["2", "1"], "explicitBounds": [1]}]}}
        ]}]}]}"#;
    let number = |value: f64| value.to_bits();
    let of = |labels: &str, samples: &[(i64, u64)]| (labels.to_owned(), samples.to_vec());
    assert_eq!(
        series(message),
        [
            of(
                "__name__=d_seconds_bucket,job=trainer,le=+Inf",
                &[(1000, number(3.0))]
            ),
            of(
                "__name__=d_seconds_bucket,job=trainer,le=1.0",
                &[(1000, number(2.0))]
            ),
            of("__name__=d_seconds_count,job=trainer", &[(1000, number(3.0))]),
            of("__name__=d_seconds_sum,job=trainer", &[(1000, number(4.0))]),
            of(
                "A=q\"uote,__name__=train_loss,job=trainer",
                &[
                    (1000, number(3.5)),
                    (2000, 0x7ff8_0000_0000_0001),
                    (3000, 0x7ff0_0000_0000_0002)
                ]
            ),
        ]
    );
}
