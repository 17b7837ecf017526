//! A forward proxy for plain HTTP/1.1, which connects to one server for every host and records the requests.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional},
    net::TcpStream,
    runtime::Runtime,
};

use crate::loopback;

/// A running proxy on loopback, which stops when it is dropped.
#[derive(Debug)]
pub struct ForwardProxy {
    address: SocketAddr,
    heads: Arc<Mutex<Vec<String>>>,
    _runtime: Runtime,
}

impl ForwardProxy {
    /// Starts a proxy that connects to the server at `to`, such as `http://127.0.0.1:3200`, whatever host is requested.
    pub fn start(to: &str) -> Self {
        let to: SocketAddr = (to.trim_start_matches("http://").parse()).expect("a server has an address");
        let (runtime, listener, address) = loopback::listen(0);
        let heads = Arc::<Mutex<Vec<String>>>::default();
        let recorded = Arc::clone(&heads);
        runtime.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(forward(stream, to, Arc::clone(&recorded)));
            }
        });
        Self {
            address,
            heads,
            _runtime: runtime,
        }
    }

    /// Returns the URL with a user and a password, for `HTTP_PROXY`.
    pub fn url(&self) -> String {
        format!("http://user:pass@{}", self.address)
    }

    /// Returns the head of the first request of each connection.
    pub fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Forwards the bytes of one connection. A client that disconnects early is ignored.
async fn forward(mut client: TcpStream, to: SocketAddr, heads: Arc<Mutex<Vec<String>>>) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let Ok(byte) = client.read_u8().await else { return };
        head.push(byte);
    }
    let text = String::from_utf8_lossy(&head).into_owned();
    heads.lock().unwrap_or_else(PoisonError::into_inner).push(text);
    let mut server = TcpStream::connect(to).await.expect("the server listens");
    // A server accepts a request line with a complete URL (RFC 9112, 3.2.2).
    if server.write_all(&head).await.is_ok() {
        let _ = copy_bidirectional(&mut client, &mut server).await;
    }
}
