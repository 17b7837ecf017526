//! gRPC: the requests, and the classification of each response.

use std::{io::Read, time::Duration};

use flate2::read::GzDecoder;
use pulsetrain_otlp::Signal;
use pulsetrain_pipeline::{Delivery, Sink};

use crate::{
    answers::{THREE_REJECTED, endless, grpc, grpc_gzip, grpc_refusal, grpc_status, http},
    delivery::{denial, refusal, retry, too_large, unsupported},
    receiver::{Received, Receiver, batch},
};

const OK: &[(&str, &str)] = &[("grpc-status", "0")];

/// `google.rpc.Status { code: 8, details: [Any { RetryInfo { retry_delay: 7 s } }] }` in base64.
const RETRY_INFO: &str = "CAgaMAoodHlwZS5nb29nbGVhcGlzLmNvbS9nb29nbGUucnBjLlJldHJ5SW5mbxIECgIIBw==";

/// Returns the flag and the message of the only frame of a request.
fn unframed(request: &Received) -> (u8, &[u8]) {
    let (flag, length) = (request.body[0], &request.body[1..5]);
    assert_eq!(
        u32::from_be_bytes(length.try_into().unwrap()) as usize,
        request.body.len() - 5
    );
    (flag, &request.body[5..])
}

#[tokio::test]
async fn each_signal_calls_its_service_with_the_batch_byte_for_byte() {
    let receiver = Receiver::start(|| grpc(b"", OK)).await;
    let mut sink = receiver.sink("grpc", &[("HEADERS", "x-tenant=a%20b"), ("TIMEOUT", "5000")]);
    for signal in Signal::ALL {
        assert_eq!(sink.deliver(&batch(signal)).await, Delivery::Delivered);
    }
    let requests = receiver.requests();
    let paths: Vec<&str> = requests.iter().map(|request| request.path.as_str()).collect();
    assert_eq!(
        paths,
        [
            "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
            "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export",
            "/opentelemetry.proto.collector.logs.v1.LogsService/Export"
        ]
    );
    for request in &requests {
        assert_eq!(unframed(request), (0, &batch(Signal::Logs).bytes()[..]));
        assert_eq!(request.header("content-type"), "application/grpc");
        assert_eq!(request.header("te"), "trailers");
        assert_eq!(request.header("x-tenant"), "a b");
        assert_eq!(request.header("grpc-timeout"), "5000000u");
        assert!(
            request
                .header("user-agent")
                .starts_with("OTel-OTLP-Exporter-Rust/")
        );
    }
}

#[tokio::test]
async fn gzip_inflates_to_the_batch() {
    let receiver = Receiver::start(|| grpc(b"", OK)).await;
    assert_eq!(
        receiver.deliver("grpc", &[("COMPRESSION", "gzip")]).await,
        Delivery::Delivered
    );
    let request = receiver.only_request();
    assert_eq!(request.header("grpc-encoding"), "gzip");
    let (flag, message) = unframed(&request);
    let mut inflated = Vec::new();
    GzDecoder::new(message).read_to_end(&mut inflated).unwrap();
    assert_eq!((flag, inflated), (1, batch(Signal::Metrics).bytes().to_vec()));
}

#[tokio::test]
async fn zstd_inflates_to_the_batch() {
    let receiver = Receiver::start(|| grpc(b"", OK)).await;
    assert_eq!(
        receiver.deliver("grpc", &[("COMPRESSION", "zstd")]).await,
        Delivery::Delivered
    );
    let request = receiver.only_request();
    assert_eq!(request.header("grpc-encoding"), "zstd");
    let (flag, message) = unframed(&request);
    let inflated = zstd::decode_all(message).unwrap();
    assert_eq!((flag, inflated), (1, batch(Signal::Metrics).bytes().to_vec()));
}

#[tokio::test]
async fn compressed_response_is_read_up_to_four_mebibytes_after_decompression() {
    let receiver = Receiver::start(|| grpc_gzip(THREE_REJECTED)).await;
    let delivery = receiver.deliver("grpc", &[("COMPRESSION", "gzip")]).await;
    assert_eq!(
        delivery,
        Delivery::Partial {
            rejected: 3,
            problem: "bad".into()
        }
    );

    let receiver = Receiver::start(|| grpc_gzip(&vec![0; (4 << 20) + 1])).await;
    let message = refusal(receiver.deliver("grpc", &[("COMPRESSION", "gzip")]).await);
    assert!(message.contains("longer than 4194304 bytes"), "{message}");
}

#[tokio::test]
async fn grpc_codes_of_the_specification_and_an_exhausted_resource_are_retryable() {
    const RETRYABLE: [u8; 7] = [1, 4, 8, 10, 11, 14, 15];
    const INVALID_ARGUMENT: u8 = 3;
    const UNIMPLEMENTED: u8 = 12;
    for code in 1..=16 {
        let receiver = Receiver::start(move || grpc_status(code, "no%20thanks")).await;
        let delivery = receiver
            .deliver("grpc", &[("HEADERS", "authorization=s3cret")])
            .await;
        let message = match code {
            UNIMPLEMENTED => unsupported(delivery),
            INVALID_ARGUMENT => refusal(delivery),
            _ if RETRYABLE.contains(&code) => retry(delivery).1,
            _ => denial(delivery),
        };
        let expected = format!("http://{} (gRPC): gRPC status ", receiver.address);
        assert!(
            message.starts_with(&expected) && message.contains(": no thanks"),
            "{message}"
        );
        assert!(!message.contains("s3cret"), "{message}");
    }
}

#[tokio::test]
async fn retry_info_gives_the_delay_of_an_exhausted_or_unavailable_receiver() {
    for code in ["8", "14"] {
        let trailers = [("grpc-status", code), ("grpc-status-details-bin", RETRY_INFO)];
        let receiver = Receiver::start(move || grpc_refusal(&trailers)).await;
        assert_eq!(
            retry(receiver.deliver("grpc", &[]).await).0,
            Some(Duration::from_secs(7)),
            "{code}"
        );
    }
    let trailers = [("grpc-status", "3"), ("grpc-status-details-bin", RETRY_INFO)];
    let receiver = Receiver::start(move || grpc_refusal(&trailers)).await;
    refusal(receiver.deliver("grpc", &[]).await);
}

#[tokio::test]
async fn request_over_the_receiver_limit_is_reported_as_too_large() {
    // grpc-go, a receiver on tonic with a limit of one byte, and ours.
    let answers = [
        (
            "8",
            "grpc: received message larger than max (5135035 vs. 4194304)",
        ),
        (
            "11",
            "Error, decoded message length too large: found 2 bytes, the limit is: 1 bytes",
        ),
        ("8", "the message is longer than 50 bytes"),
        ("3", "the message is longer than 50 bytes"),
    ];
    for (code, text) in answers {
        let receiver = Receiver::start(move || grpc_status(code.parse().unwrap(), text)).await;
        let message = too_large(receiver.deliver("grpc", &[]).await);
        assert!(
            message.contains(text) && message.contains("raise the receiver's message limit"),
            "{message}"
        );
    }
    let receiver = Receiver::start(|| grpc_status(8, "no quota left")).await;
    let (after, message) = retry(receiver.deliver("grpc", &[]).await);
    assert_eq!(after, None);
    assert!(message.ends_with("raise its limits, or send less"), "{message}");
}

#[tokio::test]
async fn partial_success_is_counted() {
    let receiver = Receiver::start(|| grpc(THREE_REJECTED, OK)).await;
    let expected = Delivery::Partial {
        rejected: 3,
        problem: "bad".into(),
    };
    assert_eq!(receiver.deliver("grpc", &[]).await, expected);
}

#[tokio::test]
async fn response_over_four_mebibytes_is_a_permanent_error() {
    let receiver = Receiver::start(|| grpc(&vec![0; (4 << 20) + 1], OK)).await;
    let message = refusal(receiver.deliver("grpc", &[]).await);
    assert!(message.contains("longer than 4194304 bytes"), "{message}");
}

#[tokio::test]
async fn response_timeout_is_retryable() {
    let receiver = Receiver::start(|| endless("application/grpc")).await;
    let (_, message) = retry(receiver.deliver("grpc", &[("TIMEOUT", "100")]).await);
    assert!(message.contains("within 100ms"), "{message}");
    assert_eq!(receiver.requests().len(), 1);
}

#[tokio::test]
async fn html_response_of_a_proxy_is_classified_by_its_http_status() {
    for status in [429, 502, 503, 504] {
        let receiver = Receiver::start(move || http(status, "text/html", "<html>")).await;
        let (_, message) = retry(receiver.deliver("grpc", &[]).await);
        assert!(
            message.contains("gRPC status Unavailable") && message.contains("a proxy may answer for it"),
            "{message}"
        );
    }
    for status in [401, 403, 500] {
        let receiver = Receiver::start(move || http(status, "text/html", "<html>")).await;
        denial(receiver.deliver("grpc", &[]).await);
    }
    let receiver = Receiver::start(|| http(404, "text/html", "<html>")).await;
    unsupported(receiver.deliver("grpc", &[]).await);
}

#[tokio::test]
async fn html_page_instead_of_a_grpc_response_is_refused_with_a_hint() {
    let receiver = Receiver::start(|| http(200, "text/html", "<html></html>")).await;
    let message = denial(receiver.deliver("grpc", &[]).await);
    assert!(message.contains("usually 4318"), "{message}");
    let receiver = Receiver::start(|| grpc_status(13, "disk is full")).await;
    let message = denial(receiver.deliver("grpc", &[]).await);
    assert!(
        message.ends_with("disk is full; the receiver failed: look at its log for the error"),
        "{message}"
    );
}
