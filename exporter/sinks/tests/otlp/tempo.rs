//! The recorded answers of a real Tempo to pushed traces (`tests/corpus/tempo`).

use std::{fs, path::Path};

use pulsetrain_pipeline::Delivery;
use serde_json::Value;

use crate::{
    answers::{grpc_refusal, http},
    delivery::{refusal, retry, too_large},
    receiver::Receiver,
};

fn read(file: &str) -> Vec<u8> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus/tempo");
    fs::read(corpus.join(file)).unwrap()
}

fn described(name: &str) -> Value {
    serde_json::from_slice(&read(&format!("{name}.json"))).unwrap()
}

/// Delivers a batch to a receiver that gives a recorded answer over HTTP.
async fn delivered(name: &'static str) -> Delivery {
    let answer = described(name);
    let status = answer["status"].as_u64().unwrap() as u16;
    let content_type = answer["headers"]["Content-Type"].as_str().unwrap().to_owned();
    assert!(answer["headers"].get("Retry-After").is_none());
    let body = read(&format!("{name}.body"));
    let receiver = Receiver::start(move || http(status, &content_type, body.clone())).await;
    receiver.deliver("http", &[]).await
}

#[tokio::test]
async fn tempo_over_its_rate_is_retried_with_its_reason_and_without_a_delay() {
    let (after, message) = retry(delivered("push_over_rate").await);
    assert_eq!(after, None);
    assert!(
        message.contains("RATE_LIMITED: ingestion rate limit (local: 20000 bytes/s"),
        "{message}"
    );
    assert!(message.ends_with("raise its limits, or send less"), "{message}");
}

/// A batch over the burst is never accepted in this size. Tempo gives the code of its rate limit, and no `RetryInfo`.
#[tokio::test]
async fn tempo_over_its_burst_finds_the_batch_too_large_over_both_protocols() {
    const WORDS: &str = "RATE_LIMITED: batch size (29092 bytes) exceeds ingestion limit";
    let message = too_large(delivered("push_over_burst").await);
    assert!(message.contains(WORDS), "{message}");
    let answer = described("grpc_push_over_burst");
    assert_eq!(answer["code"], "RESOURCE_EXHAUSTED");
    assert_eq!(answer["trailing_metadata"], serde_json::json!([]));
    let text = answer["message"].as_str().unwrap().replace(' ', "%20");
    let receiver =
        Receiver::start(move || grpc_refusal(&[("grpc-status", "8"), ("grpc-message", &text)])).await;
    let message = too_large(receiver.deliver("grpc", &[]).await);
    assert!(message.contains(WORDS), "{message}");
}

#[tokio::test]
async fn tempo_rejects_invalid_traces_with_its_reason() {
    for (name, words) in [
        ("push_bad_protobuf", "HTTP status 400 Bad Request: unexpected EOF"),
        (
            "push_bad_json",
            "HTTP status 400 Bad Request: ReadObjectCB: expect",
        ),
    ] {
        let message = refusal(delivered(name).await);
        assert!(message.contains(words), "{message}");
    }
}

/// Tempo drops the spans above `max_bytes_per_trace` without a word: the answer is a complete success.
#[tokio::test]
async fn tempo_accepts_an_empty_request_and_a_trace_that_it_cuts() {
    for name in ["push_empty", "push_trace_too_large"] {
        assert_eq!(delivered(name).await, Delivery::Delivered, "{name}");
    }
}
