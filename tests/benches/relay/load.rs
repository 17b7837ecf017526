//! The clients: every connection sends a message and waits for its response.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    net::{Ipv4Addr, TcpStream},
    thread,
    time::Duration,
};

use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, trace_service_client::TraceServiceClient,
};
use prost::Message;
use pulsetrain_otlp::write::Buffer;
use tonic::Code;

use crate::relays::Protocol;

/// The pause before a client sends a rejected message again.
const PAUSE: Duration = Duration::from_millis(20);

/// The response timeout of a client if the relay may never respond.
const TIMEOUT: Duration = Duration::from_secs(5);

/// One message, sent repeatedly.
pub(crate) struct Load {
    message: Vec<u8>,
}

impl Load {
    /// Creates messages with this number of spans.
    pub(crate) fn new(spans: usize) -> Self {
        let mut scope = Buffer::default();
        for number in 0..spans {
            scope.delimited(2, span(number as u64).as_slice());
        }
        let (mut resource, mut message) = (Buffer::default(), Buffer::default());
        let mut attributes = Buffer::default();
        attributes.delimited(1, attribute("service.name", "trainer").as_slice());
        resource.delimited(1, attributes.as_slice());
        resource.delimited(2, scope.as_slice());
        message.delimited(1, resource.as_slice());
        Self {
            message: message.into_vec(),
        }
    }

    /// Returns the size of one message.
    pub(crate) fn bytes(&self) -> usize {
        self.message.len()
    }

    /// Sends this number of messages over this number of connections, each message until it is accepted.
    pub(crate) fn send(&self, protocol: Protocol, port: u16, messages: usize, clients: usize) {
        thread::scope(|scope| {
            for messages in shares(messages, clients) {
                scope.spawn(move || match protocol {
                    Protocol::Http => self.send_by_http(port, messages),
                    Protocol::Grpc => self.send_by_grpc(port, messages),
                });
            }
        });
    }

    /// Sends messages over HTTP, each once, and returns the number of accepted ones. A client stops after a message without a
    /// response.
    pub(crate) fn try_send_or_drop(&self, port: u16, messages: usize) -> usize {
        let mut client = HttpClient::connect(port, &self.message);
        let patience = client.stream.set_read_timeout(Some(TIMEOUT));
        patience.expect("a socket has the option");
        let answers = (0..messages).map_while(|_| client.send().ok());
        answers.filter(|is_accepted| *is_accepted).count()
    }

    fn send_by_http(&self, port: u16, messages: usize) {
        let mut client = HttpClient::connect(port, &self.message);
        for _ in 0..messages {
            while !client.send().expect("the relay answers") {
                thread::sleep(PAUSE);
            }
        }
    }

    fn send_by_grpc(&self, port: u16, messages: usize) {
        let message = ExportTraceServiceRequest::decode(&*self.message).expect("a message is OTLP");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime can be made").block_on(async {
            let client = TraceServiceClient::connect(format!("http://127.0.0.1:{port}")).await;
            let mut client = client.expect("the relay listens");
            for _ in 0..messages {
                while let Err(status) = client.export(message.clone()).await {
                    let is_asked_to_wait =
                        matches!(status.code(), Code::Unavailable | Code::ResourceExhausted);
                    assert!(is_asked_to_wait, "{status}");
                    tokio::time::sleep(PAUSE).await;
                }
            }
        });
    }
}

/// Divides messages among the clients.
fn shares(messages: usize, clients: usize) -> impl Iterator<Item = usize> {
    (0..clients).map(move |client| messages / clients + usize::from(client < messages % clients))
}

/// One connection, over which the same request is sent repeatedly.
struct HttpClient {
    stream: TcpStream,
    answers: BufReader<TcpStream>,
    request: Vec<u8>,
}

impl HttpClient {
    fn connect(port: u16, message: &[u8]) -> Self {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).expect("the relay listens");
        stream.set_nodelay(true).expect("a socket has the option");
        let answers = BufReader::new(stream.try_clone().expect("a socket can be cloned"));
        let head = format!(
            "POST /v1/traces HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-protobuf\r\nContent-Length: {}\r\n\r\n",
            message.len()
        );
        let request = [head.as_bytes(), message].concat();
        Self {
            stream,
            answers,
            request,
        }
    }

    /// Sends the message once and returns whether it was accepted.
    fn send(&mut self) -> io::Result<bool> {
        self.stream.write_all(&self.request)?;
        let (mut line, mut status, mut length) = (String::new(), String::new(), 0);
        while line != "\r\n" {
            line.clear();
            if self.answers.read_line(&mut line)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            if status.is_empty() {
                status.clone_from(&line);
            }
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().expect("a length is a number");
            }
        }
        let mut body = vec![0; length];
        self.answers.read_exact(&mut body)?;
        match status.split(' ').nth(1) {
            Some("200") => Ok(true),
            Some("429" | "503") => Ok(false),
            _ => panic!("{status}"),
        }
    }
}

fn span(number: u64) -> Buffer {
    let mut span = Buffer::default();
    span.delimited(1, &[7; 16]);
    span.delimited(2, &number.wrapping_add(1).to_be_bytes());
    span.delimited(5, b"train.step");
    span.fixed64(7, 1_700_000_000_000_000_000);
    span.fixed64(8, 1_700_000_000_100_000_000);
    for (key, value) in [
        ("train.run.id", "10d62377e256d120"),
        ("device", "gpu-0"),
        ("phase", "forward"),
    ] {
        span.delimited(9, attribute(key, value).as_slice());
    }
    span
}

fn attribute(key: &str, value: &str) -> Buffer {
    let (mut attribute, mut any) = (Buffer::default(), Buffer::default());
    any.delimited(1, value.as_bytes());
    attribute.delimited(1, key.as_bytes());
    attribute.delimited(2, any.as_slice());
    attribute
}
