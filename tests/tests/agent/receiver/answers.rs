//! The responses of the receiver: to accepted requests, to those that it cannot accept now, and to invalid ones.

use std::{
    fmt::Display,
    io::Write,
    sync::{Arc, Mutex},
};

use pulsetrain_net::{AuthConfig, Exposure};
use pulsetrain_otlp::Signal;
use pulsetrain_pipeline::{Batch, Delivery, Sink};
use pulsetrain_receiver::{ReceiverConfig, ReceiverSource};
use pulsetrain_sinks::{OtlpConfig, OtlpSink};
use pulsetrain_tests::{Folder, otlp::gzip, wait_until};

use crate::receiver::inside::{Inside, request};

const PROTOBUF: &str = "Content-Type: application/x-protobuf\r\n";
const JSON: &str = "Content-Type: application/json; charset=utf-8\r\n";
const SPAN: &str = r#"{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"00000000000000000000000000000001","spanId":"0000000000000001","name":"step"}]}]}]}"#;

/// `SPAN` as protobuf.
fn span() -> Vec<u8> {
    let mut bytes = Vec::new();
    pulsetrain_otlp::json::decode(SPAN.as_bytes(), &Default::default(), &mut bytes)
        .expect("the span is OTLP/JSON");
    bytes
}

#[test]
fn protobuf_and_json_in_every_compression_are_forwarded_as_the_same_bytes() {
    let inside = Inside::open(ReceiverConfig::default());
    let zstd = zstd::encode_all(&span()[..], 1).unwrap();
    for (headers, body, answer) in [
        (PROTOBUF.to_owned(), span(), ""),
        (JSON.to_owned(), SPAN.as_bytes().to_vec(), "{}"),
        (format!("{PROTOBUF}Content-Encoding: gzip\r\n"), gzip(&span()), ""),
        (
            format!("{JSON}Content-Encoding: gzip\r\n"),
            gzip(SPAN.as_bytes()),
            "{}",
        ),
        (format!("{PROTOBUF}Content-Encoding: zstd\r\n"), zstd, ""),
    ] {
        let response = inside.post("/v1/traces", &headers, &body);
        assert!(response.starts_with("HTTP/1.1 200"), "{headers}: {response}");
        assert_eq!(response.split("\r\n\r\n").nth(1), Some(answer), "{headers}");
    }
    wait_until("the sink has all five", || inside.batches().len() == 5);
    for batch in inside.batches() {
        assert_eq!((batch.signal(), batch.items()), (Signal::Traces, 1));
        assert_eq!(batch.bytes(), &span());
    }
}

#[test]
fn unacceptable_requests_get_a_permanent_error_with_the_reason() {
    let small = ReceiverConfig {
        max_message: 1000,
        ..ReceiverConfig::default()
    };
    let inside = Inside::open(small);
    let bomb = gzip(&[0; 100_000]);
    assert!(bomb.len() < 1000);
    let gzipped = format!("{PROTOBUF}Content-Encoding: gzip\r\n");
    for (path, headers, body, status, why) in [
        ("/v1/traces", PROTOBUF, &b"\xff\xff"[..], 400, "not valid OTLP"),
        (
            "/v1/metrics",
            JSON,
            b"{\"resourceMetrics\": 7}",
            400,
            "not valid OTLP",
        ),
        (
            "/v1/metrics",
            JSON,
            SPAN.as_bytes(),
            400,
            "it contains traces, but was sent as metrics",
        ),
        ("/v1/traces", PROTOBUF, &[0; 1001], 413, "longer than 1000 bytes"),
        (
            "/v1/traces",
            gzipped.as_str(),
            &bomb,
            413,
            "longer than 1000 bytes",
        ),
        (
            "/v1/traces",
            gzipped.as_str(),
            b"no gzip",
            400,
            "could not be read",
        ),
        (
            "/v1/traces",
            "Content-Type: text/plain\r\n",
            b"x",
            415,
            "application/json",
        ),
        (
            "/v1/traces",
            "Content-Type: application/json\r\nContent-Encoding: br\r\n",
            b"x",
            415,
            "gzip, zstd",
        ),
        ("/v1/traces", "", b"x", 415, "Content-Type is missing"),
        (
            "/v1/traces",
            "Content-Type: application/json\r\nOrigin: http://evil.example\r\n",
            SPAN.as_bytes(),
            403,
            "http://evil.example",
        ),
        ("/v1/profiles", PROTOBUF, b"", 404, "/v1/traces"),
    ] {
        let response = inside.post(path, headers, body);
        assert!(
            response.starts_with(&format!("HTTP/1.1 {status}")),
            "{path}: {response}"
        );
        assert!(
            response.contains(why) && !response.to_lowercase().contains("retry-after"),
            "{response}"
        );
    }
    let response = request(inside.address, "GET /v1/traces", "", b"");
    assert!(response.starts_with("HTTP/1.1 405"), "{response}");
    assert!(inside.batches().is_empty());
    let complaints = inside.response.lock().unwrap().len();
    assert_eq!(
        complaints,
        5,
        "one a kind and minute: {:?}",
        inside.response.lock().unwrap()
    );
}

#[test]
fn full_sinks_ask_clients_of_both_protocols_to_retry_and_lose_nothing() {
    let inside = Inside::closed(ReceiverConfig::default(), 2);
    let post = || inside.post("/v1/traces", PROTOBUF, &span());
    for _ in 0..2 {
        assert!(post().starts_with("HTTP/1.1 200"));
    }
    let refused = post();
    assert!(refused.starts_with("HTTP/1.1 503"), "{refused}");
    assert!(
        refused.to_lowercase().contains("\r\nretry-after: 1\r\n"),
        "{refused}"
    );
    let mut grpc = grpc(&inside);
    let batch = Batch::new(Signal::Traces, 1, span());
    match inside.block_on(grpc.deliver(&batch)) {
        Delivery::Retry { after, problem } => {
            assert_eq!(after, Some(std::time::Duration::from_secs(1)));
            assert!(problem.what.contains("ResourceExhausted"), "{problem}");
        }
        other => panic!("{other:?}"),
    }
    inside.let_in();
    wait_until("there is room", || !inside.batches().is_empty());
    assert!(matches!(
        inside.block_on(grpc.deliver(&batch)),
        Delivery::Delivered
    ));
    wait_until("everything that was taken is there, once", || {
        inside.batches().len() == 3
    });
}

#[test]
fn grpc_message_above_the_limit_is_rejected_permanently() {
    let small = ReceiverConfig {
        max_message: 50,
        ..ReceiverConfig::default()
    };
    let inside = Inside::open(small);
    let batch = Batch::new(Signal::Traces, 2, [span(), span()].concat());
    let outcome = inside.block_on(grpc(&inside).deliver(&batch));
    assert!(
        matches!(&outcome, Delivery::TooLarge(_)) && format!("{outcome:?}").contains("50 bytes"),
        "{outcome:?}"
    );
}

#[test]
fn receiver_stops_despite_idle_and_half_sent_connections() {
    let inside = Inside::open(ReceiverConfig::default());
    let mut half = std::net::TcpStream::connect(inside.address).unwrap();
    half.write_all(b"POST /v1/traces HTTP/1.1\r\nHost: a\r\nContent-Type: application/x-protobuf\r\nContent-Length: 100\r\n\r\nhalf")
        .unwrap();
    let _silent = std::net::TcpStream::connect(inside.address).unwrap();
    assert!(
        inside
            .post("/v1/traces", PROTOBUF, &span())
            .starts_with("HTTP/1.1 200")
    );
    let reports = inside.stop();
    assert_eq!(reports[0].ended, Ok(()));
}

#[test]
fn remote_listen_address_requires_allow_remote() {
    let remote = || ReceiverConfig {
        listen: vec!["0.0.0.0:0".parse().expect("it is an address")],
        ..ReceiverConfig::default()
    };
    let Err(error) = ReceiverSource::bind(remote(), |_| {}) else {
        panic!("it listens");
    };
    assert!(error.remedy().contains("allow_remote"), "{error}");
    let allowed = ReceiverConfig {
        exposure: Exposure {
            allow_remote: true,
            ..Exposure::default()
        },
        ..remote()
    };
    assert!(ReceiverSource::bind(allowed, |_| {}).is_ok());
}

#[test]
fn remote_listener_with_plaintext_credentials_is_reported() {
    let folder = Folder::new();
    let bind = |listen: &str| {
        let config = ReceiverConfig {
            listen: vec![listen.parse().expect("it is an address")],
            exposure: Exposure {
                allow_remote: true,
                auth: Some(AuthConfig::Bearer {
                    token_file: folder.file("token", "secret"),
                }),
                ..Exposure::default()
            },
            ..ReceiverConfig::default()
        };
        let reported = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&reported);
        let report = move |event: &dyn Display| log.lock().expect("no panic").push(event.to_string());
        drop(ReceiverSource::bind(config, report).expect("it listens"));
        Arc::into_inner(reported)
            .expect("the receiver is gone")
            .into_inner()
            .expect("no panic")
    };
    assert_eq!(bind("127.0.0.1:0"), [""; 0]);
    let reported = bind("0.0.0.0:0");
    assert!(
        matches!(&reported[..], [warning] if warning.contains("unencrypted") && warning.contains("set tls")),
        "{reported:?}"
    );
}

fn grpc(inside: &Inside) -> OtlpSink {
    let config = OtlpConfig::from_url(&format!("grpc://{}", inside.address), |_| None);
    OtlpSink::new(&config.expect("the address is one")).expect("a client can be made")
}

/// A number with two bytes in JSON has eight bytes in protobuf.
#[test]
fn json_that_exceeds_the_limit_as_protobuf_is_rejected() {
    let small = ReceiverConfig {
        max_message: 10_000,
        ..ReceiverConfig::default()
    };
    let inside = Inside::open(small);
    let message = |numbers: usize| {
        let bounds = vec!["1"; numbers].join(",");
        format!(
            r#"{{"resourceMetrics":[{{"scopeMetrics":[{{"metrics":[{{"name":"h","histogram":{{"dataPoints":[{{"explicitBounds":[{bounds}]}}]}}}}]}}]}}]}}"#
        )
    };
    let long = message(2000);
    assert!(long.len() < 10_000);
    let response = inside.post("/v1/metrics", JSON, long.as_bytes());
    assert!(
        response.starts_with("HTTP/1.1 413") && response.contains("longer than 10000 bytes"),
        "{response}"
    );
    let response = inside.post("/v1/metrics", JSON, message(1000).as_bytes());
    assert!(response.starts_with("HTTP/1.1 200"), "{response}");
    wait_until("only the short one arrives", || inside.batches().len() == 1);
}

/// A connection that is closed while its client writes is reset, and the client cannot read the response.
#[test]
fn client_reads_the_error_response_after_sending_a_long_body() {
    let small = ReceiverConfig {
        max_message: 1000,
        ..ReceiverConfig::default()
    };
    let inside = Inside::open(small);
    let long = vec![0; 8 << 20];
    for (headers, status) in [(PROTOBUF, 413), ("", 415)] {
        let mut stream = std::net::TcpStream::connect(inside.address).unwrap();
        let head = format!(
            "POST /v1/traces HTTP/1.1\r\nHost: a\r\nConnection: close\r\n{headers}Content-Length: {}\r\n\r\n",
            long.len()
        );
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(&long).expect("the body is read to its end");
        let mut answer = String::new();
        std::io::Read::read_to_string(&mut stream, &mut answer).expect("the connection is not reset");
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{answer}");
    }
}
