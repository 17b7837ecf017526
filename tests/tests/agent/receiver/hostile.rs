//! Clients that hold connections and requests without using them: honest ones still get a response.

use std::{
    io::{ErrorKind, Read, Write},
    net::TcpStream,
};

use pulsetrain_otlp::Signal;
use pulsetrain_pipeline::{Batch, Delivery, Sink};
use pulsetrain_receiver::ReceiverConfig;
use pulsetrain_sinks::{OtlpConfig, OtlpSink};
use pulsetrain_tests::wait_until;

use crate::receiver::inside::Inside;

const PROTOBUF: &str = "Content-Type: application/x-protobuf\r\n";
/// The maximum number of connections.
const CONNECTIONS: usize = 256;

#[test]
fn idle_connections_are_closed_and_excess_ones_get_an_error_response() {
    let inside = Inside::open(ReceiverConfig::default());
    let connect = |_| TcpStream::connect(inside.address).expect("the receiver listens");
    // An idle connection is eventually closed in favour of a waiting client, so on a busy machine the client may be served
    // instead.
    let mut silent: Vec<TcpStream> = Vec::new();
    let mut refused = String::new();
    wait_until("a client is refused with an answer", || {
        silent.clear();
        silent.extend((0..CONNECTIONS).map(connect));
        refused = inside.post("/v1/traces", PROTOBUF, b"");
        refused.starts_with("HTTP/1.1 503")
    });
    assert!(refused.to_lowercase().contains("retry-after: 1"), "{refused}");
    let config = OtlpConfig::from_url(&format!("grpc://{}", inside.address), |_| None);
    let mut grpc = OtlpSink::new(&config.expect("the address is one")).expect("a client can be made");
    let batch = Batch::new(Signal::Traces, 1, Vec::new());
    let outcome = inside.block_on(grpc.deliver(&batch));
    assert!(
        matches!(&outcome, Delivery::Retry { problem, .. } if problem.what.contains("too many connections")),
        "{outcome:?}"
    );
    wait_until("an honest client is served", || {
        inside
            .post("/v1/traces", PROTOBUF, b"")
            .starts_with("HTTP/1.1 200")
    });
    wait_until("the silent connections are closed", || {
        silent.iter().all(is_closed)
    });
}

#[test]
fn slow_request_bodies_do_not_block_other_clients() {
    let inside = Inside::open(ReceiverConfig::default());
    let slow: Vec<TcpStream> = (0..64)
        .map(|_| {
            let mut stream = TcpStream::connect(inside.address).expect("the receiver listens");
            stream
                .write_all(b"POST /v1/traces HTTP/1.1\r\nHost: a\r\nContent-Type: application/x-protobuf\r\nContent-Length: 1000\r\n\r\nhalf")
                .expect("the receiver reads");
            stream
        })
        .collect();
    let answer = inside.post("/v1/traces", PROTOBUF, b"");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(
        slow.iter().all(|stream| !is_closed(stream)),
        "they are still there"
    );
    wait_until("the slow bodies are given up", || {
        slow.iter().all(is_answered_or_closed)
    });
}

fn is_closed(stream: &TcpStream) -> bool {
    matches!(peeked(stream), Ok(0) | Err(ErrorKind::ConnectionReset))
}

fn is_answered_or_closed(stream: &TcpStream) -> bool {
    peeked(stream) != Err(ErrorKind::WouldBlock)
}

fn peeked(mut stream: &TcpStream) -> Result<usize, ErrorKind> {
    stream.set_nonblocking(true).expect("a socket can be set up");
    stream.read(&mut [0; 1]).map_err(|error| error.kind())
}
