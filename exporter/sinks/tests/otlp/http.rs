//! HTTP: the requests, and the classification of each response.

use std::{io::Read, time::Duration};

use flate2::read::GzDecoder;
use pulsetrain_net::client::Compression;
use pulsetrain_otlp::Signal;
use pulsetrain_pipeline::{Batch, Delivery, Sink};
use pulsetrain_sinks::{OtlpConfig, OtlpSettings, OtlpSink};

use crate::{
    answers::{JSON, PROTOBUF, THREE_REJECTED, endless, http, http_with},
    delivery::{denial, refusal, retry, too_large, unsupported},
    receiver::{Receiver, batch, lookup},
};

fn partial(rejected: u64, message: &str) -> Delivery {
    Delivery::Partial {
        rejected,
        problem: message.into(),
    }
}

#[tokio::test]
async fn each_signal_is_posted_to_its_path_byte_for_byte_on_one_connection_each() {
    let receiver = Receiver::start(|| http(200, PROTOBUF, "")).await;
    let mut sink = receiver.sink("http", &[]);
    assert_eq!(sink.name(), format!("otlp http://{}", receiver.address));
    for signal in [Signal::ALL, Signal::ALL].concat() {
        assert_eq!(sink.deliver(&batch(signal)).await, Delivery::Delivered);
    }
    let requests = receiver.requests();
    let paths: Vec<&str> = requests.iter().map(|request| request.path.as_str()).collect();
    assert_eq!(
        paths,
        [
            "/v1/traces",
            "/v1/metrics",
            "/v1/logs",
            "/v1/traces",
            "/v1/metrics",
            "/v1/logs"
        ]
    );
    assert_eq!(receiver.connections(), 3);
    for request in requests {
        assert_eq!(request.method, "POST");
        assert_eq!(request.header("content-type"), PROTOBUF);
        assert_eq!(request.header("content-encoding"), "");
        assert!(
            request
                .header("user-agent")
                .starts_with("OTel-OTLP-Exporter-Rust/")
        );
        assert_eq!(&request.body, batch(Signal::Traces).bytes());
    }
}

#[tokio::test]
async fn signal_endpoint_receives_only_its_signal() {
    let own = Receiver::start(|| http(200, PROTOBUF, "")).await;
    let all = Receiver::start(|| http(200, PROTOBUF, "")).await;
    let variables = [
        ("ENDPOINT", &*format!("http://{}/all", all.address)),
        ("LOGS_ENDPOINT", &*format!("http://{}/in?tenant=a", own.address)),
    ];
    let mut sink = OtlpSink::new(&OtlpConfig::from_env(lookup(&variables)).unwrap()).unwrap();
    assert_eq!(
        sink.name(),
        format!("otlp http://{}, http://{}", all.address, own.address)
    );
    sink.deliver(&batch(Signal::Logs)).await;
    sink.deliver(&batch(Signal::Traces)).await;
    assert_eq!(own.only_request().path, "/in?tenant=a");
    assert_eq!(all.only_request().path, "/all/v1/traces");
}

#[tokio::test]
async fn json_is_sent_as_json() {
    let receiver = Receiver::start(|| http(200, JSON, "{}")).await;
    assert_eq!(
        receiver.deliver("http", &[("PROTOCOL", "http/json")]).await,
        Delivery::Delivered
    );
    let request = receiver.only_request();
    assert_eq!(request.header("content-type"), JSON);
    let body: serde_json::Value = serde_json::from_slice(&request.body).unwrap();
    assert_eq!(body["resourceMetrics"].as_array().map(Vec::len), Some(50));
}

#[tokio::test]
async fn invalid_protobuf_batch_is_refused_before_it_is_sent_as_json() {
    let receiver = Receiver::start(|| http(200, JSON, "{}")).await;
    let mut sink = receiver.sink("http", &[("PROTOCOL", "http/json")]);
    let message = refusal(sink.deliver(&Batch::new(Signal::Logs, 1, &b"\x0a\x05"[..])).await);
    assert!(
        message.contains("not sent: the batch is not OTLP protobuf"),
        "{message}"
    );
    assert_eq!(receiver.requests().len(), 0);
}

#[tokio::test]
async fn gzip_inflates_to_the_batch() {
    let receiver = Receiver::start(|| http(200, PROTOBUF, "")).await;
    assert_eq!(
        receiver.deliver("http", &[("COMPRESSION", "gzip")]).await,
        Delivery::Delivered
    );
    let request = receiver.only_request();
    assert_eq!(request.header("content-encoding"), "gzip");
    let mut inflated = Vec::new();
    GzDecoder::new(&request.body[..])
        .read_to_end(&mut inflated)
        .unwrap();
    assert_eq!(inflated, batch(Signal::Metrics).bytes().to_vec());
}

#[tokio::test]
async fn higher_compression_level_produces_smaller_bodies_that_decompress_to_the_batch() {
    let bytes: Vec<u8> = (0..50_000_u32)
        .flat_map(|n| (n * n % 1009).to_le_bytes())
        .collect();
    let batch = Batch::new(Signal::Logs, 1, bytes.clone());
    let mut sizes = Vec::new();
    for compression in [
        Compression::Gzip(1),
        Compression::Gzip(9),
        Compression::Zstd(1),
        Compression::Zstd(19),
    ] {
        let receiver = Receiver::start(|| http(200, PROTOBUF, "")).await;
        let settings = OtlpSettings {
            compression: Some(compression),
            ..OtlpSettings::default()
        };
        let url = format!("http://{}", receiver.address);
        let config = OtlpConfig::from_section(Some(&url), &settings, |_| None).unwrap();
        let delivery = OtlpSink::new(&config).unwrap().deliver(&batch).await;
        assert_eq!(delivery, Delivery::Delivered);
        let request = receiver.only_request();
        let inflated = match request.header("content-encoding") {
            "zstd" => zstd::decode_all(&request.body[..]).unwrap(),
            gzip => {
                let mut inflated = Vec::new();
                assert_eq!(gzip, "gzip");
                GzDecoder::new(&request.body[..])
                    .read_to_end(&mut inflated)
                    .unwrap();
                inflated
            }
        };
        assert!(inflated == bytes);
        sizes.push(request.body.len());
    }
    assert!(sizes[1] < sizes[0] && sizes[3] < sizes[2], "{sizes:?}");
}

#[tokio::test]
async fn headers_arrive_decoded_and_may_replace_the_user_agent() {
    let receiver = Receiver::start(|| http(200, PROTOBUF, "")).await;
    let headers = "authorization=Basic%20YQ==,x-tenant=a,user-agent=mine";
    receiver.deliver("http", &[("HEADERS", headers)]).await;
    let request = receiver.only_request();
    assert_eq!(request.header("authorization"), "Basic YQ==");
    assert_eq!(request.header("x-tenant"), "a");
    assert_eq!(request.header("user-agent"), "mine");
}

#[tokio::test]
async fn only_four_http_statuses_are_retryable() {
    for (status, end) in [
        (429, "raise its limits, or send less"),
        (502, "correct its address in the proxy"),
        (503, "start it, raise its limits, or send less"),
        (504, "raise the timeout of the proxy"),
    ] {
        let receiver = Receiver::start(move || http(status, "text/plain", "busy")).await;
        let (after, message) = retry(receiver.deliver("http", &[]).await);
        assert_eq!(after, None);
        let expected = format!("http://{}/v1/metrics: HTTP status {status}", receiver.address);
        assert!(
            message.starts_with(&expected) && message.contains(": busy; ") && message.ends_with(end),
            "{message}"
        );
    }
    for status in [
        301, 302, 304, 307, 400, 401, 403, 405, 408, 415, 422, 499, 500, 501, 505, 507, 599,
    ] {
        let receiver = Receiver::start(move || http(status, "text/plain", "")).await;
        let message = refusal(
            receiver
                .deliver("http", &[("HEADERS", "authorization=s3cret")])
                .await,
        );
        assert!(
            message.contains(&format!("HTTP status {status}")) && !message.contains("s3cret"),
            "{message}"
        );
    }
}

#[tokio::test]
async fn request_over_the_receiver_limit_is_reported_as_too_large() {
    let receiver = Receiver::start(|| http(413, "text/plain", "at most 1 MB")).await;
    let message = too_large(receiver.deliver("http", &[]).await);
    assert!(
        message.contains("HTTP status 413") && message.contains("at most 1 MB"),
        "{message}"
    );
}

#[tokio::test]
async fn only_an_http_status_about_the_contents_refuses_the_batch() {
    for status in [301, 401, 403, 408, 500, 501] {
        let receiver = Receiver::start(move || http(status, "text/plain", "")).await;
        denial(receiver.deliver("http", &[]).await);
    }
    let receiver = Receiver::start(|| http(400, "text/plain", "")).await;
    assert!(matches!(
        receiver.deliver("http", &[]).await,
        Delivery::Refused(_)
    ));
}

#[tokio::test]
async fn rejection_has_the_receivers_message_and_advice() {
    let cases = [
        (
            400,
            JSON,
            &br#"{"code":3,"message":"bad span"}"#[..],
            ": bad span; the receiver could not read the request",
        ),
        (
            400,
            PROTOBUF,
            b"\x08\x03\x12\x08bad span",
            ": bad span; the receiver could not read the request",
        ),
        (
            401,
            "text/html",
            b"<html>",
            "; set the credentials in headers of the sink (or in bearer_token_file or basic_auth), or in OTEL_EXPORTER_OTLP_HEADERS",
        ),
        (
            400,
            "text/plain",
            b"out of bounds\nout of bounds (10x)\n",
            "; the receiver accepts no samples that old: set storage.tsdb.out_of_order_time_window in Prometheus",
        ),
        (
            400,
            "text/plain",
            b"Client sent an HTTP request to an HTTPS server.\n",
            "; use https://",
        ),
        (
            400,
            "text/html",
            b"<center>The plain HTTP request was sent to HTTPS port</center>",
            "; use https://",
        ),
    ];
    for (status, content_type, body, expected) in cases {
        let receiver = Receiver::start(move || http(status, content_type, body)).await;
        let message = refusal(receiver.deliver("http", &[]).await);
        assert!(message.contains(expected), "{message}");
    }
}

#[tokio::test]
async fn web_page_behind_a_success_is_not_delivered() {
    for content_type in ["text/html", JSON, PROTOBUF] {
        let receiver = Receiver::start(move || http(200, content_type, "\n<!doctype html><html>")).await;
        let message = denial(receiver.deliver("http", &[]).await);
        assert!(
            message.ends_with("HTTP status 200 OK with a web page: nothing was stored; check that the endpoint is an OTLP receiver"),
            "{message}"
        );
    }
}

#[tokio::test]
async fn missing_path_means_an_unsupported_signal() {
    let receiver = Receiver::start(|| http(404, "text/plain", "404 page not found\n")).await;
    let message = unsupported(receiver.deliver("http", &[]).await);
    assert!(
        message.contains("/v1/metrics: HTTP status 404 Not Found: 404 page not found; check the path"),
        "{message}"
    );
}

#[tokio::test]
async fn a_requested_signal_that_is_not_supported_is_denied() {
    let receiver = Receiver::start(|| http(404, "text/plain", "404 page not found\n")).await;
    let url = format!("http://{}", receiver.address);
    let config = OtlpConfig::from_url(&url, lookup(&[])).unwrap();
    let asked = config.with_signals([Signal::Traces].into_iter().collect());
    let mut sink = OtlpSink::new(&asked).unwrap();
    assert_eq!(sink.signals().to_string(), "traces");
    let message = denial(sink.deliver(&batch(Signal::Traces)).await);
    assert!(message.contains("404"), "{message}");

    let own = format!("{url}/spans");
    let variables = [("TRACES_ENDPOINT", own.as_str()), ("ENDPOINT", url.as_str())];
    let mut sink = OtlpSink::new(&OtlpConfig::from_env(lookup(&variables)).unwrap()).unwrap();
    denial(sink.deliver(&batch(Signal::Traces)).await);
    unsupported(sink.deliver(&batch(Signal::Logs)).await);
}

#[tokio::test]
async fn retry_after_is_honoured_in_both_forms() {
    let receiver = Receiver::start(|| http_with(503, &[("retry-after", "7")], "")).await;
    assert_eq!(
        retry(receiver.deliver("http", &[]).await).0,
        Some(Duration::from_secs(7))
    );

    let dates = [
        ("date", "Sun, 06 Nov 1994 08:49:37 GMT"),
        ("retry-after", "Sun, 06 Nov 1994 09:06:17 GMT"),
    ];
    let receiver = Receiver::start(move || http_with(429, &dates, "")).await;
    assert_eq!(
        retry(receiver.deliver("http", &[]).await).0,
        Some(Duration::from_secs(1000))
    );
}

#[tokio::test]
async fn partial_success_is_counted_from_protobuf_and_json() {
    let receiver = Receiver::start(|| http(200, PROTOBUF, THREE_REJECTED)).await;
    assert_eq!(receiver.deliver("http", &[]).await, partial(3, "bad"));

    let body = r#"{"partialSuccess":{"rejectedDataPoints":"4","errorMessage":"no"}}"#;
    let receiver = Receiver::start(move || http(200, JSON, body)).await;
    assert_eq!(
        receiver.deliver("http", &[("PROTOCOL", "http/json")]).await,
        partial(4, "no")
    );
}

#[tokio::test]
async fn response_without_content_type_is_parsed_in_the_request_format() {
    let receiver = Receiver::start(|| http_with(200, &[], THREE_REJECTED)).await;
    assert_eq!(receiver.deliver("http", &[]).await, partial(3, "bad"));
}

#[tokio::test]
async fn response_of_four_mebibytes_is_read_and_a_longer_one_is_a_permanent_error() {
    for status in [200, 503] {
        let receiver = Receiver::start(move || http(status, "text/plain", vec![b' '; (4 << 20) + 1])).await;
        let message = refusal(receiver.deliver("http", &[]).await);
        assert!(message.contains("longer than 4194304 bytes"), "{message}");
    }
    let receiver = Receiver::start(|| http(503, "text/plain", vec![b' '; 4 << 20])).await;
    retry(receiver.deliver("http", &[]).await);
}

#[tokio::test]
async fn response_timeout_is_retryable() {
    let receiver = Receiver::start(|| endless(PROTOBUF)).await;
    let (_, message) = retry(receiver.deliver("http", &[("TIMEOUT", "100")]).await);
    assert!(
        message.contains("within 100ms") && message.contains("OTEL_EXPORTER_OTLP_TIMEOUT"),
        "{message}"
    );
    assert_eq!(receiver.requests().len(), 1);
}

#[tokio::test]
async fn request_over_64_mebibytes_is_reported_as_too_large_without_sending() {
    let receiver = Receiver::start(|| http(200, PROTOBUF, "")).await;
    for scheme in ["http", "grpc"] {
        let mut sink = receiver.sink(scheme, &[("COMPRESSION", "gzip")]);
        let message = too_large(
            sink.deliver(&Batch::new(Signal::Logs, 1, vec![0; (64 << 20) + 1]))
                .await,
        );
        assert!(
            message.contains("not sent: the request has 67108865 bytes"),
            "{message}"
        );
    }
    assert_eq!(receiver.requests().len(), 0);
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let target = Receiver::start(|| http(200, PROTOBUF, "")).await;
    let location = format!("http://{}/v1/metrics", target.address);
    let receiver = Receiver::start(move || http_with(307, &[("location", &location)], "")).await;
    let message = refusal(receiver.deliver("http", &[]).await);
    assert!(message.contains("redirects are not followed"), "{message}");
    assert_eq!(target.requests().len(), 0);
}
