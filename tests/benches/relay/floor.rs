//! The lower bound for a relay of OTLP over HTTP/1.1: one thread per connection reads the body, drops it and responds.
//!
//! It parses no OTLP and forwards nothing, so that no relay can need less CPU time.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{Ipv4Addr, TcpListener, TcpStream},
    thread,
};

/// Serves connections until the process is stopped.
pub(crate) fn serve(port: u16) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).expect("the port is free");
    for stream in listener.incoming() {
        let stream = stream.expect("the listener accepts");
        // The thread ends when its client closes the connection.
        thread::spawn(move || answer(&stream));
    }
}

fn answer(mut stream: &TcpStream) -> Option<()> {
    stream.set_nodelay(true).expect("a socket has the option");
    let mut requests = BufReader::with_capacity(1 << 16, stream);
    let (mut line, mut body) = (String::new(), Vec::new());
    loop {
        let mut length = 0;
        line.clear();
        while line != "\r\n" {
            line.clear();
            if requests.read_line(&mut line).ok()? == 0 {
                return None;
            }
            if let Some(value) = line.strip_prefix("Content-Length:") {
                length = value.trim().parse().expect("a length is a number");
            }
        }
        body.resize(length, 0);
        requests.read_exact(&mut body).ok()?;
        stream
            .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            .ok()?;
    }
}
