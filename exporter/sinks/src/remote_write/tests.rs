//! Answers of stores to remote write.

use super::*;

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
