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
    let store = PrometheusStore::new(&PrometheusConfig::default());
    let mut ingest = Ingest::into_receiver(store, Samples::default());
    let _ = ingest.batch(&bytes).expect("OTLP");
    let requests = ingest.receiver().requests();
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

#[test]
fn remote_write_url_without_a_path_is_rejected() {
    let new = |url: &str| RemoteWriteSink::new(url, &PrometheusConfig::default(), |_| None).map(drop);
    assert!(new("http://localhost:9090/api/v1/write").is_ok());
    for url in ["http://localhost:9090", "localhost", ""] {
        let message = new(url).expect_err(url).to_string();
        assert!(message.contains("/api/v1/write"), "{message}");
    }
}

/// Answers one request for each status. Returns the address, and the bodies after all are answered.
fn answering(statuses: &'static [u16]) -> (String, std::thread::JoinHandle<Vec<Vec<u8>>>) {
    use std::io::{BufRead, BufReader, Read, Write};

    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!(
        "http://{}/api/v1/write",
        listener.local_addr().expect("an address")
    );
    let answer = move |status: &u16| {
        let (mut stream, _) = listener.accept().expect("a connection");
        let mut reader = BufReader::new(stream.try_clone().expect("a second handle"));
        let (mut line, mut length) = (String::new(), 0);
        while reader.read_line(&mut line).expect("a line") > 2 {
            if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().expect("a number");
            }
            line.clear();
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).expect("a body");
        write!(
            stream,
            "HTTP/1.1 {status} x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        )
        .expect("an answer");
        body
    };
    let server = std::thread::spawn(move || statuses.iter().map(answer).collect());
    (url, server)
}

#[tokio::test]
async fn refused_request_loses_only_its_own_points_and_targets_are_resent_until_delivered() {
    const STATUSES: [u16; 13] = [503, 200, 400, 200, 400, 400, 400, 200, 200, 200, 200, 200, 200];
    let points: Vec<String> = (1..=5_000u64)
        .map(|milli| format!(r#"{{"timeUnixNano": "{}", "asDouble": 1}}"#, milli * 1_000_000))
        .collect();
    let message = format!(
        r#"{{"resourceMetrics": [{{"resource": {{"attributes": [
            {{"key": "service.name", "value": {{"stringValue": "trainer"}}}},
            {{"key": "train.dataset", "value": {{"stringValue": "d"}}}}]}},
            "scopeMetrics": [{{"metrics": [{{"name": "train.loss", "gauge": {{"dataPoints": [{}]}}}}]}}]}}]}}"#,
        points.join(",")
    );
    let mut bytes = Vec::new();
    let limits = pulsetrain_otlp::limits::Limits::default();
    pulsetrain_otlp::json::decode(message.as_bytes(), &limits, &mut bytes).expect("OTLP/JSON");
    let batch = Batch::new(Signal::Metrics, 5_000, bytes);
    let (url, server) = answering(&STATUSES);
    let mut sink = RemoteWriteSink::new(&url, &PrometheusConfig::default(), |_| None).expect("a sink");

    assert!(matches!(sink.write(&batch).await, Delivery::Retry { .. }));
    let Delivery::Partial { rejected, problem } = sink.write(&batch).await else {
        panic!("one of three requests is refused");
    };
    let message = problem.to_string();
    assert_eq!(rejected, 2_000);
    assert!(
        message.contains("1 of 3 requests were refused") && message.contains("400"),
        "{message}"
    );
    assert!(matches!(sink.write(&batch).await, Delivery::Refused(_)));
    assert_eq!(sink.write(&batch).await, Delivery::Delivered);
    assert_eq!(sink.write(&batch).await, Delivery::Delivered);

    let bodies = server.join().expect("all requests came");
    let has_target = |bodies: &[Vec<u8>]| {
        bodies
            .iter()
            .any(|body| body.windows(11).any(|text| text == b"target_info"))
    };
    let deliveries = [&bodies[1..4], &bodies[4..7], &bodies[7..10], &bodies[10..13]];
    assert_eq!(deliveries.map(has_target), [true, true, true, false]);
}
