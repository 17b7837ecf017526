//! Proxies: an HTTP proxy forwards plain HTTP, everything else uses a tunnel.

use std::sync::{Arc, Mutex};

use pulsetrain_net::client::ClientTls;
use pulsetrain_otlp::Signal;
use pulsetrain_pipeline::{Delivery, Sink};
use pulsetrain_sinks::{OtlpConfig, OtlpSettings, OtlpSink};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional},
    net::{TcpListener, TcpStream},
};

use crate::{
    answers::{PROTOBUF, grpc, http},
    delivery::retry,
    receiver::{Answer, Receiver, batch},
    tls::Certificates,
};

/// A host that only the proxy can resolve.
const HOST: &str = "collector.test:4318";

/// A proxy that connects to `to`, whatever host is requested. It records the head of each request.
struct Proxy {
    address: String,
    heads: Arc<Mutex<Vec<String>>>,
}

impl Proxy {
    async fn start(to: String, refusal: Option<&'static str>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let heads = Arc::<Mutex<Vec<String>>>::default();
        let kept = Arc::clone(&heads);
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                tokio::spawn(forward(stream, to.clone(), Arc::clone(&kept), refusal));
            }
        });
        Self { address, heads }
    }

    fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap().clone()
    }
}

async fn forward(
    mut client: TcpStream,
    to: String,
    heads: Arc<Mutex<Vec<String>>>,
    refusal: Option<&'static str>,
) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let Ok(byte) = client.read_u8().await else { return };
        head.push(byte);
    }
    let text = String::from_utf8(head.clone()).unwrap();
    heads.lock().unwrap().push(text.clone());
    if let Some(refusal) = refusal {
        client.write_all(refusal.as_bytes()).await.unwrap();
        return;
    }
    let mut receiver = TcpStream::connect(to).await.unwrap();
    if text.starts_with("CONNECT ") {
        client
            .write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")
            .await
            .unwrap();
    } else {
        // The receiver of the tests accepts a request line with a complete URL.
        receiver.write_all(&head).await.unwrap();
    }
    let _ = copy_bidirectional(&mut client, &mut receiver).await;
}

fn sink(url: &str, settings: &OtlpSettings, variables: &[(&str, String)]) -> OtlpSink {
    let lookup = |name: &str| {
        let known = variables.iter().find(|(known, _)| *known == name);
        known.map(|(_, value)| value.clone())
    };
    OtlpSink::new(&OtlpConfig::from_section(Some(url), settings, lookup).unwrap()).unwrap()
}

const SUCCESS: [fn() -> Answer; 2] = [|| http(200, PROTOBUF, ""), || grpc(b"", &[("grpc-status", "0")])];

#[tokio::test]
async fn plain_http_is_forwarded_with_the_credentials_of_the_proxy() {
    let receiver = Receiver::start(SUCCESS[0]).await;
    let proxy = Proxy::start(receiver.address.to_string(), None).await;
    let variables = [("HTTP_PROXY", format!("http://user:pass@{}", proxy.address))];
    let mut sink = sink(&format!("http://{HOST}"), &OtlpSettings::default(), &variables);
    assert_eq!(sink.deliver(&batch(Signal::Logs)).await, Delivery::Delivered);
    let head = proxy.heads().remove(0);
    assert!(
        head.starts_with(&format!("POST http://{HOST}/v1/logs HTTP/1.1\r\n")),
        "{head}"
    );
    assert!(
        head.to_ascii_lowercase()
            .contains("proxy-authorization: basic dxnlcjpwyxnz"),
        "{head}"
    );
}

#[tokio::test]
async fn tls_and_grpc_go_through_a_tunnel() {
    let certificates = Certificates::make();
    let tls = OtlpSettings {
        tls: ClientTls {
            authority: Some(certificates.named("tls.ca", "ca.pem")),
            server_name: Some("127.0.0.1".to_owned()),
            ..ClientTls::default()
        },
        ..OtlpSettings::default()
    };
    let plain = OtlpSettings::default();
    for (scheme, answer, settings) in [
        ("https", SUCCESS[0], &tls),
        ("grpc", SUCCESS[1], &plain),
        ("grpcs", SUCCESS[1], &tls),
    ] {
        let receiver = match scheme {
            "grpc" => Receiver::start(answer).await,
            _ => Receiver::start_tls(certificates.server(false), answer).await,
        };
        let proxy = Proxy::start(receiver.address.to_string(), None).await;
        let variables = [("https_proxy", format!("http://user:pass@{}", proxy.address))];
        let mut sink = sink(&format!("{scheme}://{HOST}"), settings, &variables);
        assert_eq!(
            sink.deliver(&batch(Signal::Logs)).await,
            Delivery::Delivered,
            "{scheme}"
        );
        let head = proxy.heads().remove(0);
        assert!(
            head.starts_with(&format!("CONNECT {HOST} HTTP/1.1\r\n")),
            "{head}"
        );
        assert!(
            head.to_ascii_lowercase()
                .contains("proxy-authorization: basic dxnlcjpwyxnz"),
            "{head}"
        );
        assert_eq!(receiver.requests().len(), 1);
    }
}

#[tokio::test]
async fn rejecting_proxy_is_reported_with_advice() {
    for (refusal, expected) in [
        (
            "HTTP/1.1 407 Proxy Authentication Required\r\n\r\n",
            "user and password",
        ),
        ("HTTP/1.1 403 Forbidden\r\n\r\n", "NO_PROXY"),
    ] {
        let proxy = Proxy::start(String::new(), Some(refusal)).await;
        let variables = [("HTTPS_PROXY", format!("http://{}", proxy.address))];
        let mut sink = sink(&format!("grpc://{HOST}"), &OtlpSettings::default(), &variables);
        let (_, message) = retry(sink.deliver(&batch(Signal::Logs)).await);
        assert!(
            message.contains(&format!("through the proxy http://{}", proxy.address))
                && message.contains(expected),
            "{message}"
        );
    }
    let variables = [("HTTPS_PROXY", "http://127.0.0.1:1".to_owned())];
    let mut sink = sink(&format!("grpc://{HOST}"), &OtlpSettings::default(), &variables);
    let (_, message) = retry(sink.deliver(&batch(Signal::Logs)).await);
    assert!(message.contains("check HTTPS_PROXY"), "{message}");
}

/// Accepts one connection of a SOCKS5 client with a user and a password, and connects it to `to`. Returns the
/// user, the password and the requested host (RFC 1928, RFC 1929).
async fn forward_socks(listener: TcpListener, to: String) -> [String; 3] {
    let (mut client, _) = listener.accept().await.unwrap();
    let text = async |client: &mut TcpStream| {
        let mut text = vec![0; client.read_u8().await.unwrap().into()];
        client.read_exact(&mut text).await.unwrap();
        String::from_utf8(text).unwrap()
    };
    let mut greeting = [0; 3];
    client.read_exact(&mut greeting).await.unwrap();
    assert_eq!(greeting, [5, 1, 2], "version 5, with a user and a password");
    client.write_all(&[5, 2]).await.unwrap();
    assert_eq!(client.read_u8().await.unwrap(), 1);
    let (user, password) = (text(&mut client).await, text(&mut client).await);
    client.write_all(&[1, 0]).await.unwrap();
    let mut request = [0; 4];
    client.read_exact(&mut request).await.unwrap();
    assert_eq!(request, [5, 1, 0, 3], "to a host by its name");
    let host = text(&mut client).await;
    let port = client.read_u16().await.unwrap();
    client.write_all(&[5, 0, 0, 1, 0, 0, 0, 0, 0, 0]).await.unwrap();
    let mut receiver = TcpStream::connect(to).await.unwrap();
    tokio::spawn(async move { copy_bidirectional(&mut client, &mut receiver).await });
    [user, password, format!("{host}:{port}")]
}

#[tokio::test]
async fn socks_proxy_resolves_the_host_of_the_endpoint_and_gets_user_and_password() {
    let certificates = Certificates::make();
    let tls = OtlpSettings {
        tls: ClientTls {
            authority: Some(certificates.named("tls.ca", "ca.pem")),
            server_name: Some("127.0.0.1".to_owned()),
            ..ClientTls::default()
        },
        ..OtlpSettings::default()
    };
    for (scheme, answer, variable) in [
        ("http", SUCCESS[0], "HTTP_PROXY"),
        ("https", SUCCESS[0], "HTTPS_PROXY"),
        ("grpc", SUCCESS[1], "HTTPS_PROXY"),
    ] {
        let receiver = match scheme {
            "https" => Receiver::start_tls(certificates.server(false), answer).await,
            _ => Receiver::start(answer).await,
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let proxy = format!("socks5://user:pass@{}", listener.local_addr().unwrap());
        let forwarded = tokio::spawn(forward_socks(listener, receiver.address.to_string()));
        let mut sink = sink(&format!("{scheme}://{HOST}"), &tls, &[(variable, proxy)]);
        let delivery = sink.deliver(&batch(Signal::Logs)).await;
        assert_eq!(delivery, Delivery::Delivered, "{scheme}");
        assert_eq!(forwarded.await.unwrap(), ["user", "pass", HOST], "{scheme}");
        assert_eq!(receiver.requests().len(), 1);
    }
}
