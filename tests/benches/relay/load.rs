//! The clients: two connections, each of which sends a message and waits for its answer.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{Ipv4Addr, TcpStream},
    thread,
    time::Duration,
};

use pulsetrain_otlp::write::Buffer;

const CLIENTS: usize = 2;

/// One message, sent over and over.
pub(crate) struct Load {
    message: Vec<u8>,
}

impl Load {
    /// Messages with so many spans.
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

    /// Sends so many messages; each until it is accepted.
    pub(crate) fn send(&self, port: u16, messages: usize) {
        thread::scope(|scope| {
            for client in 0..CLIENTS {
                let count = messages / CLIENTS + usize::from(client < messages % CLIENTS);
                scope.spawn(move || self.send_from_one(port, count));
            }
        });
    }

    fn send_from_one(&self, port: u16, messages: usize) {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).expect("the relay listens");
        stream.set_nodelay(true).expect("a socket has the option");
        let mut answers = BufReader::new(stream.try_clone().expect("a socket can be cloned"));
        let head = format!(
            "POST /v1/traces HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-protobuf\r\nContent-Length: {}\r\n\r\n",
            self.message.len()
        );
        let request = [head.as_bytes(), &self.message].concat();
        for _ in 0..messages {
            while !self.is_accepted(&mut stream, &mut answers, &request) {
                // It asked for a pause.
                thread::sleep(Duration::from_millis(20));
            }
        }
    }

    fn is_accepted(
        &self,
        stream: &mut TcpStream,
        answers: &mut BufReader<TcpStream>,
        request: &[u8],
    ) -> bool {
        stream.write_all(request).expect("the relay reads");
        let (mut line, mut status, mut length) = (String::new(), String::new(), 0);
        while line != "\r\n" {
            line.clear();
            answers.read_line(&mut line).expect("the relay answers");
            assert!(
                !line.is_empty(),
                "the relay closed the connection after {status:?}"
            );
            if status.is_empty() {
                status.clone_from(&line);
            }
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().expect("a length is a number");
            }
        }
        let mut body = vec![0; length];
        answers.read_exact(&mut body).expect("the answer has its length");
        match status.split(' ').nth(1) {
            Some("200") => true,
            Some("429" | "503") => false,
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
