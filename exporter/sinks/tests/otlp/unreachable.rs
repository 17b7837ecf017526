//! Receivers that are unreachable, disconnect, or speak another protocol: each delivery may be retried, with
//! advice.

use std::net::SocketAddr;

use pulsetrain_otlp::Signal;
use pulsetrain_pipeline::Sink;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

use crate::{
    delivery::retry,
    receiver::{batch, sink},
};

/// Returns the error of the delivery to a target. Panics unless it may be retried.
async fn retry_message(target: &str) -> String {
    let (after, message) = retry(sink(target, &[]).deliver(&batch(Signal::Traces)).await);
    assert_eq!(after, None);
    message
}

/// A server that reads some of each request, answers with `bytes` and disconnects.
async fn raw_server(bytes: &'static [u8]) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = [0; 16 << 10];
            let _ = stream.read(&mut request).await;
            let _ = stream.write_all(bytes).await;
        }
    });
    address
}

#[tokio::test]
async fn port_without_a_listener_is_reported() {
    let address = TcpListener::bind("127.0.0.1:0")
        .await
        .unwrap()
        .local_addr()
        .unwrap();
    for scheme in ["http", "https", "grpc", "grpcs"] {
        if scheme.ends_with('s') && rustls_native_certs::load_native_certs().certs.is_empty() {
            continue;
        }
        let message = retry_message(&format!("{scheme}://{address}")).await;
        assert!(message.contains(&address.to_string()), "{message}");
        assert!(
            message.contains("Connection refused") && message.contains("start a receiver"),
            "{message}"
        );
    }
}

#[tokio::test]
async fn unknown_host_is_reported() {
    let message = retry_message("http://no-such-host.invalid:4318").await;
    assert!(message.contains("check the host name"), "{message}");
}

#[tokio::test]
async fn truncated_response_is_retryable() {
    for answer in [&b""[..], b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf"] {
        let address = raw_server(answer).await;
        for scheme in ["http", "grpc"] {
            let message = retry_message(&format!("{scheme}://{address}")).await;
            assert!(!message.contains("certificate"), "{message}");
        }
    }
}

#[tokio::test]
async fn grpc_to_an_http_port_is_reported() {
    let address =
        raw_server(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\nconnection: close\r\n\r\n").await;
    let message = retry_message(&format!("grpc://{address}")).await;
    assert!(message.contains("usually 4318"), "{message}");
}

#[tokio::test]
async fn http_to_a_grpc_port_is_reported() {
    let settings = b"\0\0\0\x04\0\0\0\0\0"; // the first frame of an HTTP/2 server
    let address = raw_server(settings).await;
    let message = retry_message(&format!("http://{address}")).await;
    assert!(message.contains("usually 4317"), "{message}");
}

/// A server of HTTP/2 sends its first frame without waiting for the request, and the client may read it before it
/// has sent anything.
#[tokio::test(flavor = "multi_thread")]
async fn http_to_a_grpc_port_that_speaks_first_is_reported() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let _ = stream.write_all(b"\0\0\0\x04\0\0\0\0\0").await;
            let _ = stream.read(&mut [0; 16 << 10]).await;
        }
    });
    for _ in 0..500 {
        let message = retry_message(&format!("http://{address}")).await;
        assert!(message.contains("usually 4317"), "{message}");
    }
}
