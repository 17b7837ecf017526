//! The least that any relay must do for a message over HTTP/1.1: a thread for each connection reads the body, drops it and answers.
//!
//! It parses no OTLP and sends nothing on, so that no relay can need less of the processor.

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
        // A client that hangs up ends its thread.
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
