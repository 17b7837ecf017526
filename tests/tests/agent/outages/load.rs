//! Clients that send numbered messages at a fixed rate, each once.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{Ipv4Addr, TcpStream},
    ops::Range,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
    time::Duration,
};

use pulsetrain_otlp::write::Buffer;
use pulsetrain_pipeline::clock;

const CLIENTS: usize = 8;
/// The prefix of the text of every message, before its number of seven digits.
const MARK: &[u8] = b"message number ";
const DIGITS: usize = 7;
/// The length of the text of a message: with its resource and times about 200 bytes, like a line of a log.
const TEXT_BYTES: usize = 120;

/// Sends the messages of these numbers at a rate; returns the acknowledged ones.
pub(crate) fn send(port: u16, numbers: Range<usize>, per_second: usize) -> Vec<usize> {
    let next = AtomicUsize::new(numbers.start);
    let begun = clock::now();
    thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|_| {
                scope.spawn(|| {
                    let (mut client, mut acknowledged) = (Client { port, stream: None }, Vec::new());
                    loop {
                        let number = next.fetch_add(1, Ordering::Relaxed);
                        if number >= numbers.end {
                            return acknowledged;
                        }
                        let due = (number - numbers.start) as f64 / per_second as f64;
                        let early = Duration::from_secs_f64(due).saturating_sub(begun.elapsed());
                        thread::sleep(early);
                        if client.post(number) == Some(200) {
                            acknowledged.push(number);
                        }
                    }
                })
            })
            .collect();
        clients
            .into_iter()
            .flat_map(|client| client.join().expect("a client does not panic"))
            .collect()
    })
}

/// Returns the text of a message.
pub(crate) fn text_of(number: usize) -> String {
    let mark = std::str::from_utf8(MARK).expect("invariant: the mark is ASCII");
    let text = format!("{mark}{number:0DIGITS$} of a trainer");
    format!("{text:-<TEXT_BYTES$}")
}

/// Finds the numbers and texts of the messages in OTLP, protobuf or JSON.
pub(crate) fn numbers_in(bytes: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    memchr::memmem::find_iter(bytes, MARK).map(|at| {
        let text = &bytes[at..(at + TEXT_BYTES).min(bytes.len())];
        let digits = text.get(MARK.len()..MARK.len() + DIGITS).unwrap_or_default();
        let number = std::str::from_utf8(digits)
            .ok()
            .and_then(|digits| digits.parse().ok());
        (number.expect("every message has its number"), text)
    })
}

/// Returns `LogsData` with one record.
fn message(number: usize) -> Vec<u8> {
    let nested = |number: u32, inner: &[u8]| {
        let mut outer = Buffer::default();
        outer.delimited(number, inner);
        outer
    };
    let mut record = Buffer::default();
    record.fixed64(1, 1_700_000_000_000_000_000 + number as u64);
    record.delimited(5, nested(1, text_of(number).as_bytes()).as_slice());
    let mut attribute = Buffer::default();
    attribute.delimited(1, b"service.name");
    attribute.delimited(2, nested(1, b"trainer").as_slice());
    let mut resource = nested(1, nested(1, attribute.as_slice()).as_slice());
    resource.delimited(2, nested(2, record.as_slice()).as_slice());
    nested(1, resource.as_slice()).into_vec()
}

/// A connection, which is reopened after an error.
struct Client {
    port: u16,
    stream: Option<BufReader<TcpStream>>,
}

impl Client {
    /// Sends one message; returns the status of the response, or `None` without one.
    fn post(&mut self, number: usize) -> Option<u16> {
        let body = message(number);
        let head = format!(
            "POST /v1/logs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-protobuf\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        let status = self.exchange(&[head.as_bytes(), &body].concat());
        if status.is_none() {
            self.stream = None;
        }
        status
    }

    fn exchange(&mut self, request: &[u8]) -> Option<u16> {
        if self.stream.is_none() {
            let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).ok()?;
            stream.set_nodelay(true).ok()?;
            self.stream = Some(BufReader::new(stream));
        }
        let stream = self.stream.as_mut()?;
        stream.get_mut().write_all(request).ok()?;
        let (mut line, mut status, mut length) = (String::new(), None, 0);
        while line != "\r\n" {
            line.clear();
            if stream.read_line(&mut line).ok()? == 0 {
                return None;
            }
            status = status.or_else(|| line.split(' ').nth(1)?.parse().ok());
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().ok()?;
            }
        }
        stream.read_exact(&mut vec![0; length]).ok()?;
        status
    }
}
