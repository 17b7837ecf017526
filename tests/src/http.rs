//! A plain HTTP client for servers on loopback: one request per connection.

use std::{
    fs,
    io::{ErrorKind, Read, Write},
    net::{Ipv4Addr, TcpStream},
    time::Duration,
};

/// The longest time for which a server that answers sends nothing.
const MAX_SILENCE: Duration = Duration::from_secs(30);

/// Returns the status and the body of a response; `None` if nothing listens or answers. Each of `headers` ends with CRLF.
pub fn request(port: u16, method: &str, path: &str, headers: &str, body: &[u8]) -> Option<(u16, Vec<u8>)> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).ok()?;
    stream.set_read_timeout(Some(MAX_SILENCE)).ok()?;
    let length = body.len();
    let head =
        format!("{method} {path} HTTP/1.0\r\nHost: localhost\r\n{headers}Content-Length: {length}\r\n\r\n");
    stream.write_all(head.as_bytes()).ok()?;
    stream.write_all(body).ok()?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).ok()?;
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n")?;
    let status = std::str::from_utf8(answer.get(9..12)?).ok()?.parse().ok()?;
    Some((status, answer.split_off(end + 4)))
}

/// As [`request`], for a POST of JSON.
pub fn post_json(port: u16, path: &str, json: &str) -> Option<(u16, Vec<u8>)> {
    let headers = "Content-Type: application/json\r\n";
    request(port, "POST", path, headers, json.as_bytes())
}

/// Returns the page of metrics in text, over a new connection, as in Prometheus' first scrape; `None` if nothing listens or
/// answers.
pub fn metrics(port: u16) -> Option<String> {
    let (status, page) = request(port, "GET", "/metrics", "Accept: text/plain\r\n", &[])?;
    let page = String::from_utf8(page).expect("the page is text");
    assert_eq!(status, 200, "{page}");
    Some(page)
}

/// Returns whether a server listens on a port.
pub fn is_open(port: u16) -> bool {
    TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok()
}

/// Returns whether a GET gets a response with status 200.
pub fn answers_ok(port: u16, path: &str) -> bool {
    request(port, "GET", path, "", &[]).is_some_and(|(status, _)| status == 200)
}

/// Sends OTLP protobuf; panics unless everything is accepted.
pub fn push_otlp(port: u16, path: &str, headers: &str, otlp: &[u8]) {
    let headers = format!("Content-Type: application/x-protobuf\r\n{headers}");
    let (status, body) = request(port, "POST", path, &headers, otlp).expect("the server answers");
    assert!(
        (200..300).contains(&status),
        "{status}: {}",
        String::from_utf8_lossy(&body)
    );
}

/// Percent-encodes text for a query string.
pub fn encoded(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' => char::from(byte).to_string(),
            _ => format!("%{byte:02X}"),
        })
        .collect()
}

/// Returns the number of connections to a port that the server has not closed, from the system's table.
pub fn connections(port: u16) -> usize {
    const ESTABLISHED: &str = "01";
    let table = fs::read_to_string("/proc/net/tcp").expect("Linux lists its connections");
    let is_one = |line: &&str| {
        let mut fields = line.split_whitespace().skip(1);
        let (local, state) = (fields.next(), fields.nth(1));
        local.is_some_and(|local| local.ends_with(&format!(":{port:04X}"))) && state == Some(ESTABLISHED)
    };
    table.lines().filter(is_one).count()
}

/// Returns the number of remaining bytes of a connection; panics if the server has not closed it.
pub fn rest(mut stream: TcpStream) -> usize {
    let timeout = stream.set_read_timeout(Some(MAX_SILENCE));
    timeout.expect("a timeout can be set");
    let (mut all, mut buffer) = (0, vec![0; 64 << 10]);
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => return all,
            Ok(bytes) => all += bytes,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::ConnectionReset, "still open: {error}");
                return all;
            }
        }
    }
}
