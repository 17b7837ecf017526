//! Throughput over the network: a receiver with latency, and a message above the limit of its receiver.

use std::{thread, time::Duration};

use pulsetrain_otlp::write::Buffer;
use pulsetrain_tests::{
    Answer, Collector, FakeEndpoint, Judge, free_port, http::request, some_or_return, wait_until,
};

use crate::{
    delivery::{configure, post},
    world::World,
};

/// One request at a time with one message each would need five minutes.
#[test]
fn small_messages_are_batched_for_a_receiver_with_100_ms_latency() {
    const CLIENTS: usize = 4;
    const MESSAGES: usize = 3000;
    let world = World::new();
    let late = Answer::Late(Duration::from_millis(100));
    let endpoint = FakeEndpoint::start([], late.clone());
    let receiver = free_port();
    let json = "      encoding: json\n      signals: [logs]\n";
    configure(&world, receiver, &endpoint.url(), json, "");
    let agent = world.start();
    thread::scope(|scope| {
        for client in 0..CLIENTS {
            scope.spawn(move || {
                for number in (client..MESSAGES).step_by(CLIENTS) {
                    // If the queue is full, the client must retry.
                    wait_until("the message is accepted", || {
                        post(receiver, &format!("message {number}")) == Some(200)
                    });
                }
            });
        }
    });
    agent.stop_well();
    let items = endpoint.items_answered(&late);
    let texts = items.of_kind("log").into_iter();
    let mut numbers: Vec<usize> = texts
        .filter_map(|item| {
            let text = item["log"]["body"]["stringValue"].as_str()?;
            text.strip_prefix("message ")?.parse().ok()
        })
        .collect();
    numbers.sort_unstable();
    assert!(numbers.into_iter().eq(0..MESSAGES), "everything once");
    let requests = endpoint.received().len();
    assert!(requests < MESSAGES / 4, "{requests} requests");
}

#[test]
fn message_of_16_mib_reaches_a_grpc_receiver_that_accepts_4_mib() {
    const RECORDS: usize = 4000;
    let program = some_or_return!(Judge::Collector.require_or_skip());
    let world = World::new();
    let collector = Collector::start(&program);
    let receiver = free_port();
    let endpoint = format!("grpc://{}", collector.grpc());
    configure(&world, receiver, &endpoint, "", "  drain: 30s\n");
    let agent = world.start();
    let message = logs(RECORDS, 4100);
    assert!(message.len() > 15 << 20, "{}", message.len());
    let headers = "Content-Type: application/x-protobuf\r\n";
    let answer = request(receiver, "POST", "/v1/logs", headers, &message);
    assert!(matches!(answer, Some((200, _))), "{answer:?}");
    let printed = agent.stop_well();
    assert!(!printed.contains("lost"), "{printed}");
    let items = collector.stop();
    let records = items.of_kind("log");
    assert_eq!(records.len(), RECORDS);
    let services = records
        .iter()
        .filter(|item| item.to_string().contains("split me"));
    assert_eq!(services.count(), RECORDS, "each with its resource");
}

/// Returns `LogsData` with `records` records with bodies of this number of bytes.
fn logs(records: usize, bytes: usize) -> Vec<u8> {
    let string = |text: &str| {
        let mut value = Buffer::default();
        value.delimited(1, text.as_bytes());
        value
    };
    let body = string(&"x".repeat(bytes));
    let (mut record, mut scope) = (Buffer::default(), Buffer::default());
    record.fixed64(1, 1);
    record.delimited(5, body.as_slice());
    for _ in 0..records {
        scope.delimited(2, record.as_slice());
    }
    let (mut attribute, mut resource) = (Buffer::default(), Buffer::default());
    attribute.delimited(1, b"service.name");
    attribute.delimited(2, string("split me").as_slice());
    resource.delimited(1, attribute.as_slice());
    let (mut resource_logs, mut message) = (Buffer::default(), Buffer::default());
    resource_logs.delimited(1, resource.as_slice());
    resource_logs.delimited(2, scope.as_slice());
    message.delimited(1, resource_logs.as_slice());
    message.into_vec()
}
