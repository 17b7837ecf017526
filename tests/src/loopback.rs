//! The listener and the runtime of a server of the harness.

use std::net::{Ipv4Addr, SocketAddr};

use tokio::{net::TcpListener, runtime::Runtime};

/// Listens on a port of loopback, zero for a free one, and returns a runtime of one thread for the server.
pub(crate) fn listen(port: u16) -> (Runtime, TcpListener, SocketAddr) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .expect("a runtime can be made");
    let listener = runtime
        .block_on(TcpListener::bind((Ipv4Addr::LOCALHOST, port)))
        .expect("a loopback port can be bound");
    let address = listener.local_addr().expect("a bound socket has an address");
    (runtime, listener, address)
}
