//! Where a server of the harness listens, and what it runs on.

use std::net::SocketAddr;

use tokio::{net::TcpListener, runtime::Runtime};

/// A free port of loopback that is listened on, and a runtime of one thread to serve it.
pub(crate) fn listen() -> (Runtime, TcpListener, SocketAddr) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .expect("a runtime can be made");
    let listener = runtime
        .block_on(TcpListener::bind("127.0.0.1:0"))
        .expect("a loopback port can be bound");
    let address = listener.local_addr().expect("a bound socket has an address");
    (runtime, listener, address)
}
