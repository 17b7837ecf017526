//! An HTTP/2 client that starts requests and completes none, with frames according to RFC 9113.

use std::{
    io::{ErrorKind, Read, Write},
    net::{Ipv4Addr, TcpStream},
};

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const GOAWAY: u8 = 7;
/// The server sends one for the connection when it is ready; until then, the window is 64 KiB.
const WINDOW_UPDATE: u8 = 8;
const END_HEADERS: u8 = 4;
const ACK: u8 = 1;
/// The length of a frame header.
const HEAD: usize = 9;
/// The largest frame size that every server accepts.
const FRAME: usize = 16 << 10;

/// A connection.
pub(super) struct Http2(TcpStream);

impl Http2 {
    pub(super) fn connect(port: u16) -> Self {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).expect("the receiver listens");
        let mut connection = Self(stream);
        let _ = connection.0.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
        connection.frame(SETTINGS, 0, 0, &[]);
        loop {
            match connection.next_frame() {
                // The windows in the settings apply after the acknowledgement.
                (SETTINGS, 0) => connection.frame(SETTINGS, ACK, 0, &[]),
                (WINDOW_UPDATE, _) => return connection,
                _ => {}
            }
        }
    }

    /// Returns whether the server still reads every request: it has neither reset a stream nor closed the connection.
    pub(super) fn is_read(&self) -> bool {
        self.0.set_nonblocking(true).expect("a socket can be set up");
        let mut received = Vec::new();
        let end = (&self.0).read_to_end(&mut received);
        let is_open = end.is_err_and(|error| error.kind() == ErrorKind::WouldBlock);
        let mut rest = &received[..];
        while let [a, b, c, kind, ..] = rest {
            if matches!(*kind, RST_STREAM | GOAWAY) {
                return false;
            }
            let length = u32::from_be_bytes([0, *a, *b, *c]);
            let length = HEAD + usize::try_from(length).expect("a frame is short");
            rest = rest.get(length..).unwrap_or_default();
        }
        is_open
    }

    /// Reads a frame and returns its type and its flags.
    fn next_frame(&mut self) -> (u8, u8) {
        let mut head = [0; HEAD];
        self.0.read_exact(&mut head).expect("the server speaks HTTP/2");
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let mut payload = vec![0; usize::try_from(length).expect("a frame is short")];
        self.0.read_exact(&mut payload).expect("a frame is complete");
        (head[3], head[4])
    }

    /// Starts a request and sends this number of bytes of its body.
    pub(super) fn unfinished_request(&mut self, stream: u32, bytes: usize) {
        let mut head = Vec::new();
        for (name, value) in [
            (":method", "POST"),
            (":scheme", "http"),
            (":path", "/v1/traces"),
            (":authority", "localhost"),
            ("content-type", "application/x-protobuf"),
        ] {
            // A literal field without indexing, without Huffman coding (RFC 7541, 6.2.2).
            head.push(0);
            for text in [name, value] {
                head.push(u8::try_from(text.len()).expect("the text is short"));
                head.extend_from_slice(text.as_bytes());
            }
        }
        self.frame(HEADERS, END_HEADERS, stream, &head);
        for _ in 0..bytes / FRAME {
            self.frame(DATA, 0, stream, &[0; FRAME]);
        }
    }

    fn frame(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        let length = u32::try_from(payload.len())
            .expect("a frame is short")
            .to_be_bytes();
        let mut frame = length[1..].to_vec();
        frame.extend([kind, flags]);
        frame.extend(stream.to_be_bytes());
        frame.extend_from_slice(payload);
        let _ = self.0.write_all(&frame);
    }
}
